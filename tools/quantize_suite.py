#!/usr/bin/env python3
"""quantize_suite.py - PyTorch's tests of FX quantization, with cfx.quantize in torch.ao's place.

usage: quantize_suite.py FILE [--torch] [--only TEXT] [--json OUT] [--seconds N]

FILE is test/quantization/fx/test_quantize_fx.py of PyTorch 2.6, of Debian's source package
`pytorch` (trixie), which is not part of this repository:

    apt-get source --download-only pytorch     (with a deb-src line for trixie)
    tar xJf pytorch_*.orig.tar.xz --wildcards '*/test/quantization/fx/*'

Each test runs once, in one process. With --torch nothing is replaced: what passes then, in the
PyTorch that is installed, is what can be asked of cfx. Prints what failed, by the reason, and a
summary.
"""
import argparse
import collections
import importlib.util
import json
import re
import signal
import sys
import unittest
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def replace_quantization(words):
    """cfx's functions in the place of torch.ao's, under all the names that the tests use."""
    import torch
    import torch.ao.quantization.quantize_fx as ao

    import cfx
    from cfx import quantize
    from cfx.quantize.host import _has_seen
    from cfx.quantize.specs import is_observer

    def made_up(prepared):
        """Where the test has not run the model, observers see what gives some scale: torch.ao
        makes one up then, and cfx refuses."""
        for path, module in prepared.named_modules():
            inner = getattr(module, "activation_post_process", module)
            if path.endswith("weight_observer"):
                continue  # converting looks at the weights
            if is_observer(module) and not _has_seen(module) and not hasattr(inner, "ch_axis"):
                inner(torch.tensor([0.0, 1.0]))

    def converting(form):
        def convert(prepared, *args, **kwargs):
            if words:
                made_up(prepared)
            converted = quantize.convert_fx(prepared, *args, **kwargs)
            for module in converted.modules():  # those that stand alone, too
                if isinstance(module, cfx.GraphModule):
                    module.meta["form"] = form
            return converted
        return convert

    for name in ("prepare_fx", "prepare_qat_fx", "fuse_fx"):
        setattr(ao, name, getattr(quantize, name))
    ao.convert_fx = converting("integers")
    ao.convert_to_reference_fx = ao._convert_to_reference_decomposed_fx = converting("reference")
    if words:  # not before: it imports these functions
        from torch.testing._internal.common_quantization import QuantizationTestCase

        translate(QuantizationTestCase)


def translate(case):
    """Lets tests look for what they expect in cfx's words, in what cfx has converted."""
    import quantize_words

    plain = case.checkGraphModuleNodes

    def check(self, graph_module, expected_node=None, expected_node_occurrence=None,
              expected_node_list=None):  # fmt: skip
        expected = expected_node, expected_node_occurrence, expected_node_list
        form = getattr(graph_module, "meta", {}).get("form")
        if form is None:
            return plain(self, graph_module, *expected)
        return quantize_words.check(self, graph_module, form, *expected)

    case.checkGraphModuleNodes = check


def load(path):
    spec = importlib.util.spec_from_file_location("test_quantize_fx", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["test_quantize_fx"] = module
    spec.loader.exec_module(module)
    return module


# What a failure says, or the test's name -> the reason, the first that fits.
REASONS = [
    (r"static_lstm|embedding_?bag", "static LSTM, training with EmbeddingBag"),
    (r"fuse_custom_pattern|fusion_pattern_with", "fuser methods of the test's own"),
    (r"(tanh|leaky_relu|add_relu)_lowering", "integer kernels of oneDNN for chains of calls"),
    (r"test_fuse|problematic_fuse|fused_module_qat|norm_relu", "classes of torch.nn.intrinsic"),
    (r"_scale_0|packed_weight|attribute 'scale'|state_dict|qparams_|_reference |fold_quant"
     r"|mixed_dtypes|stack_trace|weight_observer|model_type",
     "scales as buffers, packed weights, modules: how torch.ao stores what it converts"),
    (r"script|jit|torch.fx cannot|RuntimeError", "TorchScript or torch.fx works on the result"),
    (r"not close", "the same numbers as one engine's kernels, to the last step"),
    (r"fails_early|observer_fqn|shape_ops|type_order", "what cfx does otherwise, on purpose"),
]


def reason_of(name, why):
    text = f"{name} {why}"
    return next((reason for pattern, reason in REASONS if re.search(pattern, text)), "other")


class TooLong(Exception):
    pass


def run(test, seconds):
    """(outcome, reason) of one test."""
    def stop(number, frame):
        raise TooLong(f"longer than {seconds} s")

    result = unittest.TestResult()
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        test.run(result)
    except TooLong as error:
        return "failed", str(error)
    finally:
        signal.alarm(0)
    if result.skipped:
        return "skipped", result.skipped[0][1]
    wrong = result.failures + result.errors
    if not wrong:
        return "passed", ""
    told = wrong[0][1].partition("To execute this test")[0].strip()
    lines = [line for line in told.splitlines() if line and not line.startswith(" ")]
    at = [line.strip() for line in told.splitlines() if "test_quantize_fx.py" in line]
    first = next((i for i, line in enumerate(lines) if "Error" in line or "Exception" in line), -1)
    message = " ".join(lines[first:])
    return "failed", f"{message[:160]} | {at[-1] if at else ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--torch", action="store_true", help="run torch.ao's own functions")
    parser.add_argument("--words", action="store_true",
                        help="read what tests look for as cfx writes it")  # fmt: skip
    parser.add_argument("--only", default="", help="tests whose names contain this text")
    parser.add_argument("--json", type=Path, help="write {test: [outcome, reason]} there")
    parser.add_argument("--seconds", type=int, default=120, help="the most that a test may take")
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT / "python"), str(options.file.resolve().parents[3])]
    warnings.simplefilter("ignore")
    sys.argv = sys.argv[:1]
    if not options.torch:
        replace_quantization(options.words)
    outcomes = {}
    for suite in unittest.defaultTestLoader.loadTestsFromModule(load(options.file)):
        for test in suite:
            name = test.id().partition(".")[2]
            if options.only in name:
                outcomes[name] = run(test, options.seconds)
                if outcomes[name][0] == "failed":
                    print(name, outcomes[name][1], sep=": ", flush=True)
    if options.json:
        options.json.write_text(json.dumps(outcomes, indent=1))
    counts = collections.Counter(outcome for outcome, _ in outcomes.values())
    reasons = collections.Counter(reason_of(name, why) for name, (outcome, why) in
                                  outcomes.items() if outcome == "failed")  # fmt: skip
    for reason, count in reasons.most_common():
        print(f"{count:4} {reason}")
    print(", ".join(f"{counts[k]} {k}" for k in ("passed", "failed", "skipped")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
