"""Every pass on random modules with state and random numbers, in training and evaluation mode
(random_modules.make_live): results, inputs, buffers, counters and the random state afterwards are
what they were without the pass, over two runs. Passes alone, and in random orders of three.

Half of the modules hold classes and functions that cfx knows nothing about; the passes then run
with strict=True. A failure names its seed. CFX_FULL=1 tries 2,000 modules instead of 40.
"""
import copy
import os
import random

import cfx
import cfx.passes
import pytest

torch = pytest.importorskip("torch")
from torch.utils import _pytree as pytree

import random_modules
from cfx.experimental.const_fold import split_const_subgraphs
from cfx.passes.dialect.common.cse_pass import CSEPass

FULL = os.environ.get("CFX_FULL") == "1"
SEEDS = range(2000 if FULL else 40)
BATCHES = 20

# Passes that compute in another order, or with other weights: how far results may be apart.
CLOSE = {"fuse_bn": 1e-3, "merge_matmul": 1e-4}
# Changes what the module is, or promises nothing about effects: lower has kernels and random
# numbers of its own, toposort the order of the list alone, lift_params other inputs.
LEFT_OUT = {"lower", "toposort", "lift_params", "unlift_params"}
# May make something run that failed; see test_pass_properties.
MENDS = {"functionalize", "collapse_reshapes"}
OPTIONS = {row.name: row.options for row in cfx.passes.table()}


def run_table(name, gm, strict):
    cfx.passes.run(gm, name, **({"strict": True} if strict and "strict" in OPTIONS[name] else {}))
    return gm


def run_dead(gm, strict):
    """As torch.fx drops dead code, for modules without in-place calls."""
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm


def run_merge(gm, strict):
    return CSEPass()(gm).graph_module


def run_split(gm, strict):
    return split_const_subgraphs(gm, strict=strict)


EXTRA = {"eliminate_dead_code": run_dead, "CSEPass": run_merge, "split_const": run_split}
# Makes another kind of module; drops what reinplace writes in place.
ALONE = {"split_const", "eliminate_dead_code"}
LENIENT = {"eliminate_dead_code", "CSEPass"}  # trust what is unknown, as torch.fx does
NAMES = [name for name in OPTIONS if name not in LEFT_OUT] + list(EXTRA)


pytestmark = pytest.mark.usefixtures("one_thread")


def counters(gm):
    return {path: m.calls for path, m in gm.named_modules() if hasattr(m, "calls")}


@torch.no_grad()
def outcome(gm, inputs):
    """What two runs give and leave behind; or the error."""
    torch.manual_seed(0)
    results = []
    try:
        for _ in range(2):
            results.append(pytree.tree_map(lambda t: t.clone(), (gm(*inputs), inputs)))
    except Exception as e:
        return type(e).__name__
    state = {k: v.clone() for k, v in gm.state_dict().items()}
    return results, state, counters(gm), torch.get_rng_state()


def close(a, b, tolerance):
    a, b = pytree.tree_flatten(a), pytree.tree_flatten(b)
    assert a[1] == b[1]
    for x, y in zip(a[0], b[0]):
        torch.testing.assert_close(x, y, rtol=tolerance, atol=tolerance, equal_nan=True)


def compare(names, before, after):
    if isinstance(before, str) or isinstance(after, str):
        assert after == before or (isinstance(before, str) and MENDS & set(names)), (before, after)
        return
    tolerance = max(CLOSE.get(name, 0) for name in names)
    close(after[0], before[0], tolerance)
    if "fuse_bn" not in names:
        kept = before[1].keys() & after[1].keys()
        close({k: after[1][k] for k in kept}, {k: before[1][k] for k in kept}, tolerance)
    assert {k: before[2].get(k, v) for k, v in after[2].items()} == after[2]
    assert torch.equal(before[3], after[3]), "the random state differs"


class Case:
    """The modules of a seed, with what they do, each made once."""

    def __init__(self, seed):
        self.seed, self.made = seed, {}

    def get(self, writes, strict):
        if (writes, strict) not in self.made:
            gm, inputs = random_modules.make_live(self.seed, writes=writes, strict=strict)
            before = outcome(copy.deepcopy(gm), copy.deepcopy(inputs))
            self.made[writes, strict] = gm, inputs, before
        return self.made[writes, strict]

    def check(self, *names):
        strict = self.seed % 4 < 2 and not LENIENT & set(names)
        gm, inputs, before = self.get("eliminate_dead_code" not in names, strict)
        gm = copy.deepcopy(gm)
        try:
            for name in names:
                gm = EXTRA[name](gm, strict) if name in EXTRA else run_table(name, gm, strict)
                assert gm.graph.verify() == []
            compare(names, before, outcome(gm, copy.deepcopy(inputs)))
        except BaseException as e:
            e.add_note(f"passes {', '.join(names)}, seed {self.seed}, strict {strict}")
            raise


@pytest.mark.parametrize("batch", range(BATCHES))
def test_passes(batch):
    together = [name for name in NAMES if name not in ALONE]
    for seed in SEEDS[batch::BATCHES]:
        case = Case(seed)
        for name in NAMES:
            case.check(name)
        case.check(*random.Random(seed).sample(together, 3))


def test_every_random_operator_is_kept():
    """As torch tags its overloads; and the functions and methods of the same names."""
    aten, tag = torch.ops.aten, torch.Tag.nondeterministic_seeded
    dropped = []
    for name in dir(aten):
        packet = getattr(aten, name)
        overloads = [getattr(packet, o) for o in getattr(packet, "overloads", list)()]
        random_ones = [f for f in overloads if tag in f.tags]
        for f in random_ones:
            needed = [a for a in f._schema.arguments if not a.has_default_value()]
            dropped += [] if is_kept("call_function", f, len(needed)) else [f]
        function = getattr(torch, name, None) if random_ones else None
        # These do not draw unless they are told to: by default `training` is off, dropout 0.
        switched = name in ("rrelu", "rrelu_") or name.endswith(("_cpu", "_inplace", "_mps"))
        if callable(function) and not switched:  # torch.random is a module
            dropped += [] if is_kept("call_function", function, 1) else [function]
        if random_ones and hasattr(torch.Tensor, name):
            dropped += [] if is_kept("call_method", name, 1) else [name]
    assert dropped == []


@pytest.mark.parametrize("name", ["manual_seed", "seed", "set_state", "get_state", "initial_seed"])
def test_calls_of_generators_are_kept(name):
    """What sets a generator changes the next draw, and what reads it tells of the last one."""
    functions = {"manual_seed": torch.manual_seed, "seed": torch.seed,
                 "set_state": torch.set_rng_state, "get_state": torch.get_rng_state,
                 "initial_seed": torch.initial_seed}  # fmt: skip
    assert is_kept("call_method", name, 1) and is_kept("call_function", functions[name], 0)
    graph = cfx.Graph()
    x = graph.placeholder("x")
    graph.call_method(name, (x,))
    graph.call_function(functions[name], ())
    graph.output(x)
    read = cfx.parse(cfx.text(graph))
    for each in (graph, read):
        each.eliminate_dead_code()
        assert len(each.nodes) == 4


def seeds_twice(x):
    g = torch.Generator()
    g.manual_seed(3)
    first = torch.rand(2, generator=g)
    before = g.get_state()
    g.manual_seed(3)
    second = torch.rand(2, generator=g)
    return x + first, second, before, g.get_state()


@pytest.mark.parametrize("name", ["dce", "cse", "toposort"])
def test_generators_that_are_recorded(name):
    x = torch.ones(2)
    module = cfx.script(seeds_twice)
    cfx.passes.run(module, name)
    for want, got in zip(seeds_twice(x), module(x), strict=True):
        assert torch.equal(want, got)


def is_kept(op, target, n):
    graph = cfx.Graph()
    x = graph.placeholder("x")
    graph.create_node(op, target, (x,) * n)
    graph.output(x)
    cfx.passes.run(graph, "dce")
    return len(graph.nodes) == 3


def test_modules_run():
    """Most of what is made can be run, and much of it has state that changes."""
    outcomes = [outcome(*random_modules.make_live(seed, strict=seed % 4 < 2)) for seed in SEEDS]
    assert sum(isinstance(o, str) for o in outcomes) <= 0.2 * len(SEEDS)
    start = torch.manual_seed(0).get_state()
    drawn = [not isinstance(o, str) and not torch.equal(o[3], start) for o in outcomes]
    assert sum(drawn) >= 0.3 * len(SEEDS)
