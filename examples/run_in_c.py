"""Run a captured model without Python: capture, lower, compare, save, and run with the command.

    PYTHONPATH=python python examples/run_in_c.py
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import cfx

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("CFX_BUILD", HERE.parent / "build"))
sys.path.insert(0, str(HERE))
from fuse_conv_bn import resnet18  # noqa: E402


def main(folder: Path) -> None:
    torch.manual_seed(0)
    model = resnet18().eval()
    image = torch.randn(1, 3, 64, 64)

    # Capture, then lower: every call becomes a row of the operator table, weights become inputs.
    captured = cfx.symbolic_trace(model)
    lowered = cfx.lower(captured)
    print(f"captured {len(captured.graph.nodes)} nodes; lowered to {lowered}")

    # The same numbers, from C. Tensors are shared, not copied.
    with torch.no_grad():
        want = model(image)
    got = lowered(image)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
    print(f"as PyTorch computes it: {list(got.shape)}, class {got.argmax().item()}")

    # Shapes without computing, for any number of images.
    shapes = lowered.infer("float32[N, 3, 64, 64]")
    print(f"for N images: {shapes.result}")

    # Three files are all that the command, or a program in C, needs.
    (folder / "resnet18.ir").write_text(cfx.text(lowered.graph))
    cfx.save_weights(lowered, folder / "resnet18.safetensors")
    cfx.save_npy(image, folder / "image.npy")
    command = ["cfx", "run", "--weights", "resnet18.safetensors", "--input", "image.npy",
               "--output", "scores.npy", "resnet18.ir"]
    print("$", " ".join(command))
    subprocess.run([BUILD / "cfx", *command[1:]], cwd=folder, check=True)
    scores = cfx.load_npy(folder / "scores.npy").torch()
    torch.testing.assert_close(scores, want, rtol=1e-4, atol=1e-4)
    print(f"without Python: class {scores.argmax().item()}, the same scores")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
