"""Node, attribute by attribute: the same calls on torch.fx and on cfx."""
import collections
import copy
import gc
import inspect
import operator
import random
import time
import weakref

import pytest
from parity import outcome, same

import cfx

torch = pytest.importorskip("torch")
F = torch.nn.functional
Pair = collections.namedtuple("Pair", "a b")


class MyList(list):
    pass


class MyDict(dict):
    pass


class MyTuple(tuple):
    pass


class MyInt(int):
    pass


class Opaque:
    def __repr__(self):
        return "Opaque()"


def identity(x):
    return x


def users(*nodes):
    return [dict(n.users) for n in nodes]


# ---- arguments ----------------------------------------------------------------------------------


def arguments(fx, x):
    frozen_list = fx.immutable_collections.immutable_list
    frozen_dict = fx.immutable_collections.immutable_dict
    ones = torch.ones(1)
    return [
        1, "s", None, True, 1.5, 2j, b"b", ..., [], [1], [x], (), (1,), (x,), (1, [2]), {},
        {"a": 1}, {"a": x}, {"a": [1]}, frozen_list([1]), frozen_list([x]), frozen_dict(a=1),
        frozen_dict(a=x), MyList([1]), MyDict(a=1), MyTuple((1,)), MyTuple((x,)), Pair(1, 2),
        Pair(x, 2), Pair([1], 2), torch.Size([1, 2]), slice(1, 2), slice(x, 2), slice([1], 2),
        range(3), {1}, {x}, frozenset([x]), collections.OrderedDict(a=x), MyInt(1), {1: x}, {x: 1},
        collections.defaultdict(list, a=1), collections.deque([x]), (frozen_list([x]),), [(x,)],
        torch.return_types.max((ones, ones)), Opaque(), torch.float32, torch.device("cuda:1"),
        torch.strided, torch.channels_last, torch.relu, int, Opaque, 10**30, -0.0, float("inf"),
        "\ud800", {(1, x): 1}, {None: [x]}, torch.Generator,
    ]


@same
def test_arguments_are_copied_and_frozen(fx, show):
    g = fx.Graph()
    x = g.placeholder("x")
    n = g.call_function(identity)
    for value in arguments(fx, x):
        n.args = (value,)
        show(n.args[0], type(n.args), list(n._input_nodes), n.args is n.args)
        n.args, n.kwargs = (), {"k": value}
        show(n.kwargs["k"], type(n.kwargs), list(n._input_nodes), n.kwargs is n.kwargs)
        n.kwargs = {}


@same
def test_identity_of_arguments(fx, show):
    g = fx.Graph()
    x = g.placeholder("x")
    n = g.call_function(identity)
    for value in (Opaque(), torch.ones(1), identity, {1, 2}, MyInt(3), collections.deque()):
        n.args = (value, [value])
        if type(value) is not set:
            show(n.args[0] is value, n.args[1][0] is value)
    t = (x, 1)
    n.args = t
    show(n.args is t, n.args == t, n.args is n.args)


@same
def test_assigning_arguments(fx, show):
    g = fx.Graph()
    x = g.placeholder("x")
    n = g.call_function(torch.relu)
    n.args = MyTuple((x, [1]))
    show(n.args, users(x))
    n.kwargs = {"a": [x]}
    show(n.kwargs, type(n.kwargs), n.args, users(x))
    show(lambda: n.kwargs.update(a=1), lambda: n.kwargs["a"].append(1))
    show.error(lambda: n.kwargs.__setitem__("z", 1), lambda: delattr(n, "args"))
    n.args = ()
    n.kwargs = {}
    show(n.args, n.kwargs, type(n.kwargs), users(x))


def test_arguments_must_be_a_tuple_and_a_dict():
    g = cfx.Graph()
    x = g.placeholder("x")
    n = g.call_function(torch.relu, (x,))
    n.args = [x, 1]
    assert n.args == (x, 1) and type(n.args) is tuple
    n.args = Pair(x, 1)
    assert n.args == (x, 1) and type(n.args) is tuple
    for bad in (x, 5, "ab", {x}, {"a": 1}, iter(())):
        with pytest.raises(AssertionError, match="args must be a tuple"):
            n.args = bad
    for bad in ([1], 5, "ab", (x,), x):
        with pytest.raises(AssertionError, match="kwargs must be a dict"):
            n.kwargs = bad
    for bad in ({1: 2}, {None: 1}, {x: 1}, {("a",): 1}):
        with pytest.raises(TypeError, match="keys of kwargs must be strings"):
            n.kwargs = bad
        with pytest.raises(TypeError, match="keys of kwargs must be strings"):
            g.call_function(torch.relu, (), bad)
    n.args = n.kwargs = None
    assert n.args == () and n.kwargs == {}


class MyStr(str):
    """Like np.str_, a subclass of str."""


def test_odd_characters_in_keys_and_names():
    g = cfx.Graph()
    n = g.call_function(torch.relu, ())
    n.update_kwarg("\udc80", 1)
    assert dict(n.kwargs) == {"\udc80": 1}
    n._rename("a\udc80b")
    assert n.name.isidentifier()
    for edit in (lambda: n.update_kwarg("a\0b", 1), lambda: n._rename("a\0b")):
        with pytest.raises(ValueError, match="NUL"):
            edit()
    for edit in (lambda: n.update_kwarg(5, 1), lambda: n._rename(5)):
        with pytest.raises(TypeError, match="must be a str"):
            edit()
    assert dict(n.kwargs) == {"\udc80": 1}


@same
def test_keywords_of_a_class_of_their_own(fx, show):
    g = fx.Graph()
    x = g.placeholder("x")
    n = g.call_function(torch.relu, (), {MyStr("input"): x})
    show(dict(n.kwargs), users(x))
    n.kwargs = {MyStr("input"): [x], "k": {MyStr("inner"): 1}}
    show(dict(n.kwargs), users(x))


# ---- users --------------------------------------------------------------------------------------


@same
def test_users_follow_the_arguments(fx, show):
    g = fx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    a = g.call_function(torch.add, (x, y, x))
    b = g.call_function(torch.add, (y,), {"k": [x, (a,)]})
    c = g.call_function(torch.relu, (x,))
    show(users(x, y, a), list(x.users.items()), isinstance(x.users, dict), repr(x.users))
    show(a.all_input_nodes, b.all_input_nodes, a._input_nodes, b._input_nodes)
    show(a.all_input_nodes is a.all_input_nodes)
    for args in ((x,), (y,), (x, y)):
        a.args = args
        show(users(x, y), a._input_nodes)
    c.kwargs = {"z": y}
    show(users(x, y), c.all_input_nodes)
    c.args = ()
    show(users(x, y), c.all_input_nodes)


@same
def test_order_of_users(fx, show):
    g = fx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    a, b, c = (g.call_function(torch.add, (x,)) for _ in range(3))
    steps = [
        lambda: None,
        lambda: a.update_arg(0, x),
        lambda: setattr(a, "args", a.args),
        lambda: setattr(b, "kwargs", {}),
        lambda: b.insert_arg(1, y),
        lambda: a.replace_input_with(y, x),
        lambda: a.replace_input_with(x, x),
        lambda: x.replace_all_uses_with(x),
        lambda: b.insert_arg(0, x) if fx is None else None,
        lambda: a.update_kwarg("q", 3),
        lambda: y.replace_all_uses_with(x),
        lambda: x.replace_all_uses_with(y, lambda u: u is not c),
    ]
    for step in steps:
        step()
        show(users(x, y))


@same
def test_users_as_a_dict(fx, show):
    g = fx.Graph()
    x = g.placeholder("x")
    a, b = g.call_function(torch.relu, (x,)), g.call_function(torch.neg, (x,))
    u = x.users
    show(len(u), bool(u), a in u, x in u, 5 in u, list(u), list(u.keys()), list(u.values()))
    show(u[a], u.get(b), u.get(x), u.get(x, 7), list(reversed(u)), u == {a: None, b: None})
    show.error(lambda: u[x], lambda: u[5], lambda: u[[]], lambda: hash(u))
    show(dict(u), dict(u.copy()), {**u}, u | {x: 1}, next(iter(u)), list(u.items()), str(u))
    show(set(u) == {a, b}, u != {}, sorted(n.name for n in u), u.keys() == {a, b})
    g.erase_node(b)
    show(dict(u), x.users is u, len(u), b in u)


def test_users_cannot_be_assigned():
    g = cfx.Graph()
    x = g.placeholder("x")
    a = g.call_function(torch.relu, (x,))
    edits = [
        lambda: setattr(x, "users", {}),
        lambda: x.users.__setitem__(a, None),
        lambda: x.users.__delitem__(a),
        lambda: x.users.pop(a),
        lambda: x.users.popitem(),
        lambda: x.users.clear(),
        lambda: x.users.update({a: 1}),
        lambda: x.users.setdefault(x),
        lambda: x.users.__ior__({x: 1}),
    ]
    for edit in edits:
        with pytest.raises((TypeError, AttributeError)):
            edit()
        assert dict(x.users) == {a: None}


def test_iterating_users_while_editing_is_noticed():
    g = cfx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    for _ in range(4):
        g.call_function(torch.relu, (x,))
    with pytest.raises(RuntimeError, match="users changed"):
        for user in x.users:
            user.args = (y,)
    with pytest.raises(RuntimeError, match="users changed"):
        for user in x.users:
            user.args = (x, 1)  # goes to the end
    for user in list(x.users):
        user.args = (y,)
    assert len(x.users) == 0 and len(y.users) == 4


@same
def test_iterating_users_while_editing_others(fx, show):
    g = fx.Graph()
    x = g.placeholder("x")
    for _ in range(4):
        g.call_function(torch.relu, (x,))
    for user in x.users:
        new = g.call_function(torch.neg, (user,))
        new.args = (user, user)
    show(users(*g.nodes))
    walk = iter(x.users)
    show(isinstance(x.users, dict), iter(walk) is walk, len(list(walk)), list(walk))


def test_erasing_many_users_one_at_a_time():
    g = cfx.Graph()
    x = g.placeholder("x")
    for _ in range(20_000):
        g.call_function(torch.relu, (x,))
    while x.users:
        g.erase_node(next(iter(x.users)))
    assert list(g.nodes) == [x]


# ---- editing arguments --------------------------------------------------------------------------


@same
def test_update_and_insert_arguments(fx, show):
    g = fx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    a = g.call_function(torch.add, (x, 1), {"k": x})

    def state():
        show(a.args, a.kwargs, users(x, y))

    a.update_arg(0, y), state()
    a.update_arg(-1, 7), state()
    a.update_arg(-2, 8), state()
    show.error(lambda: a.update_arg(2, 1), lambda: a.update_arg(-3, 1))
    show.error(lambda: a.update_arg("a", 1), lambda: a.update_arg(1.5, 1), lambda: a.update_arg(1))
    a.update_arg(True, "t"), state()
    a.update_arg(idx=0, arg=[y]), state()
    a.update_kwarg("k", [y]), a.update_kwarg("new", 3), state()
    a.update_kwarg(key="k", arg=None), state()
    a.insert_arg(0, x), state()
    a.insert_arg(1, "m"), state()
    a.insert_arg(len(a.args), 9), state()
    show(lambda: a.insert_arg(9, 1), lambda: a.insert_arg(-1, 1))
    show.error(lambda: a.insert_arg("a", 1), lambda: a.insert_arg())
    state()


def test_inserted_lists_are_frozen_too():
    g = cfx.Graph()
    x = g.placeholder("x")
    a = g.call_function(torch.add, ())
    a.insert_arg(0, [x])
    assert type(a.args[0]) is cfx.immutable_list
    with pytest.raises(TypeError, match="must be a str"):
        a.update_kwarg(5, 1)


# ---- replacing ----------------------------------------------------------------------------------


@same
def test_replace_all_uses_with(fx, show):
    g = fx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    a = g.call_function(torch.add, (x, [x]), {"k": {"z": x}})
    b = g.call_function(torch.add, (y, x))
    c = g.call_function(torch.relu, (b,))
    g.output((x, c))

    def state():
        show(a.args, a.kwargs, b.args, g.output_node().args, users(x, y))

    show(x.replace_all_uses_with(y)), state()
    show(y.replace_all_uses_with(x, delete_user_cb=lambda u: u is not b)), state()
    show(y.replace_all_uses_with(x, lambda u: 0)), state()
    show(x.replace_all_uses_with(x)), state()
    show(x.replace_all_uses_with(None)), state()
    show(x.replace_all_uses_with(5)), state()
    show(lambda: y.replace_all_uses_with(x, lambda u: 1 / 0)), state()
    show.error(lambda: x.replace_all_uses_with(), lambda: x.replace_all_uses_with(x, 1, 2))


@same
def test_replacement_that_uses_the_replaced_node(fx, show):
    g = fx.Graph()
    x = g.placeholder("x")
    a = g.call_function(torch.relu, (x,))
    g.output(a)
    with g.inserting_after(a):
        b = g.call_function(torch.neg, (a,))
    show(a.replace_all_uses_with(b), b.args, users(a, b), str(g))
    show(a.replace_all_uses_with(b, lambda u: u is not b), b.args)


@same
def test_propagate_meta(fx, show):
    g = fx.Graph()
    x, y, z = (g.placeholder(name) for name in "xyz")
    u = g.call_function(torch.relu, (x,))
    x.meta["old"], y.meta["n"] = [1], 2
    show(lambda: x.replace_all_uses_with(y, propagate_meta=True), u.args, x.meta, y.meta)
    show(lambda: x.replace_all_uses_with(z, propagate_meta=True), z.meta, z.meta is x.meta)
    show(z.meta["old"] is x.meta["old"])


@same
def test_replace_input_with(fx, show):
    g = fx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    a = g.call_function(torch.add, (x, [x, y]), {"k": x})
    for old, new in ((x, y), (x, y), (y, 3), (x, None), (y, x)):
        show(lambda: a.replace_input_with(old, new), a.args, a.kwargs, users(x, y))
    a.args = (x, [x])
    a.replace_input_with(old_input=x, new_input=[y, 1])
    show(a.args, users(x, y))
    show.error(lambda: a.replace_input_with(x))


# ---- position -----------------------------------------------------------------------------------


@same
def test_prepend_and_append(fx, show):
    g = fx.Graph()
    x, y, z = (g.placeholder(name) for name in "xyz")
    for edit in (lambda: x.prepend(z), lambda: x.append(z), lambda: x.append(x),
                 lambda: x.prepend(x), lambda: x.append(z), lambda: z.prepend(x),
                 lambda: g._root.append(y), lambda: g._root.prepend(y), lambda: y.append(x)):
        show(edit, list(g.nodes), g._root.next, g._root.prev)
    q = fx.Graph().placeholder("q")
    show(lambda: x.prepend(q), lambda: x.append(q), list(g.nodes))
    show.error(lambda: x.prepend(None), lambda: x.append(5), lambda: x.append())


@same
def test_order(fx, show):
    g = fx.Graph()
    a, b = g.placeholder("a"), g.placeholder("b")
    show(a < b, a > b, a <= b, a >= b, a == b, a != b, b < a, a <= a, a >= a, a < a)
    with g.inserting_before(b):
        c = g.placeholder("c")
    with g.inserting_before(c):
        d = g.placeholder("d")
    with g.inserting_after(d):
        e = g.placeholder("e")
    with g.inserting_before(a):
        f = g.placeholder("f")
    show(sorted([b, e, a, d, c, f]), max(a, b), min(a, b))
    b.append(a)
    show(sorted([b, e, a, d, c, f]))
    show.error(lambda: a < 5, lambda: a > None)
    show(a == 5, a != "a", hash(a) == hash(a), {a: 1}[a], a in {b})


def test_sort_key_follows_the_order():
    g = cfx.Graph()
    nodes = [g.placeholder("p") for _ in range(10)]
    for _ in range(200):
        with g.inserting_after(nodes[4]):
            nodes.insert(5, g.placeholder("p"))
    keys = [n._sort_key for n in g.nodes]
    assert keys == sorted(set(keys)) and all(type(key) is tuple for key in keys)
    assert g._root._sort_key == ()


@same
def test_next_and_prev(fx, show):
    g = fx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    show(x.next, y.prev, x.prev is g._root, y.next is g._root, x._next, y._prev)
    show.error(lambda: setattr(x, "next", y), lambda: setattr(x, "prev", y))


# ---- plain attributes ---------------------------------------------------------------------------


@same
def test_attributes_can_be_assigned(fx, show):
    g = fx.Graph()
    x = g.placeholder("x")
    a = g.call_function(torch.relu, (x,))
    g.output(a)
    a.name = "zed"
    show(str(g), repr(a), a.name)
    a.target, a.type = torch.neg, int
    show(str(g), a.type)
    a.op = "call_method"
    show(a.op, a.target is torch.neg)
    a.target = "foo"
    show(a.target, str(g))
    a.type = None
    show(a.type, str(g))
    a.name = "a b"
    show(str(g))
    show.error(lambda: setattr(a, "all_input_nodes", []))
    show(a._rename("new"), a.name, a._rename("new"), a.name, a._rename("1 2"), a.name)
    show(a._rename("x"), a.name)
    x.name = "y"
    show(g.placeholder("y").name, g.placeholder("y").name)


def test_what_cannot_be_assigned():
    g = cfx.Graph()
    n = g.placeholder("x")
    for name, value, error in (
        ("name", 5, TypeError),
        ("name", None, TypeError),
        ("op", "bad", AssertionError),
        ("op", None, AssertionError),
        ("target", 5, AssertionError),
        ("target", None, AssertionError),
        ("graph", None, AttributeError),
        ("graph", cfx.Graph(), AttributeError),
        ("meta", 5, TypeError),
        ("users", {}, AttributeError),
        ("type", n, TypeError),
        ("type", [n], TypeError),
        ("_sort_key", (1,), AttributeError),
        ("_erased", True, AttributeError),
    ):
        with pytest.raises(error):
            setattr(n, name, value)
    for name in ("name", "op", "target", "args", "kwargs", "graph", "users", "next", "_erased"):
        with pytest.raises((AttributeError, TypeError)):
            delattr(n, name)
    assert (n.name, n.op, n.target, n.args) == ("x", "placeholder", "x", ())
    assert n.type is None and n.graph is g


@same
def test_meta_and_stack_trace(fx, show):
    n = fx.Graph().placeholder("x")
    show(n.meta, n.stack_trace, n.meta is n.meta)
    n.stack_trace = "abc"
    show(n.meta, n.stack_trace)
    n.stack_trace = None
    show(n.meta)
    n.meta["stack_trace"] = "z"
    show(n.stack_trace)
    mine = {"a": 1}
    n.meta = mine
    show(n.meta, n.meta is mine, n.stack_trace)


@same
def test_attributes_of_ones_own(fx, show):
    n = fx.Graph().placeholder("x")
    show(vars(n))
    n.foo = 1
    show(n.foo, vars(n), hasattr(n, "bar"))
    del n.foo
    show(lambda: n.foo)
    show(weakref.ref(n)() is n)


@same
def test_repr_fn(fx, show):
    g = fx.Graph()
    n = g.placeholder("x")
    show(n._repr_fn)
    n._repr_fn = lambda n: "HELLO"
    show(repr(n), str(n), f"{n}", n.name, repr([n]), n.format_node())
    n._repr_fn = None
    show(repr(n))


def test_nodes_are_made_by_graphs_only():
    for arguments_ in ((), (cfx.Graph(), "n", "placeholder", "t", (), {})):
        with pytest.raises(TypeError, match="belongs to a Graph"):
            cfx.Node(*arguments_)
    with pytest.raises(TypeError):
        type("MyNode", (cfx.Node,), {})


def test_public_names():
    """Whatever torch.fx's Node offers is there."""
    n = cfx.Graph().placeholder("x")
    mine = torch.fx.Graph().placeholder("x")
    theirs = {name for name in dir(mine) if not name.startswith("__")}
    internal = {"_prepend", "_remove_from_list", "_replace_input_with", "_update_args_kwargs"}
    assert {name for name in theirs - internal if not hasattr(n, name)} == set()


def test_signatures():
    for name in ("format_node", "is_impure", "normalized_arguments"):
        ours = inspect.signature(getattr(cfx.Node, name))
        theirs = inspect.signature(getattr(torch.fx.Node, name))
        assert list(ours.parameters) == list(theirs.parameters)
        for parameter in theirs.parameters.values():
            assert ours.parameters[parameter.name].default == parameter.default
            assert ours.parameters[parameter.name].kind == parameter.kind


# ---- format_node and names of functions ----------------------------------------------------------


@same
def test_format_node(fx, show):
    g = fx.Graph()
    x = g.placeholder("x", int)
    y = g.placeholder("y", default_value=[1])
    a = g.call_function(torch.add, (x, y), {"alpha": 2}, type_expr=torch.Tensor)
    a.meta["val"] = torch.empty(2, 3)
    m = g.call_method("view", (a,))
    m.meta["val"] = torch.empty(2, dtype=torch.int64)
    o = g.output(m, type_expr=int)
    for n in g.nodes:
        inputs, returns = ["first"], ["type"]
        show(n.format_node(), n.format_node([], []), n.format_node(inputs, returns))
        show(inputs, returns, n.format_node(None, None, include_tensor_metadata=True))
    show(lambda: o.format_node(placeholder_names=None, maybe_return_typename=[""]))


@same
def test_pretty_print_target(fx, show):
    aten = torch.ops.aten
    for target in (torch.relu, F.relu, len, operator.add, operator.getitem, "text",
                   torch.Tensor.add, torch.Tensor.add_, aten.add.Tensor, aten.add, identity, int,
                   Pair, Opaque, torch.nn.Linear, torch._C._nn.gelu, torch.sym_max, print,
                   setattr, abs):
        show(lambda: fx.Node._pretty_print_target(target))
    show(fx.node._type_repr(int), fx.node._type_repr(list[int]), fx.node._type_repr(torch.Tensor))
    show(fx.node._type_repr(...), fx.node._type_repr(identity), fx.node._type_repr("s"))


# ---- effects ------------------------------------------------------------------------------------


@same
def test_is_impure(fx, show):
    aten, ops = torch.ops.aten, torch.ops
    functions = [
        torch.rand, torch.randn, torch.randint, torch.randperm, torch.rand_like, torch.bernoulli,
        F.dropout, torch.dropout, torch.multinomial, torch.normal, torch.manual_seed, torch.seed,
        operator.setitem, operator.iadd, torch._assert, torch._assert_async,
        torch.no_grad, torch._C._set_grad_enabled, aten.add.Tensor, aten.add_.Tensor,
        aten._assert_async.msg, aten.sym_constrain_range.default, aten.bernoulli.default,
        aten.copy_.default, aten.native_dropout.default, aten.sum.IntList_out,
        ops.profiler._record_function_enter_new.default, ops.higher_order.cond, aten.add,
        torch.empty, torch.zeros, torch.add, torch.relu_, torch.Tensor.add_, F.relu,
        torch.poisson, torch.randn_like, torch.randint_like, torch.amp._enter_autocast,
        torch.amp._exit_autocast, aten._assert_scalar.default, aten.rand.default,
    ]
    for function in functions:
        n = fx.Graph().call_function(function)
        show((str(function), n.is_impure(), n.is_impure(False), n.is_impure(impure_random=False)))
    g = fx.Graph()
    show(g.placeholder("x").is_impure(), g.output(1).is_impure(), g.get_attr("w").is_impure())
    show(g.call_method("add_").is_impure(), lambda: g.call_module("m").is_impure())


def test_is_impure_of_python():
    """torch.fx would drop what was printed or set."""
    for function in (print, setattr, delattr, operator.delitem, time.time, random.random):
        assert cfx.Graph().call_function(function).is_impure(), function


@same
def test_is_impure_of_modules(fx, show):
    class Marked(torch.nn.Module):
        _is_impure = True

    owner = torch.nn.Module()
    owner.a, owner.b, owner.c = Marked(), torch.nn.Dropout(), Marked()
    owner.c._is_impure = False
    g = fx.Graph(owner)
    for path in "abc":
        show(g.call_module(path).is_impure())
    show(lambda: g.create_node("call_module", "zz").is_impure())


@same
def test_has_side_effect(fx, show):
    def function():
        pass

    n = fx.Graph().call_function(function)
    show(n.is_impure(), fx.has_side_effect(function) is function, n.is_impure())
    show(function in fx.node._side_effectful_functions)


# ---- normalized arguments ------------------------------------------------------------------------


def normalized(fx, show, op, target, args=(), kwargs=None, root=None, **types):
    g = fx.Graph()
    inputs = {name: g.placeholder(name) for name in "xyzw"}

    def fill(value):
        return inputs.get(value, value) if isinstance(value, str) else value

    args = tuple(fill(a) for a in args)
    kwargs = {k: fill(v) for k, v in (kwargs or {}).items()}
    n = g.create_node(op, target, args, kwargs)
    for only_kwargs in (False, True):

        def normalize():
            result = n.normalized_arguments(root, **types,
                                            normalize_to_only_use_kwargs=only_kwargs)
            return None if result is None else (result.args, result.kwargs, tuple(result))

        show(str(target), normalize)


FUNCTIONS = [
    (torch.relu, ("x",), {}),
    (torch.add, ("x", "y"), {}),
    (torch.add, ("x", "y"), {"alpha": 2}),
    (torch.add, (), {"input": "x", "other": "y"}),
    (torch.sub, ("x", "y"), {"alpha": 1}),
    (torch.neg, ("x",), {}),
    (torch.flatten, ("x", 1), {}),
    (torch.sigmoid, ("x",), {}),
    (torch.permute, ("x", (0, 1)), {}),
    (torch.transpose, ("x", 0, 1), {}),
    (torch.unsqueeze, ("x", 1), {}),
    (torch.squeeze, ("x",), {}),
    (torch.bmm, ("x", "y"), {}),
    (torch.cat, (["x"],), {}),
    (torch.softmax, ("x", 1), {}),
    (F.relu, ("x",), {}),
    (F.relu, ("x", True), {}),
    (F.relu, (), {"input": "x"}),
    (F.linear, ("x", "y", "z"), {}),
    (F.linear, ("x", "y"), {"bias": "z"}),
    (F.dropout, ("x",), {"p": 0.2}),
    (F.dropout, ("x", 0.3, False), {}),
    (F.softmax, ("x", 1), {}),
    (F.batch_norm, ("x", "y", "z"), {"training": True}),
    (F.layer_norm, ("x", (3,)), {"eps": 0.1}),
    (F.conv2d, ("x", "y"), {}),
    (F.conv2d, ("x", "y", "z", 2), {"padding": 1}),
    (F.max_pool2d, ("x", 2), {"stride": 1}),
    (F.adaptive_avg_pool2d, ("x", (1, 1)), {}),
    (F.cross_entropy, ("x", "y"), {"reduction": "sum"}),
    (F.gelu, ("x",), {}),
    (F.embedding, ("x", "y"), {}),
    (F.pad, ("x", (1, 1)), {}),
    (F.interpolate, ("x",), {"scale_factor": 2}),
    (F.normalize, ("x",), {}),
    (torch.ops.aten.add.Tensor, ("x", "y"), {}),
    (torch.ops.aten.add.Tensor, ("x", "y"), {"alpha": 3}),
    (torch.ops.aten.relu.default, ("x",), {}),
    (torch.ops.aten.sum.dim_IntList, ("x", [1]), {}),
    (torch.ops.aten.convolution.default,
     ("x", "y", None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1), {}),
    (operator.add, ("x", 1), {}),
    (operator.getitem, ("x", 1), {}),
    (identity, ("x",), {}),
    (identity, (), {"x": "x"}),
    (identity, (), {"wrong": "x"}),
    (identity, ("x", "y", "z"), {}),
    (len, ("x",), {}),
    (torch.add, ("x",), {"wrong": 1}),
    (identity, ("x",), {"wrong": 1}),
    (identity, ("x",), {"x": 1}),
    (lambda *args: args, ("x",), {}),
    (lambda a, /: a, ("x",), {}),
    (lambda a, b=2, *, c=3: a, (), {"c": 1, "a": "x"}),
    (torch.nn.Linear, (1, 2), {}),
    (torch.matmul, ("x", "y"), {}),
    (torch.mean, ("x",), {}),
    (torch.clamp, ("x", 0, 1), {}),
    (torch.abs, ("x",), {}),
    (torch.special.expit, ("x",), {}),
    (torch.linalg.norm, ("x",), {}),
    (torch.ops.aten.relu, ("x",), {}),
    (torch.ops.aten.add.Tensor, ("x",), {}),
    (torch.sum, ("x",), {}),
    (torch.sum, ("x", 1), {}),
    (dict, ("x",), {}),
    (torch.Tensor.add, ("x", "y"), {}),
]


@same
def test_normalized_arguments_of_functions(fx, show):
    for target, args, kwargs in FUNCTIONS:
        normalized(fx, show, "call_function", target, args, kwargs, torch.nn.Module())


@same
def test_normalized_arguments_of_functions_with_types(fx, show):
    tensor = torch.Tensor
    for target, args, kwargs, types in [
        (torch.add, ("x", "y"), {}, ((tensor, tensor), None)),
        (torch.add, ("x", 1), {}, ((tensor, int), None)),
        (torch.add, ("x", "y"), {"alpha": 2}, ((tensor, tensor), {"alpha": int})),
        (torch.relu, ("x",), {}, ((tensor,), None)),
        (torch.sum, ("x", 1), {}, ((tensor, int), None)),
        (torch.max, ("x", "y"), {}, ((tensor, tensor), None)),
        (torch.max, ("x", 1), {}, ((tensor, int), None)),
        (torch.full, ((2,), 1.0), {}, ((tuple[int], float), None)),
        (torch.add, ("x", "y"), {}, ((tensor,), None)),
        (torch.add, ("x", "y"), {}, ((str, dict), None)),
        (torch.add, ("x", "y"), {}, ((tensor, tensor, int), None)),
        (torch.sum, ("x", (1, 2)), {}, ((tensor, tuple[int, int]), None)),
        (torch.sum, ("x", [1, 2]), {}, ((tensor, list[int]), None)),
        (torch.mean, ("x", 1, True), {}, ((tensor, int, bool), None)),
        (torch.mul, ("x", 2.0), {}, ((tensor, float), None)),
        (torch.conv2d, ("x", "y"), {}, ((tensor, tensor), None)),
        (torch.conv2d, ("x", "y", None, 1), {}, ((tensor, tensor, type(None), int), None)),
        (torch.add, ("x",), {"other": "y"}, ((tensor,), {"other": tensor})),
    ]:
        normalized(fx, show, "call_function", target, args, kwargs, torch.nn.Module(),
                   arg_types=types[0], kwarg_types=types[1])


class Small(torch.nn.Module):
    def forward(self, x, y=2, *, z=3):
        return x


class Variadic(torch.nn.Module):
    def forward(self, *args, **kwargs):
        return args


MODULES = [
    (torch.nn.Linear(1, 1), ("x",), {}),
    (torch.nn.Linear(1, 1), (), {"input": "x"}),
    (torch.nn.Conv2d(1, 1, 1), ("x",), {}),
    (torch.nn.ReLU(), ("x",), {}),
    (torch.nn.BatchNorm2d(1), ("x",), {}),
    (torch.nn.Dropout(), ("x",), {}),
    (torch.nn.LayerNorm(1), ("x",), {}),
    (torch.nn.MaxPool2d(2), ("x",), {}),
    (torch.nn.Embedding(2, 2), ("x",), {}),
    (torch.nn.LSTM(1, 1), ("x",), {}),
    (torch.nn.LSTM(1, 1), ("x", "y"), {}),
    (torch.nn.MultiheadAttention(2, 1), ("x", "y", "z"), {"need_weights": False}),
    (torch.nn.Identity(), ("x",), {}),
    (torch.nn.Sequential(torch.nn.ReLU()), ("x",), {}),
    (torch.nn.CrossEntropyLoss(), ("x", "y"), {}),
    (torch.nn.Upsample(scale_factor=2), ("x",), {}),
    (Small(), ("x",), {}),
    (Small(), ("x", 5), {"z": 1}),
    (Small(), (), {"z": 1, "y": 2, "x": "x"}),
    (Variadic(), ("x", "y"), {"k": 1}),
    (Small(), (), {"wrong": 1}),
]


@same
def test_normalized_arguments_of_modules(fx, show):
    for module, args, kwargs in MODULES:
        root = torch.nn.Module()
        root.sub = module
        normalized(fx, show, "call_module", "sub", args, kwargs, root)


@same
def test_normalized_arguments_of_the_rest(fx, show):
    root = torch.nn.Module()
    root.w = torch.ones(1)
    normalized(fx, show, "call_method", "relu", ("x",), {}, root)
    normalized(fx, show, "get_attr", "w", (), {}, root)
    normalized(fx, show, "placeholder", "p", (), {}, root)
    normalized(fx, show, "output", "output", ("x",), {}, root)
    normalized(fx, show, "call_module", "nothing", ("x",), {}, root)
    root.sub = torch.nn.Linear(1, 1)
    normalized(fx, show, "call_module", "sub", ("x", "y"), {}, root)


# ---- what cfx does its own way -------------------------------------------------------------------


def test_nodes_of_other_graphs_are_plain_objects():
    g, h = cfx.Graph(), cfx.Graph()
    z = h.placeholder("z")
    n = g.call_function(torch.relu, (z, [z]))
    assert n.args == (z, [z]) and n.args[0] is z
    assert n.all_input_nodes == [] and dict(z.users) == {}
    assert "does not belong to this Graph" in outcome(g.lint)
    assert "%z" in str(g)
    h.erase_node(z)
    assert n.args[0] is z


def test_erased_nodes_cannot_be_used_again():
    g = cfx.Graph()
    x, gone = g.placeholder("x"), g.placeholder("gone")
    n = g.call_function(torch.relu, (x,))
    g.erase_node(gone)
    before = str(g)
    for edit in (
        lambda: g.call_function(torch.relu, (gone,)),
        lambda: g.output([{"a": gone}]),
        lambda: setattr(n, "args", (gone,)),
        lambda: setattr(n, "kwargs", {"k": gone}),
        lambda: n.update_arg(0, gone),
        lambda: n.insert_arg(0, gone),
        lambda: n.update_kwarg("k", gone),
        lambda: x.replace_all_uses_with(gone),
        lambda: n.replace_input_with(x, gone),
        lambda: setattr(gone, "args", (x,)),
        lambda: gone.update_kwarg("k", 1),
        lambda: gone.insert_arg(0, 1),
        lambda: setattr(gone, "name", "n"),
        lambda: setattr(gone, "target", "n"),
        lambda: setattr(gone, "op", "call_method"),
        lambda: gone.append(x),
        lambda: gone.prepend(x),
        lambda: x.append(gone),
        lambda: x.prepend(gone),
        lambda: g.inserting_before(gone),
        lambda: g.inserting_after(gone),
    ):
        with pytest.raises(RuntimeError, match="erased"):
            edit()
        assert str(g) == before and g.verify() == []
    assert dict(gone.users) == {}
    assert gone.name == "gone" and gone.op == "placeholder" and gone.graph is g


@same
def test_erased_nodes_keep_their_literals(fx, show):
    g = fx.Graph()
    x = g.placeholder("x")
    ones = torch.ones(1)
    n = g.call_function(
        torch.clamp, (x, 0, [6, x], (x, {"a": x, "b": 1}), slice(x, 3), ones),
        {"k": x, "j": [1, x], "o": Opaque()},
    )  # fmt: skip
    relu = g.call_function(torch.relu, (x,))
    show(n.args, n.kwargs)
    g.output(relu)
    g.erase_node(n)
    show(n.args, n.kwargs, n.args[1:3], dict(n.users), n.all_input_nodes, n.next, n.prev, n._erased)
    show(n.graph is g, n.args[5] is ones, lambda: n.format_node(), users(x))
    show(lambda: n.replace_all_uses_with(x), lambda: n.replace_all_uses_with(3))
    show(lambda: n.replace_input_with(x, relu), lambda: n.args)
    show(lambda: copy.deepcopy(n).args, lambda: copy.deepcopy(n).kwargs["j"])


@same
def test_rewrites_leave_literals(fx, show):
    def pattern(x, w):
        return torch.relu(torch.nn.functional.conv2d(x, w, None, (2, 2), (1, 1)))

    def f(x, w):
        return torch.relu(torch.nn.functional.conv2d(x, w, None, (2, 2), (1, 1))) + 1

    gm = fx.symbolic_trace(f)
    conv = next(n for n in gm.graph.nodes if n.name == "conv2d")
    fx.replace_pattern(gm, pattern, lambda x, w: x @ w)
    show(conv._erased, conv.args, conv.args[3:], gm.code)
    gm = fx.symbolic_trace(lambda x: (torch.clamp(x, 0, 6), x)[1])
    clamp = next(n for n in gm.graph.nodes if n.name == "clamp")
    gm.graph.eliminate_dead_code()
    show(clamp._erased, clamp.args)


def test_literals_of_erased_nodes_go_with_the_node():
    g = cfx.Graph()
    x = g.placeholder("x")
    held = g.call_function(torch.relu, (x,))
    g.erase_node(held)  # its memory, and that of all that are erased later, stays
    kept = []
    for _ in range(3):
        n = g.call_function(torch.add, (x, Opaque()))
        kept.append(weakref.ref(n.args[1]))
        g.erase_node(n)
        assert kept[-1]() is not None
        del n
        assert kept[-1]() is None
    n = g.call_function(torch.add, (x, Opaque()))
    gone = weakref.ref(n.args[1])
    n.args[1].back = n  # a cycle through the literal
    g.erase_node(n)
    del n, g, x, held
    gc.collect()
    assert gone() is None


def test_erased_calls_with_regions():
    branch = cfx.Graph()
    branch.output(branch.placeholder("a"))
    g = cfx.Graph()
    x = g.placeholder("x")
    cond = g.call_function(cfx.cond, (x, branch, copy.deepcopy(branch), (x, 5)))
    g.erase_node(cond)
    assert cond.args == (None, None, None, (None, 5)) and g.verify() == []


def test_bytes_of_a_location():
    n = cfx.Graph().placeholder("x")
    assert n._location is None
    n._location = ("model.py", 12)
    assert n._location == ("model.py", 12)
    n._location = None
    assert n._location is None
    for bad in (5, ("a",), ("a", -1), (1, 1), ["a", 1]):
        with pytest.raises((TypeError, OverflowError, ValueError, SystemError)):
            n._location = bad
