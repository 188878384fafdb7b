#!/usr/bin/env python3
"""gemm.py - matrix products of cfx and of PyTorch, side by side: GFLOP/s on 1 and 2 threads.

Calls build/libcfx.so through ctypes, so it needs the library alone, not the extension.
"""
import ctypes as C
import sys
import time
from pathlib import Path

import torch

LIB = C.CDLL(str(Path(__file__).resolve().parent.parent / "build/libcfx.so"))
TENSOR = 12  # cfx_datum_kind
SQUARE = [(n, n, n) for n in (64, 128, 256, 512, 1024, 2048)]
MODELS = [(128, 768, 768), (128, 768, 3072), (128, 3072, 768), (197, 768, 2304), (1, 784, 512),
          (1, 768, 3072), (4, 768, 768), (64, 576, 3136), (256, 2304, 196), (512, 4608, 49)]


class Union(C.Union):
    _fields_ = [("i", C.c_int64), ("p", C.c_void_p), ("c", C.c_double * 2)]


class Datum(C.Structure):
    _fields_ = [("kind", C.c_uint32), ("symbolic", C.c_uint32), ("value", Union)]


class Options(C.Structure):
    _fields_ = [("allocator", C.c_void_p), ("threads", C.c_uint), ("seed", C.c_uint64),
                ("reference", C.c_bool), ("limit_isa", C.c_bool), ("isa", C.c_int)]


LIB.cfx_runtime_new.restype = C.c_void_p
LIB.cfx_operator_run.restype = Datum
LIB.cfx_operator_run.argtypes = [C.c_void_p, C.c_int, C.POINTER(Datum), C.c_size_t, C.c_void_p]
LIB.cfx_tensor_from_memory.restype = C.c_void_p
LIB.cfx_datum_release.argtypes = [Datum]
LIB.cfx_dtype_name.restype = C.c_char_p
FLOAT32 = next(i for i in range(32) if LIB.cfx_dtype_name(i) == b"float32")


def datum(t):
    sizes = (C.c_int64 * 8)(*t.shape)
    strides = (C.c_int64 * 8)(*(s * 4 for s in t.stride()))
    d = Datum(TENSOR)
    d.value.p = LIB.cfx_tensor_from_memory(FLOAT32, sizes, strides, C.c_size_t(t.dim()),
                                           C.c_void_p(t.data_ptr()), False, None, None, None, None)
    return d


def ours(threads):
    options = Options(None, threads)
    rt = LIB.cfx_runtime_new(C.byref(options), None)
    op = LIB.cfx_operator_parse(b"mm")

    def prepare(a, b):
        args = (Datum * 2)(datum(a), datum(b))
        return lambda: LIB.cfx_datum_release(LIB.cfx_operator_run(rt, op, args, 2, None))
    return prepare


def best(calls, seconds=0.25):
    """The shortest time of each, measured in turns so that noise hits all alike."""
    times = [float("inf")] * len(calls)
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end:
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            times[i] = min(times[i], time.perf_counter() - start)
    return times


def main():
    print("threads      m     k     n   B      cfx us  torch us  cfx GF  torch GF  ratio")
    for threads in (1, 2):
        torch.set_num_threads(threads)
        prepare = ours(threads)
        for m, k, n in SQUARE + MODELS:
            for layout in "n", "t":
                a = torch.randn(m, k)
                b = torch.randn(k, n) if layout == "n" else torch.randn(n, k).t()
                t = best([prepare(a, b), lambda: torch.mm(a, b)])
                work = 2e-9 * m * n * k
                print(f"{threads:7} {m:6} {k:5} {n:5}   {layout} {t[0] * 1e6:11.1f} "
                      f"{t[1] * 1e6:9.1f} {work / t[0]:7.1f} {work / t[1]:9.1f} "
                      f"{t[1] / t[0]:6.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
