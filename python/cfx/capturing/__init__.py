"""Capture: a model runs once on example inputs, for real, and is written down while it runs.

    gm = cfx.capture(model, *inputs, **kwargs)

Python runs Python: nothing of the language is interpreted. Tensors of the run carry their node in
the graph, sizes are symbolic, and whatever plain answer the program received (a comparison of
sizes, the truth of a tensor) is a guard that the graph checks when it runs. See docs/capture.md.

The files, in the order of a run: run.py calls the model on witnesses (witness.py), recorder.py
writes down what they do, guards.py what was assumed, undo.py puts everything back, and module.py is
what the caller gets, with the structure.py of its arguments and results.
"""
from typing import Any

import torch

from .._glue.listing import public_names
from .guards import CaptureError, Guard
from .module import CapturedModule
from .run import Run

__all__ = ["CaptureError", "CapturedModule", "Guard", "capture"]


def capture(model: torch.nn.Module, *args: Any, **kwargs: Any) -> CapturedModule:
    """Runs a model once on example inputs and returns what it did as a GraphModule with the
    signature of `forward`. Sizes stay symbolic; what the run assumed is in `.guards`, and is
    checked when the module is called. The model, its inputs and the random states are left as they
    were."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"capture needs a torch.nn.Module, not {type(model).__qualname__}")
    return Run(model, args, kwargs).run()


__dir__ = public_names(globals())
