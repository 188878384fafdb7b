"""SubgraphMatcher and replace_pattern: the same matches, graphs and errors as torch.fx's."""
import itertools
import operator
import random
import warnings

import cfx
import cfx.passes.utils.matcher_utils
import pytest
import torch
import torch.fx
import torch.fx.passes.utils.matcher_utils
import torch.nn.functional as F
from cfx.passes.utils.matcher_utils import SubgraphMatcher
from cfx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap

BOTH = (torch.fx, cfx)


def f(*args, **kwargs):
    return 0


def g2(a, b=1):
    return 0


MAX_POOL = torch.ops.aten.max_pool2d_with_indices.default


def build(fx, names, make, root=None):
    """A graph of one call of `make(graph, *placeholders)`."""
    graph = fx.Graph()
    nodes = [graph.placeholder(name) for name in names]
    graph.output(make(graph, *nodes))
    return fx.GraphModule(root, graph).graph if root is not None else graph


def call(target, *args, **kwargs):
    """Makes a call whose arguments are strings for placeholders, in nested containers."""

    def make(graph, *nodes):
        by_name = {node.name: node for node in nodes}

        def value(a):
            if isinstance(a, (list, tuple)):
                return type(a)(value(item) for item in a)
            return by_name.get(a, a) if isinstance(a, str) else a

        return graph.call_function(target, tuple(map(value, args)),
                                   {k: value(a) for k, a in kwargs.items()})

    return make


def found(fx, graph, pattern, name="", **options):
    """What a matcher finds, in words; or the class of the exception."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            matcher = fx.passes.utils.matcher_utils.SubgraphMatcher(pattern, **options)
        matches = matcher.match(graph, name)
    except Exception as error:
        return type(error).__name__
    return [
        ([str(a) for a in m.anchors], [(str(k), str(v)) for k, v in m.nodes_map.items()],
         str(m.placeholder_nodes), str(m.returning_nodes))
        for m in matches
    ]  # fmt: skip


def same(make_graph, make_pattern, **options):
    """The same is found by both; what it is."""
    theirs, ours = (found(fx, make_graph(fx), make_pattern(fx), **options) for fx in BOTH)
    # torch.fx also fails with a KeyError where it has found no anchor, or no match in the end.
    assert theirs == ours or (theirs, ours) == ("KeyError", [])
    return ours


# ---- one call ----------------------------------------------------------------------------------

CALLS = [  # arguments in the graph, in the pattern, whether it is found
    (("x", "y"), ("a", "b"), True),
    (("x", "x"), ("a", "b"), False),
    (("x", "x"), ("a", "a"), True),
    (("x", "y"), ("a", "a"), False),
    ((1, 1.0), ("a", "a"), True),
    ((1, 2), ("a", "a"), False),
    (("x", 1), ("a", 1), True),
    (("x", 1), ("a", 1.0), False),
    (("x", 1), ("a", True), False),
    (("x", float("nan")), ("a", float("nan")), False),
    (("x", "y"), ("a", 1), False),
    ((["x", "y"],), (["a", "b"],), True),
    ((["x", "y"],), (("a", "b"),), True),
    ((["x", "y"],), (["a"],), False),
    (([["x", ("y",)], 1],), ([["a", ("b",)], 1],), True),
    ((["x", ["y"]],), (["a", "b"],), True),
    (("x", torch.float32), ("a", torch.float32), True),
    (("x", torch.float32), ("a", torch.float64), False),
    (("x", torch.device("cpu")), ("a", torch.device("cpu")), True),
    (("x", range(3)), ("a", range(3)), True),
    (("x", slice(None)), ("a", slice(None)), True),
    (("x", {"k": 1}), ("a", {"k": 1}), True),
    (("x", {"k": 1}), ("a", {"k": 2}), False),
    (("x",), ("a", "b"), False),
    (("x", None), ("a", "b"), True),
]


def placeholders(args):
    flat = str(args)
    return [name for name in ("a", "b") if f"'{name}'" in flat]


@pytest.mark.parametrize("ignore", [False, True])
@pytest.mark.parametrize("args, wanted, there", CALLS)
def test_a_call(args, wanted, there, ignore):
    result = same(lambda fx: build(fx, "xy", call(f, *args)),
                  lambda fx: build(fx, placeholders(wanted), call(f, *wanted)),
                  ignore_literals=ignore)
    assert ignore or bool(result) == there


def test_the_sign_of_zero_counts():
    """torch.fx takes 0.0 for -0.0."""
    graph = build(cfx, "x", call(f, "x", 0.0))
    assert found(cfx, graph, build(cfx, "a", call(f, "a", 0.0)))
    assert not found(cfx, graph, build(cfx, "a", call(f, "a", -0.0)))


KWARGS = [
    (f, ("x",), {"k": "y"}, ("a",), {"k": "b"}, True),
    (f, ("x",), {"k": 1}, ("a",), {"k": 2}, False),
    (f, ("x",), {"k": 1}, ("a",), {}, False),
    (f, ("x",), {"k": 1, "l": 2}, ("a",), {"l": 2, "k": 1}, False),
    (g2, ("x", "y"), {}, ("a",), {"b": "b"}, False),
    (g2, ("x",), {}, ("a", 1), {}, False),
    (torch.ops.aten.add.Tensor, ("x", "y"), {}, ("a", "b"), {"alpha": 1}, True),
    (torch.ops.aten.add.Tensor, ("x", "y"), {"alpha": 1}, ("a", "b"), {}, True),
    (torch.ops.aten.add.Tensor, ("x", "y"), {"alpha": 2}, ("a", "b"), {}, False),
    (MAX_POOL, ("x", [2, 2]), {"stride": [2, 2]}, ("a", [2, 2], "b"), {"padding": [0, 0]}, True),
    (MAX_POOL, ("x", [2, 2]), {"stride": [2, 2]}, ("a", [2, 2], "b"), {"padding": [1, 0]}, False),
    (MAX_POOL, ("x", [2, 2], [1, 1], [0, 0]), {}, ("a", [2, 2], "b"), {}, True),
    (MAX_POOL, (), {"self": "x", "kernel_size": "y"}, ("a", "b"), {}, True),
    (MAX_POOL, ("x", "y"), {"foo": 1}, ("a", "b"), {}, True),
    (torch.ops.aten.linear.default, ("x", "y"), {}, ("a", "b", None), {}, True),
]


@pytest.mark.parametrize("target, args, kwargs, wanted, keywords, there", KWARGS)
def test_keywords(target, args, kwargs, wanted, keywords, there):
    names = placeholders((wanted, tuple(keywords.values())))
    result = same(lambda fx: build(fx, "xy", call(target, *args, **kwargs)),
                  lambda fx: build(fx, names, call(target, *wanted, **keywords)))
    assert bool(result) == there


def test_defaults_are_bound_to_placeholders():
    names = ["a", "b", "s", "p", "d", "c"]
    (match,) = same(lambda fx: build(fx, "xy", call(MAX_POOL, "x", "y")),
                    lambda fx: build(fx, names, call(MAX_POOL, *names)))
    assert match[2] == "[x, y, [], [0, 0], [1, 1], False]"


# ---- attributes and modules --------------------------------------------------------------------


def module(**attributes):
    root = torch.nn.Module()
    for name, value in attributes.items():
        setattr(root, name, value)
    return root


def parameter(n):
    return torch.nn.Parameter(torch.ones(n))


ATTRIBUTES = [
    (parameter(2), parameter(3)),
    (parameter(2), torch.ones(3)),
    (torch.ones(2), torch.ones(3).long()),
    (1, 1),
    (1, 1.0),
    (torch.ones(1), 1),
]


@pytest.mark.parametrize("mine, wanted", ATTRIBUTES)
def test_attributes(mine, wanted):
    def read(name):
        return lambda graph, x: graph.call_function(f, (x, graph.get_attr(name)))

    same(lambda fx: build(fx, "x", read("w"), module(w=mine)),
         lambda fx: build(fx, "a", read("v"), module(v=wanted)))


def test_attributes_without_a_module_are_compared_by_path():
    def read(name):
        return lambda graph, x: graph.call_function(f, (x, graph.get_attr(name)))

    graph = build(cfx, "x", read("w"))
    assert SubgraphMatcher(build(cfx, "a", read("w"))).match(graph)
    assert not SubgraphMatcher(build(cfx, "a", read("v"))).match(graph)


@pytest.mark.parametrize("path, kind", [("m", "ReLU"), ("m", "Tanh"), ("n", "ReLU")])
def test_modules_are_compared_by_path(path, kind):
    def calls(name):
        return lambda graph, x: graph.call_module(name, (x,))

    roots = module(m=torch.nn.ReLU()), module(**{path: getattr(torch.nn, kind)()})
    result = same(lambda fx: build(fx, "x", calls("m"), roots[0]),
                  lambda fx: build(fx, "a", calls(path), roots[1]))
    assert bool(result) == (path == "m")


# ---- whole patterns ----------------------------------------------------------------------------


def chain(x):
    for _ in range(5):
        x = torch.sigmoid(x)
    return x


def pairs(x, y):
    return torch.relu(x) + torch.neg(x), torch.neg(y) * torch.relu(y), torch.relu(y)


def inner_used(x):
    n = torch.neg(x)
    return torch.relu(n) + n


def between(x):
    n = torch.neg(x)
    return n + torch.tanh(n)


def with_inner(a):
    n = torch.neg(a)
    return torch.relu(n), n


def with_sum(a, b):
    n = torch.neg(a)
    return n + b, n


PROGRAMS = [chain, pairs, inner_used, between, lambda x: (torch.relu(x), torch.relu(x))]
PATTERNS = [
    lambda a: torch.sigmoid(torch.sigmoid(a)),
    lambda a: torch.relu(a),
    lambda a: (torch.relu(a), torch.neg(a)),
    lambda a, b: (torch.relu(a), torch.neg(b)),
    lambda a, b: (torch.relu(a), torch.relu(b)),
    lambda a: (torch.relu(a), torch.relu(a)),
    lambda a: torch.relu(torch.neg(a)),
    lambda a: (torch.relu(a), a),
    lambda a: a,
    lambda a, b: a + b,
    with_inner,
    with_sum,
    lambda a, b: torch.neg(a) + b,
]
OPTIONS = [
    {}, {"remove_overlapping_matches": False}, {"match_output": True}, {"match_placeholder": True},
    {"name": "relu"}, {"name": "neg_1"},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_patterns(program, options):
    for pattern in PATTERNS:
        same(lambda fx: fx.symbolic_trace(program).graph,
             lambda fx: fx.symbolic_trace(pattern).graph, **options)


def test_bad_patterns():
    def dead(graph, a):
        graph.call_function(torch.neg, (a,))
        return graph.call_function(torch.relu, (a,))

    def unused(graph, a, b):
        return graph.call_function(torch.relu, (a,))

    for names, make, error in (("a", dead, "AssertionError"), ("ab", unused, "KeyError")):
        assert same(lambda fx: fx.symbolic_trace(inner_used).graph,
                    lambda fx: build(fx, names, make)) == error
    assert same(lambda fx: fx.symbolic_trace(chain).graph, lambda fx: fx.Graph()) == "ValueError"
    with pytest.raises(KeyError, match="placeholder %b of the pattern is never used"):
        SubgraphMatcher(build(cfx, "ab", unused)).match(cfx.symbolic_trace(inner_used).graph)


def random_program(seed, n):
    """A random function of two inputs that calls few things, so that patterns occur."""
    rng = random.Random(seed)
    steps = []
    for i in range(n):
        target = rng.choice([torch.relu, torch.neg, torch.add, torch.mul])
        args = [rng.randrange(max(0, i - 2), i + 2) for _ in range(1 + (target in
                (torch.add, torch.mul)))]
        steps.append((target, args, rng.random() < 0.2))

    def make(fx):
        graph = fx.Graph()
        nodes = [graph.placeholder("x"), graph.placeholder("y")]
        for target, args, literal in steps:
            values = [nodes[a] for a in args]
            if literal and len(values) == 2:
                values[1] = 2
            nodes.append(graph.call_function(target, tuple(values)))
        unused = [node for node in nodes[2:] if not node.users]
        graph.output(tuple(unused) if len(unused) > 1 else unused[0])
        return graph

    return make


def test_random_graphs_have_the_same_matches():
    total = 0
    for seed in range(60):
        graph, pattern = random_program(seed, 24), random_program(1000 + seed, 1 + seed % 3)
        for options in ({}, {"remove_overlapping_matches": False}, {"ignore_literals": True}):
            result = same(graph, pattern, **options)
            total += len(result) if isinstance(result, list) else 0
    assert total > 100


def sub_pattern(graph, nodes):
    """A pattern that is cut out of `graph`: the given calls, and placeholders for the rest."""
    pattern, twins = cfx.Graph(), {}
    for node in nodes:
        for source in node.all_input_nodes:
            if source not in nodes and source not in twins:
                twins[source] = pattern.placeholder(f"in_{source.name}")
    for node in nodes:
        twins[node] = pattern.node_copy(node, lambda n: twins[n])
    used_outside = [n for n in nodes if any(user not in nodes for user in n.users) or not n.users]
    pattern.output(tuple(twins[n] for n in used_outside))
    return pattern, {twins[n]: n for n in nodes}


def is_convex(graph, nodes):
    reached = set()
    for node in graph.nodes:
        if node in nodes:
            if any(source in reached for source in node.all_input_nodes):
                return False
        elif any(source in reached or source in nodes for source in node.all_input_nodes):
            reached.add(node)
    return True


def test_a_part_of_a_graph_is_found_in_it():
    tried = 0
    for seed in range(150):
        rng = random.Random(seed)
        graph = random_program(seed, 15)(cfx)
        calls = [n for n in graph.nodes if n.op == "call_function"]
        nodes = {rng.choice(calls)}
        for _ in range(rng.randrange(1, 5)):
            near = [m for n in nodes for m in (*n.all_input_nodes, *n.users)
                    if m.op == "call_function"]
            nodes.add(rng.choice(near or calls))
        ordered = [n for n in graph.nodes if n in nodes]
        if not is_convex(graph, nodes):
            continue
        pattern, wanted = sub_pattern(graph, ordered)
        matches = SubgraphMatcher(pattern, remove_overlapping_matches=False).match(graph)
        assert any(all(m.nodes_map[p] is n for p, n in wanted.items()) for m in matches), seed
        tried += 1
    assert tried > 60


def brute_force(graph, pattern):
    """Every way to find the calls of `pattern` in `graph`, by trying them all."""
    calls = [n for n in graph.nodes if n.op == "call_function"]
    wanted = [n for n in pattern.nodes if n.op == "call_function"]
    returned = pattern.output_node().all_input_nodes
    result = set()
    for nodes in itertools.permutations(calls, len(wanted)):
        bound = dict(zip(wanted, nodes))

        def fits(p, v):
            if isinstance(p, cfx.Node) and p.op == "placeholder":
                return bound.setdefault(p, v) == v
            return bound[p] is v if isinstance(p, cfx.Node) else type(p) is type(v) and p == v

        values = bound.values
        if (
            all(p.target is n.target and len(p.args) == len(n.args) for p, n in bound.items())
            and all(fits(*pair) for p, n in zip(wanted, nodes) for pair in zip(p.args, n.args))
            and len({v for v in values() if isinstance(v, cfx.Node)})
            == sum(isinstance(v, cfx.Node) for v in values())
            and all(p in returned or all(u in nodes for u in bound[p].users) for p in wanted)
        ):
            result.add(nodes)
    return result


def test_a_search_finds_what_trying_everything_finds():
    total = 0
    for seed in range(150):
        graph = random_program(seed, 8)(cfx)
        pattern = random_program(2000 + seed, 1 + seed % 3)(cfx)
        for node in [n for n in pattern.nodes if n.op == "placeholder" and not n.users]:
            pattern.erase_node(node)
        wanted = [n for n in pattern.nodes if n.op == "call_function"]
        matches = SubgraphMatcher(pattern, remove_overlapping_matches=False).match(graph)
        found = {tuple(m.nodes_map[p] for p in wanted) for m in matches}
        assert found == brute_force(graph, pattern), seed
        total += len(found)
    assert total > 50


# ---- replacing ---------------------------------------------------------------------------------


def replaced(fx, program, pattern, replacement, **options):
    gm = program if isinstance(program, fx.GraphModule) else fx.symbolic_trace(program)
    before = str(gm.graph)
    try:
        matches = fx.subgraph_rewriter.replace_pattern_with_filters(
            gm, pattern, replacement, **options)
    except Exception as error:
        if fx is cfx:
            assert str(gm.graph) == before
        return type(error).__name__
    gm.graph.lint()
    return str(gm.graph), gm.code, [
        (str(m.anchor), [(str(k), str(v)) for k, v in m.nodes_map.items()], str(m.replacements))
        for m in matches
    ]


def late_user(x, y):
    a = torch.relu(x)
    d = torch.exp2(y)
    c = torch.neg(x)
    e = torch.exp2(d)
    return torch.tanh(a), c, e


def early_user(x, y):
    a = torch.relu(x)
    t = torch.tanh(a)
    return t, torch.neg(x), torch.exp2(y)


def unused_results(x, y):
    torch.relu(x)
    d = torch.exp2(y)
    torch.neg(x)
    return torch.exp2(d)


REPLACEMENTS = [
    (chain, PATTERNS[0], lambda x: torch.neg(x)),
    (chain, lambda x: torch.sigmoid(x), lambda x: torch.neg(torch.sigmoid(x))),
    (chain, lambda x: torch.sigmoid(x), lambda x: x),
    (inner_used, with_inner, lambda x: (torch.exp(x), torch.abs(x))),
    (late_user, PATTERNS[2], lambda x: (torch.exp(x), torch.abs(x))),
    (early_user, PATTERNS[2], lambda x: (torch.exp(x), torch.abs(x))),
    (unused_results, PATTERNS[2], lambda x: (torch.exp(x), torch.abs(x))),
    (lambda x: torch.add(x, 2), lambda x, k: torch.add(x, k), lambda x, k: torch.mul(x, k)),
    (lambda x, y: torch.cat([x, y], 1), lambda x, k: torch.cat(x, k),
     lambda x, k: torch.stack(x, dim=k)),
    (lambda x, y: torch.relu(x + y), lambda x, y: torch.relu(x + y), lambda x: torch.neg(x)),
    (lambda x, y: torch.relu(x + y), lambda x, y: torch.relu(x + y), lambda x, y: (x, y)),
    (lambda x, y: torch.relu(x), lambda x: torch.relu(x), None),
    (lambda x, y: torch.relu(x - y), lambda x, y: torch.relu(x + y), lambda x: torch.neg(x)),
]  # fmt: skip


@pytest.mark.parametrize("program, pattern, replacement", REPLACEMENTS)
def test_replacements(program, pattern, replacement):
    theirs, ours = (replaced(fx, program, pattern, replacement) for fx in BOTH)
    assert theirs == ours


def test_replacing_a_pattern_by_itself_changes_no_result():
    for seed in range(25):
        graph = random_program(seed, 12)(cfx)
        pattern = random_program(500 + seed, 2)(cfx)
        gm = cfx.GraphModule({}, graph)
        inputs = torch.randn(3), torch.randn(3)
        before = gm(*inputs)
        try:
            cfx.replace_pattern(gm, pattern, pattern)
        except KeyError:  # a placeholder that the pattern does not use
            continue
        gm.graph.lint()
        torch.testing.assert_close(gm(*inputs), before)


def test_filters_and_callbacks():
    def only_second(match, graph, pattern):
        return "sigmoid_1" in str(match.nodes_map)

    for fx in BOTH:
        gm = fx.symbolic_trace(chain)
        seen = []

        def callback(match, graph, pattern):
            seen.append(str(match.nodes_map))
            return fx.symbolic_trace(lambda x: torch.neg(x)).graph

        matches = fx.subgraph_rewriter.replace_pattern_with_filters(
            gm, lambda x: torch.sigmoid(x), match_filters=[only_second],
            replacement_callback=callback)
        assert len(matches) == len(seen) == 2
        assert [n.name for m in matches for n in m.replacements] == ["neg", "neg_1"]


def test_a_callback_that_fails_leaves_the_graph_alone():
    gm = cfx.symbolic_trace(chain)
    before = str(gm.graph)
    calls = []

    def callback(match, graph, pattern):
        calls.append(match)
        if len(calls) == 2:
            raise ZeroDivisionError
        return cfx.symbolic_trace(lambda x: torch.neg(x)).graph

    with pytest.raises(ZeroDivisionError):
        cfx.subgraph_rewriter.replace_pattern_with_filters(
            gm, lambda x: torch.sigmoid(x), replacement_callback=callback)
    assert str(gm.graph) == before


def test_a_filter_that_erases_a_match_is_told():
    gm = cfx.symbolic_trace(lambda x: (torch.relu(x), x)[1])

    def erase(match, graph, pattern):
        graph.erase_node(match.returning_nodes[0])
        return True

    with pytest.raises(RuntimeError, match="%relu of a match was erased"):
        cfx.subgraph_rewriter.replace_pattern_with_filters(
            gm, lambda x: torch.relu(x), lambda x: torch.neg(x), [erase])
    gm.graph.lint()


class WithModules(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.ReLU()
        self.w = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.a(x) + self.w


class ReLUPattern(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.ReLU()

    def forward(self, x):
        return self.a(x)


class NewModules(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.b = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())
        self.w = torch.nn.Parameter(torch.ones(2))  # the same as in WithModules
        self.k = torch.ones(2)

    def forward(self, x):
        return self.b[1](x) + self.w + self.k


def test_modules_of_the_replacement_are_brought_in():
    results = []
    for fx in BOTH:
        gm = fx.symbolic_trace(WithModules())
        gm.extra = torch.nn.Tanh()
        new = NewModules()
        fx.replace_pattern(gm, ReLUPattern(), new)
        x = torch.arange(2.0)
        results.append((gm.code, sorted(dict(gm.named_modules())), gm(x).tolist()))
        assert gm.get_submodule("b.1") is not new.b[1]
    assert results[0] == results[1]


class Layer(torch.nn.Module):
    """One linear layer `fc` with a given weight, then a function."""

    def __init__(self, weight, after):
        super().__init__()
        self.fc = torch.nn.Linear(2, 2, bias=False)
        torch.nn.init.constant_(self.fc.weight, weight)
        self.after = after

    def forward(self, x):
        return self.after(self.fc(x))


def relu(x):
    return torch.relu(x)


X2 = torch.arange(2.0)


def test_a_new_module_with_an_existing_name_keeps_its_weights():
    new = Layer(3.0, torch.tanh)
    gm = cfx.symbolic_trace(Layer(1.0, torch.relu))
    assert cfx.replace_pattern(gm, relu, new)
    fc, fc_1 = torch.ones(2, 2), torch.full((2, 2), 3.0)
    assert torch.equal(gm(X2), torch.tanh(fc_1 @ (fc @ X2)))
    assert [name for name, _ in gm.named_children()] == ["fc", "fc_1"]
    assert gm.fc_1 is not new.fc and new.fc.weight[0, 0] == 3.0
    assert [n.target for n in cfx.symbolic_trace(new).graph.find_nodes(op="call_module")] == ["fc"]
    for node in gm.graph.find_nodes(op="call_function", target=torch.tanh):
        node.target = torch.relu  # and once more, with fc_1 taken
    assert cfx.replace_pattern(gm, relu, Layer(4.0, torch.tanh))
    assert gm.fc_2.weight[0, 0] == 4.0 and gm.fc_1.weight[0, 0] == 3.0


def test_the_same_module_is_not_copied_again():
    gm = cfx.symbolic_trace(Layer(1.0, torch.relu)).eval()
    assert cfx.replace_pattern(gm, relu, Layer(1.0, torch.tanh))
    assert [name for name, _ in gm.named_children()] == ["fc"]


def test_what_cannot_be_compared_gets_a_fresh_name():
    one, two = Layer(1.0, torch.relu), Layer(1.0, torch.tanh)
    for layer in (one, two):
        layer.fc.around = [layer]
    one.fc.extra, two.fc.extra = torch.ones(2), torch.zeros(2).to_sparse()
    gm = cfx.symbolic_trace(one)
    assert cfx.replace_pattern(gm, relu, two)
    assert [name for name, _ in gm.named_children()] == ["fc", "fc_1"]


def test_a_path_of_the_pattern_means_what_was_matched():
    results = []
    for fx in BOTH:
        gm = fx.symbolic_trace(Layer(1.0, torch.relu))
        assert fx.replace_pattern(gm, Layer(7.0, torch.relu), Layer(8.0, torch.tanh))
        results.append((gm.code, gm(X2).tolist()))
    assert results[0] == results[1]


def test_another_class_at_a_path_of_the_pattern_is_new():
    gm = cfx.symbolic_trace(Layer(1.0, torch.relu))
    new = Layer(8.0, torch.tanh)
    new.fc = torch.nn.Identity()
    assert cfx.replace_pattern(gm, Layer(7.0, torch.relu), new)
    assert torch.equal(gm(X2), torch.tanh(X2))
    assert [name for name, _ in gm.named_children()] == ["fc_1"]


def test_replacements_of_two_rules_do_not_share_by_name():
    gm = cfx.symbolic_trace(lambda x: torch.relu(torch.sin(x)))
    rules = [(relu, Layer(2.0, torch.tanh)), (lambda x: torch.sin(x), Layer(3.0, torch.cos))]
    assert len(cfx.replace_pattern(gm, rules)) == 2
    two, three = torch.full((2, 2), 2.0), torch.full((2, 2), 3.0)
    assert torch.equal(gm(X2), torch.tanh(two @ torch.cos(three @ X2)))


def test_missing_attributes_are_found_before_the_first_change():
    gm = cfx.symbolic_trace(WithModules())
    replacement = cfx.symbolic_trace(NewModules())
    del replacement.k
    before = str(gm.graph)
    with pytest.raises(RuntimeError, match="the replacement reads 'k'"):
        cfx.replace_pattern(gm, ReLUPattern(), replacement)
    assert str(gm.graph) == before


def test_metadata_of_the_replacement_is_carried_over():
    for fx in BOTH:
        gm = fx.symbolic_trace(lambda x: torch.relu(x))
        replacement = fx.symbolic_trace(lambda x: torch.abs(torch.sin(x)))
        for node in replacement.graph.nodes:
            node.meta["mine"] = node.name
        fx.replace_pattern(gm, lambda x: torch.relu(x), replacement)
        assert [n.meta.get("mine") for n in gm.graph.nodes] == [None, "sin", "abs_1", None]


def test_metadata_of_the_match_is_carried_over():
    gm = cfx.symbolic_trace(lambda x: torch.relu(torch.neg(x)) + 1)
    for node in gm.graph.nodes:
        node.meta.update(val=node.name, stack_trace=f"at {node.name}")
        node.meta["nn_module_stack"] = {"a": ("a", f)}
    made = cfx.symbolic_trace(lambda x: torch.sin(torch.cos(x)))
    for node in made.graph.nodes:
        node.meta["mine"] = node.name
    made.graph.find_nodes(op="call_function", target=torch.sin)[0].meta["stack_trace"] = "mine"
    cfx.replace_pattern(gm, lambda x: torch.relu(torch.neg(x)), made, carry_meta=True)
    metas = {node.name: node.meta for node in gm.graph.nodes}
    stack = {"a": ("a", f)}
    assert metas["cos"] == {"mine": "cos", "stack_trace": "at relu", "nn_module_stack": stack}
    assert metas["sin"] == {"mine": "sin", "val": "relu", "stack_trace": "mine",
                            "nn_module_stack": stack}
    # An input that is given back stays what it is.
    cfx.replace_pattern(gm, lambda x: torch.sin(x), lambda x: x, carry_meta=True)
    assert gm.graph.find_nodes(op="call_function", target=torch.cos)[0].meta.get("val") is None


def test_name_node_map():
    def pattern(x):
        n = torch.neg(x)
        r = torch.relu(n)
        return r, {"n": n, "r": r, "x": x}

    gm = cfx.symbolic_trace(lambda x: torch.relu(torch.neg(x)) * 2)
    matcher = SubgraphMatcherWithNameNodeMap(cfx.symbolic_trace(pattern))
    (match,) = matcher.match(gm.graph)
    names = {k: str(v) for k, v in match.name_node_map.items()}
    assert names == {"n": "neg", "r": "relu", "x": "x"}
    with pytest.raises(AssertionError, match="last result of the pattern to be a dict"):
        SubgraphMatcherWithNameNodeMap(cfx.symbolic_trace(lambda x: (torch.neg(x), x)))


# ---- beyond torch.fx ---------------------------------------------------------------------------


def test_any_of():
    gm = cfx.symbolic_trace(lambda x: (torch.relu(x) + 1, F.gelu(x) + 1, x.sigmoid() + 1, x + 1))
    either = cfx.any_of(torch.relu, F.gelu, ".sigmoid")
    matches = cfx.replace_pattern(gm, lambda a: either(a) + 1, lambda a: torch.neg(a))
    assert len(matches) == 3
    assert gm(torch.ones(1)) == (-1, -1, -1, 2)
    with pytest.raises(TypeError, match="only be called in a pattern"):
        either(torch.ones(1))


def test_spellings_and_swapped_operands():
    def program(x, y):
        return x.relu() + 1, 1 + F.relu(y), torch.relu(x).add(2)

    def pattern(a):
        return torch.add(torch.relu(a), 1)

    for options, n in (({}, 0), ({"any_spelling": True}, 1),
                       ({"any_spelling": True, "commutative": True}, 2)):
        gm = cfx.symbolic_trace(program)
        assert len(cfx.replace_pattern(gm, pattern, lambda a: torch.sin(a), **options)) == n


MODULES = [
    (torch.nn.ReLU(), lambda x: F.relu(x), lambda x: F.relu6(x)),
    (torch.nn.LeakyReLU(0.2), lambda x: F.leaky_relu(x, 0.2), lambda x: F.leaky_relu(x)),
    (torch.nn.ELU(2.0), lambda x: F.elu(x, 2.0), lambda x: F.elu(x)),
    (torch.nn.CELU(), lambda x: F.celu(x), lambda x: F.celu(x, 2.0)),
    (torch.nn.Softplus(2.0), lambda x: F.softplus(x, 2.0), lambda x: F.softplus(x)),
    (torch.nn.Hardtanh(-2.0, 2.0), lambda x: F.hardtanh(x, -2.0, 2.0), lambda x: F.hardtanh(x)),
    (torch.nn.Threshold(0.5, 3.0), lambda x: F.threshold(x, 0.5, 3.0),
     lambda x: F.threshold(x, 0.5, 4.0)),
    (torch.nn.Softmax(1), lambda x: x.softmax(1), lambda x: x.softmax(2)),
    (torch.nn.LogSoftmax(1), lambda x: torch.log_softmax(x, dim=1),
     lambda x: torch.log_softmax(x, dim=0)),
    (torch.nn.GLU(1), lambda x: F.glu(x, 1), lambda x: F.glu(x)),
    (torch.nn.Flatten(), lambda x: torch.flatten(x, 1), lambda x: torch.flatten(x)),
    (torch.nn.MaxPool2d(2), lambda x: F.max_pool2d(x, 2), lambda x: F.max_pool2d(x, 2, 1)),
    (torch.nn.MaxPool2d((2, 2)), lambda x: F.max_pool2d(x, 2, stride=2),
     lambda x: F.max_pool2d(x, 2, ceil_mode=True)),
    (torch.nn.AvgPool2d(2, 1, 1), lambda x: F.avg_pool2d(x, (2, 2), (1, 1), 1),
     lambda x: F.avg_pool2d(x, 2, 1)),
    (torch.nn.AdaptiveAvgPool2d(2), lambda x: F.adaptive_avg_pool2d(x, (2, 2)),
     lambda x: F.adaptive_avg_pool2d(x, (2, 1))),
    (torch.nn.Dropout(0.3).eval(), lambda x: F.dropout(x, 0.3, False),
     lambda x: F.dropout(x, 0.3, True)),
    (torch.nn.PixelShuffle(2), lambda x: F.pixel_shuffle(x, 2), lambda x: F.pixel_shuffle(x, 1)),
    (torch.nn.Upsample(scale_factor=2), lambda x: F.interpolate(x, None, 2.0),
     lambda x: F.interpolate(x, None, 3.0)),
    (torch.nn.LayerNorm((4, 4), elementwise_affine=False), lambda x: F.layer_norm(x, (4, 4)),
     lambda x: F.layer_norm(x, (4, 4), eps=0.1)),
]  # fmt: skip


@pytest.mark.parametrize("module, right, wrong", MODULES, ids=lambda x: type(x).__name__)
def test_modules_are_spellings(module, right, wrong):
    gm = cfx.symbolic_trace(torch.nn.Sequential(module))
    x = torch.randn(2, 4, 4, 4)
    assert torch.equal(module(x), right(x))  # else the pattern would have no business to match
    assert cfx.replace_pattern(gm, right, lambda x: x.sin()) == []
    assert cfx.replace_pattern(gm, wrong, lambda x: x.sin(), any_spelling=True) == []
    assert len(cfx.replace_pattern(gm, right, lambda x: x.sin(), any_spelling=True)) == 1
    assert torch.equal(gm(x), x.sin())


@pytest.mark.parametrize("module, pattern, reason", [
    (torch.nn.ReLU(inplace=True), lambda x: F.relu(x), "inplace=True"),
    (torch.nn.Linear(4, 4), lambda x, w, b: F.linear(x, w, b), "a module with weights"),
    (torch.nn.PReLU(), lambda x, w: F.prelu(x, w), "its own weight"),
    (torch.nn.BatchNorm2d(4, affine=False, track_running_stats=False),
     lambda x: F.batch_norm(x, None, None), "with state"),
    (torch.nn.MaxPool2d(2, return_indices=True), lambda x: F.max_pool2d(x, 2), "return_indices"),
])  # fmt: skip
def test_modules_that_no_function_stands_for(module, pattern, reason):
    gm = cfx.symbolic_trace(torch.nn.Sequential(module))
    assert cfx.replace_pattern(gm, pattern, pattern, any_spelling=True) == []
    (miss,) = cfx.replace_pattern(gm, pattern, any_spelling=True, explain=True)
    assert reason in miss.reason


def test_a_module_with_hooks_is_nobodys_spelling():
    gm = cfx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
    getattr(gm, "0").register_forward_hook(lambda *args: None)
    assert cfx.replace_pattern(gm, F.relu, lambda x: x.sin(), any_spelling=True) == []


def test_many_patterns_at_once():
    gm = cfx.symbolic_trace(lambda x: torch.neg(torch.relu(torch.neg(x))))
    rules = [(lambda a: torch.relu(torch.neg(a)), lambda a: torch.sin(a)),
             (lambda a: torch.neg(a), lambda a: torch.cos(a))]
    assert len(cfx.replace_pattern(gm, rules)) == 2
    assert [n.name for n in gm.graph.nodes] == ["x", "sin", "cos", "output"]


def test_variadic_operands():
    gm = cfx.symbolic_trace(lambda x, y: torch.cat([x, y, x], 1))
    matches = cfx.replace_pattern(
        gm, lambda first, *rest: torch.cat([first, rest], 1),
        lambda first, *rest: torch.stack([rest, first], 1), variadic=True)
    assert len(matches) == 1
    assert "torch.stack([y, x, x], 1)" in gm.code


def test_patterns_as_text():
    gm = cfx.symbolic_trace(lambda x: torch.relu(torch.neg(x)))
    pattern = cfx.text(cfx.symbolic_trace(lambda a: torch.relu(torch.neg(a))).graph)
    assert len(cfx.replace_pattern(gm, pattern, lambda a: torch.sin(a))) == 1
    assert "torch.sin(x)" in gm.code


def test_patterns_of_torch_fx_are_converted():
    gm = cfx.symbolic_trace(lambda x: torch.relu(torch.neg(x)))
    pattern = torch.fx.symbolic_trace(lambda a: torch.relu(torch.neg(a)))
    assert len(SubgraphMatcher(pattern.graph).match(gm.graph)) == 1
    assert len(SubgraphMatcher(pattern.graph).match(torch.fx.symbolic_trace(pattern).graph)) == 1
    assert len(cfx.replace_pattern(gm, pattern, lambda a: torch.sin(a))) == 1


def test_exported_programs_are_patterns():
    class Sine(torch.nn.Module):
        def forward(self, x):
            return torch.sin(x)

    x = torch.randn(3)
    model = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Tanh())
    ours, theirs, made = (torch.export.export(m, (x,)) for m in (model, torch.nn.Tanh(), Sine()))
    for form in (lambda p: p, lambda p: p.module(check_guards=False)):
        gm = cfx.interop.from_torch(ours.module(check_guards=False))
        assert len(cfx.replace_pattern(gm, form(theirs), form(made))) == 2
        assert torch.equal(gm(x), x.sin().sin())


def test_what_cannot_be_done_is_told():
    gm = cfx.symbolic_trace(lambda x: torch.neg(x))
    with pytest.raises(AssertionError, match="pass a copy of it"):
        cfx.replace_pattern(gm, lambda x: torch.neg(x), gm)
    with pytest.raises(AssertionError, match="Expected FunctionType, got <class 'int'>"):
        cfx.replace_pattern(gm, 5, gm)
    with pytest.raises(TypeError, match="convert it first with cfx.interop.from_torch"):
        cfx.replace_pattern(torch.fx.symbolic_trace(gm), gm, gm)
    assert [n.name for n in gm.graph.nodes] == ["x", "neg", "output"]


def test_matches_that_need_each_other_are_not_both_replaced():
    def program(x, y):
        p, q = torch.neg(x), torch.neg(y)
        return p, torch.add(q, x), q, torch.add(p, y)

    gm = cfx.symbolic_trace(program)
    pattern = cfx.symbolic_trace(lambda a, b: (torch.neg(a), torch.add(b, a)))
    assert len(SubgraphMatcher(pattern.graph).match(gm.graph)) == 2
    assert len(cfx.replace_pattern(gm, pattern, lambda a, b: (b * 0 - a, a + b))) == 1
    gm.graph.lint()
    x, y = torch.randn(3), torch.randn(3)
    assert all(map(torch.equal, gm(x, y), program(x, y)))


def test_strict_matches_respect_writes():
    def program(x):
        n = torch.neg(x)
        x.add_(1)
        return torch.relu(n)

    def pattern(a):
        return torch.relu(torch.neg(a))

    gm = cfx.symbolic_trace(program)
    assert cfx.replace_pattern(gm, pattern, pattern, strict=True) == []
    assert gm(torch.tensor([-1.0])).tolist() == [1.0]
    (miss, *_) = cfx.replace_pattern(gm, pattern, strict=True, explain=True)
    assert "add_" in str(miss) and "may write to a tensor that %neg reads" in miss.reason


def program_that_writes(seed):
    """A random program in which calls write to tensors and to views of them."""
    rng = random.Random(seed)
    graph = cfx.Graph()
    nodes = [graph.call_method("clone", (graph.placeholder(name),)) for name in "xy"]
    for _ in range(14):
        a, b = rng.choice(nodes[-5:]), rng.choice(nodes[-5:])
        target = rng.choice([torch.neg, torch.relu, torch.add, torch.t, torch.relu_, "add_"])
        if target == "add_":
            nodes.append(graph.call_method(target, (a, 1)))
        else:
            nodes.append(graph.call_function(target, (a, b) if target is torch.add else (a,)))
    graph.output(tuple(node for node in nodes if not node.users or rng.random() < 0.3))
    return cfx.GraphModule({}, graph)


def test_strict_replacements_keep_what_is_computed():
    patterns = [
        lambda a: torch.relu(torch.neg(a)), lambda a, b: (a.add_(1), torch.add(a, b)),
        lambda a, b: (torch.neg(a), torch.add(torch.neg(a), b)), lambda a: torch.relu_(torch.t(a)),
        lambda a, b: (torch.add(a, b), torch.relu(a)), lambda a, b: (torch.neg(a), torch.relu_(b)),
    ]  # fmt: skip
    matches, wrong = [0, 0], [0, 0]
    for seed, pattern in itertools.product(range(60), patterns):
        x, y = (torch.arange(9.0).reshape(3, 3) - shift for shift in (4, 2))
        want = program_that_writes(seed)(x, y)
        for strict in (False, True):
            gm = program_that_writes(seed)
            matches[strict] += len(cfx.replace_pattern(gm, pattern, pattern, strict=strict))
            wrong[strict] += not all(map(torch.equal, gm(x, y), want))
    assert wrong[0] > 0 and wrong[1] == 0 and matches[1] > matches[0] / 3


def test_strict_replacements_stand_where_the_match_was():
    def program(x):
        n = torch.neg(x)
        x.add_(1)
        return n + 1

    gm = cfx.symbolic_trace(program)
    cfx.replace_pattern(gm, lambda a: torch.neg(a), lambda a: torch.mul(a, -1), strict=True)
    assert gm(torch.tensor([1.0])).tolist() == [0.0]


def test_explain_names_the_line_and_the_constraint():
    def program(x):
        return torch.sum(torch.neg(x), dim=2)

    gm = cfx.symbolic_trace(program)
    before = gm.code
    (miss, *_) = cfx.replace_pattern(gm, lambda a: torch.sum(torch.neg(a), dim=1), explain=True)
    line = program.__code__.co_firstlineno + 1
    assert f"test_match.py:{line}: %sum_1 is not" in str(miss)
    assert str(miss).endswith("\n    return torch.sum(torch.neg(x), dim=2)")
    assert miss.reason == "kwargs['dim']: the pattern has 1, the graph 2"
    assert miss.node.name == miss.wanted.name == "sum_1" and gm.code == before


def test_a_long_graph_takes_time_in_proportion():
    graph = cfx.Graph()
    x = graph.placeholder("x")
    for _ in range(5000):
        for target in (torch.neg, torch.relu, torch.tanh, torch.sin):
            x = graph.call_function(target, (x,))
    graph.output(x)
    gm = cfx.GraphModule({}, graph)
    matches = cfx.replace_pattern(gm, lambda a: torch.tanh(torch.relu(torch.neg(a))),
                                  lambda a: torch.cos(a))
    assert len(matches) == 5000 and len(gm.graph.nodes) == 10002
    assert operator.eq(*(n.target for n in list(gm.graph.nodes)[1:4:2]))


def test_a_list_of_patterns_holds_pairs():
    gm = cfx.symbolic_trace(lambda x: torch.relu(x))
    with pytest.raises(TypeError, match="must hold pairs"):
        cfx.replace_pattern(gm, [lambda x: torch.relu(x)], lambda x: torch.neg(x))
