"""Transforms: the passes of the core by name (docs/passes.md), and in its modules those of
torch.fx.passes under the names that it gives them (these need torch)."""
from typing import Any, NamedTuple

from .. import _core


class Pass(NamedTuple):
    """A row of the table of passes."""

    name: str
    summary: str
    needs: str
    keeps: str


def table() -> list[Pass]:
    """The passes that `run` knows, in alphabetical order."""
    return [Pass(*row) for row in _core._passes()]


def run(module: Any, *names: str) -> bool:
    """Runs passes by name, in this order, on a GraphModule (and recompiles it) or on a Graph (then
    they leave alone what they would have to look up in a module). Whether anything changed."""
    graph = module if isinstance(module, _core.Graph) else module.graph
    root = None if graph is module else module
    changed = [graph._pass(name, root) for name in names]
    if any(changed) and graph is not module:
        module.recompile()
    return any(changed)
