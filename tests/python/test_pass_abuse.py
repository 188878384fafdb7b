"""Transforms in bad company: callbacks that raise, answer nonsense or edit the graph, passes that
break it, graphs without output, without nodes, broken, full of regions. Nothing may crash; an error
names what is wrong, and what was given is as before."""
import copy
import importlib
import operator

import pytest

import cfx

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from cfx.passes import run, table  # noqa: E402

PASSES = [row.name for row in table()]
X = torch.tensor([[1.0, -2.0], [0.5, 3.0]])


def need(path, name):
    """Something of cfx that may not be there yet."""
    try:
        return getattr(importlib.import_module(f"cfx.{path}"), name)
    except (ImportError, AttributeError):
        pytest.skip(f"cfx has no {path}.{name}")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)
        self.drop, self.linear = nn.Dropout(0.5), nn.Linear(2, 2)
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x):
        y = torch.relu(self.linear(x)) * self.weight
        y = self.drop(y + torch.neg(y)) + torch.neg(y)
        return self.norm(self.conv(y.reshape(1, 1, 2, 2))).sum() + y


def traced():
    return cfx.symbolic_trace(Net().eval())


class Unchanged:
    """Fails if the block leaves the module with another graph, code or result."""

    def __init__(self, gm, run=True):
        self.gm, self.run = gm, run

    def state(self):
        gm = self.gm
        result = gm(X) if self.run else None
        return str(gm.graph), gm.code, result, [name for name, _ in gm.named_modules()]

    def __enter__(self):
        self.before = self.state()

    def __exit__(self, *error):
        if error[0] is None:
            after = self.state()
            assert after[:2] == self.before[:2] and after[3] == self.before[3]
            assert not self.run or torch.equal(after[2], self.before[2])
            self.gm.graph.lint()


# ---- graphs that nobody expects, for every pass of the table


def regions(depth):
    """A graph with a cond, whose branches are graphs with a cond, ..."""
    graph = cfx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.neg, (x,))
    if depth:
        args = (True, regions(depth - 1), regions(depth - 1), (y,))
        y = graph.call_function(cfx.cond, args)
        again = graph.call_function(cfx.cond, args)
        y = graph.call_function(torch.add, (y, again))
    graph.call_function(torch.neg, (x,))
    graph.output(y)
    return graph


def no_output():
    graph = cfx.Graph()
    graph.call_function(torch.neg, (graph.placeholder("x"),))
    return graph


def nothing_but_output():
    graph = cfx.Graph()
    graph.output(None)
    return graph


def unknown_paths():
    graph = cfx.Graph()
    x = graph.call_module("not.there", (graph.placeholder("x"),))
    graph.output((graph.get_attr("nor.this"), x))
    return graph


ODD = [cfx.Graph, no_output, nothing_but_output, unknown_paths, lambda: regions(3)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", ODD, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", PASSES)
def test_a_pass_on_an_odd_graph(name, make):
    for root in (None, nn.Module()):
        graph = make()
        module = graph
        if root is not None:
            if make is unknown_paths:
                continue  # no GraphModule can be made of it
            module = cfx.GraphModule(root, graph)
        try:
            run(module, name)
        except (RuntimeError, ValueError, KeyError, TypeError, AttributeError,
                AssertionError) as error:
            assert str(error)  # torch.fx asserts, too, that there is a module to ask
        assert graph.verify() == []


def broken_graph():
    graph = cfx.Graph()
    x = graph.placeholder("x")
    first = graph.call_function(torch.relu, (x,))
    second = graph.call_function(torch.neg, (first,))
    graph.output(second)
    first.args = (second,)
    return graph


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_on_a_broken_graph(name):
    graph = broken_graph()
    before = str(graph)
    try:
        run(graph, name)
    except RuntimeError as error:
        assert "relu" in str(error) or "neg" in str(error)
        assert str(graph) == before
    assert len(graph.nodes) == 4


def test_passes_by_a_wrong_name():
    gm = traced()
    with Unchanged(gm):
        for name in ("nonsense", "", "dce\0", "DCE"):
            with pytest.raises((ValueError, KeyError)):
                run(gm, name)
        with pytest.raises(TypeError):
            run(gm, 3)


# ---- callbacks of dead-code elimination and CSE


def test_callbacks_that_raise():
    gm = traced()

    def refuse(node):
        if node.op == "call_module":
            raise LookupError(node.name)
        return node.op in ("placeholder", "output")

    with Unchanged(gm):
        with pytest.raises(LookupError):
            gm.graph.eliminate_dead_code(refuse)
        with pytest.raises(LookupError):
            gm.graph._cse(lambda node: 0 if node.op != "call_module" else refuse(node), None)


class NoBool:
    def __bool__(self):
        raise ArithmeticError("neither")


def test_callbacks_that_answer_nonsense():
    gm = traced()
    with Unchanged(gm):
        with pytest.raises(ArithmeticError):
            gm.graph.eliminate_dead_code(lambda node: NoBool())
        with pytest.raises(ArithmeticError):
            gm.graph._cse(lambda node: NoBool(), None)
        with pytest.raises(TypeError):
            gm.graph.eliminate_dead_code(3)


def test_callbacks_that_edit():
    gm = traced()

    def erase(node):
        for other in list(node.graph.nodes):
            if not other.users and other.op != "output":
                node.graph.erase_node(other)
        with node.graph.inserting_before(node.graph.output_node()):
            node.graph.create_node("call_function", torch.neg, (node,))
        return False

    for call in (gm.graph.eliminate_dead_code, lambda f: gm.graph._cse(f, None)):
        try:
            call(erase)
        except (RuntimeError, TypeError) as error:
            assert str(error)
    assert gm.graph.verify() == []


def test_a_replace_hook_that_raises():
    gm = cfx.symbolic_trace(lambda x: torch.neg(x) + torch.neg(x))

    def hook(old, new, user):
        raise LookupError(old)

    with gm._set_replace_hook(hook):
        with pytest.raises(LookupError):
            run(gm, "cse")
    assert gm.graph.verify() == []
    gm.recompile()
    assert torch.equal(gm(X), -2 * X)


# ---- passes of the user's


def returns_nonsense(gm):
    return 17


def loses_the_output(gm):
    gm.graph.erase_node(gm.graph.output_node())


def erases_all(gm):
    for node in reversed(list(gm.graph.nodes)):
        gm.graph.erase_node(node)


def uses_a_foreign_node(gm):
    gm.graph.output_node().args = (cfx.Graph().placeholder("stranger"),)


def deletes_a_module(gm):
    gm.delete_submodule("linear")


def duplicates_a_name(gm):
    nodes = list(gm.graph.nodes)
    nodes[1].name = nodes[2].name


@pytest.mark.parametrize(
    "bad",
    [loses_the_output, erases_all, uses_a_foreign_node, deletes_a_module, duplicates_a_name],
    ids=lambda bad: bad.__name__,
)
def test_bisect_and_a_pass_that_breaks_the_module(bad):
    gm = traced()
    with Unchanged(gm):
        report = cfx.bisect(["dce", bad, returns_nonsense], gm, (X,))
        assert not report and report.broken_by is bad
        assert bad.__name__ in str(report)


def test_bisect_and_a_pass_that_returns_nonsense():
    assert cfx.bisect([returns_nonsense], traced(), (X,))  # taken to work in place, and it is fine


def test_a_pass_manager_names_the_pass():
    manager = need("passes.infra.pass_manager", "PassManager")

    def failing(gm):
        raise LookupError("lost")

    gm = traced()
    with Unchanged(gm):
        with pytest.raises(Exception, match="failing|lost"):
            manager([failing])(gm)
        with pytest.raises(Exception):  # noqa: B017
            manager([returns_nonsense])(gm)


# ---- check and minimize


def test_minimize_with_a_function_that_edits():
    gm = traced()

    def edits(module, inputs):
        gm.graph.output_node().args = (None,)
        return True

    with Unchanged(gm):
        with pytest.raises(RuntimeError, match="changed|edit|read"):
            cfx.minimize(gm, (X,), edits)


def test_minimize_with_a_function_that_spoils_its_parts():
    gm = traced()

    def spoils(module, inputs):
        module.graph.erase_node(module.graph.output_node())
        inputs[0].zero_()
        return True

    with Unchanged(gm):
        assert cfx.minimize(gm, (X,), spoils)


def test_check_and_a_model_that_edits_itself():
    gm = traced()

    class Editing(nn.Module):
        def forward(self, x):
            gm.graph.output_node().args = (gm.graph.output_node().args[0],)
            return gm(x)

    assert cfx.check(gm, Editing(), (X,))


# ---- splitting


@pytest.mark.parametrize("answer", [None, [], 1.5, object(), ()], ids=lambda o: type(o).__name__)
def test_a_split_callback_that_answers_nonsense(answer):
    split = need("passes.split_module", "split_module")
    gm = traced()
    with Unchanged(gm):
        try:
            result = split(gm, gm, lambda node: answer)
        except (TypeError, ValueError, RuntimeError) as error:
            assert str(error)
        else:
            assert torch.equal(result(X), gm(X))


def test_a_split_callback_that_raises_or_edits():
    split = need("passes.split_module", "split_module")
    gm = traced()

    def raises(node):
        raise LookupError(node.name)

    def edits(node):
        node.graph.output_node().args = (None,)
        return 0

    with Unchanged(gm):
        with pytest.raises(LookupError):
            split(gm, gm, raises)
    try:
        split(gm, gm, edits)
    except RuntimeError as error:
        assert str(error)
    assert gm.graph.verify() == []


def test_a_split_into_parts_that_need_each_other():
    split = need("passes.split_module", "split_module")
    gm = cfx.symbolic_trace(lambda x: torch.neg(torch.relu(torch.neg(x))))
    names = {"neg": 0, "relu": 1, "neg_1": 0}
    with Unchanged(gm):
        with pytest.raises(Exception, match="cycle|neg"):
            split(gm, gm, lambda node: names.get(node.name, 0))


# ---- partitioning


def test_a_support_that_raises_or_answers_nonsense():
    partitioner = need("passes.infra.partitioner", "CapabilityBasedPartitioner")
    base = need("passes.operator_support", "OperatorSupportBase")
    gm = traced()

    class Support(base):
        def __init__(self, answer):
            self.answer = answer

        def is_node_supported(self, submodules, node):
            return self.answer(node)

    def raises(node):
        raise LookupError(node.name)

    with Unchanged(gm):
        with pytest.raises(LookupError):
            partitioner(gm, Support(raises)).propose_partitions()
        with pytest.raises(ArithmeticError):
            partitioner(gm, Support(lambda node: NoBool())).propose_partitions()
        for make in ODD[:3]:
            odd = cfx.GraphModule(nn.Module(), make())
            partitioner(odd, Support(lambda node: True)).propose_partitions()


# ---- patterns


def relu_neg(x):
    return torch.neg(torch.relu(x))


def test_patterns_that_make_no_sense():
    replace = need("subgraph_rewriter", "replace_pattern")
    gm = cfx.symbolic_trace(relu_neg)

    def no_inputs():
        return 1

    def other_inputs(x, y):
        return x + y

    with Unchanged(gm):
        for pattern, replacement in (
            (cfx.Graph(), cfx.Graph()),
            (no_output(), no_output()),
            (nothing_but_output(), nothing_but_output()),
            (no_inputs, no_inputs),
            (3, 4),
            (relu_neg, no_output()),
        ):
            try:
                replace(gm, pattern, replacement)
            except Exception as error:
                assert str(error) or isinstance(error, AssertionError)
        try:
            replace(gm, relu_neg, other_inputs)
        except Exception as error:
            assert str(error) or isinstance(error, AssertionError)


def test_filters_that_raise_or_edit():
    replace = need("subgraph_rewriter", "replace_pattern_with_filters")
    gm = cfx.symbolic_trace(lambda x: relu_neg(relu_neg(x)))

    def raises(match, original, pattern):
        raise LookupError("filter")

    def edits(match, original, pattern):
        original.output_node().args = (None,)
        return True

    with Unchanged(gm):
        with pytest.raises(LookupError):
            replace(gm, relu_neg, lambda x: abs(x), match_filters=[raises])
    try:
        replace(gm, relu_neg, lambda x: abs(x), match_filters=[edits])
    except RuntimeError as error:
        assert str(error)
    assert gm.graph.verify() == []


def test_a_replacement_callback_that_erases_or_raises():
    replace = need("subgraph_rewriter", "replace_pattern_with_filters")

    def erases(match, original, pattern):
        for node in reversed(list(original.nodes)):
            if node.op == "call_function" and not node.users:
                original.erase_node(node)
        return cfx.symbolic_trace(lambda x: x + 1).graph

    def raises(match, original, pattern):
        raise LookupError("callback")

    for callback in (erases, raises):
        gm = cfx.symbolic_trace(lambda x: (relu_neg(x), relu_neg(x)))
        gm.graph.call_function(operator.neg, (next(iter(gm.graph.nodes)),))
        try:
            replace(gm, relu_neg, replacement_callback=callback)
        except (LookupError, RuntimeError) as error:
            assert str(error)
        assert gm.graph._faults(False) == []


def test_a_replacement_that_matches_again_ends():
    replace = need("subgraph_rewriter", "replace_pattern")
    gm = cfx.symbolic_trace(lambda x: relu_neg(x) + 1)
    replace(gm, relu_neg, lambda x: relu_neg(relu_neg(x)))
    assert len(gm.graph.nodes) == 7
    assert torch.equal(copy.deepcopy(gm)(X), relu_neg(relu_neg(X)) + 1)


@pytest.mark.parametrize("work", [None, False])
def test_asking_for_tensors_must_not_edit(work):
    gm = cfx.symbolic_trace(lambda x: torch.relu(torch.neg(torch.relu(torch.neg(x)))))
    calls = [n for n in gm.graph.nodes if n.op == "call_function"]

    def edit(node):
        for call in calls[1:]:
            call.args = (calls[0],)
        return False

    with pytest.raises(RuntimeError, match="changed the graph"):
        gm.graph._drop_acc(set(calls[::2]), edit, work)


def splitter_steps(graph, calls, hostile, acc):
    """The steps of the splitter that read `hostile`, a group or dependencies, or the set `acc`."""
    users, group = {calls[0]: hostile}, set(calls[:2])
    return {
        "groups": lambda: graph._acc_groups(users, set(calls)),
        "acc": lambda: graph._acc_groups({}, acc),
        "fuse": lambda: graph._fuse_deps(users, [group]),
        "users": lambda: graph._fuse_users(users, [group]),
        "extend": lambda: graph._extend_acc("t", {calls[0]}, set(calls), [group], users),
        "keys": lambda: graph._fuse_deps(dict.fromkeys(acc, set()), [group]),
    }


@pytest.mark.parametrize("step", ["groups", "acc", "fuse", "users", "extend", "keys"])
def test_reading_for_the_splitter_must_not_edit(step):
    gm = cfx.symbolic_trace(lambda x: torch.relu(torch.neg(torch.relu(torch.neg(x)))))
    calls = [n for n in gm.graph.nodes if n.op == "call_function"]
    for call in calls:
        call.tag = "other"

    def edit():
        with gm.graph.inserting_before(calls[0]):
            for _ in range(1000):
                gm.graph.call_function(torch.neg, (gm.graph._root.next,))

    class Iterable:
        def __iter__(self):
            edit()
            return iter(calls)

    class Lookalike:
        def __hash__(self):
            return hash(calls[0])

        def __eq__(self, other):
            edit()
            return False

    with pytest.raises(RuntimeError, match="was changed while"):
        splitter_steps(gm.graph, calls, Iterable(), {Lookalike()})[step]()


def test_comparing_sources_may_clear_metadata():
    class Clears(type):
        def __eq__(cls, other):
            for node in gm.graph.nodes:
                node.meta.clear()
            return other is torch.neg

        __hash__ = type.__hash__

    gm = cfx.symbolic_trace(lambda x: torch.relu(torch.neg(x)))
    for i, node in enumerate(gm.graph.nodes):
        source = Clears(f"source{i}", (), {})
        node.meta["source_fn_stack"] = [("a name " * i, source)]
        del source
    found = gm.graph._sources([torch.relu, torch.neg])
    assert [list(groups.values()) for groups in found.values()] == [[[next(iter(gm.graph.nodes))]]]


def test_interrupts_are_not_taken_for_answers():
    class Interrupts(torch.nn.Module):
        def __getattr__(self, name):
            if name == "inner":
                raise KeyboardInterrupt
            return super().__getattr__(name)

    graph = cfx.Graph()
    graph.output(graph.call_module("inner.child", (graph.placeholder("x"),)))
    with pytest.raises(KeyboardInterrupt):
        graph._dot("name", Interrupts())
    with pytest.raises(KeyboardInterrupt):
        graph._pass("inline", Interrupts())


def test_filters_that_leave_out_some_matches():
    gm = cfx.symbolic_trace(lambda x: torch.relu(torch.relu(torch.relu(torch.relu(x)))))
    answers = iter([False, True, False, True])
    found = cfx.subgraph_rewriter.replace_pattern_with_filters(
        gm, lambda x: torch.relu(x), lambda x: torch.neg(x), [lambda *_: next(answers)])
    assert [n.target for n in gm.graph.nodes][1:-1] == [torch.relu, torch.neg] * 2
    assert [match.replacements[0].name for match in found] == ["neg", "neg_1"]
