"""PassBase: the interface of passes that are objects; PassResult: what they give back."""
import abc
from typing import NamedTuple

from ..._compatibility import compatibility
from ...graph_module import GraphModule, Module

__all__ = ["PassResult", "PassBase"]


@compatibility(is_backward_compatible=False)
class PassResult(NamedTuple):
    """The module that a pass gives back, and whether it has changed anything."""

    graph_module: Module
    modified: bool


@compatibility(is_backward_compatible=False)
class PassBase(abc.ABC):
    """A pass is called with a GraphModule; a subclass says in `call` what it does."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        """Runs the check before, the pass itself, and the check after."""
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """The pass."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raises if the module is not what the pass needs; to be overridden."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raises if the module is not what the pass promises; to be overridden."""
