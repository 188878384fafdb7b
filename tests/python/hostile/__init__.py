"""Hostile programs: strange, legal, and each with inputs that take every way through it.

A file is a theme. @equal declares a function, or a class of modules that is made without arguments,
which cfx.script captures so that the graph does what eager PyTorch does. @refused declares one that
cfx.script refuses at the line that ends with `# refuse`, because no graph can express it.
check.py compares; known.py lists what is wrong at present.
"""
import dataclasses
import functools
import sys
import types
from pathlib import Path
from typing import Any

import program_text
import torch

FOLDER = Path(__file__).parent
OURS = ("__init__", "__main__", "check", "command", "drive", "known", "worker")
THEMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in OURS)
REFUSE = "# refuse"


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    theme: str
    name: str
    refused: bool
    new: Any  # the function, or the class of modules
    inputs: tuple[tuple[Any, ...], ...]
    home: types.ModuleType  # where its globals are

    @property
    def key(self) -> str:
        return f"{self.theme}.{self.name}"

    def make(self) -> Any:
        """The function, or a new module: always with the same parameters."""
        if not isinstance(self.new, type):
            return self.new
        torch.manual_seed(0)
        return self.new()


def _declare(inputs, refused):
    def declare(new):
        home = sys.modules[new.__module__]
        given = tuple(i if type(i) is tuple else (i,) for i in inputs)
        home.PROGRAMS[new.__name__] = Program(home.THEME, new.__name__, refused, new, given, home)
        return new

    return declare


def equal(*inputs):
    """Each input is a tuple of arguments, or the only argument."""
    return _declare(inputs, False)


def refused(*inputs):
    return _declare(inputs, True)


# ---- files -------------------------------------------------------------------------------------


@functools.cache
def file_of(theme: str) -> Path:
    return FOLDER / f"{theme}.py"


@functools.cache
def _compiled(theme):
    return compile(file_of(theme).read_text(), str(file_of(theme)), "exec")


_loads = iter(range(sys.maxsize))


def load(theme: str) -> dict[str, Program]:
    """The programs of a theme by name. The file is executed anew: globals, classes and inputs are
    its own."""
    name = f"{__name__}.{theme}_{next(_loads)}"
    home: Any = types.ModuleType(name)
    home.__file__ = str(file_of(theme))
    home.THEME, home.PROGRAMS = theme, {}
    sys.modules[name] = home
    exec(_compiled(theme), vars(home))
    return home.PROGRAMS


def load_one(key: str) -> Program:
    theme, _, name = key.partition(".")
    return load(theme)[name]


@functools.cache
def _parts(theme):
    text = file_of(theme).read_text()
    return text, program_text.parts(text, ("equal", "refused"))


@functools.cache
def declared(theme: str) -> dict[str, bool]:
    """Names of programs, and whether they are refused, by the text alone."""
    return {part.name: part.mark == "refused" for part in _parts(theme)[1] if part.mark}


def keys() -> list[str]:
    return [f"{theme}.{name}" for theme in THEMES for name in declared(theme)]


@functools.cache
def source_of(key: str) -> str:
    """A file with that program and what it needs, at the lines where it is in the theme."""
    theme, _, name = key.partition(".")
    return program_text.text_of(*_parts(theme), name)


def refuse_lines(key: str) -> set[int]:
    text = source_of(key).split("\n")
    return {n for n, line in enumerate(text, 1) if line.rstrip().endswith(REFUSE)}
