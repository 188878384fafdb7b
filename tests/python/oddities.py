"""What the tests of capture share: programs, and what torch.fx or cfx makes of them."""
import copy

import pytest
from parity import ADDRESS

torch = pytest.importorskip("torch")

CASES = {}


def case(*inputs, concrete=None, name=None, **options):
    """Makes what the function returns a program to trace; `inputs` are for a run of the result."""

    def add(make):
        CASES[name or make.__name__] = (make, inputs, concrete, options)
        return make

    return add


def function(*inputs, **options):
    """Likewise, but the function itself is the program."""

    def add(f):
        case(*inputs, name=f.__name__, **options)(lambda: f)
        return f

    return add


def module(*inputs, **options):
    """Likewise for a class of modules."""

    def add(cls):
        case(*inputs, name=cls.__name__, **options)(cls)
        return cls

    return add


X = torch.arange(6.0).reshape(2, 3) - 2


def clean(text):
    text = ADDRESS.sub("0x", str(text)).replace("torch.fx", "cfx")
    # What torch defines is called by its full name, what cfx defines through a global.
    return text.replace("cfx._symbolic_trace._assert", "cfx__symbolic_trace__assert")


def stack_of(node):
    """The modules that a node was made in: their paths and classes."""
    stack = node.meta.get("nn_module_stack", {})
    return [(key, path, getattr(cls, "__name__", cls)) for key, (path, cls) in stack.items()]


def run(program, inputs):
    torch.manual_seed(0)
    return clean(program(*copy.deepcopy(inputs)))


def observe(fx, make, inputs, concrete, options):
    torch.manual_seed(0)
    try:
        program = make()
        tracer = fx.Tracer(**options.get("tracer", {}))
        graph = tracer.trace(program, concrete(fx) if callable(concrete) else concrete)
    except Exception as e:
        return [f"trace: {type(e).__name__}"]
    lines = [clean(graph)]
    lines += [f"{n.name}: {clean(n.type)} {n.meta.keys() - {'stack_trace'}} {stack_of(n)}"
              for n in graph.nodes]
    try:
        gm = fx.GraphModule(tracer.root, graph)
        result = run(gm, inputs)  # cfx compiles here, so here a SyntaxError shows
        gm.graph.lint()
        lines += [clean(gm.code), result, clean(sorted(gm.state_dict()))]
    except Exception as e:
        lines.append(f"run: {type(e).__name__}")
    return lines
