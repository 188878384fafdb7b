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


# ---- what is known of values ---------------------------------------------------------------------

RESULTS = """graph():
  %x = placeholder[target=x]()
  %s = call_method[target=sum](%x)
  %p = call_function[target=operator.gt](%s, 0)
  %two = call_function[target=operator.add](1, 1)
  %e = call_method[target=exp](%x)
  %loop = call_function[target=cfx.for_loop](TURNS, graph {
      %i = placeholder[target=i]()
      %acc = placeholder[target=acc]()
      %y = placeholder[target=y]()
      %k = placeholder[target=k]()
      %t = placeholder[target=t]()
      %exp = call_method[target=exp](%y)
      %add = call_function[target=operator.add](%acc, %exp)
      %mul = call_function[target=operator.mul](%add, %t)
      %reshape = call_method[target=reshape](%y, -1)
      output((%mul, %y, %reshape, %t))
    }, (%e, %x, %x, %two))
  %g = call_function[target=operator.getitem](%loop, 0)
  %c = call_function[target=cfx.cond](%p, graph {
      %a = placeholder[target=a]()
      %r = call_method[target=reshape](%a, -1)
      %neg = call_function[target=torch.neg](%a)
      output((%r, %neg))
    }, graph {
      %a = placeholder[target=a]()
      %r = call_method[target=reshape](%a, -1)
      %abs_1 = call_method[target=abs](%a)
      output((%r, %abs_1))
    }, (%g,))
  %h = call_function[target=operator.getitem](%c, 1)
  output(%h)
"""


def all_nodes(graph):
    for node in graph.nodes:
        yield node
        for argument in node.args:
            if isinstance(argument, cfx.Graph):
                yield from all_nodes(argument)


@pytest.mark.parametrize("name", ["dce", "hoist", "cse", "const_fold", "unroll"])
@pytest.mark.parametrize("turns", [2, 3])
def test_metadata_is_not_stale(name, turns):
    """What a pass leaves in `meta` is what shape propagation puts there afterwards: of a branch or
    loop that gives another tuple then, nothing."""
    from cfx.passes.shape_prop import ShapeProp

    text = RESULTS.replace("TURNS", str(turns))
    module = cfx.GraphModule(torch.nn.Module(), cfx.parse(text))
    ShapeProp(module).propagate(torch.ones(2, 3))
    assert all("tensor_meta" in n.meta for n in module.graph.nodes if n.name in ("loop", "c"))
    assert cfx.passes.run(module, name)
    kept = [(n, n.meta["tensor_meta"]) for n in all_nodes(module.graph) if "tensor_meta" in n.meta]
    ShapeProp(module).propagate(torch.ones(2, 3))
    assert len(kept) > 3
    assert [(n.name, m) for n, m in kept] == [(n.name, n.meta["tensor_meta"]) for n, _ in kept]
