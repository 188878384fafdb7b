"""Converts graphs and modules between torch.fx and cfx.

Both functions make copies. Nodes keep their names, types, metadata, attributes and the order of
their users; modules share their parameters, buffers, hooks and plain submodules. If something
cannot be converted, the error names it.

cfx.cond and cfx.while_loop become torch's operators, and their regions become GraphModules that
get_attr nodes read. What their regions read, and the parameters and buffers of the modules that
they call, become operands: torch passes gradients only to operands, and torch.export knows no other
tensors inside a region. torch has no for_loop: it becomes a while_loop or, if the count is not
a number, remains a call to cfx.for_loop, which runs there, too. On the way back, the GraphModules
become regions, and find their attributes below the path of the GraphModule.
"""
import collections
import copy
import dataclasses
import operator
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import cfx

from .. import _core, ops
from .._glue.listing import public_names
from .._glue.pickling import _STATE

try:
    import torch
except ImportError as e:
    raise ImportError("cfx.interop needs torch, because it converts from and to torch.fx") from e

# torch's operators: cfx's, and the places of the regions among the arguments.
_OPERATORS: dict[Any, tuple[Callable[..., Any], tuple[int, ...]]] = {
    torch.ops.higher_order.cond: (ops.cond, (1, 2)),
    torch.ops.higher_order.while_loop: (ops.while_loop, (0, 1)),
    ops.for_loop: (ops.for_loop, (1,)),
    ops.cond: (ops.cond, (1, 2)),  # of what torch's refuses
    ops.while_loop: (ops.while_loop, (0, 1)),
}
_PATHS = ("get_attr", "call_module")
# What a GraphModule makes itself, from its graph.
_OWN = ("_graph", "_code", "_lineno_map", "_prologue_start", "_tracer_cls", "_tracer_extras")


# Metadata that never mentions nodes: every node has some of it.
_NODELESS = frozenset(["nn_module_stack", "source_fn_stack", "stack_trace", "val", "tensor_meta"])
_DEEPEST = 50  # what nests deeper is left as it is


# Not a node, nor anything that holds one. To hash a symbolic number would make a guard of it.
_PLAIN = (str, int, float, bool, type(None), torch.SymInt, torch.SymFloat, torch.SymBool)


def _renewed(value: Any, twins: dict[Any, Any], depth: int) -> Any:
    """`value` with the twins of nodes in it, at any depth of containers and dataclasses, also as
    keys of dicts (a quantizer keeps {input: specification}); itself if there is none."""
    kind = type(value)
    if kind in _PLAIN or depth > _DEEPEST:
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [_renewed(item, twins, depth + 1) for item in value]
        if all(a is b for a, b in zip(items, value)):
            return value
        return kind(*items) if hasattr(kind, "_fields") else kind(items)
    if isinstance(value, dict):
        pairs = [(_renewed(k, twins, depth + 1), _renewed(v, twins, depth + 1))
                 for k, v in value.items()]  # fmt: skip
        same = all(a is k and b is v for (a, b), (k, v) in zip(pairs, value.items()))
        return value if same else kind(pairs)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        mine = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
        new = {name: _renewed(item, twins, depth + 1) for name, item in mine.items()}
        if all(new[name] is item for name, item in mine.items()):
            return value
        copied = copy.copy(value)
        for name in new:
            object.__setattr__(copied, name, new[name])  # also if it is frozen
        return copied
    try:
        return twins.get(value, value)
    except TypeError:  # it cannot be hashed, so it is not a node
        return value


def codegen_twin(codegen: Any, source: Any, dest: Any) -> Any:
    """What a code generator of one library is in the other; None if it is of another class."""
    name = type(codegen).__name__
    known = type(codegen) is getattr(source.graph, name, None)
    if not known or not hasattr(dest.graph, name):
        return None
    twin = object.__new__(getattr(dest.graph, name))
    vars(twin).update(vars(codegen))
    if getattr(twin, "pytree_info", None) is not None:
        twin.pytree_info = dest.graph._PyTreeInfo(*codegen.pytree_info)
    return twin


def own_codegen(codegen: Any) -> Any:
    """The twin of a code generator of torch.fx in cfx; one without a twin is given back."""
    return codegen_twin(codegen, torch.fx, cfx) or codegen


class _Copy:
    """The copy of one graph. `root` is torch's module that its paths lead into, or None."""

    nodes: Any  # a method: the nodes to copy
    branches: Any  # path -> the GraphModule of a region, or None where one is to go

    def __init__(self, conversion: "_Conversion", graph: Any, root: Any) -> None:
        self.conversion = conversion
        self.source, self.dest = conversion.source, conversion.dest
        self.graph = graph
        self.root = root
        self.result = self.dest.Graph()
        self.twins: dict[Any, Any] = {}

    def convert(self) -> Any:
        nodes = self.nodes()
        calls = {node: self.create(node) for node in nodes}
        for node in self.by_use(nodes):
            self.fill(node, *calls[node])
        for node in nodes:
            self.describe(node, calls[node][0])
        taken, names = self.graph._graph_namespace._used_names, self.result._graph_namespace
        for name in sorted(set(taken).difference(names._used_names)):
            names.create_name(name, None)
        for key in _STATE:
            setattr(self.result, key, getattr(self.graph, key))
        tracers = {self.source.Tracer: self.dest.Tracer}
        self.result._tracer_cls = tracers.get(self.graph._tracer_cls)
        self.result._codegen = self.codegen(self.graph._codegen)
        return self.result

    def by_use(self, nodes: list[Any]) -> Iterable[Any]:
        """The nodes in the order in which they were given their arguments."""
        order = _core._order_of_uses(nodes)
        return nodes if order is None else [nodes[i] for i in order]

    def create(self, node: Any) -> tuple[Any, Any, Any]:
        """Makes the twin of a node; returns it, and the arguments it will get."""
        return self.add(node, node.target), node.args, node.kwargs

    def add(self, node: Any, target: Any) -> Any:
        twin = self.result.create_node(node.op, target, None, None, node.name, node.type)
        if twin.name != node.name:
            twin.name = node.name
        self.twins[node] = twin
        return twin

    def fill(self, node: Any, twin: Any, args: Any, kwargs: Any) -> None:
        def convert(value):
            if isinstance(value, self.source.Node):
                if value not in self.twins:
                    raise RuntimeError(f"node %{node} uses %{value}, which is not in its graph")
                return self.twins[value]
            if isinstance(value, _core.Graph) and self.dest is not cfx:
                raise RuntimeError(f"node %{node} has a region, but its target takes none")
            return value

        if args:
            twin.args = _core._map_all(args, convert)
        if kwargs:
            twin.kwargs = _core._map_all(kwargs, convert)

    def describe(self, node: Any, twin: Any) -> None:
        if node.meta:
            twin.meta = self.meta(node.meta)
        for key, value in vars(node).items():
            setattr(twin, key, value)

    def meta(self, meta: dict[str, Any]) -> dict[str, Any]:
        """A copy in which nodes of the graph are those of the other; all else stays."""
        twins = {k: _renewed(v, self.twins, 0) for k, v in meta.items() if k not in _NODELESS}
        return {**meta, **twins}

    def codegen(self, codegen: Any) -> Any:
        twin = codegen_twin(codegen, self.source, self.dest)
        if twin is None:
            cls = type(codegen)
            raise TypeError(f"the code generator {cls.__module__}.{cls.__name__} has no "
                            f"counterpart in {self.dest.__name__}; give the graph another one: "
                            f"graph.set_codegen({self.source.__name__}.CodeGen())")  # fmt: skip
        return twin


# ---- from torch -------------------------------------------------------------------------------


def _reads_only(node: Any, n: int) -> bool:
    """Whether the users of a node only take items of it, each below `n`."""
    read = [user.args[1] for user in node.users if user.target is operator.getitem]
    return len(read) == len(node.users) and all(type(i) is int and 0 <= i < n for i in read)


def _is_plain(module: Any) -> bool:
    """Whether a module is a GraphModule that could be a region."""
    graph = module.graph if isinstance(module, torch.fx.GraphModule) else None
    return graph is not None and type(graph._codegen) is torch.fx.CodeGen


class _FromTorch(_Copy):
    """torch's operators become cfx's, with regions, where their GraphModules can be seen. The paths
    of a region are those of its GraphModule, with a prefix."""

    def __init__(self, conversion: "_Conversion", graph: Any, root: Any, prefix: str = "") -> None:
        super().__init__(conversion, graph, root)
        self.prefix = prefix
        self.regions: dict[str, Any] = {}  # by path
        inside = root.named_modules(remove_duplicate=False) if root is not None else ()
        self.modules = {path: module for path, module in inside if _is_plain(module)}

    def nodes(self) -> list[Any]:
        found = {node: self.readers(node) for node in self.graph.nodes}
        self.calls = {node for node in found if found[node]}
        readers = {node.args[i] for node in self.calls for i in found[node]}
        gone = {node for node in readers if self.calls.issuperset(node.users)}
        return [node for node in found if node not in gone]

    def readers(self, node: Any) -> list[int]:
        """Which arguments of a call are GraphModules that become regions; none if it is another
        call, or if one of them is something else."""
        known = _OPERATORS.get(node.target) if node.op == "call_function" else None
        if known is None or node.kwargs or len(node.args) < 3:
            return []
        found = [i for i in known[1] if getattr(node.args[i], "target", None) in self.modules]
        return found if len(found) == len(known[1]) else []

    def create(self, node: Any) -> tuple[Any, Any, Any]:
        if node not in self.calls:
            called = self.functional(node)
            if called is not None:
                return self.add(node, called.path), node.args[1:], node.kwargs
            path = self.prefix + node.target if node.op in _PATHS else node.target
            return self.add(node, path), node.args, node.kwargs
        function, places = _OPERATORS[node.target]
        args = list(node.args)
        more = args.pop(3) if function is ops.while_loop and len(args) > 3 else ()
        for i in places:
            args[i] = self.region(args[i], len(more) if i == 1 else 0)
        twin = self.add(node, function)
        if more:
            n = len(args[2])
            args[2] = (*args[2], *more)
            if not _reads_only(node, n):
                first = (twin, slice(None, n))
                self.twins[node] = self.result.call_function(operator.getitem, first)
        return twin, tuple(args), {}

    def functional(self, node: Any) -> Any:
        """The module that to_torch put in place of one that a region calls, if this calls one."""
        if node.op != "call_module" or not self.prefix:
            return None
        found = self.root._modules.get(node.target)
        return found if isinstance(found, _Functional) else None

    def region(self, reader: Any, more: int) -> Any:
        """What torch's loop only reads, the last `more` inputs, belongs to the state here."""
        if reader.target not in self.regions:
            module = self.modules[reader.target]
            prefix = f"{self.prefix}{reader.target}."
            region = _FromTorch(self.conversion, module.graph, module, prefix).convert()
            self.regions[reader.target] = region
            if more:
                result = region.output_node()
                inputs = region.find_nodes(op="placeholder")
                result.args = ((*result.args[0], *inputs[-more:]),)
        return self.regions[reader.target]

    @property
    def branches(self) -> dict[str, None]:
        """The paths of GraphModules that are regions now, and hold nothing that anyone reads."""
        used = [f"{path}." for path in self.result._paths(False)]
        gone = [p for p in self.regions if not any(path.startswith(f"{p}.") for path in used)]
        return dict.fromkeys(gone)


# ---- to torch ---------------------------------------------------------------------------------


class _Functional(torch.nn.Module):
    """Calls a module with the tensors that it is given in place of its own, which come first among
    the arguments. The module is not a child: its parameters belong to somebody else already."""

    def __init__(self, path: str, module: Any, names: list[str]) -> None:
        super().__init__()
        self.path, self.names = path, names
        self.__dict__["module"] = module

    def forward(self, tensors: Any, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(self.names, tensors))
        return torch.func.functional_call(self.module, given, args, kwargs)


def _add_state(loop: Any, path: str, readers: list[Any]) -> None:
    """Makes what the regions of a while_loop read at a path a part of its state that stays the
    same. Where the state has numbers, torch's loop has no gradients."""
    test, body, state = loop.args
    with loop.graph.inserting_before(loop):
        outside = loop.graph.get_attr(path)
        if any(isinstance(value, (int, float)) for value in state):
            outside = loop.graph.call_method("detach", (outside,))
    for region in (test, body):
        with region.inserting_before(next(n for n in region.nodes if n.op != "placeholder")):
            inside = region.placeholder(outside.name)
        for reader in readers:
            if reader.graph is region:
                reader.replace_all_uses_with(inside)
                region.erase_node(reader)
        if region is body:
            result = region.output_node()
            result.args = ((*result.args[0], inside),)
    loop.args = (test, body, (*state, outside))


def _is_open(loop: Any) -> bool:
    """Whether a while_loop can have more state: nobody sees the whole result, and the regions have
    one input for each value of the state, a tuple."""
    state = loop.args[2] if len(loop.args) == 3 and not loop.kwargs else None
    if not isinstance(state, (tuple, list)) or not _reads_only(loop, len(state)):
        return False
    counts = {len(region.find_nodes(op="placeholder")) for region in loop.args[:2]}
    result = loop.args[1].output_node().args[0]
    return counts == {len(state)} and isinstance(result, (tuple, list)) and loop.args[0] is not \
        loop.args[1]  # fmt: skip


class _ToTorch(_Copy):
    """cfx's operators become torch's: the graph is copied and brought into torch's form first."""

    is_region = False

    def nodes(self) -> list[Any]:
        self.parameters: set[str] = set()
        copy = self.graph._clone()
        copy._pass("while_loops")  # torch has no others
        names = {node.name: node for node in self.graph.nodes}
        self.originals = {n: names[n.name] for n in copy.nodes if n.name in names}
        if self.root is not None and not self.is_region:
            self.expose(copy)
        copy._pass("lift_attrs")
        functions = {known[0].__name__: target for target, known in reversed(_OPERATORS.items())}
        regions = copy._outline(functions, lambda path: hasattr(self.root, path))
        readers = (r for n in copy.nodes if n.target in (ops.cond, ops.while_loop, ops.for_loop)
                   for r in n.args if isinstance(r, _core.Node))  # fmt: skip
        self.called = {r.target for r in readers}
        self.branches = {path: self.branch(path, region) for path, region in regions.items()}
        return list(copy.nodes)

    def expose(self, graph: Any) -> None:
        """Lets regions read the tensors of the modules that they call, and loops have what their
        regions read in their state. Inner regions first: what they need, the outer ones have."""
        for node in list(graph.nodes):
            regions = [arg for arg in node.args if isinstance(arg, _core.Graph)]
            for region in regions:
                self.expose(region)
                for call in region.find_nodes(op="call_module"):
                    self.open_module(region, call)
                region._pass("lift_attrs")
            if node.target is ops.while_loop and len(regions) == 2 and _is_open(node):
                read: dict[str, list[Any]] = {}
                for region in regions:
                    for reader in region.find_nodes(op="get_attr"):
                        read.setdefault(str(reader.target), []).append(reader)
                for path, readers in read.items():
                    found = operator.attrgetter(path)(self.root)
                    if isinstance(found, torch.Tensor):
                        _add_state(node, path, readers)
                        self.no_gradients(node, path, found)

    def no_gradients(self, loop: Any, path: str, tensor: Any) -> None:
        numbers = any(isinstance(value, (int, float)) for value in loop.args[2])
        if numbers and tensor.requires_grad:
            warnings.warn(f"the loop %{loop} reads '{path}', which gets no gradients in torch: the "
                          "state of the loop has a number", stacklevel=2)  # fmt: skip

    def open_module(self, region: Any, call: Any) -> None:
        known = self.conversion.functional
        if call.target in known:
            return
        module = operator.attrgetter(call.target)(self.root)
        names = [name for name, _ in (*module.named_parameters(), *module.named_buffers())]
        if not names:
            return
        path = f"{call.target.replace('.', '_')}_functional"
        while hasattr(self.root, path) or path in known:
            path += "_"
        known[path] = _Functional(call.target, module, names)
        with region.inserting_before(call):
            tensors = tuple(region.get_attr(f"{call.target}.{name}") for name in names)
        call.target, call.args = path, (tensors, *call.args)

    def by_use(self, nodes: list[Any]) -> Iterable[Any]:
        copies = {original: copy for copy, original in self.originals.items()}
        new = [node for node in nodes if node not in self.originals]
        return [*new, *(copies[node] for node in super().by_use(list(self.graph.nodes)))]

    def add(self, node: Any, target: Any) -> Any:
        if self.is_region and node.op == "placeholder":
            target = node.name if target in self.parameters else target  # each once in a function
            self.parameters.add(target)
        twin = super().add(node, target)
        self.twins[self.originals.get(node)] = twin  # metadata may mention it
        return twin

    def describe(self, node: Any, twin: Any) -> None:
        if node in self.originals:
            super().describe(self.originals[node], twin)
            for key in ("_location", "_scope"):
                if getattr(node, key) is not None:
                    setattr(twin, key, getattr(node, key))  # torch's nodes keep any attribute
        elif node.target in self.branches:
            meta = self.originals[next(iter(node.users))].meta
            twin.meta = {k: meta[k] for k in ("nn_module_stack", "stack_trace") if k in meta}

    def branch(self, name: str, region: Any) -> Any:
        copy = _ToTorch(self.conversion, region, self.root)
        copy.is_region = True
        graph = copy.convert()
        held = dict(copy.branches)
        for node in graph.nodes:
            if node.op not in _PATHS or node.target in held:
                continue
            what = f"node %{node} of the region {name} reads '{node.target}'"
            if self.root is None:
                raise RuntimeError(f"{what}, but there is no module; convert the GraphModule, not "
                                   "its graph")
            known = self.conversion.functional.get(node.target)
            held[node.target] = found = known or operator.attrgetter(node.target)(self.root)
            tensors = found.parameters() if isinstance(found, torch.nn.Module) else [found]
            wanted = any(getattr(tensor, "requires_grad", False) for tensor in tensors)
            if wanted and name not in self.called:
                warnings.warn(f"{what}, which gets no gradients in torch", stacklevel=2)
        return self.dest.GraphModule(held, graph)


# ---- modules ----------------------------------------------------------------------------------


class _Conversion:
    """One call of from_torch or to_torch: what is shared stays shared."""

    def __init__(self, source: Any, dest: Any, copier: type[_Copy]) -> None:
        self.source, self.dest, self.copier = source, dest, copier
        self.done: dict[int, Any] = {}
        self.functional: dict[str, _Functional] = {}

    def convert(self, x: Any) -> Any:
        if isinstance(x, self.source.Graph):
            copy = self.copier(self, x, x.owning_module if self.dest is cfx else None)
            copy.convert()
            if any(copy.branches.values()):  # somebody must have them
                self.adopt(self.dest.GraphModule(torch.nn.Module(), self.dest.Graph()), copy)
            return copy.result
        if isinstance(x, torch.nn.Module):
            return self.module(x)
        what = f"a Graph or GraphModule of {self.source.__name__}"
        raise TypeError(f"expected {what}, got {type(x).__module__}.{type(x).__qualname__}")

    def module(self, module: Any) -> Any:
        """A GraphModule becomes one of the other library; a module that has one inside is copied,
        others stay what they are."""
        if module is None:
            return None
        if id(module) in self.done:
            return self.done[id(module)]
        if isinstance(module, self.source.GraphModule):
            return self.graph_module(module)
        children = {name: self.module(child) for name, child in module._modules.items()}
        copy = self.done[id(module)] = module
        if any(child is not module._modules[name] for name, child in children.items()):
            copy = self.done[id(module)] = object.__new__(type(module))
            self.share(module, copy)
            copy._modules = children
        return copy

    def share(self, module: Any, copy: Any) -> None:
        """Gives a copy the attributes of a module; its dicts and lists are its own."""
        for key, value in vars(module).items():
            if isinstance(value, types.MethodType) and value.__self__ is module:
                value = types.MethodType(value.__func__, copy)
            elif type(value) in (dict, list, set, collections.OrderedDict):
                value = value.copy()
            if key not in _OWN:
                vars(copy)[key] = value

    def graph_module(self, module: Any) -> Any:
        made = self.dest.GraphModule(torch.nn.Module(), self.dest.Graph(), type(module).__name__)
        result = self.done[id(module)] = made
        self.share(module, result)
        result._modules = {name: self.module(child) for name, child in module._modules.items()}
        copy = self.copier(self, module.graph, module if self.dest is cfx else result)
        copy.convert()
        self.adopt(result, copy)
        return result

    def adopt(self, module: Any, copy: Any) -> None:
        for path, branch in copy.branches.items():
            if branch is not None:
                module.add_submodule(path, branch)
            elif "." not in path:
                del module._modules[path]
        module.graph = copy.result
        module._tracer_cls = copy.result._tracer_cls
        module._tracer_extras = copy.result._tracer_extras


def from_torch(x: Any) -> Any:
    """Returns a cfx.Graph or cfx.GraphModule for one of torch.fx, for a torch ExportedProgram (its
    graph_module), for a ScriptModule or ScriptFunction of TorchScript, or for a module that
    contains GraphModules. A path is that of a TorchScript file, or of an ExportedProgram (.pt2):
    torch loads it, so load only files that you trust."""
    import torch.fx

    path = isinstance(x, (str, os.PathLike))
    if path or isinstance(x, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        from . import torchscript

        x = torchscript.load(os.fspath(x)) if path else x
        if isinstance(x, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
            return torchscript.convert(x)
    program = hasattr(x, "graph_signature") and hasattr(x, "graph_module")
    return _Conversion(torch.fx, cfx, _FromTorch).convert(x.graph_module if program else x)


def to_torch(x: Any) -> Any:
    """Returns a torch.fx.Graph or torch.fx.GraphModule for one of cfx, or for a module that
    contains GraphModules. A graph with regions gets an owning module that contains them."""
    import torch.fx

    return _Conversion(cfx, torch.fx, _ToTorch).convert(x)


def trace_dispatch(function: Any, options: dict[str, Any]) -> Callable[..., Any]:
    """Returns a function that runs torch's make_fx on `function` with its inputs and converts the
    result to a cfx.GraphModule. Used by cfx.experimental.proxy_tensor.make_fx."""
    from torch.fx.experimental.proxy_tensor import make_fx

    record = make_fx(function, **options)
    return lambda *inputs: from_torch(record(*inputs))


def bind_unbacked(shape_env: Any, node: Any, value: Any) -> None:
    """Records in a node which sizes of its value depend on data, and where they are in the value.
    Symbols from an earlier run are reused. Both are done by torch.fx."""
    from torch.fx.experimental import symbolic_shapes

    symbolic_shapes.rebind_unbacked(shape_env, node, value)
    bindings = symbolic_shapes.compute_unbacked_bindings(shape_env, value)
    if bindings:
        node.meta["unbacked_bindings"] = bindings


def side_effects() -> set:
    """Returns the functions registered with torch.fx.node.has_side_effect."""
    return getattr(sys.modules.get("torch.fx.node"), "_side_effectful_functions", set())


def _wrapped_tables() -> tuple[Any, Any]:
    """As wrapped_names; but torch.fx's own tables."""
    registry = sys.modules.get("torch.fx._symbolic_trace")
    functions = getattr(registry, "_wrapped_fns_to_patch", {})
    return functions, getattr(registry, "_wrapped_methods_to_patch", ())


def wrapped_names() -> tuple[dict[tuple[int, str], dict[str, Any]], list[tuple[type, str]]]:
    """Returns what was registered with torch.fx.wrap: {(id(globals), name): globals} for functions,
    and (class, name) for the methods that torch.fx patches while it traces."""
    functions, methods = _wrapped_tables()
    return dict(functions), list(methods)


__dir__ = public_names(globals())
