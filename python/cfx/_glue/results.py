"""Results that a graph puts together at its end: a program gives the parts of named tuples and
dataclasses as tuples, and they are made again of these."""
import dataclasses
from typing import Any, NamedTuple

from ..graph import Graph
from ..node import Node


class _Made(NamedTuple):
    """A call of a class: so many arguments, and others by these names."""

    make: Any
    positional: int
    names: tuple[str, ...]
    parts: tuple[Any, ...]


class _Items(NamedTuple):
    """A tuple, list or dict."""

    kind: type
    keys: tuple[Any, ...]
    parts: tuple[Any, ...]


def _is_structure(value: Any) -> bool:
    """Whether it calls the class of a named tuple or dataclass for the results alone."""
    if not (isinstance(value, Node) and value.op == "call_function"
            and isinstance(value.target, type)):  # fmt: skip
        return False
    kind = value.target
    named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return (named or dataclasses.is_dataclass(kind)) and all(
        user.op == "output" or _is_structure(user) for user in value.users)


def _take_apart(value: Any, found: list[Node]) -> tuple[Any, Any]:
    """The value as a program gives it, and how it is made of that: None if it is the same."""
    if _is_structure(value):
        found.append(value)
        parts = [_take_apart(v, found) for v in (*value.args, *value.kwargs.values())]
        made = _Made(value.target, len(value.args), tuple(value.kwargs), tuple(p[1] for p in parts))
        return tuple(p[0] for p in parts), made
    if not isinstance(value, (tuple, list, dict)):
        return value, None
    keys, items = (tuple(value), value.values()) if isinstance(value, dict) else ((), value)
    parts = [_take_apart(v, found) for v in items]
    kind = dict if keys else list if isinstance(value, list) else tuple
    if all(shape is None for _, shape in parts):
        return value, None
    given: Any = [p[0] for p in parts]
    given = dict(zip(keys, given, strict=True)) if keys else kind(given)
    return given, _Items(kind, keys, tuple(p[1] for p in parts))


def _put_together(shape: Any, value: Any) -> Any:
    if shape is None:
        return value
    if isinstance(shape, _Items) and shape.keys:
        return {key: _put_together(part, value[key])
                for key, part in zip(shape.keys, shape.parts, strict=True)}  # fmt: skip
    items = [_put_together(part, v) for part, v in zip(shape.parts, value, strict=True)]
    if isinstance(shape, _Items):
        return shape.kind(items)
    named = dict(zip(shape.names, items[shape.positional:], strict=True))
    return shape.make(*items[:shape.positional], **named)


class PutTogether:
    """How a module takes arguments and gives results, around another one that does the rest."""

    def __init__(self, around: Any, shape: Any) -> None:
        self._around, self._shape = around, shape
        self.takes_keywords = getattr(around, "takes_keywords", False)
        self.process_inputs = around.process_inputs

    def process_outputs(self, outputs: Any) -> Any:
        return self._around.process_outputs(_put_together(self._shape, outputs))

    def __reduce__(self) -> tuple[Any, ...]:
        return PutTogether, (self._around, self._shape)


def with_plain_results(graph: Graph, codegen: Any) -> Any:
    """Lets the graph give named tuples and dataclasses as tuples; what puts them together is
    returned: `codegen` if there are none."""
    found: list[Node] = []
    output = graph.output_node() if graph.nodes else None
    if output is None:
        return codegen
    value, shape = _take_apart(output.args[0], found)
    if not found:
        return codegen
    output.args = (value,)
    for node in sorted(set(found), reverse=True):
        graph.erase_node(node)
    return PutTogether(codegen, shape)
