"""A graph writes a buffer where the program assigns it, and nowhere else: `_version` counts."""
import pickle

import cfx
import pytest
import torch
from script_checks import is_same

LOW, MIDDLE, HIGH = (torch.tensor(v) for v in ([-1.0, -2.0], [1.0, 2.0], [4.0, 5.0]))


class Buffers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("state", torch.ones(2))


class OneWay(Buffers):
    def forward(self, x):
        if x.sum() > 0:
            self.calls = self.calls + 1
        return x * self.calls


class OtherWay(Buffers):
    def forward(self, x):
        if x.sum() > 0:
            x = x * 2
        else:
            self.calls = self.calls + 1
        return x


class Nested(Buffers):
    def forward(self, x):
        if x.sum() > 0:
            if x.sum() > 5:
                self.calls = self.calls + 1
            x = x + 1
        return x


class Twice(Buffers):
    def forward(self, x):
        if x.sum() > 0:
            self.state = x + 1
        if x.sum() > 5:
            self.state = self.state * 2
        return self.state + 0


class BehindReturn(Buffers):
    def forward(self, x):
        if x.sum() > 0:
            return x
        self.calls = self.calls + 1
        return x * 2


class BeforeReturn(Buffers):
    def forward(self, x):
        if x.sum() > 0:
            self.state = x
            if x.sum() > 5:
                return self.state * 2
        return x


class InLoop(Buffers):
    def forward(self, x):
        while x.sum() < 4:
            x = x + 1
            self.calls = self.calls + 1
        return x


class InBrokenLoop(Buffers):
    def forward(self, x):
        for row in x:
            if row > 3:
                break
            if row > 0:
                self.calls = self.calls + row
        return x


class Both(Buffers):
    def forward(self, x):
        if x.sum() > 0:
            self.state, self.calls = x + self.calls, self.state.sum()
        return x


class InPlace(Buffers):
    def forward(self, x):
        if x.sum() > 0:
            self.calls += 1
        return x * 2


class InPlaceInLoop(Buffers):
    def forward(self, x):
        while x.sum() < 4:
            x = x + 1
            self.calls += 1
        return x


class PutsBack(Buffers):
    def forward(self, x):
        old = self.state
        if x.sum() > 0:
            self.state = x
            x = self.state * 2
            self.state = old
        return x


class ByMode(Buffers):
    def forward(self, x):
        if self.training:
            self.state = 0.9 * self.state + 0.1 * x
        return x - self.state


class BeforeRaise(Buffers):
    def forward(self, x):
        if x.sum() > 0:
            self.calls = self.calls + 1
        if x.sum() > 5:
            raise ValueError("too large")
        return x


MODULES = (OneWay, OtherWay, Nested, Twice, BehindReturn, BeforeReturn, InLoop, InBrokenLoop, Both,
           InPlace, InPlaceInLoop, PutsBack, ByMode, BeforeRaise)
WAYS = {
    "called": lambda module: module,
    "interpreted": lambda module: cfx.Interpreter(module).run,
    "pickled": lambda module: pickle.loads(pickle.dumps(module)),
    "read back": lambda module: cfx.GraphModule(module, cfx.parse(cfx.text(module.graph))),
}


def called(run, x):
    """What a call gives, or what it raises."""
    try:
        return run(x.clone())
    except ValueError as found:
        assert "too large" in str(found)
        return "raised"


def writes(module, run, x):
    """What the call gives, and for each buffer whether it is another tensor now, and how often it
    was written to."""
    before = {name: (b, b._version) for name, b in module.named_buffers()}
    result = called(run, x)
    after = dict(module.named_buffers())
    return result, {name: (after[name] is not b, after[name]._version - version)
                    for name, (b, version) in before.items()}


@pytest.mark.parametrize("training", (True, False))
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", MODULES, ids=lambda kind: kind.__name__)
def test_versions(kind, way, training):
    eager = kind().train(training)
    run = WAYS[way](cfx.script(kind()).train(training))
    module = run if isinstance(run, torch.nn.Module) else run.__self__.module
    for x in (LOW, MIDDLE, HIGH, LOW):
        want, assigned = writes(eager, eager, x)
        got, written = writes(module, run, x)
        assert is_same(got, want)
        for name, (another, count) in assigned.items():
            if name in written or another or count:  # the graph has the buffers that it needs
                assert written[name] == (False, 1 if another else count)
                assert torch.equal(getattr(module, name), getattr(eager, name))


@pytest.mark.parametrize("kind", MODULES, ids=lambda kind: kind.__name__)
def test_values_in_c(kind):
    eager, module = kind(), cfx.script(kind())
    lowered = cfx.lower(module)
    for x in (LOW, MIDDLE, HIGH, LOW):
        assert is_same(called(lowered, x), called(eager, x))
        for name, buffer in module.named_buffers():
            assert torch.equal(buffer, getattr(eager, name))


def test_autograd_of_the_way_that_does_not_write():
    """A buffer that backward needs may not have been written to since."""
    gm = cfx.script(OneWay())
    x = LOW.clone().requires_grad_()
    gm.calls.fill_(3)
    gm(x).sum().backward()
    assert torch.equal(x.grad, torch.tensor([3.0, 3.0]))


def test_what_was_returned_stays():
    class Keeps(Buffers):
        def forward(self, x):
            old = self.state
            if x.sum() > 0:
                self.state = x * 2
            return old, self.state

    eager, gm = Keeps(), cfx.script(Keeps())
    results = [(eager(x), gm(x)) for x in (LOW, MIDDLE, HIGH, LOW)]
    assert all(is_same(got, want) for want, got in results)


def test_in_the_code():
    """Buffers that are assigned in the same ways are written in one branch; one that is written to
    in place is not written again."""
    assert cfx.script(Both()).code.count("if ") == 2
    assert "copy_" not in cfx.script(InPlace()).code
    assert "clone" not in cfx.script(OneWay()).code
