"""Proxies, and the base of tracers. Proxy, Attribute and TracerBase are written in C."""
import contextlib
import copy
import dataclasses
from typing import Any

from . import _core
from ._glue.codegen import magic_methods, reflectable_magic_methods
from ._core import Attribute, Proxy, TracerBase
from .node import Node

__all__ = [
    "TracerBase", "GraphAppendingTracer", "TraceError", "Proxy", "MetaProxy", "Attribute",
    "ParameterProxy", "Scope", "ScopeContextManager",
]  # fmt: skip


class TraceError(ValueError):
    """An operation needs a real value, but was applied to a symbolic one."""


@dataclasses.dataclass(eq=False, repr=False)
class Scope:
    """The module that is being called: its path below the root, and its class."""

    module_path: str
    module_type: Any


class ScopeContextManager:
    """Sets `scope` to `current_scope` until the end of a `with` block."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope = scope
        self._before = (scope.module_path, scope.module_type)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *exception: object) -> None:
        self._scope.module_path, self._scope.module_type = self._before


def deepcopy_tracer(tracer, memo):
    copied = memo[id(tracer)] = type(tracer).__new__(type(tracer))
    for name, value in vars(tracer).items():
        keep = name in ("_autowrap_search", "_autowrapped")  # modules of Python cannot be copied
        setattr(copied, name, value[:] if keep else copy.deepcopy(value, memo))
    if hasattr(tracer, "graph"):
        copied.graph = copy.deepcopy(tracer.graph, memo)
    return copied


class GraphAppendingTracer(TracerBase):
    """Records at the insertion point of an existing graph."""

    def __init__(self, graph: _core.Graph) -> None:
        self.graph = graph

    __deepcopy__ = deepcopy_tracer


class ParameterProxy(Proxy):
    """A parameter whose shape is known during tracing."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        import torch

        assert isinstance(param, torch.nn.Parameter), f"expected a Parameter, got {type(param)}"
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self):
        return self.param.shape

    def size(self):
        return self.param.size()

    def dim(self) -> int:
        return self.param.dim()

    @property
    def ndim(self) -> int:
        return self.param.ndim

    def numel(self) -> int:
        return self.param.numel()

    def nelement(self) -> int:
        return self.param.nelement()


class MetaProxy(Proxy):
    """A proxy whose node carries a fake tensor, `meta["val"]`. Calls to torch's functions also run
    on the fake tensor, so that their nodes get one, too."""

    def __init__(self, node: Node, tracer: TracerBase | None = None, fake_mode: Any = None) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"

    @classmethod
    def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
        args, kwargs = args or (), kwargs or {}
        found = _core._find_proxy((args, kwargs))
        mode = getattr(found, "fake_mode", None)
        assert mode is not None, "a MetaProxy needs a fake_mode"
        made = Proxy.__torch_function__(orig_method, types, args, kwargs)

        def value(x):
            return x.node.meta["val"] if isinstance(x, Proxy) else x

        with mode, contextlib.suppress(NotImplementedError):
            made.node.meta["val"] = orig_method(
                *_core.map_aggregate(args, value), **_core.map_aggregate(kwargs, value)
            )
        return cls(made.node, made.tracer, mode)


def assert_fn(x: object) -> None:
    assert x


_core._register(appending_tracer=GraphAppendingTracer, scope_class=Scope)

from ._glue import tracing  # noqa: E402, F401  (needs the classes above)
from ._glue.listing import public_names

__dir__ = public_names(globals(), "Node", "assert_fn", "magic_methods", "reflectable_magic_methods")
