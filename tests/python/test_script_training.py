"""Training a scripted module in PyTorch: loss, backward and optimiser step over 50 steps give the
parameters that eager PyTorch gives, with control flow that data decide."""
import copy

import cfx
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

STEPS = 50


class Classifier(nn.Module):
    """Linear 10-5-2."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(10, 5)
        self.out = nn.Linear(5, 2)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


class Gated(Classifier):
    """Both ways of a branch have parameters of their own."""

    def __init__(self):
        super().__init__()
        self.other = nn.Linear(5, 2, bias=False)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        h = torch.tanh(self.hidden(x))
        if h.mean() > 0:
            y = self.out(h) * self.scale
        else:
            y = self.other(h)
        return y


class Iterated(Classifier):
    """As often as data want it; the batch-norm learns on the way."""

    def __init__(self):
        super().__init__()
        self.again = nn.Linear(5, 5)
        self.norm = nn.BatchNorm1d(5)

    def forward(self, x):
        h = self.norm(self.hidden(x))
        n = 0
        while h.abs().max() > 1.5 and n < 4:
            h = torch.tanh(self.again(h)) * 0.9 + h * 0.3
            n += 1
        if self.training:
            h = h + 0.01 * n
        return self.out(h)


class Recurrent(Classifier):
    """Row by row, until one is large; what was seen is stacked."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(10, 5)

    def forward(self, x):
        h = torch.zeros(1, 5)
        seen = []
        for row in x:
            if row.sum() > 6:
                break
            h = self.cell(row[None], h)
            seen.append(h)
        if len(seen) == 0:
            seen.append(h + self.hidden(x).mean(0))
        return self.out(torch.cat(seen).mean(0)).expand(x.shape[0], -1)


def batches():
    """The same data in every run; sizes and ways differ from step to step."""
    generator = torch.Generator().manual_seed(1)
    for step in range(STEPS):
        x = torch.randn(4 + step % 5, 10, generator=generator) * (1 + step % 4)
        yield x, (x.sum(1) > 0).long()


def train(model, optimizer):
    losses = []
    for x, target in batches():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("cls", [Classifier, Gated, Iterated, Recurrent])
@pytest.mark.parametrize("make", [
    lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: torch.optim.Adam(p, lr=0.01),
], ids=["sgd", "adam"])
def test_equal_to_eager(cls, make):
    torch.manual_seed(0)
    eager = cls()
    scripted = cfx.script(copy.deepcopy(eager))
    want = train(eager, make(eager.parameters()))
    got = train(scripted, make(scripted.parameters()))
    assert got == want
    assert len(set(want)) == STEPS
    states = eager.state_dict(), scripted.state_dict()
    assert set(states[0]) == set(states[1])
    for name, value in states[0].items():
        assert torch.equal(value, states[1][name]), name


def test_every_parameter_learns():
    """Parameters that only regions read get gradients."""
    scripted = cfx.script(Gated())
    before = copy.deepcopy(scripted.state_dict())
    train(scripted, torch.optim.SGD(scripted.parameters(), lr=0.1))
    assert all(not torch.equal(v, before[k]) for k, v in scripted.state_dict().items())


def test_loss_in_the_script():
    """The loss may be part of what is captured, with a branch around it."""

    class WithLoss(Gated):
        def forward(self, x, target):
            y = super().forward(x)
            loss = F.cross_entropy(y, target)
            if loss > 1:
                loss = loss.clamp(max=5) + 0.1 * y.pow(2).mean()
            return loss

    torch.manual_seed(0)
    eager = WithLoss()
    scripted = cfx.script(copy.deepcopy(eager))
    for model in (eager, scripted):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
        for x, target in batches():
            optimizer.zero_grad()
            model(x, target).backward()
            optimizer.step()
    learnt = dict(scripted.named_parameters())
    for name, parameter in eager.named_parameters():
        assert torch.equal(parameter, learnt.pop(name)), name
    assert not learnt
