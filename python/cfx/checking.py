"""check, bisect, minimize: does a transform keep what a program computes, and if not, where does it
fail?

Pairing the nodes of two versions, finding the node to blame, and reducing a graph are C
(include/cfx/embed/check.h).
"""
import contextlib
import copy
import dataclasses
import io
import linecache
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, overload

from ._glue.listing import public_names
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, Module, torch
from .interpreter import Interpreter, _format_fx_node
from .node import Node, map_aggregate
from .passes import run as _run_passes
from .passes import table as _pass_table
from .text import as_cfx

__all__ = ["Case", "Difference", "Report", "bisect", "check", "minimize"]

# dtype -> (rtol, atol): two values agree if |a - b| <= rtol * |b| + atol * max(1, largest |b|).
# Not here: integers, bools and everything that is no tensor have to be equal.
TOLERANCES: dict[Any, tuple[float, float]] = {
    torch.float64: (1e-9, 1e-10), torch.complex128: (1e-9, 1e-10),
    torch.float32: (1e-4, 1e-5), torch.complex64: (1e-4, 1e-5),
    torch.float16: (1e-2, 1e-3), torch.bfloat16: (5e-2, 1e-2), torch.complex32: (1e-2, 1e-3),
    torch.float8_e4m3fn: (0.2, 0.1), torch.float8_e5m2: (0.3, 0.2),
}  # fmt: skip
_TINY = 1e-300
_PROPERTIES = ("dtype", "shape", "layout", "device")  # of tensors, compared before their values
_INVALID = "the pass leaves an invalid graph:"


# ---- comparing values --------------------------------------------------------------------------


class Difference(NamedTuple):
    """How two values differ: `where` in a container, `what` in words, and by how much."""

    where: str
    what: str
    before: str
    after: str
    max_abs: float = math.nan
    max_rel: float = math.nan

    def rows(self, label: str) -> list[tuple[str, str]]:
        more = [("  before", self.before), ("  after", self.after)]
        return [(label + self.where, self.what), *more]


def _summary(value: Any) -> str:
    """What a value is, in a few words."""
    if not isinstance(value, torch.Tensor):
        text = " ".join(repr(value).split())
        return f"{type(value).__name__} {text[:60]}{'...' if len(text) > 60 else ''}"
    kind = f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if value.is_complex() or value.numel() == 0 or value.is_meta:
        return kind
    flat = _dense(value).double()
    finite, nans = flat[flat.isfinite()], int(flat.isnan().sum())
    ends = f", {finite.min():.6g} to {finite.max():.6g}" if finite.numel() else ""
    return kind + ends + (f", {nans} nan" if nans else "")


def _dense(t: Any) -> Any:
    return (t.dequantize() if t.is_quantized else t.to_dense()).detach()


def _tensors(where: str, a: Any, b: Any, tolerances: dict[Any, Any]) -> Difference | None:
    for name in _PROPERTIES:
        kinds = [list(v) if name == "shape" else v for v in (getattr(a, name), getattr(b, name))]
        if kinds[0] != kinds[1]:
            what = f"{name} {kinds[0]} became {kinds[1]}"
            return Difference(where, what, _summary(a), _summary(b))
    if a.is_meta or a.numel() == 0:
        return None
    rtol, atol = tolerances.get(a.dtype, (0.0, 0.0))
    x, y = _dense(a), _dense(b)
    same = (x == y) | (x.isnan() & y.isnan())
    x, y = (t.to(torch.complex128 if t.is_complex() else torch.float64) for t in (x, y))
    gap = (x - y).abs().nan_to_num(math.inf, math.inf).clamp(min=_TINY)  # also of large integers
    size = y.abs().nan_to_num(0.0, 0.0)
    bad = ~same & (gap > rtol * size + atol * max(1.0, size.max().item()))
    if not bad.any():
        return None
    at = torch.unravel_index(torch.where(bad, gap, -1.0).argmax(), gap.shape)
    values = f"{a[at].item():.6g} became {b[at].item():.6g}"
    place = f"{int(bad.sum())} of {bad.numel()} elements, most at {[int(i) for i in at]}: "
    most = [v[bad].max().item() for v in (gap, gap / size.clamp(min=_TINY))]
    what = f"{place if at else ''}{values} (abs {most[0]:.3g}, rel {most[1]:.3g})"
    return Difference(where, what, _summary(a), _summary(b), *most)


def _compare(a: Any, b: Any, tolerances: dict[Any, Any], where: str = "") -> Difference | None:
    """The first difference between two values; None if they agree."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return _tensors(where, a, b, tolerances)
    if isinstance(a, float) and isinstance(b, float):
        x, y = (torch.tensor(v, dtype=torch.float64) for v in (a, b))
        return _tensors(where, x, y, tolerances)
    for kind in (dict, tuple, list):
        if isinstance(a, kind) and isinstance(b, kind):
            p, q = (v if kind is dict else dict(enumerate(v)) for v in (a, b))
            if list(p) != list(q):
                what = f"{kind.__name__} with {list(p)} became one with {list(q)}"
                return Difference(where, what, _summary(a), _summary(b))
            items = (_compare(p[k], q[k], tolerances, f"{where}[{k!r}]") for k in p)
            return next((found for found in items if found), None)
    if type(a) is type(b) and dataclasses.is_dataclass(a):
        return _compare(vars(a), vars(b), tolerances, where)
    try:
        same = type(a) is type(b) and (type(a).__eq__ is object.__eq__ or bool(a == b))
    except Exception as error:
        return Difference(where, f"not comparable: {error}", _summary(a), _summary(b))
    return None if same else Difference(where, "not equal", _summary(a), _summary(b))


# ---- running without a trace -------------------------------------------------------------------


def _copied(value: Any) -> Any:
    """A copy of inputs or results; what was one tensor stays one."""
    memo: dict[int, Any] = {}

    def leaf(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and id(x) not in memo:
            memo[id(x)] = x.detach().clone().requires_grad_(x.requires_grad)
        return memo.get(id(x), x)

    return map_aggregate(value, leaf)


@contextlib.contextmanager
def _as_it_was(program: Any) -> Iterator[None]:
    """Afterwards random numbers and the buffers of a module are as they were before."""
    modules = program.modules() if isinstance(program, Module) else ()
    buffers = [(m, k, b, _copied(b)) for m in modules for k, b in m._buffers.items()]
    devices = range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0)
    try:
        with torch.random.fork_rng(devices), torch.no_grad():
            yield
    finally:
        for module, name, buffer, kept in buffers:
            module._buffers[name] = buffer
            if buffer is not None:
                buffer.data.copy_(kept)


class _Watcher(Interpreter):
    """Tells `seen(node, value)` of every value, also of those in regions."""

    seen: Callable[[Node, Any], None]

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        self.seen(n, result)
        return result


def _run(program: Any, inputs: Any, seen: Callable[[Node, Any], None] | None = None) -> Any:
    """What a program returns, and what it has made of its inputs."""
    args = _copied(inputs)
    with _as_it_was(program):
        if seen is None:
            shown = io.StringIO()  # what fails is reported: the module need not do so, too
            with contextlib.redirect_stderr(shown):
                result = _copied((program(*args), args))
            sys.stderr.write(shown.getvalue())
            return result
        watcher = _Watcher(program)
        watcher.seen = seen
        return watcher.run(*args), args


def _message(error: Exception) -> str:
    text = "\n".join([str(error), *getattr(error, "__notes__", ())])
    return f"{type(error).__name__}: " + re.sub(r"\n\s*\n", "\n", text.strip())


def _graph_module(program: Any) -> Any:
    """A program as a GraphModule of ours; None if it cannot be traced."""
    try:
        program = as_cfx(program)
        return program if isinstance(program, GraphModule) else symbolic_trace(program)
    except Exception:  # any program may be checked; then only its results are
        return None


def _need_graph_module(program: Any) -> Any:
    if (gm := _graph_module(program)) is None:
        raise TypeError(f"{type(program).__name__} cannot be traced; pass a GraphModule")
    return gm


def _samples(inputs: Any) -> list[tuple[Any, ...]]:
    given = inputs if isinstance(inputs, list) else [inputs]
    return [sample if isinstance(sample, tuple) else (sample,) for sample in given]


# ---- the report --------------------------------------------------------------------------------


@dataclasses.dataclass(repr=False)
class Report:
    """The result of check or bisect: true if the results agree. `print(report)` shows what
    differs."""

    before: Any
    after: Any
    inputs: Any
    difference: Difference | None = None  # of the results
    error: str | None = None  # what the second version or a pass raised, or left broken
    culprit: Node | None = None  # the first node of `before` from which wrong values spread
    partner: Node | None = None  # its counterpart in `after`
    by: str = ""  # why they are taken for one: cfx_pairing in include/cfx/embed/check.h
    at: Difference | None = None  # of their values
    agreed: list[Node] = dataclasses.field(default_factory=list)
    alone: list[Node] = dataclasses.field(default_factory=list)  # without a counterpart
    broken_by: Any = None  # the pass
    passed: list[str] = dataclasses.field(default_factory=list)  # the passes before it
    _again: list[Any] = dataclasses.field(default_factory=list)  # passes that break `before`
    _tolerances: dict[Any, Any] = dataclasses.field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.difference is None and self.error is None

    def __bool__(self) -> bool:
        return self.ok

    def minimize(self, **options: Any) -> "Case":
        """Returns the smallest part of the program that fails in the way reported, with its inputs:
        the same node is to blame, or the same exception is raised."""
        if not self._again:
            raise RuntimeError("this report has no pass to run again; minimize a report of "
                               "cfx.bisect, or call cfx.minimize with a function that tests for "
                               "the failure")
        reported = self._failure()

        def fails(module: Any, inputs: Any) -> bool:
            return _bisect(self._again, module, inputs, self._tolerances)._failure() == reported

        return minimize(self.before, self.inputs, fails, **options)

    def _failure(self) -> tuple[Any, ...]:
        """What a part of the program has in common with the whole if both fail alike."""
        if self.ok:
            return ()
        culprit = self.culprit and self.culprit.name
        if self.error is not None:
            first, *more = self.error.split("\n")
            line = more[0] if first.endswith(_INVALID) and more else first
            return self.broken_by, self.after is None, culprit, re.sub(r"0x\w+|\d+", "#", line)
        shown = self.at or self.difference
        word = shown.what.split()[0] if shown else ""
        return self.broken_by, culprit, word if word in _PROPERTIES else "value"

    def _rows(self) -> Iterator[tuple[str, Any]]:
        if self.passed:
            yield "passed", ", ".join(self.passed)
        if self.error is not None:
            yield "error", self.error
        if self.difference is not None:
            yield from self.difference.rows("result")
        if self.culprit is not None:
            yield "first node", _format_fx_node(self.culprit)
            yield "line", _line(self.culprit)
            twin = f"{_format_fx_node(self.partner)} (by {self.by})" if self.partner else "gone"
            yield "became", twin
        if self.at is not None:
            yield from self.at.rows("its value")
        if self.agreed:
            yield "nodes agree", f"{len(self.agreed)}, the last: {_names(self.agreed[-6:])}"
        if self.alone:
            yield "unmatched", f"{len(self.alone)}, the first: {_names(self.alone[:6])}"
        if self.broken_by is not None:
            yield "what to do", "report.minimize() finds the smallest program that it breaks"
        elif self.error is not None and self.culprit is None:
            yield "what to do", "fix the exception: report.after(*report.inputs)"
        elif self.culprit is None:
            yield "what to do", "pass two GraphModules to find the node, too"
        else:
            yield "what to do", f"check what was done to %{self.culprit} and to its inputs"

    def __str__(self) -> str:
        if self.ok:
            return f"ok: the same results{''.join(f', {name}' for name in self.passed)}"
        who = f"pass '{_name_of(self.broken_by)}'" if self.broken_by else "the second version"
        head = f"{who} {'fails' if self.error is not None else 'changes the results'}"
        width = max(60, shutil.get_terminal_size().columns)
        rows = [(label, line) for label, text in self._rows() for line in str(text).split("\n")]
        lines = [f"  {label if i == 0 or rows[i - 1][0] != label else '':<15} {line}"
                 for i, (label, line) in enumerate(rows)]  # fmt: skip
        cut = [s if len(s) <= width or label == "error" else s[: width - 3] + "..."
               for (label, _), s in zip(rows, lines)]  # fmt: skip
        return "\n".join([head, *cut])

    __repr__ = __str__


def _names(nodes: list[Node]) -> str:
    return ", ".join(node.name for node in nodes)


def _line(node: Node) -> str:
    if node._location is None:
        return "unknown"
    file, line = node._location
    return f"{os.path.basename(file)}:{line}: {linecache.getline(file, line).strip()}"


# ---- check -------------------------------------------------------------------------------------


def _localise(report: Report, inputs: tuple[Any, ...], tolerances: dict[Any, Any]) -> None:
    """Runs both versions node by node and finds where they part."""
    before, after = _graph_module(report.before), _graph_module(report.after)
    if before is None or after is None:
        return
    pairs = before.graph._correspond(after.graph)
    partners = {a: (b, how) for a, b, how in pairs if a is not None}
    sources: dict[Node, list[Node]] = {}
    for node, (partner, _) in partners.items():
        sources.setdefault(partner, []).append(node)
    values: dict[Node, list[Any]] = {}
    found: dict[Node, Difference | None] = {}

    def remember(node: Node, value: Any) -> None:
        if partners[node][0] is not None:
            values.setdefault(node, []).append(_copied(value))

    def compare(node: Node, value: Any) -> None:
        for source in sources.get(node, ()):
            if values.get(source) and not found.get(source):
                found[source] = _compare(values[source].pop(0), value, tolerances)

    _run(before, inputs, remember)
    try:
        _run(after, inputs, compare)
    except Exception as error:
        if report.error is not None and not _message(error).startswith(report.error.split("\n")[0]):
            return  # it cannot be called so, but the nodes can be run: their values tell nothing
    graph, wrong = before.graph, {node: bool(diff) for node, diff in found.items()}
    report.agreed = [node for node in found if not wrong[node]]
    report.alone = [node for node, (partner, _) in partners.items() if partner is None]
    while graph is not None:  # into the regions of the node to blame
        culprit = graph._blame(wrong)
        if culprit is None:
            break
        report.culprit, (report.partner, report.by) = culprit, partners[culprit]
        report.at = found.get(culprit)
        regions = [arg for arg in culprit.args if isinstance(arg, Graph)]
        graph = next((r for r in regions if any(wrong.get(n) for n in r.nodes)), None)


def _table(tolerances: Any) -> dict[Any, Any]:
    if isinstance(tolerances, dict):
        return {**TOLERANCES, **tolerances}
    if tolerances is None:
        return TOLERANCES
    pair = (tolerances, tolerances) if isinstance(tolerances, float) else tuple(tolerances)
    return dict.fromkeys(TOLERANCES, pair)


@overload
def check(before: Any, after: Any, inputs: Any, *, tolerances: Any = None) -> Report: ...
@overload
def check(before: Any, after: Any, inputs: Any, *, sizes: Any = None, train: bool = False,
          repeat: int = 1, tolerances: Any = None) -> Any: ...  # fmt: skip
def check(before: Any, after: Any, inputs: Any, *, sizes: Any = None, train: bool = False,
          repeat: int = 1, tolerances: Any = None) -> Any:  # fmt: skip
    """Compares the results of two versions of a program, which are modules or functions.

    `inputs` is a tuple of arguments, or a list of such tuples. They are copied; the random state
    and buffers are restored afterwards. `tolerances` is a pair (rtol, atol) for all floating-point
    values, a number for both, or {dtype: pair}. Exceptions raised by `before` propagate.

    With `sizes`, `train` or `repeat`, a model and what was captured of it are compared in several
    trials, which a table shows: the inputs as given (a dict for keyword arguments), other data of
    the same kinds, other sizes, in training, called `repeat` times in a row. `sizes` is
    {"x": {0: [1, 3]}}, sizes to try for dimensions of arguments, or a number: how many to try for
    each size; sizes that belong together change together. With `train` both run in training and in
    evaluation mode, from the same random numbers, and gradients are compared, too. Buffers, and
    attributes that the model changes, always are. The model is left as it was.
    """
    if sizes is not None or train or repeat != 1:
        from .capturing.trials import check_trials

        return check_trials(before, after, inputs, sizes, train, repeat, _table(tolerances))
    table = _table(tolerances)
    for sample in _samples(inputs):
        report = Report(before, after, sample)
        result, args = _run(before, sample)
        try:
            again, args_again = _run(after, sample)
        except Exception as error:
            report.error = _message(error)
        else:
            report.difference = _compare(result, again, table)
            if report.ok:
                report.difference = _compare(args, args_again, table, " (written to inputs)")
        if not report.ok:
            _localise(report, sample, table)
            return report
    return Report(before, after, inputs)


# ---- bisect ------------------------------------------------------------------------------------


def _name_of(one: Any) -> str:
    return one if isinstance(one, str) else getattr(one, "__name__", type(one).__name__)


def _applied(one: Any, module: Any) -> Any:
    """What a pass makes of a copy of a module."""
    module = copy.deepcopy(module)
    result = _run_passes(module, one) if isinstance(one, str) else one(module)
    result = getattr(result, "graph_module", result)
    result = module if not isinstance(result, Module) else _graph_module(result)
    faults = result.graph._faults(False)
    if faults:
        raise RuntimeError("\n".join([_INVALID, *faults[:5]]))
    result.recompile()
    return result


def _expect_passes(passes: list[Any]) -> None:
    known = {row.name for row in _pass_table()}
    for one in passes:
        if isinstance(one, str) and one not in known:
            _run_passes(Graph(), one)  # raises, and lists the passes
        if not isinstance(one, str) and not callable(one):
            kind = type(one).__name__
            raise TypeError(f"a pass is a name in the table or a callable, not {kind}: {one!r}")


def _expect_sound(gm: Any, inputs: Any, table: dict[Any, Any]) -> Any:
    """A copy of a module to start from. What is wrong before any pass ran is raised."""
    faults = gm.graph._faults(False)
    if faults:
        raise ValueError("the graph is invalid before any pass has run:\n" + "\n".join(faults[:5]))
    first = copy.deepcopy(gm)
    first.recompile()
    if not (report := check(gm, first, inputs, tolerances=table)):
        raise ValueError("the module and a copy of it give different results before any pass has "
                         "run, so no pass can be blamed. If its graph was edited, call recompile() "
                         "first; otherwise remove what makes its results change from run to run:\n"
                         f"{report}")
    return first


def _bisect(passes: list[Any], first: Any, inputs: Any, table: dict[Any, Any]) -> Report:
    current = first
    passed: list[str] = []
    for i, one in enumerate(passes):
        again = [one]
        try:
            result = _applied(one, current)
        except Exception as error:
            report = Report(current, None, inputs, error=_message(error))
        else:
            report = check(first, result, inputs, tolerances=table)
            if not report.ok and current is not first:  # names are closer to the last version's
                closer = check(current, result, inputs, tolerances=table)
                if closer.ok:  # only together do the passes change the results too much
                    again = passes[: i + 1]
                else:
                    report = closer
        report.passed = passed
        if not report.ok:
            report.broken_by, report._again, report._tolerances = one, again, table
            return report
        passed, current = [*passed, _name_of(one)], result
    return Report(first, current, inputs, passed=passed)


def bisect(passes: Sequence[Any], module: Any, inputs: Any, *, tolerances: Any = None) -> Report:
    """Runs passes one after the other on copies of a module, and finds the first one that raises,
    leaves a broken graph, or changes the results.

    A pass is the name of a pass in the table, or a callable that takes a GraphModule and returns a
    GraphModule or a PassResult, or changes the module in place. An unknown name, an invalid graph
    and a module whose results change from run to run raise ValueError before any pass runs.
    """
    todo = [passes] if isinstance(passes, str) else list(passes)
    _expect_passes(todo)
    table = _table(tolerances)
    first = _expect_sound(_need_graph_module(module), inputs, table)
    return _bisect(todo, first, inputs, table)


# ---- minimize ----------------------------------------------------------------------------------


class Case(NamedTuple):
    """A small program and its inputs."""

    module: Any
    inputs: tuple[Any, ...]

    def __str__(self) -> str:
        shown = "".join(f"# {node} = {_summary(value)}\n" for node, value in
                        zip(self.module.graph.find_nodes(op="placeholder"), self.inputs))
        return shown + self.module.code.strip()  # fmt: skip


def minimize(
    module: Any, inputs: Any, still_fails: Callable[[Any, Any], bool], *, max_tests: int = 1000
) -> Case:
    """Returns the smallest part of a program that still fails, with the inputs it had in the whole.

    `still_fails(module, inputs)` returns whether a part fails; its inputs are values recorded
    during a run of the whole program.
    """
    gm = _need_graph_module(module)
    values: dict[Node, Any] = {}
    _run(gm, _samples(inputs)[0], lambda node, value: values.setdefault(node, _copied(value)))

    def case(graph: Graph, nodes: list[Node]) -> Case:
        return Case(GraphModule(gm, graph), tuple(_copied([values[node] for node in nodes])))

    def test(graph: Graph, nodes: list[Node]) -> bool:
        return still_fails(*case(graph, nodes))

    return case(*gm.graph._minimize(test, max_tests))


__dir__ = public_names(globals())
