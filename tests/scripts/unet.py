"""Lists of features that are kept and used later."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def double(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(b, b, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, widths=[2, 4, 8]):
        super().__init__()
        self.down = nn.ModuleList()
        before = 1
        for w in widths:
            self.down.append(double(before, w))
            before = w
        self.up = nn.ModuleList([nn.ConvTranspose2d(a, b, 2, stride=2)
                                 for a, b in zip(widths[:0:-1], widths[-2::-1])])
        self.merge = nn.ModuleList([double(2 * w, w) for w in reversed(widths[:-1])])
        self.last = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x):
        kept = []
        for i, down in enumerate(self.down):
            if i > 0:
                x = F.max_pool2d(x, 2)
            x = down(x)
            kept.append(x)
        kept.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([up(x), kept.pop()], dim=1))
        return torch.sigmoid(self.last(x))


def inputs():
    return [(torch.randn(1, 1, 8, 8),)]
