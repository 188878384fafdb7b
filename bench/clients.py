"""Throughput of one model that several threads call at once: cfx.runtime against ONNX Runtime.

    python bench/clients.py [--rounds 5] [--seconds 1] [--clients 1 2 4] [--threads 1 2] [--small]
                            [MODEL ...]

A model is captured once, and saved as a .cfx file and through cfx.onnx.save. Each engine loads its
file once, with so many threads for the operators ("intra"), and N client threads call that one
model in a loop, each with inputs of its own, for some seconds. Engines take turns, with a pause in
which the threads of the last one fall asleep. Numbers are runs per second of all clients together:
the median of the rounds, and the lowest and highest. "ratio" is the median of cfx over that of ONNX
Runtime. Results are compared before anything is measured.
"""
import argparse
import statistics
import tempfile
import threading
import time
from pathlib import Path

import models  # noqa: F401  (finds tests/zoo)
import numpy as np
import onnxruntime
import torch
import zoo

import cfx
import cfx.onnx
import cfx.runtime

PAUSE = 0.05  # seconds
CLOSE = 1e-4


def leaves(result):
    found = result if isinstance(result, (tuple, list)) else [result]
    return [np.asarray(leaf) for leaf in found]


def files(name, folder, small):
    """The paths of both files, and inputs."""
    model, inputs = zoo.make(name, small)
    captured = cfx.capture(model, *inputs)
    paths = folder / f"{name}.cfx", folder / f"{name}.onnx"
    cfx.save(captured, paths[0])
    cfx.onnx.save(captured, paths[1])
    return paths, [x.numpy() for x in inputs]


def cfx_engine(path, threads):
    return cfx.runtime.load(path, threads=threads)


def onnx_engine(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [row.name for row in session.get_inputs()]
    return lambda *inputs: session.run(None, dict(zip(names, inputs)))


def check(name, engines, inputs):
    ours, theirs = (leaves(run(*inputs)) for run in engines)
    assert len(ours) == len(theirs), f"{name}: {len(ours)} and {len(theirs)} results"
    for a, b in zip(ours, theirs):
        error = np.abs(a - b).max() / np.abs(b).max()
        assert error < CLOSE, f"{name}: the results differ by {error}"


def throughput(run, inputs, clients, seconds):
    """Runs per second of all clients; each finishes the run that it is in at the end."""
    start, counts, ends = threading.Barrier(clients + 1), [0] * clients, [0.0] * clients

    def client(i):
        own = [x.copy() for x in inputs]
        run(*own)
        start.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            run(*own)
            counts[i] += 1
        ends[i] = time.perf_counter()

    threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    start.wait()
    begin = time.perf_counter()
    for thread in threads:
        thread.join()
    time.sleep(PAUSE)
    return sum(count / (end - begin) for count, end in zip(counts, ends))


def measure(name, folder, options):
    (ours, theirs), inputs = files(name, folder, options.small)
    for intra in options.threads:
        engines = cfx_engine(ours, intra), onnx_engine(theirs, intra)
        check(name, engines, inputs)
        for clients in options.clients:
            rounds = [[throughput(run, inputs, clients, options.seconds) for run in engines]
                      for _ in range(options.rounds)]
            columns = list(zip(*rounds))
            medians = [statistics.median(column) for column in columns]
            texts = [f"{m:>10.1f} {f'({min(c):.1f} to {max(c):.1f})':<22}"
                     for m, c in zip(medians, columns)]
            print(f"{name:<10}{intra:>6}{clients:>9}{''.join(texts)}"
                  f"{medians[0] / medians[1]:>6.2f}x", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", default=["mlp", "resnet18", "bert"], metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--small", action="store_true", help="the small forms of the models")
    options = parser.parse_args()
    print(f"{'model':<10}{'intra':>6}{'clients':>9}{'cfx':>10}{'':<23}{'ONNX Runtime':>10}"
          f"{'':<21}{'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for name in options.models:
            measure(name, Path(folder), options)


if __name__ == "__main__":
    main()
