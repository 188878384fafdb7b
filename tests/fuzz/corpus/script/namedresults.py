"""Named tuples in and out, classes of the user's own."""
import torch
from collections import namedtuple
from torch import nn

Output = namedtuple("Output", ["logits", "hidden"])


class Stats:
    def __init__(self):
        self.seen = []

    def add(self, x):
        self.seen.append(x.mean())
        return self

    def total(self):
        return sum(self.seen)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 2)

    def run(self, x):
        h = self.a(x).relu()
        return Output(logits=self.b(h), hidden=h)

    def forward(self, x):
        stats = Stats()
        out = self.run(x)
        stats.add(out.logits).add(out.hidden)
        logits, hidden = out
        return logits * stats.total(), hidden


