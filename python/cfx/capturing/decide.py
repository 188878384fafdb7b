"""Data decides: functions whose control flow depends on data are evaluated from their source.

A run that is captured goes on to its end, whatever its data decides, and notes which functions
asked. Then it is undone and begun again with those functions hooked: a call of one is evaluated by
the evaluator of cfx.script, which records both branches. The nodes that this makes are computed at
once, on the tensors of the run, so that the run goes on with real results. A function that the
evaluator refuses runs as before, and the graph checks what its data decided.

A function is hooked by its code: it gets the code of a template, which asks the run that is
captured in its thread, or goes on to the function's own code. So everybody who has the function
has the hooked one, decorators and bound methods included, and other threads, torch.compile and
debuggers see the function's own code run.
"""
import contextlib
import gc
import inspect
import itertools
import threading
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.utils.checkpoint

from .. import _core
from .._glue import Name, contexts, scripting
from .._symbolic_trace import _wrapped_fns_to_patch, _wrapped_methods_to_patch
from ..graph import Graph
from ..interop import presence
from ..interpreter import Interpreter
from ..proxy import Proxy
from .given import Given
from .modes import is_grad_enabled
from .protocol import _pytree
from .witness import Witness

if TYPE_CHECKING:
    from .recorder import Recorder

_running = threading.local()  # .decider: of the run that this thread captures
_CANNOT = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_LIVE, _CHECKED = -1, -2  # PyScript.training of python/src/script/scripting.h


# ---- finding functions -------------------------------------------------------------------------


def function_of(code: types.CodeType, frame: types.FrameType) -> types.FunctionType | None:
    """A function with this code that will be called again: one that has a name in its module or in
    a class, or any other that is alive."""
    owner: Any = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    names = code.co_qualname.split(".")
    for scope in (type(owner), owner, frame.f_globals.get(names[0])):
        found = inspect.getattr_static(scope, names[-1], None)
        for step in _layers(found if len(names) > 1 or scope is owner else scope):
            if getattr(step, "__code__", None) is code:
                return step
    alive = (o for o in gc.get_referrers(code) if type(o) is types.FunctionType)
    return next((f for f in alive if f.__code__ is code), None)


def _layers(found: Any) -> Iterator[Any]:
    """A function and what its decorators wrapped."""
    seen: set[int] = set()
    todo = [found]
    while todo:
        step = todo.pop()
        if step is None or id(step) in seen or len(seen) > 50:
            continue
        seen.add(id(step))
        yield step
        todo += [getattr(step, "__func__", None), getattr(step, "__wrapped__", None)]
        if isinstance(step, types.FunctionType):
            for cell in step.__closure__ or ():
                with contextlib.suppress(ValueError):  # empty
                    if isinstance(cell.cell_contents, types.FunctionType):
                        todo.append(cell.cell_contents)


# Functions of torch whose arguments are functions that become regions of the graph.
_OF_REGIONS: list[Any] = [torch.cond, torch.while_loop]


class Askers:
    """Functions that asked for data, and are evaluated in the next run."""

    def __init__(self) -> None:
        self.functions = {f.__code__: f for f in _OF_REGIONS}
        self.refused: dict[types.CodeType, str] = {}  # those that cannot be evaluated, and why
        self._new: dict[types.CodeType, types.FunctionType] = {}
        self._seen: set[types.CodeType] = set()  # in this run

    def note(self, frame: types.FrameType | None) -> None:
        """A function asks. One that was hooked and yet asks is called in a way that the hook does
        not see, or is refused: then its caller is taken."""
        if frame is None or frame.f_code in self._seen:
            return
        self._seen.add(frame.f_code)
        at: types.FrameType | None = frame
        while at is not None and at.f_code not in _OWN:
            code = at.f_code
            if code in self._new:
                return
            known = code in self.functions or code in self.refused or code.co_flags & _CANNOT
            function = None if known or not scripting.script_is_users(
                code.co_filename) else function_of(code, at)
            if function is not None:
                self._new[code] = function
                return
            at = at.f_back

    def refuse(self, code: types.CodeType, error: Exception) -> None:
        self.refused[code] = str(error).partition("\n")[0]

    def learn(self) -> bool:
        """Whether the run that is over has found a new function."""
        new, self._new = self._new, {}
        self._seen.clear()
        self.functions.update(new)
        return bool(new)


# ---- hooks -------------------------------------------------------------------------------------


def _template(free: tuple[str, ...]) -> types.CodeType:
    """The code that a hooked function has. It must have as many free variables as its own."""
    names = ", ".join(free)
    uses = f"if 0: {names}" if free else "pass"
    source = (f"def outer({names}):\n"
              f"    def hooked(*args, __cfx_hook__, **kwargs):\n"
              f"        {uses}\n"
              f"        return __cfx_hook__(args, kwargs)\n"
              f"    return hooked\n")  # fmt: skip
    space: dict[str, Any] = {}
    exec(compile(source, __file__, "exec"), space)
    return space["outer"](*free).__code__


def deciding() -> "Decider | None":
    """What decides about calls in this thread; None if nothing is captured, or what runs is being
    computed or evaluated."""
    decider = getattr(_running, "decider", None)
    if decider is None:
        return None
    recorder = decider.recorder
    idle = recorder.evaluating or recorder.computing or recorder.quiet
    return None if idle else decider


class Hook:
    """A function with the code of a template, until it is removed."""

    def __init__(self, function: types.FunctionType) -> None:
        self.function, self.code = function, function.__code__
        self.defaults = function.__kwdefaults__
        self.twin = types.FunctionType(
            self.code, function.__globals__, function.__name__, function.__defaults__,
            function.__closure__)  # fmt: skip
        self.twin.__kwdefaults__ = self.defaults
        self.twin.__qualname__, self.twin.__module__ = function.__qualname__, function.__module__
        self.template = _template(self.code.co_freevars)
        self.signature = function.__dict__.get("__signature__")
        self.shown = self.signature or inspect.signature(self.twin)  # it is installed often

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        decider = deciding()
        if decider is None:
            return self.twin(*args, **kwargs)
        return decider.call(self, args, kwargs)

    def install(self) -> None:
        self.function.__kwdefaults__ = {**(self.defaults or {}), "__cfx_hook__": self}
        self.function.__code__ = self.template
        self.function.__signature__ = self.shown  # type: ignore[attr-defined]

    def remove(self) -> None:
        self.function.__code__ = self.code
        self.function.__kwdefaults__ = self.defaults
        if self.signature is None:
            self.function.__dict__.pop("__signature__", None)
        else:
            self.function.__signature__ = self.signature  # type: ignore[attr-defined]


class Recorded(Hook):
    """A function whose calls are nodes: one that the user wrapped, or that sets torch's random
    state, which no net sees."""

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        decider = deciding()
        if decider is None:
            return self.twin(*args, **kwargs)
        return decider.recorder.record_whole(self.function, self.twin, args, kwargs)


def apply_custom(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls an autograd.Function: how graphs call one whose backward matters."""
    if isinstance(function, Name):  # from a file that may not name it: calling it says so
        function()
    return function.apply(*args, **kwargs)


class _Custom(Recorded):
    """autograd.Function.apply: one call where its backward matters, else what its forward does."""

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        decider = deciding()
        leaves = _pytree.tree_leaves((args, kwargs))
        trains = decider is not None and is_grad_enabled() and any(
            isinstance(leaf, torch.Tensor) and _requires_grad(leaf) for leaf in leaves)
        if decider is None or not trains:
            return self.twin(*args, **kwargs)
        return decider.recorder.record_whole(apply_custom, self.twin, args, kwargs)


_checkpoint = inspect.unwrap(torch.utils.checkpoint.checkpoint)


class _Checkpoint(Recorded):
    """torch.utils.checkpoint: the function that it calls, without being computed again."""

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        decider = deciding()
        if decider is None:
            return self.twin(*args, **kwargs)
        options = {*inspect.signature(_checkpoint).parameters, "preserve_rng_state"}
        kwargs = {name: value for name, value in kwargs.items() if name not in options}
        return args[0](*args[1:], **kwargs)


class _Kernels(Recorded):
    """torch.nn.attention.sdpa_kernel: a context that is in the graph."""

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        decider = deciding()
        context = self.twin(*args, **kwargs)
        return context if decider is None else self._recorded(decider.recorder, context,
                                                              *args, **kwargs)  # fmt: skip

    @contextlib.contextmanager
    def _recorded(self, recorder: "Recorder", context: Any, backends: Any,
                  set_priority: bool = False) -> Iterator[None]:  # fmt: skip
        chosen = backends if isinstance(backends, list) else [backends]
        with context:
            recorder.follow_modes()
            token = recorder.call(contexts.enter_kernels, [b.name for b in chosen], set_priority)
            yield
            recorder.follow_modes()
            recorder.call(contexts.exit_kernels, token)


class _Refused(Recorded):
    """A function that traces what it is given by means of its own."""

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        decider = deciding()
        if decider is None:
            return self.twin(*args, **kwargs)
        decider.recorder.refuse(f"{self.function.__name__}() traces a function while the program "
                                "is captured, which cannot be done inside of each other; call the "
                                "function itself, or torch.func.jvp")  # fmt: skip


def _requires_grad(tensor: torch.Tensor) -> bool:
    return (tensor._real if isinstance(tensor, Witness) else tensor).requires_grad


_OF_CHANCE = (torch.manual_seed, torch.seed, torch.get_rng_state, torch.set_rng_state)


def _recorded() -> list[Recorded]:
    """Hooks for the functions whose calls are nodes."""
    wrapped = [space.get(name) for (_, name), space in _wrapped_fns_to_patch.items()]
    wrapped += [vars(cls).get(name) for cls, name in _wrapped_methods_to_patch]
    functions = {id(f): f for f in (*_OF_CHANCE, *wrapped) if isinstance(f, types.FunctionType)}
    apply: Any = torch.autograd.Function.apply
    hooks: list[Recorded] = [_Custom(apply.__func__),
                             _Checkpoint(torch.utils.checkpoint.checkpoint)]  # fmt: skip
    hooks += [_Refused(torch.func.linearize), _Kernels(torch.nn.attention.sdpa_kernel)]
    return [*hooks, *(Recorded(f) for f in functions.values())]


# ---- evaluating --------------------------------------------------------------------------------


class _Values(Interpreter):
    """Computes nodes of a run on its tensors."""

    foreign: dict[str, torch.Tensor]

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        found = self.foreign.get(target)
        return super().get_attr(target, args, kwargs) if found is None else found


class Evaluated(NamedTuple):
    """What the evaluator made of a call."""

    given: Given
    result: Any
    kept: tuple[Any, ...]  # what is in given.containers now


class Decider:
    """Evaluates calls of functions that ask for data, in one run."""

    def __init__(self, recorder: "Recorder", askers: Askers) -> None:
        self.recorder, self.askers = recorder, askers
        self.hooks = [Hook(f) for f in askers.functions.values()]
        self.recorded: list[Any] = _recorded()  # and whatever else is installed for a run
        self.evaluated: set[types.CodeType] = set()
        self.useless: dict[types.CodeType, str] = {}  # their results are truths of data
        self.originals = presence.OriginalsRun(lambda: deciding() is not None)

    def install(self) -> None:
        """Hooks the functions, in this thread."""
        _running.decider = self
        for hook in (*self.recorded, *self.hooks):
            hook.install()
        self.originals.install()

    def remove(self) -> None:
        _running.decider = None
        self.originals.remove()
        for hook in (*self.hooks, *self.recorded):
            hook.remove()

    def _evaluate_unhooked(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The evaluator reads the functions' own code."""
        for hook in (*self.hooks, *self.recorded):
            hook.remove()
        self.recorder.evaluating = True
        self.recorder.env, self.recorder.lent = {}, {}
        try:
            return self._evaluate(function, args, kwargs)
        finally:
            self.recorder.evaluating = False
            for hook in (*self.recorded, *self.hooks):
                hook.install()

    def call(self, hook: Hook, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call of a function that asks for data."""
        recorder = self.recorder
        if hook.code in self.askers.refused:
            return hook.twin(*args, **kwargs)
        recorder.follow_modes()
        last = self._last()
        guards = list(recorder.pending), set(recorder.assumed)
        count = recorder.data_guards
        evaluated = None
        try:
            evaluated = self._evaluate_unhooked(hook.function, args, kwargs)
            _core._script_name(recorder.tracer.graph, last)
            recorder.result_of = f"the result of {hook.function.__name__}()"
            computed = self._computed(last, evaluated)
        except Exception as error:  # a refusal, or what the program raises: then it raises again
            self._forget(last)
            if evaluated is not None:
                evaluated.given.put_back()
            recorder.pending, recorder.assumed = guards
            self.askers.refuse(hook.code, error)
            recorder.result_of = ""
            return hook.twin(*args, **kwargs)
        recorder.result_of = ""
        self.evaluated.add(hook.code)
        if recorder.data_guards > count:
            self.useless[hook.code] = "it returns something that data decides and Python needs"
        return computed

    def _last(self) -> Any:
        return next(iter(reversed(self.recorder.tracer.graph.nodes)))

    def _forget(self, last: Any) -> None:
        """Erases the nodes behind one, which an evaluation has left."""
        graph = self.recorder.tracer.graph
        for node in reversed(graph.nodes):
            if node is last:
                break
            graph.erase_node(node)
        _core._script_name(graph, last)

    def _evaluate(self, function: Callable[..., Any], args: tuple,
                  kwargs: dict[str, Any]) -> Evaluated:  # fmt: skip
        tracer = self.recorder.tracer
        for training in (_LIVE, _CHECKED):
            given = Given(args, kwargs, lambda leaf: Proxy(tracer.create_arg(leaf), tracer))
            called: Any = function, given.args, given.kwargs
            if function in _OF_REGIONS:  # they need a function around them
                called = scripting.call_inside, called, {}
            if given.containers:
                called = scripting.call_keeping, (given.containers, *called), {}
            mode = scripting.Recorder(tracer)
            last = self._last()
            try:
                result = _core._evaluate(
                    tracer, lambda: _core._script_call(tracer, *called), mode, 0, 0, training)
                return Evaluated(given, *(result if given.containers else (result, ())))
            except Exception:
                given.put_back()
                if not mode.reads_flags or training == _CHECKED:
                    raise
                self._forget(last)
        raise AssertionError("the last way raises")

    def _computed(self, last: Any, evaluated: Evaluated) -> Any:
        """A result of the evaluator, with the tensors that the new nodes compute in this run."""
        recorder = self.recorder
        graph: Any = recorder.tracer.graph
        values = _Values(recorder.tracer.root, False, graph)
        values.foreign, values.env = recorder.foreign, recorder.env
        behind = itertools.takewhile(lambda n: n is not last, reversed(recorder.tracer.graph.nodes))
        new = list(behind)[::-1]
        self._save(new)
        with recorder.undisturbed():
            for node in new:
                values.env[node] = values.run_node(node)
        made: dict[Any, Any] = recorder.lent
        recorder.env, recorder.lent = {}, {}

        def witness(proxy: Any) -> Any:
            node = proxy.node
            if node not in made:
                made[node] = recorder.wrap(node, values.env[node], {}, counted=True)
            return made[node]

        return evaluated.given.finish(evaluated.result, evaluated.kept, witness)

    def _save(self, nodes: list[Any]) -> None:
        """Keeps what the nodes may write to."""
        recorder, root = self.recorder, self.recorder.tracer.root
        for node in nodes:
            for region in _regions(node):
                self._save(list(region.nodes))
            if node.op == "call_module":
                recorder.undo.before_module(root.get_submodule(node.target))
            elif node.op == "get_attr":
                found = recorder.foreign.get(node.target)
                found = _core._get_attr(root, node.target) if found is None else found
                if isinstance(found, torch.Tensor) and not isinstance(found, torch.nn.Parameter):
                    recorder.undo.before_write(found)


def _regions(node: Any) -> list[Any]:
    return [arg for arg in node.args if isinstance(arg, Graph)]


_OWN = frozenset((Hook.__call__.__code__, Recorded.__call__.__code__, Decider.call.__code__))
