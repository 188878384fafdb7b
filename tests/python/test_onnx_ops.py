"""Operators of ONNX in ways that the tests of the standard do not have, against ONNX Runtime: all
cells and directions, every padding, resizing of every kind, sizes that are not known beforehand."""
import itertools

import numpy as np
import pytest
import torch

import cfx

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
onnxruntime.set_default_logger_severity(4)


class Case:
    """A model of one node. Inputs are arrays, or None; those in `known` are initializers, `free`
    has dimensions of inputs that have a name instead of a size."""

    def __init__(self, op, inputs, attributes=None, opset=20, outputs=1, known=(), free=None,
                 tolerance=1e-4, name=""):
        self.name = f"{op}-{opset}-{name}" if name else f"{op}-{opset}"
        self.tolerance = tolerance
        graph = onnx.GraphProto(name="g")
        names = [f"i{i}" if x is not None else "" for i, x in enumerate(inputs)]
        graph.node.append(onnx.helper.make_node(op, names, [f"o{i}" for i in range(outputs)],
                                                **(attributes or {})))
        self.feeds = {}
        for i, x in enumerate(inputs):
            if x is None:
                continue
            if i in known:
                graph.initializer.append(onnx.numpy_helper.from_array(x, names[i]))
                continue
            shape = [f"d{i}_{d}" if d in (free or {}).get(i, ()) else n
                     for d, n in enumerate(x.shape)]
            kind = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
            graph.input.append(onnx.helper.make_tensor_value_info(names[i], kind, shape))
            self.feeds[names[i]] = x
        graph.output.extend(onnx.ValueInfoProto(name=f"o{i}") for i in range(outputs))
        opsets = [onnx.helper.make_opsetid("", opset)]
        self.model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def check(self):
        data = self.model.SerializeToString()
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        want = session.run(None, self.feeds)
        got = cfx.runtime.load(data)(*[torch.from_numpy(x.copy()) for x in self.feeds.values()])
        for a, b in zip(want, [got] if len(want) == 1 else got, strict=True):
            assert a.dtype == b.numpy().dtype and a.shape == tuple(b.shape)
            np.testing.assert_allclose(b.numpy().astype(float), a.astype(float),
                                       rtol=self.tolerance, atol=self.tolerance)


def floats(*shape):
    return np.random.default_rng(sum(shape) + len(shape)).standard_normal(shape, np.float32)


def integers(dtype, *shape):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(sum(shape))
    return rng.integers(max(info.min, -1000), min(info.max, 1000), shape).astype(dtype)


def number(x, dtype=np.float32):
    return np.array(x, dtype)


# ---- recurrent layers

OTHERS = {  # activations, alpha, beta
    "LSTM": (["HardSigmoid", "Softsign", "Elu"], [0.3, 1.0], [0.4]),
    "GRU": (["HardSigmoid", "LeakyRelu"], [0.3, 0.1], [0.4]),
    "RNN": (["Affine"], [0.7], [0.1]),
}


def recurrent():
    for (cell, gates), (direction, n), lengths, kind in itertools.product(
            (("LSTM", 4), ("GRU", 3), ("RNN", 1)),
            (("forward", 1), ("reverse", 1), ("bidirectional", 2)),
            (None, number([5, 2, 4], np.int32)), ("plain", "clip", "others", "flag")):
        if cell == "LSTM" and kind == "clip":
            continue  # the standard limits the input of every activation; ONNX Runtime not of h
        options = {"hidden_size": 4, "direction": direction}
        if kind == "clip":
            options["clip"] = 0.4
        elif kind == "others":
            names, alpha, beta = OTHERS[cell]
            options |= {"activations": names * n, "activation_alpha": alpha * n,
                        "activation_beta": beta * n}
        elif kind == "flag":
            options |= {"LSTM": {"input_forget": 1}, "GRU": {"linear_before_reset": 1},
                        "RNN": {"activations": ["Relu"] * n}}[cell]
        inputs = [floats(5, 3, 2), floats(n, 4 * gates, 2), floats(n, 4 * gates, 4),
                  floats(n, 8 * gates), lengths, floats(n, 3, 4)]
        if cell == "LSTM":
            inputs += [floats(n, 3, 4), *([floats(n, 12)] if kind == "flag" else [])]
        yield Case(cell, inputs, options, 14, 3 if cell == "LSTM" else 2, (1, 2, 3), {0: (0, 1)},
                   name=f"{direction}-{kind}-{lengths is not None}")


# ---- windows


def pools():
    for n, op in itertools.product((1, 2, 3), ("MaxPool", "AveragePool", "LpPool")):
        x = floats(2, 3, *(9, 8, 7)[:n])
        for pads, ceil, stride in itertools.product(
                ([0] * 2 * n, [1] * 2 * n, [0] * n + [1] * n, [2] * n + [1] * n), (0, 1),
                (1, 2, 3)):
            options = {"kernel_shape": [3] * n, "strides": [stride] * n, "pads": pads,
                       "ceil_mode": ceil}
            for counts in ((0, 1) if op == "AveragePool" else (0,)):
                if counts:
                    options["count_include_pad"] = 1
                yield Case(op, [x], options, 18, 2 if op == "MaxPool" else 1,
                           free={0: (2,)} if stride == 2 else None,
                           name=f"{n}d-{pads[0]}{pads[-1]}-{ceil}{stride}{counts}")
        for way in ("SAME_UPPER", "SAME_LOWER", "VALID"):
            options = {"kernel_shape": [3] * n, "strides": [2] * n, "auto_pad": way}
            yield Case(op, [x], options, 18, free={0: (0, 2)}, name=f"{n}d-{way}")
    square = {"kernel_shape": [2, 2], "strides": [2, 2]}
    yield Case("MaxPool", [floats(1, 2, 6, 5)], square | {"storage_order": 1}, 12, 2,
               name="columns")
    yield Case("MaxPool", [integers(np.uint8, 1, 2, 6, 5)], square | {"pads": [1] * 4}, 12,
               name="uint8")
    for op in ("GlobalLpPool", "GlobalMaxPool", "GlobalAveragePool"):
        yield Case(op, [floats(2, 3, 4, 5)], opset=13, free={0: (2, 3)})
    places = np.array([[[[0, 3], [8, 15]], [[16, 19], [26, 31]]]])
    yield Case("MaxUnpool", [floats(1, 2, 2, 2), places], square, 11)


def convolutions():
    for n in (1, 2, 3):
        x = floats(2, 4, *(9, 8, 7)[:n])
        for way, stride, dilation in itertools.product(
                ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"), (1, 2), (1, 2)):
            if way.startswith("SAME") and dilation > 1:
                continue  # ONNX Runtime does not do it
            options = {"strides": [stride] * n, "dilations": [dilation] * n, "group": 2}
            options |= {"pads": [*range(n), *[1] * n]} if way == "NOTSET" else {"auto_pad": way}
            yield Case("Conv", [x, floats(6, 2, *[3] * n), floats(6)], options, 11, known=(1, 2),
                       free={0: (0, 2)}, name=f"{n}d-{way}-{stride}{dilation}")
        for stride, (name, options) in itertools.product((1, 2, 3), {
                "plain": {}, "pads": {"pads": [1] * 2 * n}, "end": {"pads": [0] * n + [1] * n},
                "upper": {"auto_pad": "SAME_UPPER"}, "lower": {"auto_pad": "SAME_LOWER"},
                "shape": {"output_shape": None}, "more": {"output_padding": None}}.items()):
            options = dict(options, strides=[stride] * n, group=2)
            if "output_shape" in options:
                options["output_shape"] = [9 * stride + 1, 8 * stride, 7 * stride][:n]
            if "output_padding" in options:
                options |= {"output_padding": [stride - 1] * n, "pads": [1, 0] * n}
            yield Case("ConvTranspose", [x, floats(4, 3, *[3] * n), floats(6)], options, 11,
                       known=(1,), name=f"{n}d-{stride}-{name}")
    yield Case("DeformConv", [floats(1, 4, 7, 7), floats(6, 2, 3, 3), floats(1, 36, 7, 7),
                              floats(6), abs(floats(1, 18, 7, 7))],
               {"pads": [1] * 4, "group": 2, "offset_group": 2}, 19)


# ---- resizing and sampling


def resizing():
    x, roi = floats(1, 2, 5, 6), number([0, 0, 0.1, 0.2, 1, 1, 0.8, 1.2])
    for opset, mode in itertools.product((11, 13, 18, 19), ("nearest", "linear", "cubic")):
        transforms = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
                      "tf_crop_and_resize"]
        transforms += {11: ["tf_half_pixel_for_nn"], 19: ["half_pixel_symmetric"]}.get(opset, [])
        ways = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        for transform, scales, way in itertools.product(
                transforms, ((2.0, 1.5), (0.6, 0.5), (3.0, 0.5)),
                ways if mode == "nearest" else ("floor",)):
            if transform == "align_corners" and scales == (0.6, 0.5):
                continue  # the standard does not round the size 5 * 0.6 there, ONNX Runtime does
            if transform == "half_pixel_symmetric" and scales == (0.6, 0.5):
                continue  # a place lies on the edge between two, and rounding decides
            options = {"mode": mode, "coordinate_transformation_mode": transform,
                       "nearest_mode": way}
            if transform == "tf_crop_and_resize":
                options["extrapolation_value"] = 7.0
            yield Case("Resize", [x, roi, number([1, 1, *scales])], options, opset, known=(1, 2),
                       name=f"{mode}-{transform}-{way}-{scales[0]}")
    for opset, mode, outside in itertools.product((18, 19), ("linear", "cubic"), (0, 1)):
        yield Case("Resize", [x, None, number([1, 1, 0.5, 0.4])],
                   {"mode": mode, "antialias": 1, "exclude_outside": outside}, opset, known=(2,),
                   name=f"smooth-{mode}-{outside}")
        yield Case("Resize", [x, None, None, np.array([1, 2, 7, 4])], {"mode": mode}, opset,
                   free={0: (2, 3)}, name=f"sizes-{mode}")
    for mode in ("nearest", "linear"):
        yield Case("Upsample", [x], {"mode": mode, "scales": [1.0, 1.0, 2.0, 3.0]}, 7, name=mode)
        yield Case("Upsample", [x, number([1, 1, 2, 3])], {"mode": mode}, 9, known=(1,), name=mode)
        yield Case("Resize", [x, number([1, 1, 2, 3])], {"mode": mode}, 10, known=(1,), name=mode)


def sampling():
    for mode, edges, align in itertools.product(("linear", "nearest", "cubic"),
                                                ("zeros", "border", "reflection"), (0, 1)):
        options = {"mode": mode, "padding_mode": edges, "align_corners": align}
        yield Case("GridSample", [floats(2, 3, 5, 6), floats(2, 4, 3, 2) * 1.3], options,
                   tolerance=1e-3, name=f"{mode}-{edges}-{align}")
        if mode != "cubic":
            yield Case("GridSample", [floats(2, 3, 4, 5, 6), floats(2, 4, 3, 2, 3) * 1.3], options,
                       name=f"3d-{mode}-{edges}-{align}")
    image, rois = floats(2, 3, 8, 8), number([[1, 1, 14, 13], [0, 3, 9, 9.5], [3, 3, 3.2, 3.1]])
    for mode, points, (opset, half) in itertools.product(
            ("avg", "max"), (0, 2, 3),
            ((10, None), (16, "half_pixel"), (16, "output_half_pixel"))):
        options = {"mode": mode, "output_height": 3, "output_width": 2, "sampling_ratio": points,
                   "spatial_scale": 0.5}
        if half:
            options["coordinate_transformation_mode"] = half
        yield Case("RoiAlign", [image, rois, np.array([1, 0, 1])], options, opset,
                   name=f"{mode}-{points}-{half}")
    yield Case("MaxRoiPool", [image, number([[1, 1, 1, 14, 13], [0, 0, 3, 9, 9]])],
               {"pooled_shape": [3, 2], "spatial_scale": 0.5}, 7)
    corner = abs(floats(2, 20, 2))
    boxes = np.concatenate([corner, corner + abs(floats(2, 20, 2))], -1)
    for center in (0, 1):
        inputs = [boxes, abs(floats(2, 3, 20)), np.array([4]), number([0.3]), number([0.2])]
        yield Case("NonMaxSuppression", inputs, {"center_point_box": center}, 11, name=str(center))


# ---- normalization, quantization, activations


def others():
    yield Case("LRN", [floats(2, 5, 4, 4)], {"size": 3, "alpha": 0.1, "beta": 0.6, "bias": 2.0}, 13)
    yield Case("LayerNormalization", [floats(2, 3, 4), floats(4), floats(4)], opset=17, outputs=3,
               free={0: (0, 1)})
    for opset, n in ((18, 3), (21, 6)):
        yield Case("GroupNormalization", [floats(2, 6, 4), floats(n), floats(n)], {"num_groups": 3},
                   opset)
    yield Case("BatchNormalization", [floats(2, 3, 4), floats(3), floats(3), floats(3),
                                      abs(floats(3))], opset=9, free={0: (0, 2)})
    yield Case("InstanceNormalization", [floats(2, 3, 4, 5), floats(3), floats(3)], opset=7)
    yield Case("LpNormalization", [floats(2, 3, 3)], {"p": 1, "axis": 1}, 11)
    yield Case("MeanVarianceNormalization", [floats(2, 3, 3, 2)], opset=13)
    scales = abs(floats(4)) * 0.01 + 0.01
    zero = number(130, np.uint8)
    yield Case("QLinearConv", [integers(np.uint8, 1, 3, 6, 6), number(0.02), zero,
                               integers(np.int8, 4, 3, 3, 3), scales, np.zeros(4, np.int8),
                               number(0.1), zero, integers(np.int32, 4)],
               {"pads": [1] * 4}, 10, known=range(1, 9), tolerance=1)  # one step, at a tie
    yield Case("QLinearMatMul", [integers(np.uint8, 2, 5, 4), number(0.02), zero,
                                 integers(np.uint8, 4, 3), scales[:3],
                                 number([100, 110, 120], np.uint8), number(0.1), zero],
               opset=10, known=range(1, 8), tolerance=1)
    yield Case("MatMulInteger", [integers(np.uint8, 5, 4), integers(np.int8, 4, 3), zero,
                                 number(3, np.int8)], opset=10)
    yield Case("ConvInteger", [integers(np.uint8, 1, 3, 6, 6), integers(np.uint8, 4, 3, 3, 3),
                               zero, number(3, np.uint8)], {"pads": [1, 0, 1, 2]}, 10)
    for axis, dtype in ((1, np.int8), (-2, np.uint8)):
        zeros = number([1, 2, 3], dtype)
        yield Case("QuantizeLinear", [floats(2, 3, 4), scales[:3], zeros], {"axis": axis}, 13,
                   name=str(axis))
        yield Case("DequantizeLinear", [integers(dtype, 2, 3, 4), scales[:3], zeros],
                   {"axis": axis}, 13, name=str(axis))
    yield Case("DynamicQuantizeLinear", [floats(3, 4)], opset=11, outputs=3)
    for op, options in {
            "Selu": {"alpha": 1.5, "gamma": 1.2}, "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
            "ThresholdedRelu": {"alpha": 0.5}, "Shrink": {"lambd": 0.4, "bias": 0.2},
            "Elu": {"alpha": 0.5}, "Celu": {"alpha": 0.5}, "LeakyRelu": {"alpha": 0.3},
            "Softplus": {}, "Softsign": {}, "Mish": {}, "HardSwish": {},
            "Gelu": {"approximate": "tanh"}}.items():
        yield Case(op, [floats(3, 4) * 3], options, free={0: (0,)})
    yield Case("PRelu", [floats(2, 3, 4, 4), floats(3, 1, 1)], opset=16)
    yield Case("Det", [floats(2, 3, 3)], opset=11)


@pytest.mark.parametrize("family", [recurrent, pools, convolutions, resizing, sampling, others])
def test_as_onnx_runtime(family):
    cases = list(family())
    assert len(cases) > 20
    wrong = []
    for case in cases:
        try:
            case.check()
        except Exception as error:  # noqa: BLE001: all of them are shown
            wrong.append(f"{case.name}: {' '.join(str(error).split())[:200]}")
    assert wrong == []


def model_of(op, inputs, **attributes):
    return Case(op, inputs, attributes, 19).model.SerializeToString()


@pytest.mark.parametrize("op, inputs, attributes, message", [
    ("Conv", [floats(1, 2, 5), floats(3, 2, 3)], {"strides": [0]}, "'strides' has 0"),
    ("Conv", [floats(1, 2, 5), floats(3, 2, 3)], {"pads": [1]},
     "'pads' has 1 numbers; it must have 2"),
    ("Conv", [floats(1, 2), floats(3, 2, 3)], {}, "it must have at least 3"),
    ("Resize", [floats(2, 3)], {}, "either scales or sizes must be given"),
    ("GroupNormalization", [floats(1, 4, 2), floats(2), floats(2)], {"num_groups": 0},
     "num_groups must be positive"),
    ("LSTM", [floats(5, 3, 2), floats(1, 16, 2), floats(1, 16, 4)],
     {"hidden_size": 4, "activations": ["Sine", "Tanh", "Tanh"]}, "'Sine' is not an activation"),
    ("QuantizeLinear", [floats(2, 3), floats(5, 5), integers(np.uint8, 5, 5)], {"axis": 7},
     "axis 7 is out of range"),
])
def test_what_is_wrong_is_said(op, inputs, attributes, message):
    with pytest.raises((ValueError, RuntimeError, NotImplementedError), match=message):
        cfx.runtime.load(model_of(op, inputs, **attributes))
