"""What was assumed while a model was captured, and how people are told."""
import dis
import inspect
import math
import operator
import os
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from .._glue.codegen import magic_methods
from .._glue.tracing import is_library


class CaptureError(RuntimeError):
    """A model that cannot be captured, or a captured one that is called in another way than it was
    captured for."""

    __module__ = "cfx"

    def __init_subclass__(cls) -> None:
        """Users see one class: which one it is matters in here alone."""
        cls.__module__, cls.__name__, cls.__qualname__ = "cfx", "CaptureError", "CaptureError"

    def __reduce__(self) -> Any:
        return CaptureError, self.args


class Guard(NamedTuple):
    """Something that was assumed while a model was captured."""

    kind: str  # "size", "data", "layout" or "grad"
    expression: str  # what was asked: "x.shape[0] > 1"
    value: Any  # the answer in the captured run
    line: str  # who asked: "model.py:12"
    asker: str = "program"  # or "torch": a function of torch that was called in that line
    place: str = "entry"  # where it is checked: on "entry", or in the "graph"

    def __str__(self) -> str:
        inside = ", inside torch" if self.asker == "torch" else ""
        where = f"  ({self.line}{inside})" if self.line else ""
        return f"{self.expression}: {self.value!r}{where}"

    def refusal(self) -> str:
        """What a caller is told for whom it does not hold."""
        where = f" at {self.line}" if self.line else ""
        return f"{self.expression} was {self.value!r}{where} when the model was captured"


class Guards(tuple):
    """The guards of a graph; printed one to a line."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) if self else "nothing is assumed but the kinds of inputs"


# ---- the user's line ---------------------------------------------------------------------------


def user_frame() -> types.FrameType | None:
    """The innermost frame outside of torch and cfx."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def user_line() -> str:
    """The line of the program that runs."""
    frame = user_frame()
    if frame is None:
        return ""
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def line_of(code: types.CodeType, name: str | None = None) -> str:
    """Where a function is, or the first line in it that speaks of a name."""
    at = code.co_firstlineno
    for instruction in dis.get_instructions(code) if name is not None else ():
        if instruction.argval == name and instruction.positions is not None:
            at = instruction.positions.lineno or at
            break
    return f"{os.path.basename(code.co_filename)}:{at}"


def program_line(function: Any) -> str:
    """Where the function of a program is; empty if it is not written in Python."""
    function = inspect.unwrap(getattr(function, "__func__", function))
    code = getattr(function, "__code__", None)
    return "" if code is None else f"{line_of(code)}: "


def raised_at(error: BaseException) -> str:
    """The line of the program that was running when an exception was raised."""
    found, at = "", error.__traceback__
    while at is not None:
        if not is_library(at.tb_frame.f_code.co_filename):
            found = f"{os.path.basename(at.tb_frame.f_code.co_filename)}:{at.tb_lineno}"
        at = at.tb_next
    return found


# ---- expressions -------------------------------------------------------------------------------

OPPOSITE = {
    operator.eq: operator.ne, operator.ne: operator.eq, operator.lt: operator.ge,
    operator.ge: operator.lt, operator.gt: operator.le, operator.le: operator.gt,
}  # fmt: skip
# Functions of numbers that give numbers.
OF_NUMBERS = frozenset((
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod,
    operator.pow, operator.neg, operator.invert, operator.lshift, operator.rshift, operator.and_,
    operator.or_, operator.xor, abs, min, max, round, int, float, math.floor, math.ceil,
    math.trunc, math.sqrt,
))  # fmt: skip


def written(function: Callable[..., Any], parts: list[str]) -> str:
    """A call as Python writes it, with a sign if there is one: a + b."""
    name = function.__name__
    form = magic_methods.get(name)
    if form is None or form.count("{}") != len(parts):
        return f"{name}({', '.join(parts)})"
    return form.format(*parts)


def expression(value: Any, depth: int = 6) -> str:
    """A value of the graph as the user would write it: x.shape[0] * 2."""
    op = getattr(value, "op", None)
    if op is None or depth == 0:
        return str(value)
    if op == "call_method" and value.target == "size" and len(value.args) == 2:
        return f"{expression(value.args[0], depth - 1)}.shape[{value.args[1]}]"
    if op == "call_method" and value.target == "item":
        return f"{expression(value.args[0], depth - 1)}.item()"
    if op == "call_function" and value.target in OF_NUMBERS:
        text = written(value.target, [expression(arg, depth - 1) for arg in value.args])
        return text if text.endswith(")") else f"({text})"
    return value.target if op == "placeholder" else value.name


def comparison(function: Callable[..., Any], left: Any, right: Any) -> str:
    return written(function, [expression(left), expression(right)])
