"""Replaces targets, and computes the sizes of nodes in bytes."""
from collections.abc import Callable
from typing import Any, NamedTuple

from ..graph_module import GraphModule, torch
from ..node import Node
from .shape_prop import ShapeProp, TensorMetadata

__all__ = [
    "replace_target_nodes_with", "size_bytes", "get_size_of_all_nodes", "get_tensor_meta",
    "get_size_of_node",
]  # fmt: skip


def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Callable[..., Any] | str, new_op: str,
    new_target: Callable[..., Any] | str,
) -> None:  # fmt: skip
    """Sets the new opcode and target of all nodes that have the old ones, in place."""
    for node in fx_module.graph.find_nodes(op=old_op, target=old_target):
        node.op, node.target = new_op, new_target
    fx_module.recompile()


class size_bytes(NamedTuple):
    """The size of a node's value, and the size including the parameters of its module."""

    output_size: int
    total_size: int


def get_size_of_all_nodes(fx_module: GraphModule, args: "list[torch.Tensor] | None" = None) -> None:
    """Sets the attribute `size_bytes` of each node; with `args`, propagates their shapes first."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op != "output":
            node.size_bytes = get_size_of_node(fx_module, node)


def get_tensor_meta(node: Node) -> TensorMetadata:
    """Returns the result of shape propagation for the node."""
    meta = node.meta.get("tensor_meta")
    if not meta:
        raise RuntimeError(f"Node {node} has no tensor metadata associated with it! "
                           "Check that shape propagation has run.")
    return meta


def _bytes_of(value: Any) -> int:
    """Of all tensors in the metadata of a value."""
    if isinstance(value, TensorMetadata):
        return value.shape.numel() * value.dtype.itemsize
    return sum(map(_bytes_of, value)) if isinstance(value, (tuple, list)) else 0


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """Returns the bytes of a node's value, and the bytes including the parameters of the module it
    calls."""
    output = _bytes_of(get_tensor_meta(node))
    call = node.op == "call_module"
    owned = fx_module.get_submodule(node.target).parameters() if call else ()
    return size_bytes(output, output + sum(p.numel() * p.element_size() for p in owned))
