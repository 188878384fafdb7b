"""ShapeProp: runs a graph and stores the shape and dtype of each node's value.

The description of a tensor is computed in C (python/src/run/shape_prop.c).
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
    """The shape, dtype and layout of a tensor. `memory_format` is None if the tensor is not dense
    in one of torch's formats; `qparams` describes a quantized tensor."""

    shape: "torch.Size"
    dtype: "torch.dtype"
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: "torch.memory_format | None"
    is_quantized: bool
    qparams: dict[str, Any]


_FORMATS = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)
_LAYOUTS = "sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc"


def _symbolic_format(tensor: Any) -> Any:
    """The memory format of a tensor whose sizes are symbols; None where they do not tell."""
    from torch._prims_common import is_contiguous_for_memory_format_or_false as fits

    return next((form for form in _FORMATS if fits(tensor, memory_format=form)), None)


_core._register(tensor_metadata=(
    TensorMetadata, *_FORMATS, torch.strided,
    frozenset(getattr(torch, name) for name in _LAYOUTS.split()), _symbolic_format,
))  # fmt: skip


def _extract_tensor_metadata(
    result: "torch.Tensor", include_contiguity: bool = True
) -> TensorMetadata:
    """What `result` looks like; without its memory format if `include_contiguity` is False."""
    return _core._tensor_metadata(result, include_contiguity)


@compatibility(is_backward_compatible=True)
class ShapeProp(Interpreter):
    """Runs a module and stores in the `meta` of each node: "tensor_meta", with a TensorMetadata for
    each tensor of its value, and "type". With a `fake_mode`, or inside one, a copy of the module
    runs on tensors without data."""

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

    def propagate(self, *args: Any) -> Any:
        """Runs the module with these inputs and returns its result."""
        if self.fake_mode is not None:
            fake = self.fake_mode.from_tensor
            args = tuple(fake(a) if isinstance(a, torch.Tensor) else a for a in args)
        return super().run(*args)
