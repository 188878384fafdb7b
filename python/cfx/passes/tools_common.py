"""Helpers shared by the splitters: names of targets, sorting, fusion groups."""
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..graph_module import GraphModule, Module, torch
from ..node import Node, _get_qualified_name
from ..text import as_cfx

__all__ = ["get_acc_ops_name", "get_node_target", "is_node_output_tensor", "FxNetAccFusionsFinder",
           "legalize_graph", "stable_topological_sort"]  # fmt: skip

Tensors = tuple["torch.Tensor"] | list["torch.Tensor"]
TensorOrTensors = torch.Tensor | Tensors
NodeList = list[Node]
NodeSet = set[Node]
Names = list[str]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k: Any) -> str:
    """Returns the name of a function or class as it appears in tables of supported operators: a
    text stays as it is, `acc_ops.name` stands for whatever a module acc_ops defines, and all others
    have their qualified names."""
    if isinstance(k, str):
        return k
    home = getattr(k, "__module__", None) or ""
    if "acc_ops" in home:
        return "acc_ops." + k.__name__
    return f"{home}.{k.__qualname__}" if isinstance(k, type) else _get_qualified_name(k)


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """Returns the name of the callee: a method, a function, or the class of a module. A module that
    stands for one of another class says so in `_base_class_origin`."""
    if node.op == "call_module":
        module: Any = submodules[str(node.target)]
        return get_acc_ops_name(getattr(module, "_base_class_origin", type(module)))
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"%{node} is a {node.op}: only calls have a callee")
    return get_acc_ops_name(node.target)


def is_node_output_tensor(node: Node) -> bool:
    """Returns whether ShapeProp found a tensor for this node; False if ShapeProp has not run."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, torch.Tensor)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Sorts the nodes in place so that each comes after the nodes it uses; apart from that, the
    order is kept. A GraphModule of torch.fx is converted first. A RuntimeError names the nodes of a
    cycle."""
    gm = as_cfx(gm)
    gm.graph._pass("toposort")
    gm.recompile()
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """The same as `stable_topological_sort`."""
    return stable_topological_sort(gm)


class FxNetAccFusionsFinder:
    """Finds groups of accelerated nodes that pass each other values other than tensors, together
    with the nodes between them: they must run together. Calling it returns {node: its group}."""

    @dataclass
    class FusionGroup:
        """A group that is being built."""

        top_node_idx: int
        nodes: NodeSet
        inputs: NodeSet
        nodes_need_process: NodeSet

        def add_node(self, node: Node) -> None:
            """Adds a node; its inputs become inputs of the group."""
            if node in self.nodes:
                return
            for known in (self.nodes, self.nodes_need_process):
                known.add(node)
            self.inputs |= {n for n in node.all_input_nodes if n.op in CALLABLE_NODE_OPS}
            self.inputs -= self.nodes

    def __init__(self, module: GraphModule, acc_nodes: NodeSet) -> None:
        self.module = module
        self.nodes = list(module.graph.nodes)
        self.acc_nodes = acc_nodes

    def recursive_add_node(
        self, fusion_group: "FxNetAccFusionsFinder.FusionGroup", inputs: NodeSet | NodeList,
        visited: NodeSet | None = None,
    ) -> bool:  # fmt: skip
        """Adds the nodes on paths from the group to one of `inputs`. Returns whether there are
        any."""
        reached = self.module.graph._reached
        ends = [(fusion_group.nodes, True), (inputs, False)]
        after, before = ({*nodes, *reached(list(nodes), down)} for nodes, down in ends)
        for node in after & before:
            fusion_group.add_node(node)
        return not after.isdisjoint(before)

    def __call__(self) -> dict[Node, NodeSet]:
        groups = self.module.graph._fusion_groups(self.acc_nodes, is_node_output_tensor)
        return {node: group for group in groups for node in group}
