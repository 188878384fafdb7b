"""cfx.runtime: weights of a file leave memory once they are packed, and nobody writes to them."""
import contextlib
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import cfx
import cfx.onnx
import cfx.runtime


def mapped_bytes(path, process="self"):
    """Of a file, that are in memory."""
    text, here, found = Path(f"/proc/{process}/smaps").read_text(), False, 0
    for line in text.splitlines():
        if not line.split()[0].endswith(":"):
            here = line.endswith(str(path))
        elif here and line.startswith("Rss:"):
            found += int(line.split()[1]) << 10
    return found


def save_external(model, path):
    """Returns the file that has the weights."""
    cfx.onnx.save(model, path, external=True)
    return path.with_name(f"{path.name}.data")


SAVERS = {"net.cfx": cfx.save, "net.onnx": cfx.onnx.save, "apart.onnx": save_external}


KNOWN = pytest.mark.skipif(not Path("/proc/self/smaps").exists(),
                           reason="Linux says what is in memory")


def two_layers():
    return torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
                               torch.nn.Linear(1024, 1024)).eval()


@KNOWN
@pytest.mark.parametrize("name", SAVERS)
def test_weights_that_were_packed_leave_memory(name, tmp_path):
    model, path = two_layers(), tmp_path / name
    mapped = SAVERS[name](cfx.capture(model, torch.ones(3, 1024)), path) or path
    run = cfx.runtime.load(path)
    for rows in (3, 40):  # the second plan reads them again
        x = torch.randn(rows, 1024)
        assert torch.allclose(run(x), model(x), atol=1e-4)
        assert mapped_bytes(mapped) < 1 << 20


@KNOWN
@pytest.mark.parametrize("name", SAVERS)
def test_the_command_gives_weights_back(name, tmp_path):
    path, seen = tmp_path / name, []
    mapped = SAVERS[name](cfx.capture(two_layers(), torch.ones(3, 1024)), path) or path
    command = [sys.executable, "-m", "cfx", "bench", "--random=input_0=3,input_1=1024", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            with contextlib.suppress(OSError):  # it has just ended
                seen.append(mapped_bytes(mapped, process.pid))
            time.sleep(0.002)
        assert "runs" in process.stdout.read()
    assert len(seen) > 10 and seen[-2] < 1 << 20, seen


class GivesWeights(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(4, 4))

    def forward(self, x):
        return x @ self.w, self.w, {"turned": self.w.t(), "rows": [self.w[1:]]}


@pytest.mark.parametrize("of", [lambda x: x, lambda x: x.numpy()])
def test_a_weight_that_is_returned_may_be_written_to(of, tmp_path):
    path, x = tmp_path / "net.cfx", torch.ones(2, 4)
    with torch.no_grad():
        cfx.save(cfx.capture(GivesWeights().eval(), x), path)
    run = cfx.runtime.load(path)
    for _ in range(3):
        y, w, more = run(of(x))
        assert w.sum() == 16 and more["turned"].sum() == 16 and more["rows"][0].sum() == 12
        assert y.sum() == 32
        w[0] = more["turned"][1] = more["rows"][0][0] = 5


class Remembers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.register_buffer("seen", torch.ones(1, 2, 8))

    def forward(self, x):
        self.seen = torch.cat([self.seen, self.linear(x)], 1)
        return self.seen.mean(1), self.seen


def test_what_a_session_keeps_grows_in_place(tmp_path):
    model, path = Remembers().eval(), tmp_path / "net.cfx"
    with torch.no_grad():
        cfx.save(cfx.capture(model, torch.ones(1, 1, 8)), path)
        places, known = set(), []
        run = cfx.runtime.load(path, append=True)
        kept, other = run.session(), run.session()
        for i in range(60):
            x = torch.randn(1, 1, 8)
            wanted = model(x)
            for a, b in zip(kept(x), wanted):
                assert a.shape == b.shape and torch.allclose(a, b, atol=1e-5)
            known.append((kept(x * 0 + i)[1], model(x * 0 + i)[1]))
            places.add(known[-1][0].data_ptr())
            if i % 20 == 0:
                assert other(x)[1].shape == (1, i // 20 + 3, 8)
    assert len(places) < 12  # not 60: the room for more doubles
    for a, b in known:  # what was given stays as it was
        assert torch.allclose(a, b, atol=1e-5)


@KNOWN
def test_constants_that_are_folded_take_little_memory():
    """The runtime that computes them, with the memory it keeps, is one for all."""
    graph = cfx.Graph()
    y = graph.placeholder("x")
    for i in range(1000):
        full = graph.call_function(torch.full, ((2,), float(i)))
        y = graph.call_function(torch.add, (y, full))
    graph.output(y)
    module = cfx.GraphModule(torch.nn.Module(), graph)
    program = cfx.lower(module)
    before = mapped_bytes("[heap]")
    program._freeze(None, False, None, "float32", False)
    assert mapped_bytes("[heap]") - before < 12 << 20  # not 40 KB for each
    assert torch.allclose(program(torch.zeros(2)), torch.full((2,), 999 * 500.0))
