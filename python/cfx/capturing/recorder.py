"""The recorder: computes each call of a run and writes it down."""
import contextlib
import operator
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import torch
from torch.nn.utils.rnn import PackedSequence

from .. import _core
from .._glue import contexts
from ..node import Node
from .decide import Askers
from .guards import OPPOSITE, CaptureError, Guard, comparison, expression
from .guards import user_frame, user_line
from .modes import Modes, current_modes, is_grad_enabled
from .net import Net, takes_tensors
from .numbers import Number, number_of, symbol
from .protocol import _pytree, undisturbed
from .undo import Undo
from .witness import Witness

if TYPE_CHECKING:
    from .run import CaptureTracer


class Pending(NamedTuple):
    """A guard, with the nodes that check it. Inputs may decide it: then they are not needed."""

    guard: Guard
    nodes: tuple[Any, ...]  # the last first
    question: tuple[Callable[[Any, Any], bool], Any, Any, bool] | None = None


class Recorder(_core.Recorder):
    """Writes down what a run does. What happens for most calls is in C: `torch_function`, `record`,
    `call_leaf`, and the two sides of a value, `real` and `node` (python/src/capture)."""

    def __init__(self, tracer: "CaptureTracer", undo: Undo, askers: Askers) -> None:
        self.tracer, self.undo, self.askers = tracer, undo, askers
        self.thread: int | None = threading.get_ident()  # that runs the program; None: it is over
        self.env: dict[Any, Any] = {}  # meanwhile: the values of nodes that it uses
        self.lent: dict[Any, Any] = {}  # and what the program has for them
        self.pending: list[Pending] = []
        self.data_guards = 0
        self.insists_on_grad = False  # whether the program sets a grad mode that there is already
        self.result_of = ""  # the function that was evaluated last, while its result is looked at
        self.dynamic: dict[Any, str] = {}  # numbers that may not be specialised: their names
        self.paths = undo.paths()  # {id: path} of tensors of the model
        self.foreign: dict[str, Any] = {}  # tensors and generators from outside of the model
        self.named: dict[str, Any] = {}  # those of earlier graphs of the program
        self.leaves: set[str] = set()  # paths of modules that are called as a whole
        self.dtype = torch.get_default_dtype()
        # contexts that the program is in: the state inside, and how its end is recorded
        self.modes: list[tuple[Modes, Any, Any]] = [(current_modes(), None, None)]

    @contextlib.contextmanager
    def undisturbed(self) -> Iterator[None]:
        """A context in which modules compute on real tensors, and nothing is noted."""
        before, self.computing = self.computing, True
        try:
            with undisturbed():
                yield
        finally:
            self.computing = before

    def check_running(self) -> None:
        if self.thread != threading.get_ident():
            why = "in another thread" if self.thread else "after the capture that made it"
            self.refuse(f"a tensor or number of a model that is being captured is used {why}; "
                        "return what you need, and do not keep tensors of a run in globals or "
                        "other objects")  # fmt: skip

    # ---- contexts ----

    def follow_modes(self) -> None:
        """Records the contexts that the program entered and left since the last call."""
        if self.dtype != torch.get_default_dtype():
            self.dtype = torch.get_default_dtype()
            self.call(torch.set_default_dtype, self.dtype)
        now = current_modes()
        if now == self.modes[-1][0]:
            return
        if now in (state for state, _, _ in self.modes):
            while self.modes[-1][0] != now:
                _, leave, token = self.modes.pop()
                self.call(leave, token)
            return
        before = self.modes[-1][0]
        if now.inference != before.inference:
            token = self.call(contexts._enter_inference, now.inference)
            before = before._replace(inference=now.inference, grad=not now.inference)
            self.modes.append((before, contexts._exit_inference, token))
        if now.grad != before.grad:
            token = self.call(is_grad_enabled)
            self.call(contexts.set_mode, now.grad)
            before = before._replace(grad=now.grad)
            self.modes.append((before, contexts.set_mode, token))
        if now.autocast != before.autocast:
            self._enter_autocast(before, now)

    def _enter_autocast(self, before: Modes, now: Modes) -> None:
        known = {row[0]: row for row in before.autocast or ()}
        for device in ("cpu", "cuda"):
            off = (device, torch.get_autocast_dtype(device), False, True)
            wanted = {row[0]: row for row in now.autocast or ()}.get(device, off)
            if known.get(device, off)[1:] == wanted[1:] or not (wanted[2] or device in known):
                continue
            token = self.call(contexts._enter_autocast, *wanted)
            self.modes.append((now, contexts._exit_autocast, token))

    # ---- tensors from outside ----

    def constant(self, tensor: torch.Tensor) -> Any:
        """The node of a parameter, a buffer, or a tensor from elsewhere."""
        known = None if self.evaluating else self.constants.get(id(tensor))
        if known is None:
            known = tensor, self.tracer.create_node("get_attr", self.path_of(tensor), (), {})
            if not self.evaluating:  # the node may be part of a region
                self.constants[id(tensor)] = known
        return known[1]

    def generator(self, value: torch.Generator) -> Any:
        """The node of a generator of the model."""
        for path, own in self.undo.own.items():
            for name, found in own.items():
                if found is value:
                    full = f"{path}.{name}" if path else name
                    return self.tracer.create_node("get_attr", full, (), {})
        self.refuse("the program uses a torch.Generator that is not an attribute of the module, "
                    "which a graph cannot make anew; make it an attribute")

    def path_of(self, tensor: torch.Tensor) -> str:
        """Where the captured module has a tensor of this run."""
        path = self.paths.get(id(tensor)) or self.tracer.tensor_attrs.get(tensor)
        if path is None:
            known = {**self.named, **self.foreign}
            path = next((name for name, t in known.items() if t is tensor), None)
            if path is None:
                _refuse_lost_number(tensor)
                path = f"_constant_{len(known)}"
            self.foreign[path] = tensor
        return path

    # ---- calls ----

    def through_object(self, kind: Any, func: Any, types: Any, args: tuple,
                       kwargs: dict[str, Any] | None) -> Any:  # fmt: skip
        """A call with an object of the program's own, which goes on to torch."""
        with Net(self):
            return kind.__torch_function__(func, types, args, kwargs or {})

    def record_transformed(self, func: Any, args: tuple, kwargs: dict[str, Any] | None) -> Any:
        """A call with tensors that a transform of torch.func wraps: the lower net records it."""
        if takes_tensors(func):
            args = tuple(self._tensor(arg) for arg in args)
        with undisturbed():
            return func(*args, **kwargs or {})

    def before_write(self, args: tuple, kwargs: dict[str, Any] | None) -> None:
        """Keeps what a call may write to."""
        for leaf in _pytree.tree_leaves((args, kwargs)):
            if isinstance(leaf, Witness):
                self.undo.before_write(leaf._real)
            elif isinstance(leaf, torch.Tensor):
                self.undo.before_write(leaf, outside=True)

    def before_leaf(self, path: str, module: torch.nn.Module) -> None:
        """Likewise for a module that stays one node."""
        self.undo.before_module(module)
        self.leaves.add(path)

    def _tensor(self, value: Any) -> Any:
        """A number as a tensor of the graph: below torch's API a number would be lost."""
        number = number_of(value)
        if number is None or isinstance(value, torch.Tensor):
            return value
        dtype = torch.int64 if type(number.value) is int else torch.get_default_dtype()
        return self.record(torch.scalar_tensor, (value,), {"dtype": dtype})

    def wrap(self, node: Any, result: Any, known: dict[int, Any], of_graph: bool = True,
             counted: bool = False) -> Any:  # fmt: skip
        """A result for the program: tensors and numbers that remember their nodes. `known` are
        tensors of the run that the program has already, by id. `counted`: how many items there are
        may depend on data."""
        if isinstance(result, torch.Tensor):
            same = known.get(id(result))
            return same if same is not None else self.witness(node, result)
        if isinstance(result, (tuple, list, dict)):
            if counted:
                self.assume_length(node, len(result))
            pairs = result.items() if isinstance(result, dict) else enumerate(result)
            items = [(key, self.wrap(self.call(operator.getitem, node, key), item, known, of_graph,
                                     counted) if _matters(item) or counted else item)
                     for key, item in pairs]  # fmt: skip
            plain = [item for _, item in items]
            return dict(items) if isinstance(result, dict) else self.remade(result, plain)
        if counted and type(result) not in (int, float):
            self._note_asker()
            self.assume_value(node, result, "data")
            return result
        if of_graph and type(result) is bool:
            self.assume_value(node, result, "data")
        elif of_graph and type(result) in (int, float):
            return symbol(Number(self, node, result, True))
        return result

    def record_whole(self, target: Any, function: Callable[..., Any], args: tuple,
                     kwargs: dict[str, Any]) -> Any:  # fmt: skip
        """A call of a Python function that stays one node."""
        with self.undisturbed():
            result = function(*self.real(args), **self.real(kwargs))
        self.follow_modes()
        node = self.tracer.create_node(
            "call_function", target, self.node(args), self.node(kwargs))
        if result is None or isinstance(result, torch.Generator):
            return result
        return self.wrap(node, result, {}, counted=True)

    def remade(self, sequence: Any, items: list[Any]) -> Any:
        """A sequence of the same class with other items."""
        kind = type(sequence)
        if kind is PackedSequence and any(isinstance(item, Node) for item in items):
            return self.call(kind, *items)  # it looks at its parts when it is made
        if hasattr(kind, "_fields"):
            return kind(*items)
        try:
            return kind(items)  # a list, a tuple, torch.Size, torch.return_types.max
        except TypeError:
            return tuple(items)

    # ---- guards ----

    def _check(self, condition: Any, guard: Guard, question: Any = None) -> None:
        where = f" at {guard.line}" if guard.line else ""
        check = self.call(torch._assert, condition,
                          f"{guard.expression} was {guard.value!r}{where} when this graph was "
                          "captured; capture the model again with an input for which it is not, or "
                          "with recapture=True")  # fmt: skip
        self.pending.append(Pending(guard, (check, condition), question))

    def assume(self, function: Callable[..., Any], one: Number, two: Number, value: bool,
               asker: str) -> None:  # fmt: skip
        """A comparison of two numbers had this answer."""
        left, right = one.node, two.node
        key = function, left, right
        if key in self.assumed and not self.evaluating:
            return
        self.assumed.add(key)
        if value == (function is operator.eq) and function in (operator.eq, operator.ne):
            self._pinned(left, right)
        of_data = one.of_data or two.of_data
        if of_data and asker != "torch":
            self.data_guards += 1
            self._note_asker()
        if value or all(type(number.value) is int for number in (one, two)):
            holds = self.call(function if value else OPPOSITE[function], left, right)
        else:  # both a < b and a >= b are false of nan
            holds = self.call(operator.not_, self.call(function, left, right))
        kind = "data" if of_data else "size"
        guard = Guard(kind, comparison(function, left, right), value, user_line(), asker)
        self._check(holds, guard, (function, left, right, value))

    def assume_length(self, node: Any, length: int) -> None:
        """A call had as many results."""
        holds = self.call(operator.eq, self.call(len, node), length)
        self._check(holds, Guard("size", f"len({node.name})", length, user_line()))

    def assume_value(self, node: Any, value: Any, kind: str = "size",
                     asker: str = "program") -> None:  # fmt: skip
        """A number or a truth of the graph had this value. `asker`: "program"; "torch"; "python"
        where Python takes nothing but a plain number, as in range(n), int(n) and texts: the graph
        can have these if the function that does it is captured from its source."""
        key = "value", node
        if key in self.assumed and not self.evaluating:
            return
        self.assumed.add(key)
        self._pinned(node, value)
        self.data_guards += kind == "data"
        if asker == "python" or (kind == "data" and asker == "program"):
            self._note_asker()
        guard = Guard(kind, self.result_of or expression(node), value, user_line(),
                      "torch" if asker == "torch" else "program")  # fmt: skip
        question = (operator.ne, node, node) if value != value else (operator.eq, node, value)
        self._check(self.call(*question), guard, (*question, True))

    def assume_data(self, witness: Witness, function: Any, value: Any, *args: Any) -> Any:
        """The program saw data of a tensor."""
        if not isinstance(value, (bool, int, float, complex, list, str)):
            self.refuse(f"{getattr(function, '__name__', function)}() turns a tensor of the graph "
                        "into data that the graph cannot follow; compute with torch instead")
        self._note_asker()
        node = self.call(function, witness._node) if isinstance(function, type) else self.method(
            function.__name__, witness._node, *args)
        self.assume_value(node, value, "data")
        return value

    def assume_fact(self, node: Any, value: Any, name: str) -> Any:
        """A tensor answered a question about its layout or gradient."""
        kind = "grad" if "grad" in name or "leaf" in name else "layout"
        text = f"{node.args[0].name}.{name}" + ("()" if node.op == "call_method" else "")
        holds = self.call(operator.is_ if value is None else operator.eq, node, value)
        self._check(holds, Guard(kind, text, value, user_line()))
        return value

    def _note_asker(self) -> None:
        if not self.evaluating:
            self.askers.note(user_frame())

    def _pinned(self, *numbers: Any) -> None:
        """The program takes a number for a constant."""
        for number in numbers:
            if hasattr(number, "op") and number in self.dynamic:
                self.refuse(f"{self.dynamic[number]} may change, as `dynamic` says, but here the "
                            "program needs the number (a comparison for equality, int(), a text, a "
                            "loop, a key): compute with the size itself, or let `dynamic` fix it")

    def refuse(self, why: str) -> NoReturn:
        raise CaptureError(f"{user_line()}: {why}")


def _refuse_lost_number(tensor: torch.Tensor) -> None:
    """Where a size arrives as a tensor, torch puts a number there that nobody uses otherwise."""
    if tensor.dim() == 0 and tensor.device.type == "cpu" and tensor.item() == 7777777:
        raise CaptureError(f"{user_line()}: a size became a tensor below torch's API; make it a "
                           "tensor in your code: torch.scalar_tensor(n)")  # fmt: skip


def _matters(item: Any) -> bool:
    """Whether an item of a result has to be taken out of it by a node of its own."""
    return isinstance(item, (torch.Tensor, tuple, list, dict)) or type(item) in (int, float, bool)
