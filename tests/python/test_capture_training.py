"""Captured models are trained as the models themselves: fifty steps of forward, loss, backward and
optimizer, with every fifth step evaluated in between. The kernels run in the same order, so losses,
gradients, parameters and buffers are the same to the last bit."""
import copy

import pytest

torch = pytest.importorskip("torch")
from torch import nn
from torch.nn import functional as F

import cfx

STEPS = 50


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))

    def forward(self, x):
        return F.dropout(self.layers(x), 0.1, self.training)

    @staticmethod
    def batch(rows):
        return torch.randn(rows, 6), torch.randint(3, (rows,))


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.shortcut = None
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu_()))
        y += x if self.shortcut is None else self.shortcut(x)
        return F.relu(y, inplace=True)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.blocks = nn.ModuleList([Block(4, 4, 1), Block(4, 8, 2)])
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))

    @staticmethod
    def batch(rows):
        return torch.randn(rows, 3, 8, 8), torch.randint(3, (rows,))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def attend(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5).softmax(-1)
        weights = F.dropout(weights, 0.2, self.training)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.first(x))
        y = self.down(F.gelu(self.up(self.second(x))))
        return x + F.dropout(y, 0.1, training=self.training)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(11, 8), nn.Embedding(16, 8)
        self.layers = nn.ModuleList(Layer(8, 2) for _ in range(2))
        self.head = nn.Linear(8, 3)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))

    @staticmethod
    def batch(rows):
        return torch.randint(11, (rows, 4 + rows % 3)), torch.randint(3, (rows,))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 6, 2, batch_first=True, dropout=0.2)
        self.gru = nn.GRU(6, 6, batch_first=True)
        self.cell, self.head = nn.GRUCell(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        y, (hidden, _) = self.lstm(x)
        y, _ = self.gru(y)
        return self.head(self.cell(y[:, -1], hidden[0]))

    @staticmethod
    def batch(rows):
        return torch.randn(rows, 3 + rows % 3, 5), torch.randint(3, (rows,))


class Tied(nn.Module):
    """The table of words is also the last layer, and counts its calls in a buffer."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 7, padding_idx=0)
        self.mix = nn.Linear(7, 7)
        self.head = nn.Linear(7, 9, bias=False)
        self.head.weight = self.words.weight
        self.register_buffer("mean", torch.zeros(7))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, ids):
        x = torch.tanh(self.mix(self.words(ids))).mean(1)
        if self.training:
            self.calls += 1
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return self.head(x - self.mean)

    @staticmethod
    def batch(rows):
        return torch.randint(9, (rows, 5)), torch.randint(9, (rows,))


MODELS = [Mlp, ResNet, Transformer, Recurrent, Tied]


def captured(model):
    return cfx.capture(model, model.batch(4)[0])


def captured_evaluating(model):
    gm = cfx.capture(model.eval(), model.batch(4)[0])
    model.train()
    return gm.train()


def captured_both(model):
    return cfx.capture(model, model.batch(4)[0], modes="both")


class Called(nn.Module):
    """A model whose forward is a cfx.function."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.call = cfx.function(model.forward)

    def forward(self, x):
        return self.call(x)

    def named_parameters(self, *args, **kwargs):
        return self.model.named_parameters(*args, **kwargs)

    def named_buffers(self, *args, **kwargs):
        return self.model.named_buffers(*args, **kwargs)


WAYS = {"capture": captured, "from evaluation": captured_evaluating, "both": captured_both,
        "function": Called}  # fmt: skip


def state_of(model):
    """Parameters, their gradients, and buffers, by name."""
    found = dict(model.named_parameters())
    found |= {f"{name}.grad": p.grad for name, p in found.items() if p.grad is not None}
    return {**found, **dict(model.named_buffers())}


def history(model, batches, optimizer, seed):
    """Trains a model; the losses, the results of evaluations, and all states at some steps."""
    torch.manual_seed(seed)
    optimizer = optimizer(model.parameters())
    losses, results, states = [], [], []
    for step, (x, y) in enumerate(batches):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().clone())
        if step % 5 == 0:
            model.eval()
            with torch.no_grad():
                results.append(model(x))
            states.append({k: v.detach().clone() for k, v in state_of(model).items()})
    return losses, results, states


def momentum(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-4)


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=1e-2)


@pytest.mark.parametrize("optimizer", [momentum, adam])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", MODELS)
def test_fifty_steps(make, way, optimizer):
    torch.manual_seed(1)
    model = make()
    batches = [make.batch(2 + step % 5) for step in range(STEPS)]  # the example has four rows
    twin = copy.deepcopy(model)
    module = WAYS[way](model)
    want = history(twin, batches, optimizer, 2)
    got = history(module, batches, optimizer, 2)
    assert len(set(map(float, want[0]))) == STEPS  # something is learned
    for mine, theirs in zip(got[:2], want[:2]):
        assert len(mine) == len(theirs)
        assert all(map(torch.equal, mine, theirs))
    assert len(got[2]) == STEPS // 5
    for mine, theirs in zip(got[2], want[2]):
        assert mine.keys() == theirs.keys()
        different = [name for name in mine if not torch.equal(mine[name], theirs[name])]
        assert not different


@pytest.mark.parametrize("make", MODELS[:-1])  # the last one makes a new buffer in each step
def test_the_model_and_its_graph_share_what_they_train(make):
    """Parameters and buffers are those of the model: steps may be taken with either."""
    torch.manual_seed(1)
    model = make()
    gm = captured(model)
    mine, theirs = dict(gm.named_parameters()), dict(model.named_parameters())
    assert mine.keys() == theirs.keys() and all(mine[name] is theirs[name] for name in mine)
    batches = [make.batch(3) for _ in range(6)]
    twin = copy.deepcopy(model)
    torch.manual_seed(3)
    optimizers = momentum(model.parameters()), momentum(twin.parameters())
    for step, (x, y) in enumerate(batches):
        for one, optimizer in zip((gm if step % 2 else model, twin), optimizers):
            torch.manual_seed(step)
            optimizer.zero_grad()
            F.cross_entropy(one(x), y).backward()
            optimizer.step()
    now, want = state_of(model), state_of(twin)
    assert now.keys() == want.keys()
    assert not [name for name in want if not torch.equal(now[name], want[name])]
