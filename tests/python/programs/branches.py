"""if, elif, else on values of the graph."""
import torch
from torch import nn
from torch.nn import functional as F

from . import module, program, randn

POSITIVE, NEGATIVE = randn(3, 4).abs(), -randn(3, 4).abs()


@program(POSITIVE, NEGATIVE, -randn(2).abs(), tags="if else")
def either(x):
    if x.sum() > 0:
        y = torch.relu(x) * 2
    else:
        y = torch.tanh(x) - 1
    return y + 1


@program(POSITIVE, NEGATIVE, torch.zeros(2, 2), tags="if")
def without_else(x):
    y = x * 2
    if x.max() > 0:
        y = y / x.max()
    return y


@program(torch.full((2,), 5.0), torch.full((3,), 0.5), torch.full((4, 1), -0.5),
         torch.full((1,), -5.0), tags="if elif else")
def four_ways(x):
    m = x.mean()
    if m > 1:
        x = torch.log(x)
    elif m > 0:
        x = torch.sqrt(x)
    elif m > -1:
        x = x ** 3
    else:
        x = torch.exp(x)
    return x.sum()


@program((randn(3), randn(3, seed=1)), (-randn(3).abs(), randn(3).abs()),
         (randn(2, 2).abs(), -randn(2, 2).abs()), (-randn(4).abs(), -randn(4).abs()),
         tags="if nested")
def nested(a, b):
    if a.sum() > 0:
        if b.sum() > 0:
            out = a + b
        else:
            out = a - b
    else:
        if b.sum() > 0:
            out = a * b
        else:
            out = a / (b.abs() + 1)
    return out


@program((POSITIVE, True), (POSITIVE, False), (randn(5), True), tags="if bool")
def by_flag(x, normalize: bool):
    if normalize:
        x = (x - x.mean()) / (x.std() + 1e-5)
    return x


@program((randn(4, 3), None), (randn(4, 3), torch.ones(4, 3)), (randn(2, 2), torch.zeros(2, 2)),
         tags="if none")
def optional_mask(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return torch.softmax(scores, dim=-1)


@program((randn(3) + 9, randn(3, seed=2)), (-randn(2).abs() - 1, randn(2)), tags="if several")
def several_names(a, b):
    if (a > b).all():
        low, high, swapped = b, a, 1
    else:
        low, high, swapped = a, b, 0
    return low, high, swapped


@program(POSITIVE, NEGATIVE, torch.zeros(2), tags="if return-types")
def other_sizes(x):
    """The ways give tensors of other shapes and types."""
    if x.sum() > 0:
        return x.sum(dim=0)
    return (x < 0).sum()


@program((randn(2, 3), 1), (randn(2, 3), 2), (randn(5, 3), 7), tags="if int elif")
def by_number(x, order: int):
    if order == 1:
        return x.abs().sum()
    elif order == 2:
        return x.pow(2).sum().sqrt()
    else:
        return x.abs().max()


@program((randn(3), "relu"), (randn(3), "tanh"), (randn(2, 2), "none"), tags="if str")
def by_name(x, activation: str):
    if activation == "relu":
        return F.relu(x)
    if activation == "tanh":
        return torch.tanh(x)
    return x


@program(torch.tensor([1.0, float("nan"), 3.0]), randn(3), torch.tensor([float("inf")]),
         tags="if guard")
def mend(x):
    if torch.isnan(x).any():
        x = torch.nan_to_num(x, nan=0.0)
    if torch.isinf(x).any():
        x = x.clamp(-1e4, 1e4)
    return x


@program(randn(4, 4), randn(3, 3) @ randn(3, 3, seed=1), torch.eye(5), tags="if matrix",
         no_row="eigenvalues")
def symmetric_or_not(m):
    if torch.allclose(m, m.T):
        values = torch.linalg.eigvalsh(m)
    else:
        values = torch.linalg.svdvals(m)
    return values.max() / values.abs().min().clamp(min=1e-6)


@program((POSITIVE, POSITIVE), (NEGATIVE, NEGATIVE), (randn(2, 6), randn(2, 6, seed=3)),
         tags="if same-effect")
def clip_gradient(weight, grad):
    norm = grad.norm()
    limit = 1.0
    scale = torch.ones(())
    if norm > limit:
        scale = limit / norm
    return weight - 0.1 * scale * grad, norm


@program(randn(1, 4), randn(2, 4), randn(5, 4), tags="if size")
def batch_of_one(x):
    """A branch on a size, which is known only when it runs."""
    if x.shape[0] == 1:
        return x.squeeze(0)
    elif x.shape[0] % 2 == 0:
        return x.reshape(2, -1)
    return x.flatten()


@program(torch.ones(3), torch.tensor([0.0, 1.0]), torch.zeros(1), tags="if unused pass")
def nothing_to_do(x):
    if x.any():
        pass
    else:
        x = x + 1
    if x.all():
        "a remark"
    return x


@module(randn(4, 6), -randn(4, 6).abs() * 9, randn(1, 6) * 0.1, tags="if module")
class TwoPaths(nn.Module):
    """One of two sub-networks, by how large the activations are."""

    def __init__(self):
        super().__init__()
        self.wide = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3))
        self.narrow = nn.Linear(6, 3)
        self.register_buffer("threshold", torch.tensor(2.0))

    def forward(self, x):
        if x.abs().max() > self.threshold:
            out = self.wide(x)
        else:
            out = self.narrow(x)
        return F.log_softmax(out, dim=-1)


@program((randn(3), torch.tensor(True), torch.tensor(False)),
         (randn(3), torch.tensor(False), torch.tensor(True)),
         (randn(2), torch.tensor(False), torch.tensor(False)), tags="if in-place", mutates=True)
def in_place(x, double, negate):
    if double:
        x.mul_(2)
    if negate:
        x.neg_()
    return x.sum()


@program(torch.tensor(3), torch.tensor(-2), torch.tensor(0), tags="if item")
def sign_in_words(n):
    value = n.item()
    if value > 0:
        sign = 1
    elif value < 0:
        sign = -1
    else:
        sign = 0
    return sign * value, sign
