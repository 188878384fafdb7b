"""Rows that op_db does not describe, and calls that test them: (function of PyTorch or Python,
arguments...). The row is called by its parameters; test_operators.py compares."""
import builtins
import math
import operator

import operator_onnx
import torch

aten = torch.ops.aten


def randn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def grouped():
    """What _grouped_mm takes: 2 and 3 dimensions, 16 and 32 bits, transposed weights, a group
    without rows. PyTorch wants rows of multiples of 16 bytes, and leaves undefined what is in no
    group."""
    ends = torch.tensor([3, 3, 8], dtype=torch.int32)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        rows, weights, wide = (randn(*shape).to(dtype) for shape in ((8, 16), (3, 16, 24), (16, 8)))
        few = randn(0, 16).to(dtype)
        turned = weights.mT.contiguous().mT
        yield rows, weights, ends
        yield rows, turned, ends
        yield rows, weights, ends, None, dtype
        yield rows[::2], weights, torch.tensor([0, 9, 1, 9, 4], dtype=torch.int32)[::2]
        yield few, weights, torch.zeros(3, dtype=torch.int32)
        yield turned.mT, wide, ends
        yield wide, rows, ends  # what is summed over is split
        yield wide, rows, torch.tensor([2, 5], dtype=torch.int32)
        yield weights.mT.contiguous(), weights


def recurrent(name, gates):
    """A network of two layers, in both directions, and a cell."""
    x, h = randn(5, 2, 3), randn(4, 2, 4)
    params = [randn(*shape) for inner in (3, 8) for _ in range(2)
              for shape in ((4 * gates, inner), (4 * gates, 4), (4 * gates,), (4 * gates,))]
    state = [h, h.neg()] if name == "lstm" else h
    cell = [randn(2, 3), [h[0], h[1]] if name == "lstm" else h[0], *params[:4]]
    return {
        name: [(getattr(torch, name), x, state, params, True, 2, 0.0, False, True, False)],
        f"{name}_cell": [(getattr(torch, f"{name}_cell"), *cell)],
    }


def convolution_gradients():
    """Of images of one, two and three dimensions, with groups, steps, transposed, in part."""
    every = [True, True, True]
    found = []
    for sizes, weight, stride, padding, dilation, transposed, extra, groups in (
        ((2, 3, 7, 6), (4, 3, 3, 2), [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
        ((2, 4, 9, 8), (6, 2, 3, 3), [2, 2], [1, 2], [1, 1], False, [0, 0], 2),
        ((2, 4, 9, 8), (6, 4, 3, 3), [2, 3], [1, 1], [2, 1], False, [0, 0], 1),
        ((2, 4, 5, 6), (4, 1, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 4),
        ((2, 3, 8), (5, 3, 4), [2], [1], [1], False, [0], 1),
        ((1, 2, 4, 5, 4), (3, 2, 2, 3, 2), [1, 2, 1], [0, 1, 1], [1, 1, 1], False, [0, 0, 0], 1),
        ((2, 3, 5, 4), (3, 4, 3, 3), [2, 2], [1, 1], [1, 1], True, [1, 0], 1),
        ((2, 4, 5, 4), (4, 3, 2, 3), [2, 1], [0, 1], [1, 1], True, [0, 0], 2),
    ):
        x, w = randn(*sizes), randn(*weight)
        rest = (stride, padding, dilation, transposed, extra, groups)
        out = aten.convolution.default(x, w, None, *rest)
        given = randn(*out.shape), x, w, [out.shape[1]], *rest
        found.append((aten.convolution_backward.default, *given, every))
    found.append((aten.convolution_backward.default, *given, [False, True, False]))
    return found


def norm_gradients():
    """Of normalisations: images, rows that are short, other types, layouts, without a weight, in
    part."""
    every, found = [True, True, True], {}
    batches, running = [], []
    for shape, dtype in (((3, 4, 5, 7), torch.float32), ((70, 3), torch.float32),
                         ((2, 5, 33), torch.float64), ((4, 3, 6, 6), torch.bfloat16)):
        x, g = randn(*shape).to(dtype), randn(*shape).flip(0).to(dtype)
        w, b, mean = (randn(shape[1]).to(dtype) + k for k in (1, 0, 0))
        var = mean * mean + 0.5
        if dtype != torch.bfloat16:  # which PyTorch normalises with another rounding
            running.append((aten._native_batch_norm_legit_functional.default, x, w, b, mean, var,
                            True, 0.1, 1e-5))
        _, saved, scale = aten.native_batch_norm.default(x, w, b, None, None, True, 0.1, 1e-5)
        call = aten.native_batch_norm_backward.default
        batches.append((call, g, x, w, mean, var, saved, scale, True, 1e-5, every))
        batches.append((call, g, x, w, mean, var, saved, scale, False, 1e-5, every))
        batches.append((*batches[-2][:3], None, *batches[-2][4:-1], [True, False, False]))
    last = [randn(2, 3, 4, 5).to(memory_format=torch.channels_last) for _ in range(2)]
    _, saved, scale = torch.native_batch_norm(last[0], None, None, None, None, True, 0.1, 0.1)
    batches.append((call, last[1], last[0], None, None, None, saved, scale, True, 0.1,
                    [True, False, False]))
    running.append((*running[0][:6], False, 0.1, 1e-5))
    found["native_batch_norm_backward"] = batches
    found["_native_batch_norm_legit_functional"] = running
    rows = []
    for shape, count, dtype in (((3, 4, 37), 1, torch.float32), ((70, 5, 7), 2, torch.float32),
                                ((2, 300), 1, torch.float64), ((9, 16), 1, torch.bfloat16)):
        x, g = randn(*shape).to(dtype), randn(*shape).flip(0).to(dtype)
        w, b = randn(*shape[-count:]).to(dtype), randn(*shape[-count:]).to(dtype)
        _, mean, rstd = aten.native_layer_norm.default(x, shape[-count:], w, b, 1e-5)
        call = aten.native_layer_norm_backward.default
        if dtype != torch.bfloat16:  # PyTorch adds up gradients of weights in this type
            rows.append((call, g, x, list(shape[-count:]), mean, rstd, w, b, every))
        rows.append((call, g, x, list(shape[-count:]), mean, rstd, None, None,
                     [True, False, False]))
    rows.append((*rows[0][:-1], [False, True, True]))
    found["native_layer_norm_backward"] = rows
    groups = []
    for shape, count, dtype in (((3, 4, 5, 7), 2, torch.float32), ((2, 6, 9), 3, torch.float64)):
        x, g, w = (randn(*sizes).to(dtype) for sizes in (shape, shape, shape[1:2]))
        sizes = shape[0], shape[1], math.prod(shape[2:]), count
        _, mean, rstd = aten.native_group_norm.default(x, w, w, *sizes, 1e-5)
        call = aten.native_group_norm_backward.default
        groups.append((call, g, x, mean, rstd, w, *sizes, every))
        groups.append((call, g, x, mean, rstd, None, *sizes, [True, False, False]))
    found["native_group_norm_backward"] = groups
    return found


def other_gradients():
    """Of activations, softmax, embedding, pooling and dropout."""
    x, g = 3 * randn(5, 37), randn(5, 37).flip(0)
    found = {
        "threshold_backward": [(aten.threshold_backward.default, g, x, 0),
                               (aten.threshold_backward.default, g.t(), x.t(), 0.5),
                               (aten.threshold_backward.default, x.int(), x.int(), 1)],
        "gelu_backward": [(aten.gelu_backward.default, g.to(dtype), x.to(dtype))
                          for dtype in (torch.float32, torch.float64, torch.bfloat16)],
        "native_dropout_backward": [(aten.native_dropout_backward.default, g, x > 0, 1.25)],
    }  # fmt: skip
    far = torch.tensor([-90.0, -9.0, -0.0, 0.0, 9.0, 90.0])
    found["gelu_backward"].append((aten.gelu_backward.default, torch.ones(6), far))
    by_tanh = lambda g, x, form: aten.gelu_backward.default(g, x, approximate=form)  # noqa: E731
    found["gelu_backward"] += [(by_tanh, g, x, "tanh"), (by_tanh, g.double(), x.double(), "tanh")]
    for name, make in (("_softmax", torch.softmax), ("_log_softmax", torch.log_softmax)):
        call = getattr(aten, f"{name}_backward_data").default
        found[f"{name}_backward_data"] = [
            (call, randn(*x.shape).flip(0).to(x.dtype), make(x, dim), dim, x.dtype)
            for x, dim in ((x, 1), (x, 0), (randn(2, 300), -1), (randn(2, 3, 4, 5).double(), 1),
                           (randn(3, 17).bfloat16(), 1), (randn(1, 4, 3).mT, 2))]  # fmt: skip
    indices = torch.tensor([[1, 3, 3], [0, 6, 3]])
    found["embedding_dense_backward"] = [
        (aten.embedding_dense_backward.default, randn(2, 3, 21).to(dtype), indices, 7, padding, by)
        for dtype, padding, by in ((torch.float32, -1, False), (torch.float64, 3, False),
                                   (torch.float32, -1, True), (torch.bfloat16, 0, False))
    ]  # fmt: skip
    for n, shape in ((2, (2, 3, 9, 8)), (2, (3, 7, 7)), (3, (2, 2, 5, 6, 4))):
        x, pool = randn(*shape), getattr(aten, f"max_pool{n}d_with_indices")
        rest = [3] * n, [2] * n, [1] * n, [1] * n, n == 3
        y, at = pool.default(x, *rest)
        call = getattr(aten, f"max_pool{n}d_with_indices_backward").default
        calls = found.setdefault(f"max_pool{n}d_with_indices_backward", [])
        calls.append((call, randn(*y.shape), x, *rest, at))
    return found


def attention_gradients():
    q, k, v = randn(2, 3, 5, 4), randn(2, 3, 6, 4).neg(), randn(2, 3, 6, 4)
    found = []
    for causal in (False, True):
        out, sums = aten._scaled_dot_product_flash_attention_for_cpu.default(q, k, v, 0.0, causal)
        found.append((aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
                      randn(2, 3, 5, 4), q, k, v, out, sums, 0.0, causal))
    k, v = k[:, :1], v[:, :1]  # heads that share keys
    out, sums = aten._scaled_dot_product_flash_attention_for_cpu.default(q, k, v)
    found.append((*found[0][:3], k, v, out, sums, 0.0, False))
    return found


def calls():
    """{row: [(function, *arguments)]}"""
    x, image, volume = randn(3, 4), randn(2, 3, 6, 6), randn(1, 2, 4, 4, 4)
    row, numbers, empty = randn(2, 3, 8), torch.tensor([3, 1, 2]), randn(0, 3)
    up1, up2, up3 = [12], [9, 7], [6, 5, 4]
    return {
        "_softmax": [(aten._softmax.default, x, 1, False),
                     (aten._softmax.default, empty, 0, False)],
        "_log_softmax": [(aten._log_softmax.default, x, -1, False)],
        "_prelu_kernel": [(aten._prelu_kernel.default, image, randn(1, 3, 1, 1))],
        "_scaled_dot_product_flash_attention_for_cpu": [
            (aten._scaled_dot_product_flash_attention_for_cpu.default, image, image, image, 0.0,
             causal) for causal in (False, True)],
        "_weight_norm": [(aten._weight_norm.default, row, randn(2, 1, 1)),
                         (aten._weight_norm.default, row, randn(1, 3, 1), 1)],
        "_weight_norm_interface": [(aten._weight_norm_interface.default, row, randn(2, 1, 1)),
                                   (aten._weight_norm_interface.default, row, randn(1, 1, 8), 2)],
        "element_size": [(torch.Tensor.element_size, x), (torch.Tensor.element_size, numbers)],
        "is_contiguous": [(torch.Tensor.is_contiguous, x), (torch.Tensor.is_contiguous, x.T),
                          (torch.Tensor.is_contiguous, empty)],
        "log_sigmoid_forward": [(aten.log_sigmoid_forward.default, x)],
        "_to_copy": [(lambda x: x.clone(), x)],
        "_prelu_kernel": [(aten._prelu_kernel.default, x, randn(4))],
        "_scaled_dot_product_flash_attention_for_cpu": [
            (lambda *args: aten._scaled_dot_product_flash_attention_for_cpu.default(*args),
             randn(1, 2, 5, 4), randn(2, 2, 6, 4)[:1], randn(3, 2, 6, 4)[1:2], 0.0, causal)
            for causal in (False, True)],
        "_weight_norm": [(torch._weight_norm, x, randn(3, 1), 0)],
        "_weight_norm_interface": [(aten._weight_norm_interface.default, x, randn(3, 1), 0)],
        "element_size": [(torch.Tensor.element_size, x), (torch.Tensor.element_size, x > 0)],
        "is_contiguous": [(torch.Tensor.is_contiguous, x), (torch.Tensor.is_contiguous, x.t())],
        "log_sigmoid_forward": [(aten.log_sigmoid_forward.default, x)],
        "adaptive_max_pool1d_with_indices": [
            (lambda x, n: aten.adaptive_max_pool1d.default(x, n), row, [3])],
        "adaptive_max_pool2d_with_indices": [(aten.adaptive_max_pool2d.default, image, [2, 4])],
        "adjoint": [(torch.adjoint, x), (torch.adjoint, x + 1j)],
        "_grouped_mm": [(torch._grouped_mm, *args) for args in grouped()],
        "_fft_c2c": [(aten._fft_c2c.default, t, dims, norm, forward)
                     for t in (row + 1j, volume.permute(2, 4, 0, 1, 3) * (1 + 2j))
                     for dims in ([0], [2, 1], [0, 1, 2])
                     for norm in (0, 1, 2) for forward in (True, False)],
        "_fft_r2c": [(aten._fft_r2c.default, t, dims, norm, half)
                     for t in (row, row.mT, volume.double()) for dims in ([1], [0, 2])
                     for norm in (0, 1, 2) for half in (True, False)],
        "_fft_c2r": [(aten._fft_c2r.default, row + 1j * row.flip(0), dims, norm, n)
                     for dims, sizes in (([2], (14, 15)), ([2, 0], (2, 3)))
                     for norm in (0, 1, 2) for n in sizes],
        "fft_fftshift": [(torch.fft.fftshift, row), (torch.fft.fftshift, row, [2, 1])],
        "fft_ifftshift": [(torch.fft.ifftshift, row), (torch.fft.ifftshift, row, [2])],
        **{f"{name}_window": [(getattr(torch, f"{name}_window"), n, periodic)
                              for n in (0, 1, 2, 7, 8) for periodic in (True, False)]
           for name in ("hann", "hamming", "kaiser")},
        "fill_diagonal": [
            (lambda x, *args: x.clone().fill_diagonal_(*args), t, value, wrap)
            for t in (x, x.T, randn(9, 2), randn(9, 2).long(), randn(0, 3), randn(3, 3, 3),
                      randn(2, 2) * 1j)
            for value in (2, -3) for wrap in (False, True)],
        "is_complex": [(torch.is_complex, x), (torch.is_complex, x + 1j)],
        "hasattr": [(hasattr, x, name) for name in ("shape", "dtype", "relu", "T")]
                   + [(hasattr, 3, "real"), (hasattr, None, "shape")],
        "unique_consecutive": [(torch.unique_consecutive, numbers)],
        **recurrent("lstm", 4), **recurrent("gru", 3),
        **recurrent("rnn_tanh", 1), **recurrent("rnn_relu", 1),
        "affine_grid": [(torch.nn.functional.affine_grid, randn(2, 2, 3), [2, 3, 4, 5], False)],
        "alias": [(aten.alias.default, x.t())],
        "arange_start": [(lambda a, b: torch.arange(a, b), 2, 7)],
        "argsort_stable": [(lambda x, s, d: torch.argsort(x, stable=s, dim=d), x, True, 0)],
        "as_tensor": [(torch.as_tensor, x), (torch.as_tensor, 3), (torch.as_tensor, [1.5, 2])],
        "tensor": [(torch.tensor, 2.5), (torch.tensor, [[1, 2], [3, 4]]), (torch.tensor, True)],
        **{f"atleast_{n}d_each": [(lambda t, f=getattr(torch, f"atleast_{n}d"): f(*t),
                                   [x[0, 0], x[0], x, row])] for n in (1, 2, 3)},
        "bool": [(bool, 3), (bool, torch.tensor(0.0))],
        "int": [(int, 3.7), (int, torch.tensor(-2.5))],
        "float": [(float, 3), (float, torch.tensor(2))],
        "chain_matmul": [(lambda m: torch.chain_matmul(*m), [randn(2, 3), x, randn(4, 2)])],
        "col2im": [(aten.col2im.default, randn(1, 12, 9), [4, 4], [2, 2], [1, 1], [0, 0], [1, 1])],
        "contains": [(operator.contains, [1, 2], 2), (operator.contains, (1,), 2)],
        "convolution": [(aten.convolution.default, image, randn(4, 3, 3, 3), None, [2, 2], [1, 1],
                         [1, 1], False, [0, 0], 1)],
        "copy": [(aten.copy.default, x, randn(4)), (aten.copy.default, numbers, randn(3))],
        "cpu": [(torch.Tensor.cpu, x)],
        "detach": [(torch.detach, x)],
        "dim": [(torch.Tensor.dim, x), (torch.Tensor.dim, x[0, 0])],
        "embedding_renorm": [
            (lambda w, *args: torch.embedding_renorm_(w.clone(), *args), x, numbers.sub(1)[:2], 0.5,
             p) for p in (1.0, 2.0, 3.0, math.inf)],
        "fractional_max_pool2d_with_indices": [
            (lambda x, k, n, ratio, pair, draw: aten.fractional_max_pool2d(x, k, n, draw), image,
             [2, 3], [3, 4], None, True, randn(2, 3, 2).sigmoid())],
        "grid_sampler": [(torch.grid_sampler, image, randn(2, 4, 5, 2).tanh(), 0, p, True)
                         for p in (0, 1, 2)],
        "index": [(aten.index.Tensor, x, [numbers.sub(1), None]),
                  (aten.index.Tensor, x, [None, x[0] > 0])],
        "dict_get": [(dict.get, {1: 2}, True), (dict.get, {"a": x}, "b"), (dict.get, {}, 1, 5)],
        "dict_keys": [(list, {1: 2, "a": x})],
        "dict_values": [(lambda d: list(d.values()), {1: 2, "a": x})],
        "dict_items": [(lambda d: list(d.items()), {1: 2, "a": x}),
                       (lambda d: list(d.items()), {})],
        "is": [(operator.is_, None, None), (operator.is_, 1, None)],
        "is_not": [(operator.is_not, 1, None)],
        "is_floating_point": [(torch.is_floating_point, x), (torch.is_floating_point, numbers)],
        "len": [(len, [1, 2]), (len, x)],
        "str": [(str, 1.5), (str, (1, "a"))],
        "str_format": [(str.format, "{} of {}", 1, 2), (str.format, "{:>6.2f}|{!r}", 1.5, "a")],
        "str_startswith": [(str.startswith, "mean_x", "mean"), (str.startswith, "a", ("b", "a"))],
        "str_endswith": [(str.endswith, "mean_x", "_x"), (str.endswith, "x", "mean_x")],
        "str_lower": [(str.lower, "Mean-1")],
        "str_upper": [(str.upper, "Mean-1")],
        "repr": [(repr, "it's"), (repr, [1.5, "a", None])],
        "format": [(format, 2.5, ">8.2f"), (format, 7, "04d"), (format, "ab", "*^6"),
                   (format, 1234567, ","), (format, True, ""), (format, 3, ".1%")],
        "finfo": [(lambda t: {k: getattr(torch.finfo(t), k) for k in (
            "bits max min eps tiny smallest_normal resolution").split()}, dtype)
            for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)],
        "iinfo": [(lambda t: {k: getattr(torch.iinfo(t), k) for k in "bits max min".split()}, dtype)
                  for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)],
        "dict": [(dict, {"a": 1})],
        "tanh_backward": [(aten.tanh_backward.default, x, randn(3, 4).tanh())],
        "sigmoid_backward": [(aten.sigmoid_backward.default, x, randn(3, 4).sigmoid())],
        "silu_backward": [(aten.silu_backward.default, x, randn(3, 4))],
        "hardswish_backward": [(aten.hardswish_backward.default, x, 3 * randn(3, 4))],
        "hardsigmoid_backward": [(aten.hardsigmoid_backward.default, x, 3 * randn(3, 4))],
        "convolution_backward": convolution_gradients(),
        **norm_gradients(),
        **other_gradients(),
        "_scaled_dot_product_flash_attention_for_cpu_backward": attention_gradients(),
        "lift_fresh_copy": [(aten.lift_fresh_copy.default, x)],
        "list": [(list, (1, 2))],
        "tuple": [(tuple, [1, 2])],
        "lp_pool2d": [(torch.nn.functional.lp_pool2d, image, 2.0, [2, 2])],
        **{f"math_{name}": [(getattr(math, name), 0.75), (getattr(math, name), 0.5)]
           for name in ("acos asin asinh atan atanh cbrt ceil cos cosh degrees erf erfc exp exp2 "
                        "expm1 fabs floor isfinite isinf isnan log log10 log1p log2 radians sin "
                        "sinh sqrt tan tanh trunc").split()},
        "math_acosh": [(math.acosh, 2.5)],
        **{f"math_{name}": [(getattr(math, name), 7, -2.5)]
           for name in "atan2 copysign fmod remainder".split()},
        "math_hypot": [(math.hypot, 3, 4.0), (math.hypot, 2)],
        "math_isclose": [(math.isclose, 1.0, 1.0 + 1e-10), (math.isclose, 1.0, 1.1),
                         (math.isclose, math.inf, math.inf), (math.isclose, 0.0, math.nan)],
        "math_gcd": [(math.gcd, 12, 18, 27), (math.gcd,)],
        "math_isqrt": [(math.isqrt, 17)],
        "builtin_min": [(min, [2, 5]), (lambda a: min(*a), [[3, 1.5]])],  # a list of all values
        "check_length": [(lambda *_: None, [1, 2], 2), (lambda *_: None, (1, 2, 3), 2, True)],
        "check_buffer": [(lambda *_: None, x, -x)],
        "builtin_max": [(max, [2, 5])],
        "builtin_round": [(round, 2.675, 2), (round, -0.5)],
        "builtin_sum": [(sum, [1, 2.5]), (sum, x)],
        "builtin_sorted": [(sorted, [3, 1.5, 2, 1]), (sorted, (2, 1)),
                           (lambda a, r: sorted(a, reverse=r), (1, 2), True),
                           (sorted, ["b", "a"]), (sorted, [(2, 1), (1, 9)]), (sorted, [])],
        "builtin_any": [(any, [0, 3])],
        "builtin_all": [(all, [0, 3])],
        "builtin_divmod": [(divmod, -7, 2)],
        "math_pow": [(math.pow, 2, 0.5)],
        "math_prod": [(math.prod, [2, 3, 4]), (math.prod, [])],
        "max_dim": [(aten.max.dim, x, 1), (aten.max.dim, numbers, 0, True)],
        "min_dim": [(aten.min.dim, x, -1)],
        "median_dim": [(aten.median.dim, x, 1)],
        "max_pool1d_with_indices": [(aten.max_pool1d_with_indices.default, row, [2])],
        "max_pool2d_with_indices": [(aten.max_pool2d_with_indices.default, image, [3, 2], [1, 2])],
        "max_pool3d_with_indices": [(aten.max_pool3d_with_indices.default, volume, [2, 2, 2])],
        "new_tensor": [(torch.Tensor.new_tensor, x, [1, 2])],
        "not": [(operator.not_, 0), (operator.not_, [1])],
        "numel": [(torch.numel, x)],
        "numpy_T": [(aten.numpy_T.default, row)],
        "operator_concat": [(operator.concat, [1], [2])],
        "operator_index": [(operator.index, 3), (operator.index, numbers[0])],
        "setitem": [],
        "delitem": [],
        "size": [(lambda x, d: x.size(d), x, 1)],
        "is_same_size": [(aten.is_same_size.default, x, x), (aten.is_same_size.default, x, x[:1]),
                         (aten.is_same_size.default, x, row)],
        "_safe_softmax": [(aten._safe_softmax.default, x.where(x > 0, -math.inf), d)
                          for d in (0, 1, -1)],
        "sym_size": [(lambda x, d: x.size(d), x, 0)],
        "stride": [(lambda x, d: x.stride(d), x.t(), 0)],
        "sym_stride": [(lambda x, d: x.stride(d), x, 0)],
        "sym_numel": [(torch.numel, x)],
        "sym_max": [(builtins.max, 2, 5)],
        "sym_min": [(builtins.min, 2, 5)],
        "sym_sqrt": [(math.sqrt, 2.0)],
        "sym_ite": [(lambda c, a, b: a if c else b, True, 1, 2)],
        "sort_stable": [(lambda x, s, d: torch.sort(x, stable=s, dim=d), x, True, 1)],
        "squeeze_dim": [(aten.squeeze.dim, x[:, :1], 1),
                        (aten.squeeze.dims, x[None, :, :1], [0, 2])],
        "std_dim": [(aten.std.dim, x, [1])],
        "var_dim": [(aten.var.dim, x, [0, 1], False, True)],
        "to_other": [(aten.to.other, x, numbers)],
        "tolist": [(torch.Tensor.tolist, numbers)],
        "type_as": [(torch.Tensor.type_as, x, numbers)],
        "upsample_nearest1d": [(aten.upsample_nearest1d.default, row, up1)],
        "upsample_nearest2d": [(aten.upsample_nearest2d.default, image, up2)],
        "upsample_nearest3d": [(aten.upsample_nearest3d.default, volume, up3)],
        "upsample_nearest_exact1d": [(aten._upsample_nearest_exact1d.default, row, up1)],
        "upsample_nearest_exact2d": [(aten._upsample_nearest_exact2d.default, image, up2)],
        "upsample_nearest_exact3d": [(aten._upsample_nearest_exact3d.default, volume, up3)],
        "upsample_linear1d": [(aten.upsample_linear1d.default, row, up1, a) for a in (True, False)],
        "upsample_bilinear2d": [(aten.upsample_bilinear2d.default, image, up2, True)],
        "upsample_bicubic2d": [(aten.upsample_bicubic2d.default, image, up2, False)],
        "upsample_bicubic2d_aa": [(aten._upsample_bicubic2d_aa.default, image, [4, 3], False)],
        "upsample_trilinear3d": [(aten.upsample_trilinear3d.default, volume, up3, False)],
        "view_dtype": [(aten.view.dtype, x, torch.int32), (aten.view.dtype, x, torch.int16)],
        "where_nonzero": [(lambda c: list(torch.where(c)), x > 0)],
        "zero": [(aten.zero.default, x)],
        **operator_onnx.calls(),
    }


# Rows that have no result to compare, or that need a program around them.
ELSEWHERE = {
    **dict.fromkeys(("cond", "while_loop", "for_loop"), "test_lowering.py: regions"),
    **dict.fromkeys(("_assert", "_assert_async", "_assert_scalar", "_assert_tensor_metadata",
                     "check", "sym_constrain_range", "sym_constrain_range_for_size"),
                    "test_assertions, below"),
    **dict.fromkeys(("getattr", "isinstance", "setitem", "delitem", "numpy", "requires_grad_",
                     "to_device", "to_layout", "print", "builtin_print", "fail"),
                    "programs that are lowered"),
    "write_out": "test_out.py",
    **dict.fromkeys(("native_dropout", "bernoulli_p", "normal", "poisson", "rand", "random",
                     "randperm", "gumbel_softmax", "normal_numbers"),
                    "test_distributions, in test_operators.py"),
    "grouped_mm_fallback": "models that are lowered",
    **dict.fromkeys(("quantize_per_tensor", "quantize_per_tensor_tensor",
                     "quantize_per_tensor_tensor2", "dequantize_per_tensor",
                     "dequantize_per_tensor_tensor", "dequantize_per_tensor_tensor2",
                     "quantize_per_channel", "dequantize_per_channel", "integer_linear",
                     "integer_conv", "integer_matmul", "integer_add", "integer_mul",
                     "integer_mean", "integer_avg_pool", "integer_table",
                     "quantize_per_channel_group", "dequantize_per_channel_group",
                     "quantize_per_token", "dequantize_per_token", "choose_qparams",
                     "choose_qparams_symmetric", "choose_qparams_per_token",
                     "choose_qparams_per_token_asymmetric", "unpack_int4", "weight_linear",
                     "dynamic_linear"),
                    "test_quantized_rows.py: bit by bit"),
    **dict.fromkeys(("weight_embedding", "weight_embedding_bag"),
                    "test_quantize_embeddings.py: bit by bit"),
}
