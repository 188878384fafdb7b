"""The command on a terminal: width, colour, progress, completion; what it says of itself; what
graphs cost."""
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
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


def cfx(*words, **options):
    return subprocess.run([CFX, *words], capture_output=True, text=True, env=environment(),
                          **options)


# ---- what the command says of itself ------------------------------------------------------------


def verbs():
    """Those of the table, by what `cfx --help` lists."""
    listed = re.findall(r"^  ([a-z]+)  ", cfx("--help").stdout, re.M)
    return [verb for verb in listed if verb != "help"]


def test_every_verb_explains_itself():
    assert {"show", "code", "run", "opt", "check", "ops", "passes", "diff", "stats"} <= set(verbs())
    for verb in verbs():
        text = cfx(verb, "--help").stdout
        assert text == cfx("help", verb).stdout
        assert text.startswith(f"cfx {verb}: ") and "\nexamples:\n" in text
        assert "--color auto|always|never" in text
        assert max(map(len, text.splitlines())) <= 80
    for words in (("help",), ("help", "help"), ("help", "--help"), ("--help", "-h")):
        assert cfx(*words).stdout == cfx("--help").stdout


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_help_fits_the_terminal(columns):
    lines = COLOUR.sub("", on_terminal("--help", columns=columns)).splitlines()
    assert max(map(len, lines)) <= columns


def test_colour_is_a_choice():
    always = cfx("show", "--color=always", MLP).stdout
    assert "\x1b[" in always and COLOUR.sub("", always) == cfx("show", MLP).stdout
    assert "\x1b" not in on_terminal("show", "--color", "never", MLP)
    assert "\x1b[" in on_terminal("show", "--color=always", MLP, NO_COLOR="1")
    wrong = cfx("show", "--color=blue", MLP)
    assert wrong.returncode == 2 and "auto|always|never, not 'blue'" in wrong.stderr


def test_exit_codes(tmp_path):
    bad, ill, binary = tmp_path / "bad.ir", tmp_path / "ill.ir", tmp_path / "junk"
    bad.write_text("graph():\n  oops\n")
    ill.write_text("graph():\n output(1)\n %x = placeholder[target=x]()\n")
    binary.write_bytes(bytes(range(256)) * 40)
    assert cfx("check", MLP).returncode == 0
    assert cfx("check", ill).returncode == 1
    for verb in ("show", "code", "check", "stats", "run"):
        assert cfx(verb, bad).returncode == 3
        assert cfx(verb, tmp_path).returncode == 3
        assert cfx(verb, binary).returncode == 3
        assert cfx(verb, "--no-such-option", bad).returncode == 2
    assert cfx("diff", MLP, MLP).returncode == 0
    assert cfx("diff", MLP, ill).returncode == 1
    assert cfx("diff", MLP, bad).returncode == 3
    assert cfx("diff", MLP).returncode == 2


def test_the_manual_page_is_good_roff(tmp_path):
    if not shutil.which("groff"):
        pytest.skip("groff is not installed")
    page = tmp_path / "cfx.1"
    page.write_text(cfx("help", "--man").stdout)
    done = subprocess.run(["groff", "-man", "-ww", "-Tascii", "-P-c", page], capture_output=True,
                          text=True)
    assert done.returncode == 0 and done.stderr == ""
    text = re.sub(".\b", "", done.stdout)  # overstriking
    for verb in verbs():
        assert f"cfx {verb}" in text
    assert "EXIT STATUS" in text and "functionalize" in text


# ---- completion ---------------------------------------------------------------------------------


def complete(*words):
    """What bash offers for the last word."""
    script = cfx("completion", "bash").stdout
    line = " ".join(words)
    quoted = " ".join(f"'{word}'" for word in words)
    script += f"""
COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; COMP_LINE='{line}'; COMP_POINT={len(line)}
_cfx; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-u", "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and done.stderr == ""
    return done.stdout.split()


def test_bash_completes_words():
    assert set(complete("cfx", "")) == {*verbs(), "help", "--help", "--version"}
    assert complete("cfx", "opt", "--p") == ["--pass"]
    assert complete("cfx", "opt", "--pass", "functio") == ["functionalize"]
    assert complete("cfx", "opt", "--pass", "dce,leg") == ["dce,legalize_names"]
    assert complete("cfx", "opt", "--dump-after", "=", "cs") == ["cse"]
    assert complete("cfx", "show", "--color", "=", "") == ["auto", "always", "never"]
    assert complete("cfx", "show", "--color", "n") == ["never"]
    assert complete("cfx", "ops", "conv_tr") == [f"conv_transpose{i}d" for i in (1, 2, 3)]
    assert complete("cfx", "show", "READ") == ["README.md"]
    assert complete("cfx", "run", "--weights", "READ") == ["README.md"]
    assert complete("cfx", "completion", "z") == ["zsh"]
    assert "stats" in complete("cfx", "help", "")


def test_bash_completes_every_option():
    for verb in verbs():
        options = re.findall(r"^  (--[\w-]+)", cfx("help", verb).stdout, re.M)
        assert complete("cfx", verb, "--") == options


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_the_same_words(shell, tmp_path):
    script = cfx("completion", shell).stdout
    for verb in verbs():
        assert re.search(rf"\b{verb}\b", script)
    for word in ("--shapes" if shell == "zsh" else "-l shapes", "legalize_names", "conv2d"):
        assert word in script
    if shutil.which(shell):
        file = tmp_path / "script"
        file.write_text(script)
        subprocess.run([shell, "-n", file], check=True)


def test_fish_completes_lists():
    """The words behind a comma, too."""
    script = cfx("completion", "fish").stdout
    assert re.search(r"-l pass .* -xa '\(__cfx_list .*\bcse dce\b.*\)'\n", script)
    if not shutil.which("fish"):
        return
    ask = script + "\ncomplete -C 'cfx opt --pass dce,cs'"
    done = subprocess.run(["fish", "-c", ask], capture_output=True, text=True, check=True)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["dce,cse"]


# ---- work that takes long -----------------------------------------------------------------------


def test_runs_that_take_over_a_second_say_so(tmp_path):
    graph = tmp_path / "loop.ir"
    graph.write_text("""graph():
 %loop = call_function[target=cfx.for_loop](1000000000000, graph {
   %i = placeholder[target=i]()
   %y = placeholder[target=y]()
   %z = call_function[target=torch.neg](%y)
   output((%z,))
  }, (1,))
 output(%loop)
""")
    master, slave = pty.openpty()
    process = subprocess.Popen([CFX, "run", graph], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=slave, env=environment())
    os.close(slave)
    try:
        shown = b""
        while b"running, 2 s ..." not in shown:
            piece = os.read(master, 65536)
            assert piece
            shown += piece
        assert b"running, 1 s ..." in shown
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        os.close(master)


# ---- JSON ---------------------------------------------------------------------------------------


def test_json_has_every_node():
    graph = json.loads(cfx("show", "--json", ROOT / "examples/graphs/newton.ir").stdout)
    loop = next(n for n in graph["nodes"] if n["name"] == "loop")
    body = loop["args"][1]["graph"]["nodes"]
    assert [n["name"] for n in body][-3:] == ["mul", "unused", "output"]
    assert body[-1]["args"] == [{"tuple": [{"node": name} for name in ("mul", "a", "eps")]}]
    assert loop["users"] == ["root"] and (loop["file"], loop["line"]) == ("newton.py", 6)
    passes = json.loads(cfx("passes", "--json").stdout)
    assert [p["name"] for p in passes] == [l.split()[0] for l in cfx("passes").stdout.splitlines()]


# ---- what graphs cost ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3", "bert", "gpt2", "unet", "vit_b_16"])
def test_operations_are_those_of_pytorch(name, tmp_path):
    """PyTorch's counter knows products, convolutions and attention; so only these are compared."""
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode
    sys.path.insert(0, str(ROOT / "tests"))
    import cfx as fx
    import zoo
    model, inputs = zoo.make(name, small=name != "resnet18")
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(*inputs)
    lowered = fx.lower(zoo.trace(fx, model))
    (tmp_path / "model.ir").write_text(fx.text(lowered.graph))
    fx.save_weights(lowered, tmp_path / "model.safetensors")
    names = [n.target for n in lowered.graph.nodes if n.op == "placeholder"]
    shapes = "; ".join(f"{n}={str(x.dtype)[6:]}{list(x.shape)}" for n, x in zip(names, inputs))
    done = cfx("stats", "--json", "--weights", tmp_path / "model.safetensors", "--shapes", shapes,
               tmp_path / "model.ir")
    assert done.returncode == 0, done.stderr
    stats = json.loads(done.stdout)
    products = {"conv2d", "conv_transpose2d", "linear", "mm", "bmm", "matmul", "addmm", "baddbmm",
                "scaled_dot_product_attention"}
    ours = sum(row["flops"] for row in stats["calls"] if row["name"] in products)
    assert ours == counter.get_total_flops() > 0
    assert stats["weight_bytes"] >= sum(p.nbytes for p in model.parameters())
    assert 0 < stats["peak_bytes"] <= stats["result_bytes"] + sum(
        x.numel() * x.element_size() for x in inputs)
