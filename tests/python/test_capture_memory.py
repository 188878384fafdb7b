"""Ten thousand captures, also failing ones, leave nothing behind: no objects, no memory."""
import contextlib
import copy
import gc
import io
import math
import os
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
