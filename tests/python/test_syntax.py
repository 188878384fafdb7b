"""Python source parsed in C (src/script/syntax), against Python's own `ast`: the trees are the
same, places included, and what one refuses the other refuses in the same line.

The files of the standard library and of torch are parsed by both; a part of them, another each day,
unless CFX_FULL=1. Not compared:
  - places inside f-strings before Python 3.13: 3.11 gives those of the whole string, 3.12 has empty
    constants in formats. What cfx gives is 3.13's: syntax_newer.py has examples;
  - what cfx says it does not know (NotImplementedError): \\N{...}, encodings but UTF-8 and Latin-1;
  - names that Python normalises (NFKC);
  - how characters newer than Unicode 14 (Python 3.11) are printed: cfx has one table for all;
  - the syntax that Python 3.14 added: t"..." and `except A, B:`;
  - files that this Python is too old for.
"""
import ast
import datetime
import importlib.util
import os
import random
import re
import sys
import unicodedata
import warnings
from pathlib import Path

import pytest

from cfx import _core
from syntax_cases import EXPRESSIONS, STATEMENTS
from syntax_newer import NEWER
from syntax_wrong import WRONG

PLACES = ("lineno", "col_offset", "end_lineno", "end_col_offset")
JOINED = sys.version_info >= (3, 13)
GRAMMAR = min(sys.version_info[:2], (3, 13))  # what cfx knows
FULL = os.environ.get("CFX_FULL") == "1"
A_DAY = 300  # files


def without_places(tree):
    """Takes the places from all nodes inside f-strings."""
    inside = [child for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
              for child in ast.walk(node) if child is not node]
    for node in inside:
        for name in PLACES:
            node.__dict__.pop(name, None)
        if isinstance(node, ast.JoinedStr):
            node.values = [v for v in node.values if getattr(v, "value", None) != ""]
    return tree


def by_python(source):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source, feature_version=GRAMMAR)
    return ast.dump(tree if JOINED else without_places(tree), include_attributes=True)


def by_cfx(source):
    return _core._syntax_dump(source, joined_positions=JOINED)


def first_difference(want, got):
    at = next((i for i, (a, b) in enumerate(zip(want, got)) if a != b), min(len(want), len(got)))
    return f"\nwant ...{want[max(0, at - 80):at + 80]}\ngot  ...{got[max(0, at - 80):at + 80]}"


# ---- constructs ---------------------------------------------------------------------------------

def parses(source):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(source)
        except SyntaxError:
            return False
    return True


def expression_sources():
    """One for each line, but for strings and brackets that go on in the next."""
    lines = EXPRESSIONS.strip("\n").split("\n")
    while lines:
        source = lines.pop(0)
        while not parses(source):
            source += "\n" + lines.pop(0)
        yield source


@pytest.mark.parametrize("source", list(expression_sources()))
def test_expressions(source):
    for text in (source, f"x = {source}" if not source.startswith("*") else source,
                 f"if a:\n  é, ({source})\n  b" if not source.startswith("*") else source):
        want, got = by_python(text), by_cfx(text.encode("utf-8", "surrogatepass"))
        assert want == got, first_difference(want, got)


@pytest.mark.parametrize("source", STATEMENTS.strip("\n").split("\n---\n"))
def test_statements(source):
    nested = "def f():\n    if a:\n" + "\n".join("      " + line for line in source.split("\n"))
    for text in (source, source + "\n", source.replace("\n", "\r\n"), source.replace("\n", "\r"),
                 "\n\n" + source + "\n\n# end"):
        want, got = by_python(text), by_cfx(text.encode())
        assert want == got, first_difference(want, got)
    if "\t" not in source and "\x0c" not in source:
        want, got = by_python(nested), by_cfx(nested.encode())
        assert want == got, first_difference(want, got)


@pytest.mark.parametrize("source,want", NEWER)
def test_newer(source, want):
    """What this Python may be too old for, as Python 3.13 shows it."""
    for short, name in (("EL=", "end_lineno="), ("EC=", "end_col_offset="), (" L=", " lineno="),
                        ("(L=", "(lineno="), (" C=", " col_offset=")):
        want = want.replace(short, name)
    got = _core._syntax_dump(source.encode(), python=13)
    assert want == got, first_difference(want, got)


@pytest.mark.parametrize("source", [
    b"", b"\n", b"#", b"   ", b"  # a\n\t", b"\xef\xbb\xbfa = 1", b"\xef\xbb\xbf# coding: utf-8\na",
    b"# coding: latin-1\nx = '\xe9' + y", b"a",
    b"#\n# vim: set fileencoding=ascii :\na", b"a\n# coding: unknown\n", b"\x0ca", b"a;\x0cb",
    b"if a:\n  b\n ", b"if a:\n  b\n#c", b"a # \xc3\xa9",
])
def test_bytes(source):
    want, got = by_python(source), by_cfx(source)
    assert want == got, first_difference(want, got)


# ---- damaged sources ----------------------------------------------------------------------------

WORDS = re.compile(r"\w+|.", re.S)
FORMATTED = re.compile(r"[fF][rR]?['\"]|[rR][fF]['\"]")
NEW_HERE = re.compile(r"\btype\b|\bdef \w+\[|\bclass \w+\[")


def damaged(random, sources, words):
    """A source with a few words left out, put in, or exchanged."""
    source = WORDS.findall(random.choice(sources))
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        at = random.randrange(len(source) + 1)
        what = random.choice(("leave out", "put in", "replace"))
        source[at:at + (what != "put in")] = [] if what == "leave out" else [random.choice(words)]
    return "".join(source)


def result(parse, source):
    try:
        return parse(source.encode())
    except SyntaxError:
        return "refused"


@pytest.mark.parametrize("seed", range(20 if FULL else 4))
def test_damaged(seed):
    """Both take it, and give the same tree, or both refuse it. (The line may differ: where there
    are several mistakes, Python may look for those of the lexer first.)"""
    sources = EXPRESSIONS.strip("\n").split("\n") + STATEMENTS.strip("\n").split("\n---\n") + WRONG
    words = [word for source in sources for word in WORDS.findall(source)]
    chance = random.Random(seed)
    for _ in range(1_000):
        source = damaged(chance, sources, words)
        if not JOINED and (FORMATTED.search(source) or NEW_HERE.search(source)):
            continue
        want, got = result(by_python, source), result(by_cfx, source)
        assert want == got, f"{source!r}{first_difference(want, got)}"


# ---- what is wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("source", WRONG)
def test_wrong(source):
    with pytest.raises(SyntaxError) as theirs, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ast.parse(source + "\n")
    with pytest.raises(SyntaxError) as ours:
        by_cfx((source + "\n").encode())
    assert ours.value.lineno == theirs.value.lineno
    lines = ours.value.args[0].split("\n")
    assert lines[0].startswith(f"line {ours.value.lineno}, column {ours.value.offset}: ")
    assert len(lines) == 3 and lines[2].strip() == "^"


@pytest.mark.parametrize("source,message", [
    ("if x\n  y", "line 1, column 5: expected ':', found the end of the line\n  if x\n      ^"),
    ("x = (1,\ny = 2", "line 1, column 5: '(' was never closed\n  x = (1,\n      ^"),
    ("if x:\n    a\n  b", "line 3, column 3: unindent does not match any outer indentation level\n"
     "    b\n    ^"),
    ("f(x) = 1", "line 1, column 1: cannot assign to function call here; maybe you meant '==' "
     "instead of '='?\n  f(x) = 1\n  ^"),
    ("print 'a'", "line 1, column 1: missing parentheses in call to 'print': write print(...)\n"
     "  print 'a'\n  ^"),
    ("x = “a”", "line 1, column 5: invalid character '“' (U+201C)\n  x = “a”\n      ^"),
    ("else: x", "line 1, column 1: 'else' does not belong to any statement here; check the "
     "indentation\n"
     "  else: x\n  ^"),
    ("x = [1 2]", "line 1, column 8: expected ']' or ',', found '2'\n  x = [1 2]\n         ^"),
])
def test_messages(source, message):
    with pytest.raises(SyntaxError) as found:
        by_cfx(source.encode())
    assert found.value.args[0] == message


@pytest.mark.parametrize("source,error", [
    (b"x = '\\N{DIGIT ONE}'", NotImplementedError),
    (b"# coding: koi8-r\n", NotImplementedError),
    (b"a\0b", SyntaxError),
    (b"\xff", SyntaxError),
    (b"x = '\xed\xa0'", SyntaxError),
    (b"9" * 5000, SyntaxError),
])
def test_refused(source, error):
    with pytest.raises(error):
        by_cfx(source)


BLOCKS = "".join(" " * i + "if x:\n" for i in range(10_000))
DEEP = {
    "brackets": "(" * 10_000 + ")" * 10_000, "plus": "1" + "+1" * 100_000, "blocks": BLOCKS,
    "minus": "-" * 100_000 + "1", "not": "not " * 100_000 + "1", "power": "2**" * 100_000 + "1",
    "lambda": "lambda: " * 10_000 + "1", "else": "1 if 1 else " * 10_000 + "1",
    "attributes": "a" + ".a" * 100_000, "calls": "a" + "()" * 100_000, "subscripts": "a[" * 10_000,
    "elif": "if x: pass\n" + "elif x: pass\n" * 10_000, "f-strings": "f'{" * 10_000,
    "formats": "f'{a:" + "{a:" * 10_000, "stars": "[*" * 10_000, "walrus": "(a:=" * 10_000,
    "patterns": "match x:\n case " + "[" * 10_000, "pattern attributes":
    "match x:\n case a" + ".a" * 10_000 + ": pass",
    "chains in brackets": "(" * 200 + "1" + ("+1" * 100 + ")") * 200,
}


@pytest.mark.parametrize("source", DEEP.values(), ids=DEEP.keys())
def test_too_deep(source):
    with pytest.raises((SyntaxError, RecursionError)) as found:
        by_cfx(source.encode())
    assert "too deep" in str(found.value) or "too many" in str(found.value)


@pytest.mark.parametrize("source", [
    "(" * 199 + "1" + ")" * 199, "".join(" " * i + "if x:\n" for i in range(99)) + " " * 99 + "y",
    "1" + "+1" * 900, "a" + "<a" * 10_000, "a" + " and a" * 10_000, "'a'" * 10_000, "a," * 10_000,
    "-" * 200 + "1", "if x: pass\n" + "elif x: pass\n" * 200,
])
def test_deep_enough(source):
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        assert by_python(source) == by_cfx(source.encode())
    finally:
        sys.setrecursionlimit(limit)


# ---- files --------------------------------------------------------------------------------------


def all_files():
    library = Path(os.__file__).parent
    files = [f for f in library.rglob("*.py") if "site-packages" not in f.parts]
    torch = importlib.util.find_spec("torch")
    if torch and torch.origin:
        files += Path(torch.origin).parent.rglob("*.py")
    return sorted(files)


def escaped(text):
    """A dump where each character beyond ASCII is written as repr escapes it."""
    return text.encode("ascii", "backslashreplace")


def compare(file):
    """"same", or why not. A difference tells its place in the trees, and no text of the file."""
    source = file.read_bytes()
    try:
        got = by_cfx(source)
    except NotImplementedError:
        return "unsupported"
    except SyntaxError as error:
        got = error.lineno
    try:
        want = by_python(source)
    except SyntaxError:
        return "same" if isinstance(got, int) else "too new for this Python"
    except (ValueError, RecursionError):
        return "not for ast.dump"
    if want == got:
        return "same"
    if isinstance(got, int):
        return f"DIFFERENT: refused in line {got}"
    if unicodedata.normalize("NFKC", want) == unicodedata.normalize("NFKC", got):
        return "names to be normalised"
    if unicodedata.unidata_version > "14" and escaped(want) == escaped(got):
        return "newer characters"
    at = next(i for i, (a, b) in enumerate(zip(want, got)) if a != b)
    return f"DIFFERENT: after {want[:at].count('lineno=') // 2} nodes"


def test_files(record_property):
    files = all_files()
    if not FULL:
        parts = max(1, len(files) // A_DAY)
        files = files[datetime.date.today().toordinal() % parts::parts]
    found = {file: compare(file) for file in files}
    same = sum(result == "same" for result in found.values())
    others = sorted({result for result in found.values() if result != "same"})
    record_property("share", f"syntax: {same} of {len(found)} files the same "
                    f"({same / len(found):.2%})"
                    + "".join(f"; {list(found.values()).count(o)} {o}" for o in others))
    assert not {f.name: r for f, r in found.items() if r.startswith("DIFFERENT")}
    # Of a few files, a few may be of those that are not compared.
    assert same / len(found) >= (0.99 if len(found) > 3_000 else 0.96)
