"""Modules of torch.nn that C makes, against PyTorch: signatures, attributes, weights by name and in
order, what they are initialised with, what they compute, and the constructor's arguments that are
read back from them. tests/c_models/nn_probe.c makes them."""
import inspect
import math
import os
import random
import re
import subprocess
import warnings
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

import nn_cases
from cfx import load_tensors

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
PROBE = BUILD / "tests/c_models/nn_probe"
ROW = re.compile(r'^CFX_NN\((\w+), (\w+),\s*((?:"[^"]*"\s*)+),\s*(\w+)\)', re.M)
ROWS = {m[1]: "".join(re.findall(r'"([^"]*)"', m[3]))
        for m in ROW.finditer((ROOT / "include/cfx/nn.def").read_text())}
CLASSES = [name for name, schema in ROWS.items() if "Module " not in schema]
EACH = 8  # calls of each class

pytestmark = pytest.mark.skipif(not PROBE.exists(), reason="needs make programs")


# ---- asking C ------------------------------------------------------------------------------------

class Made:
    """What C says of a module."""

    def __init__(self, folder, i):
        self.error, self.noargs, self.args, self.attributes = None, None, [], {}
        self.classes, self.weights, self.names = {}, [], []
        for line in (folder / f"{i}.txt").read_text().splitlines():
            kind, _, rest = line.partition(" ")
            if kind in ("error", "noargs"):
                setattr(self, kind, rest)
                continue
            first, _, second = rest.partition(" ")
            if kind == "class":
                self.classes["" if first == "-" else first] = second
            elif kind == "attr":
                self.attributes[first] = eval(second, {"inf": math.inf})
            elif kind == "state":
                self.names.append(first)
            elif kind == "arg":
                self.args.append((first, *second.split(" ", 1)))
            else:
                self.weights.append((kind, first, second))
        state = folder / f"{i}.safetensors"
        self.state = load_tensors(state) if state.exists() else {}
        self.state = {k: torch.from_dlpack(v).clone() for k, v in self.state.items()}
        self.outputs = []
        while (out := folder / f"{i}.out{len(self.outputs)}.npy").exists():
            self.outputs.append(torch.from_numpy(numpy.load(out)))


def word(value, folder, name):
    if isinstance(value, torch.Tensor):
        numpy.save(folder / name, value.numpy())
        return f"@{folder / name}"
    if isinstance(value, torch.dtype):
        return f"dtype:{str(value)[6:]}"
    if isinstance(value, str):
        return f"'{value}"
    if isinstance(value, (tuple, list)):
        return f"({','.join(map(repr, value))},)"
    return repr(value)


def ask(folder, calls):
    """[(class, arguments, inputs)] -> [Made]"""
    lines = []
    for i, (name, kwargs, inputs) in enumerate(calls):
        words = [f"{k}={word(v, folder, f'{i}.{k}.npy')}" for k, v in kwargs.items()]
        lines.append(" ".join([name, *words]))
        for j, x in enumerate(inputs):
            numpy.save(folder / f"{i}.in{j}.npy", x.numpy())
    (folder / "calls.txt").write_text("\n".join(lines) + "\n")
    subprocess.run([PROBE, folder], check=True, timeout=300)
    return [Made(folder, i) for i in range(len(calls))]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """{class: [(arguments, inputs, Made)]}"""
    r = random.Random(7)
    calls = [(name, *nn_cases.CASES[name](r)) for name in CLASSES for _ in range(EACH)]
    found = ask(tmp_path_factory.mktemp("made"), calls)
    by_class = {}
    for (name, kwargs, inputs), m in zip(calls, found):
        by_class.setdefault(name, []).append((kwargs, inputs, m))
    return by_class


def in_torch(name, kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated arguments are arguments
        return getattr(nn, name)(**kwargs).eval()


# ---- the table -----------------------------------------------------------------------------------

DOCUMENTED = {  # inspect only sees (*args, **kwargs)
    "RNN": "input_size hidden_size num_layers=1 nonlinearity='tanh' bias=True batch_first=False "
           "dropout=0.0 bidirectional=False dtype=None",
    "LSTM": "input_size hidden_size num_layers=1 bias=True batch_first=False dropout=0.0 "
            "bidirectional=False proj_size=0 dtype=None",
    "GRU": "input_size hidden_size num_layers=1 bias=True batch_first=False dropout=0.0 "
           "bidirectional=False dtype=None",
}


def declared(name):
    if name in DOCUMENTED:
        items = [item.partition("=") for item in DOCUMENTED[name].split()]
        return [(k, eval(v) if e else inspect.Parameter.empty) for k, e, v in items]
    found = []
    for p in inspect.signature(getattr(nn, name)).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.name == "device":
            continue
        default = "relu" if p.name == "activation" else p.default
        found.append((p.name, default))
    return found


def in_schema(schema):
    found = []
    for item in re.findall(r"(?:[^,']|'[^']*')+", schema[1:-1]):
        if item.strip() == "*" or not item.strip():
            continue
        head, equals, default = item.strip().partition("=")
        found.append((head.split()[-1], eval(default) if equals else inspect.Parameter.empty))
    return found


@pytest.mark.parametrize("name", [n for n in ROWS if n not in ("ModuleList", "ModuleDict")])
def test_signature(name):
    assert in_schema(ROWS[name]) == declared(name)


def test_every_class_is_tried():
    assert set(nn_cases.CASES) == set(CLASSES)


# ---- modules -------------------------------------------------------------------------------------

OWN = set(vars(nn.Identity()))
# What C keeps otherwise: the activation of a transformer's layer by its name; and what only serves
# PyTorch's fast paths is not there.
OTHERWISE = {"activation", "activation_relu_or_gelu", "use_nested_tensor", "enable_nested_tensor",
             "mask_check"}


def tuples(value):
    return tuple(value) if isinstance(value, list) else value


def attributes(module):
    found = {}
    for path, m in module.named_modules():
        for name, value in vars(m).items():
            if name in OWN or name.startswith(("_flat", "_all_w")) or name in OTHERWISE:
                continue
            if not isinstance(value, torch.Tensor):
                found[f"{path}.{name}" if path else name] = tuples(value)
    return found


@pytest.mark.parametrize("name", CLASSES)
def test_attributes(name, made):
    for kwargs, _, m in made[name]:
        want = attributes(in_torch(name, kwargs))
        assert m.error is None, (kwargs, m.error)
        got = {k: v for k, v in m.attributes.items() if k.split(".")[-1] not in OTHERWISE}
        assert got == want, kwargs
        assert m.classes[""] == f"torch.nn.{name}"


@pytest.mark.parametrize("name", CLASSES)
def test_parts(name, made):
    for kwargs, _, m in made[name]:
        want = [path for path, _ in in_torch(name, kwargs).named_modules()]
        assert list(m.classes) == want, kwargs


@pytest.mark.parametrize("name", CLASSES)
def test_weights(name, made):
    for kwargs, _, m in made[name]:
        module = in_torch(name, kwargs)
        want = {k: (v.shape, v.dtype) for k, v in module.state_dict().items()}
        got = {k: (v.shape, v.dtype) for k, v in m.state.items()}
        assert got == want, kwargs
        assert m.names == list(want), kwargs
        parameters = [n for kind, n, value in m.weights if kind == "parameter" and value != "None"]
        assert parameters == [n for n, _ in module.named_parameters()], kwargs


@pytest.mark.parametrize("name", CLASSES)
def test_outputs(name, made):
    for kwargs, inputs, m in made[name]:
        if not inputs:
            continue
        module = in_torch(name, kwargs)
        module.load_state_dict(m.state)
        try:
            with torch.no_grad():
                want = module(*[x.clone() for x in inputs])
        except (RuntimeError, ValueError):
            assert m.error, (kwargs, "PyTorch refuses it")
            continue
        assert m.error is None, (kwargs, m.error)
        want = torch.utils._pytree.tree_leaves(want)
        assert len(m.outputs) == len([w for w in want if w is not None])
        for y, w in zip(m.outputs, want):
            torch.testing.assert_close(y, w, equal_nan=True, msg=lambda text: f"{kwargs}\n{text}")


# ---- arguments, read back ------------------------------------------------------------------------

def call_of(name, m):
    places = [value for how, _, value in m.args if how == "place"]
    keywords = [f"{param}={value}" for how, param, value in m.args if how == "keyword"]
    return f"nn.{name}({', '.join(places + keywords)})"


@pytest.mark.parametrize("name", CLASSES)
def test_arguments(name, made):
    for kwargs, _, m in made[name]:
        tensors = {k: v for k, v in kwargs.items()
                   if isinstance(v, torch.Tensor) and k != "_weight"}
        m.args = [(how, param, "tensors[%r]" % param if param in tensors else value)
                  for how, param, value in m.args]
        text = call_of(name, m)
        again = eval(text, {"nn": nn, "torch": torch, "tensors": tensors})
        want = in_torch(name, kwargs)
        assert attributes(again) == attributes(want), text
        shapes = {k: (v.shape, v.dtype) for k, v in again.state_dict().items()}
        assert shapes == {k: (v.shape, v.dtype) for k, v in want.state_dict().items()}, text
        if len(m.args) > len(kwargs):
            pytest.fail(f"more arguments than there were: {text}")


# ---- what they are initialised with --------------------------------------------------------------

BIG = [
    ("Linear", dict(in_features=200, out_features=300)),
    ("Bilinear", dict(in1_features=50, in2_features=20, out_features=40)),
    ("Conv2d", dict(in_channels=32, out_channels=64, kernel_size=3, groups=2)),
    ("Conv1d", dict(in_channels=32, out_channels=600, kernel_size=5)),
    ("ConvTranspose2d", dict(in_channels=32, out_channels=64, kernel_size=3, groups=2)),
    ("Embedding", dict(num_embeddings=300, embedding_dim=50, padding_idx=7)),
    ("EmbeddingBag", dict(num_embeddings=300, embedding_dim=50)),
    ("LSTM", dict(input_size=40, hidden_size=90, num_layers=2, bidirectional=True, proj_size=30)),
    ("GRU", dict(input_size=40, hidden_size=90)), ("RNN", dict(input_size=90, hidden_size=100)),
    ("LSTMCell", dict(input_size=40, hidden_size=90)),
    ("MultiheadAttention", dict(embed_dim=400, num_heads=4, add_bias_kv=True)),
    ("MultiheadAttention", dict(embed_dim=120, num_heads=4, kdim=70, vdim=90)),
    ("TransformerEncoderLayer", dict(d_model=120, nhead=4, dim_feedforward=200)),
    ("Transformer", dict(d_model=120, nhead=4, num_encoder_layers=2, num_decoder_layers=1,
                         dim_feedforward=200)),
    ("BatchNorm2d", dict(num_features=20)), ("LayerNorm", dict(normalized_shape=(4, 5))),
    ("PReLU", dict(num_parameters=5, init=0.3)), ("GroupNorm", dict(num_groups=2, num_channels=8)),
]
NORMAL = {"Embedding", "EmbeddingBag"}


def same_distribution(values, like):
    """Means, deviations and ranges of two samples of one distribution: six deviations of each
    figure, so that one in 10^8 differs by chance."""
    a, b = values.double().flatten(), like.double().flatten()
    n = len(a)
    if like.unique().numel() == 1:
        assert torch.equal(values, like)
        return
    std = b.std().item()
    assert abs(a.mean().item() - b.mean().item()) < 6 * std * math.sqrt(2 / n)
    assert abs(a.std().item() - std) < 6 * std * math.sqrt(3 / n)
    if b.abs().max() < 2.2 * std:  # uniform: the ends are near sqrt(3) deviations
        top = math.sqrt(3) * std * (1 + 6 * math.sqrt(1 / n))
        assert a.abs().max().item() <= top and a.abs().max().item() > 0.9 * math.sqrt(3) * std
    else:
        assert a.abs().max().item() > 2.2 * std


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    return ask(tmp_path_factory.mktemp("big"), [(name, kwargs, []) for name, kwargs in BIG])


@pytest.mark.parametrize("i", range(len(BIG)), ids=[name for name, _ in BIG])
def test_distribution(i, big):
    torch.manual_seed(3)
    name, kwargs = BIG[i]
    assert big[i].error is None
    for key, want in in_torch(name, kwargs).state_dict().items():
        same_distribution(big[i].state[key], want)


def test_padding_row_is_zero(big):
    i = [name for name, _ in BIG].index("Embedding")
    weight = big[i].state["weight"]
    assert not weight[7].any() and weight[8].any()


def test_other_types(tmp_path):
    calls = [("Linear", dict(in_features=3, out_features=2, dtype=torch.float64), []),
             ("BatchNorm1d", dict(num_features=3, dtype=torch.float16), []),
             ("MultiheadAttention", dict(embed_dim=4, num_heads=2, dtype=torch.bfloat16), []),
             ("TransformerEncoderLayer", dict(d_model=4, nhead=2, dtype=torch.float64), [])]
    for (name, kwargs, _), m in zip(calls, ask(tmp_path, calls)):
        want = in_torch(name, kwargs).state_dict()
        assert {k: v.dtype for k, v in m.state.items()} == {k: v.dtype for k, v in want.items()}
        assert m.args[-1] == ("keyword", "dtype", str(kwargs["dtype"])[6:])


# ---- mistakes ------------------------------------------------------------------------------------

WRONG = [
    ("Linear", dict(in_features=-1, out_features=2), "in_features must be at least 0, not -1"),
    ("Linear", dict(in_features=2), "argument 'out_features' is required"),
    ("Linear", dict(in_features=2, out_features="x"), "out_features must be an int, not str"),
    ("Linear", dict(in_features=2, out_features=(1, 2)), "out_features must be an int, not tuple"),
    ("Bilinear", dict(in1_features=0, in2_features=1, out_features=1), "in1_features"),
    ("Conv2d", dict(in_channels=3, out_channels=4, kernel_size=3, groups=2),
     "in_channels 3 is not divisible by groups 2"),
    ("Conv2d", dict(in_channels=4, out_channels=3, kernel_size=3, groups=2),
     "out_channels 3 is not divisible by groups 2"),
    ("Conv2d", dict(in_channels=4, out_channels=4, kernel_size=3, groups=0),
     "groups must be at least 1"),
    ("Conv2d", dict(in_channels=4, out_channels=4, kernel_size=3, padding="full"),
     "padding must be one of 'valid', 'same', not 'full'"),
    ("Conv2d", dict(in_channels=4, out_channels=4, kernel_size=3, padding="same", stride=2),
     "padding 'same' needs a stride of 1"),
    ("Conv2d", dict(in_channels=4, out_channels=4, kernel_size=3, padding_mode="mirror"),
     "padding_mode must be one of"),
    ("Conv2d", dict(in_channels=4, out_channels=4, kernel_size=-3), "kernel_size"),
    ("ConvTranspose2d", dict(in_channels=4, out_channels=4, kernel_size=3,
                             padding_mode="reflect"), "padding_mode 'zeros'"),
    ("GroupNorm", dict(num_groups=3, num_channels=4),
     "num_channels 4 is not divisible by num_groups 3"),
    ("Dropout", dict(p=1.5), "p must be between 0 and 1, not 1.5"),
    ("Embedding", dict(num_embeddings=4, embedding_dim=2, padding_idx=4), "padding_idx"),
    ("Embedding", dict(num_embeddings=4, embedding_dim=2, padding_idx=-5), "padding_idx"),
    ("Embedding", dict(num_embeddings=4, embedding_dim=2, _weight=torch.ones(3, 2)), "_weight"),
    ("EmbeddingBag", dict(num_embeddings=4, embedding_dim=2, mode="prod"), "mode must be one of"),
    ("LSTM", dict(input_size=2, hidden_size=3, proj_size=3), "proj_size must be less than"),
    ("LSTM", dict(input_size=2, hidden_size=0), "hidden_size must be at least 1"),
    ("GRU", dict(input_size=2, hidden_size=3, num_layers=0), "num_layers must be at least 1"),
    ("GRU", dict(input_size=2, hidden_size=3, dropout=2.0), "dropout must be between"),
    ("RNN", dict(input_size=2, hidden_size=3, nonlinearity="selu"), "nonlinearity must be one of"),
    ("MultiheadAttention", dict(embed_dim=5, num_heads=2),
     "embed_dim 5 is not divisible by num_heads 2"),
    ("MultiheadAttention", dict(embed_dim=4, num_heads=0), "num_heads must be at least 1"),
    ("TransformerEncoderLayer", dict(d_model=4, nhead=2, activation="selu"), "activation"),
    ("FractionalMaxPool2d", dict(kernel_size=2), "output_size or output_ratio"),
    ("FractionalMaxPool2d", dict(kernel_size=2, output_size=3, output_ratio=0.5), "both"),
    ("FractionalMaxPool2d", dict(kernel_size=2, output_ratio=1.5), "between 0 and 1"),
    ("L1Loss", dict(reduction="max"), "reduction must be one of 'none', 'mean', 'sum'"),
    ("MaxPool2d", dict(kernel_size=0), "kernel_size must be at least 1, not 0"),
    ("Hardtanh", dict(min_val=1.0, max_val=0.0), "max_val must be greater than min_val"),
]


WHEN_CALLED = {"EmbeddingBag", "L1Loss", "MaxPool2d"}  # PyTorch says so only then


def test_mistakes(tmp_path):
    """Both refuse them; C with the line of the user's program."""
    found = ask(tmp_path, [(name, kwargs, []) for name, kwargs, _ in WRONG])
    for (name, kwargs, why), m in zip(WRONG, found):
        assert m.error and re.match(rf"\S+nn_probe\.c:\d+: torch\.nn\.{name}: ", m.error), m.error
        assert why in m.error, m.error
        if name in WHEN_CALLED:
            continue
        with pytest.raises(Exception):
            in_torch(name, kwargs)
