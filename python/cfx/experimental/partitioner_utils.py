"""Partitions of a graph on devices, and the cost of running them."""
from enum import Enum
from typing import NamedTuple

from .. import _core
from ..node import Node


def _with_leaves(node: Node) -> list[Node]:
    """A node, and the inputs and attributes that it reads."""
    return [node, *(n for n in node.all_input_nodes if n.op in ("placeholder", "get_attr"))]


class Partition:
    """Nodes of a graph that run together: calls, and the inputs and attributes they read."""

    def __init__(self, partition_id: int) -> None:
        self.nodes: set[Node] = set()
        self.partition_id = partition_id
        self.parents: set[Partition] = set()
        self.children: set[Partition] = set()
        self.bfs_level: int = -1
        self.used_mem_bytes: int = 0
        self.logical_device_ids: list[int] = []

    def __str__(self) -> str:
        return str(self.partition_id)

    def recalculate_mem_size(self) -> None:
        """Counts the bytes that the nodes need."""
        self.used_mem_bytes = sum(get_extra_size_of(n, self.nodes) for n in self.nodes)

    def add_node(self, node: Node) -> None:
        """Adds a node, and the inputs and attributes it reads."""
        self.nodes.update(_with_leaves(node))
        self.recalculate_mem_size()

    def remove_node(self, node: Node) -> None:
        """Removes a node, and the inputs and attributes that no other node here reads."""
        if node in self.nodes:
            self.nodes.remove(node)
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
    outside = [n for n in node.all_input_nodes if n not in nodes]
    for n in (node, *outside):
        if not getattr(n, "size_bytes", None):
            raise RuntimeError(f"node has no size_bytes attr: {n}; call get_size_of_all_nodes")
    return node.size_bytes.total_size + sum(n.size_bytes.output_size for n in outside)


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
    devices = parent_partition.logical_device_ids
    if devices and devices == child_partition.logical_device_ids:
        return 0.0
    read = {d for n in child_partition.nodes for d in n.all_input_nodes}
    passed = sum(d.size_bytes.output_size for d in read & parent_partition.nodes)
    return passed / transfer_rate_bytes_per_sec


def get_latency_of_partitioned_graph(
    partitions: list[Partition],
    partition_to_latency_mapping: dict[Partition, PartitionLatency],
    transfer_rate_bytes_per_sec: float,
) -> float:
    """Returns the latency of the critical path through all partitions."""
    place = {p: i for i, p in enumerate(partitions)}
    rate = transfer_rate_bytes_per_sec
    links = [(i, place[child], get_comm_latency_between(p, child, rate))
             for p, i in place.items() for child in p.children]
    weights = [float(partition_to_latency_mapping[p].overall_latency_sec) for p in partitions]
    return max(_core._longest_ways(weights, links), default=0.0)
