"""cfx.capture against eager PyTorch, on the programs of capture_programs/: captured from the first
input, called with all of them one after the other. Results, arguments, attributes, gradients,
aliases, globals, random states and modes are as eager PyTorch leaves them, or an error says why;
nothing is silently different. And misuse: tensors of a run that escape, capture within
capture, threads."""
import gc
import pickle
import sys
import threading
import warnings

import cfx
import pytest

torch = pytest.importorskip("torch")

import capture_programs  # noqa: E402
from programs import disagreement, run  # noqa: E402
from torch import nn  # noqa: E402

PROGRAMS = capture_programs.load_all()
every = pytest.mark.parametrize("program", PROGRAMS, ids=[f"{p.topic}.{p.name}" for p in PROGRAMS])


@pytest.fixture(autouse=True)
def alone(one_thread):
    """No warnings, and modes as they were."""
    before = capture_programs.settings()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    after = capture_programs.settings()
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    for what in ("grad", "inference", "autocast", "dtype", "deterministic", "device"):
        assert before[what] == after[what], f"{what} was left switched"


# ---- the programs themselves -------------------------------------------------------------------


def test_there_are_enough():
    assert len(PROGRAMS) >= 300
    assert len({p.topic for p in PROGRAMS}) >= 10
    assert all(len(p.calls) > 1 and p.tags for p in PROGRAMS)
    names = [(p.topic, p.name) for p in PROGRAMS]
    assert len(set(names)) == len(names)


# These leave a default dtype or the grad mode switched on purpose.
_LEAVE_MODES = ("leaves_dtype", "leaves_grad")


@every
def test_eager(program):
    """Each call does what is declared of it, and always the same."""
    outcomes = []
    for _ in range(2):
        at = capture_programs.world(program)
        capture_programs.seed()
        outcomes.append(run(at.made, at.program.calls))
        capture_programs.forget(at)
        if program.name in _LEAVE_MODES:
            torch.set_grad_enabled(True)
            torch.set_default_dtype(torch.float32)
    for call, first, second in zip(program.calls, *outcomes):
        wanted = type(None) if call.raises is None else call.raises
        assert type(first.error).__name__ == wanted.__name__, first.error
        assert not disagreement(first, second)


# ---- captured ----------------------------------------------------------------------------------


def expected(program, recapture):
    if not recapture:
        return program.captured
    refused = program.captured.startswith("refused")
    return program.recaptured or (program.captured if refused else "equal")


@pytest.mark.parametrize("recapture", (False, True), ids=("once", "again"))
@every
def test_captured(program, recapture, request):
    if program.defect:
        request.applymarker(pytest.mark.xfail(reason=program.defect, strict=True))
    try:
        verdict = capture_programs.judge(program, recapture)
    finally:
        if program.name in _LEAVE_MODES:
            torch.set_grad_enabled(True)
            torch.set_default_dtype(torch.float32)
    assert not verdict.wrong, "\n".join(verdict.wrong)
    head, _, words = expected(program, recapture).partition(" ")
    if head in ("refused", "raises"):
        assert verdict.said.startswith(head), verdict.details
        assert words in verdict.said
    else:
        assert verdict.said == expected(program, recapture), "\n".join(verdict.details)
        assert not any("no line of the program" in detail for detail in verdict.details)


# ---- in C --------------------------------------------------------------------------------------

# Random numbers in C are others than torch's.
_DRAW = ("Drops", "draws_then_asks", "CheckpointReentrant")


@every
def test_in_c(program):
    """What C computes is what eager PyTorch computes, or an error says why not."""
    if program.defect or program.name in _DRAW:
        return
    try:
        verdict = capture_programs.judge_in_c(program)
    finally:
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
    assert not verdict.wrong, "\n".join(verdict.wrong)
    if program.topic == "state_in_c":
        assert verdict.said == "equal"


# ---- misuse ------------------------------------------------------------------------------------

KEPT = []


def keeps(x):
    y = x * 2
    KEPT.append(y)
    return y


class Holder:
    kept = None


@pytest.fixture
def escaped():
    """A tensor of a run that has been captured."""

    def leak(x):
        Holder.kept = x * 2
        return x

    Holder.kept = None
    try:
        cfx.capture(leak, torch.ones(2))
    except cfx.CaptureError:
        pass  # as good
    yield Holder.kept
    Holder.kept = None


USES = {
    "adds": lambda t: t + 1, "sums": lambda t: t.sum(), "prints": repr,
    "asks": lambda t: bool((t > 0).all()),
    "converts": lambda t: t.tolist(), "sizes": lambda t: t.shape[0] + 1,
    "copies": lambda t: t.clone(),
    "item": lambda t: t[0].item(), "numpy": lambda t: t.numpy(), "writes": lambda t: t.add_(1),
    "joins": lambda t: torch.cat([t, torch.ones(2)]), "iterates": list, "pickles": pickle.dumps,
    "moves": lambda t: t.to(torch.float64), "calls": lambda t: nn.Linear(2, 2)(t),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_a_tensor_that_escapes(escaped, use):
    """Either it has been put back, or using it is an error; the process goes on."""
    if escaped is None:
        return
    if use == "prints":
        USES[use](escaped)
    else:
        with pytest.raises(cfx.CaptureError):
            USES[use](escaped)


def test_a_tensor_that_escapes_into_another_capture(escaped):
    if escaped is not None:
        with pytest.raises(cfx.CaptureError):
            cfx.capture(lambda x: x + escaped, torch.ones(2))


def test_lists_outside_do_not_keep_tensors_of_a_run():
    KEPT.clear()
    with pytest.raises(cfx.CaptureError, match="KEPT"):
        cfx.capture(keeps, torch.ones(2))
    assert not KEPT


def test_capture_within_capture():
    def outer(x):
        return cfx.capture(torch.nn.ReLU(), x)(x)

    with pytest.raises(cfx.CaptureError, match="one after the other"):
        cfx.capture(outer, torch.ones(2))
    assert cfx.capture(nn.ReLU(), torch.ones(2))(-torch.ones(2)).sum() == 0


def test_a_cfx_function_within_capture():
    inner = cfx.function(lambda x: x * 2)

    def outer(x):
        return inner(x) + 1

    try:
        found = cfx.capture(outer, torch.ones(2))(torch.zeros(3))
    except cfx.CaptureError:
        return
    assert torch.equal(found, torch.ones(3))


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return self.fc(x) if x.sum() > 0 else -x


def test_threads_capture_the_same_model():
    model, found, errors = Branches(), [], []
    x = torch.ones(2, 3)
    want = [model.fc(x), x]

    def work():
        try:
            for _ in range(3):
                gm = cfx.capture(model, x)
                found.append((gm(x), gm(-x)))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(found) == 9
    assert all(torch.equal(a, want[0]) and torch.equal(b, want[1]) for a, b in found)
    assert Branches.forward.__code__.co_name == "forward"


def test_the_model_runs_in_another_thread_meanwhile():
    model, stop, wrong = Branches(), threading.Event(), []
    x = torch.ones(2, 3)
    want = model.fc(x).detach()

    def work():
        while not stop.is_set():
            got = model(x)
            if type(got) is not torch.Tensor or not torch.equal(got.detach(), want):
                wrong.append(got)
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(5):
            cfx.capture(model, x)
    finally:
        stop.set()
        thread.join()
    assert not wrong


@pytest.mark.parametrize("deed", [
    lambda x: pickle.dumps(x), lambda x: pickle.dumps({"n": x.shape[0]}) and x,
    lambda x: {x: 1}[x] * x, lambda x: {x.shape[0]: x}[x.shape[0]],
    lambda x: x.__class__(x), lambda x: x.__dict__ and x,
    lambda x: torch.Tensor._make_subclass(torch.Tensor, x),
    lambda x: x.new_tensor(x.shape), lambda x: x.untyped_storage() and x,
    lambda x: sys.getsizeof(x) and x, lambda x: gc.get_referrers(x) and x,
    lambda x: memoryview(x.numpy()), lambda x: x.share_memory_(), lambda x: x.__dlpack__(),
    lambda x: torch.utils.dlpack.from_dlpack(x), lambda x: x.to("meta").to("cpu"),
])  # fmt: skip
def test_tensors_are_put_to_odd_use(deed):
    """It works as it does without capture, or is an error of Python's; nothing ends."""
    x = torch.ones(3)
    try:
        gm = cfx.capture(deed, x)
    except Exception:
        assert torch.equal(x, torch.ones(3))
        return
    want, got = deed(torch.full((3,), 2.0)), gm(torch.full((3,), 2.0))
    if isinstance(want, torch.Tensor):
        assert type(got) is torch.Tensor
        assert torch.equal(want, got)


def test_a_capture_that_fails_leaves_nothing():
    class Fails(Branches):
        def forward(self, x):
            self.seen = super().forward(x)
            self.fc = nn.ReLU()
            raise KeyError("no")

    model = Fails()
    before = dict(model.named_modules()), model.calls.clone(), set(vars(model))
    with pytest.raises(KeyError):
        cfx.capture(model, torch.ones(2, 3))
    assert dict(model.named_modules()) == before[0]
    assert torch.equal(model.calls, before[1])
    assert set(vars(model)) == before[2]
    assert type(model) is Fails
