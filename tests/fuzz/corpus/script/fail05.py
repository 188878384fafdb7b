import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.layers = [nn.Linear(n, n)]

    def forward(self, x):
        return self.layers[0](x)
