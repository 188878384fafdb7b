"""FxGraphDrawer and GraphTransformObserver: what pictures show, and what a pass is seen to do."""
import copy
import inspect
import shutil
import subprocess

import pytest
from parity import growth

torch = pytest.importorskip("torch")
import torch.fx  # noqa: E402
from torch.fx.passes import graph_drawer as theirs  # noqa: E402
from torch.fx.passes import graph_transform_observer as their_observer  # noqa: E402

import cfx  # noqa: E402
from cfx.passes import graph_drawer as ours  # noqa: E402
from cfx.passes import graph_transform_observer as our_observer  # noqa: E402
from cfx.passes.shape_prop import ShapeProp  # noqa: E402


class Inner(torch.nn.Module):
    def forward(self, x):
        return x + 1


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = cfx.symbolic_trace(Inner())
        self.linear = torch.nn.Linear(3, 2)
        self.w = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        y = self.linear(self.inner(x)) + self.w
        return torch.sum(y, dim=0, keepdim=True), torch.split(y, 1)


class Leaves(cfx.Tracer):
    def is_leaf_module(self, m, module_qualified_name):
        return True


def model():
    root = Model()
    gm = cfx.GraphModule(root, Leaves().trace(root))
    ShapeProp(gm).propagate(torch.ones(2, 3))
    return gm


def test_signature():
    for mine, other in [(ours.FxGraphDrawer, theirs.FxGraphDrawer),
                        (our_observer.GraphTransformObserver,
                         their_observer.GraphTransformObserver)]:  # fmt: skip
        for name in ["__init__", *(n for n in vars(other) if n.startswith("get_"))]:
            a, b = (inspect.signature(getattr(c, name)).parameters.values() for c in (mine, other))
            assert [(p.name, p.default) for p in a] == [(p.name, p.default) for p in b]


def test_labels():
    text = ours.FxGraphDrawer(model(), "a model").dot()
    assert text.startswith('digraph "a model" {')
    linear = next(line for line in text.splitlines() if '"linear" [' in line)
    for part in ("call_module linear", "torch.nn.modules.linear.Linear", "in_features: 3",
                 "weight: torch.float32[2, 3]", "bias: torch.float32[2]",
                 "torch.float32[2, 2]"):  # fmt: skip
        assert part in linear
    assert "torch.sum|dim=0, keepdim=True|torch.float32[1, 2]}" in text
    assert "torch.float32[1, 2]\\ntorch.float32[1, 2]}" in text  # of the split
    assert '"w" -> "add";' in text and "%y" not in text


def test_options():
    def drawn(**options):
        return ours.FxGraphDrawer(model(), "m", **options).dot()

    assert '"w"' not in drawn(ignore_getattr=True)
    assert "weight: " not in drawn(ignore_parameters_and_buffers=True)
    assert "|%linear, %w|" in drawn(skip_node_names_in_args=False)
    assert "test_graph_drawer.py:" in drawn(parse_stack_trace=True)
    assert 'shape="box"' in drawn(dot_graph_shape="box")
    gm = model()
    before = str(gm.graph)
    assert "dim=0, keepdim=True, dtype=None" in ours.FxGraphDrawer(
        gm, "m", normalize_args=True).dot()  # fmt: skip
    assert str(gm.graph) == before


def test_submodules(monkeypatch):
    monkeypatch.setattr(ours, "HAS_PYDOT", False)
    drawer = ours.FxGraphDrawer(model(), "m")
    assert list(drawer.get_all_dot_graphs()) == ["m", "m_inner"]
    assert '"add" [' in drawer.get_submod_dot_graph("inner").to_string()
    assert drawer.get_dot_graph("inner").to_string() == drawer.dot("inner")
    assert drawer.get_main_dot_graph().to_string() == drawer.dot()
    with pytest.raises(KeyError):
        drawer.get_submod_dot_graph("linear")


def test_without_pydot(monkeypatch, tmp_path):
    monkeypatch.setattr(ours, "HAS_PYDOT", False)
    picture = ours.FxGraphDrawer(model(), "m").get_dot_graph()
    picture.write(tmp_path / "m.dot")
    assert (tmp_path / "m.dot").read_text() == picture.to_string()
    if shutil.which("dot"):
        picture.write_svg(tmp_path / "m.svg")
        assert b"<svg" in (tmp_path / "m.svg").read_bytes()
        with pytest.raises(subprocess.CalledProcessError):
            picture.write(tmp_path / "m.x", format="nonsense")


def test_with_pydot():
    pydot = pytest.importorskip("pydot")
    picture = ours.FxGraphDrawer(model(), "m").get_dot_graph()
    assert isinstance(picture, pydot.Dot)
    names = [n.get_name().strip('"') for n in picture.get_nodes()]
    assert {"x", "inner", "linear", "w", "add", "output"} <= set(names)
    assert len(picture.get_edges()) == 8


def test_meta_of_any_kind():
    gm = cfx.symbolic_trace(lambda x: x.relu())
    nested: list = []
    nested.append(nested)
    for value, shown in [("a str", False), (None, False), ({"k": [torch.ones(2)]}, True)]:
        for node in gm.graph.nodes:
            node.meta["val"] = value
        assert ("|torch.float32[2]}" in gm.graph._dot("g")) is shown
    next(iter(gm.graph.nodes)).meta["val"] = nested
    with pytest.raises(RecursionError):
        gm.graph._dot("g")

    class Loud:
        @property
        def dtype(self):
            raise ValueError("no dtype")

    next(iter(gm.graph.nodes)).meta["val"] = Loud()
    with pytest.raises(ValueError, match="no dtype"):
        gm.graph._dot("g")
    with pytest.raises(TypeError, match="highlights"):
        gm.graph._dot("g", None, None, ["x"])


def test_a_graph_without_its_module():
    graph = cfx.Graph()
    graph.output(graph.call_module("gone", (graph.placeholder("x"),)))
    assert "call_module gone" in graph._dot("g", torch.nn.Module())


# ---- GraphTransformObserver --------------------------------------------------------------------


def change(gm):
    graph = gm.graph
    relu = graph.find_nodes(op="call_function", target=torch.relu)
    with graph.inserting_before(relu[0]):
        inner = graph.call_function(torch.sigmoid, relu[0].args)
        new = graph.call_function(torch.neg, (inner,))
    for node in relu:
        node.replace_all_uses_with(new)
    graph.erase_node(relu[0])
    return "done"


def relus(fx):
    return fx.symbolic_trace(lambda x: torch.relu(torch.add(x, x)) + torch.relu(x))


def sources(gm):
    return [
        (n.name, [(s.name, s.pass_name, s._get_action_string(), len(s.from_node))
                  for s in n.meta.get("from_node", ())])
        for n in gm.graph.nodes
    ]  # fmt: skip


def observe(fx, observer, folder):
    gm = relus(fx)
    with observer(gm, "first", log_url=str(folder)) as seen:
        change(gm)
        twin = copy.deepcopy(gm)
        twin.graph.call_function(torch.tanh)
    log = [sorted(seen.created_nodes), sorted(seen.erased_nodes), sorted(seen.name_to_node)]
    log += [len(seen.copied_gms), gm._create_node_hooks, twin._create_node_hooks, sources(gm)]
    with observer(gm, "second", log_url=str(folder)):
        new = gm.graph.find_nodes(op="call_function", target=torch.neg)[0]
        with gm.graph.inserting_after(new):
            last = gm.graph.call_function(torch.exp, (new,))
        new.replace_all_uses_with(last, lambda user: user is not last)
    with observer(gm, "nothing", log_url=str(folder)):
        pass
    files = sorted(path.name.split("_", 2)[2] for path in folder.iterdir())
    return log + [sources(gm), files]


def test_observer(tmp_path):
    mine = observe(cfx, our_observer.GraphTransformObserver, tmp_path)
    assert mine[:4] == [["neg", "sigmoid", "tanh"], ["relu"], mine[2], 1]
    assert mine[4:6] == [[], []]
    assert dict(mine[6])["neg"] == [
        ("relu", "first", "replace+create", 0), ("relu_1", "first", "replace+create", 0),
    ]  # fmt: skip
    assert dict(mine[7])["exp"] == [("neg", "second", "replace+create", 2)]
    assert mine[8] == ["first_input_graph.dot", "first_output_graph.dot",
                       "second_input_graph.dot", "second_output_graph.dot"]  # fmt: skip
    count = our_observer.GraphTransformObserver.get_current_pass_count()
    before = (tmp_path / f"pass_{count - 2}_first_input_graph.dot").read_text()
    after = (tmp_path / f"pass_{count - 2}_first_output_graph.dot").read_text()
    assert 'torch.relu|%add}", fillcolor="yellow"' in before and "sigmoid" not in before
    assert 'torch.neg|%sigmoid}", fillcolor="yellow"' in after
    assert '"add" [label="{%add|call_function torch.add|%x, %x}", fillcolor="grey"]' in after


def test_observer_like_torch(tmp_path):
    pytest.importorskip("pydot")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    mine = observe(cfx, our_observer.GraphTransformObserver, tmp_path / "a")
    other = observe(torch.fx, their_observer.GraphTransformObserver, tmp_path / "b")
    assert mine == other


def test_observer_without_a_folder():
    for fx, observer in [(cfx, our_observer), (torch.fx, their_observer)]:
        cls = observer.GraphTransformObserver
        count, gm = cls.get_current_pass_count(), relus(fx)
        with cls(gm, "p") as seen:
            assert not seen.active and not gm._create_node_hooks
        assert cls(gm, "p").apply_gm_pass(change) == "done"
        assert cls(gm, "p").apply_graph_pass(lambda graph: len(graph.nodes)) == 7
        assert cls.get_current_pass_count() == count


def test_observer_of_a_pass_that_fails(tmp_path):
    gm = relus(cfx)
    observer = our_observer.GraphTransformObserver(gm, "p", log_url=str(tmp_path))
    with pytest.raises(ZeroDivisionError):
        observer.apply_gm_pass(lambda gm: 1 / 0)
    assert not gm._create_node_hooks and not list(tmp_path.iterdir())


def test_no_leaks():
    gm = model()

    def work():
        gm.graph._dot("g", gm, None, {"x"}, scopes=True, locations=True)
        with pytest.raises(TypeError):
            gm.graph._dot(3)

    assert growth(work, 3_000) < 1 << 20
