"""How arguments and results are nested, around a graph that works on flat lists.

A tree describes a value: tuples, lists, dicts, named tuples, dataclasses, classes that are
registered with torch.utils._pytree, and any other object with attributes that hold tensors. Its
leaves are in a list of their own. An object that occurs twice is described once, so aliases stay
aliases; and what a run changes in its arguments is described as a second tree of the same objects,
so that a call of the graph changes the caller's objects as the program does.

Files keep trees (stored.py), and are run without torch: nothing here imports it.
"""
import collections
import dataclasses
import enum
import functools
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

# Objects that nobody looks into: they are compared as a whole.
_WHOLE = (
    type(None), bool, int, float, complex, str, bytes, type, enum.Enum, range, types.FunctionType,
    types.BuiltinFunctionType, types.MethodType, types.ModuleType,
)  # fmt: skip


class Known:
    """What else is known of classes, as soon as somebody captures programs (learn_torch)."""

    whole: tuple[type, ...] = _WHOLE
    symbols: tuple[Any, ...] = ()  # classes of the numbers of a run
    registered: dict[type, Any] = {}  # classes that are registered with pytree
    size: type = tuple  # torch.Size


def learn_torch(torch: Any, symbols: tuple[type, ...], registered: dict[type, Any]) -> None:
    """Tells what torch's own classes are, and those of the numbers of a run."""
    Known.whole = (
        *_WHOLE, torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Tensor,
        torch.nn.Module, torch.Generator, *symbols,
    )  # fmt: skip
    Known.symbols, Known.registered, Known.size = symbols, registered, torch.Size


LIBRARIES = frozenset((*sys.stdlib_module_names, "torch", "cfx", "numpy")) - {
    "__main__", "types", "collections"}
_MOST = 2000  # parts of an object without tensors that are looked at


class Tree(NamedTuple):
    """A part of a value. A tree without a kind is a leaf."""

    kind: str | None  # a row of KINDS; "same": the object of that number once more
    type: Any = None
    key: Any = None  # keys, names, the context of a registered class; of a leaf its number
    parts: tuple["Tree", ...] = ()
    number: int | None = None  # of an object that can be changed


class Kind(NamedTuple):
    """How values of a kind are taken apart, put together, and given other contents."""

    split: Callable[[Any], tuple[Any, list[Any]]]  # value -> key, parts
    make: Callable[[Any, Any, list[Any]], Any]  # type, key, parts -> value
    refill: Callable[[Any, Any, list[Any]], None] | None = None  # value, key, parts


def _make_object(cls: type, names: Any, parts: list[Any]) -> Any:
    made: Any = object.__new__(cls)
    _refill_object(made, names, parts)
    return made


def _refill_object(value: Any, names: Any, parts: list[Any]) -> None:
    for name in [name for name in _attributes(value) if name not in names]:
        object.__delattr__(value, name)
    for name, part in zip(names, parts):
        object.__setattr__(value, name, part)


def _attributes(value: Any) -> dict[str, Any]:
    """The attributes of an object, those in slots included."""
    found = dict(getattr(value, "__dict__", ()))
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found.setdefault(name, getattr(value, name))
    return found


def _refill_list(value: Any, key: Any, parts: list[Any]) -> None:
    value[:] = parts


def _refill_deque(value: Any, maxlen: Any, parts: list[Any]) -> None:
    value.clear()
    value.extend(parts)


def _refill_dict(value: Any, keys: Any, parts: list[Any]) -> None:
    value.clear()
    value.update(zip(keys, parts))


def _split_dict(value: Any) -> tuple[Any, list[Any]]:
    """Keys that are numbers of a run were hashed: then they are fixed, and this has been noted."""
    return tuple(map(_plain_key, value)), list(value.values())


def _split_default(value: Any) -> tuple[Any, list[Any]]:
    keys, parts = _split_dict(value)
    return (value.default_factory, keys), parts


def _make_default(cls: type, key: Any, parts: list[Any]) -> Any:
    made: Any = collections.defaultdict(key[0])
    _refill_dict(made, key[1], parts)
    return made


def _plain_key(key: Any) -> Any:
    if isinstance(key, Known.symbols):
        return key.node.value
    return tuple(map(_plain_key, key)) if type(key) in (tuple, Known.size) else key


def _base_of(cls: type) -> Any:
    """The builtin container that a class derives from."""
    return next(c for c in (collections.OrderedDict, dict, list, tuple) if issubclass(cls, c))


def _split_derived(value: Any) -> tuple[Any, list[Any]]:
    """Of a class derived from dict, list or tuple: items, then attributes."""
    base, own = _base_of(type(value)), _attributes(value)
    keys, items = (), list(base.__iter__(value))
    if issubclass(base, dict):
        keys, items = tuple(items), [dict.__getitem__(value, key) for key in items]
    return (keys, len(items), tuple(own)), [*items, *own.values()]


def _make_derived(cls: type, key: Any, parts: list[Any]) -> Any:
    base = _base_of(cls)
    made = base.__new__(cls, *([parts[: key[1]]] if base is tuple else []))
    if base is not tuple:
        _refill_derived(made, key, parts)
    return made


def _refill_derived(value: Any, key: Any, parts: list[Any]) -> None:
    base = _base_of(type(value))
    keys, count, names = key or ((), 0, ())
    base.clear(value)
    if issubclass(base, dict):
        for name, part in zip(keys, parts):
            base.__setitem__(value, name, part)
    else:
        base.extend(value, parts[:count])
    _refill_object(value, names, parts[count:])


def _split_registered(value: Any) -> tuple[Any, list[Any]]:
    parts, context = Known.registered[type(value)].flatten_fn(value)
    return context, list(parts)


def _make_registered(cls: type, context: Any, parts: list[Any]) -> Any:
    return Known.registered[cls].unflatten_fn(parts, context)


KINDS = {
    "tuple": Kind(lambda v: (None, list(v)), lambda cls, key, parts: tuple(parts)),
    "Size": Kind(lambda v: (None, list(v)), lambda cls, key, parts: Known.size(parts)),
    "named": Kind(lambda v: (None, list(v)), lambda cls, key, parts: cls(*parts)),
    "list": Kind(lambda v: (None, list(v)), lambda cls, key, parts: list(parts), _refill_list),
    "dict": Kind(_split_dict, lambda cls, keys, parts: dict(zip(keys, parts)), _refill_dict),
    "OrderedDict": Kind(_split_dict, lambda cls, keys, parts: cls(zip(keys, parts)), _refill_dict),
    "defaultdict": Kind(_split_default, _make_default,
                        lambda value, key, parts: _refill_dict(value, key[1], parts)),
    "deque": Kind(lambda v: (v.maxlen, list(v)),
                  lambda cls, maxlen, parts: collections.deque(parts, maxlen),
                  _refill_deque),
    "registered": Kind(_split_registered, _make_registered),
    "derived": Kind(_split_derived, _make_derived, _refill_derived),
    "derived tuple": Kind(_split_derived, _make_derived),
    "object": Kind(lambda v: (tuple(a := _attributes(v)), list(a.values())), _make_object,
                   _refill_object),
}  # fmt: skip


@functools.lru_cache(maxsize=64)
def _is_whole_class(cls: Any) -> bool:
    return issubclass(cls, _WHOLE) or hasattr(cls, "__dlpack__")


def is_whole(value: Any) -> bool:
    """Whether nobody looks into a value, whatever else is known of its class."""
    cls: Any = type(value)
    return _is_whole_class(cls)


def _kind_of(value: Any) -> str | None:
    """How a value is described; None for a leaf."""
    cls = type(value)
    if issubclass(cls, Known.whole) or hasattr(cls, "__dlpack__"):
        return None
    if cls in (tuple, list, dict, collections.deque, collections.OrderedDict,
               collections.defaultdict, Known.size):
        return cls.__name__
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return "named"
    if cls in Known.registered and issubclass(cls, (dict, list, tuple, collections.deque)):
        return "registered"
    if issubclass(cls, tuple):
        return "derived tuple" if cls.__new__ is tuple.__new__ else None
    if issubclass(cls, (dict, list)):
        return "derived"
    if dataclasses.is_dataclass(cls) or _can_be_remade(cls):
        return "object"
    return "registered" if cls in Known.registered else None


def _can_be_remade(cls: type) -> bool:
    """Whether an object is nothing but its attributes: of a class written in Python, that is not
    part of Python or torch."""
    if cls.__module__.partition(".")[0] in LIBRARIES:
        return False
    return cls.__flags__ & (1 << 9) != 0 and cls.__new__ is object.__new__  # a heap type


class Flattened:
    """A value, taken apart."""

    def __init__(self) -> None:
        self.leaves: list[Any] = []
        self.paths: list[Path] = []
        self.settings: list[bool] = []  # for each leaf: whether it is in an object without tensors
        self.objects: list[Any] = []  # those that can be changed, by number
        self._numbers: dict[int, int] = {}

    def tree(self, value: Any, path: tuple[Any, ...], setting: bool = False) -> Tree:
        """Describes a value, whose leaves and objects are added to the lists."""
        if id(value) in self._numbers:
            return Tree("same", key=self._numbers[id(value)])
        kind = _kind_of(value)
        if kind == "object" and not setting and not _holds_tensors(value):
            setting = True
        if setting and len(self.leaves) > _MOST:
            kind = None
        if kind is None:
            self.leaves.append(value)
            self.paths.append(Path(path))
            self.settings.append(setting)
            return Tree(None)
        number = None
        if KINDS[kind].refill is not None:
            number = self._numbers[id(value)] = len(self.objects)
            self.objects.append(value)
        key, parts = KINDS[kind].split(value)
        described = tuple(self.tree(part, (*path, step(kind, key, i)), setting)
                          for i, part in enumerate(parts))  # fmt: skip
        return Tree(kind, type(value), key, described, number)


def step(kind: str, key: Any, i: int) -> tuple[str, Any]:
    """How a part is reached: an attribute, or an item."""
    if kind == "object":
        return "attribute", key[i]
    if kind.lower().endswith("dict"):
        return "item", key[1][i] if kind == "defaultdict" else key[i]
    if kind.startswith("derived"):
        keys, count, names = key
        return ("attribute", names[i - count]) if i >= count else ("item", keys[i] if keys else i)
    if kind == "registered" and isinstance(key, (list, tuple)) and i < len(key) and isinstance(
            key[i], str):  # fmt: skip
        return "item", key[i]
    return "item", i


class Path(tuple[Any, ...]):
    """How a leaf is reached: a name, then steps. Its text is what Python would write."""

    def __str__(self) -> str:
        steps = (f"[{key!r}]" if kind == "item" else f".{key}" for kind, key in self[1:])
        return self[0] + "".join(steps)


def _holds_tensors(value: Any, depth: int = 8, seen: set[int] | None = None) -> bool:
    """Whether there is a tensor somewhere in a value."""
    seen = set() if seen is None else seen
    if hasattr(type(value), "__dlpack__"):
        return True
    kind = _kind_of(value)
    if kind is None or depth == 0 or id(value) in seen:
        return False
    seen.add(id(value))
    return any(_holds_tensors(part, depth - 1, seen) for part in KINDS[kind].split(value)[1])


class Rebuilt:
    """Puts values together again. `objects` are taken for the objects of those numbers: they get
    the contents that the tree has for them."""

    def __init__(self, leaves: Any, objects: Sequence[Any]) -> None:
        self.leaves = iter(leaves)
        self.objects: dict[int, Any] = dict(enumerate(objects))
        self.n_given = len(objects)

    def value(self, tree: Tree) -> Any:
        if tree.kind is None:
            return next(self.leaves)
        if tree.kind == "same":
            return self.objects[tree.key]
        kind = KINDS[tree.kind]
        if tree.number is None or kind.refill is None:
            return kind.make(tree.type, tree.key, [self.value(part) for part in tree.parts])
        if tree.number not in self.objects:  # known before its parts: they may contain it
            self.objects[tree.number] = kind.make(tree.type, tree.key, [])
        found = self.objects[tree.number]
        kind.refill(found, tree.key, [self.value(part) for part in tree.parts])
        return found


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of a value with other leaves."""
    taken = Flattened()
    tree = taken.tree(value, ("",))
    return Rebuilt([change(leaf) for leaf in taken.leaves], []).value(tree)
