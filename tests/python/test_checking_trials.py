"""cfx.check with sizes, train and repeat: a model beside its captured version."""
import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import cfx


def of(forward, **attributes):
    model = type("Made", (nn.Module,), {"forward": forward})()
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


class Net(nn.Module):
    """An embedding, a mask whose length is that of the text, statistics, dropout, a counter."""

    def __init__(self):
        super().__init__()
        self.embed, self.fc, self.bn = nn.Embedding(10, 4), nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.calls = 0

    def forward(self, ids, mask=None, *, scale=1.0):
        self.calls += 1
        x = F.dropout(self.fc(self.embed(ids)), 0.2, self.training)
        if mask is not None:
            x = x * mask[..., None]
        pooled = self.bn(x.mean(1)) * scale * self.calls
        return {"pooled": pooled, "length": ids.shape[1]}


INPUTS = torch.randint(0, 10, (2, 5)), torch.ones(2, 5)


def outcomes(report):
    return {trial.what: trial.outcome for trial in report.trials}


def test_all_kinds_of_trials(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    model = Net()
    before = copy.deepcopy(model.state_dict())
    gm = cfx.capture(model, *INPUTS)
    report = cfx.check(model, gm, INPUTS, sizes=2, train=True, repeat=3)
    assert report and report.ok and report.first is None, report
    assert outcomes(report) == {
        "the inputs as given": "ok", "other data": "ok", "training": "ok", "evaluation": "ok",
        "ids.shape[0] = 3, with mask.shape[0]": "ok",
        "ids.shape[0] = 1": "ok",  # statistics of one row cannot be had, but it is broadcast
        "ids.shape[1] = 6, with mask.shape[1]": "ok", "ids.shape[1] = 1, with mask.shape[1]": "ok",
    }  # fmt: skip
    shown = str(report)
    assert shown.startswith("ok: 8 comparisons, the same results\n")
    assert "3 calls, 5 gradients, 3 buffers, 1 attribute" in shown
    assert model.training and gm.training and model.calls == gm.calls == 0
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in (*model.parameters(), *gm.parameters()))
    assert all(m.training for m in gm.modules())


def test_the_table_fits(monkeypatch):
    model = of(lambda self, x: x * 2)
    gm = cfx.capture(model, torch.ones(3))
    for node in gm.graph.nodes:
        if 2 in node.args:
            node.args = (node.args[0], 3)
    gm.recompile()
    report = cfx.check(model, gm, torch.ones(3), sizes=3)
    for columns in (60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert max(map(len, str(report).split("\n"))) <= min(columns, 100)


def broken(model, inputs, target, change):
    """The captured model with a node changed."""
    gm = cfx.capture(model, *inputs)
    (node,) = [n for n in gm.graph.nodes if target in str(n.target)]
    change(gm.graph, node)
    gm.graph.lint()
    gm.recompile()
    return gm


def test_a_difference_is_shown_with_its_node_and_line():
    def forward(self, x):
        y = torch.sin(x)
        return {"z": [y + 1, y.sum()]}

    def change(graph, node):
        node.target = torch.cos

    model = of(forward)
    report = cfx.check(model, broken(model, (torch.ones(2),), "sin", change), torch.ones(2),
                       sizes={"x": {0: 4}})
    assert not report and outcomes(report) == {
        "the inputs as given": "differs", "other data": "differs", "x.shape[0] = 4": "differs"}
    shown = str(report)
    assert shown.startswith("3 of 3 comparisons failed\n")
    assert "  result['z'][0]    2 of 2 elements, most at [0]: 1.84147 became 1.5403" in shown
    assert "y = torch.sin(x)" in shown and "test_checking_trials.py:" in shown
    assert report.first.culprit.target is torch.sin
    assert report.trials[0].difference.max_abs > 0.1


def test_gradients_are_compared():
    def change(graph, node):
        with graph.inserting_after(node):
            cut = graph.call_method("detach", (node,))
        node.replace_all_uses_with(cut, lambda user: user is not cut)

    model = of(lambda self, x: self.fc(x) * 2 + self.fc(x), fc=nn.Linear(3, 3))
    gm = broken(model, (torch.ones(2, 3),), "mul", change)
    assert cfx.check(model, gm, (torch.ones(2, 3),), repeat=2)  # results alone agree
    report = cfx.check(model, gm, (torch.ones(2, 3),), train=True)
    assert outcomes(report)["training"] == "differs" and "gradient of fc." in str(report)


def test_tied_weights():
    """The captured module may have them under another of their names."""
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
            self.second.weight = self.first.weight

        def forward(self, x):
            return F.linear(self.second(x), self.second.weight)

    model = Tied()
    report = cfx.check(model, cfx.capture(model, torch.ones(2, 3)), torch.ones(2, 3), train=True)
    assert report and "2 gradients" in str(report), report


def test_gradients_of_inputs_are_compared():
    model = of(lambda self, x: (x * x).sum())
    x = torch.ones(3, requires_grad=True)
    report = cfx.check(model, cfx.capture(model, x), x, train=True)
    assert report and "1 gradient" in str(report)
    assert x.grad is None


def test_state_is_compared_call_by_call():
    def forward(self, x):
        self.calls += 1
        self.seen += x.sum()
        return x * 2

    def by_two(self, x):
        self.calls += 2
        self.seen += x.sum()
        return x * 2

    def by_one(self, x):
        self.calls += 1
        self.seen += 3
        return x * 2

    def made(function):
        model = of(function, calls=0)
        model.register_buffer("seen", torch.zeros(()))
        return model

    model = made(forward)
    assert cfx.check(model, cfx.capture(model, torch.ones(3)), torch.ones(3), repeat=4)
    report = cfx.check(model, cfx.capture(made(by_two), torch.ones(3)), torch.ones(3), repeat=2)
    assert not report and "attribute of calls" in str(report)
    other = cfx.capture(made(by_one), torch.ones(3))
    report = cfx.check(model, other, torch.ones(3), sizes={"x": {0: 4}}, repeat=2)
    assert list(outcomes(report).values()) == ["ok", "ok", "differs"]
    assert "buffer of seen" in str(report)


def test_the_second_call_may_be_the_wrong_one():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(()))

        def forward(self, x):
            self.n.add_(1)
            return x * (self.n > 1)

    class Once(Counts):
        def forward(self, x):
            self.n.add_(1)
            return x * 0

    report = cfx.check(Counts(), cfx.capture(Once(), torch.ones(2)), torch.ones(2), repeat=2)
    assert not report and report.trials[0].call == 2 and ", call 2" in str(report)


def test_what_is_written_to_inputs_is_compared():
    model = of(lambda self, x: x.add_(1) * 2)
    other = of(lambda self, x: (x + 1) * 2)
    assert cfx.check(model, cfx.capture(model, torch.ones(3)), torch.ones(3), repeat=2)
    report = cfx.check(model, cfx.capture(other, torch.ones(3)), torch.ones(3), repeat=2)
    assert not report and "inputs[0][0]: 3 of 3 elements" in str(report)


def test_a_refusal():
    model = of(lambda self, x: x * 2 if x.shape[0] > 2 else x)
    gm = cfx.capture(model, torch.ones(3))
    report = cfx.check(model, gm, torch.ones(3), sizes=2)  # sizes that nobody asked for
    assert report and outcomes(report)["x.shape[0] = 1"] == "refused"
    report = cfx.check(model, gm, torch.ones(3), sizes={"x": {0: [1]}})
    assert not report and "x.shape[0] > 2 was True" in str(report)
    assert "recapture=True" in str(report)
    gm = cfx.capture(model, torch.ones(3), recapture=True)
    assert cfx.check(model, gm, torch.ones(3), sizes={"x": {-1: [1, 5]}})


def test_what_the_model_does_not_take():
    model = of(lambda self, x: self.fc(x), fc=nn.Linear(3, 3))
    gm = cfx.capture(model, torch.ones(2, 3))
    report = cfx.check(model, gm, torch.ones(2, 3), sizes=1)
    assert report and outcomes(report)["x.shape[1] = 4"] == "not taken"
    report = cfx.check(model, gm, torch.ones(2, 3), sizes={"x": {1: [4]}})
    assert not report and "give inputs that the model takes" in str(report)


@pytest.mark.parametrize("sizes, why", [
    ({"y": {0: 1}}, r"there is no tensor 'y' among the inputs \(x\)"),
    ({"n": {0: 1}}, "there is no tensor 'n'"),
    ({"x": {2: 1}}, "x has 2 dimensions, so there is no dimension 2"),
])  # fmt: skip
def test_sizes_that_are_not_there(sizes, why):
    model = of(lambda self, x, n=1: x * n)
    gm = cfx.capture(model, torch.ones(2, 3))
    with pytest.raises(ValueError, match=why):
        cfx.check(model, gm, (torch.ones(2, 3), 1), sizes=sizes)


def test_accidental_equality_is_not_a_tie():
    """Features of the size of the batch: the batch changes alone, where both cannot change."""
    model = of(lambda self, x: self.fc(x), fc=nn.Linear(4, 4))
    gm = cfx.capture(model, torch.ones(4, 4))
    report = cfx.check(model, gm, torch.ones(4, 4), sizes={"x": {0: [1, 7]}})
    assert report and set(outcomes(report)) >= {"x.shape[0] = 1", "x.shape[0] = 7"}


def test_structures_keywords_and_functions():
    def program(pair, *, rest=()):
        return {"a": pair["x"] @ pair["y"], "rest": [r.sum() for r in rest]}

    inputs = {"pair": {"x": torch.randn(2, 3), "y": torch.randn(3, 5)}, "rest": [torch.ones(2)]}
    gm = cfx.capture(program, **inputs)
    report = cfx.check(program, gm, inputs, sizes={"pair['x']": {1: 4}, "rest[0]": {0: 9}})
    assert report, report
    assert "pair['x'].shape[1] = 4, with pair['y'].shape[0]" in outcomes(report)


def test_one_tensor_twice_stays_one():
    def program(a, b):
        a.add_(1)
        return b * 2

    x = torch.ones(3)
    gm = cfx.capture(program, x, x)
    assert cfx.check(program, gm, (x, x), sizes=1, repeat=2) and torch.equal(x, torch.ones(3))


def test_other_data_are_of_the_same_kind():
    seen = []

    def program(ids, share, flag):
        seen.append((ids, share, flag))
        return ids.sum() + share.sum() + flag.sum()

    inputs = torch.tensor([3, 7]), torch.rand(50), torch.tensor([True, True])
    cfx.check(program, program, inputs, sizes=1)
    for ids, share, flag in seen:
        assert set(ids.tolist()) <= {3, 7} and flag.all()
        assert inputs[1].min() <= share.min() and share.max() <= inputs[1].max()
    assert len({tuple(share.tolist()) for _, share, _ in seen}) > 1


def test_the_model_is_left_as_it_was():
    class Rough(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.log = nn.Parameter(torch.ones(3)), []
            self.register_buffer("b", torch.zeros(3))

        def forward(self, x):
            with torch.no_grad():
                self.w.mul_(2)
            self.log.append(1)
            self.b = self.b + 1
            self.new = len(self.log)
            return x * self.w

    model = Rough()
    w, b, log = model.w, model.b, model.log
    state = torch.get_rng_state()
    model.w.grad = torch.ones(3)
    grad = model.w.grad
    assert cfx.check(model, Rough(), torch.ones(3), repeat=2, train=True)
    assert model.w is w and model.b is b and model.log is log and log == []
    assert torch.equal(w, torch.ones(3)) and torch.equal(b, torch.zeros(3))
    assert model.w.grad is grad and not hasattr(model, "new")
    assert torch.equal(torch.get_rng_state(), state) and model.training


def test_errors_of_the_captured_module():
    model = of(lambda self, x: x * 2)
    other = of(lambda self, x: x[5] * 2)
    report = cfx.check(model, other, torch.ones(3), repeat=2)
    assert not report and outcomes(report)["other data"] == "fails" and "IndexError" in str(report)


def test_several_examples():
    model = of(lambda self, x: x * 2)
    gm = cfx.capture(model, torch.ones(3))
    examples = [torch.ones(3), (torch.ones(5),), {"x": torch.ones(1)}]
    assert len(cfx.check(model, gm, examples, repeat=2).trials) == 6
