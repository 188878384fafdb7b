"""A while that runs until the data is good enough."""
import torch


def model(x, steps: int = 20, tolerance: float = 1e-4):
    guess = torch.ones_like(x)
    n = 0
    while (guess * guess - x).abs().max() > tolerance and n < steps:
        guess = (guess + x / guess) / 2
        n += 1
    return guess, torch.full((1,), n)


