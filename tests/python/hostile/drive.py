"""Checks programs in a process of its own, which may crash, hang, or be left in an odd mode."""
import json
import os
import select
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parents[1]
LIMIT = 120  # seconds for all that is done with one program


class Driver:
    def __init__(self, limit=LIMIT):
        self.limit = limit
        self.process = None
        self.asked = 0

    def start(self):
        path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", str(ROOT / "python"))])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hostile.worker"], stdin=subprocess.PIPE, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=TESTS,
            env=dict(os.environ, PYTHONPATH=path))

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
        self.process = None

    def ask(self, way, key):
        """(status, words) of a program, captured "python" or by "command"."""
        self.asked += 1
        if self.asked % 100 == 0:  # every program leaves modules behind
            self.close()
        if self.process is None:
            self.start()
        self.process.stdin.write(f"{way} {key}\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], self.limit)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            code = self.process.wait() if ready else None
            self.close()
            return "wrong", f"ends with {code}" if ready else f"no end after {self.limit} seconds"
        status, words, last = json.loads(line)
        if last:  # the process is left in an odd mode
            self.close()
        return status, words
