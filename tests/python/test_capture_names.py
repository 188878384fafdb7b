"""Nodes of a captured graph are called what the program calls their values."""
import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import cfx
from cfx import capture


def names(program, *inputs):
    gm = capture(program, *inputs)
    gm.graph.lint()
    want, found = program(*inputs), gm(*inputs)
    assert str(found) == str(want)
    return [node.name for node in gm.graph.nodes if node.op not in ("placeholder", "output")]


def test_calls_methods_operators_and_layers():
    fc = nn.Linear(3, 3)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = fc

        def forward(self, x):
            hidden = self.fc(x)
            scaled = hidden * 2
            shifted = scaled.add(1)
            active = torch.relu(shifted)
            dropped = F.dropout(active, 0.5, False)
            scaled += dropped
            return scaled.sum()

    assert names(Net(), torch.ones(2, 3)) == [
        "hidden", "scaled", "shifted", "active", "dropped", "scaled_1", "sum_1"]


def test_results_that_are_unpacked():
    def program(x):
        rows, columns = x.shape
        q, k, v = x.chunk(3, -1)
        values, _ = q.max(-1)
        (low, high), both = torch.aminmax(k), v + rows
        return q, v, values, low, high, both * columns

    found = names(program, torch.randn(2, 6))
    assert [n for n in found if n in ("rows", "columns", "q", "k", "v", "values")] == [
        "rows", "columns", "q", "k", "v", "values"]
    assert "both" not in found  # it is part of a tuple that is built first
    assert "_" not in found


def test_a_size():
    def program(x):
        n = x.size(0)
        numbers = x.shape
        return x.reshape(n, -1), numbers[1]

    assert names(program, torch.ones(2, 3))[:1] == ["n"]


def test_loops_and_other_frames():
    def inner(x):
        y = x + 1
        return y * 2

    def program(x):
        for _ in range(2):
            x = torch.sin(x)
        outer = inner(x)
        later = lambda t: t.neg()  # noqa: E731
        last = later(outer)
        return last

    assert names(program, torch.ones(2)) == ["x_1", "x_2", "y", "mul", "neg"]


def test_what_torch_computes_with_several_calls_keeps_its_names():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.seq = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

        def forward(self, x):
            result = self.seq(x)
            total = torch.einsum("ij->i", result)
            mapped = torch.vmap(torch.sum)(result)
            return total + mapped

    found = names(Net(), torch.ones(2, 3))
    assert found[:2] == ["seq_0", "seq_1"] and "result" not in found
    assert found.count("total") == 1 and "mapped" not in found


@pytest.mark.parametrize("name", [
    "torch", "cfx", "operator", "math", "builtins", "len", "getattr", "slice", "max", "print",
    "device", "inf", "nan", "NoneType", "F", "x", "x_1", "x_2", "add", "add_1", "forward",
    "assert_", "fx_pytree", "self_", "None_", "α", "aβ", "relu_1_2",
])  # fmt: skip
def test_names_that_generated_code_needs(name):
    """Every name gives a graph that runs, prints, pickles and parses."""
    text = f"""
def program(x, flag=True):
    {name} = x + 1
    y = torch_.relu({name})
    {name} = torch_.cat([y[:2], {name}])
    add = {name} + x.sum() + math_.inf * 0 if flag is None else {name} * 2
    {name} = add.to(torch_.float64)
    return {name}, len_({name}.shape)
"""
    import math

    space = {"torch_": torch, "math_": math, "len_": len}
    exec(compile(text, "<names>", "exec"), space)
    program, x = space["program"], torch.arange(3.0)
    gm = capture(program, x)
    gm.graph.lint()
    assert len({node.name for node in gm.graph.nodes}) == len(gm.graph.nodes)
    for twin in (gm, copy.deepcopy(gm), pickle.loads(pickle.dumps(gm))):
        assert str(twin(x + 1)) == str(program(x + 1)), twin.code
    assert all(node.name.isidentifier() for node in gm.graph.nodes)
    text = cfx.text(gm.graph)
    assert cfx.equal(cfx.parse(text), gm.graph)


def test_a_variable_self():
    def program(x):
        self = x * 2
        return self + 1

    assert names(program, torch.ones(2)) == ["mul", "add"]


def test_many_variables():
    """More than an instruction has room for in its argument."""
    lines = "\n".join(f"    v{i} = x + {i}" for i in range(300))
    space = {}
    exec(compile(f"def program(x):\n{lines}\n    return v299", "<many>", "exec"), space)
    gm = capture(space["program"], torch.ones(2))
    found = [node.name for node in gm.graph.nodes][1:-1]
    assert found == [f"v{i}" for i in range(300)]


def test_functions_from_their_source_have_their_names_too():
    def program(x):
        doubled = x * 2
        if doubled.sum() > 0:
            result = doubled + 1
        else:
            result = doubled - 1
        return result

    gm = capture(program, torch.ones(2))
    assert "doubled" in [node.name for node in gm.graph.nodes]


def test_a_trace_keeps_the_names_of_torch_fx():
    def program(x):
        hidden = torch.relu(x)
        result = hidden + 1
        return result

    assert [n.name for n in cfx.symbolic_trace(program).graph.nodes] == [
        n.name for n in torch.fx.symbolic_trace(program).graph.nodes]
