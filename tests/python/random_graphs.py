"""Random programs against torch.fx's API: a seed gives a list of steps, any library runs them.

    program(7)                 the steps of seed 7, as plain data
    run(program(7), cfx)       performs them; the Runner has the graph
    run(program(7), torch.fx)  the same on the other library

A step is the name of a method of Runner and its arguments. Nodes are numbers there: the runner
takes the number modulo what is there when it gets to the step. So a program needs no knowledge of
the graph, and two libraries that behave alike arrive at the same graph.

    plain programs   make well-formed graphs that have an IR text, and edit them
    regions=True     adds cond, while_loop and for_loop, which only cfx has
    wild=True        adds what torch.fx allows and nobody should do: any order, any name, any object

As a script it prints how often everything occurs: random_graphs.py [SEEDS]
"""
import collections
import contextlib
import random
import sys

import cfx
import torch

from random_values import FUNCTIONS, MAX_NESTING, Ref, Region, Values, build

MAX_REGIONS = 2
CONTROL = (cfx.cond, cfx.while_loop, cfx.for_loop)
CALLS = ("call_function", "call_method", "call_module")
INPUTS = ["x", "y", "input", "for", "sum", "x_1", "self_", "*args", "**kwargs", "_", "torch"]
PATHS = ["weight", "layers.0.bias", "sub.mod", "fc1", "a.b.0", "lambda.1", "0"]
METHODS = ["relu", "add_", "view", "__getitem__", "size", "__add__"]
NAMES = [
    "tmp", "x", "x_1", "x_1_2", "add", "for", "sum", "self", "torch", "1a", "my value",
    "a-b", "_", "x_5", "out_0", "relu_007", "getattr_1", "\xe9t\xe9", "int", "NoneType",
    "math_sqrt",
]  # fmt: skip
EXACT = ["dup", "x", "a b", "1", "class", "d\xe9j\xe0", "len"]
FILES = ["model.py", "dir/my file.py", "a'b.py", "<stdin>"]


# ---- making programs ----


class Maker:
    """Draws the steps of one graph."""

    def __init__(self, rng, wild, regions):
        self.rng = rng
        self.wild = wild
        self.regions = regions  # how deep regions may still nest
        self.values = Values(rng, wild)
        self.tame = Values(rng)
        self.steps = []

    def add(self, step, *data):
        self.steps.append((step, *data))

    def number(self):
        return self.rng.randrange(1000)

    def chance(self, percent):
        return self.rng.randrange(100) < percent

    def name(self):
        return self.rng.choice(NAMES) if self.chance(25) else None

    def target(self, op):
        return self.rng.choice(
            {
                "placeholder": INPUTS,
                "get_attr": PATHS,
                "call_module": PATHS,
                "call_method": METHODS,
                "call_function": FUNCTIONS,
            }[op]
        )

    def place(self):
        """Where a node goes: at the end, or before or after one."""
        return (self.number(), self.chance(50)) if self.chance(20) else None

    def placeholder(self):
        default = (self.values.value(),) if self.chance(25) else ()
        self.add("placeholder", self.rng.choice(INPUTS), self.values.type(), default)

    def call(self, place=None):
        op = self.rng.choice(["get_attr", *CALLS, "call_function"])
        if self.wild and self.chance(10):
            op = "placeholder"
        args, kwargs = self.values.args(op == "call_method"), self.values.kwargs()
        if op in ("get_attr", "placeholder"):
            args, kwargs = (), {}
        target, name, type_ = self.target(op), self.name(), self.values.type()
        if name is None and op == "call_function":
            self.add("call_function", target, args, kwargs, type_, place)
        else:
            self.add("create_node", op, target, args, kwargs, name, type_, place)

    def region(self, inputs, results):
        maker = Maker(self.rng, False, self.regions - 1)
        maker.graph(inputs, self.rng.randrange(4), results)
        return Region(maker.steps)

    def control(self):
        function = self.rng.choice(CONTROL)
        n = self.rng.randrange(4)
        state = tuple(self.values.value(1) for _ in range(n))
        if function is cfx.cond:
            results = self.rng.choice([None, 0, 1, 2])
            args = (self.values.leaf(), self.region(n, results), self.region(n, results), state)
        elif function is cfx.while_loop:
            args = (self.region(n, None), self.region(n, n), state)
        else:
            args = (self.values.leaf(), self.region(n + 1, n), state)
        self.add("call_function", function, args, {}, None, None)

    def output(self, results=None):
        if results is not None:
            value = tuple(self.values.value(1) for _ in range(results))
        else:
            value = self.values.value()
            while self.regions and type(value) is tuple:  # it would say how many values there are
                value = self.values.value()
        self.add("output", value, self.values.type())

    def graph(self, inputs, calls, results=None):
        for _ in range(inputs):
            self.placeholder()
        for _ in range(calls):
            if self.regions > 0 and self.chance(15):
                self.control()
            else:
                self.call(self.place())
        if not self.wild or self.chance(90):
            self.output(results)

    def edit(self):
        n, values = self.number(), self.values
        kind = self.rng.choice(EDITS + WILD_EDITS if self.wild else EDITS)
        if kind == "insert":
            return self.call((n, self.chance(50)))
        data = {
            "move": lambda: (self.number(), self.chance(50)),
            "replace_uses": lambda: (Ref(self.number()), self.rng.choice([0, 1, 2])),
            "replace_input": lambda: (self.number(), Ref(self.number())),
            "args": lambda: (values.args(1),),
            "kwargs": lambda: (values.kwargs(),),
            "update_arg": lambda: (self.number(), values.value()),
            "insert_arg": lambda: (self.number(), self.tame.value()),
            "update_kwarg": lambda: (self.rng.choice(["dim", "alpha", "new"]), values.value()),
            "rename": lambda: (self.rng.choice(NAMES),),
            "type": lambda: (values.type(),),
            "target": lambda: ({op: self.target(op) for op in CALLS},),
            "locate": lambda: (self.rng.choice(FILES), self.number()),
            "meta": lambda: (values.leaf(),),
            "inline": lambda: (self.inlined(),),
            "exact_name": lambda: (self.rng.choice(EXACT),),
            "op": lambda: (self.rng.choice(CALLS),),
        }
        self.add(kind, n, *data.get(kind, tuple)())

    def inlined(self):
        maker = Maker(self.rng, self.wild, 0)
        maker.graph(1, 2)
        return maker.steps

    def program(self, size):
        self.graph(self.rng.randrange(4), self.rng.randrange(size + 1))
        for _ in range(self.rng.randrange(size + 1)):
            inside = self.regions and self.chance(20)
            if inside:
                self.add("descend", self.number())
            self.edit()
            if inside:
                self.add("ascend")
        return self.steps


EDITS = [
    "erase", "erase", "move", "move", "replace_uses", "replace_input", "args", "kwargs", "locate",
    "update_arg", "insert_arg", "update_kwarg", "rename", "type", "target", "meta", "node_copy",
    "inline", "insert", "insert", "dce",
]  # fmt: skip
WILD_EDITS = ["exact_name", "op", "output_args", "placeholder_args"]


def program(seed, *, regions=False, wild=False, size=10):
    return Maker(random.Random(seed), wild, MAX_REGIONS if regions else 0).program(size)


# ---- running them ----


class Runner:
    """Performs steps on the Graph of one library. Steps that would break a well-formed graph do
    nothing, unless the program is wild."""

    def __init__(self, fx, wild=False):
        self.fx = fx
        self.wild = wild
        self.graph = fx.Graph()
        self.stack = []

    def step(self, name, *data):
        getattr(self, name)(*data)

    # ---- looking around

    def nodes(self):
        return list(self.graph.nodes)

    def pick(self, number):
        nodes = self.nodes()
        return nodes[number % len(nodes)] if nodes else None

    def before(self, node):
        """The nodes that `node`, or a new one at its place, may use; None stands for the end."""
        nodes = self.nodes()
        if self.wild:
            return nodes
        return nodes[: nodes.index(node)] if node is not None else nodes

    def build(self, value, node=None):
        return build(value, self.before(node), lambda steps: run(steps, self.fx).graph)

    def is_free(self, node):
        """Whether its arguments may be anything."""
        if node is None or (node.op not in CALLS and not self.wild):
            return False
        return node.target not in CONTROL if node.op == "call_function" else True

    def limits(self, node=None):
        """The range of positions, each said by the index of the node behind it, that `node`, or a
        new call, may have."""
        nodes = self.nodes()
        index = {n: i for i, n in enumerate(nodes)}
        if self.wild:
            return nodes, 0, len(nodes)
        low = sum(n.op == "placeholder" for n in nodes)
        high = len(nodes) - (bool(nodes) and nodes[-1].op == "output")
        if node is not None:
            low = max([low, *(index[n] + 1 for n in node.all_input_nodes)])
            high = min([high, *(index[n] for n in node.users)])
        return nodes, low, high

    def creating(self, place):
        """A context manager for the place of a new call, and the node that comes behind it."""
        nodes, low, high = self.limits()
        number, after = place or (high - low, False)
        at = low + number % (high - low + 1)
        behind = nodes[at] if at < len(nodes) else None
        if after and at > 0:
            return self.graph.inserting_after(nodes[at - 1]), behind
        if behind is None:
            return contextlib.nullcontext(), None
        return self.graph.inserting_before(behind), behind

    # ---- creating

    def placeholder(self, name, type_, default):
        self.graph.placeholder(name, type_, *self.build(default))

    def create_node(self, op, target, args, kwargs, name, type_, place):
        context, behind = self.creating(place)
        args, kwargs = self.build(args, behind), self.build(kwargs, behind)
        with context:
            self.graph.create_node(op, target, args, kwargs, name, type_)

    def call_function(self, target, args, kwargs, type_, place):
        context, behind = self.creating(place)
        args, kwargs = self.build(args, behind), self.build(kwargs, behind)
        with context:
            self.graph.call_function(target, args, kwargs, type_)

    def output(self, value, type_):
        self.graph.output(self.build(value), type_)

    # ---- editing

    def erase(self, number):
        node = self.pick(number)
        needed = node is None or node.op == "output" or (node.op == "placeholder" and self.stack)
        if not needed and not node.users:
            self.graph.erase_node(node)

    def move(self, number, to, after):
        node = self.pick(number)
        if node is None or (node.op in ("placeholder", "output") and not self.wild):
            return
        nodes, low, high = self.limits(node)
        at = low + to % (high - low + 1)
        if after and at > 0:
            nodes[at - 1].append(node)
        elif at < len(nodes):
            nodes[at].prepend(node)

    def replace_uses(self, number, ref, which):
        node = self.pick(number)
        if node is None or node.op == "output":
            return
        pool = self.before(node) + [node] * (not self.wild)
        filters = [None, lambda user: len(user.name) % 2 == 0, lambda user: user.op in CALLS]
        node.replace_all_uses_with(pool[ref.number % len(pool)], filters[which])

    def replace_input(self, number, which, ref):
        node = self.pick(number)
        pool = self.before(node)
        if node is not None and node.all_input_nodes and pool:
            inputs = node.all_input_nodes
            node.replace_input_with(inputs[which % len(inputs)], pool[ref.number % len(pool)])

    def args(self, number, args):
        node = self.pick(number)
        if self.is_free(node):
            node.args = self.build(args, node)

    def kwargs(self, number, kwargs):
        node = self.pick(number)
        if self.is_free(node):
            node.kwargs = self.build(kwargs, node)

    def update_arg(self, number, index, value):
        node = self.pick(number)
        if self.is_free(node) and node.args:
            node.update_arg(index % len(node.args), self.build(value, node))

    def insert_arg(self, number, index, value):
        node = self.pick(number)
        if self.is_free(node):
            node.insert_arg(index % (len(node.args) + 1), self.build(value, node))

    def update_kwarg(self, number, key, value):
        node = self.pick(number)
        if self.is_free(node):
            node.update_kwarg(key, self.build(value, node))

    def output_args(self, number):
        for node in self.nodes():
            if node.op == "output":
                node.args = (self.build(Ref(number), node),)

    def placeholder_args(self, number):
        for node in self.nodes():
            if node.op == "placeholder":
                node.args = ([number],)

    def rename(self, number, name):
        node = self.pick(number)
        if node is not None:
            node._rename(name)

    def exact_name(self, number, name):
        node = self.pick(number)
        if node is not None:
            node.name = name

    def type(self, number, type_):
        node = self.pick(number)
        if node is not None:
            node.type = type_

    def target(self, number, targets):
        node = self.pick(number)
        if self.is_free(node) and node.op in targets:
            node.target = targets[node.op]

    def op(self, number, op):
        """call_method and call_module both have names as targets."""
        node = self.pick(number)
        if node is not None and node.op in ("call_method", "call_module") and "function" not in op:
            node.op = op

    def meta(self, number, value):
        node = self.pick(number)
        if node is not None:
            node.meta["note"] = self.build(value, node)

    def locate(self, number, file, line):
        node = self.pick(number)
        if hasattr(node, "_location"):  # cfx alone keeps it
            node._location = (file, line)

    def node_copy(self, number):
        node = self.pick(number)
        if not self.is_free(node):
            return
        with self.graph.inserting_after(node):
            self.graph.node_copy(node, lambda n: n)

    def inline(self, number, steps):
        other = run(steps, self.fx, self.wild).graph
        context, behind = self.creating((number, False))
        pool = self.before(behind)
        inputs = [n for n in other.nodes if n.op == "placeholder"]
        if not pool:
            return
        val_map = {n: pool[(number + i) % len(pool)] for i, n in enumerate(inputs)}
        with context:
            self.graph.graph_copy(other, val_map)

    def dce(self, number):
        def is_impure(node):
            return node.op in ("placeholder", "output") or len(node.name) % 3 == number % 3

        self.graph.eliminate_dead_code(is_impure)

    def descend(self, number):
        """Makes a region the graph to edit, if there is one."""
        self.stack.append(self.graph)
        graphs = [
            arg
            for node in self.nodes()
            if node.op == "call_function" and node.target in CONTROL
            for arg in node.args
            if isinstance(arg, self.fx.Graph)
        ]
        if graphs:
            self.graph = graphs[number % len(graphs)]

    def ascend(self):
        self.graph = self.stack.pop()


def run(steps, fx, wild=False, after=None):
    """Performs the steps; `after(runner)` is called behind each. Returns the Runner."""
    runner = Runner(fx, wild)
    for step in steps:
        runner.step(*step)
        if after is not None:
            after(runner)
    return runner


# ---- counting what they hold ----

KINDS = {
    type(None): "none", type(...): "ellipsis", bool: "bool", float: "float", str: "str",
    bytes: "bytes", torch.dtype: "dtype", torch.layout: "layout", torch.device: "device",
    torch.memory_format: "memory_format", complex: "complex", range: "range", set: "set",
    frozenset: "frozenset", tuple: "tuple", slice: "slice", cfx.immutable_list: "list",
    cfx.immutable_dict: "dict", cfx.Node: "node", cfx.Graph: "graph",
}  # fmt: skip
ALL_KINDS = {*KINDS.values(), "int", "bigint", "namedtuple", "host"}
OPCODES = ("placeholder", "get_attr", *CALLS, "output")


def kind_of(value):
    if type(value) is int:
        return "int" if -(2**63) <= value < 2**63 else "bigint"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "namedtuple"
    return KINDS.get(type(value), "host")


class Histogram:
    """How often each opcode, kind of value, depth of nesting and depth of regions occurs."""

    def __init__(self):
        self.counts = collections.defaultdict(collections.Counter)
        for op in OPCODES:
            self.counts["opcode"][op] = 0
        for kind in sorted(ALL_KINDS):
            self.counts["kind"][kind] = 0
        for depth in range(MAX_NESTING + 1):
            self.counts["nesting"][depth] = 0
        for depth in range(MAX_REGIONS + 1):
            self.counts["region"][depth] = 0

    def add(self, graph, region=0):
        for node in graph.nodes:
            self.counts["opcode"][node.op] += 1
            self.counts["region"][region] += 1
            for value in (*node.args, *node.kwargs.values()):
                self.add_value(value, 0, region)

    def add_value(self, value, nesting, region):
        kind = kind_of(value)
        self.counts["kind"][kind] += 1
        self.counts["nesting"][nesting] += 1
        if kind == "graph":
            self.add(value, region + 1)
        elif kind in ("list", "tuple", "namedtuple"):
            items = tuple(value)
        elif kind == "dict":
            items = tuple(value.values())
        else:
            items = (value.start, value.stop, value.step) if kind == "slice" else ()
        for item in () if kind == "graph" else items:
            self.add_value(item, nesting + 1, region)

    def rows(self):
        for what, counts in self.counts.items():
            whole = sum(counts.values())
            for name, count in counts.items():
                yield what, name, count, 100 * count / max(whole, 1)

    def rare(self):
        """What makes up less than one percent."""
        return [f"{what} {name}" for what, name, _, percent in self.rows() if percent < 1]

    def __str__(self):
        return "\n".join(
            f"{what:8} {name!s:14} {count:9} {percent:6.1f} %"
            for what, name, count, percent in self.rows()
        )


def main():
    histogram = Histogram()
    for seed in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1000):
        histogram.add(run(program(seed, regions=True), cfx).graph)
    print(histogram)
    return len(histogram.rare())


if __name__ == "__main__":
    sys.exit(main())
