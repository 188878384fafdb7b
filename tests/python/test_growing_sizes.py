"""Programs whose sizes grow with each run: a decoder with a cache of keys and values."""
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import cfx

WIDTH, HEADS, WORDS = 32, 4, 50


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.out, self.up = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, past_k, past_v):
        batch, tokens, _ = x.shape
        q, k, v = (y.view(batch, tokens, HEADS, -1).transpose(1, 2)
                   for y in self.qkv(self.norm(x)).split(WIDTH, -1))
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, tokens, WIDTH)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(x))), k, v


class Decoder(nn.Module):
    """Takes a token and what it has kept, and gives scores and what it keeps."""

    def __init__(self, layers=2):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(64, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, token, keys, values):
        n = keys[0].size(2)
        x = self.words(token) + self.places(torch.arange(n, n + token.size(1)))
        kept_k, kept_v = [], []
        for layer, k, v in zip(self.layers, keys, values):
            x, k, v = layer(x, k, v)
            kept_k.append(k)
            kept_v.append(v)
        return self.head(x), kept_k, kept_v


def begin(layers=2, tokens=3):
    torch.manual_seed(1)
    model = Decoder(layers).eval()
    token = torch.tensor([[7]])
    caches = [[torch.randn(1, HEADS, tokens, WIDTH // HEADS) for _ in range(layers)]
              for _ in range(2)]
    return model, token, *caches


def plans_of(program):
    return program.plans.count("plan of ")


@pytest.mark.parametrize("threads", (1, 2))
def test_a_cache_that_grows_needs_no_new_plans(threads):
    model, token, keys, values = begin()
    with torch.no_grad():
        program = cfx.compile(model, token, keys, values, threads=threads)
        wanted_k, wanted_v, counts = keys, values, []
        for step in range(40):
            token = torch.tensor([[step % WORDS]])
            found, keys, values = program(token, keys, values)
            wanted, wanted_k, wanted_v = model(token, wanted_k, wanted_v)
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
            counts.append(plans_of(program))
    torch.testing.assert_close(keys[-1], wanted_k[-1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(values[-1], wanted_v[-1], rtol=1e-4, atol=1e-5)
    assert counts[-1] == counts[10], counts
    last = program.plans.rsplit("plan of ", counts[-1] - 3)[1:]  # those that came after the first
    assert any("product" in plan for plan in last)
    assert not any(" cat " in plan for plan in last), last


class Counter(nn.Module):
    """Its cache is its own: programs keep it in a session."""

    def __init__(self):
        super().__init__()
        self.linear, self.kept = nn.Linear(WIDTH, WIDTH), torch.zeros(1, WIDTH)

    def forward(self, x):
        y = self.linear(x)
        self.kept = torch.cat([self.kept, y])
        return y + self.kept.mean(0)


def test_a_cache_of_the_module():
    torch.manual_seed(2)
    model, x = Counter().eval(), torch.randn(1, WIDTH)
    with torch.no_grad():
        program = cfx.compile(model, x, threads=1)
        counts = []
        for _ in range(30):
            x = torch.randn(1, WIDTH)
            torch.testing.assert_close(program(x), model(x), rtol=1e-4, atol=1e-5)
            counts.append(plans_of(program))
    assert counts[-1] == counts[10], counts


def test_sizes_that_all_weights_depend_on_keep_whole_plans():
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 4)).eval()
    with torch.no_grad():
        program = cfx.compile(model, torch.randn(5, WIDTH), threads=1)
        for rows in range(2, 30):
            x = torch.randn(rows, WIDTH)
            torch.testing.assert_close(program(x), model(x), rtol=1e-4, atol=1e-5)
    # no plan begins in the middle of the program: what has no plan is run without one
    assert plans_of(program) <= 8
    assert all(plan.count("product") == 2 for plan in program.plans.split("plan of ")[1:])


def test_the_benchmark_runs():
    script = Path(__file__).resolve().parents[2] / "bench/decode.py"
    done = subprocess.run([sys.executable, script, "--engines", "eager,cfx", "--tokens", "8",
                           "--layers", "1", "--width", "64", "--words", "20", "--threads", "1"],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == ["eager", "cfx"]
