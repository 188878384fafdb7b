"""The programs of programs/ through the command `cfx script`, which captures them without Python.

    python tests/python/script_command.py [--only WORD] [--update]

The command reads a file. It gets the file of the program's topic, in which only the program and
what it refers to are left, each on its own line. What the command writes, IR text and weights, is
read back and runs in cfx's own runtime. Prints what is not equal to eager PyTorch, and how many
are; --update keeps both, in script_command.txt and docs/capture.md, and the tests then expect it.
"""
import argparse
import collections
import functools
import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import cfx
import program_text
import programs
import torch

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).with_suffix(".txt")
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
# The same result as eager PyTorch on all inputs; not captured, or nothing that cfx's runtime can
# run; captured, but raises on an input that the program takes; captured, and gives something else.
VERDICTS = EQUAL, REFUSED, RAISES, DIFFERENT = "equal", "refused", "raises", "different"


class Refused(Exception):
    """The command or the runtime does not take the program: its message."""


# ---- the source --------------------------------------------------------------------------------


@functools.cache
def parsed(topic):
    text = (programs.FOLDER / f"{topic}.py").read_text()
    return text, program_text.parts(text, ("program", "module", "made", "call"))


def source(program):
    """The text for the command, and the option that names the program in it."""
    text, parts = parsed(program.topic)
    made = any(part.name == program.name and part.mark == "made" for part in parts)
    return (program_text.text_of(text, parts, program.name),
            ["--call", f"{program.name}()"] if made else ["--function", program.name])


# ---- capturing and running ---------------------------------------------------------------------


def command(*words):
    return subprocess.run([str(BUILD / "cfx"), *map(str, words)], capture_output=True, text=True,
                          timeout=300, env=ENVIRONMENT)


def holder(tensors):
    """A module with these tensors as buffers, by path."""
    root = torch.nn.Module()
    for path, tensor in tensors.items():
        *parents, last = path.split(".")
        at = root
        for name in parents:
            if not hasattr(at, name):
                at.add_module(name, torch.nn.Module())
            at = getattr(at, name)
        at.register_buffer(last, tensor)
    return root


def like(program, tensors):
    """The tensors with the numbers that the program has in Python, where it has them: the initial
    ones are random."""
    made = program.make()

    def find(path, mine):
        at = made
        for name in path.split("."):
            at = getattr(at, name, None)
        same = isinstance(at, torch.Tensor) and (at.shape, at.dtype) == (mine.shape, mine.dtype)
        return at.detach().clone() if same else mine

    return {path: find(path, mine) for path, mine in tensors.items()}


def capture(program, folder):
    """The GraphModule of what the command writes; raises Refused."""
    text, options = source(program)
    file, graph, weights = folder / f"{program.topic}.py", folder / "p.ir", folder / "p.safetensors"
    file.write_text(text)
    mode = [] if program.train else ["--eval"]
    done = command("script", *options, *mode, "--seed", 0, "-o", graph, "--weights", weights, file)
    if done.returncode != 0:
        raise Refused(done.stderr.strip() or f"ended with {done.returncode}")
    tensors = {k: torch.from_dlpack(t) for k, t in cfx.load_tensors(weights).items()}
    return cfx.GraphModule(holder(like(program, tensors)), cfx.parse(graph.read_text()))


def same_failure(want, got):
    """Whether a call failed as it should. All that C has of an exception is a text with its class,
    which shows arguments that are a torch.Size as tuples."""
    said = re.sub(r"torch\.Size\(\[(.*?)\]\)",
                  lambda m: f"({m[1]},)" if re.fullmatch(r"\d+", m[1]) else f"({m[1]})",
                  str(want.error))
    kinds = [c.__name__ for c in type(want.error).__mro__ if c.__module__ == "builtins"]
    told = f"{type(got.error).__name__} {got.error}"
    return (said in told or str(want.error) in told) and any(k in told for k in kinds[:1])


def plain(x):
    """A result as C has it: of a class derived from tuple or dict, there is the tuple or dict."""
    if isinstance(x, tuple) and type(x) is not torch.Size:
        return tuple(map(plain, x))
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    return list(map(plain, x)) if isinstance(x, list) else x


def states(made, module):
    """What both hold afterwards, under the names that both have."""
    mine = dict(made.state_dict()) if isinstance(made, torch.nn.Module) else {}
    yours = dict(module.state_dict())
    both = sorted(mine.keys() & yours.keys())
    return {k: mine[k].detach() for k in both}, {k: yours[k].detach() for k in both}


def judge(program, folder):
    """A verdict, and what was said or is different."""
    try:
        module = capture(program, folder)
        with torch.no_grad():
            lowered = cfx.lower(module)
    except (Refused, cfx.LowerError) as e:
        return REFUSED, str(e).replace(f"{folder}/", "")
    made = program.make()
    with torch.no_grad():  # as everything is in C
        got = programs.run(lowered, program.calls)
        want = programs.run(made, program.calls)
    for i, (a, b) in enumerate(zip(want, got, strict=True)):
        a.value = plain(a.value)
        found = programs.disagreement(a, b, exact=False, base=program.base)
        if found and not (a.error and b.error and same_failure(a, b)):
            raised = b.error is not None and a.error is None
            found = found.replace(f"{folder}/", "")
            return RAISES if raised else DIFFERENT, f"call {i}: {found}"
    found = programs.difference(*states(made, module), exact=False, path="state")
    return (DIFFERENT, found) if found else (EQUAL, "")


# ---- all of them -------------------------------------------------------------------------------


def name_of(program):
    return f"{program.topic}.{program.name}"


def first_line(why):
    return why.split("\n")[0]


def kept():
    """{program: (verdict, first line of the message)} of those that are not equal."""
    rows = (line.split(" | ", 2) for line in KEPT.read_text().splitlines() if line)
    return {name: (verdict, why) for name, verdict, why in rows}


def table(verdicts):
    counts = collections.Counter(verdict for verdict, _ in verdicts.values())
    said = {EQUAL: "equal to eager PyTorch on all inputs",
            REFUSED: "refused with the line and the reason",
            RAISES: "captured, but an input is refused when the graph runs, with the line",
            DIFFERENT: "different, silently"}
    rows = [f"| {said[v]} | {counts[v]} |" for v in VERDICTS]
    return "\n".join(["| `cfx script`, then `cfx run` | programs |", "|---|---|", *rows,
                      f"| **all** | {len(verdicts)} |"])


def update(verdicts):
    lines = [f"{name} | {verdict} | {first_line(why)}\n"
             for name, (verdict, why) in verdicts.items() if verdict != EQUAL]
    KEPT.write_text("".join(lines))
    page = ROOT / "docs/capture.md"
    pattern = re.compile(r"(<!-- world: .*?-->\n).*?(<!-- end of world -->)", re.S)
    page.write_text(pattern.sub(lambda m: f"{m[1]}\n{table(verdicts)}\n\n{m[2]}",
                                page.read_text()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", default="", help="programs whose name has this in it")
    parser.add_argument("--update", action="store_true", help="keep the verdicts")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [p for p in programs.load_all() if options.only in name_of(p)]
    with tempfile.TemporaryDirectory() as folder:
        verdicts = {name_of(p): judge(p, Path(folder)) for p in chosen}
    for name, (verdict, why) in verdicts.items():
        if verdict != EQUAL:
            print(f"{verdict:9} {name}: {first_line(why)}")
    print(table(verdicts))
    if options.update and not options.only:
        update(verdicts)
    return any(verdict == DIFFERENT for verdict, _ in verdicts.values())


if __name__ == "__main__":
    sys.exit(main())
