"""Replace one operation by another, in two ways: retarget the node, or put a new one in its place.

    PYTHONPATH=python python examples/replace_op.py
"""
import operator

import torch
from torch import nn

import cfx as fx


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.tensor([0.5, -0.5]))

    def forward(self, x):
        return torch.sigmoid(x + self.bias) * x


def retarget(module: nn.Module, old, new) -> fx.GraphModule:
    """Calls of `old` become calls of `new`, with the same arguments."""
    traced = fx.symbolic_trace(module)
    for node in traced.graph.find_nodes(op="call_function", target=old):
        node.target = new
    traced.recompile()
    return traced


def clip_sums(module: nn.Module) -> fx.GraphModule:
    """Every sum is followed by a clamp: new nodes, which take over the users of the old ones."""
    traced = fx.symbolic_trace(module)
    for node in traced.graph.find_nodes(op="call_function", target=operator.add):
        with traced.graph.inserting_after(node):
            clipped = traced.graph.call_method("clamp", (node,), {"min": -1.0, "max": 1.0})
        # All users but the new node itself.
        node.replace_all_uses_with(clipped, delete_user_cb=lambda user: user is not clipped)
    traced.graph.lint()
    traced.recompile()
    return traced


if __name__ == "__main__":
    gate, x = Gate(), torch.tensor([2.0, -3.0])
    print("As it is:", gate(x).detach())
    smooth = retarget(gate, torch.sigmoid, torch.tanh)
    print("tanh for sigmoid:", smooth(x).detach())
    clipped = clip_sums(gate)
    print("Sums clipped:", clipped(x).detach())
    print(clipped.code.strip())
    # What a transform has changed can be asked for.
    report = fx.check(gate, clipped, (x,))
    print("First node with another value:", report.culprit)
