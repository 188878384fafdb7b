"""A large model as an ONNX file: writing against copying the file, memory while it is written, and
what the onnx package takes to read it.

    python bench/onnx_file.py [MEGABYTES]

Writing is cfx.onnx.save of a captured module; copying is shutil.copyfile with fsync, as writing has
it. The peak is that of a process that does nothing but build, capture and save the model.
"""
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))


def model_of(megabytes):
    import torch
    from torch import nn

    width, layers = 2048, max(1, round(megabytes / 16))
    model = nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(layers)]).eval()
    return model, (torch.randn(2, width),)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def child(path, megabytes):
    """Prints seconds to save, and megabytes of memory before and at the peak."""
    import torch

    import cfx
    import cfx.onnx

    model, inputs = model_of(megabytes)
    with torch.no_grad():
        captured = cfx.capture(model, *inputs)
    before = peak()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        cfx.onnx.save(captured, path)
        times.append(time.perf_counter() - start)
    print(min(times), before, peak())


def copy(path, to):
    start = time.perf_counter()
    shutil.copyfile(path, to)
    with open(to, "rb+") as file:
        os.fsync(file.fileno())
    return time.perf_counter() - start


def main():
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/tmp")) as folder:
        path = os.path.join(folder, "m.onnx")
        out = subprocess.run([sys.executable, __file__, "child", path, str(megabytes)], check=True,
                             capture_output=True, text=True).stdout  # fmt: skip
        seconds, before, after = map(float, out.split())
        size = os.path.getsize(path) / 2**20
        copying = min(copy(path, path + ".copy") for _ in range(3))
        import onnx

        start = time.perf_counter()
        onnx.load(path)
        reading = time.perf_counter() - start
    print(f"{size:.0f} MB: written in {seconds:.2f} s, copied in {copying:.2f} s: "
          f"{seconds / copying:.2f}x")
    print(f"memory: {before:.0f} MB before, {after:.0f} MB at the peak: "
          f"{(after - before) / size:.2f} of the weights more")
    print(f"the onnx package reads it in {reading:.2f} s")


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2], int(sys.argv[3]))
    else:
        main()
