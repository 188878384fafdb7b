"""Arguments and calls that lowering reads or drops: NumPy's numbers, autocast that is switched off,
requires_grad that is set."""
import cfx
import pytest

torch = pytest.importorskip("torch")
modes = torch.amp.autocast_mode


def lowered(build):
    """The program of a graph of x: `build(graph, x)` gives the result."""
    graph = cfx.Graph()
    graph.output(build(graph, graph.placeholder("x")))
    return cfx.lower(cfx.GraphModule(torch.nn.Module(), graph))


@pytest.mark.parametrize("name", "float64 float32 int64 uint8 bool_".split())
@pytest.mark.parametrize("method", "add mul div eq clamp where".split())
def test_numbers_of_numpy(name, method):
    numpy = pytest.importorskip("numpy")
    number = getattr(numpy, name)(1)
    x = torch.tensor([[1.5, -2.0, 0.0]])
    if method == "where":
        program = lowered(lambda g, x: g.call_function(
            torch.where, (g.call_function(torch.gt, (x, 0)), x, number)))
        want = torch.where(x > 0, x, number.item())
    else:
        program = lowered(lambda g, x: g.call_method(method, (x, number)))
        want = getattr(x, method)(number.item())
    assert torch.equal(program(x), want)


def test_sizes_of_numpy():
    numpy = pytest.importorskip("numpy")
    sizes = [numpy.int64(3), 1]
    assert lowered(lambda g, x: g.call_method("reshape", (x, sizes)))(torch.ones(3)).shape == (3, 1)


def test_subclass_of_float():
    class Own(float):
        pass

    assert lowered(lambda g, x: g.call_method("mul", (x, Own(3))))(torch.ones(1)).item() == 3


def autocast(enabled):
    def build(graph, x):
        token = graph.call_function(modes._enter_autocast, ("cpu", torch.bfloat16, enabled, True))
        y = graph.call_function(torch.mm, (x, x))
        graph.call_function(modes._exit_autocast, (token,))
        return y

    return build


def test_autocast_that_is_off():
    x = torch.randn(3, 3)
    program = lowered(autocast(False))
    assert [node.name for node in program.graph.nodes] == ["x", "mm", "output"]
    torch.testing.assert_close(program(x), x @ x)


def test_autocast_is_refused():
    with pytest.raises(cfx.LowerError, match="not in those that autocast picks"):
        lowered(autocast(True))


def test_requires_grad_is_dropped():
    def build(graph, x):
        graph.call_function(setattr, (x, "requires_grad", True))
        return graph.call_function(torch.relu, (x,))

    program = lowered(build)
    assert [node.name for node in program.graph.nodes] == ["x", "relu", "output"]


def test_other_attributes_are_refused():
    def build(graph, x):
        graph.call_function(setattr, (x, "grad", None))
        return x

    with pytest.raises(cfx.LowerError, match="setattr"):
        lowered(build)


def test_hasattr():
    program = lowered(lambda g, x: (g.call_function(hasattr, (x, "shape")),
                                    g.call_function(hasattr, (x, "relu"))))
    assert program(torch.ones(2)) == (True, True)
    unknown = lowered(lambda g, x: g.call_function(hasattr, (x, "nobody_knows")))
    with pytest.raises(TypeError, match="cannot tell whether 'tensor' has the attribute"):
        unknown(torch.ones(2))


def test_offsets_of_groups():
    """What PyTorch leaves undefined: rows in no group are 0, offsets that decrease are refused."""
    x, weights = torch.ones(4, 8), torch.ones(2, 8, 4)
    got = cfx.ops._grouped_mm(x, weights, torch.tensor([1, 3], dtype=torch.int32))
    assert got.tolist() == [[8.0] * 4] * 3 + [[0.0] * 4]
    for ends in ([3, 1], [-1, 2], [1, 5]):
        with pytest.raises(RuntimeError, match="offsets must not decrease or exceed the 4 rows"):
            cfx.ops._grouped_mm(x, weights, torch.tensor(ends, dtype=torch.int32))


def test_all_true():
    program = lowered(lambda g, x: (g.call_method("_is_all_true", (x,)),
                                    g.call_method("_is_any_true", (x,))))
    for x in ([True, False], [True, True], []):
        got = program(torch.tensor(x, dtype=torch.bool))
        assert [t.item() for t in got] == [all(x), any(x)]
