"""while loops whose end depends on values of the graph."""
import torch
from torch import nn

from . import module, program, randn


@program(torch.ones(3), torch.full((2, 2), 0.01), torch.full((1,), 500.0), tags="while")
def double_until_large(x):
    while x.sum() < 100:
        x = x * 2
    return x


@program(torch.tensor(2.0), torch.tensor(10.0), torch.tensor([1.0, 4.0, 9.0]), tags="while newton")
def newton_sqrt(a):
    x = a / 2 + 0.5
    error = (x * x - a).abs().max()
    while error > 1e-5:
        x = 0.5 * (x + a / x)
        error = (x * x - a).abs().max()
    return x


@program(torch.tensor(6), torch.tensor(27), torch.tensor(1), tags="while count integers")
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@program((torch.tensor(48), torch.tensor(18)), (torch.tensor(7), torch.tensor(0)),
         (torch.tensor(1071), torch.tensor(462)), tags="while swap")
def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a


@program((randn(3, 3), 0), (randn(3, 3), 1), (randn(2, 2), 5), tags="while int")
def matrix_power(m, n: int):
    result = torch.eye(m.shape[0])
    while n > 0:
        if n % 2 == 1:
            result = result @ m
        m = m @ m
        n //= 2
    return result


@program(randn(4, 4), randn(3, 3) * 2, torch.eye(2), tags="while power")
def power_iteration(m):
    m = m @ m.T + torch.eye(m.shape[0])
    v = torch.ones(m.shape[0]) / m.shape[0]
    old, eigenvalue, steps = torch.zeros(()), torch.ones(()), 0
    while (eigenvalue - old).abs() > 1e-4 and steps < 200:
        v = m @ v
        v = v / v.norm()
        old, eigenvalue = eigenvalue, v @ m @ v
        steps += 1
    return eigenvalue, v


@program((torch.tensor([0.3, -0.2]), 20), (torch.tensor([0.5, 0.5]), 50),
         (torch.tensor([0.0, 0.0]), 7), tags="while two-tests")
def mandelbrot(c, limit: int):
    z = torch.zeros(2)
    n = 0
    while n < limit and z.norm() <= 2:
        z = torch.stack([z[0] * z[0] - z[1] * z[1], 2 * z[0] * z[1]]) + c
        n = n + 1
    return n, z


@program(torch.tensor([5.0, 1.0, 4.0, 2.0]), torch.tensor([1.0, 2.0]), torch.tensor([3.0]),
         tags="while nested")
def bubble_sort(x):
    x = x.clone()
    swapped = True
    while swapped:
        swapped = False
        i = 0
        while i < len(x) - 1:
            if x[i] > x[i + 1]:
                x = torch.cat([x[:i], x[i + 1:i + 2], x[i:i + 1], x[i + 2:]])
                swapped = True
            i += 1
    return x


@program((torch.arange(10.0), 7.0), (torch.arange(33.0) * 2, 5.0), (torch.arange(1.0), 3.0),
         tags="while search")
def binary_search(values, wanted: float):
    low, high = 0, values.shape[0]
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@program(torch.tensor(12345), torch.tensor(7), torch.tensor(0), tags="while list")
def digits(n):
    found = []
    while n > 0:
        found.append(n % 10)
        n = n // 10
    return len(found), sum(found)


@program(randn(3), randn(5), torch.zeros(2), tags="while not")
def settle(x):
    done = torch.tensor(False)
    rounds = torch.zeros((), dtype=torch.int64)
    while not done:
        after = x * 0.5
        done = (after - x).abs().max() < 0.01
        x = after
        rounds += 1
    return x, rounds


@program(randn(8, 2), randn(5, 2), torch.zeros(3, 2), tags="while constant")
def forever_until_break(points):
    center = points[0]
    while True:
        nearer = center + 0.5 * (points.mean(0) - center)
        if (nearer - center).norm() < 1e-3:
            break
        center = nearer
    return center


@program((torch.tensor(3.0), 1.0), (torch.tensor(-50.0), 0.25), tags="while else")
def with_else(x, step: float):
    while x.abs() > 1:
        x = x * step * 0.5
    else:
        x = x + 10
    return x


@module(randn(2, 4), randn(5, 4) * 10, torch.zeros(1, 4), tags="while module")
class UntilCalm(nn.Module):
    """The same layer again and again, until its output hardly changes."""

    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(4, 4)
        self.tolerance = 1e-2
        self.most = 25

    def forward(self, x):
        z = torch.zeros_like(x)
        change = torch.full((), float("inf"))
        n = 0
        while change > self.tolerance and n < self.most:
            after = torch.tanh(self.cell(z) * 0.5 + x)
            change = (after - z).abs().max()
            z = after
            n += 1
        return z, n


@program((randn(6), 3), (randn(11), 4), (randn(2), 5), tags="while slices")
def by_chunks(x, size: int):
    total = torch.zeros(())
    start = 0
    while start < x.numel():
        chunk = x[start:start + size]
        total = total + chunk.max() * chunk.numel()
        start += size
    return total


@program(torch.tensor([0.9, 0.5, 0.1]), torch.tensor([0.2]), torch.tensor([3.0, -3.0]),
         tags="while several")
def bisection(target):
    """Where x**3 + x is the target, for all at once."""
    low = torch.full_like(target, -10.0)
    high = torch.full_like(target, 10.0)
    while (high - low).max() > 1e-4:
        middle = (low + high) / 2
        too_low = middle ** 3 + middle < target
        low = torch.where(too_low, middle, low)
        high = torch.where(too_low, high, middle)
    return (low + high) / 2


@program(torch.ones(2), torch.zeros(3), tags="while constant break")
def never(x):
    while 0:
        d = x.sum()
        if d > 3:
            break
        x = x + 1
    return x
