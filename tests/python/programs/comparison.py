"""Comparisons, chained ones, in, is, not, and, or; what they leave out when it is not needed."""
import torch

from . import program, randn

NAN = float("nan")


@program(torch.tensor(0.5), torch.tensor(2.0), torch.tensor(-1.0), tags="chained")
def between(x):
    if 0 < x < 1:
        return x
    return x * 0


@program((torch.tensor(1), 2, 3), (torch.tensor(2), 2, 3), (torch.tensor(5), 4, 9),
         tags="chained long")
def ordered(a, b: int, c: int):
    return (a < b < c, 1) if a <= b <= c != 9 else (False, 2)


@program(randn(3) * 9, randn(3).abs() * 0.1, torch.zeros(2), tags="and or not")
def connectives(x):
    positive = x.sum() > 0
    large = x.abs().max() > 1
    if positive and not large:
        return x
    if positive or large:
        return -x
    return x + 5


@program(torch.tensor([4.0, 2.0]), torch.tensor([]), torch.tensor([0.0]), torch.tensor([0.5]),
         tags="short-circuit")
def short_circuit(x):
    """What is right of `and` would fail for an empty tensor."""
    if x.numel() > 0 and x.max() > 1:
        return x / x.max()
    if x.numel() == 0 or x[0] == 0:
        return torch.ones(1)
    return x


@program((randn(3), 0), (randn(3), 4), (randn(2), -3), tags="value-of-or")
def value_of_or(x, n: int):
    """`or` gives one of its operands, not a bool."""
    steps = n or 2
    limit = (n > 2 and 10) or 5
    return x * steps + limit, steps, n and x.sum()


@program((randn(3), 1), (randn(3), 4), (randn(2), 3), tags="in")
def membership(x, n: int):
    if n in (1, 2, 3):
        x = x + n
    if n not in [3, 4]:
        x = x * 10
    return x, n in {4: "four"}


@program((randn(3), None), (randn(3), 2.0), (randn(2, 2), torch.ones(2, 2)), tags="is none")
def optional(x, other=None):
    if other is None:
        return x
    if isinstance(other, torch.Tensor):
        return x @ other
    return x * other


@program((torch.tensor([1, 2, 3]), 2), (torch.tensor([1, 2, 3]), 7), (torch.tensor([5]), 5),
         tags="in tensor")
def in_a_tensor(x, n: int):
    return x * 2 if n in x else x - n


@program((torch.tensor(True), torch.tensor(False)), (torch.tensor(True), torch.tensor(True)),
         (torch.tensor(False), torch.tensor(True)), (torch.tensor(False), torch.tensor(False)),
         tags="bitwise")
def bitwise(a, b):
    if a & ~b:
        code = 1
    elif a ^ b:
        code = 2
    elif a | b:
        code = 3
    else:
        code = 4
    return code


@program(torch.tensor([1.0, NAN]), randn(3), torch.tensor([NAN]), -randn(2), tags="nan")
def not_a_number(x):
    """A nan is not equal to itself, and not smaller than anything."""
    worst = x.sum()
    if worst != worst:
        return x != x
    if not worst < 0:
        return x > 0
    return x < 0


@program((randn(3), True, False), (randn(3), False, True), (randn(2), False, False),
         tags="bool-values")
def truth_as_values(x, a: bool, b: bool):
    both = a and b
    either = a or b
    neither = not either
    return x * either + neither, both, either, neither


@program((randn(3), randn(3)), (randn(3), randn(4)), (torch.ones(2), torch.zeros(2)), tags="shapes")
def same_shape(a, b):
    if a.shape == b.shape and torch.equal(a, b):
        return a * 2
    if a.shape != b.shape:
        return torch.cat([a, b])
    return a + b


@program(randn(3), -randn(4).abs(), tags="is static")
def identity(x):
    y = x
    z = x + 0
    same, other = y is x, z is not x
    if same and other and x.sum() > 0:
        return y + 1
    return z


@program((randn(3), 5), (randn(3), 0), (torch.zeros(2), 0), tags="truthiness")
def truthiness(x, n: int):
    out = []
    if n:
        out.append(x * n)
    if x[0]:
        out.append(x + 1)
    if out:
        return out[0]
    return x - 1


@program((randn(2), 3), (randn(2), 7), (randn(3), 31), tags="several ifs arithmetic")
def fizz_buzz(x, n: int):
    fizz = buzz = 0
    for i in range(1, n + 1):
        if i % 15 == 0:
            x = x * 0.5
        elif i % 3 == 0:
            fizz += 1
        elif not i % 5:
            buzz += 1
    return x, fizz, buzz
