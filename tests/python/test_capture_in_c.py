"""Captured programs in C that keep something: what they change, what they refuse, copies, threads.
How they compute is compared for all programs of capture_programs/ in test_capture_programs.py."""
import copy
import dataclasses
import os
import pickle
import signal
import threading

import cfx
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402


class Counts(nn.Module):
    """A counter, a cache that grows, a dict of both."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.cache = torch.zeros(0, 2)
        self.sums = {"mean": torch.zeros(2), "scale": 1.0}

    def forward(self, x):
        self.calls += 1
        self.cache = torch.cat([self.cache, x])
        self.sums["mean"] = self.sums["mean"] + x.mean(0)
        self.sums["scale"] *= 2
        return {"y": x * self.calls + self.sums["mean"], "rows": self.cache.shape[0]}


def same(a, b):
    return torch.allclose(a["y"], b["y"], atol=1e-6) and a["rows"] == b["rows"]


@pytest.fixture
def pair():
    return cfx.lower(cfx.capture(Counts(), torch.ones(3, 2))), Counts()


def test_attributes_move_on(pair):
    lowered, model = pair
    for rows in (3, 5, 1, 0, 2):
        x = torch.randn(rows, 2) if rows else torch.zeros(1, 2)
        assert same(lowered(x), model(x))
    assert lowered.attributes["calls"] == model.calls == 5
    assert torch.equal(lowered.attributes["cache"], model.cache)
    assert lowered.attributes["sums"]["scale"] == 32.0
    assert list(lowered.attributes) == ["cache", "calls", "sums"]
    assert "3 attributes" in repr(lowered)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_while_another_thread_has_its_turn(pair):
    lowered, _ = pair
    lowered(torch.ones(3, 2))
    x = torch.ones(1, 2)
    with lowered._turns:  # as a thread has it that the child does not have
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)
            os._exit(int(lowered(x)["rows"] == 4))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert lowered(x)["rows"] == 4


def test_the_captured_module_and_the_lowered_one_are_apart():
    captured = cfx.capture(Counts(), torch.ones(3, 2))
    captured(torch.ones(3, 2))
    lowered = cfx.lower(captured)
    lowered(torch.ones(3, 2))
    assert captured.calls == 1
    assert lowered.attributes["calls"] == 2
    assert captured.sums["scale"] == 2.0


def test_attributes_are_assigned(pair):
    lowered, model = pair
    lowered(torch.ones(3, 2))
    lowered.attributes["calls"] = 0
    lowered.attributes.update(cache=model.cache, sums=model.sums)
    assert same(lowered(torch.ones(4, 2)), model(torch.ones(4, 2)))
    with pytest.raises(KeyError, match="changes no attribute 'call'"):
        lowered.attributes["call"] = 1
    with pytest.raises(TypeError, match="not removed"):
        del lowered.attributes["calls"]


def test_attributes_that_the_graph_is_not_for(pair):
    lowered, model = pair
    for name, value, words in (("cache", torch.zeros(2), "cache has 1 dimensions, but had 2"),
                               ("calls", 1.0, "calls is 1.0, but"),
                               ("sums", {"mean": torch.zeros(2)}, "sums has another structure")):
        before = lowered.attributes[name]
        lowered.attributes[name] = value
        with pytest.raises(cfx.CaptureError, match=words):
            lowered(torch.ones(3, 2))
        lowered.attributes[name] = before
    assert same(lowered(torch.ones(3, 2)), model(torch.ones(3, 2)))


def test_a_call_that_fails_changes_nothing(pair):
    lowered, model = pair
    lowered(torch.ones(3, 2))
    with pytest.raises(RuntimeError):
        lowered(torch.ones(3, 7))
    with pytest.raises(cfx.CaptureError, match="x has 1 dimensions, but had 2"):
        lowered(torch.ones(3))
    assert lowered.attributes["calls"] == 1
    model(torch.ones(3, 2))
    assert same(lowered(torch.ones(3, 2)), model(torch.ones(3, 2)))


@pytest.mark.parametrize("duplicate", (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))))
def test_copies_go_on_alone(pair, duplicate):
    lowered, model = pair
    lowered(torch.ones(3, 2)), model(torch.ones(3, 2))
    other = duplicate(lowered)
    lowered(torch.ones(1, 2))
    assert same(other(torch.ones(4, 2)), model(torch.ones(4, 2)))
    assert other.attributes["calls"] == 2
    assert lowered.attributes["cache"].shape[0] == 4


def test_threads_take_turns(pair):
    lowered, _ = pair
    seen = []

    def work():
        for _ in range(50):
            seen.append(lowered(torch.ones(1, 2))["rows"])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(1, 201))
    assert lowered.attributes["calls"] == 200


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = None

    def forward(self, x):
        if self.scale is None:
            self.scale = x.abs().max()
        return x / self.scale


def test_graphs_for_other_states_take_over():
    captured = cfx.capture(Lazy(), torch.ones(2))
    lowered = cfx.lower(captured)
    lowered(torch.full((2,), 4.0))
    with pytest.raises(cfx.CaptureError, match="no graph for that; let the captured module run"):
        lowered(torch.ones(2))
    captured(torch.ones(2)), captured(torch.ones(2))  # the second call captures
    lowered = cfx.lower(captured)
    assert "2 graphs" in repr(lowered)
    lowered.attributes["scale"] = None
    model = Lazy()
    for value in (4.0, 8.0, 1.0):
        x = torch.full((3,), value)
        assert torch.equal(lowered(x), model(x))
    again = copy.deepcopy(lowered)
    assert again.attributes["scale"] == 4.0
    assert torch.equal(again(x), model(x))


class Mode(nn.Module):
    def forward(self, x):
        return x + 1 if self.training else x * 2


def test_the_graph_of_the_present_mode():
    captured = cfx.capture(Mode(), torch.ones(2))
    captured.eval()
    with pytest.raises(cfx.CaptureError, match="was captured in training mode"):
        cfx.lower(captured)
    captured(torch.ones(2))
    assert torch.equal(cfx.lower(captured)(torch.ones(2)), torch.full((2,), 2.0))
    captured.train()
    assert torch.equal(cfx.lower(captured)(torch.zeros(2)), torch.ones(2))


def makes(x):
    return torch.zeros(2) + x.sum()


def test_modes_that_c_does_not_have():
    with torch.autocast("cpu", torch.bfloat16):
        captured = cfx.capture(lambda x: x @ x, torch.ones(2, 2))
    with pytest.raises(cfx.CaptureError, match="captured inside of torch.autocast"):
        cfx.lower(captured)
    torch.set_default_dtype(torch.float64)
    try:
        captured = cfx.capture(makes, torch.ones(2))
        with pytest.raises(cfx.CaptureError, match="torch.float64 as the default dtype"):
            cfx.lower(captured)
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):
        captured = cfx.capture(lambda x: x + torch.zeros(2), torch.ones(2, device="meta"))
    with pytest.raises(cfx.CaptureError, match="meta as the default device"):
        cfx.lower(captured)


def test_modes_that_a_program_in_c_is_called_in():
    captured = cfx.capture(lambda x: x @ x, torch.ones(2, 2))
    with torch.autocast("cpu", torch.bfloat16):
        captured(torch.ones(2, 2))  # captures another graph, which C leaves out
    lowered = cfx.lower(captured)
    with torch.no_grad():
        assert lowered(torch.ones(2, 2)).dtype is torch.float32
    with (torch.autocast("cpu", torch.bfloat16),
          pytest.raises(cfx.CaptureError, match="autocast is not what it was.*leave that mode")):
        lowered(torch.ones(2, 2))


def test_a_guard_that_fails_in_c():
    captured = cfx.capture(lambda x: [v * 2 for v in x.split(2)], torch.ones(6))
    lowered = cfx.lower(captured)
    assert len(lowered(torch.zeros(5))) == 3
    with pytest.raises(cfx.CaptureError, match=r"was 3 at test_capture_in_c.py:\d+"):
        lowered(torch.ones(9))


class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


def test_tensors_with_operations_of_their_own():
    lowered = cfx.lower(cfx.capture(lambda x: x * 2, torch.ones(2)))
    assert torch.equal(lowered(nn.Parameter(torch.ones(2))), torch.full((2,), 2.0))
    with pytest.raises(TypeError, match="Tagged decides itself what operators do"):
        lowered(torch.ones(2).as_subclass(Tagged))


def test_an_interpreter_moves_attributes_on():
    captured, model = cfx.capture(Counts(), torch.ones(3, 2)), Counts()
    interpreter = cfx.Interpreter(captured)
    for rows in (3, 4):
        assert same(interpreter.run(torch.ones(rows, 2)), model(torch.ones(rows, 2)))
    assert captured.calls == 2
    graph = captured.graph
    graph.owning_module = None
    with pytest.raises(cfx.CaptureError, match="has no captured module"):
        graph.process_inputs(torch.ones(3, 2))


def test_a_state_that_comes_back():
    """Graphs that are captured later know what earlier ones change: it is not a constant there."""
    captured, model = cfx.capture(Lazy(), torch.ones(2)), Lazy()
    for value in (4.0, 2.0, None, 8.0, 2.0):
        if value is None:
            captured.scale = model.scale = None
        else:
            x = torch.full((2,), value)
            assert torch.equal(captured(x), model(x))
    assert len(captured.graphs) == 2


# ---- structures --------------------------------------------------------------------------------


class Layer:
    """The keys and values of a layer, as model libraries keep them."""

    def __init__(self):
        self.keys = self.values = None

    def update(self, k, v):
        self.keys = k if self.keys is None else torch.cat([self.keys, k], -2)
        self.values = v if self.values is None else torch.cat([self.values, v], -2)
        return self.keys, self.values


class Cache:
    def __init__(self, layers):
        self.layers = [Layer() for _ in range(layers)]

    def length(self):
        return 0 if self.layers[0].keys is None else self.layers[0].keys.shape[-2]


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    cache: Cache | None = None
    past: int = 0


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(10, 4), nn.Embedding(32, 4)
        self.blocks = nn.ModuleList(nn.Linear(4, 12) for _ in range(2))
        self.head = nn.Linear(4, 10)

    def forward(self, ids, cache=None):
        cache = Cache(2) if cache is None else cache
        past, n = cache.length(), ids.shape[1]
        x = self.words(ids) + self.places(torch.arange(past, past + n))
        for layer, block in zip(cache.layers, self.blocks):
            q, k, v = block(x).chunk(3, -1)
            k, v = layer.update(k, v)
            mask = torch.ones(n, k.shape[-2]).tril(past).log()
            x = x + (q @ k.transpose(-1, -2) / 2 + mask).softmax(-1) @ v
        return Output(self.head(x), cache, past)


def test_decoding_with_a_cache_among_the_arguments():
    """The caller's cache objects grow, and results have the classes of the model's."""
    torch.manual_seed(0)
    model = Decoder().eval()
    prefill = cfx.lower(cfx.capture(model, torch.tensor([[1, 2, 3]])))
    text = torch.tensor([[4, 5, 6, 7]])
    want, got = model(text), prefill(text)
    assert type(got) is Output
    assert type(got.cache) is Cache
    example = model(torch.tensor([[1, 2]])).cache
    step = cfx.lower(cfx.capture(model, torch.tensor([[3]]), example))
    assert example.length() == 2
    cache, eager = got.cache, want.cache
    for word in (1, 2, 3):
        assert torch.allclose(got.logits, want.logits, atol=1e-6)
        want, got = model(torch.tensor([[word]]), eager), step(torch.tensor([[word]]), cache)
        assert got.cache is cache
        assert got.past == want.past
    assert cache.length() == 7
    assert torch.allclose(cache.layers[1].values, eager.layers[1].values, atol=1e-6)
