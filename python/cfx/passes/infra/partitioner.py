"""Partitions a graph by what a back end supports. Search and fusion are C (src/split)."""
from collections.abc import Iterable, Sequence

from ...graph_module import GraphModule
from ...node import Node, _get_qualified_name
from ...text import as_cfx
from ..operator_support import OperatorSupportBase
from ..utils.fuser_utils import fuse_by_partitions

_DEFAULT_NON_COMPUTE = {"torch.ops.aten.view", "_operator.getitem"}


class Partition:
    """Nodes that are to become one call, with their positions counted from the end of the graph."""

    def __init__(
        self, id: int | None = None, nodes: Iterable[Node] | None = None,
        node_orders: Iterable[int] | None = None,
    ) -> None:  # fmt: skip
        self.id = id
        nodes = list(nodes or ())
        orders = [None] * len(nodes) if node_orders is None else list(node_orders)
        if len(nodes) != len(orders):
            raise AssertionError("nodes and node_orders must have the same length")
        self.nodes: dict[Node, int | None] = dict(zip(nodes, orders, strict=True))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        del self.nodes[node]

    def size(self) -> int:
        return len(self.nodes)


class _DependencyViewer:
    """All nodes that need a node, directly or not."""

    def __init__(self, graph_module: GraphModule) -> None:
        self.graph = graph_module.graph

    def downstreams_of(self, node: Node) -> set[Node]:
        return set(self.graph._reached([node], True))


class CapabilityBasedPartitioner:
    """Proposes partitions of supported nodes, as few as possible, such that each can become one
    call, and fuses them.

    A partition with fewer than two calls to functions that compute something (`non_compute_ops`
    names those that do not) is dropped, unless `allows_single_node_partition` is set or the only
    function is in `allowed_single_node_partition_ops`. With `skip_horizontal_fusion` only nodes
    that pass each other values share a partition.
    """

    def __init__(
        self, graph_module: GraphModule, operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False, non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:  # fmt: skip
        self.graph_module = graph_module = as_cfx(graph_module)
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = [] if non_compute_ops is None else non_compute_ops
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self.skip_horizontal_fusion = skip_horizontal_fusion
        self.dependency_viewer = _DependencyViewer(graph_module)
        self._modules = dict(graph_module.named_modules())

    def _is_node_supported(self, node: Node) -> bool:
        return self.operator_support.is_node_supported(self._modules, node)

    def _is_worth_it(self, nodes: Iterable[Node]) -> bool:
        idle, compute = _DEFAULT_NON_COMPUTE.union(self.non_compute_ops), 0
        for node in nodes:
            if node.op == "call_function" and callable(node.target):
                name = _get_qualified_name(node.target)
                compute += name not in idle
                if compute > 1 or name in self.allowed_single_node_partition_ops:
                    return True
        return False

    def propose_partitions(self) -> list[Partition]:
        """Returns the partitions, from the end of the graph to its start; see
        `cfx_graph_partition`."""
        found = self.graph_module.graph._partition(
            self._is_node_supported, self.skip_horizontal_fusion
        )
        return [
            Partition(i, nodes, nodes.values())
            for i, nodes in enumerate(found)
            if self.allows_single_node_partition or self._is_worth_it(nodes)
        ]

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Turns each partition into a submodule, in place."""
        return fuse_by_partitions(self.graph_module, [p.nodes for p in partitions], prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Removes functions that compute nothing from the start and the end of partitions."""
        names = set(self.non_compute_ops)

        def is_idle(node: Node) -> bool:
            return callable(node.target) and _get_qualified_name(node.target) in names

        for partition in partitions:
            nodes = sorted(partition.nodes, key=lambda node: node._sort_key)
            for node in self.graph_module.graph._edges(nodes, is_idle):
                partition.remove_node(node)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Proposes partitions and fuses them."""
        return self.fuse_partitions(self.propose_partitions(), prefix)
