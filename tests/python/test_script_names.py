"""Nodes that cfx.script makes are called after the variables of the program, where they can."""
import re

import cfx
import pytest
import torch
from torch import nn


def names(program):
    return [n.name for n in cfx.script(program).graph.nodes]


def test_variables():
    def program(x):
        h = x * 2
        a, b = h + 1, h - 1
        c = d = a * b
        n: int = x.shape[0]
        return torch.relu(c + d) * n

    assert names(program) == ["x", "h", "a", "b", "d", "getattr_1", "n", "add", "relu", "mul",
                              "output"]
    assert "h = x * 2" in cfx.script(program).code


def test_taken_names():
    """The first one has it: `x` is an input, `h` is bound twice."""
    def program(x):
        x = x * 2
        h = x + 1
        h = torch.relu(h)
        add = h.exp()
        return add + 1

    assert names(program) == ["x", "mul", "h", "relu", "add", "add_1", "output"]


@pytest.mark.parametrize("name", ("sum", "torch", "len", "self", "_", "_hidden", "x_1", "go", "i",
                                  "getitem", "result", "mul"))
def test_names_that_are_not_used(name, tmp_path):
    """What Python or generated code means something else by."""
    space = {}
    source = f"def program(x):\n    {name} = x * 2\n    return {name} + 1\n"
    file = tmp_path / "named.py"
    file.write_text(source)
    exec(compile(source, str(file), "exec"), space)
    assert names(space["program"]) == ["x", "mul", "add", "output"]


def test_letters_beyond_ascii():
    def program(x):
        größe = x * 2
        return größe + 1

    module = cfx.script(program)
    assert torch.equal(module(torch.ones(2)), torch.full((2,), 3.0))
    assert all(n.name.isascii() for n in module.graph.nodes)


def test_not_what_was_there():
    """A name is given to what the assignment makes, not to what it takes."""
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            kept = x
            weight = self.fc.weight
            y = self.fc(kept)
            z = y
            return z @ weight

    assert names(Module()) == ["x", "y", "fc_weight", "matmul", "output"]


def test_functions_that_are_called():
    def block(x):
        inner = x + 1
        return inner * 2

    def program(x):
        first = block(x)
        second = block(first)
        return second

    assert names(program) == ["x", "inner", "first", "add", "second", "output"]


def test_branches_and_loops():
    """Their values are called as in a trace: generated code has variables of its own there. A
    condition keeps the statement of a value that has a name."""
    def program(x):
        score = x.sum()
        if score > 0:
            y = x * 2
        else:
            y = x - 1
        state = torch.zeros(2)
        total = y
        while total.sum() < 9:
            total = total + 1
        return total + state

    module = cfx.script(program)
    assert "score" in [n.name for n in module.graph.nodes]
    assert "    score = x.sum()\n    if score > 0:\n" in module.code
    again = cfx.script(module)
    assert [re.sub("  @ .*", "", cfx.text(g.graph)) for g in (module, again)] == [
        re.sub("  @ .*", "", cfx.text(module.graph))] * 2


def test_a_copied_graph():
    """What stands for a call of a GraphModule has the name that the call was given."""
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = cfx.symbolic_trace(nn.Sequential(nn.Linear(3, 3), nn.Tanh()))

        def forward(self, x):
            hidden = self.inner(x)
            return hidden * 2

    assert names(Outer()) == ["x", "inner_0", "hidden", "mul", "output"]


def test_traces_have_torch_fx_names():
    def program(x):
        hidden = x * 2
        return hidden + 1

    assert [n.name for n in cfx.symbolic_trace(program).graph.nodes] == [
        n.name for n in torch.fx.symbolic_trace(program).graph.nodes]
