"""Tells importlib.metadata of cfx's entry points where cfx is used from its source tree: torch
looks there for the back ends of torch.compile. An installed cfx has them in its metadata."""
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

BACKEND = "cfx.interop.backend:backend"  # as in pyproject.toml
_NAME = "cfx"


def _distribution() -> "Any":
    from importlib.metadata import Distribution

    from .._core import __version__

    texts = {
        "METADATA": f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: {__version__}\n",
        "entry_points.txt": f"[torch_dynamo_backends]\n{_NAME} = {BACKEND}\n",
    }

    class SourceTree(Distribution):
        def read_text(self, filename: str) -> str | None:
            return texts.get(filename)

        def locate_file(self, path: "Any") -> "Any":
            raise FileNotFoundError(path)

    return SourceTree()


class _Finder:
    """Finds no modules, and one distribution if nobody else has found it."""

    asked = False

    @classmethod
    def find_spec(cls, *args: "Any", **kwargs: "Any") -> None:
        return None

    @classmethod
    def find_distributions(cls, context: "Any" = None) -> "Iterable[Any]":
        name = getattr(context, "name", None)
        if cls.asked or (name is not None and name.lower() != _NAME):
            return []
        from importlib.metadata import distributions

        cls.asked = True  # this looks for the others
        try:
            installed = next(iter(distributions(name=_NAME)), None)
        finally:
            cls.asked = False
        return [] if installed else [_distribution()]


def install() -> None:
    if _Finder not in sys.meta_path:
        sys.meta_path.append(_Finder)  # type: ignore[arg-type]
