"""Programs in C that the compiler must refuse (a forgotten cfx_v), and lists in C++ that must not
dangle."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
C = ["cc", "-std=c11"]
CXX = ["c++", "-x", "c++", "-std=c++20"]

FRAME = """#include <cfx/cfx.h>
void use(cfx_scope *s, cfx_var x, cfx_module **m);
void use(cfx_scope *s, cfx_var x, cfx_module **m)
{
    (void)x;
    (void)m;
    %s
}
"""
GOOD = [
    "*m = cfx_nn_dropout(s, .p = cfx_v(0.1));",
    "*m = cfx_nn_linear(s, 2, 3, .bias = cfx_v(false));",
    "cfx_sum(s, x, .dim = cfx_v(1), .keepdim = cfx_v(true));",
    "cfx_sum(s, cfx_relu(s, x));",
    'cfx_trace(s, *m, .shapes = "x=float32[N]");',
    "*m = cfx_nn_transformer(s, .d_model = cfx_v(8), .nhead = cfx_v(2), .dropout = cfx_v(0.0));",
]
BAD = [
    "*m = cfx_nn_dropout(s, .p = 0.1);",
    "*m = cfx_nn_dropout(s, .p = 0);",
    "*m = cfx_nn_linear(s, 2, 3, .bias = false);",
    "cfx_sum(s, x, .dim = 1);",
    "cfx_sum(s, x, .dim = cfx_v(1), .keepdim = true);",
    'cfx_div(s, x, x, .rounding_mode = "floor");',
    "*m = cfx_nn_linear(s, 2, 3, .dtype = CFX_DTYPE_FLOAT64);",
    "cfx_sum(s, x, .dimension = cfx_v(1));",
]


def compile(compiler, folder, body):
    source = folder / "program.c"
    source.write_text(FRAME % body)
    if not shutil.which(compiler[0]):
        pytest.skip(f"there is no {compiler[0]}")
    return subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", f"-I{BUILD / 'include'}", "-c",
                           source, "-o", os.devnull], capture_output=True, text=True)  # fmt: skip


@pytest.mark.parametrize("compiler", [C, CXX], ids=["c", "c++"])
@pytest.mark.parametrize("body", GOOD)
def test_options_compile(compiler, body, tmp_path):
    if compiler is CXX and ".d_model" in body:
        pytest.skip("C++ wants designators in the order of the struct's members")
    done = compile(compiler, tmp_path, body)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", [C, CXX], ids=["c", "c++"])
@pytest.mark.parametrize("body", BAD)
def test_an_option_that_is_no_variable_does_not(compiler, body, tmp_path):
    done = compile(compiler, tmp_path, body)
    assert done.returncode != 0
    assert "program.c:7:" in done.stderr  # the user's line


DANGLING = """#include <cfx/cfx.h>
#include <cstdio>

static cfx_sum_args over(cfx_scope *s, int64_t a, int64_t b)
{
    cfx_sum_args o = cfx_sum_args();
    o.dim = cfx_ints(s, a, b);
    return o;
}

int main()
{
    cfx_scope *s = cfx_scope_new(nullptr, nullptr);
    cfx_var x = cfx_ones(s, cfx_ints(s, 2, 3, 4));
    cfx_sum_args first = over(s, 0, 2);
    cfx_sum_args second = over(s, 1, 2);
    cfx_var y = cfx_sum_at(CFX_HERE(s), x, first);
    cfx_var z = cfx_sum_at(CFX_HERE(s), x, second);
    std::printf("%g %g", cfx_var_number(s, cfx_max(s, y)), cfx_var_number(s, cfx_max(s, z)));
    bool good = cfx_scope_ok(s);
    cfx_scope_free(s);
    return !good;
}
"""


@pytest.mark.parametrize("standard", ["c++11", "c++17", "c++20"])
def test_lists_in_cxx_belong_to_the_scope(standard, tmp_path):
    """In C++ before 20, options are a struct, which may outlive the expression that filled it."""
    if not shutil.which("c++"):
        pytest.skip("there is no c++")
    if "san" in BUILD.name:
        pytest.skip("the library was built with sanitizers that this program is not linked with")
    source, program = tmp_path / "program.cpp", tmp_path / "program"
    source.write_text(DANGLING)
    subprocess.run(["c++", f"-std={standard}", "-O2", "-Wall", "-Wextra", "-Werror",
                    f"-I{BUILD / 'include'}", source, BUILD / "libcfx.a", "-lm", "-pthread", "-o",
                    program], check=True)  # fmt: skip
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout == "8 12"
