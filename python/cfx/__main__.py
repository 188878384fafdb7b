"""The command `python -m cfx`: what of cfx needs torch, from the shell. All else is the command
`cfx`, which is C."""
import argparse
import sys

from . import __version__, weights

EXAMPLES = """\
TARGET is package.module:NAME or path/to/file.py:NAME. NAME is a module class, which is
constructed with the values of --arg; a module; a function that returns a module, if it is given
--arg or needs no arguments; or a function of tensors, which is captured itself.

examples:
  python -m cfx trace torchvision.models:resnet18 -o resnet18.ir
  python -m cfx trace net.py:Net --arg 784 --arg bias=False -o net.ir
  python -m cfx trace net.py:Net --checkpoint net.pt -o net.ir --check 'x=float32[8, 784]'
  python -m cfx trace net.py:loss | cfx show
  cfx run --weights resnet18.safetensors --input x.npy resnet18.ir

Exit status: 0 done, 1 the input is wrong, 2 the command line is wrong."""


def _parser() -> argparse.ArgumentParser:
    named = ", ".join(weights.extensions("named tensors"))
    parser = argparse.ArgumentParser(
        prog="python -m cfx", allow_abbrev=False,
        description="The part of cfx that needs torch. To show, check, change and run graphs: cfx "
                    "--help")
    parser.add_argument("--version", action="version", version=f"cfx {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    trace = verbs.add_parser(
        "trace", help="capture a PyTorch module as IR text and weights", epilog=EXAMPLES,
        description="Captures a PyTorch module as files that cfx runs without Python.",
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    add = trace.add_argument
    add("target", metavar="TARGET", help="what to capture")
    add("-o", "--output", metavar="FILE", help="file for the IR text (default: standard output)")
    add("--weights", metavar="FILE",
        help=f"where the tensors go that the graph reads: {named} "
             "(the default: .safetensors beside the output)")
    add("--no-weights", action="store_true", help="write the text only")
    add("--arg", metavar="[NAME=]VALUE", action="append", default=[],
        help="an argument of the class or function: a Python literal, a dtype or a device")
    add("--checkpoint", metavar="FILE",
        help=f"load these parameters first: {named}, or what torch.save wrote")
    add("--concrete", metavar="NAME=VALUE", action="append", default=[],
        help="fix an input of forward; the graph then has no such input")
    add("--leaf", metavar="CLASS", action="append", default=[],
        help="keep modules of this class as one call, with --no-lower")
    add("--no-lower", dest="lower", action="store_false",
        help="write calls as they were captured; a graph that calls modules runs only in Python")
    add("--lower", dest="lower", action="store_true", default=True,
        help="write operators of the table, which run in C (the default)")
    add("--train", action="store_true", help="capture the module in training mode")
    add("--eval", dest="train", action="store_false",
        help="capture the module in evaluation mode (the default)")
    add("--seed", metavar="N", type=int, default=0,
        help="seed for the parameters and for the inputs of --check (default: 0)")
    add("--check", metavar="INPUTS", action="append", default=[],
        help="run the module and the written files, and print how much they differ: "
             "'x=float32[2, 3], n=4, ids=ids.npy'; random integers are 0 to 9")
    add("--traceback", action="store_true", help="print tracebacks of errors")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit status."""
    options = _parser().parse_args(argv)
    try:
        import torch  # noqa: F401
    except ImportError:
        print(f"cfx {options.verb}: this needs torch; install it into this Python, "
              f"{sys.executable}: pip install torch", file=sys.stderr)
        return 1
    from ._command import trace

    return trace(options)


if __name__ == "__main__":
    sys.exit(main())
