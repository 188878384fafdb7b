"""ONNX files: cfx.onnx.load and cfx.onnx.findings (docs/onnx.md), cfx.onnx.save
(docs/onnx-writing.md). Nothing here imports the package `onnx`: files are read and written in
C."""
import os

from . import _core, _glue, package
from ._glue.findings import Finding, summary
from ._glue.listing import public_names
from ._glue.onnx_save import ExportError, save
from .graph_module import GraphModule

__all__ = ["ExportError", "Finding", "ReadError", "findings", "load", "save"]


class ReadError(ValueError):
    """A file that cannot be read. `findings` has every node that stands in the way."""

    def __init__(self, found: list[Finding]) -> None:
        self.findings = found
        super().__init__(summary(found, "node", "cannot be read"))


def findings(source: str | bytes | os.PathLike[str]) -> list[Finding]:
    """Every node of a file that cfx cannot read: a path, or the bytes of a model."""
    return [Finding(*row) for row in _core._onnx_findings(source)]


def load(source: str | bytes | os.PathLike[str]) -> GraphModule:
    """Returns the GraphModule of an ONNX file: a path, or the bytes of a model. Initializers are
    its parameters and buffers, under their names in the file. What cannot be read is a ReadError
    that lists all of it. cfx.runtime.load runs the same file without torch."""
    try:
        return package.load(source if isinstance(source, bytes) else os.fspath(source))
    except NotImplementedError:
        found = findings(source)
        if not found:
            raise
    raise ReadError(found)


__dir__ = public_names(globals())
_glue.find_torch()
