"""Random programs with branches and loops in one another, as IR text (tests/prop/random_control.c
makes such programs for C).

`text(seed)` takes x and y (tensors of 2 by 3), n (an integer) and p (a bool). State and results are
tensors, numbers, bools, pairs and lists; half of the programs write to tensors in place, also in
regions.
"""
import random

KINDS = "TTTNNFBPL"  # tensor, integer, float, bool, (tensor, integer), [tensor, tensor]
UNARY = ["torch.neg", "torch.sin", "torch.tanh", "torch.relu", ".abs", ".contiguous"]
BINARY = ["torch.add", "torch.sub", "torch.mul", "operator.add", ".mul"]


class Block:
    """A graph that is being written: its lines, and the values it can use."""

    def __init__(self, rng, names, writes, depth=0):
        self.rng, self.names, self.writes, self.depth = rng, names, writes, depth
        self.lines, self.values = [], []

    def name(self):
        self.names.append(None)
        return f"%v{len(self.names)}"

    def call(self, kind, target, *args):
        name = self.name()
        what = f"method[target={target[1:]}]" if target[0] == "." else f"function[target={target}]"
        self.lines.append(f"{name} = call_{what}({', '.join(args)})")
        self.values.append((kind, name))
        return name

    def pick(self, kind):
        found = [v for k, v in self.values if k == kind]
        if found and (kind == "T" or self.rng.random() < 0.85):
            return found[max(self.rng.choices(range(len(found)), k=2))]  # rather a recent one
        if kind == "T":
            return self.call("T", "torch.full", "(2, 3)", "0.5")
        if kind in "PL":
            t = self.pick("T")
            return f"({t}, 3)" if kind == "P" else f"[{t}, {t}]"
        return {"N": str(self.rng.randrange(5)), "F": f"{self.rng.randrange(3)}.5",
                "B": self.rng.choice(["True", "False"])}[kind]

    def kind(self):
        return self.rng.choice(KINDS)

    # ---- statements

    def tensor(self):
        x = self.pick("T")
        if self.rng.random() < 0.2:
            self.call("T", ".reshape", x, "2", "3")
        elif self.rng.random() < 0.5:
            self.call("T", self.rng.choice(UNARY), x)
        else:
            self.call("T", self.rng.choice(BINARY), x, self.pick(self.rng.choice("TTNF")))

    def number(self):
        n = self.call("N", self.rng.choice(["operator.add", "operator.sub", "operator.mul"]),
                      self.pick("N"), self.pick("N"))
        self.values.pop()
        self.call("N", "operator.mod", n, "5")

    def boolean(self):
        if self.rng.random() < 0.3:
            self.call("B", "operator.not_", self.pick("B"))
        else:
            self.call("B", self.rng.choice(["operator.lt", "operator.eq"]), self.pick("N"),
                      self.pick("N"))

    def item(self):
        kind, i = self.rng.choice("PL"), self.rng.randrange(2)
        self.call("N" if (kind, i) == ("P", 1) else "T", "operator.getitem", self.pick(kind),
                  str(i))

    def write(self):
        self.call("T", self.rng.choice([".add_", ".mul_"]), self.pick("T"),
                  self.pick(self.rng.choice("TF")))

    def statements(self, n):
        for _ in range(n):
            kinds = [self.tensor] * 5 + [self.number] * 2 + [self.boolean, self.item]
            if self.writes:
                kinds += [self.write] * 2
            if self.depth < 4 and self.rng.random() < 1 / (self.depth + 1):
                kinds += [self.cond, self.loop] * 2
            self.rng.choice(kinds)()

    # ---- regions

    def passed(self):
        kinds = ["T"] + [self.kind() for _ in range(self.rng.randrange(4))]
        return [(k, self.pick(k)) for k in kinds]

    def region(self, kinds):
        inner = Block(self.rng, self.names, self.writes, self.depth + 1)
        for kind in kinds:
            name = self.name()
            inner.lines.append(f"{name} = placeholder[target={name[1:]}]()")
            inner.values.append((kind, name))
        return inner

    def take(self, name, kinds):
        for i, kind in enumerate(kinds):
            if self.rng.random() < 0.7:
                self.call(kind, "operator.getitem", name,
                          str(i - len(kinds) * (self.rng.random() < 0.2)))

    def end(self, target, args, kinds):
        name = self.name()
        self.lines.append(f"{name} = call_function[target=cfx.{target}]({', '.join(args)})")
        self.take(name, kinds)

    def cond(self):
        pred, passed = self.pick(self.rng.choice("BBN")), self.passed()
        if self.rng.random() < 0.5:
            passed.append(("B", pred))
        kinds = [self.kind() for _ in range(1 + self.rng.randrange(3))]
        branches = []
        for _ in range(2):
            inner = self.region([k for k, _ in passed])
            inner.statements(1 + self.rng.randrange(3))
            results = [inner.pick(k) for k in kinds]
            branches.append(inner.text(f"({', '.join(results)},)"))
        self.end("cond", [pred, *branches, values_of(passed)], kinds)

    def loop(self):
        counts, passed = self.rng.random() < 0.5, self.passed()
        if not counts:
            passed.insert(0, ("N", self.pick("N")))
        kinds = [k for k, _ in passed]
        body = self.region((["N"] if counts else []) + kinds)
        inputs = body.values[counts:]
        body.statements(1 + self.rng.randrange(3))
        results = [v if self.rng.random() < 0.4 else body.pick(k) for k, v in inputs]
        if counts:
            args = [self.pick("N")]
        else:
            results[0] = body.call("N", "operator.add", inputs[0][1], "1")
            test = self.region(kinds)
            last = test.call("B", "operator.lt", test.values[0][1], str(self.rng.randrange(5)))
            args = [test.text(last)]
        args += [body.text(f"({', '.join(results)},)"), values_of(passed)]
        self.end("for_loop" if counts else "while_loop", args, kinds)

    def text(self, result):
        return "graph {\n" + "\n".join(self.lines) + f"\noutput({result})\n}}"


def values_of(passed):
    return f"({', '.join(v for _, v in passed)},)"


def text(seed):
    rng = random.Random(seed)
    block = Block(rng, [], writes=seed % 2 == 1)
    for name, kind in zip("xynp", "TTNB"):
        block.lines.append(f"%{name} = placeholder[target={name}]()")
        block.values.append((kind, f"%{name}"))
    block.statements(3 + rng.randrange(3))
    rng.choice([block.cond, block.loop])()
    block.statements(2)
    results = [block.pick(k) for k in "TTNB"]
    return "graph():\n" + "\n".join(block.lines) + f"\noutput(({', '.join(results)}))\n"
