"""Training and evaluation in one graph: what differs between them follows a flag."""
import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import cfx
from cfx import CaptureError, capture


class Drop(nn.Module):
    """A layer of the user's own, without weights."""

    def __init__(self, p=0.5):
        super().__init__()
        self.p = p

    def forward(self, x):
        return F.dropout(x, self.p, self.training)


class Norm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("mean", torch.zeros(n))
        self.register_buffer("var", torch.ones(n))

    def forward(self, x):
        return F.batch_norm(x, self.mean, self.var, training=self.training)


class Attention(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.qkv, self.drop = nn.Linear(n, 3 * n), Drop(0.2)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.25 if self.training else 0.0)
        return self.drop(y)


class Net(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.first, self.second = Attention(n), Attention(n)
        self.norm, self.last = Norm(n), nn.Sequential(nn.Linear(n, n), nn.Dropout(0.5))

    def forward(self, x):
        x = self.second(self.first(x))
        x = self.norm(x.flatten(0, 1)).reshape(x.shape)
        return F.dropout(self.last(x), 0.1, training=not self.training)


class Branching(nn.Module):
    """The graphs of its modes have different calls."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        return self.fc(x) * 2 if self.training else self.fc(x)


def of(forward, **modules):
    model = type("Made", (nn.Module,), {"forward": forward})()
    for name, module in modules.items():
        setattr(model, name, module)
    return model


def same_step(model, gm, x):
    """One step with the same random numbers: results, gradients and buffers agree."""
    found = []
    for module in (model, gm):
        torch.manual_seed(3)
        module.zero_grad()
        out = module(x)
        (out * torch.arange(out.numel()).reshape(out.shape)).sum().backward()
        grads = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
        found.append((out.detach(), grads, {n: b.clone() for n, b in module.named_buffers()}))
    (out, grads, buffers), (again, own_grads, own_buffers) = found
    assert torch.equal(out, again) and grads
    assert grads.keys() == own_grads.keys() and buffers.keys() == own_buffers.keys()
    for name, grad in grads.items():
        assert torch.equal(grad, own_grads[name]), name
    for name, buffer in buffers.items():
        assert torch.equal(buffer, own_buffers[name]), name


@pytest.mark.parametrize("modes", ["current", "both"])
@pytest.mark.parametrize("training", [True, False])
def test_one_graph_for_both_modes(modes, training):
    model = Net().train(training)
    twin = copy.deepcopy(model)
    gm = capture(model, torch.randn(2, 3, 4), modes=modes)
    for mode in (training, not training, True, True, False, True):
        twin.train(mode), gm.train(mode)
        same_step(twin, gm, torch.randn(3, 5, 4))
    assert len(gm.graphs) == 1
    flags = [n.target for n in gm.graph.nodes if n.op == "get_attr" and "training" in n.target]
    assert flags == ["first.training", "first.drop.training", "second.training",
                     "second.drop.training", "norm.training", "training"]  # fmt: skip
    assert gm.code.count("self.first.training") == 1
    assert "if self.first.training:\n        dropout_p = 0.25\n    else:\n" in gm.code
    assert "not_ = _operator_not_(training)" in gm.code
    gm.graph.lint()


def test_training_with_an_optimizer():
    """Steps, an evaluation now and then, and batches of other sizes: bit by bit as the model."""
    class Images(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn, self.fc = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(144, 10)

        def forward(self, x):
            hidden = F.relu(self.bn(self.conv(x)))
            return self.fc(F.dropout(hidden.flatten(1), 0.3, self.training))

    model = Images()
    gm = capture(copy.deepcopy(model), torch.randn(4, 1, 8, 8))
    both = [(m, torch.optim.SGD(m.parameters(), 0.05, momentum=0.9)) for m in (model, gm)]
    for step in range(50):
        x, y = torch.randn(3 + step % 4, 1, 8, 8), torch.randint(10, (3 + step % 4,))
        losses = []
        for module, optimizer in both:
            torch.manual_seed(step)
            optimizer.zero_grad()
            losses.append(F.cross_entropy(module(x), y))
            losses[-1].backward()
            optimizer.step()
        assert torch.equal(*losses)
        if step % 10 == 9:
            assert torch.equal(model.eval()(x), gm.eval()(x))
            model.train(), gm.train()
    assert len(gm.graphs) == 1
    state = gm.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def test_copies_have_both_modes():
    model = Net()
    gm = capture(model, torch.randn(2, 3, 4), modes="both")
    for twin in (copy.deepcopy(gm), pickle.loads(pickle.dumps(gm))):
        reference = copy.deepcopy(model)
        for mode in (True, False, True):
            same_step(reference.train(mode), twin.train(mode), torch.randn(2, 3, 4))
            assert twin.first.drop.training == mode


def test_a_frozen_child_keeps_its_own_mode():
    model = Net()
    model.second.eval()
    twin = copy.deepcopy(model)
    gm = capture(model, torch.randn(2, 3, 4))
    same_step(twin, gm, torch.randn(2, 3, 4))
    assert not gm.second.training and gm.training
    steps = (lambda m: m.eval(), lambda m: m.train(), lambda m: m.first.eval(),
             lambda m: (m.train(), m.second.drop.eval()), lambda m: (m.eval(), m.second.train()))
    for step in steps:
        step(twin), step(gm)
        same_step(twin, gm, torch.randn(2, 3, 4))
    assert len(gm.graphs) == 1
    assert gm.graph.find_nodes(op="get_attr", target="second.drop.training")


def test_a_layer_that_trains_alone():
    """Dropout that stays on in evaluation, in modules without weights around it."""
    inner = nn.Sequential(nn.Sequential(Drop()))
    model = of(lambda self, x: self.fc(self.inner(x)), inner=inner, fc=nn.Linear(3, 3)).eval()
    inner[0][0].train()
    twin = copy.deepcopy(model)
    gm = capture(model, torch.randn(2, 3))
    assert [path for path, m in gm.named_modules() if m.training] == ["inner.0.0"]
    for step in (lambda m: m, lambda m: m.eval(), lambda m: m.train(),
                 lambda m: (m.eval(), m.inner.get_submodule("0.0").train())):  # fmt: skip
        step(twin), step(gm)
        same_step(twin, gm, torch.ones(4, 3))
    assert len(gm.graphs) == 1
    count = len(gm._settings.known)
    same_step(twin, gm, torch.ones(5, 3))
    assert len(gm._settings.known) == count == 3  # it is known: nothing is captured again


def test_a_flag_that_an_outer_module_asks_is_found():
    """Two settings do not tell whose flag it is; a third one does."""
    def forward(self, x):
        return F.dropout(self.inner(x), 0.5, self.inner.training)

    model = of(forward, inner=nn.Sequential(nn.Linear(3, 3)))
    gm = capture(model, torch.randn(2, 3), modes="both")
    for module in (model, gm):
        module.train(), module.inner.eval()
    same_step(model, gm, torch.ones(4, 3))
    assert len(gm.graphs) == 1
    assert [n.target for n in gm.graph.nodes if n.op == "get_attr"] == ["inner.training"]


def test_what_no_flag_decides_stays_apart():
    def forward(self, x):
        return x * (2.0 if self.training == self.inner.training else 3.0)

    model = of(forward, inner=Drop())
    model.w = nn.Parameter(torch.ones(3))
    gm = capture(model, torch.ones(3), modes="both")
    assert len(gm.graphs) == 1 and gm.eval()(torch.ones(1)) == gm.train()(torch.ones(1)) == 2
    frozen = of(forward, inner=Drop().eval())
    gm = capture(frozen, torch.ones(3))
    results = []
    for mode, inner in ((True, False), (True, True), (False, False), (False, True)):
        gm.train(mode), frozen.train(mode), gm.inner.train(inner), frozen.inner.train(inner)
        results.append((gm(torch.ones(1)).item(), frozen(torch.ones(1)).item()))
    assert results == [(3, 3), (2, 2), (2, 2), (3, 3)] and len(gm.graphs) == 2


def test_other_differences_stay_two_graphs():
    gm = capture(Branching(), torch.randn(2, 3), modes="both")
    assert len(gm.graphs) == 2
    x = torch.randn(4, 3)
    assert torch.equal(gm.train()(x), gm.eval()(x) * 2)


def test_what_a_graph_of_the_present_mode_refuses_is_told():
    def forward(self, x):
        if self.training:
            return x * 2 if x.shape[0] > 1 else x
        return x + 1

    gm = capture(of(forward), torch.ones(3), modes="both")
    assert len(gm.graphs) == 2
    with pytest.raises(CaptureError, match=r"x.shape\[0\] > 1 was True"):
        gm(torch.ones(1))
    assert torch.equal(gm.eval()(torch.ones(1)), torch.full((1,), 2.0))


@pytest.mark.parametrize("forward", [
    lambda self, x: (x * 2, self.training),  # a result that is not of the graph
    lambda self, x: x.reshape(-1, 2) if self.training else x.reshape(2, -1),
    lambda self, x: x.sum(1, dtype=torch.float64 if self.training else None),
    lambda self, x: x + x if self.training and x.shape[0] > 2 else x + x,  # a guard of one mode
], ids=["result", "arguments", "kinds", "guards"])  # fmt: skip
def test_what_differs_at_the_boundary_or_in_kind(forward):
    model = of(forward)
    gm = capture(model, torch.ones(4, 2), modes="both")
    for mode in (True, False):
        gm.train(mode), model.train(mode)
        found, want = gm(torch.ones(4, 2)), model(torch.ones(4, 2))
        assert torch.equal(found[0], want[0]) and str(found) == str(want)


def test_lowering_takes_the_graph_of_the_present_mode():
    for model, x, graphs in ((Net(), torch.randn(2, 3, 4), 1), (Branching(), torch.randn(2, 3), 2)):
        gm = capture(model, x, modes="both")
        assert len(gm.graphs) == graphs
        for mode in (True, False):
            lowered = cfx.lower(gm.train(mode))
            assert not any(str(n.target).endswith("training") for n in lowered.graph.nodes)
            flags = [n.args[2] for n in lowered.graph.nodes if n.name.startswith("dropout")]
            assert flags == ([mode, mode, not mode] if graphs == 1 else [])
            if graphs == 2:
                torch.testing.assert_close(lowered(x), model.train(mode)(x))
    gm = capture(Branching(), torch.randn(2, 3)).eval()
    with pytest.raises(CaptureError, match="training mode.*call it once in that mode"):
        cfx.lower(gm)


def test_modes_of_functions_are_nobodys():
    gm = capture(lambda x: F.dropout(x, 0.5, False) * 2, torch.ones(3), modes="both")
    gm.eval()(torch.ones(2))
    assert len(gm.graphs) == 1


def test_state_goes_on_in_the_merged_graph():
    def forward(self, x):
        self.calls += 1
        return F.dropout(x, 0.5, self.training) * self.calls

    model = of(forward)
    model.calls = 1
    gm = capture(model, torch.ones(3), modes="both")
    assert len(gm.graphs) == 1
    for mode in (True, False, True):
        gm.train(mode), model.train(mode)
        for module in (gm, model):
            torch.manual_seed(1)
            module.out = module(torch.ones(4))
        assert torch.equal(gm.out, model.out)
    assert gm.calls == model.calls == 4


def test_an_edited_graph_is_kept():
    """What a pass has made of the graph of one mode is not undone by the other mode."""
    model = Branching()
    gm = capture(model, torch.ones(2, 3))
    gm.graph.find_nodes(op="call_function", target=torch.mul)
    for node in gm.graph.nodes:
        if node.op == "call_function" and 2 in node.args:
            node.args = (node.args[0], 5)
    gm.recompile()
    gm.eval()(torch.ones(2, 3))
    torch.testing.assert_close(gm.train()(torch.ones(2, 3)), 5 * model.fc(torch.ones(2, 3)))


def test_merging_compares_graphs_only():
    one, two = (capture(Drop().train(mode), torch.ones(3)).graph for mode in (True, False))
    with pytest.raises(ValueError, match="3 flags for 2 modules"):
        one._merge_modes(two, ["", "a"], b"\1\0\1")
    with pytest.raises(ValueError, match="two settings"):
        one._merge_modes(two, [""], b"\1")
    with pytest.raises(TypeError):
        one._merge_modes("two", [""], b"\1\0")
    assert not one._merge_modes(two, [""], b"\1\1")  # no flag tells them apart
    assert "True" in str(one)
    assert one._merge_modes(two, [""], b"\1\0")
    assert "training: %training" in str(one)
