"""Properties of random graphs: texts, copies, edits, and agreement with torch.fx.

A failure names its seed: `run(program(SEED, ...), cfx).graph` makes the graph again. CFX_FULL=1
tries ten times as many.
"""
import collections.abc
import contextlib
import copy
import io
import keyword
import math
import operator
import os
import pickle
import typing
import warnings

import cfx
import pytest

torch = pytest.importorskip("torch")
import torch.fx

import random_exec
import random_values
from parity import SANITIZED, evaluate
from random_graphs import OPCODES, Histogram, Runner, program, run

SEEDS = 10_000 if os.environ.get("CFX_FULL") == "1" else 1_000
CHUNKS = 4
chunks = pytest.mark.parametrize(
    "seeds",
    [range(i, SEEDS, CHUNKS) for i in range(CHUNKS)],
    ids=[f"seeds {i} mod {CHUNKS}" for i in range(CHUNKS)],
)


@contextlib.contextmanager
def saying(seed):
    try:
        yield
    except BaseException as e:
        e.add_note(f"seed {seed}")
        raise


def test_programs_hold_everything():
    histogram = Histogram()
    for seed in range(1_000):
        histogram.add(run(program(seed, regions=True), cfx).graph)
    print(histogram)
    assert histogram.rare() == []


# ---- cfx alone


@chunks
def test_text_and_copies(seeds):
    for seed in seeds:
        with saying(seed):
            check_text_and_copies(run(program(seed, regions=True), cfx).graph)


def faults(graph):
    """What verify finds, but for odd names of parameters, which random graphs have on purpose."""
    return [text for text in graph.verify() if "cannot be the name of a parameter" not in text]


def check_text_and_copies(graph):
    text = cfx.text(graph)
    parsed = cfx.parse(text, allow=[random_values])
    for other in parsed, copy.deepcopy(graph), pickle.loads(pickle.dumps(graph)):
        assert cfx.equal(graph, other)
        assert cfx.text(other) == text
        assert str(other) == str(graph)
        assert faults(other) == []
        for shape_only in (False, True):
            hash_ = cfx.structural_hash(graph, shape_only=shape_only)
            assert hash_ == cfx.structural_hash(other, shape_only=shape_only)
    if any(node.op in OPCODES[1:5] for node in parsed.nodes):
        next(n for n in parsed.nodes if n.op in OPCODES[1:5]).target = "other" * 9
        assert not cfx.equal(graph, parsed)


@chunks
def test_edits_leave_the_graph_well_formed(seeds):
    def check(runner):
        graph = runner.stack[0] if runner.stack else runner.graph
        assert faults(graph) == []

    for seed in seeds:
        with saying(seed):
            run(program(seed, regions=True), cfx, after=check)


# ---- cfx and torch.fx
#
# What programs leave out, because torch.fx's result is one that cfx does not follow:
#   the name "None"          torch.fx lets a node have it; the generated code does not compile
#   insert_arg of a list or dict of another class
#                            torch.fx keeps that very object, so that a node's arguments can change
#                            behind its back; cfx copies it, as it does everywhere
# and what is not compared:
#   users after deepcopy     torch.fx brings them into the order of the nodes; cfx keeps their order
#   deepcopy of wild graphs  torch.fx cannot copy a node that stands before what it uses

# Programs whose generated code differs on purpose (docs/codegen.md), by what their nodes have.
CODE_DIFFERENCES = {
    "a negative base of ** is put in parentheses": lambda n: n.target is operator.pow
    and n.args and is_negative(n.args[0]),
    "a method or attribute of a number is put in parentheses": lambda n: n.args
    and type(n.args[0]) in (int, float, complex) and (n.op == "call_method" or n.target is getattr),
    "a complex number with an infinite or nan imaginary part is a call of complex": lambda n: any(
        not math.isfinite(v.imag) for v in leaves(n, complex)
    ),
    "a node that uses itself is called what it is called in the graph": lambda n: (
        n in leaves(n, cfx.Node)
    ),
    "an annotation typing.Callable[[...], ...] is written, not an error": lambda n: (
        typing.get_origin(n.type) is collections.abc.Callable
    ),
    "a statement with '# COUNTER: 1' in a string is kept": lambda n: any(
        "# COUNTER" in v for v in leaves(n, str)
    ),
    "a class or function among the arguments of a node with a line is imported": lambda n: (
        n._location is not None and any(repr(v).startswith("<") for v in leaves(n, object))
    ),
    "keywords that are no identifiers are passed in a dict": lambda n: any(
        keyword.iskeyword(name) or not name.isidentifier() for name in n.kwargs
    ),
}  # fmt: skip


def is_negative(value):
    return type(value) in (int, float, complex) and repr(value)[0] == "-"


def leaves(node, type_):
    """What the arguments of a node hold, keys and members of sets included."""
    found = []

    def collect(value):
        if isinstance(value, dict):
            value = (*value, *value.values())
        if isinstance(value, slice):
            value = (value.start, value.stop, value.step)
        if isinstance(value, (list, tuple, set, frozenset)):
            for item in value:
                collect(item)
        elif type(value) is type_ or type_ is object:
            found.append(value)

    collect((node.args, node.kwargs))
    return found


def names(nodes):
    return [node.name for node in nodes]


def table(graph):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        graph.print_tabular()
    return out.getvalue()


def code(graph):
    made = graph.python_code("self")
    objects = {**made.globals, "fx_pytree": None}  # each library has its own
    return made.src, list(objects.items()), made._lineno_map, made._prologue_start


VIEWS = {
    "str": str,
    "table": table,
    "order": lambda g: names(g.nodes),
    "backwards": lambda g: names(reversed(g.nodes)),
    "nodes": lambda g: [repr((n.op, n.target, n.args, n.kwargs, n.type, n.meta)) for n in g.nodes],
    "lines": lambda g: [n.format_node() for n in g.nodes],
    "users": lambda g: [names(n.users) for n in g.nodes],
    "inputs": lambda g: [names(n.all_input_nodes) for n in g.nodes],
    "found": lambda g: [names(g.find_nodes(op=n.op, target=n.target)) for n in g.nodes],
    "unsorted": lambda g: [
        sorted(names(g.find_nodes(op=n.op, target=n.target, sort=False))) for n in g.nodes
    ],
    "by opcode": lambda g: [
        names(g.find_nodes(op=op)) for op in OPCODES if op != "call_function"
    ],
    "lint": lambda g: g.lint(),
    "code": code,
}


def outcome(view, graph):
    try:
        return view(graph)
    except Exception as e:
        return type(e).__name__


def perform(steps, fx, wild):
    """The graph, and the number and the class of the error of a step that failed, or None."""
    runner = Runner(fx, wild)
    for i, step in enumerate(steps):
        try:
            runner.step(*step)
        except Exception as e:
            # cfx raises the base class, whose message is shown as it is written
            class_ = LookupError if isinstance(e, LookupError) else type(e)
            return runner.graph, (i, class_.__name__)
    return runner.graph, None


def check_parity(steps, wild):
    theirs, their_error = perform(steps, torch.fx, wild)
    ours, our_error = perform(steps, cfx, wild)
    assert our_error == their_error
    skip = [r for r, differs in CODE_DIFFERENCES.items() if any(map(differs, ours.nodes))]
    for name, view in VIEWS.items():
        if name != "code" or not skip:
            assert (name, outcome(view, ours)) == (name, outcome(view, theirs))
    if not wild:
        assert str(copy.deepcopy(ours)) == str(copy.deepcopy(theirs))


@chunks
@pytest.mark.parametrize("wild", [False, True], ids=["plain", "wild"])
def test_like_torch(seeds, wild):
    if SANITIZED and wild:
        pytest.skip("torch cannot raise under the sanitizer")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            with saying(seed):
                check_parity(program(seed, wild=wild), wild)


# ---- generated code and the graph it was made of


def result_of(call):
    try:
        return random_exec.image(call())
    except Exception as e:
        return f"raises {type(e).__name__}"


def run_code(graph, root, inputs):
    made = graph.python_code("self")
    scope = dict(made.globals)
    exec(compile(made.src, "<generated>", "exec"), scope)
    return scope["forward"](root, *inputs)


@chunks
def test_code_computes_what_the_graph_says(seeds):
    if SANITIZED:
        pytest.skip("torch cannot raise under the sanitizer")
    failed = 0
    for seed in seeds:
        with saying(seed):
            graph, root, inputs = random_exec.make(seed)
            assert graph.verify() == []
            expected = result_of(lambda: random_exec.interpret(graph, root, inputs))
            graph, root, inputs = random_exec.make(seed)
            assert result_of(lambda: run_code(graph, root, inputs)) == expected
            graph, root, inputs = random_exec.make(seed)
            assert result_of(lambda: evaluate(graph, *inputs, root=root)) == expected
            failed += expected.startswith("raises")
    assert failed < len(seeds) / 5  # or there would be little to compare
