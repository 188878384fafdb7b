"""Turns parts of a graph into submodules. include/cfx/embed/partition.h states which parts are
valid."""
import copy
import operator
from collections.abc import Iterable
from typing import Any

from ...graph_module import GraphModule
from ...node import Node
from ...text import in_place
from ..split_module import _TUPLE
from ..tools_common import NodeList, legalize_graph, stable_topological_sort


def topo_sort(nodes: list[Node]) -> list[Node]:
    """Returns the nodes in the order of their graph, which must be sorted."""
    return sorted(nodes, key=lambda node: node._sort_key)


def validate_partition(partition: list[Node]) -> bool:
    """Returns whether the nodes can become one call: no value may leave them and come back."""
    nodes = list(dict.fromkeys(partition))
    try:
        if nodes:
            nodes[0].graph._check_parts([nodes])
    except RuntimeError:
        return False
    return True


def _check(gm: GraphModule, partitions: list[list[Node]]) -> None:
    for node in (node for nodes in partitions for node in nodes):
        if node.graph is not gm.graph:
            name = gm._get_name()
            raise AssertionError(f"{node} doesn't belong to passed in graph module {name}")
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
    try:
        gm.graph._check_parts(partitions)
    except RuntimeError as e:
        raise AssertionError(str(e)) from None


def _fuse(
    gm: GraphModule, nodes: list[Node], name: str, as_tuple: bool
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    part: Any = gm.graph._extract(nodes, None, None, _TUPLE if as_tuple else 0)
    graph, inputs, outputs = part
    graph.lint()
    return GraphModule(gm, graph, name), tuple(inputs), tuple(outputs)


def fuse_as_graphmodule(
    gm: GraphModule, nodes: list[Node], module_name: str,
    partition_lookup_table: dict[Node, int | None] | None = None, *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:  # fmt: skip
    """Returns (a GraphModule of class `module_name` with copies of `nodes`, the nodes they read
    from outside, those of them that are read outside). `gm` is not changed."""
    nodes = topo_sort(list(dict.fromkeys(nodes)))
    _check(gm, [nodes])
    return _fuse(gm, nodes, module_name, always_return_tuple)


def insert_subgm(
    gm: GraphModule, sub_gm: GraphModule, orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...], insertion_point: Node | None = None,
) -> GraphModule:  # fmt: skip
    """Adds `sub_gm` to `gm` under the name of its class, with a call after `insertion_point` (or
    the last of the outputs) whose results replace `orig_outputs`."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    outputs = list(orig_outputs)
    metas = [copy.copy(node.meta) for node in outputs]
    as_tuple = isinstance(sub_gm.graph.output_node().args[0], tuple)
    call, results = gm.graph._insert_fused(
        name, list(orig_inputs), outputs, operator.getitem, as_tuple, insertion_point
    )
    for node, meta in zip(results, metas, strict=True):
        node.meta = meta
    if as_tuple:
        call.meta["val"] = tuple(meta.get("val") for meta in metas)
    return gm


def erase_nodes(gm: GraphModule, nodes: Iterable[Node]) -> None:
    """Erases nodes, the last one first."""
    for node in reversed(list(nodes)):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: list[dict[Node, int | None]], prefix: str = "fused_",
    always_return_tuple: bool = False,
) -> GraphModule:  # fmt: skip
    """Turns each partition into a submodule `prefix` + number, in place. If one of them is invalid,
    nothing changes."""
    in_place(gm, "fuse_by_partitions")
    sorted_parts = [topo_sort(list(nodes)) for nodes in partitions]
    _check(gm, sorted_parts)
    for i, nodes in enumerate(sorted_parts):
        if nodes:
            fused, inputs, outputs = _fuse(gm, nodes, f"{prefix}{i}", always_return_tuple)
            insert_subgm(gm, fused, inputs, outputs, nodes[-1])
            erase_nodes(gm, nodes)
    return stable_topological_sort(gm)
