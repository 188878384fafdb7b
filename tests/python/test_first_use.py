"""What somebody meets who uses cfx for the first time: prompts, the command, help, names."""
import importlib
import inspect
import io
import os
import pdb
import pty
import pydoc
import re
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
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
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


UNPACKS = """
import cfx, torch
def unpacks(x):
    first, *rest, last = x
    return last if x.sum() > 0 else first
print(float(cfx.capture(unpacks, torch.ones(3))(torch.ones(3))))
"""


def test_nothing_else_has_to_be_imported(tmp_path):
    """Graphs name functions of cfx, which are loaded when somebody asks for them."""
    (tmp_path / "unpacks.py").write_text(UNPACKS)
    done = subprocess.run([sys.executable, "unpacks.py"], cwd=tmp_path, env=ENVIRONMENT,
                          capture_output=True, text=True)
    assert done.stdout == "1.0\n", done.stderr


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


def test_help_of_a_node():
    text = pydoc.render_doc(cfx.Node, renderer=pydoc.plaintext)
    for words in ("call_function  target(*args, **kwargs)", "Immutable: assign a new tuple",
                  "as the keys of a dict", "recompile()"):
        assert words in text
    for name, member in vars(cfx.Node).items():
        assert name.startswith("_") or member.__doc__, name


# ---- debugging ---------------------------------------------------------------------------------


def calls(x):
    return torch.relu(x) + 1


@pytest.mark.parametrize("remove", [
    lambda gm: gm.graph.eliminate_dead_code(),
    lambda gm: cfx.passes.run(gm, "dce"),
    lambda gm: cfx.passes.run(gm, "cse"),
], ids=["eliminate_dead_code", "dce", "cse"])
@pytest.mark.parametrize("stop", [breakpoint, pdb.post_mortem, os.getcwdb, input, exec])
def test_calls_that_run_code_stay(remove, stop):
    if stop in (pdb.post_mortem, os.getcwdb) and remove.__code__.co_names[-1] != "run":
        pytest.skip("torch.fx's answer")
    gm = cfx.symbolic_trace(calls)
    with gm.graph.inserting_before(gm.graph.output_node()):
        gm.graph.call_function(stop)
        gm.graph.call_function(stop)
    remove(gm)
    assert len(gm.graph.find_nodes(op="call_function", target=stop)) == 2


def test_breakpoint_stops_in_the_generated_code(monkeypatch):
    frames = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: frames.append(sys._getframe(1)))
    gm = cfx.symbolic_trace(calls)
    with gm.graph.inserting_before(gm.graph.output_node()):
        gm.graph.call_function(breakpoint)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    gm(torch.ones(2))
    assert [frame.f_code.co_name for frame in frames] == ["forward"]
    assert frames[0].f_code is type(gm).forward.__code__


def test_runcall_stops_in_the_generated_code():
    said = io.StringIO()
    gm = cfx.symbolic_trace(calls)
    debugger = pdb.Pdb(stdin=io.StringIO("p x\nn\nc\n"), stdout=said, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    debugger.runcall(gm.forward, torch.ones(2))
    assert "-> relu = torch.relu(x)" in said.getvalue()
    assert "tensor([1., 1.])" in said.getvalue() and "-> add = relu + 1" in said.getvalue()


def breaks(x, n):
    y = torch.relu(x)
    while y.sum() > n:
        y = y / 2
        if y.max() > 3:
            break
    return y + 1


def empty_branch(x):
    if x.sum() > 0:
        x.sum()
    return x


@pytest.mark.parametrize("program", [calls, breaks, halves, loops, empty_branch])
def test_source_lines_as_comments(program, capsys):
    gm = cfx.script(program)
    lines = inspect.getsource(program).splitlines()
    first = program.__code__.co_firstlineno
    shown = gm.print_source()
    assert capsys.readouterr().out == shown + "\n"
    compile(shown, "shown", "exec")
    found = re.findall(r"^ +# test_first_use\.py:(\d+): (.*)$", shown, re.M)
    assert found
    for number, text in found:
        assert lines[int(number) - first].strip() == text
    assert "#" not in gm.code and "#" not in gm.graph.python_code("self").src


def test_source_lines_of_a_trace():
    code = cfx.symbolic_trace(calls).print_source(print_output=False)
    line = calls.__code__.co_firstlineno + 1
    assert f"    # test_first_use.py:{line}: return torch.relu(x) + 1\n        relu = " in code


# ---- the command -------------------------------------------------------------------------------

NET = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        y = self.fc(x)
        if y.sum() > 0:
            y = y / 2
        return y
"""


def command(*words, folder, **options):
    return subprocess.run([sys.executable, "-m", "cfx", *map(str, words)], cwd=folder, text=True,
                          env=ENVIRONMENT, capture_output=True, timeout=200, **options)


def test_every_verb(tmp_path):
    (tmp_path / "net.py").write_text(NET)
    done = command("script", "-o", "net.ir", "net.py", folder=tmp_path)
    assert done.stdout.endswith("net.safetensors: 2 tensors\n"), done
    cfx.save_npy(torch.ones(3, 4), tmp_path / "x.npy")
    done = command("run", "--weights", "net.safetensors", "--input", "x.npy", "net.ir",
                   folder=tmp_path)
    assert done.stdout.startswith("tensor(["), done
    assert "usage: cfx run" in command("run", "--help", folder=tmp_path).stdout
    text = command("--help", folder=tmp_path).stdout
    for verb in ("show", "run", "opt", "trace", "script", "completion"):
        assert f"\n  {verb} " in text
    done = command("rnu", folder=tmp_path)
    assert done.returncode == 2 and "did you mean run?" in done.stderr


def test_weights_that_are_there_stay(tmp_path):
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "net.safetensors").write_text("trained for a week")
    done = command("script", "-o", "net.ir", "net.py", folder=tmp_path)
    assert "net.safetensors: left as it is" in done.stdout and done.returncode == 0
    assert (tmp_path / "net.safetensors").read_text() == "trained for a week"
    done = command("script", "-o", "a.ir", "--no-weights", "net.py", folder=tmp_path)
    assert done.returncode == 0 and not (tmp_path / "a.safetensors").exists()
    done = command("script", "-o", "a.ir", "--no-weights", "--weights", "b.npz", "net.py",
                   folder=tmp_path)
    assert done.returncode == 2


def test_a_closed_pipe_is_no_error(tmp_path):
    program = f"{sys.executable} -m cfx ops | head -n 1"
    done = subprocess.run(program, shell=True, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.stderr == "" and done.stdout


@pytest.mark.skipif(not (ROOT / "build" / "include").is_dir(), reason="needs the headers")
def test_trace_takes_models_in_c_and_in_pytorch(tmp_path):
    (tmp_path / "net.py").write_text(NET.replace("if y.sum() > 0:", "if True:"))
    done = command("trace", ROOT / "examples" / "c" / "mlp.c", "-o", "mlp.ir", folder=tmp_path)
    assert "mlp.safetensors" in done.stdout, done
    done = command("trace", "net.py:Net", "-o", "net.ir", folder=tmp_path)
    assert "net.safetensors: 2 tensors" in done.stderr, done
    (tmp_path / "net.py").write_text(NET)
    done = command("trace", "net.py:Net", folder=tmp_path)
    assert done.returncode == 1 and "capture it with --script" in done.stderr, done
    done = command("trace", "net.py:Net", "--script", "-o", "net.ir", "--check", "x=float32[3, 4]",
                   folder=tmp_path)
    assert "check: the files agree with the module" in done.stderr, done
    done = subprocess.run([BUILD / "cfx", "trace", "net.py:Net"], cwd=tmp_path, text=True,
                          capture_output=True)
    assert done.returncode == 3 and "python -m cfx trace net.py:Net" in done.stderr
