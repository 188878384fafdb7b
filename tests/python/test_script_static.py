"""What the evaluator of scripts does with programs that need no data: the same as Python does."""
import copy
import importlib.util
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


STATIC = load("static")
SNIPPETS = [
    name for name, f in vars(STATIC).items()
    if isinstance(f, types.FunctionType) and f.__module__ == STATIC.__name__
]  # fmt: skip


def outcome(call):
    """What it gives, or the exception that it raises."""
    try:
        return copy.deepcopy(call())
    except Exception as error:
        return error


def evaluated(f):
    """What the evaluator makes of f(), as an object of Python's."""
    box = []

    def keep(graph_output):
        box.append(graph_output)
        return 0

    tracer = cfx.Tracer()
    del keep, tracer
    return cfx.script(f)()


def test_there_are_enough():
    assert len(SNIPPETS) >= 200


@pytest.mark.parametrize("name", SNIPPETS)
def test_same_as_python(name):
    want = outcome(getattr(load("static"), name))
    got = outcome(lambda: evaluated(getattr(load("static"), name)))
    if isinstance(want, Exception):
        assert type(got).__name__ == type(want).__name__, got
        assert got.args == want.args
    else:
        assert not isinstance(got, Exception), f"{type(got).__name__}: {got}"
        assert got == want and repr(got) == repr(want)
