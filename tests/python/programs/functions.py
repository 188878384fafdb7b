"""Functions that call functions: closures, lambdas, defaults, *args, recursion, decorators."""
import functools
import operator

import torch
from torch import nn

from . import call, made, module, program, randn


def scaled(x, factor=2.0):
    return x * factor


def clipped(x, low=-1.0, high=1.0):
    if x.min() < low:
        x = x.clamp(min=low)
    if x.max() > high:
        x = x.clamp(max=high)
    return x


@program(randn(4) * 3, randn(2, 2) * 0.1, torch.full((3,), 9.0), tags="call branches-inside")
def calls_helpers(x):
    return clipped(scaled(x)) + clipped(x, high=0.5) + clipped(low=0.0, x=x)


@made(randn(3), -randn(2, 5), tags="closure")
def closure_over_numbers():
    slope, offset = 1.5, torch.tensor(0.25)

    def affine(x):
        if x.sum() > 0:
            return x * slope + offset
        return x * slope

    return affine


@made(randn(3), -randn(4).abs(), tags="lambda")
def a_lambda():
    return lambda x: torch.relu(x) + 1 if x.sum() > 0 else -x


@program(randn(3), -randn(4).abs(), tags="lambda map",
         refused="a function cannot be a graph value")
def lambdas_inside(x):
    square = lambda v: v * v  # noqa: E731
    pick = (lambda v: v + 1) if x.sum() > 0 else (lambda v: v - 1)
    return pick(square(x))


@program(call(randn(3)), call(randn(3), 0.5), call(randn(2, 2), 0.5, power=3),
         call(randn(2), bias=torch.ones(2)), tags="defaults")
def defaults(x, scale=2.0, power=2, bias=None):
    y = (x * scale) ** power
    if bias is not None:
        y = y + bias
    return y


@program(call(randn(3), eps=0.5), call(torch.zeros(2), eps=1e-3), call(randn(2, 2)),
         tags="keyword-only",
         refused="this has type tuple or Tensor, depending on data")
def keyword_only(x, *, eps=1e-6, keep=False):
    norm = x.norm()
    if norm < eps:
        norm = torch.full_like(norm, eps)
    return (x / norm, norm) if keep else x / norm


@program(call(randn(3), randn(3, seed=1)), call(randn(3)), call(randn(2), randn(2), randn(2)),
         tags="varargs")
def star_args(first, *rest):
    total = first
    for other in rest:
        total = total + other
    return total / (1 + len(rest))


@program(call(randn(3), scale=torch.tensor(2.0)), call(randn(2), scale=0.5, shift=1.0),
         tags="kwargs input")
def star_star_input(x, **options):
    y = x * options["scale"]
    if "shift" in options:
        y = y + options["shift"]
    return y


def weighted(*parts, **weights):
    total = torch.zeros(())
    for part in parts:
        total = total + part.sum()
    for name in sorted(weights):
        total = total * weights[name]
    return total


@program(randn(3), -randn(2, 4), tags="varargs kwargs static")
def star_star(x):
    parts = [x, x * 2, -x]
    options = {"a": 0.5, "b": 2.0}
    if x.sum() > 0:
        return weighted(*parts, **options)
    return weighted(x, c=3.0, **options)


def power_of(x, n):
    """Recursion on a number that is known."""
    if n == 0:
        return torch.ones_like(x)
    if n % 2 == 0:
        half = power_of(x, n // 2)
        return half * half
    return x * power_of(x, n - 1)


@program(randn(3), randn(2, 2), tags="recursion")
def static_recursion(x):
    return power_of(x, 6) + power_of(x, 3)


@program(randn(3), -randn(5).abs(), tags="nested-def")
def nested_function(x):
    def normalize(v):
        if v.norm() > 1:
            return v / v.norm()
        return v

    def twice(f, v):
        return f(f(v))

    return twice(normalize, x) + normalize(x - 1)


@program(randn(4), -randn(3).abs(), tags="nonlocal")
def counts_calls(x):
    calls = 0

    def step(v):
        nonlocal calls
        calls += 1
        return v * 0.5 + calls

    while x.norm() > 2.5 and calls < 6:
        x = step(x)
    return x, calls


def checked(function):
    @functools.wraps(function)
    def inner(x, *args):
        result = function(x, *args)
        if torch.isnan(result).any():
            return torch.zeros_like(result)
        return result

    return inner


@checked
def log_of(x):
    return torch.log(x)


@program(randn(3).abs() + 1, -randn(4).abs(), tags="decorator")
def decorated(x):
    return log_of(x) + 1


@program(randn(3), -randn(3).abs(), tags="partial")
def partials(x):
    leaky = functools.partial(nn.functional.leaky_relu, negative_slope=0.2)
    half = functools.partial(scaled, factor=0.5)
    return leaky(x) if x.sum() > 0 else half(leaky(x))


@program((randn(3), 2), (randn(3), 0), (randn(2), 5), tags="first-class")
def compose(x, n: int):
    steps = [torch.relu, torch.tanh, lambda v: v + 1]
    for step in steps:
        x = step(x)
    for _ in range(n):
        x = steps[1](x)
    return functools.reduce(lambda a, f: f(a), steps, x)


@program(randn(3), randn(2, 3), tags="map filter")
def map_and_filter(x):
    scales = list(filter(lambda s: s > 1, [0.5, 1.5, 2.5]))
    parts = list(map(lambda s: x * s, scales))
    return functools.reduce(operator.add, parts)


def pyramid(x, levels):
    for _ in range(levels):
        yield x
        x = x[..., ::2]


@program(randn(8), randn(2, 16), tags="generator")
def generator(x):
    return torch.stack([level.mean() for level in pyramid(x, 3)])


@program((randn(3), randn(3, seed=4)), (-randn(2).abs(), randn(2)), tags="mutable-default global")
def globals_and_defaults(x, y, factors=(1.0, -1.0)):
    a, b = factors
    if x.sum() > y.sum():
        a, b = b, a
    return a * x + b * y * LIMIT


LIMIT = 3.0


def descend(f, x, rate, steps):
    """Gradients by differences: f is called while it is captured."""
    for _ in range(steps):
        slope = (f(x + 1e-2) - f(x - 1e-2)) / 2e-2
        x = x - rate * slope
    return x


@program((torch.tensor(3.0), 4), (torch.tensor(-1.0), 0), (torch.tensor([1.0, 2.0]), 2),
         tags="higher-order")
def higher_order(x, steps: int):
    return descend(lambda v: v * v + v, x, 0.1, steps)


@module(randn(2, 4), randn(6, 4), tags="function-attribute")
class KeepsFunction(nn.Module):
    """As layers that are given their activation."""

    def __init__(self, activation=torch.sigmoid):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.activation = activation
        self.norms = {"l1": lambda v: v.abs().sum(), "l2": lambda v: v.norm()}

    def forward(self, x):
        y = self.activation(self.linear(x))
        if self.norms["l1"](y) > 4:
            y = y / self.norms["l2"](y)
        return y
