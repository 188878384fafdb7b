"""Models with decoders, searches and solvers in them, as papers have them."""
import torch
from torch import nn

from . import ints, module, program, randn


@program(randn(6, 4), randn(1, 3), torch.zeros(3, 2), tags="ctc decoding")
def ctc_greedy(logits):
    best = logits.argmax(-1)
    out = []
    previous = -1
    for t in range(best.shape[0]):
        symbol = int(best[t])
        if symbol != previous and symbol != 0:
            out.append(symbol)
        previous = symbol
    return out, len(out)


@program((randn(4), randn(5)), (randn(1), randn(3)), (torch.arange(3.0), torch.arange(3.0)),
         (torch.tensor([0.0, 0.0, 5.0]), torch.tensor([0.0, 5.0])),
         (torch.tensor([0.0, 5.0]), torch.tensor([0.0, 0.0, 5.0])), tags="warping traceback")
def time_warping(a, b):
    n, m = len(a), len(b)
    d = torch.full((n + 1, m + 1), float("inf"))
    d[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = (a[i - 1] - b[j - 1]).abs()
            d[i, j] = cost + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    path = []
    i, j = n, m
    while i > 0 and j > 0:
        path.append((i - 1, j - 1))
        step = torch.argmin(torch.stack([d[i - 1, j - 1], d[i - 1, j], d[i, j - 1]]))
        if step == 0:
            i, j = i - 1, j - 1
        elif step == 1:
            i -= 1
        else:
            j -= 1
    return d[n, m], path[::-1]


@program(([1, 2, 3, 4], [1, 3, 4]), ([], [1, 2]), ([5], [5]), tags="levenshtein lists")
def edit_distance(a: list, b: list):
    previous = list(range(len(b) + 1))
    for i in range(len(a)):
        current = [i + 1]
        for j in range(len(b)):
            if a[i] == b[j]:
                current.append(previous[j])
            else:
                current.append(1 + min(previous[j], previous[j + 1], current[j]))
        previous = current
    return previous[-1]


@program((randn(4, 3), randn(3, 3)), (randn(1, 2), randn(2, 2)), tags="viterbi backpointers")
def viterbi(emissions, transitions):
    score = emissions[0]
    back = []
    for t in range(1, emissions.size(0)):
        best, at = (score.unsqueeze(1) + transitions).max(0)
        back.append(at)
        score = best + emissions[t]
    state = score.argmax()
    path = [state]
    for at in reversed(back):
        state = at[state]
        path.append(state)
    path.reverse()
    return torch.stack(path), score.max()


@program((randn(5, 3), randn(3, 3), ints(1, 1, 1, 0, 0)), (randn(2, 2), randn(2, 2), ints(1, 1)),
         tags="crf zip break")
def crf_forward(emissions, transitions, mask):
    alpha = emissions[0]
    for e, m in zip(emissions[1:], mask[1:]):
        new = torch.logsumexp(alpha.unsqueeze(1) + transitions + e.unsqueeze(0), 0)
        alpha = torch.where(m.bool(), new, alpha)
        if m == 0:
            break
    return alpha.logsumexp(0)


BOXES = torch.tensor([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.1], [5.0, 5.0, 6.0, 6.0]])


@program((BOXES, torch.tensor([0.5, 0.9, 0.1])), (BOXES[:1], torch.ones(1)),
         (torch.zeros(0, 4), torch.zeros(0)), tags="nms while shrink")
def suppress_overlaps(boxes, scores, threshold: float = 0.5):
    area = lambda b: (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1])  # noqa: E731
    order = scores.argsort(descending=True)
    keep = []
    while order.numel() > 0:
        i = order[0]
        keep.append(i)
        if order.numel() == 1:
            break
        rest = order[1:]
        low = torch.max(boxes[i, :2], boxes[rest, :2])
        high = torch.min(boxes[i, 2:], boxes[rest, 2:])
        size = (high - low).clamp(min=0)
        inter = size[:, 0] * size[:, 1]
        iou = inter / (area(boxes[i]) + area(boxes[rest]) - inter + 1e-9)
        order = rest[iou <= threshold]
    return torch.stack(keep) if keep else torch.zeros(0, dtype=torch.long)


@module(randn(1, 4), -randn(1, 4), tags="beam search")
class BeamSearch(nn.Module):
    def __init__(self, vocab=2, width=2, steps=4):
        super().__init__()
        self.cell = nn.Linear(4, 4)
        self.out = nn.Linear(4, vocab)
        self.width, self.steps = width, steps

    def forward(self, h):
        logp = self.out(h).log_softmax(-1)
        scores, tokens = logp.topk(self.width)
        scores, tokens = scores[0], tokens[0].unsqueeze(1)
        hs = h.expand(self.width, -1)
        for step in range(self.steps):
            hs = torch.tanh(self.cell(hs))
            logp = self.out(hs).log_softmax(-1)
            ended = tokens[:, -1] == 0
            if ended.all():
                break
            logp = torch.where(ended.unsqueeze(1), torch.full_like(logp, -1e9), logp)
            logp[:, 0] = torch.where(ended, torch.zeros_like(logp[:, 0]), logp[:, 0])
            total = (scores.unsqueeze(1) + logp).view(-1)
            scores, flat = total.topk(self.width)
            beam, token = flat // logp.size(1), flat % logp.size(1)
            tokens = torch.cat([tokens[beam], token.unsqueeze(1)], 1)
            hs = hs[beam]
        return tokens, scores


@module(randn(6, 3), randn(1, 3), -randn(4, 3), tags="routing capacity continue")
class CapacityRouter(nn.Module):
    def __init__(self, experts=3, capacity=2):
        super().__init__()
        self.gate = nn.Linear(3, experts)
        self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(experts))
        self.capacity = capacity

    def forward(self, x):
        weight, which = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        dropped = 0
        for e, expert in enumerate(self.experts):
            at = (which == e).nonzero().flatten()
            if len(at) > self.capacity:
                dropped += len(at) - self.capacity
                at = at[:self.capacity]
            if len(at) == 0:
                continue
            out[at] = weight[at].unsqueeze(1) * expert(x[at])
        return out, dropped


@module(randn(4, 3), randn(1, 3), tags="pointer mask")
class PointerNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Parameter(torch.ones(3) * 0.3)
        self.w = nn.Linear(3, 3)

    def forward(self, x):
        mask = torch.zeros(x.size(0), dtype=torch.bool)
        q = self.query
        order = []
        logp = 0.0
        for _ in range(x.size(0)):
            s = (self.w(x) @ q).masked_fill(mask, float("-inf")).log_softmax(0)
            i = s.argmax()
            logp = logp + s[i]
            mask = mask.clone()
            mask[i] = True
            q = q + x[i]
            order.append(i.item())
        return order, logp


@module((randn(4), 0, "a"), (-randn(4).abs(), 2, "b"), (randn(4), -1, "a"),
        tags="experts data-index", raises=[((randn(4), 1, "z"), KeyError)])
class ExpertByIndex(nn.Module):
    """Data choose the layer: each is called on a way of its own."""

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(4, 2) for _ in range(3))
        self.heads = nn.ModuleDict({"a": nn.Linear(2, 1), "b": nn.Linear(2, 3)})

    def forward(self, x, i: int, head: str):
        y = self.experts[i](x) + self.experts[x.argmax() % 3](x)
        return self.heads[head](y)


@module(randn(3), -randn(3).abs(), tags="module chosen", refused="use each inside its own branch")
class ChoosesALayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x):
        layer = self.a if x.sum() > 0 else self.b
        return layer(x)


TREE = (((0, 1), 2), (3, (4,)))


@module(randn(5, 3), -randn(5, 3) * 9, tags="tree recursion")
class StaticTree(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf = nn.Linear(3, 4)
        self.join = nn.Linear(8, 8)

    def node(self, tree, x):
        if isinstance(tree, int):
            h = self.leaf(x[tree])
            return h, torch.zeros_like(h)
        if len(tree) == 1:
            return self.node(tree[0], x)
        (hl, cl), (hr, cr) = (self.node(t, x) for t in tree)
        i, f = self.join(torch.cat([hl, hr])).chunk(2)
        c = torch.sigmoid(f) * (cl + cr) + torch.sigmoid(i)
        if c.mean() > 0.6:
            c = c * 0.5
        return torch.tanh(c), c

    def forward(self, x):
        return self.node(TREE, x)[0]


@program(randn(3), randn(5), torch.ones(1), tags="hypotheses tuples")
def beams_of_lists(x):
    beams = [(0.0, [])]
    for v in x:
        grown = []
        for score, seq in beams:
            for choice in (0, 1):
                grown.append((score + (v if choice else -v), seq + [choice]))
        beams = grown[:2]
    return beams[0][0], beams[0][1]


@program(randn(3, 3) + 3 * torch.eye(3), torch.tensor([[0.0, 1.0], [2.0, 3.0]]),
         torch.ones(1, 1) * 4, tags="lu pivots swap-rows")
def lu_with_pivots(a):
    n = a.shape[0]
    u, low = a.clone(), torch.eye(n)
    order = list(range(n))
    for k in range(n):
        p = int(u[k:, k].abs().argmax()) + k
        if p != k:
            u[[k, p]] = u[[p, k]]
            low[[k, p], :k] = low[[p, k], :k]
            order[k], order[p] = order[p], order[k]
        for i in range(k + 1, n):
            low[i, k] = u[i, k] / u[k, k]
            u[i] -= low[i, k] * u[k]
    return low, u, order


@program(randn(4, 3), randn(3, 3), torch.ones(3, 2), tags="gram-schmidt list grown")
def gram_schmidt(a):
    q = []
    for j in range(a.shape[1]):
        v = a[:, j].clone()
        for u in q:
            v -= (u @ v) * u
        norm = v.norm()
        if norm > 1e-6:
            q.append(v / norm)
    return torch.stack(q, 1), len(q)


@program(ints(4, 7, 1, 3, 12), ints(15), tags="rejection while-true in-for")
def rejection(numbers):
    state, tries = 17, 0
    out = []
    for n in numbers:
        while True:
            state = (state * 75 + 74) % 65537
            tries += 1
            if state % 16 < n:
                break
        out.append(state)
    return out, tries


@program(torch.tensor([3.0, 1.0, 2.0]), torch.tensor([1.0]), torch.tensor([5.0, 5.0, 1.0, 9.0]),
         tags="quicksort stack pop")
def quicksort(x):
    x = x.clone()
    stack = [(0, len(x) - 1)]
    while stack:
        lo, hi = stack.pop()
        if lo >= hi:
            continue
        pivot, k = x[hi].clone(), lo
        for i in range(lo, hi):
            if x[i] < pivot:
                t = x[i].clone()
                x[i] = x[k]
                x[k] = t
                k += 1
        x[hi] = x[k]
        x[k] = pivot
        stack.append((lo, k - 1))
        stack.append((k + 1, hi))
    return x


@program((randn(3), 7), (randn(3), 12), (randn(3), 1), tags="sieve nested-range step")
def primes(x, n: int):
    sieve = [True] * (n + 1)
    found = []
    for p in range(2, n + 1):
        if sieve[p]:
            found.append(p)
            for q in range(p * p, n + 1, p):
                sieve[q] = False
    return found, x * len(found)


@program(randn(5), -randn(4).abs(), torch.zeros(3), tags="patience schedule")
def stops_when_stuck(x):
    lr, best, wait = 0.1, float("inf"), 0
    for epoch in range(20):
        loss = (x * x).sum()
        if loss < best - 1e-3:
            best, wait = loss.item(), 0
        else:
            wait += 1
            if wait > 2:
                break
        x = x - lr * 2 * x
        lr *= 0.9 if epoch % 2 else 1.1
    return x, epoch, best, lr


@program((randn(6), ints(0, 0, 1, 1, 1, 3)), (randn(1), ints(2)), tags="segments counts")
def segment_sums(x, ids):
    n = int(ids.max()) + 1
    out = torch.zeros(n)
    counts = [0] * n
    for i in range(len(ids)):
        k = ids[i].item()
        out[k] += x[i]
        counts[k] += 1
    return out, counts
