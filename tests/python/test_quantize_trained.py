"""Models that are trained here, on samples made here, and what they lose in integers."""
import copy

import pytest

import cfx

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.ao.quantization import QConfigMapping, default_dynamic_qconfig  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from cfx.quantize import convert_fx, prepare_fx, prepare_qat_fx  # noqa: E402
from cfx.quantize import get_default_qat_qconfig_mapping  # noqa: E402
from cfx.quantize import get_default_qconfig_mapping  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("one_thread")]

SAMPLES = 10_000  # to train on, and as many others to judge by
BATCH = 100
CLASSES = 10


def images():
    """Ten blurred patterns, moved about and covered with noise. [(x, y)] of training, judging."""
    g = torch.Generator().manual_seed(1)
    patterns = F.interpolate(torch.randn(CLASSES, 1, 4, 4, generator=g), size=10, mode="bilinear")

    def make():
        y = torch.randint(0, CLASSES, (SAMPLES,), generator=g)
        x = patterns[y]
        for dim in (2, 3):
            moved = torch.randint(0, 3, (SAMPLES, 1, 1, 1), generator=g)
            x = sum(x.roll(k, dim) * (moved == k) for k in range(3))
        return x + 1.6 * torch.randn(x.shape, generator=g), y

    return make(), make()


def features():
    """The class is what a network with random weights makes of the features, most of the time."""
    g = torch.Generator().manual_seed(2)
    w1, w2 = torch.randn(20, 12, generator=g), torch.randn(12, CLASSES, generator=g)

    def make():
        x = torch.randn(SAMPLES, 20, generator=g)
        noisy = torch.tanh(x @ w1 / 4) @ w2 + 0.3 * torch.randn(SAMPLES, CLASSES, generator=g)
        return x, noisy.argmax(1)

    return make(), make()


def conv_net():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, bias=False), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, CLASSES))  # fmt: skip


def mlp():
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
                         nn.Linear(64, CLASSES))  # fmt: skip


def train(model, data, epochs, rate):
    x, y = data
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for _ in range(epochs):
        for part in torch.randperm(SAMPLES).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(model(x[part]), y[part]).backward()
            optimizer.step()


def right(model, data):
    """Which samples a model is right about."""
    with torch.no_grad():
        return torch.cat([model(x).argmax(1) for x in data[0].split(BATCH)]) == data[1]


def lost(model, other, data):
    """Points of accuracy that `other` loses, and the standard error of that."""
    differ = right(model, data).float() - right(other, data).float()
    return 100 * float(differ.mean()), 100 * float(differ.std()) / SAMPLES**0.5


@pytest.fixture(scope="module", params=["conv", "mlp"])
def trained(request):
    """(the model, samples to train on, others to judge by)"""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model, (data, others) = (conv_net(), images()) if request.param == "conv" else \
            (mlp(), features())
        train(model.train(), data, 3, 0.004)
    model.eval()
    accuracy = float(right(model, others).float().mean())
    assert 0.6 < accuracy < 0.98  # something can be lost
    return model, data, others




def test_static(trained):
    model, (x, _), others = trained
    prepared = prepare_fx(model, get_default_qconfig_mapping(), (x[:BATCH],))
    for part in x[:1000].split(BATCH):
        prepared(part)
    quantized = convert_fx(prepared)
    for gm in (quantized, cfx.compile(quantized)):
        points, noise = lost(model, gm, others)
        print(f"static: {points:.2f} points, +- {noise:.2f}")
        assert points <= 0.5


def test_dynamic(trained):
    model, (x, _), others = trained
    mapping = QConfigMapping().set_global(default_dynamic_qconfig)
    quantized = convert_fx(prepare_fx(model, mapping, (x[:BATCH],)))
    for gm in (quantized, cfx.compile(quantized)):
        points, noise = lost(model, gm, others)
        print(f"dynamic: {points:.2f} points, +- {noise:.2f}")
        assert points <= 0.1


def test_trained_in_integers(trained):
    """Against the float model that is trained on for as long."""
    model, data, others = trained
    both = [copy.deepcopy(model).train() for _ in range(2)]
    both[1] = prepare_qat_fx(both[1], get_default_qat_qconfig_mapping(), (data[0][:BATCH],))
    for one in both:
        torch.manual_seed(3)
        train(one, data, 1, 0.001)
    quantized = convert_fx(both[1].eval())
    for gm in (quantized, cfx.compile(quantized)):
        points, noise = lost(both[0].eval(), gm, others)
        print(f"trained: {points:.2f} points, +- {noise:.2f}")
        assert points <= 2 * noise
