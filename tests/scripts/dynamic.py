"""Sizes of inputs in expressions, reshaping, einsum, slices."""
import torch


def model(x, groups=2):
    n, c, h, w = x.size()
    per = c // groups
    y = x.reshape(n, groups, per, h * w)
    mean = y.mean(dim=(2, 3), keepdim=True)
    var = ((y - mean) ** 2).mean(dim=(2, 3), keepdim=True)
    y = (y - mean) / torch.sqrt(var + 1e-5)
    y = y.view(n, c, h, w)[:, ::2, 1:, :-1]
    z = torch.einsum("nchw,nkhw->nck", y, y)
    return z.flatten(1), y.permute(0, 2, 3, 1).contiguous(), x[..., -1], x[0, None]


def inputs():
    return [(torch.randn(2, 4, 5, 3),), (torch.randn(1, 6, 2, 2),)]
