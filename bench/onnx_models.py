"""Writes models and programs as ONNX, runs them in ONNX Runtime and reads them back, against
torch.onnx.export.

    python bench/onnx_models.py [--alone] [--update] [--opset N] [--list] [LIST[:NAME] ...]

Lists: zoo (tests/zoo), programs (tests/python/programs), captures (tests/python/capture_programs),
libraries (a sample of tools/zoo_models: its packages, tools/zoo.txt, must be on PYTHONPATH).
Each is captured with its first inputs, written, checked (onnx.checker with its strict inference of
types and shapes) and run with those and all other inputs that the captured graph takes: in ONNX
Runtime, then read by cfx.onnx.load and by cfx.runtime.load. Results must agree with eager PyTorch
to 1e-4.

Beside it torch.onnx.export(dynamo=True) has the same programs, with their first inputs, in a
process of its own with LIMIT seconds for each; it needs onnxscript. --alone leaves it out.
--update writes the table of docs/onnx-writing.md.
"""
import argparse
import collections
import contextlib
import copy
import dataclasses
import io
import logging
import multiprocessing
import os
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / part) for part in ("python", "tests", "tests/python", "tools")]
import cfx  # noqa: E402
import cfx.onnx  # noqa: E402
import capture_programs  # noqa: E402
import programs  # noqa: E402
import zoo  # noqa: E402

PAGE = ROOT / "docs/onnx-writing.md"
CLOSE = 1e-4
LIMIT = 60  # seconds for one program in torch.onnx.export
SHARE = 6  # of the models of libraries, one in so many


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


def library_case(library, name):
    made = []  # once: building draws weights

    def case():
        if not made:
            torch.manual_seed(0)
            made.append(library.build(name))
            made[0].model.eval()
        return made[0]

    class Calls:
        """Two batches; the second has another length if the model takes any. Made when they are
        asked for, once: a call is known by its identity."""

        def __init__(self):
            self.made = []

        def __iter__(self):
            if not self.made:
                one = case()
                for batch, length in (2, one.length), (3, one.other_length or one.length):
                    torch.manual_seed(batch)
                    args, kwargs = one.inputs(batch, length)
                    self.made.append(programs.call(*args, **kwargs))
            return iter(self.made)

        def __getitem__(self, i):
            return list(self)[i]

    return Case(name, lambda: copy.deepcopy(case().model), Calls())


def sample_of_libraries():
    """Every SHARE-th model of each library that is there."""
    from zoo_models import LIBRARIES

    for title, library in LIBRARIES.items():
        if "decoding" in title:  # one call each
            continue
        try:
            library.load()
        except ImportError:
            continue
        for name in library.names()[::SHARE]:
            yield library_case(library, name)


def cases_of(which):
    if which == "libraries":
        return list(sample_of_libraries())
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


def copies(value):
    """The leaves as they are now."""
    return [x.detach().clone() if isinstance(x, torch.Tensor) else x for x in leaves(value)]


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


class Caller:
    """Calls a file as the captured module is called: between its arguments and results, those of
    the graph go to someone else. State begins anew each time."""

    def __init__(self, gm, ready):
        self.gm, self.ready = gm, ready
        self.nested = hasattr(gm.graph._codegen, "boundary")

    def __call__(self, call, compute):
        """`compute` takes inputs by name and gives the results of the file."""
        own = call.copy()
        if not self.nested:
            names = [str(n.target) for n in self.gm.graph.nodes if n.op == "placeholder"]
            return leaves(results_of(
                self.ready, compute({**dict(zip(names, own.args)), **own.kwargs}), names))
        from cfx.capturing.reduce import input_names
        home = copy.deepcopy(self.gm)
        codegen = home.graph._codegen
        names = input_names(codegen.boundary)
        inputs = codegen.inputs_for(home, *own.args, **own.kwargs)
        got = results_of(self.ready, compute(dict(zip(names, inputs))), names)
        last = list(home.graph.nodes)[-1].args[0]
        return leaves(codegen.outputs_for(home, tuple(None if one is None else got.pop(0)
                                                      for one in last)))


def results_of(ready, outputs, inputs):
    """Results without tensors of the model, which are to be given to the next run: the file lists
    them, and they are no inputs of the captured graph."""
    state = ready.get_modelmeta().custom_metadata_map.get("cfx.state", "").split("\n")
    kept = {f"{name}_next" for name in state if name not in inputs}
    return [value for out, value in zip(ready.get_outputs(), outputs) if out.name not in kept]


def run(ready, values):
    inputs = {i.name for i in ready.get_inputs()} | {
        i.name for i in ready.get_overridable_initializers()}
    feed = {name: array(value) for name, value in values.items() if name in inputs}
    return [tensors(out) for out in ready.run(None, feed)]


def tensors(value):
    """A result as tensors; a sequence is a list."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, list):
        return [tensors(one) for one in value]
    return torch.from_numpy(np.asarray(value))


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


@contextlib.contextmanager
def globals_kept(model):
    """Tensors among the globals of a program are as before afterwards."""
    around = sys.modules[getattr(model, "__module__", None) or "builtins"].__dict__
    before = {name: value.clone() for name, value in around.items()
              if isinstance(value, torch.Tensor)}
    try:
        yield
    finally:
        for name, value in before.items():
            around[name].copy_(value)


def eager(case, call):
    own = call.copy()
    model = case.make()
    with globals_kept(model):
        return copies(model(*own.args, **own.kwargs))


def expressible(case, call):
    """Whether the program gives the same for inputs as ONNX has them: plain tensors, each with
    memory of its own."""
    def plain(x):
        if not isinstance(x, torch.Tensor):
            return x
        return x.detach().clone().as_subclass(torch.Tensor).requires_grad_(x.requires_grad)

    args, kwargs = torch.utils._pytree.tree_map(plain, (call.args, call.kwargs))
    return not difference(eager(case, call), eager(case, dataclasses.replace(
        call, args=args, kwargs=kwargs)))


def alike(first, call):
    """Whether arguments have the same types and ranks, and texts are the same: an ONNX file is for
    one of each."""
    def kind(x):
        if isinstance(x, torch.Tensor):
            return x.dtype, x.dim()
        return x if isinstance(x, str) else type(x)

    def kinds(one):
        flat, spec = torch.utils._pytree.tree_flatten((one.args, one.kwargs))
        return [kind(x) for x in flat], spec

    return kinds(first) == kinds(call)


def calls_of(case, gm):
    """The calls that the captured graph takes: the first, and others."""
    for i, call in enumerate(case.calls):
        own = call.copy()
        try:
            with globals_kept(case.make()):
                taken = copies(gm(*own.args, **own.kwargs))
        except Exception:
            continue
        if i == 0 or (alike(case.calls[0], call)
                      and not difference(eager(case, call), taken)):
            yield call


# ---- what a program comes to --------------------------------------------------------------------


class Unsound(Exception):
    """A file was written that is not right, or that ONNX Runtime does not run."""


class Unread(Exception):
    """A file that is right, and cfx does not read it, or computes something else with it."""


def first_line(error):
    text = str(error).strip().split("\n")[0]
    return f"{type(error).__name__}: {text}"[:200]


@contextlib.contextmanager
def failing_as(kind):
    try:
        yield
    except (AssertionError, Outside):
        raise
    except Exception as error:
        raise kind(first_line(error)) from error


def agrees(case, call, caller, ready):
    """Whether ONNX Runtime gives the same; false if the call is not one that ONNX has."""
    wrong = difference(eager(case, call), caller(call, lambda values: run(ready, values)))
    if wrong and expressible(case, call):
        raise AssertionError(wrong)
    return not wrong


def check(path):
    """The checker's full check infers shapes without following the values of shapes."""
    onnx.checker.check_model(path, full_check=True)
    onnx.shape_inference.infer_shapes(onnx.load(path), check_type=True, strict_mode=True,
                                      data_prop=True)


def run_read(program, ready, values):
    """A file as cfx has read it: inputs in the order of the file."""
    inputs = [torch.from_numpy(array(values[i.name])) for i in ready.get_inputs()]
    got = program(*inputs)
    return [tensors(one) for one in ([got] if len(ready.get_outputs()) == 1 else got)]


def read_back(case, caller, path, ready, calls):
    """The calls in cfx: as a GraphModule, and in C."""
    gm, model = cfx.onnx.load(path), cfx.runtime.load(path)
    for call in calls:
        for program in (gm, model.session()):
            got = caller(call, lambda values: run_read(program, ready, values))
            wrong = difference(eager(case, call), got)
            if wrong:
                raise Unread(f"{type(program).__name__}: {wrong}")


def try_cfx(case, path, opset):
    with torch.no_grad():
        _, gm = capture(case)
        plain = not hasattr(gm.graph._codegen, "boundary")
        first = case.calls[0]
        if not eager(case, first):
            raise Outside("no results that are tensors or numbers")
        cfx.onnx.save(gm, path, opset=opset, **({"inputs": first.args} if plain else {}))
        fresh = copy.deepcopy(gm)  # running changes state
        calls = list(calls_of(case, gm))
        with failing_as(Unsound):
            check(path)
            ready = session(path)
            caller = Caller(fresh, ready)
            calls = [c for c in calls if agrees(case, c, caller, ready)]
            if not any(c is first for c in calls):
                raise Outside("inputs share memory or have operators of their own")
        with failing_as(Unread):
            read_back(case, caller, path, ready, calls)
    return len(calls) > 1


def judge(case, trial, opset):
    with tempfile.TemporaryDirectory() as folder:
        try:
            return "equal+" if trial(case, os.path.join(folder, "m.onnx"), opset) else "equal"
        except Outside as error:
            return f"outside {error}"
        except AssertionError as error:
            return f"wrong {error}"
        except Unsound as error:
            return f"unsound {error}"
        except Unread as error:
            return f"unread {error}"
        except cfx.onnx.ExportError as error:
            _, _, op, why = error.findings[0]
            return f"refused {op}: {why}"[:300]
        except Exception as error:
            return f"refused {first_line(error)}"


# ---- torch.onnx.export --------------------------------------------------------------------------


def as_module(model):
    if isinstance(model, torch.nn.Module):
        return model.eval()

    class Function(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return model(*args, **kwargs)

    return Function().eval()


def peer_results(program, path, call):
    """By its own way of calling, or what it says fails, with the inputs in order."""
    own = call.copy()
    with contextlib.suppress(Exception):
        yield leaves(program(*own.args, **own.kwargs))
    ready = session(path)
    names = [i.name for i in ready.get_inputs()]
    feed = dict(zip(names, map(array, leaves([own.args, own.kwargs]))))
    yield [torch.from_numpy(np.asarray(out)) for out in ready.run(None, feed)]


def try_torch(case, path, opset):
    first = case.calls[0].copy()
    with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
        program = torch.onnx.export(as_module(case.make()), first.args,
                                    kwargs=first.kwargs or None, dynamo=True,
                                    opset_version=opset, verbose=False, dynamic_shapes=None)
        program.save(path)
        want = eager(case, case.calls[0])
        wrong = ""
        for got in peer_results(program, path, case.calls[0]):
            wrong = difference(want, got)
            if not wrong:
                return False
    raise AssertionError(wrong)


def serve_peer(wire):
    """In a process of its own: answers names of programs with what they come to."""
    quiet()
    cases = {}
    while True:
        which, name, opset = wire.recv()
        if which not in cases:
            cases[which] = {c.name: c for c in cases_of(which)}
        found = judge(cases[which][name], try_torch, opset)
        wire.send((found, torch._C._functorch.peek_interpreter_stack() is None))


class Peer:
    """torch.onnx.export, with a limit for each program."""

    def __init__(self):
        self.process = None

    def begin(self, which, name, opset):
        """Asks for a program; the answer is `finish()`."""
        if self.process is None:
            self.wire, far = multiprocessing.Pipe()
            self.process = multiprocessing.get_context("spawn").Process(
                target=serve_peer, args=(far,), daemon=True)
            self.process.start()
            far.close()
        self.until = time.monotonic() + LIMIT
        with contextlib.suppress(OSError):
            self.wire.send((which, name, opset))

    def finish(self):
        try:
            if self.wire.poll(max(0, self.until - time.monotonic())):
                found, is_clean = self.wire.recv()
                if not is_clean:  # an export that failed inside vmap spoils those after it
                    self.stop()
                return found
            found = f"refused no end within {LIMIT} seconds"
        except (EOFError, OSError):
            found = "refused the process died"
        self.stop()
        return found

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


# ---- the table ----------------------------------------------------------------------------------


COLUMNS = ("list", "captured", "equal in ONNX Runtime", "and read back", "at other inputs, too",
           "wrong", "not right or not run", "refused", "torch.onnx.export")


def count(found, *starts):
    return sum(value.startswith(starts) for value in found.values())


def row(which, found, peer):
    inside = {name: value for name, value in found.items() if not value.startswith("outside")}
    cells = [which, len(inside), count(inside, "equal", "unread"), count(inside, "equal"),
             count(inside, "equal+"), count(inside, "wrong"), count(inside, "unsound"),
             count(inside, "refused"), count(peer, "equal") if peer else ""]
    return "| " + " | ".join(map(str, cells)) + " |"


def update(rows):
    text = PAGE.read_text()
    head = "| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|\n"
    table = f"<!-- models -->\n{head}" + "\n".join(rows) + "\n<!-- end -->"
    PAGE.write_text(re.sub(r"<!-- models -->.*?<!-- end -->", lambda _: table, text, flags=re.S))


def print_causes(found):
    """What is not equal, and the most frequent reasons."""
    for name, value in found.items():
        if not value.startswith(("equal", "outside capture")):
            print(f"    {name}: {value}")
    causes = collections.Counter(re.sub(r"'.*?'|\d+|/\S+/", "_", value)[:70]
                                 for value in found.values()
                                 if not value.startswith(("equal", "outside")))
    for value, times in causes.most_common(12):
        print(f"  {times:4} {value}")


def quiet():
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lists", nargs="*", default=["zoo", "programs", "captures"])
    parser.add_argument("--alone", action="store_true", help="without torch.onnx.export")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--list", action="store_true", help="print what is not equal")
    parser.add_argument("--opset", type=int, default=18)
    options = parser.parse_args()
    quiet()
    rows = []
    peer = Peer()
    for which in options.lists:
        which, _, wanted = which.partition(":")
        found, theirs = {}, {}
        for case in cases_of(which):
            if wanted not in case.name:
                continue
            if not options.alone:
                peer.begin(which, case.name, options.opset)
            found[case.name] = judge(case, try_cfx, options.opset)
            if not options.alone:
                theirs[case.name] = peer.finish()
        theirs = {name: value for name, value in theirs.items()
                  if not found[name].startswith("outside")}
        rows.append(row(which, found, theirs))
        print(rows[-1], flush=True)
        if options.list:
            print_causes(found)
            print("  torch.onnx.export:" if theirs else "")
            print_causes(theirs)
    peer.stop()
    if options.update:
        update(rows)


if __name__ == "__main__":
    main()
