"""Turns subgraphs into modules, and compares graphs."""
from ... import _core
from ...graph import Graph
from ...graph_module import GraphModule, Module
from ...text import as_cfx

__all__ = ["HolderModule", "lift_subgraph_as_module", "compare_graphs"]


class HolderModule(Module):
    """Holds the modules of a dict."""

    def __init__(self, d: dict[str, Module | None]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """Returns a GraphModule for a graph whose paths lead into `gm`, with the attributes it needs,
    and {path: path below the component `comp_name`}."""
    subgraph = as_cfx(subgraph)
    paths = list(subgraph._paths(False))
    root = {path: _core._get_attr(gm, path) for path in paths}
    return GraphModule(root, subgraph, class_name), {p: f"{comp_name}.{p}" for p in paths}


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Returns whether one graph matches the other as a pattern: the same inputs, calls and
    outputs."""
    from .matcher_utils import SubgraphMatcher

    return len(SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right)) > 0
