"""collapse_reshapes on real tensors: elements, memory and strides are what they were."""
import itertools

import cfx
import cfx.passes
import pytest

torch = pytest.importorskip("torch")

SHAPES = [(24,), (4, 6), (2, 3, 4), (3, 8), (2, 2, 6), (2, -1), (-1, 6), (4, 1, 6)]
# Contiguous, transposed, with gaps, expanded, permuted.
MAKE = [
    lambda: torch.arange(24.0),
    lambda: torch.arange(24.0).reshape(4, 6).t(),
    lambda: torch.arange(48.0).reshape(4, 12)[:, ::2],
    lambda: torch.arange(48.0)[::2],
    lambda: torch.arange(4.0).reshape(4, 1).expand(4, 6),
    lambda: torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
]
CALLS = [(name, shape) for name in ("view", "reshape") for shape in SHAPES]
CALLS += [(name, ()) for name in ("flatten", "ravel", "contiguous", "squeeze")]
CALLS += [("flatten", (0,)), ("flatten", (1,)), ("unsqueeze", (0,))]


def collapsed(calls):
    graph = cfx.Graph()
    node = graph.placeholder("x")
    for name, args in calls:
        node = graph.call_method(name, (node, *args))
    graph.output(node)
    before = cfx.GraphModule({}, copy_of(graph))
    after = cfx.GraphModule({}, graph)
    changed = cfx.passes.run(after, "collapse_reshapes")
    after.recompile()
    return before, after, changed


def copy_of(graph):
    new = cfx.Graph()
    new.output(new.graph_copy(graph, {}))
    return new


def facts(gm, x):
    """What can be seen of a result; the stride of a dimension with one element cannot."""
    try:
        y = gm(x)
    except (RuntimeError, IndexError):
        return None
    strides = [s for s, n in zip(y.stride(), y.shape) if n != 1]
    return y.tolist(), y.shape, strides, y.data_ptr() == x.data_ptr()


def test_pairs():
    found = mended = 0
    for calls in itertools.product(CALLS, repeat=2):
        before, after, changed = collapsed(calls)
        found += changed
        for make in MAKE if changed else ():
            x = make()
            want = facts(before, x)
            mended += want is None
            assert want is None or facts(after, x) == want, (calls, x.stride())
    assert found > 150
    assert mended


@pytest.mark.parametrize("calls", [
    [("reshape", (2, 12)), ("reshape", (6, 4))],
    [("reshape", (2, 12)), ("view", (3, 8))],
    [("ravel", ()), ("flatten", ())],
    [("contiguous", ()), ("view", (-1,))],
])  # fmt: skip
def test_what_would_differ_stays(calls):
    """There is an input for which the second call alone has other strides, or fails."""
    before, after, changed = collapsed(calls)
    assert not changed
    alone, _, _ = collapsed(calls[1:])
    assert any(facts(before, x) != facts(alone, x) for x in (make() for make in MAKE))


def test_dtype_is_no_size():
    _, after, changed = collapsed([("view", (torch.int32,)), ("view", (-1,))])
    assert not changed
    x = torch.ones(4)
    assert after(x).dtype == torch.int32
