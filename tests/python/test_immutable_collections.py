"""immutable_list and immutable_dict: read like list and dict, refuse to change, hash, copy."""
import copy
import gc
import pickle
import sys
import weakref

import pytest
from parity import growth, outcome

from cfx.immutable_collections import _register_with_torch, immutable_dict, immutable_list


class SubList(immutable_list):
    pass


class SubDict(immutable_dict):
    pass


LIST_CHANGES = {
    "append": lambda x: x.append(1),
    "append nothing": lambda x: x.append(),
    "extend": lambda x: x.extend([1]),
    "insert": lambda x: x.insert(0, 1),
    "pop": lambda x: x.pop(),
    "pop too many": lambda x: x.pop(1, 2, q=3),
    "remove": lambda x: x.remove(1),
    "clear": lambda x: x.clear(),
    "sort": lambda x: x.sort(key=None),
    "reverse": lambda x: x.reverse(),
    "set": lambda x: x.__setitem__(0, 1),
    "set slice": lambda x: x.__setitem__(slice(0, 1), [1]),
    "set out of range": lambda x: x.__setitem__(99, 1),
    "delete": lambda x: x.__delitem__(0),
    "add": lambda x: x.__iadd__([1]),
    "add itself": lambda x: x.__iadd__(x),
    "repeat": lambda x: x.__imul__(2),
}
DICT_CHANGES = {
    "clear": lambda x: x.clear(),
    "pop": lambda x: x.pop("a"),
    "pop missing": lambda x: x.pop("missing", None),
    "popitem": lambda x: x.popitem(),
    "setdefault": lambda x: x.setdefault("b", 1),
    "setdefault existing": lambda x: x.setdefault("a"),
    "update": lambda x: x.update(b=1),
    "update nothing": lambda x: x.update(),
    "set": lambda x: x.__setitem__("a", 1),
    "delete": lambda x: x.__delitem__("a"),
    "or": lambda x: x.__ior__({"b": 1}),
}


@pytest.mark.parametrize("change", LIST_CHANGES.values(), ids=LIST_CHANGES)
@pytest.mark.parametrize("cls", [immutable_list, SubList])
def test_list_refuses(cls, change):
    items = cls([1, 2])
    with pytest.raises(TypeError) as e:
        change(items)
    first, *rest = str(e.value).splitlines()
    assert first.startswith(f"'{cls.__name__}' object does not support mutation. ")
    assert "cfx.Node" in first and rest[-1] == "    node.args = new_args"
    assert items == [1, 2]


@pytest.mark.parametrize("change", DICT_CHANGES.values(), ids=DICT_CHANGES)
@pytest.mark.parametrize("cls", [immutable_dict, SubDict])
def test_dict_refuses(cls, change):
    items = cls(a=1)
    with pytest.raises(TypeError, match=f"'{cls.__name__}' object does not support mutation. "):
        change(items)
    assert items == {"a": 1}


def test_statements_refuse():
    items = immutable_list([1, 2])
    alias = items
    with pytest.raises(TypeError, match="mutation"):
        items += [3]
    with pytest.raises(TypeError, match="mutation"):
        items *= 2
    with pytest.raises(TypeError, match="mutation"):
        items[0] = 5
    with pytest.raises(TypeError, match="mutation"):
        del items[:]
    assert items is alias and items == [1, 2]
    pairs = immutable_dict(a=1)
    with pytest.raises(TypeError, match="mutation"):
        pairs["a"] = 2
    with pytest.raises(TypeError, match="mutation"):
        del pairs["a"]
    with pytest.raises(TypeError, match="mutation"):
        pairs |= {}
    assert pairs == {"a": 1}


def test_reading_is_inherited():
    items = immutable_list([3, 1, 2])
    assert isinstance(items, list) and len(items) == 3 and items[0] == 3 and items[-1] == 2
    assert items == [3, 1, 2] and [3, 1, 2] == items and items != [3] and items < [4]
    assert sorted(items) == [1, 2, 3] and items.index(1) == 1 and items.count(2) == 1
    assert repr(items) == str(items) == "[3, 1, 2]" and list(reversed(items)) == [2, 1, 3]
    pairs = immutable_dict(a=1, b=2)
    assert isinstance(pairs, dict) and pairs["a"] == 1 and pairs.get("c", 7) == 7
    assert pairs == {"b": 2, "a": 1} and {"a": 1, "b": 2} == pairs and pairs != {}
    assert list(pairs.items()) == [("a", 1), ("b", 2)] and repr(pairs) == "{'a': 1, 'b': 2}"
    assert (lambda **kw: kw)(**pairs) == {"a": 1, "b": 2} and (lambda *a: a)(*items) == (3, 1, 2)
    match items, pairs:
        case [first, *_], {"b": b}:
            assert (first, b) == (3, 2)


def test_results_are_mutable():
    items, pairs = immutable_list([1, 2]), immutable_dict(a=1)
    for result in (items + [1], [1] + items, items * 2, items[:1], items.copy(), sorted(items)):
        assert type(result) is list
    for result in (pairs.copy(), pairs | {"b": 1}, {"b": 1} | pairs):
        assert type(result) is dict


def test_making():
    assert immutable_list() == [] and immutable_dict() == {}
    assert immutable_list(x for x in "ab") == ["a", "b"]
    assert immutable_dict([("a", 1)], b=2) == {"a": 1, "b": 2}
    with pytest.raises(TypeError, match="not iterable"):
        immutable_list(5)
    with pytest.raises(TypeError, match="no keyword arguments"):
        immutable_list(iterable=[])
    assert type(immutable_dict.fromkeys("")) is immutable_dict
    with pytest.raises(TypeError, match="mutation"):
        immutable_dict.fromkeys("ab")


def test_hash():
    assert hash(immutable_list([1, 2])) == hash((1, 2))
    assert hash(immutable_dict(a=1, b=2)) == hash(immutable_dict(b=2, a=1))
    assert hash(immutable_dict(a=1)) == hash(frozenset({("a", 1)}))
    assert {immutable_list([1]): "x"}[immutable_list([1])] == "x"
    nested = immutable_list([immutable_dict(a=immutable_list([1]))])
    assert hash(nested) == hash(copy.deepcopy(nested))
    for unhashable in (immutable_list([[]]), immutable_dict(a={})):
        with pytest.raises(TypeError, match="unhashable type"):
            hash(unhashable)


def test_hash_of_a_cycle():
    items = immutable_list()
    list.append(items, items)
    pairs = immutable_dict()
    dict.__setitem__(pairs, "self", pairs)
    for cycle in (items, pairs):
        with pytest.raises(RecursionError):
            hash(cycle)
    assert repr(items) == "[[...]]"


@pytest.mark.parametrize("items", [immutable_list([1, [2]]), immutable_dict(a=[1]),
                                   SubList([1]), SubDict(a=1)], ids=lambda x: type(x).__name__)
def test_copies(items):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        loaded = pickle.loads(pickle.dumps(items, protocol))
        assert loaded == items and type(loaded) is type(items)
    shallow, deep = copy.copy(items), copy.deepcopy(items)
    assert shallow == deep == items and type(shallow) is type(deep) is type(items)
    assert items.__reduce__()[0] is type(items)


def test_deepcopy_goes_deep():
    inner = [1]
    assert copy.deepcopy(immutable_list([inner]))[0] is not inner
    assert copy.copy(immutable_list([inner]))[0] is inner


@pytest.mark.parametrize("cls", [immutable_list, immutable_dict, SubList, SubDict])
def test_attributes_and_weak_references(cls):
    items = cls()
    assert vars(items) == {}
    items.note = "x"
    assert vars(items) == {"note": "x"} and items.note == "x"
    items.__dict__ = {"other": 1}
    assert items.other == 1
    dead = []
    ref = weakref.ref(items, dead.append)
    assert ref() is items
    del items
    assert ref() is None and dead == [ref]


@pytest.mark.parametrize("cls", [immutable_list, immutable_dict, SubList, SubDict])
def test_cycles_are_collected(cls):
    items = cls()
    items.me = items
    ref = weakref.ref(items)
    del items
    gc.collect()
    assert ref() is None


def test_names():
    for cls in (immutable_list, immutable_dict):
        assert cls.__module__ == "cfx.immutable_collections"
        assert cls.__qualname__ == cls.__name__
        assert sys.modules[cls.__module__].__dict__[cls.__name__] is cls
        assert "stable" in cls.__doc__
    assert repr(immutable_list[int]) == "cfx.immutable_collections.immutable_list[int]"
    assert immutable_dict[str, int].__origin__ is immutable_dict


def test_deep_nesting_is_freed():
    items, pairs = immutable_list(), immutable_dict()
    for _ in range(100_000):
        items = immutable_list([items])
        pairs = immutable_dict(x=pairs)
    del items, pairs


def test_references_and_memory():
    item = object()
    count = sys.getrefcount(item)
    for _ in range(1000):
        items = immutable_list([item])
        pairs = immutable_dict(x=item)
        items.note = pairs.note = item
        items.__reduce__(), pairs.__reduce__(), hash(items), hash(pairs), items == [item]
        for change in (items.append, items.clear, pairs.update):
            with pytest.raises(TypeError):
                change(item)
    del items, pairs, change
    assert sys.getrefcount(item) == count
    types = sys.getrefcount(immutable_list), sys.getrefcount(immutable_dict)

    def work():
        a = immutable_list([item, item])
        b = immutable_dict(x=a)
        hash(b), copy.copy(a), weakref.ref(b)
        a.note = b

    assert growth(work) < 1 << 20
    gc.collect()
    now = sys.getrefcount(immutable_list), sys.getrefcount(immutable_dict)
    assert abs(now[0] - types[0]) <= 2 and abs(now[1] - types[1]) <= 2


# ---- against torch.fx

CALLS = {
    **{f"list {k}": lambda m, f=f: f(m.immutable_list([1, 2])) for k, f in LIST_CHANGES.items()},
    **{f"dict {k}": lambda m, f=f: f(m.immutable_dict(a=1)) for k, f in DICT_CHANGES.items()},
    "mro": lambda m: m.immutable_list.__mro__ + m.immutable_dict.__mro__,
    "hash": lambda m: (hash(m.immutable_list([1, 2])), hash(m.immutable_dict(a=1)) == 0),
    "hash list": lambda m: hash(m.immutable_list([[1]])),
    "reduce": lambda m: (m.immutable_list([1]).__reduce__(), m.immutable_dict(a=1).__reduce__()),
    "reduce_ex": lambda m: m.immutable_list([1]).__reduce_ex__(4),
    "compare": lambda m: (m.immutable_list([1]) == (1,), m.immutable_list([1]) == [1],
                          m.immutable_dict() != {}, m.immutable_list([1]) >= [0]),
    "add": lambda m: m.immutable_list([1]) + [2],
    "or": lambda m: m.immutable_dict(a=1) | {"b": 2},
    "slice": lambda m: m.immutable_list([1])[:],
    "alias": lambda m: m.immutable_list[int],
    "fromkeys": lambda m: m.immutable_dict.fromkeys("ab"),
    "fromkeys of nothing": lambda m: m.immutable_dict.fromkeys(""),
    "keyword": lambda m: m.immutable_list(iterable=[1]),
    "init again": lambda m: m.immutable_list([1]).__init__([2]),
    "vars": lambda m: vars(m.immutable_list([1])),
    "base method": lambda m: [list.append(x, 2) or x for x in [m.immutable_list([1])]],
    "deepcopy": lambda m: copy.deepcopy(m.immutable_list([[1], m.immutable_dict(a=1)])),
    "size": lambda m: sys.getsizeof(m.immutable_dict()) > 0,
    "name": lambda m: (m.immutable_list.__name__, m.immutable_dict.__qualname__),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_like_torch(call):
    theirs = pytest.importorskip("torch.fx.immutable_collections")
    import cfx.immutable_collections as ours
    assert outcome(lambda: call(ours)) == outcome(lambda: call(theirs))


def test_torch_pytree():
    pytree = pytest.importorskip("torch.utils._pytree")
    _register_with_torch()
    _register_with_torch()
    tree = immutable_list([1, immutable_dict(b=2, a=[3])])
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3]
    back = pytree.tree_unflatten([7, 8, 9], spec)
    assert back == [7, {"b": 8, "a": [9]}] and type(back) is immutable_list
    assert type(back[1]) is immutable_dict and list(back[1]) == ["b", "a"]
    paths = [pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(tree)[0]]
    assert paths == ["[0]", "[1]['b']", "[1]['a'][0]"]
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    assert spec != pytree.tree_flatten([1, {"b": 2, "a": [3]}])[1]
