"""Where something is easily lost: hooks of the whole model, overridden calls, effects before a
check that fails, clocks, tensors made of tensors, settings that change between calls."""
import contextlib
import copy
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from programs import call, evaluating, ints, made, module, program, randn, training, within
from torch import nn

X = randn(3, 4).requires_grad_()


@made(randn(2, 3), randn(4, 3), tags="hook of the root")
def root_hook():
    model = nn.Linear(3, 3)
    model.register_forward_hook(lambda m, args, out: out * 2)
    return model


class Shifted(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x, scale=1.0):
        return self.fc(x) * scale


@made(randn(2, 3), randn(4, 3), tags="pre-hook of the root")
def root_pre_hook():
    model = Shifted()
    model.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    return model


@made(call(randn(2, 3), scale=2.0), call(randn(4, 3), scale=3.0), tags="pre-hook with keywords")
def root_pre_hook_keywords():
    model = Shifted()
    model.register_forward_pre_hook(lambda m, a, k: (a, {"scale": k["scale"] * 10}),
                                    with_kwargs=True)
    return model


@module(randn(2, 3), randn(4, 3), tags="call overridden")
class OverridesCall(Shifted):
    def __call__(self, x):
        return super().__call__(x) * 2


@made(randn(2, 3), randn(4, 3), tags="forward of the object")
def own_forward():
    model = Shifted()
    plain = model.forward
    model.forward = lambda x: plain(x) - 1
    return model


@program((randn(3), 1.0), (-randn(3), 1.0), (randn(3), 2.0),
         tags="input written before a check fails", mutates=True)
def writes_then_asks(x, f):
    x.add_(f)
    words = str((x.sum() > 0).tolist())
    return x * len(words)


@module(randn(3), -randn(3), randn(3), tags="parameter written before a check fails")
class WritesThenAsks(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.register_buffer("n", torch.zeros(()))

    def forward(self, x):
        with torch.no_grad():
            self.w.add_(1)
            self.n.add_(1)
        return x * self.w * len(str((x.sum() > 0).tolist())) + self.n


@program((randn(3), []), (-randn(3), []), tags="list written before a check fails")
def appends_then_asks(x, seen):
    seen.append(x)
    return x * len(str((x.sum() > 0).tolist()))


@program(randn(3), -randn(3), tags="random before a check fails")
def draws_then_asks(x):
    y = torch.rand(3)
    return y * len(str((x.sum() > 0).tolist())) + torch.rand(3)


@program(randn(3), randn(5), tags="torch.tensor of tensors")
def tensor_of_tensors(x):
    return torch.tensor([x.sum(), x.mean()])


@program(randn(3), randn(5), tags="torch.stack of items")
def tensor_of_items(x):
    return torch.tensor([x.sum().item(), x.mean().item()])


@program(randn(3), randn(5), tags="as_tensor of a tensor")
def as_tensor_again(x):
    return torch.as_tensor(x) * 2, torch.asarray(x) + 1


@program(randn(3), randn(3, seed=2), tags="Tensor constructor")
def old_constructor(x):
    return torch.Tensor([float(v) for v in x]), torch.FloatTensor([x.sum()])


@program(randn(3), randn(3, seed=2), tags="numpy array of tensors", captured="guard data")
def array_of_items(x):
    return torch.from_numpy(np.array([v.item() for v in x]))


@program(randn(3, 2), randn(5, 2), tags="return types")
def return_types(x):
    return x.max(0), x.sort(0), torch.topk(x, 1)


@program(X, randn(3, 4), tags="grad_fn")
def asks_grad_fn(x):
    y = x * 2
    return y if y.grad_fn is None else y.detach()


@program(X, within(torch.no_grad, X), tags="grad_fn in no_grad",
         captured="guard grad")
def asks_after_no_grad(x):
    return (x * 2).requires_grad


@program(randn(2).to(torch.complex64).conj(), randn(2).to(torch.complex64), tags="conj bit")
def asks_conj(z):
    return z.is_conj(), torch.view_as_real(z.resolve_conj())


@program(randn(3), randn(3), tags="inference tensor argument")
def asks_inference(x):
    with torch.inference_mode():
        y = x * 2
    return y.is_inference(), x.is_inference()


@program(randn(3), randn(3), tags="clock")
def reads_clock(x):
    return x * (time.time() > 0), time.time() > 1e12


@program(randn(3), randn(5), tags="threads inside",
         captured="refused in another thread")
def two_threads(x):
    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(lambda k: x * k, (1, 2)))


@program(randn(3), randn(5), tags="fork wait",
         captured="guard size")
def forks(x):
    future = torch.jit.fork(torch.sin, x)
    return torch.jit.wait(future) + 1


@program(randn(3), randn(5), tags="copy.copy",
         captured="refused is pickled")
def copies(x):
    y = copy.copy(x)
    return y * 2


@module(training(randn(2, 3)), training(randn(4, 3)), training(randn(2, 3)),
        tags="optimizer inside",
         captured="refused backward")
class Optimizes(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.fc.parameters(), lr=0.1)

    def forward(self, x):
        with torch.enable_grad():
            loss = self.fc(x).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
        self.optimizer.step()
        return loss.detach()


@module(randn(2, 3), randn(4, 3), tags="apply to modules")
class WalksModules(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.ReLU()})

    def forward(self, x):
        total = sum(p.square().sum() for p in self.parameters())
        for name, layer in self.layers.items():
            x = layer(x)
        return x, total, sorted(self.state_dict())


@module(randn(2, 3), randn(4, 3), randn(4, 3), tags="asker with a counter")
class AsksAndCounts(nn.Module):
    def __init__(self):
        super().__init__()
        self.positive = 0
        self.register_buffer("total", torch.zeros(()))

    def choose(self, x):
        if x.sum() > 0:
            self.total += x.sum()
            return x * 2
        return x

    def forward(self, x):
        return self.choose(x) + self.choose(-x) + self.total


@module(randn(2, 3), -randn(4, 3), randn(4, 3), tags="asker counts in Python",
         captured="guard data")
class AsksAndCountsInPython(nn.Module):
    def __init__(self):
        super().__init__()
        self.positive = 0

    def choose(self, x):
        if x.sum() > 0:
            self.positive += 1
            return x * 2
        return x

    def forward(self, x):
        return self.choose(x).sum() + self.positive


LIMITS = {"scale": 2.0}


@contextlib.contextmanager
def other_scale():
    LIMITS["scale"] = 3.0
    try:
        yield
    finally:
        LIMITS["scale"] = 2.0


@program(randn(3), within(other_scale, randn(3)), tags="global setting changed between calls",
         captured="guard globals",
         defect="globals that are only read are not checked")
def reads_global(x):
    return x * LIMITS["scale"]


@program((torch.zeros(2, 3), 0), (torch.zeros(2, 3), 1), tags="ragged results",
         captured="guard size")
def rank_by_number(x, n):
    return x if n == 0 else x.unsqueeze(0)


@program((randn(2, 3), 2), (randn(2, 3), 3), tags="rank by repeat")
def rank_by_repeat(x, n):
    return x.reshape((1,) * n + (2, 3)).dim(), x.reshape([1] * n + [-1])


@program((randn(6), 2, 3), (randn(6), 3, 2), (randn(6), 6, 1), tags="view by numbers")
def view_by_numbers(x, a, b):
    y = x.view(a, b)
    return y @ y.t(), y.shape[0] == a, (y + torch.zeros(b)).shape


@program((randn(4, 4), 1), (randn(4, 4), 0), (randn(1, 4), 0), tags="dim number then size")
def size_of_dim(x, dim):
    return x.size(dim) * 2, x.sum(dim) / x.size(dim)
