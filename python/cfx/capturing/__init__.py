"""Capture: a model runs once on example inputs, for real, and is written down while it runs.

    gm = cfx.capture(model, *inputs, **kwargs)

Python runs Python: nothing of the language is interpreted. Tensors of the run carry their node in
the graph, sizes are symbolic, and whatever plain answer the program received (a comparison of
sizes, the truth of a tensor) is a guard that the graph checks when it runs. See docs/capture.md.

The files, in the order of a run: run.py takes the arguments apart (structure.py, boundary.py) and
calls the model on witnesses (witness.py) and numbers (numbers.py); the nets (net.py, witness.py)
catch what they do, recorder.py writes it down, guards.py says what was assumed, decide.py evaluates
functions whose control flow depends on data, undo.py puts everything back. module.py is what the
caller gets.
"""
import threading
from collections.abc import Callable
from typing import Any

import torch

from .._glue.listing import public_names
from ..scripting import script
from .decide import Askers
from .guards import CaptureError, Guard
from .module import CapturedModule, module_of
from .run import Knowledge, Options, Run

__all__ = ["CaptureError", "CapturedModule", "Guard", "capture"]

_MOST_RUNS = 12  # each finds at least one more function that asks for data
_turns = threading.RLock()  # two runs must not change the same modules and functions


class _Function(torch.nn.Module):
    """The root of a function: it has no weights of its own."""

    def forward(self) -> None: ...


def _name_of(program: Any) -> str:
    if isinstance(program, torch.nn.Module):
        return type(program).__name__
    name = getattr(program, "__name__", type(program).__name__)
    return name if name.isidentifier() else "Captured"


def capture(model: Callable[..., Any], *args: Any, dynamic: Any = None,
            **kwargs: Any) -> CapturedModule:  # fmt: skip
    """Runs a module or function once on example inputs and returns what it did as a GraphModule
    with the same signature. Sizes and number arguments stay symbolic; what the run assumed is in
    `.guards`, and is checked when the module is called. Functions whose control flow depends on
    data are captured from their source, with all branches. The model, its inputs and the random
    states are left as they were.

    `dynamic` says which sizes and numbers may change: all by default, none if it is False. A dict
    says it for single arguments, by name: {"x": {0: True, 1: False}}. True: capture fails where
    the program would need the value. False: the value of the example is fixed."""
    if not callable(model):
        raise TypeError(f"capture needs a module or a function, not {type(model).__qualname__}")
    is_module = isinstance(model, torch.nn.Module)
    root = model if is_module else getattr(model, "__self__", None)
    root = root if isinstance(root, torch.nn.Module) else _Function()
    function: Any = model.forward if is_module else model  # type: ignore[attr-defined]
    known, options = Knowledge(), Options(dynamic)
    with _turns:
        for _ in range(_MOST_RUNS):
            run = Run(root, function, args, kwargs, known, options)
            captured = run.run()
            if not known.learn(run):
                break
            scripted = _scripted(model, function, known.askers)
            if scripted is not None:
                captured = scripted
                break
    return module_of(root, captured, _name_of(model))


def _scripted(model: Any, function: Any, askers: Askers) -> Any:
    """The whole program from its source, if it is itself what asks for data; None if the evaluator
    refuses it."""
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None or askers.functions.get(code) is not function:
        return None
    try:
        return script(model)
    except Exception as error:
        askers.refuse(code, error)
        return None


__dir__ = public_names(globals())
