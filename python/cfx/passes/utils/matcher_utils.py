"""SubgraphMatcher: finds a pattern in a graph. The search itself is C (include/cfx/match.h)."""
from dataclasses import dataclass, field
from typing import Any

from ... import _core
from ...graph import Graph
from ...node import Node
from ...text import parse

__all__ = ["SubgraphMatcher", "InternalMatch"]


@dataclass
class InternalMatch:
    """What was found: where, and what each node of the pattern stands for."""

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> "InternalMatch":
        parts = (self.nodes_map, self.placeholder_nodes, self.returning_nodes)
        return InternalMatch(self.anchors, *(part.copy() for part in parts))  # type: ignore


@dataclass(frozen=True)
class Miss:
    """Where a pattern was nearly found: `reason` says which constraint failed."""

    pattern: int
    matched: int
    wanted: Node
    node: Node | None
    reason: str
    text: str

    def __str__(self) -> str:
        return self.text


def as_graph(x: Any, trace: Any = None) -> Any:
    """A Graph from what people give as one: also IR text, a module with a graph, torch.fx's; what
    `trace` makes of anything else."""
    x = getattr(x, "graph", x)
    if isinstance(x, Graph):
        return x
    if isinstance(x, str):
        return parse(x)
    if type(x).__module__.startswith("torch.fx."):
        from ...interop import from_torch

        return from_torch(x)
    return trace(x).graph if trace else x


def _same_attr(pn: Node, gn: Node) -> bool:
    """Tensors and parameters match those of the same class. Without modules to look at, the paths
    must be the same."""
    roots = pn.graph.owning_module, gn.graph.owning_module
    if None in roots:
        return pn.target == gn.target
    wanted, found = (_core._get_attr(r, n.target) for r, n in zip(roots, (pn, gn)))
    if type(wanted) is not type(found):
        return False
    from ...graph_module import torch

    if not isinstance(wanted, torch.Tensor):
        raise RuntimeError(f"Unsupported type {wanted} when matching attributes")
    return True


def _bind(node: Node) -> tuple[Any, ...] | None:
    """The arguments of an operator of torch.ops, defaults included, in the order of its schema."""
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None:
        return None
    args = dict(zip((arg.name for arg in schema.arguments), node.args))
    given = {**node.kwargs, **args}
    return tuple(given.get(arg.name, arg.default_value) for arg in schema.arguments)


OPTIONS = {"same_attr": _same_attr, "bind": _bind}


class SubgraphMatcher:
    """Finds a pattern in a graph, as torch.fx does.

    `pattern` is a Graph (or IR text); `match_output` and `match_placeholder` make its output and
    its placeholders part of it; without `remove_overlapping_matches` all matches are returned, also
    those that share nodes; with `ignore_literals` any value does for a literal. Further options of
    cfx: `variadic`, `any_spelling`, `commutative`, `strict` (see replace_pattern).
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
        if isinstance(self.pattern, Graph) and len(self.pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        self.pattern_placeholder_nodes = [n for n in self.pattern.nodes if n.op == "placeholder"]
        self.pattern_anchors = self.pattern._anchors(match_output)
        self.pattern_returning_nodes = self.pattern.output_node().all_input_nodes

    def _all_options(self, node_name_match: str) -> dict[str, Any]:
        names = ("match_output", "match_placeholder", "ignore_literals")
        mine = {name: getattr(self, name) for name in names}
        mine["overlaps"] = not self.remove_overlapping_matches
        return {**OPTIONS, **mine, "node_name": node_name_match, **self._options}

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The matches, in the order of the graph. What a match contains, except for what the
        pattern returns, is used by nothing outside it. A node whose name contains
        `node_name_match` can be an anchor whatever it calls."""
        options = self._all_options(node_name_match)
        found = as_graph(graph)._match([self.pattern], options, None)
        anchors = self.pattern_anchors
        return [InternalMatch(anchors, nodes, ins, outs) for _, nodes, ins, outs, _ in found]

    def explain(self, graph: Graph, max: int = 5) -> list[Miss]:
        """Why the pattern was not found: the attempts that came furthest, best first."""
        misses = as_graph(graph)._explain([self.pattern], self._all_options(""), max)
        return [Miss(*miss) for miss in misses]
