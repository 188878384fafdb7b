"""Trees of arguments and results (structure.py) as values of a file, and back.

A class is a text in a file: "my.module:Cache". Loading imports nothing: the class is used if it is
loaded already and only holds data; else a record with the same fields stands in for it.
"""
import collections
import dataclasses
import sys
import types
from collections.abc import Iterable
from typing import Any

from .structure import Known, Tree

_BUILTIN = {
    "tuple": tuple, "list": list, "dict": dict, "deque": collections.deque,
    "OrderedDict": collections.OrderedDict, "defaultdict": collections.defaultdict,
}  # fmt: skip
_DEEPEST = 200  # of trees in a file


class StructureError(ValueError):
    """A structure in a file that is not one."""


# ---- writing -----------------------------------------------------------------------------------


def class_name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _written_key(tree: Tree) -> Any:
    """The key of a tree, with what a record needs to know of the class."""
    if tree.kind == "named":
        return tree.type._fields
    if tree.kind != "registered":
        return tree.key
    base = next((c.__name__ for c in (dict, list, tuple) if issubclass(tree.type, c)), "object")
    return tree.key, base


def tree_values(tree: Tree) -> Any:
    """A tree as values: None for a leaf, ("same", number), or (kind, class, key, parts, number)."""
    if tree.kind is None:
        return None
    if tree.kind == "same":
        return "same", tree.key
    parts = tuple(map(tree_values, tree.parts))
    if tree.kind in _BUILTIN or tree.kind == "Size":
        return tree.kind, None, tree.key, parts, tree.number
    kind, key = getattr(tree.type, "_written", None) or (tree.kind, _written_key(tree))
    return kind, class_name(tree.type), key, parts, tree.number


# ---- records -----------------------------------------------------------------------------------


class DictRecord(collections.OrderedDict):
    """Stands in for a class derived from dict: items are attributes, too, and have numbers."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no {name!r}") from None

    def __getitem__(self, key: Any) -> Any:
        if type(key) in (int, slice) and key not in self.keys():
            return tuple(self.values())[key]
        return super().__getitem__(key)


class ObjectRecord:
    """Stands in for a class whose objects have attributes."""

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"


def _record(name: str, kind: str, key: Any, count: int) -> type:
    """A class that stands in for one that is not loaded: of the same name, with the same fields."""
    module, _, path = name.partition(":")
    last = path.rpartition(".")[2]
    body = {"__module__": module, "__qualname__": path, "_written": (kind, key)}
    base: Any
    if kind == "object":
        base = ObjectRecord
    elif kind == "derived tuple":
        base = tuple
    elif kind == "derived":
        base = DictRecord if key[0] or not key[1] else list
    elif kind == "registered" and key[1] == "dict":
        base = DictRecord
    else:
        fields = key if kind == "named" else [f"item{i}" for i in range(count)]
        plain = last if last.isidentifier() else "Record"
        make: Any = collections.namedtuple  # mypy wants names that are written out
        base = make(plain, fields, rename=True)
        body["__slots__"] = ()
    return type(last, (base,), body)


class Classes:
    """The classes that a file names. `allow` lists modules, and classes as "my.module:Cache", whose
    objects may be made even if they are more than data."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self.allow = {a.__name__ if isinstance(a, types.ModuleType) else a for a in allow}
        self.records: dict[tuple[str, str, str], type] = {}

    def _is_allowed(self, name: str) -> bool:
        module = name.partition(":")[0]
        homes = {module.rsplit(".", i)[0] for i in range(module.count(".") + 1)}
        return name in self.allow or bool(homes & self.allow)

    def find(self, name: str) -> Any:
        """A class that is loaded already; None if there is none."""
        module, _, path = name.partition(":")
        found: Any = sys.modules.get(module)
        for part in path.split("."):
            found = vars(found).get(part) if isinstance(found, (type, types.ModuleType)) else None
        return found if isinstance(found, type) and class_name(found) == name else None

    def _fits(self, name: str, kind: str, cls: type) -> bool:
        """Whether objects of the class may be made from parts of a file. Those of classes that end
        with code of their own, or that are not declared as data, have to be allowed."""
        shape = {
            "named": issubclass(cls, tuple) and hasattr(cls, "_fields"),
            "registered": cls in Known.registered,
            "derived": issubclass(cls, (dict, list)),
            "derived tuple": issubclass(cls, tuple) and cls.__new__ is tuple.__new__,
            "object": cls.__new__ is object.__new__ and not issubclass(cls, Known.whole),
        }[kind]
        is_data = kind != "object" or dataclasses.is_dataclass(cls)
        return shape and (self._is_allowed(name) or (is_data and not hasattr(cls, "__del__")))

    def tree(self, kind: str, name: Any, key: Any, parts: tuple[Tree, ...],
             number: int | None) -> Tree:  # fmt: skip
        """The tree of a class that is found, or of a record."""
        if not isinstance(name, str):
            raise StructureError(f"the class of a {kind} is not a text")
        cls = self.find(name)
        if cls is not None and self._fits(name, kind, cls):
            plain = {"named": lambda: None, "registered": lambda: key[0]}.get(kind, lambda: key)
            if kind == "named" and len(cls._fields) != len(parts):
                raise StructureError(f"{name} has other fields than when the file was written")
            return Tree(kind, cls, plain(), parts, number)
        return self._of_record(kind, name, key, parts, number)

    def _of_record(self, kind: str, name: str, key: Any, parts: tuple[Tree, ...],
                   number: int | None) -> Tree:  # fmt: skip
        full = name, kind, repr(key)
        if full not in self.records:
            self.records[full] = _record(name, kind, key, len(parts))
        cls = self.records[full]
        if issubclass(cls, DictRecord) and kind == "registered":
            return Tree("derived", cls, (tuple(key[0]), len(parts), ()), parts, number)
        if issubclass(cls, tuple) and kind != "derived tuple":
            return Tree("named", cls, None, parts, number)
        return Tree(kind, cls, key, parts, number)


def adopted(given: Tree, wanted: Tree, found: dict[type, type]) -> bool:
    """Whether a caller's objects are what records stand in for: the same structure, of classes of
    the same names. `found` gets the classes."""
    if given == wanted:
        return True
    if given.type is not wanted.type:
        is_record = hasattr(wanted.type, "_written") and isinstance(given.type, type)
        if not is_record or class_name(given.type) != class_name(wanted.type):
            return False
        found[wanted.type] = given.type
    kind, key = getattr(wanted.type, "_written", (wanted.kind, wanted.key))
    if kind == "named" or kind == "registered":
        key = given.key if kind == "named" else key[0]
    alike = (given.kind, given.key, given.number) == (kind, key, wanted.number)
    return alike and len(given.parts) == len(wanted.parts) and all(
        adopted(*both, found) for both in zip(given.parts, wanted.parts))


def with_classes(tree: Tree, found: dict[type, type]) -> Tree:
    """A tree with classes instead of the records that stand in for them."""
    parts = tuple(with_classes(part, found) for part in tree.parts)
    if tree.type not in found:
        return tree._replace(parts=parts)
    kind, key = tree.type._written
    key = {"named": lambda: None, "registered": lambda: key[0]}.get(kind, lambda: key)()
    return Tree(kind, found[tree.type], key, parts, tree.number)


# ---- reading -----------------------------------------------------------------------------------

_LENGTHS = {"dict": len, "OrderedDict": len, "object": len, "defaultdict": lambda key: len(key[1]),
            "derived": lambda key: key[1] + len(key[2]), "named": len,
            "derived tuple": lambda key: key[1] + len(key[2]),
            "registered": lambda key: None}  # fmt: skip


def tree_of(values: Any, classes: Classes, depth: int = 0) -> Tree:
    """The tree that a file has."""
    if values is None:
        return Tree(None)
    if not isinstance(values, tuple) or depth > _DEEPEST:
        raise StructureError("a structure in the file is not one, or nests too deeply")
    if values[:1] == ("same",) and len(values) == 2 and isinstance(values[1], int):
        return Tree("same", key=values[1])
    if len(values) != 5 or not isinstance(values[3], tuple) or not isinstance(
            values[4], (int, type(None))):  # fmt: skip
        raise StructureError("a structure in the file is not one")
    kind, name, key, parts, number = values
    parts = tuple(tree_of(part, classes, depth + 1) for part in parts)
    try:
        if kind in _LENGTHS and _LENGTHS[kind](key) not in (len(parts), None):
            raise StructureError(f"a {kind} in the file has {len(parts)} parts, and other keys")
        if kind in _BUILTIN:
            return Tree(kind, _BUILTIN[kind], key, parts, number)
        if kind == "Size":
            return Tree(kind, Known.size, key, parts, number)
        return classes.tree(kind, name, key, parts, number)
    except (TypeError, KeyError, IndexError, ValueError) as error:
        if isinstance(error, StructureError):
            raise
        raise StructureError(f"a structure in the file is not one: {error}") from error
