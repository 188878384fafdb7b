"""compare: what each layer of a model lost in a quantized version of it."""
import copy
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch

from .._core import Comparison as _Comparison
from ..checking import _need_graph_module, _run
from ..node import Node
from .specs import is_observer

__all__ = ["Closeness", "Comparison", "Layer", "compare"]


class Closeness(NamedTuple):
    """How far values are from their counterparts, over all elements of all calls."""

    sqnr: float  #: 10 log10(sum a² / sum (a - b)²), in dB; infinite if they are equal
    cosine: float  #: of the angle between them
    error: float  #: sqrt(sum (a - b)² / sum a²)
    largest: float  #: the greatest |a - b|
    elements: int  #: that were finite in both
    not_finite: int  #: the others, which are not counted


class Layer(NamedTuple):
    """A node of the model, with its counterpart in the quantized one."""

    name: str
    partner: str  #: the node whose value is compared
    module: str  #: the path of the module that is called, or whose forward calls
    operation: str
    file: str | None
    line: int
    close: Closeness
    input_sqnr: float  #: of the worst of its inputs: what it began with
    own_error: float  #: what it adds to the error of its inputs
    advice: str | None


class Comparison:
    """What `compare` found. Printing it shows a table, the worst layer first."""

    def __init__(self, core: _Comparison) -> None:
        self._core = core
        rows: Any = core.rows()
        result = core.result()
        #: worst first
        self.layers = [Layer(*(*row[:6], Closeness(*row[6]), *row[7:])) for row in rows]
        #: how far the results are apart; None if they were not compared
        self.result = Closeness(*result) if result else None

    def __str__(self) -> str:
        width = shutil.get_terminal_size((100, 24)).columns
        return self.table(width).rstrip("\n")

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.layers)} layers\n{self}>"

    def table(self, width: int = 0, most: int = 0) -> str:
        """The table in lines of at most `width` columns, of at most `most` layers (0: all)."""
        return self._core.text(False, width, most)

    def to_json(self) -> str:
        """The same as JSON; equal values have null for their SQNR."""
        return self._core.text(True, 0, 0)

    def to_dict(self) -> dict[str, Any]:
        return json.loads(self.to_json())

    def __getitem__(self, name: str) -> Layer:
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise KeyError(f"no layer '{name}' was compared")


def _calls(data: Any) -> Iterator[tuple[Any, ...]]:
    """The arguments of each call. A tensor is one call; so is a tuple, of several arguments."""
    if isinstance(data, (torch.Tensor, tuple)):
        data = [data]
    for item in data:
        yield tuple(item) if isinstance(item, (tuple, list)) else (item,)


class _SideBySide:
    """Runs two graph modules on the same inputs, and hands what their layers give to the core."""

    def __init__(self, before: Any, after: Any) -> None:
        self.modules = before, after
        self.core = _Comparison(before.graph, after.graph)
        self.firsts: dict[Node, list[int]] = {}
        self.seconds: dict[Node, list[int]] = {}
        for i, (a, b) in enumerate(self.core.pairs()):
            self.firsts.setdefault(a, []).append(i)
            self.seconds.setdefault(b, []).append(i)

    def run(self, args: tuple[Any, ...]) -> None:
        values: dict[int, Any] = {}

        def keep(node: Node, value: Any) -> None:
            if isinstance(value, torch.Tensor):
                for i in self.firsts.get(node, ()):
                    values[i] = value.detach().clone().cpu()

        def add(node: Node, value: Any) -> None:
            if isinstance(value, torch.Tensor):
                for i in self.seconds.get(node, ()):
                    if i in values:
                        self.core.add(i, values.pop(i), value.detach().cpu())

        with torch.no_grad():
            _run(self.modules[0], args, keep)
            _run(self.modules[1], args, add)


def compare(model: Any, quantized: Any, data: Iterable[Any]) -> Comparison:
    """Runs both on all of `data`, and tells how far the values of each layer are apart: SQNR and
    cosine, what its inputs had lost before, the line of the user's program, and what may help.

    `model` is the float model, `quantized` what `convert_fx` made of it; modules are traced. `data`
    has the inputs of each call: a tensor, or a tuple of arguments. Nothing of it is kept.
    """
    both = _SideBySide(_need_graph_module(model), _need_graph_module(quantized))
    for args in _calls(data):
        both.run(args)
    return Comparison(both.core)


def keep_within(prepared: Any, convert: Callable[[list[str]], Any], keep: Iterable[str],
                data: Any, max_error: float) -> Any:  # fmt: skip
    """What `convert(keep)` returns once the results are at most `max_error` off on the data: the
    layer that adds most is kept in float, again and again."""
    calls = list(_calls(data))
    model, kept = copy.deepcopy(prepared), list(keep)
    observers = {node.name for node in prepared.graph.nodes if node.op == "call_module"
                 and is_observer(prepared.get_submodule(str(node.target)))}  # fmt: skip
    while True:
        quantized = convert(kept)
        both = _SideBySide(model, quantized)
        for args in calls:
            both.run(args)
        result = both.core.result()
        if result is None:
            raise ValueError("max_error cannot be reached: the results of the model were not "
                             "compared, because they are not tensors of floating-point numbers")
        if result[2] <= max_error:
            return quantized
        worst = both.core.worst_own({*kept, *observers})
        if worst is None or not worst[1] > 0:
            raise ValueError(f"the results are {result[2]:.3g} off, and no other layer can be kept "
                             f"in float to come to max_error={max_error:g}")
        kept.append(worst[0])
