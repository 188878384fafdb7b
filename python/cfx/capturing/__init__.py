"""Capture: a model runs once on example inputs, for real, and is written down while it runs.

    gm = cfx.capture(model, *inputs, **kwargs)

Python runs Python: nothing of the language is interpreted. Tensors of the run carry their node in
the graph, sizes are symbolic, and whatever plain answer the program received (a comparison of
sizes, the truth of a tensor) is a guard that the graph checks when it runs. See docs/capture.md.

The files, in the order of a run: run.py takes the arguments apart (structure.py, boundary.py) and
calls the model on witnesses (witness.py) and numbers (numbers.py); the nets (net.py, witness.py)
catch what they do, recorder.py writes it down, guards.py says what was assumed, decide.py evaluates
functions whose control flow depends on data (given.py: their arguments), caches.py stands in for
functools.lru_cache, undo.py and surroundings.py put everything back. module.py is what the caller
gets; a module that comes from a file (stored.py) needs nothing of what captures programs, which is
therefore imported when somebody asks for it.
"""
import functools
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._glue.listing import public_names
from .guards import CaptureError, Guard
from .installed import call_with
from .module import CapturedModule, module_of
from .turns import turns

if TYPE_CHECKING:
    from .decorator import function
    from .report import Report, explain

__all__ = ["CaptureError", "CapturedModule", "Guard", "Report", "capture", "explain", "function"]


def capture(
    model: Callable[..., Any], *args: Any, dynamic: Any = None, recapture: bool = False,
    modes: str = "current", **kwargs: Any,
) -> CapturedModule:  # fmt: skip
    """Runs a module or function once on example inputs and returns what it did as a GraphModule
    with the same signature. Sizes and number arguments stay symbolic; what the run assumed is in
    `.guards`, and is checked when the module is called. Functions whose control flow depends on
    data are captured from their source, with all branches. The model, its inputs and the random
    states are left as they were.

    `dynamic` says which sizes and numbers may change: all by default, none if it is False. A dict
    says it for single arguments, by name: {"x": {0: True, 1: False}}. True: capture fails where
    the program would need the value. False: the value of the example is fixed.

    With `recapture`, a call for which no graph holds captures another one. The graph for the other
    mode, training or evaluation, is captured when it is needed, or at once if `modes` is "both"."""
    if modes not in ("current", "both"):
        raise ValueError(f'modes is "current" or "both", not {modes!r}')
    from .program import Program
    from .run import Options

    program = Program(model, Options(dynamic))
    with turns:
        module = module_of(program, program.capture(args, kwargs), recapture)
        if modes == "both" and module._settings.paths:
            call_with([_OtherMode(module)], functools.partial(
                module._captured_again, args, kwargs, CaptureError()))  # fmt: skip
    return module


class _OtherMode:
    """A module that is put into its other mode, training or evaluation, for some time."""

    def __init__(self, module: CapturedModule) -> None:
        self.module = module
        self.before = [(m, m.training) for m in module.modules()]

    def install(self) -> None:
        self.module.train(not self.module.training)

    def remove(self) -> None:
        for module, training in self.before:
            module.training = training


_LAZY = {"Report": "report", "explain": "report", "function": "decorator"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    return value


__dir__ = public_names(globals())
