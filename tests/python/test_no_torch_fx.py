"""cfx stands on its own: its Python neither uses torch.fx, torch.jit or torch.export, nor is there
much of it. Looks at the syntax tree of every file, whatever way a module is spelled."""
import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python/cfx"
FORBIDDEN = re.compile(r"torch\.(fx|jit|export)(\.\w+)*")
ALLOWED = {  # file or folder: what it may name
    # also the question that models ask before they take a way for the present sizes alone
    "interop": re.compile(
        r"torch\.(fx(\.\w+)*|jit\.(is_tracing|load|ScriptModule|ScriptFunction)|export\.load)"),
    "operator_schemas.py": re.compile(r"torch\.jit\._builtins(\.\w+)*"),
    "_glue/scripting.py": re.compile(r"torch\.jit"),  # the name, to know it in programs of users
}


# ---- the checker


def text_of(node):
    """The string that an expression of constants stands for, or None."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [text_of(node.left), text_of(node.right)]
    elif isinstance(node, ast.JoinedStr):
        parts = [text_of(value) for value in node.values]
    elif isinstance(node, ast.FormattedValue):
        return text_of(node.value)
    else:
        return None
    return None if None in parts else "".join(parts)


class Names(ast.NodeVisitor):
    """Collects (line, dotted name) of every module of torch that a file mentions."""

    def __init__(self):
        self.found = []
        self.aliases = {"torch": "torch"}

    def add(self, node, name):
        if FORBIDDEN.fullmatch(name):
            self.found.append((node.lineno, name))

    def dotted(self, node):
        """The full name of `a.b.c`, or of getattr(a.b, "c"), if `a` is torch's; else None."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id)
        if isinstance(node, ast.Attribute):
            base, attr = self.dotted(node.value), node.attr
        elif isinstance(node, ast.Call) and len(node.args) >= 2 and (
            isinstance(node.func, ast.Name) and node.func.id == "getattr"
        ):
            base, attr = self.dotted(node.args[0]), text_of(node.args[1])
        else:
            return None
        return f"{base}.{attr}" if base and attr else None

    def visit_Import(self, node):
        for alias in node.names:
            self.add(node, alias.name)
            if alias.name.split(".")[0] == "torch":
                self.aliases[alias.asname or "torch"] = alias.name if alias.asname else "torch"

    def visit_ImportFrom(self, node):
        if node.level == 0 and node.module.split(".")[0] == "torch":
            self.add(node, node.module)
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                self.add(node, name)
                self.aliases[alias.asname or alias.name] = name

    def visit_Assign(self, node):
        """`t = torch` makes another name for it."""
        name = self.dotted(node.value)
        for target in node.targets:
            if name is not None and isinstance(target, ast.Name):
                self.aliases[target.id] = name
        self.generic_visit(node)

    def visit_Attribute(self, node):
        name = self.dotted(node)
        self.add(node, name or "")
        if name is None:  # else the whole says more than its parts
            self.generic_visit(node)

    def visit_Call(self, node):
        self.add(node, self.dotted(node) or "")
        texts = [text for text in map(text_of, node.args) if text is not None]
        if len(texts) == 2 and texts[0].startswith("."):  # import_module(".fx", "torch")
            self.add(node, texts[1] + texts[0])
        self.generic_visit(node)

    def generic_visit(self, node):
        text = text_of(node)
        if text is not None:
            self.add(node, text)
        if not isinstance(node, ast.JoinedStr) or text is None:
            super().generic_visit(node)


def names_in(source):
    visitor = Names()
    visitor.visit(ast.parse(source))
    return sorted(set(visitor.found))


# ---- what it finds


@pytest.mark.parametrize(
    "source",
    [
        "import torch.fx",
        "import os, torch.fx.graph as g",
        "import torch.jit",
        "from torch import fx",
        "from torch import nn, jit as j",
        "from torch.fx import Graph",
        "from torch.fx.graph import Graph",
        "from torch.export import export",
        "def f():\n    from torch.fx import wrap",
        "import torch\nx = torch.fx",
        "import torch\nx = torch.fx.Graph()",
        "import torch\nx = torch.export.export",
        "import torch as t\nt.fx.Graph()",
        "def f(torch):\n    return torch.jit.script",
        "import torch\nt = torch\nt.fx",
        "getattr(torch, 'fx')",
        "getattr(torch, 'f' + 'x').Graph",
        "import importlib\nimportlib.import_module('torch.fx.node')",
        "importlib.import_module('torch.' + 'fx')",
        "importlib.import_module(f'torch.{\"fx\"}')",
        "importlib.import_module('.fx', 'torch')",
        "__import__('torch.jit')",
        "import sys\nsys.modules['torch.fx']",
        "sys.modules.get('torch.export')",
        "from torch.jit import _builtins",
    ],
)
def test_finds(source):
    assert names_in(source)


@pytest.mark.parametrize(
    "source",
    [
        "import torch.nn, torch.utils._pytree",
        "from torch import nn, fxx",
        "'''torch.fx does this'''",
        "x = 'as torch.fx.Graph does'",
        "from .fx import torch",
        "from . import export, jit",
        "self.fx.Graph, self.torch_fx, fx.jit",
        "torch.fx_like, torch.exporter, torch._C._jit_get_all_schemas()",
    ],
)
def test_leaves_alone(source):
    assert names_in(source) == []


# ---- cfx itself


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.name)
def test_file(path):
    place = path.relative_to(PACKAGE)
    allowed = ALLOWED.get(place.parts[0]) or ALLOWED.get(place.as_posix())
    found = [
        f"line {line}: {name}"
        for line, name in names_in(path.read_text())
        if not (allowed and allowed.fullmatch(name))
    ]
    assert found == []


def lines(*patterns):
    files = [path for pattern in patterns for path in ROOT.glob(pattern)]
    return sum(len(path.read_text().splitlines()) for path in files)


def test_most_of_it_is_c():
    c = lines("src/**/*.[ch]", "src/**/*.def", "include/cfx/**/*.*", "python/src/*.[ch]")
    python = lines("python/cfx/**/*.py")
    print(f"{c} lines of C, {python} of Python: {c / python:.1f} to 1")
    assert c >= 5 * python
