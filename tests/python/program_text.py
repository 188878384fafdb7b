"""Files of many programs, and the text of one of them: what `cfx script` is given, as it reads a
file. Programs are declared by decorators, which the text is without. Lines keep their numbers."""
import ast
import re
from collections.abc import Collection
from typing import NamedTuple


class Part(NamedTuple):
    """A statement at the top of a file."""

    name: str  # of a function or class, else ""
    mark: str  # the decorator that declares it as a program, or ""
    lines: set[int]  # without those of the mark
    binds: set[str]
    reads: set[str]


def _mark(decorator, marks):
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return called.id if isinstance(called, ast.Name) and called.id in marks else ""


def _lines(node):
    return set(range(node.lineno, node.end_lineno + 1))


def _binds(statement, marks):
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        names = {(a.asname or a.name).split(".")[0] for a in statement.names}
        return names - set(marks) if getattr(statement, "level", 0) else names
    return {n.id for n in ast.walk(statement)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _reads(statement):
    found = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Global):
            found.update(node.names)
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            for part in ast.walk(annotation) if annotation else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    found.update(re.findall(r"\w+", part.value))
    return found


def _part(statement, marks):
    decorators = getattr(statement, "decorator_list", [])
    declares = [d for d in decorators if _mark(d, marks)]
    if decorators:
        statement.decorator_list = [d for d in decorators if not _mark(d, marks)]
    lines = _lines(statement).union(*map(_lines, decorators)) - set().union(*map(_lines, declares))
    mark = _mark(declares[-1], marks) if declares else ""
    return Part(getattr(statement, "name", ""), mark, lines, _binds(statement, marks),
                _reads(statement))


def parts(text: str, marks: Collection[str]) -> list[Part]:
    """Those of a file; `marks` are the names of decorators that declare programs."""
    return [_part(s, marks) for s in ast.parse(text).body if not isinstance(s, ast.Expr)]


def text_of(text: str, all_parts: list[Part], name: str) -> str:
    """The file with that program and what it refers to; other lines are empty."""
    wanted, kept, grown = {name}, set(), True
    while grown:
        more = {i for i, part in enumerate(all_parts) if part.binds & wanted} - kept
        kept |= more
        wanted |= {name for i in more for name in all_parts[i].reads}
        grown = bool(more)
    shown = {n for i in kept for n in all_parts[i].lines}
    lines = [line if n in shown else "" for n, line in enumerate(text.split("\n"), 1)]
    return "\n".join(lines).rstrip() + "\n"
