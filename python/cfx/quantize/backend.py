"""What a BackendConfig of torch.ao says, as the core's patterns. It is read by its attributes, and
torch.ao is not imported, so that a class of your own with these attributes does as well."""
from collections.abc import Iterator
from typing import Any

import torch

from .specs import stored_dtype

# (calls, result, types): what cfx_backend_pattern has; the results in the order of its enum.
Pattern = tuple[tuple[Any, ...], int, list[dict[str, Any]]]
_OWN, _SHARED, _COUNTED, _UNOBSERVED = range(4)
_RESULTS = {"OUTPUT_SHARE_OBSERVER_WITH_INPUT": _SHARED, "INPUT_OUTPUT_NOT_OBSERVED": _UNOBSERVED}
_NORMS = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d,
          torch.nn.functional.batch_norm)  # fmt: skip


def _is_any(call: Any) -> bool:
    return getattr(call, "__name__", "") == "MatchAllNode"


def _forward(pattern: Any) -> tuple[Any, ...] | None:
    """A nested pattern, whose first element is the last call, from its first call on: (relu, (add,
    (bn, conv), MatchAllNode)) is conv, bn, add, relu. None if two of its branches have calls."""
    if not isinstance(pattern, tuple):
        return (pattern,)
    inner = [p for p in pattern[1:] if not _is_any(p)]
    if len(inner) > 1:
        return None
    before = _forward(inner[0]) if inner else ()
    return None if before is None else (*before, pattern[0])


def _calls(config: Any) -> tuple[Any, ...] | None:
    """The chain of calls. Batch-norms behind a layer are in its weights by then."""
    pattern = config.pattern
    if pattern is None:
        calls = _forward(getattr(config, "_pattern_complex_format", None))
    else:
        calls = tuple(pattern) if isinstance(pattern, (tuple, list)) else (pattern,)
    if not calls or None in calls:
        return None
    return (calls[0], *(c for c in calls[1:] if c not in _NORMS))


def _value(with_constraints: Any) -> dict[str, Any] | None:
    if with_constraints is None or with_constraints.dtype is None:
        return None
    limits = with_constraints
    return {"dtype": stored_dtype(limits.dtype), "low": limits.quant_min_lower_bound,
            "high": limits.quant_max_upper_bound, "scale_min": limits.scale_min_lower_bound,
            "scale": limits.scale_exact_match, "zero": limits.zero_point_exact_match}  # fmt: skip


def any_types() -> dict[str, Any]:
    """Types that every static configuration fits."""
    return {"input": None, "output": None, "weight": None, "each_run": False}


def _types(config: Any) -> list[dict[str, Any]]:
    return [{"input": _value(t.input_dtype_with_constraints),
             "output": _value(t.output_dtype_with_constraints),
             "weight": _value(t.weight_dtype_with_constraints), "each_run": bool(t.is_dynamic)}
            for t in config.dtype_configs]  # fmt: skip


def _result(config: Any) -> int:
    by_count = getattr(config, "_num_tensor_args_to_observation_type", {})
    if getattr(by_count.get(1), "name", "") == "OUTPUT_SHARE_OBSERVER_WITH_INPUT":
        return _COUNTED
    return _RESULTS.get(getattr(config.observation_type, "name", ""), _OWN)


def _patterns(configs: list[Any]) -> Iterator[Pattern]:
    alone = {c.pattern: c for c in configs if isinstance(c.pattern, type)}
    for config in configs:
        calls = _calls(config)
        if calls is None:
            continue
        # Of a chain that torch.ao makes a fused module, the types may be those of that class.
        of = config if config.dtype_configs else alone.get(config.fused_module, config)
        if len(calls) == 1 and isinstance(config.pattern, tuple):
            continue  # a layer and its batch-norm
        if len(calls) == 1 or of.dtype_configs:
            yield calls, _result(of), _types(of)


def patterns_of(backend_config: Any) -> list[Pattern] | None:
    """The patterns of a BackendConfig; None: whatever cfx can quantize."""
    if backend_config is None:
        return None
    if isinstance(backend_config, dict):  # as older programs write it
        from torch.ao.quantization.backend_config import BackendConfig

        backend_config = BackendConfig.from_dict(backend_config)
    configs = getattr(backend_config, "configs", None)
    if configs is None:
        raise TypeError("expected a BackendConfig or a dict for backend_config, got "
                        f"{type(backend_config).__name__}")  # fmt: skip
    return list(_patterns(list(configs)))
