"""Modules that are quantized by classes of your own, or apart from the model around them: what the
custom configs of torch.ao say of them.

Such a module is one call in the graph. Between the model and it are tensors of PyTorch's quantized
types, which know their scale: `torch.quantize_per_tensor` before it, `dequantize` behind it.
"""
from collections.abc import Callable
from typing import Any

import torch

from ..graph_module import GraphModule
from .backend import Pattern, any_types
from .qconfig_mapping import QConfigMapping
from .specs import is_observer, spec_of

_OWN, _TAKEN = 0, 4  # cfx_backend_result: OWN, GIVEN


def from_config(config: Any, cls_name: str) -> Any:
    """A custom config of torch.ao, from a dict as older programs write it."""
    if not isinstance(config, dict):
        return config
    from torch.ao.quantization.fx import custom_config

    return getattr(custom_config, cls_name).from_dict(config)


def list_of(config: Any, name: str) -> list[Any]:
    return list(getattr(config, name, None) or ())


def _classes(config: Any, name: str) -> dict[str, dict[type, type]]:
    """{"STATIC": {class: class}} of a mapping by torch.ao's QuantType."""
    mapping = getattr(config, name, None) or {}
    return {getattr(kind, "name", str(kind)): dict(classes) for kind, classes in mapping.items()}


# What they give is not one tensor, which could be observed.
_GIVE_MORE = (torch.nn.RNNBase, torch.nn.LSTMCell, torch.nn.MultiheadAttention)


def _observed(config: Any) -> dict[str, dict[type, type]]:
    """The observed classes of float ones; not of those that give several tensors."""
    mapping = _classes(config, "float_to_observed_mapping")
    return {kind: {f: o for f, o in classes.items() if not issubclass(f, _GIVE_MORE)}
            for kind, classes in mapping.items()}  # fmt: skip


def leaf_names(config: Any) -> list[str]:
    """The modules that are not traced into, by name and by class."""
    return [*list_of(config, "non_traceable_module_names"),
            *(getattr(config, "standalone_module_names", None) or {})]  # fmt: skip


def leaf_classes(config: Any) -> list[type]:
    observed = _observed(config)
    return [*list_of(config, "non_traceable_module_classes"),
            *(getattr(config, "standalone_module_classes", None) or {}),
            *(cls for classes in observed.values() for cls in classes)]  # fmt: skip


def _modules(gm: GraphModule) -> dict[str, Any]:
    return dict(gm.named_modules(remove_duplicate=False))


def _calls(gm: GraphModule, fits: Callable[[str, Any], Any]) -> list[tuple[Any, Any]]:
    """The calls of modules for whose path and module `fits` gives something, with that."""
    modules = _modules(gm)
    found = [(node, fits(str(node.target), modules[node.target])) for node in gm.graph.nodes
             if node.op == "call_module" and node.target in modules]  # fmt: skip
    return [(node, what) for node, what in found if what]


def _put(gm: GraphModule, path: str, module: torch.nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(gm.get_submodule(parent), name, module)


def _kind_of(qconfig: Any) -> str:
    spec = spec_of(qconfig.activation())
    kinds = {"each_run": "DYNAMIC", "nothing": "WEIGHT_ONLY"}
    return kinds.get(spec["observer"], "STATIC")


def note_qconfigs(gm: GraphModule, found: dict[str, Any]) -> None:
    """Modules that the graph calls know their QConfig, and so do those in them."""
    for node, module in _calls(gm, lambda path, module: module):
        for inner in module.modules():
            inner.qconfig = found.get(node.name)


def forget_qconfigs(gm: GraphModule) -> None:
    for module in gm.modules():
        module.__dict__.pop("qconfig", None)


# ---- preparing ---------------------------------------------------------------------------------


def _standalone(config: Any) -> Callable[[str, Any], Any]:
    names = getattr(config, "standalone_module_names", None) or {}
    classes = getattr(config, "standalone_module_classes", None) or {}
    return lambda path, module: names.get(path) or classes.get(type(module))


def _takes_integers(entry: Any) -> bool:
    return bool(list_of(entry.prepare_custom_config, "input_quantized_indexes"))


def patterns_of_modules(gm: GraphModule, config: Any) -> list[Pattern]:
    """What is observed around the modules of a custom config."""
    static = _observed(config).get("STATIC", {})
    patterns: list[Pattern] = [((cls,), _OWN, [any_types()]) for cls in static]
    apart = _calls(gm, _standalone(config))
    modules = _modules(gm)
    taking = {type(modules[node.target]) for node, entry in apart if _takes_integers(entry)}
    return patterns + [((cls,), _TAKEN, [any_types()]) for cls in taking]


def ignored(gm: GraphModule, config: Any) -> list[tuple[str, str]]:
    """The calls of modules whose observed classes are not used, with the reason."""
    named = _classes(config, "float_to_observed_mapping").values()
    why = "its class gives several tensors; an observed class has to give one"
    calls = _calls(gm, lambda path, module: isinstance(module, _GIVE_MORE)
                   and any(type(module) in classes for classes in named))  # fmt: skip
    return [(node.name, why) for node, _ in calls]


def prepare_modules(gm: GraphModule, config: Any, prepare: Callable[..., Any]) -> None:
    """Puts observed classes in the place of float ones, and prepares what stands alone."""
    observed = _observed(config)
    for node, cls in _calls(gm, lambda path, module: next(
            (c[type(module)] for c in observed.values() if type(module) in c), None)):  # fmt: skip
        module = gm.get_submodule(node.target)
        if getattr(module, "qconfig", None) is not None and not isinstance(module, cls):
            made = cls.from_float(module)
            made.qconfig = module.qconfig
            _put(gm, node.target, made)
    for node, entry in _calls(gm, _standalone(config)):
        module = gm.get_submodule(node.target)
        if isinstance(module, GraphModule):
            continue  # it is called more than once
        mapping = entry.qconfig_mapping
        if mapping is None:
            mapping = QConfigMapping().set_global(module.qconfig)
        child = prepare(module, mapping, entry.example_inputs,
                        prepare_custom_config=entry.prepare_custom_config,
                        backend_config=entry.backend_config)  # fmt: skip
        child.meta["standalone"] = True
        _put(gm, node.target, child)


# ---- converting --------------------------------------------------------------------------------


def _quantized(gm: GraphModule, node: Any, value: Any, observer: Any) -> Any:
    """`value` as a tensor of a quantized type, before `node`."""
    scale, zero = observer.calculate_qparams()[:2]
    with gm.graph.inserting_before(node):
        return gm.graph.call_function(
            torch.quantize_per_tensor, (value, float(scale), int(zero), observer.dtype))


def _let_take(gm: GraphModule, node: Any) -> None:
    """Lets a call read tensors of quantized types, where it read observers."""
    modules = _modules(gm)
    for source in list(node.all_input_nodes):
        observer = modules.get(source.target) if source.op == "call_module" else None
        if is_observer(observer):
            node.replace_input_with(source, _quantized(gm, node, source.args[0], observer))
            if not source.users:
                gm.graph.erase_node(source)


def _let_give(gm: GraphModule, node: Any) -> Any:
    """Dequantizes what a call gives; returns the observer that stood there."""
    modules = _modules(gm)
    users = list(node.users)
    observers = [u for u in users if u.op == "call_module" and is_observer(modules.get(u.target))]
    with gm.graph.inserting_after(node):
        real = gm.graph.call_method("dequantize", (node,))
    for user in users:
        user.replace_input_with(node, real)
    for user in observers:
        user.replace_all_uses_with(real)
        gm.graph.erase_node(user)
    return modules[observers[0].target] if observers else None


def _convert_custom(gm: GraphModule, node: Any, classes: dict[str, dict[type, type]]) -> None:
    module = gm.get_submodule(node.target)
    kind = _kind_of(module.qconfig) if getattr(module, "qconfig", None) else ""
    made = [cls for of in classes.values() for cls in of.values()]
    static = kind == "STATIC" and (type(module) in classes.get(kind, {}) or type(module) in made)
    if static:
        _let_take(gm, node)
        observer = _let_give(gm, node)
        if observer is not None and type(module) not in made:
            module.activation_post_process = observer
    cls: Any = classes.get(kind, {}).get(type(module))
    if cls is not None:
        converted = cls.from_observed(module)
        converted.qconfig = module.qconfig
        _put(gm, node.target, converted)


def convert_modules(gm: GraphModule, config: Any, convert: Callable[[Any], Any]) -> None:
    """Puts quantized classes in the place of observed ones, and converts what stands alone."""
    classes = _classes(config, "observed_to_quantized_mapping")
    if gm.meta.get("standalone") and gm.meta.get("quantized_outputs"):
        _let_take(gm, next(node for node in gm.graph.nodes if node.op == "output"))
    known = {cls for of in classes.values() for cls in of}
    if known:
        custom = {id(m) for _, m in _modules(gm).items() if type(m) in known}
        paths = {path for path, m in _modules(gm).items() if id(m) in custom}
        for node, _ in _calls(gm, lambda path, module: path in paths):
            _convert_custom(gm, node, classes)
    apart = _calls(gm, lambda path, module: module if isinstance(module, GraphModule)
                   and module.meta.get("standalone") else None)  # fmt: skip
    for node, child in apart:
        if child.meta.get("quantized_inputs"):
            _let_take(gm, node)
        if child.meta.get("quantized_outputs"):
            _let_give(gm, node)
    for path, child in {node.target: child for node, child in apart}.items():
        _put(gm, path, convert(child))
