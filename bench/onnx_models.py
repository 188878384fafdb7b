"""Writes models and programs as ONNX and runs them in ONNX Runtime, against torch.onnx.export.

    python bench/onnx_models.py [--peer LIST] [--update] [--opset N] [--list] [LIST[:NAME] ...]

Lists: zoo (tests/zoo), programs (tests/python/programs), captures (tests/python/capture_programs).
Each is captured with its first inputs, written, checked (onnx.checker, full) and run with those and
all other inputs that the captured graph takes; results must agree with eager PyTorch to 1e-4.
--peer tries torch.onnx.export(dynamo=True) on a list, with its first inputs; it needs onnxscript.
--update writes the table of docs/onnx-writing.md.
"""
import argparse
import collections
import contextlib
import copy
import io
import logging
import os
import re
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests"), str(ROOT / "tests/python")]
import cfx  # noqa: E402
import cfx.onnx  # noqa: E402
import capture_programs  # noqa: E402
import programs  # noqa: E402
import zoo  # noqa: E402

PAGE = ROOT / "docs/onnx-writing.md"
CLOSE = 1e-4


class Case:
    """A model and its calls; `make` gives a new one each time."""

    def __init__(self, name, make, calls):
        self.name, self.make, self.calls = name, make, calls


def zoo_case(name):
    def make():
        return zoo.make(name, small=True)[0]

    inputs = zoo.make(name, small=True)[1]
    more = tuple(torch.cat([x, x]) if isinstance(x, torch.Tensor) and x.dim() else x
                 for x in inputs)
    return Case(name, make, [programs.call(*inputs), programs.call(*more)])


def cases_of(which):
    if which == "zoo":
        return [zoo_case(name) for name in zoo.MODELS]
    found = programs.load_all() if which == "programs" else capture_programs.load_all()
    return [Case(f"{p.topic}.{p.name}", p.make,
                 [c for c in p.calls if c.raises is None and c.mode is None and c.within is None])
            for p in found if not p.train]  # fmt: skip


# ---- running ------------------------------------------------------------------------------------


def leaves(value):
    """Tensors and numbers in a structure, in order."""
    flat, _ = torch.utils._pytree.tree_flatten(value)
    found = []
    for one in flat:
        if isinstance(one, (torch.Tensor, bool, int, float)):
            found.append(one)
        elif hasattr(one, "__dict__"):
            found += leaves(list(vars(one).values()))
    return found


def array(value):
    if isinstance(value, torch.Tensor):
        return value.detach().numpy()
    return np.array(value, dtype=np.float64 if isinstance(value, float) else None)


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    # The higher levels of 1.31 give modules.SpectralNorm another result than onnx's own evaluator.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def feed_of(gm, args, kwargs):
    """The inputs of the graph by name."""
    codegen = gm.graph._codegen
    if hasattr(codegen, "boundary"):
        from cfx.capturing.reduce import input_names
        home = gm if codegen.boundary.slots else None
        return dict(zip(input_names(codegen.boundary),
                        codegen.inputs_for(home, *args, **kwargs)))
    names = [str(n.target) for n in gm.graph.nodes if n.op == "placeholder"]
    return {**dict(zip(names, args)), **kwargs}


def given(gm, call):
    """The inputs of a call by name; None if the graph does not take them."""
    own = call.copy()
    try:
        return feed_of(gm, own.args, own.kwargs)
    except Exception:
        return None


def run(ready, values):
    inputs = {i.name for i in ready.get_inputs()} | {
        i.name for i in ready.get_overridable_initializers()}
    feed = {name: array(value) for name, value in values.items() if name in inputs}
    return [torch.from_numpy(np.asarray(out)) for out in ready.run(None, feed)]


def results_of(gm, ready, outputs):
    """What the program returns, of what the graph does: without its state and its arguments."""
    codegen = gm.graph._codegen
    if not hasattr(codegen, "boundary"):
        return outputs
    if not codegen.boundary.slots:
        with contextlib.suppress(Exception):
            return leaves(codegen.process_outputs(tuple(outputs)))
    names = [out.name for out in ready.get_outputs()]
    return [out for name, out in zip(names, outputs) if name.startswith("result")]


def difference(want, got):
    if len(want) != len(got):
        return f"{len(got)} results, not {len(want)}"
    for one, other in zip(want, got):
        one = torch.as_tensor(one)
        other = torch.as_tensor(other)
        if one.shape != other.shape:
            return f"shape {tuple(other.shape)}, not {tuple(one.shape)}"
        if not torch.allclose(other.double() if not one.is_complex() else other,
                              one.double() if not one.is_complex() else one,
                              rtol=CLOSE, atol=CLOSE, equal_nan=True):  # fmt: skip
            return "other numbers"
    return ""


class Outside(Exception):
    """Not a matter of ONNX: the program cannot be captured, or has no tensors."""


def capture(case):
    model = case.make()
    if not case.calls:
        raise Outside("no calls without a mode")
    first = case.calls[0].copy()
    try:
        return model, cfx.capture(model, *first.args, **first.kwargs)
    except Exception as error:
        raise Outside(f"capture: {type(error).__name__}") from error


def eager(case, call):
    given = call.copy()
    return leaves(case.make()(*given.args, **given.kwargs))


def alike(first, call):
    """Whether arguments have the same types and ranks: an ONNX file is for one of each."""
    def kinds(one):
        flat, spec = torch.utils._pytree.tree_flatten((one.args, one.kwargs))
        return [(x.dtype, x.dim()) if isinstance(x, torch.Tensor) else type(x) for x in flat], spec

    return kinds(first) == kinds(call)


def calls_of(case, gm):
    """The calls that the captured graph takes: the first, and others."""
    for i, call in enumerate(case.calls):
        given = call.copy()
        try:
            taken = gm(*given.args, **given.kwargs)
        except Exception:
            continue
        if i == 0 or (alike(case.calls[0], call)
                      and not difference(eager(case, call), leaves(taken))):
            yield call


def try_cfx(case, path, opset):
    with torch.no_grad():
        _, gm = capture(case)
        plain = not hasattr(gm.graph._codegen, "boundary")
        first = case.calls[0]
        if not eager(case, first):
            raise Outside("no results that are tensors or numbers")
        cfx.onnx.save(gm, path, opset=opset, **({"inputs": first.args} if plain else {}))
        feeds = {id(c): given(gm, c) for c in case.calls}  # now: running changes state
        calls = list(calls_of(case, gm))
        onnx.checker.check_model(path, full_check=True)
        ready = session(path)
        for call in calls:
            feed = feeds[id(call)] or given(gm, call)
            wrong = difference(eager(case, call), results_of(gm, ready, run(ready, feed)))
            if wrong:
                raise AssertionError(wrong)
    return len(calls) > 1


def try_torch(case, path, opset):
    model = case.make()
    if not isinstance(model, torch.nn.Module):
        function = model

        class Function(torch.nn.Module):
            def forward(self, *args, **kwargs):
                return function(*args, **kwargs)

        model = Function()
    first = case.calls[0].copy()
    with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
        program = torch.onnx.export(model.eval(), first.args, kwargs=first.kwargs or None,
                                    dynamo=True, opset_version=opset, verbose=False,
                                    dynamic_shapes=None)
        program.save(path)
        ready = session(path)
        names = [i.name for i in ready.get_inputs()]
        given = case.calls[0].copy()
        feed = dict(zip(names, map(array, leaves([given.args, given.kwargs]))))
        got = [torch.from_numpy(np.asarray(out)) for out in ready.run(None, feed)]
    wrong = difference(eager(case, case.calls[0]), got)
    if wrong:
        raise AssertionError(wrong)
    return False


def cause(error):
    if isinstance(error, cfx.onnx.ExportError):
        _, _, op, why = error.findings[0]
        return f"{op}: {why}"[:150]
    text = str(error).strip().split("\n")[0]
    return f"{type(error).__name__}: {text}"[:200]


def judge(case, trial, opset):
    with tempfile.TemporaryDirectory() as folder:
        try:
            return "equal+" if trial(case, os.path.join(folder, "m.onnx"), opset) else "equal"
        except Outside as error:
            return f"outside {error}"
        except AssertionError as error:
            return f"wrong {error}"
        except Exception as error:
            return f"refused {cause(error)}"


# ---- the table ----------------------------------------------------------------------------------


def count(found, *starts):
    return sum(value.startswith(starts) for value in found.values())


def row(which, found, peer):
    inside = len(found) - count(found, "outside")
    cells = [which, inside, count(found, "equal"), count(found, "equal+"), count(found, "wrong"),
             count(found, "refused")]
    cells.append("" if peer is None else count(
        {name: value for name, value in peer.items() if not found[name].startswith("outside")},
        "equal"))
    return "| " + " | ".join(map(str, cells)) + " |"


def update(rows):
    text = PAGE.read_text()
    head = ("| list | captured | equal in ONNX Runtime | at other inputs, too | wrong | refused | "
            "torch.onnx.export |\n|---|---|---|---|---|---|---|\n")
    table = f"<!-- models -->\n{head}" + "\n".join(rows) + "\n<!-- end -->"
    PAGE.write_text(re.sub(r"<!-- models -->.*?<!-- end -->", lambda _: table, text, flags=re.S))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lists", nargs="*", default=["zoo", "programs", "captures"])
    parser.add_argument("--peer", action="append", default=[], metavar="LIST",
                        help="try torch.onnx.export on this list, too")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--list", action="store_true", help="print what is not equal")
    parser.add_argument("--opset", type=int, default=18)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    rows = []
    for which in options.lists:
        which, _, wanted = which.partition(":")
        cases = [c for c in cases_of(which) if wanted in c.name]
        found = {c.name: judge(c, try_cfx, options.opset) for c in cases}
        peer = None
        if which in options.peer:
            peer = {c.name: judge(c, try_torch, options.opset) for c in cases
                    if not found[c.name].startswith("outside")}  # fmt: skip
        rows.append(row(which, found, peer))
        print(rows[-1], flush=True)
        for name, value in found.items() if options.list else ():
            if not value.startswith(("equal", "outside")):
                print(f"    {name}: {value}")
        causes = collections.Counter(re.sub(r"'.*?'|\d+", "_", value)[:70]
                                     for value in found.values() if value.startswith("refused"))
        for value, times in causes.most_common(12) if options.list else ():
            print(f"  {times:4} {value}")
    if options.update:
        update(rows)


if __name__ == "__main__":
    main()
