"""Finds the nodes for which two ways to run a module give different results."""
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from ..graph_module import GraphModule
from ..node import Node, map_arg
from .shape_prop import ShapeProp
from .split_utils import split_by_tags
from .splitter_base import generate_inputs_for_submodules
from .tools_common import CALLABLE_NODE_OPS, FxNetAccFusionsFinder, Names, NodeList, NodeSet
from .tools_common import TensorOrTensors, Tensors

__all__ = ["FxNetMinimizerBadModuleError", "FxNetMinimizerRunFuncError",
           "FxNetMinimizerResultMismatchError"]  # fmt: skip


class FxNetMinimizerBadModuleError(Exception):
    """The nodes cannot be split off as a module."""


class FxNetMinimizerRunFuncError(Exception):
    """`run_a` or `run_b` failed."""


class FxNetMinimizerResultMismatchError(Exception):
    """The results differ."""


_FAILED = FxNetMinimizerRunFuncError, FxNetMinimizerResultMismatchError
_HALVES = "Proceed to split and lower the halves of the current sub-module individually."


@dataclass
class _MinimizerSettingBase:
    """`accumulate_error`: run_b continues from its own results; `traverse_method`: "sequential",
    "binary", "block", "accumulate", "skip" or "defined"; `find_all`: do not stop at the first
    culprit; `return_intermediate`: run_nodes compares every node; `all_outputs`: compare all
    outputs."""

    accumulate_error: bool = False
    traverse_method: str = "sequential"
    find_all: bool = False
    return_intermediate: bool = False
    all_outputs: bool = False

    def __str__(self) -> str:
        lines = (f"\t{f.name}: {getattr(self, f.name)}\n" for f in fields(self))
        return "FX Minimizer Settings:\n" + "".join(lines)


class _MinimizerBase:
    """Splits parts off a module, runs each with `run_a` and `run_b`, which a subclass defines, and
    compares the results with `compare_fn(a, b, names)`, which returns (difference, whether
    equal)."""

    def __init__(
        self, module: GraphModule, sample_input: Tensors,
        compare_fn: Callable[[TensorOrTensors, TensorOrTensors, Names], tuple[float, bool]],
        settings: _MinimizerSettingBase,
        module_exporter: Callable[[Tensors, GraphModule, str], None] | None = None,
        exclusion_fn: Callable[[NodeList, int, int], None] | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(module, GraphModule):
            raise AssertionError(f"Expected a cfx.GraphModule, got {type(module)}")
        self.module, self.sample_input, self.compare_fn = module, sample_input, compare_fn
        self.module_exporter, self.settings = module_exporter, settings
        self.exclusion_fn = exclusion_fn
        inputs = module.graph.find_nodes(op="placeholder")
        self.a_outputs = {n.name: v for n, v in zip(inputs, sample_input, strict=False)}
        self.b_outputs = dict(self.a_outputs)
        self.results: dict[Any, Any] = {}
        self.reports: list[list[str]] = []
        self.iteration = 0
        self.run_shape_prop()
        calls = {n for n in module.graph.nodes if n.op in CALLABLE_NODE_OPS}
        self.fusions = FxNetAccFusionsFinder(module, calls)()

    def run_shape_prop(self) -> None:
        """Propagates the types and shapes of all values."""
        ShapeProp(self.module).propagate(*self.sample_input)

    def run_a(self, mod: GraphModule, inputs: Tensors, report_idx: int = -1) -> TensorOrTensors:
        """Runs a part in the first way."""
        raise RuntimeError("run_a() is not implemented.")

    def run_b(self, mod: GraphModule, inputs: Tensors, report_idx: int = -1) -> TensorOrTensors:
        """Runs a part in the second way."""
        raise RuntimeError("run_b() is not implemented.")

    def _store_outputs(
        self, a_result: TensorOrTensors, b_result: TensorOrTensors, submodule: GraphModule
    ) -> None:
        """Keeps the results of a part by the names of its nodes."""
        out = submodule.graph.output_node().args[0]
        single = isinstance(out, Node)
        for i, node in enumerate([out] if single else out):
            self.a_outputs[node.name] = a_result if single else a_result[i]
            self.b_outputs[node.name] = b_result if single else b_result[i]

    def _get_submod_inputs(
        self, main_module: GraphModule, submod_path: str
    ) -> tuple[Tensors, Tensors]:
        """The inputs of a part for run_a and run_b: results that are kept, or those of the whole
        module."""
        graph = getattr(main_module, submod_path).graph
        names = [n.target for n in graph.find_nodes(op="placeholder")]
        if self.settings.accumulate_error:
            if all(name in self.a_outputs for name in names):
                return [self.a_outputs[n] for n in names], [self.b_outputs[n] for n in names]
            print(f"Can't find previous stored outputs named {names}!")
        inputs = generate_inputs_for_submodules(main_module, self.sample_input, [submod_path])
        return inputs[submod_path], inputs[submod_path]

    def _tag_nodes(self, selected_nodes: NodeSet) -> None:
        """Tags these nodes "minimize", what needs them "main_1" and all others "main_0"."""
        after = set(self.module.graph._reached(list(selected_nodes), True))
        for node in self.module.graph.nodes:
            if node.op in CALLABLE_NODE_OPS:
                after_or_before = "main_1" if node in after else "main_0"
                node.tag = "minimize" if node in selected_nodes else after_or_before

    def _build_submodule(self, nodes: NodeSet) -> tuple[GraphModule, str]:
        """The module split so that these nodes are a part, and the name of that part."""
        self._tag_nodes(nodes)
        split: Any
        try:
            split = split_by_tags(self.module, ["main_0", "minimize", "main_1"])
        except AssertionError as e:
            raise FxNetMinimizerBadModuleError(f"cannot split off {nodes}: {e}") from None
        if not hasattr(split, "minimize"):
            message = f"Minimize submodule was not found with nodes {nodes}"
            raise FxNetMinimizerBadModuleError(message)
        return split, "minimize"

    def _run_and_compare(
        self, split_module: GraphModule, submod_name: str, output_names: Names, report_idx: int = -1
    ) -> None:
        """Runs a part in both ways and compares what it returns, or the nodes with these names."""
        submodule = getattr(split_module, submod_name)
        a_input, b_input = self._get_submod_inputs(split_module, submod_name)
        if not self.reports:
            self.reports.append([])
            self.iteration = 1
        report = self.reports[report_idx if report_idx >= 0 else self.iteration - 1]
        report.append("Run and compare ...")
        if output_names and not self.settings.all_outputs:
            nodes = [n for n in submodule.graph.nodes if n.name in output_names]
            submodule.graph.erase_node(submodule.graph.output_node())
            submodule.graph.output(nodes[0] if len(nodes) == 1 else tuple(nodes))
            submodule.recompile()
        key = map_arg(submodule.graph.output_node().args, lambda node: node.name)
        try:
            a_result = self.run_a(submodule, a_input, report_idx)
            b_result = self.run_b(submodule, b_input, report_idx)
            self._store_outputs(a_result, b_result, submodule)
        except Exception as e:
            report.append(f"Exception raised when running {submod_name}: {e}")
            raise FxNetMinimizerRunFuncError(report[-1]) from e
        difference, equal = self.compare_fn(a_result, b_result, output_names)
        self.results[key] = difference
        report.append(f"Numerical accuracy = {difference}")
        if not equal:
            report.append(f"Result mismatch for {key}")
            if self.module_exporter:
                name = key[0] if isinstance(key[0], str) else "_".join(key[0])
                self.module_exporter(a_input, submodule, name + "_cpu")
                self.module_exporter(b_input, submodule, name + "_acc")
            raise FxNetMinimizerResultMismatchError(report[-1])

    # ---- ways to go through the nodes ----

    @contextlib.contextmanager
    def _report(self, *lines: str) -> Iterator[list[str]]:
        """A new report, printed at the end."""
        self.iteration += 1
        report = [line.format(self.iteration) for line in lines]
        self.reports.append(report)
        yield report
        self.print_report(report)

    def _with_fusions(self, nodes: NodeList) -> NodeSet:
        return set(nodes).union(*(self.fusions.get(node, ()) for node in nodes))

    def _try(self, nodes: NodeSet, output_names: Names) -> Exception | None:
        """What is wrong with these nodes, if anything is."""
        try:
            self._run_and_compare(*self._build_submodule(nodes), output_names)
        except _FAILED as e:
            return e
        return None

    @staticmethod
    def _kind(e: Exception) -> str:
        return "run" if isinstance(e, FxNetMinimizerRunFuncError) else "numeric"

    def _binary_search_impl(self, all_nodes: NodeList, start_idx: int, end_idx: int) -> NodeSet:
        """The culprits among all_nodes[start_idx:end_idx]."""
        nodes = all_nodes[start_idx:end_idx]
        if self.exclusion_fn is not None:
            self.exclusion_fn(nodes, start_idx, end_idx)
            if not nodes:
                return set()
        ends = f"{start_idx}:{nodes[0]} to {end_idx - 1}:{nodes[-1]}"
        size = f"Size of the interested node list is {len(nodes)}"
        title = "Binary search iteration {}"
        with self._report(title, f"From node index {ends}. {size}") as report:
            culprits = self._with_fusions(nodes)
            failed = self._try(culprits, [nodes[-1].name])
            if not failed:
                report.append("No discrepancy found.")
            elif len(nodes) == 1:
                report.append("This is the last node in the sub-module. Search in the current "
                              f"branch is successful with culprit = {culprits}.")  # fmt: skip
            else:
                report.append(_HALVES)
        if not failed or len(nodes) == 1:
            return culprits if failed else set()
        mid = start_idx + len(nodes) // 2
        culprits = self._binary_search_impl(all_nodes, start_idx, mid)
        if not culprits or self.settings.find_all:
            culprits = culprits | self._binary_search_impl(all_nodes, mid, end_idx)
        if not culprits:
            report.append("Further split and lowering found no errors. Unable to minimize the "
                          f"submodule with list of nodes: {nodes}")  # fmt: skip
            self.print_report(report)
        return culprits

    def _binary_traverse(self, nodes: NodeList) -> NodeSet:
        return self._binary_search_impl(nodes, 0, len(nodes))

    def _sequential_traverse(self, nodes: NodeList) -> NodeSet:
        culprits: NodeSet = set()
        for node in nodes:
            title = "Sequential traverse iteration {}."
            with self._report(title, f"Visit node: {node.name}") as report:
                mine = self._with_fusions([node])
                if failed := self._try(mine, [node.name]):
                    culprits |= mine
                    report.append(f"Found culprit from {self._kind(failed)} error: {node}")
            if failed and not self.settings.find_all:
                break
        return culprits

    def _block_traverse_impl(
        self, nodes: NodeList, start_idx: int, end_idx: int, find_last_node: bool
    ) -> int:
        """The first end, or the last start, of a list of nodes that fails."""
        mid = start_idx + (end_idx - start_idx) // 2
        part = nodes[: mid + 1] if find_last_node else nodes[mid:]
        which = "last" if find_last_node else "first"
        with self._report(
            "=" * 30, "Block search iteration {}", f"Search for {which} node in culprits",
            f"From node index {start_idx}:{nodes[start_idx]} to {end_idx}:{nodes[end_idx]}. ",
            f"Subgraph constructed by {part[0]} to {part[-1]}", f"Targeting node: {nodes[mid]}",
            f"Size of the interested node list is {end_idx - start_idx + 1}",
        ) as report:  # fmt: skip
            failed = self._try(self._with_fusions(part), [part[-1].name])
            at = f"{part[0]} to {part[-1]}" if failed else f"start to {mid}:{nodes[mid]}"
            report.append(f"Culprits {'' if failed else 'not '}found from node {at}.")
            if start_idx == end_idx:
                step = 0 if failed else 1 if find_last_node else -1
                found = min(max(mid + step, 0), len(nodes) - 1)
                report += ["This is the last node in the sub-module. ",
                           "Search in the current branch is successful with node :",
                           f"{found}, node name: {nodes[found]}."]  # fmt: skip
                return found
            report.append(_HALVES)
        before = bool(failed) == find_last_node
        low, high = (start_idx, mid if find_last_node else max(mid - 1, start_idx))
        if not before:
            low, high = min(mid + 1, end_idx), end_idx
        return self._block_traverse_impl(nodes, low, high, find_last_node)

    def _block_traverse(self, nodes: NodeList, find_last_node: bool | None) -> NodeSet:
        """The smallest block with all culprits: its end, then its start."""
        start, end = 0, len(nodes) - 1
        if find_last_node is not False:
            end = self._block_traverse_impl(nodes, 0, end, True)
            self.print_report([f"Block search from {nodes[0]} to {nodes[-1]}", "Finish Pass 1",
                               f"Find end_idx = {end}:{nodes[end]}"])  # fmt: skip
        if find_last_node is not True:
            start = self._block_traverse_impl(nodes, 0, end, False)
            self.print_report(["Start searching for first node in culprit", "Finish Pass 2",
                               f"Find start_idx = {start}:{nodes[start]}"])  # fmt: skip
        self.print_report([f"Finish searching, found minimum block ({nodes[start]},{nodes[end]})"])
        return set(nodes[start : end + 1])

    def _defined_traverse(self, nodes: NodeList) -> NodeSet:
        """Runs these nodes as one; as torch.fx does, reports a culprit but gives back none."""
        with self._report(f"Defined graph from {nodes[0]} to {nodes[-1]}") as report:
            mine = self._with_fusions(nodes)
            if self._try(mine, [nodes[-1].name]):
                report.append(f"Found culprit {mine}")
        return set()

    def _accumulate_traverse(self, nodes: NodeList) -> NodeSet:
        if self.settings.find_all:
            print("'Find All' mode is not supported in accumulate traversal.")
            return set()
        for i, node in enumerate(nodes):
            title = "Accumulate traverse iteration {}."
            with self._report(title, f"Add node: {node.name}") as report:
                failed = self._try(set(nodes[: i + 1]), [node.name])
                if failed:
                    report.append(f"Found culprit {node}")
            if failed:
                return {node}
        return set()

    def _skip_traverse_impl(self, all_nodes: NodeList, start_idx: int, end_idx: int) -> NodeSet:
        nodes = all_nodes[start_idx:end_idx]
        where = f"From node index {start_idx} to {end_idx - 1}. "
        size = f"Size of the interested node list is {len(nodes)}"
        with self._report(" Nodes block {}.", where + size) as report:
            mine = self._with_fusions(nodes)
            failed = self._try(mine, [])
            report.append(f"Found culprit from {self._kind(failed)} error: {mine}" if failed
                          else "No discrepancy found.")  # fmt: skip
        return mine if failed else set()

    def _skip_traverse(self, all_nodes: NodeList, skip_nodes: list) -> NodeSet:
        culprits: NodeSet = set()
        start = 0
        for i, node in enumerate([*all_nodes, None]):
            if node is None or node.name in skip_nodes:
                if i > start:
                    culprits |= self._skip_traverse_impl(all_nodes, start, i)
                start = i + 1
        return culprits

    # ---- the whole of it ----

    def _collect_nodes(self, start: str | None, end: str | None) -> NodeList:
        """The calls from the one named `start` to the one named `end`."""
        calls = [n for n in self.module.graph.nodes if n.op in CALLABLE_NODE_OPS]
        names = [node.name for node in calls]
        first = 0 if start is None else names.index(start) if start in names else len(names)
        return calls[first : names.index(end) + 1 if end in names else None]

    def run_nodes(self, start: str | None = None, end: str | None = None) -> None:
        """Runs and compares a part of the module, and prints the errors found."""
        nodes = self._collect_nodes(start, end)
        names = [n.name for n in nodes] if self.settings.return_intermediate else []
        if failed := self._try(self._with_fusions(nodes), names):
            print(failed)

    def print_report(self, report: list[str]) -> None:
        """Prints one report."""
        print("\n . ".join(report))

    def print_reports(self) -> None:
        """Prints all reports."""
        for report in self.reports:
            self.print_report(report)

    def minimize(
        self, start: str | None = None, end: str | None = None, skip_nodes: list | None = None,
        find_last_node: bool | None = None,
    ) -> NodeSet:  # fmt: skip
        """Returns the culprits between the nodes named `start` and `end`, as the settings specify.
        `skip_nodes` is for "skip"; `find_last_node` is for "block": True finds only the end, False
        only the start."""
        print(self.settings)
        print(self.module.graph)
        nodes = self._collect_nodes(start, end)
        method = self.settings.traverse_method
        if method == "skip":
            if skip_nodes is None:
                raise RuntimeError("'skip_nodes' can't be None when 'traverse_method' is 'skip'.")
            return self._skip_traverse(nodes, skip_nodes)
        if method == "block":
            return self._block_traverse(nodes, find_last_node)
        if method not in ("sequential", "binary", "accumulate", "defined"):
            raise RuntimeError(f"Unknown traverse method {method}!")
        return getattr(self, f"_{method}_traverse")(nodes)
