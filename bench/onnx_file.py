"""A large model as an ONNX file: reading, against the onnx package; writing, against copying the
file.

    python bench/onnx_file.py [MEGABYTES]

Reading is timed in a process of its own, for a file that cfx wrote and for one that the onnx
package wrote from the same model. A file of the package has elements at any address: cfx leaves
them in the file until they are needed, so what counts there is the first result as well. Peaks are
those of the process, less what it had before it read; pages of a mapped file count.

Writing is cfx.onnx.save of a captured module; copying is shutil.copyfile with fsync, as writing has
it. The two take turns to be the first. Numbers are medians of ROUNDS.
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
ROUNDS = 5
WIDTH = 2048


def model_of(megabytes):
    import torch
    from torch import nn

    layers = max(1, round(megabytes / 16))
    model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(layers)]).eval()
    return model, (torch.randn(2, WIDTH),)


def peak():
    """Of this program alone: ru_maxrss is inherited from who started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


# ---- writing ----------------------------------------------------------------------------------


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def copy(path, to):
    shutil.copyfile(path, to)
    with open(to, "rb+") as file:
        os.fsync(file.fileno())


def write(path, megabytes):
    """Prints seconds to save and to copy, and megabytes of memory before and at the peak."""
    import torch

    import cfx
    import cfx.onnx

    model, inputs = model_of(megabytes)
    with torch.no_grad():
        captured = cfx.capture(model, *inputs)
    before = peak()
    cfx.onnx.save(captured, path)
    saving, copying = [], []
    turns = [(saving, lambda: cfx.onnx.save(captured, path + ".new")),
             (copying, lambda: copy(path, path + ".new"))]  # fmt: skip
    for _ in range(ROUNDS):
        for times, run in turns:
            times.append(seconds(run))
            os.unlink(path + ".new")
        turns.reverse()  # who comes second gets the pages of the first
    print(statistics.median(saving), statistics.median(copying), before, peak())


# ---- reading ----------------------------------------------------------------------------------


def read(path, reader):
    """Prints seconds to read and to the first result (none: nan), and megabytes of memory more."""
    import numpy

    x = numpy.ones((2, WIDTH), numpy.float32)
    if reader == "onnx.load":
        import onnx

        load, call = onnx.load, None
    elif reader == "cfx.runtime.load":
        import cfx.runtime

        load, call = cfx.runtime.load, lambda model: model(x)
    elif reader == "cfx.onnx.load":
        import torch

        import cfx.onnx

        load, call = cfx.onnx.load, lambda model: model(torch.from_numpy(x))
        torch.nn.functional.linear(torch.ones(2, 2), torch.ones(2, 2))  # torch's own first call
    else:
        import onnxruntime

        load = onnxruntime.InferenceSession
        call = lambda model: model.run(None, {model.get_inputs()[0].name: x})  # noqa: E731
    before = peak()
    start = time.perf_counter()
    model = load(path)
    loaded = time.perf_counter() - start
    if call:
        call(model)
    first = time.perf_counter() - start if call else float("nan")
    print(loaded, first, peak() - before)


def child(*arguments):
    out = subprocess.run([sys.executable, __file__, *map(str, arguments)], check=True,
                         capture_output=True, text=True).stdout  # fmt: skip
    return [float(word) for word in out.split()]


def rewrite(path, to):
    """The same model as the onnx package writes it, without what aligns elements."""
    import onnx

    model = onnx.load(path)
    for tensor in model.graph.initializer:
        tensor.ClearField("doc_string")
    onnx.save(model, to)


READERS = ("onnx.load", "cfx.runtime.load", "cfx.onnx.load", "onnxruntime")


def show_reading(files, size):
    found = {(name, reader): [] for name in files for reader in READERS}
    for _ in range(ROUNDS):
        for (name, reader), rows in found.items():
            rows.append(child("read", files[name], reader))
    print(f"reading {size:.0f} MB{'':21} ms   to the first result   memory more   x onnx.load")
    for (name, reader), rows in found.items():
        loaded, first, more = (statistics.median(column) for column in zip(*rows))
        peer = statistics.median(row[0] for row in found[name, "onnx.load"])
        result = "-" if first != first else f"{1000 * first:.0f} ms"
        print(f"  {name:16} {reader:17} {1000 * loaded:7.1f} {result:>18} {more:10.0f} MB "
              f"{peer / loaded:9.1f}")


def main():
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/tmp")) as folder:
        path = os.path.join(folder, "m.onnx")
        saving, copying, before, after = child("write", path, megabytes)
        size = os.path.getsize(path) / 2**20
        print(f"{size:.0f} MB: written in {saving:.2f} s, copied in {copying:.2f} s: "
              f"{saving / copying:.2f}x")
        print(f"memory: {before:.0f} MB before, {after:.0f} MB at the peak: "
              f"{(after - before) / size:.2f} of the weights more")
        rewrite(path, path + ".package.onnx")
        show_reading({"written by cfx": path, "written by onnx": path + ".package.onnx"}, size)


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:2] == ["read"]:
        read(sys.argv[2], sys.argv[3])
    else:
        main()
