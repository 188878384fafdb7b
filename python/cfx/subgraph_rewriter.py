"""replace_pattern: finds a pattern in a GraphModule and replaces it.

The search and the replacement are C (include/cfx/match.h states the rules).
"""
import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from . import _core
from ._glue.listing import public_names
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, Module, torch
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


def _alike(a: Any, b: Any) -> bool:
    """Whether two attributes hold the same; modules may differ in `training`."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        kinds = [(t.shape, t.dtype, t.device, t.requires_grad) for t in (a, b)]
        return kinds[0] == kinds[1] and not a.is_meta and torch.equal(a, b)
    if isinstance(a, Module):
        return _alike(*({**vars(module), "training": None} for module in (a, b)))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_alike(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_alike, a, b))
    return bool(a == b)


class _Rule:
    """A pattern and its replacement, as graphs.

    The replacement's sub-modules and attributes keep their paths, unless the module has something
    else there: then they get fresh ones. If the pattern has the same path, to the same class, the
    replacement means what the pattern matched, which is the module's own.
    """

    def __init__(self, pattern: Any, replacement: Any) -> None:
        self.pattern, self.pattern_root = _traced(pattern)
        self.made: Graph | None = None
        self.root: Any = None
        self.sources: dict[str, str] = {}  # {fresh path: path in `root`}
        if replacement is not None:
            self.made, self.root = _traced(replacement)

    def _is_matched(self, path: str) -> bool:
        if path not in self.pattern._paths(False):
            return False
        if self.pattern_root is None or not _core._has_attr(self.pattern_root, path):
            return True
        theirs, mine = (_core._get_attr(root, path) for root in (self.pattern_root, self.root))
        return type(theirs) is type(mine)

    def settle(self, gm: Any, taken: dict[str, Any]) -> None:
        """Finds a path for each attribute. `taken` has those that earlier rules will add."""
        paths = self.made._paths(False) if self.made is not None and self.root is not None else ()
        fresh: dict[str, str] = {}
        for path in paths:
            value = _core._get_attr(self.root, path) if _core._has_attr(self.root, path) else None
            if value is None or (_core._has_attr(gm, path) and self._is_matched(path)):
                continue
            place, number = path, 0
            while not self._fits(value, gm, taken, place):
                number += 1
                place = f"{path}_{number}"
            fresh[path], taken[place], self.sources[place] = place, value, path
        if any(old != new for old, new in fresh.items()):
            renamed: Any = copy.deepcopy(self.made)
            _retarget(renamed, fresh)
            self.made = renamed

    def _fits(self, value: Any, gm: Any, taken: dict[str, Any], place: str) -> bool:
        if place not in taken and not _core._has_attr(gm, place):
            return True
        try:
            there = taken[place] if place in taken else _core._get_attr(gm, place)
            return _alike(there, value)
        except Exception:  # modules that contain each other, or an __eq__ that fails
            return False

    def check(self, gm: GraphModule) -> None:
        """Raises RuntimeError if the replacement reads what nobody has."""
        for path in self.made._paths(False) if self.made is not None and self.root else ():
            if path not in self.sources and not _core._has_attr(gm, path):
                raise RuntimeError(f"the replacement reads {path!r}, which neither it nor the "
                                   "module has; add that attribute to one of them")

    def add_attributes(self, gm: GraphModule) -> None:
        """Gives `gm` copies of what its graph reads of the replacement."""
        for path in gm.graph._paths(False):
            if path in self.sources and not _core._has_attr(gm, path):
                value = _core._get_attr(self.root, self.sources[path])
                _core._assign_attr(copy.deepcopy(value), gm, path)


def _retarget(graph: Graph, paths: dict[str, str]) -> None:
    for node in graph.nodes:
        if node.op in ("call_module", "get_attr"):
            node.target = paths.get(str(node.target), str(node.target))
        for arg in node.args:
            if isinstance(arg, Graph):
                _retarget(arg, paths)


def _rewrite(
    gm: GraphModule, rules: list[_Rule], options: dict[str, Any], result: Any, n: int,
    decide: Any = None,
) -> list[Any]:  # fmt: skip
    in_place(gm, "replace_pattern")
    taken: dict[str, Any] = {}
    for rule in rules:
        rule.settle(gm, taken)
        rule.check(gm)
    anchors = [rule.pattern._anchors(False)[0] for rule in rules]
    patterns, replacements = [rule.pattern for rule in rules], [rule.made for rule in rules]
    options = {"regions": True, "jointly": True, **options}
    found = gm.graph._match(patterns, options, decide or replacements, result, n, anchors)
    if any(rule.root is not None for rule in rules):
        gm.delete_all_unused_submodules()
        for rule in rules:
            rule.add_attributes(gm)
        gm.graph.lint()
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
    does not fit, nothing changes. Sub-modules and attributes of the replacement are copied into
    `gm`, under a fresh name if `gm` has something else there; a path that the pattern has, too,
    means what the pattern matched.

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
    rules = [_Rule(*pair) for pair in pairs]
    options = {"regions": regions, "variadic": variadic, "any_spelling": any_spelling}
    options.update(commutative=commutative, strict=strict, carry_meta=carry_meta, jointly=True)
    if explain:
        misses = gm.graph._explain([rule.pattern for rule in rules], options, 5)
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
    rule = _Rule(pattern, replacement)

    def decide(found: tuple[Any, ...]) -> Graph | None:
        match = InternalMatch(rule.pattern._anchors(False), *found[1:4])
        if not all(f(match, gm.graph, rule.pattern) for f in match_filters or ()):
            return None
        if replacement_callback:
            return as_graph(replacement_callback(match, gm.graph, rule.pattern))
        assert rule.made, "Must provide either a replacement GraphModule or a replacement callback"
        return rule.made

    options = {"ignore_literals": ignore_literals, "node_name": node_name_match}
    ask = decide if match_filters or replacement_callback else None
    return _rewrite(gm, [rule], options, ReplacedPatterns, 3, ask)


_replace_pattern = replace_pattern_with_filters

__dir__ = public_names(globals(), "Graph", "GraphModule", "Node", "symbolic_trace")
