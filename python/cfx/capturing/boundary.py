"""What a captured graph takes and gives.

Arguments are checked and taken apart on entry, results are put together again, and the caller's
objects change as the program changed them.
"""
import inspect
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from .. import _core
from .._glue.codegen import CodeGen
from .guards import CaptureError, Guard
from .modes import Around
from .structure import KINDS, Flattened, Rebuilt, Tree
from .undo import same


class TensorLeaf(NamedTuple):
    """A tensor among the arguments: a placeholder."""

    path: str
    dtype: torch.dtype
    ndim: int
    device: torch.device
    sizes: tuple[int | None, ...]  # of dimensions that are fixed

    @property
    def rule(self) -> tuple:
        sizes = self.sizes if any(size is not None for size in self.sizes) else None
        return "tensor", self.dtype, self.ndim, self.device, sizes

    def refusal(self, value: Any) -> str | None:
        if not isinstance(value, torch.Tensor):
            return f"{self.path} is {_short(value)}, but the model was captured with a tensor"
        if (value.dtype, value.ndim) != (self.dtype, self.ndim):
            return (f"{self.path} is a tensor of {value.dtype} with {value.ndim} dimensions, but "
                    f"the model was captured with {self.dtype} and {self.ndim} dimensions")
        if value.device.type != self.device.type:
            return (f"{self.path} is on {value.device}, but the model was captured on "
                    f"{self.device}")  # fmt: skip
        for dim, size in enumerate(self.sizes):
            if size is not None and value.size(dim) != size:
                return f"{self.path}.shape[{dim}] is {value.size(dim)}, but it is fixed to {size}"
        return None


class NumberLeaf(NamedTuple):
    """A number among the arguments: a placeholder."""

    path: str
    type: type

    @property
    def rule(self) -> tuple:
        return "number", self.type

    def refusal(self, value: Any) -> str | None:
        if type(value) is self.type:
            return None
        return (f"{self.path} is {_short(value)}, but the model was captured with a number of type "
                f"{self.type.__name__}")  # fmt: skip


class AgainLeaf(NamedTuple):
    """A tensor that is among the arguments a second time."""

    path: str
    first: int  # the number of the leaf that it is

    @property
    def rule(self) -> tuple:
        return "again", self.first

    def refusal(self, value: Any) -> str | None:
        return None  # see Boundary.refusal


class FixedLeaf(NamedTuple):
    """A part of the arguments that the graph holds for alone."""

    path: str
    value: Any

    @property
    def rule(self) -> tuple:
        return "fixed", self.value

    def refusal(self, value: Any) -> str | None:
        if value is self.value or (type(value) is type(self.value) and _equal(value, self.value)):
            return None
        return (f"{self.path} is {_short(value)}, but the model was captured with "
                f"{_short(self.value)}")  # fmt: skip


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:  # arrays, and whatever else classes make of ==
        return False


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."


class Call(NamedTuple):
    """A call of a captured graph: the inputs of the graph, and the caller's objects."""

    inputs: list[Any]
    objects: list[Any]


class Boundary:
    """The signature of a captured program, and the trees of its arguments and results."""

    def __init__(self, signature: inspect.Signature) -> None:
        self.signature = signature
        self.around = Around()
        self.tree: Tree | None = None  # of the tuple of all arguments
        self.leaves: list[TensorLeaf | NumberLeaf | FixedLeaf | AgainLeaf] = []
        self.guards = _core._Guards([])  # that the inputs decide (reduce.py)
        self.after: list[Tree] = []  # contents of arguments that the program changed
        self.slots: list[Any] = []  # attributes that the program changes (state.py)
        self.read: list[bool] = []  # for each: whether it is read before it is assigned
        self.assigned: list[Tree] = []  # and what is assigned
        self.result: Tree = Tree(None)
        self.out: list[tuple[bool, Any]] = []  # for each leaf: is it of the graph, or this value

    _entry: "_core._Entry | None" = None  # made when it is entered for the first time

    def bind(self, args: tuple, kwargs: dict[str, Any]) -> tuple:
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def entry(self, flags: dict[str, Any]) -> "_core._Entry":
        """What checks a call and makes its result in C, where that knows all kinds of values;
        `refusal` and `leave` do for all others. `flags`: which modules are training."""
        around = self.around
        plain = not self.slots and not around.asked and around.autocast is None
        made = not self.slots and not self.after
        known = [(tuple(path.split(".")) if path else (), flag) for path, flag in flags.items()
                 if flag is not None]  # fmt: skip
        return _core._Entry(
            Call, self.tree, [leaf.rule for leaf in self.leaves], self.guards, known,
            (around.dtype, around.device) if plain else None,
            (self.result, self.out) if made else None,
        )  # fmt: skip

    def refusal_of_state(self, read: Callable[[str], Any]) -> str | None:
        """Why the graph does not hold for the attributes that it reads, or None."""
        for slot, is_read in zip(self.slots, self.read):
            why = slot.refusal(read(slot.path)) if is_read else None
            if why is not None:
                return why
        return None

    def refusal(self, values: tuple) -> tuple[str | None, Call]:
        """Why the graph does not hold for these arguments, or None; and the call."""
        taken = Flattened()
        tree = taken.tree(values, ("",))
        call = Call([], taken.objects)
        if tree != self.tree:
            return ("the arguments are nested in another way than they were when the model was "
                    "captured"), call  # fmt: skip
        for leaf, value in zip(self.leaves, taken.leaves):
            why = leaf.refusal(value)
            if why is not None:
                return why, call
            if isinstance(leaf, AgainLeaf):
                if value is not taken.leaves[leaf.first]:
                    first = self.leaves[leaf.first].path
                    return (f"{leaf.path} and {first} are two tensors, but the model was captured "
                            "with one tensor for both"), call  # fmt: skip
            elif not isinstance(leaf, FixedLeaf):
                call.inputs.append(value)
        failed = self.guards.failed(call.inputs)
        return None if failed is None else Guard(*failed).refusal(), call

    def enter(self, values: tuple) -> Call:
        """Checks the arguments; CaptureError if the graph does not hold for them."""
        if self._entry is None:
            self._entry = self.entry({})
        fast = self._entry.enter(None, values)
        if fast is not None:
            return fast
        why, call = self.refusal(values)
        if why is not None:
            raise CaptureError(f"{why}; capture it again with such arguments, or with "
                               "recapture=True")  # fmt: skip
        return call

    def leave(self, results: Iterable[Any], call: Call,
              assign: Callable[[str, Any], None]) -> Any:  # fmt: skip
        """The result of the program; the caller's objects get their new contents, and attributes
        are assigned."""
        if self._entry is not None and self._entry.can_leave:
            return self._entry.leave(results)
        results = iter(results)
        leaves = [next(results) if computed else value for computed, value in self.out]
        rebuilt = Rebuilt(leaves, call.objects)
        for tree in self.after:
            rebuilt.value(tree)
        for slot, tree in zip(self.slots, self.assigned):
            assign(slot.path, rebuilt.value(tree))
        return rebuilt.value(self.result)


class Watched:
    """The objects among the arguments of a run, to see which of them the run changes."""

    def __init__(self, objects: list[Any], kinds: list[str]) -> None:
        self.objects, self.kinds = objects, kinds
        self.before = [KINDS[kind].split(o) for o, kind in zip(objects, kinds)]

    def changed(self) -> Iterable[tuple[int, str, Any, list[Any]]]:
        """(number, kind, key, parts) of the objects that have other contents now."""
        for number, (o, kind) in enumerate(zip(self.objects, self.kinds)):
            key, parts = KINDS[kind].split(o)
            old_key, old_parts = self.before[number]
            unchanged = len(parts) == len(old_parts) and all(map(same, parts, old_parts))
            if not unchanged or key != old_key:
                yield number, kind, key, parts


class BoundaryCodeGen(CodeGen):
    """Generates a function with the signature of the captured one."""

    takes_keywords = True  # process_inputs does

    def __init__(self, boundary: Boundary) -> None:
        super().__init__()
        self.boundary = boundary
        self._calls = _Calls()

    def process_inputs(self, *inputs: Any, **keywords: Any) -> Any:
        if self.boundary.slots:
            names = ", ".join(slot.path for slot in self.boundary.slots)
            raise CaptureError(f"the program assigns attributes ({names}); only the captured "
                               "module itself can run such a graph")  # fmt: skip
        call = self.boundary.enter(self.boundary.bind(inputs, keywords))
        self._calls.now = call
        return call.inputs

    def process_outputs(self, out: Any) -> Any:
        call, self._calls.now = self._calls.now, None
        return self.boundary.leave(out, call or Call([], []), lambda path, value: None)

    def gen_fn_def(self, free_vars, maybe_return_annotation, *, expanded_def=False):
        parameters = _parameter_texts(self.boundary.signature)
        head = super().gen_fn_def(parameters, maybe_return_annotation, expanded_def=expanded_def)
        names = "".join(f"{name}, " for name in self.boundary.signature.parameters)
        inputs = "".join(f"{var.split(':')[0].strip()}, " for var in free_vars)
        enter = f"{head}\n    _entry_ = self._enter(({names.strip()}))"
        return f"{enter}\n    {inputs.strip()} = _entry_.inputs" if inputs else enter

    def generate_output(self, output_args, *, descs=None, repr_fn=None):
        plain = super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        return f"return self._leave({plain.removeprefix('return ')}, _entry_)"


class _Calls(threading.local):
    """The call that an interpreter of this thread is in."""

    now: Call | None = None

    def __reduce__(self) -> Any:
        return _Calls, ()


def _parameter_texts(signature: inspect.Signature) -> list[str]:
    """The parameters of a signature, without annotations."""
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    texts, starred = [], False
    for p in plain:
        if p.kind is p.KEYWORD_ONLY and not starred:
            texts.append("*")
        starred = starred or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        texts.append(str(p))
    return texts
