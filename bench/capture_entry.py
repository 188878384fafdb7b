"""What the checks of a captured module cost: its call, and the same graph called without checks.

    python bench/capture_entry.py [--repeats 40]

Processor time of one thread, alternately, the least of all repeats; results are compared in the
same run. Also how long guards take of the time of a capture.
"""
import argparse
import copy
import time

import torch
from torch import nn

import cfx
from cfx.capturing import module as captured


class One(nn.Module):
    """One layer, two tensors, one default."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, y, scale=2.0):
        if x.shape[0] > 1:
            x = x + 0
        return self.fc(x) + y * scale


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.norm = nn.LayerNorm(width)

    def forward(self, x, cache):
        k, v = (torch.cat([part, x], 1) for part in cache)
        h = torch.softmax(x @ k.transpose(1, 2), -1) @ v
        if h.shape[1] > 0 and k.shape[1] > 1:
            h = self.norm(self.inner(h) + x)
        return h, (k, v)


class Decoder(nn.Module):
    """24 blocks with a cache of 48 tensors, and questions about sizes inside."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(16) for _ in range(24))

    def forward(self, x, caches):
        parts = []
        for block, cache in zip(self.blocks, caches, strict=True):
            x, cache = block(x, cache)
            parts.append(cache)
        return x, parts


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [leaf for part in value for leaf in flat(part)]


def clock(work, times):
    start = time.thread_time()
    for _ in range(times):
        work()
    return (time.thread_time() - start) / times


def guards_of(model, inputs, repeats):
    """The least times of a capture, and of settling its guards."""
    plain, spent = captured.settle_guards, []

    def settle(*args):
        start = time.thread_time()
        found = plain(*args)
        spent.append(time.thread_time() - start)
        return found

    captured.settle_guards = settle
    try:
        whole = min(clock(lambda: cfx.capture(model, *inputs), 1) for _ in range(repeats))
    finally:
        captured.settle_guards = plain
    return whole, min(spent)


def measure(name, model, inputs, repeats):
    whole, guards = guards_of(model, inputs, max(3, repeats // 8))
    gm = cfx.capture(model, *inputs)
    graph = copy.deepcopy(gm.graph)
    graph.set_codegen(cfx.graph.CodeGen())
    bare = cfx.GraphModule(gm, graph)
    leaves = flat(inputs)
    for a, b in zip(flat(gm(*inputs)), flat(bare(*leaves)), strict=True):
        assert torch.equal(a, b)
    times = 2000 if len(leaves) < 5 else 50
    checked = min(clock(lambda: gm(*inputs), times) for _ in range(repeats))
    unchecked = min(clock(lambda: bare(*leaves), times) for _ in range(repeats))
    print(f"{name:12} call {checked * 1e6:8.1f} us, without checks {unchecked * 1e6:8.1f} us, "
          f"checks {(checked - unchecked) * 1e6:6.1f} us; "
          f"capture {whole * 1e3:6.1f} ms, guards {guards * 1e3:5.1f} ms, "
          f"{sum(g.place == 'entry' for g in gm.guards)} on entry, "
          f"{sum(g.place == 'graph' for g in gm.guards)} in the graph")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=40)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with torch.no_grad():
        measure("one layer", One().eval(), (torch.randn(3, 4), torch.randn(3, 4)), repeats)
        cache = [(torch.randn(2, 5, 16), torch.randn(2, 5, 16)) for _ in range(24)]
        measure("decoder", Decoder().eval(), (torch.randn(2, 1, 16), cache), repeats)


if __name__ == "__main__":
    main()
