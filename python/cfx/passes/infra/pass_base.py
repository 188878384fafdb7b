"""PassBase: the interface of passes that are objects; PassResult: what they give back."""
import abc
from typing import NamedTuple

from ...graph_module import GraphModule, Module

__all__ = ["PassResult", "PassBase"]


class PassResult(NamedTuple):
    """The module that a pass gives back, and whether it has changed anything."""

    graph_module: Module
    modified: bool


class PassBase(abc.ABC):
    """A pass is called with a GraphModule; a subclass says in `call` what it does, and may check
    in `requires` and `ensures` what it needs and what it promises."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None: ...
    def requires(self, graph_module: GraphModule) -> None: ...  # noqa: B027
    def ensures(self, graph_module: GraphModule) -> None: ...  # noqa: B027
