"""Observers: modules that look at the tensors that pass, and say what scale they need.

Names, signatures and results are torch.ao.quantization's. What was seen is kept in C
(`cfx._core.Observer`), which looks at a tensor where it is. Tensors of other devices are copied to
the CPU.
"""
import abc
import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch

from cfx._core import Observer

_FLOAT_QPARAMS = torch.per_channel_affine_float_qparams
_PER_TENSOR = (torch.per_tensor_affine, torch.per_tensor_symmetric)
_SYMMETRIC = (torch.per_tensor_symmetric, torch.per_channel_symmetric)
_EPS = torch.finfo(torch.float32).eps
# dtype -> the name of the integers that are stored, and their range
_INTEGERS = {
    torch.qint8: ("int8", -128, 127), torch.int8: ("int8", -128, 127),
    torch.quint8: ("uint8", 0, 255), torch.uint8: ("uint8", 0, 255),
    torch.quint4x2: ("uint8", 0, 15), torch.int16: ("int16", -(2**15), 2**15 - 1),
    torch.uint16: ("uint16", 0, 2**16 - 1), torch.qint32: ("int32", -(2**31), 2**31 - 1),
    torch.int32: ("int32", -(2**31), 2**31 - 1),
}  # fmt: skip


class Constructor:
    """A class of observers with some of its arguments: `MinMaxObserver.with_args(dtype=...)`."""

    def __init__(self, p: functools.partial) -> None:
        self.p = p
        self.callable_args: dict[str, Callable[[], Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = {k: fn() for k, fn in self.callable_args.items() if k not in kwargs}
        return self.p(*args, **made, **kwargs)

    def with_args(self, **kwargs: Any) -> "Constructor":
        result = Constructor(functools.partial(self.p, **kwargs))
        result.callable_args = dict(self.callable_args)
        return result

    def with_callable_args(self, **kwargs: Callable[[], Any]) -> "Constructor":
        result = self.with_args()
        result.callable_args.update(kwargs)
        return result

    def __repr__(self) -> str:
        return f"{self.p!r}{self.callable_args!r}"


class WithArgs:
    """What gives classes `with_args` and `with_callable_args`."""

    @classmethod
    def with_args(cls, **kwargs: Any) -> Constructor:
        """A constructor with these arguments."""
        return Constructor(functools.partial(cls, **kwargs))

    @classmethod
    def with_callable_args(cls, **kwargs: Callable[[], Any]) -> Constructor:
        """A constructor that calls these for its arguments, each time."""
        return Constructor(functools.partial(cls)).with_callable_args(**kwargs)


class ObserverBase(WithArgs, abc.ABC, torch.nn.Module):
    """What every observer is. `dtype` is what the value becomes."""

    def __init__(self, dtype: torch.dtype, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    @abc.abstractmethod
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Looks at `x` and returns it."""

    @abc.abstractmethod
    def calculate_qparams(self) -> Any:
        """The scale and the zero point."""


def _check_range(quant_min: int, quant_max: int, name: str, low: int, high: int) -> None:
    if not quant_min <= 0 <= quant_max:
        raise AssertionError(
            f"the range of integers must include 0, got quant_min={quant_min}, "
            f"quant_max={quant_max}"
        )
    if quant_min >= quant_max:
        raise AssertionError(f"quant_min={quant_min} must be less than quant_max={quant_max}")
    if not 0 < quant_max - quant_min + 1 <= high - low + 1:
        raise AssertionError(f"{quant_min}..{quant_max} are more integers than {name} has")


class UniformQuantizationObserverBase(ObserverBase):
    """Observers of values that become evenly spaced integers."""

    _version = 3  # that of torch.ao's
    _kind = "min_max"  # of cfx_observer
    eps: torch.Tensor

    def __init__(
        self, dtype=torch.quint8, qscheme=torch.per_tensor_affine, reduce_range=False,
        quant_min=None, quant_max=None, factory_kwargs=None, eps=_EPS, is_dynamic=False, **kwargs,
    ) -> None:  # fmt: skip
        fields = kwargs.pop("_fields", {})
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        if dtype not in _INTEGERS:
            known = ", ".join(str(d) for d in _INTEGERS)
            raise AssertionError(f"an observer's dtype must be one of {known}; got {dtype}")
        if qscheme not in (*_PER_TENSOR, torch.per_channel_affine, torch.per_channel_symmetric,
                           _FLOAT_QPARAMS):  # fmt: skip
            raise AssertionError(f"observers do not support the qscheme {qscheme}")
        self.qscheme = qscheme
        self.reduce_range = reduce_range
        self.register_buffer("eps", torch.tensor([eps], **torch.nn.factory_kwargs(factory_kwargs)))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        self.quant_min, self.quant_max = self._range(quant_min, quant_max)
        self._core = Observer(self._spec(float(eps), fields))

    def _range(self, quant_min: int | None, quant_max: int | None) -> tuple[int, int]:
        """The least and the greatest integer; `reduce_range` halves them."""
        name, low, high = _INTEGERS[self.dtype]
        if quant_min is not None and quant_max is not None:
            _check_range(quant_min, quant_max, name, low, high)
            low, high = quant_min, quant_max
        elif self.dtype not in (torch.qint8, torch.int8, torch.quint8, torch.uint8):
            return low, high
        return (low // 2, high // 2) if self.reduce_range else (low, high)

    def _spec(self, eps: float, fields: dict[str, Any]) -> dict[str, Any]:
        name = _INTEGERS[self.dtype][0]
        symmetric = self.qscheme in _SYMMETRIC
        middle = 0
        if symmetric and name == "uint8":
            middle = 128
            if self.has_customized_qrange:
                middle = (self.quant_min + self.quant_max) // 2
        elif symmetric and name == "uint16":
            middle = 2**15
        return {
            "observer": self._kind, "dtype": name, "low": self.quant_min,
            "high": self.quant_max, "symmetric": symmetric, "zero": middle, "eps": eps,
            "per": "tensor" if self.qscheme in _PER_TENSOR else "channel", **fields,
        }  # fmt: skip

    # ---- what it has seen

    def forward(self, x_orig: torch.Tensor) -> torch.Tensor:
        x = x_orig.detach()
        if not x.is_floating_point():
            x = x.to(torch.float32)
        if x.is_meta:
            raise ValueError("an observer looks at values, and tensors on the meta device have "
                             "none: calibrate and convert the model with its weights")  # fmt: skip
        self._core.observe(x if x.device.type == "cpu" else x.cpu())
        return x_orig

    def merge(self, other: "UniformQuantizationObserverBase") -> None:
        """Takes in what another observer of the same kind has seen: in another process, say."""
        if not isinstance(other, UniformQuantizationObserverBase):
            raise TypeError(f"merge() needs an observer, not {type(other).__name__}")
        self._core.merge(other._core)

    @property
    def seen(self) -> int:
        """How many elements it has seen."""
        return self._core.seen

    @property
    def not_finite(self) -> int:
        """How many of them were NaN or infinite; they were left out."""
        return self._core.not_finite

    def _saved(self, name: str) -> torch.Tensor:
        return self._core.save()[name].torch()

    def _replace(self, **tensors: torch.Tensor) -> None:
        """Puts other tensors in the place of what it has seen. Counts begin anew."""
        state = {k: v for k, v in self._core.save().items() if k in ("min_val", "max_val",
                                                                     "histogram")}  # fmt: skip
        state.update((k, v.detach().to("cpu", torch.float32).contiguous())
                     for k, v in tensors.items())  # fmt: skip
        self._core.load(state)

    @property
    def min_val(self) -> torch.Tensor:
        """The least element, or that of each channel: a copy. Set both with `set_range`."""
        return self._saved("min_val")

    @property
    def max_val(self) -> torch.Tensor:
        return self._saved("max_val")

    def set_range(self, min_val: torch.Tensor, max_val: torch.Tensor) -> None:
        """Takes this range as what was seen."""
        self._replace(min_val=min_val, max_val=max_val)

    def reset_min_max_vals(self) -> None:
        """Forgets everything."""
        self._core = Observer(self._core.spec)

    # ---- the scale

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        if self._core.seen == 0 and not self._has_range():
            warnings.warn("nothing was observed; the scale is 1 and the zero point 0",
                          stacklevel=2)  # fmt: skip
            return torch.tensor([1.0]), torch.tensor([0])
        if self.qscheme == _FLOAT_QPARAMS:
            return self._float_qparams()
        scale, zero = (t.torch() for t in self._core.scales())
        return scale, zero if self.qscheme in _SYMMETRIC else zero.to(torch.int32)

    def _has_range(self) -> bool:
        low = self.min_val
        return low.numel() > 0 and bool((low <= self.max_val).any())

    def _float_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Zero points that are no integers: 0 need not be a value of the integers."""
        low, high = self.min_val, self.max_val
        scale = (high - low) / float(self.quant_max - self.quant_min)
        scale = torch.where(scale > self.eps.cpu(), scale, torch.ones_like(scale))
        return scale, -low / scale

    # ---- saved and loaded

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        state = self._core.save()
        counts = [int(state.pop(name).numpy()) for name in ("seen", "not_finite", "calls")]
        for name, t in state.items():
            destination[prefix + name] = t.torch().clone()
        destination[prefix + "counts"] = torch.tensor(counts)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys,
                              unexpected_keys, error_msgs):  # fmt: skip
        version = local_metadata.get("version")
        if version is None or version == 1:
            state_dict.setdefault(prefix + "eps", self.eps.clone())
        taken = self._take_state(state_dict, prefix, strict, missing_keys, error_msgs)
        rest = {k: v for k, v in state_dict.items() if k not in taken}
        super()._load_from_state_dict(rest, prefix, local_metadata, strict, missing_keys,
                                      unexpected_keys, error_msgs)  # fmt: skip

    def _take_state(self, state_dict, prefix, strict, missing_keys, error_msgs) -> set[str]:
        """Loads what belongs to the observer; a state of torch.ao's has no counts, and an old one
        calls the ranges of channels min_vals and max_vals. Returns the names of that."""
        state, taken = {}, set()
        names = [k for k in self._core.save() if k in ("min_val", "max_val", "histogram")]
        for name in names:
            key = next((k for k in (prefix + name, prefix + name + "s") if k in state_dict), None)
            if key is not None:
                taken.add(key)
                t = state_dict[key].detach().to("cpu", torch.float32).contiguous()
                empty = t.numel() == 0 and self._core.spec["per"] == "tensor"
                inf = float("inf" if name == "min_val" else "-inf")
                state[name] = torch.tensor(inf) if empty else t
            elif strict:
                missing_keys.append(prefix + name)
        counts = state_dict.get(prefix + "counts")
        if counts is not None:
            taken.add(prefix + "counts")
            for name, count in zip(("seen", "not_finite", "calls"), counts.tolist(), strict=True):
                state[name] = torch.tensor(count)
        if len(taken) >= len(names):
            try:
                self._core.load(state)
            except (KeyError, TypeError, ValueError, RuntimeError) as e:
                error_msgs.append(f"{prefix}: {e}")
        return taken

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


def _need_per_tensor(observer: str, qscheme: torch.qscheme) -> None:
    if qscheme not in _PER_TENSOR:
        raise NotImplementedError(f"{observer} is for values with one scale: its qscheme must be "
                                  f"per_tensor_affine or per_tensor_symmetric, not {qscheme}")


def _need_static(observer: str, is_dynamic: bool) -> None:
    if is_dynamic:
        raise NotImplementedError(f"{observer} does not support dynamic quantization")


def _need_middle(observer: UniformQuantizationObserverBase) -> None:
    if (observer.qscheme in _SYMMETRIC and observer.reduce_range
            and observer.dtype == torch.quint8):
        raise NotImplementedError("reduce_range does not fit a symmetric quint8: its zero point is "
                                  "128; use qint8, or quant_min and quant_max")


class MinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest element of all calls."""

    def __init__(
        self, dtype=torch.quint8, qscheme=torch.per_tensor_affine, reduce_range=False,
        quant_min=None, quant_max=None, factory_kwargs=None, eps=_EPS, is_dynamic=False, **kwargs,
    ) -> None:  # fmt: skip
        _need_per_tensor(type(self).__name__, qscheme)
        if self._kind == "min_max":
            _need_static(type(self).__name__, is_dynamic)
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps,
                         is_dynamic, **kwargs)  # fmt: skip
        _need_middle(self)


def _check_averaging(observer: str, averaging_constant: float, is_dynamic: bool) -> None:
    if is_dynamic and averaging_constant != 1:
        raise NotImplementedError(f"{observer} supports dynamic quantization only with "
                                  f"averaging_constant=1, not {averaging_constant}")


class MovingAverageMinMaxObserver(MinMaxObserver):
    """The moving average of the least and the greatest element over calls."""

    _kind = "moving_average"

    def __init__(
        self, averaging_constant=0.01, dtype=torch.quint8, qscheme=torch.per_tensor_affine,
        reduce_range=False, quant_min=None, quant_max=None, eps=_EPS, is_dynamic=False, **kwargs,
    ) -> None:  # fmt: skip
        _check_averaging(type(self).__name__, averaging_constant, is_dynamic)
        self_fields = {"averaging": averaging_constant}
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps,
                         is_dynamic=is_dynamic, _fields=self_fields, **kwargs)  # fmt: skip
        self.averaging_constant = averaging_constant


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest element of each channel, over all calls."""

    def __init__(
        self, ch_axis=0, dtype=torch.quint8, qscheme=torch.per_channel_affine, reduce_range=False,
        quant_min=None, quant_max=None, factory_kwargs=None, eps=_EPS, is_dynamic=False, **kwargs,
    ) -> None:  # fmt: skip
        if qscheme in _PER_TENSOR:
            raise NotImplementedError(f"{type(self).__name__} needs a qscheme per channel, not "
                                      f"{qscheme}")  # fmt: skip
        if self._kind == "min_max":
            _need_static(type(self).__name__, is_dynamic)
        fields = {"axis": ch_axis, **kwargs.pop("_fields", {})}
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps,
                         is_dynamic, _fields=fields, **kwargs)  # fmt: skip
        self.ch_axis = ch_axis
        _need_middle(self)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """The moving averages of the ranges of channels."""

    _kind = "moving_average"

    def __init__(
        self, averaging_constant=0.01, ch_axis=0, dtype=torch.quint8,
        qscheme=torch.per_channel_affine, reduce_range=False, quant_min=None, quant_max=None,
        eps=_EPS, is_dynamic=False, **kwargs,
    ) -> None:  # fmt: skip
        _check_averaging(type(self).__name__, averaging_constant, is_dynamic)
        super().__init__(ch_axis, dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps,
                         is_dynamic=is_dynamic, _fields={"averaging": averaging_constant},
                         **kwargs)  # fmt: skip
        self.averaging_constant = averaging_constant


class PerGroupMinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest of each `group_size` elements of a row, for weights: int4 with
    `quant_min=-8, quant_max=7`. Scales are [rows, groups]."""

    def __init__(
        self, group_size=32, dtype=torch.qint8, qscheme=torch.per_channel_symmetric,
        reduce_range=False, quant_min=None, quant_max=None, factory_kwargs=None, eps=_EPS,
        is_dynamic=False, **kwargs,
    ) -> None:  # fmt: skip
        _need_static(type(self).__name__, is_dynamic)
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps,
                         is_dynamic, _fields={"per": "group", "group": group_size},
                         **kwargs)  # fmt: skip
        self.group_size = group_size
        self.ch_axis = 0


class HistogramObserver(UniformQuantizationObserverBase):
    """The range that loses least, by a histogram of all elements."""

    _kind = "histogram"

    def __init__(
        self, bins: int = 2048, dtype: torch.dtype = torch.quint8,
        qscheme=torch.per_tensor_affine, reduce_range=False, quant_min=None, quant_max=None,
        factory_kwargs=None, eps=_EPS, is_dynamic=False, **kwargs,
    ) -> None:  # fmt: skip
        _need_per_tensor(type(self).__name__, qscheme)
        _need_static(type(self).__name__, is_dynamic)
        fields = {"bins": bins, **kwargs.pop("_fields", {})}
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps,
                         is_dynamic, _fields=fields, **kwargs)  # fmt: skip
        self.bins = bins

    @property
    def histogram(self) -> torch.Tensor:
        """The counts of the bins between min_val and max_val: a copy."""
        return self._saved("histogram")


class PercentileObserver(HistogramObserver):
    """The range without the outermost elements: of `percentile` 99.99, 0.005 % at each end."""

    _kind = "percentile"

    def __init__(
        self, percentile: float = 99.99, bins: int = 2048, dtype: torch.dtype = torch.quint8,
        qscheme=torch.per_tensor_affine, reduce_range=False, quant_min=None, quant_max=None,
        factory_kwargs=None, eps=_EPS, is_dynamic=False, **kwargs,
    ) -> None:  # fmt: skip
        super().__init__(bins, dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs,
                         eps, is_dynamic, _fields={"percentile": percentile}, **kwargs)
        self.percentile = percentile


class FixedQParamsObserver(ObserverBase):
    """A scale and a zero point that are given: of a sigmoid, say."""

    scale: torch.Tensor
    zero_point: torch.Tensor

    def __init__(
        self, scale, zero_point, dtype=torch.quint8, qscheme=torch.per_tensor_affine, quant_min=0,
        quant_max=255, is_dynamic=False, **kwargs,
    ) -> None:  # fmt: skip
        _need_static(type(self).__name__, is_dynamic)
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min, self.quant_max = quant_min, quant_max
        self.register_buffer("scale", torch.tensor([scale], dtype=torch.float))
        self.register_buffer("zero_point", torch.tensor([zero_point], dtype=torch.int))
        self.qscheme = qscheme

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return X

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Looks at nothing; says what the value becomes: float16, or integers with a scale that each
    run chooses (`is_dynamic`)."""

    def __init__(
        self, dtype=torch.float32, custom_op_name="", compute_dtype=None, quant_min=None,
        quant_max=None, qscheme=None, eps=None, is_dynamic=False,
    ) -> None:  # fmt: skip
        super().__init__(dtype=dtype, is_dynamic=is_dynamic)
        self.qscheme = torch.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        self.eps = _EPS if eps is None else eps
        self.custom_op = custom_op_name
        if compute_dtype:  # what torch.ao's older versions said
            self.is_dynamic = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"

    def calculate_qparams(self) -> Any:
        raise RuntimeError("a PlaceholderObserver has seen nothing, and has no scale")


class NoopObserver(ObserverBase):
    """Looks at nothing: the value stays a float of this type."""

    def __init__(self, dtype=torch.float16, custom_op_name="") -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.dtype = dtype
        self.custom_op = custom_op_name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def calculate_qparams(self) -> Any:
        raise RuntimeError("a NoopObserver has seen nothing, and has no scale")


class ReuseInputObserver(ObserverBase):
    """The value has the scale of what it was computed from: reshape."""

    def __init__(self) -> None:
        super().__init__(torch.quint8, is_dynamic=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def calculate_qparams(self) -> Any:
        raise RuntimeError("a ReuseInputObserver has seen nothing, and has no scale of its own")


class RecordingObserver(ObserverBase):
    """Keeps a copy of each tensor, to look at them (`get_tensor_value`)."""

    def __init__(self, dtype=torch.quint8) -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.tensor_val: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.tensor_val.append(x.clone())
        return x

    def calculate_qparams(self) -> Any:
        raise RuntimeError("a RecordingObserver only records, and has no scale")

    def get_tensor_value(self) -> list[torch.Tensor]:
        return self.tensor_val


# ---- the usual ones

default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_tensor_symmetric
)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_tensor_symmetric, quant_min=-127, quant_max=127,
    eps=2**-12,
)  # fmt: skip
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric
)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric, quant_min=-127, quant_max=127,
    eps=2**-12,
)  # fmt: skip
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=torch.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=torch.quint8, qscheme=_FLOAT_QPARAMS, ch_axis=0
)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=torch.quint4x2, qscheme=_FLOAT_QPARAMS, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=torch.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=torch.quint8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver


def get_observer_state_dict(mod: torch.nn.Module) -> dict[str, Any]:
    """The part of the state that is what observers of activations have seen."""
    return {k: v for k, v in mod.state_dict().items() if "activation_post_process" in k}


def load_observer_state_dict(mod: torch.nn.Module, obs_dict: dict[str, Any]) -> None:
    """Gives the observers of activations what `get_observer_state_dict` took from another copy of
    the model."""
    own = mod.state_dict()
    missing = [k for k in own if "activation_post_process" in k and k not in obs_dict]
    missing = [k for k in missing if not k.endswith(".counts")]
    unexpected = [k for k in obs_dict if k not in own]
    if missing or unexpected:
        raise RuntimeError(f"the state does not belong to this model: it lacks {missing[:5]}, "
                           f"and {unexpected[:5]} have no place in it")
    mod.load_state_dict({**own, **obs_dict}, strict=False)
