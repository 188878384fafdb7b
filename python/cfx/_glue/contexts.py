"""What the world of scripts asks about PyTorch's modes: gradients, inference, autocast, settings.

`with torch.no_grad():` and its like become calls that enter and leave: see
src/analysis/context_pair.c. A question such as torch.is_grad_enabled() has a known answer inside
such a block; elsewhere it is a call that the graph makes.

Nothing here is for users. cfx._core calls these functions by name, through cfx._glue.
"""
import ast
import contextlib
import functools
import inspect
import sys
import textwrap
from typing import Any

import torch

from .. import _glue
from .tracing import is_library

_enter_autocast = torch.amp.autocast_mode._enter_autocast
_exit_autocast = torch.amp.autocast_mode._exit_autocast
_enter_inference = torch.autograd.grad_mode._enter_inference_mode
_exit_inference = torch.autograd.grad_mode._exit_inference_mode
set_mode = torch._C._set_grad_enabled
_GRAD = (torch.no_grad, torch.enable_grad, torch.set_grad_enabled)
KINDS = (*_GRAD, torch.inference_mode, torch.autocast)


def enter_kernels(names: list[str], set_priority: bool) -> Any:
    """Enters torch.nn.attention.sdpa_kernel, with the names of the kernels; for exit_kernels."""
    kernels = [getattr(torch.nn.attention.SDPBackend, name) for name in names]
    context = torch.nn.attention.sdpa_kernel(kernels, set_priority)
    context.__enter__()
    return context


def exit_kernels(context: Any) -> None:
    context.__exit__(None, None, None)


class Refusal(NotImplementedError):
    """What cfx cannot capture; the evaluator adds the line."""


# ---- questions and settings --------------------------------------------------------------------


def _autocast_key(what, device="cuda"):
    return what, torch.device(device).type


# {function: the key of its answer in Contexts.stack, or what makes it of the arguments}
_ASKED: dict[Any, Any] = {
    torch.is_grad_enabled: "grad",
    torch.is_inference_mode_enabled: "inference",
    torch.is_autocast_cache_enabled: "cache",
    torch.is_autocast_enabled: functools.partial(_autocast_key, "enabled"),
    torch.is_autocast_cpu_enabled: ("enabled", "cpu"),
    torch.get_autocast_dtype: functools.partial(_autocast_key, "dtype"),
    torch.get_autocast_cpu_dtype: ("dtype", "cpu"),
    torch.get_autocast_gpu_dtype: ("dtype", "cuda"),
}  # fmt: skip
_ASKED |= dict.fromkeys((
    torch.get_default_dtype, torch.get_default_device, torch.initial_seed, torch.get_num_threads,
    torch.get_num_interop_threads, torch.are_deterministic_algorithms_enabled,
    torch.is_deterministic_algorithms_warn_only_enabled, torch.get_deterministic_debug_mode,
    torch.is_anomaly_enabled, torch.is_anomaly_check_nan_enabled, torch.is_warn_always_enabled,
    torch.get_float32_matmul_precision,
))  # fmt: skip
_SETTINGS = frozenset((
    set_mode, torch.set_default_dtype, torch.set_default_device, torch.set_default_tensor_type,
    torch.set_num_threads, torch.use_deterministic_algorithms, torch.set_deterministic_debug_mode,
    torch.set_warn_always, torch.set_float32_matmul_precision, torch.set_autocast_enabled,
    torch.set_autocast_dtype, torch.set_autocast_cache_enabled, torch.set_autocast_cpu_enabled,
    torch.set_autocast_cpu_dtype, torch.set_autocast_gpu_dtype, torch.clear_autocast_cache,
))  # fmt: skip
MODES = frozenset(_ASKED) | _SETTINGS


def _effects(context):
    """What holds inside a context: {key: value}."""
    if isinstance(context, torch.autocast):
        device = context.device
        return {("enabled", device): context._enabled, ("dtype", device): context.fast_dtype,
                "cache": context._cache_enabled}  # fmt: skip
    if isinstance(context, torch.inference_mode):
        return {"inference": context.mode, "grad": not context.mode}
    return {"grad": isinstance(context, torch.enable_grad) or getattr(context, "mode", False)}


def _settings():
    """What a program may set behind the evaluator's back, as a library function does."""
    return (
        torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"),
        torch.is_autocast_enabled("cuda"), torch.get_default_dtype(),
    )  # fmt: skip


class _Level:
    """What holds inside a `with` statement."""

    def __init__(self, context):
        self.context, self.effects, self.asked = context, _effects(context), False


class Contexts:
    """The contexts that a program has entered, while it is captured."""

    def __init__(self, tracer: Any) -> None:
        self.tracer = tracer
        self.entered: dict[int, tuple] = {}  # {id: (context, what leaves it, its arguments)}
        self.stack: list[_Level] = []  # of the `with` statements that run
        self.made: Any = None  # a set_grad_enabled(...) that may be a call or the head of a `with`
        self.settings = _settings()

    def record(self, function, args=(), kwargs={}):
        return self.tracer.create_proxy("call_function", function, args, kwargs)

    def _enter(self, context):
        """Records the start of a context; returns how its end is recorded."""
        if isinstance(context, torch.autocast):
            how = (context.device, context.fast_dtype, context._enabled, context._cache_enabled)
            return _exit_autocast, (self.record(_enter_autocast, how),)
        if isinstance(context, torch.inference_mode):
            return _exit_inference, (self.record(_enter_inference, (context.mode,)),)
        before = self.record(torch.is_grad_enabled)
        self.record(set_mode, (_effects(context)["grad"],))
        return set_mode, (before,)

    def enter(self, context):
        """`with`: records calls that have the effect."""
        if not isinstance(context, torch.set_grad_enabled):
            self.entered[id(context)] = context, *self._enter(context)
        elif context is not self.made:  # one that was made earlier
            self.record(set_mode, (context.mode,))
        self.made = None
        self.stack.append(_Level(context))
        return context

    def leave(self, context):
        self._settle()
        levels = [i for i, level in enumerate(self.stack) if level.context is context]
        if levels:
            del self.stack[levels[-1] :]
        self.record(*self.entered[id(context)][1:])
        return False

    def make_grad_mode(self, class_, args, kwargs):
        """torch.set_grad_enabled(mode), which has its effect as soon as it is made."""
        self._settle()
        context = class_.__new__(class_)
        context.mode = args[0] if args else kwargs["mode"]
        self.entered[id(context)] = context, *self._enter(context)
        self.made = context
        return context

    def _settle(self):
        """What set_grad_enabled(...) made is not the head of a `with`: it holds from there on."""
        if self.made is not None:
            self.made = None
            self.forget()

    def ask(self, function, args, kwargs):
        """The answer to a question, if a context around it gives it; else a recorded call."""
        self._settle()
        if function in _SETTINGS:
            self.forget()
            return self.record(function, args, kwargs)
        key = _ASKED[function]
        if isinstance(key, functools.partial):
            key = key(*args, **kwargs)
        for level in reversed(self.stack) if key is not None else ():
            if key in level.effects:
                level.asked = True
                return level.effects[key]
        return self.record(function, args, kwargs)

    def forget(self):
        """A mode was set other than by `with`: in a loop, the next round has it, too."""
        if any(level.asked for level in self.stack):
            raise Refusal(
                "this sets a mode inside a `with` block whose mode was asked for; set it by a "
                "`with` statement of its own, as in `with torch.set_grad_enabled(...):`"
            )
        for level in self.stack:
            level.effects.clear()

    def switched(self, mode):
        """A function that is not evaluated, as one of a library, sets whether there are gradients:
        by a context of torch, whose start and end are recorded, or else as it is."""
        made, frame = None, sys._getframe(2)
        while frame is not None and is_library(frame.f_code.co_filename):
            context, method = frame.f_locals.get("self"), frame.f_code.co_name
            if isinstance(context, KINDS) and method in ("__enter__", "__exit__"):
                return self._switch(context, method)
            if made is not None:
                break
            made = context if isinstance(context, torch.set_grad_enabled) else None
            frame = frame.f_back
        if made is not None:
            self.entered[id(made)] = made, *self._enter(made)
        else:
            self.forget()
            self.record(set_mode, (mode,))

    def _switch(self, context, method):
        if method == "__exit__":
            if id(context) in self.entered:
                self.leave(context)
            return
        if id(context) not in self.entered or not isinstance(context, torch.set_grad_enabled):
            self.entered[id(context)] = context, *self._enter(context)
        self.stack.append(_Level(context))

    def check(self):
        """Refuses a mode that is set for real while the program is captured: the graph would not
        set it."""
        if _settings() != self.settings:
            raise Refusal(
                "a function or context manager that is not captured from its source has set "
                "autocast, inference mode or the default dtype; set it by a `with` statement in "
                "the captured program, or cfx.wrap the function"
            )


# ---- what C asks -------------------------------------------------------------------------------


def script_mode(job):
    mode, function, args, kwargs = job
    return mode.contexts.ask(function, args, kwargs)


def script_set_grad_enabled(job):
    mode, class_, args, kwargs = job
    return mode.contexts.make_grad_mode(class_, args, kwargs)


def script_context(job):
    """`with torch.no_grad():` and its like, as nodes: generated code has the effect then."""
    mode, context, method = job
    if method == "__enter__":
        return mode.contexts.enter(context)
    if method != "__exit__" or id(context) not in mode.contexts.entered:
        return NotImplemented
    return mode.contexts.leave(context)


# Contexts of libraries that change nothing that a graph computes.
_HARMLESS = (
    torch.autograd.profiler.record_function, torch.autograd.profiler.profile,
    torch.profiler.profile, contextlib.nullcontext, contextlib.suppress,
)  # fmt: skip


def script_manager(context):
    """Refuses a context manager of torch that would only have an effect during capture."""
    function = getattr(context, "func", None)
    if isinstance(context, contextlib._GeneratorContextManager):
        torchs = is_library(function.__code__.co_filename)
        name = f"{function.__module__}.{function.__qualname__}"
    else:
        torchs = type(context).__module__.partition(".")[0] == "torch"
        name = f"{type(context).__module__}.{type(context).__qualname__}"
    if torchs and not isinstance(context, _HARMLESS):
        raise Refusal(
            f"the context manager {name} cannot be captured: it would have its effect during "
            "capture, not when the graph runs; cfx.wrap the function with this `with` statement"
        )
    return None


def _may_catch(tree):
    """Whether a generator handles what is raised where it yields."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Try, getattr(ast, "TryStar", ast.Try))) and node.handlers:
            return True
        if isinstance(node, ast.With):
            names = [ast.unparse(item.context_expr) for item in node.items]
            if not all(name.startswith("torch.") for name in names):
                return True
    return False


def _generator_catches(function):
    try:
        return _may_catch(ast.parse(textwrap.dedent(inspect.getsource(function))))
    except (OSError, SyntaxError, TypeError):
        return True  # without a source, it may


def script_catches(context):
    """The exceptions that a context manager catches: classes, True for any, or None."""
    if isinstance(context, contextlib.suppress):
        return tuple(context._exceptions)
    if isinstance(context, contextlib._GeneratorContextManager):
        function = getattr(context, "func", None)  # none once it is entered
        return function is not None and _generator_catches(function)
    if isinstance(context, contextlib.ExitStack):
        inside = [getattr(f, "__self__", None) for _, f in context._exit_callbacks]
        return any(not isinstance(o, KINDS + _HARMLESS[:-1]) for o in inside)
    return None


def script_entered(mode):
    """Python has run a user-defined context manager, which was not captured from its source."""
    mode.contexts.check()
    return None


# ---- decorators; helpers that are evaluated: they have a source ---------------------------------


def call_in(context, fn, *args, **kwargs):
    with context:
        return fn(*args, **kwargs)


def call_in_new(make, fn, *args, **kwargs):
    with make():
        return fn(*args, **kwargs)


def script_decorated(fn):
    """A function that a context of torch's decorates: (helper, context, function); else None."""
    inner = getattr(fn, "__wrapped__", None)
    if inner is None or not is_library(fn.__code__.co_filename):
        return None
    for cell in fn.__closure__:
        context = cell.cell_contents
        owner = getattr(context, "__self__", None)
        if isinstance(owner, torch.set_grad_enabled):
            return call_in_new, functools.partial(torch.set_grad_enabled, owner.mode), inner
        if isinstance(context, KINDS):
            return call_in, context, inner
        if isinstance(owner, KINDS):  # its method `clone`
            return call_in_new, context, inner
    return None


_glue.install(
    script_mode, script_set_grad_enabled, script_context, script_manager, script_entered,
    script_decorated, script_catches,
)  # fmt: skip
