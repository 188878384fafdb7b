"""split_module, split_by_tags, stages, sizes of nodes: as torch.fx has them, and what is ours."""
import copy
import operator
import random
import types
import warnings

import pytest

torch = pytest.importorskip("torch")
import torch.fx as tfx  # noqa: E402
import torch.fx.passes.graph_manipulation as torch_sizes  # noqa: E402
import torch.fx.passes.split_module as torch_split  # noqa: E402
import torch.fx.passes.split_utils as torch_tags  # noqa: E402

import cfx  # noqa: E402
import cfx.passes.graph_manipulation as cfx_sizes  # noqa: E402
import cfx.passes.split_module as cfx_split  # noqa: E402
import cfx.passes.split_utils as cfx_tags  # noqa: E402

BOTH = ((tfx, torch_split.split_module), (cfx, cfx_split.split_module))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(4))
        self.lin = torch.nn.Linear(4, 4)
        self.seq = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x, y=3, *, z=None):
        a = self.lin(x + self.scale)
        b = self.seq(a) * y
        c = torch.relu(a) + self.shift
        d = b + c + self.scale
        return {"e": ((d - a).sum(), d), "c": c}


def calls(graph):
    return [n for n in graph.nodes if n.op.startswith("call")]


def graphs_of(module):
    return {n: m for n, m in module.named_modules() if isinstance(m, (tfx.GraphModule,
                                                                      cfx.GraphModule))}


def look(module):
    """All that can be seen of a split module."""
    return {n: (str(m.graph), m.code) for n, m in graphs_of(module).items()}, list(
        module.state_dict()), module.meta.get("partition_names")


def check_valid(module):
    for part in graphs_of(module).values():
        assert part.graph._faults(True) == []


def random_labels(rng, n, k):
    """By stretches, with one that may be out of place; or anything."""
    if rng.random() < 0.3:
        return [rng.randrange(k) for _ in range(n)]
    ends = sorted(rng.randrange(n) for _ in range(k))
    labels = [sum(i >= e for e in ends) for i in range(n)]
    if rng.random() < 0.5:
        labels[rng.randrange(n)] = rng.randrange(k)
    return labels


def attempt(fx, split, model, labels, options):
    gm = fx.symbolic_trace(model)
    label_of = dict(zip(calls(gm.graph), labels))
    paths = {}
    try:
        result = split(gm, model, label_of.__getitem__, paths, **options)
    except (RuntimeError, KeyError) as e:
        return type(e).__name__
    return result, paths


@pytest.mark.parametrize("seed", range(60))
def test_split_as_torch_fx_does(seed):
    rng = random.Random(seed)
    model = Model()
    labels = random_labels(rng, 11, rng.randint(1, 4))
    names = ("order", "node_name", "input_name")
    options = {f"keep_original_{name}": rng.random() < 0.5 for name in names}
    options |= {"tuple_return": rng.random() < 0.5}
    options |= {"partition_affix": "part"} if rng.random() < 0.3 else {}
    theirs, ours = (attempt(*fx, model, labels, options) for fx in BOTH)
    if isinstance(theirs, str):
        # torch.fx fails with a KeyError if the order it is to keep is none that fits the data.
        assert ours == theirs or (theirs == "KeyError" and not isinstance(ours, str))
        return
    assert look(theirs[0]) == look(ours[0])
    assert theirs[1] == ours[1]
    check_valid(ours[0])
    x = torch.rand(2, 4)
    torch.testing.assert_close(ours[0](x), model(x), rtol=0, atol=0)


def test_metadata_and_types_go_along():
    def build(fx):
        gm = fx.symbolic_trace(Model())
        for i, n in enumerate(gm.graph.nodes):
            n.meta["number"] = i
        calls(gm.graph)[0].type = torch.Tensor
        return gm

    def seen(fx, split):
        gm = build(fx)
        it = iter([0] * 4 + [1] * 7)
        result = split(gm, None, lambda n: next(it))
        return {name: [(n.name, n.meta.get("number"), n.type) for n in m.graph.nodes]
                for name, m in graphs_of(result).items()}

    assert seen(*BOTH[0]) == seen(*BOTH[1])


def test_what_crosses_is_listed():
    gm = cfx.symbolic_trace(lambda x: torch.neg(torch.relu(x)) + torch.relu(x) + x)
    it = iter([0, 1, 1, 1, 1])
    split = cfx_split.split_module(gm, None, lambda n: next(it))
    assert cfx_split.cuts(split) == [
        (None, "submod_0", "x"), ("submod_0", "submod_1", "relu"), (None, "submod_1", "x"),
        ("submod_1", None, "add_1"),
    ]  # fmt: skip
    assert copy.deepcopy(split).meta["cuts"] == cfx_split.cuts(split)


def test_a_cycle_is_told_with_its_nodes_and_lines():
    def program(x):
        a = torch.relu(x)
        b = torch.neg(a)
        return a + b

    gm = cfx.symbolic_trace(program)
    it = iter("aba")
    with pytest.raises(RuntimeError) as e:
        cfx_split.split_module(gm, None, lambda n: next(it))
    assert "cycle exists between partitions!" in str(e.value)
    assert "submod_b needs %relu of submod_a (for %neg at " in str(e.value)
    line = program.__code__.co_firstlineno + 3
    assert f"test_split.py:{line}" in str(e.value)


def test_paths_that_become_the_same_stay_apart():
    class Twins(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Module()
            self.a.b = torch.nn.Linear(3, 3)
            self.a_b = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.a_b(self.a.b(x))

    model, x, paths = Twins(), torch.rand(3), {}
    split = cfx_split.split_module(cfx.symbolic_trace(model), model, lambda n: 0, paths)
    assert torch.equal(split(x), model(x))  # torch.fx calls the second one twice
    assert paths == {"submod_0.a_b": "a.b", "submod_0.a_b_1": "a_b"}


def test_writes_are_not_reordered():
    def program(x):
        x.add_(1)
        y = x * 2
        return y

    gm = cfx.symbolic_trace(program)
    it = iter([0, 1])
    split = cfx_split.split_module(gm, None, lambda n: next(it))
    assert torch.equal(split(torch.ones(2)), torch.full((2,), 4.0))


def spans(fx, grad):
    graph = fx.Graph()
    mode = torch.amp.autocast_mode
    a = graph.call_function(torch.relu, (graph.placeholder("x"),))
    enter = graph.call_function(mode._enter_autocast, ("cpu", None, True, None))
    if grad:
        graph.call_function(torch._C._set_grad_enabled, (False,))
    b = graph.call_function(torch.neg, (a,))
    c = graph.call_function(torch.abs, (b,))
    if grad:
        graph.call_function(torch._C._set_grad_enabled, (True,))
    graph.call_function(mode._exit_autocast, (enter,))
    d = graph.call_function(torch.add, (c, a))
    graph.output(graph.call_function(torch.mul, (d, d)))
    return fx.GraphModule({}, graph)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("ends", [(2, 3), (1, 4), (3, 5), (3, 4), (2, 2), (1, 2)])
def test_autocast_and_grad_mode_hold_in_each_part(grad, ends):
    codes = []
    for fx, split in BOTH:
        gm = spans(fx, grad)
        label_of = {n: sum(i >= e for e in ends) for i, n in enumerate(calls(gm.graph))}
        result = split(gm, None, label_of.__getitem__)
        # torch.fx may call the parts in another order, whatever that does to the modes. The code of
        # cfx has `with` blocks, that of torch.fx calls.
        plain = cfx.interop.to_torch if fx is cfx else lambda part: part
        codes.append({n: plain(m).code for n, m in graphs_of(result).items() if n})
    check_valid(result)
    assert codes[0] == codes[1]


def test_going_back_inside_such_a_stretch_is_refused():
    gm = spans(cfx, True)
    it = iter([0, 0, 0, 1, 0, 1, 1, 1, 1, 1])
    with pytest.raises(ValueError, match="monotonically increasing partitions"):
        cfx_split.split_module(gm, None, lambda n: next(it))


def test_the_callback():
    gm = cfx.symbolic_trace(Model())
    before = str(gm.graph)
    asked = []
    cfx_split.split_module(gm, None, lambda n: asked.append(n.op))
    assert set(asked) <= {"call_function", "call_module", "call_method"}
    with pytest.raises(ZeroDivisionError):
        cfx_split.split_module(gm, None, lambda n: 1 // 0)
    with pytest.raises(RuntimeError, match="assigns nodes to parts changed the graph"):
        cfx_split.split_module(gm, None, lambda n: gm.graph.placeholder("new"))
    gm.graph.erase_node(gm.graph.find_nodes(op="placeholder", target="new")[0])
    assert str(gm.graph) == before


def test_split_module_simple():
    def program(x):
        a = torch.relu(x)
        return torch.neg(a) + a, a

    shown = []
    for fx, module in ((tfx, torch_split), (cfx, cfx_split)):
        gm = fx.symbolic_trace(program)
        split = module.split_module_simple(gm, {n: i for i, n in enumerate(calls(gm.graph))},
                                           partition_affix="q")
        shown.append({n: str(m.graph) for n, m in graphs_of(split).items()})
    assert shown[0] == shown[1]
    with pytest.raises(KeyError):
        cfx_split.split_module_simple(gm, {})


# ---- tags --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_split_by_tags_as_torch_fx_does(seed):
    rng = random.Random(seed)
    model = Model()
    tags = ["red", "green", "blue", "grey"]
    labels = random_labels(rng, 11, 4)
    options = {"return_fqn_mapping": True, "return_tuple": rng.random() < 0.5}
    seen = []
    for fx, module in ((tfx, torch_tags), (cfx, cfx_tags)):
        gm = fx.symbolic_trace(model)
        for n, label in zip(calls(gm.graph), labels):
            n.tag = tags[min(label, 3)]
        try:
            split, paths = module.split_by_tags(gm, tags, **options)
        except AssertionError:
            seen.append(None)
            continue
        if fx is cfx:
            check_valid(split)
        # torch.fx drops the defaults of inputs, and puts inputs where they are first read.
        base = str(split.graph).replace("(default=3)", "").replace("(default=None)", "")
        codes = {n: m.code for n, m in graphs_of(split).items() if n}
        seen.append((base, codes, paths, [n.tag for m in split.children() for n in calls(m.graph)],
                     sorted(split.state_dict())))
        x = torch.rand(2, 4)
        torch.testing.assert_close(split(x, 3, None), model(x), rtol=0, atol=0)
    assert seen[0] == seen[1]


def test_tags_that_are_missing():
    gm = cfx.symbolic_trace(lambda x: torch.relu(x))
    with pytest.raises(AssertionError, match="Node does not have tag: %relu"):
        cfx_tags.split_by_tags(gm, ["a"])
    calls(gm.graph)[0].tag = "b"
    with pytest.raises(KeyError, match="b"):
        cfx_tags.split_by_tags(gm, ["a"])


def test_attributes_by_path():
    model = Model()
    assert cfx_tags.getattr_recursive(model, "seq.0.weight") is model.seq[0].weight
    new = torch.nn.Parameter(torch.zeros(4, 4))
    cfx_tags.setattr_recursive(model, "seq.0.weight", new)
    assert model.seq[0].weight is new


# ---- one part ----------------------------------------------------------------------------------


def test_extract():
    gm = cfx.symbolic_trace(Model())
    nodes = calls(gm.graph)[1:4]
    nodes[0].meta["mark"] = 1
    graph, inputs, outputs = gm.graph._extract(nodes, None, None, 0)
    assert [n.name for n in inputs] == ["add"] and [n.name for n in outputs] == ["lin", "seq_1"]
    assert str(graph).splitlines()[1].strip() == "%add : [num_users=1] = placeholder[target=add]"
    assert next(n for n in graph.nodes if n.name == "lin").meta["mark"] == 1
    with pytest.raises(RuntimeError, match="in graph order"):
        gm.graph._extract(nodes[::-1], None, None, 0)
    with pytest.raises(TypeError, match="list of nodes"):
        gm.graph._extract(None and 1 or (), None, None, 0)


# ---- random graphs -----------------------------------------------------------------------------


def random_program(rng, size):
    graph = cfx.Graph()
    values = [graph.placeholder("x"), graph.placeholder("y"), graph.get_attr("w")]
    for _ in range(size):
        function = rng.choice([operator.add, operator.mul, torch.sub, torch.maximum])
        values.append(graph.call_function(function, (rng.choice(values), rng.choice(values))))
    graph.output([rng.choice(values), {"k": rng.choice(values)}, 1])
    root = torch.nn.Module()
    root.w = torch.nn.Parameter(torch.rand(3))
    return cfx.GraphModule(root, graph)


@pytest.mark.parametrize("seed", range(40))
def test_random_splits_compute_the_same(seed):
    rng = random.Random(seed)
    gm = random_program(rng, rng.randint(1, 30))
    before = gm.graph._text()
    k = rng.randint(1, 6)
    # Labels that never go down along an edge make no cycle.
    label_of = {}
    for n in calls(gm.graph):
        least = max((label_of.get(i, 0) for i in n.all_input_nodes), default=0)
        label_of[n] = min(k, least + rng.choice([0, 0, 1, 2]))
    split = cfx_split.split_module(gm, gm, label_of.__getitem__,
                                   keep_original_order=rng.random() < 0.5,
                                   tuple_return=rng.random() < 0.3)
    check_valid(split)
    x, y = torch.rand(3), torch.rand(3)
    torch.testing.assert_close(split(x, y), gm(x, y), rtol=0, atol=0)
    assert gm.graph._text() == before
    stages = cfx_split.split_stages(gm, rng.randint(1, 5))
    check_valid(stages)
    torch.testing.assert_close(stages(x, y), gm(x, y), rtol=0, atol=0)


# ---- stages and sizes --------------------------------------------------------------------------


def test_stages_are_balanced():
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(9)))
    gm = cfx.symbolic_trace(model)
    split = cfx_split.split_stages(gm, 3)
    assert [len(calls(m.graph)) for m in split.children()] == [3, 3, 3]
    assert cfx_split.cuts(split)[1] == ("submod_0", "submod_1", "_2")
    heavy = cfx_split.split_stages(gm, 2, cost=lambda n: 10 if n.target == "0" else 1)
    assert [len(calls(m.graph)) for m in heavy.children()] == [1, 8]
    x = torch.rand(2, 8)
    assert torch.equal(split(x), model(x)) and torch.equal(heavy(x), model(x))
    with pytest.raises(ValueError, match="the cost of node %_1 is -1"):
        cfx_split.split_stages(gm, 2, cost=lambda n: -1 if n.target == "1" else 1)
    with pytest.raises(ValueError, match="0 stages"):
        cfx_split.split_stages(gm, 0)


def test_sizes_of_nodes():
    sizes = []
    for fx, module in ((tfx, torch_sizes), (cfx, cfx_sizes)):
        gm = fx.symbolic_trace(Model())
        with pytest.raises(RuntimeError, match="Node x has no tensor metadata"):
            module.get_size_of_node(gm, next(iter(gm.graph.nodes)))
        one = fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Tanh()))
        module.get_size_of_all_nodes(one, [torch.rand(3, 4)])
        sizes.append([tuple(n.size_bytes) for n in one.graph.nodes if n.op != "output"])
        module.replace_target_nodes_with(one, "call_module", "1", "call_function", torch.tanh)
        sizes.append((str(one.graph), one.code))
    assert sizes[:2] == sizes[2:]
    assert sizes[0] == [(48, 48), (24, 64), (24, 24)]


# ---- torch's own graphs ------------------------------------------------------------------------


def test_exported_programs():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    x = torch.rand(2, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gm = torch.export.export(model, (x,)).module()
    for n in gm.graph.nodes:
        n.tag = "b" if "relu" in n.name else "a"
    split = cfx_tags.split_by_tags(gm, ["a", "b"])
    assert torch.equal(split(x), model(x))


# ---- nodes that are no tensors -----------------------------------------------------------------


def boundary(fx, subgraph_class, move, seed):
    rng = random.Random(seed)
    graph = fx.Graph()
    values = [graph.placeholder("x")]
    for _ in range(rng.randint(3, 10)):
        args = rng.choice(values), rng.choice(values)
        values.append(graph.call_function(torch.add, args))
        values[-1].meta["type"] = rng.choice([torch.Tensor, int, int])
    graph.output(values[-1])
    ends = sorted(rng.randrange(1, len(values) + 1) for _ in range(rng.randint(1, 2)))
    cuts = [1, *ends, len(values)]
    stretches = [values[a:b] for a, b in zip(cuts, cuts[1:])]
    parts = [subgraph_class(i % 2 == 0, nodes) for i, nodes in enumerate(stretches)]
    move(parts)
    return [{n.name for n in part.nodes} for part in parts]


def test_nodes_that_are_no_tensors_move(capsys):
    from torch.fx.passes.splitter_base import Subgraph

    class Part:
        def __init__(self, is_acc, nodes):
            self.is_acc, self.nodes = is_acc, nodes

    for seed in range(200):
        theirs = boundary(tfx, Subgraph, torch_tags.move_non_tensor_nodes_on_boundary, seed)
        ours = boundary(cfx, Part, cfx_tags.move_non_tensor_nodes_on_boundary, seed)
        assert theirs == ours, seed


def test_stages_are_called_as_the_module_was():
    def f(x, pair):
        return {"sum": torch.relu(x + pair[0]).neg(), "pair": (pair[1] * 2, x)}

    gm = cfx.symbolic_trace(f, concrete_args={"pair": (cfx.PH, cfx.PH)})
    x, y, z = torch.rand(3, 4)
    staged = cfx_split.split_stages(gm, 2)
    assert len(list(staged.named_children())) == 2
    assert cfx.check(f, staged, (x, (y, z)))
    assert staged(x, (y, z))["pair"][1] is x


PATHS = ["0", "0.weight", "1.0", "1.0.inplace", "1.2", "1.2.3", "space.x.y", "space.z", "none",
         "none.x", "training", "weight", ""]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_attributes_by_path_as_torch(path):
    model = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Sequential(torch.nn.ReLU()))
    model.space, model.none = types.SimpleNamespace(x=types.SimpleNamespace(y=3)), None
    assert cfx_tags.getattr_recursive(model, path) is torch_tags.getattr_recursive(model, path)
    for module in (torch_tags, cfx_tags):
        module.setattr_recursive(model, "space.x.y", 4)
        assert model.space.x.y == 4
        with pytest.raises(AttributeError):
            module.setattr_recursive(model, "space.nope.y", 4)


def test_inputs_of_the_whole_are_called_after_their_targets():
    found = []
    for fx, split in BOTH:
        g = fx.Graph()
        x, y = g.placeholder("x"), g.create_node("placeholder", "given", name="inner")
        g.output((g.call_function(torch.relu, (g.call_function(torch.add, (x, y)),)), y))
        whole = split(fx.GraphModule(torch.nn.Module(), g), None, lambda n: int(n.name == "relu"))
        found.append([whole.code, whole.submod_0.code, whole.submod_1.code])
    assert found[0] == found[1]
    assert "def forward(self, x, given):" in found[1][0] and "inner" not in found[1][0]
