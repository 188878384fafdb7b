"""Models as C: what cfx.c_code and `cfx code --c` write compiles without warnings, computes what
the model computes, and is captured as the graph it came from. And as complete Python modules."""
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import cfx
from cfx import _core

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
PROGRAM = ROOT / "tests/python/c_program.c"
FULL = bool(os.environ.get("CFX_FULL"))
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests/golden"))

import run as golden  # noqa: E402
import zoo  # noqa: E402

MODELS = list(zoo.MODELS) if FULL else ["resnet18", "vit_b_16", "gpt2", "lstm_lm"]


def call(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def compiled(out, *sources):
    call("gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O0", "-I", BUILD / "include", *sources,
         BUILD / "libcfx.a", "-lm", "-pthread", "-o", out)
    return out


def program(folder, name, code):
    (folder / f"{name}.c").write_text(code)
    return compiled(folder / name, folder / f"{name}.c", PROGRAM)


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    items = (value.values() if isinstance(value, dict)
             else value if isinstance(value, tuple | list) else ())
    return [t for item in items for t in tensors(item)]


def run(binary, state, inputs):
    weights, given, out = (binary.with_suffix(s) for s in (".weights", ".given", ".out"))
    cfx.save_weights(state, str(weights))
    cfx.save_weights({f"x{i}": x for i, x in enumerate(inputs)}, str(given))
    call(binary, "run", weights, given, out)
    found = cfx.load_tensors(str(out))
    return [found[f"y{i}"].torch() for i in range(len(found))]


def without_comments(code):
    return re.sub(r"\s*/\*.*?\*/", "", code)


def check(folder, module, *inputs):
    """The C program gives what the module gives, and is captured as what it was written from."""
    binary = program(folder, "first", cfx.c_code(module))
    for want, got in zip(tensors(module(*inputs)), run(binary, module.state_dict(), inputs),
                         strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
    code = call(binary, "code")
    again = call(program(folder, "second", code), "code")
    assert without_comments(code) == without_comments(again)


@pytest.mark.parametrize("name", MODELS)
def test_models(name, tmp_path):
    model, inputs = zoo.make(name, small=True)
    check(tmp_path, zoo.trace(cfx, model), *inputs)


@pytest.mark.parametrize("name", zoo.MODELS)
def test_models_as_python(name):
    model, inputs = zoo.make(name, small=True)
    module = zoo.trace(cfx, model)
    names = {}
    exec(cfx.python_module(module, "Again"), names)
    again = names["Again"]()
    again.load_state_dict(module.state_dict())
    assert again.training == module.training
    for want, got in zip(tensors(module(*inputs)), tensors(again(*inputs)), strict=True):
        assert torch.equal(got, want)


class Odd(nn.Module):
    """Names that are taken in C, shared and nested modules, numbers, flags, slices."""

    def __init__(self):
        super().__init__()
        self.int = nn.Linear(4, 4)
        self.again = self.int
        self.cfx_add = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
        self.weight = nn.Parameter(torch.arange(4.0))
        self.register_buffer("shift", torch.arange(4))
        self.bn = nn.BatchNorm1d(4)
        self.attn = nn.MultiheadAttention(4, 2, batch_first=True)
        self.eps = 0.5

    def forward(self, double, NULL, unused=None):
        x = self.again(self.int(double)) * self.weight + self.shift.to(torch.float32)
        x = torch.where(NULL > 0, x, -math.inf).clamp(min=-2.0)
        s = x[..., 1:3].sum(-1, keepdim=True) / x[:, None, ::2].size(1) + self.eps
        y, _ = self.attn(x[None], x[None], x[None], need_weights=False)
        x = self.cfx_add(self.bn(x)) + y[0]
        return {"a": (x.unsqueeze(1).expand(-1, 2, -1), s), "b": torch.cat([x, s], dim=1).max(1)}


def test_odd_names(tmp_path):
    model = Odd().eval()
    module = cfx.symbolic_trace(model)
    code = cfx.c_code(module, "Odd one")
    assert '.name = "Model"' in code
    assert 'cfx_module_add(s, self, "again", cfx_module_child(self, "int"));' in code or \
        code.count("cfx_nn_linear(") == 2
    check(tmp_path, module, torch.randn(3, 4), torch.randn(3, 4))
    call("g++", "-std=c++20", "-Wall", "-Werror", "-x", "c++", "-I", BUILD / "include", "-c",
         tmp_path / "first.c", "-o", tmp_path / "first.o")


def test_training_flags():
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(3)).train()
    model[1].eval()
    code = cfx.c_code(cfx.symbolic_trace(model))
    assert 'cfx_module_train(cfx_module_child(self, "1"), false);' in code
    assert "cfx_module_train(self" not in code
    source = cfx.python_module(cfx.symbolic_trace(model))
    assert 'getattr(self, "1").eval()' in source and "self.eval()" not in source


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.l = nn.Linear(4, 4, bias=False)
        self.head = nn.Linear(4, 7, bias=False)  # whose bias is None, as the other's is
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.l(self.embed(x))) + self.embed.weight.sum(1)


def test_tied_weights_stay_one(tmp_path):
    module = cfx.symbolic_trace(Tied().eval())
    names = {}
    exec(cfx.python_module(module, "Again"), names)
    again = names["Again"]()
    assert again.head.weight is again.embed.weight
    assert len(list(again.parameters())) == 2
    assert cfx.c_code(module).count('cfx_module_param(s, self, "embed.weight")') == 2  # read, tied
    check(tmp_path, module, torch.arange(5))


def test_defaults(tmp_path):
    """What C cannot say must be passed, and what comes before it, too."""
    class Defaults(nn.Module):
        def forward(self, x, n=2, big=math.inf, mask=None, scale=0.5):
            return x * n * scale if big else x

    code = cfx.c_code(cfx.symbolic_trace(Defaults(), concrete_args={"big": 1}))
    assert '.inputs = "x, n, big_1, mask=None, scale=0.5"' in code


def test_what_cannot_be_written():
    class Own(nn.Module):
        def forward(self, x):
            return unknown(other(x))

    module = cfx.symbolic_trace(Own())
    with pytest.raises(TypeError, match=r"'\S*other'.*; .*'\S*unknown'"):
        cfx.c_code(module)
    with pytest.raises(TypeError, match="takes a cfx.GraphModule, not Own"):
        cfx.c_code(Own())


def test_what_no_constructor_makes():
    class Leaf(nn.Module):
        def forward(self, x):
            return x

    class Tracer(cfx.Tracer):
        def is_leaf_module(self, m, path):
            return True

    model = nn.Sequential(Leaf(), nn.Linear(2, 2), Leaf())
    module = cfx.GraphModule(model, Tracer().trace(model))
    with pytest.raises(TypeError, match=r"'0' is an instance of \S*Leaf; '2' is an instance of"):
        cfx.python_module(module)


def test_a_sequential_that_is_one_node():
    """It has no constructor that would make what is in it: nothing is left out quietly."""
    class Tracer(cfx.Tracer):
        def is_leaf_module(self, m, path):
            return True

    model = nn.Sequential(nn.Sequential(nn.Tanh()))
    module = cfx.GraphModule(model, Tracer().trace(model))
    with pytest.raises(TypeError, match=r"the class torch.nn.Sequential is not in the operator"):
        cfx.c_code(module)
    with pytest.raises(TypeError, match=r"'0' with its children; capture the modules it calls"):
        cfx.python_module(module)


@cfx.wrap
def unknown(x):
    return x


@cfx.wrap
def other(x):
    return x


def test_very_long_models(tmp_path):
    """More than one function: each input is used in the last part, and results cross parts."""
    lines = ["graph():", *(f"  %x{i} = placeholder[target=x{i}]()" for i in range(4))]
    names = [f"x{i}" for i in range(4)]
    for i in range(1200):
        a, b = names[-1], names[i * 7919 % len(names)]
        lines.append(f"  %n{i} = call_function[target=cfx.ops.maximum](%{a}, %{b})")
        names.append(f"n{i}")
    lines.append("  output((%n1199, [%x0, %x1, %x2, %x3, %n3]))\n")
    text = "\n".join(lines)
    done = subprocess.run([str(BUILD / "cfx"), "code", "--c", "-"], input=text,
                          capture_output=True, text=True, timeout=60, check=True)
    assert "forward_part7(" in done.stdout
    got = call(program(tmp_path, "long", done.stdout), "text")
    assert canonical(cfx.parse(got)) == canonical(lowered(text))


def long_region(inputs, output, indent="      "):
    """600 nodes, the last of which is %n599, that read all inputs and an attribute."""
    lines = ["graph {", *(f"  %{x} = placeholder[target={x}]()" for x in inputs),
             "  %w = get_attr[target=w]()"]
    names = ["w", *inputs]
    for i in range(600):
        a, b = names[-1], names[i * 7919 % len(names)]
        lines.append(f"  %n{i} = call_function[target=cfx.ops.maximum](%{a}, %{b})")
        names.append(f"n{i}")
    return ("\n" + indent).join([*lines, f"  output({output})", "}"])


LONG_REGIONS = f"""graph():
  %x = placeholder[target=x]()
  %y = placeholder[target=y]()
  %cond = call_function[target=cfx.cond](True, {long_region("ab", "(2, 3, %n599)")},
      {long_region("ab", "(2, 3, %n0)")}, (%x, %y))
  %for_loop = call_function[target=cfx.for_loop](3, {long_region("iab", "(%n599, %b)")}, (%x, %y))
  %for_loop_1 = call_function[target=cfx.for_loop](2, {long_region("ia", "(%n599,)")}, (%y,))
  %while_loop = call_function[target=cfx.while_loop]({long_region("a", "%n599")},
      {long_region("a", "(%n599,)")}, (%x,))
  %first = call_function[target=operator.getitem](%for_loop_1, 0)
  %second = call_function[target=operator.getitem](%while_loop, 0)
  output((%cond, %for_loop, %first, %second))
"""


def test_very_long_regions(tmp_path):
    done = subprocess.run([str(BUILD / "cfx"), "code", "--c", "-"], input=LONG_REGIONS,
                          capture_output=True, text=True, timeout=60, check=True)
    parts = re.findall(r"^static void (\w+)_part\d+\(", done.stdout, re.M)
    assert {p: parts.count(p) for p in parts} == {
        "cond_then": 4, "cond_else": 4, "for_loop_body": 4, "for_loop_1_body": 4,
        "while_loop_test": 4, "while_loop_body": 4}
    got = call(program(tmp_path, "long", done.stdout), "text")
    assert canonical(cfx.parse(got)) == canonical(lowered(LONG_REGIONS))


# ---- every graph of the tests that can be lowered ---------------------------------------------


def graphs():
    """(name, graph as text), those that C can be written for."""
    files = [*sorted((ROOT / "examples/graphs").glob("*.ir")),
             *sorted((ROOT / "tests/golden").rglob("*.ir"))]
    for file in files:
        text = file.read_text()
        yield file.stem, golden.split(text)[2] if golden.RUN in text else text


def canonical(graph):
    """The nodes as plain data; lists and tuples are the same, and a get_attr serves all readers. A
    loop with one variable is that variable, and what the graph has is a tuple of it."""
    number, rows, readers = {}, [], {}

    def is_single_loop(v):
        return (isinstance(v, cfx.Node) and v.op == "call_function"
                and name_of(v.target) in ("while_loop", "for_loop") and len(v.args[2]) == 1)

    def plain(v):
        if isinstance(v, cfx.Node):
            node = ("node", number[v])
            return ["seq", node] if is_single_loop(v) else node
        if isinstance(v, cfx.Graph):
            return canonical(v)
        if isinstance(v, tuple | list):
            return ["seq", *map(plain, v)]
        if isinstance(v, dict):
            return {k: plain(i) for k, i in v.items()}
        if isinstance(v, slice):
            return ("slice", plain(v.start), plain(v.stop), plain(v.step))
        return repr(v)

    for node in graph.nodes:
        if node.op == "get_attr" and node.target in readers:
            number[node] = readers[node.target]
            continue
        if node.op == "call_function" and name_of(node.target) == "getitem" and \
                is_single_loop(node.args[0]) and node.args[1] == 0:
            number[node] = number[node.args[0]]
            continue
        number[node] = len(rows)
        target = None if node.op == "placeholder" else name_of(node.target)
        if node.op == "get_attr":
            readers[node.target] = len(rows)
        args = node.args[:1] if node.op == "output" else node.args
        rows.append([node.op, target, [] if node.op == "placeholder" else plain(args)])
        if node.op == "output":
            return rows  # what follows is never run
    return [*rows, ["output", "output", ["seq", "None"]]]


def name_of(target):
    name = target if isinstance(target, str) else f"{target.__module__}.{target.__qualname__}"
    return re.sub(r"^cfx\.(ops\.)?", "", name)  # a row, or what Python calls it


def lowered(text):
    graph = cfx.parse(text)
    return None if _core._lower(graph, None) else graph


def in_one_file(codes):
    """Many models in one file, which is compiled at once: names of the file get a number."""
    parts = ["#include <cfx/cfx.h>\n#include <math.h>\n"]
    for i, code in enumerate(codes):
        names = {"cfx_model", *re.findall(r"^static .*?(\w+)(?:\(| = )", code, re.M)}
        mine = re.compile(rf"(?<![.\w\"])({'|'.join(names)})\b")
        parts.append(mine.sub(rf"\1_{i}", re.sub(r"#include .*\n", "", code)))
    table = ", ".join(f"cfx_model_{i}" for i in range(len(codes)))
    return "".join(parts) + f"""
cfx_module *cfx_model(cfx_scope *s);
static int which;
static cfx_module *(*const models[])(cfx_scope *s) = {{{table}}};
cfx_module *cfx_model(cfx_scope *s) {{ return models[which](s); }}
static void __attribute__((constructor)) choose(int argc, char **argv)
{{
    for (const char *p = argc > 2 ? argv[2] : ""; *p; p++)
        which = which * 10 + *p - '0';
}}
"""


def test_every_graph_is_captured_as_it_was(tmp_path):
    wanted, codes = {}, []
    for name, text in graphs():
        try:
            graph = lowered(text)
        except (SyntaxError, ValueError, TypeError):
            continue  # a text that is wrong on purpose
        done = subprocess.run([str(BUILD / "cfx"), "code", "--c", "-"], input=text,
                              capture_output=True, text=True, timeout=60)
        if graph is None or done.returncode:
            assert done.returncode == 1 and done.stderr, name
            continue
        wanted[name, len(codes)] = canonical(graph)
        codes.append(done.stdout)
    assert len(codes) > 35
    binary = program(tmp_path, "all", in_one_file(codes))
    for (name, i), want in wanted.items():
        got = cfx.parse(call(binary, "text", i))
        assert canonical(got) == want, name
