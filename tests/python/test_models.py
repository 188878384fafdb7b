"""Real models, captured, lowered and run in C, give what PyTorch gives. Small forms of them; with
CFX_FULL=1 the published sizes."""
import os

import pytest

torch = pytest.importorskip("torch")

import sys  # noqa: E402
from pathlib import Path  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import cfx  # noqa: E402
import zoo  # noqa: E402

FULL = bool(os.environ.get("CFX_FULL"))


def tensors(value):
    """All tensors in nested containers, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    return [t for item in items for t in tensors(item)]


@pytest.mark.parametrize("name", zoo.MODELS)
def test_lowered_models_agree_with_eager(name):
    model, inputs = zoo.make(name, small=not FULL)
    module = zoo.trace(cfx, model)
    try:
        lowered = cfx.lower(module)
    except cfx.LowerError as error:
        missing = [f for f in error.findings if "kernel" in f.why or "has no '" in f.why]
        if len(missing) == len(error.findings):
            pytest.skip(f"{len(missing)} calls have no kernel yet: {missing[0].why}")
        raise
    targets = {n.target for n in lowered.graph.nodes if n.op.startswith("call")}
    assert all(str(t).startswith("cfx.ops.") for t in targets)
    with torch.no_grad():
        want = tensors(model(*inputs))
        got = tensors(lowered(*inputs))
    assert len(want) == len(got)
    for expected, actual in zip(want, got):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


def test_a_second_run_gives_the_same():
    model, inputs = zoo.make("resnet18", small=True)
    lowered = cfx.lower(zoo.trace(cfx, model))
    first, second = lowered(*inputs), lowered(*inputs)
    assert torch.equal(first, second)
