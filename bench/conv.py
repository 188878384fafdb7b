#!/usr/bin/env python3
"""conv.py - convolutions of cfx and of PyTorch, layer by layer, in one process: batch 1, float32.

    python bench/conv.py [threads]

Times are milliseconds, the best of runs that take turns; "ratio" is PyTorch's time over cfx's.
Layers are those of ResNet-18/50, MobileNetV3, ResNeXt and ViT.
"""
import statistics
import sys
import time

import cfx
import torch

# channels in, out, kernel, stride, padding, groups, size of the image
LAYERS = [
    (3, 64, 7, 2, 3, 1, 224), (64, 64, 3, 1, 1, 1, 56), (64, 128, 3, 2, 1, 1, 56),
    (128, 128, 3, 1, 1, 1, 28), (256, 256, 3, 1, 1, 1, 14), (512, 512, 3, 1, 1, 1, 7),
    (64, 256, 1, 1, 0, 1, 56), (256, 64, 1, 1, 0, 1, 56), (512, 128, 1, 1, 0, 1, 28),
    (1024, 256, 1, 1, 0, 1, 14), (512, 2048, 1, 1, 0, 1, 7), (2048, 512, 1, 1, 0, 1, 7),
    (256, 512, 1, 2, 0, 1, 56), (3, 16, 3, 2, 1, 1, 224), (16, 16, 3, 1, 1, 16, 112),
    (64, 64, 3, 2, 1, 64, 112), (72, 72, 5, 2, 2, 72, 56), (120, 120, 5, 1, 2, 120, 28),
    (480, 480, 3, 1, 1, 480, 14), (960, 960, 5, 1, 2, 960, 7), (16, 64, 1, 1, 0, 1, 112),
    (960, 160, 1, 1, 0, 1, 7), (128, 128, 3, 1, 1, 32, 56), (3, 768, 16, 16, 0, 1, 224),
]  # fmt: skip


def measure(layer):
    cin, cout, kernel, stride, padding, groups, size = layer
    x, bias = torch.randn(1, cin, size, size), torch.randn(cout)
    w = torch.randn(cout, cin // groups, kernel, kernel)
    args = [cfx.Tensor(a) for a in (x, w, bias)] + [stride, padding, 1, groups]

    def ours():
        return cfx.ops.conv2d(*args)

    def eager():
        return torch.conv2d(x, w, bias, stride, padding, 1, groups)

    best = [float("inf")] * 2
    flops = 2 * eager().numel() * cin // groups * kernel * kernel
    for _ in range(15):
        for i, run in enumerate((eager, ours)):
            start = time.perf_counter()
            run()
            best[i] = min(best[i], time.perf_counter() - start)
    name = f"{cin}-{cout} {kernel}x{kernel}/{stride}" + (f" g{groups}" if groups > 1 else "")
    print(f"{name:<24}{size:>4}{best[0] * 1e3:>10.3f}{best[1] * 1e3:>10.3f}"
          f"{flops / best[1] / 1e9:>9.1f}{best[0] / best[1]:>8.2f}x", flush=True)  # fmt: skip
    return best[0] / best[1]


def main():
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    torch.set_num_threads(threads)
    print(f"{'layer':<24}{'size':>4}{'eager':>10}{'cfx':>10}{'GFLOP/s':>9}{'ratio':>9}")
    with torch.no_grad(), cfx.Runtime(threads=threads):
        ratios = [measure(layer) for layer in LAYERS]
    print(f"lowest ratio {min(ratios):.2f}x (goal 0.6x), geometric mean "
          f"{statistics.geometric_mean(ratios):.2f}x")


if __name__ == "__main__":
    main()
