#!/usr/bin/env python3
"""elementwise.py - element-wise functions and copies of cfx and of PyTorch, side by side.

Both are called from Python; the time of a call is in it, and counts at 1000 elements. Arguments are
ready; results are new tensors (but for those that end with '_'), and memory for them is the
system's affair: at 10 million elements it is most of the time.
"""
import sys
import time

import cfx
import torch
import torch.nn.functional as F

SIZES = 1_000, 100_000, 10_000_000


def cases(n):
    """name, PyTorch's call, cfx's row, its arguments."""
    x, y, z = torch.randn(n), torch.rand(n) + 0.1, torch.empty(n)
    b, i = x.bfloat16(), torch.arange(n)
    m = torch.randn(n // 100, 100)
    row = torch.randn(100)
    t = torch.empty(100, n // 100)
    yield "add", lambda: torch.add(x, y), "add", (x, y)
    yield "mul by a number", lambda: torch.mul(x, 2.5), "mul", (x, 2.5)
    yield "add a row", lambda: torch.add(m, row), "add", (m, row)
    yield "add int64", lambda: torch.add(i, i), "add", (i, i)
    yield "add bfloat16", lambda: torch.add(b, b), "add", (b, b)
    yield "add_", lambda: z.add_(y), "add_", (z, y)
    yield "gt 0", lambda: torch.gt(x, 0.0), "gt", (x, 0.0)
    yield "relu", lambda: torch.relu(x), "relu", (x,)
    for name, f in (("exp", torch.exp), ("log", torch.log), ("tanh", torch.tanh),
                    ("sigmoid", torch.sigmoid), ("silu", F.silu), ("gelu", F.gelu),
                    ("erf", torch.erf), ("sin", torch.sin)):
        yield name, lambda f=f: f(y), name, (y,)
    yield "copy_", lambda: z.copy_(x), "copy_", (z, x)
    yield "transposed copy_", lambda: t.copy_(m.t()), "copy_", (t, m.t())
    yield "float32 to bfloat16", lambda: b.copy_(x), "copy_", (b, x)
    yield "bfloat16 to float32", lambda: z.copy_(b), "copy_", (z, b)


def best(calls, reps, seconds=0.2):
    """The shortest time of each, measured in turns so that noise hits all alike."""
    times = [float("inf")] * len(calls)
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end:
        for k, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(reps):
                call()
            times[k] = min(times[k], (time.perf_counter() - start) / reps)
    return times


def measure(n, threads):
    for name, theirs, row, args in cases(n):
        ready = [cfx.Tensor(a) if isinstance(a, torch.Tensor) else a for a in args]
        function = getattr(cfx.ops, row)
        mine, other = best([lambda f=function, a=ready: f(*a), theirs], max(1, 100_000 // n))
        print(f"{name:22}{n:>10}{threads:>9}{mine * 1e6:>12.1f}{other * 1e6:>12.1f}"
              f"{other / mine:>9.2f}")


def main():
    print(f"{'':22}{'elements':>10}{'threads':>9}{'cfx us':>12}{'torch us':>12}{'ratio':>9}")
    for threads in (1, 2):
        torch.set_num_threads(threads)
        with cfx.Runtime(threads=threads):
            for n in SIZES:
                measure(n, threads)
    return 0


if __name__ == "__main__":
    sys.exit(main())
