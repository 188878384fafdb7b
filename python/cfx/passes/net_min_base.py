"""Finds the nodes for which two ways to run a module give different results.

A strategy visits parts of the list of calls. A visit runs a part in both ways and returns its nodes
if the results differ or a run raises, otherwise an empty set.
"""
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from ..graph_module import GraphModule
from ..node import Node
from .shape_prop import ShapeProp
from .split_utils import split_by_tags
from .splitter_base import generate_inputs_for_submodules
from .tools_common import CALLABLE_NODE_OPS, FxNetAccFusionsFinder, Names, NodeList, NodeSet
from .tools_common import TensorOrTensors, Tensors

__all__ = ["FxNetMinimizerBadModuleError", "FxNetMinimizerRunFuncError",
           "FxNetMinimizerResultMismatchError"]  # fmt: skip

_Visit = Callable[..., NodeSet]


class FxNetMinimizerBadModuleError(Exception):
    """The nodes cannot be split off as a module."""


class FxNetMinimizerRunFuncError(Exception):
    """`run_a` or `run_b` failed."""


class FxNetMinimizerResultMismatchError(Exception):
    """The results differ."""


# ---- strategies ----


def _one_by_one(visit: _Visit, nodes: NodeList, find_all: bool) -> NodeSet:
    found: NodeSet = set()
    for node in nodes:
        if found and not find_all:
            break
        found |= visit([node])
    return found


def _halves(visit: _Visit, nodes: NodeList, find_all: bool, exclude: Any) -> NodeSet:
    """Visits a part, and its halves if it fails, the first half first."""
    found: NodeSet = set()
    waiting = [(0, len(nodes))]
    while waiting and (find_all or not found):
        low, high = waiting.pop()
        part = nodes[low:high]
        if exclude is not None:
            exclude(part, low, high)
        failing = visit(part) if part else set()
        if failing and len(part) == 1:
            found |= failing
        elif failing:
            middle = (low + high) // 2
            waiting += [(middle, high), (low, middle)]
    return found


def _block(visit: _Visit, nodes: NodeList, find_last: bool | None) -> NodeSet:
    """The shortest block that fails: its end is where the parts from the first node on begin to
    fail, its start is the last from which they do. `find_last` is true for the end alone, false
    for the start alone. Bisection never visits the last candidate, so that it is visited at the
    end."""
    start, end = 0, len(nodes)
    if find_last is not False:
        begins = lambda i: bool(visit(nodes[: i + 1]))  # noqa: E731
        last = bisect_left(range(end - 1), True, key=begins)
        if not begins(last):
            return set()
        end = last + 1
    if find_last is not True:
        stops = lambda i: not visit(nodes[i:])  # noqa: E731
        start = bisect_left(range(end - 1), True, key=stops)
        start -= stops(start)
    return set(nodes[start:end]) if start >= 0 else set()


def _growing(visit: _Visit, nodes: NodeList) -> NodeSet:
    """The first node that makes the part from the first node on fail."""
    parts = (nodes[: i + 1] for i in range(len(nodes)))
    return next(({part[-1]} for part in parts if visit(part, fuse=False)), set())


def _between(visit: _Visit, nodes: NodeList, skipped: list[str]) -> NodeSet:
    """The parts that fail, of those that are left if the nodes with these names are taken out."""
    runs = groupby(nodes, lambda node: node.name in skipped)
    return {node for skip, run in runs if not skip for node in visit([*run], last_only=False)}


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
        lines = (f"\t{name}: {value}\n" for name, value in asdict(self).items())
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

    @staticmethod
    def _returned(part: GraphModule) -> tuple[Names, bool]:
        """The names of what a part returns, and whether that is a single value."""
        out: Any = part.graph.output_node().args[0]
        single = isinstance(out, Node)
        return [node.name for node in ([out] if single else out)], single

    def _store_outputs(
        self, a_result: TensorOrTensors, b_result: TensorOrTensors, submodule: GraphModule
    ) -> None:
        """Keeps the results of a part by the names of its nodes."""
        names, single = self._returned(submodule)
        for kept, result in ((self.a_outputs, a_result), (self.b_outputs, b_result)):
            kept.update(zip(names, (result,) if single else result, strict=True))

    def _get_submod_inputs(
        self, main_module: GraphModule, submod_path: str
    ) -> tuple[Tensors, Tensors]:
        """The inputs of a part for run_a and run_b: what they returned before, if errors accumulate
        and all of it is known; otherwise what the part gets in a run of the whole module."""
        if self.settings.accumulate_error:
            part = main_module.get_submodule(submod_path)
            names = [n.target for n in part.graph.find_nodes(op="placeholder")]
            unknown = [name for name in names if name not in self.a_outputs]
            if not unknown:
                return [self.a_outputs[n] for n in names], [self.b_outputs[n] for n in names]
            print(f"The values of {unknown} are not known yet; the sample input is run for them")
        given = generate_inputs_for_submodules(main_module, self.sample_input, [submod_path])
        return given[submod_path], given[submod_path]

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
        """Runs a part in both ways and compares what it returns, or the nodes with these names. The
        difference is kept in `results` by the names of what was compared. Raises
        FxNetMinimizerRunFuncError if a run fails, FxNetMinimizerResultMismatchError if the results
        differ."""
        log = self._report(report_idx).append
        part: Any = getattr(split_module, submod_name)
        inputs = self._get_submod_inputs(split_module, submod_name)
        log("Run and compare ...")
        if output_names and not self.settings.all_outputs:
            self._return_only(part, output_names)
        names, single = self._returned(part)
        try:
            a_result = self.run_a(part, inputs[0], report_idx)
            b_result = self.run_b(part, inputs[1], report_idx)
            self._store_outputs(a_result, b_result, part)
        except Exception as error:
            log(message := f"Exception raised when running {submod_name}: {error}")
            raise FxNetMinimizerRunFuncError(message) from error
        compared = (names[0] if single else tuple(names),)
        self.results[compared], same = self.compare_fn(a_result, b_result, output_names)
        log(f"Numerical accuracy = {self.results[compared]}")
        if same:
            return
        if self.module_exporter is not None:
            for given, suffix in zip(inputs, ("_cpu", "_acc")):
                self.module_exporter(given, part, names[0] + suffix)
        log(message := f"Result mismatch for {compared}")
        raise FxNetMinimizerResultMismatchError(message)

    @staticmethod
    def _return_only(part: GraphModule, names: Names) -> None:
        graph = part.graph
        nodes = [node for node in graph.nodes if node.name in names]
        graph.output_node().args = (nodes[0] if len(nodes) == 1 else tuple(nodes),)
        part.recompile()

    # ---- visits ----

    def _report(self, index: int) -> list[str]:
        """The report with this index; for a negative one the latest, or a first one."""
        if not self.reports:
            self._begin_report()
        return self.reports[index if index >= 0 else self.iteration - 1]

    def _begin_report(self, *lines: str) -> list[str]:
        self.iteration += 1
        self.reports.append([line.format(self.iteration) for line in lines])
        return self.reports[-1]

    def _with_fusions(self, nodes: NodeList) -> NodeSet:
        return set(nodes).union(*(self.fusions.get(node, ()) for node in nodes))

    def _failure(self, nodes: NodeSet, output_names: Names) -> Exception | None:
        try:
            self._run_and_compare(*self._build_submodule(nodes), output_names)
        except (FxNetMinimizerRunFuncError, FxNetMinimizerResultMismatchError) as error:
            return error
        return None

    def _visit(self, nodes: NodeList, fuse: bool = True, last_only: bool = True) -> NodeSet:
        """Runs these nodes, with their fusions if `fuse`, as one part in both ways and compares the
        last value, or else all that the part returns. Returns the nodes if they fail."""
        method = self.settings.traverse_method.capitalize()
        where = f"node: {nodes[0]}" if len(nodes) == 1 else f"{len(nodes)} nodes: {nodes}"
        report = self._begin_report(f"{method} traverse iteration {{}}.", f"Visit {where}")
        part = self._with_fusions(nodes) if fuse else set(nodes)
        error = self._failure(part, [nodes[-1].name] if last_only else [])
        if error:
            kind = "run" if isinstance(error, FxNetMinimizerRunFuncError) else "numeric"
            what = "Found culprit" if len(nodes) == 1 else "A culprit is among these nodes,"
            report.append(f"{what} from {kind} error: {', '.join(map(str, nodes))}")
        else:
            report.append("No difference.")
        self.print_report(report)
        return part if error else set()

    def _collect_nodes(self, start: str | None, end: str | None) -> NodeList:
        """The calls from the one named `start` to the one named `end`."""
        calls = [n for n in self.module.graph.nodes if n.op in CALLABLE_NODE_OPS]
        place = {node.name: i for i, node in enumerate(calls)}
        first = 0 if start is None else place.get(start, len(calls))
        return calls[first : place.get(end or "", len(calls)) + 1]

    def run_nodes(self, start: str | None = None, end: str | None = None) -> None:
        """Runs and compares a part of the module, and prints the error found."""
        nodes = self._collect_nodes(start, end)
        names = [n.name for n in nodes] if self.settings.return_intermediate else []
        if error := self._failure(self._with_fusions(nodes), names):
            print(error)

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
        settings, nodes = self.settings, self._collect_nodes(start, end)
        method, find_all = settings.traverse_method, settings.find_all
        print(settings)
        print(self.module.graph)
        if method == "skip" and skip_nodes is None:
            raise RuntimeError("'skip_nodes' can't be None when 'traverse_method' is 'skip'.")
        search: dict[str, Callable[[], NodeSet]] = {
            "sequential": lambda: _one_by_one(self._visit, nodes, find_all),
            "binary": lambda: _halves(self._visit, nodes, find_all, self.exclusion_fn),
            "block": lambda: _block(self._visit, nodes, find_last_node),
            "accumulate": lambda: _growing(self._visit, nodes),
            "skip": lambda: _between(self._visit, nodes, skip_nodes or []),
            "defined": lambda: self._visit(nodes) and set(),  # only the report tells
        }
        if method not in search:
            raise RuntimeError(f"Unknown traverse method {method}!")
        if method == "accumulate" and find_all:
            print("'accumulate' finds one culprit only: 'find_all' needs another traverse method")
            return set()
        return search[method]() if nodes else set()
