"""Everything that cfx has to do with torch.fx. No other module of cfx depends on it.

convert.py   graphs and modules in both directions
entry.py     what cfx's functions do with objects of torch.fx that they are given
presence.py  what code that knows only torch.fx sees while cfx traces
torchscript.py, script_values.py, script_calls.py  graphs from TorchScript
backend.py   torch.compile(model, backend="cfx")
parts.py     a graph of torch.compile as programs in C, and what stays in PyTorch
explained.py what torch.compile has made of a model
"""
from .convert import bind_unbacked, from_torch, side_effects, to_torch, trace_dispatch
from .convert import wrapped_names  # first: it says what it needs torch for

from . import entry, presence  # noqa: E402, F401
from .explained import CompileReport, FallbackWarning, GraphReport  # noqa: E402
from .torchscript import ScriptConversionError, Unconverted  # noqa: E402

__all__ = [
    "CompileReport", "FallbackWarning", "GraphReport", "ScriptConversionError", "Unconverted",
    "bind_unbacked", "from_torch", "side_effects", "to_torch", "trace_dispatch", "wrapped_names",
]  # fmt: skip
