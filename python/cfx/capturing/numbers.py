"""Numbers of a run that is being captured: sizes, items of tensors, number arguments.

A number is an Int or a Float. Both have a node that computes them in the graph and the value of
this run. To torch an Int is a torch.SymInt, so that `torch.zeros(n, 3)` and `x[:n]` pass torch's
own checks and arrive in the recorder with the number still in them; to the program it is an int, so
that `isinstance(n, int)` takes the way that it takes without capture. Arithmetic gives numbers of
the graph. Whatever needs the plain value (`range(n)`, `if n > 1`, `hash(n)`) gets it, and that
becomes a guard.

torch's C++ does not know these classes. It asks the object behind them, a Number, whose methods
have the names that torch calls.

Nothing here is for users.
"""
import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import torch

SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)

_ARITHMETIC = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "mod": operator.mod,
    "floordiv": operator.floordiv, "truediv": operator.truediv, "pow": operator.pow,
    "lshift": operator.lshift, "rshift": operator.rshift, "and": operator.and_,
    "or": operator.or_, "xor": operator.xor,
}  # fmt: skip
_COMPARISONS = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
_OF_ONE = {"neg": operator.neg, "abs": abs, "invert": operator.invert}
# What leaves a number as it is, if the other operand is this one.
_NEUTRAL: dict[Any, int] = {
    operator.add: 0, operator.sub: 0, operator.mul: 1, operator.floordiv: 1,
}  # fmt: skip


class Number:
    """What is behind an Int or a Float: a node and its value in this run, and whether it comes from
    data, not from sizes or arguments. Without a recorder it is a literal, and its node is the
    value."""

    __slots__ = ("recorder", "node", "value", "of_data")
    # What torch reads of the nodes of its own.
    expr = shape_env = constant = None

    def __init__(self, recorder: Any, node: Any, value: Any, of_data: bool = False) -> None:
        self.recorder, self.node, self.value, self.of_data = recorder, node, value, of_data

    # ---- computing ----

    def compute(self, function: Callable[..., Any], *others: Any) -> "Number":
        """The result of a function of this number and others."""
        operands = [self, *map(_as_number, others)]
        value = function(*(o.value for o in operands))
        if type(value) not in (int, float):  # complex, or a bool
            return _as_number(function(*(o.plain() for o in operands)))
        recorder = next((o.recorder for o in operands if o.recorder is not None), None)
        if recorder is None:
            return Number(None, value, value)
        if others and all(type(o.value) is int for o in operands):
            if operands[1].recorder is None and _NEUTRAL.get(function) == operands[1].value:
                return self
            if function is operator.mul and self.recorder is None and self.value == 1:
                return operands[1]
            if function is operator.sub and self.node is operands[1].node:
                return Number(None, value, value)
        node = recorder.call(function, *(o.node for o in operands))
        return Number(recorder, node, value, any(o.of_data for o in operands))

    def compare(self, function: Callable[[Any, Any], Any], other: Any, asker: str) -> bool:
        """The answer to a comparison, which is a guard. `asker`: "program", or "torch"."""
        other = _as_number(other)
        value = function(self.value, other.value)
        recorder = self.recorder or other.recorder
        if recorder is not None and self.node is not other.node:
            recorder.assume(function, self, other, value, asker)
        return value

    def plain(self, asker: str = "program") -> Any:
        """The value of this run, which is a guard. `asker`: who wants it, as for compare; "loop" if
        the program wants an index or a length."""
        if self.recorder is not None and self.recorder.thread is not None:
            kind = "data" if self.of_data else "size"
            self.recorder.assume_value(self.node, self.value, kind, asker)
        return self.value

    # ---- what torch's C++ asks ----

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

    def _graph_repr(self) -> Any:
        return self.str()

    def wrap_int(self, value: Any) -> "Number":
        return Number(None, value, value)

    wrap_float = wrap_bool = wrap_int

    def _plain(self, *where: Any) -> Any:
        return self.plain("torch")

    def _truth(self, *where: Any) -> bool:
        return bool(self._plain()) if self.is_bool() else self.compare(operator.ne, 0, "torch")

    int_ = float_ = guard_int = guard_float = _plain
    bool_ = guard_bool = guard_size_oblivious = _truth
    guard_or_false = guard_or_true = expect_true = _truth

    def str(self) -> Any:
        return f"{self._plain()}"

    def expect_size(self, *where: Any) -> bool:
        return True

    def statically_known_true(self, *where: Any) -> bool:
        return self.recorder is None and bool(self.value)

    def pos(self) -> "Number":
        return self

    # ---- layouts of what has such sizes: only asked, never recorded ----

    def _no(self, sizes: Any, strides: Any) -> "Number":
        return Number(None, False, False)

    def _yes(self, sizes: Any, strides: Any) -> "Number":
        return Number(None, True, True)

    is_contiguous = is_non_overlapping_and_dense = _yes
    is_non_overlapping_and_dense_indicator = _yes
    is_channels_last_contiguous_2d = is_channels_last_contiguous_3d = _no
    is_channels_last_strides_2d = is_channels_last_strides_3d = _no


def _as_number(value: Any) -> Number:
    """What is behind a number; a literal for any other value."""
    if isinstance(value, Number):
        return value
    node = value.node if isinstance(value, SYMBOLS) else None
    return node if isinstance(node, Number) else Number(None, value, value)


def _add_methods_for_torch() -> None:
    def compute(function):
        return lambda self, *others: self.compute(function, *others)

    def reverse(function):
        return lambda self, other: _as_number(other).compute(function, self)

    def compare(function):
        def answer(self, other):
            value = self.compare(function, other, "torch")
            return Number(None, value, value)

        return answer

    names = {f"{name}_" if name in ("and", "or") else name: f for name, f in _ARITHMETIC.items()}
    names.update(
        int_floordiv=operator.floordiv, int_truediv=operator.truediv, pow_by_natural=operator.pow,
        float_truediv=operator.truediv, float_pow=operator.pow, bitwise_and=operator.and_,
        bitwise_or=operator.or_, bitwise_xor=operator.xor, sym_min=min, sym_max=max,
        sym_and=operator.and_, sym_or=operator.or_,
    )  # fmt: skip
    for name, function in names.items():
        setattr(Number, name, compute(function))
        setattr(Number, f"r{name}", reverse(function))
    for name, function in _COMPARISONS.items():
        setattr(Number, name, compare(function))
    of_one = {
        "neg": operator.neg, "abs": abs, "floor": math.floor, "ceil": math.ceil,
        "trunc": math.trunc, "round": round, "sym_float": float, "sym_int": int,
        "sym_sqrt": math.sqrt, "sym_not": operator.not_,
    }  # fmt: skip
    for name, alone in of_one.items():
        setattr(Number, name, compute(alone))


_add_methods_for_torch()


# ---- what the program holds --------------------------------------------------------------------


class NotHashable(TypeError):
    """A number of a graph is to be the key of a dict."""


class _Symbol:
    """What Int and Float have in common: Python's operators."""

    node: Number

    def __bool__(self) -> bool:
        return self.node.compare(operator.ne, 0, "program")

    def __hash__(self) -> int:
        """Numbers that are keys are fixed. A program that has another way for what has no hash, as
        caches do for torch's own symbols, takes that way."""
        recorder = self.node.recorder
        if not recorder.hashes and recorder.thread is not None:
            raise NotHashable(f"unhashable type: '{type(self.node.value).__name__}' of a graph")
        return hash(self.node.plain())

    def __repr__(self) -> str:
        return repr(self.node.plain())

    __str__ = __repr__

    def __format__(self, form: str) -> str:
        return format(self.node.plain(), form)

    def __int__(self) -> int:
        return int(self.node.plain())

    def __float__(self) -> float:
        return float(self.node.plain())

    def __complex__(self) -> complex:
        return complex(self.node.plain())

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy  # which asks

        return numpy.asarray(self.node.plain(), dtype)

    def __pos__(self) -> Any:
        return self

    def __divmod__(self, other: Any) -> Any:
        return (self // other, self % other) if _is_number(other) else NotImplemented

    def __rdivmod__(self, other: Any) -> Any:
        return (other // self, other % self) if _is_number(other) else NotImplemented

    def __round__(self, digits: Any = None) -> Any:
        return symbol(self.node.compute(round, *(() if digits is None else (digits,))))

    def __trunc__(self) -> Any:
        return symbol(self.node.compute(math.trunc))

    def __floor__(self) -> Any:
        return symbol(self.node.compute(math.floor))

    def __ceil__(self) -> Any:
        return symbol(self.node.compute(math.ceil))

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self.node.value), (self.node.plain(),)

    def conjugate(self) -> Any:
        return self

    @property
    def real(self) -> Any:
        return self

    @property
    def imag(self) -> Any:
        return type(self.node.value)(0)

    def __getattr__(self, name: str) -> Any:
        """The other methods of int and float, with the plain value."""
        if name.startswith("__") or name == "node":
            raise AttributeError(name)
        found = getattr(self.node.value, name)
        return getattr(self.node.plain(), name) if found is not None else None


class Int(_Symbol, torch.SymInt):
    """An int of the graph."""

    def __index__(self) -> int:
        return self.node.plain("loop")

    @property
    def __class__(self) -> Any:
        return int

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise TypeError("the class of a number cannot be changed")

    @property
    def numerator(self) -> Any:
        return self

    @property
    def denominator(self) -> int:
        return 1

    def is_integer(self) -> bool:
        return True


class Float(_Symbol, torch.SymFloat):
    """A float of the graph."""

    @property
    def __class__(self) -> Any:
        return float

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise TypeError("the class of a number cannot be changed")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) or isinstance(value, SYMBOLS)


def _add_operators() -> None:
    def compute(function):
        def operate(self, other, *modulus):
            if not _is_number(other) or modulus:
                return NotImplemented
            return symbol(self.node.compute(function, other))

        return operate

    def reverse(function):
        def operate(self, other, *modulus):
            if not _is_number(other) or modulus:
                return NotImplemented
            return symbol(_as_number(other).compute(function, self))

        return operate

    def compare(function):
        def answer(self, other):
            if not _is_number(other):
                return NotImplemented
            return self.node.compare(function, other, "program")

        return answer

    for name, function in _ARITHMETIC.items():
        setattr(_Symbol, f"__{name}__", compute(function))
        setattr(_Symbol, f"__r{name}__", reverse(function))
    for name, function in _COMPARISONS.items():
        setattr(_Symbol, f"__{name}__", compare(function))
    for name, alone in _OF_ONE.items():
        setattr(_Symbol, f"__{name}__", lambda self, f=alone: symbol(self.node.compute(f)))


_add_operators()


def symbol(number: Number) -> Any:
    """A number as the program gets it; a literal as a plain value."""
    if number.recorder is None:
        return number.value
    return (Float if type(number.value) is float else Int)(number)


def number_of(value: Any) -> Number | None:
    """What is behind a number; None if it is not one of ours. Where an operator takes a tensor,
    torch passes a tensor that remembers the number (and holds 7777777)."""
    if isinstance(value, torch.Tensor):
        value = getattr(value, "_wrapped_number", None)
    node = value.node if isinstance(value, SYMBOLS) else None
    return node if isinstance(node, Number) else None


def product(numbers: Any) -> Any:
    return functools.reduce(operator.mul, numbers, 1)
