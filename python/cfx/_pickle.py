"""Pickling a graph as what it is: a flat list of nodes, however deep their arguments hang together.

Nodes inside arguments are written as their numbers, so that no recursion follows the graph's
edges. Metadata is restored after the nodes, so that it may refer to them.
"""
from ._core import Node, _order_of_uses, map_aggregate


class _Ref(int):
    """A node among the arguments of another: its number in the graph. As a key of a dict it must
    not meet the int of the same value."""

    __slots__ = ()

    def __eq__(self, other):
        return type(other) is _Ref and int(self) == int(other)

    def __hash__(self):
        return hash((_Ref, int(self)))


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


# ---- arguments ------------------------------------------------------------------------------

_KEYED = (dict, set, frozenset)
_CONTAINERS = (tuple, list, slice, *_KEYED)


def _map(tree, fn):
    """map_aggregate, and the keys of dicts and members of sets, which it leaves as they are."""
    return _map_keys(map_aggregate(tree, fn), fn)


def _map_key(key, fn):
    mapped = map_aggregate(key, fn)
    same = mapped is key or mapped == key
    return key if same else mapped  # a tuple of another class stays what it is


def _map_keys(tree, fn):
    if isinstance(tree, dict):
        return type(tree)({_map_key(k, fn): _map_keys(v, fn) for k, v in tree.items()})
    if type(tree) in _KEYED:
        return type(tree)(_map_key(member, fn) for member in tree)
    if isinstance(tree, slice):
        return slice(*(_map_keys(part, fn) for part in (tree.start, tree.stop, tree.step)))
    if not isinstance(tree, (tuple, list)) or not any(isinstance(v, _CONTAINERS) for v in tree):
        return tree
    items = [_map_keys(item, fn) for item in tree]
    return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)


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
        [_map(node.args, number) for node in nodes],
        {i: dict(_map(n.kwargs, number)) for i, n in enumerate(nodes) if n.kwargs},
        {i: node.type for i, node in enumerate(nodes) if node.type is not None},
        {i: node._location for i, node in enumerate(nodes) if node._location is not None},
        {i: node._scope for i, node in enumerate(nodes) if node._scope is not None},
        _order_of_uses(nodes),  # `users` has its own
    )


# ---- reading --------------------------------------------------------------------------------


def _build(cls, columns, taken):
    graph = cls.__new__(cls)
    ops, names, targets, args, kwargs, types, locations, scopes, order = columns
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
    for i, scope in scopes.items():
        nodes[i]._scope = scope

    def node_of(value):
        return nodes[value] if type(value) is _Ref else value

    for i in range(len(nodes)) if order is None else order:
        if args[i]:
            nodes[i].args = _map(args[i], node_of)
        if i in kwargs:
            nodes[i].kwargs = _map(kwargs[i], node_of)
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
