"""Random programs with control flow that depends on data: source, the same for the same seed.

`program(x, y, n)` takes two float tensors of one size and an int. All numbers in tensors are small
multiples of an eighth, so that they are the same in whatever order they are added. A loop ends
after few rounds. A name is read where it is bound on every way; now and then where it may
not be.

`hostile(seed)` adds deques, iterators, contexts, handlers, changes through functions, and, for half
of the seeds, a module with buffers, settings and self.training: `program` is its class then.
"""
import random

HEADER = """import bisect
import collections
import contextlib
import dataclasses
import heapq
import itertools
import operator

import torch
from torch import nn


@dataclasses.dataclass
class Box:
    t: torch.Tensor
    n: int = 0

    def add(self, t, n):
        self.t = self.t + t
        self.n += n
        return self


class Notes:
    def __init__(self):
        self.said = 0

    def __enter__(self):
        self.said += 1
        return self

    def __exit__(self, *_):
        self.said += 2


def pairs(n):
    for i in range(3):
        yield i, n
"""

MODULE = """
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.scale = 0.5

    def forward(self, x):
        self.calls += 1
        return x * self.scale if self.training else x + 1


class program(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(()))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.part = Part()
        self.act = nn.ReLU()
        self.limit = 4.0
        self.names = ["a", "b"]
"""


class Writer:
    """Writes one function."""

    def __init__(self, rng, deepest, helpers=()):
        self.rng = rng
        self.deepest = deepest
        self.helpers = helpers
        self.lines = []
        self.fresh = 0
        self.tensors, self.numbers, self.lists = [], [], []
        self.dicts, self.boxes = [], []
        self.maps = []  # dicts of numbers, whose keys data choose
        self.loops = 0  # around this line
        self.used = set()  # kinds of statements
        self.deques, self.iterators = [], []
        self.simple, self.deep = self.SIMPLE, self.DEEP
        self.module = False  # whether there is a self

    def line(self, depth, text):
        self.lines.append("    " * depth + text)

    def new(self, letter):
        self.fresh += 1
        return f"{letter}{self.fresh}"

    # ---- expressions

    def number(self, simple=False):
        rng = self.rng
        simple_ones = [str(rng.randint(-2, 4)), *self.numbers]
        if simple or rng.random() < 0.5:
            return rng.choice(simple_ones)
        a, b = rng.choice(simple_ones), rng.choice(simple_ones)
        return rng.choice([
            f"({a} + {b}) % 7", f"({a} - {b}) % 5", f"({a} * {b}) % 7", f"-({a})",
            f"({a} // 2)", f"({a} if {self.test(True)} else {b})", f"len({rng.choice(self.lists)})",
            f"{rng.choice(self.tensors)}.shape[0]", f"int({rng.choice(self.tensors)}.sum() > {a})",
            f"({a} {rng.choice(['and', 'or'])} {b})", *(f"{box}.n % 7" for box in self.boxes),
            *(f"len({table})" for table in self.dicts),
        ])

    def tensor(self):
        rng = self.rng
        a, b = rng.choice(self.tensors), rng.choice(self.tensors)
        forms = [
            f"{a} + {b}", f"({a} - {b}).clamp(-8, 8)", f"({a} * 2).clamp(max=6)", f"-{a}",
            f"{a} + {self.number(True)}", f"torch.relu({a})", f"{a}.abs() - 1", f"{a}.flip(0)",
            f"torch.maximum({a}, {b})", f"torch.where({a} > {b}, {a}, {b} - 1)",
            f"{a}.cumsum(0).clamp(-8, 8)", f"({a} if {self.test(True)} else {b})",
            f"torch.stack([{a}, {b}]).amax(0)", f"{rng.choice(self.lists)}[-1] + 1", a,
            *(f"{box}.t" for box in self.boxes), *(f"{d}['a'] + {d}['b']" for d in self.dicts),
        ]
        if self.helpers:
            forms += [f"{rng.choice(self.helpers)}({a}, {self.number(True)})"] * 2
        return rng.choice(forms)

    def test(self, simple=False):
        rng = self.rng
        a = rng.choice(self.tensors)
        number = rng.choice([str(rng.randint(-3, 3)), *self.numbers])
        forms = [
            f"{a}.sum() > {number}", f"{a}[0] < {number}", f"{a}.max() >= {number}",
            f"({a} > 0).any()", f"{a}.min() < {rng.choice(self.tensors)}.max()",
            f"{rng.choice(self.numbers)} > {number}", f"{rng.choice(self.numbers)} % 2 == 0",
            f"len({rng.choice(self.lists)}) > 2", f"-2 <= {a}[0] < 3",
            f"{number} < {a}.max() <= {rng.choice(self.numbers)} + 2", *(
                f"{box}.t.sum() > {box}.n" for box in self.boxes),
        ]
        if not simple and rng.random() < 0.3:
            word = rng.choice(["and", "or"])
            return f"{self.test(True)} {word} {rng.choice(['', 'not '])}({self.test(True)})"
        return rng.choice(forms)

    # ---- statements

    def assign(self, depth):
        rng = self.rng
        if rng.random() < 0.65:
            value = self.tensor()
            name = rng.choice(self.tensors) if rng.random() < 0.6 else self.new("t")
            self.line(depth, f"{name} = {value}")
            if name not in self.tensors:
                self.tensors.append(name)
        else:
            value = self.number()
            name = rng.choice(self.numbers) if rng.random() < 0.6 else self.new("k")
            self.line(depth, f"{name} = {value}")
            if name not in self.numbers:
                self.numbers.append(name)

    def augment(self, depth):
        rng = self.rng
        if rng.random() < 0.5:
            self.line(depth, f"{rng.choice(self.numbers)} += {rng.randint(1, 2)}")
        else:
            name = rng.choice(self.tensors)
            self.line(depth, f"{name} {rng.choice(['+=', '-='])} {rng.randint(1, 2)}")

    def swap(self, depth):
        names = self.rng.choice([self.tensors, self.numbers])
        a, b = self.rng.choice(names), self.rng.choice(names)
        self.line(depth, f"{a}, {b} = {b}, {a}")

    def append(self, depth):
        items = self.rng.choice(self.lists)
        self.line(depth, f"{items}.append({self.tensor()})")

    def two_names(self, depth):
        """For one list, dict or object."""
        rng = self.rng
        names = rng.choice([self.lists, self.dicts or self.lists, self.boxes or self.lists,
                            self.maps or self.lists])
        letters = {id(self.lists): "l", id(self.dicts): "d", id(self.maps): "m"}
        name = self.new(letters.get(id(names), "b"))
        one, other = rng.choice(names), rng.choice(names)
        chosen = f"{one} if {self.test()} else {other}" if rng.random() < 0.2 else one
        self.line(depth, f"{name} = {chosen}")
        names.append(name)

    def rows(self, depth):
        """Lists that a list holds which grows as data say."""
        rng = self.rng
        rows, row = self.new("o"), self.new("r")
        self.line(depth, f"{rows} = []")
        self.line(depth, f"for {row} in {rng.choice(self.tensors)}:")
        held = rng.choice([f"[{row}, {row} + 1]", f"[{row}, {row} * 2]", rng.choice(self.lists)])
        self.line(depth + 1, f"{rows}.append({held})")
        self.line(depth, f"if {self.test()}:")
        self.line(depth + 1, f"{rows}[0][-1] = {self.tensor()}")
        name = self.new("t")
        self.line(depth, f"{name} = {rng.choice(self.tensors)} + {rows}[-1][-1].sum()")
        self.tensors.append(name)

    def list_of_lists(self, depth):
        """A list, and another one that holds it."""
        outer, inner = self.new("o"), self.rng.choice(self.lists)
        self.line(depth, f"{outer} = [{inner}, [{self.tensor()}]]")
        self.line(depth, f"{outer}[{self.rng.randint(0, 1)}].append({self.tensor()})")
        self.line(depth, f"if {self.test()}:")
        self.line(depth + 1, f"{outer}[0][-1] = {self.tensor()}")
        self.line(depth + 1, f"{outer}[{self.rng.randint(-1, 1)}].append({self.tensor()})")
        name = self.new("t")
        self.line(depth, f"{name} = {outer}[{self.rng.randint(0, 1)}][-1]")
        self.tensors.append(name)

    def table(self, depth):
        """A dict: a new one, or one that changes."""
        if not self.dicts or self.rng.random() < 0.3:
            name = self.new("d")
            self.line(depth, f"{name} = {{'a': {self.tensor()}, 'b': {self.tensor()}}}")
            self.dicts.append(name)
        else:
            key = self.rng.choice("ab")
            self.line(depth, f"{self.rng.choice(self.dicts)}['{key}'] = {self.tensor()}")

    def map_(self, depth):
        """A dict whose keys data choose: a new one, or one that changes."""
        rng = self.rng
        key, value = self.number(), self.number(True)
        if not self.maps or rng.random() < 0.25:
            name = self.new("m")
            self.line(depth, f"{name} = " + rng.choice([
                "{}", f"{{{key}: {value}}}", f"{{0: 1, {key}: {value}}}",
                f"{{int(v): {value} for v in {rng.choice(self.tensors)}}}",
                *(f"dict({m})" for m in self.maps), *(f"{m}.copy()" for m in self.maps),
                *(f"{m} | {{{key}: {value}}}" for m in self.maps)]))
            self.maps.append(name)
            return
        m, k = rng.choice(self.maps), self.new("k")
        for text in rng.choice([
            [f"{m}[{key}] = {value}"], [f"{m}[{key}] = {m}.get({key}, 0) + 1"],
            [f"{m}.pop({key}, 0)"], [f"{m}.setdefault({key}, {value})"],
            [f"{m}.update({{{key}: {value}, 1: 2}})"], [f"{m} |= {rng.choice(self.maps)}"],
            [f"if {key} in {m}:", f"    del {m}[{key}]"], [f"{m}[int({self.test(True)})] = 5"],
            [f"for {k} in {m}:", f"    {m}[{k}] = ({m}[{k}] + {value}) % 7"],
            [f"for {k} in list({m}):", f"    {m}[{k} + 1] = {value}"],
            [f"if {m}:", f"    {m}.popitem()"], [f"{m}.clear()"],
        ]):
            self.line(depth, text)

    def map_read(self, depth):
        if not self.maps:
            return self.map_(depth)
        rng, k, v = self.rng, self.new("k"), self.new("k")
        m, key = rng.choice(self.maps), self.number(True)
        self.line(depth, f"{k} = " + rng.choice([
            f"{m}.get({key}, 3)", f"int({key} in {m})", f"len({m})", f"sum({m}.values()) % 7",
            f"sum({v} * 3 + {m}[{v}] for {v} in {m}) % 97", f"sum(list({m})[:2]) % 7",
            f"sorted({m}.items())[-1][1] if {m} else 0", f"int({m} == {rng.choice(self.maps)})",
            f"max({m}, key={m}.get) if {m} else 0",
        ]))
        self.numbers.append(k)

    def box(self, depth):
        """An object: a new one, or one that changes."""
        rng = self.rng
        if not self.boxes or rng.random() < 0.3:
            name = self.new("b")
            self.line(depth, f"{name} = Box({self.tensor()}, {self.number(True)})")
            self.boxes.append(name)
            return
        box = rng.choice(self.boxes)
        self.line(depth, rng.choice([
            f"{box}.t = {self.tensor()}", f"{box}.n = {self.number()}", f"{box}.n += 1",
            f"{box}.add({rng.choice(self.tensors)}, {self.number(True)})",
            f"{box}.t += {rng.randint(1, 2)}",
        ]))

    def tuple_of_branch(self, depth):
        a, k = self.new("t"), self.new("k")
        name = self.new("p")
        self.line(depth, f"{name} = {self.tensor()}, ({self.number()}, 'left')")
        self.line(depth, f"if {self.test()}:")
        self.line(depth + 1, f"{name} = {self.tensor()}, ({self.number()}, 'right')")
        self.line(depth, f"{a}, ({k}, _) = {name}")
        self.tensors.append(a)
        self.numbers.append(k)

    def in_place(self, depth):
        """On a tensor that has two names, perhaps."""
        name = self.new("t")
        copied = self.rng.choice(["", ".clone()", ".clone()"])
        self.line(depth, f"{name} = {self.rng.choice(self.tensors)}{copied}")
        self.tensors.append(name)
        changed = self.rng.choice(self.tensors[-2:])
        self.line(depth, f"if {self.test()}:")
        self.line(depth + 1, self.rng.choice([
            f"{changed}.add_({self.number(True)})", f"{changed}[0] = {self.number(True)}",
            f"{changed}.clamp_(-4, 4)", f"{changed} = {self.tensor()}", f"{changed} -= 1",
        ]))

    def finally_(self, depth):
        self.line(depth, "try:")
        self.nested(depth + 1, 2)
        if self.rng.random() < 0.5:
            self.leave(depth + 1)
        self.line(depth, "finally:")
        self.line(depth + 1, f"{self.rng.choice(self.numbers)} += 1")

    def leave(self, depth):
        """Out of the loop, or of the function."""
        words = ["return"] + ["break", "continue"] * 2 * bool(self.loops)
        word = self.rng.choice(words)
        self.line(depth, f"if {self.test()}:")
        if self.rng.random() < 0.3:
            self.nested(depth + 1, 1)
        self.line(depth + 1, f"return {self.result()}" if word == "return" else word)

    def fail(self, depth):
        number = self.rng.choice(self.numbers)
        self.line(depth, f"if {number} > 5 and {self.test(True)}:")
        self.line(depth + 1, f'raise ValueError(f"{{{number}}} is too much")')

    def nested(self, depth, most=4):
        """Statements whose new names do not outlive them."""
        kinds = ("tensors", "numbers", "lists", "dicts", "maps", "boxes", "deques", "iterators")
        before = {kind: getattr(self, kind)[:] for kind in kinds}
        for _ in range(self.rng.randint(1, most)):
            self.statement(depth)
        vars(self).update(before)

    def branch(self, depth):
        self.line(depth, f"if {self.test()}:")
        self.nested(depth + 1)
        if self.rng.random() < 0.3:
            self.line(depth, f"elif {self.test()}:")
            self.nested(depth + 1)
        if self.rng.random() < 0.6:
            self.line(depth, "else:")
            self.nested(depth + 1)

    def define_in_branch(self, depth):
        """A new name, on both ways."""
        name = self.new("t")
        self.line(depth, f"if {self.test()}:")
        self.line(depth + 1, f"{name} = {self.tensor()}")
        self.line(depth, "else:")
        self.line(depth + 1, f"{name} = {self.tensor()}")
        self.tensors.append(name)

    def body(self, depth):
        self.loops += 1
        self.nested(depth, 3)
        self.loops -= 1
        if self.rng.random() < 0.15:
            self.line(depth - 1, "else:")
            self.nested(depth, 2)

    def while_loop(self, depth):
        count = self.new("k")
        self.line(depth, f"{count} = 0")
        self.line(depth, f"while {count} < {self.rng.randint(1, 4)} and ({self.test()}):")
        self.line(depth + 1, f"{count} += 1")
        self.body(depth + 1)

    def for_loop(self, depth):
        rng = self.rng
        variable = self.new("k")
        kept = self.numbers[:], self.tensors[:]
        kind = rng.randrange(4)
        if kind == 0:
            self.line(depth, f"for {variable} in range({rng.choice(self.numbers)} % 4):")
            self.numbers.append(variable)
        elif kind == 1:
            self.line(depth, f"for {variable} in range({rng.randint(0, 3)}):")
            self.numbers.append(variable)
        elif kind == 2:
            row = self.new("r")
            self.line(depth, f"for {variable}, {row} in enumerate({rng.choice(self.tensors)}):")
            self.line(depth + 1, f"{row} = {row} + {rng.choice(self.tensors)}")
            self.numbers.append(variable)
            self.tensors.append(row)
        else:
            row = self.new("r")
            self.line(depth, f"for {row} in {rng.choice(self.lists)}[:3]:")
            self.tensors.append(row)
        self.body(depth + 1)
        self.numbers, self.tensors = kept

    # ---- what is hostile

    def deque_(self, depth):
        """A new one, or one that changes; never empty."""
        rng = self.rng
        if not self.deques or rng.random() < 0.3:
            name = self.new("q")
            most = rng.choice(["", ", maxlen=2", ", maxlen=3"])
            two = f"[{self.tensor()}, {self.tensor()}]"
            self.line(depth, f"{name} = collections.deque({two}{most})")
            self.deques.append(name)
            return
        q = rng.choice(self.deques)
        self.line(depth, rng.choice([
            f"{q}.append({self.tensor()})", f"{q}.appendleft({self.tensor()})", f"{q}.rotate(1)",
            f"{q}[0] = {self.tensor()}", f"{q}[-1] = {self.tensor()}",
            f"{q}.extend([{self.tensor()}])", f"{q}.append({q}.popleft())",
        ]))

    def deque_read(self, depth):
        if not self.deques:
            return self.deque_(depth)
        q, name = self.rng.choice(self.deques), self.new("t")
        self.line(depth, f"{name} = {q}[{self.rng.choice([0, -1])}] + len({q})")
        self.tensors.append(name)

    def iterator(self, depth):
        """A new one, or one that is advanced."""
        rng = self.rng
        if not self.iterators or rng.random() < 0.4:
            name = self.new("i")
            numbers = f"[{rng.randint(-2, 3)}, {rng.randint(-2, 3)}, {rng.randint(-2, 3)}]"
            self.line(depth, f"{name} = " + rng.choice([
                f"iter({numbers})", "itertools.count(1)", f"itertools.cycle({numbers})",
                f"(k * 2 for k in {numbers})", f"map(abs, {numbers})", f"reversed({numbers})",
                f"filter(None, {numbers})", f"itertools.chain({numbers}, [1])",
                f"itertools.islice({numbers}, 2)", f"itertools.accumulate({numbers})",
            ]))
            self.iterators.append(name)
            return
        it, name = rng.choice(self.iterators), self.new("k")
        self.line(depth, f"{name} = " + rng.choice([
            f"next({it}, 0)", f"next({it}, 0)", f"sum(itertools.islice({it}, 2))",
            f"sum(a * b for a, b in zip([1, 2], {it}))", f"next(zip({it}, [1]), (5, 6))[0]",
            f"sum(i * k for i, k in enumerate(itertools.islice({it}, 2)))",
            f"len(list(itertools.islice({it}, 1)))",
        ]))
        self.numbers.append(name)

    def loop_over_an_iterator(self, depth):
        variable, other = self.new("k"), self.new("k")
        kept = self.numbers[:]
        rng = self.rng
        it = rng.choice(self.iterators or ["iter([1, 2])"])
        self.line(depth, f"for {variable}, {other} in " + rng.choice([
            f"zip(range(2), {it})", f"enumerate(itertools.islice({it}, 2))",
            f"zip(itertools.count(1), [3, -1])", f"pairs({rng.choice(self.numbers)})",
        ]) + ":")
        self.numbers += [variable, other]
        self.body(depth + 1)
        self.numbers = kept

    def generator_expression(self, depth):
        rng, name = self.rng, self.new("t")
        a, kept = rng.choice(self.tensors), self.new("g")
        self.line(depth, f"{kept} = ({a} * k for k in ({rng.randint(-1, 2)}, 2, 1))")
        if rng.random() < 0.4:
            self.line(depth, f"if {self.test()}:")
            self.line(depth + 1, f"next({kept}, None)")
        self.line(depth, f"{name} = sum({kept}, {rng.choice(self.tensors)})")
        if rng.random() < 0.3:
            self.line(depth, f"{name} = {name} + sum({kept}, 1)")
        self.tensors.append(name)

    def star(self, depth):
        rng, t, k = self.rng, self.new("t"), self.new("k")
        rest = self.new("l")
        values = f"[{self.tensor()}, {self.tensor()}, {self.tensor()}]"
        if rng.random() < 0.3:
            values = f"[{self.tensor()}, *{rng.choice(self.lists)}]"
        self.line(depth, f"{t}, *{rest} = {values}")
        self.line(depth, f"{k} = len({rest})")
        self.tensors.append(t)
        self.numbers.append(k)

    def through_a_function(self, depth):
        """Changes of a list or a dict without a method call on it."""
        rng, items = self.rng, self.rng.choice(self.lists)
        self.line(depth, rng.choice([
            f"operator.setitem({items}, 0, {self.tensor()})", f"list.reverse({items})",
            f"operator.iadd({items}, [{self.tensor()}])", f"list.append({items}, {self.tensor()})",
            f"{items}.__setitem__(-1, {self.tensor()})",
            f"list.insert({items}, 0, {self.tensor()})",
            *(f"dict.__setitem__({d}, 'a', {self.tensor()})" for d in self.dicts),
            *(f"operator.setitem({d}, 'b', {self.tensor()})" for d in self.dicts),
            *(f"dict.update({d}, a={self.tensor()})" for d in self.dicts),
            *(f"setattr({box}, 'n', {self.number(True)})" for box in self.boxes),
        ]))

    def heap(self, depth):
        rng, name, k = self.rng, self.new("h"), self.new("k")
        self.line(depth, f"{name} = [1, 3, 5]")
        inner = depth
        if rng.random() < 0.6:
            self.line(depth, f"if {self.test()}:")
            inner = depth + 1
        self.line(inner, rng.choice([
            f"heapq.heappush({name}, {rng.randint(-1, 6)})", f"heapq.heappop({name})",
            f"heapq.heapreplace({name}, {rng.randint(-1, 6)})",
            f"bisect.insort({name}, {rng.randint(-1, 6)})",
        ]))
        self.line(depth, f"{k} = {name}[0] + len({name})")
        self.numbers.append(k)

    def context(self, depth):
        rng = self.rng
        self.line(depth, f"with {rng.choice(CONTEXTS)}:")
        self.nested(depth + 1, 2)
        if rng.random() < 0.3:
            self.leave(depth + 1)

    def own_context(self, depth):
        name, k = self.new("w"), self.new("k")
        self.line(depth, f"{name} = Notes()")
        self.line(depth, f"with {name}:")
        self.nested(depth + 1, 2)
        self.line(depth, f"{k} = {name}.said")
        self.numbers.append(k)

    def asks_for_gradients(self, depth):
        name = self.new("k")
        self.line(depth, f"{name} = int(torch.is_grad_enabled())")
        self.numbers.append(name)

    def handler(self, depth):
        """For an exception that is always raised, never, or by data."""
        rng = self.rng
        number = rng.choice(self.numbers)
        self.line(depth, "try:")
        self.nested(depth + 1, 1)
        raised = rng.random()
        if raised < 0.4:
            self.line(depth + 1, rng.choice(["{}['z']", "[][1]", "raise KeyError('k')", "1 // 0"]))
        elif raised < 0.5:
            self.line(depth + 1, f"if {self.test()}:")
            self.line(depth + 2, "raise KeyError('data')")
        self.line(depth, "except " + rng.choice([
            "(KeyError, IndexError, ZeroDivisionError)", "(LookupError, ArithmeticError)",
            "(KeyError, IndexError, ZeroDivisionError) as e"]) + ":")
        self.line(depth + 1, f"{number} += 1")
        if rng.random() < 0.4:
            self.line(depth, "else:")
            self.nested(depth + 1, 1)
        if rng.random() < 0.4:
            self.line(depth, "finally:")
            self.line(depth + 1, f"{rng.choice(self.numbers)} += 2")

    def suppress(self, depth):
        self.line(depth, "with contextlib.suppress(KeyError):")
        self.nested(depth + 1, 1)
        if self.rng.random() < 0.5:
            self.line(depth + 1, "raise KeyError('always')")

    def attribute(self, depth):
        """Of the module: read, assigned, counted."""
        rng = self.rng
        if rng.random() < 0.4:
            name = self.new("t")
            self.line(depth, f"{name} = {rng.choice(self.tensors)} + " + rng.choice([
                "self.total", "self.steps", "self.limit", "len(self.names)", "self.part.calls",
                "self.part.scale", "float(self.training)"]))
            self.tensors.append(name)
            return
        self.line(depth, rng.choice([
            "self.total += 1", "self.steps += 1",
            f"self.total = {rng.choice(self.tensors)}.sum().clamp(-8, 8)",
            f"self.total.copy_({rng.choice(self.tensors)}[0])", "self.total.fill_(2.0)",
            "self.total.mul_(-1)", "self.part.calls.zero_()",
        ]))

    def setting(self, depth):
        """An assignment that a graph cannot keep."""
        self.line(depth, self.rng.choice([
            "self.limit = 2.0", "self.names.append('c')", "self.part.scale = 2.0",
            "self.last = 1", "self.part.eval()",
        ]))

    def submodule(self, depth):
        name = self.new("t")
        part = self.rng.choice(["self.part", "self.part", "self.act"])
        self.line(depth, f"{name} = {part}({self.rng.choice(self.tensors)})")
        self.tensors.append(name)

    def mode(self, depth):
        self.line(depth, self.rng.choice(["if self.training:", "if not self.training:",
                                          f"if self.training and {self.test(True)}:"]))
        self.nested(depth + 1, 2)
        if self.rng.random() < 0.4:
            self.line(depth, "else:")
            self.nested(depth + 1, 2)

    HOSTILE = (deque_, deque_, deque_read, iterator, iterator, generator_expression, star,
               through_a_function, heap, asks_for_gradients)
    HOSTILE_DEEP = (context, own_context, handler, suppress, loop_over_an_iterator)
    OF_MODULES = (attribute, attribute, attribute, submodule, setting)
    OF_MODULES_DEEP = (mode,)

    SIMPLE = (assign, assign, assign, augment, swap, append, fail, leave, define_in_branch,
              two_names, list_of_lists, rows, table, map_, map_, map_read, box, tuple_of_branch,
              in_place)
    DEEP = (branch, branch, while_loop, for_loop, finally_)

    def statement(self, depth):
        kinds = self.simple + (self.deep if depth <= self.deepest else ())
        kind = self.rng.choice(kinds)
        self.used.add(kind.__name__)
        kind(self, depth)

    def result(self):
        """Of one structure, but for a few."""
        tensors = [*self.tensors, *(f"{box}.t" for box in self.boxes),
                   *(f"{table}['b']" for table in self.dicts)]
        numbers = [*self.numbers, *(f"{box}.n" for box in self.boxes)]
        names = [self.rng.choice(tensors), tensors[-1], self.rng.choice(numbers), numbers[-1],
                 self.rng.choice(["items", "items", self.lists[-1]])]
        return ", ".join(names if self.rng.random() < 0.97 else names[1:3])

    def function(self, name, size, depth=0):
        self.line(depth, f"def {name}(x, y, n):" if depth == 0 else f"def {name}(self, x, y, n):")
        self.tensors, self.numbers, self.lists = ["x", "y"], ["n"], ["items"]
        self.line(depth + 1, "items = [x]")
        for _ in range(size):
            self.statement(depth + 1)
        self.line(depth + 1, f"return {self.result()}")

    def allow(self, module, without):
        """Statements that are hostile, but for some kinds; as in a method of a module, or not."""
        simple = self.SIMPLE + self.HOSTILE + (self.OF_MODULES * 2 if module else ())
        deep = self.DEEP + self.HOSTILE_DEEP + (self.OF_MODULES_DEEP * 2 if module else ())
        self.simple = tuple(k for k in simple if k.__name__ not in without)
        self.deep = tuple(k for k in deep if k.__name__ not in without)

    def helper(self, name, size):
        """Takes and gives a tensor."""
        self.line(0, f"def {name}(x, n):")
        self.tensors, self.numbers, self.lists = ["x"], ["n"], ["items"]
        self.line(1, "items = [x]")
        self.result = lambda: self.rng.choice(self.tensors)
        for _ in range(size):
            self.statement(1)
        self.line(1, f"return {self.tensors[-1]}")


def program(seed):
    """The source of `program`, and the kinds of statements in it."""
    rng = random.Random(seed)
    lines, used, helpers = [HEADER], set(), []
    deepest = rng.randint(1, 3)
    for i in range(rng.choice([0, 0, 1, 2])):
        writer = Writer(rng, deepest)
        writer.helper(f"helper{i}", rng.randint(1, 3))
        helpers.append(f"helper{i}")
        lines += ["", *writer.lines, ""]
        used |= writer.used
    writer = Writer(rng, deepest, helpers)
    writer.function("program", rng.randint(1, 7))
    lines += ["", *writer.lines]
    return "\n".join(lines) + "\n", used | writer.used


CONTEXTS = ("torch.no_grad()", "torch.enable_grad()", "torch.set_grad_enabled(False)",
            "torch.inference_mode()", "torch.no_grad(), torch.enable_grad()")


def hostile(seed, without=()):
    """The source of `program`, a function or a class of modules, and the kinds in it. `without` has
    names of kinds that are left out."""
    rng = random.Random(f"hostile {seed}")
    module = seed % 2 == 1
    lines, used, helpers = [HEADER], set(), []
    deepest = rng.randint(1, 3) + module
    for i in range(rng.choice([0, 0, 1])):
        writer = Writer(rng, deepest)
        writer.allow(False, without)
        writer.helper(f"helper{i}", rng.randint(1, 3))
        helpers.append(f"helper{i}")
        lines += ["", *writer.lines, ""]
        used |= writer.used
    writer = Writer(rng, deepest, helpers)
    writer.allow(module, without)
    if module:
        writer.function("forward", rng.randint(1, 6), depth=1)
        lines += [MODULE, *writer.lines]
    else:
        writer.function("program", rng.randint(1, 6))
        lines += ["", *writer.lines]
    return "\n".join(lines) + "\n", used | writer.used
