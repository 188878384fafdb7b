#!/usr/bin/env python3
"""layers.py - fails when a file includes a layer that it may not know about.

A layer may include its own folder and lower ranks. Public headers belong to layers too; they
include only each other. cli/ and python/src/ see the public headers and their own folder alone.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RANK = {"base": 0, "ir": 1, "ops": 2, "runtime": 3, "transform": 4, "format": 4, "capture": 5,
        "plan": 6, "codegen": 6, "cfx": 7}
# Public headers whose name is not that of their layer; an unlisted name is free for all to use.
PUBLIC = {"status": "base", "dtype": "base", "layout": "base", "kind": "ir", "value": "ir",
          "host": "ir", "opcode": "ir", "graph": "ir", "module": "ops", "tensor": "runtime",
          "datum": "runtime", "dim": "runtime", "dlpack": "runtime", "lower": "transform",
          "weights": "format", "nn": "ops", "scope": "capture", "operators": "capture",
          "layers": "capture", "syntax": "capture", "script": "capture", "pyscript": "capture",
          "pass": "transform", "check": "transform", "split": "transform", "match": "transform",
          "partition": "transform", "repeated": "transform"}
INCLUDE = re.compile(r'\s*#\s*include\s+(["<])([^">]+)[">]')


def layer_of(path):
    """The layer a repository path belongs to, or None."""
    parts = path.parts
    if parts[:2] == ("include", "cfx"):
        name = PUBLIC.get(path.stem, path.stem)
        return name if name in RANK else None
    if parts[0] == "src":
        return parts[1]
    return "python" if parts[:2] == ("python", "src") else parts[0]


def resolve(file, quote, name):
    """The repository path an #include names; None for a header of the system."""
    places = ([file.parent, Path("src")] if quote == '"' else []) + [Path("include")]
    for place in places:
        found = (ROOT / place / name).resolve()
        if found.is_file() and found.is_relative_to(ROOT):
            return found.relative_to(ROOT)
    return None


def complaint(file, target):
    own, other = layer_of(file), layer_of(target)
    public = target.parts[0] == "include"
    if own in ("cli", "python"):
        return None if public or own == other else target
    if file.parts[0] == "include" and not public:
        return target
    if own == other or own is None or other is None:
        return None
    if other not in RANK:
        return target
    return other if own not in RANK or RANK[other] >= RANK[own] else None


def main():
    bad = 0
    folders = ("include/cfx", "src", "cli", "python/src")
    files = sorted(p for f in folders for p in (ROOT / f).rglob("*.[ch]"))
    for path in files:
        file = path.relative_to(ROOT)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if m := INCLUDE.match(line):
                target = resolve(file, *m.groups())
                if target and (what := complaint(file, target)):
                    print(f"{file}:{number}: {layer_of(file) or file.stem} may not include {what}")
                    bad += 1
    print(f"layers: {len(files)} files, {bad} wrong includes")
    return bad != 0


sys.exit(main())
