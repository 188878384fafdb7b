"""Guards on sizes inside of a graph, told by the sizes of its inputs.

A program compares sizes of whatever tensor it has at hand: `hidden.shape[1] > 1`. Shape inference
(src/dim) says what such a size is in the sizes of the inputs. Then the guard always holds, or it is
checked before the graph runs. What has no row in the operator table ends this: its guards stay in
the graph.
"""
import ast
import operator
from typing import TYPE_CHECKING, Any

from .. import _core
from ..lowering import LowerError, lower_graph, read_tensors
from ..shapes import TensorShape
from .boundary import NumberLeaf
from .guards import EntryGuard, is_number_node, written

if TYPE_CHECKING:
    from .module import CapturedModule
    from .recorder import Pending

_SIGNS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv, ast.Div: operator.truediv, ast.Pow: operator.pow,
}  # fmt: skip


def _inferred(module: "CapturedModule") -> dict[str, Any] | None:
    """{node: size} in symbols: "s0_1" is the second size of the first input, "i2" the third input.
    None if some operator is not known."""
    inputs = []
    for i, leaf in enumerate(module._boundary.inputs):
        if isinstance(leaf, NumberLeaf):
            if leaf.type is not int:
                return None
            inputs.append(f"i{i}")
            continue
        sizes = (str(n) if n is not None else f"s{i}_{d}" for d, n in enumerate(leaf.sizes))
        inputs.append(f"{str(leaf.dtype).removeprefix('torch.')}[{', '.join(sizes)}]")
    try:
        graph = lower_graph(module)
        return _core._infer(_core._Program(graph, read_tensors(graph, module), None), inputs,
                            TensorShape)[0]  # fmt: skip
    except (LowerError, RuntimeError, TypeError, ValueError, AssertionError):
        return None


def _tuples(tree: ast.AST) -> Any:
    """An expression in symbols as guards have them; None if there is something else in it."""
    if isinstance(tree, ast.Constant):
        return tree.value
    if isinstance(tree, ast.Name):
        i, _, d = tree.id.removeprefix("s").partition("_")
        if tree.id[0] == "i" and tree.id[1:].isdecimal():
            return "input", int(tree.id[1:])
        return ("size", int(i), int(d)) if i.isdecimal() and d.isdecimal() else None
    function: Any = None
    parts: list[Any] = []
    if isinstance(tree, ast.BinOp):
        function, parts = _SIGNS.get(type(tree.op)), [_tuples(tree.left), _tuples(tree.right)]
    elif isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        function, parts = operator.neg, [_tuples(tree.operand)]
    elif isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        function = {"min": min, "max": max, "abs": abs}.get(tree.func.id)
        parts = [_tuples(arg) for arg in tree.args]
    return None if function is None or None in parts else (function, *parts)


def _of_inputs(side: Any, sizes: dict[str, Any]) -> Any:
    """A side of a comparison in the sizes of the inputs; None if that is not known."""
    if not hasattr(side, "op"):
        return side if isinstance(side, (int, float)) else None
    found = sizes.get(side.name)
    if isinstance(found, str):
        return _tuples(ast.parse(found, mode="eval").body)
    return found if type(found) in (int, float) else None


def _text(expr: Any, names: list[str]) -> str:
    """An expression as the user would write it."""
    if type(expr) is not tuple:
        return str(expr)
    if expr[0] == "size":
        return f"{names[expr[1]]}.shape[{expr[2]}]"
    if expr[0] == "input":
        return names[expr[1]]
    text = written(expr[0], [_text(part, names) for part in expr[1:]])
    return text if text.endswith(")") else f"({text})"


def _entry(one: "Pending", sizes: dict[str, Any], names: list[str]) -> EntryGuard | None:
    """A guard in the sizes of the inputs; None if they do not decide it."""
    if one.question is None or one.guard.kind != "size":
        return None
    function, *nodes, truth = one.question
    sides = [_of_inputs(node, sizes) for node in nodes]
    if None in sides:
        return None
    text = written(function, [_text(side, names) for side in sides])
    guard = one.guard._replace(place="entry", expression=text, value=truth)
    return EntryGuard(guard, function, sides[0], sides[1], truth)


def reduce_guards(module: "CapturedModule", pending: "list[Pending]",
                  examples: list[Any]) -> None:  # fmt: skip
    """Moves guards out of the graph, where the sizes of the inputs decide them. `examples` are
    tensors of the sizes that the inputs had, for which each guard holds."""
    sizes = _inferred(module) if any(one.guard.kind == "size" for one in pending) else None
    if not sizes:
        return
    boundary = module._boundary
    names = [leaf.path for leaf in boundary.inputs]
    known = {entry[1:] for entry in boundary.guards}
    gone: set[Any] = set()
    kept = []
    for one in pending:
        entry = _entry(one, sizes, names)
        if entry is None or not entry.holds(examples):
            kept.append(one.guard)
            continue
        gone.update(one.nodes)
        is_constant = entry.left == entry.right or (
            type(entry.left) is not tuple and type(entry.right) is not tuple)
        if not is_constant and entry[1:] not in known:
            known.add(entry[1:])
            boundary.guards.append(entry)
    on_entry = (entry.guard for entry in boundary.guards)
    module.__dict__["_guards"] = (*on_entry, *kept)
    for node in reversed(module.graph.nodes):
        if node in gone and not node.users:
            module.graph.erase_node(node)


def drop_numbers(graph: Any) -> bool:
    """Removes numbers and constants that were read but not used; whether there were any."""
    dropped = False
    for node in reversed(list(graph.nodes)):
        if not node.users and (node.op == "get_attr" or is_number_node(node)):
            graph.erase_node(node)
            dropped = True
    return dropped
