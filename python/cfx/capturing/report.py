"""cfx.explain: how each part of a model is captured, and what is assumed."""
import ast
import os
import sys
import textwrap
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from .boundary import BoundaryCodeGen, FixedLeaf, _short
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
        lines += _part("captured from their source, with all branches, because data decides what "
                       "they do", self.from_source)  # fmt: skip
        lines += _part("run as Python, because they cannot be captured from their source; the "
                       "graph checks what data decided there", self.refused)  # fmt: skip
        lines += _part("attributes that the model changes", self.state)
        lines += _part("arguments that the graph holds for alone", self.fixed)
        for place, title in (("entry", "assumed, and checked before the graph runs"),
                             ("graph", "assumed, and checked while the graph runs")):  # fmt: skip
            lines += _part(title, _statements([g for g in self.guards if g.place == place]))
        if self.guards:
            lines += _wrapped("A call for which one of them does not hold raises CaptureError; "
                              "captured with recapture=True, it captures another graph.", "")
        return "\n".join(lines)


_WIDTH = 100


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ",
                         break_long_words=False, break_on_hyphens=False)  # fmt: skip


def _part(title: str, rows: list[str]) -> list[str]:
    lines = _wrapped(f"{title}:", "") if rows else []
    for row in rows:
        lines += [f"  {row}"] if len(row) <= _WIDTH - 2 else _wrapped(row, "  ")
    return lines


_OPPOSITE: dict[type, Any] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
}  # fmt: skip


def statement(guard: Guard) -> str:
    """What holds if a guard does, as Python writes it: x.shape[0] != 3."""
    text, value = guard.expression, guard.value
    if type(value) is not bool:
        return f"{text} == {value!r}"
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:  # names that no program has
        return text if value else f"not ({text})"
    if not value and isinstance(tree, ast.Compare) and guard.kind == "size":
        tree.ops = [_OPPOSITE[type(op)]() for op in tree.ops]
    elif not value:
        return f"not ({ast.unparse(tree)})"
    return ast.unparse(tree)


def _statements(guards: list[Guard]) -> list[str]:
    """Guards in two columns: what holds, and the line that asked."""
    pairs = [(statement(g), f"{g.line}{', inside torch' if g.asker == 'torch' else ''}")
             for g in guards]  # fmt: skip
    width = max((len(text) for text, _ in pairs), default=0)
    width = min(width, _WIDTH - 4 - max((len(line) for _, line in pairs), default=0))
    return [f"{text:<{width}}  {line}".rstrip() for text, line in pairs]


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
        [f"{leaf.path} = {_short(leaf.value)}" for leaf in leaves if isinstance(leaf, FixedLeaf)],
        [slot.path for slot in module._slots], list(module.guards),
    )  # fmt: skip


def _compiled_report(model: Any, args: Any, kwargs: Any) -> Any:
    """What the back end of torch.compile has made of a model; None if it is not one of its."""
    if "torch._dynamo" not in sys.modules:
        return None
    from ..interop.backend import report

    found = report(model)
    if found is not None and (args or kwargs):
        model(*args, **kwargs)
        found = report(model)
    return found


def explain(model: Callable[..., Any], *args: Any, dynamic: Any = None, **kwargs: Any) -> Any:
    """Captures a model as cfx.capture does and returns a Report that says how: which functions are
    captured from their source and which cannot be, what is assumed and where that is checked, and
    what the model changes. For torch.compile(model, backend="cfx"), a CompileReport instead: which
    calls run in C, which in PyTorch and why; with arguments, the model is called first."""
    compiled = _compiled_report(model, args, kwargs)
    if compiled is not None:
        return compiled
    program = Program(model, Options(dynamic))
    captured = program.capture(args, kwargs)
    return report_of(module_of(program, captured, False), captured, program.name)
