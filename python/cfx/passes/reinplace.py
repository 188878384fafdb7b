"""reinplace: lets the operators of a functional aten graph write to operands that are dead
afterwards."""
from typing import Any

from .._compatibility import compatibility
from ..graph_module import GraphModule, torch
from ..node import Node
from ..text import as_cfx
from .fake_tensor_prop import FakeTensorProp

__all__ = ["reinplace"]


class _FunctionalizationMetadataProp(FakeTensorProp):
    """Notes the fake value of each node in `meta["fake_result"]`, too."""

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        n.meta["fake_result"] = n.meta.get("val")
        return result


def _fits(node: Node, operand: Node) -> bool:
    """Whether the result has the dtype and sizes of the operand, and that no element twice."""
    a, b = operand.meta["fake_result"], node.meta["fake_result"]
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return False
    return a.dtype == b.dtype and a.shape == b.shape and torch._debug_has_internal_overlap(a) != 1


def _elements(node: Node) -> Any:
    value = node.meta["fake_result"]
    if not isinstance(value, torch.Tensor):
        return None
    steps = [pair for pair in zip(value.size(), value.stride()) if pair[0] != 1]
    return value.storage_offset(), steps


def _same_elements(a: Node, b: Node) -> bool:
    """Whether two tensors of one memory are the same part of it, whatever their sizes."""
    elements = _elements(a)
    return elements is not None and elements == _elements(b)


@compatibility(is_backward_compatible=True)
def reinplace(gm: GraphModule, *sample_args: Any) -> GraphModule:
    """Changes calls of a functional aten graph (as make_fx creates it) to their in-place variants:
    `b = add(a, 1)` becomes `add_(a, 1)` if neither `a` nor an alias of it is used later, `a` is not
    an input, and the result has the same dtype and sizes. Scatters that functionalization created
    from writes through views are removed, or become a copy_ into the view. Sample inputs are needed
    for dtypes and sizes. Do not run dead code elimination afterwards: it would remove the calls
    that write."""
    gm = as_cfx(gm)
    _FunctionalizationMetadataProp(gm).propagate(*sample_args)
    gm.graph._reinplace((_fits, _same_elements))
    gm.recompile()
    return gm
