"""Operator support, names of targets, subgraphs as modules, sources: as torch.fx has them."""
import importlib
import operator

import pytest
import torch
import torch.fx

import cfx

BOTH = pytest.mark.parametrize("fx", [torch.fx, cfx], ids=["torch", "cfx"])


def passes(fx, name):
    return importlib.import_module(f"{fx.__name__}.passes.{name}")


class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.q = torch.nn.Sequential(torch.nn.Linear(2, 2))
        self.p = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        a = torch.relu(x)
        c = self.q(self.linear(a)) + self.p
        e = torch.nn.functional.relu(torch.ops.aten.add.Tensor(c, c))
        return torch.add(operator.getitem(e, 0), other=a.sum(-1)), a.size(0)


def outcome(function):
    try:
        return function()
    except (AssertionError, KeyError, AttributeError, IndexError) as e:
        return type(e).__name__


def traced(fx, prop=True):
    gm = fx.symbolic_trace(M())
    if prop:
        passes(fx, "shape_prop").ShapeProp(gm).propagate(torch.ones(2, 2))
    return gm, dict(gm.named_modules()), {n.name: n for n in gm.graph.nodes}


@pytest.mark.parametrize("prop", [True, False])
def test_supports_and_names_as_torch(prop):
    dtypes = (torch.float32,)
    table = {"torch.relu": None, "torch.nn.modules.linear.Linear": ((dtypes,), {}),
             "sum": (((torch.int32,),), {}), "_operator.add": ((None, dtypes), {}),
             "torch.add": ((dtypes,), {"other": (torch.int32,)})}  # fmt: skip
    results = []
    for fx in (torch.fx, cfx):
        support, tools = passes(fx, "operator_support"), passes(fx, "tools_common")
        gm, mods, nodes = traced(fx, prop)
        full, empty = support.OperatorSupport(table), support.OperatorSupport()
        small = support.OpSupports.decline_if_node_in_names({"relu"})
        floats = support.OpSupports.decline_if_input_dtype(torch.float32)
        able = [full, empty, small, floats, support.chain(full, small), support.chain(),
                support.any_chain(full, small), support.any_chain()]  # fmt: skip
        results.append((
            [[outcome(lambda s=s, n=n: s.is_node_supported(mods, n)) for n in gm.graph.nodes]
             for s in able],
            [outcome(lambda n=n: tools.get_node_target(mods, n)) for n in gm.graph.nodes],
            [tools.is_node_output_tensor(n) for n in gm.graph.nodes],
            [tools.get_acc_ops_name(k) for k in (torch.relu, "x", torch.nn.ReLU, operator.add,
                                                 torch.ops.aten.add.Tensor)],
        ))  # fmt: skip
    assert results[0] == results[1]
    with pytest.raises(TypeError):
        passes(cfx, "operator_support").OperatorSupportBase()


@BOTH
def test_lift_subgraph(fx):
    common = passes(fx, "utils.common")
    gm = fx.symbolic_trace(M())
    sub, names = common.lift_subgraph_as_module(gm, gm.graph, "comp", "Foo")
    assert type(sub).__name__ == "Foo" and sub.q.get_submodule("0") is gm.q.get_submodule("0")
    assert names == {"linear": "comp.linear", "q.0": "comp.q.0", "p": "comp.p"}
    x = torch.randn(2, 2)
    assert torch.equal(sub(x)[0], gm(x)[0])
    holder = common.HolderModule({"a": gm.linear})
    assert holder.a is gm.linear and list(dict(holder.named_modules())) == ["", "a"]


@BOTH
def test_compare_graphs(fx):
    compare = passes(fx, "utils.common").compare_graphs
    one, same, other = (fx.symbolic_trace(f).graph for f in (
        lambda x, y: torch.add(x, y).relu(), lambda a, b: torch.add(a, b).relu(),
        lambda a, b: torch.mul(a, b).relu()))  # fmt: skip
    assert compare(one, same) and not compare(one, other)


@BOTH
def test_sorting(fx):
    tools = passes(fx, "tools_common")
    gm = fx.symbolic_trace(lambda x, y: torch.sin(x) + torch.cos(y))
    x, y, sin, cos, add, out = gm.graph.nodes
    sin.prepend(add)
    for sort in (tools.legalize_graph, tools.stable_topological_sort):
        assert sort(gm) is gm
        gm.graph.lint()
        assert torch.equal(gm(torch.ones(1), torch.zeros(1)), torch.sin(torch.ones(1)) + 1)


def test_sorting_converts_and_reports_cycles():
    tools = passes(cfx, "tools_common")
    gm = tools.legalize_graph(torch.fx.symbolic_trace(lambda x: torch.sin(x)))
    assert isinstance(gm, cfx.GraphModule)
    gm = cfx.symbolic_trace(lambda x: torch.sin(torch.cos(x)))
    _, cos, sin, _ = gm.graph.nodes
    cos.args = (sin,)
    with pytest.raises(RuntimeError, match="%cos.*%sin"):
        tools.stable_topological_sort(gm)


# ---- sources ----


def sources_graph(fx):
    g = fx.Graph()
    a, b, w = g.placeholder("a"), g.placeholder("b"), g.get_attr("w")
    mm = g.call_function(torch.mm, (a, w))
    add = g.call_function(torch.add, (mm, 1), {"other": b})
    cat = g.call_function(torch.cat, ([add, b],))
    neg = g.call_function(torch.neg, (cat,))
    g.output((neg, g.call_function(torch.abs, (mm,))))
    return g, {n.name: n for n in g.nodes}


LINEAR = torch.nn.Linear
METAS = {
    "stack": lambda i: {"source_fn_stack": [("outer", object), (f"l{i}", LINEAR)]},
    "function": lambda i: {"torch_fn": (f"l{i}", "f.linear"), "source_fn_stack": None},
    "class": lambda i: {"nn_module_stack": {"x": ("x", object), f"l{i}": (f"l{i}", LINEAR)}},
    "name": lambda i: {"nn_module_stack": {"l": (f"l{i}", "torch.nn.modules.linear.Linear")},
                       "torch_fn": ("c", "f.other")},
    "outer": lambda i: {"nn_module_stack": {"x": ("x", LINEAR), "y": ("y", object)}},
    "empty": lambda i: {"source_fn_stack": []},
}  # fmt: skip


@pytest.mark.parametrize("kind", METAS)
@pytest.mark.parametrize("wanted", [[LINEAR], ["linear"], ["linear", LINEAR], []],
                         ids=["class", "name", "both", "none"])  # fmt: skip
def test_sources_as_torch(kind, wanted):
    results = []
    for fx in (torch.fx, cfx):
        utils = passes(fx, "utils.source_matcher_utils")
        g, nodes = sources_graph(fx)
        for i, name in ((1, "mm"), (1, "add"), (2, "cat"), (2, "neg"), (1, "w")):
            nodes[name].meta.update(METAS[kind](i))

        def describe(found):
            return {source: [(p.source, [n.name for n in p.nodes],
                              *(sorted(n.name for n in part) for part in
                                (p.input_nodes, p.output_nodes, p.params))) for p in parts]
                    for source, parts in found.items()}  # fmt: skip

        get = utils.get_source_partitions
        results.append((
            outcome(lambda: describe(get(g, wanted))),
            outcome(lambda: describe(get(g, wanted, lambda n: n.name != "add"))),
        ))  # fmt: skip
    assert results[0] == results[1]


@BOTH
def test_connected_sources(fx):
    utils = passes(fx, "utils.source_matcher_utils")
    g, nodes = sources_graph(fx)
    for i, name in ((1, "mm"), (1, "add"), (2, "cat"), (2, "neg")):
        nodes[name].meta.update(METAS["stack"](i))
    first, second = utils.get_source_partitions(g, [LINEAR])[LINEAR]
    assert utils.check_subgraphs_connected(first, second)
    assert not utils.check_subgraphs_connected(second, first)


def test_bad_metadata_is_reported():
    utils = passes(cfx, "utils.source_matcher_utils")
    g, nodes = sources_graph(cfx)
    nodes["mm"].meta["torch_fn"] = 3
    with pytest.raises(TypeError, match="expected a pair in the metadata"):
        utils.get_source_partitions(g, [LINEAR])
    nodes["mm"].meta["torch_fn"] = (1, 2, 3)
    with pytest.raises(ValueError, match="expected a pair in the metadata"):
        utils.get_source_partitions(g, [LINEAR])
