"""An if that depends on data, with an early return."""
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.small = nn.Linear(3, 3)
        self.large = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 3))

    def forward(self, x):
        if x.abs().sum() < 1e-3:
            return x
        if x.mean() > 0:
            y = self.small(x)
        elif x.min() < -2:
            y = self.large(x) - 1
        else:
            y = self.large(x)
        return y * 2


