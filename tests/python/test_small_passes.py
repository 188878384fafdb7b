"""param_fetch and annotate_getitem_nodes, beside torch.fx's."""
import operator
from typing import Dict, List, NamedTuple, Optional, Tuple  # noqa: UP035

import pytest

torch = pytest.importorskip("torch")
import torch.fx  # noqa: E402
from torch.fx.passes import annotate_getitem_nodes as their_items  # noqa: E402
from torch.fx.passes import param_fetch as theirs  # noqa: E402

import cfx  # noqa: E402
from cfx.passes import annotate_getitem_nodes as our_items  # noqa: E402
from cfx.passes import param_fetch as ours  # noqa: E402

# ---- param_fetch -------------------------------------------------------------------------------


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleList([
            torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(),
            torch.nn.MaxPool2d(2), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Linear(1, 1),
        ])  # fmt: skip

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x


def attributes(node):
    found = getattr(node, "attrs_for_lowering", None)
    return found and {key: repr(value) for key, value in found.items()}


def test_attributes_are_lifted():
    model, shown = Model(), []
    for fx, library in [(cfx, ours), (torch.fx, theirs)]:
        graph = fx.Graph()
        graph.output(graph.call_module("inner", (graph.placeholder("x"),)))
        outer = fx.GraphModule({"inner": fx.symbolic_trace(model)}, graph)
        library.lift_lowering_attrs_to_nodes(outer)
        nodes = [*outer.graph.nodes, *outer.inner.graph.nodes]
        shown.append([(n.name, attributes(n)) for n in nodes])
    assert shown[0] == shown[1]
    assert sum(found is not None for _, found in shown[0]) == 6


def test_book():
    assert {k: v[:2] for k, v in ours.module_fetch_book.items()} == {
        k: v[:2] for k, v in theirs.module_fetch_book.items()
    }
    assert ours.default_matching("weight", 3) == "weight"
    assert ours.__all__ == theirs.__all__
    with pytest.raises(RuntimeError, match="Tanh is not in the module_fetch_book"):
        ours.extract_attrs_for_lowering(torch.nn.Tanh())
    newer = torch.nn.Linear(1, 1)
    newer._version = 7
    with pytest.raises(RuntimeError, match="version 1 try to fetch .*Linear version 7"):
        ours.extract_attrs_for_lowering(newer)


# ---- annotate_getitem_nodes --------------------------------------------------------------------


class Pair(NamedTuple):
    x: int
    y: torch.Tensor


class Plain(tuple):
    pass


TYPES = [Tuple[int, str], tuple[int, str], Tuple[int, ...], tuple[int, ...], List[int], list[int],
         Dict[str, int], dict[str, int], Pair, List[Tuple[int, str]], int, torch.Tensor, None,
         Optional[List[int]], tuple, list, Tuple[Tuple[int, ...], List[str]]]  # fmt: skip


def items(fx, annotate, type, *indices):
    graph = fx.Graph()
    x = graph.placeholder("x")
    x.type = type
    nodes = [graph.call_function(operator.getitem, (x, i)) for i in indices]
    nodes += [graph.call_function(operator.getitem, (nodes[0], 0))]
    nodes[-1].type = float
    annotate(graph)
    return [node.type for node in nodes]


@pytest.mark.parametrize("type", TYPES, ids=repr)
@pytest.mark.parametrize("indices", [(0, 1), (-1, -2)])
def test_types_of_items(type, indices):
    mine = items(cfx, our_items.annotate_getitem_nodes, type, *indices)
    assert mine == items(torch.fx, their_items.annotate_getitem_nodes, type, *indices)


def test_unknown_items_are_left_alone():
    annotate = our_items.annotate_getitem_nodes
    for type, index in [(Tuple[int, str], slice(0, 1)), (List, 0), (Tuple, 0), (Plain, 0),
                        (Pair, "x"), (Pair, slice(1))]:  # fmt: skip
        assert items(cfx, annotate, type, index) == [None, float]
    graph = cfx.Graph()
    x, i = graph.placeholder("x"), graph.placeholder("i")
    x.type = Tuple[int, str]
    node = graph.call_function(operator.getitem, (x, i))
    annotate(graph)
    assert node.type is None


@pytest.mark.parametrize("type, error", [(Tuple[int, str], AssertionError), (Pair, IndexError)])
@pytest.mark.parametrize("index", [2, -3, 10**30])
def test_index_out_of_range(type, error, index):
    with pytest.raises(error, match="out of range.*%getitem"):
        items(cfx, our_items.annotate_getitem_nodes, type, index)
    with pytest.raises((error, IndexError)):
        items(torch.fx, their_items.annotate_getitem_nodes, type, index)


def test_regions():
    def first(x: Tuple[int, str]):
        return (x[0],)

    graph = cfx.Graph()
    p, x = graph.placeholder("p"), graph.placeholder("x")
    branches = [cfx.symbolic_trace(first).graph for _ in range(2)]
    graph.output(graph.call_function(cfx.cond, (p, *branches, (x,))))
    our_items.annotate_getitem_nodes(graph)
    assert [list(branch.nodes)[1].type for branch in graph.find_nodes(
        op="call_function", target=cfx.cond)[0].args[1:3]] == [int, int]  # fmt: skip
