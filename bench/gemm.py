#!/usr/bin/env python3
"""gemm.py - matrix products of cfx and of PyTorch, side by side: GFLOP/s on 1 and 2 threads."""
import sys
import time

import cfx
import torch

SQUARE = [(n, n, n) for n in (64, 128, 256, 512, 1024, 2048)]
MODELS = [(128, 768, 768), (128, 768, 3072), (128, 3072, 768), (197, 768, 2304), (1, 784, 512),
          (1, 768, 3072), (4, 768, 768), (64, 576, 3136), (256, 2304, 196), (512, 4608, 49)]


def best(calls, seconds=0.25):
    """The shortest time of each, measured in turns so that noise hits all alike."""
    times = [float("inf")] * len(calls)
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end:
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            times[i] = min(times[i], time.perf_counter() - start)
    return times


def measure(threads, m, k, n, layout):
    a = torch.randn(m, k)
    b = torch.randn(k, n) if layout == "n" else torch.randn(n, k).t()
    x, y = cfx.Tensor(a), cfx.Tensor(b)
    t = best([lambda: cfx.ops.mm(x, y), lambda: torch.mm(a, b)])
    work = 2e-9 * m * n * k
    print(f"{threads:7} {m:6} {k:5} {n:5}   {layout} {t[0] * 1e6:11.1f} {t[1] * 1e6:9.1f} "
          f"{work / t[0]:7.1f} {work / t[1]:9.1f} {t[1] / t[0]:6.2f}", flush=True)


def main():
    print("threads      m     k     n   B      cfx us  torch us  cfx GF  torch GF  ratio")
    for threads in (1, 2):
        torch.set_num_threads(threads)
        with cfx.Runtime(threads=threads):
            for m, k, n in SQUARE + MODELS:
                for layout in "n", "t":
                    measure(threads, m, k, n, layout)


if __name__ == "__main__":
    sys.exit(main())
