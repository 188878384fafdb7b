"""Random programs with control flow that depends on data: source, the same for the same seed.

`program(x, y, n)` takes two float tensors of one size and an int. All numbers in tensors are small
multiples of an eighth, so that they are the same in whatever order they are added. A loop ends
after few rounds. A name is read where it is bound on every way; now and then where it may
not be.
"""
import random

HEADER = "import torch\n"


class Writer:
    """Writes one function."""

    def __init__(self, rng, deepest, helpers=()):
        self.rng = rng
        self.deepest = deepest
        self.helpers = helpers
        self.lines = []
        self.fresh = 0
        self.tensors, self.numbers, self.lists = [], [], []
        self.loops = 0  # around this line
        self.used = set()  # kinds of statements

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
        before = self.tensors[:], self.numbers[:], self.lists[:]
        for _ in range(self.rng.randint(1, most)):
            self.statement(depth)
        self.tensors, self.numbers, self.lists = before

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

    SIMPLE = (assign, assign, assign, augment, swap, append, fail, leave, define_in_branch)
    DEEP = (branch, branch, while_loop, for_loop)

    def statement(self, depth):
        kinds = self.SIMPLE + (self.DEEP if depth <= self.deepest else ())
        kind = self.rng.choice(kinds)
        self.used.add(kind.__name__)
        kind(self, depth)

    def result(self):
        """Of one structure, but for a few."""
        names = [self.rng.choice(self.tensors), self.tensors[-1], self.rng.choice(self.numbers),
                 self.numbers[-1], "items"]
        return ", ".join(names if self.rng.random() < 0.97 else names[1:3])

    def function(self, name, size):
        self.line(0, f"def {name}(x, y, n):")
        self.tensors, self.numbers, self.lists = ["x", "y"], ["n"], ["items"]
        self.line(1, "items = [x]")
        for _ in range(size):
            self.statement(1)
        self.line(1, f"return {self.result()}")

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
