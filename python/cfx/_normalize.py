"""Arguments in the order and by the names of the callee's signature.

A Python function is asked for its signature; torch's builtin functions and operators have one or
several schemas, of which the arguments must fit exactly one, or the first if their types are given.
"""
import inspect
import types
import typing
from typing import NamedTuple

from ._glue import find_torch


class ArgsKwargsPair(NamedTuple):
    args: tuple
    kwargs: dict


class _Parameter(NamedTuple):
    name: str
    default: object = inspect.Parameter.empty
    by_name_only: bool = False
    type: object = None  # of a schema


def normalize_node(node, root, arg_types=None, kwarg_types=None, only_kwargs=False):
    """What Node.normalized_arguments gives."""
    if node.op == "call_function":
        bound = _bind_function(node.target, node.args, node.kwargs, arg_types, kwarg_types)
    elif node.op == "call_module":
        bound = _bind_module(node, root)
    else:
        return None
    return None if bound is None else _result(*bound, 0 if only_kwargs else len(node.args))


def _result(parameters, values, n_positional):
    items = [(p.name, values.get(p.name, p.default)) for p in parameters]
    args = tuple(value for _, value in items[:n_positional])
    return ArgsKwargsPair(args, dict(items[n_positional:]))


# ---- binding ----------------------------------------------------------------------------------


def _bind(parameters, args, kwargs):
    """{name: value} of what was given, or a TypeError."""
    positional = [p for p in parameters if not p.by_name_only]
    if len(args) > len(positional):
        raise TypeError(
            f"Too many positional arguments: expected max {len(positional)}, got {len(args)}"
        )
    values = {p.name: value for p, value in zip(positional, args)}
    names = {p.name for p in parameters}
    for name, value in kwargs.items():
        if name in values:
            raise TypeError(f"Multiple values for argument '{name}'")
        if name in names:
            values[name] = value
    for p in parameters:
        if p.name not in values and p.default is inspect.Parameter.empty:
            raise TypeError(f"Missing required argument '{p.name}'")
    for name in kwargs:
        if name not in names:
            raise TypeError(f"Got an unexpected keyword argument '{name}'")
    return values


def _try_bind(parameters, args, kwargs):
    try:
        return _bind(parameters, args, kwargs)
    except TypeError:
        return None


# ---- Python's signatures ------------------------------------------------------------------------

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _signature(function):
    """Its parameters, or None where some have no name to be given by."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind not in _NAMED for p in parameters):
        return None
    return [
        _Parameter(p.name, p.default, p.kind is inspect.Parameter.KEYWORD_ONLY) for p in parameters
    ]


def _bind_module(node, root):
    torch = find_torch()
    try:
        module = root.get_submodule(node.target)
    except AttributeError:
        raise RuntimeError(
            f"Tried to normalize node with target {node.target} but root did not have that target!"
        ) from None
    if getattr(torch.nn, type(module).__name__, None) is not type(module):
        return None
    parameters = _signature(module.forward)
    return parameters and (parameters, _bind(parameters, node.args, node.kwargs))


def _bind_function(target, args, kwargs, arg_types, kwarg_types):
    schemas = _schemas(target)
    if schemas is not None:
        return _bind_schema(target, schemas, args, kwargs, arg_types, kwarg_types)
    parameters = _signature(_dispatched(target))
    return parameters and (parameters, _bind(parameters, args, kwargs))


def _dispatched(target):
    """One of the two functions behind a torch function that is really two (max_pool2d)."""
    torch = find_torch()
    if torch is None or not isinstance(target, types.FunctionType):
        return target
    both = torch._jit_internal.boolean_dispatched.get(target)
    return both["if_false"] if both else target


# ---- torch's schemas ----------------------------------------------------------------------------


def _schemas(target):
    """The schemas of one of torch's operators or builtin functions; None for anything else."""
    torch = find_torch()
    if torch is None:
        return None
    if isinstance(target, torch._ops.OpOverload):
        return [target._schema]
    if isinstance(target, torch._ops.OpOverloadPacket):
        return [getattr(target, overload)._schema for overload in target.overloads()]
    if not isinstance(target, types.BuiltinFunctionType):
        return None
    name = target.__name__
    if getattr(torch, name, None) is target or (target.__module__ or "").startswith("torch."):
        return torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    return None


def _parameters_of(schema):
    return [
        _Parameter(
            "input" if a.name == "self" else a.name,
            a.default_value if a.has_default_value() else inspect.Parameter.empty,
            a.kwarg_only,
            a.type,
        )
        for a in schema.arguments
    ]


def _bind_schema(target, schemas, args, kwargs, arg_types, kwarg_types):
    typed = arg_types is not None or kwarg_types is not None
    fitting = []
    for schema in schemas:
        parameters = _parameters_of(schema)
        values = _try_bind(parameters, args, kwargs)
        if values is None:
            continue
        if typed and not _types_fit(parameters, values, arg_types or (), kwarg_types or {}):
            continue
        fitting.append((schema, parameters, values))
    if len(fitting) > 1 and not typed:
        shown = "\n".join(str(schema) for schema, _, _ in fitting)
        raise RuntimeError(
            f"Tried to normalize arguments to {find_torch().typename(target)} but the schema match "
            "was ambiguous! Please provide argument types to the normalize_arguments() call. "
            f"Available schemas:\n{shown}"
        )
    return fitting[0][1:] if fitting else None


def _types_fit(parameters, values, arg_types, kwarg_types):
    given = _try_bind(parameters, arg_types, kwarg_types)
    return given is not None and given.keys() == values.keys() and all(
        _fits(given[p.name], p.type) for p in parameters if p.name in given
    )


_PLAIN = {
    "IntType": (int,),
    "SymIntType": (int,),
    "FloatType": (float, int),
    "BoolType": (bool,),
    "StringType": (str,),
    "NumberType": (int, float, complex),
}


def _fits(given, expected):
    """Whether a value of the Python type `given` may be passed for the schema's type."""
    kind = expected.kind()
    if kind == "OptionalType":
        return given is type(None) or _fits(given, expected.getElementType())
    if kind == "ListType":
        element = expected.getElementType()
        items = [item for item in typing.get_args(given) if item is not ...]
        if typing.get_origin(given) in (list, tuple):
            return all(_fits(item, element) for item in items)
        return element.kind() in ("IntType", "SymIntType") and given is int
    if kind == "TensorType":
        return isinstance(given, type) and issubclass(given, find_torch().Tensor)
    if kind in _PLAIN:
        return given in _PLAIN[kind]
    torch = find_torch()
    return given is {"DeviceObjType": torch.device}.get(kind, torch.dtype)
