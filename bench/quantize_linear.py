"""Linear layers in integers: what weights of 8 and 4 bits, and 8-bit arithmetic, save.

    python bench/quantize_linear.py [--what recommender,decoder] [--rounds 40] [--threads 2]
                                    [--batches 1,16,64,256] [--layers 12] [--words 50257]

recommender: six linear layers as DeepRecommender has them (17768-512-512-1024-512-512-17768, selu),
as floats in eager PyTorch and compiled by cfx, in static int8 (scales from one float run) and in
dynamic int8. decoder: bench/decode.py's model of GPT-2's sizes, one token and a prompt of 64, as
compiled floats and with weights of 8 and 4 bits, groups of 128 and 32; its head included, only the
embeddings stay floats. Models are written in the reference form (quantize, dequantize, float
operator), which cfx.compile makes integers of. Engines take turns in one process; printed are the
least and the median time of each in milliseconds, and the ratios to the first one's.
"""
import argparse
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]
import torch  # noqa: E402
import torch.ao.quantization.fx._decomposed  # noqa: E402, F401 - registers the operators
import torch.nn.functional as F  # noqa: E402
from decode import Decoder  # noqa: E402
from torch import nn  # noqa: E402

import cfx  # noqa: E402

OPS = torch.ops.quantized_decomposed
SIZES = (17768, 512, 512, 1024, 512, 512, 17768)
PAST, PROMPT = 4, 64
NOISE = 0.3  # relative error of scores that random weights may get from 4 bits


def columns(weight, least):
    """Weights as integers, symmetric, with a scale for each row."""
    scale = (weight.abs().amax(1) / -least).clamp_min(1e-9)
    return (weight / scale[:, None]).round().clamp(least, -least - 1).to(torch.int8), scale


class Integers(nn.Module):
    """A linear layer in the reference form; `range` of its input, or None: found in each run."""

    def __init__(self, linear, range):
        super().__init__()
        weight, scale = columns(linear.weight.detach(), -128)
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)
        self.register_buffer("zero", torch.zeros(len(scale), dtype=torch.int64))
        self.bias = linear.bias
        if range is not None:
            low, high = min(range[0], 0.0), max(range[1], 0.0)
            self.step = (high - low) / 255
            self.offset = round(-low / self.step)
        self.each_run = range is None

    def forward(self, x):
        if self.each_run:
            step, offset = OPS.choose_qparams.tensor(x, 0, 255, 1e-7, torch.uint8)
            x = OPS.quantize_per_tensor.tensor(x, step, offset, 0, 255, torch.uint8)
            x = OPS.dequantize_per_tensor.tensor(x, step, offset, 0, 255, torch.uint8)
        else:
            how = (self.step, self.offset, 0, 255, torch.uint8)
            x = OPS.dequantize_per_tensor.default(OPS.quantize_per_tensor.default(x, *how), *how)
        w = OPS.dequantize_per_channel.default(self.weight, self.scale, self.zero, 0, -128, 127,
                                               torch.int8)
        return F.linear(x, w, self.bias)


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(SIZES, SIZES[1:]))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i + 1 < len(self.layers):
                x = F.selu(x)
        return x


def in_integers(model, x, dynamic):
    """A copy whose layers compute with integers; their ranges are those of one run on x."""
    seen, hooks = {}, []
    for i, layer in enumerate(model.layers):
        def look(_, given, i=i):
            seen[i] = (float(given[0].min()), float(given[0].max()))
        hooks.append(layer.register_forward_pre_hook(look))
    model(x)
    for hook in hooks:
        hook.remove()
    made = Recommender()
    made.layers = nn.ModuleList(Integers(layer, None if dynamic else seen[i])
                                for i, layer in enumerate(model.layers))
    return made.eval()


def with_small_weights(model, first, bits, group):
    """The captured model, whose linear layers have weights of 8 or 4 bits."""
    module = cfx.capture(model, *first)
    graph, least = module.graph, -(1 << (bits - 1))
    layers = [(n, module.get_submodule(n.target)) for n in graph.nodes if n.op == "call_module"]
    for i, (node, layer) in enumerate(layers):
        if not isinstance(layer, nn.Linear):
            continue
        rows, size = layer.weight.shape
        weight, scale = columns(layer.weight.detach().reshape(-1, group), least)
        weight, scale = weight.reshape(rows, size), scale.reshape(rows, -1)
        if bits == 4:
            weight = (weight[:, 0::2] & 15 | weight[:, 1::2] << 4).to(torch.uint8)
        module.register_buffer(f"small_{i}", weight.contiguous())
        module.register_buffer(f"scales_{i}", scale.contiguous())
        with graph.inserting_before(node):
            w, s = graph.get_attr(f"small_{i}"), graph.get_attr(f"scales_{i}")
            if bits == 4:
                w = graph.call_function(cfx.ops.unpack_int4, (w, size))
            w = graph.call_function(cfx.ops.dequantize_per_channel_group,
                                    (w, s, None, least, -least - 1, torch.int8, group,
                                     torch.float32))
            bias = graph.get_attr(f"{node.target}.bias") if layer.bias is not None else None
            new = graph.call_function(F.linear, (node.args[0], w, bias))
        node.replace_all_uses_with(new)
        graph.erase_node(node)
    module.recompile()
    return module


def compare(title, engines, args, rounds, within):
    """The first one's result is what the others must come close to."""
    times = {name: [] for name in engines}
    wanted = None
    for name, run in engines.items():
        for _ in range(3):
            found = run(*args)
        found = found[0] if isinstance(found, (tuple, list)) else found
        wanted = found if wanted is None else wanted
        error = float((found - wanted).norm() / wanted.norm())
        assert error < within, f"{name}: a relative error of {error}"
    for _ in range(rounds):
        for name, run in engines.items():
            start = time.perf_counter()
            run(*args)
            times[name].append(1e3 * (time.perf_counter() - start))
    base = next(iter(times.values()))
    print(title)
    for name, found in times.items():
        middle = statistics.median(found)
        print(f"  {name:<20} {min(found):9.3f} {middle:9.3f} ms   {min(base) / min(found):6.2f}x "
              f"{statistics.median(base) / middle:6.2f}x", flush=True)


def recommender(options):
    model = Recommender().eval()
    for batch in map(int, options.batches.split(",")):
        x = torch.randn(batch, SIZES[0])
        models = {"cfx float32": model, "cfx static int8": in_integers(model, x, False),
                  "cfx dynamic int8": in_integers(model, x, True)}
        engines = {"eager float32": model}
        for name, made in models.items():
            engines[name] = cfx.compile(made, x, threads=options.threads)
        compare(f"six wide linear layers, batch {batch}", engines, (x,), options.rounds, NOISE)


def decoder(options):
    model = Decoder(options.layers, 768, options.words, PAST + PROMPT + 1).eval()
    for tokens in (1, PROMPT):
        caches = [[torch.randn(1, 12, PAST, 64) for _ in range(options.layers)] for _ in range(2)]
        first = (torch.full((1, tokens), 5), *caches)
        engines = {"cfx float32": cfx.compile(model, *first, threads=options.threads)}
        for bits, group in ((8, 128), (4, 128), (4, 32)):
            made = with_small_weights(model, first, bits, group)
            engines[f"int{bits}, groups of {group}"] = cfx.compile(made, *first,
                                                                   threads=options.threads)
        compare(f"decoder of {options.layers} layers, {tokens} token(s)", engines, first,
                options.rounds, NOISE)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--what", default="recommender,decoder")
    parser.add_argument("--batches", default="1,16,64,256")
    for name, default in (("rounds", 40), ("threads", 2), ("layers", 12), ("words", 50257)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    with torch.no_grad():
        for name in options.what.split(","):
            {"recommender": recommender, "decoder": decoder}[name](options)


if __name__ == "__main__":
    main()
