"""Random numbers: in branches, loops, comprehensions and generators; dropout; other generators."""
import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from . import equal, refused

UP = torch.tensor([1.0, 2.0, 3.0])
DOWN = torch.tensor([-1.0, -2.0, -3.0])
ROWS = torch.ones(4, 3)


@equal(UP, DOWN)
def in_a_branch(x):
    if x.sum() > 0:
        return x + torch.rand(3)
    return x + torch.randn(3) * torch.rand(3)


@equal((UP, 3), (DOWN, 0))
def in_a_loop(x, n):
    for _ in range(n):
        x = x + torch.rand(3)
    return x, torch.rand(1)


@equal(UP, DOWN)
def in_a_data_loop(x):
    while x.sum() < 10:
        x = x.abs() + torch.rand(3)
    return x


@equal(UP, DOWN)
def in_a_comprehension(x):
    return [torch.rand(2) for _ in range(3)], x


@equal(UP, DOWN)
def in_a_generator_consumed_late(x):
    parts = (torch.rand(1) for _ in range(2))
    first = torch.rand(1)
    return first, list(parts), x


@equal(UP, DOWN)
def drawn_and_not_used(x):
    torch.rand(5)
    return x + torch.rand(3)


@equal(UP, DOWN)
def drawn_in_a_condition(x):
    if torch.rand(()) > 0.5:
        x = x * 2
    return x + torch.rand(3)


@equal(UP, DOWN)
def order_of_arguments(x):
    def f(a, b):
        return a * 10 + b

    return f(b=torch.rand(2), a=torch.rand(2)), {"p": torch.rand(1), "q": torch.rand(1)}


@equal(UP, DOWN)
def short_circuit_draws(x):
    hit = x.sum() > 0 and torch.rand(()) > 0.5
    return torch.rand(2), bool(hit)


@equal(UP, DOWN)
def in_place_draws(x):
    y = x.clone().normal_()
    z = torch.empty(3).uniform_()
    if x.sum() > 0:
        y.bernoulli_(0.5)
    return y, z


@equal(UP.abs() / 4, DOWN.abs() / 4)
def many_distributions(x):
    return (torch.bernoulli(x), torch.multinomial(x, 2), torch.randperm(4),
            torch.randint(0, 9, (3,)), torch.normal(x, 1.0), torch.poisson(x),
            x.clone().exponential_(), torch.rand_like(x))


@equal(UP, DOWN)
def functional_dropout(x):
    return F.dropout(x, 0.5), F.dropout(x, 0.5, training=False), F.alpha_dropout(x, 0.5, True)


@equal(UP, DOWN)
def gumbel_and_rrelu(x):
    return F.gumbel_softmax(x, hard=True), F.rrelu(x, training=True)


@equal(ROWS, -ROWS)
class Dropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        y = self.drop(x)
        if x.sum() > 0:
            y = self.drop(y)
        return y, torch.rand(1)


@equal(ROWS, -ROWS)
class FunctionalDropoutByMode(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, self.training)


@equal(ROWS, -ROWS)
class DropoutNotUsed(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        self.drop(x)
        return x + torch.rand(3)


@equal(ROWS, -ROWS)
class StochasticDepth(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            if not self.training or torch.rand(()) < 0.5:
                x = x + layer(x)
        return x


@equal(ROWS, -ROWS)
class RecurrentDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 3, num_layers=2, dropout=0.5)

    def forward(self, x):
        y, h = self.rnn(x)
        return y + torch.rand(1), h


@equal(ROWS, -ROWS)
class AttentionDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = nn.MultiheadAttention(3, 1, dropout=0.5, batch_first=True)

    def forward(self, x):
        y, w = self.attend(x[None], x[None], x[None])
        return y, w, torch.rand(1)


@equal(ROWS, -ROWS)
class NoiseBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("noise", torch.zeros(3))

    def forward(self, x):
        if self.training:
            self.noise.normal_()
        return x + self.noise


# ---- seeds and generators ------------------------------------------------------------------------


@equal(UP, DOWN)
def seeds_in_forward(x):
    torch.manual_seed(5)
    return x + torch.rand(3)


@equal(UP, DOWN)
def seeds_in_a_branch(x):
    if x.sum() > 0:
        torch.manual_seed(5)
    return x + torch.rand(3)


@equal(UP, DOWN)
def saves_and_restores_the_state(x):
    state = torch.get_rng_state()
    a = torch.rand(3)
    torch.set_rng_state(state)
    return a, torch.rand(3), x


@equal(UP, DOWN)
def generator_made_in_forward(x):
    g = torch.Generator().manual_seed(3)
    return x + torch.rand(3, generator=g), torch.rand(2, generator=g)


@equal((UP, 2), (DOWN, 0))
def generator_in_a_loop(x, n):
    g = torch.Generator()
    g.manual_seed(1)
    for _ in range(n):
        x = x + torch.rand(3, generator=g)
    return x


@equal(UP, DOWN)
def generator_in_a_branch(x):
    g = torch.Generator()
    g.manual_seed(1)
    if x.sum() > 0:
        torch.rand(2, generator=g)
    return torch.rand(2, generator=g), x


@equal(UP, DOWN)
def generator_that_nobody_seeded(x):
    g = torch.Generator()
    return x + torch.rand(3, generator=g)


@equal((UP, 5), (DOWN, 8))
def generator_seeded_by_data(x, n):
    g = torch.Generator().manual_seed(n)
    return x + torch.rand(3, generator=g)


SHARED = torch.Generator().manual_seed(2)


@equal(UP, DOWN)
def global_generator(x):
    return x + torch.rand(3, generator=SHARED)


@equal(UP, DOWN)
class GeneratorAttribute(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = torch.Generator().manual_seed(2)

    def forward(self, x):
        return x + torch.rand(3, generator=self.generator)


# ---- Python's and numpy's ------------------------------------------------------------------------


@equal(UP, DOWN)
def python_random(x):
    return x * random.random()


@equal(UP, DOWN)
def python_choice(x):
    return x * random.choice([1, 2, 3])


@refused(UP, DOWN)
def python_shuffle(x):
    items = [1, 2, 3]
    random.shuffle(items)  # refuse
    return x * items[0]


@equal(UP, DOWN)
def python_seed(x):
    random.seed(3)
    return x * 2


@equal(UP, DOWN)
def numpy_random(x):
    return x * float(np.random.rand())


@equal(UP, DOWN)
def numpy_normal(x):
    return x + torch.tensor(np.random.randn(3), dtype=torch.float32)


@equal(UP, DOWN)
def numpy_seed(x):
    np.random.seed(1)
    return x


@equal(UP, DOWN)
def numpy_generator_made_in_forward(x):
    rng = np.random.default_rng(3)
    return x * float(rng.random())


@equal(UP, DOWN)
def python_random_made_in_forward(x):
    rng = random.Random(3)
    return x * rng.random() + rng.randint(1, 9)


@equal(UP, DOWN)
def python_random_made_in_forward_and_branch(x):
    rng = random.Random(3)
    if x.sum() > 0:
        x = x * rng.random()
    return x * rng.random()


DICE = random.Random(4)


@refused(UP, DOWN)
def python_random_global(x):
    return x * DICE.random()  # refuse


@equal(UP, DOWN)
class MixUp(nn.Module):
    def forward(self, x):
        k = np.random.beta(0.5, 0.5) if self.training else 1.0
        return x * k
