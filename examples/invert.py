"""Invert a function: walk its graph from the end, and undo each operation.

    PYTHONPATH=python python examples/invert.py
"""
import operator

import torch
from torch import nn

import cfx as fx

# What undoes `f(x, rest)`, given the result and the rest.
UNDO = {
    torch.exp: torch.log,
    torch.log: torch.exp,
    torch.neg: torch.neg,
    torch.tanh: torch.atanh,
    torch.atanh: torch.tanh,
    operator.add: operator.sub,
    operator.sub: operator.add,
    operator.mul: operator.truediv,
    operator.truediv: operator.mul,
}


def invert(function) -> fx.GraphModule:
    """The inverse of a function of one input that is a chain of operations that can be undone."""
    traced = fx.symbolic_trace(function)
    graph = fx.Graph()
    value = graph.placeholder("result")
    for node in reversed(traced.graph.nodes):
        if node.op in ("placeholder", "output"):
            continue
        if node.op != "call_function" or node.target not in UNDO:
            raise ValueError(f"cannot undo {node.format_node()}")
        source, *rest = node.args
        if not isinstance(source, fx.Node) or len(node.all_input_nodes) != 1:
            raise ValueError(f"not a chain at {node.format_node()}")
        value = graph.call_function(UNDO[node.target], (value, *rest))
    graph.output(value)
    graph.lint()
    return fx.GraphModule(nn.Module(), graph, "Inverse")


def squash(x):
    return torch.tanh((x - 1.0) / 4.0) * 2.0


if __name__ == "__main__":
    inverse = invert(squash)
    print(inverse.code.strip())
    x = torch.tensor([-1.0, 0.0, 2.5])
    print("x:", x)
    print("squash(x):", squash(x))
    print("and back:", inverse(squash(x)))
    # The inverse of the inverse is the function again.
    print("twice:", fx.check(squash, invert(inverse), (x,)))
    try:
        invert(lambda x: torch.relu(x) + 1)
    except ValueError as error:
        print("no inverse:", error)
