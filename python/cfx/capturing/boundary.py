"""What a captured graph takes and gives.

Arguments are checked and taken apart on entry, results are put together again, and the caller's
objects change as the program changed them.
"""
import contextlib
import inspect
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, NoReturn

import torch

from .. import _core
from .._glue.parameters import Parameters
from .._glue.codegen import CodeGen
from .guards import CaptureError, Guard
from .modes import Around
from .numbers import number_of
from .._glue.stored import adopted, with_classes
from .._glue.structure import KINDS, Flattened, Rebuilt, Tree
from .undo import same


class Mismatch(CaptureError):
    """A graph does not hold for a call; nothing has run yet."""


class OtherMode(Mismatch):
    """It does not hold in the present mode, training or evaluation."""


class OtherState(Mismatch):
    """It does not hold for what the program has made of the module since it was captured."""


class GuardFailure(CaptureError, AssertionError):
    """Something does not hold that was assumed, as the graph found out while it ran."""


def raise_guard_failure(error: AssertionError) -> NoReturn:
    """Raises what a run has raised: a check of the graph's own is a GuardFailure."""
    if "when this graph was captured" not in str(error):
        raise error
    raise GuardFailure(*error.args) from None


@contextlib.contextmanager
def guard_failures() -> Iterator[None]:
    """A context in which a graph runs."""
    try:
        yield
    except AssertionError as error:
        raise_guard_failure(error)


class Kept:
    """A value that a session in C has: a leaf of an attribute of a lowered program."""

    __slots__ = ("session", "name")

    def __init__(self, session: Any, name: str) -> None:
        self.session, self.name = session, name

    def plain(self) -> Any:
        return self.session.get(self.name)


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
        if value.dtype != self.dtype:
            return (f"{self.path} has dtype {value.dtype}, but had {self.dtype} when the model was "
                    "captured")  # fmt: skip
        if value.ndim != self.ndim:
            return (f"{self.path} has {value.ndim} dimensions, but had {self.ndim} when the model "
                    "was captured")  # fmt: skip
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
        number = number_of(value)  # of a program that is captured and calls this one
        if type(value if number is None else number.value) is self.type:
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
        return None  # see Boundary.call


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


_ADVICE = "; capture it again with such arguments, or with recapture=True"


class Boundary:
    """The signature of a captured program, and the trees of its arguments and results."""

    def __init__(self, signature: inspect.Signature) -> None:
        self.signature, self.parameters = signature, Parameters(signature)
        self.around = Around()
        self.tree: Tree | None = None  # of the tuple of all arguments
        self.leaves: list[TensorLeaf | NumberLeaf | FixedLeaf | AgainLeaf] = []
        self.guards = _core._Guards([])  # that the inputs decide (reduce.py)
        self.after: list[Tree] = []  # contents of arguments that the program changed
        self.slots: list[Any] = []  # attributes that the program changes (state.py)
        self.read: list[bool] = []  # for each: whether it is read before it is assigned
        self.assigned: list[Tree] = []  # and what is assigned
        self.names: list[list[str]] = []  # and what its leaves are called
        self.result: Tree = Tree(None)
        self.num_arguments = 0  # how many inputs are arguments; attributes follow
        self.out: list[tuple[bool, Any]] = []  # for each leaf: is it of the graph, or this value

    def bind(self, args: tuple, kwargs: dict[str, Any]) -> tuple:
        return self.parameters.bind(args, kwargs)

    def entry(self, settings: Any, gradients: bool = True) -> "_core._Entry":
        """What checks a call and makes its result in C, where that knows all kinds of values;
        `call` and `leave` do for all others. `settings`: which modules are
        training (training.py). `gradients` as for Around.refusal."""
        around = self.around
        asked = gradients and around.asked
        plain = not self.slots and not asked and around.autocast is None
        made = not self.slots and not self.after
        paths = tuple(tuple(path.split(".")) if path else () for path in settings.paths)
        return _core._Entry(
            Call, self.tree, [leaf.rule for leaf in self.leaves], self.guards,
            (paths, settings.known),
            (around.dtype, around.device) if plain else None,
            (self.result, self.out) if made else None,
        )  # fmt: skip

    @property
    def inputs(self) -> list[Any]:
        """The rules of the inputs of the graph: arguments, then attributes."""
        found: list[Any] = [leaf for leaf in self.leaves
                            if not isinstance(leaf, (FixedLeaf, AgainLeaf))]  # fmt: skip
        for slot, is_read in zip(self.slots, self.read):
            found += slot.inputs if is_read else []
        return found

    def call(self, values: tuple, read: Callable[[str], Any]) -> Call:
        """Checks arguments, and the attributes that `read` gives; Mismatch if the graph does not
        hold for them."""
        taken = Flattened()
        tree = taken.tree(values, ("",))
        if tree != self.tree and not self._adopt(tree):
            raise Mismatch("the arguments are nested in another way than they were when the model "
                           f"was captured{_ADVICE}")  # fmt: skip
        call = Call(self._inputs(taken.leaves), taken.objects)
        for slot, is_read in zip(self.slots, self.read):
            if is_read:
                call.inputs.extend(slot.taken(read(slot.path)))
        self._check(call.inputs)
        return call

    def _adopt(self, tree: Tree) -> bool:
        """Whether the arguments are of classes that records stand in for, in a graph from a file.
        From then on results are of these classes, too."""
        found: dict[type, type] = {}
        if self.tree is None or not adopted(tree, self.tree, found):
            return False
        self.tree, self.result = with_classes(self.tree, found), with_classes(self.result, found)
        self.after = [with_classes(one, found) for one in self.after]
        self.assigned = [with_classes(one, found) for one in self.assigned]
        self.slots = [s._replace(tree=with_classes(s.tree, found)) for s in self.slots]
        return True

    def _inputs(self, leaves: list[Any]) -> list[Any]:
        """The arguments that are inputs of the graph."""
        inputs = []
        for leaf, value in zip(self.leaves, leaves):
            why = leaf.refusal(value)
            if why is not None:
                raise Mismatch(why + _ADVICE)
            if isinstance(leaf, AgainLeaf):
                if value is not leaves[leaf.first]:
                    first = self.leaves[leaf.first].path
                    raise Mismatch(f"{leaf.path} and {first} are two tensors, but the model was "
                                   f"captured with one tensor for both{_ADVICE}")  # fmt: skip
            elif not isinstance(leaf, FixedLeaf):
                inputs.append(value)
        return inputs

    def _check(self, inputs: list[Any]) -> None:
        """Checks the guards that the inputs decide."""
        values = [value.plain() if type(value) is Kept else value for value in inputs]
        failed = self.guards.failed(values)
        if failed is None:
            return
        guard = Guard(*failed)
        if self._asks_attribute(guard.expression):
            raise OtherState(guard.refusal())
        raise Mismatch(guard.refusal() + _ADVICE)

    def _asks_attribute(self, question: str) -> bool:
        """Whether a guard is about an attribute, not about the arguments alone."""
        names = (leaf.path for leaf in self.inputs[self.num_arguments :])
        return any(re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", question) for name in names)

    def leave(self, results: Iterable[Any], call: Call,
              assign: Callable[[str, Any], None]) -> Any:  # fmt: skip
        """The result of the program; the caller's objects get their new contents, and attributes
        are assigned."""
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
        return self.inputs_for(None, *inputs, **keywords)

    def process_outputs(self, out: Any) -> Any:
        return self.outputs_for(None, out)

    def inputs_for(self, module: Any, *inputs: Any, **keywords: Any) -> Any:
        """The inputs of the graph, for a call that works on the attributes of a captured module."""
        slots = self.boundary.slots
        if slots and not hasattr(module, "_enter"):
            names = ", ".join(slot.path for slot in slots)
            raise CaptureError(f"the program assigns attributes ({names}), and this graph has no "
                               "captured module whose attributes they are")  # fmt: skip
        values = self.boundary.bind(inputs, keywords)
        call = module._enter(values) if slots else self.boundary.call(values, _no_attribute)
        self._calls.now = call
        return call.inputs

    def outputs_for(self, module: Any, out: Any) -> Any:
        call, self._calls.now = self._calls.now, None
        if self.boundary.slots and hasattr(module, "_leave"):
            return module._leave(out, call)
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


def _no_attribute(path: str) -> Any:
    raise CaptureError(f"there is no module with the attribute {path}")


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
