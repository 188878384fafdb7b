"""Sub-modules in the place of their calls (inline), weights as inputs and back (cfx.passes.params).
"""
import copy

import pytest
import torch
from torch import nn

import cfx as fx
from cfx.passes.params import inline, lift_params, unlift_params
from cfx.text import parse, text


class Block(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.randn(width))
        self.register_buffer("offset", torch.randn(width))

    def forward(self, x, times=2.0, *, shift=0.0):
        y = self.fc(x) * self.scale * times + self.offset
        return y + shift, x


class Captured(nn.Module):
    """Calls two captured blocks, one of them twice, and one in a captured module."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([fx.symbolic_trace(Block()), fx.symbolic_trace(Block())])
        inner = nn.Module()
        inner.deep = fx.symbolic_trace(Block())
        inner.forward = lambda x: x
        self.inner = fx.GraphModule(inner, self.call_of("deep"))

    @staticmethod
    def call_of(path):
        graph = fx.Graph()
        x = graph.placeholder("x")
        graph.output(graph.call_module(path, (x,)))
        return graph

    def forward(self, x):
        y, x = self.blocks[0](x)
        z, _ = self.blocks[1](y, times=3.0)
        w, _ = self.blocks[1](z, 4.0, shift=x)
        return self.inner(w)[0] + z


class KeepModules(fx.Tracer):
    def is_leaf_module(self, m, qualified_name):
        return isinstance(m, fx.GraphModule)


@pytest.fixture
def captured():
    root = Captured()
    return fx.GraphModule(root, KeepModules().trace(root))


def targets(gm, op):
    return [n.target for n in gm.graph.nodes if n.op == op]


# ---- inline ------------------------------------------------------------------------------------


def test_inline_computes_the_same(captured):
    x = torch.randn(2, 3)
    before = captured.code
    flat = inline(captured)
    assert captured.code == before
    flat.graph.lint()
    assert flat.graph.verify() == []
    torch.testing.assert_close(flat(x), captured(x), rtol=0, atol=0)
    assert targets(flat, "call_module") == [
        "blocks.0.fc", "blocks.1.fc", "blocks.1.fc", "inner.deep.fc"]  # fmt: skip
    assert "blocks.0.scale" in targets(flat, "get_attr")
    assert not any(isinstance(m, fx.GraphModule) for m in flat.children())
    assert flat.blocks.get_submodule("0").fc is captured.blocks.get_submodule("0").fc


def test_inline_keeps_meta_and_nests_scopes(captured):
    node = next(n for n in captured.blocks.get_submodule("0").graph.nodes if n.name == "fc")
    node.meta["mine"] = 7
    flat = inline(captured)
    fc = next(n for n in flat.graph.nodes if n.target == "blocks.0.fc")
    assert fc.meta["mine"] == 7
    assert list(fc.meta["nn_module_stack"])[-1].endswith("blocks.0.fc")


def test_a_module_that_contains_itself_is_refused():
    root = nn.Module()
    root.again = fx.GraphModule(nn.Module(), fx.Graph())
    gm = fx.GraphModule(root, Captured.call_of("again"))
    inner = gm.again
    inner.again = inner
    inner.graph = Captured.call_of("again")
    before = str(gm.graph)
    with pytest.raises(RecursionError, match="'again.again' calls itself"):
        gm.graph._inline(gm)
    assert str(gm.graph) == before


def test_inline_leaves_alone_what_is_more_than_its_graph(captured):
    hooked = captured.blocks.get_submodule("0")
    hooked.register_forward_hook(lambda module, args, output: output)
    captured.blocks.get_submodule("1").graph.set_codegen(type("Mine", (fx.CodeGen,), {})())
    assert targets(inline(captured), "call_module")[:3] == ["blocks.0", "blocks.1", "blocks.1"]


def test_inline_of_calls_that_do_not_fit():
    root = nn.Module()
    root.block = fx.symbolic_trace(Block())
    graph = fx.Graph()
    graph.output(graph.call_module("block", (), {"y": graph.placeholder("x")}))
    gm = fx.GraphModule(root, graph)
    assert targets(inline(gm), "call_module") == ["block"]


def test_inline_inside_a_region():
    source = """graph():
  %x = placeholder[target=x]()
  %c = call_function[target=cfx.cond](%x, graph {
    %a = placeholder[target=a]()
    %b = call_module[target=block](%a)
    output(%b)
  }, graph {
    %a = placeholder[target=a]()
    output((%a, %a))
  }, (%x,))
  output(%c)
"""
    root = nn.Module()
    root.block = fx.symbolic_trace(Block())
    graph = parse(source)
    graph._inline(fx.GraphModule(root, graph))
    assert "[target=block.fc]" in text(graph)


# ---- weights as inputs -------------------------------------------------------------------------


class Weights(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.w = nn.Parameter(torch.randn(3, 3))
        self.plain = torch.randn(3)

    def forward(self, x, *rest, bias=None):
        y = x @ self.w + self.plain
        return self.block(y)[0] + self.w.sum()


def test_lift_and_unlift():
    model = Weights()
    gm = fx.symbolic_trace(model)
    x = torch.randn(2, 3)
    pure, paths = lift_params(gm)
    assert paths == ["w", "plain", "block.scale", "block.offset"]
    assert pure.graph.verify() == []
    assert not targets(pure, "get_attr") and set(dict(pure.named_parameters())) == {
        "block.fc.weight", "block.fc.bias"}  # fmt: skip
    values = [fx.graph_module._get_attr(gm, path) for path in paths]
    torch.testing.assert_close(pure(*values, x), model(x), rtol=0, atol=0)
    again = unlift_params(pure, paths, gm)
    assert again.graph.verify() == []
    torch.testing.assert_close(again(x), model(x), rtol=0, atol=0)
    assert again.w is model.w
    assert "get_attr" in str(gm.graph)  # the original is as it was


def test_unlift_refuses_paths_that_lead_nowhere():
    gm = fx.symbolic_trace(Weights())
    pure, paths = lift_params(gm)
    with pytest.raises(ValueError, match="no attribute 'nowhere'"):
        unlift_params(pure, ["nowhere"], gm)
    with pytest.raises(ValueError, match="inputs"):
        unlift_params(pure, paths * 3, gm)
    with pytest.raises(TypeError, match="must be a str"):
        unlift_params(pure, [1], gm)


def test_attributes_that_are_no_tensors_stay():
    root = nn.Module()
    root.n = 3
    graph = fx.Graph()
    graph.output(graph.call_function(torch.add, (graph.placeholder("x"), graph.get_attr("n"))))
    gm = fx.GraphModule(root, graph)
    pure, paths = lift_params(gm)
    assert paths == [] and targets(pure, "get_attr") == ["n"]


# ---- what a pass may see of modules ------------------------------------------------------------


def test_a_pass_needs_a_module():
    gm = fx.symbolic_trace(Weights())
    with pytest.raises(TypeError, match="expected a torch.nn.Module"):
        gm.graph._pass("inline", 3)
    with pytest.raises(ValueError, match="no pass 'nothing'"):
        gm.graph._pass("nothing", gm)
    assert gm.graph._pass("inline", None) is False


def test_exceptions_of_modules_come_through():
    class Hostile(nn.Module):
        def __getattr__(self, name):
            if name == "w":
                raise ZeroDivisionError("hostile")
            return super().__getattr__(name)

    gm = fx.symbolic_trace(Weights())
    graph = copy.deepcopy(gm.graph)
    with pytest.raises(ZeroDivisionError, match="hostile"):
        graph._lift_params(Hostile())
    assert str(graph) == str(gm.graph)
