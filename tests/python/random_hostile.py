"""Random graphs whose strings try to become code.

    python tests/python/random_hostile.py SECONDS [FIRST SEED]

Every place of a graph that holds text gets hostile text, through the IR text and through the API.
Python's own parser reads the Python that is generated: only the shapes of ALLOWED may stand in it,
and nobody may call the tripwire without arguments, as no node does. A complete file, which finds
its names itself, may not call exec and its like. C is compiled with -fsyntax-only and must not call
the tripwire outside of strings and comments.
"""
import ast
import contextlib
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings

import torch

import cfx

TRIP = "tripped"
PARTS = [
    TRIP, f"{TRIP}()", "(", ")", "[", "]", "{", "}", "'", '"', "'''", '"""', "\\", "\n", "\r",
    "\n    ", "\t", "\x00", "\x0c", "\x1b", "#", ";", ":", "=", ",", ".", "*", "**", " ", "->",
    "lambda: ", "import os", "for", "if 1:", "def f():", "@", "%", "&", "/*", "*/", "//", "??/",
    "\u2028", "\u202e", "\u200b", "é", "ª", "\uff54\uff52\uff49\uff50", "\U0001f600",
    "__import__", "exec", "eval", "os.system", "torch", "self", "x", "a", "0", "1", "_", "__x",
    "__debug__", "None", "getattr", "n" * 300, "|", "<", "-", "!", "torch.relu", "builtins.",
    "operator.add", "math.sqrt", "f", "b", "r", "\ud800", "$", "`", "~", "E",
]  # fmt: skip
PREFIXES = ["", "", "", "torch.", "builtins.", "operator.", "_operator.", "m.", "torch.ops.aten."]
GOOD = ["torch.relu", "torch.add", "operator.add", "operator.getitem", "operator.iadd",
        "builtins.getattr", "operator.not_", "math.sqrt", "torch.device",
        "cfx.ops.relu"]  # fmt: skip
ALLOWED = {
    ast.Module, ast.FunctionDef, ast.ClassDef, ast.arguments, ast.arg, ast.Assign, ast.AnnAssign,
    ast.AugAssign, ast.Return, ast.Pass, ast.If, ast.While, ast.For, ast.Break, ast.Name, ast.Load,
    ast.Store, ast.Attribute, ast.Call, ast.keyword, ast.Constant, ast.Tuple, ast.List, ast.Dict,
    ast.Set, ast.Subscript, ast.Slice, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Import,
    ast.ImportFrom, ast.alias, ast.Starred,
}  # fmt: skip
OPERATORS = (ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


class Escape(AssertionError):
    pass


# ---- checks ------------------------------------------------------------------------------------


def is_statement(node):
    """Calls whose result nobody uses: `super().__init__()`, and those of the profiler."""
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") in (
        "__init__", "__enter__", "__exit__")  # fmt: skip


def check_python(source, is_file):
    """A source that Python cannot compile runs nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and is_statement(node.value):
            continue
        if type(node) not in ALLOWED and not isinstance(node, OPERATORS):
            raise Escape(f"{ast.dump(node)[:200]}\n{source}")
        if not isinstance(node, ast.Call):
            continue
        called = getattr(node.func, "id", "")
        if called == TRIP and not node.args and not node.keywords:
            raise Escape(f"the tripwire is called\n{source}")
        if is_file and called in ("exec", "eval", "__import__", "open", "compile"):
            raise Escape(f"a file calls {called}\n{source}")
    return True


C_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/', re.S)


def check_c(sources):
    """All at once: each is a file of its own."""
    for source in sources:
        if re.search(rf"(?<!\w){TRIP}\s*\(", C_TEXT.sub("", source)):
            raise Escape(f"the tripwire is called\n{source}")
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder, f"m{i}.c") for i in range(len(sources))]
        for file, source in zip(files, sources):
            file.write_text(source, errors="surrogateescape")
        include = pathlib.Path(__file__).parents[2] / "build" / "include"
        command = ["gcc", "-std=c11", "-fsyntax-only", "-Wall", "-Wno-unused-function", "-Werror",
                   f"-I{include}", *map(str, files)]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode:
            raise Escape(done.stderr[:2000])


# ---- texts -------------------------------------------------------------------------------------


class Text:
    """The IR text of a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def word(self):
        parts = self.random.choices(PARTS, k=self.random.choice([1, 1, 2, 3, 6]))
        return self.random.choice(PREFIXES) + "".join(parts)

    def quote(self, text):
        return '"' + "".join(c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}"
                             for c in text) + '"'  # fmt: skip

    def name(self, *good, odds=0.2):
        usual = good and self.random.random() > odds
        return self.random.choice(good) if usual else self.quote(self.word())

    def value(self, names, depth=0):
        kind = self.random.randrange(12 if depth < 2 else 6)
        items = ", ".join(self.value(names, depth + 1) for _ in range(2)) if kind > 5 else ""
        word = self.quote(self.word())
        return [
            f"%{self.random.choice(names)}", word, "1", f"&{self.name(*GOOD)}", "-2.5",
            'device("cuda:01")',
            f"[{items}]", f"({items})", f"{{{word}: {items.split(', ')[0] or 1}}}"
            if "{" not in items and "(" not in items and "[" not in items else "None",
            f"namedtuple(&{self.name('m.Point')}, {self.name('a')}=1)",
            f"slice({items}, 1)",
            f"{{1: namedtuple(&{self.name('m.Point')}, {self.name('a', 'b')}=2)}}",
        ][kind]

    def place(self):
        if self.random.random() < 0.5:
            return ""
        return f"  @ {self.name('m.py')}:3 in {self.name('a.b')}({self.name('nn.Linear')})"

    def call(self, i, names):
        op = self.random.choice(["call_function"] * 4 + ["call_method", "call_module", "get_attr"])
        target = self.name(*GOOD) if op == "call_function" else self.name("relu", "a.0.b", "half")
        count = 0 if op == "get_attr" else self.random.randint(1, 3)
        args = [self.value(names) for _ in range(count)]
        if args and self.random.random() < 0.5:
            args.append(f"{self.name('k')}={self.value(names)}")
        type_ = f": &{self.name('torch.Tensor')}" if self.random.random() < 0.2 else ""
        return f"  %n{i}{type_} = {op}[target={target}]({', '.join(args)}){self.place()}\n"

    def cond(self, i, names):
        x = self.random.choice(names)
        region = (f"graph {{ %{self.name('a')} = placeholder[target={self.name('a')}]()\n"
                  f"  %b = call_function[target={self.name(*GOOD)}](1)\n output(%b) }}")
        return f"  %n{i} = call_function[target=cfx.cond](%{x}, {region}, {region}, (%{x},))\n"

    def graph(self):
        target = self.name("x", "x", "*args", odds=0.1)
        default = self.random.choice(["", "", "1", self.quote(self.word()), f"&{self.name(*GOOD)}"])
        lines = [f"  %x = placeholder[target={target}]({default})\n"]
        names = ["x"]
        for i in range(self.random.randint(1, 5)):
            make = self.cond if self.random.random() < 0.15 else self.call
            lines.append(make(i, names))
            names.append(f"n{i}")
        return f"graph():\n{''.join(lines)}  output({self.value(names)})\n"


    def c_graph(self):
        """One whose calls C knows."""
        names = list(dict.fromkeys(self.quote(self.word()) for _ in range(5)))
        lines = [f"  %{names[0]} = placeholder[target=x]()\n"]
        for i in range(1, len(names)):
            x, word = self.random.choice(names[:i]), self.quote(self.word())
            call = self.random.choice([
                f"call_function[target=torch.relu](%{x})", f"get_attr[target={word}]()",
                f"call_function[target=torch.einsum]({word}, %{x})",
                f"call_function[target=torch.add](%{x}, 2, alpha=3)",
                f"call_function[target=cfx.cond](%{x}, graph {{ %{word} = placeholder[target=a]()\n"
                f" output(%{word}) }}, graph {{ %b = placeholder[target=a]()\n output(%b) }}, "
                f"(%{x},))",
            ])  # fmt: skip
            lines.append(f"  %{names[i]} = {call}{self.place()}\n")
        return f"graph():\n{''.join(lines)}  output(%{names[-1]})\n"


REFUSED = (ValueError, RuntimeError, TypeError, LookupError, NameError)


def rename(graph, text):
    """Names and metadata that the text cannot state."""
    for node in graph.nodes:
        with contextlib.suppress(*REFUSED):
            if text.random.random() < 0.4:
                node.name = text.word()
            if text.random.random() < 0.3:
                file, line = text.word(), text.word()
                node.meta["stack_trace"] = f'  File "{file}", line 1, in f\n    {line}\n'
                node.meta["desc"] = text.word()
                node.meta["custom"] = {text.word(): text.word()}


def forms(graph, text):
    """Everything that is generated from a graph: (kind, function)."""
    yield "code", lambda: graph.python_code("self").src
    yield "code", lambda: graph.python_code("self", verbose=True, record_func=True).src
    yield "code", lambda: graph.python_code("self", verbose=True, expanded_def=True).src
    yield "file", lambda: cfx.generate(graph, "python")
    yield "file", lambda: cfx.generate(graph, "python", class_name=text.random.choice(["M", "for"]))
    yield "file", lambda: cfx.generate(graph, "python", class_name=text.word())
    for name in ("dot", "json", "mermaid"):
        yield name, lambda name=name: cfx.generate(graph, name)


def run_seed(seed, c_sources, counts):
    text = Text(seed)
    try:
        graph = cfx.parse(text.c_graph() if seed % 4 == 0 else text.graph())
    except (*REFUSED, SyntaxError):
        counts["not parsed"] = counts.get("not parsed", 0) + 1
        return
    graph.verify()
    if text.random.random() < 0.5:
        rename(graph, text)
    for kind, make in forms(graph, text):
        key = kind
        try:
            source = make()
        except REFUSED:
            key = f"{kind}, refused"
        else:
            if kind == "json":
                json.loads(source)
            elif kind in ("code", "file") and not check_python(source, kind == "file"):
                key = f"{kind}, not compiled"
        counts[key] = counts.get(key, 0) + 1
    with contextlib.suppress(*REFUSED):
        c_sources.append(cfx.generate(graph, "c"))


def run(seeds, seconds=float("inf")):
    """What was generated, by kind; raises Escape with the seed."""
    counts, sources, end = {}, [], time.time() + seconds
    for seed in seeds:
        if time.time() > end:
            break
        try:
            run_seed(seed, sources, counts)
            counts["graphs"] = counts.get("graphs", 0) + 1
            if len(sources) == 50:
                counts["C files"] = counts.get("C files", 0) + 50
                check_c(sources)
                sources.clear()
        except Escape as e:
            raise Escape(f"seed {seed}: {e}") from None
    if sources:
        check_c(sources)
    return counts


if __name__ == "__main__":
    torch.set_num_threads(1)
    begin = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    print(run(range(begin, 10**9), float(sys.argv[1]) if len(sys.argv) > 1 else 60))
