"""ONNX files in the style of older exporters and of tf2onnx: channels last between Transposes,
chains of Identity, Slice and Upsample with attributes, loops of a TensorFlow `while` with a branch
inside, the Scan of opset 8. Results are those of ONNX Runtime."""
import cfx
import cfx.onnx
import cfx.runtime
import numpy as np
import pytest
import torch

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
DRAW = np.random.default_rng(0)


def value(name, sizes=None, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, sizes)


def weight(name, *sizes):
    return numpy_helper.from_array(DRAW.standard_normal(sizes).astype(np.float32), name)


def constant(name, array):
    return numpy_helper.from_array(np.array(array), name)


def model(nodes, x, y, initializers, opset, listed=False):
    """`listed`: initializers are inputs, too, as version 3 of the format has them."""
    inputs = [value("x", x)]
    if listed:
        inputs += [value(t.name, t.dims, t.data_type) for t in initializers]
    graph = helper.make_graph(nodes, "net", inputs, [value("y", y)], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                             ir_version=3 if listed else 8)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def channels_last():
    """tf2onnx: the model is channels last, each convolution is between Transposes, and "same"
    padding is a Pad of its own."""
    nodes = [
        node("Identity", "x", "x:0"), node("Identity", "x:0", "StatefulPartitionedCall/x"),
        node("Transpose", "StatefulPartitionedCall/x", "nchw", perm=[0, 3, 1, 2]),
        node("Pad", "nchw pads", "padded", mode="constant"),
        node("Conv", "padded w", "conv", strides=[2, 2], kernel_shape=[3, 3]),
        node("Transpose", "conv", "nhwc", perm=[0, 2, 3, 1]),
        node("Add", "nhwc bias", "biased"), node("Relu", "biased", "relu"),
        node("Transpose", "relu", "again", perm=[0, 3, 1, 2]),
        node("GlobalAveragePool", "again", "pool"), node("Squeeze", "pool axes", "flat"),
        node("MatMul", "flat dense", "logits"), node("Softmax", "logits", "y:0", axis=-1),
        node("Identity", "y:0", "y")]  # fmt: skip
    return model(nodes, ["n", 9, 8, 3], ["n", 5],
                 [constant("pads", [0, 0, 0, 0, 0, 0, 1, 1]), weight("w", 4, 3, 3, 3),
                  weight("bias", 4), constant("axes", [2, 3]), weight("dense", 4, 5)], 13)


def attributes_of_opset_9():
    """Keras2onnx and PyTorch 1.1: Slice, Upsample, Squeeze and Clip as they were, and weights
    that are inputs."""
    nodes = [
        node("Slice", "x", "rows", starts=[1, 0], ends=[2147483647, -1], axes=[2, 3]),
        node("Upsample", "rows scales", "large", mode="nearest"),
        node("Conv", "large w", "conv", pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        node("BatchNormalization", "conv scale shift mean variance", "norm", epsilon=1e-3),
        node("Clip", "norm", "clipped", min=0.0, max=6.0),
        node("ReduceMean", "clipped", "middle", axes=[2, 3], keepdims=1),
        node("Squeeze", "middle", "flat", axes=[2, 3]), node("Flatten", "flat", "rank2", axis=1),
        node("Gemm", "rank2 dense bias", "y", transB=1)]  # fmt: skip
    variance = numpy_helper.from_array(np.abs(DRAW.standard_normal(4)).astype(np.float32),
                                       "variance")
    scales = constant("scales", np.array([1, 1, 2, 2], np.float32))
    return model(nodes, ["n", 2, 5, 6], ["n", 3],
                 [scales, weight("w", 4, 2, 3, 3), weight("scale", 4), weight("shift", 4),
                  weight("mean", 4), variance, weight("dense", 3, 4), weight("bias", 3)], 9, True)


def shapes_of_keras():
    """Reshape to sizes that Shape, StridedSlice (Slice) and Pack (Concat) make, in int32."""
    nodes = [
        node("Shape", "x", "shape"), node("Cast", "shape", "shape32", to=TensorProto.INT32),
        node("Slice", "shape32 zero one zero", "batch"), node("Squeeze", "batch zero", "n"),
        node("Unsqueeze", "n zero", "n1"), node("Concat", "n1 six", "sizes", axis=0),
        node("Cast", "sizes", "sizes64", to=INT64), node("Reshape", "x sizes64", "flat"),
        node("Unsqueeze", "flat one", "wide"), node("Tile", "wide times", "y")]  # fmt: skip
    return model(nodes, ["n", 2, 3], ["n", 2, 6],
                 [constant("zero", [0]), constant("one", [1]),
                  constant("six", np.array([6], np.int32)), constant("times", [1, 2, 1])], 13)


def while_of_tensorflow():
    """A `while` whose condition is computed at the end of the body, with a branch inside."""
    half = helper.make_graph([node("Mul", "x_in point5", "halved")], "then", [],
                             [value("halved")])
    less = helper.make_graph([node("Sub", "x_in one", "reduced")], "else", [], [value("reduced")])
    body = helper.make_graph(
        [node("ReduceSum", "x_in", "sum", keepdims=0), node("Greater", "sum ten", "large"),
         helper.make_node("If", ["large"], ["x_out"], then_branch=half, else_branch=less),
         node("Add", "i_in one64", "i_out"), node("ReduceSum", "x_out", "after", keepdims=0),
         node("Greater", "after zero", "positive"), node("Less", "i_out limit", "few"),
         node("And", "positive few", "cond_out")], "body",
        [value("round", [], INT64), value("cond_in", [], BOOL), value("i_in", [], INT64),
         value("x_in", ["n", 3])],
        [value("cond_out", [], BOOL), value("i_out", [], INT64), value("x_out", ["n", 3])])
    nodes = [
        node("ReduceSum", "x", "total", keepdims=0), node("Greater", "total zero", "begins"),
        helper.make_node("Loop", ["", "begins", "start", "x"], ["i", "last"], body=body),
        node("Cast", "i", "count", to=FLOAT), node("Add", "last count", "y")]  # fmt: skip
    numbers = {"point5": 0.5, "one": 1.0, "ten": 10.0, "zero": 0.0}
    return model(nodes, ["n", 3], ["n", 3],
                 [constant(k, np.float32(v)) for k, v in numbers.items()]
                 + [constant("one64", np.int64(1)), constant("limit", np.int64(8)),
                    constant("start", np.int64(0))], 13)


INPUTS = {
    channels_last: [(1, 9, 8, 3), (3, 9, 8, 3)],
    attributes_of_opset_9: [(1, 2, 5, 6), (3, 2, 5, 6)],
    shapes_of_keras: [(2, 2, 3), (5, 2, 3)],
    while_of_tensorflow: [(2, 3), (6, 3), (1, 3)],
}


@pytest.mark.parametrize("make", INPUTS, ids=lambda make: make.__name__)
def test_older(make):
    data = make().SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    programs = cfx.onnx.load(data), cfx.runtime.load(data)
    for sizes in INPUTS[make]:
        x = np.abs(DRAW.standard_normal(sizes)).astype(np.float32) * 3
        want = torch.from_numpy(session.run(None, {"x": x})[0])
        for program in programs:
            torch.testing.assert_close(program(torch.from_numpy(x)).detach(), want,
                                       rtol=1e-4, atol=1e-5)


def scan_of_opset_8(lengths, directions):
    """Many sequences, scanned together: the body carries a sum, and uses a value around it."""
    body = helper.make_graph(
        [node("Add", "s a", "t"), node("Mul", "t w", "u"), node("Mul", "u b", "row"),
         node("Identity", "t", "s_out")], "body",
        [value("s", [2]), value("a", [2]), value("b", [])],
        [value("s_out", [2]), value("row", [2])])
    scan = helper.make_node("Scan", ["n" if lengths else "", "start", "x", "y"], ["last", "rows"],
                            num_scan_inputs=2, body=body, directions=directions)
    inputs = [value("w", [2]), value("start", ["many", 2]), value("x", ["many", "long", 2]),
              value("y", ["many", "long"])]
    inputs += [value("n", ["many"], INT64)] if lengths else []
    graph = helper.make_graph([scan], "net", inputs,
                              [value("last", ["many", 2]), value("rows", ["many", "long", 2])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=3)


@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("directions", [None, [0, 1], [1, 0]], ids=str)
def test_scan_of_opset_8(lengths, directions):
    """Rows after the end of a sequence are undefined in the standard; both have zeros."""
    data = scan_of_opset_8(lengths, directions).SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    programs = cfx.onnx.load(data), cfx.runtime.load(data)
    for many, long in ((1, 3), (3, 5), (4, 1)):
        feeds = {name: DRAW.standard_normal(sizes).astype(np.float32) for name, sizes in (
            ("w", (2,)), ("start", (many, 2)), ("x", (many, long, 2)), ("y", (many, long)))}
        if lengths:
            feeds["n"] = np.append(DRAW.integers(1, long + 1, many - 1), long)
        want = [torch.from_numpy(array) for array in session.run(None, feeds)]
        for program in programs:
            got = program(*[torch.from_numpy(array) for array in feeds.values()])
            torch.testing.assert_close(list(got), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("change, message", [
    ({"directions": [0]}, "directions do not fit the inputs"),
    ({"num_scan_inputs": 4}, "num_scan_inputs does not fit the inputs"),
    ({"body": None}, "the graph 'body' is missing"),
])  # fmt: skip
def test_scan_of_opset_8_that_does_not_fit(change, message):
    broken = scan_of_opset_8(True, [0, 0])
    scan = broken.graph.node[0]
    kept = [a for a in scan.attribute if a.name not in change]
    del scan.attribute[:]
    scan.attribute.extend(kept + [helper.make_attribute(k, v) for k, v in change.items() if v])
    with pytest.raises(ValueError, match=rf"node 'last' \(Scan\): {message}"):
        cfx.onnx.load(broken.SerializeToString())
