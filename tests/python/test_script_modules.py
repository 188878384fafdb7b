"""What scripted programs do to modules: settings, buffers and modes that are changed around a call,
`self.training`, layers of torch's that are derived from, results that functools caches.

Each model is captured in both modes and called three times in each mode, beside a copy that stays
eager: results, parameters, buffers, modes and the random state are equal. Or it is refused, with
its line. The capture leaves the model as it was.
"""
import copy
import functools
import pickle
import sys
import types

import cfx
import pytest
from cfx import passes

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

X = torch.tensor([[1.0, 2.0, 0.5], [-1.0, 0.25, 3.0], [0.5, -2.0, 1.0], [2.0, 1.0, -0.5]])
BATCHES = (X, -X, X * 3 + 1)


class Layers(nn.Module):
    """What most of the models below have."""

    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)
        self.fc = nn.Linear(3, 3)
        self.ln = nn.LayerNorm(3)
        self.drop = nn.Dropout(0.4)
        self.seq = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
        self.register_buffer("state", torch.zeros(3))
        self.p = 0.3


def facts(model):
    """All that a capture may not change."""
    tensors = {name: value.clone() for name, value in model.state_dict().items()}
    plain = {
        (path, name): value
        for path, module in model.named_modules()
        for name, value in vars(module).items()
        if isinstance(value, (bool, int, float, str, tuple, type(None)))
        and not name.startswith("_tensor_constant")
    }
    return tensors, plain


def equal_tensors(a, b):
    return set(a) == set(b) and all(torch.equal(a[name], b[name]) for name in a)


def run(model, x, seed):
    """The result or the exception's class, and the random state afterwards."""
    torch.manual_seed(seed)
    try:
        result = model(x)
    except (RuntimeError, ValueError, TypeError, AssertionError) as error:
        result = type(error)
    return result, torch.get_rng_state()


def check_equal(want, got):
    assert type(got) is type(want) or isinstance(want, type) and issubclass(got, want)
    if isinstance(want, torch.Tensor):
        assert torch.allclose(got, want), (got, want)
    elif isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for a, b in zip(want, got):
            check_equal(a, b)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        check_equal(list(want.values()), list(got.values()))
    else:
        assert got == want or isinstance(want, type)


def check_calls(eager, graph, batches=BATCHES, modes=(True, False, True)):
    for mode in modes:
        eager.train(mode)
        graph.train(mode)
        for seed, x in enumerate(batches):
            want, state = run(eager, x.clone(), seed)
            got, after = run(graph, x.clone(), seed)
            check_equal(want, got)
            assert torch.equal(after, state)
            known = eager.state_dict()
            for name, value in graph.state_dict().items():
                if name in known:
                    assert torch.equal(value, known[name]), name
            modules = dict(eager.named_modules())
            for path, module in graph.named_modules():
                assert path not in modules or module.training == modules[path].training, path


def captured(make, train=True, **options):
    torch.manual_seed(1)
    model = make().train(train)
    eager = copy.deepcopy(model)
    before = facts(model)
    graph = cfx.script(model, **options)
    after = facts(model)
    assert equal_tensors(before[0], after[0]) and before[1] == after[1]
    return eager, graph


def same(make, batches=BATCHES, modes=(True, False, True)):
    for train in (True, False):
        eager, graph = captured(make, train)
        check_calls(eager, graph, batches, modes)
    return graph


def calls(make, batches=BATCHES):
    """Models whose capture holds for one mode: the other is an error, never another result."""
    for train in (True, False):
        eager, graph = captured(make, train)
        check_calls(eager, graph, batches, (train,))
        graph.train(not train)
        with pytest.raises(AssertionError, match="captured in .* mode only"):
            graph(batches[0])


def model(forward, base=Layers, **more):
    return type(forward.__name__, (base,), {"forward": forward, **more})


# ---- settings that are changed around a call -----------------------------------------------------


def sets_eps(self, x):
    old = self.bn.eps
    self.bn.eps = 1.0
    y = self.bn(x)
    self.bn.eps = old
    return y + self.bn(x)


def sets_dropout(self, x):
    old, self.drop.p = self.drop.p, 0.9
    y = self.drop(x)
    self.drop.p = old
    return y + self.drop(x)


def sets_by_data(self, x):
    old = self.ln.eps
    if x.sum() > 0:
        self.ln.eps = 1.0
    y = self.ln(x)
    self.ln.eps = old
    return y


def sets_in_a_loop(self, x):
    old = self.ln.eps
    while x.abs().sum() < 40:
        self.ln.eps = self.ln.eps + 0.5
        x = self.ln(x) + x.abs() + 1
    self.ln.eps = old
    return x


def sets_in_each_round(self, x):
    for i in range(3):
        old = self.ln.eps
        self.ln.eps = i + 0.5
        x = self.ln(x) + x
        self.ln.eps = old
    return x


def sets_and_cleans_up(self, x):
    old = self.ln.eps
    try:
        self.ln.eps = 2.0
        return self.ln(x)
    finally:
        self.ln.eps = old


def sets_momentum_in_a_loop(self, x):
    old = self.bn.momentum
    for _ in range(int(x[0, 0].abs()) % 3 + 1):
        self.bn.momentum = 0.5
        x = self.bn(x)
    self.bn.momentum = old
    return x


def sets_running_mean(self, x):
    self.bn.running_mean = self.bn.running_mean * 0.5 + 2
    return self.bn(x)


def sets_weight(self, x):
    old = self.fc.weight
    self.fc.weight = nn.Parameter(old * 2)
    y = self.fc(x)
    self.fc.weight = old
    return y + self.fc(x)


def drops_weight(self, x):
    old = self.ln.weight
    self.ln.weight = None
    y = self.ln(x)
    self.ln.weight = old
    return y + self.ln(x)


def sets_below(self, x):
    last = self.seq[1]
    old, last.p = last.p, 0.1
    y = self.seq(x)
    last.p = old
    return y + self.seq(x)


def sets_by_class(self, x):
    old = self.ln.eps
    nn.Module.__setattr__(self.ln, "eps", 1.0)
    y = self.ln(x)
    setattr(self.ln, "eps", old)
    return y


def swaps_modules(self, x):
    a, b = self.fc, self.ln
    self.fc = b
    y = self.fc(x)
    self.fc = a
    return y + self.fc(x)


def resets_statistics(self, x):
    self.bn.reset_running_stats()
    return x + self.bn(x)


def sets_the_same(self, x):
    self.ln.eps = 1e-5
    return self.ln(x)


def freezes(self, x):
    self.fc.requires_grad_(False)
    return self.fc(x) * float(self.fc.weight.requires_grad)


@pytest.mark.parametrize("forward", [
    sets_eps, sets_dropout, sets_by_data, sets_in_a_loop, sets_in_each_round, sets_and_cleans_up,
    sets_momentum_in_a_loop, sets_running_mean, sets_weight, drops_weight, sets_below,
    sets_by_class, swaps_modules, resets_statistics, sets_the_same, freezes,
], ids=lambda f: f.__name__)  # fmt: skip
def test_calls_see_what_was_assigned(forward):
    same(model(forward))


def test_a_module_with_its_old_settings_is_called_as_one():
    graph = same(model(sets_eps))
    assert [n.target for n in graph.graph.nodes if n.op == "call_module"] == ["bn"]
    graph = same(model(sets_the_same))
    assert [n.target for n in graph.graph.nodes if n.op == "call_module"] == ["ln"]


def leaves_eps(self, x):
    self.bn.eps = 1.0
    return self.bn(x)


def leaves_weight(self, x):
    self.fc.weight = nn.Parameter(self.fc.weight * 2)
    return self.fc(x)


def assigns_a_tensor(self, x):
    self.fc.weight = self.fc.weight * 2
    return self.fc(x)


def registers(self, x):
    if not hasattr(self, "more"):
        self.register_buffer("more", torch.ones(3))
    return x + self.more


def appends(self, x):
    self.seq.append(nn.ReLU())
    return self.seq(x)


def replaces_an_item(self, x):
    setattr(self.seq, "0", self.ln)
    return self.seq(x)


def hooks(self, x):
    handle = self.ln.register_forward_hook(lambda module, args, result: result * 2)
    y = self.ln(x)
    handle.remove()
    return y


def assigns_around(self, x):
    object.__setattr__(self.ln, "eps", 1.0)
    return self.ln(x)


def looks_inside(self, x):
    old, self.ln.eps = self.ln.eps, 1.0
    y = x * self.ln.__dict__["eps"]
    self.ln.eps = old
    return y


def reads_then_freezes(self, x):
    y = x * float(self.fc.weight.requires_grad)
    self.fc.requires_grad_(False)
    return y


def leaves_itself_in_eval(self, x):
    self.eval()
    return self.seq(x)


@pytest.mark.parametrize("forward, says", [
    (leaves_eps, "cannot assign to attribute 'eps'"),
    (leaves_weight, "cannot assign to 'weight', a parameter"),
    (assigns_a_tensor, "not known to be an nn.Parameter"),
    (registers, "register_buffer changes attribute 'more'"),
    (appends, "append changes attribute '2'"),
    (replaces_an_item, "cannot assign to item '0'"),
    (hooks, "register_forward_hook changes"),
    (assigns_around, "changes attribute 'eps'"),
    (looks_inside, "'__dict__' does not show"),
    (reads_then_freezes, "requires_grad of a tensor changes here"),
    (leaves_itself_in_eval, "leaves leaves_itself_in_eval, which is captured, in another mode"),
], ids=lambda v: getattr(v, "__name__", ""))  # fmt: skip
def test_what_cannot_be_kept_is_refused(forward, says):
    made = model(forward)()
    before = facts(made)
    with pytest.raises(cfx.ScriptError, match=says) as caught:
        cfx.script(made)
    assert str(caught.value).startswith("test_script_modules.py:")
    after = facts(made)
    assert equal_tensors(before[0], after[0]) and before[1] == after[1]
    assert len(made.seq) == 2 and not made.ln._forward_hooks and not hasattr(made, "more")


# ---- layers of torch's that are derived from ---------------------------------------------------


class ScaledBatchNorm(nn.BatchNorm1d):
    def forward(self, x):
        return super().forward(x) * 2


class SoftLayerNorm(nn.LayerNorm):
    def forward(self, x):
        old, self.eps = self.eps, 1.0
        y = super().forward(x)
        self.eps = old
        return y


class ShiftedLinear(nn.Linear):
    def forward(self, x):
        return super().forward(x) + 1


class LouderDropout(nn.Dropout):
    def forward(self, x):
        return super().forward(x) * 3


class LongerSequential(nn.Sequential):
    def forward(self, x):
        return super().forward(x) + x


class OwnInstanceNorm(nn.InstanceNorm1d):
    def forward(self, x):
        return super().forward(x[:, :, None].expand(-1, -1, 4) * torch.arange(1.0, 5)).sum(-1)


class LastOutput(nn.GRU):
    def forward(self, x):
        return super().forward(x)[0]


class Circular(nn.Conv1d):
    def forward(self, x):
        return super().forward(x[:, None])[:, 0]


class SelfAttention(nn.MultiheadAttention):
    def forward(self, x):
        return super().forward(x, x, x)[0]


class Wrapped(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)


@pytest.mark.parametrize("make", [
    lambda: ScaledBatchNorm(3), lambda: ScaledBatchNorm(3, momentum=None),
    lambda: ScaledBatchNorm(3, affine=False), lambda: ScaledBatchNorm(3, track_running_stats=False),
    lambda: SoftLayerNorm(3), lambda: ShiftedLinear(3, 3), lambda: LouderDropout(0.5),
    lambda: LongerSequential(nn.Linear(3, 3), nn.Dropout(0.5)),
    lambda: OwnInstanceNorm(3, track_running_stats=True), lambda: SelfAttention(3, 1, dropout=0.3),
    lambda: LastOutput(3, 3, 2, dropout=0.5), lambda: Circular(1, 1, 3, padding=1,
                                                               padding_mode="circular"),
])  # fmt: skip
def test_derived_layers(make):
    same(make)
    same(lambda: Wrapped(make()))


def test_a_derived_layer_checks_its_input_as_torch_does():
    eager, graph = captured(lambda: ScaledBatchNorm(3))
    for wrong in (torch.ones(3), torch.ones(2, 3, 4, 4)):
        for made in (eager, graph):
            with pytest.raises(ValueError, match="expected 2D or 3D input"):
                made(wrong)


def test_hooks_of_a_changed_module_are_called():
    def make():
        made = model(sets_eps)()
        made.bn.register_forward_hook(lambda module, args, result: result * 3)
        return made

    same(make)


# ---- modes -------------------------------------------------------------------------------------


def asks(self, x):
    if self.training:
        x = x + 1
    return F.dropout(x, self.p, self.training)


def asks_in_an_expression(self, x):
    return x * (0.0 if not self.training else 2.0) + int(self.training)


def asks_and_data(self, x):
    if self.training and x.sum() > 0:
        return self.drop(x)
    return x


def counts_in_training(self, x):
    if self.training:
        self.state.add_(1)
    return x + self.state


def asks_a_layer(self, x):
    return x + 1 if self.bn.training else self.seq(x)


def gives_the_mode(self, x):
    return x, self.training, self.drop.training


def loops_by_mode(self, x):
    for i in range(3 if self.training else 2):
        x = x + i
    return x


def chooses_by_mode(self, x):
    return {True: x, False: x * 2}[self.training] + (x, -x)[self.training]


def fails_in_eval(self, x):
    if not self.training:
        raise RuntimeError("for training only")
    return x


def gives_more_in_training(self, x):
    if self.training:
        return x, x * 2
    return x


def eval_for_a_call(self, x):
    was = self.training
    self.eval()
    y = self.seq(x)
    self.train(was)
    return y + self.seq(x)


def eval_of_a_layer(self, x):
    self.seq.eval()
    return self.seq(x) + self.drop(x)


def eval_by_data(self, x):
    if x.sum() > 0:
        self.seq.eval()
    return self.seq(x)


def train_after_a_call(self, x):
    y = self.seq(x)
    self.seq.train(not self.seq.training)
    return y


def eval_by_attribute(self, x):
    was, self.bn.training = self.bn.training, False
    y = self.bn(x)
    self.bn.training = was
    return y


class Asking(Layers):
    forward = asks


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Asking()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.bn(self.inner(x)) if self.training else self.inner(x)


MODES = [
    asks, asks_in_an_expression, asks_and_data, counts_in_training, asks_a_layer, gives_the_mode,
    loops_by_mode, chooses_by_mode, fails_in_eval, gives_more_in_training, eval_for_a_call,
    eval_of_a_layer, eval_by_data, train_after_a_call, eval_by_attribute,
]  # fmt: skip


@pytest.mark.parametrize("forward", MODES, ids=lambda f: f.__name__)
def test_modes_are_live(forward):
    same(model(forward))


def test_modes_of_modules_below():
    same(Nested)
    eager, graph = captured(Nested)
    eager.inner.eval()
    graph.inner.eval()
    assert not graph.inner.training and graph.training
    torch.manual_seed(0)
    want = eager(X)
    torch.manual_seed(0)
    assert torch.equal(graph(X), want)


def targets(graph, op="get_attr"):
    return [n.target for n in graph.graph.nodes if n.op == op]


def does_not_ask(self, x):
    return self.seq(x)


def asks_for_nothing(self, x):
    if self.training:
        y = x + 1
    else:
        y = x + 1
    if not self.training and False:
        y = y * 2
    return y


def asks_a_lot(self, x):
    return x + 1 if self.training or True else x


@pytest.mark.parametrize("forward", [does_not_ask, asks_for_nothing, asks_a_lot],
                         ids=lambda f: f.__name__)
def test_what_does_not_depend_on_the_mode_has_no_trace_of_it(forward):
    graph = same(model(forward))
    assert targets(graph) == []
    assert not any(n.target is cfx.cond for n in graph.graph.nodes)


def test_the_mode_is_read_once():
    graph = same(model(asks))
    assert targets(graph) == ["training"]
    assert targets(same(Nested)) == ["training", "inner.training"]


def chooses_a_function(self, x):
    f = torch.relu if self.training else torch.tanh
    return f(x)


def chooses_a_module(self, x):
    return (self.fc if self.training else self.ln)(x)


def reads_its_dict(self, x):
    return x + 1 if vars(self)["training"] else x


def leaves_a_layer(self, x):
    self.drop.eval()
    self.bn.train()
    return chooses_a_function(self, self.bn(self.drop(x)))


def leaves_a_layer_by_data(self, x):
    if x.sum() > 0:
        self.drop.eval()
    return chooses_a_function(self, self.drop(x))


def comes_back(self, x):
    mode = self.training
    self.eval()
    y = self.drop(x)
    self.train(mode)
    return chooses_a_function(self, y + self.drop(x))


@pytest.mark.parametrize("forward", [chooses_a_function, chooses_a_module, reads_its_dict,
                                     leaves_a_layer, leaves_a_layer_by_data, comes_back],
                         ids=lambda f: f.__name__)
def test_what_holds_for_one_mode_checks_it(forward):
    calls(model(forward))


def ends_in_training(self, x):
    self.eval()
    y = self.drop(x)
    self.train()
    return chooses_a_function(self, y)


def test_the_end_of_a_call_checks_the_mode_too():
    """It sets the mode that it was captured in without having read it."""
    eager, graph = captured(model(ends_in_training))
    check_calls(eager, graph, modes=(True,))
    assert "training" in targets(graph)
    with pytest.raises(AssertionError, match="captured in training mode only"):
        graph.eval()(X)
    with pytest.raises(cfx.ScriptError, match="in another mode"):
        captured(model(ends_in_training), train=False)


def test_a_mode_that_is_only_assigned_is_not_checked():
    eager, graph = captured(model(leaves_a_layer))
    for made in (eager, graph):
        made.drop.train()
        made.bn.eval()
    assert torch.equal(eager(X), graph(X))
    assert not graph.drop.training and graph.bn.training
    assert [t for t in targets(graph) if t.endswith("training")] == ["training"]


class Counts(nn.Module):
    """Its training mode cannot be captured."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def forward(self, x):
        if self.training:
            self.count += 1
        return x * 2


def test_the_mode_that_can_be_captured_is():
    graph = cfx.script(Counts().eval())
    assert torch.equal(graph(X), X * 2)
    with pytest.raises(AssertionError, match=r"modules.py:\d+: cannot assign to attribute"):
        graph.train()(X)
    with pytest.raises(cfx.ScriptError, match="cannot assign to attribute 'count'"):
        cfx.script(Counts())


def test_fixed():
    for train in (True, False):
        for fixed in (True, False):
            eager, graph = captured(model(asks), train, training=fixed)
            assert targets(graph) == []
            for mode in (True, False):
                want, state = run(eager.train(fixed), X, 0)
                got, after = run(graph.train(mode), X, 0)
                assert torch.equal(want, got) and torch.equal(state, after)
    assert torch.equal(cfx.script(Counts(), training=False)(X), X * 2)
    assert torch.equal(cfx.script(training=False)(Counts())(X), X * 2)


def test_a_function_with_a_module():
    made = model(asks)()

    def through(x):
        return made(x) + 1

    graph = cfx.script(through)
    (name,) = [name for name, _ in graph.named_children()]
    assert targets(graph) == [f"{name}.training"]
    for mode in (True, False):
        graph.train(mode)
        want, _ = run(made.train(mode), X, 0)
        got, _ = run(graph, X, 0)
        assert torch.equal(want + 1, got)


@pytest.mark.parametrize("make", [Nested, model(counts_in_training), model(eval_of_a_layer)],
                         ids=["nested", "counts", "leaves"])
def test_modes_survive(make):
    eager, graph = captured(make)

    def check(again):
        check_calls(copy.deepcopy(eager), again)

    check(copy.deepcopy(graph))
    check(pickle.loads(pickle.dumps(graph)))
    check(cfx.GraphModule(copy.deepcopy(eager), cfx.parse(cfx.text(graph.graph))))
    check(cfx.script(copy.deepcopy(graph)))
    check(cfx.interop.from_torch(cfx.interop.to_torch(copy.deepcopy(graph))))
    for mode in (True, False):
        one, other = copy.deepcopy(eager).train(mode), copy.deepcopy(graph).train(mode)
        want, _ = run(one, X, 0)
        got, _ = run(cfx.Interpreter(other).run, X, 0)
        check_equal(want, got)


@pytest.mark.filterwarnings("ignore:Was not able to save")
def test_modes_in_a_folder(tmp_path, monkeypatch):
    eager, graph = captured(Nested)
    graph.to_folder(tmp_path / "saved_modes", "Nested")
    monkeypatch.syspath_prepend(tmp_path)
    again = __import__("saved_modes").Nested()
    sys.modules.pop("saved_modes")
    check_calls(eager, again)


@pytest.mark.parametrize("name", ["const_fold", "cse", "dce", "normalize", "inline"])
def test_passes_leave_the_mode_alone(name):
    eager, graph = captured(Nested)
    passes.run(graph, name)
    graph.graph.lint()
    assert "training" in targets(graph)
    check_calls(eager, graph)


@pytest.mark.parametrize("forward", [asks, counts_in_training, chooses_a_module, fails_in_eval,
                                     sets_eps, eval_for_a_call, eval_of_a_layer],
                         ids=lambda f: f.__name__)  # fmt: skip
def test_lowered_in_the_present_mode(forward):
    for train in (True, False):
        if forward in (asks, eval_for_a_call, eval_of_a_layer) and train:
            continue  # other random numbers
        eager, graph = captured(model(forward), train)
        lowered = cfx.lower(graph)
        for x in BATCHES:
            want, _ = run(eager, x, 0)
            if isinstance(want, type):
                with pytest.raises(RuntimeError):
                    lowered(x)
            else:
                assert torch.allclose(lowered(x), want, atol=1e-6)


def test_what_leaves_another_mode_is_not_lowered():
    graph = cfx.script(model(train_after_a_call)())
    with pytest.raises(Exception, match="setattr"):
        cfx.lower(graph)


# ---- caches ------------------------------------------------------------------------------------


@functools.lru_cache
def table(n):
    return torch.arange(float(n))


@functools.lru_cache
def noise(n):
    return torch.rand(n)


@functools.cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@functools.lru_cache
def doubled(x):
    return x * 2


class Once:
    """Computes its numbers once."""

    def __init__(self, x):
        self.x = x
        self.count = 0

    @functools.cached_property
    def numbers(self):
        self.count += 1
        return torch.rand(3) + self.x


def uses_a_table(self, x):
    return x + table(3) * table(x.shape[1])


def uses_a_table_in_branches(self, x):
    y = x + table(3) if x.sum() > 0 else x - table(3)
    return y * table(3)


def counts_rabbits(self, x):
    return x * fibonacci(20)


def draws_once(self, x):
    @functools.lru_cache
    def own(n):
        return torch.rand(n)

    return x + own(3) - own(3) * 2


def tells_keys_apart(self, x):
    @functools.lru_cache
    def plain(n):
        return torch.rand(()) * n

    @functools.lru_cache(typed=True)
    def typed(n, m=1):
        return torch.rand(()) * n * m

    @functools.lru_cache(maxsize=0)
    def never(n):
        return torch.rand(()) * n

    x = x + plain(1) - plain(1.0) + plain(True) + plain(1)
    x = x + typed(1, 2) - typed(1, 2.0) * typed(1, m=2) + typed(1, 2)
    return x + never(3) - never(3)


def has_an_object(self, x):
    once = Once(x)
    return once.numbers + once.numbers, once.count


@pytest.mark.parametrize("forward", [
    uses_a_table, uses_a_table_in_branches, counts_rabbits, draws_once,
    tells_keys_apart, has_an_object,
], ids=lambda f: f.__name__)  # fmt: skip
def test_cached_results_are_computed_once(forward):
    same(model(forward))


def test_cached_properties_of_a_module():
    class Has(Layers):
        @functools.cached_property
        def numbers(self):
            return torch.arange(3.0)

        @functools.cached_property
        def names(self):
            return ["a", "b"]

        def forward(self, x):
            return x + self.numbers * self.numbers + len(self.names)

    same(Has)
    made = Has()
    cfx.script(made)
    assert "numbers" not in vars(made) and "names" not in vars(made)


def uses_noise(self, x):
    return x + noise(3) - noise(3)


def caches_a_tensor(self, x):
    return doubled(x) + 1


def changes_a_table(self, x):
    numbers = table(3)
    numbers[:2] += x.sum()
    return x + numbers


def changes_a_table_in_a_branch(self, x):
    if x.sum() > 0:
        numbers = table(3)
        numbers.add_(1)
        x = x + numbers
    return x


def draws_in_a_branch(self, x):
    @functools.lru_cache
    def own(n):
        return torch.rand(n)

    if x.sum() > 0:
        x = x + own(3)
    return x + own(3)


class WithProperties(Layers):
    @functools.cached_property
    def scaled(self):
        return self.fc.weight * 2

    @functools.cached_property
    def drawn(self):
        return torch.rand(3)

    @functools.cached_property
    def names(self):
        return ["a"]


def reads_scaled(self, x):
    return x + self.scaled.sum()


def reads_drawn(self, x):
    return x + self.drawn


def changes_names(self, x):
    self.names.append("b")
    return x * len(self.names)


def counted(x):
    counted.calls += 1
    return x * counted.calls


counted.calls = 0
space = types.SimpleNamespace(calls=0)


def counts_on_a_function(self, x):
    return counted(x)


def counts_in_a_space(self, x):
    space.calls += 1
    return x * space.calls


@pytest.mark.parametrize("forward, says", [
    (uses_noise, "cached .* random numbers"),
    (caches_a_tensor, "cached .* may be a tensor"),
    (changes_a_table, "this changes a tensor that is cached"),
    (changes_a_table_in_a_branch, "this changes a tensor that is cached"),
    (draws_in_a_branch, "computed in a branch or loop"),
    (reads_scaled, "cached .* a parameter, a buffer"),
    (reads_drawn, "cached .* random numbers"),
    (changes_names, "cannot change this list"),
    (counts_on_a_function, "cannot assign to attribute 'calls' of function"),
    (counts_in_a_space, "cannot assign to attribute 'calls' of types.SimpleNamespace"),
], ids=lambda v: getattr(v, "__name__", ""))  # fmt: skip
def test_what_outlives_the_call_is_refused(forward, says):
    made = model(forward, WithProperties)()
    with pytest.raises(cfx.ScriptError, match=says) as caught:
        cfx.script(made)
    assert str(caught.value).startswith("test_script_modules.py:")
    assert counted.calls == 0 and space.calls == 0
    assert not {"scaled", "drawn", "names"} & set(vars(made))


def counts_its_own(self, x):
    def inner(y):
        inner.calls += 1
        return y * inner.calls

    inner.calls = 0
    own = types.SimpleNamespace(n=1)
    if x.sum() > 0:
        own.n = 2
    return inner(x) + inner(x) * own.n


def test_attributes_of_what_the_program_made():
    same(model(counts_its_own))


def test_a_parameter_is_one():
    def make(self, x):
        return nn.Parameter(x * 2)

    graph = same(model(make))
    assert type(graph(X)) is nn.Parameter


@pytest.mark.parametrize("buffer, assign, says", [
    (torch.zeros(3), lambda x: x.sum() / 2, "has dimensions"),
    (torch.zeros((), dtype=torch.int64), lambda x: x.sum() / 2, "integer dtype"),
    (torch.zeros((), dtype=torch.int64), lambda x: x.max() * 0.5, "integer dtype"),
])  # fmt: skip
def test_buffers_keep_their_shape_and_dtype(buffer, assign, says):
    class Keeps(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("last", buffer.clone())

        def forward(self, x):
            self.last = assign(x)
            return x

    with pytest.raises(cfx.ScriptError, match=says):
        cfx.script(Keeps())


class Averages(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls = self.calls + 1
        self.mean = 0.5 * self.mean + 0.5 * x.mean(0)
        return x - self.mean


@pytest.mark.parametrize("make", [lambda m: m, cfx.lower, lambda m: cfx.Interpreter(m).run],
                         ids=["called", "in C", "interpreted"])
@pytest.mark.parametrize("x, says", [
    (X.double(), "dtype"), (torch.ones(2, 2, 3), "shape"), (torch.ones(2, 1), None)
])  # fmt: skip
def test_buffers_that_only_a_run_knows(make, x, says):
    """What would be copied into the old shape, or rounded to the old dtype, is an error."""
    module = cfx.script(Averages())
    checked = [n for n in module.graph.nodes if n.target is cfx.check_buffer]
    assert [n.args[0].target for n in checked] == ["mean"]
    call = make(module)
    eager = Averages()
    for batch in BATCHES:
        torch.testing.assert_close(call(batch), eager(batch))
    if not says:
        torch.testing.assert_close(call(x), eager(x))
        return
    with pytest.raises(RuntimeError, match=says) as caught:
        call(x)
    notes = [str(caught.value), *getattr(caught.value, "__notes__", ())]
    assert "test_script_modules.py" in "".join(notes)


def test_check_buffer():
    cfx.check_buffer(X, -X)
    for other in (X[0], X.double(), X.half(), X[:, :1]):
        with pytest.raises(RuntimeError, match="which a graph cannot keep"):
            cfx.check_buffer(X, other)


@pytest.mark.parametrize("given, says", [
    (torch.zeros(2), "shape"), (torch.zeros(3).int(), "dtype")
])  # fmt: skip
def test_buffers_and_tensors_that_are_known(given, says):
    class Swaps(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", torch.zeros(3))
            self.register_buffer("b", given)

        def forward(self, x):
            self.a = self.b
            return x

    with pytest.raises(cfx.ScriptError, match=f"a tensor of another {says}"):
        cfx.script(Swaps())
