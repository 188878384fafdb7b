"""A matcher whose pattern names the nodes you want."""
from typing import Any

from ... import _pytree
from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ...text import as_cfx
from .matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: Any) -> tuple[Any, dict[str, Node]]:
    """Takes the dict of names off what the pattern returns: the module, and that dict."""
    gm = as_cfx(gm)
    output, pytree = gm.graph.output_node(), _pytree._torch_pytree()
    info: Any = getattr(gm.graph._codegen, "pytree_info", None)
    flat = info is not None and info.out_spec is not None
    whole = output.args[0]
    *values, names = pytree.tree_unflatten(list(whole), info.out_spec) if flat else whole
    if not isinstance(names, dict):
        raise AssertionError("Expecting the last result of the pattern to be a dict from names to "
                             f"nodes, got {type(names)}")
    result = values[0] if len(values) == 1 else tuple(values)
    if flat:
        result, spec = pytree.tree_flatten(result)
        gm.graph._codegen.pytree_info = info._replace(out_spec=spec)
    output.args = (result,)
    gm.recompile()
    return gm, dict(names)


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """A SubgraphMatcher for a pattern that returns, as its last value, a dict from names to nodes:
    `name_node_map` of each match contains the matched nodes by these names."""

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
        """Like SubgraphMatcher.match, with `name_node_map` filled in."""
        matches = super().match(graph, node_name_match)
        for match in matches:
            names = self.name_node_map.items()
            match.name_node_map = {name: match.nodes_map[node] for name, node in names}
        return matches
