"""compatibility: marks whether later versions keep a part of the API unchanged."""
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")

# What was marked, in order; the first holds only what is promised to stay.
_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}

_STABLE = """
.. note::
    This is stable: later versions keep it working.
"""
_EXPERIMENTAL = """
.. warning::
    This is experimental: later versions may change or remove it.
"""


def compatibility(is_backward_compatible: bool) -> Callable[[_T], _T]:
    """Returns a decorator that marks a function or class, and adds a note to its docstring."""
    note = _STABLE if is_backward_compatible else _EXPERIMENTAL

    def mark_back_compat(fn: _T) -> _T:
        try:
            fn.__doc__ = f"{textwrap.dedent(fn.__doc__ or '')}\n{note}"
        except AttributeError:
            pass  # a function of the C core: its documentation cannot be changed
        _MARKED_WITH_COMPATIBILITY.setdefault(fn)
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(fn)
        return fn

    return mark_back_compat
