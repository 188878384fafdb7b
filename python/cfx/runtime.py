"""Models from .cfx files, run in C: torch need not be installed.

    run = cfx.runtime.load("resnet18.cfx")
    y = run(x)          # a NumPy array for a NumPy array, a torch tensor for a torch tensor
    print(run.signature)
"""
import os
import threading
from typing import Any, NamedTuple, Protocol

from . import _core
from ._core import Runtime
from ._glue.binding import bind
from ._glue.door import Structured
from ._glue.listing import public_names
from ._glue.stored import StructureError

__all__ = ["Input", "InputError", "Model", "Session", "Signature", "load"]


class InputError(ValueError):
    """The inputs are not what any graph of the file was captured for."""


class Input(NamedTuple):
    """What is known of one input."""

    name: str
    kind: str  # "tensor", "int", "float", "bool" or "any"
    dtype: str | None  # of a tensor: "float32"; None: any
    sizes: tuple[int | str | None, ...] | None  # of a tensor; a text names a size that may differ
    state: bool  # kept by the model from call to call


class Signature:
    """What a graph takes and gives. `print` shows all of it."""

    def __init__(self, inputs: list[tuple[Any, ...]], results: list[tuple[str, bool]],
                 text: str) -> None:
        every = [Input(*row) for row in inputs]
        self.inputs = tuple(row for row in every if not row.state)
        self.state = tuple(row for row in every if row.state)
        self.results = tuple(name for name, state in results if not state)
        self._text = text

    def __str__(self) -> str:
        return self._text.rstrip("\n")

    def __repr__(self) -> str:
        return f"<Signature\n{self._text}>"


# ---- how arguments and results are nested ------------------------------------------------------


class Door(Protocol):
    """Between a caller's arguments and the inputs of a graph."""

    keeps: bool  # whether the graph keeps something from call to call

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
        """The inputs in order, and whatever `result` needs of this call. TypeError for arguments
        that the graph does not take."""

    def result(self, value: Any, call: Any) -> Any:
        """What the caller gets for what the graph has returned."""


class _Plain:
    """Arguments are inputs, by position or by name, and results are as the graph returns them."""

    def __init__(self, names: list[str], keeps: bool) -> None:
        self.names, self.keeps = names, keeps

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
        if len(args) == len(self.names) and not kwargs and not any(
                name.startswith("*") for name in self.names):
            return list(args), None
        return bind(self.names, args, kwargs, lambda name: NotImplemented), None  # its default

    def result(self, value: Any, call: Any) -> Any:
        return value


def _structure_of(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    values = list(_core.Graph._parse(text, frozenset()).nodes)[-1].args[0]
    found: dict[str, Any] | None = values.get("structure")
    return found


def _door(text: str | None, signature: Signature) -> Door:
    names = [row.name for row in signature.inputs]
    structure = _structure_of(text)
    if structure is None or "leaves" not in structure:
        return _Plain(names, bool(signature.state))
    try:
        return Structured(structure, names)
    except (StructureError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"signature.ir of the file is damaged: {error}") from error


# ---- models ------------------------------------------------------------------------------------


class Session:
    """A model with a state of its own: a cache, a counter. It begins with what the model had when
    it was saved. Calls from several threads come one after the other."""

    def __init__(self, model: "Model") -> None:
        self.model = model
        self._kept = model._made.session() if model._keeps else None
        self._lock = threading.Lock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._kept is None:
            return self.model._run(None, args, kwargs)
        with self._lock:
            return self.model._run(self._kept, args, kwargs)

    def __repr__(self) -> str:
        return f"<Session of {self.model!r}>"


class Model:
    """A model from a file. Call it with what the module took; tensors of the result belong to the
    library of the inputs. Threads may call it at once: a model without state has no lock."""

    def __init__(self, made: _core._Executable, runtime: Runtime) -> None:
        self._made = made
        self.runtime = runtime  #: what it computes with
        self.model: str = made.model  #: the name of its class
        #: what each of its graphs takes: one for each kind of inputs that it was captured for
        self.graphs: tuple[Signature, ...] = tuple(Signature(*row) for row in made.signatures())
        self.signature = self.graphs[0]
        self._doors = [_door(text, graph) for text, graph in zip(made.texts(), self.graphs)]
        self._keeps = any(door.keeps for door in self._doors)
        self._own = Session(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._own(*args, **kwargs) if self._keeps else self._run(None, args, kwargs)

    def session(self) -> Session:
        """The same model with a state of its own, as it was when it was saved."""
        return Session(self)

    def _run(self, kept: _core._Session | None, args: tuple[Any, ...],
             kwargs: dict[str, Any]) -> Any:
        """The first graph that takes these arguments."""
        first: Exception | None = None
        for i, door in enumerate(self._doors):
            try:
                inputs, call = door.bind(args, kwargs)
            except TypeError as error:
                first = first or error
                continue
            agrees, value = self._made.run(i, kept, self.runtime, *inputs)
            if agrees:
                return door.result(value, call)
            first = first or InputError(value)
        assert first is not None
        raise first

    def __repr__(self) -> str:
        inputs = ", ".join(row.name for row in self.signature.inputs)
        return f"<cfx.runtime.Model {self.model}({inputs})>"


def _named_weights(weights: Any) -> dict[str, Any] | None:
    if weights is None or isinstance(weights, dict):
        return weights
    if isinstance(weights, (str, bytes, os.PathLike)):
        return dict(_core._load_weights(weights))
    if hasattr(weights, "state_dict"):
        return dict(weights.state_dict())
    raise TypeError("weights must be a dict of tensors, a path or a module, not "
                    f"{type(weights).__name__}")


def load(source: Any, *, threads: int | None = None, seed: int = 0, weights: Any = None,
         map: bool = True, verify: bool = False) -> Model:  # fmt: skip
    """Loads a .cfx file (a path, or its bytes), ready to run in C. `threads`: None for as many as
    the process may use. `seed` begins its random numbers. `weights` (a dict, a path or a module)
    take the place of those in the file. `map=False` reads the file into memory, so that it may be
    truncated. `verify` compares hashes. What cannot run without Python is a TypeError that names
    the calls."""
    made = _core._Executable(source, not map, verify, _named_weights(weights))
    return Model(made, Runtime(threads=threads or 0, seed=seed))


__dir__ = public_names(globals())
