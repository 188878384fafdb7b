"""Captures models of public libraries with cfx.capture and compares them with the models.

    python tools/zoo.py [--update] [--peers] [LIBRARY[:MODEL] ...]       (make zoo)

Makes a virtual environment in build/zoo with the pinned packages of tools/zoo.txt; torch is that of
the Python that runs this. Each model (tools/zoo_models) is tried in a process of its own with a
time limit; tools/zoo_models/judge.py says what is tried. build/zoo/results.json has everything; a
summary is printed and stands in build/zoo/report.md. --peers tries torch.export and
torch.jit.trace, too. --update writes the tables of docs/capture.md: the one of cfx if all models
are tried, the one of other tools with --peers.
"""
import argparse
import collections
import faulthandler
import importlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "build/zoo"
PAGE = ROOT / "docs/capture.md"
TOOLS = ("cfx", "torch.jit.trace", "torch.export")  # what takes longest last: see --limit
MEMORY = 12 << 30


# ---- processes ----------------------------------------------------------------------------------


def in_child(library, name, tools, file):
    """Tries one model and writes the result; never returns. The parent has imported everything."""
    from zoo_models import LIBRARIES, judge

    log = os.open(file.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        judge.try_model(LIBRARIES[library].build, name, tools, lambda row: write(file, row))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def write(file, row):
    """In one go: the process may be ended at any time."""
    part = file.with_suffix(".part")
    part.write_text(json.dumps(row))
    part.replace(file)


def ended(file, status, limit):
    """The row of a model whose process has ended."""
    row = json.loads(file.read_text()) if file.exists() else {"built": "no result"}
    if status != 0:
        number = os.waitstatus_to_exitcode(status)
        log = file.with_suffix(".log").read_text(errors="replace").strip()
        said = re.search(r"what\(\): +(.*)", log) or re.search(r"(.*)$", log)
        text = f"took more than {limit} s" if number == -signal.SIGKILL else (
            f"ended with {number}: {said[1][:300]}")  # fmt: skip
        row["crash"] = {"error": "crash", "text": text}
        places = re.findall(r'File "(.*)", line (\d+) in', log)  # faulthandler's
        for name, line in places:
            if not re.search(r"/torch/|/cfx/|/zoo_models/", name):
                row["crash"]["line"] = f"{name.rpartition('site-packages/')[2]}:{line}"
                break
    return row


def run_all(cases, tools, jobs, limit):
    """{library: {model: row}}; a process for each model, `jobs` at a time."""
    rows = HERE / "rows"
    shutil.rmtree(rows, ignore_errors=True)
    rows.mkdir(parents=True)
    waiting, running, found = list(reversed(cases)), {}, collections.defaultdict(dict)
    while waiting or running:
        while waiting and len(running) < jobs:
            library, name = waiting.pop()
            file = rows / f"{library}-{name}.json".replace("/", "_")
            pid = os.fork()
            if pid == 0:
                in_child(library, name, tools, file)
            running[pid] = library, name, file, time.monotonic() + limit
        for pid, (library, name, file, deadline) in list(running.items()):
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                del running[pid]
                row = found[library][name] = ended(file, status, limit)
                print(f"{len(cases) - len(waiting) - len(running)}/{len(cases)} {library} {name}: "
                      f"{short(row)}", flush=True)  # fmt: skip
        time.sleep(0.02)
    return found


# ---- summaries ----------------------------------------------------------------------------------

COLUMNS = ("capture", "data", "batch", "one", "length", "values", "recapture", "lower", "c",
           "c_sizes", "file", "file_c", "train")  # fmt: skip


def column(row, name, tool="cfx"):
    """"ok", "" or a dict; a process that was ended early failed where it was."""
    done = row.get(tool, {})
    first = next((other for other in COLUMNS if other not in done), None)
    crashed = name == first and done.get("capture", "ok") == "ok"
    return done.get(name, row.get("crash", "") if crashed else "")


def short(row):
    if row.get("built") != "ok":
        return f"NOT BUILT {row['built']} {row.get('crash', '')}"[:200]
    marks = {"ok": "+", "": "."}
    text = "".join(marks.get(column(row, name), "-") if isinstance(column(row, name), str) else "-"
                   for name in COLUMNS)  # fmt: skip
    wrong = next((c for c in (column(row, n) for n in COLUMNS[:-1]) if isinstance(c, dict)), None)
    return f"{text} {wrong['text'].splitlines()[0][:110] if wrong else ''} {row['notes']}".strip()


def counts(rows, tool):
    """{column: (ok, tried)} of models by name."""
    found = {}
    for name in COLUMNS:
        results = [column(row, name, tool) for row in rows.values() if row.get("built") == "ok"]
        found[name] = sum(r == "ok" for r in results), sum(r != "" for r in results)
    return found


def all_sizes(row, tool):
    """Whether a captured model is right at every other size that the model takes."""
    results = [column(row, name, tool) for name in ("data", "batch", "one", "length")]
    return row.get("built") == "ok" and column(row, "capture", tool) == "ok" and all(
        r in ("ok", "") for r in results)


def cause(result):
    """What failures of the same cause have in common."""
    text = result["text"].splitlines()[0]
    guard = re.search(r"^(?:_assert\(.*\): )?(.*) was (.*?)(?: at \S+)? "
                      r"when (?:this graph|the model) was", text)  # fmt: skip
    if guard:
        if guard[2] in ("True", "False") and re.fullmatch(r"\w+", guard[1]):
            return "guard: the truth of data"
        kind = "a number from data" if re.match(r"tolist|.*item\(\)", guard[1]) else (
            "sizes that are equal, or not" if re.search("==|!=", guard[1]) else
            "the order of sizes" if re.search("[<>]", guard[1]) else "the number of a size")
        return f"guard: {kind}"
    text = re.sub(r"^\S+\.py:\d+: ", "", text)
    text = re.sub(r"(the model assigns) \S+,.*", r"\1 an attribute", text)
    text = re.sub(r"the argument \S+ is a \S+,(.*?);.*", r"an argument is an object\1", text)
    text = re.sub(r"result[\[\].\w'\"]*", "result", text)
    text = re.sub(r"-?\b\d[\d.]*(e-?\d+)?", "N", text)
    return f"{result['error']}: {text[:150]}"


def failures(found, columns, tool="cfx"):
    """(library, model, column, result) of models that fail in one of the columns, and in none
    before: what comes after has the same cause."""
    before = COLUMNS[:COLUMNS.index(columns[0])]
    if columns[0].startswith("file"):  # of the example's size: what other sizes do is no matter
        before = ("capture", "data", "file")[:2 + (columns[0] != "file")]
    for library, rows in found.items():
        for model, row in rows.items():
            if columns != ("train",) and any(
                isinstance(column(row, name, tool), dict) for name in before
                if name not in ("lower", "values", "recapture")
            ):
                continue
            for name in columns:
                if isinstance(column(row, name, tool), dict):
                    yield library, model, name, column(row, name, tool)
                    break


def grouped(found, columns, tool="cfx"):
    """[(cause, column, [(library, model, result)])], the most frequent first."""
    groups = collections.defaultdict(list)
    for library, model, name, result in failures(found, columns, tool):
        groups[name, cause(result)].append((library, model, result))
    return sorted(((c, n, g) for (n, c), g in groups.items()), key=lambda g: -len(g[2]))


def missing(found):
    """[(operator, number of models)] that cfx.lower wants, the most wanted first."""
    wanted = collections.Counter()
    for rows in found.values():
        for row in rows.values():
            wanted.update(row.get("cfx", {}).get("missing", {}).keys())
    return wanted.most_common()


def examples(group):
    """Lines of the report: where the failures of a cause are, in the models' sources."""
    lines = collections.defaultdict(list)
    for library, model, result in group:
        lines[result.get("line", ""), result.get("code", "")].append((f"{library}:{model}", result))
    for (line, code), models in sorted(lines.items(), key=lambda item: -len(item[1]))[:12]:
        names = ", ".join(name for name, _ in models[:4]) + (", ..." if len(models) > 4 else "")
        yield f"    - {len(models)} ({names}) {line} `{code}`"
        yield f"        {models[0][1]['text'].splitlines()[0][:200]}"


def report(found, tools):
    """The whole report as lines."""
    for tool in tools:
        yield f"\n## {tool}\n"
        yield "| library | models | " + " | ".join(COLUMNS) + " | nodes | seconds |"
        yield "|---" * (len(COLUMNS) + 4) + "|"
        for library, rows in found.items():
            built = [row for row in rows.values() if row.get("built") == "ok"]
            done = counts(rows, tool)
            parts = [f"{ok}/{tried}" for ok, tried in done.values()]
            captured = [row[tool] for row in built if "seconds" in row.get(tool, {})]
            nodes = sum(row["nodes"] for row in captured) / max(1, len(captured))
            seconds = sum(row["seconds"] for row in captured) / max(1, len(captured))
            yield (f"| {library} | {len(built)} | " + " | ".join(parts)
                   + f" | {nodes:.0f} | {seconds:.2f} |")  # fmt: skip
    unbuilt = [f"{lib}:{name}" for lib, rows in found.items() for name, row in rows.items()
               if row.get("built") != "ok"]  # fmt: skip
    yield f"\nnot built: {', '.join(unbuilt) or 'none'}"
    weak = [f"{lib}:{name} ({row['notes']})" for lib, rows in found.items()
            for name, row in rows.items() if row.get("notes")]  # fmt: skip
    yield f"\nweak comparisons: {', '.join(weak) or 'none'}"
    parts = {"capture": ("capture",), "example": ("data",),
             "other sizes": ("batch", "one", "length"), "other values": ("values",),
             "other sizes, with recapture": ("recapture",),
             "results in C": ("c", "c_sizes"), "files": ("file",),
             "files in C": ("file_c",), "modes": ("train",)}  # fmt: skip
    for title, columns in parts.items():
        yield f"\n## Failures: {title}\n"
        for text, name, group in grouped(found, columns):
            yield f"- {len(group)} models, {name}: {text}"
            yield from examples(group)
    yield "\n## Operators that are missing in C (models)\n"
    for operator, number in missing(found):
        yield f"- {number}: {operator}"


def with_recapture(row):
    """Whether a model is right at every other size, if it may be captured again where a graph
    refuses to run."""
    return all_sizes(row, "cfx") or column(row, "recapture") == "ok"


def table(found):
    """The lines of docs/capture.md."""
    heads = ("library", "models", "captured", "same results", "other sizes", "with recapture",
             "other values", "lowered", "same in C", "same from a file",
             "same from a file in C")  # fmt: skip
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for library, rows in found.items():
        rows = {name: row for name, row in rows.items() if row.get("built") == "ok"}
        done = counts(rows, "cfx")
        in_c = [row for row in rows.values() if column(row, "c") != ""]
        right = sum(column(row, "c") == "ok" and column(row, "c_sizes") in ("ok", "")
                    for row in in_c)  # fmt: skip
        cells = (library, len(rows), done["capture"][0], done["data"][0],
                 sum(all_sizes(row, "cfx") for row in rows.values()),
                 sum(with_recapture(row) for row in rows.values()),
                 "{} of {}".format(*done["values"]) if done["values"][1] else "",
                 done["lower"][0], f"{right} of {len(in_c)}",
                 "{} of {}".format(*done["file"]), "{} of {}".format(*done["file_c"]))  # fmt: skip
        yield f"| {' | '.join(map(str, cells))} |"
    yield from ("", "| what fails | models | which |", "|---|---|---|")
    for text, name, group in grouped(found, COLUMNS[:6]):
        text = text.replace("|", "\\|").replace("<", "&lt;")
        yield f"| {name}: {text[:100]} | {len(group)} | {named(group)} |"
    yield from ("", "| missing in C | models |", "|---|---|")
    for operator, number in missing(found):
        yield f"| {operator[:100]} | {number} |"


def named(group):
    """The models of a group, by library."""
    models = collections.defaultdict(list)
    for library, model, _ in group:
        models[library].append(model)
    return "; ".join(f"{library}: {', '.join(names)}" for library, names in models.items())


def peers_table(found):
    """The lines of docs/capture.md on other tools: how many of the models each captures, and how
    many of these are right."""
    heads = ("library", "models", *(f"{tool}: {what}" for tool in TOOLS for what in (
        "captured", "same results", "other sizes")))  # fmt: skip
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for library, rows in found.items():
        rows = {name: row for name, row in rows.items() if row.get("built") == "ok"}
        cells = [library, len(rows)]
        for tool in TOOLS:
            done = counts(rows, tool)
            cells += [done["capture"][0], done["data"][0],
                      sum(all_sizes(row, tool) for row in rows.values())]
        yield f"| {' | '.join(map(str, cells))} |"


# ---- the command --------------------------------------------------------------------------------


def chosen(wanted, every=1):
    """[(library, model)] of what the command line names; everything if it names nothing."""
    from zoo_models import LIBRARIES

    found = []
    for word in wanted or LIBRARIES:
        library, _, pattern = word.partition(":")
        names = [n for n in LIBRARIES[library].names() if not pattern or re.fullmatch(pattern, n)]
        found += [(library, name) for name in names[::every]]
    return found


def run(options):
    """In the environment."""
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1")
    sys.path.insert(0, str(ROOT / "python"))
    from zoo_models import LIBRARIES, judge  # noqa: F401  (before the processes start)

    cases = chosen(options.model, options.every)
    for library in dict.fromkeys(library for library, _ in cases):
        LIBRARIES[library].load()
    importlib.import_module("cfx")
    found = run_all(cases, TOOLS if options.peers else TOOLS[:1], options.jobs, options.limit)
    (HERE / "results.json").write_text(json.dumps(found, indent=1))
    text = "\n".join(report(found, TOOLS if options.peers else TOOLS[:1]))
    (HERE / "report.md").write_text(text + "\n")
    print(text)
    if options.update and not options.model:
        from pages import write_between

        if options.peers:
            write_between(PAGE, "peers in the zoo", peers_table(found))
        if options.every == 1:
            write_between(PAGE, "zoo", table(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--peers", action="store_true", help="torch.export, torch.jit.trace")
    parser.add_argument("--every", type=int, default=1, help="only each n-th model of a library")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=int, help="seconds for a model: 120, or 600 with --peers")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("model", nargs="*", help="LIBRARY or LIBRARY:REGULAR-EXPRESSION")
    options = parser.parse_args()
    options.limit = options.limit or (600 if options.peers else 120)
    if options.inside:
        return run(options)
    from environment import make_environment

    python = make_environment(HERE, Path(__file__).with_name("zoo.txt"))
    os.execv(python, [str(python), "-W", "ignore", __file__, "--inside", *sys.argv[1:]])


if __name__ == "__main__":
    main()
