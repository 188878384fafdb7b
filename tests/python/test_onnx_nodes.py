"""The tests of the ONNX standard itself, run by cfx in C: all of them, against the list of those
that are known to fail (tests/golden/onnx_nodes.txt), in both directions."""
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

onnx_nodes = pytest.importorskip("onnx_nodes")
pytest.importorskip("onnx")


@pytest.mark.timeout(300)
def test_every_case_does_what_the_list_says():
    """A case that fails and is not listed, or passes and is, is an error: the list is exact."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = [case for case in onnx_nodes.load_cases() if case.aside() is None]
        failing = {case.name: why for case in cases if (why := onnx_nodes.run_cfx(case))}
    known = onnx_nodes.known_failures()
    assert len(cases) > 1900
    assert {name: why for name, why in failing.items() if name not in known} == {}
    assert sorted(known - failing.keys()) == []


@pytest.mark.parametrize("kind", ["sequence", "optional"])
def test_cases_that_are_not_counted(kind):
    """Those with sequences or optionals among their inputs or results pass, but for one: whether an
    optional has a value is decided when the file is read, and an input is taken to have one."""
    cases = [case for case in onnx_nodes.load_cases() if case.aside() == kind]
    failing = {case.name: why for case in cases if (why := onnx_nodes.run_cfx(case))}
    assert len(cases) > 5
    assert failing == ({"test_optional_has_element_empty_optional_input": "another result"}
                       if kind == "optional" else {})


def test_most_cases_pass():
    """The list cannot grow unnoticed."""
    assert len(onnx_nodes.known_failures()) < 40
