"""The README: what its example prints, its numbers, lists and links, against the code and docs."""
import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
README = (ROOT / "README.md").read_text()
BENCHMARKS = (ROOT / "docs/benchmarks.md").read_text()


def block(language):
    """The first block of this language, and the output that is shown behind it."""
    m = re.search(rf"^```{language}\n(.*?)^```\n\n```text\n(.*?)^```$", README, re.M | re.S)
    return m[1], m[2]


def test_the_python_example_prints_what_it_shows(tmp_path):
    pytest.importorskip("torch")
    source, output = block("python")
    (tmp_path / "net.py").write_text(source)  # script reads the source of the class
    done = subprocess.run([sys.executable, tmp_path / "net.py"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})  # fmt: skip
    assert (done.stdout, done.returncode) == (output, 0), done.stderr


def test_the_c_example_prints_what_it_shows(tmp_path):
    source, output = block("c")
    (tmp_path / "net.c").write_text(source)
    flags = (BUILD / "flags.stamp").read_text().split()
    subprocess.run([*flags, "-I", BUILD / "include", "-I", ROOT / "include", tmp_path / "net.c",
                    BUILD / "libcfx.a", "-lm", "-pthread", "-o", tmp_path / "net"], check=True)
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    done = subprocess.run([tmp_path / "net"], capture_output=True, text=True, check=True, env=env)
    assert done.stdout == output


def table(text, head):
    """The rows of the table whose first line this is, as lists of cells."""
    rows = text.split(head, 1)[1].split("\n\n", 1)[0].strip().split("\n")[1:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


MEASURED = {  # a piece of the row's first cell: lines of docs/benchmarks.md, and the ratios there
    "Tracer().trace": [r"^\| `Tracer\(\)\.trace` \|.*"],
    "symbolic_trace": [r"^\| `symbolic_trace` \|.*"],
    "build a graph": [r"^\| build through `Graph\.call_function` \|.*"],
    "Python source": [r"^\| `python_code` \|.*"],
    "copy.deepcopy": [r"^\| `copy\.deepcopy` \|.*"],
    "load a file": [r"`cfx\.load` is ([\d.]+x).*?a C program"],
    "211 programs": [r"cfx\.script` takes .*?: ([\d.]+x) faster in total"],
    "17 models": [r"^\| 2 threads, batch 1 \|.*", r"^\| ViT-B/16 \| [\d.]+x OpenVINO.*"],
    "quantized models": [r"^- over the better peer: .*"],
    "cfx.capture": [r"^\| 32 x 32: .*", r"^\| 48 features: .*", r"^\| 2 layers: BERT.*",
                    r"^\| 2 layers: GPT-2.*"],
    "the same models": [r"^\| 32 x 32: .*", r"^\| 48 features: .*", r"^\| 2 layers: BERT.*",
                       r"^\| 2 layers: GPT-2.*"],
}  # fmt: skip


@pytest.mark.parametrize("row", table(README, "| work | compared with | ratio |"),
                         ids=lambda row: row[0][:30])
def test_ratios_are_those_of_the_benchmarks(row):
    if "replace_pattern" in row[0]:
        slow, fast = map(float, re.search(r"(\d+) s, ([\d.]+) s", row[0]).groups())
        assert f"| {slow:g} |" in BENCHMARKS and f"| {fast:g} |" in BENCHMARKS
        assert float(row[2].rstrip("x").replace(",", "")) == pytest.approx(slow / fast, rel=0.02)
        return
    patterns = next(v for k, v in MEASURED.items() if k in row[0])
    there = []
    for pattern in patterns:
        line = re.search(pattern, BENCHMARKS, re.M | re.S if "(" in pattern[3:] else re.M)
        there += re.findall(r"[\d.]+x", line[0].split("| 15x")[0])
    for ratio in row[2].split(", "):
        assert ratio in there, (ratio, there)


def test_counts():
    """Operators, captured programs, verbs that are named."""
    rows = len(re.findall(r"^CFX_(?:OPERATOR|BY_RULE|IN_PLACE|HOST_ONLY)\(",
                          next(ROOT.glob("include/cfx/**/ops.def")).read_text(), re.M))
    assert f"{rows} rows" in README
    captured = re.search(r"Of (\d+) programs .*?captures (\d+), torch\.jit\.script (\d+), "
                         r"torch\.export (\d+) and\ntorch\.fx (\d+)", README)
    shown = (ROOT / "docs/capture.md").read_text()
    for number in captured.groups():
        assert number in shown


def test_python_versions():
    """What is required, tested and promised is the same."""
    wanted = re.search(r'requires-python = ">=(3\.\d+),<3\.(\d+)"',
                       (ROOT / "pyproject.toml").read_text())  # fmt: skip
    last = f"3.{int(wanted[2]) - 1}"
    assert re.search(rf"^\| Python \| {wanted[1]} to {re.escape(last)}\b", README, re.M)
    tested = re.search(r"^VERSIONS = (.*)$", (ROOT / "tests/pythons.py").read_text(), re.M)[1]
    assert (ast.literal_eval(tested)[0], ast.literal_eval(tested)[-1]) == (wanted[1], last)


def test_the_tree_has_every_room():
    shown = set(re.findall(r"^src/([\w/]+)/ ", README, re.M))
    tree = ast.parse((ROOT / "tools/layers.py").read_text())
    rooms = next(n.value for n in tree.body if isinstance(n, ast.Assign)
                 and n.targets[0].id == "ROOMS")  # fmt: skip
    names = {k.value.split("/")[0] for k in rooms.keys if isinstance(k, ast.Constant)}
    assert shown == names
    for name in re.findall(r"^([a-z]+/[\w/]*) ", README, re.M):
        assert (ROOT / name).is_dir(), name


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{p.name}" for p in
                                                 sorted((ROOT / "docs").glob("*.md")))])
def test_links(page):
    """Every link leads to a file, and every anchor to a heading."""
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", (ROOT / page).read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}
            assert anchor in slugs, target


def test_every_page_is_reached():
    reached = set(re.findall(r"\]\(docs/([\w-]+\.md)", README))
    assert reached == {p.name for p in (ROOT / "docs").glob("*.md")}
