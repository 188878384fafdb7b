"""MobileNetV3-small, EfficientNet-B0, ConvNeXt-T: depthwise convolutions in three styles."""
import torch
import torch.nn.functional as F
from torch import nn

from .vision import picture


class ConvNorm(nn.Sequential):
    def __init__(self, inputs, outputs, kernel=1, stride=1, groups=1, act=None, eps=1e-3):
        conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        norm = nn.BatchNorm2d(outputs, eps=eps)
        norm.running_mean.normal_(0, 0.1)
        norm.running_var.uniform_(0.5, 1.5)
        super().__init__(conv, norm, *([act()] if act else []))


class SqueezeExcite(nn.Module):
    def __init__(self, channels, squeezed, act, gate):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, squeezed, 1)
        self.fc2 = nn.Conv2d(squeezed, channels, 1)
        self.act, self.gate = act(), gate()

    def forward(self, x):
        return self.gate(self.fc2(self.act(self.fc1(self.pool(x))))) * x


def round8(n):
    return max(8, int(n + 4) // 8 * 8)


# ---- MobileNetV3-small ----------------------------------------------------------------------


class InvertedResidual(nn.Module):
    def __init__(self, inputs, kernel, hidden, outputs, squeeze, hard, stride):
        super().__init__()
        act = nn.Hardswish if hard else nn.ReLU
        layers = [] if hidden == inputs else [ConvNorm(inputs, hidden, act=act)]
        layers.append(ConvNorm(hidden, hidden, kernel, stride, hidden, act))
        if squeeze:
            layers.append(SqueezeExcite(hidden, round8(hidden // 4), nn.ReLU, nn.Hardsigmoid))
        layers.append(ConvNorm(hidden, outputs))
        self.block = nn.Sequential(*layers)
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, x):
        y = self.block(x)
        if self.shortcut:
            y = y + x
        return y


class MobileNetV3(nn.Module):
    #        kernel, hidden, outputs, squeeze, hard-swish, stride
    blocks = ((3, 16, 16, True, False, 2), (3, 72, 24, False, False, 2),
              (3, 88, 24, False, False, 1), (5, 96, 40, True, True, 2), (5, 240, 40, True, True, 1),
              (5, 240, 40, True, True, 1), (5, 120, 48, True, True, 1), (5, 144, 48, True, True, 1),
              (5, 288, 96, True, True, 2), (5, 576, 96, True, True, 1), (5, 576, 96, True, True, 1))

    def __init__(self):
        super().__init__()
        layers, inputs = [ConvNorm(3, 16, 3, 2, act=nn.Hardswish)], 16
        for kernel, hidden, outputs, *rest in self.blocks:
            layers.append(InvertedResidual(inputs, kernel, hidden, outputs, *rest))
            inputs = outputs
        layers.append(ConvNorm(inputs, 576, act=nn.Hardswish))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Linear(576, 1024), nn.Hardswish(), nn.Dropout(0.2),
                                        nn.Linear(1024, 1000))

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def mobilenet_v3(small):
    return MobileNetV3(), picture(small)


# ---- EfficientNet-B0 ------------------------------------------------------------------------


class MBConv(nn.Module):
    def __init__(self, inputs, outputs, kernel, stride, expand):
        super().__init__()
        hidden = inputs * expand
        layers = [] if expand == 1 else [ConvNorm(inputs, hidden, act=nn.SiLU)]
        layers += [ConvNorm(hidden, hidden, kernel, stride, hidden, nn.SiLU),
                   SqueezeExcite(hidden, max(1, inputs // 4), nn.SiLU, nn.Sigmoid),
                   ConvNorm(hidden, outputs)]
        self.block = nn.Sequential(*layers)
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.block(x) if self.shortcut else self.block(x)


class EfficientNet(nn.Module):
    #         expand, outputs, layers, stride, kernel
    stages = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
              (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))

    def __init__(self):
        super().__init__()
        layers, inputs = [ConvNorm(3, 32, 3, 2, act=nn.SiLU)], 32
        for expand, outputs, count, stride, kernel in self.stages:
            for i in range(count):
                layers.append(MBConv(inputs, outputs, kernel, 1 if i else stride, expand))
                inputs = outputs
        layers.append(ConvNorm(inputs, 1280, act=nn.SiLU))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))

    def forward(self, x):
        return self.classifier(F.adaptive_avg_pool2d(self.features(x), 1).flatten(1))


def efficientnet_b0(small):
    return EfficientNet(), picture(small)


# ---- ConvNeXt-T -----------------------------------------------------------------------------


class LayerNorm2d(nn.LayerNorm):
    """Over the channels of an image."""

    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.dwconv = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.pwconv1, self.act = nn.Linear(width, 4 * width), nn.GELU()
        self.pwconv2 = nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(0.5 * torch.ones(width))

    def forward(self, x):
        y = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
        y = self.gamma * self.pwconv2(self.act(self.pwconv1(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self, depths=(3, 3, 9, 3), widths=(96, 192, 384, 768)):
        super().__init__()
        layers = [nn.Conv2d(3, widths[0], 4, 4), LayerNorm2d(widths[0], eps=1e-6)]
        for i, (depth, width) in enumerate(zip(depths, widths)):
            if i:
                layers += [LayerNorm2d(widths[i - 1], eps=1e-6),
                           nn.Conv2d(widths[i - 1], width, 2, 2)]
            layers += [ConvNeXtBlock(width) for _ in range(depth)]
        self.stages = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(widths[-1], eps=1e-6)
        self.head = nn.Linear(widths[-1], 1000)

    def forward(self, x):
        return self.head(self.norm(self.stages(x).mean([-2, -1])))


def convnext(small):
    return (ConvNeXt((1, 1, 2, 1)) if small else ConvNeXt()), picture(small)
