#!/usr/bin/env python3
"""printable.py - prints the table of characters that Python's repr escapes, for src/base/utf8.c.

    python3.11 tools/printable.py >src/base/printable.def

The code points at which str.isprintable() changes, from printable to not and back in turn; the
first is the start of a range that is not printable.
"""
import sys
import unicodedata

LIMIT = 0x110000
FIRST = 0x7f  # everything from the space to here is printable, and looked at first


def boundaries():
    shown = True
    for code in range(FIRST, LIMIT):
        if chr(code).isprintable() != shown:
            shown = not shown
            yield code


def main():
    version = unicodedata.unidata_version
    print(f"/* printable.def - made by tools/printable.py from Unicode {version}: where printable"
          " turns. */")
    line = ""
    for code in boundaries():
        item = f"{code:#x},"
        if len(line) + len(item) + 1 > 100:
            print(line)
            line = ""
        line += (" " if line else "") + item
    print(line)


sys.exit(main())
