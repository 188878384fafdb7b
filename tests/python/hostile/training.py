"""self.training: a value that train() and eval() of the captured module switch."""
import torch
from torch import nn
from torch.nn import functional as F

from . import equal, refused

ROWS = torch.tensor([[1.0, 2.0, 3.0], [0.5, 1.0, -1.0]])
LESS = -ROWS * 2


@equal(ROWS, LESS)
class Branches(nn.Module):
    def forward(self, x):
        if self.training:
            return x * 2
        return x * 3


@equal(ROWS, LESS)
class ConditionalExpression(nn.Module):
    def forward(self, x):
        return x * (2 if self.training else 3) + (not self.training)


@equal(ROWS, LESS)
class PassedOn(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, training=self.training)


@equal(ROWS, LESS)
class Returned(nn.Module):
    def forward(self, x):
        return x, self.training


@equal(ROWS, LESS)
class AndData(nn.Module):
    def forward(self, x):
        if self.training and x.sum() > 0:
            x = x * 2
        elif not self.training or x.min() < -3:
            x = x * 3
        return x


@equal(ROWS, LESS)
class Noise(nn.Module):
    def forward(self, x):
        if self.training:
            x = x + torch.randn_like(x)
        return x


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x) if self.training else x * 10


@equal(ROWS, LESS)
class InASubmodule(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Inner()
        self.b = Inner()

    def forward(self, x):
        return self.a(x) + self.b(x)


@equal(ROWS, LESS)
class OfASubmodule(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        if self.bn.training:
            return self.bn(x) * 2
        return self.bn(x)


@equal(ROWS, LESS)
class RunningMean(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(x.mean(0), 0.5)
        return x - self.mean


@equal(ROWS, LESS)
class RunningMeanAssigned(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        if self.training:
            self.mean = self.mean * 0.9 + x.mean(0) * 0.1
        return x - self.mean


@equal(ROWS, LESS)
class TwoResultsInTraining(nn.Module):
    """As models with an auxiliary head."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 2)
        self.aux = nn.Linear(3, 2)

    def forward(self, x):
        y = self.head(x)
        if self.training:
            return y, self.aux(x)
        return y


@equal(ROWS, LESS)
class DictInTraining(nn.Module):
    def forward(self, x):
        out = {"y": x * 2}
        if self.training:
            out["loss"] = x.sum()
        return out


@equal((ROWS, None), (ROWS, LESS))
class LossInTraining(nn.Module):
    def forward(self, x, target):
        if self.training and target is None:
            raise ValueError("target is needed in training")
        return x if target is None else (x - target).pow(2).mean()


@equal((ROWS, 3), (LESS, 0))
class CountsRounds(nn.Module):
    def forward(self, x, n):
        for i in range(n if self.training else 1):
            x = x + i
        return x


@equal(ROWS, LESS)
class StaticLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

    def forward(self, x):
        layers = self.layers if self.training else self.layers[:1]
        for layer in layers:
            x = layer(x)
        return x


@equal(ROWS, LESS)
class ChoosesAModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.slow = nn.Linear(3, 2)
        self.fast = nn.Linear(3, 2)

    def forward(self, x):
        layer = self.slow if self.training else self.fast
        return layer(x)


@equal(ROWS, LESS)
class AssertsEval(nn.Module):
    def forward(self, x):
        assert not self.training, "only for evaluation"
        return x * 2


@equal(ROWS, LESS)
class WhileInTraining(nn.Module):
    def forward(self, x):
        n = 0
        while self.training and n < 3:
            x = x + 1
            n += 1
        return x, n


@equal(ROWS, LESS)
class NumbersOfTraining(nn.Module):
    def forward(self, x):
        return x * self.training + int(self.training) - float(not self.training)


@equal(ROWS, LESS)
class KeepsTheFlag(nn.Module):
    def forward(self, x):
        was = self.training
        flags = [was, not was]
        return x if flags[0] else -x


@equal(ROWS, LESS)
class ThroughAMethod(nn.Module):
    def is_training(self):
        return self.training

    def forward(self, x):
        def inner(v):
            return v * 2 if self.training else v

        return inner(x) if self.is_training() else inner(-x)


@equal(ROWS, LESS)
class ThroughGetattr(nn.Module):
    def forward(self, x):
        return x * 2 if getattr(self, "training") else x * 5


@equal(ROWS, LESS)
class ModeText(nn.Module):
    def forward(self, x):
        mode = "train" if self.training else "eval"
        return x * {"train": 2, "eval": 3}[mode]


@equal(ROWS, LESS)
class BatchNormByHand(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("var", torch.ones(3))

    def forward(self, x):
        return F.batch_norm(x, self.mean, self.var, training=self.training, momentum=0.5)


@equal(ROWS, LESS)
class EverythingThatHasModes(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.3)
        self.alpha = nn.AlphaDropout(0.3)
        self.act = nn.RReLU()

    def forward(self, x):
        return self.act(self.alpha(self.drop(self.bn(x))))


@refused(ROWS, LESS)
class SwitchesItself(nn.Module):
    def forward(self, x):
        self.eval()  # refuse
        return x * 2 if self.training else x


@equal(ROWS, LESS)
class CheckpointLike(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def run(self, f, x):
        return f(x) + 0 if self.training else f(x)

    def forward(self, x):
        return self.run(lambda v: torch.relu(self.lin(v)), x)


@equal(ROWS, LESS)
class QuantizedInEval(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(1.0))

    def forward(self, x):
        if self.training:
            self.scale.copy_(x.detach().abs().max())
            return x
        return torch.round(x / self.scale * 127) / 127 * self.scale
