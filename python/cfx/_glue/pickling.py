"""Pickling a graph as what it is: a flat list of nodes, however deep their arguments hang together.

The nodes are columns (python/src/graph/columns.c): one list for each attribute. Metadata is
restored after them, so that it may refer to nodes.
"""
import importlib
import pickle
import sys
import types

from .. import _core, _glue
from .._core import Node


class _Ref(int):
    """A node among the arguments of another: its number in the graph. As a key of a dict it must
    not meet the int of the same value."""

    __slots__ = ()

    def __eq__(self, other):
        return type(other) is _Ref and int(self) == int(other)

    def __hash__(self):
        return hash((_Ref, int(self)))


class _Named:
    """A function that pickle cannot write, or of which it would write a copy: it is found again by
    its name."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __reduce__(self):
        find = _find_operator if self.name.startswith("torch.ops.") else _find_function
        return find, (self.name,)


def _find_operator(name):
    import torch

    found = _core._resolve(name)
    if found is None:
        raise AttributeError(f"this {torch.__name__} has no {name}")
    return found


def _find_function(name):
    home, _, last = name.rpartition(".")
    return getattr(importlib.import_module(home), last)


_FUNCTIONS: tuple[type, ...] = (
    types.FunctionType, types.MethodType, types.BuiltinFunctionType
)  # fmt: skip
# Methods of these are copies that cannot differ.
_CONSTANT: tuple[type, ...] = (
    type, types.ModuleType, str, bytes, int, float, complex, tuple, frozenset, type(None)
)  # fmt: skip


def portable(value):
    """`value`, or what is pickled for it."""
    if type(value).__module__ == "torch._ops":
        name = Node._pretty_print_target(value)
        return _Named(name) if name.startswith("torch.ops.") else value
    if isinstance(value, _FUNCTIONS):
        return _portable_function(value)
    return value


def _portable_function(function):
    owner = getattr(function, "__self__", None)
    if isinstance(function, types.FunctionType):
        if _is_at(function.__module__, function.__qualname__, function):
            return function
    elif owner is None or isinstance(owner, _CONSTANT):
        return function
    name = _glue.attribute_name(function)
    if name is None and owner is not None:
        raise pickle.PicklingError(
            f"the graph calls {function.__qualname__} of an object that only this process has "
            f"({type(owner).__name__}): a copy of it would go its own way. Call a function of a "
            "module, or make the object an attribute of the module"
        )
    return function if name is None else _Named(name)


def _is_at(home, path, function):
    found = sys.modules.get(home)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found is function


# ---- writing --------------------------------------------------------------------------------

_STATE = ("_tracer_cls", "_tracer_extras", "_codegen", "_co_fields")


def reduce_graph(graph):
    nodes = list(graph.nodes)
    extras = [
        (i, node._own_meta, vars(node))
        for i, node in enumerate(nodes)
        if node._own_meta is not None or vars(node)
    ]
    state = {key: getattr(graph, key) for key in _STATE}
    if "<locals>" in getattr(state["_tracer_cls"], "__qualname__", ""):
        state["_tracer_cls"] = None  # it could not be found again
    other = {key: value for key, value in vars(graph).items() if key not in _STATE}
    taken = sorted(graph._graph_namespace._used_names.difference(node.name for node in nodes))
    return (
        _build,
        (type(graph), graph._columns(_Ref, portable), taken),
        (extras, state, other, graph._own_owning_module),
        None,
        None,
        _restore,
    )


# ---- reading --------------------------------------------------------------------------------


def _build(cls, columns, taken):
    graph = cls.__new__(cls)
    graph._fill(columns, _Ref)
    for name in taken:
        graph._graph_namespace.create_name(name, None)
    return graph


def _restore(graph, state):
    extras, own, other, owner = state
    graph.owning_module = owner
    for key, value in {**own, **other}.items():
        setattr(graph, key, value)
    nodes = list(graph.nodes)
    for i, meta, attributes in extras:
        if meta is not None:
            nodes[i].meta = meta
        vars(nodes[i]).update(attributes)
    if getattr(owner, "__dict__", {}).get("_graph") is graph:  # it was restored before its graph
        owner.recompile()
