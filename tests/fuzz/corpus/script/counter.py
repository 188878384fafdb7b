"""A buffer that forward writes to."""
import torch
from torch import nn


class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.momentum = 0.1

    def forward(self, x):
        new = x.mean(0)
        self.mean = self.mean * (1 - self.momentum) + new * self.momentum
        return x - self.mean


