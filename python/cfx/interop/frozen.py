"""Weights that are packed for a graph of torch.compile: the option "freeze".

Dynamo passes parameters and buffers to its graphs as inputs, and none of its guards tells that one
has changed. So a run with packed weights first asks whether they are still those that were packed:
the same tensors, in the same memory, with the same count of changes. Else they are packed anew.

PyTorch does not count what is written through `.data`, NumPy or another library. That is why this
is an option.
"""
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch

_MOST = 64  # sets of weights of one graph: layers that are alike may share it
_PAYS = 4  # runs that packing pays for
_PATIENCE = 3  # how often it may not pay before it is given up

Run = Callable[..., Any]


def static_inputs(gm: Any) -> list[int]:
    """The positions of inputs that are parameters or buffers of modules."""
    context = torch._guards.TracingContext.try_get()
    meta = context.fw_metadata if context is not None else None
    if meta is not None:  # a graph of AOTAutograd
        return list(meta.static_input_indices)
    inputs = [node for node in gm.graph.nodes if node.op == "placeholder"]
    return [i for i, node in enumerate(inputs)
            if "_dynamo_static_input_type" in node.meta.get("tensor_dict", ())]


def _state(weights: Sequence[torch.Tensor]) -> list[int]:
    """What changes if a weight does. Tensors of inference mode have no count of changes."""
    places = [w.data_ptr() for w in weights]
    try:
        return places + [w._version for w in weights]
    except RuntimeError:
        return places + [0 if w.is_inference() else w._version for w in weights]


class _Packed:
    """A set of weights, with a program that has packed them."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.state: list[int] = []
        self.uses = 0  # since they were packed
        self.wasted = 0  # how often they changed too soon
        self.given_up = False


class Frozen:
    """Runs a graph with packed weights as long as they stay what they are. `pack` makes a program
    for weights, by position; `plain` runs with any."""

    def __init__(self, pack: Callable[[dict[int, torch.Tensor]], Run], plain: Run,
                 positions: list[int]) -> None:
        self.pack, self.plain, self.positions = pack, plain, positions
        self.kept: dict[tuple[int, ...], _Packed] = {}
        self.packs = 0  # how often weights were packed

    def __call__(self, *inputs: Any) -> Any:
        weights = [inputs[i] for i in self.positions]
        key = tuple(map(id, weights))
        packed = self.kept.get(key)
        if packed is None and len(self.kept) < _MOST:
            packed = self.keep(key, weights)
        if packed is None or packed.given_up:
            return self.plain(*inputs)
        state = _state(weights)
        run = packed.run if state == packed.state else self.renew(packed, weights, state)
        packed.uses += 1
        return (run or self.plain)(*inputs)

    def keep(self, key: tuple[int, ...], weights: Sequence[torch.Tensor]) -> _Packed:
        """A place for these weights, as long as they live."""
        packed, kept = _Packed(), self.kept
        for weight in weights:
            weakref.finalize(weight, kept.pop, key, None).atexit = False
        kept[key] = packed
        return packed

    def renew(self, packed: _Packed, weights: Sequence[torch.Tensor],
              state: list[int]) -> Run | None:
        """Packs the weights, unless they change with nearly every run."""
        packed.wasted = packed.wasted + 1 if packed.run and packed.uses < _PAYS else 0
        packed.given_up = packed.wasted == _PATIENCE
        packed.run = None
        if not packed.given_up:
            packed.run = self.pack(dict(zip(self.positions, weights)))
            self.packs += 1
        packed.state, packed.uses = state, 0
        return packed.run
