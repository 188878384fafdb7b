"""Models to trace: ResNet and ViT-B/16 (tests/zoo), and programs of n element-wise operations."""
import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from zoo.vision import ResNet18, ResNet50, ViTB16  # noqa: E402,F401


class Elementwise(nn.Module):
    """n operations in a loop: functions, methods and operators in turn."""

    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, x, y):
        for _ in range(self.n // 5):
            x = torch.relu(x)
            x = x + 1
            x = x * y
            x = x.sigmoid()
            x = 0.5 - x
        return x


NODES = {"resnet50": 177, "vit_b_16": 236}


def resnet50():
    return ResNet50().eval(), (torch.randn(1, 3, 64, 64),)


def vit_b_16():
    return ViTB16().eval(), (torch.randn(1, 3, 224, 224),)


def elementwise(n):
    return Elementwise(n), (torch.randn(4), torch.randn(4))
