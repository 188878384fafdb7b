"""ONNX files: cfx.onnx.save (docs/onnx-writing.md)."""
from . import _glue
from ._glue.listing import public_names
from ._glue.onnx_save import ExportError, save

__all__ = ["ExportError", "save"]

__dir__ = public_names(globals())
_glue.find_torch()
