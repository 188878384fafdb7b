"""cfx.explain: how each part of a model is captured, and what is assumed."""
import os
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from .boundary import BoundaryCodeGen, FixedLeaf
from .guards import Guard
from .module import CapturedModule, module_of
from .program import Program
from .protocol import OpOverload
from .run import Captured, Options


class Report(NamedTuple):
    """How a model was captured."""

    name: str
    runs: int  #: how often the model ran
    nodes: dict[str, int]  #: {how nodes were recorded: how many}
    from_source: list[str]  #: functions with control flow that depends on data
    refused: list[str]  #: functions that could not be captured from their source, and why
    fixed: list[str]  #: arguments that the graph holds for alone
    state: list[str]  #: attributes that the model changes
    guards: list[Guard]

    def __str__(self) -> str:
        runs = f"{self.runs} runs" if self.runs > 1 else "one run"
        lines = [f"{self.name}: {sum(self.nodes.values())} nodes, from {runs}"]
        lines += [f"  {count:6}  {how}" for how, count in self.nodes.items()]
        lines += _part("from their source, because data decides what they do", self.from_source)
        lines += _part("checked when the graph runs, for they cannot be captured from their source",
                       self.refused)  # fmt: skip
        lines += _part("attributes that the model changes", self.state)
        lines += _part("arguments with a fixed value", self.fixed)
        for place, title in (("entry", "assumed, and checked before the graph runs"),
                             ("graph", "assumed, and checked while it runs")):  # fmt: skip
            lines += _part(title, [str(g) for g in self.guards if g.place == place])
        return "\n".join(lines)


def _part(title: str, rows: list[str]) -> list[str]:
    return [f"{title}:", *(f"  {row}" for row in rows)] if rows else []


def _place(code: types.CodeType) -> str:
    return f"{code.co_qualname} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})"


def _how(node: Any) -> str | None:
    if node.op == "call_module":
        return "calls of layers"
    if node.op in ("placeholder", "output", "get_attr"):
        return None
    if isinstance(node.target, OpOverload):
        return "calls below torch's Python API"
    return "calls of torch and Python"


def report_of(module: CapturedModule, captured: Captured, name: str) -> Report:
    nodes: dict[str, int] = {}
    for node in module.graph.nodes:
        how = _how(node)
        if how is not None:
            nodes[how] = nodes.get(how, 0) + 1
    codegen = module.graph._codegen
    leaves = codegen.boundary.leaves if isinstance(codegen, BoundaryCodeGen) else []
    source = [_place(code) for code in captured.evaluated]
    if not isinstance(codegen, BoundaryCodeGen):
        source = ["the whole program"]
    return Report(
        name, captured.runs, nodes, source,
        [f"{_place(code)}: {why}" for code, why in captured.refused.items()],
        [f"{leaf.path} = {leaf.value!r}" for leaf in leaves if isinstance(leaf, FixedLeaf)],
        [slot.path for slot in module._slots], list(module.guards),
    )  # fmt: skip


def explain(model: Callable[..., Any], *args: Any, dynamic: Any = None, **kwargs: Any) -> Report:
    """Captures a model as cfx.capture does and reports how: which functions are captured from their
    source and which cannot be, what is assumed and where that is checked, and what the model
    changes."""
    program = Program(model, Options(dynamic))
    captured = program.capture(args, kwargs)
    return report_of(module_of(program, captured, False), captured, program.name)
