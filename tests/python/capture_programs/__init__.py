"""Programs that run Python as it is, for cfx.capture: libraries and their idioms, objects,
contexts, state, sizes, numbers from data. They are declared as those of programs/ are; how they
are judged is here, too.

What is expected of a program (`captured=`, and `recaptured=` for recapture=True):

    "equal"           all calls do as eager PyTorch does
    "guard KIND"      at least one call is a CaptureError, for this reason; all others are equal.
                      KIND is that of the guard, "arguments" or "attributes"
    "raises WORDS"    at least one call raises another error with these words, where eager PyTorch
                      raises none; all others are equal
    "refused WORDS"   cfx.capture raises an error that has these words
"""
import collections
import copy
import dataclasses
import itertools
import random
import re
import sys
import types
import weakref
from pathlib import Path
from typing import Any

import cfx
import torch
from cfx.capturing import state
from programs import Outcome, Program, difference, disagreement, load, run_one
from torch.utils import _pytree

FOLDER = Path(__file__).parent
TOPICS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
_times = itertools.count()


def load_all() -> list[Program]:
    return [found for topic in TOPICS for found in load(topic, package=__name__)]


@dataclasses.dataclass
class World:
    """A program in a Python module of its own, so that its globals are its own."""

    program: Program
    module: types.ModuleType
    made: Any


def world(program: Program) -> World:
    suffix = f"_{next(_times)}"
    found = {p.name: p for p in load(program.topic, suffix, __name__)}
    # not kept in sys.modules: every run has a new one
    module = sys.modules[f"{__name__}.{program.topic}{suffix}"]
    return World(found[program.name], module, found[program.name].make())


def forget(seen: World) -> None:
    sys.modules.pop(seen.module.__name__, None)


# ---- what there is besides results -------------------------------------------------------------

_CODE = (types.ModuleType, types.FunctionType, type, types.BuiltinFunctionType)
_OWN = frozenset(vars(torch.nn.Module()))


def _is_data(value: Any) -> bool:
    return isinstance(value, (int, float, str, bool, list, dict, set, tuple, torch.Tensor))


def global_data(module: types.ModuleType) -> dict[str, Any]:
    found = {name: value for name, value in vars(module).items()
             if not name.startswith("__") and name != "PROGRAMS" and _is_data(value)}
    return copy.deepcopy(found)


def attributes(model: Any) -> dict[str, Any]:
    """Parameters with gradients, buffers, flags and plain data of a model, by path."""
    found: dict[str, Any] = {}
    if not isinstance(model, torch.nn.Module):
        return found
    for path, part in model.named_modules():
        at = f"{path}." if path else ""
        for name, tensor in (*part._parameters.items(), *part._buffers.items()):
            found[at + name] = tensor
            if isinstance(tensor, torch.nn.Parameter):
                found[f"{at}{name}.grad"] = tensor.grad
        for name, value in vars(part).items():
            if name not in _OWN or name == "training":
                found[at + name] = value
    return {name: _kept(value) for name, value in found.items()
            if value is None or _is_data(value) or type(value).__module__.startswith(__name__)}


def _kept(value: Any) -> Any:
    if isinstance(value, weakref.ref) or torch.nn.parameter.is_lazy(value):
        return None
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_kept, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(_kept, value))
    if type(value) in (dict, collections.OrderedDict):
        return type(value)((key, _kept(part)) for key, part in value.items())
    if isinstance(value, collections.deque):
        return collections.deque(map(_kept, value), value.maxlen)
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, dict)):
        fields = dataclasses.fields(value)
        return type(value)(**{f.name: _kept(getattr(value, f.name)) for f in fields})
    if isinstance(value, dict):
        return {key: _kept(part) for key, part in value.items()}
    try:
        return copy.deepcopy(value)
    except Exception:  # a lock, a generator: nothing to compare
        return None


def seed() -> None:
    torch.manual_seed(1)
    random.seed(1)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(1)


def settings() -> dict[str, Any]:
    """What a call or a capture may leave changed: random states and modes."""
    numpy = sys.modules["numpy"].random.get_state() if "numpy" in sys.modules else ("", [])
    return {
        "torch": torch.get_rng_state().tolist(), "python": hash(random.getstate()),
        "numpy": hash((numpy[0], tuple(numpy[1]), *numpy[2:])),
        "grad": torch.is_grad_enabled(), "inference": torch.is_inference_mode_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"), "dtype": str(torch.get_default_dtype()),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "anomaly": torch.is_anomaly_enabled(), "device": str(torch.get_default_device()),
    }  # fmt: skip


def backward(outcome: Outcome) -> None:
    """Gradients of what a call gives: they are compared with the attributes."""
    todo, total = [outcome.value], None
    while todo:
        value = todo.pop()
        if isinstance(value, (list, tuple)):
            todo += value
        elif isinstance(value, dict):
            todo += value.values()
        elif dataclasses.is_dataclass(value) or type(value).__module__.startswith(__name__):
            todo += vars(value).values() if hasattr(value, "__dict__") else ()
        elif isinstance(value, torch.Tensor) and value.requires_grad:
            part = (value.abs() if value.is_complex() else value).sum()
            total = part if total is None else total + part
    if total is not None:
        try:
            total.backward()
        except RuntimeError as error:
            outcome.gradient_error = str(error)[:60]


def aliases(outcome: Outcome) -> list[tuple[int, int]]:
    """Which tensors among the arguments and results are the same, and which share their memory."""
    leaves = _pytree.tree_leaves((outcome.after, outcome.value))
    objects: dict[int, int] = {}
    memory: dict[int, int] = {}
    found = []
    for number, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided and leaf.numel():
            found.append((objects.setdefault(id(leaf), number),
                          memory.setdefault(leaf.untyped_storage().data_ptr(), number)))
    return found


@dataclasses.dataclass
class Seen:
    """What is there after a call."""

    outcome: Outcome
    aliases: list[tuple[int, int]]
    attributes: dict[str, Any]
    globals: dict[str, Any]
    settings: dict[str, Any]


def see(at: World, callee: Any, each: Any) -> Seen:
    seed()
    outcome = run_one(callee, each)
    left = settings()
    if outcome.error is None:
        backward(outcome)
    return Seen(outcome, aliases(outcome), attributes(callee), global_data(at.module), left)


# ---- judging -----------------------------------------------------------------------------------


@dataclasses.dataclass
class Verdict:
    """How a captured program behaves."""

    said: str  # as in "captured="
    wrong: list[str] = dataclasses.field(default_factory=list)  # silently different, or left
    details: list[str] = dataclasses.field(default_factory=list)


def _changed(before: dict[str, Any], after: dict[str, Any], what: str) -> list[str]:
    found = [difference(before, after, path=what)]
    return [why for why in found if why]


def _kind(error: Exception, captured: Any) -> str:
    text = str(error)
    for graph in (captured, *captured._others):
        for guard in graph.guards:
            if text.startswith(f"{guard.expression} was "):
                return guard.kind
    slots = [slot.path for graph in (captured, *captured._others) for slot in graph._slots]
    return "attributes" if text.startswith(tuple(slots)) else "arguments"


def _capture(at: World, recapture: bool, verdict: Verdict) -> Any:
    """Captures, and sees that everything is as it was."""
    first = at.program.calls[0]
    example = first.copy()
    seed()
    if first.mode is not None:
        at.made.train(first.mode)
    before = settings(), attributes(at.made), global_data(at.module)
    given = copy.deepcopy(example)
    captured = None
    try:
        captured = cfx.capture(at.made, *example.args, recapture=recapture, **example.kwargs)
    except Exception as error:
        verdict.said = f"refused {type(error).__name__}: {error}"
    after = settings(), attributes(at.made), global_data(at.module)
    for what, old, new in zip(("settings", "model", "globals"), before, after):
        verdict.wrong += _changed(old, new, f"{what} after the capture")
    old, new = ({"": (each.args, each.kwargs)} for each in (given, example))
    verdict.wrong += _changed(old, new, "example inputs")
    return captured


def _compare(number: int, want: Seen, got: Seen, first: dict[str, Any]) -> list[str]:
    why = disagreement(want.outcome, got.outcome)
    found = [f"call {number}: {why}"] if why else []
    if getattr(want.outcome, "gradient_error", "") != getattr(got.outcome, "gradient_error", ""):
        found.append(f"call {number}: backward of the result: "
                     f"{getattr(got.outcome, 'gradient_error', 'works')}")
    wanted = {name: value for name, value in want.attributes.items() if name in got.attributes
              or name not in first or difference(first[name], value)}  # fmt: skip
    had = {name: got.attributes.get(name, "missing") for name in wanted}
    for what, old, new in (("attributes", wanted, had), ("globals", want.globals, got.globals),
                           ("aliases", {"": want.aliases}, {"": got.aliases}),
                           ("settings", want.settings, got.settings)):
        found += [f"call {number}: {why}" for why in _changed(old, new, what)]
    return found


def _is_guard(outcome: Outcome) -> bool:
    return isinstance(outcome.error, cfx.CaptureError)


def judge(program: Program, recapture: bool = False) -> Verdict:
    """Captures a program from its first call, and makes all calls."""
    verdict = Verdict("equal")
    at = world(program)
    captured = _capture(at, recapture, verdict)
    if captured is None:
        forget(at)
        return verdict
    calls = at.program.calls
    got = [see(at, captured, each) for each in calls]
    refused = [_is_guard(seen.outcome) for seen in got]
    torch.set_grad_enabled(True)  # a program may leave them switched
    torch.set_default_dtype(torch.float32)
    eager = world(program)
    first = attributes(eager.made)
    for number, each in enumerate(eager.program.calls):
        if refused[number]:  # then it must have done nothing
            verdict.details.append(f"call {number}: {got[number].outcome.error}")
            continue
        want = see(eager, eager.made, each)
        if want.outcome.error is None and got[number].outcome.error is not None:
            error = got[number].outcome.error
            verdict.said = f"raises {type(error).__name__}: {error}"
            break  # what is there now differs
        verdict.wrong += _compare(number, want, got[number], first)
    if any(refused):
        error = got[refused.index(True)].outcome.error
        kind = _kind(error, captured)
        verdict.said = f"guard {kind}"
        if kind not in ("arguments", "attributes") and not re.search(
                rf"\b{program.topic}\.py:\d+", str(error)):
            verdict.details.append(f"no line of the program: {error}")
    forget(at)
    forget(eager)
    return verdict


# ---- in C --------------------------------------------------------------------------------------


def _warmed(at: World, calls: Any) -> Any:
    """A captured module that has the graphs for these calls, with the state of the beginning; and
    the values that the attributes had which it changes."""
    captured = cfx.capture(at.made, *calls[0].copy().args, recapture=True,
                           **calls[0].copy().kwargs)  # fmt: skip
    tensors = [(t, t.detach().clone()) for t in (*captured.parameters(), *captured.buffers())]
    before = {path: _kept(state.read_attribute(captured, path)) for path in _slots(captured)}
    for each in calls:
        run_one(captured, each)
    missing = [path for path in _slots(captured) if path not in before]
    before.update({path: state.read_attribute(at.made, path) for path in missing})
    with torch.no_grad():
        for tensor, content in tensors:
            if not tensor.is_meta and not torch.equal(tensor, content):
                tensor.copy_(content)
    return captured, before


def _slots(captured: Any) -> list[str]:
    return [slot.path for graph in (captured, *captured._others) for slot in graph._slots]


def judge_in_c(program: Program) -> Verdict:
    """Captures a program, lets it run so that all graphs are there, lowers it and makes all calls
    again in C. Said is "equal", "lowered not WORDS", "refused WORDS" or "raises WORDS"."""
    verdict = Verdict("equal")
    at, eager = world(program), world(program)
    calls = list(itertools.takewhile(lambda c: c.mode == at.program.calls[0].mode and not c.within,
                                     at.program.calls))  # fmt: skip
    if not calls:
        return Verdict("refused: the first call is in a context")
    if calls[0].mode is not None:
        at.made.train(calls[0].mode)
        calls = [dataclasses.replace(each, mode=None) for each in calls]
        eager.made.train(at.made.training)
    try:
        captured, before = _warmed(at, calls)
        lowered = cfx.lower(captured)
        if before:
            lowered.attributes.update(before)
    except cfx.LowerError as error:
        verdict.said = f"lowered not {error}"
        return verdict
    except Exception as error:
        verdict.said = f"refused {type(error).__name__}: {error}"
        return verdict
    for number, (each, own) in enumerate(zip(calls, eager.program.calls)):
        seed()
        got = run_one(lowered, each)
        wanted = isinstance(got.error, cfx.CaptureError) or each.raises is None
        if got.error is not None and wanted:
            verdict.said = f"raises {type(got.error).__name__}: {got.error}"
            return verdict
        seed()
        want = run_one(eager.made, dataclasses.replace(own, mode=None))
        why = disagreement(want, got, exact=False, words=False)
        wanted = {path: _kept(state.read_attribute(eager.made, path)) for path in before}
        had = {path: lowered.attributes[path] for path in before}
        why = why or difference(wanted, had, exact=False, path="attributes")
        if why:
            verdict.wrong.append(f"call {number}: {why}")
    forget(at)
    forget(eager)
    return verdict
