"""The recorder: computes each call of a run and writes it down."""
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree

from .._glue import contexts
from ..ops import check_length
from .guards import OPPOSITE, SIGNS, CaptureError, Guard, expression, user_line
from .undo import Undo
from .witness import (
    SYMBOLS, Witness, counts_by_size, is_transformed, number_of, spelling, symbol, takes_tensors,
    undisturbed,
)  # fmt: skip

if TYPE_CHECKING:
    from .run import CaptureTracer


def _modes() -> dict[str, Any]:
    """What contexts change: gradients, and autocast for each kind of device."""
    modes: dict[str, Any] = {"grad": torch.is_grad_enabled()}
    for device in ("cpu", "cuda"):
        modes[device] = (torch.get_autocast_dtype(device), torch.is_autocast_enabled(device),
                         torch.is_autocast_cache_enabled())  # fmt: skip
    return modes


def _writes(func: Any, name: str, kwargs: dict[str, Any]) -> bool:
    """Whether a call may write to its arguments."""
    if isinstance(func, torch._ops.OpOverload):
        return func._schema.is_mutable
    plain = name.endswith("_") and not name.endswith("__")
    return plain or name in ("__setitem__", "__set__") or name.startswith("__i") or (
        kwargs.get("out") is not None or bool(kwargs.get("inplace")))


class Recorder:
    """Writes down what a run does."""

    def __init__(self, tracer: "CaptureTracer", undo: Undo) -> None:
        self.tracer, self.undo = tracer, undo
        self.guards: list[Guard] = []
        self.assumed: set[Any] = set()
        self.constants: dict[int, tuple[Any, Any]] = {}  # {id: (tensor, node)}
        self.foreign: dict[str, torch.Tensor] = {}  # tensors from outside of the model
        # contexts that the program is in: the state inside, and how its end is recorded
        self.modes: list[tuple[Any, Any, Any]] = [(_modes(), None, None)]

    # ---- nodes ----

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.tracer.create_node("call_function", function, args, {})

    def method(self, name: str, *args: Any) -> Any:
        return self.tracer.create_node("call_method", name, args, {})

    def follow_modes(self) -> None:
        """Records the contexts that the program entered and left since the last call."""
        now = _modes()
        if now == self.modes[-1][0]:
            return
        if now in (state for state, _, _ in self.modes):
            while self.modes[-1][0] != now:
                _, leave, token = self.modes.pop()
                self.call(leave, token)
            return
        for key, value in now.items():
            before = self.modes[-1][0]
            if before[key] == value:
                continue
            if key == "grad":
                token, leave = self.call(torch.is_grad_enabled), contexts.set_mode
                self.call(leave, value)
            else:
                token = self.call(contexts._enter_autocast, key, *value)
                leave = contexts._exit_autocast
            self.modes.append(({**before, key: value}, leave, token))

    # ---- arguments: what this run computes with, and what the graph has ----

    def real(self, value: Any) -> Any:
        """A value with the tensors and numbers of this run."""
        if isinstance(value, Witness):
            return value._real
        if isinstance(value, (torch.Tensor, *SYMBOLS)):
            number = number_of(value)
            return number.value if number else value
        return _rebuilt(value, self.real)

    def plain(self, value: Any) -> Any:
        """Likewise, but each number that it has is a guard."""
        if isinstance(value, SYMBOLS):
            number = number_of(value)
            return number._plain() if number else value
        return value._real if isinstance(value, Witness) else _rebuilt(value, self.plain)

    def node(self, value: Any) -> Any:
        """A value as an argument of a node."""
        if isinstance(value, Witness):
            return value._node
        if isinstance(value, (torch.Tensor, *SYMBOLS)):
            number = number_of(value)
            if number is not None:
                return number.node
            return self.constant(value) if isinstance(value, torch.Tensor) else value
        return _rebuilt(value, self.node)

    def constant(self, tensor: torch.Tensor) -> Any:
        """The node of a parameter, a buffer, or a tensor from elsewhere."""
        known = self.constants.get(id(tensor))
        if known is None:
            tracer = self.tracer
            path = tracer._member_path(tensor) or tracer.tensor_attrs.get(tensor)
            if path is None:
                _refuse_lost_number(tensor)
                path = f"_constant_{len(self.foreign)}"
                self.foreign[path] = tensor
            known = tensor, tracer.create_node("get_attr", path, (), {})
            self.constants[id(tensor)] = known
        return known[1]

    # ---- calls ----

    def record(self, func: Any, args: tuple, kwargs: dict[str, Any], below: bool = False) -> Any:
        """Computes a call and writes it down."""
        if func is contexts.set_mode:  # seen in the state of later calls
            return func(*args, **kwargs)
        given = _pytree.tree_leaves((args, kwargs))
        if any(map(is_transformed, given)):  # the lower net sees what becomes of it
            if takes_tensors(func):
                args = tuple(self._tensor(arg) for arg in args)
            with undisturbed():
                return func(*args, **kwargs)
        real_args, real_kwargs = self.real(args), self.real(kwargs)
        writes = _writes(func, getattr(func, "__name__", ""), kwargs)
        if writes:
            for leaf in _pytree.tree_leaves((real_args, real_kwargs)):
                if isinstance(leaf, torch.Tensor):
                    self.undo.before_write(leaf)
        with undisturbed():
            result = func(*real_args, **real_kwargs)
        of_graph = any(isinstance(leaf, (Witness, *SYMBOLS)) for leaf in given)
        if not of_graph and not writes and not _has_tensor(result):
            return result  # a setting, or a question that the inputs do not decide
        self.follow_modes()
        opcode, target, args = spelling(func, args) if not below else ("call_function", func, args)
        known = {id(leaf._real if isinstance(leaf, Witness) else leaf): leaf
                 for leaf in given if isinstance(leaf, torch.Tensor)}  # fmt: skip
        node = self.tracer.create_node(opcode, target, self.node(args), self.node(kwargs))
        if counts_by_size(func):
            self._assume_length(node, len(result))
        return self.wrap(node, result, known, of_graph)

    def _tensor(self, value: Any) -> Any:
        """A number as a tensor of the graph: below torch's API a number would be lost."""
        if not isinstance(value, SYMBOLS):
            return value
        dtype = torch.int64 if isinstance(value, torch.SymInt) else torch.get_default_dtype()
        return self.record(torch.scalar_tensor, (value,), {"dtype": dtype})

    def wrap(self, node: Any, result: Any, known: dict[int, Any], of_graph: bool = True) -> Any:
        """A result for the program: tensors and numbers that remember their nodes."""
        if isinstance(result, torch.Tensor):
            same = known.get(id(result))
            return same if same is not None else Witness(self, node, result)
        if isinstance(result, (tuple, list)):
            items = [self.wrap(self.call(operator.getitem, node, i), item, known, of_graph)
                     if _matters(item) else item for i, item in enumerate(result)]  # fmt: skip
            return _remade(result, items)
        if of_graph and type(result) is bool:
            self.assume_value(node, result, "data")
        elif of_graph and type(result) in (int, float):
            return symbol(self, node, result)
        return result

    def call_leaf(self, path: str, module: torch.nn.Module, forward: Any, args: tuple,
                  kwargs: dict[str, Any]) -> Any:  # fmt: skip
        """A call of a module that stays one node."""
        self.undo.before_module(module)
        with undisturbed():
            result = forward(*self.real(args), **self.real(kwargs))
        self.follow_modes()
        given = _pytree.tree_leaves((args, kwargs))
        known = {id(leaf._real): leaf for leaf in given if isinstance(leaf, Witness)}
        node = self.tracer.create_node("call_module", path, self.node(args), self.node(kwargs))
        return self.wrap(node, result, known)

    # ---- guards ----

    def _check(self, condition: Any, guard: Guard) -> None:
        self.guards.append(guard)
        where = f" at {guard.line}" if guard.line else ""
        self.call(torch._assert, condition,
                  f"{guard.expression} was {guard.value!r}{where} when this graph was captured; "
                  "capture the model again with an input for which it is not")  # fmt: skip

    def assume(self, function: Callable[..., Any], left: Any, right: Any, value: Any) -> None:
        """A comparison of two numbers had this answer."""
        key = function, left, right
        if key in self.assumed:
            return
        self.assumed.add(key)
        text = f"{expression(left)} {SIGNS[function]} {expression(right)}"
        holds = self.call(function if value else OPPOSITE[function], left, right)
        self._check(holds, Guard("size", text, value, user_line()))

    def _assume_length(self, node: Any, length: int) -> None:
        """A call had as many results."""
        self.guards.append(Guard("size", f"len({node.name})", length, user_line()))
        self.call(check_length, node, length)

    def assume_value(self, node: Any, value: Any, kind: str = "size") -> None:
        """A number or a truth of the graph had this value."""
        key = "value", node
        if key in self.assumed:
            return
        self.assumed.add(key)
        holds = self.call(operator.eq, node, value)
        self._check(holds, Guard(kind, expression(node), value, user_line()))

    def assume_data(self, witness: Witness, function: Any, value: Any) -> Any:
        """The program saw data of a tensor."""
        if not isinstance(value, (bool, int, float, complex, list)):
            raise CaptureError(
                f"{user_line()}: {getattr(function, '__name__', function)}() turns a tensor of "
                "the graph into data that the graph cannot follow; compute with torch instead")
        name = function.__name__
        node = self.call(bool, witness._node) if function is bool else self.method(
            name, witness._node)
        self.assume_value(node, value, "data")
        return value


def _refuse_lost_number(tensor: torch.Tensor) -> None:
    """Where a size arrives as a tensor, torch puts a number there that nobody uses otherwise."""
    if tensor.dim() == 0 and tensor.device.type == "cpu" and tensor.item() == 7777777:
        raise CaptureError(f"{user_line()}: a size became a tensor below torch's API; make it a "
                           "tensor in your code: torch.scalar_tensor(n)")  # fmt: skip


def _has_tensor(result: Any) -> bool:
    if isinstance(result, (tuple, list)):
        return any(map(_has_tensor, result))
    return isinstance(result, torch.Tensor)


def _matters(item: Any) -> bool:
    """Whether an item of a result has to be taken out of it by a node of its own."""
    return isinstance(item, (torch.Tensor, tuple, list)) or type(item) in (int, float, bool)


def _remade(sequence: Any, items: list[Any]) -> Any:
    """A sequence of the same class with other items."""
    kind = type(sequence)
    if hasattr(kind, "_fields"):
        return kind(*items)
    try:
        return kind(items)  # a list, a tuple, torch.Size, torch.return_types.max
    except TypeError:
        return tuple(items)


def _rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value whose parts are changed: containers anew, anything else itself."""
    if isinstance(value, (tuple, list)):
        return _remade(value, [change(item) for item in value]) if value else value
    if type(value) is dict:
        return {key: change(item) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(change(value.start), change(value.stop), change(value.step))
    return value
