#!/usr/bin/env python3
"""documented.py - fails if a public function has no comment: above it, with only other functions
between, or behind it.

usage: documented.py FOLDER   the folder with all public headers: build/include
"""
import re
import sys
from pathlib import Path


def missing(text):
    """The declarations of a header that nothing is said about."""
    for paragraph in text.split("\n\n"):
        for m in re.finditer(r"^CFX_API[^;]*;[^\n]*", paragraph, re.M):
            if "*/" not in paragraph[:m.start()] and "/*" not in m[0]:
                yield " ".join(m[0].split())


def main():
    folder = Path(sys.argv[1])
    functions = bad = 0
    for path in sorted(folder.rglob("*.h")):
        text = path.read_text()
        functions += len(re.findall(r"^CFX_API", text, re.M))
        for declaration in missing(text):
            print(f"{path.relative_to(folder)}: nothing is said about {declaration[:80]}")
            bad += 1
    print(f"documented: {functions - bad} functions, {bad} not")
    return bad != 0


sys.exit(main())
