"""fuse_fx, prepare_fx, prepare_qat_fx and convert_fx: from a float model to one in integers."""
import copy
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from .._symbolic_trace import Tracer
from ..graph_module import GraphModule
from .backend import patterns_of
from .comparing import keep_within
from .custom import (
    convert_modules, forget_qconfigs, from_config, ignored, leaf_classes, leaf_names, list_of,
    note_qconfigs, patterns_of_modules, prepare_modules,
)  # fmt: skip
from .correcting import correct_bias as corrected
from .host import Host
from .qconfig_mapping import QConfigMapping
from .rules import find_qconfigs, rules_of
from .specs import config_of, is_observer
from .training import to_float

__all__ = ["fuse_fx", "prepare_fx", "prepare_qat_fx", "convert_fx"]


# ---- models and their graphs -------------------------------------------------------------------


class _QuantizationTracer(Tracer):
    """Modules that cannot be traced are called as they are."""

    def __init__(self, names: Iterable[str], classes: Iterable[type]) -> None:
        super().__init__()
        self._names = set(names)
        self._classes = tuple(classes)
        self.record_stack_traces = True

    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        return (module_qualified_name in self._names or type(m) in self._classes
                or m.__module__.startswith("torch.ao.nn.")
                or super().is_leaf_module(m, module_qualified_name))  # fmt: skip


def _call_plainly(model: Any) -> None:
    """Lets FloatFunctional, which models for torch.ao's eager mode call instead of `+`, be the
    functions that it calls: no observers of its own, and no modules that look like layers."""
    modules = model.modules() if isinstance(model, torch.nn.Module) else ()
    for parent in list(modules):
        for name, child in list(parent.named_children()):
            if type(child).__name__ == "FloatFunctional":
                from torch.ao.nn.quantized import FloatFunctional, FXFloatFunctional

                if type(child) is FloatFunctional:
                    setattr(parent, name, FXFloatFunctional())


def _integer_inputs(gm: GraphModule, example_inputs: Any) -> list[int]:
    """The places of inputs that are not tensors of floats, such as tokens and masks."""
    inputs = [node for node in gm.graph.nodes if node.op == "placeholder"]
    values = list(example_inputs) if isinstance(example_inputs, Sequence) else []
    if len(values) > len(inputs) or any(isinstance(v, (tuple, list, dict)) for v in values):
        values = torch.utils._pytree.tree_leaves(example_inputs)
        values = values if len(values) == len(inputs) else []
    return [i for i, v in enumerate(values) if isinstance(v, torch.Tensor)
            and not v.is_floating_point() and not v.is_complex()]  # fmt: skip


def _graph_module(model: Any, config: Any) -> GraphModule:
    """A graph of its own for the model, whose weights are copied."""
    kept = {name: getattr(model, name) for name in list_of(config, "preserved_attributes")
            if hasattr(model, name)}  # fmt: skip
    model = copy.deepcopy(model)
    _call_plainly(model)
    if isinstance(model, GraphModule):
        gm = model
    elif isinstance(model, torch.nn.Module):
        tracer = _QuantizationTracer(leaf_names(config), leaf_classes(config))
        graph = tracer.trace(model)
        gm = GraphModule(tracer.root, graph, type(model).__name__)
        gm.train(model.training)
    else:
        raise TypeError(f"expected a torch.nn.Module, got {type(model).__name__}")
    _preserve(gm, kept)
    return gm


def _preserve(gm: GraphModule, kept: dict[str, Any]) -> None:
    """Attributes that preparing and converting keep, in the graph's `meta`, too."""
    gm.meta["_user_preserved_attributes"] = kept
    for name, value in kept.items():
        setattr(gm, name, value)


def _mapping_of(mapping: Any) -> Any:
    if isinstance(mapping, dict):
        return QConfigMapping.from_dict(mapping)
    if not hasattr(mapping, "global_qconfig"):
        raise TypeError(f"expected a QConfigMapping or a dict, got {type(mapping).__name__}")
    return mapping


def _finish(gm: GraphModule) -> GraphModule:
    gm.graph.lint()
    gm.recompile()
    gm.delete_all_unused_submodules()
    return gm


# ---- the four functions ------------------------------------------------------------------------


def fuse_fx(model: torch.nn.Module, fuse_custom_config: Any = None,
            backend_config: Any = None) -> GraphModule:  # fmt: skip
    """Returns a copy of the model as a GraphModule in which batch-norms are part of the weights of
    the layers before them. The model must be in eval mode."""
    config = from_config(fuse_custom_config, "FuseCustomConfig")
    if model.training:
        raise ValueError("fuse_fx folds batch-norms by their running statistics: call "
                         "model.eval() first, or prepare_qat_fx to train")  # fmt: skip
    gm = _graph_module(model, config)
    gm.graph._pass("fuse_bn", gm)
    return _finish(gm)


def _prepare(model: Any, mapping: Any, example_inputs: Any, config: Any, backend_config: Any,
             training: bool, every: bool | None,
             equalize: bool = False) -> GraphModule:  # fmt: skip
    given = patterns_of(backend_config)
    config = from_config(config, "PrepareCustomConfig")
    rules = rules_of(_mapping_of(mapping), config_of)
    captured = isinstance(model, GraphModule)
    gm = _graph_module(model, config)
    if captured:  # what works in place would change what was observed before; all is one dtype
        gm.graph._pass("functionalize", gm, {"same_dtypes": 1})
    if not training:
        gm.graph._pass("fuse_bn", gm)
        if equalize:
            gm.graph._pass("equalize", gm)
        if hasattr(gm, "_ask_for_no_gradients"):  # it was captured, and will run without them
            gm._ask_for_no_gradients()
    every = captured if every is None else every
    note_qconfigs(gm, rules.find(gm.graph, gm))
    patterns = [*(given or ()), *patterns_of_modules(gm, config)]
    left = gm.graph._quantize_prepare(gm, Host(gm), rules, training, every,
                                      list_of(config, "input_quantized_indexes"),
                                      _integer_inputs(gm, example_inputs),
                                      patterns if patterns or given is not None else None,
                                      given is None)  # fmt: skip
    prepare_modules(gm, config, prepare_qat_fx if training else prepare_fx)
    gm.meta["quantized_inputs"] = list_of(config, "input_quantized_indexes")
    gm.meta["quantized_outputs"] = list_of(config, "output_quantized_indexes")
    gm.meta["left_in_float"] = left + ignored(gm, config)
    gm.meta["quantization"] = "prepared"
    return _finish(gm)


def prepare_fx(model: torch.nn.Module, qconfig_mapping: Any, example_inputs: Sequence[Any],
               prepare_custom_config: Any = None, _equalization_config: Any = None,
               backend_config: Any = None, *, every_spelling: bool | None = None,
               equalize: bool = False) -> GraphModule:  # fmt: skip
    """Returns a copy of the model with observers where values become integers: run it on some
    inputs, then convert it with `convert_fx`. Batch-norms that are training are not folded.

    `model` is a module, which is traced, or a GraphModule of cfx (`cfx.capture`, `cfx.script`,
    `cfx.symbolic_trace`), whose graph is used. `qconfig_mapping` is PyTorch's or ours. Observers
    stand where PyTorch's FX mode puts them; tensors of integers or truth values among the
    `example_inputs` are not observed, nor what is reshaped of them. With `every_spelling`, which
    is the default for a GraphModule, `x.flatten(1)` is observed as `torch.flatten(x, 1)` is. With
    `equalize` the channels of consecutive layers are evened out first, for weights with one scale;
    so they are with an `_equalization_config` of torch.ao's that has a rule.
    `result.meta["left_in_float"]` lists the calls that have a configuration but stay float, with
    the reason."""
    return _prepare(model, qconfig_mapping, example_inputs, prepare_custom_config,
                    backend_config, False, every_spelling,
                    equalize or _equalizes(_equalization_config))  # fmt: skip


def prepare_qat_fx(model: torch.nn.Module, qconfig_mapping: Any, example_inputs: Sequence[Any],
                   prepare_custom_config: Any = None, backend_config: Any = None, *,
                   every_spelling: bool | None = None) -> GraphModule:  # fmt: skip
    """Likewise for training: values and weights are rounded as they will be in integers, and the
    gradient passes as if they were not. Train it in training mode (`train()`), in which
    batch-norms learn; convert it with `convert_fx`."""
    return _prepare(model, qconfig_mapping, example_inputs, prepare_custom_config,
                    backend_config, True, every_spelling)  # fmt: skip


def convert_fx(graph_module: GraphModule, convert_custom_config: Any = None,
               _remove_qconfig: bool = True, qconfig_mapping: Any = None,
               backend_config: Any = None, keep_original_weights: bool = False, *,
               keep: Iterable[str] = (), max_error: float | None = None,
               correct_bias: bool = False, samples: Any = ()) -> GraphModule:  # fmt: skip
    """Returns a copy of a prepared and calibrated model in the reference form: integers between
    operators, int8 weights, float arithmetic. `cfx.compile` makes integer arithmetic of it.

    What `keep` names stays float: nodes, or modules with all that is in them; and so do the calls
    that `qconfig_mapping`, that of prepare_fx with None at some places, gives None. With
    `max_error`, so do more nodes, those first that add most, until the results of the model are at
    most that far off on the `samples` (the inputs of each call: a tensor, or a tuple of arguments):
    the norm of the difference, divided by that of the float result. With `correct_bias`, biases
    make up on the samples for what rounding shifts, as `cfx.quantize.correct_bias` does.
    `result.meta["left_in_float"]` lists all that stay float, with the reason. With
    `keep_original_weights`, `result.original_weights_lookup` has the float weight and bias of each
    layer, by its path."""
    one = functools.partial(_convert, graph_module, convert_custom_config=convert_custom_config,
                            forget=_remove_qconfig, originals=keep_original_weights)
    names = [keep] if isinstance(keep, str) else list(keep)
    names += _without_config(graph_module, qconfig_mapping)
    if max_error is not None and not max_error > 0:
        raise ValueError(f"max_error must be above 0, such as 0.05; got {max_error!r}")
    if max_error is None and not correct_bias:
        return one(names)
    if isinstance(samples, Sequence) and len(samples) == 0:
        raise ValueError(f"{'correct_bias' if correct_bias else 'max_error'} needs "
                         "samples=[(input, ...), ...], inputs to measure with")  # fmt: skip
    if not isinstance(samples, (torch.Tensor, tuple)):
        samples = list(samples)

    def convert(kept: list[str]) -> GraphModule:
        converted = one(kept)
        if correct_bias:
            converted = corrected(copy.deepcopy(graph_module), converted, samples)
        return converted

    if max_error is None:
        return convert(names)
    return keep_within(graph_module, convert, names, samples, max_error)


def _without_config(gm: Any, mapping: Any) -> list[str]:
    """The calls that the mapping gives None."""
    if mapping is None or not isinstance(gm, GraphModule):
        return []
    gm = copy.deepcopy(gm)
    to_float(gm)  # rules are about the classes of the model, not about those that it was trained in
    modules = dict(gm.named_modules(remove_duplicate=False))
    found = find_qconfigs(gm, _mapping_of(mapping))
    return [node.name for node in gm.graph.nodes
            if node.op.startswith("call_") and node.name in found and found[node.name] is None
            and not is_observer(modules.get(node.target))]  # fmt: skip


def _equalizes(config: Any) -> bool:
    """Whether an `_equalization_config` of torch.ao's asks for it anywhere."""
    if config is None:
        return False
    mapping = _mapping_of(config)
    rules = (mapping.object_type_qconfigs, mapping.module_name_regex_qconfigs,
             mapping.module_name_qconfigs, mapping.module_name_object_type_order_qconfigs)
    return mapping.global_qconfig is not None or any(
        q is not None for of in rules for q in of.values())


def _dequantize_inputs(gm: GraphModule, places: Sequence[int]) -> None:
    """Inputs that are quantized tensors of PyTorch's (`torch.quantize_per_tensor`), which know
    their own scale."""
    inputs = [node for node in gm.graph.nodes if node.op == "placeholder"]
    for node in (inputs[i] for i in places if i < len(inputs)):
        users = list(node.users)
        with gm.graph.inserting_after(node):
            real = gm.graph.call_method("dequantize", (node,))
        for user in users:
            user.replace_input_with(node, real)


def _originals(before: GraphModule, after: GraphModule) -> dict[str, list[Any]]:
    """{path of a layer, or of a weight: [weight, bias or None]} of what integers replaced."""
    values = {**dict(before.named_parameters()), **dict(before.named_buffers())}
    left = {*dict(after.named_parameters()), *dict(after.named_buffers())}
    integers = {path.rpartition("_")[0] for path in left if path.endswith("_scale")}
    layers = {path: path.removesuffix(".weight") for path in integers & values.keys()}
    return {layer: [values[path], values.get(f"{layer}.bias")] for path, layer in layers.items()}


def _forget_removed(gm: GraphModule) -> None:
    """Recurrent modules hold their weights in a list, too."""
    for module in gm.modules():
        names = getattr(module, "_flat_weights_names", None)
        if names is not None:
            module._flat_weights = [getattr(module, name, None) for name in names]


def _convert(graph_module: GraphModule, keep: list[str], *, convert_custom_config: Any = None,
             forget: bool = True, originals: bool = False) -> GraphModule:  # fmt: skip
    if not isinstance(graph_module, GraphModule):
        raise TypeError("convert_fx takes what prepare_fx returned, got "
                        f"{type(graph_module).__name__}")  # fmt: skip
    if graph_module.meta.get("quantization") == "converted":
        raise ValueError("the model is converted already: convert_fx takes what prepare_fx "
                         "returned")  # fmt: skip
    from torch.ao.quantization.fx import _decomposed  # noqa: F401  (registers the operators)

    config = from_config(convert_custom_config, "ConvertCustomConfig")
    gm = copy.deepcopy(graph_module)
    _preserve(gm, {**gm.meta.get("_user_preserved_attributes", {}), **{
        name: getattr(graph_module, name) for name in list_of(config, "preserved_attributes")
        if hasattr(graph_module, name)}})  # fmt: skip
    stage, gm.meta["quantization"] = gm.meta.get("quantization"), "converted"
    convert_modules(gm, config, functools.partial(
        _convert, keep=[], convert_custom_config=config, forget=forget, originals=originals))
    if stage != "prepared" or any(is_observer(m) for m in gm.modules()):
        to_float(gm)
        plain = () if gm.meta.get("standalone") else gm.meta.get("quantized_outputs", ())
        left = gm.graph._quantize_convert(gm, Host(gm), keep, list(plain))
        gm.meta["left_in_float"] = [*gm.meta.get("left_in_float", ()), *left]
        _dequantize_inputs(gm, gm.meta.get("quantized_inputs", ()))
        _forget_removed(gm)
    if originals:
        gm.original_weights_lookup = _originals(graph_module, gm)
    if forget:
        forget_qconfigs(gm)
    return _finish(gm)
