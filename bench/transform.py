"""torch.fx and cfx side by side: transforms, microseconds per node, medians, ratios.

    python bench/transform.py [--repeats 5] [--growth] [--full] [--only WORD] [--json FILE]

Both libraries do the same work in one process, alternately, with the garbage collector off while
the clock runs, each time on a copy made before. The clock is that of the process, so that other
programs on the machine count less. What they give is compared in the same run: the first table
compares graphs (of split_module the base alone), the second also what the modules compute. Running
the model is not counted: ShapeProp is given what its calls gave before. In the second table
torch.fx runs once, and cfx's is the best of three.

No model of the first table has anything to fold, so split_const_subgraphs only searches there; and
split_module makes 177, 118 and 101 parts of them.

Where torch.fx is quadratic it is measured on small graphs, and what it would take for 40,000 nodes
follows from how the time grows from one size to the next ("~"); --full runs that, too. Parts that a
library does not have are left out.
"""
import argparse
import copy
import gc
import importlib
import json
import math
import statistics
import time

import torch
import torch.fx

import cfx
import models

LARGE = 40_000


# ---- graphs -------------------------------------------------------------------------------------


class Groups(torch.nn.Module):
    """n operations, four to a group: every second pair of them is the pattern to be replaced."""

    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, x, y):
        for _ in range(self.n // 4):
            x = torch.tanh(torch.neg(torch.relu(x) + y))
        return x


class Constants(torch.nn.Module):
    """n operations, a half of which depend on a parameter alone."""

    def __init__(self, n):
        super().__init__()
        self.n = n
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x, y):
        w = self.weight
        for i in range(self.n // 4):
            x = torch.relu(x) + torch.neg(w * (i % 7))
        return x * y


MODELS = {
    "ResNet-50": models.resnet50,
    "ViT-B/16": models.vit_b_16,
    "40,000 ops": lambda: models.elementwise(LARGE),
}


REAL = ("40,000 ops",)  # the others are on the meta device: nothing is computed


def vectors():
    return torch.randn(4), torch.randn(4)


def part(fx, path):
    """A module of the library, such as passes.split_module; None if it has none."""
    try:
        return importlib.import_module(f"{fx.__name__}.{path}")
    except ImportError:
        return None


def with_waste(gm):
    """The same with a second call behind every second call of a function, unused or used once."""
    graph = gm.graph
    for i, node in enumerate(list(graph.nodes)):
        if i % 2 == 0 and node.op == "call_function" and node.target is not torch._assert:
            with graph.inserting_after(node):
                graph.call_function(node.target, node.args, node.kwargs)
    return gm


# ---- what is measured: work(fx, module, inputs) -> result; shown(result) must be the same -------


def dce(fx, gm, inputs):
    gm.graph.eliminate_dead_code()
    return gm.graph


def cse(fx, gm, inputs):
    return part(fx, "passes.dialect.common.cse_pass").CSEPass()(gm).graph_module.graph


def const_fold(fx, gm, inputs):
    return part(fx, "experimental.const_fold").split_const_subgraphs(gm)


def split(fx, gm, inputs):
    each, seen = max(1, len(gm.graph.nodes) // 100), iter(range(10**9))
    result = part(fx, "passes.split_module").split_module(gm, gm, lambda node: next(seen) // each)
    return result.graph


def partition(fx, gm, inputs):
    class Support(part(fx, "passes.operator_support").OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return node.op.startswith("call") and number[node] % 4 != 0

    number = {node: i for i, node in enumerate(gm.graph.nodes)}
    partitioner = part(fx, "passes.infra.partitioner").CapabilityBasedPartitioner(
        gm, Support(), allows_single_node_partition=True)  # fmt: skip
    return [sorted(node.name for node in p.nodes) for p in partitioner.propose_partitions()]


def with_values(fx, model, inputs):
    """Traces, and makes a ShapeProp whose calls give what they once gave: running the model does
    not count, and is many times slower than what does."""
    gm, values = fx.symbolic_trace(model), []

    class Record(fx.Interpreter):
        def run_node(self, node):
            value = super().run_node(node)
            values.extend([value] if node.op.startswith("call") else [])
            return value

    class Replay(part(fx, "passes.shape_prop").ShapeProp):
        def propagate(self, *args):
            self.values = iter(values)
            return super().propagate(*args)

        def call_function(self, target, args, kwargs):
            return next(self.values)

        call_method = call_module = call_function

    Record(gm).run(*inputs)
    REPLAY[fx] = Replay
    return gm


REPLAY = {}


class Shapes:
    """What ShapeProp has written, read when the clock has stopped."""

    def __init__(self, gm):
        self.gm = gm

    def __str__(self):
        metas = ((n.name, n.meta.get("tensor_meta")) for n in self.gm.graph.nodes)
        return str([(name, tuple(getattr(meta, "shape", ()))) for name, meta in metas])


def shapes(fx, gm, inputs):
    REPLAY[fx](gm).propagate(*inputs)
    return Shapes(gm)


def pattern(x, y):
    return torch.relu(x) + y


def replacement(x, y):
    return torch.sigmoid(x) * y


def replace(fx, gm, inputs):
    replace_pattern = part(fx, "subgraph_rewriter").replace_pattern
    return len(replace_pattern(gm, pattern, replacement)), gm.graph


def traced(fx, model, inputs):
    return fx.symbolic_trace(model)


def wasteful(fx, model, inputs):
    return with_waste(fx.symbolic_trace(model))


ROWS = [
    # name, the parts it needs, prepare, work, {model: goal}
    ("eliminate_dead_code", (), wasteful, dce, dict.fromkeys(MODELS, 10)),
    ("CSEPass", ("passes.dialect.common.cse_pass",), wasteful, cse,
     dict.fromkeys(MODELS, 10)),
    ("split_const_subgraphs", ("experimental.const_fold",), traced, const_fold,
     dict.fromkeys(MODELS, 10)),
    ("split_module", ("passes.split_module",), traced, split, dict.fromkeys(MODELS, 10)),
    ("partitioner", ("passes.infra.partitioner", "passes.operator_support"), traced, partition,
     dict.fromkeys(list(MODELS)[:2], 10)),
    ("ShapeProp", ("passes.shape_prop",), with_values, shapes, dict.fromkeys(MODELS, 10)),
]  # fmt: skip
# Where torch.fx's time is not linear: name, parts, model of n operations, work, sizes for torch.fx.
STEEP = [
    ("replace_pattern", ("subgraph_rewriter",), Groups, replace, (1_000, 2_000, 4_000)),
    ("partitioner", ("passes.infra.partitioner", "passes.operator_support"), Groups, partition,
     (250, 500, 1_000)),
    ("split_const_subgraphs", ("experimental.const_fold",), Constants, const_fold,
     (1_000, 2_000, 4_000)),
]  # fmt: skip


# ---- measuring ----------------------------------------------------------------------------------


SAMPLE = 0.03  # seconds


def seconds_of(work, fx, states, inputs):
    """Seconds for the work on one of the states, and the last result."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        for state in states:
            result = work(fx, state, inputs)
        return (time.process_time() - start) / len(states), result
    finally:
        gc.enable()


def timed(row, fx, template, inputs, number):
    """Seconds for the work on a copy, and the result."""
    copies = [fx.GraphModule(template, copy.deepcopy(template.graph)) for _ in range(number)]
    for module in copies:  # what cfx makes when someone asks, and torch.fx has made by now
        assert module.code
        for node in module.graph.nodes if row[3] is shapes else ():
            assert node.meta is not None
    return seconds_of(row[3], fx, copies, inputs)


def shown(result):
    if isinstance(result, torch.nn.Module):  # names differ between the libraries here
        return [(node.op, str(node.target)) for node in result.graph.nodes if node.op != "get_attr"]
    if isinstance(result, tuple):
        return [shown(item) for item in result]
    return str(result) if not isinstance(result, list) else sorted(result)


def compare(row, model, inputs, repeats):
    """Every single time of each library, alternately; what torch.fx raises for one that fails."""
    templates = {fx: row[2](fx, model, inputs) for fx in (torch.fx, cfx)}
    times = {fx: [] for fx in templates}
    number = {}
    for fx, template in templates.items():
        template(*inputs)
        try:  # once for what is made when first asked for
            seconds = max(timed(row, fx, template, inputs, 1)[0], 1e-4)
            number[fx] = min(30, max(1, round(SAMPLE / seconds)))
        except Exception as error:
            assert fx is torch.fx, error
            times[fx] = error
    for i in range(repeats):
        views = []
        for fx in number:
            seconds, result = timed(row, fx, templates[fx], inputs, number[fx])
            times[fx].append(seconds)
            views.append(shown(result) if i == 0 else None)
        assert views[0] == views[-1], f"{row[0]}: the results differ"
    return {fx.__name__: seconds for fx, seconds in times.items()}


def missing(parts):
    return [f"{fx.__name__}.{p}" for fx in (torch.fx, cfx) for p in parts if not part(fx, p)]


def print_row(label, theirs, ours, goal):
    ratio = theirs / ours
    verdict = "" if goal is None else "ok" if ratio >= goal else "short"
    print(f"{label:<36}{theirs:>12.3f}{ours:>10.3f}{ratio:>9.1f}x{f'{goal}x' if goal else '':>6}  "
          f"{verdict}", flush=True)


def table(options, figures):
    print(f"{'medians of ' + str(options.repeats):<36}{'torch.fx':>12}{'cfx':>10}{'ratio':>10}"
          f"{'goal':>6}   (us per node)")
    for model_name, make in MODELS.items():
        model, inputs = make()
        if model_name not in REAL:  # shapes are all that the transforms need of values
            model, inputs = model.to("meta"), [x.to("meta") for x in inputs]
        nodes = len(cfx.Tracer().trace(model).nodes)
        for row in ROWS:
            label = f"{row[0]}, {model_name}"
            if model_name not in row[4] or (options.only and options.only not in label):
                continue
            if missing(row[1]):
                print(f"{label:<36} there is no {missing(row[1])[0]}")
                continue
            with torch.no_grad():
                times = compare(row, model, inputs, options.repeats)
            if isinstance(times["torch.fx"], Exception):
                why = f"{type(times['torch.fx']).__name__}: {times['torch.fx']}"
                each = statistics.median(times["cfx"]) / nodes * 1e6
                print(f"{label:<36}{'fails':>12}{each:>10.3f}   {why[:40]}")
                continue
            micro = [statistics.median(t) / nodes * 1e6 for t in times.values()]
            print_row(label, *micro, row[4][model_name])
            figures[label] = {"nodes": nodes, "seconds": times}


# ---- where torch.fx is quadratic ----------------------------------------------------------------


def once(work, fx, model):
    inputs = vectors()
    state = fx.symbolic_trace(model)
    assert state.code
    seconds, result = seconds_of(work, fx, [state], inputs)
    return seconds, result, state


def steep(options, figures):
    """torch.fx on small graphs, cfx on these and on the large one."""
    print(f"\n{'seconds':<24}{'operations':>11}{'torch.fx':>12}{'cfx':>10}{'ratio':>10}")
    for name, parts, make, work, sizes in STEEP:
        if missing(parts) or (options.only and options.only not in name):
            print(f"{name:<24} left out")
            continue
        theirs = {}
        for n in (*sizes, LARGE):
            ours, result, module = min((once(work, cfx, make(n)) for _ in range(3)),
                                       key=lambda run: run[0])  # fmt: skip
            if n in sizes or options.full:
                theirs[n], reference, other = once(work, torch.fx, make(n))
                assert shown(result) == shown(reference), f"{name}: the results differ"
                if work is const_fold:
                    check_results(result, reference)
                elif work is not partition:
                    check_results(module, other)
            growth = math.log2(theirs[sizes[2]] / theirs[sizes[1]]) if sizes[2] in theirs else 1
            guess = n not in theirs
            value = theirs[sizes[2]] * (n / sizes[2]) ** growth if guess else theirs[n]
            cell = f"{'~' if guess else ''}{value:.4g}"
            print(f"{name:<24}{n:>11}{cell:>12}{ours:>10.4f}{value / ours:>9.0f}x", flush=True)
            figures[f"{name} {n}"] = {"torch.fx": value, "cfx": ours, "extrapolated": guess}


def check_results(a, b):
    """Both modules, as they are after the work, give the same."""
    inputs = vectors()
    for module in (a, b):
        module.recompile()
    with torch.no_grad():
        assert torch.equal(a(*inputs), b(*inputs)), "the results differ"


def growth(figures):
    """cfx alone, up to a million operations: microseconds per node, one run each."""
    rows = [(name, make, work) for name, parts, make, work, _ in STEEP if not missing(parts)]
    rows += [(row[0], Groups, row[3]) for row in ROWS[:4]
             if not missing(row[1]) and row[0] not in {name for name, _, _ in rows}]
    sizes = (1_000, 10_000, 100_000, 1_000_000)
    print(f"\n{'cfx, us per node':<24}" + "".join(f"{n:>12,}" for n in sizes))
    for name, make, work in rows:
        print(f"{name:<24}", end="")
        for n in sizes:
            each = once(work, cfx, make(n))[0] / n * 1e6
            print(f"{each:>12.3f}", end="", flush=True)
            figures.setdefault(f"growth {name}", {})[n] = each
        print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--growth", action="store_true", help="also cfx alone up to 10^6 nodes")
    parser.add_argument("--full", action="store_true", help="no extrapolation: takes minutes")
    parser.add_argument("--only", help="rows with this word alone")
    parser.add_argument("--json", help="store every figure in a file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    figures = {}
    table(options, figures)
    steep(options, figures)
    if options.growth:
        growth(figures)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
