"""Containers of layers that __init__ edits: insert, pop, +=, del, slices, sums."""
import torch
from torch import nn


class Edited(nn.Module):
    def __init__(self, width=4, more=2):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width)])
        self.layers.append(nn.ReLU()).extend([nn.Linear(width, width), nn.Tanh()])
        self.layers.insert(1, nn.LayerNorm(width))
        self.last = self.layers.pop(-1)
        self.layers += [nn.Linear(width, width) for _ in range(more)]
        del self.layers[0]
        self.layers[-1] = nn.Linear(width, 3, bias=False)
        self.tail = self.layers[1:2] + nn.ModuleList([nn.Sigmoid()])
        self.stem = nn.Sequential(nn.Linear(width, width))
        self.stem.append(nn.Dropout()).insert(0, nn.ELU()).extend([nn.Identity()])
        self.stem.pop(2)
        self.heads = nn.ModuleDict({"a": nn.Linear(3, 1), "b": nn.Linear(3, 2)})
        self.heads["c"] = nn.Linear(3, 2)
        self.gone = self.heads.pop("b").out_features
        del self.heads["a"]
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(2))])
        self.scales.append(nn.Parameter(torch.full((2,), 3.0)))

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = layer(x)
        for layer in self.tail:
            x = layer(x)
        y = self.last(self.heads["c"](x)) * self.gone
        for scale in self.scales:
            y = y * scale
        if y.sum() > 0 and "b" not in self.heads:
            y = y + len(self.layers) + len(self.stem)
        return y


def inputs():
    return [(torch.randn(5, 4),), (-torch.ones(2, 4),)]
