import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        pass

    def forward(self, x):
        return x
