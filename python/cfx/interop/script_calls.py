"""What the calls of TorchScript are in a graph of cfx: Python's functions for numbers, texts and
lists, aten's overloads for tensors."""
import builtins
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import torch

# Calls on numbers, texts, lists and dicts: what Python calls them.
PYTHON: dict[str, Callable[..., Any]] = {
    "aten::add": operator.add, "aten::sub": operator.sub, "aten::mul": operator.mul,
    "aten::div": operator.truediv, "aten::floordiv": operator.floordiv,
    "aten::floor_divide": operator.floordiv, "aten::remainder": operator.mod,
    "aten::pow": operator.pow, "aten::neg": operator.neg, "aten::eq": operator.eq,
    "aten::ne": operator.ne, "aten::lt": operator.lt, "aten::le": operator.le,
    "aten::gt": operator.gt, "aten::ge": operator.ge, "aten::__and__": operator.and_,
    "aten::__or__": operator.or_, "aten::__xor__": operator.xor, "aten::__not__": operator.not_,
    "aten::__lshift__": operator.lshift, "aten::__rshift__": operator.rshift,
    "aten::__is__": operator.is_, "aten::__isnot__": operator.is_not,
    "aten::__contains__": operator.contains, "aten::len": len,
    "aten::__getitem__": operator.getitem, "prim::StringIndex": operator.getitem,
    "aten::Int": int, "aten::Float": float, "aten::Bool": bool, "aten::str": str,
    "aten::abs": abs, "prim::abs": abs, "prim::min": min, "prim::max": max, "aten::round": round,
    "aten::floor": math.floor, "aten::ceil": math.ceil, "aten::sqrt": math.sqrt,
    "aten::exp": math.exp, "aten::log": math.log, "aten::sin": math.sin, "aten::cos": math.cos,
    "aten::tan": math.tan, "aten::tanh": math.tanh, "aten::atan": math.atan,
    "aten::isnan": math.isnan, "aten::isinf": math.isinf, "aten::gcd": math.gcd,
    "aten::list": list, "aten::sum": sum, "aten::sorted": sorted, "aten::any": any,
    "aten::all": all, "aten::ScalarImplicit": lambda x: x, "aten::IntImplicit": int,
    "aten::FloatImplicit": float, "aten::Complex": complex, "aten::ord": ord, "aten::chr": chr,
    "aten::divmod": divmod, "aten::hash": hash, "aten::bool": bool,
}  # fmt: skip
# Attributes of tensors.
ATTRIBUTES = frozenset(
    f"prim::{name}" for name in
    ("dtype", "device", "layout", "is_cuda", "is_cpu", "is_sparse", "is_meta", "is_quantized",
     "requires_grad", "itemsize", "grad", "data", "T", "H", "mT", "mH", "real", "imag",
     "type", "index", "is_nested", "is_mkldnn", "is_xpu", "is_mps", "ndim", "name", "shape")
)  # fmt: skip
# Values that go through unchanged.
SAME = frozenset([
    "prim::unchecked_cast", "prim::unchecked_unwrap_optional", "aten::_unwrap_optional",
    "prim::annotate", "prim::Store", "prim::Load",
])  # fmt: skip
# Methods that change a list or dict, as functions that take it first.
LIST_METHODS: dict[str, Callable[..., Any]] = {
    "aten::append": list.append, "aten::extend": list.extend, "aten::insert": list.insert,
    "aten::reverse": list.reverse, "aten::clear": lambda items: items.clear(),
    "aten::pop": lambda items, *args: items.pop(*args), "aten::Delete": operator.delitem,
    "aten::_set_item": operator.setitem, "aten::remove": list.remove,
    "aten::sort": lambda items, reverse=False: items.sort(reverse=reverse),
    "aten::setdefault": dict.setdefault, "aten::update": dict.update,
}
# Calls that give a list or dict which nobody else has.
NEW_LISTS = frozenset([
    "prim::ListConstruct", "prim::DictConstruct", "aten::list", "aten::dict", "aten::slice",
    "aten::add", "aten::keys", "aten::values", "aten::items", "aten::split", "prim::rangelist",
    "aten::unbind", "aten::chunk", "aten::size", "aten::sorted", "aten::mul", "aten::copy",
    "aten::tolist", "prim::tolist",
])  # fmt: skip
# TorchScript writes element types, layouts and memory formats as numbers.
_SCALAR_TYPES = {
    0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 5: torch.float16,
    6: torch.float32, 7: torch.float64, 8: torch.complex32, 9: torch.complex64,
    10: torch.complex128, 11: torch.bool, 15: torch.bfloat16,
}  # fmt: skip
_TOKENS: dict[str, dict[int, Any]] = {
    "ScalarType": _SCALAR_TYPES,
    "Layout": {0: torch.strided, 1: torch.sparse_coo},
    "MemoryFormat": {0: torch.contiguous_format, 1: torch.preserve_format, 2: torch.channels_last,
                     3: torch.channels_last_3d},
}  # fmt: skip


def dtype_of(number: Any) -> Any:
    """The element type that TorchScript means by a number; what is not a number stays itself."""
    return _SCALAR_TYPES.get(number, number) if type(number) is int else number


def token(value: Any, kind: str) -> Any:
    """What a number means where the schema has a parameter of that kind."""
    table = _TOKENS.get(kind.removeprefix("Optional[").removesuffix("]"))
    return table.get(value, value) if table is not None and type(value) is int else value


def overload_of(schema: str) -> Any:
    """The overload of torch.ops that a schema begins with the name of; None if it has none."""
    name, _, overload = schema.partition("(")[0].partition(".")
    space, _, packet = name.partition("::")
    found = getattr(getattr(torch.ops, space, None), packet, None)
    return getattr(found, overload or "default", None)


def exception_of(name: Any) -> str:
    """The name of a builtin exception for what TorchScript says of it."""
    last = str(name or "").rpartition(".")[2]
    known = getattr(builtins, last, None)
    found = isinstance(known, type) and issubclass(known, Exception)
    return last if found else "RuntimeError"


def warn(*args: Any) -> None:
    """torch.warn of a scripted program."""
    warnings.warn(str(args[0]), stacklevel=2)
