"""The steps of docs/adding-a-pass.md and the pages like it, performed in a scratch copy: each takes
three places, and its golden test passes with a command that is linked from them."""
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
STEP = re.compile(r"^## \d\. .*?`(\S+)`.*?^```\w*\n(.*?)^```$", re.M | re.S)

# Page: the places in order, and the file that is compiled from the table of rows.
PAGES = {
    "adding-a-pass": (["src/pass/untype.c", "src/pass/pass.def", "tests/golden/opt/untype.ir"],
                      "src/pass/pass_table.c"),
    "adding-a-verb": (["cli/cmd_names.c", "cli/verbs.def", "tests/golden/names/names.ir"],
                      "cli/command.c"),
    "adding-a-format": (["src/format/raw.c", "src/format/format.def",
                         "tests/golden/convert/raw.ir"], "src/format/format_table.c"),
    "adding-a-generator": (["src/emit/edges.c", "src/emit/generator.def",
                            "tests/golden/show/edges.ir"], "src/emit/generator_table.c"),
}  # fmt: skip


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def add_row(table, row):
    """Puts a row behind the others, before what a table ends with."""
    rows, undef, rest = table.read_text().partition("\n#undef")
    table.write_text(f"{rows}\n{row}{undef}{rest}" if undef else f"{rows}{row}")


def command_of(folder, sources):
    """The command with these files instead of those that are built."""
    flags = [*shlex.split((BUILD / "flags.stamp").read_text()),
             *(f"-I{folder / name}" for name in ("include", "src", "cli")),
             f"-I{BUILD / 'include'}", f"-I{BUILD}"]  # what the build generates
    built = [o for o in sorted((BUILD / "cli").glob("*.o")) if f"cli/{o.stem}.c" not in sources]
    run(*flags, *(folder / s for s in sources), *built, BUILD / "libcfx.a", "-lm", "-pthread",
        "-ldl", "-o", folder / "cfx")
    return folder / "cfx"


@pytest.mark.parametrize("page", PAGES)
def test_three_places(page, tmp_path):
    places, table = PAGES[page]
    steps = STEP.findall((ROOT / f"docs/{page}.md").read_text())
    assert [path for path, _ in steps] == places
    for name in ("include", "src", "cli"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for path, text in steps:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".def"):
            add_row(file, text)
        else:
            file.write_text(text)
    cfx = command_of(tmp_path, [places[0], table])
    run(sys.executable, ROOT / "tests/golden/run.py", "--cfx", cfx, tmp_path / places[2])


def test_the_tables_are_listed(tmp_path):
    """What the command lists of formats and generators is what Python has."""
    import cfx

    listed = run(BUILD / "cfx", "formats").splitlines()
    assert [line.split()[0] for line in listed] == [row.extension for row in cfx.formats()]
    text = run(BUILD / "cfx", "help", "show").partition("forms")[2]
    forms = re.findall(r"^  --(\w+) ", text, re.M)
    assert forms == [row.name for row in cfx.generators()]
    page = run(BUILD / "cfx", "help", "--man")
    for row in cfx.generators():
        assert row.extension.startswith(".") and row.summary.replace("-", "\\-") in page


def test_generate():
    import cfx

    graph = cfx.parse("graph():\n  %x = placeholder[target=x]()\n  output(%x)\n")
    for row in cfx.generators():
        text = cfx.generate(graph, row.name)
        shown = subprocess.run([BUILD / "cfx", "show", "--wide", f"--{row.name}"], text=True,
                               input=cfx.text(graph), capture_output=True, check=True).stdout
        assert text == shown, row.name
    assert "class Net(torch.nn.Module)" in cfx.generate(graph, "python", class_name="Net")
    with pytest.raises(ValueError, match="there is no generator 'pyton'"):
        cfx.generate(graph, "pyton")
    with pytest.raises(TypeError, match="cfx.generate takes a cfx.GraphModule"):
        cfx.generate(3, "c")
