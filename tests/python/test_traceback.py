"""cfx.traceback and cfx.annotate: what nodes inherit, and where they come from."""
import importlib
import json
import operator
import re
import threading

import cfx.annotate
import cfx.traceback
import pytest
from parity import same

torch = pytest.importorskip("torch")
import torch.fx  # noqa: E402
import torch.fx.annotate  # noqa: E402
import torch.fx.traceback  # noqa: E402

# A number of autograd's own counts what this process has done before.
VOLATILE = re.compile(r"graph_id'?[=:] ?\d+|'seq_nr': -?\d+")


def plain(value):
    return VOLATILE.sub("...", str(value))


def modules(fx):
    """traceback and proxy of a library."""
    return [importlib.import_module(f"{fx.__name__}.{name}") for name in ("traceback", "proxy")]


def two_nodes(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(operator.neg, (x,))
    y.meta.update(stack_trace="here", foo=[1])
    return x, y


# ---- the current metadata ---------------------------------------------------------------------


@same
def test_preserving(fx, show):
    t, _ = modules(fx)
    show(t.has_preserved_node_meta(), t.should_preserve_node_meta, t.current_meta)
    show(t.get_current_meta() is t.current_meta)
    with t.preserve_node_meta():
        show(t.has_preserved_node_meta(), t.should_preserve_node_meta, t.current_meta)
        t.current_meta["a"] = 1
        outer = t.current_meta
        with t.preserve_node_meta(False):
            show(t.has_preserved_node_meta(), t.current_meta, t.current_meta is outer)
            t.current_meta["b"] = 2
        show(t.has_preserved_node_meta(), t.current_meta)
        show.error(lambda: fail_inside(t.preserve_node_meta()))
        show(t.has_preserved_node_meta(), t.current_meta)
    show(t.has_preserved_node_meta(), t.current_meta)
    show.error(lambda: t.nothing_like_that)


def fail_inside(context):
    with context:
        raise ZeroDivisionError


@same
def test_set_current_meta(fx, show):
    t, _ = modules(fx)
    x, y = two_nodes(fx)
    with t.set_current_meta(y):
        show(t.current_meta)
    with t.preserve_node_meta():
        t.current_meta["kept"] = 1
        with t.set_current_meta(y, "a pass"):
            show(plain(t.current_meta), t.current_meta["foo"] is y.meta["foo"])
            t.current_meta["new"] = 2
            with t.set_current_meta(x, "no metadata"):
                show(plain(t.current_meta))
        show(t.current_meta, list(y.meta))
        show.error(lambda: fail_inside(t.set_current_meta(y)))
        show(t.current_meta)
        y.meta["from_node"] = [t.NodeSource(x, "first")]
        with t.set_current_meta(y, "second"):
            show(plain(t.current_meta["from_node"]))


@same
def test_stack_trace(fx, show):
    t, _ = modules(fx)
    t.set_stack_trace(["a", "b"])
    show(t.current_meta)
    with t.preserve_node_meta():
        show(t.format_stack())
        for stack in (["a\n", "b"], [], ["c"]):
            t.set_stack_trace(stack)
            show(t.current_meta, t.format_stack())
    show(t.format_stack()[-1].split(", in")[1])


@same
def test_sequence_numbers(fx, show):
    t, _ = modules(fx)
    t.set_grad_fn_seq_nr(1)
    t.reset_grad_fn_seq_nr()
    show(t.current_meta)
    with t.preserve_node_meta():
        for number in (3, 4):
            t.set_grad_fn_seq_nr(number)
            show(t.current_meta)
        for _ in range(2):
            t.reset_grad_fn_seq_nr()
            show(t.current_meta)
        show(lambda: t.reset_grad_fn_seq_nr())
    show(t._is_preserving_node_seq_nr())
    with t._preserve_node_seq_nr():
        show(t._is_preserving_node_seq_nr())
        with t._preserve_node_seq_nr(False):
            show(t._is_preserving_node_seq_nr())


@same
def test_annotations(fx, show):
    t, _ = modules(fx)
    for context in (t.preserve_node_meta(False), t.preserve_node_meta()):
        with context, t.annotate({"a": 1}):
            show(t.current_meta)
            with t.annotate({"b": 2, "a": 3}):
                show(t.current_meta)
            show(t.current_meta)
    show(t.current_meta)

    @t.annotate_fn({"s": 1})
    def function(a, b=2):
        "what it does"
        return a, b, dict(t.current_meta)

    with t.annotate({"outer": 0}):
        show(function(1), function(1, b=3), function.__name__, function.__doc__)
    show(function(1))


def test_annotations_leave_the_node_alone():
    """torch.fx writes into the metadata of the node that is current."""
    x, y = two_nodes(cfx)
    y.meta["custom"] = {"mine": 1}
    with cfx.traceback.preserve_node_meta(), cfx.traceback.set_current_meta(y):
        with cfx.traceback.annotate({"other": 2}):
            assert cfx.traceback.current_meta["custom"] == {"mine": 1, "other": 2}
    assert y.meta["custom"] == {"mine": 1}


@same
def test_backward_and_replay(fx, show):
    t, _ = modules(fx)
    x, y = two_nodes(fx)
    t._mark_autograd_backward()
    show(t.current_meta)
    t._reset_autograd_backward()
    t._reset_autograd_backward()
    for outer in (True, False):
        with t._set_autograd_backward(outer):
            with t._set_autograd_backward(not outer):
                show(t.current_meta)
            show(t.current_meta)
    show(t.current_meta, t.get_current_replay_node())
    with t.set_current_replay_node(y):
        show(t.get_current_replay_node() is y, t.current_replay_node is y)
    show(t.get_current_replay_node())


# ---- what new nodes get -----------------------------------------------------------------------

FULL = {
    "stack_trace": "here", "foo": 1, "seq_nr": 9, "val": 3, "tensor_meta": 4,
    "nn_module_stack": {"a": ("b", "c")}, "torch_fn": ("t", "u"), "source_fn_stack": [("s", int)],
    "original_aten": torch.ops.aten.add.Tensor, "recompute": 1, "ac_graph_id": 2,
    "has_backward_hook": True, "from_node": [3], "quantization_tag": {"q"}, "custom": {"c": [1]},
    "_numeric_debug_handle": 5, "partitioner_tag": "p", "autograd_backward": True,
}  # fmt: skip


def made_with(fx, meta, preserve=True, op="call_function", target=operator.neg):
    """The node that a tracer makes while `meta` is current."""
    t, proxy = modules(fx)
    tracer = proxy.GraphAppendingTracer(fx.Graph())
    with t.preserve_node_meta(preserve):
        t.current_meta.update(meta)
        return tracer.create_node(op, target, (), {})


@same
def test_new_nodes(fx, show):
    t, proxy = modules(fx)
    for meta in ({}, FULL, {"stack_trace": ""}, {"stack_trace": None}, {"custom": {"a": 1}}):
        show(plain(made_with(fx, meta).meta), made_with(fx, meta, preserve=False).meta)
    for op, target in (("placeholder", "x"), ("get_attr", "a.b"), ("output", "output")):
        show(plain(made_with(fx, {"custom": {"a": 1}}, op=op, target=target).meta))
    acc = t.GRADIENT_ACC_SPECIAL_STACK
    show(acc, plain(made_with(fx, {"stack_trace": f"{acc} x.py:1"}).meta))
    meta = made_with(fx, FULL).meta
    show({key: value is FULL.get(key) for key, value in meta.items() if key != "seq_nr"})
    with t.preserve_node_meta():
        t.current_meta.update(FULL)
        show(fx.Graph().call_function(operator.neg).meta)  # not by a tracer


@same
def test_sequence_numbers_of_new_nodes(fx, show):
    t, _ = modules(fx)
    cases = [{}, {"seq_nr": 9}, {"in_grad_fn": 1, "grad_fn_seq_nr": [5, 6]}]
    cases += [{"seq_nr": 9, "in_grad_fn": 0, "grad_fn_seq_nr": [5]}]
    with t._preserve_node_seq_nr():
        for case in cases:
            show(made_with(fx, case).meta)
    show(made_with(fx, cases[2]).meta)
    before = made_with(fx, {}).meta["seq_nr"]
    x = torch.ones(2, requires_grad=True)
    y = x * 2 + 1
    show([made_with(fx, case).meta["seq_nr"] - before for case in (cases[0], cases[3])])
    del y


@same
def test_replayed_nodes(fx, show):
    t, _ = modules(fx)
    _, old = two_nodes(fx)
    for meta in ({"x": 1}, {**FULL, "stack_trace": "old", "seq_nr": 5}, {"stack_trace": ""}):
        old.meta = meta
        with t.set_current_replay_node(old):
            show(plain(made_with(fx, {}).meta), plain(made_with(fx, FULL).meta))
            show(made_with(fx, FULL, preserve=False).meta)


def test_the_hook_is_there_only_while_it_is_needed():
    """Tracing pays for metadata only while some thread preserves it; others are left alone."""
    inside, done = threading.Event(), threading.Event()

    def other():
        with cfx.traceback.preserve_node_meta():
            cfx.traceback.current_meta["custom"] = {"thread": 1}
            inside.set()
            done.wait()

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait()
    try:
        assert cfx.traceback.current_meta == {} and not cfx.traceback.has_preserved_node_meta()
        assert made_with(cfx, FULL, preserve=False).meta == {}
        assert "thread" not in made_with(cfx, {}).meta.get("custom", {})
        with cfx.traceback.annotate({"a": 1}), cfx.traceback.set_current_replay_node(None):
            assert cfx.traceback.current_meta == {"custom": {"a": 1}}
    finally:
        done.set()
        thread.join()


def test_bad_state():
    with pytest.raises(TypeError, match="expected a Node"):
        with cfx.traceback.set_current_meta(3):
            pass
    with cfx.traceback.preserve_node_meta(), cfx.traceback.set_current_replay_node(3):
        with pytest.raises(AttributeError):
            made_with(cfx, {})
    with pytest.raises(KeyError, match="grad_fn_seq_nr"):
        made_with(cfx, {"in_grad_fn": 1})


# ---- where nodes come from --------------------------------------------------------------------


def sources(t, graph_nodes):
    x, y = graph_nodes
    create, replace = t.NodeSourceAction.CREATE, t.NodeSourceAction.REPLACE
    first = t.NodeSource(x, "first", create)
    y.meta["from_node"] = [first, t.NodeSource(None, "second", [replace, create])]
    return [first, t.NodeSource(y, "third", replace), t.NodeSource(None), t.NodeSource(x)]


@same
def test_sources(fx, show):
    t, _ = modules(fx)
    nodes = two_nodes(fx)
    for source in sources(t, nodes):
        show(plain(repr(source)), plain(source.print_readable(1)), plain(source.to_dict()))
        show(source.name, source.target, source.pass_name, source._get_action_string())
        show(source.graph_id in (id(nodes[0].graph), -1), [str(a) for a in source.action])
        copied = t.NodeSource._from_dict(source.to_dict())
        show(copied == source, hash(copied) == hash(source), copied.to_dict() == source.to_dict())
        show(source == 3, source != copied, copied.action == source.action)
    show(lambda: t.NodeSource(nodes[0], "p", "create"))
    show(t.NodeSource._from_dict(None))
    partial = {"name": "a", "target": "t", "graph_id": 3}
    for d in ({}, {"name": "a"}, partial, {**partial, "action": "nope+create"}):
        show(t.NodeSource._from_dict(d).to_dict())


@same
def test_provenance(fx, show):
    t, _ = modules(fx)
    x, y = two_nodes(fx)
    sources(t, (x, y))
    show(t.get_graph_provenance_json(fx.Graph()))
    graph = x.graph
    graph.call_function(operator.pos, (y,))
    graph.call_method("neg", (y,))
    show(plain(json.dumps(t.get_graph_provenance_json(graph)).replace('"', "'")))


@same
def test_groups(fx, show):
    t, _ = modules(fx)
    x, y = two_nodes(fx)
    graph = x.graph
    for node, number in ((y, 7), (graph.call_function(abs, (x,)), 7), (x, 1)):
        node.meta["seq_nr"] = number
    graph.call_function(operator.pos, (x,)).meta["seq_nr"] = 2
    graph.call_function(operator.pos, (x,))
    root = torch.nn.Module()
    root.graph = graph
    show(t._get_ordered_seq_nr_groups([root]), t._get_ordered_seq_nr_groups([root, root]))


# ---- the interpreter --------------------------------------------------------------------------


@same
def test_interpreter(fx, show):
    t, _ = modules(fx)
    seen = []

    def look(x):
        seen.append(plain(t.current_meta))
        return x

    class Own(fx.Interpreter):
        def run_node(self, n):
            return super().run_node(n)

    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(look, (graph.call_function(look, (x,)),))
    y.meta["a"] = 1
    graph.output(y)
    for class_ in (fx.Interpreter, Own):
        interpreter = class_(torch.nn.Module(), graph=graph)
        for preserve in (False, True):
            with t.preserve_node_meta(preserve):
                interpreter.run(1)
                show(t.current_meta)
    with t.preserve_node_meta():
        y.target = operator.truediv
        show.error(lambda: interpreter.run(1))
        show(t.current_meta)
    show(*seen)


# ---- annotate ---------------------------------------------------------------------------------


@same
def test_annotate(fx, show):
    annotate = importlib.import_module(f"{fx.__name__}.annotate").annotate
    x, _ = two_nodes(fx)
    proxy = modules(fx)[1].Proxy(x)
    show(annotate(3, int), annotate(proxy, int) is proxy, x.type)
    show.error(lambda: annotate(proxy, float), lambda: annotate(proxy, int))
    show(x.type)
    with pytest.raises(RuntimeError, match="already had a type on it! Existing type is"):
        annotate(proxy, float)
