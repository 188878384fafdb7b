"""Graphs as deep as they may be, 100 regions with 1,000 containers around each: no call that takes
one may use up the C stack, which would end the interpreter."""
import contextlib
import copy
import gc
import io
import operator
import pickle
import subprocess
import sys

import cfx
import pytest

REGIONS = 99  # around the innermost
DEPTH = 800  # Python allows 1,000 calls, of which the test runner takes some


def nest(value, depth):
    for _ in range(depth):
        value = [value]
    return value


def deep(regions=REGIONS, depth=DEPTH):
    inner = None
    for _ in range(regions + 1):
        graph = cfx.Graph()
        x = graph.placeholder("x")
        nested = nest(x if inner is None else inner, depth)
        call = graph.call_function(operator.add, (x, nested), {"key": nest(x, depth)})
        graph.output(nest(call, depth))
        inner = graph
    return inner


@pytest.fixture(scope="module")
def graph():
    return deep()


def call_of(graph):
    return list(graph.nodes)[1]


def test_texts(graph):
    assert str(graph).count("[") > 3 * DEPTH
    assert "[" * DEPTH in call_of(graph).format_node()
    with contextlib.redirect_stdout(io.StringIO()) as out:
        graph.print_tabular()
    assert "[" * DEPTH in out.getvalue()


def test_ir_text(graph):
    again = cfx.parse(cfx.text(graph))
    assert again._equal(graph) and graph._equal(again)


def test_copies(graph):
    twin = copy.deepcopy(graph)
    assert twin._equal(graph)
    other = cfx.Graph()
    other.output(other.graph_copy(graph, {}))
    assert str(other).count("[") == str(graph).count("[")
    y = (other := cfx.Graph()).placeholder("y")
    assert other.node_copy(call_of(graph), lambda node: y).all_input_nodes == [y]


def test_checks_and_edits():
    graph = deep()
    graph.lint()
    call = call_of(graph)
    x = call.all_input_nodes[0]
    call.args = call.args
    assert call.all_input_nodes == [x] and list(x.users) == [call]
    x.replace_all_uses_with(graph.create_node("placeholder", "y"))
    assert not x.users
    del call, x
    del graph
    gc.collect()


def test_arguments(graph):
    args = call_of(graph).args
    for _ in range(DEPTH):
        args = args[-1]
    assert isinstance(args[0], cfx.Graph)
    assert repr(call_of(graph).kwargs).count("[") == DEPTH
    assert cfx.node.map_arg(call_of(graph).kwargs, lambda node: node) == call_of(graph).kwargs


def test_one_region_in_many_places():
    """Two uses of a region on each level: 2**50 ways to the innermost, which is checked once."""
    inner = cfx.Graph()
    inner.output(inner.placeholder("x"))
    for _ in range(50):
        graph = cfx.Graph()
        x = graph.placeholder("x")
        graph.output(graph.call_function(operator.add, (x, inner, inner)))
        inner = graph
    inner.lint()


def test_pickles(graph):
    """Python's pickle has a limit of its own, which it says."""
    with pytest.raises(RecursionError):
        pickle.dumps(graph)
    shallow = deep(regions=5, depth=50)
    assert pickle.loads(pickle.dumps(shallow))._equal(shallow)


def test_too_deep():
    graph = cfx.Graph()
    x = graph.placeholder("x")
    with pytest.raises(RecursionError):
        graph.call_function(operator.add, (x, nest(x, 2000)))
    region = deep(regions=REGIONS, depth=1)
    with pytest.raises(RecursionError, match="regions nest more than 100 deep"):
        graph.call_function(operator.add, (x, region))
    graph.lint()


RAISED = """
import cfx, operator, sys
sys.setrecursionlimit(10**6)
graph = cfx.Graph()
x = graph.placeholder("x")
value = x
for _ in range(100_000):
    value = [value]
try:
    graph.call_function(operator.add, (x, value))
except RecursionError as error:
    print(error)
"""


def test_python_may_allow_more_than_the_stack_has():
    run = subprocess.run([sys.executable, "-c", RAISED], capture_output=True, text=True)
    assert run.stdout == "an argument nests containers more than 1000 deep\n", run.stderr
