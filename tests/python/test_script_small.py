"""Small things that a captured program could get wrong without a word: lengths, kinds of numbers,
random generators, clocks, attributes of tensors, sets of tensors."""
import math
import os
import random
import sys
import time
import uuid

import numpy
import pytest
import torch
from torch import nn

import cfx
from script_checks import refused


def draws():
    """The states of all random generators."""
    torchs = torch.get_rng_state().numpy().tobytes()
    return hash(torchs), hash(random.getstate()), hash(str(numpy.random.get_state()))


def outcome(fn, args):
    try:
        result = fn(*args)
    except Exception as error:
        result = type(error).__name__, str(error).splitlines()[0]
    return repr((result, args, draws()))


def seed(number):
    torch.manual_seed(number)
    random.seed(number)
    numpy.random.seed(number)


def same(program, *calls):
    module = cfx.script(program)
    runs = [module, cfx.Interpreter(module).run]
    for call in calls:
        args = call if isinstance(call, tuple) else (call,)
        for number in range(3):
            seed(number)
            wanted = outcome(program, args)
            for run in runs[: 2 if "Error" not in wanted else 1]:
                seed(number)
                assert outcome(run, args) == wanted
    return module


ROWS = [torch.randn(3), torch.randn(3, 4), torch.randn(2, 3, 4), torch.tensor(1.0)]


# ---- unpacking ---------------------------------------------------------------------------------


def two_sizes(x):
    h, w = x.shape
    return h * w


def first_size(x):
    n, *rest = x.shape
    a, b, *c = x.size()
    return n, rest, a, b, c


def rows(x):
    a, b = x
    return a + b


def nested(x):
    (a, b), c = x.shape[:2], x
    return a * b, c


def items(x, pairs):
    total = 0
    for a, b in pairs:
        total = total + a * b
    return x * total


def known_lengths(x):
    values, indices = x.topk(1)
    q, r = divmod(len(x), 2)
    u, v = x.max(0)
    return values, indices, q, r, u, v


@pytest.mark.parametrize("program", [two_sizes, first_size, rows, nested])
def test_unpacking_checks_lengths(program):
    same(program, *ROWS)


def test_unpacking_in_a_loop():
    x = torch.ones(2)
    same(items, (x, [(1, 2), (3, 4)]), (x, []), (x, [(1, 2), (3, 4, 5)]), (x, [(1,)]))


def test_known_lengths_need_no_check():
    module = same(known_lengths, torch.randn(3), torch.randn(4, 2))
    assert [n.name for n in module.graph.nodes if n.target is cfx.check_length] == ["check_length"]


def test_unpacking_in_c():
    lowered = cfx.lower(cfx.script(two_sizes))
    assert lowered(ROWS[1]) == 12
    for x in (ROWS[0], ROWS[2]):
        with pytest.raises(ValueError, match="values to unpack"):
            lowered(x)


def test_check_length():
    cfx.check_length((1, 2), 2)
    cfx.check_length("abc", 1, True)
    for values, count, more, error in (
        ([1], 2, False, "expected 2, got 1"), ([], 1, True, "at least 1, got 0"),
        ([1, 2, 3], 2, False, "too many values"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=error):
            cfx.check_length(values, count, more)
    for values in (3, {1: 2}, {1}, torch.tensor(1)):
        with pytest.raises(TypeError):
            cfx.check_length(values, 1)


# ---- kinds of numbers --------------------------------------------------------------------------


def kinds(*values):
    classes = bool, int, float, complex, torch.Tensor, tuple
    return [[isinstance(v, c) for c in classes] for v in values]


def powers(x):
    n = len(x)
    return n, 2 ** (n - 5), kinds(
        2 ** (n - 5), pow(2, n - 5), n**2, n**-1, (-2.0) ** (n / 2), n**0.5, (n - 9) ** 0.5,
        2.0 ** (n - 5), (n > 4) ** 2,
    )  # fmt: skip


def choices(x):
    n = len(x)
    return kinds(
        min(n, 4.0), max(n, True), min(n, 4), max(n * 1.0, 4.5), min(x.sum(), 3), max(n, 2, 3.5),
        n if n > 4 else 0.5, True if n > 4 else 1, n > 4 and 3,
    )  # fmt: skip


def divisions(x):
    n = len(x)
    return kinds(
        round(n / 2), round(n / 2, 1), divmod(n, 2.0)[0], divmod(n, 2)[0], n // 2, n // 2.0,
        n % 2.0, n / 1, math.floor(n / 2), math.pow(n, 2), math.isqrt(n), math.prod([n, 2]),
        sum([n, 2]), sum([n, 2.0]),
    )  # fmt: skip


def truths(x):
    b = len(x) > 4
    return kinds(
        b, b & True, b | False, b ^ b, ~b, b + b, -b, +b, abs(b), b * b, b & 1, not b, b << 1,
        int(b), b // 1,
    )  # fmt: skip


def results(x):
    return kinds(
        x == None, x == "a", x.max(0), torch.max(x, 0), x.max(), x.min(dim=0),  # noqa: E711
        x.median(0), torch.sort(x), torch.unique(x, return_inverse=True),
        x.nonzero(as_tuple=True), torch.where(x > 0), x.size(dim=0), x.size(), x.shape[:1],
        x.sum().item().real, x.split(1), x.stride(), x.stride(0),
    )  # fmt: skip


@pytest.mark.parametrize("program", [powers, choices, divisions, truths])
def test_kinds_of_numbers(program):
    module = same(program, *(torch.randn(n) for n in (1, 3, 5, 7, 9)))
    lowered = cfx.lower(module)
    for n in (1, 3, 5, 7, 9):
        assert repr(lowered(torch.ones(n))) == repr(program(torch.ones(n)))


def test_kinds_of_results():
    same(results, torch.randn(3), torch.randn(6))


# ---- attributes --------------------------------------------------------------------------------


def attributes(x):
    return (
        getattr(x, "name", 5), getattr(x, "scale", None), hasattr(x, "scale"), hasattr(x, "shape"),
        getattr(x, "ndim", 0), hasattr(len(x), "real"), hasattr(len(x), "scale"),
        getattr(len(x), "scale", 3), hasattr(x.sum(), "scale"), getattr(x.sum(), "scale", 7),
    )  # fmt: skip


def branches_on_an_attribute(x):
    if hasattr(x, "scale"):
        return x * x.scale
    return x * getattr(x, "scale", 4)


class Tagged(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.w.tag = 7

    def forward(self, x):
        there = hasattr(self.w, "scale"), hasattr(self.w, "tag"), hasattr(self.w, "data")
        return x * getattr(self.w, "scale", 3), there, getattr(self.w, "tag", 1)


def test_attributes_of_parameters():
    module = Tagged()
    assert repr(cfx.script(module)(torch.ones(2))) == repr(module(torch.ones(2)))


def sizes(x):
    return (
        isinstance(x.shape, torch.Size), isinstance(x.shape, tuple), hasattr(x.shape, "numel"),
        isinstance(x.shape[1:], torch.Size), isinstance(x.size(), list),
        hasattr(x.max(0), "values"), isinstance(divmod(len(x), 2), torch.Size),
        isinstance(x.shape, torch.Tensor),
    )  # fmt: skip


def test_a_size_is_more_than_a_tuple():
    same(sizes, torch.ones(2), torch.ones(2, 3))


def type_of_a_shape(x):
    return type(x.shape) is tuple


def test_the_type_of_a_shape():
    refused(type_of_a_shape, "type(", "use isinstance")


@pytest.mark.parametrize("program", [attributes, branches_on_an_attribute])
def test_attributes_of_tensors(program):
    scaled = torch.ones(3)
    scaled.scale = 2
    same(program, torch.ones(3), scaled)


# ---- chance, clocks, the environment -----------------------------------------------------------


def own_generator(x):
    g = torch.Generator()
    g.manual_seed(3)
    return x + torch.rand(3, generator=g)


def own_generator_in_a_loop(x):
    g = torch.Generator().manual_seed(3)
    for _ in range(len(x)):
        x = x + torch.rand(3, generator=g)
    return x


def own_random(x):
    r = random.Random(3)
    for _ in range(len(x)):
        x = x + r.random()
    return x * r.randint(1, 9)


def pythons(x):
    return x * random.random() + random.choice([1, 2, 3, 4, 5]), random.sample([1, 2, 3, 4], 2)


def numpys(x):
    r = numpy.random.RandomState(3)
    return x * float(numpy.random.rand()) + numpy.random.randint(9), r.randint(99), r.randint(99)


@pytest.mark.parametrize(
    "program", [own_generator, own_generator_in_a_loop, own_random, pythons, numpys]
)
def test_chance_is_drawn_in_each_run(program):
    same(program, torch.ones(3), torch.zeros(3))


OUTSIDE = torch.Generator()


def outside_generator(x):
    OUTSIDE.manual_seed(5)
    return x + torch.rand(3, generator=OUTSIDE)


def test_a_generator_from_outside():
    state = OUTSIDE.get_state()
    module = cfx.script(outside_generator)
    assert torch.equal(OUTSIDE.get_state(), state)
    for _ in range(3):
        assert torch.equal(module(torch.ones(3)), outside_generator(torch.ones(3)))


def clocks(x):
    return x, time.time(), time.perf_counter_ns(), uuid.uuid4().hex, os.urandom(4)


def test_clocks_go_on():
    module = cfx.script(clocks)
    first, second = module(1), module(1)
    assert all(a != b for a, b in zip(first[1:], second[1:]))
    assert time.time() - second[1] < 60


def environment(x):
    if os.getenv("CFX_TEST_SCALE", "1") == "2" or os.environ.get("CFX_TEST_SCALE") == "3":
        return x * 2
    return x


def test_the_environment_is_read_in_each_run(monkeypatch):
    module = cfx.script(environment)
    for value in ("1", "2", "3"):
        monkeypatch.setenv("CFX_TEST_SCALE", value)
        assert module(1) == environment(1) == (1 if value == "1" else 2)


NUMPYS, PYTHONS = numpy.random.RandomState(1), random.Random(1)


def shuffles(x):
    order = [1, 2, 3]
    random.shuffle(order)
    return x * order[0]


def numpy_shuffles(x):
    order = [1, 2, 3]
    numpy.random.shuffle(order)
    return x * order[0]


def numpy_from_outside(x):
    return x * NUMPYS.rand()


def random_from_outside(x):
    return x * PYTHONS.random()


def now(x):
    import datetime

    return x, datetime.datetime.now().year


def environment_item(x):
    return x, os.environ["HOME"]


def environment_key(x):
    return x if "HOME" in os.environ else -x


def identity(x):
    return x, id(x)


REFUSED = [
    (shuffles, "random.shuffle", "random.shuffle changes a list"),
    (numpy_shuffles, "random.shuffle", "changes its argument"),
    (numpy_from_outside, "NUMPYS", "from outside"), (random_from_outside, "PYTHONS", "outside"),
    (now, "datetime.now", "differs in each call"),
    (environment_item, "os.environ", "os.getenv"), (environment_key, "os.environ", "os.getenv"),
    (identity, "id(x)", "compare with `is`"),
]  # fmt: skip


@pytest.mark.parametrize("program, line, match", REFUSED, ids=lambda p: getattr(p, "__name__", ""))
def test_refused(program, line, match):
    seed(0)
    before = draws()
    refused(program, line, match)
    assert draws() == before


# ---- sets and dicts of tensors -----------------------------------------------------------------


class Parameters(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.ones(1))
        self.b = nn.Parameter(torch.ones(1))
        self.c = nn.Parameter(torch.ones(1))

    def forward(self, x):
        some = {self.a, self.b}
        names = {self.a: 2, self.c: 3}
        found = [p in some for p in (self.a, self.b, self.c)]
        keys = [p in names for p in (self.a, self.b, self.c)]
        return x * names[self.a] * names[self.c], found, keys, len(some)


def test_parameters_are_found_by_identity():
    module = Parameters()
    captured = cfx.script(module)
    for _ in range(3):
        assert repr(captured(torch.ones(1))) == repr(module(torch.ones(1)))


def among_keys(x):
    total = x.sum()
    return total in {1, 2, 3}, x in {1: 2}, x in {1: 2}.keys(), len(x) in {1, 3}, len(x) in {3: 1}


def test_a_tensor_is_not_equal_to_a_key():
    same(among_keys, torch.ones(1), torch.ones(3), torch.ones(2))


def among_items(x, y):
    return x in [x, y], y in (y, x)


def test_a_list_is_searched_by_identity_first():
    x, y = torch.ones(2), torch.ones(2)
    same(among_items, (x, y), (x, x))


def set_of_inputs(x, y):
    return len({x, y})


def key_of_inputs(x, y):
    return {x: 1}[x]


def test_inputs_as_keys():
    refused(set_of_inputs, "return", "cannot be a key of a dict")
    x, y = torch.ones(2), torch.ones(2)
    same(key_of_inputs, (x, y), (x, x), (3, y))


class Shown:
    def __init__(self, x):
        self.x = x

    def __str__(self):
        return f"Shown({self.x})"


def prints(x):
    print("start", [1, x.shape], {"a": x}, end="!\n")
    it = iter([1, 2])
    print(Shown(x), Shown(3), int, (None, "a"), sep="|", flush=True)
    if x.sum() > 0:
        print("up")
    for i in range(2):
        print(i, next(it))
    return x if print() is None else -x


def test_print_happens_when_the_graph_runs(capsys):
    module = cfx.script(prints)
    assert capsys.readouterr().out == ""
    for x in (torch.ones(2), -torch.ones(2)):
        prints(x)
        want = capsys.readouterr().out
        for call in (module, cfx.script(prints), cfx.Interpreter(module).run):
            assert torch.equal(call(x), x) and capsys.readouterr().out == want
    with pytest.raises(cfx.LowerError, match="print cannot show a"):
        cfx.lower(module)


def prints_numbers(x, n):
    print("n:", n, [n, 2.5, "a", None], (True,), {"k": x.sum().item()}, sep="{}", end="!\n")
    print()
    if x.sum() > 0:
        print("positive", n + 1, x.tolist(), list(x.shape), x.dtype)
    print(x.shape[0], end="")
    return x if print() is None else -x


def test_print_in_c(capsys):
    lowered = cfx.lower(cfx.script(prints_numbers))
    assert capsys.readouterr().out == ""
    for x, n in ((torch.ones(2), 3), (-torch.ones(2), 1.5)):
        prints_numbers(x, n)
        want = capsys.readouterr().out
        assert torch.equal(lowered(x, n), x) and capsys.readouterr().out == want
    with pytest.raises(NotImplementedError, match="tensor cannot be converted to text"):
        lowered(torch.ones(2), torch.ones(()))


class Full:
    def write(self, text):
        raise OSError("full")


def test_print_fails(monkeypatch):
    """As the file does that it writes to."""
    lowered = cfx.lower(cfx.script(prints_numbers))
    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(OSError, match="full"):
        lowered(torch.ones(2), 3)
    monkeypatch.setattr(sys, "stdout", None)
    lowered(torch.ones(2), 3)


def prints_a_shape(x):
    print(x.shape)
    return x


def prints_a_sum(x):
    print([x.sum()])
    return x


@pytest.mark.parametrize("program, what", [(prints_a_shape, "a shape"), (prints_a_sum, "a tensor")])
def test_what_c_cannot_print(program, what):
    where = r"test_script_small.py:\d+: "
    with pytest.raises(cfx.LowerError, match=f"{where}.*print cannot show {what}"):
        cfx.lower(cfx.script(program))


def prints_to_a_file(x):
    print("known", file=sys.stderr)
    return x


def test_print_to_a_file_happens_during_capture(capsys):
    module = cfx.script(prints_to_a_file)
    assert capsys.readouterr().err == "known\n"
    assert torch.equal(module(torch.ones(2)), torch.ones(2)) and capsys.readouterr().err == ""


def prints_values_to_a_file(x):
    print(x, file=sys.stderr)
    return x


def writes_a_file(x):
    with open(os.devnull, "w") as f:
        f.write("x")
    return x


def test_files_are_not_written():
    refused(prints_values_to_a_file, "print(", "cannot print to a file")
    refused(writes_a_file, "open(", "written once, during capture")


def reads_a_file(x):
    with open(os.devnull) as f:
        return x + len(f.read())


def test_files_are_read_during_capture():
    same(reads_a_file, torch.ones(2))


def sets_environment(x):
    os.environ["CFX_SMALL"] = "1"
    return x


def clears_environment(x):
    del os.environ["CFX_SMALL"]
    return x


def puts_environment(x):
    os.putenv("CFX_SMALL", "1")
    return x


@pytest.mark.parametrize("program", [sets_environment, clears_environment, puts_environment])
def test_the_environment_is_not_changed(program, monkeypatch):
    monkeypatch.setenv("CFX_SMALL", "0")
    refused(program, "CFX_SMALL", "during capture")
    assert os.environ["CFX_SMALL"] == "0"
