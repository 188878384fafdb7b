"""Lists the names of torch.fx that other packages use, and whether cfx has them.

    python tools/client_names.py [--missing] PACKAGE ...

PACKAGE is the name of an installed package or a folder with Python files. Nothing of it is run or
imported: its files are parsed. With --missing only names that torch.fx has and cfx lacks are shown;
then the exit status is 1 if there are any.
"""
import argparse
import ast
import collections
import importlib
import importlib.util
import sys
import warnings
from pathlib import Path

FX = "torch.fx"


class Uses(ast.NodeVisitor):
    """Collects dotted names that begin with torch.fx, under whatever name they were imported."""

    def __init__(self):
        self.found = set()
        self.aliases = {"torch": "torch"}

    def dotted(self, node):
        """The full name of `a.b.c` if `a` was imported from torch; else None."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id)
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return f"{base}.{node.attr}" if base else None
        return None

    def add(self, name):
        if name == FX or name.startswith(f"{FX}."):
            self.found.add(name)

    def visit_Import(self, node):
        for alias in node.names:
            self.add(alias.name)
            if alias.asname:
                self.aliases[alias.asname] = alias.name

    def visit_ImportFrom(self, node):
        if node.level == 0 and node.module and node.module.partition(".")[0] == "torch":
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                self.add(node.module if alias.name == "*" else name)
                self.aliases[alias.asname or alias.name] = name

    def visit_Attribute(self, node):
        name = self.dotted(node)
        if name is None:
            self.generic_visit(node)
        else:
            self.add(name)


def names_in(source):
    """The names of torch.fx that a source uses."""
    uses = Uses()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about strings in other people's sources
        uses.visit(ast.parse(source))
    return uses.found


def folder_of(package):
    if Path(package).is_dir():
        return Path(package)
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"{package} is neither a folder nor an installed package")
    return Path(spec.submodule_search_locations[0])


def uses_of(folder):
    found = set()
    for path in sorted(folder.rglob("*.py")):
        try:
            found |= names_in(path.read_text(encoding="utf-8", errors="replace"))
        except (SyntaxError, ValueError):  # a template, or for another Python
            continue
    return found


def resolve(name, home):
    """The longest part of a name of torch.fx that leads somewhere in `home`; True: all of it does,
    up to an attribute of something that is not a module."""
    module = importlib.import_module(home)
    for part in name.split(".")[2:]:
        try:
            found = getattr(module, part)
        except AttributeError:
            try:
                found = importlib.import_module(f"{module.__name__}.{part}")
            except ImportError:
                return False
        if not hasattr(found, "__path__") and not hasattr(found, "__spec__"):
            return True
        module = found
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--missing", action="store_true", help="only what cfx lacks")
    parser.add_argument("package", nargs="+")
    options = parser.parse_args()
    clients = collections.defaultdict(set)
    for package in options.package:
        for name in uses_of(folder_of(package)):
            clients[name].add(Path(package).name)
    rows = []
    for name in sorted(clients):
        there, here = resolve(name, FX), resolve(name, "cfx")
        if there and (not here or not options.missing):
            rows.append((name, "yes" if here else "NO", ", ".join(sorted(clients[name]))))
    width = max((len(row[0]) for row in rows), default=0)
    for name, here, users in rows:
        print(f"{name:{width}}  {here:3}  {users}")
    missing = sum(row[1] == "NO" for row in rows)
    print(f"{len(rows)} names, of which cfx lacks {missing}")
    sys.exit(1 if options.missing and missing else 0)


if __name__ == "__main__":
    main()
