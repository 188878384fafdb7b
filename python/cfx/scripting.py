"""cfx.script: captures a program from its source, including control flow that depends on data.

The evaluator is C (src/script/evaluate), and so are the Python objects that it works on
(python/src/script). This file passes a function or module to it.
"""
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, overload

import torch

from . import _core
from ._glue import scripting
from ._glue.scripting import ScriptError
from ._glue.listing import public_names
from ._symbolic_trace import Tracer
from .graph_module import GraphModule

__all__ = ["ScriptError", "script"]


def _name_of(root: Any) -> str:
    if isinstance(root, torch.nn.Module):
        return type(root).__name__
    name = getattr(root, "__name__", type(root).__name__)
    return name if name.isidentifier() else "Scripted"


def _root_of(root: Any, tracer: Tracer) -> Any:
    """What the tracer captures: a module with the name of its method, a function or a method."""
    if isinstance(root, torch.nn.Module):
        return root
    if isinstance(root, types.FunctionType):
        outer = root.__qualname__.rpartition(".")[0]
        if outer and not outer.endswith("<locals>") and "self" in root.__code__.co_varnames[:1]:
            raise TypeError(
                f"cfx.script got the unbound method '{root.__qualname__}'; pass the bound method "
                "(cfx.script(model.method)), or the module itself"
            )
        return root
    if not isinstance(root, types.MethodType) and not isinstance(root, type):
        method = getattr(type(root), "__call__", None)
        if isinstance(method, types.FunctionType):  # an object that is called
            root = types.MethodType(method, root)
    if not isinstance(root, types.MethodType):
        raise TypeError(
            f"cfx.script captures modules, functions and methods written in Python, got {root!r}; "
            "wrap anything else in a function"
        )
    owner, name = root.__self__, root.__name__
    if isinstance(owner, torch.nn.Module) and getattr(type(owner), name, None) is root.__func__:
        tracer.traced_func_name = name
        return owner
    return root


_LIVE, _CHECKED = -1, -2  # PyScript.training of python/src/script/scripting.h


def _script(root, concrete_args, tracer, most_calls, most_rounds, training):
    tracer = Tracer() if tracer is None else tracer
    mode = scripting.Recorder(tracer)
    what = _root_of(root, tracer)
    tracer._hooked = what is root and isinstance(root, torch.nn.Module)
    fixed = _LIVE if training is None else int(bool(training))
    try:
        graph = tracer._script(what, concrete_args, mode, most_calls, most_rounds, fixed)
    except Exception as error:
        if training is not None or not mode.reads_flags:
            raise
        graph, mode.reason = None, str(error).partition("\n")[0]
    if graph is None:  # the program cannot be captured for both modes: for the present one
        graph = tracer._script(what, concrete_args, mode, most_calls, most_rounds, _CHECKED)
    return tracer._module(graph, _name_of(root))


@overload
def script(
    root: Callable[..., Any], concrete_args: dict[str, Any] | None = None, *,
    tracer: Tracer | None = None, most_calls: int = 0, most_rounds: int = 0,
    training: bool | None = None,
) -> GraphModule: ...  # fmt: skip
@overload
def script(
    root: None = None, concrete_args: dict[str, Any] | None = None, *,
    tracer: Tracer | None = None, most_calls: int = 0, most_rounds: int = 0,
    training: bool | None = None,
) -> Callable[[Callable[..., Any]], GraphModule]: ...  # fmt: skip
def script(
    root: Callable[..., Any] | None = None, concrete_args: dict[str, Any] | None = None, *,
    tracer: Tracer | None = None, most_calls: int = 0, most_rounds: int = 0,
    training: bool | None = None,
) -> Any:  # fmt: skip
    """Captures a module or function from its source, as a GraphModule.

    Unlike `symbolic_trace` it captures both branches of an `if`, and `while` and `for` loops, where
    they depend on data: they become `cfx.cond`, `cfx.while_loop` and `cfx.for_loop`. It needs
    neither example inputs nor annotations. Everything that does not depend on inputs is evaluated,
    as in a trace.

    `script` can also be used as a decorator. `concrete_args` fixes inputs, by name. `tracer`
    decides which modules are leaves, as in a trace. `most_calls` limits the depth of nested calls
    (200), `most_rounds` the iterations of a loop that is unrolled (100,000).

    `self.training` is a value of the graph, which `train()` and `eval()` of the result switch. A
    program that can be captured in one mode only is captured in the present one, and the graph
    checks the mode. `training` fixes what the program reads to True or False.
    """
    if root is None:
        return functools.partial(
            script, concrete_args=concrete_args, tracer=tracer, most_calls=most_calls,
            most_rounds=most_rounds, training=training,
        )  # fmt: skip
    return _script(root, concrete_args, tracer, most_calls, most_rounds, training)


scripting.replaced[script] = scripting.script_inside

__dir__ = public_names(globals())
