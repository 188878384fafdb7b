"""Hostile programs: what cfx.script captures does what eager PyTorch does, on all inputs, call
after call, in training and evaluation; the rest is refused at the line that says so. The same
through `cfx script`. See hostile/."""
import importlib.util
import os
from pathlib import Path

import cfx
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import hostile  # noqa: E402
from hostile.drive import Driver  # noqa: E402
from hostile.known import COMMAND, PYTHON  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
COMMAND_FILE = Path(os.environ.get("CFX_BUILD", ROOT / "build")) / "cfx"
KEYS = hostile.keys()


@pytest.fixture(scope="module")
def driver():
    made = Driver()
    yield made
    made.close()


def expected(key):
    theme, _, name = key.partition(".")
    return "refused" if hostile.declared(theme)[name] else "equal"


def test_there_are_enough():
    assert len(KEYS) >= 250
    assert len(set(KEYS)) == len(KEYS)
    assert not (PYTHON.keys() | COMMAND.keys()) - set(KEYS)
    for theme in hostile.THEMES:
        found = hostile.load(theme)
        assert {name: p.refused for name, p in found.items()} == hostile.declared(theme)
        assert all(p.inputs for p in found.values())


@pytest.mark.parametrize("key", KEYS)
def test_where_it_is_refused(key):
    """Who is refused marks a line; others mark none that is theirs alone."""
    assert bool(hostile.refuse_lines(key)) or expected(key) == "equal"


def judge(good, known, words):
    if known is None:
        assert good, words
    else:
        assert not good, f"it is right now: take it out of known.py ({known})"


@pytest.mark.parametrize("key", KEYS)
def test_script(key, driver):
    status, words = driver.ask("python", key)
    judge(status == expected(key), PYTHON.get(key), f"{status}: {words}")


@pytest.mark.parametrize("key", KEYS)
def test_command(key, driver):
    """The world without Python may refuse more, but what it captures is right."""
    if not COMMAND_FILE.exists():
        pytest.skip("the command is not built")
    status, words = driver.ask("command", key)
    judge(status in ("equal", "refused"), COMMAND.get(key), f"{status}: {words}")


def test_the_time_is_asked_in_each_call(tmp_path):
    """Or is refused: it is never that of the capture."""
    file = tmp_path / "clock.py"
    file.write_text("import time\ndef clock(x):\n    return x, time.perf_counter_ns()\n")
    spec = importlib.util.spec_from_file_location("clock", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        captured = cfx.script(module.clock)
    except cfx.ScriptError as e:
        assert "clock.py:3" in str(e)
        return
    first, second = (captured(torch.ones(1))[1] for _ in range(2))
    assert first < second, "the time is that of the capture"
