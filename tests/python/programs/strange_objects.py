"""Objects of the user's own classes, and what Python asks of them."""
import contextlib
import dataclasses
import enum
import functools
import operator

import torch

from . import program, randn


class Mode(enum.Enum):
    UP = "up"
    DOWN = "down"
    FLAT = 3

    @property
    def sign(self):
        return {"up": 1, "down": -1}.get(self.value, 0)

    @classmethod
    def of(cls, x):
        return cls.UP if x > 0 else cls.DOWN


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 10


@program((randn(3), "up"), (randn(3), "down"), (randn(3), "?"), tags="enum str dispatch")
def enum_by_string(x, mode: str):
    for m in Mode:
        if m.value == mode:
            return x * m.sign
    return x


@program(randn(3), -randn(3).abs() * 40, tags="enum data property")
def enum_by_data(x):
    return x * Mode.of(x.sum()).sign


@program(randn(3), -randn(3).abs() * 40, tags="intenum operand")
def enum_as_number(x):
    x = x + Level.HIGH
    if x.sum() > Level.LOW:
        x = Level.LOW.value - x
    return x, Level.HIGH + 1, Mode["FLAT"].name


@dataclasses.dataclass
class State:
    h: torch.Tensor
    step: int = 0
    log: list = dataclasses.field(default_factory=list)

    def advance(self, x):
        return dataclasses.replace(self, h=self.h * 0.5 + x, step=self.step + 1)

    @property
    def norm(self):
        return self.h.norm()


@program(randn(3), randn(3) * 10, torch.zeros(3), tags="dataclass replace while")
def dataclass_goes_round(x):
    s = State(torch.zeros(3))
    while s.norm < x.norm() * 1.5 and s.step < 8:
        s = s.advance(x)
        s.log.append(s.step)
    return s.h, s.step, s.log


@program(randn(3), -randn(3), tags="dataclass text", refused="format its values instead")
def text_of_a_dataclass(x):
    return f"{State(x.sum())}", x


class Window:
    def __init__(self, data, size):
        self.data, self.size, self.reads = data, size, 0

    def __len__(self):
        self.reads += 1
        return self.data.shape[0] - self.size + 1

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(3))]
        return self.data[i:i + self.size]

    @property
    def mean(self):
        return self.data.mean()

    def __contains__(self, v):
        return bool((self.data == v).any())

    def __call__(self, f):
        return f(self.data)


@program(randn(5), -randn(4).abs(), tags="len getitem call of-object")
def own_container(x):
    w = Window(x, 2)
    out = []
    for i in range(len(w)):
        out.append(w[i].sum())
    if w.mean > 0:
        out.append(w.data.max())
    return torch.stack(out), w[0:2], w(torch.sum), len(w), w.reads


@program((randn(5), 0.0), (-randn(4).abs(), 0.0), (torch.zeros(2), 0.0), tags="in of-object")
def in_own_container(x, v: float):
    w = Window(x, 1)
    return (x + 1 if x[0] in w else x), v in w, 9 not in w


class Vector:
    """What builtin functions call."""

    def __init__(self, h):
        self.h = h

    def __repr__(self):
        return f"V({self.h.sum().item():.3f})"

    def __str__(self):
        return "v" + repr(self)

    def __format__(self, spec):
        return spec + str(self)

    def __len__(self):
        return self.h.shape[0]

    def __bool__(self):
        return bool(self.h.sum() > 0)

    def __int__(self):
        return int(self.h[0] * 10)

    def __float__(self):
        return self.h[0].item()

    def __abs__(self):
        return Vector(self.h.abs())

    def __round__(self, n=0):
        return round(float(self), n)

    def __getattr__(self, name):
        if name.startswith("get_"):
            return lambda k: self.h[k] * len(name)
        raise AttributeError(name)  # never


@program(randn(3), -randn(2).abs(), tags="builtins of-object")
def asked_by_builtins(x):
    v = Vector(x)
    way = 1 if v else 2
    other = None or v
    return (repr(v), str(v), f"{v}", f"{v!r:>12}", f"{v:abc}", bool(v), not v, way, len(v), int(v),
            float(v), abs(v).h, round(v, 2), v.get_it(1), other.h)


class Stack:
    def __init__(self):
        self.items = []

    def push(self, v):
        self.items.append(v)
        return self

    def __iter__(self):
        return iter(self.items)

    def __enter__(self):
        return self.push(0)

    def __exit__(self, *exception):
        self.items.clear()
        return False

    def __iadd__(self, v):
        return self.push(v)

    def __bool__(self):
        return len(self.items) > 0

    def __eq__(self, other):
        return self.items == other.items

    def __lt__(self, other):
        return len(self.items) < len(other.items)


@program(randn(5), -randn(4).abs(), tags="iadd with iter of-object")
def own_stack(x):
    s = Stack()
    s += 1
    s.push(2).push(3)
    n = 0
    with s as t:
        for v in t:
            n += v
            if x.sum() > v:
                x = x - 1
    return x, n, not s, s < Stack().push(1), s == Stack()


def twice(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(f(*args, **kwargs), **kwargs)

    return wrapper


def scaled(by):
    def decorate(f):
        def inner(x, *more, k=1.0):
            y = f(x * by, *more)
            return y if y.sum() > 0 else y * k

        return inner

    return decorate


@twice
@scaled(0.5)
def bump(x, *more):
    return x + len(more) + 1


@program(randn(5), -randn(4).abs() * 10, tags="decorators stacked")
def decorated_twice(x):
    return bump(x, k=2.0) + bump(x)


@contextlib.contextmanager
def scale_of(box, v):
    old = box["s"]
    box["s"] = v
    try:
        yield box
    finally:
        box["s"] = old


@program(randn(5), -randn(4).abs() * 10, tags="contextmanager return in-for")
def manager_in_a_loop(x):
    box = {"s": 1.0}
    for i in range(4):
        with scale_of(box, i + 2.0) as b:
            if x.sum() > 3:
                return x * b["s"], i
            x = x + b["s"]
    return x * box["s"], -1


@program(randn(3), -randn(3).abs(), tags="nonlocal branch while")
def changes_what_is_around(x):
    count, total = 0, x.new_zeros(())

    def add(v, by=1):
        nonlocal count, total
        if v.sum() > 0:
            count += by
            total = total + v.sum()
        else:
            total -= 1
        return count

    for i in range(3):
        add(x - i, by=i + 1)
    while count < 5:
        add(x.abs() + 1)
    return count, total


@program((randn(4), "sin", 0), (randn(3), "cos", -1), (randn(3), "neg", 1),
         tags="dispatch dict functions", raises=[((randn(3), "x", 0), KeyError),
                                                 ((randn(3), "sin", 5), IndexError)])
def dispatches(x, name: str, i: int):
    table = {"sin": torch.sin, "cos": torch.cos, "neg": operator.neg}
    steps = [lambda v: v + 1, lambda v: v * v.sum()]
    return steps[i](table[name](x))


@program((randn(3), "sin"), (randn(3), "cos"), tags="getattr data",
         refused="the attribute name passed to getattr()")
def attribute_by_data(x, name: str):
    return getattr(torch, name)(x)


@program((randn(3), 3), (-randn(3).abs(), 0), (randn(3) * 5, 2), tags="for else born")
def finds_or_not(x, n: int):
    for i in range(n):
        y = x + i
        if y.sum() > 3:
            break
    else:
        i = -1
        y = x
    for k in range(n):
        z = x * k
        if z.sum() > 1:
            break
    else:
        return x, i, y
    return z, k, i


@program(([], 3), ([], 4), tags="assert lazy-message", raises=[(([5], 2), AssertionError)])
def message_when_it_fails(xs: list, n: int):
    said = []

    def say():
        said.append(1)  # never
        return "never"  # never

    assert len(xs) == 0, f"left: {xs[0]}"
    assert n > 1, say()
    assert n > 1, (n, "x")
    return n, len(said)


@program(torch.tensor([1.0, -2.0]), torch.tensor([3.0]), tags="assert fstring",
         raises=[(torch.full((2,), 200.0), AssertionError)])
def message_with_values(x):
    assert (x.abs() < 100).all(), f"too large: {x.max().item()} of {tuple(x.shape)}"
    return x
