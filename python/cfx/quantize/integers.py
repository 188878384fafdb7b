"""What compiling makes of a quantized model."""
from typing import Any

from .. import _core
from ..graph_module import GraphModule
from ..lowering import Finding, lower


def stays_float(module: Any) -> list[Finding]:
    """The calls of a quantized module that still compute in float once it is compiled, though they
    read integers that were dequantized: the node, your file and line, and the reason. The module is
    not changed; docs/quantization.md, "The integer form", says what becomes integers."""
    lowered = lower(module)
    root = GraphModule(dict(lowered.state.given), lowered.graph)
    return [Finding(*row) for row in _core._integers(root.graph, root)]
