"""Helpers shared by passes, under the names of torch.fx.passes.utils."""
from ..._glue.listing import submodules

__getattr__, __dir__ = submodules(globals())
