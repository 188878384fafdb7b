"""Objects as arguments and results: caches, outputs like those of model libraries, named tuples,
dataclasses, slots, descriptors, tensors that are there twice."""
import collections
import copy
import dataclasses
import typing
from collections import OrderedDict, UserDict, UserList, namedtuple

import torch
from programs import call, ints, made, module, program, randn
from torch import nn


class KeyValueCache:
    def __init__(self):
        self.keys, self.values = [], []

    def update(self, layer, k, v):
        if layer == len(self.keys):
            self.keys.append(k)
            self.values.append(v)
        else:
            self.keys[layer] = torch.cat([self.keys[layer], k], 1)
            self.values[layer] = torch.cat([self.values[layer], v], 1)
        return self.keys[layer], self.values[layer]

    def __len__(self):
        return self.keys[0].shape[1] if self.keys else 0


def filled(batch, length):
    cache = KeyValueCache()
    cache.update(0, randn(batch, length, 4), randn(batch, length, 4, seed=1))
    return cache


@module((randn(2, 1, 4), filled(2, 3)), (randn(2, 1, 4), filled(2, 5)),
        (randn(1, 2, 4), filled(1, 3)),
        tags="cache argument")
class AttendsCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x, cache):
        past = len(cache)
        k, v = cache.update(0, self.k(x), self.v(x))
        scores = self.q(x) @ k.transpose(1, 2) + torch.arange(past, past + x.shape[1])[:, None]
        return scores.softmax(-1) @ v, cache


@program((randn(2, 1, 4), KeyValueCache()), (randn(2, 3, 4), KeyValueCache()),
         (randn(2, 1, 4), filled(2, 2)),
         tags="empty cache")
def fills_cache(x, cache):
    cache.update(0, x, x + 1)
    return len(cache)


class ModelOutput(OrderedDict):
    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                self[field.name] = value

    def __getitem__(self, key):
        if isinstance(key, str):
            return dict(self.items())[key]
        return self.to_tuple()[key]

    def __setattr__(self, name, value):
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def to_tuple(self):
        return tuple(self[key] for key in self.keys())


@dataclasses.dataclass
class Output(ModelOutput):
    logits: torch.Tensor = None
    hidden: tuple = None
    loss: torch.Tensor = None


@module(randn(2, 4), randn(5, 4), randn(1, 4), tags="ModelOutput")
class GivesOutput(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        h = self.a(x).tanh()
        return Output(logits=self.b(h), hidden=(x, h))


@module(randn(2, 4), randn(5, 4), tags="ModelOutput inner")
class UsesOutput(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = GivesOutput()

    def forward(self, x):
        out = self.inner(x)
        first, *rest = out.to_tuple()
        return out["logits"] + first, out[0].sum(), len(out)


@program(Output(logits=randn(2, 3)), Output(logits=randn(4, 3)), tags="ModelOutput argument")
def takes_output(out):
    return out.logits.softmax(-1), out.loss is None


Pair = namedtuple("Pair", "left right")


class Typed(typing.NamedTuple):
    x: torch.Tensor
    scale: float = 2.0
    name: str = "a"


@program(Pair(randn(2), randn(2)), Pair(randn(4), randn(4)), Pair(randn(1), randn(1)),
         tags="namedtuple")
def swaps_pair(pair):
    return pair._replace(left=pair.right * 2, right=pair.left)


@program(Typed(randn(2)), Typed(randn(3), 3.0), Typed(randn(3), 3.0, "b"),
         tags="NamedTuple default",
         captured="guard arguments")
def typed_tuple(t):
    return Typed(t.x * t.scale, t.scale * 2, t.name)


@dataclasses.dataclass
class Inner:
    x: torch.Tensor
    count: int = 0


@dataclasses.dataclass
class Outer:
    inner: Inner
    more: dict = dataclasses.field(default_factory=dict)
    tag: str = "t"


@program(Outer(Inner(randn(2), 1)), Outer(Inner(randn(5), 4)), Outer(Inner(randn(2), 1), tag="u"),
         tags="dataclass nested written", captured="guard arguments")
def steps_dataclass(state):
    state.inner.count += 1
    state.inner.x = state.inner.x * state.inner.count
    state.more["last"] = state.inner.x
    return state


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: torch.Tensor
    y: torch.Tensor


@program(Frozen(randn(2), randn(2)), Frozen(randn(3), randn(3)), tags="dataclass frozen replace")
def replaces_frozen(f):
    return dataclasses.replace(f, x=f.x + f.y)


@dataclasses.dataclass
class WithPost:
    x: torch.Tensor
    y: torch.Tensor = dataclasses.field(init=False)

    def __post_init__(self):
        self.y = self.x * 2


@program(randn(3), randn(5), tags="dataclass post_init")
def makes_dataclass(x):
    return WithPost(x + 1)


class Slotted:
    __slots__ = ("x", "n", "later")

    def __init__(self, x, n):
        self.x, self.n = x, n


@program(Slotted(randn(2), 3), Slotted(randn(4), 5), tags="slots")
def fills_slot(s):
    s.later = s.x * s.n
    s.n += 1
    return s.later.sum()


class Doubled:
    """A descriptor that computes."""

    def __set_name__(self, owner, name):
        self.name = f"_{name}"

    def __get__(self, owner, cls=None):
        return self if owner is None else getattr(owner, self.name) * 2

    def __set__(self, owner, value):
        setattr(owner, self.name, value)


class Described:
    value = Doubled()

    def __init__(self, value):
        self.value = value


@program(Described(randn(2)), Described(randn(3)), tags="descriptor")
def reads_descriptor(d):
    d.value = d.value + 1
    return d.value


class Meta(type):
    made = 0

    def __call__(cls, *args):
        cls.made += 1
        return super().__call__(*args)


class Box(metaclass=Meta):
    def __init__(self, x):
        self.x = x

    def __add__(self, other):
        return Box(self.x + other.x)

    def __matmul__(self, other):
        return self.x @ other.x


@program((randn(2, 2), randn(2, 2)), (randn(3, 3), randn(3, 3)), tags="metaclass operators")
def boxes(a, b):
    return (Box(a) + Box(b)) @ Box(a)


class Callable:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, x):
        return x * self.weight


@made(randn(3), randn(5), tags="callable object")
def callable_object():
    return Callable(torch.tensor(3.0))


class Counting:
    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return x * self.calls


@made(randn(3), randn(3), randn(4), tags="callable object counter", captured="refused change")
def counting_object():
    return Counting()


@program(randn(3), randn(5), tags="returns input")
def gives_input(x):
    return x, x.relu(), x


@module(randn(3), randn(3, seed=2), tags="returns parameter")
class GivesParameter(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.register_buffer("b", torch.zeros(3))

    def forward(self, x):
        return self.w, self.b, x @ self.w


SHARED = randn(6)


@program((SHARED, SHARED), (randn(6), randn(6)), tags="same tensor twice written",
         captured="guard arguments")
def writes_alias(a, b):
    a.add_(1)
    return a + b


@program((randn(6), randn(6)), (SHARED, SHARED), (randn(4), randn(4)), tags="other tensors written")
def writes_other(a, b):
    a.mul_(2)
    return b * 1


@program((SHARED[:3], SHARED[2:5]), (randn(3), randn(3)), tags="overlapping inputs")
def writes_overlap(a, b):
    a.zero_()
    return b + 1


@program(([SHARED, SHARED],), ([randn(2), randn(2)],), tags="same tensor in a list",
         captured="guard arguments")
def identity_decides(xs):
    return xs[0] * 3 if xs[0] is xs[1] else xs[0] + xs[1]


TWICE = [randn(2)]


@program(([TWICE, TWICE],), ([[randn(2)], [randn(2)]],), tags="same list twice",
         captured="guard arguments")
def appends_alias(lists):
    lists[0].append(lists[0][0] + 1)
    return len(lists[1])


@program(({"a": randn(2), "b": {"c": randn(3)}},), ({"a": randn(4), "b": {"c": randn(1)}},),
         ({"b": {"c": randn(1)}, "a": randn(4)},), tags="dict order", captured="guard arguments")
def walks_dict(d):
    return [(k, v if isinstance(v, torch.Tensor) else list(v)) for k, v in d.items()]


@program((randn(2), {"mask": None}), (randn(3), {"mask": None}), (randn(2), {"mask": randn(2)}),
         tags="optional", captured="guard arguments")
def optional_in_dict(x, options):
    mask = options.pop("mask")
    return x if mask is None else x * mask


class Tracked(UserDict):
    pass


@program(Tracked(x=randn(2)), Tracked(x=randn(3)), tags="UserDict")
def user_dict(d):
    d["y"] = d["x"] * 2
    return dict(d)


@program(UserList([randn(2), randn(2)]), UserList([randn(3), randn(3)]), tags="UserList")
def user_list(items):
    items.append(sum(items))
    return items[-1]


@program(collections.deque([randn(2), randn(2)], maxlen=2),
         collections.deque([randn(3), randn(3)], maxlen=2),
         tags="deque maxlen")
def pushes_deque(items):
    items.append(items[0] + items[1])
    return items[-1]


@program({1, 2}, {1, 3}, {1, 2}, tags="set argument", captured="guard arguments")
def set_of_numbers(s):
    return torch.ones(3) * sum(s)


@program((randn(3), (1, 2.5)), (randn(3), (4, 0.5)), (randn(4), (1, 2.5)), tags="tuple of numbers")
def tuple_of_numbers(x, pair):
    n, f = pair
    return x * n + f, n + 1


@program(call(randn(3), True), call(randn(3), 1), call(randn(4), True), tags="bool or int",
         captured="guard arguments")
def bool_or_int(x, n):
    return (x, n) if n is True else (x + n, n)


@program((randn(3), 1), (randn(3), 2), (randn(3), 2.0), (randn(3), True), tags="int float bool",
         captured="guard arguments")
def kinds_of_number(x, n):
    return torch.arange(3) * n, type(n).__name__


@program((randn(2, 2), "ij,jk->ik"), (randn(3, 3), "ij,jk->ik"), (randn(2, 2), "ij,kj->ik"),
         tags="string einsum",
         captured="guard arguments")
def einsum_by_string(x, spec):
    return torch.einsum(spec, x, x)


@program((randn(3), torch.float16), (randn(4), torch.float16), (randn(3), torch.float64),
         tags="dtype argument",
         captured="guard arguments")
def casts(x, dtype):
    return x.to(dtype)


@program((randn(3), len), (randn(4), len), (randn(3), id), tags="function argument",
         captured="guard arguments")
def calls_argument(x, fn):
    return fn([x, x]) * x if fn is len else x


@program(randn(3), randn(4), tags="deepcopy")
def copies_deep(x):
    state = {"x": x, "l": [x, 1]}
    other = copy.deepcopy(state)
    other["x"].add_(1)
    return state["x"], other


@program(randn(3), randn(4), tags="object result with method")
def gives_object(x):
    box = Described(x)
    box.count = x.shape[0]
    return box


@program(randn(3), randn(4), tags="generator result", captured="refused generator")
def gives_generator(x):
    return (x * i for i in range(3))


@program(randn(3), randn(3, seed=1), randn(4), tags="set result",
         captured="refused a set")
def gives_set(x):
    return {x.shape[0], 7}


@program(ints(1, 2, 3), ints(4, 5), tags="string result")
def gives_text(x):
    return f"sum {x.sum().item()}"


@program(randn(3), randn(3, seed=8), randn(5), tags="closure result", captured="refused function")
def gives_closure(x):
    return {"call": lambda: x * 2}
