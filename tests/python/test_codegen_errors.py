"""What code generation raises: torch.fx's exception types, messages that say what and where."""
import functools
import operator
from typing import Literal

import pytest
import torch
from codegen_cases import CFX, TORCH, generated, ufn

import cfx
import cfx._glue.codegen

BOTH = (TORCH, CFX)


def call(target, args=(), kwargs=None, method="call_function"):
    def build(lib):
        graph = lib.Graph()
        graph.output(getattr(graph, method)(target, args, kwargs or {}))
        return graph

    return build


def both_raise(build, expected, match, **options):
    assert generated(TORCH, build, **options) == expected.__name__
    with pytest.raises(expected, match=match) as caught:
        build(CFX).python_code("self", **options)
    assert type(caught.value) is expected


# ---- graphs that cannot be written ------------------------------------------------------------


@pytest.mark.parametrize("name, n", [("add", 0), ("add", 1), ("neg", 0), ("getitem", 1),
                                     ("iadd", 1), ("setitem", 2), ("setitem", 0)])
def test_too_few_operands(name, n):
    wanted = {"neg": 1, "setitem": 3}.get(name, 2)
    message = rf"^operator\.{name} needs {wanted} positional arguments?, got {n} \(node %{name}\)$"
    both_raise(call(getattr(operator, name), (1, 2, 3)[:n]), IndexError, message)
    both_raise(call(getattr(operator, name), (1, 2, 3)[:n], {"k": 1}), IndexError, message)


def test_method_without_receiver():
    both_raise(call("relu", method="call_method"), IndexError, r"1 positional argument, got 0")


def test_getattr_without_name():
    message = r"2 positional arguments, got 1 \(node %getattr_1\)"
    both_raise(call(getattr, (1,)), IndexError, message)


def test_output_without_value():
    def build(lib):
        graph = lib.Graph()
        graph.create_node("output", "output", ())
        return graph

    both_raise(build, IndexError, r"the output has no value \(node %output\)")


def test_location_in_the_message():
    graph = call(operator.add, (1,))(CFX)
    node = next(iter(graph.nodes))
    node._location = ("model.py", 12)
    with pytest.raises(IndexError, match=r"^model\.py:12: operator\.add needs 2 .* \(node %add\)$"):
        graph.python_code("self")


@pytest.mark.parametrize("target, expected, match", [
    (eval("lambda x: x"), RuntimeError, "^Unable to represent lambda$"),
    ([].append, RuntimeError, "^cannot find module for <built-in method append"),
    (str.upper, AttributeError, "no attribute '__module__'"),
])
def test_function_without_a_name(target, expected, match):
    both_raise(call(target), expected, match)


def test_unhashable_type():
    both_raise(lambda lib: typed(lib, slice(1, 2)), TypeError, "^unhashable type: 'slice'$")


def typed(lib, type_):
    graph = lib.Graph()
    graph.output(graph.placeholder("x", type_expr=type_))
    return graph


def test_type_without_a_name():
    both_raise(lambda lib: typed(lib, torch.float32), AttributeError, "__name__")


def test_repr_fails():
    class Bad:
        def __repr__(self):
            raise OSError("no repr")

    for value in (Bad(), [Bad()], {"a": Bad()}):
        both_raise(call(ufn, (value,)), OSError, "^no repr$")


# ---- regions ----------------------------------------------------------------------------------


def region(n_inputs, has_output=True):
    graph = cfx.Graph()
    nodes = [graph.placeholder(f"a{i}") for i in range(n_inputs)]
    if has_output:
        graph.output(tuple(nodes))
    return graph


@pytest.mark.parametrize("args, match", [
    ((True, region(1), region(2), (1,)), "inputs of a branch: the region has 2, but 1 are given"),
    ((True, region(1, False), region(1), (1,)), "a region has no output"),
])  # fmt: skip
def test_branches_that_do_not_fit(args, match):
    graph = cfx.Graph()
    graph.output(graph.call_function(cfx.cond, args))
    with pytest.raises(RuntimeError, match=match + r" \(node %cond\)"):
        graph.python_code("self")


def test_loop_that_does_not_fit():
    graph = cfx.Graph()
    graph.output(graph.call_function(cfx.while_loop, (region(1), region(2), (1, 2))))
    with pytest.raises(RuntimeError, match="the condition of a loop has 1 inputs, but the body has "
                                           "2"):
        graph.python_code("self")


# ---- CodeGen's methods ------------------------------------------------------------------------


def with_codegen(**methods):
    def build(lib):
        graph = lib.Graph()
        x = graph.placeholder("x")
        x.meta["val"] = torch.ones(1)
        graph.output(x)
        graph.set_codegen(type("Sub", (lib.graph.CodeGen,), methods)())
        return graph

    return build


def raising(*args, **kwargs):
    raise LookupError("mine")


@pytest.mark.parametrize("name", ["gen_fn_def", "generate_output", "additional_globals"])
def test_override_raises(name):
    both_raise(with_codegen(**{name: raising}), LookupError, "^mine$")


def test_override_returns_no_text():
    """torch.fx: AttributeError 'count', TypeError about an item of a list."""
    for name in ("gen_fn_def", "generate_output"):
        with pytest.raises(TypeError, match=rf"^Sub\.{name} must return a str, got None$"):
            with_codegen(**{name: lambda self, *a: None})(CFX).python_code("self")


@pytest.mark.parametrize("globals_, match", [
    (None, "'NoneType' object is not iterable"), ([(1, 2)], None), ([("a", [])], "unhashable type"),
])  # fmt: skip
def test_additional_globals_of_the_wrong_kind(globals_, match):
    both_raise(with_codegen(additional_globals=lambda self: globals_), TypeError, match)


@pytest.mark.parametrize("transform, expected, match", [
    (lambda body: None, TypeError, "^can only join an iterable$"),
    (lambda body: [*body, 1], TypeError, "^sequence item 4: expected str instance, int found$"),
    (lambda body: 1 / 0, ZeroDivisionError, "^division by zero$"),
    (5, TypeError, "not callable"),
])  # fmt: skip
def test_transformer(transform, expected, match):
    def build(lib):
        graph = with_codegen()(lib)
        graph._codegen._body_transformer = transform
        return graph

    both_raise(build, expected, match)


def test_codegen_of_the_wrong_kind():
    def build(lib):
        graph = lib.Graph()
        graph.set_codegen(5)
        return graph

    both_raise(build, AttributeError, "'int' object has no attribute '_gen_python_code'")


def test_codegen_without_its_attributes():
    for name in ("_func_name", "_body_transformer"):
        def build(lib):
            graph = with_codegen()(lib)
            delattr(graph._codegen, name)
            return graph

        both_raise(build, AttributeError, name)


# ---- metadata ---------------------------------------------------------------------------------


@pytest.mark.parametrize("meta, expected", [
    ({"recompute": 1}, AttributeError), ({"custom": "x"}, AttributeError),
    ({"stack_trace": 5}, AttributeError),
])  # fmt: skip
def test_metadata_of_the_wrong_kind(meta, expected):
    def build(lib):
        graph = lib.Graph()
        n = graph.call_function(ufn, ())
        n.meta.update(meta)
        graph.output(n)
        return graph

    both_raise(build, expected, None, verbose=True)


def test_tensor_that_cannot_be_described():
    def build(lib):
        graph = lib.Graph()
        x = graph.placeholder("x")
        x.meta["val"] = torch.nn.UninitializedParameter()
        graph.output(x)
        return graph

    both_raise(build, RuntimeError, "uninitialized parameter", verbose=True)


# ---- arguments --------------------------------------------------------------------------------


def test_unknown_option():
    for lib in BOTH:
        with pytest.raises(TypeError, match="unexpected keyword argument 'nope'"):
            lib.Graph().python_code("self", nope=1)


def test_core_functions_check_their_arguments():
    generate, signature = cfx._core._generate, cfx._core._signature
    for args in [(), (5, None, "self", "f", {}, False, False, False)]:
        with pytest.raises(TypeError):
            generate(*args)
    with pytest.raises(AttributeError, match="names"):
        generate(cfx.Graph(), object(), "self", "f", {}, False, False, False)
    with pytest.raises(TypeError):
        signature("f", ("a",), "", False)
    with pytest.raises(TypeError):
        signature("f", [1], "", False)


def test_literal_type_is_no_error():
    build = functools.partial(typed, type_=Literal[None])
    assert generated(CFX, build) == generated(TORCH, build)
