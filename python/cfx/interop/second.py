"""Second derivatives of graphs that AOTAutograd has compiled: its backward graphs have none.

A backward pass that is to be differentiated itself (create_graph=True) makes PyTorch run the graph
again, so that autograd sees each call, and takes the gradients from there. Other backward passes
stay as they are.
"""
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.autograd import forward_ad

from .explained import GraphReport

_NODE = "CompiledFunctionBackward"  # what AOTAutograd calls a graph in autograd's eyes


class _Call(NamedTuple):
    """What is needed to run a graph again as it ran before."""

    inputs: list[Any]  # as they were: of those that the graph writes to, copies
    versions: list[int | None]  # of inputs after the call; None for copies
    edges: dict[int, Any]  # where gradients of inputs that the graph writes to went before
    random: torch.Tensor  # the state of the generator before the call
    results: dict[int, tuple[str, int]]  # by gradient of the node: "result", "base" or "input", i


def _node_of(results: Sequence[Any]) -> Any:
    """The node that AOTAutograd has put into autograd's graph, or None."""
    for x in results:
        if isinstance(x, torch.Tensor) and x.requires_grad:
            for tensor in (x, x._base):
                if tensor is not None and type(tensor.grad_fn).__name__ == _NODE:
                    return tensor.grad_fn
    return None


def _gradients_of(node: Any, results: Sequence[Any], written: dict[int, Any]) -> Any:
    """What the node's gradients belong to: see _Call.results."""
    found = {}
    for i, x in enumerate(results):
        if not isinstance(x, torch.Tensor) or not x.requires_grad:
            continue
        if x.grad_fn is node:
            found[x.output_nr] = ("result", i)
        elif x._base is not None and x._base.grad_fn is node:
            found[x._base.output_nr] = ("base", i)
    for i, x in written.items():
        if x.requires_grad and x.grad_fn is not None:  # autograd has seen a copy into it
            nodes = (x.grad_fn, *x.grad_fn.next_functions)
            found.update({at[1]: ("input", i) for at in nodes[1:] if at[0] is node})
    return found


def _edge(x: torch.Tensor) -> tuple[Any, int]:
    edge = torch.autograd.graph.get_gradient_edge(x)
    return edge.node, edge.output_nr


def _version(x: Any) -> int | None:
    return x._version if isinstance(x, torch.Tensor) and not x.is_inference() else None


def _unchanged(call: _Call) -> bool:
    return all(version is None or x._version == version
               for x, version in zip(call.inputs, call.versions))


class Again:
    """Calls a graph that AOTAutograd has compiled; if gradients of its gradients are asked for,
    PyTorch runs the graph."""

    def __init__(self, gm: Any, run: Callable[..., Any], reports: list[GraphReport]) -> None:
        self.gm, self.run, self.reports = gm, run, reports
        self.own = [x for x in gm.parameters() if x.requires_grad]
        self.written: set[int] | None = None  # inputs that the graph writes to; not known yet
        self.autocast = (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"))

    def __call__(self, *inputs: Any) -> Any:
        if forward_ad._current_level >= 0:
            self.reports[0].differentiate_forward()
            return self.gm.forward(*inputs)
        if not torch.is_grad_enabled():
            return self.run(*inputs)
        random, kept = torch.get_rng_state(), self.keep(inputs)
        before = [_version(x) for x in inputs]
        results = self.run(*inputs)
        after = [_version(x) for x in inputs]
        if self.written is None:
            self.written = {i for i in range(len(inputs)) if before[i] != after[i]}
        node = _node_of(results) if isinstance(results, (tuple, list)) else None
        if node is not None and self.written <= kept.keys():
            places = _gradients_of(node, results, {i: inputs[i] for i in self.written})
            given, edges = list(inputs), {}
            for i in self.written:
                (given[i], edges[i]), after[i] = kept[i], None
            self.watch(node, _Call(given, after, edges, random, places))
        return results

    def keep(self, inputs: Sequence[Any]) -> dict[int, tuple[Any, Any]]:
        """Copies of the inputs that the graph writes to, and where their gradients go. The first
        call has to tell which these are."""
        wanted = range(len(inputs)) if self.written is None else self.written
        return {i: (x.clone(), _edge(x) if x.requires_grad else None)
                for i, x in ((i, inputs[i]) for i in wanted)
                if isinstance(x, torch.Tensor) and not isinstance(x, torch.nn.Parameter)}

    def watch(self, node: Any, call: _Call) -> None:
        """Puts gradients with a history in the place of those that the node computes."""
        kept, edges = [call], list(node.next_functions)

        def hook(gradients: Any, of_results: Any) -> Any:
            if torch.is_grad_enabled() and kept:
                return self.gradients(edges, kept[0], gradients, of_results)
            if not torch._C._autograd._get_current_graph_task_keep_graph():
                kept.clear()  # as autograd frees what it has kept
            return None

        node.register_hook(hook)

    @torch.compiler.disable
    def gradients(self, edges: list[Any], call: _Call, first: Any, of_results: Any) -> Any:
        """The gradients `first` once more, with their history; None if it cannot be had:
        AOTAutograd then raises its error if someone asks for it."""
        given = [i for i, g in enumerate(of_results) if g is not None]
        if not _unchanged(call) or not call.results.keys() >= set(given):
            return None
        with self.as_before(call):
            # As aliases: hooks of the inputs are called once, by the pass that is under way.
            inputs = [x if not isinstance(x, torch.Tensor) or not x.requires_grad or i in call.edges
                      else x.view_as(x) for i, x in enumerate(call.inputs)]  # fmt: skip
            passed = [x.clone() if i in call.edges else x for i, x in enumerate(inputs)]
            results = self.gm.forward(*passed)
        of = {"result": lambda i: results[i], "base": lambda i: results[i]._base,
              "input": lambda i: passed[i]}
        pairs = [(of[kind](i), of_results[at]) for at in given for kind, i in [call.results[at]]]
        wanted = {_edge(x) if call.edges.get(i) is None else call.edges[i]: inputs[i]
                  for i, x in enumerate(call.inputs)
                  if isinstance(x, torch.Tensor) and x.requires_grad}
        wanted.update((_edge(x), x) for x in self.own)
        found = [wanted.get(tuple(edge)) for edge in edges]
        if any(x is None or x.shape != g.shape for x, g in pairs) or any(
                x is None and g is not None for x, g in zip(found, first)):
            return None
        self.reports[0].compute_again()
        pairs = [(x, g) for x, g in pairs if x.requires_grad]
        again = iter(torch.autograd.grad(
            [x for x, _ in pairs], [x for x, g in zip(found, first) if g is not None],
            [g for _, g in pairs], create_graph=True, allow_unused=True,
            materialize_grads=True))
        return tuple(None if g is None else next(again) for g in first)

    @contextlib.contextmanager
    def as_before(self, call: _Call) -> Any:
        now = torch.get_rng_state()
        torch.set_rng_state(call.random)
        enabled, dtype = self.autocast
        try:
            with torch.enable_grad(), torch.autocast("cpu", dtype=dtype, enabled=enabled):
                yield
        finally:
            torch.set_rng_state(now)
