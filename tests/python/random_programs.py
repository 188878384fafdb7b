"""Random straight-line programs: the source of a module class, the same for the same seed.

Every value is a float tensor of shape (3, 4), so that any statement can follow any other, and the
program can be run. HEADER is what they all need; `{fx}` stands for the library there.
"""
import random

HEADER = """
import collections
import math
import operator

import torch
from torch import nn
from torch.nn import functional as F

import {fx} as fx

Pair = collections.namedtuple("Pair", "first second")


@fx.wrap
def blend(x, others, *, weights=None, by=1.0):
    for other in others:
        x = x + (other if weights is None else weights["w"] * other)
    return x * by


def first_of(pair):
    return pair[0] * 0.5


fx.wrap("first_of")


def plain(x, y=2, *rest, scale=1.0, **named):
    for other in rest:
        x = x + other
    return x * scale + y


class Block(nn.Module):
    def __init__(self, deep):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.weight = nn.Parameter(torch.linspace(-1, 1, 4))
        self.register_buffer("shift", torch.full((4,), 0.25))
        self.inner = Block(deep - 1) if deep else nn.Tanh()

    def forward(self, x, gain=1):
        return self.inner(self.linear(x) * self.weight + self.shift) * gain
"""

INIT = """
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 4)
        self.block = Block({deep})
        self.stack = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), Block(0))
        self.listed = nn.ModuleList([nn.Sigmoid(), Block(0), nn.Identity()])
        self.named = nn.ModuleDict({{"a": nn.Softplus(), "b": Block(0)}})
        self.weight = nn.Parameter(torch.ones(3, 4))
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(4)) for _ in range(2)])
        self.register_buffer("shift", torch.full((3, 4), 0.125))
        self.constant = torch.full((4,), 0.5)
        self.alias = self.linear

    @property
    def doubled(self):
        return self.weight * 2

    def method(self, x, *others):
        return torch.tanh(x) + len(others)
"""

# {o} is the variable that is assigned; {a}, {b} and {c} are older ones; {i} and {f} are numbers.
STATEMENTS = """
{o} = self.linear({a})
{o} = self.block({a})
{o} = self.block({a}, gain={f})
{o} = self.stack({a})
{o} = self.alias({a}) + self.linear({b})
{o} = self.listed[{i}]({a})
{o} = self.named["a"](self.named["b"]({a}))
{o} = [m({a}) for m in self.listed][{i}]
{o} = self.method({a}, {b}, {c})
{o} = {a} + self.weight
{o} = {a} * self.weights[{i} % 2] - self.weights[0]
{o} = {a} + self.shift + self.constant
{o} = {a} @ torch.eye(4)
{o} = self.doubled + {a}
{o} = F.linear({a}, self.linear.weight, bias=self.linear.bias)
{o} = {a} + {b}
{o} = {a} - {f}
{o} = {f} * {a}
{o} = {f} - {a} / 2
{o} = {i} + {a} // 2
{o} = {a} % 2 + {b} ** 2 * 0.01
{o} = -{a} + abs({b})
{o} = +{a}
{o} = torch.relu({a})
{o} = torch.add({a}, {b}, alpha={i})
{o} = torch.clamp({a}, min=-{f}, max={f})
{o} = F.gelu({a}) + F.dropout({b}, p=0.5, training=False)
{o} = F.layer_norm({a}, (4,))
{o} = torch.where({a} > {b}, {a}, {c})
{o} = ({a} <= {b}).to({a}.dtype) + ({a} != 0).float()
{o} = ~({a} > 0) & ({b} < 1) | ({a} == {b}) ^ ({a} >= 0); {o} = {o}.float()
{o} = {a}.relu().sigmoid()
{o} = {a}.sum(dim=-1, keepdim=True) + {b}
{o} = {a}.view({a}.size(0), -1)
{o} = {a}.reshape(*{a}.shape) if False else {a}.reshape({a}.shape[0], {a}.shape[1])
{o} = {a}.T.transpose(0, 1)
{o} = {a}[:, :2]; {o} = torch.cat([{o}, {b}[:, 2:]], dim=1)
{o} = {a}[..., [1, 0, 3, 2]]
{o} = {a}[None][0]
{o} = {a}[{i} : {i} + 1] + {b}
{o}, _ = torch.cat([{a}, {b}]).chunk(2)
{o}, (_, {o}) = {a}, torch.stack(({a}, {b}))
_, {o} = {a}, torch.max({a}, {b})
{o} = torch.stack([{a} for _ in range({i} + 1)]).sum(0)
{o} = sum([{a}, {b}], {c})
{o} = {a}; {o} = {o} + 1; {o} *= {b}; {o} -= {f}
{o} = {a}.clone(); {o}.add_({b}); {o} = {o}.mul_({f})
{o} = {a}.clone(); {o}[0] if False else None; {o} = torch.relu_({o})
{o} = blend({a}, [{b}, {c}])
{o} = blend({a}, ({b},), weights={{"w": {c}}}, by={f})
{o} = blend({a}, others=[])
{o} = blend(*[{a}, [{b}]], **{{"by": {i}}})
{o} = first_of(Pair({a}, {b}))
{o} = first_of([{a}, {{"k": ({b}, slice(0, {i}, None))}}])
{o} = first_of([torch.ones(3, 4), {a}])
{o} = plain({a})
{o} = plain({a}, {b}, {c}, scale={f})
{o} = plain({a}, y={b}, other={c})
{o} = (lambda t, k={f}: t * k)({a})
{o} = {{"k": [{a}, ({b}, {i})]}}["k"][1][0]
{o} = dict(p={a}, q={b})["q"] + Pair({a}, {c}).second
{o} = {a} + math.sqrt(2.0) + math.floor({f})
{o} = {a} * {a}.shape[-1] + {b}.size(0)
{o} = {a} / math.sqrt({a}.size(1))
{o} = {a} + torch.full((4,), {f}) + torch.tensor({f})
{o} = operator.add({a}, operator.getitem({b}, 0))
{o} = torch.zeros_like({a}) + torch.ones({a}.shape[0], 1)
{o} = getattr({a}, "relu")() + getattr({b}, "T").T
{o} = torch.nn.functional.softmax({a}.to(torch.float32), dim=-1)
{o} = torch.einsum("ij,kj->ik", {a}, {b}) @ {c}
{o} = list(map(torch.tanh, [{a}, {b}]))[{i} % 2]
{o} = {{k: v for k, v in zip("ab", ({a}, {b}))}}["a"]
{o} = [*({a}, {b})][-1]
{o} = torch.split({a}, 2, dim=-1)[0].repeat(1, 2)
{o} = torch.topk({a}, 4).values
{o} = {a} + len([{a}, {b}]) + isinstance({a}, int)
{o} = {a} if flag else {b}
{o} = {a} * n if n else {a}
{o} = {a} + (opts["u"] if opts else 0)
for _ in range(n): {a} = {a} + 1
if flag: {o} = {a} + 0.5
"""

RETURNS = """
return {a}
return {a}, {b}
return [{a}, ({b}, {c}), 1, None]
return {{"a": {a}, "b": [{b}], "n": n, "s": "text"}}
return Pair({a}, {b})
return {a}, self.weight, self.constant
return slice({a}, None, 2)
return self.linear({a}) + {b}
"""

# No None is fixed, and no part of a dict in a parameter with a default: the code that torch.fx
# writes for these cannot be traced again, or not be compiled.
INPUTS = [
    ("self, x, y, flag=True, n=2, opts=0", dict(flag=True, n=2, opts=0)),
    ("self, x, y=None, *, flag=False, n=1, opts=0", dict(flag=False, n=0, opts=0)),
    ("self, x: torch.Tensor, y: torch.Tensor = 1.5, flag: bool = True, n: int = 3, opts=()",
     dict(flag=True, n=1, opts=0)),
    ("self, x, y, flag, n, opts", dict(flag=True, n=1, opts={"u": 3})),
    ("self, x, y, flag, n, opts", dict(flag=False, n=3, opts={"u": "PH"})),
]  # fmt: skip


def lines_of(text):
    return [line for line in text.splitlines() if line]


def program(seed):
    """(source, concrete_args): "PH" in these stands for the library's PH."""
    rng = random.Random(seed)
    lines = []
    names = ["x"]

    def fill(line, target=None):
        chosen = {k: rng.choice(names[-4:]) for k in "abc"}
        return line.format(o=target, i=rng.randrange(3), f=rng.choice([0.5, 1.5, 2.0]), **chosen)

    for i in range(rng.randrange(3, 15)):
        lines.append(fill(rng.choice(lines_of(STATEMENTS)), f"v{i}"))
        if f"v{i}" in lines[-1] and not lines[-1].startswith(("if ", "for ")):
            names.append(f"v{i}")
    lines.append(fill(rng.choice(lines_of(RETURNS))))
    body = "\n".join(f"        {line}" for line in lines)
    signature, concrete = rng.choice(INPUTS)
    head = f"    def forward({signature}):"
    init = INIT.format(deep=rng.randrange(3))
    source = f"class Program(nn.Module):{init}\n{head}\n{body}\n"
    return source, concrete
