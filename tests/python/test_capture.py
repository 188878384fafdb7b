"""cfx.capture: a model runs once on example inputs and is written down while it runs."""
import copy
import dataclasses
import pickle
import random

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
    with pytest.raises(AssertionError, match=r"x.shape\[0\] > 1 was True at test_capture.py"):
        gm(torch.randn(1))


def test_a_loop_over_a_size_is_a_guard():
    def forward(self, x):
        total = 0
        for i in range(x.shape[0]):
            total = total + x[i] * i
        return total, len(x), [0] * x.shape[0]

    gm = check(of(forward), (torch.randn(3, 2),))
    assert [g.value for g in gm.guards] == [3]  # asked three times
    with pytest.raises(AssertionError, match="was 3 at"):
        gm(torch.randn(4, 2))


def test_the_number_of_parts_is_a_guard():
    def forward(self, x):
        return sum(part.sum() for part in x.split(2)), [p + 1 for p in torch.chunk(x, 3)]

    gm = check(of(forward), (torch.randn(6),), (torch.randn(5),))
    assert [g.expression for g in gm.guards] == ["len(split)", "len(chunk)"]
    with pytest.raises(ValueError, match="too many values"):
        gm(torch.randn(8))


def test_dimensions_that_are_removed_are_a_guard():
    gm = check(of(lambda self, x: x.squeeze() + 1), (torch.randn(1, 3),), (torch.randn(1, 5),))
    assert [g.value for g in gm.guards] == [True, False]
    with pytest.raises(AssertionError, match=r"x.shape\[0\] == 1 was True"):
        gm(torch.randn(2, 3))


def test_strides_stay_symbolic():
    def forward(self, x):
        y = x.t()
        z = y[1:]
        return torch.as_strided(y, z.shape, y.stride(), z.storage_offset())

    gm = check(of(forward), (torch.randn(3, 4),), (torch.randn(5, 6),))
    assert gm.guards == ()


def test_texts_and_truths_of_sizes_are_guards():
    gm = check(of(lambda self, x: (f"{x.shape[0]}", x + 1 if x.shape[1] else x)),
               (torch.randn(3, 4),), (torch.randn(3, 7),))
    assert [(g.expression, g.value) for g in gm.guards] == [
        ("x.shape[0]", 3), ("x.shape[1] != 0", True)]


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


def test_the_truth_of_data_is_checked():
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1

    gm = check(of(forward), (torch.ones(2),))
    assert [guard.kind for guard in gm.guards] == ["data"]
    with pytest.raises(AssertionError, match="was True at test_capture.py"):
        gm(-torch.ones(2))


def test_items_are_numbers_of_the_graph():
    def forward(self, x):
        n = x.sum().item()
        return x * n, torch.full((2,), n)

    gm = check(of(forward), (torch.tensor([1.0, 2.0]),), (torch.tensor([5.0, 7.0]),))
    assert gm.guards == ()


@pytest.mark.parametrize("ask", [
    lambda x: x.tolist(), lambda x: int(x[0]), lambda x: float(x[0]),
    lambda x: torch.equal(x, x + 1),
])  # fmt: skip
def test_data_that_python_sees_is_checked(ask):
    gm = capture(of(lambda self, x: (x + 1, ask(x))), torch.tensor([1.0, 2.0]))
    assert [guard.kind for guard in gm.guards] == ["data"]
    gm(torch.tensor([1.0, 2.0]))


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
    for wrong in ({"flag": False}, {"scale": 3.0}):
        with pytest.raises(CaptureError, match="was captured with"):
            gm(*args, table=table, **wrong)
    with pytest.raises(CaptureError, match="nested in another way"):
        gm(args[0], args[1][0], table=table)
    with pytest.raises(CaptureError, match="x is torch.float64 with 1 dimensions"):
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
class Unknown:
    x: torch.Tensor


def test_an_unknown_argument_is_refused():
    with pytest.raises(CaptureError, match="the argument u is a Unknown.*register_pytree_node"):
        capture(of(lambda self, u: u.x), Unknown(torch.ones(1)))


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


def test_attributes_that_a_graph_cannot_assign_are_refused():
    class Model(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return x

    model = Model()
    with pytest.raises(CaptureError, match="assigns calls"):
        capture(model, torch.ones(1))
    assert "calls" not in vars(model)


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
    def forward(self, x):
        random.random()
        return F.dropout(x, 0.5, True)

    model = of(forward)
    torch.manual_seed(0)
    random.seed(0)
    expected = torch.rand(2), random.random()
    torch.manual_seed(0)
    random.seed(0)
    capture(model, torch.ones(3))
    equal((torch.rand(2), random.random()), expected)


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


def test_the_other_mode_is_refused():
    model = of(lambda self, x: F.dropout(x, 0.5, self.training))
    gm = capture(model.eval(), torch.ones(3))
    equal(gm(torch.ones(3)), torch.ones(3))
    with pytest.raises(CaptureError, match="captured in evaluation mode"):
        gm.train()(torch.ones(3))


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
