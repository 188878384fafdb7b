"""CodeGen's subclasses and on_generate_code against torch.fx: what is called, with what, when."""
import copy
import inspect
import pickle
import types

import pytest
import torch
import torch.fx.graph
from codegen_cases import CFX, TORCH, Cls, Color, Pt, check, generated, ufn
from torch.utils._pytree import tree_flatten

import cfx
import cfx._glue.codegen

LIBRARIES = (TORCH, CFX)


def two_ops(lib, codegen=None):
    graph = lib.Graph()
    x = graph.placeholder("x", type_expr=int, default_value=3)
    y = graph.placeholder("*rest")
    a = graph.call_function(torch.add, (x, "p\nq"))
    graph.output((a, [y], Color.RED), type_expr=list)
    if codegen is not None:
        graph.set_codegen(codegen)
    return graph


def compare_logs(make, **options):
    """`make(CodeGen, log)` makes a subclass that logs its calls; both libraries log the same."""
    logs = []
    for lib in LIBRARIES:
        log = []
        result = generated(lib, lambda lib: two_ops(lib, make(lib.graph.CodeGen, log)()), **options)
        logs.append((log, result))
    assert logs[0] == logs[1]
    return logs[1]


# ---- overrides --------------------------------------------------------------------------------


def logging(CodeGen, log):
    class Logging(CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation, **kw):
            log.append(("def", list(free_vars), maybe_return_annotation, kw))
            return super().gen_fn_def(free_vars, maybe_return_annotation, **kw)

        def generate_output(self, output_args, **kw):
            log.append(("output", repr(output_args), type(output_args), kw))
            return super().generate_output(output_args, **kw)

        def additional_globals(self):
            log.append(("globals", super().additional_globals()))
            return [("foo_g", int), ("bar.g", str), ("torch", Cls), ("x", ufn), ("len", len),
                    ("inf", 1), ("for", Pt), ("a", torch.relu), ("b", torch.device)]

    return Logging


def modern(CodeGen, log):
    class Modern(CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation, *, expanded_def=None):
            log.append(("def", list(free_vars), expanded_def))
            return super().gen_fn_def(free_vars, "", expanded_def=expanded_def)

        def generate_output(self, output_args, *, descs="?", repr_fn="?"):
            log.append((repr(output_args), descs, repr_fn([Color.RED, {"a": Color.RED}, 1.5])))
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)

    return Modern


def old_style(CodeGen, log):
    class OldStyle(CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            log.append(list(free_vars))
            return "def other(self):\n    # two lines"

        def generate_output(self, output_args):
            return f"RETURN {output_args}\nMORE"

    return OldStyle


def only_globals(CodeGen, log):
    class OnlyGlobals(CodeGen):
        def additional_globals(self):
            return [("g", Cls), ("g", Pt)]

    return OnlyGlobals


def whole(CodeGen, log):
    class Whole(CodeGen):
        def _gen_python_code(self, nodes, root_module, namespace, **kw):
            log.append((type(nodes).__name__, root_module, type(namespace).__name__, kw))
            return super()._gen_python_code(nodes, root_module, namespace, **kw)

    return Whole


@pytest.mark.parametrize("make", [logging, modern, old_style, only_globals, whole])
@pytest.mark.parametrize("options", [{}, {"expanded_def": True}, {"verbose": True, "root": "q"}])
def test_override(make, options):
    compare_logs(make, **options)


def test_override_on_the_instance():
    def build(lib):
        codegen = lib.graph.CodeGen()
        codegen.gen_fn_def = lambda free_vars, returns: "INSTANCE"
        codegen.generate_output = lambda value: "OUT"
        codegen.additional_globals = lambda: [("a", Cls)]
        return two_ops(lib, codegen)

    check(build)


def test_override_of_the_class(monkeypatch):
    for lib in LIBRARIES:
        monkeypatch.setattr(lib.graph.CodeGen, "generate_output", lambda self, value: "PATCHED")
    assert "PATCHED" in check(two_ops)


def test_descriptions_reach_the_override():
    seen = []
    for lib in LIBRARIES:
        class Described(lib.graph.CodeGen):
            def generate_output(self, output_args, *, descs=None, repr_fn=None):
                seen.append(descs)
                return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)

        graph = two_ops(lib, Described())
        graph.output_node().meta["desc"] = ["A", "B", "C"]
        graph.python_code("self", expanded_def=True)
        graph.python_code("self")
    assert seen == [["A", "B", "C"], None] * 2


@pytest.mark.parametrize("name", ["foo", "a b", 5, ""])
def test_function_name(name):
    def build(lib):
        graph = two_ops(lib)
        graph._codegen._func_name = name
        return graph

    check(build)
    check(build, expanded_def=True)


def test_helpers():
    """The small methods that gen_fn_def and generate_output are made of."""
    calls = [
        ("_format_multiline_args", (["a", "b  # c"],)), ("_format_multiline_args", ([],)),
        ("_format_single_arg", ("a  #  b  # c",)), ("_format_single_arg", ("a # b",)),
        ("_get_delimiters", ((1,),)), ("_get_delimiters", ([1],)), ("_get_delimiters", ({},)),
        ("_format_multiline_container", ((1, 2), ["a", "b"], "return ")),
        ("_format_multiline_container", ([1, 2], None, "p")),
        ("_format_multiline_container", ([1, 2], ["a", None], "p", lambda o: "R")),
        ("_get_desc_trailers", ((1, 2, 3), ["a", None, ""])),
        ("_get_desc_trailers", ((1, 2, 3), None)),
        ("_call_method_with_signature_check", (lambda a, b=1, *, c=2: (a, b, c), 1)),
        ("gen_fn_def", (["a", "b"], " -> int")), ("gen_fn_def", (["self", "a"], "")),
        ("gen_fn_def", ([], "")), ("gen_fn_def", (["a", "self"], "")),
        ("generate_output", ((1, 2),)), ("generate_output", (5,)),
        ("process_inputs", ()), ("process_inputs", (1, 2)), ("process_outputs", (5,)),
        ("additional_globals", ()),
    ]  # fmt: skip
    for name, args in calls:
        found, expected = (getattr(lib.graph.CodeGen(), name)(*args) for lib in (CFX, TORCH))
        assert found == expected, name
    for found, expected in zip(*(keyword_calls(lib.graph.CodeGen()) for lib in (CFX, TORCH))):
        assert found == expected


def keyword_calls(codegen):
    yield codegen.gen_fn_def(["a", "b  # c"], " -> T", expanded_def=True)
    yield codegen.gen_fn_def(["self", "b"], "", expanded_def=True)
    yield codegen.gen_fn_def([], "", expanded_def=True)
    yield codegen.generate_output((1, 2), descs=["a", "b"])
    yield codegen.generate_output([1], descs=["a"])
    yield codegen.generate_output(5, descs=["a"])
    yield codegen.generate_output({"a": 1}, descs=["a"])
    yield codegen.generate_output((), descs=[])
    yield codegen.generate_output((1, 2), repr_fn=lambda o: "R")
    yield codegen.generate_output((1, 2), descs=["a", "b"], repr_fn=lambda o: "R")
    call = codegen._call_method_with_signature_check
    yield call(lambda a, **kw: (a, kw), 1, c=5, d=6)
    yield call(lambda a, *, c: (a, c), 1, c=5, d=6)


def test_signatures():
    """Names and parameters are torch.fx's; annotations that name torch's types are left open."""
    for name in ("CodeGen", "_PyTreeCodeGen", "_BoxedCodeGen", "PythonCode", "_CustomBuiltin",
                 "_PyTreeInfo", "_ParsedStackTrace", "_register_custom_builtin",
                 "_parse_stack_trace", "_override_sym_repr", "_format_target", "_is_from_torch",
                 "_is_magic", "_make_color_fn", "_identity"):  # fmt: skip
        expected, found = getattr(torch.fx.graph, name), getattr(cfx._glue.codegen, name)
        assert parameters(found) == parameters(expected), name
        for key, member in vars(expected).items() if isinstance(expected, type) else ():
            if isinstance(member, types.FunctionType) and key != "<lambda>":
                assert parameters(getattr(found, key)) == parameters(member), (name, key)
    assert vars(cfx._glue.codegen.CodeGen()) == vars(torch.fx.graph.CodeGen())


def parameters(obj):
    return [(p.name, p.kind, p.default) for p in inspect.signature(obj).parameters.values()]


# ---- on_generate_code -------------------------------------------------------------------------


def transformed(lib, transform, **options):
    graph = two_ops(lib)
    with graph.on_generate_code(lambda _: transform):
        return generated(lib, lambda _: graph, **options)


TRANSFORMERS = [
    lambda body: body,
    lambda body: ["    import math\n", *body],
    lambda body: [*body, "# tail"],
    lambda body: [*body, "# COUNTER: 7\nx = 1\n"],
    lambda body: [*body, "# COUNTER: 7"],
    lambda body: [],
    lambda body: (),
    lambda body: "abc",
    lambda body: "\n\n\nabc\n\n",
    lambda body: (piece for piece in body),
    lambda body: [piece.upper() for piece in body],
    lambda body: [piece for piece in body if "COUNTER" not in piece],
    lambda body: ["".join(body)],
    lambda body: None,
    lambda body: [*body, 1],
    lambda body: 1 / 0,
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(TRANSFORMERS)))
@pytest.mark.parametrize("options", [{}, {"verbose": True}, {"expanded_def": True},
                                     {"record_func": True, "colored": True}])
def test_transformer(i, options):
    found, expected = (transformed(lib, TRANSFORMERS[i], **options) for lib in (CFX, TORCH))
    assert found == expected


@pytest.mark.parametrize("options", [{}, {"verbose": True}, {"record_func": True}])
def test_pieces(options):
    """A transformer gets the very list that torch.fx gives it, before the other hooks run."""
    logs = []
    for lib in LIBRARIES:
        log = []
        graph = two_ops(lib, logging(lib.graph.CodeGen, log)())
        with graph.on_generate_code(lambda _: lambda body: log.append(list(body)) or body):
            graph.python_code("self", **options)
        logs.append(log)
    assert logs[0] == logs[1] and len(logs[0]) == 4


def test_nesting():
    def nested(lib):
        log = []
        graph = two_ops(lib)

        def outer(current):
            log.append(current)
            return lambda body: ["# outer\n", *body]

        def inner(current):
            log.append(callable(current))
            return lambda body: [*current(body), "# inner\n"]

        manager = graph.on_generate_code(outer)
        log.append(graph.python_code("self").src)  # installed at once
        with manager:
            with graph.on_generate_code(inner):
                log.append(graph.python_code("self").src)
            log.append(graph.python_code("self").src)
        log.append(graph.python_code("self").src)
        with pytest.raises(ValueError):
            with graph.on_generate_code(outer):
                raise ValueError
        log.append(graph._codegen._body_transformer)
        return log

    assert nested(CFX) == nested(TORCH)


# ---- nested arguments and results -------------------------------------------------------------


def structured(lib, args, kwargs, names, out=None, types=(), extra=()):
    """A graph whose function takes `args` and `kwargs`, nested as they are, and returns the leaves
    in the structure of `out`."""
    leaves, spec = tree_flatten((args, kwargs) if kwargs is not None else args)
    graph = lib.Graph()
    nodes = [graph.placeholder(f"leaf_{i}", type_expr=types[i] if i < len(types) else None)
             for i in range(len(leaves))]
    nodes += [graph.placeholder(name, default_value=3) for name in extra]
    _, out_spec = tree_flatten(out) if out is not None else (None, None)
    graph.output(nodes)
    info = lib.graph._PyTreeInfo(names, spec, out_spec)
    graph.set_codegen(lib.graph._PyTreeCodeGen(info))
    return graph


NESTED = [
    (((1, {"a": 2, "b": [3, 4]}), {}, ["x", "y"], {"r": 1, "s": (2, 3, 4)}), {}),
    (((1,), {"k": 2, "j": [3]}, ["x", "k", "j"], [1, 2, 3]), {}),
    (((1,), {"k": 2}, ["self", "x", "k"], (1, 2)), {}),
    (((1, 2), {}, ["x", "y"]), {}),
    (((1, 2), None, ["x", "y"], (1, 2)), {}),
    (((), {}, [], ()), {}),
    (((), {"k": 1}, ["k"], (1,)), {}),
    (((1,), {}, ["*args"], (1,)), {}),
    (((1, [2, 3]), {"k": 4}, ["x", "y", "k"], (1, 2, 3, 4)), {"types": [int, None, Cls]}),
    (((Pt(1, 2), {"q": 3}), {}, ["pt", "dd"], {"z": (0, 0, 0)}), {}),
]


@pytest.mark.parametrize("i", range(len(NESTED)))
@pytest.mark.parametrize("options", [{}, {"expanded_def": True}, {"verbose": True}])
def test_pytree(i, options):
    args, kwargs = NESTED[i]
    check(lambda lib: structured(lib, *args, **kwargs), **options)


def test_leaves_with_defaults():
    """torch.fx writes their defaults where the arguments are unpacked, which is no Python."""
    code = structured(CFX, (1,), {}, ["x"], extra=["e", "f"]).python_code("self").src
    assert "leaf_0, e, f, = fx_pytree" in code
    compile(code, "<generated>", "exec")


def compiled(graph, **attributes):
    """The generated function, bound to an object with these attributes."""
    code = graph.python_code("self")
    scope = dict(code.globals)
    exec(compile(code.src, "<generated>", "exec"), scope)
    return types.MethodType(scope[graph._codegen._func_name], types.SimpleNamespace(**attributes))


@pytest.mark.parametrize("lib", LIBRARIES)
def test_pytree_runs(lib):
    args, kwargs = (1, {"a": 2, "b": [3, 4]}), {"k": (5, Pt(6, 7))}
    out = {"r": (1, [2, 3]), "s": Pt((4,), [5, 6, 7])}
    graph = structured(lib, args, kwargs, ["x", "y", "k"], out)
    info = graph._codegen.pytree_info
    forward = compiled(graph, _in_spec=info.in_spec, _out_spec=info.out_spec)
    assert forward(*args, **kwargs) == out
    with_more = {"a": 2, "more": 0, "b": [3, 4, 0]}
    assert forward(1, with_more, k=(5, Pt(6, 7))) == out
    assert graph.process_inputs(*args, (5, Pt(6, 7))) == [1, 2, 3, 4, 5, 6, 7]
    assert graph.process_outputs([1, 2, 3, 4, 5, 6, 7]) == out


@pytest.mark.parametrize("lib", LIBRARIES)
def test_pytree_without_result_structure(lib):
    graph = structured(lib, (1, 2), {}, ["x", "y"])
    assert graph.process_outputs([7]) == [7]
    graph = structured(lib, (1,), {}, ["x"], (1,))
    assert graph.process_outputs(7) == (7,)


def test_pytree_pieces():
    calls = [
        (["a", "b : int", "c"], True), (["self", "a : int = 3", "*b"], False), ([], False),
        (['x: "f32[2]"', "z : a : b"], True), (["x  # c", "y : int  # d"], True),
    ]  # fmt: skip
    for free_vars, expanded in calls:
        results = []
        for lib in (CFX, TORCH):
            codegen = structured(lib, (1, [2]), {"k": 3}, ["x", "y", "k"])._codegen
            results.append((
                codegen._format_annotations(free_vars, expanded),
                codegen.gen_var_bindings(["p", "q", "k"], free_vars, expanded),
                codegen.gen_fn_def(list(free_vars), " -> R", expanded_def=expanded),
                codegen.generate_output((1, 2), descs=["a", "b"]),
            ))
        assert results[0] == results[1]


# ---- inputs in a list -------------------------------------------------------------------------


def boxed(lib):
    graph = two_ops(lib, lib.graph._BoxedCodeGen())
    return graph


def boxed_star(lib):
    graph = lib.Graph()
    nodes = [graph.placeholder("*x"), graph.placeholder("for"), graph.placeholder("self")]
    graph.output(nodes)
    graph.set_codegen(lib.graph._BoxedCodeGen())
    return graph


def boxed_empty(lib):
    graph = lib.Graph()
    graph.output(())
    graph.set_codegen(lib.graph._BoxedCodeGen())
    return graph


@pytest.mark.parametrize("build", [boxed, boxed_star, boxed_empty])
@pytest.mark.parametrize("options", [{}, {"expanded_def": True}, {"verbose": True}])
def test_boxed(build, options):
    check(build, **options)


@pytest.mark.parametrize("lib", LIBRARIES)
def test_boxed_runs(lib):
    graph = lib.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y", type_expr=int)
    graph.output((graph.call_function(torch.sub, (x, y)),))
    graph.set_codegen(lib.graph._BoxedCodeGen())
    inputs = [torch.ones(2), 3]
    (result,) = compiled(graph)(inputs)
    assert inputs == [] and result.tolist() == [-2.0, -2.0]


# ---- custom builtins --------------------------------------------------------------------------


def test_custom_builtin():
    for lib in LIBRARIES:
        lib.graph._register_custom_builtin("zzq", "from usermod import zzq", Cls)
    try:
        def build(lib):
            graph = lib.Graph()
            x = graph.placeholder("x")
            x.name = "zzq"
            a = graph.call_function(Cls, (x,), type_expr=Cls)
            graph.output(graph.call_function(ufn, (a,)))
            return graph

        check(build)
        assert "zzq" in cfx.Graph().python_code("self").globals
    finally:
        for lib in LIBRARIES:
            del lib.graph._custom_builtins["zzq"]
    check(two_ops)


# ---- copies -----------------------------------------------------------------------------------


def test_where_classes_are_found():
    for name in ("CodeGen", "PythonCode", "_BoxedCodeGen", "_PyTreeCodeGen", "_PyTreeInfo"):
        cls = getattr(cfx.graph, name)
        assert repr(cls) == repr(getattr(torch.fx.graph, name)).replace("torch.fx", "cfx")
        assert pickle.loads(pickle.dumps(cls)) is cls


@pytest.mark.parametrize("make", [lambda lib: lib.graph.CodeGen(), lambda lib: structured(
    lib, (1, [2]), {"k": 3}, ["x", "y", "k"], (1, 2, 3))._codegen])
def test_copies(make):
    for copied in (copy.deepcopy(make(CFX)), pickle.loads(pickle.dumps(make(CFX)))):
        assert vars(copied) == vars(make(CFX)) and type(copied) is type(make(CFX))


def test_graph_copies_its_codegen():
    for lib in LIBRARIES:
        graph = two_ops(lib, lib.graph._BoxedCodeGen())
        copied = copy.deepcopy(graph)
        assert copied._codegen is not graph._codegen
        assert copied.python_code("self").src == graph.python_code("self").src
