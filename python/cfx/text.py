"""The lossless IR text of a graph, structural comparison, and conversion of graph-like objects."""
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from ._glue.listing import public_names
from .graph import Graph


def text(graph: Graph) -> str:
    """Returns the IR text of `graph` (docs/ir.md): `parse(text(graph))` equals `graph`."""
    return graph._text()


def parse(source: str, *, allow: Iterable[str | ModuleType] = ()) -> Graph:
    """Returns the graph described by an IR text. Runs no code and imports nothing.

    A name in the text becomes the function or class of that name if its module is torch, operator,
    builtins, math, cfx, typing, types, collections or one that `allow` lists (with what is below
    it), or if it is one of the functions that cfx.script records, such as random.random; if the
    module is imported already, and if the name does not stand for something that runs code or
    reaches files, such as exec or torch.load. Every other name stays a name: the graph can
    be printed, changed and lowered, but calling the name raises a NameError. Set the node's target
    to the function to replace it."""
    names = (m.__name__ if isinstance(m, ModuleType) else m for m in allow)
    return Graph._parse(source, frozenset(names))


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


__dir__ = public_names(globals())
