"""Splits a module into parts for an accelerator and parts for the CPU; the graph walks are C."""
import argparse
import contextlib
import copy
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
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

    min_acc_module_size: int
    skip_fusion: bool
    allow_non_tensor: bool
    max_acc_splits: int
    move_non_tensor_nodes_on_boundary: bool

    def __init__(
        self, min_acc_module_size: int = DEFAULT_MIN_ACC_MODULE_SIZE,
        skip_fusion: bool = DEFAULT_SKIP_FUSION, allow_non_tensor: bool = DEFAULT_ALLOW_NON_TENSOR,
        max_acc_splits: int = -1, move_non_tensor_nodes_on_boundary: bool = False,
    ) -> None:  # fmt: skip
        settings: dict[str, Any] = {
            "min_acc_module_size": min_acc_module_size, "skip_fusion": skip_fusion,
            "allow_non_tensor": allow_non_tensor, "max_acc_splits": max_acc_splits,
            "move_non_tensor_nodes_on_boundary": move_non_tensor_nodes_on_boundary,
        }  # fmt: skip
        command_line = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
        for name, default in settings.items():
            is_flag = _SplitterSettingBase.__annotations__[name] is bool
            how: Any = {"action": "store_true"} if is_flag else {"type": int}
            command_line.add_argument("--" + name.replace("_", "-"), default=default, **how)
        given = vars(command_line.parse_known_args()[0])
        vars(self).update((name, given[name]) for name in settings)


@dataclass
class NodeEvent:
    """An event in the decision where a node runs, and the other node that caused it."""

    source: Node
    desc: str
    dep: Node | None = None

    def to_str(self) -> str:
        cause = "#" if self.dep is None else self.dep.name
        return f"{self.source.name}: {self.desc} {cause}"


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

    def _lines(self, node_name: str, recursive: bool, tab: str) -> Iterator[str]:
        for place in self.node_events.get(node_name, ()):
            event = self.events[place]
            yield tab + event.to_str()
            if recursive and event.dep is not None:
                yield from self._lines(event.dep.name, True, "| " + tab)

    def _all_lines(self) -> Iterator[str]:
        for name in self.node_events:
            yield f"Node: {name}:"
            yield from self._lines(name, False, "  ")

    def print_node(
        self, node_name: str, recursive: bool = False, tab: str = "",
        writer: Callable[[str], object] | None = None,
    ) -> None:  # fmt: skip
        """Writes the events of a node and, if `recursive`, of the nodes that caused them."""
        for line in self._lines(node_name, recursive, tab):
            (writer or self.writer)(line)

    def to_dict(self) -> dict[str, list[str]]:
        """{name of the node: its events}."""
        return {name: [*self._lines(name, False, "")] for name in self.node_events}

    def print_all(self, writer: Callable[[str], object] | None = None) -> None:
        """Writes the events of all nodes."""
        for line in self._all_lines():
            (writer or self.writer)(line)

    def dump(self) -> None:
        """Writes the events that the mode selects to files whose names start with `dump_prefix`."""
        if self.tracker_mode == 2:
            wanted = os.environ.get(ENV_FX_NET_ACC_SPLITTER_TRACKER_TRACKED_NODES, "").split(",")
            self._write(NODES_SUFFIX, (t for name in wanted for t in self._lines(name, True, "")))
        elif self.tracker_mode > 2:
            self._write(ALL_SUFFIX, self._all_lines())

    def _write(self, suffix: str, lines: Iterable[str]) -> None:
        with open(self.dump_prefix + suffix, "w") as file:
            file.writelines(f"{line}\n" for line in lines)


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
    """Runs the model without gradients and returns {submodule: the inputs of its last call}. It has
    no entry for a submodule that does not exist or is not called."""
    given: dict[str, Any] = {}
    wanted = set(target_submodules)

    def keep(name: str, _: Any, args: Any) -> None:
        given[name] = copy.deepcopy(args) if deepcopy else args

    with contextlib.ExitStack() as hooks, torch.no_grad():
        for name, module in model.named_modules():
            if name in wanted:
                hooks.callback(module.register_forward_pre_hook(partial(keep, name)).remove)
        model(*inputs)
    return given


def _kind_of_call(modules: dict[str, Module], node: Node) -> str:
    """The name of what a node calls, and the dtypes of the nodes that it reads."""
    args = tuple(_get_arg_dtype(arg) for arg in node.args if isinstance(arg, Node))
    kwargs = {k: _get_arg_dtype(arg) for k, arg in node.kwargs.items() if isinstance(arg, Node)}
    return f"{get_node_target(modules, node)}: ({args}, {kwargs})"


def _count_subgraphs(when: str, subgraphs: list[Subgraph]) -> str:
    total, acc = len(subgraphs), sum(subgraph.is_acc for subgraph in subgraphs)
    return (f"{when} removing small acc subgraphs, total {total} subgraphs are created: {acc} acc "
            f"subgraphs and {total - acc} cpu subgraphs.\n")  # fmt: skip


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
        calls = [n for n in self.module.graph.nodes if n.op in CALLABLE_NODE_OPS]
        supports = self.operator_support.is_node_supported
        supported_nodes = [node for node in calls if supports(modules, node)]
        if dump_graph:
            self._draw_graph_based_on_node_support(self.module, supported_nodes)
        chosen, reports = set(supported_nodes), ""
        for word, which in (("Supported", True), ("Unsupported", False)):
            kinds = (_kind_of_call(modules, n) for n in calls if (n in chosen) == which)
            lines = dict.fromkeys(f"{kind}\n" for kind in kinds)  # in order, each once
            reports += f"\n{word} node types in the model:\n" + "".join(lines)
        print(reports)
        return reports

    def split_preview(self, dump_graph: bool = False) -> str:
        """Prints and returns the planned split, and whether each part can be lowered."""
        plan = copy.copy(self)
        plan.tags, plan._node_submodule_map = [], {}
        found = plan.put_nodes_into_subgraphs()
        left = plan.remove_small_acc_subgraphs(found)
        plan.tag(left)
        text = _count_subgraphs("Before", found) + _count_subgraphs("After", left)
        for tag, subgraph in zip(plan.tags, left, strict=True):
            text += f"{tag}: {len(subgraph.nodes)} node(s)\n"
        split = plan.split(remove_tag=True)
        names = [name for name, _ in split.named_children() if name.startswith("_run_on_acc_")]
        for name, inputs in generate_inputs_for_submodules(split, self.sample_input, names).items():
            text += f"\nProcessing acc submodule {name}\n"
            text += self._try_to_lower(split.get_submodule(name), inputs)
        print(text)
        return text

    def _try_to_lower(self, mod: Any, inputs: Tensors) -> str:
        try:
            self._lower_model_to_backend(mod, inputs)(*inputs)
        except RuntimeError:
            why = self._find_culprit(mod, inputs)
            return f"Run into an issue during lowering or running!\n{why}"
        return "Lowering and running succeed!\n"

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
        sources = (n for n in self.module.graph.nodes if n.op in ("placeholder", "get_attr"))
        users = {u for node in sources for u in node.users if u.op in CALLABLE_NODE_OPS}
        return users - self.acc_nodes, users & self.acc_nodes

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
        for stays, run in groupby(subgraphs, lambda s: s.is_acc and len(s.nodes) >= least):
            neighbours = list(run)
            if stays:
                result += neighbours
                continue
            for size in (len(subgraph.nodes) for subgraph in neighbours if subgraph.is_acc):
                print("Eliminating acc subgraph because it's smaller than the threshold: "
                      f"{size} < {least}")  # fmt: skip
            nodes = [node for subgraph in neighbours for node in subgraph.nodes]
            result.append(Subgraph(is_acc=False, nodes=nodes))
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
