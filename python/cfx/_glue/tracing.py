"""What the tracer in C asks of Python: torch's objects, module trees, and words for errors.

Nothing here is for users. cfx._core calls these functions by name, through cfx._glue.
"""
import dataclasses
import enum
import linecache
import os
import sys
import traceback
from typing import Any

from .. import _core, _glue
from ..proxy import ParameterProxy, TraceError, assert_fn

_LIBRARIES: tuple[Any, ...] = (_core,)
_BASE: tuple[type, ...] = (str, int, float, bool, complex)
try:
    import torch
except ImportError:  # proxies of graphs that are built by hand need none
    pass
else:
    from ..node import base_types

    _LIBRARIES, _BASE = (_core, torch), (*base_types, torch._ops.HigherOrderOperator)
    _OPAQUE = (torch.Generator,)
    _CONSTANTS = (torch.Tensor, torch.ScriptObject, *_OPAQUE)
    _core._register(sequential=torch.nn.Sequential, tensor_types=_CONSTANTS[:2])


def near(word, words):
    """"; did you mean 'fc1'?" with the nearest of the words, or nothing."""
    import difflib  # when something is wrong

    found = difflib.get_close_matches(word, [w for w in words if isinstance(w, str)], 1)
    return f"; did you mean '{found[0]}'?" if found else ""


_PATHS = tuple(os.path.dirname(str(module.__file__)) + os.sep for module in _LIBRARIES)
_core._register(library_paths=_PATHS)


# ---- leaves of arguments ---------------------------------------------------------------------


def trace_leaf(job):
    """An object as the argument of a node: itself, or the node that stands for it."""
    tracer, a = job
    if isinstance(a, tuple):  # a named one
        items = tuple(map(tracer.create_arg, a))
        return tracer.create_node("call_function", type(a), items, {})
    if hasattr(type(a), "__fx_create_arg__"):  # a proxy of torch.fx has every attribute
        return a.__fx_create_arg__(tracer)
    if isinstance(tracer, _core.Tracer):
        node = _attribute_node(tracer, a)
        if node is not None:
            return node
    if isinstance(a, (*_BASE, enum.Enum)):
        return a
    if dataclasses.is_dataclass(a) and not isinstance(a, type):
        fields = {f.name: tracer.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
        return tracer.create_node("call_function", type(a), (), fields)
    raise NotImplementedError(
        f"argument of type: {type(a)}" + _hint(
            f"the value {_short(a)} cannot be part of a graph",
            "pass numbers, strings, tensors, proxies, or containers of them; convert it in your "
            "Tracer's create_arg; or cfx.wrap the function that takes it",
        )
    )


def _attribute_node(tracer, a):
    """The get_attr node for a parameter, buffer, tensor or other constant of the root; None for
    anything else. A constant that is not an attribute of the root becomes one."""
    if isinstance(a, torch.nn.Parameter):
        path = tracer._member_path(a)
        if path is None and getattr(tracer, "_adopts", False):
            path = _add_constant(tracer, "_parameter", a)
        if path is None:
            raise NameError("parameter is not a member of this module" + _hint(
                "this parameter does not belong to the traced module",
                "make it an attribute of the module, or pass it as an input",
            ))
    elif isinstance(a, _CONSTANTS):
        path = tracer._member_path(a) or tracer.tensor_attrs.get(a)
        scripts = getattr(tracer, "_evaluation", None) is not None
        if path is None and scripts and isinstance(a, torch.Generator):
            path = _path_of_value(tracer, a)
        if path is None:
            kind = "tensor_constant" if isinstance(a, torch.Tensor) else (
                "opaque_obj" if isinstance(a, _OPAQUE) else "torchbind_obj")
            path = tracer.tensor_attrs[a] = _add_constant(tracer, f"_{kind}", a)
    elif isinstance(a, torch.nn.Module):
        path = (tracer.submodule_paths or module_paths(tracer.root)).get(a)
        if path is None:
            return None
    elif type(a) in _glue.proxyable_classes:
        path = _add_constant(tracer, f"_{type(a).__name__}_constant_", a)
    else:
        return None
    return tracer.create_node("get_attr", path, (), {})


def _path_of_value(tracer, value):
    """Where in the root an object is an attribute of a module; None: nowhere."""
    for path, module in tracer.root.named_modules():
        for name, found in vars(module).items():
            if found is value:
                return f"{path}.{name}" if path else name
    return None


def _add_constant(tracer, prefix, value):
    path = tracer.get_fresh_qualname(prefix)
    setattr(tracer.root, path, value)
    return path


def torch_target(fn):
    """How a call of torch's function `fn` is recorded: None for a call_function, the name for a
    call_method, or a function that records it."""
    if isinstance(fn, torch._C.ScriptMethod):
        return lambda tracer, args, kwargs: tracer.create_proxy(
            "call_method", fn.name, (fn.owner, *args), kwargs or {}
        )
    return fn.__name__ if torch.overrides.is_tensor_method_or_property(fn) else None


# ---- modules ---------------------------------------------------------------------------------


def module_paths(root):
    """{module: path} of all modules below a root, as its class lists them."""
    if type(root).named_modules is torch.nn.Module.named_modules:
        return _core._module_paths(root)
    return {module: path for path, module in root.named_modules()}


def module_path(job):
    tracer, module = job
    if not tracer._busy:
        for path, found in tracer.root.named_modules():
            if found is module:
                return path
    if getattr(tracer, "_adopts", False):
        return _adopt(tracer, module)
    raise NameError("module is not installed as a submodule" + _hint(
        f"this {type(module).__name__} is not a submodule of the traced "
        f"{type(tracer.root).__name__}",
        "make it an attribute in __init__ (use nn.ModuleList for lists), or cfx.wrap the function "
        "that calls it",
    ))


def _adopt(tracer, module):
    """Makes a module that a function uses part of its root: the path."""
    path = _add_constant(tracer, "_module", module)
    for below, found in module.named_modules():
        tracer.submodule_paths.setdefault(found, f"{path}.{below}" if below else path)
    return path


def is_parameter(job):
    tracer, value = job
    if isinstance(value, torch.nn.Parameter):
        return True
    return tracer.proxy_buffer_attributes and isinstance(value, torch.Tensor)


def parameter_factory(job):
    tracer, name, value = job
    if not isinstance(value, torch.nn.Parameter):
        return tracer.proxy
    return lambda node: ParameterProxy(tracer, node, name, value)


# ---- graphs in graphs ------------------------------------------------------------------------


def inline_graph(job):
    """A call of a GraphModule, which the nodes of its graph replace when the trace ends."""
    tracer, module, args, kwargs = job
    if getattr(tracer, "recorder", None) is not None:  # cfx.capture: the values are real
        return module.forward(*args, **kwargs)
    path = tracer.submodule_paths.get(module)
    if path is None:
        path = tracer.get_fresh_qualname("_scripted")
        setattr(tracer.root, path, module)
        tracer.submodule_paths[module] = path
    tracer._to_inline[path] = module
    return tracer.create_proxy("call_module", path, args, kwargs)


def inline_calls(tracer):
    """Replaces calls of the GraphModules that inline_graph has noted."""
    only = torch.nn.Module()
    for path, module in tracer._to_inline.items():
        _core._assign_attr(module, only, path)
    tracer.graph._inline(only)
    heads = {path.partition(".")[0] for path in tracer.graph._paths(False)}
    for path in tracer._to_inline:
        if path.startswith("_scripted") and path not in heads:
            delattr(tracer.root, path)


# ---- source lines ----------------------------------------------------------------------------


def is_library(file):
    return file.startswith(_PATHS)


def record_stack(job):
    """node.stack_trace: the user's frames, outermost first."""
    tracer, node = job
    frame = tracer._find_user_frame()
    if frame is None or node.stack_trace:
        return
    stack = traceback.StackSummary.extract(_user_frames(frame))
    stack.reverse()
    node.stack_trace = "".join(tracer._filter_traceback_frames(stack).format()).strip()


def _user_frames(frame):
    """The frames of the trace that are not torch's or cfx's own, innermost first."""
    while frame is not None and frame.f_code is not _glue.trace_code:
        if not is_library(frame.f_code.co_filename):
            yield frame, frame.f_lineno
        frame = frame.f_back


def user_frame(_=None):
    """The innermost frame that is neither torch's nor cfx's, or None."""
    return next((frame for frame, _ in _user_frames(sys._getframe(1))), None)


# ---- words for errors ------------------------------------------------------------------------


def _short(value):
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


def _hint(what, advice, place=None):
    """The rest of a message: the user's line, what went wrong there, and what to do."""
    frame = user_frame()
    if place is None and frame is not None:
        place = frame, frame.f_lineno
    lines = []
    if place is not None:
        frame, line = place
        file = frame.f_code.co_filename
        lines.append(f"{file}:{line}: {linecache.getline(file, line, frame.f_globals).strip()}")
    return "\n  " + "\n  ".join([*lines, what, f"to do: {advice}"])


# What Python and numpy say about proxies: a part of it, what it means, and what to do.
_MISUSES = (
    ("does not support item assignment", "the items of a proxy cannot be assigned",
     "make a new value (torch.where, x.index_put, x.masked_fill, torch.cat)"),
    ("doesn't support item deletion", "the items of a proxy cannot be deleted",
     "index the part to keep (x[1:])"),
    ("__array_", "numpy needs values, but a proxy has none while tracing",
     "use torch functions"),
    ("Proxy", "a proxy has no value while tracing, so it cannot become a number or text",
     "compute with it symbolically (x.item(), x.size(0), x.to(...)), fix the input with "
     "concrete_args"),
    ("'Attribute'", "an attribute of a proxy has no value while tracing",
     "compute with it symbolically, fix the input with concrete_args"),
)  # fmt: skip


def explain(error):
    """Adds a note to an error of Python's own that was caused by a proxy: int(proxy), say."""
    found = next((row for row in _MISUSES if row[0] in str(error)), None)
    if found is None or isinstance(error, TraceError):
        return
    frames = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not is_library(frame.f_code.co_filename)
    ]
    error.add_note("while tracing" + _hint(
        found[1], f"{found[2]}, or put the code into a function and cfx.wrap it",
        frames[-1] if frames else None,
    ))


def _node_text(proxy):
    node = getattr(proxy, "node", proxy)
    return node.format_node() if hasattr(node, "format_node") else str(node)


def refuse(job):
    """Raises the error for something that cannot be done to a proxy."""
    what, o = job
    raise _REFUSALS[what](o)


def _bool(o):
    return TraceError(
        "symbolically traced variables cannot be used as inputs to control flow" + _hint(
            f"the condition is not known while tracing: it is {_node_text(o)}",
            "capture it with cfx.script, which captures branches and loops that depend on data; or "
            "fix the input with concrete_args, make the module with the branch a leaf, cfx.wrap "
            "the function, or compute both branches and select (torch.where); to record asserts, "
            "set trace_asserts in a Tracer subclass",
        )
    )


def _iter(o):
    return TraceError(
        "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop "
        "or as a *args or **kwargs function argument." + _hint(
            f"its length is not known while tracing: it is {_node_text(o)}",
            "unpack it into as many names as it has items (a, b = x), index it (x[0]), loop over a "
            "known range, or capture the loop with cfx.script",
        )
    )


def _len(o):
    return RuntimeError(
        "'len' is not supported in symbolic tracing by default. If you want this call to be "
        "recorded, please call cfx.wrap('len') at module scope" + _hint(
            f"the length is not known while tracing: it is that of {_node_text(o)}",
            "use x.size(0) or x.shape[0] for a tensor, cfx.wrap('len'), or capture it with "
            "cfx.script",
        )
    )


def _key(o):
    return RuntimeError(
        f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {o}" + _hint(
            "an argument of a call is a dict with a proxy as a key",
            "use a plain key, or pass the pair as a tuple",
        )
    )


def _foreign(o):
    return RuntimeError(f"Node {o} belongs to another graph" + _hint(
        f"a value from another trace is used in this one: {_node_text(o)}",
        "pass it as an input; do not keep proxies in lists, globals or attributes after the "
        "trace that made them",
    ))


def _tracers(o):
    return RuntimeError(
        "Found multiple different tracers while trying to trace operations" + _hint(
            f"the arguments of this call come from different traces; one is {_node_text(o)}",
            "do not keep proxies after the trace that made them",
        )
    )


def _busy(tracer):
    return RuntimeError(
        f"this {type(tracer).__name__} is already tracing, here or in another thread; use a "
        "separate tracer for each trace that runs at the same time"
    )


_REFUSALS = {
    "bool": _bool, "iter": _iter, "len": _len, "key": _key, "foreign": _foreign,
    "tracers": _tracers, "busy": _busy,
}  # fmt: skip


def record_assert(proxy):
    """`assert proxy`, by a tracer that records those."""
    return proxy.tracer.create_proxy("call_function", assert_fn, (proxy,), {})


def check_mutation(job):
    from ..operator_schemas import check_for_mutable_operation

    check_for_mutable_operation(*job)
    return True


_glue.install(
    trace_leaf, torch_target, module_paths, module_path, is_parameter, parameter_factory,
    record_stack, refuse, record_assert, check_mutation, user_frame, inline_graph,
)  # fmt: skip
