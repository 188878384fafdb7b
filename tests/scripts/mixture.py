"""Experts, chosen by the data: a sum over all, weighted."""
import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self, experts=3, n=4):
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(n, n) for _ in range(experts)])
        self.gate = nn.Linear(n, experts)
        self.temperature = nn.Parameter(torch.tensor(0.7))

    def forward(self, x):
        weights = torch.softmax(self.gate(x) / self.temperature, dim=-1)
        outs = torch.stack([e(x) for e in self.experts], dim=-1)
        y = (outs * weights.unsqueeze(-2)).sum(-1)
        best = weights.max(dim=-1)
        return y, best.indices, best.values


def inputs():
    return [(torch.randn(5, 4),)]
