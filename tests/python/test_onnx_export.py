"""cfx.onnx.save: rows and modules as ONNX, checked by onnx and run in ONNX Runtime.

Each case is captured with its first inputs, written, checked (onnx.checker with shape inference),
and run with all inputs, which have other sizes. What is refused must be told, all of it."""
import math
import os

import cfx
import cfx.onnx
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

onnx = pytest.importorskip("onnx", reason="tests/requirements.txt names the version")
ort = pytest.importorskip("onnxruntime", reason="tests/requirements.txt names the version")

r = torch.randn
OPSETS = 18, 20, 21, 23  # each where an operator comes in that rules use


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class Call(nn.Module):
    """A module whose forward takes any arguments."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x, *more):
        return self.module(x, *more)


def leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (bool, int, float)):
        return [torch.tensor(value, dtype=torch.float64 if type(value) is float else None)]
    items = value.values() if isinstance(value, dict) else value
    return [leaf for item in items for leaf in leaves(item)]


def run(path, inputs):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return session.run(None, dict(zip(names, (x.numpy() for x in inputs))))


def save(model, inputs, path, **options):
    captured = cfx.capture(model, *inputs)
    if not hasattr(captured.graph._codegen, "boundary"):  # scripted as a whole: types are not known
        options["inputs"] = inputs
    cfx.onnx.save(captured, path, **options)
    return captured


def same(got, want, what=""):
    assert len(got) == len(want), what
    for a, b in zip(got, want):
        a = torch.from_numpy(np.asarray(a))
        assert a.dtype == b.dtype and a.shape == b.shape, what
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)


def check(model, all_inputs, path, opset=18):
    with torch.no_grad():
        save(model, all_inputs[0], path, opset=opset)
        onnx.checker.check_model(path, full_check=True)
        for inputs in all_inputs:
            same(run(path, leaves(inputs)), leaves(model(*inputs)), f"at {inputs}")


# ---- rows ---------------------------------------------------------------------------------------

UNARY = """abs neg exp sin cos tan tanh sigmoid relu erf erfc floor ceil round trunc frac square
sign atan sinh cosh asinh expm1 isnan isinf isfinite""".split()
POSITIVE = "log log2 log10 log1p sqrt rsqrt reciprocal exp2 acosh".split()
BINARY = """add sub mul div maximum minimum fmax fmin atan2 hypot copysign logaddexp logaddexp2 eq
ne lt le gt ge isclose fmod remainder floor_divide""".split()


@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name, tmp_path):
    check(Function(getattr(torch, name)), [(r(3, 4),), (r(5, 2),)], str(tmp_path / "m.onnx"))


@pytest.mark.parametrize("name", POSITIVE)
def test_one_positive_operand(name, tmp_path):
    check(Function(getattr(torch, name)), [(r(3, 4).abs() + 1.1,), (r(5, 2).abs() + 1.1,)],
          str(tmp_path / "m.onnx"))


@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name, tmp_path):
    check(Function(getattr(torch, name)), [(r(3, 4), r(3, 4)), (r(5, 2), r(5, 2))],
          str(tmp_path / "m.onnx"))


def ints(*shape):
    return torch.randint(-5, 9, shape)


INTEGERS = {
    "true division": lambda x: x / 2,
    "floor division": lambda x: x // 2,
    "by a negative": lambda x: x // -2,
    "modulo": lambda x: x % 3,
    "truncating": lambda x: torch.div(x, 2, rounding_mode="trunc"),
    "with a float": lambda x: x + 1.5,
    "power": lambda x: x**2,
    "sum of bools": lambda x: (x > 0) + (x > 2),
    "bool times int": lambda x: (x > 0) * x,
    "exp": torch.exp,
    "bits": lambda x: (x & 3) | (x ^ 1),
    "shifts": lambda x: (x.abs() << 2) >> 1,
    "not of bool": lambda x: ~(x > 0),
    "not of bits": lambda x: ~x,
    "logic": lambda x: torch.logical_and(x, x > 2),
    "count": lambda x: (x > 0).sum(),
    "running sum": lambda x: x.cumsum(0),
    "isin": lambda x: torch.isin(x, torch.tensor([1, 2])),
    "unique": lambda x: torch.unique(x, return_inverse=True, return_counts=True),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name, tmp_path):
    check(Function(INTEGERS[name]), [(ints(3, 4),), (ints(2, 3),)], str(tmp_path / "m.onnx"))



def U(function):
    return function, (r(3, 4),), (r(5, 4),)


def P(function):
    return function, (r(3, 4).abs() + 0.1,), (r(5, 2).abs() + 0.1,)


def B(function):
    return function, (r(3, 4), r(3, 4)), (r(5, 2), r(5, 2))


def X(function):
    return function, (r(2, 6, 4),), (r(3, 6, 4),)


def I(function):
    return function, (ints(3, 4),), (ints(2, 3),)


def setit(x):
    y = x.clone()
    y[:, 0] = 1
    y[..., 1:3] *= 2
    z = y[0]
    z += 1
    return y, z


def setmask(x):
    y = x.clone()
    y[y > 0] = 0
    y[:, [0, 2]] = 5.0
    return y


def inplace(x):
    y = x * 1
    y.add_(1).relu_()
    v = y.view(-1)
    v[0] = 7
    return y


def inplace2(x):
    y = torch.zeros_like(x)
    y[:, ::2] = x[:, 1::2]
    w = y.transpose(1, 2)
    w[:, 0] = 3
    return y


def setidx(x):
    y = x.clone()
    i = torch.tensor([0, 1])
    y[i, i] = 9.0
    y[:, i] = y[:, i] + 1
    return y


class If(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        return y.relu()


class While(nn.Module):
    def forward(self, x):
        i = 0
        while x.abs().sum() > 1:
            x = x * 0.5
            i = i + 1
        return x, i


class For(nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x[0])
        for i in range(x.shape[0]):
            y = y * 0.9 + x[i]
        return y


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        if x.mean() > 0:
            x = self.l(x)
            if x.sum() > 3:
                x = x + 1
        return x


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(10, 4)
        self.h = nn.Linear(4, 10, bias=False)
        self.h.weight = self.e.weight

    def forward(self, i):
        return self.h(self.e(i))


# fmt: off
FUNCTIONS = {
    "alpha": B(lambda a, b: torch.add(a, b, alpha=2)),
    "rsub": B(lambda a, b: 2 - a),
    "floordiv": B(lambda a, b: a // b),
    "rem": B(lambda a, b: a % b),
    "fmod": B(torch.fmod),
    "pow": P(lambda x: x ** 2.5),
    "rpow": U(lambda x: 2 ** x),
    "clamp": U(lambda x: x.clamp(-0.5, 0.5)),
    "clampmin": U(lambda x: x.clamp(min=0)),
    "clampt": B(lambda a, b: torch.clamp(a, min=b)),
    "lerp": B(lambda a, b: torch.lerp(a, b, 0.3)),
    "addcmul": B(lambda a, b: torch.addcmul(a, a, b, value=0.5)),
    "addcdiv": B(lambda a, b: torch.addcdiv(a, a, b.abs() + 1)),
    "nan_to_num": (lambda x: torch.nan_to_num(x), (torch.tensor([1.0, float('nan'), float('inf'),
        -float('inf')]),)),
    "where": B(lambda a, b: torch.where(a > 0, a, b)),
    "where2": U(lambda a: torch.where(a > 0, a, 0.0)),
    "mfill": U(lambda a: a.masked_fill(a > 0, -1000000000.0)),
    "gelu": U(F.gelu),
    "gelut": U(lambda x: F.gelu(x, approximate='tanh')),
    "silu": U(F.silu),
    "mish": U(F.mish),
    "elu": U(lambda x: F.elu(x, 0.5)),
    "selu": U(F.selu),
    "celu": U(lambda x: F.celu(x, 0.7)),
    "leaky": U(lambda x: F.leaky_relu(x, 0.2)),
    "prelu": (nn.PReLU(4), (r(2, 4, 3),), (r(3, 4, 5),)),
    "hs": U(F.hardsigmoid),
    "hsw": U(F.hardswish),
    "hshr": U(F.hardshrink),
    "sshr": U(F.softshrink),
    "softplus": U(lambda x: F.softplus(x, 2, 5)),
    "thr": U(lambda x: F.threshold(x, 0.1, 20)),
    "logsig": U(F.logsigmoid),
    "tshr": U(F.tanhshrink),
    "softsign": U(F.softsign),
    "glu": U(F.glu),
    "softmax": U(lambda x: F.softmax(x, -1)),
    "lsm": U(lambda x: F.log_softmax(x, 0)),
    "softmin": U(lambda x: F.softmin(x, 1)),
    "relu6": U(F.relu6),
    "htanh": U(lambda x: F.hardtanh(x, -0.3, 0.4)),
    "dropout": U(lambda x: F.dropout(x, 0.5, False)),
    "sum": U(lambda x: x.sum()),
    "sumd": U(lambda x: x.sum(1)),
    "sumk": U(lambda x: x.sum((0, 1), keepdim=True)),
    "mean": U(lambda x: x.mean(-1, keepdim=True)),
    "prod": U(lambda x: x.prod(1)),
    "amax": U(lambda x: x.amax(1)),
    "max": U(lambda x: x.max()),
    "maxd": U(lambda x: x.max(1)),
    "mind": U(lambda x: torch.min(x, 0).values),
    "argmax": U(lambda x: x.argmax(1)),
    "argmaxall": U(lambda x: x.argmax()),
    "any": U(lambda x: (x > 0).any(1)),
    "all": U(lambda x: (x > -3).all()),
    "std": U(lambda x: x.std()),
    "var": U(lambda x: x.var(1, unbiased=False)),
    "stdm": U(lambda x: torch.std_mean(x, 1)),
    "lse": U(lambda x: torch.logsumexp(x, 1)),
    "norm": U(lambda x: x.norm(dim=1)),
    "norm1": U(lambda x: x.norm(1)),
    "vnorm": U(lambda x: torch.linalg.vector_norm(x, 3, dim=1)),
    "normalize": U(lambda x: F.normalize(x)),
    "cumsum": U(lambda x: x.cumsum(1)),
    "cossim": B(lambda a, b: F.cosine_similarity(a, b)),
    "diff": U(lambda x: x.diff()),
    "median": U(lambda x: x.median()),
    "mediand": U(lambda x: x.median(1)),
    "nansum": U(lambda x: x.nansum(0)),
    "histc": U(lambda x: x.histc(bins=5, min=-1, max=2)),
    "histc_integers": I(lambda i: torch.histc(i.float(), bins=4, min=0, max=3)),
    **{f"dist{p}": B(lambda a, b, p=p: torch.dist(a, b, p)) for p in (0, 1, 2, 3)},
    "safe_softmax": U(lambda x: torch.ops.aten._safe_softmax(torch.where(x > 0, -math.inf, x), 1)),
    **{f"reduce_apart_{how}": U(lambda x, how=how: x.scatter_reduce(
        0, torch.tensor([[0, 1, 1], [1, 0, 2]]), x[:2, :3] * 2, how, include_self=False))
        for how in ("sum", "mean", "prod", "amax", "amin")},
    "reduce_mean": U(lambda x: x.scatter_reduce(0, torch.tensor([[0, 1], [1, 1]]), x[:2], "mean")),
    **{f"bags_{mode}": U(lambda x, mode=mode: F.embedding_bag(
        torch.tensor([1, 2, 0, 1]), x, torch.tensor([0, 1, 1, 4]), mode=mode,
        include_last_offset=True)) for mode in ("sum", "mean", "max")},
    "out": U(lambda x: torch.add(x, 1, out=torch.empty(x.shape)) * 2),
    "aliases": U(lambda x: (lambda y: y.detach().detach().add_(1) + y)(x * 2)),
    "grouped": (lambda x: torch._grouped_mm(x, torch.arange(96.0).view(3, 4, 8) / 96,
                                            offs=torch.tensor([1, 1, 2], dtype=torch.int32))[:2],
                (r(3, 4),), (r(5, 4),)),
    "sort": U(lambda x: x.sort(1, descending=True)),
    "argsort": U(lambda x: x.argsort(0)),
    "topk": U(lambda x: x.topk(2, 1)),
    "kth": U(lambda x: x.kthvalue(2)),
    "nonzero": U(lambda x: (x > 0).nonzero()),
    "where1": U(lambda x: torch.where(x > 0)),
    "bucket": U(lambda x: torch.bucketize(x, torch.tensor([-1.0, 0, 1.0]))),
    "mm": (torch.mm, (r(3, 4), r(4, 5)), (r(2, 4), r(4, 3))),
    "matmul": (torch.matmul, (r(2, 3, 4), r(4, 5))),
    "mv": (torch.mv, (r(3, 4), r(4))),
    "dot": (torch.dot, (r(4), r(4))),
    "bmm": (torch.bmm, (r(2, 3, 4), r(2, 4, 5))),
    "addmm": (lambda a, b, c: torch.addmm(a, b, c, beta=0.5, alpha=2), (r(3, 5), r(3, 4), r(4, 5))),
    "baddbmm": (torch.baddbmm, (r(2, 3, 5), r(2, 3, 4), r(2, 4, 5))),
    "outer": (torch.outer, (r(3), r(4))),
    "linear": (nn.Linear(4, 5), (r(3, 4),), (r(7, 4),)),
    "linear3": (nn.Linear(4, 5), (r(2, 3, 4),), (r(1, 7, 4),)),
    "bilin": (nn.Bilinear(3, 4, 5), (r(2, 3), r(2, 4))),
    "einsum": (lambda a, b: torch.einsum('bij,bjk->bik', a, b), (r(2, 3, 4), r(2, 4, 5))),
    "tensordot": (lambda a, b: torch.tensordot(a, b, dims=([1], [0])), (r(3, 4), r(4, 5))),
    "cdist": (torch.cdist, (r(3, 4), r(5, 4))),
    "cross": (lambda a, b: torch.cross(a, b, dim=1), (r(5, 3), r(5, 3))),
    "trace": (torch.trace, (r(4, 4),)),
}
SHAPES_AND_LAYERS = {
    "view": X(lambda x: x.view(x.shape[0], -1)),
    "reshape": X(lambda x: x.reshape(-1, 4)),
    "flatten": X(lambda x: x.flatten(1)),
    "flatten2": X(lambda x: x.flatten(0, 1)),
    "unflatten": X(lambda x: x.unflatten(1, (2, 3))),
    "permute": X(lambda x: x.permute(2, 0, 1)),
    "transpose": X(lambda x: x.transpose(1, 2)),
    "mT": X(lambda x: x.mT),
    "T": (lambda x: x.T, (r(3, 4),)),
    "movedim": X(lambda x: x.movedim(0, -1)),
    "squeeze": X(lambda x: x[:, :1].squeeze(1)),
    "unsq": X(lambda x: x.unsqueeze(-1)),
    "expand": X(lambda x: x[:, :1].expand(-1, 5, -1)),
    "expandas": (lambda a, b: a.expand_as(b), (r(1, 4), r(3, 4))),
    "repeat": X(lambda x: x.repeat(2, 1, 3)),
    "repeat4": X(lambda x: x.repeat(2, 1, 1, 1)),
    "tile": X(lambda x: x.tile((2,))),
    "ri": X(lambda x: x.repeat_interleave(3, 1)),
    "ri2": X(lambda x: x.repeat_interleave(2)),
    "ri3": (lambda x, n: torch.repeat_interleave(x, n, 0), (r(3, 2), torch.tensor([1, 0, 3]))),
    "cat": X(lambda x: torch.cat([x, x * 2], 1)),
    "stack": X(lambda x: torch.stack([x, x], -1)),
    "hstack": X(lambda x: torch.hstack([x, x])),
    "vstack": (lambda x: torch.vstack([x, x]), (r(3),)),
    "split": X(lambda x: x.split(4, 1)),
    "splitb": X(lambda x: x.split(1, 2)),
    "sws": X(lambda x: x.split([1, 2, 3], 1)),
    "chunk": X(lambda x: x.chunk(3, 1)),
    "unbind": X(lambda x: x.unbind(2)),
    "meshgrid": (lambda a, b: torch.meshgrid(a, b, indexing='ij'), (r(3), r(4)), (r(2), r(5))),
    "meshxy": (lambda a, b: torch.meshgrid(a, b, indexing='xy'), (r(3), r(4)), (r(2), r(5))),
    "bt": (lambda a, b: torch.broadcast_tensors(a, b), (r(3, 1), r(1, 4))),
    "flip": X(lambda x: x.flip(1, 2)),
    "roll": X(lambda x: x.roll(2, 1)),
    "roll2": X(lambda x: x.roll((1, -1), (0, 2))),
    "rollall": X(lambda x: x.roll(5)),
    "rot90": X(lambda x: torch.rot90(x, 1, (1, 2))),
    "rot903": X(lambda x: torch.rot90(x, 3, (1, 2))),
    "unfold": X(lambda x: x.unfold(1, 3, 2)),
    "pad": X(lambda x: F.pad(x, (1, 2, 0, 1), value=3.0)),
    "padr": X(lambda x: F.pad(x, (1, 2), mode='reflect')),
    "pade": X(lambda x: F.pad(x, (1, 2), mode='replicate')),
    "ps": (lambda x: F.pixel_shuffle(x, 2), (r(2, 8, 3, 3),)),
    "pus": (lambda x: F.pixel_unshuffle(x, 2), (r(2, 2, 4, 6),), (r(1, 2, 6, 4),)),
    "cs": (nn.ChannelShuffle(2), (r(2, 4, 3, 3),)),
    "tril": X(lambda x: x.tril()),
    "triu": X(lambda x: x.triu(1)),
    "diagonal": X(lambda x: x.diagonal(1, 1, 2)),
    "diag": (torch.diag, (r(3),)),
    "diag2": (lambda x: torch.diag(x, -1), (r(4, 5),)),
    "diag_embed": X(lambda x: torch.diag_embed(x)),
    "diag_e1": (lambda x: torch.diag_embed(x, 1), (r(2, 3),)),
    "diag_em1": (lambda x: torch.diag_embed(x, -2), (r(2, 3),)),
    "half": X(lambda x: x.half().float()),
    "toint": X(lambda x: x.to(torch.int64)),
    "long": X(lambda x: (x * 3).long()),
    "bool": X(lambda x: x.bool()),
    "typeas": (lambda a, b: a.type_as(b), (r(3), torch.ones(3, dtype=torch.float64))),
    "zeros": X(lambda x: torch.zeros(x.shape[0], 3) + x[:, 0, :3]),
    "full": X(lambda x: torch.full((x.shape[0], 2), 7)),
    "ones_like": X(torch.ones_like),
    "new_full": X(lambda x: x.new_full((2, x.size(0)), 3.0)),
    "arange": X(lambda x: torch.arange(x.shape[0])),
    "arangef": X(lambda x: torch.arange(1.0, 7.0, 0.5) + x[0, 0, 0]),
    "linspace": X(lambda x: torch.linspace(0, 1, x.shape[0])),
    "eye": X(lambda x: torch.eye(x.shape[0])),
    "hann": X(lambda x: torch.hann_window(8) + x[0, 0, 0]),
    "tensor": X(lambda x: torch.tensor([1.0, 2.0]) + x[0, 0, 0]),
    "getint": X(lambda x: x[0]),
    "getneg": X(lambda x: x[:, -1]),
    "slice": X(lambda x: x[:, 1:-1]),
    "step": X(lambda x: x[:, ::2]),
    "none": X(lambda x: x[:, None]),
    "ell": X(lambda x: x[..., 0]),
    "mix": X(lambda x: x[0, ..., 1:3, None]),
    "idx": (lambda x, i: x[i], (r(5, 3), torch.tensor([0, 2, -1]))),
    "idx2": (lambda x, i: x[:, i], (r(5, 3), torch.tensor([0, 2]))),
    "idxidx": (lambda x, i, j: x[i, j], (r(5, 3), torch.tensor([0, 2]), torch.tensor([1, 1]))),
    "idxb": (lambda x, i, j: x[i[:, None], j], (r(5, 3), torch.tensor([0, 2]), torch.tensor([1,
        1, 0]))),
    "idxmid": (lambda x, i, j: x[:, i, j], (r(2, 5, 3), torch.tensor([0, 2]), torch.tensor([1,
        1]))),
    "idxsep": (lambda x, i, j: x[i, :, j], (r(2, 5, 3), torch.tensor([0, 1]), torch.tensor([1,
        1]))),
    "mask": X(lambda x: x[x > 0]),
    "mask2": (lambda x, m: x[m], (r(4, 3), torch.tensor([True, False, True, True]))),
    "maskmid": (lambda x, m: x[:, m], (r(2, 4, 3), torch.tensor([True, False, True, True]))),
    "lst": X(lambda x: x[:, [0, 2, 3]]),
    "gather": (lambda x, i: x.gather(1, i), (r(3, 4), torch.randint(0, 4, (3, 2)))),
    "scatter": (lambda x, i, s: x.scatter(1, i, s), (r(3, 4), torch.tensor([[0, 1], [2, 3], [1,
        0]]), r(3, 2))),
    "scatterv": (lambda x, i: x.scatter(1, i, 2.0), (r(3, 4), torch.tensor([[0], [2], [1]]))),
    "sadd": (lambda x, i, s: x.scatter_add(1, i, s), (r(3, 4), torch.tensor([[0, 0], [2, 3], [1,
        0]]), r(3, 2))),
    "sred": (lambda x, i, s: x.scatter_reduce(1, i, s, 'amax'), (r(3, 4), torch.tensor([[0, 0],
        [2, 3], [1, 0]]), r(3, 2))),
    "isel": (lambda x, i: x.index_select(1, i), (r(3, 4), torch.tensor([0, 2]))),
    "iadd": (lambda x, i, s: x.index_add(0, i, s), (r(3, 4), torch.tensor([0, 2]), r(2, 4))),
    "icopy": (lambda x, i, s: x.index_copy(0, i, s), (r(3, 4), torch.tensor([0, 2]), r(2, 4))),
    "ifill": (lambda x, i: x.index_fill(1, i, -1.0), (r(3, 4), torch.tensor([0, 2]))),
    "msel": X(lambda x: torch.masked_select(x, x > 0)),
    "mscat": (lambda x, m, s: x.masked_scatter(m, s), (r(3, 4), r(3, 4) > 0, r(12))),
    "take": (lambda x, i: torch.take(x, i), (r(3, 4), torch.tensor([0, 5]))),
    "tad": (lambda x, i: torch.take_along_dim(x, i, 1), (r(3, 4), torch.tensor([[0], [1], [2]]))),
    "sscat": (lambda x, s: torch.select_scatter(x, s, 0, 1), (r(3, 4), r(4))),
    "slscat": (lambda x, s: torch.slice_scatter(x, s, 0, 1, 3), (r(3, 4), r(2, 4))),
    "iput": (lambda x, i, v: torch.index_put(x, (i,), v), (r(3, 4), torch.tensor([0, 2]), r(2, 4))),
    "iputa": (lambda x, i, v: torch.index_put(x, (i,), v, True), (r(3, 4), torch.tensor([0, 0]),
        r(2, 4))),
    "emb": (nn.Embedding(10, 4), (torch.randint(0, 10, (2, 3)),), (torch.randint(0, 10, (1, 5)),)),
    "onehot": (lambda i: F.one_hot(i, 6), (torch.randint(0, 6, (2, 3)),)),
    "embbag": (nn.EmbeddingBag(10, 4, mode='sum'), (torch.randint(0, 10, (2, 3)),)),
    "setit": X(setit),
    "setmask": X(setmask),
    "inplace": X(inplace),
    "inplace2": X(inplace2),
    "setidx": (setidx, (r(3, 4),)),
    "conv2d": (nn.Conv2d(3, 5, 3, 2, 1), (r(2, 3, 8, 8),), (r(1, 3, 10, 7),)),
    "conv1d": (nn.Conv1d(3, 6, 3, groups=3, dilation=2), (r(2, 3, 9),)),
    "conv3d": (nn.Conv3d(2, 3, 2), (r(1, 2, 4, 4, 4),)),
    "same": (nn.Conv2d(3, 5, 4, padding='same'), (r(2, 3, 8, 8),)),
    "unb": (nn.Conv2d(3, 5, 3), (r(3, 8, 8),)),
    "circ": (nn.Conv2d(3, 5, 3, padding=1, padding_mode='reflect'), (r(2, 3, 8, 8),)),
    "convt": (nn.ConvTranspose2d(3, 5, 3, 2, 1, output_padding=1), (r(2, 3, 5, 5),), (r(1, 3, 4,
        6),)),
    "convt1": (nn.ConvTranspose1d(3, 6, 3, groups=3), (r(2, 3, 5),)),
    "mp": (nn.MaxPool2d(2), (r(2, 3, 8, 8),), (r(1, 3, 6, 9),)),
    "mpc": (nn.MaxPool2d(3, 2, 1, ceil_mode=True), (r(2, 3, 8, 8),), (r(1, 3, 7, 9),)),
    "mp1": (nn.MaxPool1d(3, 1, 1), (r(2, 3, 8),)),
    "ap": (nn.AvgPool2d(3, 2, 1), (r(2, 3, 8, 8),), (r(1, 3, 7, 9),)),
    "apn": (nn.AvgPool2d(3, 2, 1, count_include_pad=False), (r(2, 3, 8, 8),)),
    "apc": (nn.AvgPool2d(3, 2, ceil_mode=True), (r(2, 3, 8, 8),)),
    "apd": (nn.AvgPool2d(2, divisor_override=3), (r(2, 3, 8, 8),)),
    "aap1": (nn.AdaptiveAvgPool2d(1), (r(2, 3, 8, 8),), (r(1, 3, 7, 9),)),
    "aap3": (nn.AdaptiveAvgPool2d(3), (r(2, 3, 8, 7),)),
    "amp": (nn.AdaptiveMaxPool2d(2), (r(2, 3, 8, 8),)),
    "lp": (nn.LPPool2d(2, 3), (r(2, 3, 8, 8).abs(),)),
    "im2col": (lambda x: F.unfold(x, 3, padding=1, stride=2), (r(2, 3, 8, 8),), (r(1, 3, 6, 9),)),
    "col2im": (lambda x: F.fold(x, (4, 5), (2, 2)), (r(2, 12, 12),)),
    "bn": (nn.BatchNorm2d(3), (r(2, 3, 4, 4),), (r(1, 3, 5, 6),)),
    "bn1": (nn.BatchNorm1d(3, affine=False), (r(2, 3),)),
    "in": (nn.InstanceNorm2d(3, affine=True), (r(2, 3, 4, 4),)),
    "in2": (nn.InstanceNorm2d(3), (r(2, 3, 4, 4),)),
    "ln": (nn.LayerNorm(4), (r(2, 3, 4),), (r(5, 1, 4),)),
    "ln2": (nn.LayerNorm((3, 4), elementwise_affine=False), (r(2, 3, 4),)),
    "gn": (nn.GroupNorm(2, 4), (r(2, 4, 3, 3),), (r(1, 4, 5, 2),)),
    "rms": (nn.RMSNorm(4), (r(2, 3, 4),)),
    "lrn": (nn.LocalResponseNorm(3), (r(2, 4, 3, 3),)),
    "wn": (torch.nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), (r(2, 3),)),
    "sdpa": (F.scaled_dot_product_attention, (r(2, 3, 5, 4), r(2, 3, 6, 4), r(2, 3, 6, 4))),
    "sdpac": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (r(2, 3,
        5, 4), r(2, 3, 5, 4), r(2, 3, 5, 4)), (r(1, 3, 7, 4), r(1, 3, 7, 4), r(1, 3, 7, 4))),
    "sdpam": (lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), (r(2, 3, 5, 4), r(2,
        3, 5, 4), r(2, 3, 5, 4), torch.ones(5, 5).tril().bool())),
}
MODELS = {
    "lstm": (Call(nn.LSTM(3, 4, 2, bidirectional=True)), (r(5, 2, 3),), (r(7, 3, 3),)),
    "lstmbf": (Call(nn.LSTM(3, 4, batch_first=True)), (r(2, 5, 3),), (r(3, 4, 3),)),
    "gru": (Call(nn.GRU(3, 4, 2)), (r(5, 2, 3),), (r(3, 1, 3),)),
    "gruh": (Call(nn.GRU(3, 4)), (r(5, 2, 3), r(1, 2, 4))),
    "rnn": (Call(nn.RNN(3, 4, nonlinearity='relu')), (r(5, 2, 3),)),
    "rnnt": (Call(nn.RNN(3, 4, bias=False)), (r(5, 2, 3),)),
    "lstmu": (Call(nn.LSTM(3, 4)), (r(5, 3),)),
    "lstmcell": (Call(nn.LSTMCell(3, 4)), (r(2, 3),)),
    "grucell": (Call(nn.GRUCell(3, 4)), (r(2, 3),)),
    "rnncell": (Call(nn.RNNCell(3, 4)), (r(2, 3),)),
    "mha2": (Call(nn.MultiheadAttention(8, 2)), (r(3, 2, 8), r(3, 2, 8), r(3, 2, 8)), (r(5, 1,
        8), r(5, 1, 8), r(5, 1, 8))),
    "enc": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (r(2, 5, 8),), (r(3, 4, 8),)),
    "encs": (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2), (r(5, 2, 8),)),
    "dec": (nn.TransformerDecoderLayer(8, 2, 16), (r(5, 2, 8), r(6, 2, 8))),
    "tf": (nn.Transformer(8, 2, 1, 1, 16), (r(5, 2, 8), r(6, 2, 8))),
    "up": (lambda x: F.interpolate(x, scale_factor=2), (r(1, 2, 4, 5),), (r(2, 2, 3, 3),)),
    "upb": (lambda x: F.interpolate(x, size=(7, 9), mode='bilinear'), (r(1, 2, 4, 5),)),
    "upc": (lambda x: F.interpolate(x, scale_factor=2.0, mode='bilinear', align_corners=True),
        (r(1, 2, 4, 5),)),
    "upbc": (lambda x: F.interpolate(x, size=(7, 9), mode='bicubic'), (r(1, 2, 4, 5),)),
    "up1": (lambda x: F.interpolate(x, scale_factor=2.0, mode='linear'), (r(1, 2, 4),)),
    "nexact": (lambda x: F.interpolate(x, size=(7, 9), mode='nearest-exact'), (r(1, 2, 4, 5),)),
    "gs": (lambda x, g: F.grid_sample(x, g, align_corners=False), (r(1, 2, 4, 5), torch.rand(1,
        3, 3, 2) * 2 - 1)),
    "gsb": (lambda x, g: F.grid_sample(x, g, mode='nearest', padding_mode='border',
        align_corners=True), (r(1, 2, 4, 5), torch.rand(1, 3, 3, 2) * 2 - 1)),
    "mse": (F.mse_loss, (r(3, 4), r(3, 4))),
    "l1": (F.l1_loss, (r(3, 4), r(3, 4))),
    "sl1": (lambda a, b: F.smooth_l1_loss(a, b, beta=0.5), (r(3, 4), r(3, 4))),
    "huber": (lambda a, b: F.huber_loss(a, b, delta=0.5), (r(3, 4), r(3, 4))),
    "bce": (F.binary_cross_entropy, (torch.rand(3, 4), torch.rand(3, 4))),
    "bcel": (F.binary_cross_entropy_with_logits, (r(3, 4), torch.rand(3, 4))),
    "kl": (F.kl_div, (r(3, 4), torch.rand(3, 4))),
    "ce": (F.cross_entropy, (r(3, 4), torch.tensor([0, 2, 3]))),
    "nll": (F.nll_loss, (r(3, 4), torch.tensor([0, 2, 3]))),
    "ces": (lambda a, b: F.cross_entropy(a, b, reduction='sum'), (r(3, 4, 5), torch.randint(0, 4,
        (3, 5)))),
    "if": (If(), (r(3),), (-r(4).abs(),)),
    "while": (While(), (r(3) * 10,), (r(4),)),
    "for": (For(), (r(3, 2),), (r(5, 2),)),
    "both": (Both(), (r(2, 4).abs(),), (-r(3, 4).abs(),)),
    "tied": (Tied(), (torch.randint(0, 10, (2, 3)),)),
    "num": (lambda x, n: x * n + x.shape[0], (r(3), 2)),
    "numf": (lambda x, n: x * n, (r(3), 2.5)),
    "item": (lambda x: x * x.max().item(), (r(3),)),
    "aap3": (nn.AdaptiveAvgPool2d(3), (r(2, 3, 8, 7),), (r(1, 3, 5, 9),)),
    "amp": (nn.AdaptiveMaxPool2d((2, 3)), (r(2, 3, 8, 8),), (r(2, 3, 7, 5),)),
    "embbag": (nn.EmbeddingBag(10, 4, mode='sum'), (torch.randint(0, 10, (2, 3)),)),
    "dictout": (lambda x: {'a': x + 1, 'b': (x, x.shape[0])}, (r(3),)),
    "same_out": (lambda x: (x, x), (r(3),)),
}
# fmt: on


def check_case(case, path, opset):
    model, *inputs = case
    torch.manual_seed(0)
    model = model if isinstance(model, nn.Module) else Function(model)
    check(model.eval(), inputs, path, opset)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name, tmp_path):
    check_case(FUNCTIONS[name], str(tmp_path / "m.onnx"), 18)


@pytest.mark.parametrize("name", SHAPES_AND_LAYERS)
def test_shapes_and_layers(name, tmp_path):
    check_case(SHAPES_AND_LAYERS[name], str(tmp_path / "m.onnx"), 18)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", MODELS)
def test_model(name, opset, tmp_path):
    check_case(MODELS[name], str(tmp_path / "m.onnx"), opset)


@pytest.mark.parametrize("name", ["gelu", "gelut", "softmax", "sum"])
@pytest.mark.parametrize("opset", range(18, 29))
def test_every_opset_is_valid(opset, name, tmp_path):
    """ONNX Runtime does not read the newest opsets yet; onnx checks them."""
    path = str(tmp_path / "m.onnx")
    model, inputs, *_ = FUNCTIONS[name]
    save(Function(model), inputs, path, opset=opset)
    onnx.checker.check_model(path, full_check=True)
    written = onnx.load(path)
    assert [(o.domain, o.version) for o in written.opset_import] == [("", opset)]
    assert written.ir_version == onnx.helper.OP_SET_ID_VERSION_MAP["ai.onnx", opset]


# ---- the file -----------------------------------------------------------------------------------


def test_a_wrong_file_is_seen(tmp_path):
    """The comparison itself: another model's file is not equal."""
    path = str(tmp_path / "m.onnx")
    save(Function(lambda x: x + 1), (r(3),), path)
    with pytest.raises(AssertionError):
        same(run(path, [torch.ones(3)]), [torch.ones(3)])


def test_signature_and_metadata(tmp_path):
    path = str(tmp_path / "m.onnx")

    class Named(nn.Module):
        def forward(self, x, d):
            return {"a": (x.relu() + d["q"]).sum(1)}

    save(Named(), (r(3, 4), {"q": r(4)}), path)
    model = onnx.load(path)
    shapes = {i.name: [d.dim_param for d in i.type.tensor_type.shape.dim]
              for i in model.graph.input}
    assert shapes == {"x": ["x_0", "x_1"], "d['q']": ["d_q_0"]}
    assert [o.name for o in model.graph.output] == ["result['a']"]
    assert model.producer_name == "cfx" and model.producer_version
    relu = next(n for n in model.graph.node if n.op_type == "Relu")
    where = {p.key: p.value for p in relu.metadata_props}["cfx.location"]
    assert os.path.basename(where).startswith("test_onnx_export.py:") and relu.doc_string == where
    assert any(v.name == "relu" for v in model.graph.value_info)


def test_tied_weights_are_written_once(tmp_path):
    path = str(tmp_path / "m.onnx")
    save(Tied(), (torch.tensor([[1, 2]]),), path)
    large = [t for t in onnx.load(path).graph.initializer if len(t.dims) == 2]
    assert [tuple(t.dims) for t in large] == [(10, 4)]


def test_external_data(tmp_path):
    path = str(tmp_path / "m.onnx")
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3)).eval()
    save(model, (r(2, 64),), path, external=True)
    onnx.checker.check_model(path, full_check=True)
    data = os.path.getsize(path + ".data")
    assert data >= 64 * 64 * 4 and os.path.getsize(path) < 8000
    with torch.no_grad():
        x = r(5, 64)
        same(run(path, [x]), [model(x)])
    for t in onnx.load(path, load_external_data=False).graph.initializer:
        offsets = [int(e.value) for e in t.external_data if e.key == "offset"]
        assert all(offset % 64 == 0 for offset in offsets)


def test_findings_are_all_told_and_nothing_is_written(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"as it was")

    def program(x):
        u = torch.linalg.svd(x)[1]
        return u, torch.lgamma(x), torch.digamma(x)

    with pytest.raises(cfx.onnx.ExportError) as error:
        save(Function(program), (r(3, 3),), str(path))
    ops = sorted(op for _, _, op, _ in error.value.findings)
    assert ops == ["cfx.ops.digamma", "cfx.ops.lgamma", "cfx.ops.linalg_svd"]
    assert all("test_onnx_export.py" in where for where, *_ in error.value.findings)
    assert path.read_bytes() == b"as it was" and os.listdir(tmp_path) == ["m.onnx"]


def test_writes_through_choices_are_refused(tmp_path):
    def program(x):
        grid = torch.zeros(2, 3)
        row = grid[0]
        if x.sum() > 0:
            row = grid[1]
        row += x
        return grid

    with pytest.raises(cfx.onnx.ExportError, match="branch"):
        save(Function(program), (r(3).abs(),), str(tmp_path / "m.onnx"))


def test_what_only_assertions_ask_is_no_finding(tmp_path):
    """It has no counterpart, and needs none: the text says what was checked."""
    def guarded(x):
        if x.storage_offset() == 0 and not x.requires_grad:
            return x * 2
        return x

    gm = cfx.capture(guarded, torch.ones(2, 3))
    cfx.onnx.save(gm, tmp_path / "m.onnx")
    model = onnx.load(tmp_path / "m.onnx")
    assert [n.op_type for n in model.graph.node] == ["Mul", "Identity"]
    checks = {p.key: p.value for p in model.metadata_props}["cfx.checks"]
    assert "storage_offset" in checks and "test_onnx_export.py:" in checks


def test_unknown_inputs_are_a_finding(tmp_path):
    traced = cfx.symbolic_trace(nn.Linear(3, 3))
    path = str(tmp_path / "m.onnx")
    with pytest.raises(cfx.onnx.ExportError, match="not known"):
        cfx.onnx.save(traced, path)
    x = r(2, 3)
    cfx.onnx.save(traced, path, inputs=(x,))
    with torch.no_grad():
        same(run(path, [r(4, 3) * 0 + 1]), [traced(torch.ones(4, 3))])


def test_bad_arguments(tmp_path):
    captured = cfx.capture(nn.Linear(3, 3), r(2, 3))
    for opset in (17, 29):
        with pytest.raises(ValueError, match="opset"):
            cfx.onnx.save(captured, tmp_path / "m.onnx", opset=opset)
    with pytest.raises(TypeError, match="GraphModule"):
        cfx.onnx.save(nn.Linear(3, 3), tmp_path / "m.onnx")
    with pytest.raises(OSError):
        cfx.onnx.save(captured, tmp_path / "none" / "m.onnx")


def test_tensors_that_are_written_to_are_state(tmp_path):
    class Mean(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.ones(3))

        def forward(self, x):
            self.total.add_(x)
            return self.total * 2

    path = str(tmp_path / "m.onnx")
    cfx.onnx.save(cfx.capture(Mean(), r(3)), path)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert [i.name for i in session.get_overridable_initializers()] == ["total"]
    names = [out.name for out in session.get_outputs()]
    kept, model = {}, Mean()
    for _ in range(3):
        x = r(3)
        got = dict(zip(names, session.run(None, {"x": x.numpy(), **kept})))
        kept = {"total": got.pop("total_next")}
        (result,) = got.values()
        assert np.allclose(result, model(x))
        assert np.allclose(kept["total"], model.total)


def test_lists_that_grow_are_sequences(tmp_path):
    def powers(x, n: int):
        out = []
        for i in range(n):
            out.append(x ** i)
        return torch.stack(out, 1), out

    path = str(tmp_path / "m.onnx")
    cfx.onnx.save(cfx.script(powers), path, inputs=(r(4), 3))
    onnx.checker.check_model(path, full_check=True)
    for x, n in ((r(4), 3), (r(2), 5)):
        stacked, items = run(path, (x, torch.tensor(n)))
        want, parts = powers(x, n)
        assert np.allclose(stacked, want) and len(items) == n
        assert all(np.allclose(a, b) for a, b in zip(items, parts))


def test_a_tensor_in_a_list_is_not_written_to(tmp_path):
    def steps(x, n: int):
        out = []
        for _ in range(n):
            x.add_(1)
            out.append(x)
        return torch.stack(out)

    with pytest.raises(cfx.onnx.ExportError, match="append a copy"):
        cfx.onnx.save(cfx.script(steps), str(tmp_path / "m.onnx"), inputs=(r(4), 3))
