"""Random modules that assign to their buffers, and return what these were, or a part of it: source,
the same for the same seed. `forward(x, n)` takes a tensor of three and a number of rounds."""
import random

HEADER = """import torch


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.arange(3.0))
        self.register_buffer("b", torch.ones(3))

    def forward(self, x, n: int):
"""
VALUES = ("self.a", "self.b", "self.a[1:]", "self.b.view(-1)", "self.a * 2", "x + self.b",
          "self.b[:2]", "x")


class Writer:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines = [HEADER]
        self.names = []

    def say(self, depth, text):
        self.lines.append(f"{'    ' * (depth + 2)}{text}\n")

    def value(self):
        return self.rng.choice((*VALUES, *self.names))

    def buffer(self):
        return f"self.{self.rng.choice('ab')}"

    def assign(self, depth):
        self.say(depth, f"{self.rng.choice(self.names)} = {self.value()}")

    def keep(self, depth):
        other = self.rng.choice(("self.a", "self.b", "0"))
        self.say(depth, f"{self.buffer()} = ({self.value()}).sum() * torch.ones(3) + {other}")

    def share(self, depth):
        self.say(depth, f"{self.buffer()} = {self.buffer()}")

    def branch(self, depth):
        self.say(depth, f"if ({self.value()}).sum() > {self.rng.choice((-1, 0, 1))}:")
        self.block(depth + 1)
        if self.rng.random() < 0.5:
            self.say(depth, "else:")
            self.block(depth + 1)

    def loop(self, depth):
        self.say(depth, "for _ in range(n):")
        self.block(depth + 1)

    def block(self, depth):
        kinds = [self.assign, self.assign, self.keep, self.keep, self.share]
        kinds += [self.branch, self.loop] if depth < 2 else []
        for _ in range(self.rng.randint(1, 4)):
            self.rng.choice(kinds)(depth)

    def write(self):
        for name in "pqr":
            self.say(0, f"{name} = {self.value()}")
            self.names.append(name)
        self.block(0)
        self.block(0)
        self.say(0, f"return p, q, {self.value()}")
        return "".join(self.lines)


def module(seed):
    return Writer(seed).write()
