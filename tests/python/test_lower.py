"""cfx.lower: what becomes of calls and modules, state, arguments, and what is in the way."""
import copy
import dataclasses
import math
from typing import NamedTuple

import pytest

torch = pytest.importorskip("torch")
import numpy as np  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import cfx  # noqa: E402


def lower(function):
    module = function if isinstance(function, nn.Module) else None
    return cfx.lower(cfx.symbolic_trace(module or function))


def agree(function, *inputs, atol=1e-5):
    with torch.no_grad():
        want = function(*[i.clone() if isinstance(i, torch.Tensor) else i for i in inputs])
        got = lower(function)(*inputs)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=atol)


X = torch.randn(3, 4)
Y = torch.randn(3, 4)

FUNCTIONS = {
    "max": lambda x, y: torch.max(x) + torch.max(x, 1)[0].sum() + torch.max(x, y),
    "min": lambda x, y: x.min(dim=0).values + torch.min(x, y),
    "view": lambda x, y: x.view(4, 3).view(-1).view(2, -1) + 1,
    "size": lambda x, y: x.reshape(x.size(1), x.shape[0]),
    "permute": lambda x, y: x.permute(1, 0) @ y,
    "split": lambda x, y: torch.split(x, [1, 3], dim=1)[1] + x.split(3, dim=1)[0],
    "reduce": lambda x, y: x.sum(1, keepdim=True) + x.mean(axis=0) + y.std(1, unbiased=False).sum(),
    "cast": lambda x, y: x.to(torch.float64) + y.double() + x.to(y) + x.to("cpu"),
    "where": lambda x, y: torch.where(x > 0, x, y) + x.where(y > 0, y),
    "index": lambda x, y: x[1:, None, [0, 2]] + y[..., -1].sum(),
    "inplace": lambda x, y: F.relu(x + y, inplace=True).add_(1).clamp_(0, 1),
    "numbers": lambda x, y: x * (x.size(0) // 2 + 1) / math.sqrt(y.shape[1]),
    "cat": lambda x, y: torch.cat((x, y), 1) * torch.stack([x, y]).sum(),
    "factory": lambda x, y: torch.arange(1, x.size(1) + 1) + y.new_zeros(x.shape[0], 4) + x,
    "softmax": lambda x, y: F.softmax(x, dim=-1) + torch.softmax(y, 1).log(),
    "einsum": lambda x, y: torch.einsum("ij,kj->ik", x, y),
    "transpose": lambda x, y: x.T @ y + x.transpose(0, 1) @ y,
    "expand": lambda x, y: x[:1].expand(3, -1) + y.unsqueeze(0).repeat(2, 1, 1),
    "container": lambda x, y: {"a": [x + 1, (y, 2)], "b": x.shape},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_agree_with_eager(name):
    agree(FUNCTIONS[name], X, Y)


MODULES = {
    "linear": (nn.Linear(4, 2), X),
    "conv": (nn.Conv2d(2, 4, 3, padding=1, groups=2), torch.randn(1, 2, 5, 5)),
    "reflect": (nn.Conv1d(2, 4, 3, padding=1, padding_mode="reflect"), torch.randn(1, 2, 5)),
    "transposed": (nn.ConvTranspose2d(2, 3, 2, stride=2), torch.randn(1, 2, 3, 3)),
    "batch_norm": (nn.BatchNorm2d(3).eval(), torch.randn(2, 3, 4, 4)),
    "layer_norm": (nn.LayerNorm(4), X),
    "instance_norm": (nn.InstanceNorm1d(3, affine=True), torch.randn(3, 5)),
    "embedding": (nn.Embedding(10, 4, padding_idx=0), torch.tensor([[1, 0], [9, 3]])),
    "pool": (nn.MaxPool2d(2, return_indices=True), torch.randn(1, 2, 4, 4)),
    "pad": (nn.ReflectionPad2d(1), torch.randn(1, 2, 4, 4)),
    "flatten": (nn.Flatten(), torch.randn(2, 3, 4)),
    "unflatten": (nn.Unflatten(1, (2, 2)), X),
    "prelu": (nn.PReLU(), X),
    "dropout": (nn.Dropout(0.5).eval(), X),
    "softmax": (nn.Softmax(dim=1), X),
    "upsample": (nn.Upsample(scale_factor=2, mode="bilinear"), torch.randn(1, 2, 3, 3)),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_agree_with_eager(name):
    module, x = MODULES[name]
    agree(nn.Sequential(module), x)


def test_batch_norm_in_training_updates_its_state():
    module = nn.Sequential(nn.BatchNorm1d(4))
    other = nn.Sequential(nn.BatchNorm1d(4))
    lower(module)(X)
    other(X)
    for (name, got), want in zip(module.state_dict().items(), other.state_dict().values()):
        torch.testing.assert_close(got, want, msg=name)


def test_the_state_shares_memory_with_the_module():
    module = nn.Linear(4, 2)
    lowered = cfx.lower(cfx.symbolic_trace(nn.Sequential(module)))
    assert sorted(lowered.state) == ["0.bias", "0.weight"]
    with torch.no_grad():
        module.weight.zero_()
        module.bias.fill_(7)
    assert torch.equal(lowered(X), torch.full((3, 2), 7.0))


def test_results_are_of_the_library_of_the_inputs():
    lowered = lower(lambda x: x + 1)
    assert isinstance(lowered(X), torch.Tensor)
    assert isinstance(lowered(X.numpy()), np.ndarray)
    assert isinstance(lowered(cfx.Tensor(X)), cfx.Tensor)


def test_arguments_by_keyword_and_default():
    class Scale(nn.Module):
        def forward(self, x, factor=2.0):
            return x * factor

    lowered = lower(Scale())
    assert torch.equal(lowered(X), X * 2)
    assert torch.equal(lowered(X, factor=3.0), X * 3)
    assert torch.equal(lowered(x=X), X * 2)
    with pytest.raises(TypeError, match="unexpected"):
        lowered(X, other=1)
    with pytest.raises(TypeError, match="missing"):
        lowered()


def test_everything_in_the_way_is_named():
    def mine(x):
        return x

    graph = cfx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(mine, (x,))
    b = graph.call_method("nothing_like_it", (a, 1))
    graph.output(b)
    with pytest.raises(cfx.LowerError) as error:
        cfx.lower(cfx.GraphModule({}, graph))
    assert [f.node for f in error.value.findings] == [a.name, b.name]
    assert "nothing_like_it(1)" in str(error.value)


class Turns(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.arange(6.0).reshape(2, 3))

    def forward(self, x, others):
        y = x.t()
        y[0, 1] = 100
        x.transpose_(0, 1)
        others[0].unsqueeze_(0)
        self.state.t_()
        z = x.clone()
        z.squeeze_()
        return x, y, x.shape[0], z, self.state * 1


@pytest.mark.parametrize("make", [lambda m: m, cfx.lower], ids=["called", "in C"])
def test_sizes_that_change_in_place(make):
    """squeeze_ and its like change the tensor of the caller, and that of the module."""
    eager, module = Turns(), cfx.script(Turns())
    call = make(module)
    for _ in range(3):
        given = [(torch.arange(6.0).reshape(2, 3), [torch.ones(2), X]) for _ in range(2)]
        results = eager(*given[0]), call(*given[1])
        for want, got in zip(results[0], results[1], strict=True):
            assert want == got if isinstance(want, int) else torch.equal(want, got)
        assert torch.equal(given[0][0], given[1][0])
        assert given[1][1][0].shape == (1, 2) and given[1][1][1].shape == X.shape
        assert torch.equal(eager.state, module.state)


def test_rows_that_change_sizes():
    x = torch.arange(6.0).reshape(2, 3)
    y, before = x[:, 1:], x.t()
    assert cfx.ops.t_(y) is y and y.shape == (2, 2) and torch.equal(y, x[:, 1:].t())
    assert y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert cfx.ops.unsqueeze_(x, 0) is x and x.shape == (1, 2, 3)
    assert cfx.ops.as_strided_(x, [2], [3], 1) is x and x.tolist() == [1.0, 4.0]
    assert before.shape == (3, 2)


def test_a_failure_says_where():
    lowered = lower(lambda x, y: x @ y)
    where = r"test_lower\.py:\d+: matmul\(float32\[3, 4\].*node %matmul"
    with pytest.raises(RuntimeError, match=where):
        lowered(X, Y)


def test_lower_takes_a_graph_module():
    with pytest.raises(TypeError, match="symbolic_trace"):
        cfx.lower(nn.Linear(2, 2))


# ---- results that are put together ---------------------------------------------------------------


class Pair(NamedTuple):
    first: torch.Tensor
    second: object = None


@dataclasses.dataclass
class Answer:
    value: torch.Tensor
    more: object = None


class Results(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        y = self.fc(x)
        inner = Pair(y, Answer(more=[y, 2], value=y + 1))
        return {"a": inner, "b": (Pair(y - 1), y)}


def same_results(a, b):
    assert type(a["a"]) is type(b["a"]) is Pair and a["b"][0].second is b["b"][0].second is None
    answer = a["a"].second
    assert isinstance(answer, Answer) and answer.more[1] == 2
    pairs = ((a["a"].first, b["a"].first), (answer.value, b["a"].second.value),
             (answer.more[0], b["a"].second.more[0]), (a["b"][0].first, b["b"][0].first),
             (a["b"][1], b["b"][1]))  # fmt: skip
    for x, y in pairs:
        torch.testing.assert_close(x, y)


@pytest.mark.parametrize("door", ["symbolic_trace", "script"])
@pytest.mark.parametrize("make", [cfx.lower, cfx.compile])
def test_named_tuples_and_dataclasses_are_results(door, make):
    model, x = Results().eval(), torch.randn(4, 3)
    gm = getattr(cfx, door)(model)
    program = make(gm)
    same_results(program(x), model(x))
    same_results(copy.deepcopy(program)(x), model(x))
    assert "Pair" in str(gm.graph)  # the module is left alone


def test_a_named_tuple_that_is_read_is_not_a_result():
    class Reads(nn.Module):
        def forward(self, x):
            pair = Pair(x, x + 1)
            return torch.add(pair.first, pair.second), Pair(x)

    gm = cfx.symbolic_trace(Reads())
    assert torch.equal(cfx.lower(gm)(torch.ones(2))[0], torch.full((2,), 3.0))
