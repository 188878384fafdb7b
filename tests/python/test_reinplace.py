"""cfx.passes.reinplace and functionalize."""
import cfx
import cfx.passes
import pytest

torch = pytest.importorskip("torch")
import torch.fx.experimental.proxy_tensor
import torch.fx.passes.reinplace

from cfx.experimental.proxy_tensor import make_fx
from cfx.passes.reinplace import reinplace


def basic(x):
    return x.clone().add(1)


def chain(x):
    return (x + 1).relu().mul(2).add(x)


def view_is_used(x):
    a = x.clone()
    view = a.view(-1)
    b = a.add(1)
    return view.add(1), b


def other_dtype(x):
    a = x.clone()
    return torch.ge(a + 1, a)


def overlapping(x):
    return x.sum().clone().expand(4, 4).add(1)


def written_input(x):
    return x.view(-1).add(1)


def twice(x):
    a = x + 1
    return a * a


def scatter(x):
    a = x.clone()
    part = a.select(0, 1)
    return torch.select_scatter(a, part.add(1), 0, 1)


def scatter_elsewhere(x):
    a = x.clone()
    part = a.select(0, 1)
    return torch.select_scatter(a, part.add(1), 0, 0)


def diagonal(x):
    a = x @ x
    return torch.diagonal_scatter(a, torch.relu(a.diagonal()))


FUNCTIONS = [basic, chain, view_is_used, other_dtype, overlapping, written_input, twice, scatter,
             scatter_elsewhere, diagonal]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_same_as_torch(function):
    x = torch.randn(4, 4)
    want = torch.fx.experimental.proxy_tensor.make_fx(function)(x)
    want = torch.fx.passes.reinplace.reinplace(want, x)
    got = reinplace(make_fx(function)(x), x)
    assert got.code == want.code
    torch.testing.assert_close(got(x.clone()), function(x))


def test_scatters_of_functionalize():
    from torch.func import functionalize

    def f(x):
        a = x.clone()
        a[1].view(-1).add_(1)
        a.diagonal().mul_(2)
        return a

    x = torch.randn(4, 4)
    gm = reinplace(make_fx(functionalize(f))(x), x)
    assert "scatter" not in gm.code and "add_" in gm.code
    torch.testing.assert_close(gm(x), f(x))


# ---- functionalize


def test_functionalize():
    class M(torch.nn.Module):
        def forward(self, x):
            y = torch.exp(x)
            y.add_(x)
            y += 1
            x.mul_(2)
            view = y.view(-1)
            y.neg_()
            return view, x

    gm = cfx.symbolic_trace(M())
    want = gm(torch.ones(3))
    left = cfx.passes.functionalize(gm)
    assert [(n.target, why) for n, why in left] == [
        ("mul_", "the tensor it writes to may be visible outside the graph"),
        ("neg_", "an alias of the tensor it writes to is used later"),
    ]
    assert ".add_(" not in gm.code and "+=" not in gm.code
    assert gm.code.count(".type_as(") == 1  # not for a number
    torch.testing.assert_close(gm(torch.ones(3)), want)


def test_functionalize_keeps_the_dtype():
    class M(torch.nn.Module):
        def forward(self, x, y):
            return x.clone().add_(y)

    args = torch.ones(2, dtype=torch.float16), torch.ones(2)
    gm = cfx.symbolic_trace(M())
    cfx.passes.functionalize(gm)
    assert gm(*args).dtype == torch.float16
    gm = cfx.symbolic_trace(M())
    cfx.passes.functionalize(gm, same_dtypes=True)
    assert "type_as" not in gm.code and ".add_(" not in gm.code
