"""Patches that a `trace` of one's own makes: torch.fx has these in its _symbolic_trace.

cfx itself hooks functions in C (python/src/trace/trace_hooks.c). These are for tracers that
override `trace` and arrange everything themselves.
"""
import builtins
import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from .. import _core

_MISSING = object()


class _Patch:
    """One name in a dict or class, what was there, and what takes its place."""

    def __init__(self, place: Any, name: str, new: Any) -> None:
        self.place, self.frame_dict, self.fn_name, self.new_fn = place, place, name, new
        found = vars(place) if isinstance(place, type) else place
        self.orig_fn = found.get(name, _MISSING)

    def _put(self, value: Any) -> None:
        is_class = isinstance(self.place, type)
        if value is _MISSING:
            delattr(self.place, self.fn_name) if is_class else self.place.pop(self.fn_name)
        elif is_class:
            setattr(self.place, self.fn_name, value)
        else:
            self.place[self.fn_name] = value

    def patch(self) -> None:
        self._put(self.new_fn)

    def revert(self) -> None:
        self._put(self.orig_fn)


class _Patcher:
    """Replaces names until the end of a `with` block, and puts back what was there."""

    def __init__(self) -> None:
        self.patches_made: list[_Patch] = []
        self.visited: set[int] = set()

    def _add(self, place: Any, name: str, new_fn: Any) -> None:
        made = _Patch(place, name, new_fn)
        made.patch()
        self.patches_made.append(made)

    def patch(
        self, frame_dict: dict[str, Any], name: str, new_fn: Callable[..., Any],
        deduplicate: bool = True,
    ) -> None:  # fmt: skip
        """Replaces a name in a dict of globals, or hides a builtin there. `deduplicate` has no
        effect: patches of a patch are undone in the right order."""
        if name not in frame_dict and not hasattr(builtins, name):
            raise KeyError(name)
        self._add(frame_dict, name, new_fn)

    def patch_method(
        self, cls: type, name: str, new_fn: Callable[..., Any], deduplicate: bool = True
    ) -> None:
        """Replaces an attribute of a class."""
        getattr(cls, name)  # it must be there
        self._add(cls, name, new_fn)

    def visit_once(self, thing: Any) -> bool:
        """Whether this is the first visit of an object."""
        first = id(thing) not in self.visited
        self.visited.add(id(thing))
        return first

    def revert_all_patches(self) -> list[_Patch]:
        """Puts back what was there; the patches stay known."""
        for made in reversed(self.patches_made):
            made.revert()
        return self.patches_made

    def reapply_all_patches(self) -> list[_Patch]:
        """The opposite of revert_all_patches."""
        for made in self.patches_made:
            made.patch()
        return self.patches_made

    def __enter__(self) -> "_Patcher":
        return self

    def __exit__(self, *exception: object) -> None:
        self.revert_all_patches()
        self.patches_made.clear()
        self.visited.clear()


CURRENT_PATCHER: _Patcher | None = None


@contextlib.contextmanager
def _new_patcher() -> Iterator[_Patcher]:
    """A _Patcher that _maybe_revert_all_patches finds."""
    global CURRENT_PATCHER
    before = CURRENT_PATCHER
    try:
        with _Patcher() as patcher:
            CURRENT_PATCHER = patcher
            yield patcher
    finally:
        CURRENT_PATCHER = before


@contextlib.contextmanager
def _maybe_revert_all_patches() -> Iterator[None]:
    """Inside, the patches of the current _Patcher, if there is one, are undone."""
    patcher = CURRENT_PATCHER
    if patcher is not None:
        patcher.revert_all_patches()
    try:
        yield
    finally:
        if patcher is not None:
            patcher.reapply_all_patches()


def _create_wrapped_func(orig_fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that records calls with proxies among the arguments, and makes others."""

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _core._find_proxy((args, kwargs))
        if proxy is None:
            return orig_fn(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", orig_fn, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


def _create_wrapped_method(cls: type, name: str) -> Callable[..., Any]:
    """The same for a method of a class."""
    orig_fn = getattr(cls, name)

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _core._find_proxy((args, kwargs))
        if proxy is None:
            return orig_fn(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Wraps the functions with these ids wherever a dict of globals has one, once."""
    if not patcher.visit_once(frame_dict):
        return
    for name, value in list(frame_dict.items()):
        if not name.startswith("_") and callable(value) and id(value) in function_ids:
            patcher.patch(frame_dict, name, _create_wrapped_func(value))


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Wraps everything that `wrap` was called with, in cfx or in torch.fx."""
    from .._symbolic_trace import _wrapped

    for place, name in _wrapped():
        if isinstance(place, type):
            patcher.patch_method(place, name, _create_wrapped_method(place, name))
        else:
            function = place[name] if name in place else getattr(builtins, name)
            patcher.patch(place, name, _create_wrapped_func(function))
