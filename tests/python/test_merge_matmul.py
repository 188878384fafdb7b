"""Matrix products with a common right-hand side, computed as one, beside torch.fx."""
import random

import pytest
import torch
from torch import nn
from torch.fx.experimental import merge_matmul as theirs

import cfx as fx
from cfx.experimental import merge_matmul as ours


class Net(nn.Module):
    """Products of inputs and of what becomes of them, with weights of a few."""

    def __init__(self, seed):
        super().__init__()
        self.seed = seed
        self.w, self.v = nn.Parameter(torch.randn(3, 3)), nn.Parameter(torch.randn(3, 3))

    def forward(self, x, y, z):
        rng = random.Random(self.seed)
        values = [x, y, z]
        for _ in range(rng.randint(3, 14)):
            a = rng.choice(values)
            kind = rng.random()
            if kind < 0.6:
                product = torch.matmul if kind < 0.5 else torch.mm
                values.append(product(a, rng.choice([self.w, self.w, self.v])))
            elif kind < 0.75:
                values.append(torch.tanh(a))
            elif kind < 0.85:
                values.append(a.clone().add_(1))
            else:
                values.append(a * 2)
        return tuple(values[3:])


def products(gm):
    return sum(n.target in (torch.matmul, torch.mm) for n in gm.graph.nodes)


@pytest.mark.parametrize("seed", range(30))
def test_random_programs(seed):
    model = Net(seed)
    inputs = [torch.randn(n, 3) for n in (2, 1, 4)]
    merged = ours.merge_matmul(model)
    assert merged.graph.verify() == []
    torch.testing.assert_close(merged(*inputs), model(*inputs), rtol=1e-4, atol=1e-5)
    assert products(merged) <= products(fx.symbolic_trace(model))


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 4))

    def forward(self, x, y):
        return torch.relu(torch.matmul(x, self.w)), torch.matmul(torch.abs(y), self.w)


def test_what_torch_fx_merges():
    model, x, y = Two(), torch.randn(2, 3), torch.randn(5, 3)
    mine, other = ours.merge_matmul(model), theirs.merge_matmul(model)
    assert products(mine) == products(other) == 1
    torch.testing.assert_close(mine(x, y), model(x, y))
    split = next(n for n in mine.graph.nodes if n.name == "split_result_tensors")
    assert split.target is ours.split_result_tensors
    cat = split.args[0].args[0]
    assert cat.target is torch.cat and len(mine.graph.find_nodes(op="get_attr")) == 1


def test_the_module_is_not_changed():
    gm = fx.symbolic_trace(Two())
    before = str(gm.graph)
    ours.merge_matmul(gm)
    assert str(gm.graph) == before


def test_small_functions():
    for tracing, module in ((fx, ours), (torch.fx, theirs)):
        gm = tracing.symbolic_trace(Two())
        n = {node.name: node for node in gm.graph.nodes}
        depends = module.may_depend_on
        assert [depends(n["matmul_1"], n["x"], depth) for depth in (0, 1, 2, 6)] == [
            True, True, False, False]  # fmt: skip
        assert depends(n["matmul_1"], n["y"]) and depends(n["x"], n["x"])
        assert not depends(n["x"], n["y"], 0)
        assert module.are_nodes_independent([n["matmul"], n["matmul_1"]])
        assert not module.are_nodes_independent([n["relu"], n["matmul"]])
        assert module.are_nodes_independent([])
        parts = module.split_result_tensors(torch.arange(5), [torch.zeros(2), torch.zeros(3)])
        assert [part.tolist() for part in parts] == [[0, 1], [2, 3, 4]]


def test_nodes_of_other_graphs_are_refused():
    a, b = (next(iter(fx.symbolic_trace(Two()).graph.nodes)) for _ in range(2))
    with pytest.raises((TypeError, RuntimeError, AssertionError)):
        ours.may_depend_on(a, 3)
    assert ours.may_depend_on(a, b) is False
