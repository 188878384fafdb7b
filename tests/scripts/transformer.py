"""A small language model: embeddings, blocks, weights that are shared."""
import torch
from dataclasses import dataclass
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    vocab: int = 11
    dim: int = 8
    heads: int = 2
    layers: int = 2
    block: int = 6


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc = nn.Linear(config.dim, 4 * config.dim)
        self.proj = nn.Linear(4 * config.dim, config.dim)

    def forward(self, x):
        return self.proj(F.gelu(self.fc(x)))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.dim)
        self.attn = nn.MultiheadAttention(config.dim, config.heads, batch_first=True)
        self.ln_2 = nn.LayerNorm(config.dim)
        self.mlp = MLP(config)

    def forward(self, x):
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config=None):
        super().__init__()
        self.config = config or Config()
        c = self.config
        self.transformer = nn.ModuleDict(dict(
            wte=nn.Embedding(c.vocab, c.dim),
            wpe=nn.Embedding(c.block, c.dim),
            h=nn.ModuleList([Block(c) for _ in range(c.layers)]),
            ln_f=nn.LayerNorm(c.dim),
        ))
        self.lm_head = nn.Linear(c.dim, c.vocab, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx):
        b, t = idx.size()
        pos = torch.arange(0, t, dtype=torch.long)
        x = self.transformer.wte(idx) + self.transformer.wpe(pos)
        for block in self.transformer.h:
            x = block(x)
        return self.lm_head(self.transformer.ln_f(x))


def inputs():
    return [(torch.randint(0, 11, (2, 6)),), (torch.randint(0, 11, (1, 3)),)]
