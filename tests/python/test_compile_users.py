"""torch.compile(model, backend="cfx") as people use it: what runs in eager PyTorch, runs."""
import copy
import warnings

import pytest
import torch
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor

import cfx
from cfx.interop import FallbackWarning

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


def same(a, b):
    torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def plain(function):
    return function


def gradients(model):
    return [p.grad for p in model.parameters()]


# Each takes `use`, torch.compile or `plain`, and returns what both have to agree on.


def a_graph_break(use):
    def f(x):
        y = x * 2
        return y.sin() if y.sum() > 0 else y.cos()

    run = use(f)
    return run(torch.ones(3)), run(-torch.ones(3))


def training_with_sizes_that_differ(use):
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.ReLU())
    run = use(model)
    for n in (3, 5, 8):  # Dynamo makes the size an input, and traces once more
        run(torch.randn(n, 3)).pow(2).sum().backward()
    return gradients(model), list(model.buffers())


def numbers_that_depend_on_data(use):
    def f(x):
        return x.nonzero().float() * x.sum().item()

    with torch._dynamo.config.patch(capture_scalar_outputs=True,
                                    capture_dynamic_output_shape_ops=True):
        run = use(f)
        return [run(torch.tensor(x)) for x in ([1.0, 0, 2], [0.0, 0, 0], [1.0, 1, 1])]


def training_and_evaluation_in_turn(use):
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    run, x, found = use(model), torch.randn(6, 4), []
    for train in (True, False, True):
        model.train(train)
        torch.manual_seed(1)
        found.append(run(x))
        with torch.no_grad():
            found.append(run(x))
    return found, list(model.buffers())


def images_with_channels_last(use):
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 1))
    run, x = use(model), torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last)
    y = run(x)
    y.sum().backward()
    with torch.no_grad():
        z = run(x.contiguous())
    return y, z, y.stride(), z.stride(), gradients(model)


def views_and_strides(use):
    x = torch.randn(4, 6)
    found = use(lambda x: (x.t(), x.t() + 1, x[:, ::2] * 2, x.sum()))(x[::2, 1:5])
    return found, [y.stride() for y in found]


def inputs_that_share_memory(use):
    def f(x, y):
        x.add_(1)
        return y * 2

    run, a, b = use(f), torch.ones(4), torch.ones(4)
    return run(a, a), run(b[:3], b[1:]), a, b


def a_write_to_an_input_with_a_history(use):
    def f(x):
        x.mul_(2)
        return x.sin()

    w = torch.ones(3, requires_grad=True)
    x = w * 3
    (use(f)(x).sum() + x.sum()).backward()
    return w.grad, x


def hooks(use):
    model, seen = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), []
    model[0].register_forward_hook(lambda module, given, result: result * 2)
    model[0].weight.register_hook(lambda g: g * 3)
    model.register_full_backward_hook(lambda module, g, of_results: seen.append(1))
    use(model)(torch.randn(2, 3, requires_grad=True)).sum().backward()
    return gradients(model), seen


def inference_mode(use):
    model = nn.Linear(3, 3)
    run = use(model)
    with torch.inference_mode():
        x = torch.ones(2, 3)
        y = run(x)
    with torch.no_grad():
        z = run(x)
    return y.clone(), z.clone(), y.is_inference(), z.is_inference(), run(torch.ones(1, 3))


def a_tensor_of_tensors(use):
    x = TwoTensor(torch.randn(3), torch.randn(3)).requires_grad_()
    y = use(lambda x: (x.sin() + 1) * 2)(x)
    y.sum().backward()
    return y.a, y.b, x.grad.a, x.grad.b


def a_compiled_model_in_another(use):
    inner = nn.Linear(3, 3)
    return use(nn.Sequential(use(inner), nn.ReLU()))(torch.ones(1, 3))


def an_optimizer(use):
    model = nn.Linear(3, 3)
    steps = torch.optim.AdamW(model.parameters(), lr=0.1)
    run = use(steps.step)
    for _ in range(3):
        model.zero_grad()
        model(torch.ones(2, 3)).pow(2).sum().backward()
        run()
    return list(model.parameters())


def numbers_and_structures(use):
    def f(data, *, k=2):
        return {"a": data["x"][0] * k, "b": (data["x"][1].reshape(()) + 1,)}

    return use(f)({"x": [torch.ones(2), torch.zeros(1)]}, k=3)


CASES = [a_graph_break, training_with_sizes_that_differ, numbers_that_depend_on_data,
         training_and_evaluation_in_turn, images_with_channels_last, views_and_strides,
         inputs_that_share_memory, a_write_to_an_input_with_a_history, hooks, inference_mode,
         a_tensor_of_tensors, a_compiled_model_in_another, an_optimizer,
         numbers_and_structures]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_pytorch_does(case):
    found = []
    for use in (plain, compiled):
        torch.manual_seed(0)
        found.append(case(use))
    same(found[1], found[0])


def test_a_backward_pass_that_is_compiled():
    from torch._dynamo import compiled_autograd

    model = nn.Linear(3, 3)
    other, x = copy.deepcopy(model), torch.randn(2, 3)
    model(x).sum().backward()
    with compiled_autograd._enable(torch.compile(backend="cfx")):
        compiled(other)(x).sum().backward()
    same(gradients(other), gradients(model))


def test_modes_are_those_of_other_back_ends():
    fast, x = compiled(lambda x: x * 2 + 1, mode="reduce-overhead"), torch.ones(3)
    with pytest.warns(UserWarning, match="no modes, so mode='reduce-overhead' changes nothing"):
        assert fast(x).tolist() == [3, 3, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fast(torch.ones(2, 2)).tolist() == [[3, 3], [3, 3]]
    assert len(cfx.explain(fast).graphs) == 2


def test_a_whole_graph_and_any_size():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    fast = compiled(model, fullgraph=True, dynamic=True)
    for n in (1, 2, 5, 0):
        same(fast(torch.ones(n, 3)), model(torch.ones(n, 3)))


def test_tensors_of_the_users_class_are_left_to_pytorch():
    class Mine(torch.Tensor):
        pass

    with pytest.warns(FallbackWarning, match="a tensor of the class Mine decides itself"):
        result = compiled(lambda x: x.sin() + 1)(torch.zeros(3).as_subclass(Mine))
    assert type(result) is Mine and result.tolist() == [1, 1, 1]
