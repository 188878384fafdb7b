import torch
def f(x):
    return torch.zeros(2, 3) @ torch.zeros(2, 3)
f(1)
