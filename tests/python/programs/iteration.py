"""What can be looped over: ranges, enumerate, zip, rows of tensors, containers of modules."""
import itertools

import torch
from torch import nn

from . import module, program, randn


@program(randn(4, 3), randn(1, 3), randn(6, 3), tags="rows")
def rows(x):
    best = x[0]
    for row in x:
        if row.sum() > best.sum():
            best = row
    return best


@program(randn(4, 3), randn(2, 2), tags="enumerate rows")
def enumerate_rows(x):
    total = torch.zeros(x.shape[1])
    for i, row in enumerate(x):
        if row[0] > 0:
            total = total + i * row
    for i, row in enumerate(x, start=1):
        total = total - row / i
    return total


@program((randn(3, 2), randn(3, 2, seed=1)), (randn(1, 4), randn(1, 4)),
         (randn(5, 2), randn(2, 2)), tags="zip rows")
def zip_rows(a, b):
    total = torch.zeros(a.shape[1])
    for u, v in zip(a, b):
        total = total + (u if u.norm() > v.norm() else v)
    return total


@program(randn(4, 3), randn(2, 2), tags="reversed rows")
def reversed_rows(x):
    state = torch.zeros(x.shape[1])
    out = []
    for i in reversed(range(x.shape[0])):
        state = state * 0.5 + x[i]
        out.append(state)
    out.reverse()
    return torch.stack(out)


@program(randn(3), randn(2, 2), tags="static enumerate zip reversed")
def static_iterables(x):
    for i, factor in enumerate(reversed([1.0, 2.0, 3.0])):
        x = x * factor + i
    for name, (low, high) in zip(("a", "b"), [(0, 1), (2, 3)]):
        x = x + low * high if name == "b" else x
    for a, b in itertools.product((1, 2), (3, 4)):
        x = x + a * b if x.sum() < 100 else x
    return x


@program(randn(2, 3, 2), randn(1, 2, 4), tags="rows nested")
def rows_of_rows(x):
    total = torch.zeros(())
    for matrix in x:
        for row in matrix:
            total = total * 0.5 + row.max()
    return total


@program(randn(6, 2), randn(5, 2), randn(2, 2), tags="unbind split chunk")
def parts_of_tensors(x):
    total = torch.zeros(2)
    for row in x.unbind(0):
        total = total + row.relu()
    for part in x.split(2):
        total = total + part.mean(0)
    for part in torch.chunk(x, 2):
        total = total * part.shape[0]
    return total


@program((randn(3, 2), [1.0, 2.0, 3.0]), (randn(2, 2), [0.5, -1.0]), tags="zip list")
def rows_and_numbers(x, weights: list[float]):
    total = torch.zeros(x.shape[1])
    for row, weight in zip(x, weights):
        if weight > 0:
            total = total + row * weight
    return total


@module(randn(3, 4) * 5, torch.zeros(1, 4), tags="sequential")
class OverSequential(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i == 1 and x.sum() < 1:
                x = x + 1
        return x + self.layers[0].bias[:4] * len(self.layers)


@module((randn(3, 4), 2), (randn(1, 4), 0), (randn(2, 4), 3), tags="modulelist index")
class OverModuleList(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)])
        self.skips = nn.ParameterList([nn.Parameter(torch.full((), 0.1 * i)) for i in range(3)])

    def forward(self, x, depth: int):
        for i, (layer, skip) in enumerate(zip(self.layers, self.skips)):
            if i < depth:
                x = layer(x) + skip * x
        for layer in reversed(self.layers):
            x = layer(x)
        return x


@module(randn(3, 4), -randn(2, 4).abs(), tags="moduledict")
class OverModuleDict(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({"mean": nn.Linear(4, 1), "spread": nn.Linear(4, 1)})
        self.scales = nn.ParameterDict({"mean": torch.ones(()), "spread": torch.full((), 2.0)})

    def forward(self, x):
        out = {}
        for name, head in self.heads.items():
            y = head(x) * self.scales[name]
            out[name] = y if name == "mean" or y.sum() > 0 else torch.exp(y)
        if "mean" in self.heads:
            out["again"] = self.heads["mean"](x)
        return out


@module(randn(2, 4), randn(5, 4), tags="named-parameters children")
class OverItself(nn.Module):
    """A penalty on all its own weights."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.second = nn.Linear(3, 2)

    def forward(self, x):
        penalty = torch.zeros(())
        for name, parameter in self.named_parameters():
            if name.endswith("weight"):
                penalty = penalty + parameter.pow(2).sum()
        for child in self.children():
            x = child(x)
        return x if penalty > 100 else x + penalty


@program((randn(5), torch.tensor([3, 0, 2])), (randn(2), torch.tensor([1])), tags="tensor tolist")
def over_tolist(x, order):
    out = torch.zeros(())
    for position, index in enumerate(order.tolist()):
        out = out + x[index] * position
    return out


@program(randn(4), randn(1), randn(7), tags="iter next")
def pairs_of_neighbours(x):
    total = torch.zeros(())
    previous = None
    for value in x:
        if previous is not None:
            total = total + (value - previous).abs()
        previous = value
    return total


@program((randn(3), 3), (randn(2), 0), tags="list range zip enumerate reversed")
def lists_of_heads(x, n: int):
    order = list(range(n))
    order.append(7)
    pairs = list(zip(order, x))
    return order, pairs, list(reversed(order)), list(enumerate(order, 1)), tuple(range(0, n, 2))


@program({"a": randn(2), "b": randn(2)}, {"z": -randn(2)}, tags="dict input items")
def goes_over_a_dict(table):
    total, names = torch.zeros(2), []
    for name, value in table.items():
        total = total + value
        names.append(name)
    for name in table.keys():
        if table[name].sum() > 0:
            total = total * 2
    return total, names, [value.sum() for value in table.values()]
