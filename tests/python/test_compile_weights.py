"""torch.compile(model, backend="cfx"): weights that change between runs, and those that are packed
because of the option "freeze"."""
import copy
import gc
import threading
import weakref

import pytest
import torch
from torch import nn

import cfx

F = nn.functional


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def network():
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
                         nn.Flatten(), nn.Linear(16 * 64, 5)).eval()  # fmt: skip


def images():
    return torch.randn(2, 3, 8, 8)


def by_load_state_dict(model):
    model.load_state_dict({k: v * 2 for k, v in model.state_dict().items()})


def by_an_optimizer(model):
    steps = torch.optim.AdamW(model.parameters(), lr=0.1)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    steps.step()


def by_data_of_their_own(model):
    for p in model.parameters():
        p.data = p.data * 3


def by_buffers(model):
    model[1].running_mean.add_(1)


def by_another_parameter(model):
    model[4].weight = nn.Parameter(model[4].weight.detach() * 2)


def by_copies_that_are_not_counted(model):
    for p in model.parameters():
        p.data.copy_(p.data * 2)


def by_one_element(model):
    model[0].weight.data[1, 2, 0, 1] += 1


def by_numpy(model):
    model[1].running_var.numpy()[3] = 9


COUNTED = [by_load_state_dict, by_an_optimizer, by_data_of_their_own, by_buffers,
           by_another_parameter]  # fmt: skip
NOT_COUNTED = [by_copies_that_are_not_counted, by_one_element, by_numpy]


def follows(change, **options):
    model, x = network(), images()
    fast = torch.compile(model, backend="cfx", options={"strict": True, **options})
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
        before = model(x)
    change(model)
    with torch.no_grad():
        assert not torch.allclose(model(x), before)
        for _ in range(2):
            torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    return fast


@pytest.mark.parametrize("change", COUNTED + NOT_COUNTED)
def test_changes_of_weights_are_seen(change):
    follows(change)


@pytest.mark.parametrize("change", COUNTED)
def test_packed_weights_follow_the_changes_that_pytorch_counts(change):
    fast = follows(change, freeze=True)
    assert cfx.explain(fast).graphs[0].packed == 8
    assert str(cfx.explain(fast).graphs[0]).endswith(" runs, 8 weights packed")


def test_weights_that_change_with_every_run_are_not_packed_for_ever():
    model, x = network(), images()
    fast = torch.compile(model, backend="cfx", options={"freeze": True})
    with torch.no_grad():
        for _ in range(8):
            torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
            model[4].weight.mul_(-1)
        model[4].weight.data.mul_(2)  # would not be seen by packed weights
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)


def test_layers_that_are_alike_share_a_graph():
    layers = [nn.Linear(4, 4).requires_grad_(False) for _ in range(3)]
    fast = [torch.compile(layer, backend="cfx", options={"freeze": True}) for layer in layers]
    for _ in range(2):
        for layer, each in zip(layers, fast):
            x = torch.randn(2, 4)
            torch.testing.assert_close(each(x), layer(x))


def test_weights_that_the_graph_writes_to_are_not_packed():
    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("sum", torch.zeros(3))
            self.layer = nn.Linear(3, 3).requires_grad_(False)

        def forward(self, x):
            self.sum.add_(self.layer(x).sum(0))
            return self.sum * 2

    model = Cache()
    other = copy.deepcopy(model)
    fast = torch.compile(other, backend="cfx", options={"freeze": True, "strict": True})
    for _ in range(3):
        x = torch.randn(2, 3)
        torch.testing.assert_close(fast(x), model(x))
    torch.testing.assert_close(other.sum, model.sum)
    assert cfx.explain(fast).graphs[0].packed == 2


def test_autocast_packs_what_it_casts():
    model, x = nn.Linear(8, 8).requires_grad_(False), torch.randn(4, 8)
    fast = torch.compile(model, backend="cfx", options={"freeze": True, "strict": True})
    for _ in range(2):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            torch.testing.assert_close(fast(x), model(x), rtol=2e-2, atol=2e-2)
        model.weight.mul_(2)
    assert cfx.explain(fast).graphs[0].packed == 2


def test_packed_weights_beside_a_call_in_pytorch():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)).requires_grad_(False)

    def f(x):
        return model[2](torch.special.bessel_y0(model[1](model[0](x)).abs())).relu()

    fast = torch.compile(f, backend="cfx", options={"freeze": True})
    for _ in range(2):
        x = torch.randn(2, 4)
        torch.testing.assert_close(fast(x), f(x))
        model[2].weight.mul_(2)
    (graph,) = cfx.explain(fast).graphs
    assert len(graph.programs) == 2 and graph.packed == 4


def test_training_packs_nothing():
    model, x = nn.Linear(3, 1), torch.ones(2, 3)
    fast = torch.compile(model, backend="cfx", options={"freeze": True, "strict": True})
    fast(x).sum().backward()
    with torch.no_grad():
        model.weight.sub_(model.weight.grad)
        torch.testing.assert_close(fast(x), model(x))
    assert [g.packed for g in cfx.explain(fast).graphs] == [0, 0, 2]


def test_packed_weights_go_with_their_model():
    model = nn.Linear(3, 3).requires_grad_(False)
    gone = weakref.ref(model.weight)
    torch.compile(model, backend="cfx", options={"freeze": True})(torch.ones(1, 3))
    del model
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("freeze", [False, True])
def test_threads_that_run_one_graph(freeze):
    model, inputs = network().requires_grad_(False), [images() for _ in range(4)]
    fast = torch.compile(model, backend="cfx", options={"freeze": freeze, "strict": True})
    want, wrong = [model(x) for x in inputs], []
    fast(inputs[0])

    def run(k):
        for _ in range(10):
            if not torch.allclose(fast(inputs[k]), want[k], rtol=1e-4, atol=1e-5):
                wrong.append(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_plans_for_many_sizes():
    fast = torch.compile(lambda x: (x @ x.t()).relu().sum(0) * x.shape[0], backend="cfx",
                         dynamic=True, options={"strict": True})  # fmt: skip
    for n in (*range(2, 40), *range(2, 40)):  # more than there are plans
        x = torch.randn(n, 3)
        torch.testing.assert_close(fast(x), (x @ x.t()).relu().sum(0) * n)
