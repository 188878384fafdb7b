"""Numbers of a run that is being captured: sizes, items of tensors, number arguments.

A number is an Int or a Float. Both have a node that computes them in the graph and the value of
this run. To torch an Int is a torch.SymInt, so that `torch.zeros(n, 3)` and `x[:n]` pass torch's
own checks and arrive in the recorder with the number still in them; to the program it is an int, so
that `isinstance(n, int)` takes the way that it takes without capture. Arithmetic gives numbers of
the graph. Whatever needs the plain value (`range(n)`, `if n > 1`, `hash(n)`) gets it, and that
becomes a guard.

torch's C++ does not know these classes. It asks the object behind them, a Number, whose methods
have the names that torch calls (python/src/capture/number.c). The operators are in symbol.c.

Nothing here is for users.
"""
import functools
import math
import operator
from typing import Any

import torch

from .. import _core
from .._core import Number
from .protocol import SYMBOLS

__all__ = ["SYMBOLS", "Float", "Int", "NotHashable", "Number", "number_of", "product", "symbol"]


class NotHashable(TypeError):
    """A number of a graph is to be the key of a dict."""


class _Symbol(_core.Symbol):
    """What Int and Float have in common, beside operators."""

    node: Number

    def __hash__(self) -> int:
        """Numbers that are keys are fixed. A program that has another way for what has no hash, as
        caches do for torch's own symbols, takes that way."""
        recorder = self.node.recorder
        if not recorder.hashes and recorder.thread is not None:
            raise NotHashable(f"unhashable type: '{type(self.node.value).__name__}' of a graph")
        return hash(self.node.plain())

    def __repr__(self) -> str:
        return repr(self.node.plain("python"))

    __str__ = __repr__

    def __format__(self, form: str) -> str:
        return format(self.node.plain("python"), form)

    def __int__(self) -> int:
        return int(self.node.plain("python"))

    def __float__(self) -> float:
        return float(self.node.plain("python"))

    def __complex__(self) -> complex:
        return complex(self.node.plain())

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy  # which asks

        return numpy.asarray(self.node.plain(), dtype)

    def __round__(self, digits: Any = None) -> Any:
        return symbol(self.node.round(digits))

    def __trunc__(self) -> Any:
        return symbol(self.node.trunc())

    def __floor__(self) -> Any:
        return symbol(self.node.floor())

    def __ceil__(self) -> Any:
        return symbol(self.node.ceil())

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
        return self.node.plain("python")

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

    def is_integer(self) -> bool:
        return self == math.floor(self) if math.isfinite(self.node.value) else (
            self.node.plain().is_integer())

    @property
    def __class__(self) -> Any:
        return float

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise TypeError("the class of a number cannot be changed")


class _Spent(_Symbol):
    """A number that somebody has kept when the run is over: a plain value to Python. torch, which
    would take a symbol without a run for 7777777, gets an error."""

    def __index__(self) -> int:
        return operator.index(self.node.value)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        for value in (*args, *(kwargs or {}).values()):
            if isinstance(value, cls):
                value.node.recorder.check_running()
        return NotImplemented


def spend(recorder: Any) -> None:
    """The run is over: numbers that the program has kept are no symbols any more."""
    for weak in recorder.symbols:
        number = weak()
        if number is not None and type(number) is not _Spent:
            object.__dict__["__class__"].__set__(number, _Spent)
    recorder.symbols.clear()


_core._register(int_class=Int, float_class=Float)
symbol = _core._symbol  # a Number as the program gets it; a literal as a plain value


def number_of(value: Any) -> Number | None:
    """What is behind a number; None if it is not one of ours. Where an operator takes a tensor,
    torch passes a tensor that remembers the number (and holds 7777777)."""
    if isinstance(value, torch.Tensor):
        value = getattr(value, "_wrapped_number", None)
    node = value.node if isinstance(value, SYMBOLS) else None
    return node if isinstance(node, Number) else None


def product(numbers: Any) -> Any:
    return functools.reduce(operator.mul, numbers, 1)
