"""What cfx.script does at its limits: right results or one clear message, never anything between;
and graphs that grow with the program, not with its ways."""
import os
import pickle
import re
import types

import cfx
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import script_limits  # noqa: E402
from programs import Call, disagreement, run  # noqa: E402

FILE = script_limits.__file__
LINES = open(FILE).read().split("\n")
ENDLESS = ("endless", "endless_recursion")  # not for Python to run
INTERNAL = (SystemError, RecursionError, MemoryError, AssertionError)

pytestmark = pytest.mark.skipif(not hasattr(cfx, "script"), reason="there is no cfx.script")


def lines_of(program):
    """The lines of a program, or those of them that are marked."""
    code = getattr(program, "forward", program).__code__
    inside = {line for _, _, line in code.co_lines() if line}
    inside |= {line for constant in code.co_consts if isinstance(constant, types.CodeType)
               for _, _, line in constant.co_lines() if line}
    marked = {line for line in inside if "# here" in LINES[line - 1]}
    return marked or inside


def is_clear(error, program):
    """Whether it says which line of the program is to blame."""
    said = "\n".join([str(error), *getattr(error, "__notes__", ())])
    named = re.findall(rf'{re.escape(os.path.basename(FILE))}(?::|", line )(\d+)', said)
    return type(error) not in INTERNAL and bool({int(n) for n in named} & lines_of(program))


def graph_of(program):
    return cfx.script(program() if isinstance(program, type) else program)


@pytest.mark.parametrize("name", script_limits.CASES)
def test_right_or_refused(name):
    program, inputs = script_limits.CASES[name]
    calls = [Call(args, {}) for args in inputs]
    try:
        module = graph_of(program)
    except Exception as e:
        assert is_clear(e, program), f"{type(e).__name__}: {e}"
        return
    assert name not in ENDLESS
    module.graph.lint()
    eager = program() if isinstance(program, type) else program
    for a, b in zip(run(eager, calls), run(module, calls), strict=True):
        found = disagreement(a, b)
        assert not found, found


# ---- what has no source --------------------------------------------------------------------------


def made_of_text():
    names = {}
    exec("def f(x):\n    return x + 1\n", names)
    return names["f"]


NO_SOURCE = {
    "text": made_of_text(), "relu": torch.relu, "len": len, "int": 3, "str": "x + 1",
    "list": [1], "tensor": torch.ones(2), "graph": cfx.Graph(), "class": torch.nn.Linear,
    "type": type, "print": print,
}


@pytest.mark.parametrize("name", NO_SOURCE)
def test_no_source(name):
    """Captured, or refused with a sentence."""
    try:
        module = cfx.script(NO_SOURCE[name])
    except (TypeError, ValueError, OSError, AssertionError, cfx.ScriptError) as e:
        assert len(str(e)) > 20
    else:
        assert isinstance(module, cfx.GraphModule)


def test_two_lambdas_in_a_line():
    pair = (lambda x: x + 1, lambda x: x - 1)
    x = torch.ones(2)
    for i, f in enumerate(pair):
        try:
            module = cfx.script(f)
        except Exception as e:
            assert os.path.basename(__file__) in str(e)
        else:
            assert torch.equal(module(x), pair[i](x))


def test_source_that_changed(tmp_path):
    """The code that runs is no longer what is in the file."""
    file = tmp_path / "changing.py"
    file.write_text("def f(x):\n    return x + 1\n")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    file.write_text("def g(x):\n    return x * 1000\n")
    with pytest.raises(Exception, match="changing.py|source"):
        cfx.script(names["f"])(torch.ones(1))


# ---- how graphs grow -----------------------------------------------------------------------------


def several_ifs(n):
    lines = [f"    if x[{i % 3}] > {i}:\n        x = x + {i}" for i in range(n)]
    return "\n".join(["def f(x):", *lines, "    return x"])


def several_returns(n):
    lines = [f"    if x[{i % 3}] > {i}:\n        return x + {i}" for i in range(n, 0, -1)]
    return "\n".join(["def f(x):", *lines, "    return x"])


def several_ifs_with_returns(n):
    lines = [f"    if x[{i % 3}] > {i}:\n        if x[0] > {i}:\n            return x\n"
             f"        x = x + 1\n    else:\n        x = x - 1" for i in range(n)]
    return "\n".join(["def f(x):", *lines, "    return x"])


def several_breaks(n):
    lines = [f"        if x[{i % 3}] > {i + 5}:\n            break\n"
             f"        if x[0] < -{i + 5}:\n            continue\n        x = x + 1"
             for i in range(n)]
    return "\n".join(["def f(x):", "    for k in range(x.shape[0]):", *lines, "    return x"])


def several_functions(n):
    """Each calls the one before it on both ways."""
    lines = ["def f0(x):\n    return x + 1"]
    lines += [f"def f{i}(x):\n    y = x * 2 if x.sum() > {i} else x\n    return f{i - 1}(y)"
              for i in range(1, n + 1)]
    return "\n".join([*lines, f"def f(x):\n    return f{n}(x)"])


def several_names(n):
    """Many names, of which a branch changes one."""
    lines = [f"    v{i} = x + {i}" for i in range(n)]
    lines += [f"    if x[0] > {i}:\n        v{i} = v{i} * 2" for i in range(n)]
    return "\n".join(["def f(x):", *lines, f"    return {' + '.join(f'v{i}' for i in range(n))}"])


def several_swaps(n):
    """Lists of which each may be all before it; whether another that changes may be one, too, is
    asked of 2 ** 50 ways, or once of each."""
    lines = [f"    if x[0] > {i}:\n        a, b = b, a" for i in range(2 * n + 2)]
    lines += ["    c = [x]", "    if x[1] > 0:", "        c = [x * 2]", "    c.append(x)"]
    return "\n".join(["def f(x):", "    a, b = [x], [x + 1]", *lines, "    return a, b, c"])


def nodes_in(graph):
    count = 0
    for node in graph.nodes:
        count += 1
        regions = []
        cfx.map_aggregate((node.args, node.kwargs),
                          lambda a: regions.append(a) if isinstance(a, cfx.Graph) else None)
        count += sum(nodes_in(region) for region in regions)
    return count


def captured(source, folder, name="f"):
    file = folder / "growing.py"
    file.write_text(source)
    names = {}
    exec(compile(source, str(file), "exec"), names)
    return names[name], cfx.script(names[name])


@pytest.mark.parametrize("make", [several_ifs, several_returns, several_ifs_with_returns,
                                  several_breaks, several_functions, several_names,
                                  several_swaps],
                         ids=lambda make: make.__name__)
def test_growth(make, tmp_path):
    """Twice the program has about twice the nodes, and not twice the ways."""
    inputs = [Call((torch.tensor(v),), {}) for v in ([1.0, 2.0, 30.0], [-9.0, 4.5, 7.0], [0.0] * 3)]
    sizes = []
    for n in (12, 24):
        function, module = captured(make(n), tmp_path)
        sizes.append(nodes_in(module.graph))
        for a, b in zip(run(function, inputs), run(module, inputs), strict=True):
            assert not disagreement(a, b)
    assert sizes[1] < 3 * sizes[0], sizes


def nested_ifs(n):
    lines = [f"{'    ' * (i + 1)}if x[{i % 3}] > -{i}:" for i in range(n)]
    return "\n".join(["def f(x):", *lines, f"{'    ' * (n + 1)}x = x + 1", "    return x"])


@pytest.mark.parametrize("deep", [10, 40, 95])
def test_depth(deep, tmp_path):
    """Python allows a hundred levels of indentation; regions are nested at most as deep."""
    x = torch.tensor([1.0, 2.0, 3.0])
    try:
        function, module = captured(nested_ifs(deep), tmp_path)
    except (SyntaxError, ValueError) as e:
        assert deep > 40 and "growing.py" in str(e)
        return
    assert torch.equal(module(x), function(x))
    again = pickle.loads(pickle.dumps(module))
    assert torch.equal(again(x), function(x))


def test_capturing_leaves_the_program_alone():
    """Nothing that the program holds is changed by looking at it."""
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)
            self.register_buffer("seen", torch.zeros(2))
            self.items, self.count = [1], 0

        def forward(self, x):
            self.seen += 1
            if x.sum() > 0:
                self.seen.mul_(2)
            y = self.linear(x)
            return y + self.seen

    net = Net()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    state, mode = torch.get_rng_state(), torch.is_grad_enabled()
    cfx.script(net)
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())
    assert net.items == [1] and net.count == 0 and set(vars(net)) >= {"items", "count"}
    assert torch.equal(torch.get_rng_state(), state) and torch.is_grad_enabled() == mode
