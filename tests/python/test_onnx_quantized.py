"""Quantized models in ONNX: the reference form (quantize, dequantize, float operator) goes out as
QuantizeLinear and DequantizeLinear, and comes back as the same rows. ONNX Runtime is the judge."""
import cfx
import cfx.onnx
import numpy as np
import pytest
import quantize_models
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  registers quantized_decomposed
import torch.nn.functional as F
from cfx import quantize
from cfx.quantize import QConfigMapping
from torch import nn
from torch.utils._pytree import tree_leaves

onnx = pytest.importorskip("onnx", reason="tests/requirements.txt names the version")
ort = pytest.importorskip("onnxruntime", reason="tests/requirements.txt names the version")

q = torch.ops.quantized_decomposed
U8, I8, I16, U16, I32 = torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32
OPSETS = 18, 21


def random(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def save(model, inputs, path, opset):
    cfx.onnx.save(cfx.capture(model, *inputs), path, opset=opset)
    made = onnx.load(path)
    onnx.checker.check_model(made, full_check=True)
    return made


def run(path, inputs):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    found = session.run(None, dict(zip(names, (x.numpy() for x in inputs))))
    return [torch.from_numpy(np.asarray(t)) for t in found]


def operators(made):
    return [n.op_type for n in made.graph.node if n.op_type != "Identity"]  # names of results


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


# ---- single calls


QUANTIZE = [  # zero point, range, type; the operators it becomes
    (128, 0, 255, U8, ["QuantizeLinear"]),
    (-3, -128, 127, I8, ["QuantizeLinear"]),
    (0, -127, 127, I8, ["Clip", "QuantizeLinear"]),
    (7, 0, 15, U8, ["Clip", "QuantizeLinear"]),
    (-1000, 0, 255, U8, ["Add", "Cast", "Clip", "Mul", "Round"]),
    (5, -2**31, 2**31 - 1, I32, ["Add", "Cast", "Clip", "Mul", "Round"]),
]
WIDE = [(5, -32768, 32767, I16), (40000, 0, 65535, U16), (5, -2000, 2000, I16)]


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("zero, low, high, dtype, expected", QUANTIZE, ids=str)
def test_quantize(zero, low, high, dtype, expected, opset, tmp_path):
    path, x = str(tmp_path / "m.onnx"), random(1, 5, 333) * 30
    model = Function(lambda x: q.quantize_per_tensor(x, 0.37, zero, low, high, dtype))
    made = save(model, (x,), path, opset)
    assert sorted(set(operators(made))) == expected
    assert torch.equal(run(path, (x,))[0], model(x))
    save(model, (x.half(),), path, opset)
    assert torch.equal(run(path, (x.half(),))[0], model(x.half()))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("zero, low, high, dtype", WIDE, ids=str)
def test_quantize_to_16_bits(zero, low, high, dtype, opset, tmp_path):
    path, x = str(tmp_path / "m.onnx"), random(2, 5, 333) * 3000
    model = Function(lambda x: q.quantize_per_tensor(x, 0.37, zero, low, high, dtype))
    made = save(model, (x,), path, opset)
    full = (low, high) != (-2000, 2000)
    assert ("QuantizeLinear" in operators(made)) == (opset >= 21 and full)
    assert torch.equal(run(path, (x,))[0].long(), model(x).long())


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("zero, dtype, in_parts", [
    (128, U8, False), (-3, I8, False), (0, I32, False), (5, I32, True), (-1000, U8, True)])
@pytest.mark.parametrize("out", [None, torch.float16, torch.float64], ids=str)
def test_dequantize(zero, dtype, in_parts, out, opset, tmp_path):
    path = str(tmp_path / "m.onnx")
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    x = torch.arange(0, 250, 3).sub(128 if dtype == I8 else 0).to(dtype)
    model = Function(lambda x: q.dequantize_per_tensor(x, 0.3, zero, low, high, dtype,
                                                       out_dtype=out))
    made = save(model, (x,), path, opset)
    in_parts = in_parts or out == torch.float64
    assert ("DequantizeLinear" in operators(made)) == (not in_parts)
    torch.testing.assert_close(run(path, (x,))[0], model(x), rtol=2e-3 if out == torch.float16
                               else 1e-6, atol=1e-6)


class PerChannel(nn.Module):
    def __init__(self, axis, low, high, zeros=True, one=False):
        super().__init__()
        n = 1 if one else (3, 4, 5)[axis]
        self.rest = axis, low, high, U8
        self.register_buffer("scales", random(3, n).abs() + 0.1)
        self.register_buffer("zeros", torch.arange(n) * 40 if zeros else None)

    def forward(self, x):
        zeros = torch.zeros_like(self.scales).long() if self.zeros is None else self.zeros
        y = q.quantize_per_channel(x, self.scales, zeros, *self.rest)
        return y, q.dequantize_per_channel(y, self.scales, self.zeros, *self.rest)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("args", [(0, 0, 255), (1, 0, 255), (2, 0, 127), (-1, 0, 255),
                                  (1, 0, 255, False), (1, 0, 255, True, True)], ids=str)
def test_per_channel(args, opset, tmp_path):
    path, x, model = str(tmp_path / "m.onnx"), random(4, 3, 4, 5) * 20, PerChannel(*args)
    made = save(model, (x,), path, opset)
    assert {"QuantizeLinear", "DequantizeLinear"} <= set(operators(made))
    for a, b in zip(run(path, (x,)), model(x)):
        assert torch.equal(a, b)


class Groups(nn.Module):
    def __init__(self, bits, zeros, dtype=torch.float32):
        super().__init__()
        self.low, self.high, self.dtype = -2**(bits - 1), 2**(bits - 1) - 1, dtype
        self.register_buffer("w", torch.randint(self.low, self.high + 1, (6, 32)).to(I8))
        self.register_buffer("scales", random(5, 6, 4).abs())
        self.register_buffer("zeros", torch.randint(-3, 4, (6, 4)) if zeros else None)

    def forward(self, x):
        return F.linear(x, q.dequantize_per_channel_group(
            self.w, self.scales, self.zeros, self.low, self.high, I8, 8, self.dtype))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("bits, zeros", [(8, True), (4, False), (4, True)])
def test_groups(bits, zeros, opset, tmp_path):
    path, x, model = str(tmp_path / "m.onnx"), random(6, 5, 32), Groups(bits, zeros)
    made = save(model, (x,), path, opset)
    assert ("DequantizeLinear" in operators(made)) == (opset >= 21)
    types = {i.data_type for i in made.graph.initializer}
    assert (onnx.TensorProto.INT4 in types) == (opset >= 21 and bits == 4 and not zeros)
    for got in (run(path, (x,))[0], cfx.onnx.load(path)(x)):  # sums in another order
        torch.testing.assert_close(got, model(x), rtol=1e-5, atol=1e-4)


class Packed(nn.Module):
    """Weights of four bits, two in a byte."""

    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.randint(0, 256, (6, 16)).to(U8))
        self.register_buffer("scales", random(7, 6, 4).abs())

    def forward(self, x):
        unpack = cfx.ops.unpack_int4
        w = (x.tracer.create_proxy("call_function", unpack, (self.w, 32), {})
             if isinstance(x, cfx.Proxy) else unpack(self.w, 32))
        return F.linear(x, q.dequantize_per_channel_group(w, self.scales, None, -8, 7, I8, 8,
                                                          torch.float32))


@pytest.mark.parametrize("opset", OPSETS)
def test_packed_weights(opset, tmp_path):
    path, x, model = str(tmp_path / "m.onnx"), random(8, 5, 32), Packed()
    cfx.onnx.save(cfx.symbolic_trace(model), path, inputs=(x,), opset=opset)
    made = onnx.load(path)
    onnx.checker.check_model(made, full_check=True)
    weights = {i.data_type: len(i.raw_data) for i in made.graph.initializer if i.name == "w"}
    assert weights == ({onnx.TensorProto.INT4: 96} if opset >= 21 else {onnx.TensorProto.INT8: 192})
    back = cfx.onnx.load(path)
    for got in (run(path, (x,))[0], back(x)):
        torch.testing.assert_close(got, model(x), rtol=1e-5, atol=1e-4)
    if opset >= 21:
        low = str(cfx.lower(back).graph)
        assert "cfx.ops.dequantize_per_channel_group" in low and "cfx.ops.linear" in low


# ---- models in the reference form, written by hand


class Layer(nn.Module):
    """A weight as integers by output channel, and the bias as it is."""

    def __init__(self, seed, *shape):
        super().__init__()
        w = random(seed, *shape) * 0.2
        scale = w.flatten(1).abs().amax(1) / 127
        wide = scale.reshape(-1, *[1] * (w.dim() - 1))
        self.register_buffer("weight_int8", (w / wide).round().to(I8))
        self.register_buffer("weight_scale", scale)
        self.register_buffer("weight_zero", torch.zeros(len(scale), dtype=torch.int64))
        self.bias = nn.Parameter(random(seed + 1, shape[0]) * 0.1)

    def weight(self):
        return q.dequantize_per_channel(self.weight_int8, self.weight_scale, self.weight_zero, 0,
                                        -128, 127, I8)


def through(x, scale, zero, dtype=U8):
    """Quantized and dequantized."""
    low, high = (0, 255) if dtype == U8 else (-128, 127)
    y = q.quantize_per_tensor(x, scale, zero, low, high, dtype)
    return q.dequantize_per_tensor(y, scale, zero, low, high, dtype)


class ConvNet(nn.Module):
    out_scale = 0.05

    def __init__(self):
        super().__init__()
        self.first, self.deep = Layer(10, 8, 3, 3, 3), Layer(12, 8, 1, 3, 3)
        self.last, self.fc = Layer(14, 6, 8, 1, 1), Layer(16, 5, 6)

    def forward(self, x):
        x = through(x, 0.03, 128)
        x = through(F.relu(F.conv2d(x, self.first.weight(), self.first.bias, 2, 1)), 0.02, 0)
        y = F.conv2d(x, self.deep.weight(), self.deep.bias, 1, 1, 1, 8)
        x = through(through(y, 0.04, 100) + x, 0.05, 90)
        x = through(F.relu(F.conv2d(x, self.last.weight(), self.last.bias)), 0.03, 0)
        x = through(F.adaptive_avg_pool2d(F.max_pool2d(x, 2), 1), 0.02, 3).flatten(1)
        return through(F.linear(x, self.fc.weight(), self.fc.bias), self.out_scale, 120)


class Block(nn.Module):
    """Attention and a feed-forward layer, with residuals and layer norm in float."""

    out_scale = 0.05

    def __init__(self):
        super().__init__()
        self.qkv, self.out = Layer(20, 48, 16), Layer(22, 16, 16)
        self.up, self.down = Layer(24, 32, 16), Layer(26, 16, 32)
        self.norms = nn.ModuleList([nn.LayerNorm(16), nn.LayerNorm(16)])

    def forward(self, x):
        h = through(self.norms[0](x), 0.03, 5, I8)
        h = through(F.linear(h, self.qkv.weight(), self.qkv.bias), 0.04, 128)
        a, b, c = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in h.chunk(3, -1))
        scores = through(a @ b.transpose(-2, -1), 0.1, 128) / 8**0.5
        h = through(scores.softmax(-1), 1 / 256, 0) @ c
        h = through(h.transpose(1, 2).flatten(2), 0.03, 128)
        x = x + through(F.linear(h, self.out.weight(), self.out.bias), 0.03, 128)
        h = through(self.norms[1](x), 0.03, 0, I8)
        h = through(F.gelu(F.linear(h, self.up.weight(), self.up.bias)), 0.02, 10)
        return through(x + F.linear(h, self.down.weight(), self.down.bias), self.out_scale, 128)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("make, shape", [(ConvNet, (16, 3, 12, 12)), (Block, (2, 7, 16))],
                         ids=["conv", "block"])
def test_reference_form(make, shape, opset, tmp_path):
    """Out within a step of the scale in ONNX Runtime (which divides by it), and back as it was."""
    path, model, x = str(tmp_path / "m.onnx"), make().eval(), random(30, *shape)
    with torch.no_grad():
        want = model(x)
        made = save(model, (x,), path, opset)
        names = operators(made)
        weights = [i for i in made.graph.initializer if i.data_type == onnx.TensorProto.INT8 and
                   len(i.dims) > 1]
        assert len(weights) == 4 and "Cast" not in names
        assert names.count("DequantizeLinear") == names.count("QuantizeLinear") + 4
        got = run(path, (x,))[0]
        assert (got - want).abs().max() <= make.out_scale * 1.01
        assert (got == want).float().mean() > 0.9
        back = cfx.onnx.load(path)
        assert torch.equal(back(x), want)
        text = str(cfx.lower(back).graph)
        for compiled in (cfx.compile(back), cfx.runtime.load(path)):  # in integers
            assert (torch.as_tensor(compiled(x)) - want).abs().max() <= make.out_scale * 1.01
    assert text.count("cfx.ops.quantize_per_tensor") == names.count("QuantizeLinear")
    assert text.count("cfx.ops.dequantize_per_channel") == 4
    assert text.count("cfx.ops.linear](") + text.count("cfx.ops.conv2d](") == 4
    kept = [t for t in back.state_dict().values() if t.dtype == I8 and t.dim() > 1]
    assert len(kept) == 4


class Dynamic(nn.Module):
    def __init__(self, symmetric):
        super().__init__()
        self.fc = Layer(40, 5, 16)
        self.choose = q.choose_qparams_symmetric.tensor if symmetric else q.choose_qparams.tensor
        self.range = (-128, 127, I8) if symmetric else (0, 255, U8)

    def forward(self, x):
        low, high, dtype = self.range
        scale, zero = self.choose(x, low, high, 1e-5, dtype)
        x = q.quantize_per_tensor.tensor(x, scale, zero, low, high, dtype)
        x = q.dequantize_per_tensor.tensor(x, scale, zero, low, high, dtype)
        return F.linear(x, self.fc.weight(), self.fc.bias)


@pytest.mark.parametrize("symmetric", [False, True])
def test_dynamic(symmetric, tmp_path):
    path, model = str(tmp_path / "m.onnx"), Dynamic(symmetric).eval()
    with torch.no_grad():
        save(model, (random(41, 3, 16),), path, 18)
        for x in (random(42, 3, 16), random(43, 3, 16).abs() * 100, torch.zeros(3, 16)):
            step = (x.max() - x.min()) / 127
            bound = float(step * model.fc.weight().abs().sum(1).max()) + 1e-5
            torch.testing.assert_close(run(path, (x,))[0], model(x), rtol=0, atol=bound)


@pytest.mark.parametrize("symmetric", [False, True])
def test_by_token(symmetric, tmp_path):
    choose = q.choose_qparams_per_token if symmetric else q.choose_qparams_per_token_asymmetric

    def call(x):
        scale, zero = choose(x, I8)
        y = q.quantize_per_token(x, scale, zero, -128, 127, I8)
        return scale, zero, y, q.dequantize_per_token(y, scale, zero, -128, 127, I8, torch.float32)

    path, x = str(tmp_path / "m.onnx"), random(44, 2, 9, 16)
    x[0, 0], x[0, 1], x[0, 2] = 0, x[0, 1].abs(), -x[0, 2].abs()
    save(Function(call), (x,), path, 18)
    for got, want in zip(run(path, (x,)), call(x)):
        assert got.dtype == want.dtype
        torch.testing.assert_close(got.double(), want.double(), rtol=1e-6, atol=1e-7)


# ---- files of others


def model_of(nodes, inputs, outputs, initializers=(), opset=21):
    graph = onnx.helper.make_graph(nodes, "g", inputs, outputs, initializers)
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    made.ir_version = 10
    onnx.checker.check_model(made, full_check=True)
    return made


@pytest.mark.parametrize("zero", [None, 3])
def test_plain_nodes_become_rows(zero, tmp_path):
    """Scales that a run computes, too; what has no row is what the standard writes."""
    path, x = str(tmp_path / "m.onnx"), random(50, 4, 6) * 9
    value, number = onnx.helper.make_tensor_value_info, onnx.numpy_helper.from_array
    extra = [] if zero is None else ["zero"]
    nodes = [onnx.helper.make_node("QuantizeLinear", ["x", "scale", *extra], ["q"]),
             onnx.helper.make_node("DequantizeLinear", ["q", "scale", *extra], ["y"])]
    made = model_of(nodes, [value("x", 1, [4, 6])], [value("y", 1, [4, 6])],
                    [number(np.float32(0.3), "scale")] +
                    ([] if zero is None else [number(np.int8(zero), "zero")]))
    onnx.save(made, path)
    gm = cfx.onnx.load(path)
    text = str(cfx.lower(gm).graph)
    assert "cfx.ops.quantize_per_tensor(" in text or "cfx.ops.quantize_per_tensor]" in text
    assert "cfx.ops.dequantize_per_tensor]" in text
    torch.testing.assert_close(gm(x), run(path, (x,))[0])


def test_one_scale_and_three_zero_points(tmp_path):
    """Not a file that the standard allows; the zero points must not count as none."""
    path = str(tmp_path / "m.onnx")
    value, number = onnx.helper.make_tensor_value_info, onnx.numpy_helper.from_array
    nodes = [onnx.helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["y"])]
    graph = onnx.helper.make_graph(nodes, "g", [value("x", 2, [4, 6])], [value("y", 1, [4, 6])],
                                   [number(np.float32(0.3), "scale"),
                                    number(np.uint8([1, 2, 3]), "zero")])  # fmt: skip
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)])
    made.ir_version = 10
    onnx.save(made, path)
    with pytest.raises((ValueError, RuntimeError), match="size|shape|broadcast"):
        cfx.onnx.load(path)(torch.zeros(4, 6, dtype=U8))


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.deep = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, 1, 1, 1, 8)
        self.fc = nn.Linear(8, 16)

    def forward(self, x):
        return self.fc(F.relu(self.deep(F.relu(self.first(x)))).mean((2, 3)))


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


@pytest.mark.parametrize("make, shape, products", [(Images, (2, 3, 8, 8), 3),
                                                   (Tokens, (2, 7, 16), 2)], ids=["conv", "block"])
def test_files_of_onnx_runtime(make, shape, products, tmp_path):
    """Quantized by its own tool: the same results, and the products are of integers."""
    tool = pytest.importorskip("onnxruntime.quantization", reason="a part of onnxruntime")
    torch.manual_seed(0)
    plain, path, model = str(tmp_path / "f.onnx"), str(tmp_path / "q.onnx"), make().eval()
    inputs = [random(60 + i, *shape) for i in range(8)]
    with torch.no_grad():
        cfx.onnx.save(cfx.capture(model, inputs[0]), plain, opset=18)

    class Reader(tool.CalibrationDataReader):
        name = onnx.load(plain).graph.input[0].name
        left = list(inputs)

        def get_next(self):
            return {self.name: self.left.pop().numpy()} if self.left else None

    tool.quantize_static(plain, path, Reader(), quant_format=tool.QuantFormat.QDQ, per_channel=True,
                         activation_type=tool.QuantType.QUInt8, weight_type=tool.QuantType.QInt8)
    made = onnx.load(path)
    scales = {i.name: onnx.numpy_helper.to_array(i) for i in made.graph.initializer}
    last = [n for n in made.graph.node if n.op_type == "QuantizeLinear"][-1]
    want, gm = run(path, inputs[:1])[0], cfx.onnx.load(path)
    compiled = cfx.compile(gm)
    for got in (gm(inputs[0]), compiled(inputs[0]), cfx.runtime.load(path)(inputs[0])):
        assert (torch.as_tensor(got) - want).abs().max() <= 1.01 * float(scales[last.input[1]])
    told = str(cfx.profile(compiled, inputs[0]))
    assert told.count("integer_linear") + told.count("integer_conv") >= products


# ---- models that cfx.quantize has converted


STATIC = ["mobile_se", "residual", "inception", "shared", "functional", "transformer_block",
          "activations", "norms", "transposed", "one_dimension", "operators", "dicts", "nested",
          "mlp", "resnet18"]  # fmt: skip
EACH_RUN = QConfigMapping().set_global(quantize.default_dynamic_qconfig)
WEIGHTS = QConfigMapping().set_global(quantize.int8_weight_only_qconfig)
HALF_BYTES = QConfigMapping().set_global(quantize.int4_weight_only_qconfig(group_size=2))


def step_of(node):
    """The scale of what a result is made of; 0 if it is float."""
    while "flatten" in str(node.target):
        node = node.args[0]
    return node.args[1] if "dequantize_per_tensor" in str(node.target) else 0.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, mapping", [
    *((name, quantize.get_default_qconfig_mapping()) for name in STATIC),
    *((name, EACH_RUN) for name in ("nested", "transformer_block", "mlp", "shared")),
    *((name, WEIGHTS) for name in ("nested", "residual", "mobile_se", "transformer_block")),
    *((name, HALF_BYTES) for name in ("nested", "transformer_block")),
], ids=lambda x: x if isinstance(x, str) else "")  # fmt: skip
def test_converted_models(name, mapping, tmp_path):
    """In ONNX Runtime within a step of the result's scale, and mostly the same."""
    path, (model, inputs) = str(tmp_path / "m.onnx"), quantize_models.MODELS[name]()
    prepared = quantize.prepare_fx(model, mapping, inputs)
    with torch.no_grad():
        prepared(*inputs)
        converted = quantize.convert_fx(prepared)
        cfx.onnx.save(converted, path, inputs=inputs, opset=21)
        want = tree_leaves(converted(*inputs))
    made = onnx.load(path)
    assert "DequantizeLinear" in operators(made)
    assert ("QuantizeLinear" in operators(made)) == (mapping not in (WEIGHTS, HALF_BYTES))
    output = next(n for n in converted.graph.nodes if n.op == "output")
    nodes = [n for n in tree_leaves(output.args[0]) if isinstance(n, cfx.Node)]
    for got, value, node in zip(run(path, inputs), want, nodes, strict=True):
        off = (got - value).abs()
        assert off.max() <= 1.01 * step_of(node) + 1e-5 * value.abs().max()
        assert (off <= 1e-5 * value.abs().max()).float().mean() >= 0.75
