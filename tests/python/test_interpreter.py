"""Interpreter: the same runs with torch.fx and with cfx, and what only cfx does."""
import contextlib
import copy
import gc
import operator
import pickle
import threading
import weakref

import pytest
from parity import growth, outcome, same

import cfx

torch = pytest.importorskip("torch")
import torch.fx  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.twice = Twice()
        self.inner = torch.nn.Sequential(Twice())
        self.inner.number = 3
        self.p = 5


class Twice(torch.nn.Module):
    def forward(self, x, add=0):
        return 2 * x + add


def build(fx):
    """Every opcode, a default, nested arguments."""
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.placeholder("y", default_value=7)
    a = graph.call_module("twice", (x,), {"add": y})
    b = graph.get_attr("p")
    c = graph.call_function(operator.add, (a, b))
    d = graph.call_method("__mul__", (c, y))
    e = graph.call_module("inner.0", (d,))
    graph.output((e, [d, {"k": c}], slice(a, None)))
    return graph


def chain(fx, *targets):
    graph = fx.Graph()
    value = graph.placeholder("x")
    for target in targets:
        value = graph.call_function(target, (value,))
    graph.output(value)
    return graph


def error(call):
    """What a call raises, and its cause; torch.fx's last line advertises a tool."""
    try:
        return f"no error: {call()!r}"
    except BaseException as e:
        lines = [line for line in "\n".join(map(str, e.args)).split("\n") if "tlparse" not in line]
        return type(e).__name__, lines, type(e.__cause__).__name__


# ---- running ----------------------------------------------------------------------------------


@same
def test_run(fx, show):
    graph = build(fx)
    for collect in (True, False):
        interpreter = fx.Interpreter(Net(), garbage_collect_values=collect, graph=graph)
        show(interpreter.name, interpreter.extra_traceback, interpreter.graph is graph)
        result = interpreter.run(3)
        show(result, type(result[1]).__name__, type(result[1][1]).__name__)
        show(list(map(str, interpreter.env)), list(interpreter.args_iter))
        show(interpreter.run(3, 1), interpreter.run(1, 2, 3, 4))
        show(list(interpreter.submodules))


@same
def test_initial_env(fx, show):
    graph = build(fx)
    interpreter = fx.Interpreter(Net(), graph=graph)
    x, y, a, b, c, *_ = graph.nodes
    env = {x: 1, y: 2}
    show(interpreter.run(initial_env=env), interpreter.env is env, list(map(str, env)))
    show(interpreter.run(9, initial_env={c: 100}), list(map(str, interpreter.env)))
    show(error(lambda: interpreter.run(initial_env={c: 100})))


@same
def test_boxed_run(fx, show):
    interpreter = fx.Interpreter(Net(), graph=build(fx))
    args = [3, 1]
    show(interpreter.boxed_run(args), args)
    for wrong in ([1], [1, 2, 3]):
        show(error(lambda: interpreter.boxed_run(wrong)), wrong)


@same
def test_variadic(fx, show):
    graph = fx.Graph()
    graph.output((graph.placeholder("x"), graph.placeholder("*rest")))
    interpreter = fx.Interpreter(Net(), graph=graph)
    show(interpreter.run(1), interpreter.run(1, 2, 3), error(interpreter.run))


def test_keywords():
    """Where nothing is left for **kwargs they are what a function would see; torch.fx gives []."""
    graph = cfx.Graph()
    graph.output((graph.placeholder("x"), graph.placeholder("**rest")))
    assert cfx.Interpreter(None, graph=graph).run(1) == (1, {})


@same
def test_output(fx, show):
    graph = fx.Graph()
    graph.call_function(operator.neg, (graph.placeholder("x"),))
    interpreter = fx.Interpreter(Net(), graph=graph)
    show(interpreter.run(1), interpreter.env)
    graph = chain(fx, operator.neg)
    graph.call_function(print, (next(iter(graph.nodes)),))
    interpreter = fx.Interpreter(Net(), graph=graph)
    show(interpreter.run(1), interpreter.env)


class Doubling:
    """A code generator that changes inputs and outputs."""

    def process_inputs(self, *args):
        return [2 * arg for arg in args]

    def process_outputs(self, result):
        return [result]


@same
def test_io_processing(fx, show):
    graph = chain(fx, operator.neg)
    graph.set_codegen(type("Codegen", (Doubling, fx.CodeGen), {})())
    interpreter = fx.Interpreter(Net(), graph=graph)
    show(interpreter.run(3), interpreter.run(3, enable_io_processing=False))
    show(interpreter.boxed_run([3]))
    graph = fx.Graph()
    graph.placeholder("x")
    graph.set_codegen(type("Codegen", (Doubling, fx.CodeGen), {})())
    show(fx.Interpreter(Net(), graph=graph).run(3))


@same
def test_arguments_of_init(fx, show):
    graph = chain(fx, operator.neg)
    show.error(lambda: fx.Interpreter(Net()), lambda: fx.Interpreter())
    show(fx.Interpreter(graph=graph, module=Net(), garbage_collect_values=False).run(3))
    root = Net()
    root.graph = graph
    show(fx.Interpreter(root).graph is graph, fx.Interpreter(root).run(3))


# ---- overriding -------------------------------------------------------------------------------


def logging(fx, names):
    """An Interpreter that writes down which of its steps are called, and with what."""

    def step(name):
        def method(self, *args):
            shown = [f"{type(a).__name__} {a}" for a in args]
            self.log.append(f"{name} {shown} {len(self.env)}")
            result = getattr(super(Logging, self), name)(*args)
            self.log.append(f"{name} -> {result}")
            return result

        return method

    class Logging(fx.Interpreter):
        log: list

        @contextlib.contextmanager
        def _set_current_node(self, node):
            self.log.append(f"enter {node}")
            with super()._set_current_node(node):
                yield
            self.log.append(f"leave {node}")

    for name in names:
        setattr(Logging, name, step(name))
    return Logging


STEPS = ["run_node", "placeholder", "get_attr", "call_function", "call_method", "call_module"]
STEPS += ["output", "fetch_attr", "fetch_args_kwargs_from_env", "map_nodes_to_values"]


@same
def test_steps(fx, show):
    for names in (STEPS, *([name] for name in STEPS)):
        interpreter = logging(fx, names)(Net(), graph=build(fx))
        interpreter.log = []
        interpreter.run(3)
        show(*interpreter.log)


@same
def test_override_of_one_object(fx, show):
    interpreter = fx.Interpreter(Net(), graph=chain(fx, operator.neg, abs))
    interpreter.call_function = lambda target, args, kwargs: (target.__name__, args)
    show(interpreter.run(3))


@same
def test_docs_example(fx, show):
    class Swap(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            if target is torch.sigmoid:
                return torch.neg(*args, **kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            if target == "neg":
                call_self, *args_tail = args
                return call_self.sigmoid(*args_tail, **kwargs)
            return super().call_method(target, args, kwargs)

    graph = chain(fx, torch.sigmoid)
    output = list(graph.nodes)[-1]
    with graph.inserting_before(output):
        output.args = (graph.call_method("neg", (output.args[0],)),)
    show(Swap(Net(), graph=graph).run(torch.tensor([0.5, -1.0])))


@same
def test_one_step_alone(fx, show):
    graph = build(fx)
    x, y, a, b, c, d, *_ = graph.nodes
    interpreter = fx.Interpreter(Net(), graph=graph)
    show(error(lambda: interpreter.run_node(a)))
    interpreter.env.update({x: 2, y: 3, a: 4, c: 5})
    show(interpreter.run_node(a), interpreter.run_node(b), interpreter.run_node(d))
    show(interpreter.fetch_args_kwargs_from_env(a), interpreter.fetch_args_kwargs_from_env(n=d))
    show(interpreter.map_nodes_to_values([a, {"k": c}, (x, 1)], d))
    show(error(lambda: interpreter.map_nodes_to_values([b], d)))
    show(error(lambda: interpreter.placeholder("x", (), {})))
    interpreter.args_iter = iter([7, 8])
    show(interpreter.placeholder("x", (), {}), interpreter.placeholder("*x", (), {}))
    show(interpreter.placeholder("x", (3,), {}))
    show(error(lambda: interpreter.placeholder("x", (), {})))
    show(interpreter.call_function(max, [3, 4], {}), interpreter.call_method("__add__", [3, 4], {}))
    show(interpreter.call_function(target=dict, args=(), kwargs={"a": 1}))
    show(interpreter.call_module("twice", (3,), {"add": 1}), interpreter.get_attr("p", (), {}))
    show(interpreter.output("output", (5, 6), {}), error(lambda: interpreter.output("o", (), {})))


@same
def test_wrong_targets(fx, show):
    interpreter = fx.Interpreter(Net(), graph=build(fx))
    for step in ("placeholder", "get_attr", "call_method", "call_module"):
        show(error(lambda: getattr(interpreter, step)(3, (1,), {})))
    show(error(lambda: interpreter.call_function("f", (), {})))
    show(error(lambda: interpreter.call_method("foo", (), {})))
    for path in ("inner.number", "inner.0", "nope", "inner.nope.x", ""):
        show(error(lambda: interpreter.fetch_attr(path)))


def test_env_of_ones_own():
    """A step may replace env itself."""

    class Fresh(cfx.Interpreter):
        def run_node(self, n):
            value = super().run_node(n)
            self.env = dict(self.env)
            return value

    assert Fresh(Net(), graph=build(cfx)).run(3) == cfx.Interpreter(Net(), graph=build(cfx)).run(3)


# ---- values that are let go of ----------------------------------------------------------------


@same
def test_last_uses(fx, show):
    graph = build(fx)
    interpreter = fx.Interpreter(Net(), graph=graph)
    plan = interpreter.user_to_last_uses
    show({str(user): list(map(str, nodes)) for user, nodes in plan.items()})
    show(interpreter.user_to_last_uses is interpreter.user_to_last_uses)
    interpreter.user_to_last_uses.pop(list(graph.nodes)[4])  # keeps what it would have dropped
    interpreter.run(3)
    show(list(map(str, interpreter.env)))
    show.error(lambda: fx.Interpreter(Net(), False, graph).user_to_last_uses)
    show.error(lambda: interpreter.nope)


@same
def test_env_at_each_step(fx, show):
    class Watching(fx.Interpreter):
        def run_node(self, n):
            show(n, list(map(str, self.env)))
            return super().run_node(n)

    Watching(Net(), graph=build(fx)).run(3)
    Watching(Net(), graph=build(fx), garbage_collect_values=False).run(3)


class Value:
    pass


@pytest.mark.parametrize("overrides", [False, True])
def test_values_die_after_their_last_use(overrides):
    seen = []

    def make(x):
        value = Value()
        seen.append(weakref.ref(value))
        return value

    def count(x):
        return sum(ref() is not None for ref in seen)

    class Own(cfx.Interpreter):
        def call_function(self, target, args, kwargs):
            return super().call_function(target, args, kwargs)

    graph = chain(cfx, make, make, make, count)
    class_ = Own if overrides else cfx.Interpreter
    assert class_(None, graph=graph).run(1) == 1
    seen.clear()
    interpreter = class_(None, graph=graph, garbage_collect_values=False)
    assert interpreter.run(1) == 3 and len(interpreter.env) == 6


def test_edits_between_runs():
    """torch.fx's plan is made once: there, this fails."""
    graph = chain(cfx, operator.neg)
    x, neg, output = graph.nodes
    interpreter = cfx.Interpreter(None, graph=graph)
    assert interpreter.run(3) == -3
    with graph.inserting_before(output):
        output.args = (graph.call_function(operator.sub, (neg, x)),)
    assert interpreter.run(3) == -6 and list(interpreter.env) == [output]


def test_edits_during_a_run():
    class Growing(cfx.Interpreter):
        def run_node(self, n):
            if n.target is operator.neg and len(self.graph.nodes) < 20:
                with self.graph.inserting_after(n):
                    new = self.graph.call_function(operator.pos, (n,))
                n.replace_all_uses_with(new, lambda user: user is not new)
                with self.graph.inserting_after(new):
                    self.graph.call_function(operator.neg, (x,))
            if n.target is operator.pos:
                for user in list(n.users):
                    user.args = (user.args[0], x) if user.target is max else user.args
            return super().run_node(n)

    graph = chain(cfx, operator.neg, operator.neg)
    x = next(iter(graph.nodes))
    interpreter = Growing(None, graph=graph)
    assert interpreter.run(3) == 3
    assert not graph.verify() and x not in interpreter.env and len(graph.nodes) == 20

    class Erasing(cfx.Interpreter):
        def run_node(self, n):
            value = super().run_node(n)
            if n.target is operator.neg:
                n.replace_all_uses_with(n.args[0])
                self.graph.erase_node(n)
            return value

    graph = chain(cfx, operator.neg, abs)
    assert Erasing(None, graph=graph).run(3) == 3
    assert [n.op for n in graph.nodes] == ["placeholder", "call_function", "output"]


# ---- errors -----------------------------------------------------------------------------------


class Picky(Exception):
    def __init__(self, a, b):
        super().__init__()


ERRORS = [ZeroDivisionError("by zero"), ValueError(), ValueError(1), ValueError("a", "b")]
ERRORS += [KeyError("k"), KeyError(), Picky(1, 2), StopIteration(3), SystemExit(2)]
ERRORS += [UnicodeDecodeError("utf8", b"", 0, 1, "why"), KeyboardInterrupt("stop")]


@same
def test_errors(fx, show):
    for exception in ERRORS:

        def fail(x):
            raise copy.copy(exception) if not isinstance(exception, Picky) else Picky(1, 2)

        graph = chain(fx, operator.neg, fail)
        interpreter = fx.Interpreter(Net(), graph=graph)
        show(error(lambda: interpreter.run(3)))
        list(graph.nodes)[2].stack_trace = '  File "a.py", line 3, in f\n    fail(x)\n'
        show(error(lambda: interpreter.run(3)))
        interpreter.extra_traceback = False
        show(error(lambda: interpreter.run(3)))


@same
def test_missing(fx, show):
    graph = build(fx)
    show(error(fx.Interpreter(Net(), graph=graph).run))
    for make in (lambda: graph.get_attr("a.b"), lambda: graph.call_module("inner.b.c")):
        graph = fx.Graph()
        graph.output(make())
        show(error(fx.Interpreter(Net(), graph=graph).run))
    graph = chain(fx, operator.neg)
    x, neg, output = graph.nodes
    neg.append(x)
    show(error(lambda: fx.Interpreter(Net(), graph=graph).run(1)))


def test_location():
    graph = chain(cfx, operator.neg)
    list(graph.nodes)[1]._location = ("model.py", 12)
    with pytest.raises(TypeError) as caught:
        cfx.Interpreter(None, graph=graph).run("text")
    said = str(caught.value)
    assert "While executing %neg : [num_users=1] = call_function[target=operator.neg]" in said
    assert said.endswith('Original traceback:\n  File "model.py", line 12')
    assert caught.traceback[-1].name == "run"  # and no frames of the loop


def test_bad_overrides():
    def check(match, exception, **overrides):
        class_ = type("Bad", (cfx.Interpreter,), overrides)
        with pytest.raises(exception, match=match):
            class_(Net(), graph=build(cfx)).run(3)

    check("pair", AssertionError, fetch_args_kwargs_from_env=lambda self, n: 3)
    check("tuple and a dict", AssertionError, fetch_args_kwargs_from_env=lambda self, n: (3, {}))
    check("tuple and a dict", AssertionError, map_nodes_to_values=lambda self, args, n: [])
    check("__enter__", AttributeError, _set_current_node=lambda self, node: 3)
    check("no attribute 'env'", AttributeError, run_node=lambda self, n: vars(self).pop("env"))
    check("env must be a dict", TypeError, run_node=lambda self, n: setattr(self, "env", []))
    interpreter = cfx.Interpreter(Net(), graph=build(cfx))
    interpreter.user_to_last_uses = 3
    with pytest.raises(TypeError, match="user_to_last_uses must be a dict"):
        interpreter.run(3)
    with pytest.raises(TypeError, match="expects a Node"):
        interpreter.run_node(3)
    interpreter.graph = 3
    with pytest.raises(AttributeError, match="process_inputs"):
        interpreter.run(3)
    with pytest.raises(TypeError, match="runs a cfx.Graph"):
        interpreter.run(3, enable_io_processing=False)


def test_a_graph_module_of_torch_fx_is_converted():
    theirs = torch.fx.symbolic_trace(Twice())
    interpreter = cfx.Interpreter(theirs)
    assert isinstance(interpreter.module, cfx.GraphModule)
    assert interpreter.run(3, 4) == theirs(3, 4) == 10


@same
def test_context_that_swallows(fx, show):
    class Swallowing(fx.Interpreter):
        @contextlib.contextmanager
        def _set_current_node(self, node):
            try:
                yield
            except TypeError:
                show("swallowed", node)

    show(Swallowing(Net(), graph=chain(fx, operator.neg, id)).run("text") == id(None))


# ---- regions ----------------------------------------------------------------------------------


def region(names, make):
    graph = cfx.Graph()
    graph.output(make(graph, *[graph.placeholder(name) for name in names]))
    return graph


def with_regions():
    """2 * x (by the module's sub-module) three times if p holds, else -x."""
    step = region(["i", "x"], lambda g, i, x: (g.call_module("twice", (x,)),))
    loop = region(["x"], lambda g, x: g.call_function(cfx.for_loop, (3, step, (x,))))
    neg = region(["x"], lambda g, x: (g.call_function(operator.neg, (x,)),))
    graph = cfx.Graph()
    p, x = graph.placeholder("p"), graph.placeholder("x")
    graph.output(graph.call_function(cfx.cond, (p, loop), {"otherwise": neg, "operands": (x,)}))
    return graph


def test_regions():
    interpreter = cfx.Interpreter(Net(), graph=with_regions())
    assert interpreter.run(True, 5) == (40,) and interpreter.run(False, 5) == (-5,)
    assert interpreter.user_to_last_uses and interpreter.run(True, 5) == (40,)


def test_overrides_hold_inside_regions():
    class Counting(cfx.Interpreter):
        modules = 0

        def call_module(self, target, args, kwargs):
            Counting.modules += 1
            return super().call_module(target, args, kwargs)

    assert Counting(Net(), graph=with_regions()).run(True, 5) == (40,)
    assert Counting.modules == 3


def test_errors_inside_regions():
    with pytest.raises(TypeError) as caught:
        cfx.Interpreter(Net(), graph=with_regions()).run(False, "text")
    assert str(caught.value).count("While executing") == 2


# ---- life -------------------------------------------------------------------------------------


def test_copies():
    interpreter = cfx.Interpreter(None, graph=chain(cfx, operator.neg))
    for copied in (copy.copy(interpreter), copy.deepcopy(interpreter)):
        assert copied.run(3) == -3
    assert pickle.loads(pickle.dumps(interpreter)).run(3) == -3


def test_no_leaks():
    graph = build(cfx)
    net = Net()

    class Own(cfx.Interpreter):
        def run_node(self, n):
            return super().run_node(n)

    def work():
        for class_ in (cfx.Interpreter, Own):
            assert class_(net, graph=graph).run(3)[0] == 252
        with contextlib.suppress(RuntimeError):
            cfx.Interpreter(net, graph=graph).run()

    assert growth(work, 5_000) < 1 << 20


def test_cycles_are_collected():
    interpreter = cfx.Interpreter(None, graph=chain(cfx, lambda x: interpreter))
    interpreter.run(1)
    ref = weakref.ref(interpreter)
    del interpreter
    gc.collect()
    assert ref() is None


def test_recursion_and_threads():
    def fib(n):
        return n if n < 2 else run(n - 1) + run(n - 2)

    graph = chain(cfx, fib)

    def run(n):
        return cfx.Interpreter(None, graph=graph).run(n)

    results = []
    threads = [threading.Thread(target=lambda: results.append(run(12))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [144] * 4


def test_many_values():
    """Wide and deep graphs: the plan is linear."""
    graph = cfx.Graph()
    x = graph.placeholder("x")
    users = [graph.call_function(operator.add, (x, i)) for i in range(20_000)]
    graph.output(graph.call_function(sum, (users,)))
    assert cfx.Interpreter(None, graph=graph).run(1) == sum(range(1, 20_001))


def test_outcome_of_a_missing_function():
    graph = cfx.parse("graph():\n  %f = call_function[target=nowhere.f]()\n  output(%f)\n")
    assert outcome(cfx.Interpreter(None, graph=graph).run).startswith("NameError: 'nowhere.f'")
