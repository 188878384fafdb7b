"""Profile a model node by node with an Interpreter.

    PYTHONPATH=python python examples/profiler.py
"""
import time

import torch
from torch import nn

import cfx as fx


class Profiler(fx.Interpreter):
    """Runs a module and adds up the seconds that each node takes."""

    def __init__(self, module: nn.Module):
        super().__init__(fx.symbolic_trace(module))
        self.seconds: dict[fx.Node, float] = {}
        self.runs = 0

    def run(self, *args):
        self.runs += 1
        return super().run(*args)

    def run_node(self, n: fx.Node):
        start = time.perf_counter()
        result = super().run_node(n)
        self.seconds[n] = self.seconds.get(n, 0.0) + time.perf_counter() - start
        return result

    def table(self) -> str:
        """The nodes in the order of the program, with their share of the time."""
        total = sum(self.seconds.values())
        lines = [f"{'node':<12}{'what':<30}{'ms a run':>10}{'share':>8}"]
        for node, seconds in self.seconds.items():
            what = f"{node.op} {node._pretty_print_target(node.target)}"
            each = seconds / self.runs * 1e3
            lines.append(f"{node.name:<12}{what:<30}{each:>7.3f} ms{seconds / total:>7.0%}")
        return "\n".join(lines)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(256, 1024), nn.Linear(1024, 16)

    def forward(self, x):
        return torch.softmax(self.second(torch.relu(self.first(x))), dim=-1)


if __name__ == "__main__":
    profiler = Profiler(Mlp())
    with torch.no_grad():
        for _ in range(20):
            profiler.run(torch.randn(32, 256))
    print(profiler.table())
    print(f"{profiler.runs} runs")
