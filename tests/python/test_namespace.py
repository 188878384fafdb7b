"""_Namespace: unique names and the objects they stand for, alone and as a graph's."""
import gc
import inspect
import math
import random
import sys
import types
import weakref

import pytest
from parity import growth, outcome

from cfx._core import _Namespace

WISHES = [
    "foo", "foo_1", "foo_01", "foo_0", "foo_1_2", "foo_", "foo__1", "foo_10", "foo1", "_1", "_",
    "__", "_foo", "__foo__", "1", "1a", "123_4", "0_1", "a.b.c", "a-b", "a b", "Foo", "FooBar", "",
    "é", "aé", "日本", "for", "for_1", "None", "True", "sum", "sum_1", "max", "int", "torch",
    "device", "inf", "nan", "NoneType", "fx_pytree", "pytree", "getattr", "self", "input", "match",
    "async", "type", "__init__", "__name__", "aaaaa_99", "foo_1a", "foo_a_1", "*args", "**kwargs",
    "%x", "$", "a$b_3", "3_3", "_3_3", "foo_-1", "a_1_", "٣", "²", "foo_²", "a\0b", "a\ud800b",
    "x" * 300, "x" * 300 + "_7", "foo_" + "9" * 17,
]


def names_for(cls, wishes):
    names = cls()
    return [names.create_name(wish, None) for wish in wishes], names._used_names


def test_basics():
    names = _Namespace()
    assert [names.create_name(w, None) for w in ("x", "x", "x_1", "y.z", "for")] == \
        ["x", "x_1", "x_2", "y_z", "for_1"]
    assert names._used_names == {"x", "x_1", "x_2", "y_z", "for_1"}
    assert names._used_names is not names._used_names
    with pytest.raises(AttributeError):
        names._used_names.add("lost")


def test_an_exact_name_is_not_copied():
    wish = "".join(["some", "thing"])
    assert _Namespace().create_name(wish, None) is wish
    sub = type("S", (str,), {})("thing")
    assert type(_Namespace().create_name(sub, None)) is str


def test_objects():
    names = _Namespace()
    a, b = object(), object()
    assert names.create_name("foo", a) == "foo"
    assert names.create_name("other", a) == "foo"
    assert names.create_name("foo", b) == "foo_1"
    assert names.create_name(5, a) == "foo"  # the object decides
    assert names.create_name("t", (1, 2)) == names.create_name("u", (1, 2)) == "t"  # by equality
    assert names.create_name("i", 1) == names.create_name("f", 1.0) == "i"
    with pytest.raises(AssertionError, match="obj is already associated"):
        names.associate_name_with_obj("zzz", a)
    c = object()
    assert names.associate_name_with_obj("zzz", c) is None
    assert names.create_name("any", c) == "zzz"
    assert "zzz" not in names._used_names
    assert names._rename_object(c, "new name!") is None
    assert names.create_name("any", c) == "new name!" and "new name!" in names._used_names
    with pytest.raises(AssertionError, match="Object abc is not in _obj_to_name"):
        names._rename_object("abc", "x")


def test_errors():
    names = _Namespace()
    for call in (lambda: names.create_name(5, None), lambda: names.create_name(b"x", None),
                 lambda: names.create_name(None, object()), lambda: names.create_name("x", []),
                 lambda: names.associate_name_with_obj("x", {}), lambda: names.create_name("x"),
                 lambda: names.associate_name_with_obj(5, 1), lambda: names._rename_object([], "x"),
                 lambda: names.create_name(), lambda: names.create_name("x", None, 1),
                 lambda: names.create_name("x", other=1), lambda: _Namespace(1),
                 lambda: _Namespace(x=1)):
        with pytest.raises(TypeError):
            call()

    class Fails:
        def __hash__(self):
            raise ValueError("no hash")

    with pytest.raises(ValueError, match="no hash"):
        names.create_name("x", Fails())

    class NeverEqual:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            raise ValueError("no equality")

    names.create_name("x", NeverEqual())
    with pytest.raises(ValueError, match="no equality"):
        names.create_name("y", NeverEqual())
    assert names._used_names == {"x"}


def test_signatures():
    names = _Namespace()
    assert str(inspect.signature(names.create_name)) == "(candidate, obj)"
    assert str(inspect.signature(names.associate_name_with_obj)) == "(name, obj)"
    assert str(inspect.signature(names._rename_object)) == "(obj, name)"
    assert names.create_name(obj=None, candidate="x") == "x"
    assert _Namespace.__module__ == "cfx.graph" and _Namespace.__name__ == "_Namespace"


def test_builtins_may_keep_their_names():
    names = _Namespace()
    for name, thing in [("len", len), ("int", int), ("Ellipsis", ...), ("True", True),
                        ("NoneType", type(None)), ("IOError", OSError)]:
        assert names.create_name(name, thing) == name
    assert names.create_name("max", len) == "len"
    assert names.create_name("sum", object()) == "sum_1"
    assert names.create_name("for", object()) == "for_1"
    assert names.create_name("None", None) == "None"
    assert names.create_name("inf", float("inf")) == "inf_1"
    assert names.create_name("int", type(None)) == "NoneType"
    assert _Namespace().create_name("int", type(None)) == "int_1"


def test_register_global():
    module = types.ModuleType("fx_pytree")
    before = dict(getattr(_Namespace, "_globals", {}))
    try:
        assert _Namespace().create_name("fx_pytree", module) == "fx_pytree_1"
        _Namespace._register_global("fx_pytree", module)
        assert _Namespace().create_name("fx_pytree", module) == "fx_pytree"
        assert _Namespace().create_name("fx_pytree", types) == "fx_pytree_1"

        class Sub(_Namespace):
            pass

        Sub._register_global("device", Sub)
        assert Sub().create_name("device", Sub) == "device"
        assert _Namespace().create_name("device", Sub) == "device"
        for bad in ((), ("x",), (1, 2), ("a", 1, 2)):
            with pytest.raises(TypeError):
                _Namespace._register_global(*bad)
    finally:
        _Namespace._globals = before


def test_many_names():
    names = _Namespace()
    made = {names.create_name("add", None) for _ in range(50_000)}
    assert len(made) == 50_000 and "add_49999" in made and made == names._used_names


def test_cycles_are_collected():
    class Thing:
        pass

    names, thing = _Namespace(), Thing()
    thing.names = names
    names.create_name("x", thing)
    ref = weakref.ref(thing)
    del names, thing
    gc.collect()
    assert ref() is None


def test_references_and_memory():
    thing = object()
    wish = "".join(["wi", "sh"])
    counts = sys.getrefcount(thing), sys.getrefcount(wish), sys.getrefcount(_Namespace)
    fresh = 0

    def work():
        nonlocal fresh
        names = _Namespace()
        fresh += 1
        names.create_name(wish, None)
        names.create_name(wish, thing)
        names.create_name("é" + str(fresh), None)
        names._rename_object(thing, wish)
        names._used_names
        try:
            names.associate_name_with_obj(wish, thing)
        except AssertionError:
            pass
        try:
            names.create_name("x\ud800", [])
        except TypeError:
            pass

    assert growth(work) < 1 << 20
    assert counts == (sys.getrefcount(thing), sys.getrefcount(wish), sys.getrefcount(_Namespace))


# ---- of a graph

@pytest.fixture
def graph():
    cfx = pytest.importorskip("cfx")
    if not hasattr(cfx, "Graph"):
        pytest.skip("no Graph")
    return cfx.Graph()


def test_graph_shares_its_names(graph):
    names = graph._graph_namespace
    assert type(names) is _Namespace and names is graph._graph_namespace
    x = graph.placeholder("x")
    assert names._used_names == {"x"}
    assert names.create_name("x", None) == "x_1"
    assert graph.placeholder("x").name == "x_2"
    assert names.create_name("anything", x) == "x"
    with pytest.raises(AssertionError, match="already associated"):
        names.associate_name_with_obj("other", x)
    names._rename_object(x, "given")
    assert names.create_name("anything", x) == "given" and "given" in names._used_names
    assert graph.placeholder("given").name == "given_1"


def test_graph_keeps_names_of_erased_nodes(graph):
    x = graph.placeholder("x")
    graph.erase_node(x)
    assert graph._graph_namespace.create_name("y", x) == "x"
    assert graph.placeholder("x").name == "x_1"


def test_nodes_of_other_graphs_are_plain_objects(graph):
    other = type(graph)().placeholder("z")
    names = graph._graph_namespace
    assert names.create_name("w", other) == "w" == names.create_name("v", other)


def test_namespace_keeps_its_graph(graph):
    cls = type(graph)
    names = cls()._graph_namespace
    gc.collect()
    assert names.create_name("x", None) == "x" and names._used_names == {"x"}

    def work():
        g = cls()
        g._graph_namespace.create_name("x", g)

    assert growth(work, 5_000) < 1 << 20


def test_graph_with_its_namespace_is_collected(graph):
    cls = type(graph)
    g = cls()
    g._graph_namespace.create_name("x", g.placeholder("y"))
    ref = weakref.ref(g)
    del g
    gc.collect()
    assert ref() is None


# ---- against torch.fx

@pytest.fixture
def theirs():
    pytest.importorskip("torch.fx")
    from torch.fx.graph import _Namespace as other
    return other


@pytest.mark.parametrize("wish", WISHES, ids=[f"{i}" for i in range(len(WISHES))])
def test_like_torch(theirs, wish):
    for wishes in ([wish] * 3, ["foo", wish, "foo", wish], [wish, "foo_1", wish, "a_b", wish]):
        assert names_for(_Namespace, wishes) == names_for(theirs, wishes)


@pytest.mark.parametrize("seed", range(20))
def test_like_torch_at_random(theirs, seed):
    choice = random.Random(seed)
    words = [choice.choice(["a", "b", "a_b", "sum", "_", ""]) + choice.choice(["", "_1", "_2", "_"])
             + choice.choice(["", "", "_3", "_10", "_00", ".", "!x"]) for _ in range(12)]
    wishes = [choice.choice(words) for _ in range(300)]
    assert names_for(_Namespace, wishes) == names_for(theirs, wishes), wishes


def test_like_torch_with_objects(theirs):
    a, b, c = object(), object(), object()
    calls = [
        lambda n: n.create_name("foo", a), lambda n: n.create_name("bar", a),
        lambda n: n.create_name("foo", b), lambda n: n.associate_name_with_obj("zzz", a),
        lambda n: n.associate_name_with_obj("zzz", c), lambda n: n.create_name("any", c),
        lambda n: n._rename_object(c, "newname"), lambda n: n.create_name("any", c),
        lambda n: n._rename_object("nobody", "nn"), lambda n: n.create_name("newname", None),
        lambda n: n.create_name("sum", sum), lambda n: n.create_name("sum", sum),
        lambda n: n.create_name("len", None), lambda n: n.create_name("max", len),
        lambda n: n.create_name("len", len), lambda n: n.create_name("int", int),
        lambda n: n.create_name("NoneType", type(None)), lambda n: n.create_name("l", []),
        lambda n: n.create_name("inf", float("inf")), lambda n: n.create_name("None", type(None)),
        lambda n: n.create_name("t", (1, 2, 3)), lambda n: n.create_name("u", (1, 2, 3)),
        lambda n: n.create_name("i", 1), lambda n: n.create_name("f", 1.0),
        lambda n: n.create_name("b", True), lambda n: n.associate_name_with_obj("kw", None),
        lambda n: n.create_name("kw", None), lambda n: n._rename_object(None, "kw2"),
        lambda n: n.create_name("for", object),
        lambda n: sorted(n._used_names),
    ]
    ours, other = _Namespace(), theirs()
    for call in calls:
        assert outcome(lambda: call(ours)) == outcome(lambda: call(other))


def test_like_torch_with_registered_globals(theirs):
    torch = pytest.importorskip("torch")
    before = dict(getattr(_Namespace, "_globals", {}))
    try:
        for name, thing in [("torch", torch), ("device", torch.device), ("inf", math.inf)]:
            _Namespace._register_global(name, thing)
        for name, thing in [("torch", torch), ("torch", math), ("device", torch.device),
                            ("inf", math.inf), ("inf", float("inf")), ("device", torch)]:
            wishes = _Namespace().create_name(name, thing), theirs().create_name(name, thing)
            assert wishes[0] == wishes[1]
    finally:
        _Namespace._globals = before
