"""Attributes of modules that a program changes: the graph reads and writes them.

A buffer that is assigned a tensor of its own shape and dtype is written by the graph itself, with
copy_. Any other attribute that a run changes is a slot. The run is begun again with the tensors and
numbers of the slot's value replaced by inputs of the graph, so that a counter counts; and when the
graph has run, whoever runs it keeps what it computed: the captured module as its attributes, a
lowered one in C. What the program reads of a slot before it assigns it is checked on entry, as
arguments are.
"""
import contextlib
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .. import _core
from .boundary import FixedLeaf, Kept, NumberLeaf, OtherState, TensorLeaf
from .numbers import Number, symbol
from .._glue.structure import Flattened, Path, Rebuilt, Tree

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

    @property
    def inputs(self) -> list[Any]:
        """The rules of the leaves that are inputs of the graph."""
        return [rule for rule in self.rules if not isinstance(rule, FixedLeaf)]

    def taken(self, value: Any) -> list[Any]:
        """The inputs that a value of the attribute gives; OtherState if the graph does not hold for
        it."""
        taken = Flattened()
        if taken.tree(value, (self.path,)) != self.tree:
            raise OtherState(f"{self.path} has another structure than when the model was captured")
        for rule, leaf in zip(self.rules, taken.leaves):
            why = rule.refusal(leaf.plain() if type(leaf) is Kept else leaf)
            if why is not None:
                raise OtherState(why)
        return [leaf for rule, leaf in zip(self.rules, taken.leaves)
                if not isinstance(rule, FixedLeaf)]  # fmt: skip


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
        self.inputs: dict[tuple[str, str], list[Any]] = {}  # the nodes that read them
        self.read: set[tuple[str, str]] = set()  # before they were assigned
        self.written: set[tuple[str, str]] = set()
        self.classes: dict[str, tuple[Any, type]] = {}  # of the modules that have them
        for path, _ in known:
            module = root.get_submodule(path)
            self.classes[path] = module, type(module)

    def prepare(self, recorder: "Recorder") -> None:
        """Replaces tensors and numbers in the attributes by inputs of the graph."""
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
            nodes = self.inputs[path, name] = []
            leaves = [_input(recorder, rule, leaf, nodes)
                      for rule, leaf in zip(rules, taken.leaves)]  # fmt: skip
            setattr(module, name, Rebuilt(leaves, []).value(tree))

    def install(self) -> None:
        """From now on it is seen what the program reads before it assigns it."""
        for path, (module, cls) in self.classes.items():
            body = {name: _Watch(self, (at, name)) for at, name in self.known if at == path}
            own: dict[str, Any] = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
            module.__class__ = type(cls.__name__, (cls,), own | body)

    def remove(self) -> None:
        for module, cls in self.classes.values():
            module.__class__ = cls

    def drop_unread(self) -> list[Any]:
        """Erases the inputs of slots that the program assigns without reading them; the leaves that
        the others had in this run."""
        found: list[Any] = []
        for key, nodes in self.inputs.items():
            if any(node.users for node in nodes):
                self.read.add(key)
            if key in self.read:
                slot = self.slots[key]
                found += [leaf for rule, leaf in zip(slot.rules, slot.leaves)
                          if not isinstance(rule, FixedLeaf)]  # fmt: skip
                continue
            for node in nodes:
                node.graph.erase_node(node)
        return found

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


def plain_name(path: str) -> str:
    """A path as an identifier: cache.keys[0] is cache_keys_0."""
    return re.sub(r"\W+", "_", path).strip("_")


def new_input(tracer: Any, path: str, kind: type | None = None) -> Any:
    """A placeholder with a name that tells its path: d["x"] is d_x."""
    name = plain_name(path)
    name = name if name[:1].isalpha() else f"of_{name}"
    return tracer.create_node("placeholder", name, (), {}, type_expr=kind)


def _input(recorder: "Recorder", rule: Any, leaf: Any, nodes: list[Any]) -> Any:
    """A leaf of an attribute as the program gets it: an input, unless it is fixed."""
    if isinstance(rule, FixedLeaf):
        return leaf
    is_number = isinstance(rule, NumberLeaf)
    nodes.append(new_input(recorder.tracer, rule.path, type(leaf) if is_number else None))
    if is_number:
        return symbol(Number(recorder, nodes[-1], leaf))
    return recorder.witness(nodes[-1], leaf.detach().clone())


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
