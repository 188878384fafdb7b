"""What the tests of operators found, added up at the end of the run, and the shares of others; and
what is left to test where torch is not installed."""
import collections
import importlib.util
import json
import os
import signal
from pathlib import Path

import pytest

# A shell's background jobs ignore these two signals, and what tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# What agreed with PyTorch, for tools/op_docs.py: {row: {dtype: samples}}.
RESULTS = Path(__file__).resolve().parent.parent / "golden/operator_results.json"
NOTES = "1" in (os.environ.get("CFX_FULL"), os.environ.get("CFX_NOTE"))


@pytest.fixture
def one_thread():
    """For tensors that are tiny: threads would only wait for each other."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class WithoutTorch(pytest.Module):
    """A file of tests on a machine without torch. Tests that need it call pytest.importorskip; a
    file that imports torch at once is skipped whole."""

    def collect(self):
        try:
            return super().collect()
        except self.CollectError as error:
            if "No module named 'torch" not in str(error):
                raise
        pytest.skip("could not import 'torch'", allow_module_level=True)


if importlib.util.find_spec("torch") is None:

    def pytest_pycollect_makemodule(module_path, parent):
        return WithoutTorch.from_parent(parent, path=module_path)


def reports(terminal):
    for outcome in ("passed", "failed", "skipped"):
        for report in terminal.stats.get(outcome, ()):
            for name, value in getattr(report, "user_properties", ()):
                if name == "operator" and report.when == "call":
                    yield json.loads(value)


def note(found):
    """Figures of the rows that were run take the place of those noted before. A row that differs
    anywhere has none."""
    rows = collections.defaultdict(collections.Counter)
    for report in found:
        rows[report["row"]].update(report["agreed"])
    noted = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    noted.update({row: dict(sorted(dtypes.items())) for row, dtypes in rows.items()})
    for report in found:
        if report["differences"]:
            noted.pop(report["row"], None)
    lines = ",\n".join(f"{json.dumps(row)}: {json.dumps(noted[row])}" for row in sorted(noted))
    RESULTS.write_text(f"{{\n{lines}\n}}\n")


def show_shares(terminal):
    """What tests recorded as their share: of files, say."""
    for report in terminal.stats.get("passed", []) + terminal.stats.get("failed", []):
        for name, value in getattr(report, "user_properties", ()):
            if name == "share" and report.when == "call":
                terminal.write_line(value)


def show_programs(terminal):
    """How many of the scripted programs went which way: [way, good, of]."""
    sums = {}
    for report in terminal.stats.get("passed", []) + terminal.stats.get("failed", []):
        for name, value in getattr(report, "user_properties", ()):
            if name == "programs" and report.when == "call":
                way, good, total = json.loads(value)
                before = sums.get(way, (0, 0))
                sums[way] = before[0] + good, before[1] + total
    if sums:
        parts = [f"{way} {good} of {total}" if total else f"{way} {good}"
                 for way, (good, total) in sorted(sums.items())]
        terminal.write_line("scripted programs: " + ", ".join(parts))


def pytest_terminal_summary(terminalreporter):
    show_shares(terminalreporter)
    show_programs(terminalreporter)
    found = list(reports(terminalreporter))
    if not found:
        return
    total = {key: sum(r[key] for r in found)
             for key in ("samples", "differences", "by_double", "errors", "other_errors", "wider")}
    skips, known = collections.Counter(), collections.Counter()
    for report in found:
        skips.update(report["skips"])
        known.update({f"{report['row']}: {why}": n for why, n in report["known"].items()})
    wrong = [r for r in found if r["differences"]]
    if NOTES:
        note(found)
    write = terminalreporter.write_line
    terminalreporter.section("operators against PyTorch")
    write(f"{len({r['row'] for r in found})} rows, {len(found)} of PyTorch's descriptions, "
          f"{total['samples']} samples: {total['differences']} different in {len(wrong)}; "
          f"{total['by_double']} as near to double precision as PyTorch, though not to it")
    write(f"{total['errors']} inputs that both refuse; {total['other_errors']} with another kind "
          f"of exception; {total['wider']} that cfx takes, for numbers can stand for tensors")
    if elsewhere := sum(r["elsewhere"] for r in found):
        write(f"{elsewhere} of the samples computed by other kernels, too")
    for reason, n in skips.most_common():
        write(f"  skipped {n:5}  {reason}")
    for why, n in known.most_common():
        write(f"  known   {n:5}  {why}")
    for report in sorted(wrong, key=lambda r: -r["differences"]):
        write(f"  {report['row']:<28} {report['name']:<40} {report['differences']:5} of "
              f"{report['samples']} different")
