"""Tracing with shapes: a MetaProxy also carries a tensor on the meta device, so that sizes, dtypes
and the number of dimensions are plain values during tracing."""
import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

try:
    import torch
except ImportError as e:
    raise ImportError("cfx.experimental.meta_tracer needs torch, which is not installed") from e

from .._core import Node, map_aggregate
from .._symbolic_trace import Tracer, _find_proxy
from ..graph_module import GraphModule
from ..proxy import Proxy


def embedding_override(self, input):
    return torch.empty(*input.shape, self.embedding_dim, device="meta", dtype=self.weight.dtype)


def torch_nn_relu_override(self, input):
    return input


def torch_relu_override(input, inplace=False, *, out=None):
    return input


def torch_where_override(condition, x, y):
    metas = (v.to("meta") if isinstance(v, torch.Tensor) else v for v in (condition, x, y))
    return torch.where(*metas)


nn_layernorm_override = torch_nn_relu_override
functional_relu_override = torch_abs_override = torch_relu_override
# What computes the meta tensor instead, because weights may lie on another device.
manual_meta_overrides: dict[Callable[..., Any], Callable[..., Any]] = {
    torch.nn.Embedding: embedding_override, torch.nn.LayerNorm: nn_layernorm_override,
    torch.nn.ReLU: torch_nn_relu_override, torch.nn.functional.relu: functional_relu_override,
    torch.relu: torch_relu_override, torch.abs: torch_abs_override,
    torch.where: torch_where_override,
}  # fmt: skip


def gen_constructor_wrapper(target: Callable[..., Any]) -> tuple[Callable[..., Any], Any]:
    """Returns a function that calls `target`, or records the call if an argument is a Proxy; and
    `target`."""

    @functools.wraps(target)
    def wrapper(*args, **kwargs):
        found = _find_proxy(args, kwargs)
        if found is None:
            return target(*args, **kwargs)
        return found.tracer.create_proxy("call_function", target, args, kwargs)

    return wrapper, target


class MetaProxy(Proxy):
    """A Proxy that knows the shape, dtype and number of dimensions of its value."""

    def install_tensor_meta(self, tensor_meta: Any) -> None:
        self._tensor_meta = tensor_meta

    def _call(self, method, *args):
        if "_tensor_meta" in vars(self):
            return getattr(self._tensor_meta, method)(*args)
        return self.tracer.create_proxy("call_method", method, (self, *args), {})

    def _get(self, k):
        known = "_tensor_meta" in vars(self)
        return getattr(self._tensor_meta, k) if known else MetaAttribute(self, k)

    def size(self, dim: int | None = None) -> Any:
        return self._call("size") if dim is None else self._call("size", dim)

    def dim(self) -> Any:
        return self._call("dim")

    shape = property(lambda self: self._get("shape"))
    dtype = property(lambda self: self._get("dtype"))
    device = property(lambda self: MetaDeviceAttribute(self, "device"))

    def __getattr__(self, k: str) -> Any:
        if k == "_tensor_meta":
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{k}'")
        return MetaAttribute(self, k)


class MetaAttribute(MetaProxy):
    """An attribute of a MetaProxy: becomes a node when it is used, and a method call when it is
    called."""

    def __init__(self, root: MetaProxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None
        meta = getattr(vars(root).get("_tensor_meta"), attr, None)
        if isinstance(meta, torch.Tensor):
            self.install_tensor_meta(meta)

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            args = (self.root, self.attr)
            self._node = self.tracer.create_proxy("call_function", getattr, args, {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class MetaDeviceAttribute(MetaAttribute):
    """The device of a MetaProxy."""


def proxys_to_metas(v: Any) -> Any:
    """Returns the meta tensor of a MetaProxy; anything that is not a Proxy is returned
    unchanged."""
    if isinstance(v, MetaDeviceAttribute):
        return torch.device("meta")
    if not isinstance(v, Proxy):
        return v
    assert isinstance(v, MetaProxy), f"Expected MetaProxy but got {type(v)}"
    assert "_tensor_meta" in vars(v), "MetaProxy does not have an associated meta"
    return v._tensor_meta


class MetaTracer(Tracer):
    """A Tracer whose proxies are MetaProxy; `meta_args` gives a tensor for each input."""

    allow_insert_stateless_mods: bool = True
    _TORCH_METHODS_TO_PATCH = ["arange", "zeros", "ones", "full_like", "eye"]
    _computing = False  # a meta tensor: modules are called and not recorded

    def create_proxy(
        self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None
    ):
        rv = super().create_proxy(kind, target, args, kwargs, name, type_expr, proxy_factory_fn)
        if kind == "placeholder" and target in self.meta_args:
            rv.install_tensor_meta(self.meta_args[target])
        if kind in ("placeholder", "output"):
            return rv
        self._computing = True
        try:
            rv.install_tensor_meta(self._meta_of(kind, target, args, kwargs))
        except Exception as e:
            warnings.warn(f"Could not compute metadata for {kind} target {target}: {e}")
        finally:
            self._computing = False
        return rv

    def _meta_of(self, kind, target, args, kwargs):
        if target in self.orig_fns and "device" in kwargs:
            kwargs = {**kwargs, "device": "meta"}
        args, kwargs = map_aggregate((args, kwargs), proxys_to_metas)
        if kind == "call_function":
            return manual_meta_overrides.get(target, target)(*args, **kwargs)
        if kind == "call_method":
            return getattr(args[0], target)(*args[1:], **kwargs)
        if kind == "get_attr":
            return functools.reduce(getattr, target.split("."), self.root)
        module = self.root.get_submodule(target)
        if type(module) in manual_meta_overrides:
            return manual_meta_overrides[type(module)](module, *args, **kwargs)
        return module.forward(*args, **kwargs)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        plain = super().getattr
        return attr_val if self._computing else plain(attr, attr_val, parameter_proxy_cache)

    def call_module(self, m, forward, args, kwargs):
        plain = super().call_module
        return forward(*args, **kwargs) if self._computing else plain(m, forward, args, kwargs)

    def _insert_module_as_submodule(self, mod: Any) -> str:
        """Gives a module that the program made a place in the root."""
        path = self.get_fresh_qualname(f"{type(mod).__name__.lower()}_")
        self.root.add_module(path, mod)
        return path

    def path_of_module(self, mod: Any) -> str:
        try:
            return super().path_of_module(mod)
        except NameError:
            if not self.allow_insert_stateless_mods or [*mod.parameters(), *mod.buffers()]:
                raise
            return self._insert_module_as_submodule(mod)

    def proxy(self, node: Node) -> MetaProxy:
        return MetaProxy(node, self)

    def trace(self, root, meta_args, concrete_args=None):
        assert isinstance(meta_args, dict), f"Expected dict for meta_args, got {type(meta_args)}"
        self.meta_args = meta_args
        names = self._TORCH_METHODS_TO_PATCH  # in a trace within a trace they are wrapped already
        self.orig_fns = {inspect.unwrap(getattr(torch, name)) for name in names}
        self._autowrap_function_ids.update(map(id, self.orig_fns))
        self._autowrap_search.append(torch)
        graph = super().trace(root, concrete_args)
        for node in graph.nodes:
            if node.op == "call_function" and node.target in self.orig_fns:
                node.meta.pop("is_wrapped", None)  # generated code need not wrap it again
        graph._tracer_extras = {"meta_args": meta_args}
        return graph


def symbolic_trace(root: Any, meta_args: Any = None, concrete_args: Any = None) -> GraphModule:
    """cfx.symbolic_trace with a MetaTracer."""
    tracer = MetaTracer()
    graph = tracer.trace(root, meta_args, concrete_args)
    name = type(root).__name__ if isinstance(root, torch.nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
