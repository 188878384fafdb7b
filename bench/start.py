"""How soon a model runs, and how much memory it takes, from its file: ONNX Runtime and OpenVINO in
Python, cfx in Python (cfx.runtime.load) and in C (bench/start.c).

    python bench/start.py [--models LIST] [--times 7] [--threads 2] [--batch 1] [--peers DIR]
                          [--keep DIR] [--json FILE] [--update]

Each engine starts a process for the model, and takes turns with the others; medians.

    begins    seconds from the start of the process until the model is called for the first time:
              the language, the engine, the inputs, the model. cfx plans in the first call
    cpu       the processor time that it has taken until then, in all its threads: others that use
              the machine hardly change that
    result    the same as the first until the first result is there
    memory    that the process has gained by the model, after its first run (pages of mapped files
              count)

Processes that run nothing take turns with them: what Python itself takes until it runs the first
statement, which engines in Python cannot have less than. "less Python" is the ratio without it.

In Python, results are compared with eager PyTorch. All have their bytecode, as installed packages
do. cfx needs no NumPy, which the others import, and is measured without it. Memory that the system
has to clear first (that of a virtual machine, to fetch from its host) takes a part of the time,
which differs. Files are those of bench/infer.py, with the same --keep. --json keeps all figures:
models that the file has already are not measured again. --update writes the tables of
docs/benchmarks.md.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import infer
from cfx._bench import turns
from engines import models, report

IN_C = infer.ROOT / "build/bench/start"
ENGINES = {"ORT": "ORT", "OpenVINO": "OpenVINO", "cfx file": "cfx", "C": "cfx in C"}  # : its title
OTHERS = ("ORT", "OpenVINO")
PYTHON = {"python": ["-P", "-W", "ignore"], "bare": ["-S", "-E"]}  # as workers; without site
PLANNING = ("nodes", "plan", "packing")  # that cfx in C tells
FIGURES = {"begins": "Seconds from the start of the process until the first run begins",
           "cpu": "Seconds of processor time until the first run begins",
           "start": "Seconds from the start of the process until the first result is there",
           "memory": "Memory that the process has gained by the model, MB"}  # fmt: skip


def start_c(folder, threads):
    """One process of the program in C."""
    started = time.perf_counter()  # CLOCK_MONOTONIC, as there
    done = subprocess.run([IN_C, folder / "model.cfx", folder / "inputs.npz", str(threads)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return {"failed": done.stderr.strip()}
    told = json.loads(done.stdout)
    return {"begins": told["begun"] - started, "start": told["ended"] - started,
            **{figure: told[figure] for figure in ("memory", *PLANNING)}}


def start_python(options):
    """A process until its first statement."""
    started = time.perf_counter()
    told = subprocess.run([sys.executable, *options, "-c",
                           "import time; print(time.perf_counter(), time.process_time())"],
                          capture_output=True, text=True, check=True).stdout
    begun, cpu = map(float, told.split())
    return {"begins": begun - started, "cpu": cpu}


def start_once(engine, folder, setting):
    """{figure: number}, or {"missing": ...} or {"failed": ...}"""
    if engine in PYTHON:
        return start_python(PYTHON[engine])
    if engine == "C":
        return start_c(folder, setting.threads)
    worker, problem = turns.start_worker(engine, folder, setting)
    if worker is None:
        return problem
    about = worker.about
    about["memory"] = about["after"] - about["before"]
    worker.end()
    return about


def median_of(found):
    """Of what one engine has told each time."""
    wrong = next((f for f in found if "missing" in f or "failed" in f), None)
    return wrong or {figure: statistics.median(f[figure] for f in found)
                     for figure in (*FIGURES, *PLANNING) if figure in found[0]}


def measure(name, options):
    setting = infer.setting_of(options.threads, options)
    with infer.folder_for(name, options.batch, options) as folder:
        infer.facts_of(name, options.batch, folder)
        turns.progress(f"{name}:")
        found = {engine: [] for engine in (*ENGINES, *PYTHON)}
        for number in range(options.times):
            first = number // 2 % len(found)
            order = [*found][first:] + [*found][:first]
            # each comes after others: memory that a process has just left is there at once
            for engine in order[::-1] if number % 2 else order:
                found[engine].append(start_once(engine, folder, setting))
            turns.progress(".")
    turns.progress("\n")
    return {engine: median_of(rows) for engine, rows in found.items()}


def ratio(cell, figure, engine="cfx file", less=0):
    """The best other engine's over that of cfx, both `less` so much."""
    others = [cell[e][figure] for e in OTHERS if figure in cell[e]]
    have = others and figure in cell[engine]
    return (min(others) - less) / (cell[engine][figure] - less) if have else None


def table(results, figure):
    by = 1e-6 if figure == "memory" else 1
    rows = []
    for name, cell in results.items():
        row = [report.number(cell[e][figure] * by) if figure in cell[e] else "-" for e in ENGINES]
        found = [ratio(cell, figure, engine) for engine in ("cfx file", "C")]
        if figure != "memory":
            own = cell["python"]["cpu" if figure == "cpu" else "begins"]
            found.insert(1, ratio(cell, figure, less=own))
        rows.append([models.TITLES[name], *row, *(f"{r:.1f}x" if r else "-" for r in found)])
    less = ["less Python"] if figure != "memory" else []
    return report.table(["model", *ENGINES.values(), "best other / cfx", *less, "/ cfx in C"], rows)


def floors(results):
    python, bare = (1e3 * statistics.median(cell[engine]["begins"] for cell in results.values())
                    for engine in PYTHON)
    cpu = 1e3 * statistics.median(cell["python"]["cpu"] for cell in results.values())
    return (f"Python itself takes {python:.1f} ms until its first statement, {bare:.1f} ms with "
            f"-S -E; of processor time {cpu:.1f} ms.")


def plans(results):
    rows = []
    for name, cell in results.items():
        nodes, plan, packing = (cell["C"].get(figure) for figure in PLANNING)
        if nodes:
            rows.append([models.TITLES[name], f"{nodes:.0f}", report.number(plan * 1e3),
                         report.number(plan / nodes * 1e6), report.number(packing * 1e3)])
    return report.table(["model", "nodes", "plan, ms", "µs per node", "packing, ms"], rows)


def text_of(results, options):
    how = f"{options.threads} threads, batch {options.batch}"
    parts = [f"{title}, {how}:\n\n{table(results, figure)}" for figure, title in FIGURES.items()]
    made = f"Plans, which the first run makes, {how}:\n\n{plans(results)}"
    return "\n\n".join([*parts, floors(results), made])


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", help="names, or seven: those of the design; default: all")
    parser.add_argument("--times", type=int, default=7, help="processes of each engine")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--peers", type=Path, help="a folder with onnxruntime and openvino")
    parser.add_argument("--keep", type=Path, help="a folder for the files of the models")
    parser.add_argument("--json", type=Path, help="where all figures go")
    parser.add_argument("--update", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    options.models = infer.names(options.models, models.TITLES, "model")
    options.rounds, options.seconds, options.least, options.onednn = 0, 0, 0, None
    return options


def main():
    options = parse()
    if not IN_C.exists():
        raise SystemExit(f"make {IN_C.relative_to(infer.ROOT)} first")
    infer.make_bytecode()
    have = options.json and options.json.exists()
    results = json.loads(options.json.read_text()) if have else {}
    for name in options.models:
        if name not in results:
            results[name] = measure(name, options)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))
    text = text_of(results, options)
    print(text)
    if options.update:
        page = infer.PAGE.read_text()
        infer.PAGE.write_text(report.replaced(page, text, "start"))


if __name__ == "__main__":
    main()
