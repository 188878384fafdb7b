"""The lossless IR text of a graph, comparing graphs by structure, and what else stands for one."""
from typing import Any

from .graph import Graph


def text(graph: Graph) -> str:
    """The IR text of `graph` (docs/ir.md): `parse(text(graph))` equals `graph`."""
    return graph._text()


def parse(source: str) -> Graph:
    """The graph that an IR text describes. Runs no code and imports nothing: a function that is
    not loaded stays a name."""
    return Graph._parse(source)


def equal(a: Graph, b: Graph, *, shape_only: bool = False) -> bool:
    """Whether two graphs have the same nodes in the same order; with `shape_only` their names and
    source locations may differ."""
    return a._equal(b, shape_only)


def structural_hash(graph: Graph, *, shape_only: bool = True) -> int:
    """A hash that is the same for equal graphs, in every process."""
    return graph._structural_hash(shape_only)


def as_cfx(x: Any) -> Any:
    """What is torch.fx's (also by inheritance, or torch.export's) becomes cfx's, IR text the graph
    that it describes; all else stays what it is."""
    theirs = (cls.__module__.startswith(("torch.fx.", "torch.export.")) for cls in type(x).__mro__)
    if any(theirs):
        from .interop import from_torch

        return from_torch(x)
    return parse(x) if isinstance(x, str) else x


def as_graph(x: Any) -> Any:
    """The Graph of what people give as one: IR text, a module or program that has one, torch.fx's
    (as a whole: its graph may ask its modules)."""
    x = as_cfx(x)
    return as_cfx(getattr(x, "graph", x))
