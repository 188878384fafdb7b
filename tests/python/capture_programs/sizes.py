"""Sizes: none, one, arithmetic, comparisons with each other, as keys, as indices, in strides and
views."""
import math

import torch
from programs import call, evaluating, ints, made, module, program, randn, training
from torch import nn
from torch.nn import functional as F


@program(randn(2, 3), randn(0, 3), randn(1, 3), tags="empty batch")
def sums_any(x):
    return x.sum(0), x.shape[0]


@program(randn(0, 3), randn(2, 3), randn(1, 3), tags="captured with nothing")
def captured_empty(x):
    return torch.cat([x, x.new_ones(1, 3)]).mean(0)


@program(randn(1, 3), randn(4, 3), tags="captured with one")
def captured_one(x):
    return x + torch.ones(x.shape[0], 1), x.expand(x.shape[0], 3)


@program((randn(1, 3), randn(4, 3)), (randn(4, 3), randn(4, 3)), (randn(4, 3), randn(1, 3)),
         tags="broadcast one")
def broadcasts(a, b):
    return a + b


@program((randn(1, 3),), (randn(5, 3),), tags="expand one")
def expands_one(x):
    return x.expand(5, 3)


@program(randn(4, 6), randn(2, 6), randn(6, 4), tags="divmod")
def divides(x):
    q, r = divmod(x.shape[0] * 3, x.shape[1])
    return x.new_full((q + 1, r + 1), 1.0), q, r


@program(randn(2, 8), randn(3, 8), randn(2, 12), tags="heads arithmetic")
def splits_heads(x):
    b, d = x.shape
    heads = max(1, d // 4)
    return x.view(b, heads, d // heads).transpose(0, 1).reshape(heads * b, -1)


@program((randn(3, 4), randn(4, 3)), (randn(2, 5), randn(5, 2)), (randn(2, 5), randn(3, 2)),
         tags="size equals size", captured="guard size")
def compares_sizes(a, b):
    return a @ b if a.shape[1] == b.shape[0] else a.sum() + b.sum()


@program((randn(3), randn(3)), (randn(5), randn(5)), (randn(5), randn(4)),
         tags="shape equals shape",
         captured="guard size")
def same_shape(a, b):
    if a.shape != b.shape:
        return None
    return a * b


@program(randn(4), randn(5), randn(6), tags="even", captured="guard size")
def by_parity(x):
    return x.view(2, -1) if x.shape[0] % 2 == 0 else x[1:].view(2, -1)


@program(randn(10), randn(7), randn(3), tags="slices with steps")
def strided_slices(x):
    n = x.shape[0]
    return x[::2], x[n // 2:], x[: n - 1 : 3], x[-2:], x.flip(0)[1:]


@program(randn(4, 6), randn(4, 9), randn(2, 3), tags="chunk")
def chunks(x):
    return [c.sum() for c in x.chunk(3, 1)]


@program(randn(7, 2), randn(8, 2), randn(6, 2), tags="split rest", captured="guard size")
def splits(x):
    return [c.mean() for c in x.split(3)]


@program(randn(6, 2), randn(8, 2), tags="split by sizes")
def splits_by_sizes(x):
    n = x.shape[0]
    return torch.split(x, [n // 2, n - n // 2])


@program(randn(6), randn(8), randn(5), tags="as_strided unfold")
def windows(x):
    return x.as_strided((x.shape[0] - 2, 3), (1, 1)), x.unfold(0, 2, 2)


@program(randn(3, 4), randn(4, 3).t(), randn(5, 2), tags="stride")
def strides(x):
    return x.stride(), x.stride(0) * 2, x.storage_offset()


@program(randn(3, 4), randn(4, 3).t(), randn(5, 2), tags="contiguous dropped")
def makes_contiguous(x):
    return x.contiguous().view(-1)


@program(randn(3, 4), randn(4, 3).t(), randn(5, 2), tags="is_contiguous", captured="guard layout")
def asks_contiguous(x):
    return x.view(-1) if x.is_contiguous() else x.t().reshape(-1)


@program(randn(3, 4), randn(4, 3).t(), tags="result strides")
def keeps_layout(x):
    return (x * 2).stride(), x.t().contiguous().stride()


@program(randn(2, 3, 4, 4), randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
         tags="channels_last")
def channels(x):
    y = x.contiguous(memory_format=torch.channels_last)
    return y.is_contiguous(memory_format=torch.channels_last), y * 2


TABLE = {3: 10.0, 5: 20.0}


@program(randn(3), randn(5), randn(4), tags="size as key",
         captured="guard size")
def looks_up(x):
    return x * TABLE.get(x.shape[0], -1.0)


@program(randn(3), randn(5), tags="size in set list",
         captured="guard size")
def in_collection(x):
    return x * (1 + [3, 4].count(x.shape[0])) + (x.shape[0] in {3})


@program(randn(3), randn(5), tags="isinstance")
def is_a_number(x):
    n = x.shape[0]
    return isinstance(n, int), isinstance(n, float), isinstance(n, torch.Tensor), x * n


@program(randn(3), randn(5), tags="type of a size")
def type_of_size(x):
    n = x.shape[0]
    return x * 2 if type(n) is int else x * 3


@program(randn(3), randn(5), tags="type in dict")
def dispatch_on_type(x):
    table = {int: "int", float: "float", torch.Tensor: "tensor"}
    return table.get(type(x.shape[0]), "other"), table.get(type(x), "other")


@program(randn(3), randn(5), tags="match size", captured="guard size")
def matches_size(x):
    match x.shape:
        case (3,):
            return x
        case (int(n),):
            return x * n
    return None


@program(randn(4, 4), randn(9, 9), randn(2, 3), tags="sqrt ceil log2")
def math_of_sizes(x):
    n = x.numel()
    side = int(math.sqrt(n))
    return x * math.ceil(math.log2(n)), side * side == n, math.prod(x.shape)


@program(randn(4, 4), randn(9, 9), randn(2, 3), tags="float of sizes")
def scales(x):
    return x / x.shape[-1] ** 0.5, x * (1.0 / x.numel()), x.shape[0] / x.shape[1]


@program(randn(3), randn(5), randn(1), tags="arange of size")
def positions(x):
    n = x.shape[0]
    return torch.arange(n, 2 * n), torch.linspace(0, 1, n), torch.eye(n), torch.full((n,), n)


@program(randn(3), randn(5), tags="tensor of sizes")
def tensor_of_sizes(x):
    return torch.tensor([x.shape[0], 2]), torch.tensor(x.shape), torch.as_tensor(x.shape[0] * 1.5)


@program(randn(3), randn(5), tags="range list")
def rows_in_python(x):
    return [x[i] * i for i in range(len(x))]


@program(randn(3, 2), randn(5, 2), tags="zip enumerate tensor", captured="guard size")
def iterates(x):
    return sum(row * i for i, row in enumerate(x))


@program(randn(3, 2), randn(5, 2), randn(1, 2), tags="torch.Size",
         captured="guard size")
def size_object(x):
    s = x.shape
    return type(s).__name__, s.numel(), s[::-1], (*s, 1), s + (2,), list(s)


@program(randn(2, 3, 4), randn(5, 3, 4), randn(2, 3, 1), tags="shape slice prod")
def flattens(x):
    return x.reshape(-1, *x.shape[2:]), x.reshape(math.prod(x.shape[:2]), -1), x.flatten(1).shape


@program(randn(1, 3), randn(4, 3), randn(1, 1), tags="squeeze", captured="guard size")
def squeezes(x):
    return x.squeeze()


@program((randn(2, 5), 3), (randn(2, 5), 2), (randn(2, 5), 9), tags="number clamps size",
         captured="guard size")
def top(x, k):
    return x.topk(min(k, x.shape[1])).values


@program((randn(6), 2), (randn(6), 3), (randn(6), 4), tags="assert size",
         raises=[((randn(6), 5), AssertionError)],
         captured="guard size")
def asserts(x, n):
    assert x.shape[0] % 3 == 0 or n != 5, "never"
    assert n < 5, f"too many: {n}"
    return x * n


@program((randn(3), 2.0), (randn(3), 0.0), (randn(3), float("nan")), (randn(3), float("inf")),
         tags="nan number",
         captured="guard size")
def divides_unless_zero(x, f):
    return x / f if f else x


@program((randn(3), 1.0), (randn(3), float("nan")), (randn(3), 3.0), tags="nan compared",
         captured="guard size")
def not_less(x, f):
    return x if not f < 2 else -x


@program((randn(3), 3), (randn(3), -3), (randn(3), 0), tags="sign abs", captured="guard size")
def sign_of(x, n):
    return x * abs(n) if n > 0 else x * -n


@program((randn(3), 7), (randn(3), -7), (randn(3), 2**40), tags="bits")
def bit_arithmetic(x, n):
    return x + (n & 3) + (n >> 1) + (n ^ 5) + (~n), n << 1


@program((randn(3), 5, 3), (randn(3), -5, 3), (randn(3), 5, -3), tags="floor mod signs")
def rounds_down(x, a, b):
    return x * (a // b), a % b, divmod(a, b), round(a / b, 2), int(a / b)


@program((randn(3), 10), (randn(3), 255), tags="text of number")
def text_of_number(x, n):
    return f"{n:x}", str(n), n.bit_length()


@program((randn(3), 2), (randn(3), 3), tags="number power")
def power_of_number(x, n):
    return x**n, n**2, 2**n, n**-1


@program((randn(3), 2**62), (randn(3), 2**62 + 1), tags="big numbers")
def big_numbers(x, n):
    return n * 4, x * 1


@program((randn(3), 1), (randn(3), 0), tags="number is bool", captured="guard size")
def number_as_truth(x, n):
    return (x if n else -x), bool(n), not n


@program((randn(4, 4), 1), (randn(4, 4), -1), (randn(4, 4), 0), tags="number as dim")
def number_as_dim(x, dim):
    return x.sum(dim), x.softmax(dim)


@program((randn(4, 4), 1), (randn(4, 4), 3), (randn(4, 4), -1), tags="number as index")
def number_as_index(x, i):
    return x[i], x[:, i], x[i:], x.select(0, i)


@program((list(range(5)), 1, randn(1)), (list(range(5)), 3, randn(1)), tags="number indexes list")
def indexes_list(items, i, x):
    return items[i] * x, items[:i]


@module(randn(1, 3, 8, 8), randn(2, 3, 16, 8), randn(1, 3, 9, 9), tags="conv interpolate")
class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, stride=2, padding=1)

    def forward(self, x):
        y = self.conv(x)
        up = F.interpolate(y, size=x.shape[-2:], mode="bilinear")
        pad = (-x.shape[-1]) % 4
        return F.pad(x + up, (0, pad)), pad


@program((randn(2, 5, 4), ints(3, 5)), (randn(2, 7, 4), ints(7, 1)), (randn(1, 5, 4), ints(2)),
         tags="lengths mask")
def masks_lengths(x, lengths):
    mask = torch.arange(x.shape[1])[None] < lengths[:, None]
    return (x * mask[..., None]).sum(1) / lengths[:, None]


class Made(type):
    pass


@program(randn(3), randn(5), tags="type of types")
def types_of_types(x):
    """`type` itself is what it is outside."""
    n = x.shape[0]
    facts = (type(type(n)) is type, isinstance(int, type), issubclass(Made, type), type(n) == int,
             type(x) is torch.Tensor, type("T", (), {"k": 1})().k, type(1.5 * n).__name__)
    return x * n, facts


@program(randn(3), -randn(3), randn(5), tags="type in a function with a branch on data",
         captured="guard data")
def types_and_data(x):
    y = x * 2 if x.sum() > 0 else -x
    n = len(x.shape) + x.shape[0]
    return y if type(y) is torch.Tensor and type(n) is int else y * 0
