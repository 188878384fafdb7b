"""Recurrent layers and cells with integer weights: the reference form, compiled, in files, as ONNX,
and against torch.ao's."""
import copy
import io
import warnings

import cfx
import cfx.onnx
import pytest
import torch
import torch.ao.quantization as theirs
import torch.ao.quantization.backend_config
from cfx import quantize
from cfx.quantize import QConfigMapping, convert_fx, prepare_fx, prepare_qat_fx
from torch import nn

CONFIGS = {
    "dynamic": quantize.default_dynamic_qconfig,
    "per channel": quantize.per_channel_dynamic_qconfig,
    "float16": quantize.float16_dynamic_qconfig,
    "int8": quantize.int8_weight_only_qconfig,
    "int4": quantize.int4_weight_only_qconfig(group_size=8),
}
LEAST = {"dynamic": 30, "per channel": 30, "float16": 55, "int8": 32, "int4": 14}  # dB


class Layer(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, *x):
        return self.layer(*x)


class WithState(Layer):
    def forward(self, x, h):
        return self.layer(x, h)


class WithStates(Layer):
    def forward(self, x, h, c):
        return self.layer(x, (h, c))


class Alone(Layer):
    def forward(self, x):
        return self.layer(x)


X = torch.randn(7, 3, 16, generator=torch.Generator().manual_seed(1))
H = torch.randn(2, 3, 24, generator=torch.Generator().manual_seed(2))
MODELS = {
    "lstm": (lambda: Alone(nn.LSTM(16, 24)), (X,)),
    "deep lstm": (lambda: Alone(nn.LSTM(16, 24, 2, bidirectional=True, batch_first=True)), (X,)),
    "lstm with projections": (lambda: Alone(nn.LSTM(16, 24, 2, proj_size=5)), (X,)),
    "lstm without biases": (lambda: Alone(nn.LSTM(16, 24, bias=False)), (X,)),
    "lstm without a batch": (lambda: Alone(nn.LSTM(16, 24)), (X[:, 0],)),
    "lstm with states": (lambda: WithStates(nn.LSTM(16, 24, 2)), (X, H, H)),
    "gru": (lambda: Alone(nn.GRU(16, 24, 2)), (X,)),
    "gru with a state": (lambda: WithState(nn.GRU(16, 24, 2)), (X, H)),
    "rnn": (lambda: Alone(nn.RNN(16, 24)), (X,)),
    "lstm cell": (lambda: Alone(nn.LSTMCell(16, 24)), (X[0],)),
    "gru cell": (lambda: WithState(nn.GRUCell(16, 24)), (X[0], H[0])),
    "rnn cell": (lambda: Alone(nn.RNNCell(16, 24)), (X[0],)),
}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def quantized(model, x, config):
    gm = model if isinstance(model, cfx.GraphModule) else cfx.symbolic_trace(model)
    prepared = prepare_fx(gm, QConfigMapping().set_global(config), x)
    prepared(*x)
    return convert_fx(prepared)


def flat(y):
    return [y] if isinstance(y, torch.Tensor) else [t for part in y for t in flat(part)]


def sqnr(want, got):
    want, got = (torch.cat([t.flatten() for t in flat(y)]) for y in (want, got))
    return float(10 * torch.log10(want.pow(2).sum() / (want - got).pow(2).sum()))


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", MODELS)
def test_forms(name, config, tmp_path):
    make, x = MODELS[name]
    model = make().eval()
    q = quantized(model, x, CONFIGS[config])
    assert q.meta.get("left_in_float", []) == []
    assert all("bias" in n for n, _ in q.named_parameters())  # matrices are integers
    want = q(*x)
    assert sqnr(model(*x), want) > LEAST[config]
    cfx.save(q, tmp_path / "q.cfx")
    loaded = cfx.load(tmp_path / "q.cfx")
    for y in (cfx.lower(q)(*x), cfx.compile(q, *x)(*x), loaded(*x)):
        torch.testing.assert_close(flat(y), flat(want))


def test_other_sizes_and_regions(tmp_path):
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(16, 24)

        def forward(self, x, h, c):
            for i in range(x.size(0)):
                h, c = self.cell(x[i], (h, c))
            return h

    model, x = Loop().eval(), (X, H[0], H[1])
    q = quantized(cfx.script(model), x, CONFIGS["per channel"])
    assert [n for n, _ in q.named_parameters()] == ["cell.bias_ih", "cell.bias_hh"]
    for steps in (7, 2):
        some = (X[:steps], H[0], H[1])
        assert sqnr(model(*some), q(*some)) > 30
        torch.testing.assert_close(cfx.compile(q, *some)(*some), q(*some))


def test_a_layer_that_is_called_twice_has_its_integers_once():
    class Twice(Layer):
        def forward(self, x):
            return self.layer(self.layer(x)[0])

    model = Twice(nn.LSTM(16, 16)).eval()
    q = quantized(model, (X,), CONFIGS["dynamic"])
    assert [n for n, _ in q.named_buffers()] == ["layer.weight_ih_l0_int8",
                                                 "layer.weight_hh_l0_int8"]  # fmt: skip
    assert sqnr(model(X), q(X)) > 30


def test_a_backend_config():
    config = theirs.backend_config.get_fbgemm_backend_config()
    for name in ("lstm", "gru", "gru cell"):
        make, x = MODELS[name]
        model = make().eval()
        prepared = prepare_fx(model, QConfigMapping().set_global(CONFIGS["dynamic"]), x,
                              backend_config=config)  # fmt: skip
        q = convert_fx(prepared)
        assert all("bias" in n for n, _ in q.named_parameters())
        assert sqnr(model(*x), q(*x)) > 30


def test_kept_in_float():
    model = Layer(nn.LSTM(16, 24)).eval()
    prepared = prepare_fx(Alone(model.layer), QConfigMapping().set_global(CONFIGS["dynamic"]), (X,))
    kept = convert_fx(copy.deepcopy(prepared), keep=["layer"])
    assert torch.equal(kept(X)[0], model(X)[0])
    assert not any("observer" in n for n, _ in kept.named_modules())


def test_training_leaves_their_weights_as_they_are():
    model = Alone(nn.LSTM(16, 24))
    prepared = prepare_qat_fx(model, QConfigMapping().set_global(CONFIGS["dynamic"]), (X,))
    with torch.enable_grad():
        prepared(X)[0].sum().backward()
    q = convert_fx(prepared.eval())
    assert sqnr(model(X), q(X)) > 30


def test_a_pickle_has_no_floats_of_the_matrices():
    model = Alone(nn.LSTM(64, 128)).eval()
    sizes = []
    for m in (model, quantized(model, (torch.randn(2, 1, 64),), CONFIGS["dynamic"])):
        torch.save(m, file := io.BytesIO())
        sizes.append(len(file.getvalue()))
    assert sizes[1] < sizes[0] * 0.35, sizes


@pytest.mark.parametrize("name", ["lstm", "deep lstm", "gru", "rnn", "lstm cell"])
@pytest.mark.parametrize("config", ["dynamic", "int8"])
def test_onnx(name, config, tmp_path):
    ort = pytest.importorskip("onnxruntime", reason="tests/requirements.txt names the version")
    make, x = MODELS[name]
    q = quantized(make().eval(), x, CONFIGS[config])
    cfx.onnx.save(q, tmp_path / "q.onnx", inputs=x)
    options = ort.SessionOptions()  # others round what is multiplied by integers, too
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = ort.InferenceSession(tmp_path / "q.onnx", options,
                                   providers=["CPUExecutionProvider"])  # fmt: skip
    feed = dict(zip((i.name for i in session.get_inputs()), (t.numpy() for t in x)))
    for got, want in zip(session.run(None, feed), flat(q(*x)), strict=True):
        torch.testing.assert_close(torch.from_numpy(got), want, rtol=1e-4, atol=1e-5)


# ---- against torch.ao ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in MODELS if n not in (
    "rnn", "lstm with projections", "lstm without biases", "lstm without a batch")])  # it has none
def test_it_is_at_least_as_good_as_torch_ao(name):
    """Whose kernels round the state of each step, too."""
    make, x = MODELS[name]
    model = make().eval()
    kinds = {type(model.layer): theirs.default_dynamic_qconfig}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = theirs.quantize_dynamic(copy.deepcopy(model), kinds, dtype=torch.qint8)
        judge = sqnr(model(*x), reference(*x))
    q = quantized(model, x, theirs.default_dynamic_qconfig)
    got = sqnr(model(*x), q(*x))
    print(f"{name}: {got:.2f} {judge:.2f} dB")
    assert got > judge - 0.5, (got, judge)
