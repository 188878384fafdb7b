"""Finds nodes by the function or module of the user's program that they came from."""
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...graph import Graph
from ...node import Node
from ...text import as_graph

__all__ = ["get_source_partitions", "check_subgraphs_connected", "SourcePartition"]


@dataclass
class SourcePartition:
    """The nodes that one call to `source` became."""

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    """What stands among their arguments and is not one of them; attributes are not counted."""
    output_nodes: list[Node] = field(default_factory=list)
    """Those that others use."""
    params: list[Node] = field(default_factory=list)
    """The get_attr nodes among them."""


def get_source_partitions(
    graph: Graph, wanted_sources: list[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """For each of the functions, module classes or function names that occurs in the metadata of
    nodes, returns the groups of nodes that came from one call to it. `filter_fn` must accept all
    nodes of a group. A graph of torch.fx (torch.export creates them) is converted first: the nodes
    in the result are those of the copy."""
    graph = as_graph(graph)
    return {
        source: [
            SourcePartition(nodes, source, *graph._boundary(nodes))
            for nodes in groups.values()
            if filter_fn is None or all(map(filter_fn, nodes))
        ]
        for source, groups in graph._sources(list(wanted_sources)).items()
    }


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Returns whether a node of `subgraph2` uses one of `subgraph1` (in this direction only)."""
    first = set(subgraph1.nodes)
    return any(not first.isdisjoint(node.all_input_nodes) for node in subgraph2.nodes)
