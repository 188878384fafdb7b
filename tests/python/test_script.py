"""cfx.script: what the world of Python's objects does for the evaluator of scripts.

Whole programs are in test_script_programs.py; here is what is recorded, what is computed while
capturing, what is refused, and how people are told.
"""
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import gc
import importlib
import linecache
import math
import operator
import random
import sys
import threading
import weakref

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
import torch.nn.functional as F
from parity import SANITIZED, resident
from script_checks import is_same
from torch import nn

import cfx

TIMES = 10_000
MIB = 1 << 20


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def targets(module):
    """What the nodes of a graph call or read, those of regions too."""

    def walk(graph):
        for node in graph.nodes:
            if node.op not in ("placeholder", "output"):
                yield getattr(node.target, "__name__", node.target)
            for arg in node.args:
                if isinstance(arg, cfx.Graph):
                    yield from walk(arg)

    return list(walk(module.graph))


def same(fn, *calls, **options):
    """Scripts and compares with eager; gives the GraphModule."""
    module = cfx.script(fn, **options)
    for args in calls:
        args = args if isinstance(args, tuple) else (args,)
        torch.manual_seed(1)
        want = copy.deepcopy(fn)(*copy.deepcopy(args))
        torch.manual_seed(1)
        assert is_same(module(*copy.deepcopy(args)), want)
    return module


UP, DOWN = torch.ones(3), -torch.ones(3)

# ---- tensors of the program --------------------------------------------------------------------


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 2))
        self.register_buffer("scale", torch.full((3,), 2.0))
        self.plain = torch.full((3,), 5.0)
        self.inner = nn.Linear(3, 3)


class Facts(Holder):
    def forward(self, x):
        w = self.weight
        assert isinstance(w, nn.Parameter) and w is not None
        if w.shape == (3, 2) and w.dim() == w.ndim == 2 and w.dtype is torch.float32:
            x = x + w.size(0) + w.numel() + len(w) + w.shape[-1]
        if w.requires_grad and w.is_floating_point() and w.device.type == "cpu":
            x = x * 2
        return x


def test_static_facts_of_tensors():
    assert targets(same(Facts(), UP)) == ["add"] * 4 + ["mul"]


class Uses(Holder):
    def forward(self, x):
        y = x @ self.weight
        y = y + self.weight[0] + torch.sigmoid(self.weight).sum(0) + self.weight.t().sum(1)
        z = x * self.scale + self.plain * (self.scale > 1)
        return y, z


def test_tensors_are_read_when_they_are_used():
    module = same(Uses(), UP)
    read = [n.target for n in module.graph.nodes if n.op == "get_attr"]
    assert read == ["weight"] * 4 + ["scale", "scale", "plain"]
    assert dict(module.named_parameters()).keys() == {"weight"}
    assert dict(module.named_buffers()).keys() == {"scale", "plain"}
    module(UP)[0].sum().backward()
    assert module.weight.grad is not None


class HandsRound(Holder):
    def forward(self, x):
        known = {"a": self.weight, "b": [self.scale]}
        return x + known["b"][0] if known["a"].shape[0] == 3 else x


def test_a_tensor_that_is_handed_round_is_not_read():
    module = same(HandsRound(), UP)
    assert targets(module) == ["scale", "add"]


FLAG = torch.tensor(True)
OUTSIDE = torch.arange(3.0)


def asks_tensor(x):
    return x + OUTSIDE if FLAG else x


def test_a_tensor_of_nobody_is_a_constant():
    module = same(asks_tensor, UP)
    assert sorted(dict(module.named_buffers())) == ["_tensor_constant0", "_tensor_constant1"]
    assert "cond" in targets(module)  # its truth is not baked in


class RowsOfParameter(Holder):
    def forward(self, x):
        for row in self.weight:
            x = x + row.sum()
        return x


def test_rows_of_a_parameter():
    assert targets(same(RowsOfParameter(), UP))[0] == "weight"


# ---- functions of torch's ----------------------------------------------------------------------


def makes(x):
    n = 2
    return (
        torch.zeros(3) + x, torch.arange(n), torch.full((n,), 1.5), torch.tensor([1, n]),
        torch.ones(x.shape[0], n), torch.eye(n).sum(), torch.Tensor([1.0, 2.0]),
    )  # fmt: skip


def test_factories_are_recorded():
    names = targets(same(makes, UP, torch.ones(1)))
    for name in ("zeros", "arange", "full", "tensor", "ones", "eye", "Tensor"):
        assert name in names


def chance(x):
    torch.manual_seed(3)
    return x + torch.rand(3) + torch.randn(3) + F.dropout(x, 0.5) + torch.randperm(3)


def test_chance_is_recorded():
    before = torch.get_rng_state()
    module = cfx.script(chance)
    assert torch.equal(before, torch.get_rng_state())
    assert targets(module)[0] == "manual_seed"
    torch.testing.assert_close(module(UP), chance(UP))


def knows(x):
    if not torch.jit.is_scripting() and torch.device("cpu").type:
        small = torch.finfo(torch.float32).tiny
        kind = torch.promote_types(torch.int8, torch.float32)
        size = torch.Size([1, 2]).numel()
        if torch.is_tensor(OUTSIDE):
            return (x + small * size).to(kind) + torch.jit.annotate(int, 3)
    return x


def test_what_gives_no_tensor_is_computed():
    assert targets(same(knows, UP)) == ["add", "to", "add"]


def asks_kind(x, y):
    if torch.is_tensor(x):
        x = x + torch.finfo(x.dtype).eps
    return x if torch.jit.isinstance(y, int) else x + y


def test_questions_about_graph_values_are_recorded():
    same(asks_kind, (UP, 2), (UP, DOWN))


def through_ops(x):
    return torch.ops.aten.relu(x) + torch.ops.aten.add.Tensor(x, OUTSIDE) + torch.Tensor.abs(x)


def test_operators_of_torch_ops():
    module = same(through_ops, DOWN)
    assert torch.ops.aten.relu in [n.target for n in module.graph.nodes]


def in_distribution(x):
    normal = torch.distributions.Normal(0.0, 1.0, validate_args=False)
    return normal.log_prob(x) + normal.sample((3,))


def test_code_of_torch_is_traced_and_computes_nothing():
    before = torch.get_rng_state()
    module = same(in_distribution, UP)
    assert "normal" in targets(module)
    cfx.script(in_distribution)
    torch.set_rng_state(before)
    cfx.script(in_distribution)
    assert torch.equal(before, torch.get_rng_state())


def checks(x, n):
    torch._check(n > 0, lambda: f"n is {n}")
    torch._check_value(bool(x.sum() > 0), lambda: "must be positive")
    return x * n


def test_torch_check():
    module = same(checks, (UP, 2))
    with pytest.raises(RuntimeError, match="n is -1"):
        module(UP, -1)
    with pytest.raises(ValueError, match="must be positive"):
        module(DOWN, 1)


# ---- builtins ----------------------------------------------------------------------------------


def numbers(x):
    total = x.sum()
    n = x.shape[0]
    return (
        int(total), float(total), bool(total > 0), abs(x), min(n, 2), max([n, 7]), len(x), len([x]),
        round(total.item(), 1), pow(n, 2), divmod(n, 2), math.sqrt(n), math.floor(n / 2), sum(x),
        sum([x, x]), complex(total), math.hypot(n, 2), operator.add(x, 1), operator.neg(x),
    )  # fmt: skip


def test_builtins_with_graph_values():
    names = targets(same(numbers, UP, torch.ones(5)))
    for name in "int float bool abs min max len round pow divmod sqrt floor sum complex".split():
        assert name in names, name
    assert names.count("len") == 1  # that of a list is known


def known_numbers(x):
    return x * int(2.5) + len("abc") + math.sqrt(4) + max(1, 2) + round(2.4) + abs(-3)


def test_builtins_without_are_computed():
    assert targets(same(known_numbers, UP)) == ["mul"] + ["add"] * 5


def texts(x):
    n = x.shape[0]
    return (
        f"{n} and {x.sum():.2f}{{}} {n!r:>5} {3!r}", "%d %s" % (n, n), "{}-{k}".format(n, k=n),
        str(n), repr([n]), f"{n:{n}d}",
    )  # fmt: skip


def test_texts():
    same(texts, UP, torch.ones(5))


def prints(x):
    print("the sum is", x.sum(), [x.shape[0]])
    return x


def test_print(capsys):
    module = cfx.script(prints)
    assert capsys.readouterr().out == ""
    assert not module.graph.eliminate_dead_code()
    module(UP)
    assert capsys.readouterr().out == "the sum is tensor(3.) [3]\n"


def rolls(x):
    return x * random.random() + random.randint(1, 6) + random.choice([7, 8])


def test_random_is_asked_when_the_graph_runs():
    module = cfx.script(rolls)
    for seed in range(3):
        random.seed(seed)
        want = rolls(UP)
        random.seed(seed)
        assert torch.equal(module(UP), want)


def uses_numpy(x):
    return np.float32(2) * x + np.sqrt(4.0), torch.add(x, np.float32(1)), x > np.int64(0)


def test_numbers_of_numpy():
    same(uses_numpy, UP)


def copies(x):
    both = copy.deepcopy([x, 2])
    both[0] += 1
    return x + copy.copy(x), both[0], copy.copy([1, x])[0]


def test_copies():
    same(copies, UP)


def identities(x, y=None):
    if y is None:
        y = x
    if x is not None:
        y = y + 1
    z = x + y
    return z if z is not None else x


def test_identity():
    module = same(identities, UP, (UP, DOWN))
    assert targets(module).count("is_not") == 1  # a sum is never None


def membership(x, n):
    a = n in (1, 2, 3)
    b = n not in [4]
    return x + 1 if a and b else x, "k" in {"k": x}


def test_membership():
    same(membership, (UP, 1), (UP, 4), (UP, 9))


def in_place(x):
    y = x
    y += 1
    y[0] = 7
    x *= 2
    n = x.shape[0]
    n += 1
    return x, n


def test_in_place_operators_are():
    names = targets(same(in_place, UP))
    assert [n for n in names if n in ("iadd", "imul", "setitem")] == ["iadd", "setitem", "imul"]


def attributes(x):
    found = torch.max(x, 0)
    shape, transposed, relu = x.shape, x.mT if x.dim() > 1 else x, x.relu
    return found.values + found.indices + shape[0] + relu() + transposed


def test_attributes_of_graph_values():
    same(attributes, UP, DOWN)


def chosen_item(x, n):
    return [x, x + 1, x + 2][n] + (10, 20, 30)[n]


def test_a_known_list_indexed_by_data():
    same(chosen_item, (UP, 0), (UP, 2))


# ---- classes of the user's ---------------------------------------------------------------------


class Vector:
    count = 2

    def __init__(self, w):
        self.w = w

    def __add__(self, other):
        return Vector(self.w + other.w) if isinstance(other, Vector) else NotImplemented

    def __radd__(self, other):
        return Vector(self.w + other)

    def __neg__(self):
        return Vector(-self.w)

    def __getitem__(self, i):
        return self.w * i if self.w.sum() > 0 else self.w

    def __setitem__(self, i, v):
        self.w = self.w + i * v

    def __len__(self):
        return 3

    def __bool__(self):
        return False

    def __contains__(self, item):
        return item == 3

    def __iter__(self):
        return iter([1, 2])

    def __eq__(self, other):
        return isinstance(other, int)

    def __lt__(self, other):
        return True

    def __call__(self, x):
        return x * self.w if x.sum() > 0 else x

    def __enter__(self):
        self.w = self.w + 1
        return self

    def __exit__(self, *exception):
        self.w = self.w - 1

    def __getattr__(self, name):
        if name == "missing":
            return self.w * 3
        raise AttributeError(name)

    @property
    def twice(self):
        return self.w * 2 if self.w.sum() > 0 else self.w

    @twice.setter
    def twice(self, value):
        self.w = value / 2

    @functools.cached_property
    def once(self):
        return self.w + 100

    @classmethod
    def make(cls, x):
        return cls(x * cls.count)

    @staticmethod
    def plain(x):
        return x - 1 if x.sum() > 0 else x


def vectors(x):
    v = Vector(x) + Vector.make(x)
    v = -(1 + v)
    v[2] = x
    with v as u:
        y = u(x) + u[2] + len(v) + v.missing + v.twice + v.once + v.plain(x)
    v.twice = y
    for i in v:
        y = y + i
    if v:
        y = y * 1000
    if 3 in v and 4 not in v and v == 1 and v < 2:
        y = y + 1
    return y + v.w


def test_operators_of_classes_are_looked_into():
    module = same(vectors, UP, DOWN)
    assert targets(module).count("cond") >= 3


class Descriptor:
    def __get__(self, o, owner):
        return o.base + 1 if o.base.sum() > 0 else o.base


class WithDescriptor:
    described = Descriptor()

    def __init__(self, base):
        self.base = base


def descriptors(x):
    return WithDescriptor(x).described


def test_descriptors():
    same(descriptors, UP, DOWN)


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: int = 3

    def both(self):
        return self.left * self.right if self.left.sum() > 0 else self.left


Point = collections.namedtuple("Point", "x y")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def plain_classes(x):
    pair = Pair(x)
    pair.right += 1
    point = Point(x, y=pair.both())
    color = Color.RED if pair.right == 4 else Color.BLUE
    return point.x + point.y * color.value, point


def test_dataclasses_named_tuples_and_enums():
    same(plain_classes, UP, DOWN)


def scale_by(x, k, *, plus=0):
    return x * k + plus if x.sum() > 0 else x


@functools.lru_cache
def cached(n):
    return n * 2


def noisy(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs) + 1

    return wrapper


@noisy
def decorated(x):
    return x * 2 if x.sum() > 0 else x


def callables(x):
    twice = functools.partial(scale_by, k=2, plus=1)
    add = functools.reduce(lambda a, b: a + b if b.sum() > 0 else a - b, [x, x, x])
    return twice(x) + cached(2) + decorated(x) + add + Vector(x).plain(x)


def test_callables():
    same(callables, UP, DOWN)


@torch.jit.ignore
def ignored(x):
    return x + 1 if x.sum() > 0 else x


class Marked(nn.Module):
    @torch.jit.export
    def exported(self, x):
        return ignored(x) * 2

    @torch.jit.unused
    def unused(self, x):
        return self.exported(x)

    def forward(self, x):
        return self.unused(x)


def test_marks_of_torchscript_mean_nothing():
    same(Marked(), UP, DOWN)


def opaque(x, n):
    if x.sum() > 0:
        return x * n
    return x


cfx.wrap("opaque")


def calls_wrapped(x):
    return opaque(x, 2) + 1


def test_wrapped_functions_are_recorded():
    assert targets(same(calls_wrapped, UP, DOWN)) == ["opaque", "add"]


# ---- modules -----------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x, flip=False):
        x = self.fc(x)
        return -x if flip else x


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        return self.fc(x)


class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(Block(), nn.ReLU())
        self.blocks = nn.ModuleList([Block(), Block()])
        self.named = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Tanh()})
        self.params = nn.ParameterList([torch.ones(3)])

    def forward(self, x):
        x = self.first(x)
        for i, block in enumerate(self.blocks):
            x = block(x, flip=i == 1)
        for name, module in self.named.items():
            x = module(x) if name != "z" else x
        return self.blocks[0](x) + self.params[0]


def test_modules():
    module = same(Tree(), torch.randn(2, 3))
    called = [n.target for n in module.graph.nodes if n.op == "call_module"]
    assert called == ["first.0.fc", "first.1", "blocks.0.fc", "blocks.1.fc", "named.a", "named.b",
                      "blocks.0.fc"]  # fmt: skip
    stack = list(module.graph.find_nodes(op="call_module")[0].meta["nn_module_stack"])
    assert stack == ["first", "first.0", "first.0.fc"]


class LeafTracer(cfx.Tracer):
    def is_leaf_module(self, m, module_qualified_name):
        return isinstance(m, Block) or super().is_leaf_module(m, module_qualified_name)


def test_a_tracer_says_what_a_leaf_is():
    module = same(Tree(), torch.randn(2, 3), tracer=LeafTracer())
    assert [n.target for n in module.graph.nodes if n.op == "call_module"][:3] == [
        "first.0", "first.1", "blocks.0"]  # fmt: skip


def test_hooks_are_looked_into():
    block = Block()
    outer = nn.Sequential(block)
    block.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    block.register_forward_hook(lambda m, args, result: result * 2 if result.sum() > 0 else None)
    block.register_forward_hook(
        lambda m, args, kwargs, result: result + len(kwargs), with_kwargs=True)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = block

        def forward(self, x):
            return self.block(x)

    module = same(Outer(), UP, DOWN)
    assert "cond" in targets(module)
    assert isinstance(outer, nn.Sequential)


def test_hooks_of_the_root_are_called_once():
    class Twice(torch.nn.Module):
        def forward(self, x):
            return x * 2

    model = Twice()
    model.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    model.register_forward_hook(lambda m, args, result: result + args[0])
    x = torch.ones(2)
    assert torch.equal(cfx.script(model)(x), model(x))
    assert torch.equal(cfx.script(model.forward)(x), model.forward(x))


class OwnCall(nn.Module):
    def __call__(self, x):
        return super().__call__(x + 1) * 2 if x.sum() > 0 else x

    def forward(self, x):
        return x * 3


def test_an_own_call_is_looked_into():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = OwnCall()

        def forward(self, x):
            return self.inner(x)

    assert "cond" in targets(same(Outer(), UP, DOWN))


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("last", torch.zeros(3))

    def forward(self, x):
        self.calls = self.calls + 1
        if x.sum() > 0:
            self.last = x
        return x * self.calls


def test_buffers_are_kept():
    eager = Counts()
    module = cfx.script(copy.deepcopy(eager))
    for x in (UP, DOWN, UP * 2):
        assert torch.equal(module(x), eager(x))
        assert torch.equal(module.calls, eager.calls) and torch.equal(module.last, eager.last)


def test_scripting_leaves_the_module_alone():
    eager = Counts()
    before = {name: vars(eager)[name] for name in vars(eager)}
    buffers = dict(eager._buffers)
    cfx.script(eager)
    assert vars(eager) == before and eager._buffers == buffers
    assert all(eager._buffers[name] is buffers[name] for name in buffers)


def test_a_graph_module_is_copied_in():
    inner = cfx.symbolic_trace(Plain())

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x) if x.sum() > 0 else x

    module = same(Outer(), UP, DOWN)
    assert "inner.fc" in targets(module)


# ---- contexts ----------------------------------------------------------------------------------


def without_grad(x, w):
    with torch.no_grad():
        y = x * w
        with torch.enable_grad():
            z = x * w
    return x * w, y, z


@torch.no_grad()
def decorated_without_grad(x, w):
    return x * w if x.sum() > 0 else x + w


def sets_grad(x, w):
    with torch.set_grad_enabled(False):
        y = x * w
    z = x * w
    torch.set_grad_enabled(mode=True)
    a = x * w
    torch.set_grad_enabled(z.requires_grad)
    return y, z, a


@torch.set_grad_enabled(True)
def decorated_with_grad(x, w):
    return x * w if x.sum() > 0 else x + w


@pytest.mark.parametrize("outside", [True, False])
def test_no_grad(outside):
    w = torch.ones(3, requires_grad=True)
    for fn in (without_grad, decorated_without_grad, decorated_with_grad, sets_grad):
        module = cfx.script(fn)
        module.graph.eliminate_dead_code()
        module.recompile()
        with torch.set_grad_enabled(outside):
            for x in (UP, DOWN):
                got, want = module(x, w), fn(x, w)
                torch.testing.assert_close(got, want)
                ask = torch.utils._pytree.tree_map(lambda t: t.requires_grad, (got, want))
                assert ask[0] == ask[1]
            assert torch.is_grad_enabled() is outside


def test_helpers_leave_no_trace():
    module = cfx.script(decorated_without_grad)
    assert {n._location[0] for n in module.graph.nodes} == {__file__}


def in_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
    return y, x @ x


def in_inference(x):
    with torch.inference_mode():
        return x * 2


def test_autocast_and_inference_mode():
    x = torch.ones(2, 2)
    y, z = cfx.script(in_autocast)(x)
    assert (y.dtype, z.dtype) == (torch.bfloat16, torch.float32)
    assert not torch.is_autocast_enabled("cpu")
    assert cfx.script(in_inference)(x).is_inference() and not torch.is_inference_mode_enabled()


@contextlib.contextmanager
def managed(x):
    yield x + 1


def in_managed(x):
    with managed(x) as y:
        z = y * 2
    return z


def test_a_generator_is_traced():
    same(in_managed, UP)


# ---- code without a source ---------------------------------------------------------------------

exec("def hidden(x):\n    return x * 2")
exec("def hidden_branch(x):\n    return x if x.sum() > 0 else -x")


def uses_hidden(x):
    return hidden(x) + 1 if x.sum() > 0 else x  # noqa: F821


def test_what_has_no_source_is_traced():
    same(uses_hidden, UP, DOWN)


def uses_hidden_branch(x):
    return hidden_branch(x)  # noqa: F821


def test_what_has_no_source_and_asks_is_explained():
    with pytest.raises(cfx.proxy.TraceError) as caught:
        cfx.script(uses_hidden_branch)
    notes = "\n".join(caught.value.__notes__)
    assert "in 'hidden_branch'" in notes and "cfx.wrap" in notes
    assert "in uses_hidden_branch\n    return hidden_branch(x)" in notes


def test_no_source_at_all():
    with pytest.raises(cfx.ScriptError, match="'hidden' has no source: .*into a file") as e:
        cfx.script(hidden)  # noqa: F821
    assert isinstance(e.value, NotImplementedError)


def test_a_source_in_linecache_only():
    text = "def cell(x):\n    return x + 1 if x.sum() > 0 else x\n"
    linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(True), "<cell 1>")
    space = {}
    exec(compile(text, "<cell 1>", "exec"), space)
    same(space["cell"], UP, DOWN)


def test_several_lambdas_in_a_line():
    pair = [lambda x: x + 1 if x.sum() > 0 else x, lambda x: x - 1 if x.sum() > 0 else x]
    same(pair[0], UP, DOWN)
    same(pair[1], UP, DOWN)


def write_module(folder, text, name):
    file = folder / f"{name}.py"
    file.write_text(text)
    linecache.checkcache(str(file))
    importlib.invalidate_caches()
    return file


def test_a_changed_source(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    text = "def f(x):\n    return x + 1 if x.sum() > 0 else x\n"
    file = write_module(tmp_path, text, "changing")
    module = importlib.import_module("changing")
    same(module.f, UP, DOWN)
    file.write_text(text.replace("+ 1", "+ 2"))
    linecache.clearcache()
    with pytest.raises(cfx.ScriptError, match="has changed since it was imported"):
        cfx.script(module.f)
    module = importlib.reload(module)
    assert torch.equal(same(module.f, UP, DOWN)(UP), UP + 2)
    del sys.modules["changing"]


def test_a_late_source_is_compiled_once(tmp_path, monkeypatch):
    """Not once for each function that is evaluated."""
    count = 20
    text = "".join(f"def f{i}(x):\n    return x + {i}\n" for i in range(count))
    calls = "".join(f"    x = f{i}(x)\n" for i in range(count))
    write_module(tmp_path, text + f"def all_of_them(x):\n{calls}    return x\n", "late")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("late")
    compiled = []

    def counting(text, *args, **kwargs):
        compiled.append(text)
        return compile(text, *args, **kwargs)

    monkeypatch.setattr("cfx._glue.scripting.compile", counting, raising=False)
    same(module.all_of_them, UP, DOWN)
    assert len(compiled) == 1
    del sys.modules["late"]


# ---- what is refused ---------------------------------------------------------------------------

SEEN = []
STATE = {"n": 0}
SHARED = Vector(UP)
TOTAL = 0


def grows_global(x):
    SEEN.append(x)
    return x


def grows_inside(x):
    found = SEEN
    found += [x]
    return x


def sets_item(x):
    STATE["n"] = x
    return x


def sets_attribute(x):
    SHARED.count = x
    return x


def sets_global(x):
    global TOTAL
    TOTAL = x
    return x


@pytest.mark.parametrize(
    "fn, line",
    [(grows_global, 1), (grows_inside, 2), (sets_item, 1), (sets_attribute, 1), (sets_global, 2)],
    ids=lambda f: getattr(f, "__name__", ""),
)  # fmt: skip
def test_what_outlives_the_call_is_not_changed(fn, line):
    message = "once, during capture, not in each call"
    with pytest.raises(cfx.ScriptError, match=message) as caught:
        cfx.script(fn)
    assert str(caught.value).startswith(f"test_script.py:{fn.__code__.co_firstlineno + line}: ")
    assert SEEN == [] and STATE == {"n": 0} and SHARED.w is UP and TOTAL == 0


def own_containers(x):
    found = list(SEEN)
    found.append(x)
    table = dict(STATE)
    table["n"] = x + 1
    return found[0] + table["n"]


def test_copies_of_what_is_outside_can_be_changed():
    same(own_containers, UP)


class Remembers(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        self.last = x
        return x


class Retrains(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        self.weight = self.weight + x
        return x


def test_attributes_that_cannot_be_kept():
    with pytest.raises(cfx.ScriptError, match="register_buffer"):
        cfx.script(Remembers())
    with pytest.raises(cfx.ScriptError, match="'weight', a parameter of Retrains"):
        cfx.script(Retrains())


def raises(x):
    if x is None:
        return x
    return refuses(x)


def refuses(x):
    raise KeyError("no such thing")


def test_an_exception_of_the_program():
    with pytest.raises(KeyError, match="no such thing") as caught:
        cfx.script(lambda x: refuses(x))
    (note,) = caught.value.__notes__
    assert "in <lambda>" in note and 'raise KeyError("no such thing")' in note


def fails_in_torch(x):
    return x + torch.zeros(2, dtype="no dtype")


def test_an_exception_of_torch():
    with pytest.raises(TypeError) as caught:
        cfx.script(fails_in_torch)
    assert 'torch.zeros(2, dtype="no dtype")' in "\n".join(caught.value.__notes__)


def test_what_can_be_scripted():
    for wrong in (3, len, torch.relu, Vector):
        with pytest.raises(TypeError, match="cfx.script captures"):
            cfx.script(wrong)


# ---- signatures and roots ----------------------------------------------------------------------


def signature(x, y: int = 2, *rest, flag: bool = True, **more) -> torch.Tensor:
    total = x * y
    if flag:
        total = total + 1
    for r in rest:
        total = total + r
    return total + more["z"]


def test_inputs_are_those_of_a_trace():
    module = cfx.script(signature)
    inputs = [n for n in module.graph.nodes if n.op == "placeholder"]
    assert [n.target for n in inputs] == ["x", "y", "flag", "*rest", "**more"]
    assert [n.args for n in inputs] == [(), (2,), (True,), (), ()]
    assert [n.type for n in inputs] == [None, int, bool, None, None]
    assert module.graph.output_node().type is torch.Tensor
    assert type(module).__name__ == "signature"
    line = signature.__code__.co_firstlineno
    assert [n._location for n in inputs] == [(__file__, line)] * 5
    mul = module.graph.find_nodes(op="call_function", target=operator.mul)[0]
    assert mul._location == (__file__, line + 1)
    # torch.fx's order: keyword-only ones before *rest
    want = signature(UP, 3, DOWN, UP, flag=False, z=1)
    assert torch.equal(module(UP, 3, False, DOWN, UP, z=1), want)


def configured(x, mode, n=2):
    if mode == "up":
        return x + n
    return x - n


def test_concrete_args():
    module = cfx.script(configured, {"mode": "up"})
    assert "cond" not in targets(module)
    assert torch.equal(module(UP, "up"), UP + 2)


def nested_input(pair, k):
    if pair["a"].sum() > 0:
        return {"out": pair["a"] * k, "b": pair["b"]}
    return {"out": pair["a"], "b": pair["b"]}


def test_concrete_args_that_are_trees():
    module = cfx.script(nested_input, {"pair": {"a": cfx.PH, "b": cfx.PH}})
    for x in (UP, DOWN):
        given = {"a": x, "b": UP}
        torch.testing.assert_close(module(given, 3), nested_input(given, 3))


class Methods(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x

    def other(self, x, k=2):
        return x * self.weight * k if x.sum() > 0 else x


def test_roots():
    owner = Methods()
    module = cfx.script(owner.other)
    assert torch.equal(module(UP), owner.other(UP)) and list(module.state_dict()) == ["weight"]
    vector = Vector(UP * 2)
    assert torch.equal(cfx.script(vector)(UP), vector(UP))
    assert torch.equal(cfx.script(vector.plain)(UP), vector.plain(UP))
    assert torch.equal(cfx.script(lambda x: x + 1 if x.sum() > 0 else x)(UP), UP + 1)
    assert isinstance(cfx.script(most_rounds=3)(scale_by), cfx.GraphModule)


def test_a_method_without_its_object():
    with pytest.raises(TypeError, match="cfx.script.model.method."):

        class Model(nn.Module):
            @cfx.script
            def forward(self, x):
                return x


def yields(x):
    yield x


def test_a_generator_is_no_root():
    with pytest.raises(cfx.ScriptError, match="'yields' is a generator"):
        cfx.script(yields)


@pytest.mark.parametrize("function", [cfx.cond, cfx.while_loop, torch.cond, torch.while_loop])
def test_what_evaluates_for_its_caller_is_no_root(function):
    with pytest.raises(cfx.ScriptError, match="cannot be captured by itself"):
        cfx.script(function)


GLOBAL = nn.Sequential(nn.Linear(3, 3), nn.ReLU())


def uses_global_module(x):
    y = GLOBAL(x) + GLOBAL[0].weight.sum()
    return y if y.sum() > 0 else GLOBAL[0](x)


class UsesGlobalModule(nn.Module):
    def forward(self, x):
        return GLOBAL(x)


def test_modules_that_a_function_finds():
    module = same(uses_global_module, UP, DOWN)
    assert module._module0.get_parameter("0.weight") is GLOBAL[0].weight
    with pytest.raises(NameError, match="not a submodule of the traced UsesGlobalModule"):
        cfx.script(UsesGlobalModule())


class CallTracer(cfx.Tracer):
    def call_module(self, m, forward, args, kwargs):
        self.called = [*getattr(self, "called", ()), type(m).__name__]
        return super().call_module(m, forward, args, kwargs)


def test_a_tracer_sees_calls_of_leaves():
    tracer = CallTracer()
    same(Plain(), UP, tracer=tracer)
    assert tracer.called == ["Linear"]


@cfx.script
def scripted(x, k=2):
    if x.sum() > 0:
        return x * k
    return x - 1


def calls_scripted(x):
    return scripted(x, k=3) + scripted(x)


class CallsScripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = cfx.script(Counts())

    def forward(self, x):
        return scripted(self.block(x))


@pytest.mark.parametrize("capture", [cfx.symbolic_trace, cfx.script])
def test_scripted_functions_are_copied_into_graphs(capture):
    module = capture(calls_scripted)
    assert targets(module).count("cond") == 2 and not list(module.children())
    for x in (UP, DOWN):
        assert torch.equal(module(x), calls_scripted(x))
    eager = CallsScripted()
    module = capture(copy.deepcopy(eager))
    assert "copy_" in targets(module)
    for x in (UP, DOWN):
        assert torch.equal(module(x), eager(x))
        assert torch.equal(module.block.calls, eager.block.calls)


def scripts_inside(x):
    inner = cfx.script(lambda y: y + 1 if y.sum() > 0 else y)
    return inner(x) * 2


def test_script_inside_of_a_script():
    same(scripts_inside, UP, DOWN)


def test_a_limit_of_rounds():
    def long_loop(x):
        for _ in range(50):
            x = x + 1
        return x

    with pytest.raises(cfx.ScriptError, match="more than 10"):
        cfx.script(long_loop, most_rounds=10)


# ---- functions that a program makes ------------------------------------------------------------

KEPT = []


def keeps_function(x):
    def inner(y):
        return y + 1

    collect(inner)
    return inner(x)


exec("def collect(f):\n    KEPT.append(f)")


def test_a_function_that_outlives_its_program():
    cfx.script(keeps_function)
    kept = KEPT.pop()
    assert kept.__name__ == "inner" and "inner" in repr(kept)
    with pytest.raises(RuntimeError, match="'inner' was defined during an earlier capture"):
        kept(1)


def test_a_stale_proxy_is_an_error():
    stale = []

    def leaks(x):
        if x.sum() > 0:
            keep(x * 2)
        return again() + x

    leaks.__globals__.update(keep=eval("lambda v: stale.append(v)", {"stale": stale}),
                             again=eval("lambda: stale[0]", {"stale": stale}))
    with pytest.raises(Exception):
        cfx.script(leaks).graph.lint()


# ---- many of them ------------------------------------------------------------------------------


def test_threads():
    failed = []

    def work(n):
        try:
            for _ in range(10):
                module = cfx.script(Tree() if n % 2 else callables)
                module(torch.ones(2, 3) if n % 2 else UP)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_scripts_leave_nothing_behind():
    tree, counts = Tree(), Counts()

    def all_of_them():
        cfx.script(scale_by)
        cfx.script(counts)
        with pytest.raises(KeyError):
            cfx.script(refuses)
        with pytest.raises(cfx.ScriptError):
            cfx.script(grows_global)

    cfx.script(tree)
    for _ in range(20):
        all_of_them()
    gc.collect()
    objects, memory = len(gc.get_objects()), resident()
    for _ in range(TIMES // 40 if SANITIZED else TIMES // 4):
        all_of_them()
    gc.collect()
    assert len(gc.get_objects()) <= objects + 20
    if not SANITIZED:
        assert resident() - memory < 16 * MIB


def test_a_graph_goes_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        gone = weakref.ref(cfx.script(scale_by).graph)
        gc.collect()
        assert gone() is None
    finally:
        gc.enable()
