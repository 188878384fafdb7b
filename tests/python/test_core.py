"""Corners of the extension that ordinary programs do not reach."""
import gc
import operator
import os
import subprocess
import sys
import typing
import weakref
from pathlib import Path

import cfx
import cfx._core as core
import pytest

PACKAGE = str(Path(__file__).resolve().parents[2] / "python")


def holding(*values):
    graph = cfx.Graph()
    graph.call_function(len, values)
    return graph


# ---- reading arguments runs Python code


def test_a_list_that_grows_while_it_is_read():
    items = []

    class Growing(type):
        @property
        def _fields(cls):
            items.extend(range(len(items), 100))
            raise AttributeError

    class Row(tuple, metaclass=Growing):
        pass

    items.append(Row((1, 2)))
    node = cfx.Graph().call_function(len, (items,))
    assert node.args == ([(1, 2), *range(1, 100)],)


def test_a_list_that_shrinks_while_it_is_read():
    items = []

    class Clearing(type):
        @property
        def _fields(cls):
            items.clear()
            raise AttributeError

    class Row(tuple, metaclass=Clearing):
        pass

    items += [Row((1,)), 2, 3]
    assert cfx.Graph().call_function(len, (items,)).args == ([(1,)],)


def test_fields_that_raise():
    class Broken(type):
        @property
        def _fields(cls):
            raise ZeroDivisionError

    class Row(tuple, metaclass=Broken):
        pass

    graph = cfx.Graph()
    for values in ((Row(),), ([1, {"k": Row()}],), ({1: (2, slice(Row()))},)):
        with pytest.raises(ZeroDivisionError):
            graph.call_function(len, values)
    assert len(graph.nodes) == 0


def test_arguments_that_hold_themselves():
    items = []
    items.append(items)
    with pytest.raises(RecursionError):
        cfx.Graph().call_function(len, (items,))


# ---- what an object is asked for


class Spelled:
    def _custom_fx_repr_fn(self):
        return "<mine>"


class Unprintable:
    def __repr__(self):
        raise ZeroDivisionError

    def __eq__(self, other):
        raise ZeroDivisionError

    __hash__ = object.__hash__


def test_an_object_may_say_how_it_is_printed():
    assert "args = (<mine>, [<mine>])" in str(holding(Spelled(), [Spelled()]))


def test_an_exception_while_printing():
    graph = holding(Unprintable())
    for show in (str, cfx.Graph.print_tabular, lambda g: g.python_code("self")):
        with pytest.raises(ZeroDivisionError):
            show(graph)


def test_objects_that_cannot_be_compared():
    one = Unprintable()
    assert cfx.equal(holding(one), holding(one))
    assert not cfx.equal(holding(one), holding(Unprintable()))
    assert not cfx.equal(holding(one), holding(Spelled()))


def test_tensors_are_equal_only_to_themselves():
    torch = pytest.importorskip("torch")
    tensor = torch.ones(2)
    assert cfx.equal(holding(tensor), holding(tensor))
    assert not cfx.equal(holding(tensor), holding(torch.ones(2)))


# ---- life


def test_weak_references():
    graph = cfx.Graph()
    gone = []
    refs = [weakref.ref(graph, gone.append)]
    del graph
    assert gone == refs
    graph = holding(1)
    node = next(iter(graph.nodes))
    refs += [weakref.ref(graph, gone.append), weakref.ref(node, gone.append)]
    del graph, node
    gc.collect()
    assert [ref() for ref in refs] == [None] * 3 and len(gone) == 3


def test_an_erased_node_goes_when_nobody_holds_it():
    graph = holding(1)
    node = next(iter(graph.nodes))
    gone = []
    ref = weakref.ref(node, gone.append)
    graph.erase_node(node)
    del node
    assert gone == [ref]


def test_memory_is_reported_and_given_back():
    graph = cfx.Graph()
    for _ in range(10_000):
        graph.placeholder("x")
    full = graph._memory
    graph._clear_nodes()
    assert 0 < graph._memory <= full and len(graph.nodes) == 0


# ---- wrong types


WRONG = {
    "parse": lambda: cfx.parse(b"graph():"),
    "equal": lambda: cfx.equal(cfx.Graph(), 1),
    "graph_copy": lambda: cfx.Graph().graph_copy(1, {}),
    "graph_copy map": lambda: cfx.Graph().graph_copy(cfx.Graph(), []),
    "node list": lambda: core._node_list(1),
    "snake case": lambda: core._snake_case(1),
    "replace_input_with": lambda: next(iter(holding(1).nodes)).replace_input_with(1, 2),
    "rename": lambda: next(iter(holding(1).nodes))._rename(1),
    "update_kwarg": lambda: next(iter(holding(1).nodes)).update_kwarg(1, 2),
    "users.get": lambda: next(iter(holding(1).nodes)).users.get(),
    "too many": lambda: cfx.Graph().erase_node(1, 2),
    "unknown keyword": lambda: cfx.Graph().output(1, wrong=2),
    "twice": lambda: cfx.Graph().output(1, result=2),
    "missing": lambda: cfx.Graph().output(),
    "iterator": lambda: core._NodeIter(),
    "users": lambda: core.Users(),
    "node": lambda: core.Node(),
    "namespace": lambda: core._Namespace(1),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_wrong_types(call):
    with pytest.raises(TypeError):
        call()


def test_kinds_by_name():
    assert core._kind_number("none") > 0 and core._is_reserved("for") and not core._is_reserved("x")
    with pytest.raises(ValueError, match="no value kind 'nothing'"):
        core._kind_number("nothing")


# ---- without torch


WITHOUT_TORCH = """
import sys, copy, pickle
import cfx
text = '''graph():
  %x = placeholder[target=x]()
  %relu = call_function[target=torch.relu](%x, torch.float32, torch.channels_last, &some.thing)
  %to = call_method[target=to](%relu, [device("cuda:1"), torch.strided, torch.float32])
  output(%to)
'''
graph = cfx.parse(text)
assert "torch" not in sys.modules
relu, to = list(graph.nodes)[1:3]
for node in (relu, to):  # what it shows is what it takes
    node.args = tuple(node.args)
    node.target = node.target
to.insert_arg(1, relu.args[1])
to.args = (to.args[0], to.args[2])
assert cfx.text(graph) == text
for other in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
    assert cfx.text(other) == text and cfx.equal(other, graph)
assert str(graph).splitlines()[2].endswith("(%x, torch.float32, torch.channels_last, some.thing), "
                                           "kwargs = {})"), str(graph)
try:
    relu.target(1)
except NameError as e:
    assert "torch.relu" in str(e)
else:
    assert False
"""


def test_without_torch():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH],
        env={**os.environ, "PYTHONPATH": PACKAGE},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


# ---- names and columns --------------------------------------------------------------------------

FOUND = {
    "int": int, "builtins.len": len, "NoneType": type(None), "operator.add": operator.add,
    "list[int]": list[int], "typing.Dict[str, list[int]]": typing.Dict[str, list[int]],
    "typing.Callable[[int, str], None]": typing.Callable[[int, str], None],
    "int | None": int | None, "tuple[int, ...]": tuple[int, ...],
    "typing.Callable[[], int]": typing.Callable[[], int],
    "dict[str, int | None]": dict[str, int | None],
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_names_are_resolved(name):
    assert core._resolve(name) == FOUND[name]


@pytest.mark.parametrize("name", [
    "", "no_such_builtin", "operator.no.such", "operator.", "operator..add", ".add", "list[",
    "list[]", "list]", "int[int]", "list[no_such]", "int |", "| int", "len | len", "é.ü",
    "this_is.not_loaded", "...", "None", "[int]",
])  # fmt: skip
def test_names_of_nothing_that_is_loaded(name):
    assert core._resolve(name) is None


def test_deep_names_do_not_overflow():
    with pytest.raises(RecursionError):
        core._resolve("list[" * 100_000 + "int" + "]" * 100_000)
    with pytest.raises(TypeError):
        core._resolve(5)


COLUMNS = [["placeholder"], ["x"], ["x"], [()], {}, {}, {}, {}, None]


@pytest.mark.parametrize("column, wrong, error", [
    (0, 5, ValueError), (0, ["bad"], AssertionError), (1, [], IndexError), (2, [5], Exception),
    (3, [], IndexError), (3, [5], Exception), (4, [], ValueError), (6, {0: 5}, TypeError),
    (8, 5, ValueError), (8, [3], IndexError), (8, [-1], IndexError), (8, ["x"], TypeError),
])  # fmt: skip
def test_columns_are_checked(column, wrong, error):
    cfx.Graph()._fill(tuple(COLUMNS), bool)
    columns = [wrong if i == column else good for i, good in enumerate(COLUMNS)]
    with pytest.raises(error):
        cfx.Graph()._fill(tuple(columns), bool)


def test_references_that_lead_nowhere():
    columns = [*COLUMNS[:3], [(True,)], *COLUMNS[4:]]  # True is a reference to node 1
    with pytest.raises(IndexError):
        cfx.Graph()._fill(tuple(columns), bool)
