"""Real architectures, captured, lowered and run in C: equal to eager, with no host target left.

Small forms of the models; CFX_FULL=1 takes the published sizes.
"""
import os
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import zoo  # noqa: E402

import cfx  # noqa: E402

SMALL = not os.environ.get("CFX_FULL")


def flat(result):
    return [t for item in result for t in flat(item)] if isinstance(result, tuple) else [result]


@pytest.fixture(scope="module", params=zoo.MODELS)
def model(request):
    return zoo.make(request.param, SMALL)


def test_equal_to_eager(model):
    module, inputs = model
    lowered = cfx.lower(zoo.trace(cfx, module))
    with torch.no_grad():
        want = flat(module(*inputs))
    got = flat(lowered.run(*inputs))
    assert len(got) == len(want)
    for w, g in zip(want, got):
        assert g.dtype == w.dtype and g.shape == w.shape
        error = (w - g).abs().max() / w.abs().max()
        assert error < 1e-4, f"differs by {error:.1e}"


def test_no_host_target_is_left(model):
    module, _ = model
    for node in cfx.lower(zoo.trace(cfx, module)).graph.nodes:
        assert node.op in ("placeholder", "get_attr", "call_function", "output")
        if node.op == "call_function":
            assert node.target.__module__ == "cfx.ops"


def test_twice_the_same(model):
    module, inputs = model
    lowered = cfx.lower(zoo.trace(cfx, module))
    first, second = flat(lowered.run(*inputs)), flat(lowered.run(*inputs))
    assert all(torch.equal(a, b) for a, b in zip(first, second))
