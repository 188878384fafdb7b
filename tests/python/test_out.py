"""out=: what PyTorch writes, of which type and shape, and what it refuses."""
import warnings

import pytest
import torch

import cfx

DTYPES = [torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.float32,
          torch.float64, torch.complex64]
X = torch.tensor([[0.5, -1.5, 2.0], [3.25, 0.0, -0.75]])
Y = torch.tensor([[1.0, 2.0, -3.0], [0.5, 4.0, 1.5]])
I = torch.tensor([[3, -2, 7], [1, 0, 5]])  # noqa: E741

CALLS = {
    "add": (lambda x, y, o: torch.add(x, y, out=o), X, Y),
    "add of integers": (lambda x, y, o: torch.add(x, y, out=o), I, I),
    "div of integers": (lambda x, y, o: torch.div(x, y, out=o), I, I + 9),
    "exp": (lambda x, y, o: torch.exp(x, out=o), X, Y),
    "eq": (lambda x, y, o: torch.eq(x, y, out=o), X, Y),
    "clamp": (lambda x, y, o: torch.clamp(x, 0, 1, out=o), X, Y),
    "neg": (lambda x, y, o: torch.neg(x, out=o), X, Y),
    "floor": (lambda x, y, o: torch.floor(x, out=o), X, Y),
    "where": (lambda x, y, o: torch.where(x > 0, x, y, out=o), X, Y),
    "mm": (lambda x, y, o: torch.mm(x, y.T, out=o), X, Y),
    "matmul": (lambda x, y, o: torch.matmul(x, y.T, out=o), X, Y),
    "cat": (lambda x, y, o: torch.cat([x, y], out=o), X, I),
    "stack": (lambda x, y, o: torch.stack([x, y], out=o), X, Y),
    "sum": (lambda x, y, o: torch.sum(x, 1, out=o), X * 4, Y),
    "sum of integers": (lambda x, y, o: torch.sum(x, 1, out=o), I, I),
    "prod": (lambda x, y, o: torch.prod(x, 1, out=o), I, Y),
    "mean": (lambda x, y, o: torch.mean(x, 1, out=o), X, Y),
    "amax": (lambda x, y, o: torch.amax(x, 1, out=o), X, Y),
    "argmax": (lambda x, y, o: torch.argmax(x, 1, out=o), X, Y),
    "cumsum": (lambda x, y, o: torch.cumsum(x, 1, out=o), I, Y),
    "softmax": (lambda x, y, o: torch.softmax(x, 1, out=o), X, Y),
    "gather": (lambda x, y, o: torch.gather(x, 1, y, out=o), X, torch.tensor([[1, 0], [2, 2]])),
    "zeros": (lambda x, y, o: torch.zeros(2, 3, out=o), X, Y),
    "full": (lambda x, y, o: torch.full((2, 3), 7, out=o), X, Y),
    "eye": (lambda x, y, o: torch.eye(3, out=o), X, Y),
    "linspace": (lambda x, y, o: torch.linspace(0, 8, 5, out=o), X, Y),
}
# Types of `out` that PyTorch refuses, for want of a kernel, and cfx takes.
WIDER = {
    "clamp": {torch.float16, torch.float64, torch.complex64}, "cumsum": {torch.bool},
    "linspace": {torch.bool},
}
OTHER_ERROR = {"cat", "stack"}  # PyTorch raises a TypeError there, and else a RuntimeError


def outcome(program, *args):
    """What it gives; or the exception."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return program(*args)
    except Exception as error:
        return error


@pytest.mark.parametrize("name", CALLS)
def test_types(name):
    function, *inputs = CALLS[name]
    lowered = cfx.lower(cfx.symbolic_trace(function))
    shape = function(*inputs, None).shape
    taken = 0
    for dtype in DTYPES:
        outs = [torch.full(shape, 1, dtype=dtype) for _ in range(2)]
        want = outcome(function, *inputs, outs[0])
        got = outcome(lowered, *inputs, outs[1])
        if isinstance(want, Exception) and dtype in WIDER.get(name, ()):
            assert isinstance(got, torch.Tensor), (dtype, want, got)
            continue
        assert isinstance(got, Exception) == isinstance(want, Exception), (dtype, want, got)
        if isinstance(want, Exception):
            assert type(got) is type(want) or name in OTHER_ERROR, (dtype, want, got)
            continue
        taken += 1
        assert got.dtype == dtype and torch.equal(got, outs[1])
        torch.testing.assert_close(outs[1], outs[0])
    assert taken > 0


def test_an_input_keeps_its_shape():
    lowered = cfx.lower(cfx.symbolic_trace(CALLS["add"][0]))
    for shape in ((4,), (1, 3), (5, 2, 3)):  # PyTorch resizes those with a warning
        with pytest.raises(RuntimeError, match="'out' has a different shape from the result; pass"):
            lowered(X, Y, torch.empty(shape))
    empty = torch.empty(0)
    with pytest.raises(RuntimeError, match="is an input, which cannot be resized; pass a tensor of "
                                           "the result's shape"):
        lowered(X, Y, empty)
    assert empty.shape == (0,)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        lowered(X, Y, torch.empty(1, 3).expand(2, 3))


def test_what_is_empty_is_resized():
    def made(x, y):
        out = x.new_empty(0)
        first = torch.add(x, y, out=out)
        return first, out * 2, out.shape[0]

    def constant(x, y):
        return torch.mm(x, y.T, out=torch.empty(0))

    def several(x, y):
        values, places = x.new_empty(0), y.new_empty(0, dtype=torch.int64)
        result = torch.sort(x, 1, out=(values, places))
        return values, places, result[0]

    for program in (made, constant, several):
        lowered = cfx.lower(cfx.symbolic_trace(program))
        want, got = program(X, Y), lowered(X, Y)
        torch.testing.assert_close(got, want)
        torch.testing.assert_close(lowered(X, Y), want)  # also the second time


def test_several_results():
    def program(x, values, places):
        return torch.max(x, 1, out=(values, places))

    lowered = cfx.lower(cfx.symbolic_trace(program))
    values, places = torch.empty(2), torch.empty(2, dtype=torch.int64)
    got = lowered(X, values, places)
    want = X.max(1)
    assert torch.equal(values, want.values) and torch.equal(places, want.indices)
    assert torch.equal(got[0], want.values) and torch.equal(got[1], want.indices)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype int64"):
        lowered(X, values, torch.empty(2))
    with pytest.raises(cfx.LowerError, match="'out' is one tensor, but the operator has 2 results"):
        cfx.lower(cfx.symbolic_trace(lambda x, o: torch.sort(x, out=o)))


def test_the_result_need_not_be_used():
    def program(x, out):
        torch.add(x, 1, out=out)
        return x

    out = torch.empty(2, 3)
    cfx.lower(cfx.symbolic_trace(program))(X, out)
    assert torch.equal(out, X + 1)


def test_shapes():
    lowered = cfx.lower(cfx.symbolic_trace(CALLS["add"][0]))
    shapes = lowered.infer("float32[N, 3]", "float32[N, 3]", "float64[M, 3]")
    assert str(shapes.result) == "float64[M, 3]" and shapes.assumptions == ["N == M"]
    made = cfx.lower(cfx.symbolic_trace(lambda x: torch.neg(x, out=x.new_empty(0))))
    assert str(made.infer("float32[N]").result) == "float32[N]"
