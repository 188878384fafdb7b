"""What dir() shows of a module: its public names, and not what it imports for itself. And packages
whose modules are there at once, as torch.fx's are."""
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def public_names(space: "dict[str, Any]", *also: str) -> "Callable[[], list[str]]":
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


def submodules(space: "dict[str, Any]") -> "tuple[Callable[[str], Any], Callable[[], list[str]]]":
    """`__getattr__` and `__dir__` for a package with these globals. Its modules are imported when
    somebody asks for them: `import torch` loads most of torch.fx's, so programs name them without
    importing them."""
    package = space["__name__"]

    def names() -> list[str]:
        import pkgutil

        return [module.name for module in pkgutil.iter_modules(space["__path__"])]

    def load(name: str) -> "Any":
        if name.startswith("__") or name not in names():
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        import importlib

        return importlib.import_module(f"{package}.{name}")

    def listed() -> list[str]:
        public = [name for name in names() if not name.startswith("_")]
        return sorted({*public_names(space)(), *public})

    return load, listed
