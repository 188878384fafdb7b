"""Constant folding: values that depend only on attributes and literals are computed once, at the
first call."""
import re
from collections.abc import Callable
from typing import Any

from .. import _core
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule, torch
from ..node import Node

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A GraphModule that contains another one, `const_subgraph_module`, which computes the
    attribute `fx_const_folded_attrs_name` before the first call."""

    def __init__(
        self, root: "torch.nn.Module | dict[str, Any]", graph: Graph,
        const_subgraph: Graph | None = None, fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:  # fmt: skip
        super().__init__(root, graph)
        inner = const_subgraph
        if inner is not None and not isinstance(inner, GraphModule):
            inner = GraphModule(root, inner)
        self.const_subgraph_module = inner
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args)

    def run_folding(self) -> None:
        """Computes the folded attributes, if there are any."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Cannot re-run folding")
        self.has_folding_been_run = True
        name, folded = self.fx_const_folded_attrs_name, self.const_subgraph_module()
        if isinstance(getattr(self, name), torch.nn.ParameterList):
            setattr(self, name, torch.nn.ParameterList(map(self._parameter, folded)))
        else:
            delattr(self, name)  # a parameter could not become something else
            setattr(self, name, self._parameter(folded))

    def _parameter(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):  # a number, as a size or a scale
            return value
        return torch.nn.Parameter(value.detach().clone(), requires_grad=value.requires_grad)


def get_unique_attr_name_in_module(mod_traced: GraphModule, name: str) -> str:
    """Makes `name` an identifier that the module does not use yet, by appending a number."""
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    name = f"_{name}" if name[:1].isdigit() else name
    while hasattr(mod_traced, name):
        match = re.fullmatch(r"(.*)_(\d+)", name)
        name = f"{match[1]}_{int(match[2]) + 1}" if match else f"{name}_1"
    return name


def split_const_subgraphs(
    module: "torch.nn.Module | GraphModule",
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
    *,
    strict: bool = False,
) -> FoldedGraphModule:
    """Returns a module that computes values which depend only on attributes and literals once, at
    its first call. Nodes for which `skip_folding_node_fn` returns True are not folded, nor are
    calls with an effect: dropout or batch-norm in training. With `strict`, neither are modules and
    functions that nothing is known about."""
    gm = module if isinstance(module, GraphModule) else symbolic_trace(module)
    path = get_unique_attr_name_in_module(gm, "_FX_CONST_FOLDED_ATTRS")
    parts = gm.graph._split_constants(skip_folding_node_fn, path, gm, strict)
    if parts is None:
        return FoldedGraphModule(gm, gm.graph)
    (constants, inner), (rest, outer) = parts
    several = isinstance(constants.output_node().args[0], tuple)
    roots = [{new: _core._get_attr(gm, old) for new, old in p.items() if old != path}
             for p in (inner, outer)]
    roots[1][path] = torch.nn.ParameterList() if several else torch.nn.Parameter()
    const_module = GraphModule(roots[0], constants)
    return FoldedGraphModule(roots[1], rest, const_module, path, device_for_folded_attrs)
