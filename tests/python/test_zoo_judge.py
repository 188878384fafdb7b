"""The judge of tools/zoo.py finds what it should: the models of other libraries are not here, but
wrong results, lost structure and missing operators can be made with torch alone."""
import collections
import dataclasses
import importlib.util
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.append(str(TOOLS))  # at the end: tests/zoo has the name of tools/zoo.py

import pages  # noqa: E402
from zoo_models import Case, judge  # noqa: E402

spec = importlib.util.spec_from_file_location("tools_zoo", TOOLS / "zoo.py")
zoo = importlib.util.module_from_spec(spec)
spec.loader.exec_module(zoo)


@dataclasses.dataclass
class Result:
    y: object
    kept: object = None


class Box:
    def __init__(self, item):
        self.item = item


def images(batch, size):
    return (torch.randn(batch, 4, size),), {}


def rows(model, inputs=images, length=6, other=9, tools=("cfx",), **more):
    """The columns of a model."""
    found = {}
    case = Case(model, inputs, length, other, **more)
    judge.try_model(lambda name: case, "", tools, found.update)
    return found


# ---- comparisons --------------------------------------------------------------------------------


x = torch.arange(6.0).reshape(2, 3)
DIFFERENT = [
    (x, x + 1, "differs by"),
    (x, x.double(), "torch.float64"),
    (x, x[0], "shape"),
    (x > 1, x > 2, "of the elements"),
    ((x, x), (x,), "nested otherwise: [1]"),
    ({"a": x}, {"b": x}, "nested otherwise"),
    (Result(x), Result(x + 1), "result.y"),
    (Box(Box(x)), Box(Box(x + 1)), "result.item.item"),
    (x, torch.full_like(x, torch.nan), "differs by"),
    (x / 0, x, "nan differ"),
    (torch.full_like(x, torch.nan), torch.zeros_like(x), "nan differ"),
    (torch.full_like(x, torch.inf), torch.full_like(x, 3e38), "nan differ"),
    (torch.complex(x, x), torch.complex(x, -x), "differs by"),
    ((x, 1), (x, 2), "2 instead of 1"),
    ((x, 1), (x, True), "True instead of 1"),
    (x, x.as_subclass(type("Fake", (torch.Tensor,), {})), "a Fake instead of a tensor"),
]


@pytest.mark.parametrize("expected, found, text", DIFFERENT)
def test_differences_are_found(expected, found, text):
    assert text in judge.compare(expected, found, 1e-5)
    assert judge.compare(expected, expected, 1e-5) is None


# ---- models -------------------------------------------------------------------------------------


class Sizes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        if x.shape[2] > 8:
            x = x * 2
        return self.fc(x.transpose(1, 2)), [x.mean()]


def test_a_model_that_is_right_but_for_a_length():
    found = rows(Sizes())
    columns = found["cfx"]
    assert found["built"] == "ok" and not found["notes"]
    assert [columns[n] for n in ("capture", "data", "batch", "one", "lower", "c", "c_sizes")] == (
        ["ok"] * 7)
    assert "x.shape[2] > 8" in columns["length"]["text"]
    assert columns["length"]["line"].endswith("test_zoo_judge.py:%d" % (
        Sizes.forward.__code__.co_firstlineno + 1))
    assert zoo.cause(columns["length"]) == "guard: the order of sizes"


def test_sizes_that_the_model_refuses_do_not_count():
    class Fixed(torch.nn.Module):
        def forward(self, x):
            return x * torch.arange(6)

    columns = rows(Fixed())["cfx"]
    assert columns["data"] == "ok" and columns["length"] == ""


def test_missing_operators_are_counted():
    class Odd(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.eigvals(x @ x.mT).real

    columns = rows(Odd())["cfx"]
    assert columns["lower"]["error"] == "LowerError"
    assert list(columns["missing"]) == ["torch._C._linalg.linalg_eigvals: not in the table"]
    assert zoo.missing({"a": {"b": {"cfx": columns}}}) == [(*columns["missing"], 1)]


def test_steps_use_the_last_result():
    class Counter(torch.nn.Module):
        def forward(self, x, state):
            return x.sum() + state, state + 1

    def inputs(batch, length):
        return (torch.randn(batch, length), torch.zeros(())), {}

    def following(given, result):
        return (given[0][0], result[1]), {}

    case = Case(Counter(), inputs, 3, 4, following)
    assert [r[1].item() for r in judge.play(case.model, inputs(2, 3), case)] == [1, 2, 3]
    assert rows(Counter(), inputs, 3, 4, following=following)["cfx"]["data"] == "ok"


def test_values_of_another_kind():
    class Branch(torch.nn.Module):
        def forward(self, x):
            return (torch.neg if (x > 100).any() else torch.relu)(x)  # cannot be captured

    def large(batch, length):
        return (images(batch, length)[0][0] + 1000,), {}

    columns = rows(Branch(), variant=large)["cfx"]
    assert columns["data"] == "ok" and zoo.cause(columns["values"]) == "guard: the truth of data"
    assert rows(Branch())["cfx"]["values"] == ""


def test_random_results_are_not_compared_in_c():
    class Noise(torch.nn.Module):
        def forward(self, x):
            return x + torch.rand(3, 4, 1)[0]

    columns = rows(Noise())["cfx"]
    assert columns["data"] == "ok" and columns["c"] == ""


def test_results_without_data_are_noted():
    class Deaf(torch.nn.Module):
        def forward(self, x):
            return torch.ones(x.shape[0])

    assert rows(Deaf())["notes"] == "results do not depend on the data"


def test_peers_are_tried():
    found = rows(torch.nn.Linear(4, 2), lambda b, n: ((torch.randn(b, n, 4),), {}), 3, 5,
                 tools=("torch.export", "torch.jit.trace"))  # fmt: skip
    for tool in ("torch.export", "torch.jit.trace"):
        assert [found[tool][c] for c in ("capture", "data", "batch", "one", "length")] == ["ok"] * 5


def test_peers_get_the_model_in_eval_mode():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.9))
    found = rows(model, lambda b, n: ((torch.randn(b, n, 4),), {}), 3, 5,
                 tools=("cfx", "torch.jit.trace"))  # fmt: skip
    assert found["torch.jit.trace"]["data"] == "ok" and not model.training


# ---- tables -------------------------------------------------------------------------------------


def test_a_process_that_ends_early_fails_where_it_was():
    crash = {"error": "crash", "text": "ended with -6: x"}
    row = {"built": "ok", "notes": "", "cfx": {"capture": "ok", "data": "ok"}, "crash": crash}
    assert zoo.column(row, "batch") == crash
    assert [zoo.column(row, name) for name in ("one", "lower", "train")] == [""] * 3


def test_the_table_counts_models():
    bad = {"error": "CaptureError", "text": "m.py:3: no"}
    good = dict.fromkeys(zoo.COLUMNS, "ok")
    lib = {"a": {"built": "ok", "cfx": good}, "b": {"built": "ok", "cfx": {"capture": bad}},
           "c": {"built": "ok", "cfx": {**good, "length": bad, "one": ""}},
           "d": {"built": bad},
           "e": {"built": "ok", "cfx": {**good, "batch": bad, "recapture": bad, "lower": bad,
                                        "c": "", "c_sizes": "", "file": bad, "file_c": "",
                                        "missing": {"torch.x": 3}}},
           }  # fmt: skip
    lines = list(zoo.table(collections.OrderedDict(lib=lib)))
    assert lines[2] == "| lib | 4 | 3 | 3 | 1 | 2 | 3 of 3 | 2 | 2 of 2 | 2 of 3 | 2 of 2 |"
    assert "| torch.x | 1 |" in lines
    assert [line for line in lines if "CaptureError: no" in line] == [
        "| capture: CaptureError: no | 1 | lib: b |", "| length: CaptureError: no | 1 | lib: c |",
        "| batch: CaptureError: no | 1 | lib: e |"]


def test_the_table_of_other_tools_has_a_column_for_each():
    bad = {"error": "E", "text": "no"}
    good = dict.fromkeys(zoo.COLUMNS, "ok")
    row = {"built": "ok", "cfx": good, "torch.export": {"capture": bad},
           "torch.jit.trace": {**good, "batch": bad}}  # fmt: skip
    lines = list(zoo.peers_table({"lib": {"a": row, "b": {"built": "ok", "cfx": good}}}))
    assert lines[2] == "| lib | 2 | 2 | 2 | 2 | 1 | 1 | 0 | 0 | 0 | 0 |"


class GivesStateInEvaluation(torch.nn.Module):
    def forward(self, x, state=None):
        return (x, None) if self.training else (x + (0 if state is None else state), x * 2)


def test_inputs_that_the_model_makes_are_made_in_evaluation():
    """As a decoder's cache is, which some models do not give in training."""
    model = GivesStateInEvaluation()

    def inputs(batch, length):
        x = torch.randn(batch, length)
        return (x, model(x)[1] + 1), {}

    assert rows(model, inputs)["cfx"]["train"] == "ok"


class HasScript(torch.nn.Module):
    """Calls what a file cannot hold."""

    def __init__(self):
        super().__init__()
        self.inner = torch.jit.script(torch.nn.ReLU())

    def forward(self, x):
        return self.inner(x)


def test_files_are_tried():
    found = rows(torch.nn.Conv1d(4, 4, 1))["cfx"]
    assert (found["file"], found["file_c"]) == ("ok", "ok")
    found = rows(HasScript())["cfx"]
    assert found["file"]["error"] == "PackageError" and found["file_c"] == ""


def test_a_file_that_loses_something_is_found(monkeypatch):
    import cfx

    monkeypatch.setattr(cfx, "load", lambda file, **kw: Wrong())
    assert "text" in rows(torch.nn.Conv1d(4, 4, 1))["cfx"]["file"]["text"]


class BySize(torch.nn.Module):
    """Computes something else for one row."""

    def forward(self, x):
        return x * 2 if x.shape[0] > 1 else x - 1


def test_a_model_that_is_right_if_it_is_captured_again_counts_as_that():
    found = rows(BySize())["cfx"]
    assert (found["data"], found["batch"]) == ("ok", "ok")
    assert found["one"]["refused"] and found["recapture"] == "ok"
    assert rows(torch.nn.ReLU())["cfx"]["recapture"] == ""


def test_a_graph_that_is_wrong_is_not_mended_by_another_one(monkeypatch):
    """Only a graph that refuses to run may be replaced."""
    monkeypatch.setitem(judge.TOOLS, "cfx", lambda model, args, kwargs: (Wrong(), 1))
    found = rows(BySize())["cfx"]
    assert found["recapture"]["error"] == "differs"


class Wrong(torch.nn.Module):
    guards = graphs = ()

    def forward(self, x):
        return x * 2


def test_a_table_replaces_the_old_one(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- t -->\nold\n<!-- end of t -->\nb\n")
    pages.write_between(page, "t", ["new", "rows"])
    assert page.read_text() == "a\n<!-- t -->\nnew\nrows\n<!-- end of t -->\nb\n"
    with pytest.raises(SystemExit, match="no place"):
        pages.write_between(page, "other", ["new"])


def test_missing_operators_are_counted_by_what_is_missing():
    layer = ("m.py:3: self.a.conv1(x): the module 'a.conv1' has hooks or its own forward, so it "
             "cannot be lowered by its class (node %a_conv1)")  # fmt: skip
    assert judge.operator(layer) == "a layer: has hooks or its own forward"
    asked = "m.py:3: os.getenv('A', '0'): 'os.getenv' is not in the operator table (node %getenv)"
    assert judge.operator(asked) == "os.getenv: not in the table"
