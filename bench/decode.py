"""Milliseconds a token of a decoder whose cache of keys and values grows: eager PyTorch, ONNX
Runtime, cfx (which may append to the caches in place), a session of cfx.runtime that keeps them.

    python bench/decode.py [--tokens 400] [--layers 12] [--width 768] [--words 50257] [--threads 2]
                           [--engines eager,ORT,cfx,append,session] [--peers DIR]

Each call takes one token and the caches that the last call gave, of batch 1, as GPT-2's sizes have
them; weights are random. Printed for each engine are the median of each quarter of the tokens, and
the weights' bytes over the last of them as a share of the rate at which this machine reads memory.
Engines run one after the other; their first results are compared.
"""
import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python")]
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

CLOSE = 1e-3
BEGIN = 4      # entries of the first cache
READ = 1 << 27  # floats that are summed to see how fast memory is


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.width = heads, width
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, past_k, past_v):
        batch, tokens, width = x.shape
        q, k, v = (y.view(batch, tokens, self.heads, -1).transpose(1, 2)
                   for y in self.qkv(self.norm1(x)).split(width, -1))
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")), k, v


class Decoder(nn.Module):
    def __init__(self, layers, width, words, places):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(places, width)
        self.layers = nn.ModuleList(Layer(width, width // 64) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, token, keys, values):
        n = keys[0].size(2)
        x = self.words(token) + self.places(torch.arange(n, n + token.size(1)))
        kept_k, kept_v = [], []
        for layer, k, v in zip(self.layers, keys, values):
            x, k, v = layer(x, k, v)
            kept_k.append(k)
            kept_v.append(v)
        return self.head(self.norm(x)), kept_k, kept_v


def by_eager(model, first, options):
    return model


def by_cfx(model, first, options):
    import cfx

    return cfx.compile(model, *first, threads=options.threads)


def by_cfx_append(model, first, options):
    """Caches lie in memory with room for more."""
    import cfx

    return cfx.compile(model, *first, threads=options.threads, append=True)


class Keeping(nn.Module):
    """The caches are the module's own: a session keeps them."""

    def __init__(self, model, keys, values):
        super().__init__()
        self.model = model
        for i, (k, v) in enumerate(zip(keys, values)):
            self.register_buffer(f"k{i}", k)
            self.register_buffer(f"v{i}", v)

    def forward(self, token):
        count = len(self.model.layers)
        keys, values = ([getattr(self, f"{one}{i}") for i in range(count)] for one in "kv")
        scores, keys, values = self.model(token, keys, values)
        for i, (k, v) in enumerate(zip(keys, values)):
            setattr(self, f"k{i}", k)
            setattr(self, f"v{i}", v)
        return scores


def by_session(model, first, options):
    """A file, whose session has the caches."""
    import cfx
    import cfx.runtime

    with tempfile.TemporaryDirectory() as folder:
        cfx.save(cfx.capture(Keeping(model, *first[1:]).eval(), first[0]), f"{folder}/model.cfx")
        loaded = cfx.runtime.load(f"{folder}/model.cfx", threads=options.threads, append=True)
    sessions = [loaded.session(), loaded.session()]  # the first for the comparison

    def run(token, keys, values):
        return (sessions.pop(0) if len(sessions) > 1 else sessions[0])(token), keys, values

    return run


def by_onnxruntime(model, first, options):
    """Its caches are NumPy arrays, which it takes and gives without a copy."""
    import numpy
    import onnxruntime

    import cfx
    import cfx.onnx

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        cfx.onnx.save(cfx.capture(model, *first), path)
        how = onnxruntime.SessionOptions()
        how.intra_op_num_threads, how.log_severity_level = options.threads, 3
        session = onnxruntime.InferenceSession(str(path), how, providers=["CPUExecutionProvider"])
    names, count = [row.name for row in session.get_inputs()], options.layers

    def run(token, keys, values):
        given = [numpy.asarray(x) for x in (token, *keys, *values)]
        scores, *kept = session.run(None, dict(zip(names, given)))
        return torch.from_numpy(scores), kept[:count], kept[count:]

    return run


ENGINES = {"eager": by_eager, "ORT": by_onnxruntime, "cfx": by_cfx, "append": by_cfx_append,
           "session": by_session}


def bandwidth():
    """Bytes per second that a sum over much memory reads, at best."""
    x, best = torch.ones(READ), 0.0
    for _ in range(5):
        start = time.perf_counter()
        x.sum()
        best = max(best, 4 * READ / (time.perf_counter() - start))
    return best


def measure(run, first, wanted, tokens):
    token, keys, values = first
    far = float((run(*first)[0] - wanted).abs().max())
    assert far < CLOSE, f"results differ by {far}"
    times = []
    for _ in range(tokens):
        start = time.perf_counter()
        _, keys, values = run(token, keys, values)
        times.append(time.perf_counter() - start)
    size = max(tokens // 4, 1)
    return [statistics.median(times[i:i + size]) for i in range(0, tokens - size + 1, size)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, default in (("tokens", 400), ("layers", 12), ("width", 768), ("words", 50257),
                          ("threads", 2)):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--engines", default="eager,ORT,cfx,append,session")
    parser.add_argument("--peers")
    options = parser.parse_args()
    if options.peers:
        sys.path.append(options.peers)
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    with torch.no_grad():
        model = Decoder(options.layers, options.width, options.words,
                        BEGIN + options.tokens + 1).eval()
        caches = [[torch.randn(1, options.width // 64, BEGIN, 64) for _ in range(options.layers)]
                  for _ in range(2)]
        first = (torch.tensor([[5]]), *caches)
        wanted, size = model(*first)[0], sum(4 * p.numel() for p in model.parameters())
        rate = bandwidth()
        print(f"{size / 1e6:.0f} MB of weights, memory is read at {rate / 1e9:.1f} GB/s")
        for name in options.engines.split(","):
            found = measure(ENGINES[name](model, first, options), first, wanted, options.tokens)
            print(f"{name:<7} {' '.join(f'{1e3 * t:8.2f}' for t in found)} ms, "
                  f"{size / found[-1] / rate:5.0%} of it", flush=True)


if __name__ == "__main__":
    main()
