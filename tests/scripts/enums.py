"""Enums, an IntEnum and auto() as the configuration of a network."""
from enum import Enum, IntEnum, auto
import torch
from torch import nn


class Activation(Enum):
    RELU = "relu"
    TANH = "tanh"
    NONE = None


class Reduce(IntEnum):
    SUM = 0
    MEAN = 1


class Color(Enum):
    RED = auto()
    BLUE = auto()


class Net(nn.Module):
    def __init__(self, act=Activation.RELU, reduce=Reduce.MEAN):
        super().__init__()
        self.act = act
        self.reduce = reduce
        self.color = Color.BLUE
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        x = self.fc(x)
        if self.act is Activation.RELU:
            x = torch.relu(x)
        elif self.act == Activation.TANH:
            x = torch.tanh(x)
        if self.reduce == Reduce.SUM:
            return x.sum(-1)
        assert self.act.value == "relu" and self.act.name == "RELU"
        if Activation("tanh") is Activation.TANH and self.color != Color.RED:
            x = x + Color.BLUE.value
        return x.mean(-1) * len(Activation)


def inputs():
    return [(torch.randn(2, 3),)]
