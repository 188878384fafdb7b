"""Programs with nested control flow through every door: generated code and its copies, Interpreter
and Transformer, passes, training, torch.compile, and running in C."""
import copy
import importlib
import operator
import os
import pickle

import pytest
import random_exec
import random_regions
import torch
from random_exec import image

import cfx

CHUNKS = range(20 if os.environ.get("CFX_FULL") == "1" else 2)


def result_of(call):
    """What a call gives, as text; or the kind of error."""
    try:
        return image(call())
    except (ZeroDivisionError, OverflowError) as error:
        return type(error).__name__


def programs(chunk, n=60):
    for seed in range(chunk * n, (chunk + 1) * n):
        module = random_regions.make(seed)
        wanted = [result_of(lambda: random_exec.interpret(module.graph, module, inputs))
                  for inputs in random_regions.INPUTS]  # fmt: skip
        yield seed, module, wanted


def results(module):
    return [result_of(lambda: module(*inputs)) for inputs in random_regions.INPUTS]


@pytest.mark.parametrize("chunk", CHUNKS)
def test_generated_code(chunk, capfd):
    for seed, module, wanted in programs(chunk, 150):
        assert results(module) == wanted, f"seed {seed}"


@pytest.mark.parametrize("chunk", CHUNKS)
def test_copies_have_the_same_code(chunk, tmp_path):
    for seed, module, _ in programs(chunk, 40):
        graph = module.graph
        copies = {
            "copy": copy.copy(module), "deepcopy": copy.deepcopy(module),
            "pickle": pickle.loads(pickle.dumps(module)),
            "text": cfx.GraphModule(module, cfx.parse(cfx.text(graph))),
        }  # fmt: skip
        for how, other in copies.items():
            assert other.code == module.code, f"seed {seed}, {how}"
        again = cfx.Graph()
        again.output(again.graph_copy(graph, {}))
        assert again.python_code("self").src == module.code, f"seed {seed}, graph_copy"
        with module.graph.on_generate_code(lambda _: lambda lines: lines):
            assert graph.python_code("self").src == module.code, f"seed {seed}, transformed"


@pytest.mark.filterwarnings("ignore:Was not able to save")
def test_to_folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for seed, module, wanted in programs(0, 6):
        module.to_folder(tmp_path / f"folder_{seed}", "Net")
        other = importlib.import_module(f"folder_{seed}").Net()
        assert results(other) == wanted, f"seed {seed}"
