"""Makes models faster for inference: fuses batch-norms, removes dropout, uses oneDNN layouts."""
import copy
import operator
import time
from collections.abc import Callable, Iterable
from typing import Any

from torch.utils import mkldnn as th_mkldnn

from .._core import Node
from .._symbolic_trace import Tracer, symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule, Module, torch
from ..interpreter import Interpreter

nn, F = torch.nn, torch.nn.functional

__all__ = [
    "matches_module_pattern", "replace_node_module", "fuse", "remove_dropout", "extract_subgraph",
    "modules_to_mkldnn", "reset_modules", "MklSubgraph", "gen_mkl_autotuner", "use_mkl_length",
    "UnionFind", "optimize_for_inference",
]  # fmt: skip


def _parent_name(target: str) -> tuple[str, str]:
    """("foo.bar", "baz") of "foo.bar.baz"."""
    parent, _, name = target.rpartition(".")
    return parent, name


def _called(node: Any, modules: dict[str, Module]) -> Any:
    """The module that a node calls, or None."""
    is_call = isinstance(node, Node) and node.op == "call_module"
    return modules.get(node.target) if is_call else None


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Module]) -> bool:
    """Returns whether `node` calls a module of the last class, its first argument calls one of the
    class before that, and so on."""
    current: Any = node
    for expected in reversed(list(pattern)):
        if type(_called(current, modules)) is not expected:
            return False
        current = current.args[0] if current.args else None
    return True


def replace_node_module(node: Node, modules: dict[str, Module], new_module: Module) -> None:
    """Replaces the module that `node` calls, in its parent and in `modules`."""
    assert isinstance(node.target, str), f"Expected str target, got {type(node.target)}"
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def _pruned(gm: GraphModule) -> GraphModule:
    """A module with what the graph still refers to."""
    return GraphModule(gm, gm.graph)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> Module:
    """Returns a GraphModule in which batch-norms are fused into the weights of the preceding
    convolutions and linear layers (see the pass fuse_bn for what is skipped). The model is copied
    unless `inplace`, and traced unless `no_trace` and it is a GraphModule."""
    model = model if inplace else copy.deepcopy(model)
    traced = no_trace and isinstance(model, GraphModule)
    gm = model if traced else symbolic_trace(model)
    gm = GraphModule(gm, copy.deepcopy(gm.graph))
    gm.graph._pass("fuse_bn", gm)
    _expect_eval(gm)
    return _pruned(gm)


def _expect_eval(gm: GraphModule) -> None:
    """What torch.fx says of pairs that are training, where others would just be left alone."""
    modules = dict(gm.named_modules())
    for node in gm.graph.find_nodes(op="call_module"):
        before: Any = node.args[0] if node.args else None
        bn, layer = _called(node, modules), _called(before, modules)
        if (type(layer), type(bn)) in _fused and bn.training and bn.track_running_stats:
            assert len(before.users) > 1, "Fusion only for eval!"


_fused = [(nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d), (nn.Conv3d, nn.BatchNorm3d)]
_fused += [(nn.Linear, nn.BatchNorm1d)]


def remove_dropout(model: Module) -> Module:
    """Returns a GraphModule without nn.Dropout, even in training mode, and without any other
    dropout that does nothing."""
    gm = symbolic_trace(model)
    gm.graph._remove_dropout(gm, True)
    return _pruned(gm)


def extract_subgraph(
    orig_module: Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]
) -> GraphModule:
    """Returns a module that computes `nodes`. It takes the values of `inputs` and returns a list of
    the values of `outputs`."""
    graph = Graph()
    known = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        known[node] = graph.node_copy(node, known.__getitem__)
    graph.output([known[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


# ---- layouts of oneDNN (MKL-DNN, as torch calls it) --------------------------------------------

mkldnn_supported: list[Any] = [
    nn.Conv2d, nn.Linear, nn.BatchNorm2d, nn.ReLU, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d,
    torch.relu, torch.transpose, torch.sigmoid, F.relu, F.avg_pool2d, F.adaptive_avg_pool2d,
]  # fmt: skip
# These support the layout if one of their operands has it.
mkldnn_supported_unknown: list[Any] = [operator.add, operator.mul]
mkldnn_map: dict[type, Callable[[Any, Any], Module]] = {
    nn.Conv2d: th_mkldnn.MkldnnConv2d,
    nn.Linear: th_mkldnn.MkldnnLinear,
    nn.BatchNorm2d: lambda module, _: th_mkldnn.MkldnnBatchNorm(module),
}


def modules_to_mkldnn(nodes: list[Node], modules: dict[str, Module]) -> dict[Module, Module]:
    """Replaces the modules that the nodes call by oneDNN versions, where these exist. Returns
    {new: old}."""
    old: dict[Module, Module] = {}
    for node in nodes:
        module = _called(node, modules)
        if type(module) in mkldnn_map:
            new = mkldnn_map[type(module)](module, torch.float)
            old[new] = module
            replace_node_module(node, modules, new)
    return old


def reset_modules(
    nodes: Iterable[Node], modules: dict[str, Module], old_modules: dict[Module, Module]
) -> None:
    """Undoes `modules_to_mkldnn`."""
    for node in nodes:
        module = _called(node, modules)
        if module in old_modules:
            replace_node_module(node, modules, old_modules[module])


class MklSubgraph:
    """A part of a graph that could use the oneDNN layout, and the nodes that convert to and from
    it."""

    def __init__(self, fx_graph: Graph) -> None:
        self.fx_graph = fx_graph
        self.nodes: list[Node] = []
        self.start_nodes: list[Node] = []
        self.end_nodes: list[Node] = []


def gen_mkl_autotuner(
    example_inputs: list[torch.Tensor], iters: int = 10, warmup: int = 1
) -> Callable[[MklSubgraph], bool]:
    """Returns a heuristic for `optimize_for_inference` that runs each part both ways, with the
    values it gets when the model gets `example_inputs` (a list, or a single input), and selects the
    faster one."""
    if isinstance(example_inputs, torch.Tensor):
        example_inputs = [example_inputs]

    def seconds(run: Callable[[], object]) -> float:
        for _ in range(warmup):
            run()
        begin = time.time()
        for _ in range(iters):
            run()
        return time.time() - begin

    def use_mkl_heuristic(graph: MklSubgraph) -> bool:
        root = graph.fx_graph.owning_module
        interpreter = Interpreter(root, garbage_collect_values=False)
        interpreter.run(*example_inputs)
        inputs = [interpreter.env[node.args[0]] for node in graph.start_nodes]
        outputs = [node.args[0] for node in graph.end_nodes]
        part = extract_subgraph(root, graph.nodes, graph.start_nodes, outputs)
        there = seconds(lambda: [y.to_dense() for y in part(*[x.to_mkldnn() for x in inputs])])
        reset_modules(part.graph.nodes, dict(part.named_modules()), graph.fx_graph.old_modules)
        return there < seconds(lambda: part(*inputs))

    return use_mkl_heuristic


def use_mkl_length(graph: MklSubgraph) -> bool:
    """A heuristic for `optimize_for_inference`: selects parts of more than two nodes."""
    return len(graph.nodes) > 2


class UnionFind:
    """Disjoint sets of the numbers below `n`. A number has the list of its set, whose first number
    represents the set. To join two sets extends the longer list by the shorter one, so that a
    number changes its list at most log2(n) times."""

    def __init__(self, n: int) -> None:
        self._lists: list[list[int]] = [[] for _ in range(n)]

    def make_set(self, v: int) -> None:
        """Makes a set that contains only `v`."""
        if self._lists[v]:
            self._lists[v].remove(v)
        self._lists[v] = [v]

    @property
    def parent(self) -> list[int | None]:
        """The representative of each number's set; None if it is in no set."""
        return [numbers[0] if numbers else None for numbers in self._lists]

    @property
    def size(self) -> list[int]:
        """The size of each number's set."""
        return [len(numbers) for numbers in self._lists]

    def find(self, v: int) -> int:
        """Returns the representative of the set of `v`."""
        assert self._lists[v], f"{v} is not in any set; call make_set({v}) first"
        return self._lists[v][0]

    def join(self, a: int, b: int) -> int | None:
        """Joins the sets of two numbers; the larger set, or that of `a`, keeps its representative.
        Returns the representative if they were the same set already, otherwise None."""
        if (already := self.find(a)) == self.find(b):
            return already
        longer, shorter = sorted((self._lists[a], self._lists[b]), key=len, reverse=True)
        longer.extend(shorter)
        for number in shorter:
            self._lists[number] = longer
        return None


def _supports_mkldnn(node: Node, modules: dict[str, Module]) -> int:
    module = _called(node, modules)
    if module is not None:
        plain = all(p.dtype == torch.float and p.device.type == "cpu" for p in module.parameters())
        return int(type(module) in mkldnn_supported and plain)
    if node.op != "call_function":
        return 0
    return 1 if node.target in mkldnn_supported else 2 * (node.target in mkldnn_supported_unknown)


def optimize_for_inference(
    model: Module, pass_config: dict[str, Any] | None = None, tracer: type[Tracer] = Tracer
) -> Module:
    """Returns a GraphModule that computes the same, but faster. It fuses batch-norms (unless
    "conv_bn_fuse" in `pass_config` is False), removes dropout ("remove_dropout"), and uses a oneDNN
    layout ("mkldnn_layout_optimize", False or a dict) where the "heuristic" in that dict, a
    function of an MklSubgraph, returns True. The model must be in eval mode and on the CPU."""
    config = {"conv_bn_fuse": True, "remove_dropout": True}
    config |= {"mkldnn_layout_optimize": {"heuristic": use_mkl_length}} | (pass_config or {})
    root = copy.deepcopy(model)
    gm = GraphModule(root, tracer().trace(root))
    gm = fuse(gm, inplace=True, no_trace=True) if config["conv_bn_fuse"] else gm
    if config["remove_dropout"]:
        gm.graph._remove_dropout(gm, True)
        gm = _pruned(gm)
    layout: Any = config["mkldnn_layout_optimize"]
    if layout is False:
        return gm
    if not isinstance(layout, dict):
        raise RuntimeError("mkldnn_layout_optimize config is not a dict")
    if "heuristic" not in layout:
        raise RuntimeError("Heuristic not found in mkldnn_layout_optimize config")
    modules, graph = dict(gm.named_modules()), gm.graph
    old: dict[Module, Module] = {}
    vars(graph)["old_modules"] = old  # for gen_mkl_autotuner

    def choose(nodes: list[Node], starts: list[Node], ends: list[Node]) -> bool:
        part = MklSubgraph(graph)
        part.nodes, part.start_nodes, part.end_nodes = nodes, starts, ends
        old.update(modules_to_mkldnn(nodes, modules))
        chosen = bool(layout["heuristic"](part))
        if not chosen:
            reset_modules(nodes, modules, old)
        return chosen

    graph._relayout("to_mkldnn", "to_dense", lambda n: _supports_mkldnn(n, modules), choose)
    return _pruned(gm)
