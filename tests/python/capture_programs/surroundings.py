"""Contexts around calls and in programs: gradients, autocast, default dtypes and devices, random
generators, context managers of the user's."""
import contextlib
import functools
import random

import numpy as np
import torch
from programs import call, ints, made, module, program, randn, training, evaluating, within
from torch import nn
from torch.nn import functional as F

X = randn(3, 4).requires_grad_()


@module(X, within(torch.no_grad, randn(3, 4)), within(torch.inference_mode, randn(2, 4)), X,
        tags="called in no_grad")
class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x).tanh()


def bf16():
    return torch.autocast("cpu", torch.bfloat16)


@module(randn(3, 4), within(bf16, randn(3, 4)), randn(1, 4), tags="called in autocast")
class PlainInAutocast(Plain):
    pass


@module(within(bf16, randn(3, 4)), randn(3, 4), tags="captured outside, called in autocast")
class AsksAutocast(Plain):
    def forward(self, x):
        y = self.fc(x)
        return y.float() + 1, y.dtype


@module(randn(3, 4), within(torch.no_grad, randn(3, 4)), tags="asks grad mode")
class AsksGrad(Plain):
    def forward(self, x):
        y = self.fc(x)
        return y * 2 if torch.is_grad_enabled() else y


@program(X, randn(2, 4), tags="requires_grad of input", captured="guard grad")
def asks_requires_grad(x):
    return x.sum() if x.requires_grad else x.sum() * 2


@module(X, randn(2, 4), tags="no_grad inside")
class TeacherStudent(nn.Module):
    def __init__(self):
        super().__init__()
        self.teacher, self.student = nn.Linear(4, 2), nn.Linear(4, 2)

    @torch.no_grad()
    def targets(self, x):
        return self.teacher(x).softmax(-1)

    def forward(self, x):
        return F.kl_div(self.student(x).log_softmax(-1), self.targets(x), reduction="batchmean")


@program(X, randn(5, 4), tags="enable_grad in no_grad", mutates=False)
def grads_within(x):
    with torch.no_grad():
        y = x * 2
        with torch.enable_grad():
            z = x * 3
            with torch.set_grad_enabled(False):
                w = x * 4
    return y, z, w


@program(X, randn(2, 4), tags="inference_mode clone")
def inference_inside(x):
    with torch.inference_mode():
        y = x * 2
    return y.clone() + 1


@program(randn(3, 4), randn(1, 4), tags="autocast inside nested")
def casts_inside(x):
    with torch.autocast("cpu", torch.bfloat16):
        a = x @ x.t()
        with torch.autocast("cpu", enabled=False):
            b = a.float() @ a.float()
        c = b @ b
    return a, b, c


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@program(randn(3), randn(5), tags="default dtype inside")
def double_inside(x):
    with default_dtype(torch.float64):
        return x + torch.ones(x.shape[0]), torch.zeros(2)


@program(randn(3), within(lambda: default_dtype(torch.float64), randn(3)),
         tags="default dtype outside")
def ones_of_default(x):
    return x + torch.ones(x.shape[0]), torch.tensor([1.5])


@program(randn(3), randn(5), tags="device context")
def on_device(x):
    with torch.device("cpu"):
        return x + torch.arange(x.shape[0])


@program(randn(3), randn(5), tags="device context meta")
def meta_shapes(x):
    with torch.device("meta"):
        ghost = torch.empty(x.shape[0], 4)
    return x.sum() + ghost.shape[1], str(ghost.device)


@program(randn(3), within(lambda: torch.device("meta"), randn(3)), tags="meta device outside")
def makes_somewhere(x):
    return torch.ones(2).device.type, x * 2


@program(randn(6), randn(3), tags="fork_rng")
def forks(x):
    with torch.random.fork_rng():
        a = torch.rand(3)
    return x.sum() + a + torch.rand(3)


@program(randn(6), randn(3), tags="manual_seed fork_rng")
def seeds_in_fork(x):
    with torch.random.fork_rng():
        torch.manual_seed(7)
        a = torch.rand(3)
    return x.sum() + a + torch.rand(3)


@program(randn(3), randn(4), tags="get set rng_state")
def replays(x):
    state = torch.get_rng_state()
    a = torch.rand(x.shape[0])
    torch.set_rng_state(state)
    return a, torch.rand(x.shape[0]), x


@program(randn(3), randn(4), tags="generator made", captured="refused torch.Generator")
def own_generator(x):
    g = torch.Generator().manual_seed(3)
    return x + torch.rand(x.shape[0], generator=g), torch.randperm(4, generator=g)


GENERATOR = torch.Generator()


@made(randn(3), randn(3), randn(4), tags="generator outside", captured="refused torch.Generator")
def generator_of_closure():
    g = torch.Generator().manual_seed(3)

    def draw(x):
        return x + torch.rand(x.shape[0], generator=g)

    return draw


@program(randn(3), randn(3), randn(4), tags="random module", captured="refused Python's random")
def python_random(x):
    return x * random.random()


@program(randn(3), randn(3), randn(4), tags="random choice", captured="refused Python's random")
def python_choice(x):
    return x.relu() if random.random() < 0.5 else x.exp()


@program(randn(3), randn(3), randn(4), tags="numpy random", captured="refused numpy.random")
def numpy_random(x):
    return x + torch.from_numpy(np.random.rand(3).astype("float32")).sum()


@module(training(randn(3, 4)), training(randn(3, 4)), evaluating(randn(5, 4)),
        training(randn(1, 4)),
        tags="dropout training")
class Drops(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.fc = nn.Dropout(0.5), nn.Linear(4, 4)

    def forward(self, x):
        return F.dropout(self.drop(self.fc(x)), 0.3, self.training)


@module(evaluating(randn(3, 4)), training(randn(3, 4)), evaluating(randn(5, 4)),
        tags="stochastic depth")
class StochasticDepth(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            if self.training and torch.rand(()) < 0.4:
                continue
            x = x + layer(x).relu()
        return x


class Scope:
    depth = 0

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        Scope.depth += 1
        return self

    def __exit__(self, kind, value, trace):
        Scope.depth -= 1
        return kind is KeyError


@program(randn(3), randn(5), tags="own context class attribute")
def scoped(x):
    with Scope("a"), Scope("b") as b:
        y = x * Scope.depth
        if b.name == "b":
            raise KeyError("swallowed")
    return y + Scope.depth


@contextlib.contextmanager
def timed(log):
    log.append("start")
    try:
        yield log
    finally:
        log.append("end")


@program(randn(3), randn(5), tags="contextmanager list")
def times(x):
    log = []
    with timed(log) as found:
        y = x * len(found)
    return y, log


@program(randn(3), randn(5), tags="nullcontext conditional")
def maybe_context(x):
    context = torch.no_grad() if x.dim() > 3 else contextlib.nullcontext()
    with context:
        return x * 2


@program(randn(3, 3), randn(2, 2), tags="deterministic")
def deterministic_inside(x):
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        return x.cumsum(0)
    finally:
        torch.use_deterministic_algorithms(before)


@program(randn(3, 3), randn(2, 2), tags="leaves default dtype")
def leaves_dtype(x):
    torch.set_default_dtype(torch.float64)
    y = torch.ones(2)
    return x.sum() + y


@program(X, randn(2, 4), tags="leaves grad off")
def leaves_grad(x):
    torch.set_grad_enabled(False)
    return x * 2


@program(randn(1, 2, 4, 8), randn(2, 2, 3, 8), tags="sdpa_kernel")
def chooses_kernel(q):
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, q, q)


@program(X, randn(2, 4), tags="anomaly detect")
def detects_anomaly(x):
    with torch.autograd.set_detect_anomaly(True):
        return x.sqrt().sum()


@program(X, randn(2, 4), tags="saved_tensors_hooks")
def packs_saved(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t * 2):
        return (x * x).sum()


@program(randn(3, 4), randn(2, 4), tags="profiler record_function")
def records(x):
    with torch.profiler.record_function("block"):
        return x @ x.t()


@program(randn(3, 4), randn(2, 4), tags="torch function mode")
def own_mode(x):
    class Doubles(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            out = func(*args, **kwargs or {})
            return out * 2 if func is torch.relu else out

    with Doubles():
        return torch.relu(x)


@program(randn(3, 4), within(lambda: torch.set_grad_enabled(False), X), tags="detach under no_grad")
def detaches(x):
    return x.detach() * 2 + x
