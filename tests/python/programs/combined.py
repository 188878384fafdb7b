"""Control flow in control flow, as it piles up in real programs."""
import torch
from torch import nn
from torch.nn import functional as F

from . import module, program, randn


@program((randn(4, 3), 0.5), (randn(2, 6), 3.0), (-randn(3, 3).abs(), 0.1), tags="for for if break")
def first_of_each_row(x, limit: float):
    found = []
    for row in x:
        picked = torch.full((), -1.0)
        for value in row:
            if value <= 0:
                continue
            picked = value
            if value > limit:
                break
        found.append(picked)
    return torch.stack(found)


@program(torch.tensor([3, 6, 7]), torch.tensor([1]), torch.tensor([2, 27]), tags="for while if")
def collatz_of_each(numbers):
    longest, best = 0, numbers[0]
    for n in numbers:
        start, steps = n, 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
            if steps > 100:
                return -1, start
        if steps >= longest:
            longest, best = steps, start
    return longest, best


@program((randn(5).abs(), 3), (-randn(4).abs() * 2, 2), (torch.full((2,), 0.5), 4),
         (torch.full((1,), 3.5), 2), tags="if for else while")
def many_ways(x, n: int):
    if x.sum() > 0:
        for i in range(n):
            if x[0] > i:
                x = x + i
            else:
                x = x * 0.5
                break
        else:
            x = -x
    else:
        while x.sum() < -1:
            if x.abs().max() > 2:
                x = x / 2
                continue
            x = x + 0.25
    return x


def search(x, low, high):
    """A helper that returns from inside of a loop."""
    for step in range(12):
        middle = (low + high) / 2
        if (middle - x).abs() < 1e-2:
            return middle, step
        if middle < x:
            low = middle
        else:
            high = middle
    return (low + high) / 2, 12


@program(torch.tensor([0.3, 0.5]), torch.tensor([2.0, 0.25, 0.7]), torch.zeros(0),
         tags="for call return")
def search_each(x):
    total, steps = torch.zeros(()), 0
    for value in x:
        found, n = search(value, torch.tensor(0.0), torch.tensor(1.0))
        if n > 8:
            continue
        total = total + found
        steps += n
    return total, steps


@program((torch.tensor([2, 0, 1]), randn(3, 3)), (torch.tensor([1]), randn(2, 3)),
         tags="for if-chain program", raises=[((torch.tensor([7]), randn(2, 3)), ValueError)])
def little_machine(program_, x):
    """An interpreter: its instructions are data."""
    stack = [x]
    for code in program_.tolist():
        if code == 0:
            stack.append(stack[-1].relu())
        elif code == 1:
            stack.append(stack[-1] @ torch.ones(3, 3))
        elif code == 2:
            stack[-1] = stack[-1] + 1
        else:
            raise ValueError(f"no instruction {code}")
    return stack[-1], len(stack)


@program((randn(6, 2), 2.0), (randn(3, 2), 0.5), (randn(1, 2), 1.0), tags="while for break flood")
def connected(points, reach: float):
    """Everything that can be reached from the first point, in hops of limited length."""
    n = points.shape[0]
    reached = torch.zeros(n, dtype=torch.bool)
    reached[0] = True
    changed = True
    while changed:
        changed = False
        for i in range(n):
            if reached[i]:
                continue
            for j in range(n):
                if reached[j] and (points[i] - points[j]).norm() < reach:
                    reached[i] = True
                    changed = True
                    break
    return reached, int(reached.sum())


@program(randn(3, 3) + 3 * torch.eye(3), torch.eye(2) * 2,
         torch.tensor([[0.0, 1.0], [1.0, 0.0]]), tags="for if raise pivot",
         raises=[(torch.zeros(2, 2), ZeroDivisionError)])
def gauss(m):
    """The inverse, with rows swapped where a pivot is small."""
    n = m.shape[0]
    work = torch.cat([m, torch.eye(n)], dim=1)
    for i in range(n):
        pivot = i + int(work[i:, i].abs().argmax())
        if work[pivot, i].abs() < 1e-8:
            raise ZeroDivisionError("singular")
        if pivot != i:
            order = torch.arange(n)
            order[i], order[pivot] = pivot, i
            work = work[order]
        work[i] = work[i] / work[i, i]
        for j in range(n):
            if j != i:
                work[j] = work[j] - work[j, i] * work[i]
    return work[:, n:]


@module((randn(5, 4), 3), (randn(1, 4), 1), (randn(8, 4), 0), tags="module for while if")
class Speculative(nn.Module):
    """A small network guesses, a large one checks; what it does not agree with is thrown away."""

    def __init__(self):
        super().__init__()
        self.small = nn.Linear(4, 4)
        self.large = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))

    def forward(self, x, ahead: int):
        state = x[-1]
        accepted = []
        position = 0
        while position < x.shape[0]:
            guesses = []
            guess = state
            for _ in range(ahead):
                guess = torch.tanh(self.small(guess))
                guesses.append(guess)
            taken = 0
            for guess in guesses:
                checked = torch.tanh(self.large(state))
                if (checked - guess).abs().max() > 0.9:
                    break
                state = guess
                accepted.append(state)
                taken += 1
            if taken == 0:
                state = torch.tanh(self.large(state))
                accepted.append(state)
                taken = 1
            position += taken
        return torch.stack(accepted), position


@module(randn(2, 3, 16), randn(1, 3, 9), tags="module conv while")
class Multiscale(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 3, 3, padding=1)
        self.norm = nn.GroupNorm(1, 3)

    def forward(self, x):
        outputs = []
        scale = 1
        while x.shape[-1] >= 4:
            y = F.gelu(self.norm(self.conv(x)))
            outputs.append(y.mean(-1) / scale if y.mean() > 0 else y.amax(-1))
            x = F.avg_pool1d(x, 2)
            scale *= 2
        return torch.stack(outputs, -1)


@program((randn(4), randn(4, seed=2), 10), (randn(2), -randn(2), 3), (randn(3), randn(3), 0),
         tags="while nested-calls line-search")
def gradient_descent(x, target, most: int):
    """Steps that are halved until they help."""
    def cost(v):
        return ((v - target) ** 2).sum() + v.abs().sum() * 0.1

    for n in range(most):
        slope = 2 * (x - target) + 0.1 * x.sign()
        rate = 1.0
        while rate > 1e-3 and cost(x - rate * slope) >= cost(x):
            rate /= 2
        if rate <= 1e-3 or slope.norm() < 0.05:
            return x, n
        x = x - rate * slope
    return x, -1


@program((torch.tensor([[0, 1, 5], [1, 2, 1], [0, 2, 9]]), 3), (torch.zeros(0, 3).long(), 2),
         tags="for for unpack bellman-ford")
def shortest_paths(edges, nodes: int):
    distance = torch.full((nodes,), float("inf"))
    distance[0] = 0
    for _ in range(nodes - 1):
        moved = False
        for start, end, weight in edges:
            through = distance[start] + weight
            if through < distance[end]:
                distance[end] = through
                moved = True
        if not moved:
            break
    return distance
