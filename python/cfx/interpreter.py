"""Interpreter and Transformer: run a graph node by node, with values or with proxies.

The loop, and every step that a subclass does not override, is C (python/src/run/interpreter.c).
"""
import functools
from typing import TYPE_CHECKING, Any

from . import _core
from ._compatibility import compatibility
from ._core import map_aggregate
from ._glue.listing import public_names
from .graph import Graph
from .node import Argument, Node, Target, source_line
from .ops import _each_once, _Region
from .text import as_cfx
from .traceback import preserve_node_meta

if TYPE_CHECKING:
    from .graph_module import GraphModule
    from .proxy import Proxy

__all__ = ["Interpreter", "Transformer"]
_Args = tuple[Argument, ...]


def _format_fx_node(n: Node) -> str:
    """A node as a statement: `name = target(args)`."""
    given = [str(arg) for arg in n.args] + [f"{key}={arg}" for key, arg in n.kwargs.items()]
    return f"{n.name} = {n._pretty_print_target(n.target)}({', '.join(given)})"


@compatibility(is_backward_compatible=True)
class Interpreter(_core.Interpreter):
    """Runs a graph node by node. Subclasses override methods to change what happens: `run` calls
    `run_node` for each node, which calls the method named after the node's opcode.

    get_attr and call_module look up their targets in `module`; `graph` runs instead of
    `module.graph` if it is given. A GraphModule of torch.fx is converted first. Values are released
    after their last use, unless `garbage_collect_values` is False; then `env` holds all of them
    after a run. Regions (see cfx.cond) run in the same way.
    """

    env: dict[Node, Any]

    def __init__(
        self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = as_cfx(module) if graph is None else module
        self.graph = self.module.graph if graph is None else as_cfx(graph)
        self.env = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True

    def __getattr__(self, name: str) -> Any:
        # What is made when first asked for: the plan as torch.fx has it, which is then followed.
        if name == "submodules":
            self.submodules = dict(self.module.named_modules())
        elif name == "user_to_last_uses" and self.garbage_collect_values:
            self.user_to_last_uses = self._last_uses()
        else:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return vars(self)[name]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _core.Interpreter.__new__, (type(self),), vars(self)

    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:  # fmt: skip
        """Runs the graph with these inputs and returns its output. Nodes with a value in
        `initial_env` do not run. `enable_io_processing` converts inputs and output as the graph's
        code generator does."""
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        return self._run(enable_io_processing)

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Runs the graph with a list of inputs, which is cleared so that it does not keep them
        alive."""
        nodes = self.graph.find_nodes(op="placeholder")
        if len(nodes) != len(args_list):
            why = "extra" if len(args_list) > len(nodes) else "missing"
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(nodes)} arguments for placeholders but "
                f"received {len(args_list)} ({why} arguments)"
            )
        env = dict(zip(nodes, args_list))
        args_list.clear()
        return self.run(initial_env=env)

    def _explain(self, node: Node, error: Exception) -> None:
        """Adds the node and the user's line to the message of an exception."""
        if not self.extra_traceback:
            return
        origin = node.stack_trace
        if origin is None and node._location is not None:
            origin = source_line(*node._location)
        parts = [f"{error.args[0]}\n"] if error.args else []
        parts += [f"While executing {node.format_node()}", "Original traceback:", str(origin)]
        error.args = ("\n".join(parts), *error.args[1:])
        if isinstance(error, KeyError):  # it shows the repr of its message
            raise RuntimeError(*error.args) from error

    def _inside(self, region: Graph) -> "Interpreter":
        """Another interpreter of this class, for a region of the graph."""
        inner = type(self).__new__(type(self))
        vars(inner).update(vars(self), graph=region, env={})
        vars(inner).pop("user_to_last_uses", None)
        return inner

    def _region(self, region: Graph) -> Any:
        """A region as a function."""
        return _Region(functools.partial(self._take, region))

    def _take(self, region: Graph, operands: list[Any]) -> Any:
        inner = self._inside(region)
        inputs = list(region.process_inputs(*operands))
        operands.clear()
        inner.args_iter = _each_once(inputs)
        return inner._run(True)


@functools.cache
def _tracer_class() -> Any:
    from ._symbolic_trace import Tracer

    class TransformerTracer(Tracer):
        """Puts what a Transformer makes into its new graph; every module stays a call."""

        def __init__(self, graph: Graph, root: Any) -> None:
            super().__init__()
            self.graph = graph
            self.tensor_attrs: dict[Any, str] = {}
            self.root = root
            self.submodule_paths = _core._module_paths(root)

        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return True

    return TransformerTracer


def _path(target: Target) -> str:
    assert isinstance(target, str), f"Expected target to be str, got {type(target)}"
    return target


@compatibility(is_backward_compatible=True)
class Transformer(Interpreter):
    """An interpreter that creates a new module: values are proxies, and the methods that a subclass
    overrides determine the nodes of the new graph. `transform` returns the module."""

    def __init__(self, module: "GraphModule") -> None:
        super().__init__(module)
        self._begin(module.graph)

    def _begin(self, graph: Graph) -> None:
        self.new_graph = Graph()
        self.new_graph.set_codegen(graph._codegen)
        self.tracer = _tracer_class()(self.new_graph, self.module)

    def _region(self, region: Graph) -> Graph:
        """A region as an argument in the new graph."""
        inner: Any = self._inside(region)
        inner._begin(region)
        return inner._finish()

    def placeholder(self, target: Target, args: _Args, kwargs: dict[str, Any]) -> "Proxy":
        """Creates an input in the new graph."""
        default = {"default_value": args[0]} if args else {}
        return self.tracer.proxy(self.new_graph.placeholder(_path(target), **default))

    def get_attr(self, target: Target, args: _Args, kwargs: dict[str, Any]) -> "Proxy":
        """Creates a get_attr node in the new graph."""
        return self.tracer.create_proxy("get_attr", _path(target), args, kwargs)

    def call_module(self, target: Target, args: _Args, kwargs: dict[str, Any]) -> Any:
        """Creates a call to the module in the new graph."""
        module = self.fetch_attr(_path(target))
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Target, args: _Args, kwargs: dict[str, Any]) -> Any:
        """Creates a call to the function in the new graph."""
        args, kwargs = self._map_regions(args, kwargs)
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def _finish(self) -> Graph:
        """Runs the graph, and gives the new graph its output."""
        with preserve_node_meta():
            result = Interpreter.run(self, enable_io_processing=False)
        for old in self.graph.find_nodes(op="output")[:1]:
            new = self.new_graph.output(map_aggregate(result, self._node_of))
            new.meta = old.meta.copy()
        return self.new_graph

    def _node_of(self, value: Any) -> Any:
        from .proxy import Proxy

        return value.node if isinstance(value, Proxy) else value

    def transform(self) -> "GraphModule":
        """Returns the module with the new graph."""
        from ._lazy_graph_module import _make_graph_module

        return _make_graph_module(self.module, self._finish())


__dir__ = public_names(globals(), "Argument", "Graph", "Node", "Target", "map_aggregate")
