"""Generated code runs: against evaluating the graph node by node, with regions, without torch. And
what cfx writes differently from torch.fx on purpose."""
import gc
import math
import operator
import os
import random
import subprocess
import sys
import textwrap
import threading
import types
import weakref
from typing import Callable

import pytest
import torch
from codegen_cases import CFX, Color, RandomGraph, check
from parity import evaluate, growth

import cfx

pytestmark = pytest.mark.filterwarnings("ignore")


def compiled(graph, root=None):
    code = graph.python_code("self")
    scope = dict(code.globals)
    exec(compile(code.src, "<generated>", "exec"), scope)
    return types.MethodType(scope["forward"], root if root is not None else object())


def body(graph):
    return textwrap.dedent("\n".join(graph.python_code("self").src.split("\n")[4:])).strip("\n")


# ---- against the evaluator --------------------------------------------------------------------


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
        self.weight = torch.nn.Parameter(torch.randn(3, 3))


def swap(pair):
    return pair[1], pair[0]


NET = Net()
BINARY = [torch.add, torch.mul, torch.maximum, operator.add, operator.sub, operator.mul,
          operator.truediv, operator.matmul]


def numeric(seed):
    """A random graph of 3x3 tensors that can be run."""
    rng = random.Random(seed)
    graph = cfx.Graph()
    nodes = [graph.placeholder("x"), graph.placeholder("y", default_value=2.0)]
    for _ in range(rng.randint(1, 30)):
        a, b = rng.choice(nodes), rng.choice(nodes)
        kind = rng.randrange(8)
        if kind == 0:
            n = graph.call_module(rng.choice(["layers.0", "layers.1", "layers"]), (a,))
        elif kind == 1:
            n = graph.get_attr(rng.choice(["weight", "layers.0.weight"]))
        elif kind == 2:
            n = graph.call_method(rng.choice(["tanh", "sigmoid", "clone"]), (a,))
        elif kind == 3:
            n = graph.call_function(torch.clamp, (a,), {"min": -1, "max": math.inf})
        elif kind == 4:
            pair = graph.call_function(swap, ((a, [b]),))
            n = graph.call_function(operator.getitem, (pair, 1))
        elif kind == 5:
            rows = graph.call_function(operator.getitem, (a, (slice(None), slice(0, 2))))
            rest = graph.call_function(operator.getitem, (b, (..., slice(2, None, None))))
            n = graph.call_function(torch.cat, ([rows, rest],), {"dim": 1})
        elif kind == 6:
            copy = graph.call_method("clone", (a,))
            n = graph.call_function(rng.choice([operator.iadd, operator.imul]), (copy, b))
        else:
            n = graph.call_function(rng.choice(BINARY), (a, b))
        nodes.append(n)
    result = {"all": [nodes[-1], rng.choice(nodes)], "pair": (rng.choice(nodes), None)}
    graph.output(rng.choice([result, nodes[-1], tuple(nodes[-3:])]))
    return graph


def equal(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, torch.Tensor):
        return torch.equal(a.nan_to_num(), b.nan_to_num())
    return a == b


@pytest.mark.parametrize("chunk", range(20 if os.environ.get("CFX_FULL") == "1" else 2))
def test_against_the_evaluator(chunk):
    x, y = torch.randn(3, 3), torch.randn(3, 3)
    for seed in range(chunk * 100, (chunk + 1) * 100):
        graph = numeric(seed)
        with torch.no_grad():
            expected = evaluate(graph, x.clone(), y.clone(), root=NET)
            found = compiled(graph, NET)(x.clone(), y.clone())
        assert equal(found, expected), f"seed {seed}: {graph.python_code('self').src}"


def test_values_are_let_go():
    """A value is freed right after its last use."""
    alive = []

    def note(t):
        alive.append(weakref.ref(t))
        return t + 1

    def dead(t):
        return [ref() is None for ref in alive]

    graph = cfx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(operator.mul, (x, 2))
    b = graph.call_function(note, (a,))
    graph.output(graph.call_function(dead, (b,)))
    assert compiled(graph)(torch.ones(1)) == [True]


# ---- regions ----------------------------------------------------------------------------------


def region(inputs, make):
    """A region with these inputs; `make(graph, *inputs)` gives its output."""
    graph = cfx.Graph()
    nodes = [graph.placeholder(name) for name in inputs]
    graph.output(make(graph, *nodes))
    return graph


def unary(target):
    return region(["a"], lambda g, a: g.call_function(target, (a,)))


def test_if():
    graph = cfx.Graph()
    x = graph.placeholder("x")
    test = graph.call_function(operator.gt, (graph.call_method("sum", (x,)), 0))
    branches = (unary(torch.relu), unary(operator.neg))
    graph.output(graph.call_function(cfx.cond, (test, *branches, (x,))))
    assert body(graph) == textwrap.dedent("""\
        if x.sum() > 0:
            cond = torch.relu(x)
        else:
            cond = -x
        return cond""")
    for value in (torch.ones(2), -torch.ones(2) * 3):
        assert torch.equal(compiled(graph)(value), evaluate(graph, value))


def counting(limit):
    return (
        region(["i", "acc"], lambda g, i, acc: g.call_function(operator.lt, (i, limit))),
        region(["i", "acc"], lambda g, i, acc: (g.call_function(operator.add, (i, 1)),
                                                g.call_function(operator.mul, (acc, i)))),
    )


def test_while():
    graph = cfx.Graph()
    n = graph.placeholder("n")
    loop = graph.call_function(cfx.while_loop, (*counting(5), (1, n)))
    graph.output(graph.call_function(operator.getitem, (loop, 1)))
    assert body(graph) == textwrap.dedent("""\
        i, acc = 1, n
        while i < 5:
            add = i + 1
            acc = acc * i
            i = add;  add = None
        return acc""")
    assert compiled(graph)(3) == evaluate(graph, 3) == 72


def test_for():
    graph = cfx.Graph()
    n, k = graph.placeholder("n"), graph.placeholder("k")
    step = region(["i", "acc"], lambda g, i, acc: (g.call_function(operator.iadd, (acc, i)),))
    graph.output(graph.call_function(cfx.for_loop, (k, step, (n,))))
    assert body(graph) == textwrap.dedent("""\
        acc = n
        for i in range(k):
            acc += i
        for_loop = (acc,)
        return for_loop""")
    assert compiled(graph)(3, 4) == evaluate(graph, 3, 4) == (9,)


def test_arguments_of_regions_by_name():
    graph = cfx.Graph()
    p, x = graph.placeholder("p"), graph.placeholder("x")
    kwargs = {"then": unary(abs), "otherwise": unary(operator.neg), "operands": (x,)}
    graph.output(graph.call_function(cfx.cond, (p,), kwargs))
    assert "if p:" in body(graph)
    for args in ((True, -3), (False, -3)):
        assert compiled(graph)(*args) == evaluate(graph, *args) == 3


def test_region_operators_on_functions():
    graph = cfx.Graph()
    p, x = graph.placeholder("p"), graph.placeholder("x")
    graph.output(graph.call_function(cfx.cond, (p, abs, operator.neg, (x,))))
    code = graph.python_code("self")
    assert "cond = cfx_cond(p, <built-in" in code.src and code.globals["cfx_cond"] is cfx.cond


class RandomRegions:
    """Nested control flow over integers, at random."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.graph = cfx.Graph()
        nodes = [self.graph.placeholder("x"), self.graph.placeholder("y")]
        self.graph.output(tuple(self.fill(self.graph, nodes, 0)))

    def fill(self, graph, nodes, depth):
        nodes = list(nodes)
        for _ in range(self.rng.randint(1, 4)):
            kind = self.rng.randrange(5 if depth < 3 else 2)
            a, b = self.rng.choice(nodes), self.rng.choice(nodes + [self.rng.randint(-3, 3)])
            if kind < 2:
                # in a function without regions x += 1 rebinds x, as in torch.fx
                inplace = [operator.iadd, operator.isub] if depth else []
                target = self.rng.choice([operator.add, operator.sub, max, *inplace])
                nodes.append(graph.call_function(target, (a, b)))
                continue
            make = (self.cond, self.while_loop, self.for_loop)[kind - 2]
            nodes += make(graph, a, b, depth)
        return nodes[-2:]

    def region(self, inputs, n_outputs, depth):
        graph = cfx.Graph()
        nodes = [graph.placeholder(name) for name in inputs]
        values = self.fill(graph, nodes, depth + 1)
        graph.output(tuple(values[:n_outputs]))
        return graph

    def unpack(self, graph, node, n):
        return [graph.call_function(operator.getitem, (node, i)) for i in range(n)]

    def cond(self, graph, a, b, depth):
        test = graph.call_function(operator.lt, (a, b))
        names = self.rng.choice([("x", "y"), ("p", "q")])
        branches = [self.region(names, 2, depth) for _ in range(2)]
        return self.unpack(graph, graph.call_function(cfx.cond, (test, *branches, (a, b))), 2)

    def while_loop(self, graph, a, b, depth):
        test = region(["i", "x"], lambda g, i, x: g.call_function(operator.lt, (i, 3)))

        def step(g, i, x):
            values = self.fill(g, [i, x], depth + 1)
            return g.call_function(operator.add, (i, 1)), values[0]

        start = self.rng.randint(0, 3)
        loop = graph.call_function(
            cfx.while_loop, (test, region(["i", "x"], step), (start, a)))
        return self.unpack(graph, loop, 2)

    def for_loop(self, graph, a, b, depth):
        step = self.region(["i", "x", "y"], 2, depth)
        loop = graph.call_function(cfx.for_loop, (self.rng.randint(0, 3), step, (a, b)))
        return self.unpack(graph, loop, 2)


@pytest.mark.parametrize("chunk", range(20 if os.environ.get("CFX_FULL") == "1" else 2))
def test_random_regions(chunk):
    for seed in range(chunk * 100, (chunk + 1) * 100):
        graph = RandomRegions(seed).graph
        expected = evaluate(graph, 1, -2)
        assert compiled(graph)(1, -2) == expected, f"seed {seed}"
        with graph.on_generate_code(lambda _: lambda body: body):
            assert compiled(graph)(1, -2) == expected, f"seed {seed}, transformed"


# ---- what is different on purpose (docs/codegen.md) -------------------------------------------


def one_call(method, target, args):
    graph = cfx.Graph()
    graph.output(getattr(graph, method)(target, args))
    return graph


@pytest.mark.parametrize("method, target, args, text", [
    ("call_function", operator.pow, (-2, 2), "(-2) ** 2"),
    ("call_method", "bit_length", (3,), "(3).bit_length()"),
    ("call_method", "is_integer", (-1.5,), "(-1.5).is_integer()"),
    ("call_function", getattr, (3, "real"), "(3).real"),
    ("call_function", complex, (complex(0, math.inf),), "complex(complex(0.0, inf))"),
])  # fmt: skip
def test_literals_that_mean_what_they_say(method, target, args, text):
    graph = one_call(method, target, args)
    assert text in graph.python_code("self").src
    assert compiled(graph)() == evaluate(graph)


def test_counter_in_a_string():
    graph = one_call("call_function", str, ("# COUNTER: 1",))
    assert compiled(graph)() == "# COUNTER: 1"


def test_hash_in_a_default():
    graph = cfx.Graph()
    graph.output(graph.placeholder("x", default_value="a#b"))
    code = graph.python_code("self", expanded_def=True)
    assert "    x = 'a#b',\n" in code.src


def test_outputs_without_description():
    """torch.fx leaves out the outputs that have none."""
    graph = cfx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    graph.output((x, y))
    graph.output_node().meta["desc"] = ["only"]
    src = graph.python_code("self", expanded_def=True).src
    assert src.endswith("    return (\n        x,  # only\n        y,\n    )\n    ")


def test_boxed_parameter_with_description():
    """torch.fx lets the description swallow the assignment."""
    graph = cfx.Graph()
    x = graph.placeholder("x")
    x.meta["desc"] = "D"
    graph.output(x)
    graph.set_codegen(cfx.graph._BoxedCodeGen())
    assert "\n    x = next(args_iter)\n" in graph.python_code("self", expanded_def=True).src


def test_type_of_a_callable():
    """torch.fx fails: unhashable type: 'list'."""
    graph = cfx.Graph()
    graph.output(graph.placeholder("x", type_expr=Callable[[int], str]))
    assert "x : collections_abc_Callable[[int],str]" in graph.python_code("self").src


def test_unknown_dtype():
    graph = cfx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.quint8)
    graph.output(x)
    assert 'x: "quint8[2]"' in graph.python_code("self", verbose=True).src


# ---- one run inside another, many at once -----------------------------------------------------


def test_run_inside_a_run():
    class Nosy:
        runs = 0

        def __repr__(self):
            if self.runs:
                self.runs -= 1
                str(graph), graph.python_code("self", verbose=True), hash(graph)
            return "Nosy()"

    nosy = Nosy()
    graph = RandomGraph(CFX, 5, 30).graph
    graph.call_function(print, (nosy, *list(graph.nodes)[:3]))
    expected = graph.python_code("self").src
    nosy.runs = 3
    assert graph.python_code("self").src == expected and nosy.runs == 0


def test_names_in_reprs_end_with_the_run():
    graph = cfx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    y.name = "x"
    fail = graph.call_function(eval("lambda a: a"), ({y},))
    with pytest.raises(RuntimeError, match="lambda"):
        graph.python_code("self")
    assert repr(y) == "x"
    graph.erase_node(fail)
    graph.output({y})
    assert "return {x_1}" in graph.python_code("self").src
    assert repr(y) == "x"


def test_threads():
    graph = RandomGraph(CFX, 11, 60).graph
    expected = {verbose: graph.python_code("self", verbose=verbose).src for verbose in (0, 1)}
    wrong = []

    def work(verbose):
        for _ in range(50):
            if graph.python_code("self", verbose=verbose).src != expected[verbose]:
                wrong.append(verbose)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


def test_tools_end_with_the_run():
    kept = []

    class Keeping(cfx.CodeGen):
        def generate_output(self, output_args, *, repr_fn=None):
            kept.append(repr_fn)
            return f"return {repr_fn(output_args)}"

    graph = one_call("call_function", len, ((1, Color.RED),))
    graph.set_codegen(Keeping())
    graph.python_code("self")
    with pytest.raises(RuntimeError, match="only while the code is being generated"):
        kept[0](1)


def grows(call):
    """Whether memory grows each time: an allocator may take a step once."""
    return min(growth(call, 3_000) for _ in range(3)) > 100_000


def test_memory():
    graph = RandomGraph(CFX, 3, 20).graph
    for options in ({}, {"verbose": True, "expanded_def": True}):
        assert not grows(lambda: graph.python_code("self", **options))

    class Broken(cfx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            raise ValueError

    graph.set_codegen(Broken())

    def fail():
        with pytest.raises(ValueError):
            graph.python_code("self")

    assert not grows(fail)


def test_nothing_is_kept():
    """A run leaves no cycle behind."""
    graph = RandomGraph(CFX, 4, 20).graph
    gc.collect()
    gc.disable()
    try:
        for options in ({}, {"verbose": True}, {"expanded_def": True}):
            graph.python_code("self", **options)
            assert gc.collect() == 0, options
    finally:
        gc.enable()


def test_large_graph():
    def build(lib):
        graph = lib.Graph()
        n = graph.placeholder("x")
        for i in range(20_000):
            n = graph.call_function(torch.relu if i % 2 else operator.add, (n, 1))
        graph.output(n)
        return graph

    check(build)


# ---- without torch ----------------------------------------------------------------------------

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # cannot be imported
import operator, math, enum
import cfx

class Color(enum.Enum):
    RED = 1

graph = cfx.Graph()
x = graph.placeholder("x", type_expr=int)
a = graph.call_function(operator.add, (x, math.inf))
b = graph.call_function(max, (a, 3))
c = graph.call_function(math.floor, (x,))
graph.output((b, c, Color.RED))
for options in ({}, {"verbose": True, "expanded_def": True, "colored": False}):
    code = graph.python_code("self", **options)
    exec(code.src, code.globals)
    assert code.globals["forward"](None, 2) == (math.inf, 2, Color.RED)
assert list(graph.python_code("self").globals) == [
    "inf", "nan", "NoneType", "fx_pytree", "int", "max", "math_floor", "Color"
]
code = cfx.parse('graph():\\n  %x = placeholder[target=x]()\\n'
                 '  %r = call_function[target=torch.relu](%x)\\n  output(%r)\\n')
code = code.python_code("self")
assert "torch.relu(x)" in code.src and "torch" not in code.globals
assert cfx.graph.dtype_abbrs == {}
print("fine")
"""


def test_without_torch():
    result = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True,
                            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert result.stdout == "fine\n", result.stderr


def test_torch_loaded_later():
    script = (
        "import cfx, sys\n"
        "assert 'torch' not in sys.modules and 'torch' not in cfx.Graph().python_code('').globals\n"
        "import torch\n"
        "print(list(cfx.Graph().python_code('').globals), cfx.graph.dtype_abbrs[torch.int8])\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    expected = "['inf', 'nan', 'NoneType', 'torch', 'device', 'fx_pytree', 'pytree'] i8\n"
    assert result.stdout == expected, result.stderr
