"""Writing ONNX files: cfx.onnx.save (docs/onnx-writing.md)."""
import copy
import os
from typing import Any

import torch

from .. import _core
from ..graph_module import GraphModule
from ..package import _value_text, _written
from ..text import as_cfx, text
from .findings import Finding, summary


class ExportError(ValueError):
    """A model that cannot be written as ONNX. `findings` has everything that stands in the way."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        super().__init__(summary(findings, "call", "cannot be written as ONNX"))


def save(model: Any, path: str | os.PathLike[str], *, opset: int = 18, external: bool = False,
         inputs: tuple[Any, ...] | None = None) -> None:  # fmt: skip
    """Writes a GraphModule as an ONNX file. Sizes that may differ from call to call are named
    dimensions. `opset` is the version of ONNX's operators, 18 to 28. With `external` weights go to
    a file beside it, "model.onnx.data"; they always do if one file would have 2 GB.

    A module of cfx.capture knows the types and ranks of its inputs; for others, `inputs` are
    example arguments that tell. Texts and None among them are not inputs of the file, which is for
    these. What cannot be written is an ExportError that lists all of it;
    nothing is written then."""
    model = as_cfx(model)
    if not isinstance(model, GraphModule):
        raise TypeError(f"save needs a GraphModule, such as cfx.capture and cfx.symbolic_trace "
                        f"return, not {type(model).__name__}")
    texts, tensors = _written(model)
    graph = copy.deepcopy(model.graph)
    for node, value in zip((n for n in graph.nodes if n.op == "placeholder"), inputs or ()):
        if value is None or isinstance(value, str):
            node.args = (value,)  # ONNX has no such inputs: the file is for this one
    if not _core._lower(graph, model):  # while modules are at hand, with functions as attributes
        texts["graph.ir"] = text(graph)
    if inputs is not None:
        texts["signature.ir"] = _value_text(_signature(model, inputs))
    findings = _core._save_onnx(path, type(model).__name__, texts, tensors, opset, external)
    if findings:
        raise ExportError([Finding(*row) for row in findings])


def _signature(model: GraphModule, inputs: tuple[Any, ...]) -> dict[str, Any]:
    """signature.ir of a graph whose inputs are like these."""
    names = [str(node.target) for node in model.graph.nodes if node.op == "placeholder"]
    if len(inputs) > len(names):
        raise TypeError(f"the graph takes {len(names)} inputs, and {len(inputs)} are given")
    rows = [_row(name, value) for name, value in zip(names, inputs)]
    rows += [(name, "any") for name in names[len(rows):]]
    return {"inputs": rows, "state": [], "results": None, "guards": "", "structure": None}


def _row(name: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, torch.Tensor):
        return name, "tensor", value.dtype, tuple(f"{name}_{i}" for i in range(value.dim()))
    kind = type(value).__name__
    return name, kind if kind in ("int", "float", "bool") else "any"

