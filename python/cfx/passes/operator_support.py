"""Objects that say which nodes a back end supports, and ways to combine them."""
import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..graph_module import Module, torch
from ..node import Node
from .shape_prop import TensorMetadata
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OperatorSupportBase", "OperatorSupport", "create_op_support", "chain", "OpSupports",
           "any_chain"]  # fmt: skip

_Dtypes = Sequence["torch.dtype"]
TargetTypeName = str
SupportedArgumentDTypes = tuple[Sequence[_Dtypes], dict[str, _Dtypes]] | None
SupportDict = Mapping[TargetTypeName, SupportedArgumentDTypes]
IsNodeSupported = Callable[[Mapping[str, Module], Node], bool]


class OperatorSupportBase(abc.ABC):
    """Says whether a back end supports a node."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Returns whether `node` is supported; `submodules` maps paths to modules, as
        `named_modules` does."""


class OperatorSupport(OperatorSupportBase):
    """Supports the calls whose target (`get_node_target`) is in a dict, if their inputs have the
    dtypes given there: (dtypes for each of args, {name: dtypes} for kwargs). None in place of
    dtypes, or of the whole entry, accepts all; inputs that are not listed are not checked."""

    _support_dict: SupportDict

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Returns whether `node` is not a call, or a supported call. The dtypes are those found by
        ShapeProp."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if (dtypes := self._support_dict.get(target)) is None:
            return target in self._support_dict
        args_dtypes, kwargs_dtypes = dtypes
        wanted = [*zip(node.args, args_dtypes, strict=False),
                  *((node.kwargs.get(name), dtypes) for name, dtypes in kwargs_dtypes.items())]
        return all(
            _get_arg_dtype(arg) in dtypes
            for arg, dtypes in wanted
            if dtypes is not None and isinstance(arg, Node)
        )


def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """Makes an OperatorSupportBase from a function with the signature of `is_node_supported`."""
    answer = lambda self, submodules, node: is_node_supported(submodules, node)  # noqa: E731
    body = {"is_node_supported": answer}
    return type("FunctionalOperatorSupport", (OperatorSupportBase,), body)()


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports the nodes that all of them support."""
    return create_op_support(lambda mods, n: all(x.is_node_supported(mods, n) for x in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports the nodes that any of them supports."""
    return create_op_support(lambda mods, n: any(x.is_node_supported(mods, n) for x in op_support))


class OpSupports:
    """Ready-made supports to combine with others."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: "torch.dtype") -> OperatorSupportBase:
        """Supports all nodes without an input of this dtype."""
        return create_op_support(
            lambda _, node: all(_get_arg_dtype(arg) != dtype for arg in node.all_input_nodes)
        )

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Supports all nodes except those with these names."""
        return create_op_support(lambda _, node: node.name not in disallow_set)


def _get_arg_dtype(arg: Node) -> Any:
    if not isinstance(arg, Node):
        raise AssertionError(f"Expected cfx.Node, got {type(arg)}")
    meta = arg.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else arg.meta["type"]
