"""What the tests share: comparing torch.fx with cfx, and the growth of memory."""
import difflib
import functools
import gc
import os
import re
import types
import warnings

import pytest

import cfx

SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
ADDRESS = re.compile(r"0x[0-9a-f]+")


def outcome(call):
    """The class and repr of what `call` gives, or the class and first line of what it raises."""
    try:
        result = call()
    except Exception as e:
        text = f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
    else:
        text = f"{type(result).__module__}.{type(result).__qualname__} {result!r}"
    return ADDRESS.sub("0x", text).replace("torch.fx", "cfx")


class Show:
    """Writes down what an experiment sees, so that two runs of it can be compared."""

    def __init__(self):
        self.lines = []

    def __call__(self, *things):
        """Each thing's class and repr; of a function without arguments, what calling it gives."""
        for thing in things:
            call = thing if isinstance(thing, types.FunctionType) else lambda: thing
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self.lines.append(outcome(call))
            said = [f"{w.category.__name__}: {w.message}" for w in caught]
            self.lines += [line for line in said if "Please file a bug" not in line]

    def error(self, *calls):
        """The class of what each call raises: for messages that each library words its own way."""
        for call in calls:
            try:
                self.lines.append(f"no error: {call()!r}")
            except Exception as e:
                self.lines.append(type(e).__name__)


def same(experiment):
    """A test that `experiment(fx, show)` shows the same with torch.fx as with cfx."""

    @functools.wraps(experiment)
    def test():
        torch_fx = pytest.importorskip("torch.fx")
        shown = []
        for fx in (torch_fx, cfx):
            show = Show()
            experiment(fx, show)
            shown.append(show.lines)
        theirs, ours = shown
        assert theirs, "nothing was shown"
        diff = difflib.unified_diff(theirs, ours, "torch.fx", "cfx", n=1, lineterm="")
        assert theirs == ours, "\n".join(diff)

    del test.__wrapped__  # pytest would ask for its arguments
    return test


def evaluate(graph, *inputs, root=None):
    """The output of a graph of cfx, run node by node."""
    return cfx.Interpreter(root, graph=graph).run(*inputs)


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(call, times=100_000):
    """How many bytes the process grows by while `call` is repeated, after some to warm up."""
    for _ in range(2_000):
        call()
    if SANITIZED:
        return 0  # it keeps freed memory for a while
    gc.collect()
    before = resident()
    for _ in range(times):
        call()
    gc.collect()
    return resident() - before
