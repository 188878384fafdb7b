"""Contexts that a program enters: gradients, inference, autocast, devices, dtypes, kernels; nested,
chosen by arguments and by data, as decorators, left by return and by exceptions."""
import contextlib

import torch
from programs import call, evaluating, made, module, program, randn, training, within
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

X = randn(3, 4).requires_grad_()


def bf16(enabled=True):
    return torch.autocast("cpu", torch.bfloat16, enabled=enabled)


@module(X, randn(5, 4).requires_grad_(), randn(1, 4), tags="autocast nested off and on")
class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        with bf16():
            y = self.a(x)
            with bf16(False):
                z = self.b(y.float())
                with bf16():
                    w = z @ z.T
        return y, z, w, x @ x.T


@program((randn(3, 4), True), (randn(5, 4), False), (randn(3, 4), True), tags="autocast argument",
         captured="guard arguments")
def maybe_autocast(x, fast):
    with bf16(fast):
        return x @ x.T


@module(training(X), evaluating(randn(2, 4)), training(randn(2, 4)), tags="autocast by mode")
class CastsInTraining(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        with bf16(self.training):
            return self.fc(x)


@program(randn(3, 4), -randn(3, 4), randn(5, 4), tags="autocast by data")
def casts_by_data(x):
    if x.sum() > 0:
        with bf16():
            return (x @ x.T).float()
    return x @ x.T


class AsDecorator(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)


@module(X, randn(2, 4), tags="autocast decorator")
class DecoratedCast(AsDecorator):
    @torch.autocast("cpu", torch.bfloat16)
    def inner(self, x):
        return self.fc(x)

    def forward(self, x):
        return self.inner(x).float() + self.fc(x)


@module(X, randn(2, 4).requires_grad_(), tags="no_grad decorator")
class DecoratedNoGrad(AsDecorator):
    @torch.no_grad()
    def inner(self, x):
        return self.fc(x)

    def forward(self, x):
        return self.inner(x) + self.fc(x)


@module(X, randn(2, 4).requires_grad_(), tags="inference_mode decorator")
class DecoratedInference(AsDecorator):
    @torch.inference_mode()
    def inner(self, x):
        return self.fc(x).argmax(-1)

    def forward(self, x):
        return F.one_hot(self.inner(x).clone(), 4) * self.fc(x)


@program((X, True), (X, False), (randn(2, 4).requires_grad_(), True),
         tags="set_grad_enabled argument", captured="guard arguments")
def maybe_grad(x, flag):
    with torch.set_grad_enabled(flag):
        y = x * 2
    return y + 1


@program(X, (-randn(3, 4)).requires_grad_(), tags="set_grad_enabled data")
def grad_by_data(x):
    with torch.set_grad_enabled(bool(x.sum() > 0)):
        y = x * 2
    return y + x


@program(X, randn(2, 4).requires_grad_(), tags="set_grad_enabled as a function")
def toggles(x):
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(before)
    return y + x


@program(X, randn(2, 4).requires_grad_(), tags="contexts in a stack")
def stacked(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        y = x.exp()
        stack.enter_context(torch.enable_grad())
        z = x.exp()
    return y, z, x.exp()


@program(X, randn(2, 4).requires_grad_(), tags="return inside of a context")
def returns_inside(x):
    with torch.no_grad():
        for i in range(3):
            x = x * 2
            if i == 1:
                return x


@program(X, randn(2, 4).requires_grad_(), tags="exception leaves a context")
def leaves_by_exception(x):
    try:
        with torch.no_grad():
            y = x * 2
            raise KeyError("no")
    except KeyError:
        pass
    return y + x


@program(randn(3), randn(5), tags="generator in a context")
def generated_inside(x):
    def rows():
        with torch.no_grad():
            for i in range(2):
                yield x * i

    return sum(rows())


@module(randn(3, 4), within(lambda: bf16(), randn(3, 4)), randn(2, 4),
        tags="called in autocast and not")
class InAutocast(AsDecorator):
    def forward(self, x):
        return self.fc(x) @ x.T


@module(randn(3, 4), within(torch.inference_mode, randn(3, 4)), randn(2, 4),
        tags="called in inference_mode")
class InInference(AsDecorator):
    def forward(self, x):
        return self.fc(x) * 2


@program(randn(3), randn(5), tags="device context factories")
def on_the_cpu(x):
    with torch.device("cpu"):
        mask = torch.arange(x.shape[0]) % 2
        return x * mask + torch.zeros_like(x) + torch.tensor([1.0])


@program(randn(3), randn(5), tags="default dtype context")
def doubles(x):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        scale = torch.tensor(0.5) * torch.ones(x.shape[0])
    finally:
        torch.set_default_dtype(before)
    return x * scale, torch.ones(2)


@program((randn(1, 2, 4, 8), True), (randn(2, 2, 3, 8), True), tags="sdpa_kernel mask causal")
def attends(q, causal):
    with sdpa_kernel([SDPBackend.MATH]):
        y = F.scaled_dot_product_attention(q, q, q, is_causal=causal)
    return y + F.scaled_dot_product_attention(q, q, q)


@made(evaluating(randn(2, 3, 8)), evaluating(randn(1, 5, 8)), tags="sdpa_kernel around a layer")
def attends_in_layer():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

        def forward(self, x):
            with sdpa_kernel(SDPBackend.MATH), torch.no_grad():
                return self.layer(x)

    return Net()


@program(X, randn(2, 4).requires_grad_(), tags="autograd off for a part of the weights")
def detached_parts(x):
    with torch.no_grad():
        scale = x.norm()
    frozen = x.detach()
    return x / scale + frozen.requires_grad_(False)


@program(call(X), within(torch.no_grad, X), call(randn(2, 4).requires_grad_()),
         tags="enable_grad against the caller")
def insists(x):
    with torch.enable_grad():
        y = x * 3
    return y, y.requires_grad


@program(randn(3, 4), randn(2, 4), tags="record_function profiler range")
def profiled(x):
    with torch.profiler.record_function("forward"), torch.autograd.profiler.record_function("x"):
        return x.relu()


@program(randn(3, 4), randn(2, 4), tags="suppress redirect nullcontext")
def python_contexts(x):
    with contextlib.suppress(ZeroDivisionError), contextlib.nullcontext(2) as n:
        x = x * n
        1 / (n - 2)
        x = x * 0
    return x


@program(randn(4, 4), randn(2, 2), tags="autocast dtype asked")
def asks_dtype(x):
    with bf16():
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
        y = x.to(dtype) @ x.to(dtype)
    return y, str(dtype)


@program(call(X), within(torch.no_grad, X), call(randn(2, 4).requires_grad_()),
         tags="enable_grad where it is enabled")
def insists_quietly(x):
    with torch.enable_grad():
        y = x * 3
    return y


@program(within(torch.no_grad, X), call(X), within(torch.no_grad, randn(2, 4)),
         tags="no_grad where there are none")
def insists_on_none(x):
    with torch.no_grad():
        y = x * 3
    return y + x
