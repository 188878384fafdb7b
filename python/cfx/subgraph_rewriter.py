"""replace_pattern: finds a pattern in a GraphModule and replaces it.

The search and the replacement are C (include/cfx/match.h states the rules).
"""
import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from . import _core
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, Module
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, Miss
from .text import as_graph, in_place

__all__ = ["Match", "replace_pattern", "replace_pattern_with_filters", "ReplacedPatterns", "any_of"]


class Match(NamedTuple):
    """A match: the anchor, and the node that each node of the pattern matched."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A match, and the nodes that replaced it."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


class any_of:
    """In a pattern, matches a call to one of several functions and methods: the pattern
    `any_of(torch.relu, F.gelu, ".sigmoid")(x)` matches a call to any of the three."""

    def __init__(self, *targets: Any) -> None:
        self.targets = targets

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found: list[Any] = []
        _core.map_aggregate((args, kwargs), lambda a: found.append(getattr(a, "tracer", None)))
        tracer = next(filter(None, found), None)
        if tracer is None:
            raise TypeError("any_of can only be called in a pattern")
        args, kwargs = tracer.create_arg(args), tracer.create_arg(kwargs)
        return tracer.proxy(tracer.graph.call_function(any_of, (self.targets, *args), kwargs))


any_of.__module__ = "cfx"  # how a pattern's text and the matcher name it


def _traced(x: Any) -> tuple[Graph, Any]:
    """A pattern or replacement as a graph, and the module that its paths lead into, or None."""
    if not isinstance(x, (Graph, str)) and not hasattr(x, "graph"):
        x = symbolic_trace(x)
    return as_graph(x), x if isinstance(x, Module) else None


def _replace_attributes(gm: GraphModule, replacement: Module) -> None:
    """Gives `gm` copies of what its graph reads of `replacement`, and deletes unused modules."""
    gm.delete_all_unused_submodules()
    for path in gm.graph._paths(False):
        if not _core._has_attr(gm, path) and _core._has_attr(replacement, path):
            _core._assign_attr(copy.deepcopy(_core._get_attr(replacement, path)), gm, path)
    gm.graph.lint()


def _check_attributes(gm: GraphModule, graph: Any, root: Any) -> None:
    for path in graph._paths(False) if root is not None else ():
        if not _core._has_attr(gm, path) and not _core._has_attr(root, path):
            raise RuntimeError(f"the replacement reads {path!r}, which neither it nor the module "
                               "has; add that attribute to one of them")


_Rule = tuple[Graph, Graph | None, Any]


def _rule(pattern: Any, replacement: Any) -> _Rule:
    made = (None, None) if replacement is None else _traced(replacement)
    return _traced(pattern)[0], *made


def _rewrite(
    gm: GraphModule, rules: list[_Rule], options: dict[str, Any], result: Any, n: int,
    decide: Any = None,
) -> list[Any]:  # fmt: skip
    in_place(gm, "replace_pattern")
    for _, replacement, root in rules:
        _check_attributes(gm, replacement, root)
    anchors = [pattern._anchors(False)[0] for pattern, _, _ in rules]
    patterns, replacements = [rule[0] for rule in rules], [rule[1] for rule in rules]
    options = {"regions": True, "jointly": True, **options}
    found = gm.graph._match(patterns, options, decide or replacements, result, n, anchors)
    for root in {id(root): root for _, _, root in rules if root is not None}.values():
        _replace_attributes(gm, root)
    gm.recompile()
    return found


def replace_pattern(
    gm: GraphModule, pattern: Any, replacement: Any = None, *, regions: bool = True,
    variadic: bool = False, any_spelling: bool = False, commutative: bool = False,
    strict: bool = False, carry_meta: bool = False, explain: bool = False,
) -> list[Match]:  # fmt: skip
    """Replaces each non-overlapping occurrence of `pattern` in `gm` by `replacement`.

    Both are functions, modules, GraphModules, Graphs or IR text, with the same number of parameters
    and results. Intermediate values of the pattern may not be used outside it. If matches overlap,
    the first one in the graph is replaced; replacements are not searched again. If a replacement
    does not fit, nothing changes.

    Options that torch.fx does not have: `pattern` may be a list of (pattern, replacement), which
    are searched together; the first match wins. `any_of` in a pattern matches several functions;
    `variadic` lets a parameter `*xs` in a list match any number of items; `any_spelling` treats all
    spellings of an operator as the same; `commutative` allows swapped operands; `strict` skips
    matches whose result would change because something writes between their nodes; `regions` also
    searches the branches of cond and the bodies of loops. `carry_meta` copies metadata that new
    nodes lack from the match: stack_trace and nn_module_stack, and for nodes that replace a result
    all metadata of the old one; without it they have the metadata of the replacement's nodes.
    `explain` changes nothing and returns why the pattern was not found: the closest attempts, best
    first.
    """
    pairs = pattern if isinstance(pattern, list) else [(pattern, replacement)]
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise TypeError("a list of patterns must hold pairs (pattern, replacement)")
    rules = [_rule(*pair) for pair in pairs]
    options = {"regions": regions, "variadic": variadic, "any_spelling": any_spelling}
    options.update(commutative=commutative, strict=strict, carry_meta=carry_meta, jointly=True)
    if explain:
        misses = gm.graph._explain([rule[0] for rule in rules], options, 5)
        return [Miss(*miss) for miss in misses]  # type: ignore
    return _rewrite(gm, rules, options, Match, 2)


def replace_pattern_with_filters(
    gm: GraphModule, pattern: Any, replacement: Any = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:  # fmt: skip
    """Like replace_pattern, for the matches that every filter accepts. A filter is called with the
    match, the graph and the graph of the pattern, and so is `replacement_callback`, which returns
    the replacement for a match. All of them are called before the first change. For
    `node_name_match` see SubgraphMatcher.match."""
    rule = pattern_graph, made, _ = _rule(pattern, replacement)

    def decide(found: tuple[Any, ...]) -> Graph | None:
        match = InternalMatch(pattern_graph._anchors(False), *found[1:4])
        if not all(f(match, gm.graph, pattern_graph) for f in match_filters or ()):
            return None
        if not replacement_callback:
            assert made, "Must provide either a replacement GraphModule or a replacement callback"
            return made
        return as_graph(replacement_callback(match, gm.graph, pattern_graph))

    options = {"ignore_literals": ignore_literals, "node_name": node_name_match}
    ask = decide if match_filters or replacement_callback else None
    return _rewrite(gm, [rule], options, ReplacedPatterns, 3, ask)


_replace_pattern = replace_pattern_with_filters
