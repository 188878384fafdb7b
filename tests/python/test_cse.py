"""CSEPass: what it merges, beside torch.fx's; and that the merged program computes the same."""
import operator
import random

import pytest

torch = pytest.importorskip("torch")
import torch.fx  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.fx.passes.dialect.common import cse_pass as theirs  # noqa: E402
from torch.fx.passes.infra import pass_base as their_base  # noqa: E402

import cfx  # noqa: E402
from cfx.passes.dialect.common import cse_pass as ours  # noqa: E402
from cfx.passes.infra import pass_base  # noqa: E402

aten = torch.ops.aten
BOTH = [(cfx, ours), (torch.fx, theirs)]


class Root(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(2))
        self.relu = torch.nn.ReLU()
        self.in_place = torch.nn.ReLU(inplace=True)
        self.dropout = torch.nn.Dropout()
        self.bn = torch.nn.BatchNorm1d(2)
        self.pool = torch.nn.Sequential(torch.nn.FractionalMaxPool2d(2, 1))


def module(fx, build, root=None):
    """`build(g, x, y)` makes the nodes and says which ones are returned."""
    g = fx.Graph()
    results = build(g, g.placeholder("x"), g.placeholder("y"))
    g.output(tuple(results))
    return fx.GraphModule(root or Root(), g)


def shown(gm):
    return [(n.op, n.name, str(n.args), str(n.kwargs), n.type) for n in gm.graph.nodes]


def twice(target, *args, **kwargs):
    return lambda g, x, y: [
        g.call_function(target, *_fill(args, kwargs, x, y)),
        g.call_function(target, *_fill(args, kwargs, x, y)),
    ]


def _fill(args, kwargs, x, y):
    names = {"x": x, "y": y}
    put = lambda a: [put(i) for i in a] if isinstance(a, list) else names.get(a, a)  # noqa: E731
    keep = lambda a: put(a) if isinstance(a, (str, list)) else a  # noqa: E731
    return tuple(map(keep, args)), {k: keep(v) for k, v in kwargs.items()}


def chain(g, x, y):
    a, b = (g.call_function(torch.neg, (g.call_function(torch.add, (x, 1)),)) for _ in "ab")
    return [b, a, g.call_method("sum", (b,)), g.call_method("sum", (a,))]


def named(g, x, y):
    g.create_node("call_function", torch.add, (x, 1), {}, name="first", type_expr=int)
    b = g.create_node("call_function", torch.add, (x, 1), {}, name="second", type_expr=float)
    return [g.call_function(torch.neg, (b,)), b]


SAME = {
    "add": (twice(torch.add, "x", 1), None),
    "one": (lambda g, x, y: [g.call_function(torch.add, (x, 1))], None),
    "chain": (chain, None),
    "named": (named, None),
    "dead": (lambda g, x, y: [y] if twice(torch.add, x, 1)(g, x, y) else [], None),
    "swapped": (lambda g, x, y: [g.call_method("add", p) for p in ((x, y), (y, x))], None),
    "keyword order": (
        lambda g, x, y: [
            g.call_function(torch.add, (), {"input": x, "other": y}),
            g.call_function(torch.add, (), {"other": y, "input": x}),
        ],
        None,
    ),
    "by name": (
        lambda g, x, y: [
            g.call_function(torch.add, (x, y)), g.call_function(torch.add, (x,), {"other": y})
        ],
        None,
    ),
    "list and tuple": (
        lambda g, x, y: [g.call_function(torch.sum, (x, d)) for d in ([0], (0,))], None
    ),
    "list": (twice(torch.cat, ["x", "y"]), None),
    "nested": (lambda g, x, y: [
        g.call_function(torch.cat, (a,)) for a in ([x, [y]], [[x], y], [x, [y]])
    ], None),
    "dict": (lambda g, x, y: [
        g.call_function(dict, ({k: x},)) for k in ("a", "a", "b")
    ], None),
    "dtype": (twice(torch.sum, "x", dtype=torch.float32), None),
    "ellipsis": (twice(operator.getitem, "x", ...), None),
    "None": (twice(operator.getitem, "x", None), None),
    "device": (twice(torch.zeros, 2, device=torch.device("cpu")), None),
    "nan": (lambda g, x, y: [
        g.call_function(torch.add, (x, float("nan"))) for _ in "ab"
    ], None),
    "get_attr": (lambda g, x, y: [g.get_attr("w"), g.get_attr("w")], None),
    "module": (lambda g, x, y: [g.call_module("relu", (x,)) for _ in "ab"], None),
    "method": (lambda g, x, y: [g.call_method("sum", (x,)) for _ in "ab"], None),
    "overloads": (lambda g, x, y: [
        g.call_function(f, (x, y)) for f in (aten.add.Tensor, aten.add, aten.add.Tensor)
    ], None),
    "banned packet": (twice(aten.add.Tensor, "x", 1), {aten.add}),
    "banned list": (twice(aten.add.Tensor, "x", 1), [aten.add]),
    "banned overload": (twice(aten.add.Tensor, "x", 1), {aten.add.Tensor}),
    "banned function": (twice(torch.add, "x", 1), {torch.add}),
    "banned method": (lambda g, x, y: [g.call_method("sum", (x,)) for _ in "ab"], {"sum"}),
    "banned module": (lambda g, x, y: [g.call_module("relu", (x,)) for _ in "ab"], {"relu"}),
    "banned random": (twice(aten.rand.default, [2]), ours.get_CSE_banned_ops()),
    "banned in place": (twice(aten.add_.Tensor, "x", 1), ours.get_CSE_banned_ops()),
}


@pytest.mark.parametrize("case", SAME)
def test_as_torch_fx(case):
    build, banned = SAME[case]
    results = []
    for fx, cse in BOTH:
        gm = module(fx, build)
        before = shown(gm)
        result = cse.CSEPass(banned)(gm)
        assert shown(gm) == before
        assert (result.graph_module is gm) is not result.modified
        assert isinstance(result.graph_module, fx.GraphModule)
        result.graph_module.graph.lint()
        results.append((result.modified, shown(result.graph_module), result.graph_module.code))
    assert results[0] == results[1]


def test_names_that_are_gone_are_free_again():
    names = []
    for fx, cse in BOTH:
        graph = cse.CSEPass()(module(fx, twice(torch.add, "x", 1))).graph_module.graph
        with graph.inserting_before(graph.output_node()):
            names.append(graph.call_function(torch.add, (1, 2)).name)
    assert names[0] == names[1] == "add_1"


def test_metadata_and_attributes():
    for fx, cse in BOTH:
        gm = module(fx, lambda g, x, y: [g.call_module("relu", (x,)) for _ in "ab"])
        first, second = gm.graph.find_nodes(op="call_module", target="relu")
        first.meta["tag"], second.meta["tag"] = ["first"], ["second"]
        gm.unused = 1
        result = cse.CSEPass()(gm).graph_module
        (node,) = result.graph.find_nodes(op="call_module", target="relu")
        assert node.meta["tag"] is first.meta["tag"] and node.meta is not first.meta
        assert result.relu is gm.relu and not hasattr(result, "unused")
        assert type(result).__name__ == "GraphModule" and result.meta == {}


def test_banned_operators():
    assert ours.get_CSE_banned_ops() == theirs.get_CSE_banned_ops()
    assert ours.rand_ops == theirs.rand_ops and ours.inplace_ops == theirs.inplace_ops
    assert ours.get_CSE_banned_ops() is not ours.get_CSE_banned_ops()
    for _, cse in BOTH:
        assert cse.CSEPass().banned_ops == set()
        banned = {aten.add}
        assert cse.CSEPass(banned).banned_ops is banned
        assert cse.CSEPass(banned_ops=banned).banned_ops is banned


# ---- what torch.fx merges, and cfx does not: docs/differences.md ----

APART = {
    "float": lambda g, x, y: [g.call_function(torch.add, (x, one)) for one in (1, 1.0, True)],
    "zero": lambda g, x, y: [g.call_function(torch.add, (x, zero)) for zero in (0.0, -0.0)],
    "random": twice(torch.rand, 2),
    "random overload": twice(aten.rand.default, [2]),
    "dropout": twice(torch.nn.functional.dropout, "x"),
    "in-place method": lambda g, x, y: [g.call_method("add_", (x, 1)) for _ in "ab"],
    "in-place operator": twice(operator.iadd, "x", 1),
    "setitem": twice(operator.setitem, "x", 0, 1),
    "in-place overload": twice(aten.clamp_.default, "x", 0),
    "out": twice(aten.add.out, "x", 1, out="y"),
    "inplace": twice(torch.nn.functional.relu, "x", inplace=True),
    "across": lambda g, x, y: [
        g.call_method("sum", (x,)), g.call_method("zero_", (x,)), g.call_method("sum", (x,))
    ],
    "dropout module": lambda g, x, y: [g.call_module("dropout", (x,)) for _ in "ab"],
    "norm module": lambda g, x, y: [g.call_module("bn", (x,)) for _ in "ab"],
    "in-place module": lambda g, x, y: [g.call_module("in_place", (x,)) for _ in "ab"],
    "random inside": lambda g, x, y: [g.call_module("pool", (x,)) for _ in "ab"],
}


@pytest.mark.parametrize("case", APART)
def test_calls_that_are_not_the_same(case):
    merged = [cse.CSEPass()(module(fx, APART[case])).modified for fx, cse in BOTH]
    assert merged == [False, True]


def test_modules_that_do_not_train_have_no_state():
    for name in ("dropout", "bn"):
        gm = module(cfx, APART[f"{'norm' if name == 'bn' else name} module"], Root().eval())
        assert ours.CSEPass()(gm).modified


LONE = {
    torch.nn.modules.dropout._DropoutNd: False, torch.nn.modules.batchnorm._NormBase: False,
    torch.nn.RReLU: False, torch.nn.RNNBase: False, torch.nn.MultiheadAttention: False,
    torch.nn.FractionalMaxPool2d: True, torch.nn.FractionalMaxPool3d: True,
}  # fmt: skip


@pytest.mark.parametrize("training", [False, True])
def test_modules_of_derived_classes(training):
    """Every class of torch.nn and one of the user's that derives from it; those that draw numbers
    or keep a state are not merged: some always, others while they train."""
    classes = {c for c in vars(torch.nn).values() if isinstance(c, type)} | set(LONE)
    classes -= {torch.nn.ParameterList, torch.nn.ParameterDict, torch.nn.Container}
    for base in {c for c in classes if issubclass(c, torch.nn.Module)}:
        lone = any(issubclass(base, c) and (training or LONE[c]) for c in LONE)
        for cls in (base, type("Derived", (base,), {})):
            root = torch.nn.Module()
            root.relu = cls.__new__(cls)
            torch.nn.Module.__init__(root.relu)
            root.relu.training = training
            gm = module(cfx, lambda g, x, y: [g.call_module("relu", (x,)) for _ in "ab"], root)
            assert ours.CSEPass()(gm).modified is not lone, cls.__mro__


def test_slices_are_values():
    slices = twice(operator.getitem, "x", slice(0, 1))
    with pytest.raises(TypeError, match="unhashable"):
        theirs.CSEPass()(module(torch.fx, slices))
    assert ours.CSEPass()(module(cfx, slices)).modified


def test_functions_with_effects_of_ones_own():
    def log(x):
        return x

    gm = module(cfx, twice(log, "x"))
    assert ours.CSEPass()(gm).modified
    cfx.node.has_side_effect(log)
    try:
        assert not ours.CSEPass()(module(cfx, twice(log, "x"))).modified
    finally:
        cfx.node._side_effectful_functions.discard(log)


def test_the_code_generator_is_kept():
    gm = cfx.symbolic_trace(lambda d: (d["a"] + 1) * (d["a"] + 1), {"d": {"a": cfx.PH}})
    result = ours.CSEPass()(gm)
    assert result.modified
    assert result.graph_module({"a": torch.ones(2)}).tolist() == [4, 4]


def test_regions():
    branch = cfx.Graph()
    a = branch.placeholder("a")
    twins = [branch.call_module("relu", (a,)) for _ in "ab"]
    branch.output(branch.call_function(torch.add, tuple(twins)))
    gm = module(cfx, lambda g, x, y: [g.call_function(cfx.ops.cond, (y, branch, branch, (x,)))])
    size = len(branch.nodes)
    result = ours.CSEPass()(gm)
    (cond,) = result.graph_module.graph.find_nodes(op="call_function", target=cfx.ops.cond)
    assert result.modified and len(branch.nodes) == size
    assert [n.name for n in cond.args[1].nodes] == ["a", "relu", "add", "output"]


# ---- modules of torch.fx ----


def test_what_make_fx_gives():
    def f(x):
        a = x.cos() + x.cos()
        return a.sin() * a.sin() + torch.rand_like(x) * 0 + torch.rand_like(x) * 0

    x = torch.randn(3)
    traced = make_fx(f)(x)
    banned = ours.get_CSE_banned_ops()
    result, expected = ours.CSEPass(banned)(traced), theirs.CSEPass(banned)(traced)
    assert isinstance(result.graph_module, cfx.GraphModule) and result.modified
    assert result.graph_module.code == expected.graph_module.code
    assert torch.equal(result.graph_module(x), f(x))
    nothing = ours.CSEPass()(make_fx(torch.sin)(x))
    assert isinstance(nothing.graph_module, cfx.GraphModule) and not nothing.modified


# ---- the base class ----


def test_pass_base():
    for fx, base in ((cfx, pass_base), (torch.fx, their_base)):
        log = []

        class Pass(base.PassBase):
            def requires(self, gm):
                log.append("requires")

            def call(self, gm):
                log.append("call")
                return base.PassResult(gm, False)

            def ensures(self, gm):
                log.append("ensures")

        gm = fx.symbolic_trace(torch.nn.ReLU())
        graph_module, modified = Pass()(gm)
        assert graph_module is gm and modified is False
        assert log == ["requires", "call", "ensures"]
        result = base.PassResult(graph_module=gm, modified=True)
        assert result._fields == ("graph_module", "modified") and result == (gm, True)
        with pytest.raises(TypeError, match="abstract"):
            base.PassBase()
        assert base.__all__ == ["PassResult", "PassBase"]


# ---- writes, and what they have nothing to do with ----


class InPlace(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)
        self.act = torch.nn.ReLU(inplace=True)

    def forward(self, x):
        a = torch.exp(x)
        b = self.act(self.fc(x))  # writes to the result of fc alone
        return a + torch.exp(x), b + self.fc(x)


def test_an_in_place_module_writes_to_its_input_alone():
    gm = cfx.symbolic_trace(InPlace())
    merged = ours.CSEPass()(gm).graph_module
    assert [n.name for n in merged.graph.nodes].count("exp_1") == 0
    assert [n.name for n in merged.graph.nodes].count("fc_1") == 1
    x = torch.rand(3, 2)
    assert all(map(torch.equal, merged(x), gm(x)))


# ---- random programs, run before and after ----


def random_program(rng):
    """Calls with few operands, so that many are the same; some write, some are views of others."""
    g = cfx.Graph()
    values = [g.placeholder("x"), g.placeholder("y")]
    f, m = g.call_function, g.call_method
    makers = [
        lambda a, b: f(torch.add, (a, b)),
        lambda a, b: f(operator.mul, (a, rng.choice([2, 2.0]))),
        lambda a, b: m("view", (a, 2, 2)),
        lambda a, b: m("t", (a,)),
        lambda a, b: f(torch.zeros_like, (a,)),
        lambda a, b: m("clone", (a,)),
        lambda a, b: f(torch.rand, (2, 2)),
        lambda a, b: f(aten.sin.default, (a,)),
    ]
    writers = [
        lambda a, b: m("add_", (a, 1)),
        lambda a, b: f(operator.iadd, (a, 1.5)),
        lambda a, b: f(aten.mul_.Tensor, (a, 3)),
        lambda a, b: f(torch.nn.functional.relu, (a,), {"inplace": True}),
        lambda a, b: f(operator.setitem, (a, 0, 5)),
    ]
    for _ in range(rng.randrange(5, 30)):
        rare = rng.random() < 0.06
        make = rng.choice(writers if rare else makers)
        made = make(rng.choice(values[:4]), rng.choice(values[:3]))
        if made.target is not operator.setitem:
            values.append(made)
    g.output(tuple(values))
    return cfx.GraphModule(torch.nn.Module(), g)


def outcome(gm):
    torch.manual_seed(0)
    inputs = torch.arange(4.0).view(2, 2), torch.ones(2, 2)
    return [t.tolist() for t in gm(*inputs) + inputs]


def test_random_programs_compute_the_same():
    merged = 0
    for seed in range(200):
        gm = random_program(random.Random(seed))
        result = ours.CSEPass()(gm)
        merged += len(gm.graph.nodes) - len(result.graph_module.graph.nodes)
        assert str(outcome(result.graph_module)) == str(outcome(gm)), f"seed {seed}\n{gm.code}"
    assert merged > 200


def test_a_module_in_place_keeps_what_is_before_and_after_apart():
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.elu = torch.nn.ELU(inplace=True)

        def forward(self, x):
            return self.elu(x.neg()), x.neg()

    gm = cfx.symbolic_trace(Twice())
    want = [t.tolist() for t in gm(torch.ones(3))]
    result = ours.CSEPass()(gm).graph_module
    assert [t.tolist() for t in result(torch.ones(3))] == want
    gm.graph._pass("cse", gm)
    gm.recompile()
    assert [t.tolist() for t in gm(torch.ones(3))] == want
