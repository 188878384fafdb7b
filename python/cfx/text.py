"""The lossless IR text of a graph, structural comparison, and conversion of graph-like objects."""
from typing import Any

from .graph import Graph


def text(graph: Graph) -> str:
    """Returns the IR text of `graph` (docs/ir.md): `parse(text(graph))` equals `graph`."""
    return graph._text()


def parse(source: str) -> Graph:
    """Returns the graph described by an IR text. Runs no code and imports nothing: a function that
    is not loaded remains a name."""
    return Graph._parse(source)


def equal(a: Graph, b: Graph, *, shape_only: bool = False) -> bool:
    """Returns whether two graphs have the same nodes in the same order; with `shape_only` their
    names and source locations may differ."""
    return a._equal(b, shape_only)


def structural_hash(graph: Graph, *, shape_only: bool = True) -> int:
    """Returns a hash that is the same for equal graphs, in every process."""
    return graph._structural_hash(shape_only)


def as_cfx(x: Any) -> Any:
    """Converts objects of torch.fx (including subclasses, and torch.export's) to cfx's, and IR text
    to the graph it describes; everything else is returned unchanged."""
    theirs = (cls.__module__.startswith(("torch.fx.", "torch.export.")) for cls in type(x).__mro__)
    if any(theirs):
        from .interop import from_torch

        return from_torch(x)
    return parse(x) if isinstance(x, str) else x


def as_graph(x: Any) -> Any:
    """Returns the Graph of a graph-like object: IR text, a module or program that has a graph, or
    an object of torch.fx (converted as a whole, because its graph may refer to its modules)."""
    x = as_cfx(x)
    return as_cfx(getattr(x, "graph", x))
