"""Captures in many threads at once, while others run models: each gets the graph that it gets
alone, nobody sees the hooks of another, and nothing is left behind."""
import sys
import threading

import pytest

torch = pytest.importorskip("torch")
import torch.utils.checkpoint
from test_threads import THREADS, together
from torch import nn
from torch.nn import functional as F

import cfx
from cfx.capturing import CaptureError, capture


def clipped(x):
    """Asks for data: it is hooked while a model is captured that calls it."""
    if x.sum() > 0:
        return x - 1
    return x + 1


def scaled(x, by):
    return x * by


cfx.wrap("scaled")


class Model(nn.Module):
    """Another one for each number; all of them call the same functions."""

    def __init__(self, number):
        super().__init__()
        torch.manual_seed(number)
        self.number = number
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(1 + number % 3))
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("mean", torch.zeros(4))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        for layer in self.layers:
            x = torch.relu(layer(clipped(x)))
        self.mean.mul_(0.5).add_(x.mean(0).detach())
        x = torch.utils.checkpoint.checkpoint(torch.tanh, x, use_reentrant=False)
        if torch.is_grad_enabled():  # another graph, which computes the same
            x = x * 1.0
        for i in range(self.number):
            x = scaled(x, i + 1.0) + x.shape[0]
        return F.dropout(self.norm(x), 0.5, self.training), self.calls


def state_of(model):
    return [t.detach().clone() for t in (*model.parameters(), *model.buffers())], model.calls


def unchanged(model, before):
    tensors, calls = state_of(model)
    return calls == before[1] and all(map(torch.equal, tensors, before[0]))


HOOKED = [clipped, scaled, Model.forward, torch.manual_seed, torch.set_rng_state,
          torch.autograd.Function.apply.__func__, torch.utils.checkpoint.checkpoint, torch.cond,
          torch.jit.is_tracing, nn.Module._wrapped_call_impl, nn.Module.__getattr__]  # fmt: skip


def hooks():
    return ([(f.__code__, f.__kwdefaults__, f.__dict__.get("__signature__")) for f in HOOKED],
            [torch.is_grad_enabled, torch.is_inference_mode_enabled], vars(Model).copy(),
            torch._C._len_torch_function_stack())  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_is_left():
    before, interval = hooks(), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # in the middle of everything
    yield
    sys.setswitchinterval(interval)
    for now, then in zip(hooks(), before):
        if isinstance(now, list):
            assert not [f for f, a, b in zip(HOOKED, now, then) if a != b]
        assert now == then


@pytest.mark.parametrize("training", [True, False])
def test_same_graphs_as_alone(training):
    models = [Model(i).train(training) for i in range(THREADS)]
    x = torch.randn(3, 4)
    expected = [str(capture(model, x).graph) for model in models]
    before = [state_of(model) for model in models]
    shown = [[] for _ in models]

    def capturing(i):
        for _ in range(5):
            shown[i].append(str(capture(models[i], x).graph))

    together(*(lambda i=i: capturing(i) for i in range(THREADS)))
    assert shown == [[graph] * 5 for graph in expected]
    assert len(set(expected)) > 3
    assert all(map(unchanged, models, before))


def test_one_model_in_all_threads():
    model, x = Model(2), torch.randn(3, 4)
    expected, before = str(capture(model, x).graph), state_of(model)
    shown, results = [], []

    def capturing():
        for _ in range(5):
            gm = capture(model, x)
            shown.append(str(gm.graph))
            results.append(type(gm).__name__)

    together(*[capturing] * THREADS)
    assert shown == [expected] * 5 * THREADS and set(results) == {"Model"}
    assert unchanged(model, before)
    assert type(model) is Model


@pytest.mark.parametrize("failing", [False, True])
def test_running_while_others_capture(failing):
    """Eager models, captured ones and functions compute what they compute alone, in train mode and
    with gradients, while models of the same classes are captured."""
    captured_models = [Model(i) for i in range(THREADS // 2)]
    models = [Model(i) for i in range(THREADS)]
    x = torch.randn(3, 4)
    for i, model in enumerate(models):
        models[i] = (model.eval() if i % 2 else capture(model.eval(), x)).eval()
    expected = []
    for model in models:
        for grad in (False, True):
            with torch.set_grad_enabled(grad):
                want = model(x)[0].detach()
        expected.append(want)
        model.calls = 0
    graphs = [str(capture(model, x).graph) for model in captured_models]
    shown = []

    def capturing(i):
        for n in range(6):
            if failing and n % 2:
                with pytest.raises(Trouble, match=f"{i}"):
                    capture(Failing(i), x)
            shown.append((i, str(capture(captured_models[i], x).graph)))

    def running(i):
        model = models[i]
        grad = i % 4 < 2
        for n in range(25):
            with torch.set_grad_enabled(grad):
                y, calls = model(x)
                assert torch.is_grad_enabled() == grad and y.requires_grad == grad
            assert type(y) is torch.Tensor and calls == n + 1
            assert torch.equal(y, expected[i])
            assert not torch.jit.is_tracing() and type(scaled(x, 2)) is torch.Tensor
            assert torch.equal(clipped(x), x - 1 if x.sum() > 0 else x + 1)

    together(*(lambda i=i: capturing(i) for i in range(len(captured_models))),
             *(lambda i=i: running(i) for i in range(len(models))))  # fmt: skip
    assert sorted(shown) == sorted((i, g) for i, g in enumerate(graphs) for _ in range(6))


class Trouble(Exception):
    pass


class Failing(Model):
    """Raises behind everything that a capture would have to put back."""

    def forward(self, x):
        y, calls = super().forward(x)
        raise Trouble(str(self.number))


def test_training_while_others_capture():
    """A thread trains a model while others capture: gradients and dropout are its own."""
    x, y = torch.randn(16, 4), torch.randn(16, 4)

    def train(model, steps):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x)[0], y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    def model():
        made = Model(1)
        made.forward = lambda x: (made.norm(made.layers[0](x)), 0)
        return made

    want = train(model(), 30)
    got = []
    others = [Model(i) for i in range(4)]
    together(lambda: got.append(train(model(), 30)),
             *(lambda m=m: [capture(m, x) for _ in range(5)] for m in others))  # fmt: skip
    assert got == [want]


def test_a_thread_that_the_program_starts():
    """What another thread computes is not of the run: its tensors are refused with the line."""

    def forward(x):
        results = []

        def work():
            try:
                results.append(torch.ones(3) * 2)
                results.append(x + 1)
            except CaptureError as error:
                results.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if isinstance(results[1], CaptureError):
            raise results[1]
        return results[1] + results[0]

    with pytest.raises(CaptureError, match="test_capture_threads.py:.*in another thread"):
        capture(forward, torch.ones(3))
    assert torch.equal(forward(torch.ones(3)), torch.full((3,), 4.0))


def test_functions_in_all_threads():
    """One cfx.function called by all threads for several kinds of inputs."""

    @cfx.function
    def f(x, n):
        return clipped(x) * n if x.dim() > 1 else x[None] * n

    inputs = [(torch.randn(shape), n) for shape in ((2,), (3, 2)) for n in (2, 1.5)]
    want = [torch.Tensor.clone(clipped(x) * n if x.dim() > 1 else x[None] * n) for x, n in inputs]

    def calling(i):
        for k in range(12):
            at = (i + k) % len(inputs)
            assert torch.equal(f(*inputs[at]), want[at])

    together(*(lambda i=i: calling(i) for i in range(THREADS)))
    assert len(f.captured.graphs) >= 4


def test_captures_of_other_modes_in_threads():
    """A module whose other mode is captured on demand, called by several threads at once."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.0), nn.ReLU())
    gm = capture(model, torch.ones(2, 4), recapture=True)
    x = [torch.randn(n, 4) for n in range(1, 5)]
    want = [model(t) for t in x]

    def calling(i):
        for k in range(10):
            assert torch.equal(gm(x[(i + k) % 4]), want[(i + k) % 4])

    together(*(lambda i=i: calling(i) for i in range(THREADS)))
