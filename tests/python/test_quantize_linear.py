"""Linear layers in integers, as a user gets them: prepared, converted, compiled, saved and loaded.
Dynamic, and with weights of 8 and 4 bits; heads tied to embeddings, products with matrices of the
model, caches, loops, groups that do not divide a row."""
import sys
from pathlib import Path

import cfx
import pytest
import torch
import torch.nn.functional as F
from cfx import quantize
from cfx.quantize import QConfigMapping, convert_fx, prepare_fx
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from decode import Decoder, Keeping  # noqa: E402

CONFIGS = {
    "int8": quantize.int8_weight_only_qconfig,
    "int4": quantize.int4_weight_only_qconfig(group_size=16),
    "dynamic": quantize.per_channel_dynamic_qconfig,
}
KERNELS = {"int8": "weights of 8 bits", "int4": "weights of 4 bits", "dynamic": "to integers"}
OPERATORS = {"int8": "weight_linear", "int4": "weight_linear", "dynamic": "dynamic_linear"}
WITHIN = {"int8": 0.02, "int4": 0.25, "dynamic": 0.03}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def quantized(model, x, config):
    mapping = config if hasattr(config, "global_qconfig") else QConfigMapping().set_global(config)
    gm = model if isinstance(model, cfx.GraphModule) else cfx.capture(model.eval(), *x)
    return convert_fx(prepare_fx(gm, mapping, x))


def off(got, want):
    return float((got - want).norm() / want.norm())


def rows_of(gm):
    """The operators of its integer form."""
    lowered = cfx.lower(gm)
    root = cfx.GraphModule(dict(lowered.state.given), lowered.graph)
    cfx.passes.run(root, "integers")
    return [n.target.__name__ for n in root.graph.nodes if n.op == "call_function"]


# ---- the decoder of the benchmark ----------------------------------------------------------------


def small_decoder(tokens=1):
    model = Decoder(2, 128, 500, 80).eval()
    caches = [[torch.randn(1, 2, 4, 64) for _ in range(2)] for _ in range(2)]
    return model, (torch.full((1, tokens), 5), *caches)


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("tokens", [1, 64])
def test_every_layer_of_a_decoder_is_quantized(kind, tokens, tmp_path):
    model, first = small_decoder(tokens)
    want = model(*first)[0]
    mapping = QConfigMapping().set_object_type(nn.Linear, CONFIGS[kind])
    q = quantized(model, first, mapping)
    assert quantize.stays_float(q) == []
    names = dict(q.named_parameters())
    assert "words.weight" in names and "head.weight" not in names  # the embedding stays float
    program = cfx.compile(q, *first, threads=2)
    got = program(*first)[0]
    assert program.plans.count(KERNELS[kind]) == 4 * 2 + 1
    assert off(got, q(*first)[0]) < 1e-4 and off(got, want) < WITHIN[kind]
    cfx.save(q, tmp_path / "q.cfx")
    loaded = cfx.runtime.load(tmp_path / "q.cfx", threads=2)
    assert torch.equal(torch.from_dlpack(loaded(*first)[0]), got)


def test_caches_of_the_module_are_kept_by_a_session(tmp_path):
    model, first = small_decoder()
    keeping = Keeping(model, *first[1:]).eval()
    q = quantized(cfx.capture(keeping, first[0]), first[:1], CONFIGS["int4"])
    cfx.save(q, tmp_path / "q.cfx")
    session = cfx.runtime.load(tmp_path / "q.cfx", append=True).session()
    for _ in range(3):  # the caches grow
        want = q(first[0])
        assert off(torch.from_dlpack(session(first[0])), want) < 1e-4


# ---- weights with two readers --------------------------------------------------------------------


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 32)
        self.fc = nn.Linear(32, 32)

    def forward(self, ids):
        return F.linear(self.fc(self.words(ids)).relu(), self.words.weight)


INT4 = quantize.int4_weight_only_qconfig
TIED = {
    "embedding in float": None, "in int8": quantize.int8_weight_only_qconfig,
    "in uint8": quantize.float_qparams_weight_only_qconfig, "other groups": INT4(group_size=8),
    "per tensor": quantize.QConfig(quantize.NoopObserver, quantize.default_weight_observer),
    "the same": INT4(group_size=16),
}  # fmt: skip


@pytest.mark.parametrize("name", TIED)
def test_a_tied_head_has_weights_of_its_own_unless_they_are_the_same(name, tmp_path):
    model, ids = Tied().eval(), torch.randint(0, 50, (1, 7))
    mapping = QConfigMapping().set_global(INT4(group_size=16))
    mapping.set_object_type(nn.Embedding, TIED[name])
    q = quantized(model, (ids,), mapping)
    words = [n for n, _ in q.named_buffers() if n.startswith("words.weight") and "int" in n]
    assert len(words) == (1 if name in ("the same", "embedding in float") else 2)
    assert ("words.weight" in dict(q.named_parameters())) == (name == "embedding in float")
    assert off(q(ids), model(ids)) < 0.25
    torch.testing.assert_close(cfx.compile(q, ids)(ids), q(ids))
    cfx.save(q, tmp_path / "q.cfx")
    torch.testing.assert_close(torch.from_dlpack(cfx.runtime.load(tmp_path / "q.cfx")(ids)), q(ids))


@pytest.mark.parametrize("bits", [8, 4])
def test_one_weight_per_tensor_and_per_channel_is_not_mixed_up(bits):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(8, 8) * torch.logspace(-3, 0, 8)[:, None])

        def forward(self, x):
            return F.linear(x, self.w), F.linear(x, self.w).relu()

    model, x = Twice().eval(), torch.randn(4, 8)
    limits = {"dtype": torch.qint8, "quant_min": -1 << bits - 1, "quant_max": (1 << bits - 1) - 1}
    one, each = (quantize.QConfig(quantize.NoopObserver, observer.with_args(**limits)) for observer
                 in (quantize.MinMaxObserver, quantize.PerChannelMinMaxObserver))
    both = QConfigMapping().set_global(one)
    both.set_module_name_object_type_order("", F.linear, 0, each)
    q = quantized(model, (x,), both)
    assert torch.equal(q(x)[0], quantized(model, (x,), each)(x)[0])
    assert torch.equal(q(x)[1], quantized(model, (x,), one)(x)[1])
    assert not torch.equal(q(x)[0].relu(), q(x)[1])


def test_a_weight_that_is_computed_stays_float():
    class Adapted(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(6, 5))
            self.a, self.b = nn.Parameter(torch.randn(6, 2)), nn.Parameter(torch.randn(2, 5))
            self.fc = nn.Linear(6, 8)

        def forward(self, x):
            return self.fc(F.linear(x, self.w + self.a @ self.b))

    model, x = Adapted(), torch.randn(3, 5)
    q = quantized(model, (x,), CONFIGS["int8"])
    assert [name for name, _ in q.meta["left_in_float"]] == ["linear"]
    assert rows_of(q).count("weight_linear") == 1 and off(q(x), model(x)) < 0.02


# ---- products with matrices of the model ---------------------------------------------------------


class Conv1D(nn.Module):
    """As GPT-2 of transformers has it."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / inputs**0.5)
        self.bias = nn.Parameter(torch.randn(outputs))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(
            *x.shape[:-1], -1)


class Products(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 32)
        self.fc = Conv1D(32, 48)
        self.w = nn.Parameter(torch.randn(48, 32) / 7)

    def forward(self, ids):
        y = self.fc(self.words(ids)).relu() @ self.w
        attention = y @ y.transpose(1, 2)  # of two that are computed: stays float
        return (attention.softmax(-1) @ y) @ self.words.weight.T


@pytest.mark.parametrize("kind", CONFIGS)
def test_products_with_matrices_are_layers(kind, tmp_path):
    model, ids = Products().eval(), torch.randint(0, 50, (2, 7))
    want = model(ids)
    mapping = QConfigMapping().set_global(CONFIGS[kind]).set_object_type(nn.Embedding, None)
    q = quantized(model, (ids,), mapping)
    names = dict(q.named_buffers())
    suffix = "int4" if kind == "int4" else "int8"
    assert len(names[f"fc.weight_{suffix}"]) == 48  # output channels first
    assert "fc.weight" not in dict(q.named_parameters())
    assert rows_of(q).count(OPERATORS[kind]) == 3
    assert off(q(ids), want) < WITHIN[kind]
    torch.testing.assert_close(cfx.compile(q, ids)(ids), q(ids), rtol=1e-4, atol=1e-4)
    cfx.save(q, tmp_path / "q.cfx")
    loaded = cfx.runtime.load(tmp_path / "q.cfx")
    torch.testing.assert_close(torch.from_dlpack(loaded(ids)), q(ids), rtol=1e-4, atol=1e-4)


def test_such_a_layer_computes_what_nn_Linear_does():
    layer, linear, x = Conv1D(20, 9), nn.Linear(20, 9), torch.randn(3, 4, 20)
    linear.weight.copy_(layer.weight.T)
    linear.bias.copy_(layer.bias)
    for config in (*CONFIGS.values(), quantize.get_default_qconfig("onednn")):
        mapping = QConfigMapping().set_global(config)
        a, b = (prepare_fx(cfx.capture(m, x), mapping, (x,)) for m in (layer, linear))
        a(x), b(x)
        torch.testing.assert_close(convert_fx(a)(x), convert_fx(b)(x), rtol=1e-5, atol=1e-5)


def test_what_is_no_layer_is_left_alone():
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b = nn.Parameter(torch.randn(4, 4)), nn.Parameter(torch.randn(3, 4))
            self.v = nn.Parameter(torch.randn(4))

        def forward(self, x):
            y = torch.addmm(self.b, x, self.w)  # a bias for each row
            y = y + torch.addmm(self.v, x, self.w, alpha=2)
            return y + (self.w @ x.T).T + (x @ self.v)[:, None]

    model, x = Other().eval(), torch.randn(3, 4)
    q = quantized(model, (x,), CONFIGS["int8"])
    assert torch.equal(q(x), model(x))


# ---- sizes ---------------------------------------------------------------------------------------


def exact(layer, q, x):
    """In double, of the weights that the converted layer has."""
    buffers = dict(q.named_buffers())
    rows = layer.weight.shape[1]
    w = buffers.get("fc.weight_int8")
    if w is None:
        w = cfx.ops.unpack_int4(buffers["fc.weight_int4"], rows)
    scale, zero = (buffers[f"fc.weight_{n}"].double().reshape(len(w), -1) for n in
                   ("scale", "zero"))
    group = -(-rows // scale.shape[1]) if scale.shape[1] == 1 else 16
    scale, zero = (t.repeat_interleave(group, 1)[:, :rows] for t in (scale, zero))
    return F.linear(x.double(), (w.double() - zero) * scale, layer.bias.double())


class One(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.fc = nn.Linear(k, n)

    def forward(self, x):
        return self.fc(x)


@pytest.mark.parametrize("kind", ["int8", "int4"])
@pytest.mark.parametrize("k,n", [(2, 1), (15, 7), (16, 64), (17, 65), (47, 130), (100, 33)])
def test_any_size_against_double(kind, k, n):
    model, x = One(k, n), torch.randn(70, k)
    q = quantized(model, (x,), CONFIGS[kind])
    program = cfx.compile(q)
    for m in (1, 2, 3, 5, 8, 9, 17, 31, 64, 70):
        want = exact(model.fc, q, x[:m])
        torch.testing.assert_close(program(x[:m]).double(), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("low,high", [(0.0, 3.0), (-3.0, 0.0), (-1e-3, 5.0), (0.0, 0.0)])
def test_dynamic_zero_points_at_both_ends(low, high):
    model, x = One(33, 19), torch.rand(5, 33) * (high - low) + low
    q = quantized(model, (x,), CONFIGS["dynamic"])
    got = cfx.compile(q, x)(x)
    torch.testing.assert_close(got, q(x), rtol=1e-4, atol=1e-4)
    assert off(got, model(x)) < 0.05


def test_a_loop_has_quantized_layers(tmp_path):
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(20, 20)

        def forward(self, x):
            while x.abs().sum() > 10:
                x = self.fc(x) / 4
            return x

    model, x = Loop().eval(), torch.randn(3, 20) * 9
    for kind in CONFIGS:
        q = quantized(cfx.script(model), (x,), CONFIGS[kind])
        assert "fc.weight" not in dict(q.named_parameters())
        assert off(q(x), model(x)) < 3 * WITHIN[kind]
        torch.testing.assert_close(cfx.compile(q, x)(x), q(x), rtol=1e-4, atol=1e-4)
        cfx.save(q, tmp_path / "q.cfx")
        got = torch.from_dlpack(cfx.runtime.load(tmp_path / "q.cfx")(x))
        torch.testing.assert_close(got, q(x), rtol=1e-4, atol=1e-4)


# ---- accuracy ------------------------------------------------------------------------------------


def test_what_weights_of_four_bits_lose_on_a_trained_model():
    def samples(n):
        x = torch.randn(n, 32)
        return x, ((x[:, :8] * x[:, 8:16]).sum(1) > x[:, 16:].norm(dim=1) - 4).long()

    model = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(),
                          nn.Linear(128, 2))
    x, y = samples(10_000)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with torch.enable_grad():
        for _ in range(6):
            for at in torch.randperm(len(x)).split(200):
                optimizer.zero_grad()
                F.cross_entropy(model(x[at]), y[at]).backward()
                optimizer.step()
    x, y = samples(10_000)
    model.eval()

    def accuracy(m):
        return 100 * float((m(x).argmax(1) == y).float().mean())

    want = accuracy(model)
    assert want > 85
    lost = {}
    for name, config in {"int4": INT4(group_size=32), "int4, rows": INT4(group_size=128),
                         **{k: CONFIGS[k] for k in ("int8", "dynamic")}}.items():  # fmt: skip
        lost[name] = want - accuracy(cfx.compile(quantized(model, (x,), config), x))
    print(f"float {want:.2f} %, points lost: {lost}")
    assert lost["int8"] < 0.1 and lost["dynamic"] < 0.1 and lost["int4"] < 1.0


class EveryLinear(nn.Module):
    """A linear layer in each way that there is."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.a, self.b, self.c = (nn.Parameter(torch.randn(6, 6)) for _ in range(3))
        self.bias = nn.Parameter(torch.randn(6))

    def forward(self, x):
        x = F.relu(F.linear(self.fc(x), self.a))
        return torch.addmm(self.bias, x, self.b) @ self.c + x @ x.t() @ x


@pytest.mark.parametrize("config", CONFIGS)
def test_a_rule_for_the_operator_reaches_every_linear_layer(config):
    x, kind = torch.randn(5, 6), CONFIGS[config]
    model = EveryLinear().eval()
    rules = QConfigMapping().set_object_type(cfx.ops.linear, kind)
    assert rows_of(quantized(model, (x,), rules)).count(OPERATORS[config]) == 4
    rules.set_object_type(torch.addmm, None)
    assert rows_of(quantized(model, (x,), rules)).count(OPERATORS[config]) == 3
    rules = QConfigMapping().set_object_type(nn.Linear, kind)
    assert rows_of(quantized(model, (x,), rules)).count(OPERATORS[config]) == 1
