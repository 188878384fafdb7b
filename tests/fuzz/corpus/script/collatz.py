"""A while with if and else inside, on numbers from tensors."""
import torch


def model(x):
    n = x.item()
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return torch.full((1,), steps)


