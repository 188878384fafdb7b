"""torch.compile with the backend "cfx": results and gradients against eager PyTorch, crossings, the
time to compile and to run against Inductor.

    PYTHONPATH=python python bench/compile_backend.py [--update] [--inductor MODEL,...] [MODEL ...]
    PYTHONPATH=python python bench/compile_backend.py --programs [--update] [--every N]

Both take --kept FILE: rows are added to it as they come, and those that are in it already are not
measured again; an hour of Inductor can be had in pieces.

All models of tests/zoo in their small sizes, once without gradients and once in training. Errors
are measured against float64, relative to the norm, for cfx and for eager PyTorch, because some
networks amplify rounding. The time of a back end is what its own functions take; Dynamo and
AOTAutograd are in the totals, and so are the plans of the first run. Inductor starts with an empty
cache folder for each model; it takes minutes, so --inductor names the models that it compiles (""
for none). "frozen" is cfx with the option "freeze".

--programs: the programs of tests/python/programs and capture_programs, each in a process of its
own: how many do what eager PyTorch does; where they do not, the backend "eager" is asked, too, for
Dynamo may be the reason. --update writes the tables of docs/interop.md.
"""
import argparse
import copy
import functools
import json
import os
import random
import resource
import shutil
import signal
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/python"), str(ROOT / "bench")]
import cfx  # noqa: E402
import zoo  # noqa: E402
from script import between, table  # noqa: E402

LONGEST = 60  # seconds of the processor for one program
PATIENCE = 900  # seconds on the clock: the machine may be busy with other things


def leaves(value):
    return [x for x in torch.utils._pytree.tree_leaves(value)
            if isinstance(x, torch.Tensor) and x.is_floating_point()]


def loss_of(value):
    return sum(x.pow(2).mean() for x in leaves(value))


def away(got, want):
    """The distance of tensors, relative to their norm."""
    far = sum((a.double() - b.double()).pow(2).sum().item() for a, b in zip(got, want))
    return (far / max(sum(b.double().pow(2).sum().item() for b in want), 1e-30)) ** 0.5


def no_dropout(model):
    """For float64: random numbers of another type are others."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(module, torch.nn.RNNBase):
            module.dropout = 0.0
    return model


def in_double(inputs):
    return [x.double() if x.is_floating_point() else x for x in inputs]


def run(model, inputs, train):
    if not train:
        with torch.no_grad():
            return leaves(model(*inputs))
    model.zero_grad()
    loss = loss_of(model(*inputs))
    loss.backward()
    return [loss.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]


class Clock:
    """Adds up the time that a back end's own functions take."""

    def __init__(self):
        self.seconds = 0.0

    def watch(self, function):
        def timed(*args, **kwargs):
            begun = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - begun

        return timed


def by_inductor(model, inputs, train):
    """The compiled model, what Inductor took of it, and the total."""
    from torch._inductor import compile_fx

    folder = tempfile.mkdtemp()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
    clock = Clock()
    inner = clock.watch(compile_fx.compile_fx_inner)

    def timed(gm, examples):
        return compile_fx.compile_fx(gm, examples, inner_compile=inner)

    try:
        torch._dynamo.reset()
        fast = torch.compile(model, backend=timed)
        with torch._inductor.config.patch(fx_graph_cache=False, force_disable_caches=True):
            begun = time.perf_counter()
            run(fast, inputs, train)
            return fast, clock.seconds, time.perf_counter() - begun
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def by_cfx(model, inputs, train, **options):
    torch._dynamo.reset()
    fast = torch.compile(model, backend="cfx", options=options)
    begun = time.perf_counter()
    run(fast, inputs, train)
    return fast, cfx.explain(fast).seconds, time.perf_counter() - begun


def turns(callables, seconds=1.0):
    """Medians of calls in turn, in milliseconds."""
    times = [[] for _ in callables]
    begun = time.perf_counter()
    while time.perf_counter() - begun < seconds or len(times[0]) < 5:
        for each, call in zip(times, callables):
            start = time.perf_counter()
            call()
            each.append(time.perf_counter() - start)
    return [statistics.median(each) * 1e3 for each in times]


def judge(name, train, inductor):
    """A row of the table."""
    model, inputs = zoo.make(name, small=True)
    model = no_dropout(model).train(train)
    exact = copy.deepcopy(model).double()
    ours, theirs, plain, packed = (copy.deepcopy(model) for _ in range(4))
    want = run(exact, in_double(inputs), train)
    eager = away(run(plain, inputs, train), want)
    fast, own, total = by_cfx(ours, inputs, train)
    got = away(run(copy_weights(fast, ours, model), inputs, train), want)
    report = cfx.explain(fast)
    calls = {"eager": model, "cfx": fast}
    other = None
    if not train:
        calls["frozen"] = by_cfx(packed, inputs, train, freeze=True)[0]
    if inductor:
        other = by_inductor(theirs, inputs, train)
        calls["inductor"] = other[0]
    times = turns([functools.partial(run, call, inputs, train) for call in calls.values()])
    left = sum(len(g.left) if g.fallback is None else g.calls for g in report.graphs)
    right = got <= max(1e-4, 4 * eager)
    return {"name": name, "right": right, "error": (got, eager), "in_c": report.in_c, "left": left,
            "crossings": report.crossings, "own": own, "total": total,
            "times": dict(zip(calls, times)),
            "inductor": other[1:] if other else None}  # fmt: skip


def copy_weights(fast, ours, model):
    """As before the first run: norms in training have changed their statistics."""
    ours.load_state_dict(model.state_dict())
    return fast


HEADS = ("model", "ours / eager, from float64", "calls in C", "in PyTorch", "crossings",
         "back end, ms", "Inductor, ms", "ratio", "total, s", "Inductor, s",
         "eager, ms", "cfx, ms", "frozen, ms", "Inductor, ms")  # fmt: skip
RUNS = ("eager", "cfx", "frozen", "inductor")


def cells(row):
    error = f"{row['error'][0]:.0e} / {row['error'][1]:.0e}" + ("" if row["right"] else " (WRONG)")
    other = row["inductor"]
    compared = [f"{other[0] * 1e3:.0f}", f"{other[0] / row['own']:.0f}x"] if other else ["", ""]
    run_times = [f"{row['times'][of]:.2f}" if of in row["times"] else "" for of in RUNS]
    return [row["name"], error, row["in_c"], row["left"], row["crossings"],
            f"{row['own'] * 1e3:.0f}", *compared, f"{row['total']:.1f}",
            f"{other[1]:.1f}" if other else "", *run_times]  # fmt: skip


class Kept:
    """Results by name, in a file of lines if there is one."""

    def __init__(self, path):
        self.path = Path(path) if path else None
        lines = self.path.read_text().splitlines() if path and self.path.exists() else []
        self.found = dict(json.loads(line) for line in lines)

    def get(self, key, make):
        if key not in self.found:
            self.found[key] = make()
            if self.path:
                with self.path.open("a") as file:
                    file.write(json.dumps([key, self.found[key]]) + "\n")
        return self.found[key]


def models_table(names, train, inductor, kept):
    rows = []
    for name in names:
        key = f"{'training' if train else 'inference'} {name}"
        rows.append(kept.get(key, lambda: judge(name, train, name in inductor)))
        print(" | ".join(map(str, cells(rows[-1]))), flush=True)
    text = table(HEADS, [cells(row) for row in rows])
    ratios = [row["inductor"][0] / row["own"] for row in rows if row["inductor"]]
    right = sum(row["right"] for row in rows)
    text += f"\n\n{right} of {len(rows)} equal."
    if ratios:
        text += (f" Inductor's own time is {min(ratios):.0f} to {max(ratios):.0f} times that of "
                 f"cfx, "
                 f"{statistics.median(ratios):.0f} in the median.")
    return text


# ---- programs ----------------------------------------------------------------------------------


def ran(programs, program, backend=None):
    """What the program does, compiled or as it is, and the compiled one. Random numbers of Python
    and NumPy are the same each time."""
    torch._dynamo.reset()
    random.seed(0)
    np.random.seed(0)
    made = program.make()
    if backend is not None:
        made = torch.compile(made, backend=backend)
    return programs.run(made, program.calls), made


def disagreements(programs, program, backend):
    """For each call how the compiled program differs, "" where it does not; and that program."""
    want, _ = ran(programs, program)
    got, fast = ran(programs, program, backend)
    return [programs.disagreement(a, b, exact=False, words=False)
            for a, b in zip(want, got)], fast


def does_the_same(programs, program):
    """Whether the compiled program does what the program does, and if not, whether Dynamo itself
    changes its meaning; how many graphs, calls in C, calls in PyTorch and crossings it has."""
    bad, fast = disagreements(programs, program, "cfx")
    graphs = cfx.explain(fast).graphs
    why = next(filter(None, bad), "")
    dynamo = bool(why) and any(disagreements(programs, program, "eager")[0])
    return {"why": why, "dynamo": dynamo, "graphs": len(graphs),
            "in_c": sum(g.in_c for g in graphs), "left": sum(len(g.left) for g in graphs),
            "fallbacks": sum(g.fallback is not None for g in graphs),
            "crossings": sum(g.crossings for g in graphs)}  # fmt: skip


def in_child(programs, program):
    """Apart, for a program may end the process, or take for ever."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
        signal.alarm(PATIENCE)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        try:
            result = does_the_same(programs, program)
        except BaseException as error:
            result = {"why": f"{type(error).__name__}: {str(error)[:200]}"}
        os.write(writes, json.dumps(result).encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"why": "it ended the process, or took too long"}


def import_all():
    """What a compilation imports, once for all children; nothing that starts threads."""
    import torch._functorch.aot_autograd  # noqa: F401

    import cfx.interop.backend  # noqa: F401

    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))


def programs_table(every, kept):
    import capture_programs
    import programs

    import_all()
    torch._dynamo.config.recompile_limit = 16
    rows, wrong = [], []
    for title, package in (("tests/python/programs", programs),
                           ("tests/python/capture_programs", capture_programs)):
        suite = getattr(package, "run", None) and package or programs
        listed = package.load_all()[::every]
        found = [kept.get(f"{title} {program.topic}.{program.name}",
                          lambda: in_child(suite, program)) for program in listed]  # fmt: skip
        right = sum(not row["why"] for row in found)
        dynamo = sum(row.get("dynamo", False) for row in found)
        for program, row in zip(listed, found):
            if row["why"] and not row.get("dynamo"):
                wrong.append(f"{program.topic}.{program.name}: {row['why'][:160]}")
        counts = [sum(row.get(key, 0) for row in found)
                  for key in ("graphs", "in_c", "left", "fallbacks", "crossings")]
        rows.append([title, len(listed), right, dynamo, len(listed) - right - dynamo, *counts])
    print("\n".join(wrong))
    return table(("programs", "tried", "equal", "different with any back end", "different",
                  "graphs", "calls in C", "in PyTorch", "fallbacks", "crossings"),
                 rows)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--inductor", help="models that Inductor compiles, too; all by default")
    parser.add_argument("--programs", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="take each n-th program")
    parser.add_argument("--kept", help="a file that keeps results from run to run")
    options = parser.parse_args()
    kept = Kept(options.kept)
    warnings.simplefilter("ignore")
    names = options.models or list(zoo.MODELS)
    chosen = names if options.inductor is None else options.inductor.split(",")
    texts = {}
    if options.programs:
        texts["compile programs"] = programs_table(options.every, kept)
        print(texts["compile programs"])
    for train in () if options.programs else (False, True):
        key = "compile training" if train else "compile inference"
        texts[key] = models_table(names, train, chosen, kept)
        print(texts[key].rpartition("\n")[2], flush=True)
    if options.update:
        page = ROOT / "docs/interop.md"
        text = page.read_text()
        for key, made in texts.items():
            text = between(text, key, made)
        page.write_text(text)


if __name__ == "__main__":
    main()
