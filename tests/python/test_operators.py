"""Every row that cfx computes, against PyTorch, on PyTorch's own sample inputs.

One test for each operator of op_db. In short a few samples of three dtypes each; CFX_FULL=1 takes
all samples, all dtypes, non-contiguous inputs. A summary is printed at the end (conftest.py).
"""
import warnings

import operator_samples as samples
import pytest

CASES = [
    pytest.param(row, info, number, id=f"{row}-{info.formatted_name}")
    for number, (row, info) in enumerate(samples.computed_infos())
]


@pytest.mark.parametrize("row, info, number", CASES)
def test_operator(row, info, number, record_property):
    report = samples.Report(row, info.formatted_name)
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
    skipped = sum(report.skips.values())
    if samples.LOWERS:
        assert skipped <= 0.02 * (report.samples + skipped), report.skips
