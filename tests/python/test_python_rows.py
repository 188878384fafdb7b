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


NAN, INF, BIG = math.nan, math.inf, 2**62
RAISES = [
    *((f, (x,)) for f in (int, round, math.ceil, math.floor, math.trunc) for x in (INF, -INF, NAN)),
    *((f, (x,)) for f in (math.exp, math.exp2, math.expm1, math.sinh, math.cosh)
      for x in (1e4, -1e4, INF, NAN)),
    *((f, (x,)) for f in (math.sqrt, math.log, math.log2, math.log10, math.log1p, math.acos,
                          math.atanh, math.sin, math.cos, math.tan)
      for x in (-2.0, -1.0, 0.0, 1.0, INF, -INF, NAN)),
    (math.degrees, (1e308,)), (math.radians, (1e308,)), (math.log, (2, 1)), (math.log, (8, 2)),
    *((operator.pow, p) for p in (
        (1e200, 2), (-1e200, 3), (10.0, 400), (10.0, -400), (INF, 2), (0.0, -1), (0, -1), (2, -2),
        (-1.5, 0.5), (-1e300, 1.5), (1e200j, 2), (1e200j, 2.5), (0j, -1), (NAN, 0), (1.0, NAN))),
    *((math.pow, p) for p in ((1e200, 2), (0.0, -1), (-8.0, 1 / 3), (0.0, -INF), (INF, -1))),
    *((f, (a, b)) for f in (operator.lshift, operator.rshift)
      for a, b in ((1, -1), (1, 3), (-5, 7), (0, 100), (1, 62))),
    (operator.rshift, (-5, 70)), (operator.rshift, (5, 2**62)),
    *((f, (a, b)) for f in (operator.floordiv, operator.mod, operator.truediv, divmod)
      for a in (1, 1.5, INF, NAN, -BIG) for b in (0, 0.0, -3, INF, -INF)),
    *((operator.truediv, p) for p in (
        (9007199254740993, 3), (1, BIG + 1), (BIG - 1, BIG), (-BIG - 1, 3), (-2**63, -1),
        (2**63 - 1, 2**63 - 1), (0, -BIG), (2**53 + 1, 2**53 - 1), (-2**63, 7))),
    *((round, (x, n)) for x in (1.7e308, -1.7e308, 2.5) for n in (-308, -400, 400)),
    (abs, (complex(1.7e308, 1.7e308),)), (abs, (complex(INF, 1),)), (abs, (3 + 4j,)),
    *((sorted, (x,)) for x in (
        [2.0, NAN, 1.0], [NAN, 2.0, 1.0], [3.0, 1.0, NAN, 2.0, 0.0], [1, 2.5, True, -INF],
        [(NAN, 1), (0.5, 2), (NAN, 0)], [float(i * 37 % 11) if i % 7 else NAN for i in range(63)],
        [i * 37 % 101 for i in range(200)])),
]  # fmt: skip


@pytest.mark.parametrize("target", dict.fromkeys(target for target, _ in RAISES),
                         ids=lambda f: f"{f.__module__}.{f.__name__}")
def test_the_same_exceptions(target):
    """At the ends of what floats can be, with the class that Python raises."""
    for args in (args for f, args in RAISES if f is target):
        graph = cfx.Graph()
        graph.output(graph.call_function(target, tuple(map(graph.placeholder, "ab"[:len(args)]))))
        lowered = cfx.lower(cfx.GraphModule({}, graph))
        try:
            wanted = target(*args)
        except Exception as error:
            with pytest.raises(Exception) as raised:
                lowered(*args)
            assert raised.type is type(error), f"{target.__name__}{args}: {error!r}"
        else:
            got = lowered(*args)
            same_parts = same(wanted, got) or repr(wanted) == repr(got) or cmath_close(wanted, got)
            assert same_parts, f"{target.__name__}{args}: {wanted!r}, not {got!r}"


def cmath_close(a, b):
    return isinstance(a, complex) and isinstance(b, complex) and abs(a - b) <= 1e-14 * abs(a)


def test_nan_and_identity():
    """`a in [a]` is true of NaN, too; where it depends on which NaN it is, nobody guesses."""
    def among(a: float, b: float):
        return a in [1, a], a in [b], a not in [2.0, a]

    lowered = cfx.lower(cfx.script(among))
    assert lowered(NAN, 2.0) == (True, False, False) == among(NAN, 2.0)
    assert lowered(1.0, 1.0) == among(1.0, 1.0)
    with pytest.raises(NotImplementedError, match="two NaN are one object"):
        lowered(NAN, NAN)
    anything = cfx.lower(cfx.script(lambda a: a in [1, a]))
    assert anything(1.0) and anything(2.0) and anything(torch.ones(1))
    with pytest.raises(NotImplementedError, match="two NaN are one object"):
        anything(NAN)
    with pytest.raises(RuntimeError, match="ambiguous"):
        anything(torch.ones(2))
    equal = cfx.lower(cfx.script(lambda a, b: [a] == [b]))
    assert equal(1.0, 1.0) and not equal(NAN, 1.0)
    with pytest.raises(NotImplementedError, match="two NaN are one object"):
        equal(NAN, NAN)


def test_nan_in_long_lists():
    lowered = cfx.lower(cfx.script(lambda items: sorted(items)))
    assert lowered([2, 1] * 50) == [1] * 50 + [2] * 50
    with pytest.raises(NotImplementedError, match="take NaN out first"):
        lowered([2.0, NAN] * 50)


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
