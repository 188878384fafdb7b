"""The settings of torch's symbolic sizes, which are torch's."""
from typing import Any

from ..interop.entry import borrowed


def __getattr__(name: str) -> Any:
    return borrowed("experimental._config", name)
