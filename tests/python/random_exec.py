"""Random graphs that can be run: numbers, small tensors, functions, methods, modules, regions.

    make(seed)      (graph, root module, inputs): new ones each time, as running may change them

What is made has a kind: "num" (int or float), "bool", "tensor" (two elements) or "tuple" (of two
numbers). Some graphs raise when they run (division by zero, an overflow); both ways to run them
must then raise the same.
"""
import builtins
import math
import operator
import random

import cfx
import torch

NUMBERS = [0, 1, -1, 3, 10**20, 0.5, -0.0, -2.5, 1e300, math.inf, -math.inf, math.nan]
# Not "self": as in torch.fx, a node of that name hides the module in generated code.
NAMES = ["x", "x_1", "for", "len", "torch", "add", "random_exec_total", "_", "getattr_1", "range"]
MAX_REGIONS = 2


def total(tree):
    """The sum of the numbers in nested containers."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, slice):
        tree = (tree.start or 0, tree.stop or 0, tree.step or 0)
    return sum(map(total, tree)) if isinstance(tree, (list, tuple)) else tree


def pair(a, *, b=1):
    return a, b


def clip(x):
    """A number that can be an exponent."""
    return 0 if x != x else int(max(-3, min(3, x)))


class Scale(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x, *, plus=0):
        return x * self.factor + plus


class Root(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.tensor([1.5, -2.0]))
        self.bias = -3
        self.act = torch.nn.ReLU()
        self.layers = torch.nn.ModuleList([Scale(2), Scale(0.5)])


# target, kinds of the arguments, kind of the result
FUNCTIONS = [
    (operator.add, "num num", "num"), (operator.sub, "num num", "num"),
    (operator.mul, "num num", "num"), (operator.neg, "num", "num"),
    (operator.truediv, "num num", "num"), (operator.floordiv, "num num", "num"),
    (operator.mod, "num num", "num"), (operator.pos, "num", "num"), (builtins.abs, "num", "num"),
    (builtins.max, "num num", "num"), (clip, "num", "num"), (math.floor, "num", "num"),
    (operator.lt, "num num", "bool"), (operator.eq, "num num", "bool"),
    (operator.not_, "bool", "bool"), (operator.and_, "bool bool", "bool"),
    (math.isnan, "num", "bool"), (pair, "num", "tuple"), (builtins.divmod, "num num", "tuple"),
    (torch.relu, "tensor", "tensor"), (torch.add, "tensor tensor", "tensor"),
    (torch.maximum, "tensor tensor", "tensor"), (operator.mul, "tensor num", "tensor"),
    (operator.add, "tensor tensor", "tensor"), (operator.iadd, "tensor tensor", "tensor"),
    (operator.imul, "tensor tensor", "tensor"), (torch.nn.functional.relu, "tensor", "tensor"),
    (torch.ops.aten.neg.default, "tensor", "tensor"),
]  # fmt: skip
METHODS = [
    ("relu", "tensor", "tensor"), ("add", "tensor num", "tensor"), ("clone", "tensor", "tensor"),
    ("add_", "tensor tensor", "tensor"), ("tolist", "tensor", "tuple"),
    ("conjugate", "num", "num"), ("index", "tuple num", "num"),
]  # fmt: skip


class Maker:
    def __init__(self, rng, regions=MAX_REGIONS):
        self.rng = rng
        self.regions = regions  # how deep regions may still nest
        self.graph = cfx.Graph()
        self.made = {"num": [], "bool": [], "tensor": [], "tuple": []}

    def keep(self, kind, node):
        self.made[kind].append(node)
        if self.rng.random() < 0.1:
            node._rename(self.rng.choice(NAMES))
        return node

    def constant(self, kind):
        if kind == "num":
            return self.rng.choice(NUMBERS)
        if kind == "bool":
            return self.rng.random() < 0.5
        return (self.rng.choice(NUMBERS), self.value("num"))

    def value(self, kind):
        known = self.made[kind]
        if known and self.rng.random() < 0.85:
            return self.rng.choice(known)
        if kind == "tensor":
            return self.keep("tensor", self.graph.get_attr("weight"))
        return self.constant(kind)

    def values(self, kinds):
        return tuple(self.value(kind) for kind in kinds.split())

    # ---- one statement each

    def call_function(self):
        target, kinds, result = self.rng.choice(FUNCTIONS)
        args, kwargs = self.values(kinds), {}
        if target is pair and self.rng.random() < 0.5:
            kwargs = {"b": self.value("num")}
        if target is torch.add and self.rng.random() < 0.5:
            kwargs = {"alpha": 2}
        self.keep(result, self.graph.call_function(target, args, kwargs))

    def call_method(self):
        target, kinds, result = self.rng.choice(METHODS)
        args = self.values(kinds)
        if isinstance(args[0], cfx.Node):  # a method of a constant is no matter of interest here
            self.keep(result, self.graph.call_method(target, args))

    def call_module(self):
        kind = self.rng.choice(["num", "tensor"])
        target = self.rng.choice(["layers.0", "layers.1", "act"])
        if target == "act":
            return self.keep("tensor", self.graph.call_module(target, self.values("tensor")))
        kwargs = {"plus": self.value("num")} if self.rng.random() < 0.3 else {}
        return self.keep(kind, self.graph.call_module(target, (self.value(kind),), kwargs))

    def get_attr(self):
        self.keep("num", self.graph.get_attr("bias"))

    def getitem(self):
        index = self.rng.choice([0, 1, -1]) if self.rng.random() < 0.95 else 5
        self.keep("num", self.graph.call_function(operator.getitem, (self.value("tuple"), index)))

    def power(self):
        exponent = self.graph.call_function(clip, self.values("num"))
        base = self.rng.choice([-2, 2, 0.5, -0.5, self.value("num")])
        if isinstance(base, cfx.Node):
            base = self.graph.call_function(clip, (base,))
        self.keep("num", self.graph.call_function(operator.pow, (base, exponent)))

    def attribute(self):
        node = self.value("num")
        if isinstance(node, cfx.Node):
            self.keep("num", self.graph.call_function(getattr, (node, "real")))

    def nested(self):
        a, b, c = self.values("num num num")
        tree = self.rng.choice([[a, (b, c)], {"k": a, 1: [b]}, (a, slice(b, None, c)), [], (a,)])
        self.keep("num", self.graph.call_function(total, (tree,)))

    # ---- regions

    def region(self, kinds, results, fill=True):
        """A region that takes these kinds and returns those, as a tuple unless it is one name."""
        maker = Maker(self.rng, self.regions - 1)
        inputs = [maker.keep(k, maker.graph.placeholder(f"a{i}")) for i, k in enumerate(kinds)]
        if fill:
            maker.statements(self.rng.randrange(4))
        if isinstance(results, str):
            maker.graph.output(maker.value(results))
        elif fill:
            maker.graph.output(tuple(maker.value(k) for k in results))
        return maker, inputs

    def cond(self):
        kinds = self.rng.choices(["num", "tensor"], k=self.rng.randrange(3))
        operands = tuple(self.value(k) for k in kinds)
        result = self.rng.choice(["num", "tensor"])
        regions = [self.region(kinds, result)[0].graph for _ in range(2)]
        args = (self.value("bool"), *regions, operands)
        self.keep(result, self.graph.call_function(cfx.cond, args))

    def while_loop(self):
        """Counts to three or so; the test may be more than a comparison."""
        test, (i, _) = self.region(["num", "num"], (), fill=False)
        below = test.graph.call_function(operator.lt, (i, self.rng.randrange(4)))
        if self.rng.random() < 0.5:
            below = test.graph.call_function(operator.and_, (below, True))
        test.graph.output(below)
        body, (i, acc) = self.region(["num", "num"], (), fill=False)
        body.statements(self.rng.randrange(4))
        step = body.graph.call_function(operator.add, (i, 1))
        body.graph.output((step, body.rng.choice([acc, i, body.value("num")])))
        state = (self.rng.choice([0, 1]), self.value("num"))
        args = (test.graph, body.graph, state)
        self.keep("tuple", self.graph.call_function(cfx.while_loop, args))

    def for_loop(self):
        body, _ = self.region(["num", "num", "num"], ("num", "num"))
        state = self.values("num num")
        args = (self.rng.randrange(4), body.graph, state)
        self.keep("tuple", self.graph.call_function(cfx.for_loop, args))

    def statements(self, n):
        kinds = [
            self.call_function, self.call_function, self.call_function, self.call_method,
            self.call_module, self.get_attr, self.getitem, self.power, self.attribute, self.nested,
        ]  # fmt: skip
        if self.regions > 0:
            kinds += [self.cond, self.while_loop, self.for_loop]
        for _ in range(n):
            self.rng.choice(kinds)()

    # ---- the whole

    def inputs(self):
        inputs = []
        for i in range(self.rng.randrange(4)):
            kind = self.rng.choice(["num", "num", "bool", "tensor"])
            self.keep(kind, self.graph.placeholder(f"in{i}"))
            inputs.append(self.tensor() if kind == "tensor" else self.constant_input(kind))
        if self.rng.random() < 0.2:
            self.keep("num", self.graph.placeholder("given", default_value=self.constant("num")))
        return inputs

    def constant_input(self, kind):
        return self.rng.choice(NUMBERS) if kind == "num" else self.rng.random() < 0.5

    def tensor(self):
        return torch.tensor([self.rng.choice([0.0, 1.5, -2.0, math.inf, math.nan]), -1.0])

    def make(self, size):
        inputs = self.inputs()
        self.statements(self.rng.randrange(size + 1))
        kinds = self.rng.choices(["num", "tensor", "bool", "tuple"], k=self.rng.randrange(1, 4))
        out = [self.value(k) for k in kinds]
        self.graph.output(self.rng.choice([out[0], out, tuple(out), {"r": out}]))
        return self.graph, Root(), inputs


def make(seed, size=12):
    return Maker(random.Random(seed)).make(size)


# ---- running one node at a time ----


def _attribute(root, path):
    for part in path.split("."):
        root = getattr(root, part)
    return root


def _regions(target, args, root):
    """What cond, while_loop and for_loop give, their regions run by `interpret`."""
    if target is cfx.cond:
        pred, then, otherwise, operands = args
        return interpret(then if pred else otherwise, root, operands)
    first, body, state = args
    state = tuple(state)
    if target is cfx.while_loop:
        while interpret(first, root, state):
            state = tuple(interpret(body, root, state))
    else:
        for i in range(first):
            state = tuple(interpret(body, root, (i, *state)))
    return state


def interpret(graph, root, inputs):
    """The output of the graph: the definition that generated code is compared with."""
    env = {}
    inputs = iter(inputs)
    for node in graph.nodes:
        args, kwargs = cfx.map_arg((node.args, node.kwargs), env.__getitem__)
        if node.op == "placeholder":
            env[node] = next(inputs, args[0] if args else None)
        elif node.op == "output":
            return args[0]
        elif node.op == "get_attr":
            env[node] = _attribute(root, node.target)
        elif node.op == "call_method":
            env[node] = getattr(args[0], node.target)(*args[1:], **kwargs)
        elif node.op == "call_module":
            env[node] = _attribute(root, node.target)(*args, **kwargs)
        elif node.target in (cfx.cond, cfx.while_loop, cfx.for_loop):
            env[node] = _regions(node.target, args, root)
        else:
            env[node] = node.target(*args, **kwargs)
    return None


def image(value):
    """A text that two values share only if they are the same to the last bit."""
    if isinstance(value, torch.Tensor):
        bits = value.numpy(force=True).tobytes().hex()
        return f"tensor {value.dtype} {tuple(value.shape)} {bits}"
    if isinstance(value, (list, tuple)):
        brackets = "[]" if isinstance(value, list) else "()"
        return brackets[0] + ", ".join(map(image, value)) + brackets[1]
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {image(v)}" for k, v in value.items()) + "}"
    return f"{type(value).__name__} {value!r}"
