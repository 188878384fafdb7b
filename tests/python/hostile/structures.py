"""Structures: unpacking, tuples, classes, order, sets, aliases, views, defaults, closures."""
import collections
import copy
import dataclasses
import enum
import types
import typing

import torch
from torch import nn

from . import equal, refused

UP = torch.tensor([1.0, 2.0, 3.0])
DOWN = torch.tensor([-1.0, -2.0, -3.0])
GRID = torch.arange(6.0).reshape(2, 3)


# ---- unpacking and stars -------------------------------------------------------------------------


@equal(UP, DOWN)
def star_in_the_middle(x):
    a, *b, c = [x, x * 2, x * 3, x * 4]
    return a, b, c


@equal(UP, torch.tensor([1.0, 2.0]), torch.ones(4))
def star_of_a_tensor(x):
    first, *rest = x
    return first, rest, len(rest)


@equal((UP, [1, 2, 3]), (DOWN, [4]))
def star_of_an_input(x, items):
    first, *rest = items
    return x * first, rest


@refused((UP, (2, 3)), (DOWN, (4, 5)))
def star_of_an_input_in_a_call(x, pair):
    def f(v, a, b=1, *c):
        return v * a + b, len(c)

    return f(x, *pair), f(x, *pair, *pair)  # refuse


@equal(UP, DOWN)
def star_in_a_call(x):
    def f(v, a, b=1, *c, k=0, **named):
        return v * a + b + k, len(c), sorted(named)

    pair = (2, 3)
    return f(x, *pair), f(x, *pair, *pair, k=5), f(*[x, 1], z=1, **{"y": 2})


@equal((UP, {"a": 2, "b": 3}), (DOWN, {"b": 1, "a": 0}))
def double_star_in_a_call(x, named):
    def f(v, a, b):
        return v * a + b

    return f(x, **{"b": 1, "a": 2}), f(x, a=named["a"], b=named["b"])


@equal(UP, DOWN)
def stars_in_displays(x):
    a = [x, *[x * 2, x * 3]]
    b = (*a, x)
    c = {**{"k": x}, "l": x * 2, **{"k": x * 5}}
    return a, b, c


@equal(UP, DOWN)
def swaps_items(x):
    items = [x, x * 2]
    i = 0
    i, items[i] = 1, x * 9
    return items, i


@equal(UP, DOWN)
def chained_targets(x):
    a = b = [x]
    b.append(x * 2)
    c, d = e = (a, b)
    return len(a), c is d, e[0] is a


@equal(UP, DOWN)
def unpacks_a_string_and_a_dict(x):
    a, b = "xy"
    c, d = {"k": 1, "l": 2}
    return x, a + b + c + d


# ---- tuples with names, dataclasses, enums -------------------------------------------------------

Point = collections.namedtuple("Point", "x y", defaults=[5.0])


class Pair(typing.NamedTuple):
    first: torch.Tensor
    second: float = 2.0

    def scaled(self, k):
        return self._replace(first=self.first * k)


@equal(UP, DOWN)
def named_tuple(x):
    p = Point(x)
    if x.sum() > 0:
        p = p._replace(y=7.0)
    return p.x * p.y, p._fields, p._asdict()["y"]


@equal(UP, DOWN)
def named_tuple_as_a_result(x):
    p = Pair(x).scaled(2)
    return p if x.sum() > 0 else p.scaled(-1)


@equal(UP, DOWN)
def named_tuple_unpacked(x):
    a, b = Pair(x, 3.0)
    return a * b, Pair(a, b) == Pair(a, b), len(Pair(a))


@dataclasses.dataclass
class Box:
    t: torch.Tensor
    n: int = 0
    items: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.n += 1


@equal(UP, DOWN)
def dataclass_changes(x):
    a = Box(x)
    b = a
    if x.sum() > 0:
        b.n += 10
        b.t = b.t * 2
    return a.t, a.n


@equal(UP, DOWN)
def dataclass_default_lists(x):
    a, b = Box(x), Box(x)
    a.items.append(1)
    if x.sum() > 0:
        b.items.append(2)
    return len(a.items), len(b.items), a.items is b.items


@dataclasses.dataclass(frozen=True, order=True)
class Ranked:
    rank: int
    name: str = dataclasses.field(compare=False, default="")


@equal(UP, DOWN)
def dataclass_order(x):
    a, b = Ranked(1, "a"), Ranked(2, "b")
    best = max(a, b)
    return x * best.rank, best.name, a == Ranked(1, "z"), hash(a) == hash(Ranked(1, "q"))


@equal(UP, DOWN)
def dataclass_replace(x):
    a = Box(x, 3)
    b = dataclasses.replace(a, t=x * 2)
    return b.t, b.n, a.n, dataclasses.asdict(b)["n"]


class Color(enum.Enum):
    RED = 1
    BLUE = 2

    @property
    def scale(self):
        return self.value * 10


@equal(UP, DOWN)
def enum_chosen(x):
    c = Color.RED if x.sum() > 0 else Color.BLUE
    return x * c.value


@equal(UP, DOWN)
def enum_static(x):
    total = 0
    for c in Color:
        total += c.scale
    return x * total, Color(2).name, Color["RED"] is Color.RED


@equal(UP, DOWN)
def simple_namespace(x):
    ns = types.SimpleNamespace(a=x, n=1)
    if x.sum() > 0:
        ns.a = ns.a * 2
        ns.n += 1
    return ns.a, ns.n


class Slotted:
    __slots__ = ("t", "n")

    def __init__(self, t):
        self.t, self.n = t, 0


@equal(UP, DOWN)
def object_with_slots(x):
    s = Slotted(x)
    if x.sum() > 0:
        s.t = s.t * 3
        s.n = 4
    return s.t, s.n


@equal(UP, DOWN)
def object_gets_an_attribute(x):
    s = types.SimpleNamespace()
    s.a = x
    if x.sum() > 0:
        s.b = x * 2
    else:
        s.b = x * 3
    return s.b, hasattr(s, "c"), getattr(s, "c", 7)


# ---- dicts and sets ------------------------------------------------------------------------------


@equal(UP, DOWN)
def dict_order(x):
    d = {"b": x, "a": x * 2}
    d["c"] = x * 3
    del d["b"]
    d["b"] = x * 4
    return d, list(d), next(iter(d))


@equal((UP, {"b": UP, "a": DOWN}), (DOWN, {"z": UP}))
def dict_input_order(x, d: dict):
    total = x
    for i, k in enumerate(d):
        total = total + d[k] * i
    return total


@equal((UP, {"a": 1.0}), (DOWN, {"b": 2.0}))
def dict_get(x, d):
    return x * d.get("a", 5.0), "a" in d, len(d)


@equal(UP, DOWN)
def dict_keys_that_are_equal(x):
    d = {1: "int", 1.0: "float", True: "bool"}
    return x, len(d), d[1], list(d)


@equal(UP, DOWN)
def dict_union(x):
    a = {"k": x, "l": x * 2}
    b = a | {"k": x * 3}
    a |= {"m": x * 4}
    return list(a), b["k"], b.get("m")


@refused(UP, UP.clone())
def tensors_in_a_set(x):
    y = x.clone()
    return len({x, y}), len({x, x}), x in {x}, y in {x}  # refuse


@equal(UP, DOWN)
class BuffersInASet(nn.Module):
    """Tensors are hashed by identity."""

    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.ones(3))
        self.register_buffer("b", torch.ones(3))

    def forward(self, x):
        return x * len({self.a, self.b, self.a}), self.a in {self.b}, {self.a: 1, self.b: 2}[self.b]


@equal(UP, DOWN)
class ConstantsInASet(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = [torch.ones(3), torch.ones(3), torch.zeros(3)]

    def forward(self, x):
        return x * len(set(self.parts))


@equal(UP, DOWN)
class ParametersOnce(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight = self.a.weight

    def forward(self, x):
        once = set(self.a.parameters()) | set(self.b.parameters())
        return self.a(x) * len(once)


@refused(UP, DOWN)
def tensors_as_keys(x):
    y = x.clone()
    d = {x: 1, y: 2}  # refuse
    return d[x], d[y], len(d)


@equal(UP, DOWN)
def tensor_in_a_list(x):
    y = x * 2
    return any(t is y for t in [x, y]), [t is x for t in (x, y)]


@equal(UP, DOWN)
def dict_of_functions(x):
    table = {"a": torch.relu, "b": lambda v: v * 2}
    for key in sorted(table):
        x = table[key](x)
    return x


@equal(UP, DOWN)
def views_of_a_dict(x):
    d = {"a": x}
    keys, values = d.keys(), d.values()
    d["b"] = x * 2
    return list(keys), sum(values), len(values)


@equal(UP, DOWN)
def frozen_and_nested_keys(x):
    d = {(1, "a"): x, frozenset([1, 2]): x * 2}
    return d[(1, "a")], d[frozenset([2, 1])]


# ---- aliases of lists ----------------------------------------------------------------------------


@equal(UP, DOWN)
def augmented_list_is_in_place(x):
    a = [x]
    b = a
    b += [x * 2]
    c = a
    c = c + [x * 3]
    return len(a), len(c), a is b


@equal(UP, DOWN)
def list_in_a_tuple(x):
    t = ([x], x)
    t[0].append(x * 2)
    if x.sum() > 0:
        t[0][0] = x * 9
    return t[0], len(t)


@equal(UP, DOWN)
def shallow_and_deep_copies(x):
    a = [[x], [x * 2]]
    b, c = copy.copy(a), copy.deepcopy(a)
    a[0].append(x * 3)
    if x.sum() > 0:
        b[1] = [x * 7]
    return len(b[0]), len(c[0]), a[1][0], b[1][0]


@equal((UP, [UP, DOWN]), (DOWN, [DOWN]))
def input_list_kept_under_two_names(x, items):
    mine = items
    mine[0] = x * 5
    return items[0], mine is items


@equal((UP, [1, 2, 3]), (DOWN, [1]))
def changes_the_list_it_loops_over(x, items):
    for v in items[:]:
        if v > 1:
            items.remove(v)
    return x * len(items)


@equal((UP, [3, 1, 2]), (DOWN, [1]))
def sorts_the_input(x, items):
    items.sort()
    items.insert(0, 9)
    return x * items[0]


def grows(x, items=[]):  # noqa: B006
    items.append(len(items) + 1)  # refuse
    return x * items[-1]


@refused(UP, DOWN)
def mutable_default(x):
    return grows(x)


@refused(UP, DOWN)
def own_mutable_default(x, seen={}):  # noqa: B006
    seen["n"] = seen.get("n", 0) + 1  # refuse
    return x * seen["n"]


@equal(UP, DOWN)
def default_of_an_inner_function(x):
    def step(total=[0]):  # noqa: B006
        total[0] += 1
        return total[0]

    step()
    if x.sum() > 0:
        step()
    return x * step()


@equal(UP, DOWN)
def default_is_evaluated_once(x):
    k = 2

    def f(v, scale=k):
        return v * scale

    k = 100
    return f(x) + k


# ---- closures ------------------------------------------------------------------------------------


@equal(UP, DOWN)
def late_binding(x):
    fs = [lambda v: v * i for i in range(3)]
    gs = [lambda v, i=i: v * i for i in range(3)]
    return fs[0](x), gs[1](x)


@equal(UP, DOWN)
def nonlocal_counter(x):
    n = 0

    def bump(k):
        nonlocal n
        n += k
        return n

    if x.sum() > 0:
        bump(1)
    else:
        bump(2)
        bump(3)
    return x * n


@equal((UP, 3), (DOWN, 0))
def nonlocal_in_a_loop(x, n):
    total = x

    def add(k):
        nonlocal total
        total = total + k

    for i in range(n):
        add(i)
    return total


@equal(UP, DOWN)
def closure_over_a_loop_variable(x):
    f = None
    for i in range(3):
        if i == 1:
            def f(v):
                return v * i
    return f(x)


@equal(UP, DOWN)
def two_closures_share_a_cell(x):
    def make():
        n = [0]

        def inc():
            n[0] += 1

        def get():
            return n[0]

        return inc, get

    inc, get = make()
    if x.sum() > 0:
        inc()
    inc()
    return x * get()


def make_counter():
    n = 0

    def count(x):
        nonlocal n
        n += 1  # refuse
        return x * n

    return count


COUNT = make_counter()


@refused(UP, DOWN)
def closure_that_counts(x):
    return COUNT(x)


@equal(UP, DOWN, UP * 0)
def closure_reads_another_variable(x):
    """What no function reads need not come out of the branch: data cannot select a deque."""
    for k in range(2):
        seen = collections.deque([x, x + k], maxlen=2)
        scaled = (x * i for i in (1, 2))
        if seen[1].sum() > k:
            return x * k
    return sum(scaled, x)


@refused(UP, DOWN)
def closure_reads_a_deque(x):
    for k in range(2):
        seen = collections.deque([x, x + k], maxlen=2)
        last = lambda: seen  # noqa: E731
        if x.sum() > k:
            return x * k
    return last()[0]  # refuse


# ---- views and in-place changes ------------------------------------------------------------------


@equal(UP, DOWN)
def view_before_a_branch(x):
    x = x.clone()
    v = x[1:]
    if x.sum() > 0:
        v.mul_(10)
    else:
        x.add_(1)
    return x, v


@equal(UP.clone(), DOWN.clone())
def input_changes_in_a_branch(x):
    if x.sum() > 0:
        x.mul_(2)
    return x


@equal((UP, UP), (DOWN, DOWN.clone()))
def same_tensor_twice(a, b):
    a.add_(1)
    return a * b, a is b


@equal(*[(g[0], g) for g in (torch.arange(6.0).reshape(2, 3), -torch.ones(2, 3))])
def view_and_base_as_inputs(row, grid):
    row.add_(10)
    if grid.sum() > 0:
        grid[1] = row
    return grid.sum(), row


@equal(GRID.clone(), -GRID)
def augmented_item(x):
    x[0] += 1
    x[:, 1] *= 2
    x[x > 3] -= 5
    return x


@equal(GRID.clone(), -GRID)
def transposed_in_place(x):
    y = x.t()
    y[0, 1] = 100
    x.transpose_(0, 1)
    return x, y, x.shape[0]


@equal(GRID.clone(), -GRID)
def resized_views(x):
    flat = x.view(-1)
    flat[::2] = 0
    y = x.reshape(3, 2)
    y += 1
    return x, flat


@equal(GRID.clone(), -GRID)
def contiguous_or_copy(x):
    y = x.t().contiguous()
    z = x.contiguous()
    y.add_(1)
    z.add_(2)
    return x, y, z is x


@equal(GRID.clone(), -GRID)
def detach_shares(x):
    d = x.detach()
    d.add_(5)
    return x, d


@equal((UP.clone(), 2), (DOWN.clone(), 0))
def in_place_in_a_loop_through_a_view(x, n):
    v = x[:1]
    for i in range(n):
        v += i + 1
    return x, v


@equal(UP.clone(), DOWN.clone())
def write_to_a_view_that_a_branch_chose(x):
    y = x.clone()
    v = x[0:1] if x.sum() > 0 else y[1:2]
    v.fill_(50)
    return x, y


@equal(UP.clone(), DOWN.clone())
def augmented_name_of_an_input(x):
    y = x
    y += 1
    y = y + 1
    y += 1
    return x, y


@equal(UP.clone(), DOWN.clone())
def expanded_and_written(x):
    y = x.expand(2, 3).clone()
    y[0] = 0
    w = x.unsqueeze(0)
    w[0, 0] = 42
    return x, y


@equal(GRID.clone(), -GRID)
def rows_are_views(x):
    for row in x:
        row += 1
    a, b = x.unbind()
    a.mul_(2)
    c, d = x.chunk(2)
    d.zero_()
    return x, b, c


@equal(UP.clone(), DOWN.clone())
def out_argument(x):
    y = torch.empty(3)
    torch.mul(x, 2, out=y)
    if x.sum() > 0:
        torch.add(y, 1, out=x)
    return y, x


@equal(UP.clone(), DOWN.clone())
def copies_into_itself(x):
    x[1:] = x[:-1].clone()
    x.copy_(x.flip(0))
    return x


@equal(UP.clone(), DOWN.clone())
def real_of_a_complex(x):
    z = torch.complex(x, x)
    r = z.real
    r.add_(1)
    return z, r


@equal(GRID.clone(), -GRID)
class ReturnsAViewOfAParameter(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, 3))

    def forward(self, x):
        row = self.w[0].detach()
        row += 1
        return x + self.w


@equal(GRID.clone(), -GRID)
def storage_swapped(x):
    y = torch.zeros_like(x)
    x.data, y.data = y.data, x.data
    return x, y


@equal(UP.clone(), DOWN.clone())
def tensor_attributes(x):
    return (getattr(x, "name", None), getattr(x, "nothing", 5), hasattr(x, "shape"),
            hasattr(x, "nothing"), getattr(x, "T").shape)


@equal(UP.clone(), DOWN.clone())
def attribute_set_on_a_tensor(x):
    y = x * 2
    y.scale = 3.0
    return y * y.scale


# ---- structures as results -----------------------------------------------------------------------


@equal(UP, DOWN)
def nested_result(x):
    return {"a": [x, (x * 2, None)], "b": {"c": 1.5}}, [], (), {}


@equal(UP, DOWN)
def same_object_twice(x):
    y = x * 2
    return y, y, [y, y]


@equal(UP, DOWN)
def result_of_other_lengths(x):
    items = [x]
    if x.sum() > 0:
        items.append(x * 2)
    return items


@equal(UP, DOWN)
def result_or_none(x):
    if x.sum() > 0:
        return x * 2


@equal((UP, [1, 2]), (DOWN, []))
def returns_the_input_list(x, items):
    return items, x


@equal(UP, DOWN)
def returns_a_generator_as_a_list(x):
    return list(x * i for i in range(3)), tuple(v for v in (1, 2)), sorted([3, 1])


@refused(UP, DOWN)
def returns_a_set(x):
    return x, {1, 2}  # refuse


@equal(UP, DOWN)
def slices_as_values(x):
    s = slice(0, 2)
    return x[s], s.start, x[slice(None, None, 2)], [1, 2, 3][s]


CONSTANT = [1, 2]


@equal(UP, DOWN)
def returns_a_global_list(x):
    return [x, CONSTANT[0]]


@equal(UP, DOWN)
def fresh_list_each_call(x):
    made = [0] * 3
    made[0] = 1
    return made, x
