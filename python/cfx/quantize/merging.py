"""What several processes have observed, put together."""
import copy
from collections.abc import Mapping
from typing import Any

import torch

from .observer import UniformQuantizationObserverBase


def _observers(model: torch.nn.Module) -> dict[str, UniformQuantizationObserverBase]:
    return {name: m for name, m in model.named_modules()
            if isinstance(m, UniformQuantizationObserverBase)}  # fmt: skip


def _with_state(model: torch.nn.Module, state: Mapping[str, Any]) -> dict[str, Any]:
    """Observers like those of the model, with what a state of it has for them."""
    result = {}
    for name, observer in _observers(model).items():
        result[name] = fresh = copy.deepcopy(observer)
        own = {k.removeprefix(name + "."): v for k, v in state.items() if k.startswith(name + ".")}
        if not own:
            raise ValueError(f"the state has nothing for the observer '{name}'; it belongs to "
                             "another model")  # fmt: skip
        fresh.load_state_dict({"eps": fresh.eps, **own})
    return result


def merge_observers(model: torch.nn.Module, *others: torch.nn.Module | Mapping[str, Any]) -> None:
    """Lets the observers of a prepared model take in what those of other copies of it have seen.

    Each of `others` is such a copy, or its `state_dict()`: what another process has saved. Nothing
    is changed if one of them belongs to another model.
    """
    own = _observers(model)
    all_ = [_observers(o) if isinstance(o, torch.nn.Module) else _with_state(model, o)
            for o in others]  # fmt: skip
    for other in all_:
        if other.keys() != own.keys():
            differ = sorted(own.keys() ^ other.keys())[:5]
            raise ValueError(f"the models have other observers: {differ} are in one of them")
    merged = {name: copy.deepcopy(observer) for name, observer in own.items()}
    for other in all_:
        for name, observer in merged.items():
            observer.merge(other[name])
    for name, observer in own.items():
        observer._core = merged[name]._core
