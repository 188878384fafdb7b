"""cfx.check, bisect and minimize: what counts as a difference, who is blamed, what is left."""
import copy
import dataclasses
import gc
import operator

import pytest

import cfx

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from cfx.passes.infra.pass_base import PassBase, PassResult  # noqa: E402

X = torch.tensor([[1.0, -2.0], [0.5, 3.0]])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.norm = nn.BatchNorm1d(2)
        self.drop = nn.Dropout(0.5)
        self.linear.weight.data.copy_(torch.tensor([[0.5, 1.0], [2.0, 0.25]]))

    def forward(self, x):
        y = torch.relu(self.linear(x))
        y = self.drop(self.norm(y))
        return {"sum": y.sum(), "pair": (y * 2, x + 1)}


def retarget(gm, old, new):
    """A copy in which a function is another one."""
    gm = copy.deepcopy(gm)
    for node in gm.graph.nodes:
        node.target = new if node.target == old else node.target
    gm.recompile()
    return gm


# ---- values


def gives(value):
    return lambda x: value


@dataclasses.dataclass
class Pair:
    first: object
    second: object


class Picky:
    def __eq__(self, other):
        raise ArithmeticError("ask me not")


SAME = [
    (Pair(torch.ones(2), 1), Pair(torch.ones(2), 1)),
    (object(), object()),
    (torch.tensor(1.0), torch.tensor(1.0 + 1e-6)),
    (torch.tensor([1e6, 0.0]), torch.tensor([1e6, 1e-1])),  # small beside the largest
    (torch.tensor([float("nan"), 1.0]), torch.tensor([float("nan"), 1.0])),
    (torch.tensor([float("inf"), -float("inf")]), torch.tensor([float("inf"), -float("inf")])),
    (torch.tensor([1.0], dtype=torch.float16), torch.tensor([1.001], dtype=torch.float16)),
    (torch.tensor([1.0], dtype=torch.bfloat16), torch.tensor([1.03], dtype=torch.bfloat16)),
    (torch.tensor([1 + 1j]), torch.tensor([1 + 1j + 1e-6])),
    (torch.tensor([True]), torch.tensor([True])),
    (torch.zeros(0), torch.zeros(0)),
    (torch.eye(2).to_sparse(), torch.eye(2).to_sparse()),
    ((1, [2.0, None], {"a": "b"}), (1, [2.0 + 1e-12, None], {"a": "b"})),
    (float("nan"), float("nan")),
]
DIFFERENT = [
    (Picky(), Picky(), "not comparable: ask me not"),
    (torch.tensor(1.0), torch.tensor(1.001), "1 became 1.001"),
    (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]), "1 of 2 elements, most at [1]"),
    (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, 2.0]), "nan became 2"),
    (torch.tensor(float("inf")), torch.tensor(-float("inf")), "inf became -inf"),
    (torch.tensor(1.0), torch.tensor(1.0).double(), "dtype torch.float32 became torch.float64"),
    (torch.zeros(2), torch.zeros(2, 1), "shape [2] became [2, 1]"),
    (torch.tensor([2**60]), torch.tensor([2**60 + 1]), "1 of 1 elements"),
    (torch.tensor([True, True]), torch.tensor([True, False]), "1 of 2 elements, most at [1]"),
    (torch.tensor([1 + 1j]), torch.tensor([1 - 1j]), "1 of 1 elements"),
    (torch.tensor(1e-9).double(), torch.tensor(1e-8).double(), "became"),
    ((1, 2), (1, 2, 3), "tuple with [0, 1] became one with [0, 1, 2]"),
    ({"a": 1}, {"b": 1}, "dict with ['a'] became one with ['b']"),
    ((1, 2), [1, 2], "not equal"),
    (1, 1.0, "not equal"),
    ("a", "b", "not equal"),
    (1.0, 1.1, "1 became 1.1"),
    (None, torch.zeros(1), "not equal"),
]


@pytest.mark.parametrize("pair", SAME)
def test_same_values(pair):
    assert cfx.check(gives(pair[0]), gives(pair[1]), (X,))


@pytest.mark.parametrize("case", DIFFERENT, ids=lambda case: case[2])
def test_different_values(case):
    before, after, what = case
    report = cfx.check(gives((0, before)), gives((0, after)), (X,))
    assert not report and not report.ok
    assert what in report.difference.what
    assert report.difference.where == "[1]"
    assert what in str(report)


def test_fields_are_compared():
    one, two = gives(Pair(1, torch.ones(2))), gives(Pair(1, torch.zeros(2)))
    assert cfx.check(one, two, (X,)).difference.where == "['second']"


def test_how_much_and_where():
    report = cfx.check(gives(torch.tensor([[1.0, 4.0]])), gives(torch.tensor([[1.0, 2.0]])), (X,))
    assert report.difference.max_abs == 2.0 and report.difference.max_rel == 1.0
    assert report.difference.before == "float32[1, 2], 1 to 4"
    assert "most at [0, 1]: 4 became 2 (abs 2, rel 1)" in report.difference.what


def test_tolerances():
    one, two = gives(torch.tensor(1.0)), gives(torch.tensor(1.05))
    assert not cfx.check(one, two, (X,))
    assert cfx.check(one, two, (X,), tolerances=(0.1, 0.0))
    assert cfx.check(one, two, (X,), tolerances=0.1)
    assert cfx.check(one, two, (X,), tolerances={torch.float32: (0.1, 0.0)})
    assert not cfx.check(one, two, (X,), tolerances={torch.float64: (0.1, 0.0)})
    assert not cfx.check(one, gives(torch.tensor(1.0 + 1e-6)), (X,), tolerances=(0.0, 0.0))


# ---- runs leave no trace


def test_nothing_is_left_of_the_runs():
    model = Net()
    traced = cfx.symbolic_trace(model)
    x, state = X.clone(), torch.get_rng_state()
    kept = copy.deepcopy(model.state_dict())
    assert cfx.check(model, traced, (x,))  # in training mode: dropout, running statistics
    assert not cfx.check(model, retarget(traced, operator.mul, operator.sub), (x,))
    assert torch.equal(state, torch.get_rng_state()) and torch.equal(x, X)
    assert all(torch.equal(kept[k], v) for k, v in model.state_dict().items())


def test_writing_to_inputs_counts():
    report = cfx.check(lambda x: x.add_(1), lambda x: x + 1, (X.clone(),))
    assert report.difference.where == " (written to inputs)[0]"
    assert cfx.check(lambda x: x.add_(1), lambda x: x.add_(1), (X.clone(),))


def test_one_tensor_given_twice_stays_one():
    assert cfx.check(lambda x, y: x.add_(1) + y, lambda x, y: x.add_(1) * 2, (X, X))


# ---- where


def test_the_first_node_and_its_line():
    model = Net().eval()
    gm = cfx.symbolic_trace(model)
    for before in (model, gm, cfx.interop.to_torch(gm)):
        report = cfx.check(before, retarget(gm, torch.relu, torch.exp), (X,))
        assert report.culprit.name == "relu" and report.partner.target is torch.exp
        assert {n.name for n in report.agreed} == {"x", "linear", "add"}
        assert report.at.after == report.at.after and "elements" in report.at.what
        text = str(report)
        assert "relu = torch.relu(linear)" in text
        assert "relu = torch.exp(linear) (by uses)" in text
        assert "test_checking.py:" in text and "y = torch.relu(self.linear(x))" in text
        assert "3, the last: x, linear, add" in text
        assert max(map(len, text.splitlines())) <= 80


def relu_of_sum(x, y):
    return torch.relu(x + y)


def test_a_fusion_that_is_right_is_not_blamed():
    gm = cfx.symbolic_trace(lambda x: torch.exp(torch.neg(torch.relu(x + 1))))
    fused = copy.deepcopy(gm)
    add, relu = (fused.graph.find_nodes(op="call_function", target=t)[0]
                 for t in (operator.add, torch.relu))
    add.target = relu_of_sum  # takes in what follows
    relu.replace_all_uses_with(add)
    fused.graph.erase_node(relu)
    fused.recompile()
    assert cfx.check(gm, fused, (X,))
    report = cfx.check(gm, retarget(fused, torch.neg, torch.abs), (X,))
    assert report.culprit.name == "neg"
    assert "relu" in [n.name for n in report.agreed]


def test_a_lost_write_is_blamed():
    def write(x):
        y = x + 1
        y.add_(1)
        return y * 2

    gm = cfx.symbolic_trace(write)
    assert cfx.bisect(["dce"], gm, (X,)).ok
    report = cfx.bisect([lambda m: m.graph.eliminate_dead_code()], gm, (X,))  # as torch.fx does
    assert report.culprit.name == "add_" and report.partner is None
    assert "gone" in str(report)


def test_nodes_in_regions_are_found():
    inner = cfx.symbolic_trace(lambda x: torch.relu(x + 1)).graph
    graph = cfx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(cfx.cond, (True, inner, copy.deepcopy(inner), (x,))))
    gm = cfx.GraphModule(nn.Module(), graph)
    bad = copy.deepcopy(gm)
    (cond,) = bad.graph.find_nodes(op="call_function", target=cfx.cond)
    for node in cond.args[1].nodes:
        if node.target is torch.relu:
            node.target = torch.exp
    bad.recompile()
    report = cfx.check(gm, bad, (X,))
    assert report.culprit.target is torch.relu and report.culprit.graph is not gm.graph


def test_what_cannot_be_traced_is_checked_by_its_results():
    def program(x):
        return x * 2 if x.sum() > 0 else x

    assert cfx.check(program, lambda x: x + x, (X,))
    report = cfx.check(program, lambda x: x, (X,))
    assert report.culprit is None and "pass two GraphModules" in str(report)


def test_the_second_version_raises():
    gm = cfx.symbolic_trace(lambda x: torch.neg(x) + 1)
    report = cfx.check(gm, retarget(gm, torch.neg, torch.linalg.inv), (torch.ones(3),))
    assert report.error.startswith("RuntimeError: linalg.inv") and not report
    assert str(report).startswith("the second version fails")


def test_what_the_first_version_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        cfx.check(lambda x: 1 / 0, lambda x: x, (X,))


def test_several_samples():
    report = cfx.check(torch.abs, torch.relu, [(torch.ones(1),), (-torch.ones(1),)])
    assert not report and torch.equal(report.inputs[0], -torch.ones(1))
    assert cfx.check(torch.abs, torch.relu, [(torch.ones(1),), torch.ones(2)])


def test_other_names_and_a_change():
    def one(a):
        b = torch.relu(a)
        return torch.exp(b) + 1

    gm = cfx.symbolic_trace(one)
    other = retarget(gm, torch.exp, torch.sin)
    for i, node in enumerate(other.graph.nodes):
        node._rename(f"n{i}")
    other.recompile()
    report = cfx.check(gm, other, (X,))
    assert report.culprit.name == "exp" and report.by == "uses"


# ---- bisect


def fine(gm):
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target is torch.neg:
            node.target = operator.neg


def wrong(gm):
    for node in gm.graph.nodes:
        if node.target is torch.relu:
            node.target = torch.sigmoid


def raises(gm):
    raise ValueError("not for me")


def breaks(gm):
    last = list(gm.graph.nodes)[-2]
    first = next(n for n in gm.graph.nodes if n.op == "call_module")
    first.args = (last,)


class Wrong(PassBase):
    def call(self, gm):
        wrong(gm)
        gm.recompile()
        return PassResult(gm, True)


@pytest.mark.parametrize("bad", [wrong, Wrong(), lambda gm: retarget(gm, torch.relu, torch.exp)])
def test_bisect_finds_the_pass_and_the_node(bad):
    model = Net().eval()
    before = str(cfx.symbolic_trace(model).graph)
    gm = cfx.symbolic_trace(model)
    report = cfx.bisect(["cse", fine, bad, raises], gm, (X,))
    assert report.broken_by is bad and report.culprit.name == "relu"
    assert report.passed == ["cse", "fine"]
    name = getattr(bad, "__name__", "Wrong")
    assert str(report).startswith(f"pass '{name}' changes the results")
    assert str(gm.graph) == before  # only copies were changed
    assert torch.equal(gm.linear.weight, model.linear.weight)


def test_bisect_of_passes_that_fail():
    report = cfx.bisect([fine, raises], Net(), (X,))
    assert report.error == "ValueError: not for me"
    assert str(report).startswith("pass 'raises' fails")
    report = cfx.bisect([fine, breaks], Net(), (X,))
    assert report.error.startswith("RuntimeError: the pass leaves an invalid graph")
    assert "linear" in report.error


def test_bisect_refuses_what_is_not_a_pass():
    ran = []
    with pytest.raises(ValueError, match="no pass 'dcee'; the passes are .*cse, dce,"):
        cfx.bisect([ran.append, "dcee"], Net(), (X,))
    with pytest.raises(TypeError, match="not int: 3"):
        cfx.bisect([ran.append, 3], Net(), (X,))
    assert ran == []


def test_a_graph_that_was_broken_before_is_not_blamed_on_a_pass():
    gm = cfx.symbolic_trace(Net().eval())
    breaks(gm)
    with pytest.raises(ValueError, match="invalid before any pass has run:\\n.*%linear"):
        cfx.bisect(["dce"], gm, (X,))
    stale = cfx.symbolic_trace(Net().eval())
    wrong(stale)  # and does not recompile
    with pytest.raises(ValueError, match=r"before any pass has run.*call recompile\(\)"):
        cfx.bisect(["dce"], stale, (X,))
    stale.recompile()
    assert cfx.bisect(["dce"], stale, (X,))


def test_a_program_that_changes_from_run_to_run_is_not_blamed_on_a_pass():
    calls = []

    def count(x, y):
        calls.append(x)
        return x * y + len(calls)

    gm = cfx.symbolic_trace(lambda x: x * 2)
    next(iter(gm.graph.find_nodes(op="call_function", target=operator.mul))).target = count
    gm.recompile()
    with pytest.raises(ValueError, match="change from run to run"):
        cfx.bisect(["dce"], gm, (X,))


def test_bisect_of_good_passes():
    report = cfx.bisect(["dce", "cse", fine], Net(), (X,))
    assert report.ok and str(report) == "ok: the same results, dce, cse, fine"
    assert str(cfx.bisect("dce", Net(), (X,))) == "ok: the same results, dce"


def test_bisect_needs_something_to_trace():
    with pytest.raises(TypeError, match="cannot be traced"):
        cfx.bisect([], lambda x: x if x.sum() > 0 else -x, (X,))


# ---- minimize


class Deep(nn.Module):
    def forward(self, x):
        for _ in range(20):
            x = torch.sin(x) + 1
        x = torch.relu(x - 1.5)
        for _ in range(20):
            x = torch.cos(x) * 2
        return x


def test_minimize_a_report():
    case = cfx.bisect([fine, wrong], Deep(), (X,)).minimize()
    assert [n.op for n in case.module.graph.nodes] == ["placeholder", "call_function", "output"]
    assert case.module.graph.find_nodes(op="call_function", target=torch.relu)
    (value,) = case.inputs
    assert torch.equal(case.module(value), torch.relu(value))
    assert "float32[2, 2]" in str(case) and "torch.relu" in str(case)
    assert not cfx.bisect([wrong], case.module, case.inputs)


def two_bugs(gm):
    """Makes relu wrong, and the calls after it as well."""
    for node in gm.graph.nodes:
        other = {torch.relu: torch.sigmoid, torch.cos: torch.sin}
        node.target = other.get(node.target, node.target)


def test_minimize_keeps_the_failure_that_was_reported():
    for model in (Deep(), lambda x: (torch.cos(x), torch.relu(x), torch.cos(x + 1))):
        report = cfx.bisect([two_bugs], model, (X,))
        case = report.minimize()
        again = cfx.bisect([two_bugs], case.module, case.inputs)
        assert again.culprit.target is report.culprit.target
        assert again.culprit.name == report.culprit.name


def picky(gm):
    """Raises one of two errors, the first for a large program alone."""
    calls = gm.graph.find_nodes(op="call_function", target=torch.cos)
    if len(calls) > 3 and gm.graph.find_nodes(op="call_function", target=torch.relu):
        raise ValueError(f"{len(calls)} calls of cos at {hex(id(gm))}")
    raise KeyError("too small")


def test_minimize_keeps_the_exception():
    case = cfx.bisect([picky], Deep(), (X,)).minimize()
    assert [n.target for n in case.module.graph.nodes if n.target in (torch.relu, torch.cos)] == [
        torch.relu, *[torch.cos] * 4]  # fmt: skip
    assert cfx.bisect([picky], case.module, case.inputs).error.startswith("ValueError: 4 calls")


def nudge(step):
    """A pass that adds a little to each call of relu."""
    def one(gm):
        for node in gm.graph.find_nodes(op="call_function", target=torch.relu):
            with gm.graph.inserting_after(node):
                added = gm.graph.call_function(torch.add, (node, step))
            node.replace_all_uses_with(added, delete_user_cb=lambda user: user is not added)

    return one


def test_minimize_compares_as_bisect_did():
    strict = cfx.bisect([nudge(1e-6)], Deep(), (X.double(),), tolerances=1e-12)
    calls = [n.target for n in strict.minimize().module.graph.nodes if n.op == "call_function"]
    assert calls == [torch.relu, torch.cos]
    assert cfx.bisect([nudge(1e-6)], Deep(), (X.double(),), tolerances=1e-3)


def test_minimize_what_passes_do_together():
    passes = [nudge(0.06), nudge(0.06)]
    report = cfx.bisect(passes, lambda x: torch.relu(torch.sin(x)), (X,), tolerances=0.05)
    assert report.broken_by is passes[0]  # each alone is enough
    report = cfx.bisect(passes, lambda x: torch.relu(torch.sin(x)), (X,), tolerances=(0.0, 0.1))
    assert report.broken_by is passes[1] and report.passed == ["one"]
    assert [n.target for n in report.minimize().module.graph.nodes if n.op == "call_function"] == [
        torch.relu]  # fmt: skip


def test_minimize_with_a_function():
    sizes = []

    def has_both(module, inputs):
        sizes.append(len(module.graph.nodes))
        module(*inputs)
        targets = [n.target for n in module.graph.nodes]
        return torch.relu in targets and torch.cos in targets

    case = cfx.minimize(Deep(), (X,), has_both)
    calls = [n.target for n in case.module.graph.nodes if n.op == "call_function"]
    assert calls == [torch.relu, torch.cos]
    assert sizes[0] == 84 and len(sizes) < 60


def test_a_garbage_collection_does_not_empty_the_result():
    def fails(module, inputs):
        gc.collect()
        for node in module.graph.nodes:
            node.meta["module"] = module  # a cycle that only the collector can break
        return {torch.relu, torch.cos} <= {node.target for node in module.graph.nodes}

    case = cfx.minimize(Deep(), (X,), fails)
    assert [n.name for n in case.module.graph.nodes] == ["sub", "relu", "cos", "output"]
    assert torch.equal(case.module(*case.inputs), torch.cos(torch.relu(*case.inputs)))


def test_minimize_what_does_not_fail():
    with pytest.raises(ValueError, match="does not fail"):
        cfx.minimize(Deep(), (X,), lambda module, inputs: False)
    with pytest.raises(KeyError):
        cfx.minimize(Deep(), (X,), lambda module, inputs: {}[0])
    with pytest.raises(RuntimeError, match="no pass to run again"):
        cfx.check(torch.abs, torch.relu, (X,)).minimize()


def test_minimize_keeps_modules_and_their_weights():
    model = Net().eval()

    def fails(module, inputs):
        return any((n.op, n.target) == ("call_module", "norm") for n in module.graph.nodes)

    case = cfx.minimize(model, (X,), fails)
    assert [n.name for n in case.module.graph.nodes] == ["relu", "norm", "output"]
    relu = torch.relu(model.linear(X))
    assert torch.allclose(case.module(*case.inputs), model.norm(relu))


# ---- what raises


def test_an_error_is_told_whole_and_with_its_node(capfd):
    gm = cfx.symbolic_trace(Net())
    report = cfx.bisect([lambda gm: retarget(gm, torch.relu, torch.conv2d)], gm, (X,))
    text = str(report)
    assert "int groups = 1)" in text and "While executing %relu" in text  # nothing is cut
    assert "y = torch.relu(self.linear(x))" in text
    assert report.minimize().module.graph.find_nodes(op="call_function", target=torch.relu)
    assert capfd.readouterr().err == ""


def test_a_module_that_writes_to_stderr_still_does(capfd):
    import sys

    cfx.check(lambda x: x, lambda x: (print("seen", file=sys.stderr), x)[1], (X,))
    assert capfd.readouterr().err == "seen\n"


def test_a_version_that_takes_other_inputs():
    def f(x, pair):
        return torch.relu(x + pair[0]) * pair[1]

    gm = cfx.symbolic_trace(f, concrete_args={"pair": (cfx.PH, cfx.PH)})
    flat = copy.deepcopy(gm)
    flat.graph.set_codegen(cfx.CodeGen())
    flat.recompile()
    report = cfx.check(gm, flat, (X, (X, X)))
    assert report.culprit is None and "'pair_2'" in report.error
    assert "report.after(*report.inputs)" in str(report)
