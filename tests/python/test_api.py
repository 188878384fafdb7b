"""The public API: frozen in tests/golden/python_api.txt, and the same as torch.fx's.

CFX_UPDATE=1 (or tools/py_api.py --update) rewrites the golden file.
"""
import inspect
import os
import sys
from pathlib import Path

import cfx
import cfx._compatibility
import cfx._pytree
import cfx.annotate
import cfx.graph
import cfx.immutable_collections
import cfx.interpreter
import cfx.node
import cfx.traceback
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import py_api


def test_frozen():
    pytest.importorskip("torch")  # without it cfx has fewer names
    if os.environ.get("CFX_UPDATE") == "1":
        py_api.GOLDEN.write_text("".join(f"{line}\n" for line in py_api.lines()))
    diff = "\n".join(py_api.difference())
    assert not diff, f"the API changed; if that is meant, run with CFX_UPDATE=1\n{diff}"


# ---- against torch.fx

PAIRS = [
    "graph.Graph", "graph.CodeGen", "graph.PythonCode", "node.Node",
    "immutable_collections.immutable_list", "immutable_collections.immutable_dict",
    "node.map_arg", "node.map_aggregate", "node.has_side_effect", "_compatibility.compatibility",
    "_pytree.register_pytree_flatten_spec", "_pytree.tree_flatten_spec",
    "interpreter.Interpreter", "interpreter.Transformer", "annotate.annotate",
    *(f"traceback.{name}" for name in cfx.traceback.__all__),
]  # fmt: skip

# What cfx does not have, on purpose.
MISSING = {
    "node.Node.__init__": "a Node is made by its Graph; torch.fx makes loose ones, of no graph",
}
# Parameters whose default differs, on purpose.
DEFAULTS = {
    "graph.Graph.placeholder default_value": "torch.fx's marks it as required, which it is not",
    "graph.Graph.node_copy arg_transform": "None says the same as torch.fx's lambda x: x",
}


def find(root, path):
    for name in path.split("."):
        root = getattr(root, name)
    return root


def own_members(class_):
    """The public names that are not just inherited from a class of Python's."""
    builtin = [base for base in class_.__mro__ if base in (list, dict, object)]
    inherited = set().union(*map(vars, builtin))
    names = [name for name in dir(class_) if not name.startswith("_") or name == "__init__"]
    return [name for name in names if name in vars(class_) or name not in inherited]


def comparisons():
    torch_fx = pytest.importorskip("torch.fx")
    pytest.importorskip("torch.fx.annotate")
    for path in PAIRS:
        theirs = find(torch_fx, path)
        yield path, theirs
        if isinstance(theirs, type):
            for name in own_members(theirs):
                yield f"{path}.{name}", getattr(theirs, name)


def parameters(function):
    """{name: (kind, default)} without self; a default that is a function counts as one."""
    found = inspect.signature(function).parameters.values()
    return {p.name: (p.kind.name, p.default) for p in found if p.name != "self"}


def test_every_name_of_torch_fx():
    missing = []
    for path, _ in comparisons():
        try:
            find(cfx, path)
        except AttributeError:
            missing.append(path)
    assert sorted(missing) == sorted(p for p in MISSING if not p.endswith("__init__"))


def test_signatures_of_torch_fx():
    wrong = []
    for path, theirs in comparisons():
        if path in MISSING or isinstance(theirs, type) or not callable(theirs):
            continue
        try:
            expected = parameters(theirs)
        except (TypeError, ValueError):
            continue  # C code without a signature
        found = parameters(find(cfx, path))
        for name in expected:
            if f"{path} {name}" in DEFAULTS and name in found:
                expected[name] = found[name]
        if list(found.items()) != list(expected.items()):
            wrong.append(f"{path}: {found}, torch.fx has {expected}")
    assert wrong == []


def test_everything_has_a_docstring_and_a_signature():
    bare = []
    for path in PAIRS:
        value = find(cfx, path)
        for name, member in py_api.members(value) if isinstance(value, type) else [("", value)]:
            if callable(member) and not isinstance(member, type):
                if py_api.signature(member) is None:
                    bare.append(f"{path}.{name} has no signature")
                if not member.__doc__ and name != "__init__":
                    bare.append(f"{path}.{name} has no docstring")
    assert bare == []


def test_keyword_arguments_work():
    """As signatures promise: every parameter can be given by its name."""
    graph = cfx.Graph(owning_module=None, tracer_cls=None, tracer_extras=None)
    x = graph.placeholder(name="x", type_expr=None, default_value=1)
    w = graph.get_attr(qualified_name="w", type_expr=None)
    f = graph.call_function(the_function=len, args=(x,), kwargs={}, type_expr=int, name="f")
    m = graph.call_method(method_name="m", args=(x,), kwargs={}, type_expr=None)
    c = graph.call_module(module_name="c", args=(w,), kwargs={}, type_expr=None)
    n = graph.create_node(
        op="call_function", target=len, args=(), kwargs={}, name="n", type_expr=None
    )
    graph.output(result=(f, m, c), type_expr=None)
    n.prepend(x=c)
    n.append(x=m)
    n.insert_arg(idx=0, arg=x)
    n.update_arg(idx=0, arg=w)
    n.update_kwarg(key="k", arg=x)
    n.replace_input_with(old_input=w, new_input=x)
    assert n.replace_all_uses_with(replace_with=x, delete_user_cb=None, propagate_meta=False) == []
    n._rename(candidate="other")
    copied = graph.node_copy(node=n, arg_transform=None)
    assert graph.find_nodes(op="call_function", target=len, sort=True) == [f, n, copied]
    graph.erase_node(to_erase=copied)
    other = cfx.Graph()
    value, output = other.graph_copy(g=graph, val_map={}, return_output_node=True)
    assert [v.name for v in value] == ["f", "m", "c"] and output.op == "output"
    assert cfx.map_arg(a=(x,), fn=str) == ("x",) and cfx.map_aggregate(a=(1,), fn=str) == ("1",)
