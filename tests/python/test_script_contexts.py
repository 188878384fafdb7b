"""Contexts of captured programs: modes are asked for when the graph runs, and restored after an
exception; what would have its effect during capture alone is refused."""
import contextlib
import copy
import pickle

import pytest
import torch
from torch import nn

import cfx
import script_checks

MODES = (torch.enable_grad, torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu"))


def state():
    return (
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"),
        torch.get_default_dtype(), hash(torch.get_rng_state().numpy().tobytes()),
    )  # fmt: skip


def outcome(fn, make, mode):
    """What a call gives, or raises, and the modes and random numbers that it leaves."""
    torch.manual_seed(0)
    args = make()
    with torch.enable_grad(), mode():
        try:
            result = fn(*args)
        except Exception as error:
            result = type(error).__name__
        found = repr((result, args, state()))
    torch.set_default_dtype(torch.float32)
    return found


def forms(fn):
    """The captured program in all its forms."""
    module = cfx.script(fn)
    yield module
    yield cfx.Interpreter(module).run
    yield copy.deepcopy(module)
    yield pickle.loads(pickle.dumps(module))
    yield cfx.script(module)
    yield cfx.GraphModule(module, cfx.parse(cfx.text(module.graph)))


def same(fn, *makes):
    cases = [(make, mode) for make in makes for mode in MODES]
    wanted = [outcome(fn, *case) for case in cases]
    for i, captured in enumerate(forms(fn)):
        for _ in range(1 if i else 3):
            assert [outcome(captured, *case) for case in cases] == wanted


def inputs():
    return (torch.randn(3).requires_grad_(),)


def squares():
    return (torch.randn(3, 3).requires_grad_(),)


def wrong():
    return (torch.randn(3, 4).requires_grad_(),)


def singular():
    return (torch.zeros(3, 3),)


# ---- questions ---------------------------------------------------------------------------------


def asks_outside(x):
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled()


def asks_inside(x):
    with torch.no_grad():
        a = torch.is_grad_enabled()
        with torch.enable_grad():
            b = torch.is_grad_enabled()
    return a, b, torch.is_grad_enabled()


def branches_on_a_mode(x):
    if torch.is_grad_enabled():
        return x * 2
    return x * 3


def inference(x):
    with torch.inference_mode():
        a = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
        with torch.enable_grad():
            b = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    with torch.inference_mode(False):
        c = torch.is_grad_enabled()
    return a, b, c, torch.is_inference_mode_enabled()


def autocast(x):
    with torch.autocast("cpu", torch.bfloat16):
        a = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
        b = torch.is_autocast_enabled("cuda")
        with torch.autocast("cpu", enabled=False):
            c = torch.is_autocast_enabled("cpu")
    return a, b, c, torch.is_autocast_enabled("cpu")


def by_call(x):
    torch.set_grad_enabled(False)
    y, a = x * 2, torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    return y.requires_grad, a, torch.is_grad_enabled()


def made_before(x):
    mode = torch.set_grad_enabled(False)
    a = torch.is_grad_enabled()
    with mode:
        b = torch.is_grad_enabled()
    with mode:
        c = torch.is_grad_enabled()
    return a, b, c, torch.is_grad_enabled()


def one_object_twice(x):
    mode = torch.no_grad()
    with mode:
        with mode:
            a = torch.is_grad_enabled()
    return a, torch.is_grad_enabled()


def in_a_branch(x):
    with torch.no_grad():
        if x.sum() > 0:
            with torch.enable_grad():
                a = torch.is_grad_enabled()
        else:
            a = torch.is_grad_enabled()
    return a


def in_a_loop(x):
    y = x * 0
    for i in range(len(x)):
        with torch.no_grad():
            if x[i] > 1:
                break
            y = y + x[i]
        if torch.is_grad_enabled():
            y = y * 2
    return y, y.requires_grad


def mode_from_data(x):
    with torch.set_grad_enabled(bool(x.sum() > 0)):
        y = x * 2
        a = torch.is_grad_enabled()
    return y.requires_grad, a


@torch.no_grad()
def without(x):
    return x * 2, torch.is_grad_enabled()


def decorated(x):
    y, a = without(x)
    return y.requires_grad, a, torch.is_grad_enabled()


@contextlib.contextmanager
def quietly():
    with torch.no_grad():
        yield


def managed(x):
    with torch.enable_grad():
        with quietly():
            y, a = x * 2, torch.is_grad_enabled()
    return y.requires_grad, a, torch.is_grad_enabled()


def stacked(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        y, a = x * 2, torch.is_grad_enabled()
    return y.requires_grad, a, torch.is_grad_enabled()


class Quietly:
    def __enter__(self):
        self.mode = torch.no_grad()
        self.mode.__enter__()
        return self

    def __exit__(self, *details):
        self.mode.__exit__(*details)


def managed_by_a_class(x):
    with torch.enable_grad():
        with Quietly():
            y, a = x * 2, torch.is_grad_enabled()
        b = torch.is_grad_enabled()
    return y.requires_grad, a, b, torch.is_grad_enabled()


def library(x):
    weight = torch.empty(3)
    nn.init.ones_(weight)
    return weight * x, torch.is_grad_enabled()


def default_dtype(x):
    torch.set_default_dtype(torch.float64)
    y = torch.zeros(3, dtype=torch.get_default_dtype())
    torch.set_default_dtype(torch.float32)
    return y, torch.get_default_dtype()


QUESTIONS = [
    asks_outside, asks_inside, branches_on_a_mode, inference, autocast, by_call, made_before,
    one_object_twice, in_a_branch, in_a_loop, mode_from_data, decorated, managed, stacked,
    managed_by_a_class, library, default_dtype,
]  # fmt: skip


@pytest.mark.parametrize("program", QUESTIONS, ids=lambda p: p.__name__)
def test_modes_are_those_of_the_run(program):
    same(program, inputs, lambda: (-torch.rand(4).requires_grad_(),))


def test_a_context_around_fixes_the_answer():
    module = cfx.script(asks_inside)
    asked = [n for n in module.graph.nodes if n.target is torch.is_grad_enabled and n.users]
    assert sum(n in asked and any(u.op == "output" for u in n.users) for n in asked) == 1


# ---- exceptions --------------------------------------------------------------------------------


def raises_inside(x):
    with torch.no_grad():
        y = torch.linalg.inv(x)
    return y * 2


def raises_deeper(x):
    with torch.autocast("cpu"), torch.enable_grad():
        if x.numel() > 9:
            with torch.inference_mode():
                with torch.no_grad():
                    x = torch.linalg.inv(x)
        else:
            x = torch.linalg.inv(x)
    return x


def raises_in_a_loop(x):
    for i in range(len(x)):
        with torch.set_grad_enabled(bool(i > 0)):
            x = torch.linalg.inv(x) + i
    return x


def raises_by_itself(x):
    with torch.no_grad():
        if x.sum() == 0:
            raise ValueError("nothing there")
        y = x * 2
    return y


def asserts(x):
    with torch.inference_mode(), torch.autocast("cpu"):
        assert x.shape[0] == x.shape[1]
        return x + 1


RAISING = [raises_inside, raises_deeper, raises_in_a_loop, raises_by_itself, asserts]


@pytest.mark.parametrize("program", RAISING, ids=lambda p: p.__name__)
def test_modes_are_restored_after_an_exception(program):
    same(program, squares, wrong, singular)


def test_modes_are_restored_in_a_folder(tmp_path):
    cfx.script(raises_deeper).to_folder(tmp_path / "made", "Made")
    code = (tmp_path / "made" / "module.py").read_text()
    assert "with torch.autocast(" in code and "with torch.no_grad():" in code
    names: dict = {}
    exec(compile(code, "module.py", "exec"), names)
    x = torch.randn(3, 4)
    before = state()
    with pytest.raises(RuntimeError):
        names["Made"]()(x)
    assert state() == before


def test_a_subclass_of_the_interpreter():
    class Fails(cfx.Interpreter):
        def call_function(self, target, args, kwargs):
            if target is torch.ops.aten.add.Tensor or getattr(target, "__name__", "") == "mul":
                raise KeyError("no")
            return super().call_function(target, args, kwargs)

    def program(x):
        with torch.no_grad(), torch.autocast("cpu"):
            return x * 2

    before = state()
    with pytest.raises(RuntimeError):
        Fails(cfx.script(program)).run(torch.ones(2))
    assert state() == before


# ---- generated code ----------------------------------------------------------------------------


def test_contexts_are_with_blocks():
    code = cfx.script(raises_deeper).code
    assert "_set_grad_enabled" not in code and "_enter_" not in code
    assert "with torch.autocast('cpu', torch.bfloat16, True, True):" in code


def grad_graph():
    """Calls that enter and leave, by hand."""
    graph = cfx.Graph()
    x = graph.placeholder("x")
    before = graph.call_function(torch.is_grad_enabled)
    graph.call_function(torch._C._set_grad_enabled, (False,))
    return graph, x, before


def test_calls_that_do_not_nest_stay_calls():
    graph, x, before = grad_graph()
    mode = graph.call_function(torch.amp.autocast_mode._enter_autocast, ("cpu", None, True, None))
    graph.call_function(torch._C._set_grad_enabled, (before,))
    y = graph.call_function(torch.neg, (x,))
    graph.call_function(torch.amp.autocast_mode._exit_autocast, (mode,))
    graph.output(y)
    code = cfx.GraphModule({}, graph).code
    assert code.count("with ") == 1 and "_exit_autocast" in code


def test_a_call_that_is_never_left_stays_a_call():
    graph, x, before = grad_graph()
    graph.output((x, before))
    module = cfx.GraphModule({}, graph)
    assert "with " not in module.code
    with torch.enable_grad():
        assert module(1) == (1, True) and not torch.is_grad_enabled()


def test_what_was_before_may_be_used():
    graph, x, before = grad_graph()
    y = graph.call_function(torch.neg, (x,))
    graph.call_function(torch._C._set_grad_enabled, (before,))
    graph.output((y, before))
    module = cfx.GraphModule({}, graph)
    assert "with torch.no_grad():" in module.code
    x = torch.ones(1, requires_grad=True)
    for run in (module, cfx.Interpreter(module).run):
        y, before = run(x)
        assert not y.requires_grad and before is True and torch.is_grad_enabled()


def test_an_empty_block():
    def program(x, flag: bool):
        with torch.set_grad_enabled(flag):
            pass
        return x

    module = cfx.script(program)
    assert "        pass" in module.code or "flag = None" in module.code
    assert module(3, False) == 3 and torch.is_grad_enabled()


# ---- refused -----------------------------------------------------------------------------------


def refused(program, line, match):
    script_checks.refused(program, line, match)
    assert state()[:5] == (True, False, False, torch.get_autocast_dtype("cpu"), torch.float32)


@contextlib.contextmanager
def cast():
    with torch.autocast("cpu"):
        yield


def casts(x):
    with cast():
        y = x @ x
    return y


def forks(x):
    with torch.random.fork_rng():
        y = torch.rand(3)
    return y, torch.rand(3)


def on_a_device(x):
    with torch.device("meta"):
        return torch.zeros(3)


def kernel(x):
    with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
        return x * 2


def sets_what_was_asked(x):
    with torch.no_grad():
        for i in range(len(x)):
            if torch.is_grad_enabled():
                x = x + 1
            torch.set_grad_enabled(True)
    return x


REFUSED = [
    (casts, "with cast", "autocast"),
    (forks, "with torch.random", "fork_rng cannot be captured"),
    (on_a_device, "with torch.device", "torch.device cannot be captured"),
    (kernel, "with nn.attention", "sdpa_kernel cannot be captured"),
    (sets_what_was_asked, "if torch.is_grad_enabled", "mode was asked for"),
]


@pytest.mark.parametrize("program, line, match", REFUSED, ids=lambda p: getattr(p, "__name__", ""))
def test_refused(program, line, match):
    refused(program, line, match)
