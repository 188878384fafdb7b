"""Nodes by the function or module of the user's program that they came from."""
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...graph import Graph
from ...node import Node
from ...text import as_graph

__all__ = ["get_source_partitions", "check_subgraphs_connected", "SourcePartition"]


@dataclass
class SourcePartition:
    """What one call of `source` has become."""

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
    """For each of the functions, module classes or names of functions that occurs in the metadata
    of nodes, the groups of nodes that came from one call of it. With `filter_fn`, groups of which
    it accepts all nodes. A graph of torch.fx (torch.export makes them) is converted first: the
    nodes in the answer are those of the copy."""
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
    """Whether a node of `subgraph2` uses one of `subgraph1` (not the other way round)."""
    first = set(subgraph1.nodes)
    return any(not first.isdisjoint(node.all_input_nodes) for node in subgraph2.nodes)
