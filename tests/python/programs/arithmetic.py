"""Numbers: ints, floats, math, sizes of tensors; item, int, float, bool of tensors."""
import math

import torch
from torch import nn

from . import made, module, program, randn


@program((randn(3), 7, 2), (randn(3), -7, 2), (randn(2), 9, -4), tags="int arithmetic")
def integers(x, a: int, b: int):
    q, r = divmod(a, b)
    return x * q + r, a // b, a % b, a ** 2, abs(a), -a, a & 3, a << 1, a | 8, ~a


@program((randn(3), 2.5), (randn(3), -1.25), (randn(2), 0.0), tags="float arithmetic")
def floats(x, f: float):
    return x * f, f * 2, f + 1, f / 4, f // 0.5, round(f), int(f), f > 0, max(f, 0.5), min(f, 0)


@program((randn(3), 2.0), (randn(2, 2), 0.5), (randn(1), 9.0), tags="math")
def from_math(x, f: float):
    scale = math.sqrt(f) + math.exp(-f) + math.log(f) + math.pi
    if math.floor(f) % 2 == 0:
        scale = scale * math.cos(f)
    return x * scale, math.ceil(f), math.trunc(f)


@program((randn(3), 2.0), (randn(2, 2), -0.5), (randn(1), float("nan")), tags="math more")
def from_math_more(x, f: float):
    if math.isnan(f):
        return x, 0.0, False
    return x * math.copysign(math.hypot(f, 1.0), f), math.atan2(f, 2.0), math.isclose(f, 2.0)


@program(randn(2, 8), randn(1, 4), randn(3, 16), tags="math size")
def scaled_by_size(x):
    d = x.shape[-1]
    scale = 1 / math.sqrt(d)
    levels = int(math.log2(d))
    return (x @ x.T) * scale, levels


@program(randn(3), randn(2, 5), -randn(4).abs(), tags="item")
def items(x):
    total = x.sum().item()
    n = int(x.numel())
    if total > 0:
        total = total / n
    return x - total, float(x.max()), bool(x.min() < 0)


@program(torch.tensor(3), torch.tensor(0), torch.tensor(-4), tags="int tensor")
def number_as_size(n):
    size = max(int(n), 1)
    x = torch.arange(size).float()
    return x.reshape(1, size) * size + torch.zeros(2, size)


@program((randn(3), 10), (randn(3), 3), (randn(2), 1), tags="int loop")
def fibonacci(x, n: int):
    a, b = 0, 1
    while b < n:
        a, b = b, a + b
    return x * a, a + b


@program((3, 4), (5, -2), (0, 0), tags="only numbers")
def no_tensor(a: int, b: int):
    c = math.sqrt(a * a + b * b)
    if c > 5:
        return c, a + b
    return 0.0, a - b


@program((randn(3), 2), (randn(3), 3), tags="mixed")
def promotes(x, n: int):
    a = n / 2
    b = n * 1.0
    c = n + True
    d = (n > 2) + 1
    y = torch.full((n,), a)
    return x * a, b, c, d, y, torch.tensor([n, c]), torch.tensor(n * 0.5)


@program((randn(6, 4), 4), (randn(3, 4), 8), (randn(7, 4), 3), tags="ceil division")
def pad_to_multiple(x, multiple: int):
    missing = -x.shape[0] % multiple
    if missing > 0:
        x = torch.cat([x, x.new_zeros(missing, x.shape[1])])
    return x, x.shape[0] // multiple


@program((randn(4, 8), 2), (randn(3, 8), 4), (randn(2, 8), 3), tags="size branch",
         raises=[((randn(2, 8), 0), ZeroDivisionError)])
def heads(x, n: int):
    width = x.size(-1)
    if width % n != 0:
        n = 1
    return x.view(x.size(0), n, width // n).transpose(0, 1)


@made((randn(3), 1), (randn(3), 4), tags="constants")
def constants_of_many_kinds():
    table = [1, 2.5, True, -3]
    infinity = float("inf")

    def forward(x, i: int):
        y = x * table[1] + table[0] - table[3]
        if i > 2:
            y = y.clamp(max=infinity)
        return y * 1e-3, 10 ** 6, 2 ** 0.5, 0x10, 1_000, -0.0

    return forward


@module((randn(2, 3), 100), (randn(2, 3), 2500), (randn(1, 3), 0), tags="schedule")
class WarmUp(nn.Module):
    """A scale that depends on the number of the step."""

    def __init__(self):
        super().__init__()
        self.warmup = 1000
        self.base = 0.1

    def rate(self, step: int):
        if step < self.warmup:
            return self.base * (step + 1) / self.warmup
        progress = (step - self.warmup) / 4000
        return self.base * 0.5 * (1.0 + math.cos(math.pi * min(progress, 1.0)))

    def forward(self, x, step: int):
        return x * self.rate(step)


@program((torch.tensor([3.0, 4.0]), 1.5), (torch.tensor([1.0, 2.0, 2.0]), -2.0), tags="complex pow")
def powers_and_signs(x, p: float):
    y = x ** p
    z = p ** 2 + 2 ** p
    sign = (p > 0) - (p < 0)
    return y * sign, z, sign
