"""Programs that keep something from call to call, and that run in C as well: counters, caches,
statistics, structures of tensors and numbers in attributes."""
import collections
import dataclasses

import torch
from programs import evaluating, ints, module, program, randn, training
from torch import nn
from torch.nn import functional as F


@module(randn(2, 3), randn(4, 3), randn(1, 3), tags="counter float int")
class Schedule(nn.Module):
    """A learning rate that decays, and a step."""

    def __init__(self):
        super().__init__()
        self.step, self.rate = 0, 1.0
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        self.step += 1
        self.rate = self.rate * 0.5 + 1 / (1 + self.step)
        return self.fc(x) * self.rate, self.step


@module(randn(2, 1, 4), randn(2, 3, 4), randn(2, 1, 4), randn(2, 2, 4), tags="key value cache")
class CachedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(4, 4) for _ in range(3))
        self.keys, self.values = torch.zeros(2, 0, 4), torch.zeros(2, 0, 4)

    def forward(self, x):
        self.keys = torch.cat([self.keys, self.k(x)], 1)
        self.values = torch.cat([self.values, self.v(x)], 1)
        scores = self.q(x) @ self.keys.transpose(1, 2) / 2
        return scores.softmax(-1) @ self.values, self.keys.shape[1]


@module(randn(2, 4), randn(2, 4), randn(2, 4), tags="preallocated cache position")
class Preallocated(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(8, 2, 4))
        self.position = 0

    def forward(self, x):
        self.cache[self.position] = x
        self.position += 1
        return self.cache[: self.position].sum(0), self.position


@module(randn(3, 2), randn(5, 2), randn(1, 2), tags="dict of statistics")
class Statistics(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = {"count": 0, "mean": torch.zeros(2), "extremes": (torch.zeros(2), 0.0)}

    def forward(self, x):
        n = x.shape[0]
        total = self.seen["count"] + n
        mean = (self.seen["mean"] * self.seen["count"] + x.sum(0)) / total
        top, best = self.seen["extremes"]
        self.seen = {"count": total, "mean": mean,
                     "extremes": (torch.maximum(top, x.amax(0)), best + 0.5)}
        return mean, self.seen


@module(randn(3), randn(3), randn(3), tags="list of fixed length")
class Momentum(nn.Module):
    def __init__(self):
        super().__init__()
        self.terms = [torch.zeros(3), torch.zeros(3)]

    def forward(self, g):
        first, second = self.terms
        self.terms = [0.9 * first + 0.1 * g, 0.99 * second + 0.01 * g * g]
        return self.terms[0] / (self.terms[1].sqrt() + 1e-3)


@module(randn(3), randn(3), randn(3), randn(3), tags="list in place")
class InPlaceItems(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = [torch.zeros(3), torch.zeros(3)]
        self.turn = 0

    def forward(self, x):
        self.last[0], self.last[1] = self.last[1], x
        self.turn = (self.turn + 1) % 3
        return self.last[0] - self.last[1], self.turn


@dataclasses.dataclass
class Memory:
    hidden: torch.Tensor
    steps: int = 0


@module(randn(2, 3), randn(2, 3), randn(2, 3), tags="dataclass attribute")
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(6, 3)
        self.memory = Memory(torch.zeros(2, 3))

    def forward(self, x):
        hidden = self.cell(torch.cat([x, self.memory.hidden], 1)).tanh()
        self.memory = Memory(hidden, self.memory.steps + 1)
        return hidden * self.memory.steps


@module(randn(2, 3), randn(2, 3), randn(2, 3), tags="dataclass changed in place")
class RecurrentInPlace(Recurrent):
    def forward(self, x):
        self.memory.hidden = self.cell(torch.cat([x, self.memory.hidden], 1)).tanh()
        self.memory.steps += 1
        return self.memory.hidden.sum() * self.memory.steps


State = collections.namedtuple("State", "h c")


@module(randn(2, 3), randn(2, 3), randn(2, 3), tags="named tuple lstm cell")
class KeepsState(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)
        self.state = State(torch.zeros(2, 4), torch.zeros(2, 4))

    def forward(self, x):
        self.state = State(*self.cell(x, (self.state.h, self.state.c)))
        return self.state.h


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 2
        return x + self.calls


@module(randn(3), randn(4), randn(1), tags="counters of children shared child")
class Children(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Inner(), Inner()

    def forward(self, x):
        return self.a(self.b(self.a(x)))


@module(randn(2, 3), randn(3, 3), randn(2, 3), tags="counter decides")
class EveryThird(nn.Module):
    """What a counter decides is checked on entry."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * 2 if self.calls % 3 == 0 else x + self.calls


@module(randn(2, 3), randn(2, 3), randn(2, 3), tags="none at first")
class NoneAtFirst(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = None

    def forward(self, x):
        self.hidden = x if self.hidden is None else 0.5 * self.hidden + x
        return self.hidden


@module(randn(2, 3), -randn(2, 3), randn(2, 3), tags="data decides counter")
class CountsPositives(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("positives", torch.zeros((), dtype=torch.int64))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.positives += (x > 0).sum()
        return x * self.calls, self.positives / self.calls


@module(randn(2, 3), randn(2, 5), randn(1, 4), tags="keeps the argument")
class KeepsArgument(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.zeros(1, 1)

    def forward(self, x):
        before, self.last = self.last.sum(), x
        return x + before


@module(randn(3, 4), randn(3, 4), randn(3, 4), tags="view of state returned")
class GivesViews(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.zeros(3, 4)

    def forward(self, x):
        self.table = self.table * 0.5 + x
        return self.table[0], self.table.T


@module(randn(3, 4), randn(3, 4), randn(3, 4), tags="same tensor twice")
class SharesTensors(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = self.b = torch.zeros(4)

    def forward(self, x):
        self.a = self.a + x.sum(0)
        self.b = self.a
        return self.a + self.b


@module(ints(1, 2, 2), ints(0, 1), ints(2), tags="integer state")
class Histogram(nn.Module):
    def __init__(self):
        super().__init__()
        self.counts = torch.zeros(3, dtype=torch.int64)

    def forward(self, ids):
        self.counts = self.counts + torch.nn.functional.one_hot(ids, 3).sum(0)
        return self.counts.argmax(), self.counts


@module(training(randn(4, 3)), training(randn(6, 3)), training(randn(2, 3)),
        tags="batch norm training counter")
class NormAndCounter(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.norm(x) * self.calls


@module(evaluating(randn(4, 3)), evaluating(randn(6, 3)), tags="moving average of a parameter")
class Ema(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.shadow, self.decay = torch.zeros(3, 3), 0.5

    def forward(self, x):
        self.shadow = self.decay * self.shadow + (1 - self.decay) * self.fc.weight.detach()
        self.decay = min(0.9, self.decay * 1.25)
        return F.linear(x, self.shadow, self.fc.bias)


@module(randn(2, 3), randn(2, 3), randn(2, 3), tags="ordered dict deque")
class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.recent = collections.deque([torch.zeros(3)] * 2, maxlen=2)
        self.named = collections.OrderedDict(total=torch.zeros(3), steps=0)

    def forward(self, x):
        self.recent.append(x.sum(0))
        self.named["total"] = self.named["total"] + self.recent[0]
        self.named["steps"] = self.named["steps"] + 1
        return self.named["total"] / self.named["steps"], list(self.recent)


@module((randn(2, 3), {"h": torch.zeros(2, 3)}), (randn(2, 3), {"h": torch.ones(2, 3)}),
        (randn(4, 3), {"h": torch.ones(4, 3)}), tags="argument changed and counter")
class ChangesArgument(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x, state):
        self.calls += 1
        state["h"] = state["h"] + x * self.calls
        state["calls"] = self.calls
        return {"out": state["h"].relu(), "state": state}


@program((randn(2, 3), [torch.zeros(2, 3)]), (randn(4, 3), [torch.ones(4, 3)]),
         tags="list argument grows")
def appends(x, seen):
    seen.append(x + seen[-1])
    return seen[-1].sum()


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    mask: torch.Tensor
    scale: float = 1.0


@program(Batch(randn(2, 3), torch.ones(2, 1)), Batch(randn(4, 3), torch.zeros(4, 1), 2.0),
         Batch(randn(1, 3), torch.ones(1, 1), 0.5), tags="dataclass in and out")
def batched(batch):
    return Batch(batch.x * batch.mask * batch.scale, batch.mask, batch.scale * 2)


@program((randn(2), collections.OrderedDict(x=torch.zeros(2))),
         (randn(3), collections.OrderedDict(x=torch.ones(3))), tags="OrderedDict argument changed")
def fills_ordered(x, d):
    d["y"] = x * 2
    d["x"] = d["x"] + 1
    return d["x"] + d["y"]


@program((randn(2), collections.defaultdict(list, x=[torch.zeros(2)])),
         (randn(3), collections.defaultdict(list, x=[torch.ones(3)])),
         tags="defaultdict argument changed")
def fills_default(x, d):
    d["y"].append(x * 2)
    d["x"].append(x)
    return d["x"][0] + d["y"][0]
