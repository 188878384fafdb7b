"""The programs in examples/ run, and print what docs/examples.md shows, up to timings."""
import re
import runpy
from pathlib import Path

import pytest

import cfx

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/examples.md").read_text()
SECTION = re.compile(r"^## \[(\w+)\.py\].*?^```text\n(.*?)^```$", re.M | re.S)
SHOWN = dict(SECTION.findall(PAGE))
PROGRAMS = sorted(p.stem for p in (ROOT / "examples").glob("*.py"))
TIMING = re.compile(r" *\d+\.\d+ ms| *\d+%")
NEEDS = {"replace_pattern": "replace_pattern"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_example(name, capsys):
    if name != "edit_graph":
        pytest.importorskip("torch")
    if not hasattr(cfx, NEEDS.get(name, "Graph")):
        pytest.skip(f"cfx has no {NEEDS[name]}")
    runpy.run_path(str(ROOT / f"examples/{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    if name in SHOWN:
        assert TIMING.sub("#", printed) == TIMING.sub("#", SHOWN[name])


def test_every_example_is_on_the_page_and_short():
    assert set(SHOWN) | {"edit_graph"} == set(PROGRAMS)
    for name in SHOWN:
        assert len((ROOT / f"examples/{name}.py").read_text().splitlines()) < 80
