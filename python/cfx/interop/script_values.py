"""Values of TorchScript while they are converted, and questions about its nodes and blocks."""
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..node import Node
from . import script_calls as calls


class Refused(Exception):
    """Why one call cannot be converted."""


class Object(NamedTuple):
    """A module, which is known, and where it is."""

    path: str
    module: Any

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


class Number(NamedTuple):
    """A number that a trace has made a tensor of: most become numbers again."""

    value: Any


class Context(NamedTuple):
    """torch.no_grad() or torch.enable_grad()."""

    enabled: bool
    before: list[Any]  # whether gradients were enabled, for each time that it was entered


class Unknown:
    """The value of a call that was refused."""


# ---- values ------------------------------------------------------------------------------------


def items_of(value: Any) -> Iterator[Any]:
    """The values at the leaves of lists, tuples and dicts."""
    if isinstance(value, dict):
        for item in value.values():
            yield from items_of(item)
    elif isinstance(value, (list, tuple)) and not isinstance(value, (Object,)):
        for item in value:
            yield from items_of(item)
    else:
        yield value


def nodes_in(value: Any) -> list[Node]:
    return [item for item in items_of(value) if isinstance(item, Node)]


def rebuilt(value: Any, change: Callable[[Node], Any]) -> Any:
    if isinstance(value, Node):
        return change(value)
    if isinstance(value, Object):
        return value
    if isinstance(value, Number):
        return Number(rebuilt(value.value, change))
    if isinstance(value, dict):
        return {key: rebuilt(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return like(value, [rebuilt(item, change) for item in value])
    return value


def like(value: Any, items: list[Any]) -> Any:
    """A list or tuple of the class of another."""
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def tuple_class(kind: Any) -> Any:
    """The class of a tuple; one that was declared is found where it was declared."""
    text = str(kind)
    if not text.startswith("__torch__."):
        return None
    module, _, name = re.sub(r"___torch_mangle_\d+\.", "", text[10:]).rpartition(".")
    found = getattr(sys.modules.get(module), name, None)
    if not hasattr(found, "_fields"):
        raise Refused(f"it makes a named tuple of the class {module}.{name}, which is not "
                       "imported; import it first, or return a plain tuple")
    return found


def name_of(value: Any) -> str:
    """A Python name from the name of a value: "x.1" is "x"."""
    name = re.sub(r"\W", "_", re.sub(r"\.\d+$", "", value.debugName()))
    return name if name.isidentifier() else f"v{name}"


def where_of(node: Any) -> str | None:
    found = re.search(r'File "(.*?)", line (\d+)', node.sourceRange())
    return f"{found[1]}:{found[2]}" if found else None


def find_free(block: Any, inside: set[int], found: dict[int, Any]) -> None:
    """The values that a block reads and does not define, in order."""
    inside.update(value.unique() for value in block.inputs())
    for node in block.nodes():
        for value in node.inputs():
            if value.unique() not in inside:
                found.setdefault(value.unique(), value)
        for inner in node.blocks():
            find_free(inner, inside, found)
        inside.update(value.unique() for value in node.outputs())
    for value in block.outputs():
        if value.unique() not in inside:
            found.setdefault(value.unique(), value)


def changes_first(node: Any) -> bool:
    """Whether a call changes the list or dict that is its first argument."""
    kind = next(iter(node.inputs())).type().kind() if list(node.inputs()) else ""
    return kind in ("ListType", "DictType") and node.kind() in calls.LIST_METHODS


def find_changed(block: Any, found: dict[int, None]) -> None:
    """The lists and dicts that a block changes."""
    for node in block.nodes():
        if changes_first(node):
            found[next(iter(node.inputs())).unique()] = None
        for inner in node.blocks():
            find_changed(inner, found)


def without_defaults(target: Any, args: list[Any], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The arguments of a call that are not what they would be anyway."""
    params = target._schema.arguments
    named = {p.name: p.default_value for p in params if p.has_default_value()}
    kept = {k: v for k, v in kwargs.items() if k not in named or not is_default(v, named[k])}
    while args and params[len(args) - 1].name in named and is_default(
            args[-1], named[params[len(args) - 1].name]):
        args = args[:-1]
    return args, kept


def is_default(value: Any, default: Any) -> bool:
    return not nodes_in(value) and type(value) is type(default) and value == default


def is_written(value: Node, buffer: Node) -> bool:
    """Whether a value is what an in-place call has made of a buffer: then it is the buffer."""
    while isinstance(value, Node) and value.op == "call_function":
        name = getattr(getattr(value.target, "_schema", None), "name", "")
        if not name.endswith("_") or not value.args:
            return False
        value = value.args[0]  # type: ignore[assignment]
    return isinstance(value, Node) and value.op == "get_attr" and value.target == buffer.target


def note_attributes(block: Any, paths: dict[int, str], assigned: set[str],
                    written: set[str]) -> None:
    """Finds out which attributes the program assigns, and which of these it writes to in place."""
    for node in block.nodes():
        inputs = list(node.inputs())
        if node.kind() in ("prim::GetAttr", "prim::SetAttr") and inputs[0].unique() in paths:
            prefix = paths[inputs[0].unique()]
            path = f"{prefix}.{node.s('name')}" if prefix else node.s("name")
            if node.kind() == "prim::SetAttr":
                assigned.add(path)
            else:
                paths[node.output().unique()] = path
        elif inputs and node.kind().endswith("_") and inputs[0].unique() in paths:
            written.add(paths[inputs[0].unique()])
        for inner in node.blocks():
            note_attributes(inner, paths, assigned, written)


def kinds_of(node: Any) -> list[str]:
    return [value.type().kind() for value in node.inputs()]


def is_append(node: Any) -> bool:
    return node.kind() in ("aten::append", "aten::extend")


def constant_of(value: Any) -> Any:
    return value.node().output().toIValue() if value.node().kind() == "prim::Constant" else None


def plain(value: Any) -> Any:
    """With numbers in the place of tensors that hold one."""
    if isinstance(value, Number):
        return value.value
    if isinstance(value, (list, tuple)) and not isinstance(value, Object):
        return like(value, list(map(plain, value)))
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value
