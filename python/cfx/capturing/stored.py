"""Captured modules in files: what their graphs take, give and assume, as values (docs/format.md).

signature.ir has it for each graph; module.ir has the attributes that the program changes, with
their present values. A captured module that comes from a file cannot capture its program again.
"""
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from .. import _core
from .._glue.parameters import signature_of
from .._glue.stored import Classes, StructureError, tree_of, tree_values
from .._glue.structure import Flattened, Path, Rebuilt, Tree, step
from .boundary import AgainLeaf, Boundary, BoundaryCodeGen, FixedLeaf, NumberLeaf, TensorLeaf
from .guards import Guard
from .lowered import why_not_lowered
from .module import CapturedModule
from .reduce import input_names
from .state import MISSING, Slot, assign, plain_name, read_attribute
from .training import Settings
from .turns import Weakly

_NUMBERS = {"int": int, "float": float, "bool": bool, "complex": complex}

# ---- writing -----------------------------------------------------------------------------------


def _rule_values(leaf: Any) -> tuple[Any, ...]:
    if isinstance(leaf, TensorLeaf):
        return "tensor", leaf.path, leaf.dtype, leaf.ndim, leaf.device, leaf.sizes
    if isinstance(leaf, NumberLeaf):
        return "number", leaf.path, leaf.type.__name__
    if isinstance(leaf, AgainLeaf):
        return "again", leaf.path, leaf.first
    return ("missing", leaf.path) if leaf.value is MISSING else ("fixed", leaf.path, leaf.value)


def _out_values(out: Iterable[tuple[bool, Any]]) -> list[Any]:
    return [("missing",) if value is MISSING else (computed, value) for computed, value in out]


def _structure(module: CapturedModule) -> dict[str, Any]:
    """What Python has to know of a graph's arguments and results."""
    boundary, around, settings = module._boundary, module._boundary.around, module._settings
    assert boundary.tree is not None
    parameters = boundary.signature.parameters.values()
    return {
        "parameters": [(p.name, int(p.kind), p.default is not p.empty,
                        None if p.default is p.empty else p.default) for p in parameters],
        "arguments": tree_values(boundary.tree),
        "leaves": list(map(_rule_values, boundary.leaves)),
        "after": list(map(tree_values, boundary.after)),
        "slots": [(slot.path, tree_values(slot.tree), list(map(_rule_values, slot.rules)), read)
                  for slot, read in zip(boundary.slots, boundary.read)],
        "assigned": [(tree_values(tree), names)
                     for tree, names in zip(boundary.assigned, boundary.names)],
        "result": tree_values(boundary.result),
        "out": _out_values(boundary.out),
        "around": (around.dtype, around.device, around.autocast, around.grad, around.inference,
                   sorted(around.asked)),
        "settings": (list(settings.paths), list(settings.known)),
        "guards": [tuple(guard) for guard in module._guards],
        "writes": bool(module._writes),
        "constants": list(module._constants),
    }  # fmt: skip


class _Sizes:
    """What is known of the sizes of inputs: a number where a guard or `dynamic` fixes it; else a
    name, which sizes share that a guard makes equal."""

    def __init__(self, names: list[str], boundary: Boundary) -> None:
        self.fixed: dict[str, int] = {}
        self.names: dict[str, str] = {}
        for name, leaf in zip(names, boundary.inputs):
            for dim, size in enumerate(getattr(leaf, "sizes", ())):
                key = f"{name}.shape[{dim}]"
                self.names[key] = f"{plain_name(name)}_{dim}"
                if size is not None:
                    self.fixed[key] = size
        for _, question, value, *_ in boundary.guards.rows():
            left, _, right = question.partition(" == ")
            if question in self.names and type(value) is int:
                self.fixed[question] = value
            elif value is True and left in self.names and right in self.names:
                self.names[right] = self.names[left]
            elif value is True and left in self.names and right.isdigit():
                self.fixed[left] = int(right)

    def of(self, name: str, leaf: TensorLeaf) -> tuple[Any, ...]:
        keys = (f"{name}.shape[{dim}]" for dim in range(leaf.ndim))
        return tuple(self.fixed.get(key, self.names[key]) for key in keys)


def _count(tree: Any) -> int:
    """The leaves of a tree."""
    return 1 if tree.kind is None else sum(map(_count, tree.parts))


def _leaf_paths(tree: Any, path: tuple[Any, ...]) -> Iterator[str]:
    """How users reach the leaves of a tree."""
    if tree.kind is None:
        yield str(Path(path))
    for i, part in enumerate(tree.parts):
        yield from _leaf_paths(part, (*path, step(tree.kind, tree.key, i)))


def _result_names(boundary: Boundary) -> Iterator[tuple[str, bool]]:
    """How users reach the results of the graph, and whether they are state. What the program left
    in its arguments comes first, then state, then the result."""
    names = [(f"changed[{i}]", False) for i in range(sum(map(_count, boundary.after)))]
    names += [(name, True) for kept in boundary.names for name in kept]
    names += [(path, False) for path in _leaf_paths(boundary.result, ("result",))]
    for name, (computed, _) in zip(names, boundary.out):
        if computed:
            yield name


def signature_values(module: CapturedModule) -> dict[str, Any]:
    """What signature.ir has for a graph of a captured module."""
    boundary, home = module._boundary, module._home or module
    names = input_names(boundary)
    sizes = _Sizes(names, boundary)
    rows: list[Any] = []
    for name, leaf in zip(names, boundary.inputs):
        if isinstance(leaf, TensorLeaf):
            rows.append((name, "tensor", leaf.dtype, sizes.of(name, leaf)))
        else:
            rows.append((name, leaf.type.__name__))
    count = boundary.num_arguments
    present = _present(home, boundary)
    state = [row if row[1] == "tensor" else (*row, _number(present.get(row[0]), row[1]))
             for row in rows[count:]]  # fmt: skip
    values = {
        "inputs": rows[:count], "state": state, "results": list(_result_names(boundary)),
        "guards": boundary.guards.text,
    }  # fmt: skip
    refused = _refused(module, home)
    if refused is not None:
        values["refused"] = refused
    if boundary.slots:
        values["slots"] = list(_nested_state(boundary))
        values["literals"] = list(_literals(boundary))
        values["present"] = [(slot.path, _nesting(*_taken(home, slot.path)))
                             for slot in boundary.slots]  # fmt: skip
    return {**values, "structure": _structure(module)}


# C keeps state leaf by leaf. That a graph is for state which is nested in another way is told by
# texts, which are the same for attributes that are nested alike and have the same fixed leaves.


def _taken(home: Any, path: str) -> tuple[Tree, list[Any]]:
    """How an attribute is nested now; and its leaves, where they are neither tensors nor
    numbers."""
    taken = Flattened()
    tree = taken.tree(read_attribute(home, path), (path,))
    return tree, [None if isinstance(leaf, torch.Tensor) or type(leaf) in (int, float) else (leaf,)
                  for leaf in taken.leaves]  # fmt: skip


def _nesting(tree: Tree, fixed: list[Any]) -> str:
    numbers: dict[Any, int] = {}  # of objects, counted anew

    def counted(one: Tree) -> Tree:
        if one.kind == "same":
            return Tree("same", key=numbers.get(one.key, "another"))
        if one.number is not None:
            numbers[one.number] = len(numbers)
        number = numbers.get(one.number)
        return one._replace(number=number, parts=tuple(map(counted, one.parts)))

    return repr((tree_values(counted(tree)), fixed))


def _nested_state(boundary: Boundary) -> Iterator[tuple[str, str | None, str]]:
    """(path, how it must be nested before a run or None, how it is nested afterwards)"""
    at = sum(map(_count, boundary.after))
    for slot, read, tree in zip(boundary.slots, boundary.read, boundary.assigned):
        fixed = [(leaf.value,) if isinstance(leaf, FixedLeaf) else None for leaf in slot.rules]
        rows = boundary.out[at : at + _count(tree)]
        at += len(rows)
        assigned = [None if computed or type(value) in (int, float) else (value,)
                    for computed, value in rows]  # fmt: skip
        yield slot.path, _nesting(slot.tree, fixed) if read else None, _nesting(tree, assigned)


def _literals(boundary: Boundary) -> Iterator[tuple[str, Any]]:
    """State that a run sets to a number which is always the same."""
    first = sum(map(_count, boundary.after))
    names = [name for names in boundary.names for name in names]
    for name, (computed, value) in zip(names, boundary.out[first:]):
        if not computed and type(value) in (int, float):
            yield name, value


def _refused(module: CapturedModule, home: Any) -> str | None:
    """Why a graph cannot run in C, as the model is now."""
    if not module._settings.holds(home):
        return (f"the graph is for {module._settings.text()}, and the model was saved in another "
                "mode: save it in that mode")
    return why_not_lowered(module._boundary)


def _present(home: Any, boundary: Boundary) -> dict[str, Any]:
    """The present values of the leaves of the attributes that a graph changes."""
    taken = Flattened()
    for slot in boundary.slots:
        taken.tree(read_attribute(home, slot.path), (slot.path,))
    return {str(path): leaf for path, leaf in zip(taken.paths, taken.leaves)}


def _number(value: Any, kind: str) -> Any:
    """The first value of a number that is state; None if the attribute is something else by now."""
    return value if type(value).__name__ == kind else None


def attribute_values(module: CapturedModule, add: Callable[[str, Any], None]) -> list[Any]:
    """The attributes that the program changes; `add` takes their tensors, by name."""
    found = []
    for path in sorted(module._changes):
        taken = Flattened()
        tree = taken.tree(read_attribute(module._home or module, path), (path,))
        leaves: list[Any] = []
        for at, leaf in zip(taken.paths, taken.leaves):
            if isinstance(leaf, torch.Tensor):
                add(str(at), leaf)
                leaves.append(("tensor", str(at), leaf.requires_grad))
            else:
                leaves.append(("missing",) if leaf is MISSING else ("value", leaf))
        found.append((path, tree_values(tree), leaves))
    return found


# ---- reading -----------------------------------------------------------------------------------


def _rule_of(values: Any) -> Any:
    kind, path, *rest = values
    if kind == "tensor":
        dtype, ndim, device, sizes = rest
        if not isinstance(dtype, torch.dtype) or not isinstance(device, torch.device):
            raise StructureError(f"{path} has no dtype or device that this torch knows")
        return TensorLeaf(path, dtype, ndim, device, tuple(sizes))
    if kind == "number":
        return NumberLeaf(path, _NUMBERS[rest[0]])
    if kind == "again":
        return AgainLeaf(path, rest[0])
    return FixedLeaf(path, MISSING if kind == "missing" else rest[0])


def _boundary_of(values: dict[str, Any], classes: Classes) -> Boundary:
    structure = values["structure"]
    boundary = Boundary(signature_of(structure["parameters"]))
    boundary.tree = tree_of(structure["arguments"], classes)
    boundary.leaves = list(map(_rule_of, structure["leaves"]))
    boundary.after = [tree_of(tree, classes) for tree in structure["after"]]
    for path, tree, rules, read in structure["slots"]:
        boundary.slots.append(Slot(path, tree_of(tree, classes), (), tuple(map(_rule_of, rules))))
        boundary.read.append(bool(read))
    for tree, names in structure["assigned"]:
        boundary.assigned.append(tree_of(tree, classes))
        boundary.names.append(names)
    boundary.result = tree_of(structure["result"], classes)
    boundary.out = [(False, MISSING) if row == ("missing",) else row for row in structure["out"]]
    boundary.num_arguments = len(values["inputs"])
    boundary.guards = _core._Guards(input_names(boundary), values["guards"])
    around = boundary.around
    around.dtype, around.device, around.autocast, around.grad, around.inference, asked = (
        structure["around"])
    around.asked = set(asked)
    return boundary


def _attribute_of(values: Any, weights: Callable[[str], Any], classes: Classes) -> Any:
    _, tree, rows = values
    leaves = []
    for kind, *rest in rows:
        if kind == "tensor":
            leaves.append(weights(rest[0]).detach().clone().requires_grad_(bool(rest[1])))
        else:
            leaves.append(MISSING if kind == "missing" else rest[0])
    return Rebuilt(leaves, []).value(tree_of(tree, classes))


def module_from(root: torch.nn.Module, graph: Any, name: str, values: dict[str, Any],
                classes: Classes,
                home: torch.nn.Module | None = None) -> CapturedModule:  # fmt: skip
    """The captured module around a graph of a file; with `home`, another graph of that one."""
    structure = values["structure"]
    is_whole = structure is None or "leaves" not in structure
    if not is_whole:
        graph.set_codegen(BoundaryCodeGen(_boundary_of(values, classes)))
    module = CapturedModule(root, graph, name)
    structure = structure or {}
    paths, known = structure.get("settings", ((), ()))
    module.__dict__.update(
        _is_whole=is_whole, _guards=tuple(Guard(*row) for row in structure.get("guards", ())),
        _writes=structure.get("writes", True), _program=Weakly(None), _others=[], _home=home,
        _constants=tuple(structure.get("constants", ())),
        _settings=Settings(tuple(paths), tuple(known)),
    )  # fmt: skip
    return module


def put_attributes(module: CapturedModule, rows: Iterable[Any], weights: Callable[[str], Any],
                   classes: Classes) -> None:  # fmt: skip
    """Gives a module the attributes that its program changes."""
    for row in rows:
        assign(module, row[0], _attribute_of(row, weights, classes))
