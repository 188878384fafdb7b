"""compatibility: says of a part of the API whether later versions will keep it as it is."""
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
    """A decorator that marks a function or a class, and says so in its documentation."""
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
