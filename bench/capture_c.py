"""Capturing the same programs from C, from Python with cfx, and with torch.fx: ns per node.

    make bench, or: python bench/capture_c.py [--repeats 7]      (after make build/bench/capture_c)

In C a program is captured by cfx_trace, in Python by symbolic_trace, which also writes the code of
a module; `Tracer().trace` is without that. Medians, of processor time, the garbage collector off.
"""
import argparse
import gc
import os
import statistics
import subprocess
import time
from pathlib import Path

import torch
import torch.fx

import cfx
import models

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(os.environ.get("CFX_BUILD", ROOT / "build")) / "bench/capture_c"


class Many(torch.nn.Module):
    def forward(self, x):
        for _ in range(20_000):
            x = torch.add(torch.relu(x), 1)
        return x


def in_c():
    """{name: (nodes, ns per node)}"""
    done = subprocess.run([PROGRAM], check=True, capture_output=True, text=True)
    return {name.strip(): (int(nodes), float(ns))
            for name, nodes, ns in
            (line.rsplit(maxsplit=2) for line in done.stdout.splitlines())}


def in_python(capture, model, repeats):
    taken = []
    for _ in range(repeats + 1):
        gc.collect()
        gc.disable()
        start = time.process_time()
        captured = capture(model)
        taken.append(time.process_time() - start)
        gc.enable()
    graph = captured.graph if hasattr(captured, "graph") else captured
    return statistics.median(taken[1:]) * 1e9 / len(graph.nodes)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--repeats", type=int, default=7)
    repeats = options.parse_args().repeats
    found = in_c()
    ways = {"cfx, trace": lambda m: cfx.Tracer().trace(m), "symbolic_trace": cfx.symbolic_trace,
            "torch.fx, trace": lambda m: torch.fx.Tracer().trace(m),
            "symbolic_trace ": torch.fx.symbolic_trace}
    print(f"{'ns per node':<20}{'nodes':>8}{'C':>9}{'shapes':>9}" +
          "".join(f"{way:>17}" for way in ways))
    for name, model in {"40,000 operations": Many(), "ResNet-18": models.ResNet18().eval()}.items():
        row = [in_python(capture, model, repeats) for capture in ways.values()]
        print(f"{name:<20}{found[name][0]:>8}{found[name][1]:>9.0f}"
              f"{found[f'{name}, shapes'][1]:>9.0f}" + "".join(f"{ns:>17,.0f}" for ns in row))


main()
