"""Transformer: the same transformations with torch.fx and with cfx, and what only cfx does."""
import contextlib
import operator
import re

import pytest
from parity import growth, same

import cfx

torch = pytest.importorskip("torch")
pytest.importorskip("cfx.graph_module")
import torch.fx  # noqa: E402

ADDRESS = re.compile(r"graph_id=\d+|'seq_nr': -?\d+")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.p = torch.nn.Parameter(torch.ones(2))
        self.inner = torch.nn.Sequential(torch.nn.ReLU())

    def forward(self, x, y=3, *rest):
        a = torch.relu(self.linear(x)) + self.p
        b = a.neg()
        return {"r": self.inner(b), "l": [a, (b, y)]}


def show_graph(show, module):
    """Everything there is to see of a transformed module."""
    show(type(module).__name__, module.code, module.meta, module._tracer_cls)
    for node in module.graph.nodes:
        show(node.format_node(), node.type, ADDRESS.sub("", str(node.meta)))
    show(module.graph.owning_module is module, list(dict(module.named_parameters())))


def marked(fx):
    """A traced module whose nodes have metadata and types."""
    module = fx.symbolic_trace(Net())
    module.meta["of the module"] = 1
    for node in module.graph.nodes:
        node.meta["tag"] = node.name
        if node.op == "call_function":
            node.type = int
            node.meta.update(custom={"c": 1}, val=4, stack_trace=f"trace of {node}")
    return module


def odd(fx):
    """Names, types, defaults, dead code and arguments of all kinds."""
    graph = fx.Graph()
    x = graph.placeholder("x", type_expr=int, default_value=2)
    graph.placeholder("*rest")
    named = graph.create_node("call_function", operator.add, (x, 1), name="odd_name")
    other = graph.create_node("call_function", operator.add, (named, 1), name="add_7")
    graph.call_function(operator.neg, (x,)).meta["z"] = 2
    cat = graph.call_function(torch.cat, ([other, x],), {"dim": 0})
    item = graph.call_function(operator.getitem, (cat, (slice(x, None, 2), ..., None)))
    typed = graph.call_method("to", (item, torch.float32), {"device": torch.device("cpu")})
    mul = graph.call_method("__mul__", (typed, 2))
    keys = graph.call_method("keys", (mul,))
    graph.output((keys, {"k": getattr_of(graph, mul)}, None, x), type_expr=tuple)
    return fx.GraphModule({}, graph)


def getattr_of(graph, node):
    return graph.call_function(getattr, (node, "shape"))


# ---- plain ------------------------------------------------------------------------------------


@same
def test_plain(fx, show):
    for module in (fx.symbolic_trace(Net()), marked(fx), odd(fx)):
        transformer = fx.Transformer(module)
        show(transformer.new_graph is transformer.tracer.graph, transformer.tracer.root is module)
        show(type(transformer.tracer).__name__, transformer.name)
        show(transformer.tracer.is_leaf_module(torch.nn.Sequential(), "any"))
        before = str(module.graph)
        result = transformer.transform()
        show_graph(show, result)
        show(result.graph is transformer.new_graph, str(module.graph) == before)
        show(list(map(str, transformer.env)))


@same
def test_results(fx, show):
    torch.manual_seed(0)
    module = fx.symbolic_trace(Net())
    x = torch.randn(3, 2)
    show(module(x), fx.Transformer(module).transform()(x))


@same
def test_empty_results(fx, show):
    for result in ((None,), [], {}, 3):
        graph = fx.Graph()
        graph.placeholder("x")
        graph.output(result)
        show_graph(show, fx.Transformer(fx.GraphModule({}, graph)).transform())


def test_none():
    """torch.fx forgets the output of a graph that returns None, and then cannot compile it."""
    graph = cfx.Graph()
    graph.output(None)
    module = cfx.Transformer(cfx.GraphModule({}, graph)).transform()
    assert [n.op for n in module.graph.nodes] == ["output"] and module() is None


@same
def test_pytrees(fx, show):
    class Nested(torch.nn.Module):
        def forward(self, x):
            return {"sum": x["a"] + x["b"]}

    module = fx.symbolic_trace(Nested(), concrete_args={"x": {"a": fx.PH, "b": fx.PH}})
    transformed = fx.Transformer(module).transform()
    show(transformed.code.replace("torch.fx", "cfx"))
    show(transformed.graph._codegen is module.graph._codegen)


@same
def test_modules_in_two_places(fx, show):
    root = torch.nn.Module()
    root.b = root.a = torch.nn.ReLU()
    graph = fx.Graph()
    a = graph.call_module("a", (graph.placeholder("x"),))
    graph.output(graph.call_module("b", (a,)))
    show_graph(show, fx.Transformer(fx.GraphModule(root, graph)).transform())


@same
def test_twice(fx, show):
    """The metadata tells the whole way."""
    module = fx.Transformer(fx.Transformer(marked(fx)).transform()).transform()
    show_graph(show, module)


# ---- overriding -------------------------------------------------------------------------------


def swap(fx):
    """The example of torch.fx's documentation."""

    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            if target is torch.sigmoid:
                return torch.neg(*args, **kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            if target == "neg":
                call_self, *args_tail = args
                return call_self.sigmoid(*args_tail, **kwargs)
            return super().call_method(target, args, kwargs)

    return Swap


@same
def test_docs_example(fx, show):
    module = fx.symbolic_trace(lambda x: torch.sigmoid(x).neg())
    show_graph(show, swap(fx)(module).transform())
    for node in module.graph.nodes:
        node.meta["some"] = 1
    transformed = swap(fx)(module).transform()
    show_graph(show, transformed)
    x = torch.tensor([0.5, -1.0])
    show(torch.equal(transformed(x), torch.neg(x).sigmoid()))


@same
def test_every_step(fx, show):
    class Logging(fx.Transformer):
        def placeholder(self, target, args, kwargs):
            show("placeholder", target, args, dict(kwargs))
            return super().placeholder(target, args, kwargs)

        def get_attr(self, target, args, kwargs):
            show("get_attr", target, args, dict(kwargs))
            return super().get_attr(target, args, kwargs)

        def call_module(self, target, args, kwargs):
            show("call_module", target, str(args), dict(kwargs))
            return super().call_module(target, args, kwargs)

        def output(self, target, args, kwargs):
            show("output", target, str(args))
            return super().output(target, args, kwargs)

        def run_node(self, n):
            show("run_node", n.name)
            return super().run_node(n)

    show_graph(show, Logging(fx.symbolic_trace(Net())).transform())


@same
def test_several_nodes_for_one(fx, show):
    class Decompose(fx.Transformer):
        def call_function(self, target, args, kwargs):
            if target is torch.relu:
                return torch.where(args[0] > 0, args[0], 0 * args[0])
            return super().call_function(target, args, kwargs)

        def call_module(self, target, args, kwargs):
            if isinstance(self.fetch_attr(target), torch.nn.ReLU):
                return self.call_function(torch.relu, args, kwargs)
            return super().call_module(target, args, kwargs)

    show_graph(show, Decompose(marked(fx)).transform())


@same
def test_removal_and_constants(fx, show):
    class Remove(fx.Transformer):
        def call_method(self, target, args, kwargs):
            return args[0]

        def call_function(self, target, args, kwargs):
            return 3 if target is operator.neg else super().call_function(target, args, kwargs)

    show_graph(show, Remove(odd(fx)).transform())


@same
def test_tensors_as_values(fx, show):
    """A tensor among the values becomes an attribute of the module."""

    class Constant(fx.Transformer):
        def get_attr(self, target, args, kwargs):
            return torch.ones(2)

    module = fx.symbolic_trace(Net())
    transformed = Constant(module).transform()
    show(transformed.code, [name for name in vars(transformed) if "constant" in name])


@same
def test_wrong_targets(fx, show):
    transformer = fx.Transformer(fx.symbolic_trace(Net()))
    for step in ("placeholder", "get_attr", "call_module"):
        show(lambda: getattr(transformer, step)(3, (), {}))
    show(lambda: transformer.call_module("nope", (), {}))
    show.error(lambda: transformer.call_function("nope", (), {}))
    show.error(lambda: fx.Transformer(torch.nn.ReLU()), lambda: fx.Transformer())


@same
def test_errors(fx, show):
    class Failing(fx.Transformer):
        def call_method(self, target, args, kwargs):
            raise ValueError(f"no {target}")

    try:
        Failing(marked(fx)).transform()
    except ValueError as e:
        show(str(e).split("\n")[:4])  # then cfx says the line


# ---- only cfx ---------------------------------------------------------------------------------


def test_source_lines_stay():
    """A new node says where the user wrote what it was made from, not where it was made."""
    module = cfx.symbolic_trace(Net())
    places = {n.name: (n._location, n._scope) for n in module.graph.nodes}
    transformed = swap(cfx)(module).transform()
    for node in transformed.graph.nodes:
        if node.op not in ("placeholder", "output"):
            name = {"sigmoid": "neg"}.get(node.name, node.name)
            assert (node._location, node._scope) == places[name], node
    assert places["neg"][0][0] == __file__ and places["inner_0"][1] is not None


def test_regions():
    def region(function):
        graph = cfx.Graph()
        graph.output((graph.call_function(function, (graph.placeholder("x"),)),))
        return graph

    class Swap(cfx.Transformer):
        def call_function(self, target, args, kwargs):
            swapped = {operator.neg: abs}.get(target, target)
            return super().call_function(swapped, args, kwargs)

    graph = cfx.Graph()
    x = graph.placeholder("x")
    branches = (region(operator.neg), region(operator.pos))
    graph.output(graph.call_function(cfx.cond, (x, *branches), {"operands": (x,)}))
    module = cfx.GraphModule({}, graph)
    before = cfx.text(graph)
    transformed = Swap(module).transform()
    assert not transformed.graph.verify() and cfx.text(module.graph) == before
    assert transformed(-3) == (3,) and transformed(0) == (0,) and module(-3) == (3,)
    assert "operator.neg" in before and "operator.neg" not in cfx.text(transformed.graph)
    assert cfx.equal(cfx.Transformer(module).transform().graph, module.graph)


def test_no_leaks():
    module = marked(cfx)

    def work():
        swap(cfx)(module).transform()
        with contextlib.suppress(RuntimeError):
            cfx.Transformer(module).call_module("nope", (), {})

    assert growth(work, 300) < 1 << 20
