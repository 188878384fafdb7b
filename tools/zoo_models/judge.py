"""Tries one model: captured by a tool, does it give what the model gives?

`judge(case, tool)` returns a dict. Each column is "ok", "" (does not apply: the model itself does
not take such inputs), or a dict that says what went wrong:

    capture   the example is captured                    seconds, nodes: of the capture
    data      other data of the example's size
    batch     another number of rows; `one`: a single row
    length    another length of sequences, or size of images
    values    inputs that differ in kind, such as a batch of texts without padding
    recapture where a guard ends one of the calls above: right with recapture=True, which captures
              another graph for such inputs
    train     after .train(), with the same random numbers; and after .eval() again
    lower     cfx.lower takes the graph                  missing: {operator: nodes} otherwise
    c         the lowered graph gives the same; `c_sizes`: wherever the captured one does
    file      saved and loaded by cfx, without classes of the model's library: the same graphs, the
              same bytes when it is saved again, the same results
    file_c    cfx.runtime, from that file, gives the same: of models that can be lowered
"""
import collections
import copy
import dataclasses
import inspect
import linecache
import re
import sys
import tempfile
import time
import traceback
from pathlib import Path

import torch

BATCH, OTHER_BATCH = 2, 3
SAME, SAME_IN_C = 1e-5, 1e-3  # differences relative to the largest element
SIZES = ("batch", "one", "length")


# ---- results ------------------------------------------------------------------------------------


def leaves(value, path="", seen=()):
    """(path, leaf) of everything in a result; objects that are not containers are looked into."""
    if isinstance(value, collections.abc.Mapping):
        parts = [(f"[{key!r}]", item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = [(f"[{i}]", item) for i, item in enumerate(value)]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        parts = [(f".{field.name}", getattr(value, field.name)) for field in fields]
    elif hasattr(value, "__dict__") and not isinstance(value, torch.Tensor) and not callable(value):
        parts = [(f".{name}", item) for name, item in vars(value).items() if not callable(item)]
    else:
        return [(path, value)]
    if id(value) in seen or len(seen) > 20:
        return []
    seen = (*seen, id(value))
    return [leaf for name, part in parts for leaf in leaves(part, path + name, seen)]


def tensors(value):
    return [leaf for _, leaf in leaves(value) if isinstance(leaf, torch.Tensor)]


def distance(expected, found):
    """The largest difference of the finite elements, relative to the largest element."""
    where = expected.isfinite()
    if not where.any():
        return 0.0
    wide = torch.complex128 if expected.is_complex() else torch.float64
    expected, found = (t[where].detach().to(wide) for t in (expected, found))
    error, scale = (expected - found).abs().max().item(), expected.abs().max().item()
    return error / scale if scale else error


def difference(expected, found, tolerance):
    """What differs between two tensors, or None."""
    if type(found) not in (torch.Tensor, torch.nn.Parameter):
        return f"a {type(found).__name__} instead of a tensor"
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return (f"{found.dtype} of shape {tuple(found.shape)} instead of "
                f"{expected.dtype} of shape {tuple(expected.shape)}")
    if not expected.numel():
        return None
    if not expected.is_floating_point() and not expected.is_complex():
        wrong = (expected != found).double().mean().item()
        return f"{wrong:.0%} of the elements differ" if wrong else None
    infinite = ~expected.isfinite()
    if not torch.allclose(expected[infinite], found[infinite], equal_nan=True):
        return "infinite elements or nan differ"
    far = distance(expected, found)
    close = far <= tolerance  # nan is wrong
    return None if close else f"differs by {far:.1e} of the largest element"


def compare(expected, found, tolerance, structure=True):
    """What differs between two results, or None."""
    if not structure:  # a tool that gives back lists for objects
        expected, found = ([(f"[{i}]", t) for i, t in enumerate(tensors(value))]
                           for value in (expected, found))  # fmt: skip
    else:
        expected, found = leaves(expected), leaves(found)
    if [path for path, _ in expected] != [path for path, _ in found]:
        ours, theirs = dict(found), dict(expected)
        lost = [p for p in theirs if p not in ours] + [p for p in ours if p not in theirs]
        return f"results are nested otherwise: {', '.join(lost[:3])}"
    for (path, left), (_, right) in zip(expected, found):
        if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
            wrong = difference(left, right, tolerance)
        else:
            wrong = None if type(left) is type(right) and left == right else (
                f"{right!r:.60} instead of {left!r:.60}")  # fmt: skip
        if wrong:
            return f"result{path}: {wrong}"
    return None


# ---- reasons ------------------------------------------------------------------------------------


def said(text):
    """The lines that a message of cfx names: [(file, line)]."""
    files = [getattr(module, "__file__", None) or "" for module in sys.modules.values()]
    return [(file, int(line)) for name, line in re.findall(r"\b(\w+\.py):(\d+)", text[:300])
            for file in files if file.endswith(f"/{name}")][:1]


def reason(error):
    """Why something failed: the error, and the last line that is neither torch's nor ours."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [f for f in frames if not re.search(r"/torch/|/cfx/|/zoo_models/|<eval_with|<string>",
                                                  f.filename)]  # fmt: skip
    text = str(error).strip() or type(error).__name__
    found = {"error": type(error).__name__, "text": text[:600]}
    if any(kind.__name__ == "CaptureError" for kind in type(error).__mro__):
        found["refused"] = True  # the graph does not hold, and says so
    places = [(frame.filename, frame.lineno) for frame in outside[-1:]] + said(text)
    if places:
        file, line = places[-1]
        found["line"] = f"{file.rpartition('site-packages/')[2]}:{line}"
        found["code"] = linecache.getline(file, line).strip()
    if frames:
        found["raised"] = f"{frames[-1].filename.rpartition('site-packages/')[2]}:" + str(
            frames[-1].lineno)
    return found


# ---- runs ---------------------------------------------------------------------------------------


def stir(model):
    """Weights that were never set, or are all the same (zeros of a layer scale), would hide
    differences: they get random numbers."""
    with torch.no_grad():
        for tensor in model.parameters():
            if not tensor.is_floating_point() or not tensor.numel():
                continue
            if not tensor.isfinite().all() or tensor.abs().max() > 1e4:
                tensor.normal_(0, 0.02)
            elif (tensor == tensor.flatten()[0]).all():
                tensor.add_(torch.randn_like(tensor), alpha=0.1)


def strengthen(model):
    """Weights that keep the size of what they multiply. For models in which the input fades."""
    with torch.no_grad():
        for tensor in model.parameters():
            if tensor.is_floating_point() and tensor.dim() > 1:
                tensor.normal_(0, (2 / tensor[0].numel()) ** 0.5)


def copied(value, dtype=None):
    """A copy of inputs or results without gradients; numbers with a fraction in another dtype."""
    return copy.deepcopy(value, {
        id(t): t.detach().to(dtype if t.is_floating_point() else None, copy=True)
        for t in tensors(value)})


def play(function, inputs, case, seed=1, steps=3):
    """The results of a model for inputs, which stay as they are; three for one with steps."""
    torch.manual_seed(seed)
    args, kwargs = copied(inputs)
    results = []
    for _ in range(steps if case.following else 1):
        results.append(copied(function(*args, **kwargs)))
        if case.following:
            args, kwargs = case.following((args, kwargs), results[-1])
    return results


class Inputs:
    """The inputs of a case by column, with what the model gives for them."""

    def __init__(self, case):
        self.case = case
        batch = BATCH
        torch.manual_seed(0)
        self.example = case.inputs(batch, case.length)
        wanted = {"data": (batch, case.length), "batch": (OTHER_BATCH, case.length),
                  "one": (1, case.length), "length": (batch, case.other_length),
                  "values": (batch, case.length)}  # fmt: skip
        unknown = {"length": not case.other_length, "values": not case.variant}
        self.given, self.expected = {}, {}
        for column, sizes in wanted.items():
            if unknown.get(column):
                continue
            try:
                inputs = (case.variant if column == "values" else case.inputs)(*sizes)
                self.expected[column] = play(case.model, inputs, case)
                self.given[column] = inputs
            except Exception:
                if column == "data":
                    raise

    def notes(self):
        """What makes a comparison weak."""
        expected = self.expected["data"]
        again = play(self.case.model, self.given["data"], self.case)
        if compare(expected, again, SAME):
            return "the model does not give the same twice"
        floats = [t for t in tensors(expected) if t.is_floating_point()]
        if any(not t.isfinite().any() for t in floats if t.numel()):
            return "a result is nan"
        example = play(self.case.model, self.example, self.case)
        if not compare(expected, example, SAME_IN_C):
            return "results do not depend on the data"
        return ""

    def random(self):
        """Whether results depend on random numbers: those of C are others."""
        again = play(self.case.model, self.given["data"], self.case, seed=2)
        return compare(self.expected["data"], again, SAME) is not None

    def rounding(self, column):
        """How far the model is from itself in double precision. Some models amplify rounding: C,
        which adds in another order, cannot be asked to be nearer."""
        try:
            exact = copy.deepcopy(self.case.model).double()
            found = play(exact, copied(self.given[column], torch.float64), self.case)
        except Exception:
            return 0.0
        pairs = zip(tensors(self.expected[column]), tensors(found))
        return max((distance(b, a) for a, b in pairs if a.is_floating_point()), default=0.0)

    def check(self, column, function, tolerance, structure=True):
        if column not in self.given:
            return ""
        try:
            found = play(function, self.given[column], self.case)
        except Exception as error:
            return reason(error)
        wrong = compare(self.expected[column], found, tolerance, structure)
        if wrong and tolerance == SAME_IN_C:
            tolerance = max(tolerance, 4 * self.rounding(column))
            wrong = compare(self.expected[column], found, tolerance, structure)
        return {"error": "differs", "text": wrong, "at": column} if wrong else "ok"


# ---- tools --------------------------------------------------------------------------------------


def by_cfx(model, args, kwargs):
    import cfx

    gm = cfx.capture(model, *args, **kwargs)
    return gm, len(gm.graph.nodes)


def by_export(model, args, kwargs):
    auto = torch.export.Dim.AUTO
    bound = inspect.signature(model.forward).bind(*args, **kwargs).arguments
    shapes = torch.utils._pytree.tree_map(
        lambda t: {i: auto for i in range(t.dim())} if isinstance(t, torch.Tensor) else None,
        dict(bound))
    program = torch.export.export(model, args, kwargs, dynamic_shapes=shapes, strict=False)
    return program.module(), len(program.graph.nodes)


def by_trace(model, args, kwargs):
    given = {"example_kwarg_inputs": kwargs} if kwargs else {"example_inputs": args}
    if args and kwargs:
        bound = inspect.signature(model.forward).bind(*args, **kwargs).arguments
        given = {"example_kwarg_inputs": dict(bound)}
    given = {key: {n: v for n, v in value.items() if isinstance(v, torch.Tensor)}
             if isinstance(value, dict) else value for key, value in given.items()}  # fmt: skip
    traced = torch.jit.trace(model, **given, check_trace=False, strict=False)
    return traced, sum(1 for _ in traced.inlined_graph.nodes())


TOOLS = {"cfx": by_cfx, "torch.export": by_export, "torch.jit.trace": by_trace}


def check_mode(case, module, train):
    """Whether a captured module gives what the model gives in a mode, and leaves the same in its
    buffers; "" if the model itself fails in this mode."""
    torch.manual_seed(3)
    case.model.eval()  # the inputs may be what the model gives for others, as a cache is
    given = case.inputs(BATCH, case.length)
    buffers = list(case.model.buffers())
    before = [buffer.clone() for buffer in buffers]
    found = []
    for function in (case.model, module):
        try:
            function.train(train)
            found.append([play(function, given, case), [buffer.clone() for buffer in buffers]])
        except Exception as error:
            return reason(error) if found else ""
        finally:
            with torch.no_grad():
                for buffer, old in zip(buffers, before):
                    buffer.copy_(old)
    wrong = compare(*found, SAME)
    return {"error": "differs", "text": f"train={train}: {wrong}"} if wrong else "ok"


def check_modes(case, module):
    """Whether a captured module follows train(), and then eval()."""
    try:
        found = check_mode(case, module, True)
        return check_mode(case, module, False) if found == "ok" else found
    finally:
        case.model.eval()  # for the tools that come after


def operator(why):
    """The operator that a finding of cfx.lower is about, and what is the matter with it."""
    text = re.sub(r"^\S+:\d+: ", "", why.splitlines()[0])
    called, _, rest = text.partition("(")
    hooks = re.search(r"the module '\S+' (has hooks.*?), so", text)
    if hooks:  # whichever it is
        return f"a layer: {hooks[1]}"
    if "." in called and not called.startswith(("torch.", "operator.", "cfx.", "os.")):
        called = f"Tensor.{called.rpartition('.')[2]}"
    matter = re.sub(r" \(node %\w+\)$", "", rest.rpartition("): ")[2])
    return f"{called}: not in the table" if "operator table" in matter else f"{called}: {matter}"


def check_c(case, inputs, module, save):
    """Columns of the lowered graph; at sizes at which the captured one is right."""
    import cfx

    try:
        lowered = cfx.lower(module)
    except cfx.LowerError as error:
        missing = collections.Counter(operator(found.why) for found in error.findings)
        return save({"lower": reason(error), "missing": dict(missing), "c": "", "c_sizes": ""})
    except Exception as error:
        return save({"lower": reason(error), "c": "", "c_sizes": ""})
    signature = inspect.signature(case.model.forward)

    def run(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return lowered(*bound.args, **bound.kwargs)

    columns = save({"lower": "ok"})
    if inputs.random():
        return save({"c": "", "c_sizes": ""})
    save({"c": inputs.check("data", run, SAME_IN_C)})
    sizes = [inputs.check(column, run, SAME_IN_C) for column in SIZES if columns[column] == "ok"]
    wrong = [result for result in sizes if isinstance(result, dict)]
    save({"c_sizes": wrong[0] if wrong else "ok" if "ok" in sizes else ""})


def loaded(module, folder):
    """A captured module after a way through a file, and that file; ValueError for what it loses."""
    import cfx

    first, second = folder / "model.cfx", folder / "again.cfx"
    cfx.save(module, first)
    back = cfx.load(first, verify=True)
    if [cfx.text(g) for g in back.graphs] != [cfx.text(g) for g in module.graphs]:
        raise ValueError("the graph has another text")
    if back.guards != module.guards:
        raise ValueError("the guards differ")
    cfx.save(back, second)
    if first.read_bytes() != second.read_bytes():
        raise ValueError("the file has other bytes when it is saved again")
    return back, first


def check_file(inputs, module, save, in_c):
    """Columns of the file."""
    import cfx

    with tempfile.TemporaryDirectory() as folder:
        try:
            back, file = loaded(module, Path(folder))
        except Exception as error:
            return save({"file": reason(error), "file_c": ""})
        save({"file": inputs.check("data", back, SAME)})
        try:
            run = cfx.runtime.load(file, threads=1) if in_c else None
        except Exception as error:
            return save({"file_c": reason(error)})
        save({"file_c": inputs.check("data", run, SAME_IN_C) if in_c else ""})


def check_recapture(case, inputs, columns):
    """Whether a model is right at the sizes at which its graph refuses to run, if it may be
    captured again there; "" if it nowhere refuses. A graph that is wrong does not count."""
    import cfx

    wrong = {name: columns[name] for name in ("data", *SIZES) if isinstance(columns[name], dict)}
    if not wrong:
        return ""
    for found in wrong.values():
        if not found.get("refused"):
            return found
    args, kwargs = copied(inputs.example)
    try:
        module = cfx.capture(case.model, *args, recapture=True, **kwargs)
    except Exception as error:
        return reason(error)
    results = [inputs.check(name, module, SAME) for name in ("data", *SIZES)]
    return next((found for found in results if isinstance(found, dict)), "ok")


def judge(case, inputs, tool, save):
    """What a tool makes of a case; `save` gets the columns one by one."""
    args, kwargs = copied(inputs.example)
    torch.manual_seed(1)
    start = time.perf_counter()
    try:
        module, nodes = TOOLS[tool](case.model, args, kwargs)
    except Exception as error:
        return save({"capture": reason(error)})
    columns = save({"capture": "ok", "seconds": time.perf_counter() - start, "nodes": nodes})
    function = module
    if tool == "torch.jit.trace":
        def function(*args, **kwargs):
            return module(*args, **{k: v for k, v in kwargs.items() if isinstance(v, torch.Tensor)})
    for column in ("data", *SIZES, "values"):
        save({column: inputs.check(column, function, SAME, structure=tool == "cfx")})
    if tool == "cfx":
        save({"guards": [str(guard) for guard in module.guards][:40]})
        save({"recapture": check_recapture(case, inputs, columns)})
        check_c(case, inputs, module, save)
        check_file(inputs, module, save, columns["c"] == "ok")
        save({"train": check_modes(case, module)})


def try_model(build, name, tools, write):
    """Everything about a model, as a dict; `write` gets what is known so far."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    start = time.perf_counter()
    try:
        case = build(name)
        stir(case.model)
        case.model.eval()
        inputs = Inputs(case)
        if inputs.notes():
            strengthen(case.model)
            case.model.train().eval()  # some keep products of the old weights
            inputs = Inputs(case)
        row = {"class": type(case.model).__name__, "notes": inputs.notes()}
        row["parameters"] = sum(p.numel() for p in case.model.parameters())
    except Exception as error:
        return write({"built": reason(error)})
    row["built"] = "ok"
    for tool in tools:
        columns = row[tool] = {}

        def save(found, columns=columns):
            columns.update(found)
            write(row)
            return columns

        save({})
        judge(case, inputs, tool, save)
    write({**row, "seconds": time.perf_counter() - start})
