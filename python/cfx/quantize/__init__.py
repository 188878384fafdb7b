"""Models in integers: configure, observe, convert; under torch.ao.quantization's names.

docs/quantization.md describes it. Everything here is loaded when it is first asked for, because it
needs torch.
"""
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what is loaded when somebody asks for it
    from .comparing import Comparison, compare
    from .correcting import correct_bias
    from .fake_quantize import (
        FakeQuantize, FakeQuantizeBase, FixedQParamsFakeQuantize, FusedMovingAvgObsFakeQuantize,
        default_affine_fixed_qparams_fake_quant, default_dynamic_fake_quant,
        default_embedding_fake_quant, default_embedding_fake_quant_4bit, default_fake_quant,
        default_fixed_qparams_range_0to1_fake_quant, default_fixed_qparams_range_neg1to1_fake_quant,
        default_fused_act_fake_quant, default_fused_per_channel_wt_fake_quant,
        default_fused_wt_fake_quant, default_histogram_fake_quant,
        default_per_channel_weight_fake_quant, default_symmetric_fixed_qparams_fake_quant,
        default_weight_fake_quant, disable_fake_quant, disable_observer, enable_fake_quant,
        enable_observer, fused_per_channel_wt_fake_quant_range_neg_127_to_127,
        fused_wt_fake_quant_range_neg_127_to_127,
    )  # fmt: skip
    from .integers import stays_float
    from .merging import merge_observers
    from .observer import (
        FixedQParamsObserver, HistogramObserver, MinMaxObserver, MovingAverageMinMaxObserver,
        MovingAveragePerChannelMinMaxObserver, NoopObserver, ObserverBase, PerChannelMinMaxObserver,
        PerGroupMinMaxObserver, PercentileObserver, PlaceholderObserver, RecordingObserver,
        ReuseInputObserver, UniformQuantizationObserverBase, default_affine_fixed_qparams_observer,
        default_debug_observer, default_dynamic_quant_observer,
        default_fixed_qparams_range_0to1_observer, default_fixed_qparams_range_neg1to1_observer,
        default_float_qparams_observer, default_float_qparams_observer_4bit,
        default_histogram_observer, default_observer, default_per_channel_weight_observer,
        default_placeholder_observer, default_reuse_input_observer,
        default_symmetric_fixed_qparams_observer, default_weight_observer, get_observer_state_dict,
        load_observer_state_dict, per_channel_weight_observer_range_neg_127_to_127,
        weight_observer_range_neg_127_to_127,
    )  # fmt: skip
    from .preparing import convert_fx, fuse_fx, prepare_fx, prepare_qat_fx
    from .qconfig import (
        QConfig, default_activation_only_qconfig, default_debug_qconfig,
        default_dynamic_qat_qconfig, default_dynamic_qconfig, default_embedding_qat_qconfig,
        default_embedding_qat_qconfig_4bit, default_per_channel_qconfig,
        default_per_channel_symmetric_qnnpack_qat_qconfig,
        default_per_channel_symmetric_qnnpack_qconfig, default_qat_qconfig, default_qat_qconfig_v2,
        default_qconfig, default_quint8_weight_qconfig, default_reuse_input_qconfig,
        default_symmetric_qnnpack_qat_qconfig, default_symmetric_qnnpack_qconfig,
        default_weight_only_qconfig, float16_dynamic_qconfig, float16_static_qconfig,
        float_qparams_weight_only_qconfig, float_qparams_weight_only_qconfig_4bit,
        get_default_qat_qconfig, get_default_qconfig, int4_weight_only_qconfig,
        int8_weight_only_qconfig, per_channel_dynamic_qconfig, qconfig_equals,
    )  # fmt: skip
    from .qconfig_mapping import (
        QConfigMapping, get_default_qat_qconfig_mapping, get_default_qconfig_mapping,
    )  # fmt: skip
    from .rules import find_qconfigs, rules_of, spec_of

__all__ = [
    "Comparison", "compare", "correct_bias",
    "FakeQuantize", "FakeQuantizeBase", "FixedQParamsFakeQuantize", "FixedQParamsObserver",
    "FusedMovingAvgObsFakeQuantize", "HistogramObserver", "MinMaxObserver",
    "MovingAverageMinMaxObserver", "MovingAveragePerChannelMinMaxObserver", "NoopObserver",
    "ObserverBase", "PerChannelMinMaxObserver", "PerGroupMinMaxObserver", "PercentileObserver",
    "PlaceholderObserver", "QConfig", "QConfigMapping", "RecordingObserver", "ReuseInputObserver",
    "UniformQuantizationObserverBase", "convert_fx", "default_activation_only_qconfig",
    "default_affine_fixed_qparams_fake_quant", "default_affine_fixed_qparams_observer",
    "default_debug_observer", "default_debug_qconfig", "default_dynamic_fake_quant",
    "default_dynamic_qat_qconfig", "default_dynamic_qconfig", "default_dynamic_quant_observer",
    "default_embedding_fake_quant", "default_embedding_fake_quant_4bit",
    "default_embedding_qat_qconfig", "default_embedding_qat_qconfig_4bit", "default_fake_quant",
    "default_fixed_qparams_range_0to1_fake_quant", "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_observer", "default_float_qparams_observer",
    "default_float_qparams_observer_4bit", "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant", "default_fused_wt_fake_quant",
    "default_histogram_fake_quant", "default_histogram_observer", "default_observer",
    "default_per_channel_qconfig", "default_per_channel_symmetric_qnnpack_qat_qconfig",
    "default_per_channel_symmetric_qnnpack_qconfig", "default_per_channel_weight_fake_quant",
    "default_per_channel_weight_observer", "default_placeholder_observer", "default_qat_qconfig",
    "default_qat_qconfig_v2", "default_qconfig", "default_quint8_weight_qconfig",
    "default_reuse_input_observer", "default_reuse_input_qconfig",
    "default_symmetric_fixed_qparams_fake_quant", "default_symmetric_fixed_qparams_observer",
    "default_symmetric_qnnpack_qat_qconfig", "default_symmetric_qnnpack_qconfig",
    "default_weight_fake_quant", "default_weight_observer", "default_weight_only_qconfig",
    "disable_fake_quant", "disable_observer", "enable_fake_quant", "enable_observer",
    "find_qconfigs", "fuse_fx", "prepare_fx", "prepare_qat_fx", "float16_dynamic_qconfig",
    "float16_static_qconfig",
    "float_qparams_weight_only_qconfig", "float_qparams_weight_only_qconfig_4bit",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127",
    "fused_wt_fake_quant_range_neg_127_to_127", "get_default_qat_qconfig",
    "get_default_qat_qconfig_mapping", "get_default_qconfig", "get_default_qconfig_mapping",
    "get_observer_state_dict", "int4_weight_only_qconfig", "int8_weight_only_qconfig",
    "load_observer_state_dict", "merge_observers", "per_channel_dynamic_qconfig",
    "per_channel_weight_observer_range_neg_127_to_127", "qconfig_equals", "rules_of", "spec_of",
    "stays_float", "weight_observer_range_neg_127_to_127",
]  # fmt: skip

# module -> what is in it
_MODULES = {
    "comparing": ("Comparison", "compare"),
    "correcting": ("correct_bias",),
    "fake_quantize": (
        "FakeQuantize", "FakeQuantizeBase", "FixedQParamsFakeQuantize",
        "FusedMovingAvgObsFakeQuantize", "default_affine_fixed_qparams_fake_quant",
        "default_dynamic_fake_quant", "default_embedding_fake_quant",
        "default_embedding_fake_quant_4bit", "default_fake_quant",
        "default_fixed_qparams_range_0to1_fake_quant",
        "default_fixed_qparams_range_neg1to1_fake_quant", "default_fused_act_fake_quant",
        "default_fused_per_channel_wt_fake_quant", "default_fused_wt_fake_quant",
        "default_histogram_fake_quant", "default_per_channel_weight_fake_quant",
        "default_symmetric_fixed_qparams_fake_quant", "default_weight_fake_quant",
        "disable_fake_quant", "disable_observer", "enable_fake_quant", "enable_observer",
        "fused_per_channel_wt_fake_quant_range_neg_127_to_127",
        "fused_wt_fake_quant_range_neg_127_to_127",
    ),
    "integers": ("stays_float",),
    "merging": ("merge_observers",),
    "observer": (
        "FixedQParamsObserver", "HistogramObserver", "MinMaxObserver",
        "MovingAverageMinMaxObserver", "MovingAveragePerChannelMinMaxObserver", "NoopObserver",
        "ObserverBase", "PerChannelMinMaxObserver", "PerGroupMinMaxObserver", "PercentileObserver",
        "PlaceholderObserver", "RecordingObserver", "ReuseInputObserver",
        "UniformQuantizationObserverBase", "default_affine_fixed_qparams_observer",
        "default_debug_observer", "default_dynamic_quant_observer",
        "default_fixed_qparams_range_0to1_observer", "default_fixed_qparams_range_neg1to1_observer",
        "default_float_qparams_observer", "default_float_qparams_observer_4bit",
        "default_histogram_observer", "default_observer", "default_per_channel_weight_observer",
        "default_placeholder_observer", "default_reuse_input_observer",
        "default_symmetric_fixed_qparams_observer", "default_weight_observer",
        "get_observer_state_dict", "load_observer_state_dict",
        "per_channel_weight_observer_range_neg_127_to_127", "weight_observer_range_neg_127_to_127",
    ),
    "preparing": ("convert_fx", "fuse_fx", "prepare_fx", "prepare_qat_fx"),
    "qconfig": (
        "QConfig", "default_activation_only_qconfig", "default_debug_qconfig",
        "default_dynamic_qat_qconfig", "default_dynamic_qconfig", "default_embedding_qat_qconfig",
        "default_embedding_qat_qconfig_4bit", "default_per_channel_qconfig",
        "default_per_channel_symmetric_qnnpack_qat_qconfig",
        "default_per_channel_symmetric_qnnpack_qconfig", "default_qat_qconfig",
        "default_qat_qconfig_v2", "default_qconfig", "default_quint8_weight_qconfig",
        "default_reuse_input_qconfig", "default_symmetric_qnnpack_qat_qconfig",
        "default_symmetric_qnnpack_qconfig", "default_weight_only_qconfig",
        "float16_dynamic_qconfig", "float16_static_qconfig", "float_qparams_weight_only_qconfig",
        "float_qparams_weight_only_qconfig_4bit", "get_default_qat_qconfig", "get_default_qconfig",
        "int4_weight_only_qconfig", "int8_weight_only_qconfig", "per_channel_dynamic_qconfig",
        "qconfig_equals",
    ),
    "qconfig_mapping": (
        "QConfigMapping", "get_default_qat_qconfig_mapping", "get_default_qconfig_mapping",
    ),
    "rules": ("find_qconfigs", "rules_of", "spec_of"),
}  # fmt: skip
_LAZY = {name: module for module, names in _MODULES.items() for name in names}


def _load(module: str) -> Any:
    try:
        return importlib.import_module(f"{__name__}.{module}")
    except ModuleNotFoundError as e:
        if e.name != "torch":
            raise
        raise ImportError(f"{__name__}.{module} needs torch, which is not installed") from e


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _load(name)
    if name not in _LAZY:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = globals()[name] = getattr(_load(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, *(n for n in globals() if n.startswith("__"))})
