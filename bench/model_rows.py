#!/usr/bin/env python3
"""model_rows.py - the rows that transformers and convolutional networks spend their time in, of
cfx and of PyTorch, side by side.

usage: model_rows.py [threads] [part of a name ...]

Both are called from Python, on arguments that are ready; 1.0 in the last column is as fast as
PyTorch, 2.0 twice as fast. Products have their GFLOP/s of cfx beside them.
"""
import sys
import time

import cfx
import torch
import torch.nn.functional as F

LAST = torch.channels_last


def heads(batch, count, length, size):
    """As a projection leaves them: [batch, length, count, size] seen as [batch, count, ...]."""
    return torch.randn(batch, length, count, size).transpose(1, 2)


def attention_cases():
    """name, PyTorch's call, cfx's row, its arguments, the multiplications and additions."""
    names = {"bert 128": (1, 12, 128, 128, 64), "vit 197": (1, 12, 197, 197, 64),
             "gpt2 64": (1, 12, 64, 64, 64), "long 1024": (1, 12, 1024, 1024, 64),
             "size 128": (1, 8, 256, 256, 128), "decode 512": (1, 12, 1, 512, 64),
             "decode 4096": (1, 12, 1, 4096, 64), "odd 33": (2, 3, 77, 131, 33)}
    for name, (batch, count, queries, keys, size) in names.items():
        q = heads(batch, count, queries, size)
        k, v = heads(batch, count, keys, size), heads(batch, count, keys, size)
        mask = torch.rand(batch, 1, 1, keys) > 0.1
        added = torch.randn(batch, 1, queries, keys)
        flops = 4 * batch * count * queries * keys * size
        yield (f"sdpa {name}", lambda q=q, k=k, v=v: F.scaled_dot_product_attention(q, k, v),
               "scaled_dot_product_attention", (q, k, v), flops)
        if name in ("bert 128", "long 1024", "gpt2 64"):
            yield (f"sdpa {name} bool",
                   lambda q=q, k=k, v=v, m=mask: F.scaled_dot_product_attention(q, k, v, m),
                   "scaled_dot_product_attention", (q, k, v, mask), flops)
            yield (f"sdpa {name} float",
                   lambda q=q, k=k, v=v, m=added: F.scaled_dot_product_attention(q, k, v, m),
                   "scaled_dot_product_attention", (q, k, v, added), flops)
            yield (f"sdpa {name} causal",
                   lambda q=q, k=k, v=v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
                   "scaled_dot_product_attention", (q, k, v, None, 0.0, True), flops / 2)
    q, k, v = heads(1, 32, 1, 128), heads(1, 8, 2048, 128), heads(1, 8, 2048, 128)
    yield ("sdpa decode gqa",
           lambda: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
           "scaled_dot_product_attention", (q, k, v, None, 0.0, False, None, True),
           4 * 32 * 2048 * 128)


def head_cases():
    for weights in (False, True):
        m = torch.nn.MultiheadAttention(768, 12).eval()
        x = torch.randn(128, 1, 768)
        args = (x, x, x, 768, 12, m.in_proj_weight, m.in_proj_bias, None, None, False, 0.0,
                m.out_proj.weight, m.out_proj.bias, False, None, weights)
        yield (f"mha 128 weights={weights:d}",
               lambda a=args: F.multi_head_attention_forward(*a),
               "multi_head_attention_forward", args, 2 * 128 * 768 * 768 * 4 + 4 * 128 * 128 * 768)


def product_cases():
    q, k = heads(1, 12, 128, 64), heads(1, 12, 128, 64).transpose(2, 3)
    p, v = torch.rand(1, 12, 128, 128), heads(1, 12, 128, 64)
    yield "matmul q k^T 128", lambda: q @ k, "matmul", (q, k), 2 * 12 * 128 * 128 * 64
    yield "matmul p v 128", lambda: p @ v, "matmul", (p, v), 2 * 12 * 128 * 128 * 64
    a, b = torch.randn(12, 197, 64), torch.randn(12, 64, 197)
    c, d = torch.randn(12, 197, 197), torch.randn(12, 197, 64)
    yield "bmm 197x64x197", lambda: torch.bmm(a, b), "bmm", (a, b), 2 * 12 * 197 * 197 * 64
    yield "bmm 197x197x64", lambda: torch.bmm(c, d), "bmm", (c, d), 2 * 12 * 197 * 197 * 64
    e = torch.randn(64, 49, 32), torch.randn(64, 32, 49)
    yield "bmm 64 of 49x32x49", lambda: torch.bmm(*e), "bmm", e, 2 * 64 * 49 * 49 * 32
    w, x = torch.randn(3072, 768), torch.randn(128, 768)
    yield "linear 128x768x3072", lambda: F.linear(x, w), "linear", (x, w), 2 * 128 * 768 * 3072
    for m in 1, 4, 8:
        y = torch.randn(m, 768)
        yield f"linear {m}x768x3072", lambda y=y: F.linear(y, w), "linear", (y, w), 2*m*768*3072


def norm_cases():
    x, w, b = torch.randn(1, 128, 768), torch.randn(768), torch.randn(768)
    yield "layer_norm 128x768", lambda: F.layer_norm(x, (768,), w, b), "layer_norm", (
        x, (768,), w, b)
    big = torch.randn(4096, 768)
    yield "layer_norm 4096x768", lambda: F.layer_norm(big, (768,), w, b), "layer_norm", (
        big, (768,), w, b)
    yield "rms_norm 128x768", lambda: F.rms_norm(x, (768,), w), "rms_norm", (x, (768,), w)
    image = torch.randn(1, 256, 56, 56)
    last = image.to(memory_format=LAST)
    gw, gb = torch.randn(256), torch.randn(256)
    mean, var = torch.randn(256), torch.rand(256)
    for kind, y in ("first", image), ("last", last):
        yield f"group_norm 32, {kind}", lambda y=y: F.group_norm(y, 32, gw, gb), "group_norm", (
            y, 32, gw, gb)
        yield f"batch_norm, {kind}", lambda y=y: F.batch_norm(y, mean, var, gw, gb), "batch_norm", (
            y, gw, gb, mean, var, False, 0.1, 1e-5, False)
    scores = torch.randn(1, 12, 128, 128)
    odd = torch.randn(1, 12, 197, 197)
    logits = torch.randn(64, 50257)
    yield "softmax 12x128x128", lambda: scores.softmax(-1), "softmax", (scores, -1)
    yield "softmax 12x197x197", lambda: odd.softmax(-1), "softmax", (odd, -1)
    yield "softmax 1x1000", lambda: logits[:1, :1000].softmax(-1), "softmax", (
        logits[:1, :1000].clone(), -1)
    yield "softmax 64x50257", lambda: logits.softmax(-1), "softmax", (logits, -1)
    yield "log_softmax 64x50257", lambda: logits.log_softmax(-1), "log_softmax", (logits, -1)
    yield "softmax dim 1", lambda: scores.softmax(1), "softmax", (scores, 1)
    planes = torch.randn(1, 21, 128, 128)
    yield "softmax 21 channels", lambda: planes.softmax(1), "softmax", (planes, 1)
    planes_last = planes.to(memory_format=LAST)
    yield "softmax channels last", lambda: planes_last.softmax(1), "softmax", (planes_last, 1)


def function_cases():
    x = torch.randn(128, 3072)
    last = torch.randn(1, 256, 56, 56).to(memory_format=LAST)
    for name in "exp tanh erf sigmoid silu gelu relu hardswish hardsigmoid".split():
        call = getattr(torch, name, None) or getattr(F, name)
        yield f"{name} 128x3072", lambda f=call: f(x), name, (x,)
    yield "gelu tanh", lambda: F.gelu(x, approximate="tanh"), "gelu", (x, "tanh")
    yield "relu, last", lambda: last.relu(), "relu", (last,)
    gate = torch.rand(1, 256, 1, 1)
    plain = torch.randn(1, 256, 56, 56)
    gate_last = gate.to(memory_format=LAST)
    other = torch.randn(1, 256, 56, 56).to(memory_format=LAST)
    yield "add, last", lambda: last + other, "add", (last, other)
    yield "mul [N,C,1,1], last", lambda: last * gate_last, "mul", (last, gate_last)
    yield "mul [N,C,1,1] first, last", lambda: last * gate, "mul", (last, gate)
    yield "mul [N,C,1,1], first", lambda: plain * gate, "mul", (plain, gate)
    permuted = torch.randn(12, 128, 4, 64).permute(2, 0, 3, 1)
    yield "relu, permuted", lambda: permuted.relu(), "relu", (permuted,)


def image_cases():
    for kind, form in ("first", torch.contiguous_format), ("last", LAST):
        x = torch.randn(1, 64, 112, 112).to(memory_format=form)
        y = torch.randn(1, 512, 7, 7).to(memory_format=form)
        z = torch.randn(1, 64, 56, 56).to(memory_format=form)
        u = torch.randn(1, 64, 56, 56).to(memory_format=form)
        yield f"max_pool2d 3/2, {kind}", lambda x=x: F.max_pool2d(x, 3, 2, 1), "max_pool2d", (
            x, 3, 2, 1)
        yield f"avg_pool2d 2/2, {kind}", lambda x=x: F.avg_pool2d(x, 2, 2), "avg_pool2d", (x, 2, 2)
        yield f"avg_pool2d 3/1, {kind}", lambda z=z: F.avg_pool2d(z, 3, 1, 1), "avg_pool2d", (
            z, 3, 1, 1)
        yield (f"adaptive 1, {kind}", lambda y=y: F.adaptive_avg_pool2d(y, 1),
               "adaptive_avg_pool2d", (y, 1))
        yield (f"adaptive 1 of 56, {kind}", lambda z=z: F.adaptive_avg_pool2d(z, 1),
               "adaptive_avg_pool2d", (z, 1))
        yield (f"adaptive 6, {kind}", lambda z=z: F.adaptive_avg_pool2d(z, 6),
               "adaptive_avg_pool2d", (z, 6))
        yield f"mean H,W, {kind}", lambda z=z: z.mean((2, 3)), "mean", (z, (2, 3))
        yield f"mean H,W keep, {kind}", lambda z=z: z.mean((2, 3), True), "mean", (z, (2, 3), True)
        yield (f"nearest x2, {kind}", lambda z=z: F.interpolate(z, scale_factor=2),
               "interpolate", (z, None, 2.0))
        yield (f"bilinear x2, {kind}",
               lambda z=z: F.interpolate(z, scale_factor=2, mode="bilinear"),
               "interpolate", (z, None, 2.0, "bilinear"))
        yield f"cat, {kind}", lambda z=z, u=u: torch.cat([z, u], 1), "cat", ([z, u], 1)
        yield f"pad, {kind}", lambda z=z: F.pad(z, (1, 1, 1, 1)), "pad", (z, (1, 1, 1, 1))
        yield f"chunk cat, {kind}", lambda z=z: torch.cat(z.chunk(2, 1)[::-1], 1), "cat", (
            list(z.chunk(2, 1)[::-1]), 1)


def best(calls, threads, seconds=0.15):
    """The shortest time of each, measured in turns. One thread's time is what it computed, so that
    others on the machine count less."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    times = [float("inf")] * len(calls)
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end:
        for i, call in enumerate(calls):
            start = clock()
            call()
            times[i] = min(times[i], clock() - start)
    return times


def ready(value):
    if isinstance(value, torch.Tensor):
        return cfx.Tensor(value.detach())
    return [ready(v) for v in value] if isinstance(value, list) else value


def main():
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    wanted = sys.argv[2:]
    torch.set_num_threads(threads)
    print(f"{threads} thread(s){'':20}cfx us  PyTorch us   faster by   GFLOP/s")
    with torch.no_grad(), cfx.Runtime(threads=threads):
        for cases in (attention_cases, head_cases, product_cases, norm_cases, function_cases,
                      image_cases):
            for name, theirs, row, args, *flops in cases():
                if wanted and not any(part in name for part in wanted):
                    continue
                function, mine = getattr(cfx.ops, row), [ready(a) for a in args]
                us, other = (t * 1e6 for t in best([lambda: function(*mine), theirs], threads))
                rate = f"{flops[0] / us * 1e-3:10.1f}" if flops else ""
                print(f"{name:28}{us:10.1f}{other:12.1f}{other / us:12.2f}{rate}", flush=True)


if __name__ == "__main__":
    main()
