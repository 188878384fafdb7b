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
import signal
import sys
import unittest
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def replace_quantization():
    """cfx's functions in the place of torch.ao's, under all the names that the tests use."""
    import torch.ao.quantization.quantize_fx as ao

    from cfx import quantize

    def convert(graph_module, *args, **kwargs):
        return quantize.convert_fx(graph_module, *args, **kwargs)

    for name in ("prepare_fx", "prepare_qat_fx", "fuse_fx", "convert_fx"):
        setattr(ao, name, getattr(quantize, name))
    ao.convert_to_reference_fx = convert
    ao._convert_to_reference_decomposed_fx = convert


def load(path):
    spec = importlib.util.spec_from_file_location("test_quantize_fx", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["test_quantize_fx"] = module
    spec.loader.exec_module(module)
    return module


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
    lines = [line for line in wrong[0][1].strip().splitlines() if line and not line.startswith(" ")]
    at = [line.strip() for line in wrong[0][1].splitlines() if "test_quantize_fx.py" in line]
    message = next((line for line in lines if "Error" in line or "Exception" in line), lines[-1])
    return "failed", f"{message[:160]} | {at[-1] if at else ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--torch", action="store_true", help="run torch.ao's own functions")
    parser.add_argument("--only", default="", help="tests whose names contain this text")
    parser.add_argument("--json", type=Path, help="write {test: [outcome, reason]} there")
    parser.add_argument("--seconds", type=int, default=120, help="the most that a test may take")
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT / "python"), str(options.file.resolve().parents[3])]
    warnings.simplefilter("ignore")
    sys.argv = sys.argv[:1]
    if not options.torch:
        replace_quantization()
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
    print(", ".join(f"{counts[k]} {k}" for k in ("passed", "failed", "skipped")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
