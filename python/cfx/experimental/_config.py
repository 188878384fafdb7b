"""The settings of torch's symbolic sizes, which are torch's: to set one here sets it there."""
import sys
import types
from typing import Any

from ..interop.entry import borrowed, lend


def __getattr__(name: str) -> Any:
    return borrowed("experimental._config", name)


class _Settings(types.ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            lend("experimental._config", name, value)


sys.modules[__name__].__class__ = _Settings
