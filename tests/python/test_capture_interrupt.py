"""A capture that is interrupted leaves everything as it was, wherever that happens: by a signal, by
an exception that another thread raises in this one, and at any call or return of any function.

A failure names its seed: CFX_SEED=SEED runs the same points again (those of signals as far as the
clock allows)."""
import contextlib
import ctypes
import gc
import os
import random
import signal
import sys
import threading
import time
import warnings

import numpy
import pytest

torch = pytest.importorskip("torch")
import torch.utils.checkpoint
from torch import nn
from torch.nn import functional as F

import cfx
from cfx.capturing import capture

SEED = int(os.environ.get("CFX_SEED") or time.time())
POINTS = 2_000 if os.environ.get("CFX_FULL") == "1" else 200
CACHE = {}


def wrapped(x):
    return x * 2


cfx.wrap("wrapped")


def limit(x):
    """Asks for data: the second run evaluates it from its source."""
    if x.sum() > 3:
        return x - 1
    return x + 1


def doubled(x):
    return x * 2


class Custom(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.count = 0
        self.seen = []

    def forward(self, x):
        self.count += 1
        self.seen.append(x.shape[0])
        return self.norm(self.fc(limit(x)))


class Model(nn.Module):
    """Has whatever a capture has to put back."""

    def __init__(self):
        super().__init__()
        self.inner, self.dropout = Inner(), nn.Dropout(0.5)
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.last = None

    def forward(self, x, state):
        CACHE.setdefault("size", 4)
        x = x.add_(1)
        state["h"] = torch.tanh(state["h"] + x)
        y = self.inner(wrapped(x))
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            self.mean.mul_(0.9).add_(y.mean(0).float())
        with torch.inference_mode(False):
            self.steps = self.steps + 1
        y = self.dropout(y) + F.dropout(state["h"], 0.5, self.training) + torch.rand(4)
        if y.shape[0] > 1:
            y = torch.utils.checkpoint.checkpoint(doubled, y, use_reentrant=False)
        self.last = y.detach()
        return {"y": Custom.apply(y), "rows": x.shape[0]}


def tensors_of(model, inputs):
    x, state = inputs
    named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {**named, "x": x, "h": state["h"]}


HOOKED = [limit, wrapped, doubled, Inner.forward, Model.forward, torch.manual_seed, torch.seed,
          torch.get_rng_state, torch.set_rng_state, torch.autograd.Function.apply.__func__,
          torch.utils.checkpoint.checkpoint, torch.cond, torch.while_loop, torch.jit.is_tracing,
          nn.Module._wrapped_call_impl, nn.Module._call_impl, nn.Module.__getattr__]  # fmt: skip


def of_process():
    """What a capture may change outside of the model."""
    return {
        "codes": [(f.__code__, f.__kwdefaults__, f.__dict__.get("__signature__")) for f in HOOKED],
        "functions": [torch.is_grad_enabled, torch.is_inference_mode_enabled],
        "names": {name: globals()[name] for name in ("wrapped", "limit", "doubled")},
        "grad": torch.is_grad_enabled(), "inference": torch.is_inference_mode_enabled(),
        "dtype": torch.get_default_dtype(), "device": torch.get_default_device(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"),
                     torch.is_autocast_cache_enabled()),
        "function modes": torch._C._len_torch_function_stack(),
        "functions enabled": torch._C._is_torch_function_enabled(),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "tracing": (torch.jit.is_tracing(), cfx._symbolic_trace.is_fx_tracing()),
        "python": random.getstate(),
        "torch": torch.get_rng_state().tolist(),
        "numpy": numpy.random.get_state()[1].tolist(),
    }  # fmt: skip


def of_model(model, inputs):
    """What it may change in the model and the inputs."""
    tensors = tensors_of(model, inputs)
    return {
        "classes": [type(m) for m in model.modules()],
        "training": [m.training for m in model.modules()],
        "attributes": [{k: id(v) for k, v in vars(m).items()} for m in model.modules()],
        "tables": [[list(vars(m)[t]) for t in ("_parameters", "_buffers", "_modules")]
                   for m in model.modules()],
        "plain": (model.inner.count, list(model.inner.seen), model.last),
        "tensors": {name: id(t) for name, t in tensors.items()},
        "contents": {name: t.detach().clone().tolist() for name, t in tensors.items()},
        "grads": [p.grad for p in model.parameters()],
        "arguments": (list(inputs[1]), CACHE),
    }  # fmt: skip


def difference(before, after):
    return [key for key in before if before[key] != after[key]]


def example():
    torch.manual_seed(5)
    random.seed(6)
    numpy.random.seed(7)
    CACHE["size"] = 4
    model = Model()
    return model, (torch.randn(3, 4), {"h": torch.zeros(3, 4)})


class Stop(BaseException):
    """What an interrupt raises: nobody handles it by mistake."""


@contextlib.contextmanager
def left_as_it_was(model, inputs, point):
    process, state = of_process(), of_model(model, inputs)
    yield
    now = difference(process, of_process()), difference(state, of_model(model, inputs))
    assert now == ([], []), f"{point}: changed"


def check_works(model, inputs, expected, point):
    """Other captures are possible afterwards, in this thread and in another one."""
    graphs = []

    def again():
        graphs.append(str(capture(model, *inputs).graph))

    thread = threading.Thread(target=again)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), f"{point}: no other thread can capture"
    again()
    assert graphs == [expected] * 2, f"{point}: another graph"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("modes", ["current", "both"])
def test_at_any_call_or_return(modes):
    """Points are counted by a profiler, which raises at one of them: where a function begins, and
    where one has returned, which is where Python looks for signals, too."""
    print(f"CFX_SEED={SEED}")
    model, inputs = example()
    expected = str(capture(model, *inputs).graph)
    total = profiled(model, inputs, modes, -1)
    assert total > 2_000
    rng = random.Random(SEED)
    stopped = 0
    for number in range(POINTS):
        at = rng.randrange(total)
        point = f"CFX_SEED={SEED}, point {number}: event {at} of {total}"
        with left_as_it_was(model, inputs, point):
            stopped += profiled(model, inputs, modes, at) == -1
        if number % 20 == 0:
            check_works(model, inputs, expected, point)
    assert stopped > POINTS * 0.9
    check_works(model, inputs, expected, SEED)


def profiled(model, inputs, modes, at):
    """Captures, and raises at an event; how many there were, or -1 if that ended the capture."""
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        if event in ("c_call", "c_exception"):
            return
        count += 1
        if count - 1 == at:
            sys.setprofile(None)
            raise Stop

    sys.setprofile(profile)
    try:
        capture(model, *inputs, modes=modes)
    except Stop:
        return -1
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("error", [KeyboardInterrupt, Stop])
def test_by_a_signal(error):
    print(f"CFX_SEED={SEED}")
    model, inputs = example()
    expected = str(capture(model, *inputs).graph)
    start = time.perf_counter()
    capture(model, *inputs)
    duration = time.perf_counter() - start

    def handle(number, frame):
        raise error

    before = signal.signal(signal.SIGALRM, handle)
    rng = random.Random(SEED)
    stopped = 0
    try:
        for number in range(5 * POINTS):
            if stopped == POINTS:
                break
            delay = rng.uniform(1e-6, duration)
            point = f"CFX_SEED={SEED}, point {number}: {delay:.6f} of {duration:.6f} s"
            with left_as_it_was(model, inputs, point):
                try:
                    signal.setitimer(signal.ITIMER_REAL, delay)
                    capture(model, *inputs)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except error:
                    stopped += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert stopped == POINTS
    check_works(model, inputs, expected, SEED)


def test_by_another_thread():
    """An exception is set in a thread that captures, as some programs end their threads."""
    print(f"CFX_SEED={SEED}")
    model, inputs = example()
    expected = str(capture(model, *inputs).graph)
    start = time.perf_counter()
    capture(model, *inputs)
    duration = time.perf_counter() - start
    rng = random.Random(SEED)
    outcomes = []

    def work():
        try:
            ready.set()
            capture(model, *inputs)
            outcomes.append("done")
        except Stop:
            outcomes.append("stopped")

    for number in range(5 * POINTS):
        if outcomes.count("stopped") == POINTS // 4:
            break
        delay = rng.uniform(0, duration)
        point = f"CFX_SEED={SEED}, point {number}: {delay:.6f} of {duration:.6f} s"
        ready = threading.Event()
        with left_as_it_was(model, inputs, point):
            thread = threading.Thread(target=work)
            thread.start()
            ready.wait()
            time.sleep(delay)
            raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
            raise_in(ctypes.c_ulong(thread.ident), ctypes.py_object(Stop))
            thread.join(60)
            assert not thread.is_alive()
    assert outcomes.count("stopped") == POINTS // 4
    check_works(model, inputs, expected, SEED)
    gc.collect()


def test_a_loop_that_does_not_end_is_told_of_and_can_be_stopped():
    def forever(x):
        n = 0
        while n >= 0:
            x, n = x + 1, n + 1
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(RuntimeWarning, match="recorded 200000 calls so far.*loop"):
            capture(forever, torch.zeros(2))
    assert torch.equal(capture(wrapped, torch.ones(2))(torch.ones(2)), torch.full((2,), 2.0))
