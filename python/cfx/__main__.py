"""The command `cfx`, also as `python -m cfx`: the verbs of the command in C, and `trace` and
`capture` for modules of PyTorch."""
import argparse
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import _core, weights

TARGET = """\
TARGET is package.module:NAME or path/to/file.py:NAME. NAME is a module class, which is
constructed with the values of --arg; a module; a function that returns a module, if it is given
--arg or needs no arguments; or a function of tensors, which is captured itself.
"""
STATUS = "\nExit status: 0 done, 1 the input is wrong, 2 the command line is wrong."
EXAMPLES = {
    "trace": """
examples:
  cfx trace torchvision.models:resnet18 -o resnet18.ir
  cfx trace net.py:Net --arg 784 --arg bias=False -o net.ir
  cfx trace net.py:Net --checkpoint net.pt -o net.ir --check 'x=float32[8, 784]'
  cfx trace net.py:Net --script -o net.ir
  cfx trace net.py:loss | cfx show
  cfx run --weights resnet18.safetensors --input x.npy resnet18.ir
""",
    "capture": """
examples:
  cfx capture torchvision.models:resnet18 --input 'x=float32[2, 3, 224, 224]' -o resnet18.ir
  cfx capture net.py:Net --input 'ids=ids.npy, mask=bool[2, 9]' --explain
  cfx capture net.py:Net --input 'x=float32[2, 9]' --dynamic x=0 --fixed x=1 -o net.ir
  cfx capture net.py:Net --input 'x=float32[2, 9]' -o net.ir --check 'x=float32[5, 7]'
  cfx capture net.py:Net --input x=x.pt --modes both --no-lower | cfx show
""",
}
DESCRIPTIONS = {
    "trace": "Captures a PyTorch module as files that cfx runs without Python. For a model in C, "
             "see: cfx help trace",
    "capture": "Runs a PyTorch module once on example inputs (cfx.capture) and writes what it did "
               "as files that cfx runs without Python. The graph checks what the run assumed.",
}


def _parser(verb: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"cfx {verb}", description=DESCRIPTIONS[verb],
        epilog=f"{TARGET}{EXAMPLES[verb]}{STATUS}",
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.set_defaults(verb=verb)
    parser.add_argument("target", metavar="TARGET", help="what to capture")
    if verb == "capture":
        _add_examples(parser.add_argument)
    _add_files(parser.add_argument)
    if verb == "trace":
        _add_tracing(parser.add_argument)
    _add_model(parser.add_argument)
    return parser


def _add_examples(add: Callable[..., Any]) -> None:
    add("--input", metavar="INPUTS", action="append", default=[],
        help="example inputs: 'x=float32[2, 3], n=4, ids=ids.npy, rest=rest.pt'; random integers "
             "are 0 to 9")
    add("--dynamic", metavar="NAME[=DIMS]", action="append", default=[],
        help="sizes that must stay symbolic, such as x=0,1: if the program needs the number, that "
             "is an error with the line")
    add("--fixed", metavar="NAME[=DIMS]", action="append", default=[],
        help="sizes or numbers that the graph holds for alone")
    add("--modes", choices=("current", "both"), default="current",
        help="both: write training and evaluation as one graph, if they are; needs --no-lower")
    add("--explain", action="store_true",
        help="print how each part was captured, and what is assumed; write files only with -o")


def _add_files(add: Callable[..., Any]) -> None:
    named = ", ".join(weights.extensions("named tensors"))
    add("-o", "--output", metavar="FILE", help="file for the IR text (default: "
        "standard output), or a .cfx file for all of it")
    add("--weights", metavar="FILE",
        help=f"where the tensors go that the graph reads: {named} "
             "(the default: .safetensors beside the output)")
    add("--no-weights", action="store_true", help="write the text only")


def _add_tracing(add: Callable[..., Any]) -> None:
    add("--script", action="store_true",
        help="capture from the source (cfx.script), with branches and loops that depend on data")
    add("--concrete", metavar="NAME=VALUE", action="append", default=[],
        help="fix an input of forward; the graph then has no such input")
    add("--leaf", metavar="CLASS", action="append", default=[],
        help="keep modules of this class as one call, with --no-lower")


def _add_model(add: Callable[..., Any]) -> None:
    named = ", ".join(weights.extensions("named tensors"))
    add("--arg", metavar="[NAME=]VALUE", action="append", default=[],
        help="an argument of the class or function: a Python literal, a dtype or a device")
    add("--checkpoint", metavar="FILE",
        help=f"load these parameters first: {named}, or what torch.save wrote")
    add("--no-lower", dest="lower", action="store_false",
        help="write calls as they were captured; a graph that calls modules runs only in Python")
    add("--lower", dest="lower", action="store_true", default=True,
        help="write operators of the table, which run in C (the default)")
    add("--train", action="store_true", help="capture the module in training mode")
    add("--eval", dest="train", action="store_false",
        help="capture the module in evaluation mode (the default)")
    add("--seed", metavar="N", type=int, default=0,
        help="seed for the parameters and for random inputs (default: 0)")
    add("--check", metavar="INPUTS", action="append", default=[],
        help="run the module and the written files, and print how much they differ: "
             "'x=float32[2, 3], n=4, ids=ids.npy'; random integers are 0 to 9")
    add("--traceback", action="store_true", help="print tracebacks of errors")


def _of_python(words: list[str]) -> int:
    """A verb that runs a program of PyTorch's."""
    options = _parser(words[0]).parse_args(words[1:])
    try:
        import torch  # noqa: F401
    except ImportError:
        print(f"cfx {words[0]}: this needs torch; install it into this Python, "
              f"{sys.executable}: pip install torch", file=sys.stderr)
        return 1
    from ._command import run

    return run(options)


def _is_of_c(words: list[str]) -> bool:
    """Whether these words after `trace` name a model in C: a file, or - for standard input."""
    return any(word.endswith(".c") or (word == "-" and before not in ("-o", "--output"))
               for before, word in zip(["", *words], words, strict=False))


def _command(words: list[str]) -> int:
    """The command in C. It compiles models against the headers of the package, and what it loads
    finds the library in the extension."""
    package = Path(__file__).resolve().parent
    for include in (package / "include", package.parents[1] / "build" / "include"):
        if (include / "cfx" / "cfx.h").is_file():
            os.environ.setdefault("CFX_INCLUDE", str(include))
            break
    if words[:1] in (["trace"], ["demo"]):
        ctypes.CDLL(_core.__file__, mode=ctypes.RTLD_GLOBAL)
    sys.stdout.flush()
    # Ctrl-C and a closed pipe end a program in C.
    former = {number: signal.signal(number, signal.SIG_DFL)
              for number in (signal.SIGINT, signal.SIGPIPE)}
    try:
        return _core._command(["cfx", *words])
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit status."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["capture"] or (words[:1] == ["trace"] and not _is_of_c(words[1:])):
        return _of_python(words)
    if words[:1] == ["bench"] and any(w.partition("=")[0] == "--against" for w in words):
        from ._bench.verb import bench

        return bench(words[1:], _command)
    return _command(words)


if __name__ == "__main__":
    sys.exit(main())
