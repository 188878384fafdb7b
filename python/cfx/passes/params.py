"""Inlines submodules, and turns weights into inputs.

    flat = inline(gm)                        gm, with captured submodules in one graph
    pure, paths = lift_params(gm)            pure(*[gm.get_parameter(p) ...], *inputs)
    again = unlift_params(pure, paths, gm)   reads its weights from gm again
"""
import copy

from ..graph_module import GraphModule, Module


def _copy(gm: GraphModule) -> GraphModule:
    """The module with a graph of its own; it shares parameters and sub-modules with the old one."""
    return GraphModule(gm, copy.deepcopy(gm.graph), type(gm).__name__)


def inline(gm: GraphModule) -> GraphModule:
    """Returns a module with one graph: each call to a submodule that is a GraphModule is replaced
    by the nodes of that submodule, recursively. Names, locations and scopes are kept; paths start
    with the path of the submodule. Raises RecursionError if a module calls itself."""
    new = _copy(gm)
    new.graph._inline(new)
    return GraphModule(new, new.graph, type(gm).__name__)


def lift_params(gm: GraphModule) -> tuple[GraphModule, list[str]]:
    """Returns a module without weights, which takes them as its first arguments, and their paths in
    order: parameters, buffers and other tensors that the graph reads with get_attr."""
    new = _copy(gm)
    paths = new.graph._lift_params(new)
    return GraphModule(new, new.graph, type(gm).__name__), paths


def unlift_params(gm: GraphModule, paths: list[str], root: Module) -> GraphModule:
    """Reverses `lift_params`: the first inputs are read from these paths in `root`, which must also
    contain the modules that the graph calls."""
    graph = copy.deepcopy(gm.graph)
    graph._unlift_params(list(paths), root)
    return GraphModule(root, graph, type(gm).__name__)
