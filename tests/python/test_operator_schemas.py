"""cfx.operator_schemas: the same signatures, types and normalized arguments as torch.fx's."""
import functools
import importlib
import inspect
import math
import operator
import os
import subprocess
import sys
import warnings
from collections import namedtuple
from numbers import Number
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import pytest
from parity import outcome, same

import cfx.operator_schemas as ours

torch = pytest.importorskip("torch")
F = torch.nn.functional
Tensor, Parameter = torch.Tensor, torch.nn.Parameter


def schemas(fx):
    return importlib.import_module(f"{fx.__name__}.operator_schemas")


# ---- signatures ---------------------------------------------------------------------------------

OPERATORS = [
    torch.add, torch.relu, torch.relu_, torch.nonzero, torch.conv2d, torch.rand, torch.arange,
    torch.split, torch.stack, torch.einsum, torch.tensor, torch.manual_seed, torch.wait,
    torch.fft.fft, torch.special.expit, torch.Size, torch.device, torch.finfo, torch.autograd.grad,
    torch._C._nn.gelu, torch._C._nn.linear, torch._assert, torch.get_default_dtype,
    math.sqrt, math.floor,
    torch.ops.aten.add, torch.ops.aten.add.Tensor, torch.ops.aten.uniform.default,
    torch.ops.aten.random_, torch.ops.prims.add, torch.ops.aten.relu_.default,
    F.relu, F.max_pool2d, F.conv2d, F.pad, torch.nn.ReLU, torch.norm, Tensor.add, Tensor.relu_,
    len, abs, int, operator.add, operator.getitem, "relu",
]  # fmt: skip


@same
def test_signatures_of_operators(fx, show):
    for op in OPERATORS:
        show(lambda: schemas(fx).get_signature_for_torch_op(op))
        show(lambda: schemas(fx).get_signature_for_torch_op(op, return_schemas=True))


def test_every_schema_has_the_signature_that_torch_fx_gives_it():
    theirs = importlib.import_module("torch.fx.operator_schemas")._torchscript_schema_to_signature
    seen = 0
    for schema in torch._C._jit_get_all_schemas():
        expected = outcome(lambda: str(theirs(schema)))
        if "NameError" in expected:  # cfx: a type that Python has no name for is Any
            assert "Any" in str(ours._torchscript_schema_to_signature(schema)), schema
            continue
        assert outcome(lambda: str(ours._torchscript_schema_to_signature(schema))) == expected
        seen += 1
    assert seen > 3000


def test_signatures_are_made_once():
    first = ours.get_signature_for_torch_op(torch.addmm)
    assert all(map(operator.is_, first, ours.get_signature_for_torch_op(torch.addmm)))
    first.clear()  # the caller's own
    assert ours.get_signature_for_torch_op(torch.addmm)


# ---- types --------------------------------------------------------------------------------------


class Mine(Tensor):
    pass


Pair = namedtuple("Pair", "a b")
HINTS = [
    1, None, "a", int, torch.float32, {"a": 1}, [], (), [1, 2], (1, "a"), [[1], [2]], [None],
    [int, int], (int, int), [int, float], (int, float), [bool, int], [int, bool], [Any], [int, 5],
    [Tensor, Parameter], (Parameter, Tensor), [Mine, Parameter], [Mine, Parameter, Tensor],
    [Parameter, Tensor, Mine], [List[int]], [list[int]], Pair(int, int), Pair(1, 2), List[int],
    torch.Size([1]), [int, float, 5], [Any, 5],
]  # fmt: skip


@same
def test_create_type_hint(fx, show):
    for x in HINTS:
        show(lambda: schemas(fx).create_type_hint(x))


TYPES = [
    int, float, bool, str, complex, object, list, tuple, Tensor, Parameter, Mine, type(None), None,
    Any, Number, torch.dtype, torch.device, torch.layout, torch.Generator, inspect.Parameter.empty,
    List[int], List[float], List[Tensor], List[Optional[Tensor]], List[List[int]], list[int],
    Tuple[int, ...], Tuple[int, int], Tuple[()], Tuple[Tensor, int], tuple[int, int],
    Tuple[Any, ...], Optional[int], Optional[Tensor], Optional[List[int]], Union[int, float],
    Dict[str, int], Sequence[int], 5, "x",
]  # fmt: skip


@same
def test_type_matches(fx, show):
    for wanted in TYPES:
        for given in TYPES:
            show(lambda: schemas(fx).type_matches(wanted, given))


def test_types_that_are_equal_match():
    assert ours.type_matches(Optional[int], int | None)
    assert ours.type_matches(Union[int, float], Union[float, int])


def test_nested_types_are_warned_about():
    with pytest.warns(UserWarning, match="nested parametric types, got typing.List"):
        assert not ours.type_matches(List[Optional[Tensor]], int)


# ---- normalizing --------------------------------------------------------------------------------


def plain(a, b=2, *, c=3):
    return a


CALLS = [
    (torch.relu, (1,), {}, None, None),
    (torch.relu, (1, 2), {}, None, None),
    (torch.relu, (1,), {}, (str,), None),
    (torch.add, (1, 2), {}, None, None),
    (torch.add, (1, 2), None, (Tensor, Tensor), None),
    (torch.add, (1, 2), {"alpha": 3}, None, {"alpha": int}),
    (torch.add, (1, 2), {"alpha": 3}, (Tensor,), None),
    (torch.add, (1, 2), {"alpha": 3}, (Tensor, int), {"alpha": int}),
    (torch.add, (1, 2), {}, (str, str), None),
    (torch.nonzero, (1,), {}, None, None),
    (torch.nonzero, (1,), {"as_tuple": True}, (Tensor,), {"as_tuple": bool}),
    (torch.conv2d, (1, 2, None, 1), {}, (Tensor, Tensor), None),
    (torch.conv2d, (1, 2), {"padding": "same"}, (Tensor, Tensor), {"padding": str}),
    (torch.conv2d, (1, 2), {"padding": "same"}, (), {}),
    (torch.split, (1,), {"split_size_or_sections": 2}, (Tensor,), {"split_size_or_sections": int}),
    (torch.zeros, (1, 2), {}, (int, int), None),
    (torch.zeros, ((1, 2),), {}, (Tuple[int, int],), None),
    (torch.rand, ((1, 2),), {"generator": 1}, (Tuple[int, int],), {"generator": torch.Generator}),
    (torch.einsum, ("a", 1), {}, None, None),
    (torch.get_default_dtype, (), {}, None, None),
    (F.relu, (1,), {}, None, None),
    (F.relu, (1, True, 2), {}, None, None),
    (F.relu, (), {}, None, None),
    (F.max_pool2d, (1, 2), {"return_indices": True}, None, None),
    (F.adaptive_max_pool2d, (1, 2, True), {}, None, None),
    (plain, (1,), {"c": 5}, None, None),
    (plain, (1, 2, 3), {"zz": 5}, None, None),
    (plain, (1,), {"a": 5}, None, None),
    (plain, (), {"zz": 5}, None, None),
    (plain, (1,), {"zz": 5}, None, None),
    (functools.partial(plain, 1), (1,), {}, None, None),
    (lambda *a: a, (1,), {}, None, None),
    (lambda a, /: a, (1,), {}, None, None),
    (lambda a, **k: a, (1,), {}, None, None),
    (torch.ops.aten.add.Tensor, (1,), {"other": 2}, (str,), {"other": str}),
    (torch.ops.aten.add.Tensor, (), {"self": 1, "other": 2}, None, None),
    (torch.ops.aten.add, (1, 2), {}, (Tensor, int), None),
    (torch.ops.aten.add, (1, 2), {}, None, None),
    (torch.ops.aten.uniform.default, (1, 2), {}, None, None),
    (torch.ops.aten.uniform.default, (1,), {"from": 2}, None, None),
    (torch.ops.aten.uniform.out, (1, 2), {"out": 3}, None, None),
    (torch.ops.higher_order.cond, (1, 2, 3, 4), {}, None, None),
    (torch.nn.Linear, (1, 2), {}, None, None),
    (torch.device, ("cpu",), {}, None, None),
    (Tensor.add, (1, 2), {}, None, None),
    (math.sqrt, (1,), {}, (int,), None),
    (len, (1,), {}, None, None),
    (getattr, (1, "a"), {}, None, None),
    ("relu", (1,), {}, None, None),
    (None, (1,), {}, None, None),
]


@same
def test_normalize_function(fx, show):
    module = schemas(fx)
    for function in (module.normalize_function, module._normalize_function_or_error):
        for call in CALLS:
            show(lambda: tuple(function(*call)), lambda: tuple(function(*call, True)))


@same
def test_arguments_by_a_signature(fx, show):
    normalize = schemas(fx)._args_kwargs_to_normalized_args_kwargs
    for function in (plain, lambda a, /, b: a, lambda *a: a, lambda a, *, b: a):
        signature = inspect.signature(function)
        for args in ((), (1,), (1, 2), (1, 2, 3)):
            for kwargs in ({}, {"b": 5}, {"a": 5}, {"zz": 5}):
                for only in (False, True):
                    show(lambda: tuple(normalize(signature, args, kwargs, only)))


@same
def test_normalize_module(fx, show):
    root = torch.nn.Module()
    root.conv = torch.nn.Conv2d(1, 1, 1)
    root.own = type("Own", (torch.nn.ReLU,), {})()
    root.inner = torch.nn.Sequential(torch.nn.MultiheadAttention(4, 2))
    normalize = schemas(fx).normalize_module
    for target in ("conv", "own", "inner", "inner.0", "", "missing", "conv.weight"):
        for args, kwargs in [((1,), None), ((), {"input": 1}), ((1, 2), {"value": 3}), ((), None)]:
            for only in (False, True):
                show(lambda: tuple(normalize(root, target, args, kwargs, only)))


@same
def test_mutable_operations(fx, show):
    check = schemas(fx).check_for_mutable_operation
    for target, args, kwargs in [
        (torch.add, (1, 2), {}),
        (torch.add, (1, 2), {"out": 3}),  # could be two overloads
        (torch.relu, (1,), {"out": 3}),
        (torch.relu_, (1,), {}),
        (torch.relu_, (1, 2), {}),
        (torch.dropout_, (1, 0.5, True), {}),
        (torch.ops.aten.add_, (1, 2), {}),
        (torch.ops.aten.add_.Tensor, (1, 2), {}),
        (torch.manual_seed, (1,), {}),
        (torch.manual_seed, (1, 2), {}),
        (torch.nonzero, (1,), {}),
        (F.relu, (1, True), {}),
        (operator.iadd, (1, 2), {}),
        ("relu_", (1,), {}),
    ]:
        show(lambda: check(target, args, kwargs))


def test_operators_with_types_that_python_lacks():
    """torch.fx raises a NameError here."""
    assert ours.normalize_function(torch.ops.aten.record_stream, (1, 2)).args == (1, 2)


WITHOUT = """if True:
    import sys
    sys.modules["torch"] = None
    from cfx.operator_schemas import *
    def f(a, b=2): pass
    assert normalize_function(f, (1,)) == ((1,), {"b": 2})
    assert normalize_function(len, (1,)) is None
    assert get_signature_for_torch_op(len, return_schemas=True) == (None, None)
    assert check_for_mutable_operation(len, (1,), {}) is None
    assert type_matches(int, bool) and create_type_hint([int, bool]) == list[int]
"""


def test_without_torch():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", WITHOUT], check=True, env=environment)


def test_warnings_come_from_the_callers_types_only():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.normalize_function(torch.add, (1, 2), None, (Tensor, Tensor))
