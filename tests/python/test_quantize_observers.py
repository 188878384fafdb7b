"""Observers and fake quantization against torch.ao.quantization's: the same scales, to the bit."""
import copy
import io
import pickle
import random
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
ao = pytest.importorskip("torch.ao.quantization")

import cfx.quantize as quantize  # noqa: E402
from cfx._core import Observer  # noqa: E402
from torch.ao.quantization import fake_quantize as ao_fake  # noqa: E402
from torch.ao.quantization import observer as ao_observer  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

AFFINE, SYMMETRIC = torch.per_tensor_affine, torch.per_tensor_symmetric


def tensor(r):
    """A random tensor with one of many distributions, shapes and strides."""
    shape = r.choice([(1,), (64,), (7, 33), (4, 8, 9, 9), (1000,), (50, 200), (3,), (2, 17, 5)])
    kind = r.choice(["normal", "relu", "uniform", "cubed", "shifted", "zero", "constant", "small"])
    x = torch.randn(shape)
    x = {
        "normal": lambda: x, "relu": x.relu, "uniform": lambda: torch.rand(shape) * 3 - 1,
        "cubed": lambda: x**3, "shifted": lambda: x * 0.1 + r.choice([5, -5]),
        "zero": lambda: x * 0, "constant": lambda: x * 0 + 3.7, "small": lambda: x * 1e-6,
    }[kind]()  # fmt: skip
    if x.dim() > 1 and r.random() < 0.3:
        x = x.transpose(0, -1)
    if x.dim() > 1 and r.random() < 0.2:
        x = x[..., ::2]
    return x


def stream(r):
    """Some tensors with the same number of dimensions and channels."""
    x = tensor(r)
    yield x
    for i in range(r.choice([0, 1, 4])):
        yield torch.randn_like(x) * r.choice([0.5, 1, 1 + i]) + r.choice([0, 0, 0.3])


def arguments(r, per_channel):
    """Random keyword arguments that both take."""
    kwargs = {"dtype": r.choice([torch.quint8, torch.qint8, torch.uint8, torch.int8])}
    symmetric = r.random() < 0.5
    if per_channel:
        kwargs["qscheme"] = torch.per_channel_symmetric if symmetric else torch.per_channel_affine
        kwargs["ch_axis"] = r.choice([0, 0, -1])
    else:
        kwargs["qscheme"] = SYMMETRIC if symmetric else AFFINE
    signed = kwargs["dtype"] in (torch.qint8, torch.int8)
    if r.random() < 0.3 and not (symmetric and kwargs["dtype"] == torch.quint8):
        kwargs["reduce_range"] = True
    elif r.random() < 0.4:
        low, high = r.choice([(-127, 127), (-8, 7)] if signed else [(0, 127), (0, 255), (0, 15)])
        kwargs.update(quant_min=low, quant_max=high)
    if r.random() < 0.3:
        kwargs["eps"] = 2**-12
    return kwargs


def same(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and torch.equal(a, b), (a, b)


CASES = {
    "MinMaxObserver": 250, "MovingAverageMinMaxObserver": 250, "PerChannelMinMaxObserver": 175,
    "MovingAveragePerChannelMinMaxObserver": 175, "HistogramObserver": 150,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_scales_of_random_streams(name):
    for seed in range(CASES[name]):
        r = random.Random(f"{name} {seed}")
        torch.manual_seed(seed)
        kwargs = arguments(r, "Channel" in name)
        if "Moving" in name:
            kwargs["averaging_constant"] = r.choice([0.01, 0.3, 1])
        if name == "HistogramObserver" and r.random() < 0.3:
            kwargs["bins"] = r.choice([64, 500])
        ours = getattr(quantize, name)(**kwargs)
        theirs = getattr(ao_observer, name)(**kwargs)
        for x in stream(r):
            if "Channel" in name and x.dim() < 2:
                x = x[:, None]  # torch.ao's observers of channels need two dimensions
            assert ours(x) is x
            theirs(x)
            assert torch.equal(ours.min_val, theirs.min_val), (seed, kwargs)
            assert torch.equal(ours.max_val, theirs.max_val), (seed, kwargs)
        if name == "HistogramObserver":
            assert torch.equal(ours.histogram, theirs.histogram), (seed, kwargs)
        same(ours.calculate_qparams(), theirs.calculate_qparams())


def test_float_qparams_and_others_that_do_not_look():
    x = torch.randn(10, 4)
    for name in ("default_float_qparams_observer", "default_float_qparams_observer_4bit"):
        ours, theirs = getattr(quantize, name)(), getattr(ao_observer, name)()
        ours(x), theirs(x)
        same(ours.calculate_qparams(), theirs.calculate_qparams())
    fixed = quantize.default_fixed_qparams_range_neg1to1_observer()
    same(fixed.calculate_qparams(), (torch.tensor([2 / 256]), torch.tensor([128]).int()))
    for name in ("PlaceholderObserver", "NoopObserver", "ReuseInputObserver", "RecordingObserver"):
        observer = getattr(quantize, name)()
        assert torch.equal(observer(x), x)
        with pytest.raises(RuntimeError, match="no scale"):
            observer.calculate_qparams()


def test_groups_are_channels_of_their_own():
    w = torch.randn(6, 40)
    ours = quantize.PerGroupMinMaxObserver(group_size=16, quant_min=-8, quant_max=7)
    ours(w)
    scale, zero = ours.calculate_qparams()
    assert scale.shape == (6, 3) and not zero.any()
    for i, part in enumerate(w.split(16, dim=1)):
        assert torch.equal(scale[:, i], part.abs().amax(1) / 7.5)


def test_percentile():
    x = torch.randn(200_000)
    ours = quantize.PercentileObserver(percentile=99.0, bins=4096)
    ours(x)
    scale, zero = ours.calculate_qparams()
    low, high = np.percentile(x.numpy(), [0.5, 99.5])
    width = (x.max() - x.min()) / 4096
    assert abs(float(scale) * 255 - (high - low)) < 2 * width
    assert abs((0 - int(zero)) * float(scale) - low) < float(scale)


# ---- what is not as it should be


def test_elements_that_are_not_finite_are_counted():
    x = torch.randn(1000)
    x[3], x[500], x[999] = float("nan"), float("inf"), -float("inf")
    for name in ("MinMaxObserver", "MovingAverageMinMaxObserver", "HistogramObserver"):
        ours, clean = getattr(quantize, name)(), getattr(quantize, name)()
        ours(x)
        clean(x[x.isfinite()])
        assert (ours.seen, ours.not_finite) == (1000, 3)
        same(ours.calculate_qparams(), clean.calculate_qparams())
    ours(torch.full((4,), float("nan")))
    same(ours.calculate_qparams(), clean.calculate_qparams())
    empty = quantize.MinMaxObserver()
    empty(torch.full((4,), float("nan")))
    with pytest.raises(ValueError, match="none of the 4 elements observed was finite"):
        empty.calculate_qparams()


def test_nothing_observed_is_a_warning():
    for name in ("MinMaxObserver", "PerChannelMinMaxObserver", "HistogramObserver"):
        ours = getattr(quantize, name)()
        ours(torch.empty(0, 3))
        with pytest.warns(UserWarning, match="nothing was observed"):
            scale, zero = ours.calculate_qparams()
        assert scale == 1 and zero == 0


def test_wrong_arguments():
    with pytest.raises(NotImplementedError, match="per_tensor_affine"):
        quantize.MinMaxObserver(qscheme=torch.per_channel_affine)
    with pytest.raises(NotImplementedError, match="per channel"):
        quantize.PerChannelMinMaxObserver(qscheme=AFFINE)
    with pytest.raises(NotImplementedError, match="averaging_constant=1"):
        quantize.MovingAverageMinMaxObserver(is_dynamic=True)
    with pytest.raises(NotImplementedError, match="dynamic"):
        quantize.HistogramObserver(is_dynamic=True)
    with pytest.raises(NotImplementedError, match="zero point is 128"):
        quantize.MinMaxObserver(qscheme=SYMMETRIC, reduce_range=True)
    with pytest.raises(AssertionError, match="must include 0"):
        quantize.MinMaxObserver(quant_min=1, quant_max=5)
    with pytest.raises(AssertionError, match="more integers than"):
        quantize.MinMaxObserver(quant_min=0, quant_max=256)
    with pytest.raises(AssertionError, match="dtype must be one of"):
        quantize.MinMaxObserver(dtype=torch.float32)
    with pytest.raises(ValueError, match="'bins'"):
        quantize.HistogramObserver(bins=1)
    channels = quantize.PerChannelMinMaxObserver()
    channels(torch.randn(3, 4))
    with pytest.raises(RuntimeError, match="4 channels or groups, but 3"):
        channels(torch.randn(4, 3))


def test_the_core_takes_any_array():
    x = np.random.default_rng(0).normal(size=(30, 20)).astype(np.float32)
    spec = {"observer": "min_max", "dtype": "uint8"}
    for array in (x, x.T, x[::3, ::-2], torch.from_numpy(x)):
        o = Observer(spec)
        o.observe(array)
        state = o.save()
        assert state["min_val"].numpy() == np.asarray(array).min()
        assert state["max_val"].numpy() == np.asarray(array).max()
    with pytest.raises(TypeError, match="tensors of floats, not of int64"):
        o.observe(np.arange(3))
    with pytest.raises(ValueError, match="no field 'width'"):
        Observer({**spec, "width": 3})
    with pytest.raises(ValueError, match="not a word for 'observer'"):
        Observer({**spec, "observer": "eyes"})
    with pytest.raises(ValueError, match="needs 'observer' and 'dtype'"):
        Observer({})
    with pytest.raises(TypeError, match="must be a dict"):
        Observer([])
    with pytest.raises(TypeError, match="needs an Observer"):
        o.merge(spec)


# ---- states


def filled(name, n=3, **kwargs):
    observer = getattr(quantize, name)(**kwargs)
    for i in range(n):
        observer(torch.randn(8, 50) * (i + 1))
    return observer


def test_states_go_both_ways():
    for name in CASES:
        ours, theirs = getattr(quantize, name)(), getattr(ao_observer, name)()
        for observer in (ours, theirs):
            torch.manual_seed(7)
            observer(torch.randn(8, 50))
        fresh = getattr(quantize, name)()
        assert not any(fresh.load_state_dict(theirs.state_dict(), strict=True))
        same(fresh.calculate_qparams(), theirs.calculate_qparams())
        other = getattr(ao_observer, name)()
        other.load_state_dict(ours.state_dict(), strict=False)
        same(other.calculate_qparams(), ours.calculate_qparams())
        again = getattr(quantize, name)()
        again.load_state_dict(ours.state_dict())
        assert again.seen == ours.seen == 400
        again(torch.randn(8, 50))


def test_pickled_and_copied():
    for name in (*CASES, "PercentileObserver", "PerGroupMinMaxObserver"):
        ours = filled(name)
        file = io.BytesIO()
        torch.save(ours, file)
        file.seek(0)
        for other in (pickle.loads(pickle.dumps(ours)), copy.deepcopy(ours),
                      torch.load(file, weights_only=False)):  # fmt: skip
            same(other.calculate_qparams(), ours.calculate_qparams())
            assert other.seen == ours.seen
            other(torch.randn(8, 50) * 10)
            assert other.seen > ours.seen


def test_a_state_of_another_observer_is_refused():
    ours = filled("HistogramObserver")
    before = ours.calculate_qparams()
    with pytest.raises(RuntimeError, match="another number of bins"):
        ours.load_state_dict(filled("HistogramObserver", bins=100).state_dict())
    with pytest.raises(RuntimeError, match='Missing key.*"histogram"'):
        ours.load_state_dict(filled("MinMaxObserver").state_dict())
    same(ours.calculate_qparams(), before)


def test_merged():
    for name in ("MinMaxObserver", "PerChannelMinMaxObserver", "HistogramObserver"):
        tensors = [torch.randn(8, 50) * (i + 1) for i in range(6)]
        whole, a, b = (getattr(quantize, name)() for _ in range(3))
        for i, x in enumerate(tensors):
            whole(x)
            (a if i % 2 else b)(x)
        a.merge(b)
        assert a.seen == whole.seen
        assert torch.equal(a.min_val, whole.min_val) and torch.equal(a.max_val, whole.max_val)
        scale, zero = a.calculate_qparams()
        want, _ = whole.calculate_qparams()
        assert torch.allclose(scale, want, rtol=0.02)
    with pytest.raises(ValueError, match="different specs"):
        a.merge(quantize.MinMaxObserver())
    with pytest.raises(TypeError, match="needs an observer"):
        a.merge(3)


def test_models_merged_by_their_states():
    def model():
        return torch.nn.Sequential(quantize.HistogramObserver(), torch.nn.Linear(4, 4),
                                   quantize.MinMaxObserver())  # fmt: skip
    models = [model() for _ in range(3)]
    for i, m in enumerate(models):
        m(torch.randn(10, 4) * (i + 1))
    low = min(m[0].min_val for m in models)
    quantize.merge_observers(models[0], models[1], models[2].state_dict())
    assert models[0][0].seen == models[0][2].seen == 120
    assert models[0][0].min_val == low
    with pytest.raises(ValueError, match="other observers"):
        quantize.merge_observers(models[0], torch.nn.Sequential(quantize.MinMaxObserver()))
    with pytest.raises(ValueError, match="nothing for the observer"):
        quantize.merge_observers(models[0], {})
    assert models[0][0].seen == 120


# ---- fake quantization

FAKES = [n for n in dir(ao_fake) if n.startswith(("default_", "fused_")) and "fake_quant" in n]


@pytest.mark.parametrize("name", FAKES)
def test_fake_quantize_rounds_as_torchs(name):
    torch.manual_seed(len(name))
    ours, theirs = getattr(quantize, name)(), getattr(ao_fake, name)()
    for step in range(4):
        x = torch.randn(6, 20) * (step + 1)
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        if step == 3:
            for m in (ours, theirs):
                m.disable_observer()
        y, want = ours(a), theirs(b)
        assert torch.equal(y, want)
        gradient = torch.randn_like(y)
        y.backward(gradient)
        want.backward(gradient)
        assert torch.equal(a.grad, b.grad)
        same((ours.scale, ours.zero_point), (theirs.scale, theirs.zero_point))
    quantize.disable_fake_quant(ours)
    assert torch.equal(ours(x), x)
    quantize.enable_fake_quant(ours)
    quantize.disable_observer(ours)
    again = getattr(quantize, name)()
    again.load_state_dict(ours.state_dict())
    assert torch.equal(again(x), want)
    again = getattr(ao_fake, name)()
    again.load_state_dict(ours.state_dict(), strict=False)
    assert torch.equal(again(x), want)


def test_fake_quantize_arguments():
    with pytest.raises(AssertionError, match="less than or equal"):
        quantize.FakeQuantize(quant_min=5, quant_max=1)
    with pytest.raises(AssertionError, match="out of the dtype's range"):
        quantize.FakeQuantize(quant_min=0, quant_max=256)
    with pytest.raises(AssertionError, match="moving-average"):
        quantize.FusedMovingAvgObsFakeQuantize(observer=quantize.MinMaxObserver)
    with pytest.raises(AssertionError, match="FixedQParamsObserver"):
        quantize.FixedQParamsFakeQuantize(observer=quantize.MinMaxObserver)


def test_import_is_lazy():
    code = ("import sys, cfx; assert 'cfx.quantize' not in sys.modules; import cfx.quantize; "
            "assert 'torch' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)
