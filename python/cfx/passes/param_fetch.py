"""Copies attributes of modules to the nodes that call them, for lowering to a back end."""
from collections.abc import Callable
from typing import Any

from .._core import _get_attr, _type_repr
from ..graph_module import GraphModule, torch

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]
_nn = torch.nn


def default_matching(name: str, target_version: int) -> str:
    """Returns the name of an attribute in another version of a module: the same name."""
    return name


# class -> (its version, the attributes to fetch, how they are called in other versions)
module_fetch_book: dict[type, tuple[int, list[str], Callable[[str, int], str]]] = {
    kind: (version, names.split(), default_matching)
    for kind, version, names in (
        (_nn.Linear, 1, "weight bias"),
        (_nn.Conv2d, 1, "weight bias kernel_size stride padding dilation groups padding_mode"),
        (_nn.BatchNorm2d, 2, "weight bias running_mean running_var eps"),
        (_nn.AdaptiveAvgPool2d, 1, ""),
        (_nn.MaxPool2d, 1, "kernel_size stride padding dilation return_indices ceil_mode"),
        (_nn.ReLU, 1, "inplace"),
    )
}


def extract_attrs_for_lowering(mod: Any) -> dict[str, Any]:
    """Returns the attributes that `module_fetch_book` lists for the class of a module, and its
    "name"."""
    name = _type_repr(type(mod))
    if type(mod) not in module_fetch_book:
        raise RuntimeError(f"{name} is not in the module_fetch_book yet, please add it there")
    version, attributes, matching = module_fetch_book[type(mod)]
    if version < mod._version:
        what = f"Fetcher version {version} try to fetch {name} version {mod._version}"
        raise RuntimeError(f"{what}, please upgrade the module_fetch_book")
    found = {attr: getattr(mod, matching(attr, mod._version)) for attr in attributes}
    return {"name": name, **found}


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Sets `attrs_for_lowering` of each node that calls a module, including the nodes of called
    GraphModules."""
    for node in fx_module.graph.find_nodes(op="call_module"):
        called = _get_attr(fx_module, str(node.target))
        if isinstance(called, GraphModule):
            lift_lowering_attrs_to_nodes(called)
        else:
            node.attrs_for_lowering = extract_attrs_for_lowering(called)
