"""Which of PyTorch's sample inputs test which rows of the operator table, and how results are
compared. For test_operators.py.

PyTorch describes its operators in `op_db`: for each the dtypes it takes, sample inputs, inputs that
must be refused, variants (method, in place), tolerances.
"""
import collections
import contextlib
import functools
import itertools
import json
import os
import re
import warnings

import cfx
import torch
from torch.testing._internal.common_methods_invocations import op_db

torch.set_num_threads(1)  # samples are small
FULL = os.environ.get("CFX_FULL") == "1"
ALL_DTYPES = FULL or os.environ.get("CFX_NOTE") == "1"  # conftest.py then notes what agreed
PER_DTYPE = None if FULL else 8  # samples of one operator and dtype
AT_MOST = 2000 if FULL else 80  # of which they are taken
# What computes: CFX_JUDGE=plain and so on; else the runtime that is there from the start, and in
# short runs one of these, by turns, on the same samples.
RUNTIMES = {"reference": {"reference": True}, "plain": {"isa": "plain"}, "avx2": {"isa": "avx2"},
            "avx512": {"isa": "avx512"}}
JUDGED = os.environ.get("CFX_JUDGE")
LOWERS = hasattr(cfx, "lower")  # else rows are called by their parameters, overloads are left out
DTYPES = (torch.float32, torch.int64, torch.float64, torch.bool, torch.float16, torch.complex64,
          torch.bfloat16, torch.int32, torch.uint8, torch.complex128, torch.int16, torch.int8)

# Rows whose elements are whatever memory held: only types, sizes and strides are compared.
UNINITIALISED = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"}

# {row: {dtype: (rtol, atol, why)}}: tolerances other than torch.testing's and op_db's own.
TOLERANCES: dict[str, dict[torch.dtype, tuple[float, float, str]]] = {}

# What PyTorch's parser of arguments says to numbers in place of tensors, which cfx takes.
PARSER = "invalid combination of arguments|must be Tensor, not (int|float|bool)"

# Samples that are not compared: {full name of the OpInfo: why}.
SKIPPED_INFOS = {
    "as_strided.partial_views": "reads what lies outside of the tensor it is given",
    "max_pool2d_with_indices_backward": "its description passes return_indices=True to a function "
                                        "that always returns them; operator_extra.py has calls",
}
TOO_DEEP = "more than 8 dimensions"  # CFX_MAX_DIMS
# Rows that read memory around the tensor they are given: a view of a larger one fails.
ONLY_WHOLE = {"as_strided", "as_strided_scatter"}


REACHED: set[str] = set()  # rows that samples were lowered to, in this process


def picked(position, results=2):
    """For rows that tell where they found their results, which may be in several places: what lies
    there. The dimension is the argument at `position`, or `dim`."""

    def canonical(sample, result):
        (x, *args), kwargs = sample
        dim = kwargs.get("dim", args[position - 1] if len(args) >= position else -1)
        indices = result[1] if results == 2 else result
        whole = x.dim() == indices.dim()
        found = x.gather(dim, indices if whole else indices.unsqueeze(dim))
        found = found if whole else found.squeeze(dim)
        return (result[0], found) if results == 2 else found

    return canonical


def product_of(sample, result):
    """U S Vh: the vectors' signs are anybody's choice."""
    u, s, vh = result
    k = s.shape[-1]
    return s, (u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :]


def rebuilt(sample, result):
    """V diag(w) V^H, likewise."""
    values, vectors = result
    return values, (vectors * values.unsqueeze(-2).to(vectors.dtype)) @ vectors.mH


# Rows with more than one right answer: what all of these have in common is compared.
CANONICAL = {
    "kthvalue": picked(2), "mode": picked(1), "sort": picked(1), "topk": picked(2),
    "argsort": picked(1, 1), "linalg_svd": product_of, "linalg_eigh": rebuilt,
}


# Differences that are known, counted apart: {row: (what they look like, why)}.
KNOWN = {
    "addbmm": ("in place .* has a different shape", "addbmm_ grows a tensor of one element"),
    **dict.fromkeys(("diagonal_scatter", "select_scatter", "slice_scatter"), (
        "strides .* torch", "torch copies what lies between a tensor's elements, too")),
    "i0": ("Greatest absolute difference: nan", "of infinity it is infinity, not NaN"),
    "triplet_margin_loss": ("margin must be greater", "aten's function, the same row, takes it"),
    "multi_head_attention_forward": (
        r"float32: \[0\] .* Greatest absolute difference: 0\.0[0-4]",
        "scores in the hundreds: torch is off by 0.2, too, on inputs that are one rounding away"),
    **dict.fromkeys(("add", "sub", "mul", "div", "floor_divide"), (
        "(int|float|complex) instead of a tensor",
        "of numbers alone torch's functions make a tensor; Python's operators are the same rows")),
    **dict.fromkeys(("nan_to_num", "masked_fill", "index_fill", "threshold"), (
        "in place .* more than one element",
        "torch writes to expanded tensors, or does nothing at all")),
}


class Skip(Exception):
    """A sample that says nothing about cfx; counted by its reason."""


class NoDtype(Skip):
    """It has an element type that cfx does not compute with: not counted."""


# ---- which OpInfo is which row -----------------------------------------------------------------


def spellings(info):
    """Names under which the table may know the operator: its function first."""
    yield info.op
    if info.name.startswith(("nn.functional.", "linalg.", "special.", "fft.")):
        yield f"torch.{info.name}"
    else:
        yield f"torch.{info.name}"
        yield f"torch.Tensor.{info.name}"
        yield f"operator.{info.name.strip('_')}" if info.name.startswith("__") else info.name


def row_of(info):
    """(row, whether info.op itself is a spelling of it) or (None, False)."""
    for i, spelling in enumerate(spellings(info)):
        row = cfx.ops.find(spelling)
        if row is not None:
            return row.name, i == 0
    return None, False


@functools.cache
def infos_by_row():
    rows = collections.defaultdict(list)
    for info in op_db:
        row, _ = row_of(info)
        rows[row].append(info)
    return rows


def computed_infos():
    """[(row, info)] of what cfx computes."""
    kernels = set(cfx._core._kernels())
    return [(row, info) for row, infos in infos_by_row().items() if row in kernels
            for info in infos if LOWERS or not info.variant_test_name]


# ---- samples -----------------------------------------------------------------------------------


def dtypes_of(info, number):
    """All that cfx has, or float32 (or the first there is) and two others, by turns."""
    dtypes = [d for d in DTYPES if info.supports_dtype(d, "cpu")]
    if ALL_DTYPES or len(dtypes) <= 3:
        return dtypes
    rest = dtypes[1:]
    return [dtypes[0], rest[number % len(rest)], rest[(number * 7 + 3) % len(rest)]]


def thinned(samples):
    """At most PER_DTYPE, from all over the list."""
    samples = list(itertools.islice(samples, AT_MOST))  # some make thousands, slowly
    if PER_DTYPE is None or len(samples) <= PER_DTYPE:
        return samples
    step = len(samples) / PER_DTYPE
    return [samples[int(i * step)] for i in range(PER_DTYPE)]


def samples_of(info, dtype):
    torch.manual_seed(0)
    samples = thinned(info.sample_inputs("cpu", dtype, requires_grad=False))
    if row_of(info)[0] in ONLY_WHOLE:
        return samples
    if FULL:
        with contextlib.suppress(Exception):  # not all operators have more
            samples += itertools.islice(info.reference_inputs("cpu", dtype), AT_MOST)
        samples += [s.noncontiguous() for s in samples]
    else:
        samples[1::3] = [s.noncontiguous() for s in samples[1::3]]
    return samples


def variants_of(info, samples):
    """(name, function of torch, samples)."""
    few = samples if FULL else samples[:2]
    yield "function", info.op, samples
    if info.method_variant and isinstance(info.method_variant.__name__, str):
        yield "method", info.method_variant, few
    if info.inplace_variant:
        yield "in place", info.inplace_variant, few


# ---- running -----------------------------------------------------------------------------------


@functools.cache
def runtime_named(name):
    return cfx.Runtime(**RUNTIMES[name]) if name else contextlib.nullcontext()


@functools.cache
def other_runtimes():
    """Those that this machine has, without the one it starts with."""
    first, found = cfx.Runtime().isa, []
    for name in RUNTIMES:
        with contextlib.suppress(ValueError):
            if runtime_named(name).isa != first or name == "reference":
                found.append(name)
    return found


def runtimes_of(number):
    """Names of those that compute the samples of an operator; None is the one from the start."""
    if JUDGED or FULL:
        return [JUDGED]
    others = other_runtimes()
    return [None, others[number % len(others)]]


def is_plain(tree):
    """Whether cfx has what the sample is made of."""
    for leaf in torch.utils._pytree.tree_leaves(tree):
        if isinstance(leaf, torch.Tensor):
            if leaf.layout is not torch.strided:
                raise Skip("sparse tensor")
            if leaf.dtype not in DTYPES:
                raise NoDtype
            if leaf.dim() > 8:
                raise Skip(TOO_DEEP)
        elif isinstance(leaf, torch.Generator):
            raise Skip("a generator of torch's")
        elif isinstance(leaf, torch.dtype) and leaf not in DTYPES:
            raise NoDtype


def spelled(function):
    """What a graph calls: the function, or the name of the method; None for one that is only made
    of such."""
    if not cfx.ops.find(function):
        return None
    return function.__name__ if hasattr(function, "__objclass__") else function


def named(info):
    """The function or method that has the operator's name."""
    name = info.name.rpartition(".")[2]
    if info.variant_test_name == "in_place":
        return f"{name}_"
    if hasattr(torch, info.name):
        return getattr(torch, info.name)
    if hasattr(torch.Tensor, name):
        return name
    if hasattr(torch.Tensor, f"{name}_"):
        return f"{name}_"
    raise Skip("a function that cannot be traced")


def lowered(info, function, args, kwargs):
    """Through a graph of one call, lowered as a captured program is."""
    program, inputs = program_of(info, function, args, kwargs)
    result = program.run(*inputs)
    if not inputs:  # nothing says whose tensors they should be
        result = cfx.map_aggregate(result, lambda x: x.torch() if isinstance(x, cfx.Tensor) else x)
    return result


def program_of(info, function, args, kwargs):
    """(the program, its inputs)"""
    graph = cfx.Graph()
    inputs = []

    def place(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        inputs.append(leaf.detach())
        return graph.placeholder(f"x{len(inputs)}")

    target = spelled(function)
    module = None
    if target is None:
        try:
            module = traced(function, args, kwargs, inputs)
        except (TypeError, Skip):  # no tensor among the arguments, or one that must be a real one
            target = named(info)
            inputs.clear()
    if module is None:
        args, kwargs = cfx.map_aggregate((args, kwargs), place)
        create = graph.call_method if isinstance(target, str) else graph.call_function
        graph.output(create(target, args, kwargs))
        module = cfx.GraphModule(torch.nn.Module(), graph)
    program = cfx.lower(module)
    for node in program.graph.nodes:
        if node.op == "call_function":
            REACHED.add(str(getattr(node.target, "__name__", node.target)).rpartition(".")[2])
    return program, inputs


def traced(function, args, kwargs, inputs):
    """A function that calls operators, as its graph."""
    leaves, tree = torch.utils._pytree.tree_flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    if not places:
        raise Skip("no tensor to trace the sample by")
    inputs += [leaves[i].detach() for i in places]

    def call(*tensors):
        values = list(leaves)
        for i, tensor in zip(places, tensors):
            values[i] = tensor
        args, kwargs = torch.utils._pytree.tree_unflatten(values, tree)
        return function(*args, **kwargs)

    names = ", ".join(f"x{i}" for i in places)
    scope = {"call": call}
    exec(f"def outer({names}):\n    return call({names})", scope)
    return cfx.symbolic_trace(scope["outer"])


def called(row, args, kwargs):
    """The row itself, by its parameters."""
    try:
        return getattr(cfx.ops, row)(*args, **kwargs)
    except TypeError as e:
        if re.search("at most|multiple values|unexpected keyword|must be .* not list", str(e)):
            raise Skip("arguments of another form") from e
        raise


def compute(row, info, function, args, kwargs):
    if LOWERS:
        return lowered(info, function, args, kwargs)
    return called(row, args, kwargs)


# ---- comparing ---------------------------------------------------------------------------------


def tolerance(row, info, dtype):
    """(rtol, atol) of results of a type: torch.testing's, or the widest that op_db has for the CPU,
    or one of TOLERANCES."""
    if dtype in TOLERANCES.get(row, {}):
        return TOLERANCES[row][dtype][:2]
    if not dtype.is_floating_point and not dtype.is_complex:
        return 0.0, 0.0
    rtol, atol = torch.testing._comparison.default_tolerances(dtype)
    for decorate in info.decorators if info else ():
        if getattr(decorate, "device_type", "mps") not in (None, "cpu"):
            continue
        for decorator in decorate.decorators:
            own = getattr(decorator, "d", {})
            if isinstance(own, dict) and dtype in own and hasattr(own[dtype], "rtol"):
                rtol, atol = max(rtol, own[dtype].rtol), max(atol, own[dtype].atol)
    return rtol, atol


def observable(tensor):
    return [s for s, n in zip(tensor.stride(), tensor.shape) if n > 1]


def difference(want, got, close):
    """What is different, or None. `close(want, got)` says whether elements are, likewise."""
    if isinstance(want, torch.Tensor):
        if not isinstance(got, torch.Tensor):
            return f"{type(got).__name__} instead of a tensor"
        want = want.detach().resolve_conj().resolve_neg()
        if want.dtype is not got.dtype:
            return f"dtype {got.dtype}, torch {want.dtype}"
        if want.shape != got.shape:
            return f"shape {tuple(got.shape)}, torch {tuple(want.shape)}"
        if want.numel() > 1 and observable(want) != observable(got):
            return f"strides {got.stride()}, torch {want.stride()} of {tuple(want.shape)}"
        return close(want, got)
    if isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(want):
            return f"{got!r:.80} instead of {len(want)} results"
        found = (difference(w, g, close) for w, g in zip(want, got))
        return next((f"[{i}] {d}" for i, d in enumerate(found) if d), None)
    if isinstance(want, (float, complex)) and isinstance(got, (float, complex)):
        return close(torch.tensor(want, dtype=torch.complex128),
                     torch.tensor(got, dtype=torch.complex128))
    return None if want == got and type(want) is type(got) else f"{got!r:.80}, torch {want!r:.80}"


def elements(row, info):
    def close(want, got):
        rtol, atol = tolerance(row, info, want.dtype)
        try:
            torch.testing.assert_close(got, want, rtol=rtol, atol=atol, equal_nan=True,
                                       check_stride=False)
        except AssertionError as e:
            return re.sub(r"\s+", " ", str(e))[:200]
        return None

    return close


def wider(tree):
    """The same in double precision."""
    kinds = {torch.float16: torch.float64, torch.bfloat16: torch.float64,
             torch.float32: torch.float64, torch.complex64: torch.complex128}

    def widen(leaf):
        if isinstance(leaf, torch.Tensor):
            return leaf.to(kinds.get(leaf.dtype, leaf.dtype))
        return kinds.get(leaf, leaf) if isinstance(leaf, torch.dtype) else leaf

    return torch.utils._pytree.tree_map(widen, tree)


@contextlib.contextmanager
def double_by_default():
    """What integers become where they become floats."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def alike(want, got, rtol, atol):
    """Where complex numbers are the same, part by part (one may be infinite); NaN in either part is
    NaN."""
    want_parts, got_parts = torch.view_as_real(want), torch.view_as_real(got)
    close = torch.isclose(got_parts, want_parts, rtol=rtol, atol=atol, equal_nan=True).all(-1)
    return close | (want.isnan() & got.isnan())


def as_exact(row, info, want, got, exact):
    """Whether `got` is about as near to what double precision gives as torch is: sums in another
    order are neither better nor worse. Where torch overflows on the way it must be right."""
    flat = torch.utils._pytree.tree_leaves
    for w, g, e in zip(flat(want), flat(got), flat(exact)):
        if not isinstance(w, torch.Tensor) or not (w.is_floating_point() or w.is_complex()):
            if not (torch.equal(w, g) if isinstance(w, torch.Tensor) else w == g):
                return False
            continue
        rtol, atol = tolerance(row, info, w.dtype)
        held = e.detach().to(w.dtype)  # by the type
        e, g, w, held = (x.detach().to(torch.complex128) for x in (e, g, w, held))
        finite = torch.isfinite(e) & (torch.isfinite(held) | torch.isfinite(w))
        alone = finite & ~torch.isfinite(w)  # a step of torch's went too far
        both = finite & ~alone
        if not torch.isfinite(g[finite]).all():
            return False
        scale = atol + rtol * e.abs()
        theirs, ours = ((x - e).abs() / scale for x in (w, g))
        if both.any() and ours[both].max() > 1 + 4 * theirs[both].max():
            return False
        if alone.any() and ours[alone].max() > 1:
            return False
        if not (finite | alike(held, g, rtol, atol) | alike(w, g, rtol, atol)).all():
            return False
    return True


# ---- one operator ------------------------------------------------------------------------------


class Report:
    """Counts for one operator; conftest.py adds them up."""

    def __init__(self, row, name, runtimes=(None,)):
        self.row, self.name, self.runtimes = row, name, runtimes
        self.samples = self.elsewhere = self.by_double = self.errors = self.wider = 0
        self.skips, self.known = collections.Counter(), collections.Counter()
        self.agreed = collections.Counter()  # samples by dtype
        self.differences, self.other_errors = [], []

    def add(self, difference):
        pattern, why = KNOWN.get(self.row, ("$^", ""))
        if re.search(pattern, difference, re.DOTALL):
            self.known[why] += 1
        else:
            self.differences.append(difference)

    def json(self):
        return json.dumps({**vars(self), "differences": len(self.differences),
                           "other_errors": len(self.other_errors)})


def judge(report, info, variant, function, dtype, sample):
    """One sample: counts what comes of it."""
    args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)
    try:
        is_plain((args, kwargs))
        want, theirs = torch_result(variant, function, args, kwargs)
        is_plain(want)
    except NoDtype:
        return
    except Skip as e:
        report.skips[str(e)] += 1
        return
    if want is Skip:  # torch itself refuses it
        if variant == "in place" and isinstance(args[0], torch.Tensor) and is_expanded(args[0]):
            refuses(report, info, variant, function, dtype, sample, theirs)
        return
    report.samples += 1
    for runtime in report.runtimes:
        judge_run(report, info, variant, function, dtype, sample, (want, theirs), runtime)


def judge_run(report, info, variant, function, dtype, sample, expected, runtime):
    args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)
    want, theirs = expected
    first = runtime == report.runtimes[0]
    row = report.row + ("_" if variant == "in place" and not report.row.endswith("_") else "")
    label = f"{variant} by {runtime}" if runtime else variant
    try:
        ours = copied(args) if variant == "in place" else args
        with runtime_named(runtime):
            got = compute(row, info, function, ours, kwargs)
    except Skip as e:
        report.samples -= first
        report.skips[str(e)] += first
        return
    except Exception as e:
        report.add(where(label, dtype, sample, f"{type(e).__name__}: {e}"))
        return
    if variant == "in place" and not changes_header(report.row):
        want, got = (want, theirs[0]), (got, ours[0])
    found = verdict(report, row, info, variant, function, (args, kwargs), want, got)
    if found:
        report.add(where(label, dtype, sample, found))
    elif first:
        report.agreed[str(dtype)[6:]] += 1
    else:
        report.elsewhere += 1


def changes_header(row):
    """squeeze_ and the like: another library's tensor keeps its shape, the result has the new."""
    return "(a) " in cfx.ops.find(row).schema.split("->")[0]


def torch_result(variant, function, args, kwargs):
    """(the result, the arguments after it), or Skip and the exception."""
    own = copied(args) if variant == "in place" else args
    try:
        with torch.no_grad():
            return function(*own, **kwargs), own
    except Exception as e:
        return Skip, e


def is_expanded(tensor):
    return any(s == 0 and n > 1 for s, n in zip(tensor.stride(), tensor.shape))


def lies_twice(tensor):
    """Whether two elements lie in the same place: not if every step is longer than all that the
    shorter ones reach; else they are counted."""
    reach = 1
    for step, n in sorted((s, n) for s, n in zip(tensor.stride(), tensor.shape) if n > 1):
        if step < reach:
            break
        reach += step * (n - 1)
    else:
        return False
    items = tensor.untyped_storage().nbytes() // tensor.element_size()
    places = torch.arange(items).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return places.unique().numel() < tensor.numel()


def copied(args):
    """For a function that writes to the first: the same view of a copy of its memory. What an
    element is that lies in several places depends on the order of writing, so that they are apart
    in the copy; only tensors that were expanded stay so, for most functions refuse them."""
    first = args[0]
    if not isinstance(first, torch.Tensor):
        return args
    if not is_expanded(first) and lies_twice(first):
        return (first.contiguous(), *args[1:])
    copy = torch.empty(0, dtype=first.dtype)
    copy.set_(first.untyped_storage().clone(), first.storage_offset(), first.shape, first.stride())
    return (copy, *args[1:])


def verdict(report, row, info, variant, function, sample, want, got):
    args, kwargs = sample
    if report.row in UNINITIALISED or draws(report.row, variant, function, sample):
        return difference(want, got, lambda want, got: None)
    if report.row in CANONICAL:
        found = difference(want, got, lambda want, got: None)
        if found:
            return found
        want, got = (CANONICAL[report.row](sample, result) for result in (want, got))
    found = difference(want, got, elements(row, info))
    if not found or "not close" not in found:
        return found
    with contextlib.suppress(Exception), torch.no_grad(), double_by_default():
        args, kwargs = wider(sample)
        args = copied(args) if variant == "in place" else args
        if as_exact(row, info, want, got, function(*args, **kwargs)):
            report.by_double += 1
            return None
    return found


def draws(row, variant, function, sample):
    """Whether the result is random: other seeds give others. (Many operators of op_db set the seed
    themselves.)"""
    if "random" not in cfx.ops.find(row).flags:
        return False
    results = []
    set_seed = torch.manual_seed
    for seed in range(6):
        set_seed(seed)
        torch.manual_seed = lambda seed: None
        try:
            results.append(torch_result(variant, function, *sample)[0])
        except Skip:
            return False
        finally:
            torch.manual_seed = set_seed

    def same(a, b):
        return None if torch.equal(a, b) else "different"

    return any(difference(results[0], other, same) for other in results[1:])


def where(variant, dtype, sample, what):
    text = re.sub(r"\s+", " ", str(sample.summary()))
    return f"{variant} {str(dtype)[6:]}: {what[:300]}\n        {text[:300]}"


def refuses(report, info, variant, function, dtype, sample, theirs):
    """What torch refuses with the exception `theirs`, cfx must refuse."""
    args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)
    report.errors += 1
    try:
        compute(report.row, info, function, copied(args) if variant == "in place" else args, kwargs)
    except Skip:
        report.errors -= 1
    except Exception as e:
        if not isinstance(e, type(theirs).__mro__[:-3]):
            both = f"{e!r:.150}; {theirs!r:.150}"
            report.other_errors.append(where(variant, dtype, sample, both))
    else:
        if isinstance(theirs, TypeError) and re.search(PARSER, str(theirs)):
            report.wider += 1
        else:
            report.add(where(variant, dtype, sample, f"no error; torch: {theirs}"))


def judge_errors(report, info):
    """What torch refuses cfx must refuse."""
    try:
        inputs = list(info.error_inputs("cpu"))
    except Exception:
        return
    for item in inputs:
        sample = item.sample_input
        args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)
        if "out" in kwargs:
            continue
        try:
            is_plain((args, kwargs))
        except Skip:
            continue
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                info.op(*args, **kwargs)
            continue
        except Exception as e:
            theirs = e
        refuses(report, info, "error", info.op, torch.float32, sample, theirs)
