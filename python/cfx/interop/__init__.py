"""Everything that cfx has to do with torch.fx. No other module of cfx depends on it.

convert.py   graphs and modules in both directions
entry.py     what cfx's functions do with objects of torch.fx that they are given
presence.py  what code that knows only torch.fx sees while cfx traces
"""
from .convert import bind_unbacked, from_torch, side_effects, to_torch, trace_dispatch
from .convert import wrapped_names  # first: it says what it needs torch for

from . import entry, presence  # noqa: E402, F401

__all__ = [
    "bind_unbacked", "from_torch", "side_effects", "to_torch", "trace_dispatch", "wrapped_names",
]  # fmt: skip
