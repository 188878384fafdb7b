"""Captured models in the C interpreter against torch eager: batch 1, float32.

    python bench/interp.py [--repeats 15] [--threads 2] [--small] [MODEL ...]

Times are milliseconds a run, medians of runs that take turns; "ratio" is torch's time over cfx's.
"error" is the largest difference of the results, divided by the largest magnitude of a result.
"""
import argparse
import statistics
import time

import models  # noqa: F401  (finds tests/zoo)
import torch
import zoo

import cfx

SEVEN = ("mlp", "resnet18", "resnet50", "mobilenet_v3", "vit_b_16", "bert", "gpt2")


def first(result):
    return result[0] if isinstance(result, tuple) else result


def milliseconds(run):
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3


def measure(name, options):
    model, inputs = zoo.make(name, options.small)
    lowered = cfx.lower(zoo.trace(cfx, model))
    want, got = first(model(*inputs)), first(lowered.run(*inputs))
    error = ((want - got).abs().max() / want.abs().max()).item()
    assert error < 1e-4, f"{name}: the results differ by {error}"
    runs = [lambda: model(*inputs), lambda: lowered.run(*inputs)]
    times = [[milliseconds(run) for run in runs] for _ in range(options.repeats + 2)][2:]
    eager, ours = map(statistics.median, zip(*times))
    print(f"{name:<16}{len(lowered.graph.nodes):>7}{eager:>10.2f}{ours:>10.2f}"
          f"{eager / ours:>8.2f}x{error:>10.1e}", flush=True)  # fmt: skip
    return eager / ours


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", default=SEVEN, metavar="MODEL")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--small", action="store_true", help="the small forms of the models")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"{'model':<16}{'nodes':>7}{'eager':>10}{'cfx':>10}{'ratio':>9}{'error':>10}")
    with torch.no_grad():
        ratios = [measure(name, options) for name in options.models]
    print(f"lowest ratio {min(ratios):.2f}x (goal 0.5x), geometric mean "
          f"{statistics.geometric_mean(ratios):.2f}x")


if __name__ == "__main__":
    main()
