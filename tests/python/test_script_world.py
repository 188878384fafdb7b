"""What programs print under cfx script is what they print in Python."""
import contextlib
import io
import os
import subprocess
from pathlib import Path

import pytest

from script_cases import CASES, FAILURES

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
TAIL = "\ndef captured_at_the_end(x):\n    return x\n"


def script(path, text, *options):
    path.write_text(text)
    return subprocess.run([str(BUILD / "cfx"), "script", *options, str(path)], capture_output=True,
                          text=True, timeout=300, env=ENVIRONMENT)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("name", CASES)
def test_programs_print_what_python_prints(name, tmp_path):
    expected = io.StringIO()
    with contextlib.redirect_stdout(expected):
        exec(compile(CASES[name], name, "exec"), {"__name__": "__script__"})
    done = script(tmp_path / "case.py", CASES[name] + TAIL, "--function", "captured_at_the_end")
    assert done.stderr == expected.getvalue()
    assert done.returncode == 0


@pytest.mark.parametrize("source, message", FAILURES)
def test_failures_say_where_and_why(source, message, tmp_path):
    done = script(tmp_path / "case.py", source)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == message
