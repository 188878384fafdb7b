"""What torch's symbolic sizes are made of, which is torch's."""
from typing import Any

from ..interop.entry import borrowed


def __getattr__(name: str) -> Any:
    return borrowed("experimental.sym_node", name)
