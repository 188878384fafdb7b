"""Generated code is torch.fx's, byte for byte: source, globals, line map, prologue.

Every case builds the same graph with both libraries (codegen_cases.py). What is different on
purpose is in test_codegen_run.py, errors are in test_codegen_errors.py."""
import collections
import enum
import math
import operator
import os
import subprocess
import sys
import typing
import warnings
from typing import Any, Callable, Dict, List, Literal, Optional, Tuple, Union

import pytest
import torch
import torch.fx.graph
from codegen_cases import (
    CFX,
    EXPANDED,
    LITERALS,
    OPTIONS,
    TORCH,
    Cls,
    Color,
    Flag,
    Obj,
    One,
    Pt,
    RandomGraph,
    check,
    function,
    generated,
    relu,
    ufn,
    x as function_x,
)

import cfx.graph

pytestmark = pytest.mark.filterwarnings("ignore")


def calling(*calls, result=-1):
    """A builder: placeholders x, y, then each call as (method of Graph, target, args, ...), where
    an int in "@0" form names an earlier node; the output is the last node."""

    def build(lib):
        graph = lib.Graph()
        nodes = [graph.placeholder("x"), graph.placeholder("y")]
        for method, *rest in calls:
            rest = [_resolve(item, nodes) for item in rest]
            nodes.append(getattr(graph, method)(*rest))
        graph.output(nodes[result])
        return graph

    return build


def _resolve(value, nodes):
    if isinstance(value, str) and value[:1] == "@":
        return nodes[int(value[1:])]
    if type(value) in (tuple, list):
        return type(value)(_resolve(item, nodes) for item in value)
    if type(value) is dict:
        return {key: _resolve(item, nodes) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(*(_resolve(v, nodes) for v in (value.start, value.stop, value.step)))
    return value


# ---- the frame of the function ----------------------------------------------------------------


def empty(lib):
    return lib.Graph()


def only_output(lib):
    graph = lib.Graph()
    graph.output(None)
    return graph


def only_placeholder(lib):
    graph = lib.Graph()
    graph.placeholder("x")
    return graph


def no_output(lib):
    graph = lib.Graph()
    graph.call_function(torch.relu, (graph.placeholder("x"),))
    return graph


def after_output(lib):
    graph = lib.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(torch.relu, (x,))
    graph.output(a)
    b = graph.call_function(torch.relu, (a,))
    graph.output((b,))
    graph.placeholder("z")
    graph.call_function(torch.relu, (x,))
    return graph


def modules(lib):
    graph = lib.Graph()
    x = graph.placeholder("x")
    y = graph.call_module("lin", (x,))
    graph.output((y, graph.get_attr("w")))
    return graph


SKELETONS = [empty, only_output, only_placeholder, no_output, after_output, modules]


@pytest.mark.parametrize("build", SKELETONS)
@pytest.mark.parametrize("options", OPTIONS + EXPANDED)
def test_frame(build, options):
    check(build, **options)


def test_text():
    code = modules(CFX).python_code("self")
    assert code.src == (
        "\n\n\ndef forward(self, x):\n    lin = self.lin(x);  x = None\n    w = self.w\n"
        "    return (lin, w)\n    "
    )
    assert (code._lineno_map, code._prologue_start) == ({1: 1, 2: 2, 3: 3, 4: 3}, 4)


# ---- placeholders -----------------------------------------------------------------------------

DEFAULTS = LITERALS + [(1, 2), [1], {"a": 1}, slice(1, 2), int, (torch.float32, math.inf), 'a"#\'']


@pytest.mark.parametrize("type_", [None, int, torch.Tensor, Optional[int]])
@pytest.mark.parametrize("default", range(len(DEFAULTS)))
def test_placeholder(type_, default):
    def build(lib):
        graph = lib.Graph()
        x = graph.placeholder("x", type_expr=type_, default_value=DEFAULTS[default])
        graph.output(x, type_expr=type_)
        return graph

    check(build)


TARGETS = [
    ["*args", "**kwargs"],
    ["z", "*args", "k", "**kwargs"],
    ["**kwargs", "*args", "y", "z"],
    ["for", "a.b", "x", "x", "sum"],
    ["torch", "operator", "inf", "device"],
    ["self", "x"],
    ["x", "self"],
]


@pytest.mark.parametrize("targets", TARGETS)
@pytest.mark.parametrize("options", [{}, {"expanded_def": True}])
def test_parameters(targets, options):
    def build(lib):
        graph = lib.Graph()
        nodes = [graph.placeholder(t, type_expr=int if i % 2 else None)
                 for i, t in enumerate(targets)]
        graph.output(graph.call_function(ufn, tuple(nodes)))
        return graph

    check(build, **options)


def test_placeholders_made_by_hand():
    def build(lib):
        graph = lib.Graph()
        c = graph.create_node("placeholder", "*rest", name="foo")
        d = graph.create_node("placeholder", "tgt", args=(3, 4), kwargs={"a": 1}, name="nm")
        e = graph.create_node("placeholder", "z", args=(c,), name="zz")
        graph.output((c, d, e))
        return graph

    check(build)


# ---- attributes, modules, methods -------------------------------------------------------------

PATHS = ["w", "a.b", "layers.0.weight", "0", "layers.0", "0.weight", "a-b", "a b.c", "for", "a.for",
         "1a", "a..b", "é", "", "_x", "__priv", "a.__b", "self", "x"]


@pytest.mark.parametrize("path", PATHS)
def test_paths(path):
    def build(lib):
        graph = lib.Graph()
        x = graph.placeholder("x")
        y = graph.get_attr(path)
        z = graph.call_module(path, (x, 1), {"k": x})
        m = graph.call_method(path or "m", (x,), {"k": z})
        graph.output((y, z, m))
        return graph

    check(build)
    check(build, root="root")


def test_methods():
    check(calling(
        ("call_method", "add_", ("@0", 1), {"alpha": 2}),
        ("call_method", "size", ("@2",)),
        ("call_method", "__getitem__", ("@2", 0)),
        ("call_method", "foo", ("s",)),
        ("call_method", "foo", (("@2", "@3"), "@4")),
        ("call_method", "a.b", ("@0",)),
        ("call_method", "1", ("@0",)),
    ))


# ---- functions --------------------------------------------------------------------------------

double = lambda x: x * 2  # noqa: E731
LAMBDAS = [double, [lambda x: x, lambda y: y][1]]
CALLABLES = LAMBDAS + [
    torch.relu, torch.nn.functional.relu, torch.nn.functional.linear, torch.nn.functional.dropout,
    torch.nn.functional.max_pool2d, torch.Tensor.add, torch.Tensor.relu_, torch.Tensor.__add__,
    torch._C._nn.gelu, torch.special.expit, torch.fft.fft, torch.linalg.norm, torch.ops.aten.add,
    torch.ops.aten.add.Tensor, torch.ops.aten.relu.default, torch.ops.aten.add_.Tensor,
    torch.ops.prim.device.default, torch.ops.higher_order.cond, torch.sym_int, torch.sym_sqrt,
    torch._assert, torch.tensor, torch.nn.Linear, torch.Size, torch.device,
    torch.random.manual_seed,  # torch.manual_seed is another one once torch._dynamo is loaded
    torch.no_grad, torch._C._set_grad_enabled, torch.cond, torch.autograd.grad, torch.Tensor,
    torch.jit.annotate, torch.utils.checkpoint.checkpoint,
    len, max, isinstance, print, int, list, tuple, dict, slice, divmod, setattr, hasattr,
    math.sqrt, math.floor, math.ceil, operator.itemgetter, operator.attrgetter,
    ufn, relu, function_x, Cls, Cls.Inner, Cls.meth, Cls().meth, Pt, One, Color, Flag,
    collections.OrderedDict, collections.defaultdict, collections.Counter, typing.cast,
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(CALLABLES)))
def test_function(i):
    check(calling(("call_function", CALLABLES[i], ("@0",), {"k": "@1"})))


MODULES = [
    "torch", "torch.foo", "torchvision.ops", "torch_x", "torch._dynamo", "torch._dynamo.foo",
    "torch._dynamox", "torch.nn.modules.foo", "torch._ops.aten", "torch._ops.foo.bar",
    "torch._ops", "torch._C", "torch._jit_internal", "_operator", "builtins", "__main__", "math",
    "a.b-c.d", "", "torch.fx.x", "mytorch.torch", "a..b", "1", "é.b", "for",
]  # fmt: skip
NAMES = ["fn", "with space", "a.b", "a..b", "for", "1x", "é", "", "len", "getitem", "iadd"]


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("name", NAMES)
def test_qualified_names(module, name):
    fn = function(module, name)
    build = calling(("call_function", fn, ("@0", "@1")))
    expected = generated(TORCH, build)
    try:
        compile(expected[0], "<string>", "exec")
    except SyntaxError:  # torch.fx writes the name as it is; cfx gives the function a global
        code = build(CFX).python_code("self")
        compile(code.src, "<string>", "exec")
        assert fn in code.globals.values() or "getattr(" in code.src
    else:
        check(build)


OPERATORS = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_",
    "xor", "matmul", "eq", "ne", "lt", "gt", "le", "ge", "getitem", "neg", "pos", "invert", "not_",
    "abs", "concat", "contains", "is_", "is_not", "truth", "index", "setitem", "delitem", "countOf",
    "indexOf", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "ilshift",
    "irshift", "iand", "ior", "ixor", "imatmul", "iconcat", "call", "length_hint",
]  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("n", range(5))
def test_operator(name, n):
    args = ("@0", "@1", 3, Color.RED)[:n]
    check(calling(("call_function", getattr(operator, name), args, {}, int), result=0))
    check(calling(("call_function", getattr(operator, name), args, {"k": Obj()})))


LHS = [1, "a", (1,), [2], "@0", None, Color.RED, float("inf"), {"a": "@0"}, Pt(1, 2), -5, 2.5]


@pytest.mark.parametrize("lhs", range(len(LHS)))
@pytest.mark.parametrize("name", ["add", "neg", "getitem", "iadd", "setitem", "eq"])
def test_operands(lhs, name):
    check(calling(("call_function", getattr(operator, name), (LHS[lhs], -1, "@0"))))


INDICES = [
    0, -1, "@1", slice(None), slice(1, None), slice(None, 2), slice(1, 2, 3), slice("@1", None),
    slice(-1, "@1", "@1"), (0, 1), (0,), (), (slice(None), 0), (slice(1, 2), "@1", ..., None), ...,
    None, True, "k", [0, 1], [slice(None)], (slice(None), [1, "@1"]), torch.float32, 1.5, ("@1",),
    ((1, 2), 3), {"a": 1}, torch.Size([1, 2]),
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(INDICES)))
def test_getitem(i):
    check(calling(("call_function", operator.getitem, ("@0", INDICES[i]))))


@pytest.mark.parametrize("args", [("shape",), ("a.b",), ("for",), ("1a",), ("_x",), ("x y",),
                                  ("é",), ("",), ("shape", None), (1,), ("@1",)])
@pytest.mark.parametrize("obj", ["@0", "s", ("@0", 3)])
def test_getattr(args, obj):
    check(calling(("call_function", getattr, (obj, *args), {"k": 1}), result=0))


def test_kwargs():
    check(calling(
        ("call_function", torch.add, ("@0",), {"other": "@0", "alpha": 2}),
        ("call_function", torch.add, (), {"input": "@2", "other": 1}),
    ))
    code = calling(("call_function", torch.add, ("@0",), {"a b": 1, "for": 2, "k": 3}))(CFX)
    # torch.fx writes `a b = 1`, which Python cannot read
    assert "torch.add(x, **{'a b': 1}, **{'for': 2}, k = 3)" in code.python_code("self").src


# ---- literals ---------------------------------------------------------------------------------


class MyInt(int):
    pass


class MyStr(str):
    pass


class MyList(list):
    pass


class MyDict(dict):
    pass


class MyTuple(tuple):
    pass


class IColor(enum.IntEnum):
    RED = 1


class Holder:
    class E(enum.Enum):
        A = 1


def more_literals():
    import numpy as np

    return [
        -0.0, 0.1, 1e300, 1e-300, 1e16, complex(1, -2), 1.5 + 0j, -1.5, NotImplemented,
        "it's", 'q"q', "a\nb\t\\", "é日\x00", "\u2028", "", b"ab\xff", bytearray(b"x"),
        slice("a", (1,)), range(1, 10, 2), set(), {1}, frozenset(), frozenset([1]),
        torch.device("cuda", 1), torch.sparse_coo, torch.preserve_format, torch.Size([]),
        int, Cls, list, type(None), List[int], Any, torch.ones(()),
        torch.nn.Parameter(torch.ones(2)), torch.ops.aten.add, torch.ops.higher_order.cond,
        torch.relu, len, ufn, math, MyInt(3), MyStr("s"), MyList([1]), MyDict(a=1), MyTuple((1,)),
        collections.OrderedDict(a=1), collections.defaultdict(int, a=1), np.float32(1.5),
        np.int64(3), np.array([1, 2]), torch.finfo(torch.float32), torch.qint8,
        torch.per_tensor_affine, IColor.RED, Holder.E.A, torch.ones(2).to("meta"),
        {1: 2, (1, 2): 3, None: 4, torch.float32: 5, Color.RED: 6}, list(range(150)),
    ]  # fmt: skip


@pytest.mark.parametrize("i", range(len(LITERALS) + len(more_literals())))
def test_literal(i):
    literal = (LITERALS + more_literals())[i]
    for nested in (literal, [literal], (literal,), {"a": literal}, slice(literal), Pt(literal, 1),
                   [{"a": [literal]}], One([literal])):
        check(calling(("call_function", ufn, (nested,), {"k": nested})))
        check(calling(("call_function", ufn, (nested,))), colored=True)

    def build(lib):
        graph = lib.Graph()
        graph.output(literal)
        return graph

    check(build)


def test_nodes_in_containers():
    def build(lib):
        graph = lib.Graph()
        x, y = graph.placeholder("x"), graph.placeholder("y")
        y.name = "x"
        values = (
            [x, (y, x)], {"a": x, "b": [y, None], None: y, torch.float32: x}, slice(y, x),
            Pt(y, x), {"q": Pt(y, x)}, One([y]), {x: 1}, {y}, frozenset([y]), {"a": {y: 1}},
        )  # fmt: skip
        a = graph.call_function(ufn, values, {"nt": Pt(x, [y])})
        graph.output({"o": (a, y), "s": {y}})
        return graph

    check(build)
    check(build, verbose=True, expanded_def=True)


# ---- what is cleared --------------------------------------------------------------------------


def test_clearing():
    def build(lib):
        graph = lib.Graph()
        x, y, _ = graph.placeholder("x"), graph.placeholder("y"), graph.placeholder("unused")
        a = graph.call_function(torch.add, (x, y))
        b = graph.call_function(torch.add, (y, x, y))
        c = graph.call_function(torch.add, (b, a))
        d = graph.call_function(torch.mul, (a, a))
        graph.call_function(torch.sub, (d,), {"other": (y, [x])})
        graph.get_attr("w2")
        m = graph.call_method("foo", (graph.get_attr("w"),))
        graph.call_module("sub", (m,))
        graph.output((c,))
        return graph

    check(build)
    check(build, colored=True)


def test_moved_nodes():
    def build(lib):
        graph = lib.Graph()
        x = graph.placeholder("x")
        a = graph.call_function(torch.relu, (x,))
        b = graph.call_function(torch.neg, (a,))
        b.append(a)
        b.name = "q"
        a.name = "q"
        graph.output(b)
        return graph

    check(build)


# ---- types ------------------------------------------------------------------------------------

T_ = typing.TypeVar("T_")
P_ = typing.ParamSpec("P_")
NewInt = typing.NewType("NewInt", int)
TYPES = [
    int, float, str, bool, type(None), Any, torch.Tensor, torch.nn.Parameter, torch.nn.Module,
    torch.dtype, torch.device, torch.Size, List[int], list[int], list, List, List[torch.Tensor],
    Optional[torch.Tensor], Optional[int], Union[int, str], Union[int, str, None], int | str,
    int | None, Tuple[int, ...], Tuple[()], Tuple, tuple[()], Tuple[int, str], tuple[int, ...],
    tuple[torch.Tensor, int], tuple, Dict[str, int], dict[str, int], dict[str, List[torch.Tensor]],
    Dict, typing.Set[int], typing.FrozenSet[int], Callable, Callable[..., int], Callable[P_, int],
    typing.Sequence[int], typing.Iterable[int], typing.Type[int], type, Literal["a", 1],
    Literal[1, True, 1.0], Literal[Color.RED], T_, typing.Generic, Cls, Cls.Inner,
    Pt, Color, "int", "Tensor", "List[int]", typing.ForwardRef("int"), List["Foo"],
    collections.OrderedDict, typing.OrderedDict[str, int], collections.abc.Sequence[int],
    Optional[List[Tuple[int, torch.Tensor]]], typing.Deque[int], typing.DefaultDict[str, int],
    typing.Counter[str], typing.NamedTuple, ..., 5, typing.ClassVar[int],
    typing.Annotated[int, "x"], typing.Annotated[List[int], "q"], typing.Final[int], object,
    complex, bytes, slice, typing.Protocol, torch.SymInt, type(ufn), typing.Awaitable[int],
    typing.Mapping[str, int], List[Any], list[list[int]], Dict[str, Any], Tuple[Any, ...],
    tuple[Any], typing.Self, typing.LiteralString, typing.Never, NewInt, (int, str), 3.5, math.inf,
    torch.relu, len, ufn, List[Cls.Inner], torch.device | None, torch.Tensor | int, list | None,
    typing.Unpack[Tuple[int]], typing.Concatenate[int, P_], typing.TypeGuard[int], typing.Union,
    typing.Optional, Tuple[Tuple[()], int], "a.b", "", " x ", b"z", range(3), Obj,
    torch.memory_format, torch.ops.aten.add, torch.nn.functional.relu,
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(TYPES)))
def test_type(i):
    type_ = TYPES[i]

    def build(lib):
        graph = lib.Graph()
        x = graph.placeholder("*x", type_expr=type_)
        a = graph.get_attr("w", type_expr=type_)
        b = graph.call_module("m", (x,), type_expr=List[int])
        c = graph.call_method("foo", (x,), type_expr=type_)
        d = graph.call_function(operator.add, (x, a), type_expr=type_)
        e = graph.call_function(operator.iadd, (a, d), type_expr=type_)
        f = graph.call_function(getattr, (x, "z"), type_expr=type_)
        graph.output((a, b, c, e, f), type_expr=type_)
        return graph

    check(build)


# ---- names that collide -----------------------------------------------------------------------


def twin(name="Cls", module="usermod"):
    return type(name, (), {"__module__": module})


TWIN_FN = function("usermod", "ufn")
TWIN_CLS = twin()
TWIN_ENUM = enum.Enum("Color", "BLUE", module="other")
TORCH_POINT = collections.namedtuple("LP", "a")
TORCH_POINT.__module__ = "torch.foo"
TORCH_ENUM = enum.Enum("TE", "A", module="torch.foo")

COLLISIONS = [
    [("placeholder", "usermod_ufn", (), None, None), ("call_function", ufn, ("@0",), None, None),
     ("call_function", TWIN_FN, ("@1",), None, None), ("call_function", ufn, ("@2",), None, None)],
    [("placeholder", "x", (), None, None), ("call_function", ufn, ("@0",), "usermod_ufn", None)],
    [("placeholder", "x", (), None, None), ("call_function", ufn, ("@0",), "usermod_Cls", Cls)],
    [("placeholder", "x", (), None, None),
     ("call_function", ufn, ("@0", Color.RED), "Color", None)],
    [("placeholder", "x", (), None, None), ("call_method", "foo", ("@0", Color.RED), "Color", Cls)],
    [("placeholder", "x", (), None, None), ("call_module", "foo", ("@0", Color.RED), "Color", Cls)],
    [("placeholder", "q", (), "usermod_Cls", Cls)],
    [("placeholder", "x", (Color.RED,), "x", None), ("placeholder", "Color", (), "Color", None)],
    [("placeholder", "Color", (Color.RED,), "Color", None)],
    [("get_attr", "w", (), "usermod_Cls", Cls)],
    [("placeholder", "x", (), None, None),
     ("call_function", operator.add, ("@0", Color.RED), "Color", int)],
    [("placeholder", "x", (), None, None),
     ("call_function", operator.iadd, ("@0", Color.RED), "Color", None)],
    [("placeholder", "x", (), None, None),
     ("call_function", getattr, ("@0", "y"), "getattr", None)],
    [("placeholder", "usermod_Cls", (), None, Cls), ("placeholder", "y", (), None, TWIN_CLS),
     ("call_function", Cls, ("@0",), None, TWIN_CLS)],
    [("call_function", ufn, (Color.RED, TWIN_ENUM.BLUE, TWIN_ENUM.BLUE, Color.RED), None, None)],
    [("call_function", ufn, (TORCH_POINT(1), TORCH_ENUM.A), None, None)],
    [("placeholder", "Color", (), None, None),
     ("call_function", ufn, ("@0", Color.RED), None, None),
     ("call_function", ufn, (Color.RED, Pt(1, 2)), None, None)],
    [("placeholder", "x", (), None, None), ("call_function", math.sqrt, ("@0",), None, None),
     ("call_function", torch.relu, ("@1",), "math_sqrt_1", None),
     ("call_function", torch.relu, ("@2",), "math_sqrt", None)],
    [("placeholder", "x", (), None, None),
     ("call_function", twin("device", "builtins"), (), None, None),
     ("call_function", twin("NoneType", "builtins"), (), None, None)],
    [("placeholder", "inf", (), None, None), ("placeholder", "device", (), None, None),
     ("call_function", torch.add, ("@0", math.inf, torch.device("cpu")), None, None)],
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(COLLISIONS)))
def test_collision(i):
    def build(lib):
        graph, nodes = lib.Graph(), []
        for op, target, args, name, type_ in COLLISIONS[i]:
            args = tuple(_resolve(arg, nodes) for arg in args)
            nodes.append(graph.create_node(op, target, args, name=name, type_expr=type_))
        graph.output(tuple(nodes), type_expr=COLLISIONS[i][-1][4])
        return graph

    check(build)


def test_equal_names():
    def build(lib):
        graph = lib.Graph()
        x = graph.placeholder("x")
        a = graph.call_function(torch.relu, (x,))
        b = graph.call_function(torch.neg, (a,))
        b.name = "relu"
        c = graph.call_function(torch.abs, (b,))
        c.name = "relu_1"
        d = graph.call_function(ufn, (c,))
        d.name = "int"
        graph.output((a, b, c, graph.call_function(int, (d,), type_expr=int)))
        return graph

    check(build)


def test_repr_fn_is_ignored():
    def build(lib):
        graph = lib.Graph()
        x = graph.placeholder("x")
        x._repr_fn = lambda n: "ZZ"
        graph.output([x, {x}])
        return graph

    check(build)
    graph = build(CFX)
    graph.python_code("self")
    assert repr(next(iter(graph.nodes))) == "ZZ"


# ---- wrapped functions ------------------------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS + EXPANDED)
def test_wrapped(options):
    def build(lib):
        graph = lib.Graph()
        n = graph.placeholder("x")
        for target in (ufn, relu, len, torch.relu, operator.add, ufn, getattr):
            n = graph.call_function(target, (n, "a"))
            n.meta["is_wrapped"] = True
        graph.output(n)
        return graph

    check(build, **options)


# ---- random graphs ----------------------------------------------------------------------------

CHUNK = 100
CHUNKS = 100 if os.environ.get("CFX_FULL") == "1" else 6


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random(chunk):
    warnings.simplefilter("ignore")
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        for options in ({}, OPTIONS[seed % len(OPTIONS)], EXPANDED[seed % len(EXPANDED)]):
            try:
                odd = "record_func" not in options
                check(lambda lib: RandomGraph(lib, seed, odd=odd).graph, **options)
            except AssertionError as e:
                raise AssertionError(f"seed {seed}, options {options}: {e}") from None


def test_short_names_of_dtypes_whichever_is_imported_first():
    lines = ("import cfx.graph, torch, torch.fx",
             "found, expected = cfx.graph.dtype_abbrs, torch.fx.graph.dtype_abbrs",
             "assert list(found.items()) == list(expected.items()) and len(found) == len(expected)",
             "assert torch.int8 in found and found.get(torch.bool) == 'b8' and 3 not in found")
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


def test_tables():
    expected, found = torch.fx.graph, cfx.graph
    for name in ("magic_methods", "inplace_methods", "reflectable_magic_methods", "dtype_abbrs",
                 "_origin_type_map"):
        assert list(getattr(found, name).items()) == list(getattr(expected, name).items())
    assert list(found._custom_builtins) == list(expected._custom_builtins)
    for name, custom in expected._custom_builtins.items():
        if name != "fx_pytree":
            assert found._custom_builtins[name] == custom
