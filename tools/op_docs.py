#!/usr/bin/env python3
"""op_docs.py - writes the table of docs/operators.md, below what was written by hand.

    op_docs.py            fails if the table is not what it would write (make lint runs this)
    op_docs.py --update   writes it

It has a line for each row of include/cfx/ops.def; what was compared with PyTorch comes from
tests/golden/operator_results.json, which tests/python/test_operators.py writes with CFX_FULL=1 (all
samples) or CFX_NOTE=1 (a few of each dtype). It needs nothing but these files.
"""
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/operators.md"
RESULTS = ROOT / "tests/golden/operator_results.json"
STRING = r'((?:"[^"]*"\s*)+)'
FORM = r"^CFX_(OPERATOR|BY_RULE|IN_PLACE|HOST_ONLY)"
ROW = re.compile(rf"{FORM}\((\w+),\s*{STRING},\s*{STRING}", re.M)
FAMILY = re.compile(r"^/\* ---- (.*?)(?:[.:] |\.?\s*\*/|\.?$)", re.M)
COMPUTES = {"OPERATOR": "kernel", "BY_RULE": "rule", "IN_PLACE": "in place", "HOST_ONLY": ""}
MARK = "<!-- below: tools/op_docs.py -->\n"

# Kinds of dtypes, each called by one name if all of its kind agreed.
KINDS = (
    ("integers", ("int16", "int32", "int64", "int8", "uint8")),
    ("floats", ("bfloat16", "float16", "float32", "float64")),
    ("complex", ("complex128", "complex64")),
)

HEAD = """## All rows

The table has {rows} operators under {names} names. cfx computes {computed} of them: {kernels} with
a kernel, {rules} with their rule alone (views, sizes, numbers), and {in_place} in place with the
row without the `_`. Only the host language can call the others.

The results of {compared} rows were compared with PyTorch's on {samples} of PyTorch's own sample
inputs, and all agreed. The columns show the dtypes and the number of samples, in place and out of
place. A row without a number was not part of the recorded run, or is tested in another way: by
cfx's own calls (`tests/python/operator_extra.py`), or together with the row it belongs to.

"""


def joined(literals):
    return "".join(re.findall(r'"([^"]*)"', literals))


def families():
    """[(title, [(form, id, schema, spellings)])] in the order of the table."""
    text = (ROOT / "include/cfx/ops.def").read_text()
    found = [(m.start(), m) for regex in (FAMILY, ROW) for m in regex.finditer(text)]
    result = []
    for _, m in sorted(found, key=lambda item: item[0]):
        if m.re is FAMILY:
            result.append((m[1], []))
        else:
            result[-1][1].append((m[1], m[2], joined(m[3]), joined(m[4]).split()))
    return [family for family in result if family[1]]


def dtypes_of(counts):
    """'bool integers floats': what agreed, in short."""
    left = {dtype for dtype, n in counts.items() if n}
    words = ["bool"] if "bool" in left else []
    for name, kind in KINDS:
        some = [dtype for dtype in kind if dtype in left]
        words += [name] if len(some) == len(kind) else some
    return " ".join(words)


def line(row, who, results):
    _, name, schema, spellings = row
    counts = results.get(name, {})
    samples = f"{sum(counts.values()):,}" if counts else ""
    return (f"| `{name}` | `{schema}` | {who[name]} | {dtypes_of(counts)} | {samples} | "
            f"{len(spellings)} |\n").replace("|  |", "| |").replace("|  |", "| |")


def computed(groups):
    """{id: who computes it}. A row in place is computed if the one without the '_' is."""
    forms = {row[1]: row[0] for _, group in groups for row in group}
    own = {name: COMPUTES[form] for name, form in forms.items()}
    return {name: own[name] if form != "IN_PLACE" or own.get(name[:-1]) else ""
            for name, form in forms.items()}


def table():
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    groups = families()
    rows = [row for _, group in groups for row in group]
    who = computed(groups)
    count = {form: list(who.values()).count(word) for form, word in COMPUTES.items()}
    compared = [r for r in results.values() if sum(r.values())]
    out = [HEAD.format(
        rows=len(rows), names=f"{sum(len(row[3]) for row in rows):,}",
        computed=len(rows) - count["HOST_ONLY"], kernels=count["OPERATOR"],
        rules=count["BY_RULE"], in_place=count["IN_PLACE"], compared=len(compared),
        samples=f"{sum(sum(r.values()) for r in compared):,}")]
    for title, group in groups:
        out.append(f"### {title}\n\n| row | schema | computed by | dtypes | samples | names |\n"
                   "|---|---|---|---|---|---|\n")
        out += [line(row, who, results) for row in group]
        out.append("\n")
    return "".join(out).rstrip("\n") + "\n"


def main():
    have = PAGE.read_text()
    want = have.partition(MARK)[0] + MARK + table()
    if "--update" in sys.argv:
        PAGE.write_text(want)
    elif have != want:
        print("docs/operators.md is out of date: run tools/op_docs.py --update")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
