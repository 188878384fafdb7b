"""A model in one file: cfx.save and cfx.load (docs/format.md).

The archive and the weights are the core's. Here the module around a graph is written as values of
the IR, and built again: modules by their classes and settings, tensors by their names. Loading runs
and imports nothing that a file names.
"""
import os
import sys
from collections.abc import Iterable
from typing import Any

import torch

from . import _core, _glue
from ._glue.listing import public_names
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .text import as_cfx, parse, text

__all__ = ["load", "save"]

_LARGE = 200 << 20  # bytes of weights from which on a terminal shows progress
# What every module has, which is not a setting of its class.
_OWN = frozenset(vars(torch.nn.Module()))
_HOOKS = tuple(name for name in _OWN if name.endswith("_hooks"))


class PackageError(ValueError):
    """A model that cannot be saved, or a file that cannot be loaded as asked."""


# ---- values as texts ---------------------------------------------------------------------------


def _value_text(value: Any) -> str:
    """A value as IR text: a graph that returns it."""
    graph = Graph()
    graph.output(value)
    return text(graph)


def _value_of(source: str, allow: Iterable[str] = ()) -> Any:
    graph = parse(source, allow=allow)
    nodes = list(graph.nodes)
    if len(nodes) != 1 or nodes[0].op != "output":
        raise PackageError("a part of the file is not a value")
    return _plain(nodes[0].args[0])


def _plain(value: Any) -> Any:
    """Lists and dicts of a graph as ordinary ones."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if type(value) is tuple:
        return tuple(map(_plain, value))
    return value


# ---- modules -----------------------------------------------------------------------------------


def _class_name(module: Any) -> str:
    """The name of a class of torch.nn; "" for any other, which is only a name for its children."""
    cls = type(module)
    names = (f"torch.nn.{cls.__qualname__}", f"{cls.__module__}.{cls.__qualname__}")
    return next((name for name in names if _class_of(name) is cls), "")


def _class_of(name: str) -> Any:
    """The class of torch.nn of that name; None if there is none."""
    home, _, last = name.rpartition(".")
    if home != "torch.nn" and not home.startswith("torch.nn."):
        return None
    found = vars(sys.modules.get(home, torch.nn)).get(last) if home in sys.modules else None
    return found if isinstance(found, type) and issubclass(found, torch.nn.Module) else None


def _settings(path: str, module: Any) -> dict[str, Any]:
    """The plain attributes of a layer."""
    found = {name: value for name, value in vars(module).items() if name not in _OWN}
    for name, value in found.items():
        try:
            _value_text(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise PackageError(
                f"{path}.{name} is a {type(value).__name__}, which a file cannot hold; remove it "
                "from the module, or replace the call of the module by what it does") from error
    return found


def _described_module(path: str, module: Any, called: bool) -> tuple[Any, ...]:
    """(path, class, training, settings, names of parameters and buffers that are None)"""
    name = _class_name(module)
    if called and not name:
        raise PackageError(
            f"the graph calls {path}, a {type(module).__qualname__}, as a whole; only layers of "
            "torch.nn can be called from a file. Capture what it does (cfx.capture, or a Tracer "
            "that does not take it for a leaf)")
    if not called:
        return path, "", module.training, {}, (), ()
    hooked = next((hook for hook in _HOOKS if vars(module)[hook]), None)
    if hooked is not None:
        raise PackageError(f"{path} has {hooked.strip('_').replace('_', ' ')}, which a file cannot "
                           "hold; remove them before you save the model")
    return (path, name, module.training, _settings(path, module),
            tuple(name for name, value in module._parameters.items() if value is None),
            tuple(name for name, value in module._buffers.items() if value is None))


def _make_module(described: tuple[Any, ...]) -> torch.nn.Module:
    path, name, training, settings, no_parameters, no_buffers = described
    cls = _class_of(name) if name else torch.nn.Module
    if cls is None:
        raise PackageError(f"the file has a layer {path} of class {name}, which this version of "
                           "torch does not have")
    made = cls.__new__(cls)
    torch.nn.Module.__init__(made)
    made.training = bool(training)
    for key, value in settings.items():
        if not isinstance(key, str) or key in _OWN:
            raise PackageError(f"{path} has a setting {key!r} that is not allowed")
        vars(made)[key] = value
    made._parameters.update(dict.fromkeys(no_parameters))
    made._buffers.update(dict.fromkeys(no_buffers))
    return made


# ---- tensors -----------------------------------------------------------------------------------


class _Weights:
    """Tensors on their way into a file: each once."""

    def __init__(self) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self.described: list[tuple[Any, ...]] = []
        self._paths: dict[tuple[Any, ...], str] = {}

    def add(self, path: str, tensor: torch.Tensor, kind: str, persistent: bool = True) -> None:
        """(path, kind, requires_grad, persistent, path of the same tensor or None, strides)"""
        data = tensor.detach()
        key = (data.data_ptr(), data.shape, data.stride(), data.dtype) if data.numel() else (path,)
        same = self._paths.setdefault(key, path)
        strides = None if data.is_contiguous() else data.stride()
        if same == path:
            self.tensors[path] = data
        self.described.append((path, kind, tensor.requires_grad, persistent,
                               None if same == path else same, strides))


def _strided(tensor: torch.Tensor, strides: Any) -> torch.Tensor:
    if strides is None:
        return tensor
    made = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype)
    return made.copy_(tensor)


def _make_tensor(described: tuple[Any, ...], made: dict[str, Any],
                 weights: dict[str, Any]) -> torch.Tensor:  # fmt: skip
    path, kind, requires_grad, _, same, strides = described
    if same is not None:
        if same not in made:
            raise PackageError(f"{path} is the same tensor as {same}, which the file does not have")
        return made[same]
    if path not in weights:
        raise PackageError(f"the file has no tensor {path}")
    found = weights[path]
    tensor = found if isinstance(found, torch.Tensor) else found.torch()
    tensor = _strided(tensor, strides)
    if kind == "parameter":
        return torch.nn.Parameter(tensor, requires_grad=bool(requires_grad))
    return tensor.requires_grad_() if requires_grad else tensor


# ---- a module as texts and tensors -------------------------------------------------------------


def _describe(module: torch.nn.Module, graph: Graph) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the graph names of a module: values for module.ir, and tensors by path."""
    called = set(graph._paths(True))
    modules, weights = [], _Weights()
    inside = tuple(f"{path}." for path in called)
    for path, child in module.named_modules(remove_duplicate=False):
        if path:
            part = path in called or path.startswith(inside)
            modules.append(_described_module(path, child, part))
        for name, value in child._parameters.items():
            if value is not None:
                weights.add(f"{path}.{name}" if path else name, value, "parameter")
        for name, value in child._buffers.items():
            if value is not None:
                kept = name not in child._non_persistent_buffers_set
                weights.add(f"{path}.{name}" if path else name, value, "buffer", kept)
    for path in graph._paths(False):
        value = _core._get_attr(module, path)
        owner = _core._get_attr(module, path.rpartition(".")[0]) if "." in path else module
        if isinstance(value, torch.Tensor) and path.rpartition(".")[2] in vars(owner):
            weights.add(path, value, "constant")
    values = {"training": module.training, "modules": modules, "tensors": weights.described}
    return values, weights.tensors


def _build(values: dict[str, Any], weights: dict[str, Any]) -> torch.nn.Module:
    root = torch.nn.Module()
    root.training = bool(values["training"])
    modules = {"": root}
    for described in values["modules"]:
        outer, _, name = described[0].rpartition(".")
        if outer not in modules or described[0] in modules or not name:
            raise PackageError(f"the file has a module {described[0]!r} that belongs nowhere")
        modules[described[0]] = modules[outer]._modules[name] = _make_module(described)
    made: dict[str, Any] = {}
    for described in values["tensors"]:
        path, kind, _, persistent = described[:4]
        outer, _, name = path.rpartition(".")
        if outer not in modules or path in made or not name:
            raise PackageError(f"the file has a tensor {path!r} that belongs nowhere")
        owner = modules[outer]
        made[path] = _make_tensor(described, made, weights)
        table = {"parameter": owner._parameters, "buffer": owner._buffers}.get(
            kind, vars(owner))
        table[name] = made[path]
        if kind == "buffer" and not persistent:
            owner._non_persistent_buffers_set.add(name)
    return root


# ---- the door ----------------------------------------------------------------------------------


def _progress(tensors: dict[str, torch.Tensor]) -> Any:
    """Shows how far a large file is, on a terminal."""
    large = sum(t.numel() * t.element_size() for t in tensors.values()) > _LARGE
    if not large or not sys.stderr.isatty():
        return None
    last = -1

    def show(done: int, all_: int) -> None:
        nonlocal last
        percent = min(100, 100 * done // all_)
        if percent != last:
            last = percent
            end = "\n" if percent == 100 else "\r"
            print(f"saving: {percent:3}%", end=end, file=sys.stderr, flush=True)

    return show


def save(model: Any, path: str | os.PathLike[str], *, weights: bool = True) -> None:
    """Writes a GraphModule to a .cfx file: its graph, weights and layers, with the lines of the
    program that each node comes from. Whatever happens, there is the old file or the new one. With
    `weights=False` the weights stay outside, and are given when the file is loaded.

    Functions that are not torch's, Python's or cfx's are written as names. Whoever loads the file
    allows them one by one. What a file cannot hold is an error that names it."""
    model = as_cfx(model)
    if not isinstance(model, GraphModule):
        raise TypeError(f"save needs a GraphModule, such as cfx.script and cfx.symbolic_trace "
                        f"return, not {type(model).__name__}")
    if type(model.graph._codegen) is not CodeGen:
        raise PackageError("this module takes or returns structures by a code generator of its own "
                           "(cfx.capture, or concrete_args), which a file cannot hold yet")
    values, tensors = _describe(model, model.graph)
    texts = {"graph.ir": text(model.graph), "module.ir": _value_text(values)}
    _core._save_package(path, type(model).__name__, texts, tensors if weights else None,
                        _progress(tensors))


def load(source: Any, *, allow: Iterable[str] = (), weights: Any = None, map: bool = True,
         verify: bool = False) -> GraphModule:  # fmt: skip
    """Returns the GraphModule of a .cfx file: a path, or the bytes of one. Runs and imports nothing
    that the file names.

    `allow` names functions of yours that the graph may call, or modules of yours ("my.ops"); they
    must be imported already. `weights` are the tensors of a file without weights: a dict, a module,
    or the path of a .safetensors file. Weights are mapped, and read when they are used; `map=False`
    copies them, for a file that may be truncated. `verify` compares hashes, which reads the whole
    file."""
    name, producer, _, texts, found = _core._load_package(source, not map, verify)
    for needed in ("graph.ir", "module.ir"):
        if needed not in texts:
            raise PackageError(f"the file, written by {producer}, has no {needed}")
    if found is None or weights is not None:
        found = _given_weights(weights)
    root = _build(_value_of(texts["module.ir"], allow), found)
    graph = parse(texts["graph.ir"], allow=allow)
    return GraphModule(root, graph, name or "GraphModule")


def _given_weights(weights: Any) -> dict[str, Any]:
    if weights is None:
        raise PackageError("the weights of this file are kept elsewhere; give them with weights=")
    if isinstance(weights, (str, bytes, os.PathLike)):
        return dict(_core._load_weights(weights))
    return dict(weights if isinstance(weights, dict) else weights.state_dict())


__dir__ = public_names(globals())
_glue.find_torch()
