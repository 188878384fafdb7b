"""make_fx: captures the aten calls that a function makes when it runs.

torch's dispatcher records them; cfx.interop converts the result.
"""
import functools
from collections.abc import Callable, Mapping
from typing import Any

from .._lazy_graph_module import _get_graph_module_cls
from ..graph_module import GraphModule, torch
from ..interop import trace_dispatch
from ..interop.entry import borrowed

__all__ = ["make_fx", "py_sym_types"]

py_sym_types = (torch.SymInt, torch.SymFloat, torch.SymBool)


def make_fx(
    f: Callable[..., Any], decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real", _allow_non_fake_inputs: bool = False, *,
    pre_dispatch: bool = False, record_module_stack: bool = False,
    _allow_fake_constant: bool = False, _error_on_data_dependent_ops: bool = True,
    record_stack_traces: bool = False, proxy_module_inputs: bool = False,
    _disable_torch_fn_metadata_mode: bool = False,
) -> Callable[..., GraphModule]:  # fmt: skip
    """Returns a function that runs `f` with the inputs it is called with, and returns a GraphModule
    of the operators that ran. `tracing_mode` is "real", "fake" (nothing is computed) or "symbolic"
    (sizes stay symbolic); `decomposition_table` maps operators to decompositions into simpler
    ones."""
    options = {name: value for name, value in locals().items() if name != "f"}
    record = trace_dispatch(f, options)

    @functools.wraps(f)
    def wrapped(*args: Any) -> GraphModule:
        result = record(*args)
        lazy = _get_graph_module_cls()
        return result if lazy is GraphModule else lazy(result, result.graph)

    return wrapped


def __getattr__(name: str) -> Any:
    return borrowed("experimental.proxy_tensor", name)  # the modes and tracers are torch's
