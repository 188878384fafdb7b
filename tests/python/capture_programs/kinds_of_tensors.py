"""Complex, half, integer, boolean, sparse, quantized, nested and meta tensors."""
import torch
from programs import ints, program, randn
from torch.nn import functional as F


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


@program((randn(2), 2 + 1j), (randn(3), 2 + 1j), (randn(3), 1j), tags="complex argument",
         captured="guard arguments")
def complex_argument(x, c):
    return x * c


@program(randn(3).half(), randn(5).half(), randn(3), tags="half", captured="guard arguments")
def halves(x):
    return x + 1.5, x.float().sum(), x.dtype, x * torch.tensor(2.0)


@program(ints(1, 2), ints(3, 4, 5), tags="integer promotion")
def promotes(x):
    return x / 2, x // 2, x * 1.5, x + True, x.sum().dtype, torch.result_type(x, 1.0)


@program(torch.tensor([1, 200], dtype=torch.uint8), torch.tensor([255, 0, 3], dtype=torch.uint8),
         tags="uint8 overflow")
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


@program((randn(2), randn(3)), (randn(1), randn(4)), tags="nested tensor",
         captured="refused a graph cannot describe nested tensors")
def nested(a, b):
    return (torch.nested.nested_tensor([a, b]) * 2).to_padded_tensor(0.0)


@program(randn(3), randn(5), tags="meta tensor")
def on_meta(x):
    ghost = x.to("meta") + 1
    return list(ghost.shape), ghost.device.type, ghost.is_meta
