"""Inference engines on the same models: eager PyTorch, torch.compile (as it is, and frozen), ONNX
Runtime, OpenVINO, cfx with its own kernels, cfx with oneDNN.

    python bench/infer.py [--models LIST] [--engines LIST] [--threads 1,2] [--batch 1,8]
                          [--rounds 7] [--seconds 0.4] [--least 3] [--peers DIR] [--onednn FILE]
                          [--keep DIR] [--json FILE] [--show FILE] [--update]

For each model, batch size and number of threads there is a process for each engine, which loads the
model from a file, runs it once, and is compared with eager PyTorch: results must agree to 1e-4 of
the largest magnitude. Then the engines take turns for some rounds; in each turn an engine runs the
model once uncounted and then for --seconds. Its time in a round is the median; what is shown is the
median of the rounds, and half of the distance between their quartiles in percent.

    start     seconds from the start of the process until the first result is there
    ready     seconds from the file to something that runs at full speed: loading, compiling, and
              what the first run takes longer than later ones. torch.compile has empty caches
    memory    that the process has gained after the last round (pages of mapped files count)
    peak      floating-point operations (torch.utils.flop_counter) over the time, as a share of the
              most that a loop of multiply-adds on registers reaches (cfx.Runtime.peak)

Weights are random: time does not depend on them. Models are in bench/engines/models.py and
tests/zoo. `start` of cfx is measured with cfx.runtime.load, in a process without torch; start.py
has more of that.

--peers names a folder with onnxruntime and openvino (see bench/package.py). --onednn names
libdnnl.so.3, where neither CFX_ONEDNN nor the Python package onednn-cpu-gomp does. --keep names a
folder for the files of the models: those that are there are not written again, and with --rounds 0
nothing is measured. --json keeps all samples: cells that the file has already are not measured
again, so that hours can be had in pieces. --show makes the tables from such a file.
--update writes the tables of docs/benchmarks.md, with everything that was measured.
"""
import argparse
import compileall
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT / "python"), str(HERE)]
from cfx._bench import turns  # noqa: E402
from cfx._bench.turns import Setting  # noqa: E402
from cfx._glue import places  # noqa: E402
from engines import models, report  # noqa: E402

PAGE = ROOT / "docs/benchmarks.md"
ENGINES = ("eager", "compile", "frozen", "ORT", "OpenVINO", "cfx", "oneDNN")


# ---- one cell: a model, a batch size, a number of threads ---------------------------------------


def setting_of(threads, options):
    paths = (str(HERE), str(ROOT / "tests"), *([str(options.peers)] if options.peers else []))
    onednn = str(options.onednn) if options.onednn else None
    return Setting(threads, options.rounds, options.seconds, options.least, paths, onednn)


def measure(folder, threads, options):
    """{engine: summary, or {"missing": ...}, or {"failed": ...}}"""
    setting = setting_of(threads, options)
    found = turns.measure(options.engines, folder, setting)
    if "time" in found.get("cfx", {}):  # from a file, in a process without torch
        worker, _ = turns.start_worker("cfx file", folder, setting)
        found["cfx"]["start"] = worker.about["start"] if worker else None
        if worker:
            worker.end()
    turns.progress("\n")
    return found


# ---- all ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def folder_for(name, batch, options):
    """A folder for the files of a model; one that is kept has them if it has the facts."""
    if options.keep:
        folder = options.keep / f"{name}-{batch}"
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def facts_of(name, batch, folder):
    """What is known of a model, whose files are written if they are not there. The facts are
    written last."""
    facts = folder / "facts.json"
    if not facts.exists():
        write_files(name, batch, folder)
    return json.loads(facts.read_text())


def write_files(name, batch, folder):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "python", HERE)))}
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "engines.files", name, str(batch),
                           str(folder)], env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")


def measure_peaks(peaks, threads):
    """GFLOP/s by number of threads, the most that was seen."""
    import cfx
    for n in threads:
        peaks[str(n)] = max(cfx.Runtime(threads=n).peak()["gflops"], peaks.get(str(n), 0))


def names(text, every, what):
    """A list from the command line; "seven" stands for the first seven models."""
    if not text:
        return list(every)
    chosen = [n for part in text.split(",") for n in (models.SEVEN if part == "seven" else [part])]
    unknown = [name for name in chosen if name not in every]
    if unknown:
        raise SystemExit(f"no {what} '{unknown[0]}': there are {', '.join(every)}")
    return chosen


def numbers(text):
    return [int(part) for part in text.split(",")]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", help="names, or seven: those of the design; default: all")
    parser.add_argument("--engines", help=f"default: {','.join(ENGINES)}")
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--batch", type=numbers, default=[1, 8])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.4, help="of a turn")
    parser.add_argument("--least", type=int, default=3, help="runs of a turn, whatever it takes")
    parser.add_argument("--peers", type=Path, help="a folder with onnxruntime and openvino")
    parser.add_argument("--onednn", type=Path, default=places.onednn(), help="libdnnl.so.3")
    parser.add_argument("--keep", type=Path, help="a folder for the files of the models")
    parser.add_argument("--json", type=Path, help="where all samples go")
    parser.add_argument("--show", type=Path, help="the tables of what --json has kept")
    parser.add_argument("--update", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    options.models = names(options.models, models.TITLES, "model")
    options.engines = names(options.engines, ENGINES, "engine")
    return options


def kept(options):
    """What an earlier run has left in the file of --json."""
    results = {"peaks": {}, "rounds": options.rounds, "cells": []}
    if options.json and options.json.exists():
        results = json.loads(options.json.read_text())
    if results["rounds"] != options.rounds:
        raise SystemExit(f"{options.json} was measured with --rounds {results['rounds']}")
    return results


def make_bytecode():
    """Installed packages have theirs, the other engines' too, whatever Python is told to write."""
    compileall.compile_dir(ROOT / "python/cfx", quiet=2)


def measure_all(options):
    results = kept(options)
    make_bytecode()
    measure_peaks(results["peaks"], options.threads)
    have = {(c["model"], c["batch"], c["threads"]) for c in results["cells"]}
    count, total = 0, len(options.models) * len(options.batch) * len(options.threads)
    for name in options.models:
        for batch in options.batch:
            with folder_for(name, batch, options) as folder:
                facts = facts_of(name, batch, folder)
                for threads in options.threads if options.rounds else ():
                    count += 1
                    if (name, batch, threads) in have:
                        continue
                    turns.progress(f"[{count}/{total}] {name}, batch {batch}, {threads} threads:")
                    cell = {"model": name, "batch": batch, "threads": threads, "facts": facts,
                            "engines": measure(folder, threads, options)}
                    results["cells"].append(cell)
                    if options.json:
                        options.json.write_text(json.dumps(results, indent=1))
    measure_peaks(results["peaks"], options.threads)
    return results


def main():
    options = parse()
    results = json.loads(options.show.read_text()) if options.show else measure_all(options)
    if not results["cells"]:
        return
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    text = report.report(results, models.TITLES)
    print(text)
    if options.update:
        PAGE.write_text(report.replaced(PAGE.read_text(), text))


if __name__ == "__main__":
    main()
