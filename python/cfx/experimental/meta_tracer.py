"""Tracing with shapes: a MetaProxy also carries a tensor on the meta device, so that sizes, dtypes
and the number of dimensions are plain values during tracing."""
import functools
import inspect
import warnings
from collections.abc import Callable
from itertools import chain
from operator import attrgetter, methodcaller
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
    return self.weight.new_empty((*input.shape, self.embedding_dim), device="meta")


def torch_nn_relu_override(self, input):
    return input  # the shape and dtype do not change


def torch_relu_override(input, inplace=False, *, out=None):
    return input


def torch_where_override(condition, x, y):
    operands = [condition, x, y]
    return torch.where(*(v.to("meta") if torch.is_tensor(v) else v for v in operands))


nn_layernorm_override = torch_nn_relu_override
functional_relu_override = torch_abs_override = torch_relu_override
# What computes the meta tensor instead, because weights may lie on another device.
manual_meta_overrides: dict[Callable[..., Any], Callable[..., Any]] = {
    torch.where: torch_where_override, torch.nn.Embedding: embedding_override,
    **dict.fromkeys((torch.nn.LayerNorm, torch.nn.ReLU), torch_nn_relu_override),
    **dict.fromkeys((torch.abs, torch.relu, torch.nn.functional.relu), torch_relu_override),
}  # fmt: skip


def gen_constructor_wrapper(target: Callable[..., Any]) -> tuple[Callable[..., Any], Any]:
    """Returns a function that calls `target`, or records the call if an argument is a Proxy; and
    `target`."""

    @functools.wraps(target)
    def call_or_record(*args, **kwargs):
        proxy = _find_proxy(args, kwargs)
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", target, args, kwargs)
        return target(*args, **kwargs)

    return call_or_record, target


def _meta_of_proxy(proxy: Any) -> Any:
    """The meta tensor of a MetaProxy, or None. MetaProxy.__getattr__ would record a read."""
    return vars(proxy).get("_tensor_meta")


class _Known:
    """An attribute or method of MetaProxy that its meta tensor answers; without one it is
    recorded."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, proxy: Any, owner: Any = None) -> Any:
        if proxy is None:
            return self
        meta = _meta_of_proxy(proxy)
        return MetaAttribute(proxy, self.name) if meta is None else getattr(meta, self.name)


class MetaProxy(Proxy):
    """A Proxy that knows the shape, dtype and number of dimensions of its value."""

    shape, dtype, size, dim = _Known(), _Known(), _Known(), _Known()

    def install_tensor_meta(self, tensor_meta: Any) -> None:
        self._tensor_meta = tensor_meta

    @property
    def device(self) -> Any:
        return MetaDeviceAttribute(self, "device")

    def __getattr__(self, k: str) -> Any:
        if k == "_tensor_meta":
            raise AttributeError("this MetaProxy has no meta tensor")
        return MetaAttribute(self, k)


class MetaAttribute(MetaProxy):
    """An attribute of a MetaProxy: becomes a node when it is used, and a method call when it is
    called."""

    def __init__(self, root: MetaProxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None
        if torch.is_tensor(meta := getattr(_meta_of_proxy(root), attr, None)):
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
    if not isinstance(v, Proxy):
        return v
    if isinstance(v, MetaDeviceAttribute):
        return torch.device("meta")
    assert isinstance(v, MetaProxy), f"Expected MetaProxy but got {type(v)}"
    assert "_tensor_meta" in vars(v), "MetaProxy does not have an associated meta"
    return v._tensor_meta  # None, if that is what the call returns


class MetaTracer(Tracer):
    """A Tracer whose proxies are MetaProxy; `meta_args` gives a tensor for each input."""

    allow_insert_stateless_mods: bool = True
    _TORCH_METHODS_TO_PATCH = ["arange", "zeros", "ones", "full_like", "eye"]
    _computing = False  # a meta tensor: modules are called and not recorded

    def create_proxy(
        self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None
    ):
        proxy = super().create_proxy(kind, target, args, kwargs, name, type_expr, proxy_factory_fn)
        if kind == "placeholder" and target in self.meta_args:
            proxy.install_tensor_meta(self.meta_args[target])
        elif kind not in ("placeholder", "output"):
            self._compute(proxy, kind, target, args, kwargs)
        return proxy

    def _compute(self, proxy, kind, target, args, kwargs):
        """Computes the meta tensor of a proxy; a warning says if that fails."""
        self._computing = True
        try:
            proxy.install_tensor_meta(self._meta_of(kind, target, args, kwargs))
        except Exception as e:
            warnings.warn(f"Could not compute metadata for {kind} target {target}: {e}")
        finally:
            self._computing = False

    def _meta_of(self, kind, target, args, kwargs):
        """What a node gives for the meta tensors of its arguments."""
        if kind == "get_attr":
            return attrgetter(target)(self.root)
        args, kwargs = map_aggregate((args, kwargs), proxys_to_metas)
        if kind == "call_method":
            return methodcaller(target, *args[1:], **kwargs)(args[0])
        if kind == "call_module":
            module = self.root.get_submodule(target)
            override = manual_meta_overrides.get(type(module))
            compute = functools.partial(override, module) if override else module.forward
            return compute(*args, **kwargs)
        if target in self.orig_fns and "device" in kwargs:
            kwargs = {**kwargs, "device": "meta"}
        return manual_meta_overrides.get(target, target)(*args, **kwargs)

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
            has_state = any(True for _ in chain(mod.parameters(), mod.buffers()))
            if has_state or not self.allow_insert_stateless_mods:
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
