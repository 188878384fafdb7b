"""torch.compile(model, backend="cfx"): results, gradients, effects, what runs where, fallbacks."""
import copy
import os
import subprocess
import sys
import warnings
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import torch
from torch import nn

import cfx
from cfx.interop import FallbackWarning

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import zoo  # noqa: E402

STRICT = {"strict": True}
FULL = os.environ.get("CFX_FULL") == "1"
F = nn.functional


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        yield


def compiled(function, **options):
    return torch.compile(function, backend="cfx", **options)


def graphs(model):
    return cfx.explain(model).graphs


# ---- inference ---------------------------------------------------------------------------------


MODELS = ["resnet18", "gpt2", "bert", "vit_b_16", "mobilenet_v3"][:5 if FULL else 2]


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_models_run_in_c_as_a_whole(name):
    model, inputs = zoo.make(name, small=True)
    fast = compiled(model, options=STRICT)
    torch.testing.assert_close(fast(*inputs), model(*inputs), rtol=1e-4, atol=1e-5)
    (graph,) = graphs(fast)
    assert (graph.kind, graph.left, graph.crossings) == ("inference", [], 0)
    assert graph.in_c > 3 and graph.runs == 1 and len(graph.programs) == 1


def test_weights_are_those_of_the_model_at_every_call():
    model = nn.Linear(3, 2).requires_grad_(False)
    fast, x = compiled(model, options=STRICT), torch.ones(1, 3)
    fast(x)
    model.weight.fill_(2)
    model.bias.zero_()
    assert fast(x).tolist() == [[6, 6]]


def test_an_unknown_operator_stays_in_pytorch():
    def f(x):
        a = (x + 1).relu()
        b = torch.special.bessel_y0(a)
        return (b * 2).tanh() + a.sin()

    fast, x = compiled(f), torch.rand(5)
    torch.testing.assert_close(fast(x), f(x))
    (graph,) = graphs(fast)
    assert [left.target for left in graph.left] == ["torch._C._special.special_bessel_y0"]
    assert graph.left[0].why.endswith("is not in the operator table")
    assert graph.programs == [4, 2] and graph.crossings == 2
    assert "in PyTorch: 1 x torch._C._special.special_bessel_y0" in str(cfx.explain(fast))


def test_a_few_calls_are_not_worth_a_program():
    def f(x):
        return torch.special.bessel_y0(x).relu()

    fast, x = compiled(f), torch.rand(5)
    torch.testing.assert_close(fast(x), f(x))
    assert [left.target for left in graphs(fast)[0].left][1] == "relu"
    eager = compiled(f, options={"smallest": 1})
    torch.testing.assert_close(eager(x), f(x))
    assert graphs(eager)[0].programs == [1]


def test_random_numbers_are_those_of_pytorch():
    def f(x):
        y = F.dropout(x * 2, 0.5, True).relu() + 1
        return y * torch.rand(4) + torch.randn_like(x)

    fast, x = compiled(f), torch.ones(4)
    torch.manual_seed(3)
    expected = f(x)
    torch.manual_seed(3)
    torch.testing.assert_close(fast(x), expected)
    assert {left.why for left in graphs(fast)[0].left if "random" in left.why}


def test_an_error_leaves_the_random_state_that_pytorch_leaves():
    def f(x, i):
        return (torch.rand(3) + x)[i] * 2 + 1

    states = []
    for function in (f, compiled(f)):
        function(torch.zeros(3), torch.tensor([0]))
        torch.manual_seed(0)
        with pytest.raises(IndexError), warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            function(torch.zeros(3), torch.tensor([9]))
        states.append(torch.get_rng_state())
    assert torch.equal(*states)


# ---- what calls write to -----------------------------------------------------------------------


def test_inputs_that_are_written_to():
    def f(x, y):
        x.add_(1)
        y[0] = x[1]
        return x * y

    fast = compiled(f, options=STRICT)
    ours, theirs = (torch.ones(3, 2), torch.zeros(3, 2)), (torch.ones(3, 2), torch.zeros(3, 2))
    before = [x._version for x in ours]
    torch.testing.assert_close(fast(*ours), f(*theirs))
    torch.testing.assert_close(ours, theirs)
    assert all(x._version > v for x, v in zip(ours, before))  # autograd would notice


def test_writes_keep_their_order_around_pytorch():
    def f(x):
        y = x.view(-1)
        a = torch.special.bessel_y0(x).sum()
        y.mul_(2)
        b = torch.special.bessel_y0(x).sum()
        x.add_(1).sub_(3)
        return a, b, y * 2

    fast = compiled(f)
    ours, theirs = torch.rand(2, 2), None
    theirs = ours.clone()
    torch.testing.assert_close(fast(ours), f(theirs))
    torch.testing.assert_close(ours, theirs)


def test_an_operator_of_the_user_that_writes():
    @torch.library.custom_op("cfx_test::bump", mutates_args={"x"})
    def bump(x: torch.Tensor, n: float) -> None:
        x.add_(n)

    def f(x):
        y = x * 3
        torch.ops.cfx_test.bump(y, 2.0)
        return y + 1

    assert compiled(f)(torch.ones(2)).tolist() == [6, 6]


def test_results_that_are_views_of_inputs():
    fast, x = compiled(lambda x: (x.view(-1), x.t(), x[0] + 1), options=STRICT), torch.ones(2, 3)
    flat, turned, _ = fast(x)
    flat[0] = 5
    turned[2, 1] = 7
    assert x[0, 0] == 5 and x[1, 2] == 7
    assert turned.stride() == (1, 3)


def test_equal_results_do_not_share_memory():
    fast, x = compiled(lambda x: (x + 1, x + 1), options=STRICT), torch.ones(2)
    a, b = fast(x)
    a.zero_()
    assert b.tolist() == [2, 2]


def test_autograd_notices_writes_to_what_it_has_kept():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    loss = compiled(model)(torch.ones(2, 3)).sum()
    with torch.no_grad():
        model[1].weight.add_(1)  # the gradient of the first layer needs it as it was
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@torch.no_grad()
def test_views_of_inputs_count_changes_together():
    x = torch.zeros(2, 3)
    part, other = compiled(lambda x: (x[1:].t(), x + 1), options=STRICT)(x)
    before = x._version
    part.add_(2)
    assert x._version > before and x[1].tolist() == [2, 2, 2] and other.tolist() == [[1] * 3] * 2


# ---- sizes -------------------------------------------------------------------------------------


def test_sizes_can_differ():
    def f(x, n):
        return x.reshape(-1, x.shape[0]) * n + x.shape[1], x.new_zeros(x.shape[0], n)

    fast = compiled(f, dynamic=True, options=STRICT)
    for rows, n in ((3, 2), (5, 4), (6, 3)):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(fast(x, n), f(x, n))
    assert len(graphs(fast)) == 1


def test_a_size_that_is_marked():
    fast = compiled(lambda x: x.softmax(0).flatten(), options=STRICT)
    x = torch.randn(3, 4)
    torch._dynamo.mark_dynamic(x, 0)
    fast(x)
    y = torch.randn(7, 4)
    torch.testing.assert_close(fast(y), y.softmax(0).flatten())
    assert len(graphs(fast)) == 1


# ---- training ----------------------------------------------------------------------------------


def train(model, run, inputs):
    """The loss, all gradients and the buffers after one step."""
    torch.manual_seed(5)
    loss = sum(x.pow(2).mean() for x in torch.utils._pytree.tree_leaves(run(*inputs)))
    loss.backward()
    return loss.detach(), [p.grad for p in model.parameters()], list(model.buffers())


@pytest.mark.parametrize("name", ["mlp", "gpt2", "bert", "unet", "vit_b_16"][:5 if FULL else 2])
def test_models_train_in_c(name):
    model, inputs = zoo.make(name, small=True)
    model.train()
    other = copy.deepcopy(model)
    fast = compiled(other, options=STRICT)
    want, got = train(model, model, inputs), train(other, fast, inputs)
    torch.testing.assert_close(got, want, rtol=2e-3, atol=1e-4)
    report = cfx.explain(fast)
    assert [graph.kind for graph in report.graphs] == ["forward", "backward"]
    assert report.graphs[1].left == [] and report.graphs[1].in_c > 10
    drawn = {left.target for left in report.graphs[0].left}
    assert drawn <= {"cfx.interop.parts.dropout_mask"} and report.crossings == len(drawn)


def test_optimizer_steps_are_seen():
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.ones(4, 3)
    twin = copy.deepcopy(model)
    losses = []
    for each, run in ((model, model), (twin, compiled(twin, options=STRICT))):
        steps = torch.optim.SGD(each.parameters(), lr=0.01)
        for _ in range(4):
            steps.zero_grad()
            loss = run(x).pow(2).sum()
            loss.backward()
            steps.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5) and losses[0] < 1


def test_gradients_of_inputs_and_the_callers_mode():
    fast = compiled(lambda x, y: (x * y).tanh(), options=STRICT)
    x, y = torch.randn(3, requires_grad=True), torch.randn(3)
    result = fast(x, y)
    assert result.requires_grad
    (grad,) = torch.autograd.grad(result.sum(), x)
    torch.testing.assert_close(grad, y * (1 - (x * y).tanh() ** 2))
    with torch.no_grad():
        assert not fast(x, y).requires_grad
    assert [graph.kind for graph in graphs(fast)] == ["forward", "backward", "inference"]


def test_autocast_is_written_out():
    fast, x = compiled(lambda x: x @ x, options=STRICT), torch.randn(4, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(fast(x), x @ x, rtol=2e-2, atol=2e-2)
        assert fast(x).dtype == torch.bfloat16


def test_a_transform_that_keeps_a_tensor_without_memory():
    def f(x, v):
        y, push = torch.func.linearize(lambda a: a.sin() * 2, x)
        return y, push(v)

    x, v = torch.randn(3), torch.randn(3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Attempted to insert a get_attr Node")
        torch.testing.assert_close(compiled(f)(x, v), f(x, v))


def test_a_literal_in_training():
    layer = nn.Linear(3, 2)
    fast, x = compiled(lambda x: layer(x) + torch.tensor([1.0, 2.0]), options=STRICT), torch.ones(3)
    torch.testing.assert_close(fast(x), layer(x) + torch.tensor([1.0, 2.0]))
    assert [graph.left for graph in graphs(fast)] == [[]]


# ---- fallbacks and errors ----------------------------------------------------------------------


def test_errors_of_the_model_are_pytorchs():
    fast = compiled(lambda x, i: x[i] * 2)
    assert fast(torch.ones(3), torch.tensor([1])).tolist() == [2]
    with pytest.raises(IndexError, match="^index 7 is out of bounds for dimension 0 with size 3$"):
        fast(torch.ones(3), torch.tensor([7]))
    assert fast(torch.ones(3), torch.tensor([1])).tolist() == [2]
    assert graphs(fast)[0].fallback is None


@pytest.mark.parametrize("dtype", [torch.float64])
def test_another_default_type_is_left_to_pytorch(dtype):
    fast = compiled(lambda x: x + torch.zeros(2))
    torch.set_default_dtype(dtype)
    try:
        with pytest.warns(FallbackWarning, match="the default element type is torch.float64"):
            assert fast(torch.ones(2, dtype=torch.float32)).dtype == dtype
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_is_not_on_the_cpu_is_left_to_pytorch():
    fast = compiled(lambda x: (x + 1).relu())
    with pytest.warns(FallbackWarning, match="on the device meta; programs in C run on the CPU"):
        assert fast(torch.ones(2, device="meta")).device.type == "meta"
    assert "device meta" in graphs(fast)[0].fallback


def test_a_program_that_fails_where_pytorch_does_not(monkeypatch):
    from cfx.interop import backend

    def broken(gm, runtime, smallest):
        def run(x):
            x.add_(100)
            raise RuntimeError("a kernel failed")

        return backend.Parts(run, [1], [], 0, True)

    monkeypatch.setattr(backend, "compile_parts", broken)
    fast, x = compiled(lambda x: x.add_(1) * 2), torch.ones(2)
    with pytest.warns(FallbackWarning, match="RuntimeError: a kernel failed"):
        assert fast(x).tolist() == [4, 4]
    assert x.tolist() == [2, 2]
    assert fast(x).tolist() == [6, 6]
    with pytest.raises(RuntimeError, match="a kernel failed"):
        compiled(lambda x: x.sub_(1), options=STRICT)(torch.ones(2))


@pytest.mark.parametrize(("options", "message"), [
    ({"thread": 2}, "no option 'thread'; its options are threads, smallest, strict, freeze"),
    ({"threads": 0}, "'threads' must be an integer of at least 1, not 0"),
    ({"smallest": "2"}, "'smallest' must be an integer of at least 1, not '2'"),
    ({"strict": 1}, "'strict' must be True or False, not 1"),
    ({"freeze": None}, "'freeze' must be True or False, not None"),
])  # fmt: skip
def test_wrong_options(options, message):
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=message):
        compiled(lambda x: x + 1, options=options)(torch.ones(1))


def test_threads():
    fast = compiled(lambda x: x @ x, options={"threads": 1, "strict": True})
    assert fast(torch.ones(2, 2)).tolist() == [[2, 2], [2, 2]]


def test_what_explain_says():
    fast = compiled(lambda x: x.relu() + 1)
    assert str(cfx.explain(fast)) == "no graph has been compiled: call the model first"
    assert str(cfx.explain(fast, torch.ones(1))).startswith(
        "graph 0, inference: 2 calls in C, 0 in PyTorch, 1 programs, 0 crossings; compiled in ")
    other = compiled(lambda x: x - 1)
    assert cfx.explain(other).graphs == [] and cfx.explain(fast).seconds > 0


class Doubled(nn.Module):
    def forward(self, x):
        return x.relu() * 2


def test_explain_of_modules_that_are_compiled_in_place():
    model = nn.Sequential(nn.Identity(), Doubled())
    model[1].compile(backend="cfx")
    assert model(torch.ones(2)).tolist() == [2, 2]
    for module in (model, model[1]):
        assert [graph.in_c for graph in cfx.explain(module).graphs] == [2]


def test_the_back_end_is_found_without_importing_interop():
    code = ("import sys, cfx\n"
            "from importlib.metadata import entry_points\n"
            "(found,) = entry_points(group='torch_dynamo_backends', name='cfx')\n"
            "print('cfx.interop' in sys.modules, found.value)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "cfx.interop.backend:backend"], done.stderr
    (found,) = entry_points(group="torch_dynamo_backends", name="cfx")
    assert found.load() is cfx.interop.backend.backend
    assert "cfx" in torch._dynamo.list_backends()


@pytest.mark.parametrize("grad", [False, True])
def test_tangents_of_forward_mode_are_kept(grad):
    from torch.autograd import forward_ad

    fast = compiled(lambda x, w: x.sin() * w + x)
    w = torch.ones(3, requires_grad=grad)
    assert fast(torch.zeros(3), w).tolist() == [0, 0, 0]
    with forward_ad.dual_level(), pytest.warns(FallbackWarning, match="forward_ad"):
        x = forward_ad.make_dual(torch.zeros(3), torch.ones(3))
        assert forward_ad.unpack_dual(fast(x, w)).tangent.tolist() == [2, 2, 2]
    assert fast(torch.zeros(3), w).tolist() == [0, 0, 0]


# ---- second derivatives ------------------------------------------------------------------------


def second(function, run, inputs):
    """Gradients, their gradients, and those of these: what create_graph=True is for."""
    torch.manual_seed(5)
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    out = run(*leaves)
    loss = sum(x.pow(2).sum() for x in (out if isinstance(out, tuple) else (out,)))
    first = torch.autograd.grad(loss, leaves, create_graph=True)
    again = torch.autograd.grad(sum(g.pow(3).sum() for g in first), leaves, create_graph=True)
    third = torch.autograd.grad(sum(g.sin().sum() for g in again), leaves)
    return first, again, third


def breaks_and_writes(x, w):
    y = x * 2
    torch._dynamo.graph_break()
    y.mul_(w.t().sin())  # writes to an input of the second graph, which has a history
    return y.view(-1), (y @ w).cos()


@pytest.mark.parametrize("function", [
    lambda x, w: torch.tanh(x @ w),
    lambda x, w: (torch.tanh(x @ w).t(), (w * x.t()).sin().view(-1)),  # results that are views
    lambda x, w: F.dropout(torch.tanh(x @ w), 0.5, True),  # the same mask again
    breaks_and_writes,
], ids=["plain", "views", "dropout", "writes"])  # fmt: skip
def test_gradients_of_gradients(function):
    inputs = torch.randn(3, 4, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    fast = compiled(function)
    with pytest.warns(FallbackWarning, match="because derivatives of its gradients are asked"):
        got = second(function, fast, inputs)
    torch.testing.assert_close(got, second(function, function, inputs))
    report = graphs(fast)
    assert all(g.again > 0 for g in report if g.kind == "forward")
    assert all(g.fallback is None and g.in_c > 0 for g in report)


def test_a_gradient_penalty():
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Softplus(), nn.Linear(6, 1))
    other = copy.deepcopy(model)
    for each, run in ((model, model), (other, compiled(other))):
        x = torch.linspace(-1, 1, 12).view(3, 4).requires_grad_()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            (grad,) = torch.autograd.grad(run(x).sum(), x, create_graph=True)
        (grad.norm(dim=1) - 1).pow(2).mean().backward()
    want, got = ([p.grad for p in m.parameters()] + list(m.buffers()) for m in (model, other))
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-6)


def test_a_hessian_times_a_vector_and_hooks():
    seen = []
    fast = compiled(lambda x: x.sin() * x.exp())
    x, v = torch.randn(5, requires_grad=True), torch.randn(5)
    y = x * 1
    y.register_hook(lambda g: seen.append(1))
    with pytest.warns(FallbackWarning, match="because derivatives"):
        (grad,) = torch.autograd.grad(fast(y).sum(), x, create_graph=True)
    assert seen == [1]  # once, although PyTorch has run the graph again
    (product,) = torch.autograd.grad(grad @ v, x)
    torch.testing.assert_close(product, 2 * x.cos() * x.exp() * v)


def test_gradients_that_are_not_differentiated_cost_nothing_more():
    fast, x = compiled(lambda x: x.sin() * 2), torch.randn(5, requires_grad=True)
    loss = fast(x).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    torch.testing.assert_close(x.grad, 4 * x.cos())
    assert [g.again for g in graphs(fast)] == [0, 0]
