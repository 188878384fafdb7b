"""Writes what engines read, for one model and one batch size, into a folder:

    model.pt      the module, for PyTorch
    model.onnx    for ONNX Runtime and OpenVINO
    model.cfx     for cfx
    inputs.npz    the inputs; expected.npz: what eager PyTorch returns for them
    facts.json    floating-point operations of one run, parameters, who wrote the ONNX file

    python -m engines.files MODEL BATCH FOLDER
"""
import json
import sys
import warnings
from pathlib import Path

import numpy
import torch
from torch.utils.flop_counter import FlopCounterMode

import cfx
import cfx.onnx

from . import models


def leaves(result):
    """The tensors of a result, in order."""
    return [x for x in torch.utils._pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]


def arrays(tensors):
    return {f"a{i}": x.detach().numpy() for i, x in enumerate(tensors)}


def count_flops(model, inputs):
    with FlopCounterMode(display=False) as counter:
        model(*inputs)
    return counter.get_total_flops()


def write_onnx(model, captured, inputs, path):
    """By cfx if it can, else by torch; returns which."""
    try:
        cfx.onnx.save(captured, path)
        return "cfx"
    except Exception as error:
        print(f"cfx.onnx.save: {error}", file=sys.stderr)
    torch.onnx.export(model, inputs, path, dynamo=True, external_data=False, verbose=False)
    return "torch"


def write(name, batch, folder):
    model, inputs = models.make(name, batch)
    with torch.no_grad():
        numpy.savez(folder / "inputs.npz", **arrays(inputs))
        numpy.savez(folder / "expected.npz", **arrays(leaves(model(*inputs))))
        facts = {"flops": count_flops(model, inputs),
                 "parameters": sum(p.numel() for p in model.parameters())}
        torch.save(model, folder / "model.pt")
        captured = cfx.capture(model, *inputs)
        cfx.save(captured, folder / "model.cfx")
        facts["onnx"] = write_onnx(model, captured, inputs, folder / "model.onnx")
    (folder / "facts.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    write(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
