"""The module that `capture` returns."""
import functools
from collections.abc import Iterable
from typing import Any

import torch

from ..graph_module import GraphModule
from .boundary import Call
from .guards import CaptureError, Guards
from .run import Captured
from .state import assign, read_attribute


class CapturedModule(GraphModule):
    """What `capture` returns: a GraphModule that checks what was assumed."""

    @property
    def guards(self) -> Guards:
        """What was assumed while the model was captured, in the order of the run."""
        return self._guards

    def _enter(self, values: tuple) -> Call:
        if self._captured_training not in (None, self.training):
            mode = "training" if self._captured_training else "evaluation"
            raise CaptureError(f"the model was captured in {mode} mode; capture it again in the "
                               "other mode, or switch with .train() and .eval()")  # fmt: skip
        boundary = self._graph._codegen.boundary
        why = boundary.refusal_of_state(functools.partial(read_attribute, self))
        if why is not None:
            raise CaptureError(f"{why}; capture it again, or with recapture=True")
        return boundary.enter(values)

    def _leave(self, results: Iterable[Any], call: Call) -> Any:
        boundary = self._graph._codegen.boundary
        return boundary.leave(results, call, functools.partial(assign, self))


def module_of(root: torch.nn.Module, captured: Captured | GraphModule, name: str) -> CapturedModule:
    """The module around a graph, with the parts of the model that the graph names."""
    if isinstance(captured, GraphModule):  # from the source: nothing is assumed
        module = CapturedModule(captured, captured.graph, name)
        module._guards, module._captured_training = Guards(), None
        return module
    try:
        for path, tensor in captured.foreign.items():
            setattr(root, path, tensor)
        module = CapturedModule(root, captured.graph, name)
    finally:
        for path in captured.foreign:
            delattr(root, path)
    for slot in captured.boundary.slots:
        assign(module, slot.path, slot.initial())
    module._guards = Guards(captured.guards)
    module._captured_training = root.training
    module.train(root.training)
    return module
