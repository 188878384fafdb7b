"""Models in C that are unlike the examples, in every way: called, captured, transformed, as C
again, as a Python module in PyTorch."""
import importlib.util
import os
import re
import subprocess
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import cfx  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
MODELS = ROOT / "tests/python/c_models"
ENVIRONMENT = {**{k: v for k, v in os.environ.items() if k != "LD_PRELOAD"},
               "CFX_INCLUDE": str(ROOT / "include"), "CPATH": str(ROOT / "examples/c")}
SANITIZERS = ["-fsanitize=address,undefined"] if BUILD.name == "build-san" else []


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300,
                          env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tensor(path):
    return torch.from_dlpack(cfx.load_npy(path)).clone()


def generated(folder):
    spec = importlib.util.spec_from_file_location(f"generated_{folder.name}", folder / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (model,) = [c for c in vars(module).values()
                if isinstance(c, type) and c.__module__ == module.__name__]
    return model()


def make(source, folder):
    """Compiles and runs a model with five_ways.h."""
    program = folder / "program"
    run("gcc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", *SANITIZERS, "-rdynamic",
        "-I", ROOT / "include", source, "-o", program, "-Wl,--whole-archive", BUILD / "libcfx.a",
        "-Wl,--no-whole-archive", "-lm", "-pthread", "-ldl")
    assert run(program, folder).endswith("All ways give the same.\n")


def check(model, tmp_path):
    """What is generated as Python gives the same, with the weights by their names."""
    model.load_state_dict({k: torch.from_dlpack(t).clone() for k, t in
                           cfx.load_tensors(tmp_path / "transformed.safetensors").items()})
    with torch.no_grad():
        got = model(tensor(tmp_path / "x.npy"))
    torch.testing.assert_close(got, tensor(tmp_path / "y.npy"), rtol=1e-4, atol=1e-4)


# The buffers and how many parameters of what is generated: integers are never learned.
@pytest.mark.parametrize("name, buffers, parameters", [
    ("flow", ["limit"], 4),
    ("names", ["type", "mask"], 15),
    ("numbers", [], 0),
    ("gpt", ["layers.0.attn.mask", "layers.1.attn.mask", "layers.2.attn.mask"], 35),
    ("writes", ["columns"], 0),
])
def test_every_way(name, buffers, parameters, tmp_path):
    make(MODELS / f"{name}.c", tmp_path)
    model = generated(tmp_path)
    assert [n for n, _ in model.named_buffers()] == buffers
    assert len(list(model.parameters())) == parameters
    check(model, tmp_path)


def test_tied_weights_stay_one(tmp_path):
    make(MODELS / "names.c", tmp_path)
    model = generated(tmp_path)
    assert model.head.weight is model.embed.weight and model.again is model.embed.weight
    assert model.two.out_proj.weight is model.one.out_proj.weight
    text = (tmp_path / "model.c").read_text()
    assert text.count('cfx_module_param(s, self, "embed.weight")') == 2
    assert text.count('cfx_module_param(s, self, "one.out_proj.weight")') == 1


EVERY_NAME = """#include <cfx/cfx.h>
static const char *const names[] = {%s};
static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        x = cfx_add(s, x, cfx_module_param(s, self, names[i]));
    return x;
}
static const cfx_class model_class = {.name = "Model", .forward = forward};
cfx_module *cfx_model(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, &model_class);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cfx_tensor *t = cfx_var_tensor(s, cfx_rand(s, cfx_ints(2)));
        if (i %% 2)
            cfx_module_add_buffer(s, m, names[i], t);
        else
            cfx_module_add_parameter(s, m, names[i], t);
    }
    return m;
}
cfx_var cfx_example(cfx_scope *s) { return cfx_ones(s, cfx_ints(2)); }
#include "five_ways.h"
"""


def test_parts_are_called_as_what_every_module_has(tmp_path):
    names = sorted(set(dir(torch.nn.Module())) - {"training"})
    (tmp_path / "model_.c").write_text(EVERY_NAME % ", ".join(f'"{n}"' for n in names))
    make(tmp_path / "model_.c", tmp_path)
    model = generated(tmp_path)
    assert sorted(model.state_dict()) == names
    check(model, tmp_path)


def test_numbers_are_pythons(tmp_path):
    """No function of torch gets numbers only, whether shapes are known or not."""
    targets = []
    for shapes in [], ["--shapes", "x=float32[N, 3]"]:
        text = run(BUILD / "cfx", "trace", "--keep-modules", *shapes, MODELS / "numbers.c")
        targets.append(re.findall(r"target=(torch\.\w+|operator\.\w+|math\.\w+)\]", text))
    assert targets[0] == targets[1]
    assert {t for t in targets[0] if t.startswith("torch.")} == {
        "torch.add", "torch.neg", "torch.where", "torch.mul", "torch.div", "torch.sym_max"}
    assert targets[0].count("torch.add") == 2  # the others are Python's
    assert {t for t in targets[0] if t.startswith("math.")} == {
        "math.sqrt", "math.floor", "math.exp"}


# ---- what compilers say of programs --------------------------------------------------------------

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-fsyntax-only"]
PROGRAM = """
#include <cfx/cfx.h>
cfx_var f(cfx_scope *s, cfx_module *m, cfx_var x);
cfx_var f(cfx_scope *s, cfx_module *m, cfx_var x)
{
    size_t n = 3;
    unsigned u = 2;
    unsigned char c = 1;
    float p = 0.5f;
    x = cfx_mul(s, cfx_add(s, x, n), u);
    x = cfx_sub(s, cfx_add(s, x, c), p);
    cfx_module_add(s, m, "fc", cfx_nn_linear(s, n, 4ULL));
    return cfx_call(s, cfx_trace(s, m), cfx_sum(s, x));
}
"""
NAMED = """
cfx_var g(cfx_scope *s, cfx_var x, size_t n);
cfx_var g(cfx_scope *s, cfx_var x, size_t n) { return cfx_sum(s, x, .dim = cfx_v(n)); }
"""


@pytest.mark.parametrize("compiler, language, named", [
    ("gcc", "c11", True), ("gcc", "c17", True),
    ("g++", "c++11", False), ("g++", "c++17", False), ("g++", "c++20", True)])
def test_macros_do_not_warn(compiler, language, named, tmp_path):
    """Not about options that are left out, nor about a size_t that becomes a variable."""
    source = tmp_path / ("p.c" if compiler == "gcc" else "p.cpp")
    source.write_text(PROGRAM + NAMED * named)
    run(compiler, f"-std={language}", *STRICT, "-I", ROOT / "include", source)
