"""What a model loses on its way through a file: .cfx beside other formats.

    python bench/formats.py [--update] [--verbose]

Each program has one property. It is captured, saved and loaded by each format's own means, and the
loaded model is compared with the program:

    .cfx             cfx.capture for both modes, cfx.save, cfx.load
    pickle           torch.fx.symbolic_trace, pickle
    TorchScript      torch.jit.script, or torch.jit.trace where that refuses the program; save, load
    .pt2             torch.export.export with every size dynamic (Dim.AUTO), save, load, module()

--update writes the table of docs/format.md; --verbose prints whole messages.
"""
import argparse
import collections
import contextlib
import dataclasses
import io
import pickle
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import torch
import torch.fx
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tools")]
import cfx  # noqa: E402

# ---- formats ------------------------------------------------------------------------------------


class Lost(Exception):
    """What a format has lost."""


def expect(holds, why):
    if not holds:
        raise Lost(f"lost: {why}")


def step(name, function, *args, **kwargs):
    """A step on the way; where it fails, the model has not come through."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        if VERBOSE:
            print(f"--- {name}: {type(error).__name__}: {error}")
        raise Lost(f"{name}: {type(error).__name__}") from error


def through_cfx(model, args):
    gm = step("not captured", cfx.capture, model, *args, modes="both")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.cfx")
        step("not saved", cfx.save, gm, file)
        return step("not loaded", cfx.load, file), file.read_bytes()


def through_pickle(model, args):
    gm = step("not captured", torch.fx.symbolic_trace, model)
    data = step("not saved", pickle.dumps, gm)
    return step("not loaded", pickle.loads, data), data


def through_script(model, args):
    try:
        scripted = torch.jit.script(model)
    except Exception:
        scripted = step("not captured", torch.jit.trace, model, args, check_trace=False,
                        strict=False)  # fmt: skip
    file = io.BytesIO()
    step("not saved", torch.jit.save, scripted, file)
    return step("not loaded", torch.jit.load, io.BytesIO(file.getvalue())), file.getvalue()


def dynamic(value):
    if isinstance(value, torch.Tensor):
        return {i: torch.export.Dim.AUTO for i in range(value.dim())}
    if isinstance(value, dict):
        return {key: dynamic(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [dynamic(item) for item in value]
    return None


def through_export(model, args):
    program = step("not captured", torch.export.export, model, args,
                   dynamic_shapes=tuple(map(dynamic, args)))  # fmt: skip
    file = io.BytesIO()
    step("not saved", torch.export.save, program, file)
    loaded = step("not loaded", torch.export.load, io.BytesIO(file.getvalue()))
    return loaded.module(), file.getvalue()


FORMATS = {".cfx": through_cfx, "pickle of torch.fx": through_pickle, "TorchScript": through_script,
           ".pt2": through_export}  # fmt: skip
VERBOSE = False


# ---- programs -----------------------------------------------------------------------------------


class InPlace(nn.Module):
    def forward(self, x):
        x[:, 0].add_(1)
        y = x * 2
        y[0] = 0
        return y


def check_in_place(through):
    x = torch.ones(2, 3)
    loaded, _ = through(InPlace(), (x.clone(),))
    given, wanted = x.clone(), x.clone()
    expect(torch.equal(loaded(given), InPlace()(wanted)), "other results")
    expect(torch.equal(given, wanted), "the argument is not changed")


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x - 1


def check_control_flow(through):
    loaded, _ = through(Branch(), (torch.ones(2),))
    for x in (torch.ones(2), torch.full((2,), -3.0)):
        expect(torch.equal(loaded(x), Branch()(x)), "one branch is gone: wrong results")


class Mixed(nn.Module):
    """The same, beside Python that torch.jit.script refuses."""

    def forward(self, x, **options):
        y = Branch()(x)
        return y * sum(k for k in (1, 2) if k not in options)


def check_mixed(through):
    loaded, _ = through(Mixed(), (torch.ones(2),))
    for x in (torch.ones(2), torch.full((2,), -3.0)):
        expect(torch.equal(loaded(x), Mixed()(x)), "one branch is gone: wrong results")


class Modes(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(3), nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.norm(x))


def check_training(through):
    x = torch.randn(4, 3)
    model = Modes().eval()
    loaded, _ = through(model, (x,))
    model = Modes()  # what was captured may share its statistics
    for train in (True, False):
        results = []
        for one in (model, loaded):
            step(f"train({train})", one.train, train)
            torch.manual_seed(0)
            results.append(step(f"after train({train})", one, x))
        expect(torch.allclose(*results), f"train({train}) does not do what it should")


class Lines(nn.Module):
    def forward(self, x):
        return torch.relu(x)  # the line


def check_lines(through):
    loaded, _ = through(Lines(), (torch.ones(2),))
    line = Lines.forward.__code__.co_firstlineno + 1
    if isinstance(loaded, torch.jit.ScriptModule):
        texts = [node.sourceRange() for node in loaded.graph.nodes()]
    else:
        texts = [f"{n.meta.get('stack_trace')}" for n in loaded.graph.nodes]
    if isinstance(loaded, cfx.GraphModule):
        texts = ["{}:{}".format(*n._location) for n in loaded.graph.nodes]
    expect(any(re.search(rf'formats\.py(:|", line ){line}\b', text) for text in texts), "none")


class Sizes(nn.Module):
    def forward(self, x):
        return x.reshape(x.shape[0] * x.shape[1], -1) + torch.zeros(x.shape[2])


def check_sizes(through):
    loaded, _ = through(Sizes(), (torch.ones(2, 3, 4),))
    for sizes in ((2, 3, 4), (5, 3, 4), (2, 6, 7)):
        x = torch.randn(sizes)
        expect(torch.equal(loaded(x), Sizes()(x)), f"wrong results for {sizes}")


class Numbers(nn.Module):
    def forward(self, x, n: int, scale: float):
        return x[:n] * scale


def check_numbers(through):
    x = torch.randn(5)
    loaded, _ = through(Numbers(), (x, 2, 3.0))
    for n, scale in ((2, 3.0), (4, 0.5)):
        result = step("refuses other numbers", loaded, x, n, scale)
        expect(torch.equal(result, Numbers()(x, n, scale)), "numbers are fixed: wrong results")


class Nested(nn.Module):
    def forward(self, batch: dict[str, list[torch.Tensor]]):
        return batch["pair"][0] + batch["pair"][1]


def check_arguments(through):
    given = {"pair": [torch.ones(2), torch.ones(2)]}
    loaded, _ = through(Nested(), (given,))
    expect(torch.equal(loaded(given), torch.full((2,), 2.0)), "other results")


Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Answer:
    pair: object
    more: object


class Structured(nn.Module):
    def forward(self, x):
        return Answer(Pair(x, x + 1), {"size": x.shape[0]})


def check_results(through):
    x = torch.ones(2)
    loaded, _ = through(Structured(), (x,))
    answer = loaded(x)
    expect(type(answer).__name__ == "Answer" and answer.more == {"size": 2}, "other classes")
    expect(torch.equal(answer.pair.right, x + 1), "other results")


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(100, 100, bias=False), nn.Linear(100, 100, bias=False)
        self.two.weight = self.one.weight

    def forward(self, x):
        return self.two(self.one(x))


def check_tied(through):
    loaded, data = through(Tied(), (torch.ones(2, 100),))
    found = dict(loaded.named_parameters(remove_duplicate=False))
    one, two = found["one.weight"], found["two.weight"]
    expect(one.data_ptr() == two.data_ptr(), "they are two tensors")
    expect(len(data) < 60000, "they are in the file twice")


class BySize(nn.Module):
    """Python decides by a size."""

    def forward(self, x):
        if x.shape[0] > 4:
            return x * 2
        return x - 1


def check_guards(through):
    loaded, _ = through(BySize(), (torch.ones(2),))
    for n in (2, 3, 8):
        try:
            result = loaded(torch.ones(n))
        except Exception:
            expect(n == 8, f"refuses {n} rows, too")
            continue
        expect(torch.equal(result, BySize()(torch.ones(n))), "wrong results without an error")


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


def check_state(through):
    loaded, _ = through(Counts(), (torch.ones(2),))
    found = [loaded(torch.ones(2))[0].item() for _ in range(3)]
    expect(found == [1, 2, 3], f"three calls give {found}")


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        return self.fc(x).relu()


ELSEWHERE = """
import pickle, sys, torch
sys.path.insert(0, sys.argv[3])
file, kind = sys.argv[1:3]
if kind == ".cfx":
    import cfx
    model = cfx.load(file)
elif kind == "TorchScript":
    model = torch.jit.load(file)
elif kind == ".pt2":
    model = torch.export.load(file).module()
else:
    model = pickle.load(open(file, "rb"))
model(torch.ones(2, 2))
"""


def check_elsewhere(through):
    _, data = through(Outer(), (torch.ones(2, 2),))
    kind = next(name for name, one in FORMATS.items() if one is through)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"model{kind if kind.startswith('.') else '.pt'}")
        file.write_bytes(data)
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", ELSEWHERE, str(file), kind,
                               str(ROOT / "python")], capture_output=True, text=True)  # fmt: skip
    expect(done.returncode == 0, done.stderr.strip().rpartition("\n")[2])


class Surprise:
    """What pickle makes of it is a call of the writer's choice."""

    def __reduce__(self):
        return exec, ("import sys; sys.surprised = True",)


class Harmful(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        return self.fc(x)


def check_safety(through):
    """A layer has an attribute that runs code when it is unpickled: a file may not hold it."""
    model = Harmful()
    model.fc.note = Surprise()
    sys.surprised = False
    with contextlib.suppress(Lost):
        through(model, (torch.ones(2, 2),))
    expect(not sys.surprised, "loading runs code of the file")


ROWS = {
    "in-place calls": check_in_place,
    "control flow on data": check_control_flow,
    "the same, beside a generator and `**options`": check_mixed,
    "training flag": check_training,
    "source lines": check_lines,
    "dynamic sizes": check_sizes,
    "numbers as arguments": check_numbers,
    "nested arguments": check_arguments,
    "classes of results": check_results,
    "tied weights": check_tied,
    "guards: a size that Python asks about": check_guards,
    "state: a counter": check_state,
    "loads where the program cannot be imported": check_elsewhere,
    "loading runs no code of the file": check_safety,
}

# ---- the table ----------------------------------------------------------------------------------


def outcome(check, through):
    """"kept", or what is lost."""
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(through)
        return "kept"
    except Lost as error:
        return str(error)


def table():
    yield f"| | {' | '.join(FORMATS)} |"
    yield "|---" * (len(FORMATS) + 1) + "|"
    for name, check in ROWS.items():
        cells = [outcome(check, through) for through in FORMATS.values()]
        yield f"| {name} | {' | '.join(cell.replace('|', ' ')[:90] for cell in cells)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write docs/format.md")
    parser.add_argument("--verbose", action="store_true", help="whole messages")
    options = parser.parse_args()
    global VERBOSE
    VERBOSE = options.verbose
    lines = list(table())
    print("\n".join(lines))
    if options.update:
        from pages import write_between

        write_between(ROOT / "docs/format.md", "formats", lines)


if __name__ == "__main__":
    main()
