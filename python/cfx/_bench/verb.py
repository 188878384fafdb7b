"""`python -m cfx bench --against ENGINE,...`: a model beside other engines."""
import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .._glue import places
from .turns import Setting, Summary, measure

ENGINES = {"cfx": "cfx file", "onednn": "oneDNN", "onnxruntime": "ORT", "openvino": "OpenVINO",
           "torch": "eager", "compile": "compile"}
INSTALL = {"onnxruntime": "onnxruntime", "openvino": "openvino", "torch": "torch",
           "compile": "torch", "onednn": "onednn-cpu-gomp torch"}
EXAMPLES = """
examples:
  cfx bench --random --against onnxruntime,openvino,torch model.cfx
  cfx bench --random n=8 --threads 1,2 --against onnxruntime model.onnx
  cfx bench --input x.npy --against torch,compile --rounds 9 model.cfx

Each engine runs in a process of its own. They take turns; what is shown is the median of the
rounds. An engine whose results differ from those of cfx is not measured.
"""


class Wrong(Exception):
    """What is wrong, and the status to exit with."""

    def __init__(self, what: str, status: int = 1) -> None:
        super().__init__(what)
        self.status = status


# ---- options ------------------------------------------------------------------------------------


def _counts(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _engines(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in ENGINES:
            raise argparse.ArgumentTypeError(f"there is no engine '{name}'; there are "
                                             f"{', '.join(list(ENGINES)[1:])}")
    return names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cfx bench", description="Measures how long a model takes beside other engines.",
        epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    add = parser.add_argument
    add("file", metavar="FILE", help="a .cfx or .onnx file")
    add("--against", metavar="ENGINE,...", type=_engines, required=True,
        help=f"{', '.join(list(ENGINES)[1:])}")
    add("--weights", metavar="FILE", help="the parameters, if the file lacks them")
    add("--input", metavar="[NAME=]FILE", action="append", default=[],
        help="an input, in order or by name, as cfx run takes it")
    add("--random", metavar="N=8,x=2x3", nargs="?", const="",
        help="random numbers for the other inputs; sizes that may differ are given")
    add("--threads", metavar="N,N,...", type=_counts, default=[os.cpu_count() or 1],
        help="numbers of threads (default: all)")
    add("--rounds", metavar="N", type=int, default=5, help="how often the engines take turns")
    add("--seconds", metavar="S", type=float, default=0.4, help="of each turn")
    add("--json", action="store_true", help="write JSON")
    return parser


def _with_values(words: list[str]) -> list[str]:
    """--random takes the next word only if it has sizes, as in the command in C."""
    joined: list[str] = []
    for word in words:
        pair = "=" in word and not word.startswith("-") and not os.path.exists(word)
        if joined and joined[-1] == "--random" and pair:
            joined[-1] = f"--random={word}"
        else:
            joined.append(word)
    return ["--random=" if word == "--random" else word for word in joined]


# ---- files --------------------------------------------------------------------------------------


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """What the command prints of its own is not a part of the answer."""
    sys.stdout.flush()
    kept = os.dup(1)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _run(command: Callable[[list[str]], int], words: list[str]) -> None:
    with _silent():
        status = command(words)
    if status:
        raise Wrong("", status)


def _write_files(options: argparse.Namespace, folder: Path,
                 command: Callable[[list[str]], int]) -> None:
    """What the workers read. The inputs and results are those of cfx run."""
    given = Path(options.file)
    if given.suffix not in (".cfx", ".onnx"):
        raise Wrong(f"{given}: other engines need a .cfx or .onnx file; make one: cfx pack -o "
                    f"model.cfx {given}")
    if options.weights:
        raise Wrong("other engines read one file; put the weights into it: cfx pack --weights")
    words = ["run", "--save-inputs", str(folder / "inputs.npz"),
             "--output", str(folder / "expected.npz")]
    words += [word for one in options.input for word in ("--input", one)]
    if options.random is not None:
        words.append(f"--random={options.random}")
    _run(command, [*words, str(given)])
    if given.suffix == ".onnx":
        _run(command, ["convert", str(given), str(folder / "model.cfx")])
        shutil.copyfile(given, folder / "model.onnx")
        return
    os.symlink(given.resolve(), folder / "model.cfx")
    if {"onnxruntime", "openvino"} & set(options.against):
        _run(command, ["convert", str(given), str(folder / "model.onnx")])


# ---- results ------------------------------------------------------------------------------------


def _ratio(found: Summary, ours: Summary) -> str:
    """How cfx compares: above 1, it is faster."""
    return f"{found['time'] / ours['time']:.2f}x" if "time" in ours else "-"


def _lines(found: dict[str, Summary]) -> list[str]:
    ours = found["cfx"]
    lines = [f"{'engine':<12} {'ms':>9} {'spread':>7} {'ready ms':>9} {'memory MB':>10} "
             f"{'cfx is':>8}"]
    for name, about in found.items():
        if "missing" in about:
            lines.append(f"{name:<12} is not installed: pip install {INSTALL[name]}")
        elif "failed" in about:
            lines.append(f"{name:<12} fails: {about['failed']}")
        else:
            lines.append(f"{name:<12} {about['time'] * 1e3:9.3f} {about['spread']:7.0%} "
                         f"{about['ready'] * 1e3:9.0f} {about['memory'] / 1e6:10.0f} "
                         f"{'' if name == 'cfx' else _ratio(about, ours):>8}")
    return lines


def _measured(options: argparse.Namespace, folder: Path) -> dict[int, dict[str, Summary]]:
    names = {engine: name for name, engine in ENGINES.items()}
    engines = [ENGINES[name] for name in dict.fromkeys(["cfx", *options.against])]
    found = {}
    for number, threads in enumerate(options.threads):
        print(f"[{number + 1}/{len(options.threads)}] threads: {threads};", end="",
              file=sys.stderr, flush=True)
        setting = Setting(threads, options.rounds, options.seconds, 3, onednn=places.onednn())
        every = measure(engines, folder, setting, names.__getitem__)
        print(file=sys.stderr)
        found[threads] = {names[engine]: about for engine, about in every.items()}
    return found


def _show(options: argparse.Namespace, found: dict[int, dict[str, Summary]]) -> None:
    if options.json:
        rows: list[dict[str, Any]] = [{"threads": n, "engines": every}
                                      for n, every in found.items()]
        print(json.dumps({"model": options.file, "rounds": options.rounds, "rows": rows},
                         indent=1))
        return
    for threads, every in found.items():
        print(f"{options.file}, threads: {threads}")
        print("\n".join(_lines(every)))
    used = dict.fromkeys(about["how"] for every in found.values() for about in every.values()
                         if "how" in about)  # fmt: skip
    print(", ".join(used))


def bench(words: list[str], command: Callable[[list[str]], int]) -> int:
    """Runs the verb; `command` runs a verb of the command in C."""
    options = _parser().parse_args(_with_values(words))
    if min([*options.threads, options.rounds]) < 1:
        print("cfx bench: --threads and --rounds need numbers from 1 on", file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory() as made:
            _write_files(options, Path(made), command)
            _show(options, _measured(options, Path(made)))
    except Wrong as error:
        if str(error):
            print(f"cfx bench: {error}", file=sys.stderr)
        return error.status
    return 0
