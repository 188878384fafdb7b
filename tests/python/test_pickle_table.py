"""What survives pickle, copy.deepcopy and copy.copy of a GraphModule: torch.fx beside cfx.

`pytest -s` prints the table.
"""
import copy
import operator
import pickle

import pytest

torch = pytest.importorskip("torch")
import torch.fx  # noqa: E402
from torch import nn  # noqa: E402

import cfx  # noqa: E402
import cfx.graph_module  # noqa: E402


class TorchTracer(torch.fx.Tracer):
    pass


class CfxTracer(cfx.Tracer):
    pass


class TorchCodeGen(torch.fx.graph.CodeGen):
    mark = 1


class CfxCodeGen(cfx.graph.CodeGen):
    mark = 1


class CfxModule(cfx.GraphModule):
    pass


class TorchModule(torch.fx.GraphModule):
    pass


def hook(*args):
    return None


LIBS = {
    "torch.fx": (torch.fx, TorchTracer, TorchCodeGen, TorchModule),
    "cfx": (cfx, CfxTracer, CfxCodeGen, CfxModule),
}


def build(name):
    lib, tracer, codegen, module = LIBS[name]
    g = lib.Graph()
    x = g.placeholder("x", type_expr=torch.Tensor)
    y = g.call_module("lin", (x,))
    z = g.call_function(operator.iadd, (y, 1))
    dead = g.call_function(torch.neg, (z,))
    out = g.output(z)
    z.name = "renamed"
    z.meta.update(key=[1], stack_trace='  File "m.py", line 1, in f\n    y += 1\n')
    z.type = int
    dead.tag = "mine"
    assert out.users == {}
    g._tracer_cls, g._tracer_extras = tracer, {}
    g.set_codegen(codegen())
    gm = module({"lin": nn.Linear(2, 2)}, g, "Name")
    gm.attribute = [1, 2]
    gm.add_submodule("unused", nn.ReLU())
    gm.register_buffer("spare", torch.ones(1))
    gm.meta["key"] = "value"
    gm.eval()
    gm._register_create_node_hook(hook)
    gm._register_state_dict_hook(hook)
    gm.register_forward_hook(hook)
    return gm


def node(gm, target):
    return next((n for n in gm.graph.nodes if n.target in target), None)


def asks(name):
    """Each row of the table: whether it holds for a copy."""
    lib, tracer, codegen, module = LIBS[name]
    adds = (operator.iadd, operator.add)
    return {
        "names of nodes": lambda gm: node(gm, adds).name == "renamed",
        "in-place operators": lambda gm: node(gm, adds).target is operator.iadd,
        "meta of nodes": lambda gm: node(gm, adds).meta.get("key") == [1],
        "stack traces": lambda gm: "m.py" in (node(gm, adds).stack_trace or ""),
        "types of nodes": lambda gm: node(gm, adds).type is int,
        "types of inputs": lambda gm: node(gm, ("x",)).type is torch.Tensor,
        "attributes of nodes": lambda gm: getattr(node(gm, (torch.neg,)), "tag", None) == "mine",
        "unused nodes": lambda gm: node(gm, (torch.neg,)) is not None,
        "class of the tracer": lambda gm: gm._tracer_cls is tracer is gm.graph._tracer_cls,
        "codegen": lambda gm: type(gm.graph._codegen) is codegen,
        "base class": lambda gm: isinstance(gm, module),
        "name of the class": lambda gm: type(gm).__name__ == "Name",
        "plain attributes": lambda gm: getattr(gm, "attribute", None) == [1, 2],
        "unused sub-modules": lambda gm: hasattr(gm, "unused"),
        "unused buffers": lambda gm: hasattr(gm, "spare"),
        "training": lambda gm: not gm.training,
        "meta": lambda gm: gm.meta == {"key": "value"},
        "hooks on nodes": lambda gm: gm._create_node_hooks == [hook],
        "hooks on state": lambda gm: len(gm._state_dict_hooks) == 1,
        "hooks on calls": lambda gm: len(gm._forward_hooks) == 1,
        "owner of the graph": lambda gm: gm.graph.owning_module is gm,
    }


WAYS = {
    "pickle": lambda gm: pickle.loads(pickle.dumps(gm)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}

# Row: (torch.fx, cfx), each for pickle, deepcopy, copy.
TABLE = {
    "names of nodes": ("-++", "+++"),
    "in-place operators": ("-++", "+++"),
    "meta of nodes": ("-++", "+++"),
    "stack traces": ("-++", "+++"),
    "types of nodes": ("-++", "+++"),
    "types of inputs": ("+++", "+++"),
    "attributes of nodes": ("--+", "+-+"),
    "unused nodes": ("+++", "+++"),
    "class of the tracer": ("+++", "+++"),
    "codegen": ("-++", "+++"),
    "base class": ("-+-", "+++"),
    "name of the class": ("---", "+++"),
    "plain attributes": ("+--", "++-"),
    "unused sub-modules": ("++-", "++-"),
    "unused buffers": ("++-", "++-"),
    "training": ("+++", "+++"),
    "meta": ("-++", "+++"),
    "hooks on nodes": ("-+-", "-+-"),
    "hooks on state": ("-+-", "-+-"),
    "hooks on calls": ("---", "---"),
    "owner of the graph": ("+++", "+++"),
}


def column(name, row):
    signs = []
    for make in WAYS.values():
        signs.append("+" if asks(name)[row](make(build(name))) else "-")
    return "".join(signs)


def test_table():
    found = {row: tuple(column(name, row) for name in LIBS) for row in TABLE}
    print(f"\n{'':22}{'torch.fx':12}cfx        (pickle, deepcopy, copy)")
    for row, (theirs, ours) in found.items():
        print(f"{row:22}{theirs:12}{ours}")
    assert found == TABLE
    assert set(asks("cfx")) == set(TABLE)


@pytest.mark.parametrize("way", WAYS)
def test_copies_run(way):
    gm = build("cfx")
    x = torch.ones(1, 2)
    copied = WAYS[way](gm)
    assert torch.equal(copied(x), gm(x)) and copied.code == gm.code
    assert type(copied) is not type(gm) and type(copied).__mro__[1:] == type(gm).__mro__[1:]
    shared = way == "copy"
    assert (copied.lin is gm.lin) == (copied.graph is gm.graph) == shared
    assert (copied.meta is gm.meta) == shared
    assert gm.graph.owning_module is (copied if shared else gm)


@pytest.mark.parametrize("way", ["pickle", "deepcopy"])
def test_a_long_chain(way):
    g = cfx.Graph()
    x = g.placeholder("x")
    for _ in range(20_000):
        x = g.call_function(operator.add, (x, 1))
    g.output(x)
    copied = WAYS[way](cfx.GraphModule({}, g))
    assert len(copied.graph.nodes) == 20_002 and list(copied.graph.nodes)[2].args[1] == 1


def test_an_edit_without_recompile_is_in_the_copy():
    gm = build("cfx")
    node(gm, (operator.iadd,)).target = operator.sub
    assert " - " not in gm.code
    for way in ("pickle", "deepcopy"):
        assert " - " in WAYS[way](gm).code


def test_pickled_from_the_graph():
    """The module is then restored before the graph that it belongs to is complete."""
    gm = build("cfx")
    gm.graph.set_codegen(cfx.graph._BoxedCodeGen())
    gm.recompile()
    g = pickle.loads(pickle.dumps(gm.graph))
    assert g.owning_module.graph is g and g.owning_module.code == gm.code
    x = torch.ones(1, 2)
    assert torch.equal(g.owning_module([x]), gm([x]))


def test_local_classes_are_left_behind():
    class Local(cfx.Tracer):
        pass

    gm = build("cfx")
    gm.graph._tracer_cls = Local
    gm = cfx.GraphModule(gm, gm.graph)
    assert pickle.loads(pickle.dumps(gm)).graph._tracer_cls is None


def test_nested_and_shared():
    inner = build("cfx")
    g = cfx.Graph()
    x = g.placeholder("x")
    g.output(g.call_module("b.inner", (g.call_module("a", (x,)),)))
    gm = cfx.GraphModule({"a": inner, "b.inner": inner}, g)
    for way in ("pickle", "deepcopy"):
        copied = WAYS[way](gm)
        assert copied.a is copied.b.inner and copied.a is not inner
        assert copied.a.graph.owning_module is copied.a


@pytest.mark.parametrize("name", LIBS)
def test_preserved_attributes(name):
    gm = build(name)
    gm.meta["_user_preserved_attributes"] = {"foo": 3}
    assert copy.deepcopy(gm).foo == 3


@pytest.mark.parametrize("name", LIBS)
def test_deepcopy_init(name):
    lib = LIBS[name][0]

    class Own(lib.GraphModule):
        def __init__(self, root, graph):
            super().__init__(root, graph)
            self.made = True

        def _deepcopy_init(self):
            return Own.__init__

    gm = Own({"lin": nn.Linear(2, 2)}, build(name).graph)
    assert copy.deepcopy(gm).made


def test_own_deepcopy():
    """Modules with a __deepcopy__ of their own copy the dict of another."""

    class Own(cfx.GraphModule):
        def __deepcopy__(self, memo):
            root = nn.Module()
            root.__dict__ = copy.deepcopy(self.__dict__, memo)
            return Own(root, copy.deepcopy(self.graph))

    gm = Own({"lin": nn.Linear(2, 2)}, build("cfx").graph)
    copied = copy.deepcopy(gm)
    assert copied.lin is not gm.lin and torch.equal(copied(torch.ones(1, 2)), gm(torch.ones(1, 2)))


def test_code_that_torch_fx_has_pickled():
    """The other way round: code and attributes, which are traced again."""
    source = build("torch.fx")
    source.graph.set_codegen(torch.fx.graph.CodeGen())
    _, (body, imports) = source.__reduce__()[:2]
    body = {**body, "_tracer_cls": CfxTracer, "_graphmodule_cls_name": "Old"}
    imports = imports.replace("torch.fx._pytree", "cfx._pytree")
    gm = cfx.graph_module.reduce_graph_module(dict(body), imports)
    assert type(gm).__name__ == "Old" and gm._tracer_cls is CfxTracer
    assert gm.attribute == [1, 2] and gm.code == pickle.loads(pickle.dumps(source)).code
    old = {**body, "code": body["_code"]}
    del old["_code"]
    assert cfx.graph_module.reduce_graph_module(old, imports).code == gm.code
    with pytest.raises(NameError):
        cfx.graph_module.reduce_graph_module(dict(body), "")


def test_torchbind_objects_can_be_shared():
    class Refuses(torch.nn.Module):
        def __deepcopy__(self, memo):
            raise AssertionError("copied")

    token = cfx.graph_module._share_torchbind_and_process_group
    assert token.get() is False
    with cfx.graph_module._share_torchbind_and_process_group_on_deepcopy():
        assert token.get() is True
        assert copy.deepcopy(build("cfx")).attribute == [1, 2]
    assert token.get() is False
