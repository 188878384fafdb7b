"""cfx.experimental.optimization: weights and batch-norms in one, dropout taken out, oneDNN layouts;
beside what torch.fx does."""
import copy
import itertools
import random

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.fx.experimental import optimization as theirs
from torch.nn.utils import parametrize

import cfx as fx
from cfx.experimental import optimization
from cfx.passes import run


def ready(model):
    """In eval mode, with statistics and weights that matter."""
    for m in model.modules():
        if isinstance(m, nn.modules.batchnorm._BatchNorm):
            if m.running_mean is not None:
                m.running_mean.normal_()
                m.running_var.uniform_(0.5, 2)
            if m.affine:
                nn.init.normal_(m.weight)
                nn.init.normal_(m.bias)
    return model.eval()


def norms(module):
    kinds = (nn.modules.batchnorm._BatchNorm,)
    functions = [n for n in module.graph.nodes if "batch_norm" in str(n.target)]
    return len(functions) + sum(isinstance(m, kinds) for m in module.modules())


def check_fused(model, x, left=0):
    model = ready(model)
    want = model(x)
    fused = optimization.fuse(model)
    assert norms(fused) == left
    assert fused.graph.verify() == []
    torch.testing.assert_close(fused(x), want, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(model(x), want, rtol=0, atol=0)  # the model is as it was
    return fused


# ---- fuse --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
def test_convolutions(dims, kind):
    layer, norm = getattr(nn, f"{kind}{dims}d"), getattr(nn, f"BatchNorm{dims}d")
    x = torch.randn(2, 4, *[5] * dims)
    for bias, groups, affine in itertools.product([True, False], [1, 2], [True, False]):
        conv = layer(4, 6, 3, bias=bias, groups=groups, stride=2)
        check_fused(nn.Sequential(conv, norm(6, affine=affine)), x)


def test_linear_and_chains():
    for affine in (True, False):
        check_fused(nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6, affine=affine)),
                    torch.randn(3, 4))  # fmt: skip
    twice = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), nn.BatchNorm2d(3), nn.ReLU())
    check_fused(twice, torch.randn(2, 3, 4, 4))
    check_fused(nn.Sequential(nn.Conv2d(3, 3, 1, padding=1, padding_mode="reflect"),
                              nn.BatchNorm2d(3)), torch.randn(2, 3, 4, 4))  # fmt: skip


class Functional(nn.Module):
    def __init__(self, bias=True, norm="F", layer="F"):
        super().__init__()
        self.w = nn.Parameter(torch.randn(6, 4, 3, 3))
        self.b = nn.Parameter(torch.randn(6)) if bias else None
        self.conv, self.bn = nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6)
        self.norm, self.layer = norm, layer

    def forward(self, x):
        y = self.conv(x) if self.layer == "nn" else F.conv2d(x, self.w, self.b, padding=1)
        bn = self.bn
        if self.norm == "torch":
            args = (bn.weight, bn.bias, bn.running_mean, bn.running_var)
            y = torch.batch_norm(y, *args, False, 0.1, 1e-5, True)
        elif self.norm == "F":
            y = F.batch_norm(y, bn.running_mean, bn.running_var, bias=bn.bias, eps=0.01)
        else:
            y = bn(y)
        return F.relu(y, inplace=True)


@pytest.mark.parametrize("norm", ["F", "torch", "nn"])
@pytest.mark.parametrize("layer", ["F", "nn"])
def test_functions(layer, norm):
    for bias in (True, False):
        check_fused(Functional(bias, norm, layer), torch.randn(2, 4, 5, 5))


def test_linear_functions():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.bn = nn.Linear(4, 6), nn.BatchNorm1d(6)

        def forward(self, x):
            y = F.linear(x, self.fc.weight, bias=self.fc.bias)
            return F.batch_norm(y, self.bn.running_mean, self.bn.running_var, training=False)

    check_fused(Net(), torch.randn(3, 4))


@pytest.mark.parametrize("ours", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("norm", [torch.float32, torch.bfloat16, torch.float64])
def test_weights_are_those_of_torch(ours, norm):
    for bias in (True, False):
        model = ready(nn.Sequential(nn.Conv2d(3, 5, 3, bias=bias, dtype=ours),
                                    nn.BatchNorm2d(5, dtype=norm)))  # fmt: skip
        new, old = optimization.fuse(model), theirs.fuse(model)
        got, want = new.get_submodule("0"), old.get_submodule("0")
        for name in ("weight", "bias"):
            mine, other = getattr(got, name), getattr(want, name)
            assert mine.dtype == other.dtype and isinstance(mine, nn.Parameter)
            assert mine.requires_grad == other.requires_grad and mine.is_leaf
            torch.testing.assert_close(mine, other)


class Pair(nn.Module):
    def __init__(self, conv=None, bn=None):
        super().__init__()
        self.conv, self.bn = conv or nn.Conv2d(3, 3, 1), bn or nn.BatchNorm2d(3)
        self.other = nn.Conv2d(3, 3, 1)

    def forward(self, x):
        return self.bn(self.conv(x))


def test_what_torch_fx_fuses():
    for model in (nn.Sequential(nn.Conv1d(3, 4, 1), nn.BatchNorm1d(4)), Pair(),
                  nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))):  # fmt: skip
        model = ready(model)
        assert str(optimization.fuse(model).graph) == str(theirs.fuse(model).graph)


def cases():
    """Models of which a pair has to stay, by what is in the way."""

    class Twice(Pair):
        def forward(self, x):
            return self.bn(self.conv(self.conv(x)))

    class Both(Pair):
        def forward(self, x):
            y = self.conv(x)
            return self.bn(y) + y

    class Reads(Pair):
        def forward(self, x):
            return self.bn(self.conv(x)) + self.conv.weight.sum()

    class Writes(Functional):
        def forward(self, x):
            mean = self.bn.running_mean
            y = F.batch_norm(F.conv2d(x, self.w), mean, self.bn.running_var)
            mean.add_(x.sum())
            return y

    class Given(Functional):
        def forward(self, x):
            w = self.w * 2
            return F.batch_norm(F.conv2d(x, w), self.bn.running_mean, self.bn.running_var)

    class Mine(nn.Conv2d):
        def forward(self, x):
            return super().forward(x) * 2

    hooked = Pair()
    hooked.conv.register_forward_hook(lambda module, args, y: y + 1)
    patched = Pair()
    patched.conv.forward = lambda x: x * 2
    half = Pair(nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 3, 1)))
    return {
        "conv called twice": Twice(), "result used twice": Both(), "weight read": Reads(),
        "statistics written": Writes(), "weight computed": Given(), "hook": hooked,
        "forward of its own": patched, "parametrization": half,
        "no statistics": Pair(bn=nn.BatchNorm2d(3, track_running_stats=False)),
        "derived class": Pair(Mine(3, 3, 1)),
    }  # fmt: skip


class Leaves(fx.Tracer):
    def is_leaf_module(self, m, qualified_name):
        return isinstance(m, (nn.Conv2d, nn.BatchNorm2d))


@pytest.mark.parametrize("name", cases())
def test_pairs_that_stay(name):
    model = ready(cases()[name])
    channels = 4 if isinstance(model, Functional) else 3
    x = torch.randn(2, channels, 5, 5)
    gm = fx.GraphModule(model, Leaves().trace(model))
    want = copy.deepcopy(gm)(x)
    before = str(gm.graph)
    assert run(gm, "fuse_bn") is False
    assert str(gm.graph) == before
    torch.testing.assert_close(gm(x), want, rtol=0, atol=0)


def test_training():
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        optimization.fuse(Pair())
    gm = fx.symbolic_trace(Pair())
    assert run(gm, "fuse_bn") is False


def test_integer_and_quantized_weights_stay():
    class Net(Functional):
        def forward(self, x):
            y = F.conv2d(x, self.w)
            return F.batch_norm(y, self.bn.running_mean, self.bn.running_var)

    model = ready(Net())
    model.w = nn.Parameter(torch.ones(6, 4, 3, 3, dtype=torch.int32), requires_grad=False)
    assert run(fx.symbolic_trace(model), "fuse_bn") is False
    quantized = Pair(torch.ao.nn.quantized.Conv2d(3, 3, 1)).eval()
    assert run(fx.GraphModule(quantized, fx.Tracer().trace(Pair())), "fuse_bn") is False


def test_modules_that_are_shared():
    """Another path to the same module goes on seeing the old one."""
    model = ready(Pair())
    graph = fx.Tracer().trace(model)
    output = graph.output_node()
    with graph.inserting_before(output):
        alias = graph.call_module("alias", (next(iter(graph.nodes)),))
    output.args = ((output.args[0], alias),)
    model.alias = model.conv
    gm = fx.GraphModule(model, graph)
    x = torch.randn(2, 3, 4, 4)
    want = gm(x)
    assert run(gm, "fuse_bn") is False  # conv is called twice
    torch.testing.assert_close(gm(x), want, rtol=0, atol=0)
    container = nn.Module()
    container.conv, container.bn = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)
    root = nn.Module()
    root.a = root.b = ready(container)
    graph = fx.Graph()
    x_node = graph.placeholder("x")
    y = graph.call_module("a.bn", (graph.call_module("a.conv", (x_node,)),))
    graph.output((y, graph.call_module("b.conv", (x_node,))))
    want = (container.bn(container.conv(x)), container.conv(x))
    graph._pass("fuse_bn", root)
    torch.testing.assert_close(fx.GraphModule(root, graph)(x), want)


def test_exceptions_of_tensors_come_through():
    class Bad(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is torch.rsqrt:
                raise ZeroDivisionError("bad tensor")
            return super().__torch_function__(func, types, args, kwargs)

    model = ready(Pair())
    model.bn.running_var = model.bn.running_var.as_subclass(Bad)
    gm = fx.symbolic_trace(model)
    before = str(gm.graph)
    with pytest.raises(ZeroDivisionError, match="bad tensor"):
        run(gm, "fuse_bn")
    assert str(gm.graph) == before and gm.conv is model.conv


def test_options_of_fuse():
    model = ready(Pair())
    gm = fx.symbolic_trace(model)
    for inplace, no_trace in itertools.product([False, True], repeat=2):
        fused = optimization.fuse(gm, inplace=inplace, no_trace=no_trace)
        assert fused is not gm and norms(fused) == 0
        assert "bn" in str(gm.graph) and gm.conv is model.conv
    assert optimization.fuse(model, inplace=True).conv is not model.conv


# ---- random models -----------------------------------------------------------------------------


class Random(nn.Module):
    """Layers in a row, at random called twice, with dropout and sums between them."""

    def __init__(self, seed):
        super().__init__()
        rng = random.Random(seed)
        kinds = ["conv", "conv", "bn", "bn", "drop", "relu", "block"]
        self.steps = [rng.choice(kinds) for _ in range(rng.randint(4, 12))]
        self.again = [rng.random() < 0.15 for _ in self.steps]
        self.skips = [rng.random() < 0.2 for _ in self.steps]
        make = {
            "conv": lambda: nn.Conv2d(3, 3, 3, padding=1, bias=rng.random() < 0.5),
            "bn": lambda: nn.BatchNorm2d(3, affine=rng.random() < 0.7),
            "drop": lambda: rng.choice([nn.Dropout, nn.Dropout2d, nn.AlphaDropout])(),
            "relu": lambda: nn.ReLU(inplace=rng.random() < 0.5),
            "block": lambda: fx.symbolic_trace(nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3),
                                                             nn.Dropout()).eval()),
        }  # fmt: skip
        self.layers = nn.ModuleList([make[step]() for step in self.steps])

    def forward(self, x):
        for layer, again, skip in zip(self.layers, self.again, self.skips):
            y = layer(x)
            y = layer(y) if again else y
            x = y + x if skip else y
        return x


class KeepBlocks(fx.Tracer):
    def is_leaf_module(self, m, qualified_name):
        return isinstance(m, fx.GraphModule) or super().is_leaf_module(m, qualified_name)


@pytest.mark.parametrize("seed", range(16))
def test_random_models(seed):
    torch.manual_seed(seed)
    model = ready(Random(seed))
    x = torch.randn(2, 3, 6, 6)
    want = model(x.clone())
    gm = fx.GraphModule(model, KeepBlocks().trace(model))
    names = ["inline", "fuse_bn", "remove_dropout"]
    random.Random(seed).shuffle(names)
    for name in names:
        run(gm, name)
        assert gm.graph.verify() == []
        torch.testing.assert_close(gm(x.clone()), want, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(model(x.clone()), want, rtol=0, atol=0)
    if names.index("inline") < names.index("remove_dropout"):
        assert not any("Dropout" in type(gm.get_submodule(n.target)).__name__
                       for n in gm.graph.find_nodes(op="call_module"))  # fmt: skip


# ---- dropout -----------------------------------------------------------------------------------


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Dropout(), nn.Dropout2d(), nn.FeatureAlphaDropout()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        x = F.dropout(self.fc(self.c(self.b(self.a(x)))), training=False)
        return torch.dropout(F.dropout(x, training=self.training), 0.5, False)


def test_remove_dropout():
    model, x = Dropping().eval(), torch.randn(1, 3, 3, 3)
    new = optimization.remove_dropout(model)
    assert [n.op for n in new.graph.nodes] == ["placeholder", "call_module", "output"]
    torch.testing.assert_close(new(x), model(x), rtol=0, atol=0)
    assert new.fc is model.fc
    training = Dropping()
    new, old = optimization.remove_dropout(training), theirs.remove_dropout(training)
    calls = [n.target for n in new.graph.find_nodes(op="call_module")]
    assert calls == [n.target for n in old.graph.find_nodes(op="call_module")] == ["b", "c", "fc"]
    gm = fx.symbolic_trace(training)
    assert run(gm, "remove_dropout") and hasattr(gm, "a")
    assert "call_module[target=a]" in str(gm.graph)  # by default, what drops stays


# ---- the rest ----------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.b, self.r = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), nn.ReLU()
        self.d, self.l = nn.Dropout(), nn.Linear(4, 4)

    def forward(self, x):
        y = self.r(self.b(self.c(x)))
        z = torch.tanh(y)
        w = torch.relu(z) * y
        return self.l(self.d(w)) + z


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch without oneDNN")
@pytest.mark.parametrize("name", ["length", "autotuner", "none", "all"])
def test_optimize_for_inference(name):
    model, x = ready(Net()), torch.randn(1, 3, 4, 4)
    heuristic = {"length": lambda m: m.use_mkl_length, "all": lambda m: lambda part: True,
                 "autotuner": lambda m: m.gen_mkl_autotuner(x, iters=1),
                 "none": lambda m: lambda part: False}[name]  # fmt: skip
    def optimized(module):
        config = {"mkldnn_layout_optimize": {"heuristic": heuristic(module)}}
        return module.optimize_for_inference(model, config)

    with torch.no_grad():
        new = optimized(optimization)
        torch.testing.assert_close(new(x), model(x))
    if name != "autotuner":  # torch.fx's fails here
        shapes = [[(n.op, str(n.target)) for n in m.graph.nodes] for m in (new, optimized(theirs))]
        assert shapes[0] == shapes[1]
    assert new.graph.verify() == []


def test_options_of_optimize_for_inference():
    model = ready(Net())
    plain = optimization.optimize_for_inference(model, {"mkldnn_layout_optimize": False})
    assert norms(plain) == 0 and not hasattr(plain, "d")
    kept = optimization.optimize_for_inference(
        model, {"mkldnn_layout_optimize": False, "conv_bn_fuse": False, "remove_dropout": False})
    assert norms(kept) == 1
    for bad in ({}, 3):
        for module in (optimization, theirs):
            with pytest.raises(RuntimeError, match="(not found in|is not a dict)"):
                module.optimize_for_inference(model, {"mkldnn_layout_optimize": bad})


def test_small_functions():
    model = Net().eval()
    for tracing, module in ((fx, optimization), (torch.fx, theirs)):
        gm = tracing.symbolic_trace(model)
        nodes = {n.name: n for n in gm.graph.nodes}
        modules = dict(gm.named_modules())
        matches = module.matches_module_pattern
        assert matches((nn.Conv2d, nn.BatchNorm2d), nodes["b"], modules)
        assert not matches((nn.Conv2d, nn.BatchNorm2d), nodes["c"], modules)
        assert not matches((nn.Conv2d,), nodes["x"], modules)
        part = module.extract_subgraph(gm, [nodes["c"], nodes["b"]], [nodes["x"]], [nodes["b"]])
        x = torch.randn(1, 3, 4, 4)
        torch.testing.assert_close(part(x), [model.b(model.c(x))], rtol=0, atol=0)
        with pytest.raises(KeyError):
            module.extract_subgraph(gm, [nodes["c"]], [], [nodes["c"]])
        linear = modules["l"]
        old = module.modules_to_mkldnn([nodes["l"], nodes["r"]], modules)
        assert gm.l is modules["l"] is next(iter(old)) is not linear
        module.reset_modules([nodes["l"], nodes["r"]], modules, old)
        assert isinstance(gm.l, nn.Linear)
        assert module._parent_name("a.b.c") == ("a.b", "c")
        assert module._parent_name("a") == ("", "a")
        sets = module.UnionFind(4)
        for i in range(4):
            sets.make_set(i)
        assert [sets.join(0, 1), sets.join(2, 1), sets.join(0, 2)] == [None, None, 0]
        assert (sets.find(2), sets.find(3), sets.size[0]) == (0, 3, 3)


def test_the_same_names():
    mine = {name for name in vars(optimization) if not name.startswith("__")}
    assert set(theirs.__all__) == set(optimization.__all__) <= mine
    assert {"mkldnn_supported", "mkldnn_supported_unknown", "mkldnn_map"} <= mine
    assert optimization.mkldnn_supported == theirs.mkldnn_supported
    assert optimization.mkldnn_supported_unknown == theirs.mkldnn_supported_unknown


def test_no_parametrization_is_lost():
    """A parametrized module is of a class of its own: it stays, and stays parametrized."""
    model = ready(Pair(nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 3, 1))))
    fused = optimization.fuse(model)
    assert norms(fused) == 1
    assert any(parametrize.is_parametrized(m) for m in fused.modules()) or "weight" in fused.code


def test_union_find_as_torch():
    r = random.Random(3)
    for _ in range(30):
        n = r.randrange(1, 12)
        pairs = [(r.randrange(n), r.randrange(n)) for _ in range(2 * n)]
        found = []
        for module in (theirs, optimization):
            sets = module.UnionFind(n)
            for v in range(n):
                sets.make_set(v)
            found.append([(sets.join(*pair), [sets.find(v) for v in range(n)]) for pair in pairs])
        assert found[0] == found[1]
    with pytest.raises(AssertionError, match="call make_set"):
        optimization.UnionFind(2).find(1)


def test_union_find_takes_a_number_out():
    sets = optimization.UnionFind(3)
    for v in range(3):
        sets.make_set(v)
    sets.join(0, 1)
    sets.make_set(0)
    sets.join(1, 2)
    assert [sets.find(v) for v in range(3)] == [0, 1, 1]
