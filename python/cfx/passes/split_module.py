"""Splits a GraphModule into submodules that a new GraphModule calls (the work is in src/split).

`cuts` lists the values that pass from one part to another.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _core
from ..graph_module import GraphModule, torch
from ..node import Node
from ..text import as_cfx
from .graph_manipulation import _bytes_of

__all__ = ["Partition", "split_module", "split_module_simple", "split_stages", "Cut", "cuts"]

# The flags of Graph._split (include/cfx/embed/split.h).
_NAME_BY_TARGET, _NUMBER_INPUTS, _TUPLE, _FLAT_PATHS = 1, 2, 4, 8
_KEEP_ORDER, _FIXED_ORDER, _COPY_ATTRS = 16, 32, 64


class Cut(NamedTuple):
    """A value that one submodule computes and another one reads; None stands for the module
    itself."""

    source: str | None
    target: str | None
    value: str
    """The name of the node in the module that was split."""


class Partition:
    """The state that torch.fx keeps for a partition; exists only for code that refers to it."""

    def __init__(self, name: str) -> None:
        self.name, self.submod_name = name, f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = None
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        rows = {"name": self.name, "nodes": self.node_names, "inputs": self.inputs}
        rows |= {"outputs": self.outputs, "partitions depended on": self.dependencies}
        rows["partition dependents"] = self.dependents
        return ",\n ".join(f"{key}: {value}" for key, value in rows.items())


def _submodules(gm: GraphModule, parts: list[Any], cls: type[GraphModule]) -> dict[str, Any]:
    return {
        name: cls({new: _core._get_attr(gm, old) for new, old in paths.items()}, graph)
        for name, graph, paths in parts
    }


def _split(
    gm: GraphModule, label_of: Callable[[Node], Any], prefix: str, flags: int,
    names: list[str] | None = None, cls: type[GraphModule] = GraphModule,
) -> tuple[GraphModule, list[Any]]:
    gm = as_cfx(gm)
    base, parts, crossing = gm.graph._split(label_of, names, prefix, flags)
    if names is not None:  # by tags: the module is called as before
        base.set_codegen(gm.graph._codegen)
    modules = _submodules(gm, parts, cls)
    paths = (path for path in base._paths(False) if path not in modules)
    result = cls({path: _core._get_attr(gm, path) for path in paths} | modules, base)
    result.meta["cuts"] = [Cut(source, target, node.name) for source, target, node in crossing]
    return result, parts


def cuts(gm: GraphModule) -> list[Cut]:
    """Returns the values that pass between the submodules of a split module, in reading order."""
    return gm.meta["cuts"]


def split_module(
    m: GraphModule, root_m: "torch.nn.Module", split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None, keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False, keep_original_input_name: bool = True, *,
    partition_affix: str | None = None, tuple_return: bool = False,
) -> GraphModule:  # fmt: skip
    """Splits a module into submodules "submod_<label>".

    `split_callback` returns the label of each call. `root_m` is not used. `qualname_map` receives
    the old path of each module for its new one. The submodules are called in an order that respects
    the data dependencies, or in the order of their first nodes (`keep_original_order`). Their nodes
    get new names or keep the old ones (`keep_original_node_name`); their inputs keep their names or
    become "arg_<i>" (`keep_original_input_name`). `partition_affix` changes the names to
    "submod_<affix>_<label>"; with `tuple_return` a submodule returns a tuple even for a single
    value.
    """
    flags = _FLAT_PATHS | (_TUPLE if tuple_return else 0)
    flags |= (_KEEP_ORDER if keep_original_order else 0)
    flags |= (0 if keep_original_node_name else _NAME_BY_TARGET)
    flags |= (0 if keep_original_input_name else _NUMBER_INPUTS)
    prefix = "submod_" if partition_affix is None else f"submod_{partition_affix}_"
    result, parts = _split(m, split_callback, prefix, flags)
    if qualname_map is not None:
        for name, _, paths in parts:
            qualname_map.update({f"{name}.{new}": old for new, old in paths.items()})
    result.meta["partition_names"] = {name for name, _, _ in parts}
    return result


def split_module_simple(
    m: GraphModule, node_to_partition: dict[Node, int], *, partition_affix: str | None = None
) -> GraphModule:
    """Splits a module by a dict from each call to its partition; the order of calls is kept."""
    return split_module(m, None, node_to_partition.__getitem__, keep_original_order=True,
                        keep_original_node_name=True, partition_affix=partition_affix)


def _cost_and_size(gm: GraphModule, node: Node, seen: set[Any]) -> tuple[float, float]:
    """The bytes of a node's value and parameters that no node before it has; and of its value."""
    owned: list[Any] = []
    if node.op == "call_module":
        owned = list(gm.get_submodule(str(node.target)).parameters())
    elif node.op in ("call_function", "call_method"):
        paths = [str(n.target) for n in node.all_input_nodes if n.op == "get_attr"]
        reads = (_core._get_attr(gm, path) for path in paths)
        owned = [value for value in reads if isinstance(value, torch.Tensor)]
    new = [p for p in owned if p not in seen]
    seen.update(new)
    size = _bytes_of(node.meta.get("tensor_meta"))
    return size + sum(p.numel() * p.element_size() for p in new), size


def split_stages(
    gm: GraphModule, n: int, cost: Callable[[Node], float] | None = None
) -> GraphModule:
    """Splits a module into at most `n` consecutive pipeline stages "submod_<i>". The largest cost
    of a stage is as small as possible and, given that, as few bytes as possible pass between
    stages; `cuts` lists them.

    `cost` returns the cost of each call. The default is the bytes of its parameters and (if shapes
    were propagated) of its value; or 1, if nothing is known about any call.
    """
    seen: set[Any] = set()
    numbers = [_cost_and_size(gm, node, seen) for node in gm.graph.nodes]
    costs = [c for c, _ in numbers] if any(c for c, _ in numbers) else None
    sizes = [s for _, s in numbers] if any(s for _, s in numbers) else None
    if cost is not None:
        costs = [float(cost(node)) if node.op.startswith("call") else 0.0
                 for node in gm.graph.nodes]
    stages, _ = gm.graph._stages(n, costs, sizes)
    stage_of: dict[Node, Any] = dict(zip(gm.graph.nodes, stages))
    result = split_module(gm, gm, stage_of.__getitem__, keep_original_order=True,
                          keep_original_node_name=True)
    result.graph.set_codegen(gm.graph._codegen)  # the pipeline is called as the module was
    result.recompile()
    return result
