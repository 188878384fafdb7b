#!/usr/bin/env python3
"""pipeline_svg.py - draws docs/pipeline.svg, the picture at the top of the README.

    pipeline_svg.py            fails if the picture is not what it would draw (make lint runs this)
    pipeline_svg.py --update   draws it
"""
import sys
from html import escape
from pathlib import Path

PICTURE = Path(__file__).resolve().parent.parent / "docs/pipeline.svg"
SOURCES = [
    ("PyTorch module", "symbolic_trace, Tracer"),
    ("Python source", "cfx.script, cfx script"),
    ("C program", "cfx_trace, cfx trace"),
    ("IR text, torch.fx graph", "cfx.parse, cfx.interop"),
]
RESULTS = [
    ("Python source", "GraphModule, cfx code"),
    ("C source", "cfx_codegen_c, cfx code --c"),
    ("IR text and weights", "cfx.text, cfx_module_write"),
    ("the C runtime", "cfx.lower, cfx run"),
    ("pictures", "table, Graphviz, Mermaid, JSON"),
]
WIDTH, BOX, HEIGHT, GAP = 900, 230, 52, 14
INK, SOFT, FILL, CORE = "#1f2937", "#6b7280", "#f3f4f6", "#dbeafe"


def column_top(count, total):
    return (total - count * HEIGHT - (count - 1) * GAP) / 2


def box(x, y, width, height, fill):
    return (f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{fill}" '
            f'stroke="{INK}"/>')


def words(x, y, text, size, colour, weight="normal"):
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}" font-weight="{weight}" '
            f'text-anchor="middle">{escape(text)}</text>')


def arrow(x1, y1, x2, y2):
    middle = (x1 + x2) / 2
    return (f'<path d="M{x1:g} {y1:g} C{middle:g} {y1:g} {middle:g} {y2:g} {x2 - 7:g} {y2:g}" '
            f'fill="none" stroke="{SOFT}" marker-end="url(#tip)"/>')


def labelled(x, y, title, detail):
    centre = x + BOX / 2
    return [box(x, y, BOX, HEIGHT, FILL), words(centre, y + 22, title, 15, INK, "bold"),
            words(centre, y + 41, detail, 12, SOFT)]


def core(x, y, width, height):
    centre = x + width / 2
    lines = [("graph", 20, INK, "bold"), ("six opcodes,", 13, INK, "normal"),
             ("control flow as regions", 13, INK, "normal"),
             ("passes, matcher,", 13, SOFT, "normal"), ("splitting, checks", 13, SOFT, "normal"),
             ("cfx opt", 13, SOFT, "normal")]
    parts = [box(x, y, width, height, CORE)]
    for i, (text, size, colour, weight) in enumerate(lines):
        below = y + 38 + 24 * i + (12 if i > 2 else 0)
        parts.append(words(centre, below, text, size, colour, weight))
    return parts


def draw():
    total = max(len(SOURCES), len(RESULTS)) * (HEIGHT + GAP) + 20
    middle, middle_width, middle_height = 345, 210, 190
    top = (total - middle_height) / 2
    parts = core(middle, top, middle_width, middle_height)
    for names, left in ((SOURCES, True), (RESULTS, False)):
        first = column_top(len(names), total)
        for i, (title, detail) in enumerate(names):
            x, y = (20 if left else WIDTH - BOX - 20), first + i * (HEIGHT + GAP)
            port = top + middle_height * (i + 1) / (len(names) + 1)
            parts += labelled(x, y, title, detail)
            parts.append(arrow(x + BOX, y + HEIGHT / 2, middle, port) if left else
                         arrow(middle + middle_width, port, x, y + HEIGHT / 2))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total:g}" '
        f'font-family="system-ui, sans-serif" role="img" aria-label="The pipeline of cfx">',
        f'<rect width="{WIDTH}" height="{total:g}" fill="#ffffff"/>',
        f'<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{SOFT}"/></marker>',
        *parts, "</svg>"]) + "\n"


def main():
    text = draw()
    if PICTURE.exists() and PICTURE.read_text() == text:
        print("pipeline: the picture is up to date")
        return 0
    if "--update" in sys.argv[1:]:
        PICTURE.write_text(text)
        return 0
    print("docs/pipeline.svg is out of date: python3 tools/pipeline_svg.py --update")
    return 1


sys.exit(main())
