"""ShapeProp: runs a graph and notes in each node what its value looks like.

What a tensor looks like is read in C (python/src/shape_prop.c).
"""
import copy
from typing import Any, NamedTuple

from .. import _core
from .._compatibility import compatibility
from ..graph_module import GraphModule, torch
from ..interpreter import Interpreter
from ..node import Node

__all__ = ["ShapeProp", "TensorMetadata"]


@compatibility(is_backward_compatible=True)
class TensorMetadata(NamedTuple):
    """What a tensor looks like. `memory_format` is None if it is no dense one that torch names;
    `qparams` tells how a quantized tensor is to be read."""

    shape: "torch.Size"
    dtype: "torch.dtype"
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: "torch.memory_format | None"
    is_quantized: bool
    qparams: dict[str, Any]


_FORMATS = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)
_LAYOUTS = "sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc"
_PER_TENSOR = (torch.per_tensor_affine, torch.per_tensor_symmetric)
_PER_CHANNEL = (torch.per_channel_affine, torch.per_channel_affine_float_qparams,
                torch.per_channel_symmetric)  # fmt: skip


def _symbolic_format(tensor: Any) -> Any:
    """The memory format of a tensor whose sizes are symbols; None where they do not tell."""
    from torch._prims_common import is_contiguous_for_memory_format_or_false as fits

    found = (form for form in _FORMATS if fits(tensor, memory_format=form))
    return next(found, None)


def _qparams(tensor: Any) -> dict[str, Any]:
    scheme = tensor.qscheme()
    found = {"qscheme": scheme}
    if scheme in _PER_TENSOR:
        found.update(scale=tensor.q_scale(), zero_point=tensor.q_zero_point())
    elif scheme in _PER_CHANNEL:
        found["scale"] = tensor.q_per_channel_scales().tolist()
        found["zero_point"] = tensor.q_per_channel_zero_points().tolist()
        found["axis"] = tensor.q_per_channel_axis()
    return found


_core._register(tensor_metadata=(
    TensorMetadata, *_FORMATS, torch.strided,
    frozenset(getattr(torch, name) for name in _LAYOUTS.split()), _symbolic_format, _qparams,
))  # fmt: skip


def _extract_tensor_metadata(
    result: "torch.Tensor", include_contiguity: bool = True
) -> TensorMetadata:
    """What `result` looks like; without its memory format if `include_contiguity` is False."""
    return _core._tensor_metadata(result, include_contiguity)


@compatibility(is_backward_compatible=True)
class ShapeProp(Interpreter):
    """Runs a module and notes in the `meta` of each node: "tensor_meta", a TensorMetadata in the
    place of each tensor of its value, and "type". With a `fake_mode`, or inside of one, a copy of
    the module runs on tensors without data."""

    def __init__(self, gm: GraphModule, fake_mode: Any = None) -> None:
        super().__init__(gm)
        if fake_mode is None:
            fake_mode = torch._guards.detect_fake_mode()
        self.fake_mode, self.fake_module, self.real_module = fake_mode, None, self.module
        if fake_mode is not None:
            from torch._subclasses.fake_tensor import FakeCopyMode

            with FakeCopyMode(fake_mode):
                self.fake_module = copy.deepcopy(self.module)

    run_node = _core._run_and_record  # a method, in C

    def _run_fake(self, n: Node) -> Any:
        from torch._dispatch.python import enable_python_dispatcher

        self.module = self.fake_module
        try:
            with self.fake_mode, enable_python_dispatcher():
                return Interpreter.run_node(self, n)
        finally:
            self.module = self.real_module

    def _shape_error(self, n: Node, error: Exception) -> None:
        where = f"node={n.format_node()} with meta={n.meta}"
        why = f"{type(error).__name__}: {error}"
        raise RuntimeError(f"ShapeProp error for: {where}\n{why}") from error

    def propagate(self, *args: Any) -> Any:
        """Runs the module with these inputs and returns its result."""
        if self.fake_mode is not None:
            args = tuple(
                self.fake_mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in args
            )
        return super().run(*args)
