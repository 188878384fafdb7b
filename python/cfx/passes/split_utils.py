"""Splitting by tags, and attributes by their paths."""
from dataclasses import dataclass, field
from typing import Any

from .. import _core
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from .split_module import _COPY_ATTRS, _FIXED_ORDER, _TUPLE, _split

__all__ = [
    "getattr_recursive",
    "setattr_recursive",
    "Component",
    "split_by_tags",
    "move_non_tensor_nodes_on_boundary",
]

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def getattr_recursive(obj: object, name: str) -> Any:
    """The attribute at a dotted path; None if a module on the way has no such submodule."""
    for layer in name.split("."):
        if hasattr(obj, "_modules") and layer in obj._modules:
            obj = obj._modules[layer]
        elif hasattr(obj, layer):
            obj = getattr(obj, layer)
        else:
            return None
    return obj


def setattr_recursive(obj: object, attr: str, value: object) -> None:
    """Sets the attribute at a dotted path."""
    *layers, last = attr.split(".")
    for layer in layers:
        obj = getattr(obj, layer)
    setattr(obj, last, value)


@dataclass
class Component:
    """A subgraph that is to become a module; here only for code that names it."""

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None


def _tag_of(node: Node) -> str:
    if not hasattr(node, "tag"):
        raise AssertionError(f"Node does not have tag: {node.format_node()}")
    return node.tag


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> GraphModule | tuple[GraphModule, dict[str, str]]:
    """Splits a module by the attribute `tag` of its calls: a submodule for each tag, called in the
    order of `tags`, which reads what attributes it needs itself.

    With `return_fqn_mapping` also gives {path before: path after}; with `return_tuple` a submodule
    returns a tuple even of one value.
    """
    flags = _FIXED_ORDER | _COPY_ATTRS | (_TUPLE if return_tuple else 0)
    try:
        result, parts = _split(gm, _tag_of, "", flags, list(tags), GraphModuleCls)
    except RuntimeError as e:
        raise AssertionError(str(e)) from None
    for name, graph, _ in parts:
        for node in graph.nodes:
            if node.op in CALLABLE_NODE_OPS:
                node.tag = name
    if not return_fqn_mapping:
        return result
    return result, {old: f"{name}.{new}" for name, _, paths in parts for new, old in paths.items()}
