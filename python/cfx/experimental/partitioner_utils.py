"""Partitions of a graph on devices, and the cost of running them."""
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from .. import _core
from ..node import Node


def _with_leaves(node: Node) -> set[Node]:
    """A node, and the inputs and attributes that it reads."""
    return {node, *(n for n in node.all_input_nodes if n.op in ("placeholder", "get_attr"))}


def _size_of(node: Node) -> Any:
    size = getattr(node, "size_bytes", None)
    if not size:
        raise RuntimeError(f"node has no size_bytes attr: {node}; call get_size_of_all_nodes")
    return size


@dataclass(eq=False, repr=False)
class Partition:
    """Nodes of a graph that run together: calls, and the inputs and attributes they read."""

    partition_id: int
    nodes: set[Node] = field(default_factory=set, init=False)
    parents: set["Partition"] = field(default_factory=set, init=False)
    children: set["Partition"] = field(default_factory=set, init=False)
    bfs_level: int = field(default=-1, init=False)
    used_mem_bytes: int = field(default=0, init=False)
    logical_device_ids: list[int] = field(default_factory=list, init=False)

    def __str__(self) -> str:
        return str(self.partition_id)

    def recalculate_mem_size(self) -> None:
        """Counts the bytes that the nodes need."""
        self.used_mem_bytes = sum(get_extra_size_of(n, self.nodes) for n in self.nodes)

    def add_node(self, node: Node) -> None:
        """Adds a node, and the inputs and attributes it reads."""
        self.nodes |= _with_leaves(node)
        self.recalculate_mem_size()

    def remove_node(self, node: Node) -> None:
        """Removes a node, and the inputs and attributes that no other node here reads."""
        if node not in self.nodes:
            return
        self.nodes.discard(node)
        self.nodes -= {n for n in _with_leaves(node) if self.nodes.isdisjoint(n.users)}
        self.recalculate_mem_size()


class Device(NamedTuple):
    """A device with its memory; partitions refer to it by its logical id."""

    name: str
    available_mem_bytes: int
    logical_id: int


class NodeLatency(NamedTuple):
    """The time that a node takes to move its data and to compute."""

    mem_latency_sec: float
    computer_latency_sec: float


class PartitionLatency(NamedTuple):
    """The latencies of the nodes on the critical path of a partition, and their total."""

    mem_latency_sec: float
    computer_latency_sec: float
    overall_latency_sec: float


class PartitionMode(Enum):
    """How a graph is partitioned: see the methods of `Partitioner`."""

    size_based = 0
    sparse_nn = 1
    cost_aware = 2
    kl_based = 3
    aot_based = 4


class PartitionerConfig(NamedTuple):
    """The settings of `Partitioner.partition_graph`."""

    devices: list[Device]
    mode: PartitionMode = PartitionMode.size_based
    transfer_rate_bytes_per_sec: float = 0.0
    node_to_latency_mapping: dict[Node, NodeLatency] = {}
    node_to_partition_mapping: dict[Node, int] = {}
    partition_to_logical_device_mapping: dict[int, list[int]] = {}
    saturate_host: bool = False


def get_extra_size_of(node: Node, nodes: set[Node]) -> int:
    """Returns the additional bytes that a set of nodes needs with this node, including what the
    node reads from outside."""
    read = (n for n in node.all_input_nodes if n not in nodes)
    return _size_of(node).total_size + sum(_size_of(n).output_size for n in read)


def get_latency_of_one_partition(
    partition: Partition, node_to_latency_mapping: dict[Node, NodeLatency]
) -> PartitionLatency:
    """Returns the latencies along the critical path of a partition."""
    return PartitionLatency(*_core._critical_path(partition.nodes, node_to_latency_mapping))


def get_partition_to_latency_mapping(
    partitions: list[Partition], node_to_latency_mapping: dict[Node, NodeLatency]
) -> dict[Partition, PartitionLatency]:
    """Returns the latency of each partition."""
    return {p: get_latency_of_one_partition(p, node_to_latency_mapping) for p in partitions}


def get_comm_latency_between(
    parent_partition: Partition, child_partition: Partition, transfer_rate_bytes_per_sec: float
) -> float:
    """Returns the time to pass a child its inputs: 0 if both are on the same devices."""
    places = [p.logical_device_ids for p in (parent_partition, child_partition)]
    if places[0] and places[0] == places[1]:
        return 0.0
    readers = child_partition.nodes
    passed = (n for n in parent_partition.nodes if not readers.isdisjoint(n.users))
    return sum(_size_of(n).output_size for n in passed) / transfer_rate_bytes_per_sec


def get_latency_of_partitioned_graph(
    partitions: list[Partition],
    partition_to_latency_mapping: dict[Partition, PartitionLatency],
    transfer_rate_bytes_per_sec: float,
) -> float:
    """Returns the latency of the critical path through all partitions."""
    numbers = {partition: i for i, partition in enumerate(partitions)}
    links = [(numbers[parent], numbers[child],
              get_comm_latency_between(parent, child, transfer_rate_bytes_per_sec))
             for parent in partitions for child in parent.children]  # fmt: skip
    weights = [float(partition_to_latency_mapping[p].overall_latency_sec) for p in partitions]
    return max(_core._longest_ways(weights, links), default=0.0)
