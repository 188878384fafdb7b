"""cfx.passes: the table, running passes by name, and their page."""
import os
import re
import subprocess
import sys
from pathlib import Path

import cfx
import cfx.passes
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
TEXT = """graph():
  %x = placeholder[target=x]()
  %a = call_function[target=torch.neg](%x)
  %b = call_function[target=torch.neg](%x)
  %dead = call_function[target=torch.exp](%b)
  output((%a, %b))
"""


def names(graph):
    return [n.name for n in graph.nodes]


def test_table():
    rows = cfx.passes.table()
    assert [r.name for r in rows] == sorted(r.name for r in rows)
    assert {"cse", "dce", "toposort"} <= {r.name for r in rows}
    for row in rows:
        assert all(row[:4]) and not row.summary.endswith(".")
        assert ("nothing" == row.needs) == (not any(f.startswith("needs_") for f in row.flags))
        assert any(f.startswith("keeps_") for f in row.flags)
    flags = {row.name: row.flags for row in rows}
    assert {"needs_modules", "keeps_names"} <= flags["fuse_bn"]
    assert "needs_modules" not in flags["dce"] and "keeps_order" not in flags["toposort"]


def test_the_command_lists_the_table():
    done = subprocess.run([BUILD / "cfx", "passes"], capture_output=True, text=True, check=True)
    assert [tuple(line.split(None, 1)) for line in done.stdout.splitlines()] == [
        (row.name, row.summary) for row in cfx.passes.table()]


def test_run_on_a_graph():
    graph = cfx.parse(TEXT)
    assert cfx.passes.run(graph, "dce", "cse")
    assert names(graph) == ["x", "a", "output"]
    assert not cfx.passes.run(graph, "dce", "cse")
    assert not cfx.passes.run(graph)
    with pytest.raises(ValueError, match="there is no pass 'dcee'"):
        cfx.passes.run(graph, "dcee")


def test_run_on_a_module():
    torch = pytest.importorskip("torch")

    class M(torch.nn.Module):
        def forward(self, x):
            return torch.neg(x) + torch.neg(x)

    gm = cfx.symbolic_trace(M())
    assert cfx.passes.run(gm, "cse")
    assert gm.code.count("neg = torch.neg(x)") == 1
    assert gm(torch.ones(2)).tolist() == [-2, -2]


def test_regions_see_the_module():
    """A call_module in a region is looked up in the module of the graph around it."""
    torch = pytest.importorskip("torch")
    regions = [cfx.Graph(), cfx.Graph()]
    for region in regions:
        region.output(region.call_module("act", (region.placeholder("a"),)))
    graph = cfx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(cfx.cond, (True, *regions, (x,))))
    assert regions[0].owning_module is None
    root = torch.nn.Module()
    root.act = torch.nn.ReLU()
    gm = cfx.GraphModule(root, graph)
    region = gm.graph.find_nodes(op="call_function", target=cfx.cond)[0].args[1]
    assert region.owning_module is gm
    assert not cfx.passes.run(gm, "cse", "dce")


# ---- toposort and legalize_names against torch.fx


def shuffled(fx, seed):
    """The same random graph in a random order, of either library."""
    import random

    import torch

    r = random.Random(seed)
    graph = fx.Graph()
    nodes = [graph.placeholder("x")]
    for i in range(12):
        args = tuple(r.sample(nodes, r.randint(0, min(3, len(nodes)))))
        nodes.append(graph.call_function(torch.relu, (args,), name=f"n{i}"))
    graph.output(tuple(r.sample(nodes, 3)))
    for n in r.sample(list(graph.nodes), 8):
        r.choice(list(graph.nodes)).prepend(n)
    return fx.GraphModule(torch.nn.Module(), graph)


@pytest.mark.parametrize("seed", range(20))
def test_toposort_orders_as_torch_does(seed):
    pytest.importorskip("torch")
    import torch.fx
    from torch.fx.passes import tools_common

    for breadth_first, name in (True, "legalize_graph"), (False, "stable_topological_sort"):
        if not hasattr(tools_common, name):
            pytest.skip(f"this torch.fx has no {name}")
        want = names(getattr(tools_common, name)(shuffled(torch.fx, seed)).graph)
        graph = shuffled(cfx, seed).graph
        before = names(graph)
        assert graph._toposort(breadth_first) == (before != want)
        assert names(graph) == want
        graph.lint()


def test_toposort_names_the_cycle():
    graph = cfx.parse(TEXT)
    _, a, b, *_ = graph.nodes
    a.args, b.args = (b,), (a,)
    before = names(graph)
    with pytest.raises(RuntimeError, match="cycles: %a uses %b uses %a; change an argument of one "
                                           "of them"):
        cfx.passes.run(graph, "toposort")
    assert names(graph) == before


def test_legalize_names():
    graph = cfx.parse(TEXT)
    x, a, b, dead, output = graph.nodes
    a.name, b.name, dead.name = "class", "x", "two words"
    assert graph.verify() != []
    assert cfx.passes.run(graph, "legalize_names")
    assert names(graph) == ["x", "class_1", "x_1", "two_words", "output"]
    assert graph.verify() == []
    assert not cfx.passes.run(graph, "legalize_names")


def test_const_fold_heeds_writes():
    """What is written to later is another value then, and what is returned is new at each call."""
    torch = pytest.importorskip("torch")

    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(4))

        def forward(self, x):
            a = self.w.clone()
            a.add_(x)
            return a * 2 * (self.w * 3), (self.w + 1).reshape(2, 2)

    gm = cfx.symbolic_trace(M())
    assert cfx.passes.run(gm, "const_fold")
    names = [n.name for n in gm.graph.nodes if n.op.startswith("call")]
    assert names == ["clone", "add_", "mul", "mul_2", "add", "reshape"]
    for _ in range(2):
        a, b = gm(torch.ones(4))
        assert a.tolist() == [12] * 4 and b.tolist() == [[2, 2], [2, 2]]
        a.add_(1), b.add_(1)


def folded(body, expected_calls):
    """Runs const_fold on a graph; what it gives, twice, after the results were written to."""
    import torch

    root, graph = torch.nn.Module(), cfx.Graph()
    root.w = torch.nn.Parameter(torch.arange(6.0), requires_grad=False)
    graph.output(body(graph, graph.placeholder("x")))
    gm = cfx.GraphModule(root, graph)
    x = torch.rand(2, 3)
    expected = gm(x)
    assert cfx.passes.run(gm, "const_fold") == (expected_calls is not None)
    assert not cfx.passes.run(gm, "const_fold") and gm.graph.verify() == []
    calls = [n.name for n in gm.graph.nodes if n.op.startswith("call")]
    assert expected_calls is None or calls == expected_calls
    for _ in range(2):
        result = gm(x)
        torch.testing.assert_close(result, expected, rtol=0, atol=0)
        result.add_(1)


def test_const_fold_of_keywords_factories_and_lists():
    torch = pytest.importorskip("torch")
    add = torch.add

    def keywords(g, x):
        rows = g.call_method("view", (g.get_attr("w"), 2, 3))
        total = g.call_function(torch.sum, (), {"input": rows, "dim": 0, "keepdim": True})
        return g.call_function(add, (x, total))

    def factories(g, x):
        one = g.call_function(torch.ones, (1,))
        more = g.call_function(torch.arange, (2, 4), {"dtype": torch.float32})
        row = g.call_function(torch.cat, ([one, more],), {"dim": 0})
        eye = g.call_function(torch.eye, (3,))
        return g.call_function(add, (x, g.call_function(torch.matmul, (row, eye))))

    def rows(g, x):
        w = g.call_method("permute", (g.call_method("reshape", (g.get_attr("w"), 3, 2)), 1, 0))
        return g.call_function(add, (x, w))

    def many(g, x):
        parts = [g.call_function(torch.full, ((2, 3), float(i))) for i in range(300)]
        return g.call_function(torch.stack, ([x, *parts],))

    folded(keywords, ["add"])
    folded(factories, ["add"])
    folded(rows, ["add"])
    folded(many, ["stack"])


def test_const_fold_leaves_what_must_be_new():
    """What is written to or returned is made at each call; empty and random tensors stay."""
    torch = pytest.importorskip("torch")
    add = torch.add

    def written(g, x):
        zeros = g.call_function(torch.zeros, (2, 3))
        g.call_method("add_", (zeros, x))
        return g.call_function(add, (x, zeros))

    def through_view(g, x):
        ones = g.call_function(torch.ones, (6,))
        g.call_method("add_", (g.call_method("view", (ones, 2, 3)), x))
        return g.call_function(add, (x, g.call_method("view", (ones, 2, 3))))

    def returned(g, x):
        return g.call_method("view", (g.call_function(torch.zeros, (6,)), 2, 3))

    def empty(g, x):
        made = g.call_function(torch.empty, (2, 3))
        return g.call_function(torch.mul, (x, g.call_function(torch.zeros_like, (made,))))

    def random(g, x):
        noise = g.call_function(torch.rand, (2, 3))
        return g.call_function(torch.mul, (x, g.call_function(torch.zeros_like, (noise,))))

    for body in (written, through_view, returned, empty, random):
        folded(body, None)


# ---- repeated parts


def test_find_repeated():
    torch = pytest.importorskip("torch")
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.fc = nn.LayerNorm(4), nn.Linear(4, 4)

        def forward(self, x):
            return x + self.fc(self.norm(x)).relu()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.blocks = nn.Linear(4, 4), nn.Sequential(*(Block() for _ in range(5)))

        def forward(self, x):
            return self.blocks(self.stem(x)).sum()

    gm = cfx.symbolic_trace(Net())
    found = cfx.passes.find_repeated(gm)
    assert [[len(copy) for copy in group] for group in found] == [[4] * 5]
    assert found.paths == [[f"blocks.{i}" for i in range(5)]]
    assert found[0][1][0] is gm.graph.find_nodes(op="call_module", target="blocks.1.norm")[0]
    assert str(found) == "copies  nodes  first copy  last copy\n5       4      blocks.0    blocks.4"
    # the same by runs, from the text without scopes
    plain = cfx.parse(re.sub(r"  @ .*", "", cfx.text(gm.graph)))
    found = cfx.passes.find_repeated(plain)
    assert [[len(copy) for copy in group] for group in found] == [[4] * 5]
    assert "blocks_0_norm .. add  blocks_4_norm .. add_4" in str(found)
    assert cfx.passes.find_repeated(plain, min_copies=6) == []


# ---- the documentation


def test_pages_are_current():
    done = subprocess.run([sys.executable, ROOT / "tools/pass_docs.py"], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_wrong_names_change_nothing():
    graph = cfx.parse(TEXT)
    with pytest.raises(ValueError, match="no pass .ces.; the passes are annotate, .*, cse, dce"):
        cfx.passes.run(graph, "dce", "ces")
    with pytest.raises(TypeError, match="the name of a pass must be a str"):
        cfx.passes.run(graph, ["dce", "cse"])
    assert cfx.equal(graph, cfx.parse(TEXT))


def test_what_is_no_graph_is_refused():
    torch = pytest.importorskip("torch")
    import torch.fx

    for call in (lambda m: cfx.passes.run(m, "dce"), cfx.passes.find_repeated):
        for module in (torch.nn.ReLU(), torch.fx.symbolic_trace(torch.nn.ReLU()), None):
            with pytest.raises(TypeError, match="trace it with cfx.symbolic_trace"):
                call(module)


def test_code_is_made_anew_if_a_later_pass_fails():
    torch = pytest.importorskip("torch")
    graph = cfx.Graph()
    x = graph.placeholder("x")
    neg = graph.call_function(torch.neg, (x,))
    graph.output(graph.call_function(torch.abs, (neg,)))
    gm = cfx.GraphModule({}, graph)
    neg.next.append(neg)  # behind its user: cse refuses that
    with pytest.raises(RuntimeError, match="neg"):
        cfx.passes.run(gm, "annotate", "cse")
    assert "abs_1 : torch.Tensor" in gm.code


LOOP = """graph():
  %x = placeholder[target=x]()
  %loop = call_function[target=cfx.for_loop](5, graph {
      %i = placeholder[target=i]()
      %acc = placeholder[target=acc]()
      %add = call_function[target=operator.add](%acc, %i)
      output((%add,))
    }, (%x,))
  %getitem = call_function[target=operator.getitem](%loop, 0)
  output(%getitem)
"""


def test_options_by_name():
    graph = cfx.parse(LOOP)
    assert not cfx.passes.run(graph, "unroll", max_turns=4)
    assert not cfx.passes.run(graph, "unroll", max_turns=5, max_nodes=3)
    assert cfx.passes.run(graph, "cse", "unroll", max_turns=5)  # for those that have it
    row = {p.name: p for p in cfx.passes.table()}["unroll"]
    assert {name: value for name, (value, _) in row.options.items()} == {
        "max_turns": 16, "max_nodes": 1000, "strict": False}


@pytest.mark.parametrize("names, options, error, words", [
    (("unroll",), {"limit": 3}, TypeError, "unknown option 'limit' for unroll; the options are: "),
    (("cse", "topsort_"), {}, ValueError, "there is no pass 'topsort_'"),
    (("cse",), {"max_turns": 3}, TypeError,
     "unknown option 'max_turns' for cse; the options are: strict$"),
    (("unroll",), {"max_turns": -1}, TypeError, "a bool or a non-negative integer, not -1"),
    (("unroll",), {"max_turns": "4"}, TypeError, "not '4'"),
    (("dce",), {"like_torch_fx": 2}, ValueError, "is a flag; it must be 0 or 1"),
], ids=str)  # fmt: skip
def test_wrong_options(names, options, error, words):
    graph = cfx.parse(LOOP)
    with pytest.raises(error, match=words):
        cfx.passes.run(graph, *names, **options)
    assert cfx.text(graph) == cfx.text(cfx.parse(LOOP))
