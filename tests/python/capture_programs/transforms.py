"""Transforms of torch.func, and gradients inside of a model: functional_call, grad, vjp, jvp,
jacobians, hessians, vmap with its options, nested; autograd.grad, forward-mode dual numbers."""
import torch
import torch.autograd.forward_ad as fwd
from programs import made, module, program, randn, training
from torch import nn
from torch.func import (functional_call, functionalize, grad, grad_and_value, hessian, jacfwd,
                        jacrev, jvp, linearize, stack_module_state, vjp, vmap)
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 3), nn.Linear(3, 1)

    def forward(self, x):
        return self.two(self.one(x).tanh()).squeeze(-1)


@module(randn(3, 4), randn(5, 4), randn(1, 4), tags="functional_call other weights")
class Calls(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.scale = Net(), nn.Linear(4, 1)

    def forward(self, x):
        weights = {name: p * 2 for name, p in self.net.named_parameters()}
        weights["two.bias"] = self.scale(x).mean(0)
        return functional_call(self.net, weights, (x,)) + self.net(x)


@module(randn(3, 4), randn(5, 4), tags="functional_call keyword tied")
class CallsTied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
        self.b.weight = self.a.weight
        self.requires_grad_(False)

    def forward(self, x):
        inner = nn.Sequential(self.a, self.b)
        return functional_call(inner, {"0.weight": self.a.weight + 1}, (x,))


@module(training(randn(4, 4)), training(randn(6, 4)), tags="functional_call buffers training")
class CallsBuffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        state = {"running_mean": torch.zeros(4), "running_var": torch.ones(4)}
        y = functional_call(self.norm, state, (x,))
        return y, state["running_mean"]


@module(randn(3, 4), randn(5, 4), randn(1, 4), tags="grad of a loss by parameters",
        captured="guard size")
class MetaStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x):
        weights = dict(self.net.named_parameters())

        def loss(weights):
            return functional_call(self.net, weights, (x,)).square().mean()

        grads = grad(loss)(weights)
        fast = {name: w - 0.1 * grads[name] for name, w in weights.items()}
        return functional_call(self.net, fast, (x,))


def energy(x):
    return (x.sin() * x).sum()


@program(randn(3), randn(5), randn(1), tags="grad", captured="guard size")
def gradient(x):
    return grad(energy)(x) + grad(lambda v: energy(v * 2))(x)


@program(randn(3), randn(5), tags="grad_and_value aux")
def value_and_gradient(x):
    g, (value, extra) = grad_and_value(lambda v: (energy(v), v.cos()), has_aux=True)(x)
    return g, value, extra


@program((randn(3), randn(3)), (randn(5), randn(5)), tags="grad argnums")
def both_gradients(x, y):
    return grad(lambda a, b: (a * b.exp()).sum(), argnums=(0, 1))(x, y)


@program(randn(3), randn(5), tags="grad of grad")
def second_derivative(x):
    return grad(lambda v: grad(energy)(v).square().sum())(x)


@program((randn(3), randn(3)), (randn(5), randn(5)), tags="vjp")
def pulls(x, v):
    y, pull = vjp(lambda a: (a.tanh(), a * 2), x)
    return y[0], pull((v, v))[0]


@program((randn(3), randn(3)), (randn(5), randn(5)), (randn(1), randn(1)), tags="jvp")
def pushes(x, v):
    return jvp(lambda a: a.tanh() * a, (x,), (v,))


@program((randn(3), randn(3)), (randn(5), randn(5)), tags="jvp aux several")
def pushes_both(x, v):
    y, dy, aux = jvp(lambda a, b: (a * b, a.sum()), (x, v), (v, x), has_aux=True)
    return y, dy, aux


@program(randn(3), randn(5), randn(1), tags="jacfwd")
def forward_jacobian(x):
    return jacfwd(lambda v: v.sin() * v.sum())(x)


@program(randn(3), randn(5), randn(1), tags="jacrev", captured="guard size")
def reverse_jacobian(x):
    return jacrev(lambda v: v.sin() * v.sum())(x)


@program(randn(3), randn(5), tags="hessian", captured="guard arguments")
def curvature(x):
    return hessian(lambda v: (v**3).sum() * v.sum())(x)


@program((randn(3), randn(2)), (randn(4), randn(5)), tags="jacrev argnums chunk")
def mixed_jacobians(x, y):
    a, b = jacrev(lambda u, v: torch.outer(u, v).sum(0) * u.sum(), argnums=(0, 1))(x, y)
    return a, b


@program(randn(3), randn(5), tags="jacfwd of jacrev", captured="guard arguments")
def nested_jacobians(x):
    return jacfwd(jacrev(lambda v: (v.exp() * v).sum()))(x)


@program((randn(3, 2), randn(2, 3)), (randn(5, 4), randn(4, 5)), tags="vmap in_dims out_dims")
def maps_columns(a, b):
    return vmap(lambda u, v: u * 2 + v, in_dims=(0, 1), out_dims=1)(a, b)


@program((randn(3, 2), 2.0), (randn(5, 2), 3.0), tags="vmap constant argument")
def maps_with_constant(x, scale):
    return vmap(lambda row, s: row * s, in_dims=(0, None))(x, scale)


@program({"x": randn(3, 2), "w": randn(2)}, {"x": randn(5, 2), "w": randn(2)},
         tags="vmap structures")
def maps_structure(d):
    out = vmap(lambda e: {"y": e["x"] @ e["w"], "z": e["x"].sum()}, in_dims=({"x": 0, "w": None},))
    return out(d)


@program(randn(3, 2, 4), randn(5, 3, 4), randn(1, 2, 4), tags="vmap nested")
def maps_twice(x):
    return vmap(vmap(lambda row: row.softmax(-1) * row.shape[0]))(x)


@program(randn(3, 4), randn(5, 4), randn(2, 4), tags="vmap of grad")
def sample_gradients(x):
    return vmap(grad(energy))(x)


@module(randn(3, 4), randn(5, 4), tags="per sample gradients of parameters")
class SampleGradients(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x):
        weights = {name: p.detach() for name, p in self.net.named_parameters()}

        def loss(weights, row):
            return functional_call(self.net, weights, (row[None],)).square().sum()

        grads = vmap(grad(loss), in_dims=(None, 0))(weights, x)
        return grads["one.weight"].flatten(1).norm(dim=1)


@made(randn(3, 4), randn(5, 4), tags="ensemble stack_module_state")
def ensemble():
    nets = nn.ModuleList([Net() for _ in range(3)])
    base = Net()

    class Ensemble(nn.Module):
        def __init__(self):
            super().__init__()
            self.nets = nets

        def forward(self, x):
            params, buffers = stack_module_state(list(self.nets))
            one = lambda p, b: functional_call(base, (p, b), (x,))  # noqa: E731
            return vmap(one)(params, buffers)

    return Ensemble()


@program(randn(3, 4), randn(5, 4), tags="vmap randomness",
         captured="refused another one for each row")
def maps_random(x):
    return vmap(lambda row: row * 0 + torch.rand(4).sum() * 0, randomness="different")(x)


@program(randn(6, 4), randn(8, 4), tags="vmap chunk_size", captured="guard size")
def maps_in_chunks(x):
    return vmap(lambda row: row.sum() * row, chunk_size=2)(x)


@program(randn(3, 4), randn(5, 4), tags="vmap matmul outside")
def maps_matmul(x):
    w = x.T @ x
    return vmap(lambda row: (w @ row).relu() + w.sum())(x)


@program(randn(3, 4), randn(5, 4), randn(1, 4), tags="vmap index scatter where",
         captured="guard size")
def maps_indexing(x):
    def one(row):
        top = row.topk(2).indices
        return torch.where(row > row[top[1]], row, 0.0) + row.flip(0)

    return vmap(one)(x)


@program(randn(2, 5, 4), randn(3, 6, 4), tags="vmap attention")
def maps_attention(x):
    return vmap(lambda q: F.scaled_dot_product_attention(q[None], q[None], q[None])[0])(x)


@program(randn(3), -randn(4), tags="functionalize")
def functional_writes(x):
    def f(v):
        y = v.clone()
        y[0] = 1
        y.mul_(2)
        return y

    return functionalize(f)(x)


@program((randn(3), randn(3)), (randn(5), randn(5)), tags="dual numbers")
def dual_numbers(x, v):
    with fwd.dual_level():
        dual = fwd.make_dual(x, v)
        out = fwd.unpack_dual(dual.sin() * dual)
        return out.primal, out.tangent


@program(randn(3, 2), randn(5, 2), tags="autograd.grad second order")
def laplacian(x):
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        y = (x**3).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
    return g.detach(), h


@module(randn(3, 4), randn(5, 4), tags="autograd.grad of parameters of a copy")
class Influence(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        with torch.enable_grad():
            w = self.fc.weight.detach().clone().requires_grad_()
            loss = F.linear(x, w).square().sum()
            (g,) = torch.autograd.grad(loss, [w])
        return g.norm() + self.fc(x).sum()


@program(randn(3), randn(5), tags="autograd.functional", captured="guard size")
def functional_jacobian(x):
    return torch.autograd.functional.jacobian(lambda v: v.sin(), x)


@program((randn(3), randn(3)), (randn(5), randn(5)), tags="linearize",
         captured="refused linearize() traces a function")
def linearized(x, v):
    y, push = linearize(lambda a: a.sin() * 2, x)
    return y, push(v)


@program(randn(3), -randn(3), tags="grad of a branch on data", captured="guard data")
def gradient_of_branch(x):
    return grad(lambda v: (v * v).sum() if x.sum() > 0 else v.sum())(x)
