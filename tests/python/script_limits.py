"""Programs at the edge of what can be captured from source. Each is captured, and then right, or
refused with a message that names a line: the one with `# here`, if there is one."""
import asyncio
import functools

import numpy as np
import torch
from torch import nn

CASES = {}


def case(*inputs):
    """Declares a function, or a class of modules, with arguments of calls."""

    def add(program):
        CASES[program.__name__] = program, [i if type(i) is tuple else (i,) for i in inputs]
        return program

    return add


X, LESS = torch.tensor([1.0, 2.0, -0.5]), torch.tensor([-1.0, -2.0])


# ---- functions and modules that data choose ------------------------------------------------------


@case((X, 3), (X, 0))
def recursion_on_data(x, n):
    if n <= 0:
        return x
    return recursion_on_data(x * 2, n - 1)  # here


@case((X, 0), (LESS, 1))
def function_by_number(x, n):
    return [torch.relu, torch.tanh][n](x)  # here


@case((X, "relu"), (LESS, "tanh"))
def function_by_name(x, name):
    return getattr(torch, name)(x)  # here


@case((torch.ones(2, 3), 0), (torch.ones(1, 3), 1))
class ModuleByNumber(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 2)])

    def forward(self, x, n):
        return self.layers[n](x)  # here


@case(X, LESS)
def function_by_branch(x):
    f = torch.sin if x.sum() > 0 else torch.cos
    return f(x) + 1


@case(X, LESS)
def tuples_of_other_lengths(x):
    if x.sum() > 0:
        return x, 1
    return x, -x, 2


@case(X, LESS)
def class_by_branch(x):
    if x.sum() > 0:
        container = [x]
    else:
        container = {"x": x}
    return container


# ---- exceptions ----------------------------------------------------------------------------------


@case((X, 1), (X, 9))
def catches_what_data_raise(x, i):
    try:
        return x[i]
    except IndexError:
        return x[0] * 0


@case(X, LESS)
def catches_its_own(x):
    try:
        if x.sum() < 0:
            raise ValueError("negative")
        y = x * 2
    except ValueError:
        y = -x
    finally:
        z = x + 1
    return y, z


@case(X, LESS)
def returns_in_finally(x):
    try:
        if x.sum() < 0:
            return x
        y = x * 2
    finally:
        x = x + 100
    return y


@case(X)
def always_wrong(x):
    return torch.matmul(x)  # here


@case(X)
def unknown_name(x):
    return x + there_is_no_such_name  # noqa: F821  # here


@case(X)
def unknown_attribute(x):
    return torch.there_is_no_such_function(x)  # here


# ---- Python that leaves the graph ----------------------------------------------------------------


@case(X)
def to_numpy(x):
    return torch.from_numpy(np.flip(x.numpy()).copy())


@case((X, 2), (X, 0))
def list_by_number(x, n):
    return [1.5, 2.5, 3.5][n] * x


@case((X, "b"), (X, "a"))
def dict_by_name(x, key):
    return {"a": x, "b": x * 2}[key]


@case(torch.tensor([3.0, 1.0, 2.0]))
def sorts_values(x):
    return sorted([x[0], x[1], x[2]])[0]


@case(torch.tensor([3.0, 1.0, 2.0]), LESS)
def maximum_by_key(x):
    return max(x, key=lambda v: v * v)


@case((X, 2), (X, 3))
def unpacks_unknown_length(x, n):
    parts = []
    for i in range(n):
        parts.append(x * i)
    return torch.add(*parts[-2:])


@case(X, LESS)
def evaluates_text(x):
    return eval("x + 1")


@case(X, LESS)
def reads_locals(x):
    y = x + 1
    return locals()["y"]


@case(X)
def object_identity(x):
    return x, id(x) == id(x), hash(x) == hash(x)


COUNTER = [0]


@case(X, LESS)
def changes_a_global_list(x):
    if x.sum() > 0:
        COUNTER.append(1)
    return x * 2


@case(X, LESS)
def defines_a_class(x):
    class Holder:
        def __init__(self, value):
            self.value = value

    holder = Holder(x)
    if x.sum() > 0:
        holder.value = holder.value * 2
    return holder.value


@case(X, LESS)
def attribute_of_a_tensor(x):
    x.note = "mine"
    y = x * 2
    return y if x.sum() > 0 else x


@case((X, 2), (X, 0))
def generator_by_data(x, n):
    def parts():
        for i in range(n):
            yield x * i

    return sum(parts(), x)


@case(X)
def runs_a_coroutine(x):
    async def double(v):
        return v * 2

    return asyncio.run(double(x))


@case(X, LESS)
def caches_results(x):
    @functools.lru_cache
    def scale(n):
        return 2.0 ** n

    return x * scale(3) if x.sum() > 0 else x * scale(1)


@case((X, 5), (X, 1))
def text_of_a_number(x, n):
    return x * len(str(n * 100))


@case((torch.tensor(1), torch.tensor(2)), (torch.tensor(2), torch.tensor(1)))
def compares_tuples(a, b):
    return (a, b) < (b, a)


@case((X, [1, 2]), (X, []))
def truth_of_an_input_list(x, items):
    return x * items[0] if items else x


@case((X, 3), (X, 0))
def deletes_in_a_loop(x, n):
    for i in range(n):
        y = x * i
        x = x + y
        del y
    return x


@case(X, LESS)
def deletes_in_a_branch(x):
    y = x * 2
    if x.sum() > 0:
        del y
        y = x
    return y


@case((X, 4), (X, 0))
def changes_what_it_loops_over(x, n):
    items = [0, 1]
    for i in items:
        if i < n and len(items) < 5:
            items.append(i + 2)
    return x, items


@case((X, 3), (LESS, 1))
def rounds_with_side_effects(x, n):
    def step(total=[0]):  # noqa: B006
        total[0] += 1
        return total[0]

    for _ in range(n):
        x = x * step()
    return x


@case(X)
def endless(x):
    n = 0
    while n >= 0:  # here
        n = n + 1
    return x


@case(X)
def endless_recursion(x):
    return endless_recursion(x)
