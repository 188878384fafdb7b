"""Models that tests/zoo does not have, in plain PyTorch with random weights and published sizes:
DenseNet-121, ShuffleNetV2, MLP-Mixer, a recommender, a decoder of 12 layers, a speech encoder.
"""
import torch
import torch.nn.functional as F
from torch import nn
from zoo.language import RMSNorm, heads_of, joined, rotate_half


# ---- DenseNet-121 -------------------------------------------------------------------------------


class DenseLayer(nn.Module):
    """Norm before convolution, twice; what it adds is joined to what it was given."""

    def __init__(self, inputs, growth):
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(inputs), nn.BatchNorm2d(4 * growth)
        self.conv1 = nn.Conv2d(inputs, 4 * growth, 1, bias=False)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x):
        y = self.conv1(F.relu(self.norm1(x)))
        return torch.cat([x, self.conv2(F.relu(self.norm2(y)))], 1)


class DenseNet(nn.Module):
    def __init__(self, blocks=(6, 12, 24, 16), width=64, growth=32):
        super().__init__()
        layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                  nn.MaxPool2d(3, 2, 1)]
        for i, count in enumerate(blocks):
            if i:
                layers += [nn.BatchNorm2d(width), nn.ReLU(),
                           nn.Conv2d(width, width // 2, 1, bias=False), nn.AvgPool2d(2)]
                width //= 2
            for _ in range(count):
                layers.append(DenseLayer(width, growth))
                width += growth
        self.features = nn.Sequential(*layers, nn.BatchNorm2d(width), nn.ReLU())
        self.classifier = nn.Linear(width, 1000)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


# ---- ShuffleNetV2 x1.0 --------------------------------------------------------------------------


def conv_norm(inputs, outputs, kernel=1, stride=1, groups=1, act=True):
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs)] + ([nn.ReLU()] if act else [])


class ShuffleUnit(nn.Module):
    """Half of the channels pass by; then both halves are shuffled."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        half, own = outputs // 2, inputs if stride == 2 else outputs // 2
        self.stride = stride
        self.short = nn.Sequential(*conv_norm(inputs, inputs, 3, 2, inputs, act=False),
                                   *conv_norm(inputs, half)) if stride == 2 else nn.Identity()
        self.long = nn.Sequential(*conv_norm(own, half),
                                  *conv_norm(half, half, 3, stride, half, act=False),
                                  *conv_norm(half, half))

    def forward(self, x):
        first, second = (x, x) if self.stride == 2 else x.chunk(2, dim=1)
        y = torch.cat((self.short(first), self.long(second)), dim=1)
        batch, channels, rows, columns = y.shape
        y = y.view(batch, 2, channels // 2, rows, columns).transpose(1, 2)
        return y.reshape(batch, channels, rows, columns)


class ShuffleNet(nn.Module):
    def __init__(self, repeats=(4, 8, 4), widths=(24, 116, 232, 464, 1024)):
        super().__init__()
        layers = [*conv_norm(3, widths[0], 3, 2), nn.MaxPool2d(3, 2, 1)]
        for count, a, b in zip(repeats, widths, widths[1:]):
            layers += [ShuffleUnit(a if i == 0 else b, b, 2 if i == 0 else 1)
                       for i in range(count)]
        self.features = nn.Sequential(*layers, *conv_norm(widths[3], widths[4]))
        self.fc = nn.Linear(widths[4], 1000)

    def forward(self, x):
        return self.fc(self.features(x).mean([2, 3]))


# ---- MLP-Mixer-S/16 -----------------------------------------------------------------------------


class MixerBlock(nn.Module):
    """Two layers over the patches, two over the channels."""

    def __init__(self, width, patches, over_patches, over_width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.patches = nn.Sequential(nn.Linear(patches, over_patches), nn.GELU(),
                                     nn.Linear(over_patches, patches))
        self.channels = nn.Sequential(nn.Linear(width, over_width), nn.GELU(),
                                      nn.Linear(over_width, width))

    def forward(self, x):
        x = x + self.patches(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, image=224, patch=16, width=512, layers=8):
        super().__init__()
        self.stem = nn.Conv2d(3, width, patch, patch)
        self.blocks = nn.Sequential(*(MixerBlock(width, (image // patch) ** 2, 256, 4 * width)
                                      for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.blocks(self.stem(x).flatten(2).transpose(1, 2))
        return self.head(self.norm(x).mean(1))


# ---- a recommender ------------------------------------------------------------------------------


def tower(*widths):
    layers = []
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers)


class Recommender(nn.Module):
    """DLRM: bags of embeddings, their products with each other, two towers of linear layers."""

    def __init__(self, tables=26, rows=20000, width=64):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = tower(13, 512, 256, width)
        pairs = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("left", pairs[0], persistent=False)
        self.register_buffer("right", pairs[1], persistent=False)
        self.top = tower(width + pairs.shape[1], 1024, 1024, 512, 256)
        self.last = nn.Linear(256, 1)

    def forward(self, dense, ids):
        x = self.bottom(dense)
        every = torch.stack([x] + [bag(ids[:, i]) for i, bag in enumerate(self.bags)], 1)
        products = torch.bmm(every, every.transpose(1, 2))[:, self.left, self.right]
        return torch.sigmoid(self.last(self.top(torch.cat([x, products], 1))))


# ---- a decoder: RMS norm, rotary positions, grouped heads, gated layers -------------------------


class DecoderLayer(nn.Module):
    def __init__(self, width, heads, groups, hidden):
        super().__init__()
        self.heads, self.groups = heads, groups
        one = width // heads
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, groups * one, bias=False)
        self.v = nn.Linear(width, groups * one, bias=False)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up, self.down = (nn.Linear(width, hidden, bias=False),
                              nn.Linear(hidden, width, bias=False))

    def attention(self, x, cos, sin):
        q, k, v = (heads_of(f(x), n) for f, n in
                   ((self.q, self.heads), (self.k, self.groups), (self.v, self.groups)))
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        times = self.heads // self.groups
        k, v = k.repeat_interleave(times, dim=1), v.repeat_interleave(times, dim=1)
        return self.o(joined(F.scaled_dot_product_attention(q, k, v, is_causal=True)))

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm1(x), cos, sin)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self, layers=12, width=768, heads=12, groups=4, hidden=2048, words=32000):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads, groups, hidden)
                                    for _ in range(layers))
        self.norm, self.head = RMSNorm(width), nn.Linear(width, words, bias=False)
        one = width // heads
        angles = torch.outer(torch.arange(512.0), 10000.0 ** -(torch.arange(0.0, one, 2) / one))
        angles = torch.cat((angles, angles), -1)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, tokens):
        x, n = self.embed(tokens), tokens.size(1)
        for layer in self.layers:
            x = layer(x, self.cos[:n], self.sin[:n])
        return self.head(self.norm(x))


# ---- a speech encoder ---------------------------------------------------------------------------


class Speech(nn.Module):
    """Like wav2vec 2.0 base: seven convolutions over the samples, then 12 layers of attention."""

    def __init__(self, width=768, layers=12, channels=512):
        super().__init__()
        self.convs, self.norms, inputs = nn.ModuleList(), nn.ModuleList(), 1
        for kernel, stride in ((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)):
            self.convs.append(nn.Conv1d(inputs, channels, kernel, stride))
            self.norms.append(nn.LayerNorm(channels))
            inputs = channels
        self.project = nn.Linear(channels, width)
        self.positions = nn.Conv1d(width, width, 128, padding=64, groups=16)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 12, 4 * width, activation="gelu", batch_first=True)
            for _ in range(layers))

    def forward(self, wave):
        x = wave.unsqueeze(1)
        for conv, norm in zip(self.convs, self.norms):
            x = F.gelu(norm(conv(x).transpose(1, 2)).transpose(1, 2))
        x = self.project(x.transpose(1, 2))
        around = self.positions(x.transpose(1, 2))[:, :, :-1]
        x = self.norm(x + F.gelu(around).transpose(1, 2))
        for layer in self.layers:
            x = layer(x)
        return x


MODELS = {
    "densenet121": lambda: (DenseNet(), (torch.randn(1, 3, 224, 224),)),
    "shufflenet": lambda: (ShuffleNet(), (torch.randn(1, 3, 224, 224),)),
    "mixer": lambda: (Mixer(), (torch.randn(1, 3, 224, 224),)),
    "recommender": lambda: (Recommender(), (torch.randn(1, 13), torch.randint(20000, (1, 26, 4)))),
    "decoder": lambda: (Decoder(), (torch.randint(32000, (1, 64)),)),
    "speech": lambda: (Speech(), (torch.randn(1, 16000),)),
}
