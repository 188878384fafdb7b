"""Matrix products with a common right-hand side, computed as one (src/pass/merge_matmul.c)."""
import itertools

from .._core import Node
from .._symbolic_trace import symbolic_trace
from ..graph_module import GraphModule, Module, torch


def split_result_tensors(
    result: torch.Tensor, inputs: list[torch.Tensor]
) -> tuple[torch.Tensor, ...]:
    """The rows of a merged product that belong to each of the left-hand sides it was made of."""
    return torch.split(result, [x.shape[0] for x in inputs])


def may_depend_on(a: Node, b: Node, search_depth: int = 6) -> bool:
    """Whether `a` is `b` or is computed from it, as far as `search_depth` steps back tell; True if
    they do not."""
    return a.graph._may_depend_on(a, b, search_depth)


def are_nodes_independent(nodes: list[Node]) -> bool:
    """Whether no node is computed from another, as far as `may_depend_on` can tell."""
    return not any(may_depend_on(a, b) for a, b in itertools.permutations(nodes, 2))


def merge_matmul(in_mod: Module) -> GraphModule:
    """Traces a module and merges calls of torch.matmul (and torch.mm) that have the same right-hand
    side and do not wait for one another: one product of all left-hand sides, then split. Left-hand
    sides are taken to have two dimensions."""
    gm = symbolic_trace(in_mod)
    gm.graph._merge_matmul(split_result_tensors)
    gm.recompile()
    gm.graph.lint()
    return gm
