"""for loops: over ranges that are known only when they run, and over what tensors hold."""
import torch
from torch import nn

from . import module, program, randn


@program((randn(3), 3), (randn(2, 2), 1), (randn(4), 0), tags="for range int")
def repeat_by_number(x, times: int):
    for _ in range(times):
        x = torch.tanh(x) + x
    return x


@program(randn(4, 3), randn(1, 3), randn(7, 3), tags="for range size")
def running_sum(x):
    total = torch.zeros(x.shape[1])
    for i in range(x.shape[0]):
        total = total * 0.9 + x[i]
    return total


@program(randn(3, 4), randn(2, 6), randn(5, 1), tags="for list stack")
def scan(x):
    state = torch.zeros(x.size(0))
    outputs = []
    for t in range(x.size(1)):
        state = torch.tanh(state + x[:, t])
        outputs.append(state)
    return torch.stack(outputs, dim=1)


@program((torch.tensor(3), randn(2)), (torch.tensor(0), randn(2)), (torch.tensor(5), randn(3)),
         tags="for range tensor")
def count_is_a_tensor(n, x):
    for i in range(int(n)):
        x = x + i
    return x


@program((randn(9), 1, 9, 2), (randn(9), 0, 3, 1), (randn(20), 5, 20, 6), tags="for range step")
def start_stop_step(x, start: int, stop: int, step: int):
    total = x[0]
    for i in range(start, stop, step):
        total = total + x[i] * i
    return total


@program((randn(5), 4), (randn(3), 2), (randn(8), 0), tags="for range backwards")
def backwards(rewards, last: int):
    value = torch.zeros(())
    values = []
    for i in range(last, -1, -1):
        value = rewards[i] + 0.9 * value
        values.append(value)
    return torch.stack(values).flip(0)


@program(randn(3, 4), randn(2, 2), randn(1, 5), tags="for nested")
def pairwise(x):
    n, m = x.shape
    total = torch.zeros(())
    for i in range(n):
        for j in range(m):
            if i != j:
                total = total + x[i, j] * (i - j)
    return total


@program((randn(4, 3), randn(5, 3)), (randn(1, 2), randn(2, 2)), tags="for nested list")
def edit_distance_like(a, b):
    """Dynamic programming over a table, row after row."""
    row = torch.arange(b.shape[0] + 1).float()
    for i in range(a.shape[0]):
        cells = [row[0] + 1]
        for j in range(b.shape[0]):
            cost = (a[i] - b[j]).abs().sum()
            best = torch.minimum(torch.minimum(row[j + 1] + 1, cells[j] + 1), row[j] + cost)
            cells.append(best)
        row = torch.stack(cells)
    return row[-1]


@program(randn(6), -randn(3).abs(), randn(1), tags="for else")
def for_else(x):
    position = -1
    for i in range(len(x)):
        if x[i] > 0:
            position = i
            break
    else:
        x = x - 1
    return x, position


@program((randn(3, 3), 4), (randn(2, 2), 0), (torch.eye(4) * 0.1, 6), tags="for float")
def exponential_series(m, terms: int):
    result = torch.eye(m.size(0))
    term = torch.eye(m.size(0))
    for k in range(1, terms + 1):
        term = term @ m / k
        result = result + term
    return result


@program((randn(3), 5), (randn(2, 2), 3), (randn(1), 0), tags="for after")
def variable_lives_on(x, n: int):
    i = -1
    for i in range(n):
        x = x + i
    return x * i


@program(torch.tensor([3, 1, 2]), torch.tensor([0]), torch.tensor([5, 5, 5, 0]),
         tags="for rows int")
def histogram(labels):
    counts = torch.zeros(8, dtype=torch.int64)
    for label in labels:
        counts[label] += 1
    return counts


@program((randn(2, 5), torch.tensor([5, 3])), (randn(3, 4), torch.tensor([1, 4, 2])),
         tags="for ragged", mutates=False)
def mean_of_ragged(x, lengths):
    means = []
    for i in range(x.shape[0]):
        n = int(lengths[i])
        means.append(x[i, :n].mean())
    return torch.stack(means)


@module(randn(2, 5, 3), randn(4, 1, 3), randn(1, 9, 3), tags="for module rnn")
class HandWrittenRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.i2h = nn.Linear(3, 6)
        self.h2h = nn.Linear(6, 6, bias=False)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 6)
        states = []
        for t in range(x.shape[1]):
            h = torch.tanh(self.i2h(x[:, t]) + self.h2h(h))
            states.append(h)
        return torch.stack(states, 1), h


@program((randn(4), 2), (randn(3), 4), tags="for static")
def static_and_dynamic(x, n: int):
    """A loop over constants around one over a number of the graph."""
    for factor in (0.5, 1.0, 2.0):
        for _ in range(n):
            x = x * factor + 0.1
    return x


@program(randn(5, 5), randn(3, 3), torch.eye(2) * 4, tags="for in-place linalg")
def cholesky(m):
    m = m @ m.T + m.shape[0] * torch.eye(m.shape[0])
    n = m.shape[0]
    low = torch.zeros_like(m)
    for j in range(n):
        rest = m[j, j] - (low[j, :j] ** 2).sum()
        low[j, j] = rest.sqrt()
        for i in range(j + 1, n):
            low[i, j] = (m[i, j] - (low[i, :j] * low[j, :j]).sum()) / low[j, j]
    return low
