"""Batch-norms fused into convolutions: ResNet-18 and ResNet-50, eager torch before and after.

    python bench/fuse_bn.py [--repeats 15] [--batch 1] [--threads 2]

Weights are random, statistics random, too. "error" is the largest difference between both results,
divided by the largest magnitude of a result: 1e-5 is the limit. Times are milliseconds a run,
medians of runs that take turns; "cfx" and "torch.fx" is what each takes to trace and fuse.
"""
import argparse
import statistics
import time

import torch
from torch import nn

import cfx
from cfx.experimental.optimization import fuse
from torch.fx.experimental.optimization import fuse as torch_fuse
from models import ResNet18, ResNet50


def prepared(model):
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.normal_(std=0.1)
            m.running_var.uniform_(0.5, 2)
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.normal_(m.bias, std=0.1)
    return model.eval()


def timed(run):
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    x = torch.randn(options.batch, 3, 224, 224)
    print(f"{'model':<10}{'nodes':>12}{'torch.fx':>10}{'cfx':>8}{'before':>10}{'after':>8}"
          f"{'ratio':>8}{'error':>10}")  # fmt: skip
    for cls in (ResNet18, ResNet50):
        model = prepared(cls())
        passes = [[timed(lambda: f(model, inplace=True))[1] * 1e3 for f in (torch_fuse, fuse)]
                  for _ in range(5)]  # fmt: skip
        theirs, ours = map(statistics.median, zip(*passes))
        fused = fuse(model, inplace=True)
        before = len(cfx.symbolic_trace(model).graph.nodes)
        times = {model: [], fused: []}
        with torch.no_grad():
            want, got = model(x), fused(x)
            for _ in range(options.repeats):
                for m, all_times in times.items():
                    all_times.append(timed(lambda: m(x))[1])
        error = ((got - want).abs().max() / want.abs().max()).item()
        old, new = (statistics.median(t) * 1e3 for t in times.values())
        nodes = f"{before} -> {len(fused.graph.nodes)}"
        print(f"{cls.__name__:<10}{nodes:>12}{theirs:>10.1f}{ours:>8.1f}{old:>10.1f}{new:>8.1f}"
              f"{old / new:>7.2f}x{error:>10.1e}")  # fmt: skip
        assert error < 1e-5, f"{cls.__name__}: the results differ by {error}"


if __name__ == "__main__":
    main()
