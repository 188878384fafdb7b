"""Guards that are checked on entry, as part of a graph: for graphs that leave their module."""
import operator
from typing import Any

import torch

from .boundary import NumberLeaf, TensorLeaf
from .guards import EntryGuard
from .module import CapturedModule


def graph_with_checks(module: CapturedModule) -> Any:
    """A copy of a module's graph that checks what was assumed of its inputs itself. The module
    checks it before the graph runs, which the text of the graph does not show."""
    graph = module.graph._clone()
    inputs = graph.find_nodes(op="placeholder")
    first = next(node for node in graph.nodes if node.op != "placeholder")
    with graph.inserting_before(first):
        _write_sizes(graph, inputs, module._boundary.leaves)
        for entry in module._boundary.guards:
            _write_guard(graph, inputs, entry)
    return graph


def _written(graph: Any, expr: Any, inputs: list[Any]) -> Any:
    """The node of an expression over the inputs (input_expression of guards.py)."""
    if type(expr) is not tuple:
        return expr
    if expr[0] == "size":
        return graph.call_method("size", (inputs[expr[1]], expr[2]))
    if expr[0] == "input":
        return inputs[expr[1]]
    return graph.call_function(expr[0], tuple(_written(graph, p, inputs) for p in expr[1:]))


def _check(graph: Any, function: Any, left: Any, right: Any, truth: bool, why: str) -> None:
    holds = graph.call_function(function, (left, right))
    if not truth:
        holds = graph.call_function(operator.not_, (holds,))
    graph.call_function(torch._assert, (holds, why))


def _write_guard(graph: Any, inputs: list[Any], entry: EntryGuard) -> None:
    left, right = (_written(graph, side, inputs) for side in (entry.left, entry.right))
    _check(graph, entry.function, left, right, entry.truth, entry.refusal(inputs))


def _write_sizes(graph: Any, inputs: list[Any], leaves: list[Any]) -> None:
    """Sizes that are fixed by `dynamic`."""
    of_graph = (leaf for leaf in leaves if isinstance(leaf, (TensorLeaf, NumberLeaf)))
    for node, leaf in zip(inputs, of_graph):
        for dim, size in enumerate(getattr(leaf, "sizes", ())):
            if size is not None:
                left = graph.call_method("size", (node, dim))
                _check(graph, operator.eq, left, size, True,
                       f"{leaf.path}.shape[{dim}] is fixed to {size}")  # fmt: skip
