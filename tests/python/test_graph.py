"""Graph, method by method: the same calls on torch.fx and on cfx."""
import builtins
import collections
import operator
import re

import pytest
from parity import outcome, same

import cfx

torch = pytest.importorskip("torch")
Pair = collections.namedtuple("Pair", "a b")


def identity(x):
    return x


class Owner(torch.nn.Module):
    """A module with torch.fx's lists of hooks, as a GraphModule has them."""

    def __init__(self):
        super().__init__()
        self._create_node_hooks = []
        self._erase_node_hooks = []
        self._replace_hooks = []


WHERE = re.compile(r"(?<=RuntimeError: )node %\S+: ")


def words(call):
    """What lint says, without where (cfx adds it) and what to do about it (likewise)."""
    text = WHERE.sub("", outcome(call))
    return text.replace(" Rename one of the two", "")


def names(nodes):
    return [n.name for n in nodes]


# ---- creating ---------------------------------------------------------------------------------


@same
def test_create_node_checks_its_opcode_and_target(fx, show):
    g = fx.Graph()
    for op in ("bad", "", None, 5):
        show.error(lambda: g.create_node(op, "t"))
    show.error(lambda: g.create_node("call_function", "relu"))
    show(lambda: g.create_node("call_function", 5))
    show.error(lambda: g.create_node("call_method", torch.relu))
    for op in ("call_module", "get_attr", "placeholder", "output", "call_method"):
        show(lambda: g.create_node(op, 5), lambda: g.create_node(op, None))
    show.error(lambda: g.create_node("output", torch.relu))
    show.error(lambda: g.call_function("relu"), lambda: g.call_method(torch.relu))
    show(lambda: g.call_module(5), lambda: g.get_attr(5), lambda: g.call_method(None))
    show(len(g.nodes))


@same
def test_create_node_checks_its_arguments(fx, show):
    g = fx.Graph()
    x = g.placeholder("x")
    for args in ([x], 5, x, "a", {}):
        show(lambda: g.create_node("call_function", torch.relu, args))
    for kwargs in ([1], [("a", 1)], 5):
        show(lambda: g.create_node("call_function", torch.relu, (x,), kwargs))
    show(lambda: g.create_node("call_function", torch.relu, None, None).args)
    show(lambda: g.create_node("call_function", torch.relu, torch.Size([1])).args)
    ordered = collections.OrderedDict(a=1)
    show(lambda: g.create_node("call_function", torch.relu, (x,), ordered).kwargs)
    show.error(lambda: g.create_node("call_function", torch.relu, name=5))
    show(lambda: g.create_node("call_function", torch.relu, type_expr="anything").type)
    show.error(lambda: g.create_node(), lambda: g.create_node("placeholder"))
    show.error(lambda: g.create_node("placeholder", "x", (), {}, None, None, 1))
    show.error(lambda: g.create_node("placeholder", "x", nothing=1))
    show(len(g.nodes))


@same
def test_every_way_to_create_a_node(fx, show):
    g = fx.Graph()
    nodes = [
        g.placeholder("x"),
        g.placeholder("y", int, 3),
        g.placeholder("z", default_value=None),
        g.placeholder(name="w", type_expr=torch.Tensor),
        g.placeholder("*args"),
        g.placeholder("**kw"),
        g.get_attr("a.b.c"),
        g.get_attr("weight", type_expr=torch.Tensor),
        g.call_function(torch.relu),
        g.call_function(torch.add, (1,), {"alpha": 2}, int, "named"),
        g.call_function(the_function=operator.add, args=(1, 2), name="sum"),
        g.call_method("relu", (1,)),
        g.call_method(method_name="add", args=(1,), kwargs={"alpha": 1}, type_expr=int),
        g.call_module("sub.0", (1,)),
        g.call_module(module_name="lin", args=(1,), kwargs={"a": 1}, type_expr=int),
        g.create_node("call_method", "view", (1,), {"k": 2}, "wish", str),
        g.create_node(op="call_function", target=len, args=(), kwargs={}, name=None),
        g.output((1, [2])),
        g.output(result=None, type_expr=int),
    ]
    for n in nodes:
        show((n.op, n.name, n.target, n.args, n.kwargs, n.type, n.meta, n.stack_trace))
    show([list(g.nodes)[i] is n for i, n in enumerate(nodes)], str(g))


@same
def test_names(fx, show):
    g = fx.Graph()
    targets = [torch.relu, torch.nn.functional.relu, len, operator.getitem, torch.Tensor.add_]
    targets += [torch.ops.aten.add.Tensor, torch.ops.aten.add, dict, int, Pair, operator.add]
    for target in targets * 2:
        show(lambda: g.call_function(target).name)
    for name in ("a.b", "1a", "", "a b", "FooBar", "__x__", "for", "int", "x_1", "x", "x", "é"):
        show(lambda: g.call_method(name).name, lambda: g.placeholder(name).name)
        show(lambda: g.create_node("call_method", "m", name=name).name)
        show(lambda: g._target_to_str(name))
    show.error(lambda: g._target_to_str(5), lambda: g._target_to_str(None))
    show(lambda: g._target_to_str(torch.nn.functional.relu))
    show(sorted(g._graph_namespace._used_names))


@same
def test_nodes_in_arguments_become_uses(fx, show):
    g = fx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    args = (x, [y, (x,)], {"k": {"z": x}}, slice(x, None), Pair(y, [x]), {x}, {x: 1})
    for i, arg in enumerate(args):
        n = g.call_function(identity, (arg,), name=f"n{i}")
        show(n.args, n.all_input_nodes, list(n._input_nodes))
    show(dict(x.users), dict(y.users))


@same
def test_owning_module_is_asked_for_what_a_node_names(fx, show):
    owner = Owner()
    owner.lin = torch.nn.Linear(1, 1)
    owner.plain = 3
    owner.register_buffer("buf", torch.ones(1))
    g = fx.Graph(owner)
    for path in ("nope", "nope.deep", "lin", "plain", "lin.weight", "buf", "lin.nope", ""):
        show(lambda: g.get_attr(path))
    for path in ("lin", "nope", "plain", "lin.weight", "nope.deep"):
        show(lambda: g.call_module(path))
    show(g.create_node("call_module", "nope"), g.create_node("get_attr", "nope"))


# ---- insertion points ---------------------------------------------------------------------------


@same
def test_insertion_points(fx, show):
    g = fx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    point = g.inserting_before(y)
    show(type(point).__name__, sorted(vars(point)), point.__enter__())
    g.placeholder("a")
    show(names(g.nodes))
    point.__exit__(None, None, None)
    g.placeholder("b")
    show(names(g.nodes))
    with g.inserting_after(x):
        g.placeholder("n1"), g.placeholder("n2")
        with g.inserting_before(y):
            g.placeholder("m")
        g.placeholder("n3")
    show(names(g.nodes))
    with g.inserting_after():
        g.placeholder("s")
    with g.inserting_before():
        g.placeholder("t")
    with g.inserting_after(None):
        g.placeholder("s2")
    with g.inserting_before(None):
        g.placeholder("t2")
    show(names(g.nodes))
    with pytest.raises(ValueError), g.inserting_before(x):
        raise ValueError
    g.placeholder("w")
    show(names(g.nodes))
    g.inserting_after(g._root)
    g.placeholder("first")
    g.inserting_before(g._root)
    g.placeholder("last")
    show(names(g.nodes))


@same
def test_insertion_points_refuse_what_is_not_in_the_graph(fx, show):
    g = fx.Graph()
    g.placeholder("x")
    other = fx.Graph().placeholder("q")
    show(lambda: g.inserting_before(other), lambda: g.inserting_after(other))
    show(lambda: g.inserting_before(5), lambda: g.inserting_after("x"))
    g.placeholder("z")
    show(names(g.nodes))


@same
def test_insertion_point_whose_node_is_erased(fx, show):
    g = fx.Graph()
    g.placeholder("x")
    y = g.placeholder("y")
    g.inserting_before(y)
    g.erase_node(y)
    g.placeholder("n")
    show(names(g.nodes))
    h = fx.Graph()
    a, b, c = (h.placeholder(name) for name in "abc")
    with h.inserting_before(b):
        with h.inserting_before(c):
            h.erase_node(b)
        h.placeholder("n")
    h.placeholder("end")
    show(names(h.nodes))


# ---- iterating ----------------------------------------------------------------------------------


def five(fx):
    g = fx.Graph()
    for i in range(5):
        g.placeholder(f"p{i}")
    return g


def walk(show, g, edit, backwards=False):
    seen = []
    for n in reversed(g.nodes) if backwards else g.nodes:
        seen.append(n.name)
        edit(n, seen)
        if len(seen) > 20:
            break
    show(seen, names(g.nodes))


@same
def test_iterating_while_erasing(fx, show):
    for backwards in (False, True):
        g = five(fx)
        walk(show, g, lambda n, seen: g.erase_node(n), backwards)
        g = five(fx)
        walk(show, g, lambda n, seen: n.name == "p2" and g.erase_node(n.next), backwards)
        g = five(fx)
        walk(show, g, lambda n, seen: n.name == "p2" and g.erase_node(n.prev), backwards)
        g = five(fx)

        def erase_two(n, seen):
            if n.name == "p1":
                g.erase_node(n)
                g.erase_node(list(g.nodes)[1])

        walk(show, g, erase_two, backwards)
    g = five(fx)
    it = iter(g.nodes)
    show(next(it), next(it))
    g.erase_node(list(g.nodes)[2])
    show(list(it), list(it), next(it))
    g = five(fx)
    it = iter(g.nodes)
    g.erase_node(next(it))
    g.erase_node(list(g.nodes)[0])
    show(list(it))


@same
def test_iterating_while_inserting_and_moving(fx, show):
    for backwards in (False, True):
        for point in ("inserting_after", "inserting_before"):
            g = five(fx)

            def insert(n, seen):
                if n.name == "p1":
                    with getattr(g, point)(n):
                        g.placeholder("new")

            walk(show, g, insert, backwards)
        for end in (0, -1):
            g = five(fx)

            def move(n, seen):
                if n.name == "p2" and len(seen) < 9:
                    list(g.nodes)[end].append(n)

            walk(show, g, move, backwards)
    g = five(fx)
    walk(show, g, lambda n, seen: len(seen) < 9 and g.placeholder("z"))


@same
def test_an_exhausted_iterator_starts_again(fx, show):
    g = fx.Graph()
    show(lambda: next(iter(g.nodes)))
    g.placeholder("x"), g.placeholder("y")
    it, back = iter(g.nodes), reversed(g.nodes)
    show(list(it), list(it), list(it), list(back), list(back), iter(it) is it)


@same
def test_node_list(fx, show):
    g = fx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    show(len(g.nodes), g.nodes is g.nodes, x in g.nodes, list(reversed(g.nodes)), 5 in g.nodes)
    show(fx.Graph().placeholder("x") in g.nodes)
    show.error(lambda: g.nodes[0], lambda: next(g.nodes))
    show(g.nodes == g.nodes, bool(fx.Graph().nodes))
    show(g.nodes.graph is g, g.nodes.direction, type(g.nodes).__qualname__)
    show.error(lambda: setattr(g, "nodes", []), lambda: len(reversed(g.nodes)))
    g.erase_node(x)
    show(x in g.nodes, list(g.nodes), len(g.nodes))
    back = fx.graph._node_list(g, "_prev")
    show(list(back), list(reversed(back)), back.direction)
    show(lambda: fx.graph._node_list(g, "bad"))


# ---- erasing ------------------------------------------------------------------------------------


@same
def test_erase_node(fx, show):
    g = fx.Graph()
    x = g.placeholder("x")
    a = g.call_function(torch.relu, (x,))
    b = g.call_function(torch.relu, (a,))
    g.output(b)
    show(lambda: g.erase_node(a), lambda: g.erase_node(x))
    show(str(g))
    show(lambda: g.erase_node(g.output_node()), lambda: g.erase_node(b))
    show((b._erased, b.kwargs, b.name, b.op, b.next, b.prev, b.graph is g, dict(b.users)))
    show(dict(a.users), repr(b), len(g.nodes), str(g))
    show(lambda: g.erase_node(b), lambda: fx.Graph().erase_node(a))
    show.error(lambda: fx.Graph().erase_node(x))
    show(g.placeholder("relu_1").name)


def test_erase_node_refuses_what_is_no_node():
    g = cfx.Graph()
    for bad in (None, 5, "x", g, g._root):
        with pytest.raises((TypeError, RuntimeError)):
            g.erase_node(bad)


@same
def test_clear_nodes(fx, show):
    g = fx.Graph()
    x = g.placeholder("x")
    y = g.call_function(torch.relu, (x,))
    show(lambda: g._clear_nodes(), list(g.nodes), g._len, g._root.next is g._root)
    show(g.find_nodes(op="placeholder"), g.find_nodes(op="call_function", target=torch.relu))
    show(x._erased, y._erased, dict(x.users), g.placeholder("x").name)
    show(list(g.nodes), g._len, sorted(g._graph_namespace._used_names))
    g = fx.Graph()
    g.inserting_before(g.placeholder("x"))
    g._clear_nodes()
    g.placeholder("q")
    show(list(g.nodes))


# ---- finding ------------------------------------------------------------------------------------


@same
def test_find_nodes(fx, show):
    g = fx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    a = g.call_function(torch.relu, (x,))
    b = g.call_function(torch.add, (x, y))
    with g.inserting_before(a):
        g.call_function(torch.relu, (y,))
    g.call_method("relu", (x,)), g.call_method("add", (x,)), g.call_module("lin", (x,))
    g.get_attr("w")
    show(lambda: g.output_node())
    g.output((a,))
    show(g.output_node())

    def find(op, target=None, **options):
        show(lambda: g.find_nodes(op=op, target=target, **options))

    for op in ("placeholder", "call_method", "call_module", "get_attr", "output", "root", "bad"):
        find(op)
    find(None), find("call_function"), find("call_function", "relu"), find("call_method", "add")
    find("placeholder", "x"), find("placeholder", "zz"), find("call_method", torch.add)
    find("call_function", torch.relu), find("call_function", torch.relu, sort=False)
    find("call_function", torch.neg), find("call_function", identity)
    show.error(lambda: g.find_nodes(), lambda: g.find_nodes("placeholder"))
    show.error(lambda: g.find_nodes(op="call_function", target=[]))
    a.target = torch.neg
    find("call_function", torch.relu), find("call_function", torch.neg)
    x.name = x.target = "foo"
    find("placeholder", "foo"), find("placeholder", "x")
    b.op, b.target = "call_method", "bb"
    find("call_method"), find("call_function", torch.add), find("call_method", "bb")
    g.output((b,))
    show(g.output_node())
    g.erase_node(b) if not b.users else None
    find("output")


# ---- checking -----------------------------------------------------------------------------------


@same
def test_lint(fx, show):
    def check(build):
        g = fx.Graph()
        build(g)
        show(words(g.lint))

    def chain(g):
        x = g.placeholder("x")
        a = g.call_function(torch.relu, (x,))
        return x, a, g.call_function(torch.relu, (a,))

    def swapped(g):
        x, a, b = chain(g)
        b.append(a)

    def same_name(g):
        g.placeholder("x")
        g.placeholder("y").name = "x"

    def text_as_function(g):
        g.call_function(torch.relu).target = "s"

    def foreign(g):
        g.call_function(torch.relu, (fx.Graph().placeholder("z"),))

    def foreign_keyword(g):
        g.call_function(torch.relu, (), {"k": [fx.Graph().placeholder("z")]})

    def after_output(g):
        x, a, b = chain(g)
        g.output(a)
        g.call_function(torch.relu, (a,))
        g.output(b)

    def late_placeholder(g):
        chain(g)
        g.placeholder("late")
        g.placeholder("x").target = "x"

    def own_argument(g):
        a = g.call_function(torch.relu, (3,))
        a.args = (a,)

    def no_owner(g):
        g.get_attr("w")
        g.call_module("m")

    for build in (chain, swapped, same_name, text_as_function, foreign,
                  foreign_keyword, after_output, late_placeholder, own_argument, no_owner,
                  lambda g: None, lambda g: g.call_function(lambda x: x)):
        check(build)


@same
def test_lint_looks_into_the_owning_module(fx, show):
    root = Owner()
    root.lin, root.i, root.plain = torch.nn.Linear(1, 1), 3, torch.ones(1)
    root.sub = torch.nn.Module()
    root.sub.t = torch.ones(1)
    root.register_buffer("buf", torch.ones(1))
    for path in ("lin", "lin.weight", "i", "sub", "sub.t", "nope", "sub.nope", "nope.x", "i.x",
                 "plain", "lin.weight.data", "buf", ""):
        for op in ("get_attr", "call_module"):
            g = fx.Graph(root)
            g.create_node(op, path)
            show(words(g.lint))


@same
def test_eliminate_dead_code(fx, show):
    aten = torch.ops.aten
    g = fx.Graph()
    x, w = g.placeholder("x"), g.placeholder("unused")
    a = g.call_function(torch.relu, (x,))
    g.call_function(torch.relu, (a,))
    c = g.call_function(torch.neg, (x,))
    g.get_attr("w"), g.call_method("relu_", (x,)), g.call_function(torch.rand, (2,))
    for function in (torch.dropout, operator.iadd, operator.setitem, torch._assert,
                     aten.add_.Tensor, torch.nn.functional.dropout, torch.randint_like):
        g.call_function(function, (x, 0, 1))
    g.call_function(aten.rand.default, ([2],))
    g.output(c)
    show([(n.name, n.is_impure(), n.is_impure(impure_random=False)) for n in g.nodes])
    show(lambda: g.eliminate_dead_code(), str(g), lambda: g.eliminate_dead_code())
    show(w in g.nodes)


@same
def test_eliminate_dead_code_asks_the_caller(fx, show):
    g = fx.Graph()
    x = g.placeholder("x")
    a = g.call_function(torch.relu, (x,))
    g.call_function(torch.neg, (a,))
    g.output(x)
    seen = []

    def impure(n):
        seen.append(n.name)
        return n.target is not torch.neg

    show(lambda: g.eliminate_dead_code(is_impure_node=impure), seen, list(g.nodes))
    show(lambda: g.eliminate_dead_code(is_impure_node=lambda n: False), list(g.nodes))
    show(lambda: fx.Graph().eliminate_dead_code())


@same
def test_eliminate_dead_code_lints_first(fx, show):
    g = fx.Graph()
    a = g.call_function(torch.relu, (3,))
    b = g.call_function(torch.relu, (a,))
    b.append(a)
    g.output(1)
    show(words(g.eliminate_dead_code), list(g.nodes))


@same
def test_eliminate_dead_code_asks_the_owning_module(fx, show):
    g = fx.Graph()
    x = g.placeholder("x")
    g.call_module("lin", (x,))
    g.output(x)
    show(lambda: g.eliminate_dead_code())
    owner = Owner()
    owner.lin = torch.nn.Linear(1, 1)
    g.owning_module = owner
    show(lambda: g.eliminate_dead_code(), list(g.nodes))


# ---- hooks of the owning module -----------------------------------------------------------------


@same
def test_hooks(fx, show):
    owner, log = Owner(), []
    owner._create_node_hooks.append(lambda n: log.append(("create", n.name, n.args)))
    owner._erase_node_hooks.append(lambda n: log.append(("erase", n.name, n.args)))
    owner._replace_hooks.append(lambda old, new, user: log.append(("replace", old, new, user)))
    g = fx.Graph(owner)

    def step(*ignored):
        show(list(log))
        log.clear()

    x, y = g.placeholder("x", default_value=3), g.placeholder("y")
    a = g.call_function(torch.relu, (x,))
    b = g.call_function(torch.neg, (a,))
    step()
    step(x.replace_all_uses_with(y))
    step(g.erase_node(b))
    a.args = (x,)
    step(a.replace_input_with(x, y))
    a.update_arg(0, x)
    step(x.append(a))
    step(g.node_copy(a, lambda n: n))
    other = fx.Graph()
    other.placeholder("q")
    step(g.graph_copy(other, {}))
    g.output(a)
    step(g.eliminate_dead_code())


@same
def test_a_failing_hook_stops_the_erasing(fx, show):
    owner = Owner()
    g = fx.Graph(owner)
    n = g.placeholder("t")
    owner._erase_node_hooks.append(lambda n: 1 / 0)
    show(lambda: g.erase_node(n), list(g.nodes))


# ---- attributes ---------------------------------------------------------------------------------


@same
def test_constructor(fx, show):
    g = fx.Graph(owning_module=None, tracer_cls=int, tracer_extras={"a": 1})
    show(g._tracer_cls, g._tracer_extras, g.owning_module, g._len, g._co_fields)
    show(lambda: fx.Graph(5).owning_module)
    show.error(lambda: fx.Graph(1, 2, 3, 4))
    show(fx.Graph() == fx.Graph(), g == g, hash(g) == hash(g), len(fx.Graph().nodes))
    show(repr(g).split(" at ")[0])
    g.placeholder("x")
    show(g._len, type(g._codegen).__name__, type(g._graph_namespace).__name__, g._used_names)
    show(g._insert.__name__, g._insert.__self__ is g._root)


@same
def test_owning_module(fx, show):
    g = fx.Graph()
    one, two = torch.nn.Module(), torch.nn.Module()
    g.owning_module = one
    show(g.owning_module is one, g._owning_module is one)
    g.owning_module = two
    show(g.owning_module is two)
    g.owning_module = None
    show(g.owning_module)


@same
def test_root(fx, show):
    g = fx.Graph()
    root = g._root
    show((root.op, root.name, root.target, root.args, root.kwargs, repr(root)))
    show(root.next is root, root.prev is root, root.graph is g, g._root is root)
    x, y = g.placeholder("x"), g.placeholder("y")
    show(x.prev is root, y.next is root, x.next, y.prev, root.next, root.prev, root in g.nodes)
    show(root._sort_key, dict(root.users), root.all_input_nodes, root._erased)
    show(root.format_node(), root.is_impure(), root.meta, root.type, root.stack_trace)


def test_public_names():
    """Whatever torch.fx's Graph offers is there."""
    theirs = {name for name in dir(torch.fx.Graph()) if not name.startswith("__")}
    g = cfx.Graph()
    assert {name for name in theirs if not hasattr(g, name)} == set()


# ---- printing -----------------------------------------------------------------------------------


@same
def test_printing(fx, show):
    g = fx.Graph()
    show(str(g), str(fx.Graph()) == str(g))
    x = g.placeholder("x", int, 5)
    y = g.placeholder("y", torch.Tensor)
    a = g.call_function(torch.add, (x, [y, (1, "s")]), {"alpha": {"k": x}, "dtype": torch.float16})
    b = g.call_method("view", (a, slice(x, None), ...), type_expr=list[int])
    c = g.call_module("m.0", (b, torch.device("cpu"), torch.strided, None, 1e10, 2j))
    g.get_attr("w.x")
    g.call_function(identity, (c, Pair(x, 1), {1, }, b"b", range(3), builtins.len))
    g.output([a, {"k": b}], type_expr=list)
    show(str(g), [n.format_node() for n in g.nodes])


def test_print_tabular(capsys):
    pytest.importorskip("tabulate")
    tables = []
    for fx in (torch.fx, cfx):
        g = fx.Graph()
        x = g.placeholder("x", default_value=[1])
        a = g.call_function(torch.add, (x, "text", None, 1.5), {"k": [x, torch.float32]})
        g.output({"a": a})
        assert g.print_tabular() is None
        tables.append([line.rstrip() for line in capsys.readouterr().out.splitlines()])
    assert tables[0] == tables[1]


# ---- sizes and symbolic integers ----------------------------------------------------------------


@same
def test_size_nodes(fx, show):
    g = fx.Graph()
    x = g.placeholder("x")
    show(g.create_size_node(x, 0), g.create_stride_node(x, 0), g.create_storage_offset_node(x))
    show(lambda: g.create_size_node(5, 0), g.create_size_node(x, "a"))
    x.meta["val"] = torch.empty(2, 3)
    for dim in (0, 1, -1, 2, -3):
        show(lambda: g.create_size_node(x, dim), lambda: g.create_stride_node(x, dim))
    show(g.create_storage_offset_node(x), str(g), [n.meta for n in g.nodes if n is not x])
    x.meta = {"example_value": torch.empty(4)}
    show(g.create_size_node(x, 0), list(g.nodes)[-1].meta)
    for meta in ({"val": 5}, {"val": None}, {"tensor_meta": 1}, {}):
        x.meta = meta
        show(lambda: g.create_size_node(x, 0), list(g.nodes)[-1].meta)
        show(lambda: g._get_tensor_meta_val(x))
    x.meta = {"val": torch.zeros(1), "example_value": torch.zeros(2)}
    show(fx.Graph._get_tensor_meta_val(x))


def symbolic_tensor():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental import symbolic_shapes as shapes

    dynamic = [shapes.DimDynamic.DYNAMIC] * 2
    context = shapes.StatelessSymbolicContext(dynamic_sizes=dynamic)
    mode = FakeTensorMode(shape_env=shapes.ShapeEnv())
    return mode.from_tensor(torch.empty(5, 7), symbolic_context=context)


def shown(g):
    return str(g), [sorted((k, str(v)) for k, v in n.meta.items()) for n in g.nodes]


@same
def test_materialize_symints(fx, show):
    t = symbolic_tensor()
    rows, columns = t.shape
    g = fx.Graph()
    x, s = g.placeholder("x"), g.placeholder("s")
    x.meta["val"], s.meta["val"] = t, rows
    g.create_size_node(x, 0), g.create_stride_node(x, 0), g.create_storage_offset_node(x)
    # torch.fx makes the nodes of several sizes in the order of a set: one size at a time here
    for value in (5, rows, columns, rows * 2 + columns, rows // 2, "a", True, None, 1.5,
                  rows - columns, t.stride()[0], rows * columns, rows + columns + 1):
        show(lambda: g.materialize_symint(value))
    show(lambda: g.materialize_symints([1, rows, columns + 1]), g.materialize_symints([]))
    show(lambda: g.materialize_symints([rows + 1, columns * (rows + 1), rows + 1, columns]))
    show(lambda: g.materialize_symints([rows**2, rows % 3, 7 - columns, rows * 4 // columns]))
    show(lambda: g.materialize_symints([torch.sym_max(rows, columns), torch.sym_min(rows, 3)]))
    show(lambda: g.materialize_symint(torch.sym_ite(rows > 2, rows, columns)))
    show(*shown(g))
    show(lambda: fx.Graph().materialize_symint(rows))
    g = fx.Graph()
    x = g.placeholder("x")
    x.meta["example_value"] = t
    show(g.materialize_symint(columns), g.materialize_symint(columns + 1), *shown(g))
    g = fx.Graph()
    g.call_function(torch.relu, (1,)).meta["val"] = t  # only inputs are asked for their sizes
    g.placeholder("listed").meta["val"] = [t, rows]
    g.placeholder("double").meta["val"] = rows * 2
    show(lambda: g.materialize_symint(rows * 2))


@same
def test_materialize_unbacked_symints(fx, show):
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental import symbolic_shapes as shapes
    from torch.utils._pytree import MappingKey, SequenceKey

    env = shapes.ShapeEnv()
    u = env.create_unbacked_symint()
    g = fx.Graph()
    x = g.placeholder("x")
    x.meta["val"] = torch.ones(1)
    g.call_method("item", (x,)).meta["val"] = u
    show(lambda: g.materialize_symint(u), lambda: g.materialize_symint(u + 1))
    with FakeTensorMode(shape_env=env):
        t = torch.empty(u, 2)
    nonzero = g.call_function(torch.nonzero, (x,))
    nonzero.meta["val"] = t
    show(lambda: g.materialize_symint(u))
    size = shapes.CallMethodKey("size")
    nonzero.meta["unbacked_bindings"] = {u.node.expr: (size, SequenceKey(0))}
    show(lambda: g.materialize_symint(u), str(g))
    paths = [(), (SequenceKey(0),), (SequenceKey(0), SequenceKey(1)), (size, SequenceKey(0)),
             (shapes.CallMethodKey("stride"), SequenceKey(1)), (shapes.ConvertIntKey(),),
             (shapes.CallMethodKey("storage_offset"),), (MappingKey("a"),), ("bad",),
             (shapes.DivideByKey(2),), (SequenceKey(0), shapes.DivideByKey(2)), (size,),
             (shapes.CallMethodKey("foo"),)]
    for path in paths:
        g = fx.Graph()
        x = g.placeholder("x")
        x.meta["val"] = torch.ones(2, 2)
        show(lambda: g._resolve_unbacked_binding(x, path, lambda s: s), str(g))


@same
def test_references_to_the_owning_module(fx, show):
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    g = fx.GraphModule(module, fx.symbolic_trace(module).graph).graph
    for path in ("nope.x", "0.weight", "0.foo", "0", "0.weight.x"):
        show(lambda: g.get_attr(path))
    for path in ("zz", "0.weight", "0"):
        show(lambda: g.call_module(path, (1,)))
    show(lambda: g.lint())
    for node in reversed([node for node in g.nodes if node.op == "get_attr"]):
        g.erase_node(node)
    show(lambda: g.lint())
    for op, path in (("call_module", "0.weight"), ("call_module", "a.b"), ("get_attr", "0.no.x")):
        node = g.create_node(op, path, ())
        show(lambda: g.lint())
        g.erase_node(node)


# ---- what cfx adds ------------------------------------------------------------------------------


def test_verify_tells_more_than_lint():
    g = cfx.Graph()
    x = g.placeholder("x")
    assert g.verify() == []
    g.output(x)
    g.placeholder("late")
    g.call_method("m", (x,)).name = "no identifier"
    g.lint()
    found = "\n".join(g.verify())
    assert "late" in found and "no identifier" in found


def test_lint_wants_a_name_as_the_target_of_what_is_no_function():
    g = cfx.Graph()
    g.call_method("relu").target = torch.relu
    with pytest.raises(RuntimeError, match="the target of a call_method must be a name"):
        g.lint()


def test_the_root_is_no_opcode():
    with pytest.raises(AssertionError, match="not in _legal_ops"):
        cfx.Graph().create_node("root", "t")


def test_materialized_sizes_come_in_the_order_of_their_symbols():
    t = symbolic_tensor()
    g = cfx.Graph()
    x = g.placeholder("x")
    x.meta["val"] = t
    g.materialize_symint(t.shape[0] + t.shape[1])
    symbols = [str(n.meta["val"]) for n in g.nodes if n.name.startswith("sym_size")]
    assert len(symbols) == 2 and symbols == sorted(symbols)


def test_find_nodes_knows_bound_methods():
    class Doubled(torch.autograd.Function):
        pass

    g = cfx.Graph()
    nodes = [g.call_function(Doubled.apply, (i,)) for i in range(3)]
    g.call_function(torch.relu)
    assert g.find_nodes(op="call_function", target=Doubled.apply) == nodes
    assert g.find_nodes(op="call_function", target=[].append) == []


def test_the_version_grows_with_every_edit():
    g = cfx.Graph()
    versions = [g._version]
    x = g.placeholder("x")
    versions.append(g._version)
    y = g.call_function(torch.relu, (x,))
    versions.append(g._version)
    for edit in (lambda: setattr(y, "args", (1,)), lambda: setattr(y, "target", torch.neg),
                 lambda: setattr(y, "name", "n"), lambda: x.prepend(y), lambda: g.erase_node(y)):
        edit()
        versions.append(g._version)
    assert versions == sorted(set(versions))
    list(g.nodes), str(g), g.lint(), x.users, x.args
    assert g._version == versions[-1]


def test_values_of_the_error_classes():
    g = cfx.Graph()
    assert outcome(lambda: g.create_node("bad", "t")).startswith("AssertionError: op 'bad' is not")
    text = outcome(lambda: g.call_function("relu"))
    assert text.startswith("ValueError") and "has type str but a Callable is expected" in text
