"""PassBase: the interface of passes that are objects; PassResult: their result."""
import abc
from typing import NamedTuple

from ...graph_module import GraphModule, Module

__all__ = ["PassResult", "PassBase"]


class PassResult(NamedTuple):
    """The module that a pass returns, and whether the pass changed anything."""

    graph_module: Module
    modified: bool


class PassBase(abc.ABC):
    """A pass that is called with a GraphModule. A subclass implements `call`, and may check
    preconditions in `requires` and postconditions in `ensures`."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None: ...
    def requires(self, graph_module: GraphModule) -> None: ...  # noqa: B027
    def ensures(self, graph_module: GraphModule) -> None: ...  # noqa: B027
