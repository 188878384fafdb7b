#!/usr/bin/env python3
"""run.py - `make test`: sets up, builds, runs every kind of test, prints one sum.

usage: run.py BUILD_DIR MAKE...     (the make command, with the variables of the caller)

Every stage runs even when an earlier one failed. A stage that ends badly without counting a
failure counts as one. CFX_FULL=1 adds installing, sanitizers, fuzzing and packaging.
"""
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / sys.argv[1]
JOBS = os.cpu_count() or 1
MAKE = [*sys.argv[2:], f"-j{JOBS}", "--no-print-directory"]
PYTHON = str(ROOT / ".venv/bin/python")
SUMMARY = re.compile(r"(?:\S+: )?(\d+) passed, (\d+) failed$")
MAKE_STATE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")


def environment():
    env = {k: v for k, v in os.environ.items() if k not in MAKE_STATE}
    env.update(PYTHONPATH=str(ROOT / "python"), CFX_BUILD=str(BUILD), PYTHONUNBUFFERED="1")
    return env


def python_environment():
    """What Python needs to load an extension that was built with SAN=1."""
    env = environment()
    if BUILD.name == "build-san":
        find = ["gcc", "-print-file-name=libasan.so"]
        asan = subprocess.run(find, capture_output=True, text=True).stdout.strip()
        env.update(LD_PRELOAD=asan, PYTHONMALLOC="malloc", ASAN_OPTIONS="detect_leaks=0")
    return env


def stream(command, env, cwd=ROOT):
    """Runs a command, shows what it prints, returns (exit status, last summary or None)."""
    summary = None
    try:
        process = subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace")
    except OSError as e:
        print(e)
        return 127, None
    for line in process.stdout:
        if m := SUMMARY.match(line.rstrip("\n")):
            summary = int(m[1]), int(m[2])
            if line[0].isdigit():
                continue  # the only such line without a name is the last one of the whole run
        print(line, end="", flush=True)
    return process.wait(), summary


def counted(status, summary):
    passed, failed = summary or (int(status == 0), 0)
    return passed, max(failed, int(status != 0))


def command(*words):
    return lambda: counted(*stream([str(w) for w in words], environment()))


def pytest(folder):
    def run():
        if not any((ROOT / folder).rglob("*.py")):
            print(f"nothing in {folder}")
            return 0, 0
        report = BUILD / f"{folder.replace('/', '-')}.xml"
        report.unlink(missing_ok=True)
        status, _ = stream([PYTHON, "-m", "pytest", "-q", "-ra", "-n", str(min(JOBS, 4)),
                            f"--junitxml={report}", folder], python_environment())
        if not report.exists():
            return counted(status or 1, None)
        n = {k: sum(int(s.get(k)) for s in ET.parse(report).iter("testsuite"))
             for k in ("tests", "failures", "errors", "skipped")}
        failed = n["failures"] + n["errors"]
        return counted(status, (n["tests"] - failed - n["skipped"], failed))
    return run


def examples():
    """The Python examples, in the build folder, so that what they write stays out of the tree."""
    scratch = BUILD / "examples"
    scratch.mkdir(parents=True, exist_ok=True)
    passed = failed = 0
    for file in sorted((ROOT / "examples").glob("*.py")):
        status, _ = stream([PYTHON, str(file)], python_environment(), scratch)
        print(f"{file.name}: exit status {status}")
        passed, failed = passed + (status == 0), failed + (status != 0)
    return passed, failed


def package():
    """pip install, and an import of what it installed."""
    target = BUILD / "package"
    status, _ = stream([PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade",
                        "--target", str(target), "."], environment())
    if status == 0:
        code = f"import cfx._core; assert {str(target)!r} in cfx._core.__file__"
        env = dict(environment(), PYTHONPATH=str(target))
        status, _ = stream([PYTHON, "-c", code], env, BUILD)
    if status == 0:  # torch finds the back end by the package's metadata alone
        code = ("import torch; f = torch.compile(lambda x: x.sin() + 1, backend='cfx', "
                "options={'strict': True}); "
                "assert torch.allclose(f(torch.ones(3)), torch.ones(3).sin() + 1); "
                f"import cfx; assert {str(target)!r} in cfx.__file__")
        status, _ = stream([PYTHON, "-c", code], env, BUILD)
    return counted(status, None)


STAGES = [
    ("setup", command("sh", "tools/venv.sh")),
    ("build", command(*MAKE, "all", "python", "programs")),
    ("unit", command(*MAKE, "check")),
    ("golden", command(*MAKE, "golden")),
    ("replay", command(*MAKE, "replay")),
    ("python", pytest("tests/python")),
    ("examples", examples),
    ("lint", command(*MAKE, "lint")),
]
FULL_STAGES = [
    ("install", command("sh", "tests/install.sh", BUILD, *MAKE)),
    ("san unit", command(*MAKE, "SAN=1", "check")),
    ("san golden", command(*MAKE, "SAN=1", "golden")),
    ("tsan", command(*MAKE, "tsan")),
    ("fuzz", command(*MAKE, "fuzz")),
    ("package", package),
]


def main():
    BUILD.mkdir(exist_ok=True)
    began = time.monotonic()
    total = [0, 0]
    lines = []
    for name, run in STAGES + (FULL_STAGES if os.environ.get("CFX_FULL") == "1" else []):
        print(f"\n==== {name}", flush=True)
        start = time.monotonic()
        try:
            passed, failed = run()
        except Exception as e:
            print(f"{name}: {e!r}")
            passed, failed = 0, 1
        if name in ("setup", "build"):
            passed = 0  # not tests; only their failure counts
        total[0] += passed
        total[1] += failed
        lines.append(f"{name:<11} {passed:6} passed {failed:6} failed"
                     f" {time.monotonic() - start:8.1f} s")
        print(f"==== {lines[-1]}", flush=True)
    print("\n" + "\n".join(lines))
    print(f"{'in all':<41} {time.monotonic() - began:8.1f} s\n")
    print(f"{total[0]} passed, {total[1]} failed", flush=True)
    return total[1] != 0


sys.exit(main())
