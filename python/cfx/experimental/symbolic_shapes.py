"""torch's symbolic sizes, under the name that torch.fx has for them. cfx has none of its own."""
from typing import Any

from ..interop.entry import borrowed


def __getattr__(name: str) -> Any:
    return borrowed("experimental.symbolic_shapes", name)
