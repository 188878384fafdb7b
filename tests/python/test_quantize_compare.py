"""cfx.quantize.compare, the pass equalize, and cfx quantize on files of Python."""
import json
import math
import math
import subprocess

import pytest

torch = pytest.importorskip("torch")

import cfx  # noqa: E402
from cfx.quantize import (  # noqa: E402
    MinMaxObserver, QConfig, QConfigMapping, compare, convert_fx, get_default_qconfig_mapping,
    prepare_fx,
)  # fmt: skip
from test_c_examples import BUILD, ENVIRONMENT  # noqa: E402

PER_TENSOR = QConfigMapping().set_global(QConfig(
    MinMaxObserver.with_args(dtype=torch.quint8),
    MinMaxObserver.with_args(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric)))  # fmt: skip


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 8, 3)
        self.bn1 = torch.nn.BatchNorm2d(8)
        self.deep = torch.nn.Conv2d(8, 8, 3, groups=8)
        self.conv2 = torch.nn.Conv2d(8, 12, 3)
        self.pool = torch.nn.AdaptiveAvgPool2d(1)
        self.fc = torch.nn.Linear(12, 4)

    def forward(self, x):
        x = torch.nn.functional.relu(self.bn1(self.conv1(x)))
        x = torch.nn.functional.relu(self.deep(x))
        x = torch.nn.functional.relu(self.conv2(x))
        return self.fc(torch.flatten(self.pool(x), 1))


@pytest.fixture
def net():
    torch.manual_seed(1)
    return Net().eval()


def data(n=3):
    torch.manual_seed(2)
    return [torch.randn(4, 3, 12, 12) for _ in range(n)]


def quantize(model, mapping=None, **options):
    prepared = prepare_fx(model, mapping or get_default_qconfig_mapping("fbgemm"), (data()[0],))
    for x in data():
        prepared(x)
    return convert_fx(prepared, **options)


def sqnr(a, b):
    a, b = a.detach(), b.detach()
    return 10 * math.log10(float(a.double().square().sum() / (a - b).double().square().sum()))


# ---- compare -------------------------------------------------------------------------------------

def test_numbers_are_those_of_torch(net):
    quantized = quantize(net)
    report = compare(net, quantized, data())
    want = torch.cat([net(x) for x in data()])
    got = torch.cat([quantized(x) for x in data()])
    assert report.result.sqnr == pytest.approx(sqnr(want, got), abs=0.01)
    assert report.result.cosine == pytest.approx(
        float(torch.nn.functional.cosine_similarity(want.flatten(), got.flatten(), 0)), abs=1e-6)
    assert report.result.largest == pytest.approx(float((want - got).abs().max()), rel=1e-5)
    assert report.result.elements == want.numel()
    conv1 = torch.cat([net.bn1(net.conv1(x)) for x in data()])
    assert report["conv1"].close.elements == conv1.numel()
    assert report["fc"].close == report.result


def test_a_row_for_each_layer_worst_first(net):
    report = compare(net, quantize(net), data())
    names = {layer.name for layer in report.layers}
    assert {"x", "conv1", "deep", "conv2", "fc"} <= names and "bn1" not in names
    order = [layer.close.sqnr for layer in report.layers]
    assert order == sorted(order)
    assert report["conv1"].operation == "conv2d" and report["conv1"].module == "conv1"
    assert report["conv1"].file.endswith("test_quantize_compare.py") and report["conv1"].line > 20
    assert report["deep"].input_sqnr == pytest.approx(report["relu"].close.sqnr)
    with pytest.raises(KeyError, match="no layer 'none'"):
        report["none"]


def test_table_and_json(net):
    report = compare(net, quantize(net), data())
    lines = report.table(80, 3).split("\n")
    assert lines[0].startswith("the result: ") and lines[1].startswith("layer ")
    assert lines[5].startswith("and ") and all(len(line) <= 80 for line in lines)
    assert str(report).split("\n")[0] == lines[0] and "Comparison of" in repr(report)
    assert json.loads(report.to_json()) == report.to_dict()
    assert [row["name"] for row in report.to_dict()["layers"]] == [x.name for x in report.layers]


def test_the_same_model_is_equal_and_stays_as_it_was(net):
    before = {name: t.clone() for name, t in net.state_dict().items()}
    report = compare(net, net, data())
    assert report.result.sqnr == math.inf and report.result.error == 0
    assert report.to_dict()["result"]["sqnr"] is None
    assert all(torch.equal(t, before[name]) for name, t in net.state_dict().items())


def test_inputs_may_be_a_tensor_tuples_or_a_generator(net):
    quantized = quantize(net)
    whole = compare(net, quantized, data())
    assert compare(net, quantized, ((x,) for x in data())).result == whole.result
    assert compare(net, quantized, data(1)[0]).result == compare(net, quantized, data(1)).result
    assert compare(net, quantized, []).result is None
    with pytest.raises(TypeError, match="cannot be traced"):
        compare(net, object(), data())


def test_kept_layers_lose_nothing(net):
    report = compare(net, quantize(net, keep=["conv1", "relu"]), data())
    assert report["conv1"].close.sqnr > 100
    assert report["conv1"].advice is None


class Tokens(torch.nn.Module):
    """A token of small numbers among large ones, as a vision transformer begins, of which only the
    small one goes on; a norm makes all of them the same size."""

    def __init__(self):
        super().__init__()
        self.small = torch.nn.Parameter(torch.randn(1, 1, 16) / 50)
        self.norm, self.fc = torch.nn.LayerNorm(16), torch.nn.Linear(16, 16)

    def forward(self, x):
        x = torch.cat([self.small.expand(x.size(0), 1, 16), x], 1) + 0.01
        x = self.norm(x)
        return self.fc(torch.chunk(x, 2, 1)[0][:, 0])


def test_the_advice_for_small_rows_before_a_norm_helps():
    torch.manual_seed(0)
    model, batches = Tokens().eval(), [torch.randn(4, 7, 16) for _ in range(3)]

    def quantized(**options):
        prepared = prepare_fx(model, get_default_qconfig_mapping("onednn"), (batches[0],))
        for x in batches:
            prepared(x)
        return convert_fx(prepared, **options)

    gm = cfx.symbolic_trace(model)
    report = compare(gm, quantized(), batches)
    assert report["norm"].advice == "keep it and its input in float"
    assert report["select" if "select" in str(gm.graph) else "getitem_1"].advice is None
    better = compare(gm, quantized(keep=["norm", "add", "cat", "expand"]), batches)
    assert better.result.sqnr > report.result.sqnr + 6


# ---- equalize ------------------------------------------------------------------------------------

def distorted(net):
    with torch.no_grad():
        s = torch.logspace(-2, 2, 8)[torch.randperm(8)]
        net.bn1.weight.mul_(s)
        net.bn1.bias.mul_(s)
        net.deep.weight.div_(s.view(-1, 1, 1, 1))
        s = torch.logspace(-2, 2, 12)[torch.randperm(12)]
        net.conv2.weight.mul_(s.view(-1, 1, 1, 1))
        net.conv2.bias.mul_(s)
        net.fc.weight.div_(s)
    return net


def test_equalize_gains_many_decibels(net):
    net = distorted(net)
    gm = cfx.symbolic_trace(net)
    want = [net(x) for x in data()]
    assert cfx.passes.run(gm, "fuse_bn", "equalize")
    assert all(torch.allclose(gm(x), y, rtol=1e-4, atol=1e-5) for x, y in zip(data(), want))
    before = compare(net, quantize(net, PER_TENSOR), data())
    after = compare(gm, quantize(gm, PER_TENSOR), data())
    assert after.result.sqnr > before.result.sqnr + 15
    prepared = prepare_fx(net, PER_TENSOR, (data()[0],), equalize=True)
    for x in data():
        prepared(x)
    assert compare(net, convert_fx(prepared), data()).result.sqnr == pytest.approx(
        after.result.sqnr, abs=0.1)  # fmt: skip
    assert any(layer.advice == "use weights per channel, or equalize" for layer in before.layers)


def test_equalize_leaves_alone_what_it_does_not_apply_to():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 4))
    gm = cfx.symbolic_trace(model)
    assert not cfx.passes.run(gm, "equalize")
    assert gm.get_submodule("0") is model[0]


# ---- the command ---------------------------------------------------------------------------------

@pytest.mark.skipif(not (BUILD / "cfx").exists(), reason="needs make")
def test_the_command_does_as_python(net, tmp_path):
    cfx.save(cfx.symbolic_trace(net), tmp_path / "net.cfx")
    (tmp_path / "data").mkdir()
    for i, x in enumerate(data()):
        cfx.save_tensor(x, tmp_path / f"data/{i}.npy")
    done = subprocess.run([BUILD / "cfx", "quantize", "--calibrate", "data", "--json", "-o",
                           "q.cfx", "net.cfx"], capture_output=True, text=True, cwd=tmp_path,
                          env=ENVIRONMENT, check=True)  # fmt: skip
    result = json.loads(done.stdout)["result"]
    assert result["sqnr"] > 20
    quantized = cfx.load(tmp_path / "q.cfx")
    want, got = (torch.cat([m(x) for x in data()]) for m in (net, quantized))
    assert sqnr(want, got) == pytest.approx(result["sqnr"], abs=0.5)
    assert "fc.weight_int8" in dict(quantized.named_buffers())


@pytest.mark.skipif(not (BUILD / "cfx").exists(), reason="needs make")
def test_the_command_says_what_stays_float(tmp_path):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
            self.attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)
            self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(4) for _ in range(6))

        def forward(self, x):
            y = torch.nn.functional.gelu(self.a(x)) / math.sqrt(x.shape[-1])
            y = self.attention(y, y, y, need_weights=False)[0]
            for norm in self.norms:
                y = norm(self.b(y)) + x
            return y

    model, x = Net().eval(), torch.randn(1, 3, 4)
    cfx.save(cfx.capture(model, x), tmp_path / "net.cfx")
    cfx.save_tensor(x, tmp_path / "x.npy")

    def quantize(*options):
        return subprocess.run([BUILD / "cfx", "quantize", *options, "-o", "q.cfx", "net.cfx"],
                              capture_output=True, text=True, cwd=tmp_path, env=ENVIRONMENT,
                              check=True).stdout.splitlines()[1:]  # fmt: skip

    lines = quantize("--calibrate", "x.npy", "--keep", "a")
    assert lines[0] == "in integers: 6 add, 6 linear"
    assert any(line.startswith("in float:    1 Linear: it was asked to stay") for line in lines)
    assert any(line.startswith("in float:    1 MultiheadAttention: there is no") for line in lines)
    assert any(line.startswith("in float:    6 layer_norm: ") and line.endswith(" and 2 more)")
               for line in lines)  # fmt: skip
    lines = quantize("--mode", "dynamic")
    assert lines[0] == "in integers: 7 dynamic_linear"
    assert "--mode dynamic is for linear layers" in lines[1]


@pytest.mark.skipif(not (BUILD / "cfx").exists(), reason="needs make")
def test_the_command_tells_of_parts_of_modules_and_of_weights_that_become_floats(tmp_path):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words = torch.nn.Embedding(9, 8)
            self.block = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.rnn = torch.nn.LSTM(8, 8, batch_first=True)

        def forward(self, x):
            return self.rnn(self.block(self.words(x)))[0]

    cfx.save(cfx.capture(Net().eval(), torch.zeros(2, 3, dtype=torch.int64)), tmp_path / "net.cfx")
    lines = subprocess.run([BUILD / "cfx", "quantize", "--mode", "weights", "-o", "q.cfx",
                            "net.cfx"], capture_output=True, text=True, cwd=tmp_path,
                           env=ENVIRONMENT, check=True).stdout.splitlines()  # fmt: skip
    assert lines[1] == "in integers: 1 weight_embedding"
    assert any("2 linear: it is a part of a module that is called as a whole" in line
               for line in lines)  # fmt: skip
    assert any("1 lstm: its weights are integers in the file, and floats when it runs" in line
               for line in lines)  # fmt: skip


def test_a_table_with_long_names_everywhere_fits_a_terminal():
    class Long(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first_convolution = torch.nn.Conv2d(1, 2, 3)
            self.average_of_everything = torch.nn.AdaptiveAvgPool2d(1)

        def forward(self, x):
            return self.average_of_everything(self.first_convolution(x)).abs()

    x = torch.randn(4, 1, 8, 8)
    coarse = cfx.quantize.QConfigMapping().set_global(cfx.quantize.QConfig(
        activation=cfx.quantize.MinMaxObserver.with_args(quant_min=0, quant_max=7),
        weight=cfx.quantize.MinMaxObserver.with_args(dtype=torch.qint8, quant_min=-2, quant_max=1),
    ))
    prepared = cfx.quantize.prepare_fx(Long().eval(), coarse, (x,))
    prepared(x)
    report = cfx.quantize.compare(prepared, cfx.quantize.convert_fx(prepared), x)
    for width in (100, 80, 76):
        table = report.table(width)
        assert max(len(line) for line in table.split("\n")) <= width, table
