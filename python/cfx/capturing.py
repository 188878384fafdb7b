"""Capture: a model runs once on example inputs, for real, and is written down while it runs.

    gm = cfx.capture(model, *inputs, **kwargs)

Python runs Python: nothing of the language is interpreted. Tensors of the run carry their node in
the graph, sizes are symbolic, and whatever plain answer the program received (a comparison of
sizes, the truth of a tensor) is a guard that the graph checks when it runs. See docs/capture.md.
"""
import contextlib
import inspect
import operator
import os
import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree

from ._glue import contexts
from ._glue.codegen import CodeGen
from ._glue.listing import public_names
from ._glue.tracing import is_library
from ._glue.witness import (
    SYMBOLS, Net, Number, Witness, counts_by_size, is_transformed, number_of, spelling, symbol,
    takes_tensors, undisturbed,
)  # fmt: skip
from ._symbolic_trace import Tracer
from .graph_module import GraphModule
from .ops import check_length

__all__ = ["CaptureError", "CapturedModule", "Guard", "capture"]


class CaptureError(RuntimeError):
    """A model that cannot be captured, or a captured one that is called in another way than it was
    captured for."""


class Guard(NamedTuple):
    """Something that was assumed while a model was captured."""

    kind: str  # "size", "data" or "input"
    expression: str  # what was asked: "x.shape[0] > 1"
    value: Any  # the answer in the captured run
    line: str  # who asked: "model.py:12"

    def __str__(self) -> str:
        where = f"  ({self.line})" if self.line else ""
        return f"{self.expression}: {self.value!r}{where}"


# ---- the user's line ---------------------------------------------------------------------------


def _user_line() -> str:
    """The innermost line outside of torch and cfx."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return ""
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


# ---- expressions in messages -------------------------------------------------------------------

_SIGNS = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//",
    operator.truediv: "/", operator.mod: "%", operator.pow: "**", operator.eq: "==",
    operator.ne: "!=", operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=",
}  # fmt: skip
_OPPOSITE = {
    operator.eq: operator.ne, operator.ne: operator.eq, operator.lt: operator.ge,
    operator.ge: operator.lt, operator.gt: operator.le, operator.le: operator.gt,
}  # fmt: skip


def _expression(value: Any, depth: int = 6) -> str:
    """A value of the graph as the user would write it: x.shape[0] * 2."""
    op = getattr(value, "op", None)
    if op is None or depth == 0:
        return str(value)
    if op == "call_method" and value.target == "size" and len(value.args) == 2:
        return f"{_expression(value.args[0], depth - 1)}.shape[{value.args[1]}]"
    if op == "call_method" and value.target == "item":
        return f"{_expression(value.args[0], depth - 1)}.item()"
    if op == "call_function" and value.target in _SIGNS and len(value.args) == 2:
        left, right = (_expression(arg, depth - 1) for arg in value.args)
        return f"({left} {_SIGNS[value.target]} {right})"
    return value.target if op == "placeholder" else value.name


# ---- structures --------------------------------------------------------------------------------


class _Leaf(NamedTuple):
    """A part of the arguments that is not a tensor: the graph holds for this value alone."""

    path: str
    value: Any


def _is_fixed(value: Any) -> bool:
    """Whether a value can be compared with what a later call gets."""
    plain = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device,
             torch.layout, torch.memory_format, type)  # fmt: skip
    return isinstance(value, plain)


class Structure:
    """How arguments and results are nested, around a graph that works on flat lists."""

    def __init__(self, signature: inspect.Signature) -> None:
        self.signature = signature
        self.in_spec: Any = None
        self.fixed: list[_Leaf | None] = []  # for each leaf of the arguments; None: a placeholder
        self.inputs: list[tuple[str, torch.dtype, int]] = []  # name, dtype, rank of each tensor
        self.out_spec: Any = None
        self.out: list[tuple[bool, Any]] = []  # for each leaf: is it of the graph, or this value

    def enter(self, values: tuple) -> list[Any]:
        """The placeholders' values; CaptureError if the call differs from the captured one."""
        leaves, spec = _pytree.tree_flatten(values)
        if spec != self.in_spec:
            raise CaptureError(
                "the arguments are nested in another way than they were when the model was "
                "captured; capture it again with such arguments")
        found = []
        for leaf, fixed in zip(leaves, self.fixed):
            if fixed is None:
                found.append(leaf)
            elif type(leaf) is not type(fixed.value) or leaf != fixed.value:
                raise CaptureError(
                    f"{fixed.path} is {leaf!r}, but the model was captured with {fixed.value!r}; "
                    "capture it again with this value")
        for (name, dtype, ndim), value in zip(self.inputs, found):
            if not isinstance(value, torch.Tensor) or (value.dtype, value.ndim) != (dtype, ndim):
                what = f"{value.dtype} with {value.ndim} dimensions" if isinstance(
                    value, torch.Tensor) else repr(value)
                raise CaptureError(
                    f"{name} is {what}, but the model was captured with a tensor of {dtype} with "
                    f"{ndim} dimensions; capture it again with such an input")
        return found

    def leave(self, results: Iterable[Any]) -> Any:
        results = iter(results)
        leaves = [next(results) if computed else value for computed, value in self.out]
        return _pytree.tree_unflatten(leaves, self.out_spec)


class _StructuredCodeGen(CodeGen):
    """Generates a function with the signature of the captured one."""

    def __init__(self, structure: Structure) -> None:
        super().__init__()
        self.structure = structure

    def process_inputs(self, *inputs: Any) -> Any:
        bound = self.structure.signature.bind(*inputs)
        bound.apply_defaults()
        return self.structure.enter(tuple(bound.arguments.values()))

    def process_outputs(self, out: Any) -> Any:
        return self.structure.leave(out)

    def gen_fn_def(self, free_vars, maybe_return_annotation, *, expanded_def=False):
        parameters = _parameter_texts(self.structure.signature)
        head = super().gen_fn_def(parameters, maybe_return_annotation, expanded_def=expanded_def)
        names = ", ".join(self.structure.signature.parameters)
        if not free_vars:
            return f"{head}\n    self._enter({names})"
        inputs = ", ".join(var.split(":")[0].strip() for var in free_vars)
        return f"{head}\n    {inputs}, = self._enter({names})"

    def generate_output(self, output_args, *, descs=None, repr_fn=None):
        plain = super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        return f"return self._leave({plain.removeprefix('return ')})"


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


class CapturedModule(GraphModule):
    """What `capture` returns: a GraphModule that checks what was assumed."""

    @property
    def guards(self) -> tuple[Guard, ...]:
        """What was assumed while the model was captured, in the order of the run."""
        return self._guards

    def _enter(self, *values: Any) -> list[Any]:
        if self.training != self._captured_training:
            mode = "training" if self._captured_training else "evaluation"
            raise CaptureError(f"the model was captured in {mode} mode; capture it again in the "
                               "other mode, or switch with .train() and .eval()")  # fmt: skip
        return self._graph._codegen.structure.enter(values)

    def _leave(self, results: Iterable[Any]) -> Any:
        return self._graph._codegen.structure.leave(results)


# ---- what a run changes, and is put back -------------------------------------------------------


class _Undo:
    """The state of a module tree before a run: attributes, and tensors that are about to change."""

    def __init__(self, root: torch.nn.Module) -> None:
        self.modules = [(path, m, dict(vars(m)), dict(m._parameters), dict(m._buffers))
                        for path, m in root.named_modules()]  # fmt: skip
        self.saved: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.storages: dict[int, torch.Tensor] = {}
        for tensor in (*root.parameters(), *root.buffers()):
            with contextlib.suppress(RuntimeError, NotImplementedError):  # sparse, fake: no storage
                self.storages.setdefault(tensor.untyped_storage().data_ptr(), tensor)

    def before_write(self, tensor: torch.Tensor) -> None:
        """Keeps what a tensor of the tree holds, before a call that may write to it."""
        try:
            owner = self.storages.get(tensor.untyped_storage().data_ptr())
        except (RuntimeError, NotImplementedError):
            return
        if owner is not None and id(owner) not in self.saved:
            with undisturbed():
                self.saved[id(owner)] = owner, owner.detach().clone()

    def before_module(self, module: torch.nn.Module) -> None:
        for tensor in (*module.buffers(), *module.parameters()):
            if not isinstance(tensor, torch.nn.Parameter) or getattr(module, "max_norm", None):
                self.before_write(tensor)

    def assigned(self) -> Iterator[tuple[str, str, str, Any, Any]]:
        """What the run assigned: module path, kind, name, old value, new value."""
        missing = object()
        for path, module, own, parameters, buffers in self.modules:
            for kind, before, now in (
                ("buffer", buffers, module._buffers),
                ("parameter", parameters, module._parameters),
                ("attribute", own, vars(module)),
            ):
                for name in before.keys() | now.keys():
                    old, new = before.get(name, missing), now.get(name, missing)
                    if old is not new and name not in ("_buffers", "_parameters"):
                        yield path, kind, name, old, new

    def put_back(self) -> None:
        with torch.no_grad(), undisturbed():
            for tensor, content in self.saved.values():
                tensor.copy_(content)
        for _, module, own, parameters, buffers in self.modules:
            for name in vars(module).keys() - own.keys():
                del vars(module)[name]
            vars(module).update(own)
            for now, before in ((module._parameters, parameters), (module._buffers, buffers)):
                now.clear()
                now.update(before)


@contextlib.contextmanager
def _random_states() -> Iterator[None]:
    """Random numbers go on afterwards as if nothing had been drawn."""
    numpy = sys.modules.get("numpy.random")
    states = random.getstate(), numpy.get_state() if numpy else None
    cuda = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices=cuda):
        try:
            yield
        finally:
            random.setstate(states[0])
            if numpy:
                numpy.set_state(states[1])


def _copy_inputs(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Copies that share memory where the originals do."""
    storages: dict[int, Any] = {}
    copies = []
    for tensor in tensors:
        try:
            storage = tensor.untyped_storage()
            copy = storages.setdefault(storage._cdata, None) or storage.clone()
            storages[storage._cdata] = copy
            made = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(
                copy, tensor.storage_offset(), tensor.shape, tensor.stride())
        except (RuntimeError, NotImplementedError, TypeError):  # sparse, quantized, a subclass
            made = tensor.detach().clone()
        copies.append(made.requires_grad_(tensor.requires_grad))
    return copies


# ---- the recorder ------------------------------------------------------------------------------


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


class _Recorder:
    """Writes down what a run does."""

    def __init__(self, tracer: "_CaptureTracer", undo: _Undo) -> None:
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
        text = f"{_expression(left)} {_SIGNS[function]} {_expression(right)}"
        holds = self.call(function if value else _OPPOSITE[function], left, right)
        self._check(holds, Guard("size", text, value, _user_line()))

    def _assume_length(self, node: Any, length: int) -> None:
        """A call had as many results."""
        self.guards.append(Guard("size", f"len({node.name})", length, _user_line()))
        self.call(check_length, node, length)

    def assume_value(self, node: Any, value: Any, kind: str = "size") -> None:
        """A number or a truth of the graph had this value."""
        key = "value", node
        if key in self.assumed:
            return
        self.assumed.add(key)
        holds = self.call(operator.eq, node, value)
        self._check(holds, Guard(kind, _expression(node), value, _user_line()))

    def assume_data(self, witness: Witness, function: Any, value: Any) -> Any:
        """The program saw data of a tensor."""
        if not isinstance(value, (bool, int, float, complex, list)):
            raise CaptureError(
                f"{_user_line()}: {getattr(function, '__name__', function)}() turns a tensor of "
                "the graph into data that the graph cannot follow; compute with torch instead")
        name = function.__name__
        node = self.call(bool, witness._node) if function is bool else self.method(
            name, witness._node)
        self.assume_value(node, value, "data")
        return value


def _refuse_lost_number(tensor: torch.Tensor) -> None:
    """Where a size arrives as a tensor, torch puts a number there that nobody uses otherwise."""
    if tensor.dim() == 0 and tensor.device.type == "cpu" and tensor.item() == 7777777:
        raise CaptureError(f"{_user_line()}: a size became a tensor below torch's API; make it a "
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


class _CaptureTracer(Tracer):
    """Tracer whose values are real: module calls and names of nodes are the Tracer's."""

    recorder: _Recorder

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, Witness):
            return a._node
        if isinstance(a, SYMBOLS) and isinstance(a.node, Number):
            return a.node.node
        return super().create_arg(a)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        return attr_val  # found by identity where it is used

    def call_module(self, m, forward, args, kwargs):
        try:
            path = self.path_of_module(m)
        except NameError:  # made during the run
            return forward(*args, **kwargs)
        if not self.is_leaf_module(m, path):
            return forward(*args, **kwargs)
        return self.recorder.call_leaf(path, m, forward, args, kwargs)


# ---- capture -----------------------------------------------------------------------------------


class _Run:
    """One captured run of a model."""

    def __init__(self, model: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
        self.model = model
        signature = inspect.signature(model.forward)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        self.arguments, self.num_positional = bound.arguments, len(args)
        self.keywords = list(kwargs)
        self.structure = Structure(signature)
        self.tracer = _CaptureTracer()
        self.undo = _Undo(model)
        self.recorder = self.tracer.recorder = _Recorder(self.tracer, self.undo)
        self.tracer.create_args_for_root = self._arguments  # type: ignore[method-assign]

    def _placeholders(self) -> list[Any]:
        """The arguments with witnesses in the places of tensors."""
        values = tuple(self.arguments.values())
        names = list(self.arguments)
        pairs, spec = _pytree.tree_flatten_with_path(values)
        structure = self.structure
        structure.in_spec = _pytree.tree_structure(values)
        tensors = iter(_copy_inputs([leaf for _, leaf in pairs if isinstance(leaf, torch.Tensor)]))
        leaves: list[Any] = []
        for path, leaf in pairs:
            text = names[path[0].idx] + "".join(map(str, path[1:]))
            if isinstance(leaf, torch.Tensor):
                name = "".join(c if c.isalnum() else "_" for c in text).strip("_")
                node = self.tracer.create_node("placeholder", name, (), {})
                structure.fixed.append(None)
                structure.inputs.append((text, leaf.dtype, leaf.ndim))
                leaves.append(Witness(self.recorder, node, next(tensors)))
            elif _is_fixed(leaf):
                structure.fixed.append(_Leaf(text, leaf))
                leaves.append(leaf)
            else:
                raise CaptureError(
                    f"the argument {text} is a {type(leaf).__qualname__}, which capture cannot "
                    "look into; register the class with torch.utils._pytree.register_pytree_node")
        return _pytree.tree_unflatten(leaves, structure.in_spec)

    def _as_given(self, values: Any) -> tuple[list[Any], dict[str, Any]]:
        """The arguments by place and by keyword, as the caller gave them: decorators look."""
        by_name = dict(zip(self.arguments, values))
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, parameter in self.structure.signature.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                args += by_name[name]
            elif parameter.kind is parameter.VAR_KEYWORD:
                kwargs |= by_name[name]
            elif name in self.keywords:
                kwargs[name] = by_name[name]
            elif len(args) < self.num_positional:
                args.append(by_name[name])
        return args, kwargs

    def _arguments(self, function, is_module, concrete_args=None):
        def run(*_):
            args, kwargs = self._as_given(self._placeholders())
            with Net(self.recorder):
                result = self.model.forward(*args, **kwargs)
            self.recorder.follow_modes()
            self._keep_state()
            return self._results(result)

        return run, []

    def _keep_state(self) -> None:
        """Buffers that the run assigned are written by the graph."""
        for path, kind, name, old, new in self.undo.assigned():
            full = f"{path}.{name}" if path else name
            fits = (isinstance(new, Witness) and isinstance(old, torch.Tensor)
                    and new._real.shape == old.shape and new._real.dtype == old.dtype)  # fmt: skip
            if kind != "buffer" or not fits:
                raise CaptureError(
                    f"the model assigns {full}, which the graph cannot do; keep it in a buffer of "
                    "the same shape and dtype (register_buffer), or return it")
            self.recorder.method("copy_", self.recorder.constant(old), new._node)

    def _results(self, result: Any) -> tuple:
        leaves, self.structure.out_spec = _pytree.tree_flatten(result)
        nodes = []
        for leaf in leaves:
            computed = isinstance(leaf, (torch.Tensor, *SYMBOLS))
            self.structure.out.append((computed, None if computed else leaf))
            if computed:
                nodes.append(self.recorder.node(leaf))
        return tuple(nodes)

    def _module(self, graph: Any) -> CapturedModule:
        """The module around the graph, with the parts of the model that the graph names."""
        foreign = self.recorder.foreign
        try:
            for name, tensor in foreign.items():
                setattr(self.model, name, tensor)
            return CapturedModule(self.model, graph, type(self.model).__name__)
        finally:
            for name in foreign:
                delattr(self.model, name)

    def run(self) -> CapturedModule:
        with _random_states():
            try:
                graph = self.tracer.trace(self.model)
            finally:
                self.undo.put_back()
        graph.set_codegen(_StructuredCodeGen(self.structure))
        _drop_sizes(graph)
        module = self._module(graph)
        module._guards = tuple(self.recorder.guards)
        module._captured_training = self.model.training
        module.train(self.model.training)
        return module


def _drop_sizes(graph: Any) -> None:
    """Removes numbers that were computed but not used."""
    for node in reversed(list(graph.nodes)):
        size = node.op == "call_method" and node.target in (
            "size", "item", "stride", "storage_offset")
        number = node.op == "call_function" and node.target in _SIGNS
        if not node.users and (size or number or node.op == "get_attr"):
            graph.erase_node(node)


def capture(model: torch.nn.Module, *args: Any, **kwargs: Any) -> CapturedModule:
    """Runs a model once on example inputs and returns what it did as a GraphModule with the
    signature of `forward`. Sizes stay symbolic; what the run assumed is in `.guards`, and is
    checked when the module is called. The model, its inputs and the random states are left as they
    were."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"capture needs a torch.nn.Module, not {type(model).__qualname__}")
    return _Run(model, args, kwargs).run()


__dir__ = public_names(globals())
