#!/usr/bin/env python3
"""run.py - runs the golden files: command, input and expected output in one .ir file.

    # any words about the case
    # RUN: cfx opt --pass dce -
    graph(): ...                      the input, given to each command on stdin
    # EXPECT
    graph(): ...                      what the commands print, one after the other
    # EXPECT-ERROR                    only where a command has to fail: what it writes to stderr
    <stdin>:2: ...

A RUN line is a shell command (pipes work) in an empty scratch folder; `cfx` is the built command
and $GOLDEN this folder. Without EXPECT-ERROR the exit status must be 0 and stderr empty.
"""
import argparse
import difflib
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUN, EXPECT, ERROR = "# RUN:", "# EXPECT", "# EXPECT-ERROR"


def split(text):
    """(header, commands, input, expected stdout, expected stderr or None), all as text."""
    lines = text.splitlines(keepends=True)
    marks = [l.rstrip() for l in lines]
    start = 0
    for i, mark in enumerate(marks):
        if mark.startswith(RUN):
            start = i + 1
        elif not mark.startswith("#"):
            break
    error = marks.index(ERROR, start) if ERROR in marks[start:] else len(lines)
    expect = marks.index(EXPECT, start, error) if EXPECT in marks[start:error] else error
    commands = [m[len(RUN):].strip() for m in marks[:start] if m.startswith(RUN)]
    return ("".join(lines[:start]), commands, "".join(lines[start:expect]),
            "".join(lines[expect + 1:error]),
            "".join(lines[error + 1:]) if error < len(lines) else None)


def execute(commands, text, cfx):
    """(exit status, stdout, stderr); stops at the first command that fails."""
    path = f"{cfx.parent}{os.pathsep}{os.environ['PATH']}"
    env = dict(os.environ, PATH=path, GOLDEN=str(HERE))
    status, out, err = 0, "", ""
    with tempfile.TemporaryDirectory() as scratch:
        for command in commands:
            done = subprocess.run(["sh", "-c", command], input=text, cwd=scratch, env=env,
                                  capture_output=True, encoding="utf-8",
                                  errors="backslashreplace", timeout=120)
            status, out, err = done.returncode, out + done.stdout, err + done.stderr
            if status:
                break
    return status, whole(out), whole(err)


def whole(text):
    """A golden file cannot show a missing newline at the end, so one is added."""
    return text if text.endswith("\n") or not text else text + "\n"


def diff(want, got, title):
    return "\n".join(difflib.unified_diff(want.splitlines(), got.splitlines(), f"{title}, expected",
                                          f"{title}, got", lineterm=""))


def run(file, cfx, update):
    """The complaints about one golden file, as text; empty when all is well."""
    text = file.read_text(encoding="utf-8")
    header, commands, given, want_out, want_err = split(text)
    if not commands:
        return "no '# RUN:' line at the top"
    try:
        status, out, err = execute(commands, given, cfx)
    except subprocess.TimeoutExpired as e:
        return str(e)
    crash = f"ended by signal {-status if status < 0 else status - 128}" if (
        status < 0 or status > 128) else ""
    if update and not crash:
        new = header + given + (f"{EXPECT}\n{out}" if out or not status else "")
        new += f"{ERROR}\n{err}" if status else ""
        if new != text:
            file.write_text(new, encoding="utf-8")
        return f"writes to stderr but succeeds:\n{err}" if err and not status else ""
    wrong = [crash] if crash else []
    if want_err is None and status and not crash:
        wrong.append(f"exit status {status}")
    if want_err is not None and not status:
        wrong.append("exit status 0, but it should fail")
    wrong += [diff(want_out, out, "stdout"), diff(want_err or "", err, "stderr")]
    return "\n".join(w for w in wrong if w)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="golden files; all of them by default")
    parser.add_argument("--cfx", type=Path, default=HERE.parent.parent / "build/cfx")
    parser.add_argument("--update", action="store_true", help="rewrite the expectations")
    args = parser.parse_args()
    cfx = args.cfx.resolve()
    if not cfx.is_file():
        sys.exit(f"golden: there is no {cfx}; run make")
    files = args.files or sorted(HERE.rglob("*.ir"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda f: run(f, cfx, args.update), files))
    for file, wrong in zip(files, results):
        if wrong:
            print(f"{file}: failed\n{wrong}\n")
    failed = sum(map(bool, results))
    print(f"golden: {len(files) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
