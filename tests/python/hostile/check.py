"""Compares what a captured program does with what it does in eager PyTorch: results, arguments,
state of modules and globals afterwards, modes, random numbers, gradients; call after call."""
import collections
import contextlib
import copy
import dataclasses
import io
import os
import pickle
import random
import re
import types
import warnings
from typing import Any

import cfx
import numpy as np
import torch
from programs import difference, thaw
from torch import nn

from . import Program, load_one, refuse_lines

TIMES = 3  # calls with one input, one after the other
ONE_MODE = re.compile("captured in (training|eval) mode only")
INTERNAL = (SystemError, RecursionError, MemoryError, AssertionError)


# ---- pictures: any object as tuples, dicts, numbers and tensors ----------------------------------


def picture(x: Any, seen: tuple = ()) -> Any:
    """A copy that can be compared, and that later changes do not reach."""
    if x is None or isinstance(x, (bool, int, float, complex, str, bytes, torch.dtype)):
        return x
    if isinstance(x, cfx.Tensor):
        x = torch.from_dlpack(x)
    if isinstance(x, torch.Tensor):
        copied = x.detach().clone()
        return copied.requires_grad_() if x.requires_grad else copied
    if id(x) in seen:
        return f"round again, {seen[::-1].index(id(x))}"
    seen = (*seen, id(x))
    inner = lambda part: picture(part, seen)  # noqa: E731
    kind = type(x).__name__
    if isinstance(x, (types.FunctionType, types.MethodType, type, types.ModuleType)):
        return getattr(x, "__qualname__", kind)
    if isinstance(x, np.ndarray):
        return kind, str(x.dtype), x.tolist()
    if isinstance(x, np.generic):
        return kind, x.item()
    if isinstance(x, (set, frozenset)):
        return kind, sorted((repr(inner(part)) for part in x))
    if isinstance(x, dict):
        parts = {k if isinstance(k, str) else repr(inner(k)): inner(v) for k, v in x.items()}
        return (kind, parts, *held_by(x, inner))
    if isinstance(x, (list, tuple, collections.deque)):
        extra = [x.maxlen] if isinstance(x, collections.deque) else []
        return (kind, [inner(part) for part in x], *extra, *held_by(x, inner))
    if isinstance(x, bytearray):
        return kind, bytes(x)
    if isinstance(x, random.Random):
        return kind, hash(x.getstate())
    if isinstance(x, torch.Generator):
        return kind, x.get_state()
    if isinstance(x, types.GeneratorType):
        return kind, None if x.gi_frame is None else x.gi_frame.f_lasti
    if isinstance(x, nn.Module):
        return kind, inner(state_of(x))
    if hasattr(x, "__next__"):
        with contextlib.suppress(TypeError):
            return kind, inner(x.__reduce__())
    return (kind, *held_by(x, inner))


def vars_of(x):
    slots = [name for cls in type(x).__mro__ for name in getattr(cls, "__slots__", ())]
    return {name: getattr(x, name) for name in [*slots, *getattr(x, "__dict__", ())]
            if hasattr(x, name)}


def held_by(x, inner):
    """The attributes of an object, if it has any."""
    held = {name: inner(value) for name, value in vars_of(x).items()}
    return [held] if held else []


# What modules have of their own; training is a mode, and is compared.
OWN = set(vars(nn.Module())) - {"training"}


def state_of(module: nn.Module) -> dict:
    """Parameters, buffers, modes and plain attributes, by path."""
    found, seen = {}, set()  # a tensor that has two names has the first one
    for path, part in module.named_modules():
        before = path and f"{path}."
        found.update({f"{before}{k}": v for k, v in vars(part).items() if k not in OWN})
        for held in (part._parameters, part._buffers):
            for name, value in held.items():
                if value is None or id(value) not in seen:
                    found[before + name] = value
                    seen.add(id(value))
    return found


def globals_of(program: Program) -> dict:
    """What the file of a program holds that a program can change."""
    found = {}
    for name, value in vars(program.home).items():
        if name in ("PROGRAMS", "THEME") or name.startswith("__") and name.endswith("__"):
            continue
        if isinstance(value, types.FunctionType):
            defaults = value.__defaults__, value.__kwdefaults__
            held = {k: v for k, v in vars(value).items() if k != "__wrapped__"}
            found[name] = (*defaults, held)
        elif isinstance(value, type) and value.__module__ == program.home.__name__:
            found[name] = {k: v for k, v in vars(value).items()
                           if not callable(v) and not k.startswith("__")
                           and not hasattr(v, "__get__")}
        elif not isinstance(value, (types.ModuleType, type)) and not hasattr(value, "cache_info"):
            found[name] = value
    return found


def modes() -> dict:
    return {"grad mode": torch.is_grad_enabled(),
            "inference mode": torch.is_inference_mode_enabled(),
            "autocast": torch.is_autocast_enabled("cpu"),
            "default dtype": torch.get_default_dtype(),
            "autocast dtype": torch.get_autocast_dtype("cpu"),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "environment": hash(tuple(sorted(os.environ.items())))}


def random_state() -> dict:
    numbers = np.random.get_state()
    return {"torch": torch.get_rng_state(), "numpy": hash((numbers[1].tobytes(), *numbers[2:])),
            "random": hash(random.getstate())}


def seed(n: int) -> None:
    torch.manual_seed(n)
    np.random.seed(n)
    random.seed(n)


@contextlib.contextmanager
def restored():
    """The modes as they were, whatever a program left."""
    grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    environment = dict(os.environ)
    try:
        yield
    finally:
        torch.set_grad_enabled(grad)
        torch.set_autocast_enabled("cpu", False)
        torch.set_default_dtype(dtype)
        torch.use_deterministic_algorithms(False)
        for name in set(os.environ) - set(environment):
            del os.environ[name]
        os.environ.update(environment)


# ---- one call ----------------------------------------------------------------------------------


@dataclasses.dataclass
class Seen:
    """What one call did."""

    value: Any = None
    error: BaseException | None = None
    drew: bool = False  # random numbers
    pictures: dict = dataclasses.field(default_factory=dict)
    state: dict = dataclasses.field(default_factory=dict)


def tensors_in(x, found=None):
    """Tensors in containers, in order."""
    found = [] if found is None else found
    if isinstance(x, torch.Tensor):
        found.append(x)
    elif isinstance(x, dict):
        for part in x.values():
            tensors_in(part, found)
    elif isinstance(x, (list, tuple, collections.deque)):
        for part in x:
            tensors_in(part, found)
    elif dataclasses.is_dataclass(x) and not isinstance(x, type):
        tensors_in(list(vars_of(x).values()), found)
    return found


def aliases(args, value):
    """Which tensors among arguments and results share memory: the number of the first one."""
    first, found = {}, []
    for n, t in enumerate(tensors_in((args, value))):
        where = t.untyped_storage().data_ptr()
        found.append(first.setdefault(where, n) if where else n)
    return found


def gradients(value, leaves):
    """Of the sum of the results, for arguments and parameters; None where there are none."""
    sums = [t.sum() for t in tensors_in(value) if t.requires_grad and t.is_floating_point()]
    leaves = [t for t in leaves if t.requires_grad]
    if not sums or not leaves:
        return None
    try:
        return torch.autograd.grad(sum(sums), leaves, allow_unused=True, retain_graph=True)
    except RuntimeError as e:
        return type(e).__name__


def touch(value):
    """Changes lists and dicts of a result, as its owner may."""
    if isinstance(value, list):
        value.append("changed by the caller")
    elif type(value) is dict:
        value["changed by the caller"] = True
    if isinstance(value, (list, tuple)):
        for part in value:
            touch(part)


def call(callee, given, owner, home) -> Seen:
    """Calls it with a copy of the arguments; `owner` is the module whose state is looked at."""
    args, seen = copy.deepcopy(given), Seen()
    leaves = tensors_in(args)
    parameters = dict(owner.named_parameters()) if isinstance(owner, nn.Module) else {}
    before, printed = random_state(), io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            seen.value = callee(*args)
    except Exception as e:
        seen.error = e
    seen.pictures["printed"] = printed.getvalue()
    seen.pictures["result"] = picture(seen.value)
    seen.pictures["modes afterwards"] = modes()
    seen.pictures["random state afterwards"] = random_state()
    seen.drew = bool(differs(before, seen.pictures["random state afterwards"], ""))
    seen.pictures["arguments afterwards"] = picture(args)
    if home is not None:
        seen.pictures["globals afterwards"] = picture(globals_of(home))
    if torch.is_grad_enabled():
        seen.pictures["gradients"] = picture(gradients(seen.value, leaves))
        found = gradients(seen.value, list(parameters.values()))
        if isinstance(found, tuple):
            named = [name for name, p in parameters.items() if p.requires_grad]
            seen.state["gradient of"] = {n: picture(g) for n, g in zip(named, found)}
    seen.pictures["shared memory"] = aliases(args, seen.value)
    seen.state.update(picture_state(owner))
    touch(seen.value)
    return seen


def picture_state(owner):
    if not isinstance(owner, nn.Module):
        return {}
    return {name: picture(value) for name, value in state_of(owner).items()}


def builtin_class(error):
    """A graph raises the builtin class that a class of the program derives from."""
    return next(c for c in type(error).__mro__
                if c.__module__ == "builtins" or c.__module__.startswith("torch"))


def disagreement(want: Seen, got: Seen, before: dict) -> str:
    """How two calls differ, or "". `before` is the state of the module before all calls: attributes
    that the graph does not have must not have changed since."""
    if want.error is None and got.error is not None:
        return f"raises {type(got.error).__name__}: {str(got.error)[:200]}"
    if want.error is not None and got.error is None:
        return f"does not raise {type(want.error).__name__}: {str(want.error)[:100]}"
    if want.error is not None and type(got.error) not in (type(want.error),
                                                          builtin_class(want.error)):
        return f"raises {got.error!r:.200}, not {want.error!r:.200}"
    for what in want.pictures:
        if what in got.pictures:
            if found := differs(want.pictures[what], got.pictures[what], what):
                return found
    return state_disagreement(want.state, got.state, before)


def state_disagreement(want, got, before):
    mine, yours = want.get("gradient of", {}), got.get("gradient of", {})
    for name in mine:
        if name in yours and (found := differs(mine[name], yours[name], f"gradient of {name}")):
            return found
    for name in want.keys() - {"gradient of", "training"}:
        if name in got:
            if found := differs(want[name], got[name], f"state: {name}"):
                return found
        elif name.rpartition(".")[2] != "training" and differs(before.get(name), want[name], name):
            return f"state: {name} was changed, and the graph does not keep it"
    return ""


def differs(want, got, what, exact=True):
    return difference(want, got, exact, what)


# ---- ways to run what was captured ---------------------------------------------------------------


def interpreted(module, _):
    interpreter = cfx.Interpreter(module)
    interpreter.extra_traceback = False  # exceptions are those that were raised
    return lambda *args: thaw(interpreter.run(*args)), module


def pickled(module, _):
    again = pickle.loads(pickle.dumps(module))
    return again, again


def can_pickle(program):
    try:
        pickle.dumps(program.make())
    except Exception:
        return False
    return True


def read_back(module, home):
    """As a user reads it, whose own classes the text may name."""
    again = cfx.GraphModule(module, cfx.parse(cfx.text(module.graph), allow=[home]))
    return again.train(module.training), again


WAYS = {"called": lambda module, _: (module, module), "interpreted": interpreted,
        "pickled": pickled, "read back": read_back}
# Mode of the module, whether gradients are on, calls with one input.
SETTINGS = ((True, True, TIMES), (False, True, TIMES), (False, False, 1))


def sequence(callee, owner, inputs, home, settings=SETTINGS):
    """All calls, as (label, what was seen)."""
    for n, (training, grad, times) in enumerate(settings):
        if isinstance(owner, nn.Module):
            owner.train(training)
        seed(n)
        for i, given in enumerate(inputs):
            for k in range(times):
                with restored(), torch.set_grad_enabled(grad):
                    seen = call(callee, given, owner, home)
                mode = ("train" if training else "eval") + ("" if grad else ", no_grad")
                yield f"{mode}, input {i}, call {k}", seen


def eager(program, settings):
    """(the state before, what the calls did)"""
    made = program.make()
    before = picture_state(made)
    return before, list(sequence(made, made, program.inputs, program, settings))


def captured(program, training):
    """(what cfx.script made of it, or the error, the trace that this left)."""
    made = program.make()
    if isinstance(made, nn.Module):
        made.train(training)
    seed(7)
    before = traces(program, made)
    error, module, printed = None, None, io.StringIO()
    with restored():
        try:
            with contextlib.redirect_stdout(printed):
                module = cfx.script(made)
        except Exception as e:
            error = e
        trace = differs(before, traces(program, made), "capture left a trace")
    if printed.getvalue():
        trace = trace or f"capture prints {printed.getvalue()!r}"
    return module, error, trace


def traces(program, made):
    return picture({"state": picture_state(made), "globals": globals_of(program), "modes": modes(),
                    "random": random_state(), "object": made if not callable(made) else None})


def line_of(error, program):
    """The line that an error names first."""
    said = "\n".join([str(error), *getattr(error, "__notes__", ())])
    name = re.escape(f"{program.theme}.py")
    found = re.search(rf'{name}(?::|", line )(\d+)', said)
    return int(found[1]) if found else None


# ---- the verdict ---------------------------------------------------------------------------------


def is_clear(error, program):
    """Whether it names a line of the program, and is not about cfx's own state."""
    return (type(error) not in INTERNAL and "was erased" not in str(error)
            and line_of(error, program) is not None)


def refusal(program, error, trace):
    """(status, words) of a program that was not captured."""
    said = f"{type(error).__name__}: {str(error)[:300]}"
    if trace or not is_clear(error, program):
        return "wrong", trace or f"capture raises {said}"
    if program.refused is None:
        return "refused", said
    if not program.refused:
        return "refused without need", said
    line, marked = line_of(error, program), refuse_lines(program.key)
    if line not in marked:
        return "wrong", f"refused at line {line}, not {sorted(marked)}: {said}"
    return "refused", said


def verdict(load, settings=None, ways=tuple(WAYS)) -> tuple[str, str]:
    """(status, words): "equal", "refused", "refused without need", or "wrong". `load` makes the
    program anew."""
    modes_of_capture = (True, False)
    if settings is None:
        settings = SETTINGS
    if not isinstance(load().new, type):  # functions have no modes
        settings = [s for s in settings if s[0] or not s[1]]
        modes_of_capture = (True,)
    status, words = "wrong", ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for training in modes_of_capture:
            status, words = verdict_in_mode(load, training, settings, ways)
            if status != "equal":
                break
    return status, words


def verdict_in_mode(load, training, settings, ways):
    program = load()
    module, error, trace = captured(program, training)
    if error is not None:
        return refusal(program, error, trace)
    if trace:
        return "wrong", trace
    module.graph.lint()
    before, want = eager(load(), settings)
    for way in ways:
        if way != "called":
            program = load()
            module, *_ = captured(program, training)
        try:
            callee, owner = WAYS[way](module, program.home)
        except Exception as e:
            if way == "pickled" and not can_pickle(program) or "IR text cannot hold" in str(e):
                continue
            return "wrong", f"{way}: {type(e).__name__}: {str(e)[:200]}"
        # What is pickled has copies of the tensors that are globals.
        home = None if way == "pickled" else program
        got = sequence(callee, owner, program.inputs, home, settings)
        for (label, a), (_, b) in zip(want, got):
            other = [s for s in settings if s[0] != training]
            if other and ONE_MODE.search(str(b.error)):
                # Refused when it is run: what eager PyTorch does in the other mode is no measure.
                settings = [s for s in settings if s[0] == training]
                return verdict_in_mode(load, training, settings, ways)
            if found := disagreement(a, b, before):
                mode = "train" if training else "eval"
                return "wrong", f"{way}, captured in {mode}: {label}: {found}"
    return "equal", "equal"


def check(key: str) -> tuple[str, str]:
    """The verdict on a program of a theme."""
    return verdict(lambda: load_one(key))
