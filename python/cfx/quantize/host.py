"""The Python side of preparing and converting: makes observers, and asks them."""
import warnings
from typing import Any

import torch

from .specs import Spec, is_observer, observer_in, spec_of, weight_spec_of
from .training import trained_layer

Scales = tuple[Any, Any] | str  # why there are none; (None, why): the value has to stay float


def _device_of(module: torch.nn.Module) -> torch.device | None:
    for tensor in (*module.parameters(), *module.buffers()):
        return tensor.device
    return None


def _has_seen(observer: Any) -> bool:
    """Whether an observer has anything to go by."""
    inner = observer_in(observer)
    low, high = getattr(inner, "min_val", None), getattr(inner, "max_val", None)
    if low is None or high is None:
        return True
    if low.numel() == 0 or high.numel() == 0:
        return False
    return not bool(((low == float("inf")) & (high == float("-inf"))).any())


class Host:
    """What cfx_quantize_host asks of the language that the modules are written in."""

    def __init__(self, root: torch.nn.Module) -> None:
        self.root = root
        self.device = _device_of(root)
        self._scales: dict[int, Any] = {}
        self._specs: dict[int, tuple[Any, Spec | None]] = {}

    def _at(self, path: str) -> Any:
        module: Any = self.root
        for name in path.split("."):
            module = getattr(module, name, None)
        return module

    def _put(self, path: str, module: torch.nn.Module) -> None:
        parent, _, name = path.rpartition(".")
        setattr(self._at(parent) if parent else self.root, name, module)

    # ---- the callbacks ----

    def observe(self, path: str, qconfig: Any, weight: bool) -> None:
        observer = (qconfig.weight if weight else qconfig.activation)()
        observer.train(self.root.training)
        self._put(path, observer if self.device is None else observer.to(self.device))

    def share(self, path: str, other: str) -> None:
        self._put(path, self._at(other))

    def spec(self, path: str) -> Spec | None:
        module = self._at(path)
        if module is None:
            return None
        known = self._specs.get(id(module))
        if known is None or known[0] is not module:
            of = weight_spec_of if path.rpartition(".")[2].startswith("weight_") else spec_of
            known = module, (of(module) if is_observer(module) else None)
            self._specs[id(module)] = known
        return known[1]

    def look(self, path: str, tensor: torch.Tensor) -> None:
        observer = self._at(path)
        with torch.no_grad():
            observer_in(observer)(tensor)
        self._scales.pop(id(observer), None)

    def scales(self, path: str) -> Scales:
        observer = self._at(path)
        if id(observer) not in self._scales:
            self._scales[id(observer)] = _scales_of(observer)
        return self._scales[id(observer)]

    def train(self, path: str, norm: str | None, qconfig: Any) -> None:
        layer = trained_layer(self._at(path), self._at(norm) if norm else None, qconfig)
        self._put(path, layer if self.device is None else layer.to(self.device))


def _scales_of(observer: Any) -> Scales:
    inner = observer_in(observer)
    if getattr(inner, "not_finite", 0):
        return None, ("it has observed values that are not finite: "
                      f"{inner.not_finite} of {inner.seen}")
    if not _has_seen(observer):
        return "it has observed nothing; run the prepared model on some inputs first"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scale, zero = observer.calculate_qparams()[:2]
    if not bool(torch.isfinite(scale).all()):
        return None, "it has observed values that are not finite"
    if spec_of(observer).get("per", "tensor") == "tensor":
        return float(scale), round(float(zero))
    return scale.detach().to(torch.float32), zero.detach().round().to(torch.int64)
