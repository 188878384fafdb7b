"""A graph of torch.compile as programs in C. Calls that have no row in the operator table stay in
PyTorch; the others are gathered into as few programs as possible.

A graph whose calls only compute is partitioned freely (cfx_graph_partition). If a call writes to a
value, or might, no call moves past another: programs are then runs of neighbouring calls.

Programs are planned. What a graph reads of its module may change between two runs, so it is given
to programs as an input; only tensors that the caller names are constants, which plans pack.
"""
import functools
import operator
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

from .. import _core, ops
from .._core import Runtime
from ..graph import Graph
from ..graph_module import GraphModule
from ..lowering import read_tensors
from ..node import Node
from .convert import from_torch

_DTYPES = frozenset([
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
    torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
])  # fmt: skip
_MOST_DIMS = 8
_CALLS = ("call_function", "call_method", "call_module")
_ALONE, _WRITES, _DRAWS = 1, 2, 4  # of _core._effects
_RANDOM = "it draws random numbers, which are to be those of PyTorch"
_PROGRAM = "cfx_program_"
_LITERAL = "_tensor_constant"  # what torch.compile calls a tensor that the program's text holds
_WEIGHT = "cfx_weight_"
_SMALL = "a program in C for so few calls is not worth two crossings"


class Left(NamedTuple):
    """A call that stays in PyTorch."""

    node: str
    target: str
    why: str
    where: str | None  # file:line


class Parts(NamedTuple):
    """A graph, ready to run."""

    run: Callable[..., Any]
    programs: list[int]  # how many calls each program in C has
    left: list[Left]
    crossings: int  # how often a run changes between C and PyTorch
    writes: bool  # some call writes to a value
    draws: bool = False  # some call draws random numbers
    packed: int = 0  # how many weights its programs have taken as constants


# ---- what cannot be in C -----------------------------------------------------------------------


def value_of(node: Any) -> Any:
    """What torch.compile knows of a node's value: a fake tensor, a number, a tuple of them."""
    return node.meta.get("example_value", node.meta.get("val"))


def why_not_tensor(value: Any) -> str | None:
    """Why a value cannot be given to a program in C; None if it can."""
    if isinstance(value, (tuple, list)):
        return next(filter(None, map(why_not_tensor, value)), None)
    if not isinstance(value, torch.Tensor):
        return None
    if not isinstance(value, torch._subclasses.FakeTensor) and type(value) not in (
            torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        return f"a tensor of the class {type(value).__name__} decides itself what operators do"
    if value.device.type != "cpu":
        return f"a tensor is on the device {value.device}; programs in C run on the CPU"
    if value.layout != torch.strided or value.is_quantized or value.is_nested:
        return "a tensor is not dense"
    if value.dtype not in _DTYPES:
        return f"the element type {value.dtype} has no counterpart in C"
    if value.dim() > _MOST_DIMS:
        return f"a tensor has {value.dim()} dimensions; programs in C support {_MOST_DIMS}"
    if torch._is_zerotensor(value):
        return "a tensor of zeros has no memory"
    return "a tensor is conjugated lazily" if value.is_conj() or value.is_neg() else None


def _reasons(graph: Graph) -> dict[str, str]:
    """Calls that have to stay in PyTorch whatever the operator table says, by name."""
    reasons: dict[str, str] = {}
    unfit: dict[Node, str] = {}
    for node, effect in zip(graph.nodes, _core._effects(graph)):
        why = why_not_tensor(value_of(node))
        if why is not None:
            unfit[node] = why
        if node.op not in _CALLS:
            continue
        why = why or next((unfit[n] for n in node.all_input_nodes if n in unfit), None)
        draws = effect & _DRAWS or node.target is dropout_mask
        why = why or (_RANDOM if draws else None)
        if why is not None:
            reasons[node.name] = why
    return reasons


def dropout_mask(sizes: list[int], p: float, dtype: Any) -> Any:
    """The mask that torch.native_dropout draws for a tensor of these sizes."""
    return torch.native_dropout(torch.empty(sizes, dtype=dtype), p, True)[1]


def _free_masks(graph: Graph) -> None:
    """Lets PyTorch draw the masks of dropout before anything else runs: they depend on sizes alone.
    The rest of the call is arithmetic:

        %y, %m = native_dropout(%x, 0.1, True)   =>   %m = dropout_mask(sizes, 0.1, float32)
                                                      %y = %x * %m * (1 / 0.9)
    """
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.native_dropout.default):
        x, p, train = node.args
        value: Any = value_of(x) if isinstance(x, Node) else None
        known = isinstance(value, torch.Tensor) and all(type(n) is int for n in value.shape)
        items = all(user.target is operator.getitem for user in node.users)
        if not known or not items or train is not True or not 0 < p < 1:
            continue
        with graph.inserting_before(node):
            drawn = (list(value.shape), p, value.dtype)
            mask = graph.call_function(dropout_mask, drawn)
            half = graph.call_function(torch.ops.aten.mul.Tensor, (x, mask))
            made = graph.call_function(torch.ops.aten.mul.Tensor, (half, 1 / (1 - p)))
        for user in list(node.users):
            user.replace_all_uses_with(made if user.args[1] == 0 else mask)
            graph.erase_node(user)
        graph.erase_node(node)


def _schemas(node: Node) -> list[Any]:
    """Those of torch's operator that a call of one of its built-in functions or methods means."""
    target: Any = node.target
    if isinstance(target, torch._ops.OpOverload):
        return [target._schema]
    is_built_in = isinstance(target, (types.BuiltinFunctionType, types.MethodDescriptorType))
    name = target.__name__ if is_built_in else target
    if not isinstance(name, str) or "out" in node.kwargs or "batch_norm" in name:
        return []  # norms write to statistics, which their schemas do not say
    packet = getattr(torch.ops.aten, name, None)
    overloads = packet.overloads() if packet is not None else []
    return [getattr(packet, o)._schema for o in overloads if "out" not in o]


def _may_write(node: Node) -> bool:
    """Whether a call that is not in the operator table may write to a value."""
    if node.target in (dropout_mask, operator.getitem):
        return False
    schemas = _schemas(node)
    if schemas:
        return any(schema.is_mutable for schema in schemas)
    return _row(node) is None


def _row(node: Node) -> str | None:
    """The operator that a call means: of a lowered one, the row."""
    found = ops.find(node)
    return found.name if found is not None else None


def _has_region(node: Node) -> bool:
    return any(isinstance(arg, _core.Graph) for arg in node.args)


# ---- programs ----------------------------------------------------------------------------------


def bump(tensors: Any) -> None:
    """Tells autograd that C has written to tensors."""
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and not tensor.is_inference():
            torch.autograd.graph.increment_version(tensor)


def _read_constants(graph: Graph, constants: Mapping[int, str], root: Any) -> None:
    """Inputs of the graph become what it reads from these paths of `root`."""
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    first: Any = inputs[0] if inputs else None
    for i in constants:
        if inputs[i] is first:
            first = first.next
        else:
            first.prepend(inputs[i])
    graph._unlift_params(list(constants.values()), root)


def _program(graph: Graph, root: Any, runtime: Runtime | None,
             constants: Mapping[int, str]) -> Callable[..., Any]:  # fmt: skip
    """Runs the graph, without those of its inputs that are constants, at these paths of `root`."""
    loose = _core._attributes_read(graph)  # in regions of loops: they may change, so it has no plan
    _read_constants(graph, constants, root)
    tensors = read_tensors(graph, root)
    program = _core._Program(graph, tensors, runtime)
    if not loose:
        program.compile(graph, tensors, None, False, None, "float32", False)
    run, written = program.run, _core._written_inputs(graph)
    if not written:
        return run

    def run_and_tell(*inputs: Any) -> Any:
        result = run(*inputs)
        bump(inputs[i] for i in written)
        return result

    return run_and_tell


class _Part(torch.nn.Module):
    """A program in C as a module that a graph calls."""

    def __init__(self, run: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = run


def _declare_numbers(graph: Graph) -> None:
    """Inputs that are numbers say so: lowering takes others for tensors."""
    for node in graph.find_nodes(op="placeholder"):
        value = value_of(node)
        for kind, symbol in ((bool, torch.SymBool), (int, torch.SymInt), (float, torch.SymFloat)):
            if isinstance(value, (kind, symbol)):
                node.type = kind
                break


# ---- the graph ---------------------------------------------------------------------------------


class _Lowering:
    """A copy of a graph, lowered as far as it goes. What stays is in `why`, by name."""

    def __init__(self, module: GraphModule, source: Graph, stay: dict[str, str]) -> None:
        self.module = module
        self.graph = source._clone()
        found = _core._lower(self.graph, module, stay)
        self.why = {name: _reason(why) for name, _, _, why in found}
        if not any(self.is_left(node) and _may_write(node) for node in self.graph.nodes):
            self.graph._pass("dce", module, {"strict": 1})  # else a call without users may write
        self.where = {name: f"{file}:{line}" for name, file, line, _ in found if file}
        top = {node.name for node in self.graph.nodes}
        inside = next((name for name in self.why if name not in top), None)
        for node in self.graph.nodes:  # what is in the way may be inside of a region
            if inside is not None and _has_region(node) and node.name not in self.why:
                self.why[node.name] = f"in its region: {self.why[inside]}"

    def is_left(self, node: Node) -> bool:
        return node.op in _CALLS and node.name in self.why

    def is_c(self, node: Node) -> bool:
        return node.op in _CALLS and node.name not in self.why

    def left(self) -> list[Left]:
        return [Left(n.name, n._pretty_print_target(n.target), self.why[n.name],
                     self.where.get(n.name)) for n in self.graph.nodes if self.is_left(n)]

    def writes(self) -> bool:
        effects = zip(self.graph.nodes, _core._effects(self.graph))
        return any(effect & _WRITES or (self.is_left(node) and _may_write(node))
                   for node, effect in effects if node.op in _CALLS)

    def draws(self) -> list[str]:
        return [n.name for n, e in zip(self.graph.nodes, _core._effects(self.graph))
                if e & _DRAWS or n.target is dropout_mask]


def _reason(text: str) -> str:
    """The words of a finding that follow the call, without the node's name."""
    head, _, tail = text.partition("): ")
    return (tail or head).rpartition(" (node %")[0] or text


def _computes(node: Node) -> bool:
    return _row(node) not in _IDLE


_IDLE = frozenset(["getitem", "size", "getattr", "view", "reshape", "transpose", "permute",
                   "expand", "unsqueeze", "squeeze", "tuple", "t", "detach", "alias"])  # fmt: skip


def _small_parts(parts: list[dict[Node, int]], smallest: int) -> dict[str, str]:
    """The calls of parts that are not worth it, with the reason."""
    few = [part for part in parts if sum(map(_computes, part)) < smallest]
    return {node.name: _SMALL for part in few for node in part}


def _count_weights(constants: Mapping[str, str]) -> int:
    return sum(path.startswith(_WEIGHT) for path in constants.values())


def _fuse(low: _Lowering, parts: list[dict[Node, int]], runtime: Runtime | None,
          constants: Mapping[str, str]) -> Parts:  # fmt: skip
    """Puts a call of a program in the place of each part."""
    graph, module = low.graph, low.module
    left, writes, draws = low.left(), low.writes(), bool(low.draws())
    for i, part in enumerate(parts):
        nodes = sorted(part, key=lambda node: node._sort_key)
        inner, inputs, outputs = graph._extract(nodes, None, None, 0)
        known = {k: constants[n.name] for k, n in enumerate(inputs) if n.name in constants}
        path = f"{_PROGRAM}{i}"
        module.add_submodule(path, _Part(_program(inner, module, runtime, known)))
        given = [node for k, node in enumerate(inputs) if k not in known]
        graph._insert_fused(path, given, list(outputs), operator.getitem, len(outputs) != 1,
                            nodes[-1])
        for node in reversed(nodes):
            graph.erase_node(node)
    graph._pass("toposort")
    module.graph = graph
    sizes = [len(part) for part in parts]
    return Parts(module.forward, sizes, left, _count_crossings(graph), writes, draws,
                 _count_weights(constants))


def _count_crossings(graph: Graph) -> int:
    kinds: list[bool] = []
    for node in graph.nodes:
        own = str(node.target).startswith(_PROGRAM)
        item = node.target is operator.getitem
        if node.op in _CALLS and not item and (not kinds or kinds[-1] != own):
            kinds.append(own)
    return max(len(kinds) - 1, 0)


def _whole(low: _Lowering, runtime: Runtime | None, constants: Mapping[str, str]) -> Parts:
    """All of a graph as one program."""
    graph = low.graph
    calls, writes = sum(node.op in _CALLS for node in graph.nodes), low.writes()
    inputs = [node.name for node in graph.nodes if node.op == "placeholder"]
    known = {i: constants[name] for i, name in enumerate(inputs) if name in constants}
    run = program = _program(graph, low.module, runtime, known)
    if known:
        given = [i for i in range(len(inputs)) if i not in known]

        def run(*inputs: Any) -> Any:
            return program(*[inputs[i] for i in given])

    return Parts(run, [calls] if calls else [], [], 0, writes, packed=_count_weights(constants))


class _Source:
    """A graph of torch.compile that is to be compiled. What it reads of its module becomes inputs,
    the first ones: `read`. `constants` are the inputs that do not change, with a path of the module
    that holds each."""

    def __init__(self, gm: Any, weights: Mapping[int, torch.Tensor]) -> None:
        self.module = from_torch(gm)
        graph = self.graph = self.module.graph
        _declare_numbers(graph)
        _free_masks(graph)
        names = [node.name for node in graph.nodes if node.op == "placeholder"]
        held = read_tensors(graph, self.module)
        paths = graph._lift_params(self.module)
        self.read = [held[path] for path in paths]
        read = [node.name for node in graph.nodes if node.op == "placeholder"][:len(paths)]
        self.constants = {n: p for n, p in zip(read, paths) if p.startswith(_LITERAL)}
        for i, weight in weights.items():
            self.module.register_buffer(f"{_WEIGHT}{i}", weight.detach())
            self.constants[names[i]] = f"{_WEIGHT}{i}"

    def run(self, parts: Parts) -> Parts:
        """What a caller gets who has only the graph's own inputs."""
        run = functools.partial(parts.run, *self.read) if self.read else parts.run
        return parts._replace(run=run)


def _unwritten(low: _Lowering, constants: Mapping[str, str]) -> dict[str, str]:
    """The constants that no call writes to."""
    if any(low.is_left(node) and _may_write(node) for node in low.graph.nodes):
        return {n: p for n, p in constants.items() if p.startswith(_LITERAL)}
    inputs = [node.name for node in low.graph.nodes if node.op == "placeholder"]
    written = {inputs[i] for i in _core._written_inputs(low.graph)}
    return {n: p for n, p in constants.items() if n not in written}


def compile_parts(gm: Any, runtime: Runtime | None, smallest: int = 2,
                  weights: Mapping[int, torch.Tensor] | None = None) -> Parts:  # fmt: skip
    """A torch.fx.GraphModule that torch.compile has made, as programs in C. A program with fewer
    than `smallest` calls that compute something is left to PyTorch. `weights`: the inputs, by
    position, that are these tensors in every run, with these elements; unless the graph itself
    writes to them."""
    made = _Source(gm, weights or {})
    source, module = made.graph, made.module
    stay = _reasons(source)
    low = _Lowering(module, source, stay)
    constants = _unwritten(low, made.constants)
    if not low.left():
        return made.run(_whole(low, runtime, constants))
    in_order = low.writes()
    draws = low.draws()
    while True:
        parts = low.graph._partition(low.is_c, False, in_order)
        small = _small_parts(parts, smallest)
        if small:
            stay = {**stay, **small}
            low = _Lowering(module, source, stay)
            continue
        fused = _fuse(low, parts, runtime, constants)
        if in_order or low.draws() == draws:
            return made.run(fused)
        in_order = True  # random numbers must be drawn in the same order
        low = _Lowering(module, source, stay)
