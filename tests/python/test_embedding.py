"""docs/embedding.md shows parts of the programs in examples/c, and what they print."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
PAGE = (ROOT / "docs/embedding.md").read_text()
SOURCE = re.compile(r"\]\(\.\./(examples/c/[\w.]+)\):\n\n```c(?:pp)?\n(.*?)^```$", re.M | re.S)
PRINTED = re.compile(r"^```console\n\$ (\S+)\n(.*?)^```$", re.M | re.S)


def named(found):
    return [pytest.param(*m.groups(), id=f"{m[1]}:{PAGE.count(chr(10), 0, m.start()) + 1}")
            for m in found]


@pytest.mark.parametrize("path, block", named(SOURCE.finditer(PAGE)))
def test_source(path, block):
    """Parts between lines of dots stand in the program, in that form."""
    text = (ROOT / path).read_text()
    for part in re.split(r"^\.\.\.\n", block, flags=re.M):
        assert part.strip() and part in text


@pytest.mark.parametrize("program, want", named(PRINTED.finditer(PAGE)))
def test_printed(program, want):
    if program.endswith("c++11") and not shutil.which(os.environ.get("CXX", "g++")):
        pytest.skip("there is no C++ compiler here")
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    done = subprocess.run([BUILD / "examples/c" / program], capture_output=True, text=True,
                          timeout=60, env=env)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", want)


def test_every_program_is_shown():
    shown = {m[1] for m in SOURCE.finditer(PAGE)}
    mine = [*ROOT.glob("examples/c/custom_*.c"), *ROOT.glob("examples/c/*.cpp")]
    assert shown == {f"examples/c/{p.name}" for p in mine}
    assert len(PRINTED.findall(PAGE)) == len(shown) == 4
