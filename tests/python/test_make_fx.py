"""make_fx: the graph that torch's dispatcher records, as cfx's GraphModule."""
import inspect

import pytest

torch = pytest.importorskip("torch")
import torch.fx  # noqa: E402
from torch.fx.experimental import proxy_tensor as theirs  # noqa: E402

import cfx  # noqa: E402
from cfx._lazy_graph_module import _LazyGraphModule, _use_lazy_graph_module  # noqa: E402
from cfx.experimental import proxy_tensor as ours  # noqa: E402


def f(x, y):
    return torch.cat([x.relu() + y, y], 0), x.sin_()


def inputs():
    torch.manual_seed(0)
    return torch.randn(2, 3), torch.randn(2, 3)


def test_signature():
    mine, other = inspect.signature(ours.make_fx), inspect.signature(theirs.make_fx)
    assert [(p.name, p.kind, p.default) for p in mine.parameters.values()] == [
        (p.name, p.kind, p.default) for p in other.parameters.values()
    ]
    assert ours.py_sym_types == theirs.py_sym_types


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_same_graph(mode):
    mine, other = (m.make_fx(f, tracing_mode=mode)(*inputs()) for m in (ours, theirs))
    assert type(mine).__mro__[1] is cfx.GraphModule and isinstance(mine.graph, cfx.Graph)
    assert str(mine.graph) == str(other.graph)
    assert mine.code == other.code
    assert [sorted(n.meta) for n in mine.graph.nodes] == [sorted(n.meta) for n in other.graph.nodes]
    for a, b in zip(mine(*inputs()), other(*inputs())):
        assert torch.equal(a, b)


def test_decompositions_and_options():
    def double(x):
        return torch.ops.aten.add(x, x)

    def softplus(x):
        return torch.nn.functional.silu(x)

    table = {torch.ops.aten.silu.default: double}
    mine = ours.make_fx(softplus, decomposition_table=table)(inputs()[0])
    assert [n.name for n in mine.graph.nodes] == ["x_1", "add", "output"]
    assert ours.make_fx(f).__name__ == "f"
    linear = torch.nn.Linear(3, 2)
    mine, other = (
        m.make_fx(linear, pre_dispatch=True, record_module_stack=True)(inputs()[0])
        for m in (ours, theirs)
    )
    assert str(mine.graph) == str(other.graph)
    assert torch.equal(mine(inputs()[0]), linear(inputs()[0]))


def test_records_graph_modules_of_cfx():
    gm = cfx.symbolic_trace(lambda x: torch.relu(x) + 1)
    again = ours.make_fx(gm)(inputs()[0])
    assert [n.target for n in again.graph.nodes][1:3] == [
        torch.ops.aten.relu.default, torch.ops.aten.add.Tensor,
    ]  # fmt: skip
    with _use_lazy_graph_module(True):
        lazy = ours.make_fx(gm)(inputs()[0])
    assert isinstance(lazy, _LazyGraphModule) and lazy._needs_recompile()
    assert torch.equal(lazy(inputs()[0]), gm(inputs()[0]))


def test_errors_pass_through():
    with pytest.raises(RuntimeError, match="size of tensor"):
        ours.make_fx(lambda x: x + torch.ones(7))(inputs()[0])
    with pytest.raises(Exception) as mine:
        ours.make_fx(f, tracing_mode="guess")(*inputs())
    with pytest.raises(type(mine.value)) as other:
        theirs.make_fx(f, tracing_mode="guess")(*inputs())
    assert str(mine.value) == str(other.value)
