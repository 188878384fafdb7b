"""Random GraphModules that run, and in which every pass of the table finds something to do.

    make(seed)      (GraphModule, inputs): new ones each time, as running may change them;
                    without writes=False something may be written to in place
    make_live(seed) likewise, in training or evaluation mode, with state and random numbers

Every tensor is float32 of shape (2, 4, 4, 4), so that any statement can follow any other. There are
operators in all their spellings, repeated calls, dead code, constants, dropout, convolutions before
batch norms, captured sub-modules, products with a common right-hand side, views, writes through
them, reshapes of reshapes, and regions.
"""
import operator
import random

import cfx
import torch
from torch import nn
from torch.nn import functional as F

SHAPE = (2, 4, 4, 4)
aten = torch.ops.aten

# The same operator, spelled: (opcode, target). A method has the name of one, a module a path.
UNARY = [
    [torch.relu, F.relu, ".relu", "act", aten.relu.default],
    [torch.neg, operator.neg, ".neg", aten.neg.default],
    [torch.sigmoid, ".sigmoid", aten.sigmoid.default],
    [torch.tanh, ".tanh", F.tanh],
    [torch.abs, ".abs", abs],
]
BINARY = [
    [torch.add, operator.add, ".add", aten.add.Tensor],
    [torch.mul, operator.mul, ".mul", aten.mul.Tensor],
    [torch.sub, operator.sub, ".sub", aten.sub.Tensor],
    [torch.maximum, ".maximum", aten.maximum.default],
]
IN_PLACE = [".relu_", ".neg_", ".sigmoid_", torch.relu_]
IN_PLACE_BINARY = [".add_", ".mul_", operator.iadd, operator.imul, ".sub_", aten.add_.Tensor]
# (target, further arguments by position, or by name)
CALLS = [
    (torch.clamp, (-1.0, 1.0), {"min": -1.0, "max": 1.0}),
    (".clamp", (-1.0, 1.0), {"min": -1.0, "max": 1.0}),
    (torch.softmax, (-1,), {"dim": -1}),
    (F.softmax, (-1,), {"dim": -1}),
    (F.leaky_relu, (0.2,), {"negative_slope": 0.2}),
    (F.gelu, (), {"approximate": "tanh"}),
    (torch.roll, (1, 2), {"shifts": 1, "dims": 2}),
    (torch.flip, ([1],), {"dims": [1]}),
    (".softmax", (-1,), {"dim": -1}),
]
VIEWS = [
    (".transpose", (2, 3)), (torch.transpose, (2, 3)), (".view", SHAPE), (".reshape", SHAPE),
    (".permute", (0, 1, 3, 2)), (aten.view.default, (SHAPE,)), (".contiguous", ()),
]  # fmt: skip

# Several in a row, which end in the sizes they began with.
CHAINS = [
    [(".reshape", (2, -1)), (".flatten", ()), (".reshape", SHAPE)],
    [(".reshape", (2, 4, 2, 8)), (".view", (2, 4, 16)), (torch.reshape, (SHAPE,))],
    [(torch.reshape, ((8, 4, 4),)), (torch.ravel, ()), (aten.view.default, (SHAPE,))],
    [(".unsqueeze", (1,)), (torch.reshape, (SHAPE,))],
    [(".transpose", (1, 2)), (torch.transpose, (2, 1))],
    [(".permute", (1, 2, -1, 0)), (torch.permute, ((3, 0, 1, 2),))],
    [(".transpose", (1, 2)), (".contiguous", ()), (".contiguous", ()), (".view", SHAPE)],
]  # fmt: skip


class Inner(nn.Module):
    """Captured, to be a GraphModule inside the other."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 1)
        self.scale = nn.Parameter(torch.full((4, 1, 1), 0.5))

    def forward(self, x):
        return torch.relu(self.conv(x)) * self.scale


class Counter(nn.Module):
    """A class that cfx knows nothing about, with a buffer that it writes to and a plain counter."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.calls = 0

    def forward(self, x):
        self.count += 1
        self.calls += 1
        return x * 0.5 + self.count * 0.01 * self.calls


class Attention(nn.Module):
    """Likewise, with a known child that draws random numbers in training."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, dropout=0.3, batch_first=True)

    def forward(self, x):
        rows = x.reshape(2, 16, 4)
        return self.attention(rows, rows, rows, need_weights=False)[0].reshape(SHAPE)


def bump(x):
    """A function that cfx knows nothing about, and that writes to what it is given."""
    x.mul_(0.5)
    return x + 1


def noise(x):
    return x + torch.rand(SHAPE)


class Live(nn.Module):
    """What `make_live` adds to a Root: state and random numbers."""

    def __init__(self):
        super().__init__()
        self.norm, self.twin = nn.BatchNorm2d(4), nn.BatchNorm2d(4, momentum=None)
        self.twin.running_mean = self.norm.running_mean  # one memory
        self.instance = nn.InstanceNorm2d(4, track_running_stats=True)
        self.free = nn.BatchNorm2d(4, track_running_stats=False)
        self.drop, self.zero, self.planes = nn.Dropout(0.3), nn.Dropout(0.0), nn.Dropout2d(0.3)
        self.alpha, self.rrelu = nn.AlphaDropout(0.3), nn.RReLU()
        self.fractional = nn.FractionalMaxPool2d(1, output_size=(4, 4))
        self.block = nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.Dropout(0.2))
        self.traced = cfx.symbolic_trace(lambda x: F.dropout(torch.relu(x), 0.2, True))
        self.counter, self.attention = Counter(), Attention()


class Root(nn.Module):
    def __init__(self):
        super().__init__()
        self.act, self.drop = nn.ReLU(), nn.Dropout(0.5)
        self.act_ = nn.ReLU(inplace=True)
        for i in range(4):
            setattr(self, f"conv{i}", nn.Conv2d(4, 4, 3, padding=1, bias=i != 1))
            setattr(self, f"bn{i}", nn.BatchNorm2d(4))
        self.weight = nn.Parameter(torch.randn(4, 4, 3, 3) * 0.1)
        self.right = nn.Parameter(torch.randn(4, 4) * 0.3)
        self.full = nn.Parameter(torch.randn(SHAPE) * 0.5)
        self.register_buffer("mean", torch.randn(4) * 0.1)
        self.register_buffer("var", torch.rand(4) + 0.5)
        self.register_buffer("shift", torch.randn(SHAPE))
        self.inner = cfx.symbolic_trace(Inner())


class Maker:
    def __init__(self, rng, regions=1, writes=True, live=None):
        self.rng, self.regions, self.writes, self.live = rng, regions, writes, live
        self.graph = cfx.Graph()
        self.made = []
        self.calls = []  # to be made again
        self.layers = [0, 1, 2, 3]

    def pick(self):
        """Mostly one of the last: long chains."""
        last = self.rng.random() < 0.7
        return self.rng.choice(self.made[-3:] if last else self.made)

    def call(self, target, args, kwargs=None):
        self.calls.append((target, args, kwargs))
        if not isinstance(target, str):
            node = self.graph.call_function(target, args, kwargs)
        elif target[0] == ".":
            node = self.graph.call_method(target[1:], args, kwargs)
        else:
            node = self.graph.call_module(target, args, kwargs)
        self.made.append(node)
        return node

    # ---- one statement each

    def unary(self):
        self.call(self.rng.choice(self.rng.choice(UNARY)), (self.pick(),))

    def binary(self):
        target = self.rng.choice(self.rng.choice(BINARY))
        other = self.pick() if self.rng.random() < 0.8 or target in BINARY[3] else 0.5
        kwargs = {}
        if target in (torch.add, ".add") and self.rng.random() < 0.4:
            kwargs = {"alpha": 2}
        self.call(target, (self.pick(), other), kwargs)

    def by_name(self):
        target = self.rng.choice([torch.add, torch.mul, torch.sub])
        names = ["input", "other"] if self.rng.random() < 0.7 else ["other", "input"]
        self.call(target, (), {name: self.pick() for name in names})

    def arguments(self):
        target, args, kwargs = self.rng.choice(CALLS)
        if self.rng.random() < 0.5:
            args, kwargs = (), kwargs
        else:
            kwargs = {}
        self.call(target, (self.pick(), *args), kwargs)

    def again(self):
        if self.calls:
            self.call(*self.rng.choice(self.calls))

    def dead(self):
        known = len(self.made)
        self.unary()
        del self.made[known:]

    def attribute(self):
        self.made.append(self.graph.get_attr(self.rng.choice(["full", "shift"])))

    def constant(self):
        target, args = self.rng.choice(
            [(torch.ones, (SHAPE,)), (torch.full, (SHAPE, 0.25)), (torch.zeros, SHAPE)])
        node = self.call(target, args)
        if self.rng.random() < 0.5:
            self.call(torch.add, (node, self.graph.get_attr("shift")))

    def known(self):
        """What can be computed before the module runs."""
        node = self.graph.get_attr(self.rng.choice(["full", "shift"]))
        for _ in range(self.rng.randrange(1, 3)):
            node = self.call(self.rng.choice([torch.neg, torch.tanh, ".abs"]), (node,))

    def passing(self):
        """Something that is used once only, by something that could be written over it."""
        node = self.fresh()
        self.made.pop()
        self.call(self.rng.choice([torch.relu, ".neg", operator.neg, F.leaky_relu]), (node,))
        self.calls.pop()

    def dropout(self):
        self.rng.choice([
            lambda: self.call("drop", (self.pick(),)),
            lambda: self.call(F.dropout, (self.pick(), 0.5, False)),
            lambda: self.call(F.dropout, (self.pick(),), {"training": False}),
        ])()  # fmt: skip

    def conv_bn(self):
        """A pair of modules is used once: otherwise it could not be fused."""
        if not self.layers:
            return
        i = self.layers.pop(self.rng.randrange(len(self.layers)))
        x = self.call(f"conv{i}", (self.pick(),))
        if self.rng.random() < 0.2:
            x = self.call(torch.relu, (x,))
        self.call(f"bn{i}", (x,))

    def functional_bn(self):
        weight, mean, var = map(self.graph.get_attr, ("weight", "mean", "var"))
        x = self.call(F.conv2d, (self.pick(), weight), {"padding": 1})
        self.call(F.batch_norm, (x, mean, var))

    def products(self):
        right = self.graph.get_attr("right")
        for _ in range(2):
            self.call(self.rng.choice([torch.matmul] * 3 + [operator.matmul]), (self.pick(), right))

    def inner(self):
        self.call("inner", (self.pick(),))

    def fresh(self):
        """Something that nothing else shares memory with."""
        return self.call(self.rng.choice([".clone", torch.exp, torch.relu]), (self.pick(),))

    def in_place(self):
        x = self.fresh() if self.rng.random() < 0.6 else self.pick()
        if self.rng.random() < 0.3:
            target, args = self.rng.choice(VIEWS)
            x = self.call(target, (x, *args))
        how = self.rng.random()
        if how < 0.4:
            self.call(self.rng.choice(IN_PLACE), (x,))
        elif how < 0.8:
            self.call(self.rng.choice(IN_PLACE_BINARY), (x, self.pick()))
        elif how < 0.9:
            self.call(F.relu, (x,), {"inplace": True})
        else:
            self.call("act_", (x,))

    def view(self):
        target, args = self.rng.choice(VIEWS)
        self.call(target, (self.pick(), *args))

    def chain(self):
        x = self.pick()
        for target, args in self.rng.choice(CHAINS):
            x = self.call(target, (x, *args))
            self.made.pop()
            self.calls.pop()
        self.made.append(x)

    def parts(self):
        halves = self.graph.call_function(torch.chunk, (self.pick(), 2), {"dim": 1})
        halves = [self.graph.call_function(operator.getitem, (halves, i)) for i in range(2)]
        if self.writes and self.rng.random() < 0.3:
            self.graph.call_method("mul_", (halves[0], 2.0))
        self.call(torch.cat, (halves,), {"dim": 1})

    def cond(self):
        operands = (self.pick(), self.pick())
        regions = []
        for _ in range(2):
            inner = Maker(self.rng, self.regions - 1, self.writes, self.live)
            inner.made = [inner.graph.placeholder(f"a{i}") for i in range(2)]
            inner.layers = []
            inner.statements(self.rng.randrange(4))
            if self.rng.random() < 0.5:
                inner.attribute()
            inner.graph.output(inner.made[-1])
            regions.append(inner.graph)
        self.call(cfx.cond, (self.rng.random() < 0.5, *regions, operands))
        self.calls.pop()  # a region has one place

    def loop(self):
        """A state that changes, one that never does, and what depends on that one alone."""
        inner = Maker(self.rng, self.regions - 1, self.writes, self.live)
        inner.graph.placeholder("i")
        state, kept = inner.made = [inner.graph.placeholder(name) for name in ("s", "k")]
        inner.layers = []
        still = inner.graph.call_function(torch.tanh, (kept,))
        inner.statements(self.rng.randrange(3))
        turn = inner.graph.call_function(torch.add, (inner.made[-1], still))
        inner.graph.output((turn, kept))
        args = (self.rng.randrange(1, 4), inner.graph, (self.pick(), self.pick()))
        loop = self.graph.call_function(cfx.for_loop, args)
        self.call(operator.getitem, (loop, 0))
        self.calls.pop()  # a region has one place

    # ---- state and random numbers

    def norm(self):
        """The same few again and again, some with a memory in common."""
        path = self.rng.choice(["norm", "norm", "twin", "instance", "free", "block"])
        self.maybe_dead(f"live.{path}", (self.pick(),))

    def statistic(self):
        """What a norm has written, or will write; also computed from it alone."""
        path = self.rng.choice(["norm.running_mean", "twin.running_mean", "norm.running_var",
                                "instance.running_mean", "block.1.running_mean",
                                "norm.num_batches_tracked"])
        node = self.graph.get_attr(f"live.{path}")
        if self.rng.random() < 0.5:
            node = self.graph.call_function(self.rng.choice([torch.neg, torch.abs]), (node,))
        self.call(torch.add, (self.pick(), node))
        self.calls.pop()

    def random_module(self):
        path = self.rng.choice(["drop", "zero", "planes", "alpha", "rrelu", "fractional", "traced"])
        self.maybe_dead(f"live.{path}", (self.pick(),))

    def random_function(self):
        x = self.pick()
        target, args, kwargs = self.rng.choice([
            (F.dropout, (x, 0.3, True), {}), (F.dropout, (x,), {"p": 0.3}),
            (torch.rand_like, (x,), {}), (".bernoulli", (x, 0.5), {}),
            (F.rrelu, (x,), {"training": True}), (F.gumbel_softmax, (x,), {}),
            (F.alpha_dropout, (x, 0.3, True), {}), (F.dropout2d, (x, 0.3, True), {}),
            (F.feature_alpha_dropout, (x, 0.3, True), {}),
            (F.scaled_dot_product_attention, (x, x, x), {"dropout_p": 0.3}),
            (torch.randn, (SHAPE,), {}), (aten.rand_like.default, (x,), {}),
        ])  # fmt: skip
        self.maybe_dead(target, args, kwargs)

    def functional_norm(self):
        mean, var = map(self.graph.get_attr, ("mean", "var"))
        self.maybe_dead(F.batch_norm, (self.pick(), mean, var), {"training": True})

    def unknown(self):
        """What cfx knows nothing about, and must take for impure under strict=True."""
        x = self.fresh() if self.rng.random() < 0.7 else self.pick()
        target = self.rng.choice(["live.counter", "live.attention", bump, noise])
        self.maybe_dead(target, (x,))

    def maybe_dead(self, target, args, kwargs=None):
        node = self.call(target, args, kwargs)
        if self.rng.random() < 0.4:
            self.made.remove(node)

    def statements(self, n):
        kinds = [
            self.unary, self.unary, self.binary, self.binary, self.by_name, self.arguments,
            self.again, self.again, self.dead, self.attribute, self.constant, self.known,
            self.passing, self.dropout,
            self.conv_bn, self.conv_bn, self.functional_bn, self.products, self.inner,
            self.view, self.chain, self.parts,
        ]  # fmt: skip
        if self.writes:
            kinds += [self.in_place] * 3
        if self.regions:
            kinds += [self.cond, self.loop]
        if self.live:
            kinds += [self.norm, self.norm, self.statistic, self.statistic, self.random_module,
                      self.random_function, self.random_function, self.functional_norm]
        if self.live == "strict":
            kinds += [self.unknown, self.unknown]
        for _ in range(n):
            self.rng.choice(kinds)()


def make_live(seed, size=14, writes=True, strict=False):
    """In training mode for odd seeds; with `strict`, things that cfx knows nothing about."""
    gm, inputs = make(seed, size, writes, "strict" if strict else "known")
    return gm.train(seed % 2 == 1), inputs


def make(seed, size=14, writes=True, live=None):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    maker = Maker(rng, writes=writes, live=live)
    inputs = [torch.randn(SHAPE) for _ in range(rng.randrange(1, 4))]
    maker.made = [maker.graph.placeholder(f"x{i}") for i in range(len(inputs))]
    maker.statements(rng.randrange(4, size))
    results = rng.sample(maker.made, min(len(maker.made), rng.randrange(1, 4)))
    maker.graph.output(rng.choice([results[0], tuple(results), {"r": results}]))
    for line, node in enumerate(maker.graph.nodes, 1):
        if line % 3:
            node._location = ("module.py", line)
    root = Root()
    if live:
        root.live = Live()
    for module in root.modules():
        if isinstance(module, nn.BatchNorm2d) and module.running_mean is not None:
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 2)
    return cfx.GraphModule(root.eval(), maker.graph), inputs
