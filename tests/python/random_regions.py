"""Random programs with nested control flow over tensors, as a front end that reads Python makes
them: branches that give tuples, loops that carry tensors, numbers, lists and None, modules that are
called and parameters that are read inside.

    make(seed)      a GraphModule
    INPUTS          what it can be called with: tuples of arguments

Each value has a kind, a letter: t a tensor of 2 x 3, p a tensor that is true or false, i and f
numbers, b a bool, l a list of tensors, n a tensor or None. random_exec.interpret defines what the
program computes.
"""
import builtins
import math
import operator
import random

import cfx
import torch

NAMES = {"t": ["x", "h", "acc", "y"], "i": ["i", "n", "count"], "f": ["scale", "eps"],
         "b": ["flag", "done"], "l": ["out", "xs"], "n": ["maybe", "mask"]}  # fmt: skip
STATE = "ttttiiflbn"  # the kinds that are passed on, the common ones more often


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.layer = torch.nn.Linear(3, 3)
        self.blocks = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())
        self.weight = torch.nn.Parameter(torch.ones(2, 3))
        for tensor in self.parameters():
            tensor.data = torch.randn(tensor.shape, generator=generator) / 2


def _inputs():
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randn(2, 3, generator=generator) for _ in range(2))
    return [(x, y, 0, True), (y, x, 1, False), (x + 1, y - 1, 2, True), (y * 2, -x, 3, False)]


INPUTS = _inputs()

# target, kinds of the arguments, kind of the result; a str is a method
CALLS = [
    (torch.relu, "t", "t"), (operator.add, "tt", "t"), (operator.mul, "tf", "t"),
    (operator.sub, "tt", "t"), ("tanh", "t", "t"), (torch.maximum, "tt", "t"),
    ("sum", "t", "s"), (operator.add, "ti", "t"), (operator.neg, "t", "t"),
    (operator.add, "ii", "i"), (builtins.len, "l", "i"), (builtins.min, "ii", "i"),
    (builtins.max, "ii", "i"), (builtins.abs, "i", "i"), (operator.sub, "ii", "i"),
    (builtins.float, "i", "f"), (operator.truediv, "ii", "f"), (builtins.round, "f", "i"),
    (builtins.int, "f", "i"), (operator.lt, "ii", "b"), (operator.eq, "ii", "b"),
    (operator.not_, "b", "b"), (operator.and_, "bb", "b"), (operator.or_, "bb", "b"),
    (operator.gt, "ff", "b"), (builtins.bool, "i", "b"), (builtins.int, "b", "i"),
    (builtins.bool, "p", "b"), (operator.ge, "if", "b"), (math.floor, "f", "i"),
    (operator.add, "ll", "l"),
]  # fmt: skip


class Maker:
    def __init__(self, rng, depth):
        self.rng = rng
        self.depth = depth  # how deep regions may still nest
        self.graph = cfx.Graph()
        self.made = {kind: [] for kind in "tpifblns"}

    def keep(self, kind, node):
        self.made[kind].append(node)
        return node

    def call(self, target, *args):
        how = self.graph.call_method if isinstance(target, str) else self.graph.call_function
        return how(target, args)

    # ---- values

    def value(self, kind):
        known = self.made[kind]
        if known and self.rng.random() < 0.9:
            # what was made last is used most, as in a program
            return known[-1] if self.rng.random() < 0.4 else self.rng.choice(known)
        return getattr(self, f"new_{kind}")()

    def new_t(self):
        return self.keep("t", self.graph.get_attr(self.rng.choice(["weight", "weight"])))

    def new_i(self):
        return self.rng.randint(-1, 3)

    def new_f(self):
        return self.rng.choice([0.5, 2.0, -1.5, 0.0])

    def new_b(self):
        if not self.made["i"]:
            return self.rng.random() < 0.5
        return self.keep("b", self.call(operator.lt, self.value("i"), self.rng.randint(0, 2)))

    def new_l(self):
        return [self.value("t") for _ in range(self.rng.randint(0, 2))]

    def new_n(self):
        return self.value("t") if self.rng.random() < 0.5 else None

    def new_s(self):
        return self.keep("s", self.call("sum", self.value("t")))

    def new_p(self):
        return self.keep("p", self.call(operator.gt, self.value("s"), self.rng.choice([0.1, -1.0])))

    # ---- statements

    def plain(self):
        target, kinds, result = self.rng.choice(CALLS)
        args = [self.value(kind) for kind in kinds]
        if isinstance(args[0], cfx.Node) or not isinstance(target, str):
            self.keep(result, self.call(target, *args))

    def small(self):
        """A number that does not grow from turn to turn."""
        self.keep("i", self.call(operator.mod, self.value("i"), 5))

    def module(self):
        path = self.rng.choice(["layer", "blocks.0", "blocks.1"])
        self.keep("t", self.graph.call_module(path, (self.value("t"),)))

    def sizes(self):
        x = self.value("t")
        if self.rng.random() < 0.5:
            self.keep("i", self.call("size", x, self.rng.choice([0, 1, -1])))
        else:
            shape = self.call(getattr, x, "shape")
            self.keep("i", self.call(operator.getitem, shape, self.rng.choice([0, 1])))

    def append(self):
        self.keep("l", self.call(operator.add, self.value("l"), [self.value("t")]))

    def stack(self):
        full = self.call(operator.add, self.value("l"), [self.value("t")])
        self.keep("t", self.call(torch.sum, self.call(torch.stack, full), 0))

    def slice(self):
        part = self.rng.choice([slice(None, 2), slice(1, None), slice(None, None, 2)])
        self.keep("l", self.call(operator.getitem, self.value("l"), part))

    def is_none(self):
        target = self.rng.choice([operator.is_, operator.is_not])
        self.keep("b", self.call(target, self.value("n"), None))

    def contains(self):
        self.keep("b", self.call(operator.contains, (0, 1, 3), self.value("i")))

    def item(self):
        self.keep("b", self.call("item", self.value("p")))

    # ---- regions

    def region(self, names, kinds):
        maker = Maker(self.rng, self.depth - 1)
        return maker, [maker.keep(kind, maker.graph.placeholder(name))
                       for name, kind in zip(names, kinds)]  # fmt: skip

    def names(self, kinds):
        return [self.rng.choice(NAMES[kind]) for kind in kinds]

    def unpack(self, node, kinds):
        n = len(kinds)
        for i in self.rng.sample(range(n), self.rng.randint(min(1, n), n)):
            index = i if self.rng.random() < 0.9 else i - len(kinds)
            self.keep(kinds[i], self.call(operator.getitem, node, index))

    def result(self, inputs, kinds, kind):
        """What a branch gives: a new value, or an input as it is."""
        same = [x for x, k in zip(inputs, kinds) if k == kind]
        return self.rng.choice(same) if same and self.rng.random() < 0.4 else self.value(kind)

    def branch(self, names, kinds, results):
        maker, inputs = self.region(names, kinds)
        maker.statements(self.rng.choice([0, 1, 2, 3]))
        values = tuple(maker.result(inputs, kinds, kind) for kind in results)
        maker.graph.output(values[0] if self.single else values)
        return maker.graph

    def cond(self):
        kinds = self.rng.choices(STATE, k=self.rng.randint(0, 4))
        results = self.rng.choices(STATE, k=self.rng.randint(0, 3))
        self.single = len(results) == 1 and self.rng.random() < 0.6
        pred = self.value(self.rng.choice("bbp"))
        operands = tuple(self.value(kind) for kind in kinds)
        branches = [self.branch(self.names(kinds), kinds, results) for _ in range(2)]
        node = self.call(cfx.cond, pred, *branches, operands)
        if self.single:
            self.keep(results[0], node)
        else:
            self.unpack(node, results)

    def turn(self, maker, kinds, inputs):
        """The state after one turn; some of it is passed on, or changes places."""
        maker.statements(self.rng.choice([1, 2, 3]))
        return [maker.result(inputs, kinds, kind) if self.rng.random() < 0.3 else maker.value(kind)
                for kind in kinds]  # fmt: skip

    def for_loop(self):
        kinds = self.rng.choices(STATE, k=self.rng.randint(0, 4))
        body, (_, *inputs) = self.region(["i", *self.names(kinds)], ["i", *kinds])
        body.graph.output(tuple(self.turn(body, kinds, inputs)))
        count = self.rng.randint(0, 3)
        if self.rng.random() < 0.5:
            count = self.call(operator.mod, self.value("i"), 4)
        state = tuple(self.value(kind) for kind in kinds)
        self.unpack(self.call(cfx.for_loop, count, body.graph, state), kinds)

    def while_loop(self):
        kinds = ["i", *self.rng.choices(STATE, k=self.rng.randint(0, 3))]
        names = self.names(kinds)
        test, (i, *_) = self.region(names, kinds)
        if self.rng.random() < 0.3:
            i = test.call(operator.add, i, self.rng.randint(0, 1))
        below = test.call(operator.lt, i, self.rng.randint(1, 3))
        if self.rng.random() < 0.3:
            below = test.call(operator.and_, below, test.value("b"))
        test.graph.output(below)
        body, inputs = self.region(names, kinds)
        state = self.turn(body, kinds, inputs)
        body.graph.output((body.call(operator.add, inputs[0], 1), *state[1:]))
        start = (self.rng.randint(0, 1), *(self.value(kind) for kind in kinds[1:]))
        self.unpack(self.call(cfx.while_loop, test.graph, body.graph, start), kinds)

    def statements(self, n):
        kinds = [self.plain] * 6 + [self.small, self.module, self.sizes, self.append, self.stack,
                 self.slice, self.is_none, self.contains, self.item]  # fmt: skip
        if self.depth > 0:
            kinds += [self.cond, self.for_loop, self.while_loop, self.cond] * 2
        for _ in range(n):
            self.rng.choice(kinds)()

    def whole(self, size):
        for name, kind in (("x", "t"), ("y", "t"), ("n", "i"), ("flag", "b")):
            self.keep(kind, self.graph.placeholder(name))
        self.statements(size)
        results = [self.value(kind) for kind in self.rng.choices("ttiflbn", k=3)]
        self.graph.output(self.rng.choice([self.value("t"), tuple(results), results]))
        return cfx.GraphModule(Net(), self.graph)


def make(seed, size=6, depth=3):
    return Maker(random.Random(seed), depth).whole(size)
