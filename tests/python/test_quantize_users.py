"""cfx.quantize on models and data of all kinds: weights that are computed, masks, names, groups."""
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import cfx
from cfx import quantize
from cfx.quantize import convert_fx, prepare_fx

pytestmark = pytest.mark.filterwarnings("ignore")
DOORS = {"module": lambda model, x: model, "symbolic": lambda model, x: cfx.symbolic_trace(model),
         "capture": cfx.capture, "script": lambda model, x: cfx.script(model)}  # fmt: skip


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def mapping(qconfig=None):
    if qconfig is not None:
        return quantize.QConfigMapping().set_global(qconfig)
    return quantize.get_default_qconfig_mapping("onednn")


def calibrated(model, x, rules=None):
    prepared = prepare_fx(model, rules or mapping(), (x,))
    with torch.no_grad():
        prepared(x)
    return prepared


def left(gm):
    return dict(gm.meta["left_in_float"])


# ---- weights that the model computes ------------------------------------------------------------


class TiedAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 6))

    def forward(self, x):
        return F.linear(F.relu(F.linear(x, self.weight)), self.weight.t())


class Slices(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(18, 6)), nn.Parameter(torch.randn(18))

    def forward(self, x):
        q, k, v = self.weight.chunk(3)
        return F.linear(x, q, self.bias[:6]) + F.linear(x, k) * F.linear(x, v, self.bias[12:])


class ScaledKernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.scale = nn.Parameter(torch.randn(6, 1, 1)), nn.Parameter(torch.ones(6))

    def forward(self, x):
        return F.conv1d(x.unsqueeze(-1), self.weight.repeat(1, 6, 1) * self.scale.view(-1, 1, 1))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("cls", [TiedAutoencoder, Slices, ScaledKernel])
def test_computed_weights_have_scales_of_channels(cls, door):
    model, x = cls().eval(), torch.randn(16, 6)
    converted = convert_fx(calibrated(DOORS[door](model, x), x))
    assert any("quantize_per_channel" in str(n.target) for n in converted.graph.nodes)
    want = model(x)
    assert float((converted(x) - want).norm() / want.norm()) < 0.03
    torch.testing.assert_close(cfx.compile(converted)(x), converted(x), rtol=0, atol=0.1)


@pytest.mark.parametrize("qconfig", ["int8_weight_only_qconfig", "default_dynamic_qconfig",
                                     "int4"])  # fmt: skip
def test_computed_weights_without_calibration_stay_float(qconfig):
    config = quantize.int4_weight_only_qconfig(group_size=2) if qconfig == "int4" else getattr(
        quantize, qconfig)  # fmt: skip
    class Scaled(TiedAutoencoder):
        def forward(self, x):
            return F.linear(F.relu(F.linear(x, self.weight)), self.weight.t() * 2)

    model, x = Scaled().eval(), torch.randn(3, 6)
    converted = convert_fx(prepare_fx(model, mapping(config), (x,)))
    assert list(left(converted))[-1] == "linear_1" and "linear" not in left(converted)
    torch.testing.assert_close(converted(x), model(x), rtol=0.5, atol=1.0)


# ---- groups -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows, columns, group, stays", [
    (5, 8, 4, False), (5, 7, 4, False), (3, 33, 32, False), (5, 7, 7, False), (2, 5, 64, False),
    (4, 9, 3, False), (4, 1, 4, True)])  # fmt: skip
def test_rows_of_one_element_have_no_groups(tmp_path, rows, columns, group, stays):
    model, x = nn.Sequential(nn.Linear(columns, rows)).eval(), torch.randn(3, columns)
    rules = mapping(quantize.int4_weight_only_qconfig(group_size=group))
    converted = convert_fx(prepare_fx(model, rules, (x,)))
    assert ("_0" in left(converted)) == stays
    assert torch.equal(converted(x), model(x)) == stays
    torch.testing.assert_close(cfx.compile(converted)(x), converted(x), rtol=1e-4, atol=1e-4)
    cfx.save(converted, tmp_path / "q.cfx")
    assert torch.equal(cfx.load(tmp_path / "q.cfx")(x), converted(x))


def test_groups_are_of_matrices():
    model, x = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(12, 4)).eval(), torch.ones(
        1, 2, 4, 4)  # fmt: skip
    rules = mapping(quantize.int4_weight_only_qconfig(group_size=4))
    converted = convert_fx(prepare_fx(model, rules, (x,)))
    assert "matrix" in left(converted)["_0"] and "_2" not in left(converted)
    assert "2.weight_int4" in converted.state_dict()


# ---- what is not finite -------------------------------------------------------------------------


class Masked(nn.Module):
    def __init__(self, least=float("-inf")):
        super().__init__()
        self.fc, self.least = nn.Linear(6, 6), least

    def forward(self, x):
        y = self.fc(x)
        mask = torch.triu(torch.full((8, 8), self.least), 1)
        return torch.softmax(y @ y.t() + mask, -1) @ y


@pytest.mark.parametrize("least, why", [(float("-inf"), "values that are not finite"),
                                        (torch.finfo(torch.float32).min, "stand for infinity"),
                                        (torch.finfo(torch.bfloat16).min / 4, "for infinity")])
@pytest.mark.parametrize("door", ["module", "capture"])
def test_masks_with_infinities_stay_float(door, least, why):
    model, x = Masked(least).eval(), torch.randn(8, 6)
    converted = convert_fx(calibrated(DOORS[door](model, x), x))
    assert sum(why in reason for reason in left(converted).values()) >= 1
    want = model(x)
    assert float((converted(x) - want).norm() / want.norm()) < 0.05
    torch.testing.assert_close(cfx.compile(converted)(x), converted(x), rtol=0, atol=0.1)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_data_that_is_not_finite_is_an_error(value):
    model, x = nn.Sequential(nn.Linear(6, 4)).eval(), torch.randn(8, 6)
    prepared = calibrated(model, x)
    x[:, 0] = value
    prepared(x)
    with pytest.raises(ValueError, match="'input_1': it has observed .* not finite: 8 of 96"):
        convert_fx(prepared)


@pytest.mark.parametrize("last", [nn.Sigmoid, nn.Hardsigmoid, nn.Tanh])
def test_scales_that_are_given_do_not_make_up_for_data_that_is_not_finite(last):
    model, x = nn.Sequential(nn.Linear(6, 4), last()).eval(), torch.full((8, 6), float("nan"))
    with pytest.raises(ValueError, match="not finite: 48 of 48"):
        convert_fx(calibrated(model, x))


@pytest.mark.parametrize("qconfig", ["default_dynamic_qconfig", "int8_weight_only_qconfig"])
def test_weights_that_are_not_finite_are_an_error(qconfig):
    model, x = nn.Sequential(nn.Linear(6, 4)).eval(), torch.randn(8, 6)
    with torch.no_grad():
        model[0].weight[1, 2] = float("nan")
    prepared = prepare_fx(model, mapping(getattr(quantize, qconfig)), (x,))
    with pytest.raises(ValueError, match="the weight '0.weight' cannot be quantized: .*not finite"):
        convert_fx(prepared)


# ---- names, and what is left in float ------------------------------------------------------------


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6))
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        if x.sum() > 100:
            x = self.body(x)
        return self.head(self.body(x))


@pytest.mark.parametrize("door", ["capture", "script"])
def test_names_of_modules_are_kept_in_regions_too(tmp_path, door):
    model, x = Blocks().eval(), torch.randn(8, 6)
    prepared = calibrated(DOORS[door](model, x), x)
    prepared(x + 100)
    converted = convert_fx(prepared, keep="body")
    assert [k for k in converted.state_dict() if "int8" in k] == ["head.weight_int8"]
    assert {why for why in left(converted).values()} >= {"it was asked to stay float"}
    for value in (x, x + 100):
        torch.testing.assert_close(converted(value), model(value), rtol=0.05, atol=0.1)
    cfx.save(converted, tmp_path / "q.cfx")  # what stays float has no observers any more
    assert torch.equal(cfx.load(tmp_path / "q.cfx")(x), converted(x))


def test_names_that_stand_for_nothing():
    prepared = calibrated(nn.Sequential(nn.Linear(6, 4)).eval(), torch.randn(8, 6))
    for name in ("nope", "activation_post_process_0"):
        with pytest.raises(KeyError, match=f"no node or module '{name}'"):
            convert_fx(prepared, keep=[name])
    with pytest.raises(KeyError, match="did you mean '_0'"):
        convert_fx(prepared, keep=["_01"])
    assert "input_1" in left(convert_fx(prepared, keep=["input_1"]))


def test_max_error_is_a_number_above_zero():
    x = torch.randn(8, 6)
    prepared = calibrated(nn.Sequential(nn.Linear(6, 4)).eval(), x)
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="above 0"):
            convert_fx(prepared, max_error=wrong, samples=[(x,)])
    for samples in (x, (x,), [x], [(x,)]):
        assert "_0" in left(convert_fx(prepared, max_error=1e-6, samples=samples))


def test_arguments_that_are_something_else():
    model, x = nn.Sequential(nn.Linear(6, 4)).eval(), torch.randn(8, 6)
    with pytest.raises(TypeError, match="are QConfigs, or None .* got 'int8'"):
        prepare_fx(model, mapping("int8"), (x,))
    with pytest.raises(TypeError, match="find_qconfigs takes a cfx.GraphModule, not Sequential"):
        quantize.find_qconfigs(model, mapping())
    with pytest.raises(TypeError, match="spec_of takes"):
        quantize.spec_of(3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("make", [lambda: nn.Sequential(nn.Linear(6, 4)), TiedAutoencoder])
def test_models_of_other_dtypes_are_told_what_to_do(make, dtype):
    model, x = make().eval().to(dtype), torch.randn(8, 6, dtype=dtype)
    name = str(dtype).removeprefix("torch.")
    for qconfig in (None, quantize.default_dynamic_qconfig, quantize.int8_weight_only_qconfig):
        with pytest.raises(TypeError, match=rf"weight' is {name}, .* model.float\(\)"):
            prepare_fx(model, mapping(qconfig), (x,))
    stays = quantize.QConfigMapping().set_global(None)
    assert torch.equal(prepare_fx(model, stays, (x,))(x), model(x))


# ---- captured models -----------------------------------------------------------------------------


def test_a_model_that_asks_for_the_grad_mode_is_calibrated_without_gradients():
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.randn(2, 5, 8)
    prepared = calibrated(cfx.capture(model, x), x)
    converted = convert_fx(prepared)
    want = model(x)
    assert float((converted(x) - want).norm() / want.norm()) < 0.1
    with torch.no_grad():
        assert torch.equal(converted(x), converted(x))


# ---- what is left in float ----------------------------------------------------------------------


class Moves(nn.Module):
    """Moves, sizes, positions, functions that become tables, and three calls that stay float."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(4, 4)
        self.register_buffer("places", torch.arange(9))

    def forward(self, x):
        n = x.size(0)
        mask = (torch.arange(n) + 1 > 0) & (self.places[:n].flip(0) >= 0)
        x, y = self.a(x).chunk(2, -1)
        x = self.b(F.gelu(x).roll(1, 0))
        x = x.masked_fill(mask.unsqueeze(-1).expand(n, 4) == 0, 0.0)
        return torch.cumprod(x - y, 0)


@pytest.mark.parametrize("door", ["capture", "script"])
def test_the_list_of_what_stays_float_has_no_moves_and_no_integers(door):
    model, x = Moves().eval(), torch.randn(3, 4)
    prepared = calibrated(DOORS[door](model, x), x)
    assert sorted(left(prepared).values()) == ["there is no integer form of this call"] * 3
    torch.testing.assert_close(convert_fx(prepared)(x), model(x), rtol=0, atol=0.2)


def test_the_list_of_what_stays_float_says_why():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            return torch.exp(self.fc(x)), F.relu(x @ x)

    whys = left(calibrated(Net().eval(), torch.randn(4, 4)))
    assert whys["exp"] == "its input or its result stays float"
    assert "every_spelling" in whys["matmul"]


class Positions(nn.Module):
    """As models of transformers count them: integers that are added, and looked up."""

    def __init__(self):
        super().__init__()
        self.words, self.places, self.fc = nn.Embedding(9, 4), nn.Embedding(9, 4), nn.Linear(4, 4)

    def forward(self, tokens):
        count = torch.arange(tokens.shape[-1]) + 0
        other = torch.where(tokens > 4, 1, 0) * 2 - tokens.clamp(max=1)
        return self.fc(self.words(tokens) + self.places(count + (other * 0).long()))


@pytest.mark.parametrize("source", ["cfx", "torch"])
def test_integers_that_a_model_computes_are_not_observed(source):
    from torch.ao import quantization as tq

    tokens, model = torch.randint(0, 9, (2, 5)), Positions().eval()
    rules = (tq if source == "torch" else quantize).get_default_qconfig_mapping()
    prepared = calibrated(cfx.capture(model, tokens), tokens, rules)
    assert not left(prepared)
    torch.testing.assert_close(convert_fx(prepared)(tokens), model(tokens), rtol=0, atol=0.2)


def test_branches_and_loops_are_not_calls_in_float():
    class Branch(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            if x.sum() > 0:
                return self.a(x)
            return self.b(x)

    x = torch.randn(3, 4)
    prepared = calibrated(cfx.script(Branch().eval()), x)
    assert not any("cond" in name for name in left(prepared))


def test_values_on_the_meta_device_are_not_calibrated():
    model = nn.Sequential(nn.Linear(4, 4)).eval().to("meta")
    prepared = prepare_fx(model, mapping(), (torch.randn(3, 4),))
    with pytest.raises(ValueError, match="meta device"):
        prepared(torch.randn(3, 4, device="meta"))


# ---- calibrated today, converted tomorrow --------------------------------------------------------


@pytest.mark.parametrize("source", ["cfx", "torch"])
@pytest.mark.parametrize("door", ["module", "capture"])
def test_a_prepared_model_is_kept_by_torch_save_and_by_its_state(tmp_path, door, source):
    from torch.ao import quantization as tq

    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).eval(), torch.randn(3, 4)
    rules = (tq if source == "torch" else quantize).get_default_qconfig_mapping()
    prepared = calibrated(DOORS[door](model, x), x, rules)
    want = convert_fx(prepared)(x)
    torch.save(prepared, tmp_path / "prepared.pt")
    again = torch.load(tmp_path / "prepared.pt", weights_only=False)
    assert torch.equal(convert_fx(again)(x), want)
    torch.save(prepared.state_dict(), tmp_path / "state.pt")
    other = prepare_fx(DOORS[door](model, x), rules, (x,))
    other.load_state_dict(torch.load(tmp_path / "state.pt"))
    assert torch.equal(convert_fx(other)(x), want)


@pytest.mark.parametrize("use", ["cfx.save(prepared, path)", "cfx.onnx.save(prepared, path)",
                                 "cfx.lower(prepared)", "cfx.compile(prepared)"])  # fmt: skip
def test_what_takes_no_prepared_model_says_what_to_do(tmp_path, use):
    prepared = calibrated(nn.Sequential(nn.Linear(4, 4)).eval(), torch.randn(3, 4))
    with pytest.raises((ValueError, TypeError), match=r"is prepared .*convert_fx.*torch.save"):
        eval(use, {"cfx": cfx, "prepared": prepared, "path": tmp_path / "p.cfx"})
