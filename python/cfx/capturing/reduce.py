"""Guards that the inputs decide are taken out of a graph, and checked before it runs (src/guard).

A program compares sizes of whatever tensor it has at hand: `hidden.shape[1] > 1`. Shape rules say
what such a size is in the sizes of the inputs. Then the guard always holds, or it is checked on
entry. What depends on data, or follows an operator without a row, stays in the graph.
"""
from typing import TYPE_CHECKING, Any

from .. import _core
from .boundary import Boundary, NumberLeaf
from .guards import Guard

if TYPE_CHECKING:
    from .module import CapturedModule
    from .recorder import Pending
    from .run import Captured


def _inputs(boundary: Boundary, examples: list[Any]) -> tuple[list[str], list[Any]]:
    """The names of the inputs of the graph, and what they were: a number, or (dtype, sizes, which
    of them are fixed)."""
    leaves = boundary.inputs
    inputs = [example if isinstance(leaf, NumberLeaf) else
              (leaf.dtype, example, tuple(size is not None for size in leaf.sizes))
              for leaf, example in zip(leaves, examples)]  # fmt: skip
    return input_names(boundary), inputs


def input_names(boundary: Boundary) -> list[str]:
    """How users reach the inputs of the graph; no two are equal."""
    names = [leaf.path for leaf in boundary.inputs]
    if len(set(names)) < len(names):  # keys of a dict that print alike
        names = [f"{name} (input {i})" for i, name in enumerate(names)]
    return names


def _can_be_asked(one: "Pending") -> bool:
    return one.question is not None and not any(
        getattr(side, "_erased", False) for side in one.question)


def settle_guards(module: "CapturedModule", captured: "Captured") -> tuple[Guard, ...]:
    """Moves guards out of the graph, where the inputs decide them: all guards that are left."""
    boundary, pending = captured.boundary, captured.pending
    names, inputs = _inputs(boundary, captured.examples)
    boundary.guards = _core._Guards(names)
    asked = [one for one in pending if _can_be_asked(one)]
    questions: list[Any] = []
    for guard, _, question in asked:
        function, left, right, truth = question  # type: ignore[misc]
        questions.append((guard.kind, guard.asker, guard.line, guard.value, function.__name__, left,
                          right, truth))  # fmt: skip
    settled = boundary.guards.settle(module.graph, module, inputs, questions)
    gone = {id(one) for one, is_settled in zip(asked, settled) if is_settled}
    for one in reversed(pending):
        for node in one.nodes if id(one) in gone else ():
            if not node.users and not node._erased:
                node.graph.erase_node(node)
    on_entry = (Guard(*row) for row in boundary.guards.rows())
    inside = (one.guard._replace(place="graph") for one in pending if id(one) not in gone)
    return (*on_entry, *inside)


def drop_numbers(graph: Any, boundary: Boundary) -> bool:
    """Removes numbers and constants that were read but not used; whether there were any."""
    return _core._drop_numbers(graph, [isinstance(leaf, NumberLeaf) for leaf in boundary.inputs])
