"""Engines in processes of their own, which take turns: what all of them meet, each meets alike."""
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from .._glue import places

CLOSE = 1e-4   # of the largest magnitude of each result
LONGEST = 900  # seconds until an answer
PAUSE = 0.03   # seconds after a turn, in which threads that wait actively fall asleep
PACKAGE = Path(__file__).resolve().parents[2]
WORKER = Path(__file__).with_name("worker.py")  # a file, not a module: others do not import cfx


class Lost(Exception):
    """A worker ended, or takes too long."""


class Setting(NamedTuple):
    """How engines are measured."""

    threads: int
    rounds: int
    seconds: float          # of a turn
    least: int              # runs of a turn, whatever it takes
    paths: tuple[str, ...] = ()  # more folders that Python looks for packages in
    onednn: str | None = None    # libdnnl.so
    close: float = CLOSE


Summary = dict[str, Any]
"""Of an engine: its "time", "spread", "rounds", "ready", "first", "start", "memory", "far" and
"how"; or why it has none: {"missing": ...} or {"failed": ...}."""


class Worker:
    """A process with one engine and one model."""

    def __init__(self, engine: str, folder: Path, setting: Setting) -> None:
        self.room = tempfile.TemporaryDirectory()  # noqa: SIM115: for caches and the log
        caches = self.room.name
        paths = [str(PACKAGE), *setting.paths, os.environ.get("PYTHONPATH", "")]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p),
               "OMP_NUM_THREADS": str(setting.threads), "TORCHINDUCTOR_CACHE_DIR": caches}
        if setting.onednn:
            env[places.ONEDNN] = setting.onednn
        self.log = open(Path(caches) / "log", "w+")  # noqa: SIM115
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", str(WORKER), engine, str(folder),
             str(setting.threads)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.log, text=True)
        self.close = setting.close
        self.about: Summary = {}

    def begin(self) -> None:
        """Waits for the first result, and compares it."""
        self.about = self.answer()
        if not self.problem():
            self.about["begins"] = self.about["begun"] - self.started
            self.about["start"] = self.about["ended"] - self.started
            self.about.update(self.tell(do="check"))
        if self.about.get("far", 0) > self.close:
            self.about["failed"] = f"results differ by {self.about['far']:.1e}"

    def problem(self) -> Summary:
        return {k: v for k, v in self.about.items() if k in ("missing", "failed")}

    def answer(self) -> Summary:
        assert self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], LONGEST)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            self.log.seek(0)
            last = self.log.read().strip().splitlines()[-1:] or ["no message"]
            raise Lost(last[0] if ready else f"no answer in {LONGEST} s")
        found: Summary = json.loads(line)
        return found

    def tell(self, **what: Any) -> Summary:
        print(json.dumps(what), file=self.process.stdin, flush=True)
        return self.answer()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for end in (self.process.stdin, self.process.stdout, self.log):
            if end:
                end.close()
        self.room.cleanup()


def progress(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)


def start_worker(engine: str, folder: Path,
                 setting: Setting) -> tuple[Worker | None, Summary]:  # fmt: skip
    """(a worker whose results are right, {}) or (None, what is wrong)"""
    worker = Worker(engine, folder, setting)
    try:
        worker.begin()
    except Lost as error:
        worker.about["failed"] = str(error)
    except BaseException:
        worker.end()
        raise
    if worker.problem():
        worker.end()
        return None, worker.problem()
    return worker, {}


def take_turns(workers: dict[str, Worker], setting: Setting) -> dict[str, list[float]]:
    """The times of each engine, in seconds: a median for each round."""
    rounds: dict[str, list[float]] = {engine: [] for engine in workers}
    for number in range(setting.rounds):
        first = number % len(workers)
        for engine in [*workers][first:] + [*workers][:first]:
            found = workers[engine].tell(do="run", seconds=setting.seconds, least=setting.least)
            rounds[engine].append(statistics.median(found["times"]))
            workers[engine].about["resident"] = found["resident"]
            time.sleep(PAUSE)
        progress(".")
    return rounds


def _summary(about: Summary, rounds: list[float]) -> Summary:
    middle = statistics.median(rounds)
    quarters = statistics.quantiles(rounds, n=4) if len(rounds) > 1 else [middle, middle, middle]
    late = max(0, about["first"] - middle)
    return {"time": middle, "spread": (quarters[2] - quarters[0]) / 2 / middle, "rounds": rounds,
            "ready": about["ready"] + late, "memory": about["resident"] - about["before"],
            "start": about["start"], "far": about["far"], "how": about["how"]}


def measure(engines: list[str], folder: Path, setting: Setting,
            name: Callable[[str], str] = str) -> dict[str, Summary]:  # fmt: skip
    """What each engine takes for the model in the folder; `name` makes the names of the line that
    shows progress."""
    return measure_columns({e: (e, folder, setting.close) for e in engines}, setting, name)


def measure_columns(columns: dict[str, tuple[str, Path, float]], setting: Setting,
                    name: Callable[[str], str] = str) -> dict[str, Summary]:  # fmt: skip
    """What each column takes: an engine, the folder of its model, and how far from the results
    there it may be."""
    workers, found = {}, {}
    try:
        for column, (engine, folder, close) in columns.items():
            progress(f" {name(column)}")
            worker, problem = start_worker(engine, folder, setting._replace(close=close))
            if worker is None:
                found[column] = problem
                progress(f" ({', '.join(f'{k}: {v}' for k, v in problem.items())})")
            else:
                workers[column] = worker
        progress(" ")
        if workers:
            rounds = take_turns(workers, setting)
            found.update({c: _summary(workers[c].about, rounds[c]) for c in workers})
    finally:
        for worker in workers.values():
            worker.end()
    return {column: found[column] for column in columns}
