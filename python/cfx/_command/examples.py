"""`python -m cfx capture`: a module as a graph, from a run on example inputs."""
import argparse
import contextlib
import inspect
import re
import sys
from collections.abc import Callable
from typing import Any

from torch import nn

from ..capturing import CapturedModule, explain
from ..capturing import capture as capture_run
from ..capturing.checks import graph_with_checks
from ..capturing.guards import CaptureError
from .._glue.structure import Flattened
from .errors import Wrong, in_line, near, place_of, why_of

_SIZES = re.compile(r"\s*([A-Za-z_][\w.\[\]']*)\s*(?:=\s*(-?\d+(?:\s*,\s*-?\d+)*)\s*)?")


def sizes(options: argparse.Namespace, inputs: dict[str, Any]) -> Any:
    """What `dynamic` of cfx.capture is for --dynamic and --fixed: NAME or NAME=DIMS."""
    found: dict[str, Any] = {}
    for option, words, may in (("--dynamic", options.dynamic, True),
                               ("--fixed", options.fixed, False)):  # fmt: skip
        for word in words:
            one = _SIZES.fullmatch(word)
            if not one:
                raise Wrong(f"{option}: expected NAME or NAME=DIMENSIONS, such as x=0,1, not "
                            f"'{word}'", 2)  # fmt: skip
            _note(found, one[1], one[2], may, option, inputs)
    return found or None


def _note(found: dict[str, Any], name: str, dims: str | None, may: bool, option: str,
          inputs: dict[str, Any]) -> None:  # fmt: skip
    first = re.split(r"[.\[]", name)[0]
    if first not in inputs:
        raise Wrong(f"{option}: --input gives no '{first}'{near(first, list(inputs))}", 2)
    value = inputs[first] if first == name else None
    ndim = getattr(value, "ndim", None)
    if dims is None:
        found[name] = may if ndim is None else dict.fromkeys(range(ndim), may)
        return
    for word in dims.split(","):
        dim = int(word)
        if ndim is not None and not -ndim <= dim < ndim:
            raise Wrong(f"{option}: {name} has {ndim} dimensions, so there is no dimension {dim}",
                        2)
        found.setdefault(name, {})[dim % ndim if ndim else dim] = may


def _cannot(error: BaseException) -> Wrong:
    if isinstance(error, CaptureError):  # it names the line
        return Wrong(f"cannot capture it: {in_line(error)}")
    return Wrong(f"{place_of(error)}cannot capture it, the program fails: {why_of(error)}")


def _look_for(root: Any, inputs: dict[str, Any]) -> None:
    """Complains about inputs that are not there."""
    function = root.forward if isinstance(root, nn.Module) else root
    parameters = inspect.signature(function).parameters
    free = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for name in inputs:
        if name not in parameters and not free:
            raise Wrong(f"--input: there is no input '{name}' among ({', '.join(parameters)})"
                        f"{near(name, list(parameters))}", 2)  # fmt: skip
    missing = [name for name, p in parameters.items() if p.default is p.empty
               and name not in inputs and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if missing:
        raise Wrong(f"there is no example of '{missing[0]}'; give one: --input "
                    f"'{missing[0]}=float32[2, 3]'", 2)  # fmt: skip


def _run(function: Callable[..., Any], root: Any, inputs: dict[str, Any],
         **options: Any) -> Any:  # fmt: skip
    _look_for(root, inputs)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return function(root, **options, **inputs)
    except (Exception, SystemExit) as error:
        raise _cannot(error) from error


def capture(root: Any, inputs: dict[str, Any], options: argparse.Namespace) -> CapturedModule:
    return _run(capture_run, root, inputs, dynamic=sizes(options, inputs), modes=options.modes)


def report(root: Any, inputs: dict[str, Any], options: argparse.Namespace) -> str:
    return str(_run(explain, root, inputs, dynamic=sizes(options, inputs)))


def graph_of(module: CapturedModule) -> Any:
    """The graph that is written: it checks what was assumed."""
    if module._is_whole:
        return module.graph
    slots = [slot.path for slot in module._slots]
    if slots:
        raise Wrong(f"the program assigns attributes ({', '.join(slots)}), which files cannot "
                    "keep; make them buffers, or arguments and results")  # fmt: skip
    if len(module.graphs) > 1:
        raise Wrong("training and evaluation have different graphs; write one file for each: "
                    "--train, --eval")  # fmt: skip
    return graph_with_checks(module)


def flat(module: CapturedModule) -> Callable[[Any], Any] | None:
    """What the graph gives for a result of the program: its tensors and numbers, in order."""
    if module._is_whole:
        return None
    boundary = module._boundary

    def leaves(result: Any) -> tuple[Any, ...]:
        taken = Flattened()
        taken.tree(result, ("",))
        own = boundary.out[len(boundary.out) - len(taken.leaves) :]
        return tuple(leaf for leaf, (computed, _) in zip(taken.leaves, own) if computed)

    return leaves
