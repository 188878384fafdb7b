"""What was assumed while a model was captured, and how people are told."""
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
_ASKED = ("size", "item", "stride", "storage_offset")


def is_number_node(node: Any) -> bool:
    """Whether a node computes a number of numbers, or asks a tensor for one."""
    if node.op == "call_method":
        return node.target in _ASKED
    return node.op == "call_function" and node.target in OF_NUMBERS and all(
        not hasattr(arg, "op") or arg.type in (int, float) or is_number_node(arg)
        for arg in node.args)


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
    if op == "call_function" and is_number_node(value):
        text = written(value.target, [expression(arg, depth - 1) for arg in value.args])
        return text if text.endswith(")") else f"({text})"
    return value.target if op == "placeholder" else value.name


def comparison(function: Callable[..., Any], left: Any, right: Any) -> str:
    return written(function, [expression(left), expression(right)])


# ---- guards that the inputs decide -------------------------------------------------------------


def input_expression(value: Any, inputs: dict[Any, int]) -> Any:
    """A number of the graph as a nest of tuples over the inputs: ("size", 0, 1) is the second size
    of the first input, ("input", 2) the third input, (function, ...) a call. None if more than the
    inputs decides it."""
    op = getattr(value, "op", None)
    if op is None:
        return value if isinstance(value, (int, float)) else None
    if op == "placeholder":
        return "input", inputs[value]
    if op == "call_method" and value.target == "size" and value.args[0].op == "placeholder":
        return "size", inputs[value.args[0]], value.args[1]
    if op == "call_function" and is_number_node(value):
        parts = [input_expression(arg, inputs) for arg in value.args]
        return None if None in parts else (value.target, *parts)
    return None


def _evaluate(expr: Any, inputs: list[Any]) -> Any:
    if type(expr) is not tuple:
        return expr
    if expr[0] == "size":
        return inputs[expr[1]].size(expr[2])
    if expr[0] == "input":
        return inputs[expr[1]]
    return expr[0](*(_evaluate(part, inputs) for part in expr[1:]))


def _last_input(expr: Any) -> int:
    if type(expr) is not tuple:
        return -1
    return expr[1] if expr[0] in ("size", "input") else max(map(_last_input, expr[1:]))


class EntryGuard(NamedTuple):
    """A guard that the inputs decide: a comparison of two expressions has this truth."""

    guard: Guard
    function: Callable[[Any, Any], bool]
    left: Any
    right: Any
    truth: bool

    def holds(self, inputs: list[Any]) -> bool:
        try:
            found = self.function(_evaluate(self.left, inputs), _evaluate(self.right, inputs))
        except ArithmeticError:
            return False
        return bool(found) == self.truth

    def last_input(self) -> int:
        """The highest number of an input that it asks for; -1 if there is none."""
        return max(_last_input(self.left), _last_input(self.right))

    def refusal(self) -> str:
        guard = self.guard
        where = f" at {guard.line}" if guard.line else ""
        return f"{guard.expression} was {guard.value!r}{where} when the model was captured"
