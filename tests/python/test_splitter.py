"""The splitter and the minimizer give what torch.fx's give."""
import contextlib
import importlib
import io
import operator
import random
import time
import types

import pytest
import torch
import torch.fx

import cfx

NAMES = "operator_support shape_prop splitter_base net_min_base tools_common".split()


def load(fx):
    """The modules of cfx.passes or torch.fx.passes, with the package itself as `fx`."""
    mods = {name: importlib.import_module(f"{fx.__name__}.passes.{name}") for name in NAMES}
    return types.SimpleNamespace(fx=fx, **mods)


BOTH = pytest.mark.parametrize("fx", [torch.fx, cfx], ids=["torch", "cfx"])


def diamond(a):
    return torch.sin(a) + torch.cos(a)


def mixed(a, b):
    x = torch.sin(a)
    z = torch.cos(torch.relu(x)) + x
    return z + torch.sin(torch.relu(b))


def sizes(a):
    n = a.size(0)
    b = torch.sin(a)
    d = torch.relu(b.view(n * 2, -1))
    q = d.reshape(d.size(1) + 1 - 1, -1)
    return torch.cos(q)


def gives_size(a):
    n = a.size(0)
    m = n + 1
    return torch.sin(a).view(n, -1), torch.relu(a)[:m], a.size(1)


CASES = [(diamond, 1), (mixed, 2), (sizes, 1), (gives_size, 1)]


def is_supported(_, node):
    return node.op.startswith("call") and node.target not in (torch.relu, operator.add)


def make(p, function, n_inputs, settings=None, cls=None, **options):
    gm = p.fx.symbolic_trace(function)
    inputs = tuple(torch.ones(2, 2) for _ in range(n_inputs))
    support = p.operator_support.create_op_support(is_supported)
    settings = p.splitter_base._SplitterSettingBase(**(settings or {}))
    return (cls or p.splitter_base._SplitterBase)(gm, inputs, support, settings, **options)


def quietly(function):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        result = function()
    return result, out.getvalue()


def names(nodes):
    return sorted(node.name for node in nodes)


@pytest.fixture(autouse=True)
def no_arguments(monkeypatch):
    monkeypatch.setattr("sys.argv", ["x"])


@pytest.mark.parametrize("settings", [
    {}, {"min_acc_module_size": 2}, {"skip_fusion": True},
    {"move_non_tensor_nodes_on_boundary": True},
], ids=["plain", "small", "unfused", "moved"])  # fmt: skip
@pytest.mark.parametrize(("function", "n"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_split_as_torch(function, n, settings):
    results = []
    for fx in (torch.fx, cfx):
        s = make(load(fx), function, n, settings)
        deps = {node.name: names(deps) for node, deps in s.deps.items() if deps}
        fusions = {node.name: names(group) for node, group in s.fusions.items()}
        subgraphs = [(g.is_acc, names(g.nodes)) for g in s.put_nodes_into_subgraphs()]
        starters = [names(nodes) for nodes in s.starter_nodes()]
        (split, inputs, prefix), text = quietly(s.generate_split_results)
        shapes = {k: [getattr(t, "shape", t) for t in v] for k, v in inputs.items()}
        code = {name: m.code for name, m in split.named_children()}
        tags = {node.name: getattr(node, "tag", None) for node in s.module.graph.nodes}
        results.append((names(s.acc_nodes), deps, fusions, subgraphs, starters, split.code, code,
                        shapes, prefix, tags, s.tags, s.get_node_submodule_map(), text))
        x = tuple(torch.randn(2, 2) for _ in range(n))
        for a, b in zip(function(*x), split(*x), strict=True):
            assert torch.equal(torch.as_tensor(a), torch.as_tensor(b))
    assert results[0] == results[1]


def test_node_support_preview_as_torch():
    texts = []
    for fx in (torch.fx, cfx):
        report, text = quietly(make(load(fx), mixed, 2).node_support_preview)
        texts.append((report, text.strip()))
    assert texts[0] == texts[1]


def test_node_support_preview_draws(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    quietly(lambda: make(load(cfx), mixed, 2).node_support_preview(dump_graph=True))
    assert "sin" in (tmp_path / "node_support.dot").read_text()


@BOTH
def test_split_preview(fx):
    s = make(load(fx), mixed, 2)
    report, text = quietly(s.split_preview)
    assert "total 5 subgraphs are created: 2 acc subgraphs and 3 cpu subgraphs" in report
    assert "_run_on_acc_1: 2 node(s)" in report and report.count("running succeed!") == 2
    assert text.strip() == report.strip()
    assert not any(hasattr(node, "tag") for node in s.module.graph.nodes)


@BOTH
def test_walks_between_subgraphs(fx):
    s = make(load(fx), mixed, 2)
    s.tag(s.put_nodes_into_subgraphs())
    reverse = {k.name: names(v) for k, v in s.find_reverse_deps().items() if v}
    assert reverse == {"sin": ["add", "relu"], "relu": ["cos"], "cos": ["add"], "add": ["add_1"],
                       "relu_1": ["sin_1"], "sin_1": ["add_1"]}  # fmt: skip
    reverse = {k.name: names(v) for k, v in s.find_reverse_deps(tag_id=2).items() if v}
    assert reverse == {"relu_1": ["sin_1"]}
    assert names(s.find_parent_nodes_of_subgraph("_run_on_cpu_4")) == ["cos", "sin", "sin_1"]
    before = {node.name: getattr(node, "tag", None) for node in s.module.graph.nodes}
    s.extend_acc_subgraph("_run_on_acc_3")
    assert before == {node.name: getattr(node, "tag", None) for node in s.module.graph.nodes}
    with pytest.raises(load(fx).splitter_base.FxNetSplitterInternalError, match="already tagged"):
        s.tag(s.put_nodes_into_subgraphs())


@BOTH
def test_overridden_methods_are_called(fx):
    p, seen = load(fx), []

    class Mine(p.splitter_base._SplitterBase):
        def find_deps(self):
            seen.append("deps")
            return super().find_deps()

        def remove_small_acc_subgraphs(self, subgraphs):
            seen.append("small")
            return super().remove_small_acc_subgraphs(subgraphs)

        def _lower_model_to_backend(self, mod, inputs):
            raise RuntimeError("no")

        def _find_culprit(self, mod, inputs):
            return "it was the gardener"

    s = make(p, diamond, 1, cls=Mine, non_acc_submodule_name="_other_", return_tuple=True)
    assert "it was the gardener" in quietly(s.split_preview)[0]
    split = quietly(s)[0]
    assert [name for name, _ in split.named_children()] == ["_run_on_acc_0", "_other_1"]
    assert "return (add,)" in split._other_1.code and seen == ["deps", "small", "small"]


def test_settings_come_from_the_command_line(monkeypatch):
    for fx in (torch.fx, cfx):
        settings = load(fx).splitter_base._SplitterSettingBase
        monkeypatch.setattr("sys.argv", ["x"])
        assert list(vars(settings(5, True, True, 3, True)).values()) == [5, True, True, 3, True]
        monkeypatch.setattr("sys.argv", ["x", "--min-acc-module-size", "7", "--skip-fusion", "-q"])
        assert list(vars(settings(5)).values()) == [7, True, False, -1, False]


@BOTH
def test_events(fx, tmp_path):
    p = load(fx)
    a, b, *_ = p.fx.symbolic_trace(diamond).graph.nodes
    tracker = p.splitter_base.NodeEventTracker(1, str(tmp_path / "t"))
    tracker.add(a, "hello")
    tracker.add(b, "because", a)
    assert tracker.to_dict() == {"a": ["a: hello #"], "sin": ["sin: because a"]}
    _, text = quietly(lambda: (tracker.print_node("sin", True), tracker.print_all()))
    assert text == ("sin: because a\n| a: hello #\nNode: a:\n  a: hello #\nNode: sin:\n"
                    "  sin: because a\n")  # fmt: skip


def test_a_long_chain_is_no_problem():
    graph = cfx.Graph()
    x = graph.placeholder("x")
    for i in range(20_000):
        x = graph.call_function((torch.relu, torch.sin)[i // 5 % 2], (x,))
        x.meta["type"] = torch.Tensor if i % 1000 else int
    graph.output(x)
    acc = {n for n in graph.nodes if n.target is torch.sin}
    turns = graph._acc_groups(graph._deps(), acc)
    assert len(turns) == 4_000 and turns[0][0] is False
    is_tensor = load(cfx).tools_common.is_node_output_tensor
    assert len(graph._drop_acc(acc, is_tensor, None)) == 0
    assert graph._fusion_groups(acc, is_tensor) == []
    first = next(iter(graph.nodes))
    assert len(graph._reached([first], True)) == 20_001
    cyclic = {**graph._deps(), first.next: {first.next.next}}
    assert graph._acc_groups(cyclic, acc) is None


# ---- the minimizer ----


def chain(a):
    b = torch.sin(a)
    c = torch.relu(torch.cos(b))
    return torch.tanh(c + b)


def minimizer(p, gm, compare=None, fail=None, **settings):
    class Mine(p.net_min_base._MinimizerBase):
        def run_a(self, mod, inputs, report_idx=-1):
            return mod(*inputs)

        def run_b(self, mod, inputs, report_idx=-1):
            if fail:
                raise RuntimeError(fail)
            result = mod(*inputs)
            wrong = any(node.target is torch.relu for node in mod.graph.nodes)
            return torch.utils._pytree.tree_map(lambda t: t + wrong, result)

    def differ(a, b, _):
        pairs = zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]
        worst = max((x - y).abs().max().item() for x, y in pairs)
        return worst, worst < 1e-6

    settings = p.net_min_base._MinimizerSettingBase(**settings)
    return Mine(gm, (torch.ones(2),), compare or differ, settings)


@pytest.mark.parametrize("accumulate_error", [False, True])
@pytest.mark.parametrize("method", ["sequential", "binary", "accumulate", "defined", "skip",
                                    "block"])  # fmt: skip
def test_minimize_as_torch(method, accumulate_error):
    results = []
    for fx in (torch.fx, cfx):
        m = minimizer(load(fx), fx.symbolic_trace(chain), traverse_method=method,
                      accumulate_error=accumulate_error)  # fmt: skip
        skip = ["cos"] if method == "skip" else None
        found, _ = quietly(lambda m=m, skip=skip: m.minimize(skip_nodes=skip))
        results.append((names(found), m.results, m.iteration, sorted(m.a_outputs),
                        sorted(m.b_outputs)))  # fmt: skip
    assert results[0] == results[1]
    assert results[0][0] == {"skip": ["add", "relu", "tanh"], "defined": []}.get(method, ["relu"])


def longer(a):
    b = torch.sin(a)
    c = torch.tanh(torch.relu(torch.cos(b)) + b)
    return torch.exp(torch.relu(c) * 2)


def fine_all_through(a):
    return torch.tanh(torch.sin(torch.cos(a)))


SEARCHES = [
    ("sequential", {}), ("sequential", {"start": "cos", "end": "mul"}), ("binary", {}),
    ("binary", {"start": "tanh"}), ("accumulate", {"end": "nope"}),
    ("accumulate", {"start": "exp"}),
    ("block", {}), ("block", {"find_last_node": True}), ("block", {"find_last_node": False}),
    ("block", {"start": "sin"}), ("skip", {"skip_nodes": []}), ("defined", {"end": "cos"}),
    ("skip", {"skip_nodes": ["relu", "exp"]}), ("sequential", {"start": "nope"}),
]  # fmt: skip
OPTIONS = [{}, {"all_outputs": True}, {"accumulate_error": True}, {"return_intermediate": True}]


@pytest.mark.parametrize("method, where", SEARCHES, ids=str)
@pytest.mark.parametrize("function", [longer, fine_all_through])
def test_search_as_torch(function, method, where):
    for options in OPTIONS:
        results = []
        for fx in (torch.fx, cfx):
            m = minimizer(load(fx), fx.symbolic_trace(function), traverse_method=method, **options)
            found, _ = quietly(lambda m=m: m.minimize(**where))
            results.append((names(found), m.results, m.iteration, sorted(m.a_outputs)))
        assert results[0] == results[1]


@BOTH
def test_what_differs_is_exported(fx):
    p, exported = load(fx), []
    m = minimizer(p, fx.symbolic_trace(chain), return_intermediate=True)
    m.module_exporter = lambda inputs, mod, name: exported.append((name, len(inputs)))
    quietly(lambda: m.run_nodes("cos", "relu"))
    quietly(lambda: m.run_nodes("relu", "relu"))
    assert exported == [("cos_cpu", 1), ("cos_acc", 1), ("relu_cpu", 1), ("relu_acc", 1)]
    assert len(m.reports) == m.iteration == 1


@BOTH
def test_excluded_nodes_are_not_visited(fx):
    def exclude(nodes, start, end):
        if names(nodes) == ["relu"]:
            nodes.clear()

    m = minimizer(load(fx), fx.symbolic_trace(longer), traverse_method="binary")
    m.exclusion_fn = exclude
    assert names(quietly(m.minimize)[0]) == ["relu_1"]


@BOTH
def test_reports_and_errors(fx):
    p = load(fx)
    gm = fx.symbolic_trace(chain)
    m = minimizer(p, gm, fail="boom")
    assert names(quietly(m.minimize)[0]) == ["sin"]
    assert m.reports == [["Sequential traverse iteration 1.", "Visit node: sin",
                          "Run and compare ...", "Exception raised when running minimize: boom",
                          "Found culprit from run error: sin"]]  # fmt: skip
    assert quietly(m.print_reports)[1].startswith("Sequential traverse iteration 1.\n . Visit")
    with pytest.raises(RuntimeError, match="Unknown traverse method nope!"):
        quietly(minimizer(p, gm, traverse_method="nope").minimize)
    assert "run_a() is not implemented" in str(quietly(lambda: p.net_min_base._MinimizerBase(
        gm, (torch.ones(2),), None, p.net_min_base._MinimizerSettingBase()).minimize())[1])
    assert names(m._collect_nodes("cos", "add")) == ["add", "cos", "relu"]
    assert m._collect_nodes("nope", None) == []
    m = minimizer(p, gm, return_intermediate=True)
    text = quietly(lambda: m.run_nodes("cos", "relu"))[1]
    assert text == "Result mismatch for (('cos', 'relu'),)\n"
    assert [getattr(n, "tag", None) for n in gm.graph.nodes] == [
        None, "main_0", "minimize", "minimize", "main_1", "main_1", None]  # fmt: skip


def test_binary_search_finds_all():
    m = minimizer(load(cfx), cfx.symbolic_trace(chain), traverse_method="binary", find_all=True)
    assert names(quietly(m.minimize)[0]) == ["relu"]  # torch.fx loses it on the way
    m = minimizer(load(cfx), cfx.symbolic_trace(longer), traverse_method="binary", find_all=True)
    assert names(quietly(m.minimize)[0]) == ["relu", "relu_1"]
    assert quietly(lambda: m.minimize(start="nope"))[0] == set()
    m = minimizer(load(cfx), cfx.symbolic_trace(longer), traverse_method="skip")
    found, _ = quietly(lambda: m.minimize(skip_nodes=["add", "mul"]))
    assert names(found) == ["cos", "relu", "relu_1", "sin", "tanh"]  # torch.fx has the last part's


def random_program(r):
    """A function of sums, and calls that are supported and that are not."""
    steps = [(r.choice([torch.sin, torch.cos, torch.relu, None]), r.random(), r.random())
             for _ in range(14)]

    def program(a, b):
        values = [a, b]
        for function, p, q in steps:
            x, y = (values[-1 - int(k * min(len(values), 5))] for k in (p, q))
            values.append(x + y if function is None else function(x))
        return values[-1] + values[-2] + values[-3]

    return program


def extended(fx, seed):
    """Who uses what, with a random fusion; and the tags after each accelerated part was extended,
    without one (there torch.fx leaves out more)."""
    r = random.Random(seed)
    s = make(load(fx), random_program(r), 2)
    acc, number = sorted(s.acc_nodes, key=lambda n: n.name), 0
    for node in (n for n in s.module.graph.nodes if n.op.startswith("call")):
        number += r.random() < 0.3
        node.tag = f"_run_on_{'acc' if node in s.acc_nodes else 'cpu'}_{number}"
    r.shuffle(acc)
    s.fusions = dict.fromkeys(group := set(acc[: r.randrange(4)]), group)
    s._merge_overlapping_fusions()
    fusions = {n.name: names(group) for n, group in s.fusions.items()}
    users = s.find_reverse_deps()
    s.update_reverse_deps_for_fusions(users)
    facts = [fusions, {n.name: names(u) for n, u in users.items() if u and n.op != "placeholder"}]
    s.fusions = {}
    for tag in sorted({n.tag for n in acc}):
        s.extend_acc_subgraph(tag)
        facts.append({n.name: getattr(n, "tag", None) for n in s.module.graph.nodes})
    return facts


def test_extended_as_torch():
    changed = 0
    for seed in range(40):
        theirs, ours = extended(torch.fx, seed), extended(cfx, seed)
        assert ours == theirs, seed
        changed += len({str(tags) for tags in theirs[2:]}) > 1
    assert changed > 1


def test_fusions_that_share_nodes_are_one():
    s = make(load(cfx), mixed, 2)
    a, b, c, d, e = list(s.module.graph.nodes)[2:7]
    ab, bc, de = {a, b}, {b, c}, {d, e}
    s.fusions = {a: ab, b: bc, c: bc, d: de, e: de}
    s._merge_overlapping_fusions()
    assert s.fusions[d] is de and s.fusions[e] is de
    assert s.fusions[a] is s.fusions[b] is s.fusions[c] == {a, b, c}


def test_extending_is_linear():
    def program(a):
        for _ in range(3000):
            a = torch.sin(a)
        return torch.relu(a)

    s = make(load(cfx), program, 1)
    for i, node in enumerate(n for n in s.module.graph.nodes if n.op.startswith("call")):
        node.tag = "_run_on_acc_1" if i >= 2999 else "_run_on_acc_0"
    start = time.process_time()
    s.extend_acc_subgraph("_run_on_acc_1")
    assert time.process_time() - start < 1  # 3,000 rounds over all nodes take longer
    assert {n.tag for n in s.acc_nodes} == {"_run_on_acc_1"}
