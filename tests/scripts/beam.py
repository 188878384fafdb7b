"""break and continue in a loop over rows."""
import torch


def model(x, limit: float = 3.0):
    total = torch.zeros(x.shape[1])
    for i in range(x.shape[0]):
        if x[i].sum() < 0:
            continue
        total = total + x[i]
        if total.max() > limit:
            break
    return total


def inputs():
    mixed = torch.tensor([[1.0, -5.0], [2.0, 2.5], [9.0, 9.0]])
    return [(torch.ones(6, 2),), (-torch.ones(3, 2),), (mixed,)]
