"""CSEPass: what is computed twice is computed once. The C core does it; see cfx_pass_cse."""
import copy
import functools

from ...._compatibility import compatibility
from ....graph_module import GraphModule, torch
from ....node import Node
from ...infra.pass_base import PassBase, PassResult

aten = torch.ops.aten

rand_ops = {
    getattr(aten, name)
    for name in "dropout _fused_dropout _standard_gamma bernoulli multinomial native_dropout "
    "normal poisson binomial rrelu rand_like rand randint randn randperm".split()
}
inplace_ops = {
    getattr(aten, name)
    for name in "add_ sub_ mul_ div_ pow_ lerp_ relu_ sigmoid_ tanh_".split()
}

_NONE, _ALONE, _WRITES = range(3)  # cfx_effect
_STATEFUL = (
    torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._NormBase, torch.nn.RReLU,
    torch.nn.RNNBase, torch.nn.MultiheadAttention,
)  # fmt: skip
_RANDOM = (torch.nn.FractionalMaxPool2d, torch.nn.FractionalMaxPool3d)


@compatibility(is_backward_compatible=False)
def get_CSE_banned_ops() -> set["torch._ops.OpOverloadPacket"]:
    """The operators that torch.fx's users ban: random ones and some that work in place. cfx merges
    no call of such operators, banned or not."""
    return rand_ops | inplace_ops


def _module_effect(module):
    """What calling a module does. Of a class that torch does not have, nothing is known."""
    parts = list(module.modules())
    if any(getattr(part, "inplace", False) or getattr(part, "_is_impure", False) for part in parts):
        return _WRITES
    alone = any(isinstance(m, _RANDOM) or isinstance(m, _STATEFUL) and m.training for m in parts)
    return _ALONE if alone else _NONE


@compatibility(is_backward_compatible=False)
class CSEPass(PassBase):
    """Merges calls with the same target and arguments; `banned_ops` are left alone."""

    def __init__(self, banned_ops: "set[torch._ops.OpOverloadPacket] | None" = None) -> None:
        self.banned_ops = set() if banned_ops is None else banned_ops
        super().__init__()

    def _effect(self, root: GraphModule, node: Node) -> int:
        if node.op == "get_attr" or (
            getattr(node.target, "overloadpacket", node.target) in self.banned_ops
        ):
            return _ALONE
        return _module_effect(root.get_submodule(node.target)) if node.op == "call_module" else 0

    def call(self, graph_module: GraphModule) -> PassResult:
        """A new module with a graph in which nothing is computed twice; the old one is left as it
        is, and given back if there is nothing to merge. torch.fx's GraphModules are converted."""
        if not isinstance(graph_module, GraphModule):
            from ....interop import from_torch

            graph_module = from_torch(graph_module)
        graph = copy.deepcopy(graph_module.graph)
        if not graph._cse(functools.partial(self._effect, graph_module)):
            return PassResult(graph_module, False)
        return PassResult(GraphModule(graph_module, copy.deepcopy(graph)), True)
