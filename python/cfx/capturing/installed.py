"""Things that a capture installs and has to remove, however it ends.

An interrupt may come at any instruction, also in a `finally`, and between a change and the `try`
that would put it back. So whatever a capture changes outside of itself is changed by an object with
`install` and `remove`, and `remove` is called by the core, until it has not been interrupted. It
may be called twice, and after an `install` that did not get far.
"""
import contextlib
import types
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from .. import _core

_T = TypeVar("_T")


class Installed(Protocol):
    """What is installed for some time."""

    def install(self) -> None: ...

    def remove(self) -> None: ...


def call_with(things: list[Installed], body: Callable[[], _T]) -> _T:
    """Calls body() while all things are installed."""

    def install() -> _T:
        for thing in things:
            thing.install()
        return body()

    def remove(error: BaseException | None) -> None:
        if error is not None:
            _end_contexts(error)
        for thing in reversed(things):
            thing.remove()

    return _core._afterwards(install, remove)


_context: Any = contextlib._GeneratorContextManager
_OF_CONTEXTS = _context.__enter__.__code__, _context.__exit__.__code__


def _end_contexts(error: BaseException) -> None:
    """Ends contexts that an exception left while they were entered or left: else they would put
    back what they found when somebody forgets the exception. The handler of a signal also has the
    frame that it interrupted."""
    at = error.__traceback__
    while at is not None:
        for frame in (at.tb_frame, *at.tb_frame.f_locals.values()):
            if isinstance(frame, types.FrameType) and frame.f_code in _OF_CONTEXTS:
                with contextlib.suppress(RuntimeError):  # it runs: then it is not left
                    frame.clear()
        at = at.tb_next
