"""Models to trace: ResNet-18, ResNet-50 and ViT-B/16 with torchvision's structure and names, and
programs of n element-wise operations. Weights are random, and small enough to keep results finite.
"""
import torch
from torch import nn


# ---- ResNet-18, ResNet-50 -------------------------------------------------------------------


class BasicBlock(nn.Module):
    """Two 3x3 convolutions around a shortcut."""

    expansion = 1

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or inputs != width:
            conv = nn.Conv2d(inputs, width, 1, stride, bias=False)
            self.downsample = nn.Sequential(conv, nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 convolutions around a shortcut."""

    expansion = 4

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = self.expansion * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            conv = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.downsample = nn.Sequential(conv, nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet(nn.Module):
    block, blocks = BasicBlock, (2, 2, 2, 2)

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        inputs = 64
        for i, (width, blocks) in enumerate(zip((64, 128, 256, 512), self.blocks), 1):
            strides = [1 if i == 1 else 2] + [1] * (blocks - 1)
            layer = nn.Sequential()
            for stride in strides:
                layer.append(self.block(inputs, width, stride))
                inputs = self.block.expansion * width
            self.add_module(f"layer{i}", layer)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(inputs, 1000)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class ResNet18(ResNet):
    """71 nodes when traced."""


class ResNet50(ResNet):
    """177 nodes when traced."""

    block, blocks = Bottleneck, (3, 4, 6, 3)


# ---- ViT-B/16 -------------------------------------------------------------------------------


def check_tokens(x):
    torch._assert(x.dim() == 3, f"expected (batch, tokens, features), got {x.shape}")


class EncoderBlock(nn.Module):
    """Attention and two linear layers, each after a normalization and around a shortcut."""

    def __init__(self, heads, features, hidden):
        super().__init__()
        self.ln_1 = nn.LayerNorm(features, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(features, heads, batch_first=True)
        self.dropout = nn.Dropout(0.0)
        self.ln_2 = nn.LayerNorm(features, eps=1e-6)
        first, second = nn.Linear(features, hidden), nn.Linear(hidden, features)
        self.mlp = nn.Sequential(first, nn.GELU(), nn.Dropout(0.0), second, nn.Dropout(0.0))

    def forward(self, x):
        check_tokens(x)
        y = self.ln_1(x)
        y, _ = self.self_attention(y, y, y, need_weights=False)
        x = self.dropout(y) + x
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    def __init__(self, layers, heads, features, hidden, tokens):
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.randn(1, tokens, features) * 0.02)
        self.dropout = nn.Dropout(0.0)
        self.layers = nn.Sequential()
        for i in range(layers):
            self.layers.add_module(f"encoder_layer_{i}", EncoderBlock(heads, features, hidden))
        self.ln = nn.LayerNorm(features, eps=1e-6)

    def forward(self, x):
        check_tokens(x)
        return self.ln(self.layers(self.dropout(x + self.pos_embedding)))


class ViTB16(nn.Module):
    """236 nodes when traced."""

    def __init__(self, image=224, patch=16, features=768):
        super().__init__()
        self.image, self.patch, self.features = image, patch, features
        self.conv_proj = nn.Conv2d(3, features, patch, patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, features))
        self.encoder = Encoder(12, 12, features, 4 * features, (image // patch) ** 2 + 1)
        self.heads = nn.Sequential()
        self.heads.add_module("head", nn.Linear(features, 1000))

    def tokens(self, x):
        batch, _, height, width = x.shape
        torch._assert(height == self.image, f"height {height}, expected {self.image}")
        torch._assert(width == self.image, f"width {width}, expected {self.image}")
        rows, columns = height // self.patch, width // self.patch
        return self.conv_proj(x).reshape(batch, self.features, rows * columns).permute(0, 2, 1)

    def forward(self, x):
        x = self.tokens(x)
        first = self.class_token.expand(x.shape[0], -1, -1)
        x = self.encoder(torch.cat([first, x], dim=1))
        return self.heads(x[:, 0])


# ---- element-wise operations ----------------------------------------------------------------


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
