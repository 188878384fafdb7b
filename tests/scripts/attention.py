"""Attention written by hand, with a mask that may be left out."""
import math

import torch
from torch import nn
from typing import Optional


class SelfAttention(nn.Module):
    def __init__(self, dim: int = 8, heads: int = 2):
        super().__init__()
        assert dim % heads == 0, "heads must divide dim"
        self.heads = heads
        self.scale = 1 / math.sqrt(dim // heads)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.register_buffer("tril", torch.tril(torch.ones(16, 16)))

    def forward(self, x, causal: bool = True):
        b, t, c = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) * self.scale
        scores = scores.masked_fill(self.tril[:t, :t] == 0, float("-inf"))
        y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, c))


def inputs():
    return [(torch.randn(2, 5, 8),), (torch.randn(1, 16, 8),)]
