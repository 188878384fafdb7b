"""Every row that cfx computes, against PyTorch, on PyTorch's own sample inputs.

One test for each operator of op_db. In short a few samples of three dtypes each, computed by the
kernels for this machine and by one of the other sets of kernels; CFX_FULL=1 takes all samples, all
dtypes, non-contiguous inputs; CFX_JUDGE=reference, plain, avx2 or avx512 names the kernels. A
summary is printed at the end (conftest.py).
"""
import warnings

import cfx
import operator_extra as extra
import operator_samples as samples
import pytest
import torch

CASES = [
    pytest.param(row, info, number, id=f"{row}-{info.formatted_name}")
    for number, (row, info) in enumerate(samples.computed_infos())
]


@pytest.mark.parametrize("row, info, number", CASES)
def test_operator(row, info, number, record_property):
    report = samples.Report(row, info.formatted_name, samples.runtimes_of(number))
    if (reason := samples.SKIPPED_INFOS.get(info.full_name)) is not None:
        report.skips[reason] = 1
        record_property("operator", report.json())
        pytest.skip(reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in samples.dtypes_of(info, number):
            inputs = samples.samples_of(info, dtype)
            for variant, function, chosen in samples.variants_of(info, inputs):
                for sample in chosen:
                    samples.judge(report, info, variant, function, dtype, sample)
        samples.judge_errors(report, info)
    record_property("operator", report.json())
    shown = "\n    ".join(report.differences[:8])
    assert not report.differences, f"{len(report.differences)} of {report.samples}\n    {shown}"
    skipped = sum(n for reason, n in report.skips.items() if reason != samples.TOO_DEEP)
    if samples.LOWERS:
        assert skipped <= 0.02 * (report.samples + skipped), report.skips


# ---- rows that op_db does not describe


def undescribed():
    kernels = set(cfx._core._kernels())
    described = {row for row, infos in samples.infos_by_row().items()
                 if any(info.full_name not in samples.SKIPPED_INFOS for info in infos)}
    in_place = {row for row in kernels if row.endswith("_") and row[:-1] in kernels}
    return kernels - described - in_place


def test_every_row_is_tested():
    assert undescribed() - extra.calls().keys() - extra.ELSEWHERE.keys() == set()


@pytest.mark.parametrize("row", sorted(undescribed() & extra.calls().keys()))
def test_undescribed_row(row):
    for function, *args in extra.calls()[row]:
        want = function(*args)
        got = getattr(cfx.ops, row)(*args)
        got = got.torch() if isinstance(got, cfx.Tensor) else got  # no tensor came in
        assert not samples.difference(want, got, samples.elements(row, None)), (args, want, got)


ASSERTIONS = [
    ("_assert", (True, ""), (False, "no"), AssertionError),
    ("_assert_scalar", (1, ""), (0, "no"), RuntimeError),
    ("_assert_async", (torch.tensor(1), ""), (torch.tensor(0), "no"), RuntimeError),
]


@pytest.mark.parametrize("row, right, wrong, error", ASSERTIONS)
def test_assertions(row, right, wrong, error):
    if not getattr(cfx.ops, row).has_kernel:
        pytest.skip("no kernel")
    getattr(cfx.ops, row)(*right)
    with pytest.raises(error, match="no"):
        getattr(cfx.ops, row)(*wrong)


# ---- random rows: the distribution

DRAWS = {
    "rand": lambda: ([[20000]], torch.rand(20000)),
    "randn": lambda: ([[20000]], torch.randn(20000)),
    "rand_like": lambda: ([torch.ones(20000)], torch.rand(20000)),
    "randn_like": lambda: ([torch.ones(20000)], torch.randn(20000)),
    "bernoulli": lambda: ([torch.full([20000], 0.3)], torch.full([20000], 0.3).bernoulli()),
    "dropout": lambda: ([torch.ones(20000), 0.4, True],
                        torch.nn.functional.dropout(torch.ones(20000), 0.4)),
    "native_dropout": lambda: ([torch.ones(20000), 0.4, True],
                               torch.native_dropout(torch.ones(20000), 0.4, True)[0]),
    "alpha_dropout": lambda: ([torch.ones(20000), 0.2, True],
                              torch.alpha_dropout(torch.ones(20000), 0.2, True)),
    "exponential": lambda: ([torch.ones(20000), 2.0], torch.ones(20000).exponential_(2.0)),
    "uniform": lambda: ([torch.ones(20000), -1.0, 3.0], torch.ones(20000).uniform_(-1, 3)),
    "normal": lambda: ([torch.ones(20000), 2.0, 3.0], torch.ones(20000).normal_(2, 3)),
    "normal_numbers": lambda: ([2.0, 3.0, [20000]], torch.normal(2.0, 3.0, [20000])),
    "scaled_dot_product_attention": lambda: (
        [torch.zeros(2000, 1, 4), torch.zeros(2000, 8, 4), torch.ones(2000, 8, 10), None, 0.4],
        torch.nn.functional.scaled_dot_product_attention(
            torch.zeros(2000, 1, 4), torch.zeros(2000, 8, 4), torch.ones(2000, 8, 10), None, 0.4)),
    "bernoulli_p": lambda: ([torch.ones(20000), torch.tensor(0.3)],
                            torch.ones(20000).bernoulli_(0.3)),
    "random": lambda: ([torch.ones(20000), 2, 12], torch.ones(20000).random_(2, 12)),
    "randperm": lambda: ([20000], torch.randperm(20000).float()),
    "gumbel_softmax": lambda: ([torch.ones(10000, 2)],
                               torch.nn.functional.gumbel_softmax(torch.ones(10000, 2))),
    "randint": lambda: ([0, 10, [20000]], torch.randint(10, [20000]).float()),
    "poisson": lambda: ([torch.full([20000], 4.0)], torch.poisson(torch.full([20000], 4.0))),
}


@pytest.mark.parametrize("row", DRAWS)
def test_distributions(row):
    """Mean and spread as torch's, another result each time, the same one for the same seed."""
    function = getattr(cfx.ops, row)
    if not function.has_kernel:
        pytest.skip("no kernel")
    args, want = DRAWS[row]()

    def draw():
        result = function(*args)
        result = result[0] if isinstance(result, tuple) else result
        return (result if isinstance(result, torch.Tensor) else result.torch()).float()

    cfx.manual_seed(3)
    first, second = draw(), draw()
    assert not first.equal(second)
    cfx.manual_seed(3)
    assert draw().equal(first)
    error = want.std().item() / 20000**0.5
    assert abs(first.mean() - want.mean()).item() < 8 * error
    assert abs(first.std() / want.std() - 1).item() < 0.05
