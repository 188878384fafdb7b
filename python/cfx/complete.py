"""Graphs in any form of the table of generators, such as programs that are complete except for
their weights."""
from typing import Any, NamedTuple

from . import _core
from ._glue.listing import public_names
from .graph import Graph
from .text import as_cfx


def _graph_of(module: Any, function: str) -> Graph:
    graph = getattr(module, "graph", None)
    if isinstance(graph, Graph):
        return graph
    raise TypeError(f"cfx.{function} takes a cfx.GraphModule, not {type(module).__name__}: trace "
                    "it first with cfx.symbolic_trace")


def _class_name(module: Any, class_name: str | None) -> str:
    name = class_name or module._get_name()
    return name if name.isidentifier() and name != "GraphModule" else "Model"


class Generator(NamedTuple):
    """A row of the table of generators."""

    name: str
    extension: str  # of the files it writes
    summary: str
    options: frozenset[str]  # the options of `generate` that it uses


def generators() -> list[Generator]:
    """Returns the generators that `generate` accepts, in alphabetical order."""
    return [Generator(*row) for row in _core._generators()]


def generate(module: Any, name: str, *, class_name: str | None = None, width: int = 0,
             scopes: bool = False) -> str:
    """Returns a GraphModule or Graph in one of the forms that `generators` lists, such as "python",
    "c", "dot" or "json". A generator ignores options that its row does not name."""
    module = as_cfx(module)
    if isinstance(module, Graph):
        return _core._generate_form(module, None, name, class_name, width, scopes)
    return _core._generate_form(_graph_of(module, "generate"), module, name,
                           _class_name(module, class_name), width, scopes)


def c_code(module: Any, class_name: str | None = None) -> str:
    """Returns the C source of a GraphModule: a function `forward`, and `cfx_model`, which creates
    the module with everything it calls and reads. Weights are loaded by name (cfx_module_load)."""
    module = as_cfx(module)
    return _core._generate_form(_graph_of(module, "c_code"), module, "c",
                           _class_name(module, class_name), 0, False)


def python_module(module: Any, class_name: str | None = None) -> str:
    """Returns the Python source of a GraphModule: a class whose __init__ creates the modules,
    parameters and buffers that `forward` uses. Weights are loaded by name (load_state_dict)."""
    module = as_cfx(module)
    return _core._generate_form(_graph_of(module, "python_module"), module, "python",
                           _class_name(module, class_name), 0, False)


__dir__ = public_names(globals())
