"""cfx in place of torch.fx in programs that were written for torch.fx: what they ask torch, the
names they import, objects of torch.fx where cfx's are expected and the other way round."""
import copy
import dataclasses
import functools
import math
import pickle
import subprocess
import sys
import threading
from math import sqrt

import pytest
import torch
import torch.fx
import torch.fx._symbolic_trace as theirs
from parity import same
from torch.fx._symbolic_trace import is_fx_symbolic_tracing, is_fx_tracing
from torch.fx.passes.shape_prop import ShapeProp

import cfx
import cfx._symbolic_trace as ours
from cfx.experimental import optimization
from cfx.passes.annotate_getitem_nodes import annotate_getitem_nodes
from cfx.passes.dialect.common.cse_pass import CSEPass
from cfx.passes.infra.partitioner import CapabilityBasedPartitioner
from cfx.passes.operator_support import OperatorSupport
from cfx.passes.split_module import split_module


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        self.scale = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.body(x) * self.scale + sqrt(x.size(0)) + math.sqrt(x.size(0))


def relu(x):
    return torch.relu(x)


def sigmoid(x):
    return torch.sigmoid(x)


X = torch.tensor([[1.0, -2.0], [3.0, 4.0]])


# ---- models that ask whether they are traced ----------------------------------------------------


def asks():
    return is_fx_tracing(), is_fx_symbolic_tracing(), theirs._is_fx_tracing_flag


def test_model_code_asks_torch():
    seen = []

    def f(x):
        seen.append((isinstance(x, torch.fx.Proxy), isinstance(x, cfx.Proxy), *asks()))
        seen.append(isinstance(x.shape, torch.fx.proxy.Attribute))
        seen.append(isinstance(x, (torch.Tensor, torch.fx.Node, torch.fx.proxy.Attribute)))
        return x + 1

    cfx.symbolic_trace(f)
    assert seen == [(True,) * 5, True, False]
    assert asks() == (False, False, False)
    assert "torch" in is_fx_tracing.__code__.co_filename  # nothing stays hooked


def test_the_flag_can_be_assigned():
    seen = []

    def f(x, module):
        module._is_fx_tracing_flag = False
        seen.append((*asks(), ours.is_fx_tracing(), ours._is_fx_tracing_flag))
        module._is_fx_tracing_flag = True
        seen.append((*asks(), ours.is_fx_tracing(), ours._is_fx_tracing_flag))
        module._is_fx_tracing_flag = False  # this trace only
        return x

    for module in (theirs, ours):
        cfx.symbolic_trace(lambda x: f(x, module))
    assert seen == [(False,) * 5, (True,) * 5] * 2
    ours._is_fx_tracing_flag = True  # a trace of one's own
    assert asks() == (True, True, True) or not is_fx_tracing()
    cfx.symbolic_trace(lambda x: x)
    assert ours.is_fx_tracing() and theirs._is_fx_tracing_flag
    ours._is_fx_tracing_flag = False
    assert not ours.is_fx_tracing()
    theirs._is_fx_tracing_flag = True
    assert is_fx_tracing() and not ours.is_fx_tracing()
    theirs._is_fx_tracing_flag = False
    assert not is_fx_tracing()


def test_other_threads_are_not_traced():
    seen = []

    def ask():
        seen.append((*asks(), ours.is_fx_tracing()))

    def f(x):
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        return x

    cfx.symbolic_trace(f)
    assert seen == [(False,) * 4]


def test_torch_fx_still_traces():
    seen = []

    def f(x):
        seen.append((isinstance(x, torch.fx.Proxy), isinstance(x, cfx.Proxy), *asks()))
        return x + 1

    torch.fx.symbolic_trace(f)
    assert seen == [(True, False, True, True, True)] and asks() == (False,) * 3


def test_torch_fx_inside_a_trace_knows_its_own_proxies():
    """To torch.fx's tracer a proxy of cfx is a stranger, not a node of its graph."""

    def f(x):
        torch.fx.symbolic_trace(lambda y: torch.add(y, x))
        return x

    with pytest.raises((NotImplementedError, RuntimeError, TypeError)):
        cfx.symbolic_trace(f)


class MyProxy(cfx.Proxy):
    pass


def test_classes_of_proxies():
    @functools.singledispatch
    def kind(x):
        return "other"

    kind.register(cfx.Proxy, lambda x: "proxy")
    proxy = cfx.Proxy(cfx.Graph().placeholder("x"))
    mine = MyProxy(proxy.node)
    assert kind(proxy) == kind(mine) == "proxy"
    assert isinstance(mine, MyProxy) and isinstance(mine, torch.fx.Proxy)
    assert not isinstance(proxy, MyProxy) and type(mine) is MyProxy
    assert type(mine).__name__ == mine.__class__.__name__ == "MyProxy"
    proxy = MyProxy(proxy.node)
    proxy.__class__ = MyProxy
    assert type(proxy) is MyProxy


def test_proxyable_classes_of_torch_fx():
    class Pair(metaclass=torch.fx.ProxyableClassMeta):
        def __init__(self, a, b):
            self.a, self.b = a, b

    gm = cfx.symbolic_trace(lambda x: Pair(x, 1).a)
    assert [n.target for n in gm.graph.nodes if n.op == "call_function"] == [Pair, getattr]


def test_compiled_modules_are_traced_through():
    model = torch.nn.Sequential(torch.compile(Net(), backend="eager"), torch.nn.ReLU())
    assert torch.equal(cfx.symbolic_trace(model)(X), model(X))


def test_proxies_without_torch():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import cfx.graph, cfx.node, cfx.proxy\n"
        "p = cfx.proxy.Proxy(cfx.Graph().placeholder('x'))\n"
        "assert p.__class__ is cfx.proxy.Proxy and not isinstance(p, int)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---- tracers of one's own -----------------------------------------------------------------------


def own_tracer(fx):
    """A Tracer that arranges everything itself, as libraries have them."""
    trace = fx._symbolic_trace

    class Own(fx.Tracer):
        def trace(self, root, concrete_args=None):
            self.root = root
            self.graph = fx.Graph(tracer_cls=type(self))
            self.submodule_paths = {module: path for path, module in root.named_modules()}
            self.tensor_attrs = {}
            fn, args = self.create_args_for_root(type(root).forward, True, concrete_args)
            cache = {}

            def getattr_(module, name):
                return self.getattr(name, trace._orig_module_getattr(module, name), cache)

            def call(module, *args, **kwargs):
                def forward(*args, **kwargs):
                    return trace._orig_module_call(module, *args, **kwargs)

                scope = getattr(getattr(module, "forward", module), "__globals__", {})
                trace._autowrap_check(patcher, scope, self._autowrap_function_ids)
                return self.call_module(module, forward, args, kwargs)

            with trace._Patcher() as patcher:
                nn_module = torch.nn.Module
                patcher.patch_method(nn_module, "__getattr__", getattr_, deduplicate=False)
                patcher.patch_method(nn_module, "__call__", call, deduplicate=False)
                trace._patch_wrapped_functions(patcher)
                trace._autowrap_check(patcher, fn.__globals__, self._autowrap_function_ids)
                for module in self._autowrap_search:
                    trace._autowrap_check(patcher, vars(module), self._autowrap_function_ids)
                result = self.create_arg(fn(*args))
                self.create_node("output", "output", (result,), {})
            self.submodule_paths = None
            return self.graph

    return Own()


@same
def test_a_trace_of_ones_own(fx, show):
    before = torch.nn.Module.__call__, torch.nn.Module.__getattr__, sqrt, math.sqrt
    net = Net()
    graph = own_tracer(fx).trace(net)
    gm = fx.GraphModule(net, graph)
    show(gm.code, graph._tracer_cls.__name__, torch.equal(gm(X), net(X)))
    after = torch.nn.Module.__call__, torch.nn.Module.__getattr__, sqrt, math.sqrt
    show([a is b for a, b in zip(before, after)])


@same
def test_patcher(fx, show):
    patcher_class = fx._symbolic_trace._Patcher
    scope = {"f": len, "g": abs}

    class C:
        def m(self):
            return 1

    def new(*args):
        return "new"

    with patcher_class() as patcher:
        patcher.patch(scope, "f", new)
        patcher.patch(scope, "sum", new, deduplicate=False)  # a builtin
        patcher.patch_method(C, "m", lambda self: 2)
        show(scope["f"](1), scope["sum"](1), C().m(), len(patcher.patches_made))
        show(patcher.visit_once(scope), patcher.visit_once(scope))
        patcher.revert_all_patches()
        show(scope["f"] is len, "sum" in scope, C().m())
        patcher.reapply_all_patches()
        show(scope["f"](1), "sum" in scope, C().m())
    show(scope["f"] is len, "sum" in scope, C().m(), sorted(scope))
    with patcher_class() as patcher:
        show(lambda: patcher.patch(scope, "missing", new))
        show(lambda: patcher.patch_method(C, "missing", new))
        patcher.patch(scope, "f", new)
        patcher.patch(scope, "f", lambda *args: "newer")
        show(scope["f"](1))
    show(scope["f"] is len)

    scope = {"h": math.floor, "_hidden": math.floor, "k": 5}
    with patcher_class() as patcher:
        fx._symbolic_trace._autowrap_check(patcher, scope, {id(math.floor)})
        show(scope["h"] is math.floor, scope["_hidden"] is math.floor, scope["h"](1.5))
        proxy = fx.Proxy(fx.Graph().placeholder("x"))
        made = scope["h"](proxy)
        show(made.node.op, made.node.target is math.floor, made.node.meta)
    show(scope["h"] is math.floor)


@same
def test_iter_that_returns_a_proxy(fx, show):
    class Iterator(fx.Proxy):
        def __next__(self):
            calls.append("next")
            if len(calls) > 3:
                raise StopIteration
            return self[len(calls)]

    class Tracer(fx.Tracer):
        def iter(self, obj):
            calls.append("iter")
            return Iterator(obj.node, self)

    calls = []

    def f(x):
        return [item + 1 for item in x]

    graph = Tracer().trace(f)
    show(calls, str(graph))

    class Bad(fx.Tracer):
        def iter(self, obj):
            return obj

    show.error(lambda: Bad().trace(f))


# ---- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "_symbolic_trace._Patcher", "_symbolic_trace._autowrap_check",
        "_symbolic_trace._orig_module_call", "_symbolic_trace._orig_module_getattr",
        "_symbolic_trace._patch_wrapped_functions", "_symbolic_trace._is_fx_tracing_flag",
        "_symbolic_trace._create_wrapped_func", "_symbolic_trace._create_wrapped_method",
        "_symbolic_trace._new_patcher", "_symbolic_trace._maybe_revert_all_patches",
        "_symbolic_trace._find_proxy", "_symbolic_trace._assert_is_none",
        "_symbolic_trace.Graph", "_symbolic_trace.GraphModule", "_symbolic_trace.Proxy",
        "_symbolic_trace.Scope", "_symbolic_trace.ScopeContextManager",
        "_symbolic_trace.ParameterProxy", "_symbolic_trace.TracerBase",
        "_symbolic_trace.map_aggregate", "_symbolic_trace.base_types",
        "_symbolic_trace.pytree", "_symbolic_trace.torch", "_symbolic_trace.inspect",
        "_symbolic_trace.builtins", "_symbolic_trace.math", "_symbolic_trace.functools",
        "_symbolic_trace.collections", "_symbolic_trace.contextlib", "_symbolic_trace.copy",
        "_symbolic_trace.os", "_symbolic_trace.warnings", "graph.map_arg",
        "config.disable_progress", "config.verbose_progress",
    ],
)  # fmt: skip
def test_names_that_libraries_use(name):
    found = cfx
    for part in name.split("."):
        found = getattr(found, part)
    wanted = torch.fx
    for part in name.split("."):
        wanted = getattr(wanted, part)
    assert callable(found) == callable(wanted)


# ---- objects of torch.fx ------------------------------------------------------------------------


def lazy(model):
    """As torch.compile makes them: the code is written when the module is first called."""
    with torch.fx._lazy_graph_module._use_lazy_graph_module(True):
        gm = torch.fx.symbolic_trace(model)
    assert type(gm)._needs_recompile()
    return gm


def test_modules_of_torch_compile():
    seen = []

    def backend(gm, inputs):
        seen.append(cfx.symbolic_trace(gm))
        return gm

    net = Net()
    torch.compile(net, backend=backend)(X)
    assert "linear" in seen[0].code
    for gm in (lazy(net), torch.nn.Sequential(lazy(net))):
        traced = cfx.symbolic_trace(gm)
        assert torch.equal(traced(X), net(X))
        assert "body_0" in traced.code and "lazy" not in traced.code


def test_graphs_of_torch_fx_where_cfx_reads():
    net = Net()
    gm = torch.fx.symbolic_trace(net)
    made = cfx.GraphModule(gm, gm.graph)
    assert made.code.replace("cfx.", "torch.fx.") == gm.code and torch.equal(made(X), net(X))
    made.graph = torch.fx.symbolic_trace(relu).graph
    assert torch.equal(made(X), X.relu())
    graph, values = cfx.Graph(), {}
    result, output = graph.graph_copy(gm.graph, values, return_output_node=True)
    assert output.op == "output" and result is values[output.args[0]]
    graph.output(result)
    assert str(graph) == str(gm.graph) and set(values) == set(gm.graph.nodes) - {output}
    given = cfx.Graph()
    y = given.placeholder("y")
    first = next(iter(gm.graph.nodes))
    given.output(given.graph_copy(gm.graph, {first: y}))
    assert "body_0(y)" in given.python_code("self").src.replace('getattr(self.body, "0")', "body_0")
    copied, nodes = cfx.Graph(), {}
    for node in gm.graph.nodes:
        nodes[node] = copied.node_copy(node, nodes.__getitem__)
    assert str(copied) == str(gm.graph)
    assert cfx.Interpreter(gm).run(X).equal(net(X))
    assert cfx.text(gm.graph) and cfx.equal(gm.graph, gm.graph)


def test_a_copy_of_a_torch_graph_that_fails_leaves_nothing():
    gm = torch.fx.symbolic_trace(Net())
    last = list(gm.graph.nodes)[-2]
    graph, values = cfx.Graph(), {}
    broken = torch.fx.Graph()
    x = broken.placeholder("x")
    broken.call_function(torch.relu, (x,))
    broken.output(last)  # of another graph
    with pytest.raises(KeyError):
        graph.graph_copy(broken, values)
    assert len(graph.nodes) == 0 and values == {}
    with pytest.raises(TypeError, match="arg_transform"):
        graph.node_copy(last)


class Everything(OperatorSupport):
    def is_node_supported(self, submodules, node):
        return node.op.startswith("call_")


def test_the_partitioner_takes_modules_of_torch_fx():
    net = Net()
    gm = torch.fx.symbolic_trace(net)
    fused = CapabilityBasedPartitioner(gm, Everything()).partition_and_fuse()
    assert isinstance(fused, cfx.GraphModule) and torch.equal(fused(X), net(X))
    assert "fused_0" in fused.code and "fused_0" not in gm.code


def test_edits_in_place_refuse_graphs_of_torch_fx():
    gm = torch.fx.symbolic_trace(Net())
    for edit in (
        lambda: cfx.replace_pattern(gm, relu, sigmoid),
        lambda: cfx.passes.run(gm, "dce"),
        lambda: annotate_getitem_nodes(gm.graph),
        lambda: cfx.Graph().output(next(iter(gm.graph.nodes))),
    ):
        with pytest.raises(TypeError, match="from_torch"):
            edit()


@pytest.mark.parametrize(
    "use",
    [
        lambda gm: torch.fx.Interpreter(gm).run(X),
        lambda gm: torch.fx.Transformer(gm).transform(),
        lambda gm: ShapeProp(gm).propagate(X),
        lambda gm: torch.fx.Graph().graph_copy(gm.graph, {}),
        lambda gm: torch.fx.replace_pattern(gm, relu, sigmoid),
        lambda gm: torch.fx.passes.split_module.split_module(gm, gm, lambda node: 0),
    ],
)
def test_torch_fx_refuses_graphs_of_cfx(use):
    gm = cfx.symbolic_trace(Net())
    with pytest.raises(TypeError, match="to_torch"):
        use(gm)
    with pytest.raises(TypeError, match="to_torch"):  # nothing to stumble over
        use(cfx.symbolic_trace(lambda x: x))
    use(cfx.interop.to_torch(gm))


def test_export_unflatten_and_pipelines():
    net = Net()
    gm = cfx.symbolic_trace(net)
    program = torch.export.export(gm, (X,))
    assert torch.equal(program.module()(X), net(X))
    assert torch.equal(torch.export.unflatten(program)(X), net(X))
    pipelining = pytest.importorskip("torch.distributed.pipelining")
    split = {"body.1": pipelining.SplitPoint.BEGINNING}
    pipe = pipelining.pipeline(gm, (X,), split_spec=split)
    assert pipe.num_stages == 2 and torch.equal(pipe(X)[0] if isinstance(pipe(X), tuple)
                                                else pipe(X), net(X))


# ---- metadata -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Shared:  # as the quantizers of torchao have them
    edge: object


@dataclasses.dataclass
class Annotation:
    input_qspec_map: dict = dataclasses.field(default_factory=dict)
    output_qspec: object = None


class Conv(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 3, 1)
        self.norm = torch.nn.BatchNorm2d(3)
        self.drop = torch.nn.Dropout()

    def forward(self, x):
        y = self.drop(torch.relu(self.norm(self.conv(x))))
        a = torch.reshape(torch.reshape(y, (1, -1)), (-1,))
        b = torch.reshape(torch.reshape(y, (1, -1)), (-1,))
        return a + b * 1 + torch.neg(torch.ones(2)).sum()


def annotated(gm):
    for node in gm.graph.nodes:
        node.meta.update(
            source_fn_stack=[(node.name, torch.relu)], nn_module_stack={"L": ("conv", "Conv2d")},
            torch_fn=("relu_1", "function.relu"), custom={"k": [1]}, partition_tag="a",
            stack_trace=f"File {node.name}", from_node=[node.name],
        )  # fmt: skip
        inputs = {n: Shared((n, node)) for n in node.all_input_nodes}
        node.meta["quantization_annotation"] = Annotation(inputs, Shared(node))
        node.tag = f"tag of {node.name}"
    return gm


def check_annotation(graph, original=None):
    """What `annotated` has put on nodes is on those of the same names, and names nodes of
    `original`, or of the graph itself."""
    count = 0
    for node in graph.nodes:
        meta = node.meta
        if "custom" not in meta:
            continue
        name = meta["from_node"][0]
        count += 1
        assert meta["source_fn_stack"] == [(name, torch.relu)] and meta["partition_tag"] == "a"
        assert meta["nn_module_stack"] == {"L": ("conv", "Conv2d")}
        assert meta["torch_fn"] == ("relu_1", "function.relu") and meta["custom"] == {"k": [1]}
        assert node.stack_trace == f"File {name}"
        note = meta["quantization_annotation"]
        if original is None:
            assert note.output_qspec.edge is node
            inputs = {n: Shared((n, node)) for n in node.all_input_nodes}
            assert note.input_qspec_map == inputs
        else:
            assert note.output_qspec.edge.name == name
    return count


def test_metadata_survives_conversion():
    gm = annotated(cfx.symbolic_trace(Conv().eval()))
    there = cfx.interop.to_torch(gm)
    back = cfx.interop.from_torch(there)
    for made, node_class in ((there, torch.fx.Node), (back, cfx.Node), (gm, cfx.Node)):
        assert check_annotation(made.graph) == len(gm.graph.nodes)
        for node in made.graph.nodes:
            assert node.tag == f"tag of {node.name}" and type(node) is node_class
    for a, b in zip(gm.graph.nodes, back.graph.nodes):
        assert a.meta["custom"] is b.meta["custom"]  # what mentions no node is the same object


@pytest.mark.parametrize("name", [row.name for row in cfx.passes.table()])
def test_metadata_survives_passes(name):
    gm = annotated(cfx.symbolic_trace(Conv().eval()))
    before = {node.name: (node, dict(node.meta)) for node in gm.graph.nodes}
    cfx.passes.run(gm, name)
    kept = [node for node in gm.graph.nodes if node.name in before]
    assert len(kept) > 4
    for node in kept:
        old, meta = before[node.name]
        assert all(node.meta[key] is value for key, value in meta.items()), node
        assert old is not node or node.tag == f"tag of {node.name}"


def test_metadata_survives_copies():
    gm = annotated(cfx.symbolic_trace(Conv().eval()))
    n = len(gm.graph.nodes)
    assert check_annotation(copy.deepcopy(gm).graph, gm.graph) == n
    assert check_annotation(pickle.loads(pickle.dumps(gm)).graph, gm.graph) == n
    assert check_annotation(CSEPass()(gm).graph_module.graph, gm.graph) > 4
    assert check_annotation(optimization.fuse(gm, no_trace=True).graph, gm.graph) > 4
    graph = cfx.Graph()
    graph.graph_copy(gm.graph, {})
    assert check_annotation(graph, gm.graph) == n - 1
    first = {node.name for node in list(gm.graph.nodes)[: n // 2]}
    parts = split_module(gm, gm, lambda node: int(node.name not in first))
    found = sum(check_annotation(part.graph, gm.graph) for part in parts.children()
                if isinstance(part, cfx.GraphModule))  # fmt: skip
    assert found >= n - 2
    cfx.replace_pattern(gm, relu, sigmoid, carry_meta=True)
    assert check_annotation(gm.graph, gm.graph) == n


def test_settings_of_symbolic_sizes_are_torchs():
    """As nequip sets them around make_fx."""
    import torch.fx.experimental._config as settings

    def shapes(duck):
        cfx.experimental._config.use_duck_shape = duck
        assert settings.use_duck_shape is cfx.experimental._config.use_duck_shape is duck
        make_fx = cfx.experimental.proxy_tensor.make_fx
        apart = make_fx(lambda a, b: (a + 1, b + 1), tracing_mode="symbolic")
        gm = apart(torch.ones(3), torch.ones(3))
        return {str(n.meta["val"].shape) for n in gm.graph.find_nodes(op="placeholder")}

    with settings.patch(use_duck_shape=True):
        assert len(shapes(True)) == 1 and len(shapes(False)) == 2


# What `import torch` loads of torch.fx and cfx has nothing for: docs/compatibility.md.
NOT_HERE = ("_utils", "tensor_type", "experimental.unification", "experimental._backward_state",
            "experimental._constant_symnode", "passes.regional_inductor", "passes.runtime_assert")


def test_modules_that_nobody_imported():
    """`import torch` loads most of torch.fx, so clients name its modules without an import."""
    program = """if True:
        import sys, torch, cfx
        names = [n[9:] for n in sys.modules if n.startswith("torch.fx.")]
        for name in names:
            module = cfx
            try:
                for part in name.split("."):
                    module = getattr(module, part)
                assert "cfx." + name in sys.modules
            except AttributeError:
                print(name)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    missing = [name for name in done.stdout.split() if not name.startswith(NOT_HERE)]
    assert not missing
    for package in (cfx.experimental, cfx.passes, cfx.passes.infra, cfx.passes.dialect.common):
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            package.nothing
        assert all(hasattr(package, name) for name in dir(package))


@pytest.mark.parametrize("how", ["attribute", "set_codegen"])
def test_code_generator_of_torch(how):
    """As torchpippy does: the first stage takes what the exported module takes."""
    theirs_gm = torch.fx.symbolic_trace(
        lambda x: x["k"] + x["v"], concrete_args={"x": {"k": torch.fx.PH, "v": torch.fx.PH}})
    assert type(theirs_gm.graph._codegen) is torch.fx.graph._PyTreeCodeGen
    gm = cfx.symbolic_trace(lambda a, b: a + b)
    codegen = copy.deepcopy(theirs_gm.graph._codegen)
    if how == "attribute":
        gm.graph._codegen = codegen
    else:
        gm.graph.set_codegen(codegen)
    assert type(gm.graph._codegen) is cfx.graph._PyTreeCodeGen
    gm.graph._codegen.pytree_info = gm.graph._codegen.pytree_info._replace(out_spec=None)
    gm.recompile()
    assert torch.equal(gm({"k": X, "v": X}), X + X)
    assert torch.equal(copy.deepcopy(gm)({"k": X, "v": X}), X + X)
