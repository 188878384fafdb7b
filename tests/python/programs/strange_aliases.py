"""One tensor under several names: views, buffers, lists, and what branches do to them."""
import torch
from torch import nn

from . import module, program, randn


@program(randn(4), -randn(4), tags="view in-place branch", mutates=True)
def views_on_both_ways(x):
    v = x[1:3]
    w = x.view(2, 2)
    if x.sum() > 0:
        v += 10
        w[0, 0] = 5
    else:
        v.mul_(2)
        v = v + 1
        v += 100
    x[0] += v[0]
    return v, w


@program((randn(4), randn(4)), (-randn(4), randn(4)), tags="chosen in-place", mutates=True)
def writes_to_what_was_chosen(x, y):
    t = x if x.sum() > 0 else y
    t += 1
    t[0] = 7
    return x + y


@program((randn(4), randn(4)), (-randn(4), randn(4)), tags="swap in-place while", mutates=True)
def swaps_and_writes(x, y):
    a, b = x, y
    while a.sum() < 5:
        a, b = b, a
        a += 1
        b *= 0.5
        b = b + 2
    return a, b


@program(randn(3, 3), torch.zeros(2, 2), tags="rows in-place for", mutates=True)
def writes_to_rows(x):
    for row in x:
        row += 1
        row[0] = 9
    for i, row in enumerate(x):
        if row.sum() > 12:
            x[i] = -row
    return x.sum()


@program(randn(4, 4), torch.zeros(2, 2), tags="diagonal transpose in-place", mutates=True)
def writes_through_a_transpose(x):
    d = x.diagonal()
    d.fill_(1.0)
    for i in range(x.size(0)):
        for j in range(i):
            x[i, j], x[j, i] = x[j, i].clone(), x[i, j].clone()
    x.t()[0].mul_(2)
    return d


@program((randn(3), 1), (-randn(3).abs(), 3), tags="view chosen")
def view_after_a_branch(x, n: int):
    grid = torch.zeros(2, 3)
    row = grid[0]
    if x.sum() > 0:
        row = grid[1]
    for _ in range(n):
        row += x
    return grid


@program((randn(3), 1), (-randn(3).abs(), 3), (randn(3), 0), tags="views list loop")
def list_of_views(x, n: int):
    data = torch.zeros(3)
    cells = [data[0:1], data[1:2], data[2:3]]
    for i in range(n):
        cells[1] += x[i % 3]
        cells[0].add_(1)
    return data, cells[1]


@program(randn(4, 2), torch.zeros(1, 2), tags="dict alias loop")
def two_keys_for_a_tensor(x):
    out = {"a": torch.zeros(2)}
    out["b"] = out["a"]
    for row in x:
        out["a"] += row
        if row[0] > 0:
            out["b"] = out["b"] + 1
    return out, out["a"] is out["b"]


@program(randn(3), -randn(3).abs(), tags="tuple list alias")
def list_inside_a_tuple(x):
    a = x.clone()
    t = (a, [a])
    t[1][0] += 1
    if t[0].sum() > 1:
        t[1][0] = t[1][0] * 2
    t[1][0] -= 1
    return a, t


@module(randn(3), -randn(3), randn(3, seed=1), tags="buffer delay")
class DelayLine(nn.Module):
    """Gives what it was given before: the old tensor, not what the buffer becomes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(3))
        self.register_buffer("before", torch.ones(3))

    def forward(self, x):
        old, older = self.last, self.before[:2]
        self.last, self.before = x.clone(), old
        return old, older


@module(randn(3), -randn(3), randn(3, seed=1), tags="buffer count")
class CountsSteps(nn.Module):
    """What data decide of the numbers beside a buffer is no part of its memory."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))

    def forward(self, x):
        n = 0
        while x.sum() < 2:
            x = x.abs() + 1 + self.seen
            n += 1
        which = 1 if x.norm() > 3 else 0
        self.seen = self.seen + n
        return self.layers[which](x), n, which


@module(randn(3), -randn(3), randn(3, seed=1), tags="buffer chosen loop")
class KeepsOld(nn.Module):
    """The old tensor is one that a branch chooses, or that a loop carries."""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(3))

    def forward(self, x):
        shown, carried = self.last if x.sum() > 0 else x, x
        for i in range(int(x.abs().sum())):
            carried = self.last[1:] if x[0] > 0 else carried * i
        self.last = x * 2
        return shown, carried


@module(randn(3), -randn(3), tags="buffer chosen",
        refused="depending on data, this is a buffer that is assigned to")
class OldOrNumber(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(3))

    def forward(self, x):
        shown = self.last if x.sum() > 0 else 0.0
        self.last = x * 2
        return shown


@module(randn(3), -randn(3), randn(3, seed=1), tags="buffers swap")
class SwapsBuffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.zeros(3))
        self.register_buffer("b", torch.ones(3))

    def forward(self, x):
        if x.sum() > 0:
            self.a, self.b = self.b, self.a
        return self.a + x, self.b * 2


@module(randn(3), -randn(3), randn(3, seed=1), tags="buffer in-place assigned")
class WritesAndAssigns(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(3))
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x):
        s = self.state
        s += x
        if s.sum() > 0.5:
            self.state = s * 0.5
            self.steps += 1
        return s.clone(), self.state * 1, self.steps + 0


@module(randn(4, 3), -randn(2, 3) * 3, randn(1, 3), tags="statistics training no_grad", train=True)
class RunningMean(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        if self.training and x.size(0) > 1:
            m = x.mean(0)
            if self.count == 0:
                self.mean.copy_(m)
            elif m.abs().max() > 0.5:
                self.mean.lerp_(m, 0.1)
            else:
                self.mean = self.mean * 0.9  # never
            self.count += 1
        return x - self.mean, self.count.clone()


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(()))

    def forward(self, x):
        self.n = self.n + 1
        return x * self.n


@module(randn(3), -randn(3), randn(3), tags="buffer submodule twice")
class CallsItThrice(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Counted()

    def forward(self, x):
        a = self.sub(x)
        b = self.sub(x)
        if a.sum() > 0:
            b = self.sub(b)
        return a, b, self.sub.n + 0


@module(randn(3), -randn(3), randn(3), tags="buffer view assigned")
class KeepsTheLastRow(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.arange(6.0).view(2, 3))

    def forward(self, x):
        row, t = self.rows[0], self.rows.t()
        self.rows = torch.stack([x, row])
        return row, t[0] * 1, [row * 2], {"a": t.sum()}


@module(randn(3), -randn(3), randn(3), tags="buffers one-tensor")
class TwoBuffersOneTensor(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.zeros(3))
        self.register_buffer("b", torch.zeros(3))

    def forward(self, x):
        self.a.add_(x)
        t = self.a
        self.b = t
        self.a = t * 2
        t.add_(1)
        return self.a + 0, self.b + 0
