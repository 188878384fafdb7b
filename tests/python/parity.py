"""What the parity tests share: the outcome of a call as text, and the growth of memory."""
import gc
import os
import re

SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
ADDRESS = re.compile(r"0x[0-9a-f]+")


def outcome(call):
    """The class and repr of what `call` gives, or the class and first line of what it raises."""
    try:
        result = call()
    except Exception as e:
        text = f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
    else:
        text = f"{type(result).__module__}.{type(result).__qualname__} {result!r}"
    return ADDRESS.sub("0x", text).replace("torch.fx", "cfx")


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(call, times=100_000):
    """How many bytes the process grows by while `call` is repeated, after some to warm up."""
    for _ in range(2_000):
        call()
    if SANITIZED:
        return 0  # it keeps freed memory for a while
    gc.collect()
    before = resident()
    for _ in range(times):
        call()
    gc.collect()
    return resident() - before
