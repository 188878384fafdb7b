"""Random eager models (random_layers.py), lowered and compiled: results, what is written to inputs,
results of earlier calls and the strides of results are as in PyTorch. CFX_FULL=1 tries twenty times
as many; `python tests/python/test_compile_random.py FAMILY FROM TO` any.
"""
import os
import sys

import pytest

torch = pytest.importorskip("torch")

import cfx  # noqa: E402
import random_layers  # noqa: E402

SEEDS = range(500 if os.environ.get("CFX_FULL") == "1" else 25)
ISAS = ["avx512", "avx2", "plain"]


def strides(t):
    """Those that elements tell."""
    return [s for s, n in zip(t.stride(), t.shape) if n > 1]


def compare(got, want, what):
    assert len(got) == len(want), what
    for i, (one, other) in enumerate(zip(got, want)):
        name = f"{what} {i}"
        largest = float(other.abs().max())
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4 * max(1, largest),
                                   msg=lambda text, name=name: f"{name}: {text}")


@torch.no_grad()
def check(seed, family):
    model = random_layers.make(seed, family)
    written = model.inputs()
    want = model.module(*written)
    captured = cfx.capture(model.module, *model.inputs())
    fast = cfx.compile(captured, runtime=cfx.Runtime(threads=1 + seed % 2, isa=ISAS[seed % 3]))
    kept = []
    for name, program in ("lowered", cfx.lower(captured)), ("compiled", fast), ("again", fast):
        inputs = model.inputs()
        kept.append((name, program(*inputs), inputs))
    for name, results, inputs in kept:
        compare(results, want, f"{name}: result")
        compare(inputs, written, f"{name}: input")
        assert [*map(strides, results)] == [*map(strides, want)], f"{name}: strides"


def show(seed, family):
    return f"family {family}, seed {seed}:\n{random_layers.make(seed, family).source}"


@pytest.mark.parametrize("family", random_layers.FAMILIES)
def test_random_models(family):
    for seed in SEEDS:
        try:
            check(seed, family)
        except Exception as error:
            pytest.fail(f"{show(seed, family)}{type(error).__name__}: {error}")


if __name__ == "__main__":
    for number in range(int(sys.argv[2]), int(sys.argv[3])):
        try:
            check(number, sys.argv[1])
        except Exception as error:
            print(f"{show(number, sys.argv[1])}{type(error).__name__}: {error}\n", flush=True)
