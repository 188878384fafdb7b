"""Tracing: running a program on proxies to record what it does as a graph.

The steps of the tracer are C (python/src/trace/tracer.c). This file handles signatures, pytrees and
torch's modules.
"""
import builtins
import importlib
import inspect
import math
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree

from . import _core, _glue, interop
from ._glue import tracing
from ._glue.codegen import _PyTreeCodeGen, _PyTreeInfo
from ._glue.listing import public_names
from ._glue.patching import _autowrap_check, _create_wrapped_func, _create_wrapped_method
from ._glue.patching import _maybe_revert_all_patches, _new_patcher, _patch_wrapped_functions
from ._glue.patching import _Patcher
from ._lazy_graph_module import _make_graph_module
from .graph import Graph
from .node import base_types
from .proxy import Proxy, deepcopy_tracer

HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS

_proxyable_classes = _glue.proxyable_classes
# What `wrap` was called with: {(id of the globals, name): globals}, [(class, name)]
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []


# What libraries reach through this module of torch.fx: name -> where it is.
_REACHED = {
    **dict.fromkeys(("ParameterProxy", "Scope", "ScopeContextManager", "TracerBase"), "cfx.proxy"),
    **dict.fromkeys(("map_aggregate", "Argument"), "cfx.node"),
    "GraphModule": "cfx.graph_module", "compatibility": "cfx._compatibility",
    **dict.fromkeys(("collections", "contextlib", "copy", "functools", "logging", "os"), ""),
    "CodeType": "types", "FunctionType": "types", "ModuleType": "types", "chain": "itertools",
    "ScriptObject": "torch._C", "CURRENT_PATCHER": "cfx._glue.patching",
}  # fmt: skip
pytree = _pytree


def __getattr__(name: str) -> Any:
    if name not in _REACHED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(_REACHED[name] or name)
    return getattr(home, name) if _REACHED[name] else home


def is_fx_tracing() -> bool:
    """Returns whether a trace is running in this thread."""
    return _core._is_tracing()


class _Module(types.ModuleType):
    """This module: its flag belongs to each thread, and can be assigned as torch.fx's can."""

    @property
    def _is_fx_tracing_flag(self) -> bool:
        return _core._is_tracing()

    @_is_fx_tracing_flag.setter
    def _is_fx_tracing_flag(self, value: bool) -> None:
        _core._set_tracing(value)


sys.modules[__name__].__class__ = _Module


def is_fx_symbolic_tracing() -> bool:
    """Returns whether a trace is running in this thread, and torch.compile is not."""
    return _core._is_tracing() and not torch.compiler.is_compiling()


# ---- hooks -----------------------------------------------------------------------------------


# The code that functions of nn.Module have while a trace runs. What it calls are default values of
# the function: there they are out of everybody's way. Dynamo, which may compile a model in another
# thread meanwhile, reads this code and goes on to nn.Module's own; it reads attributes itself.


def _call_template(self, *args, __cfx_hook__, __cfx_dynamo__, __cfx_plain__, **kwargs):
    if __cfx_dynamo__():
        return __cfx_plain__(self, *args, **kwargs)
    return __cfx_hook__(self, args, kwargs, __cfx_plain__)


def _getattr_template(self, name, *, __cfx_hook__, __cfx_plain__):
    return __cfx_hook__(self, name, __cfx_plain__)


def _twin(fn):
    """A function of its own with the code that `fn` has now."""
    twin = types.FunctionType(
        fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
    )
    twin.__kwdefaults__ = fn.__kwdefaults__
    return twin


def _prepare_hooks():
    """Tells the core which functions of nn.Module to hook, and with what."""
    # unwrapped: another library may be tracing while this module is imported
    call = inspect.unwrap(vars(torch.nn.Module)["_wrapped_call_impl"])
    getattr_ = inspect.unwrap(vars(torch.nn.Module)["__getattr__"])
    hooks = []
    for function, template, hook in (
        (call, _call_template, _core._hook_call),
        (getattr_, _getattr_template, _core._hook_getattr),
    ):
        plain = _twin(function)
        function.__kwdefaults__ = {
            "__cfx_hook__": hook,
            "__cfx_dynamo__": torch.compiler.is_dynamo_compiling,
            "__cfx_plain__": plain,  # or what stands beneath: module_hooks.c
        }
        hooks.append((function, template.__code__, plain))
    _core._hook_modules(torch.nn.Module, *hooks)
    return [plain for _, _, plain in hooks]


# nn.Module's own, whatever is hooked
_orig_module_call, _orig_module_getattr = _prepare_hooks()


# ---- wrapping functions ----------------------------------------------------------------------


def wrap(fn_or_name: str | Callable):
    """Records calls to a function as single calls instead of tracing through it. Call `wrap` at the
    top level of a module, with a function or its name in that module, or use it as a decorator."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    assert isinstance(name, str), f"the name of {fn_or_name} is not a str"
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    scope = frame.f_globals
    if "__cfx_generated__" in scope:  # generated code keeps its own list, and goes away with it
        scope["__cfx_wrapped__"] = (*scope.get("__cfx_wrapped__", ()), name)
    else:
        _wrapped_fns_to_patch[id(scope), name] = scope
    return fn_or_name


def _wrapped():
    """Everything that is wrapped, also by libraries that know torch.fx only."""
    interop.presence.appear()
    functions, methods = interop.convert._wrapped_tables()
    return [
        *((d, name) for (_, name), d in functions.items() if name in d or hasattr(builtins, name)),
        *((d, name) for (_, name), d in _wrapped_fns_to_patch.items()),
        *methods, *_wrapped_methods_to_patch,
    ]  # fmt: skip


def _find_proxy(*objects_to_search: object) -> Proxy | None:
    """The first proxy inside the objects."""
    return _core._find_proxy(objects_to_search)


# ---- arguments that are fixed ----------------------------------------------------------------


class PHBase:
    """A placeholder inside concrete_args: this input stays symbolic."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A PH whose attributes are copied to the node of the input."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


def _default_leaves(default: Any, fixed: Any) -> list[Any] | None:
    """The default of a parameter, split like the value that concrete_args has for it; None if its
    structure is another one."""
    try:
        return _pytree.tree_structure(fixed).flatten_up_to(default)
    except ValueError:
        return None


def _warn_of_unknown(concrete_args: dict[str, Any], names: list[str]) -> None:
    for name in concrete_args:
        if name not in names:
            warnings.warn(
                f"concrete_args: there is no parameter {name!r}{tracing.near(name, names)}; the "
                f"parameters are {', '.join(names)}",
                stacklevel=5,
            )


def _transfer_attrs(fr: object, to: object) -> None:
    """Gives `to` the attributes of `fr` that it has not got."""
    for name in dir(fr):
        value = getattr(fr, name)
        if not name.startswith("__") and not callable(value) and not hasattr(to, name):
            setattr(to, name, value)


def _assert_is_none(value: object, msg: str) -> None:
    assert value is None, msg


class ProxyableClassMeta(type):
    """A metaclass for classes whose construction from proxies is recorded as a call."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = _core._find_proxy((args, kwargs)) if _core._is_tracing() else None
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


def _patch_function(fn: types.FunctionType, nargs: int) -> types.FunctionType:
    """`fn` with `nargs` positional parameters and no others: those that were keyword-only, then
    those that took the rest."""
    code = fn.__code__.replace(
        co_argcount=nargs,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=fn.__code__.co_flags & ~HAS_VARSTUFF,
    )
    return types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


# ---- the tracer ------------------------------------------------------------------------------


def _ids_of_functions(module: types.ModuleType) -> set[int]:
    functions = (value for name, value in vars(module).items() if not name.startswith("_"))
    return {id(value) for value in functions if callable(value)}


_IDS_OF_MATH = _ids_of_functions(math)  # which never change


def _unwrapped(fn: Any) -> Any:
    """What decorators that say so have wrapped."""
    return inspect.unwrap(fn) if hasattr(fn, "__wrapped__") else fn  # the long way for few


def _parameters(fn: types.FunctionType) -> tuple[list[str], dict[str, Any]]:
    """The names of the parameters, "*args" and "**kwargs" last, and {name: value} of those that
    need not be given."""
    names, defaults = _core._parameters(fn)
    if hasattr(fn, "__signature__"):
        given = inspect.signature(fn).parameters.values()
        defaults = {p.name: p.default for p in given if p.default is not inspect.Parameter.empty}
    return names, defaults


def _annotations(fn: Any) -> dict[str, Any]:
    """The annotations of a function. From Python 3.14 on they are evaluated when asked for, and
    those whose names do not exist are left out."""
    try:
        return fn.__annotations__
    except (AttributeError, NameError):
        if sys.version_info >= (3, 14):
            import annotationlib

            form = annotationlib.Format.FORWARDREF
            found = annotationlib.get_annotations(fn, format=form).items()
            unknown = annotationlib.ForwardRef
            return {name: value for name, value in found if not isinstance(value, unknown)}
        raise


class _AutowrapIds:
    """The ids of the functions that a tracer wraps by itself, when somebody asks for them."""

    def __get__(self, tracer: Any, owner: Any = None) -> set[int]:
        modules, functions = tracer._autowrapped
        ids = set(map(id, functions))
        for module in modules:
            ids |= _IDS_OF_MATH if module is math else _ids_of_functions(module)
        tracer._autowrap_function_ids = ids
        return ids


class _EmptyRoot:
    """The root of a function: an empty module, made when somebody asks for it."""

    def __get__(self, tracer: Any, owner: Any = None) -> torch.nn.Module:
        if tracer is None or not tracer._has_empty_root:
            raise AttributeError("this tracer has no root before trace() is called")
        tracer.root = root = torch.nn.Module()
        if tracer.submodule_paths is not None:
            tracer.submodule_paths[root] = ""
        return root


class Tracer(_core.Tracer):
    """Captures a module or function as a Graph: `Tracer().trace(root)`.

    Override `is_leaf_module`, `call_module`, `create_arg`, `create_node`, `proxy`, `to_bool`,
    `iter`, `getattr`, ... to control what is recorded and how.
    """

    def __init__(
        self, autowrap_modules: tuple[types.ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable, ...] = (), param_shapes_constant: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self._autowrapped = autowrap_modules, autowrap_functions
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant

    root: Any = _EmptyRoot()
    _autowrap_function_ids: Any = _AutowrapIds()
    _has_empty_root = False
    # Of the trace that runs: GraphModules whose calls are replaced by their nodes at its end, by
    # path; what evaluates the root from its source, or None; the root's first argument.
    _to_inline: dict[str, torch.nn.Module]
    _evaluation: tuple[Any, int, int, int] | None = None
    _hooked = False  # whether cfx.script captures a call of the root, with the root's hooks
    _first: Any = None
    _called: set  # wrapped functions that a script calls
    _adopts = False  # whether modules from outside become part of the root
    _fresh: tuple[Any, dict[str, int]] | None = None  # the root, and numbers that it has not got

    def get_fresh_qualname(self, prefix: str) -> str:
        """Returns a name that starts with `prefix` and is not yet used in the root."""
        root = self.root
        if self._fresh is None or self._fresh[0] is not root:
            self._fresh = root, {}
        numbers = self._fresh[1]
        number = numbers.get(prefix, 0)  # those before it were there
        if number > 0 and not hasattr(root, f"{prefix}{number - 1}"):
            number = 0
        while hasattr(root, f"{prefix}{number}"):
            number += 1
        numbers[prefix] = number
        return f"{prefix}{number}"

    __deepcopy__ = deepcopy_tracer

    # ---- the inputs ----

    def _fixed_input(self, name, concrete_args, defaults, hints):
        """The value that concrete_args fixes a parameter to, with checks in the graph that it gets
        that value; or the proxy of a parameter that is not fixed."""
        if name not in concrete_args:
            return self._placeholders([name], defaults, hints)[0]
        fixed = concrete_args[name]
        leaves = _default_leaves(defaults[name], fixed) if name in defaults else None
        count = 0

        def fix(x):
            nonlocal count
            count += 1
            default = () if leaves is None else (leaves[count - 1],)
            out = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(x, PHBase):
                if x is not PH:
                    _transfer_attrs(x, out.node)
                return out
            wrong = f"{name} has been specialized to have value {x} but got another value"
            if x is None:
                self.create_proxy("call_function", _assert_is_none, (out, wrong), {})
            elif type(x) in base_types and not isinstance(x, torch.Tensor):
                torch._assert(out == x, wrong)
            else:
                warnings.warn(
                    f"Was not able to add assertion to guarantee correct input {name} to "
                    "specialized function. It is up to the user to make sure that your inputs "
                    "match the inputs you specialized the function with.",
                    stacklevel=5,
                )
            return x

        return _pytree.tree_map(fix, fixed)

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """Creates placeholders for the parameters of `root_fn`; returns (the function to call, its
        arguments)."""
        if self._evaluation is not None and isinstance(root_fn, types.MethodType):
            root_fn = root_fn.__func__
        fn = _unwrapped(root_fn)
        if not isinstance(fn, types.FunctionType):
            raise AssertionError(
                f"Expected FunctionType, got {type(fn)}; trace a module or a function written in "
                "Python (wrap anything else in a lambda)"
            )
        code = fn.__code__
        names, defaults = _parameters(fn)
        total = code.co_argcount + code.co_kwonlyargcount
        if self._evaluation is not None:
            root_fn = self._evaluated(root_fn, code.co_argcount, names)
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            names = names[1:]
        if isinstance(concrete_args, tuple):
            if total == is_module and code.co_flags & inspect.CO_VARARGS:  # that many of *args
                fixed = [f"input_{i}" for i in range(len(concrete_args))]
                inputs = [self.create_proxy("placeholder", name, (), {}) for name in fixed]
                return root_fn, [self._self(), *inputs] if is_module else inputs
            if total - is_module != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {total - is_module} arguments but got {len(concrete_args)} "
                    "concrete arguments"
                )
            concrete_args = dict(zip(names, concrete_args))
        hints = _annotations(fn)
        args = [self._self()] if is_module else []
        if concrete_args is None:
            args += self._placeholders(names, defaults, hints)
        else:
            _warn_of_unknown(concrete_args, names)
            args += [self._fixed_input(name, concrete_args, defaults, hints) for name in names]
        if len(args) > code.co_argcount and self._evaluation is None:
            root_fn = _patch_function(root_fn, len(args))
        if concrete_args is None:
            return root_fn, args
        flat_args, in_spec = _pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in in_spec.children()):
            return root_fn, args
        if [child.type for child in in_spec.children()] == [tuple, dict]:
            in_spec = _pytree.tree_flatten(args)[1]  # a tuple would mean (args, kwargs)
        return self._flattened(root_fn, list(code.co_varnames[:total]), in_spec), flat_args

    def _self(self):
        """What the traced function is called on: a class may override `trace`, and set the root."""
        return self.root if self._evaluation is None else self._first

    def _flattened(self, root_fn, names, in_spec):
        """`root_fn` as a function of the leaves of its arguments, which returns leaves."""
        codegen = self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, in_spec, None))

        def flatten_fn(*args):
            out = root_fn(*_pytree.tree_unflatten(list(args), in_spec))
            leaves, out_spec = _pytree.tree_flatten(out)
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return leaves

        return flatten_fn

    def _calls_hooks(self):
        """Whether the root is a module that is called, not one of its methods, and has hooks."""
        root = vars(self).get("root")
        return self._hooked and bool(root._forward_hooks or root._forward_pre_hooks)

    def _evaluated(self, fn, n_plain, names):
        """`fn` as a function that evaluates it: it takes values for all parameters by position."""

        from ._glue.scripting import call_with_hooks  # it is loaded: it evaluates

        called = call_with_hooks if self._calls_hooks() else fn

        def evaluate(*args):
            plain = n_plain if len(args) == len(names) else len(args)
            kwargs = dict(zip(names[n_plain:], args[plain:]))
            return _core._script_call(self, called, args[:plain], kwargs)

        try:
            evaluate.__annotations__ = _annotations(fn)
        except AttributeError:
            pass  # it has none
        return evaluate

    # ---- the trace ----

    def _function_of(self, root):
        """The function to trace, and the dicts that describe the tree of modules."""
        self._to_inline = {}
        self._adopts = self._evaluation is not None and not isinstance(root, torch.nn.Module)
        self._has_empty_root = not isinstance(root, torch.nn.Module)
        if self._has_empty_root:
            vars(self).pop("root", None)
            evaluated = self._evaluation is not None and isinstance(root, types.MethodType)
            self._first = root.__self__ if evaluated else None
            self.tensor_attrs = {}
            return root, {}
        interop.entry.settle(root)
        self.root = self._first = root
        name = self.traced_func_name
        assert hasattr(type(root), name), (
            f"traced_func_name={name} doesn't exist in {type(root).__name__}"
        )
        self.root_module_name = root._get_name()
        paths, self.tensor_attrs = _core._module_tree(root)
        if type(root).named_modules is not torch.nn.Module.named_modules:
            paths = tracing.module_paths(root)
        return getattr(type(root), name), paths

    def _module(self, graph, name):
        """The GraphModule of a graph, with what its root has."""
        return _make_graph_module(vars(self).get("root", {}), graph, name)

    def trace(
        self, root: torch.nn.Module | Callable[..., Any],
        concrete_args: dict[str, Any] | None = None,
    ) -> Graph:  # fmt: skip
        """Runs `root` on proxies and returns the Graph of the recorded operations."""
        if self._busy:
            tracing.refuse(("busy", self))
        fn, paths = self._function_of(root)
        self.graph = Graph(tracer_cls=type(self))
        del self.scope, self.module_stack, self.num_calls, self.node_name_to_scope
        if hasattr(fn, "__code__"):
            code = fn.__code__ if self._evaluation is None else _unwrapped(fn).__code__
            self.graph._co_fields = {
                "co_name": code.co_name,
                "co_filename": code.co_filename,
                "co_firstlineno": code.co_firstlineno,
            }
            self._begin(code.co_filename, code.co_firstlineno)
        scope, evaluates = getattr(fn, "__globals__", {}), self._evaluation is not None
        is_method = isinstance(root, torch.nn.Module) or self._first is not None
        fn, args = self.create_args_for_root(fn, is_method, concrete_args)

        def body():
            if self._evaluation is None:
                result = fn(*args)
            else:
                result = _core._evaluate(self, lambda: fn(*args), *self._evaluation)
                result = self._evaluation[0].returned(result)
            self._output(result, _annotations(fn).get("return"))

        try:
            _core._run_trace(self, body, paths, scope, _wrapped(), evaluates)
        except (TypeError, ValueError) as error:
            tracing.explain(error)
            raise
        if self._to_inline:
            tracing.inline_calls(self)
        return self.graph

    def _script(self, root, concrete_args, *evaluation):
        """As `trace`, but from the source of `root`."""
        self._evaluation, self._called = evaluation, set()
        try:
            graph = self.trace(root, concrete_args)
        finally:
            self._evaluation = None
        _core._script_tidy(graph)
        if self._called:
            _core._mark_wrapped(graph, self._called)
        return graph


def symbolic_trace(
    root: torch.nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
):
    """Captures a module or function as a GraphModule. `concrete_args` fixes inputs, by name."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, torch.nn.Module) else root.__name__
    return tracer._module(graph, name)


_glue.trace_code = Tracer.trace.__code__
_core._register(trace_code=_glue.trace_code)

__dir__ = public_names(globals(), "Graph", "HAS_VARSTUFF", "PH", "Proxy", "base_types")
