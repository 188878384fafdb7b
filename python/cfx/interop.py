"""Converts graphs and modules between torch.fx and cfx; nothing else of cfx knows torch.fx.

The two functions make copies. Nodes keep their names, types, metadata, attributes and the order of
their users; modules share their parameters, buffers, hooks and plain sub-modules. What cannot be
converted is an error that names it.

Regions become what torch has for them: cfx.cond and cfx.while_loop the operators of those names,
with GraphModules that get_attr nodes read. What the branches of a cond read becomes an operand,
because torch passes gradients to nothing else. There is no for_loop in torch: it stays a call of
cfx.for_loop, which runs there too. On the way back the GraphModules are regions again, and find
their attributes below the path that they had.
"""
import collections
import operator
import sys
import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import cfx

from . import _core, ops
from ._evaluate import _attribute
from ._pickle import _STATE, _map, _order_of_uses

try:
    import torch
except ImportError as e:
    raise ImportError("cfx.interop converts from and to torch.fx: it needs torch") from e

__all__ = ["from_torch", "to_torch", "wrapped_names"]

_PATHS = ("get_attr", "call_module")
_CODEGENS = ("CodeGen", "_BoxedCodeGen", "_PyTreeCodeGen")
# What a GraphModule makes itself, from its graph.
_OWN = ("_graph", "_code", "_lineno_map", "_prologue_start", "_tracer_cls", "_tracer_extras")


class _Copy:
    """The copy of one graph. `root` is torch's module that its paths lead into, or None."""

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
        names = self.result._graph_namespace
        for name in sorted(set(self.graph._graph_namespace._used_names) - set(names._used_names)):
            names.create_name(name, None)
        for key in _STATE:
            setattr(self.result, key, getattr(self.graph, key))
        tracers = {self.source.Tracer: self.dest.Tracer}
        self.result._tracer_cls = tracers.get(self.graph._tracer_cls)
        self.result._codegen = self.codegen(self.graph._codegen)
        return self.result

    def by_use(self, nodes: list[Any]) -> Iterable[Any]:
        """The nodes in the order in which they were given their arguments."""
        order = _order_of_uses(nodes, {node: i for i, node in enumerate(nodes)})
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
                    raise _error(node, f"uses %{value}, which is not in its graph")
                return self.twins[value]
            if isinstance(value, _core.Graph) and self.dest is not cfx:
                raise _error(node, "has a region, but calls no operator that takes one")
            return value

        if args:
            twin.args = _map(args, convert)
        if kwargs:
            twin.kwargs = _map(kwargs, convert)

    def describe(self, node: Any, twin: Any) -> None:
        if node.meta:
            twin.meta = self.meta(node.meta)
        for key, value in vars(node).items():
            setattr(twin, key, value)

    def meta(self, meta: dict[str, Any]) -> dict[str, Any]:
        """A copy in which nodes of the graph are those of the other; all else stays."""
        found: list[Any] = []
        self.source.map_arg(list(meta.values()), found.append)
        if not found:
            return dict(meta)
        from torch.utils._pytree import tree_map_only

        return tree_map_only(self.source.Node, lambda n: self.twins.get(n, n), dict(meta))

    def codegen(self, codegen: Any) -> Any:
        name = type(codegen).__name__
        if name not in _CODEGENS or type(codegen) is not getattr(self.source.graph, name):
            raise TypeError(
                f"the code generator {type(codegen).__module__}.{name} has no counterpart in "
                f"{self.dest.__name__}; give the graph another one before you convert it, such as "
                f"graph.set_codegen({self.source.__name__}.CodeGen())"
            )
        twin = object.__new__(getattr(self.dest.graph, name))
        vars(twin).update(vars(codegen))
        if getattr(twin, "pytree_info", None) is not None:
            twin.pytree_info = self.dest.graph._PyTreeInfo(*codegen.pytree_info)
        return twin


def _error(node: Any, what: str) -> RuntimeError:
    return RuntimeError(f"node %{node.name} {what}")


# ---- from torch -------------------------------------------------------------------------------


def _join(a: Any, b: Iterable[Any]) -> Any:
    return [*a, *b] if isinstance(a, list) else (*a, *b)


def _reads_only(node: Any, n: int) -> bool:
    """Whether the users of a node only take items of it, each below `n`."""
    read = [user.args[1] for user in node.users if user.target is operator.getitem]
    return len(read) == len(node.users) and all(type(i) is int and 0 <= i < n for i in read)


class _FromTorch(_Copy):
    """torch's operators become cfx's, with regions, where their GraphModules can be seen. The paths
    of a region are those of its GraphModule, with a prefix."""

    def __init__(self, conversion: "_Conversion", graph: Any, root: Any, prefix: str = "") -> None:
        super().__init__(conversion, graph, root)
        self.prefix = prefix
        self.regions: dict[str, Any] = {}  # by path

    def nodes(self) -> list[Any]:
        found = {node: self.readers(node) for node in self.graph.nodes}
        self.calls = {node for node in found if found[node]}
        readers = {node.args[i] for node in self.calls for i in found[node]}
        gone = {node for node in readers if self.calls.issuperset(node.users)}
        return [node for node in found if node not in gone]

    def readers(self, node: Any) -> list[int]:
        """Which arguments of a call are GraphModules that become regions; none if it is another
        call, or if one of them is something else."""
        known = _TORCH.get(node.target) if node.op == "call_function" else None
        if known is None or node.kwargs or len(node.args) < 3:
            return []
        found = [i for i in known[1] if self.module_of(node.args[i])]
        return found if len(found) == len(known[1]) else []

    def module_of(self, reader: Any) -> Any:
        if self.root is None or not isinstance(reader, self.source.Node) or reader.op != "get_attr":
            return None
        try:
            module = self.root.get_submodule(reader.target)
        except AttributeError:
            return None
        plain = isinstance(module, self.source.GraphModule)
        return module if plain and type(module.graph._codegen).__name__ == "CodeGen" else None

    def create(self, node: Any) -> tuple[Any, Any, Any]:
        if node not in self.calls:
            path = self.prefix + node.target if node.op in _PATHS else node.target
            return self.add(node, path), node.args, node.kwargs
        function, places = _TORCH[node.target]
        args = list(node.args)
        more = args.pop(3) if function is ops.while_loop and len(args) > 3 else ()
        for i in places:
            args[i] = self.region(args[i], len(more) if i == 1 else 0)
        twin = self.add(node, function)
        if more:
            n = len(args[2])
            args[2] = _join(args[2], more)
            if not _reads_only(node, n):
                first = (twin, slice(None, n))
                self.twins[node] = self.result.call_function(operator.getitem, first)
        return twin, tuple(args), {}

    def region(self, reader: Any, more: int) -> Any:
        """What torch's loop only reads, the last `more` inputs, belongs to the state here."""
        if reader.target not in self.regions:
            module = self.module_of(reader)
            prefix = f"{self.prefix}{reader.target}."
            region = _FromTorch(self.conversion, module.graph, module, prefix).convert()
            self.regions[reader.target] = region
            if more:
                output = region.output_node()
                inputs = region.find_nodes(op="placeholder")
                output.args = (_join(output.args[0], inputs[-more:]),)
        return self.regions[reader.target]

    def needless(self) -> set[str]:
        """The paths of GraphModules that are regions now, and hold nothing that anyone reads."""
        used = [f"{path}." for path in self.result._paths(False)]
        return {p for p in self.regions if not any(path.startswith(f"{p}.") for path in used)}


# ---- to torch ---------------------------------------------------------------------------------


class _ToTorch(_Copy):
    """cfx's operators become torch's: the graph is copied and brought into torch's form first."""

    def __init__(self, conversion: "_Conversion", graph: Any, root: Any) -> None:
        super().__init__(conversion, graph, root)
        self.branches: dict[str, Any] = {}  # path -> GraphModule

    def nodes(self) -> list[Any]:
        copy = self.graph._clone()
        self.originals = dict(zip(copy.nodes, self.graph.nodes))
        copy._pass("lift_attrs")
        functions = {f"cfx.{known[0].__name__}": target for target, known in _TORCH.items()}
        regions = copy._outline(functions, lambda path: hasattr(self.root, path))
        self.branches = {path: self.branch(region) for path, region in regions.items()}
        return list(copy.nodes)

    def by_use(self, nodes: list[Any]) -> Iterable[Any]:
        copies = {original: copy for copy, original in self.originals.items()}
        new = [node for node in nodes if node not in self.originals]
        return [*new, *(copies[node] for node in super().by_use(list(self.graph.nodes)))]

    def add(self, node: Any, target: Any) -> Any:
        twin = super().add(node, target)
        self.twins[self.originals.get(node)] = twin  # metadata may mention it
        return twin

    def describe(self, node: Any, twin: Any) -> None:
        if node in self.originals:
            super().describe(self.originals[node], twin)
            if node._location is not None:
                twin._location = node._location  # torch's nodes keep any attribute
        elif node.target in self.branches:
            meta = self.originals[next(iter(node.users))].meta
            twin.meta = {k: meta[k] for k in ("nn_module_stack", "stack_trace") if k in meta}

    def branch(self, region: Any) -> Any:
        copy = _ToTorch(self.conversion, region, self.root)
        graph = copy.convert()
        held = dict(copy.branches)
        for node in graph.nodes:
            if node.op in _PATHS and node.target not in held:
                held[node.target] = self.held(node)
        return self.dest.GraphModule(held, graph)

    def held(self, node: Any) -> Any:
        """What a region reads itself."""
        if self.root is None:
            raise _error(node, f"of a region reads '{node.target}', but there is no module to find "
                               "it in; convert the GraphModule instead")  # fmt: skip
        found = _attribute(self.root, node.target)
        tensors = found.parameters() if isinstance(found, torch.nn.Module) else [found]
        if any(getattr(tensor, "requires_grad", False) for tensor in tensors):
            warnings.warn(f"node %{node.name} of a region reads '{node.target}': cond and "
                          "while_loop of torch pass no gradients to it", stacklevel=2)  # fmt: skip
        return found


# ---- modules ----------------------------------------------------------------------------------


class _Conversion:
    """One call of from_torch or to_torch: what is shared stays shared."""

    def __init__(self, source: Any, dest: Any, copier: type[_Copy]) -> None:
        self.source, self.dest, self.copier = source, dest, copier
        self.done: dict[int, Any] = {}
        if not _TORCH:
            hop = torch.ops.higher_order
            _TORCH[hop.cond] = (ops.cond, (1, 2))
            _TORCH[hop.while_loop] = (ops.while_loop, (0, 1))
            _TORCH[ops.for_loop] = (ops.for_loop, (1,))

    def convert(self, x: Any) -> Any:
        if isinstance(x, self.source.Graph):
            copy = self.copier(self, x, x.owning_module if self.dest is cfx else None)
            copy.convert()
            if getattr(copy, "branches", None):  # somebody must have them
                self.adopt(self.shell("GraphModule"), copy)
            return copy.result
        if isinstance(x, torch.nn.Module):
            return self.module(x)
        what = f"a Graph or GraphModule of {self.source.__name__}"
        raise TypeError(f"expected {what}, got {type(x).__module__}.{type(x).__qualname__}")

    def shell(self, name: str) -> Any:
        return self.dest.GraphModule(torch.nn.Module(), self.dest.Graph(), name)

    def module(self, module: Any) -> Any:
        """A GraphModule becomes one of the other library; a module that has one inside is copied,
        others stay what they are."""
        if module is None or id(module) in self.done:
            return module and self.done[id(module)]
        if isinstance(module, self.source.GraphModule):
            return self.graph_module(module)
        children = self.children(module)
        copy = self.done[id(module)] = module
        if any(child is not module._modules[name] for name, child in children.items()):
            copy = self.done[id(module)] = object.__new__(type(module))
            self.share(module, copy)
            copy._modules = children
        return copy

    def children(self, module: Any, but: Iterable[str] = ()) -> dict[str, Any]:
        return {k: self.module(child) for k, child in module._modules.items() if k not in but}

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
        result = self.done[id(module)] = self.shell(type(module).__name__)
        self.share(module, result)
        result._modules = self.children(module) if self.dest is not cfx else {}
        copy = self.copier(self, module.graph, module if self.dest is cfx else result)
        copy.convert()
        if self.dest is cfx:
            result._modules = self.children(module, copy.needless())
        self.adopt(result, copy)
        return result

    def adopt(self, module: Any, copy: Any) -> None:
        for path, branch in getattr(copy, "branches", {}).items():
            module.add_submodule(path, branch)
        module.graph = copy.result
        module._tracer_cls = copy.result._tracer_cls
        module._tracer_extras = copy.result._tracer_extras


# torch's operators: cfx's function, and the places of the regions among the arguments.
_TORCH: dict[Any, tuple[Callable[..., Any], tuple[int, ...]]] = {}


def from_torch(x: Any) -> Any:
    """A cfx.Graph or cfx.GraphModule from torch.fx's, from a torch ExportedProgram (its
    graph_module), or from a module that has GraphModules inside."""
    import torch.fx

    program = hasattr(x, "graph_signature") and hasattr(x, "graph_module")
    return _Conversion(torch.fx, cfx, _FromTorch).convert(x.graph_module if program else x)


def to_torch(x: Any) -> Any:
    """The torch.fx.Graph or torch.fx.GraphModule of a cfx.Graph or cfx.GraphModule, or of a module
    that has GraphModules inside. A graph with regions gets an owning module that has them."""
    import torch.fx

    return _Conversion(cfx, torch.fx, _ToTorch).convert(x)


def wrapped_names() -> tuple[dict[tuple[int, str], dict[str, Any]], list[tuple[type, str]]]:
    """What was given to torch.fx.wrap: {(id(globals), name): globals} of the functions, and
    (class, name) of the methods that torch.fx patches while it traces."""
    registry = sys.modules.get("torch.fx._symbolic_trace")
    functions = getattr(registry, "_wrapped_fns_to_patch", {})
    return dict(functions), list(getattr(registry, "_wrapped_methods_to_patch", ()))
