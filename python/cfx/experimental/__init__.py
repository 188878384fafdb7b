"""The modules of torch.fx.experimental that cfx provides. They need torch."""
from .._glue.listing import submodules

__getattr__, __dir__ = submodules(globals())
