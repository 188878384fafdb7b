"""Where operators do what a formula does not say: at the ends of integer types, on complex
infinities, on strides that are in order but have gaps. Everything is compared with PyTorch."""
import itertools
import operator

import operator_samples as samples
import pytest
import torch
from torch.nn import functional as F

INF, NAN = float("inf"), float("nan")


def same(function, *args, **kwargs):
    want = function(*args, **kwargs)
    got = samples.lowered(None, function, args, kwargs)
    assert not samples.difference(want, got, samples.elements(function.__name__, None))
    return want, got


def pairs(dtype):
    """Every two of the numbers around the ends and 0."""
    info = torch.iinfo(dtype)
    ends = (info.min, info.min + 1, 0, 1, 2, 3, 5, info.max - 1, info.max)
    return torch.tensor(list(itertools.product(ends, ends)), dtype=dtype).unbind(1)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers_wrap_around(dtype):
    a, b = pairs(dtype)
    same(F.softsign, a)
    same(torch.isclose, a, b)
    same(torch.isclose, a, b, atol=3)
    same(F.softmin, a, 0, dtype=torch.float64)
    for reduction in ("none", "sum"):
        same(F.l1_loss, a, b, reduction=reduction)
    for p in (1.0, 2.0, INF):
        same(torch.pairwise_distance, a.unsqueeze(1), b.unsqueeze(1), p=p)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
def test_products_of_integers_wrap_around(dtype):
    a, b = pairs(dtype)
    same(F.poisson_nll_loss, a, b, reduction="none")
    same(F.margin_ranking_loss, a, b, b.flip(0), reduction="none")
    same(F.cosine_embedding_loss, a.unsqueeze(1), b.unsqueeze(1), torch.ones(len(a)),
         reduction="none")


@pytest.mark.parametrize("function", [F.smooth_l1_loss, F.huber_loss, F.soft_margin_loss,
                                      F.binary_cross_entropy_with_logits])
def test_losses_of_integers_alone_are_refused(function):
    x = torch.ones(3, dtype=torch.int64)
    for call in (function, lambda *args: samples.lowered(None, function, args, {})):
        with pytest.raises((NotImplementedError, RuntimeError)):
            call(x, x)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_infinities(dtype):
    parts = (0.0, 1.0, -2.0, INF, -INF, NAN)
    numbers = [complex(re, im) for re in parts for im in parts]
    a, b = torch.tensor(list(itertools.product(numbers, numbers)), dtype=dtype).unbind(1)
    for function in (torch.add, torch.sub, torch.rsub, torch.mul, torch.logaddexp):
        want, got = same(function, a, b)
        for w, g in zip(torch.view_as_real(want).unbind(-1), torch.view_as_real(got).unbind(-1)):
            assert torch.equal(w.isnan(), g.isnan()), function
    same(torch.sub, a, b, alpha=2)
    x = torch.tensor(numbers, dtype=dtype)
    for function in (torch.reciprocal, torch.rsqrt, torch.sigmoid, torch.square, torch.log1p):
        same(function, x)
    same(F.silu, x)
    for exponent in (0, 1, 2, 3, -1, -2, 0.5, -0.5):
        same(torch.pow, x, exponent)
    for base in (0.0, 1.0, 2j, -1.0):
        same(torch.pow, base, x)


def test_complex_log1p_near_minus_one():
    x = torch.tensor([-1 + 8.7e-8j, -1 + 1e-300j, -1 - 3e-9 + 0j, 1e-12 + 1e-12j])
    x = x.to(torch.complex128)
    got = samples.lowered(None, torch.log1p, (x,), {})
    want = torch.log1p(x)
    torch.testing.assert_close(got, want, rtol=1e-12, atol=0)


def strided(shape, order, gaps):
    """A tensor whose dimensions lie in memory in that order, with gaps between elements."""
    whole = torch.arange(1.0, 1 + torch.Size(shape).numel() * 2 ** len(shape))
    sizes = [n * (2 if gap else 1) for n, gap in zip(shape, gaps)]
    memory = whole[: torch.Size(sizes).numel()].view([sizes[d] for d in order])
    places = [order.index(d) for d in range(len(shape))]
    return memory.permute(places)[tuple(slice(n) for n in shape)]


FORMATS = {4: (torch.contiguous_format, torch.channels_last),
           5: (torch.contiguous_format, torch.channels_last_3d), 3: (torch.contiguous_format,)}


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 2, 3), (2, 1, 2, 3), (1, 3, 1, 1),
                                   (2, 1, 1, 1), (3, 1, 2, 1), (1, 1, 1, 1), (2, 3, 1, 2, 2)])
def test_casts_to_the_same_type_keep_what_is_in_order(shape):
    ndim = len(shape)
    orders = [tuple(range(ndim)), (0, *range(2, ndim), 1), tuple(reversed(range(ndim)))]
    for order, gap, memory_format in itertools.product(orders, range(-1, ndim), FORMATS[ndim]):
        x = strided(shape, order, [d == gap for d in range(ndim)])
        for function in (torch.Tensor.float, torch.Tensor.contiguous):
            want, got = same(function, x, memory_format=memory_format)
            assert (want.data_ptr() == x.data_ptr()) == (got.data_ptr() == x.data_ptr())


def test_sums_over_dimensions_of_one_are_no_views():
    x = torch.arange(6.0).view(1, 3, 2)[:, :, :1]
    for equation in ("iji->j", "ijk->j", "ijk->jik"):
        want, got = same(torch.einsum, equation, x)
        assert (want.data_ptr() == x.data_ptr()) == (got.data_ptr() == x.data_ptr())


@pytest.mark.parametrize("function", [F.logsigmoid, F.rrelu])
def test_some_activations_are_contiguous(function):
    same(function, torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last))
    same(function, torch.randn(4, 3).t())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_one_element_of_logspace_is_rounded_once(dtype):
    same(torch.logspace, 4.3, -3, 1, dtype=dtype)


@pytest.mark.parametrize("reduction, choices", [("abc", "none, mean, sum"), ("batchmean", "sum")])
def test_an_unknown_reduction_is_told_the_known_ones(reduction, choices):
    x = torch.ones(2)
    with pytest.raises(TypeError, match=f"'reduction', which must be one of .*{choices} "):
        samples.lowered(None, F.l1_loss, (x, x), {"reduction": reduction})


def test_a_tensor_for_a_number_is_described():
    with pytest.raises(TypeError, match="'end' must be Scalar, not a float32 tensor with 1 dim"):
        samples.lowered(None, torch.linspace, (torch.tensor(0.0), torch.ones(2), 3), {})


def both(function, *args, **kwargs):
    """Equal results, or an error from both."""
    try:
        function(*args, **kwargs)
    except (RuntimeError, ValueError, IndexError, OverflowError):
        with pytest.raises((RuntimeError, ValueError, IndexError, OverflowError)):
            samples.lowered(None, function, args, kwargs)
        return False
    same(function, *args, **kwargs)
    return True


POOLS = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64,
                                   torch.int16, torch.uint8])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_windows_that_lie_in_the_padding_alone(ndim, dtype):
    if ndim == 1 and not dtype.is_floating_point:
        pytest.skip("PyTorch has no such kernel")
    hollow = 0
    for size, kernel, dilation, stride in itertools.product((3, 4, 7), (2, 3), (1, 4, 6), (1, 2)):
        x = torch.arange(1, 1 + 2 * size ** ndim).view(1, 2, *[size] * ndim).to(dtype)
        for indices in (False, True):
            done = both(POOLS[ndim], x, kernel, stride, kernel // 2, dilation=dilation,
                        return_indices=indices)
            hollow += done and dilation * (kernel - 1) > size
    assert hollow


def test_such_windows_beside_others():
    x = torch.arange(12.0).view(1, 1, 3, 4)
    for indices in (False, True):
        same(F.max_pool2d, x, (2, 3), 1, (1, 1), dilation=(4, 1), return_indices=indices)
        same(F.max_pool2d, x, (2, 2), 1, (1, 1), dilation=(1, 5), return_indices=indices)
        same(F.max_pool2d, x.contiguous(memory_format=torch.channels_last), 2, 1, 1, dilation=4,
             return_indices=indices)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("far", [5, 300, 2000])
def test_convolutions_much_wider_than_the_image(far, dtype):
    x = torch.randn(2, 4, 5, 6, dtype=dtype)
    w = torch.randn(4, 2, 2, 3, dtype=dtype)
    same(F.conv2d, x, w, None, 1, (far // 2, far), (far, far), 2)
    same(F.conv2d, x, w, None, (far, 3), (far // 2, far), (far, far), 2)
    same(F.conv1d, x[0], torch.randn(4, 5, 2, dtype=dtype)[:, :, :1], None, far)
    same(F.conv_transpose2d, x, w, None, 1, (far // 2, far), 0, 2, (far, far))
    same(F.conv_transpose1d, x[0, :, :, :2], torch.randn(5, 3, 2, dtype=dtype), None, far * 5)
    same(F.conv_transpose2d, x[:1, :2, :1, :2], torch.randn(2, 1, 2, 2, dtype=dtype), None,
         (far, 100))


@pytest.mark.filterwarnings("ignore:Truncating the start")
def test_numbers_at_the_ends_of_64_bits():
    most, least = 2 ** 63 - 1, -2 ** 63
    x = torch.arange(12.0).view(3, 4)
    for shift in (most, most - 1, 2 ** 62, -2 ** 61, 10 ** 18):
        same(torch.roll, x, shift, 1)
        same(torch.roll, x, (shift, shift), (0, 1))
        same(torch.rot90, x, shift)
    for diagonal in (most, least, 2 ** 60, -2 ** 60):
        for function in (torch.tril, torch.triu, torch.diagonal):
            both(function, x, diagonal)
    for start, length in itertools.product((0, 1, most, least), repeat=2):
        both(torch.narrow, x, 0, start, length)
    for start, stop, step in itertools.product((0, least, most), (0, least, most), (1, 10 ** 9)):
        same(operator.getitem, x, slice(start, stop, step))
    for n in (0, 3, 4, 5, 10 ** 9):
        same(torch.diff, x, n)
    both(torch.topk, torch.tensor(5.0), 0)
    both(torch.topk, torch.tensor(5.0), most)


def test_circular_padding_never_wraps_twice():
    x = torch.arange(1.0, 5).view(1, 1, 4)
    for a, b in itertools.product(range(-3, 5), repeat=2):
        left = 4 + min(a, 0) + min(b, 0)
        if left >= max(a, b, 1):
            same(F.pad, x, (a, b), "circular")
        elif max(a, b) > left:  # PyTorch refuses, or reads what nobody wrote
            with pytest.raises(RuntimeError, match="wrapping around more than once"):
                samples.lowered(None, F.pad, (x, (a, b), "circular"), {})


@pytest.mark.parametrize("function, settings, word", [
    (F.conv2d, {"stride": 2 ** 60}, "stride"),
    (F.conv2d, {"padding": 2 ** 60}, "padding"),
    (F.conv2d, {"dilation": 2 ** 60}, "dilation"),
    (F.conv_transpose2d, {"output_padding": 2 ** 60}, "output_padding"),
    (F.max_pool2d, {"kernel_size": 2 ** 60}, "kernel_size"),
    (F.avg_pool2d, {"kernel_size": 2, "stride": 2 ** 60}, "stride"),
    (F.unfold, {"kernel_size": 2, "dilation": 2 ** 60}, "dilation")])
def test_windows_that_no_memory_has_are_refused(function, settings, word):
    x = torch.randn(1, 1, 3, 3)
    args = (x, x) if "conv" in function.__name__ else (x,)
    with pytest.raises(RuntimeError, match=f"{word} is {2 ** 60}; it must be at most 2147483647"):
        samples.lowered(None, function, args, settings)
