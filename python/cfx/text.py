"""The lossless IR text of a graph, and comparing graphs by structure."""
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
