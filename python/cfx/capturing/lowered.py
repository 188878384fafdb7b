"""Captured models in C that change attributes of their own, or have several graphs.

The attributes that a program changes are inputs and results of its graph (state.py). What a run
leaves there stays in C, in a session (include/cfx/session.h), and a structure in Python says which
part is which value: {"keys": [Kept, Kept], "length": Kept}. The graphs of one module share both.
"""
import copy
import threading
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import torch

from .. import _core
from ..graph import Graph
from ..lowering import Lowered, lower_graph, read_tensors
from .boundary import Boundary, Kept, Mismatch, NumberLeaf, OtherState
from .guards import CaptureError
from .structure import Rebuilt, Tree, map_leaves


def why_not_lowered(boundary: Boundary) -> str | None:
    """Why a program in C would not do what a graph does in the modes that it was captured in."""
    around = boundary.around
    if around.autocast is not None:
        return ("the model was captured inside of torch.autocast, but a program in C computes in "
                "the types of its tensors; convert the model (model.bfloat16()) instead")
    if around.dtype is not torch.float32:
        return (f"the model was captured with {around.dtype} as the default dtype, but a program "
                "in C makes tensors of torch.float32; give dtype= where the model makes tensors, "
                "and capture it with the usual default")  # fmt: skip
    if around.device.type != "cpu":
        return (f"the model was captured with {around.device} as the default device, but a program "
                "in C runs on the CPU")  # fmt: skip
    return None


def _detached(leaf: Any) -> Any:
    """A leaf of an attribute, as programs in C take it."""
    return leaf.detach() if isinstance(leaf, torch.Tensor) and leaf.requires_grad else leaf


def _plain(leaf: Any) -> Any:
    return leaf.plain() if type(leaf) is Kept else leaf


def _num_leaves(tree: Tree) -> int:
    if tree.kind is None:
        return 1
    return sum(map(_num_leaves, tree.parts))


class _Member:
    """One graph of a module: how its calls begin and end."""

    def __init__(self, lowered: Lowered, boundary: Boundary, writes: bool) -> None:
        self.lowered, self.boundary, self.writes = lowered, boundary, writes
        self.kept: dict[int, str] = {}  # {leaf: name} of the leaves that a session keeps
        self.keeps: tuple[tuple[str, int], ...] = ()  # ((name, result), ...)
        first = sum(map(_num_leaves, boundary.after))
        names = [name for names in boundary.names for name in names]
        results = [i for i, (computed, _) in enumerate(boundary.out) if computed]
        for leaf, name in enumerate(names, first):
            if boundary.out[leaf][0]:
                self.kept[leaf] = name
                self.keeps += ((name, results.index(leaf)),)
        self.rules = boundary.inputs[boundary.num_arguments :]

    def _takes(self, inputs: list[Any]) -> tuple[tuple[str, int, Any, int], ...]:
        """Which inputs are values of the session."""
        first, found = self.boundary.num_arguments, []
        for i, rule in enumerate(self.rules, first):
            if type(inputs[i]) is Kept:
                is_number = isinstance(rule, NumberLeaf)
                found.append((inputs[i].name, i, rule.type if is_number else rule.dtype,
                              0 if is_number else rule.ndim))  # fmt: skip
        return tuple(found)

    def __call__(self, values: tuple, session: Any, structures: dict[str, Any]) -> Any:
        boundary = self.boundary
        call = boundary.call(values, structures.__getitem__)
        given = [value for value in call.inputs if type(value) is not Kept]
        computed = iter(self.lowered._program.run_kept(
            session, self._takes(call.inputs), self.keeps, *given))
        leaves = [Kept(session, self.kept[i]) if i in self.kept else
                  next(computed) if is_computed else value
                  for i, (is_computed, value) in enumerate(boundary.out)]  # fmt: skip
        return boundary.leave(leaves, call, structures.__setitem__)


class Attributes(MutableMapping[str, Any]):
    """The attributes that a program changes, by path, with their present values."""

    def __init__(self, structures: dict[str, Any]) -> None:
        self._structures = structures

    def __getitem__(self, path: str) -> Any:
        return map_leaves(self._structures[path], _plain)

    def __setitem__(self, path: str, value: Any) -> None:
        if path not in self._structures:
            raise KeyError(f"the program changes no attribute '{path}'")
        self._structures[path] = map_leaves(value, _detached)

    def __delitem__(self, path: str) -> None:
        raise TypeError("an attribute that the program changes can be assigned, not removed")

    def __iter__(self) -> Iterator[str]:
        return iter(self._structures)

    def __len__(self) -> int:
        return len(self._structures)

    def __repr__(self) -> str:
        return repr(dict(self))


class LoweredCapture(Lowered):
    """A captured model in C that changes attributes of its own, or has several graphs. Its
    `attributes` begin with the values that the captured module has, and move on with each call, as
    the module's do; you can read and assign them. Threads take turns."""

    def __init__(self, members: list[tuple[Graph, Any, bool]], state: dict[str, Any],
                 attributes: dict[str, Any], runtime: Any = None) -> None:  # fmt: skip
        graph, codegen, _ = members[0]
        super().__init__(graph, state, codegen, runtime)
        others = [Lowered(graph, state, codegen, runtime, self.state)
                  for graph, codegen, _ in members[1:]]  # fmt: skip
        self._members = [_Member(lowered, codegen.boundary, writes) for lowered,
                         (_, codegen, writes) in zip((self, *others), members)]  # fmt: skip
        self._session = _core._Session()
        self._lock = threading.Lock()
        self.attributes = Attributes(attributes)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        values = self._members[0].boundary.bind(args, kwargs)
        structures = self.attributes._structures
        with self._lock:
            for member in self._members:
                try:
                    return member(values, self._session, structures)
                except Mismatch as error:
                    last: Exception = error
                except AssertionError as error:  # a guard that the graph itself checks
                    if member.writes or "when this graph was captured" not in str(error):
                        raise
                    last = error
        if isinstance(last, OtherState):
            raise CaptureError(f"{last}, and the program in C has no graph for that; let the "
                               "captured module run so far, which captures one, and lower it again")
        raise last

    __call__ = run

    def __reduce__(self) -> tuple[Any, ...]:
        state = super().__reduce__()[1][1]
        members = [(member.lowered.graph, member.lowered._codegen, member.writes)
                   for member in self._members]  # fmt: skip
        return LoweredCapture, (members, state, dict(self.attributes))

    def __deepcopy__(self, memo: dict[int, Any]) -> "LoweredCapture":
        make, parts = self.__reduce__()
        return make(*copy.deepcopy(parts, memo), self.runtime)

    def __repr__(self) -> str:
        graphs = f"{len(self._members)} graphs, " if len(self._members) > 1 else ""
        return f"{super().__repr__()[:-1]}, {graphs}{len(self.attributes)} attributes)"


def lower_captured(modules: list[Any], read: Callable[[str], Any], runtime: Any) -> Lowered:
    """Lowers the graphs of a captured module; `read` gives its attributes."""
    paths = {slot.path: None for module in modules for slot in module._slots}
    for module in modules:
        why = why_not_lowered(module._boundary)
        if why is not None:
            raise CaptureError(why)
    lowered = [lower_graph(module) for module in modules]
    state: dict[str, Any] = {}
    for graph, module in zip(lowered, modules):
        state.update(read_tensors(graph, module))
    if len(modules) == 1 and not paths:
        return Lowered(lowered[0], state, modules[0].graph._codegen, runtime)
    attributes = {path: map_leaves(read(path), _detached) for path in paths}
    members = [(graph, module.graph._codegen, module._writes) for graph, module in zip(lowered, modules)]
    return LoweredCapture(members, state, attributes, runtime)
