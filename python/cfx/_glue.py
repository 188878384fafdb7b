"""What the C core asks of Python: names of objects, objects of names, purity, references.

Nothing here is for users. cfx._core calls these functions by name (python/src/host.c).
"""
import enum
import sys
import typing
from typing import Any

from . import _core


class Name(str):
    """An object that is known by its qualified name only: nothing of that name is loaded."""

    token = None  # (kind number, name) for a dtype, layout, memory format or device

    def __repr__(self):
        return str(self)

    def __call__(self, *args, **kwargs):
        raise NameError(f"'{self}' is not loaded; import the module that defines it first")


def find_torch(_=None):
    """Registers torch's own kinds of values as soon as torch is loaded; returns torch or None."""
    torch = sys.modules.get("torch")
    if torch is None or getattr(torch.__spec__, "_initializing", False):
        return None
    if not _tokens:
        from . import _torch

        _torch.register(torch, _tokens)
    return torch


# (kind, name) -> torch's object; filled by _torch.register
_tokens: dict[tuple[int, str], Any] = {}


def token(key):
    """torch's dtype, layout, memory format or device of a name."""
    kind, name = key
    torch = find_torch()
    if torch is None:
        unknown = Name(f"torch.{name}")
        unknown.token = key
        return unknown
    found = _tokens.get(key)
    if found is None:
        found = _tokens[key] = torch.device(name)
    return found


def qualified_name(obj):
    """The name under which `resolve` finds `obj` again, or None for an object without one."""
    from .node import Node, _type_repr

    if isinstance(obj, enum.Enum):
        return f"{type(obj).__module__}.{type(obj).__qualname__}.{obj.name}"
    if typing.get_origin(obj) is not None:  # list[int], typing.Optional[int], int | str
        return _type_repr(obj)
    if not callable(obj) and not hasattr(obj, "__name__"):
        return None
    return Node._pretty_print_target(obj)


def type_repr(obj):
    from .node import _type_repr

    return _type_repr(obj)


def resolve(name):
    """The object that `name` stands for: a dotted name of something already loaded, perhaps with
    arguments in brackets (`typing.List[int]`). A `Name` if there is none. Imports nothing."""
    from ._resolve import resolve as find

    found = find(name)
    return Name(name) if found is None else found


def is_impure(node):
    return node.is_impure()


def check_reference(job):
    """Warns, or raises, as torch.fx does where a module lacks what a new node refers to."""
    from ._modules import check_reference as check

    return check(*job)


# ---- tracing -----------------------------------------------------------------------------------

# Classes of the metaclass ProxyableClassMeta, and the code of Tracer.trace: cfx._symbolic_trace
proxyable_classes: dict[type, None] = {}
trace_code: Any = None


def install(*functions):
    """Adds the functions that need torch, when there is something to trace."""
    for function in functions:
        globals()[function.__name__] = function


_core._register(glue=sys.modules[__name__])
