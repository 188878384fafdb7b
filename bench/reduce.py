#!/usr/bin/env python3
"""reduce.py - reductions, softmax, scans and orders of cfx and of PyTorch, side by side.

Both are called from Python, on arguments that are ready; 1.0 in the last column is as fast as
PyTorch, 2.0 twice as fast.
"""
import sys

import cfx
import torch

from elementwise import best


def cases():
    """name, PyTorch's call, cfx's row, its arguments."""
    x = torch.randn(4096, 768)
    h = x.bfloat16()
    image = torch.randn(8, 256, 28, 28)
    last = image.to(memory_format=torch.channels_last)
    logits = torch.randn(16, 32000)
    scores = torch.randn(8, 12, 128, 128)
    ids = torch.randint(0, 1000, (16, 4096))
    table, words = torch.randn(30000, 256), torch.randint(0, 30000, (16, 512))
    yield "sum, all", lambda: x.sum(), "sum", (x,)
    yield "sum, last", lambda: x.sum(1), "sum", (x, 1)
    yield "sum, first", lambda: x.sum(0), "sum", (x, 0)
    yield "sum bfloat16, last", lambda: h.sum(1), "sum", (h, 1)
    yield "mean of images", lambda: image.mean((2, 3)), "mean", (image, (2, 3))
    yield "mean, channels last", lambda: last.mean((2, 3)), "mean", (last, (2, 3))
    yield "var, last", lambda: x.var(1), "var", (x, 1)
    yield "amax, last", lambda: x.amax(1), "amax", (x, 1)
    yield "amax, first", lambda: x.amax(0), "amax", (x, 0)
    yield "max with indices", lambda: x.max(1), "max_dim", (x, 1)
    yield "argmax, last", lambda: logits.argmax(1), "argmax", (logits, 1)
    yield "any of int64", lambda: ids.any(), "any", (ids,)
    yield "softmax, attention", lambda: scores.softmax(-1), "softmax", (scores, -1)
    yield "softmax, logits", lambda: logits.softmax(-1), "softmax", (logits, -1)
    yield "log_softmax, logits", lambda: logits.log_softmax(-1), "log_softmax", (logits, -1)
    yield "softmax, dim 1", lambda: scores.softmax(1), "softmax", (scores, 1)
    yield "logsumexp", lambda: logits.logsumexp(1), "logsumexp", (logits, 1)
    yield "cumsum, last", lambda: x.cumsum(1), "cumsum", (x, 1)
    yield "cumsum int64", lambda: ids.cumsum(1), "cumsum", (ids, 1)
    yield "topk 50 of 32000", lambda: logits.topk(50), "topk", (logits, 50)
    yield "sort, rows of 768", lambda: x.sort(1), "sort", (x, 1)
    yield "embedding", lambda: torch.embedding(table, words), "embedding", (table, words)


def main():
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    torch.set_num_threads(threads)
    print(f"{threads} thread(s){'':16}cfx ms    PyTorch ms    cfx is faster by")
    with torch.no_grad(), cfx.Runtime(threads=threads):
        for name, theirs, row, args in cases():
            ready = [cfx.Tensor(a) if isinstance(a, torch.Tensor) else a for a in args]
            function = getattr(cfx.ops, row)
            mine, other = best([lambda f=function, a=ready: f(*a), theirs], 1)
            print(f"{name:24}{mine * 1e3:10.3f}{other * 1e3:14.3f}{other / mine:14.2f}", flush=True)


if __name__ == "__main__":
    main()
