"""cfx.compile and cfx.profile: planned programs give what the modules give."""
import copy
import json
import math
import pickle
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import cfx  # noqa: E402
import random_control  # noqa: E402
import zoo  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.fc = torch.nn.Linear(8, 5)

    def forward(self, x):
        y = torch.nn.functional.relu_(self.norm(self.conv(x)))
        return self.fc(y.mean((2, 3)))


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().eval()


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_any_size(net):
    fast = cfx.compile(net, torch.randn(2, 3, 8, 8))
    with torch.no_grad():
        for n, size in ((2, 8), (5, 9), (2, 8), (1, 16)):
            x = torch.randn(n, 3, size, size)
            close(fast(x), net(x))
    assert fast.plans.count("plan of") == 3
    assert fast.frozen and "frozen" in repr(fast)


def test_frozen_tensors_cannot_be_replaced(net):
    fast = cfx.compile(cfx.symbolic_trace(net))
    with pytest.raises(TypeError, match="cfx.compile again"):
        fast.state["fc.bias"] = torch.zeros(5)
    assert not cfx.lower(cfx.symbolic_trace(net)).frozen


def test_copies_are_compiled_too(net):
    fast = cfx.compile(net, torch.randn(2, 3, 8, 8))
    x = torch.randn(3, 3, 8, 8)
    for other in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
        close(other(x), fast(x))
        assert other.frozen and "plan of" in other.plans


@pytest.mark.parametrize("name", zoo.MODELS)
def test_models(name):
    model, inputs = zoo.make(name, small=True)
    with torch.no_grad():
        want = model(*inputs)
        fast = cfx.compile(model, *inputs)
        for _ in range(2):
            torch.testing.assert_close(fast(*inputs), want, rtol=1e-4, atol=1e-4)
    assert "plan of" in fast.plans


def test_products_of_bfloat16(net):
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        want = net(x)
    fast = cfx.compile(net, x, precision="bf16")
    low = fast(x)
    torch.testing.assert_close(low, want, rtol=2e-2, atol=2e-2)
    assert (low - want).abs().max() > 1e-5 and "bf16" not in cfx.compile(net, x).plans
    for other in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
        assert (other(x) == low).all()
    with pytest.raises(ValueError, match="'float32' or 'bf16', not 'bf17'"):
        cfx.compile(net, x, precision="bf17")


@pytest.mark.parametrize("isa", ["plain", "avx2", "avx512"])
def test_instruction_sets(net, isa):
    x = torch.randn(2, 3, 11, 7)
    runtime = cfx.Runtime(threads=2, isa=isa)
    with torch.no_grad():
        close(cfx.compile(net, x, runtime=runtime)(x), net(x))


def test_nan_and_infinity(net):
    x = torch.randn(2, 3, 8, 8)
    x[0, 0, 0, 0], x[1, 1, 2, 2] = float("nan"), float("inf")
    fast = cfx.compile(net, x)
    with torch.no_grad():
        assert torch.equal(torch.isnan(fast(x)), torch.isnan(net(x)))


def test_inputs_of_any_layout(net):
    fast = cfx.compile(net, torch.randn(2, 3, 8, 8))
    base = torch.randn(2, 8, 16, 3)
    with torch.no_grad():
        for x in (base[:, :, ::2].permute(0, 3, 1, 2), torch.randn(1, 3, 8, 8).expand(2, 3, 8, 8),
                  torch.randn(2, 3, 8, 8).contiguous(memory_format=torch.channels_last)):
            close(fast(x), net(x))


@pytest.mark.parametrize("make", [
    lambda: (torch.nn.Conv2d(1, 20, 3, padding=1), torch.randn(2, 1, 9, 11)),
    lambda: (torch.nn.Conv2d(1, 20, 3, stride=2), torch.randn(1, 1, 12, 9)),
    lambda: (torch.nn.Conv1d(1, 20, 10, stride=5), torch.randn(2, 1, 60)),
])
def test_one_channel_has_any_layout(make):
    """Pictures and lines of one channel lie in both layouts at once; packed kernels take them."""
    conv, x = make()
    conv = torch.nn.Sequential(conv, torch.nn.ReLU(), torch.nn.Flatten(1), torch.nn.Tanh()).eval()
    fast = cfx.compile(conv, x)
    with torch.no_grad():
        close(fast(x), conv(x))
    assert " tiles of " in fast.plans


def test_bags_of_rows():
    for mode in ("sum", "mean", "max"):
        bag = torch.nn.EmbeddingBag(50, 7, mode=mode, padding_idx=3)
        ids = torch.randint(50, (5, 4))
        close(cfx.compile(bag, ids)(ids), bag(ids))
    bag = torch.nn.EmbeddingBag(50, 14).half()
    close(cfx.compile(bag, ids)(ids), bag(ids))


def test_what_is_written_to_inputs():
    class Writes(torch.nn.Module):
        def forward(self, x, y):
            x.add_(1)
            z = torch.exp(y)
            z[0] = x[0]
            return z * 2

    x, y = torch.randn(3, 4), torch.randn(3, 4)
    fast = cfx.compile(cfx.script(Writes()))
    for _ in range(2):
        a, b = x.clone(), y.clone()
        c, d = x.clone(), y.clone()
        close(fast(a, b), Writes()(c, d))
        close(a, c)
        same, other = x.clone(), x.clone()  # one memory under two names
        close(fast(same, same), Writes()(other, other))


def slices_of_a_constant(x):
    data = torch.zeros(6)
    first, second, third = data[0:2], data[1:3], data[4:5]
    second.add_(x[:2])
    first.mul_(2)
    third.sub_(1)
    return data, first


def one_slice_of_a_constant(x):
    data = torch.arange(6.0)
    data[1:2].add_(x[0])
    return data


def constants_in_a_list(x):
    data = torch.zeros(9)
    parts = [data[0:1], data[0:3], data.expand(2, 9)]
    parts[0].add_(x[0])
    return parts


@pytest.mark.parametrize("function", [slices_of_a_constant, one_slice_of_a_constant,
                                      constants_in_a_list])
def test_what_is_written_to_views_of_constants(function):
    """However little of the constant a view sees, it is the same memory, anew in each run."""
    x = torch.randn(6)
    fast = cfx.compile(cfx.capture(function, x), x)
    for given in (x, x + 1, x):
        found, wanted = fast(given), function(given)
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)
        for a, b in zip(*map(torch.utils._pytree.tree_leaves, (found, wanted))):
            assert a.stride() == b.stride()


def test_control_flow():
    def f(x):
        while x.sum() < 10:
            x = x * 2 + 1
        if x.max() > 3:
            return torch.relu(x) @ x.t()
        return x

    scripted = cfx.script(f)
    fast = cfx.compile(scripted)
    for scale in (0.1, 1.0, 30.0, 0.1):
        x = torch.rand(3, 3) * scale
        close(fast(x), f(x))


def test_threads_share_a_program(net):
    fast = cfx.compile(net, torch.randn(2, 3, 8, 8), threads=2)
    wrong = []

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(20):
            x = torch.randn(1 + seed % 3, 3, 8, 8, generator=generator)
            with torch.no_grad():
                if not torch.allclose(fast(x), net(x), rtol=1e-4, atol=1e-5):
                    wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def random_inputs(seed):
    rng = random.Random(seed)
    tensors = [torch.tensor([[rng.randrange(8) / 4 - 1 for _ in range(3)] for _ in range(2)])
               for _ in range(2)]
    return [*tensors, rng.randrange(5), rng.random() < 0.5]


def test_random_graphs():
    """Branches, loops and writes: planned and one by one, results and arguments are the same."""
    for seed in range(500):
        module = cfx.GraphModule(torch.nn.Module(), cfx.parse(random_control.text(seed)))
        lowered, fast = cfx.lower(module), cfx.compile(module)
        for k in range(3):
            one, other = random_inputs(seed + k), random_inputs(seed + k)
            want, got = lowered(*one), fast(*other)
            torch.testing.assert_close((got, other), (want, one), rtol=1e-5, atol=1e-6,
                                       equal_nan=True, msg=lambda text: f"seed {seed}: {text}")


def test_back_ends(net, monkeypatch):
    with pytest.raises(ValueError, match="'auto', 'builtin' or 'onednn'"):
        cfx.compile(net, torch.randn(1, 3, 8, 8), backend="mkl")
    monkeypatch.setenv("CFX_ONEDNN", "")
    with pytest.raises(RuntimeError, match="oneDNN was not found"):
        cfx.compile(net, torch.randn(1, 3, 8, 8), backend="onednn")
    cfx.compile(net, torch.randn(1, 3, 8, 8), backend="auto")
    with pytest.raises(TypeError, match="not both"):
        cfx.compile(net, torch.randn(1, 3, 8, 8), threads=1, runtime=cfx.Runtime())


@pytest.mark.parametrize("shape, expanded", [((1, 8), (3, 8)), ((1, 1, 8), (3, 1, 8)),
                                             ((2, 1, 8), (2, 3, 8)), ((1, 2, 8), (3, 2, 8))])
@torch.no_grad()
def test_rows_that_are_repeated(shape, expanded):
    """Inputs with one row in memory, however many they have."""
    linear = torch.nn.Linear(8, 5)
    norm = torch.nn.BatchNorm1d(8).eval()
    x = torch.randn(shape).expand(expanded)
    for model, given in (linear, x), (norm, x.transpose(1, -1) if x.ndim == 3 else x):
        close(cfx.lower(cfx.capture(model, given))(given), model(given))
        close(cfx.compile(model, given)(given), model(given))


def test_a_back_end_that_is_broken(net, monkeypatch, tmp_path):
    """Who leaves the choice to cfx is told, and gets the same results; who asks for oneDNN is not
    given something else."""
    x = torch.randn(1, 3, 8, 8)
    broken = tmp_path / "libdnnl.so.3"
    broken.write_text("not a library")
    monkeypatch.setenv("CFX_ONEDNN", str(broken))
    with pytest.raises(NotImplementedError, match="oneDNN is not available"):
        cfx.compile(net, x, backend="onednn")
    with pytest.warns(UserWarning, match="own kernels: oneDNN is not available") as warned:
        fast = cfx.compile(net, x, backend="auto")
    assert warned[0].filename == __file__
    torch.testing.assert_close(fast(x), net(x), rtol=1e-4, atol=1e-5)
    assert "oneDNN" not in fast.plans


def test_plans_can_be_read_while_another_thread_tunes(net, monkeypatch):
    """Who tunes asks for signals, and so for Python's lock."""
    monkeypatch.setenv("CFX_CACHE", "")
    fast = cfx.compile(net, torch.randn(1, 3, 8, 8), threads=1, tune=True)
    sizes = [torch.randn(1, 3, n, 12) for n in range(8, 14)]
    with ThreadPoolExecutor(1) as other:
        done = other.submit(lambda: [fast(x) for x in sizes])
        while not done.done():
            fast.plans
        torch.testing.assert_close(done.result(), [net(x) for x in sizes], rtol=1e-4, atol=1e-5)


def test_tuning_is_kept(net, tmp_path, monkeypatch):
    monkeypatch.setenv("CFX_CACHE", str(tmp_path / "kept"))
    x = torch.randn(1, 3, 8, 8)
    with torch.no_grad():
        close(cfx.compile(net, x, tune=True)(x), net(x))


def test_profile(net, tmp_path):
    x = torch.randn(2, 3, 8, 8)
    fast = cfx.compile(net, x, threads=1)
    profile = cfx.profile(fast, x, runs=3)
    assert {step.runs for step in profile.steps} == {3}
    assert any(step.kernel.startswith("convolution 3x3") for step in profile.steps)
    assert all(step.file and step.file.endswith("test_compile.py") for step in profile.steps)
    assert "GFLOP/s" in str(profile) and len(json.loads(profile.to_json())["steps"]) > 2
    profile.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len(events) == 3 * len(profile.steps) and all(e["dur"] >= 0 for e in events)
    assert fast.runtime.threads == 1
    cfx.save(cfx.capture(net, x), tmp_path / "net.cfx")
    assert cfx.profile(cfx.runtime.load(tmp_path / "net.cfx"), x).steps
    with pytest.raises(TypeError, match="cfx.profile takes"):
        cfx.profile(net, x)
    with pytest.raises(ValueError, match="at least 1"):
        cfx.profile(fast, x, runs=0)


class Growing(torch.nn.Module):
    """Reads what it was given so far; gives that and what is new."""

    def __init__(self):
        super().__init__()
        self.fc, self.out = torch.nn.Linear(8, 8), torch.nn.Linear(8, 3)

    def forward(self, x, past):
        new = self.fc(x).view(x.size(0), -1, 2, 4).transpose(1, 2)
        kept = torch.cat([past, new], 2)
        y = torch.nn.functional.scaled_dot_product_attention(new, kept, kept)
        return self.out(y.transpose(1, 2).reshape(x.size(0), -1, 8)), kept


def test_a_cache_grows_in_place():
    torch.manual_seed(0)
    module, past = Growing().eval(), torch.randn(2, 2, 5, 4)
    fast = cfx.compile(module, torch.randn(2, 1, 8), past, append=True)
    wanted, moves = past, 0
    with torch.no_grad():
        for _ in range(60):
            x, before, was = torch.randn(2, 1, 8), past, past.clone()
            y, past = fast(x, before)
            again, other = fast(x, before)
            expected, wanted = module(x, wanted)
            close(y, expected)
            close(past, wanted)
            close(again, expected)
            assert torch.equal(other, past) and torch.equal(before, was)
            assert other.data_ptr() != past.data_ptr()
            moves += past.data_ptr() != before.data_ptr()
    assert moves < 15
    assert past.stride() != wanted.stride()
    copied = pickle.loads(pickle.dumps(fast))
    close(copied(x, before)[0], expected)
    assert copy.deepcopy(fast).state.append


pad = torch.nn.functional.pad
STRIDED = {
    "turned": torch.randn(3, 4).t(),
    "permuted": torch.randn(2, 3, 4).permute(2, 0, 1),
    "channels last": torch.randn(2, 4, 4, 4).contiguous(memory_format=torch.channels_last),
}
STRIDES = {
    "masked_fill": lambda x: x.masked_fill(x > 0, 0.0),
    "glu": lambda x: torch.nn.functional.glu(x, 0),
    "pad, nothing": lambda x: pad(x, (0, 0)), "pad, less": lambda x: pad(x, (-1, 0)),
    "pad, more": lambda x: pad(x, (1, -1)), "pad, value": lambda x: pad(x, (0, 0), value=2.0),
    "roll": lambda x: x.roll(1, 1), "roll, nothing": lambda x: x.roll(0, 1),
    "roll, around": lambda x: x.roll((1, x.shape[1]), (0, 1)),
    "roll, twice": lambda x: x.roll((1, 3), (1, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", STRIDES)
@pytest.mark.parametrize("given", STRIDED)
def test_results_have_the_strides_of_pytorch(given, name):
    x, function = STRIDED[given], STRIDES[name]
    module = type("M", (torch.nn.Module,), {"forward": lambda self, x: function(x)})()
    graph = cfx.capture(module, x)
    wanted = function(x)
    for program in (cfx.lower(graph), cfx.compile(graph, x)):
        found = program(x)
        assert torch.allclose(found, wanted) and found.stride() == wanted.stride()


@pytest.mark.parametrize("approximate", ("none", "tanh"))
def test_gelu_of_large_numbers_is_that_of_float64(approximate):
    x = torch.tensor([math.inf, -math.inf, math.nan, 3e38, -3e38, 12.0, -12.0, 0.0])

    def gelu(x):
        return torch.nn.functional.gelu(x, approximate=approximate)

    graph = cfx.capture(gelu, x)
    wanted = gelu(x.double()).float()
    for program in (cfx.lower(graph), cfx.compile(graph, x)):
        torch.testing.assert_close(program(x), wanted, rtol=1e-6, atol=1e-30, equal_nan=True)


def test_results_keep_their_strides():
    torch.manual_seed(0)
    module, past = Growing().eval(), torch.randn(2, 2, 5, 4)
    fast = cfx.compile(module, torch.randn(2, 1, 8), past)
    with torch.no_grad():
        for _ in range(12):
            x = torch.randn(2, 1, 8)
            past, wanted = fast(x, past)[1], module(x, past)[1]
            close(past, wanted)
            assert past.stride() == wanted.stride()
