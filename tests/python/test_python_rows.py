"""Python's own functions and operators on numbers, lists and None, in C: each equals Python, at the
top of a graph and in a branch of it."""
import builtins
import math
import operator

import pytest
import torch

import cfx

T = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.5]])
ONE = torch.tensor(2.0)
INTS = [0, 1, -1, 2, 7, -13, 1000]
FLOATS = [0.0, 0.5, -0.5, 1.5, 2.5, -2.675, 1e6, 0.1]
NUMBERS = INTS + FLOATS + [True, False]
LISTS = [[], [1, 2], (3,), (), [1.5, -2, True]]

UNARY = [
    builtins.abs, builtins.bool, builtins.float, builtins.int, builtins.round, operator.neg,
    operator.pos, operator.not_, operator.truth, math.ceil, math.floor, math.trunc, math.isnan,
    math.isinf, math.isfinite,
]  # fmt: skip
REAL = [
    math.acos, math.acosh, math.asin, math.asinh, math.atan, math.atanh, math.cbrt, math.cos,
    math.cosh, math.degrees, math.erf, math.erfc, math.exp, math.exp2, math.expm1, math.fabs,
    math.log, math.log10, math.log1p, math.log2, math.radians, math.sin, math.sinh, math.sqrt,
    math.tan, math.tanh,
]  # fmt: skip
BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge, builtins.min,
    builtins.max, builtins.divmod, math.atan2, math.copysign, math.fmod, math.hypot, math.pow,
    math.remainder,
]  # fmt: skip
PAIRS = [(a, b) for a in (0, 3, -7, 2.5, True, -0.5) for b in (2, -3, 0.25, 1, 0, False)]
CASES = [
    *((f, (x,)) for f in UNARY for x in NUMBERS), *((f, (x,)) for f in REAL for x in NUMBERS),
    *((f, pair) for f in BINARY for pair in PAIRS),
    *((f, (a, b)) for f in (operator.and_, operator.or_, operator.xor)
      for a in (True, False, 6) for b in (True, False, 3)),
    *((builtins.pow, pair) for pair in ((2, 3), (2, -1), (0.5, 2), (-8, 2), (4, 0.5))),
    *((builtins.round, (x, n)) for x in (2.675, -0.125, 1234.5, 15, -25, 0.5)
      for n in (0, 1, 2, -1)),
    *((math.isqrt, (n,)) for n in (0, 1, 15, 16, 10**18 - 1, -4)),
    *((math.gcd, args) for args in ((12, 18), (0, 5), (-4, 6, 10), ())),
    *((f, (x,)) for f in (builtins.len, builtins.tuple, builtins.list, builtins.bool, builtins.any,
                          builtins.all, builtins.sum, builtins.max, builtins.min) for x in LISTS),
    *((operator.add, (a, b)) for a in LISTS for b in LISTS),
    *((operator.mul, (x, n)) for x in LISTS for n in (0, 2, -1)),
    *((f, (a, b)) for f in (operator.eq, operator.ne, operator.lt) for a in LISTS for b in LISTS),
    *((operator.contains, (x, n)) for x in LISTS for n in (1, 1.5, None)),
    *((operator.getitem, (x, i)) for x in ([1, 2, 3], (4, 5))
      for i in (0, -1, 5, slice(1, None), slice(None, None, 2), slice(None, None, -1))),
    *((f, (a, b)) for f in (operator.is_, operator.is_not) for a in (None, 1, True)
      for b in (None, True)),
    (builtins.sum, ([T, T],)), (builtins.sum, ([1, 2], 10)), (builtins.sum, (T,)),
    (builtins.max, (ONE, ONE * 2)), (builtins.min, (ONE, 1)), (builtins.len, (T,)),
    (builtins.int, (ONE,)), (builtins.float, (ONE,)), (builtins.bool, (ONE,)), (math.sqrt, (ONE,)),
    *((builtins.str, (x,)) for x in [*NUMBERS, *LISTS, "word", None, (1,), [[], (2, "a")],
                                     {"a": 1.5}, math.inf, -0.0, 1e22, 1e-7, torch.float32]),
    *((operator.contains, (T, x)) for x in (3, 3.5, True, ONE, torch.tensor([1.0, 9.0]), None)),
    (operator.contains, (torch.empty(0), 1)),
    (operator.is_, (T, None)), (operator.add, ([T], [ONE])), (operator.getitem, ([T, ONE], 1)),
    (operator.getitem, ((T, 3), slice(None, 1))), (builtins.any, ([ONE, 0],)),
]  # fmt: skip


def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b) or math.isclose(
            a, b, rel_tol=1e-15) or (a != a and b != b)  # fmt: skip
    return type(a) is type(b) and a == b


def in_a_branch(target, n):
    """cond(True, target, ..., operands), as a graph of `n` inputs."""
    graph = cfx.Graph()
    inputs = tuple(graph.placeholder(f"a{i}") for i in range(n))
    branches = []
    for pick in (True, False):
        region = cfx.Graph()
        inside = tuple(region.placeholder(f"a{i}") for i in range(n))
        region.output(region.call_function(target, inside) if pick else None)
        branches.append(region)
    graph.output(graph.call_function(cfx.cond, (True, *branches, inputs)))
    return graph


@pytest.mark.parametrize("target", dict.fromkeys(target for target, _ in CASES),
                         ids=lambda f: f"{f.__module__}.{f.__name__}")
def test_equals_python(target):
    graphs = {}
    for args in (args for f, args in CASES if f is target):
        n = len(args)
        if n not in graphs:
            plain = cfx.Graph()
            inputs = tuple(plain.placeholder(f"a{i}") for i in range(n))
            plain.output(plain.call_function(target, inputs))
            graphs[n] = [cfx.lower(cfx.GraphModule({}, g)) for g in (plain, in_a_branch(target, n))]
        try:
            wanted = target(*args)
        except Exception as error:
            wanted = error
        for lowered in graphs[n]:
            if isinstance(wanted, Exception):
                with pytest.raises(Exception):
                    lowered(*args)
            else:
                got = lowered(*args)
                assert same(wanted, got), f"{target.__name__}{args}: {wanted!r}, not {got!r}"


@pytest.mark.parametrize("text, args", [
    ("{} of {}", (1, 2.5)), ("{{{}}}", ((3, 4),)), ("no field", ()), ("{} {}", (True, "word")),
    ("{}", (torch.int64,)), ("spare {}", (1, 2)), ("{} {}", (1,)), ("}", ()), ("{", ()),
    ("{:>6}|{:.3f}", (7, 2.5)), ("{!r} {!s}", ("it's", "b")), ("{:d}", (2.5,)), ("{:>4}", ([1],)),
    ("{!s:>6}{!r:>6}", ("a", "b")), ("{!s:4}|", (3,)), ("{!s:d}", (3,)), ("{:,}", (1234567,)),
])  # fmt: skip
def test_format(text, args):
    """'...'.format(...), with the exceptions that Python raises."""
    graph = cfx.Graph()
    graph.output(graph.call_method("format", (text, *map(graph.placeholder, "ab"[:len(args)]))))
    lowered = cfx.lower(cfx.GraphModule({}, graph))
    try:
        wanted = text.format(*args)
    except Exception as error:
        with pytest.raises(type(error) if text != "{" else Exception):
            lowered(*args)
    else:
        assert lowered(*args) == wanted


@pytest.mark.parametrize("value", [T, 2j, [T], [torch.float32]])
def test_str_is_refused(value):
    """Where it would be another text than Python's."""
    graph = cfx.Graph()
    graph.output(graph.call_function(str, (graph.placeholder("a"),)))
    with pytest.raises(NotImplementedError, match="cannot be converted to text"):
        cfx.lower(cfx.GraphModule({}, graph))(value)


@pytest.mark.parametrize("text", ["{0}", "{a}", "{!a}", "{:{}}"])
def test_format_is_refused(text):
    graph = cfx.Graph()
    graph.output(graph.call_method("format", (text, graph.placeholder("a"))))
    with pytest.raises(NotImplementedError, match="only unnamed fields such as {}"):
        cfx.lower(cfx.GraphModule({}, graph))(1)
