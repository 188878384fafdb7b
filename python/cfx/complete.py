"""Captured models as programs that are complete except for their weights."""
from typing import Any

from . import _core
from .graph import Graph


def _graph_of(module: Any, function: str) -> Graph:
    graph = getattr(module, "graph", None)
    if isinstance(graph, Graph):
        return graph
    raise TypeError(f"cfx.{function} takes a cfx.GraphModule, not {type(module).__name__}: trace "
                    "it first with cfx.symbolic_trace")


def _class_name(module: Any, class_name: str | None) -> str:
    name = class_name or module._get_name()
    return name if name.isidentifier() and name != "GraphModule" else "Model"


def c_code(module: Any, class_name: str | None = None) -> str:
    """Returns the C source of a GraphModule: a function `forward`, and `cfx_model`, which creates
    the module with everything it calls and reads. Weights are loaded by name (cfx_module_load)."""
    return _core._c_code(_graph_of(module, "c_code"), module, _class_name(module, class_name))


def python_module(module: Any, class_name: str | None = None) -> str:
    """Returns the Python source of a GraphModule: a class whose __init__ creates the modules,
    parameters and buffers that `forward` uses. Weights are loaded by name (load_state_dict)."""
    return _core._python_module(_graph_of(module, "python_module"), module,
                                _class_name(module, class_name))
