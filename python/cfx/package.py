"""A model in one file: cfx.save and cfx.load (docs/format.md).

The archive and the weights are the core's. Here the module around a graph is written as values of
the IR, and built again: modules by their classes and settings, tensors by their names. Loading runs
and imports nothing that a file names.
"""
import os
import sys
import warnings
from collections.abc import Iterable
from typing import Any

import torch

from . import _core, _glue
from ._glue.door import plain
from ._glue.listing import public_names
from ._glue.prepared import advice_if_prepared
from ._glue.stored import Classes, StructureError
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .text import as_cfx, parse, text

__all__ = ["load", "save"]

_LARGE = 200 << 20  # bytes of weights from which on a terminal shows progress
_SMALL = 1 << 16  # bytes of a tensor that is rather copied than read at an odd address
# What every module has, which is not a setting of its class.
_OWN = frozenset(vars(torch.nn.Module()))
_HOOKS = tuple(name for name in _OWN if name.endswith("_hooks"))
_NESTED = "cfx.GraphModule"  # the class of a captured module that a graph calls
_ACTIVE = ("torch.nn.TransformerEncoderLayer", "torch.nn.TransformerDecoderLayer")
_ACTIVATIONS = {"relu": torch.nn.functional.relu, "gelu": torch.nn.functional.gelu}
_REMADE = ("_flat_weights", "_flat_weight_refs")  # by recurrent layers, from their parameters


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
    return plain(nodes[0].args[0])


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


def _settings(module: Any) -> dict[str, Any]:
    """The plain attributes of a layer."""
    return {name: value for name, value in vars(module).items()
            if name not in _OWN and name not in _REMADE and not isinstance(value, torch.Tensor)}


def _described_module(path: str, module: Any, called: bool) -> tuple[Any, ...]:
    """(path, class, training, settings, names of parameters and buffers that are None)"""
    name = _class_name(module)
    if called and isinstance(module, GraphModule):
        if getattr(module, "_changes", None):
            raise PackageError(f"the graph calls {path}, a captured module that changes attributes "
                               "of its own, which a file cannot hold; capture the whole model")
        return path, _NESTED, module.training, {"name": type(module).__name__}, (), ()
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
    return (path, name, module.training, _settings(module),
            tuple(name for name, value in module._parameters.items() if value is None),
            tuple(name for name, value in module._buffers.items() if value is None))


def _make_module(described: tuple[Any, ...]) -> torch.nn.Module:
    path, name, training, settings, no_parameters, no_buffers = described
    cls = _class_of(name) if name and name != _NESTED else torch.nn.Module
    if cls is None:
        raise PackageError(f"the file has a layer {path} of class {name}, which this version of "
                           "torch does not have")
    made = cls.__new__(cls)
    torch.nn.Module.__init__(made)
    made.training = bool(training)
    if name == _NESTED:
        return made  # a GraphModule takes its place
    for key, value in settings.items():
        if not isinstance(key, str) or key in _OWN:
            raise PackageError(f"{path} has a setting {key!r} that is not allowed")
        vars(made)[key] = value
    if name in _ACTIVE and isinstance(settings.get("activation"), str):  # a file that C has written
        vars(made)["activation"] = _ACTIVATIONS[settings["activation"]]
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
        self._known: set[str] = set()

    def add(self, path: str, tensor: torch.Tensor, kind: str, persistent: bool = True) -> None:
        """(path, kind, requires_grad, persistent, path of the same tensor or None, strides)"""
        if path in self._known:  # several graphs read it
            return
        self._known.add(path)
        data = tensor.detach()
        if data.is_meta:
            sizes = tensor.dtype, tuple(data.shape), data.stride()
            self.described.append((path, kind, tensor.requires_grad, persistent, None, sizes))
            return
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
    sizes = tensor.shape
    for dim, stride in enumerate(strides):  # a tensor that was expanded there
        tensor = tensor.narrow(dim, 0, 1) if stride == 0 and sizes[dim] > 1 else tensor
    made = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype)
    return made.copy_(tensor).expand(sizes)


def _aligned(tensor: torch.Tensor) -> torch.Tensor:
    """A small tensor at an address as torch has them: kernels may add up in another order else."""
    is_small = tensor.numel() * tensor.element_size() <= _SMALL
    return tensor.clone() if is_small and tensor.data_ptr() % 64 else tensor


def _torch(tensor: Any) -> torch.Tensor:
    return tensor if isinstance(tensor, torch.Tensor) else tensor.torch()


def _make_tensor(described: tuple[Any, ...], made: dict[str, Any],
                 weights: dict[str, Any]) -> torch.Tensor:  # fmt: skip
    path, kind, requires_grad, _, same, strides = described
    if same is not None:
        if same not in made:
            raise PackageError(f"{path} is the same tensor as {same}, which the file does not have")
        return made[same]
    if strides and isinstance(strides[0], torch.dtype):
        dtype, sizes, strides = strides
        tensor = torch.empty_strided(sizes, strides, dtype=dtype, device="meta")
    elif path not in weights:
        raise PackageError(f"the file has no tensor {path}")
    else:
        tensor = _aligned(_strided(_torch(weights[path]), strides))
    if kind == "parameter":
        return torch.nn.Parameter(tensor, requires_grad=bool(requires_grad))
    return tensor.requires_grad_() if requires_grad else tensor


# ---- a module as texts and tensors -------------------------------------------------------------


def _nested(module: torch.nn.Module, called: Iterable[str]) -> list[tuple[str, Any]]:
    """The captured modules that graphs call, and those that these call: outer ones first."""
    found = []
    for path in sorted(called):
        child = _core._get_attr(module, path)
        if isinstance(child, GraphModule):
            found.append((path, child))
            found += [(f"{path}.{inner}", one)
                      for inner, one in _nested(child, child.graph._paths(True))]
    return found


class _Others:
    """Attributes that graphs read and that are not tensors: generators, and plain values."""

    def __init__(self, weights: _Weights) -> None:
        self.weights = weights
        self.values: list[tuple[str, Any]] = []

    def add(self, path: str, value: Any) -> None:
        if isinstance(value, torch.Generator):
            self.weights.add(path, value.get_state(), "generator")
        else:
            self.values.append((path, value))


def _reader(graph: Graph, path: str) -> str:
    """Who reads an attribute: "model.py:12: node %get"."""
    node = next((n for n in graph.nodes if n.op == "get_attr" and n.target == path), None)
    if node is None:  # in a region
        return "the graph"
    place = "{}:{}: ".format(*node._location) if node._location else ""
    return f"{place}node %{node.name}"


def _describe(module: torch.nn.Module, graphs: Any) -> tuple[dict[str, Any], _Weights]:
    """What graphs name of a module: values for module.ir, and tensors by path. `graphs` are pairs
    of a graph and the module that has its constants."""
    called = {path for graph, _ in graphs for path in graph._paths(True)}
    for path, child in _nested(module, called):
        called.update(f"{path}.{inner}" for one in (child, *getattr(child, "_others", ()))
                      for inner in one.graph._paths(True))  # fmt: skip
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
        for name, value in vars(child).items() if path in called else ():
            if isinstance(value, torch.Tensor):
                weights.add(f"{path}.{name}", value, "constant")
            elif isinstance(value, torch.Generator):
                weights.add(f"{path}.{name}", value.get_state(), "generator")
    others = _Others(weights)
    for graph, owner in graphs:
        _describe_read(graph, owner, weights, others)
    values = {"training": module.training, "modules": modules, "tensors": weights.described}
    if others.values:
        values["values"] = others.values
    return values, weights


def _describe_read(graph: Graph, module: torch.nn.Module, weights: _Weights,
                   others: _Others) -> None:  # fmt: skip
    """What a graph reads that is neither a parameter nor a buffer."""
    known = {path for path, _ in others.values}
    for path in graph._paths(False):
        value = _core._get_attr(module, path)
        outer, _, name = path.rpartition(".")
        owner = _core._get_attr(module, outer) if outer else module
        if isinstance(value, torch.Tensor) and name in vars(owner):
            if value.grad_fn is not None:
                warnings.warn(f"{_reader(graph, path)} reads {path}, which was computed from "
                              "weights when the model was captured; it is a constant in the file, "
                              "and does not follow when the loaded model is trained", stacklevel=5)
            weights.add(path, value, "constant")
        elif not isinstance(value, (torch.Tensor, torch.nn.Module)) and name != "training" and (
                path not in known):  # fmt: skip
            others.add(path, value)


def _can_hold(value: Any) -> bool:
    try:
        _value_text(value)
    except (TypeError, ValueError, RuntimeError):
        return False
    return True


def _module_text(values: dict[str, Any], graphs: Any) -> str:
    """module.ir; an error names the part that a file cannot hold."""
    try:
        return _value_text(values)
    except (TypeError, ValueError, RuntimeError) as error:
        for path, _, _, settings, *_ in values["modules"]:
            for name, value in settings.items():
                if not _can_hold(value):
                    raise PackageError(
                        f"{path}.{name} is a {type(value).__name__}, which a file cannot hold; "
                        "remove it from the module, or replace the call of the module by what it "
                        "does") from error
        for path, value in values.get("values", ()):
            if not _can_hold(value):
                reader = next(found for graph, _ in graphs if path in graph._paths(False)
                              for found in [_reader(graph, path)])  # fmt: skip
                raise PackageError(f"{reader} reads {path}, a {type(value).__name__}, which a file "
                                   "cannot hold") from error
        for path, _, leaves in values.get("attributes", ()):
            wrong = next((leaf[-1] for leaf in leaves if not _can_hold(leaf[-1])), None)
            if wrong is not None:
                raise PackageError(f"{path}, which the model changes, is a {type(wrong).__name__}, "
                                   "which a file cannot hold") from error
        raise PackageError(f"a file cannot hold an attribute of this model: {error}") from error


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
        table[name] = _generator(made[path]) if kind == "generator" else made[path]
        if kind == "buffer" and not persistent:
            owner._non_persistent_buffers_set.add(name)
    for module in modules.values():
        if isinstance(module, torch.nn.RNNBase):
            module._init_flat_weights()
    for path, value in values.get("values", ()):
        _core._assign_attr(value, root, path)
    return root


def _generator(state: torch.Tensor) -> torch.Generator:
    made = torch.Generator()
    made.set_state(state)
    return made


def _take_all(module: GraphModule, root: torch.nn.Module) -> None:
    """Gives a module all that the file has, in its order: a GraphModule takes what its graph names
    alone."""
    for table in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
        module.__dict__[table] = root.__dict__[table]
    for name, value in vars(root).items():
        if name not in _OWN:
            module.__dict__[name] = value
    module.__dict__["training"] = root.training


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


def _others(tensors: dict[str, torch.Tensor], path: Any, name: str) -> dict[str, torch.Tensor]:
    """The tensors that a file beside `path` does not have as they are."""
    base = os.path.join(os.path.dirname(os.fspath(path)), name)
    found = _core._load_package(base, False, False)[4] if name.endswith(".cfx") else (
        _core._load_weights(base))
    if found is None:
        raise PackageError(f"{name} has no weights of its own")
    there = {key: found[key].torch() for key in tensors if key in found}
    return {key: tensor for key, tensor in tensors.items()
            if key not in there or there[key].dtype != tensor.dtype
            or not torch.equal(there[key].reshape(-1).view(torch.uint8),
                               tensor.contiguous().reshape(-1).view(torch.uint8))
            or there[key].shape != tensor.shape}  # fmt: skip


def save(model: Any, path: str | os.PathLike[str], *, weights: bool | str = True,
         shard_size: int | None = None) -> None:  # fmt: skip
    """Writes a GraphModule to a .cfx file: its graph, weights and layers, with the lines of the
    program that each node comes from. Whatever happens, there is the old file or the new one. With
    `weights=False` the weights stay outside, and are given when the file is loaded. With the name
    of a .safetensors or .cfx file in the same folder, only those that differ from that file's are
    written; loading finds both. `shard_size` puts weights into files beside this one, each of at
    most so many bytes.

    Functions that are not torch's, Python's or cfx's are written as names. Whoever loads the file
    allows them one by one. What a file cannot hold is an error that names it."""
    model = as_cfx(model)
    if not isinstance(model, GraphModule):
        raise TypeError(f"save needs a GraphModule, such as cfx.script and cfx.symbolic_trace "
                        f"return, not {type(model).__name__}")
    texts, tensors = _written(model)
    base = weights if isinstance(weights, str) else None
    if base is not None:
        tensors = _others(tensors, path, base)
    _core._save_package(path, type(model).__name__, texts, tensors if weights else None,
                        _progress(tensors), base, shard_size or 0)


def _written(model: GraphModule) -> tuple[dict[str, str], dict[str, torch.Tensor]]:
    """The texts and tensors of a file."""
    advice = advice_if_prepared(model)
    if advice:
        raise PackageError(advice)
    all_graphs = [model, *getattr(model, "_others", ())]
    graphs = [(one.graph, one) for one in all_graphs]
    values, weights = _describe(model, graphs)
    is_captured = hasattr(model, "_is_whole")
    if is_captured:
        from .capturing.stored import attribute_values

        attributes = attribute_values(model, lambda name, t: weights.tensors.setdefault(
            name, t.detach()))
        if attributes:
            values["attributes"] = attributes
    called = {path for one in all_graphs for path in one.graph._paths(True)}
    module_text = _module_text(values, graphs)
    texts = _texts_of_graphs(model, "")
    texts["module.ir"] = module_text
    for path, child in _nested(model, called):
        texts.update(_texts_of_graphs(child, f"modules/{path}/"))
    return texts, weights.tensors


def _texts_of_graphs(model: GraphModule, home: str) -> dict[str, str]:
    texts = {}
    for i, one in enumerate((model, *getattr(model, "_others", ()))):
        folder = f"{home}graphs/{i}/" if i else home
        texts[f"{folder}graph.ir"] = _graph_text(one.graph)
        texts[f"{folder}signature.ir"] = _written_value(_signature_values(one), one)
    return texts


def _graph_text(graph: Graph) -> str:
    try:
        return text(graph)
    except ValueError as error:  # with the node
        raise PackageError(str(error)) from error


def _signature_values(model: GraphModule) -> dict[str, Any]:
    codegen = model.graph._codegen
    if type(codegen) is CodeGen:
        return {"inputs": [_known_input(node) for node in model.graph.nodes
                           if node.op == "placeholder"],
                "state": [], "results": None, "guards": "",
                "structure": {"captured": True} if hasattr(model, "_is_whole") else None}
    if not hasattr(codegen, "boundary"):
        raise PackageError("this module takes or returns structures by a code generator of its own "
                           "(concrete_args), which a file cannot hold; capture it with cfx.capture")
    from .capturing.stored import signature_values

    return signature_values(model)


def _known_input(node: Any) -> tuple[Any, ...]:
    """A placeholder, with what passes have found out about it."""
    known = node.meta.get("tensor_meta")
    dtype, shape = getattr(known, "dtype", None), getattr(known, "shape", None)
    name = str(node.target)
    if dtype is None or shape is None or not all(type(size) is int for size in shape):
        return name, "any"
    return name, "tensor", dtype, tuple(f"{name}_{i}" for i in range(len(shape)))


def _written_value(values: dict[str, Any], model: GraphModule) -> str:
    """Values as text; an error names the part that a file cannot hold."""
    try:
        return _value_text(values)
    except (TypeError, ValueError, RuntimeError) as error:
        structure = values["structure"] or {}
        rows = [*structure.get("leaves", ()), *(("a result", *row) for row in structure["out"])]
        for row in rows:
            if not _can_hold(row[-1]):
                raise PackageError(
                    f"{row[1] if row[0] == 'fixed' else row[0]} is a {type(row[-1]).__name__}, "
                    "which a file cannot hold; pass tensors, numbers and plain values "
                    "instead") from error
        raise PackageError(f"a file cannot hold the structure of this model: {error}") from error


def load(source: Any, *, allow: Iterable[str] = (), weights: Any = None, map: bool = True,
         verify: bool = False) -> GraphModule:  # fmt: skip
    """Returns the GraphModule of a .cfx file: a path, the bytes of one, a descriptor or an open
    file. Runs and imports nothing that the file names.

    `allow` names functions of yours that the graph may call, or modules of yours ("my.ops"); they
    must be imported already. `weights` are the tensors of a file without weights: a dict, a module,
    or the path of a .safetensors file. Weights are mapped, and read when they are used; `map=False`
    copies them, for a file that may be truncated. `verify` compares hashes, which reads the whole
    file."""
    if hasattr(source, "fileno"):
        try:
            source = source.fileno()
        except OSError:  # it has none: io.BytesIO
            source = source.read()
    name, producer, _, texts, found = _core._load_package(source, not map, verify,
                                                          weights is not None)
    for needed in ("graph.ir", "module.ir"):
        if needed not in texts:
            raise PackageError(f"the file, written by {producer}, has no {needed}")
    if found is None or weights is not None:
        found = _given_weights(weights)
    values = _value_of(texts["module.ir"], allow)
    try:
        file = _File(texts, allow, found)
        root = _build(values, found)
        for path, nested, _, settings, *_ in reversed(values["modules"]):
            if nested == _NESTED:
                outer, _, last = path.rpartition(".")
                owner = root.get_submodule(outer)
                owner._modules[last] = file.module(owner._modules[last], f"modules/{path}/",
                                                   settings["name"])
        return file.module(root, "", name, values.get("attributes", ()))
    except (StructureError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise PackageError(f"the file, written by {producer}, is damaged: {error}") from error


class _File:
    """The texts of a file, and what its modules are made of."""

    def __init__(self, texts: dict[str, str], allow: Any, weights: dict[str, Any]) -> None:
        self.texts, self.allow, self.weights = texts, tuple(allow), weights
        self.classes = Classes(self.allow)

    def _graph(self, home: str) -> tuple[Graph, dict[str, Any]]:
        """A graph and its signature; files of the first version have no signature."""
        graph = parse(self.texts[f"{home}graph.ir"], allow=self.allow)
        source = self.texts.get(f"{home}signature.ir")
        return graph, _value_of(source, self.allow) if source is not None else {}

    def module(self, root: torch.nn.Module, home: str, name: str,
               attributes: Any = ()) -> GraphModule:  # fmt: skip
        """The module around the graphs of a folder, with the modules and tensors of `root`."""
        graph, signature = self._graph(home)
        if signature.get("structure") is None:
            module = GraphModule(root, graph, name or "GraphModule")
            _take_all(module, root)
            return module
        from .capturing.stored import module_from, put_attributes

        name = name or "Captured"
        module = module_from(root, graph, name, signature, self.classes)
        _take_all(module, root)
        put_attributes(module, attributes, lambda n: _torch(self.weights[n]), self.classes)
        for i in range(1, len(self.texts)):
            if f"{home}graphs/{i}/graph.ir" not in self.texts:
                break
            graph, signature = self._graph(f"{home}graphs/{i}/")
            other = module_from(root, graph, name, signature, self.classes, module)
            _take_all(other, root)
            for table in ("_parameters", "_buffers", "_modules"):
                other.__dict__[table] = module.__dict__[table]
            module._others.append(other)
        return module


def _given_weights(weights: Any) -> dict[str, Any]:
    if weights is None:
        raise PackageError("the weights of this file are kept elsewhere; give them with weights=")
    if isinstance(weights, (str, bytes, os.PathLike)):
        return dict(_core._load_weights(weights))
    return dict(weights if isinstance(weights, dict) else weights.state_dict())


__dir__ = public_names(globals())
_glue.find_torch()
