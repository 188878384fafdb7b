"""A matcher whose pattern says by which names its nodes are wanted."""
from typing import Any

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from .matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: Any) -> tuple[Any, dict[str, Node]]:
    """Takes the dict of names off what the pattern returns: the module, and that dict."""
    from ..._pytree import tree_flatten, tree_unflatten  # noqa: F401

    output = gm.graph.output_node()
    *values, names = output.args[0]
    assert isinstance(names, dict), (
        "Expecting the input graph to have a dict output as the last element"
    )
    output.args = (values[0] if len(values) == 1 else tuple(values),)
    gm.recompile()
    return gm, dict(names)


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """A SubgraphMatcher for a pattern that returns, as its last value, a dict from names to nodes:
    each match has the nodes that were found for them in `name_node_map`.

        def pattern(x, weight):
            conv = F.conv2d(x, weight)
            relu = F.relu(conv)
            return relu, {"conv": conv, "relu": relu}
    """

    def __init__(
        self, pattern_gm: GraphModule, match_output: bool = False, match_placeholder: bool = False,
        remove_overlapping_matches: bool = True, ignore_literals: bool = False, **options: bool,
    ) -> None:  # fmt: skip
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(
            pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches,
            ignore_literals, **options,
        )  # fmt: skip

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """As SubgraphMatcher's, with `name_node_map` filled in."""
        matches = super().match(graph, node_name_match)
        for match in matches:
            names = self.name_node_map.items()
            match.name_node_map = {name: match.nodes_map[node] for name, node in names}
        return matches
