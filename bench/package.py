"""How fast a model of 500 MB is ready, and how much memory it takes: .cfx beside other files.

    python bench/package.py [--repeats 5] [--only WORD] [--folder DIR] [--peers DIR] [--json FILE]

A model with a table of 262 MB, of which a run reads 16 rows, and layers of 252 MB, which a run
reads whole. It is saved once in each format, in DIR (a temporary folder by default). Then each tool
loads it in a fresh process, in turns, with the file in the page cache (warm) and without (cold:
posix_fadvise); medians. Modules that a tool names are imported before the clock starts, and all
have their bytecode, as installed ones do: each tool runs once before it is measured.

    load     until the model can be called
    first    until the first result is there: load and one run
    memory   of the process, more than before it loaded: after load, and after the first result
             (Rss of /proc/self/smaps_rollup: pages of a mapped file count once they are touched)

Results are compared with eager PyTorch. Tools that are not installed are said to be missing;
`--peers` names a folder for them: pip install --target DIR --no-deps onnx onnxruntime onnxscript
onnx_ir ml_dtypes protobuf flatbuffers packaging openvino safetensors. `cfx in C` is
build/bench/package: make build/bench/package.
"""
import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IN_C = ROOT / "build/bench/package"
ROWS, WIDTH, LAYERS = 64000, 1024, 15
CLOSE = 1e-4  # of the largest element

# ---- the model and its files --------------------------------------------------------------------


def make_model():
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH)
            self.down = nn.Linear(2 * WIDTH, WIDTH)

        def forward(self, x):
            return x + self.down(nn.functional.gelu(self.up(self.norm(x))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(ROWS, WIDTH)
            self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))

        def forward(self, ids):
            return self.layers(self.table(ids))

    torch.manual_seed(0)
    return Net().eval(), torch.randint(0, ROWS, (1, 16))


def write_onnx(model, ids, folder):
    import onnx
    import torch

    one = folder / "model.onnx"
    torch.onnx.export(model, (ids,), one, dynamo=True, external_data=False, verbose=False)
    onnx.save(onnx.load(one), folder / "outside.onnx", save_as_external_data=True,
              location="outside.bin")  # fmt: skip


def write_openvino(model, ids, folder):
    import openvino

    made = openvino.convert_model(model, example_input=ids)
    openvino.save_model(made, folder / "model.xml", compress_to_fp16=False)


def write_pt2(model, ids, folder):
    import torch

    torch.export.save(torch.export.export(model, (ids,)), folder / "model.pt2")


def write_script(model, ids, folder):
    import torch

    torch.jit.save(torch.jit.trace(model, (ids,)), folder / "model.pt")


def write_cfx(model, ids, folder):
    import cfx

    cfx.save(cfx.capture(model, ids), folder / "model.cfx")


def write_safetensors(model, ids, folder):
    from safetensors.torch import save_file

    save_file(dict(model.state_dict()), folder / "model.safetensors")


# ---- loading, each in a process of its own ------------------------------------------------------
# A function imports what it needs and returns how to load: a function without arguments that
# returns the model as a function of an array.


def by_cfx(folder, ids):
    import cfx
    import torch

    given = torch.from_numpy(ids)

    def load():
        gm = cfx.load(folder / "model.cfx")

        def run():
            with torch.no_grad():
                return gm(given).numpy()

        return run

    return load


def by_runtime(folder, ids):
    import cfx.runtime

    def load():
        run = cfx.runtime.load(folder / "model.cfx")
        return lambda: run(ids)

    return load


def by_onnxruntime(folder, ids, file="model.onnx"):
    import onnxruntime

    def load():
        session = onnxruntime.InferenceSession(str(folder / file),
                                               providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        return lambda: session.run(None, {name: ids})[0]

    return load


def by_onnx_outside(folder, ids):
    return by_onnxruntime(folder, ids, "outside.onnx")


def by_openvino(folder, ids):
    import openvino

    def load():
        core = openvino.Core()
        model = core.compile_model(core.read_model(folder / "model.xml"), "CPU",
                                   {"INFERENCE_PRECISION_HINT": "f32"})  # fmt: skip
        return lambda: model([ids])[0]

    return load


def by_script(folder, ids):
    import torch

    given = torch.from_numpy(ids)

    def load():
        model = torch.jit.load(folder / "model.pt")

        def run():
            with torch.no_grad():
                return model(given).numpy()

        return run

    return load


def by_pt2(folder, ids):
    import torch
    import torch.export

    given = torch.from_numpy(ids)

    def load():
        model = torch.export.load(folder / "model.pt2").module()

        def run():
            with torch.no_grad():
                return model(given).numpy()

        return run

    return load


def by_safetensors(folder, ids):
    from safetensors.torch import load_file

    def load():
        load.kept = load_file(folder / "model.safetensors")

    return load


# tool: how it loads, how its file is written, the files that it reads
TOOLS = {
    "cfx.load": (by_cfx, write_cfx, ["model.cfx"]),
    "cfx.runtime.load": (by_runtime, write_cfx, ["model.cfx"]),
    "cfx in C": (None, write_cfx, ["model.cfx"]),
    "onnxruntime": (by_onnxruntime, write_onnx, ["model.onnx"]),
    "onnxruntime, weights beside": (by_onnx_outside, write_onnx, ["outside.onnx", "outside.bin"]),
    "openvino": (by_openvino, write_openvino, ["model.xml", "model.bin"]),
    "torch.jit.load": (by_script, write_script, ["model.pt"]),
    "torch.export.load": (by_pt2, write_pt2, ["model.pt2"]),
    "safetensors alone": (by_safetensors, write_safetensors, ["model.safetensors"]),
}
OURS = [name for name in TOOLS if name.startswith("cfx")]
ENGINES = ["onnxruntime", "onnxruntime, weights beside", "openvino", "torch.jit.load",
           "torch.export.load"]  # fmt: skip


def resident():
    text = Path("/proc/self/smaps_rollup").read_text()
    return int(text.partition("Rss:")[2].split()[0]) << 10


def child(tool, folder):
    """Loads and runs, and prints what that took."""
    import numpy

    ids, expected = numpy.load(folder / "ids.npy"), numpy.load(folder / "expected.npy")
    load = TOOLS[tool][0](folder, ids)
    gc.collect()  # what importing has left: it would take 80 ms at some moment
    before, start = resident(), time.perf_counter()
    run = load()
    found = {"load": time.perf_counter() - start, "loaded": resident() - before}
    if run is not None:
        start = time.perf_counter()
        result = run()
        found["first"] = found["load"] + time.perf_counter() - start
        found["ran"] = resident() - before
        found["far"] = float(abs(result - expected).max() / abs(expected).max())
    print(json.dumps(found))


# ---- all ----------------------------------------------------------------------------------------


def in_page_cache(files, wanted):
    """Puts files into the page cache, or out of it."""
    for file in files:
        with open(file, "rb") as opened:
            if wanted:
                while opened.read(1 << 24):
                    pass
            else:
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(tool, folder, warm):
    in_page_cache([folder / name for name in TOOLS[tool][2]], warm)
    command = [sys.executable, "-W", "ignore", __file__, "--child", tool, "--folder", str(folder)]
    if tool == "cfx in C":
        command = [IN_C, folder / "model.cfx", folder / "ids.npy", folder / "expected.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{tool}: {done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    if found.get("far", 0) > CLOSE:
        raise SystemExit(f"{tool}: the result differs by {found['far']:.1e} of the largest element")
    return found


def prepare(folder, tools):
    """Writes the files that are not there; returns the tools that can be tried."""
    import numpy
    import torch

    model, ids = make_model()
    with torch.no_grad():
        numpy.save(folder / "expected.npy", model(ids).numpy())
    numpy.save(folder / "ids.npy", ids.numpy())
    ready = []
    for tool in tools:
        _, write, files = TOOLS[tool]
        if tool == "cfx in C" and not IN_C.exists():
            print(f"{tool}: missing: make build/bench/package")
            continue
        try:
            if not all((folder / name).exists() for name in files):
                write(model, ids, folder)
        except ImportError as error:
            print(f"{tool}: missing: {error}")
            continue
        ready.append(tool)
    os.sync()
    return ready


def row(tool, samples):
    """Medians: "load" and "first" in ms, "loaded" and "ran" in MB."""
    units = {"load": 1e3, "first": 1e3, "loaded": 1e-6, "ran": 1e-6}
    return {key: statistics.median(s[key] for s in samples) * unit
            for key, unit in units.items() if key in samples[0]}  # fmt: skip


def show(rows):
    for state in ("warm", "cold"):
        print(f"\n| {state} | load, ms | first result, ms | memory after load, MB | after it, MB |")
        print("|---|---|---|---|---|")
        for tool, found in rows[state].items():
            cells = [f"{found[key]:.{1 if key in ('load', 'first') and found[key] < 100 else 0}f}"
                     if key in found else "" for key in ("load", "first", "loaded", "ran")]
            print(f"| {tool} | {' | '.join(cells)} |")
        engines = [found["load"] for tool, found in rows[state].items() if tool in ENGINES]
        for tool in OURS:
            if tool in rows[state] and engines:
                ratio = min(engines) / rows[state][tool]["load"]
                print(f"{tool}: loads {ratio:.1f}x as fast as the best other engine")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="tools whose names have this word")
    parser.add_argument("--folder", type=Path, help="for the files: 3.5 GB, which are kept")
    parser.add_argument("--peers", help="a folder with other tools")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child, options.folder)
    sys.path.insert(0, str(ROOT / "python"))
    paths = [str(ROOT / "python"), options.peers or "", os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = ":".join(filter(None, paths))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.path += [options.peers] if options.peers else []
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        folder.mkdir(exist_ok=True)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        tools = prepare(folder, [tool for tool in TOOLS if options.only in tool])
        for tool in tools:
            measure(tool, folder, True)
        samples = {state: {tool: [] for tool in tools} for state in ("warm", "cold")}
        for _ in range(options.repeats):
            for state, found in samples.items():
                for tool in tools:
                    found[tool].append(measure(tool, folder, state == "warm"))
    rows = {state: {tool: row(tool, s) for tool, s in found.items()}
            for state, found in samples.items()}  # fmt: skip
    show(rows)
    if options.json:
        options.json.write_text(json.dumps(samples, indent=1))


if __name__ == "__main__":
    main()
