#!/usr/bin/env python3
"""py_api.py - the signatures of the Python API against tests/golden/python_api.txt (--update).

Needs the built extension and PYTHONPATH=python.
"""
import argparse
import difflib
import importlib
import inspect
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests/golden/python_api.txt"
MODULES = [  # what two of them have is described where it comes first
    "cfx.graph", "cfx.node", "cfx.immutable_collections", "cfx._pytree", "cfx._compatibility",
    "cfx",
]  # fmt: skip


def public(module):
    """What a module offers: its __all__, or what it defines itself under a public name."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    )


def signature(function):
    """Parameters with their defaults, without self and annotations; None if they are unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    plain = [p.replace(annotation=p.empty) for p in parameters if p.name != "self"]
    return inspect.Signature(plain)


def members(class_):
    """The public members that a class or a base of it in cfx defines: (name, value)."""
    for name in sorted(dir(class_)):
        owner = next((c for c in class_.__mro__ if name in vars(c)), None)
        ours = owner is not None and owner.__module__.startswith("cfx")
        if ours and (not name.startswith("_") or name == "__init__"):
            yield name, getattr(class_, name, None)  # what only an object has: None


def describe(path, value):
    text = signature(value) if callable(value) and not isinstance(value, type) else None
    yield f"class {path}" if isinstance(value, type) else f"{path}{text or ''}"
    for name, member in members(value) if isinstance(value, type) else ():
        yield from describe(f"{path}.{name}", member)


def lines():
    known = {}
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in public(module):
            value = getattr(module, name)
            path = f"{module_name}.{name}"
            first = known.setdefault(id(value), path)
            yield from describe(path, value) if first == path else [f"{path} = {first}"]


def difference():
    """The golden file against what there is now, as a diff; empty if they agree."""
    old = GOLDEN.read_text().splitlines() if GOLDEN.exists() else []
    return list(difflib.unified_diff(old, list(lines()), GOLDEN.name, "now", lineterm=""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true")
    if parser.parse_args().update:
        GOLDEN.write_text("".join(f"{line}\n" for line in lines()))
    diff = difference()
    print(*diff, sep="\n")
    return bool(diff)


if __name__ == "__main__":
    sys.exit(main())
