"""break, continue and return in the middle of loops and branches."""
import torch
from torch import nn

from . import module, program, randn

LIMIT = None


@program(torch.tensor([1.0, 2.0, -1.0, 4.0]), torch.tensor([-1.0]), torch.tensor([1.0, 1.0]),
         tags="break for")
def sum_until_negative(x):
    total = torch.zeros(())
    for i in range(len(x)):
        if x[i] < 0:
            break
        total = total + x[i]
    return total


@program(randn(6), -randn(4).abs(), randn(3).abs(), tags="continue for")
def skip_negatives(x):
    total = torch.zeros(())
    for value in x:
        if value < 0:
            continue
        total = total + value.sqrt()
    return total


@program((randn(5), 0.0), (-randn(3).abs(), 0.5), (randn(2).abs() + 1, 0.5),
         tags="return for loop")
def first_above(x, limit: float):
    for i in range(x.shape[0]):
        if x[i] > limit:
            return i
    return -1


@program(randn(4), -randn(3).abs(), torch.zeros(0), tags="break return known")
def never_left(x, careful: bool = False):
    """Ways out that stand there, and that nothing takes."""
    total, n = torch.zeros(()), 0
    for value in x:
        if LIMIT is not None:
            break  # never
        while total < n:
            if LIMIT is not None:
                return x  # never
            total = total + 1
        total = total + value
        n += 1
    return total, n


@program((randn(6), 3), (-randn(4).abs(), 9), (-randn(3).abs(), 1), tags="break return known")
def left_by_return_only(x, most: int):
    """One of two ways out is never taken."""
    seen = 0
    for value in x:
        if LIMIT is not None:
            break  # never
        seen += 1
        if value > 0.5 or seen > most:
            return value, seen
    return x.sum(), -seen


@program(torch.full((3,), 4.0), torch.full((2,), -4.0), torch.zeros(1), tags="return if")
def early_return(x):
    if x.sum() > 0:
        return x.log()
    y = x - 1
    if y.sum() < -5:
        return y.abs()
    return y * 10


@program(torch.tensor(1.0), torch.tensor(40.0), torch.tensor(1000.0), tags="break while")
def while_with_break(x):
    n = 0
    while x < 500:
        x = x * 3
        if x > 100:
            break
        n += 1
    return x, n


@program(torch.tensor([4, 7, 10, 12]), torch.tensor([9]), torch.tensor([1, 3, 5, 8, 2]),
         tags="continue while")
def while_with_continue(x):
    i, evens = 0, 0
    while i < x.numel():
        i += 1
        if x[i - 1] % 2 == 1:
            continue
        evens += 1
    return evens


@program((randn(3, 4), 1.0), (randn(2, 2), 5.0), (randn(5, 1).abs(), 0.1), tags="break nested")
def leave_inner_loop(x, limit: float):
    total = torch.zeros(())
    for i in range(x.shape[0]):
        part = torch.zeros(())
        for j in range(x.shape[1]):
            part = part + x[i, j].abs()
            if part > limit:
                break
        total = total + part
    return total


@program((randn(3, 4), 0.9), (randn(2, 2), 50.0), (torch.ones(2, 3), 0.5), tags="return nested")
def leave_both_loops(x, limit: float):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > limit:
                return i, j
    return -1, -1


@program((randn(6), 2), (randn(4), 9), (randn(3), 0), tags="break continue")
def both(x, most: int):
    found = 0
    total = torch.zeros(())
    for value in x:
        if found == most:
            break
        if value < 0:
            continue
        total = total + value
        found += 1
    return total, found


@program(randn(4), -randn(4).abs(), torch.zeros(2), tags="return several-types")
def different_results(x):
    if x.sum() > 0:
        return x, "positive"
    elif x.sum() < 0:
        return -x, "negative"
    return x, "zero"


@program(torch.tensor(7), torch.tensor(9), torch.tensor(2), torch.tensor(91), torch.tensor(1),
         tags="return while")
def is_prime(n):
    if n < 2:
        return False
    d = 2
    while d * d <= n:
        if n % d == 0:
            return False
        d += 1
    return True


@program((randn(5), 3), (randn(2), 0), (randn(3), 8), tags="break else")
def break_skips_else(x, n: int):
    for i in range(n):
        if i >= x.numel():
            x = x * 100
            break
        x = x + x[i]
    else:
        x = x - 0.5
    return x


@program(randn(3, 2) * 4, -randn(3, 2).abs(), torch.full((1, 2), 0.5), tags="return in-both")
def returns_in_every_way(x):
    if (x > 0).any():
        if (x > 1).any():
            return x.clamp(max=1)
        else:
            return x
    else:
        return torch.zeros_like(x)


@program((torch.tensor([1, 5, 2, 0, 9]), 0), (torch.tensor([3, 4]), 0), (torch.tensor([0, 1]), 0),
         tags="break tensor-index")
def until_end_token(tokens, end: int):
    length = 0
    for token in tokens:
        if token == end:
            break
        length += 1
    return tokens[:length]


@module(randn(2, 4) * 0.1, randn(3, 4) * 8, randn(1, 4), tags="return module")
class EarlyExit(nn.Module):
    """A classifier after each block; the first one that is sure has the say."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.heads = nn.ModuleList(nn.Linear(4, 2) for _ in range(3))

    def forward(self, x):
        for block, head in zip(self.blocks, self.heads):
            x = torch.relu(block(x)) + x
            logits = head(x)
            if torch.softmax(logits, -1).max(-1).values.min() > 0.7:
                return logits
        return logits


@program(randn(3), -randn(2).abs(), tags="return none")
def gives_nothing(x):
    if x.sum() < 0:
        return None
    return x + 1


@program((torch.tensor([0.9, -0.5]), 5), (-randn(3).abs(), 2), (randn(4), 0),
         tags="return for while")
def return_from_while_in_for(x, n: int):
    for i in range(n):
        while x.norm() < 3:
            x = x * 1.7
            if x.max() > 2.5:
                return x, i
        x = x * 0.5
    return x, -1


@program((randn(4), 3), (-randn(4), 3), (randn(2), 0), (torch.zeros(3), 2),
         tags="break else outer")
def else_leaves_the_loop_around(x, n: int):
    found = []
    for i in range(3):
        for j in range(n):
            if x[0] > j + 1:
                break
        else:
            if x.sum() > i:
                break
            x = x + 1
        found.append(x)
    return found


@program((randn(4) * 9, 3), (-randn(4), 3), (randn(2), 1), tags="break continue else outer static")
def else_always_leaves(x, n: int):
    for i in range(n):
        for j in range(2):
            if x.sum() > 2 * j:
                break
        else:
            x = x + 1
            continue
        while x.max() > 5:
            x = x / 2
        else:
            break
        x = x * 100  # never
    return x
