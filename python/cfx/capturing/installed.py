"""Things that a capture installs and has to remove, however it ends.

An interrupt may come at any instruction, also in a `finally`, and between a change and the `try`
that would put it back; a context made of a generator may even end long after the exception that it
was left by. So whatever a capture changes outside of itself is changed by an object with `install`
and `remove`, and `remove` is called by the core, until it has not been interrupted. It may be
called twice, and after an `install` that did not get far.
"""
from collections.abc import Callable
from typing import Protocol, TypeVar

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

    def remove() -> None:
        for thing in reversed(things):
            thing.remove()

    return _core._afterwards(install, remove)
