"""Every class of torch.nn that PyTorch describes, lowered and run: results, and what it changes.

One test for each class of module_db and each of training and evaluation, on the inputs that
PyTorch tests it with; a few of them unless CFX_FULL=1.
"""
import copy
import warnings

import cfx
import operator_samples as samples
import pytest
import torch
from torch.testing._internal.common_modules import module_db

# Classes that are not compared: {name: why}.
SKIPPED = {
    **dict.fromkeys((f"nn.LazyConv{t}{n}d" for t in ("", "Transpose") for n in (1, 2, 3)),
                    "becomes another class at its first call"),
    **dict.fromkeys(("nn.AdaptiveMaxPool3d", "nn.FractionalMaxPool3d", "nn.LPPool1d", "nn.LPPool3d",
                     "nn.MultiMarginLoss", "nn.MultiLabelSoftMarginLoss", "nn.GaussianNLLLoss",
                     "nn.LinearCrossEntropyLoss"), "not in the operator table"),
}
DTYPES = (torch.float32, torch.float64, torch.complex64, torch.int64)
MOST = None if samples.FULL else 6  # inputs of one class


def program_of(module, args, kwargs):
    """The module's call as a graph of one node, lowered; and its inputs."""
    graph, inputs = cfx.Graph(), []
    root = torch.nn.Module()
    root.called = module

    def place(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        inputs.append(leaf.detach().clone())
        return graph.placeholder(f"x{len(inputs)}")

    args, kwargs = cfx.map_aggregate((args, kwargs), place)
    graph.output(graph.call_module("called", args, kwargs))
    return cfx.lower(cfx.GraphModule(root, graph)), inputs


def is_random(module, args, kwargs):
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        results.append(copy.deepcopy(module)(*args, **kwargs))
    return samples.difference(*results, lambda a, b: None if a.equal(b) else "drawn") is not None


def judge(info, sample, dtype, training):
    """What is different, or None."""
    made, given = sample.constructor_input, sample.forward_input
    module = info.module_cls(*made.args, **made.kwargs).to(dtype).train(training)
    args, kwargs = given.args, given.kwargs
    try:
        samples.is_plain((args, kwargs))
    except samples.Skip:
        return None
    expected = copy.deepcopy(module)
    with torch.no_grad():
        random = is_random(module, args, kwargs)
        want = expected(*args, **kwargs)
    program, inputs = program_of(module, args, kwargs)
    got = program.run(*inputs)
    close = (lambda a, b: None) if random else samples.elements("", None)
    found = samples.difference(want, got, close)
    for (name, theirs), ours in zip(expected.state_dict().items(), module.state_dict().values()):
        found = found or (samples.difference(theirs, ours, close) and f"{name} afterwards")
    return found


@pytest.mark.parametrize("training", (True, False), ids=("train", "eval"))
@pytest.mark.parametrize("info", module_db, ids=lambda info: info.name)
def test_module(info, training):
    if info.name in SKIPPED:
        pytest.skip(SKIPPED[info.name])
    dtypes = [d for d in DTYPES if d in info.dtypes] or info.dtypes
    differences = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in dtypes if samples.FULL else dtypes[:1]:
            torch.manual_seed(0)
            inputs = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False,
                                             training=training)
            chosen = inputs if MOST is None else inputs[::max(1, len(inputs) // MOST)]
            for sample in chosen:
                try:
                    found = judge(info, sample, dtype, training)
                except Exception as e:
                    found = f"{type(e).__name__}: {e}"
                if found:
                    made = sample.constructor_input
                    differences.append(f"{dtype} {made.args} {made.kwargs}: {found}"[:400])
    assert not differences, "\n".join(differences[:6])
