"""Models made faster for inference: batch-norms fused, dropout taken out, oneDNN layouts."""
import copy
from collections.abc import Iterable

from .. import _symbolic_trace
from .._core import Node
from ..graph import Graph
from ..graph_module import GraphModule, Module, torch

nn = torch.nn


def _parent_name(target: str) -> tuple[str, str]:
    """("foo.bar", "baz") of "foo.bar.baz"."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(
    pattern: Iterable[type], node: Node, modules: dict[str, Module]
) -> bool:
    """Whether `node` calls a module of the last class, its first argument one of the class before
    that, and so on."""
    current: object = node
    for expected in reversed(list(pattern)):
        if not isinstance(current, Node) or current.op != "call_module":
            return False
        if type(modules.get(current.target)) is not expected:
            return False
        current = current.args[0] if current.args else None
    return True


def replace_node_module(node: Node, modules: dict[str, Module], new_module: Module) -> None:
    """Puts a module in the place of the one that `node` calls, in its parent and in `modules`."""
    assert isinstance(node.target, str), f"Expected str target, got {type(node.target)}"
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def _pruned(gm: GraphModule) -> GraphModule:
    """A module with what the graph still refers to."""
    return GraphModule(gm, gm.graph)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> Module:
    """A GraphModule in which the weights of convolutions and linear layers include those of the
    batch-norms behind them (pass fuse_bn; see there for what is left alone). The model is copied
    unless `inplace`, and traced unless `no_trace` and it is a GraphModule."""
    model = model if inplace else copy.deepcopy(model)
    traced = no_trace and isinstance(model, GraphModule)
    gm = model if traced else _symbolic_trace.symbolic_trace(model)
    gm = GraphModule(gm, copy.deepcopy(gm.graph))
    gm.graph._pass("fuse_bn", gm)
    _expect_eval(gm)
    return _pruned(gm)


_norms = {"Conv1d": "BatchNorm1d", "Conv2d": "BatchNorm2d", "Conv3d": "BatchNorm3d"}
_patterns = [(getattr(nn, k), getattr(nn, v)) for k, v in _norms.items()]
_patterns.append((nn.Linear, nn.BatchNorm1d))


def _expect_eval(gm: GraphModule) -> None:
    """What torch.fx says of pairs that are training, where others would just be left alone."""
    modules = dict(gm.named_modules())
    for node in gm.graph.find_nodes(op="call_module"):
        bn = modules.get(node.target)
        if not getattr(bn, "training", False) or not getattr(bn, "track_running_stats", False):
            continue
        if any(matches_module_pattern(pattern, node, modules) for pattern in _patterns):
            assert len(node.args[0].users) > 1, "Fusion only for eval!"


def remove_dropout(model: Module) -> Module:
    """A GraphModule without nn.Dropout, even if that is training, and without all other dropout
    that does nothing."""
    gm = _symbolic_trace.symbolic_trace(model)
    gm.graph._remove_dropout(gm, True)
    return _pruned(gm)


def extract_subgraph(
    orig_module: Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]
) -> GraphModule:
    """A module that computes `nodes`: it takes the values of `inputs`, returns those of `outputs` as
    a list."""
    graph = Graph()
    known = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        known[node] = graph.node_copy(node, known.__getitem__)
    graph.output([known[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)
