"""The command on a terminal: width, colour, progress; and a reader that goes away."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
CFX = BUILD / "cfx"
MLP = ROOT / "examples/graphs/mlp.ir"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def environment(**changes):
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "LD_PRELOAD")}
    return {**env, "TERM": "xterm", **changes}


def on_terminal(*words, columns=80, stderr_only=False, **changes):
    """What the command writes to a terminal, with plain newlines."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    out = subprocess.DEVNULL if stderr_only else slave
    process = subprocess.Popen([CFX, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=slave,
                               env=environment(**changes))
    os.close(slave)
    text = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        text += piece
    os.close(master)
    assert process.wait() == 0
    return text.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """A text of 20 MiB."""
    file = tmp_path_factory.mktemp("big") / "big.ir"
    with file.open("w") as f:
        f.write("graph():\n  %x = placeholder[target=x]()\n")
        f.writelines(f"  %n{i} = call_function[target=torch.add](%x, {i}, alpha=2)\n"
                     for i in range(350_000))
    return file


@pytest.mark.parametrize("columns", [40, 60, 72, 200])
def test_a_table_fits_the_terminal(columns):
    lines = COLOUR.sub("", on_terminal("show", MLP, columns=columns)).splitlines()
    assert max(map(len, lines)) <= columns
    assert ("…" in "".join(lines)) == (columns < 72)


def test_wide_never_cuts():
    assert "…" not in on_terminal("show", "--wide", MLP, columns=40)


@pytest.mark.parametrize("form", ["--table", "--text", "--str"])
def test_opcodes_have_colours(form):
    shown = on_terminal("show", form, MLP, columns=200)
    plain = subprocess.run([CFX, "show", form, MLP], capture_output=True, text=True, check=True,
                           env=environment()).stdout
    assert COLOUR.sub("", shown) == plain
    words = re.findall(r"\x1b\[\d+m(\w+)\x1b\[0m", shown)
    calls = ["placeholder", "call_module", "call_function", "call_module", "call_method",
             "get_attr", "call_function", "call_function"]
    assert words == calls + ["output"] * (form != "--str")
    assert "\x1b" not in plain


@pytest.mark.parametrize("changes", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_when_not_wanted(changes):
    assert "\x1b" not in on_terminal("show", MLP, **changes)


def test_long_work_shows_progress(big):
    shown = on_terminal("opt", "--pass", "dce", big, stderr_only=True)
    assert "reading, " in shown and "parsing, " in shown and "dce, " in shown
    assert shown.endswith("\r\x1b[K")
    assert "\x1b" not in on_terminal("check", MLP, stderr_only=True).replace("\r\x1b[K", "")


def test_a_reader_that_goes_away(big):
    done = subprocess.run(["sh", "-c", f"{CFX} show --text {big} | head -n 2"], capture_output=True,
                          text=True, check=True, env=environment())
    assert done.stdout == "graph():\n  %x = placeholder[target=x]()\n" and done.stderr == ""
