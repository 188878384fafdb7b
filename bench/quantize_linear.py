"""Linear layers in integers: what weights of 8 and 4 bits, and 8-bit arithmetic, save.

    python bench/quantize_linear.py [--what recommender,decoder] [--rounds 40] [--threads 2]
                                    [--batches 1,16,64,256] [--layers 12] [--words 50257]
                                    [--through compile|file]

recommender: six linear layers as DeepRecommender has them (17768-512-512-1024-512-512-17768, selu),
as floats in eager PyTorch and compiled by cfx, in static int8 (calibrated by one run) and in
dynamic int8. decoder: bench/decode.py's model of GPT-2's sizes, one token and a prompt of 64, as
floats in eager PyTorch and compiled, and with weights of 8 and 4 bits, groups of 128 and 32; its
head included, which is tied to the embedding: only embeddings stay floats. Models are captured,
prepared and converted as docs/quantization.md has it, then compiled, or saved and loaded in the
runtime. Engines take turns in one process; printed are the least and the median time of each in
milliseconds, and the ratios to the first one's.
"""
import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from decode import Decoder  # noqa: E402
from torch import nn  # noqa: E402

import cfx  # noqa: E402
import cfx.runtime  # noqa: E402
from cfx import quantize  # noqa: E402

SIZES = (17768, 512, 512, 1024, 512, 512, 17768)
PAST, PROMPT = 4, 64
NOISE = 0.3  # relative error of scores that random weights may get from 4 bits


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


def in_integers(model, x, config):
    """The captured model, whose linear layers have this configuration."""
    mapping = quantize.QConfigMapping().set_object_type(nn.Linear, config)
    prepared = quantize.prepare_fx(cfx.capture(model, *x), mapping, x)
    prepared(*x)
    return quantize.convert_fx(prepared)


def engine(model, x, layers, kernel, options):
    """The model to run, all of whose linear layers, so many, have this kernel (None: any)."""
    if options.through == "file":
        with tempfile.TemporaryDirectory() as folder:
            captured = model if isinstance(model, cfx.GraphModule) else cfx.capture(model, *x)
            cfx.save(captured, f"{folder}/model.cfx")
            return cfx.runtime.load(f"{folder}/model.cfx", threads=options.threads)
    program = cfx.compile(model, *x, threads=options.threads)
    program(*x)
    found = program.plans.count(kernel) if kernel else layers
    assert found == layers, f"{found} of {layers} layers have {kernel}"
    return program


def compare(title, engines, args, rounds, within):
    """The first one's result is what the others must come close to."""
    times = {name: [] for name in engines}
    wanted = None
    for name, run in engines.items():
        for _ in range(3):
            found = run(*args)
        found = torch.from_dlpack(found[0] if isinstance(found, (tuple, list)) else found)
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
        x = (torch.randn(batch, SIZES[0]),)
        static = quantize.get_default_qconfig("onednn")
        dynamic = quantize.per_channel_dynamic_qconfig
        models = {"cfx float32": (model, None),
                  "cfx static int8": (in_integers(model, x, static), "integer product"),
                  "cfx dynamic int8": (in_integers(model, x, dynamic), "to integers, ")}
        engines = {"eager float32": model}
        for name, (made, kernel) in models.items():
            engines[name] = engine(made, x, len(model.layers), kernel, options)
        compare(f"six wide linear layers, batch {batch}", engines, x, options.rounds, NOISE)


def decoder(options):
    model = Decoder(options.layers, 768, options.words, PAST + PROMPT + 1).eval()
    layers = 4 * options.layers + 1
    for tokens in (1, PROMPT):
        caches = [[torch.randn(1, 12, PAST, 64) for _ in range(options.layers)] for _ in range(2)]
        first = (torch.full((1, tokens), 5), *caches)
        engines = {"cfx float32": engine(model, first, layers, None, options),
                   "eager float32": model}
        for bits, group in ((8, 0), (4, 128), (4, 32)):
            config = (quantize.int4_weight_only_qconfig(group) if bits == 4
                      else quantize.int8_weight_only_qconfig)
            engines[f"int{bits}, groups of {group}" if group else f"int{bits}, rows"] = engine(
                in_integers(model, first, config), first, layers, f"weights of {bits} bits",
                options)
        compare(f"decoder of {options.layers} layers, {tokens} token(s)", engines, first,
                options.rounds, NOISE)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--what", default="recommender,decoder")
    parser.add_argument("--batches", default="1,16,64,256")
    parser.add_argument("--through", default="compile", choices=("compile", "file"))
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
