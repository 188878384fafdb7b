"""What the tests of code generation share: graphs built the same way with torch.fx and with cfx, by
hand and at random, and the comparison of what the two generate."""
import collections
import enum
import math
import operator
import random
import typing

import torch
import torch.fx
import torch.fx.graph

import cfx
import cfx._pytree
import cfx.graph


class Library(typing.NamedTuple):
    """One of the two libraries, by the names that both have."""

    name: str
    Graph: type
    graph: typing.Any  # the module


TORCH = Library("torch.fx", torch.fx.Graph, torch.fx.graph)
CFX = Library("cfx", cfx.Graph, cfx.graph)


# ---- objects that a user's module would have --------------------------------------------------


def ufn(*args, **kwargs):
    return args


def relu(x):
    return x


def x(x):
    return x


def _in_usermod(obj):
    obj.__module__ = "usermod"
    return obj


class Cls:
    def __init__(self, *a):
        self.a = a

    def meth(self, x):
        return x

    class Inner:
        pass


class Color(enum.Enum):
    RED = 1


class Flag(enum.IntFlag):
    A = 1
    B = 2


class Obj:
    def __repr__(self):
        return "OBJ<1>"


Pt = collections.namedtuple("Pt", "a b")
One = collections.namedtuple("One", "a")
for _obj in (ufn, relu, x, Cls, Cls.Inner, Color, Flag, Obj, Pt, One):
    _in_usermod(_obj)


def function(module, name):
    def fn(x):
        return x

    fn.__module__, fn.__name__, fn.__qualname__ = module, name, name
    return fn


# ---- comparing --------------------------------------------------------------------------------


def visible(globals_):
    """Globals by name and identity: plain values by value, the two libraries' modules as one. cfx
    itself is a global only where functions are wrapped."""
    modules = (torch.fx._pytree, cfx._pytree)

    def mark(obj):
        if type(obj) in (str, bytes, float, tuple, range):
            return obj
        return "fx_pytree" if obj in modules else id(obj)

    return [(name, mark(obj)) for name, obj in globals_.items() if obj is not cfx]


def generated(lib, build, **options):
    """All that python_code gives for the graph that `build(lib)` makes, or what it raises."""
    try:
        graph = build(lib)
        code = graph.python_code(options.pop("root", "self"), **options)
    except Exception as e:
        return type(e).__name__
    src = code.src.replace("torch.fx._symbolic_trace.wrap(", "cfx._symbolic_trace.wrap(")
    assert (code.globals.get("cfx") is cfx) == (lib is CFX and "cfx._symbolic_trace.wrap(" in src)
    return src, visible(code.globals), code._lineno_map, code._prologue_start


def check(build, **options):
    """Both libraries generate the same for `build`; returns the source."""
    expected = generated(TORCH, build, **options)
    found = generated(CFX, build, **options)
    assert found == expected
    return found[0] if isinstance(found, tuple) else found


# ---- random graphs ----------------------------------------------------------------------------

FUNCTIONS = [
    torch.relu,
    torch.add,
    torch.nn.functional.relu,
    torch.nn.functional.gelu,
    torch.Tensor.add,
    torch.ops.aten.add.Tensor,
    torch.ops.aten.add,
    torch.device,
    operator.add,
    operator.eq,
    operator.iadd,
    operator.getitem,
    operator.neg,
    operator.setitem,
    operator.not_,
    operator.matmul,
    len,
    max,
    int,
    math.sqrt,
    ufn,
    relu,
    x,
    Cls,
    getattr,
]
LITERALS = [1, -2, 10**30, 1.5, math.inf, -math.inf, math.nan, "s", "q'", "a\nb", None, True, ...]
LITERALS += [torch.float32, torch.device("cpu"), torch.strided, Color.RED, Flag.A | Flag.B]
LITERALS += [torch.ones(2), torch.ops.aten.add.Tensor, Pt(1, 2), One(1), 1j, b"x", range(3), Obj()]
TYPES = [None] * 8 + [int, torch.Tensor, Cls, type(None), typing.List[int], int | None]
TYPES += [typing.Optional[Cls], typing.Tuple[int, ...], dict[str, torch.Tensor], "str"]
NAMES = [None] * 7 + ["Color", "usermod_ufn", "x", "sum", "a_1", "math_sqrt", "int", "usermod_Cls"]


class RandomGraph:
    """The graph of a seed, the same with both libraries. Not `odd`: names are identifiers."""

    def __init__(self, lib, seed, size=8, odd=True):
        self.rng = random.Random(seed)
        self.graph = lib.Graph()
        self.nodes = []
        for _ in range(self.rng.randint(0, size)):
            self.add()
        for node in self.nodes:
            if self.rng.random() < 0.1:
                names = ["x", "dup", "a b" if odd else "ab", "for", "Color", "usermod_ufn_1"]
                node.name = self.rng.choice(names)
        if self.rng.random() < 0.8:
            self.graph.output(self.value(), type_expr=self.rng.choice([None, None, int, Cls]))

    def value(self, depth=0):
        roll = self.rng.random()
        if roll < 0.45 and self.nodes:
            return self.rng.choice(self.nodes)
        if roll < 0.75 or depth > 2:
            return self.rng.choice(LITERALS)
        kind = self.rng.randrange(6)
        items = [self.value(depth + 1) for _ in range(self.rng.randint(0, 2))]
        if kind == 0:
            return tuple(items)
        if kind == 1:
            return items
        if kind == 2:
            return {f"k{i}": item for i, item in enumerate(items)}
        if kind == 3:
            return slice(self.value(depth + 1), None, self.value(depth + 1))
        if kind == 4:
            return Pt(self.value(depth + 1), 3)
        return {"d": {"e": self.value(depth + 1)}, 1: items}

    def receiver(self):
        """What a method can be called on in Python's syntax: no bare number."""
        value = self.value()
        return "s" if isinstance(value, (int, float, complex)) else value

    def call(self):
        target = self.rng.choice(FUNCTIONS)
        args = tuple(self.value() for _ in range(3))
        if target is getattr:
            args = (self.receiver(), self.rng.choice(["a", "a.b", "1", "for"]))
        kwargs = {"k": self.value(), "other": self.value()} if self.rng.random() < 0.3 else {}
        return "call_function", target, args, kwargs

    def add(self):
        roll = self.rng.random()
        choose = self.rng.choice
        if roll < 0.2:
            target = choose(["x", "y", "*args", "**kwargs", "for", "Color"])
            job = "placeholder", target, choose([(), (), (self.value(),)]), {}
        elif roll < 0.7:
            job = self.call()
        elif roll < 0.8:
            args = (self.receiver(), self.value())
            job = "call_method", choose(["add_", "foo", "1", "a.b"]), args, {"k": self.value()}
        elif roll < 0.9:
            job = "call_module", choose(["l.0.x", "q"]), (self.value(),), {}
        else:
            job = "get_attr", choose(["l.0.x", "w", "a-b", "é"]), (), {}
        name, type_ = choose(NAMES), choose(TYPES)
        node = self.graph.create_node(*job, name=name, type_expr=type_)
        if self.rng.random() < 0.1:
            node.meta["is_wrapped"] = choose([True, False])
        self.describe(node)
        self.nodes.append(node)

    def describe(self, node):
        """Metadata that verbose code shows."""
        roll = self.rng.random()
        line = self.rng.randint(1, 3)
        if roll < 0.5:
            node.meta["stack_trace"] = f'  File "/a.py", line {line}, in f\n    x = {line}\n'
        elif roll < 0.6:
            node.meta["stack_trace"] = self.rng.choice(["", "garbage", None])
        if roll < 0.3:
            node.meta["val"] = self.rng.choice([torch.ones(2, 3), torch.ones(3, 2).t(), 3])
        if roll > 0.9:
            node.meta["custom"] = {"a": line}
        if roll > 0.8:
            node.meta["seq_nr"] = line
            node.meta["desc"] = f"D{line}"


OPTIONS = [
    {},
    {"verbose": True},
    {"verbose": True, "include_stride": True, "include_device": True},
    {"verbose": True, "colored": True, "additional_meta": ["seq_nr", "tag"]},
    {"colored": True},
    {"record_func": True},
    {"root": "root.module"},
]
EXPANDED = [{"expanded_def": True}, {"expanded_def": True, "verbose": True, "record_func": True}]
