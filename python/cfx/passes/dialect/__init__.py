"""Passes for one dialect of operators."""
from ..._glue.listing import submodules

__getattr__, __dir__ = submodules(globals())
