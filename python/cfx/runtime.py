"""Models from .cfx files, run in C: torch need not be installed.

    run = cfx.runtime.load("resnet18.cfx")
    y = run(x)          # a NumPy array for a NumPy array, a torch tensor for a torch tensor
    print(run.signature)
"""
from __future__ import annotations

import os
from _thread import allocate_lock

from . import _core
from ._core import Runtime
from ._glue.binding import bind
from ._glue.listing import public_names

# A process that only runs a model imports nothing else, but what its calls need: loading typing,
# inspect and what else reads structures takes longer than loading the model.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from ._glue.rows import Input

    class _Door(Protocol):
        """Between a caller's arguments and the inputs of a graph."""

        keeps: bool  # whether the graph keeps something from call to call

        def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
            """The inputs in order, and whatever `result` needs of this call. TypeError for
            arguments that the graph does not take."""

        def result(self, value: Any, call: Any) -> Any:
            """What the caller gets for what the graph has returned."""


__all__ = ["Input", "InputError", "Model", "Session", "Signature", "load"]


def __getattr__(name: str) -> Any:
    if name != "Input":
        raise AttributeError(f"module 'cfx.runtime' has no attribute '{name}'")
    from ._glue.rows import Input

    return Input


class InputError(ValueError):
    """The inputs are not what any graph of the file was captured for."""


class Signature:
    """What a graph takes and gives. `print` shows all of it."""

    def __init__(self, inputs: list[tuple[Any, ...]], results: list[tuple[str, bool]],
                 text: str) -> None:
        self._rows = inputs
        self.results = tuple(name for name, state in results if not state)
        self._text = text

    def _of(self, state: bool) -> tuple[Input, ...]:
        from ._glue.rows import Input

        every = [Input(*row) for row in self._rows]
        return tuple(row for row in every if row.state == state)

    @property
    def inputs(self) -> tuple[Input, ...]:
        return self._of(False)

    @property
    def state(self) -> tuple[Input, ...]:
        return self._of(True)

    def __str__(self) -> str:
        return self._text.rstrip("\n")

    def __repr__(self) -> str:
        return f"<Signature\n{self._text}>"


# ---- how arguments and results are nested ------------------------------------------------------


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


class _Simple:
    """Tensors by position, and one result: what most models take and give. The door for all other
    ways to call such a graph is made when somebody calls it so."""

    keeps = False

    def __init__(self, structure: dict[str, Any], names: list[str]) -> None:
        self._structure, self._names = structure, names
        self._count = len(structure["parameters"])
        self._other: _Door | None = None

    @staticmethod
    def fits(structure: dict[str, Any]) -> bool:
        """Whether a structure, which a file may have damaged, is so simple."""
        rows, leaves = structure.get("parameters"), structure.get("leaves")
        if not isinstance(rows, (list, tuple)) or not isinstance(leaves, (list, tuple)):
            return False
        leaf = None, ("tuple", None, None, (None,) * len(rows), None)
        return (
            (structure.get("result", 0), structure.get("arguments")) == leaf
            and len(leaves) == len(rows)
            and all(isinstance(row, tuple) and row[:1] == ("tensor",) for row in leaves)
            and all(isinstance(row, tuple) and len(row) == 4 and isinstance(row[0], str)
                    and row[0].isidentifier() and row[1] in (0, 1) for row in rows)
            and structure.get("out") == [(True, None)]
            and not any(structure.get(key, True) for key in ("after", "assigned", "slots"))
        )

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
        if self._other is None and not kwargs and len(args) == self._count and all(
                hasattr(type(value), "__dlpack__") for value in args):
            return list(args), None
        if self._other is None:
            self._other = _structured(self._structure, self._names)
        return self._other.bind(args, kwargs)

    def result(self, value: Any, call: Any) -> Any:
        return value[0]


def _structured(structure: dict[str, Any], names: list[str]) -> _Door:
    from ._glue.door import Structured
    from ._glue.stored import StructureError

    try:
        return Structured(structure, names)
    except (StructureError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"signature.ir of the file is damaged: {error}") from error


def _structure_of(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    values = list(_core.Graph._parse(text, frozenset()).nodes)[-1].args[0]
    found: dict[str, Any] | None = values.get("structure")
    return found


def _door(text: str | None, signature: Signature) -> _Door:
    names = [row[0] for row in signature._rows if not row[4]]
    structure = _structure_of(text)
    if structure is None or "leaves" not in structure:
        return _Plain(names, len(names) < len(signature._rows))
    make = _Simple if _Simple.fits(structure) else _structured
    return make(structure, names)


# ---- models ------------------------------------------------------------------------------------


class Session:
    """A model with a state of its own: a cache, a counter. It begins with what the model had when
    it was saved. Calls from several threads come one after the other."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._kept = model._made.session() if model._keeps else None
        self._lock = allocate_lock()

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
        inputs = ", ".join(row[0] for row in self.signature._rows if not row[4])
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
         map: bool = True, verify: bool = False, append: bool = False) -> Model:  # fmt: skip
    """Loads a .cfx file (a path, or its bytes), ready to run in C. `threads`: None for as many as
    the process may use. `seed` begins its random numbers. `weights` (a dict, a path or a module)
    take the place of those in the file. `map=False` reads the file into memory, so that it may be
    truncated. `verify` compares hashes. With `append`, a tensor that grows by `cat` from call to
    call, whether the model keeps it or is given it, lies in memory with room behind it: a call
    writes what is new there and copies nothing. Such results share memory, as those of cfx.compile
    do. What cannot run without Python is a TypeError that names the calls."""
    made = _core._Executable(source, not map, verify, _named_weights(weights), append)
    return Model(made, Runtime(threads=threads or 0, seed=seed))


__dir__ = public_names(globals())
