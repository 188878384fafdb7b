"""Classes that derive from each other and from torch.nn's."""
import torch
from torch import nn


class Scaled(nn.Linear):
    def __init__(self, n, m, scale=2.0):
        super().__init__(n, m, bias=False)
        self.scale = scale

    def forward(self, x):
        return super().forward(x) * self.scale


class Stack(nn.Sequential):
    pass


class Base(nn.Module):
    act = torch.relu

    def __init__(self, n):
        super().__init__()
        self.n = n
        self.body = self.make_body()

    def make_body(self):
        raise NotImplementedError

    @property
    def width(self):
        return self.n * 2

    def forward(self, x):
        return Base.act(self.body(x))


class Mixin:
    def finish(self, x):
        return x + self.width


class Derived(Mixin, Base):
    def __init__(self, n=3):
        super().__init__(n)

    def make_body(self):
        return Stack(Scaled(self.n, self.width), nn.Hardtanh(-0.5, 0.5),
                     Scaled(self.width, self.n, scale=0.5))

    def forward(self, x):
        return self.finish(super().forward(x))


def inputs():
    return [(torch.randn(4, 3),)]
