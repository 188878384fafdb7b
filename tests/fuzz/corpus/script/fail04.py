import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.fc = nn.Linear(n, "8")

    def forward(self, x):
        return self.fc(x)
