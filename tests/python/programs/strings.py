"""Strings: messages, names of layers, f-strings."""
import torch
from torch import nn

from . import module, program, randn


@program((randn(3), 2), (randn(4), 4), tags="fstring assert",
         raises=[((randn(3), 7), AssertionError)])
def message_with_numbers(x, k: int):
    assert k <= x.shape[0], f"top {k} of {x.shape[0]:>4}: {k / x.shape[0]:.2f} times too many"
    return x.topk(k).indices


@program(randn(3), -randn(3).abs(), tags="join split format")
def static_strings(x):
    names = "alpha,beta,gamma".split(",")
    weights = {name.upper(): len(name) for name in names}
    key = "-".join(sorted(weights))
    if key.startswith("ALPHA") and x.sum() > 0:
        x = x * weights["BETA"]
    return x, key, "{} of {}".format(len(names), "three"), "%d%%" % 50


@module(randn(2, 3), -randn(4, 3).abs(), tags="getattr fstring")
class NumberedLayers(nn.Module):
    """As models that were converted from another library have them."""

    def __init__(self):
        super().__init__()
        for i in range(3):
            setattr(self, f"layer{i}", nn.Linear(3, 3))

    def forward(self, x):
        for i in range(3):
            x = getattr(self, f"layer{i}")(x)
            if x.sum() < 0:
                x = -x
        return x


@program(randn(3), -randn(2).abs(), tags="result")
def gives_words(x):
    kind = "up" if x.sum() > 0 else "down"
    return f"{kind}-{x.numel()}", kind


@program((randn(2, 3), "ij->i"), (randn(3, 2), "ij->j"), (randn(2, 2), "ij->ji"),
         tags="einsum", no_row="an equation that is not known")
def einsum_of(x, equation: str):
    y = torch.einsum(equation, x)
    if equation.endswith("ji"):
        y = y + 1
    return y


@program(torch.tensor([1.0]), torch.tensor([2.0, 3.0]), tags="fstring raise",
         raises=[(torch.tensor([]), ValueError)])
def says_shape(x):
    if x.numel() == 0:
        raise ValueError(f"cannot take the mean of {tuple(x.shape)} of {x.dtype}")
    return x.mean()


@program((randn(3), True), (randn(3), False), tags="str int static loop")
def letters(x, up: bool):
    for letter in "abc":
        x = x + ord(letter) / 100 if up else x - "abc".index(letter)
    return x
