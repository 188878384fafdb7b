"""Convolutions of small groups of channels, as ResNeXt and RegNet have them: 3x3, batch 1.

    python bench/groups.py [--threads 1] [--rounds 8]

One convolution and its relu, compiled by cfx and in eager PyTorch, whose faster layout counts; and
three layers (1x1, the groups, 1x1) as floats and in static int8, both compiled. Microseconds, the
least of 20 runs in each round.
"""
import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import torch  # noqa: E402
from torch import nn  # noqa: E402

import cfx  # noqa: E402
from cfx import quantize  # noqa: E402

# channels, groups, side of the image, stride
LAYERS = [(64, 32, 56, 1), (128, 32, 56, 1), (64, 8, 56, 1), (256, 32, 56, 2), (256, 32, 28, 1),
          (512, 32, 14, 1), (1024, 32, 7, 1)]
RUNS = 20


class Layers(nn.Module):
    def __init__(self, channels, middle):
        super().__init__()
        self.down, self.middle = nn.Conv2d(channels, channels, 1), middle
        self.up = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        return self.up(torch.relu(self.middle(torch.relu(self.down(x)))))


def least(engines, x, rounds):
    best = [float("inf")] * len(engines)
    for _ in range(rounds):
        for i, run in enumerate(engines):
            for _ in range(RUNS):
                start = time.perf_counter()
                run(x)
                best[i] = min(best[i], 1e6 * (time.perf_counter() - start))
    return best


def measure(channels, groups, side, stride, options):
    conv = nn.Conv2d(channels, channels, 3, stride, 1, groups=groups).eval()
    one = nn.Sequential(conv, nn.ReLU()).eval()
    x = torch.randn(1, channels, side, side)
    last = x.to(memory_format=torch.channels_last)
    program = cfx.compile(one, last, threads=options.threads)
    wanted = one.to(memory_format=torch.channels_last)(last)
    assert torch.allclose(torch.as_tensor(program(last)), wanted, atol=1e-4)
    ours, eager = least([program, one], last, options.rounds)
    one.to(memory_format=torch.contiguous_format)
    eager = min(eager, *least([one], x, options.rounds))
    three = Layers(channels, conv).eval()
    mapping = quantize.get_default_qconfig_mapping("onednn")
    prepared = quantize.prepare_fx(cfx.capture(three, x), mapping, (x,))
    prepared(x)
    both = [cfx.compile(m, x, threads=options.threads)
            for m in (three, quantize.convert_fx(prepared))]
    floats, integers = least(both, x, options.rounds)
    print(f"| {channels} in {groups} groups, {side} x {side}{f' / {stride}' if stride > 1 else ''} "
          f"| {eager:.0f} | {ours:.0f} | {eager / ours:.2f}x | {floats:.0f} | {integers:.0f} "
          f"| {floats / integers:.2f}x |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    print("| convolution | eager | cfx | | three layers, float32 | int8 | |")
    print("|---|---|---|---|---|---|---|")
    with torch.no_grad():
        for layer in LAYERS:
            measure(*layer, options)


if __name__ == "__main__":
    main()
