"""Which channels can be pruned together? Follow them through the graph.

If a channel of a convolution goes, the normalization behind it loses that channel, and the next
convolution an input. Where a shortcut adds two values, both sides must lose the same channels: the
layers that share them form one group.

    PYTHONPATH=python python examples/count_channels.py
"""
import operator

import torch
from torch import nn

import cfx as fx


class Residual(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.up, self.norm = nn.Conv2d(channels, hidden, 3, padding=1), nn.BatchNorm2d(hidden)
        self.down = nn.Conv2d(hidden, channels, 1)

    def forward(self, x):
        return self.down(torch.relu(self.norm(self.up(x)))) + x


MODEL = nn.Sequential(nn.Conv2d(3, 16, 3), Residual(16, 32), Residual(16, 48), nn.Conv2d(16, 8, 1))
SAME = (nn.BatchNorm2d, nn.ReLU, nn.Dropout)  # give out the channels that they are given


def channel_groups(module: nn.Module) -> list[dict[str, list[str]]]:
    """Groups of layers that must keep the same channels: who makes them and who reads them."""
    traced = fx.symbolic_trace(module)
    leader: dict[fx.Node, fx.Node] = {}  # of the nodes that have the same channels

    def find(node):
        while leader.setdefault(node, node) is not node:
            node = leader[node]
        return node

    groups: dict[fx.Node, dict[str, list[str]]] = {}
    layers = {}
    for node in traced.graph.nodes:
        layer = traced.get_submodule(node.target) if node.op == "call_module" else None
        if isinstance(layer, nn.Conv2d):
            layers[node] = layer
        elif isinstance(layer, SAME) or node.target in (torch.relu, operator.add):
            for source in node.all_input_nodes:
                leader[find(source)] = find(node)
    for node, layer in layers.items():
        made = groups.setdefault(find(node), {"made by": [], "read by": []})
        made["made by"].append(f"{node.target} ({layer.out_channels})")
        read = groups.setdefault(find(node.args[0]), {"made by": [], "read by": []})
        read["read by"].append(node.target)
    return list(groups.values())


if __name__ == "__main__":
    for group in channel_groups(MODEL):
        makers = ", ".join(group["made by"]) or "the input"
        readers = ", ".join(group["read by"]) or "the output"
        free = bool(group["made by"] and group["read by"])
        print(f"{makers} -> {readers}: {'can be pruned' if free else 'fixed'}")
