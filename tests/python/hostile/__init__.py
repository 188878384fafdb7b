"""Hostile programs: strange, legal, and each with inputs that take every way through it.

A file is a theme. @equal declares a function, or a class of modules that is made without arguments,
which cfx.script captures so that the graph does what eager PyTorch does. @refused declares one that
cfx.script refuses at the line that ends with `# refuse`, because no graph can express it.
check.py compares; known.py lists what is wrong at present.
"""
import ast
import dataclasses
import functools
import sys
import types
from pathlib import Path
from typing import Any

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
def declared(theme: str) -> dict[str, bool]:
    """Names of programs, and whether they are refused, by the text alone."""
    found = {}
    for statement in ast.parse(file_of(theme).read_text()).body:
        for decorator in getattr(statement, "decorator_list", ()):
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(call, ast.Name) and call.id in ("equal", "refused"):
                found[statement.name] = call.id == "refused"
    return found


def keys() -> list[str]:
    return [f"{theme}.{name}" for theme in THEMES for name in declared(theme)]


# ---- the part of a file that is one program ------------------------------------------------------


def _names(statement):
    """Names that a statement of a file binds, and those that it reads."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        bound = {statement.name}
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        bound = {(a.asname or a.name).split(".")[0] for a in statement.names}
    else:
        bound = {n.id for n in ast.walk(statement)
                 if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    read = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
    return bound, read | {name for n in ast.walk(statement) if isinstance(n, ast.Global)
                          for name in n.names}


def _undecorated(statement):
    marks = ("equal", "refused")
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        statement.decorator_list = [
            d for d in statement.decorator_list
            if not (isinstance(d, ast.Call) and getattr(d.func, "id", "") in marks)]
    return statement


@functools.cache
def _statements(theme):
    """Of a file: (first line, last line, names that it binds, names that it reads)."""
    found = []
    for statement in map(_undecorated, ast.parse(file_of(theme).read_text()).body):
        decorators = getattr(statement, "decorator_list", ())
        first = min([statement.lineno, *(d.lineno for d in decorators)])
        found.append((first, statement.end_lineno, *_names(statement)))
    return found


@functools.cache
def part_of(key: str) -> tuple[tuple[int, int], ...]:
    """The lines of a theme that a program needs: first and last ones of statements."""
    theme, _, name = key.partition(".")
    statements = _statements(theme)
    wanted, chosen = {name}, set()
    while True:
        more = {s[:2] for s in statements if s[2] & wanted} - chosen
        if not more:
            return tuple(sorted(chosen))
        chosen |= more
        wanted |= {n for s in statements if s[:2] in more for n in s[3]}


def source_of(key: str) -> str:
    """A file with that program and what it needs, at the lines where it is in the theme."""
    text = file_of(key.partition(".")[0]).read_text().split("\n")
    kept = {line for first, last in part_of(key) for line in range(first, last + 1)}
    lines = [t if n in kept else "" for n, t in enumerate(text, 1)]
    return "\n".join(lines).rstrip() + "\n"


def refuse_lines(key: str) -> set[int]:
    text = source_of(key).split("\n")
    return {n for n, line in enumerate(text, 1) if line.rstrip().endswith(REFUSE)}
