"""Arguments by name, by place and left out; exceptions that models raise; generators."""
import torch
from programs import call, program, randn


@program(randn(2, 3), randn(4, 3), tags="wrong shape raises", raises=[(randn(2, 4), RuntimeError)])
def matmul_raises(x):
    return x @ torch.ones(3, 2)


class ModelError(ValueError):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


@program((randn(2), "ok"), (randn(3), "ok"), raises=[((randn(2), "bad"), ModelError)],
         tags="own exception",
         captured="guard arguments")
def raises_own(x, word):
    if word == "bad":
        raise ModelError(3)
    return x * 2


@program(randn(2, 3), randn(1, 3), raises=[(randn(5, 3), ValueError)], tags="raises by size",
         captured="guard size")
def raises_by_size(x):
    if x.shape[0] > 4:
        raise ValueError(f"batch {x.shape[0]} is too big")
    return x * 2


@program(randn(3), randn(3), raises=[(torch.tensor([-1.0, 0, 0]), RuntimeError)],
         tags="assert data")
def asserts_data(x):
    torch._assert(x.sum() > -1e9, "sum")
    if (x == -1).any():
        raise RuntimeError("minus one")
    return x.sqrt()


@program(randn(3), randn(5), tags="caught exception")
def catches_own(x):
    try:
        raise ModelError(x.shape[0])
    except ModelError as error:
        return x * error.code


@program(randn(3), randn(5), tags="finally return")
def finally_returns(x):
    order = []
    try:
        order.append("try")
        return x * 2, order
    finally:
        order.append("finally")


@program((randn(3), None), (randn(4), None), (randn(3), randn(3)), tags="None or tensor",
         captured="guard arguments")
def maybe(x, bias=None):
    bias = torch.zeros_like(x) if bias is None else bias
    return x + bias


@program(call(randn(3), randn(3)), call(randn(4), b=randn(4)), call(x=randn(4), b=randn(4)),
         tags="by name or place")
def by_name(x, b):
    return x - b


@program(call(randn(3)), call(randn(3), 2), call(randn(3), n=2), call(randn(3), 2.0),
         tags="default number",
         captured="guard arguments")
def default_number(x, n=1):
    return x * n, n


@program(call(randn(2), randn(2)), call(randn(3), randn(3)), call(randn(3)),
         call(randn(3), k=randn(3)), tags="args kwargs",
         captured="guard arguments")
def everything(*args, **kwargs):
    return sum(args) + sum(kwargs.values())


@program((randn(3), slice(0, 2)), (randn(4), slice(0, 2)), (randn(4), slice(1, 3)),
         tags="slice argument",
         captured="guard arguments")
def slice_argument(x, s):
    return x[s]


@program((randn(3, 4), [0, 1]), (randn(3, 4), [1, 0]), (randn(3, 4), [1]), tags="dims argument",
         captured="guard arguments")
def dims_argument(x, dims):
    return x.sum(dims), x.permute(*range(x.dim()))


@program((randn(2, 3), "mean"), (randn(4, 3), "mean"), (randn(2, 3), "max"),
         tags="getattr by name", captured="guard arguments")
def by_method_name(x, how):
    return getattr(x, how)()


def patches(x, size):
    b, h, w = x.shape
    x = x.view(b, h // size, size, w // size, size)
    return x.permute(0, 1, 3, 2, 4).flatten(3).flatten(1, 2)


@program((randn(1, 4, 4), 2), (randn(2, 8, 4), 2), (randn(1, 8, 8), 4), tags="einops-like")
def patchify(x, size):
    return patches(x, size)


def rearrange(x, pattern, **sizes):
    """A very small einops."""
    left, right = (side.split() for side in pattern.split("->"))
    known = dict(zip(left, x.shape))
    known.update(sizes)
    order = [left.index(name) for part in right for name in part.strip("()").split("*")]
    shape = []
    for part in right:
        total = 1
        for name in part.strip("()").split("*"):
            total *= known[name]
        shape.append(total)
    return x.permute(order).reshape(shape)


@program(randn(2, 3, 4), randn(5, 3, 2), tags="einops strings")
def rearranges(x):
    return rearrange(x, "b t d -> (b*t) d"), rearrange(x, "b t d -> t (d*b)")


def chunks_of(x, n):
    for start in range(0, x.shape[0], n):
        yield x[start : start + n]


@program(randn(6, 2), randn(7, 2), randn(2, 2), tags="generator over sizes", captured="guard size")
def by_chunks(x):
    return [c.sum() for c in chunks_of(x, 3)]


@program(randn(6, 2), randn(7, 2), tags="generator left half-way", captured="guard size")
def half_generator(x):
    source = chunks_of(x, 2)
    first = next(source)
    source.close()
    return first


def accumulate():
    total = 0
    while True:
        value = yield total
        total = total + value


@program(randn(3), randn(4), tags="generator send")
def sends(x):
    g = accumulate()
    next(g)
    g.send(x)
    return g.send(x * 2)


@program(([randn(2), randn(2)],), ([randn(3), randn(3)],), ([randn(3)],),
         tags="recursion over nest", captured="guard arguments")
def nested_sum(tree):
    if isinstance(tree, torch.Tensor):
        return tree.sum()
    return sum(map(nested_sum, tree))
