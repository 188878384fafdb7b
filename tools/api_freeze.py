#!/usr/bin/env python3
"""api_freeze.py - the symbols of libcfx.so against tests/golden/api_stable.txt and api_embed.txt;
the header that declares a symbol decides, of include/cfx or include/cfx/embed. --update rewrites
both files.

The Python API is frozen by tools/py_api.py, which asks the package itself.
"""
import argparse
import difflib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def c_api(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                         text=True).stdout
    names = (line.split()[-1].split("@")[0] for line in out.splitlines())
    return sorted(n for n in names if not n.startswith("_"))


def declared(folder):
    """The functions that the headers of a folder declare."""
    texts = (path.read_text() for path in sorted((ROOT / folder).glob("*.h")))
    return {m for t in texts for m in re.findall(r"^CFX_API[^;(]*?\b(cfx_\w+)\(", t, re.M)}


def tiers(library):
    """{name of the golden file: symbols}; what no header declares counts as stable."""
    embed = declared("include/cfx/embed")
    names = c_api(library)
    return {"api_stable.txt": [n for n in names if n not in embed],
            "api_embed.txt": [n for n in names if n in embed]}


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
    same = [freeze(name, names, args.update) for name, names in tiers(args.so).items()]
    return not all(same)


sys.exit(main())
