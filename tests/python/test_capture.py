"""cfx.capture: a model runs once on example inputs and is written down while it runs."""
import collections
import contextlib
import copy
import dataclasses
import functools
import math
import pickle
import random
import sys
import types

import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils import _pytree

import cfx
from cfx.capturing import CaptureError, capture


def equal(a, b):
    one, spec_a = _pytree.tree_flatten(a)
    two, spec_b = _pytree.tree_flatten(b)
    assert spec_a == spec_b
    for x, y in zip(one, two):
        if isinstance(x, torch.Tensor):
            assert x.shape == y.shape and x.dtype == y.dtype
            torch.testing.assert_close(x, y, equal_nan=True)
        else:
            assert x == y


def check(model, *inputs, like=None):
    """Captures a model with the first arguments; compares it with eager on all of them."""
    gm = capture(model, *(like or inputs[0]))
    for args in inputs:
        equal(model(*args), gm(*args))
    return gm


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)


def of(function):
    """A module with this forward."""
    return type("Model", (Small,), {"forward": function})()


def without_source(text, **names):
    """A module whose forward cannot be captured from its source."""
    return of(eval(f"lambda self, {text}", {"torch": torch, **names}))


# ---- sizes -------------------------------------------------------------------------------------


def test_sizes_stay_symbolic():
    def forward(self, x):
        b, n = x.shape[0], x.size(1)
        y = self.fc(x).view(b * n, -1) + torch.arange(b * n)[:, None]
        return y[: b * 2 - 1].reshape(-1), x.new_zeros(n + 1, 3), b

    shapes = (2, 3, 4), (5, 7, 4), (1, 1, 4)
    gm = check(of(forward), *((torch.randn(shape),) for shape in shapes))
    assert gm.guards == ()


@pytest.mark.parametrize("expression", [
    lambda n: n + 1, lambda n: 1 + n, lambda n: n - 1, lambda n: 7 - n, lambda n: n * 3,
    lambda n: 3 * n, lambda n: n // 2, lambda n: 9 // n, lambda n: n % 2, lambda n: 7 % n,
    lambda n: n**2, lambda n: abs(-n), lambda n: int(n / 1) if False else n, lambda n: -(-n // 2),
    lambda n: torch.sym_max(n, 2), lambda n: torch.sym_min(n, 2),
])  # fmt: skip
def test_arithmetic_of_sizes(expression):
    model = of(lambda self, x: x.new_ones(expression(x.shape[0])))
    gm = check(model, (torch.randn(3),), (torch.randn(5),), (torch.randn(2),))
    assert gm.guards == ()


def test_a_comparison_of_sizes_is_a_guard():
    def forward(self, x):
        return x * 2 if x.shape[0] > 1 else x

    gm = check(of(forward), (torch.randn(2),), (torch.randn(9),))
    (guard,) = gm.guards
    assert (guard.kind, guard.expression, guard.value) == ("size", "x.shape[0] > 1", True)
    assert guard.line.startswith("test_capture.py:")
    assert guard.place == "entry"
    with pytest.raises(CaptureError, match=r"x.shape\[0\] > 1 was True at test_capture.py"):
        gm(torch.randn(1))


def test_a_loop_over_a_size_is_a_loop_of_the_graph():
    def forward(self, x):
        total = 0
        for i in range(x.shape[0]):
            total = total + x[i] * i
        return total

    gm = check(of(forward), (torch.randn(3, 2),), (torch.randn(5, 2),))
    assert gm.guards == () and "for i in range" in gm.code


def test_a_size_that_python_needs_is_a_guard():
    model = without_source(
        'x: (x + 1, [0] * x.shape[0], {x.shape[0]: "key"}, "abcdef"[x.shape[0]])')
    gm = check(model, (torch.randn(3, 2),))
    assert [g.value for g in gm.guards] == [3]  # asked three times
    with pytest.raises(CaptureError, match="was 3 at"):
        gm(torch.randn(4, 2))


def test_the_number_of_parts_is_a_guard():
    def forward(self, x):
        return sum(part.sum() for part in x.split(2)), [p + 1 for p in torch.chunk(x, 3)]

    gm = check(of(forward), (torch.randn(6),), (torch.randn(5),))
    assert [g.expression for g in gm.guards] == ["len(split)", "len(chunk)"]
    with pytest.raises(CaptureError, match=r"len\(split\) was 3 at"):
        gm(torch.randn(8))


def test_dimensions_that_are_removed_are_a_guard():
    gm = check(of(lambda self, x: x.squeeze() + 1), (torch.randn(1, 3),), (torch.randn(1, 5),))
    assert [g.value for g in gm.guards] == [True, False]
    with pytest.raises(CaptureError, match=r"x.shape\[0\] == 1 was True"):
        gm(torch.randn(2, 3))


def test_strides_stay_symbolic():
    def forward(self, x):
        y = x.t()
        z = y[1:]
        return torch.as_strided(y, z.shape, y.stride(), z.storage_offset())

    gm = check(of(forward), (torch.randn(3, 4),), (torch.randn(5, 6),))
    assert gm.guards == ()


def test_truths_of_sizes_are_guards():
    gm = check(of(lambda self, x: x + 1 if x.shape[1] else x),
               (torch.randn(3, 4),), (torch.randn(3, 7),))
    assert [(g.expression, g.value) for g in gm.guards] == [("x.shape[1] != 0", True)]


def test_batch_one_is_not_special():
    def forward(self, x, y):
        return x + y, torch.cat([x, y]), x.expand(x.shape[0], 4)

    one, three = torch.randn(1, 4), torch.randn(3, 4)
    check(of(forward), (one, one), (three, three))


def test_sizes_below_the_api():
    def forward(self, x):
        return torch.vmap(lambda row: row.view(-1).sum() + row.shape[0])(x)

    gm = capture(of(forward), torch.randn(3, 4))
    equal(gm(torch.ones(5, 4)), torch.full((5,), 8.0))


# ---- data --------------------------------------------------------------------------------------


def test_both_branches_are_captured():
    def forward(self, x):
        y = self.fc(x)
        if y.sum() > 0:
            y = y + 1
        while y.sum() < 4:
            y = y + 1
        return y

    gm = check(of(forward), *((torch.full((2, 4), v),) for v in (1.0, -1.0, 9.0)))
    assert gm.guards == () and "if " in gm.code and "while " in gm.code


def decides(x):
    """A function that asks for data, in the middle of a model that cannot be captured from its
    source."""
    if x.sum() > 0:
        return x + 1, 2
    return x - 1, 3


class Library(nn.Module):
    """Uses what the evaluator of scripts refuses, around functions that ask for data."""

    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        steps = (decides(x * k)[0] for k in (1, 2))  # a generator
        y = functools.reduce(torch.add, steps)
        return self.inner(y), decides(y)[1]


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        if x.max() > 1:
            self.seen += 1
            return self.fc(x)
        return x


def test_functions_that_ask_are_captured_from_their_source():
    model = Library()
    twin = copy.deepcopy(model)
    gm = capture(model, torch.ones(2, 3))
    assert model.inner.seen == 0
    for value in (1.0, -1.0, 0.2, -7.0):
        x = torch.full((2, 3), value)
        want = twin(x)
        if want[1] == 2:
            equal(gm(x), want)
        else:  # a number that comes out of a branch is one of the graph
            equal(gm(x)[0], want[0])
    equal(dict(gm.state_dict()), dict(twin.state_dict()))


def test_what_cannot_be_captured_from_its_source_is_checked():
    def forward(self, x):
        layers = [self.fc, torch.relu]
        chosen = layers[0] if x.sum() > 0 else layers[1]  # a function chosen by data
        return chosen(x)

    gm = check(of(forward), (torch.ones(2, 4),))
    assert [guard.kind for guard in gm.guards] == ["data"]
    with pytest.raises(CaptureError, match="was True at test_capture.py"):
        gm(-torch.ones(2, 4))


def test_hooks_are_removed():
    code = decides.__code__
    capture(Library(), torch.ones(2, 3))
    assert decides.__code__ is code and decides.__kwdefaults__ is None
    assert not hasattr(decides, "__signature__")


def test_items_are_numbers_of_the_graph():
    def forward(self, x):
        n = x.sum().item()
        return x * n, torch.full((2,), n)

    gm = check(of(forward), (torch.tensor([1.0, 2.0]),), (torch.tensor([5.0, 7.0]),))
    assert gm.guards == ()


@pytest.mark.parametrize("ask", [
    "x.tolist()", "int(x[0])", "float(x[0])", "f'{x}'", "torch.equal(x, x + 1)", "1.0 in x",
    "[1, 2, 3][x.long()[0]]", "bool(x[0] > 1)", "repr(x)",
])  # fmt: skip
def test_data_that_python_sees_is_checked(ask):
    gm = check(without_source("x: (x + 1, " + ask + ")"), (torch.tensor([1.0, 2.0]),))
    assert {guard.kind for guard in gm.guards} == {"data"}
    if "equal" not in gm.code:  # which never holds
        with pytest.raises(CaptureError, match="when this graph was captured"):
            gm(torch.tensor([2.0, 3.0]))


def test_numpy_is_refused():
    with pytest.raises(CaptureError, match="test_capture.py.*compute with torch"):
        capture(of(lambda self, x: x.numpy().sum()), torch.ones(2))


# ---- structures --------------------------------------------------------------------------------


def test_arguments_and_results_keep_their_structure():
    class Model(nn.Module):
        def forward(self, x, pair, *, table, flag=True, scale=2.0):
            a, (b, c) = pair
            inner = table["k"] if flag else x
            return {"sum": x + a, "rest": [b * scale, (c, None, "name")], "in": inner}

    args = (torch.randn(2), (torch.randn(2), [torch.randn(3), torch.randn(1)]))
    table = {"k": torch.randn(4)}
    gm = capture(Model(), *args, table=table)
    equal(gm(*args, table=table), Model()(*args, table=table))
    assert "def forward(self, x, pair, *, table, flag=True, scale=2.0):" in gm.code
    for wrong in ({"flag": False}, {"scale": 3.0}):  # defaults are fixed
        with pytest.raises(CaptureError, match="was captured with"):
            gm(*args, table=table, **wrong)
    with pytest.raises(CaptureError, match="nested in another way"):
        gm(args[0], args[1][0], table=table)
    with pytest.raises(CaptureError, match="x has dtype torch.float64"):
        gm(args[0].double(), args[1], table=table)


def test_inputs_that_share_memory():
    def forward(self, x, y):
        x.add_(1)
        return y * 2

    base = torch.zeros(4)
    gm = capture(of(forward), base, base[1:3])
    assert base.sum() == 0  # the example is not touched
    equal(gm(base, base[1:3]), torch.full((2,), 2.0))
    assert base.sum() == 4


def test_results_that_are_inputs_or_parameters():
    model = of(lambda self, x: (x, self.fc.weight, x.add_(1)))
    x = torch.zeros(2)
    gm = capture(model, x)
    first, weight, again = gm(x)
    assert first is x and weight is model.fc.weight and again is x


@dataclasses.dataclass
class Box:
    x: torch.Tensor
    scale: float = 1.0


class Cache:
    """An object that the program changes, as caches of keys and values are."""

    def __init__(self):
        self.kept, self.steps, self.name = [], 0, "cache"

    def update(self, x):
        self.kept.append(x)
        self.steps += 1
        return torch.cat(self.kept)


def test_objects_are_arguments_and_results():
    def forward(self, box):
        return Box(box.x * box.scale, box.scale + 1), box

    model = of(forward)
    gm = capture(model, Box(torch.ones(2), 3.0))
    given = Box(torch.ones(5), 4.0)
    made, same = gm(given)
    assert same is given and type(made) is Box and made.scale == 5.0
    equal(made.x, torch.full((5,), 4.0))


def test_objects_that_the_program_changes():
    model = of(lambda self, x, cache: (cache.update(x) * cache.steps, cache))
    example = Cache()
    example.update(torch.ones(1))
    gm = capture(model, torch.ones(2), example)
    assert example.steps == 1 and len(example.kept) == 1
    mine, yours = Cache(), Cache()
    for cache in (mine, yours):
        cache.update(torch.zeros(3))
    got, same = gm(torch.ones(4), mine)
    equal(got, model(torch.ones(4), yours)[0])
    assert same is mine and mine.steps == yours.steps == 2 and len(mine.kept) == 2
    with pytest.raises(CaptureError, match="nested in another way"):
        gm(torch.ones(4), mine)  # it holds more now


def test_numbers_are_inputs():
    def forward(self, x, n, scale, *, flag):
        return x[:n] * scale, n + 1, scale / 2, isinstance(n, int), flag

    model = of(forward)
    gm = capture(model, torch.arange(9), 2, 0.5, flag=True)
    for n, scale in ((3, 2.0), (7, -1.0), (0, 0.0)):
        equal(gm(torch.arange(9), n, scale, flag=True), model(torch.arange(9), n, scale, flag=True))
    for wrong in ({"flag": False}, {"flag": 1}):
        with pytest.raises(CaptureError, match="flag is"):
            gm(torch.arange(9), 2, 0.5, **wrong)
    with pytest.raises(CaptureError, match="number of type int"):
        gm(torch.arange(9), 2.0, 0.5, flag=True)


@pytest.mark.parametrize("use", [
    lambda n: hash(n), lambda n: {n: 1}[n], lambda n: "%d" % n, lambda n: f"{n:3}", range,
    lambda n: [0] * n, lambda n: n.bit_length(), lambda n: "abcdef"[n], lambda n: 1 << n,
    lambda n: divmod(n, 2), lambda n: round(n / 3, 1), lambda n: n.real + n.imag, lambda n: +n,
    lambda n: max(n, 2), lambda n: sum([n, n]), lambda n: sorted([n, 1]), lambda n: ~n & 6,
    lambda n: 2 ** (n - 5), lambda n: n in (1, 2, 3), lambda n: (n > 2) + 1, lambda n: complex(n),
    lambda n: float(n) if n else 0, lambda n: math.sqrt(n), lambda n: math.ceil(n / 2),
    lambda n: isinstance(n, (int, float)), lambda n: copy.deepcopy([n]), lambda n: str(n),
])  # fmt: skip
def test_numbers_do_what_ints_do(use):
    """They give what an int gives, and hold for other values or refuse them."""
    model = without_source("x, n: (x + 1, use(n))", use=use)
    gm = capture(model, torch.ones(1), 3)
    for n in (3, 4, 0, 5):
        try:
            got = gm(torch.ones(1), n)
        except CaptureError:
            assert n != 3
        else:
            want = model(torch.ones(1), n)
            assert want[1] == got[1] and type(want[1]) is type(got[1])


def test_which_sizes_may_change():
    def forward(self, x, n=1):
        return x[: x.shape[0] // 2] * x.new_ones(x.shape[1] if x.shape[1] == 3 else 1)

    model, x = of(forward), torch.randn(4, 3)
    assert len(capture(model, x).guards) == 1
    with pytest.raises(CaptureError, match=r"test_capture.py:.*x.shape\[1\] may change"):
        capture(model, x, dynamic={"x": {1: True}})
    gm = capture(model, x, dynamic={"x": {1: False}})
    assert gm.guards == ()
    assert gm(torch.randn(8, 3)).shape == (4, 3)
    with pytest.raises(CaptureError, match=r"x.shape\[1\] is 5, but it is fixed to 3"):
        gm(torch.randn(8, 5))
    with pytest.raises(CaptureError, match=r"x.shape\[0\] is 8, but it is fixed to 4"):
        capture(model, x, dynamic=False)(torch.randn(8, 3))


# ---- state -------------------------------------------------------------------------------------


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        self.calls = self.calls + 1
        return self.bn(x) * self.calls


def test_buffers_move_on_as_the_models_do():
    model = Counter()
    twin = copy.deepcopy(model)
    x = torch.randn(4, 3)
    gm = capture(model, x)
    equal(dict(model.state_dict()), dict(twin.state_dict()))  # the capture left no trace
    for _ in range(3):
        equal(gm(x), twin(x))
    equal(dict(gm.state_dict()), dict(twin.state_dict()))


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.seen, self.last = 0, [], None
        self.register_buffer("cache", torch.zeros(0, 2))
        self.child = nn.Module()
        self.child.total = 0.5

    def forward(self, x):
        self.calls += 1
        self.child.total = self.child.total * 2
        self.last = x  # never read
        self.cache = torch.cat([self.cache, x])  # another shape
        return self.cache.sum(0) * self.calls + self.child.total


def test_attributes_move_on_as_the_models_do():
    model = Stateful()
    twin = copy.deepcopy(model)
    gm = capture(model, torch.randn(1, 2))
    assert model.calls == 0 and model.cache.shape == (0, 2) and model.last is None
    for i in range(4):
        x = torch.randn(i + 1, 2)
        equal(gm(x), twin(x))
        assert gm.calls == twin.calls and gm.child.total == twin.child.total
        equal(gm.cache, twin.cache)
        assert gm.last is x
    assert model.calls == 0


def test_what_is_read_of_attributes_is_checked():
    class Model(nn.Module):
        first = None

        def forward(self, x):
            if self.first is None:
                self.first = x
                return x
            return x + self.first

    model = Model()
    twin = copy.deepcopy(model)
    x = torch.ones(2)
    gm = capture(model, x)
    copied = copy.deepcopy(gm)
    copied(x)
    with pytest.raises(CaptureError, match="first is tensor.*it is a copy"):
        copied(x)
    for value in (1.0, 2.0, 3.0):
        equal(gm(torch.full((2,), value)), twin(torch.full((2,), value)))
    assert len(gm.graphs) == 2


def test_containers_of_the_model_are_put_back():
    model = of(lambda self, x: self.seen.append(x) or self.table.update(x=x) or x + len(self.seen))
    model.seen, model.table = [1], {}
    gm = capture(model, torch.ones(1))
    assert model.seen == [1] and model.table == {}
    equal(gm(torch.ones(1)), torch.full((1,), 3.0))
    assert len(gm.seen) == 2 and model.seen == [1]


def test_a_model_that_raises_is_left_as_it_was():
    class Model(Counter):
        def forward(self, x):
            super().forward(x)
            self.extra = x
            raise KeyError("no")

    model = Model()
    state, mode = copy.deepcopy(model.state_dict()), torch.is_grad_enabled()
    with pytest.raises(KeyError):
        capture(model, torch.randn(4, 3))
    equal(dict(model.state_dict()), dict(state))
    assert not hasattr(model, "extra") and torch.is_grad_enabled() == mode
    torch.ones(2) + 1  # no net is left


def test_random_states_are_put_back():
    model = of(lambda self, x: F.dropout(x, 0.5, True))
    torch.manual_seed(0)
    random.seed(0)
    expected = torch.rand(2), random.random()
    torch.manual_seed(0)
    random.seed(0)
    capture(model, torch.ones(3))
    equal((torch.rand(2), random.random()), expected)


@pytest.mark.parametrize("draw", [random.random, lambda: float(numpy.random.rand())])
def test_other_random_numbers_are_refused(draw):
    before = random.getstate()
    with pytest.raises(CaptureError, match="draws numbers from"):
        capture(without_source("x: x * draw()", draw=draw), torch.ones(3))
    assert random.getstate() == before


def seeded(x):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        y = torch.rand(3)
    return x + torch.rand(3) + y


def test_seeds_are_in_the_graph():
    gm = capture(seeded, torch.zeros(3))
    for seed in (1, 2):
        torch.manual_seed(seed)
        want = seeded(torch.zeros(3)), torch.rand(1)
        torch.manual_seed(seed)
        equal((gm(torch.zeros(3)), torch.rand(1)), want)


def appends(x, seen=[]):
    seen.append(1)
    return x * len(seen)


def counts(x):
    global _count
    _count += 1
    return x * _count


def keeps(x):
    _kept.append(x * 2)
    return x


class Counts:
    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return x * self.calls


_count, _kept = 0, []


@pytest.mark.parametrize("program", [appends, lambda x: appends(x), counts, keeps, Counts()])
def test_changes_outside_are_refused(program):
    with pytest.raises(CaptureError, match="the program changes .*(default|global|attribute)"):
        capture(program, torch.ones(2))
    assert appends.__defaults__ == ([],) and _count == 0 and _kept == []
    assert not isinstance(program, Counts) or program.calls == 0


@cfx.wrap
def wrapped(x, n):
    return x * n if x.sum() > 0 else x


def test_wrapped_functions_stay_calls():
    gm = check(of(lambda self, x: wrapped(self.fc(x), x.shape[0])), (torch.ones(2, 4),),
               (-torch.ones(3, 4),))
    assert [n.target for n in gm.graph.nodes if n.op == "call_function"] == [wrapped]


class Output(dict):
    """As ModelOutput is: a dict with attributes."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.kind = "output"


def test_derived_containers_are_results():
    gm = capture(of(lambda self, x, o: (Output(y=o["x"] * 2), o)), torch.ones(2),
                 Output(x=torch.ones(2)))
    given = Output(x=torch.zeros(3))
    made, same = gm(torch.ones(2), given)
    assert type(made) is Output and made.kind == "output" and same is given
    equal(made["y"], torch.zeros(3))


class Empty:
    def __init__(self):
        self.kept = []


def test_empty_caches():
    def forward(self, x, cache):
        cache.kept.append(x)
        return torch.cat(cache.kept)

    example = Empty()
    gm = capture(of(forward), torch.ones(2), example)
    assert example.kept == []
    mine = Empty()
    equal(gm(torch.zeros(3), mine), torch.zeros(3))
    assert len(mine.kept) == 1 and example.kept == []


@pytest.mark.parametrize("result", [
    lambda x: [lambda: x * 2], lambda x: (y for y in (x,)), lambda x: {x}, lambda x: iter([x]),
])  # fmt: skip
def test_results_that_a_graph_cannot_make_are_refused(result):
    with pytest.raises(CaptureError, match="the program returns a"):
        capture(of(lambda self, x: result(x)), torch.ones(2))


def test_tensors_of_a_run_are_of_no_use_afterwards():
    class Leaks(nn.Module):
        def forward(self, x):
            sys.modules["math"].leaked = x * 2  # where nobody looks
            return x

    box = types.SimpleNamespace()
    capture(Leaks(), torch.ones(2))
    box.value = vars(math).pop("leaked")
    for use in (lambda x: x + 1, lambda x: x.shape, lambda x: x.sum().item(), list, torch.relu):
        with pytest.raises(CaptureError, match="after the capture that made it"):
            use(box.value)
    assert "of a graph that is being captured" in repr(box.value)


def test_parameters_written_during_the_run_are_put_back():
    def forward(self, x):
        with torch.no_grad():
            self.fc.weight.add_(1)
            self.fc.bias[0] = 5
        return self.fc(x)

    model = of(forward)
    before = copy.deepcopy(model.state_dict())
    gm = capture(model, torch.ones(4))
    equal(dict(model.state_dict()), dict(before))
    twin = copy.deepcopy(model)
    equal(gm(torch.ones(4)), twin(torch.ones(4)))


# ---- modes -------------------------------------------------------------------------------------


def test_modes_are_in_the_graph():
    def forward(self, x):
        with torch.no_grad():
            y = self.fc(x)
        return y, self.fc(x)

    gm = check(of(forward), (torch.ones(4),))
    assert "with torch.no_grad():" in gm.code
    frozen, learns = gm(torch.ones(4))
    assert not frozen.requires_grad and learns.requires_grad


def test_autocast_is_in_the_graph():
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
            with torch.autocast("cpu", enabled=False):
                z = x @ x
            y = y + x @ x
        return y, z, x @ x

    gm = check(of(forward), (torch.randn(3, 3),), (torch.randn(5, 5),))
    assert gm.code.count("with torch.autocast(") == 2


class Modal(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        x = x * 2 if self.training else x
        return self.bn(F.dropout(x, 0.5, self.training))


@pytest.mark.parametrize("modes", ["current", "both"])
@pytest.mark.parametrize("training", [True, False])
def test_the_other_mode(modes, training):
    model = Modal().train(training)
    twin = copy.deepcopy(model)
    gm = capture(model, torch.randn(4, 3), modes=modes)
    assert len(gm.graphs) == (2 if modes == "both" else 1) and gm.training == training
    for mode in (training, not training, False, True, True, False):
        gm.train(mode), twin.train(mode)
        x = torch.randn(5, 3)
        torch.manual_seed(0)
        want = twin(x)
        torch.manual_seed(0)
        equal(gm(x), want)
    equal(dict(gm.state_dict()), dict(twin.state_dict()))
    assert len(gm.graphs) == 2 and model.training == training


def test_copies_have_the_graphs_that_there_are():
    gm = capture(Modal().eval(), torch.randn(4, 3))
    for twin in (copy.deepcopy(gm), pickle.loads(pickle.dumps(gm))):
        equal(twin(torch.ones(2, 3)), gm(torch.ones(2, 3)))
        with pytest.raises(CaptureError, match="in evaluation mode, .*cannot capture it again"):
            twin.train()(torch.ones(2, 3))
    gm.train()(torch.randn(4, 3))
    twin = copy.deepcopy(gm)
    twin.train()(torch.ones(2, 3))
    assert twin.bn.num_batches_tracked == 2 and gm.bn.num_batches_tracked == 1


def test_recapture():
    def forward(self, x, kind="sum"):
        if x.dim() == 1:
            x = x[None]
        return getattr(x, kind)() * (2 if x.shape[0] > 3 else 1)

    model = of(forward)
    gm = capture(model, torch.ones(3), recapture=True)
    calls = (torch.ones(5),), (torch.ones(2, 3), "mean"), (torch.ones(4, 3),), (torch.ones(3),)
    for _ in range(2):
        for args in calls:
            equal(gm(*args), model(*args))
    assert len(gm.graphs) == 3


def test_recapture_behind_an_effect():
    class Model(Counter):
        def forward(self, x):
            self.calls += 1
            y = super().forward(F.dropout(x, 0.1))
            chosen = (torch.relu, torch.neg)[int(x.sum() > 0)]  # not captured from its source
            return chosen(y)

    model = Model()
    twin = copy.deepcopy(model)
    gm = capture(model, torch.ones(4, 3), recapture=True)
    for value in (1.0, -1.0, 2.0, -2.0):
        x = torch.full((4, 3), value) + torch.randn(4, 3) * 0.1
        torch.manual_seed(1)
        want = twin(x)
        torch.manual_seed(1)
        equal(gm(x), want)
    equal(dict(gm.state_dict()), dict(twin.state_dict()))
    assert len(gm.graphs) == 2


def test_functions():
    @cfx.function
    def double(x, n=2):
        """Doubles."""
        return x * n if x.dim() > 1 else x[None] * n

    assert double.captured is None and double.__doc__ == "Doubles."
    for args in ((torch.ones(3),), (torch.ones(2, 3),), (torch.ones(3), 5), (torch.ones(3), 6)):
        equal(double(*args), double.__wrapped__(*args))
    assert len(double.captured.graphs) == 3


class WithMethod(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.calls = nn.Linear(3, 3), 0

    @cfx.function
    def forward(self, x):
        self.calls += 1
        return F.dropout(self.fc(x), 0.5, self.training) * self.calls


def test_a_forward_that_is_a_function():
    one, two = WithMethod(), WithMethod()
    for calls in (1, 2, 3):
        one.eval()(torch.ones(2, 3))
        assert one.calls == calls and two.calls == 0
    equal(one(torch.ones(1, 3)), one.fc(torch.ones(1, 3)) * 4)
    one.train()(torch.ones(5, 3)).sum().backward()
    assert one.fc.weight.grad is not None and one.calls == 5
    assert len(one.forward.captured.graphs) == 1 and two.forward.captured is None  # merged


def test_training_goes_through_the_graph():
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    twin = copy.deepcopy(model)
    gm = capture(model, torch.randn(6, 4))
    steps = [torch.optim.SGD(m.parameters(), 0.1) for m in (gm, twin)]
    for i in range(5):
        x = torch.randn(3 + i, 4)
        for m, step in zip((gm, twin), steps):
            step.zero_grad()
            m(x).square().mean().backward()
            step.step()
    equal(dict(gm.state_dict()), dict(twin.state_dict()))


# ---- what the graph is -------------------------------------------------------------------------


def test_the_graph_is_one_of_torch_calls():
    def forward(self, x):
        y = 1 - self.fc(x)[:, 0]
        return F.gelu(y @ y, approximate="tanh") ** 2 > 0

    gm = check(of(forward), (torch.randn(3, 4),))
    assert [n.target for n in gm.graph.nodes if n.op == "call_module"] == ["fc"]
    gm.graph.lint()
    assert "gelu" in gm.code and "1 - " in gm.code


def test_other_doors():
    model = of(lambda self, x: self.fc(x).relu() + x.shape[0])
    gm = capture(model, torch.randn(2, 4))
    x = torch.randn(5, 4)
    for twin in (copy.deepcopy(gm), pickle.loads(pickle.dumps(gm))):
        equal(twin(x), model(x))
    equal(cfx.Interpreter(gm).run(x), model(x))


def test_constants_from_outside():
    outside = torch.arange(4.0)
    model = of(lambda self, x: x + outside)
    gm = check(model, (torch.ones(4),), (torch.zeros(4),))
    assert not [name for name in vars(model) if "constant" in name]
    assert gm.guards == ()


# ---- what the program is called in -------------------------------------------------------------


def test_calls_that_change_nothing_here_stay():
    gm = check(of(lambda self, x: x.contiguous().view(-1).float() + 1), (torch.ones(2, 3),),
               (torch.ones(3, 2).t(),), like=(torch.ones(2, 3),))
    assert "contiguous" in gm.code and "float" in gm.code


def test_the_callers_modes():
    def forward(self, x):
        y = self.fc(x)
        return y * 2 if torch.is_grad_enabled() else y.to(y.dtype)

    model = of(forward)
    gm = capture(model, torch.ones(2, 4))
    for context in (contextlib.nullcontext(), torch.no_grad(), torch.autocast("cpu"),
                    torch.inference_mode()):  # fmt: skip
        with context:
            want, got = model(torch.ones(3, 4)), gm(torch.ones(3, 4))
        equal(got, want)
        assert got.requires_grad == want.requires_grad
    assert torch.is_grad_enabled.__name__ == "is_grad_enabled" and len(gm.graphs) >= 3
    gm = copy.deepcopy(capture(model, torch.ones(2, 4)))
    with torch.no_grad(), pytest.raises(CaptureError, match=r"torch.is_grad_enabled\(\) was True"):
        gm(torch.ones(2, 4))


def test_the_default_dtype():
    def forward(self, x):
        torch.set_default_dtype(torch.float64)
        y = torch.ones(2)
        torch.set_default_dtype(torch.float32)
        return y, torch.ones(2) + x

    check(of(forward), (torch.ones(2),))
    capture(without_source("x: (torch.set_default_dtype(torch.float64), x)[1]"), torch.ones(2))
    assert torch.get_default_dtype() == torch.float32


def test_the_same_tensor_twice():
    model = of(lambda self, a, b: a * 3 if a is b else a + b)
    x, y = torch.ones(2), torch.ones(2)
    gm = capture(model, x, x)
    equal(gm(y, y), torch.full((2,), 3.0))
    with pytest.raises(CaptureError, match="b and a are two tensors"):
        gm(x, y)


def test_queues_are_written_back():
    queue = collections.deque([torch.ones(1)], maxlen=2)
    gm = capture(of(lambda self, q: q.append(q[0] + 1)), queue)
    assert len(queue) == 1
    gm(queue)
    assert len(queue) == 2 and queue[1] == 2 and queue.maxlen == 2


class FunctionalNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("var", torch.ones(3))

    def forward(self, x):
        return F.batch_norm(x, self.mean, self.var, training=True)


class SwitchesLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        self.norm.train()
        y = self.norm(x)
        self.norm.eval()
        return y + self.norm(x)


@pytest.mark.parametrize("make", [FunctionalNorm, SwitchesLayer])
def test_statistics(make):
    model = make().eval()
    twin, before = copy.deepcopy(model), copy.deepcopy(model.state_dict())
    gm = capture(model, torch.randn(4, 3))
    equal(dict(model.state_dict()), dict(before))
    for _ in range(3):
        x = torch.randn(5, 3)
        equal(gm(x), twin(x))
    equal(dict(gm.state_dict()), dict(twin.state_dict()))


_OUTSIDE = torch.zeros(2)


def test_tensors_outside_are_put_back():
    gm = capture(of(lambda self, x: _OUTSIDE.add_(x) * 1), torch.ones(2))
    assert _OUTSIDE.sum() == 0
    gm(torch.ones(2))
    equal(gm(torch.ones(2)), torch.full((2,), 2.0))
    _OUTSIDE.zero_()


def test_a_cache_keyed_by_shapes():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = {}

        def forward(self, x):
            key = tuple(x.shape)
            if key not in self.cache:
                self.cache[key] = torch.arange(float(x.shape[0]))
            return x * self.cache[key]

    model = Model()
    twin = copy.deepcopy(model)
    gm = capture(model, torch.ones(2), recapture=True)
    for n in (2, 2, 3, 2, 3):
        equal(gm(torch.ones(n)), twin(torch.ones(n)))
    assert gm.cache.keys() == twin.cache.keys() and model.cache == {}


def test_hooks_of_torch():
    model = nn.Sequential(torch.nn.utils.spectral_norm(nn.Linear(3, 3)))
    twin = copy.deepcopy(model)
    gm = capture(model, torch.ones(2, 3))
    for _ in range(3):
        equal(gm(torch.ones(2, 3)), twin(torch.ones(2, 3)))
    equal(dict(sorted(gm.state_dict().items())), dict(sorted(twin.state_dict().items())))


def test_generators():
    model = of(lambda self, x: x + torch.rand(2, generator=self.chance))
    model.chance = torch.Generator().manual_seed(3)
    want = model(torch.zeros(2))
    model.chance.manual_seed(3)
    gm = capture(model, torch.zeros(2))
    model.chance.manual_seed(3)
    equal(gm(torch.zeros(2)), want)
    with pytest.raises(CaptureError, match="test_capture.py.*uses a torch.Generator"):
        capture(of(lambda self, x: x + torch.rand(2, generator=torch.Generator())), torch.ones(2))


# ---- numbers and sizes in C --------------------------------------------------------------------


class ReshapesInPlace(nn.Module):
    def forward(self, x):
        y = x * 1
        rows = y.shape[0]
        y.unsqueeze_(0)
        y.transpose_(0, 2)
        return y * y.shape[0] + rows * y.shape[1] - y.shape[2]


def test_sizes_after_a_tensor_was_reshaped_in_place():
    check(ReshapesInPlace(), (torch.randn(3, 4),), (torch.randn(5, 2),), (torch.randn(1, 1),))


def test_every_operator_of_numbers():
    def arithmetic(x):
        n, m = x.shape
        numbers = (
            n + m, n - m, n * m, n // 2, n % 3, n / m, n ** 2, n << 1, n >> 1, n & m, n | m, n ^ m,
            -n, +n, ~n, abs(-n), divmod(n, 2), divmod(7, m), 10 - n, 10 // m, 10 % n, 2 ** m,
            1.5 * n, n * 0.5, round(n / 3, 1), math.floor(n / 2), math.ceil(n / 2),
            math.trunc(n / 2), min(n, m), max(n, m), n + 0, n * 1, 1 * n, n - n, 3 + n,
        )  # fmt: skip
        return x * n, numbers

    check(arithmetic, (torch.randn(4, 3),), (torch.randn(7, 5),), (torch.randn(9, 2),))


def test_numbers_do_not_mix_with_what_is_no_number():
    def wrong(x):
        return x.shape[0] + "a"

    with pytest.raises(TypeError, match="unsupported operand"):
        capture(wrong, torch.ones(2))
    check(lambda x: (x, [0] * x.shape[0], (1, 2) * x.shape[1]), (torch.randn(2, 3),))
    check(lambda x: (x, x.shape[0] == "a", x.shape[0] != None), (torch.randn(2, 3),))  # noqa: E711


def test_a_version_of_torch_that_was_not_tried_is_named(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "9.1.0")
    with pytest.warns(UserWarning, match="not with 9.1.0"):
        capture(lambda x: x + 1, torch.ones(2))


def test_modules_in_modules_take_linear_time():
    """The flags of modules are found by walking the tree, not by comparing all paths."""
    counts = []
    for size in (20, 40):
        model = nn.Sequential(*(nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(size)))
        calls = 0

        def count(frame, event, arg):
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            capture(model, torch.ones(1, 2))
        finally:
            sys.setprofile(None)
        counts.append(calls)
    assert counts[1] < 2.3 * counts[0]


# ---- tensors that have no values, or that a graph cannot describe ------------------------------


def test_a_capture_without_values():
    model = nn.Sequential(nn.Linear(4, 4, device="meta"), nn.ReLU())
    gm = capture(model, torch.ones(2, 4, device="meta"))
    assert gm(torch.ones(5, 4, device="meta")).shape == (5, 4)
    assert not gm.guards


@pytest.mark.parametrize("asks", [
    lambda x: x.sum().item(), lambda x: x if x.sum() > 0 else -x, lambda x: x.nonzero(),
    lambda x: x.tolist(), lambda x: int(x.sum()), lambda x: x[x > 0],
])  # fmt: skip
def test_a_value_that_is_not_there(asks):
    with pytest.raises(CaptureError, match=r"test_capture.py:\d+: the program needs (a|the) value"):
        capture(asks, torch.ones(2, device="meta"))


@pytest.mark.parametrize("layout", (torch.strided, torch.jagged))
def test_a_nested_tensor(layout):
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)
    with pytest.raises(CaptureError, match="x is a nested tensor.*padded tensor and the lengths"):
        capture(lambda x: x * 2, nested)


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"))
def test_small_floats(dtype):
    dtype = getattr(torch, dtype)

    def model(x):
        return (x.float() * 2).to(dtype), x.dtype is dtype

    gm = capture(model, torch.ones(2, 3).to(dtype))
    x = torch.randn(4, 3).to(dtype)
    got, want = gm(x), model(x)
    assert got[1] is want[1] is True
    assert torch.equal(got[0].float(), want[0].float())
    with pytest.raises(CaptureError, match="x has dtype torch.float32, but had"):
        gm(torch.ones(2, 3))
