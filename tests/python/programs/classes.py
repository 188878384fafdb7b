"""Objects of people's own classes: methods, properties, inheritance, dataclasses, named tuples."""
import collections
import dataclasses
import enum
import typing

import torch
from torch import nn

from . import call, made, module, program, randn


class Block(nn.Module):
    def __init__(self, width, scale=1.0):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.scale = scale

    @property
    def doubled(self):
        return self.scale * 2

    @staticmethod
    def squash(x):
        if x.abs().max() > 1:
            return torch.tanh(x)
        return x

    @classmethod
    def width_of(cls, x):
        return x.shape[-1] * cls.factor

    factor = 2

    def activate(self, x):
        return self.squash(self.linear(x))

    def forward(self, x):
        return self.activate(x) * self.doubled + self.width_of(x)


@made(randn(2, 4), randn(3, 4) * 10, tags="method property staticmethod classmethod")
def methods():
    return Block(4, scale=0.5)


class Residual(Block):
    factor = 3

    def activate(self, x):
        if x.sum() > 0:
            return super().activate(x) + x
        return super().activate(-x)


@made(randn(2, 3), -randn(5, 3).abs(), tags="super inheritance")
def inherits():
    return Residual(3)


class Gated(Residual):
    def __init__(self, width):
        super().__init__(width, scale=0.1)
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x, *, hard=False):
        y = super().forward(x)
        gate = torch.sigmoid(self.gate)
        if hard:
            gate = (gate > 0.4).float()
        return y * gate


@made(call(randn(2, 3)), call(randn(4, 3), hard=True), tags="super keyword-only")
def inherits_twice():
    return Gated(3)


class Vector:
    """No module: a class of one's own."""

    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, factor):
        return Vector(self.x * factor, self.y * factor)

    def norm(self):
        return (self.x ** 2 + self.y ** 2).sqrt()


@program((randn(3), randn(3, seed=1)), (torch.zeros(2), torch.zeros(2)), tags="class operators")
def plain_class(a, b):
    v = Vector(a, b) + Vector(b, a) * 2.0
    if v.norm().sum() > 1:
        return v.norm()
    return v.x - v.y


@dataclasses.dataclass
class State:
    hidden: torch.Tensor
    cell: torch.Tensor
    steps: int = 0

    def moved(self, delta):
        return State(self.hidden + delta, self.cell - delta, self.steps + 1)


@program(randn(3), -randn(4).abs(), torch.zeros(1), tags="dataclass")
def uses_dataclass(x):
    state = State(x, torch.zeros_like(x))
    if x.sum() > 0:
        state = state.moved(1.0)
    state.steps += 1
    return state.hidden, state.cell, state.steps


class Pair(typing.NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


@program(randn(3), -randn(4).abs(), tags="namedtuple")
def uses_named_tuple(x):
    pair = Pair(x.exp(), x)
    if x.sum() > 0:
        pair = pair._replace(first=x)
    first, second = pair
    return pair.first + second - first * pair[1]


@program(randn(3), -randn(4).abs(), tags="namedtuple result", local="gives a named tuple",
         wraps=["Pair"])
def gives_named_tuple(x):
    if x.sum() > 0:
        return Pair(x, x * 2)
    return Pair(second=x, first=-x)


Stats = collections.namedtuple("Stats", "mean spread", defaults=(0.0,))


@program(randn(3), torch.ones(1), randn(2, 4), tags="namedtuple factory")
def uses_factory(x):
    stats = Stats(x.mean())
    if x.numel() > 1:
        stats = Stats(x.mean(), x.std())
    return (x - stats.mean) / (stats.spread + 1.0)


class Mode(enum.Enum):
    SUM = "sum"
    MEAN = "mean"


@made(randn(2, 3), -randn(4, 3).abs(), tags="enum")
def uses_enum():
    class Reduce(nn.Module):
        def __init__(self, mode):
            super().__init__()
            self.mode = mode

        def forward(self, x):
            if self.mode is Mode.SUM:
                x = x.sum(-1)  # never
            elif self.mode is Mode.MEAN:
                x = x.mean(-1)
            return x if x.max() > 0 else -x

    return Reduce(Mode.MEAN)


class Scheduler:
    """Not a module, but holds tensors and has methods that decide."""

    def __init__(self, betas):
        self.betas = betas
        self.total = betas.cumprod(0)

    def __len__(self):
        return len(self.betas)

    def __getitem__(self, i):
        return self.total[i]

    def __call__(self, x, i):
        return x * self[i] if i < len(self) else x


@made((randn(3), 0), (randn(3), 2), (randn(2, 2), 9), tags="call getitem len object")
def object_in_module():
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.schedule = Scheduler(torch.tensor([0.9, 0.8, 0.7]))

        def forward(self, x, step: int):
            return self.schedule(x, step)

    return Noisy()


@made(randn(3), randn(2, 2) * 9, tags="bound-method")
def bound_method():
    return Block(3).squash if False else Tamer(2.0).tame


class Tamer:
    def __init__(self, limit):
        self.limit = limit

    def tame(self, x):
        while x.norm() > self.limit:
            x = x / 2
        return x


@made(randn(4, 2), randn(1, 2) * 5, tags="callable-object")
def callable_object():
    class Smooth:
        rate = 0.5

        def __call__(self, x):
            previous = x[0]
            out = []
            for row in x:
                previous = self.rate * row + (1 - self.rate) * previous
                out.append(previous)
            return torch.stack(out)

    return Smooth()


class Mixin:
    def prepare(self, x):
        return x / self.temperature if x.max() > 1 else x


@module(randn(2, 3), randn(4, 3) * 0.1, tags="mixin class-attribute")
class Tempered(Mixin, nn.Module):
    temperature = 4.0

    def forward(self, x):
        return torch.softmax(self.prepare(x), -1)


@module(randn(3, 4), -randn(2, 4).abs(), tags="hasattr getattr isinstance")
class Inspects(nn.Module):
    """Looks at itself, as libraries do."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.ReLU()
        self.bias = None

    def forward(self, x):
        for name in ("first", "second", "third"):
            if hasattr(self, name):
                layer = getattr(self, name)
                x = layer(x)
                if isinstance(layer, nn.Linear) and x.sum() < 0:
                    x = -x
        if self.bias is not None:
            x = x + self.bias  # never
        return x


@program((randn(3), 2), (randn(2), 5), raises=[((randn(2), -1), ValueError)],
         tags="dataclass post-init local-class")
def checked_by_dataclass(x, n: int):
    @dataclasses.dataclass
    class Window:
        data: torch.Tensor
        size: int
        step: int = 1

        def __post_init__(self):
            if self.size < 0:
                raise ValueError(f"size {self.size}")

    class Pair(typing.NamedTuple):
        left: torch.Tensor
        right: int = 7

    window = Window(x, n)
    if x.sum() > 1:
        window.step = 3
    pair = Pair(dataclasses.replace(window, size=4).data)
    return window.size * pair.left, window.step, pair.right


@dataclasses.dataclass
class Answer(collections.OrderedDict):
    """As libraries of transformers have them: a dict and an object."""

    logits: torch.Tensor | None = None
    loss: torch.Tensor | None = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if getattr(self, field.name) is not None:
                self[field.name] = getattr(self, field.name)


class Named(dict):
    pass


@program(randn(3), -randn(2), tags="dict-subclass result", no_row="classes of the user's",
         local="classes of the user's", wraps=["Answer", "Named"])
def gives_dicts_of_its_own(x):
    loss = x.sum() if x.sum() > 0 else x.mean()
    return Answer(logits=x * 2, loss=loss), [Named(loss=loss)]


@dataclasses.dataclass
class Step:
    data: torch.Tensor
    parts: list
    kind: str = "none"


@program(randn(3), -randn(2), tags="dataclass asdict", no_row="copy.deepcopy", wraps=["deepcopy"])
def as_containers(x):
    step = Step(x, [x + 1, {"n": 3}])
    if x.sum() > 0:
        step.kind = "some"
    return dataclasses.asdict(step), dataclasses.astuple(step)
