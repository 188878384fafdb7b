"""What a call of a program costs in Python: arguments bound quickly, but as Python binds them."""
import inspect
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import cfx
import cfx.runtime
from cfx._glue.parameters import Parameters

MOST_FRAMES = 12  # functions written in Python that a call of a program enters


# ---- binding ----


def outcome(function, *args):
    """What a call gives, or that it is a TypeError."""
    try:
        return function(*args)
    except TypeError:
        return TypeError


def plainly(signature, args, kwargs):
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return tuple(bound.arguments.values())


def some_signature(chance):
    """Parameters of every kind, in an order that Python allows."""
    kinds = sorted(chance.choices(list(inspect._ParameterKind), (1, 6, 1, 3, 1),
                                  k=chance.randrange(6)))
    found, defaults = [], False
    for i, kind in enumerate(kinds):
        many = kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        if many and any(row.kind is kind for row in found):
            continue
        named = kind is inspect.Parameter.KEYWORD_ONLY
        defaults = not many and (chance.random() < 0.4 or (defaults and not named))
        default = 100 + i if defaults else inspect.Parameter.empty
        found.append(inspect.Parameter(f"p{i}", kind, default=default))
    return inspect.Signature(found)


@pytest.mark.parametrize("seed", range(300))
def test_parameters_bind_as_python_does(seed):
    chance = random.Random(seed)
    signature = some_signature(chance)
    parameters = Parameters(signature)
    for _ in range(20):
        args = tuple(range(chance.randrange(5)))
        names = [f"p{i}" for i in range(7)]
        kwargs = {name: -1 for name in chance.sample(names, chance.randrange(4))}
        wanted = outcome(plainly, signature, args, kwargs)
        assert outcome(parameters.bind, args, kwargs) == wanted, (signature, args, kwargs)


def test_tensors_are_not_compared_when_they_are_bound():
    parameters = Parameters(inspect.signature(lambda a, b=None, *, c=3: None))
    a, b = torch.ones(2), torch.zeros(2)
    assert all(x is y for x, y in zip(parameters.bind((a,), {"b": b}), (a, b)))


# ---- what a process loads that only runs a model ----

ALONE = """
import sys
before = set(sys.modules)
import cfx.runtime
inputs = cfx.load_tensors(sys.argv[2])
model = cfx.runtime.load(sys.argv[1])
y = model(*inputs.values())
print(*sorted(set(sys.modules) - before))
print(y.shape, repr(model))
from cfx.runtime import *
print(model.signature.inputs, Input.__module__, model(**inputs).shape)
"""


def test_a_process_that_runs_a_model_imports_next_to_nothing(tmp_path):
    cfx.save(cfx.capture(nn.Linear(4, 3), torch.ones(2, 4)), tmp_path / "m.cfx")
    cfx.save_npz({"input": torch.ones(2, 4)}, tmp_path / "x.npz")
    done = subprocess.run([sys.executable, "-c", ALONE, tmp_path / "m.cfx", tmp_path / "x.npz"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded, result, signature = done.stdout.splitlines()
    ours = {"cfx", "_core", "text", "_glue", "listing", "discovery", "binding", "runtime",
            "weights"}  # fmt: skip
    others = {"operator", "_operator", "math", "__future__"}
    assert {name.split(".")[-1] for name in loaded.split()} <= ours | others
    assert result == "(2, 3) <cfx.runtime.Model Linear(input)>"
    assert signature.startswith("(Input(name='input', kind='tensor', dtype='float32'")
    assert signature.endswith("cfx.runtime (2, 3)")


# ---- calls ----


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x, scale: float = 2.0):
        y = self.linear(x)
        return {"plain": y, "scaled": [y * scale]}


class Asks(nn.Module):
    """Asks for the grad mode, which does not matter to a program in C."""

    def forward(self, x):
        return x + 1 if torch.is_grad_enabled() else x + 1.0


class Clears(nn.Module):
    """Its result is one tensor, but an argument has other contents afterwards."""

    def forward(self, xs):
        x = xs.pop()
        return x * 2


def frames(call):
    """The functions written in Python that a call enters."""
    found = []

    def note(frame, event, arg):
        if event == "call":
            found.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")

    call()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def saved(model, path, *inputs):
    cfx.save(cfx.capture(model, *inputs), path)
    return cfx.runtime.load(path, threads=1)


@pytest.mark.parametrize("model", (nn.Linear(4, 3), Two(), Asks()), ids=lambda m: type(m).__name__)
def test_a_call_enters_few_functions(model, tmp_path):
    x = torch.ones(2, 4)
    with torch.no_grad():
        compiled = cfx.compile(model.eval(), x, threads=1)
        found = frames(lambda: compiled(x))
    assert len(found) <= MOST_FRAMES, found
    if isinstance(model, nn.Linear):
        run = saved(model, tmp_path / "model.cfx", x)
        for given in (x, x.numpy()):
            found = frames(lambda: run(given))
            assert len(found) <= MOST_FRAMES, found


def test_nested_results_are_as_the_module_makes_them():
    model, x = Two().eval(), torch.randn(2, 4)
    with torch.no_grad():
        compiled = cfx.compile(model, x, threads=1)
        for found, wanted in ((compiled(x), model(x)), (compiled(x=x), model(x))):
            assert list(found) == ["plain", "scaled"] and type(found["scaled"]) is list
            torch.testing.assert_close(found["plain"], wanted["plain"])
            torch.testing.assert_close(found["scaled"], wanted["scaled"])


def test_a_call_that_does_not_fit_says_why():
    model, x = Two().eval(), torch.randn(2, 4)
    with torch.no_grad():
        compiled = cfx.compile(model, x, threads=1)
    with pytest.raises(cfx.CaptureError, match="x has dtype torch.float64, but had torch.float32"):
        compiled(x.double())
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        compiled()
    with torch.autocast("cpu"), pytest.raises(cfx.CaptureError, match="autocast is not what"):
        compiled(x)


def test_arguments_change_as_the_program_changes_them(tmp_path):
    x = torch.ones(3)
    run = saved(Clears(), tmp_path / "model.cfx", [x])
    given = [np.full(3, 4, np.float32)]
    np.testing.assert_array_equal(run(given), np.full(3, 8, np.float32))
    assert given == []
    lowered = cfx.compile(Clears(), [x], threads=1)
    given = [x]
    torch.testing.assert_close(lowered(given), x * 2)
    assert given == []
