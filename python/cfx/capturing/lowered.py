"""Captured models in C.

They check what was assumed, as the captured module does, and have the graphs that it has. The
attributes that a program changes are inputs and results of its graph (state.py). What a run leaves
there stays in C, in a session (include/cfx/session.h), and a structure in Python says which part is
which value: {"keys": [Kept, Kept], "length": Kept}. The graphs of one module share both.
"""
import contextlib
import copy
import os
import threading
import weakref
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, NamedTuple

import torch

from .. import _core
from ..graph import Graph
from ..lowering import Lowered, lower_graph, read_tensors
from .boundary import Boundary, Kept, Mismatch, NumberLeaf, OtherState, guard_failures
from .boundary import raise_guard_failure
from .guards import CaptureError
from .training import Settings
from .._glue.structure import Tree, map_leaves


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


def _has_same(tree: Tree) -> bool:
    return tree.kind == "same" or any(map(_has_same, tree.parts))


class Part(NamedTuple):
    """One graph of a module, lowered."""

    graph: Graph
    codegen: Any  # of the graph that it was
    own: dict[str, Any]  # tensors that only this graph reads, by path
    writes: bool  # whether it writes to tensors of the module


class _Member:
    """One graph of a module: how its calls begin and end."""

    def __init__(self, lowered: Lowered, part: Part) -> None:
        self.lowered, self.part = lowered, part
        boundary = self.boundary = part.codegen.boundary
        self.kept: dict[int, str] = {}  # {leaf: name} of the leaves that a session keeps
        self.keeps: tuple[tuple[str, int], ...] = ()  # ((name, result), ...)
        first = sum(map(_num_leaves, boundary.after))
        names = [name for names in boundary.names for name in names]
        results = [i for i, (computed, _) in enumerate(boundary.out) if computed]
        for leaf, name in enumerate(names, first):
            if boundary.out[leaf][0]:
                self.kept[leaf] = name
                self.keeps += ((name, results.index(leaf)),)
        # whether a container that is an attribute may be a result, too: then the result is a copy
        self.gives_attributes = bool(self.kept) and _has_same(boundary.result)
        self.rules = boundary.inputs[boundary.num_arguments :]
        entry = boundary.entry(Settings((), ()), gradients=False)
        self.entry = entry if entry.can_leave else None

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
        entry = self.entry
        call = entry.enter(None, values) if entry is not None else None
        if entry is None or call is None:
            return self._call_slowly(values, session, structures)
        try:
            results = self.lowered._run_now(*call.inputs)
        except AssertionError as error:
            raise_guard_failure(error)
        return entry.leave(results)

    def _call_slowly(self, values: tuple, session: Any, structures: dict[str, Any]) -> Any:
        """For arguments of every kind, and programs that change attributes."""
        boundary = self.boundary
        why = boundary.around.refusal(gradients=False)
        if why is not None:
            raise Mismatch(f"{why}; leave that mode where the program in C is called")
        call = boundary.call(values, structures.__getitem__)
        given = [value for value in call.inputs if type(value) is not Kept]
        with guard_failures():
            others = iter(self.lowered._program.run_kept(
                session, self._takes(call.inputs), self.keeps, *given))
        results = [Kept(session, self.kept[i]) if i in self.kept else next(others)
                   for i, (computed, _) in enumerate(boundary.out) if computed]  # fmt: skip
        result = boundary.leave(results, call, structures.__setitem__)
        if not self.gives_attributes:
            return result
        return boundary.leave([_plain(leaf) for leaf in results], call, lambda path, value: None)


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


def _rebuild(parts: list[Part], state: dict[str, Any], attributes: dict[str, Any],
             frozen: str | None, append: bool = False,
             runtime: Any = None) -> "LoweredCapture":  # fmt: skip
    made = LoweredCapture(parts, state, attributes, runtime)
    return made._freeze(precision=frozen, append=append) if frozen else made


_locks: Any = weakref.WeakSet()


def _new_lock() -> Any:
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def _free_locks() -> None:
    """In the child of a fork: threads that held them are not there to give them back."""
    for lock in _locks:
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)


class LoweredCapture(Lowered):
    """A captured model in C, with the graphs that the captured module has for its mode.

    If the model changes attributes of its own, `attributes` has them: they begin with the values of
    the captured module and move on with each call, as the module's do. You can read and assign
    them. Threads take turns then."""

    def __init__(self, parts: list[Part], state: dict[str, Any], attributes: dict[str, Any],
                 runtime: Any = None) -> None:  # fmt: skip
        first, *others = parts
        super().__init__(first.graph, {**state, **first.own}, first.codegen, runtime)
        programs = [Lowered(part.graph, state, part.codegen, runtime, self.state, part.own)
                    for part in others]  # fmt: skip
        self._members = [_Member(*both) for both in zip((self, *programs), parts)]
        self._session = _core._Session()
        self._bind = self._members[0].boundary.parameters.bind
        # most modules have one graph, and change nothing: their calls have nothing to choose
        self._only = None if others or attributes else self._members[0]
        self._turns: Any = _new_lock() if attributes else contextlib.nullcontext()
        self.attributes = Attributes(attributes)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        values = self._bind(args, kwargs)
        structures = self.attributes._structures
        if self._only is not None:
            return self._only(values, self._session, structures)
        failed: Exception | None = None
        with self._turns:
            for member in self._members:
                try:
                    return member(values, self._session, structures)
                except Mismatch as error:
                    mismatch = error
                except RuntimeError as error:  # a GuardFailure among them
                    if member.part.writes:
                        raise
                    failed = failed or error
        if failed is not None:
            raise failed
        if isinstance(mismatch, OtherState):
            raise CaptureError(f"{mismatch}, and the program in C has no graph for that; let the "
                               "captured module run so far, which captures one, and lower it again")
        raise mismatch

    __call__ = run

    def _freeze(self, onednn: str | None = None, tune: bool = False,
                cache: str | None = None, precision: str = "float32",
                append: bool = False) -> "LoweredCapture":  # fmt: skip
        super()._freeze(onednn, tune, cache, precision, append)
        for member in self._members[1:]:
            member.lowered._freeze(onednn, tune, cache, precision, append)
        return self

    @property
    def plans(self) -> str:
        return "".join(member.lowered._made.plans() for member in self._members)

    def __reduce__(self) -> tuple[Any, ...]:
        _, (_, state, _, *how) = super().__reduce__()
        parts = [member.part for member in self._members]
        return _rebuild, (parts, state, dict(self.attributes), *how)

    def __deepcopy__(self, memo: dict[int, Any]) -> "LoweredCapture":
        make, parts = self.__reduce__()
        return make(*copy.deepcopy(parts, memo), self.runtime)

    def __repr__(self) -> str:
        counts = (len(self._members), "graphs"), (len(self.attributes), "attributes")
        more = "".join(f", {n} {what}" for (n, what), few in zip(counts, (1, 0)) if n > few)
        return f"{super().__repr__()[:-1]}{more})"


def lower_captured(modules: list[Any], read: Callable[[str], Any], runtime: Any) -> Lowered:
    """Lowers the graphs of a captured module; `read` gives its attributes."""
    refusals = [why_not_lowered(module._boundary) for module in modules]
    if None not in refusals:
        raise CaptureError(refusals[0])
    modules = [module for module, why in zip(modules, refusals) if why is None]
    paths = {slot.path: None for module in modules for slot in module._slots}
    graphs = [lower_graph(module) for module in modules]
    tensors = [read_tensors(graph, module) for graph, module in zip(graphs, modules)]
    state: dict[str, Any] = {}
    parts = []
    for graph, found, module in zip(graphs, tensors, modules):
        own = {path: found.pop(path) for path in module._constants if path in found}
        state.update(found)
        parts.append(Part(graph, module.graph._codegen, own, module._writes))
    attributes = {path: map_leaves(read(path), _detached) for path in paths}
    return LoweredCapture(parts, state, attributes, runtime)
