"""Runs libraries that use torch.fx twice, with torch.fx and with cfx in its place, side by side.

    python tools/clients.py [--update] [CLIENT ...]       (make clients)
    python tools/clients.py --tests CLIENT FOLDER ...     (its own tests, from its sources)

Makes a virtual environment in build/clients with the pinned packages of tools/clients.txt; torch is
that of the Python that runs this. Each client's uses (tools/client_uses.py) run in a process of
their own. In the second one every `torch.fx` in the sources of the client becomes `cfx` while they
are imported; nothing else changes. A use passes if it gives the same results as without torch.fx,
or the results that its client promises. --update writes the table of docs/compatibility.md.
"""
import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from environment import make_environment
from pages import write_between

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "build/clients"
PAGE = ROOT / "docs/compatibility.md"


# ---- in the process of a client -----------------------------------------------------------------


FROM = r"^([ \t]*)from torch import "
REPLACED = [  # what each line of a source becomes, in this order
    (re.compile(r"^([ \t]*)import torch\.fx[ \t]*$", re.M), r"\1import torch, cfx"),
    (re.compile(FROM + r"fx, (.*)$", re.M), r"\1import cfx as fx; from torch import \2"),
    (re.compile(FROM + r"(.*), fx[ \t]*$", re.M), r"\1from torch import \2; import cfx as fx"),
    (re.compile(FROM + r"fx\b", re.M), r"\1import cfx as fx"),
    (re.compile(r"(?<![\w.])torch\.fx\b"), "cfx"),
]


def replaced(source):
    """A source with cfx in place of torch.fx."""
    for pattern, new in REPLACED:
        source = pattern.sub(new, source)
    return source


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a module of a client with cfx in place of torch.fx."""

    changed = 0  # modules that mention torch.fx

    def get_code(self, fullname):  # never from a cache: that would be the plain one
        path = self.get_filename(fullname)
        source = self.get_data(path).decode()
        Loader.changed += replaced(source) != source
        return compile(replaced(source), path, "exec", dont_inherit=True)

    def exec_module(self, module):
        import cfx

        module.cfx = cfx  # `import torch` is all that torch.fx needs
        super().exec_module(module)


class Finder(importlib.abc.MetaPathFinder):
    def __init__(self, packages):
        self.packages = packages

    def find_spec(self, name, path=None, target=None):
        if not any(name == p or name.startswith(f"{p}.") for p in self.packages):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


def all_uses(change=str):
    """What the files of uses define, with their texts changed."""
    scope = {"__name__": "client_uses", "cfx": sys.modules.get("cfx")}
    for name in ("client_uses.py", "client_uses_more.py"):
        path = Path(__file__).with_name(name)
        exec(compile(change(path.read_text()), str(path), "exec"), scope)
    return scope


def replace_torch_fx():
    """From now on, the sources of the client have cfx in place of torch.fx."""
    import torch  # noqa: F401  (what torch itself imports of itself stays)

    packages = json.loads(os.environ["CFX_CLIENT_PACKAGES"])
    roots = tuple(f"{package}." for package in packages)
    for name in [name for name in sys.modules if f"{name}.".startswith(roots)]:
        del sys.modules[name]  # torch imports some of torch.ao
    sys.meta_path.insert(0, Finder(packages))


def run_tests(library, arguments):
    """Runs tests of a client with pytest."""
    import pytest

    if library == "cfx":
        replace_torch_fx()
    code = pytest.main(["-q", "-p", "no:cacheprovider", *arguments])
    if library == "cfx" and not Loader.changed:
        code = "error: torch.fx was not replaced"
    sys.exit(code)


def run_uses(client, library):
    """Prints {use: result or error} of a client as JSON."""
    if library == "cfx":
        replace_torch_fx()
    scope = all_uses(replaced if library == "cfx" else str)
    found = scope["run"](client)
    if library == "cfx" and not Loader.changed:
        found = {use: "error: torch.fx was not replaced" for use in found}
    print("\nRESULTS " + json.dumps(found))


# ---- the table ----------------------------------------------------------------------------------


def environment(packages):
    return dict(os.environ, CFX_CLIENT_PACKAGES=json.dumps(packages), PYTHONWARNINGS="ignore",
                PYTHONPATH=str(ROOT / "python"), TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")


def compare_tests(python, packages, arguments):
    """Runs the client's own tests with both; the exit status is 1 if cfx does worse."""
    lines = []
    for library in ("torch.fx", "cfx"):
        command = [python, Path(__file__).resolve(), "--run-tests", library, "--", *arguments]
        done = subprocess.run(
            command, env=environment(packages), stdout=subprocess.PIPE, text=True, cwd=HERE
        )  # what clients leave behind lies there
        print(done.stdout)
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        lines.append((done.returncode, f"{library:9} {last}"))
    print("\n".join(line for _, line in lines))
    sys.exit(bool(lines[1][0]) and not lines[0][0])


def results(python, client, packages, library):
    """{use: "result" or "error: ..."} of one client; the whole client fails as one use."""
    env = environment(packages)
    command = [python, Path(__file__).resolve(), "--run", client, library]
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=1800, cwd=HERE
    )  # what clients leave behind lies there
    line = next((x for x in done.stdout.splitlines() if x.startswith("RESULTS ")), None)
    if line is None:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return {"import": f"error: {last}"}
    return json.loads(line.removeprefix("RESULTS "))


def passed(found):
    return sum(not str(result).startswith("error") for result in found.values())


def row_of(client, theirs, ours):
    same = [use for use in theirs if theirs[use] == ours.get(use)]
    both = [use for use in same if not str(theirs[use]).startswith("error")]
    for use in theirs:
        if use not in both:
            print(f"  {use}\n    torch.fx: {theirs[use]}\n    cfx:      {ours.get(use)}")
    total = len(theirs)
    return f"| {client} | {total} | {passed(theirs)} | {passed(ours)} | {len(both)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--run-tests", help=argparse.SUPPRESS)
    parser.add_argument("--tests", metavar="CLIENT", help="run its tests: arguments of pytest")
    parser.add_argument("client", nargs="*")
    options = parser.parse_args()
    if options.run_tests:
        return run_tests(options.run_tests, options.client)
    if options.run:
        return run_uses(*options.run)
    if importlib.util.find_spec("torch") is None:
        sys.exit("clients.py needs torch: `make test` sets up .venv with it")
    known = all_uses()["CLIENTS"]
    python = make_environment(HERE, Path(__file__).with_name("clients.txt"))
    if options.tests:
        return compare_tests(python, known[options.tests], options.client)
    rows, worse = [], False
    for client in options.client or known:
        print(client, flush=True)
        found = [results(python, client, known[client], fx) for fx in ("torch.fx", "cfx")]
        rows.append(row_of(client, *found))
        print("  " + rows[-1], flush=True)
        worse |= passed(found[1]) < passed(found[0])
    if options.update and not options.client:
        table = ["| client | uses | with torch.fx | with cfx | the same |", "|---|---|---|---|---|"]
        write_between(PAGE, "clients", table + rows)
    return sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
