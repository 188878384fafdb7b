"""What a program is told while it is captured: about who runs it, and about its sizes."""
import operator
import pickle

import pytest
import torch
import torch.fx
from torch import nn

import cfx
from cfx import CaptureError, capture


def answer(question):
    """What a question answers during capture; afterwards it answers what it did before."""
    found = {}  # a dict that only gets entries is a cache, which a program may have
    before = question(torch.ones(2))

    def program(x):
        found["answer"] = question(x)
        return x * 2

    capture(program, torch.ones(3))
    assert question(torch.ones(2)) == before
    return found["answer"]


@pytest.mark.parametrize("question, expected", [
    (lambda x: torch.jit.is_tracing(), True),
    (lambda x: torch.jit.is_scripting(), False),
    (lambda x: torch.compiler.is_compiling(), False),
    (lambda x: torch.compiler.is_dynamo_compiling(), False),
    (lambda x: torch.compiler.is_exporting(), False),
    (lambda x: torch.fx._symbolic_trace.is_fx_tracing(), True),
    (lambda x: torch.fx._symbolic_trace.is_fx_symbolic_tracing(), True),
    (lambda x: cfx._symbolic_trace.is_fx_tracing(), True),
    (lambda x: isinstance(x, torch.Tensor), True),
    (lambda x: isinstance(x, (torch.fx.Proxy, cfx.Proxy)), False),
    (lambda x: isinstance(x.shape[0], int), True),
    (lambda x: type(x.shape[0]) is int, True),
], ids=["jit.is_tracing", "jit.is_scripting", "is_compiling", "is_dynamo_compiling",
        "is_exporting", "fx.is_fx_tracing", "fx.is_fx_symbolic_tracing", "cfx.is_fx_tracing",
        "tensor", "proxy", "int", "type is int"])  # fmt: skip
def test_answers(question, expected):
    assert answer(question) is expected


def test_a_model_that_fails_when_it_is_traced_is_told_that_it_is_not():
    asked = {}

    def program(x):
        asked[torch.jit.is_tracing()] = True
        if torch.jit.is_tracing():
            raise TypeError("sizes are tensors in a trace")
        return x * 2

    gm = capture(program, torch.ones(3))
    assert list(asked) == [True, False] and torch.equal(gm(torch.ones(2)), torch.full((2,), 2.0))


def test_the_callers_grad_mode():
    model = type("Asks", (nn.Module,), {
        "forward": lambda self, x: x * 2 if torch.is_grad_enabled() else x * 3})()
    gm = capture(model, torch.ones(2))
    assert torch.equal(gm(torch.ones(3)), torch.full((3,), 2.0))
    with torch.no_grad():
        assert torch.equal(gm(torch.ones(3)), torch.full((3,), 3.0))


FIXES = [
    ("key", lambda x: x * {3: 1.0, 4: 2.0}[x.shape[0]]),
    ("set", lambda x: x * len({x.shape[0], 7})),
    ("hash", lambda x: x * (hash(x.shape[0]) % 5)),
]


@pytest.mark.parametrize("program", [p for _, p in FIXES], ids=[name for name, _ in FIXES])
def test_what_fixes_a_size(program):
    """The number of the example becomes a guard; with `dynamic` it is an error with the line."""
    gm = capture(program, torch.ones(3))
    assert torch.equal(gm(torch.full((3,), 2.0)), program(torch.full((3,), 2.0)))
    assert ("x.shape[0]", 3) in [(g.expression, g.value) for g in gm.guards]
    with pytest.raises(CaptureError, match=r"x.shape\[0\]"):
        gm(torch.ones(4))
    with pytest.raises(CaptureError, match=r"test_capture_questions.py:\d+: x.shape\[0\] may change"
                                           ".*compute with the size itself"):  # fmt: skip
        capture(program, torch.ones(3), dynamic={"x": {0: True}})


MAY_FIX = [
    ("int", lambda x: x[: int(x.shape[0]) - 1] * 2),
    ("text", lambda x: getattr(x, {"3": "sin"}.get(f"{x.shape[0]}", "cos"))()),
    ("index", lambda x: x * [0, 1, 2, 3, 4][operator.index(x.shape[0])]),
    ("range", lambda x: sum(x * i for i in range(x.shape[0]))),
]


@pytest.mark.parametrize("program", [p for _, p in MAY_FIX], ids=[name for name, _ in MAY_FIX])
def test_what_fixes_a_size_unless_the_graph_can_do_it(program):
    """The graph computes it, or checks the size; it is never silently that of the example."""
    gm = capture(program, torch.ones(3))
    assert torch.equal(gm(torch.full((3,), 2.0)), program(torch.full((3,), 2.0)))
    fixed = any(g.expression.startswith("x.shape[0]") for g in gm.guards)
    if fixed:
        with pytest.raises(CaptureError, match=r"x.shape\[0\]"):
            gm(torch.ones(4))
    else:
        assert torch.equal(gm(torch.ones(4)), program(torch.ones(4)))


@pytest.mark.parametrize("program", [
    lambda x: x.new_zeros(x.shape[0] + 1, 2),
    lambda x: x[: x.shape[0] // 2] * round(x.shape[0] / 2),
    lambda x: x * -x.shape[0] + abs(x.shape[0]) ** 2,
    lambda x: x.reshape(1, x.shape[0]).expand(2, -1) if isinstance(x.shape[0], int) else x,
    lambda x: (x * 2, x.shape[0] * 3),
])  # fmt: skip
def test_what_does_not(program):
    gm = capture(program, torch.ones(6), dynamic={"x": {0: True}})
    assert not gm.guards
    for n in (2, 6, 9):
        assert str(gm(torch.ones(n))) == str(program(torch.ones(n)))


def test_errors_are_of_one_class():
    """Which kind of CaptureError it is, nobody has to know; and they can be pickled."""
    gm = capture(lambda x: x * 2 if x.shape[0] > 1 else x, torch.ones(3))
    with pytest.raises(CaptureError) as caught:
        gm(torch.ones(1))
    kind = type(caught.value)
    assert (kind.__module__, kind.__qualname__) == ("cfx", "CaptureError")
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is CaptureError and str(again) == str(caught.value)
