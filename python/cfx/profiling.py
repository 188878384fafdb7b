"""Where the time of a compiled model goes: `cfx.profile(fast, *inputs)`."""
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ._core import Runtime
from ._glue.listing import public_names

TABLE, JSON, TRACE = range(3)  # cfx_profile_format


class Step(NamedTuple):
    """A part of a program that is computed at once, over all runs that were measured."""

    node: str  # the last node that it computes
    kernel: str  # how: "conv2d", "product, tiles of 8 x 48"
    file: str | None
    line: int
    runs: int
    nanoseconds: int
    flops: float
    bytes: int  # that it reads and writes


class Profile:
    """What runs of a program cost, step by step. `print` shows the most expensive steps first."""

    def __init__(self, table: str, steps: tuple[Step, ...], trace: str) -> None:
        self.steps = steps  #: in the order of the program
        self._table, self._trace = table, trace

    def save_trace(self, path: "str | os.PathLike[str]") -> None:
        """Writes each step of each run, for Chrome's or Perfetto's trace viewer."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._trace)

    def to_json(self) -> str:
        """The steps as JSON."""
        return json.dumps({"steps": [step._asdict() for step in self.steps]})

    def __str__(self) -> str:
        return self._table.rstrip("\n")

    def __repr__(self) -> str:
        return f"<Profile of {len(self.steps)} steps\n{self}>"


def _programs(program: Any) -> list[Any]:
    members = getattr(program, "_members", None)
    return [member.lowered for member in members] if members else [program]


@contextmanager
def _computing_with(program: Any, runtime: Runtime) -> Iterator[None]:
    """Lends a Lowered, or a model of cfx.runtime, another runtime."""
    if not hasattr(program, "_members") and hasattr(program, "_doors"):  # cfx.runtime.Model
        was, program.runtime = program.runtime, runtime
        try:
            yield
        finally:
            program.runtime = was
        return
    made = [each._program for each in _programs(program)]
    before = [each.use(runtime) for each in made]
    try:
        yield
    finally:
        for each, was in zip(made, before):
            each.use(was)


def profile(program: Any, *inputs: Any, runs: int = 10) -> Profile:
    """Runs a program with `inputs`, once to plan it and then `runs` times, and measures each step.
    `program` is what cfx.compile, cfx.lower or cfx.runtime.load returns. It computes with as many
    threads as its own runtime has."""
    if not (hasattr(program, "_program") or hasattr(program, "_doors")):
        raise TypeError("cfx.profile takes what cfx.compile, cfx.lower or cfx.runtime.load "
                        f"returns, not {type(program).__name__}")
    if runs < 1:
        raise ValueError(f"runs must be at least 1, not {runs}")
    own = program.runtime or Runtime()
    runtime = Runtime._profiled(own.threads, own.isa)
    with _computing_with(program, runtime):
        program(*inputs)
        runtime._profile(None)
        for _ in range(runs):
            program(*inputs)
    rows = json.loads(runtime._profile(JSON))["steps"]
    return Profile(runtime._profile(TABLE), tuple(Step(**row) for row in rows),
                   runtime._profile(TRACE))


__dir__ = public_names(globals())
