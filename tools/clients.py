"""Runs libraries that use torch.fx twice, with torch.fx and with cfx in its place, side by side.

    python tools/clients.py [--update] [CLIENT ...]       (make clients)

Makes a virtual environment in build/clients with the pinned packages of tools/clients.txt; torch is
that of the Python that runs this. Each client's uses (tools/client_uses.py) run in a process of
their own. In the second one every `torch.fx` in the sources of the client becomes `cfx` while they
are imported; nothing else changes. A use passes if it gives the same results as without torch.fx,
or the results that its client promises. --update writes the table of docs/compatibility.md.
"""
import argparse
import importlib.abc
import importlib.machinery
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
    (re.compile(r"\btorch\.fx\b"), "cfx"),
]


def replaced(source):
    """A source with cfx in place of torch.fx."""
    for pattern, new in REPLACED:
        source = pattern.sub(new, source)
    return source


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a module of a client with cfx in place of torch.fx."""

    def get_code(self, fullname):  # never from a cache: that would be the plain one
        path = self.get_filename(fullname)
        return compile(replaced(self.get_data(path).decode()), path, "exec", dont_inherit=True)


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


def run_uses(client, library):
    """Prints {use: result or error} of a client as JSON."""
    uses = Path(__file__).with_name("client_uses.py")
    source = uses.read_text()
    if library == "cfx":
        import torch  # noqa: F401  (what torch itself imports of itself stays)

        packages = json.loads(os.environ["CFX_CLIENT_PACKAGES"])
        roots = tuple(f"{package}." for package in packages)
        for name in [name for name in sys.modules if f"{name}.".startswith(roots)]:
            del sys.modules[name]  # torch imports some of torch.ao
        sys.meta_path.insert(0, Finder(packages))
        source = replaced(source)
    scope = {"__name__": "client_uses", "__file__": str(uses), "cfx": sys.modules.get("cfx")}
    exec(compile(source, str(uses), "exec"), scope)
    print("RESULTS " + json.dumps(scope["run"](client)))


# ---- the table ----------------------------------------------------------------------------------


def results(python, client, packages, library):
    """{use: "result" or "error: ..."} of one client; the whole client fails as one use."""
    env = dict(os.environ, CFX_CLIENT_PACKAGES=json.dumps(packages), PYTHONWARNINGS="ignore",
               PYTHONPATH=str(ROOT / "python"), TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
    command = [python, __file__, "--run", client, library]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1800)
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
    parser.add_argument("client", nargs="*")
    options = parser.parse_args()
    if options.run:
        return run_uses(*options.run)
    namespace = {"__name__": "client_uses", "__file__": ""}
    exec(Path(__file__).with_name("client_uses.py").read_text(), namespace)
    known = namespace["CLIENTS"]
    python = make_environment(HERE, Path(__file__).with_name("clients.txt"))
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
