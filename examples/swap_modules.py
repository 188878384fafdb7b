"""Swap modules of one class for another, and find out which ones a model uses twice.

    PYTHONPATH=python python examples/swap_modules.py
"""
import collections

import torch
from torch import nn

import cfx as fx


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.act = nn.ReLU()
        self.head = nn.ModuleDict({"a": nn.Linear(8, 2), "b": nn.Linear(8, 2)})

    def forward(self, x):
        x = self.act(self.stem(x))
        return self.head["a"](x), self.act(self.head["b"](x))


def swap(module: nn.Module, old: type, make) -> fx.GraphModule:
    """Each module of class `old` that the program calls becomes `make(the old one)`. Paths stay as
    they are, so calls need no change, and a module that is called twice is swapped once."""
    traced = fx.symbolic_trace(module)
    for path in dict.fromkeys(n.target for n in traced.graph.find_nodes(op="call_module")):
        found = traced.get_submodule(path)
        if isinstance(found, old):
            traced.set_submodule(path, make(found))
    return traced


def calls(module: fx.GraphModule) -> dict[str, int]:
    """How often each module is called."""
    return collections.Counter(n.target for n in module.graph.find_nodes(op="call_module"))


if __name__ == "__main__":
    torch.manual_seed(0)
    net = Net()
    swapped = swap(net, nn.ReLU, lambda relu: nn.LeakyReLU(0.1))
    for path, count in calls(swapped).items():
        print(f"{path:<8} {type(swapped.get_submodule(path)).__name__:<10} called {count}x")
    kept = [name for name, m in net.named_modules() if isinstance(m, nn.ReLU)]
    print("The model itself is as it was:", kept)
    assert swapped.get_submodule("stem.0").weight is net.stem[0].weight
    x = torch.randn(3, 4)
    report = fx.check(net, swapped, (x,))
    print("First node with another value:", report.culprit.target)
