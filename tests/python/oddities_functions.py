"""Strange but legal functions to trace."""
import collections
import dataclasses
import enum
import math
import operator
import typing

import cfx
import numpy
import torch
import torch.fx as torch_fx
from oddities import X, function

for fx in (torch_fx, cfx):
    fx.wrap("len")
    fx.wrap("plain_wrapped")


# ---- parameters ---------------------------------------------------------------------------------


@function(X, X, X)
def star_args(x, *rest):
    return x + rest[0] * rest[1]


@function(X)
def star_args_len(x, *rest):
    return x + len(rest)


@function(X)
def star_kwargs(x, **rest):
    return x + rest.get("y", 1)


@function(X, X)
def star_both(*args, **kwargs):
    return args, kwargs


@function(X)
def keyword_only(x, *, y=2, z):
    return x * y


@function(X)
def defaults(x, y=2, z: float = 0.5, s="text", n=None, t=(1, [2])):
    return x * y + z


@function(X, concrete={"flag": True})
def concrete_flag(x, flag):
    return x + 1 if flag else x - 1


@function(X, concrete={"y": {"a": 1, "b": (2, 3)}})
def concrete_dict(x, y):
    return x * y["a"] + y["b"][1]


@function([X, X])
def list_input(xs):
    return xs[0] + xs[1]


@function(X, X, concrete={"y": None})
def concrete_none(x, y):
    return x if y is None else x + y


@function(X, concrete={"nothing": 1})
def concrete_unknown(x):
    return x + 1


@function(X)
def positional_only(x, /, y=1):
    return x + y


@function(X)
def parameter_named_like_python(input, len=3):
    return input + len


@function(X)
def parameter_named_self(self):
    return self + 1


@function(X)
def annotated(x: torch.Tensor, y: typing.Optional[int] = None) -> typing.Tuple[torch.Tensor, int]:
    return x + 1, 3


@function(X)
def no_parameters_used(x):
    return 3


@function()
def no_parameters():
    return torch.ones(2) + 1


# ---- outputs ------------------------------------------------------------------------------------

Pair = collections.namedtuple("Pair", "first second")


class Typed(typing.NamedTuple):
    a: torch.Tensor
    b: int = 3


@dataclasses.dataclass
class Record:
    a: object
    b: int = 3


class Color(enum.Enum):
    RED = 1
    BLUE = "b"


class Level(enum.IntEnum):
    LOW = 1


@function(X)
def dict_output(x):
    return {"a": x + 1, "b": [x, (x, {"c": x * 2})], "d": None}


@function(X)
def dict_output_int_keys(x):
    return {1: x, (1, 2): x + 1}


@function(X)
def ordered_dict_output(x):
    return collections.OrderedDict(a=x + 1, b=x)


@function(X)
def named_tuple_output(x):
    return Pair(x + 1, [x])


@function(X)
def typed_named_tuple_output(x):
    return Typed(x + 1)


@function(X)
def dataclass_output(x):
    return Record(x + 1)


@function(X)
def set_output(x):
    return {1, 2}


@function(X)
def set_of_proxies(x):
    return {x + 1}


@function(X)
def none_output(x):
    x + 1


@function(X)
def enum_output(x):
    return x + 1, Color.RED, Level.LOW


@function(X)
def same_output_twice(x):
    y = x + 1
    return y, y, [y]


@function(X)
def input_as_output(x):
    return x


@function(X)
def generator_output(x):
    return (x + i for i in range(2))


@function(X)
def range_and_slice_output(x):
    return range(3), slice(1, 2), ...


@function(X)
def constant_tensor_output(x):
    return torch.ones(2)


# ---- arguments ----------------------------------------------------------------------------------


def keep(x, *args, **kwargs):
    return x


def plain_wrapped(x, *args, **kwargs):
    """Recorded as a call, by cfx.wrap."""
    return x


@function(X)
def wrapped_with_everything(x):
    y = plain_wrapped(x, [x, (x,)], {"a": x}, slice(x, None), None, ..., 1.5, 2j, b"b", "s\n'")
    return plain_wrapped(y, dtype=torch.float32, device=torch.device("cpu"), r=range(2), f=math.inf)


@function(X)
def wrapped_with_enum(x):
    return plain_wrapped(x, Color.RED, Level.LOW)


@function(X)
def wrapped_with_named_tuple(x):
    return plain_wrapped(x, Pair(x, 1), Typed(x))


@function(X)
def wrapped_with_dataclass(x):
    return plain_wrapped(x, Record(x))


@function(X)
def wrapped_with_function(x):
    return plain_wrapped(x, torch.relu, keep, Color, torch.Tensor)


@function(X)
def wrapped_with_object(x):
    return plain_wrapped(x, object())


@function(X)
def wrapped_with_set(x):
    return plain_wrapped(x, {1})


@function(X)
def wrapped_with_proxy_key(x):
    return plain_wrapped(x, {x: 1})


@function(X)
def wrapped_with_int_keys(x):
    return plain_wrapped(x, {1: x, None: 2})


@function(X)
def wrapped_without_proxy(x):
    return x + plain_wrapped(3)


@function(X)
def wrapped_with_tensor(x):
    return plain_wrapped(x, torch.ones(2)) + torch.ones(3)


@function(X)
def wrapped_with_size(x):
    return plain_wrapped(x, torch.Size([2, 3]))


@function(X)
def len_wrapped(x):
    return x + len(x)


@function(X)
def dtypes_and_devices(x):
    y = x.to(torch.float64).to(device="cpu", dtype=torch.float32).to(torch.device("cpu"))
    return y.type(torch.int64), x.contiguous(memory_format=torch.contiguous_format), x.dtype


@function(X)
def tensors_made_inside(x):
    a = torch.zeros(2, 3)
    b = torch.tensor([1.0, 2.0, 3.0])
    return x + a + b + torch.arange(3) + a


@function(X)
def tensor_made_of_size(x):
    return torch.zeros(x.shape[0], 3)


@function(X)
def tensor_like(x):
    return torch.zeros_like(x) + x.new_ones(3) + torch.full_like(x, 2)


@function(X)
def size_arithmetic(x):
    n, m = x.shape[0], x.size(1)
    return x.reshape(n * m // 2, 2), x.view(-1, m)


@function(X)
def size_sum(x):
    return x.view(*x.shape)


@function(X)
def size_plus_tuple(x):
    return x.expand((1,) + x.shape)


@function(X)
def size_unpacked(x):
    n, m = x.shape
    return x.view(m, n)


@function(X)
def three_way_unpack(x):
    a, (b, c) = x[0], x[1:]
    return a + b


@function(X)
def slices(x):
    return x[0], x[:, 1:], x[..., None, -1], x[::2], x[x > 0], x[[0, 1], [1, 2]], x[None]


@function(X)
def slices_with_proxies(x):
    n = x.size(0)
    return x[:n], x[n - 1], x[:, : n - 1], x[(0, n - 1)], x[slice(None, n)]


@function(X.clone())
def setitem(x):
    x[0] = 1
    return x


@function(X.clone())
def setitem_of_copy(x):
    y = x.clone()
    operator.setitem(y, 0, 1)
    return y


@function(X)
def delitem(x):
    del x[0]
    return x


@function(X.clone())
def inplace(x):
    x += 1
    x *= x
    x.add_(2).relu_()
    x -= 1
    x /= 2
    return torch.relu_(x)


@function(X)
def inplace_of_constant(x):
    y = 1
    y += x
    y **= 2
    return y


@function(X)
def operators(x):
    a = -x + 1 - (2 - x) * 3 / (4 + abs(x)) // 2 % 5
    b = (x > 0) & (x < 5) | (x == 1) ^ (x != 2)
    return a**2, 2**x, a @ x.T, ~b, +x, x >= 1, x <= 1, divmod(7, 2)


@function(X)
def shifts(x):
    y = x.long()
    return y << 1, y >> 1, 1 << y, 8 >> y


@function(X)
def divmod_of_proxy(x):
    return divmod(x, 2)


@function(X)
def reflected_and(x):
    return True & (x > 0), 1 | x.long(), 3 ^ x.long()


@function(X)
def matmul_of_list(x):
    return torch.stack([x, x]).sum(dim=(0, 1), keepdim=True)


@function(X)
def methods_by_getattr(x):
    return getattr(x, "relu")(), operator.methodcaller("neg")(x), operator.attrgetter("shape")(x)


@function(X)
def attribute_chain(x):
    return x.T.mT.real.shape[0], x.data, x.grad, x.device.type


@function(X)
def method_taken_before_the_call(x):
    f = x.relu
    return f() + f()


@function(X)
def class_methods(x):
    return torch.Tensor.relu(x), torch.Tensor.add(x, 1), torch.Tensor.__add__(x, 2)


@function(X)
def set_attribute(x):
    x.name = 3
    return x


@function(X)
def math_functions(x):
    n = x.size(0)
    return x * math.sqrt(n) + math.floor(n / 2) + math.pi + math.sqrt(4)


@function(X)
def math_of_proxy(x):
    return math.ceil(x.sum()), math.exp(x.size(0))


@function(X)
def builtins_of_proxies(x):
    return abs(x), pow(x, 2), -x


@function(X)
def builtin_sum(x):
    return sum([x, x, x])


@function(X)
def builtin_max(x):
    return max(x.size(0), 3)


@function(X)
def builtin_round(x):
    return round(x)


@function(X)
def builtin_int(x):
    return int(x.size(0))


@function(X)
def builtin_float(x):
    return float(x.sum())


@function(X)
def builtin_isinstance(x):
    return x + 1 if isinstance(x, torch.Tensor) else x - 1


@function(X)
def builtin_hash(x):
    return x + {x: 1}[x]


@function(X)
def builtin_repr(x):
    return x if "Proxy" in repr(x) else x + 1


@function(X)
def builtin_str(x):
    return plain_wrapped(x, f"{x}", str(x + 1))


@function(X)
def builtin_reversed(x):
    return list(reversed(x))


@function(X)
def builtin_range(x):
    return [x + i for i in range(x.size(0))]


@function(X)
def builtin_enumerate(x):
    return [i for i, _ in enumerate(x)]


@function(X)
def builtin_zip_of_lists(x):
    return [a + b for a, b in zip([x, x], [1, 2])]


@function(X)
def in_list(x):
    return x in [x]


@function(X)
def in_proxy(x):
    return 1 in x


@function(X)
def proxy_as_index(x):
    return [x, x + 1][x.size(0)]


@function(X)
def proxy_as_key(x):
    return {"a": 1}[x]


# ---- more arguments -----------------------------------------------------------------------------


@function(X)
def keywords_that_are_no_names(x):
    return plain_wrapped(x, **{"a b": 1})


@function(X)
def keywords_of_python(x):
    return plain_wrapped(x, **{"class": 1, "self": 2})


@function(X)
def numpy_numbers(x):
    return x * numpy.float32(2) + numpy.int64(3)


@function(X)
def numpy_array(x):
    return torch.add(x, numpy.ones(3))


@function(X)
def odd_numbers(x):
    return plain_wrapped(x, 10**30, -0.0, math.nan, -math.inf, 1e300, 2**63, -(2**63), True)


@function(X)
def odd_strings(x):
    return plain_wrapped(x, "", "a'b\"c", "new\nline", "\u00e9\U0001f600", "\x00", "{x}", "%s")


@function(X)
def empty_containers(x):
    return plain_wrapped(x, [], (), {}, [[]], ((),), {"a": {}})


@function(X)
def deep_containers(x):
    nested = x
    for i in range(20):
        nested = [nested] if i % 2 else (nested, i)
    return plain_wrapped(x, nested)


@function(X)
def list_changed_later(x):
    items = [x]
    y = plain_wrapped(x, items)
    items.append(y)
    return plain_wrapped(y, items)


@function(X)
def user_list(x):
    return plain_wrapped(x, collections.UserList([x]))


@function(X)
def classes_of_containers(x):
    return plain_wrapped(x, collections.OrderedDict(a=x), collections.deque([1]))


@function(X)
def default_dict(x):
    return plain_wrapped(x, collections.defaultdict(list, a=[x]))


@function(X)
def parameter_argument(x):
    return x + torch.nn.Parameter(torch.ones(3))


@function(X)
def generator_argument(x):
    return torch.cat(x + i for i in range(2))


@function(X)
def bytes_argument(x):
    return plain_wrapped(x, bytearray(b"b"))


@function(X)
def module_argument(x):
    return plain_wrapped(x, torch.nn.ReLU())


@function(X)
def type_argument(x):
    return plain_wrapped(x, int, typing.List[int], list[int], type(None))


@function(X)
def generator_object_argument(x):
    return plain_wrapped(x, torch.Generator())


@function(X)
def frozenset_argument(x):
    return plain_wrapped(x, frozenset({1}))
