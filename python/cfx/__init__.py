"""cfx: torch.fx rebuilt around a C core.

Graphs of six instructions, many times faster than torch.fx, with the same names and behaviour.
Works without torch; what needs torch says so when it is used.
"""
from ._core import __version__, map_aggregate, map_arg
from .graph import CodeGen, Graph, PythonCode
from .immutable_collections import immutable_dict, immutable_list
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect
from .ops import cond, for_loop, while_loop
from .text import equal, parse, structural_hash, text

__all__ = [
    "CodeGen",
    "Graph",
    "Interpreter",
    "Node",
    "PythonCode",
    "Transformer",
    "cond",
    "equal",
    "for_loop",
    "has_side_effect",
    "immutable_dict",
    "immutable_list",
    "map_aggregate",
    "map_arg",
    "parse",
    "structural_hash",
    "text",
    "while_loop",
]
