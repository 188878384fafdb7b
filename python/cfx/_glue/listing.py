"""What dir() shows of a module: its public names, and not what it imports for itself."""
from collections.abc import Callable
from typing import Any


def public_names(space: dict[str, Any], *also: str) -> Callable[[], list[str]]:
    """A `__dir__` for a module with these globals: its `__all__`, or what it defines itself under a
    public name; `also` what torch.fx has in the module of that name."""

    def listed() -> list[str]:
        own = space.get("__all__") or [
            name for name, value in space.items()
            if not name.startswith("_") and getattr(value, "__module__", None) == space["__name__"]
        ]  # fmt: skip
        special = [name for name in space if name.startswith("__") and name.endswith("__")]
        return sorted({*own, *also, *special})

    return listed
