"""What a captured run costs: time and peak memory of cfx.capture beside other tools.

    python bench/capture_run.py [--repeats 9] [--only WORD] [--memory] [--no-time] [--json FILE]

Time: each tool captures the same model in one process, in turns, with one thread and the garbage
collector off while the clock runs; medians. cfx.capture, torch.jit.trace and torch.compile run the
model while they capture it, so the median of the eager run, measured in the same turns, is
subtracted; torch.fx and torch.export do not run it. torch.compile is its first call with
backend="eager" after torch._dynamo.reset(). "per node" is per node of torch.fx's graph, for all
tools. The tracer of torch.fx does not take models whose Python looks at values.

Memory: a fresh process for each figure. The high-water mark of the process while the model runs, or
is captured, above what it has before that; the weights are not part of it, and a small model of the
same kind is captured before, for what torch loads at its first use: 40 MB of DTensor and sympy for
`torch.where(x, y, 0.0)` of a subclass of Tensor. Copies of the inputs and of the buffers that the
model writes are part of what a capture is allowed.
"""
import argparse
import ctypes
import gc
import json
import os
import statistics
import subprocess
import sys
import time
import warnings

import torch
import torch.fx

import cfx
import models
import zoo

# ---- models ------------------------------------------------------------------------------------


def thin_vit():
    """The nodes of ViT-B/16 with little to compute in each."""
    return models.ViTB16(image=32, features=48).eval(), (torch.randn(1, 3, 32, 32),)


def small_resnet():
    model, _ = models.resnet50()
    return model, (torch.randn(1, 3, 32, 32),)


TIMED = {
    "ResNet-50": small_resnet,
    "ViT-B/16": thin_vit,
    "BERT, 2 layers": lambda: zoo.make("bert", small=True),
    "GPT-2, 2 layers": lambda: zoo.make("gpt2", small=True),
}
MEASURED = {"ResNet-50": "resnet50", "BERT-base": "bert", "GPT-2": "gpt2", "U-Net": "unet"}


# ---- tools -------------------------------------------------------------------------------------


def eager(model, inputs):
    return model(*inputs)


def by_cfx(model, inputs):
    return cfx.capture(model, *inputs)


def by_fx(model, inputs):
    return torch.fx.symbolic_trace(model)


def by_jit(model, inputs):
    return torch.jit.trace(model, inputs, check_trace=False)


def by_export(model, inputs):
    return torch.export.export(model, inputs)


def by_dynamo(model, inputs):
    torch._dynamo.reset()
    return torch.compile(model, backend="eager")(*inputs)


TOOLS = {"eager": eager, "cfx.capture": by_cfx, "torch.fx": by_fx, "jit.trace": by_jit,
         "export": by_export, "compile": by_dynamo}  # fmt: skip
RUNS_IT = ("cfx.capture", "jit.trace", "compile")  # then the eager run is subtracted
GOALS = {"jit.trace": 1, "export": 20}  # how many times faster than these


# ---- time --------------------------------------------------------------------------------------


def timed(work, model, inputs):
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        result = work(model, inputs)
        return time.perf_counter() - start, result
    finally:
        gc.enable()


def check(model, inputs):
    """What was captured computes what the model computes."""
    want, got = model(*inputs), by_cfx(model, inputs)(*inputs)
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (want, got))):
        assert torch.equal(a, b), "another result"


def nodes_of(model):
    try:
        return len(torch.fx.Tracer().trace(model).nodes)
    except Exception:
        return None


def compare(model, inputs, repeats):
    """{tool: seconds} of all repeats, but for the first time."""
    times = {}
    tools = dict(TOOLS)
    for i in range(repeats + 1):
        for name, work in list(tools.items()):
            try:
                seconds, _ = timed(work, model, inputs)
            except Exception as error:
                print(f"  {name} does not take it: {type(error).__name__}")
                del tools[name]
                continue
            if i:
                times.setdefault(name, []).append(seconds)
    return times


def print_times(name, times, nodes):
    median = {tool: statistics.median(seconds) for tool, seconds in times.items()}
    own = {tool: value - (median["eager"] if tool in RUNS_IT else 0)
           for tool, value in median.items()}  # fmt: skip
    print(f"{name}: {nodes} nodes, eager run {median['eager'] * 1e3:.2f} ms")
    for tool, seconds in own.items():
        if tool == "eager":
            continue
        ratio = seconds / own["cfx.capture"]
        goal = GOALS.get(tool)
        verdict = "" if goal is None else f"{goal}x  {'ok' if ratio >= goal else 'short'}"
        print(f"  {tool:<14}{seconds * 1e3:>10.2f} ms{seconds / nodes * 1e6:>10.1f} us per node"
              f"{ratio:>8.1f}x  {verdict}")  # fmt: skip
    sys.stdout.flush()


def table_of_times(options, figures):
    for name, make in TIMED.items():
        if options.only and options.only not in name:
            continue
        model, inputs = make()
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(model, inputs)
            nodes = nodes_of(model) or len(by_cfx(model, inputs).graph.nodes)
            times = compare(model, inputs, options.repeats)
        print_times(name, times, nodes)
        figures[name] = {"nodes": nodes, "seconds": times}


# ---- memory ------------------------------------------------------------------------------------


def high_water(what):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(what))


def written(model):
    """Bytes of the buffers that a run writes: statistics in training."""
    return sum(b.nbytes for b in model.buffers()) if model.training else 0


def measure(name, how, grad, training):
    """One figure, in a process of its own: bytes above what there was before."""
    torch.set_num_threads(1)
    with torch.set_grad_enabled(grad):
        by_cfx(*zoo.make(MEASURED[name], small=True))
    model, inputs = zoo.make(MEASURED[name])
    model.train(training)
    work = {"eager": eager, "capture": by_cfx}[how]
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what making the model has freed is not there to be used
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the high-water mark begins anew
    before = high_water("VmRSS")
    with torch.set_grad_enabled(grad):
        result = work(model, inputs)  # noqa: F841: what the caller has of it counts
    copies = sum(t.nbytes for t in inputs) + written(model)
    print(json.dumps([high_water("VmHWM") - before, copies, before]))


def measured(*arguments):
    command = [sys.executable, __file__, "--measure", *map(str, arguments)]
    # tensors are given back as soon as they are freed, so that the mark is that of their sum
    env = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    shown = subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout
    return json.loads(shown.splitlines()[-1])


def table_of_memory(options, figures):
    print("peak memory of one run, MiB above the model: eager, copies allowed, capture, ratio")
    for name in MEASURED:
        for grad, training in ((0, 0), (1, 0), (1, 1)):
            if options.only and options.only not in name:
                continue
            peaks = []
            for _ in range(options.processes):
                run, copies, before = measured(name, "eager", grad, training)
                capture, _, _ = measured(name, "capture", grad, training)
                peaks.append((run, capture))
            run, capture = (statistics.median(column) for column in zip(*peaks))
            ratio = (capture - copies) / run
            mode = f"{'grad' if grad else 'no_grad'}, {'train' if training else 'eval'}"
            print(f"  {name:<12}{mode:<16}{run / 2**20:>9.1f}{copies / 2**20:>9.1f}"
                  f"{capture / 2**20:>9.1f}{ratio:>8.2f}x  {'ok' if ratio <= 1.2 else 'short'}"
                  f"   (model and process {before / 2**20:.0f})", flush=True)  # fmt: skip
            figures[f"memory {name}, {mode}"] = {"peaks": peaks, "copies": copies}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--only", help="models with this word alone")
    parser.add_argument("--memory", action="store_true", help="peak memory, too")
    parser.add_argument("--no-time", action="store_true", help="memory alone")
    parser.add_argument("--processes", type=int, default=3, help="for each figure of memory")
    parser.add_argument("--json", help="store every single figure in a file")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, how, grad, training = options.measure
        return measure(name, how, grad == "1", training == "1")
    torch.set_num_threads(1)
    figures = {}
    if not options.no_time:
        table_of_times(options, figures)
    if options.memory or options.no_time:
        table_of_memory(options, figures)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=1)
    return None


if __name__ == "__main__":
    main()
