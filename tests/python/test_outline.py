"""What cfx.interop asks of the extension: regions as get_attr nodes, passes by name."""
import operator

import pytest

import cfx
from parity import growth


def region(*parameters, result):
    graph = cfx.Graph()
    graph.output(result(graph, *map(graph.placeholder, parameters)))
    return graph


def loops():
    """Two loops with one body; of the first, item 1 is read."""
    graph = cfx.Graph()
    i, x, y = map(graph.placeholder, "ixy")
    test = region("i", "x", "y", result=lambda g, i, x, y: i)
    body = region(
        "i", "x", "y", result=lambda g, i, x, y: (g.call_function(operator.sub, (i, 1)), x, y)
    )
    first, second = (
        graph.call_function(cfx.while_loop, (test, body, (i, x, y))) for _ in range(2)
    )
    item = graph.call_function(operator.getitem, (first, 1))
    graph.output(item)
    return graph, first, second


def conds():
    """A cond inside another; both read an attribute."""
    graph = cfx.Graph()
    p, x = map(graph.placeholder, "px")

    def reader(path):
        def result(g, a):
            return (g.call_function(operator.mul, (a, g.get_attr(path))),)

        return region("a", result=result)

    same = region("a", result=lambda g, a: (a,))
    inner = region(
        "a", result=lambda g, a: g.call_function(cfx.cond, (a, reader("w.v"), same, [a]))
    )
    graph.output(graph.call_function(cfx.cond, (p, inner, reader("b"), (x,))))
    return graph


def names(graph):
    return [node.name for node in graph.nodes]


def test_state_of_loops():
    graph, first, second = loops()
    branches = graph._outline({}, lambda path: False)
    assert [len(arg) for arg in first.args[2:]] == [2, 1]  # y alone is handed on, and not read
    assert [len(arg) for arg in second.args[2:]] == [1, 2]
    test, body, again = (f"while_loop_{name}" for name in ("cond_graph_0", "body_graph_0",
                                                           "body_graph_1"))  # fmt: skip
    assert list(branches) == [test, body, again]  # one test for both
    assert [len(branches[name].output_node().args[0]) for name in (body, again)] == [2, 1]
    assert names(graph) == [
        "i", "x", "y", test, body, "while_loop", again, "while_loop_1", "getitem", "output",
    ]  # fmt: skip


def test_other_uses_keep_the_state():
    for use in (-1, slice(1), None):
        graph, first, _ = loops()
        item = next(iter(first.users))
        if use is None:
            graph.output_node().args = (first,)
        else:
            item.args = (first, use)
        graph._outline({}, lambda path: False)
        assert [len(arg) for arg in first.args[2:]] == [3, 0]


def test_names_that_are_taken_and_functions():
    graph = conds()
    asked = []
    branches = graph._outline(
        {"cond": operator.add}, lambda path: asked.append(path) or path == "true_graph_0"
    )
    assert list(branches) == ["true_graph_1", "false_graph_0"]
    assert asked == ["true_graph_0", "true_graph_1", "false_graph_0"]
    cond = next(node for node in graph.nodes if node.name == "cond")
    assert cond.target is operator.add
    assert [node.target for node in cond.all_input_nodes[1:3]] == list(branches)
    inner = branches["true_graph_1"].find_nodes(op="call_function", target=cfx.cond)
    assert len(inner) == 1  # regions inside are left for later


def test_lift_attrs():
    graph = conds()
    assert graph._pass("lift_attrs") is True
    assert graph.verify() == []
    assert names(graph) == ["p", "x", "w_v", "b", "cond", "output"]
    assert graph._pass("lift_attrs") is False
    with pytest.raises(ValueError, match="there is no pass 'lift'"):
        graph._pass("lift")
    with pytest.raises(TypeError, match="the name of a pass must be a str"):
        graph._pass(1)


def test_errors():
    graph = conds()
    with pytest.raises(ZeroDivisionError):
        graph._outline({}, lambda path: 1 / 0)
    for args in ((1,), (1, 2, 3, ())):
        graph = cfx.Graph()
        graph.call_function(cfx.cond, args)
        with pytest.raises(RuntimeError, match="node %cond (must pass all|has something that is "
                                               "not a graph)"):
            graph._outline({}, lambda path: False)


def test_nothing_is_kept():
    def work():
        for graph in (conds(), loops()[0]):
            graph._pass("lift_attrs")
            graph._outline({}, lambda path: False)

    assert growth(work, 2_000) < 1_000_000
