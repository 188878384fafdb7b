"""Programs with nested control flow through every door: generated code and its copies, Interpreter
and Transformer, passes, training, torch.compile, and running in C."""
import copy
import importlib
import math
import operator
import os
import pickle

import pytest
import random_exec
import random_regions
import torch
from random_exec import image

import cfx
from cfx.passes.dialect.common.cse_pass import CSEPass
from cfx.passes.graph_drawer import FxGraphDrawer
from cfx.passes.shape_prop import ShapeProp
from cfx.passes.split_module import split_module

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


# ---- passes and interpreters ------------------------------------------------------------------


def without_dead_code(module):
    module.graph.eliminate_dead_code()
    module.graph.lint()
    module.recompile()
    return module


def without_unused_modules(module):
    module.add_submodule("extra.inner", torch.nn.Linear(2, 2))
    module.delete_all_unused_submodules()
    assert not hasattr(module, "extra")
    return module


def split_in_parts(module):
    number = {node: i // 4 for i, node in enumerate(module.graph.nodes)}
    return split_module(module, module, number.__getitem__)


def with_line(module):
    module.graph.on_generate_code(lambda _: lambda lines: ["pass\n", *lines])
    module.recompile()
    return module


def good_programs(n):
    """Programs that do not raise, one after another, with their inputs and results."""
    for seed, module, wanted in programs(0, n):
        if all(" " in text for text in wanted):
            yield seed, module, wanted


@pytest.mark.parametrize("run", [
    lambda module: cfx.Interpreter(module).run,
    lambda module: cfx.Transformer(module).transform(),
    lambda module: ShapeProp(module).propagate,
    lambda module: without_dead_code(module),
    lambda module: without_unused_modules(module),
    lambda module: split_in_parts(module),
    lambda module: CSEPass()(module).graph_module,
    lambda module: with_line(module),
], ids="Interpreter Transformer ShapeProp dce unused split cse code".split())  # fmt: skip
def test_passes(run):
    for seed, module, wanted in good_programs(25):
        other = run(module)
        got = [result_of(lambda: other(*inputs)) for inputs in random_regions.INPUTS]
        assert got == wanted, f"seed {seed}"


def region(names, make):
    graph = cfx.Graph()
    graph.output(make(graph, *map(graph.placeholder, names)))
    return graph


def branching():
    """A module that calls `layer` and reads `weight` in a branch only."""
    graph = cfx.Graph()
    p, x = graph.placeholder("p"), graph.placeholder("x")

    def then(g, x):
        y = g.call_function(torch.relu, (g.call_module("layer", (x,)),))
        return (g.call_function(torch.mul, (y, g.get_attr("weight"))),)

    branches = region(["x"], then), region(["x"], lambda g, x: (g.call_function(torch.relu, (x,)),))
    cond = graph.call_function(cfx.cond, (p, *branches, (x,)))
    graph.output(graph.call_function(operator.getitem, (cond, 0)))
    return cfx.GraphModule(random_regions.Net(), graph)


def test_a_module_used_in_a_region_stays():
    module = branching()
    assert set(module.state_dict()) == {"weight", "layer.weight", "layer.bias"}
    module.delete_all_unused_submodules()
    assert hasattr(module, "layer")


def test_a_transformer_sees_regions():
    class Sigmoid(cfx.Transformer):
        def call_function(self, target, args, kwargs):
            target = torch.sigmoid if target is torch.relu else target
            return super().call_function(target, args, kwargs)

    module = branching()
    other = Sigmoid(module).transform()
    assert "relu" not in other.code and other.code.count("torch.sigmoid") == 2
    x = random_regions.INPUTS[0][0]
    assert torch.equal(other(False, x), x.sigmoid())
    assert torch.equal(other(True, x), module.layer(x).sigmoid() * module.weight)


def test_an_interpreter_sees_regions():
    names = []

    class Names(cfx.Interpreter):
        def run_node(self, n):
            names.append(n.name)
            return super().run_node(n)

    Names(branching()).run(True, random_regions.INPUTS[0][0])
    assert names == ["p", "x", "cond", "x", "layer", "relu", "weight", "mul", "output", "getitem",
                     "output"]  # fmt: skip


def test_rewriting_in_regions():
    """A pattern is looked for in each region by itself."""
    module = branching()
    found = cfx.replace_pattern(module, lambda x: torch.relu(x), lambda x: torch.tanh(x))
    assert len(found) == 2 and "relu" not in module.code
    x = random_regions.INPUTS[0][0]
    assert torch.equal(module(False, x), x.tanh())


def test_editing_a_region():
    module = branching()
    (cond,) = module.graph.find_nodes(op="call_function", target=cfx.cond)
    inner = cond.args[1]
    (relu,) = inner.find_nodes(op="call_function", target=torch.relu)
    with inner.inserting_after(relu):
        neg = inner.call_function(operator.neg, (relu,))
    relu.replace_all_uses_with(neg, delete_user_cb=lambda user: user is not neg)
    assert list(relu.users) == [neg] and [user.name for user in neg.users] == ["mul"]
    module.graph.lint()
    module.recompile()
    x = random_regions.INPUTS[0][0]
    assert torch.equal(module(True, x), -module.layer(x).relu() * module.weight)


def test_showing_regions(capsys):
    module = branching()
    module.graph.print_tabular()
    table = capsys.readouterr().out
    assert "cond" in table and "graph[" in table
    text = module.print_readable(print_output=False)
    assert "if p:" in text and "self.layer(x)" in text
    dot = FxGraphDrawer(module, "net").get_dot_graph().to_string()
    assert "cond" in dot


# ---- training ---------------------------------------------------------------------------------


def tensors(value):
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in tensors(item)]
    return [value] if isinstance(value, torch.Tensor) and value.requires_grad else []


def gradients(module, run, inputs):
    """Of what a run gives, with respect to inputs and parameters; None if there are none."""
    module.zero_grad()
    inputs = [x.clone().requires_grad_() if isinstance(x, torch.Tensor) else x for x in inputs]
    losses = [(t * t).sum() for t in tensors(run(*inputs))]
    if not losses:
        return None
    sum(losses).backward()
    leaves = [x for x in inputs if isinstance(x, torch.Tensor)] + list(module.parameters())
    return image([leaf.grad for leaf in leaves])


def test_gradients():
    with_gradients = 0
    for seed, module, _ in good_programs(50):
        for inputs in random_regions.INPUTS:
            wanted = gradients(module, lambda *a: random_exec.interpret(module.graph, module, a),
                               inputs)
            assert gradients(module, module, inputs) == wanted, f"seed {seed}"
            with_gradients += wanted is not None
    assert with_gradients > 50


@pytest.mark.filterwarnings("ignore")
def test_torch_compile():
    for seed, module, wanted in good_programs(8):
        torch._dynamo.reset()
        assert results(torch.compile(module, backend="eager")) == wanted, f"seed {seed}"


def test_module_protocol():
    module = branching().train(False).to(torch.float64)
    assert not module.layer.training and module.weight.dtype == torch.float64
    other = branching()
    other.load_state_dict(module.float().state_dict())
    x = random_regions.INPUTS[0][0]
    assert torch.equal(other(True, x), module(True, x))


# ---- in C -------------------------------------------------------------------------------------


def close(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.allclose(a, b, rtol=1e-4, atol=1e-5)
    if isinstance(a, (list, tuple)):
        return isinstance(b, type(a)) and len(a) == len(b) and all(map(close, a, b))
    return type(a) is type(b) and (a == b or math.isclose(a, b, rel_tol=1e-5))


@pytest.mark.parametrize("chunk", CHUNKS)
def test_lowered(chunk):
    for seed, module, wanted in programs(chunk, 100):
        lowered = cfx.lower(module)
        for inputs, text in zip(random_regions.INPUTS, wanted):
            if " " in text:
                assert close(module(*inputs), lowered(*inputs)), f"seed {seed}"
            else:
                with pytest.raises((ZeroDivisionError, ValueError, OverflowError)):
                    lowered(*inputs)
