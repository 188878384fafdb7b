"""Infers dtypes and shapes without computing anything; sizes may be symbols:

    cfx.infer_shapes(graph_module, "float32[N, 3, 224, 224]").nodes["conv1"]
    TensorShape(dtype='float32', shape=('N', 64, 112, 112))
"""
from typing import Any, NamedTuple

from . import _core
from ._glue.binding import bind
from ._glue.listing import public_names
from .lowering import Lowered, lower


class TensorShape(NamedTuple):
    """A dtype and a shape. A size is a number, or an expression in the given symbols."""

    dtype: str
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        """As descriptions of inputs are written: float32[N, 3]"""
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


class Shapes(NamedTuple):
    """The value of each node: a TensorShape for a tensor, containers of them, numbers. The key is
    the node's name, inside regions its path ("cond/add")."""

    nodes: dict[str, Any]
    result: Any
    assumptions: list[str]  #: what must hold of the names: "N == M", "N <= 512"


def infer_shapes(module: Any, *args: Any, **kwargs: Any) -> Shapes:
    """Infers the shapes of a GraphModule or of the result of cfx.lower, for tensors or descriptions
    of them."""
    lowered = module if isinstance(module, Lowered) else lower(module)
    inputs = bind(lowered._inputs, args, kwargs, lowered._default)
    return Shapes(*_core._infer(lowered._program, list(inputs), TensorShape))


__dir__ = public_names(globals())
