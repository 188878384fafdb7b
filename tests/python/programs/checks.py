"""assert, raise, try: what is wrong with an input is said as eagerly."""
import torch
from torch import nn

from . import module, program, randn


@program(randn(3).abs() + 1, randn(2, 2).abs() + 1, tags="assert",
         raises=[(torch.tensor([1.0, -1.0]), AssertionError)])
def asserts(x):
    assert (x > 0).all()
    return x.log()


@program(randn(2, 3), randn(4, 5), tags="assert message",
         raises=[(randn(3), AssertionError), (randn(1, 1, 1), AssertionError)])
def asserts_with_message(x):
    assert x.dim() == 2, f"expected a matrix, got {x.dim()} dimensions"
    return x @ x.T


@program((randn(3), 1), (randn(3), 3), tags="raise",
         raises=[((randn(3), -1), ValueError), ((randn(3), 4), IndexError)])
def raises(x, k: int):
    if k < 0:
        raise ValueError("k must not be negative")
    if k > x.numel():
        raise IndexError(f"k is {k}, but there are {x.numel()}")
    return x.topk(k).values


@program(torch.ones(2), randn(3).abs(), tags="raise after", mutates=True,
         raises=[(torch.full((2,), -1.0), RuntimeError)])
def raises_in_the_middle(x):
    """What was done before stays done."""
    x.mul_(2)
    if x.sum() < 0:
        raise RuntimeError("negative")
    x.add_(1)
    return x


@program(torch.tensor(4.0), torch.tensor(100.0), tags="raise loop",
         raises=[(torch.tensor(0.0), ArithmeticError)],
         no_row="ArithmeticError, which no status becomes")
def raises_in_a_loop(x):
    n = 0
    while x < 1000:
        x = x * 2
        n += 1
        if n > 20:
            raise ArithmeticError("does not grow")
    return x


@program((randn(3), "sum"), (randn(3), "mean"), tags="raise else str",
         raises=[((randn(3), "median"), ValueError)])
def unknown_option(x, reduction: str = "sum"):
    if reduction == "sum":
        return x.sum()
    elif reduction == "mean":
        return x.mean()
    else:
        raise ValueError(f"unknown reduction: {reduction!r}")


@program(randn(3), randn(2, 2), tags="try static")
def try_static(x):
    """A question about the version, as libraries ask it."""
    try:
        function = torch.there_is_no_such_function
    except AttributeError:
        function = torch.relu
    return function(x)


@program(randn(3), -randn(2).abs(), tags="try finally else")
def try_finally(x):
    log = []
    try:
        scale = {"a": 2.0}["a"]
    except KeyError:  # never
        scale = 0.0  # never
    else:
        log.append(1)
    finally:
        log.append(2)
    if x.sum() > 0:
        x = x * scale
    return x, log


@program(randn(3), randn(4), tags="try import")
def optional_import(x):
    try:
        import there_is_no_such_module
        return there_is_no_such_module.run(x)  # never
    except ImportError:
        return torch.tanh(x) if x.sum() > 0 else x


class Strange(ValueError):
    """An exception of one's own."""


@program(randn(3), randn(2, 2), tags="raise own", base=True,
         raises=[(torch.full((2,), float("nan")), Strange)])
def own_exception(x):
    if torch.isnan(x).any():
        raise Strange("not a number")
    return x + 1


@module(randn(2, 3), randn(5, 3), tags="raise module", raises=[(randn(2, 4), ValueError)])
class ChecksShape(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def check(self, x):
        if x.shape[-1] != self.linear.in_features:
            raise ValueError(
                f"expected {self.linear.in_features} features, but got {x.shape[-1]}")
        assert x.dtype == torch.float32, "only float32"

    def forward(self, x):
        self.check(x)
        return self.linear(x)


@program(torch.tensor([0.2, 0.8]), torch.tensor([0.5, 0.25, 0.25]), tags="torch-check",
         raises=[(torch.tensor([0.5, 0.9]), RuntimeError)])
def torch_check(p):
    torch._check(bool((p.sum() - 1).abs() < 1e-4), lambda: "not a distribution")
    return -(p * p.log()).sum()


@program((randn(3), randn(3)), (randn(2, 2), randn(2, 2)), tags="assert shapes",
         raises=[((randn(3), randn(2)), AssertionError)],
         no_row="torch.Size, which is a tuple there, as text")
def asserts_shapes(a, b):
    assert a.shape == b.shape, (a.shape, b.shape)
    assert a.dtype == b.dtype
    assert isinstance(a, torch.Tensor)
    return torch.dot(a.flatten(), b.flatten())


@program((randn(4), 2), (randn(4), 4), tags="assert constant raise-from",
         raises=[((randn(4), 3), ValueError), ((randn(4), 0), ZeroDivisionError)])
def divides(x, parts: int):
    if x.numel() % parts:
        raise ValueError("does not divide evenly", ) from None
    return x.reshape(parts, -1).sum(1)


@program(randn(3), -randn(3).abs(), tags="not-implemented",
         raises=[(torch.zeros(3), NotImplementedError)])
def bare_class(x):
    if not x.any():
        raise NotImplementedError
    return x.sign()
