"""What an observer gives, as the core's passes see it: a plain tuple for each observer."""
from typing import Any

import torch

NOTHING, MIN_MAX, MOVING_AVERAGE, HISTOGRAM, PERCENTILE, FIXED, EACH_RUN, AS_INPUT = range(8)
PER_TENSOR, PER_CHANNEL, PER_GROUP = range(3)

Spec = tuple[int, torch.dtype, int, int, int, int, int, bool, float]

# PyTorch's quantized dtypes say how a tensor is stored; here it is integers.
_STORED = {"torch.quint8": torch.uint8, "torch.qint8": torch.int8, "torch.qint32": torch.int32,
           "torch.quint4x2": torch.uint8}  # fmt: skip
_FLOATS = (torch.float32, torch.float64, torch.bfloat16, None)
_RANGES = {torch.uint8: (0, 255), torch.int8: (-128, 127), torch.int16: (-32768, 32767),
           torch.int32: (-(2**31), 2**31 - 1)}  # fmt: skip
_NO_SPEC: Spec = (NOTHING, torch.float32, 0, 0, PER_TENSOR, 0, 0, False, 0.0)


def is_observer(module: Any) -> bool:
    """Whether it observes, or quantizes for training: PyTorch's kinds, ours and users'."""
    return isinstance(module, torch.nn.Module) and hasattr(module, "calculate_qparams")


def _observer_in(module: Any) -> Any:
    """The observer of a fake quantization, or the observer itself."""
    return getattr(module, "activation_post_process", module)


def _kind(module: Any, dtype: torch.dtype | None) -> int:
    name = type(_observer_in(module)).__name__
    if name == "NoopObserver":
        return NOTHING
    if name == "ReuseInputObserver":
        return AS_INPUT
    if getattr(module, "is_dynamic", False):
        return EACH_RUN
    if dtype in _FLOATS:
        return NOTHING
    return FIXED if name == "FixedQParamsObserver" else MIN_MAX


def _per(scheme: Any, module: Any) -> int:
    if getattr(module, "group_size", 0) or "group" in str(scheme):
        return PER_GROUP
    return PER_CHANNEL if "per_channel" in str(scheme) else PER_TENSOR


def spec_of(module: Any) -> Spec:
    """The spec of an observer or a fake quantization."""
    dtype = getattr(module, "dtype", torch.quint8)
    dtype = _STORED.get(str(dtype), dtype)
    kind = _kind(module, dtype)
    if kind != NOTHING and dtype == torch.float16:
        return (kind if kind == EACH_RUN else MIN_MAX, dtype, 0, 0, PER_TENSOR, 0, 0, False, 0.0)
    if kind == NOTHING:
        return _NO_SPEC
    low, high = _RANGES.get(dtype, (0, 255))
    inner = _observer_in(module)
    low, high = _first(module, inner, "quant_min", low), _first(module, inner, "quant_max", high)
    scheme = getattr(module, "qscheme", None) or getattr(inner, "qscheme", "")
    eps = _first(module, inner, "eps", torch.finfo(torch.float32).eps)
    return (kind, dtype, int(low), int(high), _per(scheme, inner),
            int(_first(module, inner, "ch_axis", 0)), int(getattr(inner, "group_size", 0)),
            "symmetric" in str(scheme), float(eps))  # fmt: skip


def _first(module: Any, inner: Any, name: str, otherwise: Any) -> Any:
    for where in (module, inner):
        value = getattr(where, name, None)
        if value is not None:
            return value
    return otherwise


def weight_spec_of(module: Any) -> Spec:
    """Likewise of weights: those in float16 are rounded once."""
    spec = spec_of(module)
    return (EACH_RUN, *spec[1:]) if spec[1] == torch.float16 else spec


def config_row(qconfig: Any) -> tuple[Spec, Spec, Any] | None:
    """(activation, weight, qconfig) for the core; None if everything stays float."""
    if qconfig is None:
        return None
    return spec_of(qconfig.activation()), weight_spec_of(qconfig.weight()), qconfig
