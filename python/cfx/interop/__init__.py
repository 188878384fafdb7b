"""Everything that cfx has to do with torch.fx. No other module of cfx depends on it.

convert.py   graphs and modules in both directions
entry.py     what cfx's functions do with objects of torch.fx that they are given
presence.py  what code that knows only torch.fx sees while cfx traces
torchscript.py  graphs from TorchScript; script_*.py are its parts
backend.py   torch.compile(model, backend="cfx")
parts.py     a graph of torch.compile as programs in C, and what stays in PyTorch
second.py    derivatives of gradients of such a graph
explained.py what torch.compile has made of a model
"""
import importlib
from typing import TYPE_CHECKING, Any

from .._glue.listing import public_names

from .convert import bind_unbacked, from_torch, side_effects, to_torch, trace_dispatch
from .convert import wrapped_names  # first: it says what it needs torch for

from . import entry, presence  # noqa: E402, F401

if TYPE_CHECKING:
    from .._glue.findings import Finding
    from .explained import CompileReport, FallbackWarning, GraphReport
    from .torchscript import ScriptConversionError

__all__ = [
    "CompileReport", "FallbackWarning", "Finding", "GraphReport", "ScriptConversionError",
    "bind_unbacked", "from_torch", "side_effects", "to_torch", "trace_dispatch", "wrapped_names",
]  # fmt: skip

# Loaded when somebody asks for them: every load of a file and every trace imports this package.
_LAZY = {
    **dict.fromkeys(("CompileReport", "FallbackWarning", "GraphReport"), ".explained"),
    "Finding": ".._glue.findings", "ScriptConversionError": ".torchscript",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'cfx.interop' has no attribute '{name}'")
    value = globals()[name] = getattr(importlib.import_module(_LAZY[name], __package__), name)
    return value


__dir__ = public_names(globals())
