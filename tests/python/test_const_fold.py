"""Constant folding: split_const_subgraphs as torch.fx has it, and the pass const_fold."""
import copy
import operator
import warnings

import pytest

torch = pytest.importorskip("torch")
import torch.fx as tfx  # noqa: E402
import torch.fx.experimental.const_fold as torch_fold  # noqa: E402

import cfx  # noqa: E402
import cfx.experimental.const_fold as cfx_fold  # noqa: E402
import cfx.passes  # noqa: E402

BOTH = ((tfx, torch_fold), (cfx, cfx_fold))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.rand(4, 4))
        self.b = torch.nn.Parameter(torch.rand(4, 4))
        self.sub = torch.nn.Module()
        self.sub.lin = torch.nn.Linear(4, 4)
        self.sub.w = torch.nn.Parameter(torch.rand(4, 4))
        self.lin = torch.nn.Linear(4, 4)

    def forward(self, x, y=2):
        c = self.a + self.a.permute(1, 0)
        s = torch.sum(self.b, dim=1)
        z = self.sub.lin(self.lin(x - c + (y + s))) + self.sub.lin(self.sub.w)
        return z, self.b, c


def fold(module, make, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.fx warns of attributes that it adds later
        return module.split_const_subgraphs(make, **options)


def constants_of(folded):
    inner = folded.const_subgraph_module
    nodes = inner.graph.nodes if inner is not None else ()
    return sorted((n.op, str(n.target)) for n in nodes)


@pytest.mark.parametrize("name", [None, "permute", "sum_1", "a"])
def test_the_rest_is_as_in_torch_fx(name):
    model, x = Model(), torch.rand(4, 4)
    shown = []
    for fx, module in BOTH:
        gm = fx.symbolic_trace(model)
        for i, n in enumerate(gm.graph.nodes):
            n.meta["number"] = i
        folded = fold(module, gm, skip_folding_node_fn=lambda n: n.name == name)
        metas = [n.meta.get("number") for n in folded.graph.nodes]
        before = list(folded.state_dict())
        torch.testing.assert_close(folded(x), model(x), rtol=0, atol=0)
        assert folded.has_folding_been_run
        shown.append((str(folded.graph), folded.code, metas, constants_of(folded), sorted(before),
                      {k: p.requires_grad for k, p in sorted(folded.named_parameters())}))
    assert shown[0] == shown[1]
    assert folded.graph._faults(True) == []
    assert folded.const_subgraph_module.graph._faults(True) == []


def build(fx, body):
    graph = fx.Graph()
    root = torch.nn.Module()
    root.w = torch.nn.Parameter(torch.rand(4))
    root.register_buffer("count", torch.zeros(4))
    body(graph, graph.placeholder("x"))
    return fx.GraphModule(root, graph)


def random_numbers(graph, x):
    zeros = graph.call_function(torch.zeros, (4,))
    noise = graph.call_function(torch.rand, (4,))
    sum = graph.call_function(torch.add, (zeros, noise))
    graph.output(graph.call_function(torch.add, (x, sum)))


def numbers(graph, x):
    k = graph.call_function(operator.mul, (graph.call_function(operator.add, (1, 2)), 3))
    graph.output(graph.call_function(torch.mul, (x, k)))


def nothing(graph, x):
    graph.output(graph.call_function(torch.add, (x, graph.get_attr("w"))))


def only_constants(graph, x):
    graph.output(graph.call_function(torch.exp, (graph.get_attr("w"),)))


@pytest.mark.parametrize("body", [random_numbers, numbers, nothing, only_constants])
def test_small_graphs(body):
    shown = []
    for fx, module in BOTH:
        folded = fold(module, build(fx, body))
        shown.append((str(folded.graph), constants_of(folded), folded.fx_const_folded_attrs_name))
        folded.run_folding()
        for n, p in folded.named_parameters():
            if body is not numbers:  # torch.fx makes tensors of them
                shown[-1] += ((n, tuple(p.shape), p.dtype),)
    assert shown[0] == shown[1]


def test_numbers_stay_numbers():
    def body(graph, x):
        rows = graph.call_method("size", (graph.get_attr("w"), 0))
        scale = graph.call_function(operator.truediv, (1, 4))
        two = graph.call_method("view", (x, rows, -1))
        graph.output(graph.call_function(torch.mul, (two, scale)))

    def size(graph, x):
        shape = graph.call_method("size", (graph.get_attr("w"),))
        graph.output(graph.call_method("view", (x, shape)))

    x = torch.rand(8)
    assert torch.equal(cfx_fold.split_const_subgraphs(build(cfx, body))(x), x.view(4, 2) / 4)
    assert cfx_fold.split_const_subgraphs(build(cfx, size))(x[:4]).shape == (4,)
    folded = cfx_fold.split_const_subgraphs(build(cfx, numbers))
    assert torch.equal(folded(x), 9 * x) and folded._FX_CONST_FOLDED_ATTRS == 9


def test_what_is_written_to_is_no_constant():
    def body(graph, x):
        count = graph.get_attr("count")
        graph.call_method("add_", (count, 1))
        twice = graph.call_function(torch.mul, (graph.get_attr("count"), 2))
        graph.output(graph.call_function(torch.add, (x, twice)))

    folded = cfx_fold.split_const_subgraphs(build(cfx, body))
    assert folded.const_subgraph_module is None
    x = torch.zeros(4)
    assert [folded(x)[0].item() for _ in range(3)] == [2, 4, 6]


def test_folding_runs_once():
    folded = cfx_fold.split_const_subgraphs(Model())
    folded.run_folding()
    with pytest.raises(AssertionError, match="Cannot re-run folding"):
        folded.run_folding()


@pytest.mark.parametrize("name", ["a.b c", "1x", "training", "training_7", "free", "graph"])
def test_names_of_attributes(name):
    names = []
    for fx, module in BOTH:
        gm = fx.symbolic_trace(torch.nn.ReLU())
        gm.training_7 = 1
        names.append(module.get_unique_attr_name_in_module(gm, name))
    assert names[0] == names[1]


def test_an_error_of_the_filter_is_passed_on():
    gm = cfx.symbolic_trace(Model())
    before = str(gm.graph)
    with pytest.raises(ZeroDivisionError):
        cfx_fold.split_const_subgraphs(gm, lambda n: 1 // 0)
    with pytest.raises(RuntimeError):  # the graph cannot be edited meanwhile
        cfx_fold.split_const_subgraphs(gm, lambda n: gm.graph.placeholder("y"))
    assert str(gm.graph) == before


# ---- the pass ----------------------------------------------------------------------------------


def test_the_pass_computes_with_tensors():
    def body(graph, x):
        w = graph.get_attr("w")
        e = graph.call_function(torch.exp, (w,))
        f = graph.call_function(operator.mul, (e, graph.call_function(operator.add, (1, 1))))
        count = graph.get_attr("count")
        graph.call_method("add_", (count, 1))
        g = graph.call_function(torch.exp, (graph.get_attr("count"),))
        y = graph.call_function(torch.add, (graph.call_function(torch.mul, (x, f)), g))
        graph.output((y, graph.call_function(torch.mul, (x, f)), w))

    gm = build(cfx, body)
    x = torch.rand(4)
    expected = copy.deepcopy(gm)(x)
    assert cfx.passes.run(gm, "const_fold")
    assert [n.op for n in gm.graph.nodes].count("get_attr") == 4
    assert not gm._folded_0.requires_grad
    assert gm.graph._faults(True) == []
    torch.testing.assert_close(copy.deepcopy(gm)(x), expected, rtol=0, atol=0)
    assert not cfx.passes.run(gm, "const_fold")


def test_numbers_are_computed_as_python_does():
    values = [0, 1, -1, 7, -3, 2**62, True, False, 0.0, -0.0, 2.5, -1e308, 1e308, float("inf")]
    unary = [operator.neg, operator.pos, operator.abs, operator.not_, operator.invert]
    binary = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
              operator.mod, operator.and_, operator.or_, operator.xor, operator.eq, operator.ne,
              operator.lt, operator.le, operator.gt, operator.ge]  # fmt: skip
    cases = [(f, (a,)) for f in unary for a in values]
    cases += [(f, (a, b)) for f in binary for a in values for b in values]
    graph = cfx.Graph()
    graph.output([graph.call_function(*case) for case in cases])
    assert graph._pass("const_fold")
    folded = 0
    for (function, args), value in zip(cases, next(reversed(graph.nodes)).args[0]):
        if isinstance(value, cfx.Node):
            continue  # left to Python
        folded += 1
        assert repr(value) == repr(function(*args)), (function, args)
    assert folded > len(cases) // 2
