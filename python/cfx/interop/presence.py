"""What code that knows only torch.fx sees while cfx traces it.

Models and libraries ask torch whether they are being traced: isinstance(x, torch.fx.Proxy),
torch.fx._symbolic_trace.is_fx_tracing(), its flag. While cfx traces in a thread, they get the
answers that they would get under torch.fx. Nothing here imports torch.fx: what is not loaded yet,
nobody has asked.
"""
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import torch

from .. import _core, _glue
from .. import proxy as _ours

_FLAG = "_is_fx_tracing_flag"
_TRACE = "torch.fx._symbolic_trace"


# Modules of torch.fx that ask whether an object is one of torch.fx's nodes where they read the
# arguments of a graph's nodes. With those of cfx they would compute nonsense; they are refused.
_READERS = frozenset(
    f"torch.fx.{name}"
    for name in (
        "graph", "interpreter", "passes.split_module", "passes.split_utils",
        "passes.utils.fuser_utils", "passes.infra.partitioner", "subgraph_rewriter",
        "passes.utils.matcher_utils", "passes.reinplace", "experimental.const_fold",
    )
)  # fmt: skip
_core._register(
    fx_readers=_READERS,
    fx_node_class=getattr(sys.modules.get("torch.fx.node"), "Node", None),
)


def seen_class(cls: type) -> type:
    """The class that proxies of a class show: one made of it and of its counterpart in torch.fx, so
    that isinstance and functools.singledispatch find either. It has no objects."""
    theirs = sys.modules.get("torch.fx.proxy")
    if theirs is None:
        return cls
    name = next(c.__name__ for c in cls.__mro__ if c is getattr(_ours, c.__name__, None))
    body = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    seen = type(cls.__name__, (cls, getattr(theirs, name)), body)
    setattr(cls, "__cfx_seen__", seen)  # where the core looks first
    return seen


_glue.install(seen_class)


class _TraceModule(types.ModuleType):
    """torch.fx._symbolic_trace with a flag that also tells whether cfx traces in this thread. What
    is assigned while it does concerns that trace only; torch.fx's own functions keep theirs."""

    @property
    def _is_fx_tracing_flag(self) -> bool:
        return _core._is_tracing() or vars(self)[_FLAG]

    @_is_fx_tracing_flag.setter
    def _is_fx_tracing_flag(self, value: bool) -> None:
        if _core._is_tracing() or _core._in_trace():
            _core._set_tracing(value)
        else:
            vars(self)[_FLAG] = value


# The code that torch.fx's functions have while a trace runs. What it calls is a default value of
# the function, as in cfx._symbolic_trace.


def _template(*, __cfx_flag__):
    return __cfx_flag__()


def _is_symbolic() -> bool:
    asked_by = sys._getframe(2).f_globals.get("__name__", "")
    if asked_by.startswith("torch._dynamo.") and _core._is_tracing():
        return False  # it would refuse: torch.fx cannot trace what it has compiled, but cfx can
    return getattr(sys.modules[_TRACE], _FLAG) and not torch.compiler.is_compiling()


def appear() -> None:
    """Arranges that torch.fx's questions are answered for cfx, once torch.fx is loaded."""
    theirs = sys.modules.get(_TRACE)
    if theirs is None or isinstance(theirs, _TraceModule) or not hasattr(theirs, "is_fx_tracing"):
        return
    _core._register(fx_globals=vars(theirs))
    theirs.__class__ = _TraceModule
    answers = {
        "is_fx_tracing": lambda: getattr(theirs, _FLAG),
        "is_fx_symbolic_tracing": _is_symbolic,
    }
    hooks = []
    for name, answer in answers.items():
        function = vars(theirs).get(name)
        if isinstance(function, types.FunctionType) and not function.__code__.co_freevars:
            function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), "__cfx_flag__": answer}
            hooks.append((function, _template.__code__))
    _core._register(flag_hooks=tuple(hooks))


def is_scripted(o: Any) -> bool:
    """Whether something is a module of TorchScript, or a method of one: it has no Python."""
    if isinstance(o, torch.nn.Module):
        return any(cls.__name__ == "ScriptModule" for cls in type(o).__mro__)
    return isinstance(o, torch._C.ScriptMethod)


class GeneralCode:
    """While this is installed, torch.jit.is_tracing() is true in this thread. Models ask that
    before they take a way that holds for the present sizes or data alone. One at a time."""

    def __init__(self) -> None:
        self.function: Any = torch.jit.is_tracing
        self.code, self.defaults = self.function.__code__, self.function.__kwdefaults__

    def install(self) -> None:
        thread = threading.get_ident()
        plain = types.FunctionType(self.code, self.function.__globals__)
        self.function.__kwdefaults__ = {
            "__cfx_flag__": lambda: threading.get_ident() == thread or plain()
        }
        self.function.__code__ = _template.__code__

    def remove(self) -> None:
        self.function.__code__, self.function.__kwdefaults__ = self.code, self.defaults


class OriginalsRun:
    """While this is installed, functions that torch.jit.script made run as the Python that they
    were made from, where `applies()`. Modules that it made do not have their Python any more."""

    def __init__(self, applies: Callable[[], bool]) -> None:
        self.applies = applies
        self.scripted: Any = torch._C.ScriptFunction
        self.plain = vars(self.scripted)["__call__"]

    def install(self) -> None:
        plain, applies = self.plain, self.applies

        def call(function: Any, *args: Any, **kwargs: Any) -> Any:
            original = getattr(function, "_torchdynamo_inline", None)  # as torch.compile finds it
            if original is None or not applies():
                return plain(function, *args, **kwargs)
            return original(*args, **kwargs)

        self.scripted.__call__ = call

    def remove(self) -> None:
        self.scripted.__call__ = self.plain
