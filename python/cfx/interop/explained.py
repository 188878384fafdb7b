"""What torch.compile(..., backend="cfx") has made of a model: which calls run in C, which in
PyTorch and why, and how often a run changes between them."""
import collections
import warnings
from typing import Any

from .parts import Left, Parts


class FallbackWarning(UserWarning):
    """A graph of torch.compile runs in PyTorch instead of C."""


class GraphReport:
    """One graph. `str()` of it is for people."""

    def __init__(self, kind: str, gm: Any) -> None:
        calls = ("call_function", "call_method", "call_module")
        self.kind = kind  #: "inference", "forward" or "backward"
        self.calls = sum(node.op in calls for node in gm.graph.nodes)  #: of the graph
        self.programs: list[int] = []  #: calls of each program in C
        self.left: list[Left] = []  #: calls in PyTorch
        self.crossings = 0  #: changes between C and PyTorch in one run
        self.packed = 0  #: weights that were packed, with the option "freeze"
        self.fallback: str | None = None  #: why all of it runs in PyTorch
        self.seconds = 0.0  #: what the back end took to compile it
        self.runs = 0  #: how often it has run
        self.again = 0  #: how often PyTorch ran it, too, because of second derivatives
        self._said: set[str] = set()  # warnings

    def set_parts(self, parts: Parts) -> None:
        self.programs, self.left, self.crossings = parts.programs, parts.left, parts.crossings

    def fall_back(self, why: str) -> None:
        """From now on PyTorch runs the graph; warns once."""
        self.programs, self.left, self.crossings, self.fallback = [], [], 0, why
        warnings.warn(f"the backend 'cfx' runs a graph of {self.calls} calls in PyTorch: {why}",
                      FallbackWarning, stacklevel=3)

    def compute_again(self) -> None:
        """Second derivatives are asked for: PyTorch runs the graph; warns once."""
        self.again += 1
        self._say("because derivatives of its gradients are asked for (create_graph=True)")

    def differentiate_forward(self) -> None:
        """Derivatives are carried along (forward_ad): PyTorch runs the graph; warns once."""
        self._say("while a dual_level of forward_ad is open: programs in C have no tangents")

    def _say(self, why: str) -> None:
        if why not in self._said:
            self._said.add(why)
            warnings.warn(f"the backend 'cfx' also runs a graph of {self.calls} calls in PyTorch, "
                          f"{why}", FallbackWarning, stacklevel=4)

    @property
    def in_c(self) -> int:
        """How many calls run in C."""
        return sum(self.programs)

    def __str__(self) -> str:
        head = f"{self.kind}: "
        if self.fallback is not None:
            return f"{head}{self.calls} calls in PyTorch: {self.fallback}"
        lines = [f"{head}{self.in_c} calls in C, {len(self.left)} in PyTorch, {len(self.programs)} "
                 f"programs, {self.crossings} crossings; compiled in {self.seconds * 1e3:.1f} ms, "
                 f"{self.runs} runs" + (f", {self.packed} weights packed" if self.packed else "")]
        rows = collections.Counter((left.target, left.why) for left in self.left)
        for (target, why), count in rows.most_common():
            places = sorted({x.where for x in self.left if x.target == target and x.where})
            place = f" ({places[0]})" if places else ""
            lines.append(f"  in PyTorch: {count} x {target}{place}: {why}")
        return "\n".join(lines)


class CompileReport:
    """The graphs of a model that torch.compile has compiled with the backend "cfx" so far."""

    def __init__(self, graphs: list[GraphReport]) -> None:
        self.graphs = graphs

    @property
    def in_c(self) -> int:
        return sum(graph.in_c for graph in self.graphs)

    @property
    def crossings(self) -> int:
        return sum(graph.crossings for graph in self.graphs)

    @property
    def seconds(self) -> float:
        """What the back end took, without Dynamo and AOTAutograd."""
        return sum(graph.seconds for graph in self.graphs)

    def __str__(self) -> str:
        return "\n".join(f"graph {i}, {graph}" for i, graph in enumerate(self.graphs)) or (
            "no graph has been compiled: call the model first")

    __repr__ = __str__
