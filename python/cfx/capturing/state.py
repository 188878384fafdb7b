"""Attributes of modules that a program changes: the graph reads and writes them.

A buffer that is assigned a tensor of its own shape and dtype is written by the graph itself, with
copy_. Any other attribute that a run changes is a slot. The run is begun again with the tensors and
numbers of the slot's value replaced by ones that the graph reads (get_attr), so that a counter
counts; and when the graph has run, the captured module assigns what it computed. What the program
reads of a slot before it assigns it is checked on entry, as arguments are.
"""
import contextlib
import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .. import _core
from .boundary import FixedLeaf, NumberLeaf, TensorLeaf
from .numbers import Number, symbol
from .structure import Flattened, Path, Rebuilt, Tree
from .witness import Witness

if TYPE_CHECKING:
    from .recorder import Recorder

MISSING = type("Missing", (), {"__repr__": lambda self: "missing", "__reduce__": lambda self:
                               "MISSING"})()  # fmt: skip


class Slot(NamedTuple):
    """An attribute that the program changes."""

    path: str  # from the root: "encoder.calls"
    tree: Tree  # its value when the model was captured
    leaves: tuple[Any, ...]
    rules: tuple[Any, ...]  # for each leaf

    def initial(self) -> Any:
        return Rebuilt(self.leaves, []).value(self.tree)

    def refusal(self, value: Any) -> str | None:
        """Why the graph does not hold for a value of the attribute; None if it does."""
        taken = Flattened()
        if taken.tree(value, (self.path,)) != self.tree:
            return f"{self.path} has another structure than when the model was captured"
        found = (rule.refusal(leaf) for rule, leaf in zip(self.rules, taken.leaves))
        return next((why for why in found if why is not None), None)


def own_attribute(module: Any, name: str) -> Any:
    """An attribute that the module itself has, not its class; MISSING if there is none."""
    own = vars(module)
    tables = (own, *(own.get(table, {}) for table in ("_parameters", "_buffers", "_modules")))
    return next((table[name] for table in tables if name in table), MISSING)


def read_attribute(root: Any, path: str) -> Any:
    """Likewise for a path."""
    for name in path.split("."):
        root = own_attribute(root, name) if isinstance(root, torch.nn.Module) else MISSING
    return root


class Slots:
    """The slots of one run."""

    def __init__(self, root: torch.nn.Module, known: list[tuple[str, str]]) -> None:
        self.root, self.known = root, known
        self.slots: dict[tuple[str, str], Slot] = {}
        self.read: set[tuple[str, str]] = set()  # before they were assigned
        self.written: set[tuple[str, str]] = set()

    def prepare(self, recorder: "Recorder") -> None:
        """Replaces tensors and numbers in the attributes by ones that the graph reads."""
        for path, name in self.known:
            module = self.root.get_submodule(path)
            full = f"{path}.{name}" if path else name
            value = own_attribute(module, name)
            taken = Flattened()
            tree = taken.tree(value, (full,))
            rules = tuple(map(_rule, taken.leaves, taken.paths))
            self.slots[path, name] = Slot(full, tree, tuple(taken.leaves), rules)
            if value is MISSING:
                continue
            source = _Source(recorder, full)
            leaves = [source.leaf(leaf, at) for leaf, at in zip(taken.leaves, taken.paths)]
            setattr(module, name, Rebuilt(leaves, []).value(tree))

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """A context in which it is seen what the program reads before it assigns it."""
        classes: dict[str, tuple[Any, type, dict[str, Any]]] = {}
        for path, name in self.known:
            module = self.root.get_submodule(path)
            classes.setdefault(path, (module, type(module), {}))[2][name] = _Watch(
                self, (path, name))
        try:
            for module, cls, body in classes.values():
                body.update(__module__=cls.__module__, __qualname__=cls.__qualname__)
                module.__class__ = type(cls.__name__, (cls,), body)
            yield
        finally:
            for module, cls, _ in classes.values():
                module.__class__ = cls

    def value(self, key: tuple[str, str]) -> Any:
        return own_attribute(self.root.get_submodule(key[0]), key[1])


class _Watch:
    """An attribute of a module that notes when it is read and assigned."""

    def __init__(self, slots: Slots, key: tuple[str, str]) -> None:
        self.slots, self.key = slots, key

    def __get__(self, module: Any, owner: Any = None) -> Any:
        name = self.key[1]
        if module is None:
            raise AttributeError(name)
        if self.key not in self.slots.written:
            self.slots.read.add(self.key)
        if name in vars(module):
            return vars(module)[name]
        found = next((vars(c)[name] for c in type(module).__mro__[1:] if name in vars(c)), self)
        if found is not self and name not in module._buffers:  # what the class has for it
            return found.__get__(module, owner) if hasattr(found, "__get__") else found
        raise AttributeError(name)  # a buffer: nn.Module looks there next

    def __set__(self, module: Any, value: Any) -> None:
        self.slots.written.add(self.key)
        vars(module)[self.key[1]] = value

    def __delete__(self, module: Any) -> None:
        self.slots.written.add(self.key)
        del vars(module)[self.key[1]]


class _Source:
    """Reads the parts of an attribute in the graph."""

    def __init__(self, recorder: "Recorder", path: str) -> None:
        self.recorder, self.path = recorder, path
        self.nodes: dict[tuple[Any, ...], Any] = {}

    def leaf(self, leaf: Any, at: Path) -> Any:
        if not isinstance(leaf, torch.Tensor) and type(leaf) not in (int, float):
            return leaf
        node = self._node(at)
        if isinstance(leaf, torch.Tensor):
            return self.recorder.witness(node, leaf.detach().clone())
        return symbol(Number(self.recorder, node, leaf))

    def _node(self, at: tuple[Any, ...]) -> Any:
        """The node that reads a part."""
        if at in self.nodes:
            return self.nodes[at]
        if len(at) == 1:
            node = self.recorder.tracer.create_node("get_attr", at[0], (), {})
        else:
            kind, key = at[-1]
            read = operator.getitem if kind == "item" else getattr
            node = self.recorder.call(read, self._node(at[:-1]), key)
        self.nodes[at] = node
        return node


def _rule(leaf: Any, at: Path) -> Any:
    path = str(at)
    if isinstance(leaf, torch.Tensor):
        return TensorLeaf(path, leaf.dtype, leaf.ndim, leaf.device, (None,) * leaf.ndim)
    return NumberLeaf(path, type(leaf)) if type(leaf) in (int, float) else FixedLeaf(path, leaf)


def assign(root: Any, path: str, value: Any) -> None:
    """Assigns an attribute of a module below a root."""
    if value is MISSING:
        outer, _, name = path.rpartition(".")
        module = read_attribute(root, outer) if outer else root
        with contextlib.suppress(AttributeError):
            delattr(module, name)
        return
    outer, _, name = path.rpartition(".")
    module = read_attribute(root, outer) if outer else root
    if module is MISSING:
        _core._assign_attr(value, root, path)
    else:
        setattr(module, name, value)
