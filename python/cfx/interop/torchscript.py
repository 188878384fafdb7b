"""Graphs of cfx from TorchScript: modules and functions of torch.jit.script and torch.jit.trace.

Calls are inlined. What is known without running (settings of modules, numbers, None) is computed
while converting, as in cfx.script: a branch on it disappears. Other branches become cfx.cond, loops
become cfx.for_loop and cfx.while_loop. TorchScript's lists can be changed; here a change makes a
new list, which takes the place of the old one, and is a part of a loop's state.

All that cannot be converted is reported together in a ScriptConversionError, with source lines.
"""
import operator
from collections.abc import Iterator
from typing import Any

import torch

from .._glue.findings import Finding, summary
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from .script_block import Job
from .script_flow import Flow
from .script_values import (
    Object, items_of, name_of, note_attributes, plain,
)  # fmt: skip


class ScriptConversionError(TypeError):
    """A program of TorchScript cannot be converted; `findings` lists all that is in the way."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        super().__init__(summary(findings, "call", "cannot be converted from TorchScript"))


def _root(tensors: dict[str, Any]) -> torch.nn.Module:
    """A tree of plain modules with these tensors."""
    root = torch.nn.Module()
    for path, tensor in tensors.items():
        *folders, name = path.split(".")
        at = root
        for folder in folders:
            if folder not in at._modules:
                at.add_module(folder, torch.nn.Module())
            at = at._modules[folder]  # type: ignore[assignment]
        if isinstance(tensor, torch.nn.Parameter):
            at.register_parameter(name, tensor)
        else:
            at.register_buffer(name, tensor)
    return root


_TYPES = {"IntType": int, "FloatType": float, "BoolType": bool, "StringType": str,
          "TensorType": torch.Tensor}  # fmt: skip


def _inputs(block: Flow, values: list[Any], schema: Any) -> None:
    arguments = {arg.name: arg for arg in schema.arguments}
    for value in values:
        name = name_of(value)
        argument = arguments.get(name)
        given = argument is not None and argument.has_default_value()
        default = [argument.default_value] if argument is not None and given else []
        made = block.graph.placeholder(name, _TYPES.get(value.type().kind()), *default)
        block.values[value.unique()] = made


def convert(program: Any) -> GraphModule:
    """A cfx.GraphModule for a ScriptModule or ScriptFunction. Tensors are shared with it; other
    settings, such as `training`, are fixed to what they are now."""
    is_module = isinstance(program, torch.jit.ScriptModule)
    method = program.forward if is_module else program
    source = program.inlined_graph if is_module else method.inlined_graph
    job = Job()
    if is_module:
        job.tensors.update(program.named_parameters(remove_duplicate=False))
        job.tensors.update(program.named_buffers(remove_duplicate=False))
    block = Flow(job, Graph())
    values = list(source.inputs())
    if is_module:
        block.values[values[0].unique()] = Object("", program)
        note_attributes(source, {values[0].unique(): ""}, job.assigned, job.written)
    _inputs(block, values[1:] if is_module else values, method.schema)
    block.run(source)
    results = [block.get(value) for value in source.outputs()]
    if not job.findings and any(isinstance(x, Object) for x in items_of(results)):
        job.findings.append(Finding("", "", "return", "it returns a module"))
    if job.findings:
        raise ScriptConversionError(job.findings)
    block.graph.output(plain(results[0] if len(results) == 1 else tuple(results)))
    block.graph._pass("dce", None, {"strict": 1})
    read = {str(n.target) for n in _every_get_attr(block.graph)}
    root = _root({path: job.tensors[path] for path in job.tensors if path in read})
    name = getattr(program, "original_name", None) or getattr(program, "name", None)
    made = GraphModule(root, block.graph, str(name or "Scripted"))
    made.train(getattr(program, "training", True))
    return made


def _every_get_attr(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        if node.op == "get_attr":
            yield node
        for arg in node.args:
            if isinstance(arg, Graph):
                yield from _every_get_attr(arg)


def load(path: str) -> Any:
    """What a file holds: a ScriptModule, or the module of an ExportedProgram (.pt2)."""
    if str(path).endswith(".pt2"):
        return torch.export.load(path).module()
    return torch.jit.load(path)
