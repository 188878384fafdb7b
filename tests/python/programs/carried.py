"""What loops and branches hand on: names that change their type, names that may not be there,
several names for one thing."""
import torch
from torch import nn

from . import module, program, randn


@program(randn(4), randn(1), torch.zeros(0), tags="for int-then-tensor")
def total_begins_as_zero(x):
    """0, and a tensor after the first round: an int if there is none."""
    total = 0
    for value in x:
        total = total + value
    return total


@program((randn(3, 2), 0.5), (randn(1, 2), 9.0), tags="branch int-or-tensor")
def loss_begins_as_zero(x, limit: float):
    loss = 0.0
    if x.max() > limit:
        loss = loss + (x - limit).relu().sum()
    if x.min() < -limit:
        loss += (-x - limit).relu().sum()
    return loss


@program(randn(5), -randn(3).abs(), torch.zeros(0), tags="none-then-tensor")
def best_begins_as_none(x):
    best = None
    for value in x:
        if value > 0:
            if best is None or value > best:
                best = value
    return best


@program((randn(3), 2), (randn(3), 0), (randn(2), 5), tags="shape-changes")
def grows_a_tensor(x, n: int):
    result = x[:0]
    for i in range(n):
        result = torch.cat([result, x * i])
    return result


@program((randn(2, 3, 4), 2), (randn(2, 3, 4), 1), (randn(5, 2), 0), tags="rank-changes")
def loses_dimensions(x, n: int):
    for _ in range(n):
        x = x.sum(0)
    return x


@program((torch.tensor([1, 2]), 1), (torch.tensor([3]), 0), (torch.tensor([4, 5, 6]), 3),
         tags="dtype-changes")
def becomes_float(x, n: int):
    for _ in range(n):
        x = x / 2
    return x


@program((randn(3), 1), (randn(2), 4), tags="unbound",
         refused="in a loop that may run zero times; assign it before the loop",
         raises=[((randn(3), 0), UnboundLocalError)])
def may_be_missing(x, n: int):
    for i in range(n):
        last = x * i
    return last


@program((randn(3), True), tags="unbound branch",
         refused="only in a branch that depends on data",
         raises=[((randn(3), False), UnboundLocalError)])
def defined_in_one_way(x, flag: bool):
    if flag:
        y = x + 1
    return y


@program((randn(3), True), (randn(3), False), tags="bound-under-same-test",
         refused="only in a branch that depends on data")
def asked_twice(x, flag: bool):
    if flag:
        scale = x.norm()
    x = x * 2
    if flag:
        x = x / scale
    return x


@program(randn(4), -randn(4).abs(), tags="alias list")
def two_names_for_a_list(x):
    items = [x]
    same = items
    if x.sum() > 0:
        same.append(x * 2)
    same.append(x * 3)
    return items, len(same), items is same


@program(randn(4), -randn(2).abs(), tags="alias list return")
def list_grows_after_a_return(x):
    items = [x]
    if x.sum() < 0:
        return items
    items.append(x * 2)
    return items


@program((randn(3), 0), (randn(2), 3), tags="alias list loop return")
def list_grows_around_a_loop(x, n: int):
    items = []
    for i in range(n):
        items.append(x + i)
        if x.sum() < i:
            return items, i
    items.append(x)
    return items, -1


def add_to(items, value):
    items.append(value)
    if len(items) > 2:
        items.pop(0)


@program((randn(3), 1), (randn(2), 5), tags="alias function")
def function_changes_list(x, n: int):
    recent = [x]
    for i in range(n):
        add_to(recent, x + i)
    return recent


@program(randn(4, 3), randn(2, 5), tags="alias view", mutates=True)
def writes_through_views(x):
    row = x[0]
    for i in range(x.shape[0]):
        x[i] = x[i] + row
    row.zero_()
    return x.sum()


@program(randn(3), -randn(3).abs(), tags="alias rebinding")
def rebinding_is_not_writing(x):
    y = x
    if x.sum() > 0:
        y = y + 1
    else:
        y = -y
    return x, y


@program((randn(3), 4), (randn(2), 0), tags="late-binding")
def functions_of_a_loop(x, n: int):
    """They all see the last value of the loop's variable."""
    functions = []
    for factor in (1.0, 2.0, 3.0):
        functions.append(lambda v: v * factor)
    for i in range(n):
        x = functions[0](x) + i
    return x, [f(x) for f in functions]


@program((randn(3), 5), (randn(2), 25), (randn(1), 0), tags="big-integers",
         no_row="integers of more than 64 bits")
def factorial(x, n: int):
    product = 1
    for i in range(1, n + 1):
        product *= i
    return x, product


@program((randn(3), 3), (randn(2), 0), tags="dict in-loop")
def counts_in_a_dict(x, n: int):
    table = {"even": 0, "odd": 0}
    sums = {}
    for i in range(n):
        key = "even" if i % 2 == 0 else "odd"
        table[key] += 1
    sums["all"] = x * n
    return table, sums


@program((randn(3), 3), (randn(2), 1), tags="tuple carried")
def carries_a_tuple(x, n: int):
    state = (x, torch.zeros_like(x), 0)
    for i in range(n):
        h, c, count = state
        c = c + h * i
        state = (torch.tanh(h + c), c, count + 1)
    return state


@program((randn(3), 3), (randn(2), 0), tags="bool-then-tensor")
def flag_becomes_tensor(x, n: int):
    done = False
    for i in range(n):
        done = done or x.sum() > i
        x = x - 0.5
    return (x, 1) if done else (x, 0)


@module((randn(2, 3), None), (randn(2, 3), torch.zeros(2, 4)),
        (torch.full((1, 3), -9.0), torch.full((1, 4), 5.0)), tags="none-or-tensor module")
class MakesItsState(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(3, 4)

    def forward(self, x, state=None):
        if state is None:
            state = torch.ones(x.shape[0], 4)
        for _ in range(2):
            state = self.cell(x, state)
            if state.sum() > 0:
                state = state / 2
        return state


@program((randn(3), 2), (randn(3), 3), tags="swap carried")
def swaps_in_a_loop(x, n: int):
    a, b = x, 1
    for _ in range(n):
        a, b = b, a
    return a, b


@program((randn(3), randn(3) + 2, 0), (-randn(3).abs(), randn(3).abs(), 3),
         (-randn(2).abs(), torch.ones(2), 5), (torch.zeros(1), torch.tensor([0.5]), 1),
         tags="swap carried break")
def swaps_on_one_way(x, y, n: int):
    """One of both is what a turn gives, the other one is needed in it: they need two variables."""
    first = x
    while y[0] < n:
        if y[0] > n - 1:
            pass
        else:
            x, y = y, x
        if not n > 3:
            break
        y = torch.where(x > y, x, y - 1)
        n = 3
    return first, x, y, n


@program((randn(3), 3), (-randn(3), 2), (randn(2), 0), tags="unbound never-read")
def binds_what_nobody_reads(x, n: int):
    y, _ = x, "before"
    for i in range(n):
        if x.sum() > i:
            y, _ = x + i, ("left" if x[0] > 0 else "right")
    return y
