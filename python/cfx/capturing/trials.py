"""cfx.check with `sizes`, `train` or `repeat`: a model and its captured version, side by side.

Each trial runs both from the same state and the same random numbers, on inputs of the same kinds as
the example: other data, other sizes, in training, several times in a row. Afterwards both are as
they were.
"""
import contextlib
import copy
import inspect
import io
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch

from .. import checking
from ..graph_module import GraphModule
from .guards import CaptureError
from .module import CapturedModule
from .state import MISSING, assign, read_attribute
from .._glue.structure import Flattened, Path, Rebuilt
from .undo import Undo

Dim = tuple[int, int]  # of a leaf of the inputs: its number, and which dimension
SEED = 0


# ---- inputs ------------------------------------------------------------------------------------


class Example:
    """The arguments of a call, taken apart."""

    def __init__(self, program: Any, inputs: Any) -> None:
        function = program.forward if isinstance(program, torch.nn.Module) else program
        args, kwargs = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
        bound = inspect.signature(function).bind(*args, **kwargs)
        self.signature, taken = bound.signature, Flattened()
        self.trees = {name: taken.tree(value, (name,)) for name, value in bound.arguments.items()}
        self.leaves, self.paths = taken.leaves, taken.paths

    def call(self, leaves: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments with copies of these leaves; what was one tensor stays one."""
        rebuilt = Rebuilt(checking._copied(leaves), [])
        values = {name: rebuilt.value(tree) for name, tree in self.trees.items()}
        bound = inspect.BoundArguments(self.signature, values)  # type: ignore[arg-type]
        return bound.args, bound.kwargs

    def dims(self) -> list[Dim]:
        tensors = ((i, leaf) for i, leaf in enumerate(self.leaves)
                   if isinstance(leaf, torch.Tensor))  # fmt: skip
        return [(i, d) for i, leaf in tensors for d in range(leaf.ndim)]

    def size(self, dim: Dim) -> int:
        return self.leaves[dim[0]].shape[dim[1]]

    def text(self, dim: Dim) -> str:
        return f"{self.paths[dim[0]]}.shape[{dim[1]}]"


def _fresh(tensor: torch.Tensor, shape: tuple[int, ...], numbers: torch.Generator) -> torch.Tensor:
    """Other data of the same kind: items of the example, or numbers between two of them, so that
    indices stay valid, and probabilities probabilities."""
    flat = tensor.detach().flatten().cpu()
    count = torch.Size(shape).numel()
    if flat.numel() == 0:
        return torch.zeros(shape, dtype=tensor.dtype, device=tensor.device)
    one, two = (flat[torch.randint(flat.numel(), (count,), generator=numbers)] for _ in range(2))
    made = one
    if tensor.is_floating_point():
        share = torch.rand(count, generator=numbers)
        made = torch.lerp(one.float(), two.float(), share).to(tensor.dtype)
    made = made.reshape(shape).to(tensor.device)
    return made.requires_grad_(tensor.requires_grad)


def _with_sizes(example: Example, sizes: dict[Dim, int], numbers: torch.Generator) -> list[Any]:
    made: dict[int, Any] = {}
    leaves = []
    for i, leaf in enumerate(example.leaves):
        if isinstance(leaf, torch.Tensor) and id(leaf) not in made:
            shape = tuple(sizes.get((i, d), n) for d, n in enumerate(leaf.shape))
            made[id(leaf)] = _fresh(leaf, shape, numbers)
        leaves.append(made.get(id(leaf), leaf))
    return leaves


# ---- sizes that belong together ----------------------------------------------------------------


_EQUAL_SIZES = re.compile(r"(.+)\.shape\[(\d+)\] (==|!=) (.+)\.shape\[(\d+)\]")


def _tied_by_guards(example: Example, module: Any) -> list[tuple[Dim, Dim]]:
    """Pairs of sizes that the captured run found to be equal, and needs to be."""
    if not isinstance(module, CapturedModule) or module._is_whole:
        return []
    paths = {str(path): i for i, path in enumerate(example.paths)}
    pairs: list[tuple[Dim, Dim]] = []
    for _, question, answer, *_ in module._boundary.guards.rows():
        asked = _EQUAL_SIZES.fullmatch(question)
        if asked is None or (asked[3] == "==") is not answer:
            continue
        one, two = paths.get(asked[1]), paths.get(asked[4])
        if one is not None and two is not None:
            pairs.append(((one, int(asked[2])), (two, int(asked[5]))))
    return pairs


def _groups(example: Example, dim: Dim, module: Any) -> list[frozenset[Dim]]:
    """Sizes that may have to change with one, the likeliest group first: those that guards tie to
    it and those of the same dimension of other tensors; all that are equal; it alone."""
    pairs = _tied_by_guards(example, module)
    tied, grown = {dim}, 0
    while len(tied) > grown:
        grown = len(tied)
        tied |= {d for pair in pairs if tied & set(pair) for d in pair}
    same = {d for d in example.dims() if example.size(d) == example.size(dim)}
    column = {d for d in same if d[1] == dim[1]}
    found = [tied | column, tied, tied | same, {dim}]
    return list(dict.fromkeys(map(frozenset, found)))


def _other_sizes(size: int, count: int) -> list[int]:
    wanted = (size + 1, 1, 2 * size, size + 3, 3 * size, *range(size + 4, size + 4 + count))
    return [n for n in dict.fromkeys(wanted) if n not in (size, 0)][:count]


class Change(NamedTuple):
    """Sizes to try."""

    dim: Dim
    size: int
    asked: bool  # by the caller, for this size


def _changes(example: Example, sizes: Any) -> Iterator[Change]:
    if isinstance(sizes, dict):
        yield from _asked_changes(example, sizes)
        return
    seen: set[int] = set()
    for dim in example.dims():
        size = example.size(dim)
        if size not in seen:  # those of one size are tried together first
            seen.add(size)
            for other in _other_sizes(size, 2 if sizes is True else int(sizes)):
                yield Change(dim, other, False)


def _asked_changes(example: Example, sizes: dict[str, Any]) -> Iterator[Change]:
    paths = {str(path): i for i, path in enumerate(example.paths)}
    for name, dims in sizes.items():
        leaf = example.leaves[paths[name]] if name in paths else None
        if not isinstance(leaf, torch.Tensor):
            known = ", ".join(p for p, i in paths.items()
                              if isinstance(example.leaves[i], torch.Tensor))  # fmt: skip
            raise ValueError(f"sizes: there is no tensor {name!r} among the inputs ({known})")
        for d, values in dims.items():
            if not -leaf.ndim <= d < leaf.ndim:
                raise ValueError(f"sizes: {name} has {leaf.ndim} dimensions, so there is no "
                                 f"dimension {d}")  # fmt: skip
            for size in [values] if isinstance(values, int) else values:
                yield Change((paths[name], d % leaf.ndim), size, True)


# ---- running -----------------------------------------------------------------------------------


def _leaves(value: Any, name: str) -> tuple[Any, dict[str, Any]]:
    taken = Flattened()
    tree = taken.tree(value, (name,))
    return tree, {str(Path(path)): checking._copied(leaf)
                  for path, leaf in zip(taken.paths, taken.leaves)}  # fmt: skip


class Seen(NamedTuple):
    """What one call has given: by kind, a structure (or None) and the parts by name."""

    results: tuple[Any, dict[str, Any]]
    written: tuple[Any, dict[str, Any]]  # what has become of the arguments
    gradients: dict[str, Any]
    buffers: dict[str, Any]
    attributes: dict[str, Any]


class State:
    """What modules are before a check: attributes, tensors, gradients, modes."""

    def __init__(self, *programs: Any) -> None:
        self.modules = [p for p in programs if isinstance(p, torch.nn.Module)]
        tensors = {id(t): t for m in self.modules for t in (*m.parameters(), *m.buffers())
                   if not t.is_meta}  # fmt: skip
        self.tensors = [(t, t.detach().clone()) for t in tensors.values()]
        self.tables = [(m, dict(m._buffers)) for root in self.modules for m in root.modules()]
        self.undo = [Undo(m) for m in self.modules if not isinstance(m, CapturedModule)]
        self.modes = {m: m.training for root in self.modules for m in root.modules()}
        self.grads = [(p, p.grad) for m in self.modules for p in m.parameters()]
        self.slots = [(m, path, read_attribute(m, path)) for m in self.modules
                      if isinstance(m, CapturedModule) for path in _slot_paths(m)]  # fmt: skip

    def put_back(self) -> None:
        for parameter, grad in self.grads:
            parameter.grad = grad
        for one in self.undo:
            one.remove()
        for module, path, value in self.slots:
            assign(module, path, value)
        for module, table in self.tables:
            module._buffers.clear()
            module._buffers.update(table)
        with torch.no_grad():
            for tensor, content in self.tensors:
                if not torch.equal(tensor, content):
                    tensor.copy_(content)
        for root in self.modules:
            _restore_modes(root, self.modes)

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """A context after which everything is as before; random numbers, too."""
        devices = range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0)
        try:
            with torch.random.fork_rng(devices):
                yield
        finally:
            self.put_back()


def _restore_modes(root: torch.nn.Module, modes: dict[torch.nn.Module, bool]) -> None:
    """A captured module may have got modules meanwhile, whose flags its graphs read: they have the
    mode of the module around them."""
    for path, module in root.named_modules():
        outer = root.get_submodule(path.rpartition(".")[0])
        module.training = modes.get(module, outer.training)


def _slot_paths(module: CapturedModule) -> set[str]:
    return {slot.path for graph in (module, *module._others) for slot in graph._slots}


def _loss(parts: Iterable[Any]) -> Any:
    """A number that depends on every item of the results, on each in another way."""
    terms = [(p * torch.linspace(0.5, 1.5, p.numel(), dtype=p.dtype, device=p.device
                                 ).reshape(p.shape)).sum()
             for p in parts if isinstance(p, torch.Tensor) and p.requires_grad
             and p.is_floating_point()]  # fmt: skip
    return torch.stack(terms).sum() if terms else None


def _names(program: Any) -> dict[str, str]:
    """For each name of a parameter or buffer the first name that it has: of those that are tied."""
    first: dict[int, str] = {}
    if not isinstance(program, torch.nn.Module):
        return {}
    both = (*program.named_parameters(remove_duplicate=False),
            *program.named_buffers(remove_duplicate=False))  # fmt: skip
    return {name: first.setdefault(id(tensor), name) for name, tensor in both}


def _grads(program: Any, call: Any, names: dict[str, str]) -> dict[str, Any]:
    found = {}
    if isinstance(program, torch.nn.Module):
        found = {names.get(name, name): p.grad for name, p in program.named_parameters()
                 if p.grad is not None}  # fmt: skip
    _, leaves = _raw_leaves(call)
    given = {name: leaf.grad for name, leaf in leaves.items()
             if isinstance(leaf, torch.Tensor) and leaf.is_leaf and leaf.grad is not None}
    return {name: g.detach().clone() for name, g in {**found, **given}.items()}


def _raw_leaves(value: Any) -> tuple[Any, dict[str, Any]]:
    taken = Flattened()
    tree = taken.tree(value, ("input ",))
    return tree, {str(path): leaf for path, leaf in zip(taken.paths, taken.leaves)}


class Plan(NamedTuple):
    """What a trial does."""

    what: str
    leaves: list[Any]
    train: bool | None  # None: in the present mode


def _run(program: Any, example: Example, plan: Plan, repeat: int, attributes: set[str],
         names: dict[str, str]) -> list[Seen]:  # fmt: skip
    """What a program gives, called `repeat` times in a row. `names`: what parameters and buffers
    are called in the report."""
    seen = []
    if plan.train is not None and isinstance(program, torch.nn.Module):
        program.train(plan.train)
    torch.manual_seed(SEED)
    for _ in range(repeat):
        call = example.call(plan.leaves)
        if isinstance(program, torch.nn.Module):
            program.zero_grad(set_to_none=True)
        result = program(*call[0], **call[1])
        grads: dict[str, Any] = {}
        if plan.train:
            loss = _loss(_raw_leaves(result)[1].values())
            if loss is not None:
                loss.backward()
                grads = _grads(program, call, names)
        buffers: dict[str, Any] = {}
        if isinstance(program, torch.nn.Module):
            buffers = dict(program.named_buffers())
        held = {path: read_attribute(program, path) for path in attributes}
        seen.append(Seen(
            _leaves(result, "result"), _leaves(call, "inputs"), grads,
            {names.get(name, name): b.detach().clone() for name, b in buffers.items()},
            {path: copy.deepcopy(value) for path, value in held.items() if value is not MISSING},
        ))  # fmt: skip
    return seen


# ---- comparing ---------------------------------------------------------------------------------


class Trial(NamedTuple):
    """One comparison: `what` was tried, and how it ended."""

    what: str
    outcome: str  #: "ok", "differs", "fails", "refused" or "not taken" (by the model itself)
    detail: str = ""  #: what agreed, what differs, or the error
    call: int = 1  #: which of the repeated calls
    inputs: Any = None  #: (args, kwargs) that show it
    train: bool | None = None  #: the mode; None: the present one
    difference: Any = None  #: a Difference


def _difference(a: Seen, b: Seen, tolerances: dict[Any, Any]) -> Any:
    for (one, parts), (two, others) in ((a.results, b.results), (a.written, b.written)):
        if one != two:
            found = checking._compare(list(parts), list(others), {})
            what = found.what if found else "another structure, or other classes"
            return checking.Difference("result", what, ", ".join(parts), ", ".join(others))
        for name, value in parts.items():
            found = checking._compare(value, others[name], tolerances, name)
            if found is not None:
                return found
    for kind in ("gradients", "buffers", "attributes"):
        mine, theirs = getattr(a, kind), getattr(b, kind)
        label = kind.removesuffix("s")
        shared = mine.keys() & theirs.keys() if kind == "buffers" else {**mine, **theirs}
        for name in (n for n in {**mine, **theirs} if n in shared):
            if name not in mine or name not in theirs:
                sides = ["there is one" if name in side else "none" for side in (mine, theirs)]
                what = " became ".join(sides)
                return checking.Difference(f"{label} of {name}", what, sides[0], sides[1])
            found = checking._compare(mine[name], theirs[name], tolerances, f"{label} of {name}")
            if found is not None:
                return found
    return None


def _agreed(seen: Seen, repeat: int) -> str:
    counts = {kind: len(getattr(seen, kind)) for kind in ("gradients", "buffers", "attributes")}
    parts = [f"{n} {kind.removesuffix('s') if n == 1 else kind}"
             for kind, n in counts.items() if n]  # fmt: skip
    calls = [f"{repeat} calls"] if repeat > 1 else []
    return ", ".join([*calls, *parts])


def _first_line(error: BaseException) -> str:
    text = str(error).strip().split("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class Comparer:
    """Compares a model with its captured version, trial by trial."""

    def __init__(self, before: Any, after: Any, example: Example, repeat: int,
                 tolerances: dict[Any, Any]) -> None:  # fmt: skip
        self.before, self.after, self.example = before, after, example
        self.repeat, self.tolerances = repeat, tolerances
        self.state, self.names = State(before, after), _names(before)

    def _seen(self, program: Any, plan: Plan) -> list[Seen]:
        attributes = _slot_paths(self.after) if isinstance(self.after, CapturedModule) else set()
        # what fails is reported: the module need not do so, too
        with self.state.kept(), contextlib.redirect_stderr(io.StringIO()):
            return _run(program, self.example, plan, self.repeat, attributes, self.names)

    def trial(self, plan: Plan) -> Trial:
        done = Trial(plan.what, "ok", inputs=self.example.call(plan.leaves), train=plan.train)
        try:
            want = self._seen(self.before, plan)
        except Exception as error:  # any model may refuse any size
            return done._replace(outcome="not taken", detail=_first_line(error))
        try:
            found = self._seen(self.after, plan)
        except CaptureError as error:
            return done._replace(outcome="refused", detail=str(error))
        except Exception as error:
            return done._replace(outcome="fails", detail=_first_line(error))
        for call, (a, b) in enumerate(zip(want, found), 1):
            found_here = _difference(a, b, self.tolerances)
            if found_here is not None:
                detail = f"{found_here.where}: {found_here.what}"
                return done._replace(outcome="differs", detail=detail, call=call,
                                     difference=found_here)  # fmt: skip
        return done._replace(detail=_agreed(want[-1], self.repeat))

    def localised(self, trial: Trial) -> Any:
        """The first node of the model, captured with these inputs, whose value the other graph does
        not have, as a Report; None if that cannot be told."""
        from . import capture

        (args, kwargs), after = trial.inputs, self.after
        if kwargs or trial.call > 1 or not isinstance(after, GraphModule):
            return None
        with contextlib.suppress(Exception), self.state.kept():  # it is only to help
            if trial.train is not None:
                self.before.train(trial.train)
                after.train(trial.train)
            again = capture(self.before, *checking._copied(args))
            chosen = after._present()[0] if isinstance(after, CapturedModule) else after
            report = checking.Report(again, chosen, args)
            checking._localise(report, args, self.tolerances)
            return report
        return None

    def change(self, change: Change, numbers: torch.Generator) -> tuple[Trial, bool]:
        """Tries a size, with those that belong to it: the first group that the model takes."""
        last = None
        for group in _groups(self.example, change.dim, self.after):
            others = [self.example.text(d) for d in sorted(group) if d != change.dim]
            what = f"{self.example.text(change.dim)} = {change.size}"
            what += f", with {', '.join(others)}" if others else ""
            leaves = _with_sizes(self.example, dict.fromkeys(group, change.size), numbers)
            done = self.trial(Plan(what, leaves, None))
            if done.outcome != "not taken":
                return done, change.asked
            last = last or done
        assert last is not None
        return last, change.asked


# ---- the report --------------------------------------------------------------------------------


class Checks:
    """What cfx.check with `sizes`, `train` or `repeat` returns: true if all trials agree."""

    def __init__(self, before: Any, after: Any) -> None:
        self.before, self.after = before, after
        self.trials: list[Trial] = []
        self.first: Any = None  #: the Report of the first trial that differs
        self._faults: list[Trial] = []

    @property
    def ok(self) -> bool:
        return not self._faults and any(t.outcome == "ok" for t in self.trials)

    def __bool__(self) -> bool:
        return self.ok

    def add(self, trial: Trial, strict: bool = True) -> None:
        """`strict`: whether it is a fault if the captured module refuses the inputs, or the model
        does not take them."""
        self.trials.append(trial)
        if trial.outcome in ("differs", "fails") or (strict and trial.outcome != "ok"):
            self._faults.append(trial)

    def __str__(self) -> str:
        count = f"{len(self.trials)} comparison{'s' * (len(self.trials) != 1)}"
        if self.ok:
            head = f"ok: {count}, the same results"
        else:
            head = f"{len(self._faults)} of {count} failed"
        width = min(100, max(60, shutil.get_terminal_size().columns))
        return "\n".join([head, *_table(self.trials, width), *self._explained(width)])

    __repr__ = __str__

    def _explained(self, width: int) -> Iterator[str]:
        if not self._faults:
            return
        one = self._faults[0]
        call = f", call {one.call}" if one.call > 1 else ""
        rows = [("first failure", f"{one.what}{call}")]
        if one.difference is not None:
            rows += one.difference.rows("")
        elif one.outcome != "ok":
            rows.append(("error", one.detail))
        if self.first is not None and self.first.culprit is not None:
            rows.append(("node", checking._format_fx_node(self.first.culprit)))
            rows.append(("line", checking._line(self.first.culprit)))
        rows.append(("what to do", _advice(one, self.first)))
        for label, text in rows:
            yield from _row(label, str(text), 18, width)


def _advice(trial: Trial, report: Any) -> str:
    if trial.outcome == "refused":
        return ("capture the model with such inputs, or with recapture=True, if it is to take "
                "them")  # fmt: skip
    if trial.outcome == "not taken":
        return "give inputs that the model takes"
    if trial.outcome == "fails":
        return "report what the captured module raises: report.trials has the inputs"
    where = " at the node above" if report is not None and report.culprit is not None else ""
    return f"look at what the program does{where}; report.trials has the inputs"


def _row(label: str, text: str, indent: int, width: int) -> Iterator[str]:
    label = label if len(label) < indent else f"{label}  "
    lines = textwrap.wrap(text, width - max(indent, len(label)) - 2) or [""]
    yield f"  {label:<{indent}}{lines[0]}".rstrip()
    for line in lines[1:3]:
        yield " " * (indent + 2) + line


def _table(trials: list[Trial], width: int) -> Iterator[str]:
    most = width // 2
    names = [t.what if len(t.what) <= most else f"{t.what[: most - 3]}..." for t in trials]
    first, second = max(map(len, names)), max(len(t.outcome) for t in trials)
    for name, trial in zip(names, trials):
        line = f"  {name:<{first}}  {trial.outcome:<{second}}  {' '.join(trial.detail.split())}"
        yield line.rstrip() if len(line) <= width else f"{line[: width - 3].rstrip()}..."


def check_trials(before: Any, after: Any, inputs: Any, sizes: Any, train: Any, repeat: int,
                 tolerances: dict[Any, Any]) -> Checks:  # fmt: skip
    """See cfx.check."""
    checks = Checks(before, after)
    given = inputs if isinstance(inputs, list) else [inputs]
    for sample in (s if isinstance(s, (dict, tuple)) else (s,) for s in given):
        example = Example(before, sample)
        comparer = Comparer(before, after, example, repeat, tolerances)
        numbers = torch.Generator().manual_seed(SEED + 1)
        plans = [Plan("the inputs as given", example.leaves, None),
                 Plan("other data", _with_sizes(example, {}, numbers), None)]  # fmt: skip
        if train:
            plans += [Plan("training", _with_sizes(example, {}, numbers), True),
                      Plan("evaluation", _with_sizes(example, {}, numbers), False)]  # fmt: skip
        for plan in plans:
            checks.add(comparer.trial(plan))
        for change in _changes(example, sizes) if sizes else ():
            checks.add(*comparer.change(change, numbers))
        wrong = next((t for t in checks.trials if t.outcome == "differs"), None)
        if wrong is not None:
            checks.first = comparer.localised(wrong)
            break
    return checks
