"""The module that `capture` returns: one graph or several, with the same weights."""
import contextlib
import functools
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from .. import _core
from ..graph_module import GraphModule
from .boundary import Boundary, BoundaryCodeGen, Call
from .guards import CaptureError, Guards
from .installed import Installed, call_with
from .program import Flags, Program, Weakly, turns
from .reduce import drop_numbers, reduce_guards
from .run import Captured
from .state import assign, read_attribute

MOST_GRAPHS = 16  # of one module, for other kinds of inputs


class _Mismatch(CaptureError):
    """A graph does not hold for a call; nothing has run yet."""


class _OtherState(_Mismatch):
    """It does not hold for what the program has made of the module since it was captured."""


class GuardFailure(CaptureError, AssertionError):
    """Something does not hold that was assumed, as the graph found out while it ran."""


class CapturedModule(GraphModule):
    """What `capture` returns: a GraphModule that checks what was assumed.

    It may have several graphs: for training and for evaluation, and, with `recapture`, for other
    kinds of inputs. `graph` and `code` are those of the first."""

    _recaptures = False
    _home: torch.nn.Module | None = None  # whose attributes and weights this one works on

    @property
    def guards(self) -> Guards:
        """What was assumed while the model was captured, in the order of the run."""
        return Guards(self._guards)

    @property
    def graphs(self) -> tuple[Any, ...]:
        """All graphs of this module, the first one first."""
        return (self.graph, *(other.graph for other in self._others))

    # ---- one graph ----

    def _enter(self, values: tuple) -> Call:
        home = self._home or self
        if self._flags != _flags_of(home, self._flags):
            mode = "training" if self._flags[""] else "evaluation"
            raise _Mismatch(f"the model was captured in {mode} mode, and cannot be captured in the "
                            "other one here, for it is a copy: capture the model with "
                            "modes=\"both\"")  # fmt: skip
        boundary = self._boundary
        why = boundary.around.refusal()
        why = why or boundary.refusal_of_state(functools.partial(read_attribute, home))
        if why is not None:
            raise _OtherState(f"{why}, and it cannot be captured again here, for it is a copy")
        why, call = boundary.refusal(values)
        if why is not None:
            raise _Mismatch(f"{why}; capture it again with such arguments, or with recapture=True")
        return call

    def _leave(self, results: Iterable[Any], call: Call) -> Any:
        return self._boundary.leave(results, call, functools.partial(assign, self._home or self))

    @property
    def _boundary(self) -> Boundary:
        return self._graph._codegen.boundary

    def __getattr__(self, name: str) -> Any:
        home = self.__dict__.get("_home")  # plain attributes that the program changes are there
        if home is not None:
            with contextlib.suppress(AttributeError):
                return super().__getattr__(name)
            return getattr(home, name)
        return super().__getattr__(name)

    # ---- several ----

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._is_whole:
            return self._call(*args, **kwargs)
        tried: set[CapturedModule] = set()
        while True:
            for graph in (self, *self._others):
                if graph in tried:
                    continue
                tried.add(graph)
                try:
                    with graph._undone_on_failure():
                        return graph._call(*args, **kwargs)
                except (_Mismatch, GuardFailure) as error:
                    last: Exception = error
                except RuntimeError as error:  # the program may handle it
                    if not self._recaptures:
                        raise
                    last = error
            with turns:
                if tried.issuperset(self._others):  # else another thread has captured it
                    graph = self._captured_again(args, kwargs, last)
                    break
        return graph._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except AssertionError as error:
            if "when this graph was captured" not in str(error):
                raise
            raise GuardFailure(*error.args) from None

    @property
    def _other_mode(self) -> bool:
        return self._flags[""] not in (None, (self._home or self).training)

    @contextlib.contextmanager
    def _undone_on_failure(self) -> Iterator[None]:
        """A context that leaves buffers and the random state as they were if the graph fails."""
        if not self._recaptures:
            yield
            return
        home = self._home or self
        kept = [(buffer, buffer.detach().clone()) for buffer in home.buffers()
                ] if self._writes else []  # fmt: skip
        state = torch.get_rng_state()
        try:
            yield
        except RuntimeError:
            with torch.no_grad():
                for buffer, content in kept:
                    buffer.copy_(content)
            torch.set_rng_state(state)
            raise

    def _captured_again(self, args: tuple, kwargs: dict[str, Any],
                        why: Exception) -> "CapturedModule":  # fmt: skip
        program = self._program.program
        mode = (self._home or self).training
        has_mode = any(g._flags[""] == mode for g in (self, *self._others))
        needed = not has_mode or isinstance(why, _OtherState) or self._recaptures
        if program is None or not needed:
            raise why
        flags = Flags(program.root, self._home or self)
        lent: list[Installed] = [flags, _LentState(self, program.root)]
        graph = call_with(lent, lambda: self._add(program, program.capture(args, kwargs)))
        if len(self._others) > MOST_GRAPHS:
            warnings.warn(f"{program.name} has been captured for {len(self._others) + 1} kinds of "
                          "inputs; the oldest graph is dropped", stacklevel=4)  # fmt: skip
            del self._others[-1]
        return graph

    def _add(self, program: Program, captured: Captured) -> "CapturedModule":
        """Another graph, which shares modules and weights with this one."""
        other = module_of(program, captured, False, self._home or self)
        if self._home is None:
            have = set(self._graph._paths(False))
            have = have.union(*(o._graph._paths(False) for o in self._others))
            have |= {slot.path for g in (self, *self._others) for slot in g._slots}
            self._take(captured, have)
        self._others.insert(0, other)
        return other

    def _take(self, captured: Captured, have: set[str]) -> None:
        """What a graph needs of the model and this module has not got."""
        missing = [path for path in captured.graph._paths(False) if path not in have]
        copy = functools.partial(_core._copy_attrs, captured.root, self, missing)
        call_with([captured], copy)
        for slot in captured.boundary.slots:
            if slot.path not in have:
                assign(self, slot.path, slot.initial())

    @property
    def _slots(self) -> list[Any]:
        codegen = self._graph._codegen
        return codegen.boundary.slots if isinstance(codegen, BoundaryCodeGen) else []


class _LentState:
    """While this is installed, a model has the state of the module that was captured from it."""

    def __init__(self, module: CapturedModule, root: torch.nn.Module) -> None:
        self.root, self.home = root, module._home or module
        paths = {slot.path for g in (module, *module._others) for slot in g._slots}
        self.before = {path: read_attribute(root, path)
                       for path in (paths if self.home is not root else ())}  # fmt: skip

    def install(self) -> None:
        for path in self.before:
            assign(self.root, path, read_attribute(self.home, path))

    def remove(self) -> None:
        for path, value in self.before.items():
            assign(self.root, path, value)


def _flags_of(module: torch.nn.Module, like: dict[str, Any]) -> dict[str, Any]:
    """The flags `training` of the modules that `like` has."""
    found = {}
    for path, flag in like.items():
        at: Any = read_attribute(module, path) if path else module
        found[path] = None if flag is None else getattr(at, "training", flag)
    return found


def _inner_flags(module: CapturedModule, root: torch.nn.Module) -> dict[str, Any]:
    """The flags of the modules that the program went through: those of layers that the graph calls
    are live."""
    called = set(module._graph._paths(True))
    found: dict[str, Any] = {"": root.training}
    todo = [("", module, root)]
    while todo:
        outer, own, like = todo.pop()
        for name, child in own._modules.items():
            path = f"{outer}.{name}" if outer else name
            if child is not None and path not in called:
                original = like._modules[name]
                found[path] = original.training
                todo.append((path, child, original))
    return found


def module_of(program: Program, captured: Captured, recapture: bool,
              home: torch.nn.Module | None = None) -> CapturedModule:  # fmt: skip
    """The module around a graph, with the parts of the model that the graph names. With `home`, it
    works on the modules, weights and attributes of that one."""
    root = captured.root
    make = functools.partial(CapturedModule, root, captured.graph, program.name)
    module = call_with([captured], make)
    for path, own in module.named_modules():
        with contextlib.suppress(AttributeError):
            own.training = root.get_submodule(path).training
    is_script = not isinstance(captured.graph._codegen, BoundaryCodeGen)
    module.__dict__.update(
        _is_whole=is_script, _guards=captured.guards, _writes=captured.writes,
        _program=Weakly(program), _recaptures=recapture, _others=[],
        _flags={"": None} if is_script else _inner_flags(module, root), _home=home,
    )  # fmt: skip
    if captured.pending:
        reduce_guards(module, captured.pending, captured.examples)
    if drop_numbers(module.graph) or captured.pending:
        module.recompile()
    if home is None:
        for slot in captured.boundary.slots:
            assign(module, slot.path, slot.initial())
        return module
    constants = {path: getattr(module, path) for path in captured.foreign}
    for slot in captured.boundary.slots:
        module.__dict__.pop(slot.path, None)  # home has it
    for table in ("_parameters", "_buffers", "_modules"):
        module.__dict__[table] = home.__dict__[table]
    module.__dict__.update(constants)
    return module
