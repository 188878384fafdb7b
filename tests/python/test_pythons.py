"""What differs between versions of Python (python/src/base/pythons.h, python/src/trace/bytecode.c):
each test passes on every one of them. None needs torch."""
import gc
import operator
import os
import re
import subprocess
import sys
import sysconfig
import threading
import types
from pathlib import Path

import pytest

import cfx
from cfx import _core
from cfx.immutable_collections import immutable_dict, immutable_list
from cfx.proxy import GraphAppendingTracer, Proxy

ROOT = Path(__file__).resolve().parents[2]
INTERPRETERS = ("_interpreters", "_xxsubinterpreters")  # of 3.13, and of those before


class Asserting(GraphAppendingTracer):
    trace_asserts = True


def proxies(tracer, *names):
    graph = cfx.Graph()
    made = tracer(graph)
    return [Proxy(graph.placeholder(name), made) for name in names]


def function(source):
    """pytest rewrites the asserts of its files, but not these."""
    scope = {}
    exec(source, scope)
    return scope["f"]


# ---- values that contain themselves, and deep ones ----------------------------------------------


def endless(kind):
    value = [] if kind is list else {}
    if kind is list:
        value.append(value)
    elif kind is dict:
        value["a"] = value
    else:
        value = [(value, slice(value, 1))]
        value[0][0]["a"] = value
    return value


USES = {
    "map_arg": lambda v: cfx.node.map_arg(v, lambda n: n),
    "map_aggregate": lambda v: cfx.node.map_aggregate(v, lambda n: n),
    "map_all": lambda v: _core._map_all(v, lambda n: n),
    "call_function": lambda v: cfx.Graph().call_function(operator.add, (v,)),
    "keyword": lambda v: cfx.Graph().call_function(operator.add, (), {"a": v}),
    "args": lambda v: setattr(cfx.Graph().call_function(operator.neg), "args", (v,)),
    "output": lambda v: cfx.Graph().output(v),
    "proxy": lambda v: proxies(GraphAppendingTracer, "x")[0].f(v),
    "operator": lambda v: proxies(GraphAppendingTracer, "x")[0] + v,
}


@pytest.mark.parametrize("kind", [list, dict, slice], ids=lambda k: k.__name__)
@pytest.mark.parametrize("use", USES)
def test_values_that_contain_themselves(use, kind):
    with pytest.raises(RecursionError):
        USES[use](endless(kind))


def test_they_are_refused_in_threads_too():
    """Whose stacks may be smaller, and which count for themselves."""
    raised = []

    def run():
        for use in USES.values():
            try:
                use(endless(list))
            except RecursionError:
                raised.append(use)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(raised) == 4 * len(USES)
    assert cfx.node.map_arg([[1]], lambda n: n) == [[1]]  # they have been left, too


def test_hashes_of_deep_lists():
    deep = immutable_list()
    for _ in range(100_000):
        deep = immutable_list([deep])
    with pytest.raises(RecursionError):
        hash(deep)
    deep = immutable_dict()
    for _ in range(100_000):
        deep = immutable_dict(a=deep)
    with pytest.raises(RecursionError):
        hash(deep)
    del deep
    gc.collect()


# ---- bytecode -----------------------------------------------------------------------------------


ASSERTS = ["x", "x == 2, 'two'", "x.f() < 3", "2 >= x", "x[0], x", "x is not None and x"]


@pytest.mark.parametrize("condition", ASSERTS)
def test_asserts(condition):
    (x,) = proxies(Asserting, "x")
    f = function(f"def f(x):\n    assert {condition}\n    return x + 1\n")
    f(x)
    targets = [n.target for n in x.node.graph.nodes]
    assert targets.count(cfx.proxy.assert_fn) == 1 and targets[-1] is operator.add


NO_ASSERTS = ["if x: pass", "assert not x", "while x > 1: pass", "x and 1", "y = 1 if x < 2 else 3",
              "assert (x, 1) != (1, 1)", "assert [x] < [2]",
              "if x != 1: raise AssertionError"]  # fmt: skip


@pytest.mark.parametrize("statement", NO_ASSERTS)
def test_other_questions_are_refused(statement):
    """A container asks whether its items are equal, whatever the comparison is."""
    (x,) = proxies(Asserting, "x")
    f = function(f"def f(x):\n    {statement}\n")
    with pytest.raises(cfx.proxy.TraceError):
        f(x)
    assert cfx.proxy.assert_fn not in [n.target for n in x.node.graph.nodes]


@pytest.mark.parametrize("n", [1, 2, 3, 255, 256, 300])
def test_unpacking(n):
    (x,) = proxies(GraphAppendingTracer, "x")
    names = ", ".join(f"a{i}" for i in range(n))
    f = function(f"def f(x):\n    {names}, = x\n    return a{n - 1}\n")
    assert f(x).node.args == (x.node, n - 1)
    assert len(x.node.graph.nodes) == n + 1
    with pytest.raises(cfx.proxy.TraceError):
        function("def f(x):\n    a, *b = x\n")(x)


def watched(run):
    """What `run` gives while a profiler, a debugger and monitoring look at every line."""
    seen = []
    look = lambda *args: seen.append(args[0]) or look
    sys.settrace(look)
    sys.setprofile(look)
    monitoring = getattr(sys, "monitoring", None)
    if monitoring:
        monitoring.use_tool_id(4, "test")
        for event in (monitoring.events.LINE, monitoring.events.INSTRUCTION):
            monitoring.register_callback(4, event, lambda *args: seen.append(args))
        monitoring.set_events(4, monitoring.events.LINE | monitoring.events.INSTRUCTION)
    try:
        return run()
    finally:
        sys.settrace(None)
        sys.setprofile(None)
        if monitoring:
            monitoring.set_events(4, 0)
            monitoring.free_tool_id(4)
        assert seen


def test_bytecode_that_is_watched():
    """Python writes other instructions into the code then."""
    x, y = proxies(Asserting, "x", "y")
    f = function("def f(x, y):\n    assert x == y\n    assert x\n    a, b = x\n    return b\n")
    result = watched(lambda: f(x, y))
    assert result.node.args == (x.node, 1)
    targets = [n.target for n in x.node.graph.nodes]
    assert targets.count(cfx.proxy.assert_fn) == 2


def test_bytecode_that_is_specialised():
    """Python rewrites the instructions of a function that has run often."""
    f = function("def f(x):\n    assert x == (1, 2)\n    a, b = x\n    return b\n")
    for _ in range(1000):
        f((1, 2))
    (x,) = proxies(Asserting, "x")
    assert f(x).node.args == (x.node, 1)
    assert cfx.proxy.assert_fn in [n.target for n in x.node.graph.nodes]


# ---- classes ------------------------------------------------------------------------------------


def test_attributes_of_pythons_own_classes():
    """Their dicts lie elsewhere from 3.12 on."""
    found = {"builtins.str.upper": str.upper, "collections.OrderedDict.get": dict.get,
             "builtins.list.append": list.append, "builtins.int.nonsense": None,
             "builtins.bool.__add__": int.__add__, "builtins.int.real": None}  # fmt: skip
    assert {name: _core._resolve(name) for name in found} == found


def test_a_lazy_function_below_pythons_own_classes():
    lazy = _core._LazyFunction("forward", lambda: lambda self: 5)
    for base in (object, Exception, int, dict, types.SimpleNamespace):
        made = type("Made", (base,), {"forward": lazy})
        assert made().forward() == 5
        other = type("Other", (base,), {})
        assert lazy.__get__(other(), other)() == 5  # it stands nowhere there: nothing changes
        assert not hasattr(other, "forward")


def test_steps_that_are_put_into_a_class_later():
    """The tracer notices by the version of its class."""
    class Changing(GraphAppendingTracer):
        pass

    (x,) = proxies(Changing, "x")
    seen = []
    make = GraphAppendingTracer.create_node
    for i in range(1500):  # from 3.13 on, a class gets 1,000 versions at most
        x + 1
        Changing.create_node = lambda self, *args, i=i: seen.append(i) or make(self, *args)
        x + 1
        assert seen == [i]
        seen.clear()
        del Changing.create_node
    assert len(x.node.graph.nodes) == 3001


# ---- which interpreters -------------------------------------------------------------------------


SUB = """
import importlib, sys
for name in {names!r}:
    try:
        interpreters = importlib.import_module(name)
        break
    except ImportError:
        continue
code = '''
import sys
sys.path[:0] = {path!r}
try:
    import cfx._core
except ImportError as error:
    assert "interpreter" in str(error), error
    open({done!r}, "a").write("refused ")
'''
for arguments in ((), ("legacy",)) if sys.version_info >= (3, 13) else ((),):
    interpreter = interpreters.create(*arguments)
    failed = interpreters.run_string(interpreter, code)
    assert not failed, failed
sys.path[:0] = {path!r}
import cfx
assert len(cfx.Graph().nodes) == 0
"""


def test_sub_interpreters_are_refused(tmp_path):
    done = tmp_path / "done"
    script = SUB.format(names=INTERPRETERS, path=[str(ROOT / "python")], done=str(done))
    subprocess.run([sys.executable, "-c", script], check=True)
    assert done.read_text().split() == ["refused"] * (2 if sys.version_info >= (3, 13) else 1)


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"),
                    reason="this Python has the GIL")  # fmt: skip
def test_free_threaded_builds_are_refused():
    run = subprocess.run([sys.executable, "-c", "import cfx._core"], capture_output=True, text=True)
    assert "free-threaded" in run.stderr and "ImportError" in run.stderr


def test_free_threaded_builds_would_be_refused(tmp_path):
    """Told to the compiler, so that every Python can test it."""
    include = sysconfig.get_path("include")
    if not os.path.exists(os.path.join(include, "Python.h")):
        pytest.skip("Python.h is not installed")
    (tmp_path / "refuse.c").write_text(
        '#include <Python.h>\n#define Py_GIL_DISABLED 1\n#include "base/pythons.h"\n'
        "int refuse(void);\nint refuse(void) { return refuse_interpreter(); }\n")
    subprocess.run(["cc", "-std=c11", "-I", include, "-I", ROOT / "python/src", "-c",
                    tmp_path / "refuse.c", "-o", tmp_path / "refuse.o"], check=True)
    assert b"free-threaded" in (tmp_path / "refuse.o").read_bytes()


# ---- what is said about it ----------------------------------------------------------------------


def test_this_version_is_one_of_those_that_are_named():
    first, last = re.search(r'requires-python = ">=([\d.]+),<([\d.]+)"',
                            (ROOT / "pyproject.toml").read_text()).groups()
    number = lambda text: tuple(map(int, text.split(".")))
    assert number(first) <= sys.version_info[:2] < number(last)
