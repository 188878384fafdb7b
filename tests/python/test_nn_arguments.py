"""The constructor's arguments of PyTorch's own modules, read back from their attributes: generated
Python (cfx.python_module) makes the same modules."""
import random

import pytest
import torch
from torch import nn

import cfx
import nn_cases
from test_nn_in_c import CLASSES, attributes, in_torch

pytestmark = pytest.mark.skipif(not hasattr(cfx, "python_module"),
                                reason="only generated Python shows the arguments")
CALLABLE = [n for n in CLASSES if n not in ("Sequential", "ModuleList", "ModuleDict")]


class Holder(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part


def captured(part):
    """A GraphModule that calls `part`."""
    graph = cfx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_module("part", (x,)))
    return cfx.GraphModule(Holder(part), graph)


def again(part):
    """The module that the generated program makes in the place of `part`, and the program."""
    text = cfx.python_module(captured(part), "Model")
    names = {}
    exec(compile(text, "generated", "exec"), names)
    return names["Model"]().part, text


@pytest.mark.parametrize("name", CALLABLE)
def test_generated_constructor(name):
    r = random.Random(11)
    for _ in range(12):
        kwargs, inputs = nn_cases.CASES[name](r)
        part = in_torch(name, kwargs)
        made, text = again(part)
        assert type(made) is type(part), text
        assert attributes(made) == attributes(part), text
        want = {k: (v.shape, v.dtype) for k, v in part.state_dict().items()}
        assert {k: (v.shape, v.dtype) for k, v in made.state_dict().items()} == want, text
        made.load_state_dict(part.state_dict())
        try:
            with torch.no_grad():
                want = part(*[x.clone() for x in inputs])
        except (RuntimeError, ValueError):
            continue  # arguments that no input fits
        with torch.no_grad():
            got = made.eval()(*[x.clone() for x in inputs])
        torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
@pytest.mark.parametrize("name", ["Linear", "Conv2d", "BatchNorm2d", "LSTM", "GRUCell",
                                  "MultiheadAttention", "TransformerEncoderLayer", "Transformer"])
def test_types(name, dtype):
    kwargs, _ = nn_cases.CASES[name](random.Random(3))
    made, text = again(in_torch(name, {**kwargs, "dtype": dtype}))
    want = {k: v.dtype for k, v in in_torch(name, {**kwargs, "dtype": dtype}).state_dict().items()}
    assert {k: v.dtype for k, v in made.state_dict().items()} == want, text


def stack(name, **options):
    """An encoder or decoder of two layers, with a norm if that is asked for."""
    layer = getattr(nn, f"Transformer{name}Layer")(4, 2, 8, batch_first=True, dropout=0.0)
    return getattr(nn, f"Transformer{name}")(layer, 2, **options)


@pytest.mark.parametrize("part", [
    stack("Encoder"), stack("Encoder", norm=nn.LayerNorm(4, eps=1e-3), enable_nested_tensor=False),
    stack("Encoder", mask_check=False), stack("Decoder"), stack("Decoder", norm=nn.LayerNorm(4)),
], ids=lambda part: type(part).__name__)  # fmt: skip
def test_modules_as_arguments(part):
    """What the constructor copies is written once, and is as it was."""
    made, text = again(part)
    assert text.count("Layer(") == 1 and str(made) == str(part), text
    assert made.num_layers == 2 and getattr(made, "mask_check", 0) == getattr(part, "mask_check", 0)
    made.load_state_dict(part.state_dict())
    x = torch.randn(2, 3, 4)
    inputs = (x,) if isinstance(part, nn.TransformerEncoder) else (x, x + 1)
    with torch.no_grad():
        torch.testing.assert_close(made.eval()(*inputs), part.eval()(*inputs), rtol=0, atol=0)


def unlike(part):
    part.layers[1] = nn.TransformerEncoderLayer(4, 2, 9, batch_first=True)
    return part


def changed(part, **attributes):
    for name, value in attributes.items():
        setattr(part, name, value)
    return part


def without(part, name):
    delattr(part, name)
    return part


@pytest.mark.parametrize("part", [
    without(nn.Linear(2, 3), "in_features"),
    changed(nn.Linear(2, 3), in_features=4),
    changed(nn.Conv2d(2, 3, 3), weight=nn.Parameter(torch.zeros(5, 2, 3, 3))),
    nn.TransformerEncoderLayer(4, 2, activation=torch.tanh),
], ids=lambda part: type(part).__name__)
def test_what_no_call_makes(part):
    with pytest.raises(TypeError, match=f"torch.nn.{type(part).__name__}"):
        again(part)


def test_a_list_of_unlike_modules():
    """TransformerEncoder makes copies of one layer."""
    with pytest.raises(TypeError, match=r"'part\.layers\.1' .*: the constructor copies"):
        again(unlike(stack("Encoder")))
    with pytest.raises(TypeError, match="'relu' or 'gelu' as its 'activation'"):
        layer = nn.TransformerEncoderLayer(4, 2, activation=torch.tanh)
        again(nn.TransformerEncoder(layer, 1, enable_nested_tensor=False))
