#!/usr/bin/env python3
"""api_freeze.py - the symbols of libcfx.so against tests/golden/api.txt; --update rewrites it.

The Python API is frozen by tools/py_api.py, which asks the package itself.
"""
import argparse
import difflib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def c_api(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                         text=True).stdout
    names = (line.split()[-1].split("@")[0] for line in out.splitlines())
    return sorted(n for n in names if not n.startswith("_"))


def freeze(name, lines, update):
    golden = ROOT / "tests/golden" / name
    old = golden.read_text().splitlines() if golden.exists() else []
    if update and (lines or golden.exists()):
        golden.write_text("".join(f"{line}\n" for line in lines))
    elif old != lines:
        print(*difflib.unified_diff(old, lines, f"tests/golden/{name}", "now", lineterm=""),
              sep="\n")
        print("the public API changed; if that is meant: tools/api_freeze.py --update")
        return False
    print(f"api: {len(lines)} names in {name}")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--so", default=ROOT / "build/libcfx.so", metavar="FILE")
    args = parser.parse_args()
    return not freeze("api.txt", c_api(args.so), args.update)


sys.exit(main())
