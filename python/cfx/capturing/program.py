"""A program that is captured: a module or a function, and how it is run for that."""
import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch

from ..scripting import script
from .guards import CaptureError, raised_at, user_line
from .installed import call_with
from .protocol import check_version
from .run import SAYS_PLAIN, Captured, Knowledge, Options, Run
from .turns import running, turns

_MOST_RUNS = 12  # each has found something that the next one has to know


class _Function(torch.nn.Module):
    """The root of a function: it has no weights of its own."""

    def forward(self) -> None: ...


def _split(path: str) -> tuple[str, str]:
    """The path of a module, and the name of an attribute of it."""
    outer, _, name = path.rpartition(".")
    return outer, name


# What torch says where a capture cannot go on, and what a user can do about it.
_ADVICE = (
    (SAYS_PLAIN,
     "torch cannot work with sizes that may change here, below its Python API; leave these sizes "
     "fixed (dynamic=), or compute it another way"),
    (("Cannot access data pointer of Tensor that doesn't have storage",),
     "a transform of torch.func makes a tensor here that is another one for each row, such as "
     "torch.rand(n) inside of vmap; make it outside, with one more dimension, or from an argument: "
     "torch.rand_like(row)"),
    (("NestedTensorImpl doesn't support sizes", "'NestedIntNode' object"),
     "a graph cannot describe nested tensors; use a padded tensor and the lengths"),
    (("cannot be called on meta tensors", "Cannot copy out of meta tensor",
      "The register_meta function for"),
     "the program needs the value of a tensor here, but tensors on the meta device have none; "
     "capture it with inputs that have values"),
)  # fmt: skip


def _explain(error: Exception) -> None:
    """Words for an error of torch that has none for users."""
    for said, advice in _ADVICE:
        if not isinstance(error, CaptureError) and any(words in str(error) for words in said):
            raise CaptureError(f"{raised_at(error)}: {advice}") from error


class Program:
    """What is captured."""

    def __init__(self, program: Callable[..., Any], options: Options) -> None:
        if not callable(program):
            kind = type(program).__qualname__
            raise TypeError(f"capture needs a module or a function, not {kind}")
        check_version()
        self.program, self.options = program, options
        owner = program if isinstance(program, torch.nn.Module) else getattr(
            program, "__self__", None)
        self.empty = _Function()
        self.named: dict[str, Any] = {}  # tensors from outside that graphs read: a name is one's
        self.root = owner if isinstance(owner, torch.nn.Module) else self.empty

    @property
    def name(self) -> str:
        if isinstance(self.program, torch.nn.Module):
            return type(self.program).__name__
        name = getattr(self.program, "__name__", type(self.program).__name__)
        return name if name.isidentifier() else "Captured"

    @property
    def function(self) -> Callable[..., Any]:
        if isinstance(self.program, torch.nn.Module):
            return self.program.forward
        return self.program

    def capture(self, args: tuple, kwargs: dict[str, Any],
                slots: Iterable[str] = ()) -> Captured:  # fmt: skip
        """Runs the program on examples until a run finds nothing new. `slots` are paths of
        attributes that it is known to change."""
        if getattr(running, "name", None):
            raise CaptureError(f"{user_line()}: cfx.capture was called by a program that is being "
                               f"captured ({running.name}); capture the parts one after the other")
        known = Knowledge([_split(path) for path in slots], self.named)
        with turns:
            captured = call_with([self], functools.partial(self._runs, args, kwargs, known))
            self.named.update(captured.foreign)
            return captured

    def install(self) -> None:
        running.name = self.name

    def remove(self) -> None:
        running.name = None

    def _runs(self, args: tuple, kwargs: dict[str, Any], known: Knowledge) -> Captured:
        for count in range(1, _MOST_RUNS + 1):
            run = Run(self.root, self.function, args, kwargs, known, self.options)
            try:
                captured = run.run()
            except Exception as error:
                if not known.has_another_way(error):
                    _explain(error)
                    raise
                continue
            captured.runs = count
            if not known.learn(run):
                break
            scripted = self._scripted(known)
            if scripted is not None:
                captured.take_script(scripted)
                break
        return captured

    def _scripted(self, known: Knowledge) -> Any:
        """The whole program from its source, if it is itself what asks for data; None if the
        evaluator refuses it."""
        function: Any = getattr(self.function, "__func__", self.function)
        code = getattr(function, "__code__", None)
        if code is None or known.askers.functions.get(code) is not function:
            return None
        try:
            return script(self.program)
        except Exception as error:
            known.askers.refuse(code, error)
            return None
