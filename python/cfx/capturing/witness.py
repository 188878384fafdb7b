"""Tensors and numbers of a run that is being captured, and the nets that see what the run does.

A witness is a tensor of the run. It has the node that computes it in the graph, and the tensor that
this run really computed. A size of a witness is a torch.SymInt over a Number, which likewise has a
node and the value of this run. So torch's own checks hold, Python runs as ever, and both arrive in
the recorder (recorder.py) with every call.

This is the only file of the capture that relies on private protocols of torch: wrapper subclasses
that answer questions about sizes, and the methods that torch calls on the object behind a SymInt.

Nothing here is for users.
"""
import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, is_tensor_method_or_property

SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)

# ---- numbers -----------------------------------------------------------------------------------

_ARITHMETIC = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "mod": operator.mod,
    "floordiv": operator.floordiv, "int_floordiv": operator.floordiv,
    "truediv": operator.truediv, "int_truediv": operator.truediv,
    "float_truediv": operator.truediv, "pow": operator.pow, "pow_by_natural": operator.pow,
    "float_pow": operator.pow, "lshift": operator.lshift, "rshift": operator.rshift,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "sym_min": min, "sym_max": max,
}  # fmt: skip
_COMPARISONS = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
_FUNCTIONS = {
    "neg": operator.neg, "abs": abs, "floor": math.floor, "ceil": math.ceil,
    "trunc": math.trunc, "round": round, "sym_float": float, "sym_int": int,
    "sym_sqrt": math.sqrt, "sym_not": operator.not_,
}  # fmt: skip


class Number:
    """What is behind a SymInt or SymFloat: a node and its value in this run. Without a recorder it
    is a literal. Comparisons are answered with a literal, and the answer is a guard: torch has
    parameters that refuse anything but a plain bool."""

    __slots__ = ("recorder", "node", "value")
    # What torch reads of the nodes of its own.
    expr = shape_env = constant = None

    def __init__(self, recorder: Any, node: Any, value: Any) -> None:
        self.recorder, self.node, self.value = recorder, node, value

    # ---- what it is ----

    def is_int(self) -> bool:
        return type(self.value) is int

    def is_float(self) -> bool:
        return type(self.value) is float

    def is_bool(self) -> bool:
        return type(self.value) is bool

    def is_constant(self) -> bool:
        return self.recorder is None

    def is_symbolic(self) -> bool:
        return self.recorder is not None

    def has_hint(self) -> bool:
        return True

    def is_nested_int(self) -> bool:
        return False

    def nested_int(self) -> None:
        return None

    def constant_int(self) -> Any:
        return None if self.recorder else self.value

    constant_bool = maybe_as_int = maybe_as_float = maybe_as_bool = constant_int

    def clone(self) -> "Number":
        return self

    def __repr__(self) -> str:
        return f"{self.value}" if self.recorder is None else f"{self.node}={self.value}"

    def _graph_repr(self):
        return self.str()

    def _literal(self, value: Any) -> "Number":
        return Number(None, value, value)

    wrap_int = wrap_float = wrap_bool = _literal

    # ---- plain answers: each is a guard ----

    def _plain(self, *where: Any) -> Any:
        if self.recorder is not None:
            self.recorder.assume_value(self.node, self.value)
        return self.value

    def _truth(self, *where: Any) -> bool:
        return bool(self._plain() if self.is_bool() else self._compare(operator.ne, 0).value)

    int_ = float_ = guard_int = guard_float = _plain
    bool_ = guard_bool = guard_size_oblivious = _truth
    guard_or_false = guard_or_true = expect_true = _truth

    def str(self) -> Any:
        return f"{self._plain()}"

    def expect_size(self, *where: Any) -> bool:
        return True

    def statically_known_true(self, *where: Any) -> bool:
        return self.recorder is None and bool(self.value)

    def _compute(self, function: Callable[..., Any], *others: Any) -> "Number":
        operands = [self, *(o if isinstance(o, Number) else self._literal(o) for o in others)]
        value = function(*(o.value for o in operands))
        recorder = next((o.recorder for o in operands if o.recorder is not None), None)
        if recorder is None:
            return self._literal(value)
        return Number(recorder, recorder.call(function, *(o.node for o in operands)), value)

    def _compare(self, function: Callable[[Any, Any], Any], other: Any) -> "Number":
        other = other if isinstance(other, Number) else self._literal(other)
        value = function(self.value, other.value)
        recorder = self.recorder or other.recorder
        if recorder is not None and self.node is not other.node:
            recorder.assume(function, self.node, other.node, value)
        return self._literal(value)

    def and_(self, other: Any) -> "Number":
        return self._compute(operator.and_, other)

    def or_(self, other: Any) -> "Number":
        return self._compute(operator.or_, other)

    def pos(self) -> "Number":
        return self

    # ---- layouts of what has such sizes: only asked, never recorded ----

    def _no(self, sizes: Any, strides: Any) -> "Number":
        return self._literal(False)

    def _yes(self, sizes: Any, strides: Any) -> "Number":
        return self._literal(True)

    is_contiguous = is_non_overlapping_and_dense = _yes
    is_non_overlapping_and_dense_indicator = _yes
    is_channels_last_contiguous_2d = is_channels_last_contiguous_3d = _no
    is_channels_last_strides_2d = is_channels_last_strides_3d = _no


def _add_methods() -> None:
    def reversed_(function):
        return lambda self, other: self._literal(other)._compute(function, self) if not isinstance(
            other, Number) else other._compute(function, self)

    for name, function in _ARITHMETIC.items():
        setattr(Number, name, functools.partialmethod(Number._compute, function))
        setattr(Number, f"r{name}", reversed_(function))
    for name, function in _COMPARISONS.items():
        setattr(Number, name, functools.partialmethod(Number._compare, function))
    for name, of_one in _FUNCTIONS.items():
        setattr(Number, name, functools.partialmethod(Number._compute, of_one))


_add_methods()


def symbol(recorder: Any, node: Any, value: int | float) -> Any:
    """A number that torch and Python take for one."""
    number = Number(recorder, node, value)
    return torch.SymFloat(number) if isinstance(value, float) else torch.SymInt(number)


def number_of(value: Any) -> Number | None:
    """What is behind a SymInt; None if it is not one of ours. Where an operator takes a tensor,
    torch passes a tensor that remembers the number (and holds 7777777)."""
    if isinstance(value, torch.Tensor):
        value = getattr(value, "_wrapped_number", None)
    node = value.node if isinstance(value, SYMBOLS) else None
    return node if isinstance(node, Number) else None


# ---- tensors -----------------------------------------------------------------------------------


class Witness(torch.Tensor):
    """A tensor of a captured run."""

    _recorder: Any
    _node: Any
    _real: torch.Tensor

    @staticmethod
    def __new__(cls, recorder, node, real):
        strides = real.stride() if real.layout is torch.strided else None
        made = torch.Tensor._make_wrapper_subclass(
            cls, real.shape, strides=strides, dtype=real.dtype, device=real.device,
            layout=real.layout, requires_grad=real.requires_grad,
            dispatch_sizes_strides_policy="sizes",
        )  # fmt: skip
        made._recorder, made._node, made._real = recorder, node, real
        made._sizes = {}
        return made

    def __init__(self, recorder: Any, node: Any, real: torch.Tensor) -> None:
        pass

    def size_of(self, dim: int) -> Any:
        """The size of a dimension. One that was asked for before gives the same node."""
        ndim = self._real.dim()
        if not -ndim <= dim < ndim:
            self._real.size(dim)  # raises
        dim %= ndim
        known = self._sizes.get(dim)
        if known is None:
            node = self._recorder.method("size", self._node, dim)
            known = self._sizes[dim] = symbol(self._recorder, node, self._real.size(dim))
        return known

    def asked(self, name: str, *args: Any) -> Any:
        """What a method that gives a number gives."""
        recorder = self._recorder
        node = recorder.method(name, self._node, *args)
        return symbol(recorder, node, getattr(self._real, name)(*args))

    def sizes(self) -> torch.Size:
        return torch.Size([self.size_of(dim) for dim in range(self._real.dim())])

    def count(self) -> Any:
        return functools.reduce(operator.mul, self.sizes(), 1)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        """The lower net: what reaches torch's operators without its Python API."""
        answer = _BELOW.get(func.overloadpacket)
        if answer is not None:
            return answer(*args)
        recorder = _recorder_of(args) or _recorder_of((kwargs or {}).values())
        return recorder.record(func, args, kwargs or {}, below=True)


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
    """Strides of what is contiguous follow from the sizes; others are asked for."""
    real, sizes = witness._real, witness.sizes()
    dims = range(real.dim())
    if real.is_contiguous() and real.numel() > 0:
        strides = [functools.reduce(operator.mul, sizes[d + 1 :], 1) for d in dims]
    else:
        strides = [witness.asked("stride", d) for d in dims]
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


# ---- the upper net -----------------------------------------------------------------------------

# Attributes and methods whose answers follow from what an input is, not from its data.
_FACTS = (
    "dtype", "device", "ndim", "requires_grad", "is_leaf", "layout", "is_sparse", "is_quantized",
    "is_nested", "is_cuda", "is_mkldnn", "is_meta", "is_cpu", "itemsize", "is_mps", "is_xla",
    "is_xpu", "grad_fn", "retains_grad", "grad", "names", "output_nr", "_version", "is_maia",
    "is_ipu", "is_vulkan", "is_mtia", "is_sparse_csr", "_backward_hooks", "name",
)  # fmt: skip
_FACT_METHODS = (
    "dim", "ndimension", "is_floating_point", "is_complex", "is_contiguous", "element_size",
    "is_signed", "get_device", "is_conj", "is_neg", "is_inference", "is_set_to",
    "is_shared", "is_pinned", "dense_dim", "sparse_dim", "is_coalesced", "data_ptr",
    "_is_view", "dim_order", "__repr__", "__format__",
)  # fmt: skip
_INTO_PYTHON = ("tolist", "numpy", "__array__", "__index__", "__int__", "__float__", "__complex__")
# Python's operators, under the names that torch's methods have.
_OPERATORS = {
    f"__{name}__": getattr(operator, f"__{name}__")
    for name in (
        "getitem setitem eq ne lt le gt ge matmul pow mod floordiv truediv and or xor invert neg "
        "pos lshift rshift iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift "
        "irshift add sub mul"
    ).split()
} | {"__abs__": abs}
_REVERSED = {
    f"__r{name}__": getattr(operator, f"__{name}__")
    for name in "sub truediv floordiv mod pow matmul add mul and or xor lshift rshift".split()
} | {"__rdiv__": operator.truediv}


def spelling(func: Callable[..., Any], args: tuple) -> tuple[str, Any, tuple]:
    """How a call of torch's Python API is recorded: opcode, target, arguments."""
    name = func.__name__
    if not is_tensor_method_or_property(func) and getattr(torch.Tensor, name, None) is not func:
        return "call_function", func, args
    owner: Any = getattr(func, "__self__", None)
    if name == "__get__":
        return "call_function", getattr, (args[0], owner.__name__)
    if name == "__set__":
        return "call_function", setattr, (args[0], owner.__name__, args[1])
    if name in _OPERATORS:
        return "call_function", _OPERATORS[name], args
    if name in _REVERSED:
        return "call_function", _REVERSED[name], (args[1], args[0])
    return "call_method", name, args


def _fact(name):
    return lambda net, witness, *rest: getattr(witness._real, name)


def _fact_method(func):
    def ask(net, witness, *args, **kwargs):
        plain = net.recorder.plain
        return func(witness._real, *plain(args), **plain(kwargs))

    return ask


def _size(net, witness, dim=None):
    return witness.sizes() if dim is None else witness.size_of(operator.index(dim))


def _length(net, witness):
    return int(witness.size_of(0)) if witness._real.dim() else len(witness._real)


def _stride(net, witness, dim=None):
    found = _stride_below(witness)
    return tuple(found) if dim is None else found[dim]


def _squeeze(func):
    """Which dimensions it removes depends on their sizes: so does the rank of the result."""

    def squeeze(net, witness, *args, **kwargs):
        given = args or tuple(kwargs.values())
        dims = given[0] if given and isinstance(given[0], (tuple, list)) else given
        for dim in dims or range(witness._real.dim()):
            if witness._real.dim():
                witness.size_of(dim) == 1  # noqa: B015: a guard
        return net.recorder.record(func, (witness, *args), kwargs)

    return squeeze


def _truth(net, witness):
    return net.recorder.assume_data(witness, bool, bool(witness._real))


def _item(net, witness):
    value = witness._real.item()
    if isinstance(value, (bool, complex)):
        return net.recorder.assume_data(witness, torch.Tensor.item, value)
    return symbol(net.recorder, net.recorder.method("item", witness._node), value)


def _into_python(func):
    def ask(net, witness, *args, **kwargs):
        return net.recorder.assume_data(witness, func, func(witness._real, *args, **kwargs))

    return ask


def _iterate(net, witness):
    length = _length(net, witness)  # raises for a number
    return iter([witness[i] for i in range(length)])


def _handlers() -> dict[Any, Callable[..., Any]]:
    tensor = torch.Tensor
    table: dict[Any, Callable[..., Any]] = {
        tensor.shape.__get__: lambda net, witness, *rest: witness.sizes(),
        tensor.size: _size, tensor.__len__: _length, tensor.stride: _stride,
        tensor.numel: lambda net, witness: witness.count(),
        tensor.nelement: lambda net, witness: witness.count(),
        torch.numel: lambda net, witness: witness.count(),
        tensor.storage_offset: lambda net, witness: witness.asked("storage_offset"),
        tensor.squeeze: _squeeze(tensor.squeeze), tensor.squeeze_: _squeeze(tensor.squeeze_),
        torch.squeeze: _squeeze(torch.squeeze),
        tensor.__bool__: _truth, tensor.is_nonzero: _truth, tensor.item: _item,
        tensor.__iter__: _iterate, tensor.__hash__: lambda net, witness: id(witness),
        torch.is_floating_point: _fact_method(torch.is_floating_point),
        torch.is_complex: _fact_method(torch.is_complex),
        torch.is_tensor: lambda net, witness: True,
    }  # fmt: skip
    for name in _FACTS:
        if hasattr(tensor, name):
            table[getattr(tensor, name).__get__] = _fact(name)
    for name in _FACT_METHODS:
        if hasattr(tensor, name):
            table[getattr(tensor, name)] = _fact_method(getattr(tensor, name))
    for name in _INTO_PYTHON:
        table[getattr(tensor, name)] = _into_python(getattr(tensor, name))
    return table


_HANDLERS = _handlers()


class Net(TorchFunctionMode):
    """The upper net: every call of torch's Python API while a run is captured."""

    def __init__(self, recorder: Any) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func, types, args=(), kwargs=None):
        handler = _HANDLERS.get(func) if args and isinstance(args[0], Witness) else None
        if handler is not None:
            return handler(self, *args, **kwargs or {})
        return self.recorder.record(func, args, kwargs or {})


_OF_TWO_TENSORS = frozenset((
    "add", "sub", "subtract", "rsub", "mul", "multiply", "div", "divide", "true_divide",
    "floor_divide", "remainder", "fmod", "pow", "float_power", "eq", "ne", "lt", "le", "gt", "ge",
    "maximum", "minimum", "where", "bitwise_and", "bitwise_or", "bitwise_xor",
))  # fmt: skip


_OF_AS_MANY = frozenset((
    "split", "chunk", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit", "unsafe_split",
    "unsafe_chunk",
))  # fmt: skip


def counts_by_size(func: Callable[..., Any]) -> bool:
    """Whether the number of results of a call depends on sizes."""
    packet = getattr(func, "overloadpacket", func)
    return getattr(packet, "__name__", "") in _OF_AS_MANY


def takes_tensors(func: Callable[..., Any]) -> bool:
    """Whether the numbers among the arguments of a call become tensors, as in x + 2."""
    name = func.__name__
    return name.rstrip("_") in _OF_TWO_TENSORS or (
        (name in _OPERATORS and name not in ("__getitem__", "__setitem__")) or name in _REVERSED)


def is_transformed(value: Any) -> bool:
    """Whether a tensor is wrapped by vmap, grad or another transform of torch.func."""
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    return isinstance(value, torch.Tensor) and wrapped(value)


def undisturbed() -> Any:
    """A context in which no net is spread: torch computes on real tensors."""
    return torch._C.DisableTorchFunction()
