"""Copies: deepcopy, copy, pickle, node_copy and graph_copy."""
import collections
import copy
import operator
import os
import pickle
import random
import secrets
import time
import warnings

import pytest
from parity import same

import cfx

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")
Pair = collections.namedtuple("Pair", "a b")
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


class Opaque:
    def __init__(self, value=1):
        self.value = value

    def __eq__(self, other):
        return type(other) is Opaque and other.value == self.value

    __hash__ = None

    def __repr__(self):
        return "Opaque()"


class MyGraph(cfx.Graph):
    """A graph of one's own, with something of its own."""

    def __init__(self, *args, note="", **kwargs):
        super().__init__(*args, **kwargs)
        self.note = [note]

    def hello(self):
        return "hello"


class CountingGraph(cfx.Graph):
    """Overrides what others call, too."""

    created = 0

    def create_node(self, *args, **kwargs):
        type(self).created += 1
        return super().create_node(*args, **kwargs)


def sample(cls=cfx.Graph, **kwargs):
    g = cls(**kwargs)
    x = g.placeholder("x", int, 3)
    y = g.placeholder("y", torch.Tensor)
    w = g.get_attr("layer.weight")
    a = g.call_function(torch.add, (x, [y, (1, 2.5, None)]), {"alpha": {"k": w}})
    b = g.call_method("view", (a, slice(x, None), ..., "text", b"b", 2j, range(3), {1, 2}))
    c = g.call_module("m.0", (b, Pair(a, 10**30), torch.float16, torch.device("cpu"), Opaque()))
    g.call_function(operator.add, (c, torch.ops.aten.add.Tensor), type_expr=list[int])
    g.output([a, {"k": c}], type_expr=tuple)
    a._location = ("model.py", 7)
    return g


def graph_state(g):
    """All that can be read of a graph."""
    return [
        (n.op, n.name, n.target, repr(n.args), repr(n.kwargs), n.type, n._location,
         [u.name for u in n.users], [i.name for i in n.all_input_nodes])
        for n in g.nodes
    ]


def ways():
    yield copy.deepcopy
    yield copy.copy
    for protocol in PROTOCOLS:
        yield lambda g, p=protocol: pickle.loads(pickle.dumps(g, p))


# ---- whole graphs -------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ways())
def test_a_copy_is_equal_and_independent(way):
    g = sample()
    before = graph_state(g)
    h = way(g)
    assert graph_state(h) == before
    assert h.verify() == [] and type(h) is cfx.Graph
    assert all(n.graph is h for n in h.nodes)
    assert not set(g.nodes) & set(h.nodes)
    for n in list(h.nodes)[::-1]:
        h.erase_node(n)
    assert graph_state(g) == before


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_names_stay_taken(protocol):
    g = cfx.Graph()
    x = g.placeholder("x")
    for n in [g.call_function(operator.add, (x, i)) for i in range(3)]:
        g.erase_node(n)
    x.name = "no identifier"
    h = pickle.loads(pickle.dumps(g, protocol))
    assert h._graph_namespace._used_names >= {"x", "add", "add_1", "add_2"}
    assert h.placeholder("x").name == "x_1" and h.call_function(operator.add).name == "add_3"


@pytest.mark.parametrize("way", ways())
def test_users_keep_their_order(way):
    g = cfx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    users = [g.call_function(operator.add, (x, y)) for _ in range(6)]
    users[2].args = (y, x)
    users[0].kwargs = {"k": x}
    users[4].args = users[4].args
    expected = ["add_1", "add_3", "add_5", "add_2", "add", "add_4"]
    assert [n.name for n in x.users] == expected
    h = way(g)
    a, b = h.find_nodes(op="placeholder")
    assert [n.name for n in a.users] == expected and [n.name for n in b.users] == expected
    assert h.verify() == []


@pytest.mark.parametrize("way", ways())
def test_nodes_out_of_order(way):
    """A copy is a copy even of what lint complains about."""
    g = cfx.Graph()
    a = g.call_function(operator.neg, (1,))
    b = g.call_function(operator.neg, (a,))
    b.append(a)
    a.kwargs = {"self": a, "b": [b]}
    b.name = "neg"
    h = way(g)
    assert str(h) == str(g)
    c, d = h.nodes
    assert c.args == (d,) and d.kwargs == {"self": d, "b": [c]}


@same
def test_deepcopy(fx, show):
    g = fx.Graph()
    x = g.placeholder("x")
    shared, tensor = [1], torch.ones(2)
    a = g.call_function(torch.relu, (x, tensor, shared))
    g.output([a, {"k": a}], type_expr=list)
    a.meta["v"], a.foo = shared, 3
    g._tracer_extras = {"q": 1}
    memo = {}
    d = copy.deepcopy(g, memo)
    b = list(d.nodes)[1]
    show(str(d), id(g) in memo, b.args[1] is a.args[1], b.meta, b.meta is a.meta)
    show(b.meta["v"] is shared, hasattr(b, "foo"), d.output_node().type, d._owning_module)
    show(d._tracer_extras, d._codegen is g._codegen, type(d._codegen).__name__, d._root is g._root)
    both = copy.deepcopy([g, g])
    show(both[0] is both[1])
    pair = copy.deepcopy([g, x])
    show(pair[1].graph is pair[0])
    g.inserting_before(x)
    d = copy.deepcopy(g)
    d.placeholder("n")
    show(list(d.nodes))
    g.owning_module = torch.nn.Module()
    show(copy.deepcopy(g).owning_module, fx.Graph(tracer_cls=int)._tracer_cls)
    show(copy.deepcopy(fx.Graph(tracer_cls=int))._tracer_cls)
    show(copy.deepcopy(x) is x, copy.deepcopy(x).graph is g, copy.deepcopy(x).name)


def test_deepcopy_of_a_node_is_the_node_of_the_copied_graph():
    g = cfx.Graph()
    x = g.placeholder("x")
    copied_graph, copied = copy.deepcopy([g, x])
    assert copied is list(copied_graph.nodes)[0]
    assert copy.copy(x) is x
    assert copy.deepcopy(g._root).op == "root"
    g.erase_node(x)
    assert copy.deepcopy(x)._erased


def test_copies_of_a_class_of_ones_own():
    g = sample(MyGraph, note="mine")
    for way in ways():
        h = way(g)
        assert type(h) is MyGraph and h.hello() == "hello" and h.note == ["mine"]
        assert h.verify() == [] and len(h.nodes) == len(g.nodes)
    assert copy.deepcopy(g).note is not g.note
    CountingGraph.created = 0
    h = sample(CountingGraph)
    assert CountingGraph.created == len(h.nodes)  # as in torch.fx: all methods go that way
    pickle.loads(pickle.dumps(h))


def nested_regions(depth):
    """A graph of so many levels, each with the next one twice, as both branches of a cond."""
    g = cfx.Graph()
    x = g.placeholder("x")
    if depth:
        region = nested_regions(depth - 1)
        x = g.call_function(cfx.cond, (x, region), {"otherwise": region, "operands": (x,)})
    x.meta["depth"] = depth
    g.output(x)
    return g


def test_deepcopy_copies_the_metadata_inside_regions():
    g = nested_regions(40)
    h = copy.deepcopy(g)
    for depth in range(40, 0, -1):
        (a,), (b,) = (graph.find_nodes(op="call_function", target=cfx.cond) for graph in (g, h))
        assert b.meta == {"depth": depth} and b.meta is not a.meta
        assert b.args[1] is b.kwargs["otherwise"]
        g, h = a.args[1], b.args[1]
    assert [n.meta for n in h.nodes] == [{"depth": 0}, {}]


def test_deepcopy_copies_regions():
    g, region = cfx.Graph(), cfx.Graph()
    region.output(region.call_function(operator.neg, (region.placeholder("x"),)))
    x = g.placeholder("x")
    n = g.call_function(cfx.cond, (x, region, region, (x,)))
    g.output(n)
    for way in ways():
        h = way(g)
        (m,) = h.find_nodes(op="call_function", target=cfx.cond)
        assert m.args[1] is m.args[2] and m.args[1] is not region
        assert str(m.args[1]) == str(region) and h.verify() == []


# ---- pickle -------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pickle_keeps_metadata_and_attributes(protocol):
    g = cfx.Graph(tracer_cls=Opaque, tracer_extras={"q": 1})
    x = g.placeholder("x")
    y = g.call_function(operator.neg, (x,))
    x.meta["other"] = [y, {"me": x}]
    x.meta["graph"] = g
    y.tag = x
    y.stack_trace = "here"
    g.note = "note"
    h = pickle.loads(pickle.dumps(g, protocol))
    a, b = h.nodes
    assert a.meta["other"] == [b, {"me": a}] and a.meta["graph"] is h
    assert b.tag is a and b.stack_trace == "here" and vars(a) == {}
    assert h.note == "note" and h._tracer_cls is Opaque and h._tracer_extras == {"q": 1}


def test_pickle_of_nodes():
    g = cfx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    y.name = "x"
    for n in (x, y):
        m = pickle.loads(pickle.dumps(n))
        assert m.name == "x" and m.target == n.target and len(m.graph.nodes) == 2
    h, a, b, root = pickle.loads(pickle.dumps((g, x, y, g._root)))
    assert [a, b] == list(h.nodes) and root is h._root
    u = pickle.loads(pickle.dumps(x.users))
    assert u == {} and type(u) is dict
    nodes = pickle.loads(pickle.dumps(list(g.nodes)))
    assert [n.target for n in nodes] == ["x", "y"] and nodes[0].graph is nodes[1].graph
    g.erase_node(x)
    gone = pickle.loads(pickle.dumps(x))
    assert gone._erased and gone.name == "x" and gone.op == "placeholder"


def test_pickle_of_owning_module():
    g = sample()
    g.owning_module = torch.nn.Linear(1, 1)
    assert type(pickle.loads(pickle.dumps(g)).owning_module) is torch.nn.Linear


def test_what_cannot_be_pickled_says_so():
    g = cfx.Graph()
    g.call_function(lambda x: x)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(g)
    h = cfx.Graph()
    h.placeholder("x").meta["f"] = lambda: 1
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(h)


def chain(n):
    g = cfx.Graph()
    x = g.placeholder("x")
    for _ in range(n):
        x = g.call_function(operator.neg, (x,))
    g.output(x)
    return g


def test_long_chains_do_not_recurse():
    g = chain(200_000)
    started = time.process_time()
    h = pickle.loads(pickle.dumps(g))
    assert time.process_time() - started < 30
    assert cfx.equal(g, h) and cfx.equal(g, copy.deepcopy(g))
    last = pickle.loads(pickle.dumps(g._root.prev))
    assert last.op == "output" and len(last.graph.nodes) == 200_002


def test_metadata_full_of_nodes_is_linear():
    g = chain(20_000)
    for n in g.nodes:
        n.meta["next"] = n.next
    started = time.process_time()
    h = pickle.loads(pickle.dumps(g))
    assert time.process_time() - started < 10
    assert all(n.meta["next"] is n.next for n in h.nodes)


# ---- node_copy and graph_copy -------------------------------------------------------------------


@same
def test_node_copy(fx, show):
    g = fx.Graph()
    x = g.placeholder("x", type_expr=int)
    a = g.call_function(torch.relu, (x, [x]), {"k": x}, type_expr=list)
    g.output(a)
    value = [1]
    a.meta["v"], a.foo = value, 3
    k = fx.Graph()
    p = k.placeholder("p")
    c = k.node_copy(a, lambda n: p)
    show(c, c.args, c.kwargs, c.type, c.meta, c.meta is a.meta, c.meta["v"] is value)
    show(hasattr(c, "foo"), k.node_copy(a, lambda n: 5).args, k.node_copy(x).name)
    show(k.node_copy(node=a, arg_transform=lambda n: [p, n.name]).args)
    show(k.node_copy(g.output_node(), lambda n: p), str(k), dict(p.users))
    show(g.node_copy(a).args, g.node_copy(a, lambda n: n).args, str(g))
    show(lambda: k.node_copy(a, lambda n: 1 / 0), len(k.nodes))
    show.error(lambda: k.node_copy(), lambda: k.node_copy(a, 5))


@same
def test_node_copy_with_nodes_of_another_graph(fx, show):
    """As fairscale's shard_model does: a node gets a placeholder of the next graph as its argument,
    and is then copied there."""
    g, k = fx.Graph(), fx.Graph()
    x = g.placeholder("x")
    a = g.call_function(torch.add, (x, 1), {"alpha": x}, type_expr=int)
    a.meta["v"] = 3
    p = k.placeholder("p")
    a.args, seen = (p, [x]), []
    c = k.node_copy(a, lambda n: seen.append(n.name) or p)
    show(seen, c.args, c.kwargs, c.name, c.type, c.meta, c.args[0] is p, c.all_input_nodes)
    d = k.node_copy(a, lambda n: 2 if n is x else n)
    k.output((c, d))
    show(d.args, d.kwargs, c in p.users, d in p.users, k.python_code("self").src)
    show(lambda: k.node_copy(a, lambda n: 1 / 0), len(k.nodes))
    a.args = (p,)
    a.kwargs = {}
    show(k.node_copy(a).args[0] is p)


@same
def test_graph_copy(fx, show):
    g = fx.Graph()
    x = g.placeholder("x", type_expr=int)
    a = g.call_function(torch.relu, (x,))
    g.output([a, {"k": x}], type_expr=int)
    a.meta["v"], a.foo, g.output_node().meta["om"] = [1], 3, 1
    h, mapping = fx.Graph(), {}
    show(h.graph_copy(g, mapping), list(h.nodes), {k.name: v.name for k, v in mapping.items()})
    b = mapping[a]
    show(b.meta, b.meta is a.meta, b.meta["v"] is a.meta["v"], hasattr(b, "foo"), mapping[x].type)
    h = fx.Graph()
    result = h.graph_copy(g, {}, return_output_node=True)
    show(result, result[1] is g.output_node(), list(h.nodes))
    h = fx.Graph()
    given = h.placeholder("given")
    show(h.graph_copy(g, {x: given}), str(h))
    show(h.graph_copy(g, {x: given}), str(h))
    show(fx.Graph().graph_copy(fx.Graph(), {}))
    show.error(lambda: fx.Graph().graph_copy(g), lambda: fx.Graph().graph_copy())


def test_graph_copy_into_itself():
    g = cfx.Graph()
    x = g.placeholder("x")
    g.call_function(operator.neg, (x,))
    assert g.graph_copy(g, {}) is None
    assert len(g.nodes) == 4 and g.verify() != [] and g.lint() is None


def test_graph_copy_that_fails_leaves_the_graph_as_it_was():
    g = cfx.Graph()
    a = g.call_function(operator.neg, (1,))
    b = g.call_function(operator.neg, (a,))
    c = g.call_function(operator.neg, (b,))
    a.prepend(c)  # uses what comes later
    h = cfx.Graph()
    h.placeholder("x")
    mapping = {}
    with pytest.raises(KeyError):
        h.graph_copy(g, mapping)
    assert str(h) == "graph():\n    %x : [num_users=0] = placeholder[target=x]" and mapping == {}
    for bad in (5, None, "g"):
        with pytest.raises(TypeError):
            h.graph_copy(bad, {})
        with pytest.raises(TypeError):
            h.graph_copy(g, bad)


def test_metadata_is_copied_after_a_failing_hook():
    class Owner:
        _create_node_hooks = [lambda n: 1 / 0]

    g, h = cfx.Graph(), cfx.Graph(Owner())
    x = g.placeholder("x")
    x.meta["v"] = 1
    for edit in (lambda: h.node_copy(x), lambda: h.graph_copy(g, {}), lambda: h.placeholder("y")):
        with pytest.raises(ZeroDivisionError):
            edit()
        assert list(h.nodes) == [] and h.verify() == []


def test_pickle_when_no_order_explains_the_users():
    """insert_arg leaves the order of users alone: here each node began to use both inputs first."""
    g = cfx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    a, b = g.call_function(len, (x,)), g.call_function(len, (y,))
    a.insert_arg(1, y)
    b.insert_arg(1, x)
    assert list(x.users) == [a, b] and list(y.users) == [b, a]
    assert cfx.equal(pickle.loads(pickle.dumps(g)), g)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pickle_of_nodes_as_keys(protocol):
    g = cfx.Graph()
    x = g.placeholder("x")
    tree = {x: 1, 0: [{(x, (x, 2)): x}], (0,): Pair({x, 0}, slice({x: 3}, None))}
    g.call_function(operator.neg, (tree,), {"k": {x: frozenset([x])}})
    back = pickle.loads(pickle.dumps(g, protocol))
    y, neg = back.nodes
    assert neg.args == (
        {y: 1, 0: [{(y, (y, 2)): y}], (0,): Pair({y, 0}, slice({y: 3}, None))},
    )
    assert neg.kwargs == {"k": {y: frozenset([y])}}
    assert type(neg.args[0][0,]) is Pair and list(y.users) == [neg]


def test_copying_nested_inputs_warns_of_nothing(recwarn):
    args = {"pair": (cfx.PH, cfx.PH)}
    gm = cfx.symbolic_trace(lambda x, pair: torch.relu(x + pair[0]) * pair[1], concrete_args=args)
    copied, x = copy.deepcopy(gm), torch.ones(2)
    assert torch.equal(copied(x, (x, x)), gm(x, (x, x)))
    info = copy.deepcopy(gm.graph)._codegen.pytree_info
    assert info == gm.graph._codegen.pytree_info
    assert info.orig_args is not gm.graph._codegen.pytree_info.orig_args
    assert not recwarn.list


# ---- functions of modules that say that they are methods -------------------------------------


def _draws(x):
    a = x * random.random() + random.choice([1, 2]) + numpy.random.rand()
    torch.manual_seed(3)
    return a + len(os.urandom(3)) + 0 * secrets.choice([1, 2]) + 0 * secrets.randbits(3)


def _targets(graph):
    return [n.target for n in graph.nodes if n.op == "call_function"]


def test_functions_of_modules_are_pickled_by_name():
    module = cfx.script(_draws)
    targets = _targets(module.graph)
    again = pickle.loads(pickle.dumps(module))
    read = cfx.parse(cfx.text(module.graph))
    assert random.random in targets and secrets.choice in targets
    for other in (again.graph, read):
        assert all(t is u or t == u for t, u in zip(_targets(other), targets, strict=True))


def test_functions_of_modules_are_imported_by_name(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cfx.script(_draws).to_folder(tmp_path, "M")
    written = (tmp_path / "module.py").read_text()
    for line in ("from random import random as random_random", "from secrets import choice as",
                 "from secrets import randbits as", "from numpy.random import rand as"):
        assert line in written


def test_methods_of_objects_are_not_copied():
    graph = cfx.Graph()
    graph.output(graph.call_function(random.Random(3).choice, ([1, 2],)))
    with pytest.raises(pickle.PicklingError, match="Random.choice of an object .*Random"):
        pickle.dumps(graph)
    with pytest.raises(ValueError, match="another object has the name random.choice"):
        cfx.text(graph)
