"""cfx.script and cfx.capture side by side, on the programs of tests/python/programs.

    python bench/captured_scripts.py [--only WORD] [--tool NAME] [--json FILE] [--update] [--why]

The programs were written for cfx.script: data decides in them. "cfx.capture" captures them from
their first input and may refuse others, "recapture" captures again. Verdicts and tables are those
of bench/script.py; --update writes the table of docs/capture.md.
"""
import script as shared  # it says where the programs are

import programs
import torch
from captured import by_capture, by_recapture

TOOLS = {"cfx.script": shared.by_cfx, "cfx.capture": by_capture, "recapture": by_recapture}
SUITE = shared.Suite(programs.load_all, TOOLS, __file__, ("captured scripts", ""))


if __name__ == "__main__":
    torch.set_num_threads(1)
    shared.start(SUITE, shared.options_of(__doc__, TOOLS).parse_args())
