"""Pickling a graph as what it is: a flat list of nodes, however deep their arguments hang together.

Nodes inside arguments are written as their numbers, so that no recursion follows the graph's
edges. Metadata is restored after the nodes, so that it may refer to them.
"""
from ._core import Node, map_aggregate


class _Ref(int):
    """A node among the arguments of another: its number in the graph."""

    __slots__ = ()


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


# ---- writing --------------------------------------------------------------------------------

_STATE = ("_tracer_cls", "_tracer_extras", "_codegen", "_co_fields")


def reduce_graph(graph):
    nodes = list(graph.nodes)
    extras = [
        (i, node.meta, vars(node)) for i, node in enumerate(nodes) if node.meta or vars(node)
    ]
    state = {key: getattr(graph, key) for key in _STATE}
    other = {key: value for key, value in vars(graph).items() if key not in _STATE}
    taken = sorted(graph._graph_namespace._used_names.difference(node.name for node in nodes))
    return (
        _build,
        (type(graph), _columns(nodes), taken),
        (extras, state, other, graph.owning_module),
        None,
        None,
        _restore,
    )


def _columns(nodes):
    """The nodes attribute by attribute, which pickle writes faster than node by node. What few
    nodes have stands in dicts."""
    refs = {node: _Ref(i) for i, node in enumerate(nodes)}

    def number(value):
        return refs.get(value, value) if type(value) is Node else portable(value)

    return (
        [node.op for node in nodes],
        [node.name for node in nodes],
        [portable(node.target) for node in nodes],
        [map_aggregate(node.args, number) for node in nodes],
        {i: dict(map_aggregate(n.kwargs, number)) for i, n in enumerate(nodes) if n.kwargs},
        {i: node.type for i, node in enumerate(nodes) if node.type is not None},
        {i: node._location for i, node in enumerate(nodes) if node._location is not None},
        _order_of_uses(nodes, refs),
    )


def _order_of_uses(nodes, refs):
    """The order in which the nodes were given their arguments, if `users` shows that it is not the
    order of the nodes: every `users` lists nodes in that order, so it is found by merging them."""
    chains = [[refs[user] for user in node.users] for node in nodes if len(node.users) > 1]
    if all(a < b for chain in chains for a, b in zip(chain, chain[1:])):
        return None
    after = {}
    waiting = [0] * len(nodes)
    for chain in chains:
        for a, b in zip(chain, chain[1:]):
            after.setdefault(a, []).append(b)
            waiting[b] += 1
    order = [i for i, count in enumerate(waiting) if count == 0]
    for i in order:  # grows
        for b in after.get(i, ()):
            waiting[b] -= 1
            if waiting[b] == 0:
                order.append(b)
    # insert_arg gives a node an input later than its others: then no one order explains them all
    order += [i for i, count in enumerate(waiting) if count > 0]
    return [int(i) for i in order]


# ---- reading --------------------------------------------------------------------------------


def _build(cls, columns, taken):
    graph = cls.__new__(cls)
    ops, names, targets, args, kwargs, types, locations, order = columns
    create = graph.create_node
    nodes = [
        create(op, target, None, None, name, types.get(i))
        for i, (op, target, name) in enumerate(zip(ops, targets, names))
    ]
    for node, name in zip(nodes, names):
        if node.name != name:
            node.name = name
    for i, location in locations.items():
        nodes[i]._location = location

    def node_of(value):
        return nodes[value] if type(value) is _Ref else value

    for i in range(len(nodes)) if order is None else order:
        if args[i]:
            nodes[i].args = map_aggregate(args[i], node_of)
        if i in kwargs:
            nodes[i].kwargs = map_aggregate(kwargs[i], node_of)
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
        nodes[i].meta = meta
        vars(nodes[i]).update(attributes)
