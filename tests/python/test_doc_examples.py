"""What torch.fx's documentation teaches, in programs of our own: each runs with `fx` as torch.fx
and as cfx, and gives the same code and the same numbers."""
import copy
import operator
import time

import pytest
from parity import same

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

F = nn.functional


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[0.5, -1.0], [2.0, 0.25]]))
        self.linear = nn.Linear(2, 3)
        for p in self.linear.parameters():
            nn.init.constant_(p, 0.5)

    def forward(self, x, y=2.0):
        x = F.relu(x + self.weight)
        return torch.add(self.linear(x), y).clamp(min=0.0, max=9.0)


X = torch.tensor([[1.0, -2.0], [0.5, 3.0]])


def show_module(show, gm, *inputs):
    gm.graph.lint()
    show(str(gm.graph), gm.code, lambda: str(gm(*inputs)))


# ---- replacing operations -----------------------------------------------------------------------


@same
def test_one_function_for_another(fx, show):
    gm = fx.symbolic_trace(Small())
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target == torch.add:
            node.target = torch.mul
    show_module(show, gm, X)  # the code is not written anew yet
    gm.recompile()
    show_module(show, gm, X)


@same
def test_a_new_node_takes_over(fx, show):
    gm = fx.symbolic_trace(Small())
    for node in list(gm.graph.nodes):
        if any(node.target == target for target in (operator.add, torch.add, "add")):
            with gm.graph.inserting_after(node):
                new = gm.graph.call_function(torch.bitwise_and, node.args, node.kwargs)
                node.replace_all_uses_with(new)
            gm.graph.erase_node(node)
    gm.recompile()
    show(str(gm.graph), gm.code, lambda: str(gm(X)))


@same
def test_activations_become_another_module(fx, show):
    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(), nn.ReLU()))
    nn.init.ones_(gm.get_parameter("0.weight"))
    modules = dict(gm.named_modules())
    for node in gm.graph.nodes:
        if node.op == "call_module" and isinstance(modules[node.target], nn.ReLU):
            gm.add_submodule(f"act_{node.name}", nn.LeakyReLU(0.5))
            with gm.graph.inserting_before(node):
                new = gm.graph.call_module(f"act_{node.name}", node.args)
            node.replace_all_uses_with(new)
            gm.graph.erase_node(node)
    gm.delete_all_unused_submodules()
    gm.recompile()
    show_module(show, gm, X)
    show([name for name, _ in gm.named_modules()])


# ---- decomposing by tracing again ---------------------------------------------------------------


def relu_of_products(x, inplace=False):
    return (x > 0) * x


DECOMPOSE = {F.relu: relu_of_products, torch.add: lambda a, b: a - (-b)}


@same
def test_proxies_decompose_operations(fx, show):
    traced = fx.symbolic_trace(Small())
    graph = fx.Graph()
    env = {}
    tracer = fx.proxy.GraphAppendingTracer(graph)
    for node in traced.graph.nodes:
        if node.op == "call_function" and node.target in DECOMPOSE:
            args = fx.node.map_arg(node.args, lambda n: fx.Proxy(env[n.name], tracer))
            env[node.name] = DECOMPOSE[node.target](*args).node
        else:
            env[node.name] = graph.node_copy(node, lambda n: env[n.name])
    show_module(show, fx.GraphModule(traced, graph), X)


@same
def test_a_graph_is_written_by_hand(fx, show):
    graph = fx.Graph()
    x, w = graph.placeholder("x"), graph.get_attr("w")
    total = fx.Proxy(x) + fx.Proxy(w)
    both = torch.cat([total, total.neg()], dim=1)
    graph.output(both[:, 1:].node)
    root = nn.Module()
    root.w = nn.Parameter(torch.ones(2))
    show_module(show, fx.GraphModule(root, graph, "ByHand"), X)


# ---- running a graph node by node ---------------------------------------------------------------


@same
def test_shapes_are_recorded_by_a_loop(fx, show):
    gm = fx.symbolic_trace(Small())
    modules, env = dict(gm.named_modules()), {}

    def load(arg):
        return fx.node.map_arg(arg, lambda n: env[n.name])

    for node in gm.graph.nodes:
        if node.op == "placeholder":
            result = X if node.target == "x" else node.args[0]
        elif node.op == "get_attr":
            result = gm.get_parameter(node.target)
        elif node.op == "call_function":
            result = node.target(*load(node.args), **load(node.kwargs))
        elif node.op == "call_method":
            self_obj, *args = load(node.args)
            result = getattr(self_obj, node.target)(*args, **load(node.kwargs))
        elif node.op == "call_module":
            result = modules[node.target](*load(node.args), **load(node.kwargs))
        else:
            result = load(node.args)[0]
        env[node.name] = result
        if isinstance(result, torch.Tensor):
            node.meta["shape"], node.meta["dtype"] = tuple(result.shape), result.dtype
    show([(n.name, n.meta.get("shape"), n.meta.get("dtype")) for n in gm.graph.nodes])


@same
def test_shapes_are_recorded_by_an_interpreter(fx, show):
    class Shapes(fx.Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            if isinstance(result, torch.Tensor):
                n.meta["shape"] = tuple(result.shape)
            return result

    gm = fx.symbolic_trace(Small())
    show(lambda: str(Shapes(gm).run(X, 3.0)), lambda: str(Shapes(gm).run(X)))
    show([(n.name, n.meta.get("shape")) for n in gm.graph.nodes])


@same
def test_a_profiler_is_an_interpreter(fx, show):
    class Profiler(fx.Interpreter):
        def __init__(self, module):
            super().__init__(fx.symbolic_trace(module))
            self.seconds, self.total = {}, []

        def run(self, *args):
            start = time.perf_counter()
            result = super().run(*args)
            self.total.append(time.perf_counter() - start)
            return result

        def run_node(self, n):
            start = time.perf_counter()
            result = super().run_node(n)
            self.seconds.setdefault(n, []).append(time.perf_counter() - start)
            return result

    profiler = Profiler(Small())
    show(lambda: str(profiler.run(X, 1.0)), lambda: str(profiler.run(X, 2.0)))
    show([(n.op, n.name, len(times)) for n, times in profiler.seconds.items()])
    assert len(profiler.total) == 2
    assert sum(map(sum, profiler.seconds.values())) <= sum(profiler.total)


@same
def test_an_interpreter_swaps_functions(fx, show):
    class Swap(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            target = torch.neg if target == torch.sigmoid else target
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            if target == "neg":
                (x,) = args
                return x.sigmoid()
            return super().call_method(target, args, kwargs)

    gm = fx.symbolic_trace(lambda x: torch.sigmoid(x).neg() + x)
    show(lambda: str(Swap(gm).run(X)), lambda: str(gm(X)))


@same
def test_a_transformer_swaps_functions(fx, show):
    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            target = torch.neg if target == torch.sigmoid else target
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            if target == "neg":
                (x,) = args
                return x.sigmoid()
            return super().call_method(target, args, kwargs)

    gm = fx.symbolic_trace(lambda x: torch.sigmoid(x).neg() + x)
    show_module(show, Swap(gm).transform(), X)
    show_module(show, fx.Transformer(fx.symbolic_trace(Small())).transform(), X)


# ---- inverting a function -----------------------------------------------------------------------

INVERSE = {operator.add: operator.sub, operator.mul: operator.truediv, torch.exp: torch.log}


@same
def test_a_chain_of_functions_is_inverted(fx, show):
    gm = fx.symbolic_trace(lambda x: torch.exp(x * 2.0 + 1.0))
    graph = fx.Graph()
    value = graph.placeholder("y")
    for node in reversed(gm.graph.nodes):
        if node.op == "call_function":
            _, *rest = node.args
            value = graph.call_function(INVERSE[node.target], (value, *rest))
    graph.output(value)
    inverse = fx.GraphModule(nn.Module(), graph)
    show_module(show, inverse, torch.exp(X * 2.0 + 1.0))
    assert torch.allclose(inverse(gm(X)), X)


# ---- fusing convolution and normalization -------------------------------------------------------


class ConvBn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 2, 2, bias=False), nn.BatchNorm2d(2)
        self.block = nn.Sequential(nn.Conv2d(2, 1, 1), nn.BatchNorm2d(1), nn.ReLU())
        for i, p in enumerate(self.parameters()):
            nn.init.constant_(p, 0.1 + i)

    def forward(self, x):
        return self.block(self.bn(self.conv(x)))


@same
def test_convolution_and_normalization_are_fused(fx, show):
    model = ConvBn().eval()
    gm = fx.symbolic_trace(model)
    modules = dict(gm.named_modules())
    for node in list(gm.graph.nodes):
        if node.op != "call_module" or node.args[0].op != "call_module":
            continue
        pair = (type(modules[node.args[0].target]), type(modules[node.target]))
        if pair == (nn.Conv2d, nn.BatchNorm2d) and len(node.args[0].users) == 1:
            conv, bn = modules[node.args[0].target], modules[node.target]
            fused = torch.nn.utils.fusion.fuse_conv_bn_eval(copy.deepcopy(conv), bn)
            parent, _, name = node.args[0].target.rpartition(".")
            setattr(modules[parent], name, fused)
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)
    gm.recompile()
    x = torch.arange(9.0).reshape(1, 1, 3, 3)
    show_module(show, gm, x)
    assert torch.allclose(gm(x), model(x))


# ---- tracers of one's own -----------------------------------------------------------------------


class Special(nn.Module):
    def forward(self, x):
        return torch.neg(x) if x.shape[0] > 100 else x * 2


class UsesSpecial(nn.Module):
    def __init__(self):
        super().__init__()
        self.special = Special()
        self.linear = nn.Linear(2, 2)
        nn.init.ones_(self.linear.weight), nn.init.zeros_(self.linear.bias)

    def forward(self, x):
        return self.linear(self.special(x)) + torch.ones(2)


@same
def test_a_tracer_keeps_modules_whole(fx, show):
    class Leaves(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            show(module_qualified_name)
            return isinstance(m, Special)

    show.error(lambda: fx.symbolic_trace(UsesSpecial()))
    tracer = Leaves()
    graph = tracer.trace(UsesSpecial())
    show_module(show, fx.GraphModule(tracer.root, graph), X)


@same
def test_a_tracer_writes_down_where_nodes_come_from(fx, show):
    class Origins(fx.Tracer):
        def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
            node = super().create_node(kind, target, args, kwargs, name, type_expr)
            node.meta["order"] = len(node.graph.nodes)
            return node

        def create_arg(self, a):
            return super().create_arg(float(a) if isinstance(a, int) else a)

        def call_module(self, m, forward, args, kwargs):
            show(type(m).__name__)
            return super().call_module(m, forward, args, kwargs)

    tracer = Origins()
    graph = tracer.trace(Small())
    show(str(graph), [(n.name, n.meta["order"]) for n in graph.nodes])


@same
def test_inputs_are_specialized(fx, show):
    def choose(x, flag):
        return x + 1 if flag else x - 1

    for flag in (True, False):
        gm = fx.symbolic_trace(choose, concrete_args={"flag": flag})
        show_module(show, gm, X, flag)
        show.error(lambda: gm(X, not flag))


@same
def test_control_flow_is_refused(fx, show):
    show.error(lambda: fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x))
    show.error(lambda: fx.symbolic_trace(lambda x: [y for y in x]))


# ---- looking at the code ------------------------------------------------------------------------


@same
def test_code_and_nodes_are_shown(fx, show):
    gm = fx.symbolic_trace(Small())
    show(gm.code, str(gm), str(gm.graph))
    lines = []
    for node in gm.graph.nodes:
        lines.append((node.op, node.name, str(node.target), str(node.args), str(node.kwargs)))
    show(lines)
