"""Node, and what else torch.fx.node offers.

The class is C (cfx._core). The parts that depend on torch (tensors in a print, whether a function
has effects) are written here and registered with it.
"""
import linecache
import math
import operator
import random
import time
from collections.abc import Callable
from typing import Any, TypeVar, Union

from . import _core, _glue
from ._compatibility import compatibility
from ._core import Node, _find_module_of_method, _get_qualified_name, _pretty_print_target
from ._core import _type_repr, map_aggregate, map_arg
from ._glue.listing import public_names

__all__ = ["Node", "map_arg", "map_aggregate", "has_side_effect"]

Target = Union[Callable[..., Any], str]
Argument = Any
_F = TypeVar("_F", bound=Callable[..., Any])
_legal_ops = dict.fromkeys(
    ["placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"]
)


def changing_functions() -> list:
    """Returns Python's functions whose results change between calls: random numbers and clocks."""
    clocks = [time.time, time.perf_counter, time.monotonic]
    named = (getattr(random, name) for name in random.__all__)
    return clocks + [f for f in named if isinstance(getattr(f, "__self__", None), random.Random)]


_side_effectful_functions: set = {
    operator.setitem, operator.delitem, print, input, breakpoint, exec, setattr, delattr,
    *changing_functions()
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """`base_types`: the classes whose objects are arguments as they are; many are torch's."""
    if name != "base_types":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import torch

    kinds = (torch.dtype, torch.Tensor, torch.device, torch.memory_format, torch.layout)
    symbolic = (torch._ops.OpOverload, torch.SymInt, torch.SymBool, torch.SymFloat)
    return (str, int, float, bool, complex, *kinds, *symbolic)


# ---- printing -------------------------------------------------------------------------------


def _format_items(items, limit):
    text = ", ".join(_format_arg(item) for item in items[: int(min(limit, len(items)))])
    return text if len(items) <= limit else f"{text}, ...[total_len={len(items)}]"


def _format_arg(arg: object, max_list_len: float = math.inf) -> str:
    """An argument as str(graph) shows it: nodes as %name, strings without quotes."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return arg._custom_fx_repr_fn()
    if isinstance(arg, list):
        return f"[{_format_items(arg, max_list_len)}]"
    if isinstance(arg, tuple):
        comma = "," if len(arg) == 1 else ""
        return f"({_format_items(arg, max_list_len)}{comma})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


def _tensor_annotation(node):
    """`Tensor "f32[2, 3][3, 1]cpu"` from meta['val'], or the node's type; with a space after."""
    torch = _glue.find_torch()
    val = node.meta.get("val")
    if torch is not None and type(val) is not dict and isinstance(val, torch.Tensor):
        from ._glue.codegen import dtype_abbrs

        shape, stride = list(val.shape), list(val.stride())
        return f'Tensor "{dtype_abbrs[val.dtype]}{shape}{stride}{val.device}"'
    return f"{_type_repr(node.type)} " if node.type is not None else ""


def format_node(
    self, placeholder_names: list[str] | None = None,
    maybe_return_typename: list[str] | None = None, *, include_tensor_metadata: bool = False,
) -> str | None:  # fmt: skip
    """Formats one line of str(graph). If `placeholder_names` is not empty, a placeholder is added
    to that list and the result is None; if `maybe_return_typename` is not empty, its first element
    is set to the type of an output."""
    if self.op == "placeholder" and placeholder_names:
        annotation = f"{self.name}: {_type_repr(self.type)}" if self.type is not None else ""
        placeholder_names.append(self.target + annotation)
        return None
    if self.op == "output" and maybe_return_typename and self.type is not None:
        maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
    line = self._format_plain()
    is_call = self.op in ("call_function", "call_method", "call_module")
    if include_tensor_metadata and is_call:
        plain = f"{_type_repr(self.type)} " if self.type is not None else ""
        head = f"%{self.name} : "
        line = head + _tensor_annotation(self) + line[len(head) + len(plain) :]
    return line


# ---- effects --------------------------------------------------------------------------------


@compatibility(is_backward_compatible=False)
def has_side_effect(fn: _F) -> _F:
    """Marks a function as impure: dead code elimination keeps calls to it."""
    _side_effectful_functions.add(fn)
    return fn


def _register_side_effects(torch):
    """torch's functions that do something beside computing their result."""
    _side_effectful_functions.update((torch._assert, torch._assert_async))
    paths = (
        "ops.aten._assert_async.msg",
        "ops.aten._assert_scalar.default",
        "ops.aten._assert_tensor_metadata.default",
        "ops.aten._print.default",
        "ops.aten.sym_constrain_range.default",
        "ops.aten.sym_constrain_range_for_size.default",
        "ops.profiler._record_function_enter",
        "ops.profiler._record_function_enter.default",
        "ops.profiler._record_function_enter_new",
        "ops.profiler._record_function_enter_new.default",
        "ops.profiler._record_function_exit",
        "ops.profiler._record_function_exit._RecordFunction",
        "_C._set_grad_enabled",
        "is_grad_enabled",
        "amp._enter_autocast",
        "amp._exit_autocast",
        "autograd.grad_mode._enter_inference_mode",
        "autograd.grad_mode._exit_inference_mode",
    )
    found = {_core._resolve(f"torch.{path}") for path in paths}
    _side_effectful_functions.update(found - {None})
    for name in ("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "bernoulli"):
        _random_functions.add(getattr(torch, name))
    _random_functions.update((torch.randint_like, torch.normal, torch.poisson, torch.multinomial))


_random_functions: set = set()


def _schema_is_impure(target, impure_random):
    """What the schema of one of torch's overloads says: whether it writes, or draws numbers."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        return False
    if schema.is_mutable:
        return True
    torch = _glue.find_torch()
    random = torch.Tag.nondeterministic_seeded in getattr(target, "tags", ())
    return bool(impure_random and random)


def source_line(file: str, line: int) -> str:
    """Returns a line of the user's source, formatted as in a traceback."""
    return f'  File "{file}", line {line}\n    {linecache.getline(file, line).strip()}'.rstrip()


def _is_marked_elsewhere(target):
    """Whether a library has given the function to torch.fx's own has_side_effect."""
    if _glue.find_torch() is None:
        return False
    from . import interop

    return target in interop.side_effects()


def is_impure(self, impure_random: bool = True) -> bool:
    """Returns torch.fx's answer to whether dead code elimination must keep the node even if it has
    no users. The passes know more: see docs/differences.md."""
    if self.op in ("placeholder", "output"):
        return True
    if self.op == "call_function":
        target = self.target
        if target in _side_effectful_functions or target in _random_functions:
            return True
        return _schema_is_impure(target, impure_random) or _is_marked_elsewhere(target)
    if self.op == "call_module":
        owner = self.graph.owning_module
        assert owner is not None, "self.graph.owning_module not set for purity check"
        module = owner.get_submodule(self.target)
        assert module is not None, f"Did not find expected submodule target {self.target}"
        return getattr(module, "_is_impure", False)
    return False


def normalized_arguments(
    self, root, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs: bool = False
):
    """Returns the node's arguments in the order and with the names of the callee's signature, or
    None if the signature is not known."""
    from .operator_schemas import normalize_function, normalize_module

    only = normalize_to_only_use_kwargs
    if self.op == "call_function":
        types_given = arg_types, kwarg_types
        return normalize_function(self.target, self.args, self.kwargs, *types_given, only)
    if self.op == "call_module":
        return normalize_module(root, self.target, self.args, self.kwargs, only)
    return None


# ---- copies ---------------------------------------------------------------------------------


def _place(node):
    """How a node is found again in a copy of its graph: by its name, or by its number if others
    have that name; None if it was erased."""
    if node._erased:
        return None
    if node.graph._find(node.name) is node:
        return node.name
    return next((i for i, other in enumerate(node.graph.nodes) if other is node), None)


def _node_at(graph, place):
    if place is None:
        return graph._root
    if isinstance(place, str):
        return graph._find(place)
    return next(node for i, node in enumerate(graph.nodes) if i == place)


def _erased_node(op, name, target, args=(), kwargs=None):
    """A copy of a node that was erased: it belongs to no graph that anybody else has."""
    from .graph import Graph

    graph = Graph()
    node = graph.create_node(op, target, args, kwargs, name)
    node.name = name
    graph.erase_node(node)
    return node


def _reduce(self, protocol=None):
    if self._erased:
        from ._glue.pickling import portable

        literals = _core._map_all((self.args, self.kwargs), portable)
        return _erased_node, (self.op, self.name, portable(self.target), *literals)
    return _node_at, (self.graph, _place(self))


def _deepcopy(self, memo):
    import copy

    if self._erased:
        literals = copy.deepcopy((self.args, self.kwargs), memo)
        return _erased_node(self.op, self.name, self.target, *literals)
    return _node_at(copy.deepcopy(self.graph, memo), _place(self))


for _function in (format_node, is_impure, normalized_arguments):
    _function.__qualname__ = f"Node.{_function.__name__}"
    setattr(Node, _function.__name__, _function)
setattr(Node, "_pretty_print_target", staticmethod(_pretty_print_target))
setattr(Node, "__reduce_ex__", _reduce)
setattr(Node, "__deepcopy__", _deepcopy)
setattr(Node, "_repr_fn", None)  # a node may be given a function of its own

__dir__ = public_names(globals(), "Argument", "Target", "base_types")
