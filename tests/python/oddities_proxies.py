"""Strange but legal functions to trace: control flow, and what else a proxy can be asked."""
import contextlib
import copy
import math
import operator

import cfx
import torch
import torch.fx as torch_fx
from oddities import X, function
from oddities_functions import plain_wrapped
from torch.nn import functional as F

for fx in (torch_fx, cfx):
    fx.wrap("plain_wrapped")


# ---- control flow -------------------------------------------------------------------------------


@function(X)
def if_on_proxy(x):
    return x if x.sum() > 0 else -x


@function(X)
def if_on_shape(x):
    return x if x.shape[0] == 2 else -x


@function(X)
def if_on_is(x):
    return x + 1 if x is not None else x


@function(X)
def and_or_not(x):
    return x and 1


@function(X)
def not_proxy(x):
    return not x


@function(X)
def while_on_proxy(x):
    while x.sum() > 0:
        x = x - 1
    return x


@function(X)
def iterate_proxy(x):
    return [row for row in x]


@function(X)
def star_call_of_proxy(x):
    return torch.stack([*x])


@function(X)
def star_star_call_of_proxy(x):
    return dict(**x)


@function(X)
def assert_on_proxy(x):
    assert x.sum() > 0
    return x


@function(X)
def assert_with_torch(x):
    torch._assert(x.sum() < 100, "too big")
    return x + 1


@function(X)
def raises(x):
    raise KeyError("on purpose")


@function(X)
def raises_after_nodes(x):
    y = x + 1
    return y.undefined_attribute.foo(1 / 0)


@function(X)
def catches(x):
    try:
        return x[0] if x.sum() > 0 else x
    except Exception:
        return x + 1


@function(X)
def infinite_recursion(x):
    return infinite_recursion(x + 1)


@function(X)
def recursion(x, n=3):
    def down(y, k):
        return y if k == 0 else down(y + k, k - 1)

    return down(x, 3)


@function(X)
def comprehension(x):
    return torch.cat([x * i for i in range(3) if i != 1]), {i: x + i for i in range(2)}


@function(X)
def no_grad_block(x):
    with torch.no_grad():
        y = x + 1
    return y * 2


@function(X)
def no_grad_decorated_call(x):
    @torch.no_grad()
    def inner(y):
        return y * 2

    return inner(x)


@function(X)
def enable_grad_call(x):
    torch.set_grad_enabled(True)
    return x + 1


@function(X)
def autocast_block(x):
    with torch.autocast("cpu"):
        return x @ x.T


@function(X)
def device_block(x):
    with torch.device("cpu"):
        return x + torch.ones(3)


@function(X)
def context_of_ones_own(x):
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: None)
        return x + 1


@function(X)
def random_numbers(x):
    return F.dropout(x, 0.5), x.bernoulli(0.5), torch.rand_like(x)


@function(X)
def global_statement(x):
    global last_seen
    last_seen = 1
    return x + last_seen


@function(X)
def print_call(x):
    print("", end="")
    return x


@function(X)
def numpy_call(x):
    return x.numpy()


@function(X)
def item_and_tolist(x):
    return x.sum().item() + 1, x.tolist()


@function(X)
def functional_calls(x):
    y = F.relu(x, inplace=False)
    z = F.max_pool2d(y[None, None], 2, return_indices=True)
    return F.softmax(y, dim=-1), z[0], F.linear(x, torch.ones(2, 3)), F.pad(x, (1, 1), value=2)


@function(X)
def einsum_and_friends(x):
    return torch.einsum("ij,kj->ik", x, x), torch.where(x > 0, x, 0.0), torch.max(x, dim=1)


@function(X)
def result_with_names(x):
    r = torch.max(x, dim=1)
    return r.values, r.indices, r[0]


@function(X)
def split_and_chunk(x):
    a, b, c = torch.split(x, 1, dim=1)
    return a


@function(X)
def chunk_items(x):
    parts = x.chunk(3, dim=1)
    return parts[0] + parts[2]


@function(X)
def torch_ops(x):
    return torch.ops.aten.add.Tensor(x, x), torch.ops.aten.relu(x)


@function(X)
def special_namespaces(x):
    return torch.fft.fft(x).real, torch.linalg.norm(x), torch.special.expit(x)


@function(X)
def sizes_in_calls(x):
    return x.view(x.size(0), -1), torch.reshape(x, (x.size(1), x.size(0))), x.repeat(x.dim(), 1)


@function(X)
def dead_code(x):
    y = x + 1
    z = y * 2  # noqa: F841
    return x


@function(X)
def name_clashes(x):
    add = x + 1
    add_1 = x + 2
    x_1 = torch.add(add, add_1)
    return x_1.add(1).sum().max().type(torch.float32).float()


@function(X)
def names_of_python(input, len=1):
    print, type = torch.sum(input), input.type(torch.float64)
    return print.sum() + type + len


# ---- more of what a proxy can be asked ----------------------------------------------------------


@function(X)
def dunder_methods(x):
    return x.__add__(1), x.__radd__(1), x.__getitem__(0), x.__neg__(), x.__abs__()


@function(X)
def dunder_len(x):
    return x.__len__()


@function(X)
def operator_functions(x):
    y = operator.add(x, 1)
    z = operator.getitem(y, 0)
    return operator.matmul(x, y.T), operator.neg(z), operator.lt(z, 1), operator.itemgetter(0)(x)


@function(X.clone())
def operator_inplace(x):
    y = operator.iadd(x, 1)
    return operator.imul(y, 2)


@function(X)
def operator_truth(x):
    return operator.truth(x)


@function(X)
def operator_index(x):
    return operator.index(x)


@function(X)
def operator_contains(x):
    return operator.contains(x, 1)


@function(X)
def has_attribute(x):
    return x + 1 if hasattr(x, "there_is_none") else x


@function(X)
def class_of_proxy(x):
    return x + 1 if type(x).__name__ == "Proxy" and x.__class__.__name__ == "Proxy" else x


@function(X)
def is_same(x):
    y = x
    return x + 1 if x is y else x


@function(X)
def equal_proxies(x):
    return (x == x) & (x != 1)


@function(X)
def copies(x):
    return copy.copy(x) + 1


@function(X)
def deep_copies(x):
    return copy.deepcopy(x) + 1


@function(X)
def shape_compared(x):
    return x if x.shape == (2, 3) else -x


@function(X)
def shape_as_tuple(x):
    return x.view(tuple(x.shape))


@function(X)
def shape_in_math(x):
    return math.prod(x.shape)


@function(X)
def shape_in_size(x):
    return torch.Size(x.shape)


@function(X)
def shape_sliced(x):
    return x.reshape(x.shape[1:] + x.shape[:1]), x.new_zeros(x.shape[:-1])


@function(X)
def shape_starred_into_call(x):
    return x.new_ones(x.shape[0], *x.shape[1:])


@function(X)
def rows_of_unbind(x):
    return [row + 1 for row in x.unbind(0)]


@function(X)
def rows_unpacked(x):
    first, second = x.unbind(0)
    return first * second


@function(X)
def starred_unpack(x):
    first, *rest = x
    return first


@function(X)
def nested_unpack(x):
    (a, b, c), row = x
    return a


@function(X)
def zip_of_proxies(x):
    return [a + b for a, b in zip(x, x)]


@function(X)
def map_over_proxy(x):
    return list(map(torch.neg, x))


@function(X)
def sorted_proxy(x):
    return sorted(x)


@function(X)
def any_of_proxies(x):
    return any([x])


@function(X)
def chained_comparison(x):
    return 0 < x < 5


@function(X)
def walrus(x):
    return (y := x + 1) * y


@function(X)
def match_statement(x):
    match x:
        case 1:
            return x
        case _:
            return x + 1


@function(X)
def format_spec(x):
    return plain_wrapped(x, f"{x!r}")


@function(X)
def format_number(x):
    return f"{x:.2f}"


@function(X)
def tensor_of_size(x):
    return torch.tensor(x.size(0))


@function(X)
def full_of_size(x):
    return torch.full((x.size(0),), 1.0)


@function(X)
def torch_is_tensor(x):
    return x + 1 if torch.is_tensor(x) else x - 1


@function(X)
def like_another(x):
    return x.long().to(x), x.type_as(x), x.expand_as(x), x.new_tensor([1.0])


@function(X)
def as_strided_and_out(x):
    y = torch.empty(2, 3)
    return torch.add(x, 1, out=y)


@function(X)
def interpolates(x):
    return F.interpolate(x[None, None], size=x.shape[-2:]), F.one_hot(x.long().clamp(0, 3), 4)


@function(X)
def attention(x):
    return F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True)


@function(X)
def losses(x):
    return F.mse_loss(x, x * 2), F.cross_entropy(x, x.argmax(1), reduction="none")


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


@function(X)
def autograd_function(x):
    return Doubled.apply(x)


@function(X)
def checkpointed(x):
    return torch.utils.checkpoint.checkpoint(torch.relu, x, use_reentrant=False)


@function(X)
def vmapped(x):
    return torch.vmap(torch.neg)(x)


@function(X)
def gradient(x):
    return torch.func.grad(lambda y: y.sum())(x)


@function(X)
def backward_call(x):
    x.sum().backward()
    return x.grad


@torch.jit.script
def scripted(x):
    return x * 2


@function(X)
def calls_scripted(x):
    return scripted(x) + 1


@function(X)
def calls_compiled(x):
    return torch.compile(lambda y: y + 1, backend="eager")(x)


@function(X)
def seeds(x):
    torch.manual_seed(0)
    return x + 1


@function(X)
def global_switches(x):
    torch.set_default_dtype(torch.float32)
    return x.to(torch.get_default_dtype())


@function(X)
def inference_mode_block(x):
    with torch.inference_mode():
        return x + 1


@function(X)
def profiler_block(x):
    with torch.profiler.record_function("block"):
        return x + 1


@function(X)
def stop_iteration(x):
    raise StopIteration


@function(X)
def returns_proxy_of_closure(x):
    kept = []

    def inner(y):
        kept.append(y + 1)
        return y

    return inner(x) + kept[0]


@function(X)
def mutable_default(x, seen=[]):  # noqa: B006
    return x + 1


@function(X)
def returns_function(x):
    return torch.relu


@function(X)
def returns_lambda(x):
    return lambda: x


@function(X)
def returns_type(x):
    return type(x), torch.float32, torch.device("cpu"), int


@function(X)
def returns_module(x):
    return torch.nn.ReLU()


@function(X)
def returns_object(x):
    return object()


@function(X)
def returns_big_structure(x):
    return [[{"a": (x, [x + 1])}, None], 1.5, "s", True]


@function(X)
def many_nodes(x):
    for i in range(300):
        x = x + i if i % 3 else x.relu()
    return x


@function(X)
def long_names(x):
    return getattr(x, "a" * 300, x)()


@function(X)
def unicode_names(größe):
    ü = größe + 1
    return ü * 2


@function(X)
def private_names(_x, __y=1):
    return _x + __y


@function(X)
def deleted_name(x):
    y = x + 1
    del x
    return y
