"""Quantization: prepare, calibrate, convert, run in integers (docs/quantization.md)."""
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what is loaded when somebody asks for it
    from .preparing import convert_fx, fuse_fx, prepare_fx, prepare_qat_fx

__all__ = ["convert_fx", "fuse_fx", "prepare_fx", "prepare_qat_fx"]

# name -> module
_LAZY = {
    **dict.fromkeys(("convert_fx", "fuse_fx", "prepare_fx", "prepare_qat_fx"), "preparing"),
}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{module}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
