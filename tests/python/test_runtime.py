"""cfx.runtime: .cfx files that run without torch: inputs of any library, state, threads, errors."""
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import cfx
import cfx.runtime
from cfx import _core

EXAMPLE = Path(os.environ.get("CFX_BUILD", Path(__file__).resolve().parents[2] / "build"),
               "examples/run_package")

LINEAR = """graph():
  %x = placeholder[target=x]()
  %scale = placeholder[target=scale](2.0)
  %fc = call_module[target=fc](%x)
  %y = call_function[target=operator.mul](%fc, %scale)
  output(%y)
"""
MODULES = """graph():
  output({"training": False, "modules": [("fc", "torch.nn.Linear", False, {"in_features": 3,
    "out_features": 2}, (), ())], "tensors": [("fc.weight", "parameter", True, True, None, None),
    ("fc.bias", "parameter", True, True, None, None)]})
"""
NO_MODULES = 'graph():\n  output({"training": False, "modules": [], "tensors": []})\n'
COUNTING = """graph():
  %x = placeholder[target=x]()
  %calls = placeholder[target=calls]()
  %seen = placeholder[target=seen]()
  %more = call_function[target=operator.add](%calls, 1)
  %kept = call_method[target=add_](%seen, %x)
  %y = call_function[target=operator.mul](%kept, %more)
  output((%y, %more, %kept))
"""
COUNTING_SIGNATURE = """graph():
  output({"inputs": [("x", "tensor", torch.float32, (2,))],
          "state": [("calls", "int", 5), ("seen", "tensor", torch.float32, (2,))],
          "results": [("result", False), ("calls", True), ("seen", True)],
          "guards": "", "structure": None})
"""
APPLIED = """graph():
  %x = placeholder[target=x]()
  %y = call_function[target=torch.NAME](%x)
  output(%y)
"""
GUARDED = """graph():
  output({"inputs": [("x", "tensor", torch.float32, ("n", 2))], "state": [], "results": None,
          "guards": "size program \\"m.py:3\\": x.shape[0] > 1 is ANSWER\\n", "structure": None})
"""
WEIGHTS = {"fc.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
           "fc.bias": np.array([0, 1], dtype=np.float32)}


def save(path, texts, tensors):
    _core._save_package(path, "Net", texts, tensors, None)
    return path


@pytest.fixture
def linear(tmp_path):
    return save(tmp_path / "linear.cfx", {"graph.ir": LINEAR, "module.ir": MODULES}, WEIGHTS)


@pytest.fixture
def counting(tmp_path):
    texts = {"graph.ir": COUNTING, "module.ir": NO_MODULES, "signature.ir": COUNTING_SIGNATURE}
    return save(tmp_path / "counting.cfx", texts, {"seen": np.ones(2, np.float32)})


@pytest.fixture
def guarded(tmp_path):
    texts = {"graph.ir": APPLIED.replace("NAME", "neg"), "module.ir": NO_MODULES,
             "signature.ir": GUARDED.replace("ANSWER", "True"),
             "graphs/1/graph.ir": APPLIED.replace("NAME", "exp"),
             "graphs/1/signature.ir": GUARDED.replace("ANSWER", "False")}
    return save(tmp_path / "guarded.cfx", texts, {})


def test_arguments_by_position_and_by_name(linear):
    run = cfx.runtime.load(linear, threads=1)
    x = np.ones((1, 3), np.float32)
    for y in (run(x), run(x=x), run(x, 2.0), run(x, scale=2.0), run(scale=2.0, x=x)):
        assert isinstance(y, np.ndarray) and y.tolist() == [[6.0, 26.0]]
    assert run(x, scale=0.5).tolist() == [[1.5, 6.5]]
    for args, kwargs, why in (
        ((x, 1.0, 2), {}, "too many inputs"), ((x,), {"x": x}, "'x' is given twice"),
        ((x,), {"size": 3}, "unexpected arguments: size"), ((), {}, "'x'"),
        ((), {"scale": 1.0}, "'x'"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=why):
            run(*args, **kwargs)


def test_results_belong_to_the_library_of_the_inputs(linear):
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **kwargs):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    run = cfx.runtime.load(linear)
    x = np.ones((1, 3), np.float32)
    assert isinstance(run(x), np.ndarray)
    for given in (cfx.Tensor(x), Foreign(x)):
        result = run(given)
        assert isinstance(result, cfx.Tensor) and result.tolist() == [[6.0, 26.0]]
    torch = pytest.importorskip("torch")
    assert isinstance(run(torch.ones(1, 3)), torch.Tensor)


def test_sources_and_weights(linear, tmp_path):
    x = np.ones((1, 3), np.float32)
    want = [[6.0, 26.0]]
    assert cfx.runtime.load(str(linear))(x).tolist() == want
    assert cfx.runtime.load(linear.read_bytes())(x).tolist() == want
    assert cfx.runtime.load(linear, map=False, verify=True)(x).tolist() == want
    texts = {"graph.ir": LINEAR, "module.ir": MODULES}
    outside = save(tmp_path / "outside.cfx", texts, None)
    cfx.save_weights(WEIGHTS, tmp_path / "w.safetensors")
    for weights in (WEIGHTS, tmp_path / "w.safetensors"):
        assert cfx.runtime.load(outside, weights=weights)(x).tolist() == want
    with pytest.raises(ValueError, match="kept elsewhere"):
        cfx.runtime.load(outside)
    with pytest.raises(TypeError, match="weights must be"):
        cfx.runtime.load(outside, weights=3)
    with pytest.raises(OSError):
        cfx.runtime.load(tmp_path / "nowhere.cfx")


def test_a_signature_can_be_read(counting, linear):
    run = cfx.runtime.load(counting)
    assert run.model == "Net" and len(run.graphs) == 1
    assert run.signature.inputs == (("x", "tensor", "float32", (2,), False),)
    assert [row.name for row in run.signature.state] == ["calls", "seen"]
    assert run.signature.results == ("result",)
    assert str(run.signature) == ("x: float32[2]\ncalls: int (state, first 5)\n"
                                  "seen: float32[2] (state)\n"
                                  "-> result, calls (state), seen (state)")
    assert repr(run) == "<cfx.runtime.Model Net(x)>"
    assert str(cfx.runtime.load(linear).signature) == "x: any\nscale: any"


def test_guards_choose_the_graph(guarded):
    run = cfx.runtime.load(guarded)
    assert run(np.zeros((2, 2), np.float32)).tolist() == [[-0.0, -0.0]] * 2
    assert run(np.zeros((1, 2), np.float32)).tolist() == [[1.0, 1.0]]
    with pytest.raises(cfx.runtime.InputError, match=r"'x' must be float32\[n, 2\]; got float32"):
        run(np.zeros(3, np.float32))
    assert [str(g).splitlines()[0] for g in run.graphs] == ["x: float32[n, 2]"] * 2


def test_sessions_have_their_own_state(counting):
    run = cfx.runtime.load(counting)
    one, other = run.session(), run.session()
    x = np.ones(2, np.float32)
    assert [one(x)[0].tolist() for _ in range(2)] == [[12.0, 12.0], [21.0, 21.0]]
    assert other(x)[0].tolist() == [12.0, 12.0]
    assert run(x)[0].tolist() == [12.0, 12.0]  # its own
    assert run(x)[0].tolist() == [21.0, 21.0]


def in_threads(work, n=8):
    failures = []

    def guarded():
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_threads_call_one_model(guarded, counting):
    run = cfx.runtime.load(guarded)

    def work():
        for rows in (1, 2) * 25:
            want = -1.0 if rows == 2 else np.exp(np.float32(1))
            assert np.allclose(run(np.ones((rows, 2), np.float32)), want)

    in_threads(work)
    kept = cfx.runtime.load(counting)
    x = np.zeros(2, np.float32)
    in_threads(lambda: [kept(x) for _ in range(25)])
    assert kept(x)[0].tolist() == [206.0, 206.0]  # 5 + 8 * 25 calls, and this one


def test_eight_threads_run_one_model_a_thousand_times(tmp_path):
    """Products, a normalisation and a branch on data, with the pool of the runtime: the same bits
    in each of 8,000 runs."""
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)
            self.norm = torch.nn.LayerNorm(64)

        def forward(self, x):
            y = self.norm(x + self.down(self.up(x).relu()))
            if y.sum() > 0:
                y = y * 2
            return y

    torch.manual_seed(0)
    cfx.save(cfx.script(Net().eval()), tmp_path / "net.cfx")
    run = cfx.runtime.load(tmp_path / "net.cfx", threads=2)
    inputs = [np.random.default_rng(i).standard_normal((1 + i, 64), np.float32) for i in range(8)]
    wanted = [run(x).tobytes() for x in inputs]
    assert len(set(wanted)) == 8
    turn = iter(range(8))

    def work():
        i = next(turn)
        for _ in range(1000):
            assert run(inputs[i]).tobytes() == wanted[i]

    in_threads(work)


def test_the_lock_is_released_while_it_computes(tmp_path):
    """A thread that only counts goes on: Python's lock is not held for the whole of a long run."""
    texts = {"graph.ir": APPLIED.replace("NAME", "sort"), "module.ir": NO_MODULES}
    run = cfx.runtime.load(save(tmp_path / "sort.cfx", texts, {}), threads=1)
    x = np.random.default_rng(0).random(3_000_000, np.float32)
    counted = [0]
    done = threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    run(x)
    after = counted[0]
    done.set()
    thread.join()
    assert after - before > 1000


def test_what_cannot_run_is_named(tmp_path):
    graph = LINEAR.replace("operator.mul", "my.own.f")
    path = save(tmp_path / "own.cfx", {"graph.ir": graph, "module.ir": MODULES}, WEIGHTS)
    with pytest.raises(TypeError, match=r"graph.ir: 1 call cannot run without Python: .*my\.own"):
        cfx.runtime.load(path)
    broken = tmp_path / "broken.cfx"
    broken.write_bytes(b"PK" * 100)
    with pytest.raises(ValueError):
        cfx.runtime.load(broken)


PROGRAM = r'''
import sys
import textwrap

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("torch is not here")

sys.meta_path.insert(0, Blocked())
import numpy as np
import cfx

linear, counting = sys.argv[1:]
x = np.ones((1, 3), np.float32)
run = cfx.runtime.load(linear)
y = run(x, scale=0.5)
assert isinstance(y, np.ndarray) and y.tolist() == [[1.5, 6.5]]
s = cfx.runtime.load(counting).session()
assert s(np.ones(2, np.float32))[0].tolist() == [12.0, 12.0]
assert "torch" not in sys.modules
print("ran")
'''


def test_without_torch(linear, counting):
    home = os.path.dirname(os.path.dirname(cfx.__file__))
    done = subprocess.run([sys.executable, "-c", PROGRAM, linear, counting], text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": home})
    assert done.stdout == "ran\n", done.stderr


def test_a_module_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8),
                              torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(128, 5)).eval()
    cfx.save(cfx.symbolic_trace(net), tmp_path / "net.cfx")
    x = torch.randn(2, 3, 4, 4)
    inplace = torch.nn.Sequential(torch.nn.ReLU(inplace=True), net)  # writes to its input alone
    cfx.save(cfx.symbolic_trace(inplace), tmp_path / "inplace.cfx")
    assert torch.allclose(cfx.runtime.load(tmp_path / "inplace.cfx")(x.clone()), net(x.relu()),
                          atol=1e-5)
    cfx.save(cfx.symbolic_trace(net.train()), tmp_path / "train.cfx")
    with pytest.raises(NotImplementedError, match="writes to weights.*model.eval"):
        cfx.runtime.load(tmp_path / "train.cfx")
    net.eval()
    run = cfx.runtime.load(tmp_path / "net.cfx")
    with torch.no_grad():
        assert torch.allclose(run(x), net(x), atol=1e-5)
    assert np.allclose(run(x.numpy()), net(x).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_layers_with_functions_as_settings(activation, tmp_path):
    """The activation of a layer of transformers is a function: torch's in Python, a name in C."""
    torch = pytest.importorskip("torch")
    from cfx import package

    net = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(
        8, 2, 16, activation=activation, batch_first=True), 2).eval()  # fmt: skip
    x = torch.randn(2, 3, 8)
    cfx.save(cfx.capture(net, x), tmp_path / "net.cfx")
    assert torch.allclose(cfx.runtime.load(tmp_path / "net.cfx")(x), net(x), atol=1e-5)
    layer = cfx.load(tmp_path / "net.cfx").get_submodule("layers.1")
    assert layer.activation is net.layers[1].activation
    module = package._make_module(("0", "torch.nn.TransformerEncoderLayer", False,
                                   {"activation": activation}, (), ()))  # as C writes it
    assert module.activation is net.layers[1].activation


@pytest.mark.skipif(not EXAMPLE.exists(), reason="needs make programs")
def test_the_example_in_c(linear, counting, tmp_path):
    cfx.save_npy(np.ones((1, 3), np.float32), tmp_path / "x.npy")
    cfx.save_npy(np.ones(2, np.float32), tmp_path / "two.npy")

    def example(*words):
        done = subprocess.run([EXAMPLE, *words], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    assert example(linear, tmp_path / "x.npy") == (0, "float32[1, 2] 6 26\n", "")
    assert example(counting, tmp_path / "two.npy") == (0, "float32[2] 12 12\n", "")
    status, out, why = example(counting, tmp_path / "x.npy")
    assert (status, out) == (1, "") and why.startswith("the input 'x' must be float32[2]; got")
    status, out, why = example()  # asked how it is used
    assert (status, out) == (0, "") and why.startswith("usage:")
    assert example(linear)[0] == 1


# ---- captured models ---------------------------------------------------------------------------

CAPTURED = """
    import collections, dataclasses, sys
    import torch, cfx

    @dataclasses.dataclass
    class Answer:
        logits: object
        size: int

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.calls, self.cache = torch.nn.Linear(4, 4), 0, []

        def forward(self, batch, *, scale=2.0, names=("a",)):
            self.calls += 1
            x = self.fc(batch["x"]) * scale
            self.cache = self.cache[-1:] + [x]
            total = sum(self.cache)
            return Answer({"total": total, "calls": self.calls}, x.shape[0])

    torch.manual_seed(0)
    net = Net().eval()
    x = torch.ones(2, 4)
    gm = cfx.capture(net, {"x": x}, scale=2.0, recapture=True)
    expected = []
    for i in range(4):
        out = gm({"x": x * i}, scale=1.0 + i)
        expected.append(float(out.logits["total"].sum()))
    gm = cfx.capture(Net().eval(), {"x": x}, scale=2.0, recapture=True)
    gm.load_state_dict(net.state_dict())
    for i in range(3):
        gm({"x": x}, scale=2.0)
    gm.calls, gm.cache = 0, []
    cfx.save(gm, sys.argv[1])
    print(expected)
"""

UNCAPTURED = """
    import sys
    sys.modules["torch"] = None
    import numpy, cfx.runtime
    run = cfx.runtime.load(sys.argv[1])
    other = run.session()
    found = []
    for i in range(4):
        out = run({"x": numpy.ones((2, 4), numpy.float32) * i}, scale=1.0 + i)
        assert out.size == 2 and out.logits["calls"] == i + 1, out
        found.append(float(out.logits["total"].sum()))
    assert other({"x": numpy.ones((3, 4), numpy.float32)}, scale=1.0).logits["calls"] == 1
    try:
        run([1], scale=1.0)
    except TypeError as error:
        assert "nested in another way" in str(error)
    try:
        run({"x": numpy.ones((2, 4), numpy.float32)}, scale=1.0, names=("b",))
    except TypeError as error:
        assert "captured with 'a'" in str(error), error
    print(type(out).__name__, found)
"""


def run_script(source, *args):
    package = str(Path(cfx.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(source), *args], text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": package})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_captured_models_run_without_torch(tmp_path):
    """Nested arguments and results, a cache that grows, a counter: as the captured module."""
    expected = eval(run_script(CAPTURED, str(tmp_path / "net.cfx")))
    name, _, found = run_script(UNCAPTURED, str(tmp_path / "net.cfx")).partition(" ")
    assert name == "Answer"
    assert all(abs(a - b) < 1e-4 for a, b in zip(expected, eval(found)))
