"""Writes into inputs and views, kinds of tensors (complex, half, integer, sparse, quantized), and
exceptions that models raise."""
import torch
from programs import call, evaluating, ints, made, module, program, randn, training
from torch import nn
from torch.nn import functional as F


@program(randn(3), randn(5), tags="in-place input", mutates=True)
def writes_input(x):
    x.mul_(2)
    x[0] = 7
    return x.sum()


@program(randn(3, 4), randn(2, 4), tags="in-place view of input", mutates=True)
def writes_view(x):
    row = x[0]
    row.zero_()
    x[:, 1:3] += 1
    x.t()[0].fill_(9)
    return row, x


@program(randn(6), randn(4), tags="view then write base")
def view_sees_base(x):
    y = x.clone()
    v = y[::2]
    y.mul_(10)
    return v, y


@program(randn(4), randn(6), tags="reshape view or copy")
def reshape_aliases(x):
    y = x.clone()
    v = y.reshape(2, -1)
    v[0, 0] = 100
    return y


@program((randn(3), randn(3)), (randn(5), randn(5)), tags="out=", mutates=True)
def writes_out(x, out):
    torch.add(x, 1, out=out)
    return out is not x


@program((randn(2), [randn(2)]), (randn(3), [randn(3)]), tags="list argument written", mutates=True)
def appends(x, items):
    items.append(x)
    items[0] = items[0] + x
    items.insert(0, x * 2)
    return len(items)


@program((randn(2), {}), (randn(3), {}), tags="dict argument filled", mutates=True)
def fills(x, found):
    found["x"] = x * 2
    found.setdefault("n", x.shape[0])


@program((randn(2), [3, 1, 2]), (randn(3), [5, 4, 9]), tags="list of numbers sorted", mutates=True, captured="guard size")
def sorts_numbers(x, items):
    items.sort()
    return x * items[0]


@program(randn(3), randn(5), tags="swap set_ data", mutates=True)
def assigns_data(x):
    x.data = x.data * 2
    return x + 1


@program(randn(3), randn(5), tags="resize", mutates=True)
def resizes(x):
    y = x.clone().resize_(2)
    return y * 2


@program(randn(3), randn(4), tags="requires_grad_ of input")
def makes_leaf(x):
    y = x.detach().requires_grad_(True)
    return (y * y).sum(), y.requires_grad


@program(randn(4).to(torch.complex64), randn(2).to(torch.complex64), tags="complex")
def rotates(z):
    w = z * torch.exp(1j * torch.arange(z.shape[0]))
    return w.real, w.imag, w.abs(), torch.view_as_real(w), w.conj().resolve_conj()


@program(randn(2, 4), randn(3, 4), tags="rope complex")
def rope(x):
    z = torch.view_as_complex(x.reshape(x.shape[0], -1, 2))
    angle = torch.outer(torch.arange(x.shape[0]), torch.tensor([1.0, 0.1]))
    return torch.view_as_real(z * torch.polar(torch.ones_like(angle), angle)).flatten(1)


@program(torch.tensor(2 + 1j), torch.tensor(3 - 1j), tags="complex item")
def complex_item(z):
    return z.item() * 2, abs(z.item())


@program((randn(2), 2 + 1j), (randn(3), 2 + 1j), (randn(3), 1j), tags="complex argument", captured="guard arguments")
def complex_argument(x, c):
    return x * c


@program(randn(3).half(), randn(5).half(), randn(3), tags="half", captured="guard arguments")
def halves(x):
    return x + 1.5, x.float().sum(), x.dtype, x * torch.tensor(2.0)


@program(ints(1, 2), ints(3, 4, 5), tags="integer promotion")
def promotes(x):
    return x / 2, x // 2, x * 1.5, x + True, x.sum().dtype, torch.result_type(x, 1.0)


@program(torch.tensor([1, 200], dtype=torch.uint8), torch.tensor([255, 0, 3], dtype=torch.uint8), tags="uint8 overflow")
def overflows(x):
    return x + 100, x.float() / 255, ~x, x << 1


@program(torch.tensor([True, False]), torch.tensor([True]), tags="bool tensors")
def booleans(x):
    return ~x, x & True, x.sum(), x | x, x.float().mean()


@program(torch.eye(3).to_sparse(), torch.eye(4).to_sparse(), tags="sparse argument")
def sparse_product(s):
    return torch.sparse.mm(s, torch.ones(s.shape[1], 2)), s.coalesce().values()


@program(randn(3, 3), randn(4, 4), tags="sparse made")
def makes_sparse(x):
    s = x.relu().to_sparse()
    return s.to_dense(), s.is_sparse, torch.sparse.sum(s)


@program(randn(3, 3), randn(4, 4), tags="sparse csr")
def makes_csr(x):
    s = x.relu().to_sparse_csr()
    return s @ torch.ones(x.shape[0], 1)


@program((ints(0, 1, 2), ints(0, 2)), (ints(1, 1, 0, 3), ints(0, 1)), tags="embedding bag")
def bags(ids, offsets):
    table = torch.arange(12.0).view(4, 3)
    return F.embedding_bag(ids, table, offsets, mode="sum")


@program(randn(4), randn(6), tags="quantized")
def quantizes(x):
    q = torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
    return q.dequantize() * 2, q.int_repr(), q.q_scale()


@program((randn(2), randn(3)), (randn(1), randn(4)), tags="nested tensor")
def nested(a, b):
    return (torch.nested.nested_tensor([a, b]) * 2).to_padded_tensor(0.0)


@program(randn(3), randn(5), tags="meta tensor")
def on_meta(x):
    ghost = x.to("meta") + 1
    return list(ghost.shape), ghost.device.type, ghost.is_meta


@program(randn(2, 3), randn(4, 3), tags="wrong shape raises", raises=[(randn(2, 4), RuntimeError)])
def matmul_raises(x):
    return x @ torch.ones(3, 2)


class ModelError(ValueError):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


@program((randn(2), "ok"), (randn(3), "ok"), raises=[((randn(2), "bad"), ModelError)], tags="own exception",
         captured="guard arguments")
def raises_own(x, word):
    if word == "bad":
        raise ModelError(3)
    return x * 2


@program(randn(2, 3), randn(1, 3), raises=[(randn(5, 3), ValueError)], tags="raises by size", captured="guard size")
def raises_by_size(x):
    if x.shape[0] > 4:
        raise ValueError(f"batch {x.shape[0]} is too big")
    return x * 2


@program(randn(3), randn(3), raises=[(torch.tensor([-1.0, 0, 0]), RuntimeError)], tags="assert data")
def asserts_data(x):
    torch._assert(x.sum() > -1e9, "sum")
    if (x == -1).any():
        raise RuntimeError("minus one")
    return x.sqrt()


@program(randn(3), randn(5), tags="caught exception", captured="guard size")
def catches_own(x):
    try:
        raise ModelError(x.shape[0])
    except ModelError as error:
        return x * error.code


@program(randn(3), randn(5), tags="finally return")
def finally_returns(x):
    order = []
    try:
        order.append("try")
        return x * 2, order
    finally:
        order.append("finally")


@program((randn(3), None), (randn(4), None), (randn(3), randn(3)), tags="None or tensor", captured="guard arguments")
def maybe(x, bias=None):
    bias = torch.zeros_like(x) if bias is None else bias
    return x + bias


@program(call(randn(3), randn(3)), call(randn(4), b=randn(4)), call(x=randn(4), b=randn(4)), tags="by name or place")
def by_name(x, b):
    return x - b


@program(call(randn(3)), call(randn(3), 2), call(randn(3), n=2), call(randn(3), 2.0), tags="default number",
         captured="guard arguments")
def default_number(x, n=1):
    return x * n, n


@program(call(randn(2), randn(2)), call(randn(3), randn(3)), call(randn(3)), call(randn(3), k=randn(3)), tags="args kwargs",
         captured="guard arguments")
def everything(*args, **kwargs):
    return sum(args) + sum(kwargs.values())


@program((randn(3), slice(0, 2)), (randn(4), slice(0, 2)), (randn(4), slice(1, 3)), tags="slice argument",
         captured="guard arguments")
def slice_argument(x, s):
    return x[s]


@program((randn(3, 4), [0, 1]), (randn(3, 4), [1, 0]), (randn(3, 4), [1]), tags="dims argument", captured="guard arguments")
def dims_argument(x, dims):
    return x.sum(dims), x.permute(*range(x.dim()))


@program((randn(2, 3), "mean"), (randn(4, 3), "mean"), (randn(2, 3), "max"), tags="getattr by name", captured="guard arguments")
def by_method_name(x, how):
    return getattr(x, how)()


def patches(x, size):
    b, h, w = x.shape
    return x.view(b, h // size, size, w // size, size).permute(0, 1, 3, 2, 4).flatten(3).flatten(1, 2)


@program((randn(1, 4, 4), 2), (randn(2, 8, 4), 2), (randn(1, 8, 8), 4), tags="einops-like")
def patchify(x, size):
    return patches(x, size)


def rearrange(x, pattern, **sizes):
    """A very small einops."""
    left, right = (side.split() for side in pattern.split("->"))
    known = dict(zip(left, x.shape))
    known.update(sizes)
    order = [left.index(name) for part in right for name in part.strip("()").split("*")]
    shape = []
    for part in right:
        total = 1
        for name in part.strip("()").split("*"):
            total *= known[name]
        shape.append(total)
    return x.permute(order).reshape(shape)


@program(randn(2, 3, 4), randn(5, 3, 2), tags="einops strings")
def rearranges(x):
    return rearrange(x, "b t d -> (b*t) d"), rearrange(x, "b t d -> t (d*b)")


def chunks_of(x, n):
    for start in range(0, x.shape[0], n):
        yield x[start : start + n]


@program(randn(6, 2), randn(7, 2), randn(2, 2), tags="generator over sizes", captured="guard size")
def by_chunks(x):
    return [c.sum() for c in chunks_of(x, 3)]


@program(randn(6, 2), randn(7, 2), tags="generator left half-way", captured="guard size")
def half_generator(x):
    source = chunks_of(x, 2)
    first = next(source)
    source.close()
    return first


def accumulate():
    total = 0
    while True:
        value = yield total
        total = total + value


@program(randn(3), randn(4), tags="generator send")
def sends(x):
    g = accumulate()
    next(g)
    g.send(x)
    return g.send(x * 2)


@program(([randn(2), randn(2)],), ([randn(3), randn(3)],), ([randn(3)],), tags="recursion over nest", captured="guard arguments")
def nested_sum(tree):
    if isinstance(tree, torch.Tensor):
        return tree.sum()
    return sum(map(nested_sum, tree))
