"""QConfig: how the results of a layer, and its weights, become integers.

Names and defaults are torch.ao.quantization's; those with "weight_only" in their names and groups
are ours.
"""
import functools
from typing import Any, NamedTuple

import torch

from . import fake_quantize as fq
from . import observer as ob


class _QConfig(NamedTuple):
    activation: Any
    weight: Any


class QConfig(_QConfig):
    """Constructors of observers, or of fake quantization, for activations and for weights: classes
    (`HistogramObserver`) or classes with arguments (`MinMaxObserver.with_args(...)`)."""

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> "QConfig":
        if isinstance(activation, torch.nn.Module) or isinstance(weight, torch.nn.Module):
            raise ValueError(
                "a QConfig has classes of observers, not observers: each value gets its own; pass "
                "MinMaxObserver.with_args(x=1), for instance"
            )
        return super().__new__(cls, activation, weight)


default_qconfig = QConfig(ob.default_observer, ob.default_weight_observer)
default_debug_qconfig = QConfig(ob.default_debug_observer, ob.default_weight_observer)
default_per_channel_qconfig = QConfig(ob.default_observer, ob.default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(ob.default_dynamic_quant_observer, ob.default_weight_observer)
float16_dynamic_qconfig = QConfig(
    ob.PlaceholderObserver.with_args(dtype=torch.float16, is_dynamic=True),
    ob.PlaceholderObserver.with_args(dtype=torch.float16),
)
float16_static_qconfig = QConfig(
    ob.PlaceholderObserver.with_args(dtype=torch.float16),
    ob.PlaceholderObserver.with_args(dtype=torch.float16),
)
per_channel_dynamic_qconfig = QConfig(
    ob.default_dynamic_quant_observer, ob.default_per_channel_weight_observer
)
float_qparams_weight_only_qconfig = QConfig(
    ob.default_placeholder_observer, ob.default_float_qparams_observer
)
float_qparams_weight_only_qconfig_4bit = QConfig(
    ob.default_placeholder_observer, ob.default_float_qparams_observer_4bit
)
default_quint8_weight_qconfig = QConfig(ob.HistogramObserver, ob.MinMaxObserver)
default_qat_qconfig = QConfig(fq.default_fake_quant, fq.default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(fq.default_dynamic_fake_quant, fq.default_weight_fake_quant)
default_weight_only_qconfig = QConfig(torch.nn.Identity, fq.default_weight_fake_quant)
default_activation_only_qconfig = QConfig(fq.default_fake_quant, torch.nn.Identity)
default_qat_qconfig_v2 = QConfig(fq.default_fused_act_fake_quant, fq.default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(ob.default_reuse_input_observer, ob.NoopObserver)
default_embedding_qat_qconfig = QConfig(
    ob.NoopObserver.with_args(dtype=torch.float32), fq.default_embedding_fake_quant
)
default_embedding_qat_qconfig_4bit = QConfig(
    ob.NoopObserver.with_args(dtype=torch.float32), fq.default_embedding_fake_quant_4bit
)

_qnnpack_activation = ob.HistogramObserver.with_args(
    dtype=torch.qint8, reduce_range=False, eps=2**-12
)
_qnnpack_fake_quant = fq.FusedMovingAvgObsFakeQuantize.with_args(
    observer=ob.MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=torch.qint8,
    reduce_range=False, eps=2**-12,
)  # fmt: skip
default_symmetric_qnnpack_qconfig = QConfig(
    _qnnpack_activation, ob.weight_observer_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    _qnnpack_activation, ob.per_channel_weight_observer_range_neg_127_to_127
)
default_symmetric_qnnpack_qat_qconfig = QConfig(
    _qnnpack_fake_quant, fq.fused_wt_fake_quant_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _qnnpack_fake_quant, fq.fused_per_channel_wt_fake_quant_range_neg_127_to_127
)

# Weights alone: activations stay floats.
int8_weight_only_qconfig = QConfig(
    ob.default_placeholder_observer, ob.default_per_channel_weight_observer
)


def int4_weight_only_qconfig(group_size: int = 32) -> QConfig:
    """Weights of 4 bits, with a scale for each `group_size` elements of a row."""
    weight = ob.PerGroupMinMaxObserver.with_args(group_size=group_size, quant_min=-8, quant_max=7)
    return QConfig(ob.default_placeholder_observer, weight)


# ---- by backend

# Whether the range of activations is halved, so that sums of two products fit in 16 bits; and
# whether weights have a scale for each channel.
_BACKENDS = {
    "x86": (True, True), "fbgemm": (True, True), "onednn": (False, True),
    "qnnpack": (False, False),
}  # fmt: skip


def _backend(name: str) -> tuple[bool, bool]:
    if name not in _BACKENDS:
        raise AssertionError(f"backend {name!r} is not supported: use one of {list(_BACKENDS)}")
    return _BACKENDS[name]


def get_default_qconfig(backend="x86", version=0) -> QConfig:
    """What is usual after training: histograms of activations. Backends are `x86`, `fbgemm`,
    `qnnpack` and `onednn`; the integers of `onednn` are all of 0..255, which cfx's own kernels can
    use on every machine."""
    halved, per_channel = _backend(backend)
    if version != 0:
        raise AssertionError(f"version {version} of the default qconfig does not exist: use 0")
    return QConfig(
        ob.HistogramObserver.with_args(reduce_range=halved),
        ob.default_per_channel_weight_observer if per_channel else ob.default_weight_observer,
    )


def get_default_qat_qconfig(backend="x86", version=1) -> QConfig:
    """What is usual in training: moving averages, in one operator with the rounding (version 1), or
    apart (version 0)."""
    halved, per_channel = _backend(backend)
    if version not in (0, 1):
        raise AssertionError(f"version {version} of the QAT qconfig does not exist: use 0 or 1")
    class_ = fq.FusedMovingAvgObsFakeQuantize if version == 1 else fq.FakeQuantize
    range_args = {} if backend == "onednn" else {"reduce_range": halved}
    weights = {
        (0, False): fq.default_weight_fake_quant,
        (0, True): fq.default_per_channel_weight_fake_quant,
        (1, False): fq.default_fused_wt_fake_quant,
        (1, True): fq.default_fused_per_channel_wt_fake_quant,
    }
    activation = class_.with_args(
        observer=ob.MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **range_args
    )
    return QConfig(activation, weights[version, per_channel])


# ---- comparing

def _parts(constructor: Any) -> tuple[Any, dict[str, Any]]:
    """The class that a constructor makes, and its arguments. Those that are constructors, too, are
    taken apart as well."""
    p = getattr(constructor, "p", constructor)
    if not isinstance(p, functools.partial):
        return p, {}
    kwargs = {k: _parts(v) if hasattr(v, "p") else v for k, v in p.keywords.items()}
    return p.func, kwargs


def qconfig_equals(q1: Any, q2: Any) -> bool:
    """Whether two configurations make the same observers; None is equal to None."""
    if q1 is None or q2 is None:
        return q1 is q2
    return (_parts(q1.activation) == _parts(q2.activation)
            and _parts(q1.weight) == _parts(q2.weight))  # fmt: skip
