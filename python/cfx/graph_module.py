"""GraphModule: an nn.Module whose `forward` is generated from a graph.

The code is generated lazily: recompile() only marks it as outdated. It is generated when the
module is called, `code` is read or `forward` is accessed, and at the latest just before the next
edit of the graph, so that an edit stays invisible until the next recompile().
"""
import contextlib
import copy
import inspect
import itertools
import os
import traceback
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from . import _core, _glue
from ._glue import generated
from ._glue.codegen import _BoxedCodeGen, _custom_builtins, _CustomBuiltin, _PyTreeCodeGen
from ._core import _assign_attr, _copy_attr, _del_attr
from ._core import _get_attr, _get_attr_via_attr_list, _has_attr
from ._glue.generated import _EvalCacheLoader, _exec_with_source, _forward_from_src, _loader
from ._glue.generated import _method_from_src
from ._glue.codegen import show_source
from ._glue.listing import public_names
from .graph import Graph, PythonCode
from .text import as_cfx

try:
    import torch
    from torch.nn import Module
    from torch.nn.modules import module as _nn_module
except ImportError as e:
    raise ImportError("a cfx.GraphModule is a torch.nn.Module: install torch to use it") from e

__all__ = ["reduce_graph_module", "reduce_package_graph_module", "GraphModule"]

FX_GRAPH_MODULE_FILE_PREFIX = "fx_generated_"
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_NODE_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")
_QUALNAME = "GraphModule.__new__.<locals>.GraphModuleImpl"  # as torch.fx's
_STATE_HOOKS = ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")

_core._register(
    module_class=Module,
    parameter_class=torch.nn.Parameter,
    tensor_class=torch.Tensor,
    listeners=tuple(v for k, v in vars(_nn_module).items() if k.endswith("_registration_hooks")),
)


def _format_import_statement(name: str, obj: object, importer: Any) -> str:
    if name in _custom_builtins:
        return _custom_builtins[name].import_str
    if inspect.ismodule(obj):
        return f"import {obj.__name__} as {name}"
    is_method = inspect.ismethod(obj) or inspect.isbuiltin(obj)  # as random.choice
    found = _glue.attribute_name(obj) if is_method else None
    module, attribute = found.rsplit(".", 1) if found else importer.get_name(obj)
    return f"from {module} import {attribute} as {name}"


def _format_import_block(globals: dict[str, Any], importer: Any) -> str:
    return "\n".join(sorted({_format_import_statement(*g, importer) for g in globals.items()}))


class _WrappedCall:
    """Calls a module as its class does; torch.fx has one in the class of each GraphModule."""

    def __init__(self, cls: type, cls_call: Callable[..., Any] | None) -> None:
        self.cls, self.cls_call = cls, cls_call

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        return (self.cls_call or self.cls.__call__)(obj, *args, **kwargs)

    @staticmethod
    def _generate_error_message(frame_summary: traceback.FrameSummary) -> str:
        return f"{traceback.format_exc()}\n{generated.surroundings(frame_summary)}"


# ---- pickles -----------------------------------------------------------------------------------


class _CodeOnlyModule(Module):
    """A module that is nothing but its attributes, for tracing code that uses them."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _has_class(module: Any) -> bool:
    """Whether a GraphModule has its own class: nobody else has that number while it lives."""
    return vars(type(module)).get("_owner") == id(module)


def _give_class(module: Any, name: str) -> None:
    """Gives a GraphModule the class that it has for itself, or that one another name. It is made
    last: all that Python looks up in a class that nobody has used yet takes its time."""
    if _has_class(module):
        type(module).__name__ = name
        return
    cls = type(module)
    body: dict[str, Any] = {"_base": cls._base or cls, "_owner": id(module)}
    if cls is GraphModule:
        own = _core._own_class(cls, name, _QUALNAME, body)
    else:  # one of the user's may have its say about classes that are made of it
        body.update(__module__=__name__, __qualname__=_QUALNAME)
        own = type(name, (cls,), body)
    object.__setattr__(module, "__class__", own)


def _new(cls: Any, name: str = "GraphModule") -> Any:
    module = cls.__new__(cls)
    _give_class(module, name)
    return module


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Module:
    """Rebuilds a GraphModule from code, as torch.fx pickles it, by tracing the code again."""
    src = body.get("_code") or body["code"]
    return _deserialize_graph_module(_forward_from_src(import_block + src, {}), body)


def reduce_package_graph_module(
    importer: Any, body: dict[str, Any], generated_module_name: str
) -> Module:
    """The same for code in a package."""
    forward = importer.import_module(generated_module_name).forward
    return _deserialize_graph_module(forward, body)


def _deserialize_graph_module(
    forward: Callable[..., Any], body: dict[str, Any], graph_module_cls: type | None = None
) -> Module:
    from ._symbolic_trace import Tracer

    cls = body.get("_tracer_cls") or Tracer
    root = type("_CodeOnlyModule", (_CodeOnlyModule,), {"forward": forward})(body)
    tracer = type("KeepModules", (cls,), {"is_leaf_module": lambda *_: True})()
    graph = tracer.trace(root, **(body.get("_tracer_extras") or {}))
    graph._tracer_cls = cls
    name = body.get("_graphmodule_cls_name", "GraphModule")
    module = (graph_module_cls or GraphModule)(root, graph, class_name=name)
    module.__dict__.update({k: v for k, v in body.items() if not hasattr(module, k)})
    return module


_share_torchbind_and_process_group: ContextVar[bool] = ContextVar(
    "_share_torchbind_and_process_group", default=False
)


@contextlib.contextmanager
def _share_torchbind_and_process_group_on_deepcopy() -> Iterator[None]:
    """Inside, copies of a GraphModule share torchbind objects, which may refuse to be copied."""
    token = _share_torchbind_and_process_group.set(True)
    try:
        yield
    finally:
        _share_torchbind_and_process_group.reset(token)


# ---- GraphModule -------------------------------------------------------------------------------


def _indent(text: str) -> str:
    lines = text.split("\n")
    return "".join(f"    {line}\n" if line.strip() else "\n" for line in lines)


def _print_readable(
    module: Module, module_name: str, print_output: bool = True, include_stride: bool = False,
    include_device: bool = False, colored: bool = False, expanded_def: bool = False,
    additional_meta: list[str] | None = None,
) -> str:  # fmt: skip
    show: dict[str, Any] = dict(include_stride=include_stride, include_device=include_device)
    show.update(colored=colored, additional_meta=additional_meta)
    code = module.graph.python_code("self", verbose=True, expanded_def=expanded_def, **show)
    texts = [code.src.strip()]
    for name, child in module.named_children():
        if hasattr(child, "graph"):
            texts += ["", _print_readable(child, name, False, **show).strip()]
    text = f"class {module_name}(torch.nn.Module):\n{_indent(chr(10).join(texts))}"
    if print_output:
        print(text)
    return text


class GraphModule(Module):
    """An nn.Module generated from a Graph: it has a `graph`, and the `code` and `forward` generated
    from it.

    Assigning `graph` regenerates them; after editing the graph in place, call `recompile`.
    """

    __jit_unused_properties__ = ["graph", "_boxed_call", "code", "_code", "_lineno_map"]
    __jit_unused_properties__ += ["_prologue_start"]
    # Of the class that each GraphModule has for itself: its code, and what the module was made as.
    _python_code: PythonCode | None = None
    _base: type | None = None
    _recompiles = 0

    def __init__(
        self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        """`root` is a module, or a dict of attributes by path, that contains everything the graph
        refers to. `class_name` is the name of the module's class."""
        super().__init__()
        graph = graph if isinstance(graph, Graph) else as_cfx(graph)
        if isinstance(root, Module):
            self.__dict__["training"] = getattr(root, "training", True)
            _core._copy_attrs(root, self, graph._paths(False))
        elif isinstance(root, dict):
            self._take_from(root, graph)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        tracer = graph._tracer_cls
        known = tracer is not None and "<locals>" not in tracer.__qualname__
        self.__dict__.update(
            _tracer_cls=tracer if known else None, _tracer_extras=graph._tracer_extras or {},
            meta={}, shape_env=None, **{name: [] for name in _NODE_HOOKS},
        )  # fmt: skip
        _give_class(self, class_name)
        object.__setattr__(self, "graph", graph)  # the property: Module's way there is long

    def _take_from(self, root: dict[str, Any], graph: Graph) -> None:
        paths = graph._paths(False)
        for path in paths:
            if path not in root:
                calls = graph.find_nodes(op="call_module", target=path)
                names = [n.name for n in calls or graph.find_nodes(op="get_attr", target=path)]
                raise RuntimeError(f"Node {' '.join(names[:1])} referenced target {path} but that "
                                   "target was not provided in ``root``!")
        for path in sorted(paths, key=lambda path: path.count(".")):
            _assign_attr(root[path], self, path)

    # ---- the graph and its code ----

    @property
    def graph(self) -> Graph:
        """The graph of this module."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        g = g if isinstance(g, Graph) else as_cfx(g)
        assert isinstance(g, Graph), f"Expected a Graph instance, but got {type(g)}"
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    def recompile(self) -> PythonCode:
        """Regenerates the code; call it after you have edited the graph."""
        if not _has_class(self):  # made without __init__
            _give_class(self, "GraphModule")
        graph, cls = self._graph, type(self)
        if isinstance(graph._codegen, _PyTreeCodeGen) and graph._codegen.pytree_info is not None:
            self._in_spec, self._out_spec = graph._codegen.pytree_info[1:]
        self.__dict__["_recompiles"] = self._recompiles + 1
        code = cls._python_code = generated.code_of(graph, vars(cls).get("_python_code"))
        cls.forward = generated.lazy_forward(code, graph._co_fields)
        return code

    def _recompile_submodules(self) -> list[tuple[str, PythonCode]]:
        children = self.named_children()
        return [(name, m.recompile()) for name, m in children if isinstance(m, GraphModule)]

    def _of_code(self, name: str) -> Any:
        if type(self)._python_code is None:
            raise RuntimeError("Code has not been generated! Call recompile() first")
        return getattr(type(self)._python_code, name)

    @property
    def code(self) -> str:
        """The Python code generated from the graph."""
        return self._of_code("src")

    @property
    def _boxed_call(self) -> bool:
        return isinstance(self._graph._codegen, _BoxedCodeGen)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        generated.touch_forward(type(self), self._recompiles)
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            generated.explain(self, error)
            raise

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{super().__str__()}\n{self.code}\n{hint}"

    def print_readable(
        self, print_output: bool = True, include_stride: bool = False, include_device: bool = False,
        colored: bool = False, *, fast_sympy_print: bool = False, expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:  # fmt: skip
        """Returns, and by default prints, the code of this module and of the GraphModules in it,
        with comments that show where each part comes from and the entries of `meta` that
        `additional_meta` names."""
        show = (print_output, include_stride, include_device, colored)
        return _print_readable(self, self._get_name(), *show, expanded_def, additional_meta)

    def print_source(self, print_output: bool = True) -> str:
        """Returns, and by default prints, the code of this module and of the GraphModules in it,
        with the lines of the program that was captured as comments."""
        before = show_source.set(True)
        try:
            return _print_readable(self, self._get_name(), print_output)
        finally:
            show_source.reset(before)

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Writes a package to `folder` from which `module_name` can be imported."""
        from ._glue.folder import to_folder

        to_folder(self, Path(folder), module_name)

    # ---- sub-modules ----

    def add_submodule(self, target: str, m: Module) -> bool:
        """Adds a module at a path, creating plain modules along the path. Returns False if
        something other than a module is in the way."""
        prefix, _, name = target.rpartition(".")
        parent = _core._enter(self, prefix)
        if isinstance(parent, Module):
            parent.add_module(name, m)
        return isinstance(parent, Module)

    def delete_submodule(self, target: str) -> bool:
        """Deletes the module at a path. Returns False if there is none."""
        found = _has_attr(self, target) and isinstance(_get_attr(self, target), Module)
        if found:
            _del_attr(self, target)
        return found

    def delete_all_unused_submodules(self) -> None:
        """Deletes each module that no node uses, by a call or by reading an attribute, and that
        contains no used module."""
        paths = (path.split(".") for path in self._graph._paths(False))
        used = {step for path in paths for step in itertools.accumulate(path, "{}.{}".format)}
        for path in self._graph._paths(True):
            if _has_attr(self, path):
                used.update(f"{path}.{name}" for name, _ in _get_attr(self, path).named_modules())
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[..., object]) -> Iterator[None]:
        """`f(old=, new=, user=)` is called whenever a node is replaced, inside a `with` block."""
        assert callable(f), "Replace hook must be a callable."
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    # ---- copies ----

    def _state(self, *kept: str) -> dict[str, Any]:
        """The attributes that a copy has, too: hooks on calls are left out, as in torch.fx."""
        hooks = {name for name in (*_NODE_HOOKS, *vars(Module())) if "hook" in name}
        return {key: v for key, v in vars(self).items() if key not in hooks or key in kept}

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> "GraphModule":
        copied = memo[id(self)] = _new(self._base, type(self).__name__)
        if _share_torchbind_and_process_group.get():
            attributes = itertools.chain(*(vars(m).values() for m in self.modules()))
            memo.update({id(v): v for v in attributes if isinstance(v, torch.ScriptObject)})
        memo.update({id(s): s for s in map(vars(self).get, ("_in_spec", "_out_spec"))})  # constants
        state = copy.deepcopy(self._state(*_NODE_HOOKS, *_STATE_HOOKS), memo)
        init = self._deepcopy_init()
        if init is not GraphModule.__init__:
            init(copied, _CodeOnlyModule({**vars(Module()), **state}), state["_graph"])
        copied.__setstate__({**state, "shape_env": None})
        copied.__dict__.update(copied.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}))
        for hook in self._deepcopy_hooks:
            hook(copied)
        return copied

    def __copy__(self) -> "GraphModule":
        copied = _new(self._base)
        GraphModule.__init__(copied, self, self._graph, type(self).__name__)
        copied.meta = self.meta
        return copied

    def _replicate_for_data_parallel(self) -> "GraphModule":
        replica = self.__copy__()
        replica._is_replica = True
        return replica

    def __reduce__(self) -> tuple[Any, ...]:
        return _new, (self._base, type(self).__name__), self._state()

    def __reduce_package__(self, exporter: Any) -> tuple[Any, ...]:
        code = self.recompile()
        exporter.extern(["cfx", "cfx.**"])
        name = f"fx-generated._{exporter.get_unique_id()}"
        imports = _format_import_block(code.globals, exporter.importer)
        exporter.save_source_string(name, f"{imports}\n{code.src}")
        body = {**self._state(), "_graphmodule_cls_name": type(self).__name__}
        del body["_graph"]
        return reduce_package_graph_module, (body, name)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**vars(Module()), **{name: [] for name in _NODE_HOOKS}, **state})
        self._graph.owning_module = self
        self.recompile()


def _add_hook_methods(kind: str, attribute: str) -> None:
    def register(self: GraphModule, f: Callable[..., object]) -> None:
        assert callable(f), f"{kind} hook must be a callable."
        getattr(self, attribute).append(f)

    def unregister(self: GraphModule, f: Callable[..., object]) -> None:
        getattr(self, attribute).remove(f)

    setattr(GraphModule, f"_register_{kind}_hook", register)
    setattr(GraphModule, f"_unregister_{kind}_hook", unregister)


for _kind, _name in zip(("replace_node", "create_node", "erase_node", "deepcopy"), _NODE_HOOKS):
    _add_hook_methods(_kind, _name)
setattr(GraphModule, "_code", GraphModule.code)
setattr(GraphModule, "_lineno_map", property(lambda self: self._of_code("_lineno_map")))
setattr(GraphModule, "_prologue_start", property(lambda self: self._of_code("_prologue_start")))
GraphModule._wrapped_call = _WrappedCall(GraphModule, None)
_core._register(graph_module_class=GraphModule)

__dir__ = public_names(globals(), "FX_GRAPH_MODULE_FILE_PREFIX", "Graph", "PythonCode")
