"""cfx.script against eager PyTorch, on the programs of programs/: called as Python, interpreted, in
C, read back from IR text where the programs are not, and pickled. Values, dtypes, shapes, types,
structure, exceptions, and what is written to arguments and buffers are the same."""
import functools
import inspect
import json
import os
import pickle
import re
import subprocess
import sys
import types
import warnings
from pathlib import Path

import cfx
import pytest

torch = pytest.importorskip("torch")

import programs  # noqa: E402
from programs import disagreement, difference, run, thaw  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
EVERY = programs.load_all()
PROGRAMS = [p for p in EVERY if not p.refused]
OURS = ("torch", "operator", "_operator", "math", "builtins", "cfx", "collections", "itertools")


def every(*, chosen=lambda program: True, among=PROGRAMS):
    found = [p for p in among if chosen(p)]
    return pytest.mark.parametrize("program", found, ids=[f"{p.topic}.{p.name}" for p in found])


@pytest.fixture(autouse=True)
def alone():
    """No warnings, and nothing that is left behind for the next test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    left = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    torch.set_grad_enabled(True)
    torch.set_autocast_enabled("cpu", False)
    assert left == (True, False), "gradients or autocast were left switched"


# ---- the programs themselves -------------------------------------------------------------------


def test_there_are_enough():
    assert len(PROGRAMS) >= 180
    assert all(len(p.calls) > 1 and p.tags for p in EVERY)
    names = [(p.topic, p.name) for p in EVERY]
    assert len(set(names)) == len(names)


@every(among=EVERY)
def test_eager(program):
    """Each call does what is declared of it, and always the same."""
    first, second = (run(program.make(), program.calls) for _ in range(2))
    written = False
    for given, one, two in zip(program.calls, first, second):
        raised = None if one.error is None else type(one.error)
        assert raised is given.raises, f"raises {one.error!r}"
        assert not disagreement(one, two)
        written |= bool(difference((given.args, given.kwargs), one.after))
    assert written == program.mutates


def functions_of(code):
    if code.co_flags & inspect.CO_OPTIMIZED:
        yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from functions_of(constant)


@pytest.mark.parametrize("topic", programs.TOPICS)
def test_every_way_is_taken(topic):
    """No line of a program is left out by all its inputs, unless it says `# never`."""
    file = str(programs.FOLDER / f"{topic}.py")
    source = Path(file).read_text()
    seen = set()

    def trace(frame, event, _):
        if frame.f_code.co_filename != file:
            return None
        seen.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for program in programs.load(topic, "_traced"):
            run(program.make(), program.calls)
    finally:
        sys.settrace(before)
    lines = {line for code in functions_of(compile(source, file, "exec"))
             for _, _, line in code.co_lines() if line}
    text = source.split("\n")
    assert not [f"{n}: {text[n - 1]}" for n in lines - seen if "# never" not in text[n - 1]]


# ---- captured ----------------------------------------------------------------------------------


@functools.cache
def eager(program):
    """What it does, and its parameters and buffers afterwards: with gradients, whatever the test
    that asks first has switched."""
    made = program.make()
    with torch.enable_grad():
        return run(made, program.calls), state_of(made)


def state_of(module):
    return dict(module.state_dict()) if isinstance(module, torch.nn.Module) else {}


def script(program):
    if not hasattr(cfx, "script"):
        pytest.skip("there is no cfx.script")
    return cfx.script(program.make())


def differences(program, got, *, exact=True, module=None):
    """What the calls gave that eager PyTorch did not; with `module`, also what is in its buffers,
    under the names that they have there."""
    want, state = eager(program)
    found = [f"call {i}: {d}" for i, (a, b) in enumerate(zip(want, got, strict=True))
             if (d := disagreement(a, b, exact, base=program.base))]
    kept = state_of(module)
    found.append(difference({k: state[k] for k in sorted(state) if k in kept},
                            {k: kept[k] for k in sorted(kept) if k in state}, path="state"))
    return "\n".join(filter(None, found))


def compare(program, got, **options):
    if found := differences(program, got, **options):
        pytest.fail(found, pytrace=False)


@pytest.fixture
def note(request, record_property):
    """Says in the summary how many programs went which way."""

    def add(way, good, total=1):
        record_property("programs", json.dumps([way, good, total]))

    return add


@every(among=EVERY, chosen=lambda p: p.refused)
def test_refused(program):
    """With an error that says so, where it is, and shows the line."""
    made = program.make()
    with pytest.raises(cfx.ScriptError) as error:
        cfx.script(made)
    message = str(error.value)
    where = re.match(rf"{program.topic}\.py:(\d+): ", message)
    assert where and program.refused in message
    code = made.forward.__code__ if isinstance(made, torch.nn.Module) else made.__code__
    assert int(where[1]) in {line for _, _, line in code.co_lines()}
    source = (programs.FOLDER / f"{program.topic}.py").read_text().split("\n")
    assert source[int(where[1]) - 1].strip() in message


@every()
def test_called(program, note):
    note("captured", 0)
    module = script(program)
    note("captured", 1, 0)
    note("called", 0)
    assert isinstance(module, cfx.GraphModule)
    module.graph.lint()
    compare(program, run(module, program.calls), module=module)
    note("called", 1, 0)


def in_order(program, given, named):
    """The arguments of a call as the inputs of the graph come."""
    made = program.make()
    signature = inspect.signature(made.forward if isinstance(made, torch.nn.Module) else made)
    bound = signature.bind(*given, **named)
    bound.apply_defaults()
    args = []
    for name, parameter in signature.parameters.items():
        value = bound.arguments[name]
        args += value if parameter.kind is parameter.VAR_POSITIONAL else [value]
    return args


def takes_names(program):
    made = program.make()
    signature = inspect.signature(made.forward if isinstance(made, torch.nn.Module) else made)
    return any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())


@every(chosen=lambda p: not takes_names(p))  # Interpreter.run takes positional arguments only
def test_interpreted(program, note):
    module = script(program)
    note("interpreted", 0)
    interpreter = cfx.Interpreter(module)
    interpreter.extra_traceback = False  # exceptions have the words that they were raised with
    compare(program, run(lambda *args, **kwargs: thaw(interpreter.run(
        *in_order(program, args, kwargs))), program.calls), module=module)
    note("interpreted", 1, 0)


@every()
def test_pickled(program, note):
    module = script(program)
    note("pickled", 0)
    again = pickle.loads(pickle.dumps(module))
    assert cfx.text(again.graph) == cfx.text(module.graph)
    compare(program, run(again, program.calls))
    note("pickled", 1, 0)


def text_of(module):
    return re.sub(r"  @ .*", "", cfx.text(module.graph))


@every()
def test_the_code_of_a_graph_gives_the_graph(program, note):
    """Captured from the code that was written of it, it is the same but for lines."""
    module = script(program)
    again = cfx.script(module)
    note("the same from their code", 0)
    assert text_of(again) == text_of(module)
    note("the same from their code", 1, 0)


@every(chosen=lambda p: not p.no_row)
def test_lowered(program, note):
    module = script(program)
    note("in C", 0)
    with torch.no_grad():
        lowered = cfx.lower(module)
        compare(program, run(lowered, program.calls), exact=False)
    note("in C", 1, 0)


@every(chosen=lambda p: p.no_row)
def test_not_lowered(program):
    """What is said to be nothing for C is refused, or is another thing there, as gradients are:
    else test_lowered has to take it."""
    module = script(program)
    try:
        lowered = cfx.lower(module)
    except cfx.LowerError:
        return
    assert differences(program, run(lowered, program.calls), exact=False)


# ---- nothing of the program stays behind -------------------------------------------------------


def nodes_of(graph):
    """All nodes, those of regions, too."""
    for node in graph.nodes:
        yield node
        regions = []
        cfx.map_aggregate((node.args, node.kwargs),
                          lambda a: regions.append(a) if isinstance(a, cfx.Graph) else None)
        for region in regions:
            yield from nodes_of(region)


def is_opaque(node, module, wraps):
    """Whether a node calls Python code that is not a library's."""
    if node.op == "call_function":
        home = getattr(node.target, "__module__", None) or "builtins"
        name = getattr(node.target, "__name__", "")
        return home.split(".")[0] not in OURS and name not in wraps
    if node.op == "call_module":
        called = module.get_submodule(node.target)
        return not type(called).__module__.startswith("torch.nn") and node.target not in wraps
    return False


@every()
def test_nothing_is_opaque(program, note):
    module = script(program)
    opaque = [n.format_node() for n in nodes_of(module.graph)
              if is_opaque(n, module, program.wraps)]
    note("opaque nodes", len(opaque), 0)
    assert not opaque


# ---- from IR text, in another process ----------------------------------------------------------

ELSEWHERE = r"""
import sys, warnings
warnings.simplefilter("ignore")
import torch, cfx
folder = sys.argv[1]
for name, given in torch.load(folder + "/programs.pt", weights_only=False).items():
    root, done = torch.nn.Module(), []
    try:
        for path, thing in given["parts"].items():
            *parents, last = path.split(".")
            at = root
            for parent in parents:
                if not hasattr(at, parent):
                    setattr(at, parent, torch.nn.Module())
                at = getattr(at, parent)
            setattr(at, last, thing)
        module = cfx.GraphModule(root, cfx.parse(given["text"]))
        for args, kwargs in given["calls"]:
            try:
                done.append(("value", module(*args, **kwargs), (args, kwargs)))
            except Exception as e:
                done.append((type(e).__name__, str(e), (args, kwargs)))
    except Exception as e:
        done = f"{type(e).__name__}: {e}"
    if not torch.is_grad_enabled():
        done = "left gradients switched off"
        torch.set_grad_enabled(True)
    torch.save(done, f"{folder}/{name}.out")
assert not any("programs" in name.split(".")[0] for name in sys.modules)
"""


def parts_of(module):
    """What the graph reads and calls, by path."""
    paths = {str(n.target) for n in nodes_of(module.graph) if n.op in ("get_attr", "call_module")}

    def find(path):
        at = module
        for name in path.split("."):
            at = getattr(at, name)
        return at

    return {path: find(path) for path in sorted(paths)}


def outcomes(done):
    """Back from what the other process wrote."""
    found = []
    for kind, value, after in done:
        if kind == "value":
            found.append(programs.Outcome(value, None, after))
        else:
            found.append(programs.Outcome(None, type(kind, (Exception,), {})(value), after))
    return found


def test_elsewhere(tmp_path, note):
    """All programs, in one process that cannot import them."""
    if not hasattr(cfx, "script"):
        pytest.skip("there is no cfx.script")
    chosen = {f"{p.topic}.{p.name}": p for p in PROGRAMS if not p.local}
    wrong, given = [], {}
    for name, program in chosen.items():
        try:
            module = cfx.script(program.make())
            given[name] = {"text": cfx.text(module.graph), "parts": parts_of(module),
                           "calls": [(c.args, c.kwargs) for c in program.calls]}
        except Exception as e:
            wrong.append(f"{name}: {type(e).__name__}: {e}")
    torch.save(given, tmp_path / "programs.pt")
    # As many threads as here: they decide in which order torch adds.
    env = dict(os.environ, PYTHONPATH=str(ROOT / "python"),
               OMP_NUM_THREADS=str(torch.get_num_threads()))
    done = subprocess.run([sys.executable, "-c", ELSEWHERE, str(tmp_path)], cwd=tmp_path, env=env,
                          capture_output=True, text=True, timeout=600)
    if done.returncode:
        wrong.append(done.stderr[-2000:])
    for name in given:
        file = tmp_path / f"{name}.out"
        got = torch.load(file, weights_only=False) if file.exists() else "was not run"
        found = got if isinstance(got, str) else differences(chosen[name], outcomes(got))
        if found:
            wrong.append(f"{name}: {found}")
    note("from text elsewhere", len(chosen) - len(wrong), len(chosen))
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
