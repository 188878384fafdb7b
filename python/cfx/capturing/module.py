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
from .program import Program, Weakly, flags
from .reduce import drop_numbers, reduce_guards
from .run import Captured
from .state import assign, read_attribute
from .training import Settings, merge, module_paths, read_flags, take_modules

MOST_GRAPHS = 16  # of one module, for other kinds of inputs


class _Mismatch(CaptureError):
    """A graph does not hold for a call; nothing has run yet."""


class _OtherMode(_Mismatch):
    """It does not hold for the modes that modules are in."""


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
        if not self._settings.holds(home):
            raise _OtherMode(self._no_graph())
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
        last: Exception | None = None
        for graph in (self, *self._others):
            try:
                with graph._undone_on_failure():
                    return graph._call(*args, **kwargs)
            except _OtherMode as error:  # what a graph of the present mode says is told
                last = last or error
            except (_Mismatch, GuardFailure) as error:
                last = error
            except RuntimeError as error:  # the program may handle it
                if not self._recaptures:
                    raise
                last = error
        assert last is not None
        return self._captured_again(args, kwargs, last)._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except AssertionError as error:
            if "when this graph was captured" not in str(error):
                raise
            raise GuardFailure(*error.args) from None

    def _no_graph(self) -> str:
        return (f"the model was captured in {self._settings.text()}, and its modules are in "
                "another one now. Copies and pickles cannot capture it again: capture the model "
                'with modes="both", or in that mode, before you copy it')

    def _present(self) -> "CapturedModule":
        if self._is_whole:
            return self
        for graph in (self, *self._others):
            if graph._settings.holds(self._home or self):
                return graph
        raise CaptureError(f"the model was captured in {self._settings.text()}, and its modules "
                           "are in another one now: call it once in that mode, or capture it with "
                           'modes="both"')  # fmt: skip

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
        needed = not has_mode or isinstance(why, _OtherState) or self._recaptures
        if program is None or not needed:
            raise why
        with flags(program.root, home), self._lent_state(program.root):
            graph = self._add(program, program.capture(args, kwargs))
        if len(self._others) > MOST_GRAPHS:
            warnings.warn(f"{program.name} has been captured for {len(self._others) + 1} kinds of "
                          "inputs; the oldest graph is dropped", stacklevel=4)  # fmt: skip
            del self._others[-1]
        return graph

    @contextlib.contextmanager
    def _lent_state(self, root: torch.nn.Module) -> Iterator[None]:
        """A context in which the model has the state of this module."""
        home = self._home or self
        paths = {slot.path for g in (self, *self._others) for slot in g._slots}
        before = {path: read_attribute(root, path) for path in paths} if home is not root else {}
        try:
            for path in before:
                assign(root, path, read_attribute(home, path))
            yield
        finally:
            for path, value in before.items():
                assign(root, path, value)

    def _add(self, program: Program, captured: Captured) -> "CapturedModule":
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
            have |= {slot.path for g in (self, *self._others) for slot in g._slots}
            self._take(captured, have)
        self._others.insert(0, other)
        return other

    def _take(self, captured: Captured, have: set[str]) -> None:
        """What a graph needs of the model and this module has not got."""
        missing = [path for path in captured.graph._paths(False) if path not in have]
        with captured.with_foreign():
            _core._copy_attrs(captured.root, self, missing)
        for slot in captured.boundary.slots:
            if slot.path not in have:
                assign(self, slot.path, slot.initial())

    def _take_flags(self, root: torch.nn.Module, graph: Any) -> None:
        """The modules whose flags a graph reads."""
        flags = (path for path in graph._paths(False) if path.endswith(".training"))
        take_modules(self, root, [path.removesuffix(".training") for path in flags])

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


def module_of(program: Program, captured: Captured, recapture: bool,
              home: torch.nn.Module | None = None) -> CapturedModule:  # fmt: skip
    """The module around a graph, with the parts of the model that the graph names. With `home`, it
    works on the modules, weights and attributes of that one."""
    root = captured.root
    with captured.with_foreign():
        module = CapturedModule(root, captured.graph, program.name)
    for path, own in module.named_modules():
        with contextlib.suppress(AttributeError):
            own.training = root.get_submodule(path).training
    is_script = not isinstance(captured.graph._codegen, BoundaryCodeGen)
    module.__dict__.update(
        _is_whole=is_script, _guards=captured.guards, _writes=captured.writes,
        _program=Weakly(program), _recaptures=recapture, _others=[],
        _home=home,
    )  # fmt: skip
    has_flags = not is_script and root is not program.empty
    module.__dict__["_settings"] = _settings_of(module, root) if has_flags else Settings((), ())
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
