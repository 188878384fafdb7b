"""Tracer, Proxy and wrap: the same programs captured by torch.fx and by cfx, and what cfx does
better. Everything that needs a GraphModule is tested elsewhere."""
import collections
import copy
import dataclasses
import enum
import gc
import math
import operator
import pickle
import sys
import threading
import types

import pytest

torch = pytest.importorskip("torch")

import cfx  # noqa: E402
import cfx._symbolic_trace as ours  # noqa: E402
import torch.fx._symbolic_trace as theirs  # noqa: E402
from cfx.proxy import Attribute, GraphAppendingTracer, Proxy, Scope, TraceError  # noqa: E402
from torch import nn  # noqa: E402

BOTH = [theirs, ours]


def same_text(graph):
    return str(graph).replace("torch.fx.", "cfx.")


def trace_both(make, concrete_args=None, tracer=lambda fx: fx.Tracer()):
    """The graphs, as text, of what `make(fx)` gives."""
    texts = []
    for fx in BOTH:
        args = concrete_args(fx) if callable(concrete_args) else concrete_args
        texts.append(same_text(tracer(fx).trace(make(fx), args)))
    assert texts[1] == texts[0]
    return texts[1]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x):
        x = self.lin(x)
        x = self.lin(x) * self.scale
        return x + self.shift


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Block()
        self.seq = nn.Sequential(nn.ReLU(), Block())
        self.constant = torch.ones(3)

    def forward(self, x):
        x = self.a(x)
        x = self.a(x) + self.constant
        return self.seq(x) - torch.ones(3)


# ---- what is recorded -----------------------------------------------------------------------


def operators(x):
    y = x
    for op in (operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv,
               operator.mod, operator.pow, operator.lshift, operator.rshift, operator.and_,
               operator.or_, operator.xor, operator.matmul, operator.getitem):  # fmt: skip
        y = op(y, x)
        y = op(y, 2)
        if op is not operator.getitem:
            y = op(3, y)
    for op in (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge):
        y = op(y, 1)
        y = op(1, y)
    return -(+(~abs(y)))


def in_place(x):
    x += 1
    x *= x
    x @= x
    return x


def functions(x):
    x = torch.relu(x) + torch.nn.functional.gelu(x) + x.neg().T + x.shape[0]
    x = torch.cat([x, x], dim=1)[0, 1:, ..., None]
    x = torch.ones(3) + x
    return torch.Tensor.__len__(x), x(1, key=2), {"a": [x, (x, None)], "b": slice(x, None, 2)}


def unpacking(x):
    a, (b, c) = x
    d, e = a.shape
    return a + c + d


Pair = collections.namedtuple("Pair", "u v")


@dataclasses.dataclass
class Data:
    a: object
    b: int = 2


class Color(enum.Enum):
    RED = 1


def kinds(x):
    x = x.f(1, 1.5, True, None, "s", 1j, ..., 2**80, torch.float32, torch.device("cpu"))
    x = x.f(torch.strided, torch.contiguous_format, Color.RED, range(3), torch.Size([1, 2]))
    return x.f(Pair(x, 2), Data(x, 3), [x, (x,)], {"k": x, 1: {"n": x}}, slice(x, 1),
               torch.ops.aten.relu.default, k=torch.ones(1))  # fmt: skip


@pytest.mark.parametrize("function", [operators, in_place, functions, unpacking, kinds])
def test_functions(function):
    trace_both(lambda fx: function)


def test_modules_scopes_and_metadata():
    trace_both(lambda fx: Net())
    found = []
    for fx in BOTH:
        tracer = fx.Tracer()
        graph = tracer.trace(Net())
        found.append(
            [{n.name: n.meta for n in graph.nodes}, tracer.node_name_to_scope, tracer.num_calls]
        )
        assert tracer.scope.module_path == "" and not tracer.module_stack
        assert tracer.submodule_paths is None
    assert found[0] == found[1]
    stack = found[1][0]["a_lin_3"]["nn_module_stack"]
    assert list(stack.items()) == [("a@1", ("a", Block)), ("a.lin@3", ("a.lin", nn.Linear))]


def with_everything(x: torch.Tensor, *args, y: "int" = 3, z=4.0, **kw) -> torch.Tensor:
    return x + y + z + args[0] + kw["k"]


class Positional(nn.Module):
    def forward(self, x, /, y, *, z=1):
        return x + y + z


def test_signatures():
    trace_both(lambda fx: with_everything)
    trace_both(lambda fx: Positional())
    trace_both(lambda fx: lambda x, y=(1, [2]): x + y[0])


def test_tied_parameters_and_containers():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(2))
            self.same = self.w
            self.items = nn.ParameterList([nn.Parameter(torch.ones(2)) for _ in range(2)])
            self.mods = nn.ModuleDict({"a": nn.ReLU()})
            self.mods["b"] = self.mods["a"]

        def forward(self, x):
            x = x + self.w + self.same + self.items[1]
            return self.mods["b"](self.mods["a"](x)) + self.w.shape[0]

    trace_both(lambda fx: Tied())
    trace_both(lambda fx: Tied(), tracer=lambda fx: fx.Tracer(param_shapes_constant=True))

    def with_buffers(fx):
        return type("T", (fx.Tracer,), {"proxy_buffer_attributes": True})()

    trace_both(lambda fx: Net(), tracer=with_buffers)


# ---- concrete arguments ---------------------------------------------------------------------


def choose(x, flag, c=2):
    return x + c if flag else x


@pytest.mark.parametrize("value", [True, None, "yes", 1.5, 3])
def test_concrete_values(value):
    trace_both(lambda fx: choose, {"flag": value})


def test_concrete_trees():
    def nested(d, e):
        return {"sum": d["a"] + d["b"][0], "rest": (e, [d["a"]])}

    text = trace_both(lambda fx: nested, lambda fx: {"d": {"a": fx.PH, "b": [fx.PH, 3]}})
    assert "return [add, e, d_1]" in text
    trace_both(lambda fx: choose, lambda fx: (fx.PH, True, 3))
    with pytest.raises(RuntimeError, match="expected 3 arguments but got 2"):
        ours.Tracer().trace(choose, (1, 2))
    for fx in BOTH:
        with pytest.warns(UserWarning, match="Was not able to add assertion"):
            fx.Tracer().trace(choose, {"flag": object})


def test_placeholders_with_attributes():
    for fx in BOTH:
        key = fx.PHWithMeta("k")
        key.extra = 5
        graph = fx.Tracer().trace(choose, {"flag": True, "x": key})
        node = next(iter(graph.nodes))
        assert (node.ph_key, node.extra) == ("k", 5)


# ---- overriding ------------------------------------------------------------------------------


STEPS = [
    "create_node", "create_proxy", "create_arg", "proxy", "is_leaf_module", "path_of_module",
    "call_module", "getattr",
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_every_step_can_be_overridden(step):
    """An override sees the same calls in both, and the graph stays the same."""
    seen = {}

    def logging(fx):
        log = seen.setdefault(fx, [])

        class Logging(fx.Tracer):
            pass

        def method(self, *args, **kwargs):
            known = [a if isinstance(a, str) else type(a) for a in args
                     if isinstance(a, (str, nn.Module))]
            log.append((len(args), known, sorted(kwargs)))
            return getattr(fx.Tracer, step)(self, *args, **kwargs)

        setattr(Logging, step, method)
        return Logging()

    trace_both(lambda fx: Net(), tracer=logging)
    if step in ("create_node", "is_leaf_module", "path_of_module", "call_module", "getattr"):
        assert [row[1] for row in seen[ours]] == [row[1] for row in seen[theirs]]
    assert seen[ours]


def test_overrides_are_seen_when_they_appear():
    class Late(ours.Tracer):
        pass

    tracer = Late()
    assert "call_module[target=a.lin]" in str(tracer.trace(Net()))
    Late.is_leaf_module = lambda self, m, name: isinstance(m, Block)
    assert "call_module[target=a](" in str(tracer.trace(Net()))
    tracer.is_leaf_module = lambda m, name: True
    assert "call_module[target=seq](" in str(tracer.trace(Net()))
    del tracer.is_leaf_module
    assert "call_module[target=seq.1](" in str(tracer.trace(Net()))


def test_proxies_of_ones_own():
    class Mine(Proxy):
        def __getattr__(self, name):
            return 7 if name == "seven" else super().__getattr__(name)

        def __add__(self, other):
            return super().__mul__(other)

        def __bool__(self):
            return True

    class Tracer(ours.Tracer):
        def proxy(self, node):
            return Mine(node, self)

    def function(x):
        y = x + x.seven if x else None
        assert type(y) is Mine and type(x.shape) is Attribute
        return torch.relu(y).sum() + x.shape[0]

    text = str(Tracer().trace(function))
    assert "operator.mul](args = (%x, 7)" in text and "call_method[target=sum]" in text


def test_to_bool_iter_keys():
    class Tracer(ours.Tracer):
        def to_bool(self, obj):
            return True

        def iter(self, obj):
            return iter([obj[0], obj[1]])

        def keys(self, obj):
            return ["k"]

    def function(x):
        return sum(x, start=1) if x > 0 and len(dict(**x)) == 1 else None

    assert "return add_1" in str(Tracer().trace(function))


def test_scope_objects_that_were_asked_for_are_kept_up_to_date():
    seen = {}

    def looking(fx):
        class Looking(fx.Tracer):
            def call_module(self, m, forward, args, kwargs):
                log = seen.setdefault(fx, [])
                scope = self.scope
                log.append((scope.module_path, scope.module_type, dict(self.module_stack)))
                return super().call_module(m, forward, args, kwargs)

        return Looking()

    trace_both(lambda fx: Net(), tracer=looking)
    assert seen[ours] == seen[theirs] and any(row[0] == "a" for row in seen[ours])


def test_metadata_that_an_override_adds():
    class Tagging(ours.Tracer):
        def create_node(self, *args, **kwargs):
            node = super().create_node(*args, **kwargs)
            node.meta["tag"] = len(self.module_stack)
            return node

    graph = Tagging().trace(Net())
    tags = {n.name: (n.meta["tag"], "nn_module_stack" in n.meta) for n in graph.nodes}
    assert tags["x"] == (0, False) and tags["a_lin"] == (2, True)


def test_graph_with_its_own_create_node():
    class Counting(cfx.Graph):
        def create_node(self, *args, **kwargs):
            self.count = getattr(self, "count", 0) + 1
            return super().create_node(*args, **kwargs)

    graph = Counting()
    tracer = GraphAppendingTracer(graph)
    x = tracer.create_proxy("placeholder", "x", (), {})
    graph.output((x + 1).relu().node)
    assert graph.count == 3 + 1
    assert len(graph.nodes) == 4


# ---- wrapping --------------------------------------------------------------------------------


def helper(x, y):
    return x * y if x.sum() > 0 else y


def module_of(code, **names):
    """A module of its own, because what is wrapped there must not be wrapped here."""
    module = types.ModuleType("some_library")
    vars(module).update(names, torch=torch, math=math, wrap=ours.wrap)
    exec(code, vars(module))
    return module


def test_wrap():
    code = """
from math import sqrt
wrap(helper)
wrap("len")

@wrap
def decorated(x):
    return helper(x, 1)

def model(x):
    return helper(x, 2) + len(decorated(x)) + math.sqrt(x) + sqrt(4) + helper(torch.ones(1), 3)
"""
    module = module_of(code, helper=helper)
    try:
        before = dict(vars(module)), dict(vars(math))
        graph = ours.Tracer().trace(module.model)
        assert (dict(vars(module)), dict(vars(math))) == before and "len" not in vars(module)
    finally:
        for name in ("helper", "len", "decorated"):
            del ours._wrapped_fns_to_patch[id(vars(module)), name]
    calls = [n for n in graph.nodes if n.op == "call_function" and n.target is not operator.add]
    assert [n.target for n in calls] == [helper, module.decorated, len, math.sqrt]
    assert all(n.meta["is_wrapped"] for n in calls)
    with pytest.raises(NotImplementedError, match="top level of a module"):
        ours.wrap("len")
    with pytest.raises(RuntimeError, match="Must be either a callable or string name"):
        ours.wrap(3)


def test_names_wrapped_for_torch_fx_are_honoured():
    code = "import torch.fx\ndef op(x):\n    return 1 if x else 2\ntorch.fx.wrap('op')\n"
    module = module_of(code + "def model(x):\n    return op(x) + 1\n")
    try:
        assert "some_library.op" in str(ours.Tracer().trace(module.model))
    finally:
        del theirs._wrapped_fns_to_patch[id(vars(module)), "op"]


def test_autowrap_is_for_the_tracer_that_asks():
    function = types.FunctionType(helper.__code__, globals(), "own_helper")
    scope = {"own_helper": function}
    model = types.FunctionType((lambda x: own_helper(x, 1)).__code__, scope)  # noqa: F821
    graph = ours.Tracer(autowrap_functions=(function,)).trace(model)
    assert [n.target for n in graph.nodes][1] is function
    with pytest.raises(TraceError):
        ours.Tracer().trace(model)


class Box(metaclass=ours.ProxyableClassMeta):
    def __init__(self, a, b=1):
        self.a, self.b = a, b

    def total(self):
        return self.a + self.b


def test_proxyable_classes():
    graph = ours.Tracer().trace(lambda x: Box(x, b=2).total())
    assert "call_function[target=test_tracer.Box]" in str(graph).replace("tests.python.", "")
    box = Box(1)
    assert isinstance(box, Box) and box.total() == 2
    root = ours.Tracer()
    assert "_Box_constant_0" in str(root.trace(lambda x: x.f(box)))
    assert root.root._Box_constant_0 is box


# ---- errors ----------------------------------------------------------------------------------


def condition(x):
    if x.sum() > 0:
        return x
    return -x


def loop(x):
    for _ in x:
        pass


def bad_argument(x):
    return x + object()


class NewModule(nn.Module):
    def forward(self, x):
        return nn.Linear(3, 3)(x)


class Stray(nn.Module):
    def forward(self, x):
        return x + nn.Parameter(torch.ones(1))


def raising(x):
    raise KeyError("mine")


def proxy_key(x):
    return x.f({x: 1})


def endless(x):
    return endless(x + 1)


ERRORS = [
    (condition, "cannot be used as inputs to control flow", "if x.sum() > 0"),
    (loop, "cannot be iterated", "for _ in x"),
    (bad_argument, "argument of type: <class 'object'>", "x + object()"),
    (NewModule(), "module is not installed as a submodule", "nn.Linear(3, 3)(x)"),
    (Stray(), "parameter is not a member", "nn.Parameter(torch.ones(1))"),
    (raising, "mine", ""),
    (proxy_key, "cannot contain a Node", "x.f({x: 1})"),
    (lambda x: range(x), "cannot be interpreted as an integer", ""),
    (lambda x: int(x), "int() argument must be", ""),
    (endless, "recursion", ""),
    (torch.relu, "Expected FunctionType", ""),
]


def test_the_root_of_a_function():
    tracer = ours.Tracer()
    assert not hasattr(tracer, "root") and not hasattr(ours.Tracer, "root")
    graph = tracer.trace(lambda x: x + 1)
    root = tracer.root
    assert type(root) is torch.nn.Module and tracer.root is root
    tracer.trace(lambda x: x + torch.ones(2))
    assert tracer.root is not root and torch.equal(tracer.root._tensor_constant0, torch.ones(2))
    module = torch.nn.Linear(2, 2)
    tracer.trace(module)
    assert tracer.root is module
    assert cfx.GraphModule({}, graph)(1) == 2


@pytest.mark.parametrize("root, message, line", ERRORS, ids=lambda v: getattr(v, "__name__", None))
def test_errors(root, message, line):
    code = [f.__code__ for f in (nn.Module.__call__, nn.Module.__getattr__)]
    raised = []
    for fx in BOTH:
        with pytest.raises(Exception) as error:
            fx.Tracer().trace(root)
        raised.append(error)
    assert raised[1].type.__name__ == raised[0].type.__name__
    text = str(raised[1].value)
    assert message in text and line in text
    if line:
        assert f"{__file__}:" in text and "to do: " in text
    assert [f.__code__ for f in (nn.Module.__call__, nn.Module.__getattr__)] == code
    assert not ours.is_fx_tracing()


@pytest.mark.parametrize("use", [int, float, complex, range, operator.index])
def test_errors_of_pythons_own_have_a_note(use):
    with pytest.raises(TypeError) as error:
        ours.Tracer().trace(lambda x: use(x.sum()))
    (note,) = error.value.__notes__
    assert f"{__file__}:" in note and "use(x.sum())" in note and "to do: " in note
    with pytest.raises(TypeError) as error:
        ours.Tracer().trace(lambda x: 1 + "a")
    assert not hasattr(error.value, "__notes__")


def test_length_of_a_proxy():
    for fx in BOTH:
        with pytest.raises(RuntimeError, match="'len' is not supported in symbolic tracing"):
            fx.Tracer().trace(lambda x: x.__len__())


class Boom(Exception):
    pass


@pytest.mark.parametrize("step", STEPS)
def test_a_tracer_survives_its_overrides(step):
    """An exception in any override, at any call of it, leaves nothing hooked; then it works."""
    plain = str(ours.Tracer().trace(Net()))
    code = [f.__code__ for f in (nn.Module.__call__, nn.Module.__getattr__)]
    names = dict(vars(math)), dict(globals())

    class Failing(ours.Tracer):
        left = 0

    def method(self, *args, **kwargs):
        Failing.left -= 1
        if Failing.left == 0:
            raise Boom
        return getattr(ours.Tracer, step)(self, *args, **kwargs)

    setattr(Failing, step, method)
    tracer = Failing()
    for nth in range(1, 200):
        Failing.left = nth
        try:
            text = str(tracer.trace(Net()))
        except Boom:
            assert [f.__code__ for f in (nn.Module.__call__, nn.Module.__getattr__)] == code
            assert (dict(vars(math)), dict(globals())) == names
            assert not tracer._busy and not ours.is_fx_tracing()
            continue
        break
    assert nth > 1 and text == plain


def test_values_of_another_trace():
    kept = []

    def keep(x):
        kept.append(x)
        return x + 1

    ours.Tracer().trace(keep)
    for use in (lambda y: y + kept[0], lambda y: torch.add(y, kept[0]), lambda y: [kept[0]]):
        with pytest.raises(RuntimeError, match="another graph|multiple different tracers"):
            ours.Tracer().trace(use)
    assert (kept[0] * 2).node.graph is kept[0].node.graph


def test_a_tracer_does_one_thing_at_a_time():
    tracer = ours.Tracer()
    with pytest.raises(RuntimeError, match="is already tracing"):
        tracer.trace(lambda x: tracer.trace(lambda y: y))
    inside, go_on = threading.Event(), threading.Event()

    def slow(x):
        inside.set()
        go_on.wait(10)
        return x

    thread = threading.Thread(target=tracer.trace, args=(slow,))
    thread.start()
    inside.wait(10)
    try:
        with pytest.raises(RuntimeError, match="is already tracing"):
            tracer.trace(lambda y: y)
    finally:
        go_on.set()
        thread.join()
    assert len(tracer.trace(lambda y: y).nodes) == 2


def test_a_trace_inside_a_trace():
    def outer(x):
        inner = ours.Tracer().trace(Net())
        return x + len(inner.nodes)

    assert f"(%x, {len(ours.Tracer().trace(Net()).nodes)})" in str(ours.Tracer().trace(outer))


# ---- better than torch.fx --------------------------------------------------------------------


def test_locations():
    graph = ours.Tracer().trace(Net())
    places = {n.name: n._location for n in graph.nodes}
    first = Block.forward.__code__.co_firstlineno
    where = __file__, Net.forward.__code__.co_firstlineno
    assert places["x"] == places["output"] == where
    assert places["a_lin"] == places["a_lin_2"] == (__file__, first + 1)
    assert places["mul"] == (__file__, first + 2)
    assert places["seq_0"] == (__file__, Net.forward.__code__.co_firstlineno + 3)
    many = "def f(x):\n" + "    x = x + 1\n" * 300 + "    return x\n"
    scope = {}
    exec(compile(many, "many.py", "exec"), scope)
    lines = [n._location for n in ours.Tracer().trace(scope["f"]).nodes if n.op == "call_function"]
    assert lines == [("many.py", line) for line in range(2, 302)]


def test_stack_traces():
    class Recording(ours.Tracer):
        record_stack_traces = True

    graph = Recording().trace(Net())
    trace = next(n for n in graph.nodes if n.name == "a_lin").stack_trace
    lines = trace.splitlines()
    assert lines[0].startswith('File "') and "in forward" in lines[0]
    assert lines[-1].strip() == "x = self.lin(x)" and "x = self.a(x)" in trace
    assert "cfx" not in trace.replace(__file__, "")
    assert all(n.stack_trace is None for n in ours.Tracer().trace(Net()).nodes)


def test_asserts():
    class Asserting(ours.Tracer):
        trace_asserts = True

    scope = {}  # pytest rewrites asserts, but not these
    exec("def f(x):\n    assert x.shape[0] == 2, 'two'\n    assert x\n    return x\n", scope)
    assert str(Asserting().trace(scope["f"])).count("target=cfx.proxy.assert_fn]") == 2
    with pytest.raises(TraceError):
        Asserting().trace(condition)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are evaluated at once")
def test_annotations_that_do_not_exist():
    """Python does not mind before somebody asks for them; those that exist are kept."""
    scope = {}
    exec("def f(x: int, y: Nonsense) -> Nonsense:\n    return x + y\n", scope)
    graph = ours.Tracer().trace(scope["f"])
    assert [n.type for n in graph.nodes] == [int, None, None, None]


def test_scopes_survive_copies_pickle_and_text():
    graph = ours.Tracer().trace(Net())
    want = [n.meta.get("nn_module_stack") for n in graph.nodes]
    for same in (copy.deepcopy(graph), pickle.loads(pickle.dumps(ours.Tracer().trace(Net())))):
        assert [n.meta.get("nn_module_stack") for n in same.nodes] == want
    fresh = ours.Tracer().trace(lambda x: x.relu())
    assert cfx.equal(cfx.parse(cfx.text(fresh)), fresh)


def test_copies_of_proxies():
    kept = []

    def function(x):
        y = x.relu()
        kept.extend([y, copy.copy(y), copy.copy(x.shape)])
        return y

    graph = ours.Tracer().trace(function)
    relu = list(graph.nodes)[1]
    assert kept[0].node is kept[1].node is relu and kept[1] is not kept[0]
    assert repr(kept[0]) == "Proxy(relu)" and len({*kept}) == 3
    deep = copy.deepcopy(kept[0])
    assert deep.node.name == "relu" and deep.node.graph is deep.tracer.graph is not graph


def test_erased_nodes_of_proxies_stay_readable():
    graph = cfx.Graph()
    x = Proxy(graph.placeholder("x"))
    proxies = [x.relu() for _ in range(100)]
    for proxy in proxies[::2]:
        graph.erase_node(proxy.node)
    for node in list(graph.nodes)[1:]:
        graph.erase_node(node)
    for _ in range(200):
        graph.placeholder("y")
    assert [p.node.name for p in proxies[1::2]] == [f"relu_{i}" for i in range(1, 100, 2)]
    assert all(p.node._erased for p in proxies)


def test_captures_leave_nothing_behind():
    def function(x):
        return math.sqrt(x.f(torch.ones(1)))

    block = Block()

    def run(n):
        for _ in range(n):
            ours.Tracer().trace(block)
            ours.Tracer().trace(function)
        gc.collect()
        return len(gc.get_objects())

    run(20)
    before = run(5)
    references = sys.getrefcount(Block)
    assert run(200) - before < 50
    assert sys.getrefcount(Block) - references < 5


def test_scope_class():
    scope = Scope("a.b", nn.ReLU)
    from cfx.proxy import ScopeContextManager

    with ScopeContextManager(scope, Scope("c", None)) as inner:
        assert inner is scope and (scope.module_path, scope.module_type) == ("c", None)
    assert scope.module_path == "a.b"


def test_inputs_made_of_a_pytree_come_from_the_function():
    def f(x, pair):
        return x + pair[0] * pair[1]

    graph = ours.Tracer().trace(f, {"pair": (ours.PH, ours.PH)})
    here = f.__code__.co_filename, f.__code__.co_firstlineno
    assert [n._location for n in graph.find_nodes(op="placeholder")] == [here] * 3
    mul = graph.find_nodes(op="call_function", target=operator.mul)[0]
    assert mul._location == (here[0], here[1] + 1)


def test_many_constants_cost_no_more_than_few_each():
    """Neither their names nor the tensors of the root are gone through for each."""
    asked = []

    class Root(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tensors = [torch.ones(1) for _ in range(50)]

        def __getattribute__(self, name):
            asked.append(name)
            return super().__getattribute__(name)

        def forward(self, x):
            for t in self.tensors:
                x = x + t
            return x

    module = cfx.symbolic_trace(Root())
    assert torch.equal(module(torch.zeros(1)), torch.full((1,), 50.0))
    assert hasattr(module, "_tensor_constant49") and not hasattr(module, "_tensor_constant50")
    assert sum(name.startswith("_tensor_constant") for name in asked) < 250
