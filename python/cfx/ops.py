"""The operator table, and control flow as operators, which take regions of a graph as arguments.
If you call them directly, they run; a region may then be any callable or a Graph.

Every other row is also a function that computes in C: `cfx.ops.add(x, y, alpha=2)`, with the
parameters of the row. Tensors may be cfx's, torch's, numpy's or of any library with DLPack; the
results are torch's if one of them was, else numpy's, else cfx's.
"""
import builtins
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from . import _core
from ._core import Graph
from ._glue.listing import public_names

__all__ = [
    "Operator", "Region", "check_buffer", "check_length", "cond", "fail", "find", "for_loop",
    "while_loop",
]  # fmt: skip

Region = Callable[..., Any] | Graph


def _call(region: Region, operands: Iterable[Any]) -> Any:
    if isinstance(region, Graph):
        from .interpreter import Interpreter

        graph: Any = region
        return Interpreter(region.owning_module, graph=graph).run(*operands)
    return region(*operands)


def _each_once(items: list[Any]) -> Iterator[Any]:
    items.reverse()
    while items:
        yield items.pop()


class _Region:
    """A region that an interpreter runs, as a function: `take` runs it with the items of a list,
    which it empties, so that nobody else holds them meanwhile."""

    def __init__(self, take: Callable[[list[Any]], Any]) -> None:
        self.take = take

    def __call__(self, *args: Any) -> Any:
        return self.take(list(args))


def cond(pred: Any, then: Region, otherwise: Region, operands: Iterable[Any] = ()) -> Any:
    """Returns `then(*operands)` if `pred` is true, else `otherwise(*operands)`."""
    return _call(then if pred else otherwise, operands)


def while_loop(test: Region, body: Region, state: Iterable[Any]) -> tuple[Any, ...]:
    """Repeats `state = body(*state)` while `test(*state)` is true; returns the last state, a
    tuple."""
    if isinstance(body, _Region):
        now = list(state)
        while _call(test, now):
            now = list(body.take(now))  # a list that it appends to grows in place
        return tuple(now)
    state = tuple(state)
    while _call(test, state):
        state = tuple(_call(body, state))
    return state


def for_loop(count: Any, body: Region, state: Iterable[Any]) -> tuple[Any, ...]:
    """Repeats `state = body(i, *state)` for i in range(count); returns the last state, a tuple."""
    if isinstance(body, _Region):
        now = list(state)
        for i in range(int(count)):
            now = list(body.take([i, *_each_once(now)]))
        return tuple(now)
    state = tuple(state)
    for i in range(int(count)):
        state = tuple(_call(body, (i, *state)))
    return state


def fail(kind: str, message: Any = None) -> None:
    """Raises the builtin exception of that name: the form of a `raise` inside a captured branch. If
    the message is a tuple, it contains all arguments of the exception."""
    exception = getattr(builtins, kind, RuntimeError)
    args = message if isinstance(message, tuple) else () if message is None else (message,)
    raise exception(*args)


def check_length(values: Any, count: int, more: bool = False) -> None:
    """Raises what `a, b = values` raises if `values` has not `count` items, or at least as many if
    `more` is true: the form of an unpacking in a captured program."""
    if isinstance(values, (dict, set, frozenset)):
        kind = type(values).__name__
        raise TypeError(f"a graph cannot unpack a {kind}; unpack list(...) of it")
    if getattr(values, "ndim", None) == 0:
        raise TypeError("iteration over a 0-d tensor")
    if not hasattr(values, "__len__"):
        raise TypeError(f"cannot unpack non-iterable {type(values).__name__} object")
    if len(values) < count:
        wanted = f"at least {count}" if more else count
        raise ValueError(f"not enough values to unpack (expected {wanted}, got {len(values)})")
    if len(values) > count and not more:
        raise ValueError(f"too many values to unpack (expected {count})")


def check_buffer(buffer: Any, value: Any) -> None:
    """Raises RuntimeError unless `value` has the shape and dtype of `buffer`: `self.buffer = value`
    is captured as a copy into the buffer, which does the same only then."""
    if tuple(buffer.shape) != tuple(value.shape):
        raise RuntimeError(
            f"a buffer of shape {tuple(buffer.shape)} is assigned a tensor of shape "
            f"{tuple(value.shape)}, which a graph cannot keep; register the buffer with the shape "
            "that it gets"
        )
    if buffer.dtype != value.dtype:
        raise RuntimeError(
            f"a buffer of dtype {buffer.dtype} is assigned a tensor of dtype {value.dtype}, which "
            "a graph cannot keep; register the buffer with the dtype that it gets, or convert the "
            "value"
        )


class Operator(NamedTuple):
    """A row of the operator table; `cfx ops NAME` explains it."""

    name: str
    schema: str
    flags: tuple[str, ...]
    spellings: tuple[str, ...]


def find(target: Any) -> Operator | None:
    """Returns the operator for a function, a module class, a Node or a name: the same for
    `torch.relu`, `torch.nn.ReLU`, `"F.relu"` and the node of `x.relu()`. None if it has no row."""
    row = _core._operator(target)
    return Operator(*row) if row else None


def __getattr__(name: str) -> Any:
    function = _core._operator_function(name)
    if function is None:
        raise AttributeError(f"there is no operator '{name}' in the operator table")
    return function


def __dir__() -> list[str]:
    return sorted({*_names(), *(name for name in _core._kernels() if name[0] != "_")})


_names = public_names(globals())

for _function in (cond, while_loop, for_loop, fail, check_length, check_buffer):
    _function.__module__ = "cfx"  # how the operator table and generated code name them, and
    setattr(sys.modules["cfx"], _function.__name__, _function)  # where texts of graphs find them
