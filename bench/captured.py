"""What captures programs from a run: cfx.capture, torch.fx, torch.jit, torch.export and
torch.compile side by side, on the programs of tests/python/capture_programs.

    python bench/captured.py [--only WORD] [--tool NAME] [--json FILE] [--update] [--why]

The verdicts, the tools of torch and the tables are those of bench/script.py: a program counts if it
is captured from its first call, and does on all calls as eager PyTorch does. "cfx.capture" may
refuse inputs, "recapture" captures again. torch.compile runs with fullgraph=True and
backend="eager". --update writes the table of docs/capture.md.
"""
import script as shared  # it says where the programs are

import capture_programs
import cfx
import torch
from programs import run_one


def enter_mode(program, first):
    made = program.make()
    if first.mode is not None:
        made.train(first.mode)
    return made


def by_capture(program, first):
    yield cfx.capture(enter_mode(program, first), *first.args, **first.kwargs)


def by_recapture(program, first):
    yield cfx.capture(enter_mode(program, first), *first.args, recapture=True, **first.kwargs)


def by_compile(program, first):
    yield torch.compile(enter_mode(program, first), fullgraph=True, backend="eager")


TOOLS = {
    "cfx.capture": by_capture,
    "recapture": by_recapture,
    "torch.fx": shared.by_fx,
    "jit.script": shared.by_jit_script,
    "jit.trace": shared.by_jit_trace,
    "export": shared.by_export,
    "compile": by_compile,
}


def run(callee, calls):
    """Each call with the same random numbers, and with the modes that it finds."""
    found = []
    for each in calls:
        capture_programs.seed()
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
        found.append(run_one(callee, each))
    return found


SUITE = shared.Suite(capture_programs.load_all, TOOLS, __file__, ("captured", ""), run,
                     lambda program: capture_programs.world(program).program)


if __name__ == "__main__":
    torch.set_num_threads(1)
    shared.start(SUITE, shared.options_of(__doc__, TOOLS).parse_args())
