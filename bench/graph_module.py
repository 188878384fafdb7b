"""Making a GraphModule, with torch.fx and cfx: of a tree of 126 modules, of 40,000 element-wise
calls; then its first call, which compiles the code."""
import gc
import operator
import time

import torch
import torch.fx
from torch import nn

import cfx

BLOCKS = (3, 4, 6, 3)  # as in ResNet-50


class Block(nn.Module):
    def __init__(self, first):
        super().__init__()
        for i in (1, 2, 3):
            setattr(self, f"conv{i}", nn.Identity())
            setattr(self, f"bn{i}", nn.Identity())
        self.relu = nn.Identity()
        if first:
            self.downsample = nn.Sequential(nn.Identity(), nn.Identity())


def tree():
    root = nn.Module()
    for name in ("conv1", "bn1", "relu", "maxpool", "avgpool", "fc"):
        setattr(root, name, nn.Identity())
    for i, n in enumerate(BLOCKS, 1):
        setattr(root, f"layer{i}", nn.Sequential(*(Block(j == 0) for j in range(n))))
    return root


def tree_graph(lib):
    graph = lib.Graph()
    x = graph.placeholder("x")
    for name in ("conv1", "bn1", "relu", "maxpool"):
        x = graph.call_module(name, (x,))
    for i, n in enumerate(BLOCKS, 1):
        for j in range(n):
            y, path = x, f"layer{i}.{j}"
            for part in ("conv1", "bn1", "relu", "conv2", "bn2", "relu", "conv3", "bn3"):
                x = graph.call_module(f"{path}.{part}", (x,))
            if j == 0:
                y = graph.call_module(f"{path}.downsample.0", (y,))
                y = graph.call_module(f"{path}.downsample.1", (y,))
            x = graph.call_module(f"{path}.relu", (graph.call_function(operator.add, (x, y)),))
    x = graph.call_function(torch.flatten, (graph.call_module("avgpool", (x,)), 0))
    graph.output(graph.call_module("fc", (x,)))
    return graph


def chain_graph(lib):
    graph = lib.Graph()
    x = graph.placeholder("x")
    for _ in range(40_000):
        x = graph.call_function(operator.add, (x, 1))
    graph.output(x)
    return graph


def best(call, times):
    seconds = []
    gc.collect()
    for _ in range(times):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds) * 1e6


def main():
    cases = (("tree", tree(), tree_graph, 200), ("chain", {}, chain_graph, 2))
    print(f"{'graph':8}{'nodes':>7}{'torch.fx':>14}{'cfx':>12}{'ratio':>8}   microseconds")
    for name, root, build, times in cases:
        graphs = {lib: build(lib) for lib in (torch.fx, cfx)}
        made = {lib: best(lambda: lib.GraphModule(root, graphs[lib]), times) for lib in graphs}
        theirs, ours = made.values()
        nodes = len(graphs[cfx].nodes)
        print(f"{name:8}{nodes:7}{theirs:14.0f}{ours:12.0f}{theirs / ours:8.1f}")
        modules = [lib.GraphModule(root, graph) for lib, graph in graphs.items()]
        assert modules[0].code == modules[1].code
        called = best(lambda: cfx.GraphModule(root, graphs[cfx])(torch.ones(1)), 2)
        print(f"{'':8}{'+ call':>7}{'':14}{called:12.0f}{theirs / called:8.1f}")


if __name__ == "__main__":
    main()
