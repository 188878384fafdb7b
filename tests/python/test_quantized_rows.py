"""quantize and dequantize, as torch.ops.quantized_decomposed computes them, bit by bit; and the
integer rows, against what docs/quantization.md says of them, in numpy."""
import itertools
import math

import cfx
import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  registers quantized_decomposed
from torch import nn

theirs = torch.ops.quantized_decomposed
RANGES = {torch.uint8: (0, 255), torch.int8: (-128, 127), torch.int16: (-32768, 32767),
          torch.int32: (-2**31, 2**31 - 1), torch.uint16: (0, 65535),
          torch.float8_e4m3fn: (-448, 448), torch.float8_e5m2: (-57344, 57344)}
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32]
NAN, INF = math.nan, math.inf
EXTREMES = torch.tensor([NAN, INF, -INF, 3e38, -3e38, 0.5, 1.5, 2.5, -0.5, -1.5, 1e10, -1e10, 0.0,
                         -0.0, 1e-45, 126.5, 127.5, 254.5, 255.5, 32766.5, 2.0**31, 100.3] * 3)


def random(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def integers(seed, dtype, *shape):
    low, high = RANGES[dtype]
    made = torch.randint(low, high + 1, shape, generator=torch.Generator().manual_seed(seed))
    return made.to(dtype)


def bits(t):
    """What can be compared although it is NaN."""
    words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    if t.dtype.is_floating_point:
        t = torch.where(t.isnan(), torch.full_like(t, NAN), t) if t.element_size() > 1 else t
        return t.contiguous().view(words[t.element_size()])
    return t


def same(ours, judge):
    assert ours.dtype == judge.dtype
    assert ours.shape == judge.shape
    assert torch.equal(bits(ours), bits(judge)), (ours, judge)


def agree(name, overload, *args, **kwargs):
    judge = getattr(getattr(theirs, name), overload)(*args, **kwargs)
    row = name if overload == "default" else f"{name}_{overload}"
    ours = getattr(cfx.ops, row)(*args, **kwargs)
    same(ours, judge)
    return ours, judge


INPUTS = {
    "extremes": EXTREMES,
    "long": random(1, 5, 733) * 40,
    "empty": torch.empty(0, 3),
    "scalar": torch.tensor(2.5),
    "turned": random(2, 7, 9).t() * 3,
    "gaps": random(3, 9, 20)[::2, 1::3] * 3,
    "expanded": random(4, 1, 5).expand(3, 5) * 3,
    "channels_last": (random(5, 2, 3, 4, 5) * 3).to(memory_format=torch.channels_last),
}


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("dtype", RANGES, ids=str)
def test_quantize_per_tensor(name, dtype):
    low, high = RANGES[dtype]
    for x, (scale, zero) in itertools.product(
            [INPUTS[name], INPUTS[name].half(), INPUTS[name].bfloat16()],
            [(1.0, 0), (0.1, 3), (0.0235, low), (0.5, high), (1 / 3, -1000), (-0.5, 7),
             (1e-45, 0), (1e300, 5)]):
        for limits in ((low, high), (max(low, -5), 11), (20, 10)):
            ours, judge = agree("quantize_per_tensor", "default", x, scale, zero, *limits, dtype)
            if name != "expanded":
                assert ours.stride() == judge.stride()


@pytest.mark.parametrize("dtype", RANGES, ids=str)
def test_dequantize_per_tensor(dtype):
    low, high = RANGES[dtype]
    x = EXTREMES[5:].to(dtype) if dtype.is_floating_point else integers(6, dtype, 9, 50)
    for out, (scale, zero) in itertools.product(
            [None, torch.float16, torch.bfloat16, torch.float32, torch.float64],
            [(1.0, 0), (0.1, 3), (0.0235, low), (0.5, high), (1 / 3, -100), (-0.5, 7)]):
        args = x, scale, zero, low, high, dtype
        agree("dequantize_per_tensor", "default", *args, out_dtype=out)
    agree("dequantize_per_tensor", "default", *args)
    for x in (x[..., ::2], x[:0], x[..., :1].expand(9, 7) if x.dim() > 1 else x[:1].expand(7)):
        agree("dequantize_per_tensor", "default", x, 0.25, 1, low, high, dtype)


@pytest.mark.parametrize("zero", [torch.tensor(3), torch.tensor([3], dtype=torch.int8),
                                  torch.tensor([[2.5]]), torch.tensor(-7, dtype=torch.int32)],
                         ids=str)
@pytest.mark.parametrize("scale", [torch.tensor(0.1), torch.tensor([[0.3]], dtype=torch.float64),
                                   torch.tensor([0.7], dtype=torch.float16)], ids=str)
def test_scales_in_tensors(scale, zero):
    x, q = random(7, 4, 33) * 10, integers(8, torch.uint8, 3, 17)
    for x, q in ((x, q), (x[:0], q[:, :0]), (x.t().half(), q.t())):
        agree("quantize_per_tensor", "tensor", x, scale, zero, 0, 250, torch.uint8)
        for low, high in ((0, 250), (torch.tensor(0), torch.tensor([250])),
                          (torch.tensor(1.5), torch.tensor(249.5))):
            if torch.is_tensor(low):
                agree("quantize_per_tensor", "tensor2", x, scale, zero, low, high, torch.uint8)
                agree("dequantize_per_tensor", "tensor2", q, scale, zero, low, high, torch.uint8)
        for out in (None, torch.float64, torch.float16):
            agree("dequantize_per_tensor", "tensor", q, scale, zero, 0, 250, torch.uint8,
                  out_dtype=out)


@pytest.mark.parametrize("scale_dtype", [torch.float32, torch.float64, torch.float16], ids=str)
@pytest.mark.parametrize("zero_dtype", [torch.int64, torch.int32, torch.int8, torch.float32,
                                        torch.float64], ids=str)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_per_channel(dtype, zero_dtype, scale_dtype):
    low, high = RANGES[dtype]
    for axis, channels in ((0, 3), (1, 5), (2, 40), (-1, 40)):
        scales = (random(9, channels).abs() + 0.01).to(scale_dtype)
        zeros = torch.arange(channels).sub(channels // 2).mul(7).to(zero_dtype)
        x, q = random(10, 3, 5, 40) * 9, integers(11, dtype, 3, 5, 40)
        for turn in (lambda t: t, lambda t: t.transpose(0, 2).contiguous().transpose(0, 2)):
            agree("quantize_per_channel", "default", turn(x), scales, zeros, axis, low, high, dtype)
            agree("dequantize_per_channel", "default", turn(q), scales, zeros, axis, low, high,
                  dtype)
        agree("dequantize_per_channel", "default", q, scales, None, axis, low, high, dtype,
              out_dtype=torch.float64)
        agree("quantize_per_channel", "default", x.bfloat16(), scales[:1], zeros[:1], axis, low,
              high, dtype)


def test_per_channel_of_extremes():
    x = EXTREMES.reshape(2, -1)
    for dtype in RANGES:
        low, high = RANGES[dtype]
        for scales in ([0.0, 0.1], [NAN, INF], [-1, 1e-45]):
            scales = torch.tensor(scales)
            agree("quantize_per_channel", "default", x, scales, torch.tensor([3, 2**40]), 0, low,
                  high, dtype)
    q = integers(12, torch.int32, 2, 30)
    for zeros in (torch.tensor([2**31, -2**31]), torch.tensor([2**40, 1])):
        agree("dequantize_per_channel", "default", q, torch.tensor([0.1, NAN]), zeros, 0, -2**31,
              2**31 - 1, torch.int32)


@pytest.mark.parametrize("name, args, error, text", [
    ("quantize_per_tensor", (torch.ones(2).double(), 1.0, 0, 0, 255, torch.uint8), TypeError,
     "Expecting input to have dtype torch.float32"),
    ("quantize_per_tensor", (torch.ones(2), 1.0, 0, -1, 255, torch.uint8), ValueError,
     "quant_min out of bounds for dtype"),
    ("quantize_per_tensor", (torch.ones(2), 1.0, 0, -128, 128, torch.int8), ValueError,
     "quant_max out of bounds for dtype"),
    ("quantize_per_tensor", (torch.ones(2), 1.0, 0, 0, 255, torch.int64), ValueError,
     "Unsupported dtype"),
    ("quantize_per_tensor", (torch.ones(2), 0.0, 0, 0, 255, torch.uint8), ValueError,
     "the scale is 0"),
    ("quantize_per_tensor_tensor",
     (torch.ones(2), torch.zeros(1), torch.zeros(1), 0, 255, torch.uint8), ValueError,
     "the scale is 0"),
    ("quantize_per_tensor_tensor",
     (torch.ones(2), torch.ones(2), torch.zeros(1), 0, 255, torch.uint8), RuntimeError,
     "one element"),
    ("quantize_per_tensor_tensor2",
     (torch.ones(2), torch.ones(1), torch.zeros(1), torch.tensor(-1), torch.tensor(1),
      torch.uint8), ValueError, "quant_min out of bounds"),
    ("dequantize_per_tensor", (torch.ones(2).byte(), 1.0, 0, 0, 255, torch.int8), TypeError,
     "Expecting input to have dtype"),
    ("quantize_per_channel",
     (torch.ones(2, 3), torch.ones(2), torch.zeros(2).long(), 2, 0, 255, torch.uint8), IndexError,
     "out of range"),
    ("quantize_per_channel",
     (torch.ones(2, 3), torch.ones(2), torch.zeros(2).long(), 1, 0, 255, torch.uint8), RuntimeError,
     "one element for each channel"),
    ("dequantize_per_channel",
     (torch.ones(2, 3).byte(), torch.ones(2), torch.zeros(3).long(), 0, 0, 255, torch.uint8),
     RuntimeError, "as many elements as 'scales'"),
])
def test_refused(name, args, error, text):
    with pytest.raises(error, match=text):
        getattr(cfx.ops, name)(*args)


# ---- integer rows


F = np.float32


def fma(a, b, c):
    """float32, rounded once: the product of two float32 is exact in a double, and so few bits are
    lost in the sum with c that they are found again by exact fractions."""
    from fractions import Fraction
    out = []
    for x, y, z in zip(*(v.ravel() for v in np.broadcast_arrays(F(a), F(b), F(c)))):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        near = F(float(exact))  # rounded twice: one of three neighbours is the nearest
        rivals = [near, np.nextafter(near, F(-INF)), np.nextafter(near, F(INF))]
        out.append(min(rivals, key=lambda f: (abs(Fraction(float(f)) - exact),
                                              int(F(f).view(np.uint32)) & 1)))
    return np.array(out, F).reshape(np.broadcast_shapes(*map(np.shape, (a, b, c))))


def ending(r, zero, low, high, dtype):
    r = np.where(np.isnan(r), F(low - zero), r)
    whole = np.rint(np.minimum(np.maximum(r, F(low - zero)), F(high - zero)))
    return torch.from_numpy(np.asarray(whole.astype(np.int64) + zero)).to(dtype)


ENDS = [(0.05, 128, 0, 255, torch.uint8), (0.11, 0, -128, 127, torch.int8),
        (0.02, -128, -128, 127, torch.int8), (0.3, 255, 0, 255, torch.uint8),
        (0.07, 3, 3, 200, torch.uint8)]
FLOATS = 9.0, 0, 0, 0, torch.float32
PAIRS = list(itertools.product([torch.uint8, torch.int8], repeat=2))


def wide(t, zero=0):
    return t.numpy().astype(np.int64) - zero


def product_args(dtype, w_dtype, n, *w_shape):
    """Weight, scales, zero points of two kinds and none."""
    w = integers(20, w_dtype, n, *w_shape)
    scales = random(21, n).abs() * 0.02 + 0.001
    low, high = RANGES[w_dtype]
    zeros = torch.linspace(low, high, n).long()
    return w, scales, [None, zeros, zeros.int()]


def expected_product(sums, in_scale, w_scales, bias, end, channel_dim):
    sums = np.asarray(sums)
    shape = [1] * sums.ndim
    shape[channel_dim:channel_dim + 1 or None] = [-1] if shape else []
    scale, zero, low, high, dtype = end
    floats = dtype == torch.float32
    s = 1.0 if floats else scale
    factor = F(in_scale * w_scales.double().numpy() / s).reshape(shape)
    add = F(bias.double().numpy() / s).reshape(shape) if bias is not None else F(0)
    r = fma(F(sums), factor, add)
    return torch.from_numpy(r) if floats else ending(r, zero, low, high, dtype)


@pytest.mark.parametrize("dtype, w_dtype", PAIRS, ids=str)
def test_integer_linear(dtype, w_dtype):
    zero = {torch.uint8: 255, torch.int8: -128}[dtype]
    for k, n, end in zip((1, 7, 64, 65, 131), (5, 1, 3, 8, 4), ENDS[:4] + [FLOATS]):
        w, scales, zeros = product_args(dtype, w_dtype, n, k)
        x = integers(22, dtype, 2, 3, k)
        for weight_zero, bias in itertools.product(zeros, (None, random(23, n))):
            wz = 0 if weight_zero is None else weight_zero.long().numpy()[:, None]
            sums = wide(x, zero) @ (wide(w) - wz).T
            judge = expected_product(sums, 0.031, scales, bias, end, -1)
            for a, b in ((x, w), (x.transpose(0, 1).contiguous().transpose(0, 1),
                                  w.t().contiguous().t())):
                same(cfx.ops.integer_linear(a, 0.031, zero, b, scales, weight_zero, bias, *end),
                     judge)
        one = expected_product(wide(x, zero) @ wide(w, 5).T, 0.031, scales[:1], None, end, -1)
        for shape in ((), (1,)):
            same(cfx.ops.integer_linear(x, 0.031, zero, w, scales[0].reshape(shape),
                                        torch.tensor(5).reshape(shape), None, *end), one)


@pytest.mark.parametrize("dtype, w_dtype", PAIRS, ids=str)
def test_integer_conv(dtype, w_dtype):
    zero = {torch.uint8: 3, torch.int8: 127}[dtype]
    for (x_shape, w_shape, stride, padding, dilation, groups), end in zip([
            ((2, 3, 9), (4, 3, 3), [2], [1], [1], 1),
            ((2, 4, 7, 6), (6, 2, 3, 2), [1, 2], [1, 0], [1, 2], 2),
            ((4, 5, 6), (4, 1, 3, 3), [1, 1], [2, 1], [2, 1], 4),
            ((1, 2, 4, 5, 3), (3, 2, 2, 1, 3), [1, 1, 2], [1, 0, 1], [1, 1, 1], 1),
            ((2, 2, 5, 5), (2, 2, 3, 3), [1, 1], [3, 3], [3, 3], 1)],
            ENDS[:4] + [FLOATS]):
        w, scales, zeros = product_args(dtype, w_dtype, *w_shape)
        x = integers(24, dtype, *x_shape)
        conv = [torch.conv1d, torch.conv2d, torch.conv3d][len(w_shape) - 3]
        for weight_zero, bias in itertools.product(zeros[:2], (None, random(25, w_shape[0]))):
            wz = 0 if weight_zero is None else weight_zero.reshape(-1, *[1] * (w.dim() - 1))
            sums = conv(x.double() - zero, w.double() - wz, None, stride, padding, dilation, groups)
            judge = expected_product(sums.numpy().astype(np.int64), 0.02, scales, bias, end,
                                     1 if x.dim() == w.dim() else 0)
            rest = stride, padding, dilation, groups
            same(cfx.ops.integer_conv(x, 0.02, zero, w, scales, weight_zero, bias, *rest, *end),
                 judge)
            if x.dim() == 4:
                last = x.contiguous(memory_format=torch.channels_last)
                ours = cfx.ops.integer_conv(last, 0.02, zero, w, scales, weight_zero, bias, *rest,
                                            *end)
                same(ours, judge)
                assert ours.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("dtype, other", PAIRS, ids=str)
def test_integer_matmul(dtype, other):
    for a_shape, b_shape, end in zip(
            [(3, 5), (2, 3, 4, 7), (1, 3, 2, 9), (4, 300), (5,), (2, 3, 5), (5,)],
            [(5, 4), (3, 7, 270), (2, 1, 9, 3), (300, 2), (2, 5, 4), (5,), (5,)],
            ENDS[:3] + [FLOATS] + ENDS[:3]):
        a, b = integers(26, dtype, *a_shape), integers(27, other, *b_shape)
        za, zb = RANGES[dtype][0], RANGES[other][1]
        sums = np.matmul(wide(a, za), wide(b, zb))
        judge = expected_product(sums, 0.5, torch.tensor([0.25]), None, end, -1)
        turned = [t.mT.contiguous().mT if t.dim() > 1 else t.repeat(2)[:len(t)] for t in (a, b)]
        for x, y in ((a, b), (a, turned[1]), (turned[0], b)):
            same(cfx.ops.integer_matmul(x, 0.5, za, y, 0.25, zb, *end), judge)


@pytest.mark.parametrize("end", ENDS, ids=str)
@pytest.mark.parametrize("dtype, other", PAIRS, ids=str)
def test_integer_add_and_mul(dtype, other, end):
    scale, zero, low, high, out = end
    za, zb = RANGES[dtype][1], RANGES[other][0] + 3
    for a_shape, b_shape in (((3, 5), (3, 5)), ((2, 1, 7), (4, 1)), ((), (3,)), ((0, 2), (2,)),
                             ((300,), (1,))):
        a, b = integers(28, dtype, *a_shape), integers(29, other, *b_shape)
        x, y = wide(a, za), wide(b, zb)
        args = a, 0.017, za, b, 0.031, zb, *end
        sums = fma(F(x), F(0.017 / scale), F(y) * F(0.031 / scale))
        same(cfx.ops.integer_add(*args), ending(sums, zero, low, high, out))
        products = F(x * y) * F(0.017 * 0.031 / scale)
        same(cfx.ops.integer_mul(*args), ending(products, zero, low, high, out))


@pytest.mark.parametrize("end", ENDS, ids=str)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8], ids=str)
def test_integer_mean(dtype, end):
    scale, zero, low, high, out = end
    x = integers(30, dtype, 4, 5, 6)
    for x in (x, x.permute(2, 0, 1), x[::2, :, 1:]):
        for dims, keepdim in (([1], False), ([0, -1], True), ([], False), ([2, 1], False)):
            axes = tuple(dims) or None
            sums = wide(x, 7).sum(axis=axes, keepdims=keepdim)
            count = x.numel() // max(np.size(sums), 1)
            judge = ending(F(sums) * F(0.4 / (scale * count)), zero, low, high, out)
            same(cfx.ops.integer_mean(x, 0.4, 7, dims, keepdim, *end), judge)
    empty = cfx.ops.integer_mean(x[:0], 0.4, 7, [0], False, *end)
    same(empty, torch.full(x.shape[1:], low, dtype=out))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8], ids=str)
def test_integer_avg_pool(dtype):
    for shape, kernel, stride, padding, ceil, include, divisor, end in (
            ((2, 3, 9), [3], [2], [1], False, True, None, ENDS[0]),
            ((2, 3, 9, 8), [3, 2], [], [1, 1], True, False, None, ENDS[1]),
            ((3, 9, 8), [3, 3], [2, 1], [1, 1], True, True, None, ENDS[2]),
            ((2, 3, 9, 8), [2, 2], [2, 2], [0, 0], False, True, 7, ENDS[3]),
            ((1, 2, 4, 5, 6), [2, 2, 3], [1, 2, 2], [1, 0, 1], False, False, None, ENDS[4])):
        scale, zero, low, high, out = end
        x = integers(31, dtype, *shape)
        pool = [torch.nn.functional.avg_pool1d, torch.nn.functional.avg_pool2d,
                torch.nn.functional.avg_pool3d][len(kernel) - 1]
        shared = kernel, stride or None, padding, ceil
        wide_x = x.double() - 9

        def averages(t, shared=shared, include=include, divisor=divisor, pool=pool):
            rest = () if divisor is None else (divisor,)
            return pool(t, *shared, include, *rest)

        counts = 1 / (averages(torch.ones_like(wide_x), include=False) * 0 + 1)
        taps = math.prod(kernel)
        sums = (pool(wide_x, *shared, True, taps) if len(kernel) > 1 else
                pool(wide_x, *shared, True)) * (taps if len(kernel) > 1 else 1)
        if divisor is not None:
            counts = torch.full_like(sums, divisor)
        else:
            # a plane of ones gives (elements in the window) / count
            inside = pool(torch.ones_like(wide_x), *shared, True, 1) if len(kernel) > 1 else None
            if len(kernel) == 1:
                counts = torch.full_like(sums, taps)
                sums = sums * taps
            else:
                counts = (inside / averages(torch.ones_like(wide_x))).round()
        sums = sums.round().numpy().astype(np.int64)
        factor = F(0.3 / (scale * counts.numpy().astype(np.int64)))
        judge = ending(F(sums) * factor, zero, low, high, out)
        args = 0.3, 9, kernel, stride, padding, ceil, include, divisor, *end
        same(cfx.ops.integer_avg_pool(x, *args), judge)
        if x.dim() == 4:
            same(cfx.ops.integer_avg_pool(x.contiguous(memory_format=torch.channels_last), *args),
                 judge)


def test_long_sums():
    """Beyond 32 bits."""
    n = 40_000
    a, b = torch.full((1, n), 255, dtype=torch.uint8), torch.full((n, 1), -128, dtype=torch.int8)
    judge = F(wide(a) @ wide(b, 127)) * F(0.25)
    assert cfx.ops.integer_matmul(a, 0.5, 0, b, 0.5, 127, *FLOATS).item() == judge.item()
    x = torch.full((2**24 // 3 * 4, ), 255, dtype=torch.uint8).reshape(1, -1)
    end = 1.0, 0, 0, 255, torch.uint8
    assert cfx.ops.integer_mean(x, 1.0, 0, [1], False, *end).item() == 255
    assert cfx.ops.integer_avg_pool(x, 1.0, 0, [x.shape[1]], [1], [0], False, True, None,
                                    *end).item() == 255


@pytest.mark.parametrize("dtype, out", PAIRS, ids=str)
def test_integer_table(dtype, out):
    table, x = integers(32, out, 256), integers(33, dtype, 40, 30)
    for x in (x, x.t(), x[::3, 1::2], x[:0]):
        same(cfx.ops.integer_table(x, table), table[wide(x) - RANGES[dtype][0]])
        same(cfx.ops.integer_table(x, table.flip(0).repeat_interleave(2)[::2]),
             table.flip(0)[wide(x) - RANGES[dtype][0]])


@pytest.mark.parametrize("name, k, w_dtype, fits", [
    ("integer_linear", 33025, torch.uint8, True), ("integer_linear", 33026, torch.uint8, False),
    ("integer_linear", 65793, torch.int8, True), ("integer_linear", 65794, torch.int8, False)])
def test_sums_that_do_not_fit(name, k, w_dtype, fits):
    end = 1e6, 0, 0, 255, torch.uint8
    x = torch.full((1, k), 255, dtype=torch.uint8)
    w = torch.full((1, k), RANGES[w_dtype][0] or 255, dtype=w_dtype)

    def call():
        return getattr(cfx.ops, name)(x, 1.0, 0, w, torch.ones(1), None, None, *end[:4],
                                      torch.float32)

    if fits:
        assert call().item() == F(wide(x) @ wide(w).T).item()
    else:
        with pytest.raises(ValueError, match="may exceed 32 bits"):
            call()


# ---- by token and by group


FLOATING = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


@pytest.mark.parametrize("scale_dtype", FLOATING, ids=str)
@pytest.mark.parametrize("zero_dtype", [torch.int64, torch.int32, torch.int8, torch.float32,
                                        torch.bfloat16], ids=str)
def test_per_token(zero_dtype, scale_dtype):
    scales = (random(40, 2, 3, 1).abs() + 0.05).to(scale_dtype)
    zeros = torch.tensor([[1, 2, -3], [0, 50, -80]])[..., None].to(zero_dtype)
    for dtype in FLOATING:
        x = (random(41, 2, 3, 17) * 9).to(dtype)
        for x in (x, x.transpose(0, 1).contiguous().transpose(0, 1)):
            agree("quantize_per_token", "default", x, scales, zeros, -128, 127, torch.int8)
        q = integers(42, torch.int8, 2, 3, 17)
        for q in (q, integers(43, torch.uint8, 2, 3, 17), integers(44, torch.int16, 2, 3, 17)):
            agree("dequantize_per_token", "default", q, scales, zeros, -128, 127, torch.int8, dtype)
    agree("quantize_per_token", "default", x[:0], scales[:0], zeros[:0], -8, 7, torch.int8)


@pytest.mark.parametrize("scale_dtype", FLOATING, ids=str)
@pytest.mark.parametrize("zero_dtype", [torch.int64, torch.int32, torch.int8, torch.float32,
                                        torch.bfloat16], ids=str)
def test_per_channel_group(zero_dtype, scale_dtype):
    scales = (random(45, 5, 3).abs() + 0.05).to(scale_dtype)
    zeros = torch.arange(-7, 8).reshape(5, 3).to(zero_dtype)
    q = integers(46, torch.int8, 5, 12)
    for dtype in FLOATING:
        x = (random(47, 5, 12) * 3).to(dtype)
        for x in (x, x.t().contiguous().t()):
            agree("quantize_per_channel_group", "default", x, scales, zeros, -8, 7, torch.int8, 4)
        agree("dequantize_per_channel_group", "default", q, scales, zeros, -8, 7, torch.int8, 4,
              dtype)
        agree("dequantize_per_channel_group", "default", q, scales, None, -8, 7, torch.int8, 4,
              dtype)
    # a group longer than a row is the row
    agree("quantize_per_channel_group", "default", x, scales[:, :1], zeros[:, :1], -8, 7,
          torch.int8, 128)
    agree("dequantize_per_channel_group", "default", q, scales.flatten(), zeros, -8, 7, torch.int8,
          4, torch.float32)


def test_the_last_group_may_be_shorter():
    x, scales = random(45, 5, 11) * 3, random(46, 5, 3).abs() + 0.05
    zeros = torch.arange(-7, 8).reshape(5, 3)
    ops, full = torch.ops.quantized_decomposed, nn.functional.pad(x, (0, 1))
    limits = (-8, 7, torch.int8, 4)
    want = ops.quantize_per_channel_group(full, scales, zeros, *limits)
    got = cfx.ops.quantize_per_channel_group(x, scales, zeros, *limits)
    assert torch.equal(got, want[:, :11]) and got.is_contiguous()
    for zero in (zeros, None):
        back = ops.dequantize_per_channel_group(want, scales, zero, *limits, torch.float32)
        assert torch.equal(cfx.ops.dequantize_per_channel_group(
            got, scales, zero, *limits, torch.float32), back[:, :11])  # fmt: skip


CHOOSE = {
    "plain": [random(48, 7) * 3, random(49, 3, 5).abs() + 1, -random(50, 40).abs() - 1,
              random(51, 3, 4, 5).permute(2, 0, 1)],
    "zero": [torch.zeros(3), torch.tensor(0.0)],
    "tiny": [torch.full((4,), 1e-12), torch.tensor([-1e-30, 1e-38])],
    "not finite": [torch.tensor(t) for t in ([INF, 1.0], [-INF, 1.0], [INF, -INF], [NAN, 1.0],
                                             [INF], [NAN, INF, -INF])],
    "large": [torch.tensor([3e38, -3e38]), torch.tensor([65504.0, -65504.0])],
}


@pytest.mark.parametrize("name", CHOOSE)
def test_choose_qparams(name):
    for x in CHOOSE[name]:
        for dtype, (low, high, target), eps in itertools.product(
                FLOATING[:3], [(0, 255, torch.uint8), (-128, 127, torch.int8),
                               (-127, 127, torch.int8), (0, 15, torch.uint8),
                               (-2**15, 2**15 - 1, torch.int16)],
                [1.1920928955078125e-07, 1e-5, 0.5, 0.0, NAN]):
            args = x.to(dtype), low, high, eps, target
            for row in ("choose_qparams", "choose_qparams_symmetric"):
                judge = getattr(theirs, row).tensor(*args)
                for a, b in zip(getattr(cfx.ops, row)(*args), judge):
                    same(a + 0, b + 0)  # a scale of 0 has either sign


@pytest.mark.parametrize("dtype", [*FLOATING, torch.int32], ids=str)
def test_choose_qparams_per_token(dtype):
    rows = torch.cat([random(52, 3, 6) * 3, torch.zeros(1, 6), random(53, 1, 6).abs(),
                      torch.full((1, 6), 1e-20)])
    special = torch.tensor([[NAN, 1.0], [INF, 1.0], [-INF, 1.0], [INF, -INF], [-2.0, -1.0]])
    for x in (rows, rows.t(), rows[None, :, ::2], rows[:0], special, torch.tensor([2.5])):
        x = x.to(dtype)
        judge = theirs.choose_qparams_per_token(x, torch.int8)
        for a, b in zip(cfx.ops.choose_qparams_per_token(x, torch.int8), judge):
            same(a, b)
        for target in (torch.int8, torch.uint8):
            judge = theirs.choose_qparams_per_token_asymmetric(x, target)
            ours = cfx.ops.choose_qparams_per_token_asymmetric(x, target)
            for a, b in zip(ours, judge):
                same(a, b)


@pytest.mark.parametrize("name, args, error, text", [
    ("choose_qparams", (torch.ones(2).double(), 0, 255, 0.1, torch.uint8), TypeError,
     "Expecting input"),
    ("choose_qparams", (torch.ones(2), 5, 255, 0.1, torch.uint8), ValueError, "must include 0"),
    ("choose_qparams", (torch.ones(2), 0, 0, 0.1, torch.uint8), ValueError, "less than"),
    ("choose_qparams", (torch.ones(2), 0, 255, 0.1, torch.int64), ValueError, "Unsupported"),
    ("choose_qparams", (torch.ones(0), 0, 255, 0.1, torch.uint8), RuntimeError, "aminmax"),
    ("choose_qparams_per_token", (torch.ones(2), torch.uint8), ValueError, "unsupported dtype"),
    ("quantize_per_channel_group",
     (torch.ones(2, 4), torch.ones(2, 4), torch.zeros(2, 4), -8, 7, torch.int8, 1), ValueError,
     "group_size must be > 1"),
    ("quantize_per_channel_group",
     (torch.ones(2, 4), torch.ones(2, 1), torch.zeros(2, 1), -8, 7, torch.int8, 3), RuntimeError,
     "one element for each group"),
    ("quantize_per_channel_group",
     (torch.ones(2, 4), torch.ones(2, 3), torch.zeros(2, 3), -8, 7, torch.int8, 2), RuntimeError,
     "one element for each group"),
    ("quantize_per_channel_group",
     (torch.full((2, 4), NAN), torch.ones(2, 2), torch.zeros(2, 2), -8, 7, torch.int8, 2),
     ValueError, "must not contain NaNs"),
    ("quantize_per_token", (torch.ones(2, 4), torch.ones(3), torch.ones(2), -8, 7, torch.int8),
     RuntimeError, "one element for each token"),
    ("unpack_int4", (torch.ones(2, 4).byte(), 6), RuntimeError, "rows of 3 bytes"),
    ("unpack_int4", (torch.ones(2, 4), 8), TypeError, "must be uint8"),
    ("weight_linear", (torch.ones(2, 4), torch.ones(3, 4).char(), torch.ones(3), None, None, 0, 4),
     TypeError, "two elements in a byte"),
    ("weight_linear", (torch.ones(2, 4), torch.ones(3, 4).char(), torch.ones(3), None, None, 2, 0),
     RuntimeError, "each group"),
    ("weight_linear", (torch.ones(2, 5), torch.ones(3, 4).char(), torch.ones(3), None, None, 0, 0),
     RuntimeError, "differ in size"),
    ("dynamic_linear",
     (torch.ones(2, 4), torch.ones(3, 4).char(), torch.ones(3), None, None, 0, 256, 0.1),
     ValueError, "range of uint8"),
])
def test_refused_too(name, args, error, text):
    with pytest.raises(error, match=text):
        getattr(cfx.ops, name)(*args)


# ---- float inputs, integer weights


def packed(t):
    """Two in a byte, the first in the lower half."""
    t = torch.nn.functional.pad(t, (0, t.shape[-1] % 2)).to(torch.int16) & 15
    return (t[..., ::2] | t[..., 1::2] << 4).to(torch.uint8)


def test_unpack_int4():
    for shape in ((4, 6), (3, 7), (5,), (2, 3, 1), (0, 4), (3, 0)):
        t = torch.randint(-8, 8, shape, generator=torch.Generator().manual_seed(1)).to(torch.int8)
        same(cfx.ops.unpack_int4(packed(t), t.shape[-1]), t)
        if t.dim() > 1:
            turned = packed(t).t().contiguous().t() if t.dim() == 2 else packed(t)
            same(cfx.ops.unpack_int4(turned, t.shape[-1]), t)


@pytest.mark.parametrize("dtype", FLOATING[:3], ids=str)
def test_weight_linear(dtype):
    def near(ours, w, scales, zeros, x, bias):
        wide_w = (w.double() - (0 if zeros is None else zeros.double())) * scales.double()
        judge = torch.nn.functional.linear(x.double(), wide_w.reshape(len(w), -1),
                                           None if bias is None else bias.double())
        assert ours.dtype == dtype
        bound = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}[dtype]
        torch.testing.assert_close(ours.double(), judge, rtol=bound, atol=bound * 10)

    for k, n, group in ((12, 5, 4), (7, 3, 0), (33, 2, 0), (130, 4, 64), (10, 3, 4)):
        x = random(60, 2, 3, k).to(dtype)
        for bias in (None, random(61, n).to(dtype)):
            for w in (integers(62, torch.int8, n, k), integers(63, torch.uint8, n, k)):
                groups = -(-k // group) if group else 0
                scales = random(64, n, groups or 1).abs() * 0.02
                zeros = torch.randint(-5, 90, scales.shape).to(torch.int64)
                wide_s, wide_z = (t.repeat_interleave(group or k, 1)[:, :k]
                                  for t in (scales, zeros))
                given = (scales, zeros) if group else (scales[:, 0], zeros[:, 0])
                for z, wide in ((None, None), (given[1], wide_z)):
                    for x in (x, x.transpose(0, 1).contiguous().transpose(0, 1)):
                        near(cfx.ops.weight_linear(x, w, given[0], z, bias, group, 0), w, wide_s,
                             wide, x, bias)
            small = torch.randint(-8, 8, (n, k)).to(torch.int8)
            near(cfx.ops.weight_linear(x, packed(small), given[0], None, bias, group, k), small,
                 wide_s, None, x, bias)
            one = cfx.ops.weight_linear(x, w, torch.tensor(0.25), torch.tensor([3]), bias, 0, 0)
            near(one, w, torch.tensor(0.25), torch.tensor(3), x, bias)
    assert cfx.ops.weight_linear(x[:0], w, torch.tensor(0.25), None, None, 0, 0).shape == (0, 3, n)


@pytest.mark.parametrize("low, high", [(0, 255), (-128, 127), (-127, 127), (0, 127)])
def test_dynamic_linear(low, high):
    for w_dtype, dtype in ((torch.int8, torch.float32), (torch.uint8, torch.float16)):
        w, scales, zeros = product_args(torch.uint8, w_dtype, 5, 37)
        for x in (random(65, 2, 3, 37) * 4, random(66, 3, 37).abs(), torch.zeros(2, 37)):
            x = x.to(dtype)
            target = torch.uint8 if low == 0 else torch.int8
            for zero, bias in itertools.product(zeros, (None, random(67, 5))):
                scale, point = theirs.choose_qparams(x, low, high, 1e-5, target)
                q = theirs.quantize_per_tensor(x, scale.item(), point.item(), low, high, target)
                wz = 0 if zero is None else zero.long().numpy()[:, None]
                sums = wide(q, point.item()) @ (wide(w) - wz).T
                judge = expected_product(sums, scale.item(), scales, bias, FLOATS, -1)
                same(cfx.ops.dynamic_linear(x, w, scales, zero, bias, low, high, 1e-5), judge)
    for x in (torch.tensor([[NAN] + [0.0] * 36]), torch.full((2, 37), INF)):
        assert cfx.ops.dynamic_linear(x, w, scales, None, None, low, high, 1e-5).isnan().all()
    assert cfx.ops.dynamic_linear(x[:0], w, scales, None, None, low, high, 1e-5).shape == (0, 5)


# ---- files and C


def row(x, name, *args):
    """Functions of rows take no proxies: the graph calls them."""
    function = getattr(cfx.ops, name)
    if isinstance(x, cfx.Proxy):
        return x.tracer.create_proxy("call_function", function, args, {})
    return function(*args)


class Forms(nn.Module):
    """Rows of every kind: the reference form, groups, tokens, scales of the run, integers."""

    def __init__(self):
        super().__init__()
        self.register_buffer("w", integers(70, torch.int8, 6, 8))
        self.register_buffer("scales", random(71, 6).abs() * 0.02 + 0.001)
        self.register_buffer("zeros", torch.arange(6) - 3)
        self.register_buffer("groups", random(72, 6, 2).abs() * 0.1)
        self.register_buffer("packed", integers(73, torch.uint8, 6, 4))
        self.register_buffer("table", integers(74, torch.uint8, 256))

    def forward(self, x):
        u8, i8 = (0, 255, torch.uint8), (-128, 127, torch.int8)
        a = theirs.quantize_per_tensor(x, 0.05, 100, *u8)
        w = theirs.dequantize_per_channel(self.w, self.scales, self.zeros, 0, *i8)
        y = torch.nn.functional.linear(theirs.dequantize_per_tensor(a, 0.05, 100, *u8), w)
        scale, zero = theirs.choose_qparams.tensor(x, 0, 255, 1e-5, torch.uint8)
        b = theirs.quantize_per_tensor.tensor(x, scale, zero, *u8)
        y = y + theirs.dequantize_per_tensor.tensor(b, scale, zero, *u8).sum()
        small = row(x, "unpack_int4", self.packed, 8)
        small = theirs.dequantize_per_channel_group(small, self.groups, None, -8, 7, torch.int8, 4,
                                                    torch.float32)
        scale, zero = theirs.choose_qparams_per_token_asymmetric(x, torch.int8)
        c = theirs.quantize_per_token(x, scale, zero, *i8)
        c = theirs.dequantize_per_token(c, scale, zero, *i8, torch.float32)
        y = y + torch.nn.functional.linear(c, small)
        d = row(x, "integer_linear", a, 0.05, 100, self.w, self.scales, self.zeros, None, 0.1, 90,
                *u8)
        e = row(x, "integer_table", d, self.table)
        d = row(x, "integer_add", d, 0.1, 90, e, 0.1, 3, 0.2, 80, *u8)
        y = y + theirs.dequantize_per_tensor(d, 0.2, 80, *u8)
        y = y + row(x, "weight_linear", x, self.packed, self.groups, None, None, 4, 8)
        return y + row(x, "dynamic_linear", x, self.w, self.scales, None, None, 0, 255, 1e-5), d


def test_files_carry_the_rows(tmp_path):
    gm, x, path = cfx.symbolic_trace(Forms()), random(75, 3, 8) * 3, str(tmp_path / "forms.cfx")
    want = Forms()(x)
    cfx.save(gm, path)
    again = cfx.load(path)
    assert str(again.graph) == str(gm.graph)
    for ours in (again(x), cfx.lower(gm)(x), cfx.runtime.load(path)(x)):  # the last two in C
        for a, b in zip(ours, want):
            torch.testing.assert_close(torch.as_tensor(a), b)


def test_the_c_code_has_the_rows(tmp_path):
    from test_c_code import check

    check(tmp_path, cfx.symbolic_trace(Forms()), random(76, 3, 8) * 3)
