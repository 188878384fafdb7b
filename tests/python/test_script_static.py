"""What the evaluator of scripts does with programs that need no data: the same as Python does."""
import copy
import importlib.util
import inspect
import sys
import types
from pathlib import Path

import cfx
import pytest

torch = pytest.importorskip("torch")


def load(name):
    """Snippets as a module of their own each time: what they change is then nobody else's."""
    path = Path(__file__).resolve().parent / "snippets" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"snippets_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def functions(module):
    return [
        name for name, f in vars(module).items()
        if isinstance(f, types.FunctionType) and f.__module__ == module.__name__
    ]  # fmt: skip


SNIPPETS = functions(load("static"))
MIXED = load("mixed")
REFUSED = load("refused")


def outcome(call):
    """What it gives, or the exception that it raises."""
    try:
        return copy.deepcopy(call())
    except Exception as error:
        return error


# Messages that Python words differently from version to version.
OTHER_WORDS = {"raises_keyword_twice", "raises_positional", "raises_unbound", "raises_unpack"}


def test_there_are_enough():
    assert len(SNIPPETS) >= 200


@pytest.mark.parametrize("name", SNIPPETS)
def test_same_as_python(name):
    want = outcome(getattr(load("static"), name))
    got = outcome(lambda: cfx.script(getattr(load("static"), name))())
    if isinstance(want, Exception):
        assert type(got).__name__ == type(want).__name__, got
        assert got.args == want.args or name in OTHER_WORDS
    else:
        assert not isinstance(got, Exception), f"{type(got).__name__}: {got}"
        assert got == want and repr(got) == repr(want)


def same(got, want):
    """The same values in the same structure, tensors bit by bit."""
    if isinstance(want, torch.Tensor):
        return isinstance(got, torch.Tensor) and torch.equal(got, want)
    if isinstance(want, (tuple, list)):
        return type(got) is type(want) and len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, dict):
        return list(got) == list(want) and all(same(got[k], v) for k, v in want.items())
    return type(got) is type(want) and got == want


@pytest.mark.parametrize("name", functions(MIXED))
def test_same_on_data(name):
    function = getattr(MIXED, name)
    captured = cfx.script(function)
    for x in MIXED.INPUTS:
        want = outcome(lambda: function(x.clone()))
        got = outcome(lambda: captured(x.clone()))
        if isinstance(want, Exception):
            assert type(got) is type(want) and got.args == want.args
        else:
            assert same(got, want), f"{got!r}, not {want!r}"


@pytest.mark.parametrize("name", functions(REFUSED))
def test_refused(name):
    """The message names the line, says what is said there, and shows the line with a caret."""
    function = getattr(REFUSED, name)
    lines, first = inspect.getsourcelines(function)
    offset, line = next((i, line) for i, line in enumerate(lines) if "# refused: " in line)
    with pytest.raises(cfx.ScriptError) as caught:
        cfx.script(function)
    message = str(caught.value).split("\n")
    assert message[0].startswith(f"refused.py:{first + offset}: ")
    assert line.split("# refused: ")[1].strip() in message[0]
    assert message[1].startswith("  " + line[:50].rstrip())
    assert message[2].strip() == "^"
