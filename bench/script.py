"""What captures programs that decide by data: cfx.script, torch.fx, torch.jit and torch.export side
by side, on the programs of tests/python/programs.

    python bench/script.py [--only WORD] [--tool NAME] [--json FILE] [--update] [--why]
    python bench/script.py --times [--repeats 7]

A program counts if the tool captures it from its source or its first input, and what it captured
does as eager PyTorch does on all inputs: values, dtypes, shapes, types and structure of results,
what is written to arguments, and that it raises (whatever) where eager PyTorch raises. --update
writes the tables of docs/capture.md, --why says what was in the way. --times compares how long
cfx.script and torch.jit.script take for the programs that both capture: interleaved, medians, on
functions and classes made anew each time, so that no cache knows them.
"""
import argparse
import gc
import inspect
import json
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import time
import warnings
from concurrent import futures
from pathlib import Path

import torch
import torch.fx
from torch.utils import _pytree

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python"))

import cfx  # noqa: E402
import programs  # noqa: E402

LONGEST = 60  # seconds for one program
# Captured, and right for all inputs; it raises for inputs that the program takes; it gives
# something else without a word; it ends the process; it was not captured.
VERDICTS = RIGHT, RAISES, WRONG, ENDS, REFUSED = "yes", "raises", "wrong", "ends", "no"


# ---- the tools: callable or module, first call -> captured callables, of which the best counts


def by_cfx(program, first):
    yield cfx.script(program.make())


def by_fx(program, first):
    yield torch.fx.symbolic_trace(program.make())


def by_jit_script(program, first):
    yield torch.jit.script(program.make())


def named(made, call):
    """All arguments by name."""
    target = made.forward if isinstance(made, torch.nn.Module) else made
    bound = inspect.signature(target).bind(*call.args, **call.kwargs)
    return dict(bound.arguments)


def by_jit_trace(program, first):
    made = program.make()
    if first.kwargs:
        yield torch.jit.trace(made, example_kwarg_inputs=named(made, first))
    else:
        yield torch.jit.trace(made, first.args)


def as_module(made):
    """torch.export takes modules only."""
    if isinstance(made, torch.nn.Module):
        return made

    class Program(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return made(*args, **kwargs)

    holder = Program()
    if hasattr(made, "__code__"):
        holder.forward = made  # under its own signature
    return holder


def sizes(x, numbers):
    """Every size may be another one, and with `numbers` every number."""
    if isinstance(x, torch.Tensor):
        return {i: torch.export.Dim.AUTO for i in range(x.dim())}
    if numbers and type(x) in (int, float):
        return torch.export.Dim.DYNAMIC if type(x) is int else None
    return None


def by_export(program, first):
    for strict in (False, True):
        for numbers in (True, False):
            given, made = first.copy(), as_module(program.make())
            try:
                shapes = _pytree.tree_map(lambda x: sizes(x, numbers), named(made, given))
                found = torch.export.export(made, given.args, given.kwargs, strict=strict,
                                            dynamic_shapes=shapes)
                yield found.module()
            except Exception as e:
                yield e


TOOLS = {
    "cfx.script": by_cfx,
    "torch.fx": by_fx,
    "jit.script": by_jit_script,
    "jit.trace": by_jit_trace,
    "export": by_export,
}


# ---- judging


def said(e):
    lines = [line.strip() for line in str(e).split("\n") if line.strip()]
    return f"{type(e).__name__}: {lines[0][:200] if lines else ''}"


def judge_one(suite, program, captured):
    if isinstance(captured, Exception):
        return REFUSED, said(captured)
    eager = suite.fresh(program)
    want, got = suite.run(eager.make(), eager.calls), suite.run(captured, program.calls)
    found = [(i, a, b, programs.disagreement(a, b, exact=False, words=False))
             for i, (a, b) in enumerate(zip(want, got))]
    for i, a, b, why in found:
        if why and b.error is None:
            return WRONG, f"call {i}: {why[:300]}"
    raised = [f"call {i}: {why[:300]}" for i, a, b, why in found if why]
    return (RAISES, raised[0]) if raised else (RIGHT, "")


def too_long(*_):
    raise TimeoutError(f"more than {LONGEST} seconds")


class Suite:
    """Programs and the tools that capture them. `fresh` gives a program that nothing has touched,
    `run` makes its calls; `places` are the tables of docs/capture.md: counts and the whole list."""

    def __init__(self, load, tools, file, places, run=programs.run, fresh=lambda program: program):
        self.load, self.tools, self.file, self.places = load, tools, file, places
        self.run, self.fresh = run, fresh

    def judge(self, tool, program):
        """The best of what the tool can do: a verdict, and why."""
        found = []
        program = self.fresh(program)
        signal.signal(signal.SIGALRM, too_long)
        signal.alarm(LONGEST)
        try:
            for captured in self.tools[tool](program, program.calls[0].copy()):
                found.append(judge_one(self, program, captured))
                if found[-1][0] == RIGHT:
                    break
        except Exception as e:
            found.append((REFUSED, said(e)))
        finally:
            signal.alarm(0)
        return min(found, key=lambda f: VERDICTS.index(f[0]))

    def chosen(self, only):
        return [p for p in self.load() if only in f"{p.topic}.{p.name}"]

    def worker(self, tool, only, start):
        """Prints a line for each program, from `start` on."""
        for number, program in enumerate(self.chosen(only)):
            if number >= start:
                print(json.dumps([number, *self.judge(tool, program)]), flush=True)
                if hasattr(torch, "_dynamo"):
                    torch._dynamo.reset()

    def results_of(self, tool, only, total):
        """In a process of its own, which is started again behind a program that ends it."""
        if tool.startswith("cfx.") and not hasattr(cfx, tool[4:]):
            return None
        found = {}
        while len(found) < total:
            command = [sys.executable, "-W", "ignore", self.file, "--worker", tool, str(len(found))]
            done = subprocess.run([*command, "--only", only], stdout=subprocess.PIPE, text=True,
                                  stderr=subprocess.DEVNULL)
            for line in done.stdout.splitlines():
                if line.startswith("["):
                    number, verdict, why = json.loads(line)
                    found[number] = verdict, why
            if len(found) < total and done.returncode:
                found[len(found)] = ENDS, f"ended the process with {done.returncode}"
        return [found[i] for i in range(total)]

    def capture(self, options):
        listed = self.chosen(options.only)
        tools = [options.tool] if options.tool else list(self.tools)
        with futures.ThreadPoolExecutor(options.jobs) as pool:
            found = pool.map(lambda tool: self.results_of(tool, options.only, len(listed)), tools)
        results = dict(zip(tools, found))
        print(summary(listed, results))
        if options.why:
            for tool, found in results.items():
                for program, (verdict, why) in zip(listed, found or ()):
                    if verdict != RIGHT:
                        print(f"{tool:10} {verdict:5} {program.topic}.{program.name}: {why}")
        if options.json:
            named = {tool: dict(zip((f"{p.topic}.{p.name}" for p in listed), found or ()))
                     for tool, found in results.items()}
            Path(options.json).write_text(json.dumps(named, indent=1) + "\n")
        if options.update:
            page = ROOT / "docs/capture.md"
            text = between(page.read_text(), self.places[0], summary(listed, results))
            if self.places[1]:
                text = between(text, self.places[1], full_list(listed, results))
            page.write_text(text)


SUITE = Suite(programs.load_all, TOOLS, __file__, ("counts", "programs"))


# ---- tables


def table(heads, rows):
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return "\n".join(lines + [f"| {' | '.join(map(str, row))} |" for row in rows])


def summary(listed, results):
    """By topic: how many each tool captures rightly."""
    def count(tool, verdict, topic=None):
        verdicts = results[tool]
        if verdicts is None:
            return "not there"
        return sum(v[0] == verdict for v, p in zip(verdicts, listed) if topic in (None, p.topic))

    topics = dict.fromkeys(p.topic for p in listed)
    rows = [[topic.replace("_", " "), sum(p.topic == topic for p in listed),
             *(count(tool, RIGHT, topic) for tool in results)] for topic in topics]
    rows.append(["**all**", len(listed), *(f"**{count(t, RIGHT)}**" for t in results)])
    for what, verdict in (("captured, but raises for other inputs", RAISES),
                          ("captured, but wrong for other inputs, silently", WRONG),
                          ("ends the process", ENDS)):
        rows.append([what, "", *(count(tool, verdict) for tool in results)])
    return table(["topic", "programs", *results], rows)


def full_list(listed, results):
    rows = [[f"{p.topic}.{p.name}", " ".join(p.tags),
             *("" if found is None else found[i][0] for found in results.values())]
            for i, p in enumerate(listed)]
    return table(["program", "what it has", *results], rows)


def between(text, name, new):
    pattern = re.compile(rf"(<!-- {name}: .*?-->\n).*?(<!-- end of {name} -->)", re.S)
    assert pattern.search(text), f"docs/capture.md has no place for {name}"
    return pattern.sub(lambda m: f"{m[1]}\n{new}\n\n{m[2]}", text)


# ---- how long it takes


def anew(topic, number):
    """Programs whose functions and classes nobody has seen yet."""
    return {p.name: p for p in programs.load(topic, f"_{number}")}


def seconds(take, made):
    start = time.perf_counter()
    take(made)
    return time.perf_counter() - start


def times(options):
    if not hasattr(cfx, "script"):
        print("there is no cfx.script")
        return
    listed = SUITE.chosen(options.only)
    both = [SUITE.results_of(tool, options.only, len(listed))
            for tool in ("cfx.script", "jit.script")]
    listed = [p for p, a, b in zip(listed, *both) if a[0] == b[0] == RIGHT]
    samples = {(p.topic, p.name): ([], []) for p in listed}
    takes = (cfx.script, torch.jit.script)
    for number in range(options.repeats + 1):
        for which in (0, 1) if number % 2 else (1, 0):
            cfx._symbolic_trace._wrapped_fns_to_patch.clear()  # of the modules before these
            fresh = {t: anew(t, f"{number}_{which}") for t in {p.topic for p in listed}}
            made = {(p.topic, p.name): fresh[p.topic][p.name].make() for p in listed}
            gc.collect()
            gc.freeze()  # the collector looks at what is made from here on, as it would anywhere
            for key, found in samples.items():
                found[which].append(seconds(takes[which], made[key]))
            gc.unfreeze()
    ratios, total = [], [0, 0]
    for (topic, name), found in samples.items():
        ours, theirs = (statistics.median(s[1:]) for s in found)  # the first one is for warming up
        ratios.append(theirs / ours)
        total = [total[0] + ours, total[1] + theirs]
        print(f"{topic + '.' + name:44} {ours * 1e6:9.0f} us {theirs * 1e6:9.0f} us "
              f"{ratios[-1]:7.1f}x")
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"{len(ratios)} programs; torch.jit.script over cfx.script: {total[1] / total[0]:.1f}x "
          f"for all of them ({total[0] * 1e3:.1f} ms, {total[1] * 1e3:.1f} ms), {mean:.1f}x as the "
          f"geometric mean, {min(ratios):.1f}x to {max(ratios):.1f}x for one")


def options_of(doc, tools):
    """The options that scripts with a suite have."""
    parser = argparse.ArgumentParser(description=doc.split("\n\n")[0])
    parser.add_argument("--only", default="", help="programs whose name has this in it")
    parser.add_argument("--tool", choices=tools)
    parser.add_argument("--json", help="write all verdicts to this file")
    parser.add_argument("--update", action="store_true", help="write the tables of docs/capture.md")
    parser.add_argument("--why", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="tools that run at the same time")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    return parser


def start(suite, options):
    warnings.simplefilter("ignore")
    if options.worker:
        os.environ.setdefault("TORCH_LOGS", "-all")
        suite.worker(options.worker[0], options.only, int(options.worker[1]))
    else:
        suite.capture(options)


def main():
    parser = options_of(__doc__, TOOLS)
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    if options.times:
        warnings.simplefilter("ignore")
        times(options)
    else:
        start(SUITE, options)


if __name__ == "__main__":
    main()
