"""Thousands of captures, also failing ones, leave nothing behind: no objects, no memory."""
import collections
import contextlib
import copy
import gc
import io
import math
import os
import sys
import weakref

import pytest

torch = pytest.importorskip("torch")
from parity import SANITIZED, resident
from torch import nn

import cfx

TIMES = 10_000
# For those of which ten thousand take too long for every day.
SLOW = TIMES if os.environ.get("CFX_FULL") == "1" else 1_000
MIB = 1 << 20


def pair(x, y):
    return x, y


cfx.wrap("pair")


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x * self.weight


class Model(nn.Module):
    """Scopes, leaves, wrapped functions, constants that are new in each trace."""

    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.layers = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x, y=1):
        a, b = pair(self.inner(x), [y, 2])
        a = self.layers(a) + self.shift + torch.ones(2)
        return {"a": (a, math.sqrt(b), x[1:, None], x.shape), "b": x.relu().sum(dim=0)}


class Decides(Model):
    def forward(self, x, y=1):
        return super().forward(x, y) if x.sum() > 0 else y


class ReturnsAnything(Model):
    def forward(self, x, y=1):
        return super().forward(x, y), object()


class CallsStranger(Model):
    def forward(self, x, y=1):
        return self.inner(self.layers(x)) + nn.Linear(2, 2)(x)


class Interrupted(Model):
    def forward(self, x, y=1):
        super().forward(x, y)
        raise KeyboardInterrupt


class Overrides(cfx.Tracer):
    """Goes through Python wherever it can."""

    record_stack_traces = True

    def create_arg(self, a):
        return super().create_arg(a)

    def create_node(self, *args, **kwargs):
        return super().create_node(*args, **kwargs)

    def proxy(self, node):
        return cfx.Proxy(node, self)

    def call_module(self, m, forward, args, kwargs):
        _ = self.scope, self.module_stack, self.num_calls, self.node_name_to_scope
        return super().call_module(m, forward, args, kwargs)


def check_flat(call, times):
    """Neither the collector's objects nor the process grow with the calls."""
    for _ in range(100):
        call()
    gc.collect()
    objects = len(gc.get_objects())
    memory = middle = resident()
    for i in range(times):
        call()
        if i == times // 2:
            gc.collect()
            middle = resident()
    gc.collect()
    assert len(gc.get_objects()) - objects < 100
    if not SANITIZED:
        # Python's heap may settle first: what leaks does so in both halves.
        assert min(middle - memory, resident() - middle) < MIB


def capture(root, how=cfx.symbolic_trace, error=(), **options):
    """Something to call: captures the root, which is to raise that error, if any. The constants
    that a capture gives its root are taken away again."""

    def call():
        try:
            how(root, **options)
            assert not error
        except error:
            pass
        for name in [name for name in vars(root) if name.startswith("_tensor_constant")]:
            delattr(root, name)

    return call


PROGRAMS = {
    "function": (capture(lambda x: torch.relu(x + 1).sum(), cfx.Tracer().trace), TIMES),
    "module": (capture(Model()), TIMES),
    "concrete": (capture(Model(), concrete_args={"y": 2}), SLOW),
    "overrides": (capture(Model(), Overrides().trace), SLOW),
    "decides": (capture(Decides(), error=cfx.proxy.TraceError), SLOW),
    "anything": (capture(ReturnsAnything(), error=NotImplementedError), SLOW),
    "stranger": (capture(CallsStranger(), error=NameError), SLOW),
    "interrupted": (capture(Interrupted(), error=KeyboardInterrupt), SLOW),
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_captures(what):
    check_flat(*PROGRAMS[what])


class Line(nn.Module):
    def forward(self, x):
        return torch.relu(x + 1) * 2



def test_runs():
    """Calls, interpreters, transformers and copies, also those that fail."""
    gm = cfx.symbolic_trace(Line())
    x = torch.ones(2)

    def call():
        gm(x), cfx.Interpreter(gm).run(x), cfx.Transformer(gm).transform()(x)
        copy.deepcopy(gm)(x)
        for run in (gm, cfx.Interpreter(gm).run):
            with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(TypeError):
                run("no tensor")
        gm.graph.call_function(abs, (x,)), gm.graph.eliminate_dead_code(), gm.recompile()

    check_flat(call, SLOW)


def test_nothing_keeps_a_trace():
    """Neither graph, tracer, root nor proxies survive; nor those of a trace that fails."""
    refs = []

    def note(x):
        refs.extend(map(weakref.ref, (x, x.tracer, x.tracer.graph, x.tracer.root)))
        return x

    gm = cfx.symbolic_trace(lambda x: note(x) + 1)
    gm(1)
    del gm
    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error):
            cfx.symbolic_trace(lambda x: note(x) + (_ for _ in ()).throw(error))
    gc.collect()
    assert [ref() for ref in refs] == [None] * 12


# ---- cfx.capture: captured runs ------------------------------------------------------------------


def limit(x):
    return x - 1 if x.sum() > 0 else x + 1


class Stateful(nn.Module):
    """Counters, buffers, a function that asks for data, a constant from outside, contexts."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
        self.register_buffer("mean", torch.zeros(4))
        self.calls, self.seen = 0, []

    def forward(self, x, n=2):
        self.calls += 1
        self.seen.append(x.shape[0])
        y = self.layers(limit(x)) + CONSTANT
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            self.mean = self.mean * 0.5 + y.mean(0).float()
        return {"y": y[: x.shape[0] * n], "n": n}


class Raises(Stateful):
    def forward(self, x, n=2):
        super().forward(x, n)
        raise ValueError("the end")


class Ended(Stateful):
    def forward(self, x, n=2):
        super().forward(x, n)
        raise KeyboardInterrupt


class Refused(Stateful):
    def forward(self, x, n=2):
        return super().forward(x, n)["y"].data_ptr()


CONSTANT = torch.ones(4)
X = torch.randn(3, 2)


def run_captured(model, error=(), **options):
    """Something to call: captures a model by a run, which is to raise that error, if any."""

    def call():
        try:
            gm = cfx.capture(model, X, **options)
            gm(X)
            assert not error
        except error:
            pass

    return call


def recaptured():
    gm = cfx.capture(lambda x, n: limit(x) * n, X, 2, recapture=True)
    return [gm(x, n) for x in (X, X[0], X[None]) for n in (1, 2.0)]


RUNS = {
    "stateful": run_captured(Stateful()),
    "evaluation": run_captured(Stateful().eval()),
    "both modes": run_captured(Stateful(), modes="both"),
    "function": run_captured(lambda x: torch.relu(x + 1).sum()),
    "raises": run_captured(Raises(), ValueError),
    "refused": run_captured(Refused(), cfx.CaptureError),
    "interrupted": run_captured(Ended(), KeyboardInterrupt),
    "recaptured": recaptured,
    "decorated": lambda: cfx.function(limit)(X),
}


def shared():
    """Reference counts of what all captures have in common."""
    things = [None, torch.relu, torch.Tensor.add, CONSTANT, limit, Stateful, nn.Linear, X,
              cfx.Graph, torch.float32, cfx.capture, nn.Module.__call__, torch.nn.functional.linear,
              cfx.capturing.run.Run]  # fmt: skip
    return [sys.getrefcount(thing) for thing in things]


def test_a_thousand_captured_runs():
    """All of them in turns: objects by type, references, descriptors and memory stay the same."""
    calls = list(RUNS.values())
    times = 1_000 // len(calls) + 1

    def rounds(n):
        for _ in range(n):
            for call in calls:
                call()
        gc.collect()

    rounds(20)
    for _ in range(2):  # counting fills caches, and leaves holes in the heap
        kinds, references = collections.Counter(map(type, gc.get_objects())), shared()
        rounds(10)
    files, memory = len(os.listdir("/proc/self/fd")), resident()
    rounds(times // 2)
    middle = resident()
    rounds(times - times // 2)
    end = resident()
    grown = collections.Counter(map(type, gc.get_objects())) - kinds
    assert sum(grown.values()) < 20, grown.most_common(5)
    assert max(b - a for a, b in zip(references, shared())) < 50
    assert len(os.listdir("/proc/self/fd")) == files
    if not SANITIZED:
        assert min(middle - memory, end - middle) < MIB


@pytest.mark.parametrize("what", RUNS)
def test_nothing_keeps_a_run(what):
    """Neither the graph nor tensors nor numbers of a run survive it, without a collection even."""
    RUNS[what]()
    gc.collect()
    before = alive()
    RUNS[what]()
    gc.collect()
    assert alive() - before == collections.Counter()


def alive():
    names = ("Witness", "Int", "Float", "Number", "Recorder", "Run", "Undo", "Graph", "Decider",
             "CaptureTracer", "CapturedModule", "Program", "Captured", "Hook")  # fmt: skip
    found = (type(o).__name__ for o in gc.get_objects())
    return collections.Counter(name for name in found if name in names)
