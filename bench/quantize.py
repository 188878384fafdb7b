"""Models in int8: cfx beside its own float32, and beside ONNX Runtime and OpenVINO with the same
quantized model.

    python bench/quantize.py [--models LIST] [--threads 2] [--batch 1] [--rounds 7] [--seconds 0.4]
                             [--peers DIR] [--json FILE] [--show FILE] [--update]

A model is quantized statically, as cfx.quantize does by default: observers are put in, it runs on a
few inputs, it is converted. cfx compiles the result; the others read it as an ONNX file with
QuantizeLinear and DequantizeLinear, which cfx.onnx writes. Each engine runs in a process of its
own, and they take turns (see bench/infer.py, whose models, inputs and options these are).

    eager, cfx        the float model
    cfx int8, ...     the quantized model

Results of quantized models are compared with the reference form in eager PyTorch. Rounding differs
by one step here and there, and steps are large: who is further from it than a tenth of the largest
element, and also further than the reference form itself is from the float model, is wrong. `sqnr`
is what quantization costs, in dB between the float model and the reference form. Weights are
random, and real models lose less.

--update writes the table of docs/benchmarks.md.
"""
import argparse
import json
import math
import re
import statistics
import sys
import tempfile
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT / "python"), str(HERE)]
from cfx._bench import turns  # noqa: E402
from engines import models, report  # noqa: E402
from infer import names, numbers, setting_of  # noqa: E402

PAGE = ROOT / "docs/benchmarks.md"
MODELS = ("resnet18", "resnet50", "mobilenet_v3", "bert", "recommender_dense")
TITLES = {**models.TITLES, "recommender_dense": "DeepRecommender"}
FLOAT, INTEGER = ("eager", "cfx"), ("cfx", "ORT", "OpenVINO")
CALIBRATION = 4
MOST = 0.1  # of the largest magnitude


def recommender_dense(batch):
    """Six wide linear layers with SELU between them, as in DeepRecommender."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    sizes = [17768, 512, 512, 1024, 512, 512, 17768]
    layers = [m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), nn.SELU())]
    return nn.Sequential(*layers).eval(), (torch.rand(batch, sizes[0]),)


def make(name, batch):
    return recommender_dense(batch) if name == "recommender_dense" else models.make(name, batch)


def decibels(got, want):
    """Signal over difference of lists of tensors."""
    signal = sum(w.double().pow(2).sum().item() for w in want)
    noise = sum((g.double() - w.double()).pow(2).sum().item() for g, w in zip(got, want))
    return 10 * math.log10(signal / noise) if noise > 0 else math.inf


def distance(got, want):
    """The largest difference, as workers find it: of the largest magnitude of each result."""
    return max(((g - w).abs().max() / w.abs().max()).item() for g, w in zip(got, want))


def others_like(inputs, number):
    """Inputs to calibrate on: the example's elements at other places."""
    return [tuple(x.roll(number * i + i, -1) for x in inputs) for i in range(number)]


def write(name, batch, folder):
    """float/ and int8/ as engines/files.py describes; returns the facts."""
    import numpy
    import torch

    import cfx
    import cfx.onnx
    from cfx import quantize
    from engines import files

    model, inputs = make(name, batch)
    with torch.no_grad():
        captured = cfx.capture(model, *inputs)
        prepared = quantize.prepare_fx(captured, quantize.get_default_qconfig_mapping(), inputs)
        for given in [inputs, *others_like(inputs, CALIBRATION - 1)]:
            prepared(*given)
        quantized = quantize.convert_fx(prepared)
        float_result = files.leaves(model(*inputs))
        result = files.leaves(quantized(*inputs))
        for kind, expected in ("float", float_result), ("int8", result):
            (folder / kind).mkdir()
            numpy.savez(folder / kind / "inputs.npz", **files.arrays(inputs))
            numpy.savez(folder / kind / "expected.npz", **files.arrays(expected))
        torch.save(model, folder / "float/model.pt")
        cfx.save(captured, folder / "float/model.cfx")
        cfx.save(quantized, folder / "int8/model.cfx")
        cfx.onnx.save(quantized, folder / "int8/model.onnx")
        flops = files.count_flops(model, inputs)
    sizes = {kind: (folder / kind / "model.cfx").stat().st_size for kind in ("float", "int8")}
    return {"flops": flops, "sqnr": decibels(result, float_result), "sizes": sizes,
            "lost": distance(result, float_result)}


def measure(name, batch, threads, options):
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room)
        facts = write(name, batch, folder)
        columns = {e: (e, folder / "float", turns.CLOSE) for e in FLOAT}
        most = max(MOST, facts["lost"])
        columns |= {f"{e} int8": (e, folder / "int8", most) for e in INTEGER}
        return {"model": name, "batch": batch, "threads": threads, "facts": facts,
                "engines": turns.measure_columns(columns, setting_of(threads, options))}


# ---- the table ----------------------------------------------------------------------------------


def ratio(cell, over, under):
    """How many times faster `under` is than the fastest of `over`; None if one did not run."""
    times = report.times_of(cell, [*over, under])
    return min(times[e] for e in over if e in times) / times[under] \
        if under in times and any(e in times for e in over) else None


RATIOS = {"over float32": ["cfx"], "over eager": ["eager"],
          "over the better peer": ["ORT int8", "OpenVINO int8"]}


def shown(x, form="{:.2f}x"):
    return "-" if x is None else form.format(x)


def row_of(cell):
    facts = cell["facts"]
    smaller = facts["sizes"]["float"] / facts["sizes"]["int8"]
    return [f"{TITLES[cell['model']]}, {report.title_of(cell['threads'], cell['batch'])}",
            *(report.cell_of(found, report.shown_time) for found in cell["engines"].values()),
            *(shown(ratio(cell, over, "cfx int8")) for over in RATIOS.values()),
            shown(facts["sqnr"], "{:.1f} dB"), shown(smaller)]


def report_of(results):
    cells = results["cells"]
    heads = ["model", *cells[0]["engines"], *RATIOS, "sqnr", "smaller file"]
    how = sorted({found["how"] for cell in cells for found in cell["engines"].values()
                  if "how" in found})  # fmt: skip
    lines = [", ".join(how) + f". Milliseconds, medians of {results['rounds']} rounds, and half of "
             "the distance between the quartiles.", "",
             report.table(heads, [row_of(cell) for cell in cells]), ""]
    for title, over in RATIOS.items():
        found = [x for x in (ratio(cell, over, "cfx int8") for cell in cells) if x]
        if found:
            lines.append(f"- {title}: geometric mean {statistics.geometric_mean(found):.2f}x, "
                         f"least {min(found):.2f}x of {len(found)}")
    return "\n".join(lines)


BEGIN = "<!-- quantized: written by bench/quantize.py --update -->"
END = "<!-- end of quantized -->"


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", help=f"default: {','.join(MODELS)}")
    parser.add_argument("--threads", type=numbers, default=[2])
    parser.add_argument("--batch", type=numbers, default=[1])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.4, help="of a turn")
    parser.add_argument("--least", type=int, default=3, help="runs of a turn, whatever it takes")
    parser.add_argument("--peers", type=Path, help="a folder with onnxruntime and openvino")
    parser.add_argument("--json", type=Path, help="where all samples go")
    parser.add_argument("--show", type=Path, help="the table of what --json has kept")
    parser.add_argument("--update", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    options.models = names(options.models, TITLES, "model") if options.models else MODELS
    options.onednn = None
    return options


def main():
    options = parse()
    warnings.simplefilter("ignore")
    results = {"rounds": options.rounds, "cells": []}
    if options.show:
        results = json.loads(options.show.read_text())
    else:
        for name in options.models:
            for batch in options.batch:
                for threads in options.threads:
                    turns.progress(f"{name}, batch {batch}, {threads} threads:")
                    results["cells"].append(measure(name, batch, threads, options))
                    turns.progress("\n")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    text = report_of(results)
    print(text)
    if options.update:
        page = PAGE.read_text()
        PAGE.write_text(re.sub(f"{BEGIN}.*?{END}", lambda m: f"{BEGIN}\n\n{text}\n\n{END}", page,
                               flags=re.S))


if __name__ == "__main__":
    main()
