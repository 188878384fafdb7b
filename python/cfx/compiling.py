"""Models compiled for inference: `cfx.compile(model, *inputs)`."""
import warnings
from typing import Any

from ._core import Runtime
from ._glue import places
from ._glue.listing import public_names
from .graph import Graph
from .lowering import Lowered, lower
from .text import as_cfx


def _onednn(backend: str) -> str | None:
    if backend not in ("auto", "builtin", "onednn"):
        raise ValueError(f"backend must be 'auto', 'builtin' or 'onednn', not {backend!r}")
    found = None if backend == "builtin" else places.onednn()
    if backend == "onednn" and found is None:
        raise RuntimeError("oneDNN was not found: install onednn-cpu-gomp, or let CFX_ONEDNN name "
                           "its libdnnl.so")
    return found


def compile(model: Any, *inputs: Any, runtime: Runtime | None = None, threads: int | None = None,
            backend: str = "builtin", tune: bool = False,
            precision: str = "float32", append: bool = False) -> Lowered:  # fmt: skip
    """Compiles a model for inference in C: a module, which is captured with `inputs` first, or a
    GraphModule. Returns a program that takes what the model takes, of any size that the graph
    allows.

    The weights are frozen: they are packed once, and a change of the module's is not seen, or only
    in part. For a program that follows its weights, use cfx.lower. The first call with inputs of
    some sizes plans it for them, in milliseconds; later calls use that plan. `threads`: None for as
    many as the machine has; `runtime` for one of your own.

    Products and convolutions are computed by the `backend`: cfx's own kernels ("builtin"), oneDNN
    where it is faster ("onednn"), or that if it is installed and can be loaded ("auto"). With
    `tune`, each is measured when a plan is made, which takes longer; the results are kept for other
    processes.

    With the `precision` "bf16", products and convolutions with constant weights round their
    operands to bfloat16, and weights take half the memory; sums, and everything else, stay
    float32.

    With `append`, a tensor that grows by `cat` from call to call, such as a cache of keys, lies in
    memory with room behind it: the call that is given it writes what is new behind it, and copies
    nothing. Such results have the strides of a longer tensor, and share memory: what was given
    stays as it is, unless you write to either in place."""
    if runtime is not None and threads is not None:
        raise TypeError("cfx.compile takes threads= or runtime=, not both")
    if threads is not None:
        runtime = Runtime(threads=threads)
    onednn = _onednn(backend)
    module = as_cfx(model)
    if not isinstance(getattr(module, "graph", None), Graph):
        from .capturing import capture
        module = capture(model, *inputs)
    cache = places.cache() if tune else None
    program = lower(module, runtime=runtime)
    try:
        return program._freeze(onednn, tune, cache, precision, append)
    except NotImplementedError as error:
        if backend != "auto" or onednn is None:
            raise
        program._freeze(None, tune, cache, precision, append)
        warnings.warn(f"backend='auto' goes on with cfx's own kernels: {error}", stacklevel=2)
        return program


__dir__ = public_names(globals())
