"""What an observer gives, as the core's passes see it: a dict of the spec's fields."""
from typing import Any

import torch

Spec = dict[str, Any]

# PyTorch's quantized dtypes say how a tensor is stored; here it is integers.
_STORED = {"torch.quint8": torch.uint8, "torch.qint8": torch.int8, "torch.qint32": torch.int32,
           "torch.quint4x2": torch.uint8}  # fmt: skip
_FLOATS = (torch.float32, torch.float64, torch.bfloat16, None)
_RANGES = {torch.uint8: (0, 255), torch.int8: (-128, 127), torch.int16: (-32768, 32767),
           torch.int32: (-(2**31), 2**31 - 1)}  # fmt: skip
_NO_SPEC: Spec = {"observer": "nothing", "dtype": torch.float32}


def stored_dtype(dtype: Any) -> Any:
    """The type of the integers of a quantized dtype; other types as they are."""
    return _STORED.get(str(dtype), dtype)


def is_observer(module: Any) -> bool:
    """Whether it observes, or quantizes for training: PyTorch's kinds, ours and users'."""
    return isinstance(module, torch.nn.Module) and hasattr(module, "calculate_qparams")


def observer_in(module: Any) -> Any:
    """The observer of a fake quantization, or the observer itself."""
    return getattr(module, "activation_post_process", module)


def _kind(module: Any, dtype: torch.dtype | None) -> str:
    name = type(observer_in(module)).__name__
    if name == "NoopObserver":
        return "nothing"
    if name == "ReuseInputObserver":
        return "as_input"
    if getattr(module, "is_dynamic", False):
        return "each_run"
    if dtype in _FLOATS:
        return "nothing"
    return "fixed" if name == "FixedQParamsObserver" else "min_max"


def _per(scheme: Any, module: Any) -> str:
    if getattr(module, "group_size", 0) or "group" in str(scheme):
        return "group"
    return "channel" if "per_channel" in str(scheme) else "tensor"


def spec_of(module: Any) -> Spec:
    """The spec of an observer or a fake quantization."""
    dtype = getattr(module, "dtype", torch.quint8)
    dtype = stored_dtype(dtype)
    kind = _kind(module, dtype)
    if kind != "nothing" and dtype == torch.float16:
        return {"observer": kind if kind == "each_run" else "min_max", "dtype": dtype}
    if kind == "nothing":
        return _NO_SPEC
    low, high = _RANGES.get(dtype, (0, 255))
    inner = observer_in(module)
    low, high = _first(module, inner, "quant_min", low), _first(module, inner, "quant_max", high)
    scheme = getattr(module, "qscheme", None) or getattr(inner, "qscheme", "")
    eps = _first(module, inner, "eps", torch.finfo(torch.float32).eps)
    fixed = {"scale": float(inner.scale), "zero": int(inner.zero_point)} if kind == "fixed" else {}
    return {**fixed, "observer": kind, "dtype": dtype, "low": int(low), "high": int(high),
            "per": _per(scheme, inner), "axis": int(_first(module, inner, "ch_axis", 0)),
            "group": int(getattr(inner, "group_size", 0)), "symmetric": "symmetric" in str(scheme),
            "eps": float(eps)}  # fmt: skip


def _first(module: Any, inner: Any, name: str, otherwise: Any) -> Any:
    for where in (module, inner):
        value = getattr(where, name, None)
        if value is not None:
            return value
    return otherwise


def weight_spec_of(module: Any) -> Spec:
    """Likewise of weights: those in float16 are rounded once."""
    spec = spec_of(module)
    return {**spec, "observer": "each_run"} if spec["dtype"] == torch.float16 else spec


def config_of(qconfig: Any) -> tuple[Any, Spec, Spec] | None:
    """(qconfig, activation, weight) for the core's rules; None if everything stays float."""
    if qconfig is None:
        return None
    if not callable(getattr(qconfig, "activation", None)) or not callable(qconfig.weight):
        raise TypeError("the rules of a QConfigMapping are QConfigs, or None for what stays float; "
                        f"got {qconfig!r:.80}")
    return qconfig, spec_of(qconfig.activation()), weight_spec_of(qconfig.weight())
