"""Between a caller's arguments and the inputs of a graph in a file, without torch.

The trees of arguments and results are those that cfx.capture has found (structure.py); files have
them as values (stored.py). What a program keeps from call to call stays in C.
"""
from collections.abc import Iterator, Sequence
from typing import Any

from .parameters import Parameters, signature_of
from .stored import Classes, adopted, tree_of, with_classes
from .structure import Flattened, Rebuilt, Tree, is_whole


def plain(value: Any) -> Any:
    """Lists and dicts of a graph as ordinary ones."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return tuple(map(plain, value)) if type(value) is tuple else value


def _is_flat(tree: Tree) -> bool:
    """Whether it is a tuple of leaves."""
    return tree.kind == "tuple" and all(part.kind is None for part in tree.parts)


def _num_leaves(tree: Tree) -> int:
    return 1 if tree.kind is None else sum(map(_num_leaves, tree.parts))


class Structured:
    """The door of a graph whose arguments or results are nested. `names` are those of its
    inputs."""

    def __init__(self, structure: Any, names: list[str]) -> None:
        structure, classes = plain(structure), Classes()
        self.names, self.keeps = names, bool(structure["slots"])
        self.parameters = Parameters(signature_of(structure["parameters"]))
        self.tree = tree_of(structure["arguments"], classes)
        self.leaves = structure["leaves"]
        self.after = [tree_of(tree, classes) for tree in structure["after"]]
        self.assigned = [tree_of(tree, classes) for tree, _ in structure["assigned"]]
        self.result_tree = tree_of(structure["result"], classes)
        self.out = [row if row != ("missing",) else (False, None) for row in structure["out"]]
        self.flat = _is_flat(self.tree)
        self.one = (self.result_tree.kind is None and self.out == [(True, None)] and
                    not self.after and not self.assigned)  # fmt: skip

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
        """The inputs of the graph, and the caller's objects; TypeError if it is not for these
        arguments."""
        values = self.parameters.bind(args, kwargs)
        if self.flat and all(map(is_whole, values)):
            return self._inputs(values), ()
        taken = Flattened()
        tree = taken.tree(values, ("",))
        if tree != self.tree and not self._adopt(tree):
            raise TypeError("the arguments are nested in another way than they were when the model "
                            "was captured")
        return self._inputs(taken.leaves), taken.objects

    def _inputs(self, leaves: Sequence[Any]) -> list[Any]:
        """The leaves of the arguments that are inputs of the graph."""
        inputs = []
        for (kind, path, *rest), value in zip(self.leaves, leaves):
            if kind in ("tensor", "number"):
                inputs.append(value)
            elif kind == "again" and value is not leaves[rest[0]]:
                raise TypeError(f"{path} and {self.leaves[rest[0]][1]} are two tensors, but the "
                                "model was captured with one tensor for both")
            elif kind == "fixed" and not _same(value, rest[0]):
                raise TypeError(f"{path} is {value!r}, but the model was captured with {rest[0]!r}")
        return inputs

    def _adopt(self, tree: Tree) -> bool:
        found: dict[type, type] = {}
        if not adopted(tree, self.tree, found):
            return False
        self.tree, self.result_tree = (with_classes(t, found)
                                       for t in (self.tree, self.result_tree))  # fmt: skip
        self.after = [with_classes(one, found) for one in self.after]
        return True

    def result(self, value: Any, objects: Sequence[Any]) -> Any:
        """The result of the program; the caller's objects get their new contents."""
        if self.one:
            return value[0]
        kept = sum(map(_num_leaves, self.assigned))
        first = sum(map(_num_leaves, self.after))
        rebuilt = Rebuilt(self._leaves(value, range(first, first + kept)), objects)
        for tree in self.after:
            rebuilt.value(tree)
        for tree in self.assigned:  # they may be part of the result
            rebuilt.value(tree)
        return rebuilt.value(self.result_tree)

    def _leaves(self, value: Any, kept: range) -> Iterator[Any]:
        """The leaves of results; those that the session keeps are not given back."""
        results = iter(value)
        for i, (computed, fixed) in enumerate(self.out):
            yield fixed if not computed else None if i in kept else next(results)


def _same(value: Any, fixed: Any) -> bool:
    """Whether a value is the one that a file has; dtypes and classes are only names there if torch
    is not loaded."""
    try:
        return value is fixed or (type(value) is type(fixed) and bool(value == fixed))
    except Exception:  # whatever classes make of ==
        return False
