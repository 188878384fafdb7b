"""Tracing in many threads at once, while others run modules: nobody sees the hooks of another, and
nothing is left behind."""
import math
import operator
import random
import sys
import threading

import pytest

torch = pytest.importorskip("torch")
from torch import nn
from torch.nn import functional as F

import cfx

THREADS = 8


def scale(x, by):
    return x * by


def leaf(x):
    return x + math.floor(1.5)


cfx.wrap("scale")
cfx.wrap("leaf")


class Inner(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.register_buffer("shift", torch.full((width,), 0.5))

    def forward(self, x):
        return scale(x, self.weight) + self.shift


class Model(nn.Module):
    """Another one for each number: modules, methods, functions, wrapped functions, a parameter."""

    def __init__(self, number):
        super().__init__()
        self.number = number
        self.layers = nn.Sequential(*(nn.Linear(4, 4) for _ in range(1 + number % 3)))
        self.inner = Inner(4)
        self.offset = nn.Parameter(torch.zeros(4))

    def forward(self, x):
        x = self.layers(x)
        for i in range(self.number + 1):
            x = torch.relu(x) + i
            x = leaf(x).sigmoid()
        x = self.inner(x) + self.offset + math.sqrt(4.0)
        return F.gelu(x)[..., : 1 + self.number % 4]


class Trouble(Exception):
    pass


class Failing(nn.Module):
    """Raises somewhere on the way, in a module inside a module."""

    def __init__(self, seed):
        super().__init__()
        self.seed = seed
        self.inner = Inner(4)
        self.steps = nn.ModuleList(Step(i) for i in range(4))

    def forward(self, x):
        rng = random.Random(self.seed)
        for step in self.steps:
            x = step(self.inner(scale(x, math.floor(2.5))), rng.random())
        raise Trouble("the end")


class Step(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number = number

    def forward(self, x, chance):
        if chance < 0.3:
            raise Trouble(f"in step {self.number}")
        return bool(x) if chance > 0.9 else x  # no proxy has a truth value


def together(*jobs):
    """Runs the jobs at once, all from the same moment on; raises what one of them raised."""
    barrier = threading.Barrier(len(jobs))
    errors = []

    def run(job):
        try:
            barrier.wait(timeout=60)
            job()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def patched():
    """Everything that a trace may put something else in the place of."""
    module = vars(nn.Module)
    functions = [module[name] for name in ("__call__", "_wrapped_call_impl", "__getattr__")]
    names = [name for name in dir(math) if callable(getattr(math, name))]
    return (
        [module.get("__getattribute__"), *functions, *(f.__code__ for f in functions)],
        [getattr(math, name) for name in names],
        [globals()["scale"], globals()["leaf"], scale.__code__, leaf.__code__],
        [torch.relu, F.gelu, operator.add],
        getattr(torch.fx.wrap, "__code__", None) if hasattr(torch, "fx") else None,
    )


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = patched()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # in the middle of everything
    yield
    sys.setswitchinterval(interval)
    assert patched() == before
    assert not cfx._symbolic_trace.is_fx_tracing()
    assert scale(2, 3) == 6  # an ordinary function again


def test_same_graphs_as_alone():
    models = [Model(i) for i in range(THREADS)]
    expected = [str(cfx.Tracer().trace(model)) for model in models]
    shown = [[] for _ in models]

    def tracing(i):
        for _ in range(20):
            shown[i].append(str(cfx.Tracer().trace(models[i])))

    together(*(lambda i=i: tracing(i) for i in range(THREADS)))
    for i in range(THREADS):
        assert shown[i] == [expected[i]] * 20


def test_one_model_in_all_threads():
    model = Model(3)
    expected = str(cfx.Tracer().trace(model))
    shown = []

    def tracing():
        for _ in range(20):
            shown.append(str(cfx.Tracer().trace(model)))

    together(*[tracing] * THREADS)
    assert shown == [expected] * 20 * THREADS


def check_runs(modules, tracing):
    """Threads that run modules get tensors, the same as ever, whatever the others trace."""
    x = torch.randn(3, 4)
    expected = [module(x) for module in modules]

    def running(module, want):
        for _ in range(30):
            assert torch.equal(module(x), want)
            assert isinstance(leaf(x), torch.Tensor) and math.floor(2.5) == 2

    runs = [lambda m=m, w=w: running(m, w) for m, w in zip(modules, expected)]
    with torch.no_grad():
        together(*tracing, *runs)


def test_running_while_others_trace():
    models = [Model(i) for i in range(THREADS)]
    expected = [str(cfx.Tracer().trace(model)) for model in models]
    modules = [m if i % 2 else cfx.symbolic_trace(m) for i, m in enumerate(models)]
    shown = [None] * THREADS

    def tracing(i):
        for _ in range(20):
            shown[i] = str(cfx.symbolic_trace(models[i]).graph)

    check_runs(modules, [lambda i=i: tracing(i) for i in range(THREADS)])
    assert shown == expected


def test_running_while_traces_fail():
    models = [Model(i) for i in range(THREADS)]
    modules = [cfx.symbolic_trace(m) if i % 2 else m for i, m in enumerate(models)]
    outcomes = []

    def tracing(i):
        for seed in range(20 * i, 20 * i + 20):
            if seed % 3 == 0:
                cfx.Tracer().trace(models[i])
            else:
                with pytest.raises((Trouble, cfx.proxy.TraceError)) as caught:
                    cfx.Tracer().trace(Failing(seed))
                outcomes.append(str(caught.value))

    check_runs(modules, [lambda i=i: tracing(i) for i in range(THREADS)])
    assert len(set(outcomes)) > 4  # in different places


def test_a_trace_inside_a_trace_in_every_thread():
    class Nested(nn.Module):
        def __init__(self, number):
            super().__init__()
            self.model = Model(number)

        def forward(self, x):
            self.inside = str(cfx.Tracer().trace(self.model))
            return self.model(x)

    models = [Nested(i) for i in range(THREADS)]
    alone = [str(cfx.Tracer().trace(model)) for model in models]
    inside = [model.inside for model in models]
    shown = [None] * THREADS

    def tracing(i):
        for _ in range(5):
            shown[i] = str(cfx.Tracer().trace(models[i]))

    together(*(lambda i=i: tracing(i) for i in range(THREADS)))
    assert shown == alone
    assert [model.inside for model in models] == inside
