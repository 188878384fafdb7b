"""Programs that keep something from call to call: buffers, counters, lists, caches by shape, lazy
layers, hooks, parametrizations, tied weights, running statistics."""
import collections
import weakref

import torch
from programs import call, evaluating, ints, made, module, program, randn, training
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, parametrize, weight_norm


@module(randn(2, 4), randn(5, 4), randn(1, 4), tags="buffer assigned")
class RunningMean(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        return x - self.mean


@module(randn(2, 4), randn(5, 4), randn(1, 4), tags="buffer resized")
class GrowingBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(1, 4))

    def forward(self, x):
        self.rows = torch.cat([self.rows, x])
        return self.rows.mean(0), self.rows.shape[0]


@module(randn(2, 4), randn(2, 4), randn(3, 4), tags="counter int branch")
class CountsAndBranches(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return x if self.calls < 2 else x * self.calls


@module(randn(2), randn(2), randn(3), tags="counter int")
class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


@module(randn(2), randn(2), randn(3), tags="history list")
class History(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x):
        self.seen.append(x.sum())
        return torch.stack(self.seen).mean()


@module(randn(2), randn(2), randn(3), tags="history deque")
class LastTwo(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = collections.deque([torch.zeros(()), torch.zeros(())], maxlen=2)

    def forward(self, x):
        self.seen.append(x.sum())
        return sum(self.seen)


@module(randn(2, 3), randn(2, 3, seed=1), randn(4, 3), randn(4, 5), tags="cache by shape",
        captured="guard size")
class ShapeCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.masks = {}

    def forward(self, x):
        key = tuple(x.shape)
        if key not in self.masks:
            self.masks[key] = torch.ones(key).triu()
        return x * self.masks[key]


@module(randn(2, 3), randn(2, 3), randn(4, 3), tags="lazy initialisation")
class LazyBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = None

    def forward(self, x):
        if self.scale is None:
            self.scale = x.abs().max()
        return x / self.scale


@module(randn(2, 8), randn(2, 16), randn(2, 8), tags="position cache grows")
class GrowingTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.longest = 0
        self.table = None

    def forward(self, x):
        n = x.shape[1]
        if n > self.longest:
            self.longest = n
            self.table = torch.arange(n).float().cos()
        return x + self.table[:n]


@module(randn(2, 3), randn(4, 3), tags="lazy linear", captured="refused uninitialized")
class LazyLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.LazyLinear(2)

    def forward(self, x):
        return self.fc(x)


@module(randn(2, 3), randn(4, 3), tags="attributes of children")
class MarksChildren(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        for i, child in enumerate(self.children()):
            x = child(x)
            child.last = x.detach().mean()
            child.order = i
        return x, self.a.last + self.b.last


def note(module, args, output):
    module.seen = getattr(module, "seen", 0) + 1
    return output * 2


def shift(module, args):
    return (args[0] + 1,)


@made(randn(2, 3), randn(4, 3), randn(4, 3), tags="hooks")
def hooked():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    model[0].register_forward_hook(note)
    model[1].register_forward_pre_hook(shift)
    return model


@made(randn(2, 3), randn(4, 3), tags="hook list outside", captured="refused a variable around")
def features_by_hook():
    kept = []

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)
            self.fc.register_forward_hook(lambda m, a, out: kept.append(out))

        def forward(self, x):
            kept.clear()
            y = self.fc(x)
            return y, kept[0] * 2

    return Net()


@module(randn(2, 3), randn(4, 3), tags="hook made and removed in forward")
class TemporaryHook(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        found = {}
        handle = self.fc.register_forward_hook(lambda m, a, out: found.update(y=out))
        self.fc(x)
        handle.remove()
        return found["y"] + 1, len(self.fc._forward_hooks)


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).transpose(-1, -2)


@made(randn(2, 3), randn(4, 3), randn(1, 3), tags="parametrization")
def symmetric():
    fc = nn.Linear(3, 3)
    parametrize.register_parametrization(fc, "weight", Symmetric())
    return nn.Sequential(fc, nn.Tanh())


@made(randn(2, 3), randn(4, 3), randn(1, 3), tags="parametrize cached")
def cached_parametrization():
    fc = nn.Linear(3, 3)
    parametrize.register_parametrization(fc, "weight", Symmetric())

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = fc

        def forward(self, x):
            with parametrize.cached():
                return self.fc(self.fc(x))

    return Net()


@made(training(randn(2, 3)), training(randn(4, 3)), evaluating(randn(4, 3)), tags="spectral_norm")
def spectral():
    return nn.Sequential(parametrizations.spectral_norm(nn.Linear(3, 3)))


@made(training(randn(2, 3)), training(randn(4, 3)), evaluating(randn(4, 3)),
      tags="old spectral_norm")
def old_spectral():
    return nn.Sequential(torch.nn.utils.spectral_norm(nn.Linear(3, 3)))


@made(randn(2, 3), randn(4, 3), tags="weight_norm")
def weight_normed():
    return nn.Sequential(parametrizations.weight_norm(nn.Linear(3, 3)))


@made(randn(2, 3), randn(4, 3), tags="old weight_norm")
def old_weight_normed():
    return nn.Sequential(weight_norm(nn.Linear(3, 3)))


@module(ints(1, 2), ints(0, 1, 3), ints(2), tags="weight tying")
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.embed(ids))


@module(training(randn(4, 3)), training(randn(2, 3)), evaluating(randn(2, 3)),
        training(randn(6, 3)),
        tags="batch norm momentum")
class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.BatchNorm1d(3, momentum=None), nn.BatchNorm1d(3, momentum=0.2)

    def forward(self, x):
        return self.b(self.a(x))


@module(training(randn(4, 3)), training(randn(2, 3)), evaluating(randn(2, 3)),
        tags="functional batch norm")
class FunctionalNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("m", torch.zeros(3))
        self.register_buffer("v", torch.ones(3))

    def forward(self, x):
        return F.batch_norm(x, self.m, self.v, training=self.training, momentum=0.5)


@module(randn(4, 3), randn(2, 3), tags="mode changed in forward")
class EvaluatesInside(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        self.norm.train()
        y = self.norm(x)
        self.norm.eval()
        return y + self.norm(x)


@module(randn(4, 3), randn(2, 3), tags="requires_grad_ in forward")
class Freezes(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        self.a.requires_grad_(False)
        return self.b(self.a(x))


@module(randn(4, 3), randn(2, 3), randn(2, 3), tags="parameter written in forward", train=True)
class MovesWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        with torch.no_grad():
            self.w.mul_(0.5)
        return x * self.w


@module(randn(4, 3), randn(2, 3), randn(2, 3), tags="ema data", train=True)
class ExponentialAverage(nn.Module):
    def __init__(self):
        super().__init__()
        self.live, self.slow = nn.Linear(3, 3), nn.Linear(3, 3)

    @torch.no_grad()
    def update(self):
        for p, q in zip(self.live.parameters(), self.slow.parameters()):
            q.data.mul_(0.9).add_(p.data, alpha=0.1)

    def forward(self, x):
        self.update()
        return self.live(x) - self.slow(x)


@module(randn(3), randn(3), randn(5), tags="state in a plain object")
class StateObject(nn.Module):
    class Memory:
        def __init__(self):
            self.h = torch.zeros(())
            self.steps = 0

    def __init__(self):
        super().__init__()
        self.memory = self.Memory()

    def forward(self, x):
        self.memory.h = self.memory.h * 0.5 + x.sum()
        self.memory.steps += 1
        return self.memory.h, self.memory.steps


@module(randn(2, 3), randn(2, 3), tags="attribute deleted")
class DeletesAttribute(nn.Module):
    def __init__(self):
        super().__init__()
        self.once = torch.ones(3)

    def forward(self, x):
        if hasattr(self, "once"):
            x = x + self.once
            del self.once
        return x * 2


CALLS = {"n": 0}


@module(randn(2), randn(2), randn(3), tags="global counter", captured="refused change")
class CountsGlobally(nn.Module):
    def forward(self, x):
        CALLS["n"] += 1
        return x * CALLS["n"]


TOTAL = torch.zeros(2)


@program(randn(2), randn(2, seed=4), tags="global tensor written")
def writes_global_tensor(x):
    TOTAL.add_(x)
    return TOTAL * 1


LAST = None


@program(randn(2), randn(2, seed=4), tags="global assigned", captured="refused global")
def assigns_global(x):
    global LAST
    LAST = x * 2
    return x


@made(randn(2), randn(2), randn(3), tags="nonlocal counter", captured="refused change")
def counts_in_closure():
    n = 0

    def step(x):
        nonlocal n
        n += 1
        return x * n

    return step


class Base(nn.Module):
    made = 0
    gain = 2.0


@module(randn(2), randn(2), tags="class attribute written",
         captured="refused made, an attribute of the class CountsOnClass")
class CountsOnClass(Base):
    def forward(self, x):
        type(self).made += 1
        return x * type(self).made


def steps():
    n = 1.0
    while True:
        n = yield n * 2


@module(randn(2), randn(2), tags="generator kept",
         captured="refused the position of steps")
class KeepsGenerator(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = iter(range(1, 100))

    def forward(self, x):
        return x * next(self.steps)


@module(randn(2), randn(2), randn(5), tags="module replaced")
class ReplacesLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU()

    def forward(self, x):
        y = self.act(x)
        self.act = nn.Tanh()
        return y


@module(randn(2, 3), randn(4, 3), tags="property setter")
class Settable(nn.Module):
    def __init__(self):
        super().__init__()
        self._scale = 1.0

    @property
    def scale(self):
        return self._scale

    @scale.setter
    def scale(self, value):
        self._scale = value * 2

    def forward(self, x):
        self.scale = self.scale + 1
        return x * self.scale


@module((randn(1, 3), None), (randn(1, 3), randn(1, 3)), (randn(2, 3), randn(2, 3)),
        tags="optional state",
        captured="guard arguments")
class OptionalState(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 3)

    def forward(self, x, h=None):
        h = self.cell(x, h)
        return h, h.detach()


@module(randn(2, 4, 3), randn(1, 4, 3), randn(2, 6, 3), tags="lstm state kept")
class StatefulLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.state = nn.LSTM(3, 3, batch_first=True), None

    def forward(self, x):
        if self.state is not None and self.state[0].shape[1] != x.shape[0]:
            self.state = None
        y, state = self.lstm(x, self.state)
        self.state = tuple(s.detach() for s in state)
        return y
