"""`python -m cfx trace` and `python -m cfx capture`: turn a module into a graph, write files, and
compare them with the module."""
import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from .. import package, weights
from ..text import text
from ..graph_module import GraphModule
from . import compare as comparing
from .capture import all_tensors, capture, from_source, lower
from .errors import Wrong, in_line
from .target import find, fixed_inputs, load, make

# ---- files -------------------------------------------------------------------------------------


class Written(NamedTuple):
    """A graph as text, and the tensors that it reads."""

    nodes: Any
    text: str
    tensors: dict[str, Any]


def _count(things: Any, word: str) -> str:
    return f"{len(things)} {word}{'s' * (len(things) != 1)}"


@contextlib.contextmanager
def _replaced(files: dict[str, Callable[[str], None]]) -> Iterator[dict[str, str]]:
    """Writes files beside those of these names, whose places they take at the end, all or none.
    They have the same extensions, which select their formats."""
    new = {path: f"{path}.{os.getpid()}.new{os.path.splitext(path)[1]}" for path in files}
    try:
        for path, write in files.items():
            if os.path.isdir(path):
                raise Wrong(f"cannot write '{path}': it is a folder")
            try:
                write(new[path])
            except OSError as error:
                why = error.strerror or in_line(error)
                raise Wrong(f"cannot write '{path}': {why.rpartition(': ')[2]}") from error
            except (TypeError, ValueError, NotImplementedError) as error:
                raise Wrong(f"cannot write '{path}': {in_line(error)}") from error
        yield new
        for path in files:
            os.replace(new[path], path)
    finally:
        for path in new.values():
            with contextlib.suppress(OSError):
                os.unlink(path)


def _weights_file(options: argparse.Namespace, tensors: dict[str, Any]) -> str | None:
    if options.no_weights:
        return None
    if options.weights:
        return options.weights
    if options.output and tensors:
        return os.path.splitext(options.output)[0] + ".safetensors"
    if tensors:
        print(f"cfx {options.verb}: the graph reads {_count(tensors, 'tensor')}; --weights FILE "
              "writes them", file=sys.stderr)
    return None


def _save(written: Written, options: argparse.Namespace,
          compare: Callable[[str, dict[str, Any]], bool]) -> bool:
    """Writes the files, and compares what stands in them."""
    files: dict[str, Callable[[str], None]] = {}
    path = _weights_file(options, written.tensors)
    if options.output:
        files[options.output] = lambda new: _write_text(new, written.text)
    if path:
        files[path] = lambda new: weights.save_weights(written.tensors, new)
    with _replaced(files) as new:
        source, tensors = written.text, written.tensors
        if options.output:
            source = Path(new[options.output]).read_text(encoding="utf-8")
        if path:
            tensors = weights.load_tensors(new[path])
        agrees = compare(source, tensors)
    if not options.output:
        sys.stdout.write(written.text)
        sys.stdout.flush()
    else:
        rest = f", {path}: {_count(written.tensors, 'tensor')}" if path else ""
        print(f"{options.output}: {_count(written.nodes, 'node')}{rest}", file=sys.stderr)
    return agrees


def _is_package(options: argparse.Namespace) -> bool:
    """Whether the output is one file with everything."""
    return bool(options.output) and options.output.endswith(weights.extensions("a model"))


def _save_package(module: GraphModule, options: argparse.Namespace,
                  compare: Callable[[], bool]) -> bool:
    """Writes the graph, the layers and the weights as one file."""
    path = options.output
    kept = not options.no_weights
    with _replaced({path: lambda new: package.save(module, new, weights=kept)}):
        agrees = compare()
    nodes = _count(module.graph.nodes, "node")
    print(f"{path}: {nodes}{'' if kept else ', without weights'}", file=sys.stderr)
    return agrees


def _write_text(path: str, source: str) -> None:
    with open(path, "x", encoding="utf-8") as f:
        f.write(source)


# ---- the verb ----------------------------------------------------------------------------------


def _usage(options: argparse.Namespace) -> None:
    if options.output == "-":
        options.output = None
    if options.weights and options.weights == options.output:
        raise Wrong("--weights and --output name the same file", 2)
    if options.weights and options.no_weights:
        raise Wrong("--weights and --no-weights cannot be used together", 2)
    if options.output and options.output.endswith(
            weights.extensions("named tensors") + weights.extensions("one tensor")):
        raise Wrong(f"--output is for the IR text, not for a {Path(options.output).suffix} file; "
                    "name the file for the tensors with --weights", 2)
    if _is_package(options) and options.weights:
        raise Wrong(f"{options.output} holds the weights, too; leave out --weights", 2)
    if options.check and not options.lower:
        raise Wrong("--check runs the graph in C, so it cannot be used with --no-lower", 2)


def _made(options: argparse.Namespace) -> Any:
    """The module or function of the command line."""
    torch.manual_seed(options.seed)
    root = make(find(options.target), options.target, options.arg)
    if isinstance(root, nn.Module):
        root.train(options.train)
    if options.checkpoint:
        load(root, options.checkpoint)
    return root


def _written(module: GraphModule, options: argparse.Namespace) -> Written:
    if options.lower:
        lowered = lower(module)
        graph, tensors = lowered.graph, dict(lowered.state)
    else:
        graph, tensors = module.graph, all_tensors(module)
    return Written(graph.nodes, text(graph), tensors)


def _end(module: GraphModule, plain: GraphModule, options: argparse.Namespace,
         compare: Callable[[str, dict[str, Any]], bool]) -> int:
    """Writes the module in the form that was asked for; `plain` is what IR text holds of it."""
    if not _is_package(options):
        return 0 if _save(_written(plain, options), options, compare) else 1

    def compare_now() -> bool:
        if not options.check:
            return True
        written = _written(plain, options)
        return compare(written.text, written.tensors)

    return 0 if _save_package(module, options, compare_now) else 1


def _trace(options: argparse.Namespace) -> int:
    _usage(options)
    fixed = fixed_inputs(options.concrete)
    given = comparing.parse(options.check)
    root = _made(options)
    module = (from_source if options.script else capture)(root, fixed, options.leaf)

    def compare(source: str, tensors: dict[str, Any]) -> bool:
        if not given:
            return True
        inputs = comparing.make(given, options.seed)
        return comparing.compare(root, fixed, inputs, source, tensors)

    return _end(module, module, options, compare)


def _capture(options: argparse.Namespace) -> int:
    from . import examples

    _usage(options)
    if options.modes == "both" and options.lower:
        raise Wrong("--modes both writes the flags of modules, which only Python has: use "
                    "--no-lower, or write a file for each mode: --train, --eval", 2)
    given = comparing.parse(options.input, "--input")
    others = comparing.parse(options.check)
    root = _made(options)
    inputs = comparing.make(given, options.seed, "--input")
    if options.explain:
        report = examples.report(root, inputs, options)
        print(report, file=sys.stderr if options.output else sys.stdout)
        if not options.output:
            return 0
    module = examples.capture(root, inputs, options)
    plain = GraphModule(module, examples.graph_of(module))  # without the program's structures

    def compare(source: str, tensors: dict[str, Any]) -> bool:
        if not others:
            return True
        new = comparing.make(others, options.seed)
        fixed = {name: value for name, value in inputs.items() if name not in new}
        return comparing.compare(root, fixed, new, source, tensors, examples.flat(module))

    return _end(module, plain, options, compare)


_VERBS = {"trace": _trace, "capture": _capture}


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns what the command exits with."""
    try:
        return _VERBS[options.verb](options)
    except Wrong as wrong:
        if options.traceback:
            traceback.print_exception(wrong)
        else:
            print(f"cfx {options.verb}: {wrong}", file=sys.stderr)
        return wrong.code
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
