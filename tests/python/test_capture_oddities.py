"""Strange but legal programs: traced by torch.fx and by cfx, with the same graph, code and results,
or the same exception."""
import threading
import warnings

import pytest

import cfx

torch = pytest.importorskip("torch")
import oddities_functions  # noqa: E402, F401
import oddities_modules  # noqa: E402
import oddities_proxies  # noqa: E402, F401
import torch.fx as torch_fx  # noqa: E402
from oddities import CASES, X, observe  # noqa: E402
from parity import same  # noqa: E402

# Where torch.fx fails, or gives a graph that cannot run, and cfx does not.
MORE = {"a_cached_function", "calls_compiled", "CompiledInside", "keywords_of_python",
        "keywords_that_are_no_names"}  # fmt: skip
# Where torch.fx gives a graph that cannot run, and cfx refuses to trace.
SOONER = {"deep_copies"}


def failed(lines):
    return any(line.startswith(("trace: ", "run: ")) for line in lines)


@pytest.mark.parametrize("name", CASES)
def test_same(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = (observe(fx, *CASES[name]) for fx in (torch_fx, cfx))
    if name in MORE:
        assert failed(theirs) and not failed(ours)
    elif name in SOONER:
        assert failed(theirs) and ours == ["trace: RuntimeError"]
    else:
        assert ours == theirs


def test_most_programs_can_be_traced():
    """So that the test above does not just compare exceptions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        good = [not failed(observe(cfx, *CASES[name])) for name in list(CASES)[::5]]
    assert len(CASES) > 300 and sum(good) > 0.5 * len(good)


# ---- around a trace -----------------------------------------------------------------------------


@same
def test_a_tracer_is_used_again(fx, show):
    tracer = fx.Tracer()
    for program in (oddities_modules.Nested(), lambda x: x + 1, oddities_modules.Attributes()):
        graph = tracer.trace(program)
        show(str(graph), graph is tracer.graph)


def test_a_trace_inside_a_trace():
    """torch.fx cannot call the inner one, which is no part of the outer root."""

    def outer(x):
        inner = cfx.symbolic_trace(lambda y: y.relu() + 1)
        assert [n.name for n in inner.graph.nodes] == ["y", "relu", "add", "output"]
        return inner.forward(x) * 2

    assert cfx.symbolic_trace(outer)(X).equal((X.relu() + 1) * 2)


@same
def test_a_proxy_outlives_its_trace(fx, show):
    kept = []

    def program(x):
        kept.append(x)
        return x + 1

    graph = fx.Tracer().trace(program)
    show(str((kept[0] * 2).node.name), len(graph.nodes), str(graph))


@same
def test_proxies_of_two_traces(fx, show):
    kept = []
    fx.Tracer().trace(lambda x: kept.append(x))
    show.error(lambda: fx.Tracer().trace(lambda x: x + kept[0]).lint())


@same
def test_nothing_is_left_behind(fx, show):
    class Fails(torch.nn.Module):
        def forward(self, x):
            raise KeyError

    call, getattr_ = torch.nn.Module.__call__, torch.nn.Module.__getattr__
    codes = call.__code__, getattr_.__code__
    show.error(lambda: fx.symbolic_trace(torch.nn.Sequential(Fails())))
    show(torch.nn.Module.__call__ is call, torch.nn.Module.__getattr__ is getattr_)
    show((call.__code__, getattr_.__code__) == codes, str(torch.nn.ReLU()(X)))
    show(oddities_functions.len is len if hasattr(oddities_functions, "len") else True)


def test_modules_run_in_other_threads_during_a_trace():
    """torch.fx's hooks stop them."""
    model, results = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.ReLU()), []

    def program(x):
        thread = threading.Thread(target=lambda: results.append(model(X)))
        thread.start()
        thread.join()
        return x + 1

    graph = cfx.Tracer().trace(program)
    assert len(graph.nodes) == 3 and results[0].equal(torch.relu(X))


def test_two_threads_trace_at_once():
    expected = str(cfx.symbolic_trace(oddities_modules.Nested()).graph)
    seen = []

    def trace():
        for _ in range(5):
            seen.append(str(cfx.symbolic_trace(oddities_modules.Nested()).graph))

    threads = [threading.Thread(target=trace) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [expected] * 20


@same
def test_stack_traces(fx, show):
    """Of the user's frames; torch.fx adds its own and torch's."""

    class Located(fx.Tracer):
        record_stack_traces = True

    for node in Located().trace(oddities_modules.Nested()).nodes:
        frames = (node.stack_trace or "").strip().split("File ")[1:]
        show(node.name, [frame.strip() for frame in frames if "site-packages" not in frame])


def test_a_list_that_holds_itself():
    """torch.fx ends the process."""
    items = []
    items.append(items)
    with pytest.raises(RecursionError):
        cfx.Tracer().trace(lambda x: oddities_functions.plain_wrapped(x, items))


def test_a_module_of_functions_is_wrapped():
    """torch.fx's generated code spoils every later trace here."""
    functional = torch.nn.functional
    tracer = cfx.Tracer(autowrap_modules=(functional,))
    graph = tracer.trace(lambda x: functional.relu(x) + functional.pad(x, (0, 0)))
    assert cfx.GraphModule(tracer.root, graph)(X).equal(torch.relu(X) + X)
    assert cfx.symbolic_trace(lambda x: x + 1)(X).equal(X + 1)
