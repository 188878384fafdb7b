"""correct_bias: biases that make up for what rounded weights shift."""
import copy
from collections.abc import Iterable
from typing import Any

import torch

from .._core import Correction
from ..checking import _need_graph_module, _run
from ..graph_module import GraphModule
from ..node import Node
from .comparing import _calls

__all__ = ["correct_bias"]


def _run_both(core: Correction, model: Any, quantized: Any, args: tuple[Any, ...],
              firsts: dict[Node, int], seconds: dict[Node, int]) -> None:  # fmt: skip
    def expect(node: Node, value: Any) -> None:
        if node in firsts and isinstance(value, torch.Tensor):
            core.expect(firsts[node], value.detach().cpu())

    def meet(node: Node, value: Any) -> None:
        if node in seconds and isinstance(value, torch.Tensor):
            shift: Any = core.meet(seconds[node], value.detach().cpu())
            if shift is not None:  # before anything reads it
                value.sub_(shift.to(value))

    with torch.no_grad():
        _run(model, args, expect)
        _run(quantized, args, meet)


def correct_bias(model: Any, quantized: Any, data: Iterable[Any]) -> GraphModule:
    """Returns a copy of the quantized model whose biases take away what rounding adds to the mean
    of each output channel, layer by layer: linear layers and convolutions whose weights are
    integers, where they are not in a branch or loop. Layers without a bias get one.

    `model` is the float model, `quantized` what `convert_fx` made of it. `data` has the inputs of
    each call: a tensor, or a tuple of arguments. Both run once on all of it.
    """
    before, after = _need_graph_module(model), copy.deepcopy(_need_graph_module(quantized))
    core = Correction(before.graph, after.graph)
    firsts: dict[Node, int] = {}
    seconds: dict[Node, int] = {}
    for i, (a, b) in enumerate(core.pairs()):
        firsts[a], seconds[b] = i, i
    for args in _calls(data):
        _run_both(core, before, after, args, firsts, seconds)
    core.finish(after)
    after.graph.lint()
    after.recompile()
    return after
