"""Embeddings and bags of them in 8 and 4 bits: the reference form, the integer form, files, and
against torch.ao."""
import warnings

import cfx
import cfx.onnx
import pytest
import torch
import torch.ao.quantization as theirs
import torch.nn.functional as F
from cfx import quantize
from cfx.quantize import QConfigMapping, convert_fx, prepare_fx
from torch import nn
from torch.ao.quantization import quantize_fx

UINT8 = quantize.float_qparams_weight_only_qconfig
UINT4 = quantize.float_qparams_weight_only_qconfig_4bit
CONFIGS = {
    "uint8": UINT8, "uint4": UINT4, "int8": quantize.int8_weight_only_qconfig,
    "groups": quantize.int4_weight_only_qconfig(group_size=16),
    "one": quantize.QConfig(quantize.NoopObserver, quantize.default_weight_observer),
}  # fmt: skip


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def quantized(model, x, config):
    mapping = QConfigMapping().set_object_type(nn.Embedding, config)
    mapping.set_object_type(nn.EmbeddingBag, config)
    if isinstance(model, cfx.GraphModule):
        mapping.set_global(config)
    return convert_fx(prepare_fx(model, mapping, x))


def rows_of(gm):
    """The operators of its integer form."""
    lowered = cfx.lower(gm)
    root = cfx.GraphModule(dict(lowered.state.given), lowered.graph)
    cfx.passes.run(root, "integers")
    names = [n.target.__name__ for n in root.graph.nodes if n.op == "call_function"]
    return [name for name in names if name != "full"]  # a scale that is one for all


def check_everywhere(q, x, tmp_path):
    """In C, compiled and from a file it gives the bits of its reference form."""
    want = cfx.lower(q)(*x)
    torch.testing.assert_close(want, q(*x))
    assert torch.equal(cfx.compile(q, *x)(*x), want)
    cfx.save(q, tmp_path / "q.cfx")
    loaded = cfx.runtime.load(tmp_path / "q.cfx", threads=2)(*x)
    assert torch.equal(torch.from_dlpack(loaded), want)


def sqnr(want, got):
    return float(10 * torch.log10(want.pow(2).sum() / (want - got).pow(2).sum()))


class Words(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.words = nn.Embedding(40, 33, **options)

    def forward(self, ids):
        return self.words(ids)


class Bags(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.bags = nn.EmbeddingBag(40, 33, **options)

    def forward(self, *args):
        return self.bags(*args)


class Weighted(Bags):
    def forward(self, ids, offsets, weights):
        return self.bags(ids, offsets, per_sample_weights=weights)


class OfRows(Bags):
    def forward(self, ids):
        return self.bags(ids)


class Offsets(Bags):
    def forward(self, ids, offsets):
        return self.bags(input=ids, offsets=offsets)


IDS = torch.tensor([3, 0, 39, 3, 7, 8, 11])
OFFSETS = torch.tensor([0, 3, 3, 7])
BAGS = {
    "sum": (Offsets, {"mode": "sum"}, (IDS, OFFSETS)),
    "mean": (Offsets, {}, (IDS, OFFSETS)),
    "max": (Offsets, {"mode": "max"}, (IDS, OFFSETS)),
    "last offset": (Offsets, {"include_last_offset": True}, (IDS, OFFSETS)),
    "padding": (Offsets, {"padding_idx": 3}, (IDS, OFFSETS)),
    "rows": (OfRows, {"mode": "sum"}, (IDS[:6].reshape(2, 3),)),
    "weights": (Weighted, {"mode": "sum"}, (IDS, OFFSETS, torch.randn(7))),
}  # fmt: skip


# ---- forms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("trace", [cfx.symbolic_trace, cfx.capture])
def test_embedding(name, trace, tmp_path):
    model = Words(padding_idx=2).eval()
    ids = torch.randint(0, 40, (3, 5))
    gm = trace(model, ids) if trace is cfx.capture else trace(model)
    q = quantized(gm, (ids,), CONFIGS[name])
    assert q.meta.get("left_in_float", []) == [] and rows_of(q) == ["weight_embedding"]
    assert [n for n, _ in q.named_parameters()] == []
    assert sqnr(model(ids), q(ids)) > (18 if name in ("uint4", "groups") else 38)
    check_everywhere(q, (ids,), tmp_path)
    with pytest.raises(IndexError, match="index out of range in self"):
        cfx.compile(q, ids)(ids + 39)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("kind", BAGS)
def test_embedding_bag(name, kind, tmp_path):
    make, options, x = BAGS[kind]
    model = make(**options).eval()
    q = quantized(cfx.symbolic_trace(model), x, CONFIGS[name])
    assert q.meta.get("left_in_float", []) == [] and rows_of(q) == ["weight_embedding_bag"]
    assert sqnr(model(*x), q(*x)) > (15 if name in ("uint4", "groups") else 35)
    check_everywhere(q, x, tmp_path)


def test_functions_in_captured_graphs(tmp_path):
    class Functions(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.randn(9, 6))

        def forward(self, ids, offsets):
            return F.embedding_bag(ids, self.table, offsets) + F.embedding(offsets, self.table)

    model, x = Functions().eval(), (torch.tensor([1, 8, 2]), torch.tensor([0, 2]))
    q = convert_fx(prepare_fx(cfx.capture(model, *x), QConfigMapping().set_global(UINT8), x))
    assert [n for n, _ in q.named_buffers()] == ["table_uint8", "table_scale", "table_zero"]
    assert set(rows_of(q)) == {"weight_embedding", "weight_embedding_bag", "add"}
    check_everywhere(q, x, tmp_path)


def test_codes_of_0_to_15_are_stored_in_half_a_byte():
    model, ids = Words().eval(), torch.arange(40)
    q = quantized(model, (ids,), UINT4)
    stored = dict(q.named_buffers())
    assert stored["words.weight_int4"].shape == (40, 17)
    # as PyTorch quantizes them, with zero points that are the nearest integers
    scale, zero = stored["words.weight_scale"], stored["words.weight_zero"] + 8
    assert torch.equal(zero, (-model.words.weight.amin(1) / scale).round().long())
    codes = torch.quantize_per_channel(model.words.weight, scale, zero, 0, torch.quint8)
    want = (codes.int_repr().clamp(0, 15).float() - zero[:, None]) * scale[:, None]
    torch.testing.assert_close(q(ids), want)


def test_what_stays_float():
    class Changes(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(8, 4, max_norm=1.0)

        def forward(self, ids):
            return self.words(ids)

    q = quantized(Changes().eval(), (torch.tensor([1]),), UINT8)
    assert q.meta["left_in_float"] == [("words", "it changes its weights when it is called")]


# ---- against torch.ao ----------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("make", [Words, Offsets])
def test_it_is_as_good_as_torch_ao(bits, make):
    class Wide(make):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(500, 64) if make is Words else nn.EmbeddingBag(500, 64)

        def forward(self, *x):
            return self.table(*x)

    class Sized(Wide):
        def forward(self, ids, offsets):
            return self.table(ids) if make is Words else self.table(ids, offsets)

    model = Sized().eval()
    x = (torch.randint(0, 500, (300,)), torch.arange(0, 300, 3))
    ours, torchs = (UINT8, theirs.float_qparams_weight_only_qconfig) if bits == 8 else \
        (UINT4, theirs.float_qparams_weight_only_qconfig_4bit)  # fmt: skip
    mapping = theirs.QConfigMapping().set_object_type(type(model.table), torchs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = quantize_fx.convert_fx(quantize_fx.prepare_fx(model, mapping, x))
    got, judge = (sqnr(model(*x), q(*x)) for q in (quantized(model, x, ours), reference))
    assert got > judge - 0.3, (got, judge)  # its zero points are no integers


# ---- ONNX ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("low", [-1, 5])  # far from 0, zero points are none of the integers
def test_onnx(name, low, tmp_path):
    ort = pytest.importorskip("onnxruntime", reason="tests/requirements.txt names the version")

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.bags = nn.Embedding(40, 32), nn.EmbeddingBag(40, 32)
            self.words.weight.uniform_(low, low + 1)

        def forward(self, ids, offsets):
            return self.words(ids), self.bags(ids, offsets)

    q = quantized(Both().eval(), (IDS, OFFSETS), CONFIGS[name])
    path = tmp_path / "q.onnx"
    cfx.onnx.save(q, path, inputs=(IDS, OFFSETS))
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    feed = dict(zip((i.name for i in session.get_inputs()), (IDS.numpy(), OFFSETS.numpy())))
    for got in (session.run(None, feed), cfx.onnx.load(path)(IDS, OFFSETS)):
        for y, want in zip(got, q(IDS, OFFSETS), strict=True):
            torch.testing.assert_close(torch.as_tensor(y), want)
