"""IR text from Python: names of objects that lead back to them, and errors where there is none."""
import enum
import functools
import math
import operator
import os
import pickle
import subprocess
import sys
import types
import typing

import cfx
import pytest


class Color(enum.Enum):
    RED = 1


class Shape:
    class Inner:
        pass


def function(x):
    return x


def shadowed(x):
    return x


old_shadowed = shadowed


@functools.wraps(old_shadowed)
def shadowed(x):
    return old_shadowed(x)


def holding(value):
    graph = cfx.Graph()
    graph.output(value)
    return graph


NAMED = [
    (Color.RED, "test_text.Color.RED"),
    (Shape, "test_text.Shape"),
    (function, "test_text.function"),
    (int, "builtins.int"),
    (len, "builtins.len"),
    (types.NoneType, "builtins.NoneType"),
    (math.sqrt, "math.sqrt"),
    (operator.add, "operator.add"),
    (list[int], '"list[int]"'),
    (int | None, '"int | None"'),
    (int | Shape | str, '"int | test_text.Shape | str"'),
    (typing.Optional[int], f'"{typing.Optional[int]!r}"'),  # from 3.14 on "int | None"
    (typing.Union[int, str], f'"{typing.Union[int, str]!r}"'),
    (typing.Dict[str, typing.List[Shape]], '"typing.Dict[str, typing.List[test_text.Shape]]"'),
    (tuple[int, ...], '"tuple[int, ...]"'),
    (typing.Callable[[int, str], Shape], '"typing.Callable[[int, str], test_text.Shape]"'),
    (typing.Any, "typing.Any"),
]


@pytest.mark.parametrize("value, name", NAMED, ids=[name for _, name in NAMED])
def test_objects_by_name(value, name):
    graph = holding(value)
    text = cfx.text(graph)
    assert text == f"graph():\n  output(&{name})\n"
    parsed = cfx.parse(text, allow=[__name__])
    found = parsed.output_node().args[0]
    assert found == value and type(found) is type(value)
    assert cfx.equal(graph, parsed)


def test_a_name_that_nobody_knows_stays_a_name():
    text = "graph():\n  output(&no.such.thing)\n"
    graph = cfx.parse(text)
    assert str(graph.output_node().args[0]) == "no.such.thing"
    assert cfx.text(graph) == text


def test_objects_of_torch():
    torch = pytest.importorskip("torch")
    for value in (torch.Tensor, torch.relu, torch.nn.Linear, torch.ops.aten.add.Tensor):
        assert cfx.parse(cfx.text(holding(value))).output_node().args[0] is value


NAMELESS = {"an object": object(), "a set of tuples": {(1, 2)}, "a bytearray": bytearray(b"a")}


@pytest.mark.parametrize("value", NAMELESS.values(), ids=NAMELESS)
def test_objects_without_a_name(value):
    graph = holding([value])
    with pytest.raises(Exception, match=r"node %output: an argument is an object without"):
        cfx.text(graph)
    assert isinstance(cfx.structural_hash(graph), int)  # all of them count as one
    assert str(graph) == f"graph():\n    return [{value}]"


def test_a_name_that_leads_to_something_else():
    graph = cfx.Graph()
    graph.call_function(old_shadowed)
    with pytest.raises(Exception, match="node %shadowed: .*another object has the name"):
        cfx.text(graph)
    graph = cfx.Graph()
    graph.call_function(shadowed)
    assert cfx.equal(cfx.parse(cfx.text(graph)), graph)


def test_regions_may_not_use_nodes_from_outside():
    graph = cfx.Graph()
    x = graph.placeholder("x")
    region = cfx.Graph()
    region.output(region.call_function(operator.neg, (x,)))
    graph.output(graph.call_function(cfx.cond, (True, region, cfx.Graph(), ())))
    assert any("'x' of Node 'neg' does not belong" in fault for fault in graph.verify())
    with pytest.raises(RuntimeError, match="'x' of Node 'neg' does not belong"):
        graph.lint()


def test_a_node_as_a_key_is_no_use_of_it():
    other = cfx.Graph()
    x = other.placeholder("x")
    graph = holding({x: 1})
    assert graph.verify() == [] and not x.users
    assert graph.output_node().all_input_nodes == []


SETS = """
import cfx
g = cfx.Graph()
words = "alpha beta gamma delta epsilon zeta eta theta".split()
g.output((set(words), frozenset(w.encode() for w in words), {None, 1.5, 2j, 10**30, "x"}))
print(cfx.text(g))
"""


def test_sets_are_written_alike_whatever_the_hash_seed():
    def text(seed):
        env = {**os.environ, "PYTHONHASHSEED": str(seed)}
        return subprocess.run([sys.executable, "-c", SETS], env=env, capture_output=True, text=True,
                              check=True, timeout=60).stdout

    texts = {text(seed) for seed in range(4)}
    assert len(texts) == 1
    assert 'set("alpha", "beta", "delta", ' in texts.pop()


def test_a_function_that_is_not_loaded_is_a_name_wherever_it_goes():
    graph = cfx.parse("graph():\n  %x = placeholder[target=x]()\n"
                      "  %relu = call_function[target=mylib.relu](%x)\n  output(%relu)\n")
    node = graph.find_nodes(op="placeholder")[0].next
    assert str(node.target) == "mylib.relu"
    assert graph.find_nodes(op="call_function", target=node.target) == [node]
    assert cfx.equal(pickle.loads(pickle.dumps(graph)), graph)
    code = graph.python_code("self").src

    other = cfx.Graph()
    x = other.placeholder("x")
    relu = other.call_function(node.target, (x,))
    relu.target = relu.target
    other.output(relu)
    assert cfx.text(other) == cfx.text(graph) and cfx.equal(other, graph)
    assert other.python_code("self").src == code


def closure():
    def inner(x):
        return x

    return inner


UNREACHABLE = {
    "a closure": closure(),
    "a lambda": [lambda x: x][0],
    "a bound method": Shape().__init__,
    "a literal": typing.Literal["a"],
}


@pytest.mark.parametrize("value", UNREACHABLE.values(), ids=UNREACHABLE)
def test_a_name_that_leads_nowhere_is_no_name(value):
    with pytest.raises(ValueError, match="node %output: an argument is an object without"):
        cfx.text(holding(value))


def test_what_has_no_name_in_text_is_printed_all_the_same():
    graph = cfx.Graph()
    graph.call_function(closure())
    graph.call_function(Shape.Inner)
    assert "target=test_text.inner]" in str(graph)
    assert "target=test_text.Inner]" in str(graph)
    with pytest.raises(ValueError, match="node %inner: .*no loaded object has the name"):
        cfx.text(graph)
