"""Types and shapes that the rules of operators give, against PyTorch's results on its own sample
inputs: of tensors without elements, and with one of their sizes unknown.

For each sample every size of its tensors (2 or more) is made a symbol in turn, wherever it occurs;
what comes out, with the number put in for the symbol, must be what PyTorch gives. A rule may refuse
an unknown size, where a number must be known, but may not get one wrong."""
import os
import warnings

import operator_samples as samples
import pytest
import torch

import cfx

FULL = os.environ.get("CFX_FULL") == "1"
# How many results there are is told by elements.
BY_ELEMENTS = {"tensor_split"}
CASES = [pytest.param(row, info, id=f"{row}-{info.formatted_name}")
         for row, info in samples.computed_infos()
         if info.full_name not in samples.SKIPPED_INFOS and row not in BY_ELEMENTS]


def describe(tensor, size=None):
    """As text, with N for a size."""
    sizes = ", ".join("N" if s == size else str(s) for s in tensor.shape)
    return f"{str(tensor.dtype).removeprefix('torch.')}[{sizes}]"


def value_of(size, n):
    """Of a size that is an expression; None if it has symbols that only elements tell."""
    try:
        return eval(size, {"N": n, "max": max, "min": min}) if isinstance(size, str) else size
    except NameError:
        return None


def difference(want, got, n):
    """What is wrong, or None."""
    if isinstance(want, torch.Tensor):
        if not isinstance(got, cfx.TensorShape):
            return f"{got!r} instead of a tensor"
        if got.dtype != str(want.dtype).removeprefix("torch."):
            return f"dtype {got.dtype}, torch {want.dtype}"
        sizes = [value_of(size, n) for size in got.shape]
        if len(sizes) != want.dim() or any(s not in (None, w) for s, w in zip(sizes, want.shape)):
            return f"shape {got.shape}, torch {tuple(want.shape)}, N = {n}"
        return None
    if isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(want) != len(got):
            return f"{got!r:.200} instead of {len(want)} results"
        return next(filter(None, (difference(w, g, n) for w, g in zip(want, got))), None)
    if isinstance(got, str) and not isinstance(want, str):
        got = value_of(got, n)
    if isinstance(want, (bool, int)) and got is not None and got != want:
        return f"{got!r}, torch {want!r}"
    return None


def check(info, sample, found, refused):
    args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)
    try:
        samples.is_plain((args, kwargs))
        want, _ = samples.torch_result("function", info.op, args, kwargs)
        samples.is_plain(want)
        if want is samples.Skip:
            return
        program, inputs = samples.program_of(info, info.op, args, kwargs)
    except (samples.Skip, cfx.LowerError):
        return
    sizes = sorted({s for t in inputs for s in t.shape if s >= 2})
    for size in [None, *(sizes if FULL else sizes[:2])]:
        texts = [describe(t, size) for t in inputs]
        try:
            got = program.infer(*texts)
        except NotImplementedError:
            return
        except Exception as e:
            (found if size is None else refused).append(f"{texts}: {type(e).__name__}: {e}")
            continue
        wrong = difference(want, got.result, size)
        if wrong:
            found.append(f"{texts} {sample.args} {sample.kwargs}: {wrong}; {got.assumptions}"[:600])


@pytest.mark.parametrize("row, info", CASES)
def test_rule(row, info, record_property):
    found, refused = [], []
    dtypes = [d for d in samples.DTYPES if info.supports_dtype(d, "cpu")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in dtypes if FULL else dtypes[:1]:
            for sample in samples.samples_of(info, dtype)[:None if FULL else 6]:
                check(info, sample, found, refused)
    record_property("refused", len(refused))
    assert not found, f"{len(found)} wrong\n" + "\n".join(found[:5])
