"""What cfx's functions do with objects of torch.fx that they are given.

The rule: a function that reads a graph or module, or returns a new one, works on a copy of cfx's
kind (cfx.text.as_cfx). A function that would edit it in place refuses, because it would edit the
copy: its error names from_torch. Nodes and graphs of torch.fx can be copied into a graph of cfx.
"""
import copy
import importlib
import sys
from typing import Any


def settle(root: Any) -> None:
    """Makes a module of torch.compile, which writes its code when it is first called, write it."""
    lazy = sys.modules.get("torch.fx._lazy_graph_module")
    if lazy is not None:
        lazy._LazyGraphModule.force_recompile(root)


def _copy_node(graph: Any, node: Any, arg_transform: Any) -> Any:
    from torch.fx import map_arg

    def convert(value):
        if arg_transform is None:
            raise TypeError(f"%{node} of torch.fx uses %{value}; pass arg_transform to node_copy, "
                            "or convert the whole graph with cfx.interop.from_torch")
        return arg_transform(value)

    args, kwargs = map_arg(node.args, convert), map_arg(node.kwargs, convert)
    made = graph.create_node(node.op, node.target, args, kwargs, node.name, node.type)
    if node.meta:
        made.meta = copy.copy(node.meta)
    return made


def _copy_graph(graph: Any, source: Any, val_map: dict[Any, Any], return_output_node: bool) -> Any:
    from torch.fx import map_arg

    made: list[Any] = []
    try:
        for node in source.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = _copy_node(graph, node, val_map.__getitem__)
            made.append(node)
    except BaseException:  # a copy that fails leaves nothing behind
        for node in reversed(made):
            graph.erase_node(val_map.pop(node))
        raise
    return None


def copy_into(graph: Any, source: Any, how: Any, return_output_node: bool) -> Any:
    """graph.node_copy(source, how) or graph.graph_copy(source, how, return_output_node) for a node
    or graph of torch.fx."""
    import torch.fx

    if isinstance(source, torch.fx.Node):
        return _copy_node(graph, source, how)
    if isinstance(source, torch.fx.Graph) and isinstance(how, dict):
        return _copy_graph(graph, source, how, return_output_node)
    raise TypeError(f"expected a Node or Graph, got {type(source)}")


def borrowed(module: str, name: str) -> Any:
    """A name of a module of torch.fx that is torch's own machinery: its symbolic sizes, the modes
    of make_fx. There is one of each in a process, so cfx has no other."""
    if name.startswith("__"):
        raise AttributeError(f"module 'cfx.{module}' has no attribute {name!r}")
    return getattr(importlib.import_module(f"torch.fx.{module}"), name)


def lend(module: str, name: str, value: Any) -> None:
    """Sets a name of such a module, where torch reads it."""
    setattr(importlib.import_module(f"torch.fx.{module}"), name, value)
