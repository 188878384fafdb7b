"""Convolution, normalisation, pooling; the size of the head is computed in __init__."""
import torch
from torch import nn


class ConvNet(nn.Module):
    def __init__(self, channels=3, size=16, classes=5):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(channels, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 12, kernel_size=(3, 3), stride=2, bias=False),
            nn.GELU(),
        )
        with torch.no_grad():
            flat = self.features(torch.zeros(1, channels, size, size)).flatten(1).shape[1]
        self.classifier = nn.Linear(flat, classes)

    def forward(self, x):
        x = self.features(x)
        return self.classifier(torch.flatten(x, 1))


def inputs():
    return [(torch.randn(2, 3, 16, 16),)]
