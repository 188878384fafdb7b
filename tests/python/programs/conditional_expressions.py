"""a if test else b."""
import torch
from torch import nn

from . import module, program, randn


@program(randn(3), -randn(3).abs(), randn(2, 2).abs(), tags="ifexp")
def plain(x):
    return x * 2 if x.sum() > 0 else x / 2


@program(torch.tensor(5.0), torch.tensor(0.5), torch.tensor(-3.0), tags="ifexp nested")
def clamp_by_hand(x):
    return torch.ones(()) if x > 1 else -torch.ones(()) if x < -1 else x


@program((randn(3), 0.5), (randn(3), None), (randn(2, 4), 2.0), tags="ifexp none")
def default_scale(x, scale=None):
    factor = 1.0 if scale is None else scale
    return x * factor


@program(randn(2, 3), randn(5, 3), randn(1, 3), tags="ifexp int")
def step_of(x):
    stride = 2 if x.shape[0] > 3 else 1
    return x[::stride]


@program(randn(4).abs(), -randn(4).abs(), tags="ifexp argument")
def inside_a_call(x):
    return torch.add(x, torch.ones_like(x) if x.min() > 0 else torch.zeros_like(x),
                     alpha=3 if x.max() > 0 else 2)


@program((randn(3), True), (randn(3), False), (randn(2, 2), True), tags="ifexp tuple")
def pair(x, swap: bool):
    a, b = (x + 1, x - 1) if swap else (x - 1, x + 1)
    return a * 2 + b


@program(randn(3), -randn(3).abs(), tags="ifexp container")
def in_containers(x):
    up = x.sum() > 0
    return {"value": x.exp() if up else x, "pair": [x if up else -x, 1 if up else 0]}


@program(randn(3), torch.zeros(3), randn(1), tags="ifexp lazy")
def only_one_side_runs(x):
    """The other side would fail."""
    return x / x.norm() if x.norm() > 0 else x.new_zeros(x.numel()).reshape(-1)


@module(randn(2, 4), -randn(3, 4).abs(), tags="ifexp module")
class GateOfTwo(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)

    def forward(self, x):
        hidden = self.a(x) if x.mean() > 0 else self.b(x)
        return hidden + (x if hidden.norm() < 10 else 0 * x)


@program((randn(3), 2), (randn(3), 5), (randn(4), -1), tags="ifexp chain number")
def number_of_steps(x, budget: int):
    steps = 0 if budget < 0 else (budget if budget < 3 else 3)
    for _ in range(steps):
        x = x * 1.5 if x.norm() < 4 else x - x.mean()
    return x, steps
