"""Transforms: the passes of the core by name (docs/passes.md), and the transforms of
torch.fx.passes in submodules of the same names (these need torch)."""
import importlib
from typing import Any, NamedTuple

from .. import _core
from .._glue.listing import submodules


class Pass(NamedTuple):
    """A row of the table of passes."""

    name: str
    summary: str
    needs: str
    keeps: str
    options: dict[str, tuple[int, str]]  # by name: what it is if it is not given, what it does
    flags: frozenset[str]  # needs and keeps as words for code: "needs_modules", "keeps_names"


def table() -> list[Pass]:
    """Returns the passes that `run` accepts, in alphabetical order."""
    return [Pass(*row) for row in _core._passes()]


# What the calls that a pass makes are defined in.
_USES = {"merge_matmul": "cfx.experimental.merge_matmul"}


def _settings(names: tuple[str, ...], options: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The options of each pass; TypeError for one that none of them has."""
    rows = {row.name: row.options for row in table()} if options else {}
    known = sorted({option for name in names for option in rows.get(name, ())})
    for option in options:
        if option not in known:
            have = f"; the options are: {', '.join(known)}" if known else ""
            raise TypeError(f"unknown option {option!r} for {', '.join(names)}{have}")
    return {n: {k: v for k, v in options.items() if k in rows.get(n, ())} for n in names}


def run(module: Any, *names: str, **options: int) -> bool:
    """Runs passes by name, in this order, on a GraphModule (and recompiles it) or on a Graph (then
    they skip everything that they would have to look up in a module). Returns whether anything
    changed. Options are given by name (`max_turns=4` of unroll; `table()` lists them) and apply to
    the passes that have them."""
    graph = _core._graph_for(module, *names)
    settings = _settings(names, options)
    root = None if graph is module else module
    before, changed = graph._version, False
    try:
        for name in names:
            if name in _USES:
                importlib.import_module(_USES[name])
            changed |= graph._pass(name, root, settings[name])
    finally:  # also after those before one that fails
        if root is not None and graph._version != before:
            module.recompile()
    return changed


class Repeated(list[list[list[Any]]]):
    """The result of `find_repeated`: groups of copies, each a list of nodes; prints as a table."""

    paths: list[list[str | None]]

    def __str__(self) -> str:
        rows = [("copies", "nodes", "first copy", "last copy")]
        for paths, copies in zip(self.paths, self):
            ends = [path or f"{nodes[0]} .. {nodes[-1]}" for path, nodes in zip(paths, copies)]
            rows.append((str(len(copies)), str(len(copies[0])), ends[0], ends[-1]))
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def find_repeated(module: Any, *, min_nodes: int = 2, min_copies: int = 2) -> Repeated:
    """Finds groups of subgraphs that perform the same operations with different parameters, such as
    the layers of a model: by module if the nodes have a scope, otherwise as runs of consecutive
    nodes."""
    graph = _core._graph_for(module)
    groups = graph._repeated(min_nodes, min_copies)
    found = Repeated(copies for _, copies in groups)
    found.paths = [paths for paths, _ in groups]
    return found


def functionalize(module: Any, *, same_dtypes: bool = False) -> list[tuple[Any, str]]:
    """Replaces in-place calls by out-of-place calls (the pass of that name), and returns the calls
    that remain, each with the reason. `same_dtypes` promises that no such call has operands that
    promote its dtype; otherwise a cast follows where they might."""
    graph = _core._graph_for(module)
    left = graph._functionalize(same_dtypes)
    if graph is not module:
        module.recompile()
    return left


__getattr__, __dir__ = submodules(globals())
