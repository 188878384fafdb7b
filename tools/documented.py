#!/usr/bin/env python3
"""documented.py - fails if a public function has no comment (above it, with only other functions
between, or behind it); and if a stable function is on no page, or in no test.

usage: documented.py FOLDER   the folder with all public headers: build/include

A macro or a generated function counts for the function under it: cfx_call for cfx_call_at.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DECLARATION = re.compile(r"^CFX_API[^;]*;[^\n]*", re.M)
DEFINED_BY_USERS = {"cfx_model", "cfx_example"}
MADE = {"operators.h", "layers.h"}


def missing(text):
    """The declarations of a header that nothing is said about."""
    for paragraph in text.split("\n\n"):
        for m in DECLARATION.finditer(paragraph):
            if "*/" not in paragraph[:m.start()] and "/*" not in m[0]:
                yield " ".join(m[0].split())


def stable_names(folder):
    """{function: the names by which programs call it}, of the stable headers."""
    names, macros = {}, []
    for path in sorted((folder / "cfx").glob("*.h")):
        text = path.read_text()
        for m in DECLARATION.finditer(text):
            names[re.search(r"\b(cfx_\w+)\(", m[0])[1]] = set()
        macros += re.findall(r"^#define (cfx_\w+)\(((?:.*\\\n)*.*)", text, re.M)
        if path.name in MADE:  # a wrapper is an inline function, and a macro over that
            macros += re.findall(r"^static inline [^(]*?(cfx_\w+)_at\(([^}]*)", text, re.M)
    for macro, body in macros:
        for name in re.findall(r"\bcfx_\w+", body):
            if name in names:
                names[name].add(macro)
    return {n: {n} | over for n, over in names.items() if n not in DEFINED_BY_USERS}


def words(*patterns):
    """All names of ours in the files."""
    found = set()
    for pattern in patterns:
        for path in ROOT.glob(pattern):
            found.update(re.findall(r"\bcfx_\w+", path.read_text()))
    return found


def main():
    folder = Path(sys.argv[1])
    functions = bad = 0
    for path in sorted(folder.rglob("*.h")):
        text = path.read_text()
        functions += len(re.findall(r"^CFX_API", text, re.M))
        for declaration in missing(text):
            print(f"{path.relative_to(folder)}: nothing is said about {declaration[:80]}")
            bad += 1
    places = {"page of docs/": words("docs/*.md", "README.md"),
              "test": words("tests/unit/**/*.[ch]", "tests/prop/*.[ch]", "tests/fuzz/*.c",
                            "tests/**/c_models/*.c", "tests/python/**/*.py", "tests/python/*.c")}
    for name, spelled in stable_names(folder).items():
        for place, known in places.items():
            if not spelled & known:
                print(f"{name}: no {place} names it; stable functions need one")
                bad += 1
    print(f"documented: {functions} functions, {bad} complaints")
    return bad != 0


sys.exit(main())
