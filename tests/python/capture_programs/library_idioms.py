"""What Python's library offers, around tensors: functools, itertools, enum, abc, logging and
others, as models use them."""
import abc
import collections
import contextlib
import enum
import functools
import importlib
import inspect
import io
import itertools
import logging
import operator
import types
import warnings
import weakref

import torch
from programs import call, ints, made, module, program, randn
from torch import nn
from torch.nn import functional as F

REGISTRY = {}


def register(name):
    def add(cls):
        REGISTRY[name] = cls
        return cls

    return add


@register("mlp")
class RegisteredMLP(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return F.gelu(self.fc(x))


@register("id")
class RegisteredIdentity(nn.Module):
    def forward(self, x):
        return x


@made(randn(3, 4), randn(1, 4), randn(7, 4), tags="registry")
def from_registry():
    return nn.Sequential(*(REGISTRY[name]() for name in ("mlp", "id", "mlp")))


@program((randn(3, 4), "mlp"), (randn(2, 4), "mlp"), (randn(3, 4), "id"), tags="registry string",
         captured="guard arguments")
def registry_by_name(x, name):
    torch.manual_seed(0)
    return REGISTRY[name]()(x)


@functools.singledispatch
def describe(x):
    raise TypeError(type(x).__name__)


@describe.register
def _(x: torch.Tensor):
    return x.sum(-1)


@describe.register
def _(x: list):
    return sum(map(describe, x))


@describe.register
def _(x: int):
    return x * 2


@program(randn(2, 3), randn(5, 3), ([randn(2, 3), randn(2, 2)],), tags="singledispatch",
         captured="guard arguments")
def dispatches(x):
    return describe(x)


@program((randn(2, 3), 4), (randn(2, 3), 5), (randn(1, 3), -4), tags="singledispatch number")
def dispatches_number(x, n):
    return describe(x) + describe(n)


class Dispatching(nn.Module):
    @functools.singledispatchmethod
    def embed(self, x):
        return x.float()

    @embed.register
    def _(self, x: int):
        return torch.full((2,), float(x))


@module(randn(2), randn(2, seed=3), ints(1, 2), tags="singledispatchmethod",
        captured="guard arguments")
class DispatchingMethod(Dispatching):
    def forward(self, x):
        return self.embed(x) + self.embed(3)


@functools.lru_cache(maxsize=None)
def table(n):
    return torch.arange(n).float().square()


@program(randn(2, 3), randn(2, 5), randn(4, 3), tags="lru_cache")
def cached_table(x):
    return x + table(x.shape[-1])


@functools.cache
def factor(kind):
    return {"half": 0.5, "double": 2.0}[kind]


@program((randn(3), "half"), (randn(5), "half"), (randn(3), "double"), tags="cache string",
         captured="guard arguments")
def cached_factor(x, kind):
    return x * factor(kind)


@module(randn(2, 3), randn(5, 3), randn(1, 3), tags="cached_property")
class CachedProperty(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    @functools.cached_property
    def scaled(self):
        return self.w.detach() * 3

    def forward(self, x):
        return x * self.scaled


def clipped(lo, x, *, hi=1.0):
    return x.clamp(lo, hi)


@made(randn(4), randn(7), tags="partial")
def partial_program():
    return functools.partial(clipped, -0.5, hi=0.25)


@module(randn(4), randn(9), tags="partialmethod")
class PartialMethod(nn.Module):
    def scale(self, x, by):
        return x * by

    double = functools.partialmethod(scale, by=2)
    triple = functools.partialmethod(scale, by=3)

    def forward(self, x):
        return self.double(x) + self.triple(x)


@program(randn(4, 3), randn(2, 3), randn(1, 3), tags="reduce accumulate", captured="guard size")
def accumulates(x):
    rows = list(itertools.accumulate(x.unbind(0), torch.maximum))
    return torch.stack(rows), functools.reduce(operator.add, rows)


@program(([randn(2), randn(3), randn(2, seed=4)],), ([randn(2), randn(5), randn(2)],),
         ([randn(3), randn(3), randn(3)],), tags="groupby sizes", captured="guard size")
def groups_by_size(parts):
    ordered = sorted(parts, key=lambda p: p.shape[0])
    return {k: sum(p.sum() for p in g) for k, g in itertools.groupby(ordered, lambda p: p.size(0))}


@program((randn(3), randn(3), randn(3)), (randn(4), randn(4)), (randn(3),),
         tags="combinations varargs",
         captured="guard arguments")
def all_pairs(*xs):
    return [a @ b for a, b in itertools.combinations(xs, 2)]


@program(([randn(2), randn(2)], [randn(2)]), ([randn(4), randn(4)], [randn(4)]), tags="zip_longest")
def pads_lists(a, b):
    return [p + q for p, q in itertools.zip_longest(a, b, fillvalue=0)]


class Mode(enum.Enum):
    SUM = "sum"
    MEAN = "mean"

    def __call__(self, x):
        return getattr(x, self.value)(0)


@program((randn(3, 2), Mode.SUM), (randn(5, 2), Mode.SUM), (randn(3, 2), Mode.MEAN),
         tags="enum", captured="guard arguments")
def reduces_by_mode(x, mode):
    return mode(x)


class Bits(enum.IntFlag):
    RELU = 1
    NEG = 2


@program((randn(3), Bits.RELU | Bits.NEG), (randn(4), Bits.RELU | Bits.NEG), (randn(3), Bits.NEG),
         tags="flag", captured="guard arguments")
def flags_choose(x, bits):
    if bits & Bits.RELU:
        x = x.relu()
    return -x if Bits.NEG in bits else x


class Head(abc.ABC, nn.Module):
    @abc.abstractmethod
    def score(self, x): ...

    @property
    @abc.abstractmethod
    def weight(self): ...

    def forward(self, x):
        return self.score(x) * self.weight


@module(randn(2, 3), randn(6, 3), tags="abc property")
class ConcreteHead(Head):
    def score(self, x):
        return x.softmax(-1)

    @property
    def weight(self):
        return 1.0 / (1 + len(list(self.parameters())))


log = logging.getLogger("capture_programs")
RECORDS = []


class Keep(logging.Handler):
    def emit(self, record):
        RECORDS.append(record.getMessage())


@program(randn(2, 3), randn(4, 3), tags="logging")
def logs_at_debug(x):
    log.debug("shape %s", x.shape)
    return x * 2


@program(randn(2, 3), randn(2, 3, seed=2), randn(4, 3), tags="logging fstring")
def logs_with_fstring(x):
    log.debug(f"shape {tuple(x.shape)}")
    return x * 2


@program(randn(2, 3), randn(1, 3), randn(0, 3), tags="warnings", captured="guard size")
def warns_about_small(x):
    if x.shape[0] < 2:
        warnings.warn("small batch", stacklevel=2)
    return x.mean(0)


@program(randn(2, 3), randn(4, 3), tags="catch_warnings simplefilter")
def silences(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("never seen")
        return x.std(0)


@program(randn(3), randn(5), tags="lazy import")
def imports_late(x):
    import math as m
    from torch.nn import functional as late

    return late.silu(x) * m.pi


@program((randn(3), "relu"), (randn(5), "relu"), (randn(3), "gelu"), tags="import_module getattr",
         captured="guard arguments")
def imports_by_name(x, name):
    return getattr(importlib.import_module("torch.nn.functional"), name)(x)


@program(randn(4, 3), randn(2, 3), randn(1, 3), tags="ExitStack", captured="equal")
def stacks_contexts(x):
    with contextlib.ExitStack() as stack:
        if torch.is_grad_enabled():
            stack.enter_context(torch.no_grad())
        done = []
        stack.callback(done.append, x)
        y = x * 2
    return y + done[0]


@program(randn(3), -randn(3), tags="suppress", captured="equal")
def suppresses(x):
    with contextlib.suppress(RuntimeError):
        return x.view(2, 5)
    return x + 1


@program(randn(2, 3), randn(3, 3), randn(6), tags="try shape", captured="guard arguments")
def tries_shapes(x):
    try:
        return x.view(3, 2)
    except RuntimeError:
        return x.t()


@program(randn(6), randn(9), randn(3), tags="try size",
         captured="raises is invalid for input of size 9")
def tries_sizes(x):
    try:
        return x.view(2, -1)
    except RuntimeError:
        return x.view(3, -1)


@program((randn(3), {"a": 1.0, "b": 2.0}), (randn(4), {"a": 5.0, "b": 2.0}), tags="ChainMap")
def chain_of_options(x, options):
    merged = collections.ChainMap(options, {"a": 9.0, "c": 3.0})
    return x * merged["a"] + merged["b"] * merged["c"]


@program(ints(1, 2, 2, 3), ints(3, 3, 3, 1), tags="Counter tolist", captured="guard data")
def counts_in_python(x):
    counted = collections.Counter(x.tolist())
    return counted.most_common(1)[0]


@program(randn(3), randn(5), tags="SimpleNamespace")
def namespaces(x):
    state = types.SimpleNamespace(x=x, n=0)
    for _ in range(3):
        state.x, state.n = state.x * 2, state.n + 1
    return vars(state)


@program(randn(3), randn(5), tags="attrgetter methodcaller itemgetter")
def getters(x):
    pick = operator.itemgetter("x", "y")
    a, b = pick({"x": x, "y": x + 1})
    return operator.methodcaller("sum", 0)(a) + operator.attrgetter("real")(b)


@program(randn(3), randn(5), tags="signature bind")
def binds_arguments(x):
    bound = inspect.signature(clipped).bind(-0.1, x)
    bound.apply_defaults()
    return clipped(*bound.args, **bound.kwargs)


@program(randn(3), randn(3, seed=5), randn(4), tags="print StringIO")
def writes_text(x):
    out = io.StringIO()
    print(x.sum().item() > 0, file=out)
    return x * len(out.getvalue())


@module(randn(3), randn(5), tags="weakref")
class WeakParent(nn.Module):
    def __init__(self):
        super().__init__()
        self.child = nn.Linear(1, 1)
        self.child.parent = weakref.ref(self)
        self.gain = 2.5

    def forward(self, x):
        return x * self.child.parent().gain


@program((randn(3), 2), (randn(3), 3), (randn(5), 2), tags="repeat islice", captured="guard size")
def repeats(x, n):
    return [a * i for i, a in enumerate(itertools.islice(itertools.repeat(x), n))]


@program(call(randn(3), scale=2.0), call(randn(4), scale=3.0), call(randn(4), scale=2.0, bias=1.0),
         tags="kwargs", captured="guard arguments")
def any_keywords(x, **options):
    return x * options.get("scale", 1.0) + options.get("bias", 0.0)


@program(call(randn(3), flag=True), call(randn(4), flag=True), call(randn(3), flag=False),
         call(randn(3)), tags="keyword-only", captured="guard arguments")
def keyword_only(x, *, flag=True, scale=1.5):
    return x * scale if flag else x


def with_memory(x, seen=[]):  # noqa: B006
    seen.append(x.shape[0])
    return x * len(seen)


@program(randn(3), randn(3), randn(4), tags="mutable default", captured="refused default")
def mutable_default(x):
    return with_memory(x)
