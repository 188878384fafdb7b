"""Networks whose control flow depends on data."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from . import made, module, randn


@module(randn(3, 8), randn(1, 8) * 4, randn(5, 8) * 0.1, tags="adaptive")
class AdaptiveComputation(nn.Module):
    """Graves' halting: each step adds to the probability that it was the last one."""

    def __init__(self, width=8, most=10):
        super().__init__()
        self.cell = nn.GRUCell(width, width)
        self.halt = nn.Linear(width, 1)
        self.most = most

    def forward(self, x):
        state = torch.zeros_like(x)
        halted = x.new_zeros(x.shape[0])
        output = torch.zeros_like(x)
        steps = 0
        while (halted < 0.99).any() and steps < self.most:
            state = self.cell(x, state)
            p = torch.sigmoid(self.halt(state)).squeeze(-1)
            p = torch.minimum(p, 1 - halted)
            output = output + p.unsqueeze(-1) * state
            halted = halted + p
            steps += 1
        return output, steps


@module(randn(6, 4), torch.zeros(3, 4), randn(12, 4) * 5, tags="rnn early-exit")
class EarlyExitRNN(nn.Module):
    """Reads until it has made up its mind."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(4, 6)
        self.decide = nn.Linear(6, 2)

    def forward(self, sequence):
        h = sequence.new_zeros(1, 6)
        c = sequence.new_zeros(1, 6)
        for t, x in enumerate(sequence):
            h, c = self.cell(x.unsqueeze(0), (h, c))
            confidence = torch.softmax(self.decide(h), -1).max()
            if confidence > 0.62:
                return self.decide(h), t
        return self.decide(h), -1


@module((randn(2, 7), torch.zeros(2), torch.zeros(2, 0, dtype=torch.int64)),
        (randn(3, 5), -torch.arange(3.0), torch.tensor([[1, 0], [1, 1], [2, 3]])), tags="beam")
class BeamStep(nn.Module):
    """One step of beam search; a beam that has ended is kept as it is."""

    end = 0

    def __init__(self, width=2):
        super().__init__()
        self.width = width

    def forward(self, logits, scores, tokens):
        vocabulary = logits.shape[-1]
        total = scores.unsqueeze(1) + F.log_softmax(logits, -1)
        if tokens.shape[1] > 0:
            ended = tokens[:, -1] == self.end
            if ended.any():
                total = total.masked_fill(ended.unsqueeze(1), float("-inf"))
        best, flat = total.flatten().topk(self.width)
        beam = torch.div(flat, vocabulary, rounding_mode="floor")
        token = flat % vocabulary
        return best, torch.cat([tokens[beam], token.unsqueeze(1)], 1)


@module(randn(6, 4), randn(1, 4), randn(9, 4) * 3, tags="moe")
class MixtureOfExperts(nn.Module):
    """Each row goes to one expert; experts that nobody asked for do not run."""

    def __init__(self, experts=3):
        super().__init__()
        self.router = nn.Linear(4, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)) for _ in range(experts))

    def forward(self, x):
        weights, choice = self.router(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows = (choice == i).nonzero().squeeze(-1)
            if rows.numel() > 0:
                out = out.index_add(0, rows, expert(x[rows]) * weights[rows].unsqueeze(-1))
        return out


@module(randn(2, 4), randn(3, 4) * 9, torch.zeros(1, 4), tags="refinement")
class IterativeRefinement(nn.Module):
    def __init__(self):
        super().__init__()
        self.update = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
        self.threshold = 0.15

    def forward(self, x):
        estimate = torch.zeros_like(x)
        for step in range(8):
            delta = 0.3 * self.update(torch.cat([x, estimate], -1))
            estimate = estimate + delta
            if delta.norm() < self.threshold * estimate.norm():
                break
        return estimate, step


@module(torch.tensor([2.0, 3.0]), torch.tensor([100.0]), tags="newton")
class NewtonLayer(nn.Module):
    """Solves y + w * y**3 = x for y."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(0.5))

    def residual(self, y, x):
        return y + self.w * y ** 3 - x

    def forward(self, x):
        y = x.clone()
        while self.residual(y, x).abs().max() > 1e-4:
            y = y - self.residual(y, x) / (1 + 3 * self.w * y ** 2)
        return y


@module(randn(5, 4), randn(2, 7), tags="power")
class SpectralNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.tolerance = 1e-4

    def forward(self, w):
        u = torch.ones(w.shape[0]) / math.sqrt(w.shape[0])
        sigma = torch.zeros(())
        for _ in range(100):
            v = F.normalize(w.T @ u, dim=0)
            u = F.normalize(w @ v, dim=0)
            new = u @ w @ v
            if (new - sigma).abs() < self.tolerance:
                sigma = new
                break
            sigma = new
        return w / sigma, sigma


class Tree:
    def __init__(self, index=None, left=None, right=None):
        self.index, self.left, self.right = index, left, right

    @property
    def is_leaf(self):
        return self.left is None


@module(randn(3, 4), randn(5, 4) * 4, randn(3, 4, seed=8), tags="tree")
class TreeLSTM(nn.Module):
    """Goes through a tree that is known; how it combines depends on the data."""

    def __init__(self):
        super().__init__()
        self.tree = Tree(left=Tree(left=Tree(0), right=Tree(1)), right=Tree(2))
        self.leaf = nn.Linear(4, 6)
        self.combine = nn.Linear(12, 6)

    def visit(self, node, words):
        if node.is_leaf:
            return torch.tanh(self.leaf(words[node.index]))
        left = self.visit(node.left, words)
        right = self.visit(node.right, words)
        if left.norm() > right.norm():
            left, right = right, left
        return torch.tanh(self.combine(torch.cat([left, right])))

    def forward(self, words):
        return self.visit(self.tree, words)


@module((randn(2, 5), torch.rand(2, 5, generator=torch.Generator().manual_seed(1)), 1.0),
        (randn(3, 4), torch.rand(3, 4, generator=torch.Generator().manual_seed(2)), 0.1),
        tags="gumbel")
class GumbelGate(nn.Module):
    """With noise from outside; hard when the temperature is low."""

    def forward(self, logits, uniform, temperature: float):
        noise = -torch.log(-torch.log(uniform + 1e-9) + 1e-9)
        soft = F.softmax((logits + noise) / temperature, dim=-1)
        if temperature < 0.5:
            index = soft.argmax(-1, keepdim=True)
            hard = torch.zeros_like(soft).scatter(-1, index, 1.0)
            return hard - soft.detach() + soft
        return soft


@module(([randn(3, 2), randn(5, 2)],), ([randn(1, 2)],), ([randn(2, 2), randn(2, 2), randn(4, 2)],),
        tags="padding list")
class PadsBatch(nn.Module):
    def forward(self, sequences: list[torch.Tensor]):
        longest = 0
        for s in sequences:
            longest = max(longest, s.shape[0])
        padded, mask = [], []
        for s in sequences:
            missing = longest - s.shape[0]
            padded.append(F.pad(s, (0, 0, 0, missing)))
            mask.append(torch.arange(longest) < s.shape[0])
        return torch.stack(padded), torch.stack(mask)


@module((randn(6), 3), (randn(4), 1), (randn(9), 5), tags="top-k")
class GreedyTopK(nn.Module):
    """Takes the best one, and puts down what is near it: non-maximum suppression on a line."""

    def forward(self, scores, k: int):
        positions = torch.arange(scores.shape[0])
        picked = []
        scores = scores.clone()
        while len(picked) < k and scores.max() > float("-inf"):
            best = scores.argmax()
            picked.append(best)
            scores = scores.masked_fill((positions - best).abs() <= 1, float("-inf"))
        return torch.stack(picked)


@module((torch.tensor([2]), 6), (torch.tensor([7]), 12), (torch.tensor([4]), 1), tags="decoding")
class GreedyDecoder(nn.Module):
    """Until the token that ends a sentence, or as many as are allowed."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8, 6)
        self.cell = nn.GRUCell(6, 6)
        self.head = nn.Linear(6, 8)
        self.eos = 3

    def forward(self, start, most: int):
        token = start
        hidden = torch.zeros(1, 6)
        tokens = [token]
        for _ in range(most):
            hidden = self.cell(self.embed(token), hidden)
            token = self.head(hidden).argmax(-1)
            tokens.append(token)
            if token.item() == self.eos:
                break
        return torch.cat(tokens)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(),
                                 nn.Linear(2 * width, width))

    def attend(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        return self.out(y.transpose(1, 2).reshape(b, t, c))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))


@module(randn(2, 5, 8), randn(1, 3, 8) * 5, randn(3, 1, 8), tags="transformer halting")
class HaltingTransformer(nn.Module):
    """The same layer, until the representation does not move."""

    def __init__(self):
        super().__init__()
        self.layer = Layer(8, 2)
        self.most = 6

    def forward(self, x):
        n = 0
        moving = torch.tensor(True)
        while moving and n < self.most:
            after = self.layer(x)
            moving = (after - x).norm() > 0.4 * x.norm()
            x = after
            n += 1
        return x.mean(1), n


def normalizing(train):
    class Normalizes(nn.Module):
        """Its own batch norm: what it does depends on the mode."""

        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))
            self.register_buffer("var", torch.ones(4))
            self.weight = nn.Parameter(torch.full((4,), 2.0))

        def forward(self, x):
            if self.training:
                mean, var = x.mean(0), x.var(0, unbiased=False)
                self.mean.lerp_(mean.detach(), 0.1)
                self.var.lerp_(var.detach(), 0.1)
            else:
                mean, var = self.mean, self.var
            y = (x - mean) / (var + 1e-5).sqrt() * self.weight
            return y if y.max() < 3 else y.clamp(max=3)

    return Normalizes()


@made(randn(6, 4), randn(3, 4) * 4, tags="training buffers", train=True)
def normalizes_training():
    return normalizing(True)


@made(randn(6, 4), randn(3, 4) * 4, tags="training buffers")
def normalizes_eval():
    return normalizing(False)


@module(randn(3, 4), randn(2, 4) * 9, tags="dropout eval")
class WithDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(8)
        self.second = nn.Linear(8, 2)

    def forward(self, x):
        h = F.relu(self.norm(self.drop(self.first(x))))
        h = F.dropout(h, 0.3, training=self.training)
        if h.mean() > 0.5:
            h = h / h.mean()
        return self.second(h)


@module(randn(1, 3, 8, 8), randn(2, 3, 12, 6) * 4, tags="conv")
class SkipsBlocks(nn.Module):
    """Residual blocks, of which each is left out if its gate says so."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.blocks = nn.ModuleList(nn.Conv2d(4, 4, 3, padding=1) for _ in range(3))
        self.gates = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
        self.head = nn.Linear(4, 2)

    def forward(self, image):
        x = self.stem(image)
        used = 0
        for block, gate in zip(self.blocks, self.gates):
            score = gate(x.mean((2, 3))).mean()
            if score > 0:
                x = x + F.relu(block(x))
                used += 1
        return self.head(x.amax((2, 3))), used


@module((randn(4, 3), randn(4, 3)), (torch.full((2, 3), 1.5), torch.zeros(2, 3)),
        (randn(1, 3) * 9, torch.zeros(1, 3)), tags="loss")
class PicksLoss(nn.Module):
    def __init__(self, delta=1.0):
        super().__init__()
        self.delta = delta

    def forward(self, prediction, target):
        error = (prediction - target).abs()
        worst = error.max()
        if worst <= self.delta:
            return F.mse_loss(prediction, target)
        elif worst <= 2 * self.delta:
            return F.smooth_l1_loss(prediction, target, beta=self.delta)
        return F.l1_loss(prediction, target)


@module((randn(5, 2), torch.tensor([[0, 1, 2], [1, 2, 3]])),
        (randn(3, 2), torch.tensor([[0], [2]])),
        (randn(4, 2), torch.zeros(2, 0, dtype=torch.int64)), tags="graph-network")
class MessagePassing(nn.Module):
    """Messages along edges, until the longest path must have been walked."""

    def __init__(self):
        super().__init__()
        self.message = nn.Linear(2, 2)

    def forward(self, nodes, edges):
        if edges.shape[1] == 0:
            return nodes
        for _ in range(nodes.shape[0] - 1):
            sent = torch.tanh(self.message(nodes[edges[0]]))
            nodes = nodes + torch.zeros_like(nodes).index_add(0, edges[1], sent)
        return nodes


@module((randn(2, 6), None), (randn(2, 6), (torch.ones(2, 3), torch.ones(2, 3))), tags="cache")
class Cached(nn.Module):
    """Attention's cache: there on the second call."""

    def __init__(self):
        super().__init__()
        self.k = nn.Linear(6, 3)
        self.v = nn.Linear(6, 3)

    def forward(self, x, past=None):
        k, v = self.k(x), self.v(x)
        if past is not None:
            k = torch.cat([past[0], k], dim=0)
            v = torch.cat([past[1], v], dim=0)
        return torch.softmax(k @ k.T, -1) @ v, (k, v)


@module(randn(6, 3), randn(2, 3), randn(20, 3) * 3, tags="k-means")
class KMeans(nn.Module):
    def __init__(self):
        super().__init__()
        self.centers = nn.Parameter(randn(2, 3, seed=5))

    def forward(self, points):
        centers = self.centers
        moved = torch.ones(())
        rounds = 0
        while moved > 1e-3 and rounds < 10:
            nearest = torch.cdist(points, centers).argmin(1)
            new = []
            for i in range(2):
                members = points[nearest == i]
                new.append(members.mean(0) if len(members) > 0 else centers[i])
            after = torch.stack(new)
            moved = (after - centers).norm()
            centers = after
            rounds += 1
        return centers


@module(randn(7), randn(3) * 4, tags="sparse")
class Sparsemax(nn.Module):
    def forward(self, z):
        ordered, _ = torch.sort(z, descending=True)
        total = torch.zeros(())
        support = 0
        for i in range(ordered.shape[0]):
            if 1 + (i + 1) * ordered[i] > total + ordered[i]:
                total = total + ordered[i]
                support += 1
            else:
                break
        return F.relu(z - (total - 1) / support)


@module((torch.tensor(1.0), 0.5), (torch.tensor(-2.0), 2.0), tags="ode")
class AdaptiveStep(nn.Module):
    """An equation solved with steps that become smaller where it is steep."""

    def __init__(self):
        super().__init__()
        self.rate = nn.Parameter(torch.tensor(1.3))

    def slope(self, y):
        return -self.rate * y + torch.sin(3 * y)

    def forward(self, y, end: float):
        t, step, taken = 0.0, 0.25, 0
        while t < end and taken < 100:
            half = y + step / 2 * self.slope(y)
            full = y + step * self.slope(y)
            better = half + step / 2 * self.slope(half)
            if (better - full).abs() > 0.01 and step > 0.01:
                step = step / 2
                continue
            y, t, taken = better, t + step, taken + 1
        return y, taken


@module((randn(3, 4), 5), (randn(2, 4), 2), tags="weights tied recurrent")
class TiedRecurrence(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(4, 6)
        self.decode = nn.Linear(6, 4)
        self.decode.weight = nn.Parameter(self.encode.weight.T.clone())
        self.scale = nn.Parameter(torch.tensor(0.7))

    def forward(self, x, rounds: int):
        history = []
        for i in range(rounds):
            x = x + self.scale ** i * self.decode(F.elu(self.encode(x)))
            history.append(x.norm())
            if i > 0 and history[i] > 1.1 * history[i - 1]:
                x = x / history[i]
        return x, history[-1]
