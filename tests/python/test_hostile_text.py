"""Texts of strangers: parsing runs nothing and imports nothing, and no string becomes code."""
import ast
import sys
import types

import pytest
import random_hostile
import torch

import cfx

HEAD = "graph():\n  %x = placeholder[target=x]()\n"


def target_of(name):
    graph = cfx.parse(f'{HEAD}  %y = call_function[target="{name}"](%x)\n  output(%y)\n')
    return next(n for n in graph.nodes if n.op == "call_function").target


# ---- what a name leads to ----------------------------------------------------------------------


@pytest.mark.parametrize("name, expected", [
    ("torch.relu", torch.relu), ("torch.nn.functional.relu", torch.nn.functional.relu),
    ("torch.Tensor.add", torch.Tensor.add), ("math.sqrt", __import__("math").sqrt),
    ("torch.ops.aten.relu.default", torch.ops.aten.relu.default),
    ("torch.ops.aten.add.Tensor", torch.ops.aten.add.Tensor),
    ("torch.ops.aten.relu", torch.ops.aten.relu), ("builtins.getattr", getattr),
    ("operator.add", __import__("operator").add), ("torch._C._nn.gelu", torch._C._nn.gelu),
])  # fmt: skip
def test_functions_of_the_usual_modules(name, expected):
    assert target_of(name) is expected


@pytest.mark.parametrize("name", [
    "os.system", "builtins.exec", "exec", "eval", "builtins.__import__", "torch.os.system",
    "torch.load", "torch.hub.load", "torch.hub.urlopen", "torch.serialization.load",
    "torch.sys.exit",
    "torch.utils.cpp_extension.load_inline", "subprocess.run", "sys", "torch.nn", "torch.classes.x",
    "torch.ops.load_library", "torch.ops.aten.nosuchoperator", "torch.ops.nosuchspace.f",
    "torch.relu.__self__", "torch.nn.functional.relu.__globals__", "json.dumps", "torch.nn.math.pi",
])  # fmt: skip
def test_other_names_stay_names(name):
    found = target_of(name)
    assert isinstance(found, str) and found == name
    with pytest.raises(NameError, match="only a name"):
        found(1)


@pytest.mark.parametrize("name", [
    "os.remove", "os.environ", "posix.urandom", "os.getenv.__globals__", "torch.os.getenv",
    "random.shuffle", "random._os.system", "numpy.random.test", "numpy.load", "uuid.getnode",
    "secrets.os.system", "copy.sys.exit",
])  # fmt: skip
def test_other_names_of_recorded_modules_stay_names(name):
    assert isinstance(target_of(name), str)


def test_what_script_records_can_be_read():
    rows = [name for name, _ in cfx._core._script_policy()[0] if name[-1] != "*"]
    for name in [*rows, "time.time", "time.perf_counter", "cmath.sqrt"]:
        home, _, last = name.rpartition(".")
        expected = getattr(sys.modules[home], last, None) if home in sys.modules else None
        if expected is not None:
            assert target_of(name) is expected, name


def test_a_lookup_leaves_torch_alone():
    before = set(vars(torch.ops))
    target_of("torch.ops.stranger.f")
    target_of("torch.ops.import_module.f")
    assert set(vars(torch.ops)) == before and callable(torch.ops.load_library)


@pytest.fixture
def lazy():
    """A module whose attributes are made by code."""
    module = types.ModuleType("lazy_stranger")
    module.calls = []

    class Meta(type):
        def __getattr__(cls, name):
            module.calls.append(name)
            return len

    class Holder(metaclass=Meta):
        @property
        def value(self):
            raise AssertionError

        @staticmethod
        def plain(x):
            return x

        @classmethod
        def made(cls):
            raise AssertionError

    def find(name):
        module.calls.append(name)
        return len

    def plain(x):
        return x

    plain.__module__ = Holder.__module__ = "lazy_stranger"
    Holder.plain.__module__ = "lazy_stranger"
    module.__getattr__, module.Holder, module.plain = find, Holder, plain
    sys.modules["lazy_stranger"] = module
    yield module
    del sys.modules["lazy_stranger"]


def test_names_of_other_modules_need_permission(lazy):
    text = HEAD + "  %y = call_function[target=lazy_stranger.plain](%x)\n  output(%y)\n"
    target = lambda **options: list(cfx.parse(text, **options).nodes)[1].target  # noqa: E731
    assert target() == "lazy_stranger.plain" and isinstance(target(), str)
    assert target(allow=["lazy_stranger"]) is lazy.plain
    assert target(allow=[lazy]) is lazy.plain
    assert isinstance(target(allow=["lazy"]), str)


@pytest.mark.parametrize("name", ["made_up", "Holder.made_up", "Holder.value", "Holder.made"])
def test_no_code_of_a_module_runs(lazy, name):
    text = f"{HEAD}  %y = call_function[target=lazy_stranger.{name}](%x)\n  output(%y)\n"
    target = list(cfx.parse(text, allow=["lazy_stranger"]).nodes)[1].target
    assert isinstance(target, str) and lazy.calls == []


def test_static_methods_are_functions(lazy):
    text = HEAD + "  %y = call_function[target=lazy_stranger.Holder.plain](%x)\n  output(%y)\n"
    graph = cfx.parse(text, allow=[lazy])
    assert list(graph.nodes)[1].target is lazy.Holder.plain and lazy.calls == []


def test_parsing_imports_nothing():
    before = set(sys.modules)
    for name in ("wave.open", "torch.onnx.export", "torch._inductor.compile", "antigravity.fly"):
        target_of(name)
    assert not {"wave", "antigravity"} & set(sys.modules) - before
    assert set(sys.modules) - before <= {"cfx._glue.torch_values"}


# ---- strings that try to become code -----------------------------------------------------------

TRIP = "tripped"
INJECTIONS = [
    f"x=1); {TRIP}(", f"x\n    {TRIP}()\n    y", f"x, y={TRIP}()", f"a: {TRIP}() = 1", f"'{TRIP}'",
    f'"; {TRIP}() #', f"\\\\\n{TRIP}()", f"a;{TRIP}()", f"a\r{TRIP}()", "\x00", "\u202eabc", "for",
    "__debug__", "a b", "", "\uff34\uff32\uff29\uff30", "é", "ª", "x" * 5000, "a.b", "*a", "***a",
]


def quote(text):
    plain = (c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}" for c in text)
    return f'"{"".join(plain)}"'


PLACES = [
    "  %y = call_function[target=torch.add](%x, {0}=1)\n",
    "  %y = call_function[target=torch.add](%x, a={{&{0}: 1}})\n",
    "  %y = call_function[target={0}](%x)\n",
    "  %y = call_method[target={0}](%x)\n",
    "  %y = call_module[target={0}](%x)\n",
    "  %y = get_attr[target={0}]()\n",
    "  {0}: &{0} = call_function[target=torch.add](%x, &{0})\n  %y = get_attr[target=w]()\n",
    "  %y = call_function[target=torch.add](%x, {{1: namedtuple(&{0}, {0}=1)}})\n",
    "  %y = call_function[target=torch.add](%x, namedtuple(&{0}, {0}=1))\n",
    "  %y = call_function[target=builtins.getattr](%x, {0})  @ {0}:3 in {0}({0})\n",
    "  %y = call_function[target=torch.add](%x, {0}, b{0})\n",
]


def check_source(source):
    """Python either reads it, and nothing in it is the tripwire, or refuses all of it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            assert node.id != TRIP, source
        assert not isinstance(node, (ast.Import, ast.ImportFrom, ast.Lambda)) or \
            all(TRIP not in alias.name for alias in getattr(node, "names", ())), source
    assert [type(n) for n in tree.body if isinstance(n, ast.Expr)] == [], source


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("prefix", ["", "torch.", "builtins.", "m."])
def test_no_string_becomes_code(place, prefix):
    for injected in INJECTIONS:
        line = place.format(quote(prefix + injected))
        if line.startswith('  "'):
            line = "  %" + line[2:]
        if ", b\"" in line and not injected.isascii():
            continue
        text = f"{HEAD}{line}  output(%y)\n"
        try:
            graph = cfx.parse(text)
        except (ValueError, RuntimeError, SyntaxError):
            continue
        for form in (lambda: graph.python_code("self").src,
                     lambda: graph.python_code("self", verbose=True, record_func=True).src,
                     lambda: cfx.generate(graph, "python"),
                     lambda: cfx.generate(graph, "python", class_name="M")):  # fmt: skip
            try:
                source = form()
            except (ValueError, RuntimeError, KeyError, TypeError):
                continue
            check_source(source)


@pytest.mark.parametrize("target", [i for i in INJECTIONS if i not in ("é", "*a", "x" * 5000)])
def test_placeholders_are_parameters(target):
    text = f"graph():\n  %x = placeholder[target={quote(target)}]()\n  output(%x)\n"
    graph = cfx.parse(text)
    assert any("cannot be the name of a parameter" in finding for finding in graph.verify())
    if target not in ("for", "a.b", "__debug__"):  # Python refuses these, as in torch.fx
        with pytest.raises(ValueError, match="(?s)name of a parameter.*node %x"):
            graph.python_code("self")
        with pytest.raises(RuntimeError, match="name of a parameter"):
            graph.lint()
    elif target == "for":
        assert "def forward(x):" in cfx.generate(graph, "python")


def test_odd_keywords_are_passed_on():
    def f(**kwargs):
        return kwargs

    graph = cfx.Graph()
    x = graph.placeholder("x")
    odd = {"a b": x, "for": 1, "it's\n": 2, "k": 3, "__debug__": 4, "\u202e": 5}
    graph.output(graph.call_function(f, (), odd))
    assert cfx.GraphModule({}, graph)(7) == {**odd, "a b": 7}


def test_keywords_among_operators():
    graph = cfx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(getattr(torch.ops.aten.random, "from"), (x, 1, 2)))
    assert torch.equal(cfx.GraphModule({}, graph)(torch.zeros(3)), torch.ones(3))


def test_findings_name_what_is_wrong():
    text = (HEAD + '  %y = call_function[target=os.system]("ls")  @ m.py:3\n'
            '  %z = call_function[target="torch.add(x)"](%x, &"torch.x; y")\n  output(%z)\n')
    found = cfx.parse(text).verify()
    assert [f for f in found if f.startswith("m.py:3: node %y: 'os.system' can run code")]
    assert sum("is not the name of a function or type" in f for f in found) == 2
    with pytest.raises(RuntimeError, match="can run code or reach files"):
        cfx.parse(text).lint()
    with pytest.raises(ValueError, match="may not call 'os.system'"):
        cfx.generate(cfx.parse(HEAD + "  %y = call_function[target=os.system](%x)\n  output(%y)\n"),
                     "python")


def test_comments_stay_comments():
    graph = cfx.Graph()
    x = graph.placeholder("x")
    x.meta["desc"] = f"d\n    {TRIP}()"
    y = graph.call_function(torch.relu, (x,))
    y.meta["stack_trace"] = f'  File "a\r{TRIP}()", line 1, in f\n    z\r{TRIP}()\n'
    y.meta["seq_nr"] = f"1\n{TRIP}()"
    graph.output(y)
    for options in ({"verbose": True}, {"verbose": True, "expanded_def": True},
                    {"verbose": True, "additional_meta": ["seq_nr"]}):  # fmt: skip
        source = graph.python_code("self", **options).src
        ast.parse(source)
        check_source(source)
        assert TRIP in source


def test_folders_have_names_of_python(tmp_path):
    module = cfx.GraphModule(torch.nn.Module(), cfx.symbolic_trace(torch.nn.ReLU()).graph)
    with pytest.raises(ValueError, match="class name"):
        module.to_folder(tmp_path, "M: pass\nimport os\nclass N")
    root = torch.nn.Module()
    root.add_module("a', tripped(), '", torch.nn.Tanh())
    root.register_buffer("b', tripped(), '", torch.zeros(2))
    graph = cfx.Graph()
    x = graph.placeholder("x")
    y = graph.call_module("a', tripped(), '", (x,))
    graph.output(graph.call_function(torch.add, (y, graph.get_attr("b', tripped(), '"))))
    cfx.GraphModule(root, graph).to_folder(tmp_path / "it's", "M")
    check_source((tmp_path / "it's" / "module.py").read_text())


@pytest.mark.parametrize("first", [0, 100_000])
def test_random_texts(first):
    counts = random_hostile.run(range(first, first + 300))
    assert counts["code"] > 100 and counts["file"] > 50
