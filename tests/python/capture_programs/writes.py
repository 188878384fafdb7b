"""Writes into inputs, views and containers."""
import torch
from programs import program, randn


@program(randn(3), randn(5), tags="in-place input", mutates=True)
def writes_input(x):
    x.mul_(2)
    x[0] = 7
    return x.sum()


@program(randn(3, 4), randn(2, 4), tags="in-place view of input", mutates=True)
def writes_view(x):
    row = x[0]
    row.zero_()
    x[:, 1:3] += 1
    x.t()[0].fill_(9)
    return row, x


@program(randn(6), randn(4), tags="view then write base")
def view_sees_base(x):
    y = x.clone()
    v = y[::2]
    y.mul_(10)
    return v, y


@program(randn(4), randn(6), tags="reshape view or copy")
def reshape_aliases(x):
    y = x.clone()
    v = y.reshape(2, -1)
    v[0, 0] = 100
    return y


@program((randn(3), randn(3)), (randn(5), randn(5)), tags="out=", mutates=True)
def writes_out(x, out):
    torch.add(x, 1, out=out)
    return out is not x


@program((randn(2), [randn(2)]), (randn(3), [randn(3)]), tags="list argument written", mutates=True)
def appends(x, items):
    items.append(x)
    items[0] = items[0] + x
    items.insert(0, x * 2)
    return len(items)


@program((randn(2), {}), (randn(3), {}), tags="dict argument filled", mutates=True)
def fills(x, found):
    found["x"] = x * 2
    found.setdefault("n", x.shape[0])


@program((randn(2), [3, 1, 2]), (randn(3), [5, 4, 9]), tags="list of numbers sorted", mutates=True,
         captured="guard size")
def sorts_numbers(x, items):
    items.sort()
    return x * items[0]


@program(randn(3), randn(5), tags="swap set_ data", mutates=True)
def assigns_data(x):
    x.data = x.data * 2
    return x + 1


@program(randn(3), randn(5), tags="resize", mutates=True)
def resizes(x):
    y = x.clone().resize_(2)
    return y * 2


@program(randn(3), randn(4), tags="requires_grad_ of input")
def makes_leaf(x):
    y = x.detach().requires_grad_(True)
    return (y * y).sum(), y.requires_grad
