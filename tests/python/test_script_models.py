"""cfx script on models: what it captures without Python computes what PyTorch does with the same
weights; and the Python that it writes of a graph gives the same graph again."""
import importlib.util
import os
import re
import subprocess
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import cfx  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
MODELS = sorted((ROOT / "tests/scripts").glob("*.py"))
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}


def command(*words):
    return subprocess.run([str(BUILD / "cfx"), *map(str, words)], capture_output=True, text=True,
                          timeout=300, env=ENVIRONMENT)


def run(*words):
    done = command(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def imported(path):
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def model_of(module):
    """What `cfx script` captures by default, and what tells it so otherwise."""
    classes = [c for c in vars(module).values() if isinstance(c, type) and
               issubclass(c, torch.nn.Module) and c.__module__ == module.__name__]
    return (classes[-1]().eval(), []) if classes else (module.model, ["--function", "model"])


def take_weights(model, path):
    """Those of the file, under the same names; they must be all that the model's graph can read."""
    own = dict(model.named_parameters(remove_duplicate=False))
    own.update(model.named_buffers(remove_duplicate=False))
    loaded = {k: torch.from_dlpack(v) for k, v in cfx.load_tensors(path).items()}
    with torch.no_grad():
        for name, value in loaded.items():
            if name in own:
                own[name].copy_(value)
            else:  # a tensor that is an attribute
                owner, _, last = name.rpartition(".")
                assert name.startswith("_tensor_constant") or torch.equal(
                    getattr(model.get_submodule(owner), last), value)


def flat(result):
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        return [x for item in result for x in flat(item)]
    return [torch.as_tensor(result)]


def results(folder, graph, weights, args):
    """What cfx run writes."""
    inputs = []
    for i, value in enumerate(args):
        cfx.save_npy(value, folder / f"in{i}.npy")
        inputs += ["--input", folder / f"in{i}.npy"]
    for old in folder.glob("out*.npy"):
        old.unlink()
    run("run", "--weights", weights, *inputs, "--output", folder / "out.npy", graph)
    files = sorted(folder.glob("out*.npy"),
                   key=lambda p: [int(n) for n in re.findall(r"\d+", p.name)])
    return [torch.from_dlpack(cfx.load_npy(f)).clone() for f in files]


def compare(module, model, folder, script, *options):
    graph, weights = folder / "model.ir", folder / "model.safetensors"
    run("script", "--eval", *options, "-o", graph, "--weights", weights, script)
    if isinstance(model, torch.nn.Module):
        take_weights(model, weights)
    torch.manual_seed(0)
    for args in module.inputs():
        with torch.no_grad():
            expected = flat(model(*[a.clone() for a in args]))
        found = results(folder, graph, weights, args)
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            torch.testing.assert_close(a.to(b.dtype), b, rtol=1e-5, atol=1e-5)
        if isinstance(model, torch.nn.Module):  # who writes to its buffers begins anew
            take_weights(model, weights)


@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.stem)
def test_results_are_those_of_torch(path, tmp_path):
    module = imported(path)
    model, options = model_of(module)
    compare(module, model, tmp_path, path, *options)


def graph_of(path, *options):
    return re.sub(r"  @ .*", "", run("script", "--keep-modules", *options, path))


@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.stem)
def test_the_code_of_a_graph_gives_the_graph(path, tmp_path):
    module = imported(path)
    model, options = model_of(module)
    again = tmp_path / "again.py"
    again.write_text(run("script", "--python", "--eval", *options, path))
    assert graph_of(again) == graph_of(path, "--eval", *options)


def graphs():
    """Graphs of the golden files and examples that are functions, and of what scripts know."""
    for path in sorted((ROOT / "tests/golden").rglob("*.ir")) + sorted(
            (ROOT / "examples/graphs").glob("*.ir")):
        text = path.read_text().split("# EXPECT")[0]
        if text.find("graph()") >= 0:
            yield path, text[text.find("graph()"):]


def pipe(text, *words):
    done = subprocess.run([str(BUILD / "cfx"), *words], input=text, capture_output=True, text=True,
                          timeout=60, env=ENVIRONMENT)
    return done.stdout if done.returncode == 0 else None


# Two nodes in it are one tensor, written to in place, of which the code knows one name.
OTHERWISE = {"cse_writes.ir"}
# Without PyTorch there is no autocast.
REFUSED = {"contexts.ir"}
# What goes in and out of regions, and in which order, is up to whoever captures: models above.
CONTROL = re.compile(r"^ +(if|while|for) ", re.M)


def test_source_and_graph_of_goldens_come_to_rest():
    """Code is written of a graph, captured, written and captured again: the same both times."""
    good, unknown = [], []
    for path, text in graphs():
        code = pipe(text, "code", "-")
        if path.name in REFUSED:
            continue
        if code is None or "self." in code or re.search(r"^import (?!torch|cfx)", code, re.M):
            continue  # parts that the graph only names; packages that only their authors have
        first = pipe(code, "script", "--keep-modules", "--function", "forward", "-")
        if first is None:
            unknown.append(path.name)
        elif not CONTROL.search(code) and path.name not in OTHERWISE:
            again = pipe(pipe(first, "code", "-"), "script", "--keep-modules", "--function",
                         "forward", "-")
            assert re.sub(r"  @ .*", "", again) == re.sub(r"  @ .*", "", first), path
            good.append(path.name)
    assert len(good) > 15 and len(unknown) < 6, (good, unknown)
