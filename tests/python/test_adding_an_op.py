"""The steps of docs/adding-an-op.md, performed in a scratch copy: what they make is found by the
command, runs under its unit test, and agrees with PyTorch on PyTorch's samples."""
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
STEP = re.compile(r"^## \d\. .*?`(\S+)`.*?^```\w*\n(.*?)^```$", re.M | re.S)
TABLE = "include/cfx/ops.def"
FUNCTIONS = "src/runtime/kernels/elementwise/heaviside.c"
UNIT = "tests/unit/runtime/heaviside.c"
FOLDERS = ("include", "build/include", "src", "build/generated", "tests/unit", "python/src")
MAKE_STATE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
PLAIN = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", *MAKE_STATE)}

# What counts the rows, or has one place for each. A row that is put last moves no other, so that
# the rest is not compiled again.
COUNTS = re.compile(r"cfx/ops\.def|CFX_OPERATOR_COUNT|ops_index\.inc|rt->(scratch|signatures)\b")


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300,
                          **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Copy:
    """The sources with the row, and objects of those that the row changes."""

    def __init__(self, folder):
        self.folder = folder
        self.steps = dict(STEP.findall((ROOT / "docs/adding-an-op.md").read_text()))
        shutil.copy(ROOT / "Makefile", folder)
        for name in ("include", "src", "cli", "python", "tools", "tests/unit"):
            shutil.copytree(ROOT / name, folder / name,
                            ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        for name in (FUNCTIONS, UNIT):
            (folder / name).write_text(self.steps[name])
        rows, end, rest = (folder / TABLE).read_text().rpartition("\n#undef CFX_IN_PLACE")
        (folder / TABLE).write_text(f"{rows}{self.steps[TABLE]}{end}{rest}")
        run("make", "-C", folder, "build/generated/ops_index.inc", env=PLAIN)
        self.flags = [*shlex.split((BUILD / "flags.stamp").read_text()),
                      *(f"-I{folder / name}" for name in FOLDERS),
                      "-isystem", sysconfig.get_path("include")]  # fmt: skip
        changed = [p for name in ("src", "cli", "python") for p in (folder / name).rglob("*.c")
                   if COUNTS.search(p.read_text())]
        self.compiled = {}
        for source in [folder / FUNCTIONS, *changed]:
            name = source.relative_to(folder)
            self.compiled[str(name)] = folder / f"{'_'.join(name.parts)}.o"
            run(*self.flags, "-c", source, "-o", self.compiled[str(name)])

    def link(self, out, *parts, options=()):
        """The parts, what was compiled of the library, and the library."""
        own = [o for name, o in self.compiled.items() if name.startswith("src/")]
        run(*self.flags, *options, *parts, *own, BUILD / "libcfx.a", "-lm", "-pthread", "-o", out)
        return out

    def objects(self, under):
        """Those of a folder: the new ones, the others as they are built."""
        return [self.compiled.get(str(o.relative_to(BUILD).with_suffix(".c")), o)
                for o in (BUILD / under).rglob("*.o")]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return Copy(tmp_path_factory.mktemp("heaviside"))


def test_three_places(copy):
    assert list(copy.steps) == [TABLE, FUNCTIONS, UNIT]


def test_the_command_knows_it(copy):
    cfx = copy.link(copy.folder / "cfx", *copy.objects("cli"))
    assert "aten.heaviside.default" in run(cfx, "ops", "torch.heaviside")
    text = ("graph():\n %x = placeholder[target=x]()\n"
            " %y = call_function[target=torch.heaviside](%x, 0.5)\n output(%y)\n")
    shown = run(cfx, "show", "--shapes", "x=float64[N, 3]", input=text)
    assert re.search(r"%y\s+float64\[N, 3\]", shown)
    assert run(cfx, "run", "--input", "0.0", input=text) == \
        "tensor(0.5000, dtype=torch.float64)\n"


def test_c_programs_have_a_function(copy):
    header = (copy.folder / "build/include/cfx/operators.h").read_text()
    function = "cfx_heaviside_at(cfx_at at, cfx_var self, cfx_var values)"
    assert f"static inline cfx_var {function}\n" in header


def test_a_name_belongs_to_one_operator(copy, tmp_path):
    """The build stops at a second row with one of its names, and says where."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("include", "src/ops", "src/script/evaluate", "src/script/world",
                 "tools/generate"):
        shutil.copytree(copy.folder / name, tmp_path / name)
    row = copy.steps[TABLE]
    table = (tmp_path / TABLE).read_text()
    (tmp_path / TABLE).write_text(table.replace(row, row + row.replace("(heaviside,", "(again,")))
    done = subprocess.run(["make", "-C", tmp_path, "build/generated/ops_index.inc"], env=PLAIN,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    assert re.search(r"include/cfx/ops\.def:\d+: '\S*heaviside\S*' is also a name of "
                     r"'heaviside', in line \d+; a name belongs to one operator\n", done.stderr)


def test_its_unit_test(copy):
    program = copy.link(copy.folder / "heaviside", copy.folder / UNIT)
    assert " passed, 0 failed" in run(program, env=PLAIN)


def test_pytorchs_samples(copy):
    """In another process, which loads an extension with the row."""
    pytest.importorskip("torch")
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    command = (o for o in copy.objects("cli") if "main" not in o.stem)
    copy.link(copy.folder / f"python/cfx/_core{suffix}", *copy.objects("python/src"), *command,
              options=["-shared", "-Wl,-Bsymbolic-functions"])
    done = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
               "-o", f"pythonpath={copy.folder / 'python'}", "-k", "heaviside",
               ROOT / "tests/python/test_operators.py")
    assert re.search(r"1 rows, 1 of PyTorch's descriptions, \d\d samples: 0 different", done)
