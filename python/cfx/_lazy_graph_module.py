"""_LazyGraphModule, which torch.fx has because its GraphModules write their code at once. Those of
cfx do not, so this one only says whether the code is still to be written."""
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._glue.generated import is_pending
from .graph_module import GraphModule, PythonCode

_use_lazy_graph_module_flag = False
_force_skip_lazy_graph_module_flag = False


@contextmanager
def _set_flag(name: str, value: bool) -> Iterator[None]:
    previous, globals()[name] = globals()[name], value
    try:
        yield
    finally:
        globals()[name] = previous


def _force_skip_lazy_graph_module() -> Any:
    """Inside a `with` block, `_use_lazy_graph_module` has no effect."""
    return _set_flag("_force_skip_lazy_graph_module_flag", True)


def _use_lazy_graph_module(should_use: bool) -> Any:
    """Whether `_make_graph_module` makes lazy ones, inside a `with` block."""
    use = should_use and not _force_skip_lazy_graph_module_flag
    return _set_flag("_use_lazy_graph_module_flag", use)


def _get_graph_module_cls() -> type[GraphModule]:
    return _LazyGraphModule if _use_lazy_graph_module_flag else GraphModule


def _make_graph_module(*args: Any, graph_module_cls: Any = None, **kwargs: Any) -> GraphModule:
    return (graph_module_cls or _get_graph_module_cls())(*args, **kwargs)


class _LazyGraphModule(GraphModule):
    """A GraphModule that tells whether its code is still to be written."""

    @classmethod
    def from_graphmodule(cls, gm: GraphModule) -> GraphModule:
        return gm if isinstance(gm, _LazyGraphModule) else _LazyGraphModule(gm, gm.graph)

    @staticmethod
    def force_recompile(gm: GraphModule) -> None:
        if isinstance(gm, _LazyGraphModule):
            gm.real_recompile()

    def real_recompile(self) -> None:
        self.forward

    def _real_recompile(self) -> PythonCode:
        code = self.recompile()
        self.real_recompile()
        return code

    @classmethod
    def _needs_recompile(cls) -> bool:
        return is_pending(cls._python_code)
