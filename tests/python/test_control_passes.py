"""Every pass, and passes one after the other, on random programs with branches and loops
(random_control.py), run by torch as the Python code that is generated of them: the verifier is
content, and they compute and write what they did. CFX_FULL=1 tries 500 programs instead of 40.
"""
import copy
import os
import random

import cfx
import cfx.passes
import pytest

torch = pytest.importorskip("torch")

import random_control

SEEDS = range(500 if os.environ.get("CFX_FULL") == "1" else 40)
LEFT_OUT = {"lower",           # gives what cfx computes, not torch
            "unlift_params",   # has options
            "legalize_names", "annotate", "toposort"}  # find nothing here, and cost time
PASSES = [row.name for row in cfx.passes.table() if row.name not in LEFT_OUT]


def module(seed):
    return cfx.GraphModule(torch.nn.Module(), cfx.parse(random_control.text(seed)))


def inputs(seed):
    rng = random.Random(seed)
    tensors = [torch.tensor([[rng.randrange(8) / 4 - 1 for _ in range(3)] for _ in range(2)])
               for _ in range(2)]
    return [*tensors, rng.randrange(5), rng.random() < 0.5]


@torch.no_grad()
def outcome(gm, seed):
    args = inputs(seed)
    return gm(*args), args


def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a.nan_to_num(), b.nan_to_num())
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def check(seed, expected, names):
    gm = module(seed)
    for name in names:
        cfx.passes.run(gm, name)
        assert gm.graph.verify() == [], name
    gm.recompile()
    assert same(outcome(gm, seed), expected), (seed, names)


@pytest.mark.parametrize("part", range(4))
def test_passes(part):
    for seed in SEEDS[part::4]:
        rng = random.Random(seed)
        expected = outcome(module(seed), seed)
        for name in PASSES:
            check(seed, expected, [name])
        for _ in range(6):
            check(seed, expected, rng.choices(PASSES, k=3))


def test_programs_are_what_they_should_be():
    """They branch, loop and write."""
    texts = [random_control.text(seed) for seed in SEEDS]
    assert sum("cfx.cond" in t for t in texts) > len(texts) / 3
    assert sum("cfx.while_loop" in t for t in texts) > len(texts) / 5
    assert sum("cfx.for_loop" in t for t in texts) > len(texts) / 5
    assert sum("_](" in t.replace("not_](", "") for t in texts) > len(texts) / 5
