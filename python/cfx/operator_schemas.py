"""Signatures of torch's operators, and arguments normalized to a signature.

For a Python function, its signature is used. torch's builtin functions and operators have one or
several schemas: the arguments must match exactly one, or their types must select one.
"""
import enum
import functools
import inspect
import keyword
import numbers
import types
import typing
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from ._compatibility import compatibility
from ._glue import find_torch
from ._glue.listing import public_names

__all__ = ["ArgsKwargsPair", "check_for_mutable_operation", "get_signature_for_torch_op",
           "create_type_hint", "type_matches", "normalize_function", "normalize_module"]

_NAMED: Any = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
# A parameter of torch's uniform and random_ that Python's syntax cannot name is let through.
_RANDOM = ("input", "from", "to", "generator")


@compatibility(is_backward_compatible=False)
class ArgsKwargsPair(NamedTuple):
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


# ---- binding ----------------------------------------------------------------------------------


class _Callee(NamedTuple):
    """A signature as `_fault` and `_bind` read it, much faster than from inspect's objects."""

    signature: inspect.Signature
    schema: Any
    names: tuple[str, ...]
    n_positional: int
    defaults: dict[str, Any]
    required: tuple[str, ...]
    unnamed: tuple[str, ...]  # those that cannot be given by name


def _callee(signature, schema=None):
    parameters = signature.parameters.values()
    return _Callee(
        signature,
        schema,
        tuple(p.name for p in parameters),
        sum(p.kind is not inspect.Parameter.KEYWORD_ONLY for p in parameters),
        {p.name: p.default for p in parameters if p.default is not p.empty},
        tuple(p.name for p in parameters if p.default is p.empty),
        tuple(p.name for p in parameters if p.kind not in _NAMED),
    )


def _fault(callee, args, kwargs):
    """Why the arguments do not fit; None if they do."""
    expected = callee.n_positional
    if len(args) > expected:
        return f"Too many positional arguments: expected max {expected}, got {len(args)}"
    given = callee.names[: len(args)]
    for name in kwargs:
        if name in given:
            return f"Multiple values for argument '{name}'"
        if name in callee.unnamed:
            return f"Got some positional-only arguments passed as keyword arguments: '{name}'"
    for name in callee.required:
        if name not in kwargs and name not in given:
            return f"Missing required argument '{name}'"
    for name in kwargs:
        if name not in callee.names:
            return f"Got an unexpected keyword argument '{name}'"
    return None


def _bind(callee, args, kwargs, only_kwargs):
    if callee.unnamed and callee.names != _RANDOM:
        return None
    if (fault := _fault(callee, args, kwargs)) is not None:
        raise TypeError(fault)
    values = {**callee.defaults, **kwargs, **dict(zip(callee.names, args))}
    n = 0 if only_kwargs else len(args)
    return ArgsKwargsPair(tuple(args[:n]), {name: values[name] for name in callee.names[n:]})


def _args_kwargs_to_normalized_args_kwargs(sig, args, kwargs, normalize_to_only_use_kwargs):
    """The arguments as `sig` takes them; None if it has parameters that have no name."""
    return _bind(_callee(sig), args, kwargs, normalize_to_only_use_kwargs)


# ---- torch's schemas ----------------------------------------------------------------------------


def _torchscript_type_to_python_type(ts_type: Any) -> Any:
    torch = find_torch()
    names = vars(typing) | {
        "Tensor": torch.Tensor, "Device": torch.device, "Layout": torch.layout,
        "number": numbers.Number, "Future": torch.futures.Future, "AnyEnumType": enum.Enum,
        "QScheme": torch.qscheme, "Storage": torch.UntypedStorage, "NoneType": type(None),
        "PyObject": Any, "t": typing.TypeVar("t"), "__torch__": types.SimpleNamespace(torch=torch),
    }  # fmt: skip
    try:
        return eval(ts_type.annotation_str, names)
    except NameError:  # Await, RRef, Stream, ...: values that Python has no type for
        return Any


def _torchscript_schema_to_signature(ts_schema: Any) -> inspect.Signature:
    """A schema as Python's inspect writes signatures; `self` is called `input`."""
    parameters: list[inspect.Parameter] = []
    for arg in ts_schema.arguments:
        name = "input" if arg.name == "self" else arg.name
        kind = _NAMED[arg.kwarg_only]
        if keyword.iskeyword(name):  # it and those before it can be given by position only
            kind = inspect.Parameter.POSITIONAL_ONLY
            parameters = [p.replace(kind=kind) for p in parameters]
        default = arg.default_value if arg.has_default_value() else inspect.Parameter.empty
        type_ = _torchscript_type_to_python_type(arg.type)
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=type_))
    returns = tuple(_torchscript_type_to_python_type(r.type) for r in ts_schema.returns)
    annotation = returns if len(returns) > 1 else returns[0] if returns else None
    return inspect.Signature(parameters, return_annotation=annotation)


@functools.cache
def _overloads_by_name(name):
    schemas = find_torch()._C._jit_get_schemas_for_operator(name)
    return tuple(_callee(_torchscript_schema_to_signature(s), s) for s in schemas)


@functools.cache
def _overload_of(op):
    return _callee(_torchscript_schema_to_signature(op._schema), op._schema)


def _overloads(op):
    """Those of one of torch's operators or builtin functions; None for anything else."""
    torch = find_torch()
    if torch is None or op is torch.nonzero:  # its schema does not tell all
        return None
    if isinstance(op, torch._ops.OpOverload):
        return (_overload_of(op),)
    if isinstance(op, torch._ops.OpOverloadPacket):
        return tuple(_overload_of(getattr(op, name)) for name in op.overloads())
    name = torch.jit._builtins._find_builtin(op)
    return None if name is None else _overloads_by_name(name)


@compatibility(is_backward_compatible=False)
def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """Returns the signatures of an operator's overloads, or None if none are known; with
    `return_schemas`, the signatures and the schemas."""
    overloads = _overloads(op)
    if overloads is not None:
        signatures = [overload.signature for overload in overloads]
        return (signatures, [o.schema for o in overloads]) if return_schemas else signatures
    if not return_schemas:
        return None
    if op is not getattr(find_torch(), "nonzero", _NAMED):
        return None, None
    tensor = inspect.Parameter("self", _NAMED[0], annotation=find_torch().Tensor)
    as_tuple = inspect.Parameter("as_tuple", _NAMED[1], annotation=bool)
    lists = [tensor], [tensor, as_tuple]
    return [inspect.Signature(p, return_annotation=None) for p in lists], None


@compatibility(is_backward_compatible=False)
def check_for_mutable_operation(
    target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raises RuntimeError for a call that changes one of its arguments."""
    fitting = [o.schema for o in _overloads(target) or () if _fault(o, args, kwargs) is None]
    if len(fitting) == 1 and fitting[0].is_mutable:
        raise RuntimeError(
            f"Tried to trace mutable operation {fitting[0]}. FX only supports functional code, so "
            "operations that mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


# ---- types --------------------------------------------------------------------------------------


@compatibility(is_backward_compatible=False)
def create_type_hint(x: object) -> object:
    """For a list or tuple of classes, returns `list[C]` or `tuple[C, ...]`, where C is the class
    among them that the others derive from, or Any. Everything else is returned unchanged."""
    if not isinstance(x, (list, tuple)):
        return x
    base: Any = x[0] if x else Any
    try:
        for item in x:
            if issubclass(base, item):
                base = item
            elif not issubclass(item, base):
                base = Any
                break
    except TypeError:
        warnings.warn(f"We were not able to successfully create type hint from the type {x}")
        return x
    return list[base] if isinstance(x, list) else tuple[base, ...]


@compatibility(is_backward_compatible=False)
def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Returns whether a value of the argument type may be passed to a parameter of the signature
    type."""
    if signature_type == argument_type:
        return True
    origin = typing.get_origin(signature_type)
    if origin is typing.Union:
        return any(type_matches(one, argument_type) for one in signature_type.__args__)
    if origin is list:
        return _matches_list(signature_type, argument_type)
    if signature_type is int and argument_type is getattr(find_torch(), "dtype", None):
        return True
    classes = inspect.isclass(argument_type) and inspect.isclass(signature_type)
    return classes and issubclass(argument_type, signature_type)


def _matches_list(signature_type, argument_type):
    element = typing.get_args(signature_type)[0]
    if not inspect.isclass(element):
        fault = f"Does not support nested parametric types, got {signature_type}"
        warnings.warn(f"{fault}. Please file a bug.")
        return False
    if element is int and argument_type is int:  # torch repeats it
        return True
    origin, items = typing.get_origin(argument_type), typing.get_args(argument_type)
    if origin is list:
        return issubclass(items[0], element)
    return origin is tuple and all(item is ... or issubclass(item, element) for item in items)


# ---- normalizing --------------------------------------------------------------------------------


def _types_fit(overload, arg_types, kwarg_types):
    if _fault(overload, arg_types, kwarg_types) is not None:
        return False
    given = dict(zip(overload.names, arg_types)) | kwarg_types
    parameters = overload.signature.parameters
    return all(type_matches(parameters[name].annotation, type_) for name, type_ in given.items())


def _choose(target, args, kwargs, arg_types, kwarg_types):
    """The overload that is called; None if none fits."""
    fitting = [o for o in _overloads(target) or () if _fault(o, args, kwargs) is None]
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    if arg_types is None and kwarg_types is None:
        shown = "\n".join(str(overload.signature) for overload in fitting)
        raise RuntimeError(
            f"Tried to normalize arguments to {find_torch().typename(target)} but the schema match "
            "was ambiguous! Please provide argument types to the normalize_arguments() call. "
            f"Available schemas:\n{shown}"
        )
    return next((o for o in fitting if _types_fit(o, arg_types or (), kwarg_types or {})), None)


@functools.lru_cache(256)
def _callee_of_torch(function):
    """A torch function may really be two, of one signature (max_pool2d)."""
    both = find_torch()._jit_internal.boolean_dispatched.get(function)
    return _callee(inspect.signature(both["if_false"] if both else function))


def _called(target, *call):
    torch = find_torch()
    builtin = (types.BuiltinFunctionType,)
    if torch is not None:
        builtin += (torch._ops.OpOverload, torch._ops.OpOverloadPacket)
    if isinstance(target, builtin):
        return _choose(target, *call)
    assert callable(target), f"target_for_analysis must be callable, got {type(target)}"
    if isinstance(target, types.FunctionType) and target.__module__.startswith("torch."):
        return _callee_of_torch(target)
    return _callee(inspect.signature(target))


@compatibility(is_backward_compatible=False)
def normalize_function(
    target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any] | None = None, kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:  # fmt: skip
    """Returns the arguments of a call in the order and with the names of the function's signature,
    including defaults; None if the signature is not known. Types select between overloads."""
    kwargs = kwargs or {}
    callee = _called(target, args, kwargs, arg_types, kwarg_types)
    return callee and _bind(callee, args, kwargs, normalize_to_only_use_kwargs)


def _normalize_function_or_error(
    target, args, kwargs=None, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False
):
    """normalize_function, but a RuntimeError instead of None."""
    only = normalize_to_only_use_kwargs
    result = normalize_function(target, args, kwargs, arg_types, kwarg_types, only)
    if result is not None:
        return result
    call = f"{target} with args {args} and kwargs {kwargs}"
    raise RuntimeError(f"Failed to normalize function {call}")


@compatibility(is_backward_compatible=False)
def normalize_module(
    root: Any, target: str, args: tuple[Any], kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:  # fmt: skip
    """The same as normalize_function for the forward of a torch.nn module; None for other
    modules."""
    try:
        module = root.get_submodule(target)
    except AttributeError:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from None
    if getattr(find_torch().nn, type(module).__name__, None) is not type(module):
        return None
    callee = _callee(inspect.signature(module.forward))
    return _bind(callee, args, kwargs or {}, normalize_to_only_use_kwargs)


__dir__ = public_names(globals())
