"""A module as a graph, and that in rows of the operator table."""
import contextlib
import inspect
import re
import sys
from typing import Any

import torch
from torch import nn

from .. import lowering
from .._symbolic_trace import Tracer
from ..graph_module import GraphModule
from ..lowering import Lowered, LowerError
from .errors import Wrong, in_line, near, place_of, why_of


class _Capture(Tracer):
    """A tracer whose inputs can be fixed: the graph does not have them then."""

    def __init__(self, fixed: dict[str, Any], leaves: list[str], buffers: bool) -> None:
        super().__init__()
        self.fixed = fixed
        self.leaves = leaves
        self.proxy_buffer_attributes = buffers

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        return (bool(_names(m).intersection(self.leaves))
                or super().is_leaf_module(m, module_qualified_name))

    def _placeholders(self, names: list[str], defaults: Any, hints: Any) -> list[Any]:
        others = [name for name in names if name not in self.fixed]
        made = iter(super()._placeholders(others, defaults, hints))
        return [self.fixed[name] if name in self.fixed else next(made) for name in names]


def _names(module: Any) -> set[str]:
    """Those that --leaf can have for its class."""
    cls = type(module)
    return {cls.__name__, f"{cls.__module__}.{cls.__qualname__}",
            f"{cls.__module__}:{cls.__qualname__}"}


def _parameters(root: Any) -> list[str]:
    function = root.forward if isinstance(root, nn.Module) else root
    return list(inspect.signature(function).parameters)


def _look_for(root: Any, fixed: dict[str, Any], leaves: list[str]) -> None:
    """Complains about names that are not there."""
    known = _parameters(root)
    for name in fixed:
        if name not in known:
            raise Wrong(f"--concrete: there is no input '{name}' among ({', '.join(known)})"
                        f"{near(name, known)}")
    modules = list(root.modules()) if isinstance(root, nn.Module) else []
    for leaf in leaves:
        if not any(leaf in _names(m) for m in modules):
            raise Wrong(f"--leaf: there is no module of class '{leaf}'"
                        + near(leaf, {type(m).__name__ for m in modules}))


# What messages of the tracer advise, in words of the command.
_ADVICE = (
    ("capture it with cfx.script, which", "capture it with --script, which"),
    ("capture the loop with cfx.script", "capture the loop with --script"),
    ("or capture it with cfx.script", "or capture it with --script"),
    ("fix the input with concrete_args", "fix an input with --concrete NAME=VALUE"),
    ("make the module with the branch a leaf", "keep the module with the branch whole with "
     "--leaf CLASS --no-lower"),
    ("; to record asserts, set trace_asserts in a Tracer subclass", ""),
)


def _cannot_trace(error: BaseException) -> Wrong:
    """One line of the lines that the tracer writes: what, the user's line, what it is, advice."""
    all_lines = "\n".join([str(error), *getattr(error, "__notes__", ())])
    lines = [line.strip() for line in all_lines.split("\n") if line.strip()]
    at = next((i for i, line in enumerate(lines) if re.match(r".+:\d+: ", line)), None)
    hint = " ".join(lines[at + 1:]) if at is not None else ""
    if at is None or "to do:" not in hint:
        return Wrong(f"{place_of(error)}cannot capture it: {why_of(error)}")
    place, code = re.fullmatch(r"(.+?:\d+): (.*)", lines[at]).groups()  # type: ignore[union-attr]
    if decides := re.search(r" = placeholder\[target=(\w+)\]\((?:default=(.*?))?\);? ?to do", hint):
        hint = hint.replace("fix the input with concrete_args",
                            f"fix the input with --concrete {decides[1]}={decides[2] or 'VALUE'}")
    for old, new in _ADVICE:
        hint = hint.replace(old, new)
    hint = in_line(hint).replace(" to do: ", "; to do: ")
    return Wrong(f"{place}: cannot capture '{code}': {hint}")


def capture(root: Any, fixed: dict[str, Any], leaves: list[str]) -> GraphModule:
    """The module as a graph. Buffers are read where they are used; if the program decides by what
    they hold, their values are taken instead."""
    _look_for(root, fixed, leaves)
    first: BaseException | None = None
    for buffers in (True, False):
        tracer = _Capture(fixed, leaves, buffers)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                graph = tracer.trace(root)
        except (Exception, SystemExit) as error:
            first = first or error
        else:
            return GraphModule(tracer.root, graph, getattr(root, "__name__", type(root).__name__))
    assert first is not None
    raise _cannot_trace(first) from first


def from_source(root: Any, fixed: dict[str, Any], leaves: list[str]) -> GraphModule:
    """The same from its source, with the branches and loops that depend on data."""
    from ..scripting import script

    _look_for(root, fixed, leaves)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return script(root, tracer=_Capture(fixed, leaves, True))
    except (Exception, SystemExit) as error:
        raise Wrong(f"cannot capture it: {in_line(error)}") from error


def all_tensors(module: GraphModule) -> dict[str, Any]:
    """What a graph that is not lowered may read: every parameter and buffer, by all of its names,
    also those that are in no state_dict."""
    found = {**dict(module.named_parameters(remove_duplicate=False)),
             **dict(module.named_buffers(remove_duplicate=False))}
    read = {name: t for name, t in lowering.read_tensors(module.graph, module).items()
            if isinstance(t, torch.Tensor)}  # not the flags of modules
    return {**{name: t.detach() for name, t in found.items()}, **read}


def lower(module: GraphModule) -> Lowered:
    try:
        return lowering.lower(module)
    except LowerError as error:
        why = "".join(f"\n  {in_line(finding.why)}" for finding in error.findings)
        count = len(error.findings)
        raise Wrong(f"{count} call{'s' * (count > 1)} cannot run in C (use --no-lower to write the "
                    f"graph as captured):{why}") from error
    except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
        raise Wrong(f"{place_of(error)}cannot lower it: {why_of(error)}") from error
