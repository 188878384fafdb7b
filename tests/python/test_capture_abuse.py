"""Capture under programs and tracers that misbehave: modules that change while they are traced,
overridden steps that pull the rug away, containers without end. What torch.fx can do comes out the
same; nothing crashes, and nothing stays hooked."""
import functools
import gc
import itertools
import math
import os
import subprocess
import sys
import threading
import weakref

import pytest

torch = pytest.importorskip("torch")

import torch.fx  # noqa: E402
from parity import same  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import cfx  # noqa: E402
from cfx.proxy import Attribute, GraphAppendingTracer, Proxy  # noqa: E402


def ours_only(fn):
    return fn


cfx.wrap("ours_only")


class Add(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x + self.weight


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.linear = Add(), Add(), nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(self.b(self.a(x))).relu()


@pytest.fixture(autouse=True)
def nothing_stays_hooked():
    call, get = nn.Module._wrapped_call_impl.__code__, nn.Module.__getattr__.__code__
    yield
    assert not cfx._symbolic_trace.is_fx_tracing()
    assert nn.Module._wrapped_call_impl.__code__ is call
    assert nn.Module.__getattr__.__code__ is get
    assert type(math.sqrt).__name__ == "builtin_function_or_method"


# ---- modules that change while they are traced -------------------------------------------------


@same
def test_members_made_in_forward(fx, show):
    class Grows(nn.Module):
        def forward(self, x):
            self.new = nn.Linear(3, 3)
            self.new.scale = nn.Parameter(torch.ones(3))
            return F.linear(x, self.new.weight) * self.new.scale

    show(lambda: str(fx.Tracer().trace(Grows())))


@same
def test_buffers_that_are_replaced(fx, show):
    class Replaces(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", torch.ones(3))

        def forward(self, x):
            y = x + self.b
            old = self.b
            self.b = torch.zeros(3)
            return y + old + self.b

    show(lambda: str(fx.Tracer().trace(Replaces())))


@same
def test_addresses_that_are_used_again(fx, show):
    """A constant may get the address of a buffer that is gone; it is not that buffer."""

    class Forgets(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", torch.ones(3))

        def forward(self, x):
            y = x + self.b
            self.b = None
            for i in range(20):
                y = y + torch.full((3,), float(i))
            return y

    show(lambda: fx.symbolic_trace(Forgets())(torch.zeros(3)).tolist())


@same
def test_modules_that_move(fx, show):
    class Moves(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = Add()

        def forward(self, x):
            y = x + self.first.weight
            self.second = self.first
            del self.first
            return y + self.second.weight

    show(lambda: str(fx.Tracer().trace(Moves())))


def test_names_of_modules_that_are_no_text():
    class Numbered(Add):
        def named_modules(self, *args, **kwargs):
            for i, (_, module) in enumerate(super().named_modules(*args, **kwargs)):
                yield i, module

    with pytest.raises(TypeError, match="must be a str"):
        cfx.Tracer().trace(Numbered())
    model = Add()
    model._parameters[5] = nn.Parameter(torch.ones(1))
    with pytest.raises(TypeError, match="must be a str"):
        cfx.Tracer().trace(model)


# ---- containers without end ---------------------------------------------------------------------


def endless():
    items, table = [], {}
    items.append(items)
    table["self"] = table
    deep = []
    for _ in range(100_000):
        deep = [deep]
    return items, table, deep


@pytest.mark.parametrize("use", [
    lambda x, a: ours_only((a, x)),
    lambda x, a: F.interpolate(x, scale_factor=a),
    lambda x, a: Proxy.__torch_function__(torch.add, (Proxy,), (a, x), {"alpha": a}),
    lambda x, a: x.method(a),
    lambda x, a: x[a],
    lambda x, a: a,
])  # fmt: skip
def test_containers_without_end(use):
    for a in endless():
        with pytest.raises(RecursionError):
            cfx.symbolic_trace(lambda x: use(x, a))
        while type(a) is list and a and a[0] is not a:  # its destruction must not recurse either
            a = a[0]


# ---- attributes and proxies whose parts are gone ------------------------------------------------


def test_attributes_without_parts():
    def f(x):
        for part in ("root", "attr", "tracer"):
            attribute = x.relu
            delattr(attribute, part)
            with pytest.raises(AttributeError):
                attribute(1, 2)
            with pytest.raises(AttributeError):
                attribute(*range(20), a=1)
            with pytest.raises(AttributeError):
                attribute.node
        bare = Attribute.__new__(Attribute)
        bare.tracer = x.tracer
        with pytest.raises(AttributeError):
            bare()
        with pytest.raises(AttributeError):
            Proxy.__new__(Proxy) + 1
        return x

    assert len(cfx.symbolic_trace(f).graph.nodes) == 2


def test_attributes_that_lose_parts_while_they_are_recorded():
    class Thief(cfx.Tracer):
        victim = None

        @property
        def trace_asserts(self):  # read whenever the tracer may have changed
            if Thief.victim is not None:
                Thief.victim.root = Thief.victim.attr = None
                gc.collect()
            return False

    def f(x):
        tracer = x.tracer
        attribute = Thief.victim = (x + 1).relu
        tracer.touched = 1
        y = attribute(1)
        attribute = Thief.victim = (x + 2).shape
        tracer.touched = 2
        node = attribute.node
        Thief.victim = None
        return y, Proxy(node, tracer)

    text = str(Thief().trace(f))
    assert "call_method[target=relu](args = (%add, 1)" in text
    assert "builtins.getattr](args = (%add_1, shape)" in text


# ---- another graph in the middle of a trace -----------------------------------------------------


@pytest.mark.parametrize("ask", ["scope", "module_stack", "node_name_to_scope"])
def test_scopes_of_another_graph(ask):
    class Swaps(cfx.Tracer):
        def call_module(self, m, forward, args, kwargs):
            return super().call_module(m, functools.partial(self.swap, forward), args, kwargs)

        def swap(self, forward, *args, **kwargs):
            result, self.graph = forward(*args, **kwargs), cfx.Graph()
            getattr(self, ask)
            return Proxy(self.graph.placeholder("y"), self) * 2

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.model, self.after = Model(), Add()

        def forward(self, x):
            return self.after(self.model(x))

    graph = Swaps().trace(Outer())
    for node in graph.nodes:
        for path, _ in node.meta.get("nn_module_stack", {}).values():
            assert path in ("", "after")


def test_lines_of_another_graph():
    """Lines are numbered in each graph; a new graph may get the address of the one before."""
    tracer = cfx.Tracer()
    for _ in range(20):
        if hasattr(tracer, "graph"):
            del tracer.graph
        tracer.graph = cfx.Graph()
        x = Proxy(tracer.graph.placeholder("x"), tracer)
        _ = abs(x)
        first = x + 1
        assert first.node._location[1] == test_lines_of_another_graph.__code__.co_firstlineno + 9


def test_a_graph_that_is_replaced_while_arguments_are_read():
    class Evil:
        def __fx_create_arg__(self, tracer):
            tracer.graph = cfx.Graph()
            tracer.graph.placeholder("z")
            gc.collect()
            return 1

    class Replaced(cfx.Tracer):
        pass

    def f(x):
        kept = x.tracer.graph
        y = x + Evil()
        assert y.node.graph is kept
        return 3

    graph = Replaced().trace(f)
    assert [n.op for n in graph.nodes] == ["placeholder", "output"]


# ---- overridden steps that pull the rug away ----------------------------------------------------

STEPS = ["create_node", "create_arg", "proxy", "is_leaf_module", "path_of_module", "call_module",
         "getattr", "create_proxy"]  # fmt: skip


def erase_last(tracer):
    last = list(tracer.graph.nodes)[-1:]
    if last and not last[0].users:
        tracer.graph.erase_node(last[0])


def lose(tracer, *names):
    for name in names:
        if hasattr(tracer, name):
            delattr(tracer, name)


DEEDS = {
    "erase": erase_last,
    "clear": lambda t: t.graph._clear_nodes(),
    "replace": lambda t: setattr(t, "graph", cfx.Graph()),
    "delete graph": lambda t: lose(t, "graph"),
    "delete root": lambda t: lose(t, "root", "tensor_attrs", "submodule_paths"),
    "delete scope": lambda t: lose(t, "scope", "module_stack", "num_calls", "node_name_to_scope"),
    "no graph": lambda t: setattr(t, "graph", None),
    "strange scope": lambda t: setattr(t, "scope", 5) or setattr(t, "module_stack", 6),
    "strange calls": lambda t: setattr(t, "num_calls", 7),
    "strange paths": lambda t: setattr(t, "submodule_paths", [1]),
    "trace": lambda t: cfx.symbolic_trace(Model()),
    "trace again": lambda t: t.trace(Model()),
    "gc": lambda t: gc.collect(1),
    "stack traces": lambda t: setattr(t, "record_stack_traces", not t.record_stack_traces),
    "class": lambda t: setattr(t, "__class__", Plain if type(t) is not Plain else cfx.Tracer),
    "modules": lambda t: t.root._modules.clear(),
    "parameters": lambda t: [m._parameters.clear() for m in t.root.modules()],
    "eliminate": lambda t: t.graph.eliminate_dead_code(),
    "lint": lambda t: t.graph.lint(),
    "code": lambda t: str(t.graph) + t.graph.python_code("self").src,
    "deepcopy": lambda t: __import__("copy").deepcopy(t.graph),
    "module": lambda t: cfx.GraphModule(t.root, t.graph).code,
    "interrupt": lambda t: (_ for _ in ()).throw(KeyboardInterrupt),
    "exit": lambda t: (_ for _ in ()).throw(GeneratorExit),
}


class Plain(cfx.Tracer):
    pass


def mischievous(step, deed, when, after):
    """A class of tracers whose step does the deed at the n-th call."""

    def method(self, *args, **kwargs):
        count = next(counter)
        if count == when and not after:
            deed(self)
        result = getattr(cfx.Tracer, step)(self, *args, **kwargs)
        if count == when and after:
            deed(self)
        return result

    counter = itertools.count()
    return type("Mischievous", (cfx.Tracer,), {step: method})


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("deed", DEEDS)
def test_steps_that_misbehave(step, deed):
    """Whatever comes of it, it is a graph or an exception."""
    for when, after in itertools.product((0, 1, 3), (False, True)):
        tracer = mischievous(step, DEEDS[deed], when, after)()
        graphs = []
        try:
            graphs.append(tracer.trace(Model()))
        except BaseException as e:
            assert isinstance(e, (Exception, KeyboardInterrupt, GeneratorExit)), e
            assert not isinstance(e, SystemError), (when, after, e)
        for graph in graphs:
            str(graph), [n.meta for n in graph.nodes], [n._location for n in graph.nodes]
    assert len(cfx.symbolic_trace(Model()).graph.nodes) > 5  # others are none the wiser


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("deed", DEEDS)
def test_programs_that_misbehave(deed):
    """The deed is done by the traced program: by a module, a property, a hook, a finalizer, an
    argument, a generator."""

    class Finalized:
        def __init__(self, proxy):
            self.proxy, self.me = proxy, self

        def __del__(self):
            DEEDS[deed](self.proxy.tracer)

    class Argument:
        def __init__(self, tracer):
            self.tracer = tracer

        def __fx_create_arg__(self, tracer):
            DEEDS[deed](self.tracer)
            return 1

    class Bad(nn.Module):
        def __init__(self, how):
            super().__init__()
            self.how, self.model = how, Model()
            if how == "hook":
                self.model.a.register_forward_hook(lambda m, i, o: DEEDS[deed](o.tracer))

        @property
        def prop(self):
            DEEDS[deed](self.x.tracer)
            return 2

        def __getattr__(self, name):
            if name == "missing":
                DEEDS[deed](self.x.tracer)
                return 3
            return super().__getattr__(name)

        def items(self, x):
            yield x + 1
            DEEDS[deed](x.tracer)
            yield x + 2

        def forward(self, x):
            self.x = x
            x = self.model.a(x)
            if self.how == "property":
                x = x + self.prop
            elif self.how == "getattr":
                x = x + self.missing
            elif self.how == "argument":
                x = x.method([1, Argument(x.tracer), x], a=x)
            elif self.how == "generator":
                x = torch.cat(list(self.items(x)))
            elif self.how == "finalizer":
                Finalized(x)
                for i in range(30):
                    x = x + i
                    gc.collect(0)
            return self.model.b(x)

    for how in ("property", "getattr", "argument", "generator", "finalizer", "hook"):
        try:
            graph = cfx.Tracer().trace(Bad(how))
            str(graph), [n.meta for n in graph.nodes]
        except BaseException as e:
            assert isinstance(e, (Exception, KeyboardInterrupt, GeneratorExit)), e
            assert not isinstance(e, SystemError), (how, e)
    gc.collect()
    assert len(cfx.symbolic_trace(Model()).graph.nodes) > 5


def test_lazy_functions_want_a_class():
    gm = cfx.symbolic_trace(Model())
    lazy = vars(type(gm))["forward"]
    with pytest.raises(TypeError, match="expected a class"):
        lazy.__get__(gm, 5)
    assert lazy.__get__(gm, None)(torch.ones(3)).shape == (3,)


def test_proxies_that_outlive_their_graph():
    """A proxy keeps the node it stands for, whatever becomes of the graph."""
    tracer = cfx.Tracer()
    kept = []
    graph = tracer.trace(lambda x: kept.append(x + 1) or x)
    ref = weakref.ref(graph)
    del graph, tracer
    gc.collect()
    assert kept[0].node.name == "add" and kept[0].node.graph is ref()
    kept.clear()
    gc.collect()
    assert ref() is None


def test_a_proxy_of_an_erased_node():
    graph = cfx.Graph()
    x = Proxy(graph.placeholder("x"), GraphAppendingTracer(graph))
    y = x + 1
    graph.erase_node(list(graph.nodes)[-1])
    z = [x + i for i in range(100)]
    assert y.node.name == "add" and y.node._erased and len(graph.nodes) == 101
    with pytest.raises(RuntimeError):
        y * 2
    assert z[-1].node.name == "add_100" or z[-1].node.name == "add_99"


def test_one_library_inside_the_other():
    """Each has its own modules and proxies; those of the other it does not take."""

    class Outer(nn.Module):
        def __init__(self, fx):
            super().__init__()
            self.fx, self.add = fx, Add()

        def forward(self, x):
            self.inner = str(self.fx.symbolic_trace(self.add).graph)
            return self.add(x)

    for inner in (torch.fx, cfx):
        model = Outer(inner)
        graph = cfx.symbolic_trace(model).graph
        assert [n.target for n in graph.nodes][1] == "add.weight" and len(graph.nodes) == 4
        assert model.inner == str(torch.fx.symbolic_trace(Add()).graph)
    torch.fx.symbolic_trace(Outer(cfx))
    with pytest.raises(NotImplementedError, match="cfx.proxy.Proxy"):
        cfx.symbolic_trace(lambda x: torch.fx.symbolic_trace(lambda y: y + x))
    with pytest.raises(NotImplementedError, match="torch.fx.proxy.Proxy"):
        torch.fx.symbolic_trace(lambda x: cfx.symbolic_trace(lambda y: y.add(x)))


def test_steps_put_into_the_dict_of_a_tracer():
    seen = []

    def f(x):
        tracer = x.tracer
        y = x + 1
        vars(tracer)["create_node"] = lambda *args: seen.append(args[0]) or make(*args)
        return y + 2

    tracer = cfx.Tracer()
    make = tracer.create_node
    assert len(tracer.trace(f).nodes) == 4 and seen == ["call_function", "output"]


def test_first_used_while_another_library_traces():
    """What nn.Module has then is not its own."""
    script = """
import torch, torch.fx, cfx
relu = torch.nn.ReLU()
torch.fx.symbolic_trace(lambda x: cfx.symbolic_trace(lambda y: y + 1) and x)
assert len(cfx.symbolic_trace(torch.nn.Sequential(relu)).graph.nodes) == 3
assert len(torch.fx.symbolic_trace(torch.nn.Sequential(relu)).graph.nodes) == 3
"""
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(cfx.__file__))}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


def test_recompile_while_others_run():
    """A module has its forward at any time."""
    gm = cfx.symbolic_trace(Model())
    x = torch.ones(3)
    want, errors, done = gm(x), [], threading.Event()

    def run():
        try:
            while not done.is_set():
                assert torch.equal(gm(x), want) and "linear" in gm.code
        except BaseException as e:
            errors.append(e)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(1000):
        gm.recompile()
    done.set()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert not errors


def test_code_that_was_replaced():
    """What recompile() gave stays the code of the graph as it was then."""
    gm = cfx.symbolic_trace(lambda x: x + 1)
    node = list(gm.graph.nodes)[1]
    codes = [gm.recompile() for _ in range(3)]
    node.target = torch.sub
    assert all("x + 1" in code.src for code in codes)
    codes = [gm.recompile() for _ in range(3)]
    assert "torch.sub" in codes[2].src
    node.target = torch.mul
    assert all("torch.sub" in code.src for code in codes)


def assigns(x):
    x[0] = 1
    return x


def deletes(x):
    del x[0]
    return x


@pytest.mark.parametrize("program, error, advice", [
    (assigns, TypeError, "torch.where"),
    (deletes, TypeError, "x[1:]"),
    (lambda x: f"{x:.2f}", TypeError, "concrete_args"),
    (lambda x: [1, 2][x], TypeError, "concrete_args"),
    (lambda x: round(x), TypeError, "concrete_args"),
    (lambda x: int(x.shape), TypeError, "concrete_args"),
    (lambda x: range(x.size(0)), TypeError, "concrete_args"),
    (lambda x: memoryview(b"").cast(x), TypeError, "concrete_args"),
])  # fmt: skip
def test_notes_of_errors(program, error, advice):
    """Errors of Python's own name the line of the program and say what to do."""
    with pytest.raises(error) as caught:
        cfx.symbolic_trace(program)
    note = "\n".join(caught.value.__notes__)
    assert f"{__file__}:{program.__code__.co_firstlineno}" in note or "x[0]" in note
    assert advice in note and "cfx.wrap" in note


def test_notes_of_numpy():
    numpy = pytest.importorskip("numpy")
    for program in (lambda x: numpy.sqrt(x), lambda x: numpy.ones(3) + x):
        with pytest.raises(Exception) as caught:
            cfx.symbolic_trace(program)
        assert "use torch functions" in "\n".join(caught.value.__notes__)


# ---- interpreters whose steps pull the rug away --------------------------------------------------


def erase_ahead(interpreter):
    for node in reversed(interpreter.graph.nodes):
        if not node.users and node.op != "output":
            interpreter.graph.erase_node(node)


def drop_node(interpreter):
    interpreter.env.pop(next(iter(interpreter.env), None), None)


RUN_DEEDS = {
    "erase": erase_ahead,
    "clear": lambda i: i.graph._clear_nodes(),
    "replace graph": lambda i: setattr(i, "graph", cfx.Graph()),
    "replace env": lambda i: setattr(i, "env", dict(i.env)),
    "clear env": lambda i: i.env.clear(),
    "drop": drop_node,
    "no env": lambda i: setattr(i, "env", None),
    "delete env": lambda i: vars(i).pop("env", None),
    "delete all": lambda i: vars(i).clear(),
    "strange plan": lambda i: setattr(i, "user_to_last_uses", {n: [5] for n in i.graph.nodes}),
    "insert": lambda i: i.graph.call_function(abs, (next(iter(i.graph.nodes)),)),
    "run": lambda i: cfx.Interpreter(i.module).run(torch.ones(3)),
    "run again": lambda i: i.run(torch.ones(3)) if next(COUNT) < 3 else None,
    "class": lambda i: setattr(i, "__class__", OtherInterpreter),
    "override": lambda i: setattr(i, "call_function", lambda *a: torch.ones(3)),
    "eliminate": lambda i: i.graph.eliminate_dead_code(),
    "interrupt": lambda i: (_ for _ in ()).throw(KeyboardInterrupt),
}
COUNT = itertools.count()


class OtherInterpreter(cfx.Interpreter):
    pass


@pytest.mark.parametrize("step", [
    "run_node", "call_function", "call_method", "placeholder", "output", "fetch_attr",
    "fetch_args_kwargs_from_env", "map_nodes_to_values", "_set_current_node",
])  # fmt: skip
@pytest.mark.parametrize("deed", RUN_DEEDS)
def test_interpreters_that_misbehave(step, deed):
    for when, after, plan in itertools.product((0, 1, 2), (False, True), (False, True)):
        counter, gm = itertools.count(), cfx.symbolic_trace(Model())
        gm.graph.call_function(abs, (next(iter(gm.graph.nodes)),))

        def method(self, *args, _counter=counter, _when=when, _after=after):
            count = next(_counter)
            if count == _when and not _after:
                RUN_DEEDS[deed](self)
            result = getattr(cfx.Interpreter, step)(self, *args)
            if count == _when and _after:
                RUN_DEEDS[deed](self)
            return result

        interpreter = type("Mischievous", (OtherInterpreter,), {step: method})(gm)
        if plan:
            _ = interpreter.user_to_last_uses
        try:
            interpreter.run(torch.ones(3))
        except BaseException as e:
            assert isinstance(e, (Exception, KeyboardInterrupt)), e
            assert not isinstance(e, SystemError), (when, after, e)
