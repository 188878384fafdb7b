"""Modules: settings, buffers, modes, hooks, parametrizations, sharing, subclasses, state."""
import copy
import functools

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, parametrize

from . import equal, refused

ROWS = torch.tensor([[1.0, 2.0, 4.0], [0.5, -1.0, 3.0]])
LESS = torch.tensor([[-1.0, -2.0, 0.5], [-3.0, 1.0, -4.0], [0.0, -1.0, 0.25]])


# ---- parts and settings that forward changes -----------------------------------------------------


@refused(ROWS, LESS)
class AddsLayers(nn.Module):
    """Each call adds one more."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Tanh()])

    def forward(self, x):
        self.layers += [nn.ReLU()]  # refuse
        return x * len(self.layers)


@refused(ROWS, LESS)
class AppendsLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Tanh())

    def forward(self, x):
        self.layers.append(nn.ReLU())  # refuse
        return x * len(self.layers)


@refused(ROWS, LESS)
class ReplacesLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Tanh())

    def forward(self, x):
        y = self.layers(x)
        self.layers[0] = nn.ReLU()  # refuse
        return y


@refused(ROWS, LESS)
class PutsLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"a": nn.Tanh()})

    def forward(self, x):
        self.layers["b"] = nn.ReLU()  # refuse
        return x * len(self.layers)


@refused(ROWS, LESS)
class RemovesLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Tanh() for _ in range(9)])

    def forward(self, x):
        del self.layers[0]  # refuse
        return x * len(self.layers)


@refused(ROWS, LESS)
class SetsEps(nn.Module):
    """The setting stays after the call, as an attribute of the module."""

    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        self.bn.eps = 1.0  # refuse
        return self.bn(x)


@equal(ROWS, LESS)
class SetsEpsAndBack(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(3)

    def forward(self, x):
        before = self.norm.eps
        self.norm.eps = 1.0
        y = self.norm(x)
        self.norm.eps = before
        return y + self.norm(x)


@refused(ROWS, LESS)
class SetsMomentum(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        self.bn.momentum = 0.5  # refuse
        return self.bn(x)


@refused(ROWS, LESS)
class SetsP(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.9)

    def forward(self, x):
        self.drop.p = 0.1  # refuse
        return self.drop(x)


@refused(ROWS, LESS)
class SetsByData(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(3)

    def forward(self, x):
        if x.sum() > 0:
            self.norm.eps = 1.0  # refuse
        return self.norm(x)


@refused(ROWS, LESS)
class SetsThroughSetattr(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.LeakyReLU(0.1)

    def forward(self, x):
        setattr(self.act, "negative_slope", 0.5)  # refuse
        return self.act(x)


@refused(ROWS, LESS)
class SetsThroughDict(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.LeakyReLU(0.1)

    def forward(self, x):
        self.act.__dict__["negative_slope"] = 0.5  # refuse
        return self.act(x)


class SoftLayerNorm(nn.LayerNorm):
    def forward(self, x):
        self.eps = 1.0  # refuse
        return super().forward(x)


@refused(ROWS, LESS)
class UsesSoftLayerNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = SoftLayerNorm(3)

    def forward(self, x):
        return self.norm(x) + x


@equal(ROWS, LESS)
class SubclassOfLayerNorm(nn.LayerNorm):
    def __init__(self):
        super().__init__(3)

    def forward(self, x):
        return super().forward(x) + x


@equal(ROWS, LESS)
class SubclassOfBatchNorm(nn.BatchNorm1d):
    def __init__(self):
        super().__init__(3)

    def forward(self, x):
        return super().forward(x) * 2


class ScaledNorm(nn.BatchNorm1d):
    def forward(self, x):
        if x.sum() > 0.5:  # what is normalised adds up to nearly 0, above or below it
            x = x * 0.5
        return super().forward(x)


@equal(ROWS, LESS)
class HoldsSubclassOfBatchNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = ScaledNorm(3)

    def forward(self, x):
        return self.norm(self.norm(x))


class BiasedLinear(nn.Linear):
    def forward(self, x):
        return super().forward(x) + 1


@equal(ROWS, LESS)
class SubclassOfLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = BiasedLinear(3, 2)

    def forward(self, x):
        return self.lin(x) if x.sum() > 0 else self.lin(-x)


class TrainingOnly(nn.Dropout):
    def forward(self, x):
        if not self.training:
            return x * 10
        return super().forward(x)


@equal(ROWS, LESS)
class SubclassOfDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = TrainingOnly(0.5)

    def forward(self, x):
        return self.drop(x)


class NoisyBatchNorm(nn.BatchNorm1d):
    def _check_input_dim(self, x):
        if x.dim() != 2:
            raise ValueError("expected two dimensions")


@equal(ROWS, torch.ones(2, 3, 4))
class OverridesACheck(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = NoisyBatchNorm(3)

    def forward(self, x):
        return self.norm(x)


class ConvWithOtherPadding(nn.Conv1d):
    def _conv_forward(self, x, weight, bias):
        return super()._conv_forward(x, weight * 2, bias)


@equal(torch.ones(1, 2, 5), torch.zeros(2, 2, 4))
class OverridesAnInnerMethod(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = ConvWithOtherPadding(2, 2, 3)

    def forward(self, x):
        return self.conv(x)


# ---- modes ---------------------------------------------------------------------------------------


@equal(ROWS, LESS)
class CallsEval(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        self.bn.eval()
        return self.bn(x)


@equal(ROWS, LESS)
class EvalAndBack(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        mode = self.drop.training
        self.drop.eval()
        y = self.drop(x)
        self.drop.train(mode)
        return y + self.drop(x)


@equal(ROWS, LESS)
class TrainsByData(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        self.drop.train(bool(x.sum() > 0))
        return self.drop(x)


@equal(ROWS, LESS)
class SetsTraining(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        self.drop.training = False
        return self.drop(x)


# ---- buffers -------------------------------------------------------------------------------------


@equal(ROWS, LESS)
class AssignsRunningMean(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        self.bn.running_mean = x.mean(0).detach() * 2
        return self.bn(x)


@equal(ROWS, LESS)
class FillsRunningVar(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        self.bn.running_var.fill_(4.0)
        y = self.bn(x)
        return y, self.bn.running_var * 1

    def extra_repr(self):
        return "odd"


@equal(ROWS, LESS)
class ReadsRunningMeanAround(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        before = self.bn.running_mean.clone()
        y = self.bn(x)
        return y, self.bn.running_mean - before, self.bn.num_batches_tracked + 0


@equal(ROWS, LESS)
class NormInABranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        if x.sum() > 0:
            x = self.bn(x)
        return x + self.bn.running_mean


@equal((ROWS, 2), (LESS, 0))
class NormInALoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x, n):
        for _ in range(n):
            x = self.bn(x)
        return x + self.bn.running_var


@equal(ROWS, LESS)
class CountsInABuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.n += 1
        if self.n > 2:
            return x * self.n
        return x


@equal(ROWS, LESS)
class BufferByData(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("best", torch.tensor(-100.0))

    def forward(self, x):
        if x.sum() > self.best:
            self.best = x.sum()
            return x
        return x * self.best


@equal(ROWS, LESS)
class BufferViewChanges(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(2, 3))

    def forward(self, x):
        row = self.table[0]
        row += x[0]
        if x.sum() > 0:
            self.table[1] = x[1]
        return row + self.table[1]


@equal(ROWS, LESS)
class BufferOfOtherShape(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(2, 3))

    def forward(self, x):
        y = x + self.last.sum()
        if x.shape[0] == 2:
            self.last = x.clone()
        return y


@refused(ROWS, LESS)
class BufferOfFewerDimensions(nn.Module):
    """The elements would be copied into a tensor of the old shape."""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(3))

    def forward(self, x):
        self.last = x.sum()  # refuse
        return x + self.last


@refused(ROWS, LESS)
class BufferOfOtherDtype(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        y = x * self.last
        self.last = x.sum() / 2  # refuse
        return y


@refused(ROWS, LESS)
class BufferBecomesNone(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("first", torch.ones(3))

    def forward(self, x):
        if self.first is not None:
            x = x + self.first
        self.first = None  # refuse
        return x


@equal(ROWS, LESS)
class BufferReturnedAndChanged(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.total.add_(x.sum(0))
        return self.total.clone(), x + self.total


@equal(ROWS, LESS)
class BufferThatIsNone(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", None)

    def forward(self, x):
        return x if self.mask is None else x * self.mask


@equal(ROWS, LESS)
class BufferNotInTheStateDict(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.ones(3), persistent=False)

    def forward(self, x):
        self.k.mul_(2)
        return x * self.k


@equal(ROWS, LESS)
class SwapsTwoBuffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.ones(3))
        self.register_buffer("b", torch.full((3,), 2.0))

    def forward(self, x):
        self.a, self.b = self.b.clone(), self.a.clone()
        return x * self.a - self.b


@refused(ROWS, LESS)
class PlainTensorAttributeAssigned(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = torch.zeros(3)

    def forward(self, x):
        self.cache = x.sum(0)  # refuse
        return x + self.cache


@equal(ROWS, LESS)
class PlainTensorAttributeInPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = torch.zeros(3)

    def forward(self, x):
        self.cache.add_(1)
        return x + self.cache


@equal(ROWS, LESS)
class ParameterInPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        with torch.no_grad():
            self.w.mul_(0.5)
        return x * self.w


@equal(ROWS, LESS)
class ParameterData(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        self.w.data.clamp_(max=0.75)
        return x * self.w


@equal(ROWS, LESS)
class DataAssigned(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        self.w.data = self.w.data * 0.5
        return x * self.w


@equal(ROWS, LESS)
class ClipsNorm(nn.Module):
    """Max-norm of rows, renewed at each call."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 2)

    def forward(self, x):
        with torch.no_grad():
            self.lin.weight.renorm_(2, 0, 0.1)
        return self.lin(x)


# ---- attributes that persist ---------------------------------------------------------------------


@refused(ROWS, LESS)
class CountsInAnInt(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1  # refuse
        return x * self.calls


@refused(ROWS, LESS)
class KeepsTheLast(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        y = x if self.last is None else x + self.last
        self.last = x.mean()  # refuse
        return y


@refused(ROWS, LESS)
class WarnsOnce(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = True

    def forward(self, x):
        if self.first:
            x = x * 100
            self.first = False  # refuse
        return x


@refused(ROWS, LESS)
class MemoInADict(nn.Module):
    def __init__(self):
        super().__init__()
        self.memo = {}

    def forward(self, x):
        if "scale" not in self.memo:
            self.memo["scale"] = 3.0  # refuse
        return x * self.memo["scale"]


@refused(ROWS, LESS)
class DeletesAnAttribute(nn.Module):
    def __init__(self):
        super().__init__()
        self.extra = 2.0

    def forward(self, x):
        if hasattr(self, "extra"):
            x = x * self.extra
            del self.extra  # refuse
        return x


@refused(ROWS, LESS)
class ClassAttributeCounts(nn.Module):
    calls = 0

    def forward(self, x):
        type(self).calls += 1  # refuse
        return x * type(self).calls


@refused(ROWS, LESS)
class ReplacesALayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU()

    def forward(self, x):
        self.act = nn.Tanh()  # refuse
        return self.act(x)  # refuse


@refused(ROWS, LESS)
class AppendsALayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Tanh()])

    def forward(self, x):
        self.layers.append(nn.ReLU())  # refuse
        for layer in self.layers:
            x = layer(x)
        return x


@equal(ROWS, LESS)
class AttributeSetAndPutBack(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 1.0

    def scaled(self, x):
        return x * self.scale

    def forward(self, x):
        self.scale = 3.0
        y = self.scaled(x)
        self.scale = 1.0
        return y + self.scaled(x)


@refused(ROWS, LESS)
class CachedProperty(nn.Module):
    """Its first value is kept, and it is random."""

    @functools.cached_property
    def noise(self):
        return torch.rand(3)

    def forward(self, x):
        return x + self.noise - self.noise  # refuse


class Holder:
    def __init__(self):
        self.n = 1


@refused(ROWS, LESS)
class ChangesAHeldObject(nn.Module):
    def __init__(self):
        super().__init__()
        self.holder = Holder()

    def forward(self, x):
        self.holder.n += 1  # refuse
        return x * self.holder.n


@refused(ROWS, LESS)
class RegistersABuffer(nn.Module):
    def forward(self, x):
        self.register_buffer("late", torch.ones(3))  # refuse
        return x + self.late


@equal(ROWS, LESS)
class RequiresGradByForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 2)

    def forward(self, x):
        self.lin.requires_grad_(False)
        return self.lin(x)


# ---- hooks ---------------------------------------------------------------------------------------


@equal(ROWS, LESS)
class ForwardHookChangesTheResult(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 2)
        self.lin.register_forward_hook(lambda module, args, out: out * 2)

    def forward(self, x):
        return self.lin(x)


@equal(ROWS, LESS)
class PreHookChangesTheArgument(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU()
        self.act.register_forward_pre_hook(lambda module, args: (args[0] + 1,))

    def forward(self, x):
        return self.act(x) if x.sum() > 0 else self.act(-x)


def clamp_weight(module, args):
    with torch.no_grad():
        module.weight.clamp_(-0.1, 0.1)


@equal(ROWS, LESS)
class PreHookChangesTheWeight(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 2)
        self.lin.register_forward_pre_hook(clamp_weight)

    def forward(self, x):
        return self.lin(x)


RECORD = []


def record(module, args, out):
    RECORD.append(tuple(out.shape))


@equal(ROWS, LESS)
class HookRecords(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 2)
        self.lin.register_forward_hook(record)

    def forward(self, x):
        return self.lin(x)


@equal(ROWS, LESS)
class HookOfTheRoot(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_forward_hook(lambda module, args, out: out + 100)
        self.register_forward_pre_hook(lambda module, args: (args[0] * 2,))

    def forward(self, x):
        return x


@equal(ROWS, LESS)
class HookOfAPartInASequential(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.body[1].register_forward_hook(lambda module, args, out: out + args[0])

    def forward(self, x):
        return self.body(x)


@equal(ROWS, LESS)
class HookWithABranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.Tanh()
        self.act.register_forward_hook(self.choose)

    @staticmethod
    def choose(module, args, out):
        if out.sum() > 0:
            return out * 3
        return None

    def forward(self, x):
        return self.act(x)


# ---- parametrizations and norms ------------------------------------------------------------------


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).transpose(-1, -2)


@equal(ROWS, LESS)
class Parametrized(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        parametrize.register_parametrization(self.lin, "weight", Symmetric())

    def forward(self, x):
        return self.lin(x) if x.sum() > 0 else x @ self.lin.weight


@equal(ROWS, LESS)
class WeightNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = parametrizations.weight_norm(nn.Linear(3, 2))

    def forward(self, x):
        return self.lin(x)


@equal(ROWS, LESS)
class SpectralNorm(nn.Module):
    """Its vectors change at each call in training."""

    def __init__(self):
        super().__init__()
        self.lin = parametrizations.spectral_norm(nn.Linear(3, 2))

    def forward(self, x):
        return self.lin(x)


@equal(ROWS, LESS)
class OldWeightNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.utils.weight_norm(nn.Linear(3, 2))

    def forward(self, x):
        return self.lin(x)


@equal(ROWS, LESS)
class OldSpectralNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.utils.spectral_norm(nn.Linear(3, 2))

    def forward(self, x):
        return self.lin(x)


class Doubled(nn.Module):
    def forward(self, w):
        if w.sum() > 0:
            return w * 2
        return w * 3


@equal(ROWS, LESS)
class ParametrizationWithABranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 2)
        parametrize.register_parametrization(self.lin, "bias", Doubled())

    def forward(self, x):
        return self.lin(x)


# ---- sharing and structure -----------------------------------------------------------------------


@equal(ROWS, LESS)
class SharedModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.BatchNorm1d(3)
        self.b = self.a

    def forward(self, x):
        return self.b(self.a(x)) + self.a.running_mean


@equal(ROWS, LESS)
class SharedParameter(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)
        self.b.weight = self.a.weight

    def forward(self, x):
        with torch.no_grad():
            self.a.weight.mul_(0.9)
        return self.b(self.a(x))


@equal(ROWS, LESS)
class SharedBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        state = torch.zeros(3)
        self.register_buffer("a", state)
        self.register_buffer("b", state)

    def forward(self, x):
        self.a += 1
        return x + self.b


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(()))

    def forward(self, x):
        self.n.add_(1)
        return x * self.n


@equal((ROWS, 2), (LESS, 0), (LESS, 3))
class CounterInLoops(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = Counter()

    def forward(self, x, n):
        for _ in range(n):
            x = self.count(x)
        while x.sum() < 5:
            x = self.count(x.abs() + 1)
        return x, self.count.n.clone()


@equal(ROWS, LESS)
class CounterOnOneWay(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = Counter()

    def forward(self, x):
        y = self.count(x) if x.sum() > 0 else x
        return y + self.count.n


@refused(ROWS, LESS)
class ModuleInAListAttribute(nn.Module):
    """Not registered: neither in state_dict nor switched by train()."""

    def __init__(self):
        super().__init__()
        self.hidden = [nn.Linear(3, 2), nn.Dropout(0.5)]

    def forward(self, x):
        return self.hidden[1](self.hidden[0](x))  # refuse


@equal(ROWS, LESS)
class ModuleFromAFunction(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.ModuleDict({"pos": nn.Linear(3, 2), "neg": nn.Linear(3, 2)})

    def forward(self, x):
        if x.sum() > 0:
            return self.table["pos"](x)
        return self.table["neg"](x)


@refused(ROWS, LESS)
class OnlyCalledInForward(nn.Module):
    def forward(self, x):
        return nn.ReLU()(x) + nn.Identity()(x)  # refuse


@refused(ROWS, LESS)
class MakesALayerInForward(nn.Module):
    """With random weights, which are new at each call."""

    def forward(self, x):
        return nn.Linear(3, 2)(x)  # refuse


@equal(ROWS, LESS)
class CallsForwardDirectly(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 2)
        self.lin.register_forward_hook(lambda module, args, out: out * 100)

    def forward(self, x):
        return self.lin.forward(x)


@equal(ROWS, LESS)
class IteratesParameters(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 2)

    def forward(self, x):
        penalty = sum((p ** 2).sum() for p in self.parameters())
        for name, b in self.named_buffers():
            penalty = penalty + b.sum()
        return self.lin(x) + penalty


@equal(ROWS, LESS)
class ReadsTheStateDict(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 2)

    def forward(self, x):
        return F.linear(x, self.state_dict()["lin.weight"])


@refused(ROWS, LESS)
class LoadsAStateDict(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 2)

    def forward(self, x):
        self.lin.load_state_dict({"weight": torch.ones(2, 3), "bias": torch.zeros(2)})  # refuse
        return self.lin(x)


@refused(ROWS, LESS)
class CopiesALayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 2)

    def forward(self, x):
        other = copy.deepcopy(self.lin)
        return other(x) + self.lin(x)  # refuse


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0

    def pre(self, x):
        return x * self.scale

    def forward(self, x):
        return self.pre(x) + 1


class Middle(Base):
    def pre(self, x):
        return super().pre(x) * 10


@equal(ROWS, LESS)
class Diamond(Middle):
    def __init__(self):
        super().__init__()
        self.scale = 3.0

    def forward(self, x):
        y = super().forward(x)
        if y.sum() > 0:
            return Base.forward(self, x)
        return super(Middle, self).pre(x)


@equal(ROWS, LESS)
class GetattrModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def __getattr__(self, name):
        if name == "weight":
            return self.inner.weight * 2
        return super().__getattr__(name)

    def forward(self, x):
        return F.linear(x, self.weight)


@equal(ROWS, LESS)
class LazyStatistics(nn.Module):
    """Takes its first batch as the scale."""

    def __init__(self):
        super().__init__()
        self.register_buffer("ready", torch.tensor(False))
        self.register_buffer("scale", torch.ones(3))

    def forward(self, x):
        if self.training and not self.ready:
            self.scale.copy_(x.abs().mean(0).clamp(min=0.1))
            self.ready.fill_(True)
        return x / self.scale


@equal(ROWS, LESS)
class BatchNormWithoutStatistics(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3, track_running_stats=False)
        self.plain = nn.BatchNorm1d(3, momentum=None)

    def forward(self, x):
        return self.bn(x) + self.plain(x)


@equal(ROWS, LESS)
class SequentialSubclass(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(3, 3), nn.Dropout(0.5), nn.ReLU())

    def forward(self, x):
        for layer in self:
            x = layer(x)
            if x.sum() > 100:
                break
        return x
