"""FxGraphDrawer: pictures of modules, for Graphviz. The text is made in C (src/codegen/dot.c)."""
import copy
import subprocess
from typing import Any

from .._compatibility import compatibility
from ..graph_module import GraphModule

try:
    import pydot

    HAS_PYDOT = True
except ImportError:
    HAS_PYDOT, pydot = False, None

__all__ = ["FxGraphDrawer"]


class _Dot:
    """What pydot's Dot is mostly used for, where pydot is missing."""

    def __init__(self, text: str) -> None:
        self._text = text

    def to_string(self) -> str:
        return self._text

    def create(self, prog: str = "dot", format: str = "ps") -> bytes:
        """The picture in another format, by Graphviz's program."""
        made = subprocess.run([prog, f"-T{format}"], input=self._text.encode(), capture_output=True)
        if made.returncode:
            raise RuntimeError(f"{prog} failed: {made.stderr.decode()}")
        return made.stdout

    def write(self, path: Any, prog: str = "dot", format: str = "raw") -> bool:
        made = self._text.encode() if format == "raw" else self.create(prog, format)
        with open(path, "wb") as file:
            file.write(made)
        return True

    def __getattr__(self, name: str) -> Any:  # write_svg, create_png, ...
        verb, _, format = name.partition("_")
        if verb not in ("write", "create") or not format:
            raise AttributeError(name)
        return lambda *args, **kwargs: getattr(self, verb)(*args, format=format, **kwargs)


@compatibility(is_backward_compatible=False)
class FxGraphDrawer:
    """Draws a module and, each on its own, the GraphModules it calls:
    `FxGraphDrawer(gm, "name").get_dot_graph().write_svg("name.svg")`. With pydot installed the
    pictures are its objects; `dot` is the text alone. Shapes that ShapeProp found are shown."""

    def __init__(
        self, graph_module: GraphModule, name: str, ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False, skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False, dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:  # fmt: skip
        self._name, self._normalize, self._shape = name, normalize_args, dot_graph_shape
        self._flags = dict(
            hide_get_attr=ignore_getattr, hide_tensors=ignore_parameters_and_buffers,
            literals_only=skip_node_names_in_args, locations=parse_stack_trace,
        )  # fmt: skip
        self._texts: dict[str, str] = {}
        self._draw(graph_module, name)

    def _draw(self, module: GraphModule, name: str) -> None:
        graph = module.graph
        if self._normalize:
            graph = copy.deepcopy(graph)
            for node in graph.nodes:
                found = node.normalized_arguments(module, normalize_to_only_use_kwargs=True)
                if found is not None:
                    node.args, node.kwargs = found
        self._texts[name] = graph._dot(name, module, self._shape, **self._flags)
        for path, child in module.named_modules():
            if path and isinstance(child, GraphModule) and f"{name}_{path}" not in self._texts:
                self._draw(child, f"{name}_{path}")

    def dot(self, submod_name: str | None = None) -> str:
        """The text for Graphviz, of the module or of one that it calls."""
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
