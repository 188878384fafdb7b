"""Random arguments of nodes: every kind of value that cfx knows, nodes and regions included.

A value is made before there is a graph to hold it. Where it refers to a node it holds a `Ref`, a
number that `build` turns into one of the nodes it is given; a `Region` is a program of its own.
"""
import collections
import enum
import math
import operator
import typing

import torch
import torch.nn.functional as F


# ---- objects that programs refer to, by names that can be found again ----


def helper(x, *args, **kwargs):
    return x


def relu(x):
    """Has the name of one of torch's functions."""
    return x


class Shape:
    def __init__(self, *sizes):
        self.sizes = sizes


class Color(enum.Enum):
    RED = 1
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


class Anonymous:
    """An object without a name: it has no IR text."""

    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return f"Anonymous({self.number})"

    def __eq__(self, other):
        return type(other) is Anonymous and other.number == self.number

    def __hash__(self):
        return hash(self.number)


class Words(str):
    pass


class Numbers(list):
    pass


Point = collections.namedtuple("Point", "x y")


class Pair(typing.NamedTuple):
    first: object
    second: object = None


FUNCTIONS = [
    helper, relu, Shape, torch.relu, torch.add, torch.neg, F.relu, F.gelu, len, max, getattr, int,
    math.sqrt, operator.add, operator.iadd, operator.getitem, operator.neg, operator.matmul,
    operator.truediv, operator.pow, operator.and_, operator.not_, operator.eq, operator.lt,
    operator.setitem, torch.ops.aten.add.Tensor, torch.ops.aten.relu.default, torch.ops.aten.add,
    torch.Tensor.add, torch.device, torch._C._nn.gelu, isinstance, operator.itemgetter,
]  # fmt: skip
NAMED = [
    int, str, dict, type(None), torch.Tensor, torch.nn.Linear, Shape, Color, Point, helper, len,
    math.sqrt, torch.relu, operator.add, torch.Size, Color.RED, Color.BLUE,
]  # fmt: skip
UNNAMED = [
    Level.LOW, Anonymous(7), {(1, 2)}, Words("words"), torch.ops.aten.add.Tensor,
    torch.inf, torch.Size([2, 3]), Numbers([1, 2]), collections.OrderedDict(a=1),
    collections.defaultdict(int, b=2), bytearray(b"ab"),
]  # fmt: skip
TYPES = [
    int, float, bool, str, torch.Tensor, list, Shape, Color, type(None), list[int],
    dict[str, torch.Tensor], tuple[int, ...], typing.List[int], typing.Dict[str, torch.Tensor],
    typing.Optional[int], typing.Union[int, str], typing.Tuple[int, Shape], typing.Any, int | None,
    typing.Callable[[int], str],
    typing.List[typing.List[Shape]], torch.nn.Module, Point,
]  # fmt: skip

INTS = [0, 1, -1, 2, 7, -128, 2**31, 2**63 - 1, -(2**63)]
BIG_INTS = [2**63, -(2**63) - 1, 10**30, -(7**60)]
FLOATS = [0.0, -0.0, 1.0, -2.5, 0.1, 1e-5, 1e16, 1e300, 5e-324, math.inf, -math.inf, math.nan]
TEXTS = [
    "", "a", "mean", "it's", 'a "quoted" one', "both ' and \"", "back\\slash", "two\nlines",
    "\ttab\r", "\x00\x1f\x7f", "é", "\u0394", "\u540d\u524d", "\U0001f600", "\ud800", "\xa0\u2028",
    "%x", "{x}", "graph():", "# note", "# COUNTER: 1", "None", "1", "0x10", "1e5", "x" * 90,
]  # fmt: skip
BYTES = [b"", b"abc", b"\x00\xff\n", b"it's", b'"']
COMPLEX = [
    0j, 1j, -2.5 + 1j, complex(0, -2), complex(-0.0, -0.0), complex(math.inf, 1.0),
    complex(math.nan, -1), complex(0, math.nan),
]  # fmt: skip
DTYPES = [torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.complex64, torch.qint8]
DEVICES = [torch.device("cpu"), torch.device("cuda:1"), torch.device("meta"), torch.device("cuda")]
LAYOUTS = [torch.strided, torch.sparse_coo, torch.sparse_csr]
FORMATS = [torch.contiguous_format, torch.channels_last, torch.preserve_format]
RANGES = [range(3), range(0), range(2, 10, 3), range(5, -5, -2), range(2**70)]
SETS = [set(), {1}, {1, 2, 3}, {"a"}, {None}, {2.5, True}, {b"x"}]
KEYS = ["a", "dim", "it's", "a b", 1, 2.5, None, (1, "x"), True, torch.float32]
KEYWORDS = ["dim", "alpha", "out", "self", "lambda_", "class", "dtype"]


class Ref:
    """A node: `build` says which."""

    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return f"Ref({self.number})"


class Region:
    """A graph among the arguments, as the program that makes it."""

    __slots__ = ("program",)

    def __init__(self, program):
        self.program = program

    def __repr__(self):
        return f"Region({self.program})"


class NodeSet:
    """A set that holds a node: it stays a host object."""

    __slots__ = ("ref",)

    def __init__(self, ref):
        self.ref = ref


SCALARS = {
    "none": [None],
    "ellipsis": [...],
    "bool": [True, False],
    "int": INTS,
    "float": FLOATS,
    "dtype": DTYPES,
    "layout": LAYOUTS,
    "memory_format": FORMATS,
    "str": TEXTS,
    "bytes": BYTES,
    "bigint": BIG_INTS,
    "device": DEVICES,
    "complex": COMPLEX,
    "range": RANGES,
    "set": SETS,
    "frozenset": [frozenset(s) for s in SETS],
    "host": NAMED,
}
CONTAINERS = ["list", "tuple", "dict", "slice", "namedtuple"]
MOST_ITEMS = 3
MAX_NESTING = 3


class Values:
    """Random values. Wild ones may hold what has no IR text."""

    def __init__(self, rng, wild=False):
        self.rng = rng
        self.wild = wild
        self.scalars = list(SCALARS)

    def leaf(self):
        if self.rng.random() < 0.2:
            return Ref(self.rng.randrange(1000))
        if self.wild and self.rng.random() < 0.1:
            return self.rng.choice([torch.ones(2), NodeSet(Ref(self.rng.randrange(9))), *UNNAMED])
        return self.rng.choice(SCALARS[self.rng.choice(self.scalars)])

    def value(self, nesting=0):
        if nesting < MAX_NESTING and self.rng.random() < 0.35:
            return self.container(self.rng.choice(CONTAINERS), nesting + 1)
        return self.leaf()

    def container(self, kind, nesting):
        if kind == "slice":
            return slice(self.value(nesting), self.leaf(), self.leaf())
        if kind == "namedtuple":
            return self.rng.choice([Point, Pair])(self.value(nesting), self.leaf())
        items = [self.value(nesting) for _ in range(self.rng.randrange(MOST_ITEMS + 1))]
        if kind == "dict":
            return dict(zip(self.keys(), items))
        return items if kind == "list" else tuple(items)

    def keys(self):
        keys = self.rng.sample(KEYS, MOST_ITEMS)
        if self.wild and self.rng.random() < 0.1:
            keys[0] = Ref(self.rng.randrange(9))
        return keys

    def args(self, least=0):
        return tuple(self.value() for _ in range(self.rng.randrange(least, 4)))

    def kwargs(self):
        if self.rng.random() < 0.6:
            return {}
        return {key: self.value() for key in self.rng.sample(KEYWORDS, self.rng.randrange(1, 3))}

    def type(self):
        return self.rng.choice(TYPES) if self.rng.random() < 0.15 else None


def build(value, pool, make_region):
    """`value` with nodes of `pool` in the place of references (None if there are none)."""

    def inner(v):
        if type(v) is Ref:
            return pool[v.number % len(pool)] if pool else None
        if type(v) is Region:
            return make_region(v.program)
        if type(v) is NodeSet:
            return {inner(v.ref)}
        if type(v) is list:
            return [inner(item) for item in v]
        if type(v) is tuple:
            return tuple(inner(item) for item in v)
        if isinstance(v, (Point, Pair)):
            return type(v)(*(inner(item) for item in v))
        if type(v) is dict:
            return {inner(key): inner(item) for key, item in v.items()}
        if type(v) is slice:
            return slice(inner(v.start), inner(v.stop), inner(v.step))
        return v

    return inner(value)
