"""Passes for every dialect: see cse_pass."""
from ...._glue.listing import submodules

__getattr__, __dir__ = submodules(globals())
