"""QConfigMapping: which layer has which QConfig, with torch.ao.quantization's methods."""
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from . import fake_quantize as fq
from . import observer as ob
from .qconfig import (
    QConfig, default_quint8_weight_qconfig, default_reuse_input_qconfig, get_default_qat_qconfig,
    get_default_qconfig,
)  # fmt: skip

# What the values of these lie between is known: 0 and 1, or -1 and 1.
_FROM_0_TO_1 = (torch.nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_",
                torch.nn.Sigmoid, torch.sigmoid, "sigmoid", "sigmoid_", torch.nn.Softmax)
_FROM_NEG1_TO_1 = (torch.nn.Tanh, torch.tanh, "tanh", "tanh_")

# attribute -> key in the dict of to_dict, from the least particular rule to the most
_STYLES = {
    "global_qconfig": "",
    "object_type_qconfigs": "object_type",
    "module_name_regex_qconfigs": "module_name_regex",
    "module_name_qconfigs": "module_name",
    "module_name_object_type_order_qconfigs": "module_name_object_type_order",
}


class QConfigMapping:
    """Rules that say which QConfig a layer has; None: it stays float.

    The most particular rule wins: `set_module_name_object_type_order`, `set_module_name`,
    `set_module_name_regex`, `set_object_type`, `set_global`. docs/quantization.md says what each
    applies to.
    """

    def __init__(self) -> None:
        self.global_qconfig: Any = None
        self.object_type_qconfigs: OrderedDict[Callable | str, Any] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[tuple, Any] = OrderedDict()

    def set_global(self, global_qconfig: Any) -> "QConfigMapping":
        """For everything that no other rule applies to."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Callable | str, qconfig: Any) -> "QConfigMapping":
        """For a class of modules, a function, or a method by its name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: Any) -> "QConfigMapping":
        """For modules whose names `re.match` matches; the first rule that does counts."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: Any) -> "QConfigMapping":
        """For a module, and those in it that have no rule of their own."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Callable, index: int, qconfig: Any
    ) -> "QConfigMapping":
        """For the index-th call of a class or function directly in a module, from 0 on."""
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for style in _STYLES:
            value = getattr(self, style)
            many = isinstance(value, OrderedDict) and value
            lines.append(f" {style}")
            lines += [f"  {k}: {v}" for k, v in value.items()] if many else [f"  {value}"]
        return "\n".join([*lines, ")"])

    def to_dict(self) -> dict[str, Any]:
        """Lists of tuples, under "", "object_type", "module_name_regex", "module_name" and
        "module_name_object_type_order"."""
        result = {key: list(getattr(self, style).items())
                  for style, key in _STYLES.items() if key}  # fmt: skip
        last = "module_name_object_type_order"
        result[last] = [(*key, qconfig) for key, qconfig in result[last]]
        return {"": self.global_qconfig, **result}

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> "QConfigMapping":
        """The mapping that `to_dict` made the dict of. Every key may be missing."""
        result = cls()
        if "" in qconfig_dict:
            result.set_global(qconfig_dict[""])
        for key in filter(None, _STYLES.values()):
            set_one = getattr(result, f"set_{key}")
            for rule in qconfig_dict.get(key, ()):
                set_one(*rule)
        return result


def _default(qconfig: QConfig, weight: Any, backend: str, qat: bool) -> QConfigMapping:
    """The rules that all defaults share, around the configuration of most layers."""
    transposed = QConfig(qconfig.activation, weight) if backend in ("x86", "fbgemm") else qconfig
    norm = QConfig(qconfig.activation, ob.default_placeholder_observer)
    mapping = QConfigMapping().set_global(qconfig)
    mapping.set_object_type("reshape", default_reuse_input_qconfig)
    for type_ in (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d,
                  F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d):
        mapping.set_object_type(type_, transposed)
    mapping.set_object_type(F.layer_norm, norm).set_object_type(torch.nn.LayerNorm, norm)
    mapping.set_object_type(torch.nn.PReLU, default_quint8_weight_qconfig)
    for types, observer in ((_FROM_0_TO_1, ob.default_fixed_qparams_range_0to1_observer),
                            (_FROM_NEG1_TO_1, ob.default_fixed_qparams_range_neg1to1_observer)):
        activation = observer
        if qat:
            activation = fq.FixedQParamsFakeQuantize.with_args(observer=observer)
        fixed = QConfig(activation, weight)
        for type_ in types:
            mapping.set_object_type(type_, fixed)
    return mapping


def get_default_qconfig_mapping(backend="x86", version=0) -> QConfigMapping:
    """The usual rules for quantization after training: `get_default_qconfig`, with exceptions for
    what it does not fit."""
    return _default(get_default_qconfig(backend, version), ob.default_weight_observer, backend,
                    qat=False)  # fmt: skip


def get_default_qat_qconfig_mapping(backend="x86", version=1) -> QConfigMapping:
    """The usual rules for training with quantization."""
    return _default(get_default_qat_qconfig(backend, version), fq.default_weight_fake_quant,
                    backend, qat=True)  # fmt: skip
