"""Time of models with embedding bags and with LSTMs, in float and with integer weights.

    python bench/quantize_bags.py [--rounds 3]

The bags: eight tables of 200,000 rows of 64, 128 bags of 20 rows each, summed up, and a linear
layer; other rows in each run. The LSTMs: one layer, 20 steps, batch 1. Two threads; the least time
of many runs, in milliseconds.
"""
import argparse
import time
import warnings

import torch
import torch.ao.quantization as theirs
from torch.ao.quantization import quantize_fx

import cfx
from cfx import quantize

TABLES, ROWS, COLUMNS, BAGS, EACH = 8, 200_000, 64, 128, 20


class Bags(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = torch.nn.ModuleList(
            torch.nn.EmbeddingBag(ROWS, COLUMNS, mode="sum") for _ in range(TABLES))
        self.top = torch.nn.Linear(TABLES * COLUMNS, 1)

    def forward(self, ids, offsets):
        bags = [t(ids[i], offsets) for i, t in enumerate(self.tables)]
        return self.top(torch.cat(bags, 1))


class Recurrent(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = torch.nn.LSTM(size, size)

    def forward(self, x):
        return self.layer(x)[0]


def compiled(model, x, config=None):
    if config is not None:
        mapping = quantize.QConfigMapping().set_object_type(torch.nn.EmbeddingBag, config)
        mapping.set_object_type(torch.nn.LSTM, config)
        prepared = quantize.prepare_fx(model, mapping, x)
        prepared(*x)
        model = quantize.convert_fx(prepared)
    return cfx.compile(model, *x, threads=2)


def of_torch_ao(model, x, config):
    mapping = theirs.QConfigMapping().set_object_type(torch.nn.EmbeddingBag, config)
    return quantize_fx.convert_fx(quantize_fx.prepare_fx(model, mapping, x))


def least(functions, inputs, rounds):
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(rounds):
        for name, function in functions.items():
            for x in inputs:
                start = time.perf_counter()
                function(*x)
                best[name] = min(best[name], time.perf_counter() - start)
    return "   ".join(f"{name} {seconds * 1e3:.3f}" for name, seconds in best.items())


def bags(rounds):
    model = Bags().eval()
    offsets = torch.arange(0, BAGS * EACH, EACH)
    inputs = [(torch.randint(0, ROWS, (TABLES, BAGS * EACH)), offsets) for _ in range(64)]
    x = inputs[0]
    eight, four = (quantize.float_qparams_weight_only_qconfig,
                   quantize.float_qparams_weight_only_qconfig_4bit)  # fmt: skip
    functions = {
        "PyTorch": model, "torch.ao int8": of_torch_ao(
            model, x, theirs.float_qparams_weight_only_qconfig),
        "torch.ao int4": of_torch_ao(model, x, theirs.float_qparams_weight_only_qconfig_4bit),
        "cfx": compiled(model, x), "cfx int8": compiled(model, x, eight),
        "cfx int4": compiled(model, x, four),
    }  # fmt: skip
    print("bags:", least(functions, inputs, rounds))


def lstm(size, rounds):
    model, x = Recurrent(size).eval(), (torch.randn(20, 1, size),)
    functions = {
        "PyTorch": model,
        "torch.ao": theirs.quantize_dynamic(model, {torch.nn.LSTM}, dtype=torch.qint8),
        "cfx": compiled(model, x),
        "cfx dynamic": compiled(model, x, quantize.default_dynamic_qconfig),
        "cfx int8 weights": compiled(model, x, quantize.int8_weight_only_qconfig),
    }
    print(f"LSTM of {size}:", least(functions, [x] * 20, rounds))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    torch.manual_seed(0)
    torch.set_num_threads(2)
    warnings.simplefilter("ignore")
    with torch.no_grad():
        bags(rounds)
        for size in (256, 512, 1024):
            lstm(size, rounds)


if __name__ == "__main__":
    main()
