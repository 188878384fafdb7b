#!/usr/bin/env python3
"""pythons.py - `make test-pythons`: the Python tests with every version of Python that is found.

usage: pythons.py BUILD_DIR MAKE...     (the make command, with the variables of the caller)

Looks for the versions in PATH and in pyenv. Each has a folder BUILD_DIR/py3.x with its objects and
its virtual environment; the library is built once. Without torch, the tests that need it are
skipped: TORCH=1 installs it, which may be a download of several GB. The environment that `make
test` has made is used for its version, with the torch in it. PYTHONS="3.12 3.13" names versions.
"""
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / sys.argv[1]
JOBS = os.cpu_count() or 1
MAKE = [*sys.argv[2:], f"-j{JOBS}", "--no-print-directory"]
MAKE_STATE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
REQUIREMENTS = ROOT / "tests/requirements.txt"
WANTS_TORCH = os.environ.get("TORCH") == "1"
# What a Python must have: this version, the GIL, and headers to compile with.
USABLE = """
import os, sys, sysconfig
sys.exit("%d.%d" % sys.version_info[:2] != sys.argv[1] or
         bool(sysconfig.get_config_var("Py_GIL_DISABLED")) or
         not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))
"""


def environment():
    env = {k: v for k, v in os.environ.items() if k not in MAKE_STATE}
    env.update(PYTHONPATH=str(ROOT / "python"), CFX_BUILD=str(BUILD), PYTHONUNBUFFERED="1")
    return env


def run(*words, **options):
    return subprocess.run([str(w) for w in words], cwd=ROOT, env=environment(), **options)


def says_yes(python, program, *arguments):
    try:
        return run(python, "-c", program, *arguments, capture_output=True).returncode == 0
    except OSError:
        return False


def find(version):
    """The newest Python of a version; None if there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    number = lambda path: [int(part) for part in re.findall(r"\d+", path.parts[-3])]
    own = sorted(pyenv.glob(f"{version}.*/bin/python{version}"), key=number, reverse=True)
    # A shim of pyenv in PATH may refuse to run, so each is tried.
    for python in (*own, shutil.which(f"python{version}"), f"/usr/bin/python{version}"):
        if python and says_yes(python, USABLE, version):
            return python
    return None


def prepare(version, base):
    """The Python to test with, in its virtual environment, and the folder to build in."""
    ours = ROOT / ".venv/bin/python"
    if says_yes(ours, USABLE, version) and says_yes(ours, "import pytest, torch"):
        return ours, BUILD
    folder = BUILD / f"py{version}"
    python = folder / "venv/bin/python"
    lines = REQUIREMENTS.read_text().splitlines()
    wanted = "\n".join(line for line in lines if WANTS_TORCH or not line.startswith("torch"))
    stamp = folder / "venv/cfx.stamp"
    if not says_yes(python, USABLE, version):
        run(base, "-m", "venv", "--clear", folder / "venv", check=True)
    if not stamp.exists() or stamp.read_text() != wanted:
        (folder / "requirements.txt").write_text(wanted)
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r",
            folder / "requirements.txt", check=True)  # fmt: skip
        stamp.write_text(wanted)
    return python, folder


def test(python, folder):
    """(passed, failed, skipped); whatever ends badly without counting a failure is one."""
    run(*MAKE, "python", f"PYTHON={python}", f"PY_BUILD={folder.relative_to(ROOT)}", check=True)
    process = subprocess.Popen(
        [python, "-m", "pytest", "-q", "-n", str(min(JOBS, 4)), "tests/python"],
        cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace",
    )  # fmt: skip
    last = ""
    for line in process.stdout:
        print(line, end="", flush=True)
        last = line if re.search(r"\d+ (passed|failed|skipped|error)", line) else last
    count = lambda *names: sum(int(n) for n, name in re.findall(r"(\d+) (\w+)", last)
                               if name in names)  # fmt: skip
    failed = count("failed", "error", "errors")
    return count("passed"), max(failed, int(process.wait() != 0)), count("skipped")


def main():
    lines, total = [], [0, 0]
    run(*MAKE, "all", "programs", check=True)
    for version in os.environ.get("PYTHONS", "").split() or VERSIONS:
        base = find(version)
        if not base:
            lines.append(f"{version:<6} not found")
            continue
        print(f"\n==== {version}: {base}", flush=True)
        start, torch = time.monotonic(), "?"
        try:
            python, folder = prepare(version, base)
            torch = "with" if says_yes(python, "import torch") else "without"
            passed, failed, skipped = test(python, folder)
        except (OSError, subprocess.CalledProcessError) as error:
            print(error)
            passed, failed, skipped = 0, 1, 0
        total[0] += passed
        total[1] += failed
        lines.append(f"{version:<6} {passed:6} passed {failed:4} failed {skipped:5} skipped, "
                     f"{torch} torch {time.monotonic() - start:8.1f} s")
    print("\n" + "\n".join(lines))
    print(f"test-pythons: {total[0]} passed, {total[1]} failed", flush=True)
    return total[1] != 0 or total[0] == 0


if __name__ == "__main__":
    sys.exit(main())
