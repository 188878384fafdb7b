/* cmd_capture.c - cfx capture: runs a PyTorch module once and writes down what it does. The verb is
 * Python's (python/cfx/__main__.py), which takes it before this file is asked; here are its help,
 * its completion, and what to do where there is no Python. */
#include "cli.h"

static const cli_option verb_options[] = {
    {"--input", "INPUTS", false, "example inputs: 'x=float32[2, 3], n=4, ids=ids.npy'", true},
    {"--dynamic", "NAME[=DIMS]", false, "sizes that must stay symbolic, such as x=0,1", true},
    {"--fixed", "NAME[=DIMS]", false, "sizes or numbers that the graph holds for alone", true},
    {"--modes", "current|both", false,
     "both: training and evaluation as one graph; needs --no-lower", false},
    {"--explain", NULL, false, "print how each part was captured, and what is assumed", false},
    {"--output", "FILE", false, "write the graph to FILE; or -o FILE", false},
    {"--weights", "FILE", false,
     "write the weights there: {tensors}; the default is beside the output", false},
    {"--no-weights", NULL, false, "write the graph only", false},
    {"--arg", "[NAME=]VALUE", false, "an argument of the class or function", true},
    {"--checkpoint", "FILE", false, "load these parameters first", false},
    {"--no-lower", NULL, false, "write calls as they were captured", false},
    {"--lower", NULL, false, "make every call an operator, for cfx run (the default)", false},
    {"--train", NULL, false, "capture the module in training mode", false},
    {"--eval", NULL, false, "capture the module in evaluation mode (the default)", false},
    {"--seed", "N", false, "seed for the parameters and for random inputs", false},
    {"--check", "INPUTS", false, "compare the module and the files on other inputs", true},
    {"--traceback", NULL, false, "print tracebacks of errors", false},
    {NULL, NULL, false, NULL, false},
};

static int cmd_capture(const cli_args *args)
{
    (void)args;
    fputs("cfx capture: PyTorch modules are captured by the Python package; install it "
          "(pip install cfx torch) and run: python -m cfx capture\n", stderr);
    return CLI_BAD_INPUT;
}

const cli_verb verb_capture = {
    .name = "capture",
    .summary = "run a PyTorch module once on example inputs and write what it does",
    .usage = "--input INPUTS [-o FILE] [OPTION...] package.module:NAME",
    .operands = CLI_ONE_FILE,
    .options = verb_options,
    .examples =
        "  cfx capture net.py:Net --input 'x=float32[2, 9]' -o net.ir\n"
        "  cfx capture net.py:Net --input 'ids=ids.npy, mask=bool[2, 9]' --explain\n"
        "  cfx capture net.py:Net --input 'x=float32[2, 9]' --dynamic x=0 --fixed x=1\n"
        "  cfx capture net.py:Net --input 'x=float32[2, 9]' --check 'x=float32[5, 7]'\n"
        "  python -m cfx capture --help                         its options in detail\n",
    .run = cmd_capture,
};
