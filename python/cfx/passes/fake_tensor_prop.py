"""FakeTensorProp: runs a graph on tensors without data, and stores them as metadata."""
from typing import Any

from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from .._compatibility import compatibility
from .._core import map_aggregate
from ..experimental.proxy_tensor import py_sym_types
from ..graph_module import GraphModule, torch
from ..interop import bind_unbacked
from ..interpreter import Interpreter
from ..node import Node

__all__ = ["FakeTensorProp"]


@compatibility(is_backward_compatible=False)
class FakeTensorProp(Interpreter):
    """Runs a module and stores the value of each node in `meta["val"]`: a fake tensor for each
    tensor, numbers as they are, None for everything else. No data is computed; aliases share their
    storage."""

    def __init__(self, module: GraphModule, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = FakeTensorMode() if mode is None else mode

    def _snapshot(self, value: Any) -> Any:
        """What a leaf of a value is now: later in-place operators do not change it."""
        if isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor):
            value = self._mode.from_tensor(value, static_shapes=True)
        if isinstance(value, torch.Tensor):
            return value.detach()
        return value if isinstance(value, (int, float, bool, *py_sym_types)) else None

    def run_node(self, n: Node) -> Any:
        """Runs a node and stores its value."""
        result = super().run_node(n)
        if self._mode.shape_env is not None:
            bind_unbacked(self._mode.shape_env, n, result)
        kept = map_aggregate(result, self._snapshot)
        if kept is not None:
            n.meta["val"] = kept
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the module with fake tensors made from these inputs, and returns its result."""
        fake = self._mode.from_tensor
        inputs = [fake(a) if isinstance(a, torch.Tensor) else a for a in args]
        return self.propagate_dont_convert_inputs(*inputs)

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Runs the module with inputs that are already fake tensors."""
        with self._mode:
            return super().run(*args)
