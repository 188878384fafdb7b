"""Assignments: augmented, chained, to items and attributes, the walrus, del."""
import torch
from torch import nn

from . import module, program, randn


@program(randn(3), -randn(2, 2).abs(), tags="augassign name")
def augmented(x):
    y = x + 0
    y += 1
    y *= 2
    y -= x.mean()
    y /= 3
    if y.sum() > 0:
        y **= 2
    n = 7
    n //= 2
    n %= 2
    n <<= 3
    return y, n


@program(randn(3), -randn(4).abs(), tags="augassign alias", mutates=True)
def augmented_in_place(x):
    """+= writes to the tensor that the caller holds."""
    y = x
    y += 1
    if y.sum() > 0:
        y *= 2
    return x


@program((randn(4, 3), 1), (randn(2, 5), 0), tags="subscript", mutates=True)
def to_items(x, row: int):
    x[row] = 0
    x[:, 0] += 10
    x[x > 5] = 5
    if x.sum() > 0:
        x[-1, 1:] *= -1
    return x.sum(0)


@program(randn(3), -randn(3).abs(), tags="chained")
def chained(x):
    a = b = x * 2
    if x.sum() > 0:
        a = a + 1
    c, d = e = (a, b)
    return a, b, c - d, e[0]


@program(randn(5), -randn(4).abs(), tags="walrus")
def walrus(x):
    if (total := x.sum()) > 0:
        y = x / total
    else:
        y = x - total
    while (norm := y.norm()) > 0.5:
        y = y * 0.5
    return y, norm, [(square := x * x), square + 1]


@program(randn(3), randn(2, 2), tags="del")
def deletes(x):
    temporary = x * 2
    y = temporary + 1
    del temporary
    table = {"a": y, "b": x}
    del table["b"]
    values = [x, y, x]
    del values[0]
    if x.sum() > 0:
        temporary = y * 3
        y = temporary
    return y, table, values


@program((randn(3) + 5, randn(3, seed=1)), (-randn(2).abs(), randn(2)), tags="swap")
def swaps(a, b):
    if a.sum() > b.sum():
        a, b = b, a
    (a, b), c = (b, a), a + b
    return a, b, c


@module(randn(2, 3), randn(4, 3), -randn(1, 3).abs(), tags="attribute buffer")
class KeepsMean(nn.Module):
    """Writes to a buffer in place, as batch norm does."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        if x.sum() > 0:
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            self.seen += 1
        return x - self.mean, self.seen.clone()


@module(randn(2, 3), randn(2, 3) * 4, -randn(2, 3).abs(), tags="attribute assign")
class Replaces(nn.Module):
    """Puts a new tensor in the place of a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("hidden", torch.zeros(2, 3))

    def forward(self, x):
        hidden = torch.tanh(self.hidden + x)
        if hidden.max() > 0.5:
            self.hidden = hidden
        return self.hidden * 2


@module(randn(2), randn(3), -randn(2).abs(), tags="attribute number",
        refused="cannot assign to attribute 'calls' of Counts")
class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if x.sum() > 0:
            self.calls += 10
        return x * self.calls, self.calls


@program(randn(3), randn(2, 2), tags="annotated")
def annotated(x):
    y: torch.Tensor = x * 2
    n: int
    n = 3 if x.sum() > 0 else 4
    z: list[torch.Tensor] = []
    z.append(y * n)
    return z


@program(randn(6), -randn(4).abs(), tags="nested target")
def nested_targets(x):
    out = [None, None]
    (out[0], (a, b)), c = (x, (x + 1, x + 2)), x + 3
    out[1] = a if x.sum() > 0 else b
    for i, (left, right) in enumerate([(a, b), (b, c)]):
        out[i] = out[i] + left - right
    return out


@program((randn(3), 3), (randn(2), 0), tags="shadow")
def shadows_builtins(input, max: int):
    sum = input * 0
    for type in range(max):
        sum = sum + type
    return sum + input


@program((torch.arange(6.0), 2.5), (torch.arange(3.0), -1.0), tags="in-place methods",
         mutates=True)
def method_chain(x, limit: float):
    x.clamp_(max=limit).neg_()
    y = x.view(-1)
    y[0] = 100.0
    return x + 0


@program((randn(3), 3), (randn(2), 0.5), tags="augassign alias number")
def two_names_for_a_number(x, n):
    before = n
    n += 1
    return x, before, n
