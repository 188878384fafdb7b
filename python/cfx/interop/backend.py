"""torch.compile(model, backend="cfx"): graphs of Dynamo run in C, with the rest in PyTorch.

A graph that needs no gradients is taken as Dynamo writes it. One that needs them is given to
AOTAutograd, which makes a forward and a backward graph of it; both are then compiled in the same
way (parts.py). Whatever cannot be compiled runs in PyTorch, with a warning.
"""
import functools
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.autograd import forward_ad
from torch.utils._pytree import tree_leaves

from .. import ops
from .._core import Runtime
from .explained import CompileReport, GraphReport
from .frozen import Frozen, static_inputs
from .parts import Parts, compile_parts, value_of, why_not_tensor
from .second import Again

_AUTOCAST = "torch.amp.autocast_mode"
# Modules of calls that change what others compute, which AOTAutograd writes out.
_TRANSFORMS = ("torch._functorch", "torch._C._functorch", "torch.autograd.forward_ad")
# Calls that change more than values, and what PyTorch then does.
_MODES = frozenset(["set_default_dtype", "_enter_inference_mode", "_exit_inference_mode"])
# Calls that change what a tensor is, not only its elements.
_RESHAPES = frozenset(["resize_", "resize_as_", "set_", "requires_grad_", "as_strided_", "swap_"])


class Settings(NamedTuple):
    """The options of torch.compile(..., backend="cfx", options={...})."""

    threads: int | None = None  # of the programs in C; None: as many as cfx uses by default
    smallest: int = 2  # calls that a program must have to be worth crossing over to C
    strict: bool = False  # raise an error where a graph would fall back to PyTorch
    freeze: bool = False  # pack weights; changes that PyTorch does not count are not seen


def _settings(options: dict[str, Any] | None) -> Settings:
    given = dict(options or {})
    unknown = sorted(set(given).difference(Settings._fields))
    if unknown:
        known = ", ".join(Settings._fields)
        raise ValueError(f"the backend 'cfx' has no option '{unknown[0]}'; its options are {known}")
    settings = Settings(**given)
    for name, least in (("threads", 1), ("smallest", 1)):
        value = getattr(settings, name)
        if value is not None and (type(value) is not int or value < least):
            raise ValueError(f"the option '{name}' must be an integer of at least {least}, not "
                             f"{value!r}")
    for name in ("strict", "freeze"):
        value = getattr(settings, name)
        if type(value) is not bool:
            raise ValueError(f"the option '{name}' must be True or False, not {value!r}")
    return settings


@functools.cache
def _runtime(threads: int | None) -> Runtime | None:
    return None if threads is None else Runtime(threads=threads)


# ---- one graph ---------------------------------------------------------------------------------


def _expected_strides(gm: Any) -> list[tuple[int, ...] | None]:
    """The strides that PyTorch would give to each result of a graph; None where they are unknown:
    code that comes later may depend on them."""
    results = next(node for node in reversed(gm.graph.nodes) if node.op == "output").args[0]
    found: list[tuple[int, ...] | None] = []
    for result in results if isinstance(results, (tuple, list)) else [results]:
        value: Any = value_of(result) if isinstance(result, torch.fx.Node) else None
        known = isinstance(value, torch.Tensor) and all(
            type(n) is int for n in (*value.shape, *value.stride()))
        found.append(tuple(value.stride()) if known else None)
    return found


def _restride(results: Any, strides: list[tuple[int, ...] | None]) -> Any:
    if not isinstance(results, (tuple, list)) or len(results) != len(strides):
        return results
    made = list(results)
    for i, (result, stride) in enumerate(zip(results, strides)):
        if _has_memory(result) and stride is not None and result.stride() != stride:
            made[i] = torch.empty_strided(result.shape, stride, dtype=result.dtype).copy_(result)
    return type(results)(made)


def _differs(results: Any, strides: list[tuple[int, ...] | None]) -> bool:
    return isinstance(results, (tuple, list)) and len(results) == len(strides) and any(
        stride is not None and _has_memory(result)
        and _real_strides(result, result.stride()) != _real_strides(result, stride)
        for result, stride in zip(results, strides))


def _has_memory(result: Any) -> bool:
    """Whether strides say something: not on the device meta, nor for zeros that are only noted."""
    return (isinstance(result, torch.Tensor) and result.device.type == "cpu"
            and not torch._is_zerotensor(result))


def _real_strides(tensor: torch.Tensor, strides: Sequence[int]) -> list[int]:
    """Those of dimensions with more than one element: others mean nothing."""
    return [s for n, s in zip(tensor.shape, strides) if n > 1] if tensor.numel() else []


def _start(tensor: torch.Tensor) -> int:
    """The address at which the memory of a tensor begins."""
    return tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()


def _is_inside(result: torch.Tensor, x: Any) -> bool:
    """Whether a result lies in the memory of an input of the same type."""
    if not isinstance(x, torch.Tensor) or x.dtype != result.dtype or not _has_memory(x):
        return False
    return 0 <= result.data_ptr() - _start(x) < x.untyped_storage().nbytes()


def _find_views(results: Any, inputs: tuple[Any, ...]) -> list[tuple[int, int]]:
    """The results, by position, that share memory with an input but not PyTorch's count of changes;
    with that input."""
    found = []
    for i, result in enumerate(results if isinstance(results, (tuple, list)) else ()):
        if _has_memory(result) and result.numel() and not result._is_view():
            owner = next((k for k, x in enumerate(inputs) if _is_inside(result, x)), None)
            if owner is not None and not any(result is x for x in inputs):
                found.append((i, owner))
    return found


def _as_views(results: Any, inputs: tuple[Any, ...], views: list[tuple[int, int]]) -> Any:
    """The same results, those as PyTorch's views of the inputs: so autograd notices that a tensor
    which it has kept was written to, by whatever name."""
    made = list(results)
    for i, owner in views:
        result, x = made[i], inputs[owner]
        if _is_inside(result, x):
            offset = (result.data_ptr() - _start(x)) // x.element_size()
            made[i] = x.as_strided(result.shape, result.stride(), offset)
    return type(results)(made)


class CompiledGraph:
    """A graph as torch.compile calls it. If a program fails where PyTorch does not, PyTorch runs
    the graph, now and from then on."""

    def __init__(self, gm: Any, parts: Parts, report: GraphReport, settings: Settings) -> None:
        self.run, self.gm = parts.run, gm
        self.report, self.strict = report, settings.strict
        self.strides = _expected_strides(gm)
        self.restrides: bool | None = None  # whether results need other strides; not known yet
        self.views: list[tuple[int, int]] | None = None  # of inputs; not known yet
        self.writes, self.draws = parts.writes, parts.draws
        self.seen: set[tuple[Any, ...]] = set()  # kinds of inputs that it has succeeded with

    def __call__(self, *inputs: Any) -> Any:
        if forward_ad._current_level >= 0:  # inputs may have tangents, which C does not see
            self.report.differentiate_forward()
            return self.gm.forward(*inputs)
        saved = self.save(inputs) if self.writes else None
        random = torch.get_rng_state() if self.draws else None
        failed: Exception | None = None
        try:
            results = self.run(*inputs)
        except Exception as error:
            failed = error
        if failed is not None:
            if random is not None:
                torch.set_rng_state(random)
            results = self.fall_back(failed, inputs, saved)
        self.report.runs += 1
        if self.views is None:
            self.views = _find_views(results, inputs)
        if self.views:
            results = _as_views(results, inputs, self.views)
        if self.restrides is None:
            self.restrides = _differs(results, self.strides)
        return _restride(results, self.strides) if self.restrides else results

    def save(self, inputs: tuple[Any, ...]) -> list[Any] | None:
        """Copies of inputs that the graph may write to, the first time that they have these sizes:
        whether a program fails depends on them."""
        found = tree_leaves(inputs)
        kind = tuple(tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in found)
        if kind in self.seen:
            return None
        self.seen.add(kind)
        return [x.clone() if isinstance(x, torch.Tensor) and not isinstance(x, torch.nn.Parameter)
                else None for x in found]  # fmt: skip

    def fall_back(self, error: Exception, inputs: tuple[Any, ...], saved: list[Any] | None) -> Any:
        if self.strict or (self.writes and saved is None):
            raise error
        for x, before in zip(tree_leaves(inputs), saved or ()):
            if before is not None and not torch.equal(x, before):
                with torch.no_grad():
                    x.copy_(before)
        results = self.gm.forward(*inputs)  # an error that PyTorch raises, too, is the user's
        self.run = self.gm.forward
        self.report.fall_back(f"{type(error).__name__}: {error}")
        return results


def _freeze(gm: Any, parts: Parts, report: GraphReport, settings: Settings) -> Parts:
    """The same with packed weights, if it has any."""
    positions = static_inputs(gm)
    if not positions or report.kind != "inference":
        return parts

    def pack(weights: dict[int, torch.Tensor]) -> Callable[..., Any]:
        made = compile_parts(gm, _runtime(settings.threads), settings.smallest, weights)
        report.packed = made.packed
        return made.run

    return parts._replace(run=Frozen(pack, parts.run, positions))


def _compile(gm: Any, settings: Settings, report: GraphReport) -> Callable[..., Any]:
    begun = time.perf_counter()
    try:
        parts = compile_parts(gm, _runtime(settings.threads), settings.smallest)
        report.set_parts(parts)
        if settings.freeze:
            parts = _freeze(gm, parts, report, settings)
        made: Callable[..., Any] = CompiledGraph(gm, parts, report, settings)
    except Exception as error:
        if settings.strict:
            raise
        report.fall_back(f"{type(error).__name__}: {error}")
        made = gm.forward
    report.seconds = time.perf_counter() - begun
    return made


# ---- which way ---------------------------------------------------------------------------------


def _calls(gm: Any) -> list[Any]:
    return [node for node in gm.graph.nodes if node.op in ("call_function", "call_method")]


def _name(node: Any) -> str:
    target = node.target
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))


def _switches(gm: Any) -> list[Any]:
    return [n.args[0] for n in _calls(gm) if _name(n) == "_set_grad_enabled" and n.args]


def _tensors(gm: Any, inputs: Sequence[Any]) -> list[torch.Tensor]:
    own = (*gm.parameters(), *gm.buffers())
    return [x for x in (*inputs, *own) if isinstance(x, torch.Tensor)]


def _needs_autograd(gm: Any, inputs: Sequence[Any]) -> bool:
    """Whether the graph cannot be taken as it is: gradients are wanted, or autocast or a class of
    tensors changes what its calls do, which AOTAutograd writes out."""
    tensors = _tensors(gm, inputs)
    grad = torch.is_grad_enabled() or any(_switches(gm))
    if grad and any(x.requires_grad for x in tensors):
        return True
    if torch.is_autocast_enabled("cpu"):
        return True
    modules = [str(getattr(node.target, "__module__", None)) for node in _calls(gm)]
    if any(name == _AUTOCAST or name.startswith(_TRANSFORMS) for name in modules):
        return True
    return any(torch.utils._python_dispatch.is_traceable_wrapper_subclass(x) for x in tensors)


def _why_not(gm: Any, inputs: Sequence[Any]) -> str | None:
    """Why the whole graph has to run in PyTorch; None if it does not."""
    if torch.get_default_dtype() != torch.float32:
        return f"the default element type is {torch.get_default_dtype()}"
    reshape = next((_name(n) for n in _calls(gm) if _name(n) in _RESHAPES), None)
    if reshape is not None:
        return f"it calls '{reshape}', which changes more than the elements of a tensor"
    mode = next((_name(n) for n in _calls(gm) if _name(n) in _MODES), None)
    if mode is not None:
        return f"it calls '{mode}', which changes what other calls do"
    switches = _switches(gm)
    if switches and switches[-1] != torch.is_grad_enabled():
        return "it leaves gradients switched on or off"
    if inputs and all(why_not_tensor(x) for x in inputs if isinstance(x, torch.Tensor)):
        return next(filter(None, map(why_not_tensor, inputs)), None)
    return None


# ---- training ----------------------------------------------------------------------------------


@functools.cache
def _decompositions() -> dict[Any, Callable[..., Any]]:
    """What PyTorch writes in terms of other operators, where the operator table has no row; not
    what draws random numbers."""
    return {
        op: rule for op, rule in torch._decomp.decomposition_table.items()
        if isinstance(op, torch._ops.OpOverload) and op.namespace == "aten"
        and torch.Tag.nondeterministic_seeded not in op.tags and ops.find(op) is None
        and not op.name().startswith("aten::lift")  # AOTAutograd has a way of its own for it
    }  # fmt: skip


def _boxed(run: Callable[..., Any]) -> Callable[..., Any]:
    """As AOTAutograd calls graphs: with a list, which it may empty."""

    def call(inputs: list[Any]) -> Any:
        taken = tuple(inputs)
        inputs.clear()
        return run(*taken)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def _through_autograd(gm: Any, inputs: Sequence[Any], settings: Settings,
                      reports: list[GraphReport]) -> Callable[..., Any]:
    from torch._dynamo.backends.common import aot_autograd

    own: list[GraphReport] = []

    def compiler(kind: str) -> Callable[..., Any]:
        def compile_graph(graph: Any, examples: Sequence[Any]) -> Callable[..., Any]:
            reports.append(GraphReport(kind, graph))
            own.append(reports[-1])
            return _boxed(_compile(graph, settings, reports[-1]))

        return compile_graph

    made: Callable[..., Any] = aot_autograd(
        fw_compiler=compiler("forward"), bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"), decompositions=_decompositions(),
    )(gm, inputs)  # fmt: skip
    context = torch._guards.TracingContext.try_get()
    if context is not None and context.fw_metadata is not None:
        context.fw_metadata.bw_donated_idxs = []  # no memory is taken over: create_graph=True works
    return made if settings.strict else Again(gm, made, own)


# ---- the back end ------------------------------------------------------------------------------

# By the object that torch.compile has made for a call of it: what it has compiled.
_compiled: "weakref.WeakKeyDictionary[Any, list[GraphReport]]" = weakref.WeakKeyDictionary()
_direct: list[GraphReport] = []  # of back ends that were called by themselves


def _caller() -> Any:
    """The object of torch.compile that has called the back end, or None."""
    frame = sys._getframe(1)
    while frame is not None:
        found = frame.f_locals.get("self")
        if frame.f_code.co_name == "__call__" and isinstance(found, torch._TorchCompileWrapper):
            return found
        frame = frame.f_back  # type: ignore[assignment]
    return None


def backend(gm: Any, example_inputs: Sequence[Any], *, mode: str | None = None,
            options: dict[str, Any] | None = None) -> Callable[..., Any]:
    """The back end that torch.compile knows as "cfx"."""
    settings = _settings(options)
    caller = _caller()
    reports = _direct if caller is None else _reports_of(caller)
    if mode is not None and not reports:
        warnings.warn(f"the backend 'cfx' has no modes, so mode='{mode}' changes nothing; see its "
                      f"options: {', '.join(Settings._fields)}", stacklevel=2)
    if _needs_autograd(gm, example_inputs):
        try:
            return _through_autograd(gm, example_inputs, settings, reports)
        except torch._dynamo.exc.RestartAnalysis:  # Dynamo traces the program once more
            raise
        except Exception as error:
            if settings.strict:
                raise
            why: str | None = f"AOTAutograd: {type(error).__name__}: {error}"
    else:
        why = _why_not(gm, example_inputs)
    reports.append(GraphReport("inference", gm))
    if why is not None:
        reports[-1].fall_back(why)
        forward: Callable[..., Any] = gm.forward
        return forward
    return _compile(gm, settings, reports[-1])


class _ByIdentity:
    """torch's objects are equal if their options are; each call of torch.compile is one here."""


def _reports_of(caller: Any) -> list[GraphReport]:
    key = vars(caller).setdefault("_cfx_key", _ByIdentity())
    return _compiled.setdefault(key, [])


def _callback(compiled: Any) -> Any:
    """What Dynamo calls for the frames of a module or function of torch.compile."""
    context = vars(compiled).get("dynamo_ctx") if hasattr(compiled, "__dict__") else None
    if context is not None:
        return context.callback
    function = getattr(compiled, "__func__", compiled)
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    cells = dict(zip(names, getattr(function, "__closure__", None) or ()))
    return cells["callback"].cell_contents if "callback" in cells else None


def _wrappers(compiled: Any) -> list[Any]:
    """The objects of torch.compile with this back end that a module or function calls. A module may
    have been compiled in place (`module.compile()`), or some of its modules."""
    found = []
    inner = compiled.modules() if isinstance(compiled, torch.nn.Module) else ()
    for each in (compiled, *(m._compiled_call_impl for m in inner)):
        at = _callback(each)
        while at is not None and not isinstance(at, torch._TorchCompileWrapper):
            at = getattr(at, "_torchdynamo_orig_backend", None)
        if at is not None and at.compiler_fn is backend:
            found.append(at)
    return found


def report(compiled: Any) -> CompileReport | None:
    """What torch.compile(..., backend="cfx") has compiled for this module or function so far; None
    if it is not one of those."""
    found = _wrappers(compiled)
    return CompileReport([graph for at in found for graph in _reports_of(at)]) if found else None
