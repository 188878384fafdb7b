"""Splits a module into parts for an accelerator and parts for the CPU; the graph walks are C."""
import argparse
import copy
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..graph_module import GraphModule, Module, torch
from ..node import Node
from .operator_support import OperatorSupportBase, _get_arg_dtype
from .split_utils import move_non_tensor_nodes_on_boundary, split_by_tags
from .tools_common import CALLABLE_NODE_OPS, FxNetAccFusionsFinder, NodeList, NodeSet, Tensors
from .tools_common import get_node_target, is_node_output_tensor

__all__ = ["FxNetAccNodesFinder", "FxNetSplitterInternalError", "Subgraph", "SplitResult",
           "generate_inputs_for_submodules", "NodeEvent", "NodeEventTracker"]  # fmt: skip

DEFAULT_MIN_ACC_MODULE_SIZE = 1
DEFAULT_SKIP_FUSION = DEFAULT_ALLOW_NON_TENSOR = False
ENV_FX_NET_ACC_SPLITTER_TRACKER_MODE = "FX_NET_ACC_SPLITTER_TRACKER_MODE"
ENV_FX_NET_ACC_SPLITTER_TRACKER_DUMP_PATH = "FX_NET_ACC_SPLITTER_TRACKER_DUMP_PATH"
ENV_FX_NET_ACC_SPLITTER_TRACKER_TRACKED_NODES = "FX_NET_ACC_SPLITTER_TRACKER_TRACKED_NODES"
DUMP_PREFIX = os.environ.get(ENV_FX_NET_ACC_SPLITTER_TRACKER_DUMP_PATH, "_fx_net_tracker")
TRACKER_DUMP_PATH, NODES_SUFFIX, ALL_SUFFIX = "_fx_net_tracker", "_nodes.txt", "_all.txt"
TRACKER_MODE = os.environ.get(ENV_FX_NET_ACC_SPLITTER_TRACKER_MODE, "0")


class _SplitterSettingBase:
    """The settings of a split. Command-line arguments with these names (--skip-fusion) override
    them."""

    def __init__(
        self, min_acc_module_size: int = DEFAULT_MIN_ACC_MODULE_SIZE,
        skip_fusion: bool = DEFAULT_SKIP_FUSION, allow_non_tensor: bool = DEFAULT_ALLOW_NON_TENSOR,
        max_acc_splits: int = -1, move_non_tensor_nodes_on_boundary: bool = False,
    ) -> None:  # fmt: skip
        parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
        parser.add_argument("--min-acc-module-size", type=int, default=min_acc_module_size)
        parser.add_argument("--max-acc-splits", type=int, default=max_acc_splits)
        for name, default in (("skip-fusion", skip_fusion), ("allow-non-tensor", allow_non_tensor),
                              ("move-non-tensor-nodes-on-boundary",
                               move_non_tensor_nodes_on_boundary)):  # fmt: skip
            parser.add_argument(f"--{name}", default=default, action="store_true")
        args = parser.parse_known_args()[0]
        self.min_acc_module_size = args.min_acc_module_size
        self.skip_fusion = args.skip_fusion
        self.allow_non_tensor = args.allow_non_tensor
        self.max_acc_splits = args.max_acc_splits
        self.move_non_tensor_nodes_on_boundary = args.move_non_tensor_nodes_on_boundary


@dataclass
class NodeEvent:
    """An event in the decision where a node runs, and the other node that caused it."""

    source: Node
    desc: str
    dep: Node | None = None

    def to_str(self) -> str:
        return f"{self.source.name}: {self.desc} {'#' if self.dep is None else self.dep.name}"


class NodeEventTracker:
    """Records events. Mode 0 records nothing, 1 records but prints nothing, 2 writes the events of
    the nodes named in the environment to a file, 3 those of all nodes."""

    def __init__(self, tracker_mode: int, dump_prefix: str) -> None:
        self.tracker_mode, self.dump_prefix = tracker_mode, dump_prefix
        self.events: list[NodeEvent] = []
        self.node_events: dict[str, list[int]] = {}
        self.writer: Callable[[str], object] = print

    def add(self, node: Node, desc: str, dep: Node | None = None) -> None:
        """Records an event."""
        if self.tracker_mode:
            self.node_events.setdefault(node.name, []).append(len(self.events))
            self.events.append(NodeEvent(node, desc, dep))

    def print_node(
        self, node_name: str, recursive: bool = False, tab: str = "",
        writer: Callable[[str], object] | None = None,
    ) -> None:  # fmt: skip
        """Writes the events of a node and, if `recursive`, of the nodes that caused them."""
        for event in (self.events[i] for i in self.node_events.get(node_name, ())):
            (writer or self.writer)(tab + event.to_str())
            if recursive and event.dep is not None:
                self.print_node(event.dep.name, True, "| " + tab, writer)

    def to_dict(self) -> dict[str, list[str]]:
        """{name of the node: its events}."""
        return {k: [self.events[i].to_str() for i in v] for k, v in self.node_events.items()}

    def print_all(self, writer: Callable[[str], object] | None = None) -> None:
        """Writes the events of all nodes."""
        for name in self.node_events:
            (writer or self.writer)(f"Node: {name}:")
            self.print_node(name, False, "  ", writer)

    def dump(self) -> None:
        """Writes the events that the mode selects to files whose names start with `dump_prefix`."""
        if self.tracker_mode < 2:
            return
        wanted = os.environ.get(ENV_FX_NET_ACC_SPLITTER_TRACKER_TRACKED_NODES, "").split(",")
        suffix = ALL_SUFFIX if self.tracker_mode > 2 else NODES_SUFFIX
        with open(self.dump_prefix + suffix, "w") as f:
            if self.tracker_mode > 2:
                self.print_all(lambda line: f.write(line + "\n"))
            for name in wanted if self.tracker_mode == 2 else ():
                self.print_node(name, True, "", lambda line: f.write(line + "\n"))


class FxNetAccNodesFinder:
    """Finds the calls that the accelerator supports. Unless `allow_non_tensor` is set, it excludes
    calls that would exchange values other than tensors with the CPU."""

    def __init__(
        self, module: GraphModule, operator_support: OperatorSupportBase, allow_non_tensor: bool
    ) -> None:
        self.module, self.operator_support = module, operator_support
        self.allow_non_tensor = allow_non_tensor
        self.acc_nodes: NodeSet = set()
        self.tracker = NodeEventTracker(int(TRACKER_MODE), DUMP_PREFIX)

    def _drop(self, work: Any, why: str) -> None:
        for node in self.module.graph._drop_acc(self.acc_nodes, is_node_output_tensor, work):
            self.tracker.add(node, why)

    def reduce_acc_nodes_non_tensor_input_helper(self, cpu_worklist: NodeList) -> None:
        """Drops the users of these nodes and, recursively, the users of those whose values are not
        tensors."""
        self._drop(list(cpu_worklist), "acc_del|non_tensor_input")

    def reduce_acc_nodes_non_tensor_input(self) -> None:
        """Drops nodes that get values other than tensors from the CPU."""
        self._drop(None, "acc_del|non_tensor_input")

    def reduce_acc_nodes_non_tensor_output(self) -> None:
        """Drops nodes that pass values other than tensors to the CPU."""
        self._drop(False, "acc_del|non_tensor_output")

    def __call__(self) -> NodeSet:
        modules = dict(self.module.named_modules())
        supports = self.operator_support.is_node_supported
        self.acc_nodes = {n for n in self.module.graph.nodes
                          if n.op in CALLABLE_NODE_OPS and supports(modules, n)}  # fmt: skip
        if not self.allow_non_tensor:
            self.reduce_acc_nodes_non_tensor_input()
            self.reduce_acc_nodes_non_tensor_output()
        self.tracker.dump()
        return self.acc_nodes


class FxNetSplitterInternalError(Exception):
    """An internal error of the splitter."""


@dataclass
class Subgraph:
    """Calls that run together."""

    is_acc: bool
    nodes: NodeList
    device_ordinal: int | None = None


class SplitResult(NamedTuple):
    """The module after the split, {submodule: its inputs}, and the prefix of the names of the CPU
    submodules (the others start with "_run_on_acc_")."""

    split_module: GraphModule
    submodule_inputs: dict[str, Any]
    non_acc_submodule_prefix: str


def generate_inputs_for_submodules(
    model: Module, inputs: Sequence[Any], target_submodules: Iterable[str], deepcopy: bool = False
) -> dict[str, Any]:
    """Runs the model and returns {submodule: the inputs it was called with}."""
    results: dict[str, Any] = {}
    wanted, handles = set(target_submodules), []
    for name, module in model.named_modules():
        if name in wanted:
            def hook(_: Any, args: Any, name: str = name) -> None:
                results[name] = copy.deepcopy(args) if deepcopy else args

            handles.append(module.register_forward_pre_hook(hook))
    try:
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return results


class _SplitterBase:
    """Splits a module into submodules for the accelerator and for the CPU, as few as possible. Only
    calls run on the accelerator. Run ShapeProp on the module first."""

    PCIe_BW = 100 * 2**30

    def __init__(
        self, module: GraphModule, sample_input: Sequence[Any],
        operator_support: OperatorSupportBase, settings: _SplitterSettingBase,
        non_acc_submodule_name: str = "_run_on_cpu_", return_tuple: bool = False,
        nodes_finder: FxNetAccNodesFinder | None = None,
    ) -> None:  # fmt: skip
        from .shape_prop import ShapeProp

        self.module, self.settings, self.operator_support = module, settings, operator_support
        ShapeProp(module).propagate(*sample_input)
        self.sample_input = sample_input
        non_tensor = settings.allow_non_tensor
        finder = nodes_finder or FxNetAccNodesFinder(module, operator_support, non_tensor)
        self.acc_nodes = finder()
        skip = settings.skip_fusion
        self.fusions = {} if skip else FxNetAccFusionsFinder(module, self.acc_nodes)()
        self.deps = self.find_deps()
        self.update_deps_for_fusions()
        self.non_acc_submodule_name = non_acc_submodule_name
        self._node_submodule_map: dict[str, str] = {}
        self._return_tuple = return_tuple
        self.tags: list[str] = []

    def get_node_submodule_map(self) -> dict[str, str]:
        """Returns {name of a call: name of its submodule}."""
        return self._node_submodule_map

    def find_deps(self) -> dict[Node, NodeSet]:
        """Returns the calls whose values each call uses directly."""
        return defaultdict(set, self.module.graph._deps())

    def _groups(self) -> list[NodeSet]:
        return list({id(group): group for group in self.fusions.values()}.values())

    def update_deps_for_fusions(self) -> None:
        """Gives all nodes of a fusion the same dependencies, and makes users of one depend on
        all."""
        self._merge_overlapping_fusions()
        self.module.graph._fuse_deps(self.deps, self._groups())

    def _merge_overlapping_fusions(self) -> None:
        """Makes fusions that share a node one; FxNetAccFusionsFinder finds none that do."""
        self.module.graph._merge_groups(self.fusions)

    # ---- for back ends to override ----

    def _lower_model_to_backend(self, mod: GraphModule, inputs: Tensors) -> Module:
        """What the back end makes of a submodule."""
        return mod

    def _find_culprit(self, mod: GraphModule, inputs: Tensors) -> str:
        """Why lowering or running a submodule failed."""
        return "Unable to find a culprit because _find_culprit() function is not implemented."

    def _draw_graph_based_on_node_support(
        self, mod: GraphModule, supported_nodes: NodeList
    ) -> None:
        """Writes a picture of the module to node_support.dot."""
        from .graph_drawer import FxGraphDrawer

        FxGraphDrawer(mod, "node_support").get_dot_graph().write_raw("node_support.dot")

    def node_support_preview(self, dump_graph: bool = False) -> str:
        """Prints and returns which kinds of calls are supported, with the dtypes of their
        inputs."""
        modules = dict(self.module.named_modules())
        kinds: tuple[dict[str, None], dict[str, None]] = {}, {}
        supported_nodes = []
        for node in (n for n in self.module.graph.nodes if n.op in CALLABLE_NODE_OPS):
            supported = self.operator_support.is_node_supported(modules, node)
            supported_nodes += [node] * supported
            args = tuple(_get_arg_dtype(a) for a in node.args if isinstance(a, Node))
            named = ((k, a) for k, a in node.kwargs.items() if isinstance(a, Node))
            kwargs = {k: _get_arg_dtype(a) for k, a in named}
            kinds[not supported][f"{get_node_target(modules, node)}: ({args}, {kwargs})\n"] = None
        if dump_graph:
            self._draw_graph_based_on_node_support(self.module, supported_nodes)
        parts = (f"\n{word} node types in the model:\n" + "".join(found) for word, found in
                 zip(("Supported", "Unsupported"), kinds, strict=True))  # fmt: skip
        print(reports := "".join(parts))
        return reports

    def split_preview(self, dump_graph: bool = False) -> str:
        """Prints and returns the planned split, and whether each part can be lowered."""
        preview = copy.copy(self)
        preview.tags, preview._node_submodule_map = [], {}
        reports = []

        def count(when: str, subgraphs: list[Subgraph]) -> None:
            acc = sum(s.is_acc for s in subgraphs)
            reports.append(f"{when} removing small acc subgraphs, total {len(subgraphs)} subgraphs "
                           f"are created: {acc} acc subgraphs and {len(subgraphs) - acc} cpu "
                           "subgraphs.\n")  # fmt: skip

        subgraphs = preview.put_nodes_into_subgraphs()
        count("Before", subgraphs)
        subgraphs = preview.remove_small_acc_subgraphs(subgraphs)
        count("After", subgraphs)
        preview.tag(subgraphs)
        reports += (f"{t}: {len(s.nodes)} node(s)\n"
                    for t, s in zip(preview.tags, subgraphs, strict=True))  # fmt: skip
        split = preview.split(remove_tag=True)
        names = [name for name, _ in split.named_children() if name.startswith("_run_on_acc_")]
        for name, inputs in generate_inputs_for_submodules(split, self.sample_input, names).items():
            mod = getattr(split, name)
            reports.append(f"\nProcessing acc submodule {name}\n")
            try:
                lowered = self._lower_model_to_backend(mod, inputs)
                lowered(*inputs)
                reports.append("Lowering and running succeed!\n")
            except RuntimeError:
                reports.append("Run into an issue during lowering or running!\n"
                               + self._find_culprit(mod, inputs))  # fmt: skip
        print(result := "".join(reports))
        return result

    # ---- extending a subgraph ----

    def find_reverse_deps(self, tag_id: int | None = None) -> dict[Node, NodeSet]:
        """Returns the calls that use the value of each call; with `tag_id` only those in subgraphs
        up to that number."""
        return defaultdict(set, self.module.graph._reverse_deps(tag_id))

    def update_reverse_deps_for_fusions(self, deps: dict[Node, NodeSet]) -> None:
        """Gives all nodes of a fusion the users of the fusion."""
        self.module.graph._fuse_users(deps, self._groups())

    def find_parent_nodes_of_subgraph(self, tag: str) -> NodeSet:
        """Returns the calls outside the subgraph whose values it uses."""
        return self.module.graph._parents_of(tag)

    def extend_acc_subgraph(self, tag: str) -> None:
        """Repeatedly adds to the subgraph the supported calls before it whose users are all in
        it."""
        deps = self.find_reverse_deps(tag_id=int(tag.split("_")[-1]))
        self.update_reverse_deps_for_fusions(deps)
        work = self.find_parent_nodes_of_subgraph(tag)
        self.module.graph._extend_acc(tag, work, self.acc_nodes, self._groups(), deps)

    # ---- splitting ----

    def starter_nodes(self) -> tuple[NodeSet, NodeSet]:
        """Returns the calls that use inputs or attributes of the module: (for the CPU,
        accelerated)."""
        found: tuple[NodeSet, NodeSet] = set(), set()
        for node in self.module.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                for user in (u for u in node.users if u.op in CALLABLE_NODE_OPS):
                    found[user in self.acc_nodes].add(user)
        return found

    def put_nodes_into_subgraphs(self) -> list[Subgraph]:
        """Puts all calls into as few subgraphs as possible, alternating between CPU and
        accelerator; each depends only on those before it."""
        turns = self.module.graph._acc_groups(self.deps, self.acc_nodes)
        if turns is None:
            raise FxNetSplitterInternalError("Subgraph can't be empty: calls depend on each other")
        subgraphs = [Subgraph(is_acc=is_acc, nodes=nodes) for is_acc, nodes in turns]
        if self.settings.move_non_tensor_nodes_on_boundary:
            move_non_tensor_nodes_on_boundary(subgraphs)
        return subgraphs

    def remove_small_acc_subgraphs(self, subgraphs: list[Subgraph]) -> list[Subgraph]:
        """Moves subgraphs that are too small for the accelerator to the CPU, and merges them with
        their neighbours."""
        least, result = self.settings.min_acc_module_size, []
        for subgraph in subgraphs:
            if subgraph.is_acc and len(subgraph.nodes) >= least:
                result.append(subgraph)
                continue
            if subgraph.is_acc:
                print("Eliminating acc subgraph because it's smaller than the threshold: "
                      f"{len(subgraph.nodes)} < {least}")  # fmt: skip
            if result and not result[-1].is_acc:
                result[-1].nodes.extend(subgraph.nodes)
            else:
                result.append(Subgraph(is_acc=False, nodes=list(subgraph.nodes)))
        return result

    def tag(self, subgraphs: list[Subgraph]) -> None:
        """Sets the `tag` of each call to the name of its submodule."""
        self.tags = []
        for i, subgraph in enumerate(subgraphs):
            prefix = "_run_on_acc_" if subgraph.is_acc else self.non_acc_submodule_name
            self.tags.append(tag := f"{prefix}{i}")
            for node in subgraph.nodes:
                if hasattr(node, "tag"):
                    raise FxNetSplitterInternalError(f"Node {node} was already tagged")
                node.tag = self._node_submodule_map[node.name] = tag

    def split(self, remove_tag: bool = False) -> GraphModule:
        """Returns the module split by its tags; `remove_tag` removes the tags afterwards."""
        result: Any = split_by_tags(self.module, self.tags, return_tuple=self._return_tuple)
        for node in self.module.graph.nodes if remove_tag else ():
            if hasattr(node, "tag"):
                del node.tag
        return result

    def __call__(self) -> GraphModule:
        subgraphs = self.remove_small_acc_subgraphs(self.put_nodes_into_subgraphs())
        acc = sum(subgraph.is_acc for subgraph in subgraphs)
        print(f"Got {acc} acc subgraphs and {len(subgraphs) - acc} non-acc subgraphs")
        self.tag(subgraphs)
        return self.split()

    def generate_split_results(self) -> SplitResult:
        """Returns the split module, and the inputs of its submodules for the sample input."""
        split = self()
        names = [name for name, _ in split.named_children()]
        inputs = generate_inputs_for_submodules(split, self.sample_input, names)
        return SplitResult(split, inputs, self.non_acc_submodule_name)
