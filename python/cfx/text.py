"""The lossless IR text of a graph, structural comparison, and conversion of graph-like objects."""
from . import _glue
from ._glue.listing import public_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType
    from typing import Any

    from .graph import Graph


def text(graph: "Graph") -> str:
    """Returns the IR text of `graph` (docs/ir.md): `parse(text(graph))` equals `graph`."""
    return as_cfx(graph)._text()


def parse(source: str, *, allow: "Iterable[str | ModuleType]" = ()) -> "Graph":
    """Returns the graph described by an IR text. Runs no code and imports nothing.

    A name in the text becomes the function or class of that name if its module is torch, operator,
    builtins, math, cfx, typing, types, collections or one that `allow` lists (with what is below
    it; "my.module:f" lists one name alone), or if it is one of the functions that cfx.script
    records, such as random.random; if the module is imported already, and if the name does not
    stand for something that runs code or reaches files, such as exec or torch.load. Every other
    name stays a name: the graph can be printed, changed and lowered, but calling the name raises a
    NameError. Set the node's target to the function to replace it."""
    from types import ModuleType

    from .graph import Graph

    names = (m.__name__ if isinstance(m, ModuleType) else m for m in allow)
    return Graph._parse(source, frozenset(names))


def equal(a: "Graph", b: "Graph", *, shape_only: bool = False) -> bool:
    """Returns whether two graphs have the same nodes in the same order; with `shape_only` their
    names and source locations may differ."""
    return as_cfx(a)._equal(as_cfx(b), shape_only)


def structural_hash(graph: "Graph", *, shape_only: bool = True) -> int:
    """Returns a hash that is the same for equal graphs, in every process."""
    return as_cfx(graph)._structural_hash(shape_only)


def as_cfx(x: "Any") -> "Any":
    """Converts objects of torch.fx (including subclasses, and torch.export's) to cfx's, and IR text
    to the graph it describes; everything else is returned unchanged. Functions that read a graph or
    module, or return one, begin with it; those that only edit one in place, with `in_place`."""
    if _glue.is_theirs(x):
        from .interop import from_torch

        return from_torch(x)
    return parse(x) if isinstance(x, str) else x


def as_graph(x: "Any") -> "Any":
    """Returns the Graph of a graph-like object: IR text, a module or program that has a graph, or
    an object of torch.fx (converted as a whole, because its graph may refer to its modules)."""
    x = as_cfx(x)
    return as_cfx(getattr(x, "graph", x))


def in_place(x: "Any", function: str) -> "Any":
    """Returns a graph or module that `function` is going to edit; refuses those of torch.fx."""
    if _glue.is_theirs(x):
        raise TypeError(f"{function} edits a graph of cfx in place, and this {type(x).__name__} is "
                        "torch.fx's: convert it first with cfx.interop.from_torch")
    return x


__dir__ = public_names(globals())
