"""Loops in loops, with branches inside."""
import torch


def model(x):
    out = torch.zeros_like(x)
    for i in range(x.size(0)):
        acc = x[i]
        k = 0
        while acc.sum() < 10:
            if k % 2 == 0:
                acc = acc + 1
            else:
                acc = acc * 1.5
            k = k + 1
            if k > 8:
                break
        out = out + acc * (i + 1)
    return out


def inputs():
    return [(torch.ones(3, 2),), (torch.full((2, 2), 20.0),), (-torch.ones(2, 1),)]
