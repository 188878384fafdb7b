"""Random eager models that plans have something to do for: images, views, writes in place, joins.

    make(seed, family)   Model: the module, the source of its forward, and inputs(), new ones each
                         time: calls may write to them

A model is written line by line, and each line is run at once. So every line works, and later ones
are made for the sizes and strides that there are. Inputs are dense, or transposed, or parts of
something else. Functions are continuous, and values stay small: results can be compared however
they were rounded. There are no convolutions or products of more than a few thousand elements, so
that a model takes milliseconds.
"""
import linecache
import random
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

MOST = 50_000  # elements of a value
LARGEST = 1e3
SIZES = [1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33]
UNARY = ["torch.relu({})", "torch.sigmoid({})", "torch.tanh({})", "F.gelu({})", "F.silu({})",
         "F.gelu({}, approximate='tanh')", "F.hardswish({})", "F.relu6({})", "F.elu({})",
         "F.leaky_relu({}, 0.1)", "torch.clamp({}, -0.5, 0.7)", "torch.exp(-{}.abs())", "{} * 0.5",
         "1 - {}", "{} ** 2", "2.0 / ({}.abs() + 1)", "torch.sqrt({}.abs() + 1)", "{}.clone()",
         "{}.contiguous()", "F.dropout({}, 0.1, False)", "F.softmax({}, -1)", "torch.sin({})",
         "torch.where({0} > 0, {0}, {0} * 0.1)", "{}.double().float()"]
BINARY = ["{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "torch.lerp({}, {}, 0.3)",
          "torch.add({}, {}, alpha=0.5)", "torch.addcmul({0}, {0}, {1}, value=0.3)",
          "torch.addcmul({0}, {1}, {1}, value=0.3)", "{} / ({}.abs() + 1)"]
IN_PLACE = ["relu_()", "add_(0.5)", "mul_(0.5)", "sigmoid_()", "clamp_(-1, 1)", "neg_()"]
POOLS = ["F.max_pool2d({}, 3, 2, 1)", "F.max_pool2d({}, 2)", "F.avg_pool2d({}, 3, 1, 1)",
         "F.adaptive_avg_pool2d({}, 1)", "F.adaptive_avg_pool2d({}, (2, 3))", "{}.mean((2, 3))",
         "{}.mean((2, 3), keepdim=True)", "F.interpolate({}, scale_factor=2, mode='nearest')",
         "F.interpolate({}, size=(5, 7), mode='bilinear', align_corners=True)",
         "F.avg_pool2d({}, 3, 2, 1, count_include_pad=False)"]


class Writer:
    """A model that is being written: its lines, its values, and the module with its weights."""

    def __init__(self, rng):
        self.rng, self.lines, self.values, self.module = rng, [], {}, nn.Module()

    def evaluate(self, run, text):
        return run(text, {"torch": torch, "F": F}, {**self.values, "self": self.module})

    def assign(self, expression):
        """The name of a new value; None if there is no such value, or it is too large."""
        try:
            value = self.evaluate(eval, expression)
        except (RuntimeError, IndexError, ValueError):
            return None
        if not 0 < value.numel() <= MOST or not bool((value.abs() < LARGEST).all()):
            return None
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        self.values[name] = value
        return name

    def add(self, member):
        name = f"m{len(self.module._modules) + len(self.module._parameters)}"
        if isinstance(member, nn.Module):
            setattr(self.module, name, member.eval())
        else:
            setattr(self.module, name, nn.Parameter(member, requires_grad=False))
        return f"self.{name}"

    def pick(self, fits=lambda value: True):
        """A value, rather a recent one; None if there is none that fits."""
        names = [name for name, value in self.values.items() if fits(value)]
        recent = names[-4:] if self.rng.random() < 0.65 else names
        return self.rng.choice(recent) if recent else None

    # ---- lines

    def function(self):
        x = self.pick()
        if self.rng.random() < 0.5:
            return self.assign(self.rng.choice(UNARY).format(x))
        shape = self.values[x].shape
        if self.rng.random() < 0.25:
            y = self.add(torch.randn(shape[self.rng.randrange(len(shape) + 1):]))
        else:
            y = self.pick(lambda value: value.shape == shape) if self.rng.random() < 0.7 else None
            y = y or self.pick()
        return self.assign(self.rng.choice(BINARY).format(*self.rng.sample([x, y], 2)))

    def view(self):
        rng, x = self.rng, self.pick(lambda value: value.ndim > 0)
        n = self.values[x].ndim
        d = rng.randrange(n)
        size = self.values[x].shape[d]
        order = ", ".join(map(str, rng.sample(range(n), n)))
        part = ":, " * d + f"{rng.randrange(size)}::{rng.choice([1, 1, 2, 3])}"
        expanded = ", ".join(str(rng.choice([2, 3]) if s == 1 else -1)
                             for s in self.values[x].shape)
        return self.assign(rng.choice([
            f"{x}.permute({order})", f"{x}.transpose({d}, {rng.randrange(n)})", f"{x}[{part}]",
            f"{x}.unsqueeze({rng.randrange(n + 1)})" if n < 5 else f"{x}.squeeze()",
            f"{x}.flatten({d})", f"{x}.select({d}, {rng.randrange(size)})",
            f"{x}.chunk(2, {d})[{rng.randrange(2)}]", f"{x}.reshape({rng.choice([2, 3, 4])}, -1)",
            f"{x}.expand({expanded})", f"{x}.squeeze()", f"{x}.roll(1, {d})", f"{x}.flip({d})",
            f"{x}.contiguous(memory_format=torch.channels_last)" if n == 4 else f"{x}.mT",
        ]))

    def join(self):
        rng, x = self.rng, self.pick(lambda value: value.ndim > 0)
        shape = self.values[x].shape
        d = rng.randrange(len(shape))

        def fits(value):
            return (value.ndim == len(shape) and value.shape[:d] == shape[:d]
                    and value.shape[d + 1:] == shape[d + 1:])
        items = [x, *(self.pick(fits) for _ in range(rng.randrange(1, 4)))]
        borders = [rng.choice([0, 1, 2, 0, -1]) for _ in range(2 * rng.randint(1, len(shape)))]
        alike = self.pick(lambda value: value.shape == shape)
        return self.assign(rng.choice([
            f"torch.cat([{', '.join(items)}], {d})", f"torch.cat([{', '.join(items)}], {d})",
            f"torch.stack([{x}, {alike}], {rng.randrange(len(shape) + 1)})",
            f"F.pad({x}, {borders}, value={rng.choice([0.0, 1.5])})"]))

    def write(self):
        """In place, but not where elements share memory."""
        rng = self.rng
        y = self.pick(lambda value: all(s > 0 or n == 1
                                        for s, n in zip(value.stride(), value.shape)))
        if y is None:
            return None
        value = self.values[y]
        other = self.pick(lambda one: one.shape == value.shape)
        line = rng.choice([f"{y}.{rng.choice(IN_PLACE)}", f"{y}.{rng.choice(IN_PLACE)}",
                           f"{y}.copy_({other})", f"{y}.add_({other}, alpha=0.5)",
                           *([f"{y}[0] = 0.5", f"{y}[..., 0].add_(0.25)"] if value.ndim else [])])
        before = {name: one.clone() for name, one in self.values.items()}
        try:
            self.evaluate(exec, line)
        except RuntimeError:  # memory that overlaps
            for name, one in before.items():
                assert torch.equal(self.values[name], one)
            return None
        self.lines.append(line)
        return y

    def product(self):
        x = self.pick(lambda value: value.ndim > 0)
        k, n = self.values[x].shape[-1], self.rng.choice(SIZES)
        if self.rng.random() < 0.5:
            y = self.assign(f"{self.add(nn.Linear(k, n, bias=self.rng.random() < 0.7))}({x})")
        else:
            y = self.assign(f"{x} @ {self.add(torch.randn(k, n) * k ** -0.5)}")
        return self.rest(y)

    def convolution(self):
        rng, x = self.rng, self.pick(lambda value: value.ndim == 4)
        if x is None:
            return self.assign(f"{self.pick()}.reshape(1, 1, 1, -1)")
        channels = self.values[x].shape[1]
        groups = rng.choice([g for g in (1, 1, 1, 2, channels) if channels % g == 0])
        out = groups * rng.choice([1, 2, 3, 8])
        window = rng.choice([(1, 1), (3, 3), (3, 3), (5, 5), (1, 3), (2, 2)])
        y = self.assign(self.add(nn.Conv2d(
            channels, out, window, stride=rng.choice([1, 1, 2, (1, 2)]),
            padding=rng.choice([0, 1, window[0] // 2]), dilation=rng.choice([1, 1, 1, 2]),
            groups=groups, bias=rng.random() < 0.6)) + f"({x})")
        if y and rng.random() < 0.4:
            norm = nn.BatchNorm2d(out)
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
            y = self.assign(f"{self.add(norm)}({y})") or y
        return self.rest(y)

    def rest(self, y):
        """What a product or convolution may take over."""
        for _ in range(self.rng.randrange(3) if y else 0):
            other = self.pick(lambda value: value.shape == self.values[y].shape)
            y = self.assign(self.rng.choice([*UNARY[:10], *BINARY]).format(y, other)) or y
        return y

    def pool(self):
        x = self.pick(lambda value: value.ndim == 4)
        return x and self.assign(self.rng.choice(POOLS).format(x))


FAMILIES = {  # the first input's dimensions, and how often there is a line of each kind
    "images": (4, {"convolution": 5, "pool": 2, "function": 3, "view": 1, "join": 2, "product": 1}),
    "views": (None, {"function": 6, "view": 6, "product": 2, "join": 1}),
    "in_place": (None, {"function": 4, "view": 4, "write": 4, "convolution": 2, "join": 1}),
    "joins": (None, {"join": 5, "function": 4, "view": 2, "product": 1, "convolution": 1}),
}


def random_input(rng, ndim):
    """Of any layout."""
    if ndim == 4:
        shape = [rng.choice([1, 2]), rng.choice([1, 2, 3, 4, 8, 16, 17]), rng.randint(1, 12),
                 rng.randint(1, 12)]
    else:
        shape = [rng.choice(SIZES[:11]) for _ in range(ndim)]
    layout = rng.random()
    if ndim > 1 and layout < 0.1:
        return torch.randn(*shape[:-2], shape[-1], shape[-2]).mT
    if layout < 0.2:
        return torch.randn([2 * n for n in shape])[tuple(slice(0, None, 2) for _ in shape)]
    if ndim == 4 and layout < 0.4:
        return torch.randn(shape).contiguous(memory_format=torch.channels_last)
    if layout < 0.45:
        return torch.randn(1, *shape[1:]).expand(shape)
    if layout < 0.5:  # not aligned
        return torch.randn(torch.Size(shape).numel() + 1)[1:].view(shape)
    return torch.randn(shape)


@dataclass
class Model:
    seed: int
    ndims: list
    module: nn.Module
    source: str

    def inputs(self):
        rng = random.Random(self.seed)
        torch.manual_seed(self.seed)
        return [random_input(rng, n) for n in self.ndims]


@torch.no_grad()
def make(seed, family):
    first, kinds = FAMILIES[family]
    rng = random.Random(f"{family} {seed}")
    ndims = [first or rng.randint(1, 4), *(rng.randint(1, 4) for _ in range(rng.randrange(3)))]
    model = Model(seed, ndims, nn.Module(), "")
    writer = Writer(rng)
    writer.values = {f"x{i}": x for i, x in enumerate(model.inputs())}
    names = list(writer.values)
    for kind in rng.choices([*kinds], kinds.values(), k=rng.randint(3, 16)):
        getattr(writer, kind)()
    values = [*writer.values]
    results = [values[-1], *(rng.choice(values) for _ in range(rng.randrange(3)))]
    model.source = (f"def forward(self, {', '.join(names)}):\n"
                    + "".join(f"    {line}\n" for line in writer.lines)
                    + f"    return ({', '.join(results)},)\n")
    model.module = with_forward(writer.module, model.source, f"<model {family} {seed}>")
    return model


def with_forward(module, source, name):
    """A module with the same members, and this forward, whose lines can be read."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace = {"torch": torch, "F": F}
    exec(compile(source, name, "exec"), namespace)
    made = type("Random", (nn.Module,), {"forward": namespace["forward"]})()
    made.__dict__.update({key: module.__dict__[key] for key in ("_modules", "_parameters")})
    return made.eval()
