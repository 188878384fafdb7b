"""Beside other ways of capturing: torch.jit's marks, torch.cond, wrapped functions, modules."""
import torch
from torch import nn

import cfx

from . import made, module, program, randn


@program(randn(3), -randn(4).abs() - 1.5, tags="torch.cond")
def with_cond(x):
    y = torch.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v.cos(), (x,))
    if y.sum() > 0:
        return y + 1
    return y


@program(torch.ones(2), torch.full((3,), 0.1), tags="torch.while_loop")
def with_while_loop(x):
    def small(n, v):
        return v.sum() < 10  # never in Python: PyTorch compiles it

    def grow(n, v):
        return n + 1, v * 2  # never in Python

    n, y = torch.while_loop(small, grow, (torch.zeros((), dtype=torch.int64), x))
    return y, n


@program(randn(3), -randn(2).abs(), tags="cfx.cond")
def with_cfx(x):
    y = cfx.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, (x,))
    (z,) = cfx.for_loop(3, lambda i, v: (v + i,), (y,))
    return z


@cfx.wrap
def looked_up(x):
    """Stays a call."""
    return x * 3 if x.sum() > 0 else x


@program(randn(3), -randn(2).abs(), tags="wrap", wraps=["looked_up"], no_row="a wrapped function",
         local="a wrapped function")
def with_wrapped(x):
    if x.max() > 0:
        return looked_up(x) + 1
    return looked_up(-x)


@module(randn(2, 3), -randn(3, 3).abs(), tags="jit.export")
class Exports(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    @torch.jit.export
    def score(self, x):
        return self.linear(x).sum(-1)

    def forward(self, x):
        score = self.score(x)
        return x[score > 0] if (score > 0).any() else x


@module(randn(2, 3), -randn(3, 3).abs(), tags="jit.unused")
class HasUnused(nn.Module):
    def __init__(self):
        super().__init__()
        self.debug = False

    @torch.jit.unused
    def show(self, x):
        print("x is", x)  # never

    def forward(self, x):
        if self.debug:
            self.show(x)  # never
        if x.sum() > 0:
            return x * 2
        return x


@torch.jit.ignore
def as_eager(x):
    return x.flip(0) if x.sum() > 0 else x


@program(randn(3), -randn(4).abs(), tags="jit.ignore")
def with_ignored(x):
    """jit.ignore: torch.jit leaves it to Python."""
    y = as_eager(x)
    if y[0] > 0:
        y = y + 1
    return y


@made(randn(2, 3), -randn(3, 3).abs() * 3, tags="traced-submodule")
def holds_traced():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = cfx.symbolic_trace(nn.Sequential(nn.Linear(3, 3), nn.Tanh()))

        def forward(self, x):
            y = self.inner(x)
            while y.norm() > 0.5:
                y = y * 0.5
            return y

    return Outer()


@module(randn(2, 3), -randn(3, 3).abs() * 3, tags="jit.is_scripting")
class AsksForScripting(nn.Module):
    """As libraries ask, to leave out what torch.jit cannot do."""

    def forward(self, x):
        if not torch.jit.is_scripting() and not torch.jit.is_tracing():
            assert isinstance(x, torch.Tensor)
        if x.sum() > 0:
            return x * 2
        return -x


@program(randn(3), -randn(2).abs(), tags="jit.annotate Final typing")
def with_jit_annotations(x):
    parts = torch.jit.annotate(list[torch.Tensor], [])
    for i in range(3):
        if x.sum() > i:
            parts.append(x + i)
    parts.append(x)
    return torch.cat(parts)


@program(randn(2, 3), randn(4, 3), tags="vmap", refused="torch.vmap needs tensors")
def with_vmap(x):
    y = torch.vmap(lambda row: row / (row.norm() + 1))(x)
    return y if y.sum() > 0 else -y
