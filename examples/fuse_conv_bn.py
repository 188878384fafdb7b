"""Fuse convolutions with the batch normalizations behind them, in a ResNet-18.

A normalization in evaluation mode multiplies and adds constants; both can go into the weights of
the convolution before it, and the normalization away.

    PYTHONPATH=python python examples/fuse_conv_bn.py
"""
import copy

import torch
from torch import nn

import cfx as fx


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            conv = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(conv, nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


def resnet18() -> nn.Module:
    layers = [nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers += [nn.MaxPool2d(3, 2, padding=1)]
    for inputs, outputs in ((64, 64), (64, 128), (128, 256), (256, 512)):
        layers += [Block(inputs, outputs, outputs // inputs), Block(outputs, outputs, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def fuse(model: nn.Module) -> fx.GraphModule:
    """A copy of the model in which each normalization is part of the convolution before it."""
    traced = fx.symbolic_trace(copy.deepcopy(model))
    modules = dict(traced.named_modules())
    for node in list(traced.graph.nodes):
        if node.op != "call_module" or not isinstance(modules[node.target], nn.BatchNorm2d):
            continue
        conv = node.args[0]
        # Nobody else may want the convolution as it was.
        if not isinstance(modules.get(conv.target), nn.Conv2d) or len(conv.users) > 1:
            continue
        fused = nn.utils.fuse_conv_bn_eval(modules[conv.target], modules[node.target])
        traced.set_submodule(conv.target, fused)
        node.replace_all_uses_with(conv)
        traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced


if __name__ == "__main__":
    torch.manual_seed(0)
    model = resnet18()
    image = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        model(image)  # statistics for the normalizations
    fused = fuse(model.eval())
    for name, m in (("before", fx.symbolic_trace(model)), ("fused", fused)):
        norms = sum(isinstance(child, nn.BatchNorm2d) for child in m.modules())
        print(f"{name}: {len(m.graph.nodes)} nodes, {norms} normalizations")
    print(fx.check(model, fused, (image,)))
