"""torch.fx and cfx side by side: the graph API, microseconds per node, medians, ratios.

    python bench/graph.py [--nodes 40000] [--growth] [--json FILE]

Both libraries do the same work in one process, alternately, with the garbage collector off while
the clock runs; results are compared where they are comparable.
"""
import argparse
import copy
import gc
import json
import operator
import statistics
import sys
import time

import torch
import torch.fx

import cfx


def build(fx, n):
    """A chain of element-wise calls: relu(x), x + 1, x * y in turn."""
    graph = fx.Graph()
    call, relu, add, mul = graph.call_function, torch.relu, operator.add, operator.mul
    x = graph.placeholder("x")
    y = graph.placeholder("y")
    for _ in range(n // 3 - 1):
        x = call(relu, (x,))
        x = call(add, (x, 1))
        x = call(mul, (x, y))
    graph.output(x)
    return graph


def with_dead(fx, n):
    """The same, with every second node dead."""
    graph = fx.Graph()
    x = graph.placeholder("x")
    for _ in range(n // 2 - 1):
        graph.call_function(torch.neg, (x,))
        x = graph.call_function(torch.relu, (x,))
    graph.output(x)
    return graph


def fan_out(fx, n):
    """One node with n users."""
    graph = fx.Graph()
    x = graph.placeholder("x")
    for _ in range(n):
        graph.call_function(torch.relu, (x,))
    return graph, x


def erase_users(graph, x):
    while x.users:
        graph.erase_node(next(iter(x.users)))


def read_all(graph):
    for n in graph.nodes:
        n.op, n.target, n.args, n.kwargs, n.users, n.name, n.meta


def iterate(graph):
    for _ in graph.nodes:
        pass


def read_before(fx, n):
    """A graph whose attributes were all read once: what is made lazily is there."""
    graph = build(fx, n)
    read_all(graph)
    return graph


def assign_args(graph):
    for n in list(graph.nodes):
        if n.op == "call_function":
            n.args = n.args


ROWS = [
    # name, prepare(fx, n) -> state, work(fx, state, n) -> comparable result, budget
    ("build", lambda fx, n: None, lambda fx, s, n: build(fx, n), 20),
    ("python_code", build, lambda fx, g, n: g.python_code("self").src, 30),
    ("deepcopy", build, lambda fx, g, n: copy.deepcopy(g), 30),
    ("eliminate_dead_code", with_dead, lambda fx, g, n: g.eliminate_dead_code(), 20),
    ("lint", build, lambda fx, g, n: g.lint(), 20),
    ("str(graph)", build, lambda fx, g, n: str(g), 20),
    ("iterate", build, lambda fx, g, n: iterate(g), 1),
    ("list(g.nodes)", build, lambda fx, g, n: len(list(g.nodes)), 1),
    ("read 7 attributes", read_before, lambda fx, g, n: read_all(g), 1),
    ("  the first time", build, lambda fx, g, n: read_all(g), None),
    ("assign args", build, lambda fx, g, n: assign_args(g), None),
    ("erase n users", fan_out, lambda fx, s, n: erase_users(*s), None),
]


def timed(row, fx, n):
    _, prepare, work, _ = row
    state = prepare(fx, n)
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        result = work(fx, state, n)
        return time.perf_counter() - start, result
    finally:
        gc.enable()


def comparable(result):
    return result if isinstance(result, (str, int, bool, type(None))) else str(result)


def compare(row, n, repeats):
    times = {torch.fx: [], cfx: []}
    for _ in range(repeats):
        results = {}
        for fx in times:
            seconds, results[fx] = timed(row, fx, n)
            times[fx].append(seconds / n * 1e6)
        assert comparable(results[torch.fx]) == comparable(results[cfx]), row[0]
    return statistics.median(times[torch.fx]), statistics.median(times[cfx])


def memory(n):
    """Bytes per node: the core alone, and with every Node object alive and its args read."""
    import tracemalloc

    graph = build(cfx, n)
    core = graph._memory / n
    del graph
    gc.collect()
    tracemalloc.start()
    graph = build(cfx, n)
    alive = [(node, node.args) for node in graph.nodes]
    python = tracemalloc.get_traced_memory()[0] / n
    tracemalloc.stop()
    python -= sys.getsizeof(alive) / n + 56 + 16  # the list and the pairs themselves
    return core, core + python


def torch_memory(n):
    import tracemalloc

    gc.collect()
    tracemalloc.start()
    graph = build(torch.fx, n)
    total = tracemalloc.get_traced_memory()[0] / n
    tracemalloc.stop()
    del graph
    return total


def growth():
    print(f"\n{'nodes':>9}" + "".join(f"{row[0]:>22}" for row in ROWS[:6]) + "   (cfx, us/node)")
    for n in (1_000, 10_000, 40_000, 100_000, 1_000_000):
        cells = []
        for row in ROWS[:6]:
            runs = 5 if n <= 100_000 else 1
            cells.append(statistics.median(timed(row, cfx, n)[0] / n * 1e6 for _ in range(runs)))
        print(f"{n:>9}" + "".join(f"{cell:>22.3f}" for cell in cells))


def edits(n):
    """Memory of a graph before and after n assignments to one node's arguments."""
    graph = cfx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(torch.relu, (x,))
    before = graph._memory
    start = time.perf_counter()
    for i in range(n):
        node.args = (x, [i, "text", {"key": x}])
    seconds = time.perf_counter() - start
    print(f"{n} edits of one node: {before} bytes before, {graph._memory} after, "
          f"{seconds / n * 1e6:.2f} us each")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=40_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--growth", action="store_true", help="also cfx alone up to 10^6 nodes")
    parser.add_argument("--json", help="store the figures in a file")
    options = parser.parse_args()
    n = options.nodes
    figures = {}
    print(f"{n} nodes, medians of {options.repeats}, microseconds per node")
    print(f"{'work':<22}{'torch.fx':>10}{'cfx':>10}{'ratio':>9}{'budget':>9}")
    for row in ROWS:
        theirs, ours = compare(row, n, options.repeats)
        budget = f"{row[3]}x" if row[3] else ""
        print(f"{row[0]:<22}{theirs:>10.3f}{ours:>10.3f}{theirs / ours:>8.1f}x{budget:>9}")
        figures[row[0]] = {"torch.fx": theirs, "cfx": ours}
    core, alive = memory(n)
    print(f"memory, bytes per node: torch.fx {torch_memory(n):.0f}; cfx {core:.0f} without Node "
          f"objects (budget 256), {alive:.0f} with all alive and args read (budget 420)")
    edits(1_000_000)
    if options.growth:
        growth()
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
