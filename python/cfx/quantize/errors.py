"""Which results a converted model has wrong: measured node by node on samples."""
from collections.abc import Sequence
from typing import Any

import torch

from ..graph_module import GraphModule
from ..interpreter import Interpreter

_CALLS = ("call_function", "call_method", "call_module")


class _Recorder(Interpreter):
    """Runs a graph and keeps the results of its calls that are float tensors, by name."""

    def __init__(self, gm: GraphModule) -> None:
        super().__init__(gm)
        self.results: dict[str, torch.Tensor] = {}

    def run_node(self, n: Any) -> Any:
        result = super().run_node(n)
        if n.op in _CALLS and isinstance(result, torch.Tensor) and result.is_floating_point():
            self.results[n.name] = result.detach().clone()
        return result


def results_of(gm: GraphModule, sample: Sequence[Any]) -> dict[str, torch.Tensor]:
    """The float results of a model's calls on one sample, by the names of the nodes."""
    recorder = _Recorder(gm)
    with torch.no_grad():
        recorder.run(*sample)
    return recorder.results


def _seen_by_users(gm: GraphModule) -> dict[str, str]:
    """{node: the node that dequantizes its result}."""
    return {n.args[0].args[0].name: n.name for n in gm.graph.nodes
            if "dequantize_per_tensor" in str(n.target) and n.args
            and "quantize_per_tensor" in str(n.args[0].target)}  # fmt: skip


def first_beyond(gm: GraphModule, samples: Sequence[Sequence[Any]],
                 wanted: Sequence[dict[str, torch.Tensor]], most: float,
                 kept: Sequence[str]) -> list[str]:  # fmt: skip
    """The nodes whose results are further off than `most`, relatively, while what they read is not:
    errors behind them may be theirs."""
    got = [results_of(gm, sample) for sample in samples]
    seen = _seen_by_users(gm)
    off: dict[str, bool] = {}  # whether a node, or one before it, is beyond
    found = []
    for node in gm.graph.nodes:
        before = any(off.get(source.name, False) for source in node.all_input_nodes)
        beyond = node.name in wanted[0] and _error(node.name, seen, wanted, got) > most
        if beyond and not before and node.name not in kept:
            found.append(node.name)
        off[node.name] = before or beyond
    return found


def _error(name: str, seen: dict[str, str], wanted: Sequence[dict[str, torch.Tensor]],
           got: Sequence[dict[str, torch.Tensor]]) -> float:  # fmt: skip
    difference = total = 0.0
    for want, have in zip(wanted, got):
        value = have.get(seen.get(name, name), have.get(name))
        if value is None or value.shape != want[name].shape:
            return 0.0
        difference += float((value - want[name]).double().square().sum())
        total += float(want[name].double().square().sum())
    return (difference / total) ** 0.5 if total else 0.0
