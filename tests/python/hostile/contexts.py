"""Contexts: gradients, inference mode, autocast, exceptions in them, and the user's own."""
import contextlib

import torch
from torch import nn

from . import equal, refused

UP = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
DOWN = torch.tensor([-1.0, -2.0, -3.0], requires_grad=True)
SQUARE = torch.eye(3) * 2


@equal(UP, DOWN)
def asks_inside_no_grad(x):
    with torch.no_grad():
        on = torch.is_grad_enabled()
        y = x * 2
    return y, on, torch.is_grad_enabled()


@equal(UP, DOWN)
def asks_outside(x):
    return x * 2 if torch.is_grad_enabled() else x * 3


@equal(UP, DOWN)
def asks_inside_enable_grad(x):
    with torch.no_grad():
        with torch.enable_grad():
            y = x * (2 if torch.is_grad_enabled() else 3)
        z = x * (2 if torch.is_grad_enabled() else 3)
    return y, z


@equal(UP, DOWN)
def set_grad_enabled_by_a_flag(x):
    with torch.set_grad_enabled(False):
        a = x * 2
        on = torch.is_grad_enabled()
    return a, on


@equal(UP, DOWN)
def set_grad_enabled_as_it_was(x):
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(before)
    return y, x * 3


@equal(UP, DOWN)
def leaves_gradients_off(x):
    torch.set_grad_enabled(False)
    return x * 2


@equal(UP, DOWN)
def raises_in_no_grad(x):
    with torch.no_grad():
        if x.sum() < 0:
            raise ValueError("negative")
        y = x * 2
    return y


@equal(UP, DOWN)
def fails_in_no_grad(x):
    with torch.no_grad():
        y = x.reshape(3 if x.sum() > 0 else 7)
    return y


@equal(UP, DOWN)
def raises_in_nested_contexts(x):
    with torch.no_grad():
        with torch.enable_grad():
            if x.sum() < 0:
                raise RuntimeError("negative")
            y = x * 2
        z = y + 1
    return y, z


@equal(UP, DOWN)
def raises_in_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = torch.outer(x, x) @ torch.outer(x, x)
        if x.sum() < 0:
            raise ValueError("negative")
    return y


@equal(UP, DOWN)
def autocast(x):
    m = torch.outer(x, x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a = m @ m
        on = torch.is_autocast_enabled("cpu")
    return a, m @ m, on, torch.is_autocast_enabled("cpu")


@equal(UP, DOWN)
def autocast_off_inside(x):
    m = torch.outer(x, x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.autocast("cpu", enabled=False):
            a = m @ m
        b = m @ m
    return a, b


@equal(UP, DOWN)
def autocast_in_a_branch(x):
    m = torch.outer(x, x)
    if x.sum() > 0:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            m = m @ m
    return m.float()


@equal(UP, DOWN)
def no_grad_in_a_branch(x):
    y = x * 2
    if x.sum() > 0:
        with torch.no_grad():
            y = x * 3
    return y


@equal(UP, DOWN)
def returns_from_no_grad(x):
    with torch.no_grad():
        if x.sum() > 0:
            return x * 2
        y = x * 3
    return y + x


@equal((UP, 2), (DOWN, 0))
def breaks_from_no_grad(x, n):
    y = x
    for i in range(3):
        with torch.no_grad():
            if i == n:
                break
            y = y * 2
    return y, x + 1


@equal((UP, 1), (DOWN, 5))
def continues_from_no_grad(x, n):
    y = x
    for i in range(3):
        with torch.no_grad():
            z = x * i
            if i == n:
                continue
        y = y + z
    return y * x


@torch.no_grad()
def quiet(x):
    return x * 2, torch.is_grad_enabled()


@equal(UP, DOWN)
def decorated(x):
    y, on = quiet(x)
    return y, on, x * 3


@torch.no_grad()
def quiet_that_fails(x):
    if x.sum() < 0:
        raise ValueError("negative")
    return x * 2


@equal(UP, DOWN)
def decorated_that_raises(x):
    return quiet_that_fails(x) + x


@equal(UP, DOWN)
def inference_mode(x):
    with torch.inference_mode():
        y = x * 2
        on = torch.is_inference_mode_enabled()
    return y, on


@equal(UP, DOWN)
def raises_in_inference_mode(x):
    with torch.inference_mode():
        if x.sum() < 0:
            raise KeyError("negative")
        y = x * 2
    return y


@equal(UP, DOWN)
def inference_mode_off(x):
    with torch.inference_mode(False):
        y = x * 2
    return y


@equal(UP, DOWN)
class NoGradAroundALayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)

    def forward(self, x):
        with torch.no_grad():
            h = self.a(x)
        return self.b(h)


@equal(UP, DOWN)
class GradOnlyInTraining(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        with torch.set_grad_enabled(self.training):
            return self.lin(x)


@equal(UP, DOWN)
def mode_by_data(x):
    with torch.set_grad_enabled(bool(x.sum() > 0)):
        y = x * 2
    return y


@equal(UP, DOWN)
def context_object_used_twice(x):
    quietly = torch.no_grad()
    with quietly:
        a = x * 2
    with quietly:
        b = x * 3
    return a, b, x * 4


@equal(UP, DOWN)
def context_object_nested_in_itself(x):
    quietly = torch.no_grad()
    with quietly:
        with quietly:
            a = x * 2
        b = x * 3
    return a, b, x * 4


@refused(UP, DOWN)
def exit_stack(x):
    with contextlib.ExitStack() as stack:
        if x.requires_grad:
            stack.enter_context(torch.no_grad())  # refuse
        y = x * 2
    return y, x * 3


@equal(UP, DOWN)
def exit_stack_in_a_branch(x):
    y = x
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        y = y * 2
    if x.sum() > 0:
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            y = y * 3
    return y, x * 3


@refused(UP, DOWN)
def exit_stack_in_a_loop(x):
    with contextlib.ExitStack() as stack:
        while x.sum() < 9:
            stack.enter_context(contextlib.nullcontext())  # refuse
            x = x + 1
        y = x * 2
    return y


@equal(UP, DOWN)
def null_context(x):
    with contextlib.nullcontext(3) as k:
        y = x * k
    return y


# ---- the user's own ------------------------------------------------------------------------------


class Notes:
    def __init__(self):
        self.said = []

    def __enter__(self):
        self.said.append("in")
        return self

    def __exit__(self, kind, error, trace):
        self.said.append("out" if kind is None else kind.__name__)
        return kind is ValueError


@refused(UP, DOWN)
def own_context(x):
    notes = Notes()
    with notes as same:  # refuse
        y = x * 2
    return y, notes.said, same is notes


class Depth:
    def __init__(self):
        self.now, self.most = 0, 0

    def __enter__(self):
        self.now += 1
        self.most = max(self.most, self.now)

    def __exit__(self, *_):
        self.now -= 1


@equal(UP, DOWN)
def own_context_that_never_catches(x):
    depth = Depth()
    with depth:
        y = x * 2
        with depth:
            y = y + depth.now
    return y, depth.now, depth.most


@refused(UP, DOWN)
def own_context_swallows(x):
    notes = Notes()
    y = x
    with notes:
        if x.sum() < 0:
            raise ValueError("negative")  # refuse
        y = x * 2
    return y, len(notes.said)


@equal(UP, DOWN)
def own_context_swallows_a_static_one(x):
    notes = Notes()
    y = x
    with notes:
        y = x * 2
        raise ValueError("always")
    return y, notes.said


@refused(UP, DOWN)
def own_context_lets_it_through(x):
    with Notes():  # refuse
        if x.sum() < 0:
            raise KeyError("negative")
        y = x * 2  # its ValueError is caught
    return y


class Scale:
    current = 1.0

    def __init__(self, value):
        self.value = value

    def __enter__(self):
        self.before, Scale.current = Scale.current, self.value  # refuse

    def __exit__(self, *_):
        Scale.current = self.before


@refused(UP, DOWN)
def context_changes_a_class_attribute(x):
    with Scale(3.0):
        y = x * Scale.current
    return y + Scale.current


@contextlib.contextmanager
def scaled(x, k):
    yield x * k
    x.add_(1)


@refused(torch.tensor([1.0, 2.0]), torch.tensor([-1.0, 0.0]))
def generator_context(x):
    with scaled(x, 2) as y:  # refuse
        z = y + 1
    return z, x * 1


@contextlib.contextmanager
def always_adds(items):
    try:
        yield
    finally:
        items.append(5)


@equal(UP, DOWN)
def generator_context_with_finally(x):
    items = []
    with always_adds(items):
        y = x * 2
    return y, len(items)


@equal(UP, DOWN)
def generator_context_and_return(x):
    items = []
    with always_adds(items):
        if x.sum() > 0:
            return x, len(items)
    return x * 2, len(items)


@equal(UP, DOWN)
def two_contexts_in_one_with(x):
    a, b = Notes(), Notes()
    with a, b:
        a.said.append("body")
    return x, a.said, b.said


@refused(UP, DOWN)
def context_as_decorator(x):
    @contextlib.contextmanager
    def doubled():
        yield  # refuse

    @doubled()
    def inner(v):
        return v * 2

    return inner(x)


# ---- other modes ---------------------------------------------------------------------------------


@equal(SQUARE)
def default_dtype_inside(x):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    y = torch.ones(3)
    torch.set_default_dtype(before)
    return y, torch.ones(3), x


@equal(SQUARE)
def default_dtype_left_changed(x):
    torch.set_default_dtype(torch.float64)
    return torch.ones(2), x


@equal(SQUARE, -SQUARE)
def default_dtype_in_a_branch(x):
    if x.sum() > 0:
        torch.set_default_dtype(torch.float64)
    y = torch.ones(2)
    torch.set_default_dtype(torch.float32)
    return y.double(), y.dtype is torch.float64


@equal(SQUARE)
def asks_for_the_default_dtype(x):
    return x, torch.get_default_dtype() is torch.float32


@refused(SQUARE)
def device_context(x):
    with torch.device("meta"):  # refuse
        y = torch.ones(2, 3)
    return y.shape[0] * x, y.is_meta


@refused(SQUARE)
def forked_random_numbers(x):
    with torch.random.fork_rng():  # refuse
        torch.manual_seed(3)
        a = torch.rand(2)
    return a, torch.rand(2), x


@refused(SQUARE)
def saved_tensors_hooks(x):
    x = x.clone().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):  # refuse
        y = x * x
    return torch.autograd.grad(y.sum(), x)[0]


@equal(UP, DOWN)
def gradient_inside(x):
    with torch.enable_grad():
        leaf = x.detach().clone().requires_grad_()
        y = (leaf ** 2).sum()
        g, = torch.autograd.grad(y, leaf)
    return g


@equal(UP, DOWN)
def gradient_inside_a_loop(x):
    z = x.detach().clone()
    while z.norm() > 0.5:
        with torch.enable_grad():
            leaf = z.detach().requires_grad_()
            g, = torch.autograd.grad((leaf ** 2).sum(), leaf)
        z = z - 0.25 * g
    return z
