"""nn.Module.__call__ and __getattr__ while a trace runs: profilers and debuggers that start then,
code that replaces or wraps the same functions before, during and across a trace, torch.compile in
another thread. The graph is what it would be without; nothing is left behind."""
import cProfile
import functools
import sys
import threading

import pytest

torch = pytest.importorskip("torch")

import cfx  # noqa: E402
import torch.fx  # noqa: E402
from torch import nn  # noqa: E402

X = torch.linspace(-1, 1, 6).reshape(2, 3)
OWN = nn.Module.__call__, nn.Module.__getattr__
CODE = tuple(f.__code__ for f in OWN)
TARGETS = ["x", "lin", "sub.0", "sub.1", "p", "add", "output"]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.sub = nn.Sequential(nn.ReLU(), nn.Linear(3, 3))
        self.p = nn.Parameter(torch.arange(3.0))

    def forward(self, x):
        return self.sub(self.lin(x)) + self.p


class Doing(Net):
    """Does something in the middle of a trace."""

    def __init__(self, do):
        super().__init__()
        self.do = do

    def forward(self, x):
        x = self.lin(x)
        if cfx._symbolic_trace.is_fx_tracing():
            self.do()
        return self.sub(x) + self.p


def targets(gm):
    return [n.target if isinstance(n.target, str) else n.target.__name__ for n in gm.graph.nodes]


def check(net, wanted=TARGETS):
    """A trace, and what its graph gives against the module itself."""
    gm = cfx.symbolic_trace(net)
    assert targets(gm) == wanted
    assert torch.equal(gm(X), net(X))
    return gm


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    left = nn.Module.__call__, nn.Module.__getattr__
    codes = tuple(f.__code__ for f in OWN)
    for name, function, code in zip(("__call__", "__getattr__"), OWN, CODE):
        setattr(nn.Module, name, function)
        function.__code__ = code
    assert (left, codes) == (OWN, CODE)


# ---- those who look on --------------------------------------------------------------------------


def by_profile(look):
    return lambda: sys.setprofile(look), lambda: sys.setprofile(None)


def by_trace(look):
    return lambda: sys.settrace(look), lambda: sys.settrace(None)


def by_cprofile(look):
    profile = cProfile.Profile()
    return profile.enable, lambda: (profile.disable(), look(None, None, None))


def by_monitoring(look, local=False):
    monitoring = getattr(sys, "monitoring", None) or pytest.skip("Python 3.12 has sys.monitoring")

    def start():
        monitoring.use_tool_id(4, "test")
        monitoring.register_callback(4, monitoring.events.LINE, lambda *args: look(*args, None))
        if local:
            monitoring.set_local_events(4, nn.Module.__call__.__code__, monitoring.events.LINE)
        else:
            monitoring.set_events(4, monitoring.events.LINE)

    def stop():
        monitoring.set_events(4, 0)
        monitoring.free_tool_id(4)

    return start, stop


WATCHERS = {
    "setprofile": by_profile,
    "settrace": by_trace,
    "cProfile": by_cprofile,
    "monitoring": by_monitoring,
    "monitoring of __call__": functools.partial(by_monitoring, local=True),
}


@pytest.mark.parametrize("watcher", WATCHERS)
def test_a_profiler_that_starts_during_a_trace(watcher):
    seen = [0]

    def look(*args):
        seen[0] += 1
        return look

    start, stop = WATCHERS[watcher](look)
    net = Doing(start)
    try:
        gm = cfx.symbolic_trace(net)
        during = nn.Module.__call__.__code__
        result = gm(X)
    finally:
        stop()
    assert seen[0] and during is CODE[0]
    assert targets(gm) == TARGETS and torch.equal(result, net(X))
    check(Net())


# ---- those who replace the functions ------------------------------------------------------------


def wrapped(function, change):
    @functools.wraps(function)
    def call(self, *args, **kwargs):
        return change(self, function(self, *args, **kwargs))

    return call


def doubles(module, result):
    return result * 2 if isinstance(module, (nn.ReLU, nn.Sequential)) else result


class Replaced:
    """nn.Module has another function under a name."""

    def __init__(self, function, name="__call__"):
        self.function, self.name = function, name

    def __enter__(self):
        self.before = vars(nn.Module)[self.name]
        setattr(nn.Module, self.name, self.function)
        return self

    def __exit__(self, *_):
        setattr(nn.Module, self.name, self.before)


def calls_impl(self, *args, **kwargs):
    return self._call_impl(*args, **kwargs)


@pytest.mark.parametrize("call", [calls_impl, wrapped(OWN[0], lambda m, r: r)],
                         ids=["other", "wrapper"])  # fmt: skip
def test_another_call(call):
    """It was not hooked: leaves were traced through."""
    with Replaced(call):
        check(Net())
        assert nn.Module.__call__ is call
    check(Net())


def test_another_call_that_computes():
    """What it does to the result of a leaf is done when the graph runs, and not twice; what it does
    to that of a module that is traced through is recorded."""
    with Replaced(wrapped(OWN[0], doubles)):
        check(Net(), [*TARGETS[:4], "mul", *TARGETS[4:]])
    plain = Net()
    with Replaced(wrapped(OWN[0], doubles)):
        gm = cfx.symbolic_trace(plain)
        assert torch.equal(gm(X), plain(X))


def test_another_call_and_an_overridden_step():
    class Tracer(cfx.Tracer):
        def call_module(self, m, forward, args, kwargs):
            seen.append(type(m).__name__)
            return super().call_module(m, forward, args, kwargs)

    seen = []
    with Replaced(wrapped(OWN[0], doubles)):
        net = Net()
        gm = cfx.GraphModule(net, Tracer().trace(net))
        assert torch.equal(gm(X), net(X))
    assert seen == ["Linear", "Sequential", "ReLU", "Linear"]


def test_another_getattr():
    def get(self, name):
        found = OWN[1](self, name)
        return found.detach() * 3 if name == "p" else found

    with Replaced(get, "__getattr__"):
        net = Net()
        gm = cfx.symbolic_trace(net)
        assert torch.equal(gm(X), net(X)) and "lin" in targets(gm)
        assert nn.Module.__getattr__ is get
    with Replaced(lambda self, name: OWN[1](self, name), "__getattr__"):
        check(Net())


def test_a_wrapper_that_comes_during_a_trace():
    """As torch.fx records it; and it stays."""
    made = []

    def come():
        made.append(wrapped(nn.Module.__call__, doubles))
        nn.Module.__call__ = made[0]

    gm = cfx.symbolic_trace(Doing(come))
    assert targets(gm) == ["x", "lin", "sub.0", "mul", "sub.1", "mul", "p", "add", "output"]
    assert nn.Module.__call__ is made[0]
    assert torch.equal(nn.ReLU()(X), torch.relu(X) * 2)
    nn.Module.__call__ = OWN[0]


def test_a_wrapper_of_the_hook_itself():
    """It keeps the hook of a trace that is over: that one lets everything pass."""
    with Replaced(calls_impl):
        def come():
            nn.Module.__call__ = wrapped(nn.Module.__call__, doubles)

        for _ in range(3):
            cfx.symbolic_trace(Doing(come))
        assert torch.equal(nn.ReLU()(X), torch.relu(X) * 8)
        net = Net()
        gm = cfx.symbolic_trace(net)
        assert targets(gm) == [*TARGETS[:4], "mul", "mul", "mul", *TARGETS[4:]]
        assert torch.equal(gm(X), net(X))
        stacks = [list(n.meta.get("nn_module_stack", ())) for n in gm.graph.nodes]
        assert stacks[2] == ["sub", "sub.0"]


def test_a_wrapper_that_goes_during_a_trace():
    net = Doing(lambda: setattr(nn.Module, "__call__", OWN[0]))
    nn.Module.__call__ = wrapped(OWN[0], lambda m, r: r)
    gm = cfx.symbolic_trace(net)
    assert nn.Module.__call__ is OWN[0]
    assert torch.equal(gm(X), net(X))


@pytest.mark.parametrize("replaced", [False, True])
def test_a_hook_that_is_kept_and_put_back_after_the_trace(replaced):
    """It goes away when it is called."""
    seen, kept = [], []

    def mine(self, *args, **kwargs):
        seen.append(type(self).__name__)
        return self._call_impl(*args, **kwargs)

    first = mine if replaced else OWN[0]
    with Replaced(first):
        def swap():
            kept.append(nn.Module.__call__)
            nn.Module.__call__ = calls_impl

        cfx.symbolic_trace(Doing(swap))
        nn.Module.__call__ = kept[0]
        seen.clear()
        assert torch.equal(nn.ReLU()(X), torch.relu(X))
        assert nn.Module.__call__ is first and seen == ["ReLU"] * replaced
        check(Net())


# ---- those who swap the code, too ---------------------------------------------------------------


def counting(self, *args, **kwargs):
    self.__dict__["counted"] = self.__dict__.get("counted", 0) + 1
    return self._call_impl(*args, **kwargs)


def test_code_that_was_swapped_before_the_trace():
    """It runs for what is traced through, and is there afterwards."""
    OWN[0].__code__ = counting.__code__
    net = Net()
    cfx.symbolic_trace(net)
    assert net.sub.counted == 1 and not hasattr(net.lin, "counted")
    assert OWN[0].__code__ is counting.__code__
    check(net)
    OWN[0].__code__ = CODE[0]


def test_code_that_is_swapped_during_a_trace():
    net = Doing(lambda: setattr(OWN[0], "__code__", counting.__code__))
    gm = cfx.symbolic_trace(net)
    assert OWN[0].__code__ is counting.__code__
    OWN[0].__code__ = CODE[0]
    assert torch.equal(gm(X), net(X))


def test_code_that_is_put_back_during_a_trace():
    OWN[0].__code__ = counting.__code__
    net = Doing(lambda: setattr(OWN[0], "__code__", CODE[0]))
    gm = cfx.symbolic_trace(net)
    assert OWN[0].__code__ is CODE[0] and torch.equal(gm(X), net(X))


def test_code_of_ours_that_is_put_back_after_the_trace():
    kept = []
    cfx.symbolic_trace(Doing(lambda: kept.append([f.__code__ for f in OWN])))
    for function, code in zip(OWN, kept[0]):
        function.__code__ = code
    assert torch.equal(nn.ReLU()(X), torch.relu(X))
    assert tuple(f.__code__ for f in OWN) == CODE
    check(Net())


# ---- torch.fx, inside and outside ---------------------------------------------------------------


def test_each_library_inside_the_other():
    seen = []
    net = Doing(lambda: seen.append(targets(torch.fx.symbolic_trace(Net()))))
    check(net)
    assert seen == [TARGETS]
    seen.clear()

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU()

        def forward(self, x):
            seen.append(targets(cfx.symbolic_trace(Net())))
            return self.relu(x)

    assert targets(torch.fx.symbolic_trace(Outer())) == ["x", "relu", "output"]
    assert seen == [TARGETS]


# ---- torch.compile ------------------------------------------------------------------------------


def while_tracing(job):
    """Runs it in another thread while this one traces; returns what it gave."""
    results = []

    def run():
        try:
            results.append(job())
        except BaseException as error:
            results.append(error)

    def program(x):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return x + 1

    assert len(cfx.Tracer().trace(program).nodes) == 3
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_module_that_is_compiled_while_a_trace_runs(replaced):
    """All of it, and what is compiled is right afterwards, too."""
    torch._dynamo.reset()
    graphs = []

    def backend(gm, example):
        graphs.append([n.op for n in gm.graph.nodes].count("call_function"))
        return gm.forward

    with Replaced(wrapped(OWN[0], doubles) if replaced else OWN[0]):
        net = Net()
        wanted = net(X)
        alone = torch.compile(net, backend=backend, fullgraph=True)
        assert torch.equal(alone(X), wanted)
        torch._dynamo.reset()
        compiled = torch.compile(net, backend=backend, fullgraph=True)
        assert torch.equal(while_tracing(lambda: compiled(X)), wanted)
        assert torch.equal(compiled(X), wanted)
        assert torch.equal(while_tracing(lambda: compiled(X)), wanted)
        check(net, TARGETS if not replaced else [*TARGETS[:4], "mul", *TARGETS[4:]])
        assert torch.equal(compiled(X), wanted)
    assert len(set(graphs)) == 1  # no piece of it alone
    torch._dynamo.reset()
