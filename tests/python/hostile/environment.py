"""What is around a program: time, files, variables of the process, globals, caches, classes."""
import datetime
import functools
import logging
import operator
import os
import sys
import time
import uuid
import warnings

import torch
from torch import nn

from . import equal, refused

UP = torch.tensor([1.0, 2.0, 3.0])
DOWN = torch.tensor([-1.0, -2.0, -3.0])
ROWS = torch.tensor([[1.0, 2.0, 3.0], [0.5, 1.0, -1.0]])


# ---- values that are new in each call ------------------------------------------------------------


@equal(UP, DOWN)
def time_now(x):
    return x * (time.time() > 0) + time.time() * 0


@equal(UP, DOWN)
def perf_counter(x):
    start = time.perf_counter()
    y = x * 2
    return y if time.perf_counter() - start < 1e9 else x


@equal(UP, DOWN)
def monotonic(x):
    return x if time.monotonic() > 0 else -x


@refused(UP, DOWN)
def date_of_today(x):
    return x * (datetime.datetime.now().year > 2000)  # refuse


@equal(UP, DOWN)
def unique_number(x):
    return x * (uuid.uuid4().int % 2 * 0 + 1)


@equal(UP, DOWN)
def bytes_of_the_system(x):
    return x * (os.urandom(1)[0] * 0 + 1)


# ---- the process ---------------------------------------------------------------------------------


@equal(UP, DOWN)
def reads_a_variable(x):
    return x * (3 if os.environ.get("CFX_HOSTILE_SCALE") else 2)


@refused(UP, DOWN)
def sets_a_variable(x):
    os.environ["CFX_HOSTILE"] = "1"  # refuse
    return x


@refused(UP, DOWN)
def sets_a_variable_in_a_branch(x):
    if x.sum() > 0:
        os.environ["CFX_HOSTILE"] = "1"  # refuse
    return x


@refused(UP, DOWN)
def writes_a_file(x):
    with open(os.devnull, "w") as f:  # refuse
        f.write("x")
    return x


@equal(UP, DOWN)
def prints(x):
    print("sum", x.sum())
    if x.sum() > 0:
        print("positive", x.shape, end="")
    return x


@equal(UP, DOWN)
def warns(x):
    warnings.warn("careful", stacklevel=1)
    return x


@equal(UP, DOWN)
def logs(x):
    logging.getLogger("hostile").debug("sum of %s", "x")
    return x


@equal(UP, DOWN)
def version(x):
    return x * (2 if sys.version_info >= (3, 8) else 3), sys.byteorder


@equal(UP, DOWN)
def asks_what_is_there(x):
    return x * (2 if torch.cuda.is_available() and False else 3)


@equal(UP, DOWN)
def asks_whether_it_is_traced(x):
    if torch.jit.is_scripting() or torch.jit.is_tracing():
        return x * 100
    return x


# ---- globals -------------------------------------------------------------------------------------

STEPS = 0
SETTINGS = {"scale": 2.0, "seen": []}
WEIGHT = torch.ones(3)


@refused(UP, DOWN)
def global_counter(x):
    global STEPS
    STEPS += 1  # refuse
    return x * STEPS


@refused(UP, DOWN)
def global_dict(x):
    SETTINGS["scale"] = SETTINGS["scale"] + 1  # refuse
    return x * SETTINGS["scale"]


@refused(UP, DOWN)
def global_list_in_a_dict(x):
    SETTINGS["seen"].append(1)  # refuse
    return x * len(SETTINGS["seen"])


@equal(UP, DOWN)
def global_read(x):
    return x * SETTINGS["scale"]


@equal(UP, DOWN)
def global_tensor_in_place(x):
    WEIGHT.add_(1)
    return x * WEIGHT


@refused(UP, DOWN)
def global_through_globals(x):
    globals()["STEPS"] = 5  # refuse
    return x


@equal(UP, DOWN)
def global_augmented_tensor(x):
    w = WEIGHT
    w += 1
    return x * WEIGHT


# ---- attributes of functions ---------------------------------------------------------------------


@refused(UP, DOWN)
def counts_itself(x):
    counts_itself.calls += 1  # refuse
    return x * counts_itself.calls


counts_itself.calls = 0


def helper(x):
    helper.last = 3  # refuse
    return x


@refused(UP, DOWN)
def helper_with_an_attribute(x):
    return helper(x)


@equal(UP, DOWN)
def attribute_of_an_inner_function(x):
    def f(v):
        f.n += 1
        return v * f.n

    f.n = 0
    if x.sum() > 0:
        f(x)
    return f(x)


# ---- caches --------------------------------------------------------------------------------------


@functools.lru_cache
def table(n):
    return [2.0 ** i for i in range(n)]


@equal(UP, DOWN)
def cached_constant(x):
    return x * table(3)[2]


@functools.lru_cache
def noise(n):
    return torch.rand(n)


@refused(UP, DOWN)
def cached_noise(x):
    return x + noise(3)  # refuse


@functools.cache
def shared_list():
    return []


@refused(UP, DOWN)
def cached_list_grows(x):
    shared_list().append(1)  # refuse
    return x * len(shared_list())


@functools.lru_cache
def doubled(t):
    return t * 2


@refused(UP, DOWN)
def cached_by_a_tensor(x):
    return doubled(x) + doubled(x)  # refuse


@equal(UP, DOWN)
def cache_made_inside(x):
    @functools.lru_cache
    def draw(n):
        return torch.rand(n)

    return x + draw(3) - draw(3)


class WithCache:
    @functools.cached_property
    def value(self):
        return torch.rand(3)


@equal(UP, DOWN)
def cached_property_of_a_fresh_object(x):
    w = WithCache()
    return x + w.value - w.value


HELD = WithCache()


@refused(UP, DOWN)
def cached_property_of_a_global(x):
    return x + HELD.value  # refuse


# ---- properties, descriptors, dynamic attributes -------------------------------------------------


class Meter:
    def __init__(self):
        self._n = 0

    @property
    def next(self):
        self._n += 1  # refuse
        return self._n


@equal(UP, DOWN)
def property_with_an_effect(x):
    m = Meter()
    if x.sum() > 0:
        x = x * m.next
    return x * m.next


METER = Meter()


@refused(UP, DOWN)
def property_of_a_global_with_an_effect(x):
    return x * METER.next


class Bounded:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, owner, kind=None):
        return getattr(owner, self.name)

    def __set__(self, owner, value):
        setattr(owner, self.name, min(value, 10))


class Knob:
    level = Bounded()

    def __init__(self, level):
        self.level = level


@equal(UP, DOWN)
def descriptor(x):
    k = Knob(3)
    if x.sum() > 0:
        k.level = 50
    return x * k.level


class Counted:
    """Code that sets attributes, and has effects: it runs once for each assignment."""

    def __init__(self):
        object.__setattr__(self, "log", torch.zeros(3))
        object.__setattr__(self, "sets", 0)

    def __setattr__(self, name, value):
        object.__setattr__(self, "sets", self.sets + 1)
        object.__setattr__(self, name, value)
        self.log.add_(1)


@equal(UP, DOWN)
def setter_with_an_effect(x):
    c = Counted()
    c.level = 3
    if x.sum() > 0:
        c.level = 5
    return x * c.level, c.log, c.sets


class Logged:
    def __init__(self, log):
        self.log = log
        self.held = 1

    @property
    def level(self):
        return self.held

    @level.setter
    def level(self, value):
        self.log.add_(1)
        self.held = value


@equal(UP, DOWN)
def setter_that_writes_to_a_tensor(x):
    log = torch.zeros(3)
    c = Logged(log)
    if x.sum() > 0:
        c.level = 5
    for i in range(2):
        if x[i] > 0:
            c.level = c.level + i
    return x * c.level, log


class Doubling:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, owner, kind=None):
        return getattr(owner, self.name)

    def __set__(self, owner, value):
        setattr(owner, self.name, 2 * value)


class Dial:
    level = Doubling()

    def __init__(self, level):
        self.level = level


@equal(UP, DOWN)
def descriptor_that_is_not_idempotent(x):
    k = Dial(3)
    if x.sum() > 0:
        k.level = 50
    while x.sum() < 20:
        k.level = k.level + 1
        x = x + 3
    return x * k.level


class Anything:
    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        self.asked.append(name)
        return len(name)


@equal(UP, DOWN)
def dynamic_attribute(x):
    a = Anything()
    if x.sum() > 0:
        x = x * a.abc
    return x * a.ab, len(a.asked)


class Tracked:
    def __init__(self):
        object.__setattr__(self, "log", [])

    def __setattr__(self, name, value):
        self.log.append(name)
        object.__setattr__(self, name, value)


@equal(UP, DOWN)
def setattr_with_an_effect(x):
    t = Tracked()
    t.a = 1
    if x.sum() > 0:
        t.b = 2
    else:
        t.b = 3
    return x * t.b, len(t.log)


class Everything:
    def __getattribute__(self, name):
        return 7 if name == "seven" else object.__getattribute__(self, name)


@equal(UP, DOWN)
def getattribute(x):
    return x * Everything().seven


class Registry(type):
    made = []

    def __call__(cls, *args):
        found = super().__call__(*args)
        Registry.made.append(cls.__name__)  # refuse
        return found


class Part(metaclass=Registry):
    def __init__(self, k):
        self.k = k


@refused(UP, DOWN)
def metaclass_that_registers(x):
    return x * Part(3).k


class Meta(type):
    def __getattr__(cls, name):
        return len(name)

    def __len__(cls):
        return 4


class WithMeta(metaclass=Meta):
    pass


@equal(UP, DOWN)
def metaclass_attributes(x):
    return x * WithMeta.abcde + len(WithMeta)


class Singleton:
    found = None

    def __new__(cls):
        if cls.found is None:
            cls.found = super().__new__(cls)  # refuse
            cls.found.n = 0
        cls.found.n += 1
        return cls.found


@refused(UP, DOWN)
def singleton(x):
    return x * Singleton().n


# ---- operators of the user's classes -------------------------------------------------------------


class Vec:
    def __init__(self, t):
        self.t = t

    def __add__(self, other):
        return Vec(self.t + getattr(other, "t", other))

    __radd__ = __add__

    def __mul__(self, k):
        return NotImplemented if isinstance(k, str) else Vec(self.t * k)

    def __rmul__(self, k):
        return Vec(self.t * k * 100)

    def __iadd__(self, other):
        self.t = self.t + other * 10
        return self

    def __getitem__(self, i):
        return self.t[i]

    def __len__(self):
        return 3

    def __bool__(self):
        return bool(self.t.sum() > 0)

    def __eq__(self, other):
        return bool((self.t == other.t).all())

    def __lt__(self, other):
        return bool(self.t.sum() < other.t.sum())

    def __hash__(self):
        return 1

    def __call__(self, k):
        return self.t * k

    def __contains__(self, v):
        return bool((self.t == v).any())

    def __neg__(self):
        return Vec(-self.t)

    def __matmul__(self, other):
        return (self.t * other.t).sum()

    def __format__(self, spec):
        return f"Vec[{spec}]"


@equal(UP, DOWN)
def own_operators(x):
    v = Vec(x)
    w = v + 1 + v
    w = 2 + w * 3
    u = 2 * v
    return w.t, u.t, v[0], len(v), (-v).t, v @ w, v(5)


@equal(UP, DOWN)
def own_truth_and_comparison(x):
    v, w = Vec(x), Vec(-x)
    return (x if v else -x), v == v, v < w, 2.0 in v, bool(not w)


@equal(UP, DOWN)
def own_in_place_operator(x):
    v = Vec(x)
    alias = v
    v += 1
    if x.sum() > 0:
        v += 2
    return alias.t, alias is v


@equal(UP, DOWN)
def own_class_sorted(x):
    a, b = Vec(x), Vec(x + 1)
    best = max([a, b], key=lambda v: v.t.sum())
    return best.t, f"{a:q}"


@equal(UP, DOWN)
def own_operator_through_a_function(x):
    v = Vec(x)
    return operator.add(v, 1).t, operator.neg(v).t, operator.iadd(v, 1).t, v.t


class Lazy(float):
    def __mul__(self, other):
        return other * 50


@equal(UP, DOWN)
def subclass_of_float(x):
    return Lazy(2.0) * x, x * Lazy(2.0), Lazy(3.0) + 1


class Steps(int):
    def __add__(self, other):
        return Steps(int(self) + other * 10)


@equal(UP, DOWN)
def subclass_of_int(x):
    return x * (Steps(1) + 2), int(Steps(3))


class Items(list):
    def append(self, v):
        super().append(v)
        super().append(v)


@equal(UP, DOWN)
def subclass_of_list(x):
    items = Items([x])
    items.append(x * 2)
    if x.sum() > 0:
        items.append(x * 3)
    else:
        items.append(x * 4)
    return len(items), items[-1]


class Table(dict):
    def __getitem__(self, k):
        return super().__getitem__(k) * 2

    def __setitem__(self, k, v):
        super().__setitem__(k, v + 1)


@equal(UP, DOWN)
def subclass_of_dict(x):
    d = Table(a=x)
    d["b"] = x
    if x.sum() > 0:
        d["b"] = x * 5
    return d["a"], d["b"], d.get("b")


class Named(torch.Tensor):
    pass


@equal(UP, DOWN)
def subclass_of_tensor(x):
    y = x.as_subclass(Named)
    return (y * 2).as_subclass(torch.Tensor), isinstance(y, Named)


@equal(UP, DOWN)
def operator_tools(x):
    get = operator.itemgetter(0, 2)
    a, b = get([x, x * 2, x * 3])
    shape = operator.attrgetter("shape")
    total = functools.reduce(operator.add, [a, b, x])
    return a + b, shape(x)[0], total, functools.partial(torch.add, alpha=3)(x, x)


@functools.singledispatch
def kind(v):
    return 1


@kind.register
def _(v: int):
    return 2


@kind.register
def _(v: str):
    return 3


@equal(UP, DOWN)
def single_dispatch(x):
    return x * kind(5) + kind("a") + kind(None)


def logged(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        inner.count += 1  # refuse
        return f(*args, **kwargs)

    inner.count = 0
    return inner


@logged
def twice(x):
    return x * 2


@refused(UP, DOWN)
def decorator_that_counts(x):
    return twice(x)


@equal(ROWS, -ROWS)
class ReadsItsClass(nn.Module):
    SCALE = 3.0
    names = ("a", "b")

    def forward(self, x):
        k = type(self).SCALE * len(self.names) * len(self.__class__.__name__)
        return x * k


@equal(ROWS, -ROWS)
class OwnProperty(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    @property
    def symmetric(self):
        w = self.lin.weight
        return (w + w.t()) / 2

    def forward(self, x):
        if x.sum() > 0:
            return x @ self.symmetric
        return x @ self.symmetric * 2


@refused(ROWS, -ROWS)
class PropertySetter(nn.Module):
    def __init__(self):
        super().__init__()
        self._k = 1.0

    @property
    def k(self):
        return self._k

    @k.setter
    def k(self, value):
        self._k = value * 2  # refuse

    def forward(self, x):
        self.k = 4.0
        return x * self.k
