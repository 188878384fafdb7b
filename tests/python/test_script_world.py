"""What programs print under cfx script is what they print in Python; and what the programs of
programs/ compute, captured by it, is what eager PyTorch computes, unless it refuses them."""
import contextlib
import io
import re
import warnings

import pytest

pytest.importorskip("torch")

import programs  # noqa: E402
import script_command  # noqa: E402
from script_cases import CASES, FAILURES  # noqa: E402

PROGRAMS = programs.load_all()
KEPT = script_command.kept()
TAIL = "\ndef captured_at_the_end(x):\n    return x\n"


def script(path, text, *options):
    path.write_text(text)
    return script_command.command("script", *options, path)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("name", CASES)
def test_programs_print_what_python_prints(name, tmp_path):
    expected = io.StringIO()
    with contextlib.redirect_stdout(expected):
        exec(compile(CASES[name], name, "exec"), {"__name__": "__script__"})
    done = script(tmp_path / "case.py", CASES[name] + TAIL, "--function", "captured_at_the_end")
    assert done.stderr == expected.getvalue()
    assert done.returncode == 0


@pytest.mark.parametrize("source, message", FAILURES)
def test_failures_say_where_and_why(source, message, tmp_path):
    done = script(tmp_path / "case.py", source)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == message


# What the command line can ask for that is not there; and all that is said about it.
CALLS = [
    (["--call", "Q(3)"], 1, "<call>:1: NameError: name 'Q' is not defined\n  Q(3)\n  ^\n"),
    (["--call", "M(3"], 1, "case.py: the call 'M(3' is not an expression: '(' was never closed\n"),
    (["--call", "M(1); M(2)"], 1,
     "case.py: the call 'M(1); M(2)' is not an expression: expected ')' or ',', found ';'\n"),
    (["--call", " "], 1, "case.py: the call that creates the model is empty\n"),
    (["--call", "M(1,\n  n=Q)"], 1, "<call>:2: NameError: name 'Q' is not defined\n    n=Q)\n"
     "      ^\n"),
    (["--call", "M(1, 2)"], 1, "<call>:1: TypeError: M.__init__() takes 2 positional arguments but "
     "3 were given\n  M(1, 2)\n  ^\n"),
    (["--call", "3"], 1, "case.py: only a module or a function can be captured, not an object of "
     "type 'int'\n"),
    (["--function", "q"], 1, "case.py: the file has no 'q'; it has helper, M\n"),
]


@pytest.mark.parametrize("options, code, message", CALLS)
def test_what_is_to_be_captured_is_not_there(options, code, message, tmp_path):
    source = ("import torch\ndef helper(x): return x\nclass M(torch.nn.Module):\n"
              "    def __init__(self, n):\n        super().__init__()\n"
              "    def forward(self, x): return x\n")
    done = script(tmp_path / "case.py", source, *options)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", message)


# ---- the programs that test cfx.script ---------------------------------------------------------


@pytest.mark.parametrize("program", PROGRAMS, ids=map(script_command.name_of, PROGRAMS))
def test_programs_do_what_eager_pytorch_does(program, tmp_path):
    """Or are refused as they were: script_command.py --update says what is to be expected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict, why = script_command.judge(program, tmp_path)
    name = script_command.name_of(program)
    assert (verdict, script_command.first_line(why)) == KEPT.get(name, (script_command.EQUAL, ""))
    assert verdict != script_command.DIFFERENT
    if verdict != script_command.EQUAL:
        assert re.search(rf"\b{program.topic}\.py:\d+: ", why)


def test_what_is_kept_is_of_programs():
    assert set(KEPT) <= set(map(script_command.name_of, PROGRAMS))
