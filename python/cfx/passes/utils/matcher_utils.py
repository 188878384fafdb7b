"""SubgraphMatcher: finds a pattern in a graph. The search itself is C (include/cfx/match.h)."""
import linecache
from dataclasses import dataclass, field
from typing import Any

from ...graph import Graph
from ...node import Node
from ...text import as_graph

__all__ = ["SubgraphMatcher", "InternalMatch"]


@dataclass
class InternalMatch:
    """A match: its position, and the node that each node of the pattern matched."""

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)


@dataclass(frozen=True)
class Miss:
    """A near miss of a pattern: `reason` says which constraint failed."""

    pattern: int
    matched: int
    wanted: Node
    node: Node | None
    reason: str
    text: str

    def __str__(self) -> str:
        where = self.node._location if self.node is not None else None
        line = linecache.getline(*where).strip() if where else ""
        return self.text + ("\n    " + line if line else "")


class SubgraphMatcher:
    """Finds a pattern, a Graph or IR text, in a graph, as torch.fx does.

    `match_output` and `match_placeholder` make the output and the placeholders part of the pattern;
    without `remove_overlapping_matches` matches may share nodes; with `ignore_literals` a literal
    matches any value. For `variadic`, `any_spelling`, `commutative` and `strict` see
    replace_pattern.
    """

    def __init__(
        self, pattern: Graph, match_output: bool = False, match_placeholder: bool = False,
        remove_overlapping_matches: bool = True, ignore_literals: bool = False, **options: bool,
    ) -> None:  # fmt: skip
        self.pattern = as_graph(pattern)
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        self._options = options
        nodes = self.pattern.nodes
        self.pattern_anchors = self.pattern._anchors(match_output)
        self.pattern_placeholder_nodes = [n for n in nodes if n.op == "placeholder"]
        self.pattern_returning_nodes = self.pattern.output_node().all_input_nodes

    def _all_options(self, node_name_match: str) -> dict[str, Any]:
        names = ("match_output", "match_placeholder", "ignore_literals")
        mine = {name: getattr(self, name) for name in names}
        mine["overlaps"] = not self.remove_overlapping_matches
        return {**mine, "node_name": node_name_match, **self._options}

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Returns the matches, in graph order. Only the values that the pattern returns may be used
        outside a match. A node whose name contains `node_name_match` can be an anchor, whatever it
        calls."""
        options = self._all_options(node_name_match)
        found = as_graph(graph)._match([self.pattern], options, None)
        anchors = self.pattern_anchors
        return [InternalMatch(anchors, nodes, ins, outs) for _, nodes, ins, outs, _ in found]

    def explain(self, graph: Graph, max: int = 5) -> list[Miss]:
        """Returns why the pattern was not found: the closest attempts, best first."""
        misses = as_graph(graph)._explain([self.pattern], self._all_options(""), max)
        return [Miss(*miss) for miss in misses]
