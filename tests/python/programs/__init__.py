"""Small programs as people write them, to be captured from their source.

Each has several inputs, which take different ways through it and have other sizes. A file is a
topic; what it holds is declared by @program (a function), @module (a class of modules) and @made (a
function that makes the program). The decorated thing stays what it was.
"""
import collections
import contextlib
import copy
import dataclasses
import enum
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import cfx
import torch

FOLDER = Path(__file__).parent
TOPICS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


@dataclasses.dataclass(frozen=True)
class Call:
    """Arguments of one call of a program."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    raises: type[BaseException] | None = None  # what the call must raise
    mode: bool | None = None  # train(mode) is called before
    within: Any = None  # makes a context that the call is in

    def copy(self) -> "Call":
        return copy.deepcopy(self)


def call(*args: Any, **kwargs: Any) -> Call:
    return Call(args, kwargs)


def training(*args: Any, **kwargs: Any) -> Call:
    return Call(args, kwargs, mode=True)


def evaluating(*args: Any, **kwargs: Any) -> Call:
    return Call(args, kwargs, mode=False)


def within(context: Any, *args: Any, **kwargs: Any) -> Call:
    """A call in a context, which `context()` makes."""
    return Call(args, kwargs, within=context)


def _call(given: Any) -> Call:
    """An input as it may be declared: a tuple of arguments, a Call, or the only argument."""
    if isinstance(given, Call):
        return given
    return Call(given if type(given) is tuple else (given,), {})


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    name: str
    topic: str
    new: Any  # makes the function or module
    calls: tuple[Call, ...]  # run one after the other on the same object
    tags: tuple[str, ...]
    no_row: str  # why cfx's runtime cannot run it: what has no row in the operator table
    local: str  # why it cannot run where its source is not: what of it has to be imported
    refused: str  # the words of the error with which cfx.script refuses it, at a line of its own
    wraps: tuple[str, ...]  # functions that stay calls, for somebody asked for that
    base: bool  # it raises classes of its own, of which a graph knows the builtin base class only
    mutates: bool  # it writes to its inputs
    train: bool
    captured: str  # what cfx.capture does with it: see tests/python/test_capture_programs.py
    recaptured: str  # and with recapture=True; "" if that makes it equal
    defect: str  # what is known to be wrong with it

    def make(self) -> Any:
        """A new object, always with the same parameters."""
        torch.manual_seed(0)
        made = self.new()
        return made.train(self.train) if isinstance(made, torch.nn.Module) else made


def _declare(new, where, name, inputs, tags="", raises=(), no_row="", local="", refused="",
             wraps=(), base=False, mutates=False, train=False, captured="equal", recaptured="",
             defect=""):
    module = sys.modules[where]
    calls = [_call(given) for given in inputs]
    calls += [dataclasses.replace(_call(given), raises=error) for given, error in raises]
    found = Program(name, module.TOPIC, new, tuple(calls), tuple(tags.split()), no_row, local,
                    refused, tuple(wraps), base, mutates, train, captured, recaptured, defect)
    module.PROGRAMS.append(found)


def program(*inputs, **options):
    """Declares a function as a program. `options` are those of Program; `raises` has pairs of an
    input and the exception that it must raise."""

    def declare(function):
        _declare(lambda: function, function.__module__, function.__name__, inputs, **options)
        return function

    return declare


def module(*inputs, **options):
    """Likewise for a class of modules that is made without arguments."""

    def declare(cls):
        _declare(cls, cls.__module__, cls.__name__, inputs, **options)
        return cls

    return declare


def made(*inputs, **options):
    """Likewise for what the function returns: a closure, a method, a module with arguments."""

    def declare(new):
        _declare(new, new.__module__, new.__name__, inputs, **options)
        return new

    return declare


def load(topic: str, again: str = "", package: str = __name__) -> list[Program]:
    """The programs of a file. With `again`, a suffix for the name of the Python module, the file is
    executed once more: all functions and classes are new objects, which no cache has seen."""
    name = f"{package}.{topic}{again}"
    if name in sys.modules:
        return sys.modules[name].PROGRAMS
    folder = Path(sys.modules[package].__file__).parent
    spec = importlib.util.spec_from_file_location(name, folder / f"{topic}.py")
    loaded: types.ModuleType = importlib.util.module_from_spec(spec)
    loaded.TOPIC, loaded.PROGRAMS = topic, []
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded.PROGRAMS


def load_all() -> list[Program]:
    return [found for topic in TOPICS for found in load(topic)]


# ---- inputs: the same in every run -----------------------------------------------------------


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    """Numbers with a positive sum."""
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return x if x.sum() >= 0 else -x


def ints(*values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


# ---- what a program does, and comparing it -----------------------------------------------------


@dataclasses.dataclass
class Outcome:
    value: Any = None
    error: BaseException | None = None
    after: Any = None  # the arguments, as the call left them


def run(callee: Any, calls: tuple[Call, ...]) -> list[Outcome]:
    """What the calls give, one after the other."""
    return [run_one(callee, each) for each in calls]


def run_one(callee: Any, each: Call) -> Outcome:
    given, outcome = each.copy(), Outcome()
    try:
        if each.mode is not None:
            callee.train(each.mode)
        with each.within() if each.within else contextlib.nullcontext():
            outcome.value = callee(*given.args, **given.kwargs)
    except Exception as e:
        outcome.error = e
    outcome.after = given.args, given.kwargs
    return outcome


# How far apart numbers may be that were computed by other kernels, or in another order.
CLOSE = {torch.float64: 1e-9, torch.float32: 2e-5, torch.complex64: 2e-5, torch.complex128: 1e-9,
         torch.float16: 4e-3, torch.bfloat16: 3e-2}


def _tensors(want: torch.Tensor, got: torch.Tensor, exact: bool) -> str:
    for what in ("dtype", "shape", "device", "layout"):
        if getattr(want, what) != getattr(got, what):
            return f"{what} {getattr(got, what)}, not {getattr(want, what)}"
    if exact and want.requires_grad != got.requires_grad:
        return f"requires_grad {got.requires_grad}"
    near = 0.0 if exact else CLOSE.get(want.dtype, 0.0)
    want, got = ((x if type(x) is torch.Tensor else x.as_subclass(torch.Tensor)).detach()
                 for x in (want, got))  # fmt: skip
    want, got = (x.to_dense() if x.layout != torch.strided else x
                 for x in (want, got))  # fmt: skip
    if not torch.allclose(want, got, rtol=near, atol=near, equal_nan=True):
        return f"{got.flatten()[:8].tolist()}, not {want.flatten()[:8].tolist()}"
    return ""


def _numbers(want: Any, got: Any, exact: bool) -> str:
    if isinstance(want, (type, types.FunctionType, enum.Enum)):
        want, got = (getattr(x, "__qualname__", str(x)) for x in (want, got))
    if hasattr(want, "dtype"):  # of numpy
        same = want.dtype == got.dtype and bool((want == got).all()) and want.shape == got.shape
        return "" if same else f"{got!r}, not {want!r}"
    same = want == got or (want != want and got != got)
    if not same and not exact and isinstance(want, (float, complex)):
        same = abs(want - got) <= 2e-5 * max(1.0, abs(want))
    return "" if same else f"{got!r}, not {want!r}"


def _parts(x: Any) -> dict[Any, Any] | None:
    """What a container holds, by keys in order."""
    if isinstance(x, (tuple, list, collections.deque, collections.UserList)):
        return dict(enumerate(x))
    if isinstance(x, (dict, collections.UserDict)):
        return dict(x)
    if dataclasses.is_dataclass(x):
        return {f.name: getattr(x, f.name) for f in dataclasses.fields(x)}
    if type(x).__eq__ is object.__eq__ and not callable(x):
        return dict(vars(x)) if hasattr(x, "__dict__") else {
            name: getattr(x, name) for name in getattr(x, "__slots__", ()) if hasattr(x, name)}
    return None


def thaw(x):
    """An interpreter gives the containers that are in the graph, as torch.fx's does."""
    if type(x) in (dict, cfx.immutable_dict):
        return {k: thaw(v) for k, v in x.items()}
    if type(x) in (list, cfx.immutable_list):
        return [thaw(v) for v in x]
    return tuple(map(thaw, x)) if type(x) is tuple else x


def difference(want: Any, got: Any, exact: bool = True, path: str = "result") -> str:
    """How `got` differs from `want`, or "": values, dtypes, shapes, types, structure. Types are
    compared by name, for a class may be there twice."""
    if isinstance(want, torch.Tensor) and isinstance(got, torch.Tensor):
        found = _tensors(want, got, exact)
        return found and f"{path}: {found}"
    mine, yours = (type(x).__name__ for x in (want, got))
    if mine != yours and (exact or (mine, yours) != ("Size", "tuple")):  # only torch has torch.Size
        return f"{path}: {yours}, not {mine}"
    parts, others = _parts(want), _parts(got)
    if parts is None:
        found = _numbers(want, got, exact)
        return found and f"{path}: {found}"
    if list(parts) != list(others):
        return f"{path}: holds {list(others)}, not {list(parts)}"
    every = (difference(parts[k], others[k], exact, f"{path}[{k!r}]") for k in parts)
    return next((found for found in every if found), "")


def _errors(mine: BaseException, yours: BaseException, exact: bool, base: bool) -> str:
    """Their classes, and what they say: without `exact`, the other one may say more, as where it
    was, and has its own words for a division by zero. With `base`, the other one is of the builtin
    class that the class of this one is made of."""
    wanted = type(mine)
    if base:
        wanted = next(c for c in wanted.__mro__ if c.__module__ == "builtins")
    same = str(mine) == str(yours)
    if not exact and not same:
        same = str(mine) in str(yours) or all("by zero" in str(e) for e in (mine, yours))
    if wanted.__name__ == type(yours).__name__ and same:
        return ""
    said = (f"{type(e).__name__}: {str(e)[:300]}" for e in (yours, mine))
    return "raises {}, not {}".format(*said)


def disagreement(want: Outcome, got: Outcome, exact: bool = True, words: bool = True,
                 base: bool = False) -> str:
    """How one call differs from another one, or "". Without `words`, any exception is as good as
    any other one; `base` is that of Program."""
    if want.error is None and got.error is None:
        return (difference(want.value, got.value, exact)
                or difference(want.after, got.after, exact, "arguments afterwards"))
    if want.error is None:
        return f"raises {type(got.error).__name__}: {str(got.error)[:300]}"
    if got.error is None:
        return f"does not raise {type(want.error).__name__}"
    return _errors(want.error, got.error, exact, base) if words else ""
