"""torch.fx and cfx side by side: tracing and running, microseconds per node, medians, ratios.

    python bench/capture.py [--repeats 7] [--growth] [--only WORD] [--json FILE]

Both libraries do the same work in one process, alternately, with the garbage collector off while
the clock runs. Work of a few milliseconds is repeated until it has taken SAMPLE seconds, as timeit
does; "once, cold" is the first time after a garbage collection has gone through all of torch's
objects, and with them through the processor's caches. What they give is compared in the same run:
the printed graph, the code, and what the code computes. Default Tracers; models are those of
bench/models.py.
"""
import argparse
import copy
import gc
import json
import pickle
import statistics
import time

import torch
import torch.fx

import cfx
import models

MODELS = {
    "ResNet-50": models.resnet50,
    "ViT-B/16": models.vit_b_16,
    "40,000 ops": lambda: models.elementwise(40_000),
}
NAMES = ("Tracer", "GraphModule", "Interpreter", "Transformer", "symbolic_trace")
LIBRARIES = [torch.fx] + [cfx] * all(hasattr(cfx, name) for name in NAMES)


# ---- what is measured: prepare(fx, model, inputs) -> state, work(fx, state, inputs) -> result


def the_model(fx, model, inputs):
    return model


def traced(fx, model, inputs):
    """A GraphModule whose code has run once, so that nothing is left for later."""
    module = fx.symbolic_trace(model)
    module(*inputs)
    return module


def pickled(fx, model, inputs):
    return pickle.dumps(traced(fx, model, inputs))


def trace(fx, model, inputs):
    return fx.Tracer().trace(model)


def symbolic_trace(fx, model, inputs):
    return fx.symbolic_trace(model)


def trace_and_call(fx, model, inputs):
    return fx.symbolic_trace(model)(*inputs)


def transform(fx, module, inputs):
    return fx.Transformer(module).transform()


def interpret(fx, module, inputs):
    return fx.Interpreter(module).run(*inputs)


def deepcopy(fx, module, inputs):
    return copy.deepcopy(module)


def dumps(fx, module, inputs):
    return len(pickle.dumps(module))


def loads(fx, text, inputs):
    return pickle.loads(text)


EVERY = tuple(MODELS)
SMALL = ("40,000 ops",)  # where arithmetic, or copying weights, does not hide what is measured
ROWS = [
    # name, prepare, work, {model: goal}
    ("Tracer.trace", the_model, trace, dict(zip(EVERY, (15, 15, 40)))),
    ("  once, cold", the_model, trace, dict.fromkeys(EVERY[:2])),
    ("symbolic_trace", the_model, symbolic_trace, dict(zip(EVERY, (15, 15, 30)))),
    ("  and first call", the_model, trace_and_call, dict.fromkeys(SMALL)),
    ("Transformer", traced, transform, dict.fromkeys(EVERY, 5)),
    ("Interpreter.run", traced, interpret, dict.fromkeys(SMALL)),
    ("deepcopy", traced, deepcopy, dict.fromkeys(SMALL)),
    ("pickle.dumps", traced, dumps, dict.fromkeys(SMALL)),
    ("pickle.loads", pickled, loads, dict.fromkeys(SMALL)),
]


# ---- measuring


SAMPLE = 0.1  # seconds


def timed(work, fx, state, inputs, number):
    """Seconds for one of `number` times, and the last result."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(number):
            result = work(fx, state, inputs)
        return (time.perf_counter() - start) / number, result
    finally:
        gc.enable()


def shown(result, inputs):
    """What must be the same in both libraries."""
    if isinstance(result, torch.Tensor):
        return result
    if isinstance(result, torch.nn.Module):
        return str(result.graph), result.code, result(*inputs)
    return str(result) if not isinstance(result, int) else None  # a size of a pickle


def same(a, b):
    if isinstance(a, tuple):
        return all(map(same, a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def compare(row, model, inputs, repeats):
    """The median of each library in seconds; and every single time."""
    name, prepare, work, _ = row
    times = {fx: [] for fx in LIBRARIES}
    states = {fx: prepare(fx, model, inputs) for fx in LIBRARIES}
    number = dict.fromkeys(LIBRARIES, 1)
    if not name.endswith("cold"):
        for fx in LIBRARIES:
            seconds, _ = timed(work, fx, states[fx], inputs, 1)
            number[fx] = max(1, round(SAMPLE / seconds))
    for i in range(repeats):
        views = []
        for fx in LIBRARIES:
            seconds, result = timed(work, fx, states[fx], inputs, number[fx])
            times[fx].append(seconds)
            if i == 0:
                views.append(shown(result, inputs))
        assert all(same(views[0], view) for view in views), f"{name}: the results differ"
    return {fx.__name__: seconds for fx, seconds in times.items()}


def print_row(label, times, nodes, goal):
    micro = {name: statistics.median(t) / nodes * 1e6 for name, t in times.items()}
    cells = "".join(f"{value:>10.3f}" for value in micro.values())
    if len(micro) == 1:
        print(f"{label:<30}{cells}")
        return
    ratio = micro["torch.fx"] / micro["cfx"]
    verdict = "" if goal is None else "ok" if ratio >= goal else "short"
    print(f"{label:<30}{cells}{ratio:>8.1f}x{f'{goal}x' if goal else '':>7}  {verdict}")


def table(options, figures):
    print(f"{'medians of ' + str(options.repeats):<30}{'torch.fx':>10}{'cfx':>10}{'ratio':>9}"
          f"{'goal':>7}   (us per node)")
    for model_name, make in MODELS.items():
        model, inputs = make()
        nodes = len(torch.fx.Tracer().trace(model).nodes)
        for row in ROWS:
            label = f"{row[0]}, {model_name}"
            if model_name not in row[3] or (options.only and options.only not in label):
                continue
            with torch.no_grad():
                times = compare(row, model, inputs, options.repeats)
            print_row(label, times, nodes, row[3][model_name])
            figures[label.strip()] = {"nodes": nodes, "seconds": times}


def growth(figures):
    """One run each: cfx up to a million operations, torch.fx up to a tenth of that."""
    print(f"\n{'operations':>10}{'trace: torch.fx':>18}{'cfx':>10}"
          f"{'symbolic_trace: torch.fx':>27}{'cfx':>10}   (us per node)")
    for n in (1_000, 10_000, 100_000, 1_000_000):
        model, inputs = models.elementwise(n)
        cells = []
        for work in (trace, symbolic_trace):
            for fx in (torch.fx, cfx):
                if fx not in LIBRARIES or (fx is torch.fx and n > 100_000):
                    cells.append("-")
                    continue
                seconds, result = timed(work, fx, model, inputs, 1)
                cells.append(f"{seconds / n * 1e6:.3f}")
                del result
        print(f"{n:>10}{cells[0]:>18}{cells[1]:>10}{cells[2]:>27}{cells[3]:>10}", flush=True)
        figures[f"growth {n}"] = cells


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--growth", action="store_true", help="also up to a million operations")
    parser.add_argument("--only", help="rows with this word alone")
    parser.add_argument("--json", help="store every single time in a file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    figures = {}
    if cfx not in LIBRARIES:
        missing = [name for name in NAMES if not hasattr(cfx, name)]
        print(f"cfx has no {', '.join(missing)}: torch.fx alone")
    table(options, figures)
    if options.growth:
        growth(figures)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
