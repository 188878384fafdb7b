"""What was assumed while a model was captured, and how people are told."""
import operator
import os
import sys
import types
from typing import Any, NamedTuple

from .._glue.tracing import is_library


class CaptureError(RuntimeError):
    """A model that cannot be captured, or a captured one that is called in another way than it was
    captured for."""


class Guard(NamedTuple):
    """Something that was assumed while a model was captured."""

    kind: str  # "size", "data" or "input"
    expression: str  # what was asked: "x.shape[0] > 1"
    value: Any  # the answer in the captured run
    line: str  # who asked: "model.py:12"

    def __str__(self) -> str:
        where = f"  ({self.line})" if self.line else ""
        return f"{self.expression}: {self.value!r}{where}"


# ---- the user's line ---------------------------------------------------------------------------


def user_line() -> str:
    """The innermost line outside of torch and cfx."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return ""
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


# ---- expressions in messages -------------------------------------------------------------------

SIGNS = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//",
    operator.truediv: "/", operator.mod: "%", operator.pow: "**", operator.eq: "==",
    operator.ne: "!=", operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=",
}  # fmt: skip
OPPOSITE = {
    operator.eq: operator.ne, operator.ne: operator.eq, operator.lt: operator.ge,
    operator.ge: operator.lt, operator.gt: operator.le, operator.le: operator.gt,
}  # fmt: skip


def expression(value: Any, depth: int = 6) -> str:
    """A value of the graph as the user would write it: x.shape[0] * 2."""
    op = getattr(value, "op", None)
    if op is None or depth == 0:
        return str(value)
    if op == "call_method" and value.target == "size" and len(value.args) == 2:
        return f"{expression(value.args[0], depth - 1)}.shape[{value.args[1]}]"
    if op == "call_method" and value.target == "item":
        return f"{expression(value.args[0], depth - 1)}.item()"
    if op == "call_function" and value.target in SIGNS and len(value.args) == 2:
        left, right = (expression(arg, depth - 1) for arg in value.args)
        return f"({left} {SIGNS[value.target]} {right})"
    return value.target if op == "placeholder" else value.name
