"""with: no_grad, autocast, managers of people's own."""
import contextlib

import torch
from torch import nn

from . import module, program, randn


@module(randn(2, 3), -randn(4, 3).abs() * 5, tags="no_grad")
class Detaches(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        with torch.no_grad():
            scale = self.linear(x).abs().max()
            if scale < 1:
                scale = scale * 0 + 1
        return self.linear(x) / scale, scale


@program(randn(3), -randn(2).abs(), tags="no_grad branch")
def no_grad_in_branch(x):
    if x.sum() > 0:
        with torch.no_grad():
            y = x.exp()
    else:
        y = x * 2
    return y + 1


@program(randn(3), -randn(2, 2), tags="decorator no_grad")
@torch.no_grad()
def whole_without_gradients(x):
    if x.sum() > 0:
        return x * 2
    return x / 2


@program(randn(3, 3), randn(2, 2) * 5, tags="autocast", no_row="autocast")
def with_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
    if y.dtype == torch.bfloat16 and y.abs().max() > 1:
        y = y.float()
    return y


@contextlib.contextmanager
def doubled(values):
    values.append(2.0)
    yield values[-1]
    values.pop()


@program(randn(3), -randn(3).abs(), tags="contextmanager")
def own_manager(x):
    scales = [1.0]
    with doubled(scales) as factor:
        y = x * factor if x.sum() > 0 else x + len(scales)
    return y, len(scales)


class Recording:
    def __init__(self):
        self.events = []

    def __enter__(self):
        self.events.append("in")
        return self

    def __exit__(self, *details):
        self.events.append("out")
        return False


@program(randn(3), randn(2), tags="enter exit")
def own_class(x):
    recording = Recording()
    with recording as r, contextlib.nullcontext():
        for _ in range(2):
            x = torch.sin(x) if x.sum() > 0 else torch.cos(x)
        count = len(r.events)
    return x, count, len(recording.events)


@program(randn(3), torch.zeros(2), tags="suppress static")
def suppressed(x):
    value = 1.0
    with contextlib.suppress(KeyError):
        value = {}["missing"]
    return x * value if x.any() else x - value


@program(randn(3, 3), torch.zeros(2, 2), tags="set_grad_enabled loop")
def gradients_off_in_a_loop(x):
    n = 0
    with torch.set_grad_enabled(False):
        while x.norm() > 0.5:
            x = x * 0.5
            n += 1
    return x, n


@program(randn(3), -randn(4).abs(), tags="return in-with")
def returns_from_with(x):
    with torch.no_grad():
        if x.sum() > 0:
            return x * 2
        y = x - 1
    return y


@module(randn(2, 3), randn(5, 3), tags="inference profile")
class NamesParts(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        with torch.profiler.record_function("layer"):
            y = self.linear(x)
            if y.sum() > 0:
                y = y.relu()
        return y


@program((randn(3), 3), (-randn(3), 2), (randn(2), 0), tags="finally return break")
def cleans_up_behind_a_return(x, n: int):
    for i in range(2):
        try:
            if n % 2 == 0:
                return x, n
            n = (n + 3) % 7
            if x.sum() > i:
                break
        finally:
            n += 1
            x = x - n
    return x, -n
