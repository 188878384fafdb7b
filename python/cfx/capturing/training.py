"""Flags `training` of modules: the settings of them that a graph holds for.

A program may ask any module for its mode. So a graph holds for the flags that the modules had when
it was captured; flags of layers that it calls as a whole are live. Where graphs of several settings
differ only in literals, they become one, in which the flags are values (src/check/merge_modes.c):
F.dropout(x, p, self.training).
"""
from collections.abc import Iterable
from typing import Any

import torch

from .. import _core
from .boundary import Boundary


def module_paths(root: torch.nn.Module, layers: Iterable[str]) -> tuple[str, ...]:
    """The modules of a tree, outer ones first, but for those in layers that a graph calls."""
    called, seen = set(layers), {id(root)}
    paths, todo = [], [("", root)]
    while todo:
        path, module = todo.pop()
        paths.append(path)
        for name, child in module._modules.items():
            inner = f"{path}.{name}" if path else name
            if child is not None and inner not in called and id(child) not in seen:
                seen.add(id(child))
                todo.append((inner, child))
    return tuple(paths)


def read_flags(root: torch.nn.Module, paths: Iterable[str]) -> bytes:
    """The flags of modules, a byte for each. One that is not there has that of the module that it
    would be in."""
    found: dict[str, tuple[Any, bool]] = {}
    flags = bytearray()
    for path in paths:
        outer, _, name = path.rpartition(".")
        module, exists = found[outer] if path else (root, True)
        inner = module._modules.get(name) if path and exists else None
        found[path] = entry = (inner, True) if inner is not None else (module, not path)
        flags.append(bool(entry[0].training))
    return bytes(flags)


def take_modules(module: torch.nn.Module, root: torch.nn.Module, paths: Iterable[str]) -> None:
    """Gives a captured module the modules of these paths that it has not got, for their flags; they
    have the flags of the model."""
    have = {path for path, _ in module.named_modules()}
    missing = [path for path in paths if path not in have]
    _core._copy_attrs(root, module, [f"{path}.training" for path in missing])
    for path, made in module.named_modules() if missing else ():
        if path not in have:  # also those around them
            made.training = root.get_submodule(path).training


class Settings:
    """The settings of the flags that a graph holds for: `known`, of the modules `paths`; and what
    checks them and the rest of a call in C, which copies do not share. It has no __dict__: that
    `entry` is made by the first call is not something that a program has changed, which a capture
    of a model around this module would keep."""

    __slots__ = ("entry", "known", "paths")

    def __init__(self, paths: tuple[str, ...], known: tuple[bytes, ...]) -> None:
        self.paths, self.known = paths, known
        self.entry: Any = None

    def __reduce__(self) -> Any:
        return Settings, (self.paths, self.known)

    def holds(self, home: torch.nn.Module) -> bool:
        return not self.paths or read_flags(home, self.paths) in self.known

    def text(self) -> str:
        """The settings in words."""
        words = ("evaluation mode", "training mode")
        whole = [words[flags[0]] for flags in self.known if len(set(flags)) == 1]
        mixed = len(self.known) - len(whole)
        parts = [*dict.fromkeys(whole), *(["a mixture of both"] if mixed else [])]
        return " and ".join(parts)


def merge(one: Any, two: Any) -> bool:
    """Makes one graph of those of two captured modules, where that is possible: then `one` holds
    for the setting of `two`, too."""
    if one._settings.paths != two._settings.paths or not one._settings.paths:
        return False
    if not same_boundary(one._boundary, two._boundary) or not _same_constants(one, two):
        return False
    known = *one._settings.known, *two._settings.known
    if not one.graph._merge_modes(two.graph, list(one._settings.paths), b"".join(known)):
        return False
    one.__dict__.update(_settings=Settings(one._settings.paths, known))
    one.__dict__["_writes"] = one._writes or two._writes
    return True


def same_boundary(one: Boundary, two: Boundary) -> bool:
    """Whether two graphs take and give the same, and assume the same of it."""
    names = ("tree", "leaves", "after", "read", "assigned", "result", "out")
    same_slots = [s[:2] + s[3:] for s in one.slots], [s[:2] + s[3:] for s in two.slots]
    return (
        one.around.alike(two.around)
        and _questions(one) == _questions(two)
        and _alike(*same_slots)
        and all(_alike(getattr(one, name), getattr(two, name)) for name in names)
    )


def _questions(boundary: Boundary) -> set[Any]:
    """What the guards of a graph ask, and the answers."""
    return {(expression, value) for _, expression, value, *_ in boundary.guards.rows()}


def _alike(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, torch.Tensor):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_alike, a, b))
    try:
        return bool(a == b)
    except Exception:  # whatever classes make of ==
        return False


def _same_constants(one: Any, two: Any) -> bool:
    """Whether two graphs mean the same tensors by the names that they have for those from
    outside of the model."""
    names = (path for path in two.graph._paths(False) if path.startswith("_constant_"))
    return all(getattr(one, name, None) is getattr(two, name) for name in names)
