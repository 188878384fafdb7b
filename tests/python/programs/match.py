"""match: by values, sequences, mappings, classes, guards."""
import torch
from torch import nn

from . import made, program, randn


@program((randn(3), 0), (randn(3), 1), (randn(2), 2), (randn(2), 9), tags="match value")
def by_value(x, kind: int):
    match kind:
        case 0:
            return torch.relu(x)
        case 1 | 2:
            return torch.tanh(x) * kind
        case _:
            return x


@program((randn(3), "gelu"), (randn(3), "silu"), (randn(2), "other"), tags="match str")
def by_string(x, name: str):
    match name:
        case "gelu":
            y = nn.functional.gelu(x)
        case "silu":
            y = nn.functional.silu(x)
        case other:
            y = x + len(other)
    return y


@program(randn(3), randn(2, 4), randn(4, 2), randn(2, 2, 3), tags="match shape sequence")
def by_shape(x):
    match x.shape:
        case (n,):
            return x.sum() / n
        case (rows, columns) if rows < columns:
            return x.sum(0) * rows
        case (rows, columns):
            return x.sum(1) * columns
        case (batch, *rest):
            return x.reshape(batch, -1).sum(1) + len(rest)


@program((randn(3), 5), (randn(3), -2), (randn(2), 0), tags="match guard")
def with_guards(x, n: int):
    match n:
        case v if v > 0:
            x = x * v
        case v if v < 0:
            x = x / v
        case 0:
            x = x + 1
    return x


@made(randn(2, 3), -randn(4, 3).abs(), tags="match mapping static")
def by_configuration():
    settings = {"kind": "affine", "scale": 2.0, "extra": 1}

    def forward(x):
        match settings:
            case {"kind": "affine", "scale": float(scale), **rest}:
                y = x * scale + len(rest)
            case {"kind": "identity"}:  # never
                y = x  # never
            case _:  # never
                raise ValueError("unknown")  # never
        return y if x.sum() > 0 else -y

    return forward


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


@program(randn(3), -randn(2).abs(), tags="match class")
def by_class(x):
    points = [Point(0, x), Point(1, x), (x, x)]
    total = torch.zeros_like(x)
    for p in points:
        match p:
            case Point(0, a):
                total = total + a
            case Point(x=1, y=b):
                total = total - 2 * b
            case (a, b):
                total = total + a * b if x.sum() > 0 else total
    return total


@program(torch.tensor(1), torch.tensor(2), torch.tensor(7), tags="match tensor")
def by_tensor(n):
    match n:
        case 1:
            return n * 10
        case 2:
            return n * 100
    return n


@made(randn(2, 4), -randn(3, 4).abs() * 4, tags="match module class")
def by_layer():
    layers = nn.ModuleList([nn.Linear(4, 4), nn.Dropout(0.1), nn.ReLU()])

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = layers

        def forward(self, x):
            for layer in self.layers:
                match layer:
                    case nn.Linear(out_features=4) if x.sum() > 0:
                        x = layer(x) + x
                    case nn.Dropout():
                        continue
                    case _:
                        x = layer(x)
            return x

    return Net()
