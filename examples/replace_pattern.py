"""Replace a pattern of operations wherever it occurs: attention written by hand becomes one call.

    PYTHONPATH=python python examples/replace_pattern.py
"""
import math

import torch
from torch import nn

import cfx as fx

F = nn.functional


class Attention(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.features = features
        self.q, self.k, self.v = (nn.Linear(features, features) for _ in range(3))

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = torch.matmul(q, k.transpose(-2, -1)) * 0.25
        return torch.matmul(F.softmax(scores, dim=-1), v)


# Inputs of the pattern stand for any value; everything else has to be there as it is written.
def by_hand(q, k, v):
    scores = torch.matmul(q, k.transpose(-2, -1)) * 0.25
    return torch.matmul(F.softmax(scores, dim=-1), v)


def in_one_call(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, scale=0.25)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Sequential(Attention(16), nn.LayerNorm(16), Attention(16))
    assert math.isclose(0.25, 1 / math.sqrt(16))
    traced = fx.symbolic_trace(model)
    before = len(traced.graph.nodes)
    matches = fx.replace_pattern(traced, by_hand, in_one_call)
    for match in matches:
        values = [match.nodes_map[n].name for n in match.nodes_map if n.op == "placeholder"]
        print(f"replaced what ended in {match.nodes_map[match.anchor]}, with {', '.join(values)}")
    print(f"{before} nodes became {len(traced.graph.nodes)}")
    print(fx.check(model, traced, (torch.randn(2, 5, 16),)))
