"""Every pass of the table on random modules (random_modules.py): the verifier is content, the
module computes what it did, a second run changes nothing, and the pass found something to do.

A failure names its seed. CFX_FULL=1 tries 500 modules instead of 40.
"""
import copy
import os

import cfx
import cfx.passes
import pytest

torch = pytest.importorskip("torch")
from torch.utils import _pytree as pytree

import random_modules

FULL = os.environ.get("CFX_FULL") == "1"
SEEDS = range(500 if FULL else 40)
LEAST = 0.04  # of the modules must have been changed by each pass

# Passes that compute in another order, or with other weights: how far results may be apart.
CLOSE = {"fuse_bn": 1e-3, "merge_matmul": 1e-4, "equalize": 1e-4,
         "lower": 1e-4}  # lower: kernels of cfx
# Passes that change the module's tensors or where they are, so that these cannot be compared.
MOVES = {"fuse_bn", "equalize", "const_fold", "inline", "lift_params", "unlift_params",
         "remove_dropout"}
# Passes that do not heed writes: dce drops unused in-place methods, as torch.fx does.
NO_WRITES = {"dce", "toposort"}
# Passes that may make something run that failed: torch refuses to write to x what is read from x.T,
# and x.T.reshape(a).view(b) may fail where x.T.reshape(b) does not.
MENDS = {"functionalize", "collapse_reshapes", "lower"}
# Passes that may find more to do the second time, and why.
REPEATS = {"equalize": "it computes new weights without looking at elements, so it cannot tell"}
# Passes that have little to do in these modules: what is quantized, and lowered, is in
# test_quantize_integers.py, layers that follow each other in test_quantize_compare.py.
ELSEWHERE = {"integers", "equalize"}


pytestmark = pytest.mark.usefixtures("one_thread")


def disturb_order(gm):
    """Puts nodes where they do not belong: the seed is the size."""
    nodes = [n for n in gm.graph.nodes if n.op not in ("placeholder", "output")]
    for i, node in enumerate(nodes):
        if i % 3 == 1:
            nodes[0].prepend(node)


def disturb_names(gm):
    for i, node in enumerate(gm.graph.nodes):
        if i % 3 == 1:
            node.name = ("class", "two words", "x0", "", "print", "1st")[i // 3 % 6]


PREPARE = {"toposort": disturb_order, "legalize_names": disturb_names}


def run_lift(gm):
    """Parameters become inputs: they are given what they were read from."""
    paths = gm.graph._lift_params(gm)
    return bool(paths), [attribute(gm, path) for path in paths]


def run_unlift(gm):
    paths = gm.graph._lift_params(gm)
    return gm.graph._unlift_params(paths, gm) if paths else False, []


def attribute(gm, path):
    owner, _, name = path.rpartition(".")
    return getattr(gm.get_submodule(owner), name)


RUN = {"lift_params": run_lift, "unlift_params": run_unlift}


def run_table(name):
    return lambda gm: (cfx.passes.run(gm, name), [])


@torch.no_grad()
def outcome(gm, inputs):
    """What the module gives, what it did to its inputs and to its tensors; or the error."""
    try:
        result = gm(*inputs)
    except Exception as e:
        return type(e).__name__
    state = {k: v.clone() for k, v in gm.state_dict().items()}
    return pytree.tree_map(lambda t: as_torch(t).clone(), (result, inputs)), state


def as_torch(t):
    """A row that was given no tensor of torch's, such as cfx.ops.zeros, gives one of cfx's."""
    return t.torch() if isinstance(t, cfx.Tensor) else t


def close(a, b, tolerance):
    a, b = pytree.tree_flatten(a), pytree.tree_flatten(b)
    assert a[1] == b[1]
    for x, y in zip(a[0], b[0]):
        torch.testing.assert_close(x, y, rtol=tolerance, atol=tolerance, equal_nan=True)


def check(name, seed):
    """Whether the pass changed the module of this seed."""
    gm, inputs = random_modules.make(seed, writes=name not in NO_WRITES)
    assert gm.graph.verify() == []
    before = outcome(copy.deepcopy(gm), copy.deepcopy(inputs))
    PREPARE.get(name, lambda gm: None)(gm)
    old = cfx.text(gm.graph) if name != "legalize_names" else None
    changed, more = RUN.get(name, run_table(name))(gm)
    assert gm.graph.verify() == []
    gm.graph.lint()
    if old is not None and not changed:
        assert cfx.text(gm.graph) == old
    gm.recompile()
    again = copy.deepcopy(gm)
    after = outcome(gm, [*more, *copy.deepcopy(inputs)])
    if isinstance(before, str) or isinstance(after, str):
        assert after == before or (name in MENDS and isinstance(before, str))
    else:
        result, seen = after[0]
        close((result, seen[len(more):]), before[0], CLOSE.get(name, 0))
        if name not in MOVES:
            close(after[1], before[1], 0)
    if name not in REPEATS and name not in RUN:
        text = cfx.text(again.graph)
        assert not cfx.passes.run(again, name), "a second run changed something"
        assert cfx.text(again.graph) == text
    return changed


@pytest.mark.parametrize("name", [row.name for row in cfx.passes.table()])
def test_pass(name):
    found = 0
    for seed in SEEDS:
        try:
            found += check(name, seed)
        except BaseException as e:
            e.add_note(f"pass {name}, seed {seed}")
            raise
    least = 0 if name in ELSEWHERE else LEAST * len(SEEDS)
    assert found >= least, f"{name} changed {found} of {len(SEEDS)} modules"


def test_modules_run():
    """Most of what is made can be run; the rest fails alike before and after each pass."""
    failed = [seed for seed in SEEDS if isinstance(outcome(*random_modules.make(seed)), str)]
    assert len(failed) <= 0.2 * len(SEEDS), failed
