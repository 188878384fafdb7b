"""ResNet-18, ResNet-50, ViT-B/16 with torchvision's structure and names; Swin-T. Weights are
random, and small enough to keep results finite.
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

    def __init__(self, image=224, patch=16, features=768, layers=12):
        super().__init__()
        self.image, self.patch, self.features = image, patch, features
        self.conv_proj = nn.Conv2d(3, features, patch, patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, features))
        self.encoder = Encoder(layers, 12, features, 4 * features, (image // patch) ** 2 + 1)
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


# ---- Swin-T ---------------------------------------------------------------------------------


def windows(x, size):
    """(batch, rows, columns, c) -> (windows, size * size, c)"""
    batch, rows, columns, c = x.shape
    x = x.view(batch, rows // size, size, columns // size, size, c)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, size * size, c)


def unwindowed(x, size, batch, rows, columns):
    x = x.view(batch, rows // size, columns // size, size, size, -1)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(batch, rows, columns, -1)


def relative_index(size):
    """Which of the (2 size - 1)^2 biases each pair of positions in a window has."""
    at = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij"))
    at = at.flatten(1)
    distance = (at[:, :, None] - at[:, None, :] + size - 1).permute(1, 2, 0)
    return distance[:, :, 0] * (2 * size - 1) + distance[:, :, 1]


def shift_mask(rows, columns, size, shift):
    """Minus 100 between positions that only the roll has brought into one window."""
    part = torch.zeros(1, rows, columns, 1)
    cuts = (slice(0, -size), slice(-size, -shift), slice(-shift, None))
    for i, vertical in enumerate(cuts):
        for j, horizontal in enumerate(cuts):
            part[:, vertical, horizontal] = 3 * i + j
    part = windows(part, size).squeeze(-1)
    return (part[:, None, :] != part[:, :, None]).float() * -100.0


class WindowAttention(nn.Module):
    def __init__(self, width, heads, size):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.table = nn.Parameter(torch.randn((2 * size - 1) ** 2, heads) * 0.02)
        self.register_buffer("index", relative_index(size).view(-1), persistent=False)

    def forward(self, x, mask):
        batch, n, c = x.shape
        qkv = self.qkv(x).reshape(batch, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)
        bias = self.table[self.index].view(n, n, -1).permute(2, 0, 1).contiguous()
        scores = scores + bias.unsqueeze(0)
        if mask is not None:
            count = mask.shape[0]
            scores = scores.view(batch // count, count, self.heads, n, n)
            scores = (scores + mask.unsqueeze(1).unsqueeze(0)).view(-1, self.heads, n, n)
        y = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(batch, n, c)
        return self.proj(y)


class SwinBlock(nn.Module):
    def __init__(self, width, heads, rows, size, shift):
        super().__init__()
        self.size, self.shift = size, shift if rows > size else 0
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = WindowAttention(width, heads, size)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.0),
                                 nn.Linear(4 * width, width), nn.Dropout(0.0))
        mask = shift_mask(rows, rows, size, self.shift) if self.shift else None
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        batch, rows, columns, _ = x.shape
        y = self.norm1(x)
        if self.shift:
            y = torch.roll(y, shifts=(-self.shift, -self.shift), dims=(1, 2))
        y = self.attention(windows(y, self.size), self.mask)
        y = unwindowed(y, self.size, batch, rows, columns)
        if self.shift:
            y = torch.roll(y, shifts=(self.shift, self.shift), dims=(1, 2))
        x = x + y
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(4 * width)
        self.reduction = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x):
        parts = [x[:, i::2, j::2, :] for j in (0, 1) for i in (0, 1)]
        return self.reduction(self.norm(torch.cat(parts, -1)))


class SwinT(nn.Module):
    def __init__(self, image=224, width=96, depths=(2, 2, 6, 2), heads=(3, 6, 12, 24), size=7):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.norm0 = nn.LayerNorm(width)
        layers, rows = [], image // 4
        for i, (depth, count) in enumerate(zip(depths, heads)):
            if i:
                layers.append(PatchMerging(width))
                width, rows = 2 * width, rows // 2
            layers += [SwinBlock(width, count, rows, size, (j % 2) * (size // 2))
                       for j in range(depth)]
        self.layers = nn.Sequential(*layers)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.norm0(self.patches(x).permute(0, 2, 3, 1))
        x = self.norm(self.layers(x))
        return self.head(x.permute(0, 3, 1, 2).mean((2, 3)))


# ---- as the zoo makes them ------------------------------------------------------------------


def picture(small, full=224, less=64):
    size = less if small else full
    return (torch.randn(1, 3, size, size),)


def resnet18(small):
    return ResNet18(), picture(small)


def resnet50(small):
    return ResNet50(), picture(small)


def vit_b_16(small):
    if small:
        return ViTB16(image=64, features=192, layers=2), picture(small)
    return ViTB16(), picture(small)


def swin_t(small):
    if small:
        return SwinT(image=56, width=24, depths=(2, 2), heads=(3, 6)), picture(small, less=56)
    return SwinT(), picture(small)
