"""Flattens the arguments of a traced function by the structure they had when it was traced.

The structure is a TreeSpec of torch.utils._pytree. Where a container has more items than its spec
(a dict with more keys, a longer list), the additional ones are left out. torch is needed only for
classes that are registered there and not here, and is imported when one is met.
"""
from collections import namedtuple
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from torch.utils._pytree import TreeSpec, tree_flatten

_T = TypeVar("_T")
_K = TypeVar("_K")
_V = TypeVar("_V")

PyTree = Any
# (container, its spec) -> the children, or whether the container has exactly that structure
FlattenFuncSpec = Callable[[PyTree, "TreeSpec"], list[Any]]
FlattenFuncExactMatchSpec = Callable[[PyTree, "TreeSpec"], bool]
FlattenFnSpec = FlattenFuncSpec
FlattenFnExactMatchSpec = FlattenFuncExactMatchSpec

SUPPORTED_NODES: dict[Any, FlattenFuncSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[Any, FlattenFuncExactMatchSpec | None] = {}


def _torch_pytree() -> Any:
    try:
        import torch.utils._pytree as pytree
    except ImportError as e:
        raise ImportError("this part of cfx._pytree needs torch, which cannot be imported") from e
    return pytree


def __getattr__(name: str) -> Any:
    if name in ("TreeSpec", "tree_flatten"):
        return getattr(_torch_pytree(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def register_pytree_flatten_spec(
    cls: type[Any], flatten_fn_spec: FlattenFuncSpec,
    flatten_fn_exact_match_spec: FlattenFuncExactMatchSpec | None = None,
) -> None:  # fmt: skip
    """Registers a function that returns the children of an instance of `cls`, given its spec."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _deregister_pytree_flatten_spec(cls: type[Any]) -> None:
    del SUPPORTED_NODES[cls]
    del SUPPORTED_NODES_EXACT_MATCH[cls]


def _collect(pytree: PyTree, spec: "TreeSpec", leaves: list[Any]) -> None:
    if spec.is_leaf():
        leaves.append(pytree)
        return
    flatten = SUPPORTED_NODES.get(spec.type)
    if flatten is not None:
        for child, child_spec in zip(flatten(pytree, spec), spec.children()):
            _collect(child, child_spec, leaves)
        return
    flat, real_spec = _torch_pytree().tree_flatten(pytree)
    if real_spec != spec:
        raise RuntimeError(
            f"expected an object with the structure {spec}, got {pytree!r}, which has the "
            f"structure {real_spec}; its class is not registered with "
            "register_pytree_flatten_spec, so the two structures must be equal"
        )
    leaves.extend(flat)


def tree_flatten_spec(pytree: PyTree, spec: "TreeSpec") -> list[Any]:
    """Returns the leaves of `pytree` in the order of `spec`."""
    leaves: list[Any] = []
    _collect(pytree, spec, leaves)
    return leaves


def _dict_flatten_spec(d: dict[_K, _V], spec: "TreeSpec") -> list[_V]:
    return [d[key] for key in spec.context]


def _list_flatten_spec(d: list[_T], spec: "TreeSpec") -> list[_T]:
    return [d[i] for i in range(spec.num_children)]


def _tuple_flatten_spec(d: tuple[_T, ...], spec: "TreeSpec") -> list[_T]:
    return [d[i] for i in range(spec.num_children)]


def _namedtuple_flatten_spec(d: NamedTuple, spec: "TreeSpec") -> list[Any]:
    return [d[i] for i in range(spec.num_children)]


def _dict_flatten_spec_exact_match(d: dict[_K, _V], spec: "TreeSpec") -> bool:
    return len(d) == spec.num_children


def _list_flatten_spec_exact_match(d: list[_T], spec: "TreeSpec") -> bool:
    return len(d) == spec.num_children


def _tuple_flatten_spec_exact_match(d: tuple[_T, ...], spec: "TreeSpec") -> bool:
    return len(d) == spec.num_children


def _namedtuple_flatten_spec_exact_match(d: NamedTuple, spec: "TreeSpec") -> bool:
    return len(d) == spec.num_children


def _register_torch_types() -> None:
    """The named results of torch's functions (torch.return_types) are tuples."""
    import torch

    for cls in torch.return_types.all_return_types:
        if cls not in SUPPORTED_NODES:
            register_pytree_flatten_spec(cls, _tuple_flatten_spec, _tuple_flatten_spec_exact_match)


register_pytree_flatten_spec(dict, _dict_flatten_spec, _dict_flatten_spec_exact_match)
register_pytree_flatten_spec(list, _list_flatten_spec, _list_flatten_spec_exact_match)
register_pytree_flatten_spec(tuple, _tuple_flatten_spec, _tuple_flatten_spec_exact_match)
register_pytree_flatten_spec(  # a TreeSpec says this, which is a function, of every named tuple
    namedtuple,  # type: ignore[arg-type]
    _namedtuple_flatten_spec,
    _namedtuple_flatten_spec_exact_match,
)
