"""The module that `capture` returns."""
from collections.abc import Iterable
from typing import Any

from ..graph_module import GraphModule
from .guards import CaptureError, Guard


class CapturedModule(GraphModule):
    """What `capture` returns: a GraphModule that checks what was assumed."""

    @property
    def guards(self) -> tuple[Guard, ...]:
        """What was assumed while the model was captured, in the order of the run."""
        return self._guards

    def _enter(self, *values: Any) -> list[Any]:
        if self.training != self._captured_training:
            mode = "training" if self._captured_training else "evaluation"
            raise CaptureError(f"the model was captured in {mode} mode; capture it again in the "
                               "other mode, or switch with .train() and .eval()")  # fmt: skip
        return self._graph._codegen.structure.enter(values)

    def _leave(self, results: Iterable[Any]) -> Any:
        return self._graph._codegen.structure.leave(results)
