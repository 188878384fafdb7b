"""The programs captured by `cfx script`, which has no Python: each is refused with a line of its
own, or its graph does what eager PyTorch does."""
import os
import subprocess
import tempfile
import warnings
from pathlib import Path

import cfx
import numpy as np
import torch
from torch import nn

from . import load_one, source_of
from .check import differs, line_of, sequence

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
LIMIT = 30  # seconds for one capture
# What has no Python has no gradients either.
SETTINGS = {True: ((True, False, 3),), False: ((False, False, 3),)}


def script(key, folder, *options):
    """Runs the command on the program."""
    theme, _, name = key.partition(".")
    file = Path(folder) / f"{theme}.py"
    file.write_text(source_of(key))
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    return subprocess.run(
        [str(BUILD / "cfx"), "script", "--function", name, "--weights", f"{folder}/w.npz", "-o",
         f"{folder}/g.ir", *options, str(file)], capture_output=True, text=True, timeout=LIMIT,
        env=environment)


def root_of(folder, like, training):
    """A module with the weights that the command wrote, by the names and kinds of `like`."""
    root = nn.Module()
    parameters = dict(like.named_parameters()) if isinstance(like, nn.Module) else {}
    file = Path(folder) / "w.npz"
    arrays = np.load(file) if file.exists() else {}
    for path in arrays:
        *parents, last = path.split(".")
        at = root
        for parent in parents:
            if not hasattr(at, parent):
                at.add_module(parent, nn.Module())
            at = getattr(at, parent)
        tensor = torch.from_numpy(arrays[path].copy())
        if path in parameters:
            at.register_parameter(last, nn.Parameter(tensor, parameters[path].requires_grad))
        else:
            at.register_buffer(last, tensor)
    return root.train(training)


def take_weights(made, root):
    """The eager module starts with what the command drew."""
    if isinstance(made, nn.Module):
        theirs = dict(root.named_parameters()) | dict(root.named_buffers())
        with torch.no_grad():
            for name, held in [*made.named_parameters(), *made.named_buffers()]:
                if name in theirs and theirs[name].shape == held.shape:
                    held.copy_(theirs[name])


def lowered(module):
    with torch.no_grad():
        return cfx.lower(module)


# The rows of the operator table one by one, from Python; and the program in C as a whole.
WAYS = {"": lambda module: module, "in C, ": lowered}


def check_mode(key, training):
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = script(key, folder, *(() if training else ("--eval",)))
        except subprocess.TimeoutExpired:
            return "wrong", "the capture does not end"
        program = load_one(key)
        if done.returncode < 0:
            return "wrong", f"ends with signal {-done.returncode}"
        if done.returncode:
            named = line_of(done.stderr, program)
            said = done.stderr.strip().split("\n")[0]
            return ("refused" if named else "wrong"), said
        made = program.make()
        graph = cfx.parse((Path(folder) / "g.ir").read_text())
        modules = [cfx.GraphModule(root_of(folder, made, training), graph) for _ in WAYS]
        take_weights(made, modules[0])
    calls = SETTINGS[training]
    want = list(sequence(made, made, program.inputs, None, calls))
    drew = any(seen.drew for _, seen in want)
    for (way, callee_of), module in zip(WAYS.items(), modules):
        try:
            callee = callee_of(module.train(training))
        except Exception as e:
            return ("refused" if line_of(e, program) else "wrong"), f"{way}{e}"
        got = sequence(callee, module, program.inputs, None, calls)
        for (label, a), (_, b) in zip(want, got):
            if found := disagreement(a, b, drew, bool(way)):
                return "wrong", f"{way}{label}: {found}"
    return "equal", "equal"


# ---- comparing: other kernels, other random numbers, integers of 64 bits -------------------------


def blank(x):
    """A picture of it without its numbers."""
    if isinstance(x, (bool, int, float)):
        return type(x).__name__
    if isinstance(x, torch.Tensor):
        return torch.zeros_like(x, requires_grad=False)
    if isinstance(x, (tuple, list)):
        return type(x)(blank(part) for part in x)
    return {k: blank(v) for k, v in x.items()} if isinstance(x, dict) else x


def classes_of_tuples(x):
    """The names of classes derived from tuple in a result."""
    found = set()
    if isinstance(x, (tuple, list, dict)):
        found = {type(x).__name__} if isinstance(x, tuple) and type(x) is not tuple else set()
        for part in x.values() if isinstance(x, dict) else x:
            found |= classes_of_tuples(part)
    return found


def as_tuples(picture, classes):
    """The picture of a result as the runtime in C has it. The graph is a text, which cannot hold a
    class of the program: a named tuple comes out as a tuple (docs/capture.md says so), and the
    sizes of a tensor that is not torch's do, too. Inside the program they are what they are."""
    inner = lambda part: as_tuples(part, classes)  # noqa: E731
    if isinstance(picture, tuple) and picture and picture[0] in classes:
        return "tuple", inner(picture[1])
    if isinstance(picture, (tuple, list)):
        return type(picture)(map(inner, picture))
    return {k: inner(v) for k, v in picture.items()} if isinstance(picture, dict) else picture


def disagreement(want, got, drew, in_c):
    """How two calls differ, or "". Random numbers are others, where eager PyTorch drew any. The
    runtime in C has integers of 64 bits, and says where they do not suffice; all that it has of an
    exception is a text with its class."""
    if got.error is not None and "64" in str(got.error) and "bit" in str(got.error):
        return ""
    if want.pictures["printed"] and "a tensor cannot be converted to text" in str(got.error):
        return ""  # refused when it is run: an input may be a number or a tensor
    if want.error is not None or got.error is not None:
        fits = set(type(want.error).__mro__) - {Exception, BaseException, object}
        same = type(got.error) in fits or (
            in_c and type(got.error) is RuntimeError and want.error is not None
            and f"{type(want.error).__name__}: " in str(got.error))
        return "" if same else f"raises {got.error!r:.200}, not {want.error!r:.200}"
    change = blank if drew else lambda x: x
    classes = classes_of_tuples(want.value)
    for seen in (want, got):
        seen.pictures["result"] = as_tuples(seen.pictures["result"], classes)
    for what in ("result", "arguments afterwards", "modes afterwards", "printed"):
        found = differs(change(want.pictures[what]), change(got.pictures[what]), what, exact=False)
        if found:
            return found
    for name in want.state.keys() & got.state.keys():
        if name.endswith("training"):
            continue
        found = differs(change(want.state[name]), change(got.state[name]), f"state: {name}",
                        exact=False)
        if found:
            return found
    return ""


def check(key: str) -> tuple[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for training in (True, False):
            status, words = check_mode(key, training)
            if status != "equal":
                break
        return status, words
