"""GraphTransformObserver: records what a pass creates, erases and replaces."""
import os
import sys
from collections.abc import Callable
from typing import Any

from .._compatibility import compatibility
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..traceback import NodeSource, NodeSourceAction

__all__ = ["GraphTransformObserver"]
_KINDS = ("create_node", "erase_node", "replace_node", "deepcopy")


@compatibility(is_backward_compatible=False)
class GraphTransformObserver:
    """A `with` block around a pass. With a folder `log_url` it records the nodes that are created
    and erased, stores in their metadata ("from_node") what they replace, and writes pictures of the
    graph before and after to the folder. Without `log_url` it does nothing."""

    __pass_count = 0

    def __init__(
        self, gm: GraphModule, passname: str, subsystem: str | None = None,
        log_url: str | None = None,
    ) -> None:  # fmt: skip
        if log_url is None:
            config: Any = sys.modules.get("torch._inductor.config")
            log_url = config and config.trace.log_url_for_graph_xform
        self.gm, self.passname, self.subsystem, self.log_url = gm, passname, subsystem, log_url
        self.active = log_url is not None
        if self.active:
            self.erased_nodes, self.created_nodes = set[str](), set[str]()
            self.name_to_node = {node.name: node for node in gm.graph.nodes}
            self.copied_gms: list[GraphModule] = []
            self._before = gm.graph._clone()
            self._hooks = (self.get_node_creation_hook(), self.get_node_erase_hook(),
                           self.get_node_replace_hook(), self.get_deepcopy_hook())  # fmt: skip
            GraphTransformObserver.__pass_count += 1

    @classmethod
    def get_current_pass_count(cls) -> int:
        return cls.__pass_count

    def apply_gm_pass(self, pass_fn: Callable[[GraphModule], Any]) -> Any:
        """Runs a pass on the observed module."""
        with self:
            return None if self._check_disable_pass() else pass_fn(self.gm)

    def apply_graph_pass(self, pass_fn: Callable[[Graph], Any]) -> Any:
        """Runs a pass on the observed graph."""
        with self:
            return None if self._check_disable_pass() else pass_fn(self.gm.graph)

    def _check_disable_pass(self) -> bool:
        return False

    def _change_hooks(self, gm: GraphModule, change: str) -> None:
        for kind, hook in zip(_KINDS, self._hooks):
            getattr(gm, f"_{change}_{kind}_hook")(hook)

    def __enter__(self) -> "GraphTransformObserver":
        if self.active:
            self._change_hooks(self.gm, "register")
        return self

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        if not self.active:
            return
        for gm in (self.gm, *self.copied_gms):
            self._change_hooks(gm, "unregister")
        if self.created_nodes or self.erased_nodes:
            self._write("input", self._before, self.erased_nodes)
            self._write("output", self.gm.graph, self.created_nodes)

    def _write(self, what: str, graph: Graph, names: set[str]) -> None:
        name = f"pass_{self.__pass_count}_{self.passname}_{what}_graph.dot"
        with open(os.path.join(str(self.log_url), name), "w", encoding="utf-8") as file:
            file.write(graph._dot(self.passname, self.gm, None, names))

    def get_node_creation_hook(self) -> Callable[[Node], None]:
        def on_node_creation(node):
            self.created_nodes.add(node.name)
            self.name_to_node[node.name] = node
            node.meta["from_node"] = [NodeSource(None, self.passname, NodeSourceAction.CREATE)]

        return on_node_creation

    def get_node_erase_hook(self) -> Callable[[Node], None]:
        def on_node_erase(node):
            self.erased_nodes.add(node.name)
            self.name_to_node.pop(node.name, None)

        return on_node_erase

    def get_node_replace_hook(self) -> Callable[[Node, str, Node], None]:
        def on_node_replace(old, new, user):
            node = self.name_to_node.get(new)
            if node is None:
                return
            action = [NodeSourceAction.REPLACE]
            if new in self.created_nodes:
                action.append(NodeSourceAction.CREATE)
            source = NodeSource(old, self.passname, action)
            known = [s for s in node.meta.get("from_node", ()) if s.node_info is not None]
            node.meta["from_node"] = known if source in known else [*known, source]

        return on_node_replace

    def get_deepcopy_hook(self) -> Callable[[GraphModule], None]:
        return self.copied_gms.append  # a copy has the hooks already
