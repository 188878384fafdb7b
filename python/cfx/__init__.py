"""cfx: torch.fx rebuilt around a C core.

Graphs of six instructions, with torch.fx's names and behaviour, and many times faster. cfx works
without torch; functions that need torch say so when you call them.
"""
import sys as _sys

from ._core import Runtime, Tensor, __version__, manual_seed, map_aggregate, map_arg
from ._core import immutable_dict, immutable_list
from .text import equal, parse, structural_hash, text
from ._glue import discovery as _discovery

_discovery.install()  # torch.compile(model, backend="cfx")

TYPE_CHECKING = False  # without typing, whose import takes longer than that of cfx
if TYPE_CHECKING:  # what is loaded when somebody asks for it
    from typing import Any

    from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
    from .capturing import CaptureError, capture, explain, function
    from .checking import bisect, check, minimize
    from .compiling import compile
    from .complete import c_code, generate, python_module
    from .graph import CodeGen, Graph, PythonCode
    from .graph_module import GraphModule
    from .interpreter import Interpreter, Transformer
    from .lowering import lower
    from .node import Node, has_side_effect
    from .ops import check_buffer, check_length, cond, fail, for_loop, while_loop
    from .package import load, save
    from .profiling import profile
    from .proxy import Proxy
    from .scripting import ScriptError, script
    from .shapes import infer_shapes
    from .subgraph_rewriter import any_of, replace_pattern

__all__ = [
    "CodeGen", "Graph", "Interpreter", "Node", "PythonCode", "Runtime", "Tensor",
    "Transformer", "check_buffer", "check_length", "cond", "equal", "fail", "for_loop",
    "has_side_effect", "immutable_dict", "immutable_list", "manual_seed", "map_aggregate",
    "map_arg", "parse", "structural_hash", "text", "while_loop",
]  # fmt: skip
_WITHOUT_TORCH = __all__[:]
__all__ += [
    "CaptureError", "GraphModule", "PH", "Proxy", "ProxyableClassMeta", "ScriptError", "Tracer",
    "any_of", "bisect", "c_code", "capture", "check", "explain", "function", "generate",
    "infer_shapes", "load", "lower", "minimize", "python_module", "replace_pattern", "save",
    "script", "symbolic_trace", "wrap",
]  # fmt: skip
_NAMES = __all__
if not TYPE_CHECKING:
    del __all__  # __getattr__ makes it: looking for torch takes time


def _has_torch() -> bool:
    import importlib.util

    try:
        return importlib.util.find_spec("torch") is not None
    except ImportError:
        return False
    except ValueError:  # somebody made a module of that name
        return True


# Loaded when somebody asks for them, because most need torch, and a process that runs a model from
# a file needs none of them: name -> module.
_MODULES = (
    "_compatibility", "_lazy_graph_module", "_symbolic_trace", "annotate", "capturing", "checking",
    "compiling", "complete", "config", "experimental", "graph", "graph_module",
    "immutable_collections", "interop", "interpreter", "lowering", "node", "onnx",
    "operator_schemas", "ops", "package", "passes", "profiling", "proxy", "quantize", "runtime",
    "scripting", "shapes", "subgraph_rewriter", "traceback", "weights",
)  # fmt: skip
_LAZY = {
    **{name: name for name in _MODULES},
    **dict.fromkeys(("CodeGen", "Graph", "PythonCode"), "graph"),
    **dict.fromkeys(("Interpreter", "Transformer"), "interpreter"),
    **dict.fromkeys(("Node", "has_side_effect"), "node"),
    **dict.fromkeys(("check_buffer", "check_length", "cond", "fail", "for_loop", "while_loop"),
                    "ops"),
    "GraphModule": "graph_module", "Proxy": "proxy",
    **dict.fromkeys(("CaptureError", "capture", "explain", "function"), "capturing"),
    **dict.fromkeys(("bisect", "check", "minimize"), "checking"),
    "compile": "compiling", "profile": "profiling",
    **dict.fromkeys(("c_code", "generate", "generators", "python_module"), "complete"),
    **dict.fromkeys(("LowerError", "Lowered", "lower"), "lowering"),
    **dict.fromkeys(("PackageError", "load", "save"), "package"),
    **dict.fromkeys(("Shapes", "TensorShape", "infer_shapes"), "shapes"),
    **dict.fromkeys(("formats", "load_npy", "load_tensor", "load_tensors", "load_weights",
                     "save_npy", "save_npz", "save_tensor", "save_weights"), "weights"),
    **dict.fromkeys(("any_of", "replace_pattern"), "subgraph_rewriter"),
    **dict.fromkeys(("ScriptError", "script"), "scripting"),
    **dict.fromkeys(("PH", "ProxyableClassMeta", "Tracer", "symbolic_trace", "wrap"),
                    "_symbolic_trace"),
}  # fmt: skip


def __getattr__(name: str) -> "Any":
    if name == "__all__":  # `from cfx import *` works without torch
        return globals().setdefault(name, _NAMES if _has_torch() else _WITHOUT_TORCH)
    if name not in _LAZY:
        raise AttributeError(f"module 'cfx' has no attribute '{name}'")
    full = f"cfx.{_LAZY[name]}"
    __import__(full)
    module = _sys.modules[full]
    value = globals()[name] = module if name in _MODULES else getattr(module, name)
    return value


def __dir__() -> list[str]:
    special = [name for name in globals() if name.startswith("__")]
    public = [name for name in _LAZY if not name.startswith("_")]
    return sorted({*__getattr__("__all__"), *public, *special, "__all__"})
