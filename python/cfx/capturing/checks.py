"""Guards that are checked on entry, as part of a graph: for graphs that leave their module."""
import ast
import math
import operator
import re
from typing import Any

import torch

from .guards import Guard
from .module import CapturedModule

# What a guard is made of, as its text has it (include/cfx/guard.def).
_SIGNS: dict[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv, ast.Div: operator.truediv, ast.Pow: operator.pow,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.USub: operator.neg,
    ast.Invert: operator.invert, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt,
    ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_FUNCTIONS: dict[str, Any] = {
    f.__name__: f
    for f in (abs, min, max, round, int, float, math.floor, math.ceil, math.trunc, math.sqrt)
}


def graph_with_checks(module: CapturedModule) -> Any:
    """A copy of a module's graph that checks what was assumed of its inputs itself. The module
    checks it before the graph runs, which the text of the graph does not show."""
    graph = module.graph._clone()
    inputs = graph.find_nodes(op="placeholder")
    first = next(node for node in graph.nodes if node.op != "placeholder")
    with graph.inserting_before(first):
        rules = module._boundary.inputs
        _write_sizes(graph, inputs, rules)
        question = _Question(graph, {rule.path: node for rule, node in zip(rules, inputs)})
        for row in module._boundary.guards.rows():
            _write_guard(graph, question, Guard(*row))
    return graph


class _Question:
    """Writes what guards ask as nodes. `inputs`: {how users reach it: node}."""

    def __init__(self, graph: Any, inputs: dict[str, Any]) -> None:
        self.graph = graph
        self.nodes = {f"_{i}": node for i, node in enumerate(inputs.values())}
        names = sorted(zip(inputs, self.nodes), key=lambda pair: -len(pair[0]))
        self.names = dict(names)  # the longest first: one may be the beginning of another
        alternatives = "|".join(map(re.escape, self.names)) or "(?!)"
        self.pattern = re.compile(rf"(?<![\w.\]])(?:{alternatives})(?!\w)")

    def written(self, text: str) -> Any:
        text = self.pattern.sub(lambda found: self.names[found[0]], text)
        return self._node(ast.parse(text, mode="eval").body)

    def _node(self, tree: Any) -> Any:
        if isinstance(tree, ast.Constant):
            return tree.value
        if isinstance(tree, ast.Name):
            return self.nodes[tree.id]
        if isinstance(tree, ast.Subscript):  # _0.shape[1]
            tensor: Any = tree.value
            size = self._node(tensor.value), self._node(tree.slice)
            return self.graph.call_method("size", size)
        if isinstance(tree, ast.Call):
            name = getattr(tree.func, "attr", None) or tree.func.id  # type: ignore[attr-defined]
            return self._call(_FUNCTIONS[name], tree.args)
        if isinstance(tree, ast.Compare):
            return self._call(_SIGNS[type(tree.ops[0])], [tree.left, *tree.comparators])
        parts = [tree.operand] if isinstance(tree, ast.UnaryOp) else [tree.left, tree.right]
        return self._call(_SIGNS[type(tree.op)], parts)

    def _call(self, function: Any, parts: list[Any]) -> Any:
        return self.graph.call_function(function, tuple(map(self._node, parts)))


def _write_guard(graph: Any, question: _Question, guard: Guard) -> None:
    holds = question.written(guard.expression)
    if not isinstance(guard.value, bool):
        holds = graph.call_function(operator.eq, (holds, guard.value))
    elif not guard.value:
        holds = graph.call_function(operator.not_, (holds,))
    graph.call_function(torch._assert, (holds, guard.refusal()))


def _write_sizes(graph: Any, inputs: list[Any], rules: list[Any]) -> None:
    """Sizes that are fixed by `dynamic`."""
    for node, rule in zip(inputs, rules):
        for dim, size in enumerate(getattr(rule, "sizes", ())):
            if size is not None:
                found = graph.call_method("size", (node, dim))
                holds = graph.call_function(operator.eq, (found, size))
                why = f"{rule.path}.shape[{dim}] is fixed to {size}"
                graph.call_function(torch._assert, (holds, why))
