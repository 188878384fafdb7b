#!/usr/bin/env python3
"""api_freeze.py - compares the public API with its golden files; --update rewrites them.

c:      the symbols that build/libcfx.so exports  -> tests/golden/api.txt
python: the signatures in python/cfx/*.pyi        -> tests/golden/api_python.txt
"""
import argparse
import ast
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


def signatures(body, prefix):
    """One line per class, function and annotated name, in the order of the file."""
    for item in body:
        if isinstance(item, ast.ClassDef):
            bases = ", ".join(map(ast.unparse, item.bases))
            yield f"class {prefix}{item.name}({bases})"
            yield from signatures(item.body, f"{prefix}{item.name}.")
        elif isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            marks = "".join(f"@{ast.unparse(d)} " for d in item.decorator_list)
            returns = f" -> {ast.unparse(item.returns)}" if item.returns else ""
            yield f"{marks}{prefix}{item.name}({ast.unparse(item.args)}){returns}"
        elif isinstance(item, ast.AnnAssign):
            yield f"{prefix}{ast.unparse(item)}"


def python_api():
    lines = []
    for path in sorted((ROOT / "python/cfx").glob("**/*.pyi")):
        module = ".".join(path.relative_to(ROOT / "python").with_suffix("").parts)
        lines += signatures(ast.parse(path.read_text()).body, f"{module}.")
    return lines


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
    parser.add_argument("what", nargs="*", metavar="c|python", help="both, when not given")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--so", default=ROOT / "build/libcfx.so", metavar="FILE")
    args = parser.parse_args()
    what = args.what or ["c", "python"]
    good = True
    if "c" in what:
        good &= freeze("api.txt", c_api(args.so), args.update)
    if "python" in what:
        good &= freeze("api_python.txt", python_api(), args.update)
    return not good


sys.exit(main())
