"""What README.md and docs/*.md show has to be true: C compiles and runs, Python runs, commands
print what stands there, and the table of statuses is status.def."""
import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
NAMES = ("README.md", "docs/c.md", "docs/cli.md", "docs/errors.md", "docs/interop.md",
         "docs/leaving-torchscript.md", "docs/ownership.md", "docs/architecture.md")
PAGES = [ROOT / name for name in NAMES]
C_PAGES = [*PAGES, ROOT / "docs/rewriting.md"]  # what else these show has tests of its own
GENERATED = [ROOT / f"docs/{name}.md" for name in ("c", "cli", "architecture")]  # by CFX_UPDATE=1
BLOCK = re.compile(r"^```(c|python|console)\n(.*?)^```$", re.M | re.S)

# What a fragment of C may count on.
FRAME = """#include <cfx/cfx.h>
#include <stdio.h>
int main(void)
{
    cfx_error first = {0};
    cfx_graph *g = cfx_graph_new(NULL, NULL, &first);
    {
%s    }
    cfx_graph_release(g);
    return 0;
}
"""

# And in docs/c.md: after the definitions of its first program.
SCOPE_MAIN = """int main(void)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *model = make_mlp(s);
    cfx_var x = cfx_randn(s, cfx_ints(s, 2, 4));
    cfx_call(s, model, x);
    {
%s    }
    if (!cfx_scope_ok(s))
        fprintf(stderr, "%%s\\n", cfx_scope_error(s)->message);
    const int failed = !cfx_scope_ok(s);
    cfx_scope_free(s);
    return failed;
}
"""


def run(*command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=60,
                          **options)


# A command with a here-document has several lines.
COMMAND = re.compile(r"^\$ (.*<<'END'\n(?:.*\n)*?END|.*)\n", re.M)


def print_command(command):
    """What a command prints, on both streams."""
    path = f"{BUILD}{os.pathsep}{os.environ['PATH']}"
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    script = f"exec 2>&1\n{command}"
    return run("sh", "-c", script, cwd=ROOT, env=dict(env, PATH=path)).stdout


def rewrite(match):
    """A block with what its commands print now."""
    if match[1] != "console":
        return match[0]
    commands = COMMAND.findall(match[2])
    return "```console\n" + "".join(f"$ {c}\n{print_command(c)}" for c in commands) + "```"


if os.environ.get("CFX_UPDATE"):
    for generated in GENERATED:
        generated.write_text(BLOCK.sub(rewrite, generated.read_text()))


def in_frame(page, source, text):
    """A fragment of C as a program."""
    if "int main" in source or "cfx_model(" in source:
        return source
    if page.name != "c.md":
        return FRAME % source
    first = BLOCK.search(text)[2]
    return first[:first.index("int main")] + SCOPE_MAIN % source


def blocks(kind):
    """One test for each block of that kind, named after its page and line."""
    found = []
    for page in C_PAGES if kind == "c" else PAGES:
        text = page.read_text()
        for m in BLOCK.finditer(text):
            if m[1] == kind:
                line = text.count("\n", 0, m.start()) + 1
                found.append(pytest.param(m[2] if kind != "c" else in_frame(page, m[2], text),
                                          id=f"{page.name}:{line}"))
    return found


@pytest.mark.parametrize("source", blocks("c"))
def test_c(source, tmp_path):
    file = tmp_path / "example.c"
    file.write_text(source)
    if "int main" not in source:
        env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        done = run(BUILD / "cfx", "trace", "--cflags", "-Wall -Wextra -Werror", file, env=env)
        assert done.returncode == 0 and done.stdout.startswith("graph():"), done.stderr
        return
    flags = shlex.split((BUILD / "flags.stamp").read_text())
    done = run(*flags, "-I", BUILD / "include", file, BUILD / "libcfx.a", "-lm", "-pthread", "-o",
               tmp_path / "example")
    assert done.returncode == 0, done.stderr
    done = run(tmp_path / "example", cwd=tmp_path,
               env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"})
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("source", blocks("python"))
def test_python(source, tmp_path):
    if "import torch" in source:
        pytest.importorskip("torch")
    file = tmp_path / "example.py"  # cfx.script reads sources
    file.write_text(source)
    done = run(sys.executable, file, cwd=tmp_path,
               env=dict(os.environ, PYTHONPATH=str(ROOT / "python")))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("source", blocks("console"))
def test_console(source):
    parts = COMMAND.split(source)
    assert parts[0] == ""
    for command, want in zip(parts[1::2], parts[2::2]):
        assert print_command(command) == want


@pytest.mark.parametrize("name", ["capture", "checking", "operators", "rewriting", "running",
                                  "tutorial"])
def test_session(name, monkeypatch):
    """The session of a page, from its first line to its last."""
    pytest.importorskip("torch")
    monkeypatch.setenv("COLUMNS", "77")
    how = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
    page = str(ROOT / f"docs/{name}.md")
    done = doctest.testfile(page, module_relative=False, optionflags=how, encoding="utf-8")
    assert done.attempted > 4 and done.failed == 0


def test_statuses():
    rows = re.findall(r'^CFX_STATUS\((\w+),\s*"([^"]*)",\s*(?:"(\w+)"|NULL)\)',
                      (ROOT / "include/cfx/status.def").read_text(), re.M)
    page = (ROOT / "docs/errors.md").read_text()
    table = re.findall(r"^\| ([A-Z]+) \| ([^|]*) \|(?: (\w+) | )\|$", page, re.M)
    assert table == rows
