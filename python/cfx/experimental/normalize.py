"""One spelling for equivalent calls: arguments by name, operators instead of functions."""
import operator
from typing import Any

from .. import Transformer
from .._core import map_aggregate
from ..graph_module import torch
from ..node import Argument, Node, Target
from ..operator_schemas import create_type_hint, normalize_function, normalize_module
from .schema_type_annotation import AnnotateTypesWithSchema


class NormalizeArgs(Transformer):
    """A Transformer that passes all arguments of calls to functions and torch.nn modules, including
    defaults, by keyword (or, without `normalize_to_only_use_kwargs`, required ones by position). A
    function with several signatures is skipped unless the types in `node.meta["type"]` select one;
    so are functions with positional-only or variadic parameters."""

    def __init__(self, module: Any, normalize_to_only_use_kwargs: bool = True) -> None:
        super().__init__(module)
        self.node_map: dict[Any, Node] = {}  # {new value: the node it comes from}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        made = self._call_with_types(n) if n.op == "call_function" else super().run_node(n)
        if n.op != "output":
            made.node.type, made.node.meta = n.type, n.meta
            self.node_map[made] = n
        return made

    def _call_with_types(self, n: Node) -> Any:
        types = tuple(map(_hint, n.args)), {name: _hint(arg) for name, arg in n.kwargs.items()}
        return self.call_function(n.target, *self.fetch_args_kwargs_from_env(n), *types)

    def call_function(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any],
        arg_types: tuple[Any, ...] | None = None, kwarg_types: dict[str, Any] | None = None,
    ):  # fmt: skip
        """Records a call; the types select one of several signatures."""
        assert callable(target)
        by_name = self.normalize_to_only_use_kwargs
        found = normalize_function(target, args, kwargs, arg_types, kwarg_types, by_name)
        return super().call_function(target, *(found or (args, kwargs)))

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]):
        """Records a call."""
        assert isinstance(target, str)
        by_name = self.normalize_to_only_use_kwargs
        found = normalize_module(self.module, target, args, kwargs, by_name)
        return super().call_module(target, *(found or (args, kwargs)))


def _hint(arg: Any) -> Any:
    """The type of an argument of a node, as far as it is known."""
    known = map_aggregate(arg, lambda x: x.meta.get("type") if isinstance(x, Node) else type(x))
    return create_type_hint(known)


class NormalizeOperators(AnnotateTypesWithSchema):
    """A Transformer that replaces torch's functions by Python's operators: `torch.add(x, y)`
    becomes `x + y`. Calls with further arguments do not change."""

    binary_magic_method_remap: dict[Any, Any] = {
        torch.add: operator.add, torch.sub: operator.sub, torch.mul: operator.mul,
        torch.div: operator.truediv, torch.floor_divide: operator.floordiv,
        torch.remainder: operator.mod, torch.eq: operator.eq, torch.ne: operator.ne,
        torch.lt: operator.lt, torch.le: operator.le, torch.gt: operator.gt, torch.ge: operator.ge,
    }  # fmt: skip

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]):
        sign = self.binary_magic_method_remap.get(target) if len(args) == 2 and not kwargs else None
        return super().call_function(sign or target, args, kwargs)
