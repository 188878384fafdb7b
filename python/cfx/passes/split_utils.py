"""Splits modules by tags, and accesses attributes by path."""
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from .. import _core
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from .split_module import _COPY_ATTRS, _FIXED_ORDER, _TUPLE, _split
from .tools_common import CALLABLE_NODE_OPS, is_node_output_tensor

__all__ = [
    "getattr_recursive", "setattr_recursive", "Component", "split_by_tags",
    "move_non_tensor_nodes_on_boundary",
]  # fmt: skip


def getattr_recursive(obj: object, name: str) -> Any:
    """Returns the attribute at a dotted path; None if something along the path does not exist."""
    return _core._get_attr(obj, name) if _core._has_attr(obj, name) else None


def setattr_recursive(obj: object, attr: str, value: object) -> None:
    """Sets the attribute at a dotted path; AttributeError if something before its end does not
    exist."""
    path, _, last = attr.rpartition(".")
    setattr(attrgetter(path)(obj) if path else obj, last, value)


@dataclass
class Component:
    """A subgraph that is to become a module; exists only for code that refers to it."""

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
    gm: GraphModule, tags: list[str], return_fqn_mapping: bool = False, return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> GraphModule | tuple[GraphModule, dict[str, str]]:  # fmt: skip
    """Splits a module by the attribute `tag` of its calls: one submodule for each tag, called in
    the order of `tags`. Each submodule reads the attributes it needs itself.

    With `return_fqn_mapping` it also returns {old path: new path}; with `return_tuple` a submodule
    returns a tuple even for a single value.
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


def move_non_tensor_nodes_on_boundary(subgraphs: list[Any]) -> None:
    """Moves nodes whose values are not tensors (by their `meta["type"]`) to the subgraph that uses
    them, together with their users in their own subgraph; not if two other subgraphs use them."""
    first = next((node for subgraph in subgraphs for node in subgraph.nodes), None)
    if first is None:
        return
    parts = [(subgraph.is_acc, list(subgraph.nodes)) for subgraph in subgraphs]
    moved = first.graph._move_non_tensors(parts, is_node_output_tensor)
    for subgraph, (_, nodes) in zip(subgraphs, moved, strict=True):
        subgraph.nodes[:] = nodes
