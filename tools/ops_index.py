#!/usr/bin/env python3
"""ops_index.py - writes src/ops/ops_index.inc: the spellings of include/cfx/ops.def, sorted.

With --check it only says whether that file is up to date, and whether every spelling is in one row.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE, INDEX = ROOT / "include/cfx/ops.def", ROOT / "src/ops/ops_index.inc"
STRING = r'(?:"[^"]*"\s*)+'
FORMS = "OPERATOR|BY_RULE|IN_PLACE|HOST_ONLY"
ROW = re.compile(rf"^CFX_(?:{FORMS})\((\w+),\s*({STRING}),\s*({STRING}),", re.M)
TITLE = ("/* ops_index.inc - made by tools/ops_index.py: row and offset of each name of ops.def,"
         " sorted. */")
ID = 0xFFFF  # the offset that stands for the row's id


def joined(literals):
    return "".join(re.findall(r'"([^"]*)"', literals))


def entries():
    """(name, row, offset in the row's spellings); parameters in parentheses are not in the name."""
    for row, m in enumerate(ROW.finditer(TABLE.read_text()), 1):
        yield m[1], row, ID
        for word in re.finditer(r"\S+", joined(m[3])):
            yield word[0].partition("(")[0], row, word.start()


def render(rows):
    lines, line = [], "   "
    for _, row, offset in rows:
        item = f" {{{row}, {offset}}},"
        if len(line) + len(item) > 100:
            lines.append(line)
            line = "   "
        line += item
    return "\n".join([TITLE, *lines, line, ""])


def main():
    rows = sorted(entries(), key=lambda e: e[0].encode())
    twice = [a[0] for a, b in zip(rows, rows[1:]) if a[0] == b[0]]
    for name in twice:
        print(f"include/cfx/ops.def: '{name}' stands in two places; it must have one meaning")
    text, old = render(rows), INDEX.read_text() if INDEX.exists() else ""
    if "--check" not in sys.argv:
        INDEX.write_text(text)
    elif text != old:
        print("src/ops/ops_index.inc is not that of include/cfx/ops.def: run tools/ops_index.py")
        return 1
    print(f"ops: {rows and max(r[1] for r in rows)} operators, {len(rows)} names")
    return bool(twice)


sys.exit(main())
