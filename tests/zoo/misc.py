"""A multi-layer perceptron, an LSTM language model, a U-Net."""
import torch
import torch.nn.functional as F
from torch import nn

# ---- MLP 784-512-512-10 ---------------------------------------------------------------------


def mlp(small):
    layers = (nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return nn.Sequential(*layers), (torch.randn(1, 784),)


# ---- LSTM language model --------------------------------------------------------------------


class LSTMLanguageModel(nn.Module):
    """Two layers, the output sharing its weight with the embedding, the state handed on."""

    def __init__(self, words, width, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.dropout = nn.Dropout(0.2)
        self.lstm = nn.LSTM(width, width, layers, dropout=0.2)
        self.decoder = nn.Linear(width, words)
        self.decoder.weight = self.embedding.weight

    def forward(self, tokens, hidden, cell):
        x = self.dropout(self.embedding(tokens))
        y, (hidden, cell) = self.lstm(x, (hidden, cell))
        y = self.decoder(self.dropout(y))
        return F.log_softmax(y, dim=-1), hidden, cell


def lstm_lm(small):
    words, width, steps = (100, 32, 5) if small else (10000, 650, 35)
    state = torch.randn(2, 2, 4, width) * 0.1
    tokens = torch.randint(words, (steps, 4))
    return LSTMLanguageModel(words, width), (tokens, state[0], state[1])


# ---- U-Net ----------------------------------------------------------------------------------


class DoubleConv(nn.Sequential):
    def __init__(self, inputs, outputs):
        layers = []
        for n in (inputs, outputs):
            layers += [nn.Conv2d(n, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs),
                       nn.ReLU(inplace=True)]
        super().__init__(*layers)


class Up(nn.Module):
    """Twice the size, by a transposed convolution or by interpolation, joined with the skip."""

    def __init__(self, inputs, outputs, bilinear):
        super().__init__()
        if bilinear:
            up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.up = nn.Sequential(up, nn.Conv2d(inputs, outputs, 1))
        else:
            self.up = nn.ConvTranspose2d(inputs, outputs, 2, stride=2)
        self.conv = DoubleConv(2 * outputs, outputs)

    def forward(self, x, skip):
        x = self.up(x)
        rows, columns = skip.size(2) - x.size(2), skip.size(3) - x.size(3)
        x = F.pad(x, [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2])
        return self.conv(torch.cat([skip, x], dim=1))


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        widths = [width << i for i in range(5)]
        self.first = DoubleConv(3, widths[0])
        self.down = nn.ModuleList(
            nn.Sequential(nn.MaxPool2d(2), DoubleConv(a, b)) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(
            Up(b, a, i % 2 == 1) for i, (a, b) in enumerate(zip(widths, widths[1:])))
        self.last = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x):
        skips = [self.first(x)]
        for down in self.down:
            skips.append(down(skips[-1]))
        x = skips.pop()
        for up in reversed(self.up):
            x = up(x, skips.pop())
        return self.last(x)


def unet(small):
    size = 50 if small else 194  # odd sizes on the way down: the padding has work
    return UNet(8 if small else 64), (torch.randn(1, 3, size, size),)
