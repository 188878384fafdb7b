"""convert_fx: the reference form, of every kind of graph and configuration."""
import copy
import operator
import pickle

import pytest
import quantize_models
import torch
import torch.ao.quantization.quantize_fx as ao
from torch import nn
from torch.ao import quantization as tq
from torch.ao.nn import quantized as nnq
from torch.ao.quantization import QConfigMapping, get_default_qat_qconfig_mapping
from torch.ao.quantization import get_default_qconfig_mapping
from torch.nn import functional as F

import cfx
from cfx.quantize import convert_fx, fuse_fx, prepare_fx, prepare_qat_fx

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def calibrated(model, inputs, mapping=None, **options):
    prepared = prepare_fx(model, mapping or get_default_qconfig_mapping("fbgemm"), inputs,
                          **options)  # fmt: skip
    with torch.no_grad():
        prepared(*inputs)
    return prepared


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    values = value.values() if isinstance(value, dict) else value
    return [t for v in values for t in flat(v)] if isinstance(value, (list, tuple, dict)) else []


def calls(gm, name):
    return [n for n in gm.graph.nodes if name in str(n.target)]


# ---- against torch.ao ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mobile_se", "residual", "inception", "shared", "functional",
                                  "nested", "one_dimension", "dicts", "mlp"])  # fmt: skip
def test_same_numbers_as_torch_ao(name):
    model, inputs = quantize_models.MODELS[name]()
    mapping = get_default_qconfig_mapping("fbgemm")
    theirs = ao.prepare_fx(copy.deepcopy(model), mapping, inputs)
    ours = prepare_fx(model, mapping, inputs)
    with torch.no_grad():
        for prepared in (theirs, ours):
            prepared(*inputs)
        want = ao._convert_fx(theirs, is_reference=True, is_decomposed=True)(*inputs)
        got = convert_fx(ours)(*inputs)
    for a, b in zip(flat(want), flat(got), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


# ---- kinds of graphs ----------------------------------------------------------------------------


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        y = self.a(x)
        if y.sum() > 0:
            y = F.relu(self.b(y))
        for i in range(2):
            y = y + i * 0.5
        return self.a(y)


@pytest.mark.parametrize("door", ["capture", "script"])
def test_control_flow(door):
    model, x = Branches().eval(), torch.randn(3, 4)
    nn.init.zeros_(model.a.bias)  # x and -x go different ways
    gm = cfx.capture(model, x) if door == "capture" else cfx.script(model)
    prepared = calibrated(gm, (x,))
    prepared(-x)  # the other branch
    region = next(v for n in prepared.graph.nodes for v in n.args if isinstance(v, cfx.Graph)
                  and any(m.target == "b" for m in v.nodes))  # fmt: skip
    assert sum("activation_post" in str(n.target) for n in region.nodes) == 2
    converted = convert_fx(prepared)
    assert "activation_post" not in str(converted.graph)
    for value in (x, -x):
        torch.testing.assert_close(converted(value), model(value), rtol=0, atol=0.1)


def test_a_branch_that_never_ran_stays_float():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            if x.sum() > 0:
                return self.fc(x)
            return self.fc(x * 2) + x

    model, x = M().eval(), torch.ones(2, 4)
    prepared = calibrated(cfx.script(model), (x,))
    converted = convert_fx(prepared)
    assert any("observed nothing" in why for _, why in converted.meta["left_in_float"])
    for value in (x, -x):
        torch.testing.assert_close(converted(value), model(value), rtol=0, atol=0.1)


@pytest.mark.parametrize("name", ["residual", "functional", "inception"])
def test_captured_as_traced(name):
    model, inputs = quantize_models.MODELS[name]()
    want = convert_fx(calibrated(model, inputs))(*inputs)
    got = convert_fx(calibrated(cfx.capture(model, *inputs), inputs))(*inputs)
    for a, b in zip(flat(want), flat(got), strict=True):
        assert torch.equal(a, b)


def test_every_spelling_is_one_operator_by_option():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            return (self.fc(x).flatten(1) @ x).softmax(-1)

    x = torch.randn(4, 4)
    plain = calibrated(M().eval(), (x,))
    every = calibrated(M().eval(), (x,), every_spelling=True)
    assert len(calls(plain, "activation_post")) == 2
    assert len(calls(every, "activation_post")) == 4
    assert len(calls(convert_fx(every), "dequantize_per_tensor")) == 4


def test_functions_of_eager_mode():
    """FloatFunctional, which models for torch.ao's eager mode call instead of `+`."""
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self.add, self.join = nnq.FloatFunctional(), nnq.FloatFunctional()

        def forward(self, x):
            return self.join.cat([self.add.add_relu(self.fc(x), x), x], 1)

    model, x = M().eval(), torch.randn(3, 4)
    prepared = calibrated(model, (x,))
    observers = {id(m) for m in prepared.modules() if type(m).__name__ == "HistogramObserver"}
    assert len(observers) == 2  # fc's result; the sum, x and what cat makes of them share one
    assert len(calls(convert_fx(prepared), "quantize_per_tensor.default")) == 8
    assert (convert_fx(prepared)(x) - model(x)).abs().max() < 0.1


class Masked(nn.Module):
    """Tokens and a mask, which are reshaped before they are used."""

    def __init__(self):
        super().__init__()
        self.embed, self.fc = nn.Embedding(9, 4), nn.Linear(4, 4)

    def forward(self, tokens, mask):
        y = self.fc(self.embed(tokens.view(-1, 3)))
        wide = mask.unsqueeze(-1) != 0
        short = (y > 9).squeeze(0)
        return y.masked_fill(wide, 0.5) * wide[:, :1], y.masked_fill(short, 1.0)


@pytest.mark.parametrize("mask", [torch.bool, torch.int64])
@pytest.mark.parametrize("door", [None, "capture", "trace"])
def test_integers_and_truth_values_are_not_observed(door, mask):
    model = Masked().eval()
    inputs = torch.randint(0, 9, (2, 3)), torch.tensor([[1, 0, 1]] * 2).to(mask)
    if door:
        made = cfx.capture(model, *inputs) if door == "capture" else cfx.symbolic_trace(model)
    prepared = calibrated(made if door else model, inputs)
    observed = {n.args[0].name for n in calls(prepared, "activation_post")}
    assert {"embed"} < observed < {"embed", "fc", "y", "masked_fill", "masked_fill_1", "mul"}
    for a, b in zip(convert_fx(prepared)(*inputs), model(*inputs), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0.1)


# ---- configurations -----------------------------------------------------------------------------


def mapping_with(activation, weight):
    return QConfigMapping().set_global(tq.QConfig(activation=activation, weight=weight))


def test_dynamic():
    model, x = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).eval(), torch.randn(5, 6)
    mapping = QConfigMapping().set_global(tq.default_dynamic_qconfig)
    converted = convert_fx(prepare_fx(model, mapping, (x,)))  # nothing to calibrate
    assert len(calls(converted, "choose_qparams")) == 2
    torch.testing.assert_close(converted(x), model(x), rtol=0, atol=0.05)
    names = dict(converted.named_buffers())
    assert names["0.weight_int8"].dtype == torch.int8 and "0.weight" not in dict(
        converted.named_parameters())  # fmt: skip


def test_weights_in_float16():
    model, x = nn.Sequential(nn.Linear(6, 8)).eval(), torch.randn(5, 6)
    mapping = QConfigMapping().set_global(tq.float16_dynamic_qconfig)
    converted = convert_fx(prepare_fx(model, mapping, (x,)))
    assert dict(converted.named_buffers())["0.weight_float16"].dtype == torch.float16
    half = F.linear(x.half().float(), model[0].weight.half().float(), model[0].bias)
    assert torch.equal(converted(x), half)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("rows", [8, 7])
def test_weights_alone(bits, rows):
    model, x = nn.Sequential(nn.Linear(rows, 5)).eval(), torch.randn(3, rows)
    low, high = (-128, 127) if bits == 8 else (-8, 7)
    weight = tq.PerChannelMinMaxObserver.with_args(
        dtype=torch.qint8, quant_min=low, quant_max=high, qscheme=torch.per_channel_symmetric)
    converted = convert_fx(prepare_fx(model, mapping_with(tq.NoopObserver, weight), (x,)))
    buffers = dict(converted.named_buffers())
    if bits == 4:
        assert buffers["0.weight_int4"].dtype == torch.uint8
        assert buffers["0.weight_int4"].shape == (5, (rows + 1) // 2)
        packed = buffers["0.weight_int4"]
        halves = torch.stack([packed & 15, packed >> 4], -1).flatten(1)[:, :rows].to(torch.int8)
        stored = torch.where(halves > 7, halves - 16, halves)
    else:
        stored = buffers["0.weight_int8"]
    scale, zero = buffers["0.weight_scale"], buffers["0.weight_zero"]
    assert torch.equal(stored, torch.ops.quantized_decomposed.quantize_per_channel(
        model[0].weight, scale, zero, 0, low, high, torch.int8))  # fmt: skip


def test_a_layer_that_is_called_twice_is_stored_once():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = self.a

        def forward(self, x):
            return self.b(self.a(x))

    x = torch.randn(2, 4)
    converted = convert_fx(calibrated(M().eval(), (x,)))
    weights = [k for k in converted.state_dict() if "weight" in k]
    assert len(weights) == 3 and len(calls(converted, "linear")) == 2


def test_results_in_integers():
    config = tq.fx.custom_config.PrepareCustomConfig().set_output_quantized_indexes([0])
    model, x = nn.Sequential(nn.Linear(4, 4)).eval(), torch.randn(2, 4)
    converted = convert_fx(calibrated(model, (x,), prepare_custom_config=config))
    assert converted(x).dtype == torch.uint8


def test_inputs_in_integers():
    config = tq.fx.custom_config.PrepareCustomConfig().set_input_quantized_indexes([0])
    model, x = nn.Sequential(nn.Linear(4, 4)).eval(), torch.randn(2, 4)
    converted = convert_fx(calibrated(model, (x,), prepare_custom_config=config))
    assert len(calls(converted, "quantize_per_tensor.default")) == 2  # only the result
    given = torch.quantize_per_tensor(x, 0.02, 128, torch.quint8)
    assert (converted(given) - model(given.dequantize())).abs().max() < 0.05


def test_what_is_kept_stays_float():
    model, (x,) = quantize_models.MODELS["nested"]()
    prepared = calibrated(model, (x,))
    converted = convert_fx(prepared, keep=["body_0"])
    assert {n.op for n in converted.graph.nodes if n.name == "body_0"} == {"call_module"}
    assert any(name == "body_0" for name, why in converted.meta["left_in_float"])
    assert "body.0.weight" in converted.state_dict()


class KeptBeforeOthers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, 5)

    def forward(self, x):
        x = torch.add(self.b(self.a(x)), 4)
        return self.c(x * 5)


def scales_of(gm):
    return [(n.args[0].name, *n.args[1:5]) for n in calls(gm, "quantize_per_tensor.default")
            if "dequantize" not in str(n.target)]  # fmt: skip


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("without", ["a", "b", nn.Linear, torch.add])
def test_what_reads_a_kept_call_is_in_integers_as_in_torch_ao(training, without):
    model, x = KeptBeforeOthers().train(training), torch.randn(7, 5)
    make = get_default_qat_qconfig_mapping if training else get_default_qconfig_mapping
    mapping = QConfigMapping()
    for kind in (nn.Linear, torch.add):
        mapping.set_object_type(kind, make("fbgemm").global_qconfig)
    less = copy.deepcopy(mapping)
    less.set_module_name(without, None) if isinstance(without, str) \
        else less.set_object_type(without, None)  # fmt: skip
    theirs, ours = [(m.prepare_qat_fx if training else m.prepare_fx)(model, mapping, (x,))
                    for m in (ao, cfx.quantize)]  # fmt: skip
    for prepared in (theirs, ours):
        prepared(x)
    want = ao._convert_fx(theirs, is_reference=True, is_decomposed=True, qconfig_mapping=less)
    got = convert_fx(ours, qconfig_mapping=less)
    assert scales_of(got) == scales_of(want)
    assert without == nn.Linear or scales_of(got)
    torch.testing.assert_close(got(x), want(x), rtol=0, atol=1e-5)


def test_a_mapping_with_none_keeps_in_float_when_converting():
    model, (x,) = quantize_models.MODELS["nested"]()
    prepared = calibrated(model, (x,))
    mapping = get_default_qconfig_mapping("fbgemm").set_module_name("body.0", None)
    assert convert_fx(prepared, qconfig_mapping=mapping).code == convert_fx(
        prepared, keep=["body_0"]).code  # fmt: skip


def test_max_error_keeps_what_loses_too_much():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16)).eval()
    with torch.no_grad():
        model[0].weight[0], model[0].bias[0] = 0.0, 0.0
        model[2].weight[:, 0] = 1000.0  # takes the whole range of the weights, and does nothing
    x = torch.randn(64, 16)
    coarse = mapping_with(tq.HistogramObserver, tq.default_weight_observer)
    prepared = calibrated(model, (x,), coarse)
    all_of_it = convert_fx(prepared)
    some = convert_fx(prepared, max_error=0.05, samples=[(x,)])
    assert len(calls(some, "dequantize")) < len(calls(all_of_it, "dequantize"))
    want = model(x)

    def error(gm):
        return float((gm(x) - want).norm() / want.norm())

    assert error(some) < 0.05 < error(all_of_it)
    with pytest.raises(ValueError, match="samples"):
        convert_fx(prepared, max_error=0.1)


# ---- training -----------------------------------------------------------------------------------


def test_trained_and_converted():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                          nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.BatchNorm2d(8), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2))  # fmt: skip
    x = torch.randn(64, 2, 6, 6)
    y = (x[:, 0].mean((1, 2)) > x[:, 1].mean((1, 2))).long()
    prepared = prepare_qat_fx(model.train(), get_default_qat_qconfig_mapping("fbgemm"), (x,))
    optimizer = torch.optim.Adam(prepared.parameters(), 0.02)
    for _ in range(60):
        optimizer.zero_grad()
        loss = F.cross_entropy(prepared(x), y)
        loss.backward()
        optimizer.step()
    assert loss < 0.4
    prepared.eval()
    converted = convert_fx(prepared)
    assert not calls(converted, "batch_norm")
    got, want = converted(x), prepared(x)
    assert (got - want).abs().max() < 0.2
    assert (got.argmax(1) == y).float().mean() > 0.85


def test_a_model_in_eval_mode_is_prepared_for_training_too():
    model, inputs = quantize_models.MODELS["residual"]()
    mapping = get_default_qat_qconfig_mapping("fbgemm")
    late = prepare_qat_fx(model.eval(), mapping, inputs).train()
    soon = prepare_qat_fx(model.train(), mapping, inputs)
    assert str(late.graph) == str(soon.graph)
    for _ in range(2):  # the first run chooses scales, batch-norms count both
        a, b = soon(*inputs), late(*inputs)
    assert torch.equal(a, b)


def test_gradients_pass_straight_through():
    layer = nn.Sequential(nn.Linear(4, 3)).train()
    prepared = prepare_qat_fx(layer, get_default_qat_qconfig_mapping("fbgemm"), (torch.ones(2, 4),))
    x = torch.randn(2, 4)
    prepared(x).sum().backward()
    grad = prepared.get_submodule("0").weight.grad
    assert torch.allclose(grad, x.sum(0).expand(3, 4), atol=0.1)


# ---- every stage is a GraphModule ----------------------------------------------------------------


@pytest.mark.parametrize("stage", ["fused", "prepared", "trained", "converted"])
def test_copies_and_pickles(stage):
    model, inputs = quantize_models.MODELS["residual"]()
    if stage == "fused":
        gm = fuse_fx(model)
    elif stage == "trained":
        gm = prepare_qat_fx(model.train(), get_default_qat_qconfig_mapping("x86"), inputs)
        gm(*inputs)
        gm.eval().apply(tq.disable_observer)
    else:
        gm = calibrated(model, inputs)
        gm = convert_fx(gm) if stage == "converted" else gm
    with torch.no_grad():
        want = gm(*inputs)
        for other in (copy.deepcopy(gm), pickle.loads(pickle.dumps(gm))):
            assert str(other.graph) == str(gm.graph)
            assert torch.equal(other(*inputs), want)


def test_a_converted_model_is_saved_and_loaded(tmp_path):
    model, inputs = quantize_models.MODELS["residual"]()
    converted = convert_fx(calibrated(model, inputs))
    cfx.save(converted, tmp_path / "q.cfx")
    assert torch.equal(cfx.load(tmp_path / "q.cfx")(*inputs), converted(*inputs))


def test_the_model_is_left_alone():
    model, inputs = quantize_models.MODELS["residual"]()
    before = copy.deepcopy(model.state_dict())
    convert_fx(calibrated(model, inputs))
    assert list(before) == list(model.state_dict())
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


# ---- what is refused ----------------------------------------------------------------------------


def test_errors_say_what_to_do():
    model, inputs = quantize_models.MODELS["nested"]()
    mapping = get_default_qconfig_mapping("x86")
    prepared = prepare_fx(model, mapping, inputs)
    with pytest.raises(ValueError, match="observed nothing; run the prepared model"):
        convert_fx(prepared)
    with pytest.raises(ValueError, match="prepared already"):
        prepare_fx(prepared, mapping, inputs)
    prepared(*inputs)
    converted = convert_fx(prepared)
    with pytest.raises(ValueError, match="quantized already"):
        prepare_fx(converted, mapping, inputs)
    with pytest.raises(ValueError, match="is converted already"):
        convert_fx(converted)
    with pytest.raises(TypeError, match="QConfigMapping"):
        prepare_fx(model, 3, inputs)
    with pytest.raises(TypeError, match="prepare_fx"):
        convert_fx(model)


def test_nothing_to_quantize_is_no_error():
    x = torch.randn(2, 2)
    prepared = prepare_fx(nn.Sequential(nn.GELU()).eval(), get_default_qconfig_mapping("x86"), (x,))
    assert torch.equal(convert_fx(prepared)(x), F.gelu(x))


def test_numbers_that_are_inputs_are_not_observed():
    class M(nn.Module):
        def forward(self, x, n, m):
            return x.view(n, -1).transpose(m, 1)

    prepared = calibrated(M().eval(), (torch.randn(4, 4), 2, 0))
    assert not any(n.args[0].name in "nm" for n in calls(prepared, "activation_post"))


def test_not_finite_is_an_error():
    model = nn.Sequential(nn.Linear(2, 2)).eval()
    mapping = mapping_with(tq.MinMaxObserver, tq.default_weight_observer)
    prepared = prepare_fx(model, mapping, (torch.ones(1, 2),))
    prepared(torch.tensor([[float("inf"), 1.0]]))
    with pytest.raises(ValueError, match="not finite"):
        convert_fx(prepared)


def test_what_stays_float_is_listed():
    class M(nn.Module):
        def forward(self, x):
            return torch.sub(x, 1), operator.sub(x, x)

    prepared = calibrated(nn.Sequential(nn.Linear(2, 2), nn.PReLU(), M()).eval(),
                          (torch.ones(1, 2),))  # fmt: skip
    names = [name for name, why in prepared.meta["left_in_float"]]
    assert names == ["sub", "sub_1"]


# ---- fusing -------------------------------------------------------------------------------------


def test_fusing_many_layers_misses_none():
    blocks = [nn.Sequential(nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.ReLU()) for _ in range(40)]
    model = nn.Sequential(*[nn.Sequential(nn.Sequential(b)) for b in blocks]).eval()
    for _ in range(3):
        assert not any("BatchNorm" in type(m).__name__ for m in fuse_fx(model).modules())
    with pytest.raises(ValueError, match="eval"):
        fuse_fx(model.train())
