"""Each integer operator against the part of the reference form that it stands for.

Between a whole compiled model and its reference form, differences of one step add up from layer to
layer. Here every value that is quantized is computed twice from the same integers, those of the
reference form's run: by the reference form, and by the integer operators that compiling makes of
the calls in between. They may differ by one step.
"""
import copy

import pytest
import torch
from quantize_models import MODELS

import cfx
from cfx import quantize
from cfx.quantize import convert_fx, prepare_fx, prepare_qat_fx

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def is_quantize(node):
    return node.op == "call_function" and "cfx.ops.quantize_per_tensor" in str(node.target)


def leaves_before(node):
    """The inputs, and what is quantized, that `node` is computed from."""
    found, seen, todo = [], set(), list(node.all_input_nodes)
    while todo:
        n = todo.pop()
        if n in seen:
            continue
        seen.add(n)
        if n.op == "placeholder" or is_quantize(n):
            found.append(n)
        else:
            todo += n.all_input_nodes
    return found, seen


def part_before(node):
    """A graph of what `node` computes from the integers that were quantized before it, which become
    its inputs; and these."""
    leaves, needed = leaves_before(node)
    graph = cfx.Graph()
    copies = {leaf: graph.placeholder(leaf.name) for leaf in leaves}
    for n in node.graph.nodes:
        if n is node or (n in needed and n not in copies):
            copies[n] = graph.node_copy(n, copies.__getitem__)
    graph.output(copies[node])
    return graph, leaves


def values_of(root, nodes, inputs):
    """What a run of the whole reference form gives for these nodes."""
    graph = copy.deepcopy(root.graph)
    output = graph.output_node()
    names = {n.name: n for n in graph.nodes}
    output.args = (tuple(names[n.name] for n in nodes),)
    return dict(zip(nodes, cfx.lower(cfx.GraphModule(root, graph))(*inputs), strict=True))


def steps_apart(converted, inputs):
    """For each value that is quantized: the most steps apart, how many elements of how many differ,
    and the operators that compute it."""
    lowered = cfx.lower(converted)
    root = cfx.GraphModule(dict(lowered.state.given), lowered.graph)
    nodes = [n for n in root.graph.nodes if is_quantize(n)]
    values = values_of(root, nodes, inputs)
    given = [n for n in root.graph.nodes if n.op == "placeholder"]
    values.update(zip(given, inputs, strict=True))
    for node in nodes:
        graph, leaves = part_before(node)
        part = cfx.GraphModule(root, graph)
        rows = copy.deepcopy(part)
        cfx.passes.run(rows, "integers")
        names = [n.target.__name__ for n in rows.graph.nodes if n.op == "call_function"]
        got = cfx.compile(part)(*[values[leaf] for leaf in leaves])
        off = (got.int() - values[node].int()).abs()
        yield node.name, int(off.max()), int((off > 0).sum()), off.numel(), names


def check(converted, inputs, least):
    """Every value is at most one step off, few elements are, and so many integer operators ran."""
    count = different = elements = 0
    for name, most, n, of, names in steps_apart(converted, inputs):
        assert most <= 1, (name, names)
        count += sum(row.startswith("integer_") for row in names)
        different, elements = different + n, elements + of
    assert count >= least
    assert different <= elements / 500


def calibrated(model, inputs, rules=None, prepare=prepare_fx):
    prepared = prepare(model, rules or quantize.get_default_qconfig_mapping("onednn"), inputs)
    with torch.no_grad():
        prepared(*inputs)
    return prepared


STATIC = {"mobile_se": 10, "residual": 5, "inception": 8, "functional": 4, "transformer_block": 8,
          "activations": 4, "transposed": 1, "operators": 4, "resnet18": 25, "mobilenet_v3": 90,
          "unet": 20, "convnext": 20, "vit_b_16": 12, "bert": 20, "gpt2": 30}  # fmt: skip


@pytest.mark.parametrize("name", STATIC)
def test_each_operator_is_within_a_step(name):
    model, inputs = MODELS[name]()
    made = cfx.capture(model, *inputs) if name in ("bert", "gpt2") else model
    check(convert_fx(calibrated(made, inputs)), inputs, STATIC[name])


@pytest.mark.parametrize("name", ["mobile_se", "residual"])
def test_each_operator_of_a_trained_model_is_within_a_step(name):
    model, inputs = MODELS[name]()
    rules = quantize.get_default_qat_qconfig_mapping("onednn")
    prepared = prepare_qat_fx(model.train(), rules, inputs).train()
    optimizer = torch.optim.SGD(prepared.parameters(), 0.01)
    for _ in range(3):
        optimizer.zero_grad()
        prepared(*inputs).square().mean().backward()
        optimizer.step()
    check(convert_fx(prepared.eval()), inputs, STATIC[name])


def test_each_operator_behind_quantized_embeddings_is_within_a_step():
    model, inputs = MODELS["bert"]()
    rules = quantize.get_default_qconfig_mapping("onednn")
    rules.set_object_type(torch.nn.Embedding, quantize.float_qparams_weight_only_qconfig)
    check(convert_fx(calibrated(cfx.capture(model, *inputs), inputs, rules)), inputs,
          STATIC["bert"])
