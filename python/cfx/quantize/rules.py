"""From configurations to what the C core knows: specs of values, and rules that find them.

Configurations of torch.ao.quantization do as well as ours: they are told by the names of their
classes and by their attributes, and torch.ao is never imported.
"""
import re
from collections.abc import Callable
from typing import Any

import torch

from cfx._core import Rules
from cfx.graph import Graph

from .observer import _INTEGERS, _SYMMETRIC

# Class of an observer -> kind of cfx_observer. A derived class is what its nearest base is.
_KINDS = {
    "HistogramObserver": "histogram", "PercentileObserver": "percentile",
    "MovingAverageMinMaxObserver": "moving_average",
    "MovingAveragePerChannelMinMaxObserver": "moving_average", "MinMaxObserver": "min_max",
    "PerChannelMinMaxObserver": "min_max", "PerGroupMinMaxObserver": "min_max",
    "FixedQParamsObserver": "fixed", "PlaceholderObserver": "placeholder",
    "NoopObserver": "placeholder", "ReuseInputObserver": "nothing",
    "RecordingObserver": "nothing", "Identity": "nothing",
}  # fmt: skip


def _kind(observer: Any) -> str:
    for class_ in type(observer).__mro__:
        if class_.__name__ in _KINDS:
            return _KINDS[class_.__name__]
    raise TypeError(
        f"cfx.quantize does not know observers of the class {type(observer).__qualname__}; derive "
        "it from one of cfx.quantize's or torch.ao.quantization's"
    )


def _integers(dtype: torch.dtype) -> tuple[str, int, int]:
    if dtype not in _INTEGERS:
        raise TypeError(f"cfx.quantize does not support the dtype {dtype}")
    return _INTEGERS[dtype]


def _placeholder(observer: Any) -> dict[str, Any] | None:
    """float16, integers with a scale chosen in each run, or a float."""
    if observer.dtype == torch.float16:
        return {"observer": "nothing", "dtype": "float16"}
    if not observer.is_dynamic:
        return None
    name, low, high = _integers(observer.dtype)
    if observer.quant_min is not None and observer.quant_max is not None:
        low, high = observer.quant_min, observer.quant_max
    return {"observer": "each_run", "dtype": name, "low": low, "high": high,
            "eps": float(observer.eps)}  # fmt: skip


def _middle(observer: Any, name: str) -> int:
    """The zero point of a symmetric scheme, as torch.ao has it; 0 if it is the usual one."""
    if name == "uint8":
        custom = observer.has_customized_qrange
        return (observer.quant_min + observer.quant_max) // 2 if custom else 128
    return 2**15 if name == "uint16" else 0


def _fixed(observer: Any, spec: dict[str, Any]) -> dict[str, Any]:
    return {**spec, "scale": float(observer.scale), "zero": int(observer.zero_point)}


def spec_of(constructor: Any) -> dict[str, Any] | None:
    """How a value becomes integers, by the constructor of its observer or fake quantization, or by
    the observer itself; None: it stays float."""
    observer = constructor
    if not isinstance(constructor, torch.nn.Module):
        if constructor is not None and not callable(constructor):
            raise TypeError("spec_of takes the class of an observer, or an observer; got "
                            f"{type(constructor).__name__}")
        observer = constructor() if constructor is not None else torch.nn.Identity()
    observer = getattr(observer, "activation_post_process", observer)
    kind = _kind(observer)
    if kind == "nothing":
        return None
    if kind == "placeholder":
        return _placeholder(observer)
    name = _integers(observer.dtype)[0]
    spec = {"observer": kind, "dtype": name, "low": observer.quant_min, "high": observer.quant_max}
    if kind == "fixed":
        return _fixed(observer, spec)
    if getattr(observer, "is_dynamic", False):
        spec["observer"] = "each_run"
    spec["eps"] = float(observer.eps)
    spec["symmetric"] = observer.qscheme in _SYMMETRIC
    if spec["symmetric"]:
        spec["zero"] = _middle(observer, name)
    if hasattr(observer, "group_size"):
        spec.update(per="group", group=observer.group_size)
    elif hasattr(observer, "ch_axis"):
        spec.update(per="channel", axis=observer.ch_axis)
    for field, attribute in (("averaging", "averaging_constant"), ("bins", "bins"),
                             ("percentile", "percentile")):  # fmt: skip
        if hasattr(observer, attribute):
            spec[field] = getattr(observer, attribute)
    return spec


def _config(qconfig: Any) -> tuple[Any, Any, Any] | None:
    if qconfig is None:
        return None
    return qconfig, spec_of(qconfig.activation), spec_of(qconfig.weight)


def rules_of(mapping: Any, specs: Callable[[Any], Any] = _config) -> Rules:
    """The core's rules of a QConfigMapping, ours or torch.ao's, or of such a dict. What they find
    is the QConfig itself; `specs` says what the core knows of it."""
    if isinstance(mapping, dict):
        from .qconfig_mapping import QConfigMapping
        mapping = QConfigMapping.from_dict(mapping)
    rules = Rules(lambda regex, name: re.match(regex, name) is not None)
    made: dict[int, Any] = {}  # many rules share a configuration: id(qconfig) -> its specs

    def config(qconfig: Any) -> Any:
        if id(qconfig) not in made:
            made[id(qconfig)] = specs(qconfig)
        return made[id(qconfig)]

    rules.set_global(config(mapping.global_qconfig))
    for type_, qconfig in mapping.object_type_qconfigs.items():
        rules.set_type(type_, config(qconfig))
    for regex, qconfig in mapping.module_name_regex_qconfigs.items():
        re.compile(regex)  # a wrong one fails here, and not at some node
        rules.set_regex(regex, config(qconfig))
    for name, qconfig in mapping.module_name_qconfigs.items():
        rules.set_name(name, config(qconfig))
    for (name, type_, index), qconfig in mapping.module_name_object_type_order_qconfigs.items():
        rules.set_order(name, type_, index, config(qconfig))
    return rules


def find_qconfigs(gm: Any, mapping: Any) -> dict[str, Any]:
    """{name of each node that calls or reads something: its QConfig, or None}."""
    if not isinstance(getattr(gm, "graph", None), Graph):
        raise TypeError(f"find_qconfigs takes a cfx.GraphModule, not {type(gm).__name__}: trace it "
                        "first with cfx.symbolic_trace")
    return rules_of(mapping).find(gm.graph, gm)
