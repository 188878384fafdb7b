"""python -m cfx capture: modules of PyTorch, run once, as files that run in C."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]

import cfx  # noqa: E402
from cfx.__main__ import _parser, main  # noqa: E402

CFX = Path(os.environ.get("CFX_BUILD", ROOT / "build")) / "cfx"

MODELS = '''\
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        print("a Net of width", width)
        self.fc = nn.Linear(width, width)

    def forward(self, x, times=2):
        y = self.fc(x)
        if x.shape[0] > 1:
            y = y * times
        return {"y": F.dropout(y, 0.5, self.training), "rows": x.shape[0], "name": "net"}


class Mode(nn.Module):
    def forward(self, x):
        return x * 2 if self.training else x + 1


class Counts(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


class Fails(nn.Module):
    def forward(self, x):
        raise ValueError("never")


class Strange(nn.Module):
    def forward(self, x):
        return x[: int(x.sum())]


def largest(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


def both(pair, scale):
    return pair["a"] * scale, pair["b"].flip(0)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "models", raising=False)
    return tmp_path


def capture(*words, status=0):
    assert main(["capture", *map(str, words)]) == status


def line_of(text):
    return 1 + MODELS[: MODELS.index(text)].count("\n")


def run_in_c(*inputs):
    """What `cfx run` computes from the files."""
    words = [CFX, "run", "graph.txt"]
    if Path("graph.safetensors").exists():
        words += ["--weights", "graph.safetensors"]
    for i, x in enumerate(inputs):
        cfx.save_tensor(x, f"in{i}.npy")
        words += ["--input", f"in{i}.npy"]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_files_run_without_python(folder, capsys):
    capture("models.py:Net", "--arg", 3, "--input", "x=float32[2, 3]", "-o", "graph.txt",
            "--check", "x=float32[5, 3]")
    shown = capsys.readouterr()
    assert shown.out == "" and "check: the files agree with the module" in shown.err
    assert re.search(r"graph.txt: \d+ nodes, graph.safetensors: 2 tensors\n", shown.err)
    done = run_in_c(torch.ones(5, 3))
    torch.manual_seed(0)
    with torch.no_grad():
        want = sys.modules["models"].Net(3).eval()(torch.ones(5, 3))["y"]
    assert done.returncode == 0 and done.stdout == f"{want}\n5\n"
    refused = run_in_c(torch.ones(1, 3))  # what the run assumed is checked by the files
    assert refused.returncode != 0
    assert f"x.shape[0] > 1 was True at models.py:{line_of('if x.shape')}" in refused.stderr


@pytest.mark.parametrize("example, others, refused", [
    (3, (1, 5), (2, 4)), (4, (2, 6), (1, 3, 5)),
])  # fmt: skip
def test_guards_are_checked_by_the_files(example, others, refused, folder, capsys):
    """Also those of which the answer was no, and of what is computed of sizes."""
    (folder / "models.py").write_text(
        "def f(x):\n    half = x.shape[0] // 2\n"
        "    return x * 2 if half * 2 == x.shape[0] else -x\n")
    for n in others:
        capture("models.py:f", "--input", f"x=float32[{example}]", "--check", f"x=float32[{n}]",
                "-o", "graph.txt")
        assert "the files agree" in capsys.readouterr().err
    for n in refused:
        done = run_in_c(torch.ones(n))
        assert done.returncode != 0 and "at models.py:3 when the model" in done.stderr


def test_the_text_goes_to_standard_output(folder, capsys):
    capture("models.py:largest", "--input", "x=float32[3]")
    shown = capsys.readouterr()
    assert shown.out.startswith("graph():\n") and "cfx.ops.cond" in shown.out
    capture("models.py:Net", "--input", "x=float32[2, 4]", "--no-lower", "--no-weights")
    assert "call_module[target=fc](%x)" in capsys.readouterr().out


def test_inputs_from_files(folder):
    torch.save({"a": torch.ones(2), "b": torch.arange(3)}, "pair.pt")
    capture("models.py:both", "--input", "pair=pair.pt, scale=3", "-o", "graph.txt")
    graph = cfx.parse(Path("graph.txt").read_text())
    names = [str(n.target) for n in graph.nodes if n.op == "placeholder"]
    assert names == ["pair_a", "pair_b", "scale"]
    cfx.save_tensor(torch.ones(2, 4), "x.npy")
    capture("models.py:Net", "--input", "x=x.npy", "--input", "times=3", "-o", "graph.txt")
    assert "%times" in Path("graph.txt").read_text()


def test_sizes_that_may_change_and_that_may_not(folder, capsys):
    capture("models.py:Net", "--input", "x=float32[2, 4], times=3", "--fixed", "x=-1",
            "--fixed", "times", "-o", "graph.txt")
    text = Path("graph.txt").read_text()
    assert '"x.shape[1] is fixed to 4"' in text and "%times" not in text
    capture("models.py:Strange", "--input", "x=float32[4]", "--dynamic", "x", "-o", "graph.txt")
    assert capsys.readouterr()


def test_modes(folder, capsys):
    words = "models.py:Net", "--input", "x=float32[2, 4]", "-o", "graph.txt"
    capture(*words, "--train")
    assert "0.5, True)" in Path("graph.txt").read_text()
    capture(*words, "--eval")
    assert "0.5, False)" in Path("graph.txt").read_text()
    capture(*words, "--modes", "both", "--no-lower")
    assert "get_attr[target=training]" in Path("graph.txt").read_text()
    assert set(cfx.load_tensors("graph.safetensors")) == {"fc.weight", "fc.bias"}


def test_explain(folder, capsys):
    capture("models.py:Net", "--input", "x=float32[2, 4]", "--explain")
    shown = capsys.readouterr()
    assert shown.out.startswith("Net: ") and "x.shape[0] > 1" in shown.out
    assert os.listdir(folder) in (["models.py"], ["__pycache__", "models.py"],
                                  ["models.py", "__pycache__"])
    capture("models.py:Net", "--input", "x=float32[2, 4]", "--explain", "-o", "graph.txt")
    shown = capsys.readouterr()
    assert shown.out == "" and "x.shape[0] > 1" in shown.err and "graph.txt: " in shown.err


NET = "models.py:Net", "--input", "x=float32[2, 4]"
BAD = [
    (["models.py:Net"], 2, "there is no example of 'x'; give one: --input 'x=float32[2, 3]'"),
    (["models.py:Nte", "--input", "x=1"], 1, "has no 'Nte'; did you mean 'Net'?"),
    (["models.py:Net", "--input", "x=float32[2, 4], time=1"], 2,
     "--input: there is no input 'time' among (x, times); did you mean 'times'?"),
    (["models.py:Net", "--input", "x=float32[N, 4]"], 2,
     "--input: sizes must be numbers, not [N, 4], because the model is run"),
    (["models.py:Net", "--input", "x=flaot32[2]"], 2, "--input: there is no dtype 'flaot32'"),
    (["models.py:Net", "--input", "x=none.npy"], 1, "--input: x: cannot open 'none.npy'"),
    (["models.py:Net", "--input", "x=none.pt"], 1, "--input: x: [Errno 2] No such file"),
    (["models.py:Net", "--input", "x=float32[2, 9]"], 1,
     f"models.py:{line_of('y = self.fc')}: cannot capture it, the program fails: RuntimeError: "),
    (["models.py:Fails", "--input", "x=1"], 1,
     f"models.py:{line_of('raise ValueError')}: cannot capture it, the program fails: ValueError"),
    ([*NET, "--dynamic", "y=0"], 2, "--dynamic: --input gives no 'y'"),
    ([*NET, "--fixed", "x=2"], 2, "--fixed: x has 2 dimensions, so there is no dimension 2"),
    ([*NET, "--dynamic", "x=a"], 2, "--dynamic: expected NAME or NAME=DIMENSIONS, such as x=0,1"),
    ([*NET, "--modes", "both"], 2, "use --no-lower, or write a file for each mode"),
    (["models.py:Mode", "--input", "x=float32[2]", "--modes", "both", "--no-lower"], 1,
     "training and evaluation have different graphs; write one file for each: --train, --eval"),
    (["models.py:Counts", "--input", "x=float32[2]"], 1,
     "the program assigns attributes (calls), which files cannot keep; make them buffers"),
    ([*NET, "--check", "x=float32[1, 4]"], 1,
     "--check: the captured graph does not take these inputs: AssertionError"),
]


@pytest.mark.parametrize("words, status, what", BAD)
def test_bad_input(words, status, what, folder, capsys):
    before = sorted(os.listdir())
    capture(*words, "-o", "graph.txt", status=status)
    shown = capsys.readouterr()
    lines = [line for line in shown.err.split("\n") if not line.startswith("a Net of")]
    assert shown.out == "" and lines[0].startswith("cfx capture: ") and what in shown.err
    assert "Traceback" not in shown.err and len(lines) == 2
    assert sorted(name for name in os.listdir() if name != "__pycache__") == before


def test_a_size_that_has_to_change(folder, capsys):
    (folder / "models.py").write_text("def f(x):\n    return x[: int(x.shape[0])] * 2\n")
    capture("models.py:f", "--input", "x=float32[3]", "--dynamic", "x=0", status=1)
    shown = capsys.readouterr().err
    assert "models.py:2: x.shape[0] may change, as `dynamic` says" in shown


def test_files_with_code_in_them_are_refused(folder, capsys):
    torch.save(torch.nn.Linear(2, 2), "x.pt")
    capture("models.py:Net", "--input", "x=x.pt", status=1)
    assert "--input: x: 'x.pt' holds more than tensors" in capsys.readouterr().err


def test_help_and_completion_know_the_same_options(capsys):
    """The options of the parser stand in cli/cmd_capture.c, too."""
    parser = _parser("capture")
    own = {word for action in parser._actions for word in action.option_strings} - {"-h", "-o"}
    shown = subprocess.run([CFX, "help", "capture"], capture_output=True, text=True, check=True)
    listed = set(re.findall(r"^  (--[a-z-]+)", shown.stdout, re.M))
    assert listed - {"--color"} == own
    with pytest.raises(SystemExit):
        main(["capture", "--help"])
    text = capsys.readouterr().out
    assert "cfx capture net.py:Net" in text and "Exit status: 0 done" in text
    script = subprocess.run([CFX, "completion", "bash"], capture_output=True, text=True, check=True)
    assert "--dynamic" in script.stdout and " capture " in script.stdout
