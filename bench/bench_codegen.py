"""Python code generation against torch.fx in one process: time per node, ratio, equal output."""
import gc
import operator
import time

import torch
import torch.fx

import cfx

NODES = 40_000


def chain(lib):
    graph = lib.Graph()
    x = graph.placeholder("x")
    for _ in range(NODES // 2):
        x = graph.call_function(torch.relu, (x,))
        x = graph.call_function(operator.add, (x, 1))
    graph.output(x)
    return graph


def mixture(lib):
    graph = lib.Graph()
    x = graph.placeholder("x")
    for _ in range(NODES // 6):
        a = graph.call_module("layers.0.conv", (x,))
        b = graph.call_method("add_", (a, 1), {"alpha": 2})
        c = graph.call_function(torch.nn.functional.dropout, (b,), {"p": 0.5, "training": False})
        d = graph.get_attr("w.bias")
        e = graph.call_function(torch.cat, ([c, d],), {"dim": 1})
        x = graph.call_function(operator.getitem, (e, (slice(None), 0)))
    graph.output(x)
    return graph


def best(call, times):
    seconds = []
    for _ in range(times):
        gc.collect()
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main():
    print(f"{'graph':10} {'options':8} {'torch.fx':>12} {'cfx':>12} {'ratio':>7}   (us per node)")
    for build in (chain, mixture):
        theirs, ours = build(torch.fx), build(cfx)
        for options in ({}, {"verbose": True}):
            a, b = (graph.python_code("self", **options) for graph in (theirs, ours))
            assert (a.src, a._lineno_map) == (b.src, b._lineno_map)
            slow = best(lambda: theirs.python_code("self", **options), 3)
            fast = best(lambda: ours.python_code("self", **options), 10)
            label = "verbose" if options else "plain"
            us = 1e6 / NODES
            print(f"{build.__name__:10} {label:8} {slow * us:12.2f} {fast * us:12.3f} "
                  f"{slow / fast:6.1f}x")


main()
