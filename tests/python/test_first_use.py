"""What somebody meets who uses cfx for the first time: prompts, the command, help, names."""
import importlib
import os
import pty
import select
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
import cfx  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TERM": "dumb",
               "PYTHONSTARTUP": ""}


def halves(x):
    if x.sum() > 0:
        return x / 2
    return x


def loops(x):
    for row in x:
        x = x + row
    return x


# ---- the way to cfx.script ---------------------------------------------------------------------


@pytest.mark.parametrize("program", [halves, loops])
def test_errors_of_the_tracer_lead_to_script(program):
    with pytest.raises(cfx.proxy.TraceError, match=r"to do: .*cfx\.script"):
        cfx.symbolic_trace(program)
    x = torch.ones(2, 2)
    assert torch.equal(cfx.script(program)(x), program(x))


def test_text_of_exec_says_what_helps():
    names = {}
    exec("def hidden(x):\n    return x + 1\n", names)
    with pytest.raises(cfx.ScriptError, match="file.*Jupyter.*linecache.cache") as error:
        cfx.script(names["hidden"])
    assert "symbolic_trace" not in str(error.value)


TYPED = """\
import torch, cfx
def twice(x): return x + x

@torch.no_grad()
def other(x):
    return x

class Net(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            x = twice(x)
        return x

print(cfx.script(Net())(torch.ones(2)))
print(cfx.script(lambda x: x - 1 if x.sum() > 0 else x)(torch.ones(2)))
"""


def type_in(lines, answer, seconds=120):
    """What Python's prompt on a terminal says to these lines, until `answer` comes."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-q"], ENVIRONMENT)
    said, end = b"", time.monotonic() + seconds
    try:
        for line in lines:
            os.write(terminal, line.encode() + b"\n")
        while answer not in said and time.monotonic() < end:
            if select.select([terminal], [], [], 1)[0]:
                said += os.read(terminal, 65536)
    except OSError:  # it has ended
        pass
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)
    return said.decode(errors="replace")


def test_typed_at_a_prompt():
    said = type_in(TYPED.splitlines(), b"tensor([0., 0.])")
    assert "tensor([2., 2.])" in said and "tensor([0., 0.])" in said, said


def test_given_with_c():
    program = TYPED.replace("\n\n", "\n")
    done = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True,
                          text=True, timeout=200)
    assert done.stdout == "tensor([2., 2.])\ntensor([0., 0.])\n", done.stderr


def test_another_text_of_the_same_name_is_not_taken():
    """In `python -c` every text of exec is called <string>, like the program."""
    program = ("import cfx, torch\ndef f(x): return x + 1\nspace = {}\n"
               "exec('\\ndef f(x): return x - 1', space)\n"
               "try: print(cfx.script(space['f'])(torch.ones(1)))\n"
               "except cfx.ScriptError as error: print(error)\n")
    done = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True,
                          text=True, timeout=200)
    assert "has no source" in done.stdout, done


# ---- names -------------------------------------------------------------------------------------


def test_star_import():
    names = {}
    exec("from cfx import *", names)
    for name in ("symbolic_trace", "GraphModule", "Tracer", "Proxy", "wrap", "replace_pattern",
                 "script", "Graph", "Node", "Interpreter", "Transformer"):
        assert names[name] is getattr(cfx, name)


MODULES = [
    "cfx", "cfx.graph", "cfx.graph_module", "cfx.node", "cfx.ops", "cfx.passes", "cfx.proxy",
    "cfx._symbolic_trace", "cfx.interpreter", "cfx.subgraph_rewriter", "cfx.scripting",
    "cfx.weights", "cfx.checking", "cfx.shapes", "cfx.lowering", "cfx.text", "cfx.complete",
    "cfx.interop", "cfx.annotate", "cfx.traceback", "cfx.operator_schemas",
    "cfx.immutable_collections",
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_dir_shows_what_is_public(name):
    module = importlib.import_module(name)
    for shown in dir(module):
        value = getattr(module, shown)
        if shown.startswith("__") and shown.endswith("__"):
            continue
        assert not shown.startswith("_")
        inside = getattr(value, "__name__", "cfx").startswith("cfx.")
        assert not isinstance(value, types.ModuleType) or inside, shown
        assert getattr(value, "__module__", None) not in ("typing", "contextlib", "dataclasses") \
            or shown in ("Argument", "Target"), shown
    assert set(getattr(module, "__all__", ())) <= set(dir(module))


def test_dir_shows_operators_and_passes():
    assert {"relu", "conv2d", "cond", "find"} <= set(dir(cfx.ops)) and len(dir(cfx.ops)) > 500
    assert {"run", "table", "shape_prop", "split_module"} <= set(dir(cfx.passes))
    assert cfx.passes.shape_prop.ShapeProp
    with pytest.raises(AttributeError, match="cfx.passes.*nonsense"):
        cfx.passes.nonsense  # noqa: B018
