"""What captured programs call, where capture_programs/callees.py cannot say it: what torch.jit and
torch.compile made, layers with hooks inside, and that nothing of it is left switched."""
import sys

import cfx
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return torch.sigmoid(self.fc(x)) * x


@torch.jit.script
def halves(x, n: int):
    if x.sum() > 0:
        x = x / n
    return x + x.size(0)


def test_a_scripted_function_runs_as_python():
    """Sizes and numbers stay symbolic, both ways are in the graph, and C runs it."""
    gm = cfx.capture(lambda x, n: halves(x, n) * 2, torch.ones(3), 2)
    for x, n in ((torch.ones(5), 3), (-torch.ones(2), 4)):
        assert torch.equal(gm(x, n), halves(x, n) * 2)
        assert torch.allclose(cfx.lower(gm)(x, n), halves(x, n) * 2)
    assert not gm.guards


def test_scripted_functions_are_themselves_afterwards():
    plain = vars(torch._C.ScriptFunction)["__call__"]
    cfx.capture(lambda x: halves(x, 2), torch.ones(3))
    assert vars(torch._C.ScriptFunction)["__call__"] is plain
    with pytest.raises(ZeroDivisionError):
        cfx.capture(lambda x: 1 // 0, torch.ones(3))
    assert vars(torch._C.ScriptFunction)["__call__"] is plain
    assert torch.equal(halves(torch.ones(2), 2), torch.full((2,), 2.5))


def test_a_scripted_module_is_trained():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), torch.jit.script(Gate()))
    gm = cfx.capture(model, torch.ones(2, 4))
    assert [n.op for n in gm.graph.nodes if n.op == "call_module"] == ["call_module"] * 2
    x = torch.randn(3, 4)
    gm(x).sum().backward()
    got = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(x).sum().backward()
    for one, two in zip(got, (p.grad for p in model.parameters())):
        assert torch.allclose(one, two, atol=1e-6)


def test_the_stance_of_the_compiler_is_put_back():
    counts = []

    def backend(gm, examples):
        counts.append(len(gm.graph.nodes))
        return gm.forward

    fast = torch.compile(lambda x: x.sin() + 1, backend=backend)
    gm = cfx.capture(lambda x: fast(x) * 2, torch.ones(3))
    assert not counts
    assert [n.name for n in gm.graph.nodes if n.op == "call_method"] == ["sin"]
    fast(torch.ones(3))
    assert len(counts) == 1
    assert "torch._dynamo" in sys.modules


def test_a_hook_inside_of_a_layer():
    """A layer of torch whose parts have hooks is not one call: C would not run them."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    layer.linear1.register_forward_hook(lambda m, args, out: out * 2)
    model, x = nn.Sequential(layer).eval(), torch.randn(2, 3, 8)
    gm = cfx.capture(model, x)
    y = torch.randn(1, 5, 8)
    assert torch.allclose(gm(y), model(y), atol=1e-6)
    assert torch.allclose(cfx.lower(gm)(y), model(y), atol=1e-5)


def test_a_lazy_layer_that_has_no_parameters_yet():
    model = nn.Sequential(nn.LazyLinear(3))
    with pytest.raises(cfx.CaptureError, match=r"0.weight is an uninitialized parameter.*call the"):
        cfx.capture(model, torch.ones(2, 4))
    model(torch.ones(2, 4))
    assert cfx.capture(model, torch.ones(2, 4))(torch.ones(5, 4)).shape == (5, 3)


def test_a_captured_module_inside_that_does_not_hold():
    inner = cfx.capture(Gate(), torch.ones(2, 4))
    model = nn.Sequential(inner).eval()
    with pytest.raises(cfx.CaptureError, match="training mode, .*; it is called by a program"):
        cfx.capture(model, torch.ones(2, 4))
    inner(torch.ones(2, 4))  # captures the other mode
    gm = cfx.capture(model, torch.ones(2, 4))
    x = torch.randn(5, 4)
    assert torch.equal(gm(x), model(x))
