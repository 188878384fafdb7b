"""cfx.experimental: the rewriting tracer and the tracer with shapes, against torch.fx's."""
import ast
import functools
import importlib
import sys
import threading
import warnings

import pytest
from parity import same

import cfx

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402


def load(fx, name):
    return importlib.import_module(f"{fx.__name__}.experimental.{name}")


def show_graph(show, fx, tracer, graph, *inputs):
    gm = fx.GraphModule(tracer.root, graph)
    show(str(graph), gm.code, [str(n.type) for n in graph.nodes])
    show(lambda: str(gm(*inputs)))


X = torch.arange(6.0).reshape(2, 3)


# ---- rewriter -----------------------------------------------------------------------------------


@same
def test_statements_are_rewritten(fx, show):
    rewriter = load(fx, "rewriter").AST_Rewriter()
    for source in (
        "assert x", "assert x > 1, 'message'", "assert x, f'{y}'", "a: int = f(x)", "a.b: C = 3",
        "a[0]: 'Foo' = 3", "(a): int = 3",
    ):  # fmt: skip
        node = ast.parse(source).body[0]
        new = rewriter.visit(node)
        show(ast.unparse(ast.fix_missing_locations(new)), (new.lineno, new.col_offset))


def programs():
    """Not global functions: torch.fx refuses to rewrite those."""

    def with_assert(x, y: int = 3, *, z=2):
        assert x.sum() > 1, "too small"
        if y is not None:
            assert x.size(0)
        return x + z

    return [with_assert]


class Checked(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.plain = torch.ones(3)

    def forward(self, x, flag=True):
        """Documentation
that is not indented."""
        assert x.sum() > 0, "empty"
        return self.lin(x) + self.plain


@same
def test_asserts_are_traced(fx, show):
    rewriter = load(fx, "rewriter")
    for program in (*programs(), Checked().eval()):
        torch.manual_seed(0)
        for p in program.parameters() if isinstance(program, nn.Module) else ():
            nn.init.ones_(p)
        tracer = rewriter.RewritingTracer()
        graph = tracer.trace(program)
        show_graph(show, fx, tracer, graph, X, 3)
        show_graph(show, fx, tracer, graph, X - 100, 3)
        show(type(tracer.root).__name__)


def test_the_rewritten_function_is_as_the_original():
    rewriter = load(cfx, "rewriter")
    (function,) = programs()
    new = rewriter.AST_Rewriter().rewrite(function)
    assert new.__defaults__ == (3,) and new.__kwdefaults__ == {"z": 2}
    assert new.__annotations__ == {"y": int} and new.__globals__ is function.__globals__
    assert new.__wrapped__ is function and new.__name__ == "with_assert"
    assert new.__code__.co_filename == __file__
    assert new.__code__.co_firstlineno == function.__code__.co_firstlineno
    with pytest.raises(AssertionError, match="too small"):
        new(X - 100)


def global_function(x):
    assert x.sum() > 0
    return x + 1


def test_what_torch_fx_cannot_rewrite():
    """Global functions, closures, other methods, super(), decorators, defaults of the class."""
    rewriter = load(cfx, "rewriter")
    k = 5

    def closure(x):
        assert x.sum() > k
        return x

    class Base(nn.Module):
        default = 2

        def __init__(self):
            super().__init__()
            self.k = 2

        def forward(self, x):
            return self.helper(x)

        def helper(self, x):
            return x * self.k

    class Derived(Base):
        n = 4

        @torch.no_grad()
        def forward(self, x, n=n):
            assert x.sum() > 0
            return super().forward(x) + n

    for program in (global_function, closure, Derived()):
        tracer = rewriter.RewritingTracer()
        graph = tracer.trace(program)
        targets = [n.target for n in graph.nodes]
        assert torch._assert in targets
    assert isinstance(tracer.root, Derived) and tracer.root.k == 2
    assert rewriter._rewrite(closure)(X) is X
    assert torch.equal(tracer.root(X), X * 2 + 4)


def test_annotated_assignments_set_the_type():
    rewriter = load(cfx, "rewriter")

    def annotated(x):
        y: torch.Tensor = x + 1
        z: "some text" = y * 2  # noqa: F722
        n: int
        n = 3
        return z + n

    graph = rewriter.RewritingTracer().trace(annotated)
    types = {n.name: n.type for n in graph.nodes if n.type is not None}
    assert types == {"add": torch.Tensor, "mul": "some text"}


@same
def test_what_cannot_be_rewritten(fx, show):
    rewrite = load(fx, "rewriter")._rewrite
    namespace = {}
    exec("def made(x):\n    return x", namespace)
    show.error(lambda: rewrite(namespace["made"]), lambda: rewrite(functools.partial(len)))
    show.error(lambda: rewrite(3), lambda: rewrite(torch.relu))


def test_lambdas_have_nothing_to_rewrite():
    function = lambda x: x + 1  # noqa: E731
    assert load(cfx, "rewriter")._rewrite(function) is function


# ---- meta tracer --------------------------------------------------------------------------------

META = torch.ones(2, 3, device="meta")


def sizes(x):
    a, b = x.shape
    if x.shape[1] == 3 and x.dim() == 2 and x.dtype == torch.float32:
        x = x.reshape(b, a)
    return x.view(x.size(1), -1) * x.size()[0] + x.view(6).shape[0]


def factories(x):
    y = torch.arange(x.shape[1], device=x.device, dtype=x.dtype)
    return y + torch.zeros(3, device=x.device) + torch.full_like(x, 2) + torch.ones(x.shape)


def devices(x):
    return x.to(x.device), x.device.type, x.is_cuda, x.requires_grad


def loops(x):
    for i in range(x.shape[0]):
        x = torch.relu(torch.abs(x)) + i
    values, indices = torch.max(x, dim=1)[:2]
    return torch.where(x > 0, x, x).view(-1, values.shape[0])


class Embedded(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.ln, self.r = nn.Embedding(5, 4), nn.LayerNorm(4), nn.ReLU()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, i):
        x = self.r(self.ln(self.e(i)))
        return x.view(x.shape[0] * x.shape[1], x.shape[2]) * self.scale


class Stateless(nn.Module):
    def forward(self, x):
        return nn.Softmax(dim=1)(x) + nn.Softmax(dim=0)(x) + nn.Dropout(0.0)(x)


def both(x, y):
    return x + y


@same
def test_meta_tracing(fx, show):
    meta = load(fx, "meta_tracer")
    ints = torch.ones(2, 3, dtype=torch.long)
    for program, meta_args, concrete, inputs in [
        (sizes, {"x": META}, None, (X,)),
        (factories, {"x": META}, None, (X,)),
        (devices, {"x": META}, None, (X,)),
        (loops, {"x": META}, None, (X,)),
        (Embedded(), {"i": ints.to("meta")}, None, (ints,)),
        (Stateless(), {"x": META}, None, (X,)),
        (both, {"x": META}, None, (X, X)),
        (both, {"x": META, "nothing": META}, {"y": 3}, (X, 3)),
    ]:
        for p in program.parameters() if isinstance(program, nn.Module) else ():
            nn.init.ones_(p)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gm = meta.symbolic_trace(program, meta_args, concrete)
        show(str(gm.graph), gm.code, lambda: str(gm(*inputs)), type(gm).__name__)
        show(gm.graph._tracer_cls.__name__, str(gm.graph._tracer_extras))
        show([sorted(n.meta) for n in gm.graph.nodes])
        show([(name, str(m)) for name, m in gm.named_modules() if name])


@same
def test_meta_tracing_fails_as_torch_fx_does(fx, show):
    meta = load(fx, "meta_tracer")

    def raises(x):
        torch.zeros(x.shape[0])
        raise KeyError

    def made_inside(x):
        return nn.Linear(3, 3)(x)

    def on_values(x):
        return x if x.sum() > 0 else -x

    show.error(lambda: meta.symbolic_trace(both), lambda: meta.symbolic_trace(raises, {"x": META}))
    show.error(lambda: meta.symbolic_trace(made_inside, {"x": META}))
    show.error(lambda: meta.symbolic_trace(on_values, {"x": META}))


@same
def test_meta_proxies(fx, show):
    meta = load(fx, "meta_tracer")

    def look(x):
        show(x.shape, x.size(), x.size(1), x.dim(), x.dtype, repr(x), str(x._tensor_meta))
        show(type(x).__name__, type(x.device).__name__, type(x.T).__name__)
        show(str(meta.proxys_to_metas(x)), meta.proxys_to_metas(3))
        show(str(meta.proxys_to_metas(x.device)))
        unknown = x.made_up()
        show(hasattr(unknown, "_tensor_meta"), lambda: meta.proxys_to_metas(unknown))
        show(repr(unknown.shape), repr(unknown.size()), repr(unknown.size(1)), repr(unknown.dim()))
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        show(str(meta.MetaTracer().trace(look, {"x": META})))


def test_meta_proxies_know_more_than_torch_fx():
    meta = load(cfx, "meta_tracer")

    def look(x):
        assert x.size(0) == 2  # torch.fx: the whole size
        assert (x.T + 1).shape == (3, 2)  # torch.fx: unknown
        return nn.functional.relu(x, inplace=True)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        meta.MetaTracer().trace(look, {"x": META})


def test_what_cannot_be_computed_is_warned_about():
    meta = load(cfx, "meta_tracer")
    message = "Could not compute metadata for call_function target .*matmul"
    with pytest.warns(UserWarning, match=message):
        graph = meta.symbolic_trace(lambda x: torch.matmul(x, x), {"x": META}).graph
    assert [n.name for n in graph.nodes] == ["x", "matmul", "output"]


def test_nothing_stays_patched_and_other_threads_go_on():
    meta = load(cfx, "meta_tracer")
    names = meta.MetaTracer._TORCH_METHODS_TO_PATCH
    before = [getattr(torch, name) for name in names]
    zeros, ones = torch.zeros, torch.ones
    seen = []

    def elsewhere():
        seen.append(torch.zeros(2).tolist())

    def program(x):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        y = torch.zeros(2, device=x.device)
        inner = meta.symbolic_trace(lambda z: torch.ones(1, device=z.device), {"z": META})
        assert inner.graph.find_nodes(op="call_function", target=ones)
        y = y + torch.zeros(2, device=x.device)
        if len(seen) > 1:
            raise KeyError
        return y

    graph = meta.MetaTracer().trace(program, {"x": META})
    assert len(graph.find_nodes(op="call_function", target=zeros)) == 2
    with pytest.raises(KeyError):
        meta.MetaTracer().trace(program, {"x": META})
    assert seen == [[0.0, 0.0]] * 2
    assert [getattr(torch, name) for name in names] == before


@same
def test_constructor_wrapper(fx, show):
    wrapper, target = load(fx, "meta_tracer").gen_constructor_wrapper(torch.zeros)
    show(target is torch.zeros, wrapper.__name__, str(wrapper(2)))
    tracer = fx.Tracer()
    tracer.graph = fx.Graph()
    made = wrapper(tracer.create_proxy("placeholder", "n", (), {}), dtype=torch.int8)
    show(str(made.node.args), str(made.node.target), dict(made.node.kwargs))


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "cfx.experimental.meta_tracer", raising=False)
    with pytest.raises(ImportError, match="needs torch"):
        importlib.import_module("cfx.experimental.meta_tracer")
