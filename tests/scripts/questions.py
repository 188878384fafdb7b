"""Questions that only the data answer: `is None` of an input, `in` a tuple, equality of tuples."""
import torch
from torch import nn
from torch.nn import functional as F

STOP = {3, 5}


class Questions(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.fc = nn.Linear(n, n)

    def forward(self, x, target=None):
        y = self.fc(x)
        loss = torch.zeros(()) if target is None else F.cross_entropy(y, target)
        steps = int(x.shape[0])
        if steps in STOP:
            y = y * 2
        if steps not in range(4):
            y = y + 1
        rows, columns = x.shape
        if (rows, columns) == (2, 4):
            y = -y
        if [rows, 1] < [3, 0]:
            y = y - 3
        if 5 in [rows, columns]:
            y = y.abs()
        return y, loss, {2: 0.5, 3: 1.5, 5: 2.5}[rows]


def inputs():
    x = torch.randn(3, 4)
    return [(x,), (x, torch.tensor([0, 1, 2])), (torch.randn(2, 4),), (torch.randn(5, 4),)]
