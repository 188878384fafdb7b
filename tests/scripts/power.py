"""Power iteration: a fixed number of rounds, a norm that is checked in each."""
import torch
from torch import nn


class Power(nn.Module):
    def __init__(self, n=3, rounds=5):
        super().__init__()
        self.rounds = rounds
        self.start = nn.Parameter(torch.ones(n) / n)

    def forward(self, a):
        v = self.start
        for _ in range(self.rounds):
            w = a @ v
            norm = w.norm()
            if norm > 1e-6:
                v = w / norm
        return (v @ a @ v), v


def inputs():
    a = torch.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 1.0]])
    return [(a,), (torch.zeros(3, 3),)]
