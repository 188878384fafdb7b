"""Tensors of a run that is being captured.

A witness is a tensor of the run. It has the node that computes it in the graph, and the tensor that
this run really computed. Its sizes are numbers of the graph (numbers.py). So torch's own checks
hold, Python runs as ever, and both arrive in the recorder (recorder.py) with every call. What does
not pass torch's Python API (net.py) arrives here, in __torch_dispatch__.

Nothing here is for users.
"""
from collections.abc import Callable
from typing import Any

import torch

from .. import _core
from .numbers import Number, product, symbol


class _Kind(type(torch.Tensor)):  # type: ignore[misc]
    """The class of Witness: programs that compare the type of a tensor, or look it up, take the way
    that they take without capture. `type(x) is torch.Tensor` nobody can answer but Python."""

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is torch.Tensor

    def __hash__(cls) -> int:
        return hash(torch.Tensor)


class Witness(torch.Tensor, metaclass=_Kind):
    """A tensor of a captured run."""

    _recorder: Any
    _node: Any
    _real: torch.Tensor

    def __init__(self, *args: Any) -> None:
        raise TypeError("recorder.witness(node, tensor) makes a witness")

    @property
    def __class__(self) -> Any:
        return torch.Tensor

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise TypeError("the class of a tensor of a run cannot be changed")

    def size_of(self, dim: int) -> Any:
        """The size of a dimension. One that was asked for before gives the same node."""
        return self._recorder.size_of(self, dim)

    def asked(self, name: str, *args: Any) -> Any:
        """What a method that gives a number gives."""
        recorder = self._recorder
        node = recorder.method(name, self._node, *args)
        return symbol(Number(recorder, node, getattr(self._real, name)(*args)))

    def sizes(self) -> torch.Size:
        return self._recorder.sizes(self)

    def count(self) -> Any:
        return product(self.sizes())

    def strides(self) -> list[Any]:
        """Strides of what is contiguous follow from the sizes; others are asked for."""
        real = self._real
        dims = range(real.dim())
        if real.is_contiguous() and real.numel() > 0:
            sizes = self.sizes()
            return [product(sizes[d + 1 :]) for d in dims]
        return [self.asked("stride", d) for d in dims]

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """No net is spread: the run is over, or another thread has the tensor."""
        if func is torch.Tensor.__repr__:
            return f"<tensor {args[0]._node} of a graph that is being captured>"
        recorder = _recorder_of(args) or _recorder_of((kwargs or {}).values())
        if recorder is not None:  # torch's C++ cannot stand an error in what it asks below
            recorder.check_running()
        return super().__torch_function__(func, types, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        """The lower net: what reaches torch's operators without its Python API."""
        recorder = _recorder_of(args) or _recorder_of((kwargs or {}).values())
        recorder.check_running()
        answer = _BELOW.get(func.overloadpacket)
        if answer is not None:
            return answer(*args)
        return recorder.record(func, args, kwargs)

    def __deepcopy__(self, memo: Any) -> Any:
        return self._recorder.record(torch.clone, (self.detach(),), {})

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._recorder.refuse("a tensor of the graph is pickled, which writes down its present "
                              "data; return it and pickle the result")  # fmt: skip


def _recorder_of(values):
    for value in values:
        if isinstance(value, Witness):
            return value._recorder
        if isinstance(value, (list, tuple)):
            found = _recorder_of(value)
            if found is not None:
                return found
    return None


def _size_below(witness, *dim):
    return witness.size_of(*dim) if dim else list(witness.sizes())


def _stride_below(witness, *dim):
    strides = witness.strides()
    return strides[dim[0]] if dim else strides


def _ask_real(name):
    return lambda witness, *args: getattr(witness._real, name)(*args)


_aten = torch.ops.aten
_BELOW: dict[Any, Callable[..., Any]] = {
    _aten.sym_size: _size_below, _aten.size: _size_below,
    _aten.sym_stride: _stride_below, _aten.stride: _stride_below,
    _aten.sym_numel: Witness.count, _aten.numel: Witness.count,
    _aten.dim: _ask_real("dim"),
    _aten.sym_storage_offset: lambda witness: witness.asked("storage_offset"),
    _aten.is_contiguous: _ask_real("is_contiguous"),
    _aten.is_strides_like_format: lambda witness, *args: _aten.is_strides_like_format(
        witness._real, *args),
    _aten.is_non_overlapping_and_dense: lambda witness: True,
}  # fmt: skip


_core._register(witness_class=Witness)
