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


