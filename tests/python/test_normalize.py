"""cfx.experimental.normalize and schema_type_annotation, against torch.fx's."""
import operator
import warnings

import cfx
import pytest

torch = pytest.importorskip("torch")
import torch.fx
import torch.fx.experimental.normalize
import torch.fx.experimental.schema_type_annotation
from torch.nn import functional as F

import cfx.experimental.normalize as normalize
from cfx.experimental.schema_type_annotation import AnnotateTypesWithSchema

torch_normalize = torch.fx.experimental.normalize
TorchAnnotate = torch.fx.experimental.schema_type_annotation.AnnotateTypesWithSchema


def annotated(x, y=3, *, z=4) -> int:
    return x


class Own(torch.nn.Module):
    def forward(self, x) -> torch.Tensor:
        return x


class Derived(torch.nn.Linear):
    pass


class Holder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ints, self.number, self.ratio, self.none, self.word = [1, 2], 3, 1.5, None, "a"
        self.pair, self.table = (torch.ones(1), 2), {"a": 1}
        self.own, self.derived, self.lin = Own(), Derived(2, 2), torch.nn.Linear(2, 2)
        self.bn, self.mha = torch.nn.BatchNorm1d(2), torch.nn.MultiheadAttention(2, 1)
        self.register_buffer("stats", torch.ones(2))
        self.inner = torch.nn.Module()
        self.inner.w = torch.nn.Parameter(torch.ones(2))


PATHS = "ints number ratio none word pair table own stats inner.w".split()
FUNCTIONS = (annotated, torch.relu, F.relu, F.gelu, F.softmax, F.dropout, torch.nn.init.zeros_)


def module(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    for path in PATHS:
        graph.create_node("get_attr", path)
    for function in FUNCTIONS:
        graph.call_function(function, (x,))
    for path in ("own", "derived", "lin", "bn"):
        graph.call_module(path, (x,))
    method = graph.call_method("relu", (x,))
    method.type, method.meta["mine"] = int, [1]
    graph.output([method, x, graph.call_function(torch.add, (x, 1))])
    return fx.GraphModule(Holder(), graph)


def rows(gm):
    return [(n.op, n.name, n.target, str(n.args), str(n.kwargs), n.type, n.meta.get("mine"))
            for n in gm.graph.nodes]  # fmt: skip


@pytest.mark.parametrize("make", [
    lambda fx, n, a: n.NormalizeArgs(module(fx)),
    lambda fx, n, a: n.NormalizeArgs(module(fx), normalize_to_only_use_kwargs=False),
    lambda fx, n, a: n.NormalizeOperators(module(fx)),
    lambda fx, n, a: n.NormalizeOperators(module(fx), False, False, False),
    lambda fx, n, a: a(module(fx)),
    lambda fx, n, a: a(module(fx), annotate_functionals=False),
    lambda fx, n, a: a(module(fx), annotate_modules=False),
    lambda fx, n, a: a(module(fx), annotate_get_attrs=False),
])  # fmt: skip
def test_same_as_torch(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = make(torch.fx, torch_normalize, TorchAnnotate).transform()
        got = make(cfx, normalize, AnnotateTypesWithSchema).transform()
    assert rows(got) == rows(want)


def test_types_choose_an_overload():
    class Sum(torch.nn.Module):
        def forward(self, x, y):
            return torch.add(x, y) + torch.max(x, 0)[0]

    gm = cfx.symbolic_trace(Sum())
    for node in gm.graph.find_nodes(op="placeholder"):
        node.meta["type"] = torch.Tensor
    new = normalize.NormalizeArgs(gm).transform()
    add, max_ = (new.graph.find_nodes(op="call_function", target=f)[0] for f in
                 (torch.add, torch.max))  # fmt: skip
    assert (add.args, [*add.kwargs]) == ((), ["input", "other", "alpha"])
    assert (max_.args, [*max_.kwargs]) == ((), ["input", "dim", "keepdim"])
    args = torch.randn(3, 3), torch.randn(3, 3)
    assert torch.equal(new(*args), gm(*args))


def test_operators_keep_what_a_sign_cannot_say():
    """torch.fx drops `alpha` and `rounding_mode` here."""

    class M(torch.nn.Module):
        def forward(self, x, y):
            return torch.add(x, y), torch.add(x, y, alpha=2), torch.div(x, y, rounding_mode="floor")

    gm = cfx.symbolic_trace(M())
    new = normalize.NormalizeOperators(gm).transform()
    targets = [n.target for n in new.graph.nodes if n.op == "call_function"]
    assert targets == [operator.add, torch.add, torch.div]
    args = torch.randn(3), torch.randn(3)
    assert all(map(torch.equal, new(*args), gm(*args)))


def test_subclasses_see_the_types():
    seen = []

    class Spy(normalize.NormalizeArgs):
        def call_function(self, target, args, kwargs, arg_types=None, kwarg_types=None):
            seen.append((target, arg_types, kwarg_types))
            return super().call_function(target, args, kwargs, arg_types, kwarg_types)

    graph = cfx.Graph()
    x = graph.placeholder("x")
    x.meta["type"] = torch.Tensor
    graph.output(graph.call_function(torch.add, (x, 2), {"alpha": 3}))
    Spy(cfx.GraphModule(torch.nn.Module(), graph)).transform()
    assert seen == [(torch.add, (torch.Tensor, int), {"alpha": int})]
