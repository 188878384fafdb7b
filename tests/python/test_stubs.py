"""The stubs (python/cfx/*.pyi) say what is there, and the package type-checks."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PACKAGE = str(HERE.parents[1] / "python")


def run(tool, folder, *arguments):
    pytest.importorskip("mypy", reason="mypy is not installed")
    if "LD_PRELOAD" in os.environ:
        pytest.skip("mypy takes minutes under a sanitizer")
    return subprocess.run(
        [sys.executable, "-m", tool, *arguments],
        cwd=folder,  # where its cache goes
        env={**os.environ, "PYTHONPATH": PACKAGE, "MYPYPATH": PACKAGE},
        capture_output=True,
        text=True,
    )


def test_stubtest(tmp_path):
    pytest.importorskip("torch")  # it imports every module
    allowed = ["--allowlist", HERE / "stubtest_allowlist.txt"]
    done = run("mypy.stubtest", tmp_path, "cfx", "--mypy-config-file", HERE / "mypy.ini", *allowed)
    assert done.returncode == 0, done.stdout + done.stderr


USE = """
import cfx
graph = cfx.Graph()
x = graph.placeholder("x")
y = graph.call_function(len, (x,), name="n")
with graph.inserting_after(x):
    graph.call_function(cfx.cond, (x, graph, graph, ()))
graph.output(y)
reveal_type(y)
reveal_type(y.args)
reveal_type([n.name for n in graph.nodes])
reveal_type(graph.python_code("self").src)
reveal_type(cfx.has_side_effect(len))
for user in x.users:
    reveal_type(user)
x.users.clear()
"""
TYPES = ["Node", "tuple[Any, ...]", "list[str]", "str", "def (Sized) -> int", "Node"]


def test_users_get_types(tmp_path):
    """mypy, with everything switched on, understands a program that uses cfx."""
    file = tmp_path / "use.py"
    file.write_text(USE)
    done = run("mypy", tmp_path, "--config-file", HERE / "mypy.ini", "--strict", file)
    lines = [line for line in done.stdout.splitlines() if line.startswith("use.py")]
    shown = [line.split(chr(34))[1] for line in lines if "Revealed type" in line]
    short = [re.sub(r"\b(\w+\.)+(?=\w)", "", text) for text in shown]
    assert short == TYPES, done.stdout + done.stderr
    assert not [line for line in lines if "error:" in line], done.stdout
