"""map_arg and map_aggregate: what is a container, what comes out, what a callback may do."""
import collections
import copy
import gc
import inspect
import sys

import pytest
from parity import SANITIZED, growth, outcome

from cfx._core import Node, immutable_dict, immutable_list, map_aggregate, map_arg

Point = collections.namedtuple("Point", "a b")
Nothing = collections.namedtuple("Nothing", "")


class MyList(list):
    def __iter__(self):
        return iter("hidden")

    def __len__(self):
        return 7


class MyTuple(tuple):
    def __iter__(self):
        return iter("hidden")


class MyDict(dict):
    def items(self):
        return [("hidden", 0)]


class Doubling(Point):
    def __new__(cls, a, b):
        return super().__new__(cls, a * 2, b)


class OneArgument(Point):
    def __new__(cls, both):
        return super().__new__(cls, both, both)


class Fields(tuple):
    _fields = None


class HiddenFields(tuple):
    @property
    def _fields(self):
        raise ValueError("not for you")


def attributed(fields):
    result = MyTuple((1,))
    result._fields = fields
    return result


TREES = {
    "int": 1, "none": None, "str": "s", "empty tuple": (), "tuple": (1, 2), "empty list": [],
    "list": [1, "x"], "empty dict": {}, "dict": {"a": 1, "b": (2, [3])}, "keys": {1: 1, (1,): [2]},
    "nested": (1, [2, {"a": (3, slice(4, None))}]), "slice": slice(1, 2), "deep": [[[[[1]]]]],
    "slice of list": slice([1], 2, (3,)), "list class": MyList([1]), "tuple class": MyTuple((1, 2)),
    "dict class": MyDict(a=1), "empty class": MyTuple(), "named": Point(1, [2]),
    "named in named": Point(Point(1, 2), 3), "named empty": Nothing(), "doubling": Doubling(1, 2),
    "one argument": OneArgument(1), "fields none": Fields((1,)), "instance": attributed(("a",)),
    "hidden fields": HiddenFields((1,)), "range": range(3), "set": {1}, "frozen": frozenset([1]),
    "ordered": collections.OrderedDict(b=1, a=2), "default": collections.defaultdict(int, a=1),
    "deque": collections.deque([1]), "structseq": sys.version_info, "generator": map,
    "bytes": b"ab", "mapping": collections.ChainMap({"a": 1}),
}


def test_identity_and_classes():
    def same(x):
        return x

    assert map_aggregate((), same) is ()
    leaf = object()
    for tree in ((leaf,), [leaf], {"a": leaf}, slice(leaf), Point(leaf, 1),
                 immutable_list([leaf]), immutable_dict(a=leaf)):
        result = map_aggregate(tree, same)
        assert result is not tree and result == tree
        assert map_arg(tree, same) is not tree
    assert type(map_aggregate([1], same)) is immutable_list
    assert type(map_aggregate({}, same)) is immutable_dict
    assert type(map_aggregate(Point([1], 2), same).a) is immutable_list
    assert map_aggregate(leaf, same) is leaf and map_arg(leaf, same) is leaf


def test_order():
    seen = []
    map_aggregate([1, {"b": 2, "a": (3, slice(4, 5, 6))}, Point(7, [8])], seen.append)
    assert seen == [1, 2, 3, 4, 5, 6, 7, 8]


def test_results_of_the_callback_are_kept():
    made = [1]
    result = map_aggregate([0, (0,)], lambda _: made)
    assert result[0] is made and result[1][0] is made and type(result[0]) is list


def test_errors():
    with pytest.raises(TypeError, match="'int' object is not callable"):
        map_aggregate([1], 5)
    assert map_aggregate([], 5) == []
    with pytest.raises(AssertionError, match=r"cfx.map_arg\(a, fn\): fn must be a callable"):
        map_arg(1, 5)
    calls = []

    def fail(x):
        calls.append(x)
        if x == 2:
            raise ValueError("two")
        return x

    for tree in ([1, 2, 3], (1, 2, 3), {"a": 1, "b": 2, "c": 3}, slice(1, 2, 3), [(1, {"a": 2})]):
        calls.clear()
        with pytest.raises(ValueError, match="two"):
            map_aggregate(tree, fail)
        assert calls == [1, 2]


def test_signatures():
    assert str(inspect.signature(map_arg)) == str(inspect.signature(map_aggregate)) == "(a, fn)"
    assert map_aggregate(fn=str, a=[1]) == map_aggregate([1], fn=str) == ["1"]
    for call, text in [
        (lambda: map_arg(), "missing"),
        (lambda: map_arg(1), "missing.*'fn'"),
        (lambda: map_arg(fn=1), "missing.*'a'"),
        (lambda: map_arg(1, 2, 3), "positional arguments"),
        (lambda: map_arg(1, x=2), "unexpected keyword argument 'x'"),
        (lambda: map_arg(1, a=2), "multiple values for argument 'a'"),
    ]:
        with pytest.raises(TypeError, match=rf"map_arg\(\).*{text}"):
            call()


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: (x,), lambda x: {"a": x},
                                  lambda x: slice(x, None), lambda x: Point(x, 1)],
                         ids=["list", "tuple", "dict", "slice", "named"])
def test_deep_nesting(wrap):
    tree = 1
    for _ in range(100_000):
        tree = wrap(tree)
    for function in (map_arg, map_aggregate):
        with pytest.raises(RecursionError):
            function(tree, lambda x: x)
    while isinstance(tree, slice):  # Python itself overflows when it frees them at once
        tree = tree.start


def test_cycle():
    tree = []
    tree.append({"a": tree})
    with pytest.raises(RecursionError):
        map_aggregate(tree, lambda x: x)


@pytest.mark.parametrize("change, expected", [
    (lambda x: x.append(9), [0, 1, 2]),
    (lambda x: x.pop(), [0, 1]),
    (lambda x: x.clear(), [0]),
    (lambda x: x.__setitem__(1, 7), [0, 7, 2]),
    (lambda x: x.__setitem__(0, 7), [0, 1, 2]),
    (lambda x: x.insert(0, 9), [0, 0, 1]),
])
def test_list_changes_on_the_way(change, expected):
    tree = [0, 1, 2]
    changed = []

    def callback(x):
        if not changed:
            changed.append(change(tree))
            gc.collect()
        return x

    assert map_aggregate(tree, callback) == expected


@pytest.mark.parametrize("change, expected", [
    (lambda x: x.update(d=9), {"a": 0, "b": 1, "c": 2, "d": 9}),
    (lambda x: x.pop("b"), {"a": 0, "c": 2}),
    (lambda x: x.clear(), {"a": 0}),
    (lambda x: x.update(a=7), {"a": 0, "b": 1, "c": 2}),
    (lambda x: x.update(b=7), {"a": 0, "b": 7, "c": 2}),
])
def test_dict_changes_on_the_way(change, expected):
    tree = {"a": 0, "b": 1, "c": 2}
    changed = []

    def callback(x):
        if not changed:
            changed.append(change(tree))
            gc.collect()
        return x

    assert map_aggregate(tree, callback) == expected


def test_dict_grows_a_lot_on_the_way():
    tree = {i: i for i in range(4)}

    def callback(x):
        if x == 1:
            tree.update((i, object()) for i in range(100, 5000))
        return x

    assert len(map_aggregate(tree, callback)) == len(tree)


def test_item_lives_while_it_is_mapped():
    tree = [[object() for _ in range(3)]]

    def callback(x):
        tree.clear()
        gc.collect()
        return repr(x)

    assert len(map_aggregate(tree, callback)[0]) == 3


def test_half_filled_results_stay_hidden():
    def callback(x):
        for o in gc.get_objects():
            if type(o) in (tuple, immutable_list) and len(o) == 12345:
                repr(o)
        return x

    map_aggregate((1, [1, 2]), callback)
    tree = (0,) * 12345
    map_aggregate([tree, list(tree)], lambda x: x)
    seen = []

    def look(x):
        if not seen:
            seen.append(any(type(o) in (tuple, immutable_list) and len(o) == 12345 and o is not tree
                            for o in gc.get_objects()))
        return x

    map_aggregate(tree, look)
    assert seen == [False]


def test_nested_calls():
    def outer(x):
        return map_aggregate([x, x], lambda y: y + 1)

    assert map_aggregate({"a": (1, 2)}, outer) == {"a": ([2, 2], [3, 3])}


def test_references_and_memory():
    leaf = object()
    count = sys.getrefcount(leaf)
    tree = [leaf, (leaf, {"a": leaf, "b": slice(leaf, leaf)}), Point(leaf, [leaf])]

    def fail(_):
        raise ValueError

    def third():
        calls = iter([leaf, leaf])
        return lambda x: next(calls)

    def work():
        map_aggregate(tree, lambda x: x)
        map_arg(tree, fail)
        for fn in (fail, third()):
            try:
                map_aggregate(tree, fn)
            except (ValueError, StopIteration):
                pass

    assert growth(work, 20_000) < 1 << 20
    del tree
    gc.collect()
    assert sys.getrefcount(leaf) == count


# ---- nodes

@pytest.fixture
def nodes():
    cfx = pytest.importorskip("cfx")
    if not hasattr(cfx, "Graph"):
        pytest.skip("no Graph")
    graph = cfx.Graph()
    return graph.placeholder("x"), graph.placeholder("y")


def test_nodes_only(nodes):
    x, y = nodes
    assert type(x) is Node
    seen = []
    tree = [1, x, {"k": y, "z": 2}, slice(x, None), (x,), Point(y, "s"), {x}, {x: y}]
    result = map_arg(tree, lambda n: seen.append(n) or n.name.upper())
    assert seen == [x, y, x, x, y, y]
    assert result == [1, "X", {"k": "Y", "z": 2}, slice("X", None), ("X",), Point("Y", "s"), {x},
                      {x: "Y"}]
    assert map_arg(x, lambda n: None) is None and map_arg(x, lambda n: n) is x


# ---- against torch.fx

CALLBACKS = {
    "same": lambda x: x,
    "str": str,
    "type": type,
    "list": lambda x: [x],
    "fails": lambda x: 1 / 0,
    "no arguments": lambda: 1,
    "not callable": 5,
}


@pytest.mark.parametrize("callback", CALLBACKS.values(), ids=CALLBACKS)
@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_like_torch(tree, callback):
    theirs = pytest.importorskip("torch.fx.node")
    if SANITIZED and callback in (CALLBACKS["fails"], CALLBACKS["no arguments"], 5):
        pytest.skip("torch cannot raise under the sanitizer")
    calls = [], []

    def logged(which):
        if not callable(callback):
            return callback
        if callback is CALLBACKS["no arguments"]:
            return callback
        return lambda x: (calls[which].append(x), callback(x))[1]

    ours = outcome(lambda: map_aggregate(copy.copy(tree), logged(0)))
    assert ours == outcome(lambda: theirs.map_aggregate(copy.copy(tree), logged(1)))
    assert repr(calls[0]) == repr(calls[1])
    ours = outcome(lambda: map_arg(copy.copy(tree), callback))
    assert ours == outcome(lambda: theirs.map_arg(copy.copy(tree), callback))


def test_like_torch_for_its_classes():
    torch = pytest.importorskip("torch")
    import torch.fx

    for tree in (torch.Size([1, 2]), torch.return_types.max((1, 2)), (torch.Size(), torch.float32)):
        for function in ("map_aggregate", "map_arg"):
            theirs = getattr(torch.fx.node, function)(tree, lambda x: x)
            ours = {"map_aggregate": map_aggregate, "map_arg": map_arg}[function](tree, lambda x: x)
            assert ours == theirs and type(ours) is type(theirs) is tuple
