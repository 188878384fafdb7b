"""python -m cfx trace: modules of PyTorch as files that run in C, and what it says to bad input."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import zoo  # noqa: E402

import cfx  # noqa: E402
from cfx.__main__ import main  # noqa: E402

CFX = Path(os.environ.get("CFX_BUILD", ROOT / "build")) / "cfx"

NET = '''\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=4, bias=True, dtype=None):
        super().__init__()
        print("a Net of width", width)
        self.a = nn.Linear(width, 8, bias=bias, dtype=dtype)
        self.b = nn.Linear(8, width, dtype=dtype)
        self.register_buffer("scale", torch.arange(1.0, width + 1).to(dtype), persistent=False)
        self.register_buffer("ready", torch.tensor(True))
        self.drop = nn.Dropout(0.5)

    def forward(self, x, times: int = 2):
        return self.drop(self.b(torch.relu(self.a(x)))) * self.scale * times


class Twice(Net):
    def forward(self, x, times: int = 2, *, twice=False):
        x = super().forward(x, times)
        if twice:
            return x, x + x
        return x


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 6)
        self.out = nn.Linear(6, 10)
        self.out.weight = self.embed.weight

    def forward(self, ids):
        return self.out(self.embed(ids))


class Flagged(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("flag", torch.tensor(True))

    def forward(self, x):
        return x + 1 if self.flag else x


class Chooses(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


class Missing(nn.Module):
    def forward(self, x):
        return torch.logdet(x) + torch.linalg.lstsq(x, x)[0]


class Needs(nn.Module):
    def __init__(self, width):
        super().__init__()
        raise ValueError("width of " + str(width))


class Holds(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Chooses()

    def forward(self, x):
        return self.inner(x) * 2


def soft(x, y):
    return torch.softmax(x, -1) + y


def make(width=3):
    return Net(width)


number = 3
'''


def line_of(text):
    return next(i for i, line in enumerate(NET.split("\n"), 1) if text in line)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "one.py").write_text("import net\n\nmade = net.Net(5)\n")
    (tmp_path / "broken.py").write_text("import torch\n\n1 / 0\n")
    (tmp_path / "wants.py").write_text("\nimport nowhere_at_all\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])  # as python -m has it
    yield tmp_path
    for name in ("net", "one", "broken", "wants"):
        sys.modules.pop(name, None)


def command(*words, cwd, status=0):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(ROOT / "tests")])}
    done = subprocess.run([sys.executable, "-m", "cfx", *words], capture_output=True, text=True,
                          cwd=cwd, env=env, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def flat(result):
    return [t for item in result for t in flat(item)] if isinstance(result, tuple) else [result]


def run_in_c(folder, inputs, name="graph"):
    """What the command gives for the files."""
    words = []
    if (folder / f"{name}.safetensors").exists():
        words = ["--weights", f"{name}.safetensors"]
    for i, value in enumerate(inputs):
        cfx.save_npy(value, folder / f"in{i}.npy")
        words += ["--input", f"in{i}.npy"]
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    subprocess.run([CFX, "run", *words, "--output", "out.npy", f"{name}.txt"], cwd=folder, env=env,
                   check=True)
    files = sorted(folder.glob("out*.npy"))
    return [cfx.load_npy(file).torch() for file in files]


def close(got, want):
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.dtype == w.dtype and g.shape == w.shape
        assert (g - w).abs().max() <= 1e-4 * w.abs().max()


# ---- models of the zoo ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["resnet18", "bert", "gpt2", "lstm_lm", "unet"])
def test_a_model_runs_in_c(name, tmp_path):
    source = "import zoo\n\n\ndef model(name):\n    return zoo.make(name, small=True)[0]\n"
    (tmp_path / "models.py").write_text(source)
    done = command("trace", "models:model", "--arg", f"'{name}'", "-o", "graph.txt", cwd=tmp_path)
    assert done.stdout == "" and done.stderr.startswith("graph.txt: ")
    module, inputs = zoo.make(name, small=True)
    with torch.no_grad():
        want = flat(module(*inputs))
    close(run_in_c(tmp_path, inputs), want)
    graph = cfx.parse((tmp_path / "graph.txt").read_text())
    weights = cfx.load_tensors(tmp_path / "graph.safetensors")
    lowered = cfx.Lowered(graph, {name: t.torch() for name, t in weights.items()}, graph)
    close(flat(lowered.run(*inputs)), want)


def test_text_goes_to_standard_output(folder):
    done = command("trace", "net.py:soft", cwd=folder)
    assert done.stdout.startswith("graph():\n") and done.stderr == ""
    again = command("trace", "one:made", "--no-weights", cwd=folder)
    assert again.stdout.startswith("graph():\n") and again.stderr == "a Net of width 5\n"
    noted = command("trace", "one:made", cwd=folder)
    assert noted.stdout == again.stdout and "the graph reads 5 tensors; --weights" in noted.stderr


# ---- what can be captured ---------------------------------------------------------------------


def trace(*words, status=0):
    assert main(["trace", *map(str, words)]) == status


def eager(module, *inputs):
    with torch.no_grad():
        return flat(module.eval()(*inputs))


def test_a_class_takes_arguments(folder, capsys):
    trace("net.py:Net", "--arg", 6, "--arg", "bias=False", "--arg", "dtype=float64", "--seed", 3,
          "-o", "graph.txt")
    import net

    x = torch.randn(2, 6, dtype=torch.float64)
    torch.manual_seed(3)
    close(run_in_c(folder, [x]), eager(net.Net(6, bias=False, dtype=torch.float64), x))
    assert "a Net of width 6" in capsys.readouterr().err
    names = set(cfx.load_tensors("graph.safetensors"))
    assert names == {"a.weight", "b.weight", "b.bias", "scale"}  # also what no state_dict has


def test_a_function_a_module_and_a_maker(folder):
    trace("net.py:soft", "-o", "graph.txt")
    assert not Path("graph.safetensors").exists()
    x, y = torch.randn(2, 3), torch.randn(3)
    import net

    close(run_in_c(folder, [x, y]), [net.soft(x, y)])
    trace("one.py:made", "-o", "graph.txt")
    close(run_in_c(folder, [torch.ones(2, 5)]), eager(sys.modules["one"].made, torch.ones(2, 5)))
    for target, width in (("net:make", 3), ("net.py:make", 3)):
        trace(target, "-o", "graph.txt")
        assert cfx.load_tensors("graph.safetensors")["scale"].shape == (width,)


def test_inputs_are_fixed(folder):
    trace("net.py:Twice", "--concrete", "times=3", "--concrete", "twice=True", "-o", "graph.txt",
          "--check", "x=float32[2, 4]")
    graph = cfx.parse(Path("graph.txt").read_text())
    assert [n.name for n in graph.nodes if n.op == "placeholder"] == ["x"]
    import net

    x = torch.randn(2, 4)
    torch.manual_seed(0)
    module = net.Twice().eval()
    with torch.no_grad():
        close(run_in_c(folder, [x]), module(x, 3, twice=True))


def test_a_buffer_may_decide(folder):
    trace("net.py:Flagged", "-o", "graph.txt")
    close(run_in_c(folder, [torch.zeros(2)]), [torch.ones(2)])


def test_tied_weights_are_written_under_both_names(folder):
    trace("net.py:Tied", "-o", "graph.txt", "--check", "ids=int64[7]")
    tensors = cfx.load_tensors("graph.safetensors")
    assert set(tensors) == {"embed.weight", "out.weight", "out.bias"}
    assert torch.equal(tensors["embed.weight"].torch(), tensors["out.weight"].torch())
    import net

    module = net.Tied()
    cfx.load_weights(module, "graph.safetensors")
    assert module.out.weight is module.embed.weight
    close(run_in_c(folder, [torch.arange(10)]), eager(module, torch.arange(10)))


def test_training_mode(folder):
    trace("net.py:Net", "--train", "-o", "graph.txt")
    assert "ops.dropout](%b, 0.5, True)" in Path("graph.txt").read_text()
    trace("net.py:Net", "--eval", "-o", "graph.txt")
    assert "ops.dropout](%b, 0.5, True)" not in Path("graph.txt").read_text()


def test_not_lowered(folder):
    trace("net.py:Holds", "--leaf", "Chooses", "--no-lower", "-o", "graph.txt")
    assert "call_module[target=inner](%x)" in Path("graph.txt").read_text()
    assert not Path("graph.safetensors").exists()
    trace("net.py:Net", "--no-lower", "-o", "graph.txt")
    assert "call_module[target=a](%x)" in Path("graph.txt").read_text()
    names = set(cfx.load_tensors("graph.safetensors"))
    assert names == {"a.weight", "a.bias", "b.weight", "b.bias", "scale"}


def test_weights_elsewhere(folder):
    trace("net.py:Net", "-o", "graph.txt", "--weights", "w.npz")
    assert sorted(p.name for p in folder.glob("*") if p.suffix in (".npz", ".safetensors")) == [
        "w.npz"]
    assert set(cfx.load_tensors("w.npz")) == {"a.weight", "a.bias", "b.weight", "b.bias", "scale"}


def test_one_file_with_everything(folder, capsys):
    trace("net.py:Net", "-o", "net.cfx", "--check", "x=float32[2, 4]")
    import net

    torch.manual_seed(0)
    module = net.Net().eval()  # with the weights that the command made
    assert [p.name for p in folder.glob("*.safetensors")] == []
    loaded = cfx.load("net.cfx")
    assert {node.op for node in loaded.graph.nodes} >= {"call_module"}
    x = torch.randn(3, 4)
    assert torch.equal(loaded(x), module(x))
    trace("net.py:Net", "-o", "bare.cfx", "--no-weights")
    assert Path("bare.cfx").stat().st_size < Path("net.cfx").stat().st_size
    assert main(["trace", "net.py:Net", "-o", "net.cfx", "--weights", "w.npz"]) == 2
    assert "net.cfx holds the weights, too" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["pt", "nested.pt", "safetensors", "npz"])
def test_checkpoints(form, folder):
    trace("net.py:Tied", "--no-weights", "-o", "graph.txt")  # imports it
    import net

    torch.manual_seed(9)
    module = net.Tied()
    state = dict(module.state_dict())
    if form == "pt":
        torch.save(state, "c.pt")
    elif form == "nested.pt":
        torch.save({"epoch": 3, "state_dict": state}, "c.nested.pt")
    else:
        del state["out.weight"]  # some writers keep one name of several
        (cfx.save_weights if form == "safetensors" else cfx.save_npz)(state, f"c.{form}")
    trace("net.py:Tied", "--checkpoint", f"c.{form}", "-o", "graph.txt")
    close(run_in_c(folder, [torch.arange(10)]), eager(module, torch.arange(10)))


# ---- checking ---------------------------------------------------------------------------------


def test_check_tells_the_distance(folder, capsys):
    trace("net.py:Net", "--check", "x=float32[2, 4], times=4", "-o", "graph.txt")
    assert "check: the files agree with the module; largest difference" in \
        capsys.readouterr().err
    cfx.save_npy(torch.arange(3), "ids.npy")
    trace("net.py:Tied", "--check", "ids=ids.npy", "--no-weights", "-o", "graph.txt")
    assert "largest difference" in capsys.readouterr().err


def test_check_tells_what_differs(folder, capsys):
    trace("net.py:Net", "--train", "--check", "x=float32[20, 4]", "-o", "graph.txt", status=1)
    shown = capsys.readouterr().err
    assert "check: result differs: " in shown and " of 80 elements" in shown
    assert Path("graph.txt").exists()  # to look at


def test_modules_in_this_folder(folder):
    """As the installed command finds them: Python looks beside that, not here."""
    program = ("import sys; sys.path[:] = [p for p in sys.path if p not in ('', sys.argv[1])]; "
               "from cfx.__main__ import main; sys.argv[1:] = sys.argv[2:]; sys.exit(main())")
    env = {**os.environ, "PYTHONPATH": str(Path(cfx.__file__).parents[1])}
    words = [sys.executable, "-c", program, str(Path.cwd()), "trace", "net:Tied", "-o", "graph.txt"]
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    assert done.returncode == 0 and Path("graph.txt").exists(), done.stderr


# ---- bad input --------------------------------------------------------------------------------

BAD = [
    (["net.py"], 2, "'net.py' is not a TARGET; write package.module:NAME or path/to/file.py:NAME"),
    (["nothing.py:Net"], 1, "there is no file 'nothing.py'"),
    (["nothing.at.all:Net"], 1, "there is no module 'nothing'; modules are searched for in"),
    (["net.py:Tide"], 1, "'net.py' has no 'Tide'; did you mean 'Tied'?"),
    (["net.py:number"], 1, "'net.py:number' is of type int; give a module, a module class"),
    (["broken.py:Net"], 1, "broken.py:3: cannot import 'broken.py': ZeroDivisionError: division"),
    (["wants:Net"], 1, "wants.py:2: cannot import 'wants': ModuleNotFoundError: No module named"),
    (["net.py:Needs"], 1, "missing a required argument: 'width'; the signature is Needs(width); "
     "pass arguments with --arg"),
    (["net.py:Needs", "--arg", "7"], 1, f"net.py:{line_of('raise ValueError')}: calling "
     "'net.py:Needs': ValueError: width of 7"),
    (["net.py:Net", "--arg", "relu"], 2, "--arg: relu is not a Python literal, dtype or device; "
     "put text in quotes twice: --arg \"'relu'\""),
    (["net.py:Net", "--arg", "bias=1", "--arg", "bias=2"], 2, "--arg: 'bias' is given twice"),
    (["one.py:made", "--arg", "1"], 2, "is already a module, so it takes no --arg"),
    (["net.py:soft", "--arg", "1", "--arg", "2"], 1, "calling 'net.py:soft': TypeError: "),
    (["net.py:soft", "--checkpoint", "c.pt"], 2, "--checkpoint: a function has no parameters"),
    (["net.py:Net", "--checkpoint", "c.pt"], 1, "cannot load 'c.pt': "),
    (["net.py:Net", "--checkpoint", "net.py"], 1, "cannot load 'net.py': "),
    (["net.py:Chooses"], 1, f"net.py:{line_of('x.sum()')}: cannot capture 'if x.sum() > 0:': the "
     "condition is not known while tracing"),
    (["net.py:Twice"], 1, f"net.py:{line_of('if twice:')}: cannot capture 'if twice:': "),
    (["net.py:Twice"], 1, "; or fix the input with --concrete twice=False, keep"),
    (["net.py:Chooses"], 1, "; or fix an input with --concrete NAME=VALUE, keep the module"),
    (["net.py:Missing"], 1, "2 calls cannot run in C (use --no-lower to write the graph"),
    (["net.py:Missing"], 1, "'torch._C._linalg.linalg_lstsq' is not in the operator table"),
    (["net.py:Net", "--concrete", "time=2"], 1, "there is no input 'time' among (x, times)"
     "; did you mean 'times'?"),
    (["net.py:Net", "--concrete", "times"], 2, "--concrete: expected NAME=VALUE, not 'times'"),
    (["net.py:Net", "--leaf", "Linaer"], 1, "no module of class 'Linaer'; did you mean 'Linear'?"),
    (["net.py:Net", "--weights", "w", "--no-weights"], 2, "cannot be used together"),
    (["net.py:Net", "-o", "w.safetensors"], 2, "--output is for the IR text"),
    (["net.py:Net", "-o", "no/graph.txt"], 1, "cannot write 'no/graph.txt': No such file"),
    (["net.py:Net", "-o", "graph.txt", "--weights", "no/w.safetensors"], 1,
     "cannot write 'no/w.safetensors': No such file"),
    (["net.py:Net", "-o", "."], 1, "cannot write '.': it is a folder"),
    (["net.py:Net", "--check", "x=float23[2]"], 2, "no dtype 'float23'; did you mean 'float32'?"),
    (["net.py:Net", "--check", "x=float32[N, 4]"], 2, "sizes must be numbers, not [N, 4]"),
    (["net.py:Net", "--check", "float32[2]"], 2, "expected NAME=TYPE[SIZES], NAME=NUMBER or"),
    (["net.py:Net", "--check", "x=none.npy"], 1, "--check: x: cannot open 'none.npy'"),
    (["net.py:Net", "--check", "x=float32[2, 9]"], 1, "does not take these inputs: RuntimeError"),
    (["net.py:Net", "--check", "y=float32[2, 9]"], 1, "does not take these inputs: TypeError"),
    (["net.py:Net", "--check", "x=float32[2]", "--no-lower"], 2, "cannot be used with --no-lower"),
]


@pytest.mark.parametrize("words, status, what", BAD)
def test_bad_input(words, status, what, folder, capsys):
    before = sorted(os.listdir())
    trace(*(["-o", "graph.txt"] if "-o" not in words else []), *words, status=status)
    shown = capsys.readouterr()
    lines = [line for line in shown.err.split("\n") if not line.startswith("a Net of")]
    assert shown.out == "" and lines[0].startswith("cfx trace: ") and what in shown.err
    assert "Traceback" not in shown.err
    assert len(lines) == 2 or "2 calls" in shown.err  # else it is one line
    assert sorted(name for name in os.listdir() if name != "__pycache__") == before


def test_old_files_stay_if_new_ones_cannot_be(folder, capsys):
    Path("graph.txt").write_text("old")
    Path("graph.safetensors").mkdir()
    trace("net.py:Net", "-o", "graph.txt", status=1)
    assert "cannot write 'graph.safetensors': it is a folder" in capsys.readouterr().err
    assert Path("graph.txt").read_text() == "old"


def test_a_checkpoint_that_does_not_fit(folder, capsys):
    trace("net.py:Net", "-o", "graph.txt")
    trace("net.py:Tied", "--checkpoint", "graph.safetensors", status=1)
    shown = capsys.readouterr().err
    assert "the file lacks embed.weight, out.weight, out.bias; the module lacks b.bias" in shown \
        or "the module lacks" in shown and "the file lacks embed.weight" in shown


def test_a_traceback_is_shown_if_asked_for(folder, capsys):
    trace("net.py:Needs", "--arg", 7, "--traceback", status=1)
    shown = capsys.readouterr().err
    assert "Traceback" in shown and 'raise ValueError("width of "' in shown


def test_usage(capsys):
    for words, status in ((["trace"], 2), (["trace", "--help"], 0),
                          (["trace", "x:y", "--wieghts"], 2)):
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == status
    assert "Exit status: 0 done" in capsys.readouterr().out
