"""Nodes for sizes and for torch's symbolic integers. Needs torch; the methods are Graph's."""
import functools
import operator

from . import find_torch

_CHAINS = {"Add": operator.add, "Mul": operator.mul, "Max": "sym_max", "Min": "sym_min"}
_CALLS = {
    "Pow": operator.pow,
    "PowByNatural": operator.pow,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "StrictGreaterThan": operator.gt,
    "GreaterThan": operator.ge,
    "StrictLessThan": operator.lt,
    "LessThan": operator.le,
    "Equality": operator.eq,
    "Unequality": operator.ne,
}


# ---- sizes ----------------------------------------------------------------------------------


def tensor_meta_val(node):
    """The example value of a node and the key of `meta` that it stands under."""
    for key in ("val", "example_value"):
        if key in node.meta:
            return node.meta[key], key
    return None, "val"


def _query(graph, op, method, args):
    value, key = tensor_meta_val(args[0])
    node = graph.call_function(op, args)
    if value is not None:
        node.meta[key] = getattr(value, method)(*args[1:])
    return node


def create_size_node(graph, node, dim):
    return _query(graph, find_torch().ops.aten.sym_size.int, "size", (node, dim))


def create_stride_node(graph, node, dim):
    return _query(graph, find_torch().ops.aten.sym_stride.int, "stride", (node, dim))


def create_storage_offset_node(graph, node):
    op = find_torch().ops.aten.sym_storage_offset.default
    return _query(graph, op, "storage_offset", (node,))


# ---- symbols that an operator makes -----------------------------------------------------------


def resolve_unbacked_binding(graph, node, keypath, lower_symint):
    """The value that `keypath` leads to in the result of `node`, as a node."""
    keys = list(keypath)
    while keys:
        key = keys.pop(0)
        kind = type(key).__name__
        if kind == "CallMethodKey":
            node = _call_method(graph, node, key.name, keys)
        elif kind == "SequenceKey":
            node = graph.call_function(operator.getitem, (node, key.idx))
        elif kind == "ConvertIntKey":
            node = graph.call_function(find_torch().sym_ite, (node, 1, 0))
        elif kind == "DivideByKey":
            divisor = key.divisor if isinstance(key.divisor, int) else lower_symint(key.divisor)
            node = graph.call_function(operator.floordiv, (node, divisor))
        else:
            raise AssertionError(f"unrecognized keypath component {key}")
    return node


def _call_method(graph, node, name, keys):
    if name in ("size", "stride") and keys and type(keys[0]).__name__ == "SequenceKey":
        create = create_size_node if name == "size" else create_stride_node
        return create(graph, node, keys.pop(0).idx)
    if name == "storage_offset":
        return create_storage_offset_node(graph, node)
    return graph.call_method(name, (node,))


# ---- expressions ------------------------------------------------------------------------------


def materialize_symints(graph, values):
    """A node for each symbolic integer, computed from the inputs of the graph; integers stay."""
    lowering = None
    result = []
    for value in values:
        if isinstance(value, find_torch().SymInt):
            lowering = lowering or _Lowering(graph)
            value = lowering.value(value)
        elif not isinstance(value, int):
            raise TypeError(
                f"materialize_symints: expected SymInt or int, got {type(value).__name__} "
                f"({value!r})"
            )
        result.append(value)
    return result


class _Lowering:
    """Turns sympy expressions into nodes; equal parts of one call become one node."""

    def __init__(self, graph):
        self.graph = graph
        self.done = {}  # expression: (node or number, its example value)
        self.symbols = {}  # name: (a function that gives the node, its example value or None)
        self.mirror = False  # whether the graph keeps its examples under "example_value"
        for node in graph.nodes:
            self._note_producer(node)

    def _note_producer(self, node):
        torch = find_torch()
        for symbol, keypath in (node.meta.get("unbacked_bindings") or {}).items():
            make = functools.partial(
                resolve_unbacked_binding, self.graph, node, keypath, self.value
            )
            self.symbols.setdefault(str(symbol), (make, None))
        value, key = tensor_meta_val(node)
        self.mirror = self.mirror or key == "example_value"
        if node.op != "placeholder":
            return
        if isinstance(value, torch.SymInt) and value.node.expr.is_symbol:
            known = self.symbols.get(str(value))
            if known is None or known[0].func is create_size_node:  # an input needs no query
                self.symbols[str(value)] = functools.partial(_itself, node), value
        elif isinstance(value, torch.Tensor):
            for dim, size in enumerate(value.shape):
                if isinstance(size, torch.SymInt):
                    make = functools.partial(create_size_node, self.graph, node, dim)
                    self.symbols.setdefault(str(size), (make, size))

    def value(self, symint):
        """The node of a SymInt."""
        if isinstance(symint, int):
            return symint
        expr, env = symint.node.expr, symint.node.shape_env
        for symbol in sorted(expr.free_symbols, key=str):
            if symbol not in self.done:
                self._make_symbol(symbol, env)
        return self._lower(expr)[0]

    def _make_symbol(self, symbol, env):
        make, example = self.symbols.get(str(symbol), (None, None))
        if make is None:
            raise AssertionError(f"materialize_symints: no producer for {symbol}")
        if example is None:
            example = env.create_symintnode(symbol, hint=None)
        self._finish(symbol, make(), example)

    def _finish(self, expr, node, example):
        if hasattr(node, "meta"):
            node.meta.setdefault("val", example)
            if self.mirror:
                node.meta.setdefault("example_value", example)
        self.done[expr] = node, example
        return self.done[expr]

    def _lower(self, expr):
        if expr in self.done:
            return self.done[expr]
        if expr.is_Integer:
            return int(expr), int(expr)
        if not expr.args:
            return bool(expr), bool(expr)
        name, torch = type(expr).__name__, find_torch()
        if name == "Piecewise":
            (first, test), (second, _) = expr.args
            parts = [self._lower(part) for part in (test, first, second)]
            return self._finish(expr, *self._call(torch.sym_ite, parts))
        parts = [self._lower(part) for part in expr.args]
        if name in _CHAINS:
            function = _CHAINS[name]
            function = getattr(torch, function) if isinstance(function, str) else function
            whole = functools.reduce(lambda a, b: self._call(function, (a, b)), parts)
            return self._finish(expr, *whole)
        if name not in _CALLS:
            raise NotImplementedError(f"materialize_symints: no operator computes {expr}")
        return self._finish(expr, *self._call(_CALLS[name], parts))

    def _call(self, function, parts):
        node = self.graph.call_function(function, tuple(part for part, _ in parts))
        return node, function(*(example for _, example in parts))


def _itself(node):
    return node
