"""cfx.capture under bad input and strange programs: the right graph, or an error with the user's
line, the reason and what to do; the model and the process stay as they were."""
import contextlib
import copy
import io
import math
import pickle
import re
import threading

import pytest

torch = pytest.importorskip("torch")
from test_capture import equal
from torch import nn
from torch.nn import functional as F

import cfx
from cfx.capturing import CaptureError, capture

X = torch.arange(12.0).reshape(3, 4) - 5
HERE = r"test_capture_strange\.py:\d+"


def process():
    return (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype(),
            torch.is_autocast_enabled("cpu"), torch._C._len_torch_function_stack(),
            torch._C._get_torch_function_state(),
            torch.is_grad_enabled.__name__, torch.jit.is_tracing.__code__,
            nn.Module._wrapped_call_impl.__code__, cfx._symbolic_trace.is_fx_tracing())  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = process()
    yield
    assert process() == before


def refused(program, *args, why="", error=CaptureError):
    """The capture fails, with a line of this file and a reason."""
    state = torch.get_rng_state()
    with pytest.raises(error, match=why) as caught:
        capture(program, *args)
    assert torch.equal(torch.get_rng_state(), state)
    if error is CaptureError:
        assert re.match(HERE, str(caught.value)), caught.value
        assert ";" in str(caught.value) or "," in str(caught.value)  # and what to do
    return str(caught.value)


def outcome(program, args):
    torch.manual_seed(0)
    try:
        return program(*copy.deepcopy(args))
    except Exception as error:
        return error


def holds(program, *inputs, like=None, strict=True):
    """A graph of the first inputs gives on all of them what the program gives. It may refuse some,
    with a guard, if it is not `strict`; never another result."""
    state, first = torch.get_rng_state(), like if like is not None else inputs[0]
    kept = copy.deepcopy(first)
    gm = capture(program, *first)
    assert torch.equal(torch.get_rng_state(), state)
    equal([a for a in first if isinstance(a, torch.Tensor)],
          [a for a in kept if isinstance(a, torch.Tensor)])  # fmt: skip
    for args in inputs:
        want, got = outcome(program, args), outcome(gm, args)
        if isinstance(want, Exception):
            assert isinstance(got, type(want)) or isinstance(got, CaptureError)
        elif isinstance(got, Exception):
            assert not strict and isinstance(got, CaptureError) and "captured" in str(got), got
        else:
            equal(want, got)
    return gm


# ---- a model that raises, a generator left half-way --------------------------------------------


class Changes(nn.Module):
    """Changes everything that it has, and fails."""

    def __init__(self, error):
        super().__init__()
        self.error, self.count, self.seen, self.table = error, 0, [], {"a": 1}
        self.fc, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        self.count += 1
        self.seen.append(x.shape[0])
        self.table["b"] = x
        del self.table["a"]
        self.total += x.sum(0)
        self.extra = x
        self.norm.eval()
        y = self.norm(self.fc(x.mul_(2)))
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch.manual_seed(7)
        with torch.no_grad():
            self.fc.weight.zero_()
        raise self.error(f"the sum is {y.shape}")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit,
                                   StopIteration, AssertionError, RecursionError])  # fmt: skip
def test_a_model_that_raises(error):
    model, x = Changes(error), X.clone()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    with pytest.raises(error, match="the sum is"):
        capture(model, x)
    after = model.state_dict()
    assert all(torch.equal(before[k], after[k]) for k in before)
    assert (model.count, model.seen, model.table) == (0, [], {"a": 1})
    assert model.norm.training and not hasattr(model, "extra") and torch.equal(x, X)


def test_errors_of_torch_come_through():
    message = "mat1 and mat2 shapes cannot be multiplied"
    refused(lambda x: x @ x, X, error=RuntimeError, why=message)
    with pytest.raises(RuntimeError, match=message):
        capture(nn.Linear(3, 3), X)


def test_generators_left_half_way():
    closed = []

    def parts(x):
        try:
            yield x + 1
            yield x + 2
        finally:
            closed.append(1)

    def first(x):
        return next(parts(x))

    # the generator ends within the run: what it does then is seen
    assert "closed" in refused(first, X, why="the program changes closed")
    assert closed == []

    def quietly(x):
        def numbers():
            n = 0
            while True:
                yield x + n
                n += 1

        endless = numbers()
        return next(endless) + next(endless)

    holds(quietly, (X,), (torch.ones(5, 4),))

    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.numbers = iter(range(10))

        def forward(self, x):
            return x + next(self.numbers)

    model = Keeps()
    refused(model, X, why="numbers, an iterator")


def test_a_generator_as_a_result():
    refused(lambda x: (x + i for i in range(3)), X, why="returns a generator.*return a list")
    refused(lambda x: map(abs, [x]), X, why="returns a map")


# ---- tensors and numbers that escape -----------------------------------------------------------

KEPT = []


class Hidden:
    """Whose contents nobody sees."""

    __slots__ = ("tensor", "number", "data")


HIDDEN = Hidden()


def hides(x):
    HIDDEN.tensor, HIDDEN.number, HIDDEN.data = x * 2, x.shape[0], x.sum().item()
    return x + 1


@pytest.fixture
def hidden():
    capture(hides, X)
    yield HIDDEN
    del HIDDEN.tensor, HIDDEN.number, HIDDEN.data


def test_globals_are_seen():
    assert "KEPT" in refused(lambda x: KEPT.append(x) or x, X, why="the global variable KEPT")
    assert KEPT == []


@pytest.mark.parametrize("use", [
    lambda t: t + 1, lambda t: torch.ones(3, 4) + t, lambda t: torch.cat([X, t]),
    lambda t: torch.add(input=X, other=t), lambda t: t.shape, lambda t: t.size(0), len, list,
    lambda t: t[0], lambda t: bool(t.sum()), lambda t: t.item(), lambda t: t.numpy(),
    lambda t: t.tolist(), lambda t: t.dtype, lambda t: t.to(torch.float64), lambda t: t.data_ptr(),
    lambda t: t.sum().backward(), lambda t: f"{t:}", lambda t: t.__setitem__(0, 1),
    lambda t: nn.Linear(4, 4)(t), lambda t: capture(lambda y: y + 1, t), torch.tensor,
    lambda t: capture(lambda y: y + t, X), lambda t: copy.deepcopy(t), lambda t: t.is_contiguous(),
    pickle.dumps, copy.copy, lambda t: torch.save(t, io.BytesIO()), lambda t: t == t,
    lambda t: torch.vmap(torch.sin)(t),
])  # fmt: skip
def test_a_tensor_that_escaped(hidden, use):
    with pytest.raises(CaptureError, match="used after the capture|is pickled"):
        use(hidden.tensor)


def test_what_a_tensor_that_escaped_can_still_do(hidden):
    assert repr(hidden.tensor) == "<tensor mul of a graph that is being captured>"
    assert isinstance(hidden.tensor, torch.Tensor) and hidden.tensor in {hidden.tensor}


def test_in_another_thread(hidden):
    errors = []

    def work():
        try:
            hidden.tensor + 1
        except CaptureError as error:
            errors.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "used after the capture" in errors[0]


def test_a_number_that_escaped(hidden):
    """It is a plain value to Python; torch, which would take it for another number, refuses it."""
    n, v = hidden.number, hidden.data
    assert (n + 1, 7 - n, n // 2, -n, int(n), n == 3, bool(n)) == (4, 4, 1, -3, 3, True, True)
    assert list(range(n)) == [0, 1, 2] and {3: "a"}[n] == "a" and [1, 2, 3, 4][n] == 4
    assert pickle.loads(pickle.dumps(n)) == 3 and repr(n) == "3" and f"{n:03d}" == "003"
    assert v * 2 == 2 * X.sum().item() and math.floor(v) == int(X.sum())
    for use in (lambda: X * n, lambda: X + v, lambda: torch.add(X, n), lambda: X[:, :2] * v):
        with pytest.raises(CaptureError, match=f"{HERE}: a tensor or number .* after the capture"):
            use()
    assert torch.equal(X[: operator_index(n)], X)
    refused(lambda x: x * HIDDEN.number, X, why="after the capture that made it")
    refused(lambda x: torch.zeros(HIDDEN.number) + x[0, 0], X, why="after the capture")


def operator_index(n):
    return n.__index__()


def test_hashed_and_pickled():
    def hashes(x):
        table = {x: 1, x + 1: 2}
        return x * table[x] + len({x, x}), x in table

    holds(hashes, (X,), (torch.ones(2, 4),))
    refused(lambda x: pickle.loads(pickle.dumps(x)), X, why="is pickled.*pickle the result")
    refused(lambda x: torch.save(x, io.BytesIO()), X, why="is pickled")
    holds(lambda x: copy.deepcopy(x) + 1, (X,), (torch.ones(2, 4),))
    holds(lambda x: x * pickle.loads(pickle.dumps(x.shape[0])), (X,), (torch.ones(2, 4),),
          strict=False)


def test_types_of_tensors():
    """`type(x) is torch.Tensor` alone nobody can answer but Python."""

    def compares(x):
        names = {torch.Tensor: 2, int: 3}
        y = x + 1 if type(x) == torch.Tensor else x - 1  # noqa: E721
        return y * names[type(x)] if type(x) in (nn.Parameter, torch.Tensor) else y

    holds(compares, (X,), (torch.ones(2, 4),))
    holds(lambda x: x + len(x.__class__.__name__), (X,))
    holds(lambda x: (isinstance(x, torch.Tensor), isinstance(x, nn.Parameter)), (X,))


# ---- capture within others ---------------------------------------------------------------------


def test_capture_within_capture():
    why = r"cfx.capture was called by a program that is being captured \(outer\)"

    def outer(x):
        return capture(lambda y: y + 1, x)(x)

    refused(outer, X, why=why)

    assert len(capture(lambda x: x + 1, X).graph.nodes) == 3


def test_captured_modules_and_functions_within_capture():
    inner = capture(lambda y: y * 2 + y.shape[0], X)
    holds(lambda x: inner(x) + 1, (X,), (torch.ones(5, 4),))
    decorated = cfx.function(lambda y: y * 3)
    decorated(X)
    holds(lambda x: decorated(x) + 1, (X,), (torch.ones(5, 4),))
    holds(lambda x: cfx.symbolic_trace(lambda y: y + 1)(x), (X,), (torch.ones(5, 4),))


@pytest.mark.filterwarnings("ignore")
def test_capture_and_compile():
    compiled = torch.compile(lambda y: y.sin() + 1, backend="eager")
    holds(lambda x: compiled(x) * 2, (X,), (torch.ones(5, 4),))
    holds(Holds(torch.compile(nn.Linear(4, 4), backend="eager")), (X,), (torch.ones(5, 4),))
    outer = torch.compile(lambda x: capture(lambda y: y + 1, x)(x), backend="eager")
    assert torch.equal(outer(X), X + 1)
    whole = torch.compile(capture(nn.Linear(4, 4), X), backend="eager")
    assert whole(torch.ones(5, 4)).shape == (5, 4)


class Holds(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x) + 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript():
    """A scripted or traced part of the model is one call; one from elsewhere is refused."""
    for inner in (torch.jit.script(nn.Linear(4, 4)), torch.jit.trace(nn.Linear(4, 4), X),
                  torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)))):  # fmt: skip
        model = Holds(inner.eval())
        gm = holds(model, (X,), (torch.ones(5, 4),))
        assert [n.target for n in gm.graph.nodes if n.op == "call_module"] == ["inner"]
        state = {k: v.clone() for k, v in model.state_dict().items()}
        model.train()
        capture(model, X)
        assert all(torch.equal(v, state[k]) for k, v in model.state_dict().items())
        refused(lambda x, inner=inner: inner(x), X, why="a module of TorchScript")


# ---- devices -----------------------------------------------------------------------------------


def meta(*shape):
    return torch.empty(*shape, device="meta")


def test_inputs_on_meta():
    gm = capture(lambda x: (x @ x.T).relu()[: x.shape[0] // 2], meta(6, 4))
    assert gm(meta(10, 3)).shape == (5, 10)
    with pytest.raises(CaptureError, match="x is on cpu, but the model was captured on meta"):
        gm(X)
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()).eval()
    assert capture(model, meta(3, 4))(meta(7, 4)).shape == (7, 8)


@pytest.mark.parametrize("ask", [
    lambda x: x.sum().item(), lambda x: x if x.sum() > 0 else -x, lambda x: x * float(x[0, 0]),
    lambda x: x.tolist(), lambda x: [1, 2][x.argmax()], lambda x: x[: int(x.max())],
    lambda x: (3.0 in x, x), lambda x: x.numpy(),
])  # fmt: skip
def test_values_on_meta(ask):
    refused(ask, meta(3, 4), why="a value of a tensor on the meta device.*inputs that have data")


def test_several_devices():
    holds(lambda x, y: (x * 2, y.shape[0] + x.shape[0]), (X, meta(3, 4)),
          (torch.ones(5, 4), meta(2, 4)))  # fmt: skip
    gm = capture(lambda x, y: x.to("meta") + y, X, meta(3, 4))
    assert gm(torch.ones(2, 4), meta(2, 4)).is_meta
    with pytest.raises(CaptureError, match="y is on cpu"):
        gm(X, X)
    refused(lambda x, y: x + y, X, meta(3, 4), error=RuntimeError, why="device")
    with pytest.raises(RuntimeError, match="device"):
        capture(nn.Linear(4, 4), meta(3, 4))


# ---- results that are inputs or parameters -----------------------------------------------------


def test_results_that_are_inputs_or_parameters():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.none = nn.Parameter(torch.ones(2)), None
            self.register_buffer("shift", torch.zeros(2))

        def forward(self, x, table):
            return x, self.weight, self.shift, table, [x, table["y"]], self.none, self.weight

    model, table = Model(), {"y": torch.ones(2)}
    gm = capture(model, X, table)
    found = gm(X, table)
    assert found[0] is X and found[3] is table and found[4][0] is X and found[4][1] is table["y"]
    assert found[1] is gm.weight is model.weight is found[6] and found[2] is gm.shift
    assert found[5] is None

    same = capture(lambda x: x, X)
    assert same(X) is X
    view = capture(lambda x: x[:], X)(X)
    assert view is not X and view.data_ptr() == X.data_ptr()


# ---- sizes 0 and 1 -----------------------------------------------------------------------------


def rows(n, *more):
    torch.manual_seed(n)
    return (torch.randn(n, *(more or (4,))),)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)

    def forward(self, x):
        b = x.shape[0]
        y = self.norm(self.fc(x)).view(b, 2, 2).transpose(0, 1).reshape(4, b)
        z = torch.zeros(b, 4) + x
        both = torch.cat([x, z]).unflatten(0, (2, b))
        return y @ torch.ones(b, 3), z.expand(b, 4), both, x * torch.arange(b)[:, None]


OF_ROWS = {
    "net": Net().eval(), "linear": nn.Linear(4, 2), "mean": lambda x: x.mean(0),
    "broadcast": lambda x: x + torch.ones(x.shape[0], 4) * x[:1].sum(),
    "outer": lambda x: x.unsqueeze(1) * x.unsqueeze(0), "first": lambda x: x[:1] + x,
    "einsum": lambda x: torch.einsum("bi,bj->ij", x, x), "transposed": lambda x: x.t().reshape(-1),
    "contiguous": lambda x: x.t().contiguous().view(-1), "pad": lambda x: F.pad(x, (0, 1, 1, 0)),
    "flatten": lambda x: x[None].flatten(0, 1), "index": lambda x: x[torch.arange(x.shape[0])],
    "layer norm": lambda x: F.layer_norm(x, x.shape[1:]), "cumsum": lambda x: x.cumsum(0),
    "expand": lambda x: x[:, None].expand(-1, 3, -1), "matmul": lambda x: x @ x.mT,
    "gram": lambda x: torch.matmul(x.t(), x), "repeat": lambda x: x.repeat(2, x.shape[0]),
    "where": lambda x: torch.where(x > 0, x, torch.zeros(x.shape[0], 1)),
}  # fmt: skip


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("name", OF_ROWS)
def test_graphs_of_few_rows(name, n):
    """From zero rows or one they hold for any number of rows, and broadcast as it does."""
    gm = holds(OF_ROWS[name], rows(n), rows(2), rows(5), rows(1), rows(0))
    assert gm.guards == ()


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("make, shape", [
    (lambda: nn.Conv2d(1, 2, 3), (1, 5, 5)), (lambda: nn.LSTM(4, 4, batch_first=True), (3, 4)),
    (lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), (3, 4)),
    (lambda: nn.Sequential(nn.Flatten(), nn.Linear(12, 2)), (3, 4)),
    (lambda: nn.AdaptiveAvgPool2d(1), (1, 4, 4)), (lambda: nn.Upsample(scale_factor=2), (1, 3, 3)),
    (lambda: nn.GroupNorm(2, 4), (4, 3)), (lambda: nn.InstanceNorm1d(4), (4, 3)),
])  # fmt: skip
def test_layers_of_few_rows(make, shape, n):
    holds(make().eval(), *(rows(k, *shape) for k in (n, 2, 5, 1)))


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("program", [
    lambda x: x.squeeze(), lambda x: x.squeeze(0), lambda x: x.chunk(2), lambda x: x.unbind(),
    lambda x: sum(row.sum() for row in x), lambda x: x if len(x) else x - 1,
    lambda x: torch.stack([row * 2 for row in x]) if len(x) > 1 else x.clone(),
    lambda x: x * 2 if x.numel() else x, lambda x: x[0] if x.shape[0] else x.sum(0),
    lambda x: [x + i for i in range(x.size(0))], lambda x: "many" if x.size(0) > 1 else "few",
    lambda x: x.split(1), lambda x: x.view(x.shape[0], -1) if x.shape[0] > 0 else x.reshape(0, 4),
])  # fmt: skip
def test_programs_that_ask_for_few_rows(program, n):
    """What depends on the number of rows is in the graph or a guard; recapture takes both."""
    inputs = [rows(k) for k in (n, 0, 1, 2, 5)]
    holds(program, *inputs, strict=False)
    gm = capture(program, *inputs[0], recapture=True)
    for args in inputs:
        equal(program(*args), gm(*args))


def test_two_inputs_of_one_row():
    def product(x, y):
        return x * y

    pairs = [(*rows(1), *rows(1)), (*rows(2), *rows(2)), (*rows(2), *rows(1)), (*rows(1), *rows(3))]
    for first in pairs:
        holds(product, first, *pairs)


# ---- data that decides -------------------------------------------------------------------------

NAN = torch.full((3, 4), math.nan)
SIGNS = [(NAN,), (torch.ones(3, 4),), (-torch.ones(3, 4),), (torch.zeros(2, 4),),
         (torch.full((3, 4), math.inf),)]  # fmt: skip


def three_ways(x):
    value = x.sum().item()
    if value > 0:
        return x + 1
    if value <= 0:
        return x - 1
    return torch.zeros_like(x) + 7


def two_ways(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


def not_equal(x):
    m = x.max()
    return torch.nan_to_num(x) if m != m else x * 2


def while_positive(x):
    while x.sum() > 0:
        x = x - 1
        if x.sum().isinf():
            break
    return x


@pytest.mark.parametrize("first", range(len(SIGNS)))
@pytest.mark.parametrize("program", [three_ways, two_ways, not_equal, while_positive])
def test_not_a_number_decides(program, first):
    """Whatever the example was, each input takes the way that it takes in Python."""
    holds(program, *SIGNS, like=SIGNS[first])


@pytest.mark.parametrize("first", range(len(SIGNS)))
@pytest.mark.parametrize("text", [
    "x + 1 if x.sum() > 0 else x - 1", "x * float(x.sum())", "x + x.sum().tolist()",
    "x if x.sum().item() == x.sum().item() else -x", "x + max(x[0, 0].item(), 0.5)",
    "x + {True: 1, False: 2}[x.sum().item() > 0]", "[x, x + 1][x.sum().item() < 1]",
])  # fmt: skip
def test_not_a_number_without_source(text, first):
    """Where data decides in a function without source, the graph checks what it decided."""
    holds(eval(f"lambda x: {text}"), *SIGNS, like=SIGNS[first], strict=False)


def test_numbers_that_are_not_numbers():
    def scaled(x, n):
        return x * n if n > 0 else x

    calls = [(X, math.nan), (X, 2.0), (X, -1.0), (X, math.inf)]
    for first in calls:
        holds(scaled, *calls, like=first, strict=False)


# ---- gradients inside of forward ---------------------------------------------------------------


def of_input(x):
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad((x**3).sum(), x)
    return slope * 2


def twice(x):
    with torch.enable_grad():
        x = x.clone().requires_grad_(True)
        (slope,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (curve,) = torch.autograd.grad(slope.sum(), x)
    return curve


def backwards(x):
    x = x.detach().requires_grad_()
    (x**2).sum().backward()
    return x.grad


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("program", [
    of_input, twice, backwards, lambda x: torch.func.grad(lambda y: (y**3).sum())(x),
    lambda x: torch.func.vmap(torch.func.grad(lambda y: (y**3).sum()))(x),
    lambda x: torch.func.jacrev(lambda y: y**2)(x[0]),
    lambda x: torch.func.vjp(torch.sin, x)[1](torch.ones_like(x))[0],
])  # fmt: skip
def test_gradients_inside(program, grad):
    if not grad and program in (of_input, backwards):
        with torch.no_grad():
            refused(program, X, error=RuntimeError, why="does not require grad")
        return
    with torch.set_grad_enabled(grad):
        holds(program, (X,), (torch.ones(5, 4),), (X[:1],), strict=False)


def test_gradients_of_parameters_inside():
    class Trains(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            self.fc(x).sum().backward()
            return x

    model = Trains()
    refused(model, X, why="computes gradients of its parameters.*capture the forward")
    assert model.fc.weight.grad is None

    class Slope(Trains):
        def forward(self, x):
            y = self.fc(x).square().sum()
            return torch.autograd.grad(y, self.fc.weight)[0] @ x.sum(0)

    model = Slope()
    holds(model, (X,), (torch.ones(5, 4),))
    assert model.fc.weight.grad is None


# ---- whatever else people do -------------------------------------------------------------------


def test_changes_are_named_with_their_lines():
    count = 0

    def counts(x):
        nonlocal count
        y = x + 1
        count += 1
        return y

    line = counts.__code__.co_firstlineno + 3
    assert f"test_capture_strange.py:{line}:" in refused(counts, X, why="count, a variable around")
    assert count == 0


def test_memory_of_tensors_is_refused():
    for ask in (lambda x: x.data_ptr(), lambda x: x.untyped_storage(), lambda x: x.storage()):
        refused(ask, X, why="the memory of a tensor of the graph")


class Own:
    """A class that takes part in torch's calls."""

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [a.value if isinstance(a, cls) else a for a in args]
        return cls(func(*args, **(kwargs or {})))


def test_objects_that_take_part():
    holds(lambda x: torch.add(Own(x), 1).value, (X,), (torch.ones(2, 4),))


def test_a_subclass_of_tensor():
    class Named(torch.Tensor):
        pass

    gm = capture(lambda x: x + 1, X.as_subclass(Named))
    assert torch.equal(gm(X.as_subclass(Named)).as_subclass(torch.Tensor), X + 1)


def test_inputs_that_are_views_and_expanded():
    base = torch.arange(24.0).reshape(4, 6)
    for x in (base[::2, 1::2], base.t(), base[:1].expand(5, 6), base[0].expand(2, 6), base[:, :0]):
        holds(lambda x: (x * 2, x.reshape(-1), x.sum(0), x.t() @ x), (x,), (torch.ones(2, 3),))


def test_deep_recursion_in_the_program():
    def endless(x):
        return endless(x + 1)

    with pytest.raises(RecursionError):
        capture(endless, X)

    def nest(x, depth):
        return x if depth == 0 else nest(x + 1, depth - 1)

    holds(lambda x: nest(x, 150), (X,), (torch.ones(2, 4),))


def test_endless_arguments():
    loop = [X]
    loop.append(loop)
    try:
        gm = capture(lambda items: items[0] + 1, loop)
        assert torch.equal(gm(loop), X + 1)
    except (CaptureError, RecursionError):
        pass  # said, not crashed


def test_properties_and_getattr_that_fail():
    class Fails(nn.Module):
        @property
        def scale(self):
            raise AttributeError("no scale")

        def __getattr__(self, name):
            if name == "offset":
                return 2.0
            return super().__getattr__(name)

        def forward(self, x):
            return x + self.offset * getattr(self, "scale", 3.0)

    holds(Fails(), (X,), (torch.ones(2, 4),))


def test_a_model_that_replaces_its_parts():
    class Grows(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4)])

        def forward(self, x):
            self.layers.append(nn.Linear(4, 4))
            for layer in self.layers:
                x = layer(x)
            return x

    model = Grows()
    with contextlib.suppress(CaptureError):
        capture(model, X)
    assert len(model.layers) == 1 and len(list(model.parameters())) == 2


def test_hooks_that_change_and_fail():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    handle = model[0].register_forward_hook(lambda m, args, out: out * 2)
    holds(model, (X,), (torch.ones(2, 4),))
    handle.remove()

    def fails(module, args):
        raise LookupError("a hook")

    model[1].register_forward_pre_hook(fails)
    with pytest.raises(LookupError, match="a hook"):
        capture(model, X)


def test_not_a_program():
    with pytest.raises(TypeError, match="needs a module or a function, not int"):
        capture(3)
    with pytest.raises(TypeError, match="missing a required argument"):
        capture(lambda x, y: x, X)
    with pytest.raises(ValueError, match='modes is "current" or "both"'):
        capture(lambda x: x, X, modes="all")
