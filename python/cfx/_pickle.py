"""Pickling a graph as what it is: a flat list of nodes, however deep their arguments hang together.

Nodes inside arguments are written as their numbers, so that no recursion follows the graph's
edges. Metadata is restored after the nodes, so that it may refer to them.
"""
from ._core import Node, map_aggregate


class _Ref:
    """A node among the arguments of another: its number in the graph."""

    __slots__ = ("index",)

    def __init__(self, index):
        self.index = index

    def __reduce__(self):
        return _Ref, (self.index,)


class _Operator:
    """One of torch's operators, which pickle cannot write: it is found again by its name."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __reduce__(self):
        return _find_operator, (self.name,)


def _find_operator(name):
    import torch

    found = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def portable(value):
    """`value`, or what is pickled for it."""
    if type(value).__module__ != "torch._ops":
        return value
    name = Node._pretty_print_target(value)
    return _Operator(name) if name.startswith("torch.ops.") else value


_STATE = ("_tracer_cls", "_tracer_extras", "_codegen", "_co_fields")


def reduce_graph(graph):
    nodes = list(graph.nodes)
    index = {node: i for i, node in enumerate(nodes)}
    records = [_record(node, index) for node in nodes]
    extras = [
        (i, node.meta, vars(node)) for i, node in enumerate(nodes) if node.meta or vars(node)
    ]
    state = {key: getattr(graph, key) for key in _STATE}
    other = {key: value for key, value in vars(graph).items() if key not in _STATE}
    taken = sorted(graph._graph_namespace._used_names)
    return (
        _build,
        (type(graph), records, taken),
        (extras, state, other, graph.owning_module),
        None,
        None,
        _restore,
    )


def _record(node, index):
    def number(value):
        if type(value) is Node:
            return _Ref(index[value]) if value in index else value
        return portable(value)

    args, kwargs = map_aggregate((node.args, node.kwargs), number)
    target = portable(node.target)
    return node.op, node.name, target, args, kwargs, node.type, node._location


def _build(cls, records, taken):
    graph = cls.__new__(cls)
    nodes = []

    def arguments(value):
        return map_aggregate(value, lambda v: nodes[v.index] if type(v) is _Ref else v)

    later = []
    for op, name, target, args, kwargs, type_, location in records:
        node = graph.create_node(op, target, (), {}, name=name, type_expr=type_)
        if node.name != name:
            node.name = name
        if location is not None:
            node._location = location
        nodes.append(node)
        later.append((node, args, kwargs))
    for node, args, kwargs in later:
        if args:
            node.args = arguments(args)
        if kwargs:
            node.kwargs = arguments(kwargs)
    for name in sorted(set(taken) - graph._graph_namespace._used_names):
        graph._graph_namespace.create_name(name, None)
    return graph


def _restore(graph, state):
    extras, own, other, owner = state
    graph.owning_module = owner
    for key, value in {**own, **other}.items():
        setattr(graph, key, value)
    nodes = list(graph.nodes)
    for i, meta, attributes in extras:
        nodes[i].meta = meta
        vars(nodes[i]).update(attributes)
