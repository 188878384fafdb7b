"""Tensors that are neither parameters nor buffers, and numbers computed in __init__."""
import math
import torch
from torch import nn, Tensor

TABLE = torch.arange(6).reshape(2, 3).float()


class Positions(nn.Module):
    def __init__(self, dim=6, length=10):
        super().__init__()
        pe = torch.zeros(length, dim)
        position = torch.arange(0, length, dtype=torch.float).unsqueeze(1)
        div = torch.exp(torch.arange(0, dim, 2).float() * (-math.log(10000.0) / dim))
        pe[:, 0::2] = torch.sin(position * div)
        pe[:, 1::2] = torch.cos(position * div)
        self.register_buffer("pe", pe.unsqueeze(0), persistent=False)
        self.bias = torch.full((dim,), 0.25)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pe[:, : x.size(1)] + self.bias
        return x @ torch.cat([TABLE, -TABLE]).transpose(0, 1).repeat(2, 1)[:6]


def inputs():
    return [(torch.randn(2, 4, 6),)]
