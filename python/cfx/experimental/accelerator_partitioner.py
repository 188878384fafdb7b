"""Partitions a module for devices that are too small for all of it (src/split/place*.c)."""
from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import _core
from ..graph_module import GraphModule, torch
from ..node import Node
from ..passes.graph_manipulation import get_size_of_all_nodes
from ..passes.split_module import split_module
from .partitioner_utils import (
    Device, NodeLatency, Partition, PartitionerConfig, PartitionMode, _with_leaves,
)

_BY_SIZE, _EMBEDDINGS, _BY_COST, _BY_EXCHANGE = range(4)  # cfx_place_mode


@dataclass(eq=False, repr=False)
class DAGNode:
    """A submodule of the partitioned module, with its inputs, its results and its devices."""

    submodule_node: Node
    input_nodes: list[Node]
    output_nodes: list[Node]
    logical_device_ids: list[int]
    size_bytes: int

    def __str__(self) -> str:
        return str(self.submodule_node)


class DAG:
    """All submodules of a partitioned module, in the order in which they run."""

    def __init__(self) -> None:
        self.nodes: list[DAGNode] = []

    def create_node(
        self, submodule_node: Node, input_nodes: list[Node], output_nodes: list[Node],
        logical_devices: list[int], size_bytes: int,
    ) -> None:
        """Appends a DAGNode."""
        node = DAGNode(submodule_node, input_nodes, output_nodes, logical_devices, size_bytes)
        self.nodes.append(node)


class PartitionResult(NamedTuple):
    """The module that calls the partitions as submodules, and its DAG."""

    dag: DAG
    module_with_submodules: GraphModule


def reset_partition_device(partitions: list[Partition]) -> None:
    """Removes all partitions from their devices."""
    for partition in partitions:
        partition.logical_device_ids = []


def combine_two_partitions(
    partition_0: Partition, partition_1: Partition, partitions: list[Partition]
) -> None:
    """Replaces two partitions of a list by one at the end of the list."""
    partition = Partition(len(partitions))
    partition.nodes = partition_0.nodes | partition_1.nodes
    partition.recalculate_mem_size()
    partitions.remove(partition_0)
    partitions.remove(partition_1)
    partitions.append(partition)
    reorganize_partitions(partitions)


def set_parents_and_children(partitions: list[Partition]) -> None:
    """Finds out which partitions read from which others."""
    for partition in partitions:
        partition.parents, partition.children = set(), set()
    for parent, child, _ in _core._part_links([p.nodes for p in partitions], False):
        partitions[parent].children.add(partitions[child])
        partitions[child].parents.add(partitions[parent])


def reorganize_partitions(partitions: list[Partition]) -> None:
    """Numbers the partitions and finds out which ones read from which others."""
    for i, partition in enumerate(partitions):
        partition.partition_id = i
    set_parents_and_children(partitions)


def get_bfs_level_partition(partitions: list[Partition]) -> None:
    """Sets the level of each partition: the length of the longest chain of partitions before it."""
    place = {p: i for i, p in enumerate(partitions)}
    links = [(i, place[child], 1.0) for p, i in place.items() for child in p.children]
    levels = _core._longest_ways([0.0] * len(partitions), links)
    for partition, level in zip(partitions, levels):
        partition.bfs_level = int(level)


def get_node_to_partition_mapping(partitions: list[Partition]) -> dict[Node, int]:
    """Returns the id of each node's partition; for inputs and attributes in several, the last
    one."""
    return {n: p.partition_id for p in partitions for n in p.nodes}


def get_logical_id_to_device(devices: list[Device]) -> dict[int, Device]:
    """Returns the devices by logical id."""
    return {device.logical_id: device for device in devices}


def get_device_partition_stats(
    partitions: list[Partition], devices: list[Device]
) -> tuple[dict[Device, list[Partition]], dict[Device, int], list[Partition]]:
    """Returns the partitions on each device, the memory left on each, and the unplaced
    partitions."""
    by_id = get_logical_id_to_device(devices)
    on: dict[Device, list[Partition]] = {device: [] for device in devices}
    left = {device: device.available_mem_bytes for device in devices}
    for partition in partitions:
        for logical_id in partition.logical_device_ids:
            on[by_id[logical_id]].append(partition)
            left[by_id[logical_id]] -= partition.used_mem_bytes
    return on, left, [p for p in partitions if not p.logical_device_ids]


def get_device_to_partitions_mapping(partitions: list[Partition], devices: list[Device]) -> bool:
    """Puts each unplaced partition on the device with the least memory left, among those with more
    left than it needs. Returns False at the first one that does not fit."""
    place = {device.logical_id: i for i, device in enumerate(devices)}
    placed = [(i, place[d], 0.0) for i, p in enumerate(partitions) for d in p.logical_device_ids]
    shared = _core._part_links([p.nodes for p in partitions], True)
    fits, found = _core._fit_parts([d.available_mem_bytes for d in devices],
                                   [p.used_mem_bytes for p in partitions], shared, placed)
    for partition, device in zip(partitions, found):
        if device is not None:
            partition.logical_device_ids = [devices[device].logical_id]
    return fits


def check_dependency(partition: Partition) -> bool:
    """Returns whether a partition depends on its own results through other partitions."""
    seen: set[Partition] = set()
    queue = [partition]
    for one in queue:
        queue += one.children - seen
        seen |= one.children
    return partition in seen


class Partitioner:
    """Partitions a module. `partition_graph` returns a module that calls each partition as a
    submodule, and a DAG of these submodules with their devices."""

    def __init__(self) -> None:
        self.partitions: list[Partition] = []
        self.node_to_partition: dict[Node, int] = {}
        self.devices: list[Device] = []

    def partition_graph(
        self, fx_module: GraphModule, torch_module: "torch.nn.Module",
        partitioner_config: PartitionerConfig,
    ) -> PartitionResult:
        """Partitions a module whose shapes have been propagated (ShapeProp)."""
        self.devices, mode, rate, latencies, places, ids, saturate_host = partitioner_config
        self.graph_module, self.torch_module = fx_module, torch_module
        self.partitions, self.node_to_partition = [], {}
        if not self.devices:
            raise RuntimeError("No devices")
        get_size_of_all_nodes(fx_module)
        nodes = [n for n in fx_module.graph.nodes if n.op != "output"]
        total = sum(n.size_bytes.total_size for n in nodes)
        memory = [device.available_mem_bytes for device in self.devices]
        if mode == PartitionMode.aot_based:
            self.aot_based_partition(places, ids)
        elif total <= max(memory):
            self.find_single_partition(total, self.devices[memory.index(max(memory))].logical_id)
        elif total > sum(memory):
            raise RuntimeError("Devices do not have enough memory for the module: it needs "
                               f"{total} bytes, they have {sum(memory)}")
        elif mode == PartitionMode.sparse_nn:
            if len(set(memory)) > 1:
                raise RuntimeError("All devices must have same memory size!")
            self.sparse_nn_partition(memory[0])
        elif mode == PartitionMode.cost_aware:
            self.cost_aware_partition(rate, latencies)
        elif mode == PartitionMode.kl_based:
            self.kl_based_partition(rate, latencies)
        else:
            self.size_based_partition()
        if saturate_host:
            self.saturate_host()
        module = self.do_partition()
        return PartitionResult(self.dump_dag(module), module)

    def _place(
        self, mode: int, latencies: dict[Node, NodeLatency] | None = None, rate: float = 0.0,
        embedding: list[bool] | None = None, memory: list[float] | None = None,
        start: tuple[Any, Any] = (None, None),
    ) -> tuple[list[int | None], list[int | None]]:
        """Makes the partitions; gives that of each node, and the device of each of them."""
        nodes = list(self.graph_module.graph.nodes)
        memory = memory or [device.available_mem_bytes for device in self.devices]
        sizes = [n.size_bytes if n.op != "output" else (0, 0) for n in nodes]
        times = None if latencies is None else [
            float(max(latencies[n])) if n.op.startswith("call") else 0.0 for n in nodes]
        parts, found = self.graph_module.graph._place(
            mode, [s[0] for s in sizes], [s[1] for s in sizes], times, embedding, memory, rate,
            *start)
        self.partitions = []
        for device in found:
            ids = [] if device is None else [self.devices[device].logical_id]
            self.create_partition().logical_device_ids = ids
        for node, part in zip(nodes, parts):
            if part is not None:
                self.partitions[part].nodes.update(_with_leaves(node))
        for partition in self.partitions:
            partition.recalculate_mem_size()
        reorganize_partitions(self.partitions)
        self.node_to_partition = get_node_to_partition_mapping(self.partitions)
        return parts, found

    def find_single_partition(self, total_size_of_graph: int, logical_device_id: int = 0) -> None:
        """Puts the whole module on one device."""
        partition = self.create_partition()
        partition.nodes.update(n for n in self.graph_module.graph.nodes if n.op != "output")
        partition.used_mem_bytes = total_size_of_graph
        partition.logical_device_ids = [logical_device_id]
        self.node_to_partition = get_node_to_partition_mapping(self.partitions)

    def size_based_partition(self) -> None:
        """Fills one device after the other with the nodes in order. Nodes that are left when all
        devices are used become separate partitions, placed where there is room."""
        self._place(_BY_SIZE)

    def saturate_host(self) -> None:
        """Replicates all partitions on unused devices as often as there are enough: for each used
        device in turn, on the smallest unused one with room for all its partitions."""
        on, left, nowhere = get_device_partition_stats(self.partitions, self.devices)
        if nowhere:
            raise AssertionError("Expect no_device_partitions has 0 device, but get "
                                 f"{len(nowhere)}: no device has room for them")
        used = [device for device in self.devices if on[device]]
        unused = sorted((d for d in self.devices if not on[d]), key=lambda d: d.available_mem_bytes)
        while used:
            copies = []
            for device in used:
                need = device.available_mem_bytes - left[device]
                copy = next((d for d in unused if d.available_mem_bytes >= need), None)
                if copy is None:
                    return
                unused.remove(copy)
                copies += [(partition, copy.logical_id) for partition in on[device]]
            for partition, logical_id in copies:
                partition.logical_device_ids.append(logical_id)

    def do_partition(self) -> GraphModule:
        """Returns the module that calls the partitions as submodules."""
        label_of = self.node_to_partition.__getitem__
        return split_module(self.graph_module, self.torch_module, label_of)

    def dump_dag(self, module_with_submodules: GraphModule) -> DAG:
        """Returns the DAG of the submodules."""
        dag, by_name = DAG(), {f"submod_{p.partition_id}": p for p in self.partitions}
        for node in module_with_submodules.graph.find_nodes(op="call_module"):
            partition = by_name[str(node.target)]
            outputs = list(node.users) if len(node.users) > 1 else [node]
            dag.create_node(node, node.all_input_nodes, outputs, partition.logical_device_ids,
                            partition.used_mem_bytes)
        return dag

    def create_partition(self) -> Partition:
        """Appends an empty partition."""
        self.partitions.append(Partition(len(self.partitions)))
        return self.partitions[-1]

    def create_single_node_partition(self, node: Node) -> None:
        """Appends a partition of one node."""
        self.create_partition().add_node(node)

    def sparse_nn_partition(self, available_mem_bytes: int) -> None:
        """Separates modules that look up embeddings from all other nodes, and makes as few
        partitions of both as memory allows. Each partition with embeddings gets its own device; all
        other partitions are on each of these. All devices must have the same memory."""
        modules = (n.op == "call_module" and self.graph_module.get_submodule(n.target)
                   for n in self.graph_module.graph.nodes)
        embedding = [any("Embedding" in c.__name__ for c in type(m).__mro__) for m in modules]
        memory: list[float] = [available_mem_bytes] * len(self.devices)
        self._place(_EMBEDDINGS, embedding=embedding, memory=memory)
        used = [d for p in self.partitions for d in p.logical_device_ids]
        for partition in self.partitions:
            partition.logical_device_ids = partition.logical_device_ids or list(used)
        get_bfs_level_partition(self.partitions)

    def cost_aware_partition(
        self, transfer_rate_bytes_per_sec: float, node_to_latency_mapping: dict[Node, NodeLatency]
    ) -> None:
        """Starts with a partition for each node, and repeatedly combines the two partitions that
        give the lowest latency of the module, as long as the latency does not grow."""
        self._place(_BY_COST, node_to_latency_mapping, transfer_rate_bytes_per_sec)
        get_bfs_level_partition(self.partitions)

    def kl_based_partition(
        self, transfer_rate_bytes_per_sec: float, node_to_latency_mapping: dict[Node, NodeLatency]
    ) -> None:
        """Partitions by size, then visits all nodes (Kernighan-Lin): of all exchanges with another
        node and moves to another partition, it makes the one that reduces the latency most."""
        self._place(_BY_EXCHANGE, node_to_latency_mapping, transfer_rate_bytes_per_sec,
                    start=self._place(_BY_SIZE))

    def aot_based_partition(
        self, node_to_partition_mapping: dict[Node, int],
        partition_to_logical_device_mapping: dict[int, list[int]],
    ) -> None:
        """Makes the given partitions on the given devices."""
        by_id: dict[int, Partition] = {}
        for node, number in node_to_partition_mapping.items():
            by_id.setdefault(number, Partition(number)).nodes.update(_with_leaves(node))
        self.partitions, self.node_to_partition = list(by_id.values()), node_to_partition_mapping
        for number, partition in by_id.items():
            partition.recalculate_mem_size()
            partition.logical_device_ids = partition_to_logical_device_mapping[number]
