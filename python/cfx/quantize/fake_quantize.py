"""Fake quantization: values are rounded as integers would be, and stay floats, so that a model can
be trained for it. The gradient goes straight through the rounding.

Names, signatures and results are torch.ao.quantization's; the rounding is done by torch.
"""
import abc
from typing import Any

import torch

from .observer import (
    _SYMMETRIC, FixedQParamsObserver, HistogramObserver, MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver, WithArgs,
    default_fixed_qparams_range_0to1_observer, default_fixed_qparams_range_neg1to1_observer,
)  # fmt: skip

_PER_CHANNEL = (torch.per_channel_affine, torch.per_channel_symmetric,
                torch.per_channel_affine_float_qparams)  # fmt: skip


class FakeQuantizeBase(WithArgs, abc.ABC, torch.nn.Module):
    """What every fake quantization is: two switches, in the state."""

    fake_quant_enabled: torch.Tensor
    observer_enabled: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", torch.tensor([1], dtype=torch.uint8))
        self.register_buffer("observer_enabled", torch.tensor([1], dtype=torch.uint8))

    @abc.abstractmethod
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`x`, rounded."""

    @abc.abstractmethod
    def calculate_qparams(self) -> Any:
        """The scale and the zero point."""

    def enable_fake_quant(self, enabled: bool = True) -> None:
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self) -> None:
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self) -> None:
        self.enable_observer(False)


def _dtype_of(observer: Any, kwargs: dict[str, Any]) -> torch.dtype:
    bound = getattr(getattr(observer, "p", None), "keywords", {})
    return bound.get("dtype", kwargs.get("dtype", torch.quint8))


class FakeQuantize(FakeQuantizeBase):
    """Rounds with the scale that an observer gives, which looks at each tensor first.

    `observer` is a class of observers, or a constructor; other arguments are its arguments.
    """

    scale: torch.Tensor
    zero_point: torch.Tensor

    def __init__(
        self, observer=MovingAverageMinMaxObserver, quant_min=None, quant_max=None,
        is_dynamic=False, **observer_kwargs,
    ) -> None:  # fmt: skip
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            limits = torch.iinfo(_dtype_of(observer, observer_kwargs))
            if limits.min > quant_min or quant_max > limits.max:
                raise AssertionError(f"{quant_min}..{quant_max} is out of the dtype's range "
                                     f"{limits.min}..{limits.max}")  # fmt: skip
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        seer = observer(is_dynamic=is_dynamic, **observer_kwargs)
        self.activation_post_process = seer
        self.quant_min, self.quant_max = seer.quant_min, seer.quant_max
        self.is_dynamic, self.dtype, self.qscheme = seer.is_dynamic, seer.dtype, seer.qscheme
        self.ch_axis = getattr(seer, "ch_axis", -1)
        self.is_per_channel = self.qscheme in _PER_CHANNEL
        whole = self.qscheme != torch.per_channel_affine_float_qparams
        self.register_buffer("scale", torch.tensor([1.0]))
        self.register_buffer("zero_point",
                             torch.tensor([0], dtype=torch.int if whole else torch.float))

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.activation_post_process.calculate_qparams()

    def _observe(self, x: torch.Tensor) -> None:
        self.activation_post_process(x.detach())
        for own, new in zip((self.scale, self.zero_point), self.calculate_qparams(), strict=True):
            if own.shape != new.shape:
                own.resize_(new.shape)
            own.copy_(new)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        if self.observer_enabled[0] == 1:
            self._observe(X)
        if self.fake_quant_enabled[0] != 1:
            return X
        low, high = self.activation_post_process.quant_min, self.activation_post_process.quant_max
        if self.is_per_channel:
            return torch.fake_quantize_per_channel_affine(X, self.scale, self.zero_point,
                                                          self.ch_axis, low, high)  # fmt: skip
        return torch.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, low, high)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        for name in ("scale", "zero_point"):  # of a model that has seen its channels already
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, quant_min={self.quant_min}, "
            f"quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds with a scale that is given."""

    def __init__(self, observer) -> None:
        super().__init__(observer=observer)
        if not isinstance(self.activation_post_process, FixedQParamsObserver):
            raise AssertionError("FixedQParamsFakeQuantize needs a FixedQParamsObserver")
        if self.is_per_channel:
            raise AssertionError("FixedQParamsFakeQuantize is for values with one scale, not "
                                 f"{self.qscheme}")  # fmt: skip
        self._observer_ctr = observer
        self.scale = self.activation_post_process.scale
        self.zero_point = self.activation_post_process.zero_point

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.scale, self.zero_point

    def _observe(self, x: torch.Tensor) -> None:
        pass


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """Observes a moving average and rounds, in one operator of torch."""

    def __init__(self, observer: Any = MovingAverageMinMaxObserver, quant_min: int = 0,
                 quant_max: int = 255, **observer_kwargs: Any) -> None:  # fmt: skip
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        if not isinstance(self.activation_post_process,
                          (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)):
            raise AssertionError("FusedMovingAvgObsFakeQuantize needs a moving-average observer")
        self.register_buffer("fake_quant_enabled", torch.tensor([1], dtype=torch.long))
        self.register_buffer("observer_enabled", torch.tensor([1], dtype=torch.long))
        self.is_symmetric_quant = self.qscheme in _SYMMETRIC

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        seer = self.activation_post_process
        low, high = (t.clone().to(X.device) for t in (seer.min_val, seer.max_val))
        result = torch.fused_moving_avg_obs_fake_quant(
            X, self.observer_enabled, self.fake_quant_enabled, low, high, self.scale,
            self.zero_point, seer.averaging_constant, seer.quant_min, seer.quant_max, self.ch_axis,
            self.is_per_channel, self.is_symmetric_quant,
        )  # fmt: skip
        if self.observer_enabled[0] == 1 and X.numel() > 0:
            seer.set_range(low, high)
        return result


# ---- the usual ones

default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=torch.quint8,
    qscheme=torch.per_tensor_affine, reduce_range=True,
)  # fmt: skip
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=torch.qint8,
    qscheme=torch.per_tensor_symmetric, reduce_range=False,
)  # fmt: skip
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, is_dynamic=True,
    dtype=torch.quint8, averaging_constant=1,
)  # fmt: skip
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127,
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric, reduce_range=False, ch_axis=0,
)  # fmt: skip
default_embedding_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    qscheme=torch.per_channel_affine_float_qparams, dtype=torch.quint8, quant_min=0,
    quant_max=255, ch_axis=0, averaging_constant=1,
)  # fmt: skip
default_embedding_fake_quant_4bit = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    qscheme=torch.per_channel_affine_float_qparams, ch_axis=0, dtype=torch.quint4x2,
    averaging_constant=1,
)  # fmt: skip
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver, quant_min=0, quant_max=255, dtype=torch.quint8,
    qscheme=torch.per_tensor_affine, reduce_range=True,
)  # fmt: skip
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=torch.quint8
)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=torch.qint8,
    qscheme=torch.per_tensor_symmetric,
)  # fmt: skip
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127,
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric,
)  # fmt: skip
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-127, quant_max=127, dtype=torch.qint8,
    qscheme=torch.per_tensor_symmetric, eps=2**-12,
)  # fmt: skip
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=-127, quant_max=127,
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric, eps=2**-12,
)  # fmt: skip


def _switch(mod: torch.nn.Module, name: str) -> None:
    """For `model.apply`: modules of torch.ao's have the same switches."""
    if hasattr(mod, "fake_quant_enabled") and hasattr(mod, name):
        getattr(mod, name)()


def disable_fake_quant(mod: torch.nn.Module) -> None:
    """Lets values pass as they are: `model.apply(disable_fake_quant)`."""
    _switch(mod, "disable_fake_quant")


def enable_fake_quant(mod: torch.nn.Module) -> None:
    """Rounds values: `model.apply(enable_fake_quant)`."""
    _switch(mod, "enable_fake_quant")


def disable_observer(mod: torch.nn.Module) -> None:
    """Keeps scales as they are: `model.apply(disable_observer)`."""
    _switch(mod, "disable_observer")


def enable_observer(mod: torch.nn.Module) -> None:
    """Lets scales follow what is seen: `model.apply(enable_observer)`."""
    _switch(mod, "enable_observer")
