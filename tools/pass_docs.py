#!/usr/bin/env python3
"""pass_docs.py - writes docs/passes.md from the table of passes and their golden tests.

    pass_docs.py            fails if the page is not what it would write (make lint runs this)
    pass_docs.py --update   writes it

A pass is shown by tests/golden/opt/NAME.ir: its first lines of comment, what goes in, what comes
out; or, where there is none, or it shows no change (the command has no modules), by the pair at
the top of its file. It needs nothing but these files.
"""
import difflib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/passes.md"
GOLDEN = ROOT / "tests/golden/opt"
TEXT = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
ROW = re.compile(rf"^CFX_PASS\((\w+),\s*{TEXT},\s*([\w\s|]+),\s*([\w\s|]+)\)", re.M)
FLAG = re.compile(rf"^CFX_PASS_(NEED|KEEP)\((\w+),\s*{TEXT}\)", re.M)
HEAD = """# Passes

This page describes every pass of the core. A pass transforms a graph and its regions, in time
linear in nodes and edges unless its source file says why not. You run a pass by its name:

| from | call |
|---|---|
| a shell | `cfx opt --pass NAME graph.ir`; `--pass A,B,C --dump-after` shows every step |
| Python | `cfx.passes.run(module, "NAME")`, a GraphModule or a Graph; returns whether it changed |
| C | `cfx_pass_run(cfx_pass_find("NAME"), graph, modules, NULL, &changed, &error)` |

You can set options that are numbers or flags by name: `cfx opt --pass unroll=4` (the first option),
`--pass unroll:max_turns=4:max_nodes=99`, `cfx.passes.run(module, "unroll", max_turns=4)`,
`cfx_pass_run_with`.

`cfx passes` and `cfx.passes.table()` list the same table. [adding-a-pass.md](adding-a-pass.md)
explains how to add a pass. tools/pass_docs.py writes this page from src/pass/pass.def and
tests/golden/opt.

"""


def joined(literals):
    """C's string literals, one after the other, as one text."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"')


def flag_words():
    """{flag: its words} in the order of the table, as pass.def writes the flags."""
    text = (ROOT / "include/cfx/pass_flag.def").read_text()
    return {f"{m[1]}S_{m[2]}": joined(m[3]) for m in FLAG.finditer(text)}


def needs_words(flags, words):
    return "; ".join(words[f] for f in words if f in flags) or "nothing"


def keeps_words(flags, words):
    """As cfx_pass_keeps_words: what is said of nodes, then the rest."""
    order = list(words)
    of_nodes = order[order.index("KEEPS_NAMES"):order.index("KEEPS_NODES")]
    first = [words[f] for f in of_nodes if f in flags]
    parts = [words[f] for f in order if f in flags and f not in of_nodes]
    if first:
        listed = ", ".join(first[:-1]) + " and " * (len(first) > 1) + first[-1]
        which = "all nodes" if "KEEPS_NODES" in flags else "the nodes that stay"
        parts = [f"{listed} of {which}", *(p for p in parts if p != words["KEEPS_NODES"])]
    return "; ".join(parts) or "nothing"


def rows():
    """(name, summary, needs, keeps) of every pass."""
    text = (ROOT / "src/pass/pass.def").read_text()
    words = flag_words()
    return [(m[1], joined(m[2]), needs_words(re.findall(r"\w+", m[3]), words),
             keeps_words(re.findall(r"\w+", m[4]), words)) for m in ROW.finditer(text)]


def options(name):
    """What can be set of a pass, as a list."""
    text = (ROOT / "src/pass/pass_option.def").read_text()
    row = re.compile(rf"^CFX_PASS_OPTION\({name}, (\w+), (\w+), (\d+),\s*{TEXT}\)", re.M)
    return "".join(
        f"- Option `{m[1]}` ({('off' if m[2] == 'FLAG' else m[3])}): {joined(m[4])}.\n"
        for m in row.finditer(text)
    )


def golden(name):
    """What the golden test of a pass shows; "" if that is no change."""
    path = GOLDEN / f"{name}.ir"
    if not path.is_file():
        return ""
    head, _, expected = path.read_text().partition("# EXPECT\n")
    lines = head.splitlines()
    words = " ".join(l[2:] for l in lines if l.startswith("# ") and not l.startswith("# RUN:"))
    given = "\n".join(l for l in lines if not l.startswith("#"))
    expected = expected.rstrip("\n")
    pair = f"{words}\n\n```\n{given}\n```\n\nbecomes\n\n```\n{expected}\n```\n"
    return pair if given != expected else ""


def comment(name):
    """The before and after at the top of the file of a pass."""
    texts = [path.read_text() for path in sorted((ROOT / "src").glob("*/*.c"))]
    text = next(text for text in texts if f"\ncfx_status cfxi_pass_{name}(" in text)
    lines = re.search(r"(?: \* {5}.*\n| \*\n)+", text)[0].splitlines()
    return "```\n" + "\n".join(l[7:] for l in lines).strip("\n") + "\n```\n"


def section(name, summary, needs, keeps):
    summary = summary[0].upper() + summary[1:]
    return (f"## {name}\n\n{summary}.\n\n- Needs: {needs}.\n- Keeps: {keeps}.\n{options(name)}\n"
            f"{golden(name) or comment(name)}")


def page():
    table = rows()
    index = "".join(f"- [{name}](#{name}): {summary}\n" for name, summary, _, _ in table)
    return HEAD + index + "\n" + "\n".join(section(*row) for row in table)


def main():
    want = page()
    if "--update" in sys.argv:
        PAGE.write_text(want)
        return 0
    have = PAGE.read_text() if PAGE.is_file() else ""
    if have != want:
        diff = list(difflib.unified_diff(have.splitlines(), want.splitlines(), lineterm="", n=0))
        print("\n".join(diff[:12]))
        print("docs/passes.md is out of date: run tools/pass_docs.py --update")
    return have != want


if __name__ == "__main__":
    sys.exit(main())
