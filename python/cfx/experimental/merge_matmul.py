"""Merges matrix products with a common right-hand side (src/pass/merge_matmul.c)."""
import itertools

from .._core import Node
from .._symbolic_trace import symbolic_trace
from ..graph_module import GraphModule, Module, torch


def split_result_tensors(
    result: torch.Tensor, inputs: list[torch.Tensor]
) -> tuple[torch.Tensor, ...]:
    """Splits a merged product into the rows of each of its left-hand sides."""
    return torch.split(result, [x.shape[0] for x in inputs])


def may_depend_on(a: Node, b: Node, search_depth: int = 6) -> bool:
    """Returns whether `a` is `b` or is computed from it, looking back `search_depth` steps; True if
    that is not enough to tell."""
    return a.graph._may_depend_on(a, b, search_depth)


def are_nodes_independent(nodes: list[Node]) -> bool:
    """Returns whether no node is computed from another, as far as `may_depend_on` can tell."""
    return not any(may_depend_on(a, b) for a, b in itertools.permutations(nodes, 2))


def merge_matmul(in_mod: Module) -> GraphModule:
    """Traces a module and merges independent calls to torch.matmul (and torch.mm) that have the
    same right-hand side into one product of all left-hand sides, which is then split. The left-hand
    sides are assumed to have two dimensions."""
    gm = symbolic_trace(in_mod)
    gm.graph._merge_matmul(split_result_tensors)
    gm.recompile()
    gm.graph.lint()
    return gm
