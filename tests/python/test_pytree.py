"""_pytree: flattening by a spec, registering classes, and working without torch."""
import collections
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from parity import outcome

import cfx
import cfx._pytree as fx_pytree
from cfx.immutable_collections import _register_with_torch

Point = collections.namedtuple("Point", "a b")


class Leaf:
    """As much of a TreeSpec as is looked at."""

    type = None

    def is_leaf(self):
        return True


class Spec(Leaf):
    def __init__(self, cls, context, *children):
        self.type, self.context, self.specs = cls, context, list(children)
        self.num_children = len(children)

    def is_leaf(self):
        return False

    def children(self):
        return self.specs


leaf = Leaf()


def test_flatten():
    flatten = fx_pytree.tree_flatten_spec
    spec = Spec(tuple, None, Spec(list, None, leaf, leaf), Spec(dict, ["b", "a"], leaf, leaf))
    assert flatten(([1, 2], {"a": 3, "b": 4}), spec) == [1, 2, 4, 3]
    assert flatten(([1, 2, 9], {"a": 3, "b": 4, "c": 9}, 9), spec) == [1, 2, 4, 3]
    assert flatten([1], leaf) == [[1]] and flatten((), Spec(tuple, None)) == []
    with pytest.raises(IndexError):
        flatten(([1], {}), spec)
    with pytest.raises(KeyError):
        flatten(([1, 2], {"b": 1}), spec)


def test_register():
    class Box:
        def __init__(self, *items):
            self.items = items

    def items(box, spec):
        return list(box.items)

    fx_pytree.register_pytree_flatten_spec(Box, items)
    assert fx_pytree.SUPPORTED_NODES[Box] is items
    assert fx_pytree.SUPPORTED_NODES_EXACT_MATCH[Box] is None
    spec = Spec(Box, None, leaf, leaf)
    assert fx_pytree.tree_flatten_spec(Box(1, 2, 3), spec) == [1, 2]
    assert fx_pytree.tree_flatten_spec(Box(1), spec) == [1]
    fx_pytree._deregister_pytree_flatten_spec(Box)
    assert Box not in fx_pytree.SUPPORTED_NODES
    assert Box not in fx_pytree.SUPPORTED_NODES_EXACT_MATCH
    with pytest.raises(KeyError):
        fx_pytree._deregister_pytree_flatten_spec(Box)


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import cfx._pytree as p
import cfx.immutable_collections as c
assert list(p.SUPPORTED_NODES)[:3] == [dict, list, tuple]
class Spec:
    type = set
    def is_leaf(self): return False
for call in (lambda: p.tree_flatten_spec({1}, Spec()), lambda: p.TreeSpec, lambda: p.tree_flatten,
             c._register_with_torch):
    try:
        call()
    except ImportError as e:
        assert "torch" in str(e), e
    else:
        raise SystemExit("no ImportError")
try:
    p.nothing
except AttributeError:
    print("good")
"""


def test_without_torch():
    env = {**os.environ, "PYTHONPATH": str(Path(fx_pytree.__file__).parents[1])}
    run = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True,
                         env=env)
    assert run.stdout == "good\n", run.stderr


# ---- against torch.fx

@pytest.fixture
def theirs():
    module = pytest.importorskip("torch.fx._pytree")
    _register_with_torch()
    return module


def test_same_names(theirs):
    public = {k for k in dir(theirs) if not k.startswith("__")} - {"torch", "return_type"}
    assert {k for k in public if not hasattr(fx_pytree, k)} == set()
    assert fx_pytree.TreeSpec is theirs.TreeSpec and fx_pytree.tree_flatten is theirs.tree_flatten
    for table in ("SUPPORTED_NODES", "SUPPORTED_NODES_EXACT_MATCH"):
        ours, other = getattr(fx_pytree, table), getattr(theirs, table)
        assert set(ours) == set(other)
        assert {k: v.__name__ for k, v in ours.items()} == {k: v.__name__ for k, v in other.items()}
    for name in ("tree_flatten_spec", "register_pytree_flatten_spec", "_dict_flatten_spec",
                 "_namedtuple_flatten_spec", "_list_flatten_spec_exact_match"):
        assert list(inspect.signature(getattr(fx_pytree, name)).parameters) == \
            list(inspect.signature(getattr(theirs, name)).parameters)


TREES = {
    "leaf": 1, "none": None, "list": [1, 2], "tuple": (1, (2, [3])), "dict": {"b": 1, "a": 2},
    "named": Point(1, Point(2, [3])), "nested": ([1, {"a": 2}], {"k": (3,)}), "empty": [],
    "ordered": collections.OrderedDict(b=1, a=2), "deque": collections.deque([1, 2]),
    "default": collections.defaultdict(int, a=1), "mixed": [(1, {"x": Point(1, None)}), ()],
}


@pytest.mark.parametrize("spec_of", TREES.values(), ids=TREES)
def test_like_torch(theirs, spec_of):
    spec = fx_pytree.tree_flatten(spec_of)[1]
    for tree in TREES.values():
        ours = outcome(lambda: fx_pytree.tree_flatten_spec(tree, spec))
        other = outcome(lambda: theirs.tree_flatten_spec(tree, spec))
        if ours.startswith("RuntimeError"):  # only its wording is ours
            ours, other = ours.split(":")[0], other.split(":")[0]
        assert ours == other


def test_like_torch_for_registered_classes(theirs):
    torch = pytest.importorskip("torch")
    import torch.utils._pytree as pytree

    class Pair:
        def __init__(self, a, b):
            self.items = a, b

    pytree.register_pytree_node(Pair, lambda p: (list(p.items), None), lambda i, _: Pair(*i))
    result = torch.return_types.max((1, 2))
    for tree in (Pair(1, 2), [Pair(1, [2])], result, (result, [result])):
        leaves, spec = pytree.tree_flatten(tree)
        assert fx_pytree.tree_flatten_spec(tree, spec) == leaves
        assert theirs.tree_flatten_spec(tree, spec) == leaves
    with pytest.raises(RuntimeError, match="structure"):
        fx_pytree.tree_flatten_spec(Pair(1, [2]), pytree.tree_flatten(Pair(1, 2))[1])


@pytest.mark.parametrize("kind, one, two", [
    ("list", [1, 2], [1, 2, 3]), ("tuple", (1, 2), (1,)), ("dict", {"a": 1}, {"b": 1}),
    ("dict", {"a": 1}, {"a": 1, "b": 2}), ("namedtuple", Point(1, 2), (1, 2, 3)),
])
def test_helpers_like_torch(theirs, kind, one, two):
    spec = fx_pytree.tree_flatten(one)[1]
    for name in (f"_{kind}_flatten_spec", f"_{kind}_flatten_spec_exact_match"):
        for tree in (one, two):
            assert outcome(lambda: getattr(fx_pytree, name)(tree, spec)) == \
                outcome(lambda: getattr(theirs, name)(tree, spec))


# ---- concrete_args ---------------------------------------------------------------------------


def scaled(x, pair=(1, 2), scale=3.0, *, more={"a": [4], "b": 5}):  # noqa: B006
    return x * pair[0] + pair[1] * scale + more["a"][0] * 100 + more["b"] * 1000


PH = cfx.PH
CONCRETE = [
    {"pair": (PH, PH)}, {"pair": (PH, 2)}, {"more": {"a": [PH], "b": PH}},
    {"pair": (PH, PH), "scale": 3.0, "more": {"a": [PH], "b": 5}}, {"pair": PH, "scale": PH},
]  # fmt: skip


@pytest.mark.parametrize("concrete", CONCRETE, ids=str)
def test_concrete_args_keep_defaults(concrete):
    gm = cfx.symbolic_trace(scaled, concrete_args=concrete)
    for args in [(2.0,), (2.0, (7, 2)), (2.0, (7, 2), 3.0), (2.0, (7, 2), 3.0, {"a": [8], "b": 5})]:
        kwargs = {"more": args[3]} if len(args) > 3 else {}
        expected = scaled(*args[:3], **kwargs)
        assert gm(*args) == expected
        assert cfx.Interpreter(gm).run(*args) == expected


def test_a_default_of_another_structure_is_no_default():
    def pick(x, pair=None, scale=1.0):
        return x * pair[0] * scale if pair else x

    gm = cfx.symbolic_trace(pick, concrete_args={"pair": (PH, PH)})
    assert gm(2.0, (3.0, 0.0)) == 6.0
    with pytest.raises(TypeError, match="pair"):
        gm(2.0)
    empty = cfx.symbolic_trace(pick, concrete_args={"pair": (), "scale": PH})
    assert empty(2.0, ()) == 2.0


def test_a_tuple_and_a_dict_are_not_args_and_kwargs():
    def both(pair, d):
        return pair[0] * 10 + d["a"]

    for pair in ((PH,), (PH, PH)):
        gm = cfx.symbolic_trace(both, concrete_args={"pair": pair, "d": {"a": PH}})
        assert gm((1, 2)[: len(pair)], {"a": 3}) == 13


def test_misspelled_concrete_args_are_reported():
    with pytest.warns(UserWarning, match="no parameter 'scal'; did you mean 'scale'") as caught:
        gm = cfx.symbolic_trace(scaled, concrete_args={"scal": 2.0})
    assert caught[0].filename == __file__
    assert gm(2.0) == scaled(2.0)
    with pytest.warns(UserWarning, match="no parameter 'input'; the parameters are x, pair, scale"):
        cfx.symbolic_trace(scaled, concrete_args={"input": 2.0})
