"""What a run of a compiled model asks of the system, once it has run before: next to nothing. The
small forms of the models of bench/engines are run in C, in a program that counts."""
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

torch = pytest.importorskip("torch")

import cfx  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
PROBE = BUILD / "tests/c_models/run_probe"
RUNS = 20
# Headers of tensors (160 bytes), the tuple of results, and what kernels make for views of theirs.
MOST_HEADERS = 24
# Models with kernels that still take memory for elements while they run, and how often: an LSTM
# for its gates and state, norms and attention for what is not contiguous.
BLOCKS = {"lstm_lm": 4, "mixer": 5, "speech": 8}
# Of threads that take turns each brings scratch of its own, which a run may be the first to need.
FIRST_USE = 1


def small(name):
    """(model in eval mode, inputs) in a small form."""
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        from engines import models, more_models
    finally:
        sys.path.remove(str(ROOT / "bench"))
    import zoo

    assert name in models.TITLES
    image = torch.randn(1, 3, 64, 64)
    made = {
        "densenet121": lambda: (more_models.DenseNet((2, 2), 16, 8), (image,)),
        "shufflenet": lambda: (more_models.ShuffleNet((1, 1, 1), (8, 16, 32, 64, 64)), (image,)),
        "mixer": lambda: (more_models.Mixer(64, 16, 32, 2), (image,)),
        "recommender": lambda: (more_models.Recommender(3, 100, 8),
                                (torch.randn(1, 13), torch.randint(100, (1, 3, 4)))),
        "decoder": lambda: (more_models.Decoder(2, 64, 4, 2, 128, 500),
                            (torch.randint(500, (1, 16)),)),
        "speech": lambda: (more_models.Speech(48, 1, 32), (torch.randn(1, 4000),)),
    }  # fmt: skip
    torch.manual_seed(0)
    model, inputs = made[name]() if name in made else zoo.make(name, True)
    return model.eval(), inputs


MODELS = ("mlp", "resnet18", "resnet50", "mobilenet_v3", "vit_b_16", "bert", "gpt2",
          "efficientnet_b0", "densenet121", "convnext", "shufflenet", "unet", "mixer", "lstm_lm",
          "recommender", "decoder", "speech")  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def probe():
    if BUILD.name != "build":
        pytest.skip("sanitizers allocate and lock on their own")
    if sys.platform != "linux":
        pytest.skip("the program that counts knows the C library of Linux")
    if not PROBE.exists():
        pytest.skip(f"{PROBE} is not there: make programs")


def counts(path, threads, lists):
    given = [x for paths in lists for x in ("--", *paths)][1:]
    done = subprocess.run([PROBE, path, str(threads), str(RUNS), *given], capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return {name: int(count) for name, count in map(str.split, done.stdout.splitlines())}


def check(program, lists, folder, headers=MOST_HEADERS, blocks=0):
    """Runs of a captured program with lists of inputs that take turns."""
    cfx.save(program, folder / "model.cfx")
    paths = []
    for i, inputs in enumerate(lists):
        paths.append([folder / f"{i}.{k}.npy" for k in range(len(inputs))])
        for path, x in zip(paths[-1], inputs):
            numpy.save(path, x.numpy())
    alone = counts(folder / "model.cfx", 1, paths)
    assert alone.pop("headers") <= headers
    assert alone.pop("blocks") <= blocks
    assert set(alone.values()) == {0}, alone
    shared = counts(folder / "model.cfx", 2, paths)
    assert shared["headers"] <= headers
    assert shared["blocks"] <= blocks + FIRST_USE
    assert shared["locks"] == 0 and shared["maps"] == 0


@pytest.mark.parametrize("name", MODELS)
def test_a_run_asks_for_nothing(name, tmp_path):
    model, inputs = small(name)
    with torch.no_grad():
        captured = cfx.capture(model, *inputs)
    check(captured, [inputs], tmp_path, blocks=BLOCKS.get(name, 0))


SIZES = {
    "resnet18": lambda x: (torch.randn(2, 3, 48, 80),),
    "mobilenet_v3": lambda x: (torch.randn(3, 3, 96, 64),),
    "bert": lambda *given: tuple(x[:, :-3].contiguous() for x in given),
    "gpt2": lambda x: (x[:, :-3].contiguous(),),
    "mlp": lambda x: (torch.cat([x, x, x]),),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_take_turns_ask_for_nothing(name, tmp_path):
    model, inputs = small(name)
    with torch.no_grad():
        captured = cfx.capture(model, *inputs)
    check(captured, [inputs, SIZES[name](*inputs)], tmp_path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ("mlp", "resnet18", "mobilenet_v3", "bert"))
def test_quantized_models_ask_for_nothing(name, tmp_path):
    from cfx import quantize

    model, inputs = small(name)
    with torch.no_grad():
        prepared = quantize.prepare_fx(cfx.capture(model, *inputs),
                                       quantize.get_default_qconfig_mapping(), inputs)
        prepared(*inputs)
        quantized = quantize.convert_fx(prepared)
    check(quantized, [inputs], tmp_path)
