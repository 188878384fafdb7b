"""What a program calls: scripted functions and modules, graph modules, compiled modules, custom
operators, checkpoints, autograd.Function, lazy layers, parametrized weights, layers with fast ways
of their own, packed sequences."""
import copy
import functools

import torch
import torch.utils.checkpoint
from programs import evaluating, ints, made, module, program, randn, training
from torch import nn
from torch.autograd import Function
from torch.nn import functional as F
from torch.nn.utils import parametrizations, parametrize, rnn

X = randn(3, 4).requires_grad_()


# ---- scripted by torch.jit ---------------------------------------------------------------------


@torch.jit.script
def scaled(x, n: int):
    return x * n + x.size(0)


@program((randn(3, 4), 2), (randn(5, 4), 3), (randn(1, 4), 2), tags="jit.script function")
def calls_scripted(x, n):
    return scaled(x, n).relu()


@torch.jit.script
def branches(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = -x
    return y


@program(randn(3), -randn(3), randn(5), tags="jit.script branch on data")
def scripted_branch(x):
    return branches(x) + 1


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return torch.sigmoid(self.fc(x)) * x


# Their parameters have no gradients: torch.jit rounds otherwise once it has seen some runs.


@made(randn(3, 4), randn(2, 4), randn(1, 4), tags="jit.script child")
def scripted_child():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.out = torch.jit.script(Gate()), nn.Linear(4, 2)

        def forward(self, x):
            return self.out(self.gate(x))

    return Net().requires_grad_(False)


@made(randn(3, 4), randn(2, 4), tags="jit.trace child")
def traced_child():
    traced = torch.jit.trace(Gate(), randn(3, 4), check_trace=False)
    return nn.Sequential(nn.Linear(4, 4), traced).requires_grad_(False)


class CountsInJit(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls: int = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


@made(randn(3, 4), randn(2, 4), randn(1, 4), tags="jit.script child counts")
def scripted_counter():
    counter = torch.jit.script(CountsInJit())

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.counter = counter

        def forward(self, x):
            return self.counter(self.counter(x)) + 1

    return Net()


# ---- graph modules, compiled modules -----------------------------------------------------------


@made(randn(3, 4), randn(2, 4), tags="torch.fx child shares weights")
def fx_child():
    gate = Gate()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = torch.fx.symbolic_trace(gate), gate

        def forward(self, x):
            return self.one(x) + self.two(x)

    return Net()


@made(randn(3, 4), randn(2, 4), -randn(2, 4), tags="cfx.script child branch")
def script_child():
    import cfx

    def inner(x):
        return x.relu() if x.sum() > 0 else -x

    return nn.Sequential(nn.Linear(4, 4), cfx.script(inner))


@made(randn(3, 4), randn(2, 4), randn(1, 4), tags="cfx.capture child")
def captured_child():
    import cfx

    return nn.Sequential(nn.Linear(4, 4), cfx.capture(Gate().eval(), randn(2, 4)))


@made(randn(3, 4), randn(2, 4), tags="captured child with state")
def captured_counter():
    import cfx

    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    return nn.Sequential(nn.Linear(4, 4), cfx.capture(Counts().eval(), randn(2, 4)))


@made(randn(3, 4), randn(2, 4), tags="torch.compile child module")
def compiled_child():
    return nn.Sequential(nn.Linear(4, 4), torch.compile(Gate(), backend="eager"))


@made(randn(3, 4), randn(2, 4), tags="torch.compile whole module")
def compiled_whole():
    return torch.compile(nn.Sequential(nn.Linear(4, 4), Gate()), backend="eager")


@made(randn(3, 4), randn(2, 4), tags="compile method of child")
def compiled_in_place():
    gate = Gate()
    gate.compile(backend="eager")
    return nn.Sequential(nn.Linear(4, 4), gate)


@torch.compile(backend="eager")
def compiled_helper(x, n):
    return x.sin() * n + x.shape[0]


@program((randn(3, 4), 2), (randn(5, 4), 3), tags="torch.compile decorated")
def calls_compiled(x, n):
    return compiled_helper(x, n) + 1


@torch._dynamo.disable
def kept_out(x):
    return x * 3


@program(randn(3), randn(5), tags="dynamo disable")
def calls_kept_out(x):
    return kept_out(x) + 1


# ---- operators of torch.library ----------------------------------------------------------------

if not hasattr(torch.ops.capture_callees, "swish"):
    library = torch.library.Library("capture_callees", "DEF")
    library.define("swish(Tensor x, float beta=1.0) -> Tensor")
    library.impl("swish", lambda x, beta=1.0: x * torch.sigmoid(beta * x),
                 "CompositeImplicitAutograd")
    library.define("pair(Tensor x, int n) -> (Tensor, Tensor)")
    library.impl("pair", lambda x, n: (x[:n].clone(), x[n:].clone()), "CPU")
    library.define("fill(Tensor(a!) x, Scalar v) -> ()")
    library.impl("fill", lambda x, v: [x.fill_(v), None][1], "CPU")
    library.define("total(Tensor[] xs) -> Tensor")
    library.impl("total", lambda xs: torch.stack([x.sum() for x in xs]).sum(), "CPU")

    @torch.library.custom_op("capture_callees::cube", mutates_args=())
    def cube(x: torch.Tensor) -> torch.Tensor:
        return x**3

    cube.register_autograd(lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
                           setup_context=lambda ctx, inputs, output:
                           ctx.save_for_backward(inputs[0]))  # fmt: skip


@program(randn(3), randn(5), tags="Library.define composite")
def composite_operator(x):
    return torch.ops.capture_callees.swish(x, beta=2.0) + 1


@program((randn(4, 2), 1), (randn(6, 2), 4), tags="Library.define several results")
def several_results(x, n):
    a, b = torch.ops.capture_callees.pair(x, n)
    return a.sum() - b.sum(), b.shape[0]


@program(randn(3), randn(5), tags="Library.define writes")
def writing_operator(x):
    y = x.clone()
    torch.ops.capture_callees.fill(y[:2], 2.5)
    return y + x


@program(randn(3, 2), randn(5, 2), tags="Library.define list of tensors")
def list_operator(x):
    return torch.ops.capture_callees.total([x, x[:2] * 2])


@program(X, randn(2, 4).requires_grad_(), tags="custom_op backward")
def trained_operator(x):
    return torch.ops.capture_callees.cube(x * 2)


@program(randn(3, 4), randn(5, 4), tags="aten operators called")
def calls_aten(x):
    y = torch.ops.aten.add.Tensor(x, x, alpha=2)
    spread = torch.ops.aten.var_mean.correction(y, [1], correction=0)[0]
    return spread + torch.ops.aten.relu(y).sum()


# ---- checkpoints -------------------------------------------------------------------------------


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(3)))


@module(training(X), training(randn(2, 4).requires_grad_()), tags="checkpoint_sequential")
class Sequentially(Blocks):
    def forward(self, x):
        return torch.utils.checkpoint.checkpoint_sequential(self.layers, 2, x, use_reentrant=False)


@module(training(X), training(randn(2, 4).requires_grad_()), tags="checkpoint keyword arguments")
class WithKeywords(Blocks):
    def forward(self, x):
        run = functools.partial(torch.utils.checkpoint.checkpoint, use_reentrant=False,
                                preserve_rng_state=False)
        for layer in self.layers:
            x = run(lambda v, scale, layer, shift=0: layer(v) * scale + shift, x, 2.0, layer,
                    shift=1)
        return x


@module(training(X), training(randn(2, 4).requires_grad_()), tags="checkpoint reentrant")
class Reentrant(Blocks):
    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.layers, x, use_reentrant=True)


@module(training(X), training(randn(2, 4).requires_grad_()), tags="checkpoint context_fn dict")
class WithContexts(Blocks):
    def forward(self, x):
        contexts = lambda: (torch.enable_grad(), torch.enable_grad())  # noqa: E731
        out = torch.utils.checkpoint.checkpoint(
            lambda d: {"y": self.layers(d["x"])}, {"x": x}, use_reentrant=False,
            context_fn=contexts)
        return out["y"] + 1


# ---- autograd.Function -------------------------------------------------------------------------


class Clip(Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.low, ctx.high = low, high
        ctx.mark_non_differentiable()
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ((x >= ctx.low) & (x <= ctx.high)) * 7, None, None


@program((X, -0.5, 0.5), (randn(2, 4).requires_grad_(), -1.0, 0.25), tags="Function own backward")
def clips(x, low, high):
    return Clip.apply(x, low, high) * 2


class TwoResults(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w, x.sum()

    @staticmethod
    def backward(ctx, g, h):
        x, w = ctx.saved_tensors
        return g @ w.T + h, x.T @ g * 2


@module(X, randn(5, 4).requires_grad_(), tags="Function several results and weights")
class UsesTwo(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4, 2))

    def forward(self, x):
        y, total = TwoResults.apply(x, self.w)
        return y + total


class InPlace(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 20


@program(X, randn(2, 4).requires_grad_(), tags="Function in place")
def in_place_function(x):
    y = x + 0
    return InPlace.apply(y) + y


# ---- layers ------------------------------------------------------------------------------------


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).T


@made(X, randn(2, 4).requires_grad_(), randn(1, 4), tags="parametrize own class")
def parametrized():
    layer = nn.Linear(4, 4)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    return nn.Sequential(layer, nn.ReLU())


@made(X, randn(2, 4).requires_grad_(), tags="parametrize cached")
def parametrized_cached():
    layer = nn.Linear(4, 4)
    parametrize.register_parametrization(layer, "weight", Symmetric())

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            with parametrize.cached():
                return self.layer(self.layer(x)) + self.layer.weight.sum()

    return Net()


@made(X, randn(2, 4).requires_grad_(), tags="weight_norm")
def weight_normed_layer():
    return parametrizations.weight_norm(nn.Linear(4, 3))


@made(training(X), training(randn(2, 4)), evaluating(randn(2, 4)), training(X),
      tags="spectral_norm training writes u v")
def spectral_layer():
    return parametrizations.spectral_norm(nn.Linear(4, 3))


@made(X, randn(2, 4).requires_grad_(), tags="orthogonal")
def orthogonal_layer():
    return parametrizations.orthogonal(nn.Linear(4, 4), orthogonal_map="matrix_exp")


@made(X, randn(2, 4), randn(1, 4), tags="weight_norm of hooks")
def old_weight_norm():
    return nn.Sequential(nn.utils.weight_norm(nn.Linear(4, 3)), nn.ReLU())


@made(training(X), training(randn(2, 4)), evaluating(randn(2, 4)), tags="spectral_norm of hooks")
def old_spectral_norm():
    return nn.Sequential(nn.utils.spectral_norm(nn.Linear(4, 3)), nn.ReLU())


@made(randn(3, 4), randn(2, 4), tags="pruned layer")
def pruned_layer():
    from torch.nn.utils import prune

    layer = nn.Linear(4, 4)
    prune.l1_unstructured(layer, "weight", 0.5)
    return nn.Sequential(layer, nn.ReLU())


@made(randn(3, 4), randn(2, 4), tags="lazy linear initialised")
def lazy_ready():
    net = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2))
    net(randn(1, 4))
    return net


@made(evaluating(randn(2, 3, 8)), evaluating(randn(1, 5, 8)), evaluating(randn(4, 1, 8)),
      tags="multihead attention fast way")
def fast_attention():
    return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)


@made(training(randn(2, 3, 8)), evaluating(randn(1, 5, 8)), tags="encoder without dropout")
def slow_attention():
    return nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 2,
        enable_nested_tensor=False)


@module((randn(2, 3, 8), torch.tensor([[0, 0, 1], [0, 1, 1]]).bool()),
        (randn(1, 4, 8), torch.tensor([[0, 0, 0, 1]]).bool()), tags="multihead attention masks")
class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, padding):
        n = x.shape[1]
        causal = torch.ones(n, n, dtype=torch.bool).triu(1)
        return self.attention(x, x, x, key_padding_mask=padding, attn_mask=causal)


@module((randn(2, 4, 3), ints(4, 2)), (randn(3, 5, 3), ints(5, 3, 1)), tags="packed sequence gru")
class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 4, batch_first=True)

    def forward(self, x, lengths):
        packed = rnn.pack_padded_sequence(x, lengths, batch_first=True)
        out, h = self.gru(packed)
        return rnn.pad_packed_sequence(out, batch_first=True)[0], h


@program(([randn(2, 3), randn(4, 3)],), ([randn(5, 3), randn(1, 3)],), tags="pad_sequence")
def pads_lists(xs):
    padded = rnn.pad_sequence(xs, batch_first=True, padding_value=-1.0)
    return padded, rnn.unpad_sequence(padded, torch.tensor([2, 4]), batch_first=True)[0].shape[1]


@made(randn(3, 4), randn(2, 4), tags="deep copied child used twice")
def copied_children():
    gate = Gate()
    return nn.Sequential(gate, copy.deepcopy(gate), gate)


@made(randn(2, 6), randn(3, 6), tags="module list dict by key")
def dispatches_by_key():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = nn.ModuleDict({"a": nn.Linear(6, 2), "b": nn.Linear(6, 3)})
            self.order = nn.ParameterList([nn.Parameter(torch.ones(6)) for _ in range(2)])

        def forward(self, x):
            for p in self.order:
                x = x * p
            return {name: head(x) for name, head in sorted(self.heads.items())}

    return Net()


@program((randn(2, 3), randn(3)), (randn(4, 5), randn(5)), tags="partial lambda map reduce")
def functional_style(x, w):
    steps = [functools.partial(torch.mul, other=w), torch.sigmoid, lambda v: v.sum(0)]
    return functools.reduce(lambda v, step: step(v), steps, x), list(map(torch.relu, (x, w)))


@made(randn(3, 4), randn(2, 4), tags="forward replaced on the instance")
def replaced_forward():
    net = nn.Linear(4, 4)
    plain = net.forward
    net.forward = lambda x: plain(x) * 2
    return nn.Sequential(net)


@made(randn(3, 4), randn(2, 4), tags="hooks change inputs and outputs")
def hooked_layers():
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    net[0].register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    net[0].register_forward_hook(lambda m, args, out: out + args[0])
    net[1].register_forward_hook(
        lambda m, args, kwargs, out: out - 1, with_kwargs=True)
    return net


@program((F.normalize, randn(3, 4)), (F.normalize, randn(2, 4)), tags="function as argument")
def takes_function(f, x):
    return f(x, dim=-1)
