"""cfx.quantize.correct_bias: the means of a quantized model are those of the float model."""
import json
import subprocess

import pytest

torch = pytest.importorskip("torch")

import cfx  # noqa: E402
from cfx.quantize import (  # noqa: E402
    MinMaxObserver, QConfig, QConfigMapping, compare, convert_fx, correct_bias,
    default_dynamic_qconfig, int4_weight_only_qconfig, prepare_fx,
)  # fmt: skip
from test_c_examples import BUILD, ENVIRONMENT  # noqa: E402

#: Rough weights, so that there is something to correct; values lose little.
ROUGH = QConfigMapping().set_global(QConfig(
    MinMaxObserver.with_args(dtype=torch.quint8),
    MinMaxObserver.with_args(dtype=torch.qint8, quant_min=-8, quant_max=7,
                             qscheme=torch.per_tensor_symmetric)))  # fmt: skip


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.bn = torch.nn.BatchNorm2d(8)
        self.deep = torch.nn.Conv2d(8, 8, 3, groups=8, bias=False)
        self.up = torch.nn.ConvTranspose2d(8, 12, 2, stride=2)
        self.fc = torch.nn.Linear(12, 4)

    def forward(self, x):
        x = torch.nn.functional.relu(self.bn(self.conv(x)))
        x = torch.nn.functional.relu(self.deep(x))
        x = torch.nn.functional.relu(self.up(x))
        return self.fc(x.mean((2, 3)))


def data(n, seed):
    torch.manual_seed(seed)
    return [torch.rand(4, 3, 12, 12) + 0.5 for _ in range(n)]


@pytest.fixture
def net():
    torch.manual_seed(1)
    net = Net().eval()
    net.bn.running_mean.normal_()
    net.bn.running_var.uniform_(0.1, 2)
    return net


def prepared(model, mapping, samples):
    model = prepare_fx(model, mapping, (samples[0],))
    for x in samples:
        model(x)
    return model


def off(a, b):
    return float(((a - b).norm() / b.norm()).detach())


def means(gm, names, x):
    """Those of the channels of each of these nodes."""
    found = []

    class Means(cfx.Interpreter):
        def run_node(self, n):
            y = super().run_node(n)
            if n.name in names.split():
                found.append(y.transpose(0, 1).flatten(1).mean(1))
            return y

    with torch.no_grad():
        Means(gm).run(x)
    assert len(found) == len(names.split())
    return found


# ---- what it gains -------------------------------------------------------------------------------

def test_decibels_are_gained_on_other_data(net):
    plain = convert_fx(prepared(net, ROUGH, data(4, 2)))
    better = correct_bias(net, plain, data(4, 2))
    before, after = (compare(net, q, data(4, 3)).result.sqnr for q in (plain, better))
    assert after > before + 6


def test_means_of_each_layer_are_those_of_the_float_model(net):
    """One run does for all layers: what the first adds is gone when the second is measured."""
    samples = data(1, 2)
    better = correct_bias(net, convert_fx(prepared(net, ROUGH, samples)), samples)
    for ours, theirs in zip(means(better, "conv deep up fc", samples[0]),
                            means(cfx.symbolic_trace(net), "bn deep up fc", samples[0])):
        assert torch.allclose(ours, theirs, atol=2e-5)


def test_convert_corrects_by_option_whatever_is_observed(net):
    samples = data(3, 2)
    for mapping in (ROUGH, QConfigMapping().set_global(default_dynamic_qconfig),
                    QConfigMapping().set_global(int4_weight_only_qconfig(4))):
        calibrated = prepared(net, mapping, samples)
        plain = convert_fx(calibrated)
        better = convert_fx(calibrated, correct_bias=True, samples=samples)
        want, a, b = (torch.cat([m(x) for x in samples]) for m in (net, plain, better))
        assert off(b.mean(0), want.mean(0)) < off(a.mean(0), want.mean(0))
        assert off(cfx.compile(better)(samples[0]), better(samples[0])) < 0.02


def test_with_max_error_fewer_layers_stay_float(net):
    samples = data(3, 2)
    calibrated = prepared(net, ROUGH, samples)
    limit = compare(net, convert_fx(calibrated), samples).result.error * 0.5
    kept = [convert_fx(calibrated, max_error=limit, correct_bias=correct, samples=samples)
            for correct in (False, True)]  # fmt: skip
    integers = [sum("int8" in name or "int4" in name for name in gm.state_dict()) for gm in kept]
    assert integers[0] < integers[1] == 4


def test_what_may_be_chance_is_left_alone():
    """A few random inputs shift the means of every layer, but not those of other inputs."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(),
                                torch.nn.Linear(256, 64)).eval()  # fmt: skip
    samples, others = ([torch.randn(1, 256) for _ in range(n)] for n in (4, 64))
    calibrated = prepared(model, QConfigMapping().set_global(default_dynamic_qconfig), samples)
    plain = convert_fx(calibrated)
    before, after = (compare(model, q, others).result.sqnr
                     for q in (plain, correct_bias(model, plain, samples)))  # fmt: skip
    assert after > before - 0.2


# ---- what changes --------------------------------------------------------------------------------

def test_biases_are_replaced_or_added_and_the_models_stay_as_they_were(net):
    plain = convert_fx(prepared(net, ROUGH, data(2, 2)))
    was = {k: v.clone() for k, v in plain.state_dict().items()}
    weights = {k: v.clone() for k, v in net.state_dict().items()}
    better = correct_bias(net, plain, data(2, 2))
    assert set(better.state_dict()) == {*was, "deep.bias"}
    assert isinstance(better.fc.bias, torch.nn.Parameter)
    assert not torch.equal(better.fc.bias, plain.fc.bias)
    assert all(torch.equal(was[k], v) for k, v in plain.state_dict().items())
    assert all(torch.equal(weights[k], v) for k, v in net.state_dict().items())
    assert [n.name for n in better.graph.nodes if n.name in ("conv", "deep", "up", "fc")] == [
        "conv", "deep", "up", "fc"]  # fmt: skip


def test_a_layer_that_is_called_twice_gets_a_bias_for_each_call():
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(6, 6)

        def forward(self, x):
            return self.fc(torch.relu(self.fc(x)))

    torch.manual_seed(1)
    model = Twice().eval()
    samples = [torch.rand(64, 6) + 1]
    better = convert_fx(prepared(model, ROUGH, samples), correct_bias=True, samples=samples)
    assert {"fc.bias_corrected", "fc.bias_corrected_1"} <= set(better.state_dict())
    assert off(better(samples[0]).mean(0), model(samples[0]).mean(0)) < 0.01


def test_a_call_of_the_same_layer_that_stays_float_stays_as_it_was():
    class Shared(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(6, 6, bias=False)

        def forward(self, x):
            return self.fc(x + 0), self.fc(x * 2)

    torch.manual_seed(1)
    model = Shared().eval()
    samples = [torch.rand(64, 6) + 1]
    calibrated = prepared(model, ROUGH, samples)
    better = convert_fx(calibrated, keep=["fc_1"], correct_bias=True, samples=samples)
    assert torch.equal(better(samples[0])[1], convert_fx(calibrated, keep=["fc_1"])(samples[0])[1])
    assert better.fc.bias is None
    assert off(better(samples[0])[0].mean(0), model(samples[0])[0].mean(0)) < 0.01


def test_the_file_has_the_new_biases(net, tmp_path):
    samples = data(2, 2)
    better = convert_fx(prepared(net, ROUGH, samples), correct_bias=True, samples=samples)
    cfx.save(better, tmp_path / "q.cfx")
    assert torch.equal(cfx.load(tmp_path / "q.cfx")(samples[0]), better(samples[0]))


# ---- wrong use -----------------------------------------------------------------------------------

def test_wrong_use_says_what_to_do(net):
    calibrated = prepared(net, ROUGH, data(1, 2))
    with pytest.raises(ValueError, match="correct_bias needs samples"):
        convert_fx(calibrated, correct_bias=True)
    plain = convert_fx(calibrated)
    with pytest.raises(ValueError, match="no layer was run"):
        correct_bias(net, plain, [])
    with pytest.raises(ValueError, match="no layer has weights that are integers"):
        correct_bias(net, net, data(1, 2))
    with pytest.raises(ValueError, match="not finite"):
        correct_bias(net, plain, [data(1, 2)[0] * float("nan")])


@pytest.mark.skipif(not (BUILD / "cfx").exists(), reason="needs make")
def test_the_command_corrects(net, tmp_path):
    cfx.save(cfx.symbolic_trace(net), tmp_path / "net.cfx")
    cfx.save_tensor(torch.cat(data(3, 2)), tmp_path / "x.npy")
    results = []
    for options in ([], ["--correct-bias"]):
        done = subprocess.run([BUILD / "cfx", "quantize", "--calibrate", "x.npy", "--per", "tensor",
                               *options, "--json", "-o", "q.cfx", "net.cfx"], capture_output=True,
                              text=True, cwd=tmp_path, env=ENVIRONMENT, check=True)  # fmt: skip
        results.append(json.loads(done.stdout)["result"]["sqnr"])
    assert results[1] > results[0]
    assert "deep.bias" in dict(cfx.load(tmp_path / "q.cfx").state_dict())
