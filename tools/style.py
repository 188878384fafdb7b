#!/usr/bin/env python3
"""style.py - fails on tabs, long lines, trailing blanks, leftover notes, a missing file comment,
and CPython's private interface anywhere but in the files that are for it."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("include", "src", "cli", "python", "tests", "bench", "examples", "tools")
SUFFIXES = (".c", ".h", ".py", ".pyi")  # rows of .def tables may be long
DATA = ROOT / "tests/fuzz/corpus"       # bytes to read, whatever they look like
WIDTH = 100
LEFTOVER = re.compile(r"\b(TO" r"DO|FIX" r"ME)\b")
# What differs between versions of Python, and the files that know it
PRIVATE = re.compile(r"\b_Py[A-Z]\w*\(|->tp_(dict|version_tag)\b|\bPY_VERSION_HEX\b|<opcode\.h>"
                     r"|\bPy_(Enter|Leave)RecursiveCall\b")
PYTHONS = ("python/src/base/pythons.h", "python/src/base/pythons.c", "python/src/trace/bytecode.c")


def has_comment(lines, suffix):
    """The first line (the second one after #!) says what the file is."""
    first = lines[1:2] if lines and lines[0].startswith("#!") else lines[:1]
    opening = ('"""', 'r"""', "#") if suffix in (".py", ".pyi") else ("/* ",)
    return bool(first) and first[0].startswith(opening)


def complaints(path):
    lines = path.read_text().split("\n")
    extension = "python/src" in path.as_posix() and not path.as_posix().endswith(PYTHONS)
    if not has_comment(lines, path.suffix):
        yield 1, "the first line should say what this file is"
    for number, line in enumerate(lines, 1):
        if "\t" in line:
            yield number, "tab"
        if len(line) > WIDTH:
            yield number, f"{len(line)} columns, at most {WIDTH}"
        if line != line.rstrip():
            yield number, "trailing blanks"
        if extension and (m := PRIVATE.search(line)):
            yield number, f"{m[0]} belongs in python/src/base/pythons.h"
        if m := LEFTOVER.search(line):
            yield number, f"leftover {m[0]}"


def main():
    files = sorted(p for f in FOLDERS for p in (ROOT / f).rglob("*")
                   if p.suffix in SUFFIXES and DATA not in p.parents)
    bad = 0
    for path in files + [ROOT / "setup.py"]:
        for number, what in complaints(path):
            print(f"{path.relative_to(ROOT)}:{number}: {what}")
            bad += 1
    print(f"style: {len(files) + 1} files, {bad} complaints")
    return bad != 0


sys.exit(main())
