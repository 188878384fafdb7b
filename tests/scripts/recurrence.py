"""A for over a size that is known only when the program runs."""
import torch
from torch import nn


class Recurrence(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.cell = nn.Linear(2 * n, n)

    def forward(self, x):
        h = torch.zeros_like(x[0])
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(torch.cat([x[t], h], dim=-1)))
        return h


def inputs():
    return [(torch.randn(5, 2, 4),), (torch.randn(1, 3, 4),)]
