"""What torch offers below its usual functions: transforms of torch.func, autograd.Function, custom
operators, checkpoints, gradients inside of a model, subclasses of tensors."""
import functools

import torch
from programs import call, evaluating, ints, made, module, program, randn, training
from torch import nn
from torch.autograd import Function
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

X = randn(3, 4).requires_grad_()


def energy(x):
    return (x * x).sum() + x.prod()


@program(randn(3), randn(5), tags="grad")
def gradient(x):
    return grad(energy)(x)


@program(randn(3, 2), randn(5, 2), randn(1, 2), tags="vmap grad",
         captured="guard size")
def per_sample_gradient(x):
    return vmap(grad(energy))(x)


@program(randn(3), randn(2), tags="jacobians", captured="guard arguments")
def jacobians(x):
    return jacrev(torch.sin)(x), jacfwd(torch.sin)(x), hessian(energy)(x)


@program((randn(3), randn(3)), (randn(4), randn(4)), tags="jvp vjp")
def products(x, v):
    y, pull = vjp(torch.tanh, x)
    return jvp(torch.tanh, (x,), (v,)), pull(v)[0], y


@program((randn(3, 2), randn(3, 2)), (randn(4, 2), randn(4, 2)), tags="vmap in_dims")
def pairwise(a, b):
    return vmap(vmap(torch.dot, (None, 0)), (0, None))(a, b)


@program(randn(3, 4), randn(5, 4), tags="vmap randomness size")
def vmaps_size(x):
    return vmap(lambda row: row * row.shape[0] + row.sum() / x.shape[0])(x)


@module(randn(3, 4), randn(5, 4), tags="functional_call")
class Hyper(nn.Module):
    def __init__(self):
        super().__init__()
        self.main, self.make = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x):
        weights = dict(self.main.named_parameters())
        weights["bias"] = self.make(x).mean(0)
        return functional_call(self.main, weights, (x,))


@module(randn(3, 4), randn(5, 4), tags="maml grad inside", train=True)
class OneStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        loss = self.fc(x).square().mean()
        grads = torch.autograd.grad(loss, list(self.fc.parameters()), create_graph=True)
        fast = [p - 0.1 * g for p, g in zip(self.fc.parameters(), grads)]
        return F.linear(x, *fast)


@program(randn(3, 2), randn(5, 2), tags="autograd.grad of an input")
def force(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        e = (x.square().sum(-1) + 1).log().sum()
        return -torch.autograd.grad(e, x)[0]


@program(randn(3, 2), randn(5, 2), tags="backward inside")
def calls_backward(x):
    x = x.detach().clone().requires_grad_()
    with torch.enable_grad():
        (x**3).sum().backward()
    return x.grad


@program(X, randn(5, 4).requires_grad_(), tags="gradient penalty")
def penalty(x):
    y = x.tanh().sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return y + g.norm()


class Straight(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        ctx.save_for_backward(x)
        return x.round() * scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.scale * (x.abs() < 1), None


@program((X, 2.0), (randn(2, 4).requires_grad_(), 3.0), tags="autograd.Function")
def straight_through(x, scale):
    return Straight.apply(x, scale)


class WithSetup(Function):
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0] * 10


@program(X, randn(2, 4).requires_grad_(), tags="autograd.Function setup_context")
def function_with_setup(x):
    return WithSetup.apply(x) + 1


class BranchesInside(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.positive = bool(x.sum() > 0)
        return x.clone() if ctx.positive else -x

    @staticmethod
    def backward(ctx, g):
        return g if ctx.positive else -g


@program(randn(3), -randn(3), randn(5), tags="autograd.Function branch")
def branch_in_function(x):
    return BranchesInside.apply(x)


@module(training(X), training(randn(2, 4)), evaluating(randn(2, 4)), tags="checkpoint")
class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def block(self, x, scale):
        return self.a(x).relu() * scale

    def forward(self, x):
        if self.training:
            return self.b(checkpoint(self.block, x, 2.0, use_reentrant=False))
        return self.b(self.block(x, 2.0))


@module(training(X), training(randn(2, 4).requires_grad_()), tags="checkpoint reentrant dropout")
class CheckpointReentrant(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 4))

    def forward(self, x):
        return checkpoint_sequential(self.layers, 2, x, use_reentrant=True)


if not hasattr(torch.ops.capture_programs, "twice"):

    @torch.library.custom_op("capture_programs::twice", mutates_args=())
    def twice(x: torch.Tensor, n: int) -> torch.Tensor:
        return x * 2 * n

    @torch.library.custom_op("capture_programs::bump", mutates_args=("x",))
    def bump(x: torch.Tensor) -> None:
        x.add_(1)


@program((randn(3), 2), (randn(5), 3), tags="custom op")
def custom_operator(x, n):
    return torch.ops.capture_programs.twice(x, n) + x.shape[0]


@program(randn(3), randn(5), tags="custom op mutates")
def custom_mutation(x):
    y = x.clone()
    torch.ops.capture_programs.bump(y)
    torch.ops.capture_programs.bump(x)
    return y + x


@program(randn(3), randn(5), tags="aten ops")
def aten_calls(x):
    y = torch.ops.aten.add.Tensor(x, x, alpha=2)
    return torch.ops.aten._softmax(y, 0, False), torch.ops.aten.sum.dim_IntList(x, [0])


class Tagged(torch.Tensor):
    def __deepcopy__(self, memo):
        return self.detach().clone().as_subclass(Tagged)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        return out * 2 if func is torch.Tensor.exp else out


@program(randn(3), randn(5), tags="tensor subclass inside",
         captured="refused Creating a new Tensor subclass")
def subclass_inside(x):
    t = x.as_subclass(Tagged)
    return t.exp().as_subclass(torch.Tensor)


@program(randn(3).as_subclass(Tagged), randn(5).as_subclass(Tagged),
         tags="tensor subclass argument")
def subclass_argument(x):
    return x.exp().as_subclass(torch.Tensor)


class Quantity:
    """An object that torch's functions take."""

    def __init__(self, value, unit):
        self.value, self.unit = value, unit

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [a.value if isinstance(a, Quantity) else a for a in args]
        return Quantity(func(*plain, **kwargs or {}), args[0].unit)


@program(randn(3), randn(5), tags="torch_function object")
def quantities(x):
    q = torch.add(Quantity(x, "m"), Quantity(x, "m"))
    return torch.relu(q).value, q.unit


@program(Quantity(randn(3), "m"), Quantity(randn(4), "m"), Quantity(randn(3), "s"),
         tags="torch_function argument",
         captured="guard arguments")
def takes_quantity(q):
    return torch.exp(q).value


@module(randn(3, 4), randn(2, 4), tags="torch.compile callee")
class CallsCompiled(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.fast = torch.compile(lambda x: x.sin() + 1, backend="eager")

    def forward(self, x):
        return self.fast(self.fc(x))


@made(randn(3, 4), randn(2, 4), tags="compiled module")
def compiled_inside():
    return nn.Sequential(nn.Linear(4, 4), torch.compile(nn.Linear(4, 4), backend="eager"))


@made(randn(3, 4), randn(2, 4), tags="scripted module inside")
def jit_inside():
    inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    return nn.Sequential(nn.Linear(4, 4), torch.jit.script(inner))


@made(randn(3, 4), randn(2, 4), tags="graph module inside")
def fx_inside():
    inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    return nn.Sequential(nn.Linear(4, 4), torch.fx.symbolic_trace(inner))


@made(randn(3, 4), randn(2, 4), tags="cfx graph module inside")
def cfx_inside():
    import cfx

    inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    return nn.Sequential(nn.Linear(4, 4), cfx.symbolic_trace(inner))


@made(randn(3, 4), randn(2, 4), tags="captured module inside",
         captured="refused now; it is called by a program that is being captured")
def captured_inside():
    import cfx

    def inner(x):
        return x.relu() if x.sum() > 0 else -x

    return nn.Sequential(nn.Linear(4, 4), cfx.capture(nn.Sequential(nn.Linear(4, 4)), randn(2, 4)))


@made(randn(3, 4), randn(2, 4), -randn(2, 4), tags="scripted by cfx inside")
def cfx_script_inside():
    import cfx

    def inner(x):
        return x.relu() if x.sum() > 0 else -x

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = cfx.script(inner)

        def forward(self, x):
            return self.inner(x) + 1

    return Net()


@module(randn(2, 3, 8), randn(1, 5, 8), tags="multihead attention")
class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.att = nn.MultiheadAttention(8, 2, batch_first=True)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        return self.att(x, x, x, attn_mask=mask)[0] + self.layer(x)


@program(randn(4, 4), randn(3, 3), tags="linalg")
def solves(x):
    a = x @ x.t() + torch.eye(x.shape[0])
    l = torch.linalg.cholesky(a)
    return torch.linalg.solve(a, x), l.diagonal().log().sum(), torch.linalg.eigvalsh(a)


@program(randn(2, 5), randn(1, 7), tags="while_loop cond higher order")
def higher_order(x):
    return torch.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v.cos(), (x,))


@program(randn(8), randn(16), tags="fft")
def spectrum(x):
    return torch.fft.irfft(torch.fft.rfft(x) * 2, n=x.shape[0]), torch.stft(
        x, 4, window=torch.ones(4), return_complex=True).abs()


@program(X, randn(2, 4).requires_grad_(), tags="register_hook on tensor")
def hooks_on_tensor(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    return y.sum()


@program(X, randn(2, 4).requires_grad_(), tags="retain_grad")
def retains(x):
    y = x * 2
    y.retain_grad()
    return y.sum(), y.requires_grad, y.is_leaf
