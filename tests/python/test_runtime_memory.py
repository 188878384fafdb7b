"""cfx.runtime: weights of a file leave memory once they are packed, and nobody writes to them."""
from pathlib import Path

import pytest
import torch

import cfx
import cfx.runtime


def mapped_bytes(path):
    """Of a file, that are in memory."""
    text, here, found = Path("/proc/self/smaps").read_text(), False, 0
    for line in text.splitlines():
        if not line.split()[0].endswith(":"):
            here = line.endswith(str(path))
        elif here and line.startswith("Rss:"):
            found += int(line.split()[1]) << 10
    return found


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux says what is in memory")
def test_weights_that_were_packed_leave_memory(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
                                torch.nn.Linear(1024, 1024)).eval()
    path = tmp_path / "net.cfx"
    cfx.save(cfx.capture(model, torch.ones(3, 1024)), path)
    run = cfx.runtime.load(path)
    for rows in (3, 40):  # the second plan reads them again
        x = torch.randn(rows, 1024)
        assert torch.allclose(run(x), model(x), atol=1e-4)
        assert mapped_bytes(path) < 1 << 20


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
