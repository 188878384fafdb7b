"""What quantization costs: models in int8 by cfx and by torch.ao, with the same configuration.

    python bench/quantize_quality.py [--models LIST] [--small] [--kinds LIST] [--backend x86]
                                     [--samples 4]

A row for each model and kind. Decibels are signal over noise against the float model, on inputs
that were not calibrated on; weights are random. Kinds are static and dynamic, and embeddings,
which is static with the weights of embeddings in int8, too.

    torch.ao   its FX mode: the reference form in PyTorch
    cfx        the reference form in PyTorch
    compiled   cfx.compile, in integers
    corrected  likewise, with correct_bias on the inputs that were calibrated on
    bytes      of the .cfx files, in float and in int8, and how many times smaller that is
    cfx run    the file in the command, without Python, against cfx.runtime.load of it in Python
"""
import argparse
import copy
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT / "python"), str(HERE)]

import numpy  # noqa: E402
import torch  # noqa: E402
from engines import models, report  # noqa: E402
from engines.files import leaves  # noqa: E402
from quantize import decibels  # noqa: E402
from torch.ao.quantization import QConfigMapping, default_dynamic_qconfig  # noqa: E402
from torch.ao.quantization import float_qparams_weight_only_qconfig  # noqa: E402
from torch.ao.quantization import get_default_qconfig_mapping, quantize_fx as ao  # noqa: E402
from torch.ao.quantization.fx.tracer import QuantizationTracer  # noqa: E402

import cfx  # noqa: E402
from cfx import quantize  # noqa: E402

MODELS = ("resnet50", "bert", "mlp")
COMMAND = ROOT / "build/cfx"


def make(name, small):
    if not small:
        return models.make(name, 1)
    model, inputs = models.zoo.make(name, small=True)
    models.settle(model)
    return model, inputs


def others_like(inputs, seed):
    """Inputs of the same kinds and sizes."""
    torch.manual_seed(seed)
    return tuple(torch.randn_like(x) if x.is_floating_point() else
                 x.flatten()[torch.randint(0, x.numel(), x.shape)] if x.max() > 1 else x
                 for x in inputs)


def mapping_of(kind, backend):
    if kind == "dynamic":
        return QConfigMapping().set_global(default_dynamic_qconfig)
    mapping = get_default_qconfig_mapping(backend)
    if kind == "embeddings":
        mapping.set_object_type(torch.nn.Embedding, float_qparams_weight_only_qconfig)
    return mapping


def by_torch(model, mapping, samples):
    QuantizationTracer.proxy_buffer_attributes = True  # buffers that are sliced by sizes
    prepared = ao.prepare_fx(copy.deepcopy(model), mapping, samples[0])
    for given in samples:
        prepared(*given)
    return ao._convert_to_reference_decomposed_fx(prepared)


def prepared_by_cfx(model, mapping, samples):
    prepared = quantize.prepare_fx(cfx.capture(model, *samples[0]), mapping, samples[0])
    for given in samples:
        prepared(*given)
    return prepared


def run_alone(path, inputs, room):
    """The results of the command, which has no Python."""
    for i, x in enumerate(inputs):
        numpy.save(room / f"x{i}.npy", x.numpy())
    given = [part for i in range(len(inputs)) for part in ("--input", room / f"x{i}.npy")]
    made = room / "y.npz"
    subprocess.run([COMMAND, "run", *given, "--output", made, path], check=True)
    return list(numpy.load(made).values())


def row_of(name, kind, options):
    model, inputs = make(name, options.small)
    mapping = mapping_of(kind, options.backend)
    samples = [others_like(inputs, i) for i in range(options.samples)]
    unseen = [others_like(inputs, 1000 + i) for i in range(options.samples)]
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        prepared = prepared_by_cfx(model, mapping, samples)
        ours = quantize.convert_fx(prepared)
        cfx.save(cfx.capture(model, *inputs), room / "float.cfx")
        cfx.save(ours, room / "int8.cfx")
        sizes = [(room / file).stat().st_size for file in ("float.cfx", "int8.cfx")]
        alone = run_alone(room / "int8.cfx", unseen[0], room)
        loaded = leaves(cfx.runtime.load(room / "int8.cfx")(*unseen[0]))
    same = all(numpy.array_equal(a, b.numpy()) for a, b in zip(alone, loaded, strict=True))
    quantized = {"torch.ao": by_torch, "cfx": lambda *given: ours,
                 "compiled": lambda *given: cfx.compile(ours),
                 "corrected": lambda *given: cfx.compile(quantize.convert_fx(
                     prepared, correct_bias=True, samples=samples))}  # fmt: skip
    wanted = [leaves(model(*given)) for given in unseen]
    found = {}
    for title, made in quantized.items():
        try:
            gm = made(model, mapping, samples)
            got = [leaves(gm(*given)) for given in unseen]
        except (RuntimeError, NotImplementedError) as error:
            print(f"{title}: {error}".splitlines()[0], file=sys.stderr)
            found[title] = "none"
        else:
            found[title] = f"{decibels(sum(got, []), sum(wanted, [])):.2f} dB"
    return [models.TITLES[name], kind, *found.values(),
            *(f"{size:,}" for size in sizes), f"{sizes[0] / sizes[1]:.2f}x",
            "equal" if same else "differs"]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--kinds", default="static,dynamic")
    parser.add_argument("--backend", default="x86", help="whose default configuration")
    parser.add_argument("--samples", type=int, default=4, help="to calibrate on, and to judge by")
    parser.add_argument("--small", action="store_true", help="few layers and small images")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = ["model", "kind", "torch.ao", "cfx", "compiled", "corrected", "float bytes",
             "int8 bytes", "smaller", "cfx run"]
    with torch.no_grad():
        rows = [row_of(name, kind, options) for name in options.models.split(",")
                for kind in options.kinds.split(",")]
    print(report.table(heads, rows))


if __name__ == "__main__":
    main()
