"""Strange but legal things to trace: callables of all kinds, and modules."""
import functools
import math
import types

import cfx
import torch
import torch.fx as torch_fx
from oddities import X, case, module
from oddities_functions import Pair, Record, plain_wrapped
from torch import nn
from torch.nn import functional as F

for fx in (torch_fx, cfx):
    fx.wrap("plain_wrapped")


# ---- what can be traced -------------------------------------------------------------------------


@case(X)
def a_lambda():
    return lambda x: x + 1


@case(X)
def a_partial():
    return functools.partial(lambda x, y: x + y, y=2)


@case(X)
def a_partial_of_positional():
    return functools.partial(lambda y, x: x + y, 2)


@case(X)
def a_nested_function():
    k = 3

    def inner(x):
        return x + k

    return inner


class Holder:
    def method(self, x):
        return x + 1

    @staticmethod
    def static(x):
        return x + 2

    @classmethod
    def cls(cls, x):
        return x + 3

    def __call__(self, x):
        return x + 4


@case(X)
def a_bound_method():
    return Holder().method


@case(X)
def a_static_method():
    return Holder.static


@case(X)
def a_class_method():
    return Holder.cls


@case(X)
def a_callable_object():
    return Holder()


@case(X)
def a_builtin():
    return torch.relu


@case(X)
def a_builtin_of_python():
    return len


@case(X)
def a_class():
    return Record


@case(X)
def a_function_without_source():
    namespace = {}
    exec("def made(x, y=1):\n    return x + y", namespace)
    return namespace["made"]


@case(X)
def a_decorated_function():
    def twice(f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            return f(*args, **kwargs) * 2

        return wrapper

    @twice
    def inner(x, y=1):
        return x + y

    return inner


@case(X)
def a_cached_function():
    return functools.lru_cache(lambda x: x + 1)


@case(X)
def a_generator_function():
    def rows(x):
        yield x
        yield x + 1

    return rows


@case(X)
def an_async_function():
    async def later(x):
        return x + 1

    return later


@case(X)
def a_bound_forward():
    return nn.Linear(3, 3).forward


@case()
def nothing():
    return None


@case()
def a_number():
    return 3


@case(X)
def a_single_dispatch():
    return functools.singledispatch(lambda x: x + 1)


@case(X)
def a_types_function():
    f = a_lambda()
    return types.FunctionType(f.__code__, {}, "renamed")


# ---- modules ------------------------------------------------------------------------------------


class Block(nn.Module):
    """Not a leaf."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        return self.lin(x).relu()


@module(X)
class Empty(nn.Module):
    def forward(self, x):
        return x


@module(X)
class NoForward(nn.Module):
    pass


@module(X)
class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Block()
        self.b = nn.Sequential(Block(), nn.Sequential(nn.ReLU(), Block()))

    def forward(self, x):
        return self.b(self.a(x))


@module(X)
class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Block()
        self.b = self.a
        self.c = nn.ModuleList([self.a, self.a.lin])

    def forward(self, x):
        return self.b(self.a(x)) + self.c[0](x) + self.c[1](x) + self.a.lin(x)


@module(X)
class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        for _ in range(3):
            x = self.lin(x)
        return x


@module(X)
class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.list = nn.ModuleList([nn.Linear(3, 3), Block()])
        self.dict = nn.ModuleDict({"a": nn.ReLU(), "b-c": nn.Linear(3, 3), "1": Block()})
        self.params = nn.ParameterList([nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(1))])
        self.named = nn.ParameterDict({"w": nn.Parameter(torch.ones(3))})

    def forward(self, x):
        for m in self.list:
            x = m(x)
        for name, m in self.dict.items():
            x = m(x)
        for p in self.params:
            x = x * p
        return x * self.named["w"] + self.dict["a"](x) + len(self.list)


@module(X)
class Attributes(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.tied = self.w
        self.register_buffer("buf", torch.ones(3))
        self.register_buffer("hidden", torch.ones(3), persistent=False)
        self.register_buffer("none", None)
        self.register_parameter("no_bias", None)
        self.plain = torch.ones(3)
        self.items = [torch.ones(3), torch.zeros(3)]
        self.options = {"scale": 2.0}

    @property
    def doubled(self):
        return self.w * 2

    @functools.cached_property
    def cached(self):
        return self.buf + 1

    def helper(self, x):
        return x + self.tied + self.buf

    def forward(self, x):
        x = self.helper(x) * self.doubled + self.hidden + self.plain
        if self.none is None and self.no_bias is None and self.training:
            x = x + self.items[0] * self.options["scale"]
        return x + self.cached


@module(X)
class ParameterSizes(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3, 3))

    def forward(self, x):
        n = self.w.shape[0]
        return F.linear(x, self.w) + n + self.w.size(1) + self.w.dim()


@module(X, tracer={"param_shapes_constant": True})
class ConstantParameterSizes(ParameterSizes):
    def forward(self, x):
        if self.w.shape[0] == 3 and self.w.size(1) > 1 and self.w.dim() == 2:
            x = x + 1
        return x


@module(X)
class TiedAcross(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight = self.a.weight

    def forward(self, x):
        return F.linear(self.b(self.a(x)), self.b.weight, self.a.bias)


@module(X)
class Hooks(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.lin = nn.Linear(3, 3)
        for m in (self.block, self.lin, self):
            m.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
            m.register_forward_hook(lambda m, args, out: out * 2)

    def forward(self, x):
        return self.lin(self.block(x))


@module(X)
class KeywordHooks(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.block.register_forward_pre_hook(
            lambda m, args, kwargs: (args, {"x": kwargs["x"] * 3}), with_kwargs=True
        )

    def forward(self, x):
        return self.block(x=x)


@module(X)
class OwnCall(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = InnerOwnCall()

    def forward(self, x):
        return self.inner(x)


class InnerOwnCall(Block):
    def __call__(self, x):
        return super().__call__(x) + 1


@module(X)
class OwnGetattr(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def __getattr__(self, name):
        if name == "made_up":
            return torch.ones(3)
        return super().__getattr__(name)

    def forward(self, x):
        return x + self.made_up + self.w


@module(X)
class OwnGetattribute(nn.Module):
    def __getattribute__(self, name):
        return super().__getattribute__(name)

    def forward(self, x):
        return x + 1


@module(X)
class ForwardAssigned(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.forward = self.other

    def other(self, x):
        return self.lin(x) + 1


@module(X)
class SubForwardAssigned(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.block.forward = lambda x: x * 3

    def forward(self, x):
        return self.block(x)


@module(X)
class CallsForwardDirectly(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.block = Block()

    def forward(self, x):
        return self.lin.forward(self.block.forward(x))


@module(X)
class ModuleMadeInside(nn.Module):
    def forward(self, x):
        return nn.ReLU()(x)


@module(X)
class BlockMadeInside(nn.Module):
    def forward(self, x):
        return Block()(x)


@module(X)
class ParameterMadeInside(nn.Module):
    def forward(self, x):
        return x + nn.Parameter(torch.ones(3))


@module(X)
class SubmoduleInPlainList(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = [nn.Linear(3, 3)]

    def forward(self, x):
        return self.hidden[0](x)


@module(X)
class SeveralInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.bilinear = nn.Bilinear(3, 3, 2)
        self.lstm = nn.LSTM(3, 4)

    def forward(self, x):
        y = self.bilinear(x, input2=x)
        out, (h, c) = self.lstm(x[None])
        return y, out, h, c


@module(X)
class ModuleKwargs(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = KwargsInner()

    def forward(self, x, *, scale=2):
        return self.inner(x, scale=scale, extra={"a": x})


class KwargsInner(nn.Module):
    def forward(self, x, *args, scale, **rest):
        return x * scale + rest["extra"]["a"]


@module(X)
class ModuleReturnsContainers(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = ContainersInner()

    def forward(self, x):
        out = self.inner(x)
        return out["a"][0] + out["b"].first


class ContainersInner(nn.Module):
    def forward(self, x):
        return {"a": [x + 1], "b": Pair(x, x)}


@module(X)
class ChangesItself(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        self.count += 1
        self.seen += 1
        self.last = x
        return x + self.count


@module(X)
class SetsBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        self.seen = self.seen + 1
        return x + self.seen


@module(X)
class DeepNames(nn.Module):
    def __init__(self):
        super().__init__()
        self.add_module("class", nn.ReLU())
        self.add_module("0", nn.ReLU())
        self.add_module("with space", nn.ReLU())

    def forward(self, x):
        return self._modules["class"](self._modules["0"](self._modules["with space"](x)))


@module(X)
class Raises(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = RaisesInner()

    def forward(self, x):
        return self.inner(x)


class RaisesInner(nn.Module):
    def forward(self, x):
        raise ZeroDivisionError


@module(X)
class RecursiveModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, depth=None):
        if depth == 0:
            return x
        return self(self.lin(x), 2 if depth is None else depth - 1) if depth != 2 else x + 1


@module(X)
class WithLazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.LazyLinear(3)

    def forward(self, x):
        return self.lin(x)


@module(X)
class Normalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.lin = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))

    def forward(self, x):
        return self.lin(self.norm(x)) + self.lin.weight


@module(X)
class InSequential(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(3, 3), Block(), nn.Flatten())


@module(X)
class Derived(Block):
    def forward(self, x):
        return super().forward(x) + self.lin.bias


@module(X)
class Iterates(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, x):
        outs = []
        for name, child in self.blocks.named_children():
            x = child(x)
            outs.append(x)
        return torch.cat(outs, 1), sum(p.sum() for p in self.parameters())


@module(X)
class GetAttrByName(nn.Module):
    def __init__(self):
        super().__init__()
        self.b1, self.b2 = Block(), Block()

    def forward(self, x):
        for i in (1, 2):
            x = getattr(self, f"b{i}")(x)
        return x + self.get_parameter("b1.lin.bias") + self.get_submodule("b2").lin.weight


@case(X)
def a_scripted_submodule():
    root = nn.Sequential(nn.ReLU())
    root.add_module("scripted", torch.jit.script(nn.ReLU()))
    return root


@case(X)
def a_traced_module_again():
    return torch_fx.symbolic_trace(Nested())


@case(X)
def a_leaf_as_root():
    return nn.Linear(3, 3)


@case(X)
def a_model_in_training():
    return nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(3)).train()


@case(X)
def an_attention():
    return nn.TransformerEncoderLayer(4, 2, 8)


@case(torch.ones(1, 3, 8, 8))
def a_convolution():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d((1, 1)))


# ---- more modules -------------------------------------------------------------------------------


@module(X)
class FunctionsAsAttributes(nn.Module):
    scale = torch.full((3,), 2.0)

    def __init__(self):
        super().__init__()
        self.act = torch.relu
        self.soft = functools.partial(F.softmax, dim=1)
        self.own = lambda x: x * 3

    def forward(self, x):
        return self.soft(self.act(self.own(x))) * self.scale


@module(X)
class OwnContainer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), Block()

    def __len__(self):
        return 2

    def __iter__(self):
        return iter((self.a, self.b))

    def __getitem__(self, i):
        return (self.a, self.b)[i]

    def __bool__(self):
        return False

    def forward(self, x):
        for m in self:
            x = m(x)
        return x + self[1](x) + len(self)


@module(X)
class StaticForward(nn.Module):
    @staticmethod
    def forward(x):
        return x + 1


@module(X)
class StaticInside(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = StaticForward()

    def forward(self, x):
        return self.inner(x)


@module(X)
class NoGradForward(nn.Module):
    @torch.no_grad()
    def forward(self, x, *, k=2):
        return x * k


@module(X)
class StringAnnotations(nn.Module):
    def forward(self, x: "torch.Tensor", n: "int" = 2) -> "torch.Tensor":
        return x * n


@module(X)
class StarForward(nn.Module):
    def forward(self, *args, **kwargs):
        return args[0] + kwargs.get("k", 1)


@module(X)
class OnlyStar(nn.Module):
    def forward(*args):
        return args[1]


@module(X)
class BufferClass(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = nn.Buffer(torch.ones(3))
        self.scale = nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, x):
        return x * self.kept + self.scale.data + self.kept.sum()


@module(X)
class PropertyThatFails(nn.Module):
    @property
    def broken(self):
        return self.there_is_none

    def forward(self, x):
        return x + self.broken


@module(X)
class MissingAttribute(nn.Module):
    def forward(self, x):
        return x + self.there_is_none


@module(X)
class TriesAttribute(nn.Module):
    def forward(self, x):
        return x + getattr(self, "there_is_none", 1) + (2 if hasattr(self, "training") else 3)


@module(X)
class NamesOfPython(nn.Module):
    def __init__(self):
        super().__init__()
        self.print, self.input, self.add = nn.ReLU(), nn.ReLU(), nn.ReLU()
        self.ünï = nn.ReLU()
        self.list = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.ünï(self.add(self.input(self.print(x)))) + self.list


@module(X)
class SwitchesTraining(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        self.eval()
        return self.drop(x)


@module(X)
class FunctionalCall(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        weights = {"weight": self.lin.weight * 2, "bias": self.lin.bias}
        return torch.func.functional_call(self.lin, weights, (x,))


@module(X)
class CompiledInside(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.compile(Block(), backend="eager")

    def forward(self, x):
        return self.inner(x)


@module(X)
class ScriptedInside(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.jit.script(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))

    def forward(self, x):
        return self.inner(x) + self.inner[0](x)


@module(X)
class GraphModuleInside(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch_fx.symbolic_trace(Block())

    def forward(self, x):
        return self.inner(x)


@module(X)
class Slots(nn.Module):
    __slots__ = ("extra",)

    def __init__(self):
        super().__init__()
        self.extra = 3

    def forward(self, x):
        return x * self.extra


@module(X)
class TensorAttributesOfSubmodules(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.block.plain = torch.ones(3)
        self.block.items = {"a": torch.ones(3)}

    def forward(self, x):
        return x + self.block.plain + self.block.items["a"] + self.block.lin.bias


@module(X)
class SharedTensor(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.ones(3)
        self.b = self.a
        self.register_buffer("c", self.a)

    def forward(self, x):
        return x + self.a + self.b + self.c


@module(X)
class SharedParameterNames(nn.Module):
    def __init__(self):
        super().__init__()
        self.z, self.a = nn.Linear(3, 3), nn.Linear(3, 3)
        self.a.weight = self.z.weight
        self.w = self.z.weight

    def forward(self, x):
        return F.linear(x, self.a.weight) + F.linear(x, self.w) + F.linear(x, self.z.weight)


@module(X)
class ModuleInModuleTwice(nn.Module):
    def __init__(self):
        super().__init__()
        shared = nn.Linear(3, 3)
        self.first, self.second = nn.Sequential(shared), nn.Sequential(shared)

    def forward(self, x):
        return self.second(self.first(x))


@module(X)
class CallsParent(nn.Module):
    def __init__(self):
        super().__init__()
        self.child = Child()
        self.child.__dict__["parent"] = self
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        return self.child(x)


class Child(nn.Module):
    def forward(self, x):
        return self.parent.lin(x)


@module(X)
class GlobalHook(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        handle = nn.modules.module.register_module_forward_hook(lambda m, a, out: out * 2)
        try:
            return self.lin(x)
        finally:
            handle.remove()


@module(X)
class BackwardHook(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.block.register_full_backward_hook(lambda m, i, o: None)

    def forward(self, x):
        return self.block(x)


@module(X)
class OwnModuleCallImpl(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = OwnSlowForward()

    def forward(self, x):
        return self.inner(x)


class OwnSlowForward(Block):
    def _call_impl(self, *args, **kwargs):
        return super()._call_impl(*args, **kwargs) * 2


@module(X)
class RandomModules(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.embed = nn.GRU(3, 2, batch_first=True), nn.EmbeddingBag(4, 3)
        self.attention = nn.MultiheadAttention(3, 1)

    def forward(self, x):
        out, h = self.rnn(x[None])
        y, weights = self.attention(x, x, x)
        return out, h, y, weights, self.embed(x.long().clamp(0, 3))


@module(X)
class MultipleReturns(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Several()

    def forward(self, x):
        a, *rest = self.inner(x)
        return a, rest


class Several(nn.Module):
    def forward(self, x):
        return x, x + 1, {"k": x + 2}


@module(X)
class SubmoduleAsArgument(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return plain_wrapped(x, self.block, module=self.block.lin)


@module(X, concrete={"flag": False})
class ConcreteForward(nn.Module):
    def forward(self, x, flag=True, scale=2):
        return x * scale if flag else -x


@module((X, 3), concrete=lambda fx: {"pair": (fx.PH, 3)})
class PartlyConcrete(nn.Module):
    def forward(self, pair):
        return pair[0] + pair[1]


@case(X, tracer={"autowrap_functions": (_autowrapped := lambda x: x * 5,)})
def an_autowrapped_function():
    return lambda x: _autowrapped(x)


@case(X, tracer={"autowrap_modules": ()})
def without_autowrapping():
    return lambda x: x * math.sqrt(x.size(0))


@case(X, tracer={"param_shapes_constant": True})
def with_constant_shapes():
    return ParameterSizes()
