"""CSEPass: common subexpression elimination, done by the C core; see src/pass/cse.c."""
import copy

from ....graph_module import GraphModule, torch
from ....text import as_cfx
from ...infra.pass_base import PassBase, PassResult

aten = torch.ops.aten
_RANDOM = "dropout _fused_dropout _standard_gamma bernoulli multinomial native_dropout normal " \
    "poisson binomial rrelu rand_like rand randint randn randperm"  # fmt: skip
rand_ops = {getattr(aten, name) for name in _RANDOM.split()}
inplace_ops = {getattr(aten, f"{n}_") for n in "add sub mul div pow lerp relu sigmoid tanh".split()}


def get_CSE_banned_ops() -> set["torch._ops.OpOverloadPacket"]:
    """Returns the operators that torch.fx's users ban: random and in-place ones. cfx never merges
    them."""
    return rand_ops | inplace_ops


class CSEPass(PassBase):
    """Merges calls with the same target and arguments, except calls to `banned_ops`."""

    def __init__(self, banned_ops: "set[torch._ops.OpOverloadPacket] | None" = None) -> None:
        self.banned_ops = set() if banned_ops is None else banned_ops

    def call(self, graph_module: GraphModule) -> PassResult:
        """Returns a new module, or the old one if there is nothing to merge. Modules of torch.fx
        are converted."""
        graph_module = as_cfx(graph_module)
        graph = copy.deepcopy(graph_module.graph)
        if not graph._cse(set(self.banned_ops), graph_module):
            return PassResult(graph_module, False)
        return PassResult(GraphModule(graph_module, copy.deepcopy(graph)), True)
