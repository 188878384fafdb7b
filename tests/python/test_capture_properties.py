"""Random programs captured by torch.fx and by cfx: the same graph, code and results.

A failure names its seed; `python tests/python/test_capture_properties.py SEED` shows the program.
CFX_FULL=1 tries ten times as many.
"""
import collections
import copy
import functools
import os
import re
import sys
import types
import warnings

import pytest

torch = pytest.importorskip("torch")
import torch.fx
from oddities import clean, stack_of
from random_programs import HEADER, STATEMENTS, lines_of, program

import cfx

SEEDS = 3_000 if os.environ.get("CFX_FULL") == "1" else 300
CHUNKS = 4
NAMES = {"torch.fx": torch.fx, "cfx": cfx}


@functools.cache
def surroundings(library):
    """The Python module of the programs, which wrapped functions belong to."""
    python = types.ModuleType("random_program")
    exec(HEADER.format(fx=library), vars(python))
    return vars(python)


def load(source, library):
    exec(source, surroundings(library))
    return surroundings(library)["Program"]


def concrete_args(given, fx):
    return {k: {"u": fx.PH} if v == {"u": "PH"} else v for k, v in given.items()}


def flat(result):
    """A result as text; tensors exactly."""
    if isinstance(result, torch.Tensor):
        return f"{result.shape} {result.tolist()}"
    if isinstance(result, (tuple, list)):
        return f"{type(result).__name__} {[flat(r) for r in result]}"
    if isinstance(result, dict):
        return str({k: flat(v) for k, v in result.items()})
    if isinstance(result, slice):
        return f"slice {flat((result.start, result.stop, result.step))}"
    return repr(result)


def observe(seed, library):
    """What comes of a program: texts and results, or the class of the exception at each step."""
    source, given = program(seed)
    fx = NAMES[library]
    model = load(source, library)().eval()
    x = torch.linspace(-2, 2, 12).reshape(3, 4)
    values = {**given, "opts": {"u": 2.0} if given["opts"] == {"u": "PH"} else given["opts"]}
    seen = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            seen["eager"] = flat(model(copy.deepcopy(x), y=1.0, **values))
        except Exception as e:
            seen["eager"] = type(e).__name__
        try:
            tracer = fx.Tracer()
            graph = tracer.trace(model, concrete_args(given, fx))
            seen["graph"] = clean(graph)
            gm = fx.GraphModule(tracer.root, graph)
            seen["scopes"] = [(n.name, stack_of(n)) for n in graph.nodes]
            seen["code"] = clean(gm.code)
            seen["result"] = flat(gm(copy.deepcopy(x), 1.0, *values.values()))
            seen["interpreted"] = flat(fx.Interpreter(gm).run(x, 1.0, *values.values()))
            if given["opts"] == 0:
                seen["again"] = clean(fx.symbolic_trace(gm).graph)
            seen["copied"] = clean(fx.Transformer(gm).transform().code)
        except Exception as e:
            seen["error"] = type(e).__name__
    return seen


@pytest.mark.parametrize("first", range(CHUNKS))
def test_programs(first):
    outcomes = collections.Counter()
    for seed in range(first, SEEDS, CHUNKS):
        theirs, ours = observe(seed, "torch.fx"), observe(seed, "cfx")
        for key in {**theirs, **ours}:
            assert ours.get(key) == theirs.get(key), f"seed {seed}: {key}"
        outcomes[ours.get("error", "fine")] += 1
        if "result" in ours and len(ours["eager"]) > 20:
            assert ours["result"] == ours["eager"], f"seed {seed}: not what the program gives"
    print(outcomes)
    assert outcomes["fine"] > sum(outcomes.values()) / 2  # most programs can be traced


def test_statements_all_occur():
    text = "".join(program(seed)[0] for seed in range(300))
    for line in lines_of(STATEMENTS):
        parts = re.split(r"\{[oabcif]\}", line.replace("{{", "{").replace("}}", "}"))
        assert re.search(".*?".join(map(re.escape, parts)), text), line


if __name__ == "__main__":
    for seed in map(int, sys.argv[1:]):
        print(*program(seed))
        for library in NAMES:
            print(f"---- {library}", *observe(seed, library).values(), sep="\n")
