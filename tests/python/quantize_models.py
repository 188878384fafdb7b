"""Models for the tests of quantization, small ones that each have a pattern of their own; those of
the zoo come with them. `MODELS[name]()` returns a model in eval mode and its inputs."""
import operator
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import zoo  # noqa: E402


class ConvNormReLU(nn.Sequential):
    def __init__(self, a, b, k=3, stride=1, groups=1, act=nn.ReLU):
        super().__init__(nn.Conv2d(a, b, k, stride, k // 2, groups=groups, bias=False),
                         nn.BatchNorm2d(b), *([act()] if act else []))  # fmt: skip


class SqueezeExcite(nn.Module):
    """With functions and the scale of the channels as a product, as timm writes it."""

    def __init__(self, n):
        super().__init__()
        self.reduce = nn.Conv2d(n, n // 2, 1)
        self.act = nn.ReLU(inplace=True)
        self.expand = nn.Conv2d(n // 2, n, 1)
        self.gate = nn.Sigmoid()

    def forward(self, x):
        s = x.mean((2, 3), keepdim=True)
        return x * self.gate(self.expand(self.act(self.reduce(s))))


class MobileWithSE(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = ConvNormReLU(3, 8, 3, 2, act=nn.Hardswish)
        self.expand = ConvNormReLU(8, 16, 1, act=nn.ReLU6)
        self.depthwise = ConvNormReLU(16, 16, 3, groups=16)
        self.se = SqueezeExcite(16)
        self.project = ConvNormReLU(16, 8, 1, act=None)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = self.stem(x)
        x = x + self.project(self.se(self.depthwise(self.expand(x))))
        x = F.adaptive_avg_pool2d(x, 1)
        return self.head(self.drop(torch.flatten(x, 1)))


class Residual(nn.Module):
    """iadd and a ReLU module that is called twice, as in torchvision's ResNet."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(6)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(6, 6, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(6)
        self.shortcut = nn.Sequential(nn.Conv2d(3, 6, 1), nn.BatchNorm2d(6))
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(6 * 16, 5)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += self.shortcut(x)
        y = self.pool(self.relu(y))
        return self.fc(y.view(y.size(0), -1))


class Inception(nn.Module):
    """Branches that meet in cat, one of them twice."""

    def __init__(self):
        super().__init__()
        self.a = ConvNormReLU(3, 4, 1)
        self.b = nn.Sequential(ConvNormReLU(3, 4, 1), ConvNormReLU(4, 4, 3))
        self.c = nn.Conv2d(3, 4, 1)
        self.last = ConvNormReLU(16, 4, 1)

    def forward(self, x):
        pooled = F.avg_pool2d(x, 3, 1, 1)
        a, b = self.a(x), self.b(x)
        y = torch.cat([a, b, self.c(pooled), a], 1)
        return torch.cat([self.last(y), b], 1).mean([2, 3])


class Shared(nn.Module):
    """One layer for two inputs, and its result for two users."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(4, 6)
        self.score = nn.Linear(6, 1)

    def forward(self, x, y):
        a, b = self.encode(x), self.encode(y)
        return self.score(a * b), torch.cat([a, b], 1), a


class Functional(nn.Module):
    """Functions with parameters of the model's own; numbers among the operands."""

    def __init__(self):
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(6, 3, 3, 3))
        self.weight = nn.Parameter(torch.randn(5, 6))
        self.bias = nn.Parameter(torch.randn(5))
        self.offset = nn.Parameter(torch.randn(6, 1, 1))

    def forward(self, x):
        y = F.relu(F.conv2d(x, self.kernel, None, 1, 1))
        y = (y + self.offset) * 0.5 + 3
        y = F.hardtanh(y, 0.0, 6.0)
        y = y.mean((2, 3))
        z = F.linear(y, self.weight, self.bias)
        return F.leaky_relu(z, 0.1), F.linear(y, self.weight)


class TransformerBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(8), nn.LayerNorm(8)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.soft = nn.Softmax(dim=-1)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        q = q.view(b, t, 2, c // 2).transpose(1, 2)
        k = k.view(b, t, 2, c // 2).transpose(1, 2)
        v = v.view(b, t, 2, c // 2).transpose(1, 2)
        w = self.soft(torch.matmul(q, k.transpose(-2, -1)) * 0.5)
        y = torch.matmul(w, v).transpose(1, 2).contiguous().view(b, t, c)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.lstm = nn.LSTM(6, 6, batch_first=True)
        self.cell = nn.GRUCell(6, 6)
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        y, (h, c) = self.lstm(self.embed(x))
        return self.head(y), self.cell(h[0], c[0])


class Activations(nn.Module):
    def __init__(self):
        super().__init__()
        self.fcs = nn.ModuleList([nn.Linear(6, 6) for _ in range(8)])
        self.acts = nn.ModuleList([nn.ELU(), nn.Tanh(), nn.Hardsigmoid(), nn.PReLU(), nn.GELU(),
                                   nn.SiLU(), nn.Identity(), nn.LeakyReLU()])  # fmt: skip

    def forward(self, x):
        for fc, act in zip(self.fcs, self.acts):
            x = act(fc(x))
        return torch.tanh(self.fcs[0](x)), self.fcs[1](x).sigmoid()


class Sizes(nn.Module):
    """Sizes and other numbers that take part in arithmetic are not observed."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x):
        n = x.size(0) + 1
        m = x.shape[1] * 2 // 2
        y = self.fc(x) * n
        y = y.view(-1, m).unsqueeze(0).squeeze(0)
        return y.repeat(2, 1), n


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.BatchNorm1d(6)
        self.c, self.d = nn.Conv2d(2, 4, 1), nn.InstanceNorm2d(4)
        self.e, self.f = nn.BatchNorm2d(4), nn.GroupNorm(2, 4)

    def forward(self, x, y):
        y = self.d(self.c(y))
        y = F.relu(self.e(y))
        return F.relu(self.b(self.a(x))), self.f(F.group_norm(y, 2))


class Transposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(2, 4, 3, 2, 1)
        self.up = nn.ConvTranspose2d(4, 4, 2, 2)
        self.bn = nn.BatchNorm2d(4)
        self.out = nn.Conv2d(4, 4, 3, padding=1)
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, x):
        y = self.bn(self.up(F.relu(self.down(x))))
        y = F.interpolate(self.out(y), scale_factor=2.0)
        return self.shuffle(y)


class OneDimension(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv1d(2, 4, 3, padding=1), nn.BatchNorm1d(4)
        self.pool = nn.AvgPool1d(2)
        self.deep = nn.Conv3d(1, 2, 3, padding=1)

    def forward(self, x):
        y = self.pool(F.relu(self.bn(self.conv(x))))
        z = F.relu(self.deep(y.unsqueeze(0).unsqueeze(0)))
        return F.max_pool1d(y, 2), z.flatten(1)


class Operators(nn.Module):
    """Spellings that are quantized next to those that are not."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x, y):
        a = self.fc(x)
        b = a - y
        c = torch.add(a, y)
        d = a @ y.t()
        e = torch.matmul(a, y.transpose(0, 1))
        f = operator.mul(c, b).clamp(-1.0, 1.0)
        g = torch.relu(self.fc(f)), self.fc(f).relu(), torch.relu(c + f)
        return d, e, f.reshape(-1), g


class Dicts(nn.Module):
    """Results and arguments in containers."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x):
        parts = {"a": self.fc(x), "b": [x, torch.stack([x, self.fc(x)])]}
        parts["c"] = parts["a"][:, 0] + 1
        return parts


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Sequential(
            nn.Linear(6, 6), nn.ReLU6(), nn.Dropout(0.1)), nn.Linear(6, 6))  # fmt: skip

    def forward(self, x):
        return self.body(x) + x


def _made(cls, *shapes):
    def make():
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return cls().eval(), tuple(torch.randn(s) for s in shapes)
    return make


def _tokens():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Recurrent().eval(), (torch.randint(0, 11, (3, 5)),)


MODELS = {
    "mobile_se": _made(MobileWithSE, (2, 3, 16, 16)),
    "residual": _made(Residual, (2, 3, 8, 8)),
    "inception": _made(Inception, (2, 3, 8, 8)),
    "shared": _made(Shared, (3, 4), (3, 4)),
    "functional": _made(Functional, (2, 3, 8, 8)),
    "transformer_block": _made(TransformerBlock, (2, 5, 8)),
    "recurrent": _tokens,
    "activations": _made(Activations, (3, 6)),
    "sizes": _made(Sizes, (3, 6)),
    "norms": _made(Norms, (3, 6), (2, 2, 6, 6)),
    "transposed": _made(Transposed, (1, 2, 8, 8)),
    "one_dimension": _made(OneDimension, (2, 2, 8)),
    "operators": _made(Operators, (6, 6), (6, 6)),
    "dicts": _made(Dicts, (3, 6)),
    "nested": _made(Nested, (3, 6)),
}
ZOO = ("mlp", "resnet18", "resnet50", "mobilenet_v3", "efficientnet_b0", "convnext", "vit_b_16",
       "bert", "gpt2", "unet", "lstm_lm")  # fmt: skip
for _name in ZOO:
    MODELS[_name] = lambda name=_name: zoo.make(name, small=True)
