"""Models as people write them, lowered: values, types, strides and state are eager's; programs are
copied, pickled, shared by threads, and given other weights."""
import copy
import pickle
import threading

import pytest

torch = pytest.importorskip("torch")
import numpy as np  # noqa: E402
from torch import nn  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import cfx  # noqa: E402
from cfx import interop  # noqa: E402


class Call(nn.Module):
    """A function as a module, for torch.export."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def exported(module, inputs):
    return interop.from_torch(torch.export.export(module, inputs).module())


def dispatched(module, inputs):
    return interop.from_torch(make_fx(module)(*inputs))


def flat(result):
    return list(result) if isinstance(result, tuple | list) else [result]


def agree(graph_module, want, inputs):
    got = flat(cfx.lower(graph_module)(*inputs))
    for mine, theirs in zip(got, flat(want), strict=True):
        torch.testing.assert_close(mine, theirs, check_stride=True)


def masked(x):
    scores = torch.einsum("bhqd,bhkd->bhqk", x, x) / x.size(-1) ** 0.5
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return scores.masked_fill(~mask, float("-inf")).softmax(-1)


def written(x):
    y = x.clone()
    y[:, 0] = 1
    y[..., -1] += 2
    y[y > 1] = 0
    y[:, [1]] *= 2
    return y


X = torch.randn(2, 3, 4, 4)
ATEN = {
    "masked": (Call(masked), X),
    "written": (Call(written), X),
    "attention": (Call(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True)), X),
    "pads": (Call(lambda x: F.pad(F.pad(x, (1, 2, 0, 1), "replicate"), (1, 1, 2, 0), "reflect")),
             X),
    "norm": (nn.Sequential(nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5), nn.PReLU(5)), X),
    "activations": (nn.Sequential(nn.LogSigmoid(), nn.PReLU(2), nn.GLU(1)), X[:, :2]),
    "encoder": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), torch.randn(2, 3, 8)),
    "gru": (nn.GRU(4, 5, 2, bidirectional=True), torch.randn(3, 2, 4)),
    "weight_norm": (nn.utils.parametrizations.weight_norm(nn.Linear(4, 6)), X),
}


@pytest.mark.parametrize("capture", [exported, dispatched])
@pytest.mark.parametrize("name", ATEN)
def test_graphs_of_the_dispatcher(name, capture):
    module, x = ATEN[name]
    module = module.eval()
    with torch.no_grad():
        agree(capture(module, (x,)), module(x), (x,))


def test_attention_for_the_cpu_gives_both_results():
    op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 6, 8)
    bias = torch.randn(5, 6)
    for kwargs in {}, {"scale": 0.3}, {"attn_mask": bias}:
        graph = cfx.Graph()
        inputs = [graph.placeholder(name) for name in "qk"]
        graph.output(graph.call_function(op, (inputs[0], inputs[1], inputs[1]), {
            key: graph.get_attr("bias") if key == "attn_mask" else value
            for key, value in kwargs.items()}))
        agree(cfx.GraphModule({"bias": bias}, graph), op(q, k, k, **kwargs), (q, k))
    causal = cfx.symbolic_trace(lambda q, k: op(q, k, k, 0.0, True))
    agree(causal, op(q, k, k, 0.0, True), (q, k))


def test_weight_norm_over_other_dimensions():
    v = torch.randn(3, 4, 2)
    for dim, g in ((0, torch.randn(3, 1, 1)), (2, torch.randn(1, 1, 2)), (-1, torch.randn(()))):
        lowered = cfx.lower(cfx.symbolic_trace(lambda v, g: torch._weight_norm(v, g, dim)))
        torch.testing.assert_close(lowered(v, g), torch._weight_norm(v, g, dim))


def test_a_hint_of_causality_beside_a_mask():
    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2)

        def forward(self, x, memory):
            mask = nn.Transformer.generate_square_subsequent_mask(3)
            return self.layers(x, memory, tgt_mask=mask, tgt_is_causal=True)

    module = Decoder().eval()
    inputs = torch.randn(3, 2, 8), torch.randn(5, 2, 8)
    with torch.no_grad():
        agree(cfx.symbolic_trace(module), module(*inputs), inputs)


def test_casts_and_properties():
    def function(x):
        return (x.short(), x.char(), x.byte(), x.cfloat(), x.cdouble(), x.type(torch.float16),
                x[None, 1:, ..., 0], x[..., None])

    x = torch.randint(0, 100, (2, 3, 4, 4)).float()
    agree(cfx.symbolic_trace(function), function(x), (x,))

    def numbers(x):
        last = torch.channels_last
        return (x.nelement(), x.element_size(), x.is_contiguous(),
                x.is_contiguous(memory_format=last))

    for y in x, x.to(memory_format=torch.channels_last), x[..., 1:], x.half():
        assert cfx.lower(cfx.symbolic_trace(numbers))(y) == numbers(y)


# ---- arguments and messages


def test_an_input_with_a_default_can_be_skipped():
    lowered = cfx.lower(cfx.symbolic_trace(lambda x, y=2, z=3: x * y + z))
    assert lowered(4, z=5) == 13
    assert lowered(x=1, z=1) == 3
    with pytest.raises(TypeError, match="'x' is missing"):
        lowered(z=5)


@pytest.mark.parametrize("function", [
    lambda n: n // 0, lambda n: n % 0, lambda n: n / 0, lambda n: n / 0.0, lambda n: (n - 3) ** -1])
def test_division_by_zero_is_python_s(function):
    with pytest.raises(ZeroDivisionError, match="test_lowering.py:.*(node %.*)"):
        cfx.lower(cfx.symbolic_trace(function))(3)


@pytest.mark.parametrize("function, text", [
    (lambda x: x + torch.ones(5), "add(float32[3, 8], float32[5]): "),
    (lambda x: F.conv2d(x, x), "conv2d(float32[3, 8], float32[3, 8]): "),
    (lambda x: F.softmax(x, 5), "softmax(float32[3, 8], 5): "),
    (lambda x: x.clamp(max=2).sum(7), "sum(float32[3, 8], [7]): "),
])
def test_messages_leave_out_defaults(function, text):
    with pytest.raises((RuntimeError, IndexError)) as error:
        cfx.lower(cfx.symbolic_trace(function))(torch.randn(3, 8))
    assert text in str(error.value)


def test_memory_that_is_out_has_a_message():
    lowered = cfx.lower(cfx.symbolic_trace(lambda x, n: x.new_zeros(n)))
    with pytest.raises(MemoryError, match=f"out of memory: a tensor needs {2**57} bytes"):
        lowered(torch.ones(1), 2**55)


def test_hooks_are_named():
    module = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    module[0].register_forward_hook(lambda *args: None)
    module[1].forward = lambda x: x
    with pytest.raises(cfx.LowerError, match="has hooks or its own forward") as error:
        cfx.lower(cfx.symbolic_trace(module))
    assert len(error.value.findings) == 2


# ---- programs as objects


@pytest.fixture
def net():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).requires_grad_(False)


def test_runtime_of_its_own(net):
    runtime = cfx.Runtime(threads=1, reference=True)
    lowered = cfx.lower(cfx.symbolic_trace(net), runtime=runtime)
    x = torch.randn(3, 8)
    assert lowered.runtime is runtime
    torch.testing.assert_close(lowered(x), net(x))
    noise = cfx.lower(cfx.symbolic_trace(lambda x: torch.rand_like(x)), runtime=runtime)
    runtime.manual_seed(1)
    first = noise(x)
    runtime.manual_seed(1)
    assert torch.equal(first, noise(x))
    with pytest.raises(TypeError, match=r"cfx\.Runtime, not int"):
        cfx.lower(cfx.symbolic_trace(net), runtime=3)


def test_threads_share_a_program_and_a_runtime(net):
    runtime = cfx.Runtime(threads=2)
    lowered = cfx.lower(cfx.symbolic_trace(net))
    x = torch.randn(3, 8)
    want = net(x)
    wrong = []

    def work():
        try:
            for _ in range(50):
                with runtime:
                    torch.testing.assert_close(lowered(x), want)
        except BaseException as e:
            wrong.append(e)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_runtimes_nest():
    a, b = cfx.Runtime(threads=1), cfx.Runtime(threads=1)
    with a, b, a:
        with pytest.raises(RuntimeError, match="not active"):
            b.__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="not active"):
        a.__exit__(None, None, None)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_have_weights_of_their_own(net, copied):
    lowered = cfx.lower(cfx.symbolic_trace(net))
    x = torch.randn(3, 8)
    want = net(x)
    other = copied(lowered)
    net[0].weight.zero_()
    torch.testing.assert_close(lowered(x), net(x))
    torch.testing.assert_close(other(x), want)
    assert list(other.state) == list(lowered.state)


def test_a_replaced_tensor_is_read(net):
    lowered = cfx.lower(cfx.symbolic_trace(net))
    x = torch.randn(3, 8)
    lowered.state["0.bias"] = torch.full((16,), 5.0)
    lowered.state.update({"2.bias": np.ones(4, dtype=np.float32)})
    net[0].bias.fill_(5)
    net[2].bias.fill_(1)
    torch.testing.assert_close(lowered(x), net(x))
    assert lowered.state["2.bias"].tolist() == [1, 1, 1, 1]
    assert isinstance(copy.deepcopy(lowered)(x), torch.Tensor)
    with pytest.raises(KeyError, match="no tensor 'bias'"):
        lowered.state["bias"] = x
    with pytest.raises(TypeError, match="replaced, not removed"):
        del lowered.state["0.bias"]


# ---- regions


def region(function):
    return cfx.symbolic_trace(function).graph


def test_control_flow_runs_in_c():
    graph = cfx.Graph()
    x = graph.placeholder("x")
    positive = graph.call_function(torch.gt, (graph.call_function(torch.sum, (x,)), 0))
    y = graph.call_function(cfx.cond, (positive, region(lambda a: a + 1), region(lambda a: a - 1),
                                       (x,)))
    counted = graph.call_function(cfx.for_loop, (4, region(lambda i, a: (a + i,)), (y,)))
    doubled = graph.call_function(cfx.while_loop, (
        region(lambda i, a: i < 3), region(lambda i, a: (i + 1, a * 2)), (0, y)))
    graph.output((y, counted, doubled))
    module = cfx.GraphModule({}, graph)
    lowered = cfx.lower(module)
    for x in torch.ones(3), -torch.ones(3):
        torch.testing.assert_close(lowered(x), module(x))
    assert lowered(torch.ones(1))[2] == (3, torch.tensor([16.0]))


def test_an_exported_cond():
    module = Call(lambda x: torch.cond(x.sum() > 0, lambda a: (a.sin(),), lambda a: (a.cos(),),
                                       (x,)))
    graph_module = exported(module, (torch.ones(3),))
    for x in torch.ones(3), -torch.ones(3):
        agree(graph_module, module(x), (x,))
