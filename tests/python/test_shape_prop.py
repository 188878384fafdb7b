"""ShapeProp and FakeTensorProp: what they write into nodes, beside torch.fx's."""
import inspect
import warnings

import pytest
from parity import growth

torch = pytest.importorskip("torch")
import torch.fx  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.symbolic_shapes import ShapeEnv  # noqa: E402
from torch.fx.passes import fake_tensor_prop as their_fake  # noqa: E402
from torch.fx.passes import shape_prop as theirs  # noqa: E402

import cfx  # noqa: E402
from cfx.passes import fake_tensor_prop as our_fake  # noqa: E402
from cfx.passes import shape_prop as ours  # noqa: E402

BOTH = [(cfx, ours.ShapeProp), (torch.fx, theirs.ShapeProp)]
pytestmark = pytest.mark.filterwarnings("ignore")


def tensors():
    x = torch.arange(24.0).reshape(2, 3, 4, 1)
    yield from (x, x.t() if x.dim() == 2 else x.transpose(0, 1), x.expand(2, 3, 4, 5), x[:, :1])
    yield from (torch.tensor(3), torch.ones(0), torch.ones(2, 0, 3).transpose(0, 2), torch.ones(1))
    yield from (torch.ones(2, 3, dtype=torch.complex64), torch.ones(2, device="meta"))
    for shape in [(2, 3, 4, 4), (1, 1, 4, 4), (2, 1, 4, 4), (2, 3, 1, 1), (1, 3, 2, 2)]:
        yield torch.ones(shape).to(memory_format=torch.channels_last)
        yield torch.ones(*shape, 2).to(memory_format=torch.channels_last_3d)
        yield torch.ones(shape).to(memory_format=torch.channels_last)[:, :, ::2]
    yield from (torch.nn.Parameter(torch.ones(2)), torch.ones(3, requires_grad=True) * 2)
    yield from (torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr(), torch.eye(3).to_mkldnn())
    yield torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 2, torch.quint8)
    scales = torch.tensor([0.1, 0.2])
    for zero in (torch.tensor([1, 2]), torch.tensor([1.0, 2.0])):
        yield torch.quantize_per_channel(torch.ones(2, 3), scales, zero, 0, torch.quint8)
    yield FakeTensorMode().from_tensor(torch.ones(2, 3))
    env = FakeTensorMode(shape_env=ShapeEnv())
    yield from (env.from_tensor(torch.ones(2, 3)), env.from_tensor(torch.ones(2, 3)).t())


def test_one_tensor():
    for i, tensor in enumerate(tensors()):
        for contiguity in (True, False):
            mine = ours._extract_tensor_metadata(tensor, contiguity)
            other = theirs._extract_tensor_metadata(tensor, contiguity)
            assert mine == tuple(other), i
            assert repr(mine) == repr(other)
            assert list(map(type, mine)) == list(map(type, other))
    assert type(mine) is ours.TensorMetadata and isinstance(mine.shape, torch.Size)
    assert mine._replace(dtype=torch.int8).dtype is torch.int8


def test_all_strides_of_small_tensors():
    """Contiguity is computed in C: every permutation of several shapes gives torch's answer."""
    import itertools

    for shape in [(2, 3, 1, 4), (1, 1, 2, 1), (0, 2, 1, 3), (2, 1, 3, 1, 2), (1, 2, 2)]:
        for order in itertools.permutations(range(len(shape))):
            tensor = torch.ones(shape).permute(order)
            mine = ours._extract_tensor_metadata(tensor)
            assert mine.memory_format is theirs._extract_tensor_metadata(tensor).memory_format


def test_no_tensor_is_an_error():
    with pytest.raises(AttributeError, match="shape"):
        ours._extract_tensor_metadata(5)
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    with pytest.raises(RuntimeError, match="doesn't support sizes"):
        ours._extract_tensor_metadata(nested)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.w = torch.nn.Parameter(torch.ones(2))

    def forward(self, x, n: int = 4):
        y = self.linear(x) + self.w
        parts = torch.split(y, 1)
        return parts, {"a": x, "b": [y.t(), n]}, x.shape, torch.float32


def metas(gm, keys):
    return [(n.name, {k: repr(n.meta[k]) for k in keys if k in n.meta}) for n in gm.graph.nodes]


def compare(run, model, keys):
    """`run(fx, prop, gm)` for both; what they wrote is the same."""
    shown = []
    for fx, prop in BOTH:
        gm = fx.symbolic_trace(model)
        result = run(prop, gm)
        shown.append((metas(gm, keys), repr(result)))
    assert shown[0] == shown[1]


def test_a_model():
    model = Model()
    keys = ("tensor_meta", "type")
    compare(lambda prop, gm: prop(gm).propagate(torch.ones(2, 3)), model, keys)
    compare(lambda prop, gm: prop(gm).propagate(torch.ones(2, 3), 7), model, keys)

    def fake(prop, gm):
        recorder = prop(gm, FakeTensorMode())
        result = recorder.propagate(torch.ones(2, 3))
        assert recorder.module is gm and recorder.real_module is gm
        assert type(gm.w) is torch.nn.Parameter
        return result

    compare(fake, model, keys)

    def inside(prop, gm):
        with FakeTensorMode(allow_non_fake_inputs=True):
            return prop(gm).propagate(torch.ones(2, 3))

    compare(inside, model, keys)


def test_old_metadata_stays_where_there_is_no_tensor():
    for fx, prop in BOTH:
        gm = fx.symbolic_trace(lambda x: x.size(0))
        for node in gm.graph.nodes:
            node.meta.update(tensor_meta="old", type="old")
        prop(gm).propagate(torch.ones(2))
        assert [n.meta["tensor_meta"] == "old" for n in gm.graph.nodes] == [False, True, True]
        assert [n.meta["type"] for n in gm.graph.nodes] == [torch.Tensor, int, int]


def test_subclasses():
    for fx, prop in BOTH:
        seen = []

        class Own(prop):
            def run_node(self, n, seen=seen):
                result = super().run_node(n)
                seen.append((n.name, "type" in n.meta))
                return result

            def call_function(self, target, args, kwargs, seen=seen):
                seen.append(self.module is self.real_module)
                return super().call_function(target, args, kwargs)

        gm = fx.symbolic_trace(lambda x: torch.relu(x))
        assert torch.equal(Own(gm).propagate(-torch.ones(2)), torch.zeros(2))
        Own(gm, FakeTensorMode()).propagate(torch.ones(2))
        assert seen == [("x", True), True, ("relu", True), ("output", True),
                        ("x", True), False, ("relu", True), ("output", True)]  # fmt: skip
    assert list(inspect.signature(ours.ShapeProp.run_node).parameters) == ["self", "n"]
    with pytest.raises(TypeError, match="expects a Node"):
        ours.ShapeProp(gm_of(lambda x: x)).run_node(3)


def gm_of(function):
    return cfx.symbolic_trace(function)


def wrong(x):
    return (x @ torch.ones(7)).relu()


def test_errors_name_the_node_and_the_line():
    texts = []
    for fx, prop in BOTH:
        gm = fx.symbolic_trace(wrong)
        with pytest.raises(RuntimeError) as caught:
            prop(gm).propagate(torch.ones(2, 3))
        assert isinstance(caught.value.__cause__, RuntimeError)
        texts.append(str(caught.value))
        assert [sorted(n.meta) for n in gm.graph.nodes] == [["tensor_meta", "type"]] * 2 + [[]] * 3
    first, executing = (t for t in texts[1].splitlines() if t and "%matmul" in t)
    assert texts[0].splitlines()[0] == first and executing in texts[0]
    assert "size mismatch" in texts[0] and "test_shape_prop.py" in texts[0]
    with pytest.raises(RuntimeError, match="ShapeProp error for: node=%getitem.*\n.*KeyError"):
        ours.ShapeProp(gm_of(lambda x: x["a"])).propagate({})
    with pytest.raises(KeyboardInterrupt):
        ours.ShapeProp(gm_of(lambda x: x(1))).propagate(interrupt)


def interrupt(_):
    raise KeyboardInterrupt


def test_regions():
    def double(x):
        return (x + x,)

    true, false = cfx.symbolic_trace(double).graph, cfx.symbolic_trace(double).graph
    graph = cfx.Graph()
    p, x = graph.placeholder("p"), graph.placeholder("x")
    graph.output(graph.call_function(cfx.cond, (p, true, false, (x,))))
    ours.ShapeProp(cfx.GraphModule({}, graph)).propagate(torch.tensor(True), torch.ones(2, 3))
    region = next(n for n in graph.nodes if n.target is cfx.cond).args[1]
    assert [n.meta["tensor_meta"] for n in region.nodes][0].shape == (2, 3)


# ---- FakeTensorProp ----------------------------------------------------------------------------


def compare_fake(model, *inputs, run="propagate", **options):
    shown = []
    for fx, prop in [(cfx, our_fake.FakeTensorProp), (torch.fx, their_fake.FakeTensorProp)]:
        mode = FakeTensorMode(allow_non_fake_inputs=True, **{k: v() for k, v in options.items()})
        gm = fx.symbolic_trace(model)
        for _ in range(2):
            result = getattr(prop(gm, mode), run)(*inputs)
            shown.append((metas(gm, ("val", "unbacked_bindings")), repr(result)))
    assert shown[:2] == shown[2:]
    return gm


def test_fake_values():
    x = torch.ones(2, 3)
    compare_fake(Model(), x, 5)
    compare_fake(Model(), x, run="propagate_dont_convert_inputs")
    compare_fake(lambda x: (x.relu(), 1, "a", None, x.shape), x)
    compare_fake(lambda x: x.add(1).resize_(5).unsqueeze_(0), x)
    compare_fake(lambda x: [x.size(0), x[0]], x, shape_env=ShapeEnv)
    compare_fake(lambda x: x.nonzero() + 1, x, shape_env=ShapeEnv)


def test_fake_tensors_keep_aliases():
    gm = gm_of(lambda x: x.add(1).view(-1))
    our_fake.FakeTensorProp(gm).propagate(torch.ones(2, 3))
    add, view = (n.meta["val"] for n in list(gm.graph.nodes)[1:3])
    assert add.untyped_storage()._cdata == view.untyped_storage()._cdata


def test_fake_mode_of_its_own():
    gm = gm_of(lambda x: x @ torch.ones(3))
    with pytest.raises(AssertionError, match="(?s)convert all Tensors.*While executing %matmul"):
        our_fake.FakeTensorProp(gm).propagate(torch.ones(2, 3))
    mode = FakeTensorMode()
    assert our_fake.FakeTensorProp(gm, mode)._mode is mode


def test_signatures():
    for mine, other in [(ours.ShapeProp, theirs.ShapeProp),
                        (our_fake.FakeTensorProp, their_fake.FakeTensorProp)]:  # fmt: skip
        for name in ["__init__", *(n for n in vars(other) if not n.startswith("_"))]:
            a, b = (inspect.signature(getattr(c, name)).parameters for c in (mine, other))
            assert [(p.name, p.default) for p in a.values()] == [
                (p.name, p.default) for p in b.values()
            ]
    assert ours.__all__ == sorted(theirs.__all__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ours.TensorMetadata._fields == theirs.TensorMetadata._fields


def test_no_leaks():
    good, bad = gm_of(lambda x: (x.relu(), [x + 1])), gm_of(wrong)
    x = torch.ones(2, 3)
    scales, zeros = torch.tensor([0.1, 0.2]), torch.tensor([1, 2])
    quantized = torch.quantize_per_channel(x, scales, zeros, 0, torch.quint8)

    def work():
        ours.ShapeProp(good).propagate(x)
        ours._extract_tensor_metadata(quantized)
        with pytest.raises(RuntimeError):
            ours.ShapeProp(bad).propagate(x)

    assert growth(work, 2_000) < 1 << 20
