"""Graph, and what torch.fx.graph offers beside it.

The graph itself is C (cfx._core.Graph): this class adds what has to do with Python's own objects,
and torch.fx's signatures.
"""
import contextlib
import copy
import typing
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from . import _core, ops, traceback  # noqa: F401: texts name what is in ops; C asks traceback
from ._glue import is_theirs, own_codegen, symint
from ._glue.codegen import CodeGen, PythonCode, TransformCodeFunc, _BoxedCodeGen, _color_codes
from ._glue.codegen import _color_fns, _custom_builtins, _CustomBuiltin, _format_target, _identity
from ._glue.codegen import _is_from_torch, _is_magic, _override_sym_repr, _parse_stack_trace
from ._glue.codegen import _ParsedStackTrace, _PyTreeCodeGen, _PyTreeInfo, _register_custom_builtin
from ._glue.codegen import dtype_abbrs, inplace_methods, magic_methods, reflectable_magic_methods
from ._core import _Namespace, _NodeIter, _node_list
from ._glue.listing import public_names
from .node import Argument, Node, Target, _format_arg, _get_qualified_name, _type_repr, map_arg

__all__ = ["PythonCode", "CodeGen", "Graph"]

_snake_case = _core._snake_case

# How generated code spells the class of a type like list[int]; code generators of others use it.
_origin_type_map = {cls: getattr(typing, name) for cls, name in (
    (list, "List"), (dict, "Dict"), (set, "Set"), (frozenset, "FrozenSet"), (tuple, "Tuple"))}


class _InsertPoint:
    """The insertion point until the end of a `with` block; the old one is put back then."""

    def __init__(self, graph: _core.Graph, orig_insert: tuple[Node | None, bool]) -> None:
        self.graph = graph
        self.orig_insert = orig_insert

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        node, after = self.orig_insert
        while node is not None and node._erased:  # where it was
            node = node.prev if after else node.next
        self.graph._set_insert_point(node, after)


class _FindNodesLookupTable:
    """A view of what `find_nodes` finds, as torch.fx keeps it: {(op, target): {node: None}}."""

    def __init__(self, graph):
        self._graph = graph

    def __contains__(self, node):
        return node in self._graph.nodes

    @property
    def table(self):
        table = {}
        for node in self._graph.nodes:
            key = (node.op, node.target if node.op == "call_function" else None)
            table.setdefault(key, {})[node] = None
        return table

    def find_nodes(self, *, op, target=None):
        return self._graph.find_nodes(op=op, target=target, sort=False)


class Graph(_core.Graph):
    """The main data structure: a list of nodes, each with one of the six opcodes.

    A new graph is empty. `placeholder`, `call_function`, ... add nodes at the insertion point.
    """

    def __init__(
        self, owning_module: Any | None = None, tracer_cls: type | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        # A graph that the core made (a copy, a region, a parsed text) gets its Python state when
        # somebody first asks for it.
        if name in ("_tracer_cls", "_tracer_extras", "_codegen", "_co_fields"):
            known = dict(vars(self))  # what was assigned before stays
            Graph.__init__(self, self.owning_module)
            vars(self).update(known)
            return getattr(self, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def _codegen(self) -> Any:
        own = vars(self)
        return own["_codegen"] if "_codegen" in own else self.__getattr__("_codegen")

    @_codegen.setter
    def _codegen(self, codegen: Any) -> None:
        if not isinstance(codegen, CodeGen) and is_theirs(codegen):
            codegen = own_codegen(codegen)
        vars(self)["_codegen"] = codegen

    # ---- insertion points ----

    def _insert_at(self, n: Node | None, after: bool) -> _InsertPoint:
        if n is not None and not isinstance(n, Node):
            raise AttributeError(f"'{type(n).__name__}' object has no attribute 'graph'")
        where = "after" if after else "before"
        if n is None:  # torch.fx: before "nothing" is the start, after it the end
            n, after = self._root, not after
            return _InsertPoint(self, self._set_insert_point(n, after))
        assert n.graph is self, f"Node to insert {where} is not in graph."
        return _InsertPoint(self, self._set_insert_point(n, after))

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Inserts new nodes before `n` until the `with` block ends (permanently without one)."""
        return self._insert_at(n, False)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Inserts new nodes directly after `n` until the `with` block ends (permanently without
        one)."""
        return self._insert_at(n, True)

    # ---- looking ----

    def output_node(self) -> Node:
        """Returns the output, which must be the last node."""
        node = self._root.prev
        assert node.op == "output", f"Expected output node, got op={node.op}"
        return node

    def print_tabular(self) -> None:
        """Prints the nodes as a table."""
        print(self._table(), end="")

    def _target_to_str(self, target: Target | None) -> str:
        if callable(target):
            name = target.__name__
        else:
            assert isinstance(target, str), f"Expected target to be str, got {type(target)}"
            name = target
            if name.startswith("__") and name.endswith("__"):
                name = name[2:-2]
        return _snake_case(name)

    @property
    def _used_names(self):
        """Always empty, as torch.fx's: the names are in `_graph_namespace`."""
        return {}

    @property
    def _find_nodes_lookup_table(self):
        return _FindNodesLookupTable(self)

    # ---- sizes and symbolic integers ----

    def create_size_node(self, tensor_node: Node, dim: int) -> Node:
        """Creates a node for `tensor_node.size(dim)`."""
        return symint.create_size_node(self, tensor_node, dim)

    def create_stride_node(self, tensor_node: Node, dim: int) -> Node:
        """Creates a node for `tensor_node.stride(dim)`."""
        return symint.create_stride_node(self, tensor_node, dim)

    def create_storage_offset_node(self, tensor_node: Node) -> Node:
        """Creates a node for `tensor_node.storage_offset()`."""
        return symint.create_storage_offset_node(self, tensor_node)

    def materialize_symint(self, value):
        """`materialize_symints` for one value."""
        return self.materialize_symints([value])[0]

    def materialize_symints(self, values) -> list:
        """Creates a node for each symbolic integer that computes it from the graph's inputs (their
        sizes, or inputs that are symbolic integers); plain integers are returned unchanged. Common
        subexpressions share a node. New nodes go to the insertion point."""
        return symint.materialize_symints(self, values)

    def _resolve_unbacked_binding(self, producer: Node, keypath, lower_symint) -> Node:
        return symint.resolve_unbacked_binding(self, producer, keypath, lower_symint)

    @staticmethod
    def _get_tensor_meta_val(tensor_node: Node) -> tuple[Any, str]:
        return symint.tensor_meta_val(tensor_node)

    # ---- checking and cleaning ----

    def lint(self) -> None:
        """Raises RuntimeError for the first error in the graph."""
        findings = self._faults(False)
        if findings:
            raise RuntimeError(findings[0])
        self._check_paths()

    def verify(self) -> list[str]:
        """Returns everything that is wrong with the graph, by stricter rules than `lint`:
        placeholders come first, one output comes last, names are identifiers. The list is empty if
        the graph is well formed."""
        return self._faults(True)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erases nodes that have no users and no effect. Returns True if there were any. In-place
        calls count as having none, as in torch.fx; `cfx.passes.run(module, "dce")` keeps them."""
        self.lint()
        return self._dce(is_impure_node)

    # ---- code ----

    def set_codegen(self, codegen: CodeGen) -> None:
        """Sets the CodeGen that writes the code of this graph."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """Converts the inputs of the generated function to the values of the placeholders."""
        codegen: Any = self._codegen
        if hasattr(codegen, "inputs_for"):  # of a captured graph: attributes are inputs, too
            return codegen.inputs_for(self.owning_module, *args)
        return codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Converts the output's value to what the generated function returns."""
        codegen: Any = self._codegen
        if hasattr(codegen, "outputs_for"):
            return codegen.outputs_for(self.owning_module, out)
        return codegen.process_outputs(out)

    def python_code(
        self, root_module: str, *, verbose: bool = False, include_stride: bool = False,
        include_device: bool = False, colored: bool = False, expanded_def: bool = False,
        record_func: bool = False, additional_meta: list[str] | None = None,
    ) -> PythonCode:  # fmt: skip
        """Returns the source of a Python function for this graph, and the globals it needs."""
        return self._python_code(
            root_module,
            _Namespace(),
            verbose=verbose,
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            expanded_def=expanded_def,
            record_func=record_func,
            additional_meta=additional_meta,
        )

    def _python_code(self, root_module: str, namespace: _Namespace, **options: Any) -> PythonCode:
        return self._codegen._gen_python_code(self.nodes, root_module, namespace, **options)

    def on_generate_code(
        self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc]
    ) -> contextlib.AbstractContextManager[None]:
        """Installs a function that rewrites the lines of generated code. `make_transformer` gets
        the previously installed function, or None. As a context manager, it is undone at the
        end."""
        codegen = self._codegen
        previous = codegen._body_transformer
        codegen._body_transformer = make_transformer(previous)

        @contextlib.contextmanager
        def restore() -> Iterator[None]:
            try:
                yield
            finally:
                codegen._body_transformer = previous

        return restore()

    # ---- copies ----

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "Graph":
        memo = {} if memo is None else memo
        copied = self._clone()
        Graph.__init__(copied, None, self._tracer_cls)
        memo[id(self)] = copied
        copied._codegen = copy.deepcopy(self._codegen, memo)
        if type(self) is not Graph:  # what a class of one's own has added
            known = vars(copied)
            mine = {key: value for key, value in vars(self).items() if key not in known}
            known.update(copy.deepcopy(mine, memo))
        return copied

    def __copy__(self) -> "Graph":
        return self.__deepcopy__({})

    def __reduce_ex__(self, protocol: Any) -> Any:
        from ._glue.pickling import reduce_graph

        return reduce_graph(self)


_core._register(graph_class=Graph)

__dir__ = public_names(
    globals(), "Argument", "Node", "Target", "TransformCodeFunc",
    "dtype_abbrs", "inplace_methods", "magic_methods", "reflectable_magic_methods",
)  # fmt: skip
