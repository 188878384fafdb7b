"""The infrastructure of passes: pass_base, pass_manager, partitioner."""
from ..._glue.listing import submodules

__getattr__, __dir__ = submodules(globals())
