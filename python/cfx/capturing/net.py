"""The upper net: every call of torch's Python API while a run is captured.

Most calls are recorded under their own names. The handlers answer what a tensor is asked about
itself: sizes are numbers of the graph, data that Python sees is a guard.

Nothing here is for users.
"""
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from .. import _core
from .._glue import contexts
from ..interop import presence
from .guards import CaptureError, user_line
from .modes import is_grad_enabled
from .numbers import Number, symbol
from .protocol import OpOverload, TorchFunctionMode, is_tensor_method_or_property
from .witness import Witness

# What follows from the dtypes, devices and ranks of the inputs, which are checked on entry.
_FACTS = (
    "dtype", "device", "ndim", "layout", "is_sparse", "is_quantized", "is_nested", "is_cuda",
    "is_mkldnn", "is_meta", "is_cpu", "itemsize", "is_mps", "is_xla", "is_xpu", "names",
    "output_nr", "_version", "is_maia", "is_ipu", "is_vulkan", "is_mtia", "is_sparse_csr", "name",
    "grad_fn", "_backward_hooks",
)  # fmt: skip
_FACT_METHODS = (
    "dim", "ndimension", "is_floating_point", "is_complex", "element_size", "is_signed",
    "get_device", "is_conj", "is_neg", "is_inference", "is_shared", "is_pinned",
    "dense_dim", "sparse_dim", "is_coalesced", "_is_view",
)  # fmt: skip
# What depends on more: on sizes and strides, on the grad mode. The graph checks the answer.
_CHECKED = ("requires_grad", "is_leaf", "retains_grad")
_CHECKED_METHODS = ("is_contiguous", "dim_order")
_INTO_PYTHON = ("tolist", "numpy", "__array__", "__complex__", "__repr__", "__format__")
# Python's operators, under the names that torch's methods have.
_OPERATORS = {
    f"__{name}__": getattr(operator, f"__{name}__")
    for name in (
        "getitem setitem eq ne lt le gt ge matmul pow mod floordiv truediv and or xor invert neg "
        "pos lshift rshift iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift "
        "irshift add sub mul"
    ).split()
} | {"__abs__": abs}
# torch calls the same methods for x + 1 and x.add(1).
_SIGNS = {name: getattr(operator, name) for name in "add sub mul eq ne lt le gt ge".split()}
_REVERSED = {
    f"__r{name}__": getattr(operator, f"__{name}__")
    for name in "sub truediv floordiv mod pow matmul add mul and or xor lshift rshift".split()
} | {"__rdiv__": operator.truediv}


# How calls are spelled in a graph: `enum form` of python/src/capture/record.c.
FUNCTION, METHOD, REVERSED, READ, WRITE, SIGN = range(6)


def _spelling(func: Callable[..., Any]) -> tuple[int, Any, str]:
    """How calls of a function of torch are recorded: form, target, name."""
    name = getattr(func, "__name__", "")
    owner: Any = getattr(func, "__self__", None)
    if name == "__get__":
        return READ, getattr, owner.__name__
    if name == "__set__":
        return WRITE, setattr, owner.__name__
    if not is_tensor_method_or_property(func) and getattr(torch.Tensor, name, None) is not func:
        return FUNCTION, func, name
    if name in _OPERATORS:
        return FUNCTION, _OPERATORS[name], name
    if name in _SIGNS:
        return SIGN, _SIGNS[name], name
    if name in _REVERSED:
        return REVERSED, _REVERSED[name], name
    return METHOD, name, name


# ---- what a tensor is asked about itself -------------------------------------------------------


def _fact(name):
    return lambda recorder, witness, *rest: getattr(witness._real, name)


def _fact_method(func):
    def ask(recorder, witness, *args, **kwargs):
        plain = recorder.plain
        return func(witness._real, *plain(args), **plain(kwargs))

    return ask


def _checked(name):
    def ask(recorder, witness, *rest):
        node = recorder.call(getattr, witness._node, name)
        return recorder.assume_fact(node, getattr(witness._real, name), name)

    return ask


def _gradient(recorder, witness, *rest):
    if witness._real.grad is not None:
        return recorder.record(torch.Tensor.grad.__get__, (witness,), {})
    return _checked("grad")(recorder, witness)


def _checked_method(name):
    def ask(recorder, witness, *args, **kwargs):
        node = recorder.method(name, witness._node, *args, **kwargs)
        return recorder.assume_fact(node, getattr(witness._real, name)(*args, **kwargs), name)

    return ask


def _size(recorder, witness, dim=None):
    return witness.sizes() if dim is None else witness.size_of(operator.index(dim))


def _length(recorder, witness):
    if not witness._real.dim():
        return len(witness._real)  # raises
    return operator.index(witness.size_of(0))


def _stride(recorder, witness, dim=None):
    dims = range(witness._real.dim()) if dim is None else (operator.index(dim),)
    found = tuple(witness.asked("stride", d) for d in dims)
    return found if dim is None else found[0]


def _squeeze(func):
    """Which dimensions it removes depends on their sizes: so does the rank of the result."""

    def squeeze(recorder, witness, *args, **kwargs):
        given = args or tuple(kwargs.values())
        dims = given[0] if given and isinstance(given[0], (tuple, list)) else given
        for dim in dims or range(witness._real.dim()):
            if witness._real.dim():
                witness.size_of(dim) == 1  # noqa: B015: a guard
        return recorder.record(func, (witness, *args), kwargs)

    return squeeze


def _with_value(recorder, witness):
    """The real tensor, whose data the program wants."""
    if witness._real.is_meta:
        recorder.refuse("the program needs a value of a tensor on the meta device, which has none; "
                        "capture it with inputs that have data")  # fmt: skip
    return witness._real


def _truth(recorder, witness):
    return recorder.assume_data(witness, bool, bool(_with_value(recorder, witness)))


def _item(recorder, witness):
    value = _with_value(recorder, witness).item()
    if isinstance(value, (bool, complex)):
        return recorder.assume_data(witness, torch.Tensor.item, value)
    return symbol(Number(recorder, recorder.method("item", witness._node), value, True))


def _to_number(kind):
    """int(x), float(x), and x as an index: Python wants the plain value."""

    def ask(recorder, witness):
        value = kind(_with_value(recorder, witness))
        return recorder.assume_data(witness, type(value), value)

    return ask


def _into_python(func):
    def ask(recorder, witness, *args, **kwargs):
        found = func(_with_value(recorder, witness), *args, **kwargs)
        return recorder.assume_data(witness, func, found, *args)

    return ask


def _iterate(recorder, witness):
    length = _length(recorder, witness)  # raises for a number
    return iter([witness[i] for i in range(length)])


def _contains(recorder, witness, element):
    """`element in x`, the truth of a tensor."""
    _with_value(recorder, witness)
    return bool((element == witness).any())


def _address(recorder, witness, *rest):
    recorder.refuse("the program asks for the memory of a tensor of the graph, which is another "
                    "one in each call")  # fmt: skip


def _handlers() -> dict[Any, Callable[..., Any]]:
    tensor = torch.Tensor
    table: dict[Any, Callable[..., Any]] = {
        tensor.shape.__get__: lambda recorder, witness, *rest: recorder.sizes(witness),
        tensor.grad.__get__: _gradient, tensor.size: _size, tensor.__len__: _length,
        tensor.stride: _stride,
        **dict.fromkeys((tensor.numel, tensor.nelement, torch.numel),
                        lambda recorder, witness: witness.count()),
        tensor.storage_offset: lambda recorder, witness: witness.asked("storage_offset"),
        tensor.squeeze: _squeeze(tensor.squeeze), tensor.squeeze_: _squeeze(tensor.squeeze_),
        torch.squeeze: _squeeze(torch.squeeze),
        tensor.__bool__: _truth, tensor.is_nonzero: _truth, torch.is_nonzero: _truth,
        tensor.item: _item, tensor.__iter__: _iterate, tensor.__contains__: _contains,
        tensor.__int__: _to_number(int), tensor.__float__: _to_number(float),
        tensor.__index__: _to_number(operator.index),
        **dict.fromkeys((tensor.data_ptr, tensor.is_set_to, tensor.storage, tensor.untyped_storage,
                         tensor.__dlpack__), _address),
        tensor.__hash__: lambda recorder, witness: id(witness),
        torch.is_floating_point: _fact_method(torch.is_floating_point),
        torch.is_complex: _fact_method(torch.is_complex),
        torch.is_tensor: lambda recorder, witness: True,
    }  # fmt: skip
    for names, kind in ((_FACTS, _fact), (_CHECKED, _checked)):
        table.update({getattr(tensor, name).__get__: kind(name)
                      for name in names if hasattr(tensor, name)})  # fmt: skip
    for name in _FACT_METHODS:
        if hasattr(tensor, name):
            table[getattr(tensor, name)] = _fact_method(getattr(tensor, name))
    for name in _CHECKED_METHODS:
        table[getattr(tensor, name)] = _checked_method(name)
    for name in _INTO_PYTHON:
        table[getattr(tensor, name)] = _into_python(getattr(tensor, name))
    return table


_HANDLERS = _handlers()


class Net(TorchFunctionMode):
    """The upper net."""

    def __init__(self, recorder: Any) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is contexts.set_mode and args[0] == is_grad_enabled():
            self.recorder.insists_on_grad = True
        if forward_ad._current_level >= 0 and not self.recorder.evaluating:
            return _with_tangents(self.recorder, func, args, kwargs or {})
        return self.recorder.torch_function(func, types, args, kwargs)


def _with_tangents(recorder, func, args, kwargs):
    """A call where tensors may have tangents (torch.func.jvp): torch works with the witnesses, and
    the lower net records what becomes of them."""
    handler = describe(func)[4]
    if handler is not None and args and isinstance(args[0], Witness):
        return handler(recorder, *args, **kwargs)
    return recorder.record_transformed(func, args, kwargs)


# ---- what is known of some functions -----------------------------------------------------------

_OF_TWO_TENSORS = frozenset((
    "add", "sub", "subtract", "rsub", "mul", "multiply", "div", "divide", "true_divide",
    "floor_divide", "remainder", "fmod", "pow", "float_power", "eq", "ne", "lt", "le", "gt", "ge",
    "maximum", "minimum", "where", "bitwise_and", "bitwise_or", "bitwise_xor",
))  # fmt: skip
_OF_AS_MANY = frozenset((
    "split", "chunk", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit", "unsafe_split",
    "unsafe_chunk",
))  # fmt: skip


_MAY_WRITE = frozenset((
    "batch_norm", "instance_norm", "native_batch_norm", "_native_batch_norm_legit", "embedding",
    "embedding_bag", "_batch_norm_impl_index", "cudnn_batch_norm", "rrelu", "sync_batch_norm",
))  # fmt: skip
_RESHAPES = frozenset((
    "squeeze_", "unsqueeze_", "transpose_", "t_", "swapaxes_", "swapdims_", "resize_",
    "resize_as_", "as_strided_", "set_", "__set__",
))  # fmt: skip


def takes_tensors(func: Callable[..., Any]) -> bool:
    """Whether the numbers among the arguments of a call become tensors, as in x + 2."""
    name = func.__name__
    return name.rstrip("_") in _OF_TWO_TENSORS or (
        (name in _OPERATORS and name not in ("__getitem__", "__setitem__")) or name in _REVERSED)


def _writes(func: Any, name: str) -> bool:
    """Whether a call writes to its arguments, whatever they are."""
    if isinstance(func, OpOverload):
        return func._schema.is_mutable
    plain = name.endswith("_") and not name.endswith("__")
    return plain or name in ("__setitem__", "__set__") or name.startswith("__i")


# Functions of C are there for good, and so is what is known of them.
_LASTING = (type(torch.relu), type(torch.Tensor.relu), type(torch.Tensor.shape.__get__))
_known: dict[Any, tuple[int, Any, str, int, Any]] = {}


def describe(func: Any) -> tuple[int, Any, str, int, Any]:
    """What the recorder has to know of a function of torch: how its calls are spelled (form,
    target, name), flags (FACT_... of python/src/capture/record.c), and what answers instead if a
    tensor is asked about itself, or None."""
    known = _known.get(func)
    if known is not None:
        return known
    if presence.is_scripted(func):
        raise CaptureError(f"{user_line()}: the program calls a module of TorchScript that is not "
                           "part of the model; make it an attribute of the module")  # fmt: skip
    name = getattr(getattr(func, "overloadpacket", func), "__name__", "")
    flags = (_writes(func, name), name in _MAY_WRITE, name in _OF_AS_MANY, name in _RESHAPES,
             func is contexts.set_mode)  # fmt: skip
    number = sum(1 << bit for bit, flag in enumerate(flags) if flag)
    facts = (*_spelling(func), number, _HANDLERS.get(func))
    if isinstance(func, _LASTING):
        _known[func] = facts
    return facts


_core._register(capture_describe=describe)
