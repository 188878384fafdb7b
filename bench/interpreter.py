"""torch.fx and cfx side by side: Interpreter and Transformer, microseconds per node, ratios.

    python bench/interpreter.py [--nodes 20000] [--repeats 3] [--json FILE]

Both libraries do the same work in one process, alternately, with the garbage collector off while
the clock runs; results are compared. Functions of torch take a microsecond or two themselves, which
"by hand", the same calls in a Python loop, shows; on integers the interpreter is all there is.
"""
import argparse
import json
import operator

import graph as graph_bench
import torch
import torch.fx

import cfx

ROOT = torch.nn.Module()
X, Y = torch.full((4,), 0.5), torch.full((4,), 0.25)


def chain_of_ints(fx, n):
    graph = fx.Graph()
    x = graph.placeholder("x")
    for _ in range(n - 2):
        x = graph.call_function(operator.neg, (x,))
    graph.output(x)
    return graph


def overriding(base, name):
    """A subclass with one step in Python that does what it did before."""

    def step(self, *args):
        return getattr(super(Own, self), name)(*args)

    Own = type("Own", (base,), {name: step})
    return Own


def interpret(fx, graph, *args, override=None):
    class_ = overriding(fx.Interpreter, override) if override else fx.Interpreter
    return class_(ROOT, graph=graph).run(*args)


def transform(fx, module, override=None):
    class_ = overriding(fx.Transformer, override) if override else fx.Transformer
    return class_(module).transform().graph


def module(fx, n):
    return fx.GraphModule(ROOT, graph_bench.build(fx, n))


def module_with_meta(fx, n):
    made = module(fx, n)
    for node in made.graph.nodes:
        node.meta.update(stack_trace="here", nn_module_stack={"a": ("a", torch.nn.ReLU)})
    return made


def by_hand(fx, graph, n):
    """The calls of graph_bench.build without an interpreter, for both libraries the same."""
    x = X
    for _ in range(n // 3 - 1):
        x = operator.mul(operator.add(torch.relu(x), 1), Y)
    return x


def run(**options):
    return lambda fx, g, n: interpret(fx, g, X, Y, **options)


ROWS = [
    # name, prepare(fx, n) -> state, work(fx, state, n) -> comparable result, budget
    ("run, integers", chain_of_ints, lambda fx, g, n: interpret(fx, g, 3), None),
    ("run, torch", graph_bench.build, run(), None),
    ("  by hand", graph_bench.build, by_hand, None),
    ("  own run_node", graph_bench.build, run(override="run_node"), None),
    ("  own call_function", graph_bench.build, run(override="call_function"), None),
    ("transform", module, lambda fx, m, n: transform(fx, m), 5),
    ("  own call_function", module, lambda fx, m, n: transform(fx, m, "call_function"), 5),
    ("  with metadata", module_with_meta, lambda fx, m, n: transform(fx, m), 5),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", help="store the figures in a file")
    options = parser.parse_args()
    figures = []
    print(f"{options.nodes} nodes, medians of {options.repeats}, microseconds per node")
    print(f"{'work':<22}{'torch.fx':>10}{'cfx':>10}{'ratio':>9}{'budget':>9}")
    for row in ROWS:
        theirs, ours = graph_bench.compare(row, options.nodes, options.repeats)
        budget = f"{row[3]}x" if row[3] else ""
        print(f"{row[0]:<22}{theirs:>10.3f}{ours:>10.3f}{theirs / ours:>8.1f}x{budget:>9}")
        figures.append({"work": row[0].strip(), "torch.fx": theirs, "cfx": ours})
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
