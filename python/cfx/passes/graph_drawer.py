"""FxGraphDrawer: draws modules with Graphviz. The text is written in C (src/emit/dot.c)."""
import copy
import subprocess
from typing import Any

from .._compatibility import compatibility
from ..graph_module import GraphModule
from ..text import as_cfx

try:
    import pydot  # type: ignore
except ImportError:
    pydot = None
HAS_PYDOT = pydot is not None

__all__ = ["FxGraphDrawer"]


class _Dot(str):
    """What pydot's Dot is mostly used for, where pydot is missing: a str that can be written."""

    to_string = str.__str__

    def write(self, path: Any, prog: str = "dot", format: str = "raw") -> bool:
        """Writes a file: the text, or what Graphviz's program makes of it ("svg", "png", ...)."""
        made = self.encode()
        if format != "raw":
            program = [prog, f"-T{format}"]
            made = subprocess.run(program, input=made, stdout=subprocess.PIPE, check=True).stdout
        with open(path, "wb") as file:
            file.write(made)
        return True

    def write_raw(self, path: Any, prog: str = "dot") -> bool:
        return self.write(path, prog)

    def write_svg(self, path: Any, prog: str = "dot") -> bool:
        return self.write(path, prog, "svg")

    def write_png(self, path: Any, prog: str = "dot") -> bool:
        return self.write(path, prog, "png")


@compatibility(is_backward_compatible=False)
class FxGraphDrawer:
    """Draws a module and, separately, each GraphModule it calls:
    `FxGraphDrawer(gm, "name").get_dot_graph().write_svg("name.svg")`. If pydot is installed, the
    pictures are pydot objects; `dot` returns only the text. Shapes found by ShapeProp are shown."""

    def __init__(
        self, graph_module: GraphModule, name: str, ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False, skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False, dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:  # fmt: skip
        self._name, self._normalize = name, normalize_args
        self._options: dict[str, Any] = dict(
            shape=dot_graph_shape, hide_get_attr=ignore_getattr, locations=parse_stack_trace,
            hide_tensors=ignore_parameters_and_buffers, literals_only=skip_node_names_in_args,
        )  # fmt: skip
        self._texts: dict[str, str] = {}
        self._draw(as_cfx(graph_module), name)

    def _draw(self, module: GraphModule, name: str) -> None:
        graph = module.graph
        if self._normalize:
            graph = copy.deepcopy(graph)
            for node in graph.nodes:
                found = node.normalized_arguments(module, normalize_to_only_use_kwargs=True)
                if found is not None:
                    node.args, node.kwargs = found
        self._texts[name] = graph._dot(name, module, **self._options)
        for path, child in module.named_modules():
            if path and isinstance(child, GraphModule) and f"{name}_{path}" not in self._texts:
                self._draw(child, f"{name}_{path}")

    def dot(self, submod_name: str | None = None) -> str:
        """Returns the Graphviz text of the module, or of one that it calls."""
        return self._texts[self._name if submod_name is None else f"{self._name}_{submod_name}"]

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        text = self.dot(submod_name)
        return pydot.graph_from_dot_data(text)[0] if HAS_PYDOT else _Dot(text)

    def get_main_dot_graph(self) -> Any:
        return self.get_dot_graph()

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        return self.get_dot_graph(submod_name)

    def get_all_dot_graphs(self) -> dict[str, Any]:
        first = len(self._name) + 1
        return {name: self.get_dot_graph(name[first:] or None) for name in self._texts}
