"""The module that `capture` returns: one graph or several, with the same weights."""
import contextlib
import functools
import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from .. import _core
from ..graph_module import GraphModule
from ..lowering import Lowered, lower_graph, read_tensors
from .boundary import Boundary, BoundaryCodeGen, Call, GuardFailure, Mismatch, OtherMode
from .boundary import OtherState, guard_failures
from .guards import CaptureError, Guards
from .installed import Installed, call_with
from .lowered import lower_captured
from .reduce import drop_numbers, settle_guards
from .state import assign, read_attribute
from .training import Settings, merge, module_paths, read_flags, take_modules
from .turns import Flags, Weakly, is_capturing, turns

if TYPE_CHECKING:
    from .program import Program
    from .run import Captured

MOST_GRAPHS = 16  # of one module, for other kinds of inputs


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
        settings = self._settings
        entry = settings.entry
        if entry is None:  # this is the first call
            entry = settings.entry = self._boundary.entry(settings)
        home = self._home
        call = entry.enter(self if home is None else home, values)
        return self._enter_slowly(values) if call is None else call

    def _enter_slowly(self, values: tuple) -> Call:
        """Likewise, for values of every kind; what does not fit is an error."""
        home = self._home or self
        if not self._settings.holds(home):
            raise OtherMode(f"the model was captured in {self._settings.text()}, and its modules "
                            "are in another one now")  # fmt: skip
        why = self._boundary.around.refusal()
        if why is not None:
            raise OtherState(why)
        return self._boundary.call(values, functools.partial(read_attribute, home))

    def _ask_for_no_gradients(self) -> None:
        """Lets the graph hold in any grad mode, as in C: it is for inference."""
        boundary = getattr(self._graph._codegen, "boundary", None)
        if boundary is not None:  # else it holds for every call
            boundary.around.asked.clear()
            self._settings.entry = None

    def _leave(self, results: Iterable[Any], call: Call) -> Any:
        entry = self._settings.entry
        if entry is not None and entry.can_leave:
            return entry.leave(results)
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
        if self._others or self._recaptures:
            return self._call_some(args, kwargs, set(), None)
        try:
            return self._call(*args, **kwargs)
        except (Mismatch, GuardFailure) as error:
            last = error
        return self._call_some(args, kwargs, {self}, last)

    def _call_some(self, args: tuple, kwargs: dict[str, Any], tried: "set[CapturedModule]",
                   last: Exception | None) -> Any:  # fmt: skip
        """Calls the first graph that holds for the arguments, or another one that is captured for
        them; but none that was tried, of which `last` is what it said."""
        while True:
            for graph in (self, *self._others):
                if graph in tried:
                    continue
                tried.add(graph)
                try:
                    with graph._undone_on_failure():
                        return graph._call(*args, **kwargs)
                except OtherMode as error:  # what a graph of the present mode says is told
                    last = last or error
                except (Mismatch, GuardFailure) as error:
                    last = error
                except RuntimeError as error:  # the program may handle it
                    if not self._recaptures:
                        raise
                    last = error
            assert last is not None
            with turns:
                if tried.issuperset(self._others):  # else another thread has captured it
                    graph = self._captured_again(args, kwargs, last)
                    break
        return graph._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if self._home is not None:  # the graph may read the flag, which is an attribute of its own
            self.__dict__["training"] = self._home.training
        with guard_failures():
            return super().__call__(*args, **kwargs)

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
        home = self._home or self
        has_mode = any(g._settings.holds(home) for g in (self, *self._others))
        needed = not has_mode or isinstance(why, OtherState) or self._recaptures
        if program is None and isinstance(why, OtherMode):
            raise CaptureError(f"{why}. Copies and pickles cannot capture it again: capture the "
                               'model with modes="both", or in that mode, before you copy it')
        if program is None and isinstance(why, OtherState):
            raise CaptureError(f"{why}, and it cannot be captured again here, for it is a copy")
        if program is None or not needed:
            raise why
        if is_capturing():
            raise CaptureError(f"{why}; it is called by a program that is being captured, and "
                               "cannot be captured again meanwhile: call it like this before")
        lent: list[Installed] = [Flags(program.root, home), _LentState(self, program.root)]
        graph = call_with(lent, lambda: self._add(
            program, program.capture(args, kwargs, sorted(self._changes))))
        if len(self._others) > MOST_GRAPHS:
            warnings.warn(f"{program.name} has been captured for {len(self._others) + 1} kinds of "
                          "inputs; the oldest graph is dropped", stacklevel=4)  # fmt: skip
            del self._others[-1]
        return graph

    def _present(self) -> "list[CapturedModule]":
        """The graphs for the mode that this module is in."""
        home = self._home or self
        graphs = [g for g in (self, *self._others) if g._is_whole or g._settings.holds(home)]
        if not graphs:
            raise CaptureError(f"the model was captured in {self._settings.text()}, and its "
                               "modules are in another one now: call it once in that mode, or "
                               'capture it with modes="both"')  # fmt: skip
        return graphs

    def _lowered(self, runtime: Any) -> Lowered:
        """For cfx.lower."""
        if self._is_whole:
            clone = lower_graph(self)
            return Lowered(clone, read_tensors(clone, self), self.graph._codegen, runtime)
        read = functools.partial(read_attribute, self._home or self)
        return lower_captured(self._present(), read, runtime)

    def _add(self, program: "Program", captured: "Captured") -> "CapturedModule":
        """Another graph, which shares modules and weights with this one; or the one of them that
        it could be merged with."""
        other = module_of(program, captured, False, self._home or self)
        for graph in (self, *self._others):
            if not other._is_whole and merge(graph, other):
                if self._home is None:
                    self._take_flags(program.root, graph.graph)
                graph.recompile()
                return graph
        if self._home is None:
            have = set(self._graph._paths(False))
            have = have.union(*(o._graph._paths(False) for o in self._others))
            have |= self._changes
            self._take(captured, have)
        self._others.insert(0, other)
        return other

    def _take(self, captured: "Captured", have: set[str]) -> None:
        """What a graph needs of the model and this module has not got."""
        missing = [path for path in captured.graph._paths(False) if path not in have]
        old = set(self.modules())
        copy = functools.partial(_core._copy_attrs, captured.root, self, missing)
        call_with([captured], copy)
        for path, own in self.named_modules():
            if own not in old:  # a module around what is new, which is made in training mode
                own.training = captured.root.get_submodule(path).training
        for slot in captured.boundary.slots:
            if slot.path not in have:
                assign(self, slot.path, slot.initial())

    def _take_flags(self, root: torch.nn.Module, graph: Any) -> None:
        """The modules whose flags a graph reads."""
        flags = (path for path in graph._paths(False) if path.endswith(".training"))
        take_modules(self, root, [path.removesuffix(".training") for path in flags])

    @property
    def _changes(self) -> set[str]:
        """Paths of the attributes that graphs of this module change."""
        return {slot.path for g in (self, *self._others) for slot in g._slots}

    @property
    def _slots(self) -> list[Any]:
        codegen = self._graph._codegen
        return codegen.boundary.slots if isinstance(codegen, BoundaryCodeGen) else []


def _settings_of(module: CapturedModule, root: torch.nn.Module) -> Settings:
    """The flags of the modules that the program may have asked. A module whose flag differs from
    that of the module around it is part of the captured one."""
    paths = module_paths(root, module._graph._paths(True))
    flags = read_flags(root, paths)
    if module._home is None:
        here = read_flags(module, paths)
        take_modules(module, root, [path for path, a, b in zip(paths, flags, here) if a != b])
    return Settings(paths, (flags,))


class _LentState:
    """While this is installed, a model has the state of the module that was captured from it."""

    def __init__(self, module: CapturedModule, root: torch.nn.Module) -> None:
        self.root, self.home = root, module._home or module
        self.before = {path: read_attribute(root, path)
                       for path in (module._changes if self.home is not root else ())}  # fmt: skip

    def install(self) -> None:
        for path in self.before:
            assign(self.root, path, read_attribute(self.home, path))

    def remove(self) -> None:
        for path, value in self.before.items():
            assign(self.root, path, value)


def module_of(program: "Program", captured: "Captured", recapture: bool,
              home: torch.nn.Module | None = None) -> CapturedModule:  # fmt: skip
    """The module around a graph, with the parts of the model that the graph names. With `home`, it
    works on the modules, weights and attributes of that one."""
    root = captured.root
    make = functools.partial(CapturedModule, root, captured.graph, program.name)
    module = call_with([captured], make)
    if home is None:
        for slot in captured.boundary.slots:
            assign(module, slot.path, slot.initial())
    for path, own in module.named_modules():
        with contextlib.suppress(AttributeError):
            own.training = root.get_submodule(path).training
    is_script = not isinstance(captured.graph._codegen, BoundaryCodeGen)
    module.__dict__.update(
        _is_whole=is_script, _guards=(), _writes=captured.writes,
        _program=Weakly(program), _recaptures=recapture, _others=[],
        _constants=tuple(captured.foreign), _home=home,
    )  # fmt: skip
    has_flags = not is_script and root is not program.empty
    module.__dict__["_settings"] = _settings_of(module, root) if has_flags else Settings((), ())
    if captured.pending:
        module.__dict__["_guards"] = settle_guards(module, captured)
    if drop_numbers(module.graph, captured.boundary) or captured.pending:
        module.recompile()
    if home is None:
        return module
    constants = {path: getattr(module, path) for path in captured.foreign}
    for slot in captured.boundary.slots:
        module.__dict__.pop(slot.path, None)  # home has it
    for table in ("_parameters", "_buffers", "_modules"):
        module.__dict__[table] = home.__dict__[table]
    module.__dict__.update(constants)
    return module
